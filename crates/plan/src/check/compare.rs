//! A plan beside what the loaded twin carries: agreement, a difference with the station that fills first, or a run that does
//! not tell.

use super::Settled;
use super::run::{COUNTED, FEWEST_LONGEST, FEWEST_RARE, Moves, extremes, is_short};
use crate::design::Design;
use crate::observe::{Loaded, OPEN_LOOP_TASKS};
use crate::planner::Ready;
use crate::program::Extremes;
use crate::solve::slots_bind;
use offpath_capacity::Solution;
use offpath_quantity::Time;
use offpath_route::Router;
use offpath_twin::Interval;

/// How far the loaded twin is from the plan, where that is more than queueing explains.
#[derive(Clone, Debug, PartialEq)]
pub struct Gap {
    /// What the plan says, in requests per second.
    pub planned_per_s: f64,
    /// What the twin carried, in requests per second; none where that says nothing of the plan.
    pub carried_per_s: Option<Interval>,
    /// The greatest difference that is let pass, as a share.
    pub allowed: f64,
    /// The station that was busiest, on the machine where it was; none where that says nothing of the plan.
    pub fullest: Option<Fullest>,
    /// Why a window as long as can be run does not tell, where it does not: then what the twin carried says
    /// nothing of the plan, whether the two agree or not, and no figure of it is given.
    pub blind: Option<String>,
    /// Why closed loops carry less than planned though they fill no station, as more runs of the mix show it; nothing
    /// where a station is full, or requests come at random.
    pub bunched: Option<Bunched>,
}

/// What runs of a mix show whose closed loops carry less than planned and fill no station.
#[derive(Clone, Debug, PartialEq)]
pub struct Bunched {
    /// What requests gather before while the fullest station is idle: the busiest of the others in that time, where
    /// that is busy for most of it and longer than in all.
    pub behind: Option<Behind>,
    /// The largest of the loads that were tried with requests at random of which the twin carries all that comes.
    pub at_random: Option<AtRandom>,
}

/// A station that is busy while the fullest one is idle.
#[derive(Clone, Debug, PartialEq)]
pub struct Behind {
    /// It, with its share of busy time while the fullest one is idle.
    pub station: Fullest,
    /// Its share of busy time in all.
    pub in_all: f64,
}

/// A load that is carried where requests come at random.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AtRandom {
    /// Requests per second that were asked for.
    pub load_per_s: f64,
    /// How many were in flight in the mean.
    pub mean_in_flight: f64,
}

impl Gap {
    /// Whether the twin's mean lies as near as is let pass, and scatters too far to tell.
    pub fn is_unclear(&self) -> bool {
        self.carried_per_s.is_some_and(|carried| {
            (carried.mean / self.planned_per_s - 1.0).abs() <= self.allowed
                || is_by_chance(self.planned_per_s, &carried)
        })
    }

    /// How much more or less than planned the twin carried, as a share; none where that is no figure.
    pub fn share(&self) -> Option<f64> {
        Some(self.carried_per_s?.result()? / self.planned_per_s - 1.0)
    }
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

/// How much less or more than planned a twin may carry: 2%, and 5% where slots bind, which are held for
/// times that only settle to 1% and spread.
pub(super) const ALLOWED: f64 = 0.02;

const ALLOWED_WITH_SLOTS: f64 = 0.05;

/// Standard deviations that are taken for chance: of twenty plans that hold one lies outside of a 95% interval.
const CHANCE: f64 = 3.0;

/// Standard deviations to each end of a 95% interval.
const TO_AN_END: f64 = 1.96;

/// Whether a run that carried so much, with its 95% interval, may be of what was planned.
fn is_by_chance(planned_per_s: f64, carried: &Interval) -> bool {
    (carried.mean - planned_per_s).abs() <= CHANCE / TO_AN_END * (carried.high - carried.low) / 2.0
}

/// By how much what a run carried is known, as a share of what was planned, where that is as good as what may differ and the
/// bound lies within it: whether the difference is more than may be is then a matter of the draws. `None` where it is none.
fn noise(planned_per_s: f64, allowed: f64, carried: &Interval) -> Option<f64> {
    let half = (carried.high - carried.low) / 2.0 / planned_per_s;
    let apart = (carried.mean / planned_per_s - 1.0).abs();
    (half <= allowed && (apart - allowed).abs() <= half).then_some(half)
}

/// What the loaded twin says of a plan.
#[derive(Clone)]
pub(super) enum Compared {
    Agrees,
    /// It is known to so much, and whether it differs by more than may be lies within that.
    Noise(f64),
    /// It differs and what the plan says lies within what the twin's mean scatters by, or it is near and may be so by
    /// chance. A mean that is near and scatters by less than a tenth is let pass, with its interval beside it.
    Unclear(Option<Gap>),
    Differs(Gap),
}

/// How many requests an open loop takes in flight, and how many the twin runs, where these are too few: then requests wait
/// for one that ends and for no station. By `seen`, what a run had in flight in the mean, where `unloaded` alone is not too
/// many: else that run was held back, and what gathered before it grows with its window.
pub(super) fn too_many(unloaded: f64, seen: f64) -> Option<(f64, u32)> {
    // Arrivals at random bunch, and a quarter more is room for that.
    let needed = [unloaded, seen].map(|in_flight| in_flight * 1.25);
    let most = f64::from(OPEN_LOOP_TASKS);
    needed.into_iter().find(|needed| *needed > most).map(|needed| (needed, OPEN_LOOP_TASKS))
}

/// How many requests a mix has in flight when its stations are busy, and how many the twin runs, where these are
/// too few: then it shows less than the stations carry.
pub(crate) fn crowded((rate, latency_s): (f64, f64), most: u32) -> Option<(f64, u32)> {
    let needed = rate * latency_s;
    (needed > f64::from(most)).then_some((needed, most))
}

/// Why a window does not tell what a mix carries, where it does not.
pub(super) fn blind(
    ready: &[Ready],
    shares: &[(String, f64)],
    loaded: &Loaded,
    (rate, latency_s): (f64, f64),
    load: Option<f64>,
) -> Option<String> {
    let moves = Moves::of(ready, shares);
    let most = moves.most_in_flight();
    let crowded = match load {
        None => self::crowded((rate, latency_s), most),
        Some(load) => too_many(load * latency_s, loaded.mean_in_flight),
    };
    if let Some((needed, most)) = crowded {
        let of = if moves.are_many() && load.is_none() { moves.of_each_request() } else { String::new() };
        return Some(format!("it takes about {needed:.0} requests in flight, and the twin runs {most}{of}"));
    }
    if load.is_none() && moves.are_many() && loaded.in_flight == most && is_short(loaded, rate) {
        let of = moves.of_each_request();
        return Some(format!("more requests in flight might carry more, and the twin runs {most}{of}"));
    }
    let Extremes { rarest, longest_s, .. } = extremes(ready, shares);
    // Where the longest window is too short a short one is run.
    let window = loaded.window.max(Time::from_seconds(moves.most_counted() / rate));
    let taken = rarest * rate * window.as_seconds();
    if taken < FEWEST_RARE {
        return Some(format!(
            "a case that one request in {:.0} takes comes {taken:.1} times in its longest window",
            1.0 / rarest
        ));
    }
    let longest = Time::from_seconds(longest_s);
    (window.as_seconds() < FEWEST_LONGEST * longest_s)
        .then(|| format!("a request may take {longest}, and its longest window is {window}"))
}

/// How far runs of a settled mix that carried so much are from what it was confirmed by, where that is more than
/// it may be and no scatter. `arrived` is about how many requests they counted.
pub(crate) fn differs(
    design: &Design,
    ready: &[Ready],
    settled: &Settled,
    (carried, arrived): (Interval, f64),
) -> Option<Gap> {
    let router = own_router(ready)?;
    let planned_per_s = design.objective.load().unwrap_or(settled.rate);
    let allowed = settled.allowed();
    let fullest = fullest(router, &settled.loaded);
    let gap =
        Gap { planned_per_s, carried_per_s: Some(carried), allowed, fullest, blind: None, bunched: None };
    // Arrivals at random are more or fewer in a window than their rate says, by the root of their number.
    let by_chance = match design.objective.load() {
        Some(load) if carried.mean > load => f64::INFINITY,
        Some(_) => CHANCE / arrived.sqrt(),
        None => 0.0,
    };
    let scatters = is_by_chance(planned_per_s, &carried);
    let is_noise = noise(planned_per_s, allowed, &carried).is_some();
    ((carried.mean / planned_per_s - 1.0).abs() > allowed + by_chance && !scatters && !is_noise)
        .then_some(gap)
}

/// How many requests the run of a settled mix counts, where its rare cases or long requests ask for more than are
/// counted usually.
pub(crate) fn stretched(design: &Design, settled: &Settled) -> Option<f64> {
    let counted = settled.loaded.window.as_seconds() * design.objective.load().unwrap_or(settled.rate);
    (counted > 1.2 * COUNTED.requests).then_some(counted)
}

/// The routes of the system that a design's own alternatives run on.
pub(super) fn own_router(ready: &[Ready]) -> Option<&Router> {
    ready.iter().find(|one| one.alternative.device.is_none()).map(|one| &*one.router)
}

/// By how much a twin may carry less or more than what was solved.
pub(super) fn allowed(slots_bind: bool) -> f64 {
    if slots_bind { ALLOWED_WITH_SLOTS } else { ALLOWED }
}

pub(super) fn compared(
    ready: &[Ready],
    solution: &Solution,
    load: Option<f64>,
    loaded: &Loaded,
    blind: Option<String>,
) -> Compared {
    let Some(router) = own_router(ready) else { return Compared::Agrees };
    let planned_per_s = load.unwrap_or(solution.total);
    let allowed = allowed(own_router(ready).is_some_and(|router| slots_bind(router, solution)));
    let Interval { mean, low, high, .. } = loaded.throughput;
    let told = match loaded.arrived_per_s {
        // Arrivals at random are more or fewer in a window than their rate says: what came has to end.
        Some(arrived) if (mean / arrived - 1.0).abs() <= allowed => Comparison::Agrees,
        Some(arrived) => told(arrived, 0.0, &loaded.throughput),
        None => told(planned_per_s, allowed, &loaded.throughput),
    };
    if blind.is_some() {
        let (carried_per_s, fullest, bunched) = (None, None, None);
        return Compared::Differs(Gap { planned_per_s, carried_per_s, allowed, fullest, blind, bunched });
    }
    let (carried_per_s, fullest) = (Some(loaded.throughput), fullest(router, loaded));
    let gap = Gap { planned_per_s, carried_per_s, allowed, fullest, blind, bunched: None };
    match told {
        Comparison::Agrees => Compared::Agrees,
        Comparison::Noise(half) => Compared::Noise(half),
        Comparison::Unclear => {
            let is_near = (mean / planned_per_s - 1.0).abs() <= allowed;
            Compared::Unclear((!is_near || high - low >= 0.2 * mean).then_some(gap))
        }
        Comparison::Differs => Compared::Differs(gap),
    }
}

/// What a window tells of a planned rate.
#[derive(Debug, PartialEq)]
enum Comparison {
    Agrees,
    Noise(f64),
    Unclear,
    Differs,
}

fn told(planned_per_s: f64, allowed: f64, carried: &Interval) -> Comparison {
    let Interval { mean, low, high, .. } = *carried;
    let is_near = (mean / planned_per_s - 1.0).abs() <= allowed;
    if let Some(half) = noise(planned_per_s, allowed, carried) {
        return Comparison::Noise(half);
    }
    match is_near {
        // A mean that scatters by more than may differ is near by chance.
        true if high - low <= 2.0 * allowed * planned_per_s => Comparison::Agrees,
        false if !is_by_chance(planned_per_s, carried) => Comparison::Differs,
        _ => Comparison::Unclear,
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

#[cfg(test)]
mod tests {
    use super::{Comparison, crowded, told, too_many};
    use offpath_twin::Interval;

    #[test]
    fn a_mix_that_needs_just_what_the_twin_runs_is_shown() {
        assert_eq!(crowded((16.0, 2.0), 32), None);
        assert_eq!(crowded((16.5, 2.0), 32), Some((33.0, 32)));
    }

    /// At a load of 1.9 and of 2.1 M/s and 1 ms each. What a run had in flight that was held at 2,048 says how long it was.
    #[test]
    fn an_open_loop_takes_in_flight_what_it_takes_unloaded() {
        assert_eq!(too_many(1_900.0, 1_907.0), Some((2_375.0, 2048)));
        assert_eq!(too_many(2_100.0, 3_129.0), Some((2_625.0, 2048)));
        assert_eq!(too_many(1_600.0, 1_700.0), Some((2_125.0, 2048)));
        assert_eq!(too_many(1_600.0, 1_610.0), None);
    }

    #[test]
    fn a_mean_that_is_near_by_chance_agrees_with_nothing() {
        let carried = |mean, half| Interval { mean, low: mean - half, high: mean + half };
        for (mean, half, says) in [
            (100.0, 1.0, Comparison::Agrees),
            (100.1, 1.8, Comparison::Agrees),
            (101.9, 1.9, Comparison::Noise(0.019)),
            (98.7, 1.4, Comparison::Noise(0.014)),
            (97.1, 1.4, Comparison::Noise(0.014)),
            (96.5, 1.4, Comparison::Differs),
            (100.0, 2.1, Comparison::Unclear),
            (100.0, 60.0, Comparison::Unclear),
            (95.0, 6.0, Comparison::Unclear),
            (95.0, 3.3, Comparison::Unclear),
            (95.0, 3.2, Comparison::Differs),
            (95.0, 1.0, Comparison::Differs),
            (105.0, 1.0, Comparison::Differs),
        ] {
            let said = match told(100.0, 0.02, &carried(mean, half)) {
                Comparison::Noise(half) => Comparison::Noise((half * 1e4).round() / 1e4),
                said => said,
            };
            assert_eq!(said, says, "{mean} by {half}");
        }
    }
}
