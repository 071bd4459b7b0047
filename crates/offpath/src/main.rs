//! The command line `offpath`.

mod commands;

use clap_complete::CompleteEnv;
use offpath_terminal::{failure, options, output, progress};
use std::process::ExitCode;

fn main() -> ExitCode {
    CompleteEnv::with_factory(commands::completions::command).bin("offpath").complete();
    if let Some(helped) = commands::service::help() {
        return helped;
    }
    offpath_terminal::program("offpath", |cli: &commands::Cli| cli.output.color, commands::run)
}
