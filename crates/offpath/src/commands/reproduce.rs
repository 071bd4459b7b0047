//! `offpath reproduce`: published rows beside their predictions.

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::{OutputFile, Screen};
use crate::progress::Progress;
use clap::Args;
use offpath::answers::reproduce::{ReproduceAnswer, ReproduceDraft, ReproduceRequest};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath reproduce                       every row that misses, and the score
  offpath reproduce --all                 every row
  offpath reproduce W066 W072             these rows
  offpath reproduce --html report.html    the figures, published points over predicted curves
  offpath reproduce --overlay one-pool   under a variant of an open mechanism
  offpath reproduce --profiles my-profiles        with profiles of your own in place of the built-in ones
  offpath reproduce --format markdown     the page that stands in docs/validation.md";

/// Predict every published measurement, and say how far off each prediction is
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Rows to show, as in `W072` [default: those that miss]
    #[arg(value_parser = row_name)]
    rows: Vec<String>,
    /// Show every row
    #[arg(long, conflicts_with = "rows")]
    all: bool,
    /// Write a page with every figure, self-contained, to this file
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the errors of the predictions, by which intervals are widened, to this file
    #[arg(long, value_name = "FILE", conflicts_with = "rows")]
    residuals: Option<PathBuf>,
    /// Threads [default: one for each core]
    #[arg(long, value_parser = crate::options::whole::<u16>(1, 65_535))]
    threads: Option<u16>,
}

/// A row's name as the evidence has it: in capitals.
pub fn row_name(given: &str) -> Result<String, std::convert::Infallible> {
    Ok(given.to_ascii_uppercase())
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = ReproduceRequest {
        rows: options.rows.clone(),
        system: context.system.clone(),
        threads: options.threads,
        figures: options.html.is_some(),
    };
    let draft = ReproduceDraft::load(&request)?;
    let page = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let residuals = options.residuals.as_deref().map(OutputFile::create).transpose()?;
    let progress = Progress::endless("predicting the published rows");
    let found = draft.answer(|| progress.doing("drawing the figures"))?;
    if let Some(file) = page {
        file.write(found.page().html().as_bytes())?;
    }
    if let Some(file) = residuals {
        file.write(found.residuals_toml().as_bytes())?;
    }
    drop(progress);
    let text = |answer: &ReproduceAnswer, screen: &Screen| answer.text(screen, options.all);
    context.screen.emit(&answer(&found, context, text)?)?;
    Ok(ExitCode::SUCCESS)
}
