//! `offpath check`: what a design could do better, each remedy measured on the twin.

use super::Context;
use super::plan::{WhatIf, opened};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Screen, remove_left, replace, tell, unwritable};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::check::{CheckAnswers, CheckDraft, CheckRequest};
use offpath::answers::not_of_the_file;
use offpath::plan::Changes;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath check designs/three-mistakes.toml             what gains, and how much
  offpath check designs/three-mistakes.toml --fix       and write it to the file
  offpath check designs/kv-ycsb-c.toml --verbose        why each rule stays silent
  offpath check designs/kv-ycsb-c.toml --mix A1         as if every request took one alternative
  offpath check designs/three-mistakes.toml --format json";

/// Look for changes of a design that gain, each measured on the twin
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
    /// Write the changes to the file; its comments stay
    #[arg(long)]
    fix: bool,
    /// Look at this mix or alternative, and not at what the design runs; `optimal` and `greedy` too
    #[arg(long, value_name = "NAME")]
    mix: Option<String>,
    /// Say why each rule stays silent
    #[arg(long)]
    verbose: bool,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

/// Checks, prints, and writes the changes where that is asked for.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let changes = options.what_if.changes(options.device.as_ref())?;
    let otherwise = not_of_the_file(&changes, &context.system);
    if options.fix && !otherwise.is_empty() {
        return Err(Failure::input(
            format!(
                "`--fix` writes what gains for the design of the file on its own system, and not with {}",
                otherwise.join(" ")
            ),
            "leave `--fix` out, or write the change into the file first",
        ));
    }
    let request = CheckRequest {
        design: options.design.clone(),
        changes: Changes { mix: options.mix.clone(), ..changes },
        system: context.system.clone(),
        seed: options.seed,
        sure: options.fix,
    };
    let draft = CheckDraft::new(&request, opened(&request.design, &request.changes)?)?;
    let progress = Progress::endless("measuring on the twin what each rule would change");
    let mut answers = draft.answer()?;
    drop(progress);
    let notes: BTreeSet<&str> = answers.all().iter().filter_map(|answer| answer.mode_note).collect();
    notes.into_iter().for_each(|note| tell(&format!("note: {note}")));
    // Each scenario was looked at with the changes of those before it.
    if options.fix
        && let [first, ..] = answers.all()
        && let [.., last] = answers.all()
        && answers.all().iter().any(|answer| !answer.advice.is_empty())
    {
        write(&options.design, &first.text_before, &last.text_after)?;
        answers.all_mut().iter_mut().for_each(|answer| answer.fixed = !answer.advice.is_empty());
    }
    let is_unconfirmed = answers.all().iter().any(|answer| answer.measures_nothing());
    let text = |answers: &CheckAnswers, screen: &Screen| answers.text(screen, options.verbose);
    context.screen.emit(&super::answer(&answers, context, text)?)?;
    Ok(if is_unconfirmed { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// Writes the changed design where nobody wrote another one meanwhile, its lines ending as they did.
fn write(file: &Path, given: &str, changed: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::input(
            format!("`{}` cannot be written: {error}", file.display()),
            "check that the file and its folder may be written, or leave `--fix` out and change it by hand",
        )
    };
    if std::fs::read_to_string(file).map_err(failed)? != given {
        return Err(Failure::input(
            format!("`{}` was changed while it was checked, and is left as it is", file.display()),
            "run it again on the file as it is now",
        ));
    }
    let changed = match given.contains("\r\n") {
        true => changed.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => changed.to_string(),
    };
    // What a link names is replaced, not the link.
    let target = file.canonicalize().map_err(failed)?;
    remove_left(&target);
    replace(&target, changed.as_bytes()).map_err(|error| unwritable(file, &error))
}

#[cfg(test)]
mod tests {
    use super::write;
    use std::fs;

    /// An editor that saved while the twin ran has the last word, and lines end as they did.
    #[test]
    fn a_file_is_written_as_it_was_found_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("design.toml");
        fs::write(&file, "a = 1\r\nb = 2\r\n").expect("it can be written");
        write(&file, "a = 1\r\nb = 2\r\n", "a = 1\nb = 3\n").unwrap_or_else(|_| panic!("nobody changed it"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "a = 1\r\nb = 3\r\n");
        assert!(write(&file, "a = 1\r\nb = 2\r\n", "a = 1\nb = 4\n").is_err(), "it was changed");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "a = 1\r\nb = 3\r\n");
    }
}
