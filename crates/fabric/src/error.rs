//! Why something was refused. Each message names the thing, the value, the bound and a next step.

use crate::backend::RoleName;
use crate::queue_pair::{Opcode, QueuePairState, QueuePairType};
use offpath_quantity::Time;

/// The backend has no such feature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the {backend} backend does not support {feature}; {next_step}")]
pub struct Unsupported {
    /// The backend.
    pub backend: String,
    /// What was asked for.
    pub feature: String,
    /// What to do instead.
    pub next_step: String,
}

/// What engines there are, for a refusal of another.
pub fn engines_there(engines: &[String]) -> String {
    let named: Vec<String> = engines.iter().map(|name| format!("`{name}`")).collect();
    if named.is_empty() { "there is none".to_string() } else { format!("there is {}", named.join(", ")) }
}

/// Bytes are too few for what they should hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{length} B are too few for a {what}: {needed} B are needed; check what the peer sent")]
pub struct DecodeError {
    /// What was to be read.
    pub what: &'static str,
    /// How many bytes there are.
    pub length: usize,
    /// How many it takes.
    pub needed: usize,
}

/// Why memory was not registered or accessed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RegionError {
    /// The memory does not exist here.
    #[error("{role} has no memory `{memory}`; it has {known}")]
    NoSuchMemory {
        /// Who asked.
        role: RoleName,
        /// What was asked for.
        memory: String,
        /// What there is.
        known: String,
    },
    /// The memory has too little left.
    #[error("memory `{memory}` has {free} B left, {asked} B were asked for; deregister or ask for less")]
    OutOfMemory {
        /// The memory.
        memory: String,
        /// How many bytes were asked for.
        asked: u64,
        /// How many bytes are left.
        free: u64,
    },
    /// A right or a kind of memory that the backend does not support.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
    /// The range leaves the region.
    #[error("bytes {offset} to {offset}+{length} leave the region of {bound} B; use a range within it")]
    OutOfRange {
        /// Where the range begins.
        offset: u64,
        /// Its length.
        length: u64,
        /// The region's length.
        bound: u64,
    },
    /// A word is not aligned.
    #[error("offset {offset} is not a multiple of 8; atomics work on aligned 8-byte words")]
    Unaligned {
        /// The offset.
        offset: u64,
    },
    /// The region is no longer registered.
    #[error("the region with key {key:#x} is deregistered; register another")]
    Deregistered {
        /// Its remote key.
        key: u32,
    },
}

/// Why nothing was posted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PostError {
    /// The send queue has no free slot.
    #[error(
        "the send queue is full at its depth of {depth}; wait for a signaled completion, or make it deeper"
    )]
    QueueFull {
        /// How many slots it has.
        depth: u32,
    },
    /// The receive queue has no free slot.
    #[error("the receive queue is full at its depth of {depth}; wait for a message, or make it deeper")]
    ReceiveQueueFull {
        /// How many slots it has.
        depth: u32,
    },
    /// The queue pair is not connected yet, or is closed.
    #[error("nothing can be posted to a queue pair that is {state:?}; connect it first, or make another")]
    State {
        /// What it is.
        state: QueuePairState,
    },
    /// The payload does not fit inline.
    #[error("{length} B do not fit inline, {bound} B do; post it without `inline`, or raise `inline_max`")]
    InlineTooLong {
        /// How long the payload is.
        length: u64,
        /// The longest that fits.
        bound: u32,
    },
    /// The message is longer than the queue pair carries.
    #[error("a message of {length} B is longer than the {bound} B this queue pair carries; send it in parts")]
    MessageTooLong {
        /// How long the message is.
        length: u64,
        /// The longest that is carried.
        bound: u64,
    },
    /// The operation does not exist on this kind of queue pair, or lacks what this kind demands.
    #[error("{opcode:?} cannot be posted so on a queue pair of kind {kind:?}: {reason}")]
    NotOnThisKind {
        /// The operation.
        opcode: Opcode,
        /// The kind.
        kind: QueuePairType,
        /// What is wrong and what to do.
        reason: &'static str,
    },
    /// The result of an atomic does not fit the local slice.
    #[error("an atomic returns 8 B, the local slice has {length} B; name a slice of 8 B")]
    AtomicLength {
        /// How long the slice is.
        length: u64,
    },
    /// An inline operand cannot be used: a bad range where the payload is copied at posting.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The backend has no such operation.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

/// Why peers did not meet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConnectError {
    /// No such role or instance in this run.
    #[error("there is no {peer} in this run; start it, or correct the name")]
    NoSuchRole {
        /// Who was looked for.
        peer: RoleName,
    },
    /// The peer did not answer in time.
    #[error("{peer} did not answer for service `{service}` in {waited}; check that it runs and listens")]
    Timeout {
        /// Who was looked for.
        peer: RoleName,
        /// The service.
        service: String,
        /// How long.
        waited: Time,
    },
    /// The service is listened for or published already.
    #[error("service `{service}` of {role} is taken; use another name, or drop the other listener")]
    ServiceTaken {
        /// Whose.
        role: RoleName,
        /// The service.
        service: String,
    },
    /// The queue pair cannot be connected so.
    #[error("a queue pair of kind {kind:?} that is {state:?} cannot be used here; {next_step}")]
    WrongQueuePair {
        /// Its kind.
        kind: QueuePairType,
        /// What it is.
        state: QueuePairState,
        /// What to do.
        next_step: &'static str,
    },
    /// The connection broke while it was made.
    #[error("the connection to service `{service}` of {peer} failed: {reason}; try again")]
    Failed {
        /// Who.
        peer: RoleName,
        /// The service.
        service: String,
        /// What the backend reports.
        reason: String,
    },
}

/// Why a datagram was not sent or received.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DatagramError {
    /// The port is in use.
    #[error("port {port} of {role} is taken; use another, or drop the other socket")]
    PortTaken {
        /// Whose.
        role: RoleName,
        /// The port.
        port: u16,
    },
    /// The datagram is longer than the MTU allows.
    #[error("a datagram of {length} B is longer than {bound} B; send it in parts")]
    TooLong {
        /// How long it is.
        length: usize,
        /// The longest that is carried.
        bound: usize,
    },
    /// No such role or instance in this run.
    #[error("there is no {peer} in this run; start it, or correct the name")]
    NoSuchRole {
        /// Who was looked for.
        peer: RoleName,
    },
    /// The operating system refused.
    #[error("datagrams on port {port} failed: {reason}")]
    System {
        /// The port.
        port: u16,
        /// What it said.
        reason: String,
    },
}

/// Why a file operation failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// There is no such file.
    #[error("there is no file `{name}`; open it with `FileMode::OpenOrCreate`, or correct the name")]
    NotFound {
        /// Its name.
        name: String,
    },
    /// The file is there already.
    #[error("file `{name}` exists; open it with `FileMode::Open`, or remove it")]
    Exists {
        /// Its name.
        name: String,
    },
    /// Another handle holds the lock.
    #[error("file `{name}` is locked by another handle; two writers are refused, stop the other")]
    Locked {
        /// Its name.
        name: String,
    },
    /// The name is not plain.
    #[error("`{name}` is not a file name; use one without `/` that is not empty, `.` or `..`")]
    BadName {
        /// The name.
        name: String,
    },
    /// No space is left.
    #[error("no space is left for file `{name}`; remove files or raise the capacity")]
    Full {
        /// Its name.
        name: String,
    },
    /// The operating system refused.
    #[error("file `{name}` failed: {reason}")]
    System {
        /// Its name.
        name: String,
        /// What it said.
        reason: String,
    },
}

/// Why a run did not end well.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Every task waits and nothing is in flight that could wake one.
    #[error("nothing can move at {at}: {} wait, with no timer or operation in flight", names(waiting))]
    Deadlock {
        /// When.
        at: Time,
        /// The roles that have not ended.
        waiting: Vec<RoleName>,
    },
    /// Two roles bear the same name and instance, or none is a main one.
    #[error("the roles cannot be run: {reason}")]
    BadRoles {
        /// What is wrong and what to do.
        reason: String,
    },
    /// The backend itself failed.
    #[error("the backend failed: {reason}")]
    Backend {
        /// What it reports.
        reason: String,
    },
}

fn names(roles: &[RoleName]) -> String {
    roles.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
