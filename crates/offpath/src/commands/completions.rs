//! `offpath completions`: what a shell needs to complete the command line.

use super::Cli;
use crate::failure::Failure;
use crate::output::emit;
use clap::{Args, CommandFactory};
use clap_complete::Shell;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath completions bash > ~/.local/share/bash-completion/completions/offpath
  offpath completions zsh > \"${fpath[1]}/_offpath\"
  offpath completions fish > ~/.config/fish/completions/offpath.fish";

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The shell
    shell: Shell,
}

/// Prints the completions.
pub fn run(options: &Options) -> Result<ExitCode, Failure> {
    let mut script = Vec::new();
    clap_complete::generate(options.shell, &mut Cli::command(), "offpath", &mut script);
    emit(&String::from_utf8_lossy(&script))?;
    Ok(ExitCode::SUCCESS)
}
