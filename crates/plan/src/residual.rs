//! What past predictions were wrong by, which no number of a profile stands for.
//!
//! `evidence/residuals.toml` holds the log-error of every prediction of a measured number that restates no
//! fitted row. An interval of a plan is that of the joint sample, each draw widened by the errors of its
//! kind with both signs. As in conformal prediction one more error is counted than was seen, as large as
//! the largest.

use serde::Deserialize;
use std::sync::OnceLock;

/// What a figure is: errors of one kind say what to expect of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Figure {
    /// Requests in a time.
    Throughput,
    /// A time.
    Latency,
    /// One throughput over another.
    ThroughputRatio,
}

impl Figure {
    fn kind(self) -> &'static str {
        match self {
            Figure::Throughput => "throughput",
            Figure::Latency => "latency",
            Figure::ThroughputRatio => "throughput-ratio",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    residual: Vec<Error>,
}

/// The error of one prediction, as the file has it.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Error {
    /// The evidence row that was predicted.
    pub row: String,
    /// What it measures.
    pub kind: String,
    /// Natural logarithm of predicted over published.
    pub log_error: f64,
}

/// The cards that the predictions were for.
pub const CARDS: [&str; 2] = ["bluefield2", "connectx6"];

/// Errors of one kind that have to be there before they speak for it alone; with fewer, those of all kinds
/// stand in for them.
pub const FEWEST: usize = 8;

/// The errors that this repository holds.
pub fn shipped() -> &'static [Error] {
    static ERRORS: OnceLock<Vec<Error>> = OnceLock::new();
    ERRORS.get_or_init(|| {
        let text = include_str!("../../../evidence/residuals.toml");
        toml::from_str::<File>(text).expect("the shipped errors are in order; a test reads them").residual
    })
}

/// The sizes of the log-errors of a kind, sorted, the largest counted once more.
pub fn sizes(figure: Figure) -> Vec<f64> {
    sizes_of(shipped().iter().map(|one| (one.kind == figure.kind(), one.log_error)))
}

/// The sizes of those of the log-errors that are of the kind in question, sorted, the largest counted once
/// more: it stands for the error that was not seen yet.
pub fn sizes_of(errors: impl Iterator<Item = (bool, f64)> + Clone) -> Vec<f64> {
    let few = errors.clone().filter(|(own, _)| *own).count() < FEWEST;
    let mut sizes: Vec<f64> = errors.filter(|(own, _)| few || *own).map(|(_, error)| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.extend(sizes.last().copied());
    sizes
}

/// A sample with each value moved by each error, up and down. Each comes with the most that it can be
/// whatever a model is wrong by: an error moves nothing beyond that.
pub fn widened(sample: &[(f64, f64)], sizes: &[f64]) -> Vec<f64> {
    if sizes.is_empty() {
        return sample.iter().map(|(value, _)| *value).collect();
    }
    let moves = sizes.iter().flat_map(|size| [size.exp(), (-size).exp()]);
    let moved = |factor: f64| sample.iter().map(move |(value, most)| (value * factor).min(value.max(*most)));
    moves.flat_map(moved).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_errors_and_its_largest_counts_twice() {
        for figure in [Figure::Throughput, Figure::Latency, Figure::ThroughputRatio] {
            let sizes = sizes(figure);
            assert!(sizes.len() > FEWEST, "{figure:?}: {sizes:?}");
            assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]));
            assert_eq!(sizes[sizes.len() - 1], sizes[sizes.len() - 2]);
        }
    }

    #[test]
    fn errors_move_up_and_down_alike() {
        let mut wide = widened(&[(10.0, f64::INFINITY)], &[2.0f64.ln()]);
        wide.sort_by(f64::total_cmp);
        assert!((wide[0] - 5.0).abs() < 1e-9 && (wide[1] - 20.0).abs() < 1e-9, "{wide:?}");
        assert_eq!(widened(&[(10.0, 11.0)], &[]), [10.0]);
    }

    #[test]
    fn no_error_moves_a_rate_beyond_what_wires_carry() {
        let mut wide = widened(&[(10.0, 12.0), (20.0, 12.0)], &[2.0f64.ln()]);
        wide.sort_by(f64::total_cmp);
        let most: Vec<i64> = wide.iter().map(|value| value.round() as i64).collect();
        assert_eq!(most, [5, 10, 12, 20], "a value above its own bound stays where it was solved");
    }
}
