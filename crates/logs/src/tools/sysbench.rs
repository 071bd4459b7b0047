//! sysbench, its memory test.

use crate::decimal::{Decimal, Printed};
use crate::measurement::{
    LatencySpan, LogCautions, LogConditions, LogMetric, LogOperation, LogTool, MetricStatistic,
    MetricSubject, Scale,
};
use crate::reader::{LogLine, Sink, Taken};
use crate::tools::{LineTool, Row};
use offpath_quantity::Bytes;
use std::sync::Arc;

/// Reads one run after the other.
#[derive(Default)]
pub(crate) struct Sysbench {
    /// A run that began, whichever test it is.
    is_begun: bool,
    /// Conditions of a memory test, and the number of its row.
    memory: Option<(Arc<LogConditions>, u64)>,
    threads: Option<u64>,
}

/// Lines without figures, by their starts.
const KNOWN: &[&str] = &[
    "Running the test with following options",
    "Initializing random number generator",
    "Initializing worker threads",
    "Threads started!",
    "General statistics:",
    "total number of events:",
    "Latency (ms):",
    "sum:",
    "Threads fairness:",
    "events (avg/stddev):",
    "execution time (avg/stddev):",
    "total size:",
    "scope:",
    "Done.",
    "Doing memory operations speed test",
    "Memory block size:",
    "Memory transfer size:",
    "Memory operations type:",
    "Memory scope type:",
    "Test execution summary:",
    "per-request statistics:",
];

impl LineTool for Sysbench {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        if text.starts_with("sysbench ") && text.contains("multi-threaded")
            || text.starts_with("sysbench ") && text.contains("LuaJIT")
        {
            *self = Sysbench { is_begun: true, ..Sysbench::default() };
            return Taken::Known;
        }
        if !self.is_begun {
            return Taken::No;
        }
        if let Some(threads) = text.strip_prefix("Number of threads:") {
            self.threads = threads.trim().parse().ok();
            return Taken::Known;
        }
        if text.starts_with("Running memory speed test")
            || text.starts_with("Doing memory operations speed test")
        {
            let mut conditions = LogConditions { program: Some("memory".into()), ..LogConditions::default() };
            if let Some(threads) = self.threads {
                conditions.set_number("threads", threads);
            }
            self.memory = Some((Arc::new(conditions), sink.begin_row()));
            return Taken::Known;
        }
        let Some((conditions, number)) = &mut self.memory else {
            return if KNOWN.iter().any(|start| text.starts_with(start)) { Taken::Known } else { Taken::No };
        };
        let stated = text.split_once(':').map(|(key, value)| (key.trim(), value.trim()));
        match stated {
            Some(("block size" | "Memory block size", size)) => {
                Arc::make_mut(conditions).payload = block(size);
                return Taken::Known;
            }
            Some(("operation" | "Memory operations type", operation)) => {
                Arc::make_mut(conditions).operation = match operation {
                    "read" => Some(LogOperation::Read),
                    "write" => Some(LogOperation::Write),
                    _ => None,
                };
                return Taken::Known;
            }
            Some(("scope" | "Memory scope type", scope)) => {
                Arc::make_mut(conditions).set_text("scope", scope);
                return Taken::Known;
            }
            _ => {}
        }
        let figures = figures(text, stated);
        if figures.is_empty() {
            return if KNOWN.iter().any(|start| text.starts_with(start)) { Taken::Known } else { Taken::No };
        }
        let (conditions, number) = (conditions.clone(), *number);
        let row = Row { tool: LogTool::Sysbench, conditions, line: line.number, number, text };
        for (metric, printed, scale) in figures {
            row.put(metric, printed, scale, LogCautions::default(), sink);
        }
        Taken::Measured
    }
}

/// A size such as `1KiB` or, in earlier versions, `1K`: both are powers of two.
fn block(text: &str) -> Option<Bytes> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match &text[digits.len()..] {
        "" | "B" => 1,
        "K" | "KiB" => 1 << 10,
        "M" | "MiB" => 1 << 20,
        "G" | "GiB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Bytes::new)
}

/// The figures of a line.
fn figures(text: &str, stated: Option<(&str, &str)>) -> Vec<(LogMetric, Printed, Scale)> {
    let only = |subject| LogMetric::new(subject, MetricStatistic::Only);
    let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
    let latency = |statistic| LogMetric::latency(statistic, Some(LatencySpan::WholeOperation));
    // `NUMBER ... (RATE per second)` and `NUMBER MiB transferred (RATE MiB/sec)`; `MB` of earlier versions is 2^20 as well.
    let inside = text.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    let rate = inside
        .and_then(|inside| inside.split_once(' '))
        .and_then(|(number, unit)| Some((Printed::read(number)?, unit)));
    match (rate, stated) {
        (Some((rate, "per second" | "ops/sec")), _) => {
            vec![(mean(MetricSubject::OperationRate), rate, Scale::PER_S)]
        }
        (Some((rate, "MiB/sec" | "MB/sec")), _) if text.contains("transferred") => {
            vec![(mean(MetricSubject::Bandwidth), rate, Scale::MIB_PER_S)]
        }
        (_, Some((key, value))) => {
            let found = match key {
                "total time" => (only(MetricSubject::RunTime), value.strip_suffix('s'), Scale::SECONDS),
                "min" => (latency(MetricStatistic::Min), Some(value), Scale::MILLISECONDS),
                "avg" => (latency(MetricStatistic::Mean), Some(value), Scale::MILLISECONDS),
                "max" => (latency(MetricStatistic::Max), Some(value), Scale::MILLISECONDS),
                "95th percentile" => {
                    (latency(MetricStatistic::Percentile(95_000)), Some(value), Scale::MILLISECONDS)
                }
                _ => return Vec::new(),
            };
            let number = found.1.and_then(Decimal::read).map(Printed::Number);
            number.map(|number| (found.0, number, found.2)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}
