//! `offpath diagnose`: whether figures are what they should be, and what explains it where they are not.

use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use clap::Args;
use offpath::answers::diagnose::{DiagnoseAnswer, DiagnoseRequest, diagnose};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath diagnose ib_read_bw.log --device connectx6
  offpath diagnose *.log --device my-card.toml --collection machine.tar
  offpath diagnose ib_write_bw.log --device my-card.toml --expect 0.9    an acceptance test: exit code 1 where a row is lower

Exit code 1 says that no row can be compared, or, with `--expect`, that the logs are not accepted, with each reason: a row below the share or
above what any card can do, a run that failed or is not whole, a line below it that is not read, or what the collection says.";

/// Compare logs of perftest with what the model expects, and rank what explains the difference
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Logs of perftest, with or without their heads; `-` is standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// The device that they were taken on, by name or from a .toml file
    #[arg(long, value_name = "NAME|FILE")]
    device: String,
    /// From whom to whom the runs go [default: from the client to the host]
    #[arg(long)]
    path: Option<String>,
    /// What the machine says of itself: an archive of `offpath collect`, or files of tools
    #[arg(long, value_name = "FILES", value_delimiter = ',')]
    collection: Vec<PathBuf>,
    /// The card's address, where those files list several, as in `3b:00.0`
    #[arg(long, value_name = "ADDRESS", requires = "collection")]
    card: Option<String>,
    /// The least share of the expected figure that each row has to reach, as in 0.9
    #[arg(long, value_name = "SHARE", value_parser = share)]
    expect: Option<f64>,
}

fn share(text: &str) -> Result<f64, String> {
    let share = text.parse::<f64>().ok().filter(|share| *share > 0.0 && *share <= 1.0);
    share.ok_or_else(|| "a share is above 0 and at most 1, as in 0.9".to_string())
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let found = diagnose(&DiagnoseRequest {
        logs: options.logs.clone(),
        collection: options.collection.clone(),
        card: options.card.clone(),
        device: options.device.clone(),
        path: options.path.clone(),
        least_share: options.expect,
        system: context.system.clone(),
    })?;
    context.screen.emit(&answer(&found, context, DiagnoseAnswer::text)?)?;
    Ok(if found.is_met() { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}
