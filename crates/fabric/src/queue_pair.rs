//! Queue pairs: what is posted and what comes back.

use crate::error::{DecodeError, PostError};
use crate::region::{EndpointId, Region, RemoteAddress, Slice};
use offpath_quantity::Time;
use std::future::Future;

/// The transport of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueuePairType {
    /// Reliable connection.
    Rc,
    /// Unreliable datagram.
    Ud,
}

/// How a queue pair is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueuePairOptions {
    /// The transport.
    pub kind: QueuePairType,
    /// How many requests the send queue holds.
    pub send_depth: u32,
    /// How many receives the receive queue holds.
    pub receive_depth: u32,
    /// The longest payload that may be posted inline, in bytes.
    pub inline_max: u32,
    /// Whether every request is signaled, whatever its own flag.
    pub signal_all: bool,
    /// How long the requester waits for an acknowledgement before it retransmits (RC). Backends round it
    /// to what their transport can express.
    pub acknowledgement_timeout: Time,
    /// How often it retransmits before [`Status::RetryExceeded`] (RC), up to 7.
    pub retries: u8,
    /// How long it waits when the peer has no receive posted (RC).
    pub receiver_not_ready_delay: Time,
    /// How often it tries again then before [`Status::ReceiverNotReady`] (RC); 7 is for ever, as in
    /// verbs.
    pub receiver_not_ready_retries: u8,
    /// How long `connect` waits for the peer.
    pub connect_timeout: Time,
}

impl QueuePairOptions {
    /// Retry for ever when the peer has no receive posted.
    pub const FOR_EVER: u8 = 7;

    /// An RC queue pair: depths of 128, 64 B inline, 7 retries 1 ms apart, waiting for ever for
    /// receives and 10 s for the connection.
    pub fn rc() -> QueuePairOptions {
        QueuePairOptions {
            kind: QueuePairType::Rc,
            send_depth: 128,
            receive_depth: 128,
            inline_max: 64,
            signal_all: false,
            acknowledgement_timeout: Time::from_ms(1),
            retries: 7,
            receiver_not_ready_delay: Time::from_us(10),
            receiver_not_ready_retries: Self::FOR_EVER,
            connect_timeout: Time::from_ms(10_000),
        }
    }

    /// A UD queue pair: depths of 128, 64 B inline.
    pub fn ud() -> QueuePairOptions {
        QueuePairOptions { kind: QueuePairType::Ud, ..QueuePairOptions::rc() }
    }
}

/// What a queue pair can do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueuePairState {
    /// Not connected: takes receives only.
    Initialised,
    /// Connected, or UD.
    Ready,
    /// Failed: everything posted is flushed.
    Error,
    /// Destroyed: nothing can be posted.
    Closed,
}

/// Names a UD queue pair; it can be sent in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Where it lives.
    pub endpoint: EndpointId,
    /// Its number there.
    pub queue_pair: u32,
    /// Its queue key.
    pub queue_key: u32,
    /// How the transport reaches it, as identifiers of the backend (a GID and LID in verbs).
    pub path: [u8; 20],
}

impl Address {
    /// The length of [`Address::to_bytes`].
    pub const BYTES: usize = 32;

    /// The address as bytes: endpoint, queue pair, queue key (little-endian), path.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.endpoint.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.queue_pair.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.queue_key.to_le_bytes());
        bytes[12..].copy_from_slice(&self.path);
        bytes
    }

    /// Reads what [`Address::to_bytes`] wrote from the start of `bytes`; refused where they are too few.
    pub fn from_bytes(bytes: &[u8]) -> Result<Address, DecodeError> {
        let Some(bytes) = bytes.first_chunk::<{ Self::BYTES }>() else {
            return Err(DecodeError { what: "address", length: bytes.len(), needed: Self::BYTES });
        };
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut path = [0; 20];
        path.copy_from_slice(&bytes[12..]);
        Ok(Address { endpoint: EndpointId(word(0)), queue_pair: word(4), queue_key: word(8), path })
    }
}

/// What a request does. The length of the local slice is the length of the transfer.
#[derive(Clone, Debug)]
pub enum WorkKind<R> {
    /// Brings bytes from the peer's memory into `local`.
    Read {
        /// Where the bytes go.
        local: Slice<R>,
        /// Where they come from.
        remote: RemoteAddress,
    },
    /// Puts bytes of `local` into the peer's memory; with `immediate`, consumes a receive there too.
    Write {
        /// Where the bytes come from.
        local: Slice<R>,
        /// Where they go.
        remote: RemoteAddress,
        /// A word for the peer's receive completion.
        immediate: Option<u32>,
    },
    /// Sends bytes of `local` into the peer's next receive.
    Send {
        /// Where the bytes come from.
        local: Slice<R>,
        /// The receiver: required on UD, absent on RC.
        to: Option<Address>,
        /// A word for the peer's receive completion.
        immediate: Option<u32>,
    },
    /// Sets the peer's word to `swap` where it is `compare`; what it was goes to `local`.
    CompareAndSwap {
        /// 8 bytes for what the word was.
        local: Slice<R>,
        /// The word, 8-byte aligned.
        remote: RemoteAddress,
        /// What the word must be.
        compare: u64,
        /// What it becomes.
        swap: u64,
    },
    /// Adds to the peer's word, wrapping; what it was goes to `local`.
    FetchAndAdd {
        /// 8 bytes for what the word was.
        local: Slice<R>,
        /// The word, 8-byte aligned.
        remote: RemoteAddress,
        /// What is added.
        add: u64,
    },
}

impl<R> WorkKind<R> {
    /// The local bytes.
    pub fn local(&self) -> &Slice<R> {
        match self {
            WorkKind::Read { local, .. }
            | WorkKind::Write { local, .. }
            | WorkKind::Send { local, .. }
            | WorkKind::CompareAndSwap { local, .. }
            | WorkKind::FetchAndAdd { local, .. } => local,
        }
    }

    /// What its completion will be labelled.
    pub fn opcode(&self) -> Opcode {
        match self {
            WorkKind::Read { .. } => Opcode::Read,
            WorkKind::Write { .. } => Opcode::Write,
            WorkKind::Send { .. } => Opcode::Send,
            WorkKind::CompareAndSwap { .. } => Opcode::CompareAndSwap,
            WorkKind::FetchAndAdd { .. } => Opcode::FetchAndAdd,
        }
    }
}

/// A request for the send queue.
#[derive(Clone, Debug)]
pub struct WorkRequest<R> {
    /// What to do.
    pub operation: WorkKind<R>,
    /// Whether it makes a completion of its own.
    pub signaled: bool,
    /// Whether the payload is copied into the request when it is posted (WRITE and SEND only), so
    /// that the buffer is free at once.
    pub inline: bool,
    /// Whether it starts only when every earlier READ and atomic has returned (RC).
    pub fence: bool,
}

impl<R> WorkRequest<R> {
    /// A signaled request, neither inline nor fenced.
    pub fn new(operation: WorkKind<R>) -> WorkRequest<R> {
        WorkRequest { operation, signaled: true, inline: false, fence: false }
    }
    /// READ of `local.length` bytes.
    pub fn read(local: Slice<R>, remote: RemoteAddress) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::Read { local, remote })
    }
    /// WRITE of `local.length` bytes.
    pub fn write(local: Slice<R>, remote: RemoteAddress) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::Write { local, remote, immediate: None })
    }
    /// WRITE with immediate.
    pub fn write_with_immediate(local: Slice<R>, remote: RemoteAddress, immediate: u32) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::Write { local, remote, immediate: Some(immediate) })
    }
    /// SEND on a connection.
    pub fn send(local: Slice<R>) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::Send { local, to: None, immediate: None })
    }
    /// SEND on UD.
    pub fn send_to(local: Slice<R>, to: Address) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::Send { local, to: Some(to), immediate: None })
    }
    /// Compare-and-swap.
    pub fn compare_and_swap(
        local: Slice<R>,
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
    ) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::CompareAndSwap { local, remote, compare, swap })
    }
    /// Fetch-and-add.
    pub fn fetch_and_add(local: Slice<R>, remote: RemoteAddress, add: u64) -> WorkRequest<R> {
        WorkRequest::new(WorkKind::FetchAndAdd { local, remote, add })
    }
    /// Refuses what no queue pair of `kind` takes: the operation and its peer, a message longer than
    /// `message_max` bytes, a payload longer than `inline_max` bytes inline. Backends call it when a request
    /// is posted; the memory that it names is checked by them.
    ///
    /// ```
    /// use offpath_fabric::{QueuePairType, PostError, Slice, WorkRequest};
    /// let local = Slice { region: (), offset: 0, length: 100 };
    /// let request = WorkRequest::send(local);
    /// assert_eq!(request.check(QueuePairType::Rc, 1 << 20, 64), Ok(()));
    /// assert!(matches!(request.check(QueuePairType::Ud, 4096, 64), Err(PostError::NotOnThisKind { .. })));
    /// let inline = request.inline().check(QueuePairType::Rc, 1 << 20, 64);
    /// assert_eq!(inline, Err(PostError::InlineTooLong { length: 100, bound: 64 }));
    /// ```
    #[inline]
    pub fn check(&self, kind: QueuePairType, message_max: u64, inline_max: u32) -> Result<(), PostError> {
        let operation = &self.operation;
        let length = operation.local().length;
        let refuse = |reason| Err(PostError::NotOnThisKind { opcode: operation.opcode(), kind, reason });
        match (kind, operation) {
            (QueuePairType::Rc, WorkKind::Send { to: Some(_), .. }) => {
                return refuse("a connection has one peer; leave `to` empty");
            }
            (QueuePairType::Ud, WorkKind::Send { to: None, .. }) => {
                return refuse("UD has no peer; give `to`");
            }
            (QueuePairType::Rc, _) | (QueuePairType::Ud, WorkKind::Send { .. }) => {}
            (QueuePairType::Ud, _) => return refuse("UD carries SEND only; use an RC queue pair"),
        }
        if length > message_max {
            return Err(PostError::MessageTooLong { length, bound: message_max });
        }
        match operation {
            WorkKind::CompareAndSwap { .. } | WorkKind::FetchAndAdd { .. } if length != 8 => {
                return Err(PostError::AtomicLength { length });
            }
            WorkKind::Write { .. } | WorkKind::Send { .. } => {}
            _ if self.inline => return refuse("only WRITE and SEND can be inline; post it without"),
            _ => {}
        }
        if self.inline && length > u64::from(inline_max) {
            return Err(PostError::InlineTooLong { length, bound: inline_max });
        }
        Ok(())
    }
    /// The same without a completion of its own.
    pub fn unsignaled(self) -> WorkRequest<R> {
        WorkRequest { signaled: false, ..self }
    }
    /// The same with the payload copied at posting.
    pub fn inline(self) -> WorkRequest<R> {
        WorkRequest { inline: true, ..self }
    }
    /// The same, waiting for earlier READs and atomics.
    pub fn fenced(self) -> WorkRequest<R> {
        WorkRequest { fence: true, ..self }
    }
    /// The same SEND with an immediate word; other operations are left as they are.
    pub fn immediate(mut self, word: u32) -> WorkRequest<R> {
        if let WorkKind::Send { immediate, .. } | WorkKind::Write { immediate, .. } = &mut self.operation {
            *immediate = Some(word);
        }
        self
    }
}

/// Which kind of work a completion ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Opcode {
    /// A READ.
    Read,
    /// A WRITE, with or without immediate.
    Write,
    /// A SEND.
    Send,
    /// A compare-and-swap.
    CompareAndSwap,
    /// A fetch-and-add.
    FetchAndAdd,
    /// A receive that a SEND filled.
    Receive,
    /// A receive that a WRITE with immediate consumed.
    ReceiveWriteImmediate,
    /// A copy by a DMA engine.
    DmaCopy,
}

/// How work ended, with the names of verbs. It is an error to pass on where it is not success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, thiserror::Error)]
#[error("the work completed with status {self:?}")]
pub enum Status {
    /// As asked.
    Success,
    /// A message does not fit the receive, or a response the local buffer (`LOC_LEN_ERR`).
    LocalLength,
    /// The device failed at work that was posted rightly (`LOC_QP_OP_ERR`).
    LocalOperation,
    /// The local slice is out of its region's range, deregistered, or lacks the right (`LOC_PROT_ERR`).
    LocalProtection,
    /// Flushed, since the queue pair is in the error state (`WR_FLUSH_ERR`).
    Flushed,
    /// The peer answered what makes no sense (`BAD_RESP_ERR`).
    BadResponse,
    /// The peer refused the request as malformed: too long for its receive, an unaligned atomic, an
    /// operation it does not support (`REM_INV_REQ_ERR`).
    RemoteInvalidRequest,
    /// Wrong key, range or right at the peer (`REM_ACCESS_ERR`).
    RemoteAccess,
    /// The peer failed at a request that was right (`REM_OP_ERR`).
    RemoteOperation,
    /// The peer did not acknowledge in all retries (`RETRY_EXC_ERR`).
    RetryExceeded,
    /// The peer had no receive posted in all retries (`RNR_RETRY_EXC_ERR`).
    ReceiverNotReady,
    /// The device failed (`FATAL_ERR` and whatever else it reports).
    Fatal,
}

/// The end of one piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// How it ended. Nothing but `opcode` means anything unless it is [`Status::Success`].
    pub status: Status,
    /// What ended.
    pub opcode: Opcode,
    /// How many payload bytes were moved; a receive tells the length of the message from it.
    pub bytes: u64,
    /// The peer's word, for receives.
    pub immediate: Option<u32>,
    /// The sender, for receives on UD.
    pub source: Option<Address>,
}

impl Completion {
    /// A completion of `opcode` with `status` and `bytes`, and nothing else.
    pub fn new(opcode: Opcode, status: Status, bytes: u64) -> Completion {
        Completion { status, opcode, bytes, immediate: None, source: None }
    }

    /// The completion where it is a success, else its status.
    pub fn success(self) -> Result<Completion, Status> {
        if self.status == Status::Success { Ok(self) } else { Err(self.status) }
    }
}

/// A queue pair. Clones are handles to the same one; when the last handle goes it is destroyed as by
/// [`QueuePair::close`].
pub trait QueuePair: Clone + 'static {
    /// Registered memory.
    type Region: Region;
    /// The future of a completion.
    type CompletionFuture: Future<Output = Completion> + Unpin + 'static;

    /// Posts `requests` as one linked list with one doorbell: all of them, or none and an error.
    /// Completions are in the order of the requests.
    fn batch(
        &self,
        requests: Vec<WorkRequest<Self::Region>>,
    ) -> Result<Vec<Self::CompletionFuture>, PostError>;

    /// Posts one request.
    fn post(&self, request: WorkRequest<Self::Region>) -> Result<Self::CompletionFuture, PostError>;

    /// Posts a receive buffer for one message.
    fn receive(&self, into: Slice<Self::Region>) -> Result<Self::CompletionFuture, PostError>;

    /// How it was made, with what the backend rounded.
    fn options(&self) -> QueuePairOptions;

    /// What it can do now.
    fn state(&self) -> QueuePairState;

    /// Its address, for peers' UD requests.
    fn address(&self) -> Address;

    /// The longest message of this queue pair, in bytes: the MTU on UD.
    fn message_max(&self) -> u64;

    /// How many slots of the send queue are taken.
    fn send_slots_taken(&self) -> u32;

    /// Destroys it: outstanding work is flushed and the peer's requests end in
    /// [`Status::RetryExceeded`].
    fn close(&self);

    /// Posts a signaled READ.
    fn read(
        &self,
        local: Slice<Self::Region>,
        remote: RemoteAddress,
    ) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::read(local, remote))
    }
    /// Posts a signaled WRITE.
    fn write(
        &self,
        local: Slice<Self::Region>,
        remote: RemoteAddress,
    ) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::write(local, remote))
    }
    /// Posts a signaled WRITE with immediate.
    fn write_with_immediate(
        &self,
        local: Slice<Self::Region>,
        remote: RemoteAddress,
        immediate: u32,
    ) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::write_with_immediate(local, remote, immediate))
    }
    /// Posts a signaled SEND on a connection.
    fn send(&self, local: Slice<Self::Region>) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::send(local))
    }
    /// Posts a signaled SEND on UD.
    fn send_to(&self, local: Slice<Self::Region>, to: Address) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::send_to(local, to))
    }
    /// Posts a signaled compare-and-swap.
    fn compare_and_swap(
        &self,
        local: Slice<Self::Region>,
        remote: RemoteAddress,
        compare: u64,
        swap: u64,
    ) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::compare_and_swap(local, remote, compare, swap))
    }
    /// Posts a signaled fetch-and-add.
    fn fetch_and_add(
        &self,
        local: Slice<Self::Region>,
        remote: RemoteAddress,
        add: u64,
    ) -> Result<Self::CompletionFuture, PostError> {
        self.post(WorkRequest::fetch_and_add(local, remote, add))
    }
}
