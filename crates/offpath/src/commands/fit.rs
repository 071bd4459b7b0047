//! `offpath fit`: the profiles' fitted numbers, fitted again to the published rows.

use super::Context;
use crate::failure::{Failure, NEGATIVE};
use crate::output::{
    Format, OutputFile, SCHEMA_VERSION, Screen, TableCell, fixed, round, signed, unwritable,
};
use crate::progress::Progress;
use clap::Args;
use offpath::evidence::fit::{
    Effort, FitError, Fitted, FittedParameter, FittedRow, LeftOut, ParameterInterval, fit,
};
use offpath::evidence::{free_parameters, shipped, write};
use offpath::profile::{Category, Library};
use serde::Serialize;
use std::path::PathBuf;
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
    /// Compare the result with the built-in profiles, byte for byte; exit code 1 where they differ
    #[arg(long)]
    check: bool,
    /// Skip leaving rows out, and start at the priors alone: the same result, sooner
    #[arg(long)]
    quick: bool,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let start = Instant::now();
    let library = context.system.library()?;
    let broken =
        |error: &dyn std::fmt::Display| Failure::input(error.to_string(), "correct the file, or restore it");
    let rows = shipped().map_err(|error| broken(&error))?;
    let specification = free_parameters().map_err(|error| broken(&error))?;
    let effort = Effort {
        threads: std::thread::available_parallelism().map_or(1, |count| count.get()),
        starts: if options.quick { 1 } else { specification.starts },
        leave_one_out: !options.quick,
    };
    if let Some(directory) = &options.write {
        std::fs::create_dir_all(directory).map_err(|error| unwritable(directory, &error))?;
        OutputFile::create(&directory.join("profile.toml"))?;
    }
    let progress = Progress::endless("fitting the profiles to the published rows");
    let fitted = fit(&library, &rows, &specification, &effort);
    drop(progress);
    let fitted = fitted.map_err(|error| {
        let help = match error {
            FitError::Specification(_) => "correct evidence/fit.toml",
            _ => "free numbers of the profiles have to stay valid within the bounds of evidence/fit.toml",
        };
        Failure::input(error.to_string(), help)
    })?;
    let texts = texts(&library, &fitted)?;
    let differing: Vec<&Text> = texts.iter().filter(|text| text.before != text.after).collect();
    if let Some(directory) = &options.write {
        for text in &texts {
            let relative = text.file.strip_prefix("profiles/").unwrap_or(&text.file);
            let path = directory.join(relative);
            let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
            folder.map_err(|error| unwritable(&path, &error))?;
            OutputFile::create(&path)?.write(text.after.as_bytes())?;
        }
    }
    let screen = &context.screen;
    let mut text = match screen.format {
        Format::Json => screen.json(&report(&fitted, &differing))?,
        _ => shown(&fitted, screen),
    };
    if screen.format != Format::Json {
        text += &format!("\n{:.0} s on {} threads.\n", start.elapsed().as_secs_f64(), effort.threads);
        if options.check && differing.is_empty() {
            text += "The result is what the program ships with, byte for byte.\n";
        }
        if options.check {
            for one in &differing {
                text += &screen.heading(&format!("{} differs", one.file));
                text += &screen.verbatim(&difference(one));
            }
        }
    }
    context.screen.emit(&text)?;
    let fails = options.check && !differing.is_empty();
    Ok(if fails { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// A profile before and after the fit.
struct Text {
    file: String,
    before: String,
    after: String,
}

fn texts(library: &Library, fitted: &Fitted) -> Result<Vec<Text>, Failure> {
    let mut texts = Vec::new();
    for file in write::files(fitted) {
        let parts: Vec<&str> = file.trim_end_matches(".toml").rsplit('/').collect();
        let category = Category::ALL.into_iter().find(|category| parts.get(1) == Some(&category.directory()));
        let (Some(category), Some(name)) = (category, parts.first()) else {
            return Err(Failure::input(
                format!("evidence/fit.toml frees numbers of `{file}`, which is not a profile"),
                "name a file as in `profiles/devices/NAME.toml`",
            ));
        };
        let before = library.source(category, name)?.to_string();
        let after = write::write(&before, fitted, &file)
            .map_err(|error| Failure::input(error.to_string(), "correct evidence/fit.toml or the profile"))?;
        texts.push(Text { file, before, after });
    }
    Ok(texts)
}

/// The lines that differ; the fit changes lines and never their number.
fn difference(text: &Text) -> String {
    let lines = text.before.lines().zip(text.after.lines()).filter(|(before, after)| before != after);
    lines.map(|(before, after)| format!("- {before}\n+ {after}\n")).collect()
}

fn interval(one: &FittedParameter, interval: &ParameterInterval) -> String {
    format!("{} to {}", one.parameter.written(interval.low), one.parameter.written(interval.high))
}

fn counts(fitted: &Fitted) -> String {
    let moved =
        fitted.rows.iter().filter(|row| row.left_out != LeftOut::Taken && !row.moved_by.is_empty()).count();
    let within = fitted.rows.iter().filter(|row| row.within).count();
    format!(
        "{} free parameters, {} rows that they move, {} more rows taken as measured; {within} of {} rows within \
         their tolerance.\n{} of {} starts end at the same minimum, cost {:.3}.\n",
        fitted.parameters.len(),
        moved,
        fitted.rows.len() - moved,
        fitted.rows.len(),
        fitted.same_minimum,
        fitted.starts,
        fitted.cost
    )
}

fn left_out(row: &FittedRow) -> String {
    match &row.left_out {
        LeftOut::NotAsked => "-".to_string(),
        LeftOut::Taken => "taken as measured".to_string(),
        LeftOut::Alone(names) => format!("it alone identifies {}", names.join(", ")),
        LeftOut::Predicted { error, .. } => signed(100.0 * error, 1),
    }
}

fn shown(fitted: &Fitted, screen: &Screen) -> String {
    let mut text = counts(fitted);
    text += &screen.heading("Parameters");
    let rows = fitted.parameters.iter().map(|one| {
        let assumed = match one.free.bounded_by.is_empty() {
            true => "-".to_string(),
            false => one.free.bounded_by.join(", "),
        };
        vec![
            TableCell::Strong(one.parameter.name()),
            TableCell::Number(one.parameter.written(one.value)),
            TableCell::Name(interval(one, &one.alone)),
            TableCell::Text(one.alone.rows.join(" ")),
            TableCell::Name(interval(one, &one.free)),
            TableCell::Text(one.free.rows.join(" ")),
            TableCell::Text(assumed),
        ]
    });
    let header = [
        "parameter",
        "value",
        "alone",
        "held by",
        "others free",
        "identified by",
        "bounded by assumption on",
    ];
    text += &screen.table(&header, rows.collect());
    text += &screen.heading("Rows");
    let rows = fitted.rows.iter().map(|row| {
        vec![
            TableCell::Strong(row.row.id.clone()),
            TableCell::Name(
                row.row.published.map_or_else(String::new, |claim| format!("{claim} {}", row.row.unit)),
            ),
            TableCell::Name(fixed(row.predicted, 3)),
            TableCell::Name(format!(
                "{}{}",
                signed(100.0 * row.error, 1),
                if row.within { "" } else { " outside" }
            )),
            TableCell::Text(left_out(row)),
        ]
    });
    text += &screen.table(&["row", "published", "fitted", "error", "left out"], rows.collect());
    for (part, whole) in &fitted.through {
        text += &format!("{part} enters through {whole}.\n");
    }
    for (row, reason) in &fitted.set_aside {
        text += &format!("One end of {row} is set aside: {reason}.\n");
    }
    if let Some(median) = fitted.left_out_median {
        let predicted = fitted.rows.iter().filter(|row| matches!(row.left_out, LeftOut::Predicted { .. }));
        text += &format!(
            "Left out with those alike, the {} rows whose parameters stay identified have a median error of {:.1}%.\n",
            predicted.count(),
            100.0 * median
        );
    }
    text
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    free_parameters: usize,
    rows_read: usize,
    starts: usize,
    starts_at_the_same_minimum: usize,
    cost: f64,
    left_out_median_error: Option<f64>,
    parameters: Vec<ParameterReport>,
    rows: Vec<RowReport>,
    differs_from_profiles: Vec<String>,
}

#[derive(Serialize)]
struct ParameterReport {
    name: String,
    file: String,
    key: String,
    also: Vec<String>,
    value: String,
    alone: IntervalReport,
    others_free: IntervalReport,
}

#[derive(Serialize)]
struct IntervalReport {
    low: String,
    high: String,
    rows: Vec<String>,
    bounded_by: Vec<String>,
}

#[derive(Serialize)]
struct RowReport {
    id: String,
    unit: String,
    fitted: f64,
    error: f64,
    within: bool,
    moved_by: Vec<String>,
    left_out_error: Option<f64>,
    alone_identifies: Vec<String>,
}

fn report(fitted: &Fitted, differing: &[&Text]) -> Report {
    let ends = |one: &FittedParameter, interval: &ParameterInterval| IntervalReport {
        low: one.parameter.written(interval.low),
        high: one.parameter.written(interval.high),
        rows: interval.rows.clone(),
        bounded_by: interval.bounded_by.clone(),
    };
    Report {
        schema_version: SCHEMA_VERSION,
        free_parameters: fitted.parameters.len(),
        rows_read: fitted.rows.len(),
        starts: fitted.starts,
        starts_at_the_same_minimum: fitted.same_minimum,
        cost: round(fitted.cost),
        left_out_median_error: fitted.left_out_median.map(round),
        parameters: fitted
            .parameters
            .iter()
            .map(|one| ParameterReport {
                name: one.parameter.name(),
                file: one.parameter.place.file.clone(),
                key: one.parameter.place.key.clone(),
                also: one.parameter.also.iter().map(|place| place.name()).collect(),
                value: one.parameter.written(one.value),
                alone: ends(one, &one.alone),
                others_free: ends(one, &one.free),
            })
            .collect(),
        rows: fitted
            .rows
            .iter()
            .map(|row| RowReport {
                id: row.row.id.clone(),
                unit: row.row.unit.clone(),
                fitted: round(row.predicted),
                error: round(row.error),
                within: row.within,
                moved_by: row.moved_by.clone(),
                left_out_error: match row.left_out {
                    LeftOut::Predicted { error, .. } => Some(round(error)),
                    _ => None,
                },
                alone_identifies: match &row.left_out {
                    LeftOut::Alone(names) => names.clone(),
                    _ => Vec::new(),
                },
            })
            .collect(),
        differs_from_profiles: differing.iter().map(|text| text.file.clone()).collect(),
    }
}
