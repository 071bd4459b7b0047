//! nccl-tests: collectives between GPUs.

use crate::decimal::Printed;
use crate::measurement::{
    LatencySpan, LogCaution, LogCautions, LogConditions, LogMetric, LogTool, MetricStatistic, MetricSubject,
    Scale,
};
use crate::reader::{LogLine, Sink, Taken};
use crate::tools::{LineTool, Row};
use offpath_quantity::Bytes;
use std::sync::Arc;

/// A gigabyte of nccl-tests is 10^9 bytes.
const GB_PER_S: Scale = Scale::BitRate(8_000_000_000);

/// Reads tables of nccl-tests.
#[derive(Default)]
pub(crate) struct NcclTests {
    is_begun: bool,
    program: Option<Arc<str>>,
    columns: Vec<String>,
    /// Whether a result of the run was wrong.
    failed: bool,
}

impl LineTool for NcclTests {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        let words = || text.trim_start_matches('#').split_ascii_whitespace();
        if text.starts_with('#') {
            let own: Vec<&str> = words().collect();
            match own[..] {
                ["nThread", ..] => {
                    *self =
                        NcclTests { is_begun: true, program: self.program.take(), ..NcclTests::default() };
                    return Taken::Known;
                }
                ["Collective", "test", "starting:", name, ..] => {
                    self.program = Some(name.into());
                    return Taken::Known;
                }
                ["size", "count", "type", ..] if own.contains(&"algbw") => {
                    self.is_begun = true;
                    self.columns = own.iter().map(|column| column.to_string()).collect();
                    return Taken::Known;
                }
                _ if !self.is_begun => return Taken::No,
                ["Avg", "bus", "bandwidth", ":", mean] => return self.put_mean(mean, line, sink),
                ["Out", "of", "bounds", .., "FAILED"] => return self.fail_run(),
                ["Out", "of", "bounds", ..]
                | ["Using", "devices"]
                | ["Rank", ..]
                | ["out-of-place", "in-place"]
                | ["(B)", "(elements)", ..]
                | ["Collective", "test", "concluded", ..]
                | ["Collective", "test", "concluded:", ..]
                | ["nccl-tests", ..] => return Taken::Known,
                _ => return Taken::No,
            }
        }
        if self.columns.is_empty() || !text.starts_with(|c: char| c.is_ascii_digit()) {
            return Taken::No;
        }
        let cells: Vec<&str> = words().collect();
        let Some(columns) = self.columns_of(cells.len()) else {
            return Taken::Unknown(
                "the row has another number of columns than the header of nccl-tests".into(),
            );
        };
        let (mut conditions, mut place) = (self.conditions(), 0);
        let mut figures = Vec::new();
        for (column, cell) in columns.into_iter().zip(cells) {
            let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
            let found = match column {
                "size" => {
                    conditions.payload = cell.parse().ok().map(Bytes::new);
                    continue;
                }
                "type" | "redop" => {
                    conditions.set_text(if column == "type" { "datatype" } else { "reduction" }, cell);
                    continue;
                }
                "time" => {
                    place += 1;
                    (
                        LogMetric::latency(MetricStatistic::Mean, Some(LatencySpan::Collective)),
                        Scale::MICROSECONDS,
                    )
                }
                "algbw" => (mean(MetricSubject::Bandwidth), GB_PER_S),
                "busbw" => (mean(MetricSubject::BusBandwidth), GB_PER_S),
                // What was not checked is told by a word.
                "#wrong" if cell == "N/A" => continue,
                "#wrong" => (LogMetric::new(MetricSubject::Errors, MetricStatistic::Only), Scale::Count),
                _ => continue,
            };
            match Printed::read(cell) {
                Some(number) => figures.push((place, found, number)),
                None => {
                    return Taken::Unknown(format!("`{cell}` is no number of the column `{column}`").into());
                }
            }
        }
        let is_wrong = |(_, (metric, _), count): &(_, (LogMetric, Scale), Printed)| {
            metric.subject == MetricSubject::Errors && count.number().is_none_or(|count| !count.is_zero())
        };
        if figures.iter().any(is_wrong) {
            return self.fail_run();
        }
        // The first group writes elsewhere than it reads, the second in place.
        let by_place = ["out of place", "in place"].map(|name| {
            let mut own = conditions.clone();
            own.set_text("buffers", name);
            Arc::new(own)
        });
        let number = [sink.begin_row(), sink.begin_row()];
        for (place, (metric, scale), printed) in figures {
            let place = usize::from(place > 1);
            let (conditions, number) = (by_place[place].clone(), number[place]);
            let row = Row { tool: LogTool::NcclTests, conditions, line: line.number, number, text };
            row.put(metric, printed, scale, LogCautions::default(), sink);
        }
        Taken::Measured
    }
}

impl NcclTests {
    /// The columns of a row of so many cells. What reduces nothing, as an all-to-all of earlier versions, leaves `redop` blank, and
    /// `root` with it where it has none.
    fn columns_of(&self, cells: usize) -> Option<Vec<&str>> {
        let blank: &[&str] = match self.columns.len().checked_sub(cells)? {
            0 => &[],
            1 => &["redop"],
            2 => &["redop", "root"],
            _ => return None,
        };
        let columns = self.columns.iter().map(String::as_str);
        let columns: Vec<&str> = columns.filter(|column| !blank.contains(column)).collect();
        (columns.len() == cells).then_some(columns)
    }

    /// A result is wrong: its row gives no figure, and the mean of all is of a run that failed.
    fn fail_run(&mut self) -> Taken {
        self.failed = true;
        Taken::Failure
    }

    fn conditions(&self) -> LogConditions {
        LogConditions { program: self.program.clone(), ..LogConditions::default() }
    }

    /// The mean over all sizes, below the table.
    fn put_mean(&self, mean: &str, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let Some(number) = Printed::read(mean) else {
            return Taken::Unknown("the mean bus bandwidth is no number".into());
        };
        let mut conditions = self.conditions();
        conditions.set_text("mean_of", "all sizes");
        let row = Row {
            tool: LogTool::NcclTests,
            conditions: Arc::new(conditions),
            line: line.number,
            number: sink.begin_row(),
            text: line.text,
        };
        let metric = LogMetric::new(MetricSubject::BusBandwidth, MetricStatistic::Mean);
        let cautions = LogCautions::default().with_if(self.failed, LogCaution::FailedJob);
        row.put(metric, number, GB_PER_S, cautions, sink);
        Taken::Measured
    }
}
