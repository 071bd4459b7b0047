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

use crate::engine::{EventEngine, Retransmission};
use crate::fault::{FaultRule, Faults};
use crate::seed::Seed;
use offpath_fabric::runtime::{Host, Owner, Rendezvous, Results};
use offpath_fabric::*;
use offpath_profile::System;
use offpath_quantity::{Bytes, Time};
use offpath_route::{RouteError, Router};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

mod context;
mod device;
mod executor;
mod files;
mod memory;
mod network;
mod observe;
mod place;
mod plans;
mod schedule;
mod shared;
mod subject;

pub use crate::window::Snapshot;
pub use context::TwinFabric;
pub use device::TwinQueuePair;
pub use files::{TwinFile, TwinFiles};
pub use memory::TwinRegion;
pub use network::{TwinListener, TwinSocket};
pub use observe::{Label, Moments, ObservedStep, Observer, Recorded};
pub use schedule::{Crash, Crashing, SlowStation};

use executor::Executor;
use place::{RoleState, places};
use plans::{Plan, Planned};
use shared::Core;

/// The longest payload that a queue pair may take inline, in bytes: what common NICs grant.
const INLINE_MAX: u32 = 1024;
/// The deepest queue, as of common NICs.
const DEPTH_MAX: u32 = 32_768;

/// The longest single wait, about 3 days: longer ones are cut to it, so that sums of them stay within
/// what a [`Time`] holds.
const LONGEST: Time = Time::from_ps(u64::MAX / 64);

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
    queue_pair_limits: bool,
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
            queue_pair_limits: false,
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

    /// The same backend whose queue pairs carry no more than their NICs let one carry: each request keeps its queue pair
    /// for `nic.queue_pair_request_time` and its payload at `nic.queue_pair_rate`, at the slower of both ends, and at
    /// most `nic.outstanding_reads` READs and atomics are in flight. Benchmarks of few queue pairs meet these; plans, whose
    /// clients have many, are made without them.
    pub fn with_queue_pair_limits(self) -> TwinBackend {
        TwinBackend { queue_pair_limits: true, ..self }
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
}

fn bad_roles(reason: String) -> RunError {
    RunError::BadRoles { reason }
}

impl Backend for TwinBackend {
    type Fabric = TwinFabric;

    /// What roles that were placed can all do; without a placement, what some role can.
    fn capabilities(&self) -> Capabilities {
        let places = places(&self.router);
        let has_engine = |name: &String| places.iter().any(|p| p.name == *name && !p.copying.is_empty());
        let dma = if self.placements.is_empty() {
            places.iter().any(|place| !place.copying.is_empty())
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
        let has_engine = |role: &RoleState| !places[role.place].copying.is_empty();
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
            regions: Default::default(),
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
            queue_pair_limits: self.queue_pair_limits,
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
        core.end_roles(|role| waiting.contains(&role));
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
