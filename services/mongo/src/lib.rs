//! Sharding a collection over MongoDB-compatible servers of unlike strength, such as a host and its
//! card, without a router process: the driver's side knows where each document is.
//!
//! A [`map::Map`] gives each endpoint a part of the keys by its weight, by hashed slots or by ranges.
//! [`router::DocumentRouter`] is the library that programs use: point reads, inserts, updates, deletes, and
//! short scans merged across shards, while [`router::DocumentRouter::rebalance`] copies documents and then
//! switches. [`ycsb`] loads and runs YCSB property files through it.
//!
//! The client is a small one of its own, on [`bson`]: the official driver takes several times as long
//! to build as all the rest of this crate, and nothing of its pools, monitors and sessions is used.
//!
//! Supported: standalone servers and primaries that speak OP_MSG (MongoDB 3.6 and later, and
//! compatible ones), SCRAM-SHA-256, keys in `_id` that are whole numbers, strings or object ids.
//! Rejected: other keys, secondaries, servers before OP_MSG. Not supported: TLS, transactions,
//! failover, queries that name no key.
//!
//! Sources: the MongoDB wire protocol; RFC 5802 and RFC 7677; sun2023 §4.3 for giving endpoints shares
//! by their strength.

pub mod client;
pub mod key;
pub mod map;
pub mod measure;
pub mod router;
pub mod scram;
pub mod wire;
pub mod ycsb;

use std::io;
use thiserror::Error;
use wire::WireError;

/// Why something has no answer.
#[derive(Debug, Error)]
pub enum MongoError {
    /// The connection failed.
    #[error("{address}: {cause}; is a server running there?")]
    Io {
        /// Which server.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
    /// A message that cannot be used, or cannot be sent.
    #[error("{address}: {cause}")]
    Wire {
        /// Which server.
        address: String,
        /// What is wrong with it.
        cause: WireError,
    },
    /// The server refused a command, or a part of it.
    #[error("{address}: {command} was refused: {reply} (code {code})")]
    Refused {
        /// Which server.
        address: String,
        /// The command's name.
        command: String,
        /// The server's error code; 11000 is a key that is there already.
        code: i32,
        /// What the server said.
        reply: String,
    },
    /// The answer lacks what the command has, or the server cannot be used.
    #[error("{address}: {reason}")]
    Unexpected {
        /// Which server.
        address: String,
        /// What is in the way, and a next step.
        reason: String,
    },
    /// A value that cannot be.
    #[error("{key} = {value}: {reason}")]
    Value {
        /// Which key or option.
        key: String,
        /// What was given.
        value: String,
        /// The bound and a next step.
        reason: String,
    },
}
