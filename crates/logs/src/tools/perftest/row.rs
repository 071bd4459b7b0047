//! The figures of a row.

use super::CellsOfRow;
use super::head::Section;
use super::table::{BandwidthUnit, Column};
use crate::decimal::{Decimal, Printed};
use crate::measurement::{
    LatencySpan, LogCaution, LogCautions, LogConditions, LogMetric, LogOperation, LogTool, MetricStatistic,
    MetricSubject, Scale,
};
use crate::reader::{LogLine, RemarkKind, Sink, Taken};
use crate::tools::Row;
use offpath_quantity::{Bytes, Time};
use std::sync::Arc;

/// A number and its column.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cell {
    pub(super) column: Column,
    pub(super) printed: Printed,
}

/// What holds for a row beside its cells.
pub(super) struct RowFacts {
    pub(super) conditions: Arc<LogConditions>,
    pub(super) cautions: LogCautions,
    /// Whether times are cycles, where the log says so.
    pub(super) cycles: Option<bool>,
    /// The span of latencies that the row itself tells.
    pub(super) span: Option<LatencySpan>,
}

impl RowFacts {
    pub(super) fn of(section: &mut Section) -> RowFacts {
        if section.is_mixed {
            return RowFacts {
                conditions: Arc::default(),
                cautions: LogCautions::default().with(LogCaution::MixedRows),
                cycles: section.cycles,
                span: None,
            };
        }
        RowFacts {
            conditions: section.conditions(),
            cautions: section.cautions(),
            cycles: section.cycles,
            span: None,
        }
    }
}

/// Samples to which the 99% and the 99.9% percentile are the greatest that is printed: perftest leaves three of its
/// iterations out and rounds the place up.
const MAXIMUM_IS_P99: u64 = 102;
const MAXIMUM_IS_P999: u64 = 1002;

/// Half of what is printed of a round trip: how latencies of an operation are to be read.
pub(super) fn span_of(operation: LogOperation) -> LatencySpan {
    match operation {
        LogOperation::Read
        | LogOperation::Atomic
        | LogOperation::CompareAndSwap
        | LogOperation::FetchAndAdd => LatencySpan::WholeOperation,
        _ => LatencySpan::HalfRoundTrip,
    }
}

fn cell(cells: &[Cell], wanted: impl Fn(Column) -> bool) -> Option<Decimal> {
    cells.iter().find(|cell| wanted(cell.column)).and_then(|cell| cell.printed.number())
}

/// Whether a row has what its columns say: whole counts, and decimals elsewhere.
pub(super) fn is_row(cells: &[Cell]) -> bool {
    cells.iter().all(|cell| match (cell.column, cell.printed) {
        (Column::Size | Column::ServiceLevel | Column::Iterations, Printed::Number(number)) => {
            number.whole().is_some()
        }
        (Column::Size | Column::ServiceLevel | Column::Iterations, Printed::NoFigure) => false,
        (_, Printed::Number(number)) => number.decimals() > 0,
        (_, Printed::NoFigure) => true,
    })
}

/// Whether the last number of a row lacks digits that perftest prints.
pub(super) fn lacks_digits(cells: &[Cell]) -> bool {
    let decimals = |column| match column {
        Column::Size | Column::ServiceLevel | Column::Iterations => 0,
        Column::MessageRate | Column::PortRate(_) => 6,
        _ => 2,
    };
    cells.last().is_some_and(|cell| {
        cell.printed.number().is_some_and(|number| number.decimals() < decimals(cell.column))
    })
}

/// Size and iterations of a row, and whether the iterations are what was counted in a time, for all that it shows.
pub(super) fn extent(cells: &[Cell]) -> Option<(u64, u64, bool)> {
    let whole = |wanted| cell(cells, |column| column == wanted).and_then(Decimal::whole);
    let is_timed = |column| matches!(column, Column::Min | Column::Peak(_));
    let is_counted = cell(cells, is_timed).is_none_or(Decimal::is_zero);
    Some((whole(Column::Size)?, whole(Column::Iterations)?, is_counted))
}

/// How long a run by time was counted, by its row: it has no peak and no least time, and its iterations took whole seconds.
fn counted_for(cells: &[Cell]) -> Option<Time> {
    const NEAR: f64 = 0.01;
    let (_, iterations, is_counted) = extent(cells)?;
    let millions = cell(cells, |column| column == Column::MessageRate).map(|rate| rate.approximate() * 1e6);
    let each = || cell(cells, |column| column == Column::Transactions).map(Decimal::approximate);
    let seconds = iterations as f64 / millions.or_else(each).filter(|rate| *rate > 0.0)?;
    let whole = seconds.round();
    let is_whole = (1.0..1e6).contains(&whole) && (seconds - whole).abs() <= NEAR * whole;
    (is_counted && is_whole).then(|| Time::from_ms(1_000 * whole as u64))
}

/// The mean bandwidth in units of its column, the same from size and rate in bytes per second, and how far rounding may
/// part them, in those units.
fn both_bandwidths(cells: &[Cell], per_unit: f64) -> Option<(f64, f64, f64)> {
    let size = cell(cells, |column| column == Column::Size)?.approximate();
    let rate = cell(cells, |column| column == Column::MessageRate)?;
    let average = cell(cells, |column| matches!(column, Column::Average(_)))?;
    let from_rate = size * rate.approximate() * 1e6 / per_unit;
    let apart = 2.0 * average.rounding() + 2.0 * size * rate.rounding() * 1e6 / per_unit;
    Some((average.approximate(), from_rate, apart))
}

/// Bytes per second of a unit.
fn per_unit(unit: BandwidthUnit) -> Option<f64> {
    match unit {
        BandwidthUnit::Mebibytes => Some(1_048_576.0),
        BandwidthUnit::Gigabits => Some(125e6),
        BandwidthUnit::Unstated => None,
    }
}

/// How far two figures of one row may lie apart beyond rounding.
const AGREEMENT: f64 = 0.005;

/// Whether size times rate is the bandwidth; nothing where a row does not tell.
pub(super) fn rate_agrees(cells: &[Cell]) -> Option<bool> {
    let unit = cells.iter().find_map(|cell| match cell.column {
        Column::Average(unit) => Some(unit),
        _ => None,
    })?;
    let (average, from_rate, apart) = both_bandwidths(cells, per_unit(unit)?)?;
    Some((average - from_rate).abs() <= apart + AGREEMENT * from_rate.max(average))
}

/// The unit in which size times rate is the bandwidth; nothing where none is, or rounding leaves too little.
pub(super) fn unit_from_rate(cells: &[Cell]) -> Option<BandwidthUnit> {
    let mut units = [BandwidthUnit::Mebibytes, BandwidthUnit::Gigabits].into_iter().filter(|unit| {
        per_unit(*unit).and_then(|per_unit| both_bandwidths(cells, per_unit)).is_some_and(
            |(average, from_rate, apart)| {
                from_rate > 2.0 * apart
                    && average > 2.0 * apart
                    && (average - from_rate).abs() <= apart + AGREEMENT * from_rate
            },
        )
    });
    match (units.next(), units.next()) {
        (unit, None) => unit,
        _ => None,
    }
}

/// The same cells, their bandwidths in a unit.
pub(super) fn in_unit(cells: &[Cell], unit: BandwidthUnit) -> Vec<Cell> {
    let column = |column| match column {
        Column::Peak(_) => Column::Peak(unit),
        Column::Average(_) => Column::Average(unit),
        Column::PortAverage(port, _) => Column::PortAverage(port, unit),
        other => other,
    };
    cells.iter().map(|cell| Cell { column: column(cell.column), ..*cell }).collect()
}

/// A row that tells its columns by itself.
pub(super) struct Fragment {
    pub(super) cells: Vec<Cell>,
    pub(super) cautions: LogCautions,
    pub(super) span: Option<LatencySpan>,
}

/// Reads a row without a header by what its numbers have to give together; nothing where they do not.
pub(super) fn fragment(cells: &CellsOfRow) -> Option<Fragment> {
    use Column as C;
    let unstated = BandwidthUnit::Unstated;
    let columns: &[Column] = match cells.all().len() {
        4 => &[C::Size, C::Iterations, C::Mean, C::Transactions],
        5 => &[C::Size, C::Iterations, C::Peak(unstated), C::Average(unstated), C::MessageRate],
        6 => &[
            C::Size,
            C::Iterations,
            C::Peak(unstated),
            C::Average(unstated),
            C::MessageRate,
            C::ProcessorUse,
        ],
        9 => &[C::Size, C::Iterations, C::Min, C::Max, C::Typical, C::Mean, C::Deviation, C::P99, C::P999],
        _ => return None,
    };
    let cells: Vec<Cell> = columns
        .iter()
        .zip(cells.all())
        .map(|(column, printed)| Cell { column: *column, printed: *printed })
        .collect();
    if !is_row(&cells) || cells.iter().any(|cell| cell.printed.number().is_none()) {
        return None;
    }
    let cautions = LogCautions::default().with(LogCaution::NoHeader);
    let of = |column| cell(&cells, |own| own == column);
    match cells.len() {
        4 => {
            let (mean, rate) = (of(C::Mean)?, of(C::Transactions)?);
            let product = mean.approximate() * rate.approximate() / 1e6;
            let apart = mean.rounding() / mean.approximate() + rate.rounding() / rate.approximate();
            let is = |factor: f64| (product - factor).abs() <= factor * (2.0 * apart + AGREEMENT);
            let span = match (apart < 0.1 && is(1.0), apart < 0.1 && is(0.5)) {
                (true, false) => LatencySpan::WholeOperation,
                (false, true) => LatencySpan::HalfRoundTrip,
                _ => return None,
            };
            Some(Fragment { cells, cautions, span: Some(span) })
        }
        5 | 6 => {
            let rate = of(C::MessageRate)?;
            let peak = cell(&cells, |column| matches!(column, C::Peak(_)))?;
            let average = cell(&cells, |column| matches!(column, C::Average(_)))?;
            let is_peak = peak.is_zero() || peak.approximate() >= 0.9 * average.approximate();
            if rate.decimals() != 6 || !is_peak {
                return None;
            }
            let unit = unit_from_rate(&cells)?;
            let cautions = cautions.with(LogCaution::UnitFromRate);
            Some(Fragment { cells: in_unit(&cells, unit), cautions, span: None })
        }
        _ => {
            let figures: Vec<f64> = [C::Min, C::Typical, C::P99, C::P999, C::Max, C::Mean]
                .into_iter()
                .map(|column| of(column).map(Decimal::approximate))
                .collect::<Option<_>>()?;
            let rises = figures[..5].windows(2).all(|two| two[0] <= two[1]);
            let is_between = figures[0] <= figures[5] && figures[5] <= figures[4];
            let has_two_decimals = cells[2..]
                .iter()
                .all(|cell| cell.printed.number().is_some_and(|number| number.decimals() == 2));
            let cautions = cautions.with(LogCaution::UnitOfTool);
            (rises && is_between && has_two_decimals).then_some(Fragment { cells, cautions, span: None })
        }
    }
}

/// Whether the columns that are samples themselves all hold whole or half units, as cycles do and microseconds do not.
pub(super) fn looks_like_cycles(cells: &[Cell]) -> bool {
    let mut samples = cells
        .iter()
        .filter(|cell| {
            matches!(cell.column, Column::Min | Column::Max | Column::Typical | Column::P99 | Column::P999)
        })
        .peekable();
    samples.peek().is_some()
        && samples.all(|cell| cell.printed.number().is_some_and(|number| number.is_halves()))
}

/// Why times are withheld that may be cycles.
pub(super) const MAYBE_CYCLES: &str =
    "every time is a multiple of a half, as cycles of `-C` are, which perftest prints under `[usec]`";

/// Puts the figures of a row down.
pub(super) fn put(facts: &RowFacts, cells: &[Cell], line: &LogLine<'_>, sink: &mut Sink) -> Taken {
    put_cells(facts, cells, |_| line.number, line.text, sink);
    Taken::Measured
}

/// Puts the figures of a row down, each on the line of its column.
pub(super) fn put_cells(
    facts: &RowFacts,
    cells: &[Cell],
    line_of: impl Fn(Column) -> u64,
    text: &str,
    sink: &mut Sink,
) {
    let mut conditions = (*facts.conditions).clone();
    let whole = |column| cell(cells, |own| own == column).and_then(Decimal::whole);
    conditions.payload = whole(Column::Size).map(Bytes::new).or(conditions.payload);
    conditions.iterations = whole(Column::Iterations).or(conditions.iterations);
    conditions.duration = conditions.duration.or_else(|| counted_for(cells));
    if let Some(level) = whole(Column::ServiceLevel) {
        conditions.set_number("service_level", level);
    }
    let iterations = conditions.iterations;
    let span = facts.span.or_else(|| conditions.operation.map(span_of));
    let by_port = |port: u8| {
        let mut conditions = conditions.clone();
        conditions.set_number("port", u64::from(port));
        Arc::new(conditions)
    };
    let number = sink.begin_row();
    let ports = [1, 2].map(|port| {
        let is_it = |cell: &Cell| matches!(cell.column, Column::PortAverage(own, _) | Column::PortRate(own) if own == port);
        cells.iter().any(is_it).then(|| (by_port(port), sink.begin_row()))
    });
    let shared = (Arc::new(conditions), number);
    // The mean of a run by duration is microseconds whatever was asked for.
    let is_by_duration = cells.iter().any(|cell| cell.column == Column::Transactions);
    let has_times = cells.iter().any(|cell| matches!(cell.column, Column::Min | Column::Typical));
    let cycles = if is_by_duration { Some(false) } else { facts.cycles };
    let is_withheld = has_times && cycles.is_none() && looks_like_cycles(cells);
    if is_withheld {
        sink.remark(RemarkKind::Withheld, line_of(Column::Min), text, MAYBE_CYCLES);
    }
    let time = if cycles == Some(true) { Scale::Cycles } else { Scale::MICROSECONDS };
    let maximum = cell(cells, |column| column == Column::Max);
    let is_maximum = |printed: Printed, most: u64| {
        iterations.is_some_and(|iterations| iterations <= most)
            && maximum.is_some_and(|maximum| printed == Printed::Number(maximum))
    };
    for Cell { column, printed } in cells.iter().copied() {
        let mut cautions = facts.cautions;
        let mut own = &shared;
        let bandwidth = |statistic| LogMetric::new(MetricSubject::Bandwidth, statistic);
        let latency = |statistic| LogMetric::latency(statistic, span);
        let rate = LogMetric::new(MetricSubject::OperationRate, MetricStatistic::Mean);
        let bandwidth_scale = |unit| match unit {
            BandwidthUnit::Mebibytes => Some(Scale::MIB_PER_S),
            BandwidthUnit::Gigabits => Some(Scale::GBIT_PER_S),
            BandwidthUnit::Unstated => None,
        };
        let found = match column {
            Column::Size | Column::ServiceLevel | Column::Iterations => None,
            // A peak that was not looked for is printed as 0.
            Column::Peak(_) if printed.number().is_some_and(Decimal::is_zero) => None,
            Column::Peak(unit) => {
                bandwidth_scale(unit).map(|scale| (bandwidth(MetricStatistic::Peak), scale))
            }
            Column::Average(unit) => {
                bandwidth_scale(unit).map(|scale| (bandwidth(MetricStatistic::Mean), scale))
            }
            Column::MessageRate => Some((rate, Scale::Rate(1_000_000))),
            Column::PortAverage(port, unit) => {
                own = ports[usize::from(port) - 1].as_ref().unwrap_or(own);
                bandwidth_scale(unit).map(|scale| (bandwidth(MetricStatistic::Mean), scale))
            }
            Column::PortRate(port) => {
                own = ports[usize::from(port) - 1].as_ref().unwrap_or(own);
                Some((rate, Scale::Rate(1_000_000)))
            }
            Column::ProcessorUse => {
                Some((LogMetric::new(MetricSubject::ProcessorUse, MetricStatistic::Mean), Scale::Percent))
            }
            Column::Transactions => Some((rate, Scale::PER_S)),
            _ if is_withheld => None,
            Column::Min => Some((latency(MetricStatistic::Min), time)),
            Column::Max => Some((latency(MetricStatistic::Max), time)),
            Column::Typical => Some((latency(MetricStatistic::Median), time)),
            Column::Mean => Some((latency(MetricStatistic::Mean), time)),
            Column::Deviation => {
                cautions = cautions.with(LogCaution::CutDeviations);
                Some((latency(MetricStatistic::StandardDeviation), time))
            }
            Column::P99 => {
                cautions = cautions.with_if(is_maximum(printed, MAXIMUM_IS_P99), LogCaution::IsTheMaximum);
                Some((latency(MetricStatistic::Percentile(99_000)), time))
            }
            Column::P999 => {
                cautions = cautions.with_if(is_maximum(printed, MAXIMUM_IS_P999), LogCaution::IsTheMaximum);
                Some((latency(MetricStatistic::Percentile(99_900)), time))
            }
        };
        if let Some((metric, scale)) = found {
            let (conditions, number) = own.clone();
            let row = Row { tool: LogTool::Perftest, conditions, line: line_of(column), number, text };
            row.put(metric, printed, scale, cautions, sink);
        }
    }
}

/// The number and the time of a line of `-H` or `-U`.
pub(super) fn sample(text: &str) -> Option<Printed> {
    let (index, value) = text.split_once(", ")?;
    index.parse::<u64>().ok()?;
    Printed::read(value.trim())
}

/// Puts one operation's time down.
pub(super) fn put_sample(
    section: &mut Section,
    printed: Printed,
    line: &LogLine<'_>,
    sink: &mut Sink,
) -> Taken {
    let facts = RowFacts::of(section);
    let span = facts.conditions.operation.map(span_of);
    let scale = if section.samples == Some(true) { Scale::Cycles } else { Scale::MICROSECONDS };
    let row = Row {
        tool: LogTool::Perftest,
        conditions: facts.conditions,
        line: line.number,
        number: sink.begin_row(),
        text: line.text,
    };
    let metric = LogMetric::latency(MetricStatistic::Sample, span);
    row.put(metric, printed, scale, facts.cautions, sink);
    Taken::Measured
}
