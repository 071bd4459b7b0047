//! Joint samples of numbers that are known within an interval, as the planner draws them.

use crate::bench::{Bench, Change};
use crate::reproduce::Uncertain;
use offpath_plan::sample::{between, other_mechanism, strata_by};
use offpath_twin::{Seed, unit_of};

/// Draws of a joint sample. Residuals widen each, so that fewer are enough than where they stand alone.
pub const DRAWS: usize = 48;

/// A Latin hypercube over the numbers: for each draw the changes to the profiles.
fn draws(uncertain: &[Uncertain]) -> Vec<Vec<Change>> {
    let mut all = vec![Vec::new(); DRAWS];
    for one in uncertain {
        for (changes, at) in all.iter_mut().zip(strata(&one.name)) {
            let value = between(one.value, one.low, one.high, at);
            changes.push(Change { file: one.file.clone(), key: one.key.clone(), value });
        }
    }
    all
}

/// The benches of a joint sample. As in a plan, half of the draws keep the mechanisms of the profiles, and the others are
/// shared by those that the measured card leaves `open`.
pub(crate) fn drawn(own: &Bench, uncertain: &[Uncertain], open: &[String]) -> Vec<Bench> {
    let of_draw = |changes: Vec<Change>, at: f64| {
        let variant = other_mechanism(at, open.len()).map(|index| &open[index]);
        let overlays = own.overlays().iter().chain(variant).cloned().collect();
        own.with(changes).under(overlays)
    };
    draws(uncertain).into_iter().zip(strata("mechanism")).map(|(changes, at)| of_draw(changes, at)).collect()
}

/// A number from 0 to 1 of each of [`DRAWS`] equal strata, in an order that the name decides.
fn strata(name: &str) -> Vec<f64> {
    let seed = Seed::new(1).child("sample").child(&offpath_profile::first_name(name));
    strata_by(DRAWS, |index| unit_of(seed.index(index as u64).value()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_stratum_is_drawn_once_and_names_do_not_move_each_other() {
        let mut drawn = strata("a");
        assert_ne!(drawn, strata("b"));
        drawn.sort_by(f64::total_cmp);
        for (stratum, at) in drawn.iter().enumerate() {
            assert_eq!((at * DRAWS as f64) as usize, stratum);
        }
    }
}
