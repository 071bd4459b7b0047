//! The twin's cross-check of a plan, and what only the twin can answer: tails, curves, few clients.

use crate::confidence::{Doubt, Mechanism};
use crate::design::{Design, Objective};
use crate::observe::{Arrivals, Loaded, OPEN_LOOP_TASKS, RunError, load, observe};
use crate::planner::{Plan, Ready, capacity_at, plan_doubted};
use crate::program::{Extremes, Fold};
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, evaluate};
use offpath_capacity::{Constraint, Solution};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Kind, Router};
use offpath_twin::{Interval, Seed, batch_means};
use std::collections::BTreeMap;

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
    /// The load that it was run at: the one that was asked for, or what a limit leaves; nothing where it was saturated.
    pub load: Option<f64>,
    /// Where the twin carries something else than the mix was solved for.
    pub gap: Option<Gap>,
    /// By how much the twin may carry less or more, as a share of the rate.
    pub allowed: f64,
    /// Requests sampled on the idle twin, over all alternatives.
    pub sampled: u64,
    /// The widest 95% interval of an observed demand, as a share of it.
    pub widest: f64,
    /// What a request of each alternative demands on the idle twin.
    idle: Vec<Fold>,
}

impl Gap {
    /// Whether the twin's mean lies as near as is let pass, and scatters too far to tell.
    pub fn is_unclear(&self) -> bool {
        (self.carried_per_s / self.planned_per_s - 1.0).abs() <= self.allowed
            || (self.carried_95_per_s.0..=self.carried_95_per_s.1).contains(&self.planned_per_s)
    }
}

impl Settled {
    /// Whether solving once more would change the holds by less than [`SETTLED`].
    pub fn has_settled(&self) -> bool {
        self.moved < SETTLED
    }
}

/// The change of a hold from one round to the next below which a solution counts as settled.
pub const SETTLED: f64 = 0.01;
/// Rounds after which a solution that does not settle is given as it is, and said to be so.
const MOST_ROUNDS: u32 = 6;

/// How far the loaded twin is from the plan, where that is more than queueing explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// What the plan says, in requests per second.
    pub planned_per_s: f64,
    /// What the twin carried.
    pub carried_per_s: f64,
    /// The 95% interval of that.
    pub carried_95_per_s: (f64, f64),
    /// The greatest difference that is let pass, as a share.
    pub allowed: f64,
    /// The station that was busiest, on the machine where it was.
    pub fullest: Option<Fullest>,
    /// Why a window as long as can be run does not tell, where it does not: then what the twin carried says
    /// nothing of the plan, whether the two agree or not.
    pub blind: Option<String>,
}

/// A station on one machine of its role.
#[derive(Clone, Debug, PartialEq)]
pub struct Fullest {
    /// The station.
    pub station: String,
    /// What it stands for.
    pub meaning: String,
    /// Which machine of the role it is, from 0.
    pub machine: u32,
    /// How many machines of the role there are.
    pub machines: u64,
    /// Its share of busy time.
    pub busy: f64,
}

/// A plan with what the twin says of it.
#[derive(Clone, Debug)]
pub struct Checked {
    /// The plan, its slots held as long as the loaded twin holds them.
    pub plan: Plan,
    /// How it came to be.
    pub settled: Settled,
}

/// A point of the curve of latency over throughput.
#[derive(Clone, Debug)]
pub struct Point {
    /// Offered requests per second.
    pub offered_per_s: f64,
    /// What the twin shows.
    pub loaded: Loaded,
}

/// What of a loaded run is counted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counted {
    /// Requests, where each is one burst and its rare cases and long requests do not ask for more.
    pub(crate) requests: f64,
    /// Where in a round of the clients the window begins, as a share of it: that decides what its edges cut
    /// off.
    pub(crate) phase: f64,
}

impl Counted {
    /// So many, from the beginning of a round on.
    const fn requests(requests: f64) -> Counted {
        Counted { requests, phase: 0.0 }
    }
}

/// What a plan's run counts.
const COUNTED: Counted = Counted::requests(24_000.0);
/// Moves of a request (its verbs, each as many bursts as its payload is) up to which its window holds as many
/// requests as any other.
const MOVES: f64 = 16.0;
/// Requests that a window holds at least, and those where one makes more moves than [`MOST_MOVES`].
const FEWEST: f64 = 400.0;
const VERY_FEWEST: f64 = 64.0;
/// Moves of a request up to which a window holds [`FEWEST`]: beyond, one alone goes through all stations often.
const MOST_MOVES: f64 = 1_000.0;
/// Virtual time beyond which a window does not grow, a million seconds: 64 bits of picoseconds hold 18 of them.
const LONGEST_WINDOW: Time = Time::from_ps(1_000_000_000_000_000_000);
/// Payload that moves as one burst.
pub(crate) const BURST: f64 = 16_384.0;

/// Observes every alternative on the idle twin.
pub fn observe_all(ready: &[Ready], seed: Seed) -> Result<(Vec<Fold>, u64, f64), RunError> {
    let mut folds = Vec::new();
    let (mut sampled, mut widest) = (0, 0.0f64);
    for (index, one) in ready.iter().enumerate() {
        let observed = observe(one, seed.child("observe").index(index as u64))?;
        sampled += observed.requests;
        widest = widest.max(observed.widest);
        folds.push(observed.fold);
    }
    Ok((folds, sampled, widest))
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
    let load = design.objective.load();
    let mut held = hold(design, ready, &idle, chosen, (load, Counted::requests(counted)), seed)?;
    if matches!(chosen, Chosen::Best | Chosen::Added) {
        held = or_alone(design, ready, &idle, held, counted, seed)?;
    }
    let load = held.load;
    let is_told = || self::blind(ready, &held.shares, &held.loaded, held.sizes, load).is_none();
    if let (Chosen::Best, Objective::LowestP99 { load: offered }) = (chosen, design.objective)
        && is_told()
    {
        let shares = lowest_tail(design, ready, &held.folds, offered, seed)?;
        if shares != held.shares {
            let counted = (load, Counted::requests(counted));
            held = hold(design, ready, &idle, Chosen::Held(&shares), counted, seed)?;
        }
    }
    let blind = blind(ready, &held.shares, &held.loaded, held.sizes, load);
    let mut compared = compared(ready, &held.solution, load, &held.loaded, blind.clone());
    for more in LONGER {
        if !matches!(compared, Compared::Unclear(_)) {
            break;
        }
        let counted = Counted::requests(counted * more);
        held.loaded = run_mix(ready, &held.shares, held.sizes, load, counted, seed)?;
        compared = self::compared(ready, &held.solution, load, &held.loaded, blind.clone());
    }
    let gap = match compared {
        Compared::Differs(gap) => Some(gap),
        Compared::Unclear(gap) => gap,
        Compared::Agrees => None,
    };
    let Held { folds, shares, solution, first_rate, rounds, moved, loaded, .. } = held;
    Ok(Settled {
        folds,
        shares,
        rate: solution.total,
        allowed: allowed(ready, &solution),
        first_rate,
        rounds,
        moved,
        loaded,
        load,
        gap,
        sampled,
        widest,
        idle,
    })
}

/// A mix whose slots are held as long as was solved for.
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
    ready: &[Ready],
    idle: &[Fold],
    chosen: Chosen<'_>,
    (load, counted): (Option<f64>, Counted),
    seed: Seed,
) -> Result<Held, miette::Report> {
    let mut folds = idle.to_vec();
    let parts = Part::all(ready);
    let mut first_rate = None;
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
        let first_rate = *first_rate.get_or_insert(rate);
        // A request is in flight until its work in the background is over too.
        let latency_s =
            solve::mean_of(&shares, &parts, |index| folds[index].latency + folds[index].background);
        let sizes = (rate, latency_s);
        let load = load.or_else(|| solve::limited(&solution));
        let loaded = run_mix(ready, &shares, sizes, load, counted, seed)?;
        let (factors, moved) = holds_seen(ready, &folds, &shares, &loaded);
        if moved < SETTLED || rounds == MOST_ROUNDS {
            return Ok(Held { folds, shares, solution, first_rate, rounds, moved, loaded, sizes, load });
        }
        hold_again(ready, idle, &mut folds, &shares, &factors);
    }
    unreachable!("the rounds are bounded")
}

/// A settled mix, or the alternative that is better by itself ([`solve::replaces`]), its slots held as long as it alone
/// holds them: what
/// a mix takes waits for what else is in it.
fn or_alone(
    design: &Design,
    ready: &[Ready],
    idle: &[Fold],
    held: Held,
    counted: f64,
    seed: Seed,
) -> Result<Held, miette::Report> {
    let parts = Part::all(ready);
    let latency = |held: &Held| solve::mean_of(&held.shares, &parts, |index| idle[index].latency);
    let mut most = held.solution.total;
    let mut best = held;
    let each = solve::each_alone(design, &parts, idle)?;
    let mut open = solve::allowed(design, &parts, idle);
    while let Some(index) = solve::best_alone(design, &each, &open) {
        open.retain(|one| *one != index);
        let shares = [(ready[index].alternative.name.clone(), 1.0)];
        // On an idle twin nothing is held longer, so what is not enough there is never enough.
        let best_of = (best.solution.total, latency(&best));
        if best.shares == shares || !solve::replaces((each[index].total, idle[index].latency), best_of, most)
        {
            continue;
        }
        let counted = (None, Counted::requests(counted));
        let one = hold(design, ready, idle, Chosen::Held(&shares), counted, seed)?;
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

fn is_slot(router: &Router, station: &str) -> bool {
    matches!(router.station(station).map(|id| router.kind(id)), Some(Kind::Contexts(_)))
}

/// Finds how long the alternatives of a settled design hold slots when nothing else is mixed in, and notes it
/// in their demands: in a mix they also wait there for what the others do.
///
/// Those that no slots bind alone, and the one that the mix is made of, are as they are.
pub fn settle_alone(
    design: &Design,
    ready: &[Ready],
    settled: &mut Settled,
    seed: Seed,
) -> Result<(), miette::Report> {
    let parts = Part::all(ready);
    let alone = evaluate(design, &parts, &settled.idle, false)?.alone;
    let open = ready.iter().enumerate().filter(|(index, one)| {
        let (index, name) = (*index, &one.alternative.name);
        let is_bound = alone[index].binding.iter().any(
            |bound| matches!(&bound.constraint, Constraint::Station(station) if is_slot(&one.router, station)),
        );
        let is_mix = design.objective.load().is_none() && matches!(&settled.shares[..], [(only, _)] if only == name);
        let is_known = !settled.folds[index].slots_alone.is_empty();
        one.alternative.device.is_none() && is_bound && !is_mix && !is_known
    });
    let open: Vec<usize> = open.map(|(index, _)| index).collect();
    let held = side_by_side(open.len(), |at| {
        let shares = [(ready[open[at]].alternative.name.clone(), 1.0)];
        hold(design, ready, &settled.idle, Chosen::Held(&shares), (None, COUNTED), seed)
    });
    for (index, held) in open.into_iter().zip(held) {
        settled.folds[index].slots_alone = slots_of(&ready[index], &held?.folds[index]);
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
) -> Result<Checked, miette::Report> {
    // A figure that is not shown extends no interval.
    let shown = settled.gap.as_ref().is_none_or(|gap| gap.blind.is_none());
    let carried = settled.loaded.throughput.result().filter(|_| shown);
    let doubt = Doubt { shares: &settled.shares, carried };
    let doubt = (settled.gap.is_some() || !settled.has_settled()).then_some(&doubt);
    let plan = plan_doubted(design, ready, &settled.folds, Some(&settled.shares), open, doubt, seed)?;
    Ok(Checked { plan, settled })
}

/// How much less or more than planned a twin may carry: 2%, and 5% where slots bind, which are held for
/// times that only settle to 1% and spread.
const ALLOWED: f64 = 0.02;
const ALLOWED_WITH_SLOTS: f64 = 0.05;

/// How much longer a window is made that cannot tell a difference from scatter, one after the other.
const LONGER: [f64; 2] = [4.0, 16.0];

/// What the loaded twin says of a plan.
enum Compared {
    Agrees,
    /// It differs, and what the plan says lies within what the twin's mean scatters by. A mean that
    /// scatters by more than a tenth is no agreement either.
    Unclear(Option<Gap>),
    Differs(Gap),
}

/// Times that a rare case is taken in a window, and longest requests that fit it, for the window to tell.
const TIMES: f64 = 8.0;
/// Requests of a window over those that are counted usually, at most.
const MOST_LONGER: f64 = 16.0;

/// The rarest case of a mix and its longest request.
fn extremes(ready: &[Ready], shares: &[(String, f64)]) -> Extremes {
    let (own, shares) = own(ready, shares);
    own.iter().zip(shares).fold(Extremes { rarest: 1.0, longest_s: 0.0 }, |all, (one, share)| {
        let of = one.compiled.extremes(&one.router);
        // What takes next to nothing of a mix is not what the mix stands on.
        if share < 1e-3 {
            return all;
        }
        Extremes { rarest: all.rarest.min(of.rarest * share), longest_s: all.longest_s.max(of.longest_s) }
    })
}

/// How many requests an open loop takes under way, by `unloaded` or by what was seen, and how many the twin
/// runs, where these are too few: then requests wait for one that ends and for no station.
fn too_many(unloaded: f64, loaded: &Loaded) -> Option<(f64, u32)> {
    // Arrivals at random bunch, and a quarter more is room for that.
    let needed = unloaded.max(loaded.mean_in_flight) * 1.25;
    (needed > f64::from(OPEN_LOOP_TASKS)).then_some((needed, OPEN_LOOP_TASKS))
}

/// How many requests a mix has under way when its stations are busy, and how many the twin runs, where these are
/// too few: then it shows less than the stations carry.
pub(crate) fn crowded(rate: f64, latency_s: f64) -> Option<(f64, u32)> {
    let needed = rate * latency_s;
    (needed > f64::from(MOST_IN_FLIGHT)).then_some((needed, MOST_IN_FLIGHT))
}

/// Why a window does not tell what a mix carries, where it does not.
fn blind(
    ready: &[Ready],
    shares: &[(String, f64)],
    loaded: &Loaded,
    (rate, latency_s): (f64, f64),
    load: Option<f64>,
) -> Option<String> {
    let crowded = match load {
        None => self::crowded(rate, latency_s),
        Some(load) => too_many(load * latency_s, loaded),
    };
    if let Some((needed, most)) = crowded {
        return Some(format!("it takes about {needed:.0} requests under way, and the twin runs {most}"));
    }
    let Extremes { rarest, longest_s } = extremes(ready, shares);
    let window = loaded.window.as_seconds();
    let taken = rarest * rate * window;
    if taken < TIMES / 2.0 {
        return Some(format!(
            "a case that one request in {:.0} takes comes {taken:.1} times in its window",
            1.0 / rarest
        ));
    }
    let longest = Time::from_ps((longest_s * 1e12) as u64);
    (window < 2.0 * longest_s)
        .then(|| format!("a request may take {longest}, and its window is {}", loaded.window))
}

/// How far runs of a settled mix that carried so much are from what it was confirmed by, where that is more than
/// it may be and no scatter.
pub(crate) fn differs(design: &Design, ready: &[Ready], settled: &Settled, carried: Interval) -> Option<Gap> {
    let router = own_router(ready)?;
    let planned_per_s = design.objective.load().unwrap_or(settled.rate);
    let allowed = settled.allowed;
    let fullest = fullest(router, &settled.loaded);
    let carried_95_per_s = (carried.low, carried.high);
    let gap =
        Gap { planned_per_s, carried_per_s: carried.mean, carried_95_per_s, allowed, fullest, blind: None };
    let is_by_chance = design.objective.load().is_some() && carried.mean > planned_per_s;
    let scatters = is_by_chance || (carried.low..=carried.high).contains(&planned_per_s);
    ((carried.mean / planned_per_s - 1.0).abs() > allowed && !scatters).then_some(gap)
}

/// How many requests the run of a settled mix counts, where its rare cases or long requests ask for more than are
/// counted usually.
pub(crate) fn stretched(design: &Design, settled: &Settled) -> Option<f64> {
    let counted = settled.loaded.window.as_seconds() * design.objective.load().unwrap_or(settled.rate);
    (counted > 1.2 * COUNTED.requests).then_some(counted)
}

/// The routes of the system that a design's own alternatives run on.
fn own_router(ready: &[Ready]) -> Option<&Router> {
    ready.iter().find(|one| one.alternative.device.is_none()).map(|one| &*one.router)
}

/// By how much a twin may carry less or more than what was solved.
fn allowed(ready: &[Ready], solution: &Solution) -> f64 {
    let is_slot = |name: &str| own_router(ready).is_some_and(|router| is_slot(router, name));
    let slots = solution
        .binding
        .iter()
        .any(|bound| matches!(&bound.constraint, Constraint::Station(name) if is_slot(name)));
    if slots { ALLOWED_WITH_SLOTS } else { ALLOWED }
}

fn compared(
    ready: &[Ready],
    solution: &Solution,
    load: Option<f64>,
    loaded: &Loaded,
    blind: Option<String>,
) -> Compared {
    let Some(router) = own_router(ready) else { return Compared::Agrees };
    let planned_per_s = load.unwrap_or(solution.total);
    let allowed = allowed(ready, solution);
    let Interval { mean, low, high, .. } = loaded.throughput;
    // No station makes arrivals at random come faster: where more came, chance did it.
    let seen = match load {
        Some(load) => Interval { mean: mean.min(load), ..loaded.throughput },
        None => loaded.throughput,
    };
    let told = told(planned_per_s, allowed, &seen);
    let (fullest, carried_95_per_s) = (fullest(router, loaded), (low, high));
    let gap = Gap { planned_per_s, carried_per_s: mean, carried_95_per_s, allowed, fullest, blind };
    if gap.blind.is_some() {
        return Compared::Differs(gap);
    }
    match told {
        Told::Agrees => Compared::Agrees,
        Told::Unclear => Compared::Unclear((high - low >= 0.2 * mean).then_some(gap)),
        Told::Differs => Compared::Differs(gap),
    }
}

/// What a window tells of a planned rate.
#[derive(Debug, PartialEq)]
enum Told {
    Agrees,
    Unclear,
    Differs,
}

fn told(planned_per_s: f64, allowed: f64, carried: &Interval) -> Told {
    let Interval { mean, low, high, .. } = *carried;
    let is_near = (mean / planned_per_s - 1.0).abs() <= allowed;
    match is_near {
        // A mean that scatters by more than may differ is near by chance.
        true if high - low <= 2.0 * allowed * planned_per_s => Told::Agrees,
        false if !(low..=high).contains(&planned_per_s) => Told::Differs,
        _ => Told::Unclear,
    }
}

/// The station of one machine that was busy for the greatest share of its time.
pub fn fullest(router: &Router, loaded: &Loaded) -> Option<Fullest> {
    let busiest = loaded.fullest.iter().max_by(|a, b| a.1.1.total_cmp(&b.1.1).then(b.0.cmp(a.0)))?;
    let (name, (machine, busy)) = busiest;
    let station = &router.stations()[router.station(name)?.index()];
    Some(Fullest {
        station: name.to_string(),
        meaning: station.meaning.to_string(),
        machine: *machine,
        machines: station.instances,
        busy: *busy,
    })
}

pub(crate) fn own<'r>(ready: &'r [Ready], shares: &[(String, f64)]) -> (Vec<&'r Ready>, Vec<f64>) {
    shares
        .iter()
        .filter_map(|(name, share)| {
            ready.iter().find(|one| one.alternative.name == *name).map(|one| (one, *share))
        })
        .unzip()
}

/// Most requests in flight that a closed loop gets.
const MOST_IN_FLIGHT: u32 = 4096;
/// By how much more are tried where a closed loop fills no station.
const MORE_IN_FLIGHT: u32 = 4;
/// How often as many requests as are in flight end before a closed loop is counted, usually and where it
/// fills no station.
const ROUNDS: f64 = 4.0;
const MORE_ROUNDS: f64 = 16.0;
/// Requests that end before the more are counted, where they are so many that this is fewer rounds.
const SPREAD: f64 = 2_048.0;
/// The least of them: in the first half they begin.
const FEWEST_ROUNDS: f64 = 2.0;

/// Requests that keep every station of a mix busy: six times what is under way unloaded where these are few, and
/// twice where they are many. Few long transfers that share a link end together, and it is idle until all are
/// answered; of many it is not.
fn enough(rate: f64, latency_s: f64) -> u32 {
    const FEW: f64 = 64.0;
    let unloaded = rate * latency_s;
    let times = 2.0 + 4.0 * (FEW / unloaded).min(1.0);
    ((unloaded * times) as u32).clamp(32, MOST_IN_FLIGHT)
}

/// Runs a mix at a load, or saturated: then with as many requests under way as fill a station, and counted
/// once their queues have settled.
pub(crate) fn run_mix(
    ready: &[Ready],
    named: &[(String, f64)],
    (capacity, latency_s): (f64, f64),
    offered: Option<f64>,
    Counted { requests: counted, phase }: Counted,
    seed: Seed,
) -> Result<Loaded, RunError> {
    let (own, shares) = own(ready, named);
    let rate = offered.unwrap_or(capacity);
    // A large payload costs the twin an event a burst, and a request of many steps events for each, so fewer are
    // counted; their throughput varies less.
    let bursts = |bytes: Bytes| 1.0 + bytes.get() as f64 / BURST;
    let payload = own.iter().flat_map(|one| one.compiled.payloads()).map(bursts).fold(1.0, f64::max);
    let moves = own.iter().map(|one| one.compiled.payloads().map(bursts).sum::<f64>()).fold(0.0, f64::max);
    let fewest = (FEWEST * MOST_MOVES / moves).clamp(VERY_FEWEST, FEWEST);
    let counted = (counted / payload.max(moves / MOVES)).max(fewest);
    let Extremes { rarest, longest_s } = extremes(ready, named);
    let told = (TIMES / rarest)
        .max(TIMES * longest_s * rate)
        .min(COUNTED.requests * MOST_LONGER / payload.max(moves / MOVES));
    let counted = counted.max(told);
    // However rarely they come: time in which nothing happens costs nothing.
    let window = Time::from_ps((counted / rate * 1e12) as u64).min(LONGEST_WINDOW);
    let run = |in_flight: u32, rounds: f64| {
        // Queues that a closed loop fills at its start have to drain once before anything is counted.
        let settling = (latency_s * 8.0).max(longest_s * 2.0).min(counted / rate);
        let round = if offered.is_none() { f64::from(in_flight) / rate } else { latency_s };
        let warm_up = f64::from(in_flight) / rate * rounds + settling + phase * round.max(latency_s);
        let arrivals = offered.map_or(Arrivals::Closed(in_flight), Arrivals::Poisson);
        load(&own, &shares, arrivals, Time::from_ps((warm_up * 1e12) as u64), window, seed.child("load"))
    };
    let mut in_flight = enough(rate, latency_s);
    // One request of many moves passes by itself where others pass in turn.
    let mut rounds = (ROUNDS / (moves / MOVES).max(1.0)).max(FEWEST_ROUNDS);
    let mut loaded = run(in_flight, rounds)?;
    // Steps of very different length bunch requests: then more of them are needed to fill a station, and it
    // takes longer until they have spread.
    let is_short = |loaded: &Loaded| {
        let fullest = loaded.fullest.values().map(|(_, busy)| *busy).fold(0.0, f64::max);
        loaded.throughput.mean < (1.0 - ALLOWED) * rate && fullest < 1.0 - ALLOWED / 2.0
    };
    while offered.is_none() && is_short(&loaded) && in_flight < MOST_IN_FLIGHT {
        in_flight = (in_flight * MORE_IN_FLIGHT).min(MOST_IN_FLIGHT);
        rounds = (SPREAD / f64::from(in_flight)).clamp(ROUNDS, MORE_ROUNDS);
        let more = run(in_flight, rounds)?;
        if more.throughput.mean <= loaded.throughput.mean * (1.0 + SETTLED) {
            break;
        }
        loaded = more;
    }
    Ok(loaded)
}

/// By which factor the loaded twin held the slots of each machine longer than `folds` say, by the names of
/// its slot stations, and the largest change.
///
/// A request that takes a slot of its endpoint and then waits for one of the whole pool holds the first
/// while it waits. That is queueing and no longer hold, so a machine's slots share the least of their
/// factors: it is that of the pool that is taken last.
fn holds_seen(
    ready: &[Ready],
    folds: &[Fold],
    shares: &[(String, f64)],
    loaded: &Loaded,
) -> (Vec<(String, f64)>, f64) {
    let Some(main) = ready.iter().find(|one| one.alternative.device.is_none()) else {
        return (Vec::new(), 0.0);
    };
    let share = |name: &str| shares.iter().find(|(n, _)| n == name).map_or(0.0, |(_, s)| *s);
    let mut machines: BTreeMap<usize, (Vec<String>, f64, f64)> = BTreeMap::new();
    for station in main.router.stations() {
        let Kind::Contexts(contexts) = station.kind else { continue };
        let expected: f64 = ready
            .iter()
            .zip(folds.iter())
            .map(|(one, fold)| {
                share(&one.alternative.name) * fold.seconds.get(&station.name).copied().unwrap_or(0.0)
            })
            .sum();
        let busy = loaded.utilization.get(&station.name).copied().unwrap_or(0.0);
        let seen = busy * (contexts * station.instances) as f64 / loaded.throughput.mean;
        let machine = machines.entry(station.machine).or_insert((Vec::new(), f64::INFINITY, 0.0));
        machine.0.push(station.name.clone());
        if expected > 0.0 {
            machine.1 = machine.1.min(seen / expected);
            machine.2 = machine.2.max(busy);
        }
    }
    let mut factors = Vec::new();
    let mut largest = 0.0f64;
    for (names, factor, busy) in machines.into_values() {
        // Slots that are mostly idle bind nothing, however long their holds are.
        if busy >= 0.5 && (factor - 1.0).abs() >= SETTLED {
            largest = largest.max((factor - 1.0).abs());
            factors.extend(names.into_iter().map(|name| (name, factor)));
        }
    }
    (factors, largest)
}

/// Scales the demand for slots of what the mix takes to how long the loaded twin held them. What it does not
/// take holds them as on an idle twin: what others wait for says nothing of it by itself, and an alternative
/// that is thought too good is taken in the next round and then seen.
fn hold_again(
    ready: &[Ready],
    idle: &[Fold],
    folds: &mut [Fold],
    shares: &[(String, f64)],
    factors: &[(String, f64)],
) {
    for (index, one) in ready.iter().enumerate() {
        if !shares.iter().any(|(name, _)| *name == one.alternative.name) {
            folds[index].clone_from(&idle[index]);
            continue;
        }
        for (station, factor) in factors {
            if one.alternative.device.is_none()
                && let Some(seconds) = folds[index].seconds.get_mut(station)
            {
                *seconds *= factor;
            }
        }
    }
}

/// Parts of their time that stations may be busy in mixes that are tried for the lowest tail.
const BUSY: [f64; 6] = [0.95, 0.9, 0.85, 0.8, 0.7, 0.6];

/// Shares by alternative.
type Shares = Vec<(String, f64)>;

/// Shares of the mix with the lowest 99th percentile at a load, of those that are tried on the twin.
///
/// What has the least mean latency fills stations to the brim, where tails are long. Tried besides are the mixes
/// of least mean latency in which no station is busy for more than a part of its time, the greedy one, each
/// alternative alone that carries the load, and mixes between the two best of all these. What is lower by less than a
/// hundredth is no lower.
fn lowest_tail(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    offered: f64,
    seed: Seed,
) -> Result<Shares, miette::Report> {
    let parts = Part::all(ready);
    let base = evaluate(design, &parts, folds, false)?;
    let least = solve::shares(&base.optimal);
    let sizes = (base.optimal.total, solve::mean_of(&least, &parts, |index| folds[index].latency));
    let mut candidates: Vec<Shares> = vec![least];
    for busy in BUSY {
        // A mix that would carry the load over `busy` is busy for that part of its time at the load.
        let mut eased = design.clone();
        eased.objective = Objective::LowestP99 { load: offered / busy };
        let Ok(seen) = evaluate(&eased, &parts, folds, false) else { break };
        let shares = solve::shares(&seen.optimal);
        let is_new = |known: &Shares| {
            let share = |all: &[(String, f64)], name: &str| {
                all.iter().find(|(own, _)| own == name).map_or(0.0, |(_, share)| *share)
            };
            let names = shares.iter().chain(known).map(|(name, _)| name);
            names.into_iter().any(|name| (share(&shares, name) - share(known, name)).abs() > 1e-3)
        };
        if candidates.iter().all(is_new) {
            candidates.push(shares);
        }
    }
    let reaches =
        |shares: &Shares| capacity_at(design, ready, folds, shares).is_ok_and(|capacity| capacity >= offered);
    candidates.extend(Some(solve::shares(&base.greedy)).filter(reaches));
    let alone = solve::allowed(design, &parts, folds).into_iter();
    let alone = alone.filter(|index| base.alone[*index].total > offered);
    candidates.extend(alone.map(|index| vec![(ready[index].alternative.name.clone(), 1.0)]));
    let measured = |candidates: Vec<Shares>| -> Result<Vec<(Time, Shares)>, RunError> {
        let tails = side_by_side(candidates.len(), |index| {
            let loaded = run_mix(ready, &candidates[index], sizes, Some(offered), COUNTED, seed)?;
            Ok::<_, RunError>(loaded.latencies.quantile(0.99).unwrap_or(Time::MAX))
        });
        tails.into_iter().zip(candidates).map(|(tail, shares)| Ok((tail?, shares))).collect()
    };
    let mut tried = measured(candidates)?;
    let least = tried[0].clone();
    tried.sort_by_key(|one| one.0);
    // Bisect on the line between the two best: keep the half whose middle is lower.
    if let [first, second, ..] = tried.as_slice() {
        let (a, b) = (first.1.clone(), second.1.clone());
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..5 {
            let at = [0.25, 0.75].map(|part| between(&a, &b, low + (high - low) * part));
            let carried = at.map(|shares| Some(shares).filter(reaches));
            let mut tails = measured(carried.iter().flatten().cloned().collect())?.into_iter();
            let sides = carried.map(|shares| shares.and_then(|_| tails.next()));
            let tail = |side: &Option<(Time, Shares)>| side.as_ref().map_or(Time::MAX, |one| one.0);
            if tail(&sides[0]) <= tail(&sides[1]) {
                high = (low + high) / 2.0;
            } else {
                low = (low + high) / 2.0;
            }
            tried.extend(sides.into_iter().flatten());
        }
    }
    let best = tried.into_iter().min_by_key(|one| one.0).expect("the base mix was tried");
    let is_lower = best.0.as_seconds() < least.0.as_seconds() * (1.0 - SETTLED);
    let mut shares = if is_lower { best.1 } else { least.1 };
    shares.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    Ok(shares)
}

fn between(a: &[(String, f64)], b: &[(String, f64)], at: f64) -> Vec<(String, f64)> {
    let mut shares: BTreeMap<String, f64> = BTreeMap::new();
    for (list, weight) in [(a, 1.0 - at), (b, at)] {
        for (name, share) in list {
            *shares.entry(name.clone()).or_default() += share * weight;
        }
    }
    shares.into_iter().collect()
}

/// Latency over offered load: the best mix at shares of what its stations carry, and at the load that was asked for,
/// as far as the twin has as many requests under way as that takes. Beyond, they would wait for one that ends and for
/// no station.
pub fn curve(
    design: &Design,
    ready: &[Ready],
    plan: &Plan,
    seed: Seed,
) -> Result<Vec<Point>, miette::Report> {
    let folds: Vec<Fold> = plan.alternatives.iter().map(|one| one.demand.clone()).collect();
    let most = match design.objective.load() {
        None => plan.optimal.rate.value,
        Some(_) => capacity_at(design, ready, &folds, &plan.optimal.shares)?,
    };
    let mut loads: Vec<f64> = [0.1, 0.25, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95].map(|share| most * share).to_vec();
    loads.extend(design.objective.load());
    loads.sort_by(f64::total_cmp);
    loads
        .into_iter()
        .map(|offered| {
            let sizes = (most, plan.optimal.latency_s);
            let loaded = run_mix(ready, &plan.optimal.shares, sizes, Some(offered), COUNTED, seed)?;
            let is_held = too_many(offered * plan.optimal.latency_s, &loaded).is_none();
            Ok(is_held.then_some(Point { offered_per_s: offered, loaded }))
        })
        .filter_map(Result::transpose)
        .collect()
}

/// Runs that a figure of few clients is the mean of. In each they begin at other moments: what few clients do in
/// turn, they go on doing in that order.
const PHASES: u64 = 4;
/// Requests of each run, and rounds of the clients at least.
const OF_CLIENTS: f64 = 200.0;
const FEWEST_OF_CLIENTS: f64 = 20.0;

/// Requests per second of so many clients with one request under way each, which run a mix in `shares`: the mean
/// over four runs in which they begin at other moments, with its 95% interval by Student's t over them.
/// `capacity` is what the stations carry, by which windows are sized.
///
/// It ignores what clients do between requests.
///
/// # Errors
/// As [`load`].
pub fn of_clients(
    ready: &[&Ready],
    shares: &[f64],
    clients: u32,
    capacity: f64,
    seed: Seed,
) -> Result<Interval, RunError> {
    let slowest = ready.iter().map(|one| one.compiled.fold(&one.router).latency).fold(0.0, f64::max);
    // Where the clients are many, they wait for each other, and a round takes longer.
    let round = slowest.max(f64::from(clients) / capacity);
    let rounds = (OF_CLIENTS / f64::from(clients)).max(FEWEST_OF_CLIENTS);
    let span = |times: f64| Time::from_ps((round * times * 1e12) as u64);
    let mut carried = Vec::new();
    for phase in 0..PHASES {
        let arrivals = Arrivals::Closed(clients);
        let seed = seed.child("clients").index(phase);
        let loaded = load(ready, shares, arrivals, span(FEWEST_OF_CLIENTS), span(rounds), seed)?;
        carried.push(loaded.throughput.mean);
    }
    Ok(batch_means(&carried).expect("there are several phases"))
}

/// Throughput with few clients ([`of_clients`]), by alternative and named mix.
pub fn few_clients(
    design: &Design,
    ready: &[Ready],
    plan: &Plan,
    seed: Seed,
) -> Result<Vec<(String, Vec<Interval>)>, RunError> {
    let is_own = |name: &str| {
        design.alternatives.iter().any(|one| one.name == name && one.device.is_none() && one.mixed)
    };
    let alone = plan.alternatives.iter().filter(|one| is_own(&one.name));
    let alone = alone.map(|one| (&one.name, vec![(one.name.clone(), 1.0)], one.rate.value));
    let mixes = plan.mixes.iter().map(|mix| (&mix.name, mix.shares.clone(), mix.rate.value));
    alone
        .chain(mixes)
        // What the design's constraints forbid, no client runs.
        .filter(|(_, _, capacity)| *capacity > 0.0)
        .map(|(name, shares, capacity)| {
            let (own, weights) = own(ready, &shares);
            let runs = design.clients.iter();
            let runs = runs.map(|clients| of_clients(&own, &weights, *clients, capacity, seed));
            Ok((name.clone(), runs.collect::<Result<_, _>>()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Told, told};
    use offpath_twin::Interval;

    #[test]
    fn a_mean_that_is_near_by_chance_agrees_with_nothing() {
        let carried = |mean, half| Interval { mean, low: mean - half, high: mean + half };
        for (mean, half, says) in [
            (100.0, 1.0, Told::Agrees),
            (101.9, 1.9, Told::Agrees),
            (100.0, 2.1, Told::Unclear),
            (100.0, 60.0, Told::Unclear),
            (95.0, 6.0, Told::Unclear),
            (95.0, 1.0, Told::Differs),
            (105.0, 1.0, Told::Differs),
        ] {
            assert_eq!(told(100.0, 0.02, &carried(mean, half)), says, "{mean} by {half}");
        }
    }
}
