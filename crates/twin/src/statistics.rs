//! Latency histograms and confidence intervals.

use hdrhistogram::Histogram;
use offpath_quantity::Time;

/// The longest latency that is told from longer ones: more than a window lasts.
const LONGEST: Time = Time::from_ps(2_000_000_000_000_000_000);

/// Latencies, kept to 3 significant digits in picoseconds up to two million seconds.
#[derive(Clone, Debug)]
pub struct Latencies(Histogram<u64>);

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies(Histogram::new_with_bounds(1, LONGEST.ps(), 3).expect("bounds within a u64"))
    }
}

impl Latencies {
    /// Counts one.
    pub fn record(&mut self, latency: Time) {
        self.0.saturating_record(latency.ps().max(1));
    }
    /// How many were counted.
    pub fn count(&self) -> u64 {
        self.0.len()
    }
    /// The latency that a share (0 to 1) of all stay within; `None` where none were counted.
    pub fn quantile(&self, share: f64) -> Option<Time> {
        (!self.0.is_empty()).then(|| Time::from_ps(self.0.value_at_quantile(share)))
    }
    /// The mean; `None` where none were counted.
    pub fn mean(&self) -> Option<Time> {
        (!self.0.is_empty()).then(|| Time::from_ps(self.0.mean().round() as u64))
    }
    /// Counts all of `other` too.
    pub fn add(&mut self, other: &Latencies) {
        self.0.add(&other.0).expect("all histograms have the same bounds");
    }
}

/// A mean with its 95% confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// The mean of the batches.
    pub mean: f64,
    /// The lower end.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

impl Interval {
    /// Whether it is wider than its mean, so that the mean is not a result: not even its order of magnitude
    /// is known. A longer window narrows it.
    pub fn is_wider_than_its_mean(&self) -> bool {
        // What is not a number is not a result either.
        let width = self.high - self.low;
        width.is_nan() || self.mean.is_nan() || width >= self.mean.abs()
    }

    /// The mean where it may be shown as a result; `None` where its interval is wider than it.
    pub fn result(&self) -> Option<f64> {
        (!self.is_wider_than_its_mean()).then_some(self.mean)
    }
}

/// The 95% interval of a mean by batch means: consecutive batches of a stationary run are nearly
/// independent, so Student's t over their means holds. `None` for fewer than two batches.
pub fn batch_means(batches: &[f64]) -> Option<Interval> {
    if batches.len() < 2 {
        return None;
    }
    let n = batches.len() as f64;
    let mean = batches.iter().sum::<f64>() / n;
    let variance = batches.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let half = student_t_975(batches.len() - 1) * (variance / n).sqrt();
    Some(Interval { mean, low: mean - half, high: mean + half })
}

/// The 97.5% quantile of Student's t.
pub(crate) fn student_t_975(freedom: usize) -> f64 {
    const TABLE: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145,
        2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048,
        2.045, 2.042,
    ];
    TABLE.get(freedom - 1).copied().unwrap_or(1.96)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Long after anybody would wait, a longer latency is still told from a shorter one.
    #[test]
    fn a_latency_of_minutes_is_what_it_is() {
        let mut latencies = Latencies::default();
        latencies.record(Time::from_seconds(198.0));
        let mean = latencies.mean().expect("one was counted").as_seconds();
        assert!((mean / 198.0 - 1.0).abs() < 1e-3, "{mean}");
    }
}
