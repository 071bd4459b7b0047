//! `offpath compare`: one design on several devices, and whether a card is worth it.

use super::Context;
use super::plan::{WhatIf, opened};
use crate::failure::Failure;
use crate::output::OutputFile;
use crate::progress::Progress;
use clap::Args;
use offpath::answers::compare::{CompareAnswers, CompareDraft, CompareRequest};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath compare designs/kv-ycsb-c.toml --device bluefield2,connectx6
  offpath compare designs/nvme-of-target.toml --device bluefield2,bluefield3,connectx7
  offpath compare designs/kv-ycsb-c.toml --device bluefield2,my-card.toml --format json
  offpath compare designs/kv-ycsb-c.toml --device bluefield2,connectx6 --html compare.html";

/// Plan a design on several devices: which is the best, in how many joint draws, what decides
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design file; `offpath new` writes one
    design: PathBuf,
    /// The devices, by name or from .toml files; a NIC without processors runs what it can
    #[arg(long, value_name = "NAME|FILE,...", value_delimiter = ',', required = true)]
    device: Vec<String>,
    #[command(flatten)]
    what_if: WhatIf,
    /// Also write a page with charts to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

/// Compares and prints: a design without scenarios once, else each scenario by itself.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = CompareRequest {
        design: options.design.clone(),
        devices: options.device.iter().map(|name| name.trim().to_string()).collect(),
        changes: options.what_if.changes(None)?,
        system: context.system.clone(),
        seed: options.seed,
    };
    let design = opened(&request.design, &request.changes)?;
    let (name, scenarios) = (design.name.clone(), design.scenarios.clone());
    let draft = CompareDraft::new(&request, design)?;
    if let (true, Some(first)) = (options.html.is_some(), scenarios.first()) {
        return Err(Failure::input(
            format!("a page shows one scenario, and `{name}` has {}", scenarios.len()),
            format!("choose one, as in `--scenario \"{first}\"`"),
        ));
    }
    let file = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let progress = Progress::endless("solving the design on each device, and drawing the numbers of all");
    let answer = draft.answer()?;
    drop(progress);
    if let (Some(file), CompareAnswers::One(one)) = (file, &answer) {
        file.write(one.page().html().as_bytes())?;
    }
    context.screen.emit(&super::answer(&answer, context, CompareAnswers::text)?)?;
    Ok(ExitCode::SUCCESS)
}
