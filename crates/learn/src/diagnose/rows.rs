//! Rows beside what is expected of them: how far each is off, whether all are off together, and what they scatter by.

use super::cause::CauseChange;
use super::points::{self, Point, PrintedUnit, Runs, Series};
use super::shape::RowShape;
use super::{GAP, Leeway};
use crate::calibrate::quantile;
use crate::expect::{Expected, ToolBench};
use crate::run::{RunKind, RunLength, ToolRun};
use offpath_logs::{LogFigure, TrafficDirections};
use offpath_profile::System;
use std::collections::BTreeSet;

/// The logarithm of it.
pub(super) fn gap() -> f64 {
    -GAP.ln()
}

/// Points of a series that a fit looks at: causes differ over decades of payloads, not between neighbours.
pub(super) const MOST_OF_SERIES: usize = 12;

/// Points in all that it looks at.
pub(super) const MOST_POINTS: usize = 48;

/// A deviation counts as at most this much: one odd row decides nothing.
pub(super) const MOST_DEVIATION: f64 = 3.0;

/// The mean of a third of a series is off where it is so many of its standard deviations from none: of 12 thirds of healthy
/// suites one in thousands.
pub(super) const SYSTEMATIC: f64 = 4.0;

/// Rows of a third at least.
pub(super) const LEAST_THIRD: usize = 5;

/// Rows count as scattering by this at least: figures have as many digits.
pub(super) const LEAST_SCATTER: f64 = 0.002;

/// What binds an expected rate, or that nothing does.
pub(super) fn bound_by(expected: &Expected) -> &str {
    match expected.kind {
        RunKind::Latency => "its latency",
        RunKind::Bandwidth => expected.ceilings.first().map_or("nothing", |one| one.kind.name()),
    }
}

/// A row that can be compared.
pub(super) struct Row<'s> {
    pub series: &'s Series,
    pub point: &'s Point,
    pub runs: Runs,
}

impl Row<'_> {
    /// Messages per second of a bandwidth test.
    pub fn rate_per_s(&self) -> Option<f64> {
        self.series.rate_per_s(self.point)
    }

    /// What its log states and may hold it back, in words.
    fn held_by(&self) -> Vec<String> {
        let Runs { stated, reference } = &self.runs;
        let reads = |reads: Option<u64>| reads.map(|reads| format!("{reads} READs in flight"));
        let differs = [
            (stated.tx_depth != reference.tx_depth).then(|| format!("a depth of {}", stated.tx_depth)),
            (stated.inline != reference.inline).then(|| format!("{} inline", stated.inline)),
            (stated.mtu != reference.mtu).then(|| stated.mtu.map(|mtu| format!("an MTU of {mtu}"))).flatten(),
            (stated.outstanding_reads != reference.outstanding_reads)
                .then(|| reads(stated.outstanding_reads))
                .flatten(),
            match stated.length {
                Some(RunLength::Iterations(count)) if stated.length != reference.length => {
                    Some(format!("{count} iterations"))
                }
                _ => None,
            },
        ];
        differs.into_iter().flatten().collect()
    }

    /// What a row's log states is so: a cause that would have it otherwise has it as stated.
    pub fn keep_stated(&self, change: &CauseChange, run: &mut ToolRun) {
        let (says, stated) = (&self.point.conditions, &self.runs.stated);
        match change {
            CauseChange::TxDepth(_) if says.tx_depth.is_some() && run.kind == RunKind::Bandwidth => {
                run.tx_depth = stated.tx_depth;
                run.cq_moderation = self.runs.reference.cq_moderation.min(stated.tx_depth);
            }
            CauseChange::OutstandingReads(_) if says.outstanding_reads.is_some() => {
                run.outstanding_reads = stated.outstanding_reads;
            }
            CauseChange::PathMtu(_) if says.mtu.is_some() => run.mtu = stated.mtu,
            CauseChange::Inline(_) if says.inline.is_some() => run.inline = stated.inline,
            CauseChange::Iterations(_) if says.iterations.is_some() || says.duration.is_some() => {
                run.length = stated.length;
            }
            CauseChange::OneDirection if says.directions.is_some() => run.directions = stated.directions,
            _ => {}
        }
    }

    /// How many times what it is the row's figure says under a change.
    pub fn printed_times(&self, change: &CauseChange, run: &ToolRun) -> f64 {
        match (change, run.kind, self.point.measured) {
            (CauseChange::Unit(times), RunKind::Bandwidth, LogFigure::BitRate(_)) => match self.series.unit {
                PrintedUnit::Right => 1.0,
                PrintedUnit::Wrong(times) => times,
                PrintedUnit::Unknown => *times,
            },
            (CauseChange::OneDirection, RunKind::Bandwidth, _)
                if run.directions == TrafficDirections::Both =>
            {
                0.5
            }
            // A log that names its program says by that which span it prints.
            (CauseChange::Latency(_), ..) if self.point.conditions.operation.is_some() => 1.0,
            (CauseChange::Latency(times), RunKind::Latency, _) => *times,
            (CauseChange::HalfCounted(of), kind, _) if of.contains(&self.series.place()) => match kind {
                RunKind::Bandwidth => 0.5,
                RunKind::Latency => 2.0,
            },
            _ => 1.0,
        }
    }

    /// What is expected, as the figure that the row has.
    pub fn figure(&self, expected: &Expected) -> Option<LogFigure> {
        let is_latency = expected.kind == RunKind::Latency;
        Some(match self.point.measured {
            LogFigure::Time(_) if is_latency => LogFigure::Time(expected.latency),
            LogFigure::BitRate(_) if !is_latency => {
                let bits = expected.rate_per_s * expected.payload.get() as f64 * 8.0;
                LogFigure::BitRate(offpath_quantity::BitRate::from_bits_per_second(bits.round() as u64))
            }
            LogFigure::Rate(_) if !is_latency => LogFigure::Rate(offpath_logs::WorkRate::from_micro_per_s(
                (expected.rate_per_s * 1e6).round() as u64,
            )),
            _ => return None,
        })
    }
}

/// Whether a change of the system makes rows impossible that were measured: what a log states is lifted where the gap is explained,
/// and as the runs are stated, a quarter of them were faster than the model has them with the change, by more than the gap and than
/// without it.
pub(super) fn is_refuted(rows: &[(&Row, f64)], system: &System, path: &str, change: &CauseChange) -> bool {
    // A figure in another unit than it says is no measured rate, nor is one that may be and lies as far above the model as a unit would have it.
    let tells = |(row, _): &&(&Row, f64)| !matches!(row.series.unit, PrintedUnit::Wrong(_));
    const LEAST_UNIT: f64 = 4.0;
    let rows: Vec<&Row> = rows.iter().filter(tells).map(|(row, _)| *row).collect();
    if !change.is_of_system() || rows.iter().all(|row| row.runs.stated == row.runs.reference) {
        return false;
    }
    let (Some(without), Some(with)) = (changed(system, path, &[]), changed(system, path, &[change])) else {
        return false;
    };
    let faster = |row: &Row, bench: &ToolBench| -> Option<f64> {
        let expected = bench.expect(&row.runs.stated).ok()?;
        Some((row.point.performance() / points::performance(row.figure(&expected)?)).ln())
    };
    let is_faster = |row: &Row| -> Option<bool> {
        let (before, after) = (faster(row, &without)?, faster(row, &with)?);
        let is_unit = row.series.unit == PrintedUnit::Unknown && before > LEAST_UNIT.ln();
        Some(after > gap() && after > before + gap() && !is_unit)
    };
    let refuted = rows.iter().filter(|row| is_faster(row) == Some(true)).count();
    refuted > 0 && refuted * 4 >= rows.len()
}

/// A system with changes; nothing where they do not fit it.
pub(super) fn changed(system: &System, path: &str, changes: &[&CauseChange]) -> Option<ToolBench> {
    let mut system = system.clone();
    let mut path = path;
    for change in changes {
        change.change_system(&mut system);
        if let CauseChange::OtherPath(other) = change {
            path = other;
        }
    }
    ToolBench::new(&system, path).ok()
}

/// Whether figures are off in a direction, 1 for low: a quarter of the rows or three neighbours by more than the gap.
pub(super) fn is_off(rows: &[(&Row, f64)], direction: f64) -> bool {
    let is_beyond = |deviation: f64| deviation * direction > gap();
    let beyond = rows.iter().filter(|(_, deviation)| is_beyond(*deviation)).count();
    if beyond * 4 >= rows.len() {
        return beyond > 0;
    }
    rows.windows(3).any(|three| {
        let is_one_series = std::ptr::eq(three[0].0.series, three[2].0.series);
        is_one_series && three.iter().all(|(_, deviation)| is_beyond(*deviation))
    })
}

/// The same of rows that are off by more than what is not known of the system leaves open, too.
pub(super) fn is_beyond(rows: &[(&Row, f64)], leeways: &[Leeway], direction: f64) -> bool {
    let open = |leeway: &Leeway| if direction > 0.0 { -leeway.least.ln() } else { leeway.most.ln() };
    let beyond: Vec<(&Row, f64)> = rows
        .iter()
        .zip(leeways)
        .map(|((row, deviation), leeway)| (*row, deviation - direction * (open(leeway) - gap()).max(0.0)))
        .collect();
    is_off(&beyond, direction)
}

/// That head and rows are of two runs is said of rows that are so many times beyond all that is left open: a profile's latency may be off
/// by more than its intervals, too, and then a depth of 1 makes more than it says.
const LEAST_APART: f64 = 2.0;

/// Runs whose rows are more than what their own log states allows, beyond all that is not known of the system, and no more than
/// the card can do with that lifted: their head is of another run, each in words.
pub(super) fn apart(kept: &[(&Row, f64, f64)], as_stated: &[Leeway], lifted: &[Leeway]) -> Vec<String> {
    let all: Vec<_> = kept.iter().zip(as_stated.iter().zip(lifted)).collect();
    let is_one_series = |one: &(&(&Row, f64, f64), _), other: &(&(&Row, f64, f64), _)| {
        std::ptr::eq(one.0.0.series, other.0.0.series)
    };
    let mut found = Vec::new();
    for series in all.chunk_by(is_one_series) {
        // What is stated and costs nothing does not tell.
        let held: Vec<_> = series.iter().filter(|((_, one, other), _)| one - other > gap()).collect();
        let stated: Vec<(&Row, f64)> = held.iter().map(|((row, _, gap), _)| (*row, *gap)).collect();
        let healthy: Vec<(&Row, f64)> = held.iter().map(|((row, gap, _), _)| (*row, *gap)).collect();
        let more = |leeway: &Leeway| Leeway { most: leeway.most * LEAST_APART, ..*leeway };
        let as_stated: Vec<Leeway> = held.iter().map(|(_, (leeway, _))| more(leeway)).collect();
        let lifted: Vec<Leeway> = held.iter().map(|(_, (_, leeway))| **leeway).collect();
        if !is_beyond(&stated, &as_stated, -1.0) || is_beyond(&healthy, &lifted, -1.0) {
            continue;
        }
        let times = stated.iter().map(|(_, gap)| (-gap).exp()).fold(0.0, f64::max);
        let (first, last) = (stated[0].0, stated[stated.len() - 1].0);
        let states: BTreeSet<String> = stated.iter().flat_map(|(row, _)| row.held_by()).collect();
        found.push(format!(
            "{}:{}-{}: up to {times:.1} times what the model expects of a run with {}, which is what the log states: head and rows cannot be \
             of one run",
            first.series.file,
            first.point.line,
            last.point.line,
            states.into_iter().collect::<Vec<_>>().join(", ")
        ));
    }
    found
}

/// Rows of each series, in their order.
pub(super) fn by_series<'r, 's>(rows: &[(&'r Row<'s>, f64)]) -> Vec<Vec<(&'r Row<'s>, f64)>> {
    let mut found: Vec<Vec<(&Row, f64)>> = Vec::new();
    for (row, deviation) in rows {
        match found.last_mut() {
            Some(last) if std::ptr::eq(last[0].0.series, row.series) => last.push((row, *deviation)),
            _ => found.push(vec![(row, *deviation)]),
        }
    }
    found
}

/// What rows scatter by from one to the next, whatever they are off by together: a standard deviation, by the median.
pub(super) fn scatter(rows: &[(&Row, f64)]) -> f64 {
    let mut steps: Vec<f64> = by_series(rows)
        .iter()
        .flat_map(|series| series.windows(2).map(|two| (two[1].1 - two[0].1).abs()).collect::<Vec<_>>())
        .collect();
    steps.sort_by(f64::total_cmp);
    // The median of a normal number's size is 0.674 deviations, and a difference scatters by the root of two.
    steps
        .get(steps.len() / 2)
        .map_or(f64::INFINITY, |median| (median / 0.674 / 2f64.sqrt()).max(LEAST_SCATTER))
}

/// Whether rows are off together by less than the gap: a third of a series by more than its mean scatters.
pub(super) fn is_systematic(rows: &[(&Row, f64)]) -> bool {
    let scatter = scatter(rows);
    by_series(rows).iter().any(|series| {
        let third = series.len().div_ceil(3).max(LEAST_THIRD);
        series.chunks(third).filter(|own| own.len() >= LEAST_THIRD).any(|own| {
            let count = own.len() as f64;
            let mean = own.iter().map(|(_, deviation)| deviation).sum::<f64>() / count;
            mean.abs() > SYSTEMATIC * scatter / count.sqrt()
        })
    })
}

/// The rows that a fit looks at, spread over each series.
pub(super) fn chosen<'r, 's>(rows: &[(&'r Row<'s>, f64)]) -> Vec<(&'r Row<'s>, f64)> {
    let by_series = by_series(rows);
    let each = (MOST_POINTS / by_series.len().max(1)).clamp(1, MOST_OF_SERIES);
    let spread = by_series.into_iter().flat_map(|series| {
        let count = series.len();
        let keep = each.min(count);
        let place = move |index: usize| if keep == 1 { count - 1 } else { index * (count - 1) / (keep - 1) };
        (0..keep).map(|index| series[place(index)]).collect::<Vec<_>>()
    });
    spread.collect()
}

/// How far a row is below what is expected under changes, as a logarithm of performance; nothing where it is not predicted.
pub(super) fn deviation(row: &Row, bench: &ToolBench, changes: &[&CauseChange]) -> Option<f64> {
    let mut run = row.runs.reference.clone();
    let mut times = 1.0;
    for change in changes {
        change.change_run(&mut run);
        row.keep_stated(change, &mut run);
        times *= row.printed_times(change, &run);
    }
    let expected = bench.expect(&run).ok()?;
    let figure = points::performance(row.figure(&expected)?);
    // A latency that is printed as twice what it is looks half as good.
    let printed = match run.kind {
        RunKind::Latency => figure / times,
        RunKind::Bandwidth => figure * times,
    };
    let deviation = (printed / row.point.performance()).ln();
    deviation.is_finite().then(|| deviation.clamp(-MOST_DEVIATION, MOST_DEVIATION))
}

/// Places of the rows that are off by more than a gap from what is expected as stated, the furthest first.
pub(super) fn off_rows(kept: &[(&Row, f64, f64)]) -> Vec<usize> {
    let mut off: Vec<usize> = (0..kept.len()).filter(|place| kept[*place].2.abs() > gap()).collect();
    // Rows that are as far off to a hundredth stay in their order.
    off.sort_by_key(|place| std::cmp::Reverse((kept[*place].2.abs() * 100.0).round() as u64));
    off
}

/// A series nearly all of whose rows are at half of what is expected.
pub(super) struct Half<'s> {
    pub series: &'s Series,
    lines: (u64, u64),
    payloads: (u64, u64),
    /// How many of its rows are at half, of how many.
    rows: (usize, usize),
}

/// How far a row, and how far the median of a series, may be from exactly half, as a logarithm: as far as what is no gap.
const MOST_FROM_HALF: f64 = 0.105;
const MOST_MEDIAN_FROM_HALF: f64 = 0.05;
/// The share of the rows that have to be: one may be off by something of its own.
const LEAST_AT_HALF: f64 = 0.8;

/// Series over payloads nearly all of whose rows are at half of what is expected as stated. Over so many payloads as this asks for,
/// different things bind the rate, and nothing that slows one of them halves all rows.
pub(super) fn halves<'s>(kept: &[(&Row<'s>, f64, f64)]) -> Vec<Half<'s>> {
    const LEAST_ROWS: usize = 4;
    const LEAST_SPAN: u64 = 64;
    let of_stated: Vec<(&Row, f64)> = kept.iter().map(|(row, _, gap)| (*row, *gap)).collect();
    let mut found = Vec::new();
    for series in by_series(&of_stated) {
        let from_half: Vec<f64> = series.iter().map(|(_, gap)| gap - 2f64.ln()).collect();
        let payloads = || series.iter().map(|(row, _)| row.runs.stated.payload.get());
        let (least, most) = (payloads().min().unwrap_or(0), payloads().max().unwrap_or(0));
        let is_wide = series.len() >= LEAST_ROWS && most >= least.saturating_mul(LEAST_SPAN);
        let near = from_half.iter().filter(|one| one.abs() <= MOST_FROM_HALF).count();
        let is_half = near as f64 >= LEAST_AT_HALF * series.len() as f64;
        if is_wide && is_half && quantile(&from_half, 0.5).abs() <= MOST_MEDIAN_FROM_HALF {
            let lines = (series[0].0.point.line, series[series.len() - 1].0.point.line);
            found.push(Half {
                series: series[0].0.series,
                lines,
                payloads: (least, most),
                rows: (near, series.len()),
            });
        }
    }
    found
}

impl Half<'_> {
    pub fn shape(&self) -> RowShape {
        let ((least, most), (near, all)) = (self.payloads, self.rows);
        let what = match self.series.kind {
            RunKind::Bandwidth => "half as much as is expected",
            RunKind::Latency => "twice the latency that is expected",
        };
        RowShape {
            file: self.series.file.clone(),
            lines: self.lines,
            name: "exactly-half",
            what: format!(
                "{what} in {near} of {all} rows from {least} to {most} B: what slows a part of the way seldom halves all sizes alike, \
                 what counts or times a half does"
            ),
        }
    }
}
