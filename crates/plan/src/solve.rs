//! Solving a design once, with every number as it is: each alternative alone, the named mixes, greedy and
//! the best mix, over the stations of a system.

use crate::design::{Alternative, Design, Objective, Rank};
use crate::planner::{PlanError, Ready};
use crate::program::Fold;
use offpath_capacity::{
    Activity, Binding, CapacityStation, Constraint, Cost, MixObjective as Aim, MixProblem, Pool, Solution,
};
use offpath_quantity::Time;
use offpath_route::{Router, StationKind};
use std::collections::{BTreeMap, BTreeSet};

/// Of which share on an alternative is one of a mix.
const TAKEN: f64 = 0.005;
const HOST_CPU: &str = "host processor share";
const LATENCY: &str = "latency";
/// By what share of it a throughput may be less and is as good.
pub(crate) const AS_GOOD: f64 = 1e-3;
/// What an alternative has to be worth to a mix to be built for it: holds of slots settle to a hundredth, and twin and
/// plan agree no better than that.
pub(crate) const WORTH_BUILDING: f64 = 0.01;
/// By how much one of two such mixes has to be quicker to be taken for it.
const QUICKER: f64 = 0.05;

/// The stations of one system as a capacity problem without activities, with the limit on its host's processors as far as
/// the system does not have it as fewer cores.
pub fn stations(router: &Router, host_cpu_share: Option<f64>) -> MixProblem {
    let mut problem = MixProblem::default();
    for station in router.stations() {
        match &station.kind {
            StationKind::Pool { shared, reserved } => {
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
            _ => problem.stations.push(CapacityStation::new(station.name.clone(), station.servers() as f64)),
        }
    }
    if let Some(share) = host_cpu_share.filter(|_| router.system().host_share.is_none()) {
        let cores = router.host_processor().map_or(0, |id| router.stations()[id.index()].servers());
        problem.limits.insert(HOST_CPU.to_string(), share * cores as f64);
    }
    problem
}

/// Seconds of the host's processors that a request asks on `router`'s system; 0 where there is no host.
pub fn host_seconds(fold: &Fold, router: &Router) -> f64 {
    let name = router.host_processor().map(|id| router.stations()[id.index()].name.as_str());
    name.and_then(|name| fold.seconds.get(name)).copied().unwrap_or(0.0)
}

/// What `fold` asks of `router`'s stations, as an activity of [`stations`].
pub fn activity(name: &str, fold: &Fold, router: &Router) -> Activity {
    let mut activity = Activity::new(name);
    activity.demand.clone_from(&fold.seconds);
    activity.pool_demand.clone_from(&fold.requests);
    activity.resources.insert(HOST_CPU.to_string(), host_seconds(fold, router));
    activity.resources.insert(LATENCY.to_string(), fold.latency);
    activity
}

/// The solution at fixed shares of alternatives on the design's own device.
pub(crate) fn at_fixed(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    shares: &[(String, f64)],
) -> Result<Solution, PlanError> {
    let main = main_router(parts)?;
    let mut problem = stations(main, design.host_cpu_share);
    for (one, fold) in parts.iter().zip(folds) {
        if shares.iter().any(|(name, _)| *name == one.alternative.name) {
            // A mix of one is that one.
            let demand = if shares.len() == 1 { &fold.alone() } else { fold };
            problem.activities.push(activity(&one.alternative.name, demand, main));
        }
    }
    by_name(&mut problem);
    Ok(problem.solve(&Aim::Shares(shares.iter().cloned().collect()))?)
}

/// A solution that carries more than a load, at that load.
pub(crate) fn at_load(mut solution: Solution, load: f64) -> Solution {
    let part = load / solution.total;
    if part < 1.0 {
        solution.rates.values_mut().for_each(|rate| *rate *= part);
        solution.utilization.values_mut().for_each(|used| *used *= part);
        solution.total = load;
        let full =
            |bound: &Binding| solution.utilization.get(&bound.constraint).is_some_and(|used| *used > 0.999);
        solution.binding.retain(full);
    }
    solution
}

/// Requests per second that the ports and links of `router` carry, where the payload of a request asks
/// `seconds` of a station: no error of a model makes them faster. Headers are part of the model.
pub(crate) fn wire_rate(router: &Router, seconds: impl Fn(&str) -> f64) -> f64 {
    let wires = router.stations().iter().filter(|station| station.wire.is_some());
    let rates = wires.map(|wire| wire.servers() as f64 / seconds(&wire.name));
    rates.fold(f64::INFINITY, f64::min)
}

/// What of `drawn` seconds at a wire the payload alone asks, where with every number at its value it asks `bare` of
/// `whole`: smaller headers make no payload faster, so no less than `bare`, and never more than all of `drawn`.
pub(crate) fn payload_of(drawn: f64, whole: f64, bare: f64) -> f64 {
    if whole > 0.0 { bare.max(drawn * bare / whole).min(drawn) } else { drawn }
}

/// An alternative and the routes of the system that it runs on.
#[derive(Clone, Copy)]
pub(crate) struct Part<'a> {
    pub alternative: &'a Alternative,
    pub router: &'a Router,
}

impl<'a> Part<'a> {
    pub fn all(ready: &'a [Ready]) -> Vec<Part<'a>> {
        ready.iter().map(|one| Part { alternative: &one.alternative, router: &one.router }).collect()
    }
}

/// One evaluation of a design: every alternative and mix with the numbers as they are, in requests per second.
pub struct Evaluation {
    /// Each alternative alone, in the design's order.
    pub alone: Vec<Solution>,
    /// Each mix that the design names.
    pub mixes: Vec<Solution>,
    /// The alternatives filled one after the other.
    pub greedy: Solution,
    /// The order in which greedy fills them.
    pub order: Vec<String>,
    /// The best mix for the design's objective.
    pub optimal: Solution,
    /// What could be carried at most where throughput is sought, by any mix or alternative, before one that brings less than a
    /// hundredth is left out.
    pub most: f64,
    /// The least and the greatest share of each alternative in mixes that carry as much to a thousandth, where the best
    /// mix is not the only one and throughput is sought; for what is printed alone.
    pub as_good: BTreeMap<String, (f64, f64)>,
}

/// What a design carries by added-up demands, without intervals and basis: [`plan`](crate::plan) solves hundreds of draws
/// for these.
///
/// # Errors
/// [`PlanError`] where no mix is allowed or the load is not carried.
pub fn solved(design: &Design, ready: &[Ready], folds: &[Fold]) -> Result<Evaluation, PlanError> {
    evaluate(design, &Part::all(ready), folds, true)
}

/// The routes of the design's own device.
pub(crate) fn main_router<'a>(parts: &[Part<'a>]) -> Result<&'a Router, PlanError> {
    parts
        .iter()
        .find(|one| one.alternative.device.is_none())
        .map(|one| one.router)
        .ok_or_else(|| PlanError::NothingAllowed { reason: "all run on other devices".to_string() })
}

/// Each alternative with nothing beside it, whatever load the design asks for.
pub(crate) fn each_alone(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
) -> Result<Vec<Solution>, PlanError> {
    let alone = parts.iter().zip(folds).map(|(one, fold)| {
        let mut problem = stations(one.router, design.host_cpu_share);
        problem.activities.push(activity(&one.alternative.name, &fold.alone(), one.router));
        Ok(problem.alone(&one.alternative.name)?)
    });
    alone.collect()
}

pub(crate) fn evaluate(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    gains: bool,
) -> Result<Evaluation, PlanError> {
    let solve = |problem: &MixProblem, aim: &Aim| {
        if gains { problem.solve_with_gains(aim) } else { problem.solve(aim) }
    };
    let alone = each_alone(design, parts, folds)?;
    let main = main_router(parts)?;
    let all = problem_of(design, parts, folds, |one| one.alternative.device.is_none())?;
    // A mix of one is that one.
    let or_alone = |solution: Solution| match &shares(&solution)[..] {
        [(only, _)] => {
            let index = parts.iter().position(|one| one.alternative.name == *only);
            index.map_or(solution, |index| alone[index].clone())
        }
        _ => solution,
    };
    let mut mixes = Vec::new();
    for mix in &design.mixes {
        mixes.push(or_alone(solve(&all, &Aim::Greedy(mix.fill.clone()))?));
    }
    let allowed = allowed(design, parts, folds);
    if allowed.is_empty() {
        let reason = match design.latency_bound {
            Some(bound) => format!("none has an unloaded latency within {bound}"),
            None => "every one is marked `mixed = false` or runs on another device".to_string(),
        };
        return Err(PlanError::NothingAllowed { reason });
    }
    let mut problem = all;
    problem.activities.retain(|activity| allowed.iter().any(|&i| parts[i].alternative.name == activity.name));
    let mut order = allowed.clone();
    let key = |i: usize| match design.rank {
        Rank::UnloadedLatency => folds[i].latency,
        Rank::NetworkSaved => folds[i].network_bytes,
        Rank::Throughput => -alone[i].total,
        Rank::HostCpu => host_seconds(&folds[i], parts[i].router),
    };
    // Alternatives that a criterion does not tell apart are filled fastest first, and such as are as fast by their names.
    order.sort_by(|&a, &b| {
        let faster = alone[b].total.total_cmp(&alone[a].total);
        key(a).total_cmp(&key(b)).then(faster).then(parts[a].alternative.name.cmp(&parts[b].alternative.name))
    });
    let order: Vec<String> = order.into_iter().map(|i| parts[i].alternative.name.clone()).collect();
    let fill = |problem: &MixProblem| {
        let known = |name: &&String| problem.activities.iter().any(|one| one.name == **name);
        Ok(solve(problem, &Aim::Greedy(order.iter().filter(known).cloned().collect()))?)
    };
    let carries = |without: &Solution, full: &Solution| without.total >= full.total * (1.0 - WORTH_BUILDING);
    // Greedy fills what there is, whatever is sought.
    let greedy = or_alone(without_slivers(&problem, carries, fill)?);
    // All that is left out together may cost a hundredth of this, and no more.
    let mut most = match design.objective {
        Objective::MostThroughput => problem.solve(&Aim::Throughput)?.total,
        _ => 0.0,
    };
    if let Some(index) = best_alone(design, parts, &alone, &allowed) {
        most = most.max(alone[index].total);
    }
    let is_as_good = |without: &Solution, full: &Solution| match design.objective {
        Objective::MostThroughput => without.total >= most * (1.0 - WORTH_BUILDING),
        _ => without.objective <= full.objective * (1.0 + WORTH_BUILDING) + 1e-12,
    };
    let optimal = without_slivers(&problem, is_as_good, |problem| best(design, problem, gains, most))?;
    if shares(&optimal).is_empty() {
        return Err(nothing(design, parts, folds, &allowed));
    }
    // Of all but throughput a load is sought, which each carries by itself or not at all.
    let optimal = match &shares(&optimal)[..] {
        [(only, _)] if matches!(design.objective, Objective::MostThroughput) => {
            let index = parts.iter().position(|one| one.alternative.name == *only);
            match index.filter(|index| folds[*index].alone().seconds != folds[*index].seconds) {
                Some(index) => {
                    let mut own = stations(main, design.host_cpu_share);
                    own.activities.push(activity(only, &folds[index].alone(), main));
                    Solution { unique: optimal.unique, ..best(design, &own, gains, most)? }
                }
                None => optimal,
            }
        }
        _ => optimal,
    };
    let mut optimal = optimal;
    let mut open = allowed;
    while let Some(index) = best_alone(design, parts, &alone, &open) {
        open.retain(|one| *one != index);
        let latency = mean_of(&shares(&optimal), parts, |index| folds[index].latency);
        let one = (alone[index].total, folds[index].latency);
        if replaces(one, (optimal.total, latency), most) {
            let is_less = alone[index].total < optimal.total;
            let taken = Solution { unique: alone[index].unique && !is_less, ..alone[index].clone() };
            optimal = if is_less { priced(taken, &optimal) } else { taken };
        }
    }
    let is_told = gains && !optimal.unique && matches!(design.objective, Objective::MostThroughput);
    let as_good = if is_told { as_good(&problem, optimal.total) } else { BTreeMap::new() };
    Ok(Evaluation { alone, mixes, greedy, order, optimal, most, as_good })
}

/// The least and the greatest share of each activity in mixes that carry as much, to a thousandth.
fn as_good(problem: &MixProblem, total: f64) -> BTreeMap<String, (f64, f64)> {
    const OWN: &str = "requests of one";
    let load = total * (1.0 - AS_GOOD);
    let least_of = |name: &str, sign: f64| {
        let mut problem = problem.clone();
        for one in &mut problem.activities {
            one.resources.insert(OWN.to_string(), if one.name == name { sign } else { 0.0 });
        }
        let aim = Aim::LeastCost { cost: Cost::Resource(OWN.to_string()), load };
        problem.solve(&aim).ok()?.shares.get(name).copied()
    };
    let names = problem.activities.iter().map(|one| &one.name);
    names
        .filter_map(|name| Some((name.clone(), (least_of(name, 1.0)?, least_of(name, -1.0)?))))
        .filter(|(_, (_, high))| *high > TAKEN)
        .collect()
}

/// The alternatives that the best mix may take.
pub(crate) fn allowed(design: &Design, parts: &[Part<'_>], folds: &[Fold]) -> Vec<usize> {
    (0..parts.len())
        .filter(|&i| parts[i].alternative.mixed)
        .filter(|&i| keeps_bound(design, &folds[i]))
        .collect()
}

/// Whether a request of an alternative keeps the design's bound on unloaded latency.
pub(crate) fn keeps_bound(design: &Design, fold: &Fold) -> bool {
    design.latency_bound.is_none_or(|bound| fold.latency <= bound.as_seconds())
}

/// The alternatives of a mix that the design's latency bound forbids: it holds of each, and not of their mean.
pub(crate) fn beyond_bound(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    shares: &[(String, f64)],
) -> Vec<String> {
    let is_taken = |one: &Part<'_>| shares.iter().any(|(name, _)| *name == one.alternative.name);
    let beyond = parts.iter().zip(folds).filter(|(one, fold)| is_taken(one) && !keeps_bound(design, fold));
    beyond.map(|(one, _)| one.alternative.name.clone()).collect()
}

/// Of the alternatives that a mix may take, the one that carries most by itself, where throughput is sought. It may
/// carry more than any mix: in a mix its slots are held while it waits for what the others do.
pub(crate) fn best_alone(
    design: &Design,
    parts: &[Part<'_>],
    alone: &[Solution],
    allowed: &[usize],
) -> Option<usize> {
    let of = |i: &usize| alone[*i].total;
    let name = |i: &usize| &parts[*i].alternative.name;
    let best = allowed.iter().copied().max_by(|a, b| of(a).total_cmp(&of(b)).then(name(b).cmp(name(a))));
    best.filter(|_| matches!(design.objective, Objective::MostThroughput))
}

/// Whether an alternative alone, by its rate and latency, is taken for a mix or for another alternative where the
/// greatest rate is `most`: it is quicker by a twentieth and carries a hundredth less than that at most, since twin and
/// plan agree no better; or it carries more, and by a hundredth more where it is slower by a twentieth.
pub(crate) fn replaces(one: (f64, f64), other: (f64, f64), most: f64) -> bool {
    let is_quicker = |one: (f64, f64), than: (f64, f64)| one.1 <= than.1 * (1.0 - QUICKER);
    let needed = match (is_quicker(one, other), is_quicker(other, one)) {
        (true, _) => most * (1.0 - WORTH_BUILDING),
        (_, true) => other.0 / (1.0 - WORTH_BUILDING),
        _ => other.0 * (1.0 + AS_GOOD),
    };
    one.0 > needed
}

/// Why no alternative of some carries anything.
pub(crate) fn nothing(design: &Design, parts: &[Part<'_>], folds: &[Fold], among: &[usize]) -> PlanError {
    let host = |i: usize| host_seconds(&folds[i], parts[i].router);
    let least = among.iter().copied().min_by(|&a, &b| host(a).total_cmp(&host(b)));
    let reason = match (design.host_cpu_share, least) {
        (Some(share), Some(least)) if host(least) > 0.0 => format!(
            "`host_cpu_share` leaves {share} of the host's processors, and `{}`, which needs the least, takes {} of them \
             a request",
            parts[least].alternative.name,
            Time::from_seconds(host(least))
        ),
        _ => "the stations carry nothing of any".to_string(),
    };
    PlanError::NothingAllowed { reason }
}

/// A solution that takes no alternative for next to nothing: one whose removal costs less than a hundredth is
/// removed, since nobody would build it for that, and its rarest request would decide how well the mix is known.
fn without_slivers(
    problem: &MixProblem,
    is_as_good: impl Fn(&Solution, &Solution) -> bool,
    solve: impl Fn(&MixProblem) -> Result<Solution, PlanError>,
) -> Result<Solution, PlanError> {
    const SLIVER: f64 = 0.02;
    let full = solve(problem)?;
    let mut kept = full.clone();
    let mut problem = problem.clone();
    loop {
        let taken = shares(&kept);
        let small = taken.iter().rev().take_while(|(_, share)| *share < SLIVER);
        let mut next = None;
        for (name, _) in small.take(taken.len().saturating_sub(1)) {
            let mut fewer = problem.clone();
            fewer.activities.retain(|activity| activity.name != *name);
            let Ok(without) = solve(&fewer) else { continue };
            if is_as_good(&without, &full) {
                next = Some((fewer, without));
                break;
            }
        }
        match next {
            Some((fewer, without)) => (problem, kept) = (fewer, without),
            None => return Ok(kept),
        }
    }
}

/// The best mix of a problem's activities for the design's objective, of as few as carry all but a hundredth of `most` where
/// throughput is sought.
fn best(design: &Design, problem: &MixProblem, gains: bool, most: f64) -> Result<Solution, PlanError> {
    let solve = |aim: &Aim| if gains { problem.solve_with_gains(aim) } else { problem.solve(aim) };
    Ok(match design.objective {
        Objective::MostThroughput => {
            let own = solve(&Aim::Throughput)?;
            let enough = own.total.max(most) * (1.0 - WORTH_BUILDING);
            let chosen = quickest(problem, own, gains)?;
            simplest(problem, chosen, enough, gains)?
        }
        Objective::LeastHostCpu { load } => {
            let aim = Aim::LeastCost { cost: Cost::Resource(HOST_CPU.to_string()), load };
            let least = solve(&aim)?;
            let least = if least.unique { least } else { quickest_of_least(problem, least, load)? };
            alone_at_load(problem, least, &aim, gains)
        }
        // The mix that the twin's bisection starts from: the least mean latency at the load.
        Objective::LowestP99 { load } => {
            let aim = Aim::LeastCost { cost: Cost::Resource(LATENCY.to_string()), load };
            alone_at_load(problem, solve(&aim)?, &aim, gains)
        }
    })
}

/// What costs less than so many seconds costs nothing, and has a goodness too.
pub(crate) const LEAST_COST: f64 = 1e-12;

/// How good the best mix of a problem's activities is by the design's goal, the more the better, without any preference among
/// those that are nearly as good: an upper bound of every mix of some of them.
pub(crate) fn goodness(design: &Design, problem: &MixProblem) -> Option<(f64, Solution)> {
    let aim = |cost: &str, load| Aim::LeastCost { cost: Cost::Resource(cost.to_string()), load };
    let solution = match design.objective {
        Objective::MostThroughput => problem.solve(&Aim::Throughput),
        Objective::LeastHostCpu { load } => problem.solve(&aim(HOST_CPU, load)),
        Objective::LowestP99 { load } => problem.solve(&aim(LATENCY, load)),
    };
    let solution = solution.ok().filter(|solution| solution.total > 0.0)?;
    let good = match design.objective {
        Objective::MostThroughput => solution.total,
        _ => 1.0 / solution.objective.max(LEAST_COST),
    };
    Some((good, solution))
}

/// By how much one worth is better than another by a goal, as a share of the other's: more is better of throughput, less of
/// time. 0 where both are the same, also nothing; infinite where it takes nothing of what the other takes.
pub(crate) fn better_by(objective: Objective, worth: f64, than: f64) -> f64 {
    match objective {
        _ if worth == than => 0.0,
        Objective::MostThroughput => worth / than - 1.0,
        Objective::LeastHostCpu { .. } | Objective::LowestP99 { .. } => than / worth - 1.0,
    }
}

/// One alternative of a mix alone, where it carries the load at the same cost and is as quick: nobody would build two
/// things for what one does.
fn alone_at_load(problem: &MixProblem, mix: Solution, aim: &Aim, gains: bool) -> Solution {
    // What the solver's rounding may make of equal costs.
    const ROUNDING: f64 = 1e-6;
    let taken = shares(&mix);
    let of_one = |name: &str| {
        let mut one = problem.clone();
        one.activities.retain(|activity| activity.name == name);
        let alone = if gains { one.solve_with_gains(aim) } else { one.solve(aim) }.ok()?;
        let costs_more = alone.objective > mix.objective * (1.0 + ROUNDING) + 1e-15;
        let is_slower = latency_of(problem, &alone) > latency_of(problem, &mix) * (1.0 + ROUNDING);
        (!costs_more && !is_slower).then_some(Solution { unique: false, ..alone })
    };
    let alone = if taken.len() > 1 { taken.iter().find_map(|(name, _)| of_one(name)) } else { None };
    alone.unwrap_or(mix)
}

/// Of several mixes with the greatest throughput, the one with the least mean unloaded latency. What is observed on
/// the twin never ties to the last digit: a mix that is worse by a thousandth and quicker by a twentieth is as good.
fn quickest(problem: &MixProblem, most: Solution, gains: bool) -> Result<Solution, PlanError> {
    // At least a millionth below the greatest load, so that rounding cannot make it infeasible.
    let below = if most.unique { AS_GOOD } else { 1e-6 };
    let aim = Aim::LeastCost { cost: Cost::Resource(LATENCY.to_string()), load: most.total * (1.0 - below) };
    let chosen = match problem.solve(&aim) {
        Ok(chosen) => chosen,
        Err(_) => return Ok(most),
    };
    if most.unique && latency_of(problem, &chosen) > latency_of(problem, &most) * (1.0 - QUICKER) {
        return Ok(most);
    }
    let shares = Aim::Shares(chosen.shares);
    let same = if gains { problem.solve_with_gains(&shares)? } else { problem.solve(&shares)? };
    Ok(priced(Solution { unique: false, ..same }, &most))
}

/// A mix that is taken for another one that is as good: what it fills binds, to within what it is let be worse by, and
/// more of that is worth what it is worth where shares may be chosen again.
fn priced(mut taken: Solution, other: &Solution) -> Solution {
    let used = |bound: &Binding| taken.utilization.get(&bound.constraint).copied().unwrap_or(0.0);
    let mut binding: Vec<Binding> =
        other.binding.iter().filter(|bound| used(bound) > 1.0 - 2.0 * AS_GOOD).cloned().collect();
    let own = taken.binding.drain(..);
    let own = own.filter(|bound| !other.binding.iter().any(|same| same.constraint == bound.constraint));
    binding.extend(own.collect::<Vec<_>>());
    taken.binding = binding;
    taken
}

/// One alternative of a mix alone, where it carries `enough` and is as quick as the mix, or as few as do: nobody would build
/// two things for what one does.
fn simplest(problem: &MixProblem, mix: Solution, enough: f64, gains: bool) -> Result<Solution, PlanError> {
    let taken = composition(&mix);
    if taken.len() < 2 {
        return Ok(mix);
    }
    let slowest = latency_of(problem, &mix) * (1.0 + QUICKER);
    for (name, _) in shares(&mix) {
        let alone = Aim::Shares(BTreeMap::from([(name, 1.0)]));
        let alone = if gains { problem.solve_with_gains(&alone)? } else { problem.solve(&alone)? };
        if alone.total >= enough && latency_of(problem, &alone) <= slowest {
            return Ok(priced(Solution { unique: false, ..alone }, &mix));
        }
    }
    let mut kept = mix.clone();
    while let Some(fewer) = without_one(problem, &kept, gains)?
        .into_iter()
        .filter(|fewer| fewer.total >= enough)
        .find(|fewer| latency_of(problem, fewer) <= slowest)
    {
        kept = priced(Solution { unique: false, ..fewer }, &mix);
    }
    Ok(kept)
}

/// The best mixes without one of the three or more alternatives that a mix takes, that of the smallest share first.
fn without_one(problem: &MixProblem, mix: &Solution, gains: bool) -> Result<Vec<Solution>, PlanError> {
    let taken = composition(mix);
    if taken.len() < 3 {
        return Ok(Vec::new());
    }
    let mut of_taken = problem.clone();
    of_taken.activities.retain(|activity| taken.contains(&activity.name));
    let named = shares(mix).into_iter().rev().filter(|(name, _)| taken.contains(name));
    named
        .map(|(name, _)| {
            let mut fewer = of_taken.clone();
            fewer.activities.retain(|activity| activity.name != name);
            let most = if gains {
                fewer.solve_with_gains(&Aim::Throughput)?
            } else {
                fewer.solve(&Aim::Throughput)?
            };
            quickest(&fewer, most, gains)
        })
        .collect()
}

/// Mean unloaded latency of a mix, in seconds.
fn latency_of(problem: &MixProblem, solution: &Solution) -> f64 {
    let of = |name: &str| problem.activities.iter().find(|one| one.name == name);
    let each = solution.shares.iter().filter_map(|(name, share)| Some(share * of(name)?.resources[LATENCY]));
    each.sum()
}

/// Of several mixes that take as little of the host's processors at a load, the one with the least mean
/// unloaded latency.
fn quickest_of_least(problem: &MixProblem, least: Solution, load: f64) -> Result<Solution, PlanError> {
    let of = |name: &str| problem.activities.iter().find(|one| one.name == name);
    let seconds = least.shares.iter().filter_map(|(name, share)| Some(share * of(name)?.resources[HOST_CPU]));
    // A millionth more, so that rounding cannot make it infeasible.
    let spent = load * seconds.sum::<f64>() * (1.0 + 1e-6) + 1e-9;
    let mut problem = problem.clone();
    let limit = problem.limits.entry(HOST_CPU.to_string()).or_insert(spent);
    *limit = limit.min(spent);
    match problem.solve(&Aim::LeastCost { cost: Cost::Resource(LATENCY.to_string()), load }) {
        Ok(chosen) => {
            // The limit on the host's time that was put in is not a bound of the design's.
            let full =
                |bound: &Binding| chosen.utilization.get(&bound.constraint).is_some_and(|used| *used > 0.999);
            let binding = least.binding.into_iter().filter(full).collect();
            Ok(Solution { binding, objective: least.objective, unique: false, ..chosen })
        }
        Err(_) => Ok(least),
    }
}

/// Whether a station is in-flight slots.
pub(crate) fn is_slot(router: &Router, station: &str) -> bool {
    matches!(router.station(station).map(|id| router.kind(id)), Some(StationKind::InflightSlots(_)))
}

/// Whether in-flight slots bind what was solved.
pub(crate) fn slots_bind(router: &Router, solution: &Solution) -> bool {
    let mut bounds = solution.binding.iter();
    bounds.any(|bound| matches!(&bound.constraint, Constraint::Station(name) if is_slot(router, name)))
}

/// The rate of a mix that a limit of the design binds and no station does: the limit is nothing that a twin runs
/// into, so that it has to be loaded by as much.
pub(crate) fn limited(solution: &Solution) -> Option<f64> {
    let is_limit = |bound: &Binding| matches!(bound.constraint, Constraint::Limit(_));
    let binds = !solution.binding.is_empty() && solution.binding.iter().all(is_limit);
    binds.then_some(solution.total)
}

/// What a solution is worth by the design's own goal: requests per second, seconds of the host's processors a
/// request, or seconds of mean unloaded latency.
pub(crate) fn worth(design: &Design, parts: &[Part<'_>], folds: &[Fold], solution: &Solution) -> f64 {
    let mean = |value: &dyn Fn(usize) -> f64| mean_of(&shares(solution), parts, value);
    match design.objective {
        Objective::MostThroughput => solution.total,
        Objective::LeastHostCpu { .. } => mean(&|index| host_seconds(&folds[index], parts[index].router)),
        Objective::LowestP99 { .. } => mean(&|index| folds[index].latency),
    }
}

/// The alternatives that the best mix is made of: of those in `set` as far as no mix is better by more than a hundredth than
/// the best one of these, since which of several equals is named decides nothing.
pub(crate) fn best_set(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    seen: &Evaluation,
    set: &[String],
) -> Vec<String> {
    let optimal = &seen.optimal;
    let best_of_all = composition(optimal);
    // What the latency bound forbids with these numbers is not the best, however fast it is.
    let is_forbidden =
        |(one, fold): (&Part<'_>, &Fold)| set.contains(&one.alternative.name) && !keeps_bound(design, fold);
    let forbidden = parts.iter().zip(folds).any(is_forbidden);
    if forbidden || best_of_all.iter().all(|name| set.contains(name)) {
        return best_of_all;
    }
    let Ok(problem) = problem_of(design, parts, folds, |one| set.contains(&one.alternative.name)) else {
        return best_of_all;
    };
    match best(design, &problem, false, seen.most) {
        Ok(own) if is_as_good(design, seen, &own) => composition(&own),
        _ => best_of_all,
    }
}

/// Orders what is mixed by name: where a file has an alternative says nothing of it, and of two mixes as good the solver takes
/// the first.
fn by_name(problem: &mut MixProblem) {
    problem.activities.sort_by(|a, b| a.name.cmp(&b.name));
}

/// The stations with what some alternatives ask of them.
fn problem_of(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    is_taken: impl Fn(&Part<'_>) -> bool,
) -> Result<MixProblem, PlanError> {
    let main = main_router(parts)?;
    let mut problem = stations(main, design.host_cpu_share);
    for (one, fold) in parts.iter().zip(folds).filter(|(one, _)| is_taken(one)) {
        problem.activities.push(activity(&one.alternative.name, fold, main));
    }
    by_name(&mut problem);
    Ok(problem)
}

/// Whether no mix is better than one by more than a hundredth.
fn is_as_good(design: &Design, seen: &Evaluation, one: &Solution) -> bool {
    match design.objective {
        Objective::MostThroughput => one.total >= seen.most * (1.0 - WORTH_BUILDING),
        _ => one.objective <= seen.optimal.objective * (1.0 + WORTH_BUILDING) + 1e-12,
    }
}

/// Whether a mix without one of `set` is as good as the best one of it and no slower by a twentieth: which of the two is
/// named then decides nothing.
pub(crate) fn is_matched(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[Fold],
    seen: &Evaluation,
    set: &[String],
) -> bool {
    let allowed: BTreeSet<&str> = allowed(design, parts, folds)
        .into_iter()
        .map(|index| parts[index].alternative.name.as_str())
        .collect();
    let latency = mean_of(&shares(&seen.optimal), parts, |index| folds[index].latency);
    set.iter().any(|left| {
        let is_other = |one: &Part<'_>| {
            let name = one.alternative.name.as_str();
            one.alternative.device.is_none() && allowed.contains(name) && name != left
        };
        let Ok(others) = problem_of(design, parts, folds, is_other) else { return false };
        let Some((_, most)) = goodness(design, &others).filter(|(_, one)| is_as_good(design, seen, one))
        else {
            return false;
        };
        let one = match design.objective {
            Objective::MostThroughput => quickest(&others, most, false),
            _ => Ok(most),
        };
        one.is_ok_and(|one| latency_of(&others, &one) <= latency * (1.0 + QUICKER))
    })
}

/// The alternatives that a mix takes more than half a percent of, by name.
pub(crate) fn composition(solution: &Solution) -> Vec<String> {
    made_of(&solution.shares)
}

/// [`composition`] by the shares alone.
pub(crate) fn made_of<'s>(shares: impl IntoIterator<Item = (&'s String, &'s f64)>) -> Vec<String> {
    let taken = shares.into_iter().filter(|(_, share)| **share > TAKEN);
    let mut names: Vec<String> = taken.map(|(name, _)| name.clone()).collect();
    names.sort();
    names
}

/// A mix's shares by alternative, the largest first.
pub fn shares(solution: &Solution) -> Vec<(String, f64)> {
    let mut shares: Vec<(String, f64)> =
        solution.shares.iter().filter(|(_, share)| **share > 1e-6).map(|(n, s)| (n.clone(), *s)).collect();
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    shares
}

/// Seconds, requests and latency at a mix's shares.
pub(crate) fn mean_of(shares: &[(String, f64)], parts: &[Part<'_>], value: impl Fn(usize) -> f64) -> f64 {
    let index = |name: &str| {
        parts.iter().position(|one| one.alternative.name == name).expect("a mix names alternatives")
    };
    shares.iter().map(|(name, share)| share * value(index(name))).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of two things that carry all, and a third that is quicker by next to nothing, nobody builds three.
    #[test]
    fn a_third_alternative_that_brings_nothing_is_not_taken() {
        let of = |name: &str, stations: &[(&str, f64)], latency: f64| {
            let mut activity = Activity::new(name);
            activity.demand.extend(stations.iter().map(|(station, s)| (station.to_string(), *s)));
            activity.resources.insert(LATENCY.to_string(), latency);
            activity
        };
        let chosen = |latency: f64| {
            let problem = MixProblem {
                stations: ["one", "two", "three"].map(|name| CapacityStation::new(name, 1.0)).into(),
                activities: vec![
                    of("a", &[("one", 1.0)], 1.0),
                    of("b", &[("two", 1.0)], 1.0),
                    of("c", &[("one", 0.5), ("two", 0.5), ("three", 2.0)], latency),
                ],
                ..MixProblem::default()
            };
            let most = problem.solve(&Aim::Throughput).expect("it is solved");
            let quickest = quickest(&problem, most, false).expect("there is one");
            assert_eq!(composition(&quickest), ["a", "b", "c"], "all carry as much");
            let enough = quickest.total * (1.0 - WORTH_BUILDING);
            composition(&simplest(&problem, quickest, enough, false).expect("there is one"))
        };
        assert_eq!(chosen(0.97), ["a", "b"]);
        assert_eq!(chosen(0.5), ["a", "b", "c"], "an eighth quicker is worth building");
    }

    /// Half of `c`'s requests take what one of `a`'s does, and at most half a request a second of `c` is carried.
    #[test]
    fn shares_that_carry_as_much_have_both_ends() {
        let of = |name: &str, stations: &[(&str, f64)]| {
            let mut activity = Activity::new(name);
            activity.demand.extend(stations.iter().map(|(station, s)| (station.to_string(), *s)));
            activity
        };
        let mut problem = MixProblem {
            stations: ["one", "two", "three"].map(|name| CapacityStation::new(name, 1.0)).into(),
            activities: vec![
                of("a", &[("one", 1.0)]),
                of("b", &[("two", 1.0)]),
                of("c", &[("one", 0.5), ("two", 0.5), ("three", 2.0)]),
            ],
            ..MixProblem::default()
        };
        let ends = as_good(&problem, 2.0);
        for (name, (low, high)) in [("a", (0.375, 0.5)), ("b", (0.375, 0.5)), ("c", (0.0, 0.25))] {
            let (least, most) = ends[name];
            assert!((least - low).abs() < 2e-3 && (most - high).abs() < 2e-3, "{name}: {least} {most}");
        }
        problem.activities.pop();
        let (least, most) = as_good(&problem, 2.0)["a"];
        assert!((least - 0.5).abs() < 1e-3 && (most - 0.5).abs() < 1e-3, "{least} {most}");
    }
}
