//! The mix with the lowest tail at a load.

use super::SETTLED;
use super::run::{COUNTED, run_mix};
use crate::design::{Design, Objective};
use crate::observe::ObserveError;
use crate::planner::{Ready, capacity_at};
use crate::program::Fold;
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, evaluate};
use offpath_quantity::Time;
use offpath_twin::Seed;
use std::collections::BTreeMap;

/// Parts of their time that stations may be busy in mixes that are tried for the lowest tail.
const BUSY: [f64; 6] = [0.95, 0.9, 0.85, 0.8, 0.7, 0.6];

/// Shares by alternative.
type Shares = Vec<(String, f64)>;

/// Shares of the mix with the lowest 99th percentile at a load, of those that are tried on the twin.
///
/// What has the least mean latency fills stations to the brim, where tails are long. Tried besides are the mixes
/// of least mean latency in which no station is busy for more than a part of its time, the greedy one, each
/// alternative alone that carries the load, and mixes between the two best of all these. What is lower by less than a
/// hundredth is no lower.
pub(super) fn lowest_tail(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    offered: f64,
    seed: Seed,
) -> Result<Shares, miette::Report> {
    let parts = Part::all(ready);
    let base = evaluate(design, &parts, folds, false)?;
    let least = solve::shares(&base.optimal);
    let sizes = (base.optimal.total, solve::mean_of(&least, &parts, |index| folds[index].latency));
    let mut candidates: Vec<Shares> = vec![least];
    for busy in BUSY {
        // A mix that would carry the load over `busy` is busy for that part of its time at the load.
        let mut eased = design.clone();
        eased.objective = Objective::LowestP99 { load: offered / busy };
        let Ok(seen) = evaluate(&eased, &parts, folds, false) else { break };
        let shares = solve::shares(&seen.optimal);
        let is_new = |known: &Shares| {
            let share = |all: &[(String, f64)], name: &str| {
                all.iter().find(|(own, _)| own == name).map_or(0.0, |(_, share)| *share)
            };
            let names = shares.iter().chain(known).map(|(name, _)| name);
            names.into_iter().any(|name| (share(&shares, name) - share(known, name)).abs() > 1e-3)
        };
        if candidates.iter().all(is_new) {
            candidates.push(shares);
        }
    }
    let reaches =
        |shares: &Shares| capacity_at(design, ready, folds, shares).is_ok_and(|capacity| capacity >= offered);
    candidates.extend(Some(solve::shares(&base.greedy)).filter(reaches));
    let alone = solve::allowed(design, &parts, folds).into_iter();
    let alone = alone.filter(|index| base.alone[*index].total > offered);
    candidates.extend(alone.map(|index| vec![(ready[index].alternative.name.clone(), 1.0)]));
    let measured = |candidates: Vec<Shares>| -> Result<Vec<(Time, Shares)>, ObserveError> {
        let tails = side_by_side(candidates.len(), |index| {
            let loaded = run_mix(ready, &candidates[index], sizes, Some(offered), COUNTED, seed)?;
            Ok::<_, ObserveError>(loaded.latencies.quantile(0.99).unwrap_or(Time::MAX))
        });
        tails.into_iter().zip(candidates).map(|(tail, shares)| Ok((tail?, shares))).collect()
    };
    let mut tried = measured(candidates)?;
    let least = tried[0].clone();
    tried.sort_by_key(|one| one.0);
    // Bisect on the line between the two best: keep the half whose middle is lower.
    if let [first, second, ..] = tried.as_slice() {
        let (a, b) = (first.1.clone(), second.1.clone());
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..5 {
            let at = [0.25, 0.75].map(|part| between(&a, &b, low + (high - low) * part));
            let carried = at.map(|shares| Some(shares).filter(reaches));
            let mut tails = measured(carried.iter().flatten().cloned().collect())?.into_iter();
            let sides = carried.map(|shares| shares.and_then(|_| tails.next()));
            let tail = |side: &Option<(Time, Shares)>| side.as_ref().map_or(Time::MAX, |one| one.0);
            if tail(&sides[0]) <= tail(&sides[1]) {
                high = (low + high) / 2.0;
            } else {
                low = (low + high) / 2.0;
            }
            tried.extend(sides.into_iter().flatten());
        }
    }
    let best = tried.into_iter().min_by_key(|one| one.0).expect("the base mix was tried");
    let is_lower = best.0.as_seconds() < least.0.as_seconds() * (1.0 - SETTLED);
    let mut shares = if is_lower { best.1 } else { least.1 };
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(shares)
}

fn between(a: &[(String, f64)], b: &[(String, f64)], at: f64) -> Vec<(String, f64)> {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (list, weight) in [(a, 1.0 - at), (b, at)] {
        for (name, share) in list {
            *shares.entry(name.clone()).or_default() += share * weight;
        }
    }
    shares.into_iter().collect()
}
