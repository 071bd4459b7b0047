//! What a load on the log says.

use super::{Driven, Writer};
use crate::system::{Block, Cell, RunPage, RunTable};
use offpath_quantity::figures::{ns, round, short, us};
use offpath_quantity::{BitRate, Bytes, Time};
use serde::Serialize;

/// Where the host's time went, for a write.
#[derive(Clone, Debug, Serialize)]
pub struct HostTime {
    /// Staging chunks and posting them.
    post_us: f64,
    /// From a write's last append to its last acknowledgement.
    wait_us: f64,
    /// Appending to the own log.
    file_system_us: f64,
    /// Compressing, where the host does.
    compression_us: f64,
}

/// What was written.
#[derive(Clone, Debug, Serialize)]
pub struct Wrote {
    /// How chunks reach the first backup.
    placement: &'static str,
    /// Backups in the chain.
    backups: usize,
    /// Bytes of a chunk.
    chunk_bytes: u32,
    /// Bytes of a write.
    write_bytes: u64,
    /// Sessions, each with one write in flight.
    sessions: u32,
    /// What was drawn follows from it.
    seed: u64,
    /// What a core of the twin is charged for appends, 0 for nothing; null where the time is measured.
    file_gbit_per_s: Option<f64>,
    /// The same for compression.
    compress_gbit_per_s: Option<f64>,
    /// Writes, each acknowledged.
    writes: u64,
    /// Written over the middle half of the writes, without the ramps at both ends.
    throughput_gbit_per_s: f64,
    /// The mean time of a write.
    latency_ns_mean: f64,
    /// What half of the writes took at most.
    latency_ns_p50: f64,
    /// What 99 of 100 took at most.
    latency_ns_p99: f64,
    /// The longest.
    latency_ns_max: f64,
    /// Where the host's time of a write goes, the mean over all.
    host_time_per_write: HostTime,
    /// Chunks that went by the card, entries brought again included.
    chunks_by_card: u64,
    /// Chunks that went by the host.
    chunks_by_host: u64,
    /// From the first write to the last acknowledgement.
    window_us: f64,
    /// How long the run took by the backend's clock; simulated on the twin.
    elapsed_us: f64,
}

impl Wrote {
    pub(super) fn of(parts: &Writer, driven: &Driven, elapsed: Time, seed: u64) -> Wrote {
        let each = |time: Time| round(time.as_us() / driven.writes.max(1) as f64);
        let (options, charged) = (&parts.shape.options, parts.shape.charged);
        let gbit = |rate: BitRate| round(rate.as_gbit_per_s());
        Wrote {
            placement: options.alternative.label(),
            backups: options.chain.len(),
            chunk_bytes: options.chunk_bytes,
            write_bytes: parts.load.bytes,
            sessions: parts.load.sessions,
            seed,
            file_gbit_per_s: charged.map(|charged| gbit(charged.file)),
            compress_gbit_per_s: charged.map(|charged| gbit(charged.compress)),
            writes: driven.writes,
            throughput_gbit_per_s: round(driven.bits_per_second / 1e9),
            latency_ns_mean: ns(driven.mean_latency),
            latency_ns_p50: ns(driven.median_latency),
            latency_ns_p99: ns(driven.p99_latency),
            latency_ns_max: ns(driven.worst_latency),
            host_time_per_write: HostTime {
                post_us: each(driven.parts.post),
                wait_us: each(driven.parts.wait),
                file_system_us: each(driven.parts.file_system),
                compression_us: each(driven.parts.compression),
            },
            chunks_by_card: driven.by_card,
            chunks_by_host: driven.by_host,
            window_us: us(driven.elapsed),
            elapsed_us: us(elapsed),
        }
    }

    /// The same for people.
    pub(super) fn page(&self) -> RunPage {
        let chain = match self.backups {
            0 => "no backup in the chain, so nothing is replicated".to_string(),
            1 => "1 backup in the chain".to_string(),
            count => format!("{count} backups in the chain"),
        };
        let (chunk, write) = (Bytes::new(self.chunk_bytes.into()), Bytes::new(self.write_bytes));
        let title = format!("{}, {chain}, chunks of {chunk}", self.placement);
        let mut text =
            format!("{} writes of {write}, {} at once; seed {}\n", self.writes, self.sessions, self.seed);
        let charged = self.file_gbit_per_s.zip(self.compress_gbit_per_s);
        if let Some((file, compress)) = charged {
            text += &format!(
                "a core is charged {} Gbit/s of appends and {} Gbit/s of compression (assumed)\n",
                short(file),
                short(compress)
            );
        }
        let table = |title, rows: &[(&str, f64)]| {
            let cells = |(what, value): &(&str, f64)| {
                vec![Cell::Name((*what).to_string()), Cell::Number(short(*value))]
            };
            Block::Table(RunTable { header: vec![title, "us"], rows: rows.iter().map(cells).collect() })
        };
        let rate = short(self.throughput_gbit_per_s);
        let parts = &self.host_time_per_write;
        let blocks = vec![
            Block::Text(text),
            Block::Heading(format!("{rate} Gbit/s, over the middle half of the writes")),
            table(
                "latency of a write",
                &[
                    ("mean", self.latency_ns_mean / 1e3),
                    ("p50", self.latency_ns_p50 / 1e3),
                    ("p99", self.latency_ns_p99 / 1e3),
                    ("max", self.latency_ns_max / 1e3),
                ],
            ),
            Block::Heading(format!("The host's time for a write of {write}")),
            table(
                "part",
                &[
                    ("post", parts.post_us),
                    ("wait for acknowledgement", parts.wait_us),
                    ("file system", parts.file_system_us),
                    ("compression", parts.compression_us),
                ],
            ),
            Block::Text(format!("{}\n", overlap(self.sessions))),
            Block::Text(format!(
                "\n{} chunks by the card, {} by the host\n",
                self.chunks_by_card, self.chunks_by_host
            )),
            Block::Stations,
            Block::Text(format!(
                "\nmeasured {} ms of {} ms{}\n",
                short(self.window_us / 1e3),
                short(self.elapsed_us / 1e3),
                if charged.is_some() { " simulated" } else { "" }
            )),
        ];
        RunPage { title, blocks }
    }
}

/// How the parts of a write's time go together with its latency.
fn overlap(sessions: u32) -> &'static str {
    match sessions {
        1 => "Parts of a write overlap, so they may add up to more than its latency.",
        _ => {
            "Parts of a write overlap, and its latency also holds the wait for the writes before it: they do not add up."
        }
    }
}
