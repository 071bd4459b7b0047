//! Why figures are lower than they should be: what was measured against what the model expects, point by point, and causes
//! as changes of the model, ranked by how much of the gap each explains.

mod cause;
mod machine;
mod points;
mod rank;
mod resolve;
mod rows;
mod shape;

pub use cause::{Cause, CauseChange, CauseDegree};
pub use points::LoggedFigures;
pub use shape::{Question, RowShape};

use crate::describe::Description;
use crate::expect::{ExpectError, ToolBench};
use crate::link_layer::PacketHeader;
use crate::points::LeftAside;
use crate::run::{RunKind, RunLength, ToolRun};
use cause::variants;
use machine::{contradictions, faults};
use offpath_logs::{LogFigure, TrafficDirections};
use offpath_profile::System;
use offpath_quantity::{Bytes, Quantity};
use offpath_route::Router;
use points::PrintedUnit;
use rank::{Fit, of_plateau, of_short_latencies};
use resolve::{assumptions, resolve};
use rows::{
    Row, apart, bound_by, chosen, halves, is_beyond, is_off, is_refuted, is_systematic, off_rows, scatter,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What is below this share of what is expected is a gap. Predictions that were checked against published rows are off by
/// about as much, so less says nothing.
pub const GAP: f64 = 0.9;

/// A small cause is named where rows are left off by no more than this many deviations of their scatter on the mean; rows
/// that scatter alone are off by 0.8.
const MOST_LEFT: f64 = 1.0;

/// How far the performance of a run may be from what is expected of it, as shares of that, by what is known of the system.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Leeway {
    /// Below this it lies in one of forty cases.
    pub least: f64,
    /// Above this it lies in as many.
    pub most: f64,
    /// How well it is known, in a word.
    pub basis: &'static str,
}

/// The leeway of runs on a system of which every number is known and the model errs by nothing.
pub fn exactly(_: &System, runs: &[ToolRun]) -> Vec<Leeway> {
    runs.iter().map(|_| Leeway { least: 1.0, most: 1.0, basis: "exact" }).collect()
}

/// A row of a log beside what is expected of it.
#[derive(Clone, Debug, PartialEq)]
pub struct DiagnosedPoint {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
    /// The run, in words.
    pub run: String,
    /// The same without its payload.
    pub test: String,
    /// Bytes of a message.
    pub payload: Bytes,
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
    /// The same by the mean, of rows whose median is compared: of latencies where it lies so far above it that some operations
    /// waited, and of rates of several windows where it is below it.
    pub mean_share: Option<f64>,
    /// The same of the run as the log states it.
    pub share_as_stated: f64,
    /// How far the first may be from what is expected.
    pub leeway: Leeway,
    /// How far the second may.
    pub leeway_as_stated: Leeway,
    /// What binds the expected rate.
    pub bound_by: String,
}

/// The performance that the mean of a row says, as a share of what its median says, where an acceptance test asks for both.
fn mean_over(point: &points::Point) -> Option<f64> {
    let waited = point.tail.filter(|tail| tail.times > shape::OVER_MEDIAN).map(|tail| 1.0 / tail.times);
    waited.or(point.mean_of_windows.filter(|share| *share < 1.0))
}

impl DiagnosedPoint {
    /// The share that an acceptance test asks for: of a row that has both, of the mean as of the median.
    pub fn least_share(&self) -> f64 {
        self.mean_share.map_or(self.share, |mean| mean.min(self.share))
    }

    /// Whether it is above what is expected of it as stated, by more than a gap and by more than what is not known leaves open.
    pub fn is_above(&self) -> bool {
        self.share_as_stated > self.leeway_as_stated.most.max(1.0 / GAP)
    }
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
    /// They are higher by less than that, all as one cause would have it.
    SlightlyHigh,
    /// They are higher than the model has any room for.
    High,
    /// They are lower or higher than what is expected, and not by more than what is not known of the system leaves open.
    Inconclusive,
    /// Rows are what a card can do, and what their own head states cannot: head and rows are not of one run.
    Contradictory,
    /// No figure can be compared.
    Nothing,
}

impl DiagnosisVerdict {
    /// Whether they are off by less than a gap.
    pub fn is_slight(self) -> bool {
        matches!(self, DiagnosisVerdict::SlightlyLow | DiagnosisVerdict::SlightlyHigh)
    }

    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            DiagnosisVerdict::Normal => "normal",
            DiagnosisVerdict::HeldBackAsStated => "held-back-as-stated",
            DiagnosisVerdict::Low => "low",
            DiagnosisVerdict::SlightlyLow => "slightly-low",
            DiagnosisVerdict::SlightlyHigh => "slightly-high",
            DiagnosisVerdict::High => "high",
            DiagnosisVerdict::Inconclusive => "inconclusive",
            DiagnosisVerdict::Contradictory => "contradictory",
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
    /// Places in `points` of the rows that are off by more than a gap from what is expected of them as stated, the furthest
    /// first. Whatever the verdict is of all, each of these is something.
    pub off: Vec<usize>,
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
    /// Whether some of these prove that the files are not of this machine, so that nothing in them is evidence.
    pub are_files_refuted: bool,
    /// What the files of the machine say that none has that is to be accepted.
    pub faults: Vec<String>,
    /// Figures that are not compared, by the reason.
    pub skipped: BTreeMap<String, u64>,
    /// Rows of perftest's runs that are not compared, by file and reason.
    pub left_aside: Vec<LeftAside>,
    /// Rows that say again what others say, copies and what the other side of a run prints, by file and reason: they count once.
    pub repeated: Vec<LeftAside>,
}

/// Says what is the matter with the figures of logs taken on a path of `system`.
///
/// `machine` is what the machine says of itself; what is odd about it speaks for a cause among those that the rows leave. `leeway` says of
/// runs on a system how far each may be from what is expected of it there: a row is low only where it is lower than that.
///
/// # Errors
/// Where the path is refused.
pub fn diagnose(
    system: &System,
    figures: LoggedFigures,
    machine: Option<&Description>,
    leeway: impl FnOnce(&System, &[ToolRun]) -> Vec<Leeway>,
) -> Result<Diagnosis, ExpectError> {
    let path = &*figures.path.clone();
    let varied = figures.varied.iter().map(|file| {
        format!(
            "{file}: the tool says that the processor's frequency varied, by which it measures time: each of its figures may be off by as \
             much as that did"
        )
    });
    let mut assumed: Vec<String> = varied.collect();
    let points::Found { series: all, mut skipped, mut aside, repeated } = points::series(figures);
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
    // A guess of it would call small packets healthy: what a run could have is the most that the guess leaves.
    let mut system = system.clone();
    if let Some(Quantity::Bytes(mtu)) = system.at_most("network.mtu") {
        system.network.mtu = mtu;
    }
    let system = &system;
    let healthy = ToolBench::new(system, path)?;
    let router = Router::new(system)?;
    let has_both = all.iter().any(|series| {
        series.conditions.directions.is_none_or(|directions| directions == TrafficDirections::Both)
    });
    let mut variants = variants(system, &router, path, has_both);
    let mut bench_of: Vec<Option<ToolBench>> = variants.iter().map(|_| None).collect();
    let mut rows: Vec<Row> = Vec::new();
    for series in &all {
        let Some(resolved) = resolve(series, &healthy, &variants, &mut bench_of, system, path) else {
            let why = "no program of perftest over RC that is modelled writes such rows";
            *skipped.entry(why.into()).or_default() += series.points.len() as u64;
            series.points.iter().for_each(|point| series.leave(point, why, &mut aside));
            continue;
        };
        assumed.extend(assumptions(series, &resolved));
        for (point, runs) in series.points.iter().zip(resolved.runs) {
            match runs {
                Some(runs) => rows.push(Row { series, point, runs }),
                None => {
                    let why = "the row's payload is not said";
                    *skipped.entry(why.into()).or_default() += 1;
                    series.leave(point, why, &mut aside);
                }
            }
        }
    }
    assumed.sort();
    assumed.dedup();
    let is_expected = |run: &&ToolRun| healthy.expect(run).is_ok();
    let runs = rows.iter().flat_map(|row| [&row.runs.reference, &row.runs.stated]);
    let runs: BTreeSet<&ToolRun> = runs.collect();
    let runs: Vec<ToolRun> = runs.into_iter().filter(is_expected).cloned().collect();
    let leeways = if runs.is_empty() { Vec::new() } else { leeway(system, &runs) };
    let leeway = |run: &ToolRun| leeways[runs.binary_search(run).expect("what is expected of it is known")];
    let mut points = Vec::new();
    let mut kept: Vec<(&Row, f64, f64)> = Vec::new();
    for row in &rows {
        let (expected, as_stated) =
            match (healthy.expect(&row.runs.reference), healthy.expect(&row.runs.stated)) {
                (Ok(expected), Ok(as_stated)) => (expected, as_stated),
                (Err(error), _) | (_, Err(error)) => {
                    row.series.leave(row.point, &error.to_string(), &mut aside);
                    *skipped.entry(error.to_string()).or_default() += 1;
                    continue;
                }
            };
        let measured = row.point.performance();
        let figures = (row.figure(&expected), row.figure(&as_stated));
        let (Some(figure), Some(figure_as_stated)) = figures else {
            let why = "a figure that no model predicts";
            *skipped.entry(why.into()).or_default() += 1;
            row.series.leave(row.point, why, &mut aside);
            continue;
        };
        let (reference, stated) = (points::performance(figure), points::performance(figure_as_stated));
        kept.push((row, (reference / measured).ln(), (stated / measured).ln()));
        points.push(DiagnosedPoint {
            file: row.series.file.clone(),
            line: row.point.line,
            run: row.runs.stated.to_string(),
            test: row.runs.stated.test(),
            payload: row.runs.stated.payload,
            metric: row.point.metric.to_string(),
            measured: row.point.measured,
            expected: figure,
            expected_as_stated: figure_as_stated,
            share: measured / reference,
            mean_share: mean_over(row.point).map(|mean| measured / reference * mean),
            share_as_stated: measured / stated,
            leeway: leeway(&row.runs.reference),
            leeway_as_stated: leeway(&row.runs.stated),
            bound_by: bound_by(&expected).to_string(),
        });
    }
    let mut shapes = shape::shapes(&all, system);
    let halves = halves(&kept);
    shapes.extend(halves.iter().map(|half| half.shape()));
    let bursts = shape::bursts(&kept);
    // A burst says what an uneven run does, and more.
    shapes.retain(|shape| shape.name != "uneven" || !bursts.iter().any(|burst| burst.touches(shape)));
    shapes.extend(bursts);
    let mut shares: Vec<f64> = points.iter().map(|point| point.share).collect();
    shares.sort_by(f64::total_cmp);
    let mut diagnosis = Diagnosis {
        verdict: DiagnosisVerdict::Nothing,
        points,
        median_share: shares.get(shares.len() / 2).copied().unwrap_or(f64::NAN),
        off: off_rows(&kept),
        shapes,
        groups: Vec::new(),
        explained_together: None,
        questions: Vec::new(),
        assumed,
        contradictions: machine
            .map(|machine| contradictions(&rows, system, path, machine))
            .unwrap_or_default(),
        are_files_refuted: false,
        faults: Vec::new(),
        skipped,
        left_aside: aside.into_rows(),
        repeated: repeated.into_rows(),
    };
    // Files that the rows prove wrong are of another machine or another day: nothing in them is evidence.
    diagnosis.are_files_refuted = !diagnosis.contradictions.is_empty();
    let machine = machine.filter(|_| !diagnosis.are_files_refuted);
    diagnosis.faults = machine.map(|machine| faults(&rows, machine)).unwrap_or_default();
    if kept.is_empty() {
        return Ok(diagnosis);
    }
    let of_reference: Vec<(&Row, f64)> = kept.iter().map(|(row, gap, _)| (*row, *gap)).collect();
    let of_stated: Vec<(&Row, f64)> = kept.iter().map(|(row, _, gap)| (*row, *gap)).collect();
    let leeways: Vec<Leeway> = diagnosis.points.iter().map(|point| point.leeway_as_stated).collect();
    let stalls = shape::Stalls::of(of_reference.iter().filter_map(|(row, gap)| {
        let Some(RunLength::Iterations(count)) = row.runs.stated.length else { return None };
        let is_told =
            row.series.kind == RunKind::Bandwidth && !matches!(row.series.unit, PrintedUnit::Wrong(_));
        let took = count as f64 / row.rate_per_s().filter(|_| is_told)?;
        Some((took, took / gap.exp()))
    }));
    let lifted: Vec<Leeway> = diagnosis.points.iter().map(|point| point.leeway).collect();
    let apart = apart(&kept, &leeways, &lifted);
    if !apart.is_empty() {
        diagnosis.verdict = DiagnosisVerdict::Contradictory;
        diagnosis.contradictions.extend(apart);
        diagnosis.questions.extend(shape::waits(&all, &diagnosis, stalls));
        return Ok(diagnosis);
    }
    let is_low = is_off(&of_reference, 1.0);
    let is_high = is_off(&of_reference, -1.0);
    if !is_low && !is_high && !is_systematic(&of_reference) {
        diagnosis.verdict = DiagnosisVerdict::Normal;
        diagnosis.questions.extend(shape::waits(&all, &diagnosis, stalls));
        return Ok(diagnosis);
    }
    let is_as_stated = !is_off(&of_stated, 1.0) && !is_off(&of_stated, -1.0);
    let is_stated_apart = of_reference.iter().zip(&of_stated).any(|((_, one), (_, other))| one != other);
    // What is not known to within the gap is no less by a part of it.
    let is_known = diagnosis.points.iter().all(|point| point.leeway.least >= GAP);
    let is_certain = |direction: f64| is_beyond(&of_stated, &leeways, direction);
    diagnosis.verdict = match (is_as_stated, is_low, is_high) {
        (true, _, _) if is_low || is_high || is_stated_apart && !is_systematic(&of_stated) => {
            DiagnosisVerdict::HeldBackAsStated
        }
        // Rows that are certainly high are none that are low, whatever holds others back.
        (_, true, _) if is_certain(1.0) => DiagnosisVerdict::Low,
        (_, _, true) if is_certain(-1.0) => DiagnosisVerdict::High,
        (_, true, _) | (_, _, true) => DiagnosisVerdict::Inconclusive,
        (_, false, false) if is_known && diagnosis.median_share > 1.0 => DiagnosisVerdict::SlightlyHigh,
        (_, false, false) if is_known => DiagnosisVerdict::SlightlyLow,
        (_, false, false) => DiagnosisVerdict::Normal,
    };
    if diagnosis.verdict == DiagnosisVerdict::Normal {
        diagnosis.questions.extend(shape::waits(&all, &diagnosis, stalls));
        return Ok(diagnosis);
    }
    variants.extend(of_plateau(&of_reference, system, path));
    variants.extend(of_short_latencies(&of_reference, system, path));
    variants.extend(cause::half(halves.iter().map(|half| half.series)));
    let rows = chosen(&of_reference);
    variants.retain(|variant| !is_refuted(&rows, system, path, &variant.change));
    bench_of = variants.iter().map(|_| None).collect();
    let fit = Fit { rows, all: &of_reference, system, path };
    let left = fit.rank(&variants, &mut bench_of, machine, &mut diagnosis)?;
    // Predictions err by as much as this, too: it counts where one cause leaves nothing but the rows' own scatter.
    let scatter = scatter(&of_reference);
    let is_found = !diagnosis.groups.is_empty() && left <= MOST_LEFT * scatter;
    if diagnosis.verdict.is_slight() && !is_found {
        diagnosis.verdict = DiagnosisVerdict::Normal;
        diagnosis.groups.clear();
        diagnosis.explained_together = None;
        diagnosis.questions.extend(shape::waits(&all, &diagnosis, stalls));
        return Ok(diagnosis);
    }
    diagnosis.questions = shape::questions(&all, &diagnosis, system, machine, stalls);
    Ok(diagnosis)
}
