//! Which of the fitted numbers the points tell, how they vary together, and why the others stay.

use super::PhaseProgress;
use super::answer::{CalibrationError, KeptNumber, KeptReason};
use super::candidates::{Candidate, bounds, logarithm, released, rounded, stated};
use super::errors::{SIDE_90, student};
use super::learnt::Ends;
use super::menu::Menu;
use super::select::{GAIN, LEAST_GAIN, elsewhere};
use crate::descent::{Found, SCALE, Search, weight};
use crate::doubt::{Doubt, Replacement};
use crate::run::{MeasuredRun, RunKind};
use offpath_profile::Provenance;
use offpath_quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};

/// A number is fitted where its standard deviation beside the others is at most this share of it.
pub(super) const TOLD: f64 = 0.15;

/// A number is told by itself where its 90% interval reaches no farther than this share on each side.
pub(super) const ALONE: f64 = 0.05;

/// A number counts as alike to others where no more than this share of what it moves is its own.
pub(super) const OWN_SHARE: f64 = 0.1;

/// What is said where none of the runs that were tried tells a number.
pub(super) const ANOTHER_RUN: &str = "one of another verb, size or depth";

/// What the points tell.
pub(super) struct Told {
    pub best: Found,
    /// The best with what kept numbers are taken to be, as the card has them.
    pub written: Found,
    pub free: Vec<usize>,
    pub covariance: Vec<Vec<f64>>,
    /// Of each number what kept ones add to its variance, by what each may be off, the greatest first.
    pub alike: Vec<Vec<(usize, f64)>>,
    /// Of each number that no point feels where it is, how far it may be elsewhere.
    pub open: Vec<Option<Ends>>,
    /// Of each number the ways in which the points fit as well where it holds nothing back.
    pub replacements: Vec<Vec<Replacement>>,
    pub kept: Vec<KeptNumber>,
}

/// Numbers that hold back a run of one queue pair, and what would hold it back alike: its own time for a request and that of the thread
/// that posts, what it carries and what the port does.
const OF_ONE_QUEUE_PAIR: [(&str, &str); 3] = [
    (".queue_pair_request_time", ".post_time"),
    (".post_time", ".queue_pair_request_time"),
    (".queue_pair_rate", ".port_rate"),
];

/// Whether every rate is of one queue pair.
fn is_of_one_queue_pair(runs: &[MeasuredRun]) -> bool {
    let rates = runs.iter().filter_map(MeasuredRun::queue_pairs).filter(|run| run.kind == RunKind::Bandwidth);
    let mut counts = rates.map(|run| run.queue_pairs).peekable();
    counts.peek().is_some() && counts.all(|count| count == 1)
}

/// What parts numbers that runs of one queue pair do not.
struct Parting<'a> {
    search: &'a Search<'a>,
    best: &'a Found,
    candidates: &'a [Candidate],
    moving: &'a [usize],
    free: &'a [usize],
}

impl Parting<'_> {
    /// Holds the other of both numbers in the place of one, also where the points fit worse by it: what tells them apart in runs of
    /// one queue pair is less than what the model is wrong by, and more queue pairs would carry more than any run shows.
    fn hold(&self, index: usize, ways: &mut Vec<Replacement>) {
        let Some(own) = self.of_one_queue_pair(index) else { return };
        match ways.iter_mut().find(|way| way.by == own.by) {
            Some(way) => way.is_held = true,
            None => ways.push(own),
        }
    }

    fn of_one_queue_pair(&self, index: usize) -> Option<Replacement> {
        let name = |index: usize| self.candidates[index].names[0].as_str();
        let (own, other) = OF_ONE_QUEUE_PAIR.iter().find(|(own, _)| name(index).ends_with(own))?;
        // What carries as much as it may holds nothing back.
        let is_open = (released(&self.candidates[index]) - self.best.at[index]).abs() <= ALONE;
        if is_open && own.ends_with("_rate") {
            return None;
        }
        let mut others = self.moving.iter().copied();
        let other = others.find(|place| name(*place).ends_with(*other) && !self.free.contains(place))?;
        let mut at = self.best.at.clone();
        at[index] = released(&self.candidates[index]);
        let found = self.search.scan(&self.search.found(at)?, other)?;
        Some(Replacement { by: vec![other], at: found.at, is_held: true })
    }
}

/// Of each fitted prediction its weight, from all points that it stands for.
pub(super) fn weights(search: &Search<'_>, best: &Found) -> Vec<f64> {
    let mut weights = vec![0.0; best.predicted.len()];
    for (place, measured) in search.points {
        weights[*place] += weight(best.predicted[*place] - measured) / (SCALE * SCALE);
    }
    weights
}

pub(super) fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let mut inverse: Vec<Vec<f64>> =
        (0..count).map(|row| (0..count).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    for column in 0..count {
        let pivot =
            (column..count).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-9 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column];
        for at in 0..count {
            matrix[column][at] /= scale;
            inverse[column][at] /= scale;
        }
        for row in (0..count).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for at in 0..count {
                let (own, other) = (matrix[column][at], inverse[column][at]);
                matrix[row][at] -= factor * own;
                inverse[row][at] -= factor * other;
            }
        }
    }
    Some(inverse)
}

/// The weighted product of two columns.
pub(super) fn product(one: &[f64], other: &[f64], weights: &[f64]) -> f64 {
    one.iter().zip(other).zip(weights).map(|((a, b), weight)| a * b * weight).sum()
}

/// The combination of columns that is nearest to one, and the length of what is left.
pub(super) fn nearest(columns: &[&Vec<f64>], own: &[f64], weights: &[f64]) -> (Vec<f64>, f64) {
    let normal: Vec<Vec<f64>> = columns
        .iter()
        .enumerate()
        .map(|(row, a)| {
            let mut of: Vec<f64> = columns.iter().map(|b| product(a, b, weights)).collect();
            of[row] += 1e-9;
            of
        })
        .collect();
    let with: Vec<f64> = columns.iter().map(|column| product(column, own, weights)).collect();
    let factors = match inverse(normal) {
        Some(inverse) => inverse.iter().map(|row| row.iter().zip(&with).map(|(a, b)| a * b).sum()).collect(),
        None => vec![0.0; columns.len()],
    };
    let mut left = own.to_vec();
    for (column, factor) in columns.iter().zip(&factors) {
        left.iter_mut().zip(*column).for_each(|(left, own)| *left -= factor * own);
    }
    let length = product(&left, &left, weights).max(0.0).sqrt();
    (factors, length)
}

/// Which numbers the points tell, which they do not tell apart, and which they do not feel.
pub(super) fn tell(
    (search, coarse): (&Search<'_>, &Search<'_>),
    (mut best, mut free): (Found, Vec<usize>),
    moving: &[usize],
    candidates: &[Candidate],
    (menu, runs): (&Menu<'_>, &[MeasuredRun]),
    (clusters, progress): (&[usize], &dyn PhaseProgress),
) -> Result<Told, CalibrationError> {
    let name = |index: usize| candidates[index].names[0].clone();
    let unfelt = |index: &usize| candidates[*index].is_asked && !moving.contains(index);
    if let Some(index) = (0..candidates.len()).find(unfelt) {
        let run = menu.feeling(index, &best).unwrap_or_else(|| ANOTHER_RUN.to_string());
        return Err(CalibrationError::NotSeen { name: name(index), run });
    }
    let slopes_at = |best: &Found| -> BTreeMap<usize, Vec<f64>> {
        moving.iter().copied().zip(search.slopes(best, moving)).collect()
    };
    // Numbers that were taken and are not told go back to what the base says.
    let (slopes, weights) = loop {
        let slopes = slopes_at(&best);
        let weights = weights(search, &best);
        let vague = free.iter().copied().find(|index| {
            let others: Vec<&Vec<f64>> =
                free.iter().filter(|other| *other != index).map(|other| &slopes[other]).collect();
            let (_, left) = nearest(&others, &slopes[index], &weights);
            // What a data sheet has is so, but where it is clearly less.
            let Candidate { number, is_asked, .. } = &candidates[*index];
            let is_of_sheet = number.low.is_none() && !is_asked;
            let is_sheet = is_of_sheet && (best.at[*index] - logarithm(number.value)).abs() < ALONE;
            is_sheet || 1.0 / left.max(1e-9) > TOLD
        });
        let Some(index) = vague else { break (slopes, weights) };
        if candidates[index].is_asked {
            let others: Vec<usize> = free.iter().copied().filter(|other| *other != index).collect();
            return Err(refusal(index, &others, &slopes, &weights, candidates, (coarse, &best, menu)));
        }
        free.retain(|other| *other != index);
        let mut back = best.at.clone();
        back[index] = logarithm(candidates[index].number.value);
        match search.found(back) {
            Some(found) => best = search.descend(found, &free),
            None => break (slopes, weights),
        }
    };
    // Numbers that were not needed but that the points hold where the base has them are told too.
    let (mut slopes, mut weights) = (slopes, weights);
    if candidates.iter().all(|candidate| !candidate.is_asked) {
        let is_open = |index: &usize| candidates[*index].number.low.is_some();
        let rest: Vec<usize> =
            moving.iter().copied().filter(|index| !free.contains(index) && is_open(index)).collect();
        for index in rest {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            let own = product(&slopes[&index], &slopes[&index], &weights).sqrt();
            let (_, left) = nearest(&columns, &slopes[&index], &weights);
            if left > OWN_SHARE * own && 1.0 / left.max(1e-9) < TOLD / 2.0 {
                free.push(index);
                free.sort_unstable();
            }
        }
        best = search.descend(best, &free);
        let there = coarse.found(best.at.clone()).map(|best| elsewhere(coarse, best, &free, progress));
        let there = there.filter(|there| there.at != best.at).and_then(|there| search.found(there.at));
        if let Some(there) =
            there.map(|there| search.descend(there, &free)).filter(|there| there.cost < best.cost)
        {
            best = there;
        }
        // The search may have left a number where no point feels it.
        slopes = slopes_at(&best);
        weights = self::weights(search, &best);
        while let Some((index, back)) = given_back(search, &best, &free, candidates, (&slopes, &weights)) {
            free.retain(|other| *other != index);
            best = back;
            slopes = slopes_at(&best);
            weights = self::weights(search, &best);
        }
    }
    let mut kept = Vec::new();
    let mut of_kept: Vec<Vec<(usize, f64)>> = vec![Vec::new(); free.len()];
    let margin = margin(&best);
    progress.phase("kept numbers and the runs that would tell them", (candidates.len() - free.len()) as u64);
    for (index, candidate) in candidates.iter().enumerate().filter(|(index, _)| !free.contains(index)) {
        progress.step();
        if candidate.stays {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            let slope = match candidate.is_size {
                true => slope_of_size(search, &best, index),
                false => search.slopes(&best, &[index]).swap_remove(0),
            };
            let factors = nearest(&columns, &slope, &weights).0;
            for (of_one, factor) in of_kept.iter_mut().zip(&factors) {
                of_one.push((index, (factor * candidate.deviation()).powi(2)));
            }
            continue;
        }
        let reason = match slopes.get(&index) {
            None => KeptReason::NotSeen,
            Some(slope) => {
                let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
                let own = product(slope, slope, &weights).sqrt();
                let (factors, left) = nearest(&columns, slope, &weights);
                // If it is off, the fitted ones stand for it.
                for (of_one, factor) in of_kept.iter_mut().zip(&factors) {
                    of_one.push((index, (factor * candidate.deviation()).powi(2)));
                }
                if !is_felt(search, index, slope, &weights) {
                    KeptReason::NotSeen
                } else if left > OWN_SHARE * own {
                    // The search was free to move what the machine says of itself, and had no reason to.
                    let is_held = SIDE_90 / left <= ALONE;
                    match is_held && candidate.number.provenance == Provenance::Measured {
                        true => KeptReason::Confirmed,
                        false => KeptReason::NotNeeded,
                    }
                } else {
                    let mut alike: Vec<(usize, f64)> =
                        free.iter().copied().zip(factors.iter().map(|factor| factor.abs())).collect();
                    alike.sort_by(|one, other| other.1.total_cmp(&one.1));
                    let most = alike.first().map_or(0.0, |(_, factor)| *factor);
                    let alike = alike.into_iter().filter(|(_, factor)| *factor > 0.2 * most);
                    KeptReason::NotToldApart(alike.map(|(other, _)| name(other)).collect())
                }
            }
        };
        // What no run of a path feels is nobody's concern.
        let factors = slopes.get(&index).map_or_else(Vec::new, |slope| {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            nearest(&columns, slope, &weights).0
        });
        let run = match reason {
            KeptReason::NotSeen => menu.feeling(index, &best),
            KeptReason::Confirmed => None,
            _ => menu.telling((index, candidate), (&free, &factors), (coarse, margin), &best),
        };
        if reason == KeptReason::NotSeen && run.is_none() {
            continue;
        }
        kept.push((index, KeptNumber::of(candidate, reason, run)));
    }
    let felt: Vec<usize> =
        free.iter().copied().filter(|index| is_felt(search, *index, &slopes[index], &weights)).collect();
    let covariance = covariance(search, &best, (&free, &felt), &slopes, &weights, clusters);
    let of_unfelt = |index: &usize| {
        (!felt.contains(index))
            .then(|| held_within((search, margin), &best, (*index, &candidates[*index]), &[]))
    };
    let open: Vec<Option<Ends>> = free.iter().map(of_unfelt).collect();
    of_kept.iter_mut().for_each(|of_one| of_one.sort_by(|one, other| other.1.total_cmp(&one.1)));
    // Numbers that are asked for are held against each other alone.
    let mut replacements: Vec<Vec<Replacement>> = vec![Vec::new(); free.len()];
    if candidates.iter().all(|candidate| !candidate.is_asked) {
        let doubt = Doubt { search, coarse, best: &best, free: &free, moving, margin };
        progress.phase("fitted numbers that another may stand for", free.len() as u64);
        for (place, index) in free.iter().enumerate() {
            progress.step();
            let released = released(&candidates[*index]);
            if (released - best.at[*index]).abs() > ALONE {
                replacements[place] = doubt.replacements(*index, released);
            }
            if is_of_one_queue_pair(runs) {
                let parting = Parting { search, best: &best, candidates, moving, free: &free };
                parting.hold(*index, &mut replacements[place]);
            }
        }
    }
    // Of latencies alone no ceiling was measured: one that may be another's stays where it was, with its interval.
    let has_rate = runs.iter().any(|run| run.kind() == RunKind::Bandwidth);
    let mut both = best.clone();
    let mut at_once: BTreeSet<usize> = BTreeSet::new();
    for (index, own) in free.iter().zip(&replacements) {
        for (other, by) in own.iter().flat_map(|other| other.by.iter().map(move |by| (other, by))) {
            let candidate = &candidates[*by];
            let place = kept.iter().position(|(other, _)| other == by).unwrap_or_else(|| {
                kept.push((*by, KeptNumber::of(candidate, KeptReason::NotSeen, None)));
                kept.len() - 1
            });
            let there = rounded(candidate.number.value, other.at[*by]);
            kept[place].1.replaces(name(*index), there, stated(candidate));
            // What would tell it is what tells the two ways.
            kept[place].1.run = menu.between(&best, other);
            // Ceilings may hold at once, and terms of a sum do not. What a data sheet says, and no point contradicts, the card has so: it
            // is the one or the other, and the fitted one holds what was measured.
            let is_sheet = candidate.number.low.is_none();
            let mut beside = both.at.clone();
            beside[*by] = other.at[*by];
            let may_hold = |beside: &Found| {
                has_rate && (other.is_held || !is_sheet && beside.cost <= best.cost + margin)
            };
            if let Some(beside) = search.found(beside).filter(may_hold) {
                at_once.extend([*index, *by]);
                both = beside;
            }
        }
    }
    let written = let_out(search, both, &at_once, candidates);
    for (index, kept) in &mut kept {
        if at_once.contains(index) {
            kept.taken = rounded(candidates[*index].number.value, written.at[*index]);
        }
    }
    let unfitted = |index: &usize| !free.contains(index) && candidates[*index].number.low.is_some();
    let unfitted: Vec<usize> = moving.iter().copied().filter(unfitted).collect();
    progress.phase("how far numbers that were not fitted may be off", unfitted.len() as u64);
    for index in unfitted {
        progress.step();
        let candidate = &candidates[index];
        // From where it is, and from where it explains the points in the place of another.
        let ways = replacements.iter().flatten().filter(|way| way.by.contains(&index));
        let places = std::iter::once(&best.at).chain(ways.map(|way| &way.at));
        let places = places.filter_map(|at| coarse.found(at.clone()));
        let ends: Vec<Ends> =
            places.map(|from| held_within((coarse, margin), &from, (index, candidate), &free)).collect();
        let low = ends.iter().map(|(low, _)| *low).fold(f64::INFINITY, f64::min);
        let high = ends.iter().map(|(_, high)| *high).fold(f64::NEG_INFINITY, f64::max);
        let (least, most) = stated(candidate);
        if low <= logarithm(least) && high >= logarithm(most) {
            continue;
        }
        let of = candidate.number.value;
        let left = |end: f64, stated: Quantity| match (end - logarithm(stated)).abs() < 1e-9 {
            true => stated,
            false => rounded(of, end),
        };
        let left = (left(low, least), left(high, most));
        let place = kept.iter().position(|(other, _)| *other == index).unwrap_or_else(|| {
            kept.push((index, KeptNumber::of(candidate, KeptReason::NotSeen, None)));
            kept.len() - 1
        });
        kept[place].1.hold(left);
    }
    kept.sort_by_key(|(index, _)| *index);
    let kept = kept.into_iter().map(|(_, kept)| kept).collect();
    Ok(Told { best, written, free, covariance, alike: of_kept, open, replacements, kept })
}

/// By how much the points may fit worse and be as well explained: by what would not have made a number worth fitting.
fn margin(best: &Found) -> f64 {
    LEAST_GAIN.max(GAIN * best.cost)
}

/// Whether points feel a number where it is, as far as its interval goes.
fn is_felt(search: &Search<'_>, index: usize, slope: &[f64], weights: &[f64]) -> bool {
    product(slope, slope, weights).sqrt() * (search.high[index] - search.low[index]) >= 1.0
}

/// A fitted number that no point feels where it is and that they fit without as well, with where the others go then.
fn given_back(
    search: &Search<'_>,
    best: &Found,
    free: &[usize],
    candidates: &[Candidate],
    (slopes, weights): (&BTreeMap<usize, Vec<f64>>, &[f64]),
) -> Option<(usize, Found)> {
    let mut unfelt = free.iter().copied().filter(|index| !is_felt(search, *index, &slopes[index], weights));
    unfelt.find_map(|index| {
        let rest: Vec<usize> = free.iter().copied().filter(|other| *other != index).collect();
        let mut at = best.at.clone();
        at[index] = logarithm(candidates[index].number.value);
        let back = search.descend(search.found(at)?, &rest);
        (back.cost <= best.cost + margin(best)).then_some((index, back))
    })
}

/// How near the end of an interval is looked for where others are fitted anew beside each try, as a logarithm.
const NEAR: f64 = 2.0 * SCALE;

/// Between what a number may be: on each side as far as the base allows, or to where the points fit worse by more than a margin, also
/// with the fitted numbers where these go then.
fn held_within(
    (search, margin): (&Search<'_>, f64),
    best: &Found,
    (index, candidate): (usize, &Candidate),
    free: &[usize],
) -> Ends {
    let (low, high) = stated(candidate);
    let from = best.at[index];
    let enough = search.cost(&best.predicted) + margin;
    let found = |start: &[f64], value: f64| {
        let mut at = start.to_vec();
        at[index] = value;
        search.found(at)
    };
    let reach = |end: f64| {
        let fits = |value: f64| found(&best.at, value).is_some_and(|found| found.cost <= enough);
        if fits(end) {
            return end;
        }
        let (mut within, mut beyond) = (from, end);
        while (beyond - within).abs() > SCALE / 2.0 {
            let middle = (within + beyond) / 2.0;
            *(if fits(middle) { &mut within } else { &mut beyond }) = middle;
        }
        if free.is_empty() {
            return within;
        }
        // Where the others give way the number may go farther, each try from where the last one that fits left them.
        let mut start = best.at.clone();
        let mut fits_anew = |value: f64| {
            let Some(there) = found(&start, value) else { return false };
            let anew = Some(search.descend(there, free)).filter(|found| found.cost <= enough);
            anew.inspect(|found| start.clone_from(&found.at)).is_some()
        };
        if fits_anew(end) {
            return end;
        }
        beyond = end;
        while (beyond - within).abs() > NEAR {
            let middle = (within + beyond) / 2.0;
            *(if fits_anew(middle) { &mut within } else { &mut beyond }) = middle;
        }
        beyond
    };
    (reach(logarithm(low).min(from)), reach(logarithm(high).max(from)))
}

/// Lets ceilings that are held at once out alike, as far as the points fit best: each of two in a row holds back what the other
/// lets through, so that both at what either alone was measured at carry less than was measured.
fn let_out(search: &Search<'_>, from: Found, at_once: &BTreeSet<usize>, candidates: &[Candidate]) -> Found {
    let mut best = from;
    let mut step = 0.08;
    while !at_once.is_empty() && step > SCALE / 20.0 {
        let nearer = [-step, step].into_iter().filter_map(|by| {
            let mut to = best.at.clone();
            for index in at_once {
                let outwards = (released(&candidates[*index]) - to[*index]).signum();
                to[*index] = (to[*index] + by * outwards).clamp(search.low[*index], search.high[*index]);
            }
            search.found(to)
        });
        match nearer.min_by(|one, other| one.cost.total_cmp(&other.cost)) {
            Some(nearer) if nearer.cost < best.cost => best = nearer,
            _ => step /= 2.0,
        }
    }
    best
}

pub(super) fn refusal(
    index: usize,
    others: &[usize],
    slopes: &BTreeMap<usize, Vec<f64>>,
    weights: &[f64],
    candidates: &[Candidate],
    (coarse, best, menu): (&Search<'_>, &Found, &Menu<'_>),
) -> CalibrationError {
    let name = candidates[index].names[0].clone();
    let (low, high) = bounds(&candidates[index]);
    let own = product(&slopes[&index], &slopes[&index], weights).sqrt();
    let columns: Vec<&Vec<f64>> = others.iter().map(|other| &slopes[other]).collect();
    let (factors, _) = nearest(&columns, &slopes[&index], weights);
    let is_unseen = own * (high - low) < 1.0 || others.is_empty();
    let run = match is_unseen {
        true => menu.feeling(index, best),
        false => menu.telling((index, &candidates[index]), (others, &factors), (coarse, margin(best)), best),
    };
    let run = run.unwrap_or_else(|| ANOTHER_RUN.to_string());
    if is_unseen {
        return CalibrationError::NotSeen { name, run };
    }
    let most = factors.iter().map(|factor| factor.abs()).fold(0.0, f64::max);
    let alike = others.iter().zip(&factors).filter(|(_, factor)| factor.abs() > 0.2 * most);
    let from = alike.map(|(other, _)| format!("`{}`", candidates[*other].names[0])).collect();
    CalibrationError::NotToldApart { name, from, run }
}

/// A prediction that the fitted numbers follow by more than this share of whatever is measured of it has next to no error left at
/// the best fit, however far a run of it scatters.
const FOLLOWED: f64 = 0.9;

/// How the fitted numbers vary together: by the errors that are there, of which those of one prediction count together. Numbers that
/// no point feels vary by themselves, and nothing here says how far.
pub(super) fn covariance(
    search: &Search<'_>,
    best: &Found,
    (free, felt): (&[usize], &[usize]),
    slopes: &BTreeMap<usize, Vec<f64>>,
    weights: &[f64],
    clusters: &[usize],
) -> Vec<Vec<f64>> {
    if felt.len() < free.len() {
        let of_felt = covariance(search, best, (felt, felt), slopes, weights, clusters);
        let place = |index: &usize| felt.iter().position(|one| one == index);
        let of = |row: &usize, column: &usize| {
            place(row).zip(place(column)).map_or(0.0, |(row, column)| of_felt[row][column])
        };
        return free.iter().map(|row| free.iter().map(|column| of(row, column)).collect()).collect();
    }
    let count = free.len();
    let normal: Vec<Vec<f64>> = free
        .iter()
        .map(|row| free.iter().map(|column| product(&slopes[row], &slopes[column], weights)).collect())
        .collect();
    // Where they cannot be solved for, the points tell none: each may be several times what it is.
    let Some(inverse) = inverse(normal) else {
        let one = |row: usize, column: usize| if row == column { 1.0 } else { 0.0 };
        return (0..count).map(|row| (0..count).map(|column| one(row, column)).collect()).collect();
    };
    // Errors of one prediction go together, as those of a model do, and so do those of a cluster.
    let mut of_places: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut of_clusters: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for ((place, measured), cluster) in search.points.iter().zip(clusters) {
        let error = best.predicted[*place] - measured;
        let score = weight(error) * error / (SCALE * SCALE);
        for (column, index) in free.iter().enumerate() {
            let own = score * slopes[index][*place];
            of_places.entry(*place).or_insert_with(|| vec![0.0; count])[column] += own;
            of_clusters.entry(*cluster).or_insert_with(|| vec![0.0; count])[column] += own;
        }
    }
    // What is followed has the scatter of all the others in the place of its own error.
    let followed = |place: &usize| -> f64 {
        let own: Vec<f64> = free.iter().map(|index| slopes[index][*place]).collect();
        let of_row = |row: usize| own[row] * (0..count).map(|at| inverse[row][at] * own[at]).sum::<f64>();
        weights[*place] * (0..count).map(of_row).sum::<f64>()
    };
    let is_followed: BTreeSet<usize> =
        of_places.keys().copied().filter(|place| followed(place) > FOLLOWED).collect();
    if !is_followed.is_empty() {
        let errors = search.points.iter().map(|(place, measured)| (place, best.predicted[*place] - measured));
        let others: Vec<f64> =
            errors.filter(|(place, _)| !is_followed.contains(place)).map(|(_, error)| error).collect();
        let mean = |of: &dyn Fn(f64) -> f64| others.iter().map(|error| of(*error)).sum::<f64>();
        let scatter = (mean(&|error| weight(error) * error * error) / mean(&weight).max(1e-9)).sqrt();
        for place in &is_followed {
            let sum = of_places.get_mut(place).expect("it is one of them");
            for (own, index) in sum.iter_mut().zip(free) {
                *own = weights[*place] * scatter * slopes[index][*place];
            }
        }
    }
    let spread = |groups: &BTreeMap<usize, Vec<f64>>| -> Vec<Vec<f64>> {
        let few = groups.len() as f64 / (groups.len() as f64 - 1.0).max(1.0);
        let of =
            |row: usize, column: usize| few * groups.values().map(|sum| sum[row] * sum[column]).sum::<f64>();
        (0..count).map(|row| (0..count).map(|column| of(row, column)).collect()).collect()
    };
    let (middle_places, middle_clusters) = (spread(&of_places), spread(&of_clusters));
    let wider = student(1, of_clusters.len()).powi(2);
    let middle: Vec<Vec<f64>> = (0..count)
        .map(|row| {
            (0..count)
                .map(|column| middle_places[row][column] + wider * middle_clusters[row][column])
                .collect()
        })
        .collect();
    let times = |one: &[Vec<f64>], other: &[Vec<f64>]| -> Vec<Vec<f64>> {
        (0..count)
            .map(|row| {
                (0..count).map(|column| (0..count).map(|at| one[row][at] * other[at][column]).sum()).collect()
            })
            .collect()
    };
    times(&times(&inverse, &middle), &inverse)
}

/// How predictions move with a size on its way to the farther of the ends of its interval that make a system: between them
/// may be none.
pub(super) fn slope_of_size(search: &Search<'_>, from: &Found, index: usize) -> Vec<f64> {
    let ends = [search.low[index], search.high[index]].into_iter().filter_map(|end| {
        let way = end - from.at[index];
        let mut to = from.at.clone();
        to[index] = end;
        (way != 0.0).then(|| search.model.predict(&to)).flatten().map(|there| (way, there))
    });
    let Some((way, there)) = ends.max_by(|(one, _), (other, _)| one.abs().total_cmp(&other.abs())) else {
        return vec![0.0; from.predicted.len()];
    };
    there.iter().zip(&from.predicted).map(|(there, here)| (there - here) / way).collect()
}
