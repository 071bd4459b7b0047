//! The twin's cross-check of a plan, and what only the twin can answer: tails, curves, few clients.

mod bunched;
mod compare;
mod curve;
mod run;
mod tail;

pub use compare::{AtRandom, Behind, Bunched, Fullest, Gap, fullest};
pub(crate) use compare::{crowded, differs, stretched};
pub use curve::{LoadPoint, curve, few_clients, of_clients};
pub(crate) use run::{Counted, Moves, run_mix};
pub use run::{Saturated, SaturatedError, saturated};

use crate::confidence::{Doubt, Mechanism};
use crate::design::{Design, Objective};
use crate::observe::{IdleObservation, Loaded, ObserveError, observe};
use crate::planner::{Plan, Ready, plan_doubted};
use crate::program::Fold;
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, evaluate, is_slot, slots_bind};
use compare::{Compared, allowed, blind, compared, own_router};
use offpath_capacity::Solution;
use offpath_route::StationKind;
use offpath_twin::{Interval, Seed};
use run::{COUNTED, LONGER, MixRuns, is_near, most_longer};
use std::collections::BTreeMap;
use tail::lowest_tail;

/// A solution of a design that went through the twin: demands observed when nothing else runs, then solved,
/// run under load and solved again until the slots are held as long as was solved for.
#[derive(Clone, Debug)]
pub struct Settled {
    /// What a request of each alternative demands, with slots held as under load.
    pub folds: Vec<Fold>,
    /// Shares of the mix, the largest first.
    pub shares: Vec<(String, f64)>,
    /// Its requests per second.
    pub rate: f64,
    /// The same before anything ran under load.
    pub first_rate: f64,
    /// Times that the mix was solved.
    pub rounds: u32,
    /// By how much the holds of the last round still differed, as a share; below [`SETTLED`] where the
    /// solution has settled.
    pub moved: f64,
    /// The loaded twin at the mix.
    pub loaded: Loaded,
    /// The load that it was run at: the one that was asked for; nothing where it was saturated.
    pub load: Option<f64>,
    /// Where the twin carries something else than the mix was solved for.
    pub gap: Option<Gap>,
    /// By how much what the twin carried is known, as a share, where whether it differs by more than is let pass lies within
    /// that: then it neither confirms nor refutes, and there is no gap.
    pub noise: Option<f64>,
    /// Whether in-flight slots bind the mix.
    pub slots_bind: bool,
    /// Requests sampled on the idle twin, over all alternatives.
    pub sampled: u64,
    /// The widest 95% interval of an observed demand, as a share of it.
    pub widest: f64,
    /// What a request of each alternative demands on the idle twin.
    idle: Vec<Fold>,
}

impl Settled {
    /// Whether solving once more would change the holds by less than [`SETTLED`].
    pub fn has_settled(&self) -> bool {
        self.moved < SETTLED
    }

    /// What the twin carried, where that says anything of the plan.
    pub fn carried(&self) -> Option<Interval> {
        let is_blind = self.gap.as_ref().is_some_and(|gap| gap.blind.is_some());
        (!is_blind).then_some(self.loaded.throughput)
    }

    /// The loaded twin, where its figures are some: not where it says nothing of the plan, nor where what it carried is known
    /// by no more than its interval.
    pub fn told(&self) -> Option<&Loaded> {
        self.loaded.told().filter(|_| self.carried().is_some())
    }

    /// By how much the twin may carry less or more, as a share of the rate.
    pub fn allowed(&self) -> f64 {
        allowed(self.slots_bind)
    }
}

/// The change of a hold from one round to the next below which a solution counts as settled.
pub const SETTLED: f64 = 0.01;

/// Rounds after which a solution that does not settle is given as it is, and said to be so.
const MOST_ROUNDS: u32 = 6;

/// A plan with what the twin says of it.
#[derive(Clone, Debug)]
pub struct CheckedPlan {
    /// The plan, its slots held as long as the loaded twin holds them.
    pub plan: Plan,
    /// How it came to be.
    pub settled: Settled,
}

/// Observes every alternative on the idle twin.
pub fn observe_all(ready: &[Ready], seed: Seed) -> Result<(Vec<Fold>, u64, f64), ObserveError> {
    let mut folds = Vec::new();
    let (mut sampled, mut widest) = (0, 0.0f64);
    for one in ready {
        let observed = observe_named(one, seed)?;
        sampled += observed.requests;
        widest = widest.max(observed.widest);
        folds.push(observed.fold);
    }
    Ok((folds, sampled, widest))
}

/// What an alternative draws is its own, whatever stands before it in the design.
fn observe_named(one: &Ready, seed: Seed) -> Result<IdleObservation, ObserveError> {
    observe(one, seed.child("observe").child(&one.alternative.name))
}

/// Which mix is settled.
#[derive(Clone, Copy, Debug)]
pub enum Chosen<'s> {
    /// The best one; where the lowest tail is sought, the one that the twin finds.
    Best,
    /// The best one by adding up: where the lowest tail is sought, the one of least mean latency.
    Added,
    /// One with these shares.
    Held(&'s [(String, f64)]),
}

/// Solves a design on the twin of the systems that `ready` runs on.
///
/// Slots are held longer under load than on an idle twin, so their holds are observed again at the chosen
/// mix and the mix is solved again, until they change by less than [`SETTLED`]. The same design on the same
/// system with the same seed gives the same answer, whoever asks.
pub fn settle(
    design: &Design,
    ready: &[Ready],
    chosen: Chosen<'_>,
    seed: Seed,
) -> Result<Settled, miette::Report> {
    settle_counting(design, ready, chosen, COUNTED.requests, seed)
}

/// [`settle`] with loaded windows of so many requests, or of fewer where they are large.
pub fn settle_counting(
    design: &Design,
    ready: &[Ready],
    chosen: Chosen<'_>,
    counted: f64,
    seed: Seed,
) -> Result<Settled, miette::Report> {
    let (idle, sampled, widest) = observe_all(ready, seed)?;
    let runs = &MixRuns::of(ready, seed);
    let count = Counted::requests(counted);
    // Where throughput is sought a mix has to carry more than any alternative does by itself, so these are settled first.
    let is_sought =
        matches!(design.objective, Objective::MostThroughput) && !matches!(chosen, Chosen::Held(_));
    let alone = match is_sought {
        true => {
            let open = solve::allowed(design, &Part::all(ready), &idle);
            each_held_alone(design, runs, &idle, &open, counted)?
        }
        false => BTreeMap::new(),
    };
    let mut folds = idle.clone();
    for (index, one) in &alone {
        folds[*index].slots_alone = slots_of(&ready[*index], &one.folds[*index]);
    }
    let load = design.objective.load();
    let mut held = hold_from(design, runs, &alone, (&idle, folds), chosen, (load, count))?;
    let load = held.load;
    let is_told = || self::blind(ready, &held.shares, &held.loaded, held.sizes, load).is_none();
    if let (Chosen::Best, Objective::LowestP99 { load: offered }) = (chosen, design.objective)
        && is_told()
    {
        let shares = lowest_tail(design, ready, &held.folds, offered, seed)?;
        if shares != held.shares {
            held = hold(design, runs, &idle, Chosen::Held(&shares), (load, count))?;
        }
    }
    let only =
        ready.iter().position(|one| matches!(&held.shares[..], [(only, _)] if *only == one.alternative.name));
    // One alternative that is the answer stays as it was settled by itself; what the twin shows of it is of a window as
    // long as that of any answer.
    let is_settled = only.is_some_and(|index| alone.contains_key(&index));
    if is_settled {
        held.loaded = runs.mix(&held.shares, held.sizes, load, count)?;
    }
    let again = (!is_settled).then_some(chosen);
    let (held, compared) = told_by_longer(design, runs, &alone, &idle, (held, again), counted)?;
    let (mut gap, noise) = match compared {
        Compared::Differs(gap) => (Some(gap), None),
        Compared::Unclear(gap) => (gap, None),
        Compared::Noise(half) => (None, Some(half)),
        Compared::Agrees => (None, None),
    };
    if let Some(gap) = gap.as_mut().filter(|gap| load.is_none() && gap.blind.is_none()) {
        gap.bunched = bunched::look(runs, &held.shares, held.sizes, (&held.loaded, gap), counted)?;
    }
    let Held { folds, shares, solution, first_rate, rounds, moved, loaded, .. } = held;
    Ok(Settled {
        folds,
        shares,
        rate: solution.total,
        slots_bind: own_router(ready).is_some_and(|router| slots_bind(router, &solution)),
        first_rate,
        rounds,
        moved,
        loaded,
        load,
        gap,
        noise,
        sampled,
        widest,
        idle,
    })
}

/// What the twin says of a mix, in a window that is made longer where it does not tell, and the mix, chosen `again` with its
/// slots held as long as was seen there; as it is where nothing is chosen again.
fn told_by_longer(
    design: &Design,
    runs: &MixRuns<'_>,
    alone: &EachAlone,
    idle: &[Fold],
    (mut held, again): (Held, Option<Chosen<'_>>),
    counted: f64,
) -> Result<(Held, Compared), miette::Report> {
    let (ready, load) = (runs.ready, held.load);
    let told = |held: &Held| {
        let blind = blind(ready, &held.shares, &held.loaded, held.sizes, load);
        compared(ready, &held.solution, load, &held.loaded, blind)
    };
    let mut compared = told(&held);
    let sizes = (load.unwrap_or(held.sizes.0), held.sizes.1);
    let most = most_longer(ready, &held.shares, sizes, counted);
    for more in LONGER.into_iter().filter(|more| *more <= most) {
        if !matches!(compared, Compared::Unclear(_)) || runs.is_spent() {
            break;
        }
        let counted = Counted { longer: more, ..Counted::requests(counted) };
        held.loaded = runs.mix(&held.shares, held.sizes, load, counted)?;
        compared = told(&held);
        // How long slots were held was seen in a window that did not tell: this one tells more of that too.
        let (factors, moved) = holds_seen(ready, &held.folds, &held.shares, held.sizes.0, &held.loaded);
        let is_told = match &compared {
            Compared::Differs(gap) => gap.blind.is_some(),
            Compared::Unclear(gap) => gap.is_none(),
            Compared::Agrees | Compared::Noise(_) => true,
        };
        if let Some(chosen) = again.filter(|_| moved >= SETTLED && !is_told) {
            hold_again(ready, idle, &mut held.folds, &held.shares, &factors);
            let Held { folds, shares, first_rate, rounds, .. } = held;
            let chosen = if shares.len() == 1 { Chosen::Held(&shares) } else { chosen };
            let again = hold_from(design, runs, alone, (idle, folds), chosen, (load, counted))?;
            held = Held { first_rate, rounds: rounds + again.rounds, ..again };
            compared = told(&held);
        }
    }
    Ok((held, compared))
}

/// Requests that are counted of an alternative by itself: for how long its slots are held is a mean over all of them, and a
/// window in which that or its rate does not tell is made longer.
const COUNTED_ALONE: f64 = 8_000.0;

/// Alternatives that were settled with nothing beside them, by their place in the design.
type EachAlone = BTreeMap<usize, Held>;

/// Settles each of some alternatives as the only one of its design: what else the design holds moves none of its figures.
///
/// What no station carries holds nothing, and what takes no slots holds none.
fn each_held_alone(
    design: &Design,
    runs: &MixRuns<'_>,
    idle: &[Fold],
    among: &[usize],
    counted: f64,
) -> Result<EachAlone, miette::Report> {
    let ready = runs.ready;
    let each = solve::each_alone(design, &Part::all(ready), idle)?;
    let holds = |index: usize| !slots_of(&ready[index], &idle[index]).is_empty();
    let is_open = |index: &usize| {
        let is_own = ready[*index].alternative.device.is_none();
        is_own && !solve::shares(&each[*index]).is_empty() && holds(*index)
    };
    let open: Vec<usize> = among.iter().copied().filter(is_open).collect();
    let (seed, counted) = (runs.seed, counted.min(COUNTED_ALONE));
    let held = side_by_side(open.len(), |at| {
        let (shares, runs) = ([(ready[open[at]].alternative.name.clone(), 1.0)], MixRuns::of(ready, seed));
        let chosen = Chosen::Held(&shares);
        let held = hold(design, &runs, idle, chosen, (None, Counted::requests(counted)))?;
        let held = told_by_longer(design, &runs, &EachAlone::new(), idle, (held, Some(chosen)), counted)?.0;
        Ok::<_, miette::Report>((held, runs))
    });
    let mut each = EachAlone::new();
    for (index, held) in open.into_iter().zip(held) {
        let (held, run) = held?;
        runs.remember(run);
        each.insert(index, held);
    }
    Ok(each)
}

/// What a request of each alternative demands, its slots held as long as in the mix that is best by adding up. Nothing
/// is held to what the twin carries, so loaded windows of so few requests will do as tell for how long slots are held;
/// and what no mix may take is added up, and not observed.
pub fn demands(
    design: &Design,
    ready: &[Ready],
    counted: f64,
    seed: Seed,
) -> Result<Vec<Fold>, miette::Report> {
    let idle = ready.iter().map(|one| match one.alternative.mixed {
        true => Ok(observe_named(one, seed)?.fold),
        false => Ok(one.compiled.fold(&one.router)),
    });
    let idle = idle.collect::<Result<Vec<_>, ObserveError>>()?;
    let runs = MixRuns::of(ready, seed);
    Ok(best_held(design, &runs, &idle, Chosen::Added, Counted::holds(counted))?.folds)
}

/// A mix whose slots are held as long as was solved for.
#[derive(Clone)]
struct Held {
    folds: Vec<Fold>,
    shares: Vec<(String, f64)>,
    solution: Solution,
    first_rate: f64,
    rounds: u32,
    moved: f64,
    loaded: Loaded,
    /// Its rate and latency, which windows are sized by.
    sizes: (f64, f64),
    /// What it was run at; nothing where it was saturated.
    load: Option<f64>,
}

/// Solves a mix, runs it at a load or saturated, and solves it again until its slots are held as long as was
/// solved for.
fn hold(
    design: &Design,
    runs: &MixRuns<'_>,
    idle: &[Fold],
    chosen: Chosen<'_>,
    at: (Option<f64>, Counted),
) -> Result<Held, miette::Report> {
    hold_from(design, runs, &EachAlone::new(), (idle, idle.to_vec()), chosen, at)
}

/// [`hold`] from demands that are known better than those on an idle twin, where some alternatives may have been settled
/// by themselves.
fn hold_from(
    design: &Design,
    runs: &MixRuns<'_>,
    alone: &EachAlone,
    (idle, mut folds): (&[Fold], Vec<Fold>),
    chosen: Chosen<'_>,
    (load, counted): (Option<f64>, Counted),
) -> Result<Held, miette::Report> {
    let ready = runs.ready;
    let parts = Part::all(ready);
    let mut first_rate = None;
    let mut last: Option<Held> = None;
    let mut before: Vec<(String, f64)> = Vec::new();
    for rounds in 1.. {
        let solution = match chosen {
            Chosen::Best | Chosen::Added => evaluate(design, &parts, &folds, false)?.optimal,
            Chosen::Held(shares) => {
                let most = solve::at_fixed(design, &parts, &folds, shares)?;
                match load {
                    Some(load) => solve::at_load(most, load),
                    None => most,
                }
            }
        };
        let (shares, rate) = (solve::shares(&solution), solution.total);
        if shares.is_empty() {
            let own: Vec<usize> =
                (0..parts.len()).filter(|&i| parts[i].alternative.device.is_none()).collect();
            return Err(solve::nothing(design, &parts, &folds, &own).into());
        }
        let only =
            ready.iter().position(|one| matches!(&shares[..], [(only, _)] if *only == one.alternative.name));
        if let Some((index, one)) = only.and_then(|index| Some((index, alone.get(&index)?))) {
            // What a mix was seen to take stays as it was seen there, or that mix would be thought better once more.
            if folds[index].seconds == one.folds[index].seconds
                || folds[index].seconds != idle[index].seconds
                || rounds == MOST_ROUNDS
            {
                return Ok(Held { folds, shares, solution, ..one.clone() });
            }
            folds[index].seconds.clone_from(&one.folds[index].seconds);
            continue;
        }
        let first_rate = *first_rate.get_or_insert(rate);
        // A request is in flight until its work in the background is over too.
        let latency_s =
            solve::mean_of(&shares, &parts, |index| folds[index].latency + folds[index].background);
        let sizes = (rate, latency_s);
        // What is solved with the holds that such a mix was seen to have needs no run to say that it has them.
        let is_seen = |last: &mut Held| {
            let (run, next) = ((&last.shares[..], last.sizes.0), (&shares[..], rate));
            counted.holds_only && load == last.load && is_near(run, next)
        };
        if let Some(last) = last.take_if(is_seen) {
            return Ok(Held { folds, shares, solution, sizes, ..last });
        }
        let loaded = runs.mix(&shares, sizes, load, counted)?;
        // A twin that runs fewer requests than the mix has in flight, or for too short a time for what is rare or long in
        // it, shows nothing of it: neither what it carries nor for how long its slots are held.
        let is_blind = blind(ready, &shares, &loaded, sizes, load).is_some();
        let (factors, moved) = match is_blind {
            true => (Vec::new(), 0.0),
            false => holds_seen(ready, &folds, &shares, rate, &loaded),
        };
        let held = Held { folds, shares, solution, first_rate, rounds, moved, loaded, sizes, load };
        if moved < SETTLED || rounds == MOST_ROUNDS || runs.is_spent() {
            return Ok(held);
        }
        folds = held.folds.clone();
        hold_again(ready, idle, &mut folds, &held.shares, &halved(&factors, &before));
        before = factors;
        last = Some(held);
    }
    unreachable!("the rounds are bounded")
}

/// The mix that was chosen, or what is better by itself where the best is sought.
fn best_held(
    design: &Design,
    runs: &MixRuns<'_>,
    idle: &[Fold],
    chosen: Chosen<'_>,
    counted: Counted,
) -> Result<Held, miette::Report> {
    let held = hold(design, runs, idle, chosen, (design.objective.load(), counted))?;
    match chosen {
        Chosen::Best | Chosen::Added => or_alone(design, runs, idle, held, counted),
        Chosen::Held(_) => Ok(held),
    }
}

/// A settled mix, or the alternative that is better by itself ([`solve::replaces`]), its slots held as long as it alone
/// holds them: what
/// a mix takes waits for what else is in it.
fn or_alone(
    design: &Design,
    runs: &MixRuns<'_>,
    idle: &[Fold],
    held: Held,
    counted: Counted,
) -> Result<Held, miette::Report> {
    let ready = runs.ready;
    let parts = Part::all(ready);
    let latency = |held: &Held| solve::mean_of(&held.shares, &parts, |index| idle[index].latency);
    let mut most = held.solution.total;
    let mut best = held;
    let each = solve::each_alone(design, &parts, idle)?;
    let mut open = solve::allowed(design, &parts, idle);
    while let Some(index) = solve::best_alone(design, &parts, &each, &open) {
        open.retain(|one| *one != index);
        let shares = [(ready[index].alternative.name.clone(), 1.0)];
        // On an idle twin nothing is held longer, so what is not enough there is never enough.
        let best_of = (best.solution.total, latency(&best));
        if best.shares == shares || !solve::replaces((each[index].total, idle[index].latency), best_of, most)
        {
            continue;
        }
        let one = hold(design, runs, idle, Chosen::Held(&shares), (None, counted))?;
        let slots = slots_of(&ready[index], &one.folds[index]);
        best.folds[index].slots_alone = slots;
        let of_one = (one.solution.total, latency(&one));
        if solve::replaces(of_one, best_of, most) {
            best = Held { folds: best.folds, ..one };
        }
        most = most.max(of_one.0);
    }
    Ok(best)
}

/// How long a request holds slots.
fn slots_of(one: &Ready, fold: &Fold) -> BTreeMap<String, f64> {
    let slots = fold.seconds.iter().filter(|(station, _)| is_slot(&one.router, station));
    slots.map(|(name, seconds)| (name.clone(), *seconds)).collect()
}

/// Settles the alternatives of a settled design that were not seen by themselves as if each were the only one, and notes in
/// their demands for how long they hold slots: in a mix they also wait there for what the others do.
pub fn settle_alone(
    design: &Design,
    ready: &[Ready],
    settled: &mut Settled,
    seed: Seed,
) -> Result<(), miette::Report> {
    let open = (0..ready.len()).filter(|index| settled.folds[*index].slots_alone.is_empty());
    let open: Vec<usize> = open.collect();
    let runs = MixRuns::of(ready, seed);
    for (index, one) in each_held_alone(design, &runs, &settled.idle, &open, COUNTED.requests)? {
        settled.folds[index].slots_alone = slots_of(&ready[index], &one.folds[index]);
    }
    Ok(())
}

/// Plans a design that has settled, and holds the plan to the loaded twin.
pub fn plan_and_check(
    design: &Design,
    ready: &[Ready],
    settled: Settled,
    open: &[Mechanism],
    seed: Seed,
) -> Result<CheckedPlan, miette::Report> {
    // A figure that is not shown extends no interval.
    let carried = settled.told().map(|loaded| loaded.throughput.mean);
    let doubt = Doubt { shares: &settled.shares, carried, above: settled.slots_bind };
    let doubt = (settled.gap.is_some() || !settled.has_settled()).then_some(&doubt);
    let plan = plan_doubted(design, ready, &settled.folds, Some(&settled.shares), open, doubt, seed)?;
    Ok(CheckedPlan { plan, settled })
}

/// By which factor the loaded twin held slots longer than `folds` say, by the names of the slot stations, and the
/// largest change. A slot of the whole pool and one of the endpoint are taken at one moment, so each station has what
/// it was held for; where an endpoint's requests wait for longer, those of another need not.
fn holds_seen(
    ready: &[Ready],
    folds: &[Fold],
    shares: &[(String, f64)],
    rate: f64,
    loaded: &Loaded,
) -> (Vec<(String, f64)>, f64) {
    let Some(main) = ready.iter().find(|one| one.alternative.device.is_none()) else {
        return (Vec::new(), 0.0);
    };
    // Added up in the order of the shares, so that where an alternative stands in the file rounds nothing otherwise.
    let taken = || {
        let index = |name: &str| ready.iter().position(|one| one.alternative.name == name);
        shares.iter().filter_map(move |(name, share)| Some((*share, &folds[index(name)?])))
    };
    let is_saturated = loaded.arrived_per_s.is_none();
    let (mut factors, mut largest) = (Vec::new(), 0.0f64);
    for station in main.router.stations() {
        let StationKind::InflightSlots(inflight_slots) = station.kind else { continue };
        let held = |fold: &Fold| fold.seconds.get(&station.name).copied().unwrap_or(0.0);
        let expected: f64 = taken().map(|(share, fold)| share * held(fold)).sum();
        let busy = loaded.utilization.get(&station.name).copied().unwrap_or(0.0);
        let slots = (inflight_slots * station.instances) as f64;
        let seen = busy * slots / loaded.throughput.mean;
        // Slots that are mostly idle, on the twin and as they were solved, bind nothing, however long they are held.
        let solved = expected * rate / slots;
        // Where the twin carries what was solved for with slots to spare, they fill because their holders wait for what binds:
        // held for that long they would seem to bind themselves, and more of what does would seem to bring nothing.
        let is_spare = solved < 1.0 - SETTLED && loaded.throughput.mean >= rate * (1.0 - SETTLED);
        if expected > 0.0 && !(is_spare && is_saturated) && busy.max(solved) >= 0.5 {
            let factor = seen / expected;
            if (factor - 1.0).abs() >= SETTLED {
                largest = largest.max((factor - 1.0).abs());
                factors.push((station.name.clone(), factor));
            }
        }
    }
    (factors, largest)
}

/// Half of the way, by ratio, where slots were held shorter than was solved for in one round and longer in the next, or the
/// other way round. A mix that is solved to carry more has more requests in flight, which hold slots for longer: where that
/// gives back as much as was taken, whole steps swing around the solution and never come to rest.
fn halved(factors: &[(String, f64)], before: &[(String, f64)]) -> Vec<(String, f64)> {
    let turned = |station: &str, factor: f64| {
        before.iter().any(|(name, other)| name == station && (other - 1.0) * (factor - 1.0) < 0.0)
    };
    let part = |(station, factor): &(String, f64)| match turned(station, *factor) {
        true => (station.clone(), factor.sqrt()),
        false => (station.clone(), *factor),
    };
    factors.iter().map(part).collect()
}

/// Scales the demand for slots of what the mix takes to how long the loaded twin held them. What it does not
/// take holds them as on an idle twin, and for as long as something of the mix was seen to wait of which no station is
/// asked for more: it would wait there, too. Of others, what the mix waits for says nothing, and an alternative
/// that is thought too good is taken in the next round and then seen.
fn hold_again(
    ready: &[Ready],
    idle: &[Fold],
    folds: &mut [Fold],
    shares: &[(String, f64)],
    factors: &[(String, f64)],
) {
    let is_taken = |one: &Ready| shares.iter().any(|(name, _)| *name == one.alternative.name);
    let (taken, left): (Vec<usize>, Vec<usize>) =
        (0..ready.len()).partition(|index| is_taken(&ready[*index]));
    for index in taken.iter().copied().filter(|index| ready[*index].alternative.device.is_none()) {
        let fold = &mut folds[index];
        for (station, factor) in factors {
            // What an alternative alone holds slots for stands apart once it was seen, and was seen again just now.
            let alone = fold.slots_alone.get_mut(station).filter(|_| shares.len() == 1);
            for held in fold.seconds.get_mut(station).into_iter().chain(alone) {
                *held *= factor;
            }
        }
    }
    for index in left {
        // What it holds slots for by itself is known whatever is mixed.
        folds[index].seconds.clone_from(&idle[index].seconds);
        let asks_no_less = |of: usize| {
            let mut asked =
                idle[of].seconds.iter().filter(|(station, _)| !is_slot(&ready[of].router, station));
            ready[of].alternative.device == ready[index].alternative.device
                && asked.all(|(station, time)| {
                    idle[index].seconds.get(station).is_some_and(|own| own * (1.0 + SETTLED) >= *time)
                })
        };
        for of in taken.iter().copied().filter(|of| asks_no_less(*of)) {
            for (station, held) in slots_of(&ready[of], &folds[of]) {
                let waited = held - idle[of].seconds.get(&station).copied().unwrap_or(held);
                let Some(own) = idle[index].seconds.get(&station) else { continue };
                let seen = own + waited;
                let held = folds[index].seconds.entry(station).or_default();
                *held = held.max(seen);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::of_steps;

    /// A window of rare long requests may show holds that are far too long. The mix that is solved with them leaves the
    /// slots idle on the twin, which says that they are not held for that long, and not that nothing is to be seen.
    #[test]
    fn slots_that_are_solved_to_bind_and_stay_idle_are_held_for_less() {
        let (design, ready) =
            of_steps(r#"{ read = "client-host", bytes = "64 B" }"#).expect("it is in order");
        let fold = ready[0].compiled.fold(&ready[0].router);
        let parts = Part::all(&ready);
        let shares = vec![("a".to_string(), 1.0)];
        let solved = |times: f64| {
            let mut fold = fold.clone();
            for (station, seconds) in &mut fold.seconds {
                *seconds *= if is_slot(&ready[0].router, station) { times } else { 1.0 };
            }
            let most = solve::at_fixed(&design, &parts, &[fold.clone()], &shares).expect("it is solved");
            (fold, most.total)
        };
        let (_, rate) = solved(1.0);
        let sizes = (rate, fold.latency);
        let loaded =
            run_mix(&ready, &shares, sizes, Some(rate / 20.0), Counted::requests(400.0), Seed::new(1));
        let loaded = loaded.expect("the twin runs it");
        let busy = loaded.utilization.iter().filter(|(name, _)| is_slot(&ready[0].router, name));
        assert!(busy.map(|(_, busy)| *busy).fold(0.0, f64::max) < 0.5, "the slots are mostly idle");
        let (fold, rate) = solved(20.0);
        let (factors, moved) = holds_seen(&ready, &[fold], &shares, rate, &loaded);
        assert!(moved > 0.5 && factors.iter().any(|(_, factor)| *factor < 0.2), "{factors:?} {moved}");
    }

    /// What the twin carried of a mix that it does not confirm lies in the interval; more than stations have capacity for
    /// is none, and slots have one only as long as they are held for what was solved with.
    #[test]
    fn an_interval_holds_what_the_twin_carried() {
        let (design, ready) =
            of_steps(r#"{ read = "client-host", bytes = "64 B" }"#).expect("it is in order");
        let folds = [ready[0].compiled.fold(&ready[0].router)];
        let shares = [("a".to_string(), 1.0)];
        let high = |carried: Option<f64>, above: bool| {
            let doubt = Doubt { shares: &shares, carried, above };
            let plan = plan_doubted(&design, &ready, &folds, Some(&shares), &[], Some(&doubt), Seed::new(1));
            let rate = plan.expect("it is planned").optimal.rate;
            (rate.range_80.0, rate.range_80.1)
        };
        let (low, most) = high(None, true);
        assert_eq!(high(Some(3.0 * most), true), (low, 3.0 * most));
        assert_eq!(high(Some(3.0 * most), false), (low, most));
        assert_eq!(high(Some(low / 3.0), false), (low / 3.0, most));
    }
}
