//! A plan over load: latency at parts of what it carries, and few clients.

use super::compare::blind;
use super::run::{COUNTED, own, run_mix};
use crate::design::Design;
use crate::observe::{Loaded, ObserveError, RequestArrivals, load};
use crate::planner::{Plan, Ready, capacity_at};
use crate::program::Fold;
use offpath_quantity::Time;
use offpath_twin::{Interval, Seed, batch_means};

/// A point of the curve of latency over throughput.
#[derive(Clone, Debug)]
pub struct LoadPoint {
    /// Offered requests per second.
    pub offered_per_s: f64,
    /// What the twin shows.
    pub loaded: Loaded,
}

/// Latency over offered load: the best mix at shares of what its stations carry, and at the load that was asked for,
/// as far as the twin tells: beyond as many requests as it has in flight they would wait for one that ends and for no
/// station, and of a case that is too rare for its window it shows nothing.
pub fn curve(
    design: &Design,
    ready: &[Ready],
    plan: &Plan,
    seed: Seed,
) -> Result<Vec<LoadPoint>, miette::Report> {
    let folds: Vec<Fold> = plan.alternatives.iter().map(|one| one.demand.clone()).collect();
    let most = match design.objective.load() {
        None => plan.optimal.rate.value,
        Some(_) => capacity_at(design, ready, &folds, &plan.optimal.shares)?,
    };
    let mut loads: Vec<f64> = [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95].map(|share| most * share).to_vec();
    loads.extend(design.objective.load());
    loads.sort_by(f64::total_cmp);
    loads
        .into_iter()
        .map(|offered| {
            let sizes = (most, plan.optimal.latency_s);
            let loaded = run_mix(ready, &plan.optimal.shares, sizes, Some(offered), COUNTED, seed)?;
            let sizes = (offered, plan.optimal.latency_s);
            let is_told = blind(ready, &plan.optimal.shares, &loaded, sizes, Some(offered)).is_none();
            Ok(is_told.then_some(LoadPoint { offered_per_s: offered, loaded }))
        })
        .filter_map(Result::transpose)
        .collect()
}

/// Runs that a figure of few clients is the mean of. In each they begin at other moments: what few clients do in
/// turn, they go on doing in that order.
const PHASES: u64 = 4;

/// Requests of each run, and rounds of the clients at least.
const OF_CLIENTS: f64 = 200.0;

const FEWEST_OF_CLIENTS: f64 = 20.0;

/// Requests per second of so many clients with one request in flight each, which run a mix in `shares`: the mean
/// over four runs in which they begin at other moments, with its 95% interval by Student's t over them.
/// `capacity` is what the stations carry, by which windows are sized.
///
/// It ignores what clients do between requests.
///
/// # Errors
/// As [`load`].
pub fn of_clients(
    ready: &[&Ready],
    shares: &[f64],
    clients: u32,
    capacity: f64,
    seed: Seed,
) -> Result<Interval, ObserveError> {
    let slowest = ready.iter().map(|one| one.compiled.fold(&one.router).latency).fold(0.0, f64::max);
    // Where the clients are many, they wait for each other, and a round takes longer.
    let round = slowest.max(f64::from(clients) / capacity);
    let rounds = (OF_CLIENTS / f64::from(clients)).max(FEWEST_OF_CLIENTS);
    let span = |times: f64| Time::from_seconds(round * times);
    let mut carried = Vec::new();
    for phase in 0..PHASES {
        let arrivals = RequestArrivals::Closed(clients);
        let seed = seed.child("clients").index(phase);
        let loaded = load(ready, shares, arrivals, span(FEWEST_OF_CLIENTS), span(rounds), seed)?;
        carried.push(loaded.throughput.mean);
    }
    Ok(batch_means(&carried).expect("there are several phases"))
}

/// Throughput with few clients ([`of_clients`]), by alternative and named mix.
pub fn few_clients(
    design: &Design,
    ready: &[Ready],
    plan: &Plan,
    seed: Seed,
) -> Result<Vec<(String, Vec<Interval>)>, ObserveError> {
    let is_own = |name: &str| {
        design.alternatives.iter().any(|one| one.name == name && one.device.is_none() && one.mixed)
    };
    let alone = plan.alternatives.iter().filter(|one| is_own(&one.name));
    let alone = alone.map(|one| (&one.name, vec![(one.name.clone(), 1.0)], one.rate.value));
    let mixes = plan.mixes.iter().map(|mix| (&mix.name, mix.shares.clone(), mix.rate.value));
    alone
        .chain(mixes)
        // What the design's constraints forbid, no client runs.
        .filter(|(_, _, capacity)| *capacity > 0.0)
        .map(|(name, shares, capacity)| {
            let (own, weights) = own(ready, &shares);
            let runs = design.clients.iter();
            let runs = runs.map(|clients| of_clients(&own, &weights, *clients, capacity, seed));
            Ok((name.clone(), runs.collect::<Result<_, _>>()?))
        })
        .collect()
}
