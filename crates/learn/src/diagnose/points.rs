//! Figures of logs as points that can be compared: what was measured, in which run.

use super::resolve::Reading;
use crate::printed::{Aside, PrintedRows};
use crate::run::{
    DOUBTS, NotARun, PROGRAMS, RunKind, RunLength, TOOL_CQ_MODERATION, TOOL_TX_DEPTH, ToolProgram, ToolRun,
};
use offpath_logs::{
    LogCaution, LogConditions, LogDetail, LogFigure, LogMeasurement, LogMetric, LogOperation, LogTool,
    MetricStatistic, MetricSubject, TrafficDirections,
};
use offpath_quantity::Bytes;
use offpath_route::Verb;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Why a row without a figure that any model has is not compared.
const NOT_PREDICTED: &str = "no figure of the row is predicted";

/// Figures of logs that were taken on one path. What can be compared is kept, a row as one point; of all others their
/// number.
#[derive(Clone, Debug)]
pub struct LoggedFigures {
    pub(super) path: String,
    printed: PrintedRows,
    /// What is compared, by the file and the place of the row.
    rows: BTreeMap<(Arc<str>, usize), LogRow>,
    skipped: BTreeMap<String, u64>,
    /// Who measured, what it means with its unit, its key, and how many there are.
    found: Vec<(LogTool, LogMetric, &'static str, Arc<str>, u64)>,
    /// Files whose tool says that the processor's frequency varied.
    pub(super) varied: BTreeSet<Arc<str>>,
    /// Rows of perftest's runs that are not compared: what was asked of those runs is not answered.
    aside: Aside,
}

/// What is compared of a row, while its figures come.
#[derive(Clone, Debug, Default)]
struct LogRow {
    /// Whether it is a row of perftest that carried something, and no single operation.
    is_of_run: bool,
    /// The figure with the most digits of those that are predicted.
    best: Option<BestFigure>,
    peak: Option<f64>,
    /// Of a latency, in seconds.
    mean_latency: Option<f64>,
    longest_latency: Option<f64>,
    least_latency: Option<f64>,
    p99_latency: Option<f64>,
    /// Of windows that were counted each by itself, operations per second of the slowest and of the fastest one.
    slowest: Option<f64>,
    fastest: Option<f64>,
    /// With its key, its own rounding, and whether its unit is from the message rate.
    mean: Option<(LogFigure, Arc<str>, f64, bool)>,
    /// With its own rounding.
    rate: Option<(LogFigure, f64)>,
}

#[derive(Clone, Debug)]
struct BestFigure {
    tool: LogTool,
    figure: LogFigure,
    key: Arc<str>,
    subject: MetricSubject,
    is_mean_latency: bool,
    conditions: Arc<LogConditions>,
    coarse: f64,
}

impl LoggedFigures {
    /// None yet, of that path.
    pub fn new(path: &str) -> LoggedFigures {
        LoggedFigures {
            path: path.to_string(),
            printed: PrintedRows::default(),
            rows: BTreeMap::new(),
            skipped: BTreeMap::new(),
            found: Vec::new(),
            varied: BTreeSet::new(),
            aside: Aside::default(),
        }
    }

    /// A figure of a file, as that is named.
    pub fn add(&mut self, file: &str, measurement: &LogMeasurement) {
        // perftest has a moderation from 1 on: 0 says that none was looked up.
        if measurement.conditions.cq_moderation == Some(0) {
            let mut measurement = measurement.clone();
            Arc::make_mut(&mut measurement.conditions).cq_moderation = None;
            return self.add(file, &measurement);
        }
        let LogMeasurement { tool, metric, figure, step, .. } = *measurement;
        let unit = figure.unit();
        let known =
            self.found.iter_mut().find(|(who, what, own, ..)| (*who, *what, *own) == (tool, metric, unit));
        let key = match known {
            Some((.., key, count)) => {
                *count += 1;
                key.clone()
            }
            None => {
                let key: Arc<str> = measurement.key().into();
                self.found.push((tool, metric, unit, key.clone(), 1));
                key
            }
        };
        // A single operation is no row.
        let is_sample = metric.statistic == MetricStatistic::Sample;
        let unfit = unfit(measurement, &self.path).or_else(|| is_sample.then(|| NOT_PREDICTED.to_string()));
        if let Some(why) = &unfit {
            *self.skipped.entry(why.clone()).or_default() += 1;
            // Of other tools nothing is kept, however long their logs are.
            if is_sample || tool != LogTool::Perftest {
                return;
            }
        }
        let place = self.printed.add(file, measurement);
        let printed = self.printed.row(place);
        if let Some(why) = unfit {
            return self.aside.add(place, printed.at(), &why);
        }
        if measurement.cautions.has(LogCaution::FrequencyVaried) && !self.varied.contains(&printed.file) {
            self.varied.insert(printed.file.clone());
        }
        let row = self.rows.entry((printed.file.clone(), place)).or_default();
        row.is_of_run |= tool == LogTool::Perftest && figure.value() > 0.0;
        let value = figure.value();
        match (metric.subject, metric.statistic, figure) {
            (_, MetricStatistic::Peak, _) => {
                row.peak.get_or_insert(value);
            }
            (MetricSubject::Latency, MetricStatistic::Mean, LogFigure::Time(time)) => {
                row.mean_latency.get_or_insert(time.as_seconds());
            }
            (MetricSubject::Latency, MetricStatistic::Max, LogFigure::Time(time)) => {
                row.longest_latency.get_or_insert(time.as_seconds());
            }
            (MetricSubject::Latency, MetricStatistic::Min, LogFigure::Time(time)) => {
                row.least_latency.get_or_insert(time.as_seconds());
            }
            (MetricSubject::Latency, MetricStatistic::Percentile(99_000), LogFigure::Time(time)) => {
                row.p99_latency.get_or_insert(time.as_seconds());
            }
            (MetricSubject::OperationRate, MetricStatistic::Min, _) => {
                row.slowest.get_or_insert(value);
            }
            (MetricSubject::OperationRate, MetricStatistic::Max, _) => {
                row.fastest.get_or_insert(value);
            }
            _ => {}
        }
        let is_comparable = matches!(
            (metric.subject, metric.statistic),
            (
                MetricSubject::Bandwidth | MetricSubject::OperationRate,
                MetricStatistic::Mean | MetricStatistic::Median | MetricStatistic::Only
            ) | (MetricSubject::Latency, MetricStatistic::Median)
        );
        // A run by time prints the mean alone, with operations per second of one request at a time behind it.
        let is_mean_latency =
            (metric.subject, metric.statistic) == (MetricSubject::Latency, MetricStatistic::Mean);
        let is_comparable = is_comparable || is_mean_latency && tool == LogTool::Perftest;
        if !is_comparable || value <= 0.0 || !value.is_finite() {
            return;
        }
        let coarse = step.value() / value;
        let rounding = step.value() / 2.0 / value;
        match metric.subject {
            MetricSubject::Bandwidth => {
                let is_from_rate = measurement.cautions.has(LogCaution::UnitFromRate);
                row.mean.get_or_insert_with(|| (figure, key.clone(), rounding, is_from_rate));
            }
            MetricSubject::OperationRate => {
                row.rate.get_or_insert((figure, rounding));
            }
            _ => {}
        }
        let is_latency = metric.subject == MetricSubject::Latency;
        let is_better =
            row.best.as_ref().is_none_or(|best| match (best.subject == MetricSubject::Latency, is_latency) {
                _ if tool != LogTool::Perftest => coarse < best.coarse,
                (true, true) => best.is_mean_latency && !is_mean_latency,
                (true, false) => false,
                (false, true) => true,
                (false, false) => coarse < best.coarse,
            });
        if is_better {
            let conditions = printed.conditions.clone();
            let subject = metric.subject;
            row.best = Some(BestFigure { tool, figure, key, subject, is_mean_latency, conditions, coarse });
        }
    }

    /// How many figures there are of each tool and meaning, whether they can be compared or not.
    pub fn found(&self) -> BTreeMap<(&'static str, String), u64> {
        let mut found = BTreeMap::new();
        for (tool, _, _, key, count) in &self.found {
            *found.entry((tool.name(), key.to_string())).or_default() += count;
        }
        found
    }
}

/// Figures of one run or sweep.
#[derive(Clone, Debug)]
pub(super) struct Series {
    pub file: Arc<str>,
    pub kind: RunKind,
    /// What the rows have in common, the payload and iterations left out.
    pub conditions: LogConditions,
    /// Whether the bandwidths are in the unit that they are printed under.
    pub unit: PrintedUnit,
    pub points: Vec<Point>,
}

/// Whether bandwidths of a series are in the unit that they are printed under. Size times message rate of the same row is the
/// bandwidth in its true unit, and a table has one unit, so the rows decide together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum PrintedUnit {
    /// They are: bandwidth and message rate agree.
    Right,
    /// They are so many times what they are, by one of [`UNITS`].
    Wrong(f64),
    /// No row has both with enough digits.
    Unknown,
}

/// Units that are taken for one another, and how many times what it is a bandwidth says then.
pub(super) const UNITS: [(&str, f64); 6] = [
    ("bits that are called bytes", 8.0),
    ("bytes that are called bits", 0.125),
    ("10^6 bytes that are called 2^20", MIB_PER_MB),
    ("2^20 bytes that are called 10^6", 1.0 / MIB_PER_MB),
    ("2^20 bytes that are called 10^9 bits", MIB_PER_GBIT),
    ("10^9 bits that are called 2^20 bytes", 1.0 / MIB_PER_GBIT),
];
const MIB_PER_MB: f64 = 1.048_576;
/// perftest prints one of these, and the other with `--report_gbits`.
const MIB_PER_GBIT: f64 = 1e9 / 8.0 / 1_048_576.0;

/// How far rounding may part bandwidth and message rate of a row that decides of its unit, as a share: units differ by
/// 4.9% at least.
const MOST_ROUNDING: f64 = 0.01;
/// How far they may lie apart beyond that.
const AGREEMENT: f64 = 0.005;

/// Where a series begins: its file, and the place of its first row.
pub type SeriesPlace = (Arc<str>, usize);

impl Series {
    /// Where it begins, which no other does.
    pub fn place(&self) -> SeriesPlace {
        (self.file.clone(), self.points.first().map_or(0, |point| point.place))
    }

    /// Messages per second of a bandwidth test, in the true unit where the printed one is another.
    pub fn rate_per_s(&self, point: &Point) -> Option<f64> {
        let times = if let PrintedUnit::Wrong(times) = self.unit { times } else { 1.0 };
        match point.measured {
            LogFigure::BitRate(rate) => {
                let bytes = point.conditions.payload.filter(|payload| *payload > Bytes::ZERO)?;
                Some(rate.bits_per_second() as f64 / times / 8.0 / bytes.get() as f64)
            }
            LogFigure::Rate(rate) => Some(rate.per_s()),
            _ => None,
        }
    }

    /// Whether it is of `offpath measure`, whose suite varies what its points state.
    fn is_of_measure(&self) -> bool {
        self.conditions.more.contains_key("path")
    }

    /// A point of it is not compared. What a file of `offpath measure` has beside what is compared was asked for by its suite.
    pub fn leave(&self, point: &Point, why: &str, aside: &mut Aside) {
        if !self.is_of_measure() {
            aside.add(point.place, (&self.file, point.line), why);
        }
    }

    /// Whether it goes over several payloads.
    pub fn is_sweep(&self) -> bool {
        let mut payloads = self.points.iter().map(|point| point.conditions.payload);
        let first = payloads.next();
        payloads.any(|payload| Some(payload) != first)
    }
}

/// A row of a series.
#[derive(Clone, Debug)]
pub(super) struct Point {
    /// The place of its row among all that are printed.
    pub place: usize,
    /// The row's first line.
    pub line: u64,
    pub measured: LogFigure,
    pub metric: Arc<str>,
    pub conditions: Arc<LogConditions>,
    /// The highest figure of the row, where it prints one: how far apart a run's best and its mean are.
    pub peak: Option<f64>,
    /// Of a row whose figure is the median of latencies.
    pub tail: Option<LatencyTail>,
    /// Of a row whose figure is the median of windows' rates: the mean over all of them, as a share of it. A run that prints
    /// one mean of all has no other.
    pub mean_of_windows: Option<f64>,
    /// The row's mean bandwidth, with its key, where it prints one.
    bandwidth: Option<(LogFigure, Arc<str>)>,
    /// That bandwidth over size times message rate, where rounding leaves enough of both.
    bandwidth_times: Option<f64>,
}

/// How far latencies reach beyond the median that is compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct LatencyTail {
    /// How many times the median the mean is.
    pub times: f64,
    /// Whether it is that at least: a row without a mean bounds it by its least, its median and its 99th percentile.
    pub is_bound: bool,
    /// The longest, in seconds.
    pub longest: Option<f64>,
}

impl Point {
    /// Better is more: a rate, or one over a latency.
    pub fn performance(&self) -> f64 {
        performance(self.measured)
    }
}

/// Better is more: a rate, or one over a latency.
pub(super) fn performance(figure: LogFigure) -> f64 {
    match figure {
        LogFigure::Time(time) => 1.0 / time.as_seconds(),
        LogFigure::BitRate(rate) => rate.bits_per_second() as f64,
        LogFigure::Rate(rate) => rate.per_s(),
        other => other.value(),
    }
}

/// The rows of logs, and what is not compared of them.
pub(super) struct Found {
    pub series: Vec<Series>,
    /// Figures that are in none, by the reason.
    pub skipped: BTreeMap<String, u64>,
    pub aside: Aside,
    /// Rows that say again what others say, and are in none.
    pub repeated: Aside,
}

/// The series of logs, and why figures are in none.
pub(super) fn series(figures: LoggedFigures) -> Found {
    let LoggedFigures { printed, mut rows, mut skipped, mut aside, .. } = figures;
    let compared = rows.iter().filter(|(_, row)| row.best.is_some()).map(|((_, place), _)| *place);
    let mut again = Aside::default();
    for (place, why) in printed.repeated(compared.collect()) {
        let row = printed.row(place);
        again.add(place, row.at(), &why);
        rows.remove(&(row.file.clone(), place));
    }
    let mut found: Vec<Series> = Vec::new();
    for ((file, place), row) in rows {
        let line = printed.row(place).line;
        let (tail, of_windows) = (row.tail(), row.mean_of_windows());
        let LogRow { is_of_run, best, peak, fastest, mean, rate, .. } = row;
        let Some(best) = best else {
            if is_of_run {
                aside.add(place, (&file, line), NOT_PREDICTED);
            }
            *skipped.entry(NOT_PREDICTED.to_string()).or_default() += 1;
            continue;
        };
        let kind = match best.subject {
            MetricSubject::Latency => RunKind::Latency,
            _ => RunKind::Bandwidth,
        };
        let is_from_rate = mean.as_ref().is_some_and(|(.., is_from_rate)| *is_from_rate);
        let bandwidth_times = is_from_rate.then_some(1.0).or_else(|| {
            let ((mean, _, of_mean, _), (rate, of_rate)) = mean.as_ref().zip(rate)?;
            let bits = best.conditions.payload?.get() as f64 * 8.0;
            let times = performance(*mean) / (performance(rate) * bits);
            let is_told = of_mean + of_rate <= MOST_ROUNDING && times.is_finite() && times > 0.0;
            is_told.then_some(times)
        });
        let mean_of_windows = of_windows.zip(rate).map(|(mean, (median, _))| mean / performance(median));
        let peak = match of_windows {
            Some(mean) => fastest.map(|fastest| fastest / mean),
            None => peak.zip(mean.as_ref()).map(|(peak, (mean, ..))| peak / mean.value()),
        };
        let point = Point {
            place,
            line,
            tail,
            mean_of_windows,
            measured: best.figure,
            metric: best.key,
            conditions: best.conditions.clone(),
            peak: peak.filter(|ratio| ratio.is_finite() && *ratio > 0.0),
            bandwidth: mean.map(|(mean, key, ..)| (mean, key)),
            bandwidth_times,
        };
        let mut common = (*best.conditions).clone();
        (common.payload, common.iterations) = (None, None);
        // What a tool sets by payload, and how long it counted.
        (common.cq_moderation, common.duration) = (None, None);
        let is_of_measure = best.tool == LogTool::Measure;
        if is_of_measure {
            // They stand in the order of its suite.
            let more = Arc::make_mut(&mut common.more);
            more.retain(|key, _| !WINDOWS.contains(key));
        }
        let is_of = |one: &Series| one.file == file && one.kind == kind && one.conditions == common;
        let known = match is_of_measure {
            true => found.iter_mut().find(|one| is_of(one)),
            false => found.last_mut().filter(|one| is_of(one)),
        };
        match known {
            Some(known) => known.points.push(point),
            None => {
                let unit = PrintedUnit::Unknown;
                found.push(Series { file, kind, conditions: common, unit, points: vec![point] });
            }
        }
    }
    for series in &mut found {
        let dropped = series.decide_unit();
        if !dropped.is_empty() {
            let why = NotARun::Contradictory { why: LogCaution::RateDiffers.meaning() }.to_string();
            dropped.iter().for_each(|point| series.leave(point, &why, &mut aside));
            *skipped.entry(why).or_default() += dropped.len() as u64;
        }
    }
    found.retain(|series| !series.points.is_empty());
    Found { series: found, skipped, aside, repeated: again }
}

/// What a point of `offpath measure` says of its windows.
const WINDOWS: [&str; 3] = ["windows_measured", "windows_requests", "windows_time_ps"];

impl LogRow {
    /// Operations per second over all windows of a point, as one run over all of them would print it.
    fn mean_of_windows(&self) -> Option<f64> {
        let conditions = &self.best.as_ref()?.conditions;
        let of = |key: &str| match conditions.more.get(key) {
            Some(LogDetail::Number(number @ 1..)) => Some(*number as f64),
            _ => None,
        };
        let (median, _) = self.rate?;
        if conditions.directions != Some(TrafficDirections::Both) {
            return Some(of("windows_requests")? / (of("windows_time_ps")? / 1e12));
        }
        // Each direction has windows of its own: a slow one takes as long as the others at least, so that the mean is at most
        // that of windows of one length, of which half are as fast as the fastest.
        let (count, half) = (of("windows_measured")?, (of("windows_measured")? / 2.0).floor());
        let between = count - half - 1.0;
        Some((self.slowest? + between * performance(median) + half * self.fastest?) / count)
    }

    /// How far the latencies of a row reach beyond its median.
    fn tail(&self) -> Option<LatencyTail> {
        let best = self.best.as_ref()?;
        if best.is_mean_latency || best.subject != MetricSubject::Latency {
            return None;
        }
        let (median, longest) = (1.0 / performance(best.figure), self.longest_latency);
        if let Some(mean) = self.mean_latency {
            return Some(LatencyTail { times: mean / median, is_bound: false, longest });
        }
        // Half took the least at least, the others the median, and one of a hundred what 99 of them stay below.
        let most = self.p99_latency.or(longest.map(|_| median))?;
        let mean = 0.5 * self.least_latency.unwrap_or(0.0) + 0.49 * median + 0.01 * most;
        Some(LatencyTail { times: mean / median, is_bound: true, longest })
    }
}

/// Why a figure cannot be held to a model.
fn unfit(measurement: &LogMeasurement, path: &str) -> Option<String> {
    let LogMeasurement { tool, conditions, cautions, .. } = measurement;
    // Of two programs at once neither has the machine for itself. Whether a rate and a bandwidth are of one unit is seen of all rows.
    let mut doubts = DOUBTS.into_iter().filter(|caution| *caution != LogCaution::RateDiffers);
    if let Some(caution) = doubts.find(|caution| cautions.has(*caution)) {
        return Some(NotARun::Contradictory { why: caution.meaning() }.to_string());
    }
    match (tool, conditions.more.get("path")) {
        (LogTool::Perftest, _) => {
            let checked = ToolRun::check_range(conditions).and_then(|()| ToolRun::check_modelled(conditions));
            checked.err().map(|why| why.to_string())
        }
        (LogTool::Measure, Some(LogDetail::Text(own))) if **own != *path => {
            Some(format!("it is of path {own}; `--path {own}` compares it"))
        }
        (LogTool::Measure, _) => match ToolRun::of(measurement) {
            Ok(_) | Err(NotARun::OtherMetric { .. }) => None,
            Err(why) => Some(why.to_string()),
        },
        _ => Some(NotARun::OtherTool { tool: tool.name() }.to_string()),
    }
}

impl Series {
    /// Says whether its bandwidths are in their unit. Where they are not, they are what is compared, since a message rate beside
    /// them does not show it. Rows whose bandwidth and message rate contradict each other otherwise are dropped and counted:
    /// which of both is wrong is not said. Where half of those that tell are such, the others are not to be trusted either.
    fn decide_unit(&mut self) -> Vec<Point> {
        let mut times: Vec<f64> = self.points.iter().filter_map(|point| point.bandwidth_times).collect();
        times.sort_by(f64::total_cmp);
        let Some(median) = times.get(times.len() / 2).copied() else { return Vec::new() };
        let is_near = |times: f64, unit: f64| (times / unit - 1.0).abs() <= MOST_ROUNDING + AGREEMENT;
        let units = UNITS.into_iter().map(|(_, unit)| unit).chain([1.0]);
        let unit = units.into_iter().find(|unit| is_near(median, *unit));
        let agrees = |point: &Point| {
            unit.is_some_and(|unit| point.bandwidth_times.is_none_or(|times| is_near(times, unit)))
        };
        let (kept, dropped) = std::mem::take(&mut self.points).into_iter().partition(agrees);
        self.points = kept;
        let Some(unit) = unit.filter(|unit| *unit != 1.0) else {
            self.unit = PrintedUnit::Right;
            return dropped;
        };
        self.unit = PrintedUnit::Wrong(unit);
        for point in &mut self.points {
            if let Some((figure, metric)) = point.bandwidth.take() {
                (point.measured, point.metric) = (figure, metric);
            }
        }
        dropped
    }
}

/// A run as its log states it and, where the log is silent, as the tool does it when nothing is said; and the same with
/// everything that the log states and that could hold it back as the tool has it.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    pub stated: ToolRun,
    pub reference: ToolRun,
}

/// The programs that may have written a series.
pub(super) fn programs(series: &Series) -> Vec<&'static ToolProgram> {
    let verb = match series.conditions.operation {
        Some(LogOperation::Read) => Some(Verb::Read),
        Some(LogOperation::Write) => Some(Verb::Write),
        Some(LogOperation::Send) => Some(Verb::Send),
        Some(LogOperation::FetchAndAdd | LogOperation::CompareAndSwap | LogOperation::Atomic) => {
            Some(Verb::FetchAndAdd)
        }
        Some(_) => return Vec::new(),
        // Heads of READs and of atomics alone have it, and without a title an atomic is told by nothing.
        None => series.conditions.outstanding_reads.map(|_| Verb::Read),
    };
    let is_rc = series.conditions.connection.as_deref().is_none_or(|connection| connection == "RC");
    let fits = |program: &&ToolProgram| {
        // Without a head a program of atomics is told by nothing.
        let verb_fits = verb.map_or(program.verb != Verb::FetchAndAdd, |verb| program.verb == verb);
        is_rc && program.kind == series.kind && verb_fits
    };
    PROGRAMS.iter().filter(fits).collect()
}

/// The runs of a row by a program.
pub(super) fn runs(reading: &Reading, point: &Point, is_sweep: bool, system_mtu: Bytes) -> Option<Runs> {
    let program = reading.program;
    let conditions = &point.conditions;
    let is_chosen = conditions.more.contains_key("path");
    let mut plain = program.run(conditions.payload?);
    if conditions.operation == Some(LogOperation::CompareAndSwap) {
        plain.verb = Verb::CompareAndSwap;
    }
    // Over several payloads the tool has one moderation for all.
    if is_sweep && program.kind == RunKind::Bandwidth {
        plain.cq_moderation = TOOL_CQ_MODERATION;
    }
    let mut stated = plain.clone();
    if program.kind == RunKind::Bandwidth {
        stated.queue_pairs = reading.queue_pairs.max(1);
        stated.tx_depth = conditions.tx_depth.unwrap_or(TOOL_TX_DEPTH).max(1);
        stated.post_list = conditions.post_list.unwrap_or(1).max(1);
        let moderation = conditions.cq_moderation.unwrap_or(plain.cq_moderation);
        stated.cq_moderation = moderation.clamp(1, stated.tx_depth);
        stated.directions = conditions.directions.unwrap_or(TrafficDirections::One);
    }
    stated.inline = conditions.inline.unwrap_or(plain.inline);
    stated.outstanding_reads = conditions.outstanding_reads;
    stated.mtu = conditions.mtu;
    stated.length = match (conditions.duration, conditions.iterations) {
        (Some(duration), _) => Some(RunLength::Duration(duration)),
        (None, Some(iterations)) => Some(RunLength::Iterations(iterations)),
        (None, None) => plain.length,
    };
    let mut reference = stated.clone();
    // Its suite varies on purpose what it states.
    if is_chosen {
        return Some(Runs { stated, reference });
    }
    if program.kind == RunKind::Bandwidth {
        reference.tx_depth = stated.tx_depth.max(TOOL_TX_DEPTH);
        // The tool has no more behind one completion than it posts ahead.
        if stated.cq_moderation == stated.tx_depth {
            reference.cq_moderation = stated.cq_moderation.max(plain.cq_moderation);
        }
    }
    reference.inline = stated.inline.max(plain.inline);
    reference.outstanding_reads = None;
    reference.mtu = stated.mtu.filter(|mtu| *mtu >= system_mtu);
    if let Some(RunLength::Iterations(count)) = stated.length {
        let usual = program.iterations.saturating_mul(stated.queue_pairs);
        reference.length = Some(RunLength::Iterations(count.max(usual)));
    }
    Some(Runs { stated, reference })
}
