//! Why closed loops carry less than planned where they fill no station.

use super::compare::{AtRandom, Behind, Bunched, Fullest, Gap, fullest, own_router, too_many};
use super::run::{Counted, MixRuns, is_short, own};
use crate::observe::{Loaded, Meanwhile, ObserveError, RequestArrivals, Watched, load_watched};
use offpath_quantity::Time;
use offpath_route::Router;

/// Slices of the time in which as many requests end as are in flight. Those that stay together pass a station in a part
/// of that time, which slices have to tell from the rest.
const SLICES: f64 = 64.0;

/// Loads that are tried after the planned one less what is let pass, as shares of it: a user asks for tenths, and below
/// half of a plan nothing is left of it.
const LOADS: [f64; 5] = [0.9, 0.8, 0.7, 0.6, 0.5];

/// What is to be said of a saturated mix that differs from its plan: nothing where a station is full.
///
/// The same run is repeated and its fullest station watched: what is busy while that is idle keeps requests from it. And
/// requests that come at random tell what the stations have room for, since none waits for another one's end.
pub(super) fn look(
    runs: &MixRuns<'_>,
    shares: &[(String, f64)],
    sizes: (f64, f64),
    (loaded, gap): (&Loaded, &Gap),
    counted: f64,
) -> Result<Option<Bunched>, ObserveError> {
    let (Some(router), true) = (own_router(runs.ready), is_short(loaded, gap.planned_per_s)) else {
        return Ok(None);
    };
    let Some(Fullest { station, machine, .. }) = fullest(router, loaded) else { return Ok(None) };
    let Some(station) = router.station(&station) else { return Ok(None) };
    let slice = Time::from_seconds(f64::from(loaded.in_flight) / loaded.throughput.mean / SLICES);
    let watched = Watched { station, machine, slice };
    let (of, weights) = own(runs.ready, shares);
    let arrivals = RequestArrivals::Closed(loaded.in_flight);
    let (times, seed) = ((loaded.warm_up, loaded.window), runs.seed.child("load"));
    let (_, meanwhile) = load_watched(&of, &weights, arrivals, times, Some(watched), seed)?;
    let mut at_random = None;
    for share in [1.0 - gap.allowed].into_iter().chain(LOADS) {
        let load_per_s = share * gap.planned_per_s;
        let open = runs.mix(shares, sizes, Some(load_per_s), Counted::requests(counted))?;
        let arrived = open.arrived_per_s.unwrap_or(load_per_s);
        let is_told = too_many(load_per_s * sizes.1, open.mean_in_flight).is_none();
        if is_told && (open.throughput.mean / arrived - 1.0).abs() <= gap.allowed {
            at_random = Some(AtRandom { load_per_s, mean_in_flight: open.mean_in_flight });
            break;
        }
    }
    Ok(Some(Bunched { behind: busiest(&meanwhile, router), at_random }))
}

/// The busiest of what was seen, the first by name of equals, where it is busy for most of the time and not for as much
/// of all time: what is as busy whenever one looks keeps nobody from anything.
fn busiest(meanwhile: &[Meanwhile], router: &Router) -> Option<Behind> {
    let first = |a: &&Meanwhile, b: &&Meanwhile| (&b.station, b.machine).cmp(&(&a.station, a.machine));
    let busiest = meanwhile.iter().max_by(|a, b| a.busy.total_cmp(&b.busy).then_with(|| first(a, b)))?;
    let Meanwhile { station, machine, busy, in_all } = busiest;
    let info = &router.stations()[router.station(station)?.index()];
    let station = Fullest {
        station: station.clone(),
        meaning: info.meaning.to_string(),
        machine: *machine,
        machines: info.instances,
        busy: *busy,
    };
    (*busy > 0.5 && busy > in_all).then_some(Behind { station, in_all: *in_all })
}
