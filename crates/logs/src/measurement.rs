//! What a log says: figures with their exact meaning, the conditions that they were taken under, and their lines.

use crate::decimal::Decimal;
use offpath_quantity::{BitRate, Bytes, PS_PER_SECOND, Time};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Who wrote a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogTool {
    /// linux-rdma perftest: `ib_write_bw` and its like.
    Perftest,
    /// pcie-bench of a programmable NIC.
    PcieBench,
    /// stress-ng.
    StressNg,
    /// fio.
    Fio,
    /// bdevperf of SPDK.
    Spdk,
    /// sysbench, its memory test.
    Sysbench,
    /// The OSU micro-benchmarks.
    Osu,
    /// nccl-tests, and rccl-tests, which print the same.
    NcclTests,
    /// `offpath measure`.
    Measure,
    /// Readings of counters: ethtool, `rdma statistic`, sysfs, Prometheus.
    Counters,
}

impl LogTool {
    /// The tool's own name.
    pub fn name(self) -> &'static str {
        match self {
            LogTool::Perftest => "perftest",
            LogTool::PcieBench => "pcie-bench",
            LogTool::StressNg => "stress-ng",
            LogTool::Fio => "fio",
            LogTool::Spdk => "spdk",
            LogTool::Sysbench => "sysbench",
            LogTool::Osu => "osu",
            LogTool::NcclTests => "nccl-tests",
            LogTool::Measure => "offpath-measure",
            LogTool::Counters => "counters",
        }
    }
}

/// A rate of operations, in millionths of one per second: a benchmark of large units may do less than one a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkRate(u64);

impl WorkRate {
    /// A rate of so many millionths of an operation per second.
    pub const fn from_micro_per_s(micro: u64) -> WorkRate {
        WorkRate(micro)
    }
    /// Millionths of an operation per second.
    pub const fn micro_per_s(self) -> u64 {
        self.0
    }
    /// Operations per second, for printing and statistics.
    ///
    /// ```
    /// # use offpath_logs::WorkRate;
    /// assert_eq!(WorkRate::from_micro_per_s(2_500_000).per_s(), 2.5);
    /// ```
    pub fn per_s(self) -> f64 {
        self.0 as f64 / 1e6
    }
}

/// A figure in its base unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum LogFigure {
    /// A span of time.
    Time(Time),
    /// Bits of payload per second.
    BitRate(BitRate),
    /// Operations per second.
    Rate(WorkRate),
    /// Bytes.
    Bytes(Bytes),
    /// How many.
    Count(u64),
    /// Processor cycles, in hundredths: the log does not say how long one is.
    CentiCycles(u64),
    /// A share of a whole, in percent.
    Percent(f64),
    /// A number whose unit only its name tells.
    Number(f64),
}

impl LogFigure {
    /// The figure in the unit of its key: nanoseconds, Gbit/s, operations per second, bytes, cycles or percent.
    ///
    /// ```
    /// # use offpath_logs::LogFigure;
    /// # use offpath_quantity::Time;
    /// assert_eq!(LogFigure::Time(Time::from_us(2)).value(), 2000.0);
    /// ```
    pub fn value(self) -> f64 {
        match self {
            LogFigure::Time(time) => time.as_ns(),
            LogFigure::BitRate(rate) => rate.as_gbit_per_s(),
            LogFigure::Rate(rate) => rate.per_s(),
            LogFigure::Bytes(bytes) => bytes.get() as f64,
            LogFigure::Count(count) => count as f64,
            LogFigure::CentiCycles(cycles) => cycles as f64 / 100.0,
            LogFigure::Percent(number) | LogFigure::Number(number) => number,
        }
    }

    /// The unit as a part of a key's name; empty where the name tells it.
    pub fn unit(self) -> &'static str {
        match self {
            LogFigure::Time(_) => "ns",
            LogFigure::BitRate(_) => "gbit_per_s",
            LogFigure::Rate(_) => "per_s",
            LogFigure::Bytes(_) => "bytes",
            LogFigure::Count(_) => "count",
            LogFigure::CentiCycles(_) => "cycles",
            LogFigure::Percent(_) => "percent",
            LogFigure::Number(_) => "",
        }
    }
}

/// What a printed number is worth in a base unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    /// Time, printed in units of so many picoseconds.
    Time(u64),
    /// A bit rate, printed in units of so many bits per second.
    BitRate(u64),
    /// Operations, printed in units of so many per second.
    Rate(u64),
    Bytes(u64),
    Count,
    Cycles,
    Percent,
    Number,
}

impl Scale {
    pub(crate) const NANOSECONDS: Scale = Scale::Time(1_000);
    pub(crate) const MICROSECONDS: Scale = Scale::Time(1_000_000);
    pub(crate) const MILLISECONDS: Scale = Scale::Time(1_000_000_000);
    pub(crate) const SECONDS: Scale = Scale::Time(PS_PER_SECOND);
    pub(crate) const GBIT_PER_S: Scale = Scale::BitRate(1_000_000_000);
    pub(crate) const MIB_PER_S: Scale = Scale::BitRate(8 << 20);
    pub(crate) const PER_S: Scale = Scale::Rate(1);

    /// The figure and what one unit of its last printed digit is worth; nothing where it is out of range.
    pub(crate) fn figure(self, number: Decimal) -> Option<(LogFigure, LogFigure)> {
        let both = |unit: u128| Some((number.times(unit)?, number.step(unit)?));
        let of = |unit, figure: fn(u64) -> LogFigure| {
            both(unit).map(|(value, step)| (figure(value), figure(step)))
        };
        match self {
            Scale::Time(ps) => of(ps.into(), |ps| LogFigure::Time(Time::from_ps(ps))),
            Scale::BitRate(bits) => {
                of(bits.into(), |bits| LogFigure::BitRate(BitRate::from_bits_per_second(bits)))
            }
            Scale::Rate(unit) => of(u128::from(unit) * 1_000_000, |micro| LogFigure::Rate(WorkRate(micro))),
            Scale::Bytes(bytes) => of(bytes.into(), |bytes| LogFigure::Bytes(Bytes::new(bytes))),
            Scale::Count => of(1, LogFigure::Count),
            Scale::Cycles => of(100, LogFigure::CentiCycles),
            Scale::Percent | Scale::Number => {
                let figure = |value| match self {
                    Scale::Percent => LogFigure::Percent(value),
                    _ => LogFigure::Number(value),
                };
                Some((figure(number.approximate()), figure(2.0 * number.rounding())))
            }
        }
    }
}

/// What a figure is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricSubject {
    /// Bits of payload per second; both directions together where traffic goes both ways.
    Bandwidth,
    /// Bandwidth that each link of a ring would carry for a collective, as nccl-tests define it.
    BusBandwidth,
    /// Messages, reads or writes per second.
    OperationRate,
    /// Bogus operations of a stressor per second of real time.
    BogoRate,
    /// The same per second of processor time, of users and system.
    BogoRateOfProcessorTime,
    /// Bogus operations that a stressor did.
    BogoOperations,
    /// Time of one operation; [`LatencySpan`] says from where to where.
    Latency,
    /// How long the whole run took.
    RunTime,
    /// Processor time of users in the run.
    UserTime,
    /// Processor time of the system in the run.
    SystemTime,
    /// Processor use.
    ProcessorUse,
    /// What a counter said when it was read. It counts since the driver was loaded: only the difference of two readings
    /// measures anything.
    Counter,
    /// What a gauge said when it was read.
    Reading,
    /// Bytes that were moved.
    Transferred,
    /// Wrong or failed operations.
    Errors,
}

/// Which figure of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MetricStatistic {
    /// The only figure that there is, such as a total or a reading.
    Only,
    /// The mean.
    Mean,
    /// The least.
    Min,
    /// The middle one.
    Median,
    /// What so many thousandths of a percent are at most.
    Percentile(u32),
    /// The greatest.
    Max,
    /// The best over any stretch of the run.
    Peak,
    /// The standard deviation.
    StandardDeviation,
    /// One operation of many, in the order of the log.
    Sample,
}

/// From where to where a latency reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LatencySpan {
    /// A message and its answer, divided by two. On a path that differs by direction neither way takes this.
    HalfRoundTrip,
    /// From posting to the end of the operation, undivided.
    WholeOperation,
    /// From the request's submission to where the kernel has it.
    Submission,
    /// From where the kernel has it to its completion.
    Completion,
    /// A command of the engine from its issue to its end, without what issuing and timing take.
    Transaction,
    /// The same with it, averaged over the run.
    TransactionWithOverhead,
    /// One collective, from its start to its end on all ranks.
    Collective,
}

impl LatencySpan {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            LatencySpan::HalfRoundTrip => "half-round-trip",
            LatencySpan::WholeOperation => "whole-operation",
            LatencySpan::Submission => "submission",
            LatencySpan::Completion => "completion",
            LatencySpan::Transaction => "transaction",
            LatencySpan::TransactionWithOverhead => "transaction-with-overhead",
            LatencySpan::Collective => "collective",
        }
    }
}

/// A figure's meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogMetric {
    /// What it is about.
    pub subject: MetricSubject,
    /// Which figure of the sample.
    pub statistic: MetricStatistic,
    /// For a latency, from where to where; absent where the log does not tell.
    pub span: Option<LatencySpan>,
}

impl LogMetric {
    /// A figure that is no latency, or one whose span the log does not tell.
    pub const fn new(subject: MetricSubject, statistic: MetricStatistic) -> LogMetric {
        LogMetric { subject, statistic, span: None }
    }

    /// A latency of a known span.
    pub const fn latency(statistic: MetricStatistic, span: Option<LatencySpan>) -> LogMetric {
        LogMetric { subject: MetricSubject::Latency, statistic, span }
    }

    /// The name of the figure with its unit, as answers have it.
    ///
    /// ```
    /// use offpath_logs::{LogFigure, LogMetric, MetricStatistic, MetricSubject};
    /// use offpath_quantity::Time;
    /// let metric = LogMetric::new(MetricSubject::Latency, MetricStatistic::Percentile(99_900));
    /// assert_eq!(metric.key(LogFigure::Time(Time::ZERO)), "latency_ns_p99.9");
    /// ```
    pub fn key(&self, figure: LogFigure) -> String {
        let mut key = match self.subject {
            MetricSubject::Bandwidth => "bandwidth",
            MetricSubject::BusBandwidth => "bus_bandwidth",
            MetricSubject::OperationRate => "operations",
            MetricSubject::BogoRate => "bogo_ops",
            MetricSubject::BogoRateOfProcessorTime => "bogo_ops_per_processor_time",
            MetricSubject::BogoOperations => "bogo_ops",
            MetricSubject::Latency => "latency",
            MetricSubject::RunTime => "run_time",
            MetricSubject::UserTime => "user_time",
            MetricSubject::SystemTime => "system_time",
            MetricSubject::ProcessorUse => "processor_use",
            MetricSubject::Counter => "counter",
            MetricSubject::Reading => "reading",
            MetricSubject::Transferred => "transferred",
            MetricSubject::Errors => "errors",
        }
        .to_string();
        if !figure.unit().is_empty() {
            key = key + "_" + figure.unit();
        }
        let percentile;
        key += match self.statistic {
            MetricStatistic::Only => "",
            MetricStatistic::Mean => "_mean",
            MetricStatistic::Min => "_min",
            MetricStatistic::Median => "_median",
            MetricStatistic::Max => "_max",
            MetricStatistic::Peak => "_peak",
            MetricStatistic::StandardDeviation => "_stdev",
            MetricStatistic::Sample => "_sample",
            MetricStatistic::Percentile(milli) => {
                percentile = format!("_p{}", f64::from(milli) / 1000.0);
                &percentile
            }
        };
        key
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogOperation {
    /// RDMA READ, or a read of storage or memory.
    Read,
    /// RDMA WRITE, or a write.
    Write,
    /// RDMA WRITE with immediate data.
    WriteImmediate,
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendImmediate,
    /// Compare-and-swap.
    CompareAndSwap,
    /// Fetch-and-add.
    FetchAndAdd,
    /// An atomic whose kind the log does not tell.
    Atomic,
    /// Reads and writes by turns.
    ReadWrite,
    /// A write and a read after it, which waits for it.
    WriteThenRead,
    /// A discard.
    Trim,
}

impl LogOperation {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            LogOperation::Read => "read",
            LogOperation::Write => "write",
            LogOperation::WriteImmediate => "write-immediate",
            LogOperation::Send => "send",
            LogOperation::SendImmediate => "send-immediate",
            LogOperation::CompareAndSwap => "compare-and-swap",
            LogOperation::FetchAndAdd => "fetch-and-add",
            LogOperation::Atomic => "atomic",
            LogOperation::ReadWrite => "read-write",
            LogOperation::WriteThenRead => "write-then-read",
            LogOperation::Trim => "trim",
        }
    }
}

/// Which side of a connection wrote the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogSide {
    /// The one that posts: a client.
    Requester,
    /// The one that is addressed: a server.
    Responder,
}

impl LogSide {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            LogSide::Requester => "requester",
            LogSide::Responder => "responder",
        }
    }
}

/// Which ways traffic goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrafficDirections {
    /// From one side alone.
    One,
    /// From both at once; bandwidth and rate are the sum of both.
    Both,
}

impl TrafficDirections {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            TrafficDirections::One => "one",
            TrafficDirections::Both => "both",
        }
    }
}

/// A condition that one tool alone states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LogDetail {
    /// As the tool writes it.
    Text(Arc<str>),
    /// A whole number, whose unit its key names.
    Number(u64),
    /// On or off.
    Switch(bool),
}

impl fmt::Display for LogDetail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LogDetail::Text(text) => text.fmt(f),
            LogDetail::Number(number) => number.fmt(f),
            LogDetail::Switch(on) => on.fmt(f),
        }
    }
}

/// What figures were taken under. What the log does not say is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogConditions {
    /// The program or test, as `ib_write_bw`, a stressor or a collective.
    pub program: Option<Arc<str>>,
    /// What an operation does.
    pub operation: Option<LogOperation>,
    /// Bytes of an operation.
    pub payload: Option<Bytes>,
    /// Queue pairs.
    pub queue_pairs: Option<u64>,
    /// Work requests in flight of each queue pair, or requests of each job.
    pub tx_depth: Option<u64>,
    /// Receives that are posted ahead.
    pub rx_depth: Option<u64>,
    /// Work requests behind one doorbell.
    pub post_list: Option<u64>,
    /// Work requests for each completion.
    pub cq_moderation: Option<u64>,
    /// The largest payload that goes inline.
    pub inline: Option<Bytes>,
    /// READs and atomics in flight of each queue pair.
    pub outstanding_reads: Option<u64>,
    /// Payload of a packet on the network.
    pub mtu: Option<Bytes>,
    /// Which ways traffic goes.
    pub directions: Option<TrafficDirections>,
    /// RC, UC, UD, XRC, DC, SRD or RawEth.
    pub connection: Option<Arc<str>>,
    /// Operations that were counted, of all queue pairs together.
    pub iterations: Option<u64>,
    /// How long the run was asked to take.
    pub duration: Option<Time>,
    /// The device, as its driver names it.
    pub device: Option<Arc<str>>,
    /// Ethernet or InfiniBand, as the tool writes it.
    pub link_layer: Option<Arc<str>>,
    /// Index of the GID.
    pub gid_index: Option<u64>,
    /// Which side wrote the log.
    pub side: Option<LogSide>,
    /// What the ends call the queue pairs.
    pub queue_pair_names: Option<QueuePairNames>,
    /// What one tool alone states, by keys that name their units.
    pub more: Arc<BTreeMap<&'static str, LogDetail>>,
}

impl LogConditions {
    pub(crate) fn set(&mut self, key: &'static str, detail: LogDetail) {
        Arc::make_mut(&mut self.more).insert(key, detail);
    }

    pub(crate) fn set_text(&mut self, key: &'static str, text: &str) {
        self.set(key, LogDetail::Text(text.into()));
    }

    pub(crate) fn set_number(&mut self, key: &'static str, number: u64) {
        self.set(key, LogDetail::Number(number));
    }
}

/// What a reader of a figure has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LogCaution {
    /// Two programs wrote into one another. Conditions in which they differ are absent.
    Interleaved,
    /// The table's header is missing: columns are told by their number and by what they have to give together.
    NoHeader,
    /// The unit is not stated, and is the one in which size times rate is the bandwidth.
    UnitFromRate,
    /// The unit is not stated; the tool has no other, unless cycles were asked for, which these are not.
    UnitOfTool,
    /// With so few samples this percentile is the greatest one.
    IsTheMaximum,
    /// Deviations were cut to whole units before they were squared: the true figure is greater.
    CutDeviations,
    /// The tool said that the processor's frequency varied, by which it measures time.
    FrequencyVaried,
    /// Size times rate is not the bandwidth.
    RateDiffers,
    /// Rows under one head cannot all be of one run. No condition of the head is taken.
    MixedRows,
    /// The log ends before the line does.
    UnendedLine,
    /// The tool says that the job failed.
    FailedJob,
    /// Both ends are one port, or on one machine.
    ToItself,
    /// The command above states another program, device or size than the tool printed.
    OtherCommand,
}

impl LogCaution {
    /// Every caution.
    pub const ALL: [LogCaution; 13] = [
        LogCaution::Interleaved,
        LogCaution::NoHeader,
        LogCaution::UnitFromRate,
        LogCaution::UnitOfTool,
        LogCaution::IsTheMaximum,
        LogCaution::CutDeviations,
        LogCaution::FrequencyVaried,
        LogCaution::RateDiffers,
        LogCaution::MixedRows,
        LogCaution::UnendedLine,
        LogCaution::FailedJob,
        LogCaution::ToItself,
        LogCaution::OtherCommand,
    ];

    /// What it says, in a sentence.
    pub fn meaning(self) -> &'static str {
        match self {
            LogCaution::Interleaved => {
                "two programs wrote into one another; conditions in which they differ are absent"
            }
            LogCaution::NoHeader => {
                "the table has no header; the columns are told by what their numbers give together"
            }
            LogCaution::UnitFromRate => {
                "the log states no unit; it is the one in which size times rate is the bandwidth"
            }
            LogCaution::UnitOfTool => {
                "the log states no unit; it is the only one that the tool has for times"
            }
            LogCaution::IsTheMaximum => "with so few samples this percentile is the greatest one",
            LogCaution::CutDeviations => {
                "the tool cuts deviations to whole units before it squares them; the true figure is greater"
            }
            LogCaution::FrequencyVaried => {
                "the tool said that the processor's frequency varied, by which it measures time"
            }
            LogCaution::RateDiffers => "size times rate is not the bandwidth of the same row",
            LogCaution::MixedRows => {
                "rows under this head cannot all be of one run; none of its conditions is taken for them"
            }
            LogCaution::UnendedLine => "the log ends within this line, whose last number may lack digits",
            LogCaution::FailedJob => {
                "the tool says that the job failed; the figure is of what it did until then"
            }
            LogCaution::ToItself => {
                "both ends are on one machine, by their addresses or by the command: the traffic may never leave the card, and says nothing \
                 of its port, cable and network"
            }
            LogCaution::OtherCommand => {
                "the command above states another program, device or size than the tool printed: it is of another run, and nothing is taken \
                 from it"
            }
        }
    }

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            LogCaution::Interleaved => "interleaved",
            LogCaution::NoHeader => "no-header",
            LogCaution::UnitFromRate => "unit-from-rate",
            LogCaution::UnitOfTool => "unit-of-tool",
            LogCaution::IsTheMaximum => "is-the-maximum",
            LogCaution::CutDeviations => "cut-deviations",
            LogCaution::FrequencyVaried => "frequency-varied",
            LogCaution::RateDiffers => "rate-differs",
            LogCaution::MixedRows => "mixed-rows",
            LogCaution::UnendedLine => "unended-line",
            LogCaution::FailedJob => "failed-job",
            LogCaution::ToItself => "to-itself",
            LogCaution::OtherCommand => "other-command",
        }
    }
}

/// A set of cautions.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct LogCautions(u16);

impl LogCautions {
    /// Whether it holds one.
    pub fn has(self, caution: LogCaution) -> bool {
        self.0 & (1 << caution as u16) != 0
    }

    /// Those that it holds, in the order of their declaration.
    pub fn iter(self) -> impl Iterator<Item = LogCaution> {
        LogCaution::ALL.into_iter().filter(move |caution| self.has(*caution))
    }

    pub(crate) fn with(self, caution: LogCaution) -> LogCautions {
        LogCautions(self.0 | 1 << caution as u16)
    }

    /// Those of both.
    pub fn union(self, other: LogCautions) -> LogCautions {
        LogCautions(self.0 | other.0)
    }

    pub(crate) fn with_if(self, holds: bool, caution: LogCaution) -> LogCautions {
        if holds { self.with(caution) } else { self }
    }
}

impl fmt::Debug for LogCautions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

/// One figure of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct LogMeasurement {
    /// Who measured.
    pub tool: LogTool,
    /// What the figure means.
    pub metric: LogMetric,
    /// The figure.
    pub figure: LogFigure,
    /// What one unit of the last printed digit is worth: the figure is known to half of it.
    pub step: LogFigure,
    /// What it was taken under.
    pub conditions: Arc<LogConditions>,
    /// What a reader has to know.
    pub cautions: LogCautions,
    /// The line that it stands on, from 1.
    pub line: u64,
    /// The row or run that it is of, in the order of the log, from 1. Several lines of JSON may have one run, and one line several.
    pub row: u64,
}

/// What the ends of a run call their queue pairs: of each end a checksum of their numbers and first packet sequence numbers, which are
/// drawn anew for each run. The log of the other side has them the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct QueuePairNames {
    /// Of the side that wrote the log.
    pub local: u64,
    /// Of the other side.
    pub remote: u64,
}

impl QueuePairNames {
    /// The same, as the other side has them.
    #[must_use]
    pub fn crosswise(self) -> QueuePairNames {
        QueuePairNames { local: self.remote, remote: self.local }
    }
}

impl LogMeasurement {
    /// The name of the figure with its unit.
    pub fn key(&self) -> String {
        self.metric.key(self.figure)
    }
}
