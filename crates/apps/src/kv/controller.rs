//! Splits a client's gets between two placements from what it sees of them.

use super::{KvError, Placement};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};

/// Splits gets between a placement that is better while it keeps up, and another.
///
/// It knows no rate at which to switch. Where the first placement has room its gets are faster, and
/// its share grows; where its queue makes them slower than the second's, its share shrinks. At rest
/// both take equally long (Wardrop 1952), which in a closed loop keeps the first one just full. Every
/// session of a client shares one splitter; clients need not talk to each other.
#[derive(Debug)]
pub struct Splitter {
    /// Each placement, and the share of it and all before it in 1/65536.
    upto: Vec<(Placement, Cell<u32>)>,
    fixed: bool,
    window: RefCell<[Sums; 2]>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    count: u64,
    time: u64,
}

const WHOLE: u32 = 1 << 16;
/// Gets after which the share is looked at again: few enough to settle soon, enough for a mean.
const WINDOW: u64 = 64;
/// A share that is always tried, so that a change is seen.
const LEAST: u32 = WHOLE / 64;

impl Splitter {
    /// One that begins with equal shares.
    pub fn new(first: Placement, second: Placement) -> Splitter {
        let upto = vec![(first, Cell::new(WHOLE / 2)), (second, Cell::new(WHOLE))];
        Splitter { upto, fixed: false, window: RefCell::default() }
    }

    /// One whose shares stay. They need not add up to one; refused where they are negative, not numbers,
    /// or nothing at all.
    pub fn fixed(shares: &[(Placement, f64)]) -> Result<Splitter, KvError> {
        let total: f64 = shares.iter().map(|(_, share)| share).sum();
        if let Some((placement, share)) = shares.iter().find(|(_, share)| !share.is_finite() || *share < 0.0)
        {
            return Err(KvError::Share { placement: Some(*placement), share: share.to_string() });
        }
        if !total.is_finite() || total <= 0.0 {
            return Err(KvError::Share { placement: None, share: total.to_string() });
        }
        let mut sum = 0.0;
        let upto = shares.iter().map(|(placement, share)| {
            sum += share / total;
            (*placement, Cell::new((sum * f64::from(WHOLE)).round() as u32))
        });
        Ok(Splitter { upto: upto.collect(), fixed: true, window: RefCell::default() })
    }

    /// The placements that it chooses from.
    pub fn placements(&self) -> impl Iterator<Item = Placement> {
        self.upto.iter().map(|(placement, _)| *placement)
    }

    /// The placement of the next get, by a random `draw`.
    pub fn choose(&self, draw: u64) -> Placement {
        let draw = (draw >> 48) as u32;
        let found = self.upto.iter().find(|(_, upto)| draw < upto.get());
        // The last share ends at the whole, whatever the others' rounding is.
        found.or(self.upto.last()).map_or(Placement::SplitOneSided, |(placement, _)| *placement)
    }

    /// Tells how long a get took.
    pub fn observe(&self, placement: Placement, took: Time) {
        if self.fixed {
            return;
        }
        let mut window = self.window.borrow_mut();
        let sums = &mut window[usize::from(placement != self.upto[0].0)];
        sums.count += 1;
        sums.time += took.ps();
        let [first, second] = *window;
        if first.count + second.count < WINDOW || first.count == 0 || second.count == 0 {
            return;
        }
        *window = [Sums::default(); 2];
        let (one, other) = ((first.time / first.count) as i64, (second.time / second.count) as i64);
        // A step as large as the difference is, at most a 16th of the whole.
        let step = (other - one) * i64::from(WHOLE / 16) / (one + other).max(1);
        let share = i64::from(self.upto[0].1.get()) + step;
        self.upto[0].1.set(share.clamp(LEAST.into(), (WHOLE - LEAST).into()) as u32);
    }

    /// The first placement's share, from 0 to 1.
    pub fn share(&self) -> f64 {
        self.upto.first().map_or(0.0, |(_, upto)| f64::from(upto.get()) / f64::from(WHOLE))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Whatever the two take, the share settles where the queues make them equal.
        #[test]
        fn it_settles_where_both_take_equally_long(capacity in 0.1f64..0.9, seed in any::<u64>()) {
            let splitter = Splitter::new(Placement::SocCacheSend, Placement::SplitOneSided);
            let mut draw = seed | 1;
            for _ in 0..200_000 {
                draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                // The first takes 4 us up to its capacity and far more beyond it; the second 6 us.
                let over = (splitter.share() - capacity).max(0.0);
                match splitter.choose(draw) {
                    Placement::SplitOneSided => splitter.observe(Placement::SplitOneSided, Time::from_us(6)),
                    first => splitter.observe(first, Time::from_ps(4_000_000 + (over * 1e8) as u64)),
                }
            }
            prop_assert!((splitter.share() - capacity - 0.02).abs() < 0.03, "{} {capacity}", splitter.share());
        }
    }

    #[test]
    fn fixed_shares_are_met_and_wrong_ones_refused() {
        let shares = [(Placement::SocCacheRead, 76.0), (Placement::SocCacheSend, 24.0)];
        let splitter = Splitter::fixed(&shares).expect("they are shares");
        let drawn = (0..1u64 << 16).map(|draw| splitter.choose(draw << 48));
        let by_reads = drawn.filter(|placement| *placement == Placement::SocCacheRead).count();
        assert_eq!(by_reads, 49_807);
        for wrong in [
            &[][..],
            &[(Placement::SplitOneSided, 0.0)],
            &[(Placement::SplitOneSided, -1.0)],
            &[(Placement::SplitOneSided, f64::NAN)],
        ] {
            assert!(matches!(Splitter::fixed(wrong), Err(KvError::Share { .. })), "{wrong:?}");
        }
    }
}
