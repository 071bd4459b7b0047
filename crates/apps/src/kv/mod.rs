//! A disaggregated key-value store.
//!
//! Records lie in the memory of a memory server (role `host`), found by a hash index that lies there
//! or in the memory of the server's card (role `soc`). One role, the index's owner, changes the
//! store; clients read by one-sided verbs, or ask the card. [`Placement`] names the alternatives;
//! they are placements of the same code.
//!
//! A value is written to a fresh slot, then one word of the index is changed to point there, then the
//! old slot is wiped and freed. That word is the truth: it carries the record's version, and a reader
//! accepts a record only with the key, the version and a checksum that belong together. So a reader
//! that read the word returns what was current at that moment or reads again, whatever slot, copy or
//! cache it looked into, and every get, put and delete takes effect at one moment.
//!
//! Guarantees: linearizable per key. A put or delete that ends in an error that
//! [`KvError::is_outcome_unknown`] may have happened or not. Values are lost with the host's memory;
//! a card that restarts builds its index and empty cache again from the host's records.

mod about;
mod answer;
mod client;
mod code;
mod controller;
mod drive;
mod index;
mod layout;
mod mix;
mod run;
mod serve;
mod server;
mod shape;
pub mod torture;

pub use crate::bytes::{is_value_of, value_of};
pub use about::ABOUT;
pub use client::{StoreClient, StoreKey};
pub use code::Request as FollowedRequest;
pub use controller::Splitter;
pub use drive::{
    ClientLoad, ClientReport, DriveError, DriveState, Latency, Spread, Unanswered, client, roles,
};
pub use layout::{
    BUCKET_BYTES, BUCKET_KEYS, Bucket, HEADER_BYTES, HOT_GROUPS, LAYOUT_VERSION, Layout, MAGIC, Pointer,
    RECORD_HEADER_BYTES, REQUEST_BYTES, ReplyStatus, RequestHead, RequestOpcode, StoreRecord,
    VALUE_BYTES_MAX,
};
pub use run::Clients;
pub use serve::StoreServers;
pub use server::{Served, host, serve, soc};

use crate::system::{About, AppSystem, DeclaredCacheUse};
use offpath_fabric::{ConnectError, PostError, RegionError, Status, Unsupported};
use offpath_quantity::Time;
use offpath_workload::{ClientOperation, Workload};
use std::fmt;
use std::sync::Arc;

/// The key-value store as a system.
#[derive(Clone, Copy, Debug)]
pub enum Kv {}

impl AppSystem for Kv {
    const ABOUT: &'static About = &ABOUT;
    type Code = code::Request;
    type Run = Clients;
    type Serve = StoreServers;
    type Trial = torture::StoreScenario;
}

/// Where the index lies and how a get finds its record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Placement {
    /// A1: index and records on the host; the client READs both.
    HostOneSided,
    /// A2: index and records on the host; the card looks both up for the client.
    SocLookup,
    /// A3: the card has the index, fetches the record from the host and answers.
    SocIndex,
    /// A4: the client READs the index on the card and the record on the host.
    SplitOneSided,
    /// A5-read: as A4, but cached records are READ on the card.
    SocCacheRead,
    /// A5-send: the card answers from index and cache; a miss returns the address, which the client READs.
    SocCacheSend,
}

impl Placement {
    /// All of them.
    pub const ALL: [Placement; 6] = [
        Placement::HostOneSided,
        Placement::SocLookup,
        Placement::SocIndex,
        Placement::SplitOneSided,
        Placement::SocCacheRead,
        Placement::SocCacheSend,
    ];

    /// The label that papers, designs and the command line give it.
    pub fn label(self) -> &'static str {
        ABOUT.alternatives[self as usize].label
    }

    /// The placement of a label.
    pub fn labelled(label: &str) -> Option<Placement> {
        Placement::ALL.into_iter().find(|placement| placement.label() == label)
    }

    /// The sides of the memory server that it uses: without a card where it needs none.
    pub fn homes(self) -> Vec<Home> {
        match self {
            Placement::HostOneSided => vec![Home::Host],
            _ => vec![Home::Host, Home::Soc],
        }
    }

    /// Where the index lies. Placements with the same home serve one store side by side.
    pub fn index_home(self) -> Home {
        match self {
            Placement::HostOneSided | Placement::SocLookup => Home::Host,
            _ => Home::Soc,
        }
    }

    /// Whether a get is a message to the card.
    pub fn asks_the_card(self) -> bool {
        matches!(self, Placement::SocLookup | Placement::SocIndex | Placement::SocCacheSend)
    }

    /// Whether a get looks into the card's cache first.
    pub fn looks_into_the_cache(self) -> bool {
        self.cache_use() != DeclaredCacheUse::Unused
    }

    /// Whether a get that misses may bring its record into the cache.
    pub fn fills_the_cache(self) -> bool {
        self.cache_use() == DeclaredCacheUse::Filled
    }

    fn cache_use(self) -> DeclaredCacheUse {
        ABOUT.alternatives[self as usize].cache
    }
}

impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.label())
    }
}

/// A side of the memory server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Home {
    /// The host.
    Host,
    /// The card's own processor.
    Soc,
}

impl Home {
    /// The role that runs there.
    pub fn role(self) -> &'static str {
        match self {
            Home::Host => "host",
            Home::Soc => "soc",
        }
    }
}

/// How the card reaches the host's memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fetch {
    /// By READ and WRITE.
    Rdma,
    /// By the DMA engine of this name; refused where the platform has none.
    Engine(String),
}

/// Processor time that parts of a get take, charged where a backend models processors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreCosts {
    /// A client hashes a key and builds a request.
    pub build: Time,
    /// A client searches a bucket.
    pub search: Time,
    /// A client checks a record.
    pub check: Time,
    /// The card hashes a key, before it fetches a bucket of the host's.
    pub card_hash: Time,
    /// The card searches a fetched bucket.
    pub card_search: Time,
    /// The card looks a key up in its own index, and in its cache.
    pub card_lookup: Time,
}

impl StoreCosts {
    /// Assumed, not published: 100, 150 and 50 ns at a client, 30, 50 and 80 ns at the card.
    pub fn assumed() -> StoreCosts {
        StoreCosts {
            build: Time::from_ns(100),
            search: Time::from_ns(150),
            check: Time::from_ns(50),
            card_hash: Time::from_ns(30),
            card_search: Time::from_ns(50),
            card_lookup: Time::from_ns(80),
        }
    }
}

/// Mistakes that torture must find. No store has one unless a test plants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoreBug {
    /// A reader accepts a record without its version.
    NoVersionCheck,
    /// A reader accepts a record without its checksum and key.
    NoChecksum,
    /// A put is acknowledged before the index points to it.
    EarlyAcknowledgement,
    /// A put wipes the old record before the next one is written.
    WipeBeforeWrite,
    /// A freed slot keeps its record, so that a restarted card finds removed keys.
    NoWipe,
    /// A put leaves the cached record valid.
    StaleCache,
    /// The card uses a buffer again before its bytes have left.
    HastySlots,
    /// Changes of one key run side by side.
    NoKeyLock,
    /// A client takes the first answer for its own.
    NoSequenceCheck,
    /// A client sends a put again that may have happened.
    BlindRetry,
}

impl StoreBug {
    /// All of them.
    pub const ALL: [StoreBug; 10] = [
        StoreBug::NoVersionCheck,
        StoreBug::NoChecksum,
        StoreBug::EarlyAcknowledgement,
        StoreBug::WipeBeforeWrite,
        StoreBug::NoWipe,
        StoreBug::StaleCache,
        StoreBug::HastySlots,
        StoreBug::NoKeyLock,
        StoreBug::NoSequenceCheck,
        StoreBug::BlindRetry,
    ];
}

/// What the roles of one store agree on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The shape of the store.
    pub layout: Layout,
    /// Where the index lies, and how clients get where no [`Splitter`] decides.
    pub placement: Placement,
    /// How the card reaches the host.
    pub fetch: Fetch,
    /// Records 0, 1, ... that the host has from the start, with the values of [`value_of`].
    pub preload: u64,
    /// Keys of those that the card has in its cache from the start as far as their sets have slots, those that come first
    /// first.
    pub warm: Arc<[u64]>,
    /// Requests that the card handles at once.
    pub inbox: u32,
    /// Misses of one key that bring it into the cache.
    pub admit_after: u32,
    /// Processor times.
    pub costs: StoreCosts,
    /// How long a client waits for an answer before it asks again.
    pub answer_timeout: Time,
    /// How often a client tries a get.
    pub attempts: u32,
    /// Share of a client's recent gets above which a key gets copies, in 1/1024; 0 for never.
    pub hot_share: u32,
    /// A mistake, for tests of torture alone.
    pub injected_bug: Option<StoreBug>,
}

impl StoreConfig {
    /// A store for `records` records with values of at most `value_bytes`, and half as many more.
    /// Keys of 8 B, a cache of a quarter of the records, 4 copies of hot records, gets by A4.
    pub fn sized(records: u64, value_bytes: u32) -> StoreConfig {
        let slots = records + records / 2 + SPARE_SLOTS + 1;
        StoreConfig {
            layout: Layout {
                version: LAYOUT_VERSION,
                key_bytes: 8,
                value_bytes,
                root_buckets: records.max(1),
                overflow_buckets: records / 2 + 1,
                slots,
                cache_slots: (records / 4 + 1).min(1 << 24) as u32,
                copies: 4,
            },
            placement: Placement::SplitOneSided,
            fetch: Fetch::Rdma,
            preload: 0,
            warm: Arc::default(),
            inbox: 256,
            admit_after: 2,
            costs: StoreCosts::assumed(),
            answer_timeout: Time::from_ms(1),
            attempts: 32,
            hot_share: 32,
            injected_bug: None,
        }
    }

    /// A store for the records of a YCSB workload and those that it inserts, with values as long as all
    /// fields together. The host has the records from the start. Refused where values are empty or too
    /// long, or the records are more than slots can be.
    pub fn of_workload(workload: &Workload) -> Result<StoreConfig, KvError> {
        let value_bytes = workload.field_count.saturating_mul(workload.field_length_bytes);
        let inserts = workload.operation_count as f64 * workload.mix.share(ClientOperation::Insert);
        let records = workload.record_count.saturating_add(inserts.ceil() as u64);
        if records > RECORDS_MAX {
            return Err(KvError::Shape { what: "number of records", value: records, bound: "at most 2^31" });
        }
        let Some(length) =
            u32::try_from(value_bytes).ok().filter(|length| (1..=VALUE_BYTES_MAX).contains(length))
        else {
            let bound = "fieldcount and fieldlength whose product is 1 to 65535";
            return Err(KvError::Shape { what: "value size in bytes", value: value_bytes, bound });
        };
        Ok(StoreConfig { preload: workload.record_count, ..StoreConfig::sized(records, length) })
    }

    /// The same with another placement.
    pub fn placed(self, placement: Placement) -> StoreConfig {
        StoreConfig { placement, ..self }
    }

    fn injects(&self, bug: StoreBug) -> bool {
        self.injected_bug == Some(bug)
    }

    /// Refuses what no store can have.
    fn check(&self) -> Result<(), KvError> {
        let Layout { key_bytes, value_bytes, root_buckets, slots, .. } = self.layout;
        let wrong = |what, value, bound| Err(KvError::Shape { what, value, bound });
        if !(1..=8).contains(&key_bytes) {
            return wrong("key size in bytes", key_bytes.into(), "1 to 8");
        }
        if value_bytes == 0 || value_bytes > VALUE_BYTES_MAX {
            return wrong("value size in bytes", value_bytes.into(), "1 to 65535");
        }
        if root_buckets == 0 {
            return wrong("number of buckets", 0, "at least 1");
        }
        if slots <= SPARE_SLOTS || slots > u64::from(u32::MAX) {
            return wrong("number of slots", slots, "9 to 4294967295");
        }
        if self.preload > slots - SPARE_SLOTS {
            return wrong("number of preloaded records", self.preload, "the slots less 8");
        }
        if self.inbox == 0 {
            return wrong("inbox", 0, "at least 1");
        }
        Ok(())
    }
}

/// Records of a workload, so that half as many slots again can still be named.
const RECORDS_MAX: u64 = 1 << 31;
/// Slots that only updates may use, since each needs one beside the slot it frees.
pub const SPARE_SLOTS: u64 = 8;

/// Why the store refused or failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KvError {
    /// What the server showed is not a store.
    #[error("the server's memory begins with {found:#x} and holds no store; check which service it runs")]
    NoStore {
        /// Its first word.
        found: u64,
    },
    /// The header does not match its checksum.
    #[error("the store's header is damaged; restart the server")]
    DamagedHeader,
    /// Server and client were built for different layouts.
    #[error(
        "the server's store has layout {server}, this client reads layout {client}; update the older one"
    )]
    LayoutVersion {
        /// The server's.
        server: u32,
        /// The client's.
        client: u32,
    },
    /// Server and client disagree about the shape.
    #[error("the store's {what} is {server}, this client was made for {client}; open it with the store's")]
    Mismatch {
        /// Of what.
        what: &'static str,
        /// The server's.
        server: u64,
        /// The client's.
        client: u64,
    },
    /// A store of that shape cannot be.
    #[error("a store cannot have a {what} of {value}; choose {bound}")]
    Shape {
        /// Of what.
        what: &'static str,
        /// What was asked for.
        value: u64,
        /// What can be.
        bound: &'static str,
    },
    /// A key of another length than the store's.
    #[error("a key of {length} B was given, the store's keys have {expected} B; pad or hash it")]
    KeySize {
        /// How long it is.
        length: usize,
        /// How long keys are.
        expected: u32,
    },
    /// The value does not fit a slot.
    #[error(
        "a value of {length} B is longer than the {bound} B of a slot; split it, or make a store of larger slots"
    )]
    ValueTooLarge {
        /// How long it is.
        length: usize,
        /// The longest.
        bound: u32,
    },
    /// No slot or bucket is left for another key.
    #[error("the store of {slots} slots is full; delete keys, or make a larger one")]
    Full {
        /// How many slots it has.
        slots: u64,
    },
    /// A share of gets that is not a share.
    #[error("{share} is not a share of gets{}; give numbers of at least 0, one of them above", of(placement))]
    Share {
        /// Whose; `None` for all together.
        placement: Option<Placement>,
        /// What was asked for.
        share: String,
    },
    /// A placement that another store serves.
    #[error(
        "{asked} needs the index on the {needed:?}, this store has it elsewhere; choose another placement"
    )]
    WrongHome {
        /// What was asked for.
        asked: Placement,
        /// Where it would have to be.
        needed: Home,
    },
    /// Every attempt met a change or no answer.
    #[error(
        "a get of key {key:#x} failed in {attempts} attempts; the server is overloaded or gone, try later"
    )]
    Unanswered {
        /// The key.
        key: u64,
        /// How often it was tried.
        attempts: u32,
    },
    /// The connection broke.
    #[error("the connection to {peer} broke: {status}; the next operation connects again")]
    Disconnected {
        /// To whom.
        peer: &'static str,
        /// How.
        status: Status,
    },
    /// The server cannot reach its own memory.
    #[error("the server failed to reach the records; restart it")]
    ServerFailed,
    /// The peer was not found.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// A request was refused before it was posted.
    #[error(transparent)]
    Post(#[from] PostError),
    /// Memory was refused.
    #[error(transparent)]
    Region(#[from] RegionError),
    /// The platform lacks what the placement needs.
    #[error(transparent)]
    Unsupported(#[from] Unsupported),
}

fn of(placement: &Option<Placement>) -> String {
    placement.map_or_else(String::new, |placement| format!(" for {placement}"))
}

impl KvError {
    /// Whether a put or delete that ended so may have happened all the same.
    pub fn is_outcome_unknown(&self) -> bool {
        matches!(self, KvError::Disconnected { .. } | KvError::ServerFailed | KvError::Unanswered { .. })
    }
}
