//! How sure a plan is: what its figures rest on, and the intervals that follow.
//!
//! Three things are kept apart. *What a figure rests on* is found by moving one number at a time. The
//! *basis* follows from how those numbers are known. The *intervals* come from one joint sample of every
//! number that is known as an interval, each draw solved again, and of the mechanisms that the evidence
//! leaves open.

use crate::design::{Design, Objective};
use crate::factor::{Base, Factor};
use crate::planner::{PlanError, Ready};
use crate::program::Fold;
use crate::residual::{BoundedDraw, FigureKind, Lesson, Reach, Widened};
use crate::rests::{Basis, MovedFigures, Rest, basis_of, least_on};
use crate::sample::{DRAWS, Drawn, JointSample, MechanismSample};
use crate::side_by_side::side_by_side;
use crate::solve::{
    Evaluation, Part, at_fixed, best_set, beyond_bound, composition, each_alone, evaluate, is_matched,
    shares, wire_rate, worth,
};
use offpath_capacity::Solution;
use offpath_quantity::Quantity;
use offpath_twin::Seed;
use std::collections::{BTreeMap, BTreeSet};

/// A value with the intervals that the joint sample gives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranged {
    /// With every number at its value.
    pub value: f64,
    /// The middle of the sample: half of it lies below. Other than the value where mechanisms that the value is not of are
    /// drawn too.
    pub median: f64,
    /// The ends of the 80% interval.
    pub range_80: (f64, f64),
    /// The ends of the 95% interval.
    pub range_95: (f64, f64),
}

impl Ranged {
    /// The intervals of a sample around `value`; without a sample the value alone.
    pub fn of(value: f64, sample: &Widened) -> Ranged {
        if sample.is_empty() {
            return Ranged { value, median: value, range_80: (value, value), range_95: (value, value) };
        }
        let ends = |outside: f64| (sample.quantile(outside / 2.0), sample.quantile(1.0 - outside / 2.0));
        // A value that lies outside its own sample is shown inside the interval: the sample is of other
        // mechanisms too, and the value is that of the base alone.
        Ranged { value, median: sample.quantile(0.5), range_80: ends(0.2), range_95: ends(0.05) }
            .including(value)
    }

    /// The same value with intervals that include another one, which was seen.
    fn including(self, seen: f64) -> Ranged {
        let with = |(low, high): (f64, f64)| (low.min(seen), high.max(seen));
        Ranged { range_80: with(self.range_80), range_95: with(self.range_95), ..self }
    }
}

/// What a number at the ends of its interval does to the best mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Influence {
    /// The number.
    pub number: String,
    /// What a reader should know about it.
    pub note: String,
    /// The lower end of its interval.
    pub low: Quantity,
    /// The upper end.
    pub high: Quantity,
    /// The best mix's worth by the design's goal at the lower end: requests per second, seconds of the host's
    /// processors a request, or seconds of unloaded latency. Nothing where the load is not carried there.
    pub at_low: Option<f64>,
    /// And at the upper end.
    pub at_high: Option<f64>,
    /// The alternatives of the best mix where they change at an end.
    pub changes: Option<String>,
    /// Whether the design was planned again at the ends; else what was observed at the value is scaled.
    pub planned: bool,
    /// Whether the interval is one that somebody stated; else it reaches from two thirds of the design's number to one and a
    /// half times it.
    pub is_stated: bool,
    /// Whose guesses draws move it with, where it is one of a processor's that have neither a name nor an interval: here it is
    /// moved by itself.
    pub drawn_with: Option<String>,
}

/// The best mix's worth, and the alternatives of it where the recommended ones are not the best.
pub(crate) type AtEnd = (f64, Option<Vec<String>>);

impl Influence {
    /// Of a number whose interval is `ends`, by what the best mix is worth at each and which alternatives it is of
    /// where the recommended ones are not the best; nothing where there is no plan.
    pub(crate) fn of(
        factor: &Factor,
        ends: [(Quantity, Option<AtEnd>); 2],
        goal: &Objective,
        planned: bool,
    ) -> Influence {
        let changes: Vec<String> = ends
            .iter()
            .filter_map(|(value, seen)| match seen {
                None if goal.load().is_some() => Some(format!("the load not carried at {value}")),
                None => Some(format!("no answer at {value}")),
                // Sets are compared by their means, which tell nothing of a mix that has the lowest tail.
                Some(_) if matches!(goal, Objective::LowestP99 { .. }) => None,
                Some((_, set)) => set.as_ref().map(|set| format!("{} at {value}", set.join(" + "))),
            })
            .collect();
        let [(low, at_low), (high, at_high)] = ends;
        let worth = |at: Option<AtEnd>| at.map(|(worth, _)| worth);
        Influence {
            number: factor.id.clone(),
            note: factor.note.clone(),
            low,
            high,
            at_low: worth(at_low),
            at_high: worth(at_high),
            changes: (!changes.is_empty()).then(|| changes.join(", ")),
            planned,
            drawn_with: factor.guessed_of.clone(),
            is_stated: factor.is_open(),
        }
    }
}

/// A mechanism that the evidence leaves open, with the design ready on it.
pub struct Mechanism {
    /// The overlay that holds it.
    pub name: String,
    /// The design on it.
    pub ready: Vec<Ready>,
    /// Its demands.
    pub folds: Vec<Fold>,
}

/// What the twin does not confirm of a plan: it is not a prediction of the mix, nor of what the mix is made of.
pub(crate) struct Doubt<'a> {
    /// The alternatives that the mix takes, with their shares.
    pub shares: &'a [(String, f64)],
    /// Requests per second that the twin carried, where it tells.
    pub carried: Option<f64>,
    /// Whether slots bind the mix: how long they are held is seen on the twin, so more than planned may be right too.
    pub above: bool,
}

/// The confidence of a plan, by the positions of its alternatives and mixes.
pub(crate) struct Confidence {
    pub rests: Vec<Vec<Rest>>,
    pub basis: Vec<Basis>,
    /// In which share of the draws each alternative runs; its figures are of these.
    pub runs: Vec<f64>,
    /// The same of the best mix at its shares, which runs where each of its alternatives does.
    pub mix_runs: f64,
    /// In which share of the draws it runs and each of its alternatives keeps the latency bound; none where the design has
    /// none.
    pub mix_keeps_bound: Option<f64>,
    pub latency_basis: Vec<Basis>,
    pub mix_rests: Vec<Rest>,
    /// That of the best mix.
    pub mix_basis: Basis,
    pub alone: Vec<Ranged>,
    pub latency: Vec<Ranged>,
    pub mixes: Vec<Ranged>,
    pub greedy: Ranged,
    pub optimal: Ranged,
    /// The best mix's worth by the design's goal.
    pub worth: Ranged,
    /// Of each alternative's share of the best mix, where the load is carried.
    pub shares: Vec<Ranged>,
    pub influences: Vec<Influence>,
    /// The best mix over each alternative alone, as a ratio, and in which share of the draws it is above 1.
    pub over: Vec<(Ranged, f64)>,
    /// In which share of the draws the recommended set is the best: no mix beats one of it by a hundredth, and none of
    /// fewer alternatives is as good.
    pub recommended_best: f64,
    /// In which share of the draws it is, and a mix without one of it is as good; none where that is not so with the numbers
    /// as they are.
    pub matched: Option<f64>,
    /// The same of the draws with the base mechanism, and of those with others; none where none is open.
    pub best_by_mechanism: Option<(f64, f64)>,
    /// The sets of alternatives that were the best, with the share of the draws, the most frequent first: the
    /// recommended one wherever it holds.
    pub best_sets: Vec<(Vec<String>, f64)>,
    /// In which share of the draws the load that was asked for is carried; 1 where none was.
    pub carried: f64,
    /// In which share of the draws it is at the shares of the best mix as they are; where none was asked for, in which
    /// these carry what is printed or more.
    pub shares_carry: f64,
    /// Whether past errors are in that, as in the interval of the best mix's rate: they are not where one alternative is all
    /// of it and is fitted.
    pub is_widened: bool,
    /// For which cards the errors speak by which the best mix's worth is widened.
    pub lesson: Lesson,
    /// For which cards those speak by which any figure is.
    pub lessons: BTreeSet<Lesson>,
}

/// The figures of one evaluation that intervals are given of; not a number of what does not run with its numbers.
#[derive(Clone, Default)]
struct Figures {
    /// By the places of the alternatives in the design.
    alone: Vec<Rate>,
    latency: Vec<f64>,
    /// At the shares that the plan prints: the best mix, greedy, and those that the design names.
    mixes: Vec<Rate>,
    /// The best mix's worth by the design's goal, its shares chosen again.
    worth: f64,
    /// The same at the shares that the plan prints.
    worth_held: f64,
    shares: Vec<f64>,
    /// The alternatives that are the best: the recommended ones wherever no other set beats them by a hundredth.
    set: Vec<String>,
    holds: bool,
    /// Whether they are, and a mix without one of them is as good; looked at where it is so with the numbers as they are.
    is_matched: bool,
    /// Whether a mix carries the load that the design asks for; else only the figures of each alternative alone and of the
    /// printed shares are filled in, and what a mix of others is worth is not a number.
    is_carried: bool,
    /// Whether the latency bound lets the best mix be what is printed.
    is_in_bound: bool,
}

/// Requests per second.
#[derive(Clone, Copy)]
pub(crate) struct Rate {
    pub solved: f64,
    /// What ports and links alone would carry.
    pub most: f64,
}

impl Figures {
    /// Whether every alternative runs, and so every mix.
    fn is_whole(&self) -> bool {
        !self.latency.iter().any(|latency| latency.is_nan())
    }

    /// Whether the best mix runs at the shares that are printed.
    fn runs_printed(&self) -> bool {
        !self.mixes[0].solved.is_nan()
    }

    fn of(
        base: &Base<'_>,
        parts: &[Part<'_>],
        folds: &[Fold],
        seen: &Evaluation,
        held: &[Option<Solution>],
        (holds, set): (bool, Vec<String>),
    ) -> Figures {
        let share = |name: &str| seen.optimal.shares.get(name).copied().unwrap_or(0.0);
        Figures {
            worth: worth(base.design, parts, folds, &seen.optimal),
            shares: base.parts().iter().map(|part| share(&part.alternative.name)).collect(),
            set,
            holds,
            is_carried: true,
            ..Figures::as_printed(base, parts, folds, &seen.alone, held)
        }
    }

    /// Those that are there whether or not a mix carries the load: of each alternative alone, and of the printed shares.
    fn as_printed(
        base: &Base<'_>,
        parts: &[Part<'_>],
        folds: &[Fold],
        alone: &[Solution],
        held: &[Option<Solution>],
    ) -> Figures {
        let rate = |solution: Option<&Solution>| match solution {
            Some(solution) => Rate::of(solution, base, parts, folds),
            None => Rate { solved: f64::NAN, most: f64::NAN },
        };
        let all = base.parts();
        let places =
            all.iter().map(|one| parts.iter().position(|part| part.alternative.name == one.alternative.name));
        let places: Vec<Option<usize>> = places.collect();
        Figures {
            alone: places.iter().map(|at| rate(at.map(|at| &alone[at]))).collect(),
            latency: places.iter().map(|at| at.map_or(f64::NAN, |at| folds[at].latency)).collect(),
            mixes: held.iter().map(|one| rate(one.as_ref())).collect(),
            worth: f64::NAN,
            worth_held: held[0].as_ref().map_or(f64::NAN, |held| worth(base.design, parts, folds, held)),
            is_in_bound: held[0]
                .as_ref()
                .is_none_or(|held| beyond_bound(base.design, parts, folds, &shares(held)).is_empty()),
            ..Figures::default()
        }
    }
}

impl Rate {
    pub fn of(solution: &Solution, base: &Base<'_>, parts: &[Part<'_>], folds: &[Fold]) -> Rate {
        let taken = |part: &Part<'_>| solution.shares.get(&part.alternative.name).copied().unwrap_or(0.0);
        // A mix has alternatives of one device alone.
        let router = parts.iter().find(|part| taken(part) > 0.0).map(|part| part.router);
        let payload = |wire: &str| {
            let each = |(part, fold): (&Part<'_>, &Fold)| {
                let seconds = fold.seconds.get(wire).copied().unwrap_or(0.0);
                taken(part) * base.payload_seconds(&part.alternative.name, wire, seconds)
            };
            parts.iter().zip(folds).map(each).sum()
        };
        Rate { solved: solution.total, most: router.map_or(0.0, |router| wire_rate(router, payload)) }
    }
}

/// What a plan prints figures of: its best mix, greedy and the mixes that the design names, each at its shares.
struct Printed<'a> {
    design: &'a Design,
    /// The design without its mixes: these are looked at with their shares held.
    unmixed: Design,
    solutions: Vec<&'a Solution>,
    shares: Vec<Vec<(String, f64)>>,
    /// The alternatives of the best mix.
    set: Vec<String>,
    /// Whether a mix without one of them is as good.
    is_matched: bool,
}

impl<'a> Printed<'a> {
    fn of(design: &'a Design, parts: &[Part<'_>], folds: &[Fold], seen: &'a Evaluation) -> Printed<'a> {
        let solutions: Vec<&Solution> =
            [&seen.optimal, &seen.greedy].into_iter().chain(&seen.mixes).collect();
        let shares = solutions.iter().map(|solution| shares(solution)).collect();
        let set = composition(&seen.optimal);
        let is_matched = is_matched(design, parts, folds, seen, &set);
        let unmixed = design.seeking(design.objective);
        Printed { design, unmixed, solutions, shares, set, is_matched }
    }

    /// The figures at the numbers of the profile and the design.
    fn point(&self, base: &Base<'_>, folds: &[Fold], seen: &Evaluation) -> Figures {
        let held: Vec<_> = self.solutions.iter().map(|solution| Some((*solution).clone())).collect();
        Figures::of(base, &base.parts(), folds, seen, &held, (true, self.set.clone()))
    }

    /// The figures with some numbers at other values; none where no alternative of the design's device runs. One that the
    /// numbers refuse, as by a message above a smaller packet or objects that exceed a cache's budget, has no figures there,
    /// nor has a mix with it, and the best mix is of the others.
    fn at(&self, base: &Base<'_>, moves: &[(&Factor, Quantity)]) -> Result<Option<Figures>, miette::Report> {
        let moved = base.at(moves);
        let (design, parts) = (&self.unmixed, base.moved_parts(&moved));
        let runs = |name: &str| parts.iter().any(|one| one.alternative.name == name);
        let held = self.shares.iter().zip(&self.solutions).map(|(shares, planned)| match shares.is_empty() {
            // A mix that the design's limits leave nothing of carries nothing, whatever the numbers are.
            true => Some((*planned).clone()),
            false => shares
                .iter()
                .all(|(name, _)| runs(name))
                .then(|| at_fixed(design, &parts, &moved.folds, shares).ok())
                .flatten(),
        });
        let held: Vec<Option<Solution>> = held.collect();
        if !parts.iter().any(|one| one.alternative.device.is_none()) {
            return Ok(None);
        }
        match evaluate(design, &parts, &moved.folds, false) {
            Ok(seen) => {
                let set = best_set(design, &parts, &moved.folds, &seen, &self.set);
                let holds = set == self.set;
                let is_matched =
                    self.is_matched && holds && is_matched(design, &parts, &moved.folds, &seen, &self.set);
                let figures = Figures::of(base, &parts, &moved.folds, &seen, &held, (holds, set));
                Ok(Some(Figures { is_matched, ..figures }))
            }
            // A load that the stations do not carry with these numbers is an answer, and the printed shares carry there what
            // they carry, at what a request of them costs.
            Err(PlanError::Capacity(_) | PlanError::NothingAllowed { .. }) => {
                let Ok(alone) = each_alone(design, &parts, &moved.folds) else { return Ok(None) };
                Ok(Some(Figures::as_printed(base, &parts, &moved.folds, &alone, &held)))
            }
        }
    }
}

/// The figures of the joint sample.
struct DrawnFigures {
    point: Figures,
    /// Those of each draw, where there is a plan with its numbers, and whether it is of the base mechanism.
    draws: Vec<(bool, Option<Figures>)>,
}

/// Errors of past predictions of one kind, on cards of one sort.
type Errors = (Lesson, FigureKind);

impl DrawnFigures {
    /// The draws with a plan.
    fn told(&self) -> Vec<&Figures> {
        self.draws.iter().filter_map(|(_, draw)| draw.as_ref()).collect()
    }

    /// Those that carry the load that is asked for.
    fn carried(&self) -> Vec<&Figures> {
        self.told().into_iter().filter(|draw| draw.is_carried).collect()
    }

    /// A figure with its intervals over `draws`, widened by past errors.
    /// A draw in which what it is of does not run is none of its interval.
    fn ranged(&self, draws: &[&Figures], errors: Option<Errors>, figure: impl Fn(&Figures) -> f64) -> Ranged {
        let drawn = draws.iter().map(|draw| figure(draw)).filter(|drawn| !drawn.is_nan());
        let sample = drawn.map(|drawn| (drawn, f64::INFINITY)).collect();
        Ranged::of(figure(&self.point), &widened(errors, sample))
    }

    /// A rate with its intervals, which end at what ports and links carry; widened where it is predicted.
    fn rated(&self, draws: &[&Figures], lesson: Option<Lesson>, figure: impl Fn(&Figures) -> Rate) -> Ranged {
        let rates = draws.iter().map(|draw| figure(draw)).filter(|rate| !rate.solved.is_nan());
        let sample = rates.map(|rate| (rate.solved, rate.most)).collect();
        let errors = lesson.map(|lesson| (lesson, FigureKind::Throughput));
        Ranged::of(figure(&self.point).solved, &widened(errors, sample))
    }

    /// The best mix over an alternative alone, and in which share of what the interval is made of it is above 1. Of the
    /// alternatives `errors` says what widens their rates, of the mix and of this one, and `share` which part of the requests
    /// this one takes of the mix.
    fn over(&self, index: usize, lesson: Lesson, errors: [Option<Lesson>; 2], share: f64) -> (Ranged, f64) {
        let [of, over] =
            errors.map(|lesson| Reach::of(lesson.map(|lesson| (lesson, FigureKind::Throughput))));
        let ratio = |seen: &Figures| seen.mixes[0].solved / seen.alone[index].solved;
        let bounded = |seen: &&Figures| {
            let (mix, alone) = (seen.mixes[0], seen.alone[index]);
            let (least, most) = of.ends(mix.solved, mix.most).over(over.ends(alone.solved, alone.most));
            // Who sends it a share of all requests is given no more of them than what it carries over that share.
            BoundedDraw { drawn: ratio(seen), least, most: most.min(1.0 / share) }
        };
        let sizes = lesson.sizes(FigureKind::ThroughputRatio);
        let both = self.told().into_iter().filter(|seen| !ratio(seen).is_nan());
        let sample = Widened::bounded(both.collect::<Vec<_>>().iter().map(bounded).collect(), &sizes);
        (
            Ranged::of(ratio(&self.point), &sample),
            if sample.is_empty() { 0.0 } else { 1.0 - sample.below(1.0) },
        )
    }

    /// In which share of what the interval of their rate is made of the printed shares carry `load`.
    fn shares_carry(&self, load: f64, lesson: Option<Lesson>) -> f64 {
        let rates = self.told().into_iter().filter(|draw| draw.runs_printed()).map(|draw| draw.mixes[0]);
        let rates: Vec<_> = rates.map(|rate| (rate.solved, rate.most)).collect();
        let told = rates.len() as f64 / self.draws.len().max(1) as f64;
        let sample = widened(lesson.map(|lesson| (lesson, FigureKind::Throughput)), rates);
        if sample.is_empty() { 0.0 } else { (1.0 - sample.below(load * (1.0 - 1e-3))) * told }
    }

    /// In which share of the draws of the base mechanism, or of the others, the recommended set is the best.
    fn best_with(&self, base: bool) -> f64 {
        let own = self.draws.iter().filter(|(is_base, _)| *is_base == base);
        holding(&own.filter_map(|(_, draw)| draw.as_ref()).filter(|draw| draw.is_carried).collect::<Vec<_>>())
    }

    /// The sets that are the best, with the share of the draws, the most frequent first.
    fn best_sets(&self) -> Vec<(Vec<String>, f64)> {
        let mut sets: BTreeMap<Vec<String>, usize> = BTreeMap::new();
        let carried = self.carried();
        carried.iter().for_each(|draw| *sets.entry(draw.set.clone()).or_default() += 1);
        let total = carried.len().max(1) as f64;
        let mut sets: Vec<_> = sets.into_iter().map(|(set, count)| (set, count as f64 / total)).collect();
        sets.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        sets
    }
}

fn widened(errors: Option<Errors>, sample: Vec<(f64, f64)>) -> Widened {
    let sizes = errors.map_or_else(Vec::new, |(lesson, kind)| lesson.sizes(kind));
    Widened::new(sample, &sizes)
}

/// In which share of some draws the recommended set is the best.
fn holding(draws: &[&Figures]) -> f64 {
    draws.iter().filter(|draw| draw.holds).count() as f64 / draws.len().max(1) as f64
}

/// The rows that measured an alternative.
fn rows_of(one: &Ready) -> Vec<String> {
    let rows = one.alternative.rows.iter().filter(|(_, objection)| objection.is_none());
    // A row that follows from two names both.
    rows.flat_map(|(row, _)| row.split('/')).map(str::to_string).collect()
}

/// The confidence of `seen`, which is the evaluation of a design as it is.
pub(crate) fn confidence(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    seen: &Evaluation,
    open: &[Mechanism],
    doubt: Option<&Doubt<'_>>,
    seed: Seed,
) -> Result<Confidence, miette::Report> {
    let base = Base::new(design, ready, folds);
    let printed = Printed::of(design, &base.parts(), folds, seen);
    let is_set = |factor: &Factor| !design.sets(&factor.id);
    let looked = |moves: &[(&Factor, Quantity)]| printed.at(&base, moves);
    let moved = MovedFigures::look(base.factors(), is_set, Figures::is_whole, looked)?;
    let mut under = Vec::new();
    for one in open {
        let base = Base::new(design, &one.ready, &one.folds);
        under.extend(printed.at(&base, &[])?.map(|figures| (one.name.clone(), figures)));
    }
    let moved = moved.under(under);
    let draws = draws(&base, open, seed, &printed)?;
    let drawn = DrawnFigures { point: printed.point(&base, folds, seen), draws };
    let point = &drawn.point;
    let lesson = |rests: &[Rest]| Lesson::of(rests, ready.iter().map(|one| one.router.system()));

    let doubted = |name: &str| doubt.is_some_and(|doubt| doubt.shares.iter().any(|(taken, _)| taken == name));
    let (mut rests, mut basis, mut latency_basis) = (Vec::new(), Vec::new(), Vec::new());
    let (mut lessons, mut latency_lessons) = (Vec::new(), Vec::new());
    for (index, one) in ready.iter().enumerate() {
        let (rows, rate) = (rows_of(one), |seen: &Figures| seen.alone[index].solved);
        let basis_of_figure = |rests: &[Rest], figure: &dyn Fn(&Figures) -> f64, rows: &[String]| {
            let known = moved.basis(rests, !one.compiled.has_evidence(), figure, rows);
            known.max(least_on(one.router.system()))
        };
        let own = moved.rests(rate(point), &rate, &rows);
        let known = basis_of_figure(&own, &rate, &rows);
        basis.push(if doubted(&one.alternative.name) { known.max(Basis::Weak) } else { known });
        lessons.push(lesson(&own));
        rests.push(own);
        // The rows that a design names measured rates, and so fix no latency.
        let latency = |seen: &Figures| seen.latency[index];
        let own = moved.rests(latency(point), &latency, &[]);
        latency_basis.push(basis_of_figure(&own, &latency, &[]));
        latency_lessons.push(lesson(&own));
    }

    let (told, carried) = (drawn.told(), drawn.carried());
    // A load that was asked for is not a prediction.
    let is_predicted = design.objective == Objective::MostThroughput;
    // What measured this very alternative fixes its rate: errors of predictions say nothing of it.
    let errors = |index: usize| (basis[index] != Basis::Fitted).then(|| lessons[index]);
    let alone: Vec<Ranged> = (0..ready.len())
        .map(|index| drawn.rated(&told, errors(index), |seen: &Figures| seen.alone[index]))
        .collect();
    // A mix is known no better than the least that it takes.
    let least = |shares: &[(String, f64)]| {
        let is_taken = |one: &Ready| shares.iter().any(|(name, _)| *name == one.alternative.name);
        let taken = ready.iter().zip(&lessons).filter(|(one, _)| is_taken(one));
        taken.map(|(_, lesson)| *lesson).max().unwrap_or(Lesson::OfFittedCards)
    };
    // The one alternative that a mix is made of: it has that one's interval, and is known as well.
    let only = |shares: &[(String, f64)]| match shares {
        [(name, _)] => {
            let own = ready.iter().position(|one| one.alternative.name == *name);
            Some(own.expect("a mix names alternatives"))
        }
        _ => None,
    };
    let is_widened = only(&printed.shares[0]).is_none_or(|own| basis[own] != Basis::Fitted);
    let mixes: Vec<Ranged> = printed
        .shares
        .iter()
        .enumerate()
        .map(|(index, shares)| match only(shares) {
            // Nobody chooses its load: it is what was asked for.
            _ if !is_predicted && index == 0 => Ranged::of(point.mixes[0].solved, &Widened::default()),
            Some(own) => alone[own],
            None => drawn.rated(&told, Some(least(shares)), |seen: &Figures| seen.mixes[index]),
        })
        .collect();
    let mut optimal = mixes[0];
    if let Some(carried) = doubt.and_then(|doubt| doubt.carried).filter(|_| is_predicted) {
        // The smaller figure is the safer one; what was carried above a capacity is none, and slots have one only as long
        // as they are held for what was solved with.
        let is_above = doubt.is_some_and(|doubt| doubt.above);
        optimal = optimal.including(if is_above { carried } else { carried.min(optimal.value) });
    }
    let worth_held = |seen: &Figures| seen.worth_held;
    // At the shares that are printed: where several mixes are as good, others would rest on other numbers.
    // Where the latency bound forbids them they are no answer.
    let worth_allowed = |seen: &Figures| if seen.is_in_bound { seen.worth_held } else { f64::INFINITY };
    // What measured an alternative measured a mix of it alone too; rows say nothing of latency or of the host's time.
    let rows = only(&printed.shares[0]).filter(|_| is_predicted).map(|own| rows_of(&ready[own]));
    let mix_rests = moved.rests(point.worth_held, &worth_allowed, &rows.unwrap_or_default());
    let by_parts = mix_basis(&seen.optimal, &base.parts(), &basis, &mix_rests);
    let of_mix = match design.objective {
        Objective::MostThroughput => by_parts,
        // How well their rates are known says nothing of latency or of the host's time.
        Objective::LeastHostCpu { .. } | Objective::LowestP99 { .. } => {
            let taken = || ready.iter().filter(|one| printed.set.contains(&one.alternative.name));
            let own = basis_of(&mix_rests, taken().any(|one| !one.compiled.has_evidence()));
            let own = taken().fold(own, |own, one| own.max(least_on(one.router.system())));
            // A worth of 0 moves with no number, and whether the load is carried does.
            let is_open = point.worth_held.abs() < 1e-15 || carried.len() < told.len();
            if is_open { own.max(by_parts) } else { own }
        }
    };
    let of_printed = least(&printed.shares[0]);
    let of_worth = of_printed.max(lesson(&mix_rests));
    let worth = match design.objective {
        Objective::MostThroughput => optimal,
        // A processor that is full passes as many as its time is enough for, so that errors of rates are errors of it.
        Objective::LeastHostCpu { .. } => {
            let errors = is_widened.then_some((of_worth, FigureKind::Throughput));
            drawn.ranged(&told, errors, worth_held)
        }
        Objective::LowestP99 { .. } => drawn.ranged(&told, Some((of_worth, FigureKind::Latency)), worth_held),
    };
    let load = design.objective.load().unwrap_or(point.mixes[0].solved);
    // An alternative that its own evidence fits is widened by none.
    let widened_by: Vec<Lesson> = (0..ready.len()).filter_map(errors).collect();
    let share = |is: &dyn Fn(&Figures) -> bool| {
        told.iter().filter(|seen| is(seen)).count() as f64 / drawn.draws.len().max(1) as f64
    };
    Ok(Confidence {
        runs: (0..ready.len()).map(|index| share(&|seen| !seen.latency[index].is_nan())).collect(),
        mix_runs: share(&Figures::runs_printed),
        mix_keeps_bound: design.latency_bound.map(|_| share(&|seen| seen.runs_printed() && seen.is_in_bound)),
        mix_basis: if doubt.is_some() { of_mix.max(Basis::Weak) } else { of_mix },
        latency: (0..ready.len())
            .map(|index| {
                let errors = (latency_lessons[index], FigureKind::Latency);
                drawn.ranged(&told, Some(errors), |seen: &Figures| seen.latency[index])
            })
            .collect(),
        over: (0..ready.len())
            .map(|index| {
                let of_mix = is_widened.then_some(of_printed);
                let taken = printed.shares[0].iter().find(|(name, _)| *name == ready[index].alternative.name);
                let share = taken.map_or(0.0, |(_, share)| *share);
                drawn.over(index, of_printed.max(lessons[index]), [of_mix, errors(index)], share)
            })
            .collect(),
        shares_carry: drawn.shares_carry(load, is_widened.then_some(of_printed)),
        basis,
        latency_basis,
        mix_rests,
        rests,
        alone,
        greedy: mixes[1],
        mixes: mixes[2..].to_vec(),
        optimal,
        worth,
        shares: (0..ready.len())
            .map(|index| drawn.ranged(&carried, None, |seen: &Figures| seen.shares[index]))
            .collect(),
        influences: influences(&moved, point, &design.objective),
        best_by_mechanism: (!open.is_empty()).then(|| (drawn.best_with(true), drawn.best_with(false))),
        recommended_best: holding(&carried),
        matched: printed.is_matched.then(|| {
            carried.iter().filter(|draw| draw.is_matched).count() as f64 / carried.len().max(1) as f64
        }),
        best_sets: drawn.best_sets(),
        carried: carried.len() as f64 / drawn.draws.len().max(1) as f64,
        is_widened,
        lesson: of_worth,
        lessons: widened_by.into_iter().chain(latency_lessons).chain([of_worth]).collect(),
    })
}

fn influences(moved: &MovedFigures<Figures>, point: &Figures, goal: &Objective) -> Vec<Influence> {
    let mut found = Vec::new();
    for (factor, ends) in moved.each() {
        if Drawn::of(factor) == Drawn::Held {
            continue;
        }
        let at = |end: Option<&(Quantity, Figures)>| match end {
            Some((value, seen)) => (*value, Some(seen.clone()).filter(|seen| seen.is_carried)),
            // The end is the value, or no other on this side makes a system.
            None => (factor.value, Some(point.clone())),
        };
        let sides = ends.sides().map(at);
        let sides = sides
            .map(|(value, seen)| (value, seen.map(|seen| (seen.worth, (!seen.holds).then_some(seen.set)))));
        found.push(Influence::of(factor, sides, goal, false));
    }
    let usual = point.worth;
    // An end at which the load is not carried is as far as can be.
    let far = |at: Option<f64>| at.map_or(f64::INFINITY, |at| (at - usual).abs());
    let span = |i: &Influence| far(i.at_low).max(far(i.at_high));
    found.retain(|i| span(i) > 1e-4 * usual || i.changes.is_some());
    found.sort_by(|a, b| span(b).total_cmp(&span(a)).then(a.number.cmp(&b.number)));
    found
}

/// The joint sample; each draw says whether it is of the base mechanism.
fn draws(
    base: &Base<'_>,
    open: &[Mechanism],
    seed: Seed,
    printed: &Printed<'_>,
) -> Result<Vec<(bool, Option<Figures>)>, miette::Report> {
    let sampled = |base: &Base<'_>| JointSample::new(base.factors(), seed, |factor| factor.id.clone());
    let own = sampled(base);
    let others: Vec<(Base<'_>, JointSample)> = open
        .iter()
        .map(|one| {
            let base = Base::new(printed.design, &one.ready, &one.folds);
            let sample = sampled(&base);
            (base, sample)
        })
        .collect();
    let mechanisms = MechanismSample::new(seed);
    let drawn = side_by_side(DRAWS, |draw| {
        let which = mechanisms.at(draw, others.len());
        let (base, sample) = which.map_or((base, &own), |which| (&others[which].0, &others[which].1));
        printed.at(base, &sample.at(draw)).map(|drawn| (which.is_none(), drawn))
    });
    drawn.into_iter().collect()
}

/// The basis of a mix: that of the worst alternative that it takes a twentieth or more of, and never better
/// than what its own rate rests on. No evidence is about a mix of several, so that it is predicted at best.
fn mix_basis(solution: &Solution, parts: &[Part<'_>], alternatives: &[Basis], rests: &[Rest]) -> Basis {
    let taken = parts
        .iter()
        .zip(alternatives)
        .filter(|(part, _)| solution.shares.get(&part.alternative.name).is_some_and(|share| *share >= 0.05));
    let worst = taken.map(|(_, basis)| *basis).max().unwrap_or(Basis::Predicted);
    worst.max(basis_of(rests, false))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An end at which another set has the better mean says nothing of a tail; one at which the load is not carried does.
    #[test]
    fn of_a_lowest_tail_no_set_is_said_to_change() {
        let (design, ready) =
            crate::planner::of_steps(r#"{ compute = "host", time = "2 us" }"#).expect("it is in order");
        let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let factors = Base::new(&design, &ready, &folds).factors();
        let changes = |goal: Objective| {
            let set = Some(vec!["other".to_string()]);
            let ends = [(factors[0].value, Some((1.0, set))), (factors[0].value, None)];
            Influence::of(&factors[0], ends, &goal, true).changes.expect("one end at least changes it")
        };
        assert!(changes(Objective::MostThroughput).contains("other at"));
        let of_tail = changes(Objective::LowestP99 { load: 1.0 });
        assert!(!of_tail.contains("other") && of_tail.contains("the load not carried"), "{of_tail}");
    }
}
