//! `offpath measure`: a line of JSON for its stamp, and one for each point.

use crate::decimal::{Decimal, Printed};
use crate::document::Node;
use crate::measurement::{
    LatencySpan, LogCautions, LogConditions, LogMetric, LogOperation, LogSide, LogTool, MetricStatistic,
    MetricSubject, Scale, TrafficDirections,
};
use crate::reader::{RemarkKind, Sink};
use crate::tools::Row;
use offpath_quantity::{Bytes, Time};
use std::collections::BTreeSet;
use std::sync::Arc;

const OPERATIONS: [LogOperation; 5] = [
    LogOperation::Read,
    LogOperation::Write,
    LogOperation::Send,
    LogOperation::CompareAndSwap,
    LogOperation::FetchAndAdd,
];

/// What a file means to have by its stamp, and what it has so far.
pub(crate) struct MeasuredSuite {
    /// The command that began the file, and goes on with it.
    command: String,
    /// Points of the suite; absent where the stamp does not say it.
    planned: Option<u64>,
    /// Points that were measured, skipped or failed.
    found: BTreeSet<String>,
    /// The line of the last record, and the point that it is about.
    last: (u64, String),
}

impl MeasuredSuite {
    fn of(stamp: &Node) -> MeasuredSuite {
        let text = |key: &str| stamp.get(key).and_then(Node::text).unwrap_or_default().to_string();
        MeasuredSuite {
            command: text("command"),
            planned: Decimal::read(&text("suite_points")).and_then(Decimal::whole),
            found: BTreeSet::new(),
            last: (stamp.line, text("device")),
        }
    }

    fn add(&mut self, line: u64, point: &str) {
        self.found.insert(point.to_string());
        self.last = (line, point.to_string());
    }

    /// Tells that points are missing: a run that was interrupted leaves a file that looks whole line by line.
    pub(crate) fn tell_missing(&self, is_cut: bool, sink: &mut Sink) {
        let missing = self.planned.map(|planned| planned.saturating_sub(self.found.len() as u64));
        let what = match (self.planned.zip(missing), is_cut) {
            (Some((planned, missing @ 1..)), _) => {
                format!("{missing} of the {planned} points that the first line states are missing")
            }
            (_, true) => "the file ends within a line".to_string(),
            (_, false) => return,
        };
        let next = match self.command.as_str() {
            "" => String::new(),
            command => format!(", and `{command}`, with this file as its `-o`, goes on with it"),
        };
        let (line, point) = &self.last;
        sink.remark(RemarkKind::Unended, *line, point, format!("{what}{next}; the last that is there"));
    }
}

/// The requests of all windows and the time that they took together; nothing where one does not say it.
fn of_all(windows: &[Node]) -> Option<(u64, u64)> {
    let whole = |window: &Node, key: &str, times: u128| Decimal::read(window.get(key)?.text()?)?.times(times);
    windows.iter().try_fold((0u64, 0u64), |(requests, time_ps), window| {
        let requests = requests.checked_add(whole(window, "requests", 1)?)?;
        Some((requests, time_ps.checked_add(whole(window, "time_ns", 1_000)?)?))
    })
}

/// Reads a document; whether it is one of `offpath measure`.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let has = |key: &str| node.get(key).is_some();
    if has("offpath_measure") {
        // Of files behind each other each is held to its own stamp.
        sink.end_suite(false);
        sink.suite = Some(MeasuredSuite::of(node));
        return true;
    }
    let is_about = [("point", "windows"), ("skipped", "why"), ("failed", "why")]
        .into_iter()
        .find(|(key, more)| has(key) && has(more));
    if let Some(point) = is_about.and_then(|(key, _)| node.get(key)).and_then(Node::text)
        && let Some(suite) = &mut sink.suite
    {
        suite.add(node.line, point);
    }
    if has("skipped") && has("why") {
        return true;
    }
    if let (Some(failed), Some(why)) = (node.get("failed"), node.get("why")) {
        let (text, why) = (failed.text().unwrap_or_default(), why.text().unwrap_or_default());
        sink.remark(RemarkKind::Failure, node.line, text, format!("the point failed: {why}"));
        return true;
    }
    if !(has("point") && has("windows") && has("kind")) {
        return false;
    }
    let text = |key: &str| node.get(key).and_then(Node::text).filter(|text| *text != "null");
    let whole = |key: &str| text(key).and_then(|text| Decimal::read(text)?.whole());
    let verb = text("verb");
    let operation = OPERATIONS.into_iter().find(|operation| Some(operation.name()) == verb);
    let mut conditions = LogConditions {
        program: Some("offpath measure".into()),
        operation,
        payload: whole("payload_bytes").map(Bytes::new),
        queue_pairs: whole("queue_pairs"),
        tx_depth: whole("tx_depth"),
        post_list: whole("post_list"),
        cq_moderation: whole("cq_moderation"),
        inline: whole("inline_bytes").map(Bytes::new),
        mtu: whole("mtu_bytes").map(Bytes::new),
        directions: match text("directions") {
            Some("one") => Some(TrafficDirections::One),
            Some("both") => Some(TrafficDirections::Both),
            _ => None,
        },
        connection: Some("RC".into()),
        // Windows have neither the beginning nor the end of a run.
        duration: whole("measured_ns").map(|span| Time::from_ps(span.saturating_mul(1_000))),
        device: text("device").map(Arc::from),
        side: Some(LogSide::Requester),
        ..LogConditions::default()
    };
    for (key, own) in [("path", "path"), ("beside", "beside")] {
        if let Some(text) = text(own) {
            conditions.set_text(key, text);
        }
    }
    for key in ["posting_threads", "windows_measured"] {
        if let Some(number) = whole(key) {
            conditions.set_number(key, number);
        }
    }
    if let Some((requests, time_ps)) = node.get("windows").and_then(|windows| of_all(windows.items())) {
        conditions.set_number("windows_requests", requests);
        conditions.set_number("windows_time_ps", time_ps);
    }
    let (conditions, number) = (Arc::new(conditions), sink.begin_row());
    let span = match operation {
        Some(LogOperation::Write | LogOperation::Send) => LatencySpan::HalfRoundTrip,
        _ => LatencySpan::WholeOperation,
    };
    let latency = |statistic| LogMetric::latency(statistic, Some(span));
    let of = LogMetric::new;
    for (key, metric, scale) in [
        ("operations_per_s_median", of(MetricSubject::OperationRate, MetricStatistic::Median), Scale::PER_S),
        ("operations_per_s_min", of(MetricSubject::OperationRate, MetricStatistic::Min), Scale::PER_S),
        ("operations_per_s_max", of(MetricSubject::OperationRate, MetricStatistic::Max), Scale::PER_S),
        (
            "bandwidth_gbit_per_s_median",
            of(MetricSubject::Bandwidth, MetricStatistic::Median),
            Scale::GBIT_PER_S,
        ),
        ("latency_ns_median", latency(MetricStatistic::Median), Scale::NANOSECONDS),
        ("latency_ns_min", latency(MetricStatistic::Min), Scale::NANOSECONDS),
        ("latency_ns_p99", latency(MetricStatistic::Percentile(99_000)), Scale::NANOSECONDS),
        ("latency_ns_max", latency(MetricStatistic::Max), Scale::NANOSECONDS),
    ] {
        let Some(figure) = node.get(key).and_then(|node| Some((node.line, node.text()?))) else { continue };
        let (line, text) = figure;
        if text == "null" {
            continue;
        }
        let row = Row { tool: LogTool::Measure, conditions: conditions.clone(), line, number, text };
        match Printed::read(text) {
            Some(printed) => {
                row.put(metric, printed, scale, LogCautions::default(), sink);
            }
            None => sink.remark(RemarkKind::Withheld, line, text, "a figure of a point that is no number"),
        }
    }
    true
}
