//! pcie-bench of a programmable NIC: DMA and commands of the card to memory of its host, by size, window and cache.

use crate::decimal::{Decimal, Printed};
use crate::measurement::{
    LatencySpan, LogCaution, LogCautions, LogConditions, LogFigure, LogMetric, LogOperation, LogTool,
    MetricStatistic, MetricSubject, Scale,
};
use crate::reader::{LogLine, Sink, Taken};
use crate::tools::{LineTool, Row};
use offpath_quantity::Bytes;
use std::sync::Arc;

/// Tests, what the card does to the host's memory, and whether it is timed one by one.
const TESTS: &[(&str, LogOperation, bool)] = &[
    ("LAT_CMD_RD", LogOperation::Read, true),
    ("LAT_CMD_WRRD", LogOperation::WriteThenRead, true),
    ("LAT_DMA_RD", LogOperation::Read, true),
    ("LAT_DMA_WRRD", LogOperation::WriteThenRead, true),
    ("BW_DMA_RD", LogOperation::Read, false),
    ("BW_DMA_WR", LogOperation::Write, false),
    ("BW_DMA_RW", LogOperation::ReadWrite, false),
];

/// Words of a row of each kind.
const BANDWIDTH_WORDS: usize = 13;
const LATENCY_WORDS: usize = 23;

/// Reads tables of pcie-bench.
#[derive(Default)]
pub(crate) struct PcieBench {
    has_header: bool,
}

impl LineTool for PcieBench {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let mut words = line.text.split_ascii_whitespace();
        let Some(first) = words.next() else { return Taken::No };
        if first == "#" && words.next() == Some("Test") && words.next() == Some("PAT") {
            self.has_header = true;
            return Taken::Known;
        }
        let Some((test, operation, is_latency)) = TESTS.iter().find(|(test, ..)| *test == first) else {
            return Taken::No;
        };
        let words: Vec<&str> = line.text.split_ascii_whitespace().collect();
        let expected = if *is_latency { LATENCY_WORDS } else { BANDWIDTH_WORDS };
        if words.len() != expected {
            return Taken::Unknown(
                format!("a row of `{test}` has {expected} columns, this one {}", words.len()).into(),
            );
        }
        let Some(numbers) = words[3..].iter().map(|word| Printed::read(word)).collect::<Option<Vec<_>>>()
        else {
            return Taken::Unknown("a row of pcie-bench has a word where a number belongs".into());
        };
        let whole = |at: usize| numbers[at].number().and_then(|number: Decimal| number.times(1));
        let mut conditions = LogConditions {
            program: Some(Arc::from(*test)),
            operation: Some(*operation),
            payload: whole(3).map(Bytes::new),
            iterations: whole(if *is_latency { 19 } else { 7 }),
            ..LogConditions::default()
        };
        match words[1] {
            "Rand" => conditions.set_text("access_pattern", "random"),
            "Seq" => conditions.set_text("access_pattern", "sequential"),
            other => conditions.set_text("access_pattern", other),
        }
        conditions.set_text("cache", words[2]);
        let numbered = [("host_offset_bytes", 0), ("device_offset_bytes", 1), ("window_bytes", 2)];
        for (key, number) in numbered.into_iter().filter_map(|(key, at)| Some((key, whole(at)?))) {
            conditions.set_number(key, number);
        }
        if *is_latency && let Some(outliers) = whole(18) {
            conditions.set_number("samples_above_three_times_p95", outliers);
        }
        if *operation == LogOperation::ReadWrite {
            // A pair of a read and a write counts once: each direction carries what is printed.
            conditions.set_text("figures_are_of", "each direction");
        }
        let mut cautions = LogCautions::default().with_if(!self.has_header, LogCaution::NoHeader);
        if !is_latency {
            cautions = cautions.with_if(!agrees(&numbers), LogCaution::RateDiffers);
        }
        let row = Row {
            tool: LogTool::PcieBench,
            conditions: Arc::new(conditions),
            line: line.number,
            number: sink.begin_row(),
            text: line.text,
        };
        let figures = if *is_latency { latencies() } else { bandwidths() };
        for (at, metric, scale) in figures {
            row.put(metric, numbers[at], scale, cautions, sink);
        }
        Taken::Measured
    }
}

/// Figures of a row of bandwidth, by place behind the cache's. What the header calls GB/s are bits: eight times the bytes
/// by the nanoseconds.
fn bandwidths() -> Vec<(usize, LogMetric, Scale)> {
    let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
    vec![
        (8, mean(MetricSubject::Bandwidth), Scale::GBIT_PER_S),
        (9, mean(MetricSubject::OperationRate), Scale::PER_S),
        (5, LogMetric::new(MetricSubject::RunTime, MetricStatistic::Only), Scale::NANOSECONDS),
        (6, LogMetric::new(MetricSubject::Transferred, MetricStatistic::Only), Scale::Bytes(1)),
    ]
}

/// Figures of a row of latency.
fn latencies() -> Vec<(usize, LogMetric, Scale)> {
    let own = |statistic| LogMetric::latency(statistic, Some(LatencySpan::Transaction));
    let whole = LogMetric::latency(MetricStatistic::Mean, Some(LatencySpan::TransactionWithOverhead));
    let ns = Scale::NANOSECONDS;
    vec![
        (11, whole, ns),
        (12, own(MetricStatistic::Mean), ns),
        (13, own(MetricStatistic::Median), ns),
        (14, own(MetricStatistic::Min), ns),
        (15, own(MetricStatistic::Max), ns),
        (16, own(MetricStatistic::Percentile(95_000)), ns),
        (17, own(MetricStatistic::Percentile(99_900)), ns),
    ]
}

/// Whether bytes by time are the bandwidth, in bits.
fn agrees(numbers: &[Printed]) -> bool {
    let value = |at: usize, scale: Scale| -> Option<f64> {
        numbers[at]
            .number()
            .and_then(|number| scale.figure(number))
            .map(|(figure, _): (LogFigure, _)| figure.value())
    };
    let (time, bytes, bandwidth) =
        (value(5, Scale::NANOSECONDS), value(6, Scale::Bytes(1)), value(8, Scale::GBIT_PER_S));
    match (time, bytes, bandwidth) {
        (Some(time), Some(bytes), Some(bandwidth)) if time > 0.0 => {
            (8.0 * bytes / time - bandwidth).abs() <= 0.001 + 0.005 * bandwidth
        }
        _ => false,
    }
}
