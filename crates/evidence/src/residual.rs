//! What predictions turned out to be wrong by, as data: [`Residual`] is the log-error of one prediction
//! of a measured number, and an interval is widened by those of its kind.
//!
//! A prediction leaves out its own error and those of rows that state nearly the same or rest on the same measurement. Where fewer than
//! [`FEWEST`] of a kind are left, those of all kinds stand in for them. As in conformal prediction one
//! more error is counted than was seen; it is taken as the largest.

use crate::experiment::{Compare, Experiment, Measure};
use crate::row::{Row, RowRole, ValueKind, restated};
use offpath_plan::residual::{CARDS, Lesson, sizes_of};
pub use offpath_plan::residual::{FEWEST, FigureKind, Residual, shipped};
use std::fmt::Write as _;

/// What a row measures; `None` without an experiment.
pub fn kind_of(row: &Row) -> Option<FigureKind> {
    let experiment = row.experiment.as_ref()?;
    let relative = matches!(experiment.compare, Compare::Ratio | Compare::Change);
    let of = |plain, ratio| if relative { ratio } else { plain };
    Some(match experiment.plain.measure {
        Measure::Latency | Measure::Posting | Measure::DesignLatency | Measure::LoopLatency => {
            of(FigureKind::Latency, FigureKind::LatencyRatio)
        }
        Measure::Rate
        | Measure::Bandwidth
        | Measure::BlockingBandwidth
        | Measure::PostingBandwidth
        | Measure::Packets
        | Measure::Loop
        | Measure::LoopRate
        | Measure::LoopTotal
        | Measure::DesignRate
        | Measure::DesignBandwidth
        | Measure::DesignClients => of(FigureKind::Throughput, FigureKind::ThroughputRatio),
        _ => FigureKind::Other,
    })
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
    let kind = kind_of(row);
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
