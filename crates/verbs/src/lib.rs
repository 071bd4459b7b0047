//! The verbs backend: the fabric on real queue pairs.
//!
//! libibverbs is loaded when a device is opened, so a program that uses this crate starts everywhere;
//! without the library or a device, [`Verbs::open`] says so and what to do.
//!
//! A run has roles of this process, on one thread, and peers that other processes run. They meet by TCP:
//! each process has an address ([`Verbs::listen_at`]), and is told those of the others ([`Verbs::peer`]).
//! Bytes then move by the device alone, also between roles of one process.
//!
//! Supported: RC and, where the device has them, UD queue pairs, atomics and on-demand paging; all verbs;
//! linked lists of requests with one doorbell; shared receive queues
//! ([`VerbsFabric::create_shared_receive_queue`]); queue pairs posted to and polled by hand
//! ([`VerbsFabric::create_direct`]); huge pages; datagrams (UDP); real files; completions
//! by polling or by events. Rejected: DMA engines, faults, virtual time, reports of a deadlock. The
//! endpoint of addresses and regions is always 0: the GID and the keys say where they live.
//!
//! One executor runs on one thread. It runs ready tasks and otherwise polls its completion queues; with
//! [`Waiting::Events`] it sleeps when there is nothing to do. To use several cores, run several backends.
//!
//! ```no_run
//! use offpath_fabric::{Fabric, Role, Backend};
//! use offpath_verbs::{Verbs, VerbsFabric};
//! let backend = Verbs::open(None, 7)?;
//! let run = backend.run(vec![Role::new("client", 0, |fabric: VerbsFabric| async move {
//!     fabric.capabilities().inline_max
//! })]);
//! # Ok::<(), offpath_verbs::VerbsError>(())
//! ```

use offpath_fabric::runtime::{
    self, Clock, Owner, Rendezvous, Results, RunRole, Sleep, Tasks, Timers, WallClock, check_roles,
};
use offpath_fabric::*;
use offpath_quantity::{Bytes, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::rc::Rc;

mod bindings;
mod completion;
mod device;
mod direct;
mod error;
mod executor;
#[cfg(test)]
mod layout;
mod manager;
mod queue_pair;
mod region;
mod rendezvous;

pub use completion::VerbsCompletion;
pub use device::{DeviceDescription, devices};
pub use direct::{DirectCompletion, VerbsDirect};
pub use error::VerbsError;
pub use queue_pair::{VerbsQueuePair, VerbsSharedReceiveQueue};
pub use region::VerbsRegion;
pub use rendezvous::{VerbsListener, VerbsSocket};

use bindings::ConnectionLibrary;
use completion::CompletionTable;
use device::Device;
use executor::Looks;
use manager::Manager;
use queue_pair::Engine;
use region::Regions;
use rendezvous::{Dialler, MeetsByExchange, RendezvousSockets};

/// How an executor without ready tasks waits for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// It polls its completion queues, and its core does nothing else: the least latency.
    Polling,
    /// It arms them and sleeps until the device, a timer or a socket wakes it.
    Events,
}

/// How an RC connection between two queue pairs is made. Both processes must do it in the same way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectBy {
    /// Over TCP, both ends tell each other what their queue pairs need.
    Exchange,
    /// By the RDMA connection manager, as applications that use librdmacm do. Roles and services still find
    /// each other over TCP. It finds a device by the IP address that its GID is, so on Ethernet alone.
    ConnectionManager,
}

/// A backend on an opened device, to be run. Clones share the device.
#[derive(Clone)]
pub struct Verbs {
    device: Rc<Device>,
    seed: u64,
    waiting: Waiting,
    directory: Option<PathBuf>,
    memories: Vec<RoleMemory>,
    default_memory: bool,
    listen_at: SocketAddr,
    peers: BTreeMap<RoleName, SocketAddr>,
    acknowledgement_floor: Time,
    huge_pages: bool,
    connections: Option<Rc<ConnectionLibrary>>,
}

impl Verbs {
    /// Port 1 of the device `name`, or of the first one that is active: polling, files in a temporary
    /// directory that is removed afterwards, one memory `host` of all that the machine has, no peers, and
    /// randomness that follows from `seed`.
    pub fn open(name: Option<&str>, seed: u64) -> Result<Verbs, VerbsError> {
        Verbs::open_port(name, 1, None, seed)
    }

    /// The same on another port, with the GID at `gid_index` of the port's table where it is given.
    pub fn open_port(
        name: Option<&str>,
        port: u8,
        gid_index: Option<u8>,
        seed: u64,
    ) -> Result<Verbs, VerbsError> {
        let device = Rc::new(Device::open(name, port, gid_index)?);
        Ok(Verbs {
            device,
            seed,
            waiting: Waiting::Polling,
            directory: None,
            memories: vec![RoleMemory { name: "host".into(), capacity: machine_memory() }],
            default_memory: true,
            listen_at: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            peers: BTreeMap::new(),
            acknowledgement_floor: Time::ZERO,
            huge_pages: true,
            connections: None,
        })
    }

    /// The name of the device.
    pub fn device(&self) -> &str {
        self.device.name()
    }

    /// The same backend with another seed.
    pub fn seed(self, seed: u64) -> Verbs {
        Verbs { seed, ..self }
    }

    /// The same backend that waits for completions in another way.
    pub fn waiting(self, waiting: Waiting) -> Verbs {
        Verbs { waiting, ..self }
    }

    /// The same backend with its files below `directory`, which stays.
    pub fn directory(self, directory: &Path) -> Verbs {
        Verbs { directory: Some(directory.to_path_buf()), ..self }
    }

    /// The same backend with a memory `name` of `capacity`. The first one named replaces the default.
    pub fn memory(mut self, name: &str, capacity: Bytes) -> Verbs {
        if std::mem::replace(&mut self.default_memory, false) {
            self.memories.clear();
        }
        self.memories.push(RoleMemory { name: name.into(), capacity });
        self
    }

    /// The same backend where other processes find this one at `address`, by TCP and UDP. It must be one
    /// that they can reach; the default is a free port that only this machine reaches.
    pub fn listen_at(self, address: SocketAddr) -> Verbs {
        Verbs { listen_at: address, ..self }
    }

    /// The same backend where another process runs instance `instance` of `role` and listens at `address`.
    pub fn peer(mut self, role: &str, instance: u32, address: SocketAddr) -> Verbs {
        self.peers.insert(RoleName::new(role, instance), address);
        self
    }

    /// The same backend where no queue pair waits less than `span` for an acknowledgement, whatever its
    /// options ask: for devices that answer late, as emulated ones do.
    pub fn acknowledgement_floor(self, span: Time) -> Verbs {
        Verbs { acknowledgement_floor: span, ..self }
    }

    /// The same backend with or without huge pages for regions of 2 MiB and more. Where the machine has none
    /// to give, small ones are used.
    pub fn huge_pages(self, huge_pages: bool) -> Verbs {
        Verbs { huge_pages, ..self }
    }

    /// The same backend that makes its RC connections in another way; the default is [`ConnectBy::Exchange`].
    /// The connection manager is refused where librdmacm cannot be loaded, or the device's GID is not an IP
    /// address that can be routed to.
    pub fn connect_by(self, connect_by: ConnectBy) -> Result<Verbs, VerbsError> {
        let connections = match connect_by {
            ConnectBy::Exchange => None,
            ConnectBy::ConnectionManager => {
                manager::own_address(&self.device)?;
                Some(Rc::new(ConnectionLibrary::load()?))
            }
        };
        Ok(Verbs { connections, ..self })
    }

    fn supports(&self) -> Capabilities {
        let device = &self.device;
        Capabilities {
            backend: "verbs".into(),
            atomics: match device.attributes.atomic_cap {
                0 => Atomics::None,
                1 => Atomics::Device,
                _ => Atomics::Global,
            },
            ud: device.ud,
            dma: false,
            on_demand_paging: device.on_demand,
            faults: false,
            virtual_time: false,
            deadlock_detection: false,
            inline_max: device.inline_max,
            depth_max: device.depth_max,
        }
    }
}

/// How much memory the machine has.
fn machine_memory() -> Bytes {
    // SAFETY: asking for a number.
    let (pages, size) = unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let count = |number: i64| u64::try_from(number).unwrap_or(0);
    Bytes::new(count(pages).saturating_mul(count(size)))
}

/// A role of the run, as the backend sees it.
pub(crate) struct RoleState {
    run: RunRole,
    /// Numbers of first packets: apart, so that connecting moves no other draw.
    rng_of_connections: RefCell<Rng>,
}

impl Deref for RoleState {
    type Target = RunRole;

    fn deref(&self) -> &RunRole {
        &self.run
    }
}

/// Everything that a run shares. Its parts are cells of their own, so that dropping a task or a region can
/// reach one of them while another is in use.
pub(crate) struct Core {
    backend: Verbs,
    device: Rc<Device>,
    roles: Vec<RoleState>,
    directory: PathBuf,
    tasks: Tasks<()>,
    timers: Timers<WallClock, Infallible>,
    looks: Looks,
    regions: RefCell<Regions>,
    engine: RefCell<Engine>,
    completions: Rc<CompletionTable>,
    sockets: RendezvousSockets,
    rendezvous: Rendezvous<Dialler>,
    /// Where connections are made by the connection manager.
    manager: Option<Rc<Manager>>,
}

impl Core {
    /// Takes from the backend whatever belongs to a role whose function returned.
    fn end_role(&self, role: usize) {
        self.roles[role].ended.set(true);
        // Tasks may hold handles whose drop reaches the other cells.
        drop(self.tasks.take(|owner| owner.is_of(role)));
        self.engine.borrow_mut().close_all_of(role, self.timers.clock());
        let regions = self.regions.borrow_mut().take_of(role);
        regions.iter().for_each(|region| region.end());
        self.rendezvous.remove_role(role);
        // Who dialled sees its stream end and dials again, to learn that the role did.
        self.rendezvous.services.borrow_mut().retain_requests(|(owner, _), _| *owner != role);
    }
}

/// The context of a role in the verbs backend.
#[derive(Clone)]
pub struct VerbsFabric {
    pub(crate) core: Rc<Core>,
    pub(crate) role: usize,
}

impl VerbsFabric {
    fn state(&self) -> &RoleState {
        &self.core.roles[self.role]
    }

    fn unsupported(&self, feature: &str, next_step: &str) -> Unsupported {
        Unsupported { backend: "verbs".into(), feature: feature.into(), next_step: next_step.into() }
    }

    /// Makes a queue of `depth` receives that several RC queue pairs of this role share.
    pub fn create_shared_receive_queue(&self, depth: u32) -> Result<VerbsSharedReceiveQueue, Unsupported> {
        queue_pair::create_shared(self, depth)
    }

    /// Makes an RC queue pair whose requests are posted and polled by hand.
    pub fn create_direct(&self, options: QueuePairOptions) -> Result<VerbsDirect, Unsupported> {
        direct::create(self, options)
    }

    /// Makes an RC queue pair that takes its receives from `shared`; its own receive depth does not count.
    pub fn create_queue_pair_on(
        &self,
        options: QueuePairOptions,
        shared: &VerbsSharedReceiveQueue,
    ) -> Result<VerbsQueuePair, Unsupported> {
        let options = QueuePairOptions { receive_depth: shared.depth(), ..options };
        queue_pair::create(self, options, Some(shared))
    }
}

impl runtime::BackendContext for VerbsFabric {
    type QueuePair = VerbsQueuePair;
    type Meets = MeetsByExchange;
    type Files = Folder;

    fn run_role(&self) -> &RunRole {
        self.state()
    }

    fn run_task(&self, task: LocalBoxFuture<()>) {
        self.core.tasks.spawn(Owner::Role(self.role), task);
    }

    fn instances_elsewhere(&self, role: &str) -> usize {
        self.core.backend.peers.keys().filter(|name| name.role == role).count()
    }

    fn processor(&self) -> String {
        std::env::consts::ARCH.into()
    }

    fn capabilities(&self) -> Capabilities {
        self.core.backend.supports()
    }

    fn now(&self) -> Time {
        self.core.timers.clock().now()
    }

    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static {
        Sleep::until(self.core.clone(), instant)
    }

    fn memories(&self) -> Vec<RoleMemory> {
        self.core.backend.memories.clone()
    }

    fn register(&self, memory: &str, length: u64, access: Access) -> Result<VerbsRegion, RegionError> {
        region::register(self, memory, length, access)
    }

    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<VerbsQueuePair, Unsupported> {
        queue_pair::create(self, options, None)
    }

    fn dma_engines(&self) -> Vec<String> {
        Vec::new()
    }

    fn dma_copy(
        &self,
        engine: &str,
        _from: MemoryAt<VerbsRegion>,
        _to: MemoryAt<VerbsRegion>,
        _length: u64,
    ) -> Result<VerbsCompletion, Unsupported> {
        Err(self.unsupported(&format!("a DMA engine `{engine}`"), "use READ or WRITE"))
    }

    fn files(&self) -> Folder {
        Folder::of(&self.core.directory, self.role())
    }
}

/// Ends every role when a run ends, also by a panic: what is left would keep the device busy.
struct Ending(Rc<Core>);

impl Drop for Ending {
    fn drop(&mut self) {
        drop(self.0.tasks.take(|_| true));
        for role in 0..self.0.roles.len() {
            self.0.end_role(role);
        }
    }
}

impl Backend for Verbs {
    type Fabric = VerbsFabric;

    fn capabilities(&self) -> Capabilities {
        self.supports()
    }

    fn run<T: 'static>(self, roles: Vec<Role<VerbsFabric, T>>) -> Result<Run<T>, RunError> {
        self.check_roles(&roles)?;
        let base = Base::of(self.directory.as_deref());
        let states = roles.iter().map(|role| {
            let run = RunRole::new(role, self.seed);
            RoleState { rng_of_connections: RefCell::new(run.rng("offpath connections")), run }
        });
        let states = states.collect();
        let failed = |what: String| RunError::Backend { reason: what };
        let sockets = RendezvousSockets::new(self.listen_at)
            .map_err(|e| failed(format!("{} cannot be listened at: {e}; name another", self.listen_at)))?;
        let events = self.waiting == Waiting::Events;
        let completions = Rc::new(CompletionTable::new());
        let engine = Engine::new(&self.device, &completions, events, self.acknowledgement_floor)
            .map_err(|reason| failed(format!("no completion channel on {}: {reason}", self.device())))?;
        let manager =
            self.connections.as_ref().map(|library| Manager::new(library, &self.device).map(Rc::new));
        let manager = manager
            .transpose()
            .map_err(|failure| failed(format!("no connection manager on {}: {failure}", self.device())))?;
        let core = Rc::new(Core {
            device: self.device.clone(),
            roles: states,
            directory: base.path().to_path_buf(),
            tasks: Tasks::default(),
            timers: Timers::new(WallClock::new()),
            looks: Looks::default(),
            regions: RefCell::default(),
            engine: RefCell::new(engine),
            completions,
            sockets,
            rendezvous: Rendezvous::new(roles.iter().map(|role| role.name.clone()).collect()),
            manager,
            backend: self,
        });
        let ending = Ending(core.clone());
        rendezvous::serve(&core);
        manager::serve(&core);
        let results = Results::new(roles.len());
        for (index, role) in roles.iter().enumerate() {
            let future = (role.function)(VerbsFabric { core: core.clone(), role: index });
            core.tasks.spawn(Owner::Function(index), results.keep(index, future));
        }
        // A device or a peer can always bring work, so nothing stands still.
        let _ = runtime::run(&core);
        let elapsed = core.timers.clock().now();
        drop(ending);
        let names = core.roles.iter().map(|role| &role.name);
        Ok(Run { outcomes: results.outcomes(names, |_| RoleEnd::Stopped), elapsed })
    }
}

impl Verbs {
    fn check_roles<T>(&self, roles: &[Role<VerbsFabric, T>]) -> Result<(), RunError> {
        check_roles(roles, self.peers.keys())?;
        let unfit =
            |name: &&RoleName| !Folder::is_plain(&name.role) || name.role.len() > rendezvous::NAME_MAX;
        match roles.iter().map(|role| &role.name).chain(self.peers.keys()).find(unfit) {
            Some(name) => Err(RunError::BadRoles {
                reason: format!(
                    "`{}` is not a name for a role; use up to {} letters and digits",
                    name.role,
                    rendezvous::NAME_MAX
                ),
            }),
            None => Ok(()),
        }
    }
}
