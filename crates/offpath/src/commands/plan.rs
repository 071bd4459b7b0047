//! `offpath plan`: the best combination of a design's alternatives, on one page.

mod html;
mod report;

use super::Context;
use super::check::{gap_text, headline};
use crate::chart::{Scale, sparkline};
use crate::failure::{Failure, NEGATIVE};
use crate::options::SystemOptions;
use crate::output::{
    Entry, Format, OutputFile, Screen, fixed, percent as share_text, round, short, signed, system_line, tell,
};
use crate::progress::Progress;
use clap::Args;
use offpath::capacity::CapacityError;
use offpath::plan::advice::RULES;
use offpath::plan::check::Gap;
use offpath::plan::coded::Agreement;
use offpath::plan::confidence::{Origin, estimate, guessed, moved_by_guesses};
use offpath::plan::residual::CARDS;
use offpath::plan::study::{Ask, Changed, Next, Solved, Study, Sweep};
use offpath::plan::{
    Alone, Basis, Changes, Design, Influence, Mix, Objective, Plan, PlanError, Ranged, Rest, Setting,
};
use offpath::profile::Provenance;
use offpath::quantity::{Bytes, OpRate, Time};
use offpath::twin::{Interval, Seed};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath plan designs/kv-ycsb-c.toml
  offpath plan designs/kv-ycsb-c.toml --set soc.pcie_mtu=512B           and what that changes
  offpath plan designs/kv-ycsb-c.toml --goal lowest-p99 --load 40M/s
  offpath plan designs/replication.toml --parameter ratio=0.5 --format json
  offpath plan designs/kv-ycsb-c.toml --workload my/workloadb --curve
  offpath plan designs/kv-ycsb-c.toml --html plan.html                  the same as a page with charts";

/// Find the best combination of a design's offload alternatives, what binds it, and how sure that is
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design file; `offpath new` writes one
    design: PathBuf,
    #[command(flatten)]
    what_if: WhatIf,
    /// Draw latency over load, on the twin
    #[arg(long)]
    curve: bool,
    /// Also write a page with charts to this file, latency over load among them
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

/// What a user changes in a design from the command line.
#[derive(Args, Debug)]
pub struct WhatIf {
    /// Change a parameter of the design, as in `ratio=0.5` or `chunk=64KiB`; may be given several times
    #[arg(long, value_name = "NAME=VALUE", value_parser = parameter)]
    parameter: Vec<(String, String)>,
    /// Use another YCSB property file
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Plan for another device, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    device: Option<String>,
    /// What to seek: most-throughput, least-host-cpu or lowest-p99 [default: the design's]
    #[arg(long)]
    goal: Option<String>,
    /// The load at which it is sought, as in `40M/s`
    #[arg(long, value_name = "RATE")]
    load: Option<String>,
    /// Plan this scenario alone [default: each of the design's]
    #[arg(long, value_name = "NAME")]
    scenario: Option<String>,
    /// Plan from the step lists where the design names a coded application
    #[arg(long)]
    steps: bool,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `ratio=0.5` or `chunk=64KiB`")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

impl WhatIf {
    /// What the user changes in the design.
    pub fn changes(&self) -> Changes {
        Changes {
            parameters: self.parameter.iter().cloned().collect(),
            workload: self.workload.clone(),
            device: self.device.clone(),
            objective: self.goal.clone(),
            offered_load: self.load.clone(),
            steps: self.steps,
            scenario: self.scenario.clone(),
            ..Changes::default()
        }
    }

    /// Whether the design is another than its file says.
    pub fn is_any(&self) -> bool {
        !self.arguments().is_empty()
    }

    /// The same options for another command.
    pub fn arguments(&self) -> Vec<String> {
        let named = |name: &str, value: &Option<String>| {
            value.as_ref().map(|value| vec![name.to_string(), value.clone()]).unwrap_or_default()
        };
        let workload = self.workload.as_ref().map(|file| file.display().to_string());
        let parameters =
            self.parameter.iter().flat_map(|(name, value)| ["--parameter".into(), format!("{name}={value}")]);
        let mut all: Vec<String> = parameters.collect();
        all.extend(named("--workload", &workload));
        all.extend(named("--device", &self.device));
        all.extend(named("--goal", &self.goal));
        all.extend(named("--load", &self.load));
        all.extend(named("--scenario", &self.scenario));
        all.extend(self.steps.then(|| "--steps".to_string()));
        all
    }
}

/// The options of `plan` that other commands take too, as they are written on a command line.
fn arguments(options: &Options, system: &SystemOptions) -> String {
    let mut all = options.what_if.arguments();
    let mut add = |name: &str, values: &mut dyn Iterator<Item = String>| {
        values.for_each(|value| all.extend([name.to_string(), value]));
    };
    add("--set", &mut system.set.iter().cloned());
    add("--overlay", &mut system.overlay.iter().cloned());
    add("--testbed", &mut system.testbed.iter().cloned());
    add("--mode", &mut system.mode.iter().cloned());
    add("--profiles", &mut system.profiles.iter().map(|folder| folder.display().to_string()));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@".contains(c);
    let quoted = |one: &String| match one.chars().all(is_plain) {
        true => format!(" {one}"),
        false => format!(" '{}'", one.replace('\'', "'\\''")),
    };
    all.iter().map(quoted).collect()
}

/// Plans and prints: a design without scenarios once, else each scenario by itself.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let changes = options.what_if.changes();
    let whole = Design::load(&options.design, &changes).map_err(Failure::from)?;
    for warning in &whole.warnings {
        tell(&format!("warning: {warning}"));
    }
    for note in &whole.notes {
        tell(&format!("note: {note}"));
    }
    let setting = Setting {
        library: context.system.library()?,
        overlays: context.system.overlay.clone(),
        settings: context.system.set.clone(),
        testbed: context.system.testbed.clone(),
        mode: context.system.mode.clone(),
        mechanism: None,
    };
    if options.html.is_some() && !whole.scenarios.is_empty() {
        let first = &whole.scenarios[0];
        return Err(Failure::input(
            format!("a page shows one scenario, and `{}` has {}", whole.name, whole.scenarios.len()),
            format!("choose one, as in `--scenario \"{first}\"`"),
        ));
    }
    let file = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let parts: Vec<Option<String>> = match whole.scenarios.as_slice() {
        [] => vec![None],
        scenarios => scenarios.iter().cloned().map(Some).collect(),
    };
    let progress =
        Progress::endless("solving the design on the twin, and again with every uncertain number moved");
    let mut studies = Vec::new();
    for scenario in parts {
        let changes = match &scenario {
            Some(_) => Changes { scenario: scenario.clone(), ..changes.clone() },
            None => changes.clone(),
        };
        let ask = Ask {
            file: &options.design,
            changes: &changes,
            setting: &setting,
            seed: Seed::new(options.seed),
            curve: options.curve || options.html.is_some(),
        };
        let study = Study::of(&ask).map_err(|error| match &scenario {
            Some(name) => unplanned(error.wrap_err(format!("scenario `{name}`"))),
            None => unplanned(error),
        })?;
        studies.push((scenario, study));
    }
    drop(progress);
    let notes: BTreeSet<&String> = studies.iter().flat_map(|(_, study)| &study.notes).collect();
    notes.into_iter().for_each(|note| tell(&format!("note: {note}")));
    let page = |study| Page { study, arguments: arguments(options, &context.system) };
    if let (Some(file), [(_, study)]) = (file, studies.as_slice()) {
        file.write(html::page(&page(study)).html().as_bytes())?;
    }
    let pages = || studies.iter().map(|(scenario, study)| (scenario, page(study)));
    let text = match context.screen.format {
        Format::Json => match studies.as_slice() {
            [(None, study)] => context.screen.json(&page(study).report(options.curve))?,
            _ => {
                let pages: Vec<(&Option<String>, Page<'_>)> = pages().collect();
                let reports = pages.iter().map(|(name, page)| report::Scenario {
                    scenario: name.as_deref().unwrap_or(""),
                    plan: page.report(options.curve),
                });
                context.screen.json(&report::Scenarios::of(reports.collect()))?
            }
        },
        Format::Table | Format::Markdown => pages()
            .map(|(scenario, page)| {
                let head = scenario
                    .as_ref()
                    .map_or_else(String::new, |name| context.screen.heading(&format!("Scenario: {name}")));
                head + &page.text(&context.screen, options.curve)
            })
            .collect::<Vec<String>>()
            .join("\n"),
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A load that nothing carries, and limits that leave nothing, are answers; everything else is wrong input.
pub fn unplanned(error: miette::Report) -> Failure {
    match error.downcast_ref::<PlanError>() {
        Some(PlanError::Capacity(CapacityError::LoadTooHigh { .. }) | PlanError::NothingAllowed { .. }) => {
            Failure::report_of(NEGATIVE, error)
        }
        _ => Failure::from(error),
    }
}

/// From which share of its time on a station's queue takes longer to settle than a window lasts.
const NEAR: f64 = 0.95;

/// What is said of a mix that takes atomics.
const ATOMICS: &str = "atomics: no published row is about one, and how those that meet on one word wait for each other \
                       is not modelled: read rates and intervals as upper bounds";

/// What is said of few clients whose requests leave work behind.
const HELD: &str = "a client's next request waits until the work in the background of its last one is over";

/// Twice the standard deviation of the difference of two shares of 128 draws each.
const BY_CHANCE: f64 = 0.125;

/// What no model speaks of, whatever the design.
const NOT_MODELLED: [&str; 5] = [
    "very many connections",
    "pause frames",
    "atomics that meet on one word",
    "the time that a list takes to fill",
    "tails without evidence",
];

fn network_saved(design: &Design, bytes_per_request: f64) -> Option<f64> {
    design.network_baseline.map(|bytes| round((1.0 - bytes_per_request / bytes.get() as f64) * 100.0))
}

/// The heaviest of what a figure rests on; before them the facts that fix it, where little else moves it.
fn rests_text(rests: &[Rest]) -> String {
    let open = || rests.iter().filter(|rest| rest.weight > 0.0);
    let heavy: Vec<String> = open()
        .take(4)
        .filter(|rest| rest.weight >= 0.02)
        .map(|rest| format!("{} ({:.0}%, {})", rest.number, rest.weight * 100.0, rest.origin.name()))
        .collect();
    let is_fixed = open().map(|rest| rest.elasticity).sum::<f64>() < 0.1;
    let facts: Vec<String> = rests
        .iter()
        .filter(|rest| is_fixed && rest.weight == 0.0 && rest.elasticity >= 0.1)
        .take(4)
        .map(|rest| format!("{} ({})", rest.number, rest.origin.name()))
        .collect();
    match (facts.is_empty(), heavy.is_empty()) {
        (true, true) => "no number that moves it".to_string(),
        (true, false) => heavy.join(", "),
        (false, true) => facts.join(", "),
        (false, false) => {
            format!("{}; of the little that is uncertain: {}", facts.join(", "), heavy.join(", "))
        }
    }
}

/// What guesses decide of a figure; where they decide most of it and it still hardly moves, by how little.
fn guesses_text(rests: &[Rest]) -> String {
    let (share, moved) = (guessed(rests), moved_by_guesses(rests));
    let yours: f64 = rests.iter().filter(|rest| rest.origin == Origin::Yours).map(|rest| rest.weight).sum();
    let share_of_guesses = share_text(share, 0);
    let decided = match yours >= 0.005 {
        true => format!(
            "your estimates decide {}, guesses of the profile {share_of_guesses}",
            share_text(yours, 0)
        ),
        false => format!("guesses decide {share_of_guesses}"),
    };
    if share >= 0.5 && moved < 0.01 {
        return format!(
            "{decided} of the little that moves it (a tenth more of every guess: {})",
            share_text(moved, 2)
        );
    }
    format!("{decided} of it")
}

/// How rates are shown: requests, or bits of a request's payload.
#[derive(Clone, Copy)]
pub(super) struct Unit {
    bits: Option<f64>,
}

/// What more of a resource brings by what the design seeks.
fn brings(gain: f64, objective: &Objective) -> String {
    match objective {
        Objective::MostThroughput => signed(gain, 1),
        Objective::LeastHostCpu { .. } => format!("{} host processor time", signed(0.0 - gain, 1)),
        Objective::LowestP99 { .. } => format!("{} mean latency", signed(0.0 - gain, 1)),
    }
}

impl Unit {
    pub(super) fn of(design: &Design) -> Unit {
        Unit { bits: design.unit.map(|bytes: Bytes| bytes.get() as f64 * 8.0) }
    }
    pub(super) fn of_rate(self, per_second: f64) -> f64 {
        match self.bits {
            Some(bits) => per_second * bits / 1e9,
            None => per_second / 1e6,
        }
    }
    /// A rate by itself, in the unit that suits its size.
    pub(super) fn text(self, per_second: f64) -> String {
        match self.bits {
            Some(_) => format!("{} {}", short(self.of_rate(per_second)), self.name()),
            None => OpRate::per_second(per_second.round() as u64).to_string(),
        }
    }
    pub(super) fn name(self) -> &'static str {
        if self.bits.is_some() { "Gbit/s" } else { "M req/s" }
    }
}

fn shares_text(shares: &[(String, f64)]) -> String {
    let parts: Vec<String> =
        shares.iter().filter(|(_, s)| *s > 0.0005).map(|(n, s)| format!("{:.1}% {n}", s * 100.0)).collect();
    if parts.len() == 1 { format!("{} alone", shares[0].0) } else { parts.join(" + ") }
}

fn percent(after: f64, before: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

/// A study as it is shown.
struct Page<'p> {
    study: &'p Study,
    /// With what another command looks at the same.
    arguments: String,
}

impl Page<'_> {
    fn plan(&self) -> &Plan {
        &self.study.checked.plan
    }

    fn unit(&self) -> Unit {
        Unit::of(&self.study.design)
    }

    /// The 80% interval of a rate; empty where it is narrower than half a percent.
    fn range(&self, rate: &Ranged) -> String {
        let unit = self.unit();
        let (low, high) = (unit.of_rate(rate.range_80.0), unit.of_rate(rate.range_80.1));
        if high - low < 0.005 * unit.of_rate(rate.value) {
            String::new()
        } else {
            format!("{}-{}", short(low), short(high))
        }
    }

    /// What a mix is worth by the design's goal.
    fn worth_text(&self, worth: f64) -> String {
        match self.study.design.objective {
            Objective::MostThroughput => {
                format!("{} {}", short(self.unit().of_rate(worth)), self.unit().name())
            }
            _ => Time::from_ps((worth * 1e12) as u64).to_string(),
        }
    }

    /// The 80% interval of the best mix's worth, where it is wider than half a percent.
    fn worth_range(&self) -> String {
        let Ranged { value, range_80: (low, high), .. } = self.plan().worth;
        if high - low < 0.005 * value || high == low {
            return String::new();
        }
        // At a load the shares decide what of it is whose: chosen again they give another worth.
        format!(" (80% interval at these shares {} to {})", self.worth_text(low), self.worth_text(high))
    }

    /// What a loaded twin carried; a dash where its interval is wider than itself.
    fn carried_text(&self, carried: Interval) -> String {
        carried.result().map_or_else(|| "-".to_string(), |mean| short(self.unit().of_rate(mean)))
    }

    fn goal(&self) -> String {
        let rate = |load: f64| OpRate::per_second(load as u64).to_string();
        match self.study.design.objective {
            Objective::MostThroughput => "most throughput".to_string(),
            Objective::LeastHostCpu { load } => format!("least host processor time at {}", rate(load)),
            Objective::LowestP99 { load } => format!("lowest p99 at {}", rate(load)),
        }
    }

    fn constraints(&self) -> String {
        let mut all = Vec::new();
        if let Some(share) = self.study.design.host_cpu_share {
            all.push(format!("host processor at most {:.0}%", share * 100.0));
        }
        if let Some(bound) = self.study.design.latency_bound {
            all.push(format!("latency at most {bound}"));
        }
        if all.is_empty() { String::new() } else { format!("; {}", all.join(", ")) }
    }

    fn best_single(&self) -> Option<&Alone> {
        self.plan()
            .alternatives
            .iter()
            .filter(|one| one.mixed)
            .max_by(|a, b| a.rate.value.total_cmp(&b.rate.value))
    }

    fn text(&self, screen: &Screen, curve: bool) -> String {
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
    fn whose(&self) -> Option<String> {
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
    fn answer(&self) -> String {
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
        let rival = self.rival_set();
        let mut text = format!(
            "answer: {}: {} {}{range}{tail}; basis: {}{}; the card's best set in {:.0}% of draws{rival}{confirmed}{settled}\n",
            shares_text(&plan.optimal.shares),
            short(unit.of_rate(plan.optimal.rate.value)),
            unit.name(),
            plan.recommendation.basis.name(),
            self.whose().map_or_else(String::new, |whose| format!(" ({whose})")),
            plan.recommendation.best_in * 100.0
        );
        if self.has_atomics() {
            text += &format!("{ATOMICS}\n");
        }
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

    fn row(&self, one: &Alone) -> Vec<Entry> {
        let name = match &one.device {
            Some(device) => format!("{} ({device})", one.name),
            None => one.name.clone(),
        };
        vec![
            Entry::Text(name),
            Entry::Number(short(self.unit().of_rate(one.rate.value))),
            Entry::Text(self.range(&one.rate)),
            Entry::Number(short(one.latency_s.value * 1e6)),
            Entry::Text(one.binding.clone()),
            Entry::Text(one.reason.clone()),
            Entry::Text(one.basis.name().to_string()),
        ]
    }

    fn mix_row(&self, mix: &Mix) -> Vec<Entry> {
        vec![
            Entry::Strong(mix.name.clone()),
            Entry::Number(short(self.unit().of_rate(mix.rate.value))),
            Entry::Text(self.range(&mix.rate)),
            Entry::Number(short(mix.latency_s * 1e6)),
            Entry::Text(shares_text(&mix.shares)),
        ]
    }

    fn mixes(&self, screen: &Screen) -> String {
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
    fn bounds(&self) -> impl Iterator<Item = &offpath::plan::planner::Bound> {
        self.plan().optimal.bounds.iter().filter(|bound| !bound.is_load)
    }

    /// The station of one machine that the loaded twin kept busy for the greatest share of its time.
    fn busiest(&self) -> Option<(&String, f64)> {
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
    fn rival_set(&self) -> String {
        let plan = self.plan();
        let more =
            plan.recommendation.best_sets.first().filter(|(set, _)| *set != plan.optimal.composition());
        more.map_or_else(String::new, |(set, share)| {
            format!(", {} in {:.0}%", set.join(" + "), share * 100.0)
        })
    }

    /// What the alternatives do that the best mix takes, as the design describes them.
    fn taken(&self) -> String {
        let plan = self.plan();
        let described = plan.optimal.shares.iter().filter_map(|(name, _)| {
            let one = plan.alternatives.iter().find(|one| one.name == *name)?;
            (!one.description.is_empty()).then(|| format!("{name}: {}", one.description))
        });
        let described: Vec<String> = described.collect();
        if described.is_empty() { String::new() } else { format!("takes {}\n", described.join(". ")) }
    }

    /// Why the best mix beats greedy, where it does.
    fn why_better(&self, gain: f64) -> String {
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

    fn twin(&self) -> String {
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
    fn lowest_p99(&self) -> Option<String> {
        let settled = &self.study.checked.settled;
        let is_told = settled.gap.as_ref().is_none_or(|gap| gap.blind.is_none());
        let is_sought = matches!(self.study.design.objective, Objective::LowestP99 { .. });
        let found = settled.loaded.latencies.quantile(0.99).filter(|_| is_sought && is_told)?;
        Some(short(found.as_us()))
    }

    /// What the design's author may not have meant, and what no figure says by itself.
    fn notes(&self) -> Vec<String> {
        let study = self.study;
        let atomics = self.has_atomics().then(|| ATOMICS.to_string());
        let said = study.design.warnings.iter().chain(&study.design.notes).chain(&study.notes).cloned();
        atomics.into_iter().chain(said).collect()
    }

    fn has_background(&self) -> bool {
        self.plan().alternatives.iter().any(|one| one.demand.background > 0.0)
    }

    /// Whether the best mix takes an alternative with an atomic.
    fn has_atomics(&self) -> bool {
        let taken =
            |name: &str| self.plan().optimal.shares.iter().any(|(own, share)| own == name && *share > 0.0);
        self.study.without_evidence.iter().any(|name| taken(name))
    }

    /// By what draws tell which mix is the best, where that is not what was sought: none runs on the twin.
    fn best_by(&self) -> &'static str {
        match self.study.design.objective {
            Objective::LowestP99 { .. } => " by mean latency",
            _ => "",
        }
    }

    /// Which part of the mix rests on the user's estimates that no draw moves, in words; nothing where that is little.
    fn undrawn(&self) -> String {
        let yours = |rest: &&Rest| rest.origin == Origin::Yours && !rest.is_drawn;
        let held: f64 =
            self.plan().recommendation.rests_on.iter().filter(yours).map(|rest| rest.weight).sum();
        match held >= 0.05 {
            true => format!(
                ", your estimates without an interval held as they are ({} of it)",
                share_text(held, 0)
            ),
            false => String::new(),
        }
    }

    /// Why no advice was measured, where none was.
    fn unmeasured(&self) -> Option<&str> {
        if let Some(why) = &self.study.advised.postponed {
            return Some(why);
        }
        let gap = self.study.advised.unconfirmed.as_ref()?;
        Some(match (gap.blind.is_some(), gap.is_unclear()) {
            (true, _) => "the twin confirms nothing",
            (_, true) => "the twin does not tell",
            _ => "twin and plan differ",
        })
    }

    /// What gains in the mix that the design runs, in a line each.
    fn advice(&self, screen: &Screen) -> String {
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
        // What was found for another design than the file's is no change of the file.
        match arguments.is_empty() {
            true if !found.iter().all(|one| one.may_lose()) => {
                text + &format!(
                    "next: offpath check {file} says more, offpath check {file} --fix writes it\n"
                )
            }
            _ => text + &format!("next: offpath check {file}{arguments} says more\n"),
        }
    }

    fn changes(&self, changed: &Changed) -> String {
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
    fn solved_text(&self, one: &Solved) -> String {
        let unit = self.unit();
        let mut text =
            format!("{} {} ({})", short(unit.of_rate(one.rate)), unit.name(), shares_text(&one.shares));
        text.extend(one.gap.as_ref().map(|gap| format!("; {}", self.doubt_text(gap))));
        text
    }

    /// What has to be said of solutions beside the plan where the plan is the lowest tail that was found.
    fn without_tails(&self) -> &'static str {
        match self.study.design.objective {
            Objective::LowestP99 { .. } => {
                "      the mix of least mean latency: a tail is sought for the plan alone\n"
            }
            _ => "",
        }
    }

    /// What the twin says of a solution that it does not confirm, in a few words.
    fn doubt_text(&self, gap: &Gap) -> String {
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
    fn moved(&self, changed: &Changed) -> Vec<(String, String, String)> {
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

    /// The alternatives whose latency is known less well than the rate beside it.
    fn less_known_latencies(&self) -> String {
        let mut by: BTreeMap<Basis, Vec<&str>> = BTreeMap::new();
        for one in &self.plan().alternatives {
            if one.latency_basis > one.basis.max(Basis::Predicted) {
                by.entry(one.latency_basis).or_default().push(&one.name);
            }
        }
        let each: Vec<String> = by
            .into_iter()
            .map(|(basis, names)| format!("{} for {}", basis.name(), names.join(", ")))
            .collect();
        if each.is_empty() {
            return String::new();
        }
        format!("latencies are known less well than the rates: {}\n", each.join("; "))
    }

    fn confidence(&self) -> String {
        let plan = self.plan();
        let sure = &plan.recommendation;
        let count = |basis: Basis| plan.alternatives.iter().filter(|one| one.basis == basis).count();
        let counted = [Basis::Fitted, Basis::Predicted, Basis::Weak, Basis::YourEstimate, Basis::OrderOnly]
            .map(|basis| (count(basis), basis.name()));
        let counted: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let numbers = self.study.known.values();
        let guesses = numbers.clone().filter(|known| known.is_guess()).count();
        let of = |provenance: Provenance| numbers.clone().filter(|known| **known == provenance).count();
        let (fitted, set) = (of(Provenance::Fitted), of(Provenance::Set));
        let yours = if set > 0 { format!(", {set} set by you") } else { String::new() };
        let mut text = format!(
            "basis: {} of {} alternatives; model parameters: {fitted} fitted, {guesses} guessed (assumed or carried \
             over), {} from data sheets and measurements{yours}\n",
            counted.join(", "),
            plan.alternatives.len(),
            numbers.len() - fitted - guesses - set
        );
        text += &self.less_known_latencies();
        text += &format!(
            "optimal rests on: {}{}\n",
            rests_text(&sure.rests_on),
            match sure.rests_on.is_empty() {
                true => String::new(),
                false => format!("; {}", guesses_text(&sure.rests_on)),
            }
        );
        if let Some(code) = &self.study.code {
            let Agreement { application, busy, latency } = code;
            text += &format!(
                "code: demands observed from the implemented {application}, whatever its step lists say; these {} {}% of \
                 a station's time ({} of {}) and {}% of latency ({})\n",
                if code.differs() { "DIFFER from it by" } else { "agree with it within" },
                short(busy.0 * 100.0),
                busy.1,
                busy.2,
                short(latency.0 * 100.0),
                latency.1
            );
        }
        let others: Vec<String> = sure
            .best_sets
            .iter()
            .filter(|(set, share)| *set != plan.optimal.composition() && *share >= 0.005)
            .take(2)
            .map(|(set, share)| format!("{} ({:.0}%)", set.join(" + "), share * 100.0))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            // A reader who takes the best set of most draws takes another one.
            let is_more = sure.best_sets.first().is_some_and(|(own, _)| *own != plan.optimal.composition());
            format!(
                "; {} {}",
                if is_more { "more often best is" } else { "otherwise most often" },
                others.join(", ")
            )
        };
        let held = self.undrawn();
        let set = plan.optimal.composition();
        let told = (sure.carried_in * sure.draws as f64).round() as usize;
        let draws = match self.study.design.objective {
            _ if told == sure.draws => format!("{told} joint draws"),
            Objective::MostThroughput => {
                format!("the {told} of {} joint draws that the design can run with", sure.draws)
            }
            _ => format!("the {told} of {} joint draws that carry the load", sure.draws),
        };
        // How many draws each mechanism gets is a choice, so that a reader who leans to one sees what it says.
        let by_mechanism = sure.best_in_by_mechanism.map_or_else(String::new, |(base, open)| {
            let rivals: Vec<&str> = self.study.variants.iter().map(|one| one.overlay.as_str()).collect();
            // Draws that chance alone tells apart say nothing of the mechanisms.
            if (base - open).abs() < BY_CHANCE {
                return String::new();
            }
            format!(
                " ({:.0}% of those of the base, {:.0}% of those under {})",
                base * 100.0,
                open * 100.0,
                rivals.join(" and ")
            )
        });
        text += &format!(
            "recommendation: {} is the best set{}, none better by more than 0.1%, in {:.0}% of {draws}{by_mechanism}{others}{held}\n",
            set.join(" + "),
            self.best_by(),
            sure.best_in * 100.0,
        );
        if sure.carried_in < 1.0 && self.study.design.objective != Objective::MostThroughput {
            text += &format!(
                "load: carried in {:.0}% of the draws, and intervals are of these\n",
                sure.carried_in * 100.0
            );
        }
        let card = &self.study.system.device;
        if !CARDS.contains(&card.as_str()) {
            text += &format!(
                "intervals: widened by what predictions for {} were wrong by; no published row is about {card}\n",
                CARDS.join(" and ")
            );
        }
        let planned = plan.influences.iter().filter(|i| i.planned);
        let moves: Vec<String> = planned
            .clone()
            .take(2)
            .map(|i| {
                let at = |worth: Option<f64>| {
                    let none = match self.study.design.objective {
                        Objective::MostThroughput => "no answer",
                        _ => "a load not carried",
                    };
                    worth
                        .map_or_else(|| none.to_string(), |worth| format!("about {}", self.worth_text(worth)))
                };
                format!("{} at {} / {} gives {} / {}", i.number, i.low, i.high, at(i.at_low), at(i.at_high))
            })
            .collect();
        text += &format!(
            "sensitivity: {}\n",
            if moves.is_empty() {
                "no number with an interval moves it".to_string()
            } else {
                moves.join("; ")
            }
        );
        for (i, change) in planned.clone().filter_map(|i| i.changes.as_ref().map(|c| (i, c))) {
            text += &format!("turning point: somewhere within its interval {} makes it {change}\n", i.number);
        }
        for variant in &self.study.variants {
            let gives = match &variant.solved {
                Ok(one) => self.solved_text(one),
                Err(refused) => format!("no plan: {refused}"),
            };
            text += &format!("variant {}: {} -> {gives}\n", variant.overlay, variant.description);
        }
        if !self.study.variants.is_empty() {
            text += self.without_tails();
        }
        text += &format!("not modelled: {}\n", NOT_MODELLED.join(", "));
        text += &format!("next: {}\n", self.next_measurement());
        text
    }

    fn next_measurement(&self) -> String {
        match &self.study.next {
            Next::Narrow { number, weight } => {
                format!(
                    "measure what narrows your `{number}`, which decides {} of the mix",
                    share_text(*weight, 0)
                )
            }
            Next::Undrawn { number, weight, is_set: true } => format!(
                "your `{number}` decides {} of the mix and was not drawn: `--set` takes one value, so try both \
                 ends, or give it `low` and `high` in a copy of the profile",
                share_text(*weight, 0)
            ),
            Next::Undrawn { number, weight, is_set: false } => format!(
                "give your `{number}`, which decides {} of the mix, `low` and `high`: it was not drawn",
                share_text(*weight, 0)
            ),
            Next::Number(Influence { number, low, high, note, .. }) => {
                let colon = if note.is_empty() { "" } else { ": " };
                format!("measure what narrows `{number}` (now {low} to {high}){colon}{note}")
            }
            Next::Bound(name) => format!("measure what {name} really carries: it binds the mix"),
            Next::Mix => "run the mix on the card at this load".to_string(),
        }
    }

    fn sweep_table(&self, sweep: &Sweep, screen: &Screen) -> String {
        let unit = self.unit();
        let solved = || sweep.rows.iter().filter_map(|(value, row)| Some((value, row.as_ref().ok()?)));
        let Some((_, first)) = solved().next() else { return String::new() };
        let mut header: Vec<&str> = vec![&sweep.parameter];
        header.extend(first.alternatives.iter().map(|(name, ..)| name.as_str()));
        header.extend(first.mixes.iter().map(|(name, _)| name.as_str()));
        header.extend(["greedy", "optimal", "mix"]);
        if self.study.design.network_baseline.is_some() {
            header.push("network saved");
        }
        let rate = |rate: f64| Entry::Number(short(unit.of_rate(rate)));
        let rows = solved()
            .map(|(value, row)| {
                let mut cells = vec![Entry::Text(self.study.design.parameter_text(&sweep.parameter, *value))];
                cells.extend(row.alternatives.iter().map(|(_, alone, _)| rate(*alone)));
                cells.extend(row.mixes.iter().map(|(_, mix)| rate(*mix)));
                cells.extend([rate(row.greedy), rate(row.rate), Entry::Text(shares_text(&row.shares))]);
                cells.extend(
                    network_saved(&self.study.design, row.network_bytes)
                        .map(|saved| Entry::Number(format!("{}%", fixed(saved, 0)))),
                );
                cells
            })
            .collect();
        let mut text = screen.table(&header, rows) + self.without_tails();
        for (value, row) in &sweep.rows {
            if let Err(refused) = row {
                let value = self.study.design.parameter_text(&sweep.parameter, *value);
                text += &format!("{value}: no plan: {refused}\n");
            }
        }
        for (value, row) in solved() {
            if let Some(gap) = &row.gap {
                let value = self.study.design.parameter_text(&sweep.parameter, *value);
                text += &format!("optimal at {value}: {}\n", self.doubt_text(gap));
            }
        }
        let unsettled = solved().filter(|(_, row)| !row.settled);
        let unsettled: Vec<String> =
            unsettled.map(|(value, _)| self.study.design.parameter_text(&sweep.parameter, *value)).collect();
        if !unsettled.is_empty() {
            text += &format!("not settled: {}\n", unsettled.join(", "));
        }
        text
    }

    fn clients_table(&self, screen: &Screen) -> String {
        let counts: Vec<String> = self
            .study
            .design
            .clients
            .iter()
            .map(|n| format!("{n} client{}", if *n == 1 { "" } else { "s" }))
            .collect();
        let mut header = vec![self.unit().name()];
        header.extend(counts.iter().map(String::as_str));
        let rows = self
            .study
            .clients
            .iter()
            .map(|(name, runs)| {
                let mut cells = vec![Entry::Text(name.clone())];
                cells.extend(runs.iter().map(|carried| Entry::Number(self.carried_text(*carried))));
                cells
            })
            .collect();
        let mut text = screen.table(&header, rows);
        for ratio in self.client_ratios() {
            text += &format!(
                "{} over {}: {:.2} to {:.2}; published {} to {} ({}); saturated {:.2}\n",
                ratio.of,
                ratio.over,
                ratio.low,
                ratio.high,
                ratio.published_low,
                ratio.published_high,
                ratio.source,
                ratio.saturated
            );
        }
        text
    }

    /// The twin's ratios over the numbers of clients beside the published ones, and the ratio that the
    /// plan gives where all stations that bind are full.
    fn client_ratios(&self) -> Vec<Ratio> {
        // What is published speaks of the design and the system as they are shipped.
        let is_changed = self.study.changed.as_ref().is_some_and(|changed| !changed.numbers.is_empty());
        if self.study.design.is_varied || is_changed {
            return Vec::new();
        }
        let runs = |name: &str| self.study.clients.iter().find(|(n, _)| n == name).map(|(_, runs)| runs);
        let plan = self.plan();
        let full = |name: &str| {
            let alone = plan.alternatives.iter().find(|one| one.name == name).map(|one| one.rate.value);
            alone.or_else(|| plan.mixes.iter().find(|mix| mix.name == name).map(|mix| mix.rate.value))
        };
        self.study
            .design
            .published
            .iter()
            .filter_map(|one| {
                let ratios = runs(&one.of)?
                    .iter()
                    .zip(runs(&one.over)?)
                    .filter_map(|(a, b)| Some(a.result()? / b.result()?));
                Some(Ratio {
                    of: one.of.clone(),
                    over: one.over.clone(),
                    low: round(ratios.clone().fold(f64::INFINITY, f64::min)),
                    high: round(ratios.fold(f64::NEG_INFINITY, f64::max)),
                    published_low: one.low,
                    published_high: one.high,
                    source: one.source.clone(),
                    saturated: round(full(&one.of)? / full(&one.over)?),
                })
            })
            .collect()
    }

    fn curve_table(&self, screen: &Screen) -> String {
        let unit = self.unit();
        let p99: Vec<f64> = self
            .study
            .curve
            .iter()
            .map(|p| p.loaded.latencies.quantile(0.99).map_or(0.0, Time::as_us))
            .collect();
        let rows = self
            .study
            .curve
            .iter()
            .map(|point| {
                let quantile = |share| short(point.loaded.latencies.quantile(share).map_or(0.0, Time::as_us));
                vec![
                    Entry::Number(short(unit.of_rate(point.offered_per_s))),
                    Entry::Number(self.carried_text(point.loaded.throughput)),
                    Entry::Number(quantile(0.5)),
                    Entry::Number(quantile(0.99)),
                ]
            })
            .collect();
        let mut text = screen.table(&["offered", unit.name(), "p50 us", "p99 us"], rows);
        text += &format!("p99 over load  {}\n", sparkline(&p99, Scale::Linear, 3));
        text
    }
}

/// A ratio of throughputs over the numbers of clients.
#[derive(Serialize)]
struct Ratio {
    of: String,
    over: String,
    low: f64,
    high: f64,
    published_low: f64,
    published_high: f64,
    source: String,
    saturated: f64,
}

fn gb(bytes: Bytes) -> String {
    format!("{} GB", short(bytes.get() as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath::profile::Provenance;

    #[test]
    fn guesses_that_decide_little_are_said_to() {
        let rest = |elasticity: f64, origin: Origin| Rest {
            number: "soc.lookup".into(),
            origin,
            elasticity,
            weight: 1.0,
            moves: 0.0,
            is_drawn: false,
            own_evidence: false,
        };
        let guess = Origin::Profile(Provenance::Assumed);
        assert_eq!(guesses_text(&[rest(0.9, guess)]), "guesses decide 100% of it");
        assert_eq!(
            guesses_text(&[rest(0.02, guess)]),
            "guesses decide 100% of the little that moves it (a tenth more of every guess: 0.20%)"
        );
        assert_eq!(
            guesses_text(&[rest(0.02, Origin::Profile(Provenance::Fitted))]),
            "guesses decide 0% of it"
        );
    }
}
