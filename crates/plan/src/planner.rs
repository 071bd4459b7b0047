//! The plan: what each alternative reaches alone, the greedy and the best mix, what binds them,
//! how sure that is.

use crate::coded;
use crate::design::{Alternative, CacheUse, Design, Objective, Rank, Runs};
use crate::program::{Compiled, Fold, compile};
use offpath_capacity::{
    Activity, CapacityError, Constraint, Cost, Objective as Aim, Pool, Problem, Solution, Station,
};
use offpath_profile::{Library, Number, Provenance, Request, System};
use offpath_quantity::Quantity;
use offpath_route::{Kind, Router};
use std::collections::BTreeMap;
use std::rc::Rc;

/// How well a figure is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Basis {
    /// The evidence that measured this very alternative fixes a number that it rests on.
    Fitted,
    /// It follows from numbers that other evidence fixes.
    Predicted,
    /// It rests on a number that is only known as a range.
    Weak,
    /// It rests on an assumed number: only the order of alternatives may be read from it.
    OrderOnly,
}

impl Basis {
    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Basis::Fitted => "fitted",
            Basis::Predicted => "predicted",
            Basis::Weak => "weak",
            Basis::OrderOnly => "order only",
        }
    }
}

/// A value with the range that uncertain numbers leave it, one number at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranged {
    /// With every number at its value.
    pub value: f64,
    /// The least that one number at an end of its range gives.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// One alternative by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The device that it runs on, where it is not the design's.
    pub device: Option<String>,
    /// Whether mixes may use it.
    pub mixed: bool,
    /// Requests per second.
    pub rate: Ranged,
    /// Unloaded latency in seconds.
    pub latency_s: f64,
    /// What binds.
    pub binding: String,
    /// Why, in a few words.
    pub reason: String,
    /// How well it is known.
    pub basis: Basis,
    /// The number that moves it most.
    pub leading: Option<String>,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
    /// Payload bytes over the network a request.
    pub network_bytes: f64,
    /// What a request asks of the stations.
    pub demand: Fold,
}

/// A constraint that binds a mix, with what more of it would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What binds.
    pub name: String,
    /// What it stands for.
    pub meaning: String,
    /// Gain in percent from 10% more of it.
    pub gain_percent: Option<f64>,
    /// Whether it is the load that was asked for, and no resource.
    pub is_load: bool,
}

/// A mix of alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Its name: `greedy`, `optimal`, or the design's.
    pub name: String,
    /// Requests per second.
    pub rate: Ranged,
    /// Shares by alternative, the largest first.
    pub shares: Vec<(String, f64)>,
    /// What binds it.
    pub bounds: Vec<Bound>,
    /// Mean unloaded latency in seconds.
    pub latency_s: f64,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
    /// Payload bytes over the network a request.
    pub network_bytes: f64,
    /// Whether no other mix is as good.
    pub unique: bool,
}

/// What a number at the ends of its range does to the best mix.
#[derive(Clone, Debug, PartialEq)]
pub struct Influence {
    /// The number.
    pub number: String,
    /// Its range.
    pub low: Quantity,
    /// Its range.
    pub high: Quantity,
    /// The best mix's requests per second at the lower end.
    pub rate_low: f64,
    /// And at the upper end.
    pub rate_high: f64,
    /// The alternatives of the best mix where they change at an end.
    pub changes: Option<String>,
}

/// A plan without the twin's cross-check.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The alternatives, as the design lists them.
    pub alternatives: Vec<Alone>,
    /// The design's named mixes.
    pub mixes: Vec<Mix>,
    /// The greedy combination.
    pub greedy: Mix,
    /// The order in which greedy filled.
    pub greedy_order: Vec<String>,
    /// The best mix for the objective.
    pub optimal: Mix,
    /// What uncertain numbers do, the strongest first.
    pub influences: Vec<Influence>,
    /// Assumed numbers that the plan rests on.
    pub assumed: Vec<String>,
    /// What the cache holds.
    pub cache: Option<CacheUse>,
    /// Servers of each station over all its instances.
    pub servers: BTreeMap<String, f64>,
}

/// Why there is no plan.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PlanError {
    /// No alternative may take part.
    #[error("no alternative may be used: {reason}")]
    #[diagnostic(help("relax the constraint, or describe an alternative that keeps it"))]
    NothingAllowed {
        /// Why.
        reason: String,
    },
    /// The stations cannot carry it.
    #[error("{0}")]
    #[diagnostic(help("a mix needs verbs or compute that stations bound, and a load that they carry"))]
    Capacity(#[from] CapacityError),
}

/// The systems that a design's alternatives run on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The library that devices are taken from.
    pub library: Library,
    /// Overlays by name.
    pub overlays: Vec<String>,
    /// Settings as the user wrote them.
    pub settings: Vec<String>,
    /// Another testbed than the design's.
    pub testbed: Option<String>,
    /// Another mode than the design's.
    pub mode: Option<String>,
}

impl Setting {
    /// Loads `device` for a design. What-if settings that name a component which another device
    /// does not have are left out for that device only.
    pub fn system(&self, design: &Design, device: &str) -> Result<System, miette::Report> {
        let own = device == design.device;
        let all = || design.set.iter().chain(&self.settings).cloned();
        let request = |settings: Vec<String>| Request {
            device,
            testbed: self.testbed.as_deref().or(design.testbed.as_deref()),
            mode: if own { self.mode.as_deref().or(design.mode.as_deref()) } else { None },
            overlays: self.overlays.iter().map(String::as_str).collect(),
            settings,
        };
        if own {
            return Ok(self.library.load(&request(all().collect()))?);
        }
        let mut kept = Vec::new();
        for setting in all() {
            let mut with = kept.clone();
            with.push(setting.clone());
            if self.library.load(&request(with)).is_ok() {
                kept.push(setting);
            }
        }
        Ok(self.library.load(&request(kept))?)
    }
}

/// An alternative ready to be run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The alternative.
    pub alternative: Alternative,
    /// Its programs.
    pub compiled: Compiled,
    /// The routes of its system.
    pub router: Rc<Router>,
}

/// Compiles every alternative of a design on its system.
pub fn prepare(design: &Design, setting: &Setting) -> Result<Vec<Ready>, miette::Report> {
    let mut routers: BTreeMap<String, Rc<Router>> = BTreeMap::new();
    let mut ready = Vec::new();
    for alternative in &design.alternatives {
        let device = alternative.device.clone().unwrap_or_else(|| design.device.clone());
        let router = match routers.get(&device) {
            Some(router) => router.clone(),
            None => {
                let system =
                    setting.system(design, &device).map_err(|error| design.about_device(&device, error))?;
                if device == design.device {
                    design.check_against(&system)?;
                }
                let router = Rc::new(Router::new(&system).map_err(|error| miette::miette!("{error}"))?);
                routers.insert(device, router.clone());
                router
            }
        };
        let observed = coded::observe_named(design, alternative, &router)?;
        ready.push(ready_as(design, alternative, observed, router)?);
    }
    Ok(ready)
}

/// Compiles one alternative for a system: what its code is seen to do there where it has code, else
/// its step lists. Unlike [`prepare`] it does not find out which estimates the code's times are made of.
pub fn make_ready(
    design: &Design,
    alternative: &Alternative,
    router: Rc<Router>,
) -> Result<Ready, miette::Report> {
    let observed = coded::observe(design, alternative, &router)?;
    ready_as(design, alternative, observed, router)
}

fn ready_as(
    design: &Design,
    alternative: &Alternative,
    observed: Option<coded::Observation>,
    router: Rc<Router>,
) -> Result<Ready, miette::Report> {
    let alternative = observed.map_or_else(|| alternative.clone(), |observed| observed.alternative);
    let compiled = compile(design, &alternative, &router)?;
    Ok(Ready { alternative, compiled, router })
}

/// The stations of one system, and the limit on its host's processors where there is one, as a
/// capacity problem without activities.
pub fn stations(router: &Router, host_cpu_share: Option<f64>) -> Problem {
    let mut problem = Problem::default();
    for station in router.stations() {
        match &station.kind {
            Kind::Pool { shared, reserved } => {
                let rate = |time: &Option<offpath_quantity::Time>| {
                    time.map_or(0.0, |t| station.instances as f64 / t.as_seconds())
                };
                problem.pools.push(Pool {
                    name: station.name.clone(),
                    shared: rate(shared),
                    reserved: reserved
                        .iter()
                        .zip(&router.system().machines[station.machine].endpoints)
                        .map(|(time, endpoint)| (endpoint.name.clone(), rate(time)))
                        .collect(),
                });
            }
            _ => problem.stations.push(Station::new(station.name.clone(), station.servers() as f64)),
        }
    }
    if let Some(share) = host_cpu_share {
        let cores = router.station("host.cpu").map_or(0, |id| router.stations()[id.index()].servers());
        problem.limits.insert(HOST_CPU.to_string(), share * cores as f64);
    }
    problem
}

/// The station of the host's processor, which objectives and constraints speak of.
pub(crate) const HOST_STATION: &str = "host.cpu";
const HOST_CPU: &str = "host processor share";

/// What `fold` asks, as an activity of [`stations`].
pub fn activity(name: &str, fold: &Fold) -> Activity {
    let mut activity = Activity::new(name);
    activity.demand.clone_from(&fold.seconds);
    activity.pool_demand.clone_from(&fold.requests);
    activity.resources.insert(HOST_CPU.to_string(), fold.seconds.get("host.cpu").copied().unwrap_or(0.0));
    activity
}

/// One evaluation of a design: every alternative and mix with the numbers as they are.
struct Evaluation {
    alone: Vec<Solution>,
    mixes: Vec<Solution>,
    greedy: Solution,
    order: Vec<String>,
    optimal: Solution,
}

fn evaluate(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    main: &Router,
    gains: bool,
) -> Result<Evaluation, PlanError> {
    let solve = |problem: &Problem, aim: &Aim| {
        if gains { problem.solve_with_gains(aim) } else { problem.solve(aim) }
    };
    let mut alone = Vec::new();
    for (one, fold) in ready.iter().zip(folds) {
        let mut problem = stations(&one.router, design.host_cpu_share);
        problem.activities.push(activity(&one.alternative.name, fold));
        alone.push(problem.alone(&one.alternative.name)?);
    }
    let mut all = stations(main, design.host_cpu_share);
    for (one, fold) in ready.iter().zip(folds).filter(|(one, _)| one.alternative.device.is_none()) {
        all.activities.push(activity(&one.alternative.name, fold));
    }
    let mut mixes = Vec::new();
    for mix in &design.mixes {
        mixes.push(solve(&all, &Aim::Greedy(mix.fill.clone()))?);
    }
    let allowed: Vec<usize> = (0..ready.len())
        .filter(|&i| ready[i].alternative.mixed)
        .filter(|&i| design.latency_bound.is_none_or(|bound| folds[i].latency <= bound.as_seconds()))
        .collect();
    if allowed.is_empty() {
        let reason = match design.latency_bound {
            Some(bound) => format!("none has an unloaded latency within {bound}"),
            None => "every one is marked `mixed = false` or runs on another device".to_string(),
        };
        return Err(PlanError::NothingAllowed { reason });
    }
    let mut problem = all.clone();
    problem.activities.retain(|activity| allowed.iter().any(|&i| ready[i].alternative.name == activity.name));
    let mut order = allowed.clone();
    let key = |i: usize| match design.rank {
        Rank::UnloadedLatency => folds[i].latency,
        Rank::NetworkSaved => folds[i].network_bytes,
        Rank::Throughput => -alone[i].total,
        Rank::HostCpu => folds[i].seconds.get("host.cpu").copied().unwrap_or(0.0),
    };
    // Alternatives that a criterion does not tell apart are filled fastest first.
    order.sort_by(|&a, &b| key(a).total_cmp(&key(b)).then(alone[b].total.total_cmp(&alone[a].total)));
    let order: Vec<String> = order.into_iter().map(|i| ready[i].alternative.name.clone()).collect();
    let greedy = solve(&problem, &Aim::Greedy(order.clone()))?;
    let optimal = match design.objective {
        Objective::MostThroughput => {
            let most = solve(&problem, &Aim::Throughput)?;
            if most.unique { most } else { preferred(&problem, most, &order, gains)? }
        }
        Objective::LeastHostCpu { load } => {
            solve(&problem, &Aim::LeastCost { cost: Cost::Station("host.cpu".to_string()), load })?
        }
        // The mix that the twin's bisection starts from: the least mean latency at the load.
        Objective::LowestP99 { load } => {
            for activity in &mut problem.activities {
                let index = ready.iter().position(|one| one.alternative.name == activity.name).expect("kept");
                activity.resources.insert(LATENCY.to_string(), folds[index].latency);
            }
            solve(&problem, &Aim::LeastCost { cost: Cost::Resource(LATENCY.to_string()), load })?
        }
    };
    Ok(Evaluation { alone, mixes, greedy, order, optimal })
}

const LATENCY: &str = "latency";

/// Of several mixes with the greatest throughput, the one that greedy's criterion likes best: each
/// alternative costs its rank, and the throughput is kept.
fn preferred(
    problem: &Problem,
    most: Solution,
    order: &[String],
    gains: bool,
) -> Result<Solution, PlanError> {
    const RANK: &str = "rank";
    let mut ranked = problem.clone();
    for activity in &mut ranked.activities {
        let rank = order.iter().position(|name| *name == activity.name).unwrap_or(order.len());
        activity.resources.insert(RANK.to_string(), 1.0 + rank as f64);
    }
    // A millionth below the greatest load, so that rounding cannot make it infeasible.
    let load = most.total * (1.0 - 1e-6);
    let aim = Aim::LeastCost { cost: Cost::Resource(RANK.to_string()), load };
    let chosen = match ranked.solve(&aim) {
        Ok(chosen) => chosen,
        Err(_) => return Ok(most),
    };
    let shares = Aim::Shares(chosen.shares);
    let same = if gains { problem.solve_with_gains(&shares)? } else { problem.solve(&shares)? };
    // What binds is that of the greatest throughput: more of it would help whichever mix is taken.
    Ok(Solution { binding: most.binding, unique: false, ..same })
}

/// The mix that the design's system runs, by demands that are added up: shares by alternative, the
/// largest first.
pub fn shares_run(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
) -> Result<Vec<(String, f64)>, miette::Report> {
    let main = main_router(ready)?;
    let all = |evaluation: Evaluation| match &design.runs {
        Runs::Best => Some(evaluation.optimal),
        Runs::Greedy => Some(evaluation.greedy),
        Runs::Mix(name) => {
            let index = design.mixes.iter().position(|mix| mix.name == *name)?;
            evaluation.mixes.into_iter().nth(index)
        }
        Runs::Alternative(_) => None,
    };
    if let Runs::Alternative(name) = &design.runs {
        return Ok(vec![(name.clone(), 1.0)]);
    }
    let solution = all(evaluate(design, ready, folds, &main, false)?)
        .ok_or_else(|| miette::miette!("the mix `{}` is not in the design", design.runs.name()))?;
    let mut shares: Vec<(String, f64)> =
        solution.shares.into_iter().filter(|(_, share)| *share > 1e-6).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(shares)
}

/// Requests per second that the stations carry at fixed shares; 0 where a limit leaves nothing.
pub fn capacity_at(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    shares: &[(String, f64)],
) -> Result<f64, miette::Report> {
    let main = main_router(ready)?;
    let mut problem = stations(&main, design.host_cpu_share);
    for (one, fold) in ready.iter().zip(folds) {
        if shares.iter().any(|(name, _)| *name == one.alternative.name) {
            problem.activities.push(activity(&one.alternative.name, fold));
        }
    }
    let aim = Aim::Shares(shares.iter().cloned().collect());
    Ok(problem.solve(&aim).map_err(PlanError::from)?.total)
}

/// The routes of the design's own device.
fn main_router(ready: &[Ready]) -> Result<Rc<Router>, PlanError> {
    ready
        .iter()
        .find(|one| one.alternative.device.is_none())
        .map(|one| one.router.clone())
        .ok_or_else(|| PlanError::NothingAllowed { reason: "all run on other devices".to_string() })
}

/// Plans a design whose alternatives demand `folds`, observed or added up.
pub fn plan(design: &Design, ready: &[Ready], folds: &[Fold]) -> Result<Plan, miette::Report> {
    let main = main_router(ready)?;
    let base = evaluate(design, ready, folds, &main, true)?;
    let mut extremes = Extremes::new(&base);
    let mut influences = Vec::new();
    let mut leading: Vec<Option<(String, f64, Basis)>> = vec![None; ready.len()];
    let names = uncertain(main.system());
    for (name, number) in &names {
        let mut ends = Vec::new();
        for value in [number.low, number.high].into_iter().flatten() {
            let moved = shifted(design, ready, folds, name, value)?;
            let evaluation = evaluate(design, &moved.0, &moved.1, &moved.2, false)?;
            extremes.include(&evaluation);
            for (index, solution) in evaluation.alone.iter().enumerate() {
                let change = (solution.total / base.alone[index].total - 1.0).abs();
                let rows = &ready[index].alternative.rows;
                let basis = if number.rows.iter().any(|row| rows.contains(row)) {
                    Basis::Fitted
                } else if change > 0.05 {
                    Basis::Weak
                } else {
                    Basis::Predicted
                };
                if change > 1e-3 && leading[index].as_ref().is_none_or(|(_, most, _)| change > *most) {
                    leading[index] = Some((name.clone(), change, basis));
                }
            }
            ends.push(evaluation.optimal);
        }
        if let [low, high] = ends.as_slice()
            && let (Some(low_value), Some(high_value)) = (number.low, number.high)
        {
            let composition = |solution: &Solution| -> Vec<String> {
                solution.shares.iter().filter(|(_, s)| **s > 0.005).map(|(n, _)| n.clone()).collect()
            };
            let usual = composition(&base.optimal);
            let changes = [(low, low_value), (high, high_value)]
                .into_iter()
                .filter(|(solution, _)| composition(solution) != usual)
                .map(|(solution, value)| format!("{} at {value}", composition(solution).join(" + ")))
                .collect::<Vec<_>>();
            influences.push(Influence {
                number: name.clone(),
                low: low_value,
                high: high_value,
                rate_low: low.total,
                rate_high: high.total,
                changes: (!changes.is_empty()).then(|| changes.join(", ")),
            });
        }
    }
    let span =
        |i: &Influence| (i.rate_low - base.optimal.total).abs().max((i.rate_high - base.optimal.total).abs());
    influences.retain(|i| span(i) > 1e-4 * base.optimal.total || i.changes.is_some());
    influences.sort_by(|a, b| span(b).total_cmp(&span(a)));
    let alternatives = ready
        .iter()
        .enumerate()
        .map(|(index, one)| {
            let solution = &base.alone[index];
            let binding = solution.binding.first().map(|b| b.constraint.clone());
            let (mut basis, mut leader) = match &leading[index] {
                Some((name, _, basis)) => (*basis, Some(name.clone())),
                None => (Basis::Predicted, None),
            };
            if let Some(number) = binding.as_ref().and_then(|c| rests_on(c, &one.router)) {
                let (name, number) = number;
                if basis == Basis::Predicted || basis == Basis::Fitted {
                    if number.rows.iter().any(|row| one.alternative.rows.contains(row)) {
                        basis = Basis::Fitted;
                    } else if number.provenance == Provenance::Assumed {
                        basis = Basis::OrderOnly;
                    }
                }
                leader = leader.or(Some(name));
            }
            Alone {
                name: one.alternative.name.clone(),
                description: one.alternative.description.clone(),
                device: one.alternative.device.clone(),
                mixed: one.alternative.mixed,
                rate: extremes.alone[index],
                latency_s: folds[index].latency,
                binding: binding.as_ref().map_or_else(|| "nothing".to_string(), ToString::to_string),
                reason: binding.map_or_else(String::new, |c| reason(&c, &one.router, &folds[index])),
                basis,
                leading: leader,
                host_cpu_s: folds[index].seconds.get("host.cpu").copied().unwrap_or(0.0),
                network_bytes: folds[index].network_bytes,
                demand: folds[index].clone(),
            }
        })
        .collect();
    let mix = |name: &str, solution: &Solution, rate: Ranged| mix(name, solution, rate, ready, folds, &main);
    let assumed = main
        .system()
        .numbers
        .iter()
        .filter(|(name, number)| {
            number.provenance == Provenance::Assumed && base.optimal.binding.iter().any(|b| touches(b, name))
        })
        .map(|(name, _)| name.clone())
        .collect();
    Ok(Plan {
        mixes: design
            .mixes
            .iter()
            .zip(&base.mixes)
            .zip(&extremes.mixes)
            .map(|((named, solution), rate)| mix(&named.name, solution, *rate))
            .collect(),
        greedy: mix("greedy", &base.greedy, extremes.greedy),
        greedy_order: base.order.clone(),
        optimal: mix("optimal", &base.optimal, extremes.optimal),
        alternatives,
        influences,
        assumed,
        cache: design.cache.clone(),
        servers: main
            .stations()
            .iter()
            .map(|s| (s.name.clone(), s.servers() as f64))
            .filter(|(_, n)| *n > 0.0)
            .collect(),
    })
}

fn touches(binding: &offpath_capacity::Binding, number: &str) -> bool {
    match &binding.constraint {
        Constraint::Station(name) => name.rsplit_once('.').is_some_and(|(owner, _)| {
            number.rsplit_once('.').is_some_and(|(component, _)| component == owner)
        }),
        _ => false,
    }
}

/// The numbers that are known as a range.
fn uncertain(system: &System) -> Vec<(String, Number)> {
    system
        .numbers
        .iter()
        .filter(|(_, number)| number.low.is_some() || number.high.is_some())
        .map(|(name, number)| (name.clone(), Number::clone(number)))
        .collect()
}

type Shifted = (Vec<Ready>, Vec<Fold>, Rc<Router>);

/// The design with one number changed on every system that has it. Demands that were observed are
/// scaled by what the change does to the added-up ones.
fn shifted(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    name: &str,
    value: Quantity,
) -> Result<Shifted, miette::Report> {
    let mut routers: BTreeMap<*const Router, Rc<Router>> = BTreeMap::new();
    let mut main = None;
    let (mut moved, mut demands) = (Vec::new(), Vec::new());
    for (one, observed) in ready.iter().zip(folds) {
        let key = Rc::as_ptr(&one.router);
        let router = match routers.get(&key) {
            Some(router) => router.clone(),
            None => {
                let system = match one.router.system().with(name, value) {
                    Ok(system) => system,
                    // Another device need not have the number.
                    Err(_) if one.alternative.device.is_some() => one.router.system().clone(),
                    Err(error) => return Err(error.into()),
                };
                let router = Rc::new(Router::new(&system).map_err(|error| miette::miette!("{error}"))?);
                routers.insert(key, router.clone());
                router
            }
        };
        if one.alternative.device.is_none() {
            main = Some(router.clone());
        }
        let compiled = compile(design, &one.alternative, &router)?;
        let (before, after) = (one.compiled.fold(&one.router), compiled.fold(&router));
        demands.push(rescaled(observed, &before, &after));
        moved.push(Ready { alternative: one.alternative.clone(), compiled, router });
    }
    let main = main.unwrap_or_else(|| ready[0].router.clone());
    Ok((moved, demands, main))
}

fn rescaled(observed: &Fold, before: &Fold, after: &Fold) -> Fold {
    let scale =
        |observed: f64, before: f64, after: f64| if before > 0.0 { observed * after / before } else { after };
    let at = |map: &BTreeMap<String, f64>, key: &String| map.get(key).copied().unwrap_or(0.0);
    Fold {
        seconds: after
            .seconds
            .iter()
            .map(|(name, value)| {
                (name.clone(), scale(at(&observed.seconds, name), at(&before.seconds, name), *value))
            })
            .collect(),
        requests: after.requests.clone(),
        latency: scale(observed.latency, before.latency, after.latency),
        network_bytes: after.network_bytes,
        estimated: after.estimated.clone(),
        background: scale(observed.background, before.background, after.background),
    }
}

struct Extremes {
    alone: Vec<Ranged>,
    mixes: Vec<Ranged>,
    greedy: Ranged,
    optimal: Ranged,
}

impl Extremes {
    fn new(base: &Evaluation) -> Extremes {
        let point =
            |solution: &Solution| Ranged { value: solution.total, low: solution.total, high: solution.total };
        Extremes {
            alone: base.alone.iter().map(point).collect(),
            mixes: base.mixes.iter().map(point).collect(),
            greedy: point(&base.greedy),
            optimal: point(&base.optimal),
        }
    }

    fn include(&mut self, other: &Evaluation) {
        let widen = |range: &mut Ranged, solution: &Solution| {
            range.low = range.low.min(solution.total);
            range.high = range.high.max(solution.total);
        };
        self.alone.iter_mut().zip(&other.alone).for_each(|(range, solution)| widen(range, solution));
        self.mixes.iter_mut().zip(&other.mixes).for_each(|(range, solution)| widen(range, solution));
        widen(&mut self.greedy, &other.greedy);
        widen(&mut self.optimal, &other.optimal);
    }
}

fn mix(
    name: &str,
    solution: &Solution,
    rate: Ranged,
    ready: &[Ready],
    folds: &[Fold],
    router: &Router,
) -> Mix {
    let mut shares: Vec<(String, f64)> =
        solution.shares.iter().filter(|(_, share)| **share > 1e-6).map(|(n, s)| (n.clone(), *s)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mean = |value: &dyn Fn(&Fold) -> f64| {
        shares
            .iter()
            .map(|(name, share)| {
                let index =
                    ready.iter().position(|one| one.alternative.name == *name).expect("a mixed alternative");
                share * value(&folds[index])
            })
            .sum()
    };
    Mix {
        name: name.to_string(),
        rate,
        bounds: solution
            .binding
            .iter()
            .map(|binding| Bound {
                name: binding.constraint.to_string(),
                meaning: meaning(&binding.constraint, router),
                gain_percent: binding.gain_percent_for_10_percent_more,
                is_load: binding.constraint == Constraint::Load,
            })
            .collect(),
        latency_s: mean(&|fold| fold.latency),
        host_cpu_s: mean(&|fold| fold.seconds.get("host.cpu").copied().unwrap_or(0.0)),
        network_bytes: mean(&|fold| fold.network_bytes),
        unique: solution.unique,
        shares,
    }
}

fn meaning(constraint: &Constraint, router: &Router) -> String {
    let station = match constraint {
        Constraint::Station(name) | Constraint::PoolShared(name) => Some(name),
        Constraint::PoolReserved { pool, .. } => Some(pool),
        _ => None,
    };
    station
        .and_then(|name| router.station(name))
        .map_or_else(|| constraint.to_string(), |id| router.stations()[id.index()].meaning.to_string())
}

/// Why a constraint binds, in a few words.
fn reason(constraint: &Constraint, router: &Router, fold: &Fold) -> String {
    match constraint {
        Constraint::Station(name) => {
            let Some(id) = router.station(name) else { return name.clone() };
            let station = &router.stations()[id.index()];
            let time = offpath_quantity::Time::from_ps(
                (fold.seconds.get(name).copied().unwrap_or(0.0) * 1e12) as u64,
            );
            match station.kind {
                Kind::Line => format!("{}: {time} a request", station.meaning),
                _ => format!("{} {}: {time} a request", station.servers(), station.meaning),
            }
        }
        Constraint::PoolShared(pool) | Constraint::PoolReserved { pool, .. } => {
            let asked: f64 = fold.requests.iter().filter(|((name, _), _)| name == pool).map(|(_, n)| n).sum();
            format!("NIC packet cores: {asked:.1} requests each")
        }
        other => other.to_string(),
    }
}

/// The number that a binding station's capacity rests on first of all.
fn rests_on(constraint: &Constraint, router: &Router) -> Option<(String, Number)> {
    let Constraint::Station(name) = constraint else { return None };
    let numbers = &router.system().numbers;
    let candidates: Vec<String> = match name.rsplit_once('.') {
        Some((owner, "contexts")) => vec![format!("{owner}.contexts")],
        Some((owner, "cpu")) => {
            let verbs = router.system().endpoint(owner).ok()?.1.verbs.name.clone();
            vec![format!("{verbs}.receive_time"), format!("{verbs}.post_time")]
        }
        Some((owner, "memory")) => vec![format!("{owner}.bandwidth")],
        Some((owner, "banks")) => vec![format!("{owner}.bank_read_time")],
        Some((owner, "transmit" | "receive")) => vec![format!("{owner}.port_rate")],
        Some((owner, "up" | "down")) => vec![format!("{owner}.rate")],
        Some((owner, "read-path")) => vec![format!("{owner}.read_path_rate")],
        Some((owner, "read")) => vec![format!("{owner}.read_rate")],
        Some((owner, "write")) => vec![format!("{owner}.write_rate")],
        Some((owner, "total")) => vec![format!("{owner}.total_rate")],
        _ => vec![],
    };
    candidates.into_iter().find_map(|name| numbers.get(&name).map(|number| (name, Number::clone(number))))
}
