//! `offpath plan`: the best combination of a design's alternatives, on one page.

mod confidence;
mod html;
mod page;
mod report;
mod tables;

use super::Context;
use crate::failure::{Failure, NEGATIVE};
use crate::options::SystemOptions;
use crate::output::{Format, OutputFile, tell};
use crate::progress::Progress;
use clap::Args;
use offpath::capacity::CapacityError;
use offpath::plan::study::{Ask, Study};
use offpath::plan::{Changes, Design, PlanError, Setting};
use offpath::twin::Seed;
use page::Page;
pub(super) use page::Unit;
use std::collections::BTreeSet;
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

/// Find the best combination of a design's offload alternatives, what binds it, with confidence intervals
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
    /// Plan from the step lists where the design names an application
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
    all.extend(system.arguments());
    if let Some(folder) = &system.profiles {
        all.extend(["--profiles".to_string(), folder.display().to_string()]);
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_=./,:+@".contains(c);
    let quoted = |one: &String| match one.chars().all(is_plain) {
        true => format!(" {one}"),
        false => format!(" '{}'", one.replace('\'', "'\\''")),
    };
    all.iter().map(quoted).collect()
}

/// A design and the setting that its systems are loaded by; what its author may not have meant is said.
pub fn opened(file: &Path, changes: &Changes, context: &Context) -> Result<(Design, Setting), Failure> {
    let design = Design::load(file, changes)?;
    let warnings = design.warnings.iter().map(|warning| format!("warning: {warning}"));
    let notes = design.notes.iter().map(|note| format!("note: {note}"));
    warnings.chain(notes).for_each(|said| tell(&said));
    let setting = Setting {
        overlays: context.system.overlay.clone(),
        settings: context.system.set.clone(),
        testbed: context.system.testbed.clone(),
        mode: context.system.mode.clone(),
        ..Setting::plain(context.system.library()?)
    };
    Ok((design, setting))
}

/// Plans and prints: a design without scenarios once, else each scenario by itself.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let changes = options.what_if.changes();
    let (whole, setting) = opened(&options.design, &changes, context)?;
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
