//! Services for Redis and Valkey that run beside unmodified servers, on a card's cores or anywhere.
//!
//! - [`relay`]: a replication relay. To the master it is one replica, to any number of replicas it is
//!   the master. It keeps no data, only the latest bytes of the stream.
//!
//! - [`shard`]: shares of a cluster by capacity, live migration of slots, and clients.
//!
//! Where to look: [`process`] starts and ends a relay. [`upstream`] is the side of the master, [`downstream`] and
//! [`serving`] that of replicas; both meet in [`relay::Relay`]. A client
//! that wants a file of now has it fetched by [`upstream`]. What they exchange is read by [`resp`], [`framing`] and
//! [`payload`], which do no input or output and keep within bounds whatever a peer sends.
//!
//! Not supported: serving reads, replication filters but for functions alone, and the second channel for files that
//! Valkey 8 and Redis 8 may use when both sides ask for it.

pub mod acknowledge;
pub mod backlog;
pub mod client;
pub mod config;
pub mod connection;
pub mod counters;
pub mod descriptors;
pub mod downstream;
pub mod framing;
pub mod handshake;
pub mod history;
pub mod info;
pub mod log;
pub mod metrics;
pub mod names;
pub mod payload;
pub mod process;
pub mod questions;
pub mod relay;
pub mod replica;
pub mod resp;
pub mod serving;
pub mod shard;
pub mod spool;
pub mod state;
pub mod tls;
pub mod upstream;
