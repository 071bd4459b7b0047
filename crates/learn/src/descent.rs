//! The search that fits numbers to measured points: steps of a quadratic program inside a trust region, as the fit of the
//! profiles takes them, on logarithms, with points that no number reaches weighed down.

use offpath_capacity::quadratic::{Limit, minimise};

/// A share that an error is counted in: up to it an error counts by its square, beyond it ever less.
pub(crate) const SCALE: f64 = 0.02;

/// What the values of numbers predict, as logarithms, point by point; nothing where the numbers make no system.
pub(crate) trait Model {
    fn predict(&self, at: &[f64]) -> Option<Vec<f64>>;

    /// The same of several places that do not wait for each other.
    fn predict_each(&self, places: &[Vec<f64>]) -> Vec<Option<Vec<f64>>> {
        places.iter().map(|at| self.predict(at)).collect()
    }
}

impl<F: Fn(&[f64]) -> Option<Vec<f64>>> Model for F {
    fn predict(&self, at: &[f64]) -> Option<Vec<f64>> {
        self(at)
    }
}

/// Numbers with their bounds, and what was measured; all as logarithms.
pub(crate) struct Search<'a> {
    pub model: &'a dyn Model,
    pub low: &'a [f64],
    pub high: &'a [f64],
    /// What was measured, with the place of its prediction.
    pub points: &'a [(usize, f64)],
}

/// A place with its predictions and their cost.
#[derive(Clone, Debug)]
pub(crate) struct Found {
    pub at: Vec<f64>,
    pub predicted: Vec<f64>,
    pub cost: f64,
}

/// The cost of an error: its square in units of [`SCALE`] where it is small, and near linear beyond.
fn loss(error: f64) -> f64 {
    let unit = error / SCALE;
    2.0 * ((1.0 + unit * unit).sqrt() - 1.0)
}

/// The weight that makes a square of that cost, by its slope.
pub(crate) fn weight(error: f64) -> f64 {
    let unit = error / SCALE;
    1.0 / (1.0 + unit * unit).sqrt()
}

/// A step of a slope, in logarithms: large enough that rounding to picoseconds does not show.
const SLOPE_STEP: f64 = 0.01;
/// How far a step may go at first, and where the search ends.
const REACH: f64 = 0.5;
const LEAST_REACH: f64 = 1e-4;
const MOST_STEPS: usize = 25;

impl Search<'_> {
    pub fn cost(&self, predicted: &[f64]) -> f64 {
        self.points.iter().map(|(place, measured)| loss(predicted[*place] - measured)).sum()
    }

    pub fn found(&self, at: Vec<f64>) -> Option<Found> {
        self.found_each(vec![at]).next().flatten()
    }

    fn found_each(&self, places: Vec<Vec<f64>>) -> impl Iterator<Item = Option<Found>> {
        let predicted = self.model.predict_each(&places);
        places.into_iter().zip(predicted).map(|(at, predicted)| {
            let predicted = predicted?;
            Some(Found { at, cost: self.cost(&predicted), predicted })
        })
    }

    /// How each prediction moves with each of some numbers.
    pub fn slopes(&self, from: &Found, numbers: &[usize]) -> Vec<Vec<f64>> {
        let moved = numbers.iter().flat_map(|index| {
            [-SLOPE_STEP, SLOPE_STEP].map(|by| {
                let mut to = from.at.clone();
                to[*index] = (to[*index] + by).clamp(self.low[*index], self.high[*index]);
                to
            })
        });
        let places: Vec<Vec<f64>> = moved.collect();
        let predicted = self.model.predict_each(&places);
        let slope = |(place, index): (usize, &usize)| {
            // Beside a place that is no system stands the one that it was moved from.
            let end = |place: usize| match &predicted[place] {
                Some(there) => (places[place][*index], there),
                None => (from.at[*index], &from.predicted),
            };
            let ((low, below), (high, above)) = (end(2 * place), end(2 * place + 1));
            if high <= low {
                return vec![0.0; from.predicted.len()];
            }
            below.iter().zip(above).map(|(below, above)| (above - below) / (high - low)).collect()
        };
        numbers.iter().enumerate().map(slope).collect()
    }

    /// The best value of one number, the others as they are: of several over its bounds, and then near the best of these, since
    /// a number that fits between two of them is no worse than one that fits at one.
    pub fn scan(&self, from: &Found, index: usize) -> Option<Found> {
        const PLACES: u32 = 25;
        let (low, high) = (self.low[index], self.high[index]);
        let best_at = |values: Vec<f64>| {
            let at = |value: f64| {
                let mut to = from.at.clone();
                to[index] = value.clamp(low, high);
                to
            };
            let tried = self.found_each(values.into_iter().map(at).collect()).flatten();
            tried.min_by(|one, other| one.cost.total_cmp(&other.cost))
        };
        let apart = (high - low) / f64::from(PLACES - 1);
        let mut best = best_at((0..PLACES).map(|place| low + apart * f64::from(place)).collect())?;
        let mut step = apart / 2.0;
        while step > SCALE / 4.0 && best.cost < from.cost {
            if let Some(nearer) = best_at([-step, step].map(|by| best.at[index] + by).to_vec())
                && nearer.cost < best.cost
            {
                best = nearer;
            }
            step /= 2.0;
        }
        Some(best)
    }

    /// The best place that steps of these numbers lead to.
    pub fn descend(&self, start: Found, free: &[usize]) -> Found {
        let mut best = start;
        let mut reach = REACH;
        for _ in 0..MOST_STEPS {
            if free.is_empty() || reach < LEAST_REACH {
                break;
            }
            let slopes = self.slopes(&best, free);
            loop {
                let stepped = self.step(&best, free, &slopes, reach).and_then(|step| {
                    let mut to = best.at.clone();
                    for (index, step) in free.iter().zip(&step) {
                        to[*index] = (to[*index] + step).clamp(self.low[*index], self.high[*index]);
                    }
                    self.found(to)
                });
                match stepped {
                    Some(found) if found.cost < best.cost * (1.0 - 1e-9) => {
                        best = found;
                        reach = (reach * 1.5).min(REACH);
                        break;
                    }
                    // Where the program has no solution within its tolerance, a smaller one may.
                    _ => reach /= 3.0,
                }
                if reach < LEAST_REACH {
                    return best;
                }
            }
        }
        best
    }

    fn step(&self, from: &Found, free: &[usize], slopes: &[Vec<f64>], reach: f64) -> Option<Vec<f64>> {
        // Steps, then what is left of each error, which the cost squares. A little curvature keeps numbers that nothing
        // moves where they are.
        let mut curvature = vec![1e-2; free.len()];
        let mut limits = Vec::new();
        for (column, index) in free.iter().enumerate() {
            let (down, up) = (from.at[*index] - self.low[*index], self.high[*index] - from.at[*index]);
            limits.push(Limit { coefficients: vec![(column, 1.0)], bound: reach.min(up).max(0.0) });
            limits.push(Limit { coefficients: vec![(column, -1.0)], bound: reach.min(down).max(0.0) });
        }
        // Points of one prediction pull as one.
        let mut places: Vec<(usize, f64, f64)> = Vec::new();
        let mut known: Vec<Option<usize>> = vec![None; from.predicted.len()];
        for (place, measured) in self.points {
            let error = from.predicted[*place] - measured;
            let weight = weight(error);
            let at = *known[*place].get_or_insert_with(|| {
                places.push((*place, 0.0, 0.0));
                places.len() - 1
            });
            let (_, sum, total) = &mut places[at];
            *sum += weight * error;
            *total += weight;
        }
        for (place, sum, total) in places {
            let factor = total.sqrt() / SCALE;
            let error = factor * sum / total;
            let left = curvature.len();
            curvature.push(2.0);
            for sign in [1.0, -1.0] {
                let own =
                    slopes.iter().enumerate().map(|(column, slope)| (column, sign * factor * slope[place]));
                let mut coefficients: Vec<(usize, f64)> = own.filter(|(_, value)| *value != 0.0).collect();
                coefficients.push((left, -1.0));
                limits.push(Limit { coefficients, bound: -sign * error });
            }
        }
        let slope = vec![0.0; curvature.len()];
        let mut found = minimise(&curvature, &slope, &limits)?.x;
        found.truncate(free.len());
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A bound of rate and bandwidth is found from points with an outlier among them.
    #[test]
    fn two_numbers_are_found_beside_an_outlier() {
        let sizes: Vec<f64> = (0..20).map(|power| f64::from(1 << power)).collect();
        let roofline = |at: &[f64]| -> Option<Vec<f64>> {
            Some(sizes.iter().map(|size| at[0].min(at[1] - size.ln())).collect())
        };
        let truth = [(3.6e6f64).ln(), (28e9f64).ln()];
        let mut points: Vec<(usize, f64)> =
            roofline(&truth).expect("it predicts").into_iter().enumerate().collect();
        points[3].1 -= 2.0;
        let (low, high) = ([0.0, 0.0], [40.0, 40.0]);
        let search = Search { model: &roofline, low: &low, high: &high, points: &points };
        let start = search.found(vec![14.0, 25.0]).expect("it predicts");
        let found = search.descend(start, &[0, 1]);
        for (found, truth) in found.at.iter().zip(truth) {
            assert!((found - truth).abs() < 0.005, "{found} is not {truth}");
        }
    }
}
