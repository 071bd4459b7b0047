//! What the tests on the twin share.
#![allow(dead_code)]

use offpath_apps::torture::{Fault, Schedule, Trouble};
use offpath_fabric::RoleName;
use offpath_profile::{Library, Request};
use offpath_quantity::Time;
use offpath_route::Router;
use offpath_twin::world::{Crash, Crashing, SlowStation};
use offpath_twin::{Crossing, Faults, Retransmission, Rule, TwinWorld};
use std::rc::Rc;

/// The routes of the shipped system.
pub fn router() -> Rc<Router> {
    let request = Request { device: "bluefield2", ..Request::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Rc::new(Router::new(&system).expect("a shipped profile has routes"))
}

/// A twin that suffers a schedule.
pub fn suffering(router: &Rc<Router>, seed: u64, schedule: &Schedule) -> TwinWorld {
    let machine = |name: &str| {
        router
            .system()
            .machines
            .iter()
            .position(|machine| machine.role == name)
            .expect("a machine of the menu")
    };
    let mut world = TwinWorld::on(router.clone(), seed)
        .with_retransmission(Retransmission { timeout: Time::from_us(50), retries: 7 });
    for fault in &schedule.faults {
        world = match fault.clone() {
            Fault::Network { trouble, per_mille, from, until } => {
                let crossing = match trouble {
                    Trouble::Loss => Crossing::Drop,
                    Trouble::Delay(by) => Crossing::Delay(by),
                    Trouble::Duplication => Crossing::Duplicate,
                    Trouble::Corruption => Crossing::Corrupt,
                };
                let probability = f64::from(per_mille) / 1000.0;
                world.with_faults(vec![Rule { from, until, between: None, probability, crossing }])
            }
            Fault::Partition { between: [(a, i), (b, j)], from, until } => {
                let between = [(machine(&a), i), (machine(&b), j)];
                world.with_faults(vec![Faults::partition(from, until, between)])
            }
            Fault::Crash { role, instance, at, restart_after } => world.with_crash(Crash {
                what: Crashing::Role(RoleName { role, instance }),
                at,
                restart_after: Some(restart_after),
            }),
            Fault::Slow { station, factor, from, until } => world.with_slow_station(SlowStation {
                station,
                instance: 0,
                factor: f64::from(factor),
                from,
                until,
            }),
        };
    }
    world
}
