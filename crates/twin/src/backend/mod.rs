//! The twin as a backend: applications in virtual time on the stations of a system.
//!
//! A role runs at the endpoint of its name, or at what its name stands for in the system
//! ([`System::role_endpoint`]): role `client` instance 2 on the third client machine, `host`, `soc` and so on on
//! the server; [`TwinBackend::with_placement`] puts a role of another name somewhere.
//! Its processor is the endpoint's, its one memory bears the endpoint's name. Several roles may share an
//! endpoint; only datagrams run between them, since no path does.
//!
//! Posting, polling and receiving cost what the routes say. Beyond the fabric's contract:
//!
//! - A task that posts is busy for the processor time of posting: what it posts or computes next begins
//!   then. It is polled meanwhile, so that its clock does not show it.
//! - A READ sees each 64 B line of its source as of the line's own time. A WRITE shows its lines one after
//!   the other; one of more than a burst (16 KiB) shows its first when its last burst is booked. The result
//!   of a READ lies in the local region when its completion does.
//! - A WRITE or SEND takes its payload at posting where the work request holds it, else when the NIC
//!   reads it, so a buffer that is changed too early is seen.
//! - A fenced request starts when the program has seen what it waits for, a poll later than a NIC
//!   would start it.
//! - Requests behind a message that found no receive are held back, and not retransmitted with it.
//! - Connecting and resolving take the network's delay each way; faults do not touch them.
//! - Files take no virtual time (see [`TwinFile`]).
//!
//! ```
//! use offpath_fabric::{Fabric, QueuePair, QueuePairOptions, Region, Role, Backend, Access, Listener};
//! use offpath_profile::{Library, SystemRequest};
//! use offpath_twin::{TwinFabric, TwinBackend};
//!
//! let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
//! let backend = TwinBackend::new(&system, 1).unwrap();
//! let client = Role::new("client", 0, |fabric: TwinFabric| async move {
//!     let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc()).unwrap();
//!     fabric.connect(&queue_pair, "soc", 0, "echo").await.unwrap();
//!     let region = fabric.register("client", 64, Access::ALL).unwrap();
//!     queue_pair.send(region.all()).unwrap().await.success().unwrap();
//! });
//! let soc = Role::new("soc", 0, |fabric: TwinFabric| async move {
//!     let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc()).unwrap();
//!     let region = fabric.register("soc", 64, Access::ALL).unwrap();
//!     let message = queue_pair.receive(region.all()).unwrap();
//!     fabric.listen("echo").unwrap().accept(&queue_pair).await.unwrap();
//!     assert_eq!(message.await.success().unwrap().bytes, 64);
//! });
//! backend.run(vec![client, soc]).unwrap();
//! ```

use crate::engine::{EventEngine, Occurrence, Retransmission};
use crate::fault::{FaultRule, Faults};
use crate::seed::Seed;
use offpath_fabric::runtime::{
    self, Arena, ArenaSlot, Asking, Host, Owner, Port, Rendezvous, Results, check_roles,
};
use offpath_fabric::*;
use offpath_profile::{EngineWork, System, VerbCosts};
use offpath_quantity::{Bytes, Frequency, Time};
use offpath_route::{Mark, Path, PathOperation as Routed, Posting, Route, RouteError, Router};
use offpath_route::{StationId, Verb, Visit};
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

mod device;
mod executor;
mod files;
mod memory;
mod network;
mod observe;
mod subject;

pub use crate::window::Snapshot;
pub use device::TwinQueuePair;
pub use files::{TwinFile, TwinFiles};
pub use memory::TwinRegion;
pub use network::{TwinListener, TwinSocket};
pub use observe::{Label, Moments, ObservedStep, Observer, Recorded};

use device::Device;
use executor::Executor;
use files::Files;
use memory::Regions;
use network::Flying;
use subject::{Subject, Tagged};

/// The longest payload that a queue pair may take inline, in bytes: what common NICs grant.
const INLINE_MAX: u32 = 1024;
/// The deepest queue, as of common NICs.
const DEPTH_MAX: u32 = 32_768;

/// The longest single wait, about 3 days: longer ones are cut to it, so that sums of them stay within
/// what a [`Time`] holds.
const LONGEST: Time = Time::from_ps(u64::MAX / 64);

/// What crashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crashing {
    /// One instance of a role.
    Role(RoleName),
    /// A machine with every role on it: its kind, as `client`, and which of them.
    Machine(String, u32),
}

/// A crash at a moment.
///
/// Tasks, queue pairs and memory are gone, unsynced bytes of files in part. Peers notice only by
/// [`Status::RetryExceeded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// What crashes.
    pub what: Crashing,
    /// When.
    pub at: Time,
    /// How long after that it starts anew, with the files that were left; `None` for never.
    pub restart_after: Option<Time>,
}

/// A station that is slow for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStation {
    /// The station's name, as `nic.transmit`.
    pub station: String,
    /// On which machine of its kind.
    pub instance: u32,
    /// How many times as long every visit keeps it.
    pub factor: f64,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// A twin to be run; see the [module](self).
#[derive(Clone)]
pub struct TwinBackend {
    router: Arc<Router>,
    seed: u64,
    placements: BTreeMap<String, String>,
    rules: Vec<FaultRule>,
    retransmission: Option<Retransmission>,
    slow: Vec<SlowStation>,
    crashes: Vec<Crash>,
    file_capacities: BTreeMap<String, Bytes>,
    observer: Observer,
}

impl TwinBackend {
    /// An idle twin of `system` whose randomness follows from `seed`. Refused where the profile's
    /// topology has no way between two nodes of a machine.
    pub fn new(system: &System, seed: u64) -> Result<TwinBackend, RouteError> {
        Ok(TwinBackend::on(Arc::new(Router::new(system)?), seed))
    }

    /// An idle twin of `router`'s system, for callers that have its routes already.
    pub fn on(router: Arc<Router>, seed: u64) -> TwinBackend {
        TwinBackend {
            router,
            seed,
            placements: BTreeMap::new(),
            rules: Vec::new(),
            retransmission: None,
            slow: Vec::new(),
            crashes: Vec::new(),
            file_capacities: BTreeMap::new(),
            observer: Observer::new(),
        }
    }

    /// The same backend with every instance of `role` at `endpoint`, or where [`System::role_endpoint`] has a role
    /// of that name. An endpoint that does not exist is refused by the run.
    pub fn with_placement(mut self, role: &str, endpoint: &str) -> TwinBackend {
        self.placements.insert(role.into(), endpoint.into());
        self
    }

    /// The same backend with faults of the network; the first rule that strikes decides.
    pub fn with_faults(mut self, rules: Vec<FaultRule>) -> TwinBackend {
        self.rules.extend(rules);
        self
    }

    /// The same backend with one answer to losses for every connection, whatever its queue pair says; at
    /// most 7 retries, as a queue pair takes.
    pub fn with_retransmission(self, retransmission: Retransmission) -> TwinBackend {
        let timeout = retransmission.timeout.min(LONGEST);
        let retries = retransmission.retries.min(7);
        TwinBackend { retransmission: Some(Retransmission { timeout, retries }), ..self }
    }

    /// The same backend with a slow station. A station that does not exist is refused by the run.
    pub fn with_slow_station(mut self, slow: SlowStation) -> TwinBackend {
        self.slow.push(slow);
        self
    }

    /// The same backend with a crash. One of a role that is not in the run is refused by the run.
    pub fn with_crash(mut self, crash: Crash) -> TwinBackend {
        self.crashes.push(crash);
        self
    }

    /// The same backend where the files of each instance of `role` have `capacity` bytes together. A write
    /// beyond writes what fits and is refused with [`FileError::Full`].
    pub fn with_file_capacity(mut self, role: &str, capacity: Bytes) -> TwinBackend {
        self.file_capacities.insert(role.into(), capacity);
        self
    }

    /// The same backend looked at by `observer`.
    pub fn with_observer(self, observer: &Observer) -> TwinBackend {
        TwinBackend { observer: observer.clone(), ..self }
    }

    /// The system's routes and stations.
    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    fn supports(&self, dma: bool) -> Capabilities {
        Capabilities {
            backend: "twin".into(),
            atomics: Atomics::Global,
            ud: true,
            dma,
            on_demand_paging: false,
            faults: true,
            virtual_time: true,
            deadlock_detection: true,
            inline_max: INLINE_MAX,
            depth_max: DEPTH_MAX,
        }
    }

    /// Where a role runs: where it was placed, else where the system has what its name stands for.
    fn endpoint_of(&self, role: &str) -> Result<&str, String> {
        let meant = self.placements.get(role).map_or(role, String::as_str);
        let found = self.router.system().role_endpoint(meant);
        found.map(|(_, endpoint)| endpoint.name.as_str()).map_err(|error| error.to_string())
    }
}

/// An endpoint, with what the backend needs of it.
pub(crate) struct Place {
    name: String,
    machine: usize,
    cpu: StationId,
    frequency: Frequency,
    capacity: Bytes,
    inline_limit: Bytes,
    verbs: VerbCosts,
    engines: Vec<PlaceEngine>,
}

/// An engine of a place's machine.
struct PlaceEngine {
    name: String,
    post_time: Time,
    /// Whether it copies between this place and others.
    copies: bool,
}

impl Place {
    /// The engines that copy between this place and others of its machine.
    fn copying(&self) -> impl Iterator<Item = &PlaceEngine> {
        self.engines.iter().filter(|engine| engine.copies)
    }
}

fn places(router: &Router) -> Vec<Place> {
    let machines = router.system().machines.iter().enumerate();
    let of = |(machine, at): (usize, &offpath_profile::Machine)| {
        let place = |endpoint: &offpath_profile::Endpoint| Place {
            name: endpoint.name.clone(),
            machine,
            cpu: router
                .station(&format!("{}.cpu", endpoint.processor.name))
                .expect("a processor is a station"),
            frequency: endpoint.processor.frequency,
            capacity: endpoint.memory.capacity,
            inline_limit: at.nic.inline_limit,
            verbs: endpoint.processor.verbs.clone(),
            engines: at
                .engines
                .iter()
                .map(|engine| PlaceEngine {
                    name: engine.name.rsplit('.').next().unwrap_or(&engine.name).to_string(),
                    post_time: engine.post_time,
                    copies: engine.work == EngineWork::Copy && at.endpoints.len() > 1,
                })
                .collect(),
        };
        [at.endpoints.iter().map(place).collect::<Vec<_>>(), at.apart.iter().map(place).collect()]
    };
    let (own, apart): (Vec<_>, Vec<_>) = machines.map(of).map(|[own, apart]| (own, apart)).unzip();
    own.into_iter().chain(apart).flatten().collect()
}

/// A role of the run, as the backend sees it.
pub(crate) struct RoleState {
    name: RoleName,
    main: bool,
    ended: Cell<bool>,
    crashed: Cell<bool>,
    /// Whether it will start anew.
    restarts: Cell<bool>,
    place: usize,
    machine: usize,
    instance: u32,
    /// The machine instance of its own machine, by machine.
    instances: Arc<[u32]>,
    /// What its files may have together.
    file_capacity: Option<Bytes>,
    rng: RefCell<Rng>,
}

/// What decides about a route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    verb: Verb,
    from: usize,
    to: usize,
    engine: Option<String>,
    payload: u64,
    posting: Posting,
    access: offpath_route::AddressSpread,
    signaled: bool,
}

/// A route with its demand, once somebody asks for it.
pub(crate) struct Planned {
    route: Arc<Route>,
    asks: OnceCell<observe::Asks>,
    /// Processor time of posting to a DMA engine.
    post_time: Time,
}

type PlanKey = (Verb, usize, usize, Option<String>, u64, Posting, Option<u64>, u64, bool);

#[derive(Default)]
struct Plans {
    all: BTreeMap<PlanKey, Rc<Planned>>,
    /// Most requests are like the one before.
    last: Option<(Plan, Rc<Planned>)>,
}

type Between = BTreeMap<(usize, usize), Arc<[u32]>>;

/// An entry of the schedule of faults.
#[derive(Clone, Debug)]
enum Scheduled {
    Crash(Vec<usize>, Option<(usize, u32)>, Option<Time>),
    Restart(Vec<usize>, Option<(usize, u32)>),
    Slow(StationId, Arc<[u32]>, f64),
}

/// Everything that a run shares. Its parts are cells of their own, so that dropping a task or a region
/// can reach one of them while another is in use.
pub(crate) struct Core {
    router: Arc<Router>,
    seed: u64,
    mtu: Bytes,
    network_delay: Time,
    retransmission: Option<Retransmission>,
    capabilities: Vec<Capabilities>,
    places: Vec<Place>,
    roles: Vec<RoleState>,
    engine: RefCell<EventEngine>,
    /// The engine's time, readable while the engine is in use.
    clock: Cell<Time>,
    executor: Executor,
    regions: RefCell<Regions>,
    device: RefCell<Device>,
    rendezvous: Rendezvous<Asking>,
    flying: RefCell<Arena<Flying>>,
    files: RefCell<Files>,
    plans: RefCell<Plans>,
    /// The machine instances that take part between two roles.
    between: RefCell<Between>,
    schedule: RefCell<Vec<Scheduled>>,
    observer: Observer,
    /// Main roles that have not ended.
    running: Cell<usize>,
    /// When something last happened, beside timers that nobody waits for any more.
    moved_at: Cell<Time>,
}

impl Core {
    fn now(&self) -> Time {
        self.clock.get()
    }

    fn trace(&self, role: usize, event: impl FnOnce() -> String) {
        self.observer.note(|| format!("{} {} {}", self.now().ps(), self.roles[role].name, event()));
    }

    /// Whether paths run between two roles: they are at two endpoints, which are not on two machines of
    /// one kind.
    fn is_joined(&self, one: usize, other: usize) -> bool {
        let (a, b) = (&self.roles[one], &self.roles[other]);
        a.place != b.place && (a.machine != b.machine || a.instance == b.instance)
    }

    /// How long a message between two operating systems takes, where no route is modelled.
    fn control_delay(&self, one: usize, other: usize) -> Time {
        let (a, b) = (&self.roles[one], &self.roles[other]);
        let same = (a.machine, a.instance) == (b.machine, b.instance);
        if same { Time::ZERO } else { self.network_delay }
    }

    fn instances(&self, from: usize, to: usize) -> Arc<[u32]> {
        let mut between = self.between.borrow_mut();
        let found = between.entry((from, to)).or_insert_with(|| {
            let mut all = self.roles[from].instances.to_vec();
            let there = &self.roles[to];
            if there.machine != self.roles[from].machine {
                all[there.machine] = there.instance;
            }
            all.into()
        });
        found.clone()
    }

    /// The route of a request, looked up or built.
    fn plan(&self, plan: Plan) -> Result<Rc<Planned>, RouteError> {
        let plans = &mut *self.plans.borrow_mut();
        if let Some((last, planned)) = &plans.last
            && *last == plan
        {
            return Ok(planned.clone());
        }
        let key = (
            plan.verb,
            plan.from,
            plan.to,
            plan.engine.clone(),
            plan.payload,
            plan.posting,
            plan.access.range.map(Bytes::get),
            plan.access.hottest.to_bits(),
            plan.signaled,
        );
        let planned = match plans.all.get(&key) {
            Some(planned) => planned.clone(),
            None => {
                let planned = Rc::new(self.build(&plan)?);
                plans.all.insert(key, planned.clone());
                planned
            }
        };
        plans.last = Some((plan, planned.clone()));
        Ok(planned)
    }

    fn build(&self, plan: &Plan) -> Result<Planned, RouteError> {
        let (from, to) = (&self.places[plan.from], &self.places[plan.to]);
        let path =
            Path { requester: from.name.clone(), responder: to.name.clone(), engine: plan.engine.clone() };
        let operation = Routed {
            verb: plan.verb,
            path,
            payload: Bytes::new(plan.payload),
            posting: plan.posting,
            access: plan.access,
        };
        let mut route = self.router.route(&operation)?;
        if !plan.signaled && !plan.verb.is_message() {
            leave_out_completion(&mut route);
        }
        let own = from.engines.iter().find(|engine| Some(&engine.name) == plan.engine.as_ref());
        let post_time = own.map_or(from.verbs.post_time, |engine| engine.post_time);
        Ok(Planned { route: Arc::new(route), asks: OnceCell::new(), post_time })
    }

    /// A role's function returned.
    fn finish_role(self: &Rc<Core>, role: usize) {
        self.trace(role, || "ends".into());
        if self.roles[role].main {
            self.running.set(self.running.get() - 1);
        }
        self.end_role(role);
    }

    /// Takes from the backend whatever belongs to a role.
    fn end_role(self: &Rc<Core>, role: usize) {
        self.roles[role].ended.set(true);
        // Tasks may hold handles whose drop reaches the other cells.
        drop(self.tasks().take(|owner| owner.is_of(role)));
        device::close_all_of(self, role);
        self.regions.borrow_mut().deregister_all_of(role);
        self.rendezvous.remove_role(role);
    }

    fn crash(self: &Rc<Core>, role: usize, restarts: bool) {
        let state = &self.roles[role];
        if state.ended.get() {
            return;
        }
        self.trace(role, || "crashes".into());
        state.crashed.set(true);
        state.restarts.set(restarts);
        self.end_role(role);
        let name = &state.name;
        let at = Seed::new(self.seed).child("crash").child(&name.to_string()).index(self.now().ps());
        self.files.borrow_mut().crash(role, &mut at.generator());
        if state.main && !restarts {
            self.running.set(self.running.get() - 1);
        }
    }

    fn scheduled(self: &Rc<Core>, index: usize, start: &dyn Fn(usize)) {
        let entry = self.schedule.borrow()[index].clone();
        match entry {
            Scheduled::Crash(roles, machine, restart_after) => {
                if let Some((machine, instance)) = machine {
                    self.engine.borrow_mut().set_down(machine, instance, true);
                }
                let crashed: Vec<_> =
                    roles.into_iter().filter(|role| !self.roles[*role].ended.get()).collect();
                crashed.iter().for_each(|role| self.crash(*role, restart_after.is_some()));
                if let Some(after) = restart_after {
                    let at = self.now() + after.min(LONGEST);
                    self.schedule_at(Scheduled::Restart(crashed, machine), at);
                }
            }
            Scheduled::Restart(roles, machine) => {
                if let Some((machine, instance)) = machine {
                    self.engine.borrow_mut().set_down(machine, instance, false);
                }
                for role in roles {
                    let state = &self.roles[role];
                    state.ended.set(false);
                    state.crashed.set(false);
                    state.restarts.set(false);
                    self.trace(role, || "restarts".into());
                    start(role);
                }
            }
            Scheduled::Slow(station, instances, factor) => {
                self.engine.borrow_mut().slow_down(station, &instances, factor);
            }
        }
    }

    fn schedule_at(&self, entry: Scheduled, at: Time) {
        let mut schedule = self.schedule.borrow_mut();
        let tag = ArenaSlot::plain(schedule.len()).tag(Subject::Scheduled);
        schedule.push(entry);
        self.engine.borrow_mut().timer(tag, at);
    }

    fn snapshot(&self) -> Snapshot {
        self.engine.borrow().snapshot()
    }

    fn dispatch(self: &Rc<Core>, occurrence: Occurrence, start: &dyn Fn(usize)) {
        match occurrence {
            Occurrence::Marked { tag, mark, at } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().marked(self, key, mark, at),
                (Subject::Copy, key) => self.device.borrow_mut().copy_marked(key, mark, at),
                _ => {}
            },
            Occurrence::Done { tag } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().done(self, key),
                (Subject::Copy, key) => self.device.borrow_mut().copy_done(self, key),
                (Subject::Sleep, key) => {
                    if self.executor.is_awaited(key) {
                        self.executor.wake(key);
                    }
                }
                (_, key) => self.datagram_arrived(key),
            },
            Occurrence::Failed { tag, why } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().failed(self, key, why),
                (_, key) => self.datagram_lost(key),
            },
            Occurrence::Duplicated { tag, at } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().duplicated(self, key, at),
                (_, key) => self.datagram_duplicated(key, at),
            },
            Occurrence::Timer { tag } => match ArenaSlot::of(tag) {
                (Subject::Sleep, key) => {
                    if !self.executor.is_awaited(key) {
                        return;
                    }
                    self.executor.wake(key);
                }
                (Subject::Scheduled, key) => self.scheduled(key.index(), start),
                (Subject::DatagramArrived, key) => self.datagram_arrived(key),
                (subject, key) => self.device.borrow_mut().timer(self, subject, key),
            },
        }
        self.moved_at.set(self.now());
    }

    /// Runs until the main roles ended; false where nothing can move any more.
    fn execute(self: &Rc<Core>, start: &dyn Fn(usize)) -> bool {
        while self.running.get() > 0 {
            if self.tasks().poll_next(self) {
                continue;
            }
            let mut engine = self.engine.borrow_mut();
            let next = engine.next();
            self.clock.set(engine.now());
            drop(engine);
            match next {
                Some(occurrence) => self.dispatch(occurrence, start),
                None => return false,
            }
        }
        true
    }
}

/// An unsignaled request writes no completion entry and nobody polls for it.
fn leave_out_completion(route: &mut Route) {
    let last = |visit: &Visit| matches!(visit, Visit::Mark(Mark::Acknowledged, _));
    let Some(end) = route.visits.iter().rposition(last) else { return };
    let detached = |visit: &Visit| matches!(visit, Visit::Serve { detached: true, .. });
    let entries = route.visits[..end].iter().rev().take_while(|visit| detached(visit)).count();
    route.visits.truncate(end - entries);
}

/// The context of a role on the twin.
#[derive(Clone)]
pub struct TwinFabric {
    pub(crate) core: Rc<Core>,
    pub(crate) role: usize,
    pub(crate) label: Option<Label>,
}

impl TwinFabric {
    /// A handle to the same context: what computes, copies, or sends through it, and through queue pairs
    /// and sockets that it makes, is counted under `label`.
    pub fn labelled(&self, label: Label) -> TwinFabric {
        TwinFabric { label: Some(label), ..self.clone() }
    }

    /// What an operation takes within this role's machine: a processor's own loads and stores, and the work of engines.
    /// Bytes that anybody could look at are not moved.
    ///
    /// # Errors
    ///
    /// Where the operation has no route, or its ends are on another machine.
    pub fn perform(&self, operation: &Routed) -> Result<impl Future<Output = ()> + 'static, Unsupported> {
        let refused = |why: String, next_step: &str| {
            TwinFabric::unsupported(&format!("this `{}` ({why})", operation.verb), next_step)
        };
        let routed = self.router().route(operation);
        routed.map_err(|why| refused(why.to_string(), "change its path or its verb"))?;
        let places = &self.core.places;
        let own = self.state().machine;
        let place = |name: &str| places.iter().position(|place| place.name == name && place.machine == own);
        let Path { requester, responder, engine } = &operation.path;
        let Some((from, to)) = place(requester).zip(place(responder)) else {
            let why = format!("`{}` leaves the machine of `{}`", operation.path, self.endpoint());
            return Err(refused(why, "name a path within this role's machine"));
        };
        let plan = Plan {
            verb: operation.verb,
            from,
            to,
            engine: engine.clone(),
            payload: operation.payload.get(),
            posting: operation.posting,
            access: operation.access,
            signaled: true,
        };
        Ok(executor::Sleep::perform(self.core.clone(), self.role, plan, self.label))
    }

    /// Who looks at this run.
    pub fn observer(&self) -> Observer {
        self.core.observer.clone()
    }

    /// The stations now.
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// The endpoint that this role runs at.
    pub fn endpoint(&self) -> &str {
        &self.core.places[self.state().place].name
    }

    /// The system's routes and stations.
    pub fn router(&self) -> &Arc<Router> {
        &self.core.router
    }

    fn state(&self) -> &RoleState {
        &self.core.roles[self.role]
    }

    fn unsupported(feature: &str, next_step: &str) -> Unsupported {
        Unsupported { backend: "twin".into(), feature: feature.into(), next_step: next_step.into() }
    }
}

impl Fabric for TwinFabric {
    type Region = TwinRegion;
    type CompletionFuture = CompletionFuture;
    type QueuePair = TwinQueuePair;
    type Listener = TwinListener;
    type Socket = TwinSocket;
    type File = TwinFile;
    type Files = TwinFiles;

    fn role(&self) -> RoleName {
        self.state().name.clone()
    }

    fn instances(&self, role: &str) -> u32 {
        self.core.roles.iter().filter(|r| r.name.role == role).count() as u32
    }

    fn processor(&self) -> String {
        format!("{}.cpu", self.endpoint())
    }

    fn capabilities(&self) -> Capabilities {
        self.core.capabilities[self.role].clone()
    }

    fn now(&self) -> Time {
        self.core.now()
    }

    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static {
        executor::Sleep::until(self.core.clone(), instant)
    }

    fn compute(&self, work: Work) -> impl Future<Output = ()> + 'static {
        executor::Sleep::compute(self.core.clone(), self.role, work, self.label)
    }

    fn random_u64(&self) -> u64 {
        use rand_core::RngCore;
        self.state().rng.borrow_mut().next_u64()
    }

    fn rng(&self, label: &str) -> Rng {
        let name = &self.state().name;
        Rng::new(self.core.seed, &[&name.role, &name.instance.to_string(), label])
    }

    fn spawn_task(&self, task: LocalBoxFuture<()>) {
        // A role that ended, and whose handles live on in its result, has nobody to run for.
        if !self.state().ended.get() {
            self.core.tasks().spawn(Owner::Role(self.role), task);
        }
    }

    fn memories(&self) -> Vec<RoleMemory> {
        let place = &self.core.places[self.state().place];
        vec![RoleMemory { name: place.name.clone(), capacity: place.capacity }]
    }

    fn register(&self, memory: &str, length: u64, access: Access) -> Result<TwinRegion, RegionError> {
        memory::register(&self.core, self.role, memory, length, access)
    }

    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<TwinQueuePair, Unsupported> {
        device::create(self, options)
    }

    fn listen(&self, service: &str) -> Result<TwinListener, ConnectError> {
        runtime::listen(self, service)
    }

    async fn connect(
        &self,
        queue_pair: &TwinQueuePair,
        role: &str,
        instance: u32,
        service: &str,
    ) -> Result<(), ConnectError> {
        runtime::connect(self, queue_pair, RoleName::new(role, instance), service).await
    }

    fn publish(&self, service: &str, queue_pair: &TwinQueuePair) -> Result<(), ConnectError> {
        runtime::publish(self, service, queue_pair)
    }

    async fn resolve(
        &self,
        role: &str,
        instance: u32,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError> {
        runtime::resolve(self, RoleName::new(role, instance), service, limit).await
    }

    fn dma_engines(&self) -> Vec<String> {
        self.core.places[self.state().place].copying().map(|engine| engine.name.clone()).collect()
    }

    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<TwinRegion>,
        to: MemoryAt<TwinRegion>,
        length: u64,
    ) -> Result<CompletionFuture, Unsupported> {
        let known = self.dma_engines();
        if !known.iter().any(|name| name == engine) {
            let feature =
                format!("a DMA engine `{engine}` at `{}` ({})", self.endpoint(), engines_there(&known));
            return Err(TwinFabric::unsupported(&feature, "use READ or WRITE"));
        }
        device::copy(self, engine, from, to, length)
    }

    fn bind(&self, port: u16) -> Result<TwinSocket, DatagramError> {
        Port::bind(self, port)
    }

    fn files(&self) -> TwinFiles {
        TwinFiles(self.clone())
    }
}

fn bad_roles(reason: String) -> RunError {
    RunError::BadRoles { reason }
}

impl TwinBackend {
    /// The roles with their endpoints, or what is wrong with them.
    fn place_roles<T>(
        &self,
        roles: &[Role<TwinFabric, T>],
        places: &[Place],
    ) -> Result<Vec<RoleState>, RunError> {
        check_roles(roles, std::iter::empty())?;
        let machines = &self.router.system().machines;
        let mut states = Vec::with_capacity(roles.len());
        for role in roles {
            let name = role.name.clone();
            let endpoint = self.endpoint_of(&name.role).map_err(|reason| {
                let known: Vec<_> = places.iter().map(|place| format!("`{}`", place.name)).collect();
                bad_roles(format!(
                    "{name} has nowhere to run: {reason}; the endpoints are {}",
                    known.join(", ")
                ))
            })?;
            let place = places.iter().position(|place| place.name == endpoint);
            let place = place.expect("every endpoint is a place");
            let machine = places[place].machine;
            let instance = (u64::from(name.instance) % machines[machine].count.max(1)) as u32;
            let mut instances = vec![0; machines.len()];
            instances[machine] = instance;
            states.push(RoleState {
                main: role.main,
                ended: Cell::new(false),
                crashed: Cell::new(false),
                restarts: Cell::new(false),
                place,
                machine,
                instance,
                instances: instances.into(),
                file_capacity: self.file_capacities.get(&name.role).copied(),
                rng: RefCell::new(Rng::new(self.seed, &[&name.role, &name.instance.to_string()])),
                name,
            });
        }
        Ok(states)
    }

    /// The schedule of faults, or what in it is not in this run.
    fn schedule(&self, core: &Core) -> Result<(), RunError> {
        let machines = &self.router.system().machines;
        for slow in &self.slow {
            let station = self.router.station(&slow.station);
            let Some(station) = station.filter(|_| slow.factor > 0.0) else {
                return Err(bad_roles(format!(
                    "station `{}` cannot be made {} times as slow; name one of this system and a factor above 0",
                    slow.station, slow.factor
                )));
            };
            let machine = self.router.stations()[station.index()].machine;
            if u64::from(slow.instance) >= machines[machine].count {
                return Err(bad_roles(format!(
                    "station `{}` has {} instances and no instance {}; number them from 0",
                    slow.station, machines[machine].count, slow.instance
                )));
            }
            let mut instances = vec![0; machines.len()];
            instances[machine] = slow.instance;
            let instances: Arc<[u32]> = instances.into();
            core.schedule_at(Scheduled::Slow(station, instances.clone(), slow.factor), slow.from);
            core.schedule_at(Scheduled::Slow(station, instances, 1.0), slow.until);
        }
        for Crash { what, at, restart_after } in &self.crashes {
            let all = 0..core.roles.len();
            let (roles, machine): (Vec<_>, _) = match what {
                Crashing::Role(name) => (all.filter(|role| core.roles[*role].name == *name).collect(), None),
                Crashing::Machine(kind, instance) => {
                    let machine = machines.iter().position(|machine| machine.role == *kind);
                    let place = machine.map(|machine| (machine, *instance));
                    let at = |role: &usize| Some((core.roles[*role].machine, core.roles[*role].instance));
                    (all.filter(|role| at(role) == place).collect(), place)
                }
            };
            if roles.is_empty() {
                return Err(bad_roles(format!(
                    "{what:?} cannot crash, since nothing of it is in this run; correct its name"
                )));
            }
            core.schedule_at(Scheduled::Crash(roles, machine, *restart_after), *at);
        }
        Ok(())
    }
}

impl Backend for TwinBackend {
    type Fabric = TwinFabric;

    /// What roles that were placed can all do; without a placement, what some role can.
    fn capabilities(&self) -> Capabilities {
        let places = places(&self.router);
        let has_engine =
            |name: &String| places.iter().any(|p| p.name == *name && p.copying().next().is_some());
        let dma = if self.placements.is_empty() {
            places.iter().any(|place| place.copying().next().is_some())
        } else {
            self.placements.values().all(has_engine)
        };
        self.supports(dma)
    }

    fn run<T: 'static>(self, roles: Vec<Role<TwinFabric, T>>) -> Result<Run<T>, RunError> {
        let places = places(&self.router);
        let states = self.place_roles(&roles, &places)?;
        let seed = Seed::new(self.seed);
        let mut engine = EventEngine::new(self.router.clone(), seed);
        if !self.rules.is_empty() {
            engine.inject(Faults::new(self.rules.clone(), seed));
        }
        let network = &self.router.system().network;
        let has_engine = |role: &RoleState| places[role.place].copying().next().is_some();
        let core = Rc::new(Core {
            seed: self.seed,
            mtu: network.mtu,
            network_delay: network.delay,
            retransmission: self.retransmission,
            capabilities: states.iter().map(|role| self.supports(has_engine(role))).collect(),
            running: Cell::new(states.iter().filter(|role| role.main).count()),
            roles: states,
            places,
            engine: RefCell::new(engine),
            clock: Cell::new(Time::ZERO),
            executor: Executor::default(),
            regions: RefCell::default(),
            device: RefCell::default(),
            rendezvous: Rendezvous::new(roles.iter().map(|role| role.name.clone()).collect()),
            flying: RefCell::default(),
            files: RefCell::default(),
            plans: RefCell::default(),
            between: RefCell::default(),
            schedule: RefCell::default(),
            observer: self.observer.clone(),
            moved_at: Cell::new(Time::ZERO),
            router: self.router.clone(),
        });
        self.schedule(&core)?;
        let results = Results::new(roles.len());
        let start = |index: usize| {
            let future = (roles[index].function)(TwinFabric { core: core.clone(), role: index, label: None });
            core.tasks().spawn(Owner::Function(index), results.keep(index, future));
        };
        (0..roles.len()).for_each(start);
        let ended = core.execute(&start);
        let elapsed = if ended { core.now() } else { core.moved_at.get() };
        let waiting: Vec<usize> =
            (0..core.roles.len()).filter(|role| !core.roles[*role].ended.get()).collect();
        let mut deadlock = Vec::new();
        if !ended {
            for role in &waiting {
                let all = core.device.borrow().waits(*role);
                deadlock.extend(all.iter().map(|wait| format!("{}: {wait}", core.roles[*role].name)));
            }
        }
        core.observer.ended(core.snapshot(), deadlock);
        for index in waiting.iter().copied() {
            core.end_role(index);
        }
        if !ended {
            let waiting = waiting.iter().map(|role| core.roles[*role].name.clone()).collect();
            return Err(RunError::Deadlock { at: elapsed, waiting });
        }
        let crashed = |role: usize| core.roles[role].crashed.get();
        let unfinished = |role| if crashed(role) { RoleEnd::Crashed } else { RoleEnd::Stopped };
        let names = core.roles.iter().map(|role| &role.name);
        Ok(Run { outcomes: results.outcomes(names, unfinished), elapsed })
    }
}
