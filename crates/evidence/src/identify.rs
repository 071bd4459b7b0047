//! What the rows say about each parameter: its interval, the rows that hold it, and what becomes of a
//! row that is left out.

use crate::bench::Bench;
use crate::fit::{
    Best, FitError, Gauge, Ground, LeftOut, Problem, Slopes, Values, are_alike, each, is_moved,
};
use offpath_capacity::quadratic::{Limit, minimise};
use std::collections::BTreeSet;

/// What the rows leave of a parameter, as shares of its bounds.
#[derive(Clone, Debug, Default)]
pub(crate) struct Span {
    /// The parameter.
    pub index: usize,
    pub low: f64,
    pub high: f64,
    /// The rows that hold the ends.
    pub rows: BTreeSet<usize>,
    /// The parameters whose bounds hold them.
    pub bounds: BTreeSet<usize>,
}

/// What holds a limit of the polytope.
#[derive(Clone, Copy, Debug)]
enum Holder {
    Row(usize),
    Bound(usize),
}

/// To first order, the points at which every claim that is met stays met.
struct Polytope {
    limits: Vec<Limit>,
    holders: Vec<Holder>,
}

/// A multiplier above this counts; limits have unit length, and so has what is maximised.
const HELD: f64 = 1e-3;

/// Keeps the other parameters from moving where nothing asks them to.
const STILL: f64 = 1e-4;

fn met<'p>(problem: &'p Problem<'_>, values: &Values, without: &BTreeSet<usize>) -> Vec<&'p Gauge> {
    let counts = |gauge: &&Gauge| !without.contains(&gauge.row) && gauge.is_met(&values[gauge.row]);
    problem.gauges.iter().filter(counts).collect()
}

impl Polytope {
    fn new(problem: &Problem<'_>, best: &Best, slopes: &Slopes, without: &BTreeSet<usize>) -> Polytope {
        let (mut limits, mut holders) = (Vec::new(), Vec::new());
        for (index, share) in best.at.iter().enumerate() {
            limits.push(Limit { coefficients: vec![(index, 1.0)], bound: (1.0 - share).max(0.0) });
            limits.push(Limit { coefficients: vec![(index, -1.0)], bound: share.max(0.0) });
            holders.extend([Holder::Bound(index); 2]);
        }
        for gauge in met(problem, &best.values, without) {
            let values = &best.values[gauge.row];
            let sides =
                [(1.0, gauge.met.1, gauge.held_above(values)), (-1.0, gauge.met.0, gauge.held_below(values))];
            for (sign, end, places) in sides {
                for place in places {
                    let slope = |index: usize| Some((index, sign * slopes[index].get(&gauge.row)?[place]));
                    let coefficients: Vec<(usize, f64)> = (0..best.at.len()).filter_map(slope).collect();
                    let length = coefficients.iter().map(|(_, value)| value * value).sum::<f64>().sqrt();
                    if !end.is_finite() || length < 1e-9 {
                        continue;
                    }
                    limits.push(Limit {
                        coefficients: coefficients
                            .into_iter()
                            .map(|(index, value)| (index, value / length))
                            .collect(),
                        bound: (sign * (end - values[place]) / length).max(0.0),
                    });
                    holders.push(Holder::Row(gauge.row));
                }
            }
        }
        Polytope { limits, holders }
    }

    /// The furthest step of one parameter, with what holds it there.
    fn end(&self, count: usize, index: usize, sign: f64) -> Option<(Vec<f64>, Vec<Holder>)> {
        let mut slope = vec![0.0; count];
        slope[index] = -sign;
        let found = minimise(&vec![STILL; count], &slope, &self.limits)?;
        let held = self.holders.iter().zip(&found.multipliers).filter(|(_, multiplier)| **multiplier > HELD);
        Some((found.x, held.map(|(holder, _)| *holder).collect()))
    }
}

fn failed() -> FitError {
    FitError::Solver("the interval of a parameter has no optimum".to_string())
}

/// The intervals of every parameter around a fitted point: moving alone, and with the others free.
pub(crate) fn spans(
    problem: &Problem<'_>,
    ground: Ground<'_>,
    best: &Best,
    slopes: &Slopes,
) -> Result<Vec<(Span, Span)>, FitError> {
    let none = BTreeSet::new();
    let polytope = Polytope::new(problem, best, slopes, &none);
    let count = problem.parameters.len();
    let ends: Vec<(usize, f64)> = (0..count).flat_map(|index| [(index, -1.0), (index, 1.0)]).collect();
    let found = each(ground, &ends, |bench, &(index, sign)| {
        let alone = end_alone(problem, bench, best, index, sign)?;
        Ok((alone, end(problem, bench, best, &polytope, index, sign)?))
    })?;
    let span = |index: usize, low: &(f64, Vec<Holder>), high: &(f64, Vec<Holder>)| {
        let mut span = Span { index, low: low.0, high: high.0, ..Span::default() };
        for holder in low.1.iter().chain(&high.1) {
            match holder {
                Holder::Row(row) => span.rows.insert(*row),
                Holder::Bound(index) => span.bounds.insert(*index),
            };
        }
        span
    };
    let pairs = found.chunks(2).enumerate();
    Ok(pairs
        .map(|(index, ends)| (span(index, &ends[0].0, &ends[1].0), span(index, &ends[0].1, &ends[1].1)))
        .collect())
}

/// How far a parameter moves alone until a row breaks or its bound is reached.
fn end_alone(
    problem: &Problem<'_>,
    bench: &Bench,
    best: &Best,
    index: usize,
    sign: f64,
) -> Result<(f64, Vec<Holder>), FitError> {
    let gauges = met(problem, &best.values, &BTreeSet::new());
    let bound = if sign > 0.0 { 1.0 } else { 0.0 };
    let broken = |share: f64| -> Result<BTreeSet<usize>, FitError> {
        let mut at = best.at.clone();
        at[index] = share;
        let bench = problem.moved(bench, &at)?;
        let mut broken = BTreeSet::new();
        for &row in &problem.moves[index] {
            let values = problem.row_values(&bench, row)?;
            if gauges.iter().any(|gauge| gauge.row == row && !gauge.is_met(&values)) {
                broken.insert(row);
            }
        }
        Ok(broken)
    };
    let mut by = broken(bound)?;
    if by.is_empty() {
        return Ok((bound, vec![Holder::Bound(index)]));
    }
    let one = &problem.parameters[index];
    let fine = 0.1 * one.resolution / (one.high - one.low);
    let (mut good, mut bad) = (best.at[index], bound);
    while (bad - good).abs() > fine {
        let middle = (good + bad) / 2.0;
        let there = broken(middle)?;
        if there.is_empty() {
            good = middle;
        } else {
            (bad, by) = (middle, there);
        }
    }
    Ok((good, by.into_iter().map(Holder::Row).collect()))
}

/// How often the way to an end is halved.
const HALVINGS: usize = 7;

/// One end of an interval. The polytope is true to first order, so its point is tried, and where rows
/// are broken there, the way to it is halved until they hold.
fn end(
    problem: &Problem<'_>,
    bench: &Bench,
    best: &Best,
    polytope: &Polytope,
    index: usize,
    sign: f64,
) -> Result<(f64, Vec<Holder>), FitError> {
    let none = BTreeSet::new();
    let gauges = met(problem, &best.values, &none);
    let (step, mut holders) = polytope.end(best.at.len(), index, sign).ok_or_else(failed)?;
    let at = |share: f64| -> Vec<f64> {
        best.at.iter().zip(&step).map(|(at, step)| (at + share * step).clamp(0.0, 1.0)).collect()
    };
    // The solver stops within its own tolerance of a limit.
    let holds = |values: &[f64], gauge: &Gauge| {
        let value = values[gauge.place(values)];
        value >= gauge.met.0 * (1.0 - 1e-7) && value <= gauge.met.1 * (1.0 + 1e-7)
    };
    let broken = |share: f64| -> Result<BTreeSet<usize>, FitError> {
        let values = problem.values(bench, &at(share))?;
        let broken = gauges.iter().filter(|gauge| !holds(&values[gauge.row], gauge));
        Ok(broken.map(|gauge| gauge.row).collect())
    };
    let (mut good, mut bad) = (0.0, 1.0);
    let mut by = broken(1.0)?;
    if by.is_empty() {
        good = 1.0;
    } else {
        for _ in 0..HALVINGS {
            let middle = (good + bad) / 2.0;
            let there = broken(middle)?;
            if there.is_empty() {
                good = middle;
            } else {
                (bad, by) = (middle, there);
            }
        }
        // The bound was not reached: rows hold the parameter before it.
        holders.retain(|holder| !matches!(holder, Holder::Bound(own) if *own == index));
        holders.extend(by.into_iter().map(Holder::Row));
    }
    Ok((at(good)[index], holders))
}

/// A parameter's interval by the polytope alone, and whether its own bounds are its ends.
struct Width {
    width: f64,
    at_bound: bool,
}

fn widths(
    problem: &Problem<'_>,
    best: &Best,
    slopes: &Slopes,
    without: &BTreeSet<usize>,
) -> Result<Vec<Width>, FitError> {
    let polytope = Polytope::new(problem, best, slopes, without);
    let count = problem.parameters.len();
    (0..count)
        .map(|index| {
            let (down, _) = polytope.end(count, index, -1.0).ok_or_else(failed)?;
            let (up, _) = polytope.end(count, index, 1.0).ok_or_else(failed)?;
            let (low, high) = (best.at[index] + down[index], best.at[index] + up[index]);
            Ok(Width { width: high - low, at_bound: low < 1e-4 || high > 1.0 - 1e-4 })
        })
        .collect()
}

/// An interval that grows by this factor is lost, where it is also wider than [`WIDE`].
const GROWN: f64 = 3.0;

/// A tenth of the value.
const WIDE: f64 = 0.1;

/// Leaves every row out with those alike, and says whether its parameters stay identified and how well
/// the others predict it.
pub(crate) fn leave_one_out(
    problem: &Problem<'_>,
    ground: Ground<'_>,
    best: &Best,
    slopes: &Slopes,
) -> Result<Vec<LeftOut>, FitError> {
    let whole = widths(problem, best, slopes, &BTreeSet::new())?;
    let rows: Vec<usize> = (0..problem.rows.len()).collect();
    let values = problem.base(&best.at);
    each(ground, &rows, |bench, &row| {
        if !(0..problem.parameters.len()).any(|index| is_moved(slopes, index, row)) {
            return Ok(LeftOut::Taken);
        }
        let own = problem.rows[row];
        let without: BTreeSet<usize> =
            rows.iter().filter(|&&other| are_alike(own, problem.rows[other])).copied().collect();
        let rest = widths(problem, best, slopes, &without)?;
        let mut lost = Vec::new();
        for (index, (before, after)) in whole.iter().zip(&rest).enumerate() {
            let one = &problem.parameters[index];
            let share = after.width * (one.high - one.low) / values[index].max(one.resolution);
            let grown = after.width > GROWN * before.width && share > WIDE;
            // A number that rows hold nowhere rests on those that it moves most.
            let unsaid =
                problem.most_moved(&best.values, slopes, index).iter().all(|row| without.contains(row));
            if grown || unsaid || after.at_bound && !before.at_bound {
                lost.push(one.name());
            }
        }
        if !lost.is_empty() {
            return Ok(LeftOut::Alone(lost));
        }
        let refitted = problem.descend(bench, best.at.clone(), true, &without)?;
        let verdicts = problem.judged(bench, &refitted.at, &[row])?;
        let verdict = verdicts.first().ok_or_else(failed)?;
        Ok(LeftOut::Predicted { predicted: verdict.predicted, error: verdict.error })
    })
}
