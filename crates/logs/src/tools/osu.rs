//! The OSU micro-benchmarks of MPI.

use crate::decimal::Printed;
use crate::measurement::{
    LatencySpan, LogCautions, LogConditions, LogMetric, LogTool, MetricStatistic, MetricSubject, Scale,
    TrafficDirections,
};
use crate::reader::{LogLine, Sink, Taken};
use crate::tools::{LineTool, Row};
use offpath_quantity::Bytes;
use std::sync::Arc;

/// A megabyte of these benchmarks is 10^6 bytes.
const MB_PER_S: Scale = Scale::BitRate(8_000_000);

/// What a validation says of a row.
const PASSED: &str = "Pass";
const FAILED: &str = "Fail";

/// What a column behind the size holds.
#[derive(Clone, Copy)]
enum OsuColumn {
    Figure(MetricSubject, MetricStatistic, Scale),
    Iterations,
    /// Whether the data were right.
    Validation,
}

/// Reads one test after the other.
#[derive(Default)]
pub(crate) struct Osu {
    test: Option<(Arc<LogConditions>, LatencySpan)>,
    columns: Vec<OsuColumn>,
}

impl LineTool for Osu {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        if let Some(title) = text.strip_prefix("# OSU ") {
            let Some((name, _)) = title.split_once(" Test") else { return Taken::No };
            self.begin(name);
            return Taken::Known;
        }
        let Some((conditions, span)) = &mut self.test else { return Taken::No };
        if let Some(header) = text.strip_prefix("# Size") {
            return match columns(header) {
                Some(columns) => {
                    if header.contains("Bi-Bandwidth") {
                        Arc::make_mut(conditions).directions = Some(TrafficDirections::Both);
                    }
                    self.columns = columns;
                    Taken::Known
                }
                None => Taken::Unknown("a header of OSU with a column that is not known".into()),
            };
        }
        if let Some(pairs) = text.strip_prefix("# [ pairs: ") {
            let number = |text: &str| text.split(' ').next().and_then(|number| number.parse().ok());
            let own = Arc::make_mut(conditions);
            if let Some(pairs) = number(pairs) {
                own.set_number("pairs", pairs);
            }
            own.tx_depth = pairs.split_once("[ window size: ").and_then(|(_, size)| number(size));
            return Taken::Known;
        }
        const STATED: &[(&str, &str)] = &[
            ("# Window creation:", "window_creation"),
            ("# Synchronization:", "synchronization"),
            ("# Datatype:", "datatype"),
            ("# Send Buffer on", "buffers"),
        ];
        if let Some((start, key)) = STATED.iter().find(|(start, _)| text.starts_with(start)) {
            Arc::make_mut(conditions).set_text(key, text[start.len()..].trim().trim_end_matches('.'));
            return Taken::Known;
        }
        if text.starts_with("DATA VALIDATION ERROR:") {
            return Taken::Failure;
        }
        let mut words = text.split_ascii_whitespace();
        let Some(size) = words.next().and_then(|word| word.parse().ok()) else { return Taken::No };
        let cells: Vec<&str> = words.collect();
        let is_verdict = |cell: &str| cell == PASSED || cell == FAILED;
        if !cells.iter().all(|cell| is_verdict(cell) || Printed::read(cell).is_some()) {
            return Taken::No;
        }
        if self.columns.is_empty() || cells.len() != self.columns.len() {
            return Taken::Unknown("the row has another number of columns than the header of OSU".into());
        }
        let of_column =
            |(column, cell): (&OsuColumn, &&str)| matches!(column, OsuColumn::Validation) == is_verdict(cell);
        if !self.columns.iter().zip(&cells).all(of_column) {
            return Taken::Unknown("the row does not hold what the header of OSU says".into());
        }
        if cells.contains(&FAILED) {
            return Taken::Failure;
        }
        let mut conditions = (**conditions).clone();
        conditions.payload = Some(Bytes::new(size));
        let numbers = || self.columns.iter().zip(cells.iter().map(|cell| Printed::read(cell)));
        let iterations = numbers().find(|(column, _)| matches!(column, OsuColumn::Iterations));
        conditions.iterations = iterations.and_then(|(_, number)| number?.number()?.whole());
        let span = *span;
        let row = Row {
            tool: LogTool::Osu,
            conditions: Arc::new(conditions),
            line: line.number,
            number: sink.begin_row(),
            text,
        };
        for (column, number) in numbers() {
            if let (OsuColumn::Figure(subject, statistic, scale), Some(number)) = (*column, number) {
                let span = (subject == MetricSubject::Latency).then_some(span);
                row.put(LogMetric { subject, statistic, span }, number, scale, LogCautions::default(), sink);
            }
        }
        Taken::Measured
    }
}

impl Osu {
    fn begin(&mut self, name: &str) {
        let both = name.to_ascii_lowercase().contains("bi-directional");
        let directions = name.contains("Bandwidth").then_some(match both {
            true => TrafficDirections::Both,
            false => TrafficDirections::One,
        });
        // Between two ranks a round trip is halved; one-sided operations and collectives are not.
        let own = match name.split_once(' ') {
            Some((_, rest)) if !name.starts_with("MPI_") => rest.trim(),
            _ => name,
        };
        let span = match own {
            _ if own.starts_with("MPI_") => LatencySpan::WholeOperation,
            "Latency"
            | "Multi Latency"
            | "Multi-threaded Latency"
            | "Multi-process Latency"
            | "Persistent Latency"
            | "Partitioned Latency" => LatencySpan::HalfRoundTrip,
            // One-sided operations of OpenSHMEM and UPC, whose names have a library before them.
            _ if own.len() < name.len()
                && ["put", "get", "atomic"].iter().any(|word| own.to_ascii_lowercase().contains(word)) =>
            {
                LatencySpan::WholeOperation
            }
            _ => LatencySpan::Collective,
        };
        let conditions = LogConditions { program: Some(own.into()), directions, ..LogConditions::default() };
        self.test = Some((Arc::new(conditions), span));
        self.columns.clear();
    }
}

/// The columns behind the size.
fn columns(header: &str) -> Option<Vec<OsuColumn>> {
    use MetricStatistic::{Max, Mean, Min};
    let us = Scale::MICROSECONDS;
    let latency = |statistic| OsuColumn::Figure(MetricSubject::Latency, statistic, us);
    let known = [
        ("Avg Latency(us)", latency(Mean)),
        ("Min Latency(us)", latency(Min)),
        ("Max Latency(us)", latency(Max)),
        ("Latency (us)", latency(Mean)),
        ("Latency(us)", latency(Mean)),
        ("Bandwidth (MB/s)", OsuColumn::Figure(MetricSubject::Bandwidth, Mean, MB_PER_S)),
        ("Bi-Bandwidth (MB/s)", OsuColumn::Figure(MetricSubject::Bandwidth, Mean, MB_PER_S)),
        ("MB/s", OsuColumn::Figure(MetricSubject::Bandwidth, Mean, MB_PER_S)),
        ("Messages/s", OsuColumn::Figure(MetricSubject::OperationRate, Mean, Scale::PER_S)),
        ("Iterations", OsuColumn::Iterations),
        ("Validation", OsuColumn::Validation),
    ];
    let mut rest = header.trim();
    let mut columns = Vec::new();
    while !rest.is_empty() {
        let (title, column) = known.iter().find(|(title, _)| rest.starts_with(title))?;
        columns.push(*column);
        rest = rest[title.len()..].trim_start();
    }
    (!columns.is_empty()).then_some(columns)
}
