//! The `local` backend: every role in one process, on one thread, with no network between them.
//!
//! It is for tests of applications and for measuring their own cost. Supported: RC and UD queue pairs,
//! all verbs, atomics (global), DMA where [`Local::dma_engine`] names an engine, datagrams, real files,
//! detection of a deadlock. Not supported: on-demand paging, faults. Nothing is lost except what a
//! device drops too: UD messages and datagrams that nobody has room for.
//!
//! Each queue pair executes one request a turn, in a fixed order of turns, so that with
//! [`LocalClock::Manual`] a run is the same every time.
//!
//! ```
//! use offpath_fabric::{Fabric, Role, Backend, local::{LocalClock, Local}};
//! use offpath_quantity::Time;
//! let run = Local::new(7).clock(LocalClock::Manual).run(vec![Role::new("client", 0, |fabric: offpath_fabric::local::LocalFabric| async move {
//!     fabric.sleep(Time::from_ms(5)).await;
//!     fabric.now()
//! })]).unwrap();
//! assert_eq!(run.outcomes[0].end.clone().finished(), Some(Time::from_ms(5)));
//! ```

use crate::backend::{Atomics, Backend, Capabilities, Role, RoleEnd, Run};
use crate::runtime::{
    self, Asking, Clock as _, MeetsInProcess, Owner, Rendezvous, Results, RunRole, Sleep, Tasks, Timers,
};
use crate::*;
use offpath_quantity::{Bytes, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

mod device;
mod executor;
mod memory;
mod network;

pub use device::LocalQueuePair;
pub use memory::LocalRegion;
pub use network::{LocalListener, LocalSocket};

use device::Device;
use executor::RunClock;
use memory::Regions;

/// What the clock of a local run shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocalClock {
    /// The time since the run began, by the machine's monotonic clock.
    Wall,
    /// A time that moves 1 ns in each round in which anything ran, and jumps to the next timer when
    /// nothing can run: the same run every time, without waiting.
    Manual,
}

/// The longest inline payload, in bytes.
const INLINE_MAX: u32 = 1024;
/// The deepest queue.
const DEPTH_MAX: u32 = 32_768;
/// The longest RC message, 1 GiB, and the longest UD message, 4 KiB: what common devices carry.
const RC_MESSAGE_MAX: u64 = 1 << 30;
const UD_MESSAGE_MAX: u64 = 4096;
/// The longest datagram: UDP in one Ethernet frame of 1500 B.
const DATAGRAM_MAX: usize = 1472;

/// A local backend to be run; see the [module](self).
#[derive(Clone, Debug)]
pub struct Local {
    seed: u64,
    clock: LocalClock,
    directory: Option<PathBuf>,
    memories: BTreeMap<String, Vec<RoleMemory>>,
    dma_engines: Vec<String>,
}

impl Local {
    /// A backend whose randomness follows from `seed`: wall clock, files in a temporary directory that
    /// is removed afterwards, one memory `host` of 16 GiB for each role, no DMA engine.
    pub fn new(seed: u64) -> Local {
        Local {
            seed,
            clock: LocalClock::Wall,
            directory: None,
            memories: BTreeMap::new(),
            dma_engines: Vec::new(),
        }
    }

    /// The same backend with another clock.
    pub fn clock(self, clock: LocalClock) -> Local {
        Local { clock, ..self }
    }

    /// The same backend with its files below `directory`, which stays.
    pub fn directory(self, directory: &Path) -> Local {
        Local { directory: Some(directory.to_path_buf()), ..self }
    }

    /// The same backend where every instance of `role` has a memory `name`. The first one named replaces
    /// the default.
    pub fn memory(mut self, role: &str, name: &str, capacity: Bytes) -> Local {
        let memory = RoleMemory { name: name.to_string(), capacity };
        self.memories.entry(role.to_string()).or_default().push(memory);
        self
    }

    /// The same backend with a DMA engine that reaches the regions of all roles.
    pub fn dma_engine(mut self, name: &str) -> Local {
        self.dma_engines.push(name.to_string());
        self
    }
}

/// Everything that a run shares. Its parts are cells of their own, so that dropping a task or a region
/// can reach one of them while another is in use.
pub(crate) struct Core {
    backend: Local,
    roles: Vec<RunRole>,
    /// Of each role.
    memories: Vec<Vec<RoleMemory>>,
    directory: PathBuf,
    tasks: Tasks<()>,
    timers: Timers<RunClock, u32>,
    regions: Regions,
    device: RefCell<Device>,
    rendezvous: Rendezvous<Asking>,
}

impl Core {
    /// Takes from the backend whatever belongs to a role whose function returned.
    fn end_role(self: &Rc<Core>, role: usize) {
        self.roles[role].ended.set(true);
        // Tasks may hold handles whose drop reaches the other cells.
        drop(self.tasks.take(|owner| owner.is_of(role)));
        device::close_all_of(self, role);
        self.regions.end_all_of(|of| of == role);
        self.rendezvous.remove_role(role);
    }
}

/// The context of a role in the local backend.
#[derive(Clone)]
pub struct LocalFabric {
    pub(crate) core: Rc<Core>,
    pub(crate) role: usize,
}

impl LocalFabric {
    fn state(&self) -> &RunRole {
        &self.core.roles[self.role]
    }

    fn unsupported(feature: &str, next_step: &str) -> Unsupported {
        Unsupported { backend: "local".into(), feature: feature.into(), next_step: next_step.into() }
    }
}

impl runtime::BackendContext for LocalFabric {
    type QueuePair = LocalQueuePair;
    type Meets = MeetsInProcess;
    type Files = Folder;

    fn run_role(&self) -> &RunRole {
        self.state()
    }

    fn run_task(&self, task: LocalBoxFuture<()>) {
        self.core.tasks.spawn(Owner::Role(self.role), task);
    }

    fn processor(&self) -> String {
        "local".into()
    }

    fn capabilities(&self) -> Capabilities {
        self.core.backend.capabilities()
    }

    fn now(&self) -> Time {
        self.core.timers.clock().now()
    }

    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static {
        Sleep::until(self.core.clone(), instant)
    }

    fn memories(&self) -> Vec<RoleMemory> {
        self.core.memories[self.role].clone()
    }

    fn register(&self, memory: &str, length: u64, access: Access) -> Result<LocalRegion, RegionError> {
        memory::register(&self.core, self.role, memory, length, access)
    }

    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<LocalQueuePair, Unsupported> {
        device::create(&self.core, self.role, options)
    }

    fn dma_engines(&self) -> Vec<String> {
        self.core.backend.dma_engines.clone()
    }

    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<LocalRegion>,
        to: MemoryAt<LocalRegion>,
        length: u64,
    ) -> Result<CompletionFuture, Unsupported> {
        if !self.core.backend.dma_engines.iter().any(|name| name == engine) {
            return Err(LocalFabric::unsupported(
                &format!("a DMA engine `{engine}` ({})", engines_there(&self.core.backend.dma_engines)),
                "use READ or WRITE, or name the engine with `Local::dma_engine`",
            ));
        }
        Ok(self.core.device.borrow_mut().post_dma(from, to, length))
    }

    fn files(&self) -> Folder {
        Folder::of(&self.core.directory, self.role())
    }
}

impl Backend for Local {
    type Fabric = LocalFabric;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: "local".into(),
            atomics: Atomics::Global,
            ud: true,
            dma: !self.dma_engines.is_empty(),
            on_demand_paging: false,
            faults: false,
            virtual_time: false,
            deadlock_detection: true,
            inline_max: INLINE_MAX,
            depth_max: DEPTH_MAX,
        }
    }

    fn run<T: 'static>(self, roles: Vec<Role<LocalFabric, T>>) -> Result<Run<T>, RunError> {
        runtime::check_roles(&roles, std::iter::empty())?;
        if let Some(role) = roles.iter().find(|role| !Folder::is_plain(&role.name.role)) {
            let reason = format!("`{}` is not a name for a role; use letters and digits", role.name.role);
            return Err(RunError::BadRoles { reason });
        }
        let base = Base::of(self.directory.as_deref());
        let default = vec![RoleMemory { name: "host".into(), capacity: Bytes::new(16 << 30) }];
        let memories =
            roles.iter().map(|role| self.memories.get(&role.name.role).unwrap_or(&default).clone()).collect();
        let core = Rc::new(Core {
            roles: roles.iter().map(|role| RunRole::new(role, self.seed)).collect(),
            memories,
            directory: base.path().to_path_buf(),
            tasks: Tasks::default(),
            timers: Timers::new(RunClock::new(self.clock)),
            regions: Regions::default(),
            device: RefCell::default(),
            rendezvous: Rendezvous::new(roles.iter().map(|role| role.name.clone()).collect()),
            backend: self,
        });
        let results = Results::new(roles.len());
        for (index, role) in roles.iter().enumerate() {
            let future = (role.function)(LocalFabric { core: core.clone(), role: index });
            core.tasks.spawn(Owner::Function(index), results.keep(index, future));
        }
        let end = runtime::run(&core);
        let elapsed = core.timers.clock().now();
        let waiting: Vec<_> = core.roles.iter().filter(|r| !r.ended.get()).map(|r| r.name.clone()).collect();
        for index in 0..core.roles.len() {
            core.end_role(index);
        }
        if end.is_err() {
            return Err(RunError::Deadlock { at: elapsed, waiting });
        }
        let names = core.roles.iter().map(|role| &role.name);
        Ok(Run { outcomes: results.outcomes(names, |_| RoleEnd::Stopped), elapsed })
    }
}
