//! What a figure rests on, found by moving numbers and looking at it, and how well it is known for that.
//!
//! Nothing here knows what is looked at: figures of a plan, of a comparison, of one operation, or a gain.

use crate::factor::{Factor, Origin};
use crate::sample::{Drawn, between, looked_at};
use crate::side_by_side::side_by_side;
use offpath_profile::{Provenance, System};
use offpath_quantity::{Dimension, Quantity};
use std::collections::BTreeMap;

/// How well a figure is known, the best first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The evidence that measured this very alternative fixes a number that it rests on.
    Fitted,
    /// It follows from numbers that other evidence fixes.
    Predicted,
    /// A guess moves it by more than 1%, or a number that is known as a range by more than 5%.
    Weak,
    /// It rests on what the user's design or settings state: by a tenth or more, or one of these numbers moves it by more
    /// than 1%.
    YourEstimate,
    /// Guesses decide it by half or more, or move it by half or more of itself, or no evidence speaks of what it does at all:
    /// only the order of alternatives may be read from it.
    OrderOnly,
}

impl Basis {
    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Predicted => "predicted",
            Basis::Weak => "weak",
            Basis::YourEstimate => "your estimate",
            Basis::OrderOnly => "order only",
        }
    }
}

/// A number that a figure rests on.
#[derive(Clone, Debug, PartialEq)]
pub struct Rest {
    /// The number.
    pub number: String,
    /// Others that are one guess with it, which draws move together: all else here is of all of them.
    pub with: Vec<String>,
    /// How it is known.
    pub origin: Origin,
    /// By how many percent one percent of it moves the figure, without its sign.
    pub elasticity: f64,
    /// Its share of all that is not exact: its elasticity over the sum of those of all numbers but facts of a
    /// data sheet. The shares of a figure sum to 1; such a fact has none.
    pub weight: f64,
    /// By which share of the figure it moves it at the worse end of its interval, a guess or a number of the user's that
    /// has none by a factor of 1.5, and one that is set at the value that it replaces; 0 of a fact without one.
    pub moves: f64,
    /// Of what draws take its values.
    pub drawn: Drawn,
    /// Whether it follows from evidence about this very alternative.
    pub own_evidence: bool,
}

impl Rest {
    /// What is no one number: it moves a figure, and nothing follows a percent of it.
    fn of_moves(number: &str, origin: Origin, moves: f64) -> Rest {
        let (elasticity, weight) = (0.0, 0.0);
        let (drawn, own_evidence) = (Drawn::Interval, false);
        let (number, with) = (number.to_string(), Vec::new());
        Rest { number, with, origin, elasticity, weight, moves, drawn, own_evidence }
    }

    /// With another number that is one guess with it: a time means the same whether it is written as one step or as twenty.
    fn join(&mut self, other: Rest) {
        self.with.push(other.number);
        self.elasticity += other.elasticity;
        self.weight += other.weight;
        self.moves += other.moves;
    }
}

/// The figures of what has some numbers, with each of them moved alone.
pub(crate) struct MovedFigures<F> {
    factors: Vec<Factor>,
    ends: Vec<Ends<F>>,
    /// With all of the user's numbers moved at once.
    together: Vec<F>,
    /// Under each mechanism that the evidence leaves open, by its name.
    mechanisms: Vec<(String, F)>,
    unset: Option<Unset<F>>,
}

impl<F: Send> MovedFigures<F> {
    /// Looks at `figures` with each of `factors` at other values; `is_set` picks those that are set for this once. A figure
    /// that is not a number is of what does not run there: where not all that was looked at is `whole` at an end, values
    /// nearer to the number's own are looked at too.
    pub fn look<E: Send>(
        factors: Vec<Factor>,
        is_set: impl Fn(&Factor) -> bool,
        is_whole: impl Fn(&F) -> bool + Sync,
        figures: impl Fn(&[(&Factor, Quantity)]) -> Result<Option<F>, E> + Sync,
    ) -> Result<MovedFigures<F>, E> {
        let ends = side_by_side(factors.len(), |index| {
            Ends::look(&factors[index], &is_whole, |value| figures(&[(&factors[index], value)]))
        });
        Ok(MovedFigures {
            ends: ends.into_iter().collect::<Result<_, _>>()?,
            together: together(&factors, |moves| figures(moves).ok().flatten()),
            unset: Unset::look(&factors, is_set, &is_whole, &figures)?,
            mechanisms: Vec::new(),
            factors,
        })
    }

    /// The same with the figures under mechanisms that the evidence leaves open: which of them holds is a guess too.
    pub fn under(self, mechanisms: Vec<(String, F)>) -> MovedFigures<F> {
        MovedFigures { mechanisms, ..self }
    }

    /// The numbers.
    pub fn factors(&self) -> &[Factor] {
        &self.factors
    }

    /// Each number with the figures at its ends.
    pub fn each(&self) -> impl Iterator<Item = (&Factor, &Ends<F>)> {
        self.factors.iter().zip(&self.ends)
    }

    /// What a figure rests on, the heaviest first; `rows` measured it.
    pub fn rests(&self, value: f64, figure: &dyn Fn(&F) -> f64, rows: &[String]) -> Vec<Rest> {
        let mut found = rests(&self.factors, &self.ends, &self.together, value, figure, rows);
        found.extend(self.mechanisms.iter().filter(|(_, seen)| !figure(seen).is_nan()).filter_map(
            |(name, seen)| {
                let moves = moved_by(figure(seen), value);
                (moves > 0.0).then(|| Rest::of_moves(name, Origin::Mechanism, moves))
            },
        ));
        found
    }

    /// The basis of a figure that rests on `rests`, and on no better where what is set for this once is not.
    pub fn basis(
        &self,
        rests: &[Rest],
        without_evidence: bool,
        figure: &dyn Fn(&F) -> f64,
        rows: &[String],
    ) -> Basis {
        let unset = self.unset.as_ref().map(|unset| unset.rests(&self.factors, figure, rows));
        let unset = unset.map_or(Basis::Fitted, |rests| basis_of(&rests, without_evidence));
        basis_of(rests, without_evidence).max(unset)
    }
}

/// How far of its way to an end a number is moved, where it is refused farther off.
const PARTS: [f64; 4] = [1.0, 0.5, 0.25, 0.125];

/// The figures with one number at other values.
pub(crate) struct Ends<F> {
    /// At the ends of its interval, or a small step away where none is stated; nearer, where the system or the design
    /// is none with that value: the values, and the figures there, the farthest first. None where it is none with any of
    /// them, several where something does not run at the farthest.
    low: Vec<(Quantity, F)>,
    high: Vec<(Quantity, F)>,
}

impl<F> Ends<F> {
    /// Looks at the figures with a number at other values.
    fn look<E>(
        factor: &Factor,
        is_whole: impl Fn(&F) -> bool,
        figures: impl Fn(Quantity) -> Result<Option<F>, E>,
    ) -> Result<Ends<F>, E> {
        let [low, high] = looked_at(factor);
        let look = |end: Quantity, side: f64| -> Result<_, E> {
            let mut found = Vec::new();
            for part in PARTS {
                let nearer = || between(factor.value, low, high, 0.5 + side * part / 2.0);
                let value = if part == 1.0 { end } else { nearer() };
                if value == factor.value {
                    break;
                }
                // What the user's design may not hold is refused, and no error.
                let seen = if factor.is_estimate() { figures(value).ok().flatten() } else { figures(value)? };
                let is_last = seen.as_ref().is_some_and(&is_whole);
                found.extend(seen.map(|seen| (value, seen)));
                if is_last {
                    break;
                }
            }
            Ok(found)
        };
        Ok(Ends { low: look(low, -1.0)?, high: look(high, 1.0)? })
    }

    /// What was seen farthest off at the low and at the high end.
    pub fn sides(&self) -> [Option<&(Quantity, F)>; 2] {
        [self.low.first(), self.high.first()]
    }
}

/// The figures with what is set for this once back at the values that it was set in place of, and with each other
/// number moved from there.
///
/// A number that is set may bind beside what else is uncertain, which then seems to move little: what is set makes no
/// figure better known than it is without.
struct Unset<F> {
    point: F,
    ends: Vec<Ends<F>>,
}

impl<F: Send> Unset<F> {
    /// Looks at `factors` without the numbers that `is_set` picks; `None` where there are none, or where the system is none
    /// without.
    fn look<'f, E: Send>(
        factors: &'f [Factor],
        is_set: impl Fn(&Factor) -> bool,
        is_whole: &(impl Fn(&F) -> bool + Sync),
        figures: &(impl Fn(&[(&'f Factor, Quantity)]) -> Result<Option<F>, E> + Sync),
    ) -> Result<Option<Unset<F>>, E> {
        let back = factors.iter().filter(|factor| is_set(factor));
        let back: Vec<(&Factor, Quantity)> =
            back.filter_map(|factor| Some((factor, factor.replaced?))).collect();
        if back.is_empty() {
            return Ok(None);
        }
        let Some(point) = figures(&back)? else { return Ok(None) };
        let ends = side_by_side(factors.len(), |index| {
            let factor = &factors[index];
            if back.iter().any(|(set, _)| set.id == factor.id) {
                return Ok(Ends { low: Vec::new(), high: Vec::new() });
            }
            Ends::look(factor, is_whole, |value| figures(&[&back[..], &[(factor, value)]].concat()))
        });
        Ok(Some(Unset { point, ends: ends.into_iter().collect::<Result<_, _>>()? }))
    }

    /// What a figure rests on there.
    fn rests(&self, factors: &[Factor], figure: &dyn Fn(&F) -> f64, rows: &[String]) -> Vec<Rest> {
        let value = figure(&self.point);
        if value.is_nan() { Vec::new() } else { rests(factors, &self.ends, &[], value, figure, rows) }
    }
}

/// The name under which all of the user's numbers stand together.
const TOGETHER: &str = "your numbers together";

/// The figures with all of the user's numbers moved at once: a time that is written as many short ones is as little
/// known as one. Times become longer while rates and counts become less, then the other way round, each with what is
/// a share, of which nobody knows which way is the worse, at either end. None where there are not several.
fn together<'f, F>(
    factors: &'f [Factor],
    figures: impl Fn(&[(&'f Factor, Quantity)]) -> Option<F>,
) -> Vec<F> {
    let yours: Vec<&Factor> = factors.iter().filter(|factor| factor.origin.is_of_user()).collect();
    if yours.len() < 2 {
        return Vec::new();
    }
    let mut corners: Vec<Vec<Quantity>> = Vec::new();
    for (is_slow, is_more) in [(true, true), (true, false), (false, true), (false, false)] {
        let corner = yours.iter().map(|factor| {
            let [low, high] = looked_at(factor);
            let is_high = match factor.value.dimension() {
                Dimension::Time => is_slow,
                Dimension::Ratio => is_more,
                _ => !is_slow,
            };
            if is_high { high } else { low }
        });
        let corner = corner.collect();
        if !corners.contains(&corner) {
            corners.push(corner);
        }
    }
    let moved = corners.into_iter().map(|corner| yours.iter().copied().zip(corner).collect::<Vec<_>>());
    moved.filter_map(|moves| figures(&moves)).collect()
}

/// Elasticity beyond which a figure does not follow a number but passes a threshold: rates follow numbers in proportion,
/// in inverse proportion, or less.
const MOST_IN_PROPORTION: f64 = 2.0;

/// What a figure rests on, the heaviest first.
fn rests<F>(
    factors: &[Factor],
    ends: &[Ends<F>],
    together: &[F],
    value: f64,
    figure: &dyn Fn(&F) -> f64,
    rows: &[String],
) -> Vec<Rest> {
    let mut found: Vec<Rest> = Vec::new();
    let mut guesses: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (factor, ends) in factors.iter().zip(ends) {
        let mut slope = 0.0f64;
        let mut moves = 0.0f64;
        let sides = [&ends.low, &ends.high].into_iter();
        for (at, seen) in sides.filter_map(|side| side.iter().find(|(_, seen)| !figure(seen).is_nan())) {
            if figure(seen) == value {
                continue;
            }
            let change = (figure(seen) / value).ln().abs();
            if !change.is_finite() {
                // With this value the load is not carried at all, or nothing is where something was, or the reverse.
                (slope, moves) = (slope.max(1.0), moves.max(1.0));
                continue;
            }
            let moved = (at.base() / factor.value.base()).ln().abs();
            // A number of 0 has no ratio to move by: its whole interval counts as one step, and a flag that is doubted as
            // no more than what a figure may follow a number by.
            slope = slope.max(match moved.is_finite() && moved > 0.0 {
                true => change / moved,
                false if factor.is_doubted() => change.min(MOST_IN_PROPORTION),
                false => change,
            });
            // A guess that claims to be exact moves a figure by as much as one that does not say how far, and so does
            // what somebody says of their own system.
            if factor.is_open() || factor.is_doubted() {
                moves = moves.max((figure(seen) / value - 1.0).abs());
            }
        }
        // Beside a threshold that nobody doubts a small step jumps over it: that says nothing of how far a figure may
        // be off, and would make whatever else moves it seem little.
        let is_jump = !factor.is_open() && !factor.is_doubted() && slope > MOST_IN_PROPORTION;
        if slope > 1e-6 {
            let own = Rest {
                number: factor.id.clone(),
                with: Vec::new(),
                origin: factor.origin,
                elasticity: slope,
                weight: if factor.is_fact() || is_jump { 0.0 } else { slope },
                moves,
                drawn: Drawn::of(factor),
                own_evidence: factor.is_evidence() && factor.rows.iter().any(|row| rows.contains(row)),
            };
            let whose = factor.guessed_of.as_deref().map(|whose| (whose, factor.origin.name()));
            let guess = whose.map(|whose| *guesses.entry(whose).or_insert(found.len()));
            match guess.filter(|at| *at < found.len()) {
                Some(at) => found[at].join(own),
                None => found.push(own),
            }
        }
    }
    let total: f64 = found.iter().map(|rest| rest.weight).sum();
    if total > 0.0 {
        found.iter_mut().for_each(|rest| rest.weight /= total);
    }
    found.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then(b.elasticity.total_cmp(&a.elasticity))
            .then(a.number.cmp(&b.number))
    });
    let together = together.iter().map(figure).filter(|seen| !seen.is_nan());
    let moves = together.map(|seen| moved_by(seen, value)).fold(0.0, f64::max);
    if moves > MOVED_BY_GUESS && estimate(&found).is_none() {
        found.push(Rest::of_moves(TOGETHER, Origin::Yours, moves));
    }
    found
}

/// By which share of itself a figure is another one.
fn moved_by(seen: f64, value: f64) -> f64 {
    match (seen / value - 1.0).abs() {
        _ if seen == value => 0.0,
        moves if moves.is_finite() => moves,
        // The load is not carried there, or something is where nothing was.
        _ => 1.0,
    }
}

/// Squares of what some of the numbers move a figure by, to which those of all add up where they are independent; the user's
/// numbers together are each among them.
fn squares(rests: &[Rest], of: &dyn Fn(&Rest) -> bool) -> f64 {
    total(rests.iter().filter(|rest| of(rest) && rest.number != TOGETHER).map(|rest| rest.moves.powi(2)))
}

/// Which part of what moves a figure guesses and open mechanisms are, and which the user's numbers, by the squares of what each
/// moves it by; none where nothing moves it.
pub fn parts_of_moves(rests: &[Rest]) -> Option<(f64, f64)> {
    let all = squares(rests, &|_| true);
    let part = |of: &dyn Fn(&Rest) -> bool| squares(rests, of) / all;
    (all > 0.0).then(|| (part(&|rest| rest.origin.is_guess()), part(&|rest| rest.origin == Origin::Yours)))
}

/// The share of a figure that guesses decide.
pub fn guessed(rests: &[Rest]) -> f64 {
    total(rests.iter().filter(|rest| rest.origin.is_guess()).map(|rest| rest.weight))
}

/// The sum; of nothing 0, where `sum` has it -0.
fn total(of: impl Iterator<Item = f64>) -> f64 {
    of.fold(0.0, |sum, one| sum + one)
}

/// The share of a figure that the user's own numbers decide.
pub fn estimated(rests: &[Rest]) -> f64 {
    total(rests.iter().filter(|rest| rest.origin == Origin::Yours).map(|rest| rest.weight))
}

/// The part of that of which draws take the values as said.
pub fn estimated_as(rests: &[Rest], drawn: Drawn) -> f64 {
    let is_so = |rest: &&Rest| rest.origin == Origin::Yours && rest.drawn == drawn;
    total(rests.iter().filter(is_so).map(|rest| rest.weight))
}

/// Whether most of what a figure rests on beside the user's numbers was measured or fitted: what a data sheet says of a card was
/// held to no prediction.
pub(crate) fn is_measured(rests: &[Rest]) -> bool {
    let of_card = || rests.iter().filter(|rest| !rest.origin.is_of_user());
    let is_seen =
        |rest: &&Rest| !rest.origin.is_guess() && rest.origin != Origin::Profile(Provenance::Datasheet);
    let measured = total(of_card().filter(is_seen).map(|rest| rest.weight));
    measured > GUESSED * total(of_card().map(|rest| rest.weight))
}

/// Whether half or more of what a figure rests on was measured of this very system, or is held to what was: the calibration's
/// errors are of points that rested on both alike.
pub(crate) fn is_measured_here(rests: &[Rest]) -> bool {
    let here = [Provenance::MeasuredHere, Provenance::HeldHere].map(Origin::Profile);
    let is_here = |rest: &&Rest| here.contains(&rest.origin);
    total(rests.iter().filter(is_here).map(|rest| rest.weight)) >= GUESSED
}

/// By how much of itself a tenth more of every guess at once moves a figure, at most.
pub fn moved_by_guesses(rests: &[Rest]) -> f64 {
    total(rests.iter().filter(|rest| rest.origin.is_guess()).map(|rest| rest.elasticity)) / 10.0
}

/// Below what sum of elasticities the numbers of a kind decide nothing: a tenth more of all of them moves the
/// figure by less than 1%.
const COUNTS: f64 = 0.1;

/// From what share on guesses decide a figure, or move it by too much for more than an order.
const GUESSED: f64 = 0.5;

/// From what share on the user's numbers do.
const ESTIMATED: f64 = 0.1;

/// From what share on a number that own evidence fixes fixes the figure.
const OWN: f64 = 0.1;

/// By how much of a figure a guess may move it before it is weak.
const MOVED_BY_GUESS: f64 = 0.01;

/// By how much a number that evidence leaves a range may.
const MOVED_BY_RANGE: f64 = 0.05;

/// Whether a tenth more of all numbers of a kind moves a figure: of one that exact facts decide, hardly anything is
/// left to be guessed.
fn counts(rests: &[Rest], known: &dyn Fn(&Rest) -> bool) -> bool {
    rests.iter().filter(|rest| known(rest)).map(|rest| rest.elasticity).sum::<f64>() >= COUNTS
}

/// Which of the user's own numbers makes a figure that rests on `rests` the user's estimate: the heaviest where they
/// decide a tenth, else the one that moves it most. None where it is not an estimate. The heaviest comes first in `rests`.
///
/// What somebody says of their own system is not evidence, however little of the figure it decides: a number that is
/// set never makes one better known than the number that it replaces does.
pub fn estimate(rests: &[Rest]) -> Option<&Rest> {
    let is_yours = |rest: &Rest| rest.origin.is_of_user();
    if estimated(rests) >= ESTIMATED && counts(rests, &is_yours) {
        return rests.iter().find(|rest| rest.origin == Origin::Yours);
    }
    let yours = rests.iter().filter(|rest| is_yours(rest));
    let most = yours.rev().max_by(|a, b| a.moves.total_cmp(&b.moves));
    most.filter(|rest| rest.moves > MOVED_BY_GUESS)
}

/// The best that a figure of this system may be: where its mode costs what no number says, weak.
pub(crate) fn least_on(system: &System) -> Basis {
    if system.is_mode_modelled() { Basis::Fitted } else { Basis::Weak }
}

pub(crate) fn basis_of(rests: &[Rest], without_evidence: bool) -> Basis {
    // Of what the user's own numbers leave: these stand for the user, and not for the card.
    let is_guessed = guessed(rests) >= GUESSED * (1.0 - estimated(rests));
    // However many exact numbers stand beside two guesses: who may be off by half of it knows the order at best.
    let is_far = squares(rests, &|rest| rest.origin.is_guess()).sqrt() >= GUESSED;
    if without_evidence || is_far || is_guessed && counts(rests, &|rest| rest.origin.is_guess()) {
        return Basis::OrderOnly;
    }
    if estimate(rests).is_some() {
        return Basis::YourEstimate;
    }
    let most_guessed =
        rests.iter().filter(|rest| rest.origin.is_guess()).map(|rest| rest.moves).fold(0.0, f64::max);
    // The fit holds what was measured whatever its guesses are, as long as they stay where it was made.
    if most_guessed <= MOVED_BY_RANGE && rests.iter().any(|rest| rest.own_evidence && rest.weight >= OWN) {
        return Basis::Fitted;
    }
    let weak = rests
        .iter()
        .any(|rest| rest.moves > if rest.origin.is_guess() { MOVED_BY_GUESS } else { MOVED_BY_RANGE });
    if weak { Basis::Weak } else { Basis::Predicted }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::factor::Base;
    use crate::planner::PlanError;
    use crate::program::Fold;

    /// An end that makes no system is looked for nearer to the value, and on its own side of it.
    #[test]
    fn a_refused_end_is_looked_for_nearer_to_the_value() {
        let (design, ready) =
            crate::planner::of_steps(r#"{ compute = "host", time = "2 us" }"#).expect("it is in order");
        let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let factors = Base::new(&design, &ready, &folds).factors();
        let factor = factors.iter().find(|one| one.origin == Origin::Yours).expect("it is the user's");
        let value = factor.value.base();
        let near = |seen: Quantity| (seen.base() / value).ln().abs() < 0.3;
        let ends = Ends::look(factor, |_| true, |at| Ok::<_, PlanError>(near(at).then_some(at)));
        let ends = ends.expect("no error");
        let [low, high] = ends.sides().map(|end| end.expect("one is near enough").0.base());
        assert!(low < value && value < high, "{low} {value} {high}");
    }

    /// A small step over a threshold makes what else moves a figure seem little where nobody doubts the number. Where somebody
    /// does, the figure may be that far off.
    #[test]
    fn what_is_doubted_counts_beyond_a_threshold_too() {
        let (design, ready) =
            crate::planner::of_steps(r#"{ compute = "host", time = "2 us" }"#).expect("it is in order");
        let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let factors = Base::new(&design, &ready, &folds).factors();
        let one = factors.into_iter().find(|one| one.origin == Origin::Yours).expect("it is the user's");
        let weight = |origin: Origin| {
            let mut factor = one.clone();
            (factor.origin, factor.interval) = (origin, None);
            let [_, high] = looked_at(&factor);
            let ends = Ends { low: Vec::new(), high: vec![(high, 10.0)] };
            rests(&[factor], &[ends], &[], 1.0, &|figure: &f64| *figure, &[])[0].weight
        };
        assert_eq!(weight(Origin::Yours), 1.0);
        assert_eq!(weight(Origin::Profile(Provenance::CarriedOver)), 1.0);
        assert_eq!(weight(Origin::Profile(Provenance::Measured)), 0.0);
    }

    /// What the design assumes is nobody's estimate: where the user's numbers decide enough, one of these is named.
    #[test]
    fn an_estimate_that_decides_is_the_users() {
        let rest = |number: &str, origin, weight| Rest {
            number: number.into(),
            with: Vec::new(),
            origin,
            elasticity: weight,
            weight,
            moves: 0.1,
            drawn: Drawn::Held,
            own_evidence: false,
        };
        let assumed = rest("assumed", Origin::Assumed, 0.4);
        let rests = [assumed.clone(), rest("yours", Origin::Yours, 0.2)];
        assert_eq!(estimate(&rests).map(|rest| rest.number.as_str()), Some("yours"));
        assert_eq!(estimate(&[assumed]).map(|rest| rest.number.as_str()), Some("assumed"));
    }

    /// The user's own numbers stand for the user. What they leave is the card's, and may be guesses.
    #[test]
    fn guesses_are_counted_in_what_the_users_numbers_leave() {
        let basis = |yours: f64, guessed: f64, known: f64| {
            let rest = |origin, weight| Rest {
                number: "n".into(),
                with: Vec::new(),
                origin,
                elasticity: weight,
                weight,
                moves: 0.0,
                drawn: Drawn::Held,
                own_evidence: false,
            };
            let known = rest(Origin::Profile(Provenance::Fitted), known);
            let guess = rest(Origin::Profile(Provenance::Assumed), guessed);
            basis_of(&[rest(Origin::Yours, yours), guess, known], false)
        };
        assert_eq!(basis(0.58, 0.42, 0.0), Basis::OrderOnly);
        assert_eq!(basis(0.60, 0.15, 0.25), Basis::YourEstimate);
        // Where next to nothing is left, a guess of it moves next to nothing.
        assert_eq!(basis(0.95, 0.05, 0.0), Basis::YourEstimate);
        assert_eq!(basis(0.0, 0.49, 0.51), Basis::Predicted);
        assert_eq!(basis(0.0, 0.50, 0.50), Basis::OrderOnly);
    }

    /// Exact numbers beside guesses make these no less wrong, and how a card works may be one of them.
    #[test]
    fn guesses_that_move_a_figure_far_leave_its_order() {
        let basis = |guesses: &[(Origin, f64)]| {
            let rest = |origin, weight, moves| Rest {
                number: "n".into(),
                with: Vec::new(),
                origin,
                elasticity: weight,
                weight,
                moves,
                drawn: Drawn::Interval,
                own_evidence: origin == Origin::Profile(Provenance::Fitted),
            };
            let mut rests = vec![rest(Origin::Profile(Provenance::Fitted), 0.9, 0.0)];
            rests.extend(guesses.iter().map(|(origin, moves)| rest(*origin, 0.05, *moves)));
            (basis_of(&rests, false), parts_of_moves(&rests))
        };
        let guess = Origin::Profile(Provenance::Assumed);
        assert_eq!(basis(&[(guess, 0.6)]), (Basis::OrderOnly, Some((1.0, 0.0))));
        assert_eq!(basis(&[(guess, 0.4), (guess, 0.4)]).0, Basis::OrderOnly, "both may be wrong");
        assert_eq!(basis(&[(guess, 0.3), (guess, 0.3)]).0, Basis::Weak);
        assert_eq!(basis(&[(guess, 0.04)]).0, Basis::Fitted);
        assert_eq!(basis(&[(Origin::Mechanism, 0.24)]).0, Basis::Weak);
        assert_eq!(basis(&[(Origin::Mechanism, 0.3), (guess, 0.4)]).0, Basis::OrderOnly);
        assert_eq!(
            basis(&[(Origin::Yours, 0.3), (guess, 0.4)]).1.map(|(guesses, _)| (guesses * 100.0).round()),
            Some(64.0)
        );
        assert_eq!(basis(&[]), (Basis::Fitted, None));
    }
}
