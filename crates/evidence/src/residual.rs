//! What predictions turned out to be wrong by, as data: [`Residual`] is the log-error of one prediction
//! of a measured number, and an interval is widened by those of its kind.
//!
//! A prediction leaves out its own error and those of rows that state nearly the same or rest on the same measurement. Where fewer than
//! [`FEWEST`] of a kind are left, those of all kinds stand in for them. As in conformal prediction one
//! more error is counted than was seen; it is taken as the largest.

use crate::experiment::{Compare, Experiment, Measure};
use crate::row::{Row, RowRole, ValueKind, restated};
pub use offpath_plan::residual::FEWEST;
use offpath_plan::residual::{self, CARDS, Lesson, sizes_of};
use serde::Deserialize;
use serde::de::IntoDeserializer;
use std::fmt::Write as _;

/// What a row's number is: errors of one kind say what to expect of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Requests, bytes or packets in a time.
    Throughput,
    /// A time.
    Latency,
    /// One throughput over another.
    ThroughputRatio,
    /// One time over another.
    LatencyRatio,
    /// Anything else.
    Other,
}

impl Metric {
    /// Its name in the file.
    pub fn name(self) -> &'static str {
        match self {
            Metric::Throughput => "throughput",
            Metric::Latency => "latency",
            Metric::ThroughputRatio => "throughput-ratio",
            Metric::LatencyRatio => "latency-ratio",
            Metric::Other => "other",
        }
    }

    /// What a row measures; `None` without an experiment.
    pub fn of(row: &Row) -> Option<Metric> {
        let experiment = row.experiment.as_ref()?;
        let relative = matches!(experiment.compare, Compare::Ratio | Compare::Change);
        Some(match (experiment.plain.measure, relative) {
            (Measure::Latency | Measure::DesignLatency | Measure::LoopLatency, false) => Metric::Latency,
            (Measure::Latency | Measure::DesignLatency | Measure::LoopLatency, true) => Metric::LatencyRatio,
            (
                Measure::Rate
                | Measure::Bandwidth
                | Measure::BlockingBandwidth
                | Measure::Packets
                | Measure::Loop
                | Measure::LoopRate
                | Measure::LoopTotal
                | Measure::DesignRate
                | Measure::DesignBandwidth
                | Measure::DesignClients,
                relative,
            ) => {
                if relative {
                    Metric::ThroughputRatio
                } else {
                    Metric::Throughput
                }
            }
            _ => Metric::Other,
        })
    }
}

/// The error of one prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct Residual {
    /// The row.
    pub row: String,
    /// The card that it was predicted for.
    pub card: String,
    /// What it measures.
    pub kind: Metric,
    /// Natural logarithm of predicted over published; of a change in percent, of the ratios meant.
    pub log_error: f64,
}

/// The errors that this repository holds.
///
/// # Errors
/// The parser's message where the file has a kind that is none, which its tests rule out.
pub fn shipped_residuals() -> Result<Vec<Residual>, serde::de::value::Error> {
    let read = |one: &residual::Error| {
        let kind = Metric::deserialize(one.kind.as_str().into_deserializer())?;
        Ok(Residual { row: one.row.clone(), card: one.card.clone(), kind, log_error: one.log_error })
    };
    residual::shipped().iter().map(read).collect()
}

/// Whether a row is a prediction of a measured number: neither fitted nor a restatement of what was, no
/// threshold, and no order or bound.
pub fn is_measured(row: &Row, rows: &[Row]) -> bool {
    row.scored
        && !is_theoretical(row)
        && !is_threshold(row)
        && row.role == RowRole::Predict
        && matches!(row.kind, ValueKind::Measurement | ValueKind::Ratio)
        && row.published.is_some_and(|claim| !claim.is_bound())
        && row.no_prediction(&restated(row, rows)).is_none()
}

/// Whether a row says where something begins, ends or breaks even: a place, by whose error no measured number is wrong.
pub fn is_threshold(row: &Row) -> bool {
    let compare = row.experiment.as_ref().map(|experiment| experiment.compare);
    row.kind == ValueKind::Threshold || matches!(compare, Some(Compare::From(_) | Compare::Until(_)))
}

/// Whether a row speaks of links without headers or of packets at a given bandwidth: arithmetic, in which
/// nothing was measured.
pub fn is_theoretical(row: &Row) -> bool {
    let ideal = |overlay: &String| overlay == "ideal-links";
    row.experiment.as_ref().is_some_and(|one| one.plain.overlays.iter().any(ideal) || one.plain.at.is_some())
}

/// Whether the error of one row says nothing of another's: they are the same, alike, or rest on the same measurement.
pub fn err_together(one: &Row, other: &Row) -> bool {
    let names = |one: &Row, other: &Row| one.alike.contains(&other.id) || one.errs_with.contains(&other.id);
    one.id == other.id || names(one, other) || names(other, one)
}

/// For which cards the errors speak that a prediction of a row is widened by.
pub fn lesson_of(row: &Row) -> Lesson {
    let is_fitted = |one: &Experiment| one.parts().any(|part| CARDS.contains(&part.plain.device.as_str()));
    match row.experiment.as_ref().is_none_or(is_fitted) {
        true => Lesson::OfFittedCards,
        false => Lesson::OfGuessedCards,
    }
}

/// The sizes of the log-errors that widen a prediction of `row`, sorted, its own and those of rows that err with it
/// left out. Every error counts with both signs.
pub fn spread(residuals: &[Residual], row: &Row, rows: &[Row]) -> Vec<f64> {
    let with = |one: &Residual| {
        one.row == row.id || rows.iter().any(|other| other.id == one.row && err_together(row, other))
    };
    let kind = Metric::of(row);
    let lesson = lesson_of(row);
    let left = residuals.iter().filter(|one| !with(one) && lesson.takes(&one.card));
    sizes_of(left.map(|one| (Some(one.kind) == kind, one.log_error)))
}

/// The file of the errors and of the rows that are missed, as `offpath reproduce --residuals` writes it.
pub fn written(residuals: &[Residual], missed: &[String]) -> String {
    let mut text = "# Log-errors of the predictions of measured numbers: ln(predicted / published), and the rows about\n\
                    # designs that are not met, whatever they count as. `offpath reproduce --residuals\n\
                    # evidence/residuals.toml` writes the file, and a test compares it.\n"
        .to_string();
    let quoted: Vec<String> = missed.iter().map(|row| format!("\"{row}\"")).collect();
    let _ = writeln!(text, "missed = [{}]", quoted.join(", "));
    for one in residuals {
        let _ = write!(
            text,
            "\n[[residual]]\nrow = \"{}\"\ncard = \"{}\"\nkind = \"{}\"\nlog_error = {:.4}\n",
            one.row,
            one.card,
            one.kind.name(),
            // A rounded -0 would be another text than 0.
            (one.log_error * 1e4).round() / 1e4 + 0.0
        );
    }
    text
}
