//! Why figures are lower than they should be: what was measured against what the model expects, point by point, and causes
//! as changes of the model, ranked by how much of the gap each explains.

mod cause;
mod points;
mod shape;

pub use cause::{Cause, CauseChange, CauseDegree};
pub use points::LoggedFigures;
pub use shape::{Question, RowShape};

use crate::describe::{Description, OddityKind};
use crate::expect::{ExpectError, Expected, ToolBench};
use crate::link_layer::PacketHeader;
use crate::run::{RunKind, RunLength, ToolProgram, ToolRun};
use cause::variants;
use offpath_logs::{LogFigure, TrafficDirections};
use offpath_profile::System;
use offpath_route::Router;
use points::{Point, PrintedUnit, Runs, Series, UNITS};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is below this share of what is expected is a gap. Predictions that were checked against published rows are off by
/// about as much, so less says nothing.
pub const GAP: f64 = 0.9;

/// The logarithm of it.
fn gap() -> f64 {
    -GAP.ln()
}

/// Points of a series that a fit looks at: causes differ over decades of payloads, not between neighbours.
const MOST_OF_SERIES: usize = 12;
/// Points in all that it looks at.
const MOST_POINTS: usize = 48;
/// A deviation counts as at most this much: one odd row decides nothing.
const MOST_DEVIATION: f64 = 3.0;
/// Two causes whose predictions differ by less than this on the mean cannot be told apart by rows that scatter by 2%.
const SAME: f64 = 0.015;
/// A second cause explains this share more than the first alone, or leaves no gap.
const MORE: f64 = 0.1;
/// The mean of a third of a series is off where it is so many of its standard deviations from none: of 12 thirds of healthy
/// suites one in thousands.
const SYSTEMATIC: f64 = 4.0;
/// Rows of a third at least.
const LEAST_THIRD: usize = 5;
/// Rows count as scattering by this at least: figures have as many digits.
const LEAST_SCATTER: f64 = 0.002;
/// A small cause is named where rows are left off by no more than this many deviations of their scatter on the mean; rows
/// that scatter alone are off by 0.8.
const MOST_LEFT: f64 = 1.0;
/// What explains less than this share of the gap is not shown as a cause.
const LEAST_SHARE: f64 = 0.2;
/// The same of a small gap.
const LEAST_SMALL_SHARE: f64 = 0.05;

/// A row of a log beside what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedPoint {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
    /// The run, in words.
    pub run: String,
    /// The figure's key.
    pub metric: String,
    /// What was measured.
    pub measured: LogFigure,
    /// What the model expects of the run with nothing that holds it back.
    pub expected: LogFigure,
    /// What it expects of the run as the log states it.
    pub expected_as_stated: LogFigure,
    /// The measured performance as a share of the expected one; of a latency the inverse.
    pub share: f64,
    /// The same of the run as the log states it.
    pub share_as_stated: f64,
    /// What binds the expected rate.
    pub bound_by: String,
}

/// What the figures are, on the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DiagnosisVerdict {
    /// They are what they should be.
    Normal,
    /// They are what they should be for what the log states, which holds them back.
    HeldBackAsStated,
    /// They are lower.
    Low,
    /// They are lower by less than that, all as one cause would have it.
    SlightlyLow,
    /// They are higher than the model has any room for.
    High,
    /// No figure can be compared.
    Nothing,
}

impl DiagnosisVerdict {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            DiagnosisVerdict::Normal => "normal",
            DiagnosisVerdict::HeldBackAsStated => "held-back-as-stated",
            DiagnosisVerdict::Low => "low",
            DiagnosisVerdict::SlightlyLow => "slightly-low",
            DiagnosisVerdict::High => "high",
            DiagnosisVerdict::Nothing => "nothing-comparable",
        }
    }
}

/// A cause that explains a part of the gap.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The cause.
    pub cause: Cause,
    /// The degree that fits best.
    pub degree: String,
    /// Share of the gap that it explains alone, 0 to 1.
    pub explained_share: f64,
    /// What else speaks for it: a line of a head, or of the machine's own files.
    pub evidence: Vec<String>,
}

/// Causes that the rows cannot tell apart.
#[derive(Clone, Debug, PartialEq)]
pub struct CauseGroup {
    /// They; those that something else speaks for first.
    pub findings: Vec<Finding>,
    /// The share that the best of them explains alone.
    pub explained_share: f64,
}

/// What is the matter with figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Diagnosis {
    /// On the whole.
    pub verdict: DiagnosisVerdict,
    /// Every row that can be compared.
    pub points: Vec<DiagnosedPoint>,
    /// The median share of the expected performance.
    pub median_share: f64,
    /// What the rows look like by themselves.
    pub shapes: Vec<RowShape>,
    /// Causes, the ones that explain most first.
    pub groups: Vec<CauseGroup>,
    /// The share that the first two causes explain together, where two are needed.
    pub explained_together: Option<f64>,
    /// What the model has no number for, and rows like these may come from.
    pub questions: Vec<Question>,
    /// What the logs do not state and was taken as the tool has it.
    pub assumed: Vec<String>,
    /// What the files of the machine say and the rows prove wrong.
    pub contradictions: Vec<String>,
    /// Figures that are not compared, by the reason.
    pub skipped: BTreeMap<String, u64>,
}

/// Says what is the matter with the figures of logs taken on a path of `system`.
///
/// `machine` is what the machine says of itself; what is odd about it speaks for a cause among those that the rows leave.
///
/// # Errors
/// Where the path is refused.
pub fn diagnose(
    system: &System,
    figures: LoggedFigures,
    machine: Option<&Description>,
) -> Result<Diagnosis, ExpectError> {
    let path = &*figures.path.clone();
    let (all, mut skipped) = points::series(figures);
    let mut assumed = Vec::new();
    let layers = all.iter().map(|series| series.conditions.link_layer.as_deref());
    let roce =
        PacketHeader::of_link_layers(layers).and_then(|header| Some((header, header.put_into(system)?)));
    let system = match &roce {
        Some((header, changed)) => {
            assumed.push(format!(
                "the logs state Ethernet: {} beside the payload of a packet, as RoCEv2 over IPv4 has it, and not the {} that the \
                 profile takes for any network",
                header.size, system.network.packet_header
            ));
            changed
        }
        None => system,
    };
    let healthy = Benches::new(system, path)?;
    let router = Router::new(system)?;
    let has_both = all.iter().any(|series| {
        series.conditions.directions.is_none_or(|directions| directions == TrafficDirections::Both)
    });
    let mut variants = variants(system, &router, path, has_both);
    let mut bench_of: Vec<Option<Benches>> = variants.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = Vec::new();
    for series in &all {
        let Some((program, resolved)) = resolve(series, &healthy, &variants, &mut bench_of, system, path)
        else {
            *skipped
                .entry("no program of perftest over RC that is modelled writes such rows".into())
                .or_default() += series.points.len() as u64;
            continue;
        };
        assumed.extend(assumptions(series, program));
        for (point, runs) in series.points.iter().zip(resolved) {
            match runs {
                Some(runs) => rows.push(Row { series, point, runs }),
                None => *skipped.entry("the row's payload is not said".into()).or_default() += 1,
            }
        }
    }
    assumed.sort();
    assumed.dedup();
    let mut points = Vec::new();
    let mut kept: Vec<(&Row, f64, f64)> = Vec::new();
    for row in &rows {
        let (expected, as_stated) =
            match (healthy.expect(&row.runs.reference), healthy.expect(&row.runs.stated)) {
                (Ok(expected), Ok(as_stated)) => (expected, as_stated),
                (Err(error), _) | (_, Err(error)) => {
                    *skipped.entry(error.to_string()).or_default() += 1;
                    continue;
                }
            };
        let measured = row.point.performance();
        let figures = (row.figure(&expected), row.figure(&as_stated));
        let (Some(figure), Some(figure_as_stated)) = figures else {
            *skipped.entry("a figure that no model predicts".into()).or_default() += 1;
            continue;
        };
        let (reference, stated) = (points::performance(figure), points::performance(figure_as_stated));
        kept.push((row, (reference / measured).ln(), (stated / measured).ln()));
        points.push(DiagnosedPoint {
            file: row.series.file.clone(),
            line: row.point.line,
            run: row.runs.stated.to_string(),
            metric: row.point.metric.to_string(),
            measured: row.point.measured,
            expected: figure,
            expected_as_stated: figure_as_stated,
            share: measured / reference,
            share_as_stated: measured / stated,
            bound_by: bound_by(&expected).to_string(),
        });
    }
    let shapes = shape::shapes(&all, system);
    let mut shares: Vec<f64> = points.iter().map(|point| point.share).collect();
    shares.sort_by(f64::total_cmp);
    let mut diagnosis = Diagnosis {
        verdict: DiagnosisVerdict::Nothing,
        points,
        median_share: shares.get(shares.len() / 2).copied().unwrap_or(f64::NAN),
        shapes,
        groups: Vec::new(),
        explained_together: None,
        questions: Vec::new(),
        assumed,
        contradictions: machine
            .map(|machine| contradictions(&rows, system, path, machine))
            .unwrap_or_default(),
        skipped,
    };
    if kept.is_empty() {
        return Ok(diagnosis);
    }
    // Files that the rows prove wrong are of another machine or another day: nothing in them is evidence.
    let machine = machine.filter(|_| diagnosis.contradictions.is_empty());
    let of_reference: Vec<(&Row, f64)> = kept.iter().map(|(row, gap, _)| (*row, *gap)).collect();
    let of_stated: Vec<(&Row, f64)> = kept.iter().map(|(row, _, gap)| (*row, *gap)).collect();
    let is_low = is_off(&of_reference, 1.0);
    let is_high = is_off(&of_reference, -1.0);
    if !is_low && !is_high && !is_systematic(&of_reference) {
        diagnosis.verdict = DiagnosisVerdict::Normal;
        return Ok(diagnosis);
    }
    let is_as_stated = !is_off(&of_stated, 1.0) && !is_off(&of_stated, -1.0);
    let is_stated_apart = of_reference.iter().zip(&of_stated).any(|((_, one), (_, other))| one != other);
    diagnosis.verdict = match (is_as_stated, is_low, is_high) {
        (true, _, _) if is_low || is_high || is_stated_apart && !is_systematic(&of_stated) => {
            DiagnosisVerdict::HeldBackAsStated
        }
        (_, true, _) => DiagnosisVerdict::Low,
        (_, false, true) => DiagnosisVerdict::High,
        (_, false, false) => DiagnosisVerdict::SlightlyLow,
    };
    variants.extend(of_plateau(&of_reference, system, path));
    bench_of.resize_with(variants.len(), || None);
    let fit = Fit { rows: chosen(&of_reference), all: &of_reference, system, path };
    let left = fit.rank(&variants, &mut bench_of, machine, &mut diagnosis)?;
    // Predictions err by as much as this, too: it counts where one cause leaves nothing but the rows' own scatter.
    let scatter = scatter(&of_reference);
    let is_found = !diagnosis.groups.is_empty() && left <= MOST_LEFT * scatter;
    if diagnosis.verdict == DiagnosisVerdict::SlightlyLow && !is_found {
        diagnosis.verdict = DiagnosisVerdict::Normal;
        diagnosis.groups.clear();
        diagnosis.explained_together = None;
        return Ok(diagnosis);
    }
    let stalls = shape::Stalls::of(of_reference.iter().filter_map(|(row, gap)| {
        let Some(RunLength::Iterations(count)) = row.runs.stated.length else { return None };
        let is_bandwidth = row.series.kind == RunKind::Bandwidth;
        let took = count as f64 / row.rate_per_s().filter(|_| is_bandwidth)?;
        Some((took, took / gap.exp()))
    }));
    diagnosis.questions = shape::questions(&all, &diagnosis, system, machine, stalls);
    Ok(diagnosis)
}

/// How far a figure may lie above what a link carries and still be rounding.
const ABOVE_LINK: f64 = 1.02;

/// What a machine's files say of the links that the rows went over, and no row that was as fast could be so.
fn contradictions(rows: &[Row], system: &System, path: &str, machine: &Description) -> Vec<String> {
    let is_host = |name: &str| {
        system.endpoint(name).is_ok_and(|(machine, own)| machine.prefix.is_empty() && own.processor.is_host)
    };
    let ends = path.parse::<offpath_route::Path>();
    let ends_at_host = ends.is_ok_and(|path| is_host(&path.requester) || is_host(&path.responder));
    let of_one_way = |row: &Row| {
        let ways = if row.runs.stated.directions == TrafficDirections::Both { 2.0 } else { 1.0 };
        let bits = row.rate_per_s()? * row.runs.stated.payload.get() as f64 * 8.0;
        (row.series.kind == RunKind::Bandwidth && row.series.unit == PrintedUnit::Right)
            .then_some(bits / ways)
    };
    let fastest =
        rows.iter().filter_map(|row| Some((row, of_one_way(row)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((row, bits)) = fastest.filter(|_| ends_at_host) else { return Vec::new() };
    let links = machine.links.iter().filter(|link| !link.is_on_card);
    let states = links.filter_map(|link| Some((link, link.now.as_ref()?)));
    states
        .filter(|(_, now)| bits > ABOVE_LINK * now.value.data_rate())
        .map(|(link, now)| {
            format!(
                "the link of `{}` runs at {} ({}), which carries {:.0} Gbit/s, and {}:{} has {:.0} Gbit/s: the files and the log \
                 are not of the same machine, or not of the same day, and nothing in the files is taken as evidence",
                link.lower,
                now.value,
                now.at,
                now.value.data_rate() / 1e9,
                row.series.file,
                row.point.line,
                bits / 1e9
            )
        })
        .collect()
}

/// How often a share is corrected by what is expected with it.
const CORRECTIONS: usize = 4;

/// By how much what is expected may still differ, for a share to be that of the plateau.
const AT_PLATEAU: f64 = 0.02;

/// Shares of a rate below which nobody's is, and from which on it is the whole.
const SHARES: std::ops::Range<f64> = 0.01..0.97;

/// Ports and links that are as slow as the greatest bandwidth of the rows has them, whatever their rates are called: one
/// that fell to another rate than half of it is as much a cause.
fn of_plateau(rows: &[(&Row, f64)], system: &System, path: &str) -> Vec<CauseDegree> {
    let bits = |row: &Row| Some(row.rate_per_s()? * row.runs.reference.payload.get() as f64 * 8.0);
    let greatest =
        rows.iter().filter_map(|(row, _)| Some((row, bits(row)?))).max_by(|a, b| a.1.total_cmp(&b.1));
    let Some((row, _)) = greatest else { return Vec::new() };
    let (run, measured) = (&row.runs.reference, row.point.performance());
    let of = |cause: Cause, change: fn(f64) -> CauseChange| {
        let mut share = 1.0;
        for _ in 0..=CORRECTIONS {
            let expected = changed(system, path, &[&change(share)])?.expect(run).ok()?;
            let ratio = measured / points::performance(row.figure(&expected)?);
            if share < 1.0 && (ratio - 1.0).abs() < AT_PLATEAU {
                return Some(CauseDegree {
                    cause,
                    degree: format!("{share:.3} of its rate"),
                    change: change(share),
                });
            }
            share *= ratio;
            if !SHARES.contains(&share) {
                return None;
            }
        }
        None
    };
    [of(Cause::PortRate, CauseChange::PortShare), of(Cause::PcieLink, CauseChange::LinkShare)]
        .into_iter()
        .flatten()
        .collect()
}

/// What binds an expected rate, or that nothing does.
fn bound_by(expected: &Expected) -> &str {
    match expected.kind {
        RunKind::Latency => "its latency",
        RunKind::Bandwidth => expected.ceilings.first().map_or("nothing", |one| one.kind.name()),
    }
}

/// A row that can be compared.
struct Row<'s> {
    series: &'s Series,
    point: &'s Point,
    runs: Runs,
}

impl Row<'_> {
    /// Messages per second of a bandwidth test.
    fn rate_per_s(&self) -> Option<f64> {
        match self.point.measured {
            LogFigure::Rate(rate) => Some(rate.per_s()),
            LogFigure::BitRate(rate) => {
                Some(rate.bits_per_second() as f64 / 8.0 / self.runs.reference.payload.get() as f64)
            }
            _ => None,
        }
    }

    /// What a row's log states is so: a cause that would have it otherwise has it as stated.
    fn keep_stated(&self, change: &CauseChange, run: &mut ToolRun) {
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
    fn printed_times(&self, change: &CauseChange, run: &ToolRun) -> f64 {
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
            (CauseChange::Latency(times), RunKind::Latency, _) => *times,
            _ => 1.0,
        }
    }

    /// What is expected, as the figure that the row has.
    fn figure(&self, expected: &Expected) -> Option<LogFigure> {
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

/// Benches of a system, by path.
struct Benches {
    bench: ToolBench,
}

impl Benches {
    fn new(system: &System, path: &str) -> Result<Benches, ExpectError> {
        Ok(Benches { bench: ToolBench::new(system, path)? })
    }

    fn expect(&self, run: &ToolRun) -> Result<Expected, ExpectError> {
        self.bench.expect(run)
    }
}

/// A system with changes; nothing where they do not fit it.
fn changed(system: &System, path: &str, changes: &[&CauseChange]) -> Option<Benches> {
    let mut system = system.clone();
    let mut path = path;
    for change in changes {
        change.change_system(&mut system);
        if let CauseChange::OtherPath(other) = change {
            path = other;
        }
    }
    Benches::new(&system, path).ok()
}

/// Whether figures are off in a direction, 1 for low: a quarter of the rows or three neighbours by more than the gap.
fn is_off(rows: &[(&Row, f64)], direction: f64) -> bool {
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

/// Rows of each series, in their order.
fn by_series<'r, 's>(rows: &[(&'r Row<'s>, f64)]) -> Vec<Vec<(&'r Row<'s>, f64)>> {
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
fn scatter(rows: &[(&Row, f64)]) -> f64 {
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
fn is_systematic(rows: &[(&Row, f64)]) -> bool {
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
fn chosen<'r, 's>(rows: &[(&'r Row<'s>, f64)]) -> Vec<(&'r Row<'s>, f64)> {
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

/// The program that a series is of, and the runs of its rows. Without a head it is the one whose rows are nearest to what
/// the model expects, with or without one cause.
fn resolve(
    series: &Series,
    healthy: &Benches,
    variants: &[CauseDegree],
    bench_of: &mut [Option<Benches>],
    system: &System,
    path: &str,
) -> Option<(&'static ToolProgram, Vec<Option<Runs>>)> {
    let candidates = points::programs(series);
    let of = |program: &ToolProgram| -> Vec<Option<Runs>> {
        series
            .points
            .iter()
            .map(|point| points::runs(program, point, series.is_sweep(), system.network.mtu))
            .collect()
    };
    if let [program] = candidates[..] {
        return Some((program, of(program)));
    }
    let mut best: Option<(f64, &'static ToolProgram, Vec<Option<Runs>>)> = None;
    for program in candidates {
        let runs = of(program);
        let usable: Vec<(usize, &Runs)> = runs
            .iter()
            .enumerate()
            .filter_map(|(index, runs)| runs.as_ref().map(|runs| (index, runs)))
            .collect();
        if usable.is_empty() {
            continue;
        }
        let every = usable.len().div_ceil(MOST_OF_SERIES);
        let few: Vec<&(usize, &Runs)> = usable.iter().step_by(every).collect();
        let error_of = |bench: &Benches, change: Option<&CauseChange>| -> f64 {
            let deviations = few.iter().map(|(index, runs)| {
                let point = &series.points[*index];
                let row = Row { series, point, runs: (*runs).clone() };
                deviation(&row, bench, change.as_slice()).map_or(MOST_DEVIATION, f64::abs)
            });
            deviations.sum::<f64>() / few.len() as f64
        };
        let mut error = error_of(healthy, None);
        for (index, variant) in variants.iter().enumerate() {
            let bench = match (variant.change.is_of_system(), &variant.change) {
                (false, CauseChange::OtherPath(_)) | (true, _) => {
                    if bench_of[index].is_none() {
                        bench_of[index] = changed(system, path, &[&variant.change]);
                    }
                    bench_of[index].as_ref()
                }
                _ => Some(healthy),
            };
            if let Some(bench) = bench {
                error = error.min(error_of(bench, Some(&variant.change)));
            }
        }
        // Who says nothing else leaves the number of iterations as the program has it.
        let usual = |point: &Point| {
            let pairs = point.conditions.queue_pairs.unwrap_or(1);
            point.conditions.iterations.is_some_and(|count| count == program.iterations * pairs)
        };
        let as_usual =
            series.points.iter().filter(|point| usual(point)).count() as f64 / series.points.len() as f64;
        let penalty = 0.05 * (1.0 - as_usual);
        if best.as_ref().is_none_or(|(least, _, _)| error + penalty < *least) {
            best = Some((error + penalty, program, runs));
        }
    }
    best.map(|(_, program, runs)| (program, runs))
}

/// What a log leaves open and was taken as the tool has it.
fn assumptions(series: &Series, program: &ToolProgram) -> Vec<String> {
    let conditions = &series.conditions;
    let file = &series.file;
    let mut found = Vec::new();
    if conditions.operation.is_none() {
        found.push(format!("{file}: no head says the program; the rows are nearest to {}", program.name));
    }
    let is_bandwidth = program.kind == RunKind::Bandwidth;
    let lacks = [
        (conditions.queue_pairs.is_none(), "1 queue pair"),
        (conditions.tx_depth.is_none(), "a depth of 128"),
        (conditions.directions.is_none(), "one direction"),
    ];
    let lacking: Vec<&str> =
        lacks.iter().filter(|(lacks, _)| *lacks && is_bandwidth).map(|(_, what)| *what).collect();
    if !lacking.is_empty() {
        found.push(format!("{file}: not stated, and taken as the tool has it: {}", lacking.join(", ")));
    }
    found
}

/// How far a row is below what is expected under changes, as a logarithm of performance; nothing where it is not predicted.
fn deviation(row: &Row, bench: &Benches, changes: &[&CauseChange]) -> Option<f64> {
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

/// Rows to be explained.
struct Fit<'r, 's> {
    rows: Vec<(&'r Row<'s>, f64)>,
    /// All rows, of which those are some.
    all: &'r [(&'r Row<'s>, f64)],
    system: &'r System,
    path: &'r str,
}

/// What a variant leaves of the gap.
struct Candidate {
    cause: Cause,
    degree: String,
    change: CauseChange,
    deviations: Vec<f64>,
    error: f64,
    evidence: Vec<String>,
}

fn mean_of(deviations: &[f64]) -> f64 {
    deviations.iter().map(|one| one.abs()).sum::<f64>() / deviations.len().max(1) as f64
}

impl Fit<'_, '_> {
    fn deviations(&self, bench: &Benches, changes: &[&CauseChange]) -> Option<Vec<f64>> {
        self.rows.iter().map(|(row, _)| deviation(row, bench, changes)).collect()
    }

    /// Whether changes leave something for another cause, by all rows.
    fn leaves(&self, changes: &[&CauseChange]) -> bool {
        let Some(bench) = changed(self.system, self.path, changes) else { return true };
        let left = self.all.iter().map(|(row, _)| Some((*row, deviation(row, &bench, changes)?)));
        let Some(left) = left.collect::<Option<Vec<(&Row, f64)>>>() else { return true };
        is_off(&left, 1.0) || is_off(&left, -1.0) || is_systematic(&left)
    }

    /// What logs state and what could hold runs back, as changes of the reference.
    fn stated(&self) -> Vec<(Cause, String, CauseChange, String)> {
        let mut found: Vec<(Cause, String, CauseChange, String)> = Vec::new();
        let mut add = |cause: Cause, degree: String, change: CauseChange, says: &str| {
            if !found.iter().any(|(_, _, known, _)| *known == change) {
                let evidence = format!("the log states {says}");
                found.push((cause, degree, change, evidence));
            }
        };
        for (row, _) in &self.rows {
            let Runs { stated, reference } = &row.runs;
            if stated.tx_depth < reference.tx_depth {
                let degree = format!("{} posted ahead", stated.tx_depth);
                let says = format!("a depth of {}", stated.tx_depth);
                add(Cause::TxDepth, degree, CauseChange::TxDepth(stated.tx_depth), &says);
            }
            if let Some(mtu) = stated.mtu.filter(|mtu| *mtu < self.system.network.mtu) {
                let says = format!("an MTU of {mtu}");
                add(Cause::PathMtu, mtu.to_string(), CauseChange::PathMtu(mtu), &says);
            }
            if let Some(reads) = stated.outstanding_reads.filter(|_| stated.is_read()) {
                let says = format!("{reads} READs in flight");
                add(
                    Cause::OutstandingReads,
                    format!("{reads} in flight"),
                    CauseChange::OutstandingReads(reads),
                    &says,
                );
            }
            if stated.inline < reference.inline {
                let (degree, says) =
                    (format!("{} inline", stated.inline), format!("{} inline", stated.inline));
                add(Cause::InlineOff, degree, CauseChange::Inline(stated.inline), &says);
            }
            if let PrintedUnit::Wrong(times) = row.series.unit
                && let Some((degree, _)) = UNITS.into_iter().find(|(_, own)| *own == times)
            {
                let says =
                    format!("bandwidths that are {times:.4} times size times message rate of their rows");
                add(Cause::Unit, degree.to_string(), CauseChange::Unit(times), &says);
            }
            if let (Some(RunLength::Iterations(own)), Some(RunLength::Iterations(usual))) =
                (stated.length, reference.length)
                && own < usual
            {
                let each = own / stated.queue_pairs.max(1);
                let says = format!("{own} iterations");
                add(
                    Cause::FewIterations,
                    format!("{each} of each queue pair"),
                    CauseChange::Iterations(each),
                    &says,
                );
            }
        }
        found
    }

    fn rank(
        &self,
        variants: &[CauseDegree],
        bench_of: &mut [Option<Benches>],
        machine: Option<&Description>,
        diagnosis: &mut Diagnosis,
    ) -> Result<f64, ExpectError> {
        let healthy = Benches::new(self.system, self.path)?;
        let base: Vec<f64> =
            self.rows.iter().map(|(_, own)| own.clamp(-MOST_DEVIATION, MOST_DEVIATION)).collect();
        let error_without = mean_of(&base);
        let mut best: BTreeMap<Cause, Candidate> = BTreeMap::new();
        let mut consider = |candidate: Candidate| match best.get(&candidate.cause) {
            // What the log states goes before a degree that was guessed, where both fit alike.
            Some(known) if known.error <= candidate.error + 0.002 && known.error < error_without => {}
            _ => {
                best.insert(candidate.cause, candidate);
            }
        };
        for (cause, degree, change, evidence) in self.stated() {
            let bench = changed(self.system, self.path, &[&change]);
            if let Some(deviations) = bench.as_ref().and_then(|bench| self.deviations(bench, &[&change])) {
                let error = mean_of(&deviations);
                consider(Candidate { cause, degree, change, deviations, error, evidence: vec![evidence] });
            }
        }
        for (index, variant) in variants.iter().enumerate() {
            let needs_own =
                variant.change.is_of_system() || matches!(variant.change, CauseChange::OtherPath(_));
            if needs_own && bench_of[index].is_none() {
                bench_of[index] = changed(self.system, self.path, &[&variant.change]);
            }
            let bench = if needs_own { bench_of[index].as_ref() } else { Some(&healthy) };
            let Some(deviations) = bench.and_then(|bench| self.deviations(bench, &[&variant.change])) else {
                continue;
            };
            let error = mean_of(&deviations);
            consider(Candidate {
                cause: variant.cause,
                degree: variant.degree.clone(),
                change: variant.change.clone(),
                deviations,
                error,
                evidence: Vec::new(),
            });
        }
        let share = |error: f64| (1.0 - error / error_without).clamp(0.0, 1.0);
        // Of a small gap most is scatter, which nothing explains.
        let least_share =
            if diagnosis.verdict == DiagnosisVerdict::SlightlyLow { LEAST_SMALL_SHARE } else { LEAST_SHARE };
        let mut ranked: Vec<Candidate> =
            best.into_values().filter(|one| share(one.error) >= least_share).collect();
        ranked.sort_by(|a, b| a.error.total_cmp(&b.error));
        for candidate in &mut ranked {
            candidate.evidence.extend(spoken_for(candidate.cause, machine));
        }
        let mut left = ranked.first().map_or(error_without, |one| one.error);
        if let Some(pair) = self.pair(variants, error_without, &mut ranked, diagnosis) {
            left = pair;
        }
        let mut groups: Vec<(Vec<f64>, CauseGroup)> = Vec::new();
        for candidate in ranked {
            let finding = Finding {
                cause: candidate.cause,
                degree: candidate.degree,
                explained_share: share(candidate.error),
                evidence: candidate.evidence,
            };
            let is_same = |others: &[f64]| {
                let apart: Vec<f64> =
                    others.iter().zip(&candidate.deviations).map(|(one, other)| one - other).collect();
                mean_of(&apart) < SAME
            };
            match groups.iter_mut().find(|(others, _)| is_same(others)) {
                Some((_, group)) => group.findings.push(finding),
                None => {
                    let explained_share = finding.explained_share;
                    groups.push((
                        candidate.deviations,
                        CauseGroup { findings: vec![finding], explained_share },
                    ));
                }
            }
        }
        diagnosis.groups = groups
            .into_iter()
            .map(|(_, mut group)| {
                group.findings.sort_by_key(|finding| std::cmp::Reverse(finding.evidence.len()));
                group
            })
            .collect();
        Ok(left)
    }

    /// Where one cause leaves a gap, the two that leave least stand first.
    fn pair(
        &self,
        variants: &[CauseDegree],
        error_without: f64,
        ranked: &mut Vec<Candidate>,
        diagnosis: &mut Diagnosis,
    ) -> Option<f64> {
        /// Single causes that a second one is looked for beside.
        const FIRSTS: usize = 5;
        let least = ranked.first().map(|one| one.error)?;
        if !self.leaves(&[&ranked[0].change]) {
            return None;
        }
        // What logs state goes before a guess, which such rows hold to what is stated.
        let stated = self
            .stated()
            .into_iter()
            .map(|(cause, degree, change, evidence)| (CauseDegree { cause, degree, change }, vec![evidence]));
        let seconds: Vec<(CauseDegree, Vec<String>)> =
            stated.chain(variants.iter().map(|variant| (variant.clone(), Vec::new()))).collect();
        let mut best: Option<(f64, usize, usize)> = None;
        for (index, first) in ranked.iter().take(FIRSTS).enumerate() {
            for (other, (second, _)) in seconds.iter().enumerate() {
                if second.cause == first.cause {
                    continue;
                }
                let changes = [&first.change, &second.change];
                let Some(bench) = changed(self.system, self.path, &changes) else { continue };
                let Some(deviations) = self.deviations(&bench, &changes) else { continue };
                let error = mean_of(&deviations);
                if best.is_none_or(|(known, _, _)| error < known) {
                    best = Some((error, index, other));
                }
            }
        }
        let (error, first, second) = best?;
        // A second cause earns its place by what it explains more, or by leaving nothing that would be called a gap.
        let second_closes = !self.leaves(&[&ranked[first].change, &seconds[second].0.change]);
        if (least - error) / error_without < MORE && !second_closes {
            return None;
        }
        diagnosis.explained_together = Some((1.0 - error / error_without).clamp(0.0, 1.0));
        let (second, says) = &seconds[second];
        let first = ranked.remove(first);
        let known = ranked.iter().position(|one| one.cause == second.cause);
        let alone = changed(self.system, self.path, &[&second.change])
            .and_then(|bench| self.deviations(&bench, &[&second.change]));
        let evidence = known.map_or_else(|| says.clone(), |at| ranked.remove(at).evidence);
        ranked.insert(0, first);
        if let Some(deviations) = alone {
            let error = mean_of(&deviations);
            let (cause, degree, change) = (second.cause, second.degree.clone(), second.change.clone());
            ranked.insert(1, Candidate { cause, degree, change, deviations, error, evidence });
        }
        Some(error)
    }
}

/// What the machine says that speaks for a cause.
fn spoken_for(cause: Cause, machine: Option<&Description>) -> Vec<String> {
    let kinds: &[OddityKind] = match cause {
        Cause::PcieLink => &[OddityKind::LinkBelowMaximum, OddityKind::SlotBelowCard],
        Cause::PcieLatency => &[OddityKind::MemoryNode, OddityKind::Iommu, OddityKind::AccessControl],
        Cause::MaxReadRequest => &[OddityKind::MaxReadRequest],
        Cause::MaxPayload => &[OddityKind::MaxPayload],
        Cause::PathMtu => &[OddityKind::PathMtu],
        Cause::PortRate => &[OddityKind::PortDown, OddityKind::PortBelowMaximum],
        Cause::ProcessorClock => &[OddityKind::Governor],
        _ => &[],
    };
    let oddities = machine.into_iter().flat_map(|machine| &machine.oddities);
    let of_kind = oddities.filter(|oddity| kinds.contains(&oddity.kind));
    of_kind.map(|oddity| format!("{} ({})", oddity.what, oddity.at)).collect()
}
