//! A comparison as a page of text.

use super::{
    CompareAnswer, CompareVerdict, ComparedDevice, DeviceFigures, OverReference, TurnAnswer, VerdictTurn,
};
use crate::choices::ChoicesAnswer;
use crate::figures::rounded;
use crate::figures::{Goal, Unit};
use crate::plan::shares_text;
use offpath_terminal::output::{Screen, TableCell, short, signed};

/// Turning points that are told one by one.
const MOST_TURNS: usize = 6;

/// An interval; empty where it is narrower than half a percent.
pub(crate) fn interval((low, high): (f64, f64)) -> String {
    if (high - low).abs() <= 0.005 * high.abs() {
        String::new()
    } else {
        format!("{}-{}", short(low), short(high))
    }
}

fn percent(share: f64) -> String {
    format!("{:.0}%", share * 100.0)
}

impl DeviceFigures {
    pub(super) fn latency_80(&self) -> (f64, f64) {
        (self.mix.unloaded_latency_us_low_80, self.mix.unloaded_latency_us_high_80)
    }

    pub(super) fn host_cores_80(&self) -> (f64, f64) {
        // What is left of a core by the solver's rounding is no core.
        let cores = |value: f64| if value.abs() < 1e-4 { 0.0 } else { value };
        (cores(self.host_cores_low_80), cores(self.host_cores_high_80))
    }
}

impl OverReference {
    /// By how much the goal is met better or worse than by the reference, with its interval; nothing beside a reference that
    /// takes nothing.
    pub(super) fn change(&self) -> Option<String> {
        let of = |ratio: f64| signed((ratio - 1.0) * 100.0, 0);
        let (low, high) = (self.ratio_low_80?, self.ratio_high_80?);
        Some(format!("{} (80% interval {} to {})", of(self.ratio?), of(low), of(high)))
    }

    /// Cores of the host that it frees, or takes more of; nothing where neither is seen.
    pub(super) fn freed(&self) -> Option<String> {
        let (low, high) = (self.freed_host_cores_low_80, self.freed_host_cores_high_80);
        let (words, value, from, to) = match self.freed_host_cores < 0.0 {
            false => ("frees", self.freed_host_cores, low, high),
            true => ("takes", -self.freed_host_cores, -high, -low),
        };
        let is_nothing = [value, from, to].iter().all(|cores| cores.abs() < 0.005);
        let more = if words == "frees" { "host cores" } else { "host cores more" };
        (!is_nothing)
            .then(|| format!("{words} {} {more} (80% {} to {})", short(value), short(from), short(to)))
    }
}

impl CompareAnswer {
    fn rate_unit(&self) -> Unit {
        Unit { payload_bytes: self.unit_payload_bytes }
    }

    /// What a device is worth by the goal.
    pub(super) fn worth(&self, own: &DeviceFigures) -> String {
        match self.goal {
            Goal::MostThroughput => format!("{} {}", short(own.mix.throughput.rate()), self.unit),
            Goal::LeastHostCpu => format!("{} host cores", short(own.host_cores)),
            Goal::LowestP99 => format!("{} us mean unloaded latency", short(own.mix.unloaded_latency_us)),
        }
    }

    /// The load at which the host's time is compared.
    pub(super) fn host_load(&self) -> String {
        self.rate_unit().text(self.host_load_req_per_s)
    }

    /// The device that the first line speaks of beside the reference: beside a plain NIC the card; else the best one that is
    /// not the reference.
    fn named(&self) -> Option<&ComparedDevice> {
        let others = self.devices.iter().filter(|one| Some(&one.name) != self.reference.as_ref());
        let asked = self.card.as_ref().unwrap_or(&self.best);
        let mut planned = others.filter(|one| one.plan.is_some());
        planned.clone().find(|one| one.name == *asked).or_else(|| planned.next())
    }

    /// What is sought, as a reason.
    fn by(&self) -> &'static str {
        match self.goal {
            Goal::MostThroughput => "by throughput",
            Goal::LeastHostCpu => "by host processor time",
            Goal::LowestP99 => "by mean latency",
        }
    }

    /// Whether to buy the card, in one line.
    pub fn answer(&self) -> String {
        let Some((named, own)) = self.named().and_then(|one| Some((one, one.plan.as_ref()?))) else {
            return format!("{} alone has a plan", self.best);
        };
        if self.verdict == CompareVerdict::OnlyOne {
            let settled = if own.settled { "" } else { "; NOT SETTLED" };
            return format!(
                "only {} has a plan: {}; basis: {}{settled}",
                named.name,
                self.worth(own),
                own.mix.basis
            );
        }
        let reference = self.reference.as_deref().unwrap_or_default();
        let other = self.figures(reference).map_or_else(String::new, |other| self.worth(other));
        // In the others no device carries what is asked for, and none is the better.
        let counted = match (self.counted_share_of_draws * self.draws as f64).round() as usize {
            all if all == self.draws => format!("{all} joint draws widened by past errors"),
            some => format!(
                "the {some} of {} joint draws in which one of them carries the load, widened by past errors",
                self.draws
            ),
        };
        if let Some(why) = &self.unlike_because {
            return format!("cannot tell {}: {why}", self.by());
        }
        let draws = |(widened, without): (f64, f64)| {
            format!("in {} of {counted} ({} without them)", percent(widened), percent(without))
        };
        let card = (
            self.card_best_in_share_of_draws.unwrap_or(0.0),
            self.card_best_in_share_of_draws_without_past_errors.unwrap_or(0.0),
        );
        let best = (own.best_in_share_of_draws, own.best_in_share_of_draws_without_past_errors);
        let as_good = (own.as_good_in_share_of_draws, own.as_good_in_share_of_draws_without_past_errors);
        let said = match self.verdict {
            CompareVerdict::Card => {
                format!("yes, {} {}: better than {reference} {}", named.name, self.by(), draws(card))
            }
            CompareVerdict::PlainNic => {
                format!("no, {reference} is as good {}: {} is better {}", self.by(), named.name, draws(card))
            }
            CompareVerdict::CannotTell if self.card.is_some() => {
                format!(
                    "cannot tell {}: {} is better than {reference} {}",
                    self.by(),
                    named.name,
                    draws(card)
                )
            }
            CompareVerdict::Device => {
                format!("{}: the best {}", named.name, draws(best))
            }
            CompareVerdict::Tie => {
                format!("a tie: {} is not beaten by a hundredth {}", named.name, draws(as_good))
            }
            _ => format!("cannot tell: {} is the best {}", named.name, draws(best)),
        };
        let over = own.over_reference.as_ref();
        if self.order_only {
            let spares = match over {
                Some(over) if over.freed_host_cores_low_80 > 0.0 => {
                    "; it can spare the host time, as said below"
                }
                _ => "",
            };
            return format!(
                "{said}{spares}; order only: guesses decide the figures below, so read no more than an order from them"
            );
        }
        let change =
            over.and_then(OverReference::change).map_or_else(String::new, |change| format!(", {change}"));
        let freed = over.and_then(OverReference::freed);
        let freed = freed.map_or_else(String::new, |freed| {
            let load = self.host_load();
            match self.sparing(own) {
                // A mix that spares the host is not the one whose rate stands before.
                Some(mix) => format!("; instead, at {load} by {mix}, it {freed}"),
                None => format!("; {freed} at {load}"),
            }
        });
        // What the twin does not carry is no answer before the remark on it is read.
        let doubted = [Some(named), self.devices.iter().find(|one| one.name == reference)]
            .into_iter()
            .flatten()
            .filter(|one| one.plan.as_ref().is_some_and(|plan| !plan.confirmed))
            .map(|one| one.name.as_str());
        let doubted: Vec<&str> = doubted.collect();
        let doubted = match doubted.is_empty() {
            true => String::new(),
            false => {
                format!("; the twin does not confirm the plan of {}, as said below", doubted.join(" and "))
            }
        };
        format!(
            "{said}; {} {} against {other} of {reference}{change}{freed}{doubted}; basis: {}",
            named.name,
            self.worth(own),
            match self.figures(reference).map(|other| other.mix.basis).filter(|other| *other != own.mix.basis)
            {
                Some(other) => format!("{}, of {reference} {other}", own.mix.basis),
                None => own.mix.basis.to_string(),
            }
        )
    }

    /// What was measured of the steps of each device and is planned otherwise, a line each.
    pub(super) fn measured_otherwise(&self) -> Vec<String> {
        let of = |one: &ComparedDevice| {
            let lines = one.measured_otherwise.lines();
            lines.into_iter().map(|line| format!("{}: {line}", one.name)).collect::<Vec<String>>()
        };
        self.devices.iter().flat_map(of).collect()
    }

    /// In how many draws each device carries the load at which the host's time is compared, where not in all.
    pub(super) fn host_load_carried(&self) -> Option<String> {
        let planned = || self.devices.iter().filter_map(|one| Some((one, one.plan.as_ref()?)));
        let is_short = planned().any(|(_, own)| own.host_load_carried_in_share_of_draws < 1.0);
        let of = |(one, own): (&ComparedDevice, &DeviceFigures)| {
            format!("{} in {}", one.name, percent(own.host_load_carried_in_share_of_draws))
        };
        is_short.then(|| {
            format!(
                "host cores are at most those that requests may use; the load at which they are compared is carried by {} of \
                 the {} draws",
                planned().map(of).collect::<Vec<_>>().join(", by "),
                self.draws
            )
        })
    }

    /// The mix that spares the host most, where that is another one than the best.
    fn sparing(&self, own: &DeviceFigures) -> Option<String> {
        let of = |shares: &crate::ByName<f64>, name: &str| {
            shares.iter().find(|(other, _)| *other == name).map_or(0.0, |(_, share)| *share)
        };
        let sparing = &own.host_sparing_shares;
        let is_other = sparing.iter().any(|(name, share)| (share - of(&own.mix.shares, name)).abs() >= 0.005);
        is_other.then(|| shares_text(sparing))
    }

    fn row(&self, one: &ComparedDevice) -> Option<Vec<TableCell>> {
        let own = one.plan.as_ref()?;
        Some(vec![
            TableCell::Strong(match own.settled {
                true => one.name.clone(),
                false => format!("{} (NOT SETTLED)", one.name),
            }),
            TableCell::Number(short(own.mix.throughput.rate())),
            TableCell::Text(interval(own.mix.throughput.range_80())),
            TableCell::Number(short(own.mix.unloaded_latency_us)),
            TableCell::Text(interval(own.latency_80())),
            TableCell::Number(short(own.host_cores)),
            TableCell::Text(interval(own.host_cores_80())),
            TableCell::Number(percent(own.best_in_share_of_draws)),
            TableCell::Number(percent(own.as_good_in_share_of_draws)),
            TableCell::Text(own.mix.basis.to_string()),
        ])
    }

    /// How well latency and host cores are known, where that is not as well as the rate.
    fn other_bases(own: &DeviceFigures) -> String {
        let latency = (own.mix.unloaded_latency_basis != own.mix.basis)
            .then(|| format!("latency {}", own.mix.unloaded_latency_basis));
        let cores = (own.host_cores_basis != own.mix.basis && own.host_cores > 0.0)
            .then(|| format!("host cores {}", own.host_cores_basis));
        let all: Vec<String> = latency.into_iter().chain(cores).collect();
        if all.is_empty() { String::new() } else { format!("; basis of {}", all.join(", of ")) }
    }

    /// What each device runs, where it stands and what binds it, a line each.
    pub(super) fn devices_text(&self) -> Vec<String> {
        let line = |one: &ComparedDevice| match &one.plan {
            Some(own) => format!(
                "{} in {} (host {}): {}; binds: {}{}{}",
                one.name,
                one.system.testbed,
                one.host,
                shares_text(&own.mix.shares),
                match own.mix.binds.is_empty() {
                    true => "nothing but the load".to_string(),
                    false => own.mix.binds.join(", "),
                },
                self.sparing(own).map_or_else(String::new, |mix| format!("; spares the host most by {mix}")),
                CompareAnswer::other_bases(own)
            ),
            None => format!("{}: no plan: {}", one.name, one.refused.as_deref().unwrap_or_default()),
        };
        let choices = |one: &ComparedDevice| {
            let choices = one.plan.as_ref().and_then(|own| own.mix.choices.as_ref());
            let lines = choices.map_or_else(Vec::new, ChoicesAnswer::lines);
            lines.into_iter().map(|line| format!("{}: {line}", one.name)).collect::<Vec<String>>()
        };
        self.devices.iter().flat_map(|one| [vec![line(one)], choices(one)].concat()).collect()
    }

    /// What a device does not run, a line each.
    pub(super) fn left_out(&self) -> Vec<String> {
        let of = |one: &ComparedDevice| {
            let line = |left: &crate::LeftOutAnswer| {
                format!("{} does not run {}: {}", one.name, left.alternative, left.reason)
            };
            one.left_out.iter().map(line).collect::<Vec<String>>()
        };
        self.devices.iter().flat_map(of).collect()
    }

    /// In how many draws each device is the best without past errors.
    pub(super) fn without_errors(&self) -> Option<String> {
        let of = |one: &ComparedDevice| {
            let own = one.plan.as_ref()?;
            Some(format!(
                "{} best in {}, as good in {}",
                one.name,
                percent(own.best_in_share_of_draws_without_past_errors),
                percent(own.as_good_in_share_of_draws_without_past_errors)
            ))
        };
        let all: Vec<String> = self.devices.iter().filter_map(of).collect();
        (all.len() > 1).then(|| format!("without past errors: {}", all.join("; ")))
    }

    /// What decides which device is the best.
    pub(super) fn decides(&self) -> Vec<String> {
        if self.verdict == CompareVerdict::OnlyOne {
            return Vec::new();
        }
        let turns = [self.turns(), self.verdict_turns()].concat();
        let mut lines = match turns.is_empty() {
            true => vec![self.no_single_number()],
            false => turns,
        };
        lines.extend(self.errors_decide());
        lines.extend(self.mechanisms_decide());
        lines
    }

    /// What the answer would be by other draws, in a few words.
    fn would_be(&self, verdict: CompareVerdict, card_best_in: Option<f64>) -> String {
        let said = match verdict {
            CompareVerdict::Card => "yes",
            CompareVerdict::PlainNic => "no",
            CompareVerdict::Device => "a best device",
            CompareVerdict::Tie => "a tie",
            CompareVerdict::CannotTell | CompareVerdict::OnlyOne => "cannot tell",
        };
        match (card_best_in, &self.card) {
            (Some(share), Some(card)) => format!("`{said}`, {card} better in {}", percent(share)),
            _ => format!("`{said}`"),
        }
    }

    /// That past errors make the answer, where without them it is another one.
    fn errors_decide(&self) -> Option<String> {
        (self.unlike_because.is_none() && self.verdict_without_past_errors != self.verdict).then(|| {
            let share = self.card_best_in_share_of_draws_without_past_errors;
            format!(
                "what past predictions of such ratios were wrong by: without these errors the draws say {}; no number here \
                 narrows them, a measurement of both devices does",
                self.would_be(self.verdict_without_past_errors, share)
            )
        })
    }

    /// That a mechanism that the evidence leaves open makes the answer, where by each alone it is another one.
    fn mechanisms_decide(&self) -> Option<String> {
        let by = self.by_mechanism.as_ref()?;
        let (base, variant) = (by.verdict_of_base_draws, by.verdict_of_variant_draws);
        (self.unlike_because.is_none() && base != variant).then(|| {
            format!(
                "which mechanism holds: without past errors the draws of the base alone say {}, those under {} {}",
                self.would_be(base, by.card_best_in_share_of_base_draws),
                by.open.join(" and "),
                self.would_be(variant, by.card_best_in_share_of_variant_draws)
            )
        })
    }

    /// That no number by itself makes another answer, and how far that was looked into.
    fn no_single_number(&self) -> String {
        let held = match (self.ends_held, &self.unlike_because) {
            (_, Some(_)) => String::new(),
            (0, None) => ", or moves the difference by that".to_string(),
            (1, None) => ", and the one that moves the difference by that makes no other answer".to_string(),
            (some, None) => {
                format!(
                    ", and held in all draws at the {some} ends that move the difference most none makes another answer"
                )
            }
        };
        format!(
            "no single number: at either end of the interval of each no device beats {} by a hundredth{held}",
            self.best
        )
    }

    /// The numbers that make another first line where all draws have them at an end, a line each.
    fn verdict_turns(&self) -> Vec<String> {
        let line = |one: &VerdictTurn| {
            format!(
                "{} at {} instead of {}, with all else drawn: the answer is {}",
                one.number,
                rounded(&one.at),
                rounded(&one.value),
                self.would_be(one.verdict, one.card_best_in_share_of_draws)
            )
        };
        self.verdict_turning_points.iter().map(line).collect()
    }

    /// The numbers that turn the answer, a line each.
    fn turns(&self) -> Vec<String> {
        let line = |one: &TurnAnswer| {
            let then = match &one.best {
                Some(best) => format!("{best} is the best"),
                None => "no device carries the load".to_string(),
            };
            format!("{} at {} instead of {}: {then}", one.number, rounded(&one.at), rounded(&one.value))
        };
        let mut lines: Vec<String> = self.turning_points.iter().take(MOST_TURNS).map(line).collect();
        if let Some(more) = self.turning_points.len().checked_sub(MOST_TURNS).filter(|more| *more > 0) {
            lines.push(format!("and {more} more, which `--format json` lists"));
        }
        lines
    }

    /// The comparison as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("answer: {}\n", self.answer());
        self.measured_otherwise().iter().for_each(|line| text += &format!("{line}\n"));
        text += &screen.heading(&format!("{}, each device at its own best mix", self.design));
        let header = [
            "device",
            self.unit,
            "80% interval",
            "latency us",
            "80% interval",
            "host cores",
            "80% interval",
            "best in",
            "as good in",
            "basis",
        ];
        text += &screen.table(&header, self.devices.iter().filter_map(|one| self.row(one)).collect());
        text += &format!(
            "host cores: at {}, in the mix that spares the host most; best in: of {} draws in which numbers that devices share \
             are drawn once, widened by past errors, those in which it beats every other by 1%; as good in: in which no other \
             beats it by that\n",
            self.host_load(),
            match (self.counted_share_of_draws * self.draws as f64).round() as usize {
                all if all == self.draws => format!("{all} joint"),
                some => format!("the {some} of {} joint", self.draws),
            }
        );
        text.extend(self.host_load_carried().map(|said| said + "\n"));
        text.extend(self.without_errors().map(|said| said + "\n"));
        if self.counted_share_of_draws < 1.0 {
            let carried = |one: &ComparedDevice| {
                let own = one.plan.as_ref()?;
                Some(format!("{} in {}", one.name, percent(own.carried_in_share_of_draws)))
            };
            let carried: Vec<String> = self.devices.iter().filter_map(carried).collect();
            text += &format!(
                "the load is carried by {} of the {} draws; where no device carries it none is the better\n",
                carried.join(", by "),
                self.draws
            );
        }
        self.devices_text().iter().for_each(|line| text += &format!("{line}\n"));
        self.left_out().iter().for_each(|line| text += &format!("{line}\n"));
        let decides = self.decides();
        if !decides.is_empty() {
            text += &screen.heading("What would change the answer");
            decides.iter().for_each(|line| text += &format!("{line}\n"));
        }
        text += &screen.heading("Remarks");
        for said in self.devices.iter().filter_map(|one| one.system.widened_by_others()) {
            text += &format!("intervals: {said}\n");
        }
        for said in self.devices.iter().filter_map(|one| one.system.latency_untold()) {
            text += &format!("latencies: {said}\n");
        }
        text += &format!("energy: not compared: {}\n", self.energy_not_compared_because);
        self.notes.iter().for_each(|note| text += &format!("{note}\n"));
        text
    }
}
