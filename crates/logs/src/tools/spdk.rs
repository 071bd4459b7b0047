//! bdevperf of SPDK, as it answers `perform_tests` in JSON.

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

/// Reads a document; whether it is bdevperf's.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let results = node.get("results").map(Node::items).unwrap_or_default();
    let is_result = |result: &Node| result.get("iops").is_some() && result.get("mibps").is_some();
    if results.is_empty() || !results.iter().all(is_result) {
        return false;
    }
    for result in results {
        let text = |key: &str| result.get(key).and_then(Node::text);
        let whole = |key: &str| text(key).and_then(|text| Decimal::read(text)?.whole());
        let operation = match text("workload") {
            Some("read" | "randread") => Some(LogOperation::Read),
            Some("write" | "randwrite") => Some(LogOperation::Write),
            Some("rw" | "randrw") => Some(LogOperation::ReadWrite),
            Some("unmap") => Some(LogOperation::Trim),
            _ => None,
        };
        let mut conditions = LogConditions {
            program: Some("bdevperf".into()),
            operation,
            payload: whole("io_size").map(Bytes::new),
            tx_depth: whole("queue_depth"),
            device: text("job").map(Arc::from),
            ..LogConditions::default()
        };
        for (key, own) in [("access_pattern", "workload"), ("core_mask", "core_mask"), ("status", "status")] {
            if let Some(text) = text(own) {
                conditions.set_text(key, text);
            }
        }
        if let Some(share) = whole("percentage") {
            conditions.set_number("reads_percent", share);
        }
        let unfinished = result.get("status").zip(text("status")).filter(|(_, status)| *status != "finished");
        if let Some((node, status)) = unfinished {
            sink.remark(RemarkKind::Failure, node.line, status, "the job did not finish");
        }
        let failed = whole("io_failed").is_some_and(|failed| failed > 0);
        let cautions = LogCautions::default().with_if(unfinished.is_some() || failed, LogCaution::FailedJob);
        let (conditions, number) = (Arc::new(conditions), sink.begin_row());
        let latency = |statistic| LogMetric::latency(statistic, Some(LatencySpan::WholeOperation));
        let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
        let only = |subject| LogMetric::new(subject, MetricStatistic::Only);
        for (key, metric, scale) in [
            ("iops", mean(MetricSubject::OperationRate), Scale::PER_S),
            ("mibps", mean(MetricSubject::Bandwidth), Scale::MIB_PER_S),
            ("runtime", only(MetricSubject::RunTime), Scale::SECONDS),
            ("io_failed", only(MetricSubject::Errors), Scale::Count),
            ("avg_latency_us", latency(MetricStatistic::Mean), Scale::MICROSECONDS),
            ("min_latency_us", latency(MetricStatistic::Min), Scale::MICROSECONDS),
            ("max_latency_us", latency(MetricStatistic::Max), Scale::MICROSECONDS),
        ] {
            let Some(node) = result.get(key) else { continue };
            let text = node.text().unwrap_or_default();
            let row =
                Row { tool: LogTool::Spdk, conditions: conditions.clone(), line: node.line, number, text };
            match Printed::read(text) {
                Some(printed) => {
                    row.put(metric, printed, scale, cautions, sink);
                }
                None => {
                    sink.remark(RemarkKind::Withheld, node.line, text, "a figure of SPDK that is no number")
                }
            }
        }
    }
    true
}
