//! Numbers of a card from measured points: which ones the points tell apart, what they are, within what, and how well
//! points that were kept apart are predicted, beside what two numbers alone would do.

mod answer;
mod candidates;
mod errors;
mod learnt;
mod left_out;
mod menu;
mod select;
mod simple;
mod tell;

pub use answer::{
    Calibration, CalibrationError, CoveredPoints, Directions, ErrorSummary, KeptNumber, KeptReason,
    LearntDoubt, LearntNumber, PredictedPoint, RunPairs, WidenedErrors, program_of,
};

pub(crate) use errors::quantile;

use crate::descent::Search;
use crate::points::{HoldOut, MeasuredPoint, held_out, holds_nothing, log_doubts};
use crate::posting::KnownLoops;
use crate::run::MeasuredRun;
use candidates::{Runs, bounds, candidates, logarithm};
use errors::{
    SIDE_80, Scatter, clusters, contradiction, covered_elsewhere, learnt_errors, repeated, warm_against_cold,
};
use learnt::{LeftOpen, contained, differing, learnt, undescribed};
use left_out::LeavingOut;
use menu::{Menu, telling_difference};
use offpath_profile::System;
use select::{moving, select, spread_over};
use simple::{Simple, roofline, simple_fit, straight_line};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use tell::{Told, tell};

/// So many clusters and fewer are each left out by the model. Of more, one is too little of the whole to change which ceiling binds, and a
/// fit of each would take longer than all else.
const FEW_CLUSTERS: usize = 4;

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
    let model_of = |runs| Runs::new((system, path), runs, &candidates, &loops);
    let all = model_of(runs.clone());
    // A run that the system refuses is said once, with its reason.
    all.of(system, 1)?;
    // The search sees the runs of fitted points alone.
    let seen: BTreeSet<usize> =
        places.iter().zip(&held).filter(|(_, held)| !**held).map(|(place, _)| *place).collect();
    let seen: Vec<usize> = seen.into_iter().collect();
    let model = model_of(seen.iter().map(|place| runs[*place].clone()).collect());
    let targets_of = |seen: &[usize]| -> Vec<(usize, f64)> {
        let own = (0..points.len()).filter(|index| !held[*index]);
        let own = own.filter_map(|index| Some((seen.binary_search(&places[index]).ok()?, index)));
        own.map(|(place, index)| (place, points[index].measured.ln())).collect()
    };
    let targets = targets_of(&seen);
    // Where many runs are fitted, few that are spread over them say where to look, and all where it ends.
    let few = spread_over(&seen, &runs);
    let coarse_model = model_of(few.iter().map(|place| runs[*place].clone()).collect());
    let coarse_targets = targets_of(&few);
    let (low, high): (Vec<f64>, Vec<f64>) = candidates.iter().map(bounds).unzip();
    let search = Search { model: &model, low: &low, high: &high, points: &targets };
    let start: Vec<f64> = candidates.iter().map(|candidate| logarithm(candidate.number.value)).collect();
    let coarse = Search { model: &coarse_model, low: &low, high: &high, points: &coarse_targets };
    let too_few = || CalibrationError::TooFew { fitted, all: points.len() };
    let mut moving = moving(&search, &search.found(start.clone()).ok_or_else(too_few)?, request.progress);
    moving.retain(|index| !candidates[*index].stays);
    let progress = request.progress;
    let start = coarse.found(start).ok_or_else(too_few)?;
    let (best, free) = select(&coarse, start, &moving, &candidates, progress);
    let best = (search.descend(search.found(best.at).ok_or_else(too_few)?, &free), free);
    let telling = telling_difference(&search, &best.0);
    let menu = Menu::new(&candidates, system, path, &runs, &loops, telling);
    let clusters = clusters(points);
    let clusters_of_fitted: Vec<usize> =
        (0..points.len()).filter(|index| !held[*index]).map(|index| clusters[index]).collect();
    let told = tell(
        (&search, &coarse),
        best,
        &moving,
        &candidates,
        (&menu, &model.runs),
        (&clusters_of_fitted, progress),
    )?;
    let Told { best, written, free, covariance, alike, open, replacements, mut kept } = told;
    let pinned = |name: &String| KeptNumber::named(name, &system.numbers[name], KeptReason::Pinned, None);
    kept.extend(request.pin.iter().map(pinned));

    // What the numbers say of every run, and how far each prediction may move with them.
    let whole = Search { model: &all, low: &low, high: &high, points: &[] };
    let predicted =
        whole.found(written.at.clone()).ok_or(CalibrationError::TooFew { fitted, all: points.len() })?;
    let slopes = whole.slopes(&predicted, &free);
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
    let fitted_at = search.found(best.at.clone()).ok_or_else(too_few)?;
    // What the card takes kept numbers to be holds each of those back as well.
    let held_back: Vec<f64> = written
        .predicted
        .iter()
        .zip(&fitted_at.predicted)
        .map(|(written, fitted)| written - fitted)
        .collect();
    let fitted_points: Vec<usize> = (0..points.len()).filter(|index| !held[*index]).collect();
    let leaving_out = LeavingOut {
        search: &search,
        of_targets: &fitted_points,
        best: &fitted_at,
        held_back: &held_back,
        free: &free,
        slopes: &search.slopes(&fitted_at, &free),
        candidates: &candidates,
    };
    let fitted_clusters: BTreeSet<usize> = clusters_of_fitted.into_iter().collect();
    progress.phase("fits without a run, without a log", (seen.len() + fitted_clusters.len()) as u64);
    let left_out = leaving_out.each(points.len(), &|index| places[index], (false, progress));
    let are_few = fitted_clusters.len() <= FEW_CLUSTERS;
    let left_out_clusters = leaving_out.each(points.len(), &|index| clusters[index], (are_few, progress));
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
                left_out: left_out[index].map(|one| one.predicted),
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
    let bound_by = all.bound_by(&written.at).ok_or_else(too_few)?;
    let bound_by: Vec<Option<&str>> = places.iter().map(|place| bound_by[*place].as_deref()).collect();
    let is_held = |index: usize| held[index];
    let is_fitted = |index: usize| !held[index];
    let covered = answer.iter().filter(|one| one.held_out && one.holds(points[one.point].measured));
    let of_held = summary(&is_held, &|one| Some(one.predicted));
    let of_roofline = summary(&is_held, &|one| Some(one.roofline));
    let is_described = !of_held.is_worse_than(&of_roofline);
    let mut numbers = learnt(
        &candidates,
        (&best, &written, &menu),
        &free,
        LeftOpen { covariance: &covariance, of_kept: &alike, open: &open, replacements: &replacements },
        (&low, &high),
    );
    if !is_described {
        numbers.iter_mut().zip(&free).for_each(|(one, index)| undescribed(one, &candidates[*index]));
    }
    let fitted_points: Vec<&MeasuredPoint> = fitted_points.iter().map(|index| &points[*index]).collect();
    let mut log_doubts = log_doubts(&fitted_points);
    if let Some((ratio, doubt)) = contradiction(&fitted_points) {
        numbers.iter_mut().zip(&free).for_each(|(one, index)| differing(one, &candidates[*index], ratio));
        log_doubts.push(doubt);
    }
    numbers.iter_mut().zip(&free).for_each(|(one, index)| contained(one, &candidates[*index]));
    if log_doubts.iter().any(|one| one.is_of_figures) {
        for one in numbers.iter_mut().filter(|one| one.is_told && one.doubt.is_none()) {
            (one.is_told, one.doubt) = (false, Some(LearntDoubt::DoubtedLogs));
        }
    }
    if !is_described || log_doubts.iter().any(|one| one.is_of_figures) {
        for one in &mut kept {
            // What is missed of such points says nothing of the card.
            one.held = None;
            if one.reason == KeptReason::Confirmed {
                one.reason = KeptReason::NotNeeded;
            }
        }
    }
    Ok(Calibration {
        numbers,
        telling_difference: telling.exp_m1(),
        log_doubts,
        is_described,
        fitted: summary(&is_fitted, &|one| Some(one.predicted)),
        predicted: of_held,
        roofline: of_roofline,
        line: summary(&is_held, &|one| Some(one.line)),
        left_out: summary(&is_fitted, &|one| one.left_out),
        left_out_clusters: summary(&is_fitted, &|one| Some(left_out_clusters[one.point]?.predicted)),
        learnt_errors: learnt_errors(points, (path, &bound_by), &clusters, (&left_out, &left_out_clusters)),
        repeated: repeated(points, &places),
        warm_against_cold: warm_against_cold(points, &answer),
        covered: covered.count(),
        covered_elsewhere: covered_elsewhere(points, &scatter, &answer),
        kept,
        points: answer,
    })
}
