//! Faults as values, drawn from a seed, and shrunk.

use offpath_fabric::Rng;
use offpath_quantity::Time;
use rand_core::RngCore;
use std::fmt;

/// What befalls a message between machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is lost.
    Loss,
    /// It comes later by this.
    Delay(Time),
    /// It comes twice.
    Duplication,
    /// It comes with a wrong checksum.
    Corruption,
}

/// One fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SystemFault {
    /// Messages between any machines meet trouble, so many in 1000.
    Network {
        /// What.
        trouble: Trouble,
        /// How often, in 1/1000.
        per_mille: u32,
        /// From when on.
        from: Time,
        /// Until when.
        until: Time,
    },
    /// Two machines do not hear each other.
    Partition {
        /// Their kinds and instances.
        between: [(String, u32); 2],
        /// From when on.
        from: Time,
        /// Until when.
        until: Time,
    },
    /// A role crashes and starts again.
    Crash {
        /// Which.
        role: String,
        /// Which instance.
        instance: u32,
        /// When.
        at: Time,
        /// How long after that it starts again.
        restart_after: Time,
    },
    /// A station takes longer.
    Slow {
        /// Its name.
        station: String,
        /// How many times as long.
        factor: u32,
        /// From when on.
        from: Time,
        /// Until when.
        until: Time,
    },
}

impl fmt::Display for SystemFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SystemFault::Network { trouble, per_mille, from, until } => {
                write!(f, "{trouble:?} of {per_mille}/1000 messages from {from} until {until}")
            }
            SystemFault::Partition { between: [(a, i), (b, j)], from, until } => {
                write!(f, "partition of {a}[{i}] and {b}[{j}] from {from} until {until}")
            }
            SystemFault::Crash { role, instance, at, restart_after } => {
                write!(f, "crash of {role}[{instance}] at {at}, back after {restart_after}")
            }
            SystemFault::Slow { station, factor, from, until } => {
                write!(f, "{station} {factor} times slower from {from} until {until}")
            }
        }
    }
}

/// What a backend can do to a system, and the system must bear.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Menu {
    /// Faults begin before this.
    pub horizon: Time,
    /// Pairs of machines that may be partitioned.
    pub partitions: Vec<[(String, u32); 2]>,
    /// Roles that may crash.
    pub crashes: Vec<(String, u32)>,
    /// Stations that may be slow.
    pub stations: Vec<String>,
    /// Most faults of a schedule.
    pub most: u32,
}

/// The faults of one run. Prints one a line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schedule {
    /// The faults.
    pub faults: Vec<SystemFault>,
}

impl fmt::Display for Schedule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.faults.iter().try_for_each(|fault| writeln!(f, "{fault}"))
    }
}

impl Schedule {
    /// The schedule of a seed.
    pub fn draw(seed: u64, menu: &Menu) -> Schedule {
        let mut random = Rng::new(seed, &["torture", "schedule"]);
        let mut below = |bound: u64| random.next_u64() % bound.max(1);
        let count = below(u64::from(menu.most) + 1);
        let mut faults = Vec::new();
        for _ in 0..count {
            let from = Time::from_ps(below(menu.horizon.ps()));
            let until = from + Time::from_ps(menu.horizon.ps() / 20 + below(menu.horizon.ps() / 3));
            let fault = match below(8) {
                0 | 1 if !menu.crashes.is_empty() => {
                    let (role, instance) = menu.crashes[below(menu.crashes.len() as u64) as usize].clone();
                    let restart_after = Time::from_us(100 + below(2000));
                    SystemFault::Crash { role, instance, at: from, restart_after }
                }
                2 if !menu.partitions.is_empty() => {
                    let between = menu.partitions[below(menu.partitions.len() as u64) as usize].clone();
                    SystemFault::Partition { between, from, until }
                }
                3 if !menu.stations.is_empty() => {
                    let station = menu.stations[below(menu.stations.len() as u64) as usize].clone();
                    SystemFault::Slow { station, factor: 2 + below(50) as u32, from, until }
                }
                kind => {
                    let trouble = match kind % 4 {
                        0 => Trouble::Loss,
                        1 => Trouble::Delay(Time::from_us(1 + below(100))),
                        2 => Trouble::Duplication,
                        _ => Trouble::Corruption,
                    };
                    SystemFault::Network { trouble, per_mille: 1 + below(200) as u32, from, until }
                }
            };
            faults.push(fault);
        }
        Schedule { faults }
    }
}

/// A smallest schedule that still fails: without any one of its faults, or with a shorter one, `fails`
/// is false. `fails` must be true of `schedule`.
pub fn shrink(schedule: &Schedule, mut fails: impl FnMut(&Schedule) -> bool) -> Schedule {
    let mut best = schedule.clone();
    loop {
        let mut smaller = false;
        let mut index = 0;
        while index < best.faults.len() {
            let mut without = best.clone();
            without.faults.remove(index);
            if fails(&without) {
                (best, smaller) = (without, true);
            } else {
                index += 1;
            }
        }
        for index in 0..best.faults.len() {
            while let Some(fault) = shorter(&best.faults[index]) {
                let mut other = best.clone();
                other.faults[index] = fault;
                if !fails(&other) {
                    break;
                }
                (best, smaller) = (other, true);
            }
        }
        if !smaller {
            return best;
        }
    }
}

/// The same fault for half as long, unless it is short already.
fn shorter(fault: &SystemFault) -> Option<SystemFault> {
    let mut fault = fault.clone();
    match &mut fault {
        SystemFault::Network { from, until, .. }
        | SystemFault::Partition { from, until, .. }
        | SystemFault::Slow { from, until, .. } => {
            let span = until.saturating_sub(*from);
            if span < Time::from_us(10) {
                return None;
            }
            *until = *from + Time::from_ps(span.ps() / 2);
        }
        SystemFault::Crash { .. } => return None,
    }
    Some(fault)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn menu() -> Menu {
        Menu {
            horizon: Time::from_ms(5),
            partitions: vec![[("client".into(), 0), ("server".into(), 0)]],
            crashes: vec![("soc".into(), 0)],
            stations: vec!["cpu".into()],
            most: 6,
        }
    }

    #[test]
    fn one_seed_draws_one_schedule() {
        let all: Vec<Schedule> = (0..200).map(|seed| Schedule::draw(seed, &menu())).collect();
        assert_eq!(all[7], Schedule::draw(7, &menu()));
        let of = |wanted: fn(&SystemFault) -> bool| {
            all.iter().flat_map(|s| &s.faults).filter(|f| wanted(f)).count()
        };
        assert!(of(|f| matches!(f, SystemFault::Crash { .. })) > 50);
        assert!(of(|f| matches!(f, SystemFault::Partition { .. })) > 20);
        assert!(of(|f| matches!(f, SystemFault::Slow { .. })) > 20);
        assert!(of(|f| matches!(f, SystemFault::Network { .. })) > 100);
    }

    #[test]
    fn shrinking_keeps_what_is_needed() {
        let schedule = (0..).map(|seed| Schedule::draw(seed, &menu())).find(|schedule| {
            schedule.faults.len() > 4
                && schedule.faults.iter().any(|f| matches!(f, SystemFault::Crash { .. }))
        });
        let schedule = schedule.expect("some seed draws one");
        let needs =
            |schedule: &Schedule| schedule.faults.iter().any(|f| matches!(f, SystemFault::Crash { .. }));
        let small = shrink(&schedule, needs);
        assert_eq!(small.faults.len(), 1);
        assert!(needs(&small));
    }
}
