//! fio, as it writes JSON.

use crate::decimal::{Decimal, Printed};
use crate::document::Node;
use crate::measurement::{
    LatencySpan, LogCaution, LogCautions, LogConditions, LogMetric, LogOperation, LogTool, MetricStatistic,
    MetricSubject, Scale,
};
use crate::reader::{RemarkKind, Sink};
use crate::tools::Row;
use offpath_quantity::Bytes;
use std::sync::Arc;

/// Directions of a job, and their place in an option with a value for each; `unified_rw_reporting` has one for all.
const DIRECTIONS: [(&str, LogOperation, Option<usize>); 4] = [
    ("read", LogOperation::Read, Some(0)),
    ("write", LogOperation::Write, Some(1)),
    ("trim", LogOperation::Trim, Some(2)),
    ("mixed", LogOperation::ReadWrite, None),
];

/// Reads a document; whether it is fio's.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let Some(jobs) = node.get("jobs").filter(|_| node.get("fio version").is_some()) else { return false };
    for job in jobs.items() {
        let stated = |options: &str, name: &str| {
            let own = if options == "job options" { job.get(options) } else { node.get(options) };
            own?.get(name)?.text().map(str::to_string)
        };
        let option = |name: &str| stated("job options", name).or_else(|| stated("global options", name));
        // A job's own size stands above a range of all jobs.
        let range_of = |options| ["bsrange", "bssplit"].iter().find_map(|name| stated(options, name));
        let has_own = stated("job options", "bs").is_some();
        let range = range_of("job options").or_else(|| range_of("global options").filter(|_| !has_own));
        let name = job.get("jobname").and_then(Node::text).unwrap_or_default();
        let error = job.get("error").and_then(|error| Some((error.line, error.text()?)));
        let error = error.filter(|(_, number)| *number != "0");
        if let Some((line, number)) = error {
            sink.remark(RemarkKind::Failure, line, &format!("{name}: error {number}"), "the job failed");
        }
        // With `continue_on_error` a job ends without one, whatever failed.
        let count = job.get("total_err").and_then(|count| Some((count.line, Decimal::read(count.text()?)?)));
        let failed = count.filter(|(_, count)| !count.is_zero());
        if let Some((line, count)) = failed {
            let first = job.get("first_error").and_then(Node::text).unwrap_or("unknown");
            let count = count.approximate();
            let why = format!("{count} operations of the job failed, the first with error {first}");
            sink.remark(RemarkKind::Failure, line, name, why);
        }
        let cautions =
            LogCautions::default().with_if(error.is_some() || failed.is_some(), LogCaution::FailedJob);
        for (key, operation, place) in DIRECTIONS {
            let Some(direction) = job.get(key) else { continue };
            // A direction that the job does not have is written too, as zeros.
            let is_idle = ["io_bytes", "io_kbytes", "total_ios"].iter().all(|key| {
                direction.get(key).and_then(|node| Decimal::read(node.text()?)).is_none_or(Decimal::is_zero)
            });
            if is_idle {
                continue;
            }
            let whole = |name: &str| option(name).and_then(|text| Decimal::read(&text)?.whole());
            let mut conditions = LogConditions {
                program: Some("fio".into()),
                operation: Some(operation),
                payload: option("bs")
                    .and_then(|text| block(&text, place))
                    .filter(|_| option("kb_base").is_none() && range.is_none()),
                tx_depth: whole("iodepth"),
                iterations: direction.get("total_ios").and_then(|node| Decimal::read(node.text()?)?.whole()),
                ..LogConditions::default()
            };
            conditions.set_text("job", name);
            for (key, name) in [
                ("access_pattern", "rw"),
                ("engine", "ioengine"),
                ("block_size", "bs"),
                ("target", "filename"),
            ] {
                let own = range.clone().filter(|_| name == "bs").or_else(|| option(name));
                if let Some(text) = own {
                    conditions.set_text(key, &text);
                }
            }
            for (key, name) in [("jobs", "numjobs"), ("direct", "direct")] {
                if let Some(number) = whole(name) {
                    conditions.set_number(key, number);
                }
            }
            put(direction, Arc::new(conditions), cautions, sink);
        }
    }
    true
}

/// Bytes of a block: `4k` is 4096, and `4k,8k` has one for reads and one for writes, so that both together have none.
fn block(text: &str, place: Option<usize>) -> Option<Bytes> {
    let parts: Vec<&str> = text.split(',').collect();
    if place.is_none() && parts.len() > 1 {
        return None;
    }
    let own = parts.get(place.unwrap_or(0)).or(parts.last()).filter(|part| !part.is_empty())?.trim();
    let digits = own.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit = match own[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" | "kib" => 1 << 10,
        "m" | "mb" | "mib" => 1 << 20,
        "g" | "gb" | "gib" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).map(Bytes::new)
}

/// Puts the figures of one direction down.
fn put(direction: &Node, conditions: Arc<LogConditions>, cautions: LogCautions, sink: &mut Sink) {
    let number = sink.begin_row();
    let put = |node: &Node, metric, scale, sink: &mut Sink| {
        let text = node.text().unwrap_or_default();
        match Printed::read(text) {
            Some(printed) => {
                let conditions = conditions.clone();
                let row = Row { tool: LogTool::Fio, conditions, line: node.line, number, text };
                row.put(metric, printed, scale, cautions, sink);
            }
            None => sink.remark(RemarkKind::Withheld, node.line, text, "a figure of fio that is no number"),
        }
    };
    let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
    let only = |subject| LogMetric::new(subject, MetricStatistic::Only);
    // Earlier versions have KiB per second alone.
    match (direction.get("bw_bytes"), direction.get("bw")) {
        (Some(node), _) => put(node, mean(MetricSubject::Bandwidth), Scale::BitRate(8), sink),
        (None, Some(node)) => put(node, mean(MetricSubject::Bandwidth), Scale::BitRate(8 << 10), sink),
        (None, None) => {}
    }
    let single = [
        ("iops", mean(MetricSubject::OperationRate), Scale::PER_S),
        ("runtime", only(MetricSubject::RunTime), Scale::MILLISECONDS),
        ("io_bytes", only(MetricSubject::Transferred), Scale::Bytes(1)),
    ];
    for (key, metric, scale) in single {
        // Earlier versions count KiB under the same key.
        let is_bytes = direction.get("io_kbytes").is_some() || key != "io_bytes";
        if let Some(node) = direction.get(key).filter(|_| is_bytes) {
            put(node, metric, scale, sink);
        }
    }
    let spans = [
        ("slat", LatencySpan::Submission),
        ("clat", LatencySpan::Completion),
        ("lat", LatencySpan::WholeOperation),
    ];
    for (name, span) in spans {
        let found = [(format!("{name}_ns"), Scale::NANOSECONDS), (name.to_string(), Scale::MICROSECONDS)]
            .into_iter()
            .find_map(|(key, scale)| Some((direction.get(&key)?, scale)));
        let Some((latency, scale)) = found else { continue };
        // Nothing was timed where the greatest is 0.
        let is_timed = |key: &str| {
            latency
                .get(key)
                .and_then(|node| Decimal::read(node.text()?))
                .is_some_and(|number| !number.is_zero())
        };
        if !is_timed("max") {
            continue;
        }
        for (key, statistic) in [
            ("min", MetricStatistic::Min),
            ("mean", MetricStatistic::Mean),
            ("max", MetricStatistic::Max),
            ("stddev", MetricStatistic::StandardDeviation),
        ] {
            if let Some(node) = latency.get(key) {
                put(node, LogMetric::latency(statistic, Some(span)), scale, sink);
            }
        }
        for (percent, node) in latency.get("percentile").map(Node::pairs).unwrap_or_default() {
            match Decimal::read(percent).and_then(|percent| percent.times(1000)) {
                Some(50_000) => {
                    put(node, LogMetric::latency(MetricStatistic::Median, Some(span)), scale, sink)
                }
                Some(milli @ 0..=100_000) => {
                    let statistic = MetricStatistic::Percentile(milli as u32);
                    put(node, LogMetric::latency(statistic, Some(span)), scale, sink);
                }
                _ => {
                    sink.remark(RemarkKind::Unknown, node.line, percent, "no percentile of fio has this name")
                }
            }
        }
    }
}
