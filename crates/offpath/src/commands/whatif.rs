//! `offpath whatif`: what a design would gain if its card were otherwise.

use super::Context;
use super::plan::{WhatIf, opened};
use crate::failure::Failure;
use crate::progress::Progress;
use clap::Args;
use offpath::answers::whatif::{WhatIfAnswers, WhatIfDraft, WhatIfRequest};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath whatif designs/replication.toml
  offpath whatif designs/aggregate-bf3.toml --format json
  offpath whatif designs/kv-ycsb-c.toml --overlay my-idea.toml --set nic.inflight_slots=284

Each `--overlay` and each `--set` is a change of its own beside what papers suggest to makers of cards; an
overlay file holds several numbers that change together.";

/// Try what others suggest to makers of cards, and changes of your own: what each gains, in how many joint draws
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design file; `offpath new` writes one
    design: PathBuf,
    #[command(flatten)]
    what_if: WhatIf,
    /// Try another device, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    device: Option<String>,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

/// Tries and prints: a design without scenarios once, else each scenario by itself.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = WhatIfRequest {
        design: options.design.clone(),
        changes: options.what_if.changes(options.device.as_ref())?,
        system: context.system.clone(),
        seed: options.seed,
    };
    let draft = WhatIfDraft::new(&request, opened(&request.design, &request.changes)?)?;
    let progress = Progress::endless("solving the design with each change, and drawing the numbers of all");
    let answer = draft.answer()?;
    drop(progress);
    context.screen.emit(&super::answer(&answer, context, WhatIfAnswers::text)?)?;
    Ok(ExitCode::SUCCESS)
}
