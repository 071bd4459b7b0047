//! What applications are written to, what backends are made of ([`runtime`]), and the `local` backend.
//!
//! An application is a set of [`Role`]s, each an async function of its context, a [`Fabric`]. A
//! [`Backend`] runs roles: `local` here (one process, no network), the twin in virtual time, verbs on
//! real queue pairs. An application never learns which backend it is in, except by asking for
//! [`Capabilities`] where an operation is optional.
//!
//! # The rules that hold in every backend
//!
//! *Tasks.* Futures are `!Send` and one executor runs them all; dispatch is static. A role ends when
//! its function returns: its spawned tasks are dropped, its queue pairs are destroyed and its regions
//! deregistered, as when a process exits.
//!
//! *Memory.* Registered memory is written by remote peers at any time, so nobody holds a slice into
//! it: operations name (region, offset, length), and local access is by copy or by 8-byte atomics.
//! Bytes are little-endian where a word is meant. A copy may see a remote write half done; it sees
//! each aligned 8-byte word whole.
//!
//! *Posting.* [`QueuePair::post`] does not wait. It returns a future of the [`Completion`].
//! Dropping a completion abandons the result, never the operation: the fabric owns the queue slot, and
//! keeps the region registered, until the operation completes or is flushed. CPU time that posting
//! costs, where a backend counts it, delays what the task does next.
//!
//! *Slots.* A signaled request occupies its slot until it completes. An unsignaled one occupies it
//! until the next signaled request of the same queue pair completes, and its completion resolves then; a
//! completion with no signaled request behind it stays pending. A request that fails resolves at once
//! with its error, signaled or not.
//!
//! *Order on an RC queue pair.* Requests start in posting order and the responder executes them in
//! that order. Completions come in posting order. SEND consumes receives in posting order. A SEND,
//! WRITE or atomic may start before an earlier READ or atomic has returned its data; where its payload
//! depends on that data, post it with [`WorkRequest::fenced`]. A WRITE followed by a SEND or WRITE with
//! immediate on the same queue pair is visible to the peer when the peer's receive completes. Between
//! queue pairs there is no order. Within one WRITE the bytes arrive in any order.
//!
//! *Errors on an RC queue pair.* The first failure is reported with its [`Status`], the queue pair
//! goes to the error state, and everything else on it, posted before or afterwards, completes in
//! posting order as [`Status::Flushed`]. The peer's end goes to the error state then or when it next
//! notices. Errors of parameters that the caller can check are [`PostError`]s and post nothing.
//!
//! A queue pair whose peer is gone learns it from its next request ([`Status::RetryExceeded`]), never
//! from a receive, which waits on.
//!
//! *Zero-length operations* are executed in their turn but touch no memory; their keys and ranges are
//! not checked.
//!
//! *UD queue pairs* carry SEND only, of one MTU at most, unacknowledged: a completion says the message
//! left, and without a posted receive, or with one shorter than the message, it is dropped at the
//! receiver.
//!
//! *Atomics* are atomic to each other when they come through the same device; to the processor's own
//! atomics only where [`Capabilities::atomics`] says [`Atomics::Global`].
#![allow(async_fn_in_trait, reason = "futures are !Send by contract, so no caller needs the bound")]

use offpath_quantity::{Bytes, Time};
use std::future::Future;
use std::pin::{Pin, pin};
use std::task::Poll;

mod backend;
mod datagram;
mod error;
mod file;
mod folder;
pub mod local;
mod queue_pair;
mod random;
mod region;
pub mod runtime;
mod task;

pub use backend::{Atomics, Backend, Capabilities, Outcome, Role, RoleEnd, RoleFunction, RoleName, Run};
pub use datagram::{PortAddress, Socket};
pub use error::{
    ConnectError, DatagramError, DecodeError, FileError, PostError, RegionError, RunError, Unsupported,
    engines_there,
};
pub use file::{File, FileMode, Files};
pub use folder::{Base, Folder, FolderFile};
pub use queue_pair::{
    Address, Completion, Opcode, QueuePair, QueuePairOptions, QueuePairState, QueuePairType, Status,
    WorkKind, WorkRequest,
};
pub use random::Rng;
pub use region::{Access, EndpointId, MemoryAt, Region, RemoteAddress, RemoteRegion, Slice};
pub use task::{Cancelled, Completer, CompletionFuture, JoinHandle, completion_future};

/// A boxed future on the executor's own thread.
pub type LocalBoxFuture<T> = Pin<Box<dyn Future<Output = T>>>;

/// Work for the processor that a role runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// So much time, whatever the processor.
    Time(Time),
    /// So many cycles of the processor's clock.
    Cycles(u64),
}

/// A memory that a role can register regions in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoleMemory {
    /// Its name, as `host` or `soc`.
    pub name: String,
    /// How many bytes it has.
    pub capacity: Bytes,
}

/// The context of a role: everything that it may do beside its own variables.
///
/// Clones are handles to the same context.
pub trait Fabric: Clone + 'static {
    /// Registered memory.
    type Region: Region;
    /// The future of a [`Completion`]. Backends without a reason of their own use [`crate::CompletionFuture`].
    type CompletionFuture: Future<Output = Completion> + Unpin + 'static;
    /// A queue pair.
    type QueuePair: QueuePair<Region = Self::Region, CompletionFuture = Self::CompletionFuture>;
    /// A name that peers connect to.
    type Listener: Listener<QueuePair = Self::QueuePair>;
    /// A datagram socket.
    type Socket: Socket;
    /// An open file.
    type File: File;
    /// What its files are in.
    type Files: Files<File = Self::File>;

    /// Which role this is, and which instance of it.
    fn role(&self) -> RoleName;

    /// How many instances of `role` there are in the run; 0 where the run has no such role.
    fn instances(&self, role: &str) -> u32;

    /// The name of the processor that this role runs on.
    fn processor(&self) -> String;

    /// What the backend supports.
    fn capabilities(&self) -> Capabilities;

    /// The time since the run began: virtual time on the twin, a monotonic clock elsewhere.
    fn now(&self) -> Time;

    /// Resolves when [`Fabric::now`] is `instant` or later. Timers of one instant fire in the order
    /// in which they were first polled. A task that does nothing but sleep until what has passed still
    /// lets others run.
    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static;

    /// Resolves after `span`.
    fn sleep(&self, span: Time) -> impl Future<Output = ()> + 'static {
        self.sleep_until(Time::from_ps(self.now().ps().saturating_add(span.ps())))
    }

    /// What `future` gives, or `None` when `span` passes first; the future is then dropped.
    fn timeout<T>(&self, span: Time, future: impl Future<Output = T>) -> impl Future<Output = Option<T>> {
        let limit = self.sleep(span);
        async move {
            let (mut limit, mut future) = (pin!(limit), pin!(future));
            std::future::poll_fn(|context| {
                if let Poll::Ready(value) = future.as_mut().poll(context) {
                    return Poll::Ready(Some(value));
                }
                limit.as_mut().poll(context).map(|()| None)
            })
            .await
        }
    }

    /// Runs for `work` on this role's processor. The twin charges it; real backends only let other
    /// tasks run, since there the work itself takes the time.
    fn compute(&self, work: Work) -> impl Future<Output = ()> + 'static;

    /// A number from this role's own generator.
    fn random_u64(&self) -> u64;

    /// A generator for one consumer. It depends on the run's seed, the role, the instance and `label`
    /// alone, so that draws of other consumers never move it; the same label gives the same numbers
    /// again from the start.
    fn rng(&self, label: &str) -> Rng;

    /// Runs `task` beside this one until it ends or the role does. Prefer [`Fabric::spawn`].
    fn spawn_task(&self, task: LocalBoxFuture<()>);

    /// Runs `future` beside this task. Dropping the handle leaves it running.
    fn spawn<T: 'static>(&self, future: impl Future<Output = T> + 'static) -> JoinHandle<T> {
        let (handle, task) = JoinHandle::new(future);
        self.spawn_task(task);
        handle
    }

    /// The memories that this role may register regions in, the nearest first.
    fn memories(&self) -> Vec<RoleMemory>;

    /// Registers `length` zeroed bytes of `memory` with the rights that `access` names. Refused where
    /// there is no such memory, not enough of it left, or the right is not supported.
    fn register(&self, memory: &str, length: u64, access: Access) -> Result<Self::Region, RegionError>;

    /// Makes a queue pair. RC ones take receives at once and requests after [`Fabric::connect`] or
    /// [`Listener::accept`]; UD ones are ready. Refused where the kind or an option is beyond what the
    /// backend supports.
    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<Self::QueuePair, Unsupported>;

    /// Lets peers connect to `service` of this role and instance, until the listener is dropped.
    fn listen(&self, service: &str) -> Result<Self::Listener, ConnectError>;

    /// Connects an RC queue pair to `service` of the named role and instance, waiting until it is
    /// listened for and accepted, up to [`QueuePairOptions::connect_timeout`].
    async fn connect(
        &self,
        queue_pair: &Self::QueuePair,
        role: &str,
        instance: u32,
        service: &str,
    ) -> Result<(), ConnectError>;

    /// Publishes the address of a UD queue pair as `service` of this role and instance.
    fn publish(&self, service: &str, queue_pair: &Self::QueuePair) -> Result<(), ConnectError>;

    /// The address that the named role and instance publishes as `service`, waiting until it does, up
    /// to `limit`.
    async fn resolve(
        &self,
        role: &str,
        instance: u32,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError>;

    /// The names of the DMA engines that this role can use; empty where the platform has none.
    fn dma_engines(&self) -> Vec<String>;

    /// Has a DMA engine copy `length` bytes. As with posting, dropping the completion abandons the result
    /// only. A wrong key or range completes with [`Status::RemoteAccess`] or
    /// [`Status::LocalProtection`]. Where there is no such engine it is refused, never emulated.
    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<Self::Region>,
        to: MemoryAt<Self::Region>,
        length: u64,
    ) -> Result<Self::CompletionFuture, Unsupported>;

    /// Opens datagram port `port` of this role and instance.
    fn bind(&self, port: u16) -> Result<Self::Socket, DatagramError>;

    /// The files of this role and instance.
    fn files(&self) -> Self::Files;

    /// Opens or creates the file `name` of this role and instance. Names are plain: no `/`, not empty,
    /// neither `.` nor `..`. Files outlive their handles, the role, and its crashes: what was synced
    /// stays, what was not may be lost in part.
    async fn file(&self, name: &str, mode: FileMode) -> Result<Self::File, FileError> {
        self.files().open(name, mode).await
    }

    /// Gives file `from` the name `to`, replacing what bore it. One step: never neither, never half.
    async fn rename(&self, from: &str, to: &str) -> Result<(), FileError> {
        self.files().rename(from, to).await
    }

    /// Removes the file `name`.
    async fn remove(&self, name: &str) -> Result<(), FileError> {
        self.files().remove(name).await
    }

    /// The names of this role's files that begin with `prefix`, sorted.
    async fn list(&self, prefix: &str) -> Result<Vec<String>, FileError> {
        self.files().list(prefix).await
    }

    /// Makes creations, renames and removals so far survive a crash.
    async fn sync_directory(&self) -> Result<(), FileError> {
        self.files().sync().await
    }
}

/// A service that peers connect to.
pub trait Listener: 'static {
    /// The queue pairs of this backend.
    type QueuePair;

    /// Waits for the next peer and connects `queue_pair`, an RC one not yet connected, to it. Receives
    /// that must be there for the peer's first SEND are posted before.
    async fn accept(&self, queue_pair: &Self::QueuePair) -> Result<RoleName, ConnectError>;
}
