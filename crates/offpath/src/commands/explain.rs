//! `offpath explain`: the experiment behind an evidence row, and why its prediction is what it is.

use super::Context;
use super::reproduce::{figure, known, refused, reproduced, row_name, rows};
use crate::failure::Failure;
use crate::output::{Format, SCHEMA_VERSION, TableCell, fixed, round, signed};
use crate::progress::Progress;
use clap::Args;
use offpath::evidence::{Bench, Inside, Line, Measurement};
use serde::Serialize;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath explain W072     the latency of a 64 B READ on path 1, term by term
  offpath explain W003     how much faster path 2 is, place by place, and what binds";

/// Show the experiment behind a published row, the stations involved, and why it comes out so
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The row, as in `W003`
    #[arg(value_parser = row_name)]
    row: String,
}

#[derive(Serialize)]
struct PlaceReport {
    place: String,
    value: f64,
    own: Option<f64>,
    against: Vec<f64>,
    binding_station: Option<String>,
    expected: Option<f64>,
}

#[derive(Serialize)]
struct MovedReport {
    number: String,
    change_percent: f64,
}

#[derive(Serialize)]
struct PartReport {
    name: String,
    value: f64,
    unit: &'static str,
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    id: String,
    kind: &'static str,
    role: &'static str,
    source: String,
    states: String,
    unit: String,
    published: Option<String>,
    tolerance_percent: f64,
    predicted: Option<f64>,
    low: Option<f64>,
    high: Option<f64>,
    error: Option<f64>,
    within: Option<bool>,
    reason: String,
    experiment: Option<String>,
    places: Vec<PlaceReport>,
    parts: Vec<PartReport>,
    moved_by: Vec<MovedReport>,
    null_error_links: Option<f64>,
    null_error_nearest_row: Option<f64>,
    nearest_row: Option<String>,
    alike: Vec<String>,
    fitted_numbers: Vec<String>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let rows = rows();
    known(std::slice::from_ref(&options.row), &rows)?;
    let progress = Progress::endless("predicting the row");
    let seen = reproduced(context, std::slice::from_ref(&options.row), None)?;
    let line = seen.lines.iter().find(|line| line.row.id == options.row).expect("it is one of the rows");
    let library = context.system.library()?;
    let bench = Bench::new(library).under(context.system.overlay.clone());
    let inside = match &line.row.experiment {
        Some(experiment) => bench.inside(&experiment.plain).map_err(refused)?,
        None => Inside::Nothing,
    };
    let fitted = fitted_numbers(&bench, line)?;
    drop(progress);
    let screen = &context.screen;
    let text = match screen.format {
        Format::Json => screen.json(&report(line, &inside, fitted))?,
        _ => page(line, &inside, &fitted, context),
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The numbers of the profile that name the row as their evidence.
fn fitted_numbers(bench: &Bench, line: &Line) -> Result<Vec<String>, Failure> {
    let Some(experiment) = &line.row.experiment else { return Ok(Vec::new()) };
    let router = bench.router_of(&experiment.plain).map_err(refused)?;
    let numbers = router.system().numbers.iter().filter(|(_, number)| number.rows.contains(&line.row.id));
    Ok(numbers.map(|(name, number)| format!("{name} = {}", number.value)).collect())
}

/// The places that were measured, before the sweep is reduced to the ones that count.
fn places(outcome: &Measurement) -> Vec<PlaceReport> {
    let whole = outcome.points.len() == outcome.own.len();
    let shown = if whole { &outcome.points } else { &outcome.own };
    shown
        .iter()
        .enumerate()
        .map(|(index, point)| PlaceReport {
            place: point.place.clone(),
            value: round(point.value),
            own: (whole && !outcome.against.is_empty()).then(|| round(outcome.own[index].value)),
            against: outcome.compared[index].iter().map(|value| round(*value)).collect(),
            binding_station: outcome.own[index].binding.clone(),
            expected: outcome.expected.get(index).copied().map(round),
        })
        .collect()
}

fn parts(inside: &Inside) -> Vec<PartReport> {
    let list = |parts: &[(String, f64)], scale: f64, unit| {
        parts
            .iter()
            .map(|(name, value)| PartReport { name: name.clone(), value: round(value * scale), unit })
            .collect()
    };
    match inside {
        Inside::Terms(terms) => list(terms, 1.0, "ns"),
        Inside::Stations(stations) => list(stations, 100.0, "% busy"),
        Inside::Nothing => Vec::new(),
    }
}

fn report(line: &Line, inside: &Inside, fitted: Vec<String>) -> Report {
    let (row, verdict) = (&line.row, line.verdict.as_ref());
    Report {
        schema_version: SCHEMA_VERSION,
        id: row.id.clone(),
        kind: row.kind.name(),
        role: row.role.name(),
        source: row.source.clone(),
        states: row.states.clone(),
        unit: row.unit.clone(),
        published: row.published.map(|claim| claim.to_string()),
        tolerance_percent: round(
            100.0
                * row
                    .tolerance
                    .unwrap_or_else(|| offpath::evidence::judge::tolerance(row.kind, row.published)),
        ),
        predicted: verdict.map(|v| round(v.predicted)),
        low: line.low.map(round),
        high: line.high.map(round),
        error: verdict.map(|v| round(v.error)),
        within: verdict.map(|v| v.within).or(line.configured.as_ref().map(|(_, agrees)| *agrees)),
        reason: row.reason.clone(),
        experiment: row.experiment.as_ref().map(|experiment| experiment.words().to_string()),
        places: line.outcome.as_ref().map_or_else(Vec::new, places),
        parts: parts(inside),
        moved_by: line
            .moved_by
            .iter()
            .map(|(number, change)| MovedReport { number: number.clone(), change_percent: round(*change) })
            .collect(),
        null_error_links: line.null_links.map(round),
        null_error_nearest_row: line.null_nearest.as_ref().map(|(error, _)| round(*error)),
        nearest_row: line.null_nearest.as_ref().map(|(_, row)| row.clone()),
        alike: row.alike.clone(),
        fitted_numbers: fitted,
    }
}

fn page(line: &Line, inside: &Inside, fitted: &[String], context: &Context) -> String {
    let (row, screen) = (&line.row, &context.screen);
    let unit = |value: f64| format!("{} {}", figure(value), row.unit).trim_end().to_string();
    let mut text = format!("{} ({}, {}): {}\n", row.id, row.source, row.kind.name(), row.states);
    if let Some(claim) = row.published {
        text += &format!("Published: {} {}\n", claim, row.unit);
    }
    if let Some(number) = &row.number {
        text += &format!("Published: {} of {} is {}\n", number.name, number.device, number.value);
    }
    if let Some((held, agrees)) = &line.configured {
        text += &format!("The profile holds {held}: {}.\n", if *agrees { "the same" } else { "it differs" });
    }
    if let Some(verdict) = &line.verdict {
        let interval = match (line.low, line.high) {
            (Some(low), Some(high)) if high - low > 1e-9 * high.abs() => {
                // A row that was fitted, restates another or says where something begins teaches no error and gets none.
                // A run on the twin is not repeated for every draw.
                let made_of = match (line.widened, line.bare.is_some()) {
                    (true, true) => "open mechanisms and past errors in it",
                    (true, false) => "of past errors alone: nothing of it is drawn",
                    (false, _) => "of the profiles' numbers and open mechanisms alone",
                };
                format!(", 80% interval {} to {} ({made_of})", figure(low), figure(high))
            }
            _ => String::new(),
        };
        text += &format!("Predicted: {}{interval}", unit(verdict.predicted));
        if verdict.from != verdict.to {
            text += &format!("; over the sweep {} to {}", figure(verdict.from), figure(verdict.to));
        }
        let tolerance =
            row.tolerance.unwrap_or_else(|| offpath::evidence::judge::tolerance(row.kind, row.published));
        text += &format!(
            ".\nError {} with a tolerance of {}%: {}.\n",
            super::reproduce::percent(verdict.error),
            figure(100.0 * tolerance),
            if verdict.within { "within" } else { "it misses" }
        );
    }
    text += &format!("Role: {}", row.role.name().replace('_', " "));
    text += &if row.reason.is_empty() { ".\n".to_string() } else { format!("; {}.\n", row.reason) };
    if let Some(what) = &row.measured_here {
        text += &format!("Its prediction rests on what was measured here: {what}.\n");
    }
    if let Some(why) = row.no_prediction(&line.restates) {
        text += &format!("It counts as no prediction: {why}.\n");
    }
    if !fitted.is_empty() {
        text += &format!("Numbers that name it as their evidence: {}.\n", fitted.join(", "));
    }
    if let Some(experiment) = &row.experiment {
        text += &screen.heading("Experiment");
        text += &format!("{}\n", experiment.words());
    }
    let places = line.outcome.as_ref().map_or_else(Vec::new, places);
    if !places.is_empty() {
        text += &screen.heading("Place by place");
        let compared = places.iter().any(|place| place.own.is_some());
        let expected = places.iter().any(|place| place.expected.is_some());
        let mut header = vec!["place", "value"];
        if compared {
            header.extend(["measured", "against"]);
        }
        if expected {
            header.push("expected");
        }
        header.push("binds");
        let rows = places.iter().map(|place| {
            let mut cells =
                vec![TableCell::Text(place.place.clone()), TableCell::Number(figure(place.value))];
            if compared {
                let against: Vec<String> = place.against.iter().map(|value| figure(*value)).collect();
                cells.push(TableCell::Number(place.own.map_or_else(|| "-".to_string(), figure)));
                cells.push(TableCell::Number(against.join(", ")));
            }
            if expected {
                cells.push(TableCell::Number(place.expected.map_or_else(|| "-".to_string(), figure)));
            }
            cells.push(TableCell::Name(place.binding_station.clone().unwrap_or_else(|| "-".to_string())));
            cells
        });
        text += &screen.table(&header, rows.collect());
    }
    let inner = parts(inside);
    if !inner.is_empty() {
        text += &screen.heading(match inside {
            Inside::Terms(_) => "The latency at the first place, term by term",
            _ => "The stations at the first place, at its greatest rate",
        });
        let rows = inner.iter().map(|part| {
            vec![
                TableCell::Text(part.name.clone()),
                TableCell::Number(format!("{} {}", fixed(part.value, 1), part.unit)),
            ]
        });
        text += &screen.table(&["part", ""], rows.collect());
    }
    if !line.moved_by.is_empty() {
        text += &screen.heading("Numbers whose interval moves it most");
        let rows =
            line.moved_by.iter().take(6).map(|(name, change)| {
                vec![TableCell::Text(name.clone()), TableCell::Number(signed(*change, 1))]
            });
        text += &screen.table(&["number", "change"], rows.collect());
    }
    let nearest = line
        .null_nearest
        .as_ref()
        .map(|(error, id)| format!("taking {id}, the nearest row, {}", signed(100.0 * error, 1)));
    let links = line.null_links.map(|error| format!("links alone {}", signed(100.0 * error, 1)));
    let null: Vec<String> = [links, nearest].into_iter().flatten().collect();
    if !null.is_empty() {
        text += &format!("\nErrors of the null models: {}.\n", null.join(", "));
    }
    if !row.alike.is_empty() {
        text += &format!("Rows that state nearly the same: {}.\n", row.alike.join(", "));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Bench, places};
    use offpath::evidence::experiment::Compare;
    use offpath::profile::Library;

    /// What stands in a line of the table is what its value is made of, also where a row runs more than one block.
    #[test]
    fn every_place_of_a_row_with_blocks_stands_beside_what_it_is_compared_with() {
        let bench = Bench::new(Library::builtin());
        let mut compared = 0;
        for row in super::rows() {
            let Some(experiment) = row.experiment.filter(|one| !one.also.is_empty()) else { continue };
            if !matches!(experiment.compare, Compare::Ratio | Compare::Change) {
                continue;
            }
            let outcome = bench.run(&experiment).unwrap_or_else(|error| panic!("{}: {error}", row.id));
            for place in places(&outcome) {
                let ratio = place.own.expect("it is compared") / experiment.which.of(&place.against);
                let (is, room) = match experiment.compare {
                    Compare::Change => (100.0 * (ratio - 1.0), 0.01),
                    _ => (ratio, 1e-4 * ratio),
                };
                assert!(
                    (is - place.value).abs() <= room,
                    "{} at {}: {} of {:?} is not {}",
                    row.id,
                    place.place,
                    place.own.expect("it is compared"),
                    place.against,
                    place.value
                );
                compared += 1;
            }
        }
        assert!(compared > 30, "only {compared} places were compared");
    }
}
