//! Numbers of a card from measured points: which ones the points tell apart, what they are, within what, and how well
//! points that were kept apart are predicted, beside what two numbers alone would do.

use crate::descent::{Found, Model, SCALE, Search, weight};
use crate::dma::{DmaBench, DmaOperation, DmaRun};
use crate::doubt::{Doubt, Replacement};
use crate::expect::{ExpectError, ToolBench};
use crate::points::{HoldOut, MeasuredPoint, held_out, holds_nothing};
use crate::posting::{KnownLoops, followed_requests};
use crate::run::{MeasuredRun, RunKind, RunLength, ToolProgram, ToolRun};
use offpath_profile::{LEARNT_FIGURES, LearntErrors, Number, System};
use offpath_quantity::{Bytes, Quantity};
use offpath_route::Verb;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;
use std::thread::available_parallelism;

/// What is to be learnt from.
#[derive(Clone, Debug)]
pub struct CalibrationRequest<'a> {
    /// The system that is begun from.
    pub system: &'a System,
    /// From the client to the server.
    pub path: &'a str,
    /// The measured points.
    pub points: &'a [MeasuredPoint],
    /// What is kept for prediction.
    pub hold_out: &'a [HoldOut],
    /// Numbers that have to be fitted, by a dotted name; those that the points tell apart where none is named.
    pub fit: &'a [String],
    /// Numbers that stay as they are.
    pub pin: &'a [String],
    /// Who is told how far it is.
    pub progress: &'a dyn PhaseProgress,
}

/// Who is told how far something is that goes in phases.
pub trait PhaseProgress: fmt::Debug {
    /// A phase begins, of so many steps.
    fn phase(&self, what: &str, steps: u64);
    /// A step of it is done.
    fn step(&self);
}

/// Nobody is told.
impl PhaseProgress for () {
    fn phase(&self, _what: &str, _steps: u64) {}
    fn step(&self) {}
}

/// Why nothing is learnt.
#[derive(Debug, thiserror::Error)]
pub enum CalibrationError {
    /// A run is refused.
    #[error(transparent)]
    Expect(#[from] ExpectError),
    /// There is nothing to fit to.
    #[error(
        "{fitted} of {all} points are left to fit to, and two numbers at least are fitted; hold out less, or give more logs"
    )]
    TooFew {
        /// Points that are not held out.
        fitted: usize,
        /// All of them.
        all: usize,
    },
    /// A rule of what to hold out names what no point has.
    #[error("no point is of {rule}, which is to be held out: the logs have {has}")]
    HoldsNothing {
        /// What is to be held out, in words.
        rule: String,
        /// What the points have of it.
        has: String,
    },
    /// A number is named that does not exist or cannot be fitted.
    #[error("`{name}` cannot be fitted: {why}")]
    NoSuchNumber {
        /// The name.
        name: String,
        /// Why.
        why: String,
    },
    /// Numbers are asked for that the points do not tell apart.
    #[error("the points do not tell `{name}` apart from {}: pin one of them, or add a run that does: `{run}`", .from.join(", "))]
    NotToldApart {
        /// The number.
        name: String,
        /// What moves the points alike.
        from: Vec<String>,
        /// A run that would tell.
        run: String,
    },
    /// A number is asked for that no point feels.
    #[error("no point moves with `{name}`; leave it out, or add a run that does: `{run}`")]
    NotSeen {
        /// The number.
        name: String,
        /// A run that would see it.
        run: String,
    },
}

/// A number that was fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct LearntNumber {
    /// Its name, as `--set` takes it.
    pub name: String,
    /// Its other names: the number is one.
    pub also: Vec<String>,
    /// The file of the base that holds it, and its key there.
    pub file: String,
    /// Its key there.
    pub key: String,
    /// What the base says.
    pub base: Quantity,
    /// What the points say.
    pub value: Quantity,
    /// The lower end of its 90% interval; of one beyond the base, of that and the base's together.
    pub low: Quantity,
    /// The upper end.
    pub high: Quantity,
    /// Whether it ended at a bound of the search: the points ask for more.
    pub at_bound: bool,
    /// Whether the points tell it by itself, to 5% and better. Where not, it may stand for others, too.
    pub is_told: bool,
    /// Numbers that stayed and that the points move with as with this one: its interval holds for any of their values.
    pub alike: Vec<String>,
    /// Where it makes the points fit and they do not say what it is.
    pub doubt: Option<LearntDoubt>,
}

/// Why points that a number makes fit do not say what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LearntDoubt {
    /// It ended where the search does, and the points ask for more: what it is lies farther off, or elsewhere.
    AtBound,
    /// It stands for others and lies where the base's interval does not reach.
    BeyondBase,
    /// The points fit as well where it holds nothing back, within what the base allows.
    Replaceable {
        /// Numbers that stayed and that together make them fit in its place, a list for each way; none where nothing has to.
        by: Vec<Vec<String>>,
        /// A run that would tell it from the first way, where one of those that were tried does.
        run: Option<String>,
    },
}

/// The interval that reaches over both.
fn over(one: (Quantity, Quantity), other: (Quantity, Quantity)) -> (Quantity, Quantity) {
    let low = if other.0.base() < one.0.base() { other.0 } else { one.0 };
    let high = if other.1.base() > one.1.base() { other.1 } else { one.1 };
    (low, high)
}

/// Why a number that runs feel was not fitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptReason {
    /// No fitted point feels it, as far as its interval goes.
    NotSeen,
    /// Points feel it apart from the others, too little to tell it, and the fit did not need it.
    NotNeeded,
    /// The points move with it as with these.
    NotToldApart(Vec<String>),
    /// The user keeps it.
    Pinned,
}

/// A number that was not fitted.
#[derive(Clone, Debug, PartialEq)]
pub struct KeptNumber {
    /// Its name.
    pub name: String,
    /// The file of the base that holds it.
    pub file: String,
    /// Its key there.
    pub key: String,
    /// What the base says.
    pub value: Quantity,
    /// What the card has: that, or where it makes the points fit beside a number that was fitted as well as in its place,
    /// what it is then, so that no plan carries more than was measured.
    pub taken: Quantity,
    /// Where it makes the points fit in place of a number that was fitted: between what the base allows, and that.
    pub replacing: Option<(Quantity, Quantity)>,
    /// Why.
    pub reason: KeptReason,
    /// A run that would tell it, where one of those that were tried does.
    pub run: Option<String>,
}

impl KeptNumber {
    fn of(name: &str, number: &Number, reason: KeptReason, run: Option<String>) -> KeptNumber {
        let Number { value, file, key, .. } = number;
        let (name, file, key) = (name.to_string(), file.clone(), key.clone());
        KeptNumber { name, file, key, value: *value, taken: *value, replacing: None, reason, run }
    }

    /// It makes the points fit in place of a fitted number, with this value.
    fn replaces(&mut self, fitted: String, value: Quantity, stated: (Quantity, Quantity)) {
        self.replacing = Some(over(self.replacing.unwrap_or(stated), (value, value)));
        match &mut self.reason {
            KeptReason::NotToldApart(from) if from.contains(&fitted) => {}
            KeptReason::NotToldApart(from) => from.push(fitted),
            reason => *reason = KeptReason::NotToldApart(vec![fitted]),
        }
    }
}

/// A point with its prediction.
#[derive(Clone, Debug, PartialEq)]
pub struct PredictedPoint {
    /// The point, by its position in the request.
    pub point: usize,
    /// Whether it was kept for prediction.
    pub held_out: bool,
    /// The prediction, in the point's own unit.
    pub predicted: f64,
    /// The ends of its 80% interval.
    pub low_80: f64,
    /// The upper end.
    pub high_80: f64,
    /// What it would be without this point and those of the same run; absent for points that were held out.
    pub left_out: Option<f64>,
    /// What the roofline of two numbers says.
    pub roofline: f64,
    /// What a straight line of time over size says.
    pub line: f64,
}

/// What errors of some points are, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ErrorSummary {
    /// How many points.
    pub points: usize,
    /// The middle one.
    pub median: f64,
    /// What nine of ten are at most.
    pub p90: f64,
    /// The greatest.
    pub greatest: f64,
}

/// Pairs of runs and which of them is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// How many pairs.
    pub pairs: usize,
    /// Of how many the prediction has the same one faster, or neither where neither is.
    pub right: usize,
}

/// What was learnt.
#[derive(Clone, Debug, PartialEq)]
pub struct Calibration {
    /// The numbers that were fitted.
    pub numbers: Vec<LearntNumber>,
    /// Numbers that runs feel and that stay.
    pub kept: Vec<KeptNumber>,
    /// Every point with its prediction.
    pub points: Vec<PredictedPoint>,
    /// Errors of fitted points.
    pub fitted: ErrorSummary,
    /// Errors of points that were held out.
    pub predicted: ErrorSummary,
    /// The same of the roofline.
    pub roofline: ErrorSummary,
    /// The same of the straight line.
    pub line: ErrorSummary,
    /// Errors of fitted points, each predicted without its own run.
    pub left_out: ErrorSummary,
    /// Errors of fitted points, each predicted without those that err together with it: its log, or of a device's DMA its
    /// series there.
    pub left_out_clusters: ErrorSummary,
    /// What runs that were repeated differ by from one another: no prediction can err by less.
    pub repeated: ErrorSummary,
    /// Held-out points within their 80% intervals.
    pub covered: usize,
    /// Runs of a device's DMA of what caches hold against the same of what they do not; none where no log has both.
    pub warm_against_cold: Directions,
    /// What a prediction of a run that is fitted nowhere is off by beyond what the numbers leave open, for each kind of figure
    /// of which the fitted points tell: no held-out point is in it.
    pub learnt_errors: Vec<LearntErrors>,
}

/// A number that may be moved.
struct Candidate {
    names: Vec<String>,
    number: Number,
    /// Whether the user asked for it.
    is_asked: bool,
    /// Whether it is a size, which a machine has of a few: it is never fitted, and what it may be off by is doubt of those
    /// that are.
    is_size: bool,
}

impl Candidate {
    /// How far off the base may be, as a standard deviation of its logarithm, by the interval that it states.
    fn deviation(&self) -> f64 {
        match (self.number.low, self.number.high) {
            (Some(low), Some(high)) => (logarithm(high) - logarithm(low)) / 2.0 / SIDE_90,
            _ => 0.0,
        }
    }
}

/// Predictions of distinct runs under values of the candidates.
struct Runs<'a> {
    base: &'a System,
    path: &'a str,
    runs: Vec<MeasuredRun>,
    candidates: &'a [Candidate],
    /// What was followed already, of all runs.
    loops: Arc<KnownLoops>,
    /// What was predicted already.
    known: RefCell<BTreeMap<Vec<u64>, Option<Vec<f64>>>>,
}

/// A base value of a quantity as a logarithm; what is none counts as one unit.
fn logarithm(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Ratio(share) => share.max(1e-3).ln(),
        _ => quantity.base().max(1.0).ln(),
    }
}

fn quantity(of: Quantity, at: f64) -> Option<Quantity> {
    let base = if matches!(of, Quantity::Ratio(_)) { at.exp() } else { at.exp().round() };
    Quantity::from_base(base, of.dimension())
}

impl Runs<'_> {
    fn at(&self, at: &[f64]) -> Option<System> {
        let mut changes: Vec<(&str, Quantity)> = Vec::new();
        for (candidate, at) in self.candidates.iter().zip(at) {
            if (at - logarithm(candidate.number.value)).abs() < 1e-12 {
                continue;
            }
            let value = quantity(candidate.number.value, *at)?;
            changes.extend(candidate.names.iter().map(|name| (name.as_str(), value)));
        }
        self.base.with_all(changes).ok()
    }

    fn of(&self, system: &System, runs: &[MeasuredRun]) -> Result<Vec<f64>, ExpectError> {
        let loops = &self.loops;
        let predict = |runs: Vec<&MeasuredRun>| -> Result<Vec<f64>, ExpectError> {
            let is_of_queue_pairs = |run: &&MeasuredRun| run.queue_pairs().is_some();
            let of_queue_pairs = runs
                .iter()
                .any(is_of_queue_pairs)
                .then(|| ToolBench::new(system, self.path))
                .transpose()?
                .map(|bench| bench.sharing(loops));
            let of_dma = runs
                .iter()
                .any(|run| !is_of_queue_pairs(run))
                .then(|| DmaBench::new(system, self.path))
                .transpose()?;
            let of = |run: &MeasuredRun| {
                let expected = match run {
                    MeasuredRun::QueuePairs(run) => {
                        of_queue_pairs.as_ref().expect("made where such a run is there").expect(run)?
                    }
                    MeasuredRun::Dma(run) => {
                        of_dma.as_ref().expect("made where such a run is there").expect(run)?
                    }
                };
                Ok(match run.kind() {
                    RunKind::Bandwidth => expected.rate_per_s.max(1e-9).ln(),
                    RunKind::Latency => expected.latency.as_seconds().max(1e-12).ln(),
                })
            };
            runs.into_iter().map(of).collect()
        };
        // Side by side, dealt out in turn, since neighbours take about as long.
        let threads = if runs.len() < 8 { 1 } else { available_parallelism().map_or(1, usize::from) };
        let dealt: Vec<Result<Vec<f64>, ExpectError>> = std::thread::scope(|scope| {
            let share = |first: usize| runs.iter().skip(first).step_by(threads).collect::<Vec<_>>();
            let others: Vec<_> =
                (1..threads).map(|first| scope.spawn(move || predict(share(first)))).collect();
            let own = predict(share(0));
            let joined = others.into_iter().map(|other| other.join().expect("a prediction does not panic"));
            std::iter::once(own).chain(joined).collect()
        });
        let dealt: Vec<Vec<f64>> = dealt.into_iter().collect::<Result<_, _>>()?;
        Ok((0..runs.len()).map(|index| dealt[index % threads][index / threads]).collect())
    }
}

impl Model for Runs<'_> {
    fn predict(&self, at: &[f64]) -> Option<Vec<f64>> {
        let key: Vec<u64> = at.iter().map(|value| value.to_bits()).collect();
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let predicted = self.at(at).and_then(|system| self.of(&system, &self.runs).ok());
        self.known.borrow_mut().insert(key, predicted.clone());
        predicted
    }
}

/// How far beyond the interval of a guess the search goes, as a factor.
const BEYOND: f64 = 4.0;
/// A link trains to as little as this share of what its slot has.
const LEAST_LINK: f64 = 1.0 / 64.0;
/// A number is taken where it lowers the cost by this share, and by [`LEAST_GAIN`] at least.
const GAIN: f64 = 0.05;
const LEAST_GAIN: f64 = 4.0;
/// Requests at most that a search from many places follows of runs that differ in their payload alone: of many queue pairs
/// few payloads are looked at.
const MOST_SCANNED: u64 = 150_000;
/// Payloads at least that it looks at of each.
const LEAST_SCANNED: usize = 3;
/// A number is fitted where its standard deviation beside the others is at most this share of it.
const TOLD: f64 = 0.15;
/// A number is told by itself where its 90% interval reaches no farther than this share on each side.
const ALONE: f64 = 0.05;
/// A number counts as alike to others where no more than this share of what it moves is its own.
const OWN_SHARE: f64 = 0.1;
/// By how much an interval of 80% (0) or 90% (1) is wider where its deviation is known from so many clusters alone: the
/// quantile of Student's distribution over that of the normal one.
fn student(level: usize, clusters: usize) -> f64 {
    const QUANTILES: [[f64; 10]; 2] = [
        [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372],
        [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812],
    ];
    let normal = [SIDE_80, SIDE_90][level];
    match clusters.saturating_sub(2) {
        // One cluster says nothing of what another would differ by; what its points differ by stands for it.
        0 if clusters < 2 => 1.0,
        freedom => QUANTILES[level].get(freedom).map_or(1.0, |quantile| quantile / normal),
    }
}

/// Standard deviations on each side of a 90% and of an 80% interval.
const SIDE_90: f64 = 1.645;
const SIDE_80: f64 = 1.282;

/// Learns what the points say.
///
/// # Errors
/// [`CalibrationError`] where a run is refused, nothing is left to fit to, or a number is asked for that the points do
/// not tell.
pub fn calibrate(request: &CalibrationRequest<'_>) -> Result<Calibration, CalibrationError> {
    let CalibrationRequest { system, path, points, .. } = *request;
    if let Some((rule, has)) = holds_nothing(points, request.hold_out) {
        return Err(CalibrationError::HoldsNothing { rule: rule.to_string(), has });
    }
    let held = held_out(points, request.hold_out);
    let fitted = held.iter().filter(|held| !**held).count();
    if fitted < 3 {
        return Err(CalibrationError::TooFew { fitted, all: points.len() });
    }
    let candidates = candidates(request)?;
    let runs: Vec<MeasuredRun> =
        points.iter().map(|point| point.run.clone()).collect::<BTreeSet<_>>().into_iter().collect();
    let place = |run: &MeasuredRun| runs.binary_search(run).expect("every point's run is there");
    let places: Vec<usize> = points.iter().map(|point| place(&point.run)).collect();
    let loops: Arc<KnownLoops> = Arc::default();
    let all = Runs {
        base: system,
        path,
        runs: runs.clone(),
        candidates: &candidates,
        loops: loops.clone(),
        known: RefCell::default(),
    };
    // A run that the system refuses is said once, with its reason.
    all.of(system, &runs)?;
    // The search sees the runs of fitted points alone.
    let seen: BTreeSet<usize> =
        places.iter().zip(&held).filter(|(_, held)| !**held).map(|(place, _)| *place).collect();
    let seen: Vec<usize> = seen.into_iter().collect();
    let model = Runs {
        base: system,
        path,
        runs: seen.iter().map(|place| runs[*place].clone()).collect(),
        candidates: &candidates,
        loops: loops.clone(),
        known: RefCell::default(),
    };
    let targets_of = |seen: &[usize]| -> Vec<(usize, f64)> {
        let own = (0..points.len()).filter(|index| !held[*index]);
        let own = own.filter_map(|index| Some((seen.binary_search(&places[index]).ok()?, index)));
        own.map(|(place, index)| (place, points[index].measured.ln())).collect()
    };
    let targets = targets_of(&seen);
    // Where many runs are fitted, few that are spread over them say where to look, and all where it ends.
    let few = spread_over(&seen, &runs);
    let coarse_model = Runs {
        base: system,
        path,
        runs: few.iter().map(|place| runs[*place].clone()).collect(),
        candidates: &candidates,
        loops: loops.clone(),
        known: RefCell::default(),
    };
    let coarse_targets = targets_of(&few);
    let (low, high): (Vec<f64>, Vec<f64>) = candidates.iter().map(bounds).unzip();
    let search = Search { model: &model, low: &low, high: &high, points: &targets };
    let start: Vec<f64> = candidates.iter().map(|candidate| logarithm(candidate.number.value)).collect();
    let coarse = Search { model: &coarse_model, low: &low, high: &high, points: &coarse_targets };
    let too_few = || CalibrationError::TooFew { fitted, all: points.len() };
    let mut moving = moving(&search, &search.found(start.clone()).ok_or_else(too_few)?, request.progress);
    moving.retain(|index| !candidates[*index].is_size);
    let progress = request.progress;
    let start = coarse.found(start).ok_or_else(too_few)?;
    let (best, free) = select(&coarse, start, &moving, &candidates, progress);
    let best = (search.descend(search.found(best.at).ok_or_else(too_few)?, &free), free);
    let menu = Menu::new(&candidates, system, path, &runs, &loops);
    let clusters = clusters(points);
    let clusters_of_fitted: Vec<usize> =
        (0..points.len()).filter(|index| !held[*index]).map(|index| clusters[index]).collect();
    let told = tell((&search, &coarse), best, &moving, &candidates, &menu, (&clusters_of_fitted, progress))?;
    let Told { best, free, covariance, alike, replacements, mut kept } = told;
    let pinned = |name: &String| KeptNumber::of(name, &system.numbers[name], KeptReason::Pinned, None);
    kept.extend(request.pin.iter().map(pinned));

    // What the numbers say of every run, and how far each prediction may move with them.
    let whole = Search { model: &all, low: &low, high: &high, points: &[] };
    let predicted =
        whole.found(best.at.clone()).ok_or(CalibrationError::TooFew { fitted, all: points.len() })?;
    let slopes: Vec<Vec<f64>> = free.iter().map(|index| whole.slope(&predicted, *index)).collect();
    let spread = |place: usize| -> f64 {
        let own: Vec<f64> = slopes.iter().map(|slope| slope[place]).collect();
        let mut variance = 0.0;
        for (row, a) in own.iter().enumerate() {
            for (column, b) in own.iter().enumerate() {
                variance += a * b * covariance[row][column];
            }
        }
        variance.max(0.0).sqrt()
    };
    // One run or cluster less moves the numbers so little that slopes where all are fitted say what follows.
    let fitted_at = search.found(best.at.clone()).ok_or_else(too_few)?;
    let of_fitted: Vec<Vec<f64>> = free.iter().map(|index| search.slope(&fitted_at, *index)).collect();
    let linear = |at: &[f64]| -> Option<Vec<f64>> {
        let mut predicted = fitted_at.predicted.clone();
        for (index, slope) in free.iter().zip(&of_fitted) {
            let step = at[*index] - fitted_at.at[*index];
            predicted.iter_mut().zip(slope).for_each(|(predicted, slope)| *predicted += step * slope);
        }
        Some(predicted)
    };
    let without = |leave: &dyn Fn(usize) -> bool| -> Option<Found> {
        let mut rest = Vec::new();
        let mut target = targets.iter();
        for (index, held) in held.iter().enumerate() {
            if !*held {
                let own = target.next()?;
                if !leave(index) {
                    rest.push(*own);
                }
            }
        }
        if rest.len() < free.len().max(2) {
            return None;
        }
        let search = Search { model: &linear, low: &low, high: &high, points: &rest };
        Some(search.descend(search.found(best.at.clone())?, &free))
    };
    let mut left_out: Vec<Option<f64>> = vec![None; points.len()];
    let mut left_out_clusters: Vec<Option<f64>> = vec![None; points.len()];
    for place in &seen {
        let found = without(&|index| places[index] == *place);
        let at = seen.binary_search(place).expect("it is there");
        for index in (0..points.len()).filter(|index| !held[*index] && places[*index] == *place) {
            left_out[index] = found.as_ref().map(|found| found.predicted[at].exp());
        }
    }
    let fitted_clusters: BTreeSet<usize> = clusters_of_fitted.into_iter().collect();
    for own in &fitted_clusters {
        let found = without(&|index| clusters[index] == *own);
        for index in (0..points.len()).filter(|index| !held[*index] && clusters[*index] == *own) {
            let at = seen.binary_search(&places[index]).expect("it is a fitted point's");
            left_out_clusters[index] = found.as_ref().map(|found| found.predicted[at].exp());
        }
    }
    let error = |predicted: f64, index: usize| predicted / points[index].measured - 1.0;
    let scatter = Scatter::new(points, &held, (&left_out, &left_out_clusters), fitted_clusters.len());

    let [roofline, line] =
        [roofline as Simple, straight_line].map(|simple| simple_fit(simple, points, &held));
    let answer: Vec<PredictedPoint> = (0..points.len())
        .map(|index| {
            let place = places[index];
            let value = predicted.predicted[place].exp();
            let side = scatter.side_80(&points[index].run, || SIDE_80 * spread(place));
            PredictedPoint {
                point: index,
                held_out: held[index],
                predicted: value,
                low_80: value * (-side).exp(),
                high_80: value * side.exp(),
                left_out: left_out[index],
                roofline: roofline[index],
                line: line[index],
            }
        })
        .collect();
    let summary = |wanted: &dyn Fn(usize) -> bool, of: &dyn Fn(&PredictedPoint) -> Option<f64>| {
        let errors = answer.iter().filter(|one| wanted(one.point));
        let errors: Vec<f64> =
            errors.filter_map(|one| of(one).map(|predicted| error(predicted, one.point).abs())).collect();
        ErrorSummary::of(&errors)
    };
    let is_held = |index: usize| held[index];
    let is_fitted = |index: usize| !held[index];
    let covered = answer
        .iter()
        .filter(|one| one.held_out && (one.low_80..=one.high_80).contains(&points[one.point].measured));
    Ok(Calibration {
        numbers: learnt(
            &candidates,
            (&best, &menu),
            &free,
            (&covariance, &alike, &replacements),
            (&low, &high),
        ),
        fitted: summary(&is_fitted, &|one| Some(one.predicted)),
        predicted: summary(&is_held, &|one| Some(one.predicted)),
        roofline: summary(&is_held, &|one| Some(one.roofline)),
        line: summary(&is_held, &|one| Some(one.line)),
        left_out: summary(&is_fitted, &|one| one.left_out),
        left_out_clusters: summary(&is_fitted, &|one| left_out_clusters[one.point]),
        learnt_errors: [RunKind::Bandwidth, RunKind::Latency]
            .into_iter()
            .filter_map(|kind| learnt_errors(kind, points, &clusters, (&left_out, &left_out_clusters)))
            .collect(),
        repeated: repeated(points, &places),
        warm_against_cold: warm_against_cold(points, &answer),
        covered: covered.count(),
        kept,
        points: answer,
    })
}

/// Which points err together beyond what they are fitted to, by number: the doubt of a number is that of so many clusters and
/// not of so many points.
fn clusters(points: &[MeasuredPoint]) -> Vec<usize> {
    let mut numbers: BTreeMap<(&str, Option<MeasuredRun>), usize> = BTreeMap::new();
    let mut all = Vec::with_capacity(points.len());
    for point in points {
        let series = match &point.run {
            // A log of queue pairs is one setting of two machines: whatever is off there (a core, a frequency, a link) is off
            // in its bandwidths and latencies alike, so that its series do not count apart.
            MeasuredRun::QueuePairs(_) => None,
            // A log of a device's DMA has all series of a server in one table, so that as one cluster its errors would add up
            // to nothing at the best fit, and nothing would be in doubt. What a model lacks is another thing for each
            // operation and for each state of the caches, and goes through all sizes of it.
            MeasuredRun::Dma(_) => Some(point.run.series()),
        };
        let next = numbers.len();
        all.push(*numbers.entry((&point.file, series)).or_insert(next));
    }
    all
}

/// How far predictions err by what fitted points do that are predicted without their own run or cluster.
struct Scatter {
    /// By series, of points without their own run.
    own: BTreeMap<MeasuredRun, f64>,
    /// Of series that are fitted nowhere.
    others: f64,
}

impl Scatter {
    fn new(
        points: &[MeasuredPoint],
        held: &[bool],
        (left_out, left_out_clusters): (&[Option<f64>], &[Option<f64>]),
        clusters: usize,
    ) -> Scatter {
        let error = |predicted: f64, index: usize| (predicted / points[index].measured).ln().abs();
        let mut errors: BTreeMap<MeasuredRun, Vec<f64>> = BTreeMap::new();
        for index in (0..points.len()).filter(|index| !held[*index]) {
            let own = errors.entry(points[index].run.series()).or_default();
            own.extend(left_out[index].map(|predicted| error(predicted, index)));
        }
        let all: Vec<f64> = errors.values().flatten().copied().collect();
        let of_clusters: Vec<f64> = (0..points.len())
            .filter_map(|index| left_out_clusters[index].map(|predicted| error(predicted, index)))
            .collect();
        // What clusters scatter by is known from few of them, and the next is one more.
        let few = student(0, clusters) * (1.0 + 1.0 / clusters.max(1) as f64).sqrt();
        Scatter {
            others: quantile(&all, 0.8).max(quantile(&of_clusters, 0.8) * few),
            own: errors
                .into_iter()
                .map(|(series, errors)| (series, next_within(0.8, &errors).unwrap_or(quantile(&all, 0.8))))
                .collect(),
        }
    }

    /// How far an 80% interval reaches on each side of a prediction, as a logarithm. Of a series that is fitted at other sizes
    /// errors without a run have in them what the numbers leave open; of others that comes on top.
    fn side_80(&self, run: &MeasuredRun, open: impl FnOnce() -> f64) -> f64 {
        self.own.get(&run.series()).copied().unwrap_or_else(|| open().hypot(self.others))
    }
}

/// What the next error is within with a chance, where it may take any place among these with the same chance; nothing where
/// these are too few to say.
fn next_within(chance: f64, errors: &[f64]) -> Option<f64> {
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (chance * (sorted.len() + 1) as f64).ceil() as usize;
    sorted.get(place.checked_sub(1)?).copied()
}

/// Errors of a kind of figure that have to be there before they speak for it.
const FEWEST: usize = 8;

/// What predictions of a kind of figure are off by where neither their own run nor their own cluster was fitted, whichever
/// reaches farther; nothing where one cluster alone has such figures, since of another one it says nothing.
fn learnt_errors(
    kind: RunKind,
    points: &[MeasuredPoint],
    clusters: &[usize],
    (left_out, left_out_clusters): (&[Option<f64>], &[Option<f64>]),
) -> Option<LearntErrors> {
    let own = (0..points.len()).filter(|index| points[*index].run.kind() == kind);
    let errors = |left_out: &[Option<f64>]| -> Vec<f64> {
        let error = |index: usize| Some((left_out[index]? / points[index].measured).ln().abs());
        own.clone().filter_map(error).collect()
    };
    let (of_runs, of_clusters) = (errors(left_out), errors(left_out_clusters));
    let told = own.clone().filter(|index| left_out_clusters[*index].is_some());
    let told: BTreeSet<usize> = told.map(|index| clusters[index]).collect();
    if told.len() < 2 || of_runs.len().min(of_clusters.len()) < FEWEST {
        return None;
    }
    // What the fit without a cluster is off by itself is in its error, so that a new one adds nothing to what few tell.
    let few = student(0, told.len());
    let greatest = |errors: &[f64]| errors.iter().copied().fold(0.0, f64::max);
    let within = |chance: f64| {
        let of = |errors: &[f64]| next_within(chance, errors).unwrap_or_else(|| greatest(errors));
        of(&of_runs).max(few * of(&of_clusters))
    };
    let [throughput, latency] = LEARNT_FIGURES;
    let figure = match kind {
        RunKind::Bandwidth => throughput,
        RunKind::Latency => latency,
    };
    Some(LearntErrors {
        figure: figure.to_string(),
        points: of_clusters.len() as u64,
        half_within: within(0.5),
        eight_of_ten_within: within(0.8),
        nine_of_ten_within: within(0.9),
        all_within: within(1.0),
    })
}

/// The numbers that a search may move.
fn candidates(request: &CalibrationRequest<'_>) -> Result<Vec<Candidate>, CalibrationError> {
    let CalibrationRequest { system, fit, pin, .. } = *request;
    for name in fit.iter().chain(pin) {
        if !system.numbers.contains_key(name) {
            let why = "the system has no such number; `offpath device show` lists them".to_string();
            return Err(CalibrationError::NoSuchNumber { name: name.clone(), why });
        }
    }
    // What a link or a port has at most it need not be trained to.
    let links: BTreeSet<String> = system
        .machines
        .iter()
        .flat_map(|machine| {
            let port = std::iter::once(format!("{}.port_rate", machine.nic.name));
            machine.links.iter().map(|link| format!("{}.rate", link.name)).chain(port)
        })
        .collect();
    let mut groups: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (name, number) in &system.numbers {
        groups.entry((number.file.clone(), number.key.clone())).or_default().push(name.clone());
    }
    let mut found = Vec::new();
    for mut names in groups.into_values() {
        let number = system.numbers[&names[0]].as_ref().clone();
        let asked = |list: &[String]| list.iter().find(|name| names.contains(name)).cloned();
        // Sizes are powers of two that the machine itself states, and how many there are is counted.
        let is_continuous = match number.value {
            Quantity::Time(_) | Quantity::BitRate(_) | Quantity::OpRate(_) => true,
            Quantity::Count(_) => ["inflight_slots", "outstanding_reads", "queue_depth"]
                .iter()
                .any(|end| names[0].ends_with(end)),
            Quantity::Ratio(_) => names[0].ends_with("combined_share"),
            Quantity::Bytes(_) | Quantity::Frequency(_) => false,
        };
        let is_asked = asked(fit);
        if let (Some(name), false) = (&is_asked, is_continuous) {
            let why = "a size, a share or a count is read from the machine; set it in the base".to_string();
            return Err(CalibrationError::NoSuchNumber { name: name.clone(), why });
        }
        let is_open = number.low != number.high || names.iter().any(|name| links.contains(name));
        let is_size = matches!(number.value, Quantity::Bytes(_)) && number.low != number.high;
        let is_free = if fit.is_empty() { is_open && asked(pin).is_none() } else { is_asked.is_some() };
        if is_continuous && is_free || is_size && asked(pin).is_none() {
            // A number goes by the name that it is asked for by.
            names.sort_by_key(|name| Some(name) != is_asked.as_ref());
            found.push(Candidate { names, number, is_asked: is_asked.is_some(), is_size });
        }
    }
    Ok(found)
}

/// Between which logarithms a number is sought.
fn bounds(candidate: &Candidate) -> (f64, f64) {
    let Number { value, low, high, .. } = &candidate.number;
    match (low, high) {
        (Some(low), Some(high)) if candidate.is_size => (logarithm(*low), logarithm(*high)),
        (Some(low), Some(high)) => {
            let (low, high) = (logarithm(*low), logarithm(*high));
            (low.min(logarithm(*value)) - BEYOND.ln(), high.max(logarithm(*value)) + BEYOND.ln())
        }
        // A fact of a data sheet: what a link has at most.
        _ => (logarithm(*value) + LEAST_LINK.ln(), logarithm(*value)),
    }
}

/// Between what the base has a number: its interval, or the number itself.
fn stated(candidate: &Candidate) -> (Quantity, Quantity) {
    let Number { value, low, high, .. } = candidate.number;
    (low.unwrap_or(value), high.unwrap_or(value))
}

/// Where a number holds nothing back, of what the base allows, as a logarithm: a time at its least, a rate at its greatest.
fn released(candidate: &Candidate) -> f64 {
    let (low, high) = stated(candidate);
    let is_time = matches!(candidate.number.value, Quantity::Time(_));
    logarithm(if is_time { low } else { high })
}

/// To four digits.
fn rounded(of: Quantity, at: f64) -> Quantity {
    let base = at.exp();
    if matches!(of, Quantity::Ratio(_)) {
        let digits = 10f64.powf(3.0 - base.max(1e-6).log10().floor());
        return Quantity::Ratio((base * digits).round() / digits);
    }
    let step = 10f64.powf(base.abs().max(1.0).log10().floor() - 3.0).max(1.0);
    Quantity::from_base((base / step).round() * step, of.dimension()).unwrap_or(of)
}

/// Of runs that differ in their payload alone those that a search from many places can afford, spread over the payloads.
fn spread_over(seen: &[usize], runs: &[MeasuredRun]) -> Vec<usize> {
    let mut alike: BTreeMap<MeasuredRun, Vec<usize>> = BTreeMap::new();
    for place in seen {
        alike.entry(runs[*place].series()).or_default().push(*place);
    }
    let mut few: Vec<usize> = Vec::new();
    for (series, mut places) in alike {
        places.sort_by_key(|place| runs[*place].payload());
        // What follows no request is cheap.
        let followed = series.queue_pairs().map_or(1, |run| followed_requests(run.queue_pairs).max(1));
        let afforded = MOST_SCANNED / followed;
        let keep = places.len().min(usize::try_from(afforded).unwrap_or(usize::MAX).max(LEAST_SCANNED));
        few.extend((0..keep).map(|index| places[index * (places.len() - 1) / (keep - 1).max(1)]));
    }
    few.sort_unstable();
    few
}

/// The candidates that move a fitted point anywhere between their bounds.
fn moving(search: &Search<'_>, start: &Found, progress: &dyn PhaseProgress) -> Vec<usize> {
    progress.phase("numbers that move a point", start.at.len() as u64);
    let moves = |index: &usize| {
        progress.step();
        [search.low[*index], search.high[*index]].into_iter().any(|end| {
            let mut to = start.at.clone();
            to[*index] = end;
            let there = search.model.predict(&to);
            let differs =
                |there: Vec<f64>| there.iter().zip(&start.predicted).any(|(a, b)| (a - b).abs() > 1e-4);
            there.is_some_and(differs)
        })
    };
    (0..start.at.len()).filter(moves).collect()
}

/// Takes numbers one by one, each time the one that explains most of what is left, until none explains more.
fn select(
    search: &Search<'_>,
    start: Found,
    moving: &[usize],
    candidates: &[Candidate],
    progress: &dyn PhaseProgress,
) -> (Found, Vec<usize>) {
    let asked: Vec<usize> = moving.iter().copied().filter(|index| candidates[*index].is_asked).collect();
    let mut free: Vec<usize> = Vec::new();
    let mut best = start;
    while free.len() < moving.len() {
        let rest: Vec<usize> = moving.iter().copied().filter(|index| !free.contains(index)).collect();
        progress.phase(&format!("candidates for fitted number {}", free.len() + 1), rest.len() as u64);
        let tried = rest.into_iter().filter_map(|index| {
            progress.step();
            Some((index, search.scan(&best, index)?))
        });
        let Some((index, scanned)) = tried.min_by(|(_, one), (_, other)| one.cost.total_cmp(&other.cost))
        else {
            break;
        };
        free.push(index);
        let found = search.descend(scanned, &free);
        let gain = best.cost - found.cost;
        if gain < GAIN * best.cost || gain < LEAST_GAIN {
            free.pop();
            break;
        }
        best = found;
    }
    if !asked.is_empty() {
        free = asked;
        best = search.descend(best, &free);
    }
    free.sort_unstable();
    (elsewhere(search, best, &free, progress), free)
}

/// The best place that searches from elsewhere end at, too: where two bounds cross, a step of each number alone leads
/// nowhere. Each number begins at several places of its range, the others where they are.
fn elsewhere(search: &Search<'_>, best: Found, free: &[usize], progress: &dyn PhaseProgress) -> Found {
    const PLACES: u32 = 5;
    progress.phase("searches from elsewhere", free.len() as u64 * u64::from(PLACES));
    let mut found = best.clone();
    for index in free {
        let (low, high) = (search.low[*index], search.high[*index]);
        for place in 0..PLACES {
            progress.step();
            let mut at = best.at.clone();
            at[*index] = low + (high - low) * (f64::from(place) + 0.5) / f64::from(PLACES);
            let others: Vec<usize> = free.iter().copied().filter(|other| other != index).collect();
            let Some(start) = search.found(at) else { continue };
            let there = search.descend(search.descend(start, &others), free);
            if there.cost < found.cost {
                found = there;
            }
        }
    }
    found
}

/// What is said where none of the runs that were tried tells a number.
const ANOTHER_RUN: &str = "one of another verb, size or depth";

/// What the points tell.
struct Told {
    best: Found,
    free: Vec<usize>,
    covariance: Vec<Vec<f64>>,
    /// Of each number what kept ones add to its variance, by what each may be off, the greatest first.
    alike: Vec<Vec<(usize, f64)>>,
    /// Of each number the ways in which the points fit as well where it holds nothing back.
    replacements: Vec<Vec<Replacement>>,
    kept: Vec<KeptNumber>,
}

/// Of each fitted prediction its weight, from all points that it stands for.
fn weights(search: &Search<'_>, best: &Found) -> Vec<f64> {
    let mut weights = vec![0.0; best.predicted.len()];
    for (place, measured) in search.points {
        weights[*place] += weight(best.predicted[*place] - measured) / (SCALE * SCALE);
    }
    weights
}

fn inverse(mut matrix: Vec<Vec<f64>>) -> Option<Vec<Vec<f64>>> {
    let count = matrix.len();
    let mut inverse: Vec<Vec<f64>> =
        (0..count).map(|row| (0..count).map(|column| f64::from(u8::from(row == column))).collect()).collect();
    for column in 0..count {
        let pivot =
            (column..count).max_by(|a, b| matrix[*a][column].abs().total_cmp(&matrix[*b][column].abs()))?;
        if matrix[pivot][column].abs() < 1e-9 {
            return None;
        }
        matrix.swap(column, pivot);
        inverse.swap(column, pivot);
        let scale = matrix[column][column];
        for at in 0..count {
            matrix[column][at] /= scale;
            inverse[column][at] /= scale;
        }
        for row in (0..count).filter(|row| *row != column) {
            let factor = matrix[row][column];
            for at in 0..count {
                let (own, other) = (matrix[column][at], inverse[column][at]);
                matrix[row][at] -= factor * own;
                inverse[row][at] -= factor * other;
            }
        }
    }
    Some(inverse)
}

/// The weighted product of two columns.
fn product(one: &[f64], other: &[f64], weights: &[f64]) -> f64 {
    one.iter().zip(other).zip(weights).map(|((a, b), weight)| a * b * weight).sum()
}

/// The combination of columns that is nearest to one, and the length of what is left.
fn nearest(columns: &[&Vec<f64>], own: &[f64], weights: &[f64]) -> (Vec<f64>, f64) {
    let normal: Vec<Vec<f64>> = columns
        .iter()
        .enumerate()
        .map(|(row, a)| {
            let mut of: Vec<f64> = columns.iter().map(|b| product(a, b, weights)).collect();
            of[row] += 1e-9;
            of
        })
        .collect();
    let with: Vec<f64> = columns.iter().map(|column| product(column, own, weights)).collect();
    let factors = match inverse(normal) {
        Some(inverse) => inverse.iter().map(|row| row.iter().zip(&with).map(|(a, b)| a * b).sum()).collect(),
        None => vec![0.0; columns.len()],
    };
    let mut left = own.to_vec();
    for (column, factor) in columns.iter().zip(&factors) {
        left.iter_mut().zip(*column).for_each(|(left, own)| *left -= factor * own);
    }
    let length = product(&left, &left, weights).max(0.0).sqrt();
    (factors, length)
}

/// Which numbers the points tell, which they do not tell apart, and which they do not feel.
fn tell(
    (search, coarse): (&Search<'_>, &Search<'_>),
    (mut best, mut free): (Found, Vec<usize>),
    moving: &[usize],
    candidates: &[Candidate],
    menu: &Menu<'_>,
    (clusters, progress): (&[usize], &dyn PhaseProgress),
) -> Result<Told, CalibrationError> {
    let name = |index: usize| candidates[index].names[0].clone();
    let unfelt = |index: &usize| candidates[*index].is_asked && !moving.contains(index);
    if let Some(index) = (0..candidates.len()).find(unfelt) {
        let run = menu.feeling(index, &best).unwrap_or_else(|| ANOTHER_RUN.to_string());
        return Err(CalibrationError::NotSeen { name: name(index), run });
    }
    // Numbers that were taken and are not told go back to what the base says.
    let (slopes, weights) = loop {
        let slopes: BTreeMap<usize, Vec<f64>> =
            moving.iter().map(|index| (*index, search.slope(&best, *index))).collect();
        let weights = weights(search, &best);
        let vague = free.iter().copied().find(|index| {
            let others: Vec<&Vec<f64>> =
                free.iter().filter(|other| *other != index).map(|other| &slopes[other]).collect();
            let (_, left) = nearest(&others, &slopes[index], &weights);
            // What a data sheet has is so, but where it is clearly less.
            let Candidate { number, is_asked, .. } = &candidates[*index];
            let is_of_sheet = number.low.is_none() && !is_asked;
            let is_sheet = is_of_sheet && (best.at[*index] - logarithm(number.value)).abs() < ALONE;
            is_sheet || 1.0 / left.max(1e-9) > TOLD
        });
        let Some(index) = vague else { break (slopes, weights) };
        if candidates[index].is_asked {
            let others: Vec<usize> = free.iter().copied().filter(|other| *other != index).collect();
            return Err(refusal(index, &others, &slopes, &weights, candidates, (&best, menu)));
        }
        free.retain(|other| *other != index);
        let mut back = best.at.clone();
        back[index] = logarithm(candidates[index].number.value);
        match search.found(back) {
            Some(found) => best = search.descend(found, &free),
            None => break (slopes, weights),
        }
    };
    // Numbers that were not needed but that the points hold where the base has them are told too.
    let (mut slopes, mut weights) = (slopes, weights);
    if candidates.iter().all(|candidate| !candidate.is_asked) {
        let is_open = |index: &usize| candidates[*index].number.low.is_some();
        let rest: Vec<usize> =
            moving.iter().copied().filter(|index| !free.contains(index) && is_open(index)).collect();
        for index in rest {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            let own = product(&slopes[&index], &slopes[&index], &weights).sqrt();
            let (_, left) = nearest(&columns, &slopes[&index], &weights);
            if left > OWN_SHARE * own && 1.0 / left.max(1e-9) < TOLD / 2.0 {
                free.push(index);
                free.sort_unstable();
            }
        }
        best = search.descend(best, &free);
        let there = coarse.found(best.at.clone()).map(|best| elsewhere(coarse, best, &free, progress));
        let there = there.filter(|there| there.at != best.at).and_then(|there| search.found(there.at));
        if let Some(there) =
            there.map(|there| search.descend(there, &free)).filter(|there| there.cost < best.cost)
        {
            best = there;
        }
        slopes = moving.iter().map(|index| (*index, search.slope(&best, *index))).collect();
        weights = self::weights(search, &best);
    }
    let mut kept = Vec::new();
    let mut of_kept: Vec<Vec<(usize, f64)>> = vec![Vec::new(); free.len()];
    progress.phase("kept numbers and the runs that would tell them", (candidates.len() - free.len()) as u64);
    for (index, candidate) in candidates.iter().enumerate().filter(|(index, _)| !free.contains(index)) {
        progress.step();
        if candidate.is_size {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            let factors = nearest(&columns, &slope_of_size(search, &best, index), &weights).0;
            for (of_one, factor) in of_kept.iter_mut().zip(&factors) {
                of_one.push((index, (factor * candidate.deviation()).powi(2)));
            }
            continue;
        }
        let reason = match slopes.get(&index) {
            None => KeptReason::NotSeen,
            Some(slope) => {
                let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
                let own = product(slope, slope, &weights).sqrt();
                let (factors, left) = nearest(&columns, slope, &weights);
                // If it is off, the fitted ones stand for it.
                for (of_one, factor) in of_kept.iter_mut().zip(&factors) {
                    of_one.push((index, (factor * candidate.deviation()).powi(2)));
                }
                if own * (search.high[index] - search.low[index]) < 1.0 {
                    KeptReason::NotSeen
                } else if left > OWN_SHARE * own {
                    KeptReason::NotNeeded
                } else {
                    let mut alike: Vec<(usize, f64)> =
                        free.iter().copied().zip(factors.iter().map(|factor| factor.abs())).collect();
                    alike.sort_by(|one, other| other.1.total_cmp(&one.1));
                    let most = alike.first().map_or(0.0, |(_, factor)| *factor);
                    let alike = alike.into_iter().filter(|(_, factor)| *factor > 0.2 * most);
                    KeptReason::NotToldApart(alike.map(|(other, _)| name(other)).collect())
                }
            }
        };
        // What no run of a path feels is nobody's concern.
        let factors = slopes.get(&index).map_or_else(Vec::new, |slope| {
            let columns: Vec<&Vec<f64>> = free.iter().map(|other| &slopes[other]).collect();
            nearest(&columns, slope, &weights).0
        });
        let run = match reason {
            KeptReason::NotSeen => menu.feeling(index, &best),
            _ => menu.telling(index, &free, &factors, &best),
        };
        if reason == KeptReason::NotSeen && run.is_none() {
            continue;
        }
        kept.push((index, KeptNumber::of(&candidate.names[0], &candidate.number, reason, run)));
    }
    let covariance = covariance(search, &best, &free, &slopes, &weights, clusters);
    of_kept.iter_mut().for_each(|of_one| of_one.sort_by(|one, other| other.1.total_cmp(&one.1)));
    // Numbers that are asked for are held against each other alone.
    let mut replacements: Vec<Vec<Replacement>> = vec![Vec::new(); free.len()];
    let margin = LEAST_GAIN.max(GAIN * best.cost);
    if candidates.iter().all(|candidate| !candidate.is_asked) {
        let doubt = Doubt { search, coarse, best: &best, free: &free, moving, margin };
        progress.phase("fitted numbers that another may stand for", free.len() as u64);
        for (place, index) in free.iter().enumerate() {
            progress.step();
            let released = released(&candidates[*index]);
            if (released - best.at[*index]).abs() > ALONE {
                replacements[place] = doubt.replacements(*index, released);
            }
        }
    }
    let mut both = best.clone();
    for (index, own) in free.iter().zip(&replacements) {
        for (other, by) in own.iter().flat_map(|other| other.by.iter().map(move |by| (other, by))) {
            let Candidate { names, number, .. } = &candidates[*by];
            let place = kept.iter().position(|(other, _)| other == by).unwrap_or_else(|| {
                kept.push((*by, KeptNumber::of(&names[0], number, KeptReason::NotSeen, None)));
                kept.len() - 1
            });
            let there = rounded(number.value, other.at[*by]);
            kept[place].1.replaces(name(*index), there, stated(&candidates[*by]));
            // Ceilings may hold at once, and terms of a sum do not.
            let mut beside = both.at.clone();
            beside[*by] = other.at[*by];
            if let Some(beside) = search.found(beside).filter(|beside| beside.cost <= best.cost + margin) {
                kept[place].1.taken = there;
                both = beside;
            }
        }
    }
    kept.sort_by_key(|(index, _)| *index);
    let kept = kept.into_iter().map(|(_, kept)| kept).collect();
    Ok(Told { best, free, covariance, alike: of_kept, replacements, kept })
}

fn refusal(
    index: usize,
    others: &[usize],
    slopes: &BTreeMap<usize, Vec<f64>>,
    weights: &[f64],
    candidates: &[Candidate],
    (best, menu): (&Found, &Menu<'_>),
) -> CalibrationError {
    let name = candidates[index].names[0].clone();
    let (low, high) = bounds(&candidates[index]);
    let own = product(&slopes[&index], &slopes[&index], weights).sqrt();
    let columns: Vec<&Vec<f64>> = others.iter().map(|other| &slopes[other]).collect();
    let (factors, _) = nearest(&columns, &slopes[&index], weights);
    let is_unseen = own * (high - low) < 1.0 || others.is_empty();
    let run = if is_unseen { menu.feeling(index, best) } else { menu.telling(index, others, &factors, best) };
    let run = run.unwrap_or_else(|| ANOTHER_RUN.to_string());
    if is_unseen {
        return CalibrationError::NotSeen { name, run };
    }
    let most = factors.iter().map(|factor| factor.abs()).fold(0.0, f64::max);
    let alike = others.iter().zip(&factors).filter(|(_, factor)| factor.abs() > 0.2 * most);
    let from = alike.map(|(other, _)| format!("`{}`", candidates[*other].names[0])).collect();
    CalibrationError::NotToldApart { name, from, run }
}

/// A list of a run of the menu: what perftest runs by itself is a multiple of it.
const LIST: u64 = 25;

/// Runs that a user is likely to have the programs for.
struct Menu<'a> {
    words: Vec<String>,
    model: Runs<'a>,
    low: Vec<f64>,
    high: Vec<f64>,
}

impl<'a> Menu<'a> {
    /// Those that are not among the runs that there are.
    fn new(
        candidates: &'a [Candidate],
        base: &'a System,
        path: &'a str,
        there: &[MeasuredRun],
        loops: &Arc<KnownLoops>,
    ) -> Menu<'a> {
        let (mut words, mut runs) = (Vec::new(), Vec::new());
        let is_of_dma = there.iter().any(|run| matches!(run, MeasuredRun::Dma(_)));
        for run in dma_menu().into_iter().filter(|_| is_of_dma) {
            if !there.contains(&MeasuredRun::Dma(run.clone())) {
                words.push(run.to_string());
                runs.push(MeasuredRun::Dma(run));
            }
        }
        let there: Vec<&ToolRun> = there.iter().filter_map(MeasuredRun::queue_pairs).collect();
        for program in crate::run::PROGRAMS.iter().filter(|_| !is_of_dma) {
            // An atomic has one size.
            let is_atomic = program.verb == Verb::FetchAndAdd;
            let sizes: &[u64] = if is_atomic { &[8] } else { &[8, 4096, 1 << 20] };
            for size in sizes {
                let plain = program.run(Bytes::new(*size));
                let option = if is_atomic { String::new() } else { format!(" -s {size}") };
                let mut add = |options: &str, run: ToolRun| {
                    if !there.iter().any(|other| is_same_command(&run, other)) {
                        words.push(format!("{}{option}{options}", program.name));
                        runs.push(MeasuredRun::QueuePairs(run));
                    }
                };
                add("", plain.clone());
                if program.kind == RunKind::Bandwidth {
                    let length = Some(RunLength::Iterations(16 * program.iterations));
                    add(
                        &format!(" -q 16 -l {LIST}"),
                        ToolRun { queue_pairs: 16, length, ..plain.clone().listed(LIST) },
                    );
                    add(" -t 1", ToolRun { tx_depth: 1, cq_moderation: 1, ..plain });
                }
            }
        }
        let model = Runs { base, path, runs, candidates, loops: loops.clone(), known: RefCell::default() };
        let (low, high) = candidates.iter().map(bounds).unzip();
        Menu { words, model, low, high }
    }

    /// The run that moves least as `factors` of the fitted numbers say that it would with a number; nothing where all do.
    fn telling(&self, index: usize, free: &[usize], factors: &[f64], best: &Found) -> Option<String> {
        let search = Search { model: &self.model, low: &self.low, high: &self.high, points: &[] };
        let found = search.found(best.at.clone())?;
        let mut apart = search.slope(&found, index);
        for (other, factor) in free.iter().zip(factors) {
            let slope = search.slope(&found, *other);
            apart.iter_mut().zip(slope).for_each(|(apart, slope)| *apart -= factor * slope);
        }
        self.farthest(&apart)
    }

    /// The run that moves most where a number goes to either of its bounds; nothing where all stay.
    fn feeling(&self, index: usize, best: &Found) -> Option<String> {
        let here = self.model.predict(&best.at)?;
        let mut most = vec![0.0f64; here.len()];
        for end in [self.low[index], self.high[index]] {
            let mut to = best.at.clone();
            to[index] = end;
            let Some(there) = self.model.predict(&to) else { continue };
            for ((most, there), here) in most.iter_mut().zip(there).zip(&here) {
                *most = most.max((there - here).abs());
            }
        }
        self.farthest(&most)
    }

    /// The run that differs most between what was found and another place; nothing where all are alike there.
    fn between(&self, best: &Found, other: &[f64]) -> Option<String> {
        let (one, other) = (self.model.predict(&best.at)?, self.model.predict(other)?);
        self.farthest(&one.iter().zip(other).map(|(one, other)| one - other).collect::<Vec<_>>())
    }

    fn farthest(&self, apart: &[f64]) -> Option<String> {
        let places = 0..self.words.len();
        let best = places
            .max_by(|one, other| apart[*one].abs().total_cmp(&apart[*other].abs()).then(other.cmp(one)))?;
        (apart[best].abs() > 0.02).then(|| self.words[best].clone())
    }
}

/// Runs of a device's DMA that tell of it: each test, short and long, of what caches hold and of what they do not.
fn dma_menu() -> Vec<DmaRun> {
    const OPERATIONS: [(RunKind, DmaOperation); 5] = [
        (RunKind::Latency, DmaOperation::Read),
        (RunKind::Latency, DmaOperation::WriteThenRead),
        (RunKind::Bandwidth, DmaOperation::Read),
        (RunKind::Bandwidth, DmaOperation::Write),
        (RunKind::Bandwidth, DmaOperation::ReadWrite),
    ];
    let mut all = Vec::new();
    for (kind, operation) in OPERATIONS {
        for payload in [64, 256, 2048].map(Bytes::new) {
            for is_warm in [true, false] {
                all.push(DmaRun { kind, operation, payload, window: Bytes::new(8192), is_warm });
            }
        }
    }
    all
}

/// Whether a run of the menu is one that was taken: how long it went, and what a machine sets by itself, may differ.
fn is_same_command(run: &ToolRun, taken: &ToolRun) -> bool {
    let is_inline = |run: &ToolRun| run.payload <= run.inline;
    let key = |run: &ToolRun| {
        (run.kind, run.verb, run.payload, run.queue_pairs, run.tx_depth, run.post_list, run.directions)
    };
    key(run) == key(taken) && is_inline(run) == is_inline(taken)
}

/// How the fitted numbers vary together: by the errors that are there, of which those of one prediction count together.
fn covariance(
    search: &Search<'_>,
    best: &Found,
    free: &[usize],
    slopes: &BTreeMap<usize, Vec<f64>>,
    weights: &[f64],
    clusters: &[usize],
) -> Vec<Vec<f64>> {
    let count = free.len();
    let normal: Vec<Vec<f64>> = free
        .iter()
        .map(|row| free.iter().map(|column| product(&slopes[row], &slopes[column], weights)).collect())
        .collect();
    // Where they cannot be solved for, the points tell none: each may be several times what it is.
    let Some(inverse) = inverse(normal) else {
        let one = |row: usize, column: usize| if row == column { 1.0 } else { 0.0 };
        return (0..count).map(|row| (0..count).map(|column| one(row, column)).collect()).collect();
    };
    // Errors of one prediction go together, as those of a model do, and so do those of a cluster.
    let mut of_places: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    let mut of_clusters: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for ((place, measured), cluster) in search.points.iter().zip(clusters) {
        let error = best.predicted[*place] - measured;
        let score = weight(error) * error / (SCALE * SCALE);
        for (column, index) in free.iter().enumerate() {
            let own = score * slopes[index][*place];
            of_places.entry(*place).or_insert_with(|| vec![0.0; count])[column] += own;
            of_clusters.entry(*cluster).or_insert_with(|| vec![0.0; count])[column] += own;
        }
    }
    let spread = |groups: &BTreeMap<usize, Vec<f64>>| -> Vec<Vec<f64>> {
        let few = groups.len() as f64 / (groups.len() as f64 - 1.0).max(1.0);
        let of =
            |row: usize, column: usize| few * groups.values().map(|sum| sum[row] * sum[column]).sum::<f64>();
        (0..count).map(|row| (0..count).map(|column| of(row, column)).collect()).collect()
    };
    let (middle_places, middle_clusters) = (spread(&of_places), spread(&of_clusters));
    let wider = student(1, of_clusters.len()).powi(2);
    let middle: Vec<Vec<f64>> = (0..count)
        .map(|row| {
            (0..count)
                .map(|column| middle_places[row][column] + wider * middle_clusters[row][column])
                .collect()
        })
        .collect();
    let times = |one: &[Vec<f64>], other: &[Vec<f64>]| -> Vec<Vec<f64>> {
        (0..count)
            .map(|row| {
                (0..count).map(|column| (0..count).map(|at| one[row][at] * other[at][column]).sum()).collect()
            })
            .collect()
    };
    times(&times(&inverse, &middle), &inverse)
}

/// How predictions move with a size on its way to the farther of the ends of its interval that make a system: between them
/// may be none.
fn slope_of_size(search: &Search<'_>, from: &Found, index: usize) -> Vec<f64> {
    let ends = [search.low[index], search.high[index]].into_iter().filter_map(|end| {
        let way = end - from.at[index];
        let mut to = from.at.clone();
        to[index] = end;
        (way != 0.0).then(|| search.model.predict(&to)).flatten().map(|there| (way, there))
    });
    let Some((way, there)) = ends.max_by(|(one, _), (other, _)| one.abs().total_cmp(&other.abs())) else {
        return vec![0.0; from.predicted.len()];
    };
    there.iter().zip(&from.predicted).map(|(there, here)| (there - here) / way).collect()
}

/// A fitted number with what the points leave open of it.
fn doubted(
    mut found: LearntNumber,
    candidate: &Candidate,
    candidates: &[Candidate],
    replacements: &[Replacement],
    (index, best, menu): (&usize, &Found, &Menu<'_>),
) -> LearntNumber {
    if let Some(first) = replacements.first() {
        let elsewhere = rounded(candidate.number.value, first.at[*index]);
        (found.low, found.high) = over((found.low, found.high), (elsewhere, elsewhere));
        found.is_told = false;
        let names = |other: &Replacement| -> Vec<String> {
            other.by.iter().map(|by| candidates[*by].names[0].clone()).collect()
        };
        let by = replacements.iter().map(names).filter(|by| !by.is_empty()).collect();
        found.doubt = Some(LearntDoubt::Replaceable { by, run: menu.between(best, &first.at) });
    }
    let stated = stated(candidate);
    // An end is no wall: as near as this is at it.
    let is_within = (0.99 * stated.0.base()..=1.01 * stated.1.base()).contains(&found.value.base());
    if candidate.number.low.is_some() && !found.alike.is_empty() && !is_within {
        (found.low, found.high) = over((found.low, found.high), stated);
        found.doubt = Some(LearntDoubt::BeyondBase);
    }
    if found.at_bound && found.doubt.is_none() {
        found.is_told = false;
        found.doubt = Some(LearntDoubt::AtBound);
    }
    found
}

/// What kept numbers add to the variance of a fitted one, each by its place.
type OfKept = Vec<(usize, f64)>;

fn learnt(
    candidates: &[Candidate],
    (best, menu): (&Found, &Menu<'_>),
    free: &[usize],
    (covariance, of_kept, replacements): (&[Vec<f64>], &[OfKept], &[Vec<Replacement>]),
    (low, high): (&[f64], &[f64]),
) -> Vec<LearntNumber> {
    free.iter()
        .enumerate()
        .map(|(place, index)| {
            let candidate = &candidates[*index];
            let base = candidate.number.value;
            let at = best.at[*index];
            let own = covariance[place][place].max(0.0);
            let more: f64 = of_kept[place].iter().map(|(_, variance)| variance).sum();
            let deviation = (own + more).sqrt();
            let side = SIDE_90 * deviation;
            let is_told = side <= ALONE;
            let weighty =
                of_kept[place].iter().filter(|(_, variance)| !is_told && *variance > 0.1 * (own + more));
            let found = LearntNumber {
                name: candidate.names[0].clone(),
                also: candidate.names[1..].to_vec(),
                file: candidate.number.file.clone(),
                key: candidate.number.key.clone(),
                base,
                value: rounded(base, at),
                low: rounded(base, at - side),
                high: rounded(base, at + side),
                at_bound: at < low[*index] + 1e-6 || at > high[*index] - 1e-6,
                is_told,
                alike: weighty.map(|(other, _)| candidates[*other].names[0].clone()).collect(),
                doubt: None,
            };
            doubted(found, candidate, candidates, &replacements[place], (index, best, menu))
        })
        .collect()
}

/// What runs that were repeated differ by.
fn repeated(points: &[MeasuredPoint], places: &[usize]) -> ErrorSummary {
    let mut differences = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let others = points[..index].iter().enumerate().filter(|(other, _)| places[*other] == places[index]);
        differences.extend(others.map(|(_, other)| (point.measured / other.measured).ln().abs().exp() - 1.0));
    }
    ErrorSummary::of(&differences)
}

/// Which of two runs is faster, where they differ in what caches hold alone. What the fit takes for scatter is no difference.
fn warm_against_cold(points: &[MeasuredPoint], answer: &[PredictedPoint]) -> Directions {
    let direction = |warm: f64, cold: f64| match (warm / cold).ln() {
        apart if apart.abs() <= SCALE => 0,
        apart if apart > 0.0 => 1,
        _ => -1,
    };
    let mut found = Directions::default();
    for (cold, point) in points.iter().enumerate() {
        let Some(run) = point.run.dma().filter(|run| !run.is_warm) else { continue };
        let same = MeasuredRun::Dma(DmaRun { is_warm: true, ..run.clone() });
        let own = |warm: &usize| points[*warm].run == same && points[*warm].file == point.file;
        for warm in (0..points.len()).filter(own) {
            let measured = direction(points[warm].measured, point.measured);
            let predicted = direction(answer[warm].predicted, answer[cold].predicted);
            found.pairs += 1;
            found.right += usize::from(measured == predicted);
        }
    }
    found
}

/// A model of two numbers: what it says of a size.
type Simple = fn(&[f64], RunKind, f64) -> f64;

/// Rate and bandwidth, the lesser of the two; of a latency a least one and a bandwidth, the greater time.
fn roofline(numbers: &[f64], kind: RunKind, size: f64) -> f64 {
    let bytes = numbers[1] - size.max(1.0).ln();
    match kind {
        RunKind::Bandwidth => numbers[0].min(bytes),
        RunKind::Latency => (-numbers[0]).max(-bytes),
    }
}

/// A time that each message takes and one that each byte does.
fn straight_line(numbers: &[f64], kind: RunKind, size: f64) -> f64 {
    let time = ((-numbers[0]).exp() + size * (-numbers[1]).exp()).ln();
    match kind {
        RunKind::Bandwidth => -time,
        RunKind::Latency => time,
    }
}

/// What a model of two numbers for each kind of test says of every point, fitted to those that are not held out.
fn simple_fit(simple: Simple, points: &[MeasuredPoint], held: &[bool]) -> Vec<f64> {
    let mut all = vec![f64::NAN; points.len()];
    for kind in [RunKind::Bandwidth, RunKind::Latency] {
        let own: Vec<usize> = (0..points.len()).filter(|index| points[*index].run.kind() == kind).collect();
        let size = |index: usize| points[index].run.payload().get() as f64;
        let model = |at: &[f64]| -> Option<Vec<f64>> {
            Some(own.iter().map(|index| simple(at, kind, size(*index))).collect())
        };
        let targets: Vec<(usize, f64)> = own
            .iter()
            .enumerate()
            .filter(|(_, index)| !held[**index])
            .map(|(place, index)| (place, points[*index].measured.ln()))
            .collect();
        if targets.is_empty() {
            continue;
        }
        let (low, high) = ([0.0, 0.0], [40.0, 40.0]);
        let search = Search { model: &model, low: &low, high: &high, points: &targets };
        // From several places: the numbers bind apart.
        let starts = (4..=28)
            .step_by(4)
            .flat_map(|rate| (8..=32).step_by(4).map(move |bytes| vec![f64::from(rate), f64::from(bytes)]));
        let found = starts.filter_map(|start| Some(search.descend(search.found(start)?, &[0, 1])));
        let Some(best) = found.min_by(|one, other| one.cost.total_cmp(&other.cost)) else { continue };
        for (place, index) in own.iter().enumerate() {
            all[*index] = best.predicted[place].exp();
        }
    }
    all
}

fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len => {
            let at = share * (len - 1) as f64;
            let (below, rest) = (at.floor() as usize, at.fract());
            let above = (below + 1).min(len - 1);
            sorted[below] * (1.0 - rest) + sorted[above] * rest
        }
    }
}

impl ErrorSummary {
    /// Of errors as shares, without their signs.
    pub fn of(errors: &[f64]) -> ErrorSummary {
        ErrorSummary {
            points: errors.len(),
            median: quantile(errors, 0.5),
            p90: quantile(errors, 0.9),
            greatest: errors.iter().copied().fold(0.0, f64::max),
        }
    }
}

/// The programs that a run of a name means, for whoever prints one.
pub fn program_of(run: &MeasuredRun) -> Option<&'static str> {
    let run = match run {
        MeasuredRun::QueuePairs(run) => run,
        MeasuredRun::Dma(run) => return Some(run.program()),
    };
    let is_own = |program: &&ToolProgram| program.verb == run.verb && program.kind == run.kind;
    crate::run::PROGRAMS.iter().find(is_own).map(|program| program.name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of four errors the next is within the greatest with a chance of four in five, and of three nothing is said.
    #[test]
    fn few_errors_say_what_the_next_is_within() {
        assert_eq!(next_within(0.8, &[0.3, 0.1, 0.2]), None);
        assert_eq!(next_within(0.8, &[0.3, 0.1, 0.4, 0.2]), Some(0.4));
        let many: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(next_within(0.8, &many), Some(16.0));
    }

    /// The menu has atomics of their one size, and no run that is there already, however long it went.
    #[test]
    fn runs_that_are_there_are_not_on_the_menu() {
        let request = offpath_profile::SystemRequest { device: "connectx7", ..Default::default() };
        let system = offpath_profile::Library::builtin().load(&request).expect("the shipped card loads");
        let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
        let mut taken = program.run(Bytes::new(8));
        (taken.length, taken.mtu, taken.outstanding_reads) = (None, Some(Bytes::new(4096)), Some(16));
        let all = Menu::new(&[], &system, "client-host", &[], &Arc::default()).words;
        let rest =
            Menu::new(&[], &system, "client-host", &[MeasuredRun::QueuePairs(taken)], &Arc::default()).words;
        let gone: Vec<&String> = all.iter().filter(|word| !rest.contains(word)).collect();
        assert_eq!(gone, ["ib_read_bw -s 8"]);
        let atomics: Vec<&String> = all.iter().filter(|word| word.starts_with("ib_atomic")).collect();
        assert_eq!(
            atomics,
            ["ib_atomic_bw", "ib_atomic_bw -q 16 -l 25", "ib_atomic_bw -t 1", "ib_atomic_lat"]
        );
    }

    /// A search from many places looks at every payload of few queue pairs, and of many at the ends at least.
    #[test]
    fn what_is_cheap_to_follow_is_looked_at_whole() {
        let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
        let mut runs: Vec<MeasuredRun> = Vec::new();
        for queue_pairs in [1, 8, 32, 16_384] {
            let of = |power: u32| {
                MeasuredRun::QueuePairs(ToolRun { queue_pairs, ..program.run(Bytes::new(1 << power)) })
            };
            runs.extend((1..=12).map(of));
        }
        runs.sort();
        let seen: Vec<usize> = (0..runs.len()).collect();
        let few = spread_over(&seen, &runs);
        let payloads = |queue_pairs: u64| -> Vec<u64> {
            let own = few.iter().filter_map(|place| runs[*place].queue_pairs());
            let own = own.filter(|run| run.queue_pairs == queue_pairs);
            let mut payloads: Vec<u64> = own.map(|run| run.payload.get()).collect();
            payloads.sort_unstable();
            payloads
        };
        assert_eq!((payloads(1).len(), payloads(8).len()), (12, 12));
        for many in [32, 16_384] {
            let own = payloads(many);
            assert!((LEAST_SCANNED..12).contains(&own.len()), "{own:?}");
            assert_eq!((own[0], own[own.len() - 1]), (2, 4096));
        }
    }
}
