//! What perftest writes with `--out_json`: the head, and the last row.

use super::head::{Field, Section, Title};
use super::row::{Cell, RowFacts, in_unit, put_cells, unit_from_rate};
use super::table::{BandwidthUnit, Column};
use crate::decimal::Printed;
use crate::document::Node;
use crate::measurement::{LogCaution, LogCautions};
use crate::reader::{RemarkKind, Sink};

/// Keys of results and their columns.
const RESULTS: &[(&str, Column)] = &[
    ("MsgSize", Column::Size),
    ("sl", Column::ServiceLevel),
    ("n_iterations", Column::Iterations),
    ("BW_peak", Column::Peak(BandwidthUnit::Unstated)),
    ("BW_average", Column::Average(BandwidthUnit::Unstated)),
    ("bw_avg", Column::Average(BandwidthUnit::Unstated)),
    ("MsgRate", Column::MessageRate),
    ("msgRate_avg", Column::MessageRate),
    ("t_min", Column::Min),
    ("t_max", Column::Max),
    ("t_typical", Column::Typical),
    ("t_avg", Column::Mean),
    ("avg_lat", Column::Mean),
    ("t_stdev", Column::Deviation),
    ("percentile_99", Column::P99),
    ("percentile_99.9", Column::P999),
    ("tps_average", Column::Transactions),
    ("CPU_util", Column::ProcessorUse),
];

/// Keys of the head that are no field of a table's head.
const KNOWN: &[&str] = &["test", "Test with events", "MultiCast_runs", "WARNING1", "WARNING2"];

/// Reads a document; whether it is perftest's.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let (Some(head), Some(results)) = (node.get("test_info"), node.get("results")) else { return false };
    if results.pairs().is_empty() && head.pairs().is_empty() {
        return false;
    }
    let mut section = Section::default();
    for (key, value) in head.pairs() {
        let Some(text) = value.text() else {
            sink.remark(
                RemarkKind::Unknown,
                value.line,
                key,
                "a condition of perftest that is no text or number",
            );
            continue;
        };
        let unknown = |sink: &mut Sink, why: &'static str| {
            sink.remark(RemarkKind::Unknown, value.line, &format!("{key}: {text}"), why);
        };
        match (key.as_str(), Field::of_key(key)) {
            ("test", _) => match Title::read(text) {
                Some(title) => section.add_title(title),
                None => unknown(sink, "no test of perftest has this name"),
            },
            (_, Some(field)) if field.accepts(text) => section.add_field(field, text),
            (_, Some(field)) => {
                section.add_unread(field);
                unknown(sink, "a condition of perftest has a value that it never writes");
            }
            ("cuda_device" | "musa_device", None) => {
                section.memory = key.strip_suffix("_device").map(Into::into)
            }
            (key, None) if KNOWN.contains(&key) => {}
            _ => unknown(sink, "perftest writes no such condition"),
        }
    }
    let mut cells = Vec::new();
    let mut lines = Vec::new();
    let mut first = None;
    for (key, value) in results.pairs() {
        let column = RESULTS.iter().find(|(own, _)| own == key);
        match (column, value.text().and_then(Printed::read)) {
            (Some((_, column)), Some(printed)) => {
                first = first.or(Some(value.line));
                cells.push(Cell { column: *column, printed });
                lines.push(value.line);
            }
            _ => sink.remark(RemarkKind::Unknown, value.line, key, "perftest writes no such result"),
        }
    }
    let mut cautions = LogCautions::default();
    let has = |cells: &[Cell], wanted: fn(Column) -> bool| cells.iter().any(|cell| wanted(cell.column));
    if has(&cells, |column| matches!(column, Column::Peak(_) | Column::Average(_))) {
        match unit_from_rate(&cells) {
            Some(unit) => {
                cells = in_unit(&cells, unit);
                cautions = cautions.with(LogCaution::UnitFromRate);
            }
            None => sink.remark(
                RemarkKind::Withheld,
                first.unwrap_or(results.line),
                "results",
                "a bandwidth without a unit, which size times rate does not tell either",
            ),
        }
    }
    let is_by_duration = has(&cells, |column| column == Column::Transactions);
    if !is_by_duration && has(&cells, |column| matches!(column, Column::Mean | Column::Min)) {
        cautions = cautions.with(LogCaution::UnitOfTool);
    }
    let facts = RowFacts::of(&mut section);
    let facts = RowFacts { cautions: facts.cautions.union(cautions), ..facts };
    let place = |column: Column| {
        let is_it = |cell: &&Cell| std::mem::discriminant(&cell.column) == std::mem::discriminant(&column);
        let at = cells.iter().position(|cell| is_it(&cell)).unwrap_or(0);
        lines.get(at).copied().unwrap_or(results.line)
    };
    put_cells(&facts, &cells, place, "results", sink);
    true
}
