//! Measured points of logs: which figures count, once each, and which are kept for prediction.

use crate::printed::{Aside, PrintedRows};
use crate::run::{MeasuredRun, NotARun, RunKind, is_software};
use offpath_logs::{
    LogCaution, LogDetail, LogFigure, LogMeasurement, LogMetric, MetricStatistic, MetricSubject,
};
use offpath_quantity::Bytes;
use offpath_route::Verb;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// A figure that a prediction is held to.
#[derive(Clone, Debug, PartialEq)]
pub struct MeasuredPoint {
    /// The log.
    pub file: String,
    /// The first line of its row.
    pub line: u64,
    /// What was run.
    pub run: MeasuredRun,
    /// Messages per second of a bandwidth test, or seconds of a latency test.
    pub measured: f64,
    /// The figure itself.
    pub metric: LogMetric,
    /// Ethernet or InfiniBand, where the log says which.
    pub link_layer: Option<Arc<str>>,
    /// The device's name on its machine, where the log says it.
    pub device: Option<Arc<str>>,
    /// Whether the tool said that the clock varied by which it measures time.
    pub has_varied_clock: bool,
}

/// What is wrong with logs that numbers are learnt from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogDoubt {
    /// In a sentence.
    pub said: String,
    /// Whether nothing that is learnt of them counts as measured.
    pub is_of_figures: bool,
}

/// By how much one run may differ between two devices and both be of one kind of card.
pub(crate) const ALIKE: f64 = 1.25;

/// What the logs of points say that makes figures of them no measurement of one card, and what they state differently from one another.
pub(crate) fn log_doubts(points: &[&MeasuredPoint]) -> Vec<LogDoubt> {
    let list = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(", ");
    let files = |of: &dyn Fn(&MeasuredPoint) -> bool| -> BTreeSet<String> {
        points.iter().filter(|point| of(point)).map(|point| point.file.clone()).collect()
    };
    let mut found = Vec::new();
    let mut doubt = |said: String, is_of_figures: bool| found.push(LogDoubt { said, is_of_figures });
    let in_software = files(&|point| point.device.as_deref().is_some_and(is_software));
    if !in_software.is_empty() {
        doubt(
            format!(
                "{}: the device is by its name one in software, whose costs are a processor's and no card's",
                list(in_software)
            ),
            true,
        );
    }
    let varied = files(&|point| point.has_varied_clock);
    if !varied.is_empty() {
        doubt(
            format!(
                "{}: the tool says that the processor's frequency varied, by which it measures time: each figure may be off by as much \
                 as that did",
                list(varied)
            ),
            true,
        );
    }
    let mut of_run: BTreeMap<&MeasuredRun, BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
    for point in points {
        if let Some(device) = &point.device {
            of_run.entry(&point.run).or_default().entry(device).or_default().push(point.measured);
        }
    }
    let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
    let apart = of_run.iter().filter_map(|(run, devices)| {
        let means = || devices.values().map(mean);
        let ratio = means().fold(0.0, f64::max) / means().fold(f64::INFINITY, f64::min);
        (ratio > ALIKE).then_some((ratio, run, devices))
    });
    if let Some((ratio, run, devices)) = apart.max_by(|(one, ..), (other, ..)| one.total_cmp(other)) {
        let devices = list(devices.keys().map(|device| format!("`{device}`")).collect());
        doubt(
            format!(
                "the logs are of {devices}, which differ {ratio:.1} times in the {run}: calibrate each by itself"
            ),
            true,
        );
    }
    let stated = |of: &dyn Fn(&MeasuredPoint) -> Option<String>| -> BTreeSet<String> {
        points.iter().filter_map(|point| of(point)).collect()
    };
    let layers = stated(&|point| point.link_layer.as_ref().map(|layer| layer.to_string()));
    if layers.len() > 1 {
        doubt(
            format!(
                "the logs are of several link layers ({}): the card keeps the base's packet header",
                list(layers)
            ),
            false,
        );
    }
    let mtus = stated(&|point| Some(point.run.queue_pairs()?.mtu?.to_string()));
    if mtus.len() > 1 {
        doubt(format!("the logs are of several MTUs ({}): the card keeps the base's", list(mtus)), false);
    }
    found
}

/// Lines of logs that give no point, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftAside {
    /// The log.
    pub file: String,
    /// The first of the lines.
    pub line: u64,
    /// How many rows.
    pub rows: u64,
    /// Why.
    pub why: String,
}

/// Collects the points of logs.
#[derive(Clone, Debug, Default)]
pub struct PointCollector {
    rows: PrintedRows,
    /// The point of a row, by its place: its figures say one thing several ways.
    points: BTreeMap<usize, RowPoint>,
    /// The last row that gave a point, or none.
    last: Option<usize>,
    aside: Aside,
    /// The path that is asked for, where logs say theirs.
    path: Option<String>,
}

/// A row's point, whether its figure is no coarse one, and its rank.
type RowPoint = (MeasuredPoint, (bool, u8));

/// A figure that is rounded by more than this share of it says less than one beside it that is not.
const COARSE: f64 = 0.005;

/// Which of a row's figures is taken where none is coarse: usually the one with the most digits.
fn rank(metric: &LogMetric) -> Option<u8> {
    match (metric.subject, metric.statistic) {
        (
            MetricSubject::OperationRate,
            MetricStatistic::Mean | MetricStatistic::Median | MetricStatistic::Only,
        ) => Some(2),
        (MetricSubject::Bandwidth, MetricStatistic::Mean | MetricStatistic::Median) => Some(1),
        (MetricSubject::Latency, MetricStatistic::Median) => Some(2),
        (MetricSubject::Latency, MetricStatistic::Mean) => Some(1),
        _ => None,
    }
}

impl PointCollector {
    /// Collects the points of a path: of logs that say theirs, those of no other.
    pub fn on(path: &str) -> PointCollector {
        PointCollector { path: Some(path.to_string()), ..PointCollector::default() }
    }

    /// Takes a figure of a log, where it is one that a prediction can be held to.
    pub fn take(&mut self, file: &str, figure: &LogMeasurement) {
        let LogMeasurement { metric, .. } = figure;
        // A single operation is no row.
        if metric.statistic == MetricStatistic::Sample {
            return;
        }
        let place = self.rows.add(file, figure);
        if let (Some(asked), Some(LogDetail::Text(path))) = (&self.path, figure.conditions.more.get("path"))
            && **path != **asked
        {
            let why = format!("it is of path {path}; `--path {path}` learns from it");
            return self.leave(place, &why);
        }
        let run = match MeasuredRun::of(figure) {
            Ok(run) => run,
            Err(NotARun::OtherMetric { .. }) => return,
            Err(why) => return self.leave(place, &why.to_string()),
        };
        let Some(rank) = rank(metric) else { return };
        let is_fine = figure.step.value() / figure.figure.value() <= COARSE;
        let own = (is_fine, rank);
        let measured = match (metric.subject, figure.figure) {
            (MetricSubject::OperationRate, LogFigure::Rate(rate)) => rate.per_s(),
            (MetricSubject::Bandwidth, LogFigure::BitRate(rate)) if run.payload() > Bytes::ZERO => {
                rate.bits_per_second() as f64 / 8.0 / run.payload().get() as f64
            }
            (MetricSubject::Latency, LogFigure::Time(time)) => time.as_seconds(),
            (MetricSubject::Latency, _) => {
                return self.leave(place, "times in cycles: the log does not say how long one is");
            }
            _ => return,
        };
        if !(measured.is_finite() && measured > 0.0) {
            return self.leave(place, "a figure of 0 has no prediction");
        }
        self.last = Some(place);
        if self.points.get(&place).is_some_and(|(_, taken)| *taken >= own) {
            return;
        }
        let point = MeasuredPoint {
            file: file.to_string(),
            line: self.rows.row(place).line,
            run,
            measured,
            metric: *metric,
            link_layer: figure.conditions.link_layer.clone(),
            device: figure.conditions.device.clone(),
            has_varied_clock: figure.cautions.has(LogCaution::FrequencyVaried),
        };
        self.points.insert(place, (point, own));
    }

    /// A row gives no point, where none of its figures gave one before.
    fn leave(&mut self, place: usize, why: &str) {
        if self.last.replace(place) != Some(place) {
            self.aside.add(place, self.rows.row(place).at(), why);
        }
    }

    /// The points, and what gave none. What is said twice counts once: a row's figures are known only when the row has ended.
    pub fn finish(self) -> (Vec<MeasuredPoint>, Vec<LeftAside>) {
        let PointCollector { rows, mut points, mut aside, .. } = self;
        for (place, why) in rows.repeated(points.keys().copied().collect()) {
            points.remove(&place);
            aside.add(place, rows.row(place).at(), &why);
        }
        (points.into_values().map(|(point, _)| point).collect(), aside.into_rows())
    }
}

/// A rule by which points are kept for prediction and not fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HoldOut {
    /// Every second size: the second, fourth and so on of a series, and of a device's DMA of all series of a kind.
    Sizes,
    /// All of a verb.
    Verb(Verb),
    /// All of so many queue pairs.
    QueuePairs(BTreeSet<u64>),
}

/// Why a rule is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a rule of what to hold out: write `sizes`, `verb=write` or `qps=2,4`")]
pub struct UnknownHoldOut(String);

impl FromStr for HoldOut {
    type Err = UnknownHoldOut;
    fn from_str(text: &str) -> Result<HoldOut, UnknownHoldOut> {
        let unknown = || UnknownHoldOut(text.to_string());
        match text.split_once('=') {
            None if text == "sizes" => Ok(HoldOut::Sizes),
            Some(("verb", verb)) => verb.parse().map(HoldOut::Verb).map_err(|_| unknown()),
            Some(("qps", list)) => {
                let counts =
                    list.split(',').map(|one| one.trim().parse::<u64>().ok().filter(|count| *count > 0));
                counts.collect::<Option<_>>().map(HoldOut::QueuePairs).ok_or_else(unknown)
            }
            _ => Err(unknown()),
        }
    }
}

impl fmt::Display for HoldOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HoldOut::Sizes => f.write_str("every second size"),
            HoldOut::Verb(verb) => write!(f, "{verb}"),
            HoldOut::QueuePairs(counts) => {
                let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
                write!(f, "{} queue pairs", counts.join(", "))
            }
        }
    }
}

/// The first rule that names what no point has, with what they have of it.
pub(crate) fn holds_nothing(points: &[MeasuredPoint], rules: &[HoldOut]) -> Option<(HoldOut, String)> {
    let list = |all: BTreeSet<String>| all.into_iter().collect::<Vec<_>>().join(", ");
    rules.iter().find_map(|rule| {
        let has = match rule {
            // A series of one size is fitted whole.
            HoldOut::Sizes => return None,
            HoldOut::Verb(verb) => {
                let verbs: BTreeSet<String> =
                    points.iter().filter_map(|point| point.run.verb()).map(|verb| verb.to_string()).collect();
                if verbs.contains(&verb.to_string()) {
                    return None;
                }
                list(verbs)
            }
            HoldOut::QueuePairs(counts) => {
                let own = points.iter().filter_map(|point| point.run.queue_pairs());
                let own: BTreeSet<u64> = own.map(|run| run.queue_pairs).collect();
                if !own.is_disjoint(counts) {
                    return None;
                }
                let words: Vec<String> = own.iter().map(u64::to_string).collect();
                if words.is_empty() {
                    "none".to_string()
                } else {
                    format!("{} queue pairs", words.join(", "))
                }
            }
        };
        Some((rule.clone(), has))
    })
}

/// Which points are held out.
pub(crate) fn held_out(points: &[MeasuredPoint], rules: &[HoldOut]) -> Vec<bool> {
    // Of queue pairs each series is counted by itself: of a run of one size nothing would be left to fit to, and what another log
    // has is no reason to fit less of this one. Windows of a device's DMA have one size each, and tell only what others learn.
    let series = |run: &MeasuredRun| (run.kind(), run.queue_pairs().is_some().then(|| run.series()));
    let mut sizes: BTreeMap<(RunKind, Option<MeasuredRun>), BTreeSet<Bytes>> = BTreeMap::new();
    for point in points {
        sizes.entry(series(&point.run)).or_default().insert(point.run.payload());
    }
    let is_second = |run: &MeasuredRun| {
        let place = sizes[&series(run)].iter().position(|size| *size == run.payload());
        place.is_some_and(|place| place % 2 == 1)
    };
    let is_held = |run: &MeasuredRun| {
        rules.iter().any(|rule| match rule {
            HoldOut::Sizes => is_second(run),
            HoldOut::Verb(verb) => run.verb() == Some(*verb),
            HoldOut::QueuePairs(counts) => {
                run.queue_pairs().is_some_and(|run| counts.contains(&run.queue_pairs))
            }
        })
    };
    points.iter().map(|point| is_held(&point.run)).collect()
}
