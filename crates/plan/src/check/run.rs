//! Runs of a mix on the loaded twin: with how many requests in flight, and over how long a window.

use super::SETTLED;
use super::compare::{ALLOWED, allowed, crowded};
use crate::observe::{Loaded, ObserveError, RequestArrivals, load};
use crate::planner::Ready;
use crate::program::{Extremes, bursts};
use offpath_quantity::Time;
use offpath_route::{PathOperation, RouteError, Router, StationId, StationKind};
use offpath_twin::{Arrivals, Interval, Load, LoadError, Seed};
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// What of a loaded run is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Counted {
    /// Requests, where each is one burst and its rare cases and long requests do not ask for more.
    pub(crate) requests: f64,
    /// Where in a round of the clients the window begins, as a share of it: that decides what its edges cut
    /// off.
    pub(crate) phase: f64,
    /// How many times as many, whatever asks for them.
    pub(super) longer: f64,
    /// Whether nothing is read but how long slots are held.
    pub(super) holds_only: bool,
}

impl Counted {
    /// So many, from the beginning of a round on.
    pub(super) const fn requests(requests: f64) -> Counted {
        Counted { requests, phase: 0.0, longer: 1.0, holds_only: false }
    }

    /// So many of which nothing is read but how long slots are held: that is a mean over all of them, and varies less
    /// than a rate.
    pub(super) const fn holds(requests: f64) -> Counted {
        Counted { holds_only: true, ..Counted::requests(requests) }
    }

    /// So many, from that share of a round on.
    pub(crate) const fn from_phase(requests: f64, phase: f64) -> Counted {
        Counted { phase, ..Counted::requests(requests) }
    }
}

/// What a plan's run counts.
pub(super) const COUNTED: Counted = Counted::requests(24_000.0);

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

/// Moves of a run before it is counted, which bound how many requests of many moves it has in flight.
const MOST_WORK: f64 = 500_000.0;

/// Requests that a closed loop gets at least, and an open loop is let settle by.
const FEWEST_IN_FLIGHT: u32 = 32;

/// Times that a rare case is taken in a window, and longest requests that fit it, for the window to tell.
pub(super) const TIMES: f64 = 8.0;

/// Times that a rare case is taken, and longest requests that fit, below which a window tells nothing.
pub(super) const FEWEST_RARE: f64 = TIMES / 2.0;
pub(super) const FEWEST_LONGEST: f64 = 2.0;

/// The least of longest requests that fit a window, where one makes many moves.
const FEWEST_TIMES: f64 = 2.5;

/// Requests of a window over those that are counted usually, at most.
const MOST_LONGER: f64 = 16.0;

/// The rarest case of a mix and its longest request.
pub(super) fn extremes(ready: &[Ready], shares: &[(String, f64)]) -> Extremes {
    let (own, shares) = own(ready, shares);
    let none = Extremes { rarest: 1.0, longest_s: 0.0, moves: 0.0, most_moves: 0.0 };
    own.iter().zip(shares).fold(none, |all, (one, share)| {
        let of = one.compiled.extremes(&one.router);
        // What takes next to nothing of a mix is not what the mix stands on.
        if share < 1e-3 {
            return all;
        }
        Extremes {
            rarest: all.rarest.min(of.rarest * share),
            longest_s: all.longest_s.max(of.longest_s),
            moves: all.moves + share * of.moves,
            most_moves: all.most_moves.max(of.most_moves),
        }
    })
}

pub(super) fn own<'r>(ready: &'r [Ready], shares: &[(String, f64)]) -> (Vec<&'r Ready>, Vec<f64>) {
    shares
        .iter()
        .filter_map(|(name, share)| {
            ready.iter().find(|one| one.alternative.name == *name).map(|one| (one, *share))
        })
        .unzip()
}

/// Most requests in flight that a closed loop gets.
const MOST_IN_FLIGHT: u32 = 4096;

/// Events of the twin of which a mix's requests are made: the payload of a verb moves in bursts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moves {
    /// Bursts of the largest payload, or what a request makes in the mean where that is less.
    payload: f64,
    /// Verbs of a request in the mean, each as many as its bursts.
    mean: f64,
}

impl Moves {
    pub(crate) fn of(ready: &[Ready], shares: &[(String, f64)]) -> Moves {
        let (own, shares) = own(ready, shares);
        Moves::of_each(&own, &shares)
    }

    fn of_each(own: &[&Ready], shares: &[f64]) -> Moves {
        let all: f64 = shares.iter().sum();
        let moves = |one: &Ready| one.compiled.extremes(&one.router).moves;
        let mean: f64 = own.iter().zip(shares).map(|(one, share)| share / all * moves(one)).sum();
        let payload = own.iter().flat_map(|one| one.compiled.payloads()).map(bursts).fold(1.0, f64::max);
        Moves { payload: payload.min(mean).max(1.0), mean }
    }

    /// Requests that a window holds at least.
    fn fewest(&self) -> f64 {
        (FEWEST * MOST_MOVES / self.mean).clamp(VERY_FEWEST, FEWEST)
    }

    /// How many times something is done, and at least `fewest`: one request of many moves passes by itself where
    /// others pass in turn.
    fn by_itself(&self, times: f64, fewest: f64) -> f64 {
        (times / (self.mean / MOVES).max(1.0)).max(fewest)
    }

    /// How many usual requests one costs the twin: a large payload is an event a burst, and many steps are events for each.
    fn usual(&self) -> f64 {
        self.payload.max(self.mean / MOVES)
    }

    /// Most requests that a window is made to hold for what is rare or long.
    pub(super) fn most_counted(&self) -> f64 {
        COUNTED.requests * MOST_LONGER / self.usual()
    }

    /// Whether a closed loop gets fewer requests for how many they are.
    pub(super) fn are_many(&self) -> bool {
        self.most_in_flight() < MOST_IN_FLIGHT
    }

    /// Why it gets no more, after their number.
    pub(super) fn of_each_request(&self) -> String {
        format!(", since one is {:.0} verbs and bursts of a payload", self.mean)
    }

    /// Most requests that a closed loop gets of them.
    pub(crate) fn most_in_flight(&self) -> u32 {
        ((MOST_WORK / FEWEST_ROUNDS / self.mean.max(1.0)) as u32).clamp(FEWEST_IN_FLIGHT, MOST_IN_FLIGHT)
    }
}

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

/// Requests that keep every station of a mix busy: six times what is in flight unloaded where these are few, and
/// twice where they are many. Few long transfers that share a link end together, and it is idle until all are
/// answered; of many it is not.
fn enough(rate: f64, latency_s: f64, most: u32) -> u32 {
    const FEW: f64 = 64.0;
    let unloaded = rate * latency_s;
    let times = 2.0 + 4.0 * (FEW / unloaded).min(1.0);
    ((unloaded * times) as u32).clamp(FEWEST_IN_FLIGHT, most)
}

/// Whether a mix is so near to one that was just run saturated that it holds slots for as long, to what settles: what it
/// is of, and how many requests are in flight where all queues are full.
pub(super) fn is_near(run: (&[(String, f64)], f64), next: (&[(String, f64)], f64)) -> bool {
    let share = |of: &[(String, f64)], name: &str| {
        of.iter().find(|(own, _)| own == name).map_or(0.0, |(_, share)| *share)
    };
    let less: f64 = run.0.iter().map(|(name, was)| (was - share(next.0, name)).max(0.0)).sum();
    less < SETTLED && (next.1 / run.1 - 1.0).abs() < ALLOWED
}

/// Whether a closed loop carries less than was solved for and fills no station.
pub(super) fn is_short(loaded: &Loaded, rate: f64) -> bool {
    let fullest = loaded.fullest.values().map(|(_, busy)| *busy).fold(0.0, f64::max);
    loaded.throughput.mean < (1.0 - ALLOWED) * rate && fullest < 1.0 - ALLOWED / 2.0
}

/// How many times longer a mix's window may be made: what is rare or long may have made it long already.
pub(super) fn most_longer(ready: &[Ready], named: &[(String, f64)], sizes: (f64, f64), counted: f64) -> f64 {
    Moves::of(ready, named).most_counted() / asked(ready, named, sizes, counted)
}

/// Requests that a window has to hold for a mix's rare cases and long requests, and as many as are counted usually.
fn asked(ready: &[Ready], named: &[(String, f64)], (rate, _): (f64, f64), counted: f64) -> f64 {
    let all = Moves::of(ready, named);
    // Of requests that cost more fewer are counted; their throughput varies less.
    let (fewest, widest) = (all.fewest(), all.most_counted());
    let counted = (counted / all.usual()).max(fewest);
    let Extremes { rarest, longest_s, .. } = extremes(ready, named);
    let told = (TIMES / rarest).max(all.by_itself(TIMES, FEWEST_TIMES) * longest_s * rate);
    counted.max(told.min(widest))
}

/// How many times as long windows are made that cannot tell a difference from scatter, one after the other.
pub(super) const LONGER: [f64; 2] = [4.0, 16.0];

/// Usual requests that one settling runs before it is given as it is, settled or told or not: as many as two solutions count
/// in a usual window and in each longer one. Else six rounds of each would be run, of rare and long requests for minutes.
const MOST_RUN: f64 = 2.0 * COUNTED.requests * (1.0 + LONGER[0] + LONGER[1]);

/// The loaded twin of one design's alternatives. What was run is remembered: a mix whose holds of slots move often
/// solves to the same one, and one alternative is run by itself and as the mix that it is.
pub(super) struct MixRuns<'r> {
    pub(super) ready: &'r [Ready],
    pub(super) seed: Seed,
    seen: RefCell<Vec<(MixRun, Loaded)>>,
    /// How many usual requests were run, before windows and within.
    run: Cell<f64>,
}

/// What a run is of.
#[derive(Clone)]
struct MixRun {
    shares: Vec<(String, f64)>,
    sizes: (f64, f64),
    load: Option<f64>,
    /// Requests of its window: what is rare or long may ask for as many whatever is counted usually.
    counted: f64,
    phase: f64,
}

impl MixRun {
    /// Whether another one differs by the solver's rounding at most.
    fn is(&self, other: &MixRun) -> bool {
        const ROUNDING: f64 = 1e-12;
        let near = |a: f64, b: f64| (a - b).abs() <= ROUNDING * b.abs();
        let mixed = |((a, of_a), (b, of_b)): (&(String, f64), &(String, f64))| a == b && near(*of_a, *of_b);
        self.shares.len() == other.shares.len()
            && self.shares.iter().zip(&other.shares).all(mixed)
            && near(self.sizes.0, other.sizes.0)
            && near(self.sizes.1, other.sizes.1)
            && self.load == other.load
            && near(self.counted, other.counted)
            && self.phase == other.phase
    }
}

impl<'r> MixRuns<'r> {
    pub(super) fn of(ready: &'r [Ready], seed: Seed) -> MixRuns<'r> {
        MixRuns { ready, seed, seen: RefCell::default(), run: Cell::default() }
    }

    /// Whether no more is run to settle a mix, or to tell a difference from scatter.
    pub(super) fn is_spent(&self) -> bool {
        self.run.get() >= MOST_RUN
    }

    /// Takes over what others ran of the same, which they ran beside these.
    pub(super) fn remember(&self, others: MixRuns<'_>) {
        self.seen.borrow_mut().extend(others.seen.into_inner());
    }

    /// [`run_mix`], once.
    pub(super) fn mix(
        &self,
        shares: &[(String, f64)],
        sizes: (f64, f64),
        load: Option<f64>,
        counted: Counted,
    ) -> Result<Loaded, ObserveError> {
        let rate = load.unwrap_or(sizes.0);
        let window = asked(self.ready, shares, (rate, sizes.1), counted.requests) * counted.longer;
        let run = MixRun { shares: shares.to_vec(), sizes, load, counted: window, phase: counted.phase };
        if let Some((_, loaded)) = self.seen.borrow().iter().find(|(other, _)| other.is(&run)) {
            return Ok(loaded.clone());
        }
        let loaded = run_mix(self.ready, shares, sizes, load, counted, self.seed)?;
        let requests = rate * (loaded.warm_up.as_seconds() + loaded.window.as_seconds());
        self.run.set(self.run.get() + requests * Moves::of(self.ready, shares).usual());
        self.seen.borrow_mut().push((run, loaded.clone()));
        Ok(loaded)
    }
}

/// Runs a mix at a load, or saturated: then with as many requests in flight as fill a station, and counted
/// once their queues have settled.
pub(crate) fn run_mix(
    ready: &[Ready],
    named: &[(String, f64)],
    (capacity, latency_s): (f64, f64),
    offered: Option<f64>,
    Counted { requests: counted, phase, longer, .. }: Counted,
    seed: Seed,
) -> Result<Loaded, ObserveError> {
    let (own, shares) = own(ready, named);
    let rate = offered.unwrap_or(capacity);
    let all = Moves::of_each(&own, &shares);
    let most = all.most_in_flight();
    let Extremes { rarest, longest_s, .. } = extremes(ready, named);
    let widest = all.most_counted();
    // However long a run is that has fewer requests in flight than the mix takes, it shows nothing of it; nor does one
    // that is too short for what is rare or long, as long as it may be.
    let is_blind = offered.is_none() && crowded((capacity, latency_s), most).is_some()
        || widest * rarest < FEWEST_RARE
        || widest < FEWEST_LONGEST * longest_s * rate;
    let counted =
        if is_blind { all.fewest() } else { asked(ready, named, (rate, latency_s), counted) * longer };
    // However rarely they come: time in which nothing happens costs nothing.
    let window = Time::from_seconds(counted / rate).min(LONGEST_WINDOW);
    let run = |in_flight: u32, rounds: f64| {
        // Queues that a closed loop fills at its start have to drain once before anything is counted.
        let settling =
            (latency_s * all.by_itself(TIMES, FEWEST_TIMES)).max(longest_s * 2.0).min(counted / rate);
        let round = if offered.is_none() { f64::from(in_flight) / rate } else { latency_s };
        let warm_up = f64::from(in_flight) / rate * rounds + settling + phase * round.max(latency_s);
        let arrivals = offered.map_or(RequestArrivals::Closed(in_flight), RequestArrivals::Poisson);
        load(&own, &shares, arrivals, Time::from_seconds(warm_up), window, seed.child("load"))
    };
    let mut in_flight = enough(rate, latency_s, most);
    let mut rounds = all.by_itself(ROUNDS, FEWEST_ROUNDS);
    let mut loaded = run(in_flight, rounds)?;
    // Steps of very different length bunch requests: then more of them are needed to fill a station, and it
    // takes longer until they have spread.
    while offered.is_none() && is_short(&loaded, rate) && in_flight < most {
        in_flight = (in_flight * MORE_IN_FLIGHT).min(most);
        rounds = (SPREAD / f64::from(in_flight)).clamp(ROUNDS, MORE_ROUNDS);
        let more = run(in_flight, rounds)?;
        if more.throughput.mean <= loaded.throughput.mean * (1.0 + SETTLED) {
            break;
        }
        loaded = more;
    }
    Ok(loaded)
}

/// What the twin carries of one operation when its stations are saturated.
#[derive(Clone, Debug, PartialEq)]
pub struct Saturated {
    /// Requests in flight.
    pub in_flight: u32,
    /// Operations per second, with their 95% interval of the simulation.
    pub carried: Interval,
    /// Whether that is less than the capacity on idle stations, by more than chance and what is let pass.
    pub is_less: bool,
    /// The station of one machine that was busy for the greatest share of the time, with that share; packet cores, which
    /// are counted in requests, are left out.
    pub fullest: Option<(StationId, f64)>,
}

/// Why the twin says nothing of an operation.
#[derive(Debug, thiserror::Error)]
pub enum SaturatedError {
    /// There is no such route.
    #[error(transparent)]
    Route(#[from] RouteError),
    /// It cannot be run.
    #[error(transparent)]
    Load(#[from] LoadError),
}

/// Runs one operation in closed loops that keep its stations busy, and compares what is carried with the capacity that
/// its demand on idle stations leaves: slots are held for longer where requests wait for something else meanwhile.
///
/// It counts as many operations as a plan counts requests, fewer where a payload is many bursts, and ignores what other
/// load would hold.
///
/// # Errors
/// Where the operation has no route, or the twin stalls.
///
/// ```
/// use offpath_plan::check::saturated;
/// use offpath_profile::{Library, SystemRequest};
/// use offpath_quantity::Bytes;
/// use offpath_route::{PathOperation, Router, Verb};
///
/// let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
/// let router = std::sync::Arc::new(Router::new(&system).unwrap());
/// let swap = PathOperation::new(Verb::CompareAndSwap, "client-soc".parse().unwrap(), Bytes::new(8));
/// let seen = saturated(&router, &swap, offpath_twin::Seed::new(1)).unwrap();
/// assert!(seen.is_less, "slots are held while words of one bank wait for each other");
/// ```
pub fn saturated(
    router: &Arc<Router>,
    operation: &PathOperation,
    seed: Seed,
) -> Result<Saturated, SaturatedError> {
    let route = Arc::new(router.route(operation)?);
    let (rate, binding) = route.demand(router).capacity(router).expect("a route asks its requester");
    let latency_s = route.latency(router).as_seconds();
    let bursts = bursts(route.payload);
    let counted = (COUNTED.requests / bursts).max(FEWEST);
    let allowed = allowed(matches!(router.kind(binding), StationKind::InflightSlots(_)));
    let seed =
        seed.child(operation.verb.name()).child(&operation.path.to_string()).index(operation.payload.get());
    let run = |in_flight: u32| -> Result<Saturated, LoadError> {
        let warm_up_s = f64::from(in_flight) / rate * ROUNDS + (latency_s * TIMES).min(counted / rate);
        let load = Load {
            mix: vec![(route.clone(), 1.0)],
            arrivals: Arrivals::Closed { in_flight },
            warm_up: Time::from_seconds(warm_up_s),
            window: Time::from_seconds(counted / rate).min(LONGEST_WINDOW),
            seed,
            faults: None,
        };
        let seen = offpath_twin::run(router, &load)?;
        let busy = seen.usage.iter().filter_map(|one| Some((one.station, one.fullest()?.1)));
        Ok(Saturated {
            in_flight,
            carried: seen.interval,
            is_less: seen.interval.high < rate * (1.0 - allowed),
            fullest: busy.max_by(|a, b| a.1.total_cmp(&b.1).then(b.0.cmp(&a.0))),
        })
    };
    let mut seen = run(enough(rate, latency_s, MOST_IN_FLIGHT))?;
    // As in a plan's run: few long transfers that share a link leave it idle until all are answered.
    let fills = |seen: &Saturated| seen.fullest.is_some_and(|(_, busy)| busy >= 1.0 - ALLOWED / 2.0);
    while seen.is_less && !fills(&seen) && seen.in_flight < MOST_IN_FLIGHT {
        let more = run((seen.in_flight * MORE_IN_FLIGHT).min(MOST_IN_FLIGHT))?;
        if more.carried.mean <= seen.carried.mean * (1.0 + SETTLED) {
            break;
        }
        seen = more;
    }
    Ok(seen)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::of_steps;
    use offpath_profile::{Library, SystemRequest};
    use offpath_quantity::Bytes;
    use offpath_route::Verb;

    /// A link that few long transfers leave idle is filled by more of them; slots that are held for longer are not.
    #[test]
    fn only_what_no_number_of_requests_reaches_is_called_less() {
        let seen = |verb: Verb, path: &str, bytes: u64, testbed: Option<&str>| {
            let request = SystemRequest { device: "bluefield2", testbed, ..SystemRequest::default() };
            let system = Library::builtin().load(&request).expect("it ships");
            let router = Arc::new(Router::new(&system).expect("it has routes"));
            let path = router.path(path).expect("the path is there");
            let operation = PathOperation::new(verb, path, Bytes::new(bytes));
            let seen = saturated(&router, &operation, Seed::new(1)).expect("the twin runs it");
            let is_slot = |station| matches!(router.kind(station), StationKind::InflightSlots(_));
            seen.is_less.then(|| seen.fullest.is_some_and(|(station, _)| is_slot(station)))
        };
        assert_eq!(seen(Verb::Read, "host-soc", 4096, None), None);
        assert_eq!(seen(Verb::Read, "host-soc", 16384, None), None);
        assert_eq!(seen(Verb::Write, "soc-host", 16384, None), None);
        assert_eq!(seen(Verb::Write, "host-client", 4096, Some("sun")), None);
        assert_eq!(seen(Verb::CompareAndSwap, "client-soc", 8, None), Some(true), "slots are held longer");
    }

    /// What a rare case asks for is run once, however many requests are counted usually; and a mix that has been run for long
    /// is given as it is.
    #[test]
    fn what_is_rare_is_run_once_and_settled_for_so_long() {
        let runs_of = |steps: &str| {
            let (_, ready) = of_steps(steps).expect("it is in order");
            let (runs, shares) = (MixRuns::of(&ready, Seed::new(1)), [("a".to_string(), 1.0)]);
            for counted in [2_000.0, 4_000.0] {
                let counted = Counted::requests(counted);
                runs.mix(&shares, (20e6, 3e-6), None, counted).expect("the twin runs it");
            }
            assert!(runs.run.get() > 6_000.0 && !runs.is_spent(), "{}", runs.run.get());
            runs.seen.borrow().len()
        };
        let rare = r#"{ read = "client-host", bytes = "64 B" },
                      { probability = 0.001, then = [{ wait = "1 us" }], otherwise = [] }"#;
        assert_eq!([runs_of(rare), runs_of(r#"{ read = "client-host", bytes = "64 B" }"#)], [1, 2]);
    }

    /// However few requests fit a window, one that does not tell is made longer by as much as it says.
    #[test]
    fn a_window_of_large_requests_grows() {
        let (_, ready) = of_steps(r#"{ read = "client-soc", bytes = "16 MiB" }"#).expect("it is in order");
        let window = |longer: f64| {
            let counted = Counted { longer, ..COUNTED };
            let loaded =
                run_mix(&ready, &[("a".into(), 1.0)], (1400.0, 1e-3), Some(400.0), counted, Seed::new(1));
            loaded.expect("the twin runs it").window.as_seconds()
        };
        let (short, long) = (window(1.0), window(4.0));
        assert!((long / short - 4.0).abs() < 1e-6, "{short} and {long}");
    }
}
