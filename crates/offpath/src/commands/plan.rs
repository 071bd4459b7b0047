//! `offpath plan`: the best combination of a design's alternatives, on one page.

use super::Context;
use crate::failure::Failure;
use crate::output::{OutputFile, tell};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::plan::{PlanAnswers, PlanDraft, PlanRequest};
use offpath::plan::{Changes, Design};
use offpath_terminal::options::check_once;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath plan designs/kv-ycsb-c.toml
  offpath plan designs/kv-ycsb-c.toml --set soc.pcie_mtu=512B           and what that changes
  offpath plan designs/kv-ycsb-c.toml --goal lowest-p99 --load 40M/s
  offpath plan designs/replication.toml --parameter ratio=0.5 --format json
  offpath plan designs/kv-ycsb-c.toml --workload my/workloadc --curve
  offpath plan designs/kv-ycsb-c.toml --html plan.html                  the same as a page with charts";

/// Find the best combination of a design's offload alternatives, what binds it, with confidence intervals
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design file; `offpath new` writes one
    design: PathBuf,
    #[command(flatten)]
    what_if: WhatIf,
    /// Plan for another device, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    device: Option<String>,
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
    /// What to seek: most-throughput, least-host-cpu or lowest-p99 [default: the design's]
    #[arg(long)]
    goal: Option<String>,
    /// The load at which it is sought, as in `40M/s`
    #[arg(long, value_name = "RATE")]
    load: Option<String>,
    /// Look at this scenario alone [default: each of the design's]
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
    /// What the user changes in the design, planned for another device where one is given.
    ///
    /// # Errors
    /// Where one parameter is given twice.
    pub fn changes(&self, device: Option<&String>) -> Result<Changes, Failure> {
        check_once("--parameter", self.parameter.iter().map(|(name, _)| name.as_str()))?;
        Ok(Changes {
            parameters: self.parameter.iter().cloned().collect(),
            workload: self.workload.clone(),
            device: device.cloned(),
            objective: self.goal.clone(),
            offered_load: self.load.clone(),
            steps: self.steps,
            scenario: self.scenario.clone(),
            ..Changes::default()
        })
    }
}

/// A design; what its author may not have meant is said.
pub fn opened(file: &Path, changes: &Changes) -> Result<Design, Failure> {
    let design = Design::load(file, changes)?;
    let warnings = design.warnings.iter().map(|warning| format!("warning: {warning}"));
    let notes = design.notes.iter().map(|note| format!("note: {note}"));
    warnings.chain(notes).for_each(|said| tell(&said));
    Ok(design)
}

/// Plans and prints: a design without scenarios once, else each scenario by itself.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = PlanRequest {
        design: options.design.clone(),
        changes: options.what_if.changes(options.device.as_ref())?,
        system: context.system.clone(),
        seed: options.seed,
        curve: options.curve || options.html.is_some(),
    };
    let design = opened(&request.design, &request.changes)?;
    let (name, scenarios) = (design.name.clone(), design.scenarios.clone());
    let draft = PlanDraft::new(&request, design)?;
    if let (true, Some(first)) = (options.html.is_some(), scenarios.first()) {
        return Err(Failure::input(
            format!("a page shows one scenario, and `{name}` has {}", scenarios.len()),
            format!("choose one, as in `--scenario \"{first}\"`"),
        ));
    }
    let file = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let progress =
        Progress::endless("solving the design on the twin, and again with every uncertain number moved");
    let mut answer = draft.answer()?;
    drop(progress);
    let notes: BTreeSet<&String> = answer.plans().flat_map(|plan| &plan.system_notes).collect();
    notes.into_iter().for_each(|note| tell(&format!("note: {note}")));
    if let (Some(file), PlanAnswers::One(plan)) = (file, &mut answer) {
        file.write(plan.page().html().as_bytes())?;
        if !options.curve {
            plan.curve.clear();
        }
    }
    context.screen.emit(&super::answer(&answer, context, PlanAnswers::text)?)?;
    Ok(ExitCode::SUCCESS)
}
