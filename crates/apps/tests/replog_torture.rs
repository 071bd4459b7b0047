//! The replicated log under seeded faults on the twin.

mod common;

use offpath_apps::replog::Planted;
use offpath_apps::torture::log::{Plan, Seen, Violation, roles};
use offpath_apps::torture::{Menu, Schedule, shrink};
use offpath_fabric::{RoleName, World};
use offpath_route::Router;
use std::rc::Rc;

/// Two backups. No path runs between two machines of one kind, so the second is on a client machine.
fn chain() -> Vec<RoleName> {
    vec![RoleName::new("backup", 0), RoleName::new("tail", 0)]
}

fn menu(plan: &Plan) -> Menu {
    let machine = |machine: &str| (machine.to_string(), 0);
    Menu {
        horizon: plan.span(),
        partitions: vec![[machine("backup"), machine("server")], [machine("backup"), machine("client")]],
        crashes: ["host", "soc", "backup", "tail"].map(machine).to_vec(),
        stations: vec!["soc.cpu".to_string(), "host.cpu".to_string()],
        most: 5,
    }
}

fn run(router: &Rc<Router>, plan: &Plan, schedule: &Schedule) -> Result<Seen, Violation> {
    let seen = Seen::default();
    let world = common::suffering(router, plan.seed, schedule).with_placement("tail", "client");
    let run = world.run(roles(plan, &seen));
    run.unwrap_or_else(|error| panic!("seed {}: {error}\n{schedule}", plan.seed));
    seen.judge(plan).map(|()| seen)
}

/// The seed's own faults, and those of its plan.
fn schedule_of(plan: &Plan) -> Schedule {
    let mut schedule = Schedule::draw(plan.seed, &menu(plan));
    schedule.faults.extend(plan.loss());
    schedule
}

fn seeds() -> u64 {
    std::env::var("OFFPATH_TORTURE_SEEDS").ok().and_then(|text| text.parse().ok()).unwrap_or(1000)
}

#[test]
fn nothing_acknowledged_is_lost_and_replicas_are_equal() {
    let router = common::router();
    let (mut writes, mut acknowledged) = (0, 0);
    for seed in 0..seeds() {
        let plan = Plan::of(seed, chain());
        let schedule = schedule_of(&plan);
        match run(&router, &plan, &schedule) {
            Ok(seen) => {
                let counts = seen.counts();
                writes += counts.0;
                acknowledged += counts.1;
            }
            Err(violation) => {
                let small = shrink(&schedule, |other| run(&router, &plan, other).is_err());
                panic!(
                    "seed {seed} ({:?}): {violation}\n{schedule}shrunk:\n{small}",
                    plan.options.alternative
                );
            }
        }
    }
    println!("{} seeds, {writes} writes, {acknowledged} acknowledged", seeds());
    // Faults that never interrupt a write would show nothing.
    assert!(acknowledged < writes && acknowledged as u64 > 30 * seeds());
}

#[test]
fn one_seed_gives_one_log() {
    let router = common::router();
    for seed in [5, 11] {
        let plan = Plan::of(seed, chain());
        let schedule = schedule_of(&plan);
        let play = || run(&router, &plan, &schedule).expect("nothing is lost").files();
        let files = play();
        assert_eq!(files.len(), 3);
        assert_eq!(files, play());
    }
}

#[test]
fn every_planted_bug_is_found() {
    let router = common::router();
    let mut missed = Vec::new();
    for bug in Planted::ALL {
        let found = (0..1000).find_map(|seed| {
            let mut plan = Plan::of(seed, chain());
            plan.options.planted = Some(bug);
            let schedule = schedule_of(&plan);
            run(&router, &plan, &schedule).err().map(|violation| (seed, plan, schedule, violation))
        });
        match found {
            Some((seed, plan, schedule, violation)) => {
                let small = shrink(&schedule, |other| run(&router, &plan, other).is_err());
                println!("{bug:?}: seed {seed}, {:?}: {violation}", plan.options.alternative);
                print!("{small}");
                assert!(small.faults.len() <= schedule.faults.len());
            }
            None => missed.push(bug),
        }
    }
    assert!(missed.is_empty(), "not found within 1,000 seeds: {missed:?}");
}
