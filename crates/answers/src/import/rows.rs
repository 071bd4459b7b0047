//! Figures of logs as rows of comma-separated values, one at a time. Most figures of a log share their conditions, which
//! are written out once for all that follow each other.

use super::ImportedFigureAnswer;
use super::text::CONDITIONS;
use offpath_logs::{LogConditions, LogMeasurement, LogMetric};
use std::fmt::Write;

/// The place of columns that are written anew for each figure.
const PAYLOAD: usize = 10;
const ITERATIONS: usize = 21;
const CAUTIONS: usize = 27;

/// Writes figures as rows.
///
/// ```
/// use offpath_answers::import::FigureRows;
/// use offpath_logs::{LogItem, LogReader};
/// let log = " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n 2       1000          1.62           9.51         1.70\n";
/// let mut rows = FigureRows::new("a.log");
/// for item in LogReader::new(log.as_bytes()) {
///     if let LogItem::Measurement(figure) = item? {
///         assert!(rows.row(&figure).starts_with("a.log,2,1,perftest,latency_ns_min,1620,10,"));
///         break;
///     }
/// }
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct FigureRows {
    file: String,
    row: String,
    /// The conditions of the figure before, and their cells around those that change.
    shared: Option<Shared>,
    /// Names of figures that were met.
    names: Vec<(LogMetric, &'static str, String)>,
}

struct Shared {
    conditions: LogConditions,
    before_payload: String,
    before_iterations: String,
    before_cautions: String,
    more: String,
}

impl FigureRows {
    /// Rows of figures of one file.
    pub fn new(file: &str) -> FigureRows {
        FigureRows { file: joined(&[file.to_string()]), row: String::new(), shared: None, names: Vec::new() }
    }

    /// The row that names the columns.
    pub fn header() -> String {
        ImportedFigureAnswer::COLUMNS.join(",") + "\n"
    }

    /// The row of a figure, with its line end.
    pub fn row(&mut self, figure: &LogMeasurement) -> &str {
        let is_shared = self.shared.as_ref().is_some_and(|shared| {
            let LogConditions { payload, iterations, .. } = shared.conditions;
            // All but what stands in cells of its own.
            let own = LogConditions { payload, iterations, ..(*figure.conditions).clone() };
            own == shared.conditions
        });
        let shared = match &mut self.shared {
            Some(shared) if is_shared => shared,
            other => other.insert(Shared::of(figure)),
        };
        let unit = figure.figure.unit();
        let known = self.names.iter().position(|(metric, own, _)| *metric == figure.metric && *own == unit);
        let name = known.unwrap_or_else(|| {
            self.names.push((figure.metric, unit, figure.key()));
            self.names.len() - 1
        });
        let row = &mut self.row;
        row.clear();
        let span = figure.metric.span.map_or("", |span| span.name());
        let (tool, name) = (figure.tool.name(), &self.names[name].2);
        let (value, step) = (figure.figure.value(), figure.step.value());
        // Writing to a string cannot fail.
        let _ = write!(row, "{},{},{},", self.file, figure.line, figure.row);
        let _ = write!(row, "{tool},{name},{value},{step},{span},");
        row.push_str(&shared.before_payload);
        if let Some(payload) = figure.conditions.payload {
            let _ = write!(row, "{}", payload.get());
        }
        row.push_str(&shared.before_iterations);
        if let Some(iterations) = figure.conditions.iterations {
            let _ = write!(row, "{iterations}");
        }
        row.push_str(&shared.before_cautions);
        for (index, caution) in figure.cautions.iter().enumerate() {
            row.push_str(if index > 0 { " " } else { "" });
            row.push_str(caution.name());
        }
        row.push(',');
        row.push_str(&shared.more);
        row.push('\n');
        row
    }
}

impl Shared {
    fn of(figure: &LogMeasurement) -> Shared {
        let cells = ImportedFigureAnswer::of("", figure).cells();
        // A cell that begins and ends each part keeps its commas.
        Shared {
            conditions: (*figure.conditions).clone(),
            before_payload: joined(&cells[CONDITIONS.start..PAYLOAD]) + ",",
            before_iterations: format!(",{},", joined(&cells[PAYLOAD + 1..ITERATIONS])),
            before_cautions: format!(",{},", joined(&cells[ITERATIONS + 1..CAUTIONS])),
            more: joined(&cells[CAUTIONS + 1..]),
        }
    }
}

/// Cells side by side, quoted where they have to be.
fn joined(cells: &[String]) -> String {
    let cell = |cell: &String| match cell.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", cell.replace('"', "\"\"")),
        false => cell.clone(),
    };
    cells.iter().map(cell).collect::<Vec<_>>().join(",")
}
