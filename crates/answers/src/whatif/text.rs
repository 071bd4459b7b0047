//! A card with changes as a page of text.

use super::{OverNow, TriedAnswer, TriedEffect, TriedFigures, WhatIfAnswer};
use crate::choices::ChoicesAnswer;
use crate::compare::interval;
use crate::figures::Goal;
use crate::plan::shares_text;
use offpath_terminal::output::{Screen, TableCell, short, signed};

/// Alternatives by themselves that are named in a line.
const MOST_NAMED: usize = 4;

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

/// A change in percent; with a digit more where it is small.
fn change(percent: f64) -> String {
    match percent.abs() {
        0.0 => "0%".to_string(),
        size if size < 0.05 => "<0.1%".to_string(),
        size if size < 9.95 => signed(percent, 1),
        _ => signed(percent, 0),
    }
}

/// An interval of a change; empty where both ends read alike.
fn between(low: Option<f64>, high: Option<f64>) -> String {
    match low.zip(high).map(|(low, high)| (change(low), change(high))) {
        Some((low, high)) if low != high => format!("{low} to {high}"),
        _ => String::new(),
    }
}

impl OverNow {
    fn gain(&self) -> String {
        self.gain_percent.map_or_else(|| "-".to_string(), change)
    }

    fn gain_80(&self) -> String {
        between(self.gain_percent_low_80, self.gain_percent_high_80)
    }
}

impl TriedFigures {
    fn binds(&self) -> String {
        match self.mix.binds.is_empty() {
            true => "nothing but the load".to_string(),
            false => self.mix.binds.join(", "),
        }
    }

    /// What a plan of it would caution against.
    fn caution(&self) -> &'static str {
        if self.confirmed { "" } else { "; not confirmed by the twin" }
    }
}

impl TriedAnswer {
    /// What it does, in a line; where its figures stand in the table, what they do not say.
    fn line(&self, answer: &WhatIfAnswer) -> String {
        let name = &self.name;
        let because = self.because.as_deref().unwrap_or_default();
        match self.effect {
            TriedEffect::NotApplicable => format!("{name}: not applicable: {because}"),
            TriedEffect::AlreadySo => {
                format!("{name}: {} has it already: no number changes", answer.system.device)
            }
            TriedEffect::NoPlan => format!("{name}: no plan: {because}"),
            TriedEffect::NotUsed => {
                format!(
                    "{name}: changes nothing that the design uses: the gain is 0 in each of {} draws",
                    answer.draws
                )
            }
            _ => format!("{name}: {}{}", self.moved(answer), self.by_themselves()),
        }
    }

    /// What binds and what is taken, where that is otherwise.
    fn moved(&self, answer: &WhatIfAnswer) -> String {
        let Some(then) = &self.then else { return String::new() };
        let (mix, binds) = (shares_text(&then.mix.shares), then.binds());
        let caution = then.caution();
        match &answer.now {
            None => format!("{mix}; binds: {binds}{caution}"),
            Some(now) => {
                let (mix_now, binds_now) = (shares_text(&now.mix.shares), now.binds());
                let mix = if mix == mix_now { "the same mix".to_string() } else { mix };
                let binds = match binds == binds_now {
                    true => format!("binds as before: {binds}"),
                    false => format!("binds: {binds}, where it was {binds_now}"),
                };
                format!("{mix}; {binds}{caution}")
            }
        }
    }

    /// The alternatives by themselves that are otherwise.
    fn by_themselves(&self) -> String {
        let one = |one: &super::AlternativeChange| {
            let parts = [("rate", one.rate_change_percent), ("latency", one.unloaded_latency_change_percent)];
            let told = parts.iter().filter(|(_, percent)| percent.abs() >= 0.5);
            let told: Vec<String> =
                told.map(|(what, percent)| format!("{what} {}", change(*percent))).collect();
            format!("{} {}", one.alternative, told.join(" and "))
        };
        let named: Vec<String> = self.alternatives.iter().take(MOST_NAMED).map(one).collect();
        let more = match self.alternatives.len().saturating_sub(MOST_NAMED) {
            0 => String::new(),
            more => format!(", and {more} more"),
        };
        // A change that is taken at the end of what it may be is worth no more than that, and may be worth less.
        let is_at_end = self.numbers.iter().any(|one| one.end().is_some());
        let by = if is_at_end { "alone, at these ends of the intervals" } else { "alone" };
        if named.is_empty() { String::new() } else { format!("; {by}: {}{more}", named.join(", ")) }
    }

    /// Who says it, what it says, and the numbers that it changes.
    fn says(&self) -> String {
        let by = self.suggested_by.as_ref().map_or_else(String::new, |by| format!(" ({by})"));
        let description = self.description.as_ref().map_or_else(String::new, |said| format!(": {said}"));
        let number = |one: &super::TriedNumberAnswer| {
            let now = one.now.as_deref().unwrap_or("none");
            let known = match (&one.then_low, &one.then_high, one.end()) {
                (Some(low), Some(high), None) => format!(" ({low} to {high})"),
                (Some(low), Some(high), Some(end)) => format!(" (the {end} of {low} to {high})"),
                _ => String::new(),
            };
            format!("{} {}{known} instead of {now}", one.number, one.then)
        };
        let numbers: Vec<String> = self.numbers.iter().map(number).collect();
        let numbers = if numbers.is_empty() { String::new() } else { format!("; {}", numbers.join(", ")) };
        format!("{}{by}{description}{numbers}", self.name)
    }

    fn row(&self, answer: &WhatIfAnswer) -> Option<Vec<TableCell>> {
        let then = self.then.as_ref().filter(|_| self.effect != TriedEffect::NotUsed)?;
        let over = self.over_now.as_ref();
        let of = |text: &dyn Fn(&OverNow) -> String| over.map_or_else(String::new, text);
        Some(vec![
            TableCell::Strong(self.name.clone()),
            TableCell::Number(answer.worth(then)),
            TableCell::Number(of(&OverNow::gain)),
            TableCell::Text(of(&OverNow::gain_80)),
            TableCell::Number(of(&|over| percent(over.better_in_share_of_draws))),
            TableCell::Number(of(&|over| percent(over.worse_in_share_of_draws))),
            TableCell::Number(short(then.mix.unloaded_latency_us)),
            TableCell::Number(of(&|over| {
                over.unloaded_latency_change_percent.map_or("-".to_string(), change)
            })),
            TableCell::Text(then.mix.basis.to_string()),
        ])
    }
}

impl super::TriedNumberAnswer {
    /// At which end of its interval the value lies, where it does.
    fn end(&self) -> Option<&'static str> {
        let (low, high) = (self.then_low.as_ref()?, self.then_high.as_ref()?);
        match (self.then == *low, self.then == *high) {
            (false, true) => Some("most"),
            (true, false) => Some("least"),
            _ => None,
        }
    }
}

impl WhatIfAnswer {
    /// What a best mix is worth by the goal.
    fn worth(&self, own: &TriedFigures) -> String {
        match self.goal {
            Goal::MostThroughput | Goal::LowestP99 => short(own.mix.throughput.rate()),
            Goal::LeastHostCpu => short(own.host_cpu_us),
        }
    }

    fn worth_unit(&self) -> &'static str {
        match self.goal {
            Goal::MostThroughput | Goal::LowestP99 => self.unit,
            Goal::LeastHostCpu => "host us a request",
        }
    }

    /// What gains, in one line.
    pub fn answer(&self) -> String {
        let Some(now) = &self.now else {
            let why = self.refused.as_deref().unwrap_or_default();
            let first = self.changes.iter().filter(|one| one.effect == TriedEffect::FirstPlan);
            let names: Vec<&str> = first.map(|one| one.name.as_str()).collect();
            return match names.is_empty() {
                true => format!("no plan as it is nor with any change: {why}"),
                false => format!("no plan as it is: {why}; with {} there is one", names.join(", ")),
            };
        };
        let gain = |one: &TriedAnswer| one.over_now.as_ref().and_then(|over| over.gain_percent);
        let mut best: Vec<&TriedAnswer> =
            self.changes.iter().filter(|one| one.effect == TriedEffect::Gains).collect();
        best.sort_by(|one, other| gain(other).unwrap_or(0.0).total_cmp(&gain(one).unwrap_or(0.0)));
        let Some(first) = best.first() else {
            let open = self.changes.iter().filter(|one| one.effect == TriedEffect::CannotTell);
            let open: Vec<&str> = open.map(|one| one.name.as_str()).collect();
            let open = match open.is_empty() {
                true => String::new(),
                false => format!("; the draws do not tell of {}", open.join(", ")),
            };
            return format!(
                "no change gains 1% in 80% of {} joint draws: {} {} as it is, bound by {}{open}; basis: {}",
                self.draws,
                self.worth(now),
                self.worth_unit(),
                now.binds(),
                now.mix.basis
            );
        };
        let (Some(then), Some(over)) = (&first.then, &first.over_now) else {
            unreachable!("what gains was planned beside the card as it is")
        };
        let interval = over.gain_80();
        let interval = if interval.is_empty() { interval } else { format!(" (80% interval {interval})") };
        let order = match [now.mix.basis, then.mix.basis].contains(&"order only") {
            true => "; order only: guesses decide these figures",
            false => "",
        };
        let others: Vec<String> = best[1..]
            .iter()
            .map(|one| {
                format!("{} {}", one.name, one.over_now.as_ref().map_or_else(String::new, OverNow::gain))
            })
            .collect();
        let others = if others.is_empty() { String::new() } else { format!("; then {}", others.join(", ")) };
        format!(
            "{} gains most, {}{interval}, 1% or more in {} of {} joint draws: {} {} instead of {}{others}; basis: {}{order}",
            first.name,
            over.gain(),
            percent(over.better_in_share_of_draws),
            self.draws,
            self.worth(then),
            self.worth_unit(),
            self.worth(now),
            then.mix.basis
        )
    }

    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("answer: {}\n", self.answer());
        text += &screen.heading(&format!(
            "{} on {} in {}, each at its own best mix",
            self.design, self.system.device, self.system.testbed
        ));
        let header = [
            "change",
            self.worth_unit(),
            "gain",
            "80% interval",
            "gains in",
            "loses in",
            "latency us",
            "longer by",
            "basis",
        ];
        let as_it_is = self.now.as_ref().map(|now| {
            vec![
                TableCell::Strong("as it is".to_string()),
                TableCell::Number(self.worth(now)),
                TableCell::Number(String::new()),
                TableCell::Text(String::new()),
                TableCell::Number(String::new()),
                TableCell::Number(String::new()),
                TableCell::Number(short(now.mix.unloaded_latency_us)),
                TableCell::Number(String::new()),
                TableCell::Text(now.mix.basis.to_string()),
            ]
        });
        let rows = as_it_is.into_iter().chain(self.changes.iter().filter_map(|one| one.row(self)));
        text += &screen.table(&header, rows.collect());
        text += &format!(
            "gain: over {} draws in which what the card has with and without a change is drawn once, so that it cancels; \
             gains in, loses in: those in which the best mix is better or worse by 1%\n",
            self.draws
        );
        match &self.now {
            Some(now) => {
                text += &format!(
                    "as it is: {}{}; {}; binds: {}{}\n",
                    self.rate_80(now),
                    self.worth_unit(),
                    shares_text(&now.mix.shares),
                    now.binds(),
                    now.caution()
                );
                let choices = now.mix.choices.as_ref().map_or_else(Vec::new, ChoicesAnswer::lines);
                choices.iter().for_each(|line| text += &format!("as it is: {line}\n"));
            }
            None => text += &format!("as it is: no plan: {}\n", self.refused.as_deref().unwrap_or_default()),
        }
        self.changes.iter().for_each(|one| text += &format!("{}\n", one.line(self)));
        for left in &self.left_out {
            text += &format!("{} does not run {}: {}\n", self.system.device, left.alternative, left.reason);
        }
        text += &screen.heading("What the changes say");
        self.changes.iter().for_each(|one| text += &format!("{}\n", one.says()));
        text += &screen.heading("Remarks");
        text += "a change is a hypothesis of hardware that nobody measured; where it names an interval that is drawn too\n";
        let errors: Vec<String> = self
            .changes
            .iter()
            .filter(|one| {
                matches!(one.effect, TriedEffect::Gains | TriedEffect::CannotTell | TriedEffect::Loses)
            })
            .filter_map(|one| {
                let over = one.over_now.as_ref()?;
                let (low, high) =
                    (over.gain_with_past_errors_percent_low_80, over.gain_with_past_errors_percent_high_80);
                Some(format!("{} {}", one.name, between(low, high)))
            })
            .collect();
        if !errors.is_empty() {
            text += &format!(
                "what past predictions of ratios were wrong by is not in these intervals, since both sides are of one card; \
                 moved by it too: {}\n",
                errors.join(", ")
            );
        }
        if let Some(said) = self.system.widened_by_others() {
            text += &format!("intervals: {said}\n");
        }
        text.extend(self.system.latency_untold().map(|said| format!("latencies: {said}\n")));
        self.notes.iter().for_each(|note| text += &format!("{note}\n"));
        text
    }

    /// What the card is worth as it is with the interval of its rate, where that is what is sought.
    fn rate_80(&self, now: &TriedFigures) -> String {
        let interval = match self.goal {
            Goal::LeastHostCpu => String::new(),
            Goal::MostThroughput | Goal::LowestP99 => interval(now.mix.throughput.range_80()),
        };
        let interval = if interval.is_empty() { interval } else { format!("(80% interval {interval}) ") };
        format!("{} {interval}", self.worth(now))
    }
}
