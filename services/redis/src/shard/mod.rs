//! Sharding a Redis or Valkey cluster over endpoints of unlike strength, such as a host and its card.
//!
//! A key belongs to one of 16384 slots, by CRC16 of the key or of its hash tag. [`plan`] gives each
//! endpoint a share of the slots by its capacity, [`apply`] makes a real cluster of it or changes one
//! slot by slot while clients work, [`bitmap`] is a client's way to find the side of a key in 2048
//! bytes, [`client`] follows redirections, [`measure`] finds capacities.
//!
//! Sources: the Redis cluster specification for slots and migration; sun2023 §4.3 for the bitmap.

pub mod apply;
pub mod bitmap;
pub mod client;
pub mod measure;
pub mod plan;
pub mod slots;
pub mod topology;

use crate::client::ClientError;
use thiserror::Error;

/// Why a shard command has no answer.
#[derive(Debug, Error)]
pub enum ShardError {
    /// A server did not answer as it should.
    #[error("{0}")]
    Client(#[from] ClientError),
    /// A server says of its cluster what cannot be.
    #[error("{address}: the cluster's description has the line `{line}`, which is not understood")]
    Topology {
        /// Which server.
        address: String,
        /// The line.
        line: String,
    },
    /// A plan that is not a plan.
    #[error("{key} = {value}: {reason}")]
    Plan {
        /// Which key or option.
        key: String,
        /// What was given.
        value: String,
        /// The bound and a next step.
        reason: String,
    },
    /// A plan that does not fit the servers as they are.
    #[error("{address}: {reason}")]
    Refused {
        /// Which server.
        address: String,
        /// What is in the way, and a next step.
        reason: String,
    },
    /// A cluster that is not whole at the moment.
    #[error("{address}: {reason}")]
    NotReady {
        /// Which server.
        address: String,
        /// What is missing, and a next step.
        reason: String,
    },
    /// What has not moved for longer than it was to be waited for.
    #[error(
        "{cause}; nothing has moved for {seconds} s, which is `--timeout`. Run it again once every endpoint answers: it \
         goes on where it stopped"
    )]
    Stalled {
        /// What was in the way last.
        cause: Box<ShardError>,
        /// For how long it was waited.
        seconds: f64,
    },
    /// Something that did not happen in time.
    #[error("{what} did not happen within {seconds} s; `offpath shard status` shows how far it is")]
    Late {
        /// What was waited for.
        what: String,
        /// For how long.
        seconds: u64,
    },
}

impl ShardError {
    /// Whether it may pass by itself, as a server that is stopped, starts or loads does.
    fn may_pass(&self) -> bool {
        match self {
            ShardError::Client(ClientError::Io { .. })
            | ShardError::NotReady { .. }
            | ShardError::Late { .. } => true,
            ShardError::Client(ClientError::Refused { reply, .. }) => {
                let passing = ["IOERR", "LOADING", "CLUSTERDOWN", "TRYAGAIN", "MASTERDOWN", "BUSY"];
                passing.iter().any(|word| reply.starts_with(word))
            }
            _ => false,
        }
    }
}
