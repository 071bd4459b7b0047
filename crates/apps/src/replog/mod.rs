//! A replicated log.
//!
//! A primary (role `host`) appends to its own log and has a chain of backups keep the same bytes. The
//! chunks of a write travel by one of the [`LogAlternative`]s: the card pulls them from the host by RDMA
//! or by its DMA engine, compresses them and forwards them, or the host writes them to the first
//! backup itself. Each backup appends, passes on to the next, and acknowledges when the rest of the
//! chain has; the primary acknowledges when its own log and the chain have the entry.
//!
//! Guarantees, with [`SyncPolicy::Always`]: what was acknowledged is in every log of the chain, at the
//! number that was acknowledged, through crashes and restarts of every role; when nothing is in
//! flight the logs' files are equal byte for byte. An entry that was not acknowledged may be kept or not,
//! but alike everywhere. With another policy a crash may take entries that were acknowledged since the
//! last sync.
//!
//! With [`Digestion`], entries are [`FileRecord`]s, bytes at a place of a file. Each backup applies what the
//! chain has to its own [`DigestedStore`]; for the primary the card does (A1, A2) or the host. How far a store
//! is, is kept behind its files, so that a crash has entries applied again and never left out, and the
//! log may be truncated behind it.
//!
//! After a crash the primary's log decides: a backup that has more cuts it off before the primary
//! takes a write, which is right because nothing that only a backup has was acknowledged.

mod about;
mod answer;
mod code;
mod digest;
mod drive;
mod feed;
mod log;
mod primary;
mod replica;
mod run;
mod serve;
mod shape;
pub mod torture;

pub use about::{ABOUT, TAIL};
pub use code::Writes;
pub use digest::{DigestedStore, FileRecord, NAME_BYTES};
pub use drive::{Driven, WriteLoad, drive};
pub use log::{Log, entries};
pub use primary::{HostTimeParts, Primary};
pub use replica::{backup, card};
pub use run::Writer;
pub use serve::LogServers;
pub use shape::{Charged, Shape};

use crate::system::{About, AppSystem};
use offpath_fabric::{ConnectError, FileError, PostError, RegionError, RoleName, Status, Unsupported};
use offpath_quantity::Time;
use std::fmt;

/// The replicated log as a system.
#[derive(Clone, Copy, Debug)]
pub enum Replog {}

impl AppSystem for Replog {
    const ABOUT: &'static About = &ABOUT;
    type Code = Writes;
    type Run = Writer;
    type Serve = LogServers;
    type Trial = torture::LogScenario;
}

/// How chunks reach the first backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LogAlternative {
    /// A1: the card pulls them by READ, compresses and forwards them.
    CardPullsByRead,
    /// A2: the card pulls them by its DMA engine, compresses and forwards them.
    CardPullsByEngine,
    /// A3: the host writes them to the backup.
    HostWrites,
    /// A2+A3: as A2 while the card has a free slot, else as A3; or by [`LogConfig::card_share_percent`].
    EngineAndHost,
}

impl LogAlternative {
    /// All of them.
    pub const ALL: [LogAlternative; 4] = [
        LogAlternative::CardPullsByRead,
        LogAlternative::CardPullsByEngine,
        LogAlternative::HostWrites,
        LogAlternative::EngineAndHost,
    ];

    /// The label that papers, designs and the command line give it.
    pub fn label(self) -> &'static str {
        ABOUT.alternatives[self as usize].label
    }

    /// The alternative of a label.
    pub fn labelled(label: &str) -> Option<LogAlternative> {
        LogAlternative::ALL.into_iter().find(|alternative| alternative.label() == label)
    }

    /// Whether the card digests the primary's log. With A2 and A3 together the host does: it has every
    /// entry, and the card is what is short.
    pub fn digests_on_card(self) -> bool {
        matches!(self, LogAlternative::CardPullsByRead | LogAlternative::CardPullsByEngine)
    }
}

impl fmt::Display for LogAlternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
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

/// Whether acknowledged entries are applied to the files that they belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Digestion {
    /// No: entries are bytes of any kind, and the log is all there is.
    Off,
    /// Yes, and the log stays whole.
    Keep,
    /// Yes, and segments are removed once all their entries are in files.
    Truncate,
}

/// Mistakes that torture must find. No log has one unless a test plants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogBug {
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
    /// Entries that a backup lost are not retransmitted.
    NoResend,
    /// The primary acknowledges without the chain.
    LocalAcknowledgement,
    /// The position of digestion is kept before the files are synced.
    DigestedBeforeSync,
    /// Entries are applied to files in another order than the log's.
    DigestedOutOfOrder,
    /// The log is truncated before its entries are in their files.
    TruncatedBeforeDigested,
}

impl LogBug {
    /// All of them.
    pub const ALL: [LogBug; 13] = [
        LogBug::EarlyAcknowledgement,
        LogBug::MissingSync,
        LogBug::AcknowledgedBeforeForwarded,
        LogBug::NoFrameChecksum,
        LogBug::NoCut,
        LogBug::NoDuplicateCheck,
        LogBug::NoOrder,
        LogBug::HastySlots,
        LogBug::NoResend,
        LogBug::LocalAcknowledgement,
        LogBug::DigestedBeforeSync,
        LogBug::DigestedOutOfOrder,
        LogBug::TruncatedBeforeDigested,
    ];
}

/// Work of processors that a backend without their instructions must be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogCosts {
    /// Bytes a second that one core appends to a file; 0 charges nothing.
    pub file_bytes_per_second: u64,
    /// Bytes a second that one core compresses; 0 charges nothing.
    pub compress_bytes_per_second: u64,
    /// How long a file takes to survive a crash; the processor is free meanwhile.
    pub sync: Time,
}

fn at_rate(bytes: u64, rate: u64) -> Time {
    let ps = u128::from(bytes) * 1_000_000_000_000 / u128::from(rate.max(1));
    if rate == 0 { Time::ZERO } else { Time::from_ps(ps.min(u128::from(u64::MAX / 64)) as u64) }
}

/// What the roles of one log agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// How chunks travel.
    pub alternative: LogAlternative,
    /// The DMA engine of A2.
    pub engine: String,
    /// The backups, the first one next to the primary. On some backends only roles at different
    /// endpoints reach each other.
    pub chain: Vec<RoleName>,
    /// Bytes of a chunk.
    pub chunk_bytes: u32,
    /// Bytes after which a segment is followed by the next.
    pub segment_bytes: u64,
    /// When entries are synced.
    pub sync: SyncPolicy,
    /// Chunks in flight on each connection.
    pub slots: u32,
    /// Whether the card compresses.
    pub compress: bool,
    /// Whether the host compresses what it writes to the backup itself.
    pub host_compresses: bool,
    /// Of A2 and A3 together, how many of 100 chunks go by the card, as a plan says; `None` for as many
    /// as it has slots for.
    pub card_share_percent: Option<u32>,
    /// Whether entries are applied to files: by each backup, and for the primary by the card (A1, A2) or
    /// the host.
    pub digestion: Digestion,
    /// Processor work to charge.
    pub costs: LogCosts,
    /// How long a silent peer is waited for before it is asked whether it lives.
    pub patience: Time,
    /// A mistake, for tests of torture alone.
    pub injected_bug: Option<LogBug>,
}

impl LogConfig {
    /// Chunks of 256 KiB, segments of 16 MiB, always synced, compressed by the card.
    pub fn new(alternative: LogAlternative, chain: Vec<RoleName>) -> LogConfig {
        LogConfig {
            alternative,
            engine: "dma".into(),
            chain,
            chunk_bytes: 256 * 1024,
            segment_bytes: 16 << 20,
            sync: SyncPolicy::Always,
            slots: 8,
            compress: true,
            host_compresses: false,
            card_share_percent: None,
            digestion: Digestion::Off,
            costs: LogCosts::default(),
            patience: Time::from_ms(1),
            injected_bug: None,
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
        if self.card_share_percent.is_some_and(|share| share > 100) {
            return wrong(
                "share of the card in percent",
                self.card_share_percent.unwrap_or(0).into(),
                "0 to 100",
            );
        }
        if self.digestion != Digestion::Off && self.sync != SyncPolicy::Always {
            return Err(LogError::DigestionNeedsSync);
        }
        Ok(())
    }

    /// The longest entry.
    fn entry_bytes(&self) -> u64 {
        let record = if self.digestion == Digestion::Off { 0 } else { digest::RECORD_BYTES };
        u64::from(self.chunk_bytes) + record
    }

    /// What a chunk takes at most where it is staged.
    fn slot_bytes(&self) -> u64 {
        feed::CHUNK_HEADER + self.entry_bytes().next_multiple_of(8)
    }

    fn injects(&self, bug: LogBug) -> bool {
        self.injected_bug == Some(bug)
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
    /// An entry was digested and removed.
    #[error(
        "entry {sequence} was removed, the log begins at {first}; copy the files and the log of another replica"
    )]
    Truncated {
        /// Which entry.
        sequence: u64,
        /// The log's first.
        first: u64,
    },
    /// A peer has what this primary never wrote.
    #[error(
        "{peer} has entries up to {has}, the primary's log ends at {last}; open it with the files that it last had, or with a copy of a backup's"
    )]
    Ahead {
        /// Who.
        peer: String,
        /// Its last entry.
        has: u64,
        /// The primary's last entry.
        last: u64,
    },
    /// A peer follows a later incarnation of the primary.
    #[error(
        "{peer} follows a primary that was opened after this one, whose incarnation is {incarnation}; stop the other, or open this one with the files that it last had or with a copy of a backup's"
    )]
    Superseded {
        /// Who.
        peer: String,
        /// This primary's incarnation.
        incarnation: u64,
    },
    /// An entry is of no file.
    #[error("entry {sequence} is not a record of a file; write to a digested log by `write_file` alone")]
    NoRecord {
        /// Which entry; 0 where it was not appended.
        sequence: u64,
    },
    /// The log has no files.
    #[error("this log is not digested into files; open it with `Digestion::Keep` or `Truncate`")]
    NotDigested,
    /// No file can have that name.
    #[error("`{name}` cannot be the name of a file; use 1 to 54 bytes without `/`, `\\` and NUL")]
    FileName {
        /// The name.
        name: String,
    },
    /// What is in files cannot be taken back, so the log must be sure of it.
    #[error("a log that a crash may shorten cannot be digested; choose `SyncPolicy::Always`")]
    DigestionNeedsSync,
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
    #[error("the card has no DMA engine `{engine}`, which {alternative} needs; choose A1 or A3")]
    NoEngine {
        /// What was asked for.
        engine: String,
        /// For what.
        alternative: LogAlternative,
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
