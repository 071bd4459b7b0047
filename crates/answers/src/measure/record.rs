//! The records of a file of measurements: a stamp, then a line for each point.

use super::{FailedPointAnswer, MeasureEnvironment};
use offpath_learn::RunKind;
use offpath_logs::TrafficDirections;
use offpath_measure::{FlowFigures, MeasurePoint, MeasuredWindow};
use offpath_quantity::Time;
use serde::{Deserialize, Serialize};

/// What every figure of a file is of: its first line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasureStamp {
    /// Version of the file's form, which is that of the schema.
    pub offpath_measure: u32,
    /// The version of offpath.
    pub version: String,
    /// The command line that began the file.
    pub command: String,
    /// `twin` or `verbs`.
    #[cfg_attr(test, schemars(extend("enum" = ["twin", "verbs"])))]
    pub backend: String,
    /// The device.
    pub device: String,
    /// The testbed that the twin stands in; null on verbs.
    pub testbed: Option<String>,
    /// The card's mode; null on verbs.
    pub mode: Option<String>,
    /// Overlays and settings in force.
    pub overlays: Vec<String>,
    /// CRC-32 of the names and values of the profile's numbers; null on verbs.
    pub profile_crc32: Option<String>,
    /// The firmware's version; null on the twin.
    pub firmware: Option<String>,
    /// Payload of a packet on the network.
    pub mtu_bytes: u64,
    /// Endpoints that other processes answer for; empty where both ends were in one.
    pub peers: Vec<String>,
    /// The seed of every draw.
    pub seed: u64,
    /// Windows of a point.
    pub windows: u64,
    /// CRC-32 of the names of the suite's points.
    pub suite_crc32: String,
    /// Points of the suite, those that the backend cannot run among them, so that a reader knows which file is whole; null in a
    /// file that does not state it.
    #[serde(default)]
    pub suite_points: Option<u64>,
    /// What the machine says of itself.
    pub environment: MeasureEnvironment,
}

/// A window of a point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WindowAnswer {
    /// Requests that were carried in it, of all flows in both directions: those in flight at its ends by their share.
    pub requests: u64,
    /// The time that these took.
    pub time_ns: f64,
    /// Of a latency test its median; null where bandwidth is measured.
    pub latency_ns_median: Option<f64>,
}

/// A point that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasuredPointAnswer {
    /// Its name.
    pub point: String,
    /// From whom to whom.
    pub path: String,
    /// What a request does.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::verbs())))]
    pub verb: String,
    /// `bandwidth`, as many requests as go, or `latency`, one at a time.
    #[cfg_attr(test, schemars(extend("enum" = ["bandwidth", "latency"])))]
    pub kind: String,
    /// Bytes of a request.
    pub payload_bytes: u64,
    /// Queue pairs.
    pub queue_pairs: u64,
    /// Requests of each queue pair in flight.
    pub tx_depth: u64,
    /// Requests behind one doorbell.
    pub post_list: u64,
    /// Requests of a queue pair behind one completion.
    pub cq_moderation: u64,
    /// The largest payload that goes inline.
    pub inline_bytes: u64,
    /// Threads that post, each for its share of the queue pairs.
    pub posting_threads: u64,
    /// `one`, or `both`, of which rates are the sum.
    #[cfg_attr(test, schemars(extend("enum" = ["one", "both"])))]
    pub directions: String,
    /// What ran at the same time, as `client-soc:read`; null where nothing did.
    pub beside: Option<String>,
    /// Payload of a packet on the network.
    pub mtu_bytes: u64,
    /// The device.
    pub device: String,
    /// The windows, as they were measured.
    pub windows: Vec<WindowAnswer>,
    /// How many.
    pub windows_measured: u64,
    /// Messages: the median of the windows; null where latency is measured.
    pub operations_per_s_median: Option<f64>,
    /// The lowest window.
    pub operations_per_s_min: Option<f64>,
    /// The highest window.
    pub operations_per_s_max: Option<f64>,
    /// The median as payload, in 10^9 bits.
    pub bandwidth_gbit_per_s_median: Option<f64>,
    /// Messages of what ran beside it, the median of its windows.
    pub beside_operations_per_s_median: Option<f64>,
    /// Of all requests; half a round trip for WRITE and SEND. Null where bandwidth is measured.
    pub latency_ns_median: Option<f64>,
    /// The least.
    pub latency_ns_min: Option<f64>,
    /// 99 of 100 are at most this.
    pub latency_ns_p99: Option<f64>,
    /// The greatest.
    pub latency_ns_max: Option<f64>,
    /// From the lowest to the highest window, as a share of the median.
    pub spread: f64,
    /// All windows together, by the backend's clock: virtual time on the twin.
    pub measured_ns: u64,
    /// How long the tool took for the point, connections and warm-up included.
    pub took_ms: f64,
}

/// A point that the backend cannot run.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedPointAnswer {
    /// Its name.
    pub skipped: String,
    /// Why.
    pub why: String,
}

/// A line of a file of measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum MeasureRecord {
    /// The first.
    Stamp(Box<MeasureStamp>),
    /// A point.
    Point(Box<MeasuredPointAnswer>),
    /// A point that is skipped.
    Skipped(SkippedPointAnswer),
    /// A point that failed, which is tried again.
    Failed(FailedPointAnswer),
}

/// The middle one of some values.
fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        count if count % 2 == 1 => sorted[count / 2],
        count => f64::midpoint(sorted[count / 2 - 1], sorted[count / 2]),
    }
}

/// What is kept of a figure: a tenth of a nanosecond, or of a request each second.
fn kept(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// From the lowest to the highest, as a share of the median.
fn spread(values: &[f64]) -> f64 {
    let middle = median(values);
    let (low, high) = ends(values);
    if middle > 0.0 { ((high - low) / middle * 1e6).round() / 1e6 } else { 0.0 }
}

fn ends(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, 0.0), |(low, high), one| (one.min(low), one.max(high)))
}

fn rate(window: &MeasuredWindow) -> f64 {
    window.requests as f64 / window.time.as_seconds().max(1e-12)
}

impl MeasuredPointAnswer {
    /// What a point's flows gave.
    pub(super) fn of(
        point: &MeasurePoint,
        flows: &[FlowFigures],
        took_ms: f64,
        stamp: &MeasureStamp,
    ) -> MeasuredPointAnswer {
        let run = &point.run;
        let is_latency = run.kind == RunKind::Latency;
        // What comes back counts with what goes there; what is beside is apart.
        let count = if run.directions == TrafficDirections::Both { 2 } else { 1 };
        // Half of both directions would pass for the whole.
        let own = flows.get(..count).expect("a flow of each direction");
        let least = own.iter().map(|flow| flow.windows.len()).min().unwrap_or(0);
        let rates: Vec<f64> =
            (0..least).map(|at| own.iter().map(|flow| rate(&flow.windows[at])).sum()).collect();
        let beside = point.beside.as_ref().and_then(|_| flows.get(count));
        let beside_rates: Vec<f64> =
            beside.map(|flow| flow.windows.iter().map(rate).collect()).unwrap_or_default();
        let samples = own.first().map(|flow| flow.latencies.as_slice()).unwrap_or_default();
        let mut all: Vec<Time> = samples.concat();
        all.sort_unstable();
        let quantile = |share: f64| {
            let at = ((all.len() as f64 * share).ceil() as usize).clamp(1, all.len().max(1)) - 1;
            all.get(at).map(|time| kept(time.as_ns()))
        };
        let medians: Vec<f64> = samples
            .iter()
            .map(|window| median(&window.iter().map(|time| time.as_ns()).collect::<Vec<_>>()))
            .collect();
        let windows = (0..least).map(|at| WindowAnswer {
            requests: own.iter().map(|flow| flow.windows[at].requests).sum(),
            time_ns: kept(own[0].windows[at].time.as_ns()),
            latency_ns_median: medians.get(at).copied().map(kept),
        });
        let windows: Vec<WindowAnswer> = windows.collect();
        let of_rate = |value: f64| (!is_latency).then(|| kept(value));
        let (low, high) = ends(&rates);
        let gbit = median(&rates) * run.payload.get() as f64 * 8.0 / 1e9;
        MeasuredPointAnswer {
            point: point.to_string(),
            path: point.path.to_string(),
            verb: run.verb.to_string(),
            kind: if is_latency { "latency" } else { "bandwidth" }.to_string(),
            payload_bytes: run.payload.get(),
            queue_pairs: run.queue_pairs,
            tx_depth: run.tx_depth,
            post_list: run.post_list,
            cq_moderation: run.cq_moderation,
            inline_bytes: run.inline.get(),
            posting_threads: point.threads,
            directions: run.directions.name().to_string(),
            beside: point.beside.as_ref().map(|beside| format!("{}:{}", beside.path, beside.verb)),
            mtu_bytes: stamp.mtu_bytes,
            device: stamp.device.clone(),
            windows_measured: windows.len() as u64,
            measured_ns: own
                .first()
                .map_or(0, |flow| flow.windows.iter().map(|one| one.time.ps()).sum::<u64>() / 1000),
            windows,
            operations_per_s_median: of_rate(median(&rates)),
            operations_per_s_min: of_rate(low),
            operations_per_s_max: of_rate(high),
            bandwidth_gbit_per_s_median: (!is_latency).then(|| (gbit * 1e6).round() / 1e6),
            beside_operations_per_s_median: beside.map(|_| kept(median(&beside_rates))),
            latency_ns_median: quantile(0.5),
            latency_ns_min: quantile(0.0),
            latency_ns_p99: quantile(0.99),
            latency_ns_max: quantile(1.0),
            spread: if is_latency { spread(&medians) } else { spread(&rates) },
            took_ms: kept(took_ms),
        }
    }
}
