//! A role's context: what is a backend's own of it. The rest of a [`Fabric`] follows.

use super::{InProcess, Port, Sends, ServiceListener, in_process};
use crate::*;
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::{Cell, RefCell};
use std::future::Future;

/// A role of the run, as every backend sees it.
pub struct RunRole {
    /// Its name.
    pub name: RoleName,
    /// Whether the run lasts until it ends.
    pub main: bool,
    /// Whether it ended.
    pub ended: Cell<bool>,
    seed: u64,
    rng: RefCell<Rng>,
}

impl RunRole {
    /// A role that runs, in a run of this seed.
    pub fn new<F, T>(role: &Role<F, T>, seed: u64) -> RunRole {
        let Role { name, main, .. } = role;
        let rng = Rng::new(seed, &[&name.role, &name.instance.to_string()]);
        RunRole { name: name.clone(), main: *main, ended: Cell::new(false), seed, rng: RefCell::new(rng) }
    }

    /// A generator for one consumer of the role.
    pub fn rng(&self, label: &str) -> Rng {
        Rng::new(self.seed, &[&self.name.role, &self.name.instance.to_string(), label])
    }
}

/// The regions of a backend with the context `C`.
pub type RegionOf<C> = <<C as BackendContext>::QueuePair as QueuePair>::Region;
/// The completions of a backend with the context `C`.
pub type CompletionOf<C> = <<C as BackendContext>::QueuePair as QueuePair>::CompletionFuture;

/// What a backend brings for the context of a role; each has the meaning that [`Fabric`] gives it.
pub trait BackendContext: Clone + 'static {
    /// A queue pair, which says what regions and completions are.
    type QueuePair: QueuePair;
    /// How roles find each other.
    type Meets: Meets<Self>;
    /// What its files are in.
    type Files: Files;

    /// Its role.
    fn run_role(&self) -> &RunRole;

    /// Runs a task of the role.
    fn run_task(&self, task: LocalBoxFuture<()>);

    /// How many instances of `role` other processes of the run have.
    fn instances_elsewhere(&self, _role: &str) -> usize {
        0
    }

    /// See [`Fabric::processor`].
    fn processor(&self) -> String;
    /// See [`Fabric::capabilities`].
    fn capabilities(&self) -> Capabilities;
    /// See [`Fabric::now`].
    fn now(&self) -> Time;
    /// See [`Fabric::sleep_until`].
    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static;
    /// See [`Fabric::compute`]. Where the work itself takes the time, other tasks run meanwhile.
    fn compute(&self, _work: Work) -> impl Future<Output = ()> + 'static {
        super::yield_now()
    }
    /// See [`Fabric::memories`].
    fn memories(&self) -> Vec<RoleMemory>;
    /// See [`Fabric::register`].
    fn register(&self, memory: &str, length: u64, access: Access) -> Result<RegionOf<Self>, RegionError>;
    /// See [`Fabric::create_queue_pair`].
    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<Self::QueuePair, Unsupported>;
    /// See [`Fabric::dma_engines`].
    fn dma_engines(&self) -> Vec<String>;
    /// See [`Fabric::dma_copy`].
    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<RegionOf<Self>>,
        to: MemoryAt<RegionOf<Self>>,
        length: u64,
    ) -> Result<CompletionOf<Self>, Unsupported>;
    /// See [`Fabric::files`].
    fn files(&self) -> Self::Files;
}

/// How the roles of a backend with the context `C` find each other.
pub trait Meets<C: BackendContext> {
    /// A service that is listened for.
    type Listener: Listener<QueuePair = C::QueuePair>;

    /// See [`Fabric::listen`].
    fn listen(context: &C, service: &str) -> Result<Self::Listener, ConnectError>;
    /// See [`Fabric::connect`].
    async fn connect(
        context: &C,
        queue_pair: &C::QueuePair,
        peer: RoleName,
        service: &str,
    ) -> Result<(), ConnectError>;
    /// See [`Fabric::publish`].
    fn publish(context: &C, service: &str, queue_pair: &C::QueuePair) -> Result<(), ConnectError>;
    /// See [`Fabric::resolve`].
    async fn resolve(
        context: &C,
        peer: RoleName,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError>;
}

/// Roles meet in their one process.
pub struct MeetsInProcess;

impl<C: InProcess> Meets<C> for MeetsInProcess {
    type Listener = ServiceListener<C>;

    fn listen(context: &C, service: &str) -> Result<ServiceListener<C>, ConnectError> {
        in_process::listen(context, service)
    }

    async fn connect(
        context: &C,
        queue_pair: &C::QueuePair,
        peer: RoleName,
        service: &str,
    ) -> Result<(), ConnectError> {
        in_process::connect(context, queue_pair, peer, service).await
    }

    fn publish(context: &C, service: &str, queue_pair: &C::QueuePair) -> Result<(), ConnectError> {
        in_process::publish(context, service, queue_pair)
    }

    async fn resolve(
        context: &C,
        peer: RoleName,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError> {
        in_process::resolve(context, peer, service, limit).await
    }
}

impl<C: Sends> Fabric for C {
    type Region = RegionOf<C>;
    type CompletionFuture = CompletionOf<C>;
    type QueuePair = C::QueuePair;
    type Listener = <C::Meets as Meets<C>>::Listener;
    type Socket = Port<C>;
    type File = <C::Files as Files>::File;
    type Files = C::Files;

    fn role(&self) -> RoleName {
        self.run_role().name.clone()
    }

    fn instances(&self, role: &str) -> u32 {
        (self.at().0.instances(role) + self.instances_elsewhere(role)) as u32
    }

    fn processor(&self) -> String {
        BackendContext::processor(self)
    }

    fn capabilities(&self) -> Capabilities {
        BackendContext::capabilities(self)
    }

    fn now(&self) -> Time {
        BackendContext::now(self)
    }

    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static {
        BackendContext::sleep_until(self, instant)
    }

    fn compute(&self, work: Work) -> impl Future<Output = ()> + 'static {
        BackendContext::compute(self, work)
    }

    fn random_u64(&self) -> u64 {
        self.run_role().rng.borrow_mut().next_u64()
    }

    fn rng(&self, label: &str) -> Rng {
        self.run_role().rng(label)
    }

    fn spawn_task(&self, task: LocalBoxFuture<()>) {
        // A role that ended, and whose handles live on in its result, has nobody to run for.
        if !self.run_role().ended.get() {
            self.run_task(task);
        }
    }

    fn memories(&self) -> Vec<RoleMemory> {
        BackendContext::memories(self)
    }

    fn register(&self, memory: &str, length: u64, access: Access) -> Result<RegionOf<C>, RegionError> {
        BackendContext::register(self, memory, length, access)
    }

    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<C::QueuePair, Unsupported> {
        BackendContext::create_queue_pair(self, options)
    }

    fn listen(&self, service: &str) -> Result<Self::Listener, ConnectError> {
        C::Meets::listen(self, service)
    }

    async fn connect(
        &self,
        queue_pair: &C::QueuePair,
        role: &str,
        instance: u32,
        service: &str,
    ) -> Result<(), ConnectError> {
        C::Meets::connect(self, queue_pair, RoleName::new(role, instance), service).await
    }

    fn publish(&self, service: &str, queue_pair: &C::QueuePair) -> Result<(), ConnectError> {
        C::Meets::publish(self, service, queue_pair)
    }

    async fn resolve(
        &self,
        role: &str,
        instance: u32,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError> {
        C::Meets::resolve(self, RoleName::new(role, instance), service, limit).await
    }

    fn dma_engines(&self) -> Vec<String> {
        BackendContext::dma_engines(self)
    }

    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<RegionOf<C>>,
        to: MemoryAt<RegionOf<C>>,
        length: u64,
    ) -> Result<CompletionOf<C>, Unsupported> {
        BackendContext::dma_copy(self, engine, from, to, length)
    }

    fn bind(&self, port: u16) -> Result<Port<C>, DatagramError> {
        Port::bind(self, port)
    }

    fn files(&self) -> C::Files {
        BackendContext::files(self)
    }
}
