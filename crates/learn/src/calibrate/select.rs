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

/// Takes numbers one by one, each time the one that explains most of what is left, until none explains more, also where a
/// number explains something only as those that are taken move with it.
pub(super) fn select(
    search: &Search<'_>,
    start: Found,
    moving: &[usize],
    candidates: &[Candidate],
    progress: &dyn PhaseProgress,
) -> (Found, Vec<usize>) {
    let asked: Vec<usize> = moving.iter().copied().filter(|index| candidates[*index].is_asked).collect();
    if !asked.is_empty() {
        let (best, _) = taken(search, start, Vec::new(), moving, progress);
        let best = search.descend(best, &asked);
        return (elsewhere(search, best, &asked, progress), asked);
    }
    let (mut best, mut free) = taken(search, start, Vec::new(), moving, progress);
    loop {
        let there = elsewhere(search, best.clone(), &free, progress);
        let known = free.len();
        (best, free) = taken(search, there, free, moving, progress);
        if free.len() == known {
            free.sort_unstable();
            return (best, free);
        }
    }
}

/// Numbers at most that are fitted with those that are taken for a look at what they explain together.
const FITTED_TOGETHER: usize = 3;

/// The numbers that explain more of what is left, taken beside those that are.
fn taken(
    search: &Search<'_>,
    start: Found,
    taken: Vec<usize>,
    moving: &[usize],
    progress: &dyn PhaseProgress,
) -> (Found, Vec<usize>) {
    let (mut best, mut free) = (start, taken);
    let explains = |best: &Found, found: &Found| {
        let gain = best.cost - found.cost;
        gain >= GAIN * best.cost && gain >= LEAST_GAIN
    };
    let cheapest = |tried: Vec<(usize, Found)>| {
        tried.into_iter().min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
    };
    while free.len() < moving.len() {
        let rest: Vec<usize> = moving.iter().copied().filter(|index| !free.contains(index)).collect();
        let with = |index: usize| [free.as_slice(), &[index]].concat();
        progress.phase(&format!("candidates for fitted number {}", free.len() + 1), rest.len() as u64);
        let by_itself = rest.iter().filter_map(|index| {
            progress.step();
            Some((*index, search.scan(&best, *index)?))
        });
        let mut next = cheapest(by_itself.collect());
        next = next.map(|(index, scanned)| (index, search.descend(scanned, &with(index))));
        if !next.as_ref().is_some_and(|(_, found)| explains(&best, found)) && !free.is_empty() {
            progress.phase("numbers that explain together", rest.len() as u64);
            let together = rest.iter().filter_map(|index| {
                progress.step();
                let begun = places(search, &best, *index).map(|start| search.descend(start, &free));
                Some((*index, begun.min_by(|one, other| one.cost.total_cmp(&other.cost))?))
            });
            let mut together: Vec<(usize, Found)> = together.collect();
            together.sort_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost));
            together.truncate(FITTED_TOGETHER);
            let fitted =
                together.into_iter().map(|(index, found)| (index, search.descend(found, &with(index))));
            next = cheapest(fitted.collect());
        }
        let Some((index, found)) = next.filter(|(_, found)| explains(&best, found)) else { break };
        free.push(index);
        best = found;
    }
    (best, free)
}

/// The best place that searches from elsewhere end at, too: where two bounds cross, a step of each number alone leads
/// nowhere. Each number begins at several places of its range, the others where they are.
pub(super) fn elsewhere(
    search: &Search<'_>,
    best: Found,
    free: &[usize],
    progress: &dyn PhaseProgress,
) -> Found {
    progress.phase("searches from elsewhere", free.len() as u64);
    let mut found = best.clone();
    for index in free {
        progress.step();
        let others: Vec<usize> = free.iter().copied().filter(|other| other != index).collect();
        for start in places(search, &best, *index) {
            let there = search.descend(search.descend(start, &others), free);
            if there.cost < found.cost {
                found = there;
            }
        }
    }
    found
}

/// Places of one number, spread over its range, the others where they are.
fn places(search: &Search<'_>, from: &Found, index: usize) -> impl Iterator<Item = Found> {
    const PLACES: u32 = 5;
    let (low, high) = (search.low[index], search.high[index]);
    (0..PLACES).filter_map(move |place| {
        let mut at = from.at.clone();
        at[index] = low + (high - low) * (f64::from(place) + 0.5) / f64::from(PLACES);
        search.found(at)
    })
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
