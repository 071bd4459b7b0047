//! Runs of a mix on the loaded twin: with how many requests in flight, and over how long a window.

use super::SETTLED;
use super::compare::{ALLOWED, crowded};
use crate::observe::{Arrivals, Loaded, RunError, load};
use crate::planner::Ready;
use crate::program::Extremes;
use offpath_quantity::{Bytes, Time};
use offpath_twin::Seed;

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
    pub(super) const fn requests(requests: f64) -> Counted {
        Counted { requests, phase: 0.0 }
    }
}

/// What a plan's run counts.
pub(super) const COUNTED: Counted = Counted::requests(24_000.0);

/// What a run counts of which nothing is read but how long slots are held: that is a mean over all of them, and varies
/// less than a rate.
pub(super) const HELD: Counted = Counted::requests(8_000.0);

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
const BURST: f64 = 16_384.0;

/// Times that a rare case is taken in a window, and longest requests that fit it, for the window to tell.
pub(super) const TIMES: f64 = 8.0;

/// Requests of a window over those that are counted usually, at most.
const MOST_LONGER: f64 = 16.0;

/// The rarest case of a mix and its longest request.
pub(super) fn extremes(ready: &[Ready], shares: &[(String, f64)]) -> Extremes {
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

pub(super) fn own<'r>(ready: &'r [Ready], shares: &[(String, f64)]) -> (Vec<&'r Ready>, Vec<f64>) {
    shares
        .iter()
        .filter_map(|(name, share)| {
            ready.iter().find(|one| one.alternative.name == *name).map(|one| (one, *share))
        })
        .unzip()
}

/// Most requests in flight that a closed loop gets.
pub(super) const MOST_IN_FLIGHT: u32 = 4096;

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
    // However long a run is that has fewer requests under way than the mix takes, it shows nothing of it.
    let is_blind = offered.is_none() && crowded(capacity, latency_s).is_some();
    let counted = if is_blind { fewest } else { counted.max(told) };
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
