//! What `offpath explain` answers: the experiment behind a published row, and why its prediction is what it is.

mod text;

use crate::SCHEMA_VERSION;
use crate::rows::{known, library, refused, rows, threads};
use offpath_evidence::judge::allowed;
use offpath_evidence::row::ProfileValue;
use offpath_evidence::{Bench, Inside, Line, Measurement, reproduce};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::round;
use serde::Serialize;

/// A published row to be explained.
#[derive(Clone, Debug, Default)]
pub struct ExplainRequest {
    /// The row, as in `W072`.
    pub row: String,
    /// The profiles and the mechanisms; the row says itself which testbed, mode and settings it was measured in.
    pub system: SystemOptions,
}

/// The experiment behind one published row
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ExplainAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The row's name in evidence/wei.toml.
    pub id: String,
    /// What sort of claim it is.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::KINDS)))]
    pub kind: &'static str,
    /// What the row is used for (docs/evidence.md).
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::ROLES)))]
    pub role: &'static str,
    /// Where the number stands.
    pub source: String,
    /// What was measured, in our words.
    pub states: String,
    /// Unit of published, predicted, low and high, and of what stands at places.
    pub unit: String,
    /// The published value as it is claimed; null where it is a number of a profile, and of a formula.
    pub published: Option<String>,
    /// The row's tolerance.
    pub tolerance_percent: f64,
    /// The prediction that decides: the worst place of the sweep.
    pub predicted: Option<f64>,
    /// Lower end of its 80% interval; null where it has none.
    pub low: Option<f64>,
    /// Upper end of it.
    pub high: Option<f64>,
    /// Prediction over published value less 1, as a share, changes in percent as ratios; 0 where an order or a bound
    /// holds.
    pub error: Option<f64>,
    /// Whether it is within the tolerance; null where there is nothing to hold it to.
    pub within: Option<bool>,
    /// Why the row is a conflict or not modelled, or what to know about its experiment.
    pub reason: String,
    /// The experiment as the evidence file writes it.
    pub experiment: Option<String>,
    /// The shipped design of which its step lists are predicted, where `offpath plan` follows the code that the design names and
    /// has other figures; null elsewhere.
    pub design_by_steps: Option<String>,
    /// What was measured at each place of the sweep: the compared value, the first experiment's own, those it is
    /// compared with, what binds.
    pub places: Vec<PlaceAnswer>,
    /// What the first place is made of: terms of a latency in ns, or the share of its time that each station is busy.
    pub parts: Vec<PartAnswer>,
    /// Numbers whose interval moves the prediction, the strongest first.
    pub moved_by: Vec<MovedAnswer>,
    /// Numbers that, each alone at an end of its interval, turn whether it is within the tolerance.
    pub turned_by: Vec<String>,
    /// Error of the model that has links alone, as a share; null where links have nothing to say.
    pub null_error_links: Option<f64>,
    /// Error of taking the nearest published row, as a share; null where none is near.
    pub null_error_nearest_row: Option<f64>,
    /// Which row that is.
    pub nearest_row: Option<String>,
    /// Rows that state nearly the same.
    pub alike: Vec<String>,
    /// Numbers of the profile that name the row as their evidence.
    pub fitted_numbers: Vec<String>,
    /// The least and the greatest prediction of the sweep.
    #[serde(skip)]
    pub over_the_sweep: Option<(f64, f64)>,
    /// Whether past errors are in the interval. A row that was fitted, restates another or says where something begins
    /// teaches no error and gets none.
    #[serde(skip)]
    pub has_past_errors: bool,
    /// Whether the profiles' numbers were drawn for the interval. A run on the twin is not repeated for every draw.
    #[serde(skip)]
    pub is_drawn: bool,
    /// The profile's number that the row publishes, as published.
    #[serde(skip)]
    pub number: Option<ProfileValue>,
    /// What that number is in the profile.
    #[serde(skip)]
    pub held: Option<String>,
    /// What the prediction rests on that was measured here, on other machines than the paper's.
    #[serde(skip)]
    pub measured_here: Option<String>,
    /// Why it counts as no prediction, where it does not.
    #[serde(skip)]
    pub no_prediction: Option<String>,
}

/// A place of a sweep, before the sweep is reduced to those that count; figures in the row's unit.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlaceAnswer {
    /// Where in the sweep it is.
    pub place: String,
    /// What is compared with the published value.
    pub value: f64,
    /// What the first experiment measured; null where it is compared with nothing, or the sweep is reduced.
    pub own: Option<f64>,
    /// What it is compared with.
    pub against: Vec<f64>,
    /// The station that limits the first experiment there; null where none does.
    pub binding_station: Option<String>,
    /// What the row's formula expects; null without one.
    pub expected: Option<f64>,
}

/// What a prediction is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PartAnswer {
    /// The term of a latency, or the station.
    pub name: String,
    /// How long it takes, or how busy it is.
    pub value: f64,
    /// The unit of that.
    #[cfg_attr(test, schemars(extend("enum" = [NANOSECONDS, PERCENT_BUSY])))]
    pub unit: &'static str,
}

/// A number that moves a prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MovedAnswer {
    /// The number.
    pub number: String,
    /// By how much its interval changes the prediction; null where the one is no place and the other is.
    #[cfg_attr(test, schemars(with = "Option<f64>"))]
    pub change_percent: f64,
}

/// The unit of a latency's terms.
const NANOSECONDS: &str = "ns";
/// The unit of what stations do.
const PERCENT_BUSY: &str = "% busy";

/// Predicts a published row, and says why it comes out so: its experiment place by place, what the first place is made of
/// (in ns, or as the share of its time that a station is busy), and the numbers that move it.
///
/// ```
/// use offpath_answers::explain::ExplainRequest;
///
/// let request = ExplainRequest { row: "W072".into(), ..ExplainRequest::default() };
/// let answer = offpath_answers::explain(&request)?;
/// for term in &answer.parts {
///     println!("{}: {:.1} {}", term.name, term.value, term.unit);
/// }
/// assert!(!answer.parts.is_empty());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// As [`reproduce`](crate::reproduce()).
pub fn explain(request: &ExplainRequest) -> Result<ExplainAnswer, Failure> {
    let ExplainRequest { row, system } = request;
    let (rows, only) = (rows(), std::slice::from_ref(row));
    known(only, &rows)?;
    let library = library(system)?;
    let lines = reproduce(&library, &rows, only, &system.overlay, threads(None)).map_err(refused)?;
    let line = lines.into_iter().next().expect("it is one of the rows");
    let bench = Bench::new(library).under(system.overlay.clone());
    let inside = match &line.row.experiment {
        Some(experiment) => bench.inside(&experiment.plain).map_err(refused)?,
        None => Inside::Nothing,
    };
    let fitted = fitted_numbers(&bench, &line)?;
    Ok(ExplainAnswer::of(line, inside, fitted))
}

/// The numbers of the profile that name the row as their evidence.
fn fitted_numbers(bench: &Bench, line: &Line) -> Result<Vec<String>, Failure> {
    let Some(experiment) = &line.row.experiment else { return Ok(Vec::new()) };
    let router = bench.router_of(&experiment.plain).map_err(refused)?;
    let numbers = router.system().numbers.iter().filter(|(_, number)| number.rows.contains(&line.row.id));
    Ok(numbers.map(|(name, number)| format!("{name} = {}", number.value)).collect())
}

impl ExplainAnswer {
    fn of(line: Line, inside: Inside, fitted_numbers: Vec<String>) -> ExplainAnswer {
        let (within, tolerance) = (line.within(), allowed(&line.row));
        let no_prediction = line.row.no_prediction(&line.restates);
        let (null_error_nearest_row, nearest_row) = line.null_nearest.unzip();
        let moved_by = line.moved_by.into_iter();
        let (row, verdict) = (line.row, line.verdict.as_ref());
        let plain = row.experiment.as_ref().map(|experiment| &experiment.plain);
        let design_by_steps = plain.filter(|plain| plain.steps).and_then(|plain| plain.design.clone());
        ExplainAnswer {
            schema_version: SCHEMA_VERSION,
            id: row.id,
            kind: row.kind.name(),
            role: row.role.name(),
            source: row.source,
            states: row.states,
            unit: row.unit,
            published: row.published.map(|claim| claim.to_string()),
            tolerance_percent: 100.0 * tolerance,
            predicted: verdict.map(|verdict| verdict.predicted),
            low: line.low,
            high: line.high,
            error: verdict.map(|verdict| verdict.error),
            within,
            reason: row.reason,
            experiment: row.experiment.map(|experiment| experiment.words().to_string()),
            design_by_steps,
            places: line.outcome.as_ref().map_or_else(Vec::new, places),
            parts: parts(inside),
            moved_by: moved_by
                .map(|(number, change_percent)| MovedAnswer { number, change_percent })
                .collect(),
            turned_by: line.turned_by,
            null_error_links: line.null_links,
            null_error_nearest_row,
            nearest_row,
            alike: row.alike,
            fitted_numbers,
            over_the_sweep: verdict.map(|verdict| (verdict.from, verdict.to)),
            has_past_errors: line.widened,
            is_drawn: line.bare.is_some(),
            number: row.number,
            held: line.configured.map(|(held, _)| held),
            measured_here: row.measured_here,
            no_prediction,
        }
    }
}

/// The places that were measured, rounded, so that those of one exact value read alike.
fn places(outcome: &Measurement) -> Vec<PlaceAnswer> {
    let whole = outcome.points.len() == outcome.own.len();
    let shown = if whole { &outcome.points } else { &outcome.own };
    let place = |(index, point): (usize, &offpath_evidence::SweepPoint)| PlaceAnswer {
        place: point.place.clone(),
        value: round(point.value),
        own: (whole && !outcome.against.is_empty()).then(|| round(outcome.own[index].value)),
        against: outcome.compared[index].iter().map(|value| round(*value)).collect(),
        binding_station: outcome.own[index].binding.clone(),
        expected: outcome.expected.get(index).copied().map(round),
    };
    shown.iter().enumerate().map(place).collect()
}

fn parts(inside: Inside) -> Vec<PartAnswer> {
    let (parts, scale, unit) = match inside {
        Inside::Terms(terms) => (terms, 1.0, NANOSECONDS),
        Inside::Stations(stations) => (stations, 100.0, PERCENT_BUSY),
        Inside::Nothing => return Vec::new(),
    };
    let part = |(name, value): (String, f64)| PartAnswer { name, value: round(value * scale), unit };
    parts.into_iter().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::{ExplainAnswer, ExplainRequest, explain, places};
    use offpath_evidence::Bench;
    use offpath_evidence::experiment::Compare;
    use offpath_profile::Library;

    /// A plan of the design that such a row names has other figures, since it follows the design's code: both screens say so.
    #[test]
    fn rows_that_judge_step_lists_say_so() {
        let of = |row: &str| -> ExplainAnswer {
            explain(&ExplainRequest { row: row.into(), ..ExplainRequest::default() }).expect("it is a row")
        };
        let screen =
            offpath_terminal::output::Screen::new(offpath_terminal::output::OutputOptions::default());
        let by_steps = of("W241");
        assert_eq!(by_steps.design_by_steps.as_deref(), Some("replication"));
        assert!(by_steps.text(&screen).contains("`offpath plan designs/replication.toml --steps`"));
        assert_eq!(of("W072").design_by_steps, None);
        let changes = offpath_plan::Changes::default();
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../designs");
        let of_steps = |row: offpath_evidence::Row| {
            let plain = row.experiment?.plain;
            plain.design.filter(|_| plain.steps)
        };
        let designs: std::collections::BTreeSet<String> =
            crate::rows::rows().into_iter().filter_map(of_steps).collect();
        for name in designs {
            let design = offpath_plan::Design::load(&folder.join(format!("{name}.toml")), &changes);
            assert!(design.expect("it is shipped").application.is_some(), "`{name}` has step lists alone");
        }
    }

    /// What stands in a line of the table is what its value is made of, also where a row runs more than one block.
    #[test]
    fn every_place_of_a_row_with_blocks_stands_beside_what_it_is_compared_with() {
        let bench = Bench::new(Library::builtin());
        let mut compared = 0;
        for row in crate::rows::rows() {
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
