//! The benches run, and what they measure is right.

use offpath_quantity::Time;

#[path = "../benches/common/mod.rs"]
mod common;

#[test]
fn the_tandem_queue_takes_the_time_of_theory() {
    let (events, mean_us) = common::tandem(200_000);
    assert_eq!(events, 600_000);
    let theory = 2.0 / (1.0 / common::SERVICE_US - 1.0 / common::ARRIVAL_US);
    assert!((mean_us / theory - 1.0).abs() < 0.05, "{mean_us} us where theory says {theory}");
}

#[test]
fn a_small_read_costs_few_events() {
    let observed = common::closed_loop(Time::from_us(100));
    assert!(observed.completed > 1000 && observed.events_per_operation < 4.5, "{observed:?}");
}
