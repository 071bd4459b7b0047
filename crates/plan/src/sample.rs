//! Seeded joint samples of numbers that are known as an interval.

use offpath_quantity::{Dimension, Quantity};
use offpath_twin::{Seed, unit};

/// Draws of a joint sample: enough that the ends of a 95% interval are the sixth draw from either side.
pub const DRAWS: usize = 256;

/// A Latin hypercube: `DRAWS` numbers from 0 to 1, one from each of as many equal strata, in an order that
/// the seed and the dimension's name decide. A dimension more or less moves no other's draws.
pub fn strata(seed: Seed, name: &str) -> Vec<f64> {
    let mut generator = seed.child("sample").child(&offpath_profile::first_name(name)).generator();
    strata_by(DRAWS, |_| unit(&mut generator))
}

/// So many numbers from 0 to 1, one from each of as many equal strata, in an order that `unit` decides: it
/// gives a number from 0 to 1 for each index below twice as many.
pub fn strata_by(draws: usize, mut unit: impl FnMut(usize) -> f64) -> Vec<f64> {
    let mut order: Vec<usize> = (0..draws).collect();
    for last in (1..draws).rev() {
        order.swap(last, (unit(last) * (last + 1) as f64) as usize);
    }
    let within = order.into_iter().enumerate();
    within.map(|(index, stratum)| (stratum as f64 + unit(draws + index)) / draws as f64).collect()
}

/// The least share of a value that is drawn.
const LEAST: f64 = 1e-3;

/// The value at a draw `at` from 0 to 1: half of the draws lie between `low` and `value`, the other half
/// between `value` and `high`, evenly by ratio. Below a thousandth of the value nothing is drawn, so that an end of 0 is
/// one more small end: a wider interval gives no narrower draws. Where the value is 0 they lie evenly by difference.
///
/// Counts are whole. A size whose value and ends are powers of two is one, since sizes of PCIe and network
/// packets come in no others.
pub fn between(value: Quantity, low: Quantity, high: Quantity, at: f64) -> Quantity {
    let (least, middle, most) = (low.base(), value.base(), high.base());
    let (from, to, part) =
        if at < 0.5 { (least, middle, at * 2.0) } else { (middle, most, (at - 0.5) * 2.0) };
    let from = if at < 0.5 { from.max(middle * LEAST) } else { from };
    let drawn = if from > 0.0 { from * (to / from).powf(part) } else { from + (to - from) * part };
    let power = |base: f64| base >= 1.0 && base.log2().fract() == 0.0;
    let drawn = match value.dimension() {
        Dimension::Bytes if power(least) && power(middle) && power(most) => drawn.log2().round().exp2(),
        Dimension::Count => drawn.round(),
        _ => drawn,
    };
    Quantity::from_base(drawn, value.dimension()).unwrap_or(value)
}

/// The value of a sorted sample below which a share of it lies, between two neighbours by their distance.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let (below, part) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * part
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_quantity::{Bytes, Time};

    #[test]
    fn each_stratum_is_drawn_once_and_names_do_not_move_each_other() {
        let mut drawn = strata(Seed::new(7), "a");
        assert_eq!(drawn, strata(Seed::new(7), "a"));
        assert_ne!(drawn, strata(Seed::new(7), "b"));
        assert_ne!(drawn, strata(Seed::new(8), "a"));
        drawn.sort_by(f64::total_cmp);
        for (stratum, at) in drawn.iter().enumerate() {
            assert_eq!((at * DRAWS as f64) as usize, stratum);
        }
    }

    #[test]
    fn half_of_the_draws_lie_on_each_side_of_the_value() {
        let ns = |n: u64| Quantity::Time(Time::from_ns(n));
        let at = |share| between(ns(100), ns(50), ns(400), share);
        assert_eq!((at(0.0), at(0.5)), (ns(50), ns(100)));
        assert!((at(0.75).base() / ns(200).base() - 1.0).abs() < 1e-9, "the middle by ratio");
        let zero = between(ns(0), ns(0), ns(20), 0.75);
        assert_eq!(zero, ns(10));
    }

    /// Whoever knows less is not told more: 0 is one more small end.
    #[test]
    fn a_wider_interval_gives_no_narrower_draws() {
        let ps = |n: u64| Quantity::Time(Time::from_ps(n));
        let lows = [0, 1, 1_000, 50_000, 400_000, 500_000];
        for step in 0..=20 {
            let at = f64::from(step) / 20.0;
            let drawn = lows.map(|low| between(ps(500_000), ps(low), ps(2_000_000), at).base());
            assert!(drawn.is_sorted(), "at {at} the lower ends {lows:?} give {drawn:?}");
            assert_eq!(drawn[0], drawn[1], "a picosecond changes nothing");
        }
    }

    #[test]
    fn packet_sizes_stay_powers_of_two_and_counts_whole() {
        let bytes = |n: u64| Quantity::Bytes(Bytes::new(n));
        for step in 0..20 {
            let at = f64::from(step) / 20.0;
            let Quantity::Bytes(size) = between(bytes(512), bytes(128), bytes(4096), at) else { panic!() };
            assert!(size.get().is_power_of_two());
            let Quantity::Count(_) =
                between(Quantity::Count(143), Quantity::Count(136), Quantity::Count(150), at)
            else {
                panic!()
            };
        }
    }

    #[test]
    fn quantiles_lie_between_neighbours() {
        let sorted = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert_eq!(quantile(&sorted, 0.5), 3.0);
        assert_eq!(quantile(&sorted, 0.1), 1.4);
        assert_eq!((quantile(&sorted, 0.0), quantile(&sorted, 1.0)), (1.0, 5.0));
    }
}
