//! `offpath relay` and `offpath shard`: programs of their own, so that whoever plans needs neither TLS nor an
//! asynchronous runtime. They are started where they are installed.

use crate::failure::Failure;
use clap::Args;
use offpath_terminal::output::Color;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Command, ExitCode};

/// What the program reads itself.
#[derive(Args, Debug)]
pub struct Options {
    /// The program's own; `--help` shows them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<OsString>,
}

/// Where a program is: beside this one, as a build or an installation leaves it, or in a folder of PATH.
fn found(program: &str) -> Option<PathBuf> {
    let own = std::env::current_exe().ok().and_then(|own| own.parent().map(PathBuf::from));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = own.into_iter().chain(std::env::split_paths(&path));
    folders.map(|folder| folder.join(program)).find(|file| file.is_file())
}

/// The commands that are programs of their own, each with its package.
const SERVICES: [(&str, &str); 2] = [("relay", "offpath-redis"), ("shard", "offpath-shard")];

/// Where `offpath help COMMAND` asks for a program of its own, that program's own help.
pub fn help() -> Option<ExitCode> {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let [.., word, command] = words.as_slice() else { return None };
    let (command, _) = SERVICES.into_iter().find(|(name, _)| word == "help" && command == name)?;
    let started = start(command, ["--help".into()]);
    Some(started.unwrap_or_else(|failure| failure.report(Color::default())))
}

/// Becomes the program of a command, with everything of the command line but the command's name. Signals reach it
/// as they would have reached this one.
pub fn run(command: &str) -> Result<ExitCode, Failure> {
    let mut named = false;
    let arguments = std::env::args_os().skip(1).filter(|argument| {
        let is_name = !named && argument == command;
        named |= is_name;
        !is_name
    });
    start(command, arguments)
}

fn start(command: &str, arguments: impl IntoIterator<Item = OsString>) -> Result<ExitCode, Failure> {
    let package = SERVICES.into_iter().find(|(name, _)| *name == command).expect("it is one of these").1;
    let program = format!("offpath-{command}");
    let Some(file) = found(&program) else {
        return Err(Failure::input(
            format!(
                "`offpath {command}` is the program `{program}`, which is neither beside `offpath` nor on PATH"
            ),
            format!(
                "build it with `cargo build --release -p {package}`, which puts it beside `offpath`, or install it with \
                 `cargo install --path services/{}`",
                package.trim_start_matches("offpath-")
            ),
        ));
    };
    let refused = Command::new(&file).args(arguments).exec();
    Err(Failure::input(
        format!("`{}` does not start: {refused}", file.display()),
        format!("build it again with `cargo build --release -p {package}`"),
    ))
}
