//! Cases with known answers, and every error.

use std::collections::BTreeMap;

use offpath_capacity::{
    Activity, CapacityError, CapacityStation, Constraint, Cost, MixObjective, MixProblem, Pool, Solution,
};

mod common;

fn near(value: f64, expected: f64) {
    assert!((value - expected).abs() <= 1e-9 * expected.abs(), "{value} is not {expected}");
}

fn names(solution: &Solution) -> Vec<String> {
    solution.binding.iter().map(|binding| binding.constraint.to_string()).collect()
}

/// The card of the crate's example, where A5 also takes an in-flight slot for a short host read.
fn contested() -> MixProblem {
    MixProblem {
        stations: vec![CapacityStation::new("inflight_slots", 140.0), CapacityStation::new("soc cores", 8.0)],
        activities: vec![
            Activity::new("A4").demand("inflight_slots", 2.4e-6),
            Activity::new("A5").demand("soc cores", 450e-9).demand("inflight_slots", 1.4e-6),
        ],
        ..MixProblem::default()
    }
}

fn packet_cores() -> MixProblem {
    MixProblem {
        pools: vec![Pool {
            name: "cores".into(),
            shared: 157e6,
            reserved: BTreeMap::from([("host".into(), 19e6), ("soc".into(), 19e6)]),
        }],
        activities: vec![
            Activity::new("to host").pool_demand("cores", "host", 1.0),
            Activity::new("to soc").pool_demand("cores", "soc", 1.0),
        ],
        ..MixProblem::default()
    }
}

#[test]
fn a_mix_fills_both_stations_and_prices_them() {
    let mix = contested().solve_with_gains(&MixObjective::Throughput).unwrap();
    let a5 = 8.0 / 450e-9;
    let a4 = (140.0 - 1.4e-6 * a5) / 2.4e-6;
    near(mix.rates["A4"], a4);
    near(mix.rates["A5"], a5);
    assert!(mix.unique);
    assert_eq!(names(&mix), ["inflight_slots", "soc cores"]);
    near(mix.binding[0].shadow_price.unwrap(), 1.0 / 2.4e-6);
    near(mix.binding[1].shadow_price.unwrap(), (1.0 - 1.4 / 2.4) / 450e-9);
    near(mix.binding[0].gain_percent_for_10_percent_more.unwrap(), 14.0 / 2.4e-6 / mix.total * 100.0);
    near(mix.utilization[&Constraint::Station("inflight_slots".into())], 1.0);
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
    let both = problem.solve(&MixObjective::Throughput).unwrap();
    near(both.total, 195e6);
    assert!(!both.unique, "the shared part can go to either endpoint");
    assert_eq!(both.binding.len(), 3);
    assert!(
        both.binding
            .iter()
            .all(|binding| binding.shadow_price.is_some_and(|price| (price - 1.0).abs() < 1e-9))
    );
    let greedy = problem.solve(&MixObjective::Greedy(vec!["to soc".into(), "to host".into()])).unwrap();
    near(greedy.rates["to soc"], 176e6);
    near(greedy.rates["to host"], 19e6);
}

#[test]
fn a_class_that_its_pool_does_not_name_has_the_shared_part_alone() {
    let problem = MixProblem {
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
        ..MixProblem::default()
    };
    near(problem.alone("to host").unwrap().total, 110.0);
    near(problem.alone("one").unwrap().total, 100.0);
    near(problem.alone("two").unwrap().total, 50.0);
    near(problem.alone("far").unwrap().total, 25.0);
    // Activities of one class and those of another share it, each with its own operations.
    let shares = |all: &[(&str, f64)]| {
        let shares = all.iter().map(|&(name, share)| (name.to_string(), share)).collect();
        problem.solve(&MixObjective::Shares(shares)).unwrap()
    };
    near(shares(&[("one", 1.0), ("two", 1.0)]).total, 100.0 / 1.5);
    near(shares(&[("one", 1.0), ("far", 3.0)]).total, 100.0 / (0.25 + 3.0));
    let mix = shares(&[("one", 1.0), ("to host", 1.0)]);
    near(mix.total, 110.0);
    assert_eq!(names(&mix), ["cores (shared)", "cores (reserved for host)"]);
    let best = problem.solve(&MixObjective::Throughput).unwrap();
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
    let both = problem.solve(&MixObjective::Throughput).unwrap();
    near(both.total, 38e6);
    assert!(both.unique);
    assert_eq!(names(&both), ["cores (reserved for host)", "cores (reserved for soc)"]);
}

#[test]
fn least_cost_uses_the_cheap_activity_until_it_is_full() {
    let problem = contested();
    let cost = Cost::Station("soc cores".into());
    let solution = problem.solve_with_gains(&MixObjective::LeastCost { cost, load: 60e6 }).unwrap();
    near(solution.total, 60e6);
    // A4 alone stops at 58.33 M/s; each A5 frees 1.0 us of in-flight slot.
    let a5 = (2.4e-6 * 60e6 - 140.0) / 1.0e-6;
    near(solution.rates["A5"], a5);
    near(solution.objective, a5 * 450e-9);
    assert_eq!(names(&solution), ["inflight_slots", "total load"]);
    assert!(solution.binding[0].shadow_price.unwrap() > 0.0);
    assert!(solution.binding[1].shadow_price.unwrap() < 0.0);
    near(solution.binding[0].gain_percent_for_10_percent_more.unwrap(), 100.0);
}

#[test]
fn a_load_with_room_is_met_at_no_cost() {
    let cost = Cost::Station("soc cores".into());
    let solution = contested().solve_with_gains(&MixObjective::LeastCost { cost, load: 10e6 }).unwrap();
    assert_eq!(solution.rates["A5"], 0.0);
    assert_eq!(solution.objective, 0.0);
    assert_eq!(solution.binding[0].gain_percent_for_10_percent_more, None);
}

#[test]
fn limits_bind_by_name() {
    let mut problem = contested();
    problem.activities[1] = problem.activities[1].clone().resource("host CPU", 1e-6);
    problem.limits.insert("host CPU".into(), 2.0);
    let solution = problem.solve(&MixObjective::Throughput).unwrap();
    near(solution.rates["A5"], 2e6);
    assert_eq!(names(&solution), ["inflight_slots", "limit of host CPU"]);
}

#[test]
fn tied_stations_have_no_unique_price_and_gain_nothing_alone() {
    let problem = MixProblem {
        stations: vec![CapacityStation::new("in", 1.0), CapacityStation::new("out", 1.0)],
        activities: vec![
            Activity::new("a").demand("in", 1e-6).demand("out", 1e-6),
            Activity::new("b").demand("in", 2e-6).demand("out", 2e-6),
        ],
        ..MixProblem::default()
    };
    for solution in [
        problem.solve_with_gains(&MixObjective::Throughput).unwrap(),
        problem.solve_with_gains(&MixObjective::Shares(BTreeMap::from([("a".into(), 1.0)]))).unwrap(),
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
        let problem = MixProblem {
            stations: vec![CapacityStation::new("fast", 1.0), CapacityStation::new("slow", 1.0)],
            activities: vec![
                Activity::new("huge").demand("fast", 1e-12),
                Activity::new("small").demand("slow", 1e-12 / ratio),
            ],
            ..MixProblem::default()
        };
        let solution = problem.solve(&MixObjective::Throughput).unwrap();
        near(solution.rates["huge"], 1e12);
        near(solution.rates["small"], 1e12 * ratio);
        assert_eq!(solution.binding.len(), 2);
        near(solution.binding[1].shadow_price.unwrap(), 1e12 * ratio);
    }
}

/// Two stations half a percent apart: one binds, at its price, and more of it brings what the other leaves.
#[test]
fn stations_half_a_percent_apart_are_told_apart() {
    let problem = MixProblem {
        stations: vec![CapacityStation::new("near", 1.0), CapacityStation::new("just above", 1.005)],
        activities: vec![Activity::new("one").demand("near", 1e-6).demand("just above", 1e-6)],
        ..MixProblem::default()
    };
    let solution = problem.solve_with_gains(&MixObjective::Throughput).unwrap();
    assert_eq!(names(&solution), ["near"]);
    near(solution.binding[0].shadow_price.unwrap(), 1e6);
    let gain = solution.binding[0].gain_percent_for_10_percent_more.unwrap();
    assert!((gain - 0.5).abs() < 1e-6, "{gain}% for 10% more");
    let shares = problem.solve(&MixObjective::Shares(BTreeMap::from([("one".into(), 1.0)]))).unwrap();
    assert_eq!((names(&shares), shares.binding[0].shadow_price.is_some()), (vec!["near".into()], true));
    let slightly_more = MixObjective::ThroughputAtLoad { load: 1.001e6 };
    assert!(matches!(problem.solve(&slightly_more), Err(CapacityError::LoadTooHigh { .. })));
}

#[test]
fn an_impossible_load_names_the_station_and_the_greatest_load() {
    let problem = contested();
    let greatest = problem.solve(&MixObjective::Throughput).unwrap().total;
    let cost = Cost::Station("soc cores".into());
    let error = problem.solve(&MixObjective::LeastCost { cost: cost.clone(), load: 100e6 }).unwrap_err();
    let CapacityError::LoadTooHigh { load, greatest: found, binding } = &error else { panic!("{error}") };
    assert_eq!(*load, 100e6);
    near(*found, greatest);
    assert_eq!(binding, &["inflight_slots", "soc cores"]);
    assert!(error.to_string().contains("inflight_slots and soc cores"), "{error}");
    near(problem.solve(&MixObjective::LeastCost { cost, load: greatest }).unwrap().total, greatest);
}

#[test]
fn errors_name_the_cause() {
    let say =
        |problem: &MixProblem, objective: &MixObjective| problem.solve(objective).unwrap_err().to_string();
    let throughput = &MixObjective::Throughput;
    assert_eq!(MixProblem::default().solve(throughput), Err(CapacityError::Empty));

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
    problem.activities[0] = Activity::new("A4").demand("inflight_slots", f64::NAN);
    assert!(
        say(&problem, throughput).contains("the demand of activity `A4` at station `inflight_slots` is NaN")
    );
    let mut problem = contested();
    problem.stations[0].capacity = 0.0;
    assert!(say(&problem, throughput).contains("above 0"));
    let problem = contested();
    assert!(say(&problem, &MixObjective::Greedy(vec!["A7".into()])).contains("`A7`"));
    assert!(say(&problem, &MixObjective::Shares(BTreeMap::new())).contains("sum of the shares"));
    assert!(say(&problem, &MixObjective::ThroughputAtLoad { load: -1.0 }).contains("the load is -1"));
    let cost = Cost::Resource("watts".into());
    assert!(say(&problem, &MixObjective::LeastCost { cost, load: 1.0 }).contains("resource `watts`"));
}

#[test]
fn forty_stations_are_solved() {
    for seed in 0..200 {
        let solution = common::five_by_forty(seed).solve(&MixObjective::Throughput).unwrap();
        assert!(!solution.binding.is_empty());
    }
}

#[test]
fn every_number_out_of_range_is_named_with_its_value_and_bound() {
    // Each change, what the refusal names, and a value just inside that is taken.
    type Change = fn(&mut MixProblem, f64);
    let below = [-1e-300, f64::NAN, f64::INFINITY];
    let odd = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let cases: [(Change, &str, &str, [f64; 3], f64); 9] = [
        (
            |problem, value| problem.stations[0].capacity = value,
            "the capacity of station `inflight_slots`",
            "above 0",
            [0.0, f64::NAN, f64::INFINITY],
            1e-300,
        ),
        (
            |problem, value| problem.pools[0].shared = value,
            "the shared rate of pool `cores`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| {
                problem.pools[0].reserved.insert("host".into(), value);
            },
            "the rate of pool `cores` reserved for `host`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| problem.activities[0].weight = value,
            "the weight of activity `A4`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| {
                problem.activities[0].demand.insert("soc cores".into(), value);
            },
            "the demand of activity `A4` at station `soc cores`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| {
                let key = ("cores".to_string(), "host".to_string());
                problem.activities[0].pool_demand.insert(key, value);
            },
            "the demand of activity `A4` at pool `cores`, class `host`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| problem.activities[0].max_rate = Some(value),
            "the greatest rate of activity `A4`",
            "at least 0",
            below,
            0.0,
        ),
        (
            |problem, value| {
                problem.activities[0].resources.insert("power".into(), value);
            },
            "the amount of `power` that activity `A4` takes",
            "a finite number",
            odd,
            -3.0,
        ),
        (
            |problem, value| {
                problem.limits.insert("power".into(), value);
            },
            "the limit of `power`",
            "a finite number",
            odd,
            3.0,
        ),
    ];
    for (change, thing, bound, wrong, right) in cases {
        let with = |value| {
            let mut problem = contested();
            problem.pools = packet_cores().pools;
            change(&mut problem, value);
            problem.solve(&MixObjective::Throughput)
        };
        for value in wrong {
            let error = with(value).unwrap_err();
            let CapacityError::OutOfRange { thing: named, value: told, .. } = &error else {
                panic!("{thing} = {value}: {error}")
            };
            assert_eq!(named, thing);
            assert!(told.to_bits() == value.to_bits() && error.to_string().contains(bound), "{error}");
        }
        assert!(with(right).is_ok(), "{thing} = {right}: {:?}", with(right));
    }
    for (objective, thing) in [
        (
            MixObjective::Shares(BTreeMap::from([("A4".into(), -0.1), ("A5".into(), 1.0)])),
            "share of activity `A4`",
        ),
        (MixObjective::Shares(BTreeMap::from([("A4".into(), f64::NAN)])), "share of activity `A4`"),
        (MixObjective::Shares(BTreeMap::from([("A4".into(), 0.0)])), "the sum of the shares"),
        (MixObjective::ThroughputAtLoad { load: 0.0 }, "the load"),
        (MixObjective::ThroughputAtLoad { load: f64::INFINITY }, "the load"),
    ] {
        let error = contested().solve(&objective).unwrap_err();
        assert!(
            matches!(&error, CapacityError::OutOfRange { .. }) && error.to_string().contains(thing),
            "{error}"
        );
    }
}

#[test]
fn names_are_unique_and_known() {
    let refused =
        |problem: &MixProblem, objective: &MixObjective| problem.solve(objective).unwrap_err().to_string();
    let throughput = &MixObjective::Throughput;
    let mut problem = contested();
    problem.stations.push(CapacityStation::new("inflight_slots", 1.0));
    assert!(refused(&problem, throughput).contains("station `inflight_slots` is given twice"));
    let mut problem = packet_cores();
    problem.pools.push(problem.pools[0].clone());
    assert!(refused(&problem, throughput).contains("pool `cores` is given twice"));
    let mut problem = packet_cores();
    problem.activities[1] = Activity::new("to soc").pool_demand("elsewhere", "soc", 1.0);
    assert!(refused(&problem, throughput).contains("activity `to soc` names pool `elsewhere`"));
    let twice = MixObjective::Greedy(vec!["A4".into(), "A5".into(), "A4".into()]);
    assert!(refused(&contested(), &twice).contains("greedy step `A4` is given twice"));
    let nobody = MixObjective::Shares(BTreeMap::from([("A9".into(), 1.0)]));
    assert!(refused(&contested(), &nobody).contains("the shares names activity `A9`"));
    let cost = Cost::Station("nowhere".into());
    assert!(
        refused(&contested(), &MixObjective::LeastCost { cost, load: 1.0 }).contains("station `nowhere`")
    );
}

#[test]
fn one_activity_alone_prices_all_that_fills_with_it() {
    // More of the reserved part and more of the shared one are worth the same: one operation each.
    let host = packet_cores().alone("to host").unwrap();
    let prices: Vec<Option<f64>> = host.binding.iter().map(|binding| binding.shadow_price).collect();
    assert_eq!(prices, [Some(1.0), Some(1.0)]);
    near(host.shares["to host"], 1.0);
    assert_eq!((host.rates["to soc"], host.shares["to soc"]), (0.0, 0.0));
    // Two operations a request halve both, and a weight multiplies.
    let mut problem = packet_cores();
    problem.activities[0] =
        Activity { weight: 3.0, ..Activity::new("to host").pool_demand("cores", "host", 2.0) };
    let host = problem.alone("to host").unwrap();
    near(host.total, 88e6);
    near(host.objective, 264e6);
    for binding in &host.binding {
        near(binding.shadow_price.unwrap(), 1.5);
    }
    // Where a class just begins to use the shared part, more and less are worth different amounts.
    let mut problem = packet_cores();
    problem.pools[0].shared = 0.0;
    problem
        .activities
        .push(Activity::new("both").pool_demand("cores", "host", 1.0).pool_demand("cores", "soc", 1.0));
    let both = problem.alone("both").unwrap();
    near(both.total, 19e6);
    assert!(both.binding.iter().all(|binding| binding.shadow_price.is_none()), "{:?}", both.binding);
}

#[test]
fn gains_are_of_ten_percent_more_of_one_thing() {
    let gain = |solution: &Solution, name: &str| {
        let found = solution.binding.iter().find(|binding| binding.constraint.to_string() == name);
        found.unwrap_or_else(|| panic!("{name} binds")).gain_percent_for_10_percent_more.expect("a gain")
    };
    let host =
        packet_cores().solve_with_gains(&MixObjective::Shares(BTreeMap::from([("to host".into(), 2.0)])));
    let host = host.unwrap();
    near(gain(&host, "cores (shared)"), 15.7 / 176.0 * 100.0);
    near(gain(&host, "cores (reserved for host)"), 1.9 / 176.0 * 100.0);
    let mut problem = contested();
    problem.activities[1].max_rate = Some(4e6);
    problem.activities[0] = problem.activities[0].clone().resource("power", 1e-6);
    problem.limits.insert("power".into(), 20.0);
    let mix = problem.solve_with_gains(&MixObjective::Throughput).unwrap();
    near(mix.total, 24e6);
    near(gain(&mix, "limit of power"), 2.0 / 24.0 * 100.0);
    near(gain(&mix, "greatest rate of A5"), 0.4 / 24.0 * 100.0);
    let loaded = problem.solve_with_gains(&MixObjective::ThroughputAtLoad { load: 10e6 }).unwrap();
    assert_eq!(names(&loaded), ["total load"]);
    near(gain(&loaded, "total load"), 10.0);
    near(loaded.binding[0].shadow_price.unwrap(), 1.0);
    // A saving is a gain of a cost: more to carry costs more.
    let cost = Cost::Resource("power".into());
    let cheap = problem.solve_with_gains(&MixObjective::LeastCost { cost, load: 10e6 }).unwrap();
    near(cheap.objective, 6.0);
    near(gain(&cheap, "greatest rate of A5"), 0.4 / 6.0 * 100.0);
    near(gain(&cheap, "total load"), -1.0 / 6.0 * 100.0);
    let price = |name: &str| {
        let found = cheap.binding.iter().find(|binding| binding.constraint.to_string() == name);
        found.and_then(|binding| binding.shadow_price).expect("a price")
    };
    near(price("greatest rate of A5"), 1e-6);
    near(price("total load"), -1e-6);
}

#[test]
fn a_greedy_mix_has_no_prices_and_says_what_it_filled() {
    let problem = contested();
    let greedy = problem.solve_with_gains(&MixObjective::Greedy(vec!["A4".into(), "A5".into()])).unwrap();
    near(greedy.rates["A4"], 140.0 / 2.4e-6);
    assert_eq!(greedy.rates["A5"], 0.0);
    assert_eq!(names(&greedy), ["inflight_slots"]);
    assert_eq!(greedy.binding[0].shadow_price, None);
    near(greedy.binding[0].gain_percent_for_10_percent_more.unwrap(), 10.0);
    near(greedy.utilization[&Constraint::Station("inflight_slots".into())], 1.0);
    assert_eq!(greedy.utilization[&Constraint::Station("soc cores".into())], 0.0);
    let one = problem.solve(&MixObjective::Greedy(vec!["A5".into()])).unwrap();
    assert_eq!(one.rates["A4"], 0.0, "who is not named stays at zero");
    let mut open = problem.clone();
    open.activities.push(Activity::new("A6"));
    let error = open.solve(&MixObjective::Greedy(vec!["A5".into(), "A6".into()])).unwrap_err();
    assert_eq!(error, CapacityError::Unbounded { activity: "A6".into() });
}

#[test]
fn what_may_not_run_binds_at_its_zero_and_is_used_in_full() {
    let mut problem = contested();
    problem.activities[1].max_rate = Some(0.0);
    let mix = problem.solve(&MixObjective::Throughput).unwrap();
    near(mix.total, 140.0 / 2.4e-6);
    let idle = mix.binding.iter().find(|binding| binding.constraint == Constraint::MaxRate("A5".into()));
    assert_eq!(idle.expect("it binds").utilization, 1.0);
    assert!(
        !mix.utilization.contains_key(&Constraint::MaxRate("A5".into())),
        "a part of nothing is not a number"
    );
    // A limit that nobody has a part in binds nothing, and one that nobody can meet is named.
    problem.limits.insert("power".into(), 0.0);
    let mix = problem.solve(&MixObjective::Throughput).unwrap();
    assert!(!names(&mix).contains(&"limit of power".to_string()));
    problem.limits.insert("power".into(), -1.0);
    for objective in [MixObjective::Throughput, MixObjective::Greedy(vec!["A4".into()])] {
        let error = problem.solve(&objective).unwrap_err();
        assert_eq!(error, CapacityError::Infeasible { constraints: vec!["limit of power".into()] });
    }
}

#[test]
fn what_is_required_can_be_met_or_is_refused_by_name() {
    // At least 10 M/s of A5, written as a negative amount.
    let with = |least: f64| {
        let mut problem = contested();
        problem.activities[1] = problem.activities[1].clone().resource("at least", -1.0);
        problem.limits.insert("at least".into(), -least);
        problem
    };
    let alone = with(10e6).alone("A5").unwrap();
    near(alone.total, 8.0 / 450e-9);
    assert_eq!(names(&alone), ["soc cores"]);
    near(with(8.0 / 450e-9).alone("A5").unwrap().total, 8.0 / 450e-9);
    let error = with(18e6).alone("A5").unwrap_err();
    let expected = vec!["soc cores".to_string(), "limit of at least".to_string()];
    assert_eq!(error, CapacityError::Infeasible { constraints: expected });
    // Of two, the one that asks for more is named.
    let mut problem = with(18e6);
    problem.activities[1] = problem.activities[1].clone().resource("a minimum", -1.0);
    problem.limits.insert("a minimum".into(), -20e6);
    let error = problem.alone("A5").unwrap_err().to_string();
    assert!(error.contains("limit of a minimum") && !error.contains("at least"), "{error}");
    // A requirement that this activity cannot help to meet.
    let error = with(10e6).alone("A4").unwrap_err();
    assert_eq!(error, CapacityError::Infeasible { constraints: vec!["limit of at least".into()] });
}

#[test]
fn a_load_is_told_in_the_unit_of_its_size() {
    let told = |load: f64, capacity: f64| {
        let problem = MixProblem {
            stations: vec![CapacityStation::new("one", capacity)],
            activities: vec![Activity::new("a").demand("one", 1.0)],
            ..MixProblem::default()
        };
        problem.solve(&MixObjective::ThroughputAtLoad { load }).unwrap_err().to_string()
    };
    let text = told(2e6, 1e6);
    assert!(
        text.contains("a load of 2.00 M requests/s") && text.contains("one is full at 1.00 M requests/s"),
        "{text}"
    );
    let text = told(1e3, 2.5);
    assert!(
        text.contains("a load of 1.00 k requests/s") && text.contains("full at 2.50 requests/s"),
        "{text}"
    );
    assert!(told(999.5, 1.0).contains("a load of 999.50 requests/s"));
}

#[test]
fn a_pool_with_room_binds_nothing_although_a_reserved_part_is_full() {
    let mut problem = packet_cores();
    // Another station is nearly full at the same time, however many requests a second that are.
    problem.stations.extend([CapacityStation::new("wire", 1.0), CapacityStation::new("nearly", 1.0)]);
    for activity in &mut problem.activities {
        *activity = activity.clone().demand("wire", 10e-9).demand("nearly", 9.99e-9);
    }
    for solution in [problem.alone("to host").unwrap(), problem.solve(&MixObjective::Throughput).unwrap()] {
        near(solution.total, 100e6);
        assert_eq!(names(&solution), ["wire"]);
    }
    let host = problem.alone("to host").unwrap();
    near(host.utilization[&Constraint::PoolShared("cores".into())], 81.0 / 157.0);
    let reserved = |class: &str| Constraint::PoolReserved { pool: "cores".into(), class: class.into() };
    assert_eq!((host.utilization[&reserved("host")], host.utilization[&reserved("soc")]), (1.0, 0.0));
}
