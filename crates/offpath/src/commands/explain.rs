//! `offpath explain`: the experiment behind an evidence row, and why its prediction is what it is.

use super::reproduce::row_name;
use super::{Context, answer};
use crate::failure::Failure;
use crate::progress::Progress;
use clap::Args;
use offpath::answers::explain;
use offpath::answers::explain::{ExplainAnswer, ExplainRequest};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath explain W072     the latency of a 64 B READ on path 1, term by term
  offpath explain W003     how much faster path 2 is, place by place, and what binds";

/// Show the experiment behind a published row, the stations involved, and why it comes out so
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The row, as in `W003`
    #[arg(value_parser = row_name)]
    row: String,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = ExplainRequest { row: options.row.clone(), system: context.system.clone() };
    let progress = Progress::endless("predicting the row");
    let found = explain(&request)?;
    drop(progress);
    context.screen.emit(&answer(&found, context, ExplainAnswer::text)?)?;
    Ok(ExitCode::SUCCESS)
}
