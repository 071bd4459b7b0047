//! One run of the characterisation, and how long it is measured.

use offpath_learn::{RunKind, ToolRun};
use offpath_logs::TrafficDirections;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Path, Verb};
use std::fmt;

/// Bytes at the end of a WRITE that is looked for in memory: a word that tells it from the one before.
pub(crate) const MARK: Bytes = Bytes::new(8);

/// What runs at the same time as a run, with its payload, queue pairs and depth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BesideFlow {
    /// What its requests do.
    pub verb: Verb,
    /// From whom to whom.
    pub path: Path,
}

/// One run of the characterisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurePoint {
    /// From whom to whom.
    pub path: Path,
    /// What is run.
    pub run: ToolRun,
    /// Threads that post, each for its share of the queue pairs.
    pub threads: u64,
    /// What runs at the same time.
    pub beside: Option<BesideFlow>,
}

impl MeasurePoint {
    /// Requests that are in flight at most, of all queue pairs together.
    pub fn in_flight(&self) -> u64 {
        self.run.queue_pairs.saturating_mul(self.run.tx_depth)
    }

    /// Why no backend measures it; `None` where it may be measured.
    pub fn refused(&self) -> Option<String> {
        let ToolRun { kind, verb, payload, .. } = self.run;
        let is_seen = payload >= MARK && payload.get().is_multiple_of(MARK.get());
        (kind == RunKind::Latency && verb == Verb::Write && !is_seen).then(|| {
            format!(
                "a WRITE is over when its last {MARK} are seen in memory as one word, so only payloads that are a multiple \
                 of {MARK} have a latency; take another `--size`"
            )
        })
    }

    /// Whether the model of one posting thread has it: one thread, and nothing at the same time.
    pub fn is_plain(&self) -> bool {
        self.threads == 1 && self.beside.is_none()
    }
}

/// Its name: two points of a suite differ in it.
impl fmt::Display for MeasurePoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ToolRun { kind, verb, payload, queue_pairs, tx_depth, post_list, cq_moderation, inline, .. } =
            &self.run;
        let what = if *kind == RunKind::Latency { "latency" } else { "bandwidth" };
        write!(f, "{} {verb} {what} {}B", self.path, payload.get())?;
        if *kind == RunKind::Bandwidth {
            write!(f, " qps={queue_pairs} depth={tx_depth} list={post_list} cq={cq_moderation}")?;
        }
        if *inline > Bytes::ZERO {
            write!(f, " inline={}B", inline.get())?;
        }
        if self.threads > 1 {
            write!(f, " threads={}", self.threads)?;
        }
        if self.run.directions == TrafficDirections::Both {
            f.write_str(" both-directions")?;
        }
        match &self.beside {
            Some(BesideFlow { verb, path }) => write!(f, " beside={path}:{verb}"),
            None => Ok(()),
        }
    }
}

/// How long a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeasuringEffort {
    /// Requests before the first window.
    pub warm_up: u64,
    /// Requests of a window, at least.
    pub requests: u64,
    /// How many windows.
    pub windows: u64,
    /// How long a window is at least.
    pub time: Time,
    /// After which time no window is begun any more but the first.
    pub longest: Time,
}

/// A burst of a large payload costs as much to carry as a small request.
const BURST: u64 = 16 << 10;
/// Requests of a window of small payloads.
const REQUESTS: u64 = 4_000;
/// The least requests of a window.
const LEAST: u64 = 100;
/// Requests of a window that are awaited one by one.
const SAMPLES: u64 = 200;

impl MeasuringEffort {
    /// So many windows of a point that takes no longer than its requests.
    pub fn of(point: &MeasurePoint, windows: u64) -> MeasuringEffort {
        let bursts = point.run.payload.get().div_ceil(BURST).max(1);
        let (warm_up, requests) = match point.run.kind {
            RunKind::Latency => (10, (SAMPLES / bursts).max(20)),
            // What fills the queues is no part of a window, and one is several turns of all queues.
            RunKind::Bandwidth => {
                let in_flight = point.in_flight();
                let requests = (REQUESTS / bursts).max(LEAST).max(2 * in_flight);
                // Requests of several bursts share the links, and which of them go together settles after some turns.
                let (turns, windows) = if bursts > 1 { (8, 2) } else { (2, 0) };
                ((turns * in_flight).max(windows * requests), requests)
            }
        };
        let longest = Time::from_ms(60_000);
        MeasuringEffort { warm_up, requests, windows, time: Time::ZERO, longest }
    }

    /// The same with windows of so much time at least: on a clock that others disturb.
    pub fn lasting(self, time: Time) -> MeasuringEffort {
        MeasuringEffort { time, ..self }
    }

    /// Requests that the run takes at least.
    pub fn all_requests(&self) -> u64 {
        self.warm_up.saturating_add(self.requests.saturating_mul(self.windows))
    }
}
