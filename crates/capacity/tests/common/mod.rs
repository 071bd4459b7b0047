//! Problems that tests and benches share.
#![allow(dead_code)]

use offpath_capacity::{Activity, CapacityStation, MixProblem};

/// Numbers in `0..1` from a seed (SplitMix64), so that a problem is the same everywhere.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// Five activities over forty stations with demands from 1 ps to 1 ms.
pub fn five_by_forty(seed: u64) -> MixProblem {
    let mut draws = Draws(seed);
    let mut problem = MixProblem::default();
    for station in 0..40 {
        problem
            .stations
            .push(CapacityStation::new(format!("station {station:02}"), 1.0 + (draws.next() * 31.0).floor()));
    }
    for activity in 0..5 {
        let mut built = Activity::new(format!("activity {activity}"));
        // Each activity is fast or slow as a whole, as designs on NICs and on cores are.
        let slowest_exponent = -8.0 + 4.0 * draws.next();
        for station in 0..40 {
            if draws.next() < 0.6 {
                let seconds = 10f64.powf(slowest_exponent - 4.0 * draws.next());
                built = built.demand(format!("station {station:02}"), seconds);
            }
        }
        problem.activities.push(built);
    }
    problem
}
