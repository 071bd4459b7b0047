//! What a relay counts.

use std::cell::Cell;

/// What has happened, for INFO and Prometheus.
#[derive(Debug, Default)]
pub struct Counters {
    /// Bytes of the stream from the master.
    pub stream_bytes_in: Cell<u64>,
    /// Bytes of the stream to all replicas.
    pub stream_bytes_out: Cell<u64>,
    /// Bytes of files from the master.
    pub file_bytes_in: Cell<u64>,
    /// Bytes of files to all replicas.
    pub file_bytes_out: Cell<u64>,
    /// Commands of the stream.
    pub commands: Cell<u64>,
    /// Full synchronisations with the master.
    pub master_full: Cell<u64>,
    /// Files that the master wrote for the relay: for its own synchronisations, and for replicas beside the stream.
    pub master_files: Cell<u64>,
    /// Files of the master that the spool had no room for.
    pub spool_failures: Cell<u64>,
    /// Times that the state could not be kept.
    pub state_failures: Cell<u64>,
    /// Partial ones.
    pub master_partial: Cell<u64>,
    /// Full synchronisations of replicas.
    pub replica_full: Cell<u64>,
    /// Partial ones.
    pub replica_partial: Cell<u64>,
    /// Files that the master wrote for one alone, as for a backup.
    pub own_files: Cell<u64>,
    /// Replicas dropped because they were too slow.
    pub dropped_slow: Cell<u64>,
    /// Connections refused or cut off for bad credentials, too many of them, or no RESP.
    pub refused: Cell<u64>,
    /// Connections so far.
    pub connections: Cell<u64>,
}

/// Adds to a counter.
pub fn count(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get().wrapping_add(more));
}
