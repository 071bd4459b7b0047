//! How well the cost of one operation is known, without a design around it.

use crate::confidence::Ranged;
use crate::factor::{Factor, factors_of};
use crate::residual::{FigureKind, Lesson, Widened};
use crate::rests::{Basis, MovedFigures, Rest, least_on};
use crate::sample::{DRAWS, JointSample};
use crate::side_by_side::side_by_side;
use crate::solve::{payload_of, wire_rate};
use offpath_quantity::Quantity;
use offpath_route::{Demand, PathOperation, RouteError, Router, StationId};
use offpath_twin::Seed;

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
    /// `payload` gives the seconds that the payload alone asks of a wire of whose time all of it asks so many.
    fn of(
        router: &Router,
        operation: &PathOperation,
        payload: impl Fn(StationId, f64) -> f64,
    ) -> Result<Cost, RouteError> {
        let route = router.route(operation)?;
        let demand = route.demand(router);
        let rate = demand.capacity(router).map_or(f64::INFINITY, |(rate, _)| rate);
        let asked = |wire: &str| {
            let station = router.station(wire);
            let time = station.and_then(|station| Some((station, demand.time.get(&station)?)));
            time.map_or(0.0, |(station, time)| payload(station, time.as_seconds()))
        };
        Ok(Cost { latency_s: route.latency(router).as_seconds(), rate, most: wire_rate(router, asked) })
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
    // Stations are in the order of the profile, so that both systems number them alike.
    let ideal = Router::new(&router.system().without_headers())?;
    let demands = |router: &Router| -> Result<Vec<Demand>, RouteError> {
        operations.iter().map(|operation| Ok(router.route(operation)?.demand(router))).collect()
    };
    let (whole, bare) = (demands(router)?, demands(&ideal)?);
    let costs = |router: &Router| -> Result<Vec<Cost>, RouteError> {
        let each = operations.iter().enumerate().map(|(index, operation)| {
            let time =
                |demand: &Demand, station| demand.time.get(&station).map_or(0.0, |time| time.as_seconds());
            let payload = |station, drawn: f64| {
                let (bare, whole) = (time(&bare[index], station), time(&whole[index], station));
                payload_of(drawn, whole, bare)
            };
            Cost::of(router, operation, payload)
        });
        each.collect()
    };
    let point = costs(router)?;
    // Where the system is none with these numbers, or refuses the operation, there is nothing to look at.
    let at = |moves: &[(&Factor, Quantity)]| -> Option<Vec<Cost>> {
        let named = moves
            .iter()
            .flat_map(|(factor, value)| factor.names(0).iter().map(move |name| (name.as_str(), *value)));
        let system = router.system().with_all(named).ok()?;
        costs(&Router::new(&system).ok()?).ok()
    };
    let factors = factors_of(&[router]);
    let moved = MovedFigures::look(factors, |_| true, |moves| Ok::<_, RouteError>(at(moves)))?;
    let sample = JointSample::new(moved.factors().to_vec(), seed, |factor| factor.id.clone());
    let draws: Vec<Vec<Cost>> =
        side_by_side(DRAWS, |draw| at(&sample.at(draw))).into_iter().flatten().collect();
    let lesson = Lesson::of([router.system()]);
    let (of_rates, of_latencies) = (lesson.sizes(FigureKind::Throughput), lesson.sizes(FigureKind::Latency));
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
                // The card's own before those of the same card elsewhere, whose machine stands in front.
                let mut names = factor.names(0).to_vec();
                names.sort_by_key(String::len);
                let moved_by = MovedBy {
                    names,
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
                latency_s: Ranged::of(value.latency_s, &Widened::new(times, &of_latencies)),
                latency_basis,
                latency_rests_on,
                rate: Ranged::of(value.rate, &Widened::new(rates, &of_rates)),
                rate_basis,
                rate_rests_on,
                moved_by,
                draws: draws.len(),
            }
        })
        .collect())
}
