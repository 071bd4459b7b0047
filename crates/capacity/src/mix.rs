//! A problem as checked rows, and the ways to solve it.

use std::collections::{BTreeMap, BTreeSet};

use crate::linear::{self, LinearRow, Outcome, TOLERANCE, dot};
use crate::{Binding, CapacityError, Constraint, Cost, MixObjective, MixProblem, Solution};

/// Rounding in sums of products, relative to their largest part.
const ROUNDING: f64 = 1e-12;

/// `coefficients · rates <= bound`.
#[derive(Clone)]
struct Row {
    constraint: Constraint,
    coefficients: Vec<f64>,
    bound: f64,
}

#[derive(Clone)]
struct PoolClass {
    name: String,
    /// Operations per request of each activity.
    operations: Vec<f64>,
    reserved: f64,
}

#[derive(Clone)]
struct PoolForm {
    name: String,
    shared: f64,
    classes: Vec<PoolClass>,
}

impl PoolForm {
    fn shared_load(&self, rates: &[f64]) -> f64 {
        self.classes.iter().map(|class| (dot(&class.operations, rates) - class.reserved).max(0.0)).sum()
    }
    /// The shared and reserved capacity of the classes that are used at all.
    fn size(&self) -> f64 {
        self.shared + self.classes.iter().map(|class| class.reserved).sum::<f64>()
    }
    fn reserved_for(&self, class: &PoolClass) -> Constraint {
        Constraint::PoolReserved { pool: self.name.clone(), class: class.name.clone() }
    }
}

/// A checked problem with dense rows over the activities, in the order given.
#[derive(Clone)]
pub(crate) struct Form {
    names: Vec<String>,
    weights: Vec<f64>,
    rows: Vec<Row>,
    pools: Vec<PoolForm>,
    /// Costs by name, for resources without a limit too.
    resources: BTreeMap<String, Vec<f64>>,
}

/// How far rates can grow along a direction.
struct Reach {
    /// Greatest multiple of the direction; infinite where nothing stops it.
    most: f64,
    /// What stops it, with the gain of the multiple per unit of capacity where that is unique.
    stops: BTreeMap<Constraint, Option<f64>>,
}

/// A price of a constraint and whether it is unique.
type Prices = BTreeMap<Constraint, (f64, bool)>;

impl Form {
    pub(crate) fn new(problem: &MixProblem) -> Result<Form, CapacityError> {
        let count = problem.activities.len();
        if count == 0 {
            return Err(CapacityError::Empty);
        }
        let positive = |value: f64| value.is_finite() && value > 0.0;
        let not_negative = |value: f64| value.is_finite() && value >= 0.0;
        check_names("station", problem.stations.iter().map(|station| &station.name))?;
        check_names("pool", problem.pools.iter().map(|pool| &pool.name))?;
        check_names("activity", problem.activities.iter().map(|activity| &activity.name))?;
        let mut rows = Vec::new();
        let mut station_rows = BTreeMap::new();
        for station in &problem.stations {
            let thing = || format!("the capacity of station `{}`", station.name);
            require(positive(station.capacity), thing, station.capacity, "a finite number above 0")?;
            station_rows.insert(station.name.as_str(), rows.len());
            rows.push(Row {
                constraint: Constraint::Station(station.name.clone()),
                coefficients: vec![0.0; count],
                bound: station.capacity,
            });
        }
        let mut pool_forms = Vec::new();
        let mut pool_numbers = BTreeMap::new();
        for pool in &problem.pools {
            let thing = || format!("the shared rate of pool `{}`", pool.name);
            require(not_negative(pool.shared), thing, pool.shared, "a finite number of at least 0")?;
            for (class, &reserved) in &pool.reserved {
                let thing = || format!("the rate of pool `{}` reserved for `{class}`", pool.name);
                require(not_negative(reserved), thing, reserved, "a finite number of at least 0")?;
            }
            let classes = pool.reserved.iter().map(|(class, &reserved)| PoolClass {
                name: class.clone(),
                operations: vec![0.0; count],
                reserved,
            });
            pool_numbers.insert(pool.name.as_str(), pool_forms.len());
            pool_forms.push(PoolForm {
                name: pool.name.clone(),
                shared: pool.shared,
                classes: classes.collect(),
            });
        }
        let mut resources: BTreeMap<String, Vec<f64>> =
            problem.limits.keys().map(|name| (name.clone(), vec![0.0; count])).collect();
        let mut max_rates = Vec::new();
        for (index, activity) in problem.activities.iter().enumerate() {
            let name = &activity.name;
            let unknown = |kind, missing: &str| CapacityError::Unknown {
                user: format!("activity `{name}`"),
                kind,
                name: missing.to_owned(),
            };
            let thing = || format!("the weight of activity `{name}`");
            require(not_negative(activity.weight), thing, activity.weight, "a finite number of at least 0")?;
            for (station, &seconds) in &activity.demand {
                let thing = || format!("the demand of activity `{name}` at station `{station}`");
                require(not_negative(seconds), thing, seconds, "a finite number of seconds, at least 0")?;
                let &row = station_rows.get(station.as_str()).ok_or_else(|| unknown("station", station))?;
                rows[row].coefficients[index] = seconds;
            }
            for ((pool, class), &operations) in &activity.pool_demand {
                let thing = || format!("the demand of activity `{name}` at pool `{pool}`, class `{class}`");
                require(not_negative(operations), thing, operations, "a finite number of at least 0")?;
                let &pool = pool_numbers.get(pool.as_str()).ok_or_else(|| unknown("pool", pool))?;
                let classes = &mut pool_forms[pool].classes;
                let known = classes.iter().position(|known| &known.name == class).unwrap_or_else(|| {
                    let operations = vec![0.0; count];
                    classes.push(PoolClass { name: class.clone(), operations, reserved: 0.0 });
                    classes.len() - 1
                });
                classes[known].operations[index] = operations;
            }
            for (resource, &amount) in &activity.resources {
                let thing = || format!("the amount of `{resource}` that activity `{name}` takes");
                require(amount.is_finite(), thing, amount, "a finite number")?;
                resources.entry(resource.clone()).or_insert_with(|| vec![0.0; count])[index] = amount;
            }
            if let Some(bound) = activity.max_rate {
                let thing = || format!("the greatest rate of activity `{name}`");
                require(not_negative(bound), thing, bound, "a finite number of at least 0")?;
                let mut coefficients = vec![0.0; count];
                coefficients[index] = 1.0;
                max_rates.push(Row { constraint: Constraint::MaxRate(name.clone()), coefficients, bound });
            }
        }
        for (resource, &bound) in &problem.limits {
            require(bound.is_finite(), || format!("the limit of `{resource}`"), bound, "a finite number")?;
            rows.push(Row {
                constraint: Constraint::Limit(resource.clone()),
                coefficients: resources[resource].clone(),
                bound,
            });
        }
        rows.append(&mut max_rates);
        Ok(Form {
            names: problem.activities.iter().map(|activity| activity.name.clone()).collect(),
            weights: problem.activities.iter().map(|activity| activity.weight).collect(),
            rows,
            pools: pool_forms,
            resources,
        })
    }

    pub(crate) fn solve(&self, objective: &MixObjective) -> Result<Solution, CapacityError> {
        let ones = vec![1.0; self.names.len()];
        match objective {
            MixObjective::Throughput if self.names.len() == 1 => self.along(&ones),
            MixObjective::Throughput => self.best(&self.weights, 1.0, None),
            MixObjective::ThroughputAtLoad { load } => self.best_at_load(&self.weights, 1.0, *load),
            MixObjective::LeastCost { cost, load } => self.best_at_load(&self.costs(cost)?, -1.0, *load),
            MixObjective::Shares(shares) => self.along(&self.direction(shares)?),
            MixObjective::Greedy(order) => self.greedy(order),
        }
    }

    pub(crate) fn solve_with_gains(&self, objective: &MixObjective) -> Result<Solution, CapacityError> {
        let mut solution = self.solve(objective)?;
        let saving = matches!(objective, MixObjective::LeastCost { .. });
        for binding in &mut solution.binding {
            let Some((form, objective)) = self.with_10_percent_more(&binding.constraint, objective) else {
                continue;
            };
            if let Ok(other) = form.solve(&objective)
                && solution.objective > 0.0
            {
                let gain = (other.objective - solution.objective) / solution.objective * 100.0;
                let gain = if gain.abs() < 100.0 * TOLERANCE { 0.0 } else { gain };
                binding.gain_percent_for_10_percent_more = Some(if saving { 0.0 - gain } else { gain });
            }
        }
        Ok(solution)
    }

    fn with_10_percent_more(
        &self,
        constraint: &Constraint,
        objective: &MixObjective,
    ) -> Option<(Form, MixObjective)> {
        let (mut form, mut objective) = (self.clone(), objective.clone());
        let capacity = match constraint {
            Constraint::Load => match &mut objective {
                MixObjective::ThroughputAtLoad { load } | MixObjective::LeastCost { load, .. } => load,
                _ => return None,
            },
            Constraint::PoolShared(name) => {
                &mut form.pools.iter_mut().find(|pool| &pool.name == name)?.shared
            }
            Constraint::PoolReserved { pool: name, class } => {
                let pool = form.pools.iter_mut().find(|pool| &pool.name == name)?;
                &mut pool.classes.iter_mut().find(|known| &known.name == class)?.reserved
            }
            _ => &mut form.rows.iter_mut().find(|row| &row.constraint == constraint)?.bound,
        };
        *capacity *= 1.1;
        (*capacity > 0.0).then_some((form, objective))
    }

    fn costs(&self, cost: &Cost) -> Result<Vec<f64>, CapacityError> {
        let (found, kind, name) = match cost {
            Cost::Resource(name) => (self.resources.get(name), "resource", name),
            Cost::Station(name) => {
                let constraint = Constraint::Station(name.clone());
                let row = self.rows.iter().find(|row| row.constraint == constraint);
                (row.map(|row| &row.coefficients), "station", name)
            }
        };
        let unknown = || CapacityError::Unknown { user: "the cost".to_owned(), kind, name: name.clone() };
        found.cloned().ok_or_else(unknown)
    }

    fn direction(&self, shares: &BTreeMap<String, f64>) -> Result<Vec<f64>, CapacityError> {
        let mut direction = vec![0.0; self.names.len()];
        for (name, &share) in shares {
            let thing = || format!("the share of activity `{name}`");
            require(share.is_finite() && share >= 0.0, thing, share, "a finite number of at least 0")?;
            direction[self.number(name, "the shares")?] = share;
        }
        let sum: f64 = direction.iter().sum();
        let thing = || "the sum of the shares".to_owned();
        require(sum.is_finite() && sum > 0.0, thing, sum, "a finite number above 0")?;
        direction.iter_mut().for_each(|share| *share /= sum);
        Ok(direction)
    }

    fn number(&self, name: &str, user: &str) -> Result<usize, CapacityError> {
        self.names.iter().position(|known| known == name).ok_or_else(|| CapacityError::Unknown {
            user: user.to_owned(),
            kind: "activity",
            name: name.to_owned(),
        })
    }

    /// The greatest multiple of `direction` on top of `base`.
    fn reach(&self, base: &[f64], direction: &[f64]) -> Result<Reach, CapacityError> {
        let mut candidates: Vec<(f64, Vec<(Constraint, f64)>)> = Vec::new();
        let (mut least, mut needs) = (0.0, None);
        for row in &self.rows {
            let part = |rates: &[f64]| -> f64 {
                row.coefficients.iter().zip(rates).map(|(a, rate)| (a * rate).abs()).sum()
            };
            let slope = drop_rounding(dot(&row.coefficients, direction), part(direction));
            let slack =
                drop_rounding(row.bound - dot(&row.coefficients, base), row.bound.abs().max(part(base)));
            if slope > 0.0 {
                candidates.push((slack / slope, vec![(row.constraint.clone(), 1.0 / slope)]));
            } else if slack < 0.0 {
                if slope == 0.0 {
                    return Err(CapacityError::Infeasible { constraints: vec![row.constraint.to_string()] });
                }
                if slack / slope > least {
                    (least, needs) = (slack / slope, Some(row.constraint.to_string()));
                }
            }
        }
        let mut breaks = Vec::new();
        for pool in &self.pools {
            if let Some(PoolReach { most, at_break, parts }) = pool_reach(pool, base, direction) {
                if at_break {
                    breaks.push(most);
                }
                candidates.push((most, parts));
            }
        }
        let most = candidates.iter().fold(f64::INFINITY, |most, candidate| most.min(candidate.0));
        let close = |value: f64| value - most <= TOLERANCE * most.abs();
        let tied = candidates.iter().filter(|candidate| close(candidate.0)).count();
        let unique = tied == 1 && !breaks.iter().any(|&most| close(most));
        let mut stops = BTreeMap::new();
        if most.is_finite() {
            for (_, parts) in candidates.into_iter().filter(|candidate| close(candidate.0)) {
                stops.extend(
                    parts.into_iter().map(|(constraint, price)| (constraint, unique.then_some(price))),
                );
            }
        }
        if most < least * (1.0 - TOLERANCE) || most < 0.0 {
            let mut constraints: Vec<String> = stops.keys().map(Constraint::to_string).collect();
            constraints.extend(needs);
            return Err(CapacityError::Infeasible { constraints });
        }
        Ok(Reach { most, stops })
    }

    fn unbounded(&self, direction: &[f64]) -> CapacityError {
        let activity = direction.iter().position(|&part| part > 0.0).unwrap_or(0);
        CapacityError::Unbounded { activity: self.names[activity].clone() }
    }

    fn along(&self, direction: &[f64]) -> Result<Solution, CapacityError> {
        let reach = self.reach(&vec![0.0; self.names.len()], direction)?;
        if reach.most.is_infinite() {
            return Err(self.unbounded(direction));
        }
        let rates: Vec<f64> = direction.iter().map(|part| part * reach.most).collect();
        let gain = dot(&self.weights, direction);
        let price = |(constraint, price): (_, Option<f64>)| {
            (constraint, (price.unwrap_or_default() * gain, price.is_some()))
        };
        Ok(self.solution(&rates, &self.weights, true, None, reach.stops.into_iter().map(price).collect()))
    }

    fn greedy(&self, order: &[String]) -> Result<Solution, CapacityError> {
        check_names("greedy step", order.iter())?;
        let mut rates = vec![0.0; self.names.len()];
        let mut prices = Prices::new();
        for name in order {
            let number = self.number(name, "the greedy order")?;
            let mut direction = vec![0.0; rates.len()];
            direction[number] = 1.0;
            let reach = self.reach(&rates, &direction)?;
            if reach.most.is_infinite() {
                return Err(self.unbounded(&direction));
            }
            rates[number] = reach.most;
            prices.extend(reach.stops.into_keys().map(|constraint| (constraint, (0.0, false))));
        }
        Ok(self.solution(&rates, &self.weights, true, None, prices))
    }

    /// [`Form::best`] of the mixes at a load. Whether the load is too high is asked only where no mix is found: most are.
    fn best_at_load(&self, values: &[f64], sign: f64, load: f64) -> Result<Solution, CapacityError> {
        require(load.is_finite() && load > 0.0, || "the load".to_owned(), load, "a finite number above 0")?;
        match self.best(values, sign, Some(load)) {
            Err(CapacityError::Infeasible { .. } | CapacityError::NotConverged { .. }) => {
                self.best(values, sign, Some(self.check_load(load)?))
            }
            found => found,
        }
    }

    /// The load, lowered to the greatest that a mix carries where only rounding divides them.
    fn check_load(&self, load: f64) -> Result<f64, CapacityError> {
        let ones = vec![1.0; self.names.len()];
        match self.best(&ones, 1.0, None) {
            Err(CapacityError::Unbounded { .. }) => Ok(load),
            Err(error) => Err(error),
            Ok(greatest) if load > greatest.total * (1.0 + TOLERANCE) => Err(CapacityError::LoadTooHigh {
                load,
                greatest: greatest.total,
                binding: greatest.binding.iter().map(|binding| binding.constraint.to_string()).collect(),
            }),
            Ok(greatest) => Ok(load.min(greatest.total)),
        }
    }

    /// Maximises `sign * values · rates` by linear program.
    fn best(&self, values: &[f64], sign: f64, load: Option<f64>) -> Result<Solution, CapacityError> {
        let count = self.names.len();
        let alone = self.rate_bounds(load);
        let finite = alone.iter().filter(|rate| rate.is_finite()).fold(0.0_f64, |most, &rate| most.max(rate));
        let scale: Vec<f64> = alone
            .iter()
            .map(|&rate| match rate {
                rate if rate.is_finite() => rate,
                _ if finite > 0.0 => finite,
                _ => 1.0,
            })
            .collect();
        // Columns: the activities, then for each class of a pool its use of the shared part.
        let spills: Vec<(usize, usize)> = (0..self.pools.len())
            .filter(|&pool| self.pools[pool].shared > 0.0)
            .flat_map(|pool| (0..self.pools[pool].classes.len()).map(move |class| (pool, class)))
            .collect();
        let width = count + spills.len();
        let mut rows = Vec::new();
        let mut constraints = Vec::new();
        let mut add = |coefficients: Vec<f64>, bound: f64, equality: bool, constraint: Option<Constraint>| {
            // A row that the greatest rates alone cannot fill never binds.
            let most: f64 = (0..width)
                .filter(|&column| coefficients[column] > 0.0)
                .map(|column| {
                    let free = column < count && alone[column].is_infinite();
                    if free { f64::INFINITY } else { coefficients[column] }
                })
                .sum();
            if equality || most > bound * (1.0 - TOLERANCE) || bound < 0.0 {
                rows.push(LinearRow { coefficients, bound, equality });
                constraints.push(constraint);
            }
        };
        let widened = |coefficients: &[f64]| -> Vec<f64> {
            let mut wide: Vec<f64> = coefficients.iter().zip(&scale).map(|(a, scale)| a * scale).collect();
            wide.resize(width, 0.0);
            wide
        };
        for row in &self.rows {
            add(widened(&row.coefficients), row.bound, false, Some(row.constraint.clone()));
        }
        for (number, pool) in self.pools.iter().enumerate() {
            let mut shared = vec![0.0; width];
            for (class_number, class) in pool.classes.iter().enumerate() {
                let mut coefficients = widened(&class.operations);
                if let Some(spill) = spills.iter().position(|&spill| spill == (number, class_number)) {
                    coefficients[count + spill] = -pool.shared;
                    shared[count + spill] = pool.shared;
                }
                let constraint = (class.reserved > 0.0).then(|| pool.reserved_for(class));
                add(coefficients, class.reserved, false, constraint);
            }
            add(shared, pool.shared, false, Some(Constraint::PoolShared(pool.name.clone())));
        }
        for (number, _) in scale.iter().enumerate().filter(|(_, scale)| **scale == 0.0) {
            // A column that no row holds would leave the interior point nowhere to settle.
            let mut coefficients = vec![0.0; width];
            coefficients[number] = 1.0;
            add(coefficients, 1.0, false, None);
        }
        if let Some(load) = load {
            add(widened(&vec![1.0; count]), load, true, Some(Constraint::Load));
        }
        let objective: Vec<f64> = widened(values).iter().map(|value| value * sign).collect();
        match linear::maximise(&objective, &rows) {
            Outcome::Optimal(optimum) => {
                let rates: Vec<f64> = optimum.x.iter().zip(&scale).map(|(x, scale)| x * scale).collect();
                let unique = (0..count).all(|number| scale[number] == 0.0 || optimum.x_unique[number]);
                let mut prices = Prices::new();
                for (row, constraint) in constraints.into_iter().enumerate() {
                    if let Some(constraint) = constraint {
                        prices.insert(constraint, (optimum.price[row], optimum.price_unique[row]));
                    }
                }
                Ok(self.solution(&rates, values, unique, load, prices))
            }
            Outcome::Infeasible(rows) => {
                let named = rows.into_iter().filter_map(|row| constraints[row].as_ref());
                Err(CapacityError::Infeasible { constraints: named.map(Constraint::to_string).collect() })
            }
            Outcome::Unbounded(column) => {
                Err(CapacityError::Unbounded { activity: self.names[column.min(count - 1)].clone() })
            }
            Outcome::Failed(status) => Err(CapacityError::NotConverged { status }),
        }
    }

    /// A rate that each activity cannot exceed in any mix; infinite where only ratios bound it.
    fn rate_bounds(&self, load: Option<f64>) -> Vec<f64> {
        let bound = |number: usize| {
            let rows = self.rows.iter().filter(|row| {
                row.bound >= 0.0
                    && row.coefficients[number] > 0.0
                    && row.coefficients.iter().all(|&coefficient| coefficient >= 0.0)
            });
            let rows = rows.map(|row| row.bound / row.coefficients[number]);
            let mut direction = vec![0.0; self.names.len()];
            direction[number] = 1.0;
            let zero = vec![0.0; self.names.len()];
            let pools = self
                .pools
                .iter()
                .filter_map(|pool| pool_reach(pool, &zero, &direction))
                .map(|reach| reach.most);
            rows.chain(pools).fold(load.unwrap_or(f64::INFINITY), f64::min)
        };
        (0..self.names.len()).map(bound).collect()
    }

    fn solution(
        &self,
        rates: &[f64],
        values: &[f64],
        unique: bool,
        load: Option<f64>,
        prices: Prices,
    ) -> Solution {
        let rates = &rates[..self.names.len()];
        let mut utilization = BTreeMap::new();
        let mut full: Vec<(Constraint, f64, f64)> = Vec::new();
        for row in &self.rows {
            let used = dot(&row.coefficients, rates);
            let size = row.coefficients.iter().zip(rates).map(|(a, rate)| (a * rate).abs()).sum::<f64>();
            if row.bound > 0.0 {
                utilization.insert(row.constraint.clone(), used / row.bound);
            }
            // A row without any part in it binds nothing, even where its bound is zero.
            let takes_part = row.coefficients.iter().any(|&coefficient| coefficient != 0.0);
            if takes_part && row.bound - used <= TOLERANCE * row.bound.abs().max(size) {
                full.push((
                    row.constraint.clone(),
                    if row.bound > 0.0 { used / row.bound } else { 1.0 },
                    row.bound,
                ));
            }
        }
        for pool in &self.pools {
            let shared_load = pool.shared_load(rates);
            let no_more = pool.shared - shared_load <= TOLERANCE * pool.size();
            if pool.shared > 0.0 {
                let constraint = Constraint::PoolShared(pool.name.clone());
                utilization.insert(constraint.clone(), shared_load / pool.shared);
                if no_more {
                    full.push((constraint, shared_load / pool.shared, pool.shared));
                }
            }
            for class in pool.classes.iter().filter(|class| class.reserved > 0.0) {
                let used = (dot(&class.operations, rates) / class.reserved).min(1.0);
                utilization.insert(pool.reserved_for(class), used);
                // A full reserved part binds only where its class cannot move to the shared part.
                if no_more && used >= 1.0 - TOLERANCE {
                    full.push((pool.reserved_for(class), used, class.reserved));
                }
            }
        }
        if let Some(load) = load {
            full.push((Constraint::Load, 1.0, load));
        }
        let worth = |constraint: &Constraint, bound: f64| match prices.get(constraint) {
            Some(&(price, true)) => price * bound,
            _ => f64::NEG_INFINITY,
        };
        full.sort_by(|a, b| worth(&b.0, b.2).total_cmp(&worth(&a.0, a.2)).then(a.0.cmp(&b.0)));
        let binding = full.into_iter().map(|(constraint, utilization, _)| {
            let price = prices.get(&constraint).copied().unwrap_or((0.0, false));
            Binding {
                constraint,
                utilization,
                shadow_price: price.1.then_some(price.0),
                gain_percent_for_10_percent_more: None,
            }
        });
        let total: f64 = rates.iter().sum();
        let share = |rate: f64| if total > 0.0 { rate / total } else { 0.0 };
        Solution {
            rates: self.names.iter().cloned().zip(rates.iter().copied()).collect(),
            total,
            shares: self.names.iter().cloned().zip(rates.iter().map(|&rate| share(rate))).collect(),
            objective: dot(values, rates),
            unique,
            binding: binding.collect(),
            utilization,
        }
    }
}

/// How far a direction can be followed before a pool is full.
struct PoolReach {
    most: f64,
    /// Whether a class just starts to use the shared part there, so that prices are not unique.
    at_break: bool,
    /// The parts that stop it, with the gain of the multiple per unit of their capacity.
    parts: Vec<(Constraint, f64)>,
}

/// `None` where the pool does not stop the direction.
fn pool_reach(pool: &PoolForm, base: &[f64], direction: &[f64]) -> Option<PoolReach> {
    // Each class uses the shared part from the multiple on at which its reserved part is full.
    let mut starts: Vec<(f64, &PoolClass, f64, f64)> = Vec::new();
    let mut slack = pool.shared;
    for class in &pool.classes {
        let slope = dot(&class.operations, direction);
        let spare = class.reserved - dot(&class.operations, base);
        if slope > 0.0 {
            starts.push(((spare / slope).max(0.0), class, spare, slope));
        } else {
            slack += spare.min(0.0);
        }
    }
    starts.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut slope = 0.0;
    for index in 0..starts.len() {
        slack += starts[index].2;
        slope += starts[index].3;
        let most = drop_rounding(slack, pool.size()).max(0.0) / slope;
        let next = starts.get(index + 1).map_or(f64::INFINITY, |start| start.0);
        if most <= next {
            let close = |start: f64| (start - most).abs() <= TOLERANCE * most;
            let at_break = close(next) || pool.shared > 0.0 && close(starts[index].0);
            let mut parts = Vec::new();
            if pool.shared > 0.0 {
                parts.push((Constraint::PoolShared(pool.name.clone()), 1.0 / slope));
            }
            let filled = starts[..=index].iter().filter(|start| start.1.reserved > 0.0);
            parts.extend(filled.map(|start| (pool.reserved_for(start.1), 1.0 / slope)));
            return Some(PoolReach { most, at_break, parts });
        }
    }
    None
}

fn drop_rounding(value: f64, size: f64) -> f64 {
    if value.abs() <= ROUNDING * size { 0.0 } else { value }
}

fn require(
    holds: bool,
    thing: impl FnOnce() -> String,
    value: f64,
    bound: &'static str,
) -> Result<(), CapacityError> {
    if holds { Ok(()) } else { Err(CapacityError::OutOfRange { thing: thing(), value, bound }) }
}

fn check_names<'a>(kind: &'static str, names: impl Iterator<Item = &'a String>) -> Result<(), CapacityError> {
    let mut seen = BTreeSet::new();
    for name in names {
        if !seen.insert(name) {
            return Err(CapacityError::Duplicate { kind, name: name.clone() });
        }
    }
    Ok(())
}
