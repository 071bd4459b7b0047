//! Joint samples of numbers that are known within an interval, as the planner draws them.

use crate::bench::Change;
use crate::reproduce::Uncertain;
use offpath_quantity::{Dimension, Quantity};
use offpath_twin::Seed;

/// Draws of a joint sample. Residuals widen each, so that fewer are enough than where they stand alone.
pub const DRAWS: usize = 48;

/// A Latin hypercube over the numbers: for each draw the changes to the profiles.
pub(crate) fn draws(uncertain: &[Uncertain]) -> Vec<Vec<Change>> {
    let mut all = vec![Vec::with_capacity(uncertain.len()); DRAWS];
    for one in uncertain {
        for (changes, at) in all.iter_mut().zip(strata(&one.name)) {
            let value = between(one.value, one.low, one.high, at);
            changes.push(Change { file: one.file.clone(), key: one.key.clone(), value });
        }
    }
    all
}

/// A number from 0 to 1 of each of [`DRAWS`] equal strata, in an order that the name decides.
fn strata(name: &str) -> Vec<f64> {
    let seed = Seed::new(1).child("sample").child(name);
    let unit = |index: usize| (seed.index(index as u64).value() >> 11) as f64 / (1u64 << 53) as f64;
    let mut order: Vec<usize> = (0..DRAWS).collect();
    for last in (1..DRAWS).rev() {
        order.swap(last, (unit(last) * (last + 1) as f64) as usize);
    }
    order
        .into_iter()
        .enumerate()
        .map(|(index, stratum)| (stratum as f64 + unit(DRAWS + index)) / DRAWS as f64)
        .collect()
}

/// Half of the draws lie below the value and half above it, evenly by ratio where no end is 0. Sizes that
/// are powers of two stay so: packets of PCIe and the network come in no others.
fn between(value: Quantity, low: Quantity, high: Quantity, at: f64) -> Quantity {
    let (least, middle, most) = (low.base(), value.base(), high.base());
    let (from, to, part) = if at < 0.5 { (least, middle, at * 2.0) } else { (middle, most, at * 2.0 - 1.0) };
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
pub(crate) fn quantile(sorted: &[f64], share: f64) -> f64 {
    let at = share * (sorted.len() - 1) as f64;
    let below = at.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (sorted[above] - sorted[below]) * at.fract()
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_quantity::{Bytes, Time};

    #[test]
    fn each_stratum_is_drawn_once_and_a_value_lies_in_the_middle() {
        let mut drawn = strata("a");
        assert_ne!(drawn, strata("b"));
        drawn.sort_by(f64::total_cmp);
        for (stratum, at) in drawn.iter().enumerate() {
            assert_eq!((at * DRAWS as f64) as usize, stratum);
        }
        let ns = |n: u64| Quantity::Time(Time::from_ns(n));
        assert_eq!(between(ns(100), ns(50), ns(400), 0.5), ns(100));
        let bytes = |n: u64| Quantity::Bytes(Bytes::new(n));
        let size = between(bytes(4096), bytes(1024), bytes(4096), 0.2);
        assert!(size == bytes(2048) || size == bytes(1024), "{size}");
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0, 5.0], 0.1), 1.4);
    }
}
