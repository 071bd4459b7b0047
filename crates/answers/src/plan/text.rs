//! A plan as a page of text.

use super::answer::{
    AlternativeAnswer, BindingAnswer, ChangedAnswer, GapAnswer, MixAnswer, PlanAnswer, SolvedAnswer,
    shares_text,
};
use crate::advice::Doubt;
use crate::choices::ChoicesAnswer;
use crate::command;
use crate::figures::{Goal, Throughput};
use offpath_quantity::{Bytes, Time};
use offpath_terminal::output::{Screen, TableCell, fixed, short, signed};

/// From which share of its time on a station's queue takes longer to settle than a window lasts.
const NEAR: f64 = 0.95;

/// What is said of few clients whose requests leave work behind.
const HELD: &str = "a client's next request waits until the work in the background of its last one is over";

pub(super) fn percent(after: f64, before: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// A figure that may not be known.
pub(super) fn shown(figure: Option<f64>) -> String {
    figure.map_or_else(|| "-".to_string(), short)
}

/// A request's time of so many microseconds.
pub(super) fn time(us: f64) -> String {
    Time::from_seconds(us / 1e6).to_string()
}

/// The 80% interval of a rate; empty where it is narrower than half a percent.
pub(super) fn range(rate: &Throughput) -> String {
    let (low, high) = rate.range_80();
    if high - low < 0.005 * rate.rate() { String::new() } else { format!("{}-{}", short(low), short(high)) }
}

impl AlternativeAnswer {
    /// Its name, with its device where that is another one.
    pub(super) fn title(&self) -> String {
        match self.beside {
            true => format!("{} ({})", self.name, self.device),
            false => self.name.clone(),
        }
    }

    fn row(&self) -> Vec<TableCell> {
        vec![
            TableCell::Text(self.title()),
            TableCell::Number(short(self.throughput.rate())),
            TableCell::Text(range(&self.throughput)),
            TableCell::Number(short(self.unloaded_latency_us)),
            TableCell::Text(self.binding_station.clone()),
            TableCell::Text(self.reason.clone()),
            TableCell::Text(self.basis.unwrap_or("-").to_string()),
        ]
    }
}

impl MixAnswer {
    fn row(&self) -> Vec<TableCell> {
        vec![
            TableCell::Strong(self.name.clone()),
            TableCell::Number(short(self.throughput.rate())),
            TableCell::Text(range(&self.throughput)),
            TableCell::Number(short(self.unloaded_latency_us)),
            TableCell::Text(shares_text(&self.shares)),
        ]
    }

    /// Whether only more of all that binds it helps.
    pub(super) fn binds_together(&self) -> bool {
        let gains = |bound: &BindingAnswer| bound.gain_percent_for_10_percent_more;
        self.binding.len() > 1
            && self.binding.iter().all(|bound| gains(bound).is_some_and(|gain| gain < 0.05))
    }
}

impl GapAnswer {
    /// What differs, in a sentence.
    pub(super) fn sentence(&self, unit: &str) -> String {
        let doubt = Doubt {
            blind_because: self.blind_because.as_deref(),
            unclear: self.unclear,
            planned: self.rates.planned().unwrap_or(f64::NAN),
            carried: self.rates.carried().zip(self.share.map(|share| share * 100.0)),
            carried_95: self.rates.carried_low_95().zip(self.rates.carried_high_95()),
            allowed_percent: self.allowed_share * 100.0,
            fullest: self.fullest.as_ref(),
            bunched: self.bunched.as_ref(),
        };
        doubt.sentence(unit)
    }

    /// What the twin says of a solution that it does not confirm, in a few words.
    fn doubt(&self, unit: &str) -> String {
        match self.blind_because {
            Some(_) => "the twin confirms nothing of it".to_string(),
            None if self.unclear => "the twin does not tell".to_string(),
            None => match (self.rates.carried(), self.rates.carried_low_95(), self.rates.carried_high_95()) {
                (None, Some(low), Some(high)) => {
                    format!("the twin carries {} to {} {unit} (95%) of it", short(low.max(0.0)), short(high))
                }
                (carried, ..) => format!("the twin carries {} {unit} of it", shown(carried)),
            },
        }
    }
}

impl PlanAnswer {
    /// What the mix is worth by the design's goal.
    pub(super) fn worth_text(&self, worth: f64) -> String {
        match self.goal {
            Goal::MostThroughput => format!("{} {}", short(worth), self.unit),
            _ => time(worth),
        }
    }

    /// The best mix's worth, and its 80% interval where that is wider than half a percent.
    fn worth(&self) -> (String, String) {
        let worth = &self.recommendation.worth;
        let of = |end: Option<f64>| end.unwrap_or(f64::NAN);
        let (value, low, high) = (of(worth.value()), of(worth.low_80()), of(worth.high_80()));
        let range = match high - low < 0.005 * value || high == low {
            true => String::new(),
            // At a load the shares decide what of it is whose: chosen again they give another worth.
            false => format!(
                " (80% interval at these shares {} to {})",
                self.worth_text(low),
                self.worth_text(high)
            ),
        };
        (self.worth_text(value), range)
    }

    /// What more of a resource brings by what the design seeks.
    pub(super) fn brings(&self, gain: f64) -> String {
        match self.goal {
            Goal::MostThroughput => signed(gain, 1),
            Goal::LeastHostCpu => format!("{} host processor time", signed(0.0 - gain, 1)),
            Goal::LowestP99 => format!("{} mean latency", signed(0.0 - gain, 1)),
        }
    }

    pub(super) fn constraints(&self) -> String {
        let cores = self.host_cpu_limit_cores.zip(self.host_cores);
        let cores = cores.map_or_else(String::new, |(open, all)| format!(" ({open} of its {all} cores)"));
        let host = self
            .host_cpu_limit_share
            .map(|share| format!("host processor at most {}%{cores}", (share * 1000.0).round() / 10.0));
        let latency = self.latency_bound().map(|bound| format!("latency at most {bound}"));
        let all: Vec<String> = host.into_iter().chain(latency).collect();
        if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
    }

    /// What an alternative of a mix may take at most, unloaded.
    pub(super) fn latency_bound(&self) -> Option<Time> {
        self.latency_limit_us.map(|us| Time::from_ps((us * 1e6).round() as u64))
    }

    pub(super) fn best_single(&self) -> Option<&AlternativeAnswer> {
        let mixed = self.alternatives.iter().filter(|one| one.mixed);
        mixed.max_by(|a, b| a.throughput.rate().total_cmp(&b.throughput.rate()))
    }

    /// How well the gain of the best mix over an alternative alone is known.
    pub(super) fn over_alone(&self, name: &str) -> String {
        let over = self.recommendation.over_alternatives.iter().find(|one| one.alternative == name);
        over.map_or_else(String::new, |over| {
            let change = |ratio: f64| signed((ratio - 1.0) * 100.0, 1);
            let more = over.faster_in_share_of_draws * 100.0;
            format!(
                " (80% interval {} to {}, more in {more:.0}% of draws widened by past errors)",
                change(over.ratio_low_80),
                change(over.ratio_high_80)
            )
        })
    }

    /// The plan as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!("{} on {}\n", self.design, self.system.line());
        let workload = if self.workload.is_empty() { String::new() } else { format!("{}; ", self.workload) };
        text += &format!("{workload}goal: {}{}\n", self.objective, self.constraints());
        if let Some(cache) = self.cache_text() {
            text += &format!("cache: {cache}\n");
        }
        text += &self.answer();
        text += &screen.heading("Alternatives, each alone");
        let rows = self.alternatives.iter().map(AlternativeAnswer::row).collect();
        text +=
            &screen.table(&["name", self.unit, "80% interval", "latency us", "binds", "why", "basis"], rows);
        let meaning = |one: &AlternativeAnswer| format!("{}: {}", one.binding_station, one.binding_meaning);
        let mut meanings: Vec<String> = self.alternatives.iter().map(meaning).collect();
        meanings.sort();
        meanings.dedup();
        text += &format!("{}\n", meanings.join("; "));
        text.extend(self.host_time().map(|said| said + "\n"));
        text += &screen.heading("Mix");
        text += &self.mixes_text(screen);
        text += &self.twin_text();
        text += &self.advice_text(screen);
        if let Some(changed) = &self.changed {
            text += &screen.heading("What-if");
            text += &self.changes(changed);
        }
        text += &screen.heading("Confidence");
        text += &self.confidence();
        if let Some(sweep) = &self.sweep {
            text += &screen.heading(&format!("By {}", sweep.parameter));
            text += &self.sweep_table(sweep, screen);
        }
        if !self.clients.is_empty() {
            text += &screen.heading("Few clients, one request each, on the twin");
            text += &self.clients_table(screen);
            if self.alternatives.iter().any(|one| one.leaves_work_behind) {
                text += &format!("{HELD}\n");
            }
        }
        if !self.curve.is_empty() {
            text +=
                &screen.heading("Latency over load of the mix, on the twin (tails: no evidence backs them)");
            text += &self.curve_table(screen);
        }
        text
    }

    /// What the design's cache holds, and how often it is hit.
    pub(super) fn cache_text(&self) -> Option<String> {
        let (cache, hits) = (self.cache.as_ref()?, self.cache_hit_ratio?);
        Some(format!(
            "{} of {} memory hold {}the hottest {:.0}% of `{}`: {:.1}% of requests hit",
            Bytes::new(cache.budget_bytes),
            cache.endpoint,
            match cache.whole_objects_bytes {
                0 => String::new(),
                bytes => format!("{} GB of objects kept whole and ", short(bytes as f64 / 1e9)),
            },
            100.0 * cache.entries as f64 / cache.entries_of_object.max(1) as f64,
            cache.object,
            hits * 100.0
        ))
    }

    /// What a request of each alternative takes of the host's processors, where any takes some.
    pub(super) fn host_time(&self) -> Option<String> {
        let takes = self.alternatives.iter().filter(|one| one.host_cpu_us_per_request > 0.0);
        let takes: Vec<String> =
            takes.map(|one| format!("{} {}", one.title(), time(one.host_cpu_us_per_request))).collect();
        (!takes.is_empty()).then(|| format!("host processor time a request: {}", takes.join(", ")))
    }

    /// Which alternatives the design refuses with what its numbers may be, and in how many draws; nothing where none.
    pub(super) fn refused_draws(&self) -> Option<String> {
        let refused = self.alternatives.iter().filter(|one| one.runs_in_share_of_draws < 1.0).map(|one| {
            let share = 1.0 - one.runs_in_share_of_draws;
            let share = if share < 0.01 { "less than 1%".into() } else { format!("{:.0}%", share * 100.0) };
            format!("`{}` in {share}", one.name)
        });
        let refused: Vec<String> = refused.collect();
        (!refused.is_empty()).then(|| {
            format!(
                "REFUSED: {} of the draws, in which it cannot run with what its numbers may be: its intervals, and those of \
                 mixes with it, are of the others",
                refused.join(", ")
            )
        })
    }

    /// In how many draws the best mix keeps the latency bound, where not in all in which it runs.
    pub(super) fn bound_kept(&self) -> Option<String> {
        let sure = &self.recommendation;
        let (bound, kept) = self.latency_bound().zip(sure.keeps_latency_bound_in_share_of_draws)?;
        (kept < sure.runs_in_share_of_draws).then(|| {
            format!(
                "latency bound: these shares keep the bound of {bound} in {:.0}% of the draws; their intervals, and in how many \
                 draws they carry something, are of all in which they run, whether or not they keep it",
                kept * 100.0
            )
        })
    }

    /// What has to be said of the best mix beside its figures, a line each.
    pub(super) fn mix_remarks(&self) -> Vec<String> {
        let mut said = Vec::new();
        if !self.optimal.unique {
            let open =
                self.optimal.shares_as_good.iter().filter(|(_, shares)| shares.high - shares.low > 0.01);
            let open: Vec<String> = open
                .map(|(name, shares)| {
                    format!("`{name}` at {:.0} to {:.0}%", shares.low * 100.0, shares.high * 100.0)
                })
                .collect();
            said.push(match open.is_empty() {
                true => "tie: mixes with other shares are as good; of the least mean latency this is one".into(),
                false => format!(
                    "tie: mixes with {} carry as much, as the plan solves it; of the least mean latency this is one",
                    open.join(", ")
                ),
            });
        }
        let at_load = self.goal != Goal::MostThroughput;
        if at_load {
            said.push(
                "rates: optimal at the load that is asked for, the other mixes the most that they carry; intervals are of all \
                 draws, whether or not they carry the load"
                    .into(),
            );
        }
        if let Some((station, share)) = self.busiest().filter(|_| at_load) {
            said.push(format!("busiest at this load: {station}, {:.0}% of its time", share * 100.0));
            if share > NEAR {
                said.push(
                    "near capacity: queues there grow for longer than the twin looks, so its percentiles are too low"
                        .to_string(),
                );
            }
        }
        said
    }

    /// That the solution moves on, where it has not settled.
    pub(super) fn unsettled(&self) -> Option<String> {
        (!self.twin.settled).then(|| {
            format!(
                "NOT SETTLED: after {} rounds the slots are still held {:.1}% longer or shorter than was solved for; \
                 read the plan as no better than that",
                self.twin.rounds,
                self.twin.holds_moved_share * 100.0
            )
        })
    }

    /// The draws in which the very shares of the answer are looked at.
    pub(super) fn shares_draws(&self) -> String {
        let sure = &self.recommendation;
        match sure.shares_draws_widened_by_past_errors {
            true => format!("{} draws widened by past errors", sure.draws),
            false => format!("{} draws of the numbers that it was fitted by", sure.draws),
        }
    }

    /// In how many draws the shares of the answer carry the load that was asked for.
    pub(super) fn shares_carry(&self) -> Option<String> {
        let sure = &self.recommendation;
        let load = short(self.rate_unit().of_rate(self.load_req_per_s?));
        let carried = sure.load_carried_by_shares_in_share_of_draws;
        Some(format!(
            "these very shares carry {load} {} in {:.0}% of {}{}{}",
            self.unit,
            carried * 100.0,
            self.shares_draws(),
            self.undrawn(),
            match carried < 0.8 {
                true => ": measure on the card before you fix them, or plan for a greater load",
                false => "",
            }
        ))
    }

    /// The alternative of the best mix that alone carries more than the twin does of the mix, with what that is.
    fn part_above_twin(&self) -> Option<(&AlternativeAnswer, f64)> {
        let gap = self.twin.difference.as_ref()?;
        let tells = self.goal == Goal::MostThroughput && gap.blind_because.is_none() && !gap.unclear;
        let carried = gap.rates.carried()?;
        let is_part =
            |one: &&AlternativeAnswer| self.optimal.shares.get(&one.name).is_some_and(|share| *share > 0.0);
        let parts = || self.alternatives.iter().filter(is_part);
        let most = parts().max_by(|a, b| a.throughput.rate().total_cmp(&b.throughput.rate()))?;
        (tells && parts().count() > 1 && most.throughput.rate() > 1.01 * carried).then_some((most, carried))
    }

    /// The answer: the mix to run, what the twin says of it, and what it is worth beside a plain NIC.
    fn answer(&self) -> String {
        let sure = &self.recommendation;
        let range = range(&self.optimal.throughput);
        let range = match (range.is_empty(), self.goal) {
            (true, _) => String::new(),
            (_, Goal::MostThroughput) => {
                let reached = sure.load_carried_by_shares_in_share_of_draws * 100.0;
                let median = short(self.optimal.throughput.rate() * sure.median_of_draws_share);
                // Draws are of the plan: where the twin carries something else they say nothing of what is reached.
                let reached = match self.twin.difference.is_none() {
                    true => format!("; this or more in {reached:.0}% of draws"),
                    false => String::new(),
                };
                format!(" (80% interval {range}, median {median}{reached})")
            }
            _ => format!(" (80% interval {range})"),
        };
        let tail = self.lowest_p99().map_or_else(String::new, |p99| {
            let lacks = self.lacks_filling().map_or("", |_| ", WITHOUT the time that lists take to fill");
            format!(
                "; p99 {p99} us on the twin, the lowest that was found{lacks}, no interval is known of a tail"
            )
        });
        let gap = self.twin.difference.as_ref();
        let confirmed = match gap.map(|gap| (gap.blind_because.is_some(), gap.unclear)) {
            None => "",
            Some((false, false)) => "; TWIN AND PLAN DIFFER",
            Some(_) => "; NOT CONFIRMED by the twin",
        };
        let settled = if self.twin.settled { "" } else { "; NOT SETTLED" };
        let tie =
            if self.optimal.unique { "" } else { "; a tie with other shares, of which none is quicker" };
        // Draws compare means: they tell nothing of a mix that has the lowest tail.
        let best = match self.goal {
            Goal::LowestP99 => String::new(),
            // A set is chosen again in each draw, and an error of the past says nothing of which one it would be.
            _ => format!(
                "; the card's best set in {:.0}% of draws without past errors{}{}",
                sure.best_in_share_of_draws * 100.0,
                self.matched(),
                self.variant_set()
            ),
        };
        let clients = match self.clients_bind.is_empty() {
            true => String::new(),
            false => {
                format!("; {} binds, so that the server may carry more", self.clients_bind.join(" and "))
            }
        };
        let mut text = format!(
            "answer: {}: {} {}{range}{tail}{tie}{clients}; basis: {}{}{best}{confirmed}{settled}\n",
            shares_text(&self.optimal.shares),
            short(self.optimal.throughput.rate()),
            self.unit,
            sure.basis,
            self.whose_estimate()
        );
        text.extend(self.slow());
        if let Some((one, carried)) = self.part_above_twin() {
            text += &format!(
                "THE TWIN CARRIES LESS OF THIS MIX ({} {}) THAN {} IS PLANNED TO CARRY ALONE ({}): plan {} by itself, and \
                 measure both before you mix them\n",
                short(carried),
                self.unit,
                one.name,
                short(one.throughput.rate()),
                one.name
            );
        }
        let said = self.lacks_filling();
        said.iter().chain(&self.without_evidence).for_each(|said| text += &format!("{said}\n"));
        let choices = self.choices.as_ref().map_or_else(Vec::new, ChoicesAnswer::lines);
        choices.iter().for_each(|line| text += &format!("{line}\n"));
        if let Some(said) = self.shares_carry() {
            text += &format!("{said}\n");
        }
        let in_draws = self.refused_draws().into_iter().chain(self.bound_kept());
        in_draws.for_each(|said| text += &format!("{said}\n"));
        if self.goal == Goal::MostThroughput {
            for over in &sure.over_other_devices {
                let change = |ratio: f64| (ratio - 1.0) * 100.0;
                text += &format!(
                    "{}: {} on {} reaches {} {}; the card's mix is {} (80% interval {} to {}), faster in {:.0}% of \
                     {} draws widened by past errors\n",
                    if over.plain_nic { "plain NIC" } else { "beside" },
                    over.alternative,
                    over.device,
                    short(self.optimal.throughput.rate() / over.ratio),
                    self.unit,
                    signed(change(over.ratio), 1),
                    signed(change(over.ratio_low_80), 1),
                    signed(change(over.ratio_high_80), 1),
                    over.faster_in_share_of_draws * 100.0,
                    sure.draws
                );
            }
        }
        self.measured_otherwise.lines().iter().for_each(|line| text += &format!("{line}\n"));
        text
    }

    /// How long a request takes its turn, where that is a second or more: rates have no unit that small.
    fn slow(&self) -> Option<String> {
        let throughput = &self.optimal.throughput;
        let (low, high) = throughput.range_80();
        // What is counted in bits has a rate of its own to be read by.
        let turn = |rate: f64| self.unit_payload_bytes.is_none().then(|| 1e-6 / rate);
        let own = turn(throughput.rate()).filter(|seconds| seconds.is_finite() && *seconds >= 1.0)?;
        let time = |seconds: f64| short(seconds);
        Some(format!(
            "that is one request in {} s (80% interval {} to {} s)\n",
            time(own),
            time(turn(high)?),
            time(turn(low)?)
        ))
    }

    /// Which number makes the mix the user's estimate, and what such numbers decide of it; nothing where it is none.
    fn whose_estimate(&self) -> String {
        let sure = &self.recommendation;
        let Some(whose) = &sure.estimate_by else { return String::new() };
        let assumed = sure.rests_on.iter().find(|rest| rest.number == *whose && rest.is_assumed());
        match (assumed, sure.your_estimates_share) {
            (Some(rest), _) => {
                format!(" ({whose}, which the design assumes, decides {:.0}%)", rest.weight * 100.0)
            }
            (None, decided) if decided >= 0.005 => {
                format!(" ({whose}; your estimates decide {:.0}%)", decided * 100.0)
            }
            // As they are they decide nothing, at this load or at all; farther off they would.
            _ => format!(" ({whose}; as it is nothing here moves with it)"),
        }
    }

    /// The design's own mixes that its latency bound forbids, each with what it is forbidden for.
    pub(super) fn beyond_bound(&self) -> impl Iterator<Item = String> + '_ {
        let beyond = self.mixes.iter().filter(|mix| !mix.beyond_latency_bound.is_empty());
        beyond.zip(self.latency_bound().into_iter().cycle()).map(|(mix, bound)| {
            format!(
                "{}: BEYOND THE LATENCY BOUND, which {} breaks: {bound} holds of each alternative that a mix takes, and not of \
                 their mean",
                mix.name,
                mix.beyond_latency_bound.join(" and ")
            )
        })
    }

    fn mixes_text(&self, screen: &Screen) -> String {
        let rows = [&self.optimal, &self.greedy].into_iter().chain(&self.mixes).map(MixAnswer::row).collect();
        let mut text = screen.table(&["mix", self.unit, "80% interval", "latency us", "shares"], rows);
        text.extend(self.beyond_bound().map(|said| format!("{said}\n")));
        let (worth, range) = self.worth();
        text += &match self.goal {
            Goal::MostThroughput => {
                let optimal = self.optimal.throughput.rate();
                let gain = percent(optimal, self.greedy.throughput.rate());
                // What is one alternative alone is not compared with itself.
                let other = |one: &&AlternativeAnswer| !matches!(&self.optimal.shares.0[..], [(only, _)] if *only == one.name);
                let single = self.best_single().filter(other).map_or_else(String::new, |one| {
                    let gain = percent(optimal, one.throughput.rate());
                    let slower = if gain < 0.0 { ", which is slower" } else { "" };
                    format!(
                        ", {} over {} alone{}{slower}",
                        signed(gain, 1),
                        one.name,
                        self.over_alone(&one.name)
                    )
                });
                let over = match gain <= -0.05 {
                    true => format!("as good as greedy to {:.1}% and quicker", -gain),
                    false => format!("{} over greedy", signed(gain, 1)),
                };
                format!("optimal: {over}{single}{}\n", self.why_better(gain))
            }
            Goal::LeastHostCpu => format!(
                "optimal: {worth} of host processor time a request{range}, greedy {}\n",
                time(self.greedy.host_cpu_us_per_request)
            ),
            Goal::LowestP99 => {
                format!("optimal: {worth} of mean unloaded latency{range}; no interval is known of a tail\n")
            }
        };
        text += &self.taken();
        self.mix_remarks().iter().for_each(|said| text += &format!("{said}\n"));
        let bound = |bound: &BindingAnswer| match bound.gain_percent_for_10_percent_more {
            Some(gain) => {
                format!("{} ({}; 10% more of it: {})", bound.station, bound.meaning, self.brings(gain))
            }
            None => format!("{} ({})", bound.station, bound.meaning),
        };
        let bounds: Vec<String> = self.bounds().map(bound).collect();
        let together = bounds.len() > 1 && self.optimal.binds_together();
        let together = if together { "; more of one of them alone brings nothing" } else { "" };
        let held = if self.optimal.slots_bind { "; told with slots held for as long as now" } else { "" };
        if !bounds.is_empty() {
            text += &format!("binds: {}{together}{held}\n", bounds.join(", "));
        }
        if let Some(saved) = self.optimal.network_saved_percent {
            text += &format!(
                "network: the mix sends {}% fewer payload bytes than plain copies would\n",
                fixed(saved, 0)
            );
        }
        text
    }

    /// What binds the best mix, beside the load that was asked for.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &BindingAnswer> {
        self.optimal.binding.iter().filter(|bound| !bound.is_load)
    }

    /// The station of one machine that the loaded twin kept busy for the greatest share of its time.
    pub(super) fn busiest(&self) -> Option<(&String, f64)> {
        let all = self.twin.utilization.iter().map(|(name, share)| (name, *share));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The set of alternatives that is the best in more draws than the recommended one, where there is one: a reader who
    /// takes the best set of most draws takes that.
    pub(super) fn variant_set(&self) -> String {
        let sure = &self.recommendation;
        let more = sure.best_sets.first().filter(|one| one.alternatives != sure.set);
        more.map_or_else(String::new, |one| {
            format!(", {} in {:.0}%", one.alternatives.join(" + "), one.share_of_draws * 100.0)
        })
    }

    /// What the alternatives do that the best mix takes, as the design describes them.
    pub(super) fn taken(&self) -> String {
        let described = self.optimal.shares.iter().filter_map(|(name, _)| {
            let one = self.alternatives.iter().find(|one| one.name == *name)?;
            (!one.description.is_empty()).then(|| format!("{name}: {}", one.description))
        });
        let described: Vec<String> = described.collect();
        if described.is_empty() { String::new() } else { format!("takes {}\n", described.join(". ")) }
    }

    /// Why the best mix beats greedy, where it does.
    pub(super) fn why_better(&self, gain: f64) -> String {
        if gain < 0.05 {
            return "; greedy's order is as good here".to_string();
        }
        let first = self.greedy.shares.0.first().map_or("", |(name, _)| name);
        let fills = self.greedy_order.first().map_or(first, |name| name);
        // It is filled as if it were alone.
        let spent =
            self.alternatives.iter().find(|one| one.name == fills).map_or("", |one| &one.binding_station);
        let bounds: Vec<&str> = self.bounds().map(|bound| bound.station.as_str()).collect();
        match &bounds[..] {
            [] => format!("; greedy fills {fills} first and spends {spent} on it"),
            bounds => format!(
                "; greedy fills {fills} first and spends {spent} on it, the best mix fills {}",
                bounds.join(" and ")
            ),
        }
    }

    fn twin_text(&self) -> String {
        let (twin, unit) = (&self.twin, self.unit);
        let quantile = |latency: Option<f64>| short(latency.unwrap_or(0.0));
        let how = match twin.poisson_arrivals {
            false => format!("{} requests in flight", twin.requests_in_flight),
            true => "Poisson arrivals at the load".to_string(),
        };
        let rounds = match twin.rounds > 1 {
            true => format!(
                "; solved {} times as slots were held longer under load, first {}",
                twin.rounds,
                shown(twin.rates.first_solution())
            ),
            false => String::new(),
        };
        let gap = twin.difference.as_ref();
        let said = gap.map(|gap| gap.sentence(unit) + "\n");
        if let (Some(_), Some(said)) = (gap.and_then(|gap| gap.blind_because.as_ref()), &said) {
            // A figure beside it would be read as a confirmation.
            return said.clone();
        }
        let (low, high) = (shown(twin.rates.low_95()), shown(twin.rates.high_95()));
        let mut text = match twin.rates.throughput() {
            Some(mean) => format!(
                "twin: {} {unit} (95% {low}-{high}), p50 {} us, p99 {} us with {how}{rounds}\n      validates {}\n",
                short(mean),
                quantile(twin.latency_us_p50),
                quantile(twin.latency_us_p99),
                twin.validates
            ),
            None => format!(
                "twin: no figure: its 95% interval is wider than its mean ({low} to {high} {unit}), since too few requests \
                 of this mix fit its window, so that it confirms nothing\n"
            ),
        };
        if let Some(said) = self.unsettled() {
            text += &format!("{said}\n");
        }
        if let Some(mean) = twin.rates.throughput() {
            if let Some(noise) = twin.noise_share {
                text += &format!(
                    "      within the twin's noise of {:.1}%: that it carries what is planned is neither shown nor refuted\n",
                    noise * 100.0
                );
            }
            text += &self.ended_text(mean);
            text += &said.unwrap_or_default();
        }
        text
    }

    /// How many requests ended, where that is not the rate beside it: who reads one as the count of the other is misled.
    fn ended_text(&self, mean: f64) -> String {
        const APART: f64 = 0.02;
        let twin = &self.twin;
        let ended = self.rate_unit().of_rate(twin.requests_completed as f64 / (twin.window_us * 1e-6));
        let is_inside = twin.rates.low_95() <= Some(ended) && Some(ended) <= twin.rates.high_95();
        if is_inside || (ended / mean - 1.0).abs() <= APART {
            return String::new();
        }
        format!(
            "      that is what the fullest station did over what a request asks of it in the long run; {} {} ended in the \
             window\n",
            short(ended),
            self.unit
        )
    }

    /// The 99th percentile of the mix in us, where the lowest was sought and the twin tells.
    /// What latencies lack of the time that lists take to fill, where that is a tenth of them or more.
    pub(super) fn lacks_filling(&self) -> Option<String> {
        let fill = self.list_fill_us_at_least.filter(|us| *us >= self.optimal.unloaded_latency_us / 10.0)?;
        Some(format!(
            "LATENCIES LACK {} OR MORE: at this load a doorbell list takes that long to fill, where several cores post \
             longer, and neither plan nor twin waits for it",
            time(fill)
        ))
    }

    pub(super) fn lowest_p99(&self) -> Option<String> {
        Some(short(self.lowest_p99.as_ref()?.latency_us_p99?))
    }

    /// By what draws tell which mix is the best, where that is not what was sought: none runs on the twin.
    pub(super) fn best_by(&self) -> &'static str {
        if self.goal == Goal::LowestP99 { " by mean latency" } else { "" }
    }

    /// What gains in the mix that the design runs, in a line each.
    fn advice_text(&self, screen: &Screen) -> String {
        if let Some(why) = &self.advice_not_measured_because {
            return format!("advice: not measured, since {why}\n");
        }
        if self.advice.is_empty() {
            return format!(
                "advice: no rule improves mix `{}` at its shares ({} tried)\n",
                self.advice_mix, self.advice_rules
            );
        }
        let mut text = screen.heading("Advice, by what the twin gains");
        for one in &self.advice {
            text += &format!("{}: {}: {}\n", one.rule, one.headline(self.rate_unit()), one.remedy);
        }
        let check = command::spelled("check", &self.design_file, &self.options);
        // What was found for another design than the file's is not a change of the file.
        text += &match self.not_of_the_file.is_empty() && !self.advice.iter().all(|one| one.may_lose()) {
            true => format!("next: {check} says more, {check} --fix writes it\n"),
            false => format!("next: {check} says more\n"),
        };
        text
    }

    pub(super) fn changes(&self, changed: &ChangedAnswer) -> String {
        let mut text = String::new();
        if changed.numbers.is_empty() {
            text += "nothing in this system changes\n";
        }
        for one in changed.numbers.iter().take(8) {
            text += &format!("{}: {} instead of {}\n", one.name, one.after, one.before);
        }
        if changed.numbers.len() > 8 {
            text += &format!("and {} more numbers\n", changed.numbers.len() - 8);
        }
        let was = match changed.rates.before() {
            Some(rate) => self.solved_text(rate, &changed.mix_before, changed.difference_before.as_ref()),
            None => format!("none ({})", changed.mix_before),
        };
        text += &format!("the best mix goes from {was} to {} {}\n", shown(changed.rates.after()), self.unit);
        for one in &changed.moved {
            text += &format!("{}: {} -> {}\n", one.name, one.before, one.after);
        }
        text
    }

    /// A solution beside the plan, with what the twin says of it where that is something else.
    fn solved_text(&self, rate: f64, shares: &str, gap: Option<&GapAnswer>) -> String {
        let mut text = format!("{} {} ({shares})", short(rate), self.unit);
        text.extend(gap.map(|gap| format!("; {}", gap.doubt(self.unit))));
        text
    }

    /// A solution in words, or why there is none.
    pub(super) fn solution(&self, solved: Option<&SolvedAnswer>, refused: Option<&String>) -> Option<String> {
        match solved {
            Some(one) => {
                let rate = one.rates.optimal().unwrap_or(f64::NAN);
                Some(self.solved_text(rate, &shares_text(&one.shares), one.difference.as_ref()))
            }
            None => refused.cloned(),
        }
    }

    /// What a solution beside the plan is doubted for.
    pub(super) fn doubt_text(&self, gap: &GapAnswer) -> String {
        gap.doubt(self.unit)
    }

    /// What has to be said of solutions beside the plan where the plan is the lowest tail that was found.
    pub(super) fn without_tails(&self) -> &'static str {
        match self.goal {
            Goal::LowestP99 => "      the mix of least mean latency: a tail is sought for the plan alone\n",
            _ => "",
        }
    }
}
