//! How well a gain is known of the card: as given and as changed, both are added up in the same draws of every number
//! that is known as an interval, so that what both share cancels.

use super::numbers::SameNumbers;
use super::trial::{self, AdviceCase, TrialBench};
use super::{LEAST_GAIN, Scope};
use crate::confidence::Ranged;
use crate::design::Objective;
use crate::factor::{Base, Factor};
use crate::planner::{Ready, prepare};
use crate::program::Fold;
use crate::residual::{FigureKind, Lesson, Widened};
use crate::rests::{Basis, MovedFigures, Rest, least_on};
use crate::sample::{DRAWS, JointSample};
use crate::side_by_side::side_by_side;
use offpath_quantity::Quantity;
use std::collections::BTreeMap;

/// How well a gain is known of the card.
///
/// It is of demands that are added up at the shares that are advised, on the base mechanism: queueing is in none of it, and
/// other mechanisms stand beside it ([`super::Advice::with_variants`]).
#[derive(Clone, Debug, PartialEq)]
pub struct GainStanding {
    /// The gain as a share, with its intervals over the joint draws, widened by what past predictions of ratios were wrong
    /// by.
    pub share: Ranged,
    /// In which share of what the intervals are made of it is worth a change ([`LEAST_GAIN`]).
    pub gains_in: f64,
    /// How well it is known.
    pub basis: Basis,
    /// What it rests on, the heaviest first.
    pub rests: Vec<Rest>,
}

/// A case with the systems that it runs on.
struct Side<'a> {
    case: &'a AdviceCase,
    ready: Vec<Ready>,
    folds: Vec<Fold>,
}

impl<'a> Side<'a> {
    fn of(bench: &TrialBench<'_>, case: &'a AdviceCase) -> Result<Side<'a>, miette::Report> {
        let mut ready = prepare(&case.design, bench.setting)?;
        ready.retain(|one| {
            case.shares.iter().any(|(name, share)| *name == one.alternative.name && *share > 0.0)
        });
        let folds = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        Ok(Side { case, ready, folds })
    }
}

/// A side with its numbers, by what the given design calls them: what a remedy copies is there more than once.
struct Numbers<'a> {
    side: &'a Side<'a>,
    base: Base<'a>,
    own: BTreeMap<String, Vec<Factor>>,
}

impl<'a> Numbers<'a> {
    fn of(side: &'a Side<'a>, name: impl Fn(&str) -> String) -> Numbers<'a> {
        let base = Base::new(&side.case.design, &side.ready, &side.folds);
        let mut own: BTreeMap<String, Vec<Factor>> = BTreeMap::new();
        for factor in base.factors() {
            own.entry(name(&factor.id)).or_default().push(factor);
        }
        Numbers { side, base, own }
    }

    /// What the objective seeks more or less of, with those of its numbers moved that are among `moves`; none where the
    /// design or the system is none with them.
    fn worth(&self, moves: &[(&Factor, Quantity)], scope: &Scope) -> Option<f64> {
        let own = moves.iter().flat_map(|(factor, value)| {
            self.own.get(&factor.id).into_iter().flatten().map(move |own| (own, *value))
        });
        let own: Vec<(&Factor, Quantity)> = own.collect();
        let (design, ready) = self.base.ready_at(&own).ok()?;
        if ready.len() < self.side.ready.len() {
            return None;
        }
        let case = AdviceCase { design, ..self.side.case.clone() };
        let added = trial::added(&case, &ready, scope).ok()?;
        let worth = match case.design.objective {
            Objective::MostThroughput => added.capacity,
            Objective::LeastHostCpu { .. } | Objective::LowestP99 { .. } => added.host_cpu_s,
        };
        (worth.is_finite() && worth > 0.0).then_some(worth)
    }
}

/// How well the gain of `changed` over `given` is known; none where a tail is sought, of which added-up demands tell
/// nothing, and where either side is no design with its own numbers.
pub(super) fn standing(
    bench: &TrialBench<'_>,
    given: &AdviceCase,
    changed: &AdviceCase,
    (scope, same): (&Scope, &SameNumbers),
) -> Result<Option<GainStanding>, miette::Report> {
    let objective = given.design.objective;
    if matches!(objective, Objective::LowestP99 { .. }) {
        return Ok(None);
    }
    let sides = [Side::of(bench, given)?, Side::of(bench, changed)?];
    let numbers = [
        Numbers::of(&sides[0], str::to_string),
        Numbers::of(&sides[1], |place| same.name(place).to_string()),
    ];
    let ratio = |moves: &[(&Factor, Quantity)]| -> Option<f64> {
        Some(numbers[1].worth(moves, scope)? / numbers[0].worth(moves, scope)?)
    };
    let Some(point) = ratio(&[]) else { return Ok(None) };
    // Of what both have, what the given design says is drawn.
    let mut all: BTreeMap<&String, Factor> = BTreeMap::new();
    for (name, factors) in numbers.iter().flat_map(|side| &side.own) {
        all.entry(name).or_insert_with(|| {
            let mut factor = factors[0].clone();
            factor.id.clone_from(name);
            factor
        });
    }
    let factors: Vec<Factor> = all.into_values().collect();
    let is_set = |factor: &Factor| !given.design.sets(&factor.id);
    let moved = MovedFigures::look(factors, is_set, |_| true, |moves| Ok::<_, miette::Report>(ratio(moves)))?;
    let joint = JointSample::new(moved.factors().to_vec(), bench.seed, |factor| factor.id.clone());
    let draws = side_by_side(DRAWS, |draw| ratio(&joint.at(draw)));
    let own = |ratio: &f64| *ratio;
    let known = moved.rests(point, &own, &[]);
    let ready = || sides.iter().flat_map(|side| &side.ready);
    let is_unknown = ready().any(|one| !one.compiled.has_evidence());
    let least = ready().map(|one| least_on(one.router.system())).fold(Basis::Fitted, Basis::max);
    let basis = moved.basis(&known, is_unknown, &own, &[]).max(least);
    let lesson = Lesson::of(&known, ready().map(|one| one.router.system()));
    let sample = draws.into_iter().flatten().map(|ratio| (ratio, f64::INFINITY)).collect();
    let sample = Widened::new(sample, &lesson.sizes(FigureKind::ThroughputRatio));
    Ok(Some(GainStanding {
        share: as_gain(objective, Ranged::of(point, &sample)),
        gains_in: match objective {
            Objective::MostThroughput => 1.0 - sample.below(1.0 + LEAST_GAIN),
            _ => sample.below(1.0 - LEAST_GAIN),
        },
        basis,
        rests: known,
    }))
}

/// A ratio of what the objective seeks as the gain that it is: more throughput, or less of what is spared.
fn as_gain(objective: Objective, ratio: Ranged) -> Ranged {
    let gain = |ratio: f64| match objective {
        Objective::MostThroughput => ratio - 1.0,
        _ => 1.0 - ratio,
    };
    let ends = |(low, high): (f64, f64)| {
        let (one, other) = (gain(low), gain(high));
        (one.min(other), one.max(other))
    };
    Ranged {
        value: gain(ratio.value),
        median: gain(ratio.median),
        range_80: ends(ratio.range_80),
        range_95: ends(ratio.range_95),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_of_what_is_spared_is_a_gain_as_more_throughput_is() {
        let ratio = Ranged { value: 0.75, median: 0.5, range_80: (0.5, 1.0), range_95: (0.25, 1.5) };
        let load = 1e6;
        assert_eq!(
            as_gain(Objective::LeastHostCpu { load }, ratio),
            Ranged { value: 0.25, median: 0.5, range_80: (0.0, 0.5), range_95: (-0.5, 0.75) }
        );
        assert_eq!(
            as_gain(Objective::MostThroughput, ratio),
            Ranged { value: -0.25, median: -0.5, range_80: (-0.5, 0.0), range_95: (-0.75, 0.5) }
        );
    }
}
