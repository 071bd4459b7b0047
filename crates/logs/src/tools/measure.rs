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
use std::sync::Arc;

const OPERATIONS: [LogOperation; 5] = [
    LogOperation::Read,
    LogOperation::Write,
    LogOperation::Send,
    LogOperation::CompareAndSwap,
    LogOperation::FetchAndAdd,
];

/// Reads a document; whether it is one of `offpath measure`.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let has = |key: &str| node.get(key).is_some();
    if has("offpath_measure") || has("skipped") && has("why") {
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
    let conditions = Arc::new(conditions);
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
        let row = Row { tool: LogTool::Measure, conditions: conditions.clone(), line, text };
        match Printed::read(text) {
            Some(printed) => {
                row.put(metric, printed, scale, LogCautions::default(), sink);
            }
            None => sink.remark(RemarkKind::Withheld, line, text, "a figure of a point that is no number"),
        }
    }
    true
}
