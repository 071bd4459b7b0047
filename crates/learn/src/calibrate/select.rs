//! Which numbers are fitted: one by one, the one that lowers the cost most, and the search for where they are best.

use super::PhaseProgress;
use super::candidates::Candidate;
use crate::descent::{Found, Search};
use crate::posting::followed_requests;
use crate::run::MeasuredRun;
use std::collections::BTreeMap;

/// A number is taken where it lowers the cost by this share, and by [`LEAST_GAIN`] at least.
pub(super) const GAIN: f64 = 0.05;
pub(super) const LEAST_GAIN: f64 = 4.0;

/// Requests at most that a search from many places follows of runs that differ in their payload alone: of many queue pairs
/// few payloads are looked at.
pub(super) const MOST_SCANNED: u64 = 150_000;

/// Payloads at least that it looks at of each.
pub(super) const LEAST_SCANNED: usize = 3;

/// Of runs that differ in their payload alone those that a search from many places can afford, spread over the payloads.
pub(super) fn spread_over(seen: &[usize], runs: &[MeasuredRun]) -> Vec<usize> {
    let mut alike: BTreeMap<MeasuredRun, Vec<usize>> = BTreeMap::new();
    for place in seen {
        alike.entry(runs[*place].series()).or_default().push(*place);
    }
    let mut few: Vec<usize> = Vec::new();
    for (series, mut places) in alike {
        places.sort_by_key(|place| runs[*place].payload());
        // What follows no request is cheap.
        let followed = series.queue_pairs().map_or(1, |run| followed_requests(run.queue_pairs).max(1));
        let afforded = MOST_SCANNED / followed;
        let keep = places.len().min(usize::try_from(afforded).unwrap_or(usize::MAX).max(LEAST_SCANNED));
        few.extend((0..keep).map(|index| places[index * (places.len() - 1) / (keep - 1).max(1)]));
    }
    few.sort_unstable();
    few
}

/// The candidates that move a fitted point anywhere between their bounds.
pub(super) fn moving(search: &Search<'_>, start: &Found, progress: &dyn PhaseProgress) -> Vec<usize> {
    progress.phase("numbers that move a point", start.at.len() as u64);
    let moves = |index: &usize| {
        progress.step();
        [search.low[*index], search.high[*index]].into_iter().any(|end| {
            let mut to = start.at.clone();
            to[*index] = end;
            let there = search.model.predict(&to);
            let differs =
                |there: Vec<f64>| there.iter().zip(&start.predicted).any(|(a, b)| (a - b).abs() > 1e-4);
            there.is_some_and(differs)
        })
    };
    (0..start.at.len()).filter(moves).collect()
}

/// Takes numbers one by one, each time the one that explains most of what is left, until none explains more.
pub(super) fn select(
    search: &Search<'_>,
    start: Found,
    moving: &[usize],
    candidates: &[Candidate],
    progress: &dyn PhaseProgress,
) -> (Found, Vec<usize>) {
    let asked: Vec<usize> = moving.iter().copied().filter(|index| candidates[*index].is_asked).collect();
    let mut free: Vec<usize> = Vec::new();
    let mut best = start;
    while free.len() < moving.len() {
        let rest: Vec<usize> = moving.iter().copied().filter(|index| !free.contains(index)).collect();
        progress.phase(&format!("candidates for fitted number {}", free.len() + 1), rest.len() as u64);
        let tried = rest.into_iter().filter_map(|index| {
            progress.step();
            Some((index, search.scan(&best, index)?))
        });
        let Some((index, scanned)) = tried.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
        else {
            break;
        };
        free.push(index);
        let found = search.descend(scanned, &free);
        let gain = best.cost - found.cost;
        if gain < GAIN * best.cost || gain < LEAST_GAIN {
            free.pop();
            break;
        }
        best = found;
    }
    if !asked.is_empty() {
        free = asked;
        best = search.descend(best, &free);
    }
    free.sort_unstable();
    (elsewhere(search, best, &free, progress), free)
}

/// The best place that searches from elsewhere end at, too: where two bounds cross, a step of each number alone leads
/// nowhere. Each number begins at several places of its range, the others where they are.
pub(super) fn elsewhere(
    search: &Search<'_>,
    best: Found,
    free: &[usize],
    progress: &dyn PhaseProgress,
) -> Found {
    const PLACES: u32 = 5;
    progress.phase("searches from elsewhere", free.len() as u64 * u64::from(PLACES));
    let mut found = best.clone();
    for index in free {
        let (low, high) = (search.low[*index], search.high[*index]);
        for place in 0..PLACES {
            progress.step();
            let mut at = best.at.clone();
            at[*index] = low + (high - low) * (f64::from(place) + 0.5) / f64::from(PLACES);
            let others: Vec<usize> = free.iter().copied().filter(|other| other != index).collect();
            let Some(start) = search.found(at) else { continue };
            let there = search.descend(search.descend(start, &others), free);
            if there.cost < found.cost {
                found = there;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::{ToolProgram, ToolRun};
    use offpath_quantity::Bytes;

    /// A search from many places looks at every payload of few queue pairs, and of many at the ends at least.
    #[test]
    fn what_is_cheap_to_follow_is_looked_at_whole() {
        let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
        let mut runs: Vec<MeasuredRun> = Vec::new();
        for queue_pairs in [1, 8, 32, 16_384] {
            let of = |power: u32| {
                MeasuredRun::QueuePairs(ToolRun { queue_pairs, ..program.run(Bytes::new(1 << power)) })
            };
            runs.extend((1..=12).map(of));
        }
        runs.sort();
        let seen: Vec<usize> = (0..runs.len()).collect();
        let few = spread_over(&seen, &runs);
        let payloads = |queue_pairs: u64| -> Vec<u64> {
            let own = few.iter().filter_map(|place| runs[*place].queue_pairs());
            let own = own.filter(|run| run.queue_pairs == queue_pairs);
            let mut payloads: Vec<u64> = own.map(|run| run.payload.get()).collect();
            payloads.sort_unstable();
            payloads
        };
        assert_eq!((payloads(1).len(), payloads(8).len()), (12, 12));
        for many in [32, 16_384] {
            let own = payloads(many);
            assert!((LEAST_SCANNED..12).contains(&own.len()), "{own:?}");
            assert_eq!((own[0], own[own.len() - 1]), (2, 4096));
        }
    }
}
