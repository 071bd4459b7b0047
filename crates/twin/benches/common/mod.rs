//! What the benches measure and tests run in small.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation, Router, Verb};
use offpath_twin::{Arrivals, EventQueue, Generator, Load, LoadObservation, Seed, run};
use rand_core::RngCore;
use std::collections::VecDeque;
use std::sync::Arc;

/// A closed loop of 64 B READs with 512 in flight over `window`, with statistics on.
pub fn closed_loop(window: Time) -> LoadObservation {
    let system =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    let router = Arc::new(Router::new(&system).unwrap());
    let path = router.path("client-soc").unwrap();
    let route = router.route(&PathOperation::new(Verb::Read, path, Bytes::new(64))).unwrap();
    let load = Load {
        mix: vec![(Arc::new(route), 1.0)],
        arrivals: Arrivals::Closed { in_flight: 512 },
        warm_up: Time::from_us(20),
        window,
        seed: Seed::new(1),
        faults: None,
    };
    run(&router, &load).unwrap()
}

/// The tandem queue that the rivals run too: Poisson arrivals, 1 us apart in the mean, at two
/// exponential servers of 0.8 us in the mean, one after the other.
pub const ARRIVAL_US: f64 = 1.0;
/// Mean service time of either server.
pub const SERVICE_US: f64 = 0.8;

#[derive(Clone, Copy)]
enum Event {
    Arrives,
    LeavesFirst,
    LeavesSecond,
}

fn exponential(generator: &mut Generator, mean_us: f64) -> Time {
    let unit = (generator.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    Time::from_ps((-(1.0 - unit).ln() * mean_us * 1e6) as u64)
}

/// Runs `customers` through the tandem queue; returns the events and the mean time in the system in
/// microseconds, which is 8 in theory.
pub fn tandem(customers: u64) -> (u64, f64) {
    let mut draws = Seed::new(1).generator();
    let mut queue = EventQueue::new();
    let (mut first, mut second) = (VecDeque::new(), VecDeque::new());
    let (mut arrived, mut events, mut total) = (0, 0, 0.0);
    queue.push(exponential(&mut draws, ARRIVAL_US), Event::Arrives);
    while let Some((now, event)) = queue.pop() {
        events += 1;
        match event {
            Event::Arrives => {
                arrived += 1;
                if arrived < customers {
                    queue.push(now + exponential(&mut draws, ARRIVAL_US), Event::Arrives);
                }
                first.push_back(now);
                if first.len() == 1 {
                    queue.push(now + exponential(&mut draws, SERVICE_US), Event::LeavesFirst);
                }
            }
            Event::LeavesFirst => {
                second.extend(first.pop_front());
                if !first.is_empty() {
                    queue.push(now + exponential(&mut draws, SERVICE_US), Event::LeavesFirst);
                }
                if second.len() == 1 {
                    queue.push(now + exponential(&mut draws, SERVICE_US), Event::LeavesSecond);
                }
            }
            Event::LeavesSecond => {
                let came = second.pop_front().expect("a customer leaves");
                total += (now - came).as_us();
                if !second.is_empty() {
                    queue.push(now + exponential(&mut draws, SERVICE_US), Event::LeavesSecond);
                }
            }
        }
    }
    (events, total / customers as f64)
}

/// Medians of `runs` runs: events per second of the tandem queue.
#[allow(dead_code, reason = "the smoke test measures nothing")]
pub fn median(mut figures: Vec<f64>) -> f64 {
    figures.sort_by(f64::total_cmp);
    figures[figures.len() / 2]
}
