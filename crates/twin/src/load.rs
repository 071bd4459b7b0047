//! Load on plain routes: closed-loop and Poisson clients, with the statistics of a run.

use crate::engine::{EventEngine, Occurrence, Tag};
use crate::fault::Faults;
use crate::seed::{Generator, Seed, unit};
use crate::statistics::{Interval, Latencies};
use crate::window::{BATCHES, MeanDemand, Usage, edges, throughput};
use offpath_quantity::Time;
use offpath_route::{Route, Router};
use std::sync::Arc;

/// How requests come.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// So many requests are always in flight; each end starts the next.
    Closed {
        /// Requests in flight.
        in_flight: u32,
    },
    /// Every operation of the mix has a closed loop of its own; its share is how many of it are in
    /// flight, rounded down.
    Loops,
    /// Requests come at random at a rate, however many are in flight.
    Poisson {
        /// Requests per second.
        rate_per_s: f64,
    },
}

/// A load: operations with their shares, and for how long.
#[derive(Clone, Debug)]
pub struct Load {
    /// The routes with the shares in which they are drawn.
    pub mix: Vec<(Arc<Route>, f64)>,
    /// How requests come.
    pub arrivals: Arrivals,
    /// Virtual time before anything is counted.
    pub warm_up: Time,
    /// Virtual time that is counted.
    pub window: Time,
    /// The seed of every draw.
    pub seed: Seed,
    /// Faults, where there are any.
    pub faults: Option<Faults>,
}

/// Why a load cannot be run.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LoadError {
    /// There is nothing to run.
    #[error("a load needs at least one operation with a share above 0")]
    Empty,
    /// A number makes no sense.
    #[error("a load's {what} is {value}; it has to be above 0")]
    NotPositive {
        /// Which number.
        what: &'static str,
        /// What was given.
        value: f64,
    },
    /// Nothing moves any more.
    #[error("the twin stalled at {at} with {in_flight} operations in flight: {cycle}")]
    Stalled {
        /// When.
        at: Time,
        /// How many operations wait.
        in_flight: usize,
        /// What they wait for.
        cycle: String,
    },
}

/// What a run shows.
#[derive(Clone, Debug)]
pub struct LoadObservation {
    /// Operations that passed in the window, per second: the work of the station that is full first over
    /// what an operation asks of it, so no window shows more than was done in it (see
    /// [`crate::throughput`]).
    pub throughput_per_s: f64,
    /// The same with its 95% interval by batch means.
    pub interval: Interval,
    /// Operations that ended in the window.
    pub completed: u64,
    /// The same by operation of the mix.
    pub completed_of: Vec<u64>,
    /// Operations that failed in the window.
    pub failed: u64,
    /// Latencies of those that ended in the window.
    pub latencies: Latencies,
    /// Mean number of operations in flight in the window.
    pub mean_in_flight: f64,
    /// How busy each station was in the window, machine by machine.
    pub usage: Vec<Usage>,
    /// Events a completed operation cost.
    pub events_per_operation: f64,
    /// Operations started, ended, failed and left in flight over the whole run.
    pub balance: [u64; 4],
}

/// Most combinations of machines that take turns; beyond, turns are only nearly even.
const MOST_COMBINATIONS: u64 = 1 << 16;

fn lowest_common_multiple(a: u64, b: u64) -> u64 {
    let (mut divisor, mut rest) = (a, b);
    while rest > 0 {
        (divisor, rest) = (rest, divisor % rest);
    }
    a / divisor * b
}

/// Runs a load on idle stations of `router`'s system and observes its window.
pub fn run(router: &Arc<Router>, load: &Load) -> Result<LoadObservation, LoadError> {
    let total: f64 = load.mix.iter().map(|(_, share)| share.max(0.0)).sum();
    if total.is_nan() || total <= 0.0 {
        return Err(LoadError::Empty);
    }
    let positive = |what, value: f64| {
        if value > 0.0 { Ok(()) } else { Err(LoadError::NotPositive { what, value }) }
    };
    positive("window", load.window.as_seconds())?;
    match load.arrivals {
        Arrivals::Closed { in_flight } => positive("number of requests in flight", f64::from(in_flight))?,
        Arrivals::Loops => positive("number of requests in flight", total.floor())?,
        Arrivals::Poisson { rate_per_s } => positive("rate", rate_per_s)?,
    }
    let mut engine = EventEngine::new(router.clone(), load.seed);
    if let Some(faults) = load.faults.clone() {
        engine.inject(faults);
    }
    Run::new(router, load, total).drive(&mut engine)
}

struct Run<'l> {
    router: Arc<Router>,
    load: &'l Load,
    total: f64,
    draws: Generator,
    gaps: Generator,
    instances: Vec<Arc<[u32]>>,
    started_at: Vec<Time>,
    /// The operation of the mix that each slot runs.
    chosen: Vec<usize>,
    free: Vec<u64>,
    started: u64,
}

impl<'l> Run<'l> {
    fn new(router: &Arc<Router>, load: &'l Load, total: f64) -> Run<'l> {
        let machines = &router.system().machines;
        // As many combinations as serve each machine of every role equally often.
        let counts = machines.iter().map(|m| m.count.max(1));
        let most =
            counts.fold(1, |common, count| lowest_common_multiple(common, count).min(MOST_COMBINATIONS));
        let instances =
            (0..most).map(|i| machines.iter().map(|m| (i % m.count.max(1)) as u32).collect()).collect();
        Run {
            router: router.clone(),
            load,
            total,
            draws: load.seed.child("mix").generator(),
            gaps: load.seed.child("arrivals").generator(),
            instances,
            started_at: Vec::new(),
            chosen: Vec::new(),
            free: Vec::new(),
            started: 0,
        }
    }

    /// Draws an operation of the mix.
    fn draw(&mut self) -> usize {
        let mut at = unit(&mut self.draws) * self.total;
        let mut chosen = 0;
        for (index, (_, share)) in self.load.mix.iter().enumerate() {
            if *share > 0.0 {
                chosen = index;
                if at < *share {
                    break;
                }
                at -= share;
            }
        }
        chosen
    }

    fn start(&mut self, engine: &mut EventEngine, slot: Option<u64>, chosen: usize) {
        let slot = slot.or_else(|| self.free.pop()).unwrap_or_else(|| {
            self.started_at.push(Time::ZERO);
            self.chosen.push(chosen);
            self.started_at.len() as u64 - 1
        });
        self.started_at[slot as usize] = engine.now();
        self.chosen[slot as usize] = chosen;
        let chosen = &self.load.mix[chosen].0;
        let instances = &self.instances[(self.started % self.instances.len() as u64) as usize];
        self.started += 1;
        engine.start(Tag(slot), chosen.clone(), instances.clone(), false);
    }

    fn drive(mut self, engine: &mut EventEngine) -> Result<LoadObservation, LoadError> {
        const ARRIVAL: Tag = Tag(u64::MAX);
        const EDGE: Tag = Tag(u64::MAX - 1);
        let from = self.load.warm_up;
        let until = from + self.load.window;
        let mut latencies = Latencies::default();
        let mut ended = vec![0u64; BATCHES as usize];
        let mut failed = 0;
        let mut completed_of = vec![0; self.load.mix.len()];
        let mut balance = [0u64; 4];
        let mut area = 0.0;
        let mut last = Time::ZERO;
        let mut seen = Vec::with_capacity(ended.len() + 1);
        for edge in edges(from, self.load.window) {
            engine.timer(EDGE, edge);
        }
        let closed = match self.load.arrivals {
            Arrivals::Closed { in_flight } => {
                for _ in 0..in_flight {
                    let chosen = self.draw();
                    self.start(engine, None, chosen);
                }
                true
            }
            Arrivals::Loops => {
                // Turns are taken so that no loop has the stations to itself at the start.
                let mut left: Vec<u32> = self.load.mix.iter().map(|(_, count)| *count as u32).collect();
                while left.iter().any(|count| *count > 0) {
                    for (index, count) in left.iter_mut().enumerate().filter(|(_, count)| **count > 0) {
                        *count -= 1;
                        self.start(engine, None, index);
                    }
                }
                true
            }
            Arrivals::Poisson { .. } => {
                engine.timer(ARRIVAL, Time::ZERO);
                false
            }
        };
        loop {
            let in_flight = engine.in_flight();
            let Some(occurrence) = engine.next() else {
                return Err(LoadError::Stalled {
                    at: engine.now(),
                    in_flight,
                    cycle: "no event is left, so they hold what each other waits for".to_string(),
                });
            };
            let now = engine.now();
            let (a, b) = (last.max(from), now.min(until));
            area += in_flight as f64 * (b.saturating_sub(a)).as_seconds();
            last = now;
            match occurrence {
                Occurrence::Timer { tag: EDGE } => {
                    seen.push(engine.snapshot());
                    if seen.len() > ended.len() {
                        break;
                    }
                }
                Occurrence::Done { tag } => {
                    balance[1] += 1;
                    if let Some(batch) = seen.len().checked_sub(1) {
                        ended[batch] += 1;
                        completed_of[self.chosen[tag.0 as usize]] += 1;
                        latencies.record(now - self.started_at[tag.0 as usize]);
                    }
                    self.ended(engine, tag, closed);
                }
                Occurrence::Failed { tag, .. } => {
                    balance[2] += 1;
                    failed += u64::from(!seen.is_empty());
                    self.ended(engine, tag, closed);
                }
                Occurrence::Timer { .. } => {
                    let chosen = self.draw();
                    self.start(engine, None, chosen);
                    if let Arrivals::Poisson { rate_per_s } = self.load.arrivals {
                        let gap = -(1.0 - unit(&mut self.gaps)).ln() / rate_per_s;
                        engine.timer(ARRIVAL, now + Time::from_seconds(gap));
                    }
                }
                Occurrence::Marked { .. } | Occurrence::Duplicated { .. } => {}
            }
        }
        balance[0] = self.started;
        balance[3] = balance[0] - balance[1] - balance[2];
        let (before, after) = (&seen[0], &seen[seen.len() - 1]);
        let completed: u64 = ended.iter().sum();
        let throughput = throughput(&self.router, &seen, &ended, &self.demand(&completed_of));
        let throughput = throughput.expect("a window has batches");
        Ok(LoadObservation {
            throughput_per_s: throughput.mean,
            interval: throughput,
            completed,
            completed_of,
            failed,
            latencies,
            mean_in_flight: area / self.load.window.as_seconds(),
            usage: after.usage(before, &self.router),
            events_per_operation: (after.events - before.events) as f64 / completed.max(1) as f64,
            balance,
        })
    }

    /// What an operation demands in the mean of those that ended, or are asked for where none did. Where
    /// faults repeat requests, no demand says what stations serve.
    fn demand(&self, completed_of: &[u64]) -> MeanDemand {
        let mut mean = MeanDemand::default();
        if self.load.faults.is_some() {
            return mean;
        }
        let completed: u64 = completed_of.iter().sum();
        for ((route, share), ended) in self.load.mix.iter().zip(completed_of) {
            let share = match completed {
                0 => share.max(0.0) / self.total,
                _ => *ended as f64 / completed as f64,
            };
            if share > 0.0 {
                mean.add(&route.demand(&self.router), share);
            }
        }
        mean
    }

    fn ended(&mut self, engine: &mut EventEngine, tag: Tag, closed: bool) {
        if closed {
            let chosen = match self.load.arrivals {
                Arrivals::Loops => self.chosen[tag.0 as usize],
                _ => self.draw(),
            };
            self.start(engine, Some(tag.0), chosen);
        } else {
            self.free.push(tag.0);
        }
    }
}
