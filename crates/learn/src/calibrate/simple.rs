//! What two numbers alone would say: a roofline, and a straight line of time over size.

use crate::descent::Search;
use crate::points::MeasuredPoint;
use crate::run::RunKind;
use offpath_quantity::Bytes;
use std::collections::BTreeSet;

/// A model of two numbers: what it says of a size.
pub(super) type Simple = fn(&[f64], RunKind, f64) -> f64;

/// Rate and bandwidth, the lesser of the two; of a latency a least one and a bandwidth, the greater time.
pub(super) fn roofline(numbers: &[f64], kind: RunKind, size: f64) -> f64 {
    let bytes = numbers[1] - size.max(1.0).ln();
    match kind {
        RunKind::Bandwidth => numbers[0].min(bytes),
        RunKind::Latency => (-numbers[0]).max(-bytes),
    }
}

/// A time that each message takes and one that each byte does.
pub(super) fn straight_line(numbers: &[f64], kind: RunKind, size: f64) -> f64 {
    let time = ((-numbers[0]).exp() + size * (-numbers[1]).exp()).ln();
    match kind {
        RunKind::Bandwidth => -time,
        RunKind::Latency => time,
    }
}

/// What a model of two numbers for each kind of test says of every point, fitted to those that are not held out.
pub(super) fn simple_fit(simple: Simple, points: &[MeasuredPoint], held: &[bool]) -> Vec<f64> {
    let mut all = vec![f64::NAN; points.len()];
    for kind in [RunKind::Bandwidth, RunKind::Latency] {
        let own: Vec<usize> = (0..points.len()).filter(|index| points[*index].run.kind() == kind).collect();
        // Such a model says one thing of all points of a size.
        let size = |index: usize| points[index].run.payload();
        let sizes: Vec<Bytes> =
            own.iter().map(|index| size(*index)).collect::<BTreeSet<_>>().into_iter().collect();
        let place = |index: usize| sizes.binary_search(&size(index)).expect("every point's size is there");
        let model = |at: &[f64]| -> Option<Vec<f64>> {
            Some(sizes.iter().map(|size| simple(at, kind, size.get() as f64)).collect())
        };
        let targets: Vec<(usize, f64)> = own
            .iter()
            .filter(|index| !held[**index])
            .map(|index| (place(*index), points[*index].measured.ln()))
            .collect();
        if targets.is_empty() {
            continue;
        }
        let (low, high) = ([0.0, 0.0], [40.0, 40.0]);
        let search = Search { model: &model, low: &low, high: &high, points: &targets };
        // From several places: the numbers bind apart.
        let starts = (4..=28)
            .step_by(4)
            .flat_map(|rate| (8..=32).step_by(4).map(move |bytes| vec![f64::from(rate), f64::from(bytes)]));
        let found = starts.filter_map(|start| Some(search.descend(search.found(start)?, &[0, 1])));
        let Some(best) = found.min_by(|one, other| one.cost.total_cmp(&other.cost)) else { continue };
        for index in own {
            all[index] = best.predicted[place(index)].exp();
        }
    }
    all
}
