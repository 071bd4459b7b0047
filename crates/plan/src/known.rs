//! How well the cost of one operation is known, without a design around it.

use crate::confidence::Ranged;
use crate::factor::{Factor, factors_of};
use crate::residual::{FigureKind, Lesson, PastErrors, Widened};
use crate::rests::{Basis, MovedFigures, Rest, least_on};
use crate::sample::{DRAWS, JointSample};
use crate::side_by_side::side_by_side;
use crate::solve::{payload_of, wire_rate};
use offpath_profile::System;
use offpath_quantity::Quantity;
use offpath_route::{Demand, PathOperation, RouteError, Router};
use offpath_twin::Seed;
use std::collections::BTreeMap;
use std::convert::Infallible;

/// What is known of one operation: its unloaded latency and what the system carries of it.
#[derive(Clone, Debug)]
pub struct Known {
    /// Seconds until it ends when nothing else runs.
    pub latency_s: Ranged,
    /// How well that is known.
    pub latency_basis: Basis,
    /// What it rests on, the heaviest first.
    pub latency_rests_on: Vec<Rest>,
    /// Operations per second that the stations carry.
    pub rate: Ranged,
    /// How well that is known.
    pub rate_basis: Basis,
    /// What it rests on, the heaviest first.
    pub rate_rests_on: Vec<Rest>,
    /// What each number that is only known as a range does to either figure, one number at a time; those that move
    /// neither are left out.
    pub moved_by: Vec<MovedBy>,
    /// How many of the 256 joint draws are a system that carries the operations: the intervals are of these alone.
    pub draws: usize,
}

/// The figures with one number at either end of its range; nearer, where the system is none with an end.
#[derive(Clone, Debug)]
pub struct MovedBy {
    /// The names that the number has: machines that carry the same card share its numbers.
    pub names: Vec<String>,
    /// The least value.
    pub low: Quantity,
    /// The greatest value.
    pub high: Quantity,
    /// Seconds of unloaded latency with the least and with the greatest.
    pub latency_s: [f64; 2],
    /// Operations per second with the least and with the greatest.
    pub rate: [f64; 2],
}

/// The cost of one operation on one system.
#[derive(Clone, Copy)]
struct Cost {
    latency_s: f64,
    rate: f64,
    /// What ports and links alone would carry.
    most: f64,
}

impl Cost {
    fn of(router: &Router, operation: &PathOperation, bound: &PayloadBound) -> Result<Cost, RouteError> {
        let route = router.route(operation)?;
        let demand = route.demand(router);
        let rate = demand.capacity(router).map_or(f64::INFINITY, |(rate, _)| rate);
        let most = bound.of(router, &demand);
        Ok(Cost { latency_s: route.latency(router).as_seconds(), rate, most })
    }
}

/// How well the costs of `operations` are known: by one joint sample, which `seed` decides, of every number of
/// the system that is known as an interval, widened by what past predictions of the kind were wrong by, as
/// in a plan ([`crate::confidence`]).
///
/// It ignores the mechanisms that the evidence leaves open, and no evidence is named as being about this very
/// operation: a figure is predicted at best.
///
/// # Errors
///
/// As [`Router::route`] of each operation.
///
/// ```
/// use offpath_plan::known::known;
/// use offpath_profile::{Library, SystemRequest};
/// use offpath_quantity::Bytes;
/// use offpath_route::{PathOperation, Router, Verb};
///
/// let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
/// let router = Router::new(&system).unwrap();
/// let read = PathOperation::new(Verb::Read, "client-soc".parse().unwrap(), Bytes::new(64));
/// let known = known(&router, &[read], offpath_twin::Seed::new(1)).unwrap();
/// let (low, high) = known[0].rate.range_80;
/// assert!(low <= known[0].rate.value && known[0].rate.value <= high);
/// ```
pub fn known(router: &Router, operations: &[PathOperation], seed: Seed) -> Result<Vec<Known>, RouteError> {
    let bounds: Vec<PayloadBound> = operations
        .iter()
        .map(|operation| PayloadBound::new(router, std::slice::from_ref(operation)))
        .collect::<Result<_, _>>()?;
    let costs = |router: &Router| -> Result<Vec<Cost>, RouteError> {
        let each = operations.iter().zip(&bounds);
        each.map(|(operation, bound)| Cost::of(router, operation, bound)).collect()
    };
    let point = costs(router)?;
    let Looked { moved, draws } = look(router, seed, |system| costs(&Router::new(system).ok()?).ok());
    let errors = |kind: FigureKind, rests: &[Rest]| Lesson::of(rests, [router.system()]).sizes(kind);
    Ok(operations
        .iter()
        .enumerate()
        .map(|(index, operation)| {
            let value = point[index];
            let has_evidence = router.route(operation).is_ok_and(|route| route.is_published);
            let known = |figure: &dyn Fn(&Cost) -> f64| {
                let figure = |seen: &Vec<Cost>| figure(&seen[index]);
                let rests_on = moved.rests(figure(&point), &figure, &[]);
                let basis = moved.basis(&rests_on, !has_evidence, &figure, &[]);
                (rests_on, basis.max(least_on(router.system())))
            };
            let rates: Vec<_> = draws.iter().map(|draw| (draw[index].rate, draw[index].most)).collect();
            let times: Vec<_> = draws.iter().map(|draw| (draw[index].latency_s, f64::INFINITY)).collect();
            let moved_by = moved.each().filter(|(factor, _)| factor.is_open());
            let moved_by = moved_by.filter_map(|(factor, ends)| {
                let [(low, at_low), (high, at_high)] = ends.sides().map(|end| match end {
                    Some((at, seen)) => (*at, seen[index]),
                    None => (factor.value, value),
                });
                let moved_by = MovedBy {
                    names: names(factor),
                    low,
                    high,
                    latency_s: [at_low.latency_s, at_high.latency_s],
                    rate: [at_low.rate, at_high.rate],
                };
                let is_moved = moved_by.latency_s != [value.latency_s; 2] || moved_by.rate != [value.rate; 2];
                is_moved.then_some(moved_by)
            });
            let moved_by = moved_by.collect();
            let (rate_rests_on, rate_basis) = known(&|cost| cost.rate);
            let (latency_rests_on, latency_basis) = known(&|cost| cost.latency_s);
            Known {
                latency_s: Ranged::of(
                    value.latency_s,
                    &Widened::new(times, &errors(FigureKind::Latency, &latency_rests_on)),
                ),
                latency_basis,
                latency_rests_on,
                rate: Ranged::of(
                    value.rate,
                    &Widened::new(rates, &errors(FigureKind::Throughput, &rate_rests_on)),
                ),
                rate_basis,
                rate_rests_on,
                moved_by,
                draws: draws.len(),
            }
        })
        .collect())
}

/// The names of a number, the card's own before those of the same card elsewhere, whose machine stands in front.
fn names(factor: &Factor) -> Vec<String> {
    let mut names = factor.names(0).to_vec();
    names.sort_by_key(String::len);
    names
}

/// What figures are with each number moved alone, and in the draws of one joint sample of all.
struct Looked<F> {
    moved: MovedFigures<F>,
    draws: Vec<F>,
}

/// Looks at figures of the system of `router` with its numbers elsewhere; where `figures` has none, or the system is none with
/// these numbers, there is nothing to look at.
fn look<F: Send>(router: &Router, seed: Seed, figures: impl Fn(&System) -> Option<F> + Sync) -> Looked<F> {
    let at = |moves: &[(&Factor, Quantity)]| -> Option<F> {
        let named = moves
            .iter()
            .flat_map(|(factor, value)| factor.names(0).iter().map(move |name| (name.as_str(), *value)));
        figures(&router.system().with_all(named).ok()?)
    };
    let factors = factors_of(&[router]);
    let Ok(moved) = MovedFigures::look(factors, |_| true, |_| true, |moves| Ok::<_, Infallible>(at(moves)));
    let sample = JointSample::new(moved.factors().to_vec(), seed, |factor| factor.id.clone());
    let draws = side_by_side(DRAWS, |draw| at(&sample.at(draw))).into_iter().flatten().collect();
    Looked { moved, draws }
}

/// A figure of a system, and the most that it can be whatever a model is wrong by.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedFigure {
    /// The figure.
    pub value: f64,
    /// The most that it can be; infinity where nothing bounds it.
    pub most: f64,
}

/// How well one figure is known.
#[derive(Clone, Debug)]
pub struct KnownFigure<'s> {
    /// The figure with its intervals.
    pub ranged: Ranged,
    /// How well it is known.
    pub basis: Basis,
    /// What it rests on, the heaviest first.
    pub rests_on: Vec<Rest>,
    /// The number known as a range that moves it most, one number at a time; none where none moves it.
    pub most_moved_by: Option<String>,
    /// How many of the 256 joint draws are a system that has these figures: the intervals are of these alone.
    pub draws: usize,
    /// Whose errors are in the intervals.
    pub errors: PastErrors<'s>,
}

/// What a figure is of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FigureOf {
    /// What it measures.
    pub kind: FigureKind,
    /// What the requests behind it do, as [`offpath_profile::LearntErrors::traffic`] has it.
    pub traffic: String,
    /// Between which endpoints they go, as in `client-host`.
    pub path: String,
    /// What binds them, as [`offpath_profile::LearntErrors::bound_by`] has it.
    pub bound_by: String,
    /// Whether published numbers were fitted to such requests.
    pub has_evidence: bool,
}

/// How well figures are known that a benchmark prints of a system, as [`known`] says it of operations: by the same
/// joint sample, widened by the errors of the card's own calibration where it was made of such figures. `of` says of each what it is;
/// `figures` has as many of any system.
///
/// Nothing where `figures` has none of the system as it is.
pub fn known_figures<'s>(
    router: &'s Router,
    of: &[FigureOf],
    seed: Seed,
    figures: impl Fn(&System) -> Option<Vec<BoundedFigure>> + Sync,
) -> Option<Vec<KnownFigure<'s>>> {
    let point = figures(router.system())?;
    let Looked { moved, draws } = look(router, seed, &figures);
    let mut at_ends: BTreeMap<String, Vec<Vec<BoundedFigure>>> = BTreeMap::new();
    let each = point.iter().zip(of).enumerate().map(|(index, (own, of))| {
        // Of a card that stands in two machines, the one whose number it is. All figures are looked at together, since a
        // log has hundreds of runs.
        let mut moves = |factor: &Factor, name: &str| {
            let ends = factor.interval.into_iter().flat_map(|(low, high)| [low, high]);
            let seen = ends.filter_map(|end| figures(&router.system().with_all([(name, end)]).ok()?));
            let seen = at_ends.entry(name.to_string()).or_insert_with(|| seen.collect());
            seen.iter().any(|seen| seen[index].value != own.value)
        };
        let figure = |seen: &Vec<BoundedFigure>| seen[index].value;
        let rests_on = moved.rests(own.value, &figure, &[]);
        let basis = moved.basis(&rests_on, !of.has_evidence, &figure, &[]).max(least_on(router.system()));
        let sample = draws.iter().map(|draw| (draw[index].value, draw[index].most)).collect();
        let open = moved.each().filter(|(factor, _)| factor.is_open());
        let spans = open.map(|(factor, ends)| {
            let [low, high] = ends.sides().map(|end| end.map_or(own.value, |(_, seen)| seen[index].value));
            (factor, (high - low).abs())
        });
        let most = spans.filter(|(_, span)| *span > 0.0).max_by(|(_, one), (_, other)| one.total_cmp(other));
        let errors = PastErrors::of(of, &rests_on, router.system());
        let is_untold = router.system().is_untold(of.kind.name(), &of.traffic, &of.path);
        KnownFigure {
            ranged: Ranged::of(own.value, &errors.widen(of.kind, sample)),
            errors,
            basis: if is_untold { basis.max(Basis::Weak) } else { basis },
            rests_on,
            most_moved_by: most.and_then(|(factor, _)| {
                let names = names(factor);
                names.iter().find(|name| moves(factor, name)).or(names.first()).cloned()
            }),
            draws: draws.len(),
        }
    });
    Some(each.collect())
}

/// What ports and links carry at most of the payload of operations that are done in turn, whatever a model is wrong by.
pub struct PayloadBound {
    operations: Vec<PathOperation>,
    /// What they ask with every number at its value, with headers and without.
    whole: Demand,
    bare: Demand,
}

impl PayloadBound {
    /// Of operations on the system of `router`.
    ///
    /// # Errors
    /// As [`Router::route`] of each.
    pub fn new(router: &Router, operations: &[PathOperation]) -> Result<PayloadBound, RouteError> {
        // Stations are in the order of the profile, so that both systems number them alike.
        let ideal = Router::new(&router.system().without_headers())?;
        let (whole, bare) = (together(router, operations)?, together(&ideal, operations)?);
        Ok(PayloadBound { operations: operations.to_vec(), whole, bare })
    }

    /// Rounds of all of them per second on a system with other numbers.
    ///
    /// # Errors
    /// As [`Router::route`] of each.
    pub fn rounds_per_s(&self, router: &Router) -> Result<f64, RouteError> {
        Ok(self.of(router, &together(router, &self.operations)?))
    }

    fn of(&self, router: &Router, demand: &Demand) -> f64 {
        let time = |demand: &Demand, station| demand.time.get(&station).map_or(0.0, |time| time.as_seconds());
        let asked = |wire: &str| {
            let station = router.station(wire);
            let time = station.and_then(|station| {
                let drawn = demand.time.get(&station)?.as_seconds();
                Some(payload_of(drawn, time(&self.whole, station), time(&self.bare, station)))
            });
            time.unwrap_or(0.0)
        };
        wire_rate(router, asked)
    }
}

/// What operations ask together.
fn together(router: &Router, operations: &[PathOperation]) -> Result<Demand, RouteError> {
    let mut demand = Demand::default();
    for operation in operations {
        demand.add(&router.route(operation)?.demand(router));
    }
    Ok(demand)
}
