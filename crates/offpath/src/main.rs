//! The command line `offpath`.

mod chart;
mod commands;
mod failure;
mod options;
mod output;
mod topology;

use clap::Parser;
use failure::INTERNAL;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = commands::Cli::parse();
    set_hook(Box::new(|info| {
        eprintln!("offpath: internal error: {info}");
        eprintln!("This is a bug of offpath. Please report it with the command line that led here.");
    }));
    let color = cli.output.color;
    match catch_unwind(AssertUnwindSafe(|| commands::run(cli))) {
        Ok(Ok(code)) => code,
        Ok(Err(failure)) => failure.report(color),
        Err(_) => ExitCode::from(INTERNAL),
    }
}
