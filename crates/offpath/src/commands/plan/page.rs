//! What `offpath plan` prints: the answer, the alternatives, the mixes, what the twin says.

use super::super::check::{gap_text, headline};
use super::confidence::gb;
use crate::output::{Screen, TableCell, fixed, round, short, signed, system_line};
use offpath::plan::advice::RULES;
use offpath::plan::check::Gap;
use offpath::plan::confidence::estimate;
use offpath::plan::study::{Changed, Solved, Study};
use offpath::plan::{Alone, Basis, Design, Mix, Objective, Plan, Ranged, Rest};
use offpath::quantity::{Bytes, OpRate, Time};
use offpath::twin::Interval;

/// From which share of its time on a station's queue takes longer to settle than a window lasts.
const NEAR: f64 = 0.95;

/// What is said of few clients whose requests leave work behind.
const HELD: &str = "a client's next request waits until the work in the background of its last one is over";

pub(super) fn network_saved(design: &Design, bytes_per_request: f64) -> Option<f64> {
    design.network_baseline.map(|bytes| round((1.0 - bytes_per_request / bytes.get() as f64) * 100.0))
}

/// How rates are shown: requests, or bits of a request's payload.
#[derive(Clone, Copy)]
pub(crate) struct Unit {
    pub(super) bits: Option<f64>,
}

/// What more of a resource brings by what the design seeks.
pub(super) fn brings(gain: f64, objective: &Objective) -> String {
    match objective {
        Objective::MostThroughput => signed(gain, 1),
        Objective::LeastHostCpu { .. } => format!("{} host processor time", signed(0.0 - gain, 1)),
        Objective::LowestP99 { .. } => format!("{} mean latency", signed(0.0 - gain, 1)),
    }
}

impl Unit {
    pub(crate) fn of(design: &Design) -> Unit {
        Unit { bits: design.unit.map(|bytes: Bytes| bytes.get() as f64 * 8.0) }
    }

    pub(crate) fn of_rate(self, per_second: f64) -> f64 {
        match self.bits {
            Some(bits) => per_second * bits / 1e9,
            None => per_second / 1e6,
        }
    }

    /// A rate by itself, in the unit that suits its size.
    pub(crate) fn text(self, per_second: f64) -> String {
        match self.bits {
            Some(_) => format!("{} {}", short(self.of_rate(per_second)), self.name()),
            None => OpRate::per_second(per_second.round() as u64).to_string(),
        }
    }

    pub(crate) fn name(self) -> &'static str {
        if self.bits.is_some() { "Gbit/s" } else { "M req/s" }
    }
}

pub(super) fn shares_text(shares: &[(String, f64)]) -> String {
    let parts: Vec<String> =
        shares.iter().filter(|(_, s)| *s > 0.0005).map(|(n, s)| format!("{:.1}% {n}", s * 100.0)).collect();
    if parts.len() == 1 { format!("{} alone", shares[0].0) } else { parts.join(" + ") }
}

pub(super) fn percent(after: f64, before: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// A study as it is shown.
pub(super) struct Page<'p> {
    pub(super) study: &'p Study,
    /// With what another command looks at the same.
    pub(super) arguments: String,
}

impl Page<'_> {
    pub(super) fn plan(&self) -> &Plan {
        &self.study.checked.plan
    }

    pub(super) fn unit(&self) -> Unit {
        Unit::of(&self.study.design)
    }

    /// The 80% interval of a rate; empty where it is narrower than half a percent.
    pub(super) fn range(&self, rate: &Ranged) -> String {
        let unit = self.unit();
        let (low, high) = (unit.of_rate(rate.range_80.0), unit.of_rate(rate.range_80.1));
        if high - low < 0.005 * unit.of_rate(rate.value) {
            String::new()
        } else {
            format!("{}-{}", short(low), short(high))
        }
    }

    /// What a mix is worth by the design's goal.
    pub(super) fn worth_text(&self, worth: f64) -> String {
        match self.study.design.objective {
            Objective::MostThroughput => {
                format!("{} {}", short(self.unit().of_rate(worth)), self.unit().name())
            }
            _ => Time::from_seconds(worth).to_string(),
        }
    }

    /// The 80% interval of the best mix's worth, where it is wider than half a percent.
    pub(super) fn worth_range(&self) -> String {
        let Ranged { value, range_80: (low, high), .. } = self.plan().worth;
        if high - low < 0.005 * value || high == low {
            return String::new();
        }
        // At a load the shares decide what of it is whose: chosen again they give another worth.
        format!(" (80% interval at these shares {} to {})", self.worth_text(low), self.worth_text(high))
    }

    /// What a loaded twin carried; a dash where its interval is wider than itself.
    pub(super) fn carried_text(&self, carried: Interval) -> String {
        carried.result().map_or_else(|| "-".to_string(), |mean| short(self.unit().of_rate(mean)))
    }

    pub(super) fn goal(&self) -> String {
        let rate = |load: f64| OpRate::per_second(load as u64).to_string();
        match self.study.design.objective {
            Objective::MostThroughput => "most throughput".to_string(),
            Objective::LeastHostCpu { load } => format!("least host processor time at {}", rate(load)),
            Objective::LowestP99 { load } => format!("lowest p99 at {}", rate(load)),
        }
    }

    pub(super) fn constraints(&self) -> String {
        let mut all = Vec::new();
        if let Some(share) = self.study.design.host_cpu_share {
            all.push(format!("host processor at most {:.0}%", share * 100.0));
        }
        if let Some(bound) = self.study.design.latency_bound {
            all.push(format!("latency at most {bound}"));
        }
        if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
    }

    pub(super) fn best_single(&self) -> Option<&Alone> {
        self.plan()
            .alternatives
            .iter()
            .filter(|one| one.mixed)
            .max_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
    }

    pub(super) fn text(&self, screen: &Screen, curve: bool) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let mut text = format!("{} on {}\n", self.study.design.name, system_line(&self.study.system));
        let workload = &self.study.design.workload;
        let workload = if workload.is_empty() { String::new() } else { format!("{workload}; ") };
        text += &format!("{workload}goal: {}{}\n", self.goal(), self.constraints());
        if let Some(cache) = &plan.cache {
            text += &format!(
                "cache: {} of {} memory hold {}the hottest {:.0}% of `{}`: {:.1}% of requests hit\n",
                cache.budget,
                cache.at,
                match cache.whole.get() {
                    0 => String::new(),
                    _ => format!("{} of objects kept whole and ", gb(cache.whole)),
                },
                100.0 * cache.entries as f64 / cache.of.max(1) as f64,
                cache.object,
                cache.hit_ratio * 100.0
            );
        }
        text += &self.answer();
        text += &screen.heading("Alternatives, each alone");
        let rows = plan.alternatives.iter().map(|one| self.row(one)).collect();
        text += &screen
            .table(&["name", unit.name(), "80% interval", "latency us", "binds", "why", "basis"], rows);
        let mut meanings: Vec<String> =
            plan.alternatives.iter().map(|one| format!("{}: {}", one.binding, one.meaning)).collect();
        meanings.sort();
        meanings.dedup();
        text += &format!("{}\n", meanings.join("; "));
        text += &screen.heading("Mix");
        text += &self.mixes(screen);
        text += &self.twin();
        text += &self.advice(screen);
        if let Some(changed) = &self.study.changed {
            text += &screen.heading("What-if");
            text += &self.changes(changed);
        }
        text += &screen.heading("Confidence");
        text += &self.confidence();
        if let Some(sweep) = &self.study.sweep {
            text += &screen.heading(&format!("By {}", sweep.parameter));
            text += &self.sweep_table(sweep, screen);
        }
        if !self.study.clients.is_empty() {
            text += &screen.heading("Few clients, one request each, on the twin");
            text += &self.clients_table(screen);
            if self.has_background() {
                text += &format!("{HELD}\n");
            }
        }
        if curve {
            text +=
                &screen.heading("Latency over load of the mix, on the twin (tails: no evidence backs them)");
            text += &self.curve_table(screen);
        }
        text
    }

    /// Which number of the design makes the answer an estimate, and through which alternative where the mix itself
    /// hardly rests on it.
    pub(super) fn whose(&self) -> Option<String> {
        let plan = self.plan();
        let yours = |rests: &[Rest]| estimate(rests).map(|rest| rest.number.clone());
        let through = |(name, share): &(String, f64)| {
            let one = plan.alternatives.iter().find(|one| one.name == *name)?;
            let is_decided = *share >= 0.05 && one.basis == Basis::YourEstimate;
            is_decided
                .then(|| yours(&one.rests_on))
                .flatten()
                .map(|number| format!("{number}, through {name}"))
        };
        let is_yours = plan.recommendation.basis == Basis::YourEstimate;
        let found = || {
            let of_mix = yours(&plan.recommendation.rests_on);
            of_mix.or_else(|| plan.optimal.shares.iter().find_map(through))
        };
        is_yours.then(found).flatten()
    }

    /// The answer: the mix to run, what the twin says of it, and what it is worth beside a plain NIC.
    pub(super) fn answer(&self) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let range = self.range(&plan.optimal.rate);
        let range = match (range.is_empty(), self.study.design.objective) {
            (true, _) => String::new(),
            (_, Objective::MostThroughput) => {
                let reached = plan.recommendation.shares_carry_in * 100.0;
                format!(" (80% interval {range}; this or more in {reached:.0}% of draws)")
            }
            _ => format!(" (80% interval {range})"),
        };
        let tail = self.lowest_p99().map_or_else(String::new, |p99| {
            format!("; p99 {p99} us on the twin, the lowest that was found, no interval is known of a tail")
        });
        let gap = self.study.checked.settled.gap.as_ref();
        let confirmed = match gap.map(|gap| (gap.blind.is_some(), gap.is_unclear())) {
            None => "",
            Some((false, false)) => "; TWIN AND PLAN DIFFER",
            Some(_) => "; NOT CONFIRMED by the twin",
        };
        let settled = if self.study.checked.settled.has_settled() { "" } else { "; NOT SETTLED" };
        let variant = self.variant_set();
        let mut text = format!(
            "answer: {}: {} {}{range}{tail}; basis: {}{}; the card's best set in {:.0}% of draws{variant}{confirmed}{settled}\n",
            shares_text(&plan.optimal.shares),
            short(unit.of_rate(plan.optimal.rate.value)),
            unit.name(),
            plan.recommendation.basis.name(),
            self.whose().map_or_else(String::new, |whose| format!(" ({whose})")),
            plan.recommendation.best_in * 100.0
        );
        self.unpublished().iter().for_each(|said| text += &format!("{said}\n"));
        if let Some(load) = self.study.design.objective.load() {
            text += &format!(
                "these very shares carry {} {} in {:.0}% of {} draws widened by past errors{}{}\n",
                short(unit.of_rate(load)),
                unit.name(),
                plan.recommendation.shares_carry_in * 100.0,
                plan.recommendation.draws,
                self.undrawn(),
                match plan.recommendation.shares_carry_in < 0.8 {
                    true => ": measure on the card before you fix them, or plan for a greater load",
                    false => "",
                }
            );
        }
        if self.study.design.objective == Objective::MostThroughput {
            let refused = 1.0 - plan.recommendation.carried_in;
            if refused > 0.0 {
                text += &format!(
                    "REFUSED in {:.0}% of the draws: the design cannot run with what its numbers may be there, and \
                     all intervals are of the others\n",
                    refused * 100.0
                );
            }
            for over in &plan.recommendation.over {
                let change = |ratio: f64| (ratio - 1.0) * 100.0;
                text += &format!(
                    "{}: {} on {} reaches {} {}; the card's mix is {} (80% interval {} to {}), faster in {:.0}% of \
                     {} draws widened by past errors\n",
                    if over.is_plain { "plain NIC" } else { "beside" },
                    over.name,
                    over.device,
                    short(unit.of_rate(plan.optimal.rate.value / over.ratio.value)),
                    unit.name(),
                    signed(change(over.ratio.value), 1),
                    signed(change(over.ratio.range_80.0), 1),
                    signed(change(over.ratio.range_80.1), 1),
                    over.faster_in * 100.0,
                    plan.recommendation.draws
                );
            }
        }
        text
    }

    pub(super) fn row(&self, one: &Alone) -> Vec<TableCell> {
        let name = match &one.device {
            Some(device) => format!("{} ({device})", one.name),
            None => one.name.clone(),
        };
        vec![
            TableCell::Text(name),
            TableCell::Number(short(self.unit().of_rate(one.rate.value))),
            TableCell::Text(self.range(&one.rate)),
            TableCell::Number(short(one.latency_s.value * 1e6)),
            TableCell::Text(one.binding.clone()),
            TableCell::Text(one.reason.clone()),
            TableCell::Text(one.basis.name().to_string()),
        ]
    }

    pub(super) fn mix_row(&self, mix: &Mix) -> Vec<TableCell> {
        vec![
            TableCell::Strong(mix.name.clone()),
            TableCell::Number(short(self.unit().of_rate(mix.rate.value))),
            TableCell::Text(self.range(&mix.rate)),
            TableCell::Number(short(mix.latency_s * 1e6)),
            TableCell::Text(shares_text(&mix.shares)),
        ]
    }

    pub(super) fn mixes(&self, screen: &Screen) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let mut rows = vec![self.mix_row(&plan.optimal), self.mix_row(&plan.greedy)];
        rows.extend(plan.mixes.iter().map(|mix| self.mix_row(mix)));
        let mut text = screen.table(&["mix", unit.name(), "80% interval", "latency us", "shares"], rows);
        if self.study.design.objective == Objective::MostThroughput {
            let gain = percent(plan.optimal.rate.value, plan.greedy.rate.value);
            // What is one alternative alone is not compared with itself.
            let other = |one: &&Alone| !matches!(&plan.optimal.shares[..], [(only, _)] if *only == one.name);
            let single = self.best_single().filter(other).map_or_else(String::new, |one| {
                let gain = percent(plan.optimal.rate.value, one.rate.value);
                let slower = if gain < 0.0 { ", which is slower" } else { "" };
                format!(", {} over {} alone{slower}", signed(gain, 1), one.name)
            });
            let over = match gain <= -0.05 {
                true => format!("as good as greedy to {:.1}% and quicker", -gain),
                false => format!("{} over greedy", signed(gain, 1)),
            };
            text += &format!("optimal: {over}{single}{}\n", self.why_better(gain));
        } else if matches!(self.study.design.objective, Objective::LeastHostCpu { .. }) {
            text += &format!(
                "optimal: {} of host processor time a request{}, greedy {}\n",
                self.worth_text(plan.worth.value),
                self.worth_range(),
                self.worth_text(plan.greedy.host_cpu_s)
            );
        } else {
            text += &format!(
                "optimal: {} of mean unloaded latency{}; no interval is known of a tail\n",
                self.worth_text(plan.worth.value),
                self.worth_range()
            );
        }
        text += &self.taken();
        if !plan.optimal.unique {
            text += "tie: other mixes are as good; this is the one with the least mean latency\n";
        }
        let at_load = self.study.design.objective != Objective::MostThroughput;
        if let Some((station, share)) = self.busiest().filter(|_| at_load) {
            text += &format!("busiest at this load: {station}, {:.0}% of its time\n", share * 100.0);
            if share > NEAR {
                text += "near capacity: queues there grow for longer than the twin looks, so its percentiles are \
                         too low\n";
            }
        }
        let bounds: Vec<String> = self
            .bounds()
            .map(|bound| match bound.gain_percent {
                Some(gain) => {
                    let brings = brings(gain, &self.study.design.objective);
                    format!("{} ({}; 10% more of it: {brings})", bound.name, bound.meaning)
                }
                None => format!("{} ({})", bound.name, bound.meaning),
            })
            .collect();
        let together = bounds.len() > 1
            && plan.optimal.bounds.iter().all(|bound| bound.gain_percent.is_some_and(|gain| gain < 0.05));
        let together = if together { "; more of one of them alone brings nothing" } else { "" };
        if !bounds.is_empty() {
            text += &format!("binds: {}{together}\n", bounds.join(", "));
        }
        if let Some(saved) = network_saved(&self.study.design, plan.optimal.network_bytes) {
            text += &format!(
                "network: the mix sends {}% fewer payload bytes than plain copies would\n",
                fixed(saved, 0)
            );
        }
        text
    }

    /// What binds the best mix, beside the load that was asked for.
    pub(super) fn bounds(&self) -> impl Iterator<Item = &offpath::plan::planner::Bound> {
        self.plan().optimal.bounds.iter().filter(|bound| !bound.is_load)
    }

    /// The station of one machine that the loaded twin kept busy for the greatest share of its time.
    pub(super) fn busiest(&self) -> Option<(&String, f64)> {
        let settled = &self.study.checked.settled;
        // A run that confirms nothing carried another load.
        if settled.gap.as_ref().is_some_and(|gap| gap.blind.is_some()) {
            return None;
        }
        let all = settled.loaded.fullest.iter();
        all.map(|(name, (_, share))| (name, *share)).max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// The set of alternatives that is the best in more draws than the recommended one, where there is one: a reader who
    /// takes the best set of most draws takes that.
    pub(super) fn variant_set(&self) -> String {
        let plan = self.plan();
        let more =
            plan.recommendation.best_sets.first().filter(|(set, _)| *set != plan.optimal.composition());
        more.map_or_else(String::new, |(set, share)| {
            format!(", {} in {:.0}%", set.join(" + "), share * 100.0)
        })
    }

    /// What the alternatives do that the best mix takes, as the design describes them.
    pub(super) fn taken(&self) -> String {
        let plan = self.plan();
        let described = plan.optimal.shares.iter().filter_map(|(name, _)| {
            let one = plan.alternatives.iter().find(|one| one.name == *name)?;
            (!one.description.is_empty()).then(|| format!("{name}: {}", one.description))
        });
        let described: Vec<String> = described.collect();
        if described.is_empty() { String::new() } else { format!("takes {}\n", described.join(". ")) }
    }

    /// Why the best mix beats greedy, where it does.
    pub(super) fn why_better(&self, gain: f64) -> String {
        let plan = self.plan();
        if gain < 0.05 {
            return "; greedy's order is as good here".to_string();
        }
        let first = plan.greedy.shares.first().map_or("", |(name, _)| name);
        let fills = plan.greedy_order.first().map_or(first, |name| name);
        // It is filled as if it were alone.
        let spent = plan.alternatives.iter().find(|one| one.name == fills).map_or("", |one| &one.binding);
        let bounds: Vec<&str> = self.bounds().map(|bound| bound.name.as_str()).collect();
        match &bounds[..] {
            [] => format!("; greedy fills {fills} first and spends {spent} on it"),
            bounds => {
                format!(
                    "; greedy fills {fills} first and spends {spent} on it, the best mix fills {}",
                    bounds.join(" and ")
                )
            }
        }
    }

    pub(super) fn twin(&self) -> String {
        let (loaded, unit) = (&self.study.checked.settled.loaded, self.unit());
        let quantile = |share| loaded.latencies.quantile(share).map_or(0.0, Time::as_us);
        let settled = &self.study.checked.settled;
        let how = match (settled.load, self.study.design.objective) {
            (None, _) => format!("{} requests in flight", loaded.in_flight),
            (Some(_), Objective::MostThroughput) => "Poisson arrivals at what the limit leaves".to_string(),
            _ => "Poisson arrivals at the load".to_string(),
        };
        let rounds = if settled.rounds > 1 {
            format!(
                "; solved {} times as slots were held longer under load, first {}",
                settled.rounds,
                short(unit.of_rate(settled.first_rate))
            )
        } else {
            String::new()
        };
        let gap = settled.gap.as_ref();
        let said = gap.map(|gap| gap_text(gap, &|rate| short(unit.of_rate(rate)), unit.name()) + "\n");
        if let (Some(_), Some(said)) = (gap.and_then(|gap| gap.blind.as_ref()), &said) {
            // A figure beside it would be read as a confirmation.
            return said.clone();
        }
        let mut text = match loaded.throughput.result() {
            Some(mean) => format!(
                "twin: {} {} (95% {}-{}), p50 {} us, p99 {} us with {how}{rounds}\n      validates the queueing model only; hardware accuracy rests on the evidence\n",
                short(unit.of_rate(mean)),
                unit.name(),
                short(unit.of_rate(loaded.throughput.low)),
                short(unit.of_rate(loaded.throughput.high)),
                short(quantile(0.5)),
                short(quantile(0.99)),
            ),
            None => format!(
                "twin: no figure: its 95% interval is wider than its mean ({} to {} {}), since too few requests \
                 of this mix fit its window, so that it confirms nothing\n",
                short(unit.of_rate(loaded.throughput.low)),
                short(unit.of_rate(loaded.throughput.high)),
                unit.name()
            ),
        };
        if !settled.has_settled() {
            text += &format!(
                "NOT SETTLED: after {} rounds the slots are still held {:.1}% longer or shorter than was solved \
                 for; read the plan as no better than that\n",
                settled.rounds,
                settled.moved * 100.0
            );
        }
        if loaded.throughput.result().is_some() {
            text += &said.unwrap_or_default();
        }
        text
    }

    /// The 99th percentile of the mix in us, where the lowest was sought and the twin tells.
    pub(super) fn lowest_p99(&self) -> Option<String> {
        let settled = &self.study.checked.settled;
        let is_told = settled.gap.as_ref().is_none_or(|gap| gap.blind.is_none());
        let is_sought = matches!(self.study.design.objective, Objective::LowestP99 { .. });
        let found = settled.loaded.latencies.quantile(0.99).filter(|_| is_sought && is_told)?;
        Some(short(found.as_us()))
    }

    /// What the design's author may not have meant, and what no figure says by itself.
    pub(super) fn notes(&self) -> Vec<String> {
        let study = self.study;
        let said = study.design.warnings.iter().chain(&study.design.notes).chain(&study.notes).cloned();
        self.unpublished().into_iter().chain(said).collect()
    }

    pub(super) fn has_background(&self) -> bool {
        self.plan().alternatives.iter().any(|one| one.demand.background > 0.0)
    }

    /// By what draws tell which mix is the best, where that is not what was sought: none runs on the twin.
    pub(super) fn best_by(&self) -> &'static str {
        match self.study.design.objective {
            Objective::LowestP99 { .. } => " by mean latency",
            _ => "",
        }
    }

    /// What gains in the mix that the design runs, in a line each.
    pub(super) fn advice(&self, screen: &Screen) -> String {
        let found = &self.study.advised.advice;
        if let Some(why) = self.unmeasured() {
            return format!("advice: not measured, since {why}\n");
        }
        if found.is_empty() {
            return format!(
                "advice: no rule improves mix `{}` ({} tried)\n",
                self.study.advised.runs,
                RULES.len()
            );
        }
        let mut text = screen.heading("Advice, by what the twin gains");
        for one in found {
            let gain = headline(one, self.study.advised.objective, self.unit());
            text += &format!("{}: {gain}: {}\n", one.rule, one.remedy);
        }
        let (file, arguments) = (&self.study.design.source.0, &self.arguments);
        // What was found for another design than the file's is not a change of the file.
        match arguments.is_empty() {
            true if !found.iter().all(|one| one.may_lose()) => {
                text + &format!(
                    "next: offpath check {file} says more, offpath check {file} --fix writes it\n"
                )
            }
            _ => text + &format!("next: offpath check {file}{arguments} says more\n"),
        }
    }

    pub(super) fn changes(&self, changed: &Changed) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let mut text = String::new();
        if changed.numbers.is_empty() {
            text += "nothing in this system changes\n";
        }
        for (name, before, after) in changed.numbers.iter().take(8) {
            text += &format!("{name}: {after} instead of {before}\n");
        }
        if changed.numbers.len() > 8 {
            text += &format!("and {} more numbers\n", changed.numbers.len() - 8);
        }
        let was = match &changed.before {
            Ok(one) => self.solved_text(one),
            Err(refused) => format!("none ({refused})"),
        };
        text += &format!(
            "the best mix goes from {was} to {} {}\n",
            short(unit.of_rate(plan.optimal.rate.value)),
            unit.name()
        );
        for (name, before, after) in self.moved(changed) {
            text += &format!("{name}: {before} -> {after}\n");
        }
        text
    }

    /// A solution beside the plan, with what the twin says of it where that is something else.
    pub(super) fn solved_text(&self, one: &Solved) -> String {
        let unit = self.unit();
        let mut text =
            format!("{} {} ({})", short(unit.of_rate(one.rate)), unit.name(), shares_text(&one.shares));
        text.extend(one.gap.as_ref().map(|gap| format!("; {}", self.doubt_text(gap))));
        text
    }

    /// What has to be said of solutions beside the plan where the plan is the lowest tail that was found.
    pub(super) fn without_tails(&self) -> &'static str {
        match self.study.design.objective {
            Objective::LowestP99 { .. } => {
                "      the mix of least mean latency: a tail is sought for the plan alone\n"
            }
            _ => "",
        }
    }

    /// What the twin says of a solution that it does not confirm, in a few words.
    pub(super) fn doubt_text(&self, gap: &Gap) -> String {
        match gap.blind {
            Some(_) => "the twin confirms nothing of it".to_string(),
            None if gap.is_unclear() => "the twin does not tell".to_string(),
            None => format!(
                "the twin carries {} {} of it",
                short(self.unit().of_rate(gap.carried_per_s)),
                self.unit().name()
            ),
        }
    }

    /// The alternatives that a change moves by more than half a percent or that another station binds.
    pub(super) fn moved(&self, changed: &Changed) -> Vec<(String, String, String)> {
        let unit = self.unit();
        let shown = |rate: f64, binds: &str| format!("{} ({binds})", short(unit.of_rate(rate)));
        let before = changed.before.as_ref().map_or(&[][..], |one| &one.alternatives);
        let moved = self.plan().alternatives.iter().zip(before).filter(|(now, (_, was, binding))| {
            (now.rate.value / was - 1.0).abs() > 5e-3 || now.binding != *binding
        });
        moved
            .map(|(now, (_, was, binding))| {
                (now.name.clone(), shown(*was, binding), shown(now.rate.value, &now.binding))
            })
            .collect()
    }
}
