//! Cases with known answers, and every error.

use std::collections::BTreeMap;
use std::time::Instant;

use offpath_capacity::{
    Activity, CapacityError, Constraint, Cost, Objective, Pool, Problem, Solution, Station,
};

mod common;

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
}

fn names(solution: &Solution) -> Vec<String> {
    solution.binding.iter().map(|binding| binding.constraint.to_string()).collect()
}

/// The card of the crate's example, where A5 also takes a context for a short host read.
fn contested() -> Problem {
    Problem {
        stations: vec![Station::new("contexts", 140.0), Station::new("soc cores", 8.0)],
        activities: vec![
            Activity::new("A4").demand("contexts", 2.4e-6),
            Activity::new("A5").demand("soc cores", 450e-9).demand("contexts", 1.4e-6),
        ],
        ..Problem::default()
    }
}

fn packet_cores() -> Problem {
    Problem {
        pools: vec![Pool {
            name: "cores".into(),
            shared: 157e6,
            reserved: BTreeMap::from([("host".into(), 19e6), ("soc".into(), 19e6)]),
        }],
        activities: vec![
            Activity::new("to host").pool_demand("cores", "host", 1.0),
            Activity::new("to soc").pool_demand("cores", "soc", 1.0),
        ],
        ..Problem::default()
    }
}

#[test]
fn a_mix_fills_both_stations_and_prices_them() {
    let mix = contested().solve_with_gains(&Objective::Throughput).unwrap();
    let a5 = 8.0 / 450e-9;
    let a4 = (140.0 - 1.4e-6 * a5) / 2.4e-6;
    near(mix.rates["A4"], a4);
    near(mix.rates["A5"], a5);
    assert!(mix.unique);
    assert_eq!(names(&mix), ["contexts", "soc cores"]);
    near(mix.binding[0].shadow_price.unwrap(), 1.0 / 2.4e-6);
    near(mix.binding[1].shadow_price.unwrap(), (1.0 - 1.4 / 2.4) / 450e-9);
    near(mix.binding[0].gain_percent_for_10_percent_more.unwrap(), 14.0 / 2.4e-6 / mix.total * 100.0);
    near(mix.utilization[&Constraint::Station("contexts".into())], 1.0);
}

#[test]
fn one_endpoint_reaches_the_shared_and_its_own_part_and_two_reach_all() {
    let problem = packet_cores();
    let host = problem.alone("to host").unwrap();
    near(host.total, 176e6);
    assert_eq!(
        names(&host),
        ["cores (reserved for host)", "cores (shared)"].into_iter().rev().collect::<Vec<_>>()
    );
    let both = problem.solve(&Objective::Throughput).unwrap();
    near(both.total, 195e6);
    assert!(!both.unique, "the shared part can go to either endpoint");
    assert_eq!(both.binding.len(), 3);
    assert!(
        both.binding
            .iter()
            .all(|binding| binding.shadow_price.is_some_and(|price| (price - 1.0).abs() < 1e-9))
    );
    let greedy = problem.solve(&Objective::Greedy(vec!["to soc".into(), "to host".into()])).unwrap();
    near(greedy.rates["to soc"], 176e6);
    near(greedy.rates["to host"], 19e6);
}

#[test]
fn a_class_that_its_pool_does_not_name_has_the_shared_part_alone() {
    let problem = Problem {
        pools: vec![Pool {
            name: "cores".into(),
            shared: 100.0,
            reserved: BTreeMap::from([("host".into(), 10.0), ("soc".into(), 30.0)]),
        }],
        activities: vec![
            Activity::new("to host").pool_demand("cores", "host", 1.0),
            Activity::new("one").pool_demand("cores", "other", 1.0),
            Activity::new("two").pool_demand("cores", "other", 2.0),
            Activity::new("far").pool_demand("cores", "further", 4.0),
        ],
        ..Problem::default()
    };
    near(problem.alone("to host").unwrap().total, 110.0);
    near(problem.alone("one").unwrap().total, 100.0);
    near(problem.alone("two").unwrap().total, 50.0);
    near(problem.alone("far").unwrap().total, 25.0);
    // Activities of one class and those of another share it, each with its own operations.
    let shares = |all: &[(&str, f64)]| {
        let shares = all.iter().map(|&(name, share)| (name.to_string(), share)).collect();
        problem.solve(&Objective::Shares(shares)).unwrap()
    };
    near(shares(&[("one", 1.0), ("two", 1.0)]).total, 100.0 / 1.5);
    near(shares(&[("one", 1.0), ("far", 3.0)]).total, 100.0 / (0.25 + 3.0));
    let mix = shares(&[("one", 1.0), ("to host", 1.0)]);
    near(mix.total, 110.0);
    assert_eq!(names(&mix), ["cores (shared)", "cores (reserved for host)"]);
    let best = problem.solve(&Objective::Throughput).unwrap();
    near(best.total, 110.0);
    near(best.rates["to host"] + best.rates["one"], 110.0);
    let of_other = |constraint: &Constraint| matches!(constraint, Constraint::PoolReserved { class, .. } if class == "other" || class == "further");
    assert!(!best.utilization.keys().any(of_other), "{:?}", best.utilization);
}

#[test]
fn a_pool_without_shared_part_holds_each_class_to_its_own() {
    let mut problem = packet_cores();
    problem.pools[0].shared = 0.0;
    near(problem.alone("to host").unwrap().total, 19e6);
    let both = problem.solve(&Objective::Throughput).unwrap();
    near(both.total, 38e6);
    assert!(both.unique);
    assert_eq!(names(&both), ["cores (reserved for host)", "cores (reserved for soc)"]);
}

#[test]
fn least_cost_uses_the_cheap_activity_until_it_is_full() {
    let problem = contested();
    let cost = Cost::Station("soc cores".into());
    let solution = problem.solve_with_gains(&Objective::LeastCost { cost, load: 60e6 }).unwrap();
    near(solution.total, 60e6);
    // A4 alone stops at 58.33 M/s; each A5 frees 1.0 us of context.
    let a5 = (2.4e-6 * 60e6 - 140.0) / 1.0e-6;
    near(solution.rates["A5"], a5);
    near(solution.objective, a5 * 450e-9);
    assert_eq!(names(&solution), ["contexts", "total load"]);
    assert!(solution.binding[0].shadow_price.unwrap() > 0.0);
    assert!(solution.binding[1].shadow_price.unwrap() < 0.0);
    near(solution.binding[0].gain_percent_for_10_percent_more.unwrap(), 100.0);
}

#[test]
fn a_load_with_room_is_met_at_no_cost() {
    let cost = Cost::Station("soc cores".into());
    let solution = contested().solve_with_gains(&Objective::LeastCost { cost, load: 10e6 }).unwrap();
    assert_eq!(solution.rates["A5"], 0.0);
    assert_eq!(solution.objective, 0.0);
    assert_eq!(solution.binding[0].gain_percent_for_10_percent_more, None);
}

#[test]
fn limits_bind_by_name() {
    let mut problem = contested();
    problem.activities[1] = problem.activities[1].clone().resource("host CPU", 1e-6);
    problem.limits.insert("host CPU".into(), 2.0);
    let solution = problem.solve(&Objective::Throughput).unwrap();
    near(solution.rates["A5"], 2e6);
    assert_eq!(names(&solution), ["contexts", "limit of host CPU"]);
}

#[test]
fn tied_stations_have_no_unique_price_and_gain_nothing_alone() {
    let problem = Problem {
        stations: vec![Station::new("in", 1.0), Station::new("out", 1.0)],
        activities: vec![
            Activity::new("a").demand("in", 1e-6).demand("out", 1e-6),
            Activity::new("b").demand("in", 2e-6).demand("out", 2e-6),
        ],
        ..Problem::default()
    };
    for solution in [
        problem.solve_with_gains(&Objective::Throughput).unwrap(),
        problem.solve_with_gains(&Objective::Shares(BTreeMap::from([("a".into(), 1.0)]))).unwrap(),
    ] {
        near(solution.total, 1e6);
        assert_eq!(names(&solution), ["in", "out"]);
        for binding in &solution.binding {
            assert_eq!(binding.shadow_price, None);
            assert_eq!(binding.gain_percent_for_10_percent_more, Some(0.0));
        }
    }
}

#[test]
fn a_small_activity_on_its_own_station_is_exact_beside_a_huge_one() {
    for ratio in [1e-3, 1e-6, 1e-9] {
        let problem = Problem {
            stations: vec![Station::new("fast", 1.0), Station::new("slow", 1.0)],
            activities: vec![
                Activity::new("huge").demand("fast", 1e-12),
                Activity::new("small").demand("slow", 1e-12 / ratio),
            ],
            ..Problem::default()
        };
        let solution = problem.solve(&Objective::Throughput).unwrap();
        near(solution.rates["huge"], 1e12);
        near(solution.rates["small"], 1e12 * ratio);
        assert_eq!(solution.binding.len(), 2);
        near(solution.binding[1].shadow_price.unwrap(), 1e12 * ratio);
    }
}

#[test]
fn an_impossible_load_names_the_station_and_the_greatest_load() {
    let problem = contested();
    let greatest = problem.solve(&Objective::Throughput).unwrap().total;
    let cost = Cost::Station("soc cores".into());
    let error = problem.solve(&Objective::LeastCost { cost: cost.clone(), load: 100e6 }).unwrap_err();
    let CapacityError::LoadTooHigh { load, greatest: found, binding } = &error else { panic!("{error}") };
    assert_eq!(*load, 100e6);
    near(*found, greatest);
    assert_eq!(binding, &["contexts", "soc cores"]);
    assert!(error.to_string().contains("contexts and soc cores"), "{error}");
    near(problem.solve(&Objective::LeastCost { cost, load: greatest }).unwrap().total, greatest);
}

#[test]
fn errors_name_the_cause() {
    let say = |problem: &Problem, objective: &Objective| problem.solve(objective).unwrap_err().to_string();
    let throughput = &Objective::Throughput;
    assert_eq!(Problem::default().solve(throughput), Err(CapacityError::Empty));

    let mut problem = contested();
    problem.activities.push(Activity::new("A6"));
    assert_eq!(problem.solve(throughput), Err(CapacityError::Unbounded { activity: "A6".into() }));
    assert_eq!(problem.alone("A6"), Err(CapacityError::Unbounded { activity: "A6".into() }));

    let mut problem = contested();
    problem.activities[1] = problem.activities[1].clone().resource("at least", -1.0);
    problem.limits.insert("at least".into(), -20e6);
    let error = say(&problem, throughput);
    assert!(error.contains("soc cores") && error.contains("limit of at least"), "{error}");
    let error = problem.alone("A5").unwrap_err().to_string();
    assert!(error.contains("soc cores") && error.contains("limit of at least"), "{error}");

    let mut problem = contested();
    problem.activities[0] = problem.activities[0].clone().demand("nowhere", 1e-6);
    assert!(say(&problem, throughput).contains("activity `A4` names station `nowhere`"));
    problem.activities[0] = Activity::new("A5");
    assert!(say(&problem, throughput).contains("activity `A5` is given twice"));
    let mut problem = contested();
    problem.activities[0] = Activity::new("A4").demand("contexts", f64::NAN);
    assert!(say(&problem, throughput).contains("the demand of activity `A4` at station `contexts` is NaN"));
    let mut problem = contested();
    problem.stations[0].capacity = 0.0;
    assert!(say(&problem, throughput).contains("above 0"));
    let problem = contested();
    assert!(say(&problem, &Objective::Greedy(vec!["A7".into()])).contains("`A7`"));
    assert!(say(&problem, &Objective::Shares(BTreeMap::new())).contains("sum of the shares"));
    assert!(say(&problem, &Objective::ThroughputAtLoad { load: -1.0 }).contains("the load is -1"));
    let cost = Cost::Resource("watts".into());
    assert!(say(&problem, &Objective::LeastCost { cost, load: 1.0 }).contains("resource `watts`"));
}

#[test]
fn forty_stations_solve_often_enough_to_plan_with() {
    let start = Instant::now();
    for seed in 0..200 {
        let solution = common::five_by_forty(seed).solve(&Objective::Throughput).unwrap();
        assert!(!solution.binding.is_empty());
    }
    // An unoptimised build on a busy machine; the bench holds the figure of 1 ms.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    eprintln!("{:?} per solve", start.elapsed() / 200);
}
