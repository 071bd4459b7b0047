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
    /// Files of the master that did not come whole, for whatever reason.
    pub file_failures: Cell<u64>,
    /// Times that the state could not be kept.
    pub state_failures: Cell<u64>,
    /// Partial ones.
    pub master_partial: Cell<u64>,
    /// Links to the master that the relay began anew, so that a replica that is gone is counted no more.
    pub taken_back: Cell<u64>,
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

impl Counters {
    /// All of them, each with its name in Prometheus' text and what it counts.
    pub fn all(&self) -> Vec<(&'static str, &'static str, &Cell<u64>)> {
        // Whoever adds one is told here that it has to be shown.
        let Counters {
            stream_bytes_in,
            stream_bytes_out,
            file_bytes_in,
            file_bytes_out,
            commands,
            master_full,
            master_files,
            spool_failures,
            file_failures,
            state_failures,
            master_partial,
            taken_back,
            replica_full,
            own_files,
            replica_partial,
            dropped_slow,
            refused,
            connections,
        } = self;
        vec![
            ("stream_received_bytes_total", "Bytes of the stream from the master.", stream_bytes_in),
            ("stream_sent_bytes_total", "Bytes of the stream to all replicas.", stream_bytes_out),
            ("file_received_bytes_total", "Bytes of files from the master.", file_bytes_in),
            ("file_sent_bytes_total", "Bytes of files to all replicas.", file_bytes_out),
            ("commands_total", "Commands of the stream.", commands),
            ("master_full_total", "Full synchronisations with the master.", master_full),
            ("master_files_total", "Files that the master wrote for the relay.", master_files),
            ("spool_failures_total", "Files of the master that the spool had no room for.", spool_failures),
            ("file_failures_total", "Files of the master that did not come whole.", file_failures),
            ("state_failures_total", "Times that the state file could not be written.", state_failures),
            ("master_partial_total", "Partial synchronisations with the master.", master_partial),
            (
                "links_begun_anew_total",
                "Links begun anew so that a replica that is gone counts no more.",
                taken_back,
            ),
            ("replica_full_total", "Full synchronisations of replicas.", replica_full),
            ("own_files_total", "Files that the master wrote for one alone, as for a backup.", own_files),
            ("replica_partial_total", "Partial synchronisations of replicas.", replica_partial),
            ("replicas_dropped_total", "Replicas dropped because they were too slow.", dropped_slow),
            ("refused_total", "Connections refused or cut off, and wrong passwords.", refused),
            ("connections_total", "Connections so far.", connections),
        ]
    }
}

/// Adds to a counter.
pub fn count(counter: &Cell<u64>, more: u64) {
    counter.set(counter.get().wrapping_add(more));
}
