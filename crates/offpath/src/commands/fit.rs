//! `offpath fit`: the profiles' fitted numbers, fitted again to the published rows.

use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Format, OutputFile, unwritable};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::fit::{FitAnswer, FitDraft, FitRequest, FittedProfile};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

const EXAMPLES: &str = "\
Examples:
  offpath fit                     fit, and say which row identifies what
  offpath fit --check             is the result what the program ships with?
  offpath fit --write profiles    write it into the profiles of a checkout";

/// Fit the profiles' fitted numbers to the published rows again
///
/// Reads rows of role `fit` alone. Prints every free parameter with its interval and the rows that
/// identify it, and every row with what becomes of it when it is left out. See docs/fitting.md.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Write the profiles with the fitted numbers below this directory, as in `profiles`
    #[arg(long, value_name = "DIR", conflicts_with = "check")]
    write: Option<PathBuf>,
    /// Compare the result with the built-in profiles, byte for byte, and with the variants that they leave open; exit code 1
    /// where they differ
    #[arg(long)]
    check: bool,
    /// Skip leaving rows out, and start at the priors alone: the same result, sooner
    #[arg(long)]
    quick: bool,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let draft = FitDraft::load(&FitRequest { system: context.system.clone(), quick: options.quick })?;
    if let Some(directory) = &options.write {
        std::fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
        OutputFile::create(&directory.join("profile.toml"))?;
    }
    let progress = Progress::endless("fitting the profiles to the published rows");
    let found = draft.answer();
    drop(progress);
    let found = found?;
    if let Some(directory) = &options.write {
        found.profiles.iter().try_for_each(|profile| write(directory, profile))?;
    }
    let screen = &context.screen;
    let mut text = answer(&found, context, FitAnswer::text)?;
    if screen.format != Format::Json {
        text += &format!("\n{:.0} s on {} threads.\n", start.elapsed().as_secs_f64(), found.threads);
        if options.check {
            text += &found.differences(screen);
        }
    }
    screen.emit(&text)?;
    let fails = options.check && !found.is_shipped();
    Ok(if fails { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// Writes a profile below `directory`, which stands for that of the shipped ones.
fn write(directory: &Path, profile: &FittedProfile) -> Result<(), Failure> {
    let path = directory.join(profile.file.strip_prefix("profiles/").unwrap_or(&profile.file));
    let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    folder.map_err(|error| unwritable(&path, &error))?;
    OutputFile::create(&path)?.write(profile.after.as_bytes())
}
