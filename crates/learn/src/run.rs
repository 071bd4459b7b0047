//! What a benchmark was asked to do, in full.

use crate::dma::{DmaOperation, DmaRun};
use offpath_logs::{
    LogCaution, LogConditions, LogDetail, LogMeasurement, LogOperation, LogTool, MetricSubject,
    TrafficDirections,
};
use offpath_quantity::{Bytes, Time};
use offpath_route::{LONGEST_MESSAGE, Responder, Verb};
use std::fmt;

/// What a run measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunKind {
    /// As many requests as go: bandwidth and rate of messages.
    Bandwidth,
    /// One request at a time: latency.
    Latency,
}

/// How long a run lasts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RunLength {
    /// So many requests, of all queue pairs together.
    Iterations(u64),
    /// So long, without its beginning and its end.
    Duration(Time),
}

/// A run of a test of queue pairs: everything that decides what it prints on a given system.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolRun {
    /// What it measures.
    pub kind: RunKind,
    /// What a request does.
    pub verb: Verb,
    /// Bytes of a request.
    pub payload: Bytes,
    /// Queue pairs; one thread posts for all.
    pub queue_pairs: u64,
    /// Requests of each queue pair that are posted ahead.
    pub tx_depth: u64,
    /// Requests behind one doorbell; 1 where each has its own.
    pub post_list: u64,
    /// Requests of a queue pair behind one completion.
    pub cq_moderation: u64,
    /// The largest payload that is posted inside the work request.
    pub inline: Bytes,
    /// READs and atomics of each queue pair in flight, where the run says so; else the device's own.
    pub outstanding_reads: Option<u64>,
    /// Payload of a packet on the network, where the run says so; else the system's own.
    pub mtu: Option<Bytes>,
    /// Which ways traffic goes.
    pub directions: TrafficDirections,
    /// How long it lasts; absent where nothing says it, and then its beginning and its end do not count.
    pub length: Option<RunLength>,
}

/// A program of perftest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolProgram {
    /// Its name.
    pub name: &'static str,
    /// What its requests do.
    pub verb: Verb,
    /// What it measures.
    pub kind: RunKind,
    /// Iterations of each queue pair that it runs where nobody says how many.
    pub iterations: u64,
    /// The largest payload that it posts inline where nobody says so.
    pub inline: u64,
}

/// The programs whose output can be predicted, with what each does where an option is left out: perftest's own.
pub const PROGRAMS: [ToolProgram; 8] = [
    ToolProgram {
        name: "ib_read_bw",
        verb: Verb::Read,
        kind: RunKind::Bandwidth,
        iterations: 1000,
        inline: 0,
    },
    ToolProgram {
        name: "ib_write_bw",
        verb: Verb::Write,
        kind: RunKind::Bandwidth,
        iterations: 5000,
        inline: 0,
    },
    ToolProgram {
        name: "ib_send_bw",
        verb: Verb::Send,
        kind: RunKind::Bandwidth,
        iterations: 1000,
        inline: 0,
    },
    ToolProgram {
        name: "ib_atomic_bw",
        verb: Verb::FetchAndAdd,
        kind: RunKind::Bandwidth,
        iterations: 1000,
        inline: 0,
    },
    ToolProgram {
        name: "ib_read_lat",
        verb: Verb::Read,
        kind: RunKind::Latency,
        iterations: 1000,
        inline: 0,
    },
    ToolProgram {
        name: "ib_write_lat",
        verb: Verb::Write,
        kind: RunKind::Latency,
        iterations: 1000,
        inline: 220,
    },
    ToolProgram {
        name: "ib_send_lat",
        verb: Verb::Send,
        kind: RunKind::Latency,
        iterations: 1000,
        inline: 236,
    },
    ToolProgram {
        name: "ib_atomic_lat",
        verb: Verb::FetchAndAdd,
        kind: RunKind::Latency,
        iterations: 1000,
        inline: 0,
    },
];

/// Requests of a queue pair that perftest posts ahead where nobody says how many.
pub const TOOL_TX_DEPTH: u64 = 128;
/// Requests behind one completion where nobody says how many.
pub const TOOL_CQ_MODERATION: u64 = 100;
/// A single payload above it has a completion for each request.
pub const TOOL_MODERATED: Bytes = Bytes::new(8192);
/// Completions that the tool takes in one look.
pub const TOOL_POLL_BATCH: u64 = 16;

impl ToolProgram {
    /// The program of that name.
    pub fn named(name: &str) -> Option<&'static ToolProgram> {
        PROGRAMS.iter().find(|program| program.name == name)
    }

    /// The run that it makes of a payload when nothing else is said.
    pub fn run(&self, payload: Bytes) -> ToolRun {
        ToolRun {
            inline: Bytes::new(self.inline),
            length: Some(RunLength::Iterations(self.iterations)),
            ..ToolRun::plain(self.kind, self.verb, payload)
        }
    }
}

/// Why a figure of a log has no prediction.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotARun {
    /// It is of a tool that measures something else.
    #[error("figures of {tool} are not those of queue pairs; `import` shows them")]
    OtherTool {
        /// The tool.
        tool: &'static str,
    },
    /// It is a figure that no model predicts, such as a peak.
    #[error(
        "`{metric}` is not predicted: means of bandwidth and rate are, and medians, means and least values of latencies"
    )]
    OtherMetric {
        /// The figure's key.
        metric: String,
    },
    /// The verb or the transport is none that is modelled.
    #[error("{what} is not modelled; READ, WRITE, SEND and atomics over RC are")]
    NotModelled {
        /// What.
        what: String,
    },
    /// A condition is one that no run has.
    #[error("{what} is {value}, and a run has {least} to {most}")]
    OutOfRange {
        /// Which.
        what: &'static str,
        /// What the log says.
        value: u64,
        /// The least.
        least: u64,
        /// The most.
        most: u64,
    },
    /// The row or its table contradicts itself.
    #[error("{why}")]
    Contradictory {
        /// What contradicts what.
        why: &'static str,
    },
    /// The log does not say what the figure depends on.
    #[error("the log does not say {}; take a log with its head, or write the command that ran on a line above the rows, with the options that it had, as `$ \
         PROGRAM -q N -t N -Q N SERVER`", .missing.join(", "))]
    Missing {
        /// What is missing, in words.
        missing: Vec<&'static str>,
    },
}

/// What makes a figure one that nothing is learnt from.
pub(crate) const DOUBTS: [LogCaution; 5] = [
    LogCaution::RateDiffers,
    LogCaution::MixedRows,
    LogCaution::Interleaved,
    LogCaution::ToItself,
    LogCaution::OtherCommand,
];

/// Fewer requests in flight than these, of all queue pairs, are bound by their latency.
const FEW_IN_FLIGHT: u64 = 16;
/// From how many queue pairs on their state may not fit into a NIC's cache, which nothing here models. It is eight times what any
/// log has that the model was held to.
pub const MANY_QUEUE_PAIRS: u64 = 256;
/// Most queue pairs of a run.
pub const MOST_QUEUE_PAIRS: u64 = 16_384;
/// The greatest MTU of a port of verbs, in bytes.
pub const MOST_MTU: u64 = 4096;
/// The most bytes that a queue takes within a work request, beyond any device's: an entry of the longest queue has fewer.
const MOST_INLINE: u64 = 1 << 14;
/// The most READs in flight of a queue pair: verbs count them in a byte.
const MOST_READS: u64 = 255;
/// The greatest depth of a queue of a run.
pub const MOST_DEPTH: u64 = 1 << 20;

/// Whether a device is by its name one in software, whose costs are a processor's.
pub(crate) fn is_software(device: &str) -> bool {
    ["rxe", "siw"].iter().any(|name| device.starts_with(name))
}

impl ToolRun {
    /// One queue pair as the tool has it, nothing inline, of no stated length.
    pub fn plain(kind: RunKind, verb: Verb, payload: Bytes) -> ToolRun {
        let is_bandwidth = kind == RunKind::Bandwidth;
        let moderation = if payload > TOOL_MODERATED { 1 } else { TOOL_CQ_MODERATION };
        ToolRun {
            kind,
            verb,
            payload,
            queue_pairs: 1,
            tx_depth: if is_bandwidth { TOOL_TX_DEPTH } else { 1 },
            post_list: 1,
            cq_moderation: if is_bandwidth { moderation } else { 1 },
            inline: Bytes::ZERO,
            outstanding_reads: None,
            mtu: None,
            directions: TrafficDirections::One,
            length: None,
        }
    }

    /// The run that a figure of a log was taken in.
    ///
    /// # Errors
    /// [`NotARun`] where it is of another kind, or where the log leaves something open that the figure depends on.
    /// Nothing is filled in: [`ToolRun::with`] tells what is known beside the log.
    pub fn of(measurement: &LogMeasurement) -> Result<ToolRun, NotARun> {
        let LogMeasurement { tool, metric, conditions, figure, cautions, .. } = measurement;
        if !matches!(tool, LogTool::Perftest | LogTool::Measure) {
            return Err(NotARun::OtherTool { tool: tool.name() });
        }
        let kind = match metric.subject {
            MetricSubject::Bandwidth | MetricSubject::OperationRate => RunKind::Bandwidth,
            MetricSubject::Latency => RunKind::Latency,
            _ => return Err(NotARun::OtherMetric { metric: metric.key(*figure) }),
        };
        // A device in software has no port that what goes to itself might not reach.
        let is_software = conditions.device.as_deref().is_some_and(is_software);
        let mut doubts = DOUBTS.into_iter().filter(|one| *one != LogCaution::ToItself || !is_software);
        if let Some(caution) = doubts.find(|caution| cautions.has(*caution)) {
            return Err(NotARun::Contradictory { why: caution.meaning() });
        }
        ToolRun::with(kind, conditions)
    }

    /// The run that conditions describe.
    ///
    /// # Errors
    /// As [`ToolRun::of`].
    pub fn with(kind: RunKind, conditions: &LogConditions) -> Result<ToolRun, NotARun> {
        let verb = match conditions.operation {
            Some(LogOperation::Read) => Some(Verb::Read),
            Some(LogOperation::Write) => Some(Verb::Write),
            Some(LogOperation::Send) => Some(Verb::Send),
            Some(LogOperation::CompareAndSwap) => Some(Verb::CompareAndSwap),
            Some(LogOperation::FetchAndAdd | LogOperation::Atomic) => Some(Verb::FetchAndAdd),
            Some(other) => return Err(NotARun::NotModelled { what: other.name().to_string() }),
            None => None,
        };
        if let Some(connection) = conditions.connection.as_deref()
            && connection != "RC"
        {
            return Err(NotARun::NotModelled { what: format!("a connection of type {connection}") });
        }
        ToolRun::check_modelled(conditions)?;
        let mut missing = Vec::new();
        let mut lacks = |what: &'static str, is_there: bool| {
            if !is_there {
                missing.push(what);
            }
        };
        let is_bandwidth = kind == RunKind::Bandwidth;
        let carries = verb.is_some_and(|verb| matches!(verb, Verb::Write | Verb::Send));
        lacks("the verb", verb.is_some());
        lacks("the payload", conditions.payload.is_some());
        lacks("the number of queue pairs", conditions.queue_pairs.is_some() || !is_bandwidth);
        lacks("the depth", conditions.tx_depth.is_some() || !is_bandwidth);
        lacks("the CQ moderation", conditions.cq_moderation.is_some() || !is_bandwidth);
        lacks("what goes inline", conditions.inline.is_some() || !carries);
        lacks("the directions", conditions.directions.is_some() || !is_bandwidth);
        let (Some(verb), Some(payload), true) = (verb, conditions.payload, missing.is_empty()) else {
            return Err(NotARun::Missing { missing });
        };
        ToolRun::check_range(conditions)?;
        let of = |number: Option<u64>| number.filter(|_| is_bandwidth).unwrap_or(1);
        let tx_depth = of(conditions.tx_depth);
        Ok(ToolRun {
            queue_pairs: of(conditions.queue_pairs),
            tx_depth,
            post_list: of(conditions.post_list),
            cq_moderation: of(conditions.cq_moderation).min(tx_depth),
            inline: conditions.inline.unwrap_or_default(),
            outstanding_reads: conditions.outstanding_reads,
            mtu: conditions.mtu,
            directions: conditions.directions.unwrap_or(TrafficDirections::One),
            length: match (conditions.duration, conditions.iterations) {
                (Some(duration), _) => Some(RunLength::Duration(duration)),
                (None, iterations) => iterations.map(RunLength::Iterations),
            },
            ..ToolRun::plain(kind, verb, payload)
        })
    }

    /// Refuses what a log states and the model has no number for: whatever explained the figure would be made up.
    pub(crate) fn check_modelled(conditions: &LogConditions) -> Result<(), NotARun> {
        let more = &conditions.more;
        let not_modelled = |what: String| Err(NotARun::NotModelled { what });
        if let Some(LogDetail::Number(threads @ 2..)) = more.get("posting_threads") {
            return not_modelled(format!("posting from {threads} threads"));
        }
        if let Some(LogDetail::Text(unread)) = more.get("unread_conditions") {
            return not_modelled(format!("a run of which the log states what cannot be read (`{unread}`)"));
        }
        // RoCE calls itself InfiniBand; iWARP and the transports of clouds have other packets.
        if let Some(LogDetail::Text(transport)) = more.get("transport")
            && **transport != *"IB"
        {
            return not_modelled(format!("a transport of type {transport}"));
        }
        if let Some(beside) = more.get("beside") {
            return not_modelled(format!("a run with {beside} beside it"));
        }
        if let Some(limit) = more.get("rate_limit") {
            return not_modelled(format!("a run that the tool limits to {limit} (`--rate_limit`)"));
        }
        if let Some(memory) = more.get("payload_memory") {
            return not_modelled(format!("a payload in memory of another kind (`{memory}`)"));
        }
        for (key, what) in [
            ("rocm_memory", "a payload in memory of another kind (`rocm`)"),
            ("musa_memory", "a payload in memory of another kind (`musa`)"),
            ("completion_events", "a program that sleeps until a completion (`--events`)"),
            ("on_demand_paging", "memory that is paged on demand (`--odp`)"),
            ("dual_port", "both ports at once (`--dualport`)"),
        ] {
            if more.get(key).is_some_and(|detail| *detail != LogDetail::Switch(false)) {
                return not_modelled(what.to_string());
            }
        }
        Ok(())
    }

    /// Refuses what no program runs: what is followed grows with some of these.
    pub(crate) fn check_range(conditions: &LogConditions) -> Result<(), NotARun> {
        let bytes = |size: Option<Bytes>| size.map(Bytes::get);
        for (what, value, least, most) in [
            ("the number of queue pairs", conditions.queue_pairs, 1, MOST_QUEUE_PAIRS),
            ("the depth", conditions.tx_depth, 1, MOST_DEPTH),
            ("the CQ moderation", conditions.cq_moderation, 1, MOST_DEPTH),
            ("the length of posted lists", conditions.post_list, 1, MOST_DEPTH),
            ("the MTU in bytes", bytes(conditions.mtu), 64, MOST_MTU),
            ("what goes inline in bytes", bytes(conditions.inline), 0, MOST_INLINE),
            ("the number of READs in flight", conditions.outstanding_reads, 1, MOST_READS),
            ("the payload in bytes", bytes(conditions.payload), 0, LONGEST_MESSAGE.get()),
        ] {
            if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
                return Err(NotARun::OutOfRange { what, value, least, most });
            }
        }
        Ok(())
    }

    /// The same with lists of requests behind one doorbell, each of which has one completion where nobody says otherwise.
    #[must_use]
    pub fn listed(self, post_list: u64) -> ToolRun {
        let cq_moderation = if post_list > 1 { post_list } else { self.cq_moderation };
        ToolRun { post_list, cq_moderation, ..self }
    }

    /// What its requests do: the verb, whether both sides send, and of a bandwidth test whether few requests are in flight. What was
    /// measured of one traffic says nothing of what predictions of another are wrong by: with few in flight it is the latency that
    /// binds, which a run with many does not tell.
    pub fn traffic(&self) -> String {
        let mut traffic = self.verb.name().to_string();
        if self.directions == TrafficDirections::Both {
            traffic += " both ways";
        }
        let each = match self.outstanding_reads.filter(|_| self.is_read()) {
            Some(reads) => reads.min(self.tx_depth),
            None => self.tx_depth,
        };
        if self.kind == RunKind::Bandwidth && each.saturating_mul(self.queue_pairs) < FEW_IN_FLIGHT {
            traffic += " with few in flight";
        }
        // Where the model lacks a mechanism, what few queue pairs were off by says nothing.
        if self.queue_pairs >= MANY_QUEUE_PAIRS {
            traffic += " of many queue pairs";
        }
        traffic
    }

    /// The run in words without its payload, as the rows of a sweep have it in common.
    pub fn test(&self) -> String {
        self.in_words("")
    }

    fn in_words(&self, payload: &str) -> String {
        let is_bandwidth = self.kind == RunKind::Bandwidth;
        let what = if is_bandwidth { "bandwidth" } else { "latency" };
        let mut words = format!("{} {what}{payload}", self.verb);
        if is_bandwidth {
            let pairs = if self.queue_pairs == 1 { "queue pair" } else { "queue pairs" };
            words += &format!(", {} {pairs} of depth {}", self.queue_pairs, self.tx_depth);
        }
        if self.directions == TrafficDirections::Both {
            words += ", both directions";
        }
        words
    }

    /// Whether READs and atomics in flight are counted.
    pub fn is_read(&self) -> bool {
        self.verb == Verb::Read || self.verb.row().responder == Responder::Changes
    }
}

impl fmt::Display for ToolRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.in_words(&format!(" of {}", self.payload)))
    }
}

/// What a benchmark was asked to do, of queue pairs or of a device's DMA.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MeasuredRun {
    /// Of queue pairs.
    QueuePairs(ToolRun),
    /// Of a device's DMA.
    Dma(DmaRun),
}

impl MeasuredRun {
    /// The run that a figure of a log was taken in.
    ///
    /// # Errors
    /// [`NotARun`] as of either.
    pub fn of(measurement: &LogMeasurement) -> Result<MeasuredRun, NotARun> {
        match measurement.tool {
            LogTool::PcieBench => DmaRun::of(measurement).map(MeasuredRun::Dma),
            _ => ToolRun::of(measurement).map(MeasuredRun::QueuePairs),
        }
    }

    /// What it measures.
    pub fn kind(&self) -> RunKind {
        match self {
            MeasuredRun::QueuePairs(run) => run.kind,
            MeasuredRun::Dma(run) => run.kind,
        }
    }

    /// What its requests do, as [`ToolRun::traffic`] says it; of a device's DMA that.
    pub fn traffic(&self) -> String {
        match self {
            MeasuredRun::QueuePairs(run) => run.traffic(),
            MeasuredRun::Dma(_) => "dma".to_string(),
        }
    }

    /// Bytes of a request.
    pub fn payload(&self) -> Bytes {
        match self {
            MeasuredRun::QueuePairs(run) => run.payload,
            MeasuredRun::Dma(run) => run.payload,
        }
    }

    /// The verb, where it is one alone.
    pub fn verb(&self) -> Option<Verb> {
        match self {
            MeasuredRun::QueuePairs(run) => Some(run.verb),
            MeasuredRun::Dma(DmaRun { operation: DmaOperation::Read, .. }) => Some(Verb::Read),
            MeasuredRun::Dma(DmaRun { operation: DmaOperation::Write, .. }) => Some(Verb::Write),
            MeasuredRun::Dma(_) => None,
        }
    }

    /// What it has in common with those of its series, which differ from it in their payload alone: how long they go is
    /// no difference.
    pub fn series(&self) -> MeasuredRun {
        match self {
            MeasuredRun::QueuePairs(run) => MeasuredRun::QueuePairs(ToolRun {
                payload: Bytes::ZERO,
                cq_moderation: 1,
                length: None,
                ..run.clone()
            }),
            MeasuredRun::Dma(run) => MeasuredRun::Dma(DmaRun { payload: Bytes::ZERO, ..run.clone() }),
        }
    }

    /// The run, where it is of queue pairs.
    pub fn queue_pairs(&self) -> Option<&ToolRun> {
        match self {
            MeasuredRun::QueuePairs(run) => Some(run),
            MeasuredRun::Dma(_) => None,
        }
    }

    /// The run, where it is of a device's DMA.
    pub fn dma(&self) -> Option<&DmaRun> {
        match self {
            MeasuredRun::QueuePairs(_) => None,
            MeasuredRun::Dma(run) => Some(run),
        }
    }
}

impl fmt::Display for MeasuredRun {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasuredRun::QueuePairs(run) => run.fmt(f),
            MeasuredRun::Dma(run) => run.fmt(f),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Whatever a line of a log says, it makes no run that cannot be followed.
    #[test]
    fn what_no_run_has_is_left_aside() {
        let usual = LogConditions {
            operation: Some(LogOperation::Read),
            payload: Some(Bytes::new(65_536)),
            queue_pairs: Some(1),
            tx_depth: Some(128),
            cq_moderation: Some(100),
            mtu: Some(Bytes::new(4096)),
            directions: Some(TrafficDirections::One),
            ..LogConditions::default()
        };
        assert!(ToolRun::with(RunKind::Bandwidth, &usual).is_ok());
        let with = |change: &dyn Fn(&mut LogConditions)| {
            let mut changed = usual.clone();
            change(&mut changed);
            ToolRun::with(RunKind::Bandwidth, &changed).err().map(|why| why.to_string()).unwrap_or_default()
        };
        for (said, words) in [
            (with(&|of| of.mtu = Some(Bytes::ZERO)), "the MTU in bytes is 0"),
            (with(&|of| of.queue_pairs = Some(4_000_000_000)), "the number of queue pairs is 4000000000"),
            (with(&|of| of.queue_pairs = Some(0)), "the number of queue pairs is 0"),
            (with(&|of| of.tx_depth = Some(0)), "the depth is 0"),
            (with(&|of| of.cq_moderation = Some(0)), "the CQ moderation is 0"),
            (with(&|of| of.payload = Some(Bytes::new(9 << 60))), "the payload in bytes is"),
        ] {
            assert!(said.contains(words), "{words}: {said}");
        }
        let more = |key: &'static str, detail: LogDetail| {
            with(&|of| of.more = Arc::new([(key, detail.clone())].into_iter().collect()))
        };
        let on = || LogDetail::Switch(true);
        for (said, words) in [
            (more("rate_limit", LogDetail::Text("50 g".into())), "limits to 50 g"),
            (more("payload_memory", LogDetail::Text("cuda".into())), "memory of another kind (`cuda`)"),
            (more("rocm_memory", on()), "memory of another kind (`rocm`)"),
            (more("completion_events", on()), "`--events`"),
            (more("on_demand_paging", on()), "`--odp`"),
            (more("dual_port", on()), "both ports"),
            (more("dual_port", LogDetail::Switch(false)), ""),
        ] {
            assert!(said.contains(words) && said.is_empty() == words.is_empty(), "{words}: {said}");
        }
    }

    /// What deep queues were measured at says nothing of one request at a time.
    #[test]
    fn few_requests_in_flight_are_a_traffic_of_their_own() {
        let program = ToolProgram::named("ib_write_bw").expect("it is one of perftest's");
        let of = |tx_depth: u64, queue_pairs: u64| {
            ToolRun { tx_depth, queue_pairs, ..program.run(Bytes::new(64)) }.traffic()
        };
        assert_eq!(of(128, MANY_QUEUE_PAIRS), "write of many queue pairs");
        let few = "write with few in flight";
        assert_eq!([of(128, 1), of(16, 1), of(1, 1), of(1, 32)], ["write", "write", few, "write"]);
        let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
        let one = ToolRun { outstanding_reads: Some(1), ..program.run(Bytes::new(64)) };
        assert_eq!(one.traffic(), "read with few in flight");
        let latency = ToolProgram::named("ib_write_lat").expect("it is one of perftest's");
        assert_eq!(latency.run(Bytes::new(64)).traffic(), "write");
    }
}
