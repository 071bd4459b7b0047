//! What the programs of offpath share on a terminal: answers as tables, JSON and Markdown, refusals with a next
//! step, progress, and the options that several commands have.
//!
//! ```no_run
//! use clap::Parser;
//! use offpath_terminal::output::{OutputOptions, Screen};
//!
//! /// Greet
//! #[derive(Parser)]
//! struct Cli {
//!     #[command(flatten)]
//!     output: OutputOptions,
//! }
//!
//! fn main() -> std::process::ExitCode {
//!     offpath_terminal::program("hello", |cli: &Cli| cli.output.color, |cli| {
//!         Screen::new(cli.output).emit("good day\n")?;
//!         Ok(std::process::ExitCode::SUCCESS)
//!     })
//! }
//! ```

pub mod failure;
pub mod options;
pub mod output;
pub mod progress;

use clap::Parser;
use failure::{BAD_INPUT, Failure, INTERNAL, UNWRITABLE};
use options::SystemOptions;
use output::{Color, Screen, tell};
use std::ffi::OsString;
use std::io::ErrorKind;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook};
use std::process::ExitCode;

/// What a command gets beside its own options.
#[derive(Debug)]
pub struct Context {
    /// Which system is meant.
    pub system: SystemOptions,
    /// Where the answer goes.
    pub screen: Screen,
}

/// Reads the command line, runs it, and shows why it failed; the exit code that follows. `color` is what the
/// command line says of colour.
///
/// A panic is a bug: it is said to be one and ends with exit code 70.
pub fn program<C: Parser>(
    name: &'static str,
    color: impl Fn(&C) -> Color,
    run: impl FnOnce(C) -> Result<ExitCode, Failure>,
) -> ExitCode {
    let cli = match C::try_parse_from(joined(std::env::args_os())) {
        Ok(cli) => cli,
        Err(refused) => return shown(&refused),
    };
    set_hook(Box::new(move |info| {
        tell(&format!("{name}: internal error: {info}"));
        tell("This is a bug of offpath. Please report it with the command line that led here.");
    }));
    let color = color(&cli);
    // Showing a failure is as much a part of the program as what fails.
    let shown = || run(cli).unwrap_or_else(|failure| failure.report(color));
    catch_unwind(AssertUnwindSafe(shown)).unwrap_or_else(|_| ExitCode::from(INTERNAL))
}

/// Shows help, or why the command line was refused; the exit code that follows.
fn shown(refused: &clap::Error) -> ExitCode {
    match refused.print() {
        // A reader that closes its end early, as `head` does, is not an error.
        Err(error) if error.kind() != ErrorKind::BrokenPipe && !refused.use_stderr() => {
            tell(&format!("cannot write the help: {error}"));
            ExitCode::from(UNWRITABLE)
        }
        _ if refused.use_stderr() => ExitCode::from(BAD_INPUT),
        _ => ExitCode::SUCCESS,
    }
}

/// The arguments, where a negative number behind an option is its value: no option's name starts with a
/// digit, and `--size -64B` is refused for its size.
fn joined(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::new();
    let mut options = true;
    for argument in arguments {
        let text = argument.to_string_lossy();
        let negative = text
            .strip_prefix('-')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '.'));
        options &= text != "--";
        match all.last_mut() {
            Some(last) if options && negative && is_option(&last.to_string_lossy()) => {
                last.push("=");
                last.push(&argument);
            }
            _ => all.push(argument),
        }
    }
    all
}

fn is_option(text: &str) -> bool {
    text.len() > 2 && text.starts_with("--") && !text.contains('=')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn negative_numbers_are_values() {
        let joined = |line: &str| {
            let all = joined(line.split(' ').map(OsString::from));
            all.iter().map(|one| one.to_string_lossy().into_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(joined("path x --size -64B"), "path x --size=-64B");
        assert_eq!(joined("path x --size=1B -5"), "path x --size=1B -5");
        assert_eq!(joined("path -- --size -64B"), "path -- --size -64B");
        assert_eq!(joined("plan x --fix --load -.5M/s"), "plan x --fix --load=-.5M/s");
        assert_eq!(joined("path x --html -x"), "path x --html -x");
    }
}
