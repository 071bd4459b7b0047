//! The fitted numbers with their intervals, and with what the points leave open of each.

use super::answer::{LearntDoubt, LearntNumber, over};
use super::candidates::{Candidate, logarithm, rounded, sought, stated};
use super::errors::SIDE_90;
use super::menu::Menu;
use super::tell::ALONE;
use crate::descent::Found;
use crate::doubt::Replacement;
use offpath_quantity::Quantity;

/// A fitted number with what the points leave open of it.
pub(super) fn doubted(
    mut found: LearntNumber,
    candidate: &Candidate,
    candidates: &[Candidate],
    replacements: &[Replacement],
    (index, best, menu): (&usize, &Found, &Menu<'_>),
) -> LearntNumber {
    if let Some(first) = replacements.first() {
        let elsewhere = rounded(candidate.number.value, first.at[*index]);
        (found.low, found.high) = over((found.low, found.high), (elsewhere, elsewhere));
        found.is_told = false;
        let names = |other: &Replacement| -> Vec<String> {
            other.by.iter().map(|by| candidates[*by].names[0].clone()).collect()
        };
        let by = replacements.iter().map(names).filter(|by| !by.is_empty()).collect();
        let machine_tells =
            [&[*index], &first.by[..]].concat().iter().any(|one| candidates[*one].machine_tells());
        found.doubt = Some(LearntDoubt::Replaceable { by, run: menu.between(best, first), machine_tells });
    }
    let stated = stated(candidate);
    // An end is no wall: as near as this is at it.
    let is_within = (0.99 * stated.0.base()..=1.01 * stated.1.base()).contains(&found.value.base());
    if candidate.number.low.is_some() && !found.alike.is_empty() && !is_within {
        (found.low, found.high) = over((found.low, found.high), stated);
        found.doubt = Some(LearntDoubt::BeyondBase);
    }
    if found.at_bound && found.doubt.is_none() {
        found.is_told = false;
        found.doubt = Some(LearntDoubt::AtBound);
    }
    let is_wide = found.high.base() / found.low.base() >= stated.1.base() / stated.0.base();
    if candidate.number.low.is_some() && !found.is_told && found.doubt.is_none() && is_wide {
        (found.low, found.high) = over((found.low, found.high), stated);
        found.doubt = Some(LearntDoubt::Untold);
    }
    found
}

/// A number of a card that the model does not describe: a guess within all that fits best and the base allows.
pub(super) fn undescribed(one: &mut LearntNumber, candidate: &Candidate) {
    (one.low, one.high) = over((one.low, one.high), stated(candidate));
    one.is_told = false;
    // A search that ended at its bound says more.
    if one.doubt != Some(LearntDoubt::AtBound) {
        one.doubt = Some(LearntDoubt::NotDescribed);
    }
}

/// A number of runs whose repetitions differ so many times: it may be what any of them says. A data sheet's number is no greater than
/// that.
pub(super) fn differing(one: &mut LearntNumber, candidate: &Candidate, ratio: f64) {
    let is_sheet = candidate.number.low.is_none() || matches!(one.base, Quantity::Ratio(_));
    let most = if is_sheet { logarithm(one.high).max(logarithm(one.base)) } else { f64::INFINITY };
    one.low = rounded(one.base, logarithm(one.low) - ratio.ln());
    one.high = rounded(one.base, (logarithm(one.high) + ratio.ln()).min(most));
}

/// Ends of an interval are no farther off than where the number was sought, which is within what loading accepts.
pub(super) fn contained(one: &mut LearntNumber, candidate: &Candidate) {
    let (low, high) = sought(candidate);
    let within = |end: Quantity| match end.base() {
        base if base < low.base() => low,
        base if base > high.base() => high,
        _ => end,
    };
    (one.low, one.value, one.high) = (within(one.low), within(one.value), within(one.high));
}

/// What kept numbers add to the variance of a fitted one, each by its place.
pub(super) type OfKept = Vec<(usize, f64)>;

/// The ends of an interval, as logarithms.
pub(super) type Ends = (f64, f64);

/// What the points leave open of fitted numbers, in the order of these: how they doubt one another, what kept ones add, between
/// which ends the points fit as well where they feel nothing, and what would stand for each.
pub(super) struct LeftOpen<'t> {
    pub covariance: &'t [Vec<f64>],
    pub of_kept: &'t [OfKept],
    pub open: &'t [Option<Ends>],
    pub replacements: &'t [Vec<Replacement>],
}

pub(super) fn learnt(
    candidates: &[Candidate],
    (best, written, menu): (&Found, &Found, &Menu<'_>),
    free: &[usize],
    LeftOpen { covariance, of_kept, open, replacements }: LeftOpen<'_>,
    (low, high): (&[f64], &[f64]),
) -> Vec<LearntNumber> {
    free.iter()
        .enumerate()
        .map(|(place, index)| {
            let candidate = &candidates[*index];
            let base = candidate.number.value;
            let at = written.at[*index];
            let own = covariance[place][place].max(0.0);
            let more: f64 = of_kept[place].iter().map(|(_, variance)| variance).sum();
            let deviation = (own + more).sqrt();
            let side = SIDE_90 * deviation;
            // A number that no point feels where it is has no slope to tell a width by.
            let (from, to) = open[place].unwrap_or((at - side, at + side));
            let is_told = open[place].is_none() && side <= ALONE;
            let weighty =
                of_kept[place].iter().filter(|(_, variance)| !is_told && *variance > 0.1 * (own + more));
            let found = LearntNumber {
                name: candidate.names[0].clone(),
                also: candidate.names[1..].to_vec(),
                file: candidate.number.file.clone(),
                key: candidate.number.key.clone(),
                base,
                value: rounded(base, at),
                low: rounded(base, from),
                high: rounded(base, to),
                at_bound: at < low[*index] + 1e-6 || at > high[*index] - 1e-6,
                is_told,
                alike: weighty.map(|(other, _)| candidates[*other].names[0].clone()).collect(),
                doubt: None,
            };
            doubted(found, candidate, candidates, &replacements[place], (index, best, menu))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calibrate::candidates::BEYOND;
    use offpath_profile::{Library, SystemRequest};
    use offpath_quantity::Time;

    /// However far a fit leaves a number open, its interval ends where it was sought, and where loading accepts it.
    #[test]
    fn no_interval_reaches_farther_than_a_number_was_sought() {
        let request = SystemRequest { device: "connectx7", ..SystemRequest::default() };
        let system = Library::builtin().load(&request).expect("it ships");
        let name = "host.read_latency";
        let number = system.numbers[name].as_ref().clone();
        let range = system.range_of(name).expect("it is a number");
        let of = |range| Candidate {
            names: vec![name.to_string()],
            number: number.clone(),
            range,
            is_asked: true,
            is_size: false,
            is_link: false,
            stays: false,
        };
        let found = |candidate: &Candidate| {
            let mut found = LearntNumber {
                name: name.to_string(),
                also: Vec::new(),
                file: number.file.clone(),
                key: number.key.clone(),
                base: number.value,
                value: number.value,
                low: Quantity::Time(Time::ZERO),
                high: Quantity::Time(Time::from_ps(1_822_000_000_000)),
                at_bound: false,
                is_told: false,
                alike: Vec::new(),
                doubt: None,
            };
            contained(&mut found, candidate);
            (found.low.base(), found.value.base(), found.high.base())
        };
        let (low, value, high) = found(&of(range));
        let stated = stated(&of(range));
        assert!((low * BEYOND / stated.0.base() - 1.0).abs() < 1e-3, "{low}");
        assert!((high / BEYOND / stated.1.base() - 1.0).abs() < 1e-3, "{high}");
        assert_eq!(value, number.value.base());
        // What loading accepts may end before.
        let most = Quantity::Time(Time::from_ps(stated.1.base() as u64 + 1));
        let end = found(&of((range.0, most))).2;
        assert!(end <= most.base() && end > 0.999 * most.base(), "{end} of {most}");
    }
}
