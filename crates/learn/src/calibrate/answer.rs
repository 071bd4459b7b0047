//! What a calibration answers, and why one is refused.

use super::candidates::Candidate;
use super::errors::{quantile, student};
use crate::expect::ExpectError;
use crate::points::LogDoubt;
use crate::run::{MeasuredRun, ToolProgram};
use offpath_profile::{LearntErrors, Number, Provenance};
use offpath_quantity::Quantity;

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
    /// The points do not tell it to 5%, and leave it as much room as the base does.
    Untold,
    /// It stands for others and lies where the base's interval does not reach.
    BeyondBase,
    /// The points tell it, and their logs say that figures of theirs are no measurement of one card.
    DoubtedLogs,
    /// The model does not describe the card, so that nothing that makes its points fit best is what the card has.
    NotDescribed,
    /// The points fit as well where it holds nothing back, within what the base allows.
    Replaceable {
        /// Numbers that stayed and that together make them fit in its place, a list for each way; none where nothing has to.
        by: Vec<Vec<String>>,
        /// A run that would tell it from the first way, where one of those that were tried does.
        run: Option<String>,
        /// Whether the machine says of itself what tells it from the first way: the rate of a link or of a port.
        machine_tells: bool,
    },
}

/// The interval that reaches over both.
pub(super) fn over(one: (Quantity, Quantity), other: (Quantity, Quantity)) -> (Quantity, Quantity) {
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
    /// It was measured of the machine, the fit was free to move it, and the points hold it to 5% where it is.
    Confirmed,
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
    /// Where the points would be missed at an end of what the base allows: what they leave of that.
    pub held: Option<(Quantity, Quantity)>,
    /// How well the base knows it.
    pub provenance: Provenance,
    /// Why.
    pub reason: KeptReason,
    /// A run that would tell it, where one of those that were tried does.
    pub run: Option<String>,
    /// Whether the machine says it of itself, and the base does not have it from there.
    pub machine_tells: bool,
}

impl KeptNumber {
    pub(super) fn of(candidate: &Candidate, reason: KeptReason, run: Option<String>) -> KeptNumber {
        let machine_tells = candidate.machine_tells();
        KeptNumber { machine_tells, ..KeptNumber::named(&candidate.names[0], &candidate.number, reason, run) }
    }

    pub(super) fn named(name: &str, number: &Number, reason: KeptReason, run: Option<String>) -> KeptNumber {
        let Number { value, file, key, provenance, .. } = number;
        KeptNumber {
            name: name.to_string(),
            file: file.clone(),
            key: key.clone(),
            value: *value,
            taken: *value,
            replacing: None,
            held: None,
            provenance: *provenance,
            reason,
            run,
            machine_tells: false,
        }
    }

    /// The points hold it within these ends.
    pub(super) fn hold(&mut self, ends: (Quantity, Quantity)) {
        // What the card takes it to be is none that they miss.
        let ends = over(ends, (self.taken, self.taken));
        *(if self.replacing.is_some() { &mut self.replacing } else { &mut self.held }) = Some(ends);
    }

    /// It makes the points fit in place of a fitted number, with this value.
    pub(super) fn replaces(&mut self, fitted: String, value: Quantity, stated: (Quantity, Quantity)) {
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

impl PredictedPoint {
    /// Whether a figure lies within its 80% interval.
    pub fn holds(&self, measured: f64) -> bool {
        (self.low_80..=self.high_80).contains(&measured)
    }
}

/// Points, and how many of them lie within their 80% intervals.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CoveredPoints {
    /// How many points.
    pub points: usize,
    /// How many of them lie within.
    pub within: usize,
}

/// Pairs of runs, and of how many it is said which is faster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RunPairs {
    /// How many pairs.
    pub pairs: usize,
    /// Of how many the prediction has the same one faster, or neither where neither is.
    pub right: usize,
    /// Of how many a rule without a model does: what reads is faster warm, what writes is as fast.
    pub right_by_rule: usize,
}

/// Pairs of a warm and a cold run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Directions {
    /// Those that are measured to differ.
    pub apart: RunPairs,
    /// Those that are not: a prediction misses them where it has one of both faster.
    pub alike: RunPairs,
}

/// The chances of which a card says within what the next error is.
pub(super) const SHARES: [f64; 4] = [0.5, 0.8, 0.9, 1.0];

/// Errors that a card keeps, and how far they are widened for what they are known of.
#[derive(Clone, Debug, PartialEq)]
pub struct WidenedErrors {
    /// What the card has.
    pub errors: LearntErrors,
    /// The clusters that they are of: logs, or of a device's DMA series.
    pub clusters: usize,
    /// How many times as far they reach as those of points without their cluster, since these are few.
    pub widened: f64,
    /// For each chance what points without their run and without their cluster are within.
    seen: [[f64; 2]; 4],
}

impl WidenedErrors {
    /// What the fit without a cluster is off by itself is in its error, so that a new one adds nothing to what few tell.
    pub(super) fn new(errors: LearntErrors, seen: [[f64; 2]; 4], clusters: usize) -> WidenedErrors {
        let widened = student(0, clusters);
        let mut own = WidenedErrors { errors, clusters, widened, seen };
        own.reach(|_| f64::INFINITY);
        own
    }

    /// Takes errors that are farther for few clusters alone to be no farther than others err with a chance, by which they would be
    /// widened if nothing had been learnt. What was seen stays.
    pub fn reach(&mut self, others_within: impl Fn(f64) -> f64) {
        let mut place = 0;
        let [half, eight, nine, all] = self.seen.map(|[of_runs, of_clusters]| {
            let others = others_within(SHARES[place]);
            place += 1;
            of_runs.max(of_clusters).max((self.widened * of_clusters).min(others))
        });
        (self.errors.half_within, self.errors.eight_of_ten_within) = (half, eight);
        // No greater share of the errors is within less.
        self.errors.eight_of_ten_within = self.errors.eight_of_ten_within.max(half);
        self.errors.nine_of_ten_within = nine.max(self.errors.eight_of_ten_within);
        self.errors.all_within = all.max(self.errors.nine_of_ten_within);
    }
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
    /// By what share two predictions of a run have to differ for the run to be named as one that tells.
    pub telling_difference: f64,
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
    /// The same of those whose series, runs that differ in their payload alone, is fitted at no size.
    pub covered_elsewhere: CoveredPoints,
    /// What the logs of fitted points say that leaves the numbers in doubt, and what they state differently from one another.
    pub log_doubts: Vec<LogDoubt>,
    /// Whether the model describes the card: where it does not, no number is taken to be measured.
    pub is_described: bool,
    /// Runs of a device's DMA of what caches hold against the same of what they do not; no pairs where no log has both.
    pub warm_against_cold: Directions,
    /// What a prediction of a run that is fitted nowhere is off by beyond what the numbers leave open, for each kind of figure
    /// of which the fitted points tell: no held-out point is in it.
    pub learnt_errors: Vec<WidenedErrors>,
}

/// From which median error on a card that a roofline describes twice as well is said to be described by the roofline alone.
const FAR_OFF: f64 = 0.05;

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

    /// Whether a model that errs so describes nothing that a roofline does not describe twice as well.
    pub(super) fn is_worse_than(&self, roofline: &ErrorSummary) -> bool {
        self.points > 0 && self.median > FAR_OFF && self.median > 2.0 * roofline.median
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
