//! Faults as values: what may happen to a crossing between machines, by a seeded schedule.

use crate::seed::{Generator, Seed, unit};
use offpath_quantity::Time;

/// A crossing that a fault may befall.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The machine and instance that the message leaves.
    pub from: (usize, u32),
    /// The machine and instance that it should reach.
    pub to: (usize, u32),
    /// When it crosses.
    pub at: Time,
}

/// What befalls a crossing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Nothing: it arrives.
    Deliver,
    /// It arrives later.
    Delay(Time),
    /// It is lost.
    Drop,
    /// It arrives twice.
    Duplicate,
    /// It arrives with a wrong check sum.
    Corrupt,
}

/// One rule of a schedule: in a span of time, between some machines, with a probability.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultRule {
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
    /// Between which machines, in either direction; `None` for all.
    pub between: Option<[(usize, u32); 2]>,
    /// How often, from 0 to 1.
    pub probability: f64,
    /// What happens then.
    pub fault: Fault,
}

/// A seeded schedule of faults. The first rule that strikes decides.
#[derive(Clone, Debug)]
pub struct Faults {
    rules: Vec<FaultRule>,
    draws: Generator,
}

impl Faults {
    /// A schedule of `rules` that draws below `seed`.
    pub fn new(rules: Vec<FaultRule>, seed: Seed) -> Faults {
        Faults { rules, draws: seed.child("faults").generator() }
    }

    /// A partition between two machines for a span of time.
    pub fn partition(from: Time, until: Time, between: [(usize, u32); 2]) -> FaultRule {
        FaultRule { from, until, between: Some(between), probability: 1.0, fault: Fault::Drop }
    }

    pub(crate) fn decide(&mut self, crossing: Crossing) -> Fault {
        for rule in &self.rules {
            let between = rule.between.is_none_or(|[a, b]| {
                (crossing.from, crossing.to) == (a, b) || (crossing.from, crossing.to) == (b, a)
            });
            if !between || crossing.at < rule.from || crossing.at >= rule.until {
                continue;
            }
            let unit = unit(&mut self.draws);
            if unit < rule.probability {
                return rule.fault;
            }
        }
        Fault::Deliver
    }
}
