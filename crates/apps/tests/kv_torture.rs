//! The store under seeded faults on the twin.

mod common;

use offpath_apps::kv::Planted;
use offpath_apps::torture::store::{Plan, Seen, Violation, roles};
use offpath_apps::torture::{Menu, Schedule, shrink};
use offpath_fabric::World;
use offpath_route::Router;
use std::rc::Rc;

fn menu(plan: &Plan) -> Menu {
    let server = |machine: &str| (machine.to_string(), 0);
    Menu {
        horizon: plan.span(),
        partitions: vec![
            [("client".to_string(), 1), server("server")],
            [("client".to_string(), 2), server("server")],
        ],
        // A host that crashes loses its memory, which the store does not promise to survive.
        crashes: vec![("soc".to_string(), 0), ("client".to_string(), 0), ("client".to_string(), 3)],
        stations: vec!["soc.cpu".to_string(), "host.cpu".to_string()],
        most: 5,
    }
}

/// Runs a seed; the schedule is the seed's own, or another.
fn run(router: &Rc<Router>, plan: &Plan, schedule: &Schedule) -> Result<Seen, Violation> {
    let seen = Seen::default();
    let world = common::suffering(router, plan.seed, schedule);
    let run = world.run(roles(plan, &seen));
    let run = run.unwrap_or_else(|error| panic!("seed {}: {error}\n{schedule}", plan.seed));
    for outcome in run.outcomes {
        if let Some(Err(error)) = outcome.end.finished() {
            panic!("seed {}: {}: {error}\n{schedule}", plan.seed, outcome.name);
        }
    }
    seen.judge(plan).map(|()| seen)
}

fn seeds() -> u64 {
    std::env::var("OFFPATH_TORTURE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

#[test]
fn every_history_is_linearizable() {
    let router = common::router();
    let (mut operations, mut failed) = (0, 0);
    for seed in 0..seeds() {
        let plan = Plan::of(seed);
        let schedule = Schedule::draw(seed, &menu(&plan));
        match run(&router, &plan, &schedule) {
            Ok(seen) => {
                operations += seen.history().len();
                failed += seen.failed();
            }
            Err(violation) => {
                let small = shrink(&schedule, |other| run(&router, &plan, other).is_err());
                panic!("seed {seed} ({:?}): {violation}\n{small}", plan.options.placement);
            }
        }
    }
    println!("{} seeds, {operations} operations, {failed} ended in an error", seeds());
    // Faults that nobody notices would show nothing.
    assert!(failed > 0 && operations as u64 > 100 * seeds());
}

#[test]
fn one_seed_gives_one_history() {
    let router = common::router();
    for seed in [3, 17] {
        let plan = Plan::of(seed);
        let schedule = Schedule::draw(seed, &menu(&plan));
        let play = || run(&router, &plan, &schedule).expect("it is linearizable").history();
        assert_eq!(play(), play());
    }
}

#[test]
fn every_planted_bug_is_found() {
    let router = common::router();
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let found = (0..1000).find_map(|seed| {
            let mut plan = Plan::of(seed);
            plan.options.planted = Some(bug);
            let schedule = Schedule::draw(seed, &menu(&plan));
            run(&router, &plan, &schedule).err().map(|violation| (seed, plan, schedule, violation))
        });
        match found {
            Some((seed, plan, schedule, violation)) => {
                let small = shrink(&schedule, |other| run(&router, &plan, other).is_err());
                println!("{bug:?}: seed {seed}, {:?}: {violation}", plan.options.placement);
                print!("{small}");
                assert!(small.faults.len() <= schedule.faults.len());
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found within 1,000 seeds: {missed:?}");
}
