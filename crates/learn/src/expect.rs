//! What a run would print on a described system, by the tool's own definitions.

use crate::posting::{KnownLoops, PostingLoop};
use crate::run::{NotARun, RunKind, RunLength, TOOL_POLL_BATCH, ToolRun};
use offpath_logs::{
    LatencySpan, LogFigure, LogMeasurement, LogMetric, MetricStatistic, MetricSubject, TrafficDirections,
    WorkRate,
};
use offpath_profile::{Endpoint, Machine, ProfileError, System};
use offpath_quantity::{BitRate, Bytes, Time};
use offpath_route::{
    Advance, Carrier, Cursor, Demand, Mark, Path, PathOperation, Posting, Responder, Route, RouteError,
    Router, StationId, Stations, Verb,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What bounds the rate of a run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CeilingKind {
    /// A station of the system, by its name.
    Station(String),
    /// The one thread that posts for all queue pairs and takes their completions.
    PostingThread,
    /// The one thread that receives messages.
    ReceivingThread,
    /// What each queue pair carries.
    QueuePairs,
    /// Requests that are posted ahead, each for its latency.
    TxDepth,
    /// READs and atomics in flight of each queue pair, each for its latency.
    OutstandingReads,
}

impl CeilingKind {
    /// Its name in answers.
    pub fn name(&self) -> &str {
        match self {
            CeilingKind::Station(name) => name,
            CeilingKind::PostingThread => "posting thread",
            CeilingKind::ReceivingThread => "receiving thread",
            CeilingKind::QueuePairs => "queue pairs",
            CeilingKind::TxDepth => "requests posted ahead",
            CeilingKind::OutstandingReads => "READs in flight",
        }
    }
}

/// What a rate cannot exceed, by one thing alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Ceiling {
    /// What it is.
    pub kind: CeilingKind,
    /// Requests per second, of both directions where traffic goes both ways.
    pub rate_per_s: f64,
}

/// What a run would print.
#[derive(Clone, Debug, PartialEq)]
pub struct Expected {
    /// What it measures.
    pub kind: RunKind,
    /// Bytes of a request.
    pub payload: Bytes,
    /// Messages per second, of both directions together where traffic goes both ways; of a latency test what follows
    /// from one request at a time.
    pub rate_per_s: f64,
    /// The latency as the tool defines it: half of a round trip for SEND and WRITE, the whole operation for READ and
    /// atomics, on idle stations.
    pub latency: Time,
    /// From where to where.
    pub span: LatencySpan,
    /// What bounds the rate, the lowest first. Where two are close, a run stays below both.
    pub ceilings: Vec<Ceiling>,
}

impl Expected {
    /// Payload that crosses per second, in 10^9 bits.
    pub fn gbit_per_s(&self) -> f64 {
        self.rate_per_s * self.payload.get() as f64 * 8.0 / 1e9
    }

    /// The same in 2^20 bytes, which perftest has always meant by its MB.
    pub fn mib_per_s(&self) -> f64 {
        self.rate_per_s * self.payload.get() as f64 / f64::from(1u32 << 20)
    }

    /// What binds.
    pub fn binding(&self) -> &CeilingKind {
        &self.ceilings[0].kind
    }

    /// The figure of that meaning; nothing where none is predicted, such as peaks and tails.
    pub fn figure(&self, metric: &LogMetric) -> Option<LogFigure> {
        use MetricStatistic as S;
        match (metric.subject, metric.statistic) {
            (MetricSubject::Bandwidth, S::Mean | S::Median) => {
                let bits = self.rate_per_s * self.payload.get() as f64 * 8.0;
                Some(LogFigure::BitRate(BitRate::from_bits_per_second(bits.round() as u64)))
            }
            (MetricSubject::OperationRate, S::Mean | S::Median | S::Only) => {
                Some(LogFigure::Rate(WorkRate::from_micro_per_s((self.rate_per_s * 1e6).round() as u64)))
            }
            (MetricSubject::Latency, S::Median | S::Mean | S::Min)
                if self.kind == RunKind::Latency && metric.span.is_none_or(|span| span == self.span) =>
            {
                Some(LogFigure::Time(self.latency))
            }
            _ => None,
        }
    }
}

/// Why nothing can be expected of a run.
#[derive(Debug, thiserror::Error)]
pub enum ExpectError {
    /// The figure is not one of a run that is modelled, or its log leaves something open.
    #[error(transparent)]
    Run(#[from] NotARun),
    /// The path or the operation is refused.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// The system lacks something.
    #[error(transparent)]
    Profile(Box<ProfileError>),
    /// Nothing carries the path but an engine or a processor itself.
    #[error(
        "path `{path}` does not pass a NIC, and queue pairs do; name two endpoints, as `offpath path DEVICE` lists them"
    )]
    NoQueuePairs {
        /// The path.
        path: String,
    },
    /// No engine at the path's requester copies over it.
    #[error(
        "path `{path}` is none of a device's own DMA, which the logs measured; name one from the engine's side, as in `soc-host-dma`"
    )]
    NoEngine {
        /// The path.
        path: String,
    },
}

impl From<ProfileError> for ExpectError {
    fn from(error: ProfileError) -> ExpectError {
        ExpectError::Profile(Box::new(error))
    }
}

/// What a run changes in the system: the payload that goes inline, and the MTU where it is stated.
type RunChanges = (Bytes, Option<Bytes>);

/// Two endpoints of a system with one machine of each role, as a test of two programs has them.
pub struct ToolBench {
    system: System,
    path: Path,
    /// By what runs change.
    routers: RefCell<BTreeMap<RunChanges, Rc<Router>>>,
    /// What other benches followed already.
    loops: Arc<KnownLoops>,
}

/// One side of a run: who posts, to whom.
struct Side<'r> {
    route: Route,
    demand: Demand,
    from: (&'r Machine, &'r Endpoint),
    to: (&'r Machine, &'r Endpoint),
    /// The stations of the two threads, which are counted apart from the processors' other cores.
    threads: [Option<StationId>; 2],
    /// The same request posted by itself, where it is one of a list: what the thread and the NIC do with the list is over before
    /// the request is in flight.
    alone: Option<Route>,
}

impl Side<'_> {
    /// What a request asks of all stations but the processors of the two threads.
    fn beside_threads(&self) -> Demand {
        let mut demand = self.demand.clone();
        demand.time.retain(|station, _| !self.threads.contains(&Some(*station)));
        demand
    }
}

impl ToolBench {
    /// A bench on which the requester of `path` runs the client, and the responder the server.
    ///
    /// # Errors
    /// [`ExpectError`] where the path does not exist, or no NIC carries it.
    pub fn new(system: &System, path: &str) -> Result<ToolBench, ExpectError> {
        let mut system = system.clone();
        for machine in &mut system.machines {
            machine.count = 1;
        }
        let router = Router::new(&system)?;
        let path = router.path(path)?;
        if path.engine.is_some() || router.carrier(Verb::Read, &path)? != Carrier::Nic {
            return Err(ExpectError::NoQueuePairs { path: path.to_string() });
        }
        Ok(ToolBench { system, path, routers: RefCell::default(), loops: Arc::default() })
    }

    /// The same, which shares what it follows with other benches: a number that a run does not meet leads to the same loop.
    pub fn sharing(self, loops: &Arc<KnownLoops>) -> ToolBench {
        ToolBench { loops: loops.clone(), ..self }
    }

    /// The path from the client to the server.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The system, with one machine of each role.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// What the run of a figure would print.
    ///
    /// # Errors
    /// [`ExpectError`] where the figure is of another kind, its log leaves something open, or the system refuses it.
    pub fn expect_of(&self, measurement: &LogMeasurement) -> Result<Expected, ExpectError> {
        self.expect(&ToolRun::of(measurement)?)
    }

    /// What a run would print.
    ///
    /// # Errors
    /// [`ExpectError`] where the system refuses it.
    pub fn expect(&self, run: &ToolRun) -> Result<Expected, ExpectError> {
        let router = self.router(run)?;
        let back = Path {
            requester: self.path.responder.clone(),
            responder: self.path.requester.clone(),
            engine: None,
        };
        let there = self.side(&router, run, &self.path)?;
        match run.kind {
            RunKind::Latency => {
                let half = |side: &Side<'_>| one_way(side, &router) + behind_queue_pair(side, &router);
                let (latency, span) = match run.verb {
                    Verb::Write | Verb::Send => {
                        let back = self.side(&router, run, &back)?;
                        let both = half(&there) + half(&back);
                        (Time::from_ps(both.ps() / 2), LatencySpan::HalfRoundTrip)
                    }
                    _ => {
                        let alone = there.route.latency(&router) + behind_queue_pair(&there, &router);
                        (alone, LatencySpan::WholeOperation)
                    }
                };
                let rate_per_s = 1.0 / latency.as_seconds().max(1e-12);
                let ceilings = vec![Ceiling { kind: CeilingKind::TxDepth, rate_per_s }];
                Ok(Expected {
                    kind: run.kind,
                    payload: there.route.payload,
                    rate_per_s,
                    latency,
                    span,
                    ceilings,
                })
            }
            RunKind::Bandwidth => {
                let mut sides = vec![there];
                if run.directions == TrafficDirections::Both {
                    sides.push(self.side(&router, run, &back)?);
                }
                Ok(bandwidth(&router, run, &sides, &self.loops))
            }
        }
    }

    fn router(&self, run: &ToolRun) -> Result<Rc<Router>, ExpectError> {
        let key = (run.inline, run.mtu);
        if let Some(router) = self.routers.borrow().get(&key) {
            return Ok(router.clone());
        }
        let mut system = self.system.clone();
        for machine in &mut system.machines {
            machine.nic.inline_limit = run.inline;
        }
        if let Some(mtu) = run.mtu {
            system.network.mtu = mtu;
        }
        let router = Rc::new(Router::new(&system)?);
        self.routers.borrow_mut().insert(key, router.clone());
        Ok(router)
    }

    fn side<'r>(&self, router: &'r Router, run: &ToolRun, path: &Path) -> Result<Side<'r>, ExpectError> {
        let posting = match run.post_list {
            0 | 1 => Posting::Single,
            list => Posting::Batch(u32::try_from(list).unwrap_or(u32::MAX)),
        };
        let operation = PathOperation::new(run.verb, path.clone(), run.payload).posted(posting);
        let route = router.route(&operation)?;
        let demand = route.demand(router);
        let system = router.system();
        let threads = [router.processor(&path.requester), router.processor(&path.responder)];
        let (from, to) = (system.endpoint(&path.requester)?, system.endpoint(&path.responder)?);
        let alone = (posting != Posting::Single)
            .then(|| router.route(&PathOperation { posting: Posting::Single, ..operation }))
            .transpose()?;
        Ok(Side { route, demand, from, to, threads, alone })
    }
}

/// From posting until the other side has the payload: until its program has the message, or a WRITE's bytes are visible
/// to a program that looks at them.
fn one_way(side: &Side<'_>, router: &Router) -> Time {
    if side.route.ends_at_responder {
        return side.route.latency(router);
    }
    let marks = marks(side, router);
    marks.get(&Mark::TargetEnd).or(marks.get(&Mark::Arrives)).copied().unwrap_or(Time::ZERO)
}

/// From posting until the requester's program sees the completion. A message is complete once it lies in the responder's memory and
/// the answer is back, whatever the responder's program does then.
fn until_completed(side: &Side<'_>, run: &ToolRun, router: &Router) -> Time {
    if run.verb.row().responder != Responder::Receives {
        return side.route.latency(router);
    }
    let marks = marks(side, router);
    let at = |mark: Mark| marks.get(&mark).copied().unwrap_or(Time::ZERO);
    at(Mark::Acknowledged).max(at(Mark::Delivered)) + side.from.1.processor.verbs.poll_latency
}

/// When an operation alone comes to what its route marks.
fn marks(side: &Side<'_>, router: &Router) -> BTreeMap<Mark, Time> {
    let mut stations = Stations::new(router.stations(), false);
    let mut cursor = Cursor::new(Time::ZERO);
    let mut marks = BTreeMap::new();
    loop {
        let mut marked = |one: offpath_route::Marked| {
            marks.insert(one.mark, one.at);
        };
        match cursor.advance(&side.route, &mut stations, &[], &mut || 0, &mut marked) {
            Advance::At(at) => stations.set_now(at),
            Advance::Cross { .. } => {}
            Advance::Wait(_) => unreachable!("an operation alone finds a free in-flight slot"),
            Advance::Done(_) => return marks,
        }
    }
}

/// How much longer the bytes of a request alone take since its queue pair carries them slower than everything on their way.
fn behind_queue_pair(side: &Side<'_>, router: &Router) -> Time {
    let bytes = |machine: &Machine| machine.nic.queue_pair_rate.time_for(side.route.payload);
    let slowest =
        side.beside_threads().capacity(router).map_or(Time::ZERO, |(rate, _)| Time::from_seconds(1.0 / rate));
    bytes(side.from.0).max(bytes(side.to.0)).saturating_sub(slowest)
}

/// Time that a request keeps its queue pair, at the slower of its two ends.
fn queue_pair_time(side: &Side<'_>) -> Time {
    let at = |machine: &Machine| {
        machine.nic.queue_pair_request_time + machine.nic.queue_pair_rate.time_for(side.route.payload)
    };
    at(side.from.0).max(at(side.to.0))
}

/// The thread's time for posting one request.
fn post_time(side: &Side<'_>, run: &ToolRun) -> Time {
    let costs = &side.from.1.processor.verbs;
    match run.post_list {
        0 | 1 => costs.post_time,
        list => {
            let list = u32::try_from(list).unwrap_or(u32::MAX);
            Time::from_ps(costs.list(list).ps() / u64::from(list))
        }
    }
}

fn bandwidth(router: &Router, run: &ToolRun, sides: &[Side<'_>], loops: &KnownLoops) -> Expected {
    let both = sides.len() as f64;
    // What both directions ask for together: each goes as often as the other.
    let mut demand = Demand::default();
    for side in sides {
        demand.add(&side.beside_threads());
    }
    let mut ceilings = Vec::new();
    let mut station_time = Time::ZERO;
    if let Some((rate, station)) = demand.capacity(router) {
        let name = router.stations()[station.index()].name.clone();
        ceilings.push(Ceiling { kind: CeilingKind::Station(name), rate_per_s: both * rate });
        station_time = Time::from_seconds(1.0 / rate);
    }
    let is_message = run.verb.row().responder == Responder::Receives;
    let mut rate_per_s = 0.0;
    let mut latency = Time::ZERO;
    let mut lowest: BTreeMap<CeilingKind, f64> = BTreeMap::new();
    for side in sides {
        let costs = &side.from.1.processor.verbs;
        let reads = run.is_read().then(|| {
            let device = side.from.0.nic.outstanding_reads.min(side.to.0.nic.outstanding_reads);
            run.outstanding_reads.unwrap_or(device).max(1)
        });
        let alone = until_completed(side, run, router) + behind_queue_pair(side, router);
        latency = latency.max(alone);
        let (post, poll) = (post_time(side, run), costs.poll_time);
        // A program that also receives does both on its one thread.
        let receive = side.to.1.processor.verbs.receive_time;
        let receives_too = is_message && sides.len() > 1;
        let post = if receives_too { post + receive } else { post };
        let receiving = if is_message && !receives_too { receive } else { Time::ZERO };
        let queue_pair = queue_pair_time(side);
        let pairs = run.queue_pairs as f64;
        let mut bound = |kind: CeilingKind, rate: f64| {
            if rate.is_finite() {
                let least = lowest.entry(kind).or_insert(f64::INFINITY);
                *least = least.min(rate * both);
            }
        };
        let thread = post.as_seconds() + poll.as_seconds() / run.cq_moderation as f64;
        bound(CeilingKind::PostingThread, 1.0 / thread);
        bound(CeilingKind::QueuePairs, pairs / queue_pair.as_seconds());
        bound(CeilingKind::TxDepth, pairs * run.tx_depth as f64 / alone.as_seconds());
        let mut followed = alone;
        if let Some(reads) = reads {
            // Posted by itself a request is in flight for what its latency is beyond posting, and in a list for as long.
            let flight = match &side.alone {
                Some(single) => {
                    (single.latency(router) + behind_queue_pair(side, router)).saturating_sub(costs.post_time)
                }
                None => alone.saturating_sub(post),
            };
            followed = flight + post;
            bound(CeilingKind::OutstandingReads, pairs * reads as f64 / flight.as_seconds());
        }
        if receiving > Time::ZERO {
            bound(CeilingKind::ReceivingThread, 1.0 / receiving.as_seconds());
        }
        let requests = match run.length {
            Some(RunLength::Iterations(all)) => Some((all / run.queue_pairs.max(1)).max(1)),
            Some(RunLength::Duration(_)) | None => None,
        };
        let posting = PostingLoop {
            queue_pairs: run.queue_pairs,
            depth: run.tx_depth,
            moderation: run.cq_moderation,
            poll_batch: TOOL_POLL_BATCH,
            window: reads,
            post,
            poll,
            look: costs.poll_latency,
            queue_pair,
            station: station_time.max(receiving),
            latency: followed,
            requests,
        };
        rate_per_s += loops.rate_per_s(&posting);
    }
    ceilings.extend(lowest.into_iter().map(|(kind, rate_per_s)| Ceiling { kind, rate_per_s }));
    ceilings.sort_by(|one, other| {
        one.rate_per_s.total_cmp(&other.rate_per_s).then_with(|| one.kind.cmp(&other.kind))
    });
    // The loop counts whole picoseconds; nothing passes faster than its lowest ceiling.
    let rate_per_s = ceilings.first().map_or(rate_per_s, |lowest| rate_per_s.min(lowest.rate_per_s));
    let span = if run.is_read() { LatencySpan::WholeOperation } else { LatencySpan::HalfRoundTrip };
    Expected { kind: run.kind, payload: sides[0].route.payload, rate_per_s, latency, span, ceilings }
}
