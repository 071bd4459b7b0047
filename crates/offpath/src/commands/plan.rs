//! `offpath plan`: the best combination of a design's alternatives, on one page.

mod html;

use super::Context;
use super::check::{AdviceReport, headline};
use crate::chart::{Scale, sparkline};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Entry, Format, SCHEMA_VERSION, Screen, emit, round, short, system_line, write_page};
use clap::Args;
use offpath::plan::advice::{self, Advised, Bench, Depth, RULES};
use offpath::plan::check::{self, Checked, Point};
use offpath::plan::coded::{self, Agreement};
use offpath::plan::observe::Loaded;
use offpath::plan::planner::{Alone, Basis, Mix, Plan, Ranged};
use offpath::plan::{Changes, Design, Objective, Setting, prepare};
use offpath::profile::{Provenance, System};
use offpath::quantity::{Bytes, OpRate, Time};
use offpath::twin::Seed;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
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
    /// Plan from the step lists where the design names a coded application
    #[arg(long)]
    steps: bool,
    /// Draw latency over load, on the twin
    #[arg(long)]
    curve: bool,
    /// Also write a page with charts to this file, latency over load among them
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn parameter(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as `ratio=0.5` or `chunk=64KiB`")?;
    Ok((name.trim().to_string(), value.trim().to_string()))
}

impl Options {
    /// What the user changes in the design.
    fn changes(&self) -> Changes {
        Changes {
            parameters: self.parameter.iter().cloned().collect(),
            workload: self.workload.clone(),
            device: self.device.clone(),
            objective: self.goal.clone(),
            offered_load: self.load.clone(),
            steps: self.steps,
            ..Changes::default()
        }
    }
}

/// Plans and prints.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let changes = options.changes();
    let design = Design::load(&options.design, &changes).map_err(Failure::from)?;
    for warning in &design.warnings {
        eprintln!("warning: {warning}");
    }
    let setting = Setting {
        library: context.system.library()?,
        overlays: context.system.overlay.clone(),
        settings: context.system.set.clone(),
        testbed: context.system.testbed.clone(),
        mode: context.system.mode.clone(),
    };
    let seed = Seed::new(options.seed);
    let ready = prepare(&design, &setting).map_err(Failure::from)?;
    let checked = check::plan_and_check(&design, &ready, seed).map_err(unplanned)?;
    let main = ready.iter().find(|one| one.alternative.device.is_none());
    let system = main.map_or_else(|| ready[0].router.system(), |one| one.router.system()).clone();
    let changed = what_changed(&design, &setting, &checked.plan, &system)?;
    let sweep = parameter_sweep(options, &design, &setting)?;
    let clients = if design.clients.is_empty() {
        Vec::new()
    } else {
        check::few_clients(&design, &ready, &checked.plan, seed).map_err(Failure::twin)?
    };
    let curve = if options.curve || options.html.is_some() {
        check::curve(&design, &ready, &checked.plan, seed).map_err(Failure::twin)?
    } else {
        Vec::new()
    };
    let rivals = rivals(&design, &setting, &system)?;
    let code = coded::agreement(&design, &ready, &checked.plan).map_err(Failure::from)?;
    let directory = options.design.parent().unwrap_or(Path::new("."));
    let bench = Bench::new(&design.source.0, directory, &changes, &setting, seed);
    let advised = advice::advise(&bench, &design.source.1, Depth::Promising).map_err(Failure::from)?;
    let points = if options.curve { curve.clone() } else { Vec::new() };
    let page = Page {
        design: &design,
        system: &system,
        checked: &checked,
        changed,
        sweep,
        clients,
        curve: points,
        rivals,
        code,
        advised,
    };
    if let Some(file) = &options.html {
        write_page(file, &html::page(&page, &curve))?;
    }
    let text = match context.screen.format {
        Format::Json => context.screen.json(&page.report())?,
        Format::Table | Format::Markdown => page.text(&context.screen),
    };
    emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// A load that nothing carries is an answer; everything else is wrong input.
fn unplanned(error: miette::Report) -> Failure {
    match error.downcast_ref::<offpath::plan::PlanError>() {
        Some(offpath::plan::PlanError::Capacity(offpath::capacity::CapacityError::LoadTooHigh {
            ..
        })) => Failure::report_of(NEGATIVE, error),
        _ => Failure::from(error),
    }
}

/// One line of what a what-if changed.
#[derive(Serialize)]
struct ChangeReport {
    name: String,
    before: String,
    after: String,
}

#[derive(Serialize)]
struct ChangedReport {
    numbers: Vec<ChangeReport>,
    optimal_before: f64,
    optimal_after: f64,
    mix_before: String,
    moved: Vec<ChangeReport>,
}

/// What overlays and settings change, in the system and in the plan.
fn what_changed(
    design: &Design,
    setting: &Setting,
    plan: &Plan,
    system: &System,
) -> Result<Option<ChangedReport>, Failure> {
    if setting.overlays.is_empty() && setting.settings.is_empty() {
        return Ok(None);
    }
    let plain = Setting { overlays: vec![], settings: vec![], ..setting.clone() };
    let ready = prepare(design, &plain).map_err(Failure::from)?;
    let folds: Vec<_> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
    let before = offpath::plan::plan(design, &ready, &folds).map_err(Failure::from)?;
    let old = setting_system(design, &plain)?;
    let numbers = system
        .numbers
        .iter()
        .filter_map(|(name, number)| {
            let was = old.numbers.get(name)?;
            (was.value != number.value).then(|| ChangeReport {
                name: name.clone(),
                before: was.value.to_string(),
                after: number.value.to_string(),
            })
        })
        .collect();
    let scale = Unit::of(design);
    let moved = plan
        .alternatives
        .iter()
        .zip(&before.alternatives)
        .filter(|(now, was)| {
            (now.rate.value / was.rate.value - 1.0).abs() > 5e-3 || now.binding != was.binding
        })
        .map(|(now, was)| ChangeReport {
            name: now.name.clone(),
            before: format!("{} ({})", short(scale.of_rate(was.rate.value)), was.binding),
            after: format!("{} ({})", short(scale.of_rate(now.rate.value)), now.binding),
        })
        .collect();
    Ok(Some(ChangedReport {
        numbers,
        optimal_before: round(scale.of_rate(before.optimal.rate.value)),
        optimal_after: round(scale.of_rate(plan.optimal.rate.value)),
        mix_before: shares_text(&before.optimal),
        moved,
    }))
}

fn setting_system(design: &Design, setting: &Setting) -> Result<System, Failure> {
    setting.system(design, &design.device).map_err(Failure::from)
}

#[derive(Serialize)]
struct RivalReport {
    overlay: String,
    description: String,
    optimal: f64,
    mix: String,
    alternatives: BTreeMap<String, f64>,
}

/// The plan under each rival mechanism that the device names.
fn rivals(design: &Design, setting: &Setting, system: &System) -> Result<Vec<RivalReport>, Failure> {
    let scale = Unit::of(design);
    let mut reports = Vec::new();
    for (overlay, description) in &system.rivals {
        if setting.overlays.contains(overlay) {
            continue;
        }
        let mut overlays = setting.overlays.clone();
        overlays.push(overlay.clone());
        let rival = Setting { overlays, ..setting.clone() };
        let ready = prepare(design, &rival).map_err(Failure::from)?;
        let folds: Vec<_> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let Ok(plan) = offpath::plan::plan(design, &ready, &folds) else { continue };
        reports.push(RivalReport {
            overlay: overlay.clone(),
            description: description.clone(),
            optimal: round(scale.of_rate(plan.optimal.rate.value)),
            mix: shares_text(&plan.optimal),
            alternatives: plan
                .alternatives
                .iter()
                .map(|one| (one.name.clone(), round(scale.of_rate(one.rate.value))))
                .collect(),
        });
    }
    Ok(reports)
}

#[derive(Serialize)]
struct SweepReport {
    parameter: String,
    rows: Vec<SweepRow>,
}

#[derive(Serialize)]
struct SweepRow {
    value: f64,
    alternatives: BTreeMap<String, f64>,
    mixes: BTreeMap<String, f64>,
    greedy: f64,
    optimal: f64,
    optimal_mix: String,
    network_saved_percent: Option<f64>,
}

/// The plan at each value of the parameter that the design varies.
fn parameter_sweep(
    options: &Options,
    design: &Design,
    setting: &Setting,
) -> Result<Option<SweepReport>, Failure> {
    let Some((parameter, values)) = &design.sweep else { return Ok(None) };
    let scale = Unit::of(design);
    let mut rows = Vec::new();
    for value in values {
        let mut changes = options.changes();
        changes.parameters.insert(parameter.clone(), design.parameter_text(parameter, *value));
        let design = Design::load(&options.design, &changes).map_err(Failure::from)?;
        let ready = prepare(&design, setting).map_err(Failure::from)?;
        let folds: Vec<_> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let plan = offpath::plan::plan(&design, &ready, &folds).map_err(unplanned)?;
        let named = |mixes: &[Mix]| {
            mixes.iter().map(|mix| (mix.name.clone(), round(scale.of_rate(mix.rate.value)))).collect()
        };
        rows.push(SweepRow {
            value: *value,
            alternatives: plan
                .alternatives
                .iter()
                .map(|one| (one.name.clone(), round(scale.of_rate(one.rate.value))))
                .collect(),
            mixes: named(&plan.mixes),
            greedy: round(scale.of_rate(plan.greedy.rate.value)),
            optimal: round(scale.of_rate(plan.optimal.rate.value)),
            optimal_mix: shares_text(&plan.optimal),
            network_saved_percent: network_saved(&design, &plan.optimal),
        });
    }
    Ok(Some(SweepReport { parameter: parameter.clone(), rows }))
}

fn network_saved(design: &Design, mix: &Mix) -> Option<f64> {
    design.network_baseline.map(|bytes| round((1.0 - mix.network_bytes / bytes.get() as f64) * 100.0))
}

/// How rates are shown: requests, or bits of a request's payload.
#[derive(Clone, Copy)]
struct Unit {
    bits: Option<f64>,
}

impl Unit {
    fn of(design: &Design) -> Unit {
        Unit { bits: design.unit.map(|bytes: Bytes| bytes.get() as f64 * 8.0) }
    }
    fn of_rate(self, per_second: f64) -> f64 {
        match self.bits {
            Some(bits) => per_second * bits / 1e9,
            None => per_second / 1e6,
        }
    }
    fn name(self) -> &'static str {
        if self.bits.is_some() { "Gbit/s" } else { "M req/s" }
    }
}

fn shares_text(mix: &Mix) -> String {
    let parts: Vec<String> = mix
        .shares
        .iter()
        .filter(|(_, s)| *s > 0.0005)
        .map(|(n, s)| format!("{:.1}% {n}", s * 100.0))
        .collect();
    if parts.len() == 1 { format!("{} alone", mix.shares[0].0) } else { parts.join(" + ") }
}

fn percent(after: f64, before: f64) -> f64 {
    (after / before - 1.0) * 100.0
}

struct Page<'p> {
    design: &'p Design,
    system: &'p System,
    checked: &'p Checked,
    changed: Option<ChangedReport>,
    sweep: Option<SweepReport>,
    clients: Vec<(String, Vec<Loaded>)>,
    curve: Vec<Point>,
    rivals: Vec<RivalReport>,
    /// How far the step lists are from the code that was planned.
    code: Option<Agreement>,
    advised: Advised,
}

impl Page<'_> {
    fn plan(&self) -> &Plan {
        &self.checked.plan
    }

    fn unit(&self) -> Unit {
        Unit::of(self.design)
    }

    fn range(&self, rate: &Ranged) -> String {
        let unit = self.unit();
        let (low, high) = (unit.of_rate(rate.low), unit.of_rate(rate.high));
        if high - low < 0.005 * unit.of_rate(rate.value) {
            String::new()
        } else {
            format!("{}-{}", short(low), short(high))
        }
    }

    fn goal(&self) -> String {
        let rate = |load: f64| OpRate::per_second(load as u64).to_string();
        match self.design.objective {
            Objective::MostThroughput => "most throughput".to_string(),
            Objective::LeastHostCpu { load } => format!("least host processor time at {}", rate(load)),
            Objective::LowestP99 { load } => format!("lowest p99 at {}", rate(load)),
        }
    }

    fn constraints(&self) -> String {
        let mut all = Vec::new();
        if let Some(share) = self.design.host_cpu_share {
            all.push(format!("host processor at most {:.0}%", share * 100.0));
        }
        if let Some(bound) = self.design.latency_bound {
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

    fn text(&self, screen: &Screen) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let mut text = format!("{} on {}\n", self.design.name, system_line(self.system));
        text += &format!("{}; goal: {}{}\n", self.design.workload, self.goal(), self.constraints());
        if let Some(cache) = &plan.cache {
            text += &format!(
                "cache: {} of {} memory hold {} of objects kept whole and the hottest {:.0}% of `{}`: {:.1}% of requests hit\n",
                cache.budget,
                cache.at,
                gb(cache.whole),
                100.0 * cache.entries as f64 / cache.of.max(1) as f64,
                cache.object,
                cache.hit_ratio * 100.0
            );
        }
        text += &screen.heading("Alternatives, each alone");
        let rows = plan.alternatives.iter().map(|one| self.row(one)).collect();
        text += &screen.table(&["name", unit.name(), "range", "latency us", "binds", "why", "basis"], rows);
        text += &screen.heading("Mix");
        text += &self.mixes(screen);
        text += &self.twin();
        text += &self.advice(screen);
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
        }
        if !self.curve.is_empty() {
            text +=
                &screen.heading("Latency over load of the mix, on the twin (tails: no evidence backs them)");
            text += &self.curve_table(screen);
        }
        wrapped(&text)
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
            Entry::Number(short(one.latency_s * 1e6)),
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
            Entry::Text(shares_text(mix)),
        ]
    }

    fn mixes(&self, screen: &Screen) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let mut rows = vec![self.mix_row(&plan.optimal), self.mix_row(&plan.greedy)];
        rows.extend(plan.mixes.iter().map(|mix| self.mix_row(mix)));
        let mut text = screen.table(&["mix", unit.name(), "range", "latency us", "shares"], rows);
        if self.design.objective == Objective::MostThroughput {
            let gain = percent(plan.optimal.rate.value, plan.greedy.rate.value);
            let single = self.best_single().map_or_else(String::new, |one| {
                format!(", {:+.1}% over {} alone", percent(plan.optimal.rate.value, one.rate.value), one.name)
            });
            text += &format!("optimal: {gain:+.1}% over greedy{single}{}\n", self.why_better(gain));
        } else if matches!(self.design.objective, Objective::LeastHostCpu { .. }) {
            text += &format!(
                "optimal: {} of host processor time a request, greedy {}\n",
                Time::from_ps((plan.optimal.host_cpu_s * 1e12) as u64),
                Time::from_ps((plan.greedy.host_cpu_s * 1e12) as u64)
            );
        }
        let at_load = self.design.objective != Objective::MostThroughput;
        if let Some((station, share)) = self.busiest().filter(|_| at_load) {
            text += &format!("busiest at this load: {station}, {:.0}% of its time\n", share * 100.0);
        }
        let bounds: Vec<String> = self
            .bounds()
            .map(|bound| match bound.gain_percent {
                Some(gain) => format!("{} ({}; 10% more of it: {gain:+.1}%)", bound.name, bound.meaning),
                None => format!("{} ({})", bound.name, bound.meaning),
            })
            .collect();
        let together = plan.optimal.bounds.len() > 1
            && plan.optimal.bounds.iter().all(|bound| bound.gain_percent.is_some_and(|gain| gain < 0.05));
        let together = if together { "; only more of all of them together helps" } else { "" };
        if !bounds.is_empty() {
            text += &format!("binds: {}{together}\n", bounds.join(", "));
        }
        if let Some(saved) = network_saved(self.design, &plan.optimal) {
            text +=
                &format!("network: the mix sends {saved:.0}% fewer payload bytes than plain copies would\n");
        }
        text
    }

    /// What binds the best mix, beside the load that was asked for.
    fn bounds(&self) -> impl Iterator<Item = &offpath::plan::planner::Bound> {
        self.plan().optimal.bounds.iter().filter(|bound| !bound.is_load)
    }

    /// The station that the loaded twin kept busy for the greatest share of its time.
    fn busiest(&self) -> Option<(&String, f64)> {
        let all = self.checked.loaded.utilization.iter().map(|(name, share)| (name, *share));
        all.max_by(|a, b| a.1.total_cmp(&b.1))
    }

    /// Why the best mix beats greedy, where it does.
    fn why_better(&self, gain: f64) -> String {
        let plan = self.plan();
        if gain < 0.05 {
            return "; greedy's order is as good here".to_string();
        }
        let first = plan.greedy.shares.first().map_or("", |(name, _)| name);
        let spent = plan.greedy.bounds.first().map_or("", |bound| &bound.name);
        let fills = plan.greedy_order.first().map_or(first, |name| name);
        format!(
            "; greedy fills {fills} first and spends {spent} on it, the best mix weighs {} against each other",
            plan.optimal.bounds.iter().map(|bound| bound.name.as_str()).collect::<Vec<_>>().join(" and ")
        )
    }

    fn twin(&self) -> String {
        let (loaded, unit) = (&self.checked.loaded, self.unit());
        let quantile = |share| loaded.latencies.quantile(share).map_or(0.0, Time::as_us);
        let how = match self.design.objective {
            Objective::MostThroughput => format!("{} requests under way", loaded.in_flight),
            _ => "Poisson arrivals at the load".to_string(),
        };
        let rounds = if self.checked.rounds > 1 {
            format!(
                "; solved {} times as holds grew under load, first {}",
                self.checked.rounds,
                short(unit.of_rate(self.checked.first_rate))
            )
        } else {
            String::new()
        };
        let mut text = format!(
            "twin: {} {} (95% {}-{}), p50 {} us, p99 {} us with {how}{rounds}\n      it tests queueing, not the card\n",
            short(unit.of_rate(loaded.throughput.mean)),
            unit.name(),
            short(unit.of_rate(loaded.throughput.low)),
            short(unit.of_rate(loaded.throughput.high)),
            short(quantile(0.5)),
            short(quantile(0.99)),
        );
        if let Some((shares, tail)) = &self.checked.tail {
            let shares: Vec<String> = shares
                .iter()
                .filter(|(_, share)| *share > 0.0005)
                .map(|(name, share)| format!("{:.1}% {name}", share * 100.0))
                .collect();
            text += &format!(
                "lowest p99 found: {} us with {}\n",
                short(tail.latencies.quantile(0.99).map_or(0.0, Time::as_us)),
                shares.join(" + ")
            );
        }
        text
    }

    /// What gains in the mix that the design runs, in a line each.
    fn advice(&self, screen: &Screen) -> String {
        let found = &self.advised.advice;
        if found.is_empty() {
            return format!(
                "advice: none of {} rules finds what gains in mix `{}`\n",
                RULES.len(),
                self.advised.runs
            );
        }
        let mut text = screen.heading("Advice, by what the twin gains");
        for one in found {
            let gain = headline(one, self.advised.objective);
            text += &format!("{}: {gain}: {}\n", one.rule, one.remedy);
        }
        text + &format!(
            "next: offpath check {0} says more, offpath check {0} --fix writes it\n",
            self.design.source.0
        )
    }

    fn changes(&self, changed: &ChangedReport) -> String {
        let unit = self.unit();
        let mut text = String::new();
        if changed.numbers.is_empty() {
            text += "nothing in this system changes\n";
        }
        for number in changed.numbers.iter().take(8) {
            text += &format!("{}: {} instead of {}\n", number.name, number.after, number.before);
        }
        if changed.numbers.len() > 8 {
            text += &format!("and {} more numbers\n", changed.numbers.len() - 8);
        }
        text += &format!(
            "the best mix goes from {} {} ({}) to {} {}\n",
            short(changed.optimal_before),
            unit.name(),
            changed.mix_before,
            short(changed.optimal_after),
            unit.name()
        );
        for one in &changed.moved {
            text += &format!("{}: {} -> {}\n", one.name, one.before, one.after);
        }
        text
    }

    fn confidence(&self) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        let count = |basis: Basis| plan.alternatives.iter().filter(|one| one.basis == basis).count();
        let provenance =
            |kind: Provenance| self.system.numbers.values().filter(|n| n.provenance == kind).count();
        let mut text = format!(
            "known: {} alternatives fitted, {} predicted, {} weak, {} order only; of the system's numbers {} are fitted, {} assumed\n",
            count(Basis::Fitted),
            count(Basis::Predicted),
            count(Basis::Weak),
            count(Basis::OrderOnly),
            provenance(Provenance::Fitted),
            provenance(Provenance::Assumed)
        );
        if let Some(Agreement { application, busy, latency }) = &self.code {
            text += &format!(
                "code: demands observed from the coded {application}; its step lists agree within {}% of a \
                 station's time ({} of {}) and {}% of latency ({})\n",
                short(busy.0 * 100.0),
                busy.1,
                busy.2,
                short(latency.0 * 100.0),
                latency.1
            );
        }
        let widths: Vec<String> = plan
            .influences
            .iter()
            .take(2)
            .map(|i| {
                let (low, high) = (unit.of_rate(i.rate_low), unit.of_rate(i.rate_high));
                format!(
                    "{} ({} to {}) moves the mix to {} or {}",
                    i.number,
                    i.low,
                    i.high,
                    short(low),
                    short(high)
                )
            })
            .collect();
        text += &format!(
            "width: {}\n",
            if widths.is_empty() {
                "no number that is known as a range moves it".to_string()
            } else {
                widths.join("; ")
            }
        );
        match plan.influences.iter().find_map(|i| i.changes.as_ref().map(|c| (i, c))) {
            Some((i, change)) => text += &format!("recommendation: {} would make it {change}\n", i.number),
            None => text += "recommendation: no number within its range changes which alternatives to mix\n",
        }
        for rival in &self.rivals {
            text += &format!(
                "rival {}: {} -> {} {} ({})\n",
                rival.overlay,
                rival.description,
                short(rival.optimal),
                unit.name(),
                rival.mix
            );
        }
        text += "not modelled: very many connections, pause frames, tails without evidence\n";
        if self.design.objective == Objective::MostThroughput {
            text += &self.plain_nic();
        }
        text += &format!("next: {}\n", self.next_measurement());
        text
    }

    fn plain_nic(&self) -> String {
        let (plan, unit) = (self.plan(), self.unit());
        plan.alternatives
            .iter()
            .filter_map(|one| {
                let device = one.device.as_ref()?;
                Some(format!(
                    "plain NIC: {device} reaches {} {} with {}; the card's mix is {:+.1}%\n",
                    short(unit.of_rate(one.rate.value)),
                    unit.name(),
                    one.description,
                    percent(plan.optimal.rate.value, one.rate.value)
                ))
            })
            .collect()
    }

    fn next_measurement(&self) -> String {
        let plan = self.plan();
        match plan.influences.first() {
            Some(i) => {
                let note = self.system.numbers.get(&i.number).map_or("", |number| &number.note);
                let colon = if note.is_empty() { "" } else { ": " };
                format!("measure what narrows `{}` (now {} to {}){colon}{note}", i.number, i.low, i.high)
            }
            None => match self.bounds().next() {
                Some(bound) => format!("measure what {} really carries: it binds the mix", bound.name),
                None => "run the mix on the card at this load".to_string(),
            },
        }
    }

    fn sweep_table(&self, sweep: &SweepReport, screen: &Screen) -> String {
        let names: Vec<&String> =
            sweep.rows.first().map(|row| row.alternatives.keys().collect()).unwrap_or_default();
        let mixes: Vec<&String> =
            sweep.rows.first().map(|row| row.mixes.keys().collect()).unwrap_or_default();
        let mut header: Vec<&str> = vec![&sweep.parameter];
        header.extend(names.iter().map(|name| name.as_str()));
        header.extend(mixes.iter().map(|name| name.as_str()));
        header.extend(["greedy", "optimal", "mix"]);
        if self.design.network_baseline.is_some() {
            header.push("network saved");
        }
        let rows = sweep
            .rows
            .iter()
            .map(|row| {
                let mut cells = vec![Entry::Text(row.value.to_string())];
                cells.extend(names.iter().map(|name| Entry::Number(short(row.alternatives[*name]))));
                cells.extend(mixes.iter().map(|name| Entry::Number(short(row.mixes[*name]))));
                cells.push(Entry::Number(short(row.greedy)));
                cells.push(Entry::Number(short(row.optimal)));
                cells.push(Entry::Text(row.optimal_mix.clone()));
                cells.extend(row.network_saved_percent.map(|saved| Entry::Number(format!("{saved:.0}%"))));
                cells
            })
            .collect();
        screen.table(&header, rows)
    }

    fn clients_table(&self, screen: &Screen) -> String {
        let counts: Vec<String> = self.design.clients.iter().map(|n| format!("{n} clients")).collect();
        let mut header = vec!["", ""];
        header[0] = self.unit().name();
        header.truncate(1);
        header.extend(counts.iter().map(String::as_str));
        let rows = self
            .clients
            .iter()
            .map(|(name, runs)| {
                let mut cells = vec![Entry::Text(name.clone())];
                cells.extend(
                    runs.iter().map(|run| Entry::Number(short(self.unit().of_rate(run.throughput.mean)))),
                );
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
    fn client_ratios(&self) -> Vec<RatioReport> {
        let runs = |name: &str| self.clients.iter().find(|(n, _)| n == name).map(|(_, runs)| runs);
        let plan = self.plan();
        let full = |name: &str| {
            let alone = plan.alternatives.iter().find(|one| one.name == name).map(|one| one.rate.value);
            alone.or_else(|| plan.mixes.iter().find(|mix| mix.name == name).map(|mix| mix.rate.value))
        };
        self.design
            .published
            .iter()
            .filter_map(|one| {
                let ratios = runs(&one.of)?
                    .iter()
                    .zip(runs(&one.over)?)
                    .map(|(a, b)| a.throughput.mean / b.throughput.mean);
                Some(RatioReport {
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
        let p99: Vec<f64> =
            self.curve.iter().map(|p| p.loaded.latencies.quantile(0.99).map_or(0.0, Time::as_us)).collect();
        let rows = self
            .curve
            .iter()
            .map(|point| {
                let quantile = |share| short(point.loaded.latencies.quantile(share).map_or(0.0, Time::as_us));
                vec![
                    Entry::Number(short(unit.of_rate(point.offered_per_s))),
                    Entry::Number(short(unit.of_rate(point.loaded.throughput.mean))),
                    Entry::Number(quantile(0.5)),
                    Entry::Number(quantile(0.99)),
                ]
            })
            .collect();
        let mut text = screen.table(&["offered", unit.name(), "p50 us", "p99 us"], rows);
        text += &format!("p99 over load  {}\n", sparkline(&p99, Scale::Linear, 3));
        text
    }

    fn report(&self) -> Report<'_> {
        let plan = self.plan();
        let loaded = &self.checked.loaded;
        let unit = self.unit();
        let rates = |rate: &Ranged| Rates::new(unit, rate);
        let mix = |mix: &Mix| MixReport {
            name: mix.name.clone(),
            rates: rates(&mix.rate),
            unloaded_latency_us: round(mix.latency_s * 1e6),
            shares: mix.shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
            binding: mix
                .bounds
                .iter()
                .map(|bound| BindingReport {
                    station: bound.name.clone(),
                    meaning: bound.meaning.clone(),
                    gain_percent_for_10_percent_more: bound.gain_percent.map(round),
                })
                .collect(),
            host_cpu_us_per_request: round(mix.host_cpu_s * 1e6),
            network_saved_percent: network_saved(self.design, mix),
            unique: mix.unique,
        };
        let micros = |share| loaded.latencies.quantile(share).map(|t| round(t.as_us()));
        Report {
            schema_version: SCHEMA_VERSION,
            design: &self.design.name,
            device: &self.system.device,
            testbed: &self.system.testbed,
            mode: &self.system.mode,
            overlays: &self.system.overlays,
            workload: &self.design.workload,
            objective: self.goal(),
            cache_hit_ratio: plan.cache.as_ref().map(|cache| round(cache.hit_ratio)),
            alternatives: plan
                .alternatives
                .iter()
                .map(|one| AlternativeReport {
                    name: &one.name,
                    device: one.device.as_deref().unwrap_or(&self.system.device),
                    mixed: one.mixed,
                    rates: rates(&one.rate),
                    unloaded_latency_us: round(one.latency_s * 1e6),
                    binding_station: &one.binding,
                    reason: &one.reason,
                    basis: one.basis.name(),
                    most_moved_by: one.leading.as_deref(),
                    host_cpu_us_per_request: round(one.host_cpu_s * 1e6),
                    network_bytes_per_request: round(one.network_bytes),
                })
                .collect(),
            mixes: plan.mixes.iter().map(mix).collect(),
            greedy: mix(&plan.greedy),
            greedy_order: &plan.greedy_order,
            optimal: mix(&plan.optimal),
            twin: TwinReport {
                rates: Rates {
                    throughput_mreq_per_s: unit.bits.is_none().then(|| round(loaded.throughput.mean / 1e6)),
                    throughput_gbit_per_s: unit.bits.map(|_| round(unit.of_rate(loaded.throughput.mean))),
                    throughput_low: None,
                    throughput_high: None,
                },
                ci95_low: round(unit.of_rate(loaded.throughput.low)),
                ci95_high: round(unit.of_rate(loaded.throughput.high)),
                latency_us_p50: micros(0.5),
                latency_us_p99: micros(0.99),
                requests_in_flight: loaded.in_flight,
                failed_requests: loaded.failed,
                rounds: self.checked.rounds,
                first_solution: round(unit.of_rate(self.checked.first_rate)),
                sampled_requests: self.checked.sampled,
                widest_demand_interval: round(self.checked.widest),
                utilization: loaded
                    .utilization
                    .iter()
                    .filter(|(_, share)| **share > 0.0)
                    .map(|(name, share)| (name.clone(), round(*share)))
                    .collect(),
                tests: "queueing, not the card",
            },
            lowest_p99: self.checked.tail.as_ref().map(|(shares, tail)| TailReport {
                shares: shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
                latency_us_p99: tail.latencies.quantile(0.99).map(|t| round(t.as_us())),
            }),
            influences: plan
                .influences
                .iter()
                .map(|i| InfluenceReport {
                    number: &i.number,
                    low: i.low.to_string(),
                    high: i.high.to_string(),
                    optimal_at_low: round(unit.of_rate(i.rate_low)),
                    optimal_at_high: round(unit.of_rate(i.rate_high)),
                    changes_recommendation: i.changes.as_deref(),
                })
                .collect(),
            rivals: &self.rivals,
            code: self.code.as_ref().map(|code| CodeReport {
                application: code.application,
                largest_busy_difference: round(code.busy.0),
                at_station: &code.busy.1,
                of_alternative: &code.busy.2,
                largest_latency_difference: round(code.latency.0),
                of_alternative_latency: &code.latency.1,
            }),
            changed: self.changed.as_ref(),
            sweep: self.sweep.as_ref(),
            clients: self
                .clients
                .iter()
                .map(|(name, runs)| ClientsReport {
                    name,
                    throughput: self
                        .design
                        .clients
                        .iter()
                        .zip(runs)
                        .map(|(count, run)| (count.to_string(), round(unit.of_rate(run.throughput.mean))))
                        .collect(),
                })
                .collect(),
            client_ratios: self.client_ratios(),
            curve: self
                .curve
                .iter()
                .map(|point| CurveReport {
                    offered: round(unit.of_rate(point.offered_per_s)),
                    throughput: round(unit.of_rate(point.loaded.throughput.mean)),
                    latency_us_p50: point.loaded.latencies.quantile(0.5).map(|t| round(t.as_us())),
                    latency_us_p99: point.loaded.latencies.quantile(0.99).map(|t| round(t.as_us())),
                })
                .collect(),
            unit: unit.name(),
            advice: self
                .advised
                .advice
                .iter()
                .map(|one| AdviceReport::of(one, self.advised.objective))
                .collect(),
            next_measurement: self.next_measurement(),
            not_modelled: ["very many connections", "pause frames", "tails without evidence"],
        }
    }
}

/// Breaks sentences at words, so that a page fits a terminal; tables, which start with a blank, are
/// laid out already.
fn wrapped(text: &str) -> String {
    const WIDTH: usize = 110;
    let mut page = String::new();
    for line in text.lines() {
        if line.starts_with([' ', '|']) || line.chars().count() <= WIDTH {
            page += line;
        } else {
            let mut used = 0;
            for word in line.split(' ') {
                let length = word.chars().count();
                if used > 0 && used + 1 + length > WIDTH {
                    page += "\n  ";
                    used = 2;
                } else if used > 0 {
                    page.push(' ');
                    used += 1;
                }
                page += word;
                used += length;
            }
        }
        page.push('\n');
    }
    page
}

fn gb(bytes: Bytes) -> String {
    format!("{} GB", short(bytes.get() as f64 / 1e9))
}

/// A throughput in the design's unit; the keys of the other unit are left out.
#[derive(Serialize)]
struct Rates {
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_mreq_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_gbit_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_low: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_high: Option<f64>,
}

impl Rates {
    fn new(unit: Unit, rate: &Ranged) -> Rates {
        let value = round(unit.of_rate(rate.value));
        Rates {
            throughput_mreq_per_s: unit.bits.is_none().then_some(value),
            throughput_gbit_per_s: unit.bits.map(|_| value),
            throughput_low: Some(round(unit.of_rate(rate.low))),
            throughput_high: Some(round(unit.of_rate(rate.high))),
        }
    }
}

#[derive(Serialize)]
struct Report<'p> {
    schema_version: u32,
    design: &'p str,
    device: &'p str,
    testbed: &'p str,
    mode: &'p str,
    overlays: &'p [String],
    workload: &'p str,
    objective: String,
    unit: &'static str,
    cache_hit_ratio: Option<f64>,
    alternatives: Vec<AlternativeReport<'p>>,
    mixes: Vec<MixReport>,
    greedy: MixReport,
    greedy_order: &'p [String],
    optimal: MixReport,
    twin: TwinReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_p99: Option<TailReport>,
    influences: Vec<InfluenceReport<'p>>,
    rivals: &'p [RivalReport],
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<CodeReport<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<&'p ChangedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<&'p SweepReport>,
    clients: Vec<ClientsReport<'p>>,
    client_ratios: Vec<RatioReport>,
    curve: Vec<CurveReport>,
    not_modelled: [&'static str; 3],
    next_measurement: String,
    advice: Vec<AdviceReport>,
}

#[derive(Serialize)]
struct AlternativeReport<'p> {
    name: &'p str,
    device: &'p str,
    mixed: bool,
    #[serde(flatten)]
    rates: Rates,
    unloaded_latency_us: f64,
    binding_station: &'p str,
    reason: &'p str,
    basis: &'static str,
    most_moved_by: Option<&'p str>,
    host_cpu_us_per_request: f64,
    network_bytes_per_request: f64,
}

#[derive(Serialize)]
struct MixReport {
    name: String,
    #[serde(flatten)]
    rates: Rates,
    unloaded_latency_us: f64,
    shares: BTreeMap<String, f64>,
    binding: Vec<BindingReport>,
    host_cpu_us_per_request: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_saved_percent: Option<f64>,
    unique: bool,
}

#[derive(Serialize)]
struct BindingReport {
    station: String,
    meaning: String,
    gain_percent_for_10_percent_more: Option<f64>,
}

#[derive(Serialize)]
struct TwinReport {
    #[serde(flatten)]
    rates: Rates,
    ci95_low: f64,
    ci95_high: f64,
    latency_us_p50: Option<f64>,
    latency_us_p99: Option<f64>,
    requests_in_flight: u32,
    failed_requests: u64,
    rounds: u32,
    first_solution: f64,
    sampled_requests: u64,
    widest_demand_interval: f64,
    utilization: BTreeMap<String, f64>,
    tests: &'static str,
}

#[derive(Serialize)]
struct CodeReport<'p> {
    application: &'static str,
    largest_busy_difference: f64,
    at_station: &'p str,
    of_alternative: &'p str,
    largest_latency_difference: f64,
    of_alternative_latency: &'p str,
}

#[derive(Serialize)]
struct TailReport {
    shares: BTreeMap<String, f64>,
    latency_us_p99: Option<f64>,
}

#[derive(Serialize)]
struct InfluenceReport<'p> {
    number: &'p str,
    low: String,
    high: String,
    optimal_at_low: f64,
    optimal_at_high: f64,
    changes_recommendation: Option<&'p str>,
}

#[derive(Serialize)]
struct ClientsReport<'p> {
    name: &'p str,
    throughput: BTreeMap<String, f64>,
}

/// A ratio of throughputs over the numbers of clients.
#[derive(Serialize)]
struct RatioReport {
    of: String,
    over: String,
    low: f64,
    high: f64,
    published_low: f64,
    published_high: f64,
    source: String,
    saturated: f64,
}

#[derive(Serialize)]
struct CurveReport {
    offered: f64,
    throughput: f64,
    latency_us_p50: Option<f64>,
    latency_us_p99: Option<f64>,
}
