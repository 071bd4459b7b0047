//! stress-ng: the metrics that it prints, its YAML, and the summary of a public study over platforms.

use crate::decimal::Printed;
use crate::measurement::{
    LogCautions, LogConditions, LogDetail, LogMetric, LogTool, MetricStatistic, MetricSubject, Scale,
};
use crate::reader::{LogLine, RemarkKind, Sink, Taken};
use crate::tools::{LineTool, Row};
use std::sync::Arc;

/// Sections of the YAML that hold no figure of a stressor's work.
const SECTIONS: &[&str] = &[
    "build-info:",
    "system-info:",
    "times:",
    "interrupts:",
    "thermal-zones:",
    "perfstats:",
    "C-states:",
    "exercised:",
    "rapl-power-domains:",
];

/// Why a figure of a stressor's own is not typed.
const OWN_UNIT: &str = "a figure of the stressor's own, whose unit is told in words alone";

/// Where the reader is.
#[derive(Default)]
enum Place {
    #[default]
    Elsewhere,
    /// Below the header of the printed table.
    Table,
    /// Behind the title of what stressors count of their own.
    OwnMetrics,
    /// In a section of the YAML without figures that are read.
    OtherSection,
    /// In the metrics of the YAML, of the stressor whose figures are a row of that number.
    Metrics(Arc<LogConditions>, u64),
    /// Below the names of stressors of a summary.
    Summary(Vec<Arc<str>>),
}

/// Reads what stress-ng prints and writes.
#[derive(Default)]
pub(crate) struct StressNg {
    place: Place,
    /// Of the machine, as the YAML says it.
    machine: LogConditions,
}

impl LineTool for StressNg {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        if let Some(rest) = text.strip_prefix("stress-ng: ") {
            return self.take_printed(rest, line, sink);
        }
        if let Some(names) = text.strip_prefix("PLATFORM\t") {
            self.place = Place::Summary(names.split('\t').map(|name| Arc::from(name.trim())).collect());
            return Taken::Known;
        }
        if text == "metrics:" {
            self.place = Place::Metrics(Arc::new(LogConditions::default()), sink.begin_row());
            return Taken::Known;
        }
        if SECTIONS.contains(&text) {
            self.place = Place::OtherSection;
            return Taken::Known;
        }
        const SUMMARY: &[&str] = &[
            "# This file summarizes",
            "# under the directory of this file",
            "# The value of each stressor",
            "# the average bogo-ops",
            "# same platform,",
            "# to results of the same stressor",
            "# is the relative value",
            "# Reference platform",
            "# Number of stressors",
            "# Number of platforms",
        ];
        if SUMMARY.iter().any(|start| text.starts_with(start)) {
            return Taken::Known;
        }
        match &self.place {
            Place::Summary(names) => take_platform(&names.clone(), line, sink),
            Place::Metrics(..) | Place::OtherSection => self.take_yaml(line, sink),
            _ => Taken::No,
        }
    }
}

impl StressNg {
    /// A line of the program's own, behind its name.
    fn take_printed(&mut self, rest: &str, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let Some((kind, body)) = rest.split_once("] ") else { return Taken::No };
        if kind.contains("error:") || kind.contains("fail:") {
            return Taken::Failure;
        }
        let body = body.trim();
        if body.starts_with("stressor ") && body.contains("bogo ops") {
            self.place = Place::Table;
            return Taken::Known;
        }
        if body.starts_with("miscellaneous metrics") {
            self.place = Place::OwnMetrics;
            return Taken::Known;
        }
        match self.place {
            Place::Table => self.take_table(body, line, sink),
            Place::OwnMetrics if is_own_metric(body) => {
                sink.remark(RemarkKind::Withheld, line.number, line.text, OWN_UNIT);
                Taken::Known
            }
            _ => Taken::Known,
        }
    }

    /// A row of the printed table, or what stands around it.
    fn take_table(&mut self, body: &str, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let mut words = body.split_whitespace();
        let Some(stressor) = words.next() else { return Taken::Known };
        let Some(numbers) = words.map(Printed::read).collect::<Option<Vec<_>>>() else { return Taken::Known };
        if !(6..=8).contains(&numbers.len()) {
            return Taken::Known;
        }
        let mut conditions = LogConditions {
            program: Some(stressor.into()),
            more: self.machine.more.clone(),
            ..Default::default()
        };
        if let Some(resident) = numbers.get(7).and_then(|number| number.number()?.whole()) {
            conditions.set_number("resident_max_kib", resident);
        }
        let row = Row {
            tool: LogTool::StressNg,
            conditions: Arc::new(conditions),
            line: line.number,
            number: sink.begin_row(),
            text: line.text,
        };
        let only = |subject| LogMetric::new(subject, MetricStatistic::Only);
        let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
        let figures = [
            (only(MetricSubject::BogoOperations), Scale::Count),
            (only(MetricSubject::RunTime), Scale::SECONDS),
            (only(MetricSubject::UserTime), Scale::SECONDS),
            (only(MetricSubject::SystemTime), Scale::SECONDS),
            (mean(MetricSubject::BogoRate), Scale::PER_S),
            (mean(MetricSubject::BogoRateOfProcessorTime), Scale::PER_S),
            (mean(MetricSubject::ProcessorUse), Scale::Percent),
        ];
        for ((metric, scale), number) in figures.into_iter().zip(&numbers) {
            row.put(metric, *number, scale, LogCautions::default(), sink);
        }
        Taken::Measured
    }

    /// A line of the YAML.
    fn take_yaml(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let (is_item, text) = line.text.strip_prefix("- ").map_or((false, line.text), |text| (true, text));
        let pair = text.split_once(':').map(|(key, value)| (key.trim(), value.trim().trim_matches('\'')));
        let is_pair = |key: &str| !key.is_empty() && !key.contains(char::is_whitespace);
        let Some((key, value)) = pair.filter(|(key, _)| is_pair(key)) else {
            self.place = Place::Elsewhere;
            return Taken::No;
        };
        let Place::Metrics(conditions, row) = &mut self.place else {
            match (key, value.parse::<u64>()) {
                ("cpus-online", Ok(cpus)) => self.machine.set_number("processors_online", cpus),
                ("stress-ng-version", _) => self.machine.set_text("version", value),
                ("machine", _) => self.machine.set_text("machine", value),
                _ => {}
            }
            return Taken::Known;
        };
        match (is_item, key) {
            (true, "stressor") => {
                let more = self.machine.more.clone();
                *conditions =
                    Arc::new(LogConditions { program: Some(value.into()), more, ..Default::default() });
                *row = sink.begin_row();
                return Taken::Known;
            }
            (true, "instance") => {
                // Figures of one of several that ran at once.
                *row = sink.begin_row();
                if let Ok(instance) = value.parse() {
                    Arc::make_mut(conditions).set("instance", LogDetail::Number(instance));
                }
                return Taken::Known;
            }
            (_, "instances" | "max-rss") => return Taken::Known,
            _ => {}
        }
        let only = |subject| LogMetric::new(subject, MetricStatistic::Only);
        let mean = |subject| LogMetric::new(subject, MetricStatistic::Mean);
        let (metric, scale) = match key {
            "bogo-ops" => (only(MetricSubject::BogoOperations), Scale::Count),
            "bogo-ops-per-second-usr-sys-time" => {
                (mean(MetricSubject::BogoRateOfProcessorTime), Scale::PER_S)
            }
            "bogo-ops-per-second-real-time" => (mean(MetricSubject::BogoRate), Scale::PER_S),
            "wall-clock-time" => (only(MetricSubject::RunTime), Scale::SECONDS),
            "user-time" => (only(MetricSubject::UserTime), Scale::SECONDS),
            "system-time" => (only(MetricSubject::SystemTime), Scale::SECONDS),
            "cpu-usage-per-instance" | "cpu-usage" => (mean(MetricSubject::ProcessorUse), Scale::Percent),
            _ if Printed::read(value).is_some() => {
                sink.remark(RemarkKind::Withheld, line.number, line.text, OWN_UNIT);
                return Taken::Known;
            }
            _ => return Taken::Unknown("stress-ng writes no such key among its metrics".into()),
        };
        let Some(number) = Printed::read(value) else {
            return Taken::Unknown("a metric of stress-ng that is no number".into());
        };
        let row = Row {
            tool: LogTool::StressNg,
            conditions: conditions.clone(),
            line: line.number,
            number: *row,
            text: line.text,
        };
        row.put(metric, number, scale, LogCautions::default(), sink);
        Taken::Measured
    }
}

/// Whether a line has a stressor, a number and what it counts.
fn is_own_metric(body: &str) -> bool {
    let mut words = body.split_whitespace();
    words.next().is_some_and(|stressor| !stressor.ends_with(':'))
        && words.next().and_then(Printed::read).is_some()
}

/// A platform of a summary: for each stressor the mean rate, its standing among platforms, and its ratio to one of them,
/// which both follow from the means. A stressor that did not run has none.
fn take_platform(names: &[Arc<str>], line: &LogLine<'_>, sink: &mut Sink) -> Taken {
    let mut cells = line.text.split('\t');
    let Some(platform) = cells.next().filter(|_| line.text.contains('\t')) else { return Taken::No };
    let rates: Option<Vec<Printed>> = cells
        .map(|cell| {
            let parts: Vec<&str> = cell.trim().split('/').collect();
            let [rate, _, _] = parts[..] else { return None };
            parts.iter().all(|part| Printed::read(part).is_some()).then(|| Printed::read(rate)).flatten()
        })
        .collect();
    let Some(rates) = rates.filter(|rates| rates.len() == names.len()) else {
        return Taken::Unknown(
            format!("a platform has one cell `B/Z/R` for each of {} stressors", names.len()).into(),
        );
    };
    let metric = LogMetric::new(MetricSubject::BogoRate, MetricStatistic::Mean);
    for (name, rate) in names.iter().zip(rates) {
        if rate.number().is_none() {
            continue;
        }
        let mut conditions = LogConditions { program: Some(name.clone()), ..LogConditions::default() };
        conditions.set_text("platform", platform);
        let row = Row {
            tool: LogTool::StressNg,
            conditions: Arc::new(conditions),
            line: line.number,
            number: sink.begin_row(),
            text: line.text,
        };
        row.put(metric, rate, Scale::PER_S, LogCautions::default(), sink);
    }
    Taken::Measured
}
