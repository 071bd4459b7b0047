//! The twin's cross-check of a plan, and what only the twin can answer: tails, curves, few clients.

use crate::design::{Design, Objective};
use crate::observe::{Arrivals, Loaded, RunError, load, observe};
use crate::planner::{Mix, Plan, Ready, plan};
use crate::program::Fold;
use offpath_quantity::Time;
use offpath_route::Kind;
use offpath_twin::Seed;

/// A plan with what the twin says of it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The plan, its contexts held as long as the loaded twin holds them.
    pub plan: Plan,
    /// The best mix's rate before holds were observed under load, where that changed it.
    pub first_rate: f64,
    /// Times that the mix was solved.
    pub rounds: u32,
    /// The loaded twin at the best mix.
    pub loaded: Loaded,
    /// Requests sampled on the idle twin, over all alternatives.
    pub sampled: u64,
    /// The widest 95% interval of an observed demand, as a share of it.
    pub widest: f64,
    /// A mix for the lowest tail that bisection found, where that is the objective.
    pub tail: Option<(Vec<(String, f64)>, Loaded)>,
}

/// A point of the curve of latency over throughput.
#[derive(Clone, Debug)]
pub struct Point {
    /// Offered requests per second.
    pub offered_per_s: f64,
    /// What the twin shows.
    pub loaded: Loaded,
}

/// Requests counted in a loaded window, where each is one burst.
const COUNTED: f64 = 60_000.0;
/// Payload that moves as one burst.
pub(crate) const BURST: f64 = 16_384.0;

/// Observes every alternative on the idle twin.
pub fn observe_all(ready: &[Ready], seed: Seed) -> Result<(Vec<Fold>, u64, f64), RunError> {
    let mut folds = Vec::new();
    let (mut sampled, mut widest) = (0, 0.0f64);
    for (index, one) in ready.iter().enumerate() {
        let observed = observe(one, seed.child("observe").index(index as u64))?;
        sampled += observed.requests;
        widest = widest.max(observed.widest);
        folds.push(observed.fold);
    }
    Ok((folds, sampled, widest))
}

/// Plans a design and cross-checks the best mix on the loaded twin.
///
/// Contexts are held longer under load than on an idle twin, so their holds are observed again at
/// the chosen mix and the mix is solved again, until they change by less than 1%.
pub fn plan_and_check(design: &Design, ready: &[Ready], seed: Seed) -> Result<Checked, miette::Report> {
    let (mut folds, sampled, widest) = observe_all(ready, seed)?;
    let mut rounds = 1;
    let mut current = plan(design, ready, &folds)?;
    let first_rate = current.optimal.rate.value;
    loop {
        let loaded = run_mix(design, ready, &current.optimal.shares, &current.optimal, None, seed)?;
        let moved = hold_again(ready, &mut folds, &current.optimal, &loaded);
        if moved < 0.01 || rounds == 6 {
            let tail = match design.objective {
                Objective::LowestP99 { load } => Some(lowest_tail(design, ready, &current, load, seed)?),
                _ => None,
            };
            return Ok(Checked { plan: current, first_rate, rounds, loaded, sampled, widest, tail });
        }
        rounds += 1;
        current = plan(design, ready, &folds)?;
    }
}

pub(crate) fn own<'r>(ready: &'r [Ready], shares: &[(String, f64)]) -> (Vec<&'r Ready>, Vec<f64>) {
    shares
        .iter()
        .filter_map(|(name, share)| {
            ready.iter().find(|one| one.alternative.name == *name).map(|one| (one, *share))
        })
        .unzip()
}

/// Requests that keep every station of a mix busy: six times what is under way unloaded. Few long
/// transfers that share a link end together, and it is idle until all are answered; of many it is not.
fn enough(rate: f64, latency_s: f64) -> u32 {
    ((rate * latency_s * 6.0) as u32).clamp(32, 4096)
}

fn run_mix(
    design: &Design,
    ready: &[Ready],
    shares: &[(String, f64)],
    mix: &Mix,
    offered: Option<f64>,
    seed: Seed,
) -> Result<Loaded, RunError> {
    let (own, shares) = own(ready, shares);
    let offered = offered.or(match design.objective {
        Objective::MostThroughput => None,
        Objective::LeastHostCpu { load } | Objective::LowestP99 { load } => Some(load),
    });
    let rate = offered.unwrap_or(mix.rate.value);
    // A large payload costs the twin an event a burst, so fewer requests are counted; their
    // throughput varies less.
    let payload = own
        .iter()
        .flat_map(|one| one.compiled.payloads())
        .map(|bytes| bytes.get() as f64)
        .fold(0.0, f64::max);
    let counted = (COUNTED / (1.0 + payload / BURST)).max(400.0);
    let window = Time::from_ps((counted / rate * 1e12) as u64).min(Time::from_ms(400));
    let in_flight = enough(rate, mix.latency_s);
    // Queues that a closed loop fills at its start have to drain once before anything is counted.
    let warm_up = Time::from_ps((f64::from(in_flight) / rate * 4e12) as u64 + (mix.latency_s * 8e12) as u64);
    let arrivals = offered.map_or(Arrivals::Closed(in_flight), Arrivals::Poisson);
    load(&own, &shares, arrivals, warm_up, window, seed.child("load"))
}

/// Scales the demand for contexts to how long the loaded twin held them; returns the largest change.
fn hold_again(ready: &[Ready], folds: &mut [Fold], mix: &Mix, loaded: &Loaded) -> f64 {
    let Some(main) = ready.iter().find(|one| one.alternative.device.is_none()) else { return 0.0 };
    let mut largest = 0.0f64;
    for station in main.router.stations() {
        let Kind::Contexts(contexts) = station.kind else { continue };
        let share = |name: &str| mix.shares.iter().find(|(n, _)| n == name).map_or(0.0, |(_, s)| *s);
        let expected: f64 = ready
            .iter()
            .zip(folds.iter())
            .map(|(one, fold)| {
                share(&one.alternative.name) * fold.seconds.get(&station.name).copied().unwrap_or(0.0)
            })
            .sum();
        let busy = loaded.utilization.get(&station.name).copied().unwrap_or(0.0);
        let seen = busy * (contexts * station.instances) as f64 / loaded.throughput.mean;
        // A pool that is mostly idle binds nothing, however long its holds are.
        if expected <= 0.0 || busy < 0.5 {
            continue;
        }
        let factor = seen / expected;
        if (factor - 1.0).abs() < 0.01 {
            continue;
        }
        largest = largest.max((factor - 1.0).abs());
        for (one, fold) in ready.iter().zip(folds.iter_mut()) {
            if one.alternative.device.is_none()
                && let Some(seconds) = fold.seconds.get_mut(&station.name)
            {
                *seconds *= factor;
            }
        }
    }
    largest
}

/// The mix with the lowest 99th percentile at a load, by bisection on the twin.
///
/// Between filling stations to the brim with what has the least mean latency and spreading the load
/// evenly lies a bound on every station's utilization; the tail falls and rises again with it.
fn lowest_tail(
    design: &Design,
    ready: &[Ready],
    base: &Plan,
    offered: f64,
    seed: Seed,
) -> Result<(Vec<(String, f64)>, Loaded), miette::Report> {
    let mut candidates: Vec<Vec<(String, f64)>> = vec![base.optimal.shares.clone()];
    let reaches = |shares: &[(String, f64)]| capacity_of(base, shares) >= offered;
    if reaches(&base.greedy.shares) {
        candidates.push(base.greedy.shares.clone());
    }
    for one in base.alternatives.iter().filter(|one| one.mixed && one.rate.value > offered) {
        candidates.push(vec![(one.name.clone(), 1.0)]);
    }
    let measure = |shares: &[(String, f64)]| -> Result<(Time, Loaded), RunError> {
        let loaded = run_mix(design, ready, shares, &base.optimal, Some(offered), seed)?;
        Ok((loaded.latencies.quantile(0.99).unwrap_or(Time::MAX), loaded))
    };
    let mut tried = Vec::new();
    for shares in candidates {
        let (p99, loaded) = measure(&shares)?;
        tried.push((p99, shares, loaded));
    }
    tried.sort_by_key(|one| one.0);
    // Bisect on the line between the two best: keep the half whose middle is lower.
    if let [first, second, ..] = tried.as_slice() {
        let (a, b) = (first.1.clone(), second.1.clone());
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..5 {
            let (left, right) = (low + (high - low) * 0.25, low + (high - low) * 0.75);
            let mut sides = Vec::new();
            for at in [left, right] {
                let shares = between(&a, &b, at);
                if !reaches(&shares) {
                    sides.push(Time::MAX);
                    continue;
                }
                let (p99, loaded) = measure(&shares)?;
                sides.push(p99);
                tried.push((p99, shares, loaded));
            }
            if sides[0] <= sides[1] {
                high = (low + high) / 2.0;
            } else {
                low = (low + high) / 2.0;
            }
        }
    }
    let best = tried.into_iter().min_by(|a, b| a.0.cmp(&b.0)).expect("the base mix was tried");
    Ok((best.1, best.2))
}

/// The greatest total that a mix's shares allow.
fn capacity_of(plan: &Plan, shares: &[(String, f64)]) -> f64 {
    let mut seconds = std::collections::BTreeMap::new();
    for (name, share) in shares {
        let Some(one) = plan.alternatives.iter().find(|one| one.name == *name) else { continue };
        for (station, time) in &one.demand.seconds {
            *seconds.entry(station.clone()).or_insert(0.0) += share * time;
        }
    }
    seconds
        .iter()
        .filter_map(|(station, time)| plan.servers.get(station).map(|servers| servers / time))
        .fold(f64::INFINITY, f64::min)
}

fn between(a: &[(String, f64)], b: &[(String, f64)], at: f64) -> Vec<(String, f64)> {
    let mut shares: std::collections::BTreeMap<String, f64> = std::collections::BTreeMap::new();
    for (list, weight) in [(a, 1.0 - at), (b, at)] {
        for (name, share) in list {
            *shares.entry(name.clone()).or_default() += share * weight;
        }
    }
    shares.into_iter().collect()
}

/// Latency over offered load: the best mix at shares of its capacity.
pub fn curve(design: &Design, ready: &[Ready], plan: &Plan, seed: Seed) -> Result<Vec<Point>, RunError> {
    [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95]
        .into_iter()
        .map(|share| {
            let offered = plan.optimal.rate.value * share;
            let loaded = run_mix(design, ready, &plan.optimal.shares, &plan.optimal, Some(offered), seed)?;
            Ok(Point { offered_per_s: offered, loaded })
        })
        .collect()
}

/// Throughput with few clients, each with one request under way, by alternative and named mix.
pub fn few_clients(
    design: &Design,
    ready: &[Ready],
    plan: &Plan,
    seed: Seed,
) -> Result<Vec<(String, Vec<Loaded>)>, RunError> {
    let mut rows: Vec<(String, Vec<(String, f64)>)> = design
        .alternatives
        .iter()
        .filter(|one| one.device.is_none() && one.mixed)
        .map(|one| (one.name.clone(), vec![(one.name.clone(), 1.0)]))
        .collect();
    rows.extend(plan.mixes.iter().map(|mix| (mix.name.clone(), mix.shares.clone())));
    let rate_of = |name: &str| {
        let alone = plan.alternatives.iter().filter(|one| one.name == name).map(|one| one.rate.value);
        let mixes = plan.mixes.iter().filter(|mix| mix.name == name).map(|mix| mix.rate.value);
        alone.chain(mixes).next().unwrap_or(f64::INFINITY)
    };
    rows.into_iter()
        .map(|(name, shares)| {
            let (own, weights) = own(ready, &shares);
            let slowest: f64 =
                own.iter().map(|one| one.compiled.fold(&one.router).latency).fold(0.0, f64::max);
            let runs = design
                .clients
                .iter()
                .map(|clients| {
                    // Where the clients are many, they wait for each other, and a round takes longer.
                    let round = slowest.max(f64::from(*clients) / rate_of(&name));
                    let span = |times: f64| Time::from_ps((round * times * 1e12) as u64);
                    load(
                        &own,
                        &weights,
                        Arrivals::Closed(*clients),
                        span(20.0),
                        span(100.0),
                        seed.child("clients"),
                    )
                })
                .collect::<Result<_, _>>()?;
            Ok((name, runs))
        })
        .collect()
}
