//! What predictions are without some of the points that the numbers were fitted to: without a run, without what errs with it.

use super::PhaseProgress;
use super::candidates::{Candidate, logarithm};
use super::tell::{TOLD, nearest, weights};
use crate::descent::{Found, SCALE, Search};
use std::collections::BTreeSet;

/// The prediction of a fitted point without it and others.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct LeftOutPoint {
    /// In the point's own unit.
    pub predicted: f64,
    /// Whether it hangs on a number that the rest does not tell, which has the base's value then: what it is off by is known of the
    /// base, and says nothing of what was learnt.
    pub is_of_base: bool,
}

/// Points that were fitted, with what was found.
pub(super) struct LeavingOut<'a> {
    pub search: &'a Search<'a>,
    /// What each target of the search is of, by the point's position.
    pub of_targets: &'a [usize],
    pub best: &'a Found,
    /// What the card has otherwise than what was found moves each prediction by.
    pub held_back: &'a [f64],
    pub free: &'a [usize],
    /// How predictions move with each of these.
    pub slopes: &'a [Vec<f64>],
    pub candidates: &'a [Candidate],
}

/// Where the rest leads: its predictions, and which of them hang on the base.
type OfRest = (Vec<f64>, Vec<bool>);

impl LeavingOut<'_> {
    /// Of each of some points the prediction without those of its own group; nothing of points in no group, or where too few are left.
    /// One run less moves the numbers so little that the slopes where all are fitted say what follows. Of what errs together there is
    /// much, and a ceiling that it alone felt is none where it is left out: then the model says it, as it does wherever a number is left
    /// to the base.
    pub fn each(
        &self,
        count: usize,
        group: &dyn Fn(usize) -> usize,
        (is_by_model, progress): (bool, &dyn PhaseProgress),
    ) -> Vec<Option<LeftOutPoint>> {
        let mut left_out = vec![None; count];
        let groups: BTreeSet<usize> = self.of_targets.iter().map(|index| group(*index)).collect();
        for own in groups {
            progress.step();
            let Some((predicted, is_of_base)) = self.without(&|index| group(index) == own, is_by_model)
            else {
                continue;
            };
            let targets = self.search.points.iter().zip(self.of_targets);
            for ((place, _), index) in targets.filter(|(_, index)| group(**index) == own) {
                left_out[*index] = Some(LeftOutPoint {
                    predicted: (predicted[*place] + self.held_back[*place]).exp(),
                    is_of_base: is_of_base[*place],
                });
            }
        }
        left_out
    }

    fn without(&self, leave: &dyn Fn(usize) -> bool, is_by_model: bool) -> Option<OfRest> {
        let LeavingOut { best, free, .. } = *self;
        let targets = self.search.points.iter().zip(self.of_targets);
        let rest: Vec<(usize, f64)> =
            targets.filter(|(_, index)| !leave(**index)).map(|(target, _)| *target).collect();
        if rest.len() < free.len().max(2) {
            return None;
        }
        let (told, to_base) = self.told_by(&Search { points: &rest, ..*self.search });
        if to_base.is_empty() && !is_by_model {
            let linear = |at: &[f64]| -> Option<Vec<f64>> {
                let mut predicted = best.predicted.clone();
                for (index, slope) in free.iter().zip(self.slopes) {
                    let step = at[*index] - best.at[*index];
                    predicted.iter_mut().zip(slope).for_each(|(predicted, slope)| *predicted += step * slope);
                }
                Some(predicted)
            };
            let search = Search { model: &linear, points: &rest, ..*self.search };
            let found = search.descend(search.found(best.at.clone())?, free);
            let is_of_base = vec![false; found.predicted.len()];
            return Some((found.predicted, is_of_base));
        }
        let search = Search { points: &rest, ..*self.search };
        let mut at = best.at.clone();
        for index in &to_base {
            at[*index] = logarithm(self.candidates[*index].number.value);
        }
        let found = search.descend(search.found(at)?, &told);
        let mut elsewhere = found.at.clone();
        to_base.iter().for_each(|index| elsewhere[*index] = best.at[*index]);
        let elsewhere = search.found(elsewhere)?.predicted;
        let is_of_base = found.predicted.iter().zip(&elsewhere).map(|(a, b)| (a - b).abs() > SCALE).collect();
        Some((found.predicted, is_of_base))
    }

    /// The fitted numbers that some points tell, and those that they do not, which the whole fit would leave at the base's.
    fn told_by(&self, rest: &Search<'_>) -> (Vec<usize>, Vec<usize>) {
        let weights = weights(rest, self.best);
        let slope = |index: &usize| {
            let place = self.free.iter().position(|one| one == index).expect("it is one of them");
            &self.slopes[place]
        };
        let mut told = self.free.to_vec();
        let mut to_base = Vec::new();
        let is_vague = |told: &[usize], index: &usize| {
            let others: Vec<&Vec<f64>> = told.iter().filter(|other| *other != index).map(slope).collect();
            let (_, left) = nearest(&others, slope(index), &weights);
            1.0 / left.max(1e-9) > TOLD
        };
        while let Some(place) = (0..told.len()).find(|place| is_vague(&told, &told[*place])) {
            to_base.push(told.remove(place));
        }
        (told, to_base)
    }
}
