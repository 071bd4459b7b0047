//! Holds an outcome to a row: how far off, and whether within the row's tolerance.
//!
//! Tolerances: a measured or threshold value 5%, one printed with "about" 15%, a ratio 10%, the ends
//! of a range and "up to" 10% of the bound, a formula or a configured number 0.1%, an order or a
//! bound not at all. A change in percent is compared as the ratio that it stands for, and besides
//! the change itself, or of a ratio what it is more or less than 1, must have the sign of the published
//! one and between half and twice its size, at both ends of a range that a sweep fills: 10% of a ratio
//! would let a small effect pass by predicting none. A row may state a tolerance of its own, with the
//! reason.

use crate::bench::{Measurement, SweepPoint};
use crate::row::{Claim, Row, ValueKind};

/// A row held to its outcome.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The published number that the prediction stands beside.
    pub published: Option<f64>,
    /// The predicted one that decides: the worst place of the sweep.
    pub predicted: f64,
    /// The least of the sweep.
    pub from: f64,
    /// The greatest of the sweep.
    pub to: f64,
    /// How far off, as a share of the published value; for an order or a bound, by how much it is
    /// missed, and 0 where it holds.
    pub error: f64,
    /// Whether it is within the tolerance.
    pub within: bool,
    /// Where in the sweep.
    pub place: String,
    /// How the deciding value is found again when numbers move.
    pub statistic: Statistic,
}

/// Which value of a sweep decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistic {
    /// The greatest.
    Greatest,
    /// The least.
    Least,
    /// The one at this place.
    At(usize),
}

impl Statistic {
    /// The value that it picks.
    pub fn of(self, points: &[SweepPoint]) -> Option<f64> {
        let values = points.iter().map(|point| point.value);
        match self {
            Statistic::Greatest => values.reduce(f64::max),
            Statistic::Least => values.reduce(f64::min),
            Statistic::At(index) => points.get(index).map(|point| point.value),
        }
    }
}

/// The tolerance of a row, as a share.
pub fn tolerance(kind: ValueKind, claim: Option<Claim>) -> f64 {
    match (kind, claim) {
        (_, None) | (ValueKind::Config | ValueKind::Formula, Some(Claim::Is(_))) => 1e-3,
        (_, Some(Claim::About(_))) => 0.15,
        (_, Some(Claim::Range(..) | Claim::UpTo(_) | Claim::DownTo(_))) | (ValueKind::Ratio, _) => 0.10,
        (_, Some(Claim::Is(_))) => 0.05,
        // Room for rounding alone.
        (_, Some(_)) => 1e-6,
    }
}

/// The tolerance that a row is held to: its own, or the usual one.
pub fn allowed(row: &Row) -> f64 {
    row.tolerance.unwrap_or_else(|| tolerance(row.kind, row.published))
}

/// A value as the ratio that it stands for where it is a change in percent.
pub fn plain(unit: &str, value: f64) -> f64 {
    if unit == "%" { 1.0 + value / 100.0 } else { value }
}

/// How far `predicted` is from `published`, as a share of it.
pub fn distance(unit: &str, predicted: f64, published: f64) -> f64 {
    let (predicted, published) = (plain(unit, predicted), plain(unit, published));
    if published == 0.0 { predicted.abs() } else { predicted / published - 1.0 }
}

/// Holds a row to its outcome; `None` where the row has no value to compare with.
pub fn judge(row: &Row, outcome: &Measurement) -> Option<Verdict> {
    let points = &outcome.points;
    let values = || points.iter().map(|point| point.value);
    let (from, to) = (values().reduce(f64::min)?, values().reduce(f64::max)?);
    let tolerance = allowed(row);
    let pick = |statistic: Statistic, published: f64| -> (Statistic, f64, f64) {
        let value = statistic.of(points).unwrap_or(f64::NAN);
        (statistic, published, distance(&row.unit, value, published))
    };
    let worst = |all: Vec<(Statistic, f64, f64)>| {
        all.into_iter().reduce(|a, b| if b.2.abs() > a.2.abs() { b } else { a })
    };
    if !outcome.expected.is_empty() {
        let all =
            outcome.expected.iter().enumerate().map(|(at, expected)| pick(Statistic::At(at), *expected));
        let (statistic, published, error) = worst(all.collect())?;
        return Some(verdict(points, (from, to), statistic, published, error, error.abs() <= 1e-3));
    }
    let claim = row.published?;
    let each =
        |published: f64| (0..points.len()).map(|at| pick(Statistic::At(at), published)).collect::<Vec<_>>();
    let (statistic, published, mut error) = match claim {
        Claim::Is(value) | Claim::About(value) => worst(each(value))?,
        Claim::Range(low, high) if points.len() == 1 => {
            // One place can lie anywhere in the range.
            let value = points[0].value;
            let (statistic, published, error) = pick(Statistic::At(0), value.clamp(low, high));
            (statistic, published, error)
        }
        Claim::Range(low, high) => worst(vec![pick(Statistic::Least, low), pick(Statistic::Greatest, high)])?,
        Claim::UpTo(value) | Claim::AtMost(value) | Claim::Below(value) => pick(Statistic::Greatest, value),
        Claim::DownTo(value) | Claim::AtLeast(value) | Claim::Above(value) => pick(Statistic::Least, value),
    };
    let mut within = match claim {
        Claim::AtMost(_) => error <= tolerance,
        Claim::AtLeast(_) => error >= -tolerance,
        Claim::Below(_) => error < -tolerance,
        Claim::Above(_) => error > tolerance,
        _ => error.abs() <= tolerance,
    };
    if claim.is_bound() && within {
        error = 0.0;
    }
    // Where a page says "about 1", or what is like a change is a size, none is an answer.
    let is_change = row.unit == "%" || (row.unit == "x" && row.kind == ValueKind::Ratio);
    if is_change && !claim.is_bound() && !matches!(claim, Claim::About(_)) {
        let nothing = if row.unit == "%" { 0.0 } else { 1.0 };
        within &= effect_is_seen(claim, nothing, (from, to), points.len());
    }
    Some(verdict(points, (from, to), statistic, published, error, within))
}

/// Whether a sweep's changes from `nothing` have the sign of the published change and about its size: of a
/// range that a sweep fills, at both ends.
fn effect_is_seen(claim: Claim, nothing: f64, (from, to): (f64, f64), places: usize) -> bool {
    let about = |seen: f64, published: f64| {
        published == nothing || (0.5..=2.0).contains(&((seen - nothing) / (published - nothing)))
    };
    match claim {
        Claim::Range(low, high) if places > 1 => about(from, low) && about(to, high),
        _ => {
            let (low, high) = claim.ends();
            let published = if (low - nothing).abs() > (high - nothing).abs() { low } else { high };
            about(if published > nothing { to } else { from }, published)
        }
    }
}

fn verdict(
    points: &[SweepPoint],
    (from, to): (f64, f64),
    statistic: Statistic,
    published: f64,
    error: f64,
    within: bool,
) -> Verdict {
    let predicted = statistic.of(points).unwrap_or(f64::NAN);
    let place =
        points.iter().find(|point| point.value == predicted).map_or(String::new(), |p| p.place.clone());
    Verdict { published: Some(published), predicted, from, to, error, within, place, statistic }
}
