//! Running designs on the twin: what a request demands when nothing else runs, and what a mix
//! reaches under load.

use crate::design::LONGEST;
use crate::interpret::{self, Chance, Hint, Job, RequestFailure, RunState, TooMany};
use crate::planner::Ready;
use crate::program::{Call, Compiled, Fold};
use offpath_fabric::{Backend, Fabric, LocalBoxFuture, Unsupported};
use offpath_quantity::Time;
use offpath_route::{Posting, Router, StationId, StationKind};
use offpath_twin::backend::{Label, Observer, Recorded, Snapshot, TwinBackend, TwinFabric, TwinQueuePair};
use offpath_twin::{BATCHES, Generator, Interval, Latencies, MeanDemand, Seed, edges, throughput, unit_of};
use rand_core::RngCore;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Why a run gives no answer.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ObserveError {
    /// The backend refused or stopped.
    #[error("the twin stopped: {reason}")]
    #[diagnostic(help("check the design's paths and sizes; with the same seed the run repeats exactly"))]
    Backend {
        /// Its words.
        reason: String,
    },
    /// A request failed.
    #[error("a request of `{alternative}` failed: {reason}")]
    #[diagnostic(help("the twin refuses an operation where real hardware would; check its path and size"))]
    Request {
        /// Whose request.
        alternative: String,
        /// Why.
        reason: String,
    },
    /// The run would be larger than its messages can name.
    #[error(transparent)]
    #[diagnostic(transparent)]
    TooMany(#[from] TooMany),
}

impl Hint for TwinFabric {
    fn hinted(&self, queue_pair: &TwinQueuePair, call: &Call, label: u64) -> TwinQueuePair {
        let mut pair = queue_pair.labelled(Label::from_value(label)).accessing(call.operation.access);
        if call.is_apart() {
            pair = pair.between(&call.operation.path);
        }
        match call.operation.posting {
            Posting::Single => pair,
            Posting::Batch(count) => pair.batched(count),
        }
    }

    fn labelled_fabric(&self, label: u64) -> TwinFabric {
        self.labelled(Label::from_value(label))
    }

    fn perform(&self, call: &Call) -> Result<LocalBoxFuture<()>, Unsupported> {
        Ok(Box::pin(TwinFabric::perform(self, &call.operation)?))
    }
}

/// What the idle twin shows of one alternative.
#[derive(Clone, Debug)]
pub struct IdleObservation {
    /// The mean demand of a request; by adding up its steps where a branch is too rare to be among the samples.
    pub fold: Fold,
    /// What the sampled requests alone asked for.
    pub sampled: Fold,
    /// Requests that were run.
    pub requests: u64,
    /// The widest 95% interval of any demand, as a share of it.
    pub widest: f64,
}

/// How requests reach a loaded twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RequestArrivals {
    /// So many are always in flight.
    Closed(u32),
    /// They come at random at a rate per second.
    Poisson(f64),
}

/// What a loaded twin shows of a mix.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Requests per second with its 95% interval.
    pub throughput: Interval,
    /// Latencies from arrival to end.
    pub latencies: Latencies,
    /// Requests that failed.
    pub failed: u64,
    /// Share of its server time that each station was busy, as the mean over the machines of its role.
    pub utilization: BTreeMap<String, f64>,
    /// The busiest machine of its role at each station, counted from 0, and its share.
    pub fullest: BTreeMap<String, (u32, f64)>,
    /// Mean time that a slot was held, by station.
    pub holds: BTreeMap<String, Time>,
    /// Mean demand of a request by alternative, with in-flight slots as an idle twin holds them.
    pub demands: BTreeMap<String, Fold>,
    /// Requests in flight, where the clients are closed loops.
    pub in_flight: u32,
    /// The virtual time that was counted.
    pub window: Time,
    /// What ran before it.
    pub(crate) warm_up: Time,
    /// Requests per second that came in the window, where they come at random.
    pub arrived_per_s: Option<f64>,
    /// Mean number of requests in flight by Little's law from the counted requests.
    pub mean_in_flight: f64,
}

impl Loaded {
    /// It, where its figures are some: not where the interval of what it carried is wider than the mean.
    pub fn told(&self) -> Option<&Loaded> {
        self.throughput.result().map(|_| self)
    }
}

/// Requests that are run one at a time before the demands are looked at again.
const BATCH: u64 = 32;
/// Most requests that are sampled before a demand is taken as it is.
const MOST: u64 = 8192;
/// By which share of what its steps add up to a sample may fall short before it is taken to have missed
/// something: twice what a sample may be off by.
const UNSEEN: f64 = 0.02;
/// Requests that an open loop may have in flight before arrivals wait at the clients.
pub(crate) const OPEN_LOOP_TASKS: u32 = 2048;

#[derive(Default)]
struct Ended {
    count: u64,
    latency: Time,
    /// Seconds that they take by adding up, each with the cases that it took.
    added_s: f64,
    failure: Option<(u16, String)>,
}

/// A job of an alternative, with its operations in exact proportion.
struct Proportions(Vec<(f64, f64)>);

impl Proportions {
    fn new(shares: impl Iterator<Item = f64>) -> Proportions {
        Proportions(shares.map(|share| (share, 0.0)).collect())
    }

    /// The one that is owed most.
    fn next(&mut self) -> usize {
        for (share, owed) in &mut self.0 {
            *owed += *share;
        }
        let mut most = 0;
        for index in 1..self.0.len() {
            if self.0[index].1 > self.0[most].1 {
                most = index;
            }
        }
        self.0[most].1 -= self.0.iter().map(|(share, _)| share).sum::<f64>();
        most
    }
}

fn backend(router: &Arc<Router>, seed: Seed, observer: &Observer) -> Result<TwinBackend, ObserveError> {
    let backend = TwinBackend::on(router.clone(), seed.value());
    Ok(backend.with_observer(observer))
}

/// How many machines have each endpoint.
fn machines(router: &Router) -> BTreeMap<String, u32> {
    let machines = router.system().machines.iter();
    machines
        .flat_map(|machine| machine.endpoints.iter().map(|e| (e.name.clone(), machine.count as u32)))
        .collect()
}

fn stopped(error: impl std::fmt::Display) -> ObserveError {
    ObserveError::Backend { reason: error.to_string() }
}

/// Runs an alternative on the idle twin, one request at a time, until the 95% interval of each
/// demand is within 1% of it.
pub fn observe(one: &Ready, seed: Seed) -> Result<IdleObservation, ObserveError> {
    let observer = Observer::new();
    let ended: Rc<RefCell<Ended>> = Rc::default();
    let (sink, watch) = (ended.clone(), observer.clone());
    let answered = ended.clone();
    let answered = move |job: Job, at, result| {
        let mut ended = answered.borrow_mut();
        ended.latency += at - job.born;
        if let Err(failure) = result {
            ended.failure.get_or_insert((job.alternative, words(&failure)));
        }
    };
    // What a request does in the background is its demand too.
    let done = move |job: Job, _| {
        watch.end(Label::from_value(job.label));
        sink.borrow_mut().count += 1;
    };
    let script = vec![one.compiled.clone()];
    let shared = RunState::hearing(script, Chance::Proportional, answered, done)?;
    let result: Rc<RefCell<Option<(Recorded, f64, f64)>>> = Rc::default();
    let main = {
        let (shared, ended, output, observer) =
            (shared.clone(), ended.clone(), result.clone(), observer.clone());
        let (compiled, router) = (one.compiled.clone(), one.router.clone());
        move |fabric: TwinFabric| -> LocalBoxFuture<()> {
            let (shared, ended, output, observer) =
                (shared.clone(), ended.clone(), output.clone(), observer.clone());
            let (compiled, router) = (compiled.clone(), router.clone());
            Box::pin(async move {
                let tasks = shared.expected(1, 1);
                let mut next = Proportions::new(compiled.programs.iter().map(|(share, _)| *share));
                let mut added: BTreeMap<(u16, Vec<(u16, bool)>), f64> = BTreeMap::new();
                wait_for(&fabric, || shared.connected() >= tasks).await;
                // The first requests look up addresses that later ones know.
                for step in 0.. {
                    if step == 1 {
                        observer.reset();
                        let failure = ended.borrow_mut().failure.take();
                        *ended.borrow_mut() = Ended { failure, ..Ended::default() };
                    }
                    for _ in 0..BATCH {
                        let before = ended.borrow().count;
                        let label = observer.begin(0).value();
                        let program = next.next() as u16;
                        shared.push(Job { alternative: 0, program, born: fabric.now(), label }, 0);
                        // No request takes as long: the steps of one compute and wait for less.
                        let most = fabric.now() + LONGEST.scaled(100.0);
                        let is_over = || ended.borrow().count > before || shared.broken().is_some();
                        wait_for(&fabric, || is_over() || fabric.now() > most).await;
                        if !is_over() {
                            let reason = format!("is not over after {}", LONGEST.scaled(100.0));
                            ended.borrow_mut().failure = Some((0, reason));
                            break;
                        }
                        let cases = shared.decided();
                        let own = &compiled.programs[usize::from(program)].1;
                        let by_steps = |cases: &[(u16, bool)]| own.decided(cases).fold(&router).latency;
                        let own =
                            *added.entry((program, cases)).or_insert_with_key(|(_, cases)| by_steps(cases));
                        ended.borrow_mut().added_s += own;
                    }
                    let recorded = observer.recorded().remove(&0).unwrap_or_default();
                    if let Some((alternative, failure)) = shared.broken() {
                        ended.borrow_mut().failure.get_or_insert((alternative, words(&failure)));
                    }
                    let enough = step > 1 && proportional_error(&recorded) < 0.01;
                    if enough || recorded.requests >= MOST || ended.borrow().failure.is_some() {
                        let Ended { latency, added_s, .. } = &*ended.borrow();
                        *output.borrow_mut() = Some((recorded, latency.as_seconds(), *added_s));
                        return;
                    }
                }
            })
        }
    };
    let roles = interpret::roles(&shared, &machines(&one.router), 1, 1, main)?;
    backend(&one.router, seed, &observer)?.run(roles).map_err(stopped)?;
    if let Some((_, reason)) = &ended.borrow().failure {
        let reason = reason.clone();
        return Err(ObserveError::Request { alternative: one.alternative.name.clone(), reason });
    }
    let taken = result.borrow_mut().take();
    let (recorded, latency_s, added_s) =
        taken.ok_or_else(|| stopped("the run ended before it was observed"))?;
    let mut fold = fold_of(&recorded, &one.router);
    fold.latency = latency_s / recorded.requests as f64;
    let sampled = fold.clone();
    // What crosses the network as payload, and what of computing is estimated, the twin does not tell.
    let added = one.compiled.fold(&one.router);
    // How often a case comes among few samples is not how often it comes, and one that is too rare is not among them:
    // what all cases ask is added up. Which bank is the hottest is only seen, and so is for how long the parts of a request wait
    // for each other: by how much those that were run took longer than their steps add up to.
    if one.compiled.extremes(&one.router).rarest < 1.0 {
        let is_banks = |name: &str| {
            one.router.station(name).is_some_and(|id| matches!(one.router.kind(id), StationKind::Banks(_)))
        };
        for (station, seconds) in &added.seconds {
            let observed = fold.seconds.entry(station.clone()).or_default();
            if !is_banks(station) || *observed < seconds * (1.0 - UNSEEN) {
                *observed = *seconds;
            }
        }
        fold.requests.extend(added.requests);
        fold.latency = added.latency + (latency_s - added_s) / recorded.requests as f64;
    }
    (fold.network_bytes, fold.estimated) = (added.network_bytes, added.estimated);
    fold.background = added.background;
    Ok(IdleObservation { widest: proportional_error(&recorded), requests: recorded.requests, fold, sampled })
}

/// How far the means of proportional samples may be off: a case that is owed at most one request
/// more or less moves a mean by its largest value over the number of requests.
fn proportional_error(recorded: &Recorded) -> f64 {
    let n = recorded.requests.max(1) as f64;
    let worst = |sum: f64, squares: f64| {
        // The largest single value is at most the root of the sum of squares.
        if sum > 0.0 { (squares / n).sqrt() * 2.0 / sum } else { 0.0 }
    };
    recorded
        .time
        .values()
        .chain(recorded.pool.values())
        .filter(|m| m.squares * n - m.sum * m.sum > 1e-9 * m.sum * m.sum)
        .map(|m| worst(m.sum, m.squares))
        .fold(0.0, f64::max)
}

fn words(failure: &RequestFailure) -> String {
    match failure {
        RequestFailure::Operation(status) => format!("completed with {status}"),
        RequestFailure::Post(reason) => reason.clone(),
    }
}

/// Looks every 5 us, and less often the longer it takes: a request that waits for seconds ends too.
async fn wait_for(fabric: &TwinFabric, mut done: impl FnMut() -> bool) {
    let started = fabric.now();
    while !done() {
        let longer = Time::from_ps((fabric.now() - started).ps() / 4);
        fabric.sleep(longer.max(Time::from_us(5))).await;
    }
}

/// A recorded demand by names, a skewed access to banks counted as its hottest bank is loaded.
fn fold_of(recorded: &Recorded, router: &Router) -> Fold {
    let mut fold = Fold::default();
    for (station, moments) in &recorded.time {
        let info = &router.stations()[station.index()];
        let factor = match info.kind {
            StationKind::Banks(banks) => {
                recorded.banks.get(station).map_or(1.0, |hottest| hottest * banks as f64)
            }
            _ => 1.0,
        };
        fold.seconds.insert(info.name.clone(), moments.mean(recorded.requests) * 1e-12 * factor);
    }
    for ((station, class), moments) in &recorded.pool {
        let pool = router.stations()[station.index()].name.clone();
        let class = router.class_name(*station, *class).to_string();
        fold.requests.insert((pool, class), moments.mean(recorded.requests));
    }
    fold
}

/// Runs a mix under load: `shares` of the alternatives of `ready`, which run on one system.
///
/// A closed loop's clients wait for each answer; an open loop's requests come at random. Nothing
/// is counted before `warm_up`, then `window` is. The same seed gives the same answer.
pub fn load(
    ready: &[&Ready],
    shares: &[f64],
    arrivals: RequestArrivals,
    warm_up: Time,
    window: Time,
    seed: Seed,
) -> Result<Loaded, ObserveError> {
    Ok(load_watched(ready, shares, arrivals, (warm_up, window), None, seed)?.0)
}

/// Which station is watched of a loaded twin, on which machine of its role, and for how long at a time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watched {
    pub(crate) station: StationId,
    pub(crate) machine: u32,
    pub(crate) slice: Time,
}

/// How busy a station on one machine is while another one is idle.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Meanwhile {
    pub(crate) station: String,
    pub(crate) machine: u32,
    /// Its share of busy time in the idle time of the other.
    pub(crate) busy: f64,
    /// The same of all time.
    pub(crate) in_all: f64,
}

/// Slices of a window in which a station is watched, at most.
const MOST_SLICES: u32 = 4096;

/// Adds up how busy every station is while one of them is idle.
struct IdleTime {
    watched: Watched,
    slices: f64,
    idle: f64,
    /// By station and machine: busy time in that, and in all.
    busy: Vec<Vec<(f64, f64)>>,
}

impl IdleTime {
    /// Adds one slice. Within it nothing says which part of it was idle, so each part counts alike.
    fn add(&mut self, before: &Snapshot, after: &Snapshot, router: &Router) {
        let usage = after.usage(before, router);
        let of_watched = usage.iter().find(|one| one.station == self.watched.station);
        let Some(own) = of_watched.and_then(|one| one.machines.get(self.watched.machine as usize)) else {
            return;
        };
        let idle = (1.0 - own).max(0.0);
        self.slices += 1.0;
        self.idle += idle;
        self.busy.resize(usage.len().max(self.busy.len()), Vec::new());
        for (all, one) in self.busy.iter_mut().zip(&usage) {
            all.resize(one.machines.len(), (0.0, 0.0));
            for ((meanwhile, in_all), busy) in all.iter_mut().zip(&one.machines) {
                *meanwhile += idle * busy;
                *in_all += busy;
            }
        }
    }

    fn shares(&self, router: &Router) -> Vec<Meanwhile> {
        let of = |(index, machines): (usize, &Vec<(f64, f64)>)| -> Vec<Meanwhile> {
            let station = StationId(index as u16);
            let others = machines.iter().enumerate().filter(|(machine, _)| {
                self.idle > 0.0 && (station, *machine as u32) != (self.watched.station, self.watched.machine)
            });
            others
                .map(|(machine, (meanwhile, in_all))| Meanwhile {
                    station: router.stations()[index].name.clone(),
                    machine: machine as u32,
                    busy: meanwhile / self.idle,
                    in_all: in_all / self.slices,
                })
                .collect()
        };
        self.busy.iter().enumerate().flat_map(of).collect()
    }
}

/// [`load`], with how busy the other stations are while `watched` is idle.
pub(crate) fn load_watched(
    ready: &[&Ready],
    shares: &[f64],
    arrivals: RequestArrivals,
    (warm_up, window): (Time, Time),
    watched: Option<Watched>,
    seed: Seed,
) -> Result<(Loaded, Vec<Meanwhile>), ObserveError> {
    let router = &ready[0].router;
    let observer = Observer::new();
    let script: Vec<Compiled> = ready.iter().map(|one| one.compiled.clone()).collect();
    let meter: Rc<RefCell<Meter>> = Rc::default();
    let driver: Rc<RefCell<Option<Driver>>> = Rc::default();
    let shared = {
        let (of_answers, driver, observer) = (meter.clone(), driver.clone(), observer.clone());
        let answered = move |job, at, result| {
            of_answers.borrow_mut().answered(job, at, result);
            if matches!(arrivals, RequestArrivals::Closed(_))
                && let Some(driver) = driver.borrow_mut().as_mut()
            {
                driver.push(at);
            }
        };
        // A request is served when its work in the background is over too: else a mix would seem to carry
        // for a while what it only puts off.
        let meter = meter.clone();
        let done = move |job: Job, _| {
            observer.end(Label::from_value(job.label));
            meter.borrow_mut().done();
        };
        RunState::hearing(script.clone(), Chance::Random, answered, done)?
    };
    *driver.borrow_mut() = Some(Driver {
        shared: Rc::downgrade(&shared),
        observer: observer.clone(),
        begun: 0,
        alternatives: Proportions::new(shares.iter().copied()),
        programs: script
            .iter()
            .map(|one| Proportions::new(one.programs.iter().map(|(share, _)| *share)))
            .collect(),
        machines: seed.child("machines").generator(),
    });
    let tasks = match arrivals {
        RequestArrivals::Closed(in_flight) => in_flight,
        RequestArrivals::Poisson(_) => OPEN_LOOP_TASKS,
    };
    let main = {
        let (shared, meter, driver) = (shared.clone(), meter.clone(), driver.clone());
        let watched_router = router.clone();
        move |fabric: TwinFabric| -> LocalBoxFuture<()> {
            let (shared, meter, driver) = (shared.clone(), meter.clone(), driver.clone());
            let watched_router = watched_router.clone();
            Box::pin(async move {
                let all = shared.expected(tasks, tasks);
                wait_for(&fabric, || shared.connected() >= all).await;
                let push = || {
                    let mut driver = driver.borrow_mut();
                    driver.as_mut().expect("the driver is set before the run").push(fabric.now());
                };
                let from = fabric.now() + warm_up;
                match arrivals {
                    // Those that began together would go on from station to station together.
                    RequestArrivals::Closed(in_flight) => {
                        let began = fabric.now();
                        let half = (warm_up.ps() / 2) as f64;
                        let mut starts: Vec<f64> =
                            (0..in_flight).map(|_| unit_of(fabric.random_u64()) * half).collect();
                        starts.sort_by(f64::total_cmp);
                        for after in starts {
                            fabric.sleep_until(began + Time::from_ps(after as u64)).await;
                            push();
                        }
                    }
                    RequestArrivals::Poisson(rate) => {
                        let arrive = fabric.clone();
                        let (driver, meter) = (driver.clone(), meter.clone());
                        fabric.spawn_task(Box::pin(async move {
                            let mut at = arrive.now();
                            loop {
                                let unit = unit_of(arrive.random_u64());
                                at += Time::from_seconds(-(1.0 - unit).ln() / rate);
                                arrive.sleep_until(at).await;
                                let mut driver = driver.borrow_mut();
                                let Some(driver) = driver.as_mut() else { return };
                                meter.borrow_mut().came();
                                driver.push(at);
                            }
                        }));
                    }
                }
                if let Some(watched) = watched {
                    let (watch, meter, router) = (fabric.clone(), meter.clone(), watched_router.clone());
                    fabric.spawn_task(Box::pin(async move {
                        watch.sleep_until(from).await;
                        let mut before = watch.snapshot();
                        let slices = (window.ps() / watched.slice.ps().max(1)).min(MOST_SLICES.into());
                        for slice in 1..=slices {
                            watch.sleep_until(from + watched.slice.times(slice)).await;
                            let after = watch.snapshot();
                            let mut meter = meter.borrow_mut();
                            let idle = IdleTime { watched, slices: 0.0, idle: 0.0, busy: Vec::new() };
                            meter.meanwhile.get_or_insert(idle).add(&before, &after, &router);
                            before = after;
                        }
                    }));
                }
                for edge in edges(from, window) {
                    fabric.sleep_until(edge).await;
                    meter.borrow_mut().seen.push(fabric.snapshot());
                }
                // Of long requests fewer have ended than began: what begins no more is let end, so that what
                // requests are seen to ask for is that of all.
                let begun = driver.borrow_mut().take().expect("it is taken once").begun;
                let most = fabric.now() + window;
                wait_for(&fabric, || {
                    let meter = meter.borrow();
                    meter.done == begun || fabric.now() > most || shared.broken().is_some()
                })
                .await;
            })
        }
    };
    let roles = interpret::roles(&shared, &machines(router), tasks, tasks, main)?;
    backend(router, seed, &observer)?.run(roles).map_err(stopped)?;
    if let Some((alternative, failure)) = shared.broken() {
        let alternative = ready[usize::from(alternative)].alternative.name.clone();
        return Err(ObserveError::Request { alternative, reason: words(&failure) });
    }
    let meter = meter.borrow();
    let (before, after) = match &meter.seen[..] {
        [before, .., after] if meter.seen.len() > BATCHES as usize => (before, after),
        _ => return Err(stopped("the run ended before its window")),
    };
    let mut utilization = BTreeMap::new();
    let mut holds = BTreeMap::new();
    let mut fullest = BTreeMap::new();
    for usage in after.usage(before, router) {
        let info = &router.stations()[usage.station.index()];
        utilization.insert(info.name.clone(), usage.mean());
        fullest.extend(usage.fullest().map(|found| (info.name.clone(), found)));
        if let (StationKind::InflightSlots(_), Some(hold)) =
            (&info.kind, after.mean_hold(before, usage.station))
        {
            holds.insert(info.name.clone(), hold);
        }
    }
    let recorded = observer.recorded();
    let demand = mean_demand(&script, shares, &recorded, router);
    let throughput = throughput(router, &meter.seen, &meter.ended, &demand)
        .ok_or_else(|| stopped("the window is too short to count"))?;
    let loaded = Loaded {
        arrived_per_s: matches!(arrivals, RequestArrivals::Poisson(_))
            .then(|| meter.arrived as f64 / window.as_seconds()),
        mean_in_flight: throughput.mean * meter.latencies.mean().unwrap_or(Time::ZERO).as_seconds(),
        throughput,
        latencies: meter.latencies.clone(),
        failed: meter.failed,
        utilization,
        fullest,
        holds,
        demands: ready
            .iter()
            .enumerate()
            .filter_map(|(index, one)| {
                let programs = 0..script[index].programs.len();
                let mut kinds = programs.filter_map(|program| recorded.get(&kind_of(index, program)));
                let mut all = kinds.next()?.clone();
                kinds.for_each(|kind| all.add(kind));
                Some((one.alternative.name.clone(), fold_of(&all, router)))
            })
            .collect(),
        in_flight: tasks,
        window,
        warm_up,
    };
    let meanwhile = meter.meanwhile.iter().flat_map(|watch| watch.shares(router)).collect();
    Ok((loaded, meanwhile))
}

/// What the requests of one program of an alternative are counted as.
fn kind_of(alternative: usize, program: usize) -> u32 {
    (alternative as u32) << 16 | program as u32
}

/// What a request of a mix demands in the mean, in the proportions in which requests are handed out.
fn mean_demand(
    script: &[Compiled],
    shares: &[f64],
    recorded: &BTreeMap<u32, Recorded>,
    router: &Router,
) -> MeanDemand {
    let all: f64 = shares.iter().sum();
    let mut mean = MeanDemand::default();
    for (alternative, (one, share)) in script.iter().zip(shares).enumerate() {
        let of: f64 = one.programs.iter().map(|(weight, _)| weight).sum();
        for (index, (weight, program)) in one.programs.iter().enumerate() {
            let fold = program.fold(router);
            let expected = MeanDemand::of_steps(
                fold.seconds.iter().filter_map(|(name, seconds)| Some((router.station(name)?, *seconds))),
                fold.requests.iter().filter_map(|((pool, class), requests)| {
                    let pool = router.station(pool)?;
                    Some(((pool, router.class_of(pool, class)?), *requests))
                }),
            );
            let seen = recorded.get(&kind_of(alternative, index));
            mean.add_seen(share / all * weight / of, &expected, seen, router);
        }
    }
    mean
}

/// Chooses what comes next and hands it out.
struct Driver {
    shared: std::rc::Weak<RunState>,
    observer: Observer,
    /// Requests handed out so far.
    begun: u64,
    alternatives: Proportions,
    programs: Vec<Proportions>,
    /// On which machine each request begins.
    machines: Generator,
}

impl Driver {
    fn push(&mut self, now: Time) {
        let Some(shared) = self.shared.upgrade() else { return };
        let alternative = self.alternatives.next();
        let program = self.programs[alternative].next();
        self.begun += 1;
        let label = self.observer.begin(kind_of(alternative, program)).value();
        let job = Job { alternative: alternative as u16, program: program as u16, born: now, label };
        shared.push(job, self.machines.next_u64());
    }
}

/// Counts what ends in the window.
#[derive(Default)]
struct Meter {
    /// The stations at the edges of the window's batches, as far as they have come.
    seen: Vec<Snapshot>,
    /// Requests that ended in each batch.
    ended: [u64; BATCHES as usize],
    latencies: Latencies,
    failed: u64,
    /// Requests of the whole run that are over, work in the background included.
    done: u64,
    /// Requests that came in the window.
    arrived: u64,
    /// What was seen while a station was idle, where one is watched.
    meanwhile: Option<IdleTime>,
}

impl Meter {
    fn is_open(&self) -> bool {
        (1..=self.ended.len()).contains(&self.seen.len())
    }

    fn came(&mut self) {
        self.arrived += u64::from(self.is_open());
    }

    fn answered(&mut self, job: Job, at: Time, result: Result<(), RequestFailure>) {
        if !self.is_open() {
            return;
        }
        match result {
            Ok(()) => self.latencies.record(at.saturating_sub(job.born)),
            Err(_) => self.failed += 1,
        }
    }

    fn done(&mut self) {
        self.done += 1;
        let batch = self.seen.len().wrapping_sub(1);
        if let Some(ended) = self.ended.get_mut(batch) {
            *ended += 1;
        }
    }
}
