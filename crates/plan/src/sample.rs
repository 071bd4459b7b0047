//! Seeded joint samples of numbers that are known as an interval.

use crate::factor::Factor;
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

/// By how much more often something happens than not.
fn odds(share: f64) -> f64 {
    share / (1.0 - share)
}

fn of_odds(odds: f64) -> f64 {
    odds / (1.0 + odds)
}

/// [`between`] of a share, evenly by the ratio of its odds: the draws of a share are what those of the rest leave.
fn share_between(value: Quantity, low: Quantity, high: Quantity, at: f64) -> Quantity {
    let (least, middle, most) = (low.base(), value.base(), high.base());
    if middle <= 0.0 || middle >= 1.0 || most > 1.0 {
        return between(value, low, high, at);
    }
    let own = odds(middle);
    let (least, most) = (odds(least).max(own * LEAST), if most < 1.0 { odds(most) } else { own / LEAST });
    let (from, to, part) = if at < 0.5 { (least, own, at * 2.0) } else { (own, most, (at - 0.5) * 2.0) };
    Quantity::from_base(of_odds(from * (to / from).powf(part)), value.dimension()).unwrap_or(value)
}

/// Of what the draws of a joint sample take a number's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drawn {
    /// Of its interval.
    Interval,
    /// From two thirds of it to one and a half times it: the design gives no interval, and who gives none knows no more
    /// than who does.
    Half,
    /// None: it is held as it is.
    Held,
}

impl Drawn {
    pub(crate) fn of(factor: &Factor) -> Drawn {
        match (factor.is_open(), factor.is_estimate()) {
            (true, _) => Drawn::Interval,
            (_, true) => Drawn::Half,
            _ => Drawn::Held,
        }
    }
}

/// The step by which a number without an interval is moved, to see whether a figure rests on it.
const STEP: f64 = 1.05;

/// The same for a guess, and for what a design states without an interval: by as much as a number of another
/// card is taken to be off. What binds only beyond a small step would else pass for a figure that rests on
/// nobody's guess.
const STEP_OF_GUESS: f64 = 1.5;

/// The values at which a number is looked at: the ends of its interval, or a step away where none is stated.
pub(crate) fn looked_at(factor: &Factor) -> [Quantity; 2] {
    if let Some((low, high)) = factor.interval.filter(|(low, high)| low != high) {
        return [low, high];
    }
    // An interval without room claims that a guess is exact, and says nothing of what rests on it.
    let base = factor.value.base();
    let is_doubted = factor.is_doubted();
    let step = if is_doubted { STEP_OF_GUESS } else { STEP };
    let moved = match factor.value.dimension() {
        // A share and what it leaves of 1 are one guess, so that what is moved is the odds.
        Dimension::Ratio if factor.is_share && base > 0.0 && base < 1.0 => {
            [step, 1.0 / step].map(|by| of_odds(odds(base) * by))
        }
        // One more of what somebody counted as many may bind nothing where half of it does.
        Dimension::Count if is_doubted => {
            [(base * STEP_OF_GUESS).ceil().max(base + 1.0), (base / STEP_OF_GUESS).floor()]
        }
        Dimension::Count => [base + 1.0, base - 1.0],
        // A flag is 0 or 1, and who doubts one looks at the other. One that was measured is taken as it is; a share of 1, which
        // may be less, is no flag, nor is how much work is done.
        Dimension::Ratio if base == 1.0 && !factor.is_work => {
            [base / STEP, if is_doubted { 0.0 } else { base }]
        }
        Dimension::Ratio if base == 0.0 => [if is_doubted { 1.0 } else { 0.0 }, 0.0],
        _ => [base * step, base / step],
    };
    // Beyond the range that a profile may hold there is nothing to look at.
    let is_ratio = factor.value.dimension() == Dimension::Ratio && base <= 1.0;
    // What a design multiplies by may be more than 1 where it is less; what a profile gives is a share.
    let is_share = is_ratio && (factor.is_share || !factor.is_estimate());
    // What is set in place of another value is looked at there too.
    let replaced = factor.replaced.map_or(base, Quantity::base);
    let moved = [moved[0].max(replaced), moved[1].min(replaced)];
    [moved[1], moved[0]].map(|value| {
        let value = if is_share { value.min(1.0) } else { value };
        Quantity::from_base(value, factor.value.dimension()).unwrap_or(factor.value)
    })
}

/// The numbers of a system that are drawn, each with its places in the draws.
pub(crate) struct JointSample {
    drawn: Vec<(Factor, Vec<f64>)>,
}

impl JointSample {
    /// Of those of `factors` that are drawn. Numbers that `name` gives one name lie at the same place in every draw, whatever
    /// system they are of, and so do the user's guesses of one processor's work.
    pub fn new(
        factors: impl IntoIterator<Item = Factor>,
        seed: Seed,
        name: impl Fn(&Factor) -> String,
    ) -> JointSample {
        let drawn = factors.into_iter().filter(|factor| Drawn::of(factor) != Drawn::Held);
        let placed = drawn.map(|factor| {
            let Some(station) = &factor.guessed_of else {
                let places = strata(seed, &name(&factor));
                return (factor, places);
            };
            let mut places = strata(seed, &format!("guesses of {station}"));
            // Who takes a time, or operations, for too few takes a rate for too high.
            if matches!(
                factor.value.dimension(),
                Dimension::BitRate | Dimension::OpRate | Dimension::Frequency
            ) {
                places.iter_mut().for_each(|place| *place = 1.0 - *place);
            }
            (factor, places)
        });
        JointSample { drawn: placed.collect() }
    }

    /// The numbers with their values in a draw.
    pub fn at(&self, draw: usize) -> Vec<(&Factor, Quantity)> {
        let value = |(factor, places): &(Factor, Vec<f64>)| {
            let [low, high] = looked_at(factor);
            let draw_between = if factor.is_share { share_between } else { between };
            draw_between(factor.value, low, high, places[draw])
        };
        self.drawn.iter().map(|one| (&one.0, value(one))).collect()
    }
}

/// Of which mechanism each draw of a joint sample is. Half of the draws keep the base mechanism, the others are shared by
/// those that the evidence leaves open: nothing that is published makes one of these more likely than another.
pub(crate) struct MechanismSample(Vec<f64>);

impl MechanismSample {
    pub fn new(seed: Seed) -> MechanismSample {
        MechanismSample(strata(seed, "mechanism"))
    }

    /// Which of so many `others` a draw is of; none of the base.
    pub fn at(&self, draw: usize, others: usize) -> Option<usize> {
        other_mechanism(self.0[draw], others)
    }
}

/// Which of so many `others` a draw at a place from 0 to 1 is of; none of the base, which the lower half is of.
pub fn other_mechanism(at: f64, others: usize) -> Option<usize> {
    let which = ((at - 0.5) * 2.0 * others as f64) as usize;
    (at >= 0.5 && others > 0).then(|| which.min(others - 1))
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

    /// A hit ratio and the miss ratio that it leaves are one guess.
    #[test]
    fn a_share_and_the_rest_are_drawn_alike() {
        let ratio = |share: f64| Quantity::from_base(share, Dimension::Ratio).expect("it is one");
        for (value, low, high) in [(0.99, 0.5, 0.995), (0.5, 0.0, 1.0), (0.1, 0.1, 0.4)] {
            for step in 0..=20 {
                let at = f64::from(step) / 20.0;
                let one = share_between(ratio(value), ratio(low), ratio(high), at).base();
                let rest =
                    share_between(ratio(1.0 - value), ratio(1.0 - high), ratio(1.0 - low), 1.0 - at).base();
                assert!((one + rest - 1.0).abs() < 1e-9, "{value} at {at}: {one} and {rest}");
                assert!((low - 1e-9..=high + 1e-9).contains(&one), "{value} at {at}: {one}");
            }
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
