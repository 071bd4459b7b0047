//! Fits numbers of the profiles to the rows of role `fit`.
//!
//! Every claim of a row is a gauge: a value of a sweep, what it aims at, and the interval in which
//! the row counts as met. The sum of squared residuals, in units of the rows' tolerances, is minimised
//! under the bounds of the [`Specification`] by steps of a quadratic program inside a trust region,
//! from several seeded starts; then it is rounded.

use crate::bench::{Bench, Change, ExperimentError, Measurement, SweepPoint};
use crate::identify;
use crate::judge::{allowed, judge, plain};
use crate::reproduce::open_mechanisms;
use crate::row::{Claim, Row, RowRole};
use crate::specification::{End, NumberRef, Parameter, Specification};
use offpath_capacity::quadratic::{Limit, minimise};
use offpath_profile::Library;
use offpath_twin::Seed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};

/// What the fit found.
#[derive(Clone, Debug)]
pub struct Fitted {
    /// The free parameters, as in the specification.
    pub parameters: Vec<FittedParameter>,
    /// The rows that were read.
    pub rows: Vec<FittedRow>,
    /// Rows that enter through a derived row alone.
    pub through: Vec<(String, String)>,
    /// Ends of rows that no parameter reaches, with the reason.
    pub set_aside: Vec<(String, String)>,
    /// How many starts there were.
    pub starts: usize,
    /// How many of them end at the minimum that was kept.
    pub same_minimum: usize,
    /// Sum of the squared residuals at the rounded result.
    pub cost: f64,
    /// Median error of rows that were left out of the fit and whose parameters stayed identified, as a
    /// share; `None` where no row was left out.
    pub left_out_median: Option<f64>,
}

/// A free parameter with what the rows leave of it, in base units (ps, B, bit/s, 1/s).
#[derive(Clone, Debug)]
pub struct FittedParameter {
    /// What it is.
    pub parameter: Parameter,
    /// The fitted value.
    pub value: f64,
    /// Where every row that is met stays met while the parameter moves alone. Profiles hold this
    /// interval, since whoever reads it moves one number at a time.
    pub alone: ParameterInterval,
    /// The same with the other parameters free to follow within their bounds: what the rows say about
    /// this parameter by itself.
    pub free: ParameterInterval,
}

impl FittedParameter {
    /// Whether rows hold an end of it. One that moves from bound to bound of the specification with every row that is
    /// met still met is assumed, whichever of its values the rows prefer.
    pub fn is_identified(&self) -> bool {
        let written = |base: f64| self.parameter.written(base);
        written(self.alone.low) != written(self.parameter.low)
            || written(self.alone.high) != written(self.parameter.high)
    }
}

/// What the rows leave of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterInterval {
    /// The least value.
    pub low: f64,
    /// The greatest value.
    pub high: f64,
    /// The rows that hold the two ends.
    pub rows: Vec<String>,
    /// The parameters whose bounds in the specification hold them: assumption, and no evidence.
    pub bounded_by: Vec<String>,
}

/// A row that was read.
#[derive(Clone, Debug)]
pub struct FittedRow {
    /// The row.
    pub row: Row,
    /// The prediction that decides.
    pub predicted: f64,
    /// How far off, as a share.
    pub error: f64,
    /// Whether it is within its tolerance.
    pub within: bool,
    /// The parameters that move it.
    pub moved_by: Vec<String>,
    /// What becomes of it when it is left out.
    pub left_out: LeftOut,
}

/// What becomes of a row when it and those alike are left out of the fit.
#[derive(Clone, Debug, PartialEq)]
pub enum LeftOut {
    /// It was not left out.
    NotAsked,
    /// No free parameter moves it: what it says stands in the profile as measured.
    Taken,
    /// It alone identifies these parameters.
    Alone(Vec<String>),
    /// The others predict it.
    Predicted {
        /// The prediction.
        predicted: f64,
        /// How far off, as a share.
        error: f64,
    },
}

/// How much work the fit does.
#[derive(Clone, Copy, Debug)]
pub struct Effort {
    /// Threads.
    pub threads: usize,
    /// Starts; the first begins at the priors.
    pub starts: usize,
    /// Whether rows are left out one at a time.
    pub leave_one_out: bool,
}

/// Why there is no fit.
#[derive(Debug, thiserror::Error)]
pub enum FitError {
    /// An experiment is refused.
    #[error(transparent)]
    Experiment(#[from] ExperimentError),
    /// The specification names what is not there.
    #[error("the specification {0}")]
    Specification(String),
    /// The solver of a step failed.
    #[error("{0}")]
    Solver(String),
}

/// Which value of a sweep counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    Greatest,
    Least,
    At(usize),
}

/// A value of a sweep, held to a claim. Changes in percent stand as the ratios that they mean.
#[derive(Clone, Debug)]
pub(crate) struct Gauge {
    pub row: usize,
    pub pick: Pick,
    /// Between these the residual is zero.
    aim: (f64, f64),
    /// A share of the aim that is a residual of 1.
    scale: f64,
    /// Zero where it only says when the row is met.
    weight: f64,
    /// Between these the row is met.
    pub met: (f64, f64),
}

impl Gauge {
    /// The place that decides.
    pub fn place(&self, values: &[f64]) -> usize {
        let places = 0..values.len();
        let by = |a: &usize, b: &usize| values[*a].total_cmp(&values[*b]);
        match self.pick {
            Pick::Greatest => places.max_by(by).unwrap_or(0),
            Pick::Least => places.min_by(by).unwrap_or(0),
            Pick::At(place) => place,
        }
    }

    /// The places that have to stay below the upper ends.
    pub fn held_above(&self, values: &[f64]) -> Vec<usize> {
        match self.pick {
            Pick::Greatest => (0..values.len()).collect(),
            _ => vec![self.place(values)],
        }
    }

    /// The places that have to stay above the lower ends.
    pub fn held_below(&self, values: &[f64]) -> Vec<usize> {
        match self.pick {
            Pick::Least => (0..values.len()).collect(),
            _ => vec![self.place(values)],
        }
    }

    pub fn is_met(&self, values: &[f64]) -> bool {
        let value = values[self.place(values)];
        (self.met.0..=self.met.1).contains(&value)
    }

    fn residual(&self, values: &[f64]) -> f64 {
        let value = values[self.place(values)];
        let beyond = if value > self.aim.1 {
            value / self.aim.1 - 1.0
        } else if value < self.aim.0 {
            value / self.aim.0 - 1.0
        } else {
            0.0
        };
        self.weight * beyond / self.scale
    }
}

/// The values of each row's sweep.
pub(crate) type Values = Vec<Vec<f64>>;

/// For each parameter the rows that it moves, with the slope at each place.
pub(crate) type Slopes = Vec<BTreeMap<usize, Vec<f64>>>;

/// Rows and parameters; a point is a vector of shares of the parameters' bounds.
pub(crate) struct Problem<'a> {
    pub rows: Vec<&'a Row>,
    pub parameters: &'a [Parameter],
    pub gauges: Vec<Gauge>,
    pull: f64,
    /// The rows that each parameter moves.
    pub moves: Vec<Vec<usize>>,
}

/// A point with its values.
#[derive(Clone, Debug)]
pub(crate) struct Best {
    pub at: Vec<f64>,
    pub values: Values,
    pub cost: f64,
}

/// The rows that a fit may read, and those that enter through a derived row alone, whatever role they have.
///
/// A derived row is named by those that it follows from, as in `W273/W275`. Of these the fit reads what follows alone, so
/// that one of them may still be predicted.
pub fn readable(rows: &[Row]) -> (Vec<&Row>, Vec<(String, String)>) {
    let fit: Vec<&Row> = rows.iter().filter(|row| row.role == RowRole::Fit).collect();
    let mut through = Vec::new();
    for derived in fit.iter().filter(|row| row.derived) {
        for part in derived.id.split('/') {
            let counts = |row: &Row| matches!(row.role, RowRole::Fit | RowRole::Predict);
            if rows.iter().any(|row| row.id == part && counts(row)) {
                through.push((part.to_string(), derived.id.clone()));
            }
        }
    }
    let enters = |row: &&Row| row.experiment.is_some() && !through.iter().any(|(part, _)| *part == row.id);
    (fit.iter().copied().filter(enters).collect(), through)
}

/// The gauges of a row whose sweep has so many places.
fn gauges(index: usize, row: &Row, places: usize, weight: f64, set_aside: &[End]) -> Vec<Gauge> {
    let Some(claim) = row.published else { return Vec::new() };
    let share = allowed(row);
    let plain = |value: f64| plain(&row.unit, value);
    let exact = |pick: Pick, value: f64, weight: f64| {
        let value = plain(value);
        Gauge {
            row: index,
            pick,
            aim: (value, value),
            scale: share,
            weight,
            met: (value * (1.0 - share), value * (1.0 + share)),
        }
    };
    // A bound is kept by a hundredth, so that rounding cannot break it.
    let bound = |pick: Pick, low: f64, high: f64| Gauge {
        row: index,
        pick,
        aim: (low * 1.01, high / 1.01),
        scale: 0.01,
        weight,
        met: (low * (1.0 + 2.0 * share), high / (1.0 + 2.0 * share)),
    };
    let mut found = match claim {
        Claim::Is(value) | Claim::About(value) => {
            let each = weight / (places as f64).sqrt();
            (0..places).map(|place| exact(Pick::At(place), value, each)).collect()
        }
        Claim::Range(low, high) if places == 1 => {
            let (low, high) = (plain(low), plain(high));
            vec![Gauge {
                row: index,
                pick: Pick::At(0),
                aim: (low, high),
                scale: share,
                weight,
                met: (low * (1.0 - share), high * (1.0 + share)),
            }]
        }
        Claim::Range(low, high) => {
            let mut ends = Vec::new();
            if !set_aside.contains(&End::Low) {
                ends.push(exact(Pick::Least, low, weight));
            }
            if !set_aside.contains(&End::High) {
                ends.push(exact(Pick::Greatest, high, weight));
            }
            ends
        }
        Claim::UpTo(value) => vec![exact(Pick::Greatest, value, weight)],
        Claim::DownTo(value) => vec![exact(Pick::Least, value, weight)],
        Claim::AtMost(value) | Claim::Below(value) => vec![bound(Pick::Greatest, 0.0, plain(value))],
        Claim::AtLeast(value) | Claim::Above(value) => vec![bound(Pick::Least, plain(value), f64::INFINITY)],
    };
    if row.unit == "%" && !claim.is_bound() {
        // A change also has to have its sign and about its size, a range that a sweep fills at both ends.
        let (low, high) = claim.ends();
        let ends = match claim {
            Claim::Range(low, high) if places > 1 => vec![(Pick::Least, low), (Pick::Greatest, high)],
            _ => {
                let published = if low.abs() > high.abs() { low } else { high };
                vec![(if published > 0.0 { Pick::Greatest } else { Pick::Least }, published)]
            }
        };
        for (pick, published) in ends.into_iter().filter(|(_, published)| *published != 0.0) {
            let (half, twice) = (plain(published * 0.5), plain(published * 2.0));
            found.push(Gauge {
                row: index,
                pick,
                aim: (0.0, f64::INFINITY),
                scale: 1.0,
                weight: 0.0,
                met: (half.min(twice), half.max(twice)),
            });
        }
    }
    found
}

/// Whether two rows state nearly the same; each does so with itself.
pub(crate) fn are_alike(one: &Row, other: &Row) -> bool {
    one.id == other.id || one.alike.contains(&other.id) || other.alike.contains(&one.id)
}

/// Where a fit looks: the profiles with what is laid over them, on so many threads.
#[derive(Clone, Copy)]
pub(crate) struct Ground<'a> {
    library: &'a Library,
    overlays: &'a [String],
    threads: usize,
}

impl Ground<'_> {
    fn bench(&self) -> Bench {
        Bench::new(self.library.clone()).under(self.overlays.to_vec())
    }
}

/// Does `work` for every item, each thread with a bench of its own.
pub(crate) fn each<T: Sync, R: Send>(
    ground: Ground<'_>,
    items: &[T],
    work: impl Fn(&Bench, &T) -> Result<R, FitError> + Sync,
) -> Result<Vec<R>, FitError> {
    let next = AtomicUsize::new(0);
    let mut done: Vec<(usize, R)> = Vec::with_capacity(items.len());
    let parts: Vec<Result<Vec<(usize, R)>, FitError>> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..ground.threads.clamp(1, items.len().max(1)))
            .map(|_| {
                scope.spawn(|| {
                    let bench = ground.bench();
                    let mut done = Vec::new();
                    loop {
                        let index = next.fetch_add(1, Ordering::Relaxed);
                        let Some(item) = items.get(index) else { return Ok(done) };
                        done.push((index, work(&bench, item)?));
                    }
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    for part in parts {
        done.extend(part?);
    }
    done.sort_by_key(|(index, _)| *index);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

impl<'a> Problem<'a> {
    fn new(
        ground: Ground<'_>,
        rows: Vec<&'a Row>,
        specification: &'a Specification,
    ) -> Result<Problem<'a>, FitError> {
        let known: BTreeSet<&str> = rows.iter().map(|row| row.id.as_str()).collect();
        let named = specification
            .weights
            .iter()
            .map(|one| &one.row)
            .chain(specification.set_aside.iter().map(|one| &one.row));
        for row in named {
            if !known.contains(row.as_str()) {
                return Err(FitError::Specification(format!(
                    "names {row}, which is not a row that the fit may read"
                )));
            }
        }
        let mut problem = Problem {
            rows,
            parameters: &specification.parameters,
            gauges: Vec::new(),
            pull: specification.pull,
            moves: Vec::new(),
        };
        let bench = ground.bench();
        let start = problem.prior();
        let values = problem.values(&bench, &start)?;
        for (index, (row, values)) in problem.rows.iter().zip(&values).enumerate() {
            let weight =
                specification.weights.iter().find(|one| one.row == row.id).map_or(1.0, |one| one.weight);
            // Rows that state nearly the same count as one.
            let alike = problem.rows.iter().filter(|other| are_alike(row, other)).count();
            let weight = weight / (alike as f64).sqrt();
            let set_aside: Vec<End> =
                specification.set_aside.iter().filter(|one| one.row == row.id).map(|one| one.end).collect();
            problem.gauges.extend(gauges(index, row, values.len(), weight, &set_aside));
        }
        let indices: Vec<usize> = (0..problem.parameters.len()).collect();
        let other = problem.start(Seed::new(specification.seed).child("elsewhere"));
        problem.moves = each(ground, &indices, |bench, &index| {
            let mut moved = BTreeSet::new();
            for from in [&start, &other] {
                let own = problem.values(bench, from)?;
                for share in [0.02, 0.98] {
                    let mut to = from.clone();
                    to[index] = share;
                    let there = problem.values(bench, &to)?;
                    let differs = |row: &usize| {
                        own[*row].iter().zip(&there[*row]).any(|(a, b)| (a - b).abs() > 1e-9 * a.abs())
                    };
                    moved.extend((0..problem.rows.len()).filter(differs));
                }
            }
            Ok(moved.into_iter().collect())
        })?;
        if let Some(index) = problem.moves.iter().position(Vec::is_empty) {
            let name = problem.parameters[index].name();
            return Err(FitError::Specification(format!(
                "frees {name}, which moves no row of role `fit`; remove it and call the number `assumed`"
            )));
        }
        Ok(problem)
    }

    fn prior(&self) -> Vec<f64> {
        self.parameters.iter().map(|one| (one.prior - one.low) / (one.high - one.low)).collect()
    }

    fn start(&self, seed: Seed) -> Vec<f64> {
        let draw = |one: &Parameter| {
            (seed.child(&offpath_profile::first_name(&one.name())).value() >> 11) as f64 / (1u64 << 53) as f64
        };
        self.snapped(&self.parameters.iter().map(draw).collect::<Vec<_>>())
    }

    /// Parameters that are whole numbers, at whole numbers.
    fn snapped(&self, at: &[f64]) -> Vec<f64> {
        let snap = |(one, share): (&Parameter, &f64)| {
            if one.is_whole() {
                self.share(one, one.rounded(one.low + share * (one.high - one.low)))
            } else {
                *share
            }
        };
        self.parameters.iter().zip(at).map(snap).collect()
    }

    pub fn share(&self, one: &Parameter, base: f64) -> f64 {
        (base - one.low) / (one.high - one.low)
    }

    /// The parameters' values in base units.
    pub fn base(&self, at: &[f64]) -> Vec<f64> {
        self.parameters
            .iter()
            .zip(at)
            .map(|(one, share)| (one.low + share * (one.high - one.low)).round())
            .collect()
    }

    pub fn moved(&self, own: &Bench, at: &[f64]) -> Result<Bench, FitError> {
        let mut changes = Vec::new();
        for (one, base) in self.parameters.iter().zip(self.base(at)) {
            let value = one.quantity(base).ok_or_else(|| {
                FitError::Specification(format!("bounds {} beyond what can be written", one.name()))
            })?;
            for NumberRef { file, key } in std::iter::once(&one.place).chain(&one.also) {
                changes.push(Change { file: file.clone(), key: key.clone(), value });
            }
        }
        Ok(own.with(changes))
    }

    pub fn row_values(&self, bench: &Bench, row: usize) -> Result<Vec<f64>, FitError> {
        let outcome = self.outcome(bench, row)?;
        let unit = &self.rows[row].unit;
        Ok(outcome.points.iter().map(|point: &SweepPoint| plain(unit, point.value)).collect())
    }

    fn outcome(&self, bench: &Bench, row: usize) -> Result<Measurement, FitError> {
        let row = self.rows[row];
        let experiment = row.fitted().expect("rows without an experiment are not read");
        Ok(bench
            .run(experiment)
            .map_err(|error| ExperimentError::Refused(format!("row {}: {error}", row.id)))?)
    }

    /// The outcomes of some rows at a point, judged.
    pub fn judged(&self, own: &Bench, at: &[f64], rows: &[usize]) -> Result<Vec<crate::Verdict>, FitError> {
        let bench = self.moved(own, at)?;
        rows.iter()
            .map(|&row| {
                let outcome = self.outcome(&bench, row)?;
                judge(self.rows[row], &outcome).ok_or_else(|| {
                    FitError::Specification(format!("reads {}, which has no value", self.rows[row].id))
                })
            })
            .collect()
    }

    pub fn values(&self, own: &Bench, at: &[f64]) -> Result<Values, FitError> {
        let bench = self.moved(own, at)?;
        (0..self.rows.len()).map(|row| self.row_values(&bench, row)).collect()
    }

    pub fn cost(&self, values: &Values, at: &[f64], without: &BTreeSet<usize>) -> f64 {
        let rows = self.gauges.iter().filter(|gauge| !without.contains(&gauge.row));
        let misfit: f64 = rows.map(|gauge| gauge.residual(&values[gauge.row]).powi(2)).sum();
        let pulls = self
            .prior()
            .into_iter()
            .zip(at)
            .map(|(prior, at)| (self.stiffness(prior) * (at - prior)).powi(2));
        misfit + pulls.sum::<f64>()
    }

    fn stiffness(&self, prior: f64) -> f64 {
        self.pull / prior.max(1.0 - prior)
    }

    /// How every row's values move with every parameter's share.
    pub fn slopes(&self, own: &Bench, at: &[f64], values: &Values) -> Result<Slopes, FitError> {
        let mut slopes = Vec::with_capacity(self.parameters.len());
        for (index, one) in self.parameters.iter().enumerate() {
            let width = one.high - one.low;
            // Large enough that rounding to picoseconds does not show.
            let step = if one.is_whole() { 1.0 } else { (1e-3 * width).max(100.0) };
            let base = one.low + at[index] * width;
            let step = if base + step > one.high { -step } else { step };
            let mut to = at.to_vec();
            to[index] = self.share(one, base + step);
            let bench = self.moved(own, &to)?;
            let mut own = BTreeMap::new();
            for &row in &self.moves[index] {
                let there = self.row_values(&bench, row)?;
                let share = step / width;
                own.insert(row, there.iter().zip(&values[row]).map(|(a, b)| (a - b) / share).collect());
            }
            slopes.push(own);
        }
        Ok(slopes)
    }

    /// The rows whose residuals a parameter moves most: at least half as much as the first of them.
    pub fn most_moved(&self, values: &Values, slopes: &Slopes, parameter: usize) -> Vec<usize> {
        let mut moved: BTreeMap<usize, f64> = BTreeMap::new();
        for gauge in self.gauges.iter().filter(|gauge| gauge.weight > 0.0) {
            let Some(slopes) = slopes[parameter].get(&gauge.row) else { continue };
            let slope = gauge.weight * slopes[gauge.place(&values[gauge.row])] / (gauge.aim.1 * gauge.scale);
            *moved.entry(gauge.row).or_default() += slope * slope;
        }
        let most = moved.values().copied().fold(0.0, f64::max);
        moved.into_iter().filter(|(_, moved)| *moved > 0.25 * most).map(|(row, _)| row).collect()
    }

    /// The values after a step, as the slopes have them.
    fn predicted(&self, values: &Values, slopes: &Slopes, step: &[f64]) -> Values {
        let mut values = values.clone();
        for (slopes, step) in slopes.iter().zip(step) {
            for (row, slopes) in slopes {
                for (value, slope) in values[*row].iter_mut().zip(slopes) {
                    *value += slope * step;
                }
            }
        }
        values
    }

    /// The best step within `reach` of each share.
    #[allow(clippy::too_many_arguments)]
    fn step(
        &self,
        at: &[f64],
        values: &Values,
        slopes: &Slopes,
        reach: f64,
        fixed: &BTreeSet<usize>,
        without: &BTreeSet<usize>,
    ) -> Option<Vec<f64>> {
        let count = self.parameters.len();
        let mut curvature: Vec<f64> =
            self.prior().into_iter().map(|prior| 2.0 * self.stiffness(prior).powi(2)).collect();
        let mut slope: Vec<f64> = self
            .prior()
            .iter()
            .zip(at)
            .zip(&curvature)
            .map(|((prior, at), curvature)| curvature * (at - prior))
            .collect();
        let mut limits = Vec::new();
        for (index, share) in at.iter().enumerate() {
            if fixed.contains(&index) {
                (curvature[index], slope[index]) = (1.0, 0.0);
                continue;
            }
            limits.push(Limit { coefficients: vec![(index, 1.0)], bound: reach.min(1.0 - share).max(0.0) });
            limits.push(Limit { coefficients: vec![(index, -1.0)], bound: reach.min(*share).max(0.0) });
        }
        let gradient = |row: usize, place: usize, factor: f64| -> Vec<(usize, f64)> {
            (0..count)
                .filter(|index| !fixed.contains(index))
                .filter_map(|index| Some((index, factor * slopes[index].get(&row)?[place])))
                .filter(|(_, value)| *value != 0.0)
                .collect()
        };
        for gauge in self.gauges.iter().filter(|gauge| gauge.weight > 0.0 && !without.contains(&gauge.row)) {
            let values = &values[gauge.row];
            let sides = [
                (gauge.aim.1.is_finite(), 1.0, gauge.aim.1, gauge.held_above(values)),
                (gauge.aim.0 > 0.0, -1.0, gauge.aim.0, gauge.held_below(values)),
            ];
            for (_, sign, aim, places) in sides.into_iter().filter(|side| side.0) {
                // What the value lies beyond its aim is a variable of its own, squared in the cost.
                let beyond = curvature.len();
                curvature.push(2.0);
                slope.push(0.0);
                limits.push(Limit { coefficients: vec![(beyond, -1.0)], bound: 0.0 });
                let factor = sign * gauge.weight / (gauge.scale * aim);
                for place in places {
                    let mut coefficients = gradient(gauge.row, place, factor);
                    coefficients.push((beyond, -1.0));
                    limits.push(Limit { coefficients, bound: factor * (aim - values[place]) });
                }
            }
        }
        let mut found = minimise(&curvature, &slope, &limits)?.x;
        found.truncate(count);
        for (index, (step, share)) in found.iter_mut().zip(at).enumerate() {
            *step = if fixed.contains(&index) { 0.0 } else { step.clamp(-share, 1.0 - share) };
        }
        Some(found)
    }

    /// Descends from a point to a minimum. Whole numbers move only where `free` allows it.
    pub fn descend(
        &self,
        own: &Bench,
        start: Vec<f64>,
        free: bool,
        without: &BTreeSet<usize>,
    ) -> Result<Best, FitError> {
        let whole: BTreeSet<usize> =
            (0..self.parameters.len()).filter(|&index| self.parameters[index].is_whole()).collect();
        let none = BTreeSet::new();
        let mut at = start;
        let mut values = self.values(own, &at)?;
        let mut cost = self.cost(&values, &at, without);
        let mut reach = 0.2;
        for _ in 0..60 {
            let slopes = self.slopes(own, &at, &values)?;
            loop {
                let fixed = if free { &none } else { &whole };
                let failed = || FitError::Solver("the step of the fit has no optimum".to_string());
                let mut step = self.step(&at, &values, &slopes, reach, fixed, without).ok_or_else(failed)?;
                if free {
                    // Whole numbers first, then the others around them.
                    let there: Vec<f64> = at.iter().zip(&step).map(|(at, step)| at + step).collect();
                    let snapped = self.snapped(&there);
                    let mut first = vec![0.0; step.len()];
                    for &index in &whole {
                        first[index] = snapped[index] - at[index];
                    }
                    let halfway: Vec<f64> = at.iter().zip(&first).map(|(at, step)| at + step).collect();
                    let predicted = self.predicted(&values, &slopes, &first);
                    let rest = self
                        .step(&halfway, &predicted, &slopes, reach, &whole, without)
                        .ok_or_else(failed)?;
                    step = first.iter().zip(&rest).map(|(first, rest)| first + rest).collect();
                }
                let to: Vec<f64> =
                    at.iter().zip(&step).map(|(at, step)| (at + step).clamp(0.0, 1.0)).collect();
                let expected = cost - self.cost(&self.predicted(&values, &slopes, &step), &to, without);
                if expected < 1e-6 * (1.0 + cost) {
                    return Ok(Best { at, values, cost });
                }
                let there = self.values(own, &to)?;
                let found = self.cost(&there, &to, without);
                let share = (cost - found) / expected;
                if share > 0.7 {
                    reach = f64::min(reach * 2.0, 1.0);
                } else if share < 0.3 {
                    reach /= 3.0;
                }
                if share > 0.0 {
                    (at, values, cost) = (to, there, found);
                    break;
                }
                if reach < 1e-6 {
                    return Ok(Best { at, values, cost });
                }
            }
        }
        Ok(Best { at, values, cost })
    }

    /// Whole numbers moved up and down, by four and then by one, the others descending again.
    fn settle_whole(&self, ground: Ground<'_>, mut best: Best) -> Result<Best, FitError> {
        let none = BTreeSet::new();
        for (index, one) in self.parameters.iter().enumerate().filter(|(_, one)| one.is_whole()) {
            let mut steps = [4.0, 1.0].into_iter().peekable();
            while let Some(step) = steps.peek() {
                let mut tries = Vec::new();
                for sign in [-1.0, 1.0] {
                    let mut at = best.at.clone();
                    at[index] += sign * step * one.resolution / (one.high - one.low);
                    if (0.0..=1.0).contains(&at[index]) {
                        tries.push(self.snapped(&at));
                    }
                }
                let found = each(ground, &tries, |bench, at| self.descend(bench, at.clone(), false, &none))?;
                match found.into_iter().min_by(|a, b| a.cost.total_cmp(&b.cost)) {
                    Some(better) if better.cost < best.cost - 1e-6 => best = better,
                    _ => drop(steps.next()),
                }
            }
        }
        Ok(best)
    }

    /// Every parameter at its resolution, moved by single steps of it while that helps.
    fn round(&self, own: &Bench, best: &Best) -> Result<Best, FitError> {
        let none = BTreeSet::new();
        let mut at: Vec<f64> = self
            .parameters
            .iter()
            .zip(self.base(&best.at))
            .map(|(one, base)| self.share(one, one.rounded(base)))
            .collect();
        let mut values = self.values(own, &at)?;
        let mut cost = self.cost(&values, &at, &none);
        for _ in 0..50 {
            let before = cost;
            for (index, one) in self.parameters.iter().enumerate() {
                for sign in [-1.0, 1.0] {
                    let base = one.low + at[index] * (one.high - one.low) + sign * one.resolution;
                    if !(one.low..=one.high).contains(&base) {
                        continue;
                    }
                    let mut to = at.clone();
                    to[index] = self.share(one, one.rounded(base));
                    let bench = self.moved(own, &to)?;
                    let mut there = values.clone();
                    for &row in &self.moves[index] {
                        there[row] = self.row_values(&bench, row)?;
                    }
                    let found = self.cost(&there, &to, &none);
                    if found < cost - 1e-9 {
                        (at, values, cost) = (to, there, found);
                        break;
                    }
                }
            }
            if cost == before {
                break;
            }
        }
        Ok(Best { at, values, cost })
    }

    /// The rounded minimum, and how many of the starts end there.
    fn minimum(&self, ground: Ground<'_>, seed: u64, starts: usize) -> Result<(Best, usize), FitError> {
        let none = BTreeSet::new();
        let seed = Seed::new(seed).child("start");
        let starts: Vec<Vec<f64>> = (0..starts.max(1) as u64)
            .map(|index| if index == 0 { self.prior() } else { self.start(seed.index(index)) })
            .collect();
        let found = each(ground, &starts, |bench, start| self.descend(bench, start.clone(), true, &none))?;
        let least = found.iter().map(|best| best.cost).fold(f64::INFINITY, f64::min);
        // Of starts that end alike the first counts, so that their number does not matter.
        let kept = found.iter().find(|best| best.cost <= least * (1.0 + 1e-3) + 1e-4).cloned();
        let kept = kept.ok_or_else(|| FitError::Solver("no start ends anywhere".to_string()))?;
        let same = |other: &&Best| other.at.iter().zip(&kept.at).all(|(a, b)| (a - b).abs() <= 0.01);
        let same_minimum = found.iter().filter(same).count();
        let best = self.settle_whole(ground, kept)?;
        Ok((self.round(&ground.bench(), &best)?, same_minimum))
    }
}

/// Whether a parameter moves any value of a row where the fit stands.
pub(crate) fn is_moved(slopes: &Slopes, parameter: usize, row: usize) -> bool {
    slopes[parameter].get(&row).is_some_and(|slopes| slopes.iter().any(|slope| slope.abs() > 1e-9))
}

/// Fits the parameters of `specification` to those of `rows` that have the role `fit`; no other row is
/// looked at. Numbers that are not free stay as `library` has them; free ones do not depend on it.
///
/// # Errors
/// [`FitError`] where an experiment is refused, where the specification names what is not there or
/// frees what no row moves, and where the solver fails.
pub fn fit(
    library: &Library,
    rows: &[Row],
    specification: &Specification,
    effort: &Effort,
) -> Result<Fitted, FitError> {
    let (readable, through) = readable(rows);
    let ground = Ground { library, overlays: &[], threads: effort.threads };
    let problem = Problem::new(ground, readable, specification)?;
    let (rounded, same_minimum) = problem.minimum(ground, specification.seed, effort.starts)?;
    let own = ground.bench();

    let slopes = problem.slopes(&own, &rounded.at, &rounded.values)?;
    let spans = identify::spans(&problem, ground, &rounded, &slopes)?;
    let all: Vec<usize> = (0..problem.rows.len()).collect();
    let verdicts = problem.judged(&own, &rounded.at, &all)?;
    let left_out = if effort.leave_one_out {
        identify::leave_one_out(&problem, ground, &rounded, &slopes)?
    } else {
        vec![LeftOut::NotAsked; problem.rows.len()]
    };
    let name = |index: &usize| problem.parameters[*index].name();
    let interval = |one: &Parameter, value: f64, span: &identify::Span| {
        let inward = |share: f64, round: fn(f64) -> f64| {
            let base = one.low + share * (one.high - one.low);
            // Shares carry rounding errors far below any resolution.
            round((base / one.resolution * 1e6).round() / 1e6) * one.resolution
        };
        let parts = |row: &usize| problem.rows[*row].id.split('/').map(str::to_string).collect::<Vec<_>>();
        let mut rows: BTreeSet<String> = span.rows.iter().flat_map(parts).collect();
        if rows.is_empty() {
            // The rows hold it nowhere between the bounds; those that it moves most fix its value.
            rows = problem.most_moved(&rounded.values, &slopes, span.index).iter().flat_map(parts).collect();
        }
        ParameterInterval {
            low: inward(span.low, f64::ceil).clamp(one.low, value),
            high: inward(span.high, f64::floor).clamp(value, one.high),
            rows: rows.into_iter().collect(),
            bounded_by: span.bounds.iter().map(name).collect(),
        }
    };
    let parameters = problem
        .parameters
        .iter()
        .zip(problem.base(&rounded.at))
        .zip(spans)
        .map(|((one, value), (alone, free))| FittedParameter {
            parameter: one.clone(),
            value,
            alone: interval(one, value, &alone),
            free: interval(one, value, &free),
        })
        .collect();
    let rows: Vec<FittedRow> = verdicts
        .into_iter()
        .zip(left_out)
        .enumerate()
        .map(|(index, (verdict, left_out))| FittedRow {
            row: problem.rows[index].clone(),
            predicted: verdict.predicted,
            error: verdict.error,
            within: verdict.within,
            moved_by: (0..problem.parameters.len())
                .filter(|one| is_moved(&slopes, *one, index))
                .map(|one| name(&one))
                .collect(),
            left_out,
        })
        .collect();
    let errors: Vec<f64> = rows
        .iter()
        .filter(|row| row.row.published.is_some_and(|claim| !claim.is_bound()))
        .filter_map(|row| match row.left_out {
            LeftOut::Predicted { error, .. } => Some(error.abs()),
            _ => None,
        })
        .collect();
    Ok(Fitted {
        parameters,
        rows,
        through,
        set_aside: specification.set_aside.iter().map(|one| (one.row.clone(), one.reason.clone())).collect(),
        starts: effort.starts.max(1),
        same_minimum,
        cost: rounded.cost,
        left_out_median: (!errors.is_empty()).then(|| crate::reproduce::median(errors)),
    })
}

/// A mechanism that the evidence leaves open, with the parameters that the rows make otherwise under it.
#[derive(Clone, Debug)]
pub struct Refitted {
    /// The overlay that holds it.
    pub overlay: String,
    /// Each with its value there.
    pub differs: Vec<(FittedParameter, f64)>,
}

/// The parameters of a fit, fitted to the same rows under each variant of an open mechanism. One that comes out otherwise is
/// to be multiplied by the variant's overlay, under which it then comes out alike: so every variant is compared with the base
/// at the best that the rows leave to either.
///
/// # Errors
/// As [`fit`].
pub fn under_variants(
    library: &Library,
    rows: &[Row],
    specification: &Specification,
    (fitted, effort): (&Fitted, &Effort),
) -> Result<Vec<Refitted>, FitError> {
    let refitted = |overlay: String| {
        let overlays = [overlay];
        let ground = Ground { library, overlays: &overlays, threads: effort.threads };
        let problem = Problem::new(ground, readable(rows).0, specification)?;
        let (rounded, _) = problem.minimum(ground, specification.seed, effort.starts)?;
        let both = fitted.parameters.iter().cloned().zip(problem.base(&rounded.at));
        let differs = both.filter(|(one, value)| one.value != *value).collect();
        let [overlay] = overlays;
        Ok(Refitted { overlay, differs })
    };
    open_mechanisms(library, &[])?.into_iter().map(refitted).collect()
}
