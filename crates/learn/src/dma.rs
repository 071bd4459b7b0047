//! A benchmark of a device's own DMA to memory of its host: what was run, and what it would print on a described system.

use crate::expect::{Ceiling, CeilingKind, ExpectError, Expected};
use crate::run::{NotARun, RunKind};
use offpath_logs::{LatencySpan, LogDetail, LogMeasurement, LogOperation, LogTool, MetricSubject};
use offpath_profile::{EngineWork, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{
    AddressSpread, Advance, Carrier, Cursor, Demand, LONGEST_MESSAGE, Mark, Path, PathOperation, Route,
    Router, Stations, Verb,
};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;

/// What each request of a run does to the host's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DmaOperation {
    /// It reads.
    Read,
    /// It writes.
    Write,
    /// It writes, and a read after it waits for that.
    WriteThenRead,
    /// It reads as often as it writes; a pair counts once.
    ReadWrite,
}

/// A run of a test of a device's DMA.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DmaRun {
    /// What it measures.
    pub kind: RunKind,
    /// What a request does.
    pub operation: DmaOperation,
    /// Bytes of a request.
    pub payload: Bytes,
    /// Bytes of the host's memory that the requests go to.
    pub window: Bytes,
    /// Whether the host's caches hold them.
    pub is_warm: bool,
}

impl DmaRun {
    /// The run that a figure of a log was taken in.
    ///
    /// # Errors
    /// [`NotARun`] where it is of another kind, or where its log leaves something open.
    pub fn of(measurement: &LogMeasurement) -> Result<DmaRun, NotARun> {
        let LogMeasurement { tool, metric, conditions, figure, .. } = measurement;
        if *tool != LogTool::PcieBench {
            return Err(NotARun::OtherTool { tool: tool.name() });
        }
        let kind = match metric.subject {
            MetricSubject::Bandwidth | MetricSubject::OperationRate => RunKind::Bandwidth,
            MetricSubject::Latency => RunKind::Latency,
            _ => return Err(NotARun::OtherMetric { metric: metric.key(*figure) }),
        };
        let not_modelled = |what: &str| NotARun::NotModelled { what: what.to_string() };
        if conditions.program.as_deref().is_some_and(|program| program.contains("_CMD_")) {
            return Err(not_modelled("a command of the device's processors beside its DMA engine"));
        }
        let number = |key: &str| match conditions.more.get(key) {
            Some(LogDetail::Number(number)) => Some(*number),
            _ => None,
        };
        if ["host_offset_bytes", "device_offset_bytes"].iter().any(|key| number(key) != Some(0)) {
            return Err(not_modelled("an address beside the start of a cache line"));
        }
        let is_warm = match conditions.more.get("cache") {
            Some(LogDetail::Text(cache)) if &**cache == "HWarm" => Some(true),
            Some(LogDetail::Text(cache)) if matches!(&**cache, "Cold" | "DThrash") => Some(false),
            Some(LogDetail::Text(_)) => {
                return Err(not_modelled("what a device's own writes leave in caches"));
            }
            _ => None,
        };
        let operation = match conditions.operation {
            Some(LogOperation::Read) => Some(DmaOperation::Read),
            Some(LogOperation::Write) => Some(DmaOperation::Write),
            Some(LogOperation::WriteThenRead) => Some(DmaOperation::WriteThenRead),
            Some(LogOperation::ReadWrite) => Some(DmaOperation::ReadWrite),
            _ => None,
        };
        let window = number("window_bytes").map(Bytes::new);
        let mut missing = Vec::new();
        missing.extend(operation.is_none().then_some("the operation"));
        missing.extend(conditions.payload.is_none().then_some("the payload"));
        missing.extend(window.is_none().then_some("the window"));
        missing.extend(is_warm.is_none().then_some("what caches hold"));
        let (Some(operation), Some(payload), Some(window), Some(is_warm)) =
            (operation, conditions.payload, window, is_warm)
        else {
            return Err(NotARun::Missing { missing });
        };
        let most = LONGEST_MESSAGE.get();
        if !(1..=most).contains(&payload.get()) {
            let value = payload.get();
            return Err(NotARun::OutOfRange { what: "the payload in bytes", value, least: 1, most });
        }
        Ok(DmaRun { kind, operation, payload, window, is_warm })
    }

    /// The test that measures it.
    pub fn program(&self) -> &'static str {
        match (self.kind, self.operation) {
            (RunKind::Bandwidth, DmaOperation::Read) => "BW_DMA_RD",
            (RunKind::Bandwidth, DmaOperation::Write) => "BW_DMA_WR",
            (RunKind::Bandwidth, _) => "BW_DMA_RW",
            (RunKind::Latency, DmaOperation::Read) => "LAT_DMA_RD",
            (RunKind::Latency, _) => "LAT_DMA_WRRD",
        }
    }
}

impl fmt::Display for DmaRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let caches = if self.is_warm { "warm" } else { "cold" };
        write!(f, "{} of {}, {caches} window of {}", self.program(), self.payload, self.window)
    }
}

/// A device's engine and the memory that it reads and writes.
pub struct DmaBench {
    system: System,
    path: Path,
    /// By what reads wait longer for, since caches do not hold it.
    routers: RefCell<BTreeMap<Time, Rc<Router>>>,
}

impl DmaBench {
    /// A bench on which the engine of `path` moves bytes between its own endpoint and the responder's memory.
    ///
    /// # Errors
    /// [`ExpectError`] where the path does not exist, or no copying engine at its requester carries it.
    pub fn new(system: &System, path: &str) -> Result<DmaBench, ExpectError> {
        let mut system = system.clone();
        for machine in &mut system.machines {
            machine.count = 1;
        }
        let router = Router::new(&system)?;
        let path = router.path(path)?;
        let owner = path.engine.as_ref().and_then(|name| {
            let (machine, _) = system.endpoint(&path.requester).ok()?;
            machine.engine(name).ok().map(|engine| engine.endpoint.clone())
        });
        let is_copy =
            path.engine.is_some() && router.carrier(Verb::Read, &path)? == Carrier::Engine(EngineWork::Copy);
        if !is_copy || owner.as_ref() != Some(&path.requester) {
            return Err(ExpectError::NoEngine { path: path.to_string() });
        }
        Ok(DmaBench { system, path, routers: RefCell::default() })
    }

    /// How much longer a run's reads wait than those of what the last-level cache holds.
    fn missing(&self, run: &DmaRun) -> Result<Time, ExpectError> {
        let (machine, to) = self.system.endpoint(&self.path.responder)?;
        let memory = &to.memory;
        // What was just written is in the cache, and where DDIO is off nothing is.
        let (Some(miss), true) = (memory.miss_latency, memory.ddio) else { return Ok(Time::ZERO) };
        if run.operation == DmaOperation::WriteThenRead {
            return Ok(Time::ZERO);
        }
        let last = machine.reach(&to.processor.name, &memory.name).and_then(|reach| reach.through.last());
        let cache = machine.caches.iter().find(|cache| Some(&cache.name) == last);
        let held = match (run.is_warm, cache) {
            (false, _) => 0.0,
            (true, Some(cache)) => cache.capacity.get() as f64 / run.window.get().max(1) as f64,
            (true, None) => 1.0,
        };
        Ok(Time::from_ps((miss.ps() as f64 * (1.0 - held.min(1.0))).round() as u64))
    }

    fn router(&self, missing: Time) -> Result<Rc<Router>, ExpectError> {
        if let Some(router) = self.routers.borrow().get(&missing) {
            return Ok(router.clone());
        }
        let mut system = self.system.clone();
        let memory = system.endpoint(&self.path.responder)?.1.memory.name.clone();
        let all = system.machines.iter_mut().flat_map(|machine| &mut machine.endpoints);
        for endpoint in all.filter(|endpoint| endpoint.memory.name == memory) {
            endpoint.memory.read_latency += missing;
        }
        let router = Rc::new(Router::new(&system)?);
        self.routers.borrow_mut().insert(missing, router.clone());
        Ok(router)
    }

    /// What a run would print.
    ///
    /// # Errors
    /// [`ExpectError`] where the system refuses it.
    pub fn expect(&self, run: &DmaRun) -> Result<Expected, ExpectError> {
        let router = self.router(self.missing(run)?)?;
        let route = |verb: Verb| -> Result<Route, ExpectError> {
            let access = AddressSpread { range: Some(run.window), ..AddressSpread::UNIFORM };
            let operation = PathOperation::new(verb, self.path.clone(), run.payload).accessing(access);
            Ok(router.route(&operation)?)
        };
        let verbs: &[Verb] = match run.operation {
            DmaOperation::Read => &[Verb::Read],
            DmaOperation::Write => &[Verb::Write],
            DmaOperation::WriteThenRead | DmaOperation::ReadWrite => &[Verb::Write, Verb::Read],
        };
        let routes: Vec<Route> = verbs.iter().map(|verb| route(*verb)).collect::<Result<_, _>>()?;
        let mut demand = Demand::default();
        routes.iter().for_each(|route| demand.add(&route.demand(&router)));
        let latency = match &routes[..] {
            [write, read] => self.written(write, &router)? + read.latency(&router),
            routes => routes[0].latency(&router),
        };
        let (rate_per_s, kind) = match (run.kind, demand.capacity(&router)) {
            (RunKind::Bandwidth, Some((rate, station))) => {
                (rate, CeilingKind::Station(router.stations()[station.index()].name.clone()))
            }
            _ => (1.0 / latency.as_seconds().max(1e-12), CeilingKind::TxDepth),
        };
        Ok(Expected {
            kind: run.kind,
            payload: run.payload,
            rate_per_s,
            latency,
            span: LatencySpan::Transaction,
            ceilings: vec![Ceiling { kind, rate_per_s }],
        })
    }

    /// How long a WRITE holds up a READ right behind it: until its last bytes are sent, which the READ follows on the way.
    fn written(&self, write: &Route, router: &Router) -> Result<Time, ExpectError> {
        let mut stations = Stations::new(router.stations(), false);
        let mut cursor = Cursor::new(Time::ZERO);
        let mut arrived = Time::ZERO;
        loop {
            let mut marked = |one: offpath_route::Marked| {
                if one.mark == Mark::TargetEnd {
                    arrived = one.at;
                }
            };
            match cursor.advance(write, &mut stations, &[], &mut || 0, &mut marked) {
                Advance::At(at) => stations.set_now(at),
                Advance::Cross { .. } => {}
                Advance::Wait(_) => unreachable!("an operation alone finds a free slot"),
                Advance::Done(_) => break,
            }
        }
        let (machine, from) = self.system.endpoint(&self.path.requester)?;
        let to = self.system.endpoint(&self.path.responder)?.1;
        let hops = machine.hops(&from.memory.name, &to.memory.name)?;
        let switch =
            |hop: &offpath_profile::LinkHop<'_>| hop.switch.map(|one| one.pass_time).unwrap_or_default();
        let way: Time = hops.iter().map(|hop| hop.link.delay + switch(hop)).sum();
        Ok(arrived.saturating_sub(way))
    }
}
