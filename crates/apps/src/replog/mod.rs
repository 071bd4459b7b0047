//! A replicated log.
//!
//! A primary (role `host`) appends to its own log and has a chain of backups keep the same bytes. The
//! chunks of a write travel by one of the [`Alternative`]s: the card pulls them from the host by RDMA
//! or by its copy engine, compresses them and forwards them, or the host writes them to the first
//! backup itself. Each backup appends, passes on to the next, and acknowledges when the rest of the
//! chain has; the primary acknowledges when its own log and the chain have the entry.
//!
//! Guarantees, with [`SyncPolicy::Always`]: what was acknowledged is in every log of the chain, at the
//! number that was acknowledged, through crashes and restarts of every role; when nothing is under
//! way the logs' files are equal byte for byte. An entry that was not acknowledged may be kept or not,
//! but alike everywhere. With another policy a crash may take entries that were acknowledged since the
//! last sync.
//!
//! After a crash the primary's log decides: a backup that has more cuts it off before the primary
//! takes a write, which is right because nothing that only a backup has was acknowledged.

mod feed;
mod log;
mod primary;
mod replica;

pub use log::{Log, entries};
pub use primary::{Parts, Primary};
pub use replica::{backup, card};

use offpath_fabric::{ConnectError, FileError, PostError, RegionError, RoleName, Status, Unsupported};
use offpath_quantity::Time;

/// How chunks reach the first backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Alternative {
    /// The card pulls them by READ, compresses and forwards them.
    A1,
    /// The card pulls them by its copy engine, compresses and forwards them.
    A2,
    /// The host writes them to the backup.
    A3,
    /// As A2 while the card keeps up, else as A3.
    A2AndA3,
}

/// When entries are made to survive a crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncPolicy {
    /// Before each is acknowledged.
    Always,
    /// With every so many.
    Every(u32),
    /// Only where a segment ends.
    Never,
}

/// Mistakes that torture must find. No log has one unless a test plants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Planted {
    /// A backup acknowledges before it has appended.
    EarlyAcknowledgement,
    /// An append is not synced.
    MissingSync,
    /// A backup acknowledges before the rest of the chain has the entry.
    AcknowledgedBeforeForwarded,
    /// Recovery takes frames without looking at their checksum.
    NoFrameChecksum,
    /// A backup keeps entries that the primary lost.
    NoCut,
    /// An entry that comes again is appended again.
    NoDuplicateCheck,
    /// A backup appends in the order of arrival.
    NoOrder,
    /// The primary uses a buffer again before its chunk has left.
    HastySlots,
    /// Entries that a backup lost are not sent again.
    NoResend,
    /// The primary acknowledges without the chain.
    LocalAcknowledgement,
}

impl Planted {
    /// All of them.
    pub const ALL: [Planted; 10] = [
        Planted::EarlyAcknowledgement,
        Planted::MissingSync,
        Planted::AcknowledgedBeforeForwarded,
        Planted::NoFrameChecksum,
        Planted::NoCut,
        Planted::NoDuplicateCheck,
        Planted::NoOrder,
        Planted::HastySlots,
        Planted::NoResend,
        Planted::LocalAcknowledgement,
    ];
}

/// Work of processors that a world without their instructions must be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Costs {
    /// Bytes a second that one core appends to a file; 0 charges nothing.
    pub file_bytes_per_second: u64,
    /// Bytes a second that one core compresses; 0 charges nothing.
    pub compress_bytes_per_second: u64,
}

fn at_rate(bytes: u64, rate: u64) -> Time {
    let ps = u128::from(bytes) * 1_000_000_000_000 / u128::from(rate.max(1));
    if rate == 0 { Time::ZERO } else { Time::from_ps(ps.min(u128::from(u64::MAX / 64)) as u64) }
}

/// What the roles of one log agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// How chunks travel.
    pub alternative: Alternative,
    /// The copy engine of A2.
    pub engine: String,
    /// The backups, the first one next to the primary. On some worlds only roles at different
    /// endpoints reach each other.
    pub chain: Vec<RoleName>,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Bytes after which a segment is followed by the next.
    pub segment_bytes: u64,
    /// When entries are synced.
    pub sync: SyncPolicy,
    /// Chunks under way on each connection.
    pub slots: u32,
    /// Whether the card compresses.
    pub compress: bool,
    /// Processor work to charge.
    pub costs: Costs,
    /// How long a silent peer is waited for before it is asked whether it lives.
    pub patience: Time,
    /// A mistake, for tests of torture alone.
    pub planted: Option<Planted>,
}

impl Options {
    /// Chunks of 256 KiB, segments of 16 MiB, always synced, compressed by the card.
    pub fn new(alternative: Alternative, chain: Vec<RoleName>) -> Options {
        Options {
            alternative,
            engine: "dma".into(),
            chain,
            chunk_bytes: 256 * 1024,
            segment_bytes: 16 << 20,
            sync: SyncPolicy::Always,
            slots: 8,
            compress: true,
            costs: Costs::default(),
            patience: Time::from_ms(1),
            planted: None,
        }
    }

    fn check(&self) -> Result<(), LogError> {
        let wrong = |what, value, bound| Err(LogError::Shape { what, value, bound });
        if self.chunk_bytes == 0 || self.chunk_bytes > 1 << 29 {
            return wrong("chunk size in bytes", self.chunk_bytes.into(), "1 to 536870912");
        }
        if self.slots == 0 || self.slots > 64 {
            return wrong("number of slots", self.slots.into(), "1 to 64");
        }
        Ok(())
    }

    fn plants(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }
}

/// Why the log refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// Another writer has the log.
    #[error("the log of {role} has a writer already; stop it before another opens the log")]
    TwoWriters {
        /// Whose log.
        role: String,
    },
    /// A frame is damaged where no crash can have torn it.
    #[error("segment `{file}` is damaged at byte {offset}, before its end; restore it from another replica")]
    Corrupt {
        /// The segment.
        file: String,
        /// Where.
        offset: u64,
    },
    /// A segment was written by another version.
    #[error(
        "segment `{file}` has format {found}, this program reads format {known}; use the one that wrote it"
    )]
    Format {
        /// The segment.
        file: String,
        /// Its format.
        found: u32,
        /// What can be read.
        known: u32,
    },
    /// An entry is not there, or one before it is missing.
    #[error("entry {sequence} cannot be used, the log ends at {last}; go on from there")]
    Gap {
        /// Which entry.
        sequence: u64,
        /// The log's last.
        last: u64,
    },
    /// A log of that shape cannot be.
    #[error("a log cannot have a {what} of {value}; choose {bound}")]
    Shape {
        /// Of what.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What can be.
        bound: &'static str,
    },
    /// What a peer sent makes no sense.
    #[error("{peer} sent what this log does not understand; check that both run the same version")]
    Protocol {
        /// Who.
        peer: String,
    },
    /// The connection broke.
    #[error("the connection to {peer} broke: {status}; it is tried again")]
    Disconnected {
        /// To whom.
        peer: String,
        /// How.
        status: Status,
    },
    /// The card has no such engine.
    #[error("the card has no copy engine `{engine}`, which {alternative:?} needs; choose A1 or A3")]
    NoEngine {
        /// What was asked for.
        engine: String,
        /// For what.
        alternative: Alternative,
    },
    /// A file operation failed.
    #[error(transparent)]
    File(#[from] FileError),
    /// The peer was not found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A request was refused before it was posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Memory was refused.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The platform lacks something.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}
