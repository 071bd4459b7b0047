//! Generated problems against an independent simplex and against what must hold of every mix.

use std::collections::BTreeMap;

use microlp::{ComparisonOp, OptimizationDirection};
use offpath_capacity::{
    Activity, CapacityStation, Constraint, Cost, MixObjective, MixProblem, Pool, Solution,
};
use proptest::prelude::*;

mod common;

/// The greatest throughput by microlp, with the pools spelled out over all subsets of classes.
fn oracle(problem: &MixProblem, values: &[f64], load: Option<f64>, maximise: bool) -> Option<f64> {
    let activities = &problem.activities;
    let mut rows: Vec<(Vec<f64>, f64)> = Vec::new();
    for station in &problem.stations {
        let coefficients = activities.iter().map(|a| a.demand.get(&station.name).copied().unwrap_or(0.0));
        rows.push((coefficients.collect(), station.capacity));
    }
    for pool in &problem.pools {
        let classes: Vec<_> = pool.reserved.iter().collect();
        for subset in 1..1usize << classes.len() {
            let (mut coefficients, mut bound) = (vec![0.0; activities.len()], pool.shared);
            for (_, (class, reserved)) in classes.iter().enumerate().filter(|(bit, _)| subset >> bit & 1 == 1)
            {
                bound += **reserved;
                for (coefficient, activity) in coefficients.iter_mut().zip(activities) {
                    let key = (pool.name.clone(), (*class).clone());
                    *coefficient += activity.pool_demand.get(&key).copied().unwrap_or(0.0);
                }
            }
            rows.push((coefficients, bound));
        }
    }
    for (resource, &bound) in &problem.limits {
        let coefficients = activities.iter().map(|a| a.resources.get(resource).copied().unwrap_or(0.0));
        rows.push((coefficients.collect(), bound));
    }
    for (index, activity) in activities.iter().enumerate() {
        if let Some(bound) = activity.max_rate {
            rows.push(((0..activities.len()).map(|other| f64::from(other == index)).collect(), bound));
        }
    }
    // Scaled by each activity's rate alone: the oracle's tolerances are absolute.
    let scale: Vec<f64> = (0..activities.len())
        .map(|index| {
            let alone = rows.iter().filter(|row| row.0[index] > 0.0).map(|row| row.1 / row.0[index]);
            alone.fold(f64::INFINITY, f64::min)
        })
        .collect();
    let worth: Vec<f64> = values.iter().zip(&scale).map(|(value, scale)| value * scale).collect();
    let most = worth.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
    let direction = if maximise { OptimizationDirection::Maximize } else { OptimizationDirection::Minimize };
    let mut linear = microlp::Problem::new(direction);
    let columns: Vec<_> =
        worth.iter().map(|value| linear.add_var(value / most, (0.0, f64::INFINITY))).collect();
    let mut add = |coefficients: &[f64], compare: ComparisonOp, bound: f64| {
        let terms: Vec<f64> = coefficients.iter().zip(&scale).map(|(a, scale)| a * scale).collect();
        let size = terms.iter().fold(bound.abs(), |most, value| most.max(value.abs()));
        let terms: Vec<_> = columns.iter().copied().zip(terms.into_iter().map(|term| term / size)).collect();
        linear.add_constraint(terms, compare, bound / size);
    };
    for (coefficients, bound) in &rows {
        add(coefficients, ComparisonOp::Le, *bound);
    }
    if let Some(load) = load {
        add(&vec![1.0; activities.len()], ComparisonOp::Eq, load);
    }
    let outcome = linear.solve().ok()?;
    Some(outcome.into_solution().ok()?.objective() * most)
}

/// What a generated problem may have beside stations.
#[derive(Clone, Copy)]
struct Kind {
    /// Powers of ten between the fastest and the slowest demand.
    decades: f64,
    pools: bool,
    limits: bool,
}

fn generate(seed: u64, kind: Kind) -> MixProblem {
    let mut draws = common::Draws(seed);
    let mut problem = MixProblem::default();
    let stations = 1 + (draws.next() * 12.0) as usize;
    let activities = 1 + (draws.next() * 6.0) as usize;
    for station in 0..stations {
        problem
            .stations
            .push(CapacityStation::new(format!("s{station}"), 1.0 + (draws.next() * 20.0).floor()));
    }
    if kind.pools {
        let reserved = |name: &str, draw: f64| (name.to_owned(), (draw * 3e7 - 5e6).max(0.0));
        problem.pools.push(Pool {
            name: "pool".into(),
            shared: (draws.next() * 2e8 - 2e7).max(0.0),
            reserved: BTreeMap::from([reserved("host", draws.next()), reserved("soc", draws.next())]),
        });
    }
    if kind.limits {
        problem.limits.insert("memory".into(), 10f64.powf(6.0 + 3.0 * draws.next()));
    }
    for activity in 0..activities {
        let mut built = Activity::new(format!("a{activity}"));
        built = built.demand(
            format!("s{}", (draws.next() * stations as f64) as usize),
            10f64.powf(-7.0 - kind.decades / 2.0 + kind.decades * draws.next()),
        );
        for station in 0..stations {
            if draws.next() < 0.5 {
                let seconds = 10f64.powf(-7.0 - kind.decades / 2.0 + kind.decades * draws.next());
                built = built.demand(format!("s{station}"), seconds);
            }
        }
        if kind.pools {
            for class in ["host", "soc"] {
                if draws.next() < 0.6 {
                    built = built.pool_demand("pool", class, (1.0 + draws.next() * 3.0).floor());
                }
            }
        }
        if kind.limits {
            built = built.resource("memory", draws.next() * 4.0 - 0.5);
            if draws.next() < 0.3 {
                built.max_rate = Some(10f64.powf(5.0 + 3.0 * draws.next()));
            }
        }
        built.weight = if draws.next() < 0.5 { 1.0 } else { 8.0 + (draws.next() * 1000.0).floor() };
        problem.activities.push(built);
    }
    problem
}

fn kinds() -> impl Strategy<Value = Kind> {
    (prop_oneof![Just(1.0), Just(4.0), Just(9.0)], any::<bool>(), any::<bool>())
        .prop_map(|(decades, pools, limits)| Kind { decades, pools, limits })
}

impl std::fmt::Debug for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} decades, pools {}, limits {}", self.decades, self.pools, self.limits)
    }
}

fn near(value: f64, expected: f64, tolerance: f64) -> bool {
    (value - expected).abs() <= tolerance * expected.abs().max(value.abs())
}

fn weights(problem: &MixProblem) -> Vec<f64> {
    problem.activities.iter().map(|activity| activity.weight).collect()
}

fn check_feasible(solution: &Solution) -> Result<(), TestCaseError> {
    for (constraint, used) in &solution.utilization {
        prop_assert!(*used <= 1.0 + 2e-9, "{constraint} is used {used}");
    }
    prop_assert!(solution.rates.values().all(|rate| *rate >= 0.0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_throughput_is_that_of_an_independent_simplex(seed: u64, kind in kinds()) {
        let problem = generate(seed, kind);
        let solution = problem.solve(&MixObjective::Throughput).unwrap();
        check_feasible(&solution)?;
        if let Some(expected) = oracle(&problem, &weights(&problem), None, true) {
            prop_assert!(near(solution.objective, expected, 1e-6), "{} is not {expected}", solution.objective);
        }
    }

    #[test]
    fn the_least_cost_is_that_of_an_independent_simplex(seed: u64, kind in kinds(), part in 0.05..1.0) {
        let problem = generate(seed, kind);
        let mut counted = problem.clone();
        counted.activities.iter_mut().for_each(|activity| activity.weight = 1.0);
        let load = counted.solve(&MixObjective::Throughput).unwrap().total * part;
        prop_assume!(load > 0.0);
        let cost = Cost::Station("s0".into());
        let solution = problem.solve(&MixObjective::LeastCost { cost, load }).unwrap();
        check_feasible(&solution)?;
        prop_assert!(near(solution.total, load, 1e-9));
        let costs: Vec<f64> =
            problem.activities.iter().map(|a| a.demand.get("s0").copied().unwrap_or(0.0)).collect();
        if let Some(expected) = oracle(&problem, &costs, Some(load), false) {
            let size = costs.iter().fold(0.0_f64, |most, &cost| most.max(cost)) * load;
            prop_assert!((solution.objective - expected).abs() <= 1e-6 * expected.abs().max(1e-3 * size),
                "{} is not {expected}", solution.objective);
        }
    }

    #[test]
    fn greedy_never_beats_the_optimum(seed: u64, kind in kinds()) {
        let problem = generate(seed, kind);
        let order = problem.activities.iter().map(|activity| activity.name.clone()).collect();
        let greedy = problem.solve(&MixObjective::Greedy(order)).unwrap();
        check_feasible(&greedy)?;
        let best = problem.solve(&MixObjective::Throughput).unwrap();
        prop_assert!(greedy.objective <= best.objective * (1.0 + 1e-9));
    }

    #[test]
    fn fixed_shares_equal_the_program_with_share_constraints(seed: u64, pools: bool) {
        let mut problem = generate(seed, Kind { decades: 2.0, pools, limits: false });
        let mut draws = common::Draws(seed ^ 1);
        let raw: Vec<f64> = problem.activities.iter().map(|_| 0.1 + draws.next()).collect();
        let sum: f64 = raw.iter().sum();
        let names: Vec<String> = problem.activities.iter().map(|a| a.name.clone()).collect();
        let closed = problem.solve(&MixObjective::Shares(names.iter().cloned().zip(raw.clone()).collect())).unwrap();
        // rate <= share * total for each activity leaves only the given shares.
        for (index, name) in names.iter().enumerate() {
            let resource = format!("share of {name}");
            problem.limits.insert(resource.clone(), 0.0);
            for (other, activity) in problem.activities.iter_mut().enumerate() {
                let amount = f64::from(other == index) - raw[index] / sum;
                activity.resources.insert(resource.clone(), amount);
            }
        }
        let linear = problem.solve(&MixObjective::Throughput).unwrap();
        prop_assert!(near(linear.total, closed.total, 1e-8), "{} and {}", linear.total, closed.total);
    }

    #[test]
    fn an_activity_alone_equals_the_program(seed: u64, kind in kinds()) {
        let mut problem = generate(seed, kind);
        let name = problem.activities[0].name.clone();
        let closed = problem.alone(&name).unwrap();
        // A second activity that may not run makes it a linear program.
        let mut idle = Activity::new("idle").demand("s0", 1e-9);
        idle.max_rate = Some(0.0);
        problem.activities.truncate(1);
        problem.activities.push(idle);
        let linear = problem.solve(&MixObjective::Throughput).unwrap();
        prop_assert!(near(linear.total, closed.total, 1e-9), "{} and {}", linear.total, closed.total);
        let prices = |solution: &Solution| -> BTreeMap<Constraint, Option<f64>> {
            let kept = solution.binding.iter().filter(|b| b.constraint != Constraint::MaxRate("idle".into()));
            kept.map(|b| (b.constraint.clone(), b.shadow_price)).collect()
        };
        for (constraint, price) in prices(&closed) {
            if let Some(price) = price {
                let other = prices(&linear)[&constraint];
                prop_assert!(other.is_some_and(|other| near(other, price, 1e-8)), "{constraint}: {price}, {other:?}");
            }
        }
    }

    /// A nanosecond for a second changes the figures and nothing else: not what binds, nor how much of it is used.
    #[test]
    fn the_unit_of_time_changes_nothing(seed: u64, kind in kinds()) {
        const FACTOR: f64 = 1e9;
        let problem = generate(seed, kind);
        let mut slow = problem.clone();
        for activity in &mut slow.activities {
            activity.demand.values_mut().for_each(|seconds| *seconds *= FACTOR);
            activity.max_rate.iter_mut().for_each(|rate| *rate /= FACTOR);
        }
        for pool in &mut slow.pools {
            pool.shared /= FACTOR;
            pool.reserved.values_mut().for_each(|rate| *rate /= FACTOR);
        }
        slow.limits.values_mut().for_each(|rate| *rate /= FACTOR);
        let names: Vec<String> = problem.activities.iter().map(|one| one.name.clone()).collect();
        let even = names.iter().map(|name| (name.clone(), 1.0 / names.len() as f64)).collect();
        for objective in [MixObjective::Throughput, MixObjective::Greedy(names), MixObjective::Shares(even)] {
            let fast = problem.solve(&objective);
            let slow = slow.solve(&objective);
            let (Ok(fast), Ok(slow)) = (&fast, &slow) else {
                prop_assert_eq!(fast.is_ok(), slow.is_ok());
                continue;
            };
            prop_assert!(near(slow.objective * FACTOR, fast.objective, 1e-9), "{objective:?}");
            for (name, rate) in &fast.rates {
                prop_assert!(!fast.unique || near(slow.rates[name] * FACTOR, *rate, 1e-8), "{objective:?} {name}");
            }
            if fast.unique {
                let names = |solution: &Solution| -> Vec<Constraint> {
                    solution.binding.iter().map(|one| one.constraint.clone()).collect()
                };
                prop_assert_eq!(names(fast), names(slow));
                for (constraint, used) in &fast.utilization {
                    let other = slow.utilization.get(constraint);
                    prop_assert!(other.is_some_and(|other| (other - used).abs() < 1e-6), "{constraint}: {used} {other:?}");
                }
            }
        }
    }

    #[test]
    fn a_unique_price_is_the_gain_of_a_little_more(seed: u64, kind in kinds()) {
        let problem = generate(seed, kind);
        let solution = problem.solve(&MixObjective::Throughput).unwrap();
        for binding in &solution.binding {
            let Some(price) = binding.shadow_price else { continue };
            let step = 1e-6;
            let capacity = std::cell::Cell::new(0.0);
            let with = |factor: f64| {
                let mut more = problem.clone();
                let bound = match &binding.constraint {
                    Constraint::Station(name) => {
                        &mut more.stations.iter_mut().find(|station| &station.name == name).unwrap().capacity
                    }
                    Constraint::PoolShared(_) => &mut more.pools[0].shared,
                    Constraint::PoolReserved { class, .. } => more.pools[0].reserved.get_mut(class).unwrap(),
                    Constraint::Limit(name) => more.limits.get_mut(name).unwrap(),
                    Constraint::MaxRate(name) => {
                        let found = more.activities.iter_mut().find(|activity| &activity.name == name);
                        found.unwrap().max_rate.as_mut().unwrap()
                    }
                    Constraint::Load => unreachable!("no load was given"),
                };
                capacity.set(*bound);
                *bound *= factor;
                more.solve(&MixObjective::Throughput).unwrap().objective
            };
            let (more, less) = (with(1.0 + step), with(1.0 - step));
            let step = capacity.get() * step;
            let up = (more - solution.objective) / step;
            let down = (solution.objective - less) / step;
            // A kink within the step is a corner of the test, not of the price.
            let tolerance = 1e-3 * price + 1e-11 * solution.objective / step;
            if (up - down).abs() <= tolerance {
                prop_assert!((up - price).abs() <= tolerance, "{}: {up}, {price}", binding.constraint);
            }
        }
    }

    #[test]
    fn two_solves_agree_to_the_bit(seed: u64, kind in kinds()) {
        let problem = generate(seed, kind);
        let bits = |solution: Solution| -> Vec<u64> { solution.rates.values().map(|rate| rate.to_bits()).collect() };
        prop_assert_eq!(
            bits(problem.solve(&MixObjective::Throughput).unwrap()),
            bits(problem.solve(&MixObjective::Throughput).unwrap())
        );
    }
}
