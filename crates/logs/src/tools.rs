//! The tools whose logs are read. One that prints lines is a [`LineTool`] in [`all_tools`]; one that writes JSON is
//! asked by [`read_document`].

mod counters;
mod fio;
mod measure;
mod nccl_tests;
mod osu;
mod pcie_bench;
mod perftest;
mod prediction;
mod spdk;
mod stress_ng;
mod sysbench;

pub use counters::sysfs_counter;
pub(crate) use measure::MeasuredSuite;
pub(crate) use perftest::{fails as perftest_fails, has_row as has_perftest_row};

use crate::decimal::Printed;
use crate::document::Node;
use crate::measurement::{LogCautions, LogConditions, LogMeasurement, LogMetric, LogTool, Scale};
use crate::reader::{LogLine, RemarkKind, Sink, Taken};
use std::sync::Arc;

/// A tool that prints lines. It takes those alone that it knows, so that others are left to others.
pub(crate) trait LineTool: Send {
    /// Looks at a line.
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken;

    /// Looks at a line that no tool takes as it stands: a row without its header.
    fn take_fragment(&mut self, _line: &LogLine<'_>, _sink: &mut Sink) -> Taken {
        Taken::No
    }

    /// Looks at a line that nobody reads: whether it stands within a table, where the tool prints rows alone.
    fn miss(&mut self, _line: &LogLine<'_>, _sink: &mut Sink) -> bool {
        false
    }

    /// A line that is no tool's says that a program failed: whether it is this one.
    fn fail(&mut self) -> bool {
        false
    }

    /// A line that only separates.
    fn ruler(&mut self, _text: &str, _sink: &mut Sink) {}

    /// The log ends.
    fn finish(&mut self, _sink: &mut Sink) {}
}

/// One of each, at the start of a log.
pub(crate) fn all_tools() -> Vec<Box<dyn LineTool>> {
    vec![
        Box::new(prediction::Prediction::default()),
        Box::new(perftest::Perftest::default()),
        Box::new(pcie_bench::PcieBench::default()),
        Box::new(stress_ng::StressNg::default()),
        Box::new(sysbench::Sysbench::default()),
        Box::new(osu::Osu::default()),
        Box::new(nccl_tests::NcclTests::default()),
        Box::new(counters::Counters::default()),
    ]
}

/// Reads a JSON document of whichever tool wrote it, or a list of such; whether there is one.
pub(crate) fn read_document(node: &Node, sink: &mut Sink) -> bool {
    let one = |node: &Node, sink: &mut Sink| {
        [
            measure::read_document,
            perftest::read_document,
            fio::read_document,
            spdk::read_document,
            prediction::read_document,
        ]
        .iter()
        .any(|read| read(node, sink))
    };
    let strangers: Vec<&Node> = node.items().iter().filter(|item| !one(item, sink)).collect();
    if strangers.len() == node.items().len() {
        return one(node, sink);
    }
    for stranger in strangers {
        sink.remark(RemarkKind::Unknown, stranger.line, "", "an entry of the list is of no known tool");
    }
    true
}

/// What several figures of one row share.
pub(crate) struct Row<'a> {
    pub(crate) tool: LogTool,
    pub(crate) conditions: Arc<LogConditions>,
    pub(crate) line: u64,
    /// Its number, of [`Sink::begin_row`].
    pub(crate) number: u64,
    /// The line as it stands, for remarks.
    pub(crate) text: &'a str,
}

impl Row<'_> {
    /// Puts a printed figure down; whether there is one. A number that is none, or is beyond what can be, is withheld.
    pub(crate) fn put(
        &self,
        metric: LogMetric,
        printed: Printed,
        scale: Scale,
        cautions: LogCautions,
        sink: &mut Sink,
    ) -> bool {
        let withheld = |sink: &mut Sink, why: &'static str| {
            sink.remark(RemarkKind::Withheld, self.line, self.text, why);
            false
        };
        let Some(number) = printed.number() else {
            return withheld(sink, "a figure is not a number of 0 or more");
        };
        let Some((figure, step)) = scale.figure(number) else {
            return withheld(sink, "a figure is greater than any quantity can be");
        };
        sink.measurement(LogMeasurement {
            tool: self.tool,
            metric,
            figure,
            step,
            conditions: self.conditions.clone(),
            cautions,
            line: self.line,
            row: self.number,
        });
        true
    }
}
