//! `offpath reproduce`: published rows beside their predictions.

mod html;

use super::Context;
use crate::failure::{Failure, nearest};
use crate::output::{Format, OutputFile, SCHEMA_VERSION, Screen, TableCell, round, short, signed};
use crate::progress::Progress;
use clap::Args;
use offpath::evidence::{
    Beside, Count, ExperimentError, Falsified, Line, Medians, Row, RowRole, Summary, ValueKind, VariantScore,
    Wrong, falsified, figures, missed, reproduce, residual, residuals, shipped, shipped_log, summary,
    variants,
};
use serde::Serialize;
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

/// Everything that the evidence says, for the screen, the page and the report.
pub struct Reproduced {
    /// The rows with their outcomes.
    pub lines: Vec<Line>,
    /// The score.
    pub summary: Summary,
    /// The variants of open mechanisms; empty where one of them is in force.
    pub variants: Vec<VariantScore>,
    /// The score with every fitted number wrong; empty where a variant is in force.
    pub falsified: Vec<Falsified>,
}

/// One row; the JSON has these keys in this order.
#[derive(Serialize)]
struct RowReport {
    id: String,
    kind: &'static str,
    role: &'static str,
    /// The part of the score that it counts in.
    counts_as: Option<&'static str>,
    /// The fitted rows that it restates.
    restates: Vec<String>,
    source: String,
    states: String,
    unit: String,
    published: Option<f64>,
    published_as: Option<String>,
    predicted: Option<f64>,
    predicted_from: Option<f64>,
    predicted_to: Option<f64>,
    /// The place's value that the interval is of, where one is predicted over a sweep.
    interval_of: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    low_95: Option<f64>,
    high_95: Option<f64>,
    error: Option<f64>,
    null_error: Option<f64>,
    within: Option<bool>,
    scored: bool,
    place: Option<String>,
    most_moved_by: Option<String>,
    reason: String,
}

#[derive(Serialize)]
struct CountReport {
    within: usize,
    of: usize,
    /// Null of none.
    percent: Option<f64>,
}

#[derive(Serialize)]
struct SummaryReport {
    predicted: CountReport,
    measured: CountReport,
    covered_80: CountReport,
    covered_95: CountReport,
    with_interval: usize,
    covered_80_by_numbers: CountReport,
    measured_here: CountReport,
    /// What the nearest published row would have within tolerance.
    nearest_row: CountReport,
    orders: CountReport,
    restated: CountReport,
    fitted: CountReport,
    fitted_covered_80: CountReport,
    fitted_with_interval: usize,
    exact: CountReport,
    configured: CountReport,
    conflicts: usize,
    not_modelled: usize,
    not_modelled_percent: f64,
    settings: usize,
    median_errors: MediansReport,
    median_half_width_80_share: f64,
}

/// Medians over the rows that both answer; null where there are none.
#[derive(Serialize)]
struct BesideReport {
    rows: usize,
    model: Option<f64>,
    other: Option<f64>,
    nearer: usize,
    further: usize,
    alike: usize,
    covered_80: usize,
    covered_80_other: usize,
    half_width_80_share: Option<f64>,
    half_width_80_share_other: Option<f64>,
}

#[derive(Serialize)]
struct MediansReport {
    rows: usize,
    model: Option<f64>,
    nearest_row: BesideReport,
    nearest_row_where_links_speak: BesideReport,
    nearest_row_elsewhere: BesideReport,
    links_alone: BesideReport,
    no_change: BesideReport,
    /// No difference where two things are compared, links alone elsewhere.
    simple: BesideReport,
    no_change_or_nearest_row: BesideReport,
}

fn beside(of: Beside) -> BesideReport {
    let Beside { rows, model, other, nearer, further, alike, covered, covered_other, reach, reach_other } =
        of;
    let told = |value: f64| (rows > 0).then(|| round(value));
    BesideReport {
        rows,
        model: told(model),
        other: told(other),
        nearer,
        further,
        alike,
        covered_80: covered,
        covered_80_other: covered_other,
        half_width_80_share: told(reach),
        half_width_80_share_other: told(reach_other),
    }
}

fn medians(of: Medians) -> MediansReport {
    MediansReport {
        rows: of.rows,
        model: (of.rows > 0).then(|| round(of.model)),
        nearest_row: beside(of.nearest),
        nearest_row_where_links_speak: beside(of.nearest_where_links),
        nearest_row_elsewhere: beside(of.nearest_elsewhere),
        links_alone: beside(of.links),
        no_change: beside(of.no_change),
        simple: beside(of.simple),
        no_change_or_nearest_row: beside(of.no_change_or_nearest),
    }
}

#[derive(Serialize)]
struct FalsifiedReport {
    times: f64,
    /// The draw of which numbers are too great and which too small; null where all are wrong alike.
    draw: Option<u64>,
    measured: CountReport,
    moved: CountReport,
    moved_before: CountReport,
    median_error: f64,
    fitted: CountReport,
}

#[derive(Serialize)]
struct VariantReport {
    overlay: String,
    description: String,
    /// Measured predictions within their tolerance with it.
    measured: CountReport,
    refuted_by: Vec<String>,
    favoured_by: Vec<String>,
    no_predictions_against: Vec<String>,
    no_predictions_for: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    /// Of all rows; absent where only some were run.
    summary: Option<SummaryReport>,
    /// The score with every fitted number wrong by a factor.
    falsified: Vec<FalsifiedReport>,
    rows: Vec<RowReport>,
    variants: Vec<VariantReport>,
}

/// What an error leads to.
pub fn refused(error: ExperimentError) -> Failure {
    Failure::input(
        error.to_string(),
        "the rows rest on bluefield2, connectx6, the hosts srv and cli and the testbeds rack and rack-cli; \
         a profile of your own has to keep their names",
    )
}

/// The evidence rows; refused files are a bug, since they are built in.
pub fn rows() -> Vec<Row> {
    shipped().unwrap_or_else(|error| panic!("the built-in evidence is refused: {error}"))
}

/// Runs the rows that `only` names, or all, under the options' profiles and overlays.
pub fn reproduced(context: &Context, only: &[String], threads: Option<u16>) -> Result<Reproduced, Failure> {
    let system = &context.system;
    if !system.set.is_empty() || system.testbed.is_some() || system.mode.is_some() {
        return Err(Failure::input(
            "every row says which testbed, mode and settings it was measured in, so `--set`, `--testbed` and `--mode` do not apply",
            "change a copy of the profile and name its directory by `--profiles`, or give a mechanism by `--overlay`",
        ));
    }
    let library = system.library()?;
    let lines =
        reproduce(&library, &rows(), only, &system.overlay, self::threads(threads)).map_err(refused)?;
    // A variant beside another one would say nothing about either.
    let alone = system.overlay.is_empty() && only.is_empty();
    let wrong: &[Wrong] = if alone { &FALSIFIED } else { &[] };
    let threads = self::threads(threads);
    let variants = if alone { variants(&library, &lines, threads).map_err(refused)? } else { Vec::new() };
    let falsified = wrong.iter().map(|wrong| falsified(&library, &lines, *wrong, threads));
    let falsified = falsified.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(refused)?;
    Ok(Reproduced { summary: summary(&lines), lines, variants, falsified })
}

/// By what fitted numbers are wrong in the null that knows the profiles and nothing of the fit.
const FALSIFIED: [Wrong; 3] = [Wrong::Alike(1.5), Wrong::Alike(1.0 / 1.5), Wrong::Apart(1.5, 1)];

fn threads(asked: Option<u16>) -> usize {
    asked.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// A row's name as the evidence has it: in capitals.
pub fn row_name(given: &str) -> Result<String, std::convert::Infallible> {
    Ok(given.to_ascii_uppercase())
}

/// Refuses names that are no rows, with the nearest that is.
pub fn known(names: &[String], rows: &[Row]) -> Result<(), Failure> {
    for name in names {
        if rows.iter().all(|row| row.id != *name) {
            let ids: Vec<String> = rows.iter().map(|row| row.id.clone()).collect();
            let near =
                nearest(name, &ids).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
            return Err(Failure::input(
                format!("`{name}` is not an evidence row"),
                format!("{near}`offpath reproduce --all` lists them"),
            ));
        }
    }
    Ok(())
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    known(&options.rows, &rows())?;
    // The page's figures stand beside all rows.
    let only = if options.html.is_some() { &[] } else { options.rows.as_slice() };
    let page = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let residuals_file = options.residuals.as_deref().map(OutputFile::create).transpose()?;
    let progress = Progress::endless("predicting the published rows");
    let seen = reproduced(context, only, options.threads)?;
    let screen = &context.screen;
    if let Some(file) = page {
        progress.doing("drawing the figures");
        let overlays = &context.system.overlay;
        let figures = figures(&context.system.library()?, &seen.lines, overlays, threads(options.threads))
            .map_err(refused)?;
        file.write(html::page(&seen, &figures, overlays, screen).html().as_bytes())?;
    }
    if let Some(file) = residuals_file {
        file.write(residual::written(&residuals(&seen.lines), &missed(&seen.lines)).as_bytes())?;
    }
    drop(progress);
    let text = match screen.format {
        Format::Json => screen.json(&report(&seen, options))?,
        Format::Markdown => self::page(&seen, screen),
        Format::Table | Format::Csv => table(&seen, options, context),
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn report(seen: &Reproduced, options: &Options) -> Report {
    let chosen = |line: &&Line| options.rows.is_empty() || options.rows.contains(&line.row.id);
    let s = &seen.summary;
    let whole = options.rows.is_empty();
    let names = |moved: &[offpath::evidence::reproduce::MovedRow], predictions: bool| {
        moved.iter().filter(|m| m.is_prediction == predictions).map(|m| m.id.clone()).collect()
    };
    Report {
        schema_version: SCHEMA_VERSION,
        summary: whole.then(|| SummaryReport {
            predicted: count(s.measured + s.orders),
            measured: count(s.measured),
            covered_80: count(s.covered),
            covered_95: count(s.covered_wide),
            with_interval: s.with_interval,
            covered_80_by_numbers: count(s.covered_by_numbers),
            measured_here: count(s.measured_here),
            nearest_row: count(s.nearest_within),
            orders: count(s.orders),
            restated: count(s.restated),
            fitted: count(s.fitted),
            fitted_covered_80: count(s.covered_fitted),
            fitted_with_interval: s.fitted_with_interval,
            exact: count(s.exact),
            configured: count(s.configured),
            conflicts: s.conflicts,
            not_modelled: s.not_modelled,
            not_modelled_percent: round(100.0 * s.not_modelled as f64 / s.of_scored_kinds.max(1) as f64),
            settings: s.settings,
            median_errors: medians(s.errors),
            median_half_width_80_share: round(s.median_half_width),
        }),
        falsified: seen
            .falsified
            .iter()
            .map(|one| FalsifiedReport {
                times: round(match one.wrong {
                    Wrong::Alike(times) | Wrong::Apart(times, _) => times,
                }),
                draw: match one.wrong {
                    Wrong::Alike(_) => None,
                    Wrong::Apart(_, draw) => Some(draw),
                },
                measured: count(one.measured),
                moved: count(one.moved),
                moved_before: count(one.moved_before),
                median_error: round(one.median_error),
                fitted: count(one.fitted),
            })
            .collect(),
        rows: seen.lines.iter().filter(chosen).map(row_report).collect(),
        variants: seen
            .variants
            .iter()
            .map(|variant| VariantReport {
                overlay: variant.overlay.clone(),
                description: variant.description.clone(),
                measured: count(variant.measured),
                refuted_by: names(&variant.refuted_by, true),
                favoured_by: names(&variant.favoured_by, true),
                no_predictions_against: names(&variant.refuted_by, false),
                no_predictions_for: names(&variant.favoured_by, false),
            })
            .collect(),
    }
}

fn count(count: Count) -> CountReport {
    CountReport { within: count.within, of: count.of, percent: count.percent().map(round) }
}

fn row_report(line: &Line) -> RowReport {
    let (row, verdict) = (&line.row, line.verdict.as_ref());
    let within = match (&line.configured, verdict) {
        (Some((_, agrees)), _) => Some(*agrees),
        (None, Some(verdict)) => Some(verdict.within),
        (None, None) => None,
    };
    RowReport {
        id: row.id.clone(),
        kind: row.kind.name(),
        role: row.role.name(),
        counts_as: line.sort.map(offpath::evidence::Sort::name),
        restates: line.restates.clone(),
        source: row.source.clone(),
        states: row.states.clone(),
        unit: row.unit.clone(),
        published: verdict.and_then(|v| v.published).map(round),
        published_as: row.published.map(|claim| claim.to_string()),
        predicted: verdict.map(|v| round(v.predicted)),
        predicted_from: verdict.map(|v| round(v.from)),
        predicted_to: verdict.map(|v| round(v.to)),
        interval_of: interval_of(line).map(round),
        low: line.low.map(round),
        high: line.high.map(round),
        low_95: line.wide.map(|(low, _)| round(low)),
        high_95: line.wide.map(|(_, high)| round(high)),
        error: verdict.map(|v| round(v.error)),
        null_error: line.null_error().map(round),
        within,
        scored: row.scored,
        place: verdict.map(|v| v.place.clone()),
        most_moved_by: line.moved_by.first().map(|(name, _)| name.clone()),
        reason: row.reason.clone(),
    }
}

/// A value with enough digits to be told from its neighbours, or a dash.
pub fn figure(value: f64) -> String {
    match value {
        // A sweep that never gets there has no place.
        v if v >= 1e300 => "nowhere".to_string(),
        v if v.abs() >= 10_000.0 => format!("{v:.0}"),
        v => short(v),
    }
}

pub(super) fn percent(error: f64) -> String {
    match 100.0 * error {
        p if p.abs() >= 1000.0 => "far off".to_string(),
        p => signed(p, 1),
    }
}

/// How a row stands, in a word.
fn standing(line: &Line) -> &'static str {
    if let Some((_, agrees)) = &line.configured {
        return if *agrees { "same" } else { "differs" };
    }
    match (line.row.role, &line.verdict) {
        (RowRole::Conflict, _) => "conflict",
        (RowRole::NotModelled, _) => "not modelled",
        (RowRole::Setting, _) => "setting",
        (RowRole::Read, Some(verdict)) => {
            if verdict.within {
                "same"
            } else {
                "differs"
            }
        }
        (_, Some(verdict)) if verdict.within => "within",
        (_, Some(_)) => "MISSES",
        (_, None) => "-",
    }
}

const HEADER: [&str; 9] =
    ["row", "stands in", "published", "predicted", "interval", "error", "null error", "counts as", "is"];

/// What an interval is of where a sweep is predicted: the value of the one place that the row is judged by.
fn interval_of(line: &Line) -> Option<f64> {
    line.low.and(line.high)?;
    let verdict = line.verdict.as_ref()?;
    (verdict.from != verdict.to).then_some(verdict.predicted)
}

/// What [`interval_of`] means, below the tables.
const INTERVALS: &str = "Where a sweep is predicted, its interval is that of the one place that the row is judged by, whose \
     value stands behind it: `0.9 to 1.2 of 1.0`.";

fn entries(line: &Line) -> Vec<TableCell> {
    let (row, verdict) = (&line.row, line.verdict.as_ref());
    let dash = || "-".to_string();
    let unit = |text: String| if row.unit.is_empty() { text } else { format!("{text} {}", row.unit) };
    let predicted = match (&line.configured, verdict) {
        (Some((held, _)), _) => held.clone(),
        (None, Some(v)) if v.from == v.to || v.to >= 1e300 => figure(v.predicted),
        (None, Some(v)) => format!("{} to {}", figure(v.from), figure(v.to)),
        (None, None) => dash(),
    };
    let published = match (&row.number, row.published, verdict) {
        (Some(number), ..) => number.value.clone(),
        (None, Some(claim), _) => unit(claim.to_string()),
        (None, None, Some(_)) => "a formula".to_string(),
        (None, None, None) => dash(),
    };
    let interval = match (line.low, line.high) {
        (Some(low), Some(high)) if high - low > 1e-9 * high.abs() => {
            let of = interval_of(line).map_or_else(String::new, |value| format!(" of {}", figure(value)));
            format!("{} to {}{of}", figure(low), figure(high))
        }
        _ => dash(),
    };
    let name = if standing(line) == "MISSES" {
        TableCell::Strong(row.id.clone())
    } else {
        TableCell::Name(row.id.clone())
    };
    vec![
        name,
        TableCell::Text(row.source.clone()),
        TableCell::Text(published),
        TableCell::Text(predicted),
        TableCell::Text(interval),
        TableCell::Number(verdict.map_or_else(dash, |v| percent(v.error))),
        TableCell::Number(line.null_error().map_or_else(dash, percent)),
        TableCell::Name(
            line.sort.map_or_else(|| row.role.name().replace('_', " "), |sort| sort.name().to_string()),
        ),
        TableCell::Name(standing(line).to_string()),
    ]
}

fn score(seen: &Reproduced, screen: &Screen) -> String {
    let s = &seen.summary;
    let row = |what: &str, count: Count, goal: &str| {
        vec![
            TableCell::Text(what.to_string()),
            TableCell::Number(format!("{} of {}", count.within, count.of)),
            TableCell::Number(
                count.percent().map_or_else(|| "-".to_string(), |share| format!("{share:.1}%")),
            ),
            TableCell::Text(goal.to_string()),
        ]
    };
    let having = |count: Count, of: usize| Count { within: count.within, of };
    let share = 100.0 * s.not_modelled as f64 / s.of_scored_kinds.max(1) as f64;
    let mut rows = vec![
        row("predicted: measured numbers", s.measured, "75%"),
        row("- inside their 80% interval", s.covered, "75% to 90%"),
        row("- inside their 95% interval", s.covered_wide, "90% to 98%"),
        row("- inside 80%, of those that have an interval", having(s.covered, s.with_interval), ""),
        row("- inside 95%, of those that have an interval", having(s.covered_wide, s.with_interval), ""),
        row("- inside 80% intervals without past errors", s.covered_by_numbers, ""),
        row("- of them on times that were measured here", s.measured_here, ""),
        row("- the nearest published row instead", s.nearest_within, ""),
        row("predicted: orders and bounds", s.orders, "95%"),
        row("no predictions: restate others, or were given", s.restated, ""),
        row("fitted, or decided a number by hand", s.fitted, "90%"),
        row("- inside their 80% interval", s.covered_fitted, ""),
        row(
            "- inside 80%, of the fitted that have an interval",
            having(s.covered_fitted, s.fitted_with_interval),
            "",
        ),
        row("read from a profile", s.configured, "all"),
        row("formulas, limits and counts, without headers", s.exact, "all"),
    ];
    if s.measured_here.of == 0 {
        rows.retain(|row| !matches!(&row[0], TableCell::Text(what) if what.contains("measured here")));
    }
    let mut text = screen.table(&["rows", "within tolerance", "", "goal"], rows);
    text += &format!(
        "\n{} rows are not modelled ({share:.1}% of the scored kinds \
         among the rows that are loaded; docs/evidence.md counts the others), {} contradict others, {} are settings of the \
         authors' experiments. Half of the 80% intervals reach a factor of {:.2} or more to either side.\n\nMedian \
         error of the {} predicted measured numbers that are no places: {:.1}%. Beside another model both \
         medians are over the rows that both answer; alike is to half a percent. Inside and reach are of 80% intervals, \
         offpath's before the other's, which are made of its own errors on these rows as offpath's are.\n\n",
        s.not_modelled,
        s.conflicts,
        s.settings,
        1.0 + s.median_half_width,
        s.errors.rows,
        100.0 * s.errors.model,
    );
    text += &beside_table(&s.errors, screen);
    if !seen.falsified.is_empty() {
        text += "\nWith every fitted number of the profiles wrong. Where that is as good as the profiles, the predictions do \
                 not test the fit: they rest on links, headers and the structure.\n\n";
        text += &wrong_table(seen, screen);
    }
    text
}

fn beside_table(errors: &Medians, screen: &Screen) -> String {
    let row = |name: &str, of: Beside| {
        let median = |value: f64| match of.rows {
            0 => TableCell::Number("-".to_string()),
            _ => TableCell::Number(format!("{:.1}%", 100.0 * value)),
        };
        let number = |count: usize| TableCell::Number(count.to_string());
        vec![
            TableCell::Text(name.to_string()),
            number(of.rows),
            median(of.model),
            median(of.other),
            number(of.nearer),
            number(of.further),
            number(of.alike),
            TableCell::Text(format!("{} : {}", of.covered, of.covered_other)),
            TableCell::Text(format!("{:.2} : {:.2}", 1.0 + of.reach, 1.0 + of.reach_other)),
        ]
    };
    let rows = vec![
        row("the nearest published row", errors.nearest),
        row("- where links alone speak", errors.nearest_where_links),
        row("- elsewhere", errors.nearest_elsewhere),
        row("links alone", errors.links),
        row("no difference, where two things are compared", errors.no_change),
        row("what needs no card: no difference, else links alone", errors.simple),
        row("no difference, else the nearest published row", errors.no_change_or_nearest),
    ];
    screen.table(
        &[
            "median errors beside",
            "rows",
            "offpath",
            "the other",
            "nearer",
            "further off",
            "alike",
            "inside 80%",
            "reach",
        ],
        rows,
    )
}

fn wrong_table(seen: &Reproduced, screen: &Screen) -> String {
    let rows = seen.falsified.iter().map(|one| {
        let by = match one.wrong {
            Wrong::Alike(times) => format!("all times {}", short(times)),
            Wrong::Apart(times, draw) => format!("each times {} or its inverse (draw {draw})", short(times)),
        };
        let of = |count: Count| TableCell::Number(format!("{} of {}", count.within, count.of));
        let error = TableCell::Number(format!("{:.1}%", 100.0 * one.median_error));
        vec![
            TableCell::Text(by),
            of(one.measured),
            of(one.moved),
            of(one.moved_before),
            error,
            of(one.fitted),
        ]
    });
    let head =
        ["fitted numbers", "measured", "of those moved", "by the profiles", "median error", "fitted rows"];
    screen.table(&head, rows.collect())
}

fn variant_text(seen: &Reproduced, screen: &Screen) -> String {
    let mut text = String::new();
    for variant in &seen.variants {
        let list = |moved: &[offpath::evidence::reproduce::MovedRow], predictions: bool| {
            let words: Vec<String> = moved
                .iter()
                .filter(|m| m.is_prediction == predictions)
                .map(|m| {
                    format!(
                        "{} ({} {} published, {} becomes {})",
                        m.id,
                        m.published,
                        m.unit,
                        figure(m.without),
                        figure(m.with)
                    )
                })
                .collect();
            if words.is_empty() { "no row".to_string() } else { words.join("; ") }
        };
        let start = if screen.format == Format::Markdown { "- " } else { "" };
        text += &format!(
            "{start}{} ({}): {} of {} measured predictions within tolerance with it, {} without. Against it: {}; for \
             it: {}. Of the rows that were fitted or decided between the two, which cannot speak for the one that \
             they chose, against it: {}; for it: {}.\n",
            variant.overlay,
            variant.description,
            variant.measured.within,
            variant.measured.of,
            seen.summary.measured.within,
            list(&variant.refuted_by, true),
            list(&variant.favoured_by, true),
            list(&variant.refuted_by, false),
            list(&variant.favoured_by, false),
        );
    }
    text
}

fn table(seen: &Reproduced, options: &Options, context: &Context) -> String {
    let screen = &context.screen;
    let shown: Vec<&Line> = seen
        .lines
        .iter()
        .filter(|line| match (options.rows.is_empty(), options.all) {
            (false, _) => options.rows.contains(&line.row.id),
            (true, true) => true,
            (true, false) => {
                line.scored() == Some(false)
                    || standing(line) == "differs"
                    || (line.row.kind == ValueKind::Formula && standing(line) == "MISSES")
            }
        })
        .collect();
    let mut text = String::new();
    if !context.system.overlay.is_empty() {
        text += &format!("With {}:\n\n", context.system.overlay.join(", "));
    }
    if options.rows.is_empty() {
        text += &score(seen, screen);
        text += &screen.heading(if options.all { "Every row" } else { "Rows that miss" });
    }
    text += &screen.table(&HEADER, shown.iter().map(|line| entries(line)).collect());
    if options.rows.is_empty() && !seen.variants.is_empty() {
        text += &screen.heading("Variants of open mechanisms");
        text += &variant_text(seen, screen);
    }
    if shown.iter().any(|line| interval_of(line).is_some()) {
        text += &format!("\n{INTERVALS}\n");
    }
    text += "\n`offpath explain ROW` shows the experiment behind a row.";
    text += if options.all || !options.rows.is_empty() { "\n" } else { " `--all` shows every row.\n" };
    text
}

/// The page that stands in docs/validation.md.
fn page(seen: &Reproduced, screen: &Screen) -> String {
    let mut text = "# Validation: published rows beside their predictions\n\n\
        `offpath reproduce --format markdown` writes this page; a test compares it. `offpath explain ROW` shows the \
        experiment behind a row, and [evidence.md](evidence.md) says how rows are judged, and which are not.\n\n"
        .to_string();
    text += &score(seen, screen);
    text += &screen.heading("Variants of open mechanisms");
    text += "Where the papers leave a mechanism open, both are variants of the profile. Rows that hold under one \
             alone:\n\n";
    text += &variant_text(seen, screen);
    text += &screen.heading("What mispredictions taught");
    let log = shipped_log().unwrap_or_else(|error| panic!("the built-in log is refused: {error}"));
    for entry in &log {
        let state = if entry.open { "still missed" } else { "holds by now" };
        text += &format!("- **{}** ({state}). {} {}\n", entry.rows.join(", "), entry.missed, entry.taught);
    }
    text += &screen.heading("Rows that miss");
    text += &format!("{INTERVALS}\n\n");
    let missed = seen.lines.iter().filter(|line| line.scored() == Some(false));
    text += &screen.table(&HEADER, missed.map(entries).collect());
    text += &screen.heading("Every row");
    text += &screen.table(&HEADER, seen.lines.iter().map(entries).collect());
    text += &screen.heading("What the rows say, and why some are not predicted");
    let rows = seen.lines.iter().map(|line| {
        vec![
            TableCell::Name(line.row.id.clone()),
            TableCell::Text(line.row.states.replace('|', " or ")),
            TableCell::Text(if line.row.reason.is_empty() {
                "-".to_string()
            } else {
                line.row.reason.clone()
            }),
        ]
    });
    text += &screen.table(&["row", "states", "note"], rows.collect());
    text
}
