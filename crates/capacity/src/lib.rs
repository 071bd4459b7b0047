//! The mix of activities that stations can carry.
//!
//! An *activity* is one way to serve a request (an alternative of a design). It takes time at
//! *stations*, operations of *pools*, and amounts of named *resources*. A [`MixProblem`] holds these
//! and answers an [`MixObjective`]: the greatest throughput, the least cost at a load, the greatest
//! total at fixed shares, or the greedy filling in a given order. A [`Solution`] gives the rates,
//! what binds, and what relaxing each binding constraint would bring.
//!
//! The model is one of flows: it knows demands and capacities, not queues or latencies. A station
//! may be filled to 100%, where a real queue would grow without end.
//!
//! Two ways to serve a lookup compete for the read in-flight slots of a card, or use its cores instead:
//!
//! ```
//! use offpath_capacity::{Activity, MixObjective, MixProblem, CapacityStation};
//! let problem = MixProblem {
//!     stations: vec![CapacityStation::new("inflight_slots", 140.0), CapacityStation::new("soc cores", 8.0)],
//!     activities: vec![
//!         // One host read holds an in-flight slot for 1.4 us, one SoC read for 1.0 us.
//!         Activity::new("A4").demand("inflight_slots", 1.4e-6 + 1.0e-6),
//!         Activity::new("A5-send").demand("soc cores", 450e-9),
//!     ],
//!     ..MixProblem::default()
//! };
//! let a4 = problem.alone("A4")?;
//! let a5 = problem.alone("A5-send")?;
//! let mix = problem.solve(&MixObjective::Throughput)?;
//! assert!((a4.total / 1e6 - 58.33).abs() < 0.01);
//! assert!((a5.total / 1e6 - 17.78).abs() < 0.01);
//! assert!(mix.total > a4.total && mix.total > a5.total);
//! assert_eq!(a4.binding[0].constraint.to_string(), "inflight_slots");
//! # Ok::<(), offpath_capacity::CapacityError>(())
//! ```

use std::collections::BTreeMap;
use std::fmt;

mod error;
mod linear;
mod mix;
pub mod quadratic;

pub use error::CapacityError;

/// A resource that serves requests one after another with some number of servers.
#[derive(Clone, Debug, PartialEq)]
pub struct CapacityStation {
    /// The name that demands refer to.
    pub name: String,
    /// Server-seconds per second: the number of servers times instances.
    pub capacity: f64,
}

impl CapacityStation {
    /// A station of `capacity` server-seconds per second.
    pub fn new(name: impl Into<String>, capacity: f64) -> CapacityStation {
        CapacityStation { name: name.into(), capacity }
    }
}

/// A station with a part that every class shares and a part reserved for each class.
///
/// An operation of a class is served by the shared part or by its class's reserved part. With
/// loads `l` in operations per second, reserved rates `R` and shared rate `S` the pool carries
/// every load with `sum over classes of max(0, l - R) <= S`.
#[derive(Clone, Debug, PartialEq)]
pub struct Pool {
    /// The name that demands refer to.
    pub name: String,
    /// What the shared part serves, in operations per second.
    pub shared: f64,
    /// What each class's reserved part serves, in operations per second; a class not named has none.
    pub reserved: BTreeMap<String, f64>,
}

/// One way to serve a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Activity {
    /// The name that solutions refer to.
    pub name: String,
    /// Seconds of station time per request, by station.
    pub demand: BTreeMap<String, f64>,
    /// Operations per request, by pool and class.
    pub pool_demand: BTreeMap<(String, String), f64>,
    /// Amounts of named resources per unit of rate; negative amounts express minima and ratios.
    pub resources: BTreeMap<String, f64>,
    /// Value of one request: 1 to count requests, its bits to count bit/s.
    pub weight: f64,
    /// The greatest rate in requests per second, where something outside the stations bounds it.
    pub max_rate: Option<f64>,
}

impl Activity {
    /// An activity that needs nothing yet and counts 1 per request.
    pub fn new(name: impl Into<String>) -> Activity {
        Activity {
            name: name.into(),
            demand: BTreeMap::new(),
            pool_demand: BTreeMap::new(),
            resources: BTreeMap::new(),
            weight: 1.0,
            max_rate: None,
        }
    }
    /// Sets the time one request takes at `station`, in seconds.
    pub fn demand(mut self, station: impl Into<String>, seconds: f64) -> Activity {
        self.demand.insert(station.into(), seconds);
        self
    }
    /// Sets the operations of `class` that one request makes at `pool`.
    pub fn pool_demand(
        mut self,
        pool: impl Into<String>,
        class: impl Into<String>,
        operations: f64,
    ) -> Activity {
        self.pool_demand.insert((pool.into(), class.into()), operations);
        self
    }
    /// Sets the amount of `resource` that one request per second takes.
    pub fn resource(mut self, resource: impl Into<String>, amount: f64) -> Activity {
        self.resources.insert(resource.into(), amount);
        self
    }
}

/// Stations, pools and limits, and the activities that share them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MixProblem {
    /// The stations, by unique name.
    pub stations: Vec<CapacityStation>,
    /// The pools, by unique name.
    pub pools: Vec<Pool>,
    /// Side constraints: for each resource named here, `sum of amount * rate <= bound`.
    /// A resource without a limit can still be a cost.
    pub limits: BTreeMap<String, f64>,
    /// The activities, by unique name.
    pub activities: Vec<Activity>,
}

/// A linear cost per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cost {
    /// Busy server-seconds per second of a station.
    Station(String),
    /// The amount used of a resource.
    Resource(String),
}

/// What a mix is chosen for.
#[derive(Clone, Debug, PartialEq)]
pub enum MixObjective {
    /// The greatest sum of `weight * rate`.
    Throughput,
    /// The greatest sum of `weight * rate` where the rates sum to `load` requests per second.
    ThroughputAtLoad {
        /// Requests per second over all activities.
        load: f64,
    },
    /// The least cost where the rates sum to `load` requests per second.
    LeastCost {
        /// What to spend least of.
        cost: Cost,
        /// Requests per second over all activities.
        load: f64,
    },
    /// The greatest total where rates keep these proportions; activities not named stay at zero.
    Shares(BTreeMap<String, f64>),
    /// Each activity in order at the greatest rate that the earlier ones leave; others stay at
    /// zero. This is the procedure of Wei et al., OSDI 2023, section 4.2.
    Greedy(Vec<String>),
}

/// What can bind a mix.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Constraint {
    /// A station's capacity.
    Station(String),
    /// The shared part of a pool.
    PoolShared(String),
    /// The part of a pool reserved for a class.
    PoolReserved {
        /// The pool.
        pool: String,
        /// The class.
        class: String,
    },
    /// The limit of a resource.
    Limit(String),
    /// The greatest rate of an activity.
    MaxRate(String),
    /// The fixed total load.
    Load,
}

impl fmt::Display for Constraint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Constraint::Station(name) => write!(f, "{name}"),
            Constraint::PoolShared(pool) => write!(f, "{pool} (shared)"),
            Constraint::PoolReserved { pool, class } => write!(f, "{pool} (reserved for {class})"),
            Constraint::Limit(resource) => write!(f, "limit of {resource}"),
            Constraint::MaxRate(activity) => write!(f, "greatest rate of {activity}"),
            Constraint::Load => write!(f, "total load"),
        }
    }
}

/// A constraint that is full at a solution.
#[derive(Clone, Debug, PartialEq)]
pub struct Binding {
    /// What is full.
    pub constraint: Constraint,
    /// Used part of the capacity; 1 within rounding.
    pub utilization: f64,
    /// Gain of the objective per unit more of the constraint's capacity (server-seconds per
    /// second, operations per second, or the resource's unit). For a cost a gain is a saving, so
    /// a load usually has a negative price. `None` where the price is not unique (several
    /// constraints bind at one point, so more and less capacity are worth different amounts) and
    /// for greedy mixes.
    pub shadow_price: Option<f64>,
    /// Gain of the objective, in percent of it, from 10% more of this constraint alone, found by
    /// solving again. Only [`MixProblem::solve_with_gains`] fills it; `None` also where the objective
    /// or the bound is not positive, or where the problem has no solution with 10% more.
    pub gain_percent_for_10_percent_more: Option<f64>,
}

/// A mix and what stops it from being better.
#[derive(Clone, Debug, PartialEq)]
pub struct Solution {
    /// Requests per second of each activity.
    pub rates: BTreeMap<String, f64>,
    /// Requests per second over all activities.
    pub total: f64,
    /// Each activity's part of the total; all zero where the total is.
    pub shares: BTreeMap<String, f64>,
    /// The sum of `weight * rate`, or the cost for [`MixObjective::LeastCost`].
    pub objective: f64,
    /// Whether this is the only optimal mix. Where it is not, the rates are one choice among equals.
    pub unique: bool,
    /// What is full: those with a unique price first, the most valuable first, then by name.
    pub binding: Vec<Binding>,
    /// Used part of each positive capacity. A pool's reserved parts fill before its shared part.
    pub utilization: BTreeMap<Constraint, f64>,
}

impl MixProblem {
    /// The best mix for `objective`.
    ///
    /// # Errors
    /// [`CapacityError`] where the problem is malformed, unbounded or infeasible, or where the
    /// objective names unknown activities or a load that no mix carries.
    pub fn solve(&self, objective: &MixObjective) -> Result<Solution, CapacityError> {
        mix::Form::new(self)?.solve(objective)
    }

    /// As [`MixProblem::solve`], and solves again with 10% more of each binding constraint.
    ///
    /// # Errors
    /// As [`MixProblem::solve`].
    pub fn solve_with_gains(&self, objective: &MixObjective) -> Result<Solution, CapacityError> {
        mix::Form::new(self)?.solve_with_gains(objective)
    }

    /// The greatest rate of one activity with all others at zero, in closed form.
    ///
    /// # Errors
    /// As [`MixProblem::solve`].
    pub fn alone(&self, activity: &str) -> Result<Solution, CapacityError> {
        self.solve(&MixObjective::Shares(BTreeMap::from([(activity.to_owned(), 1.0)])))
    }
}
