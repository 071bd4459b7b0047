//! What an operation costs, computed.

use super::{
    BandAnswer, DemandAnswer, HeldAnswer, PacketsAnswer, PathAnswer, PointAnswer, RangedAnswer, TermAnswer,
};
use crate::SCHEMA_VERSION;
use crate::system::SystemAnswer;
use offpath_plan::known::Known;
use offpath_quantity::{Bytes, Quantity};
use offpath_route::{Demand, Operation, Path, RouteError, Router, StationId};
use offpath_terminal::options::posting_name;
use offpath_terminal::output::round;
use std::collections::BTreeMap;

/// Latency and capacity of an operation.
struct Cost {
    latency_us: f64,
    per_second: f64,
    binding: StationId,
}

fn cost(router: &Router, operation: &Operation) -> Result<Cost, RouteError> {
    let route = router.route(operation)?;
    let (per_second, binding) = capacity(&route.demand(router), router);
    Ok(Cost { latency_us: route.latency(router).as_us(), per_second, binding })
}

fn capacity(demand: &Demand, router: &Router) -> (f64, StationId) {
    demand.capacity(router).expect("a route asks its requester's processor")
}

fn gbit_per_s(mreq_per_s: f64, payload: Bytes) -> f64 {
    round(mreq_per_s * payload.get() as f64 * 8.0 / 1e3)
}

impl PathAnswer {
    pub(super) fn of(
        router: &Router,
        operation: &Operation,
        known: &Known,
        bands: bool,
    ) -> Result<PathAnswer, RouteError> {
        let system = router.system();
        let route = router.route(operation)?;
        let unloaded = route.unloaded(router);
        let demand = route.demand(router);
        let (per_second, binding) = capacity(&demand, router);
        let name = |station: StationId| router.stations()[station.index()].name.clone();
        let latency_us = unloaded.latency.as_us();
        let capacity_mreq_per_s = per_second / 1e6;
        let echo_latency_us = if operation.verb.is_message() {
            let Path { requester, responder, engine } = operation.path.clone();
            let reply = Path { requester: responder, responder: requester, engine };
            let back = router.route(&Operation { path: reply, ..operation.clone() })?.latency(router);
            Some((unloaded.latency + back).as_us())
        } else {
            None
        };
        let ranged_numbers = ranged(router, operation)?;
        let ends_us = [known.latency_s.range_80.0, known.latency_s.range_80.1].map(|end| end * 1e6);
        let ends_mreq_per_s = [known.rate.range_80.0, known.rate.range_80.1].map(|end| end / 1e6);
        let most = |span: fn(&RangedAnswer) -> f64| {
            let moved = ranged_numbers.iter().filter(|number| span(number) > 0.0);
            moved.max_by(|a, b| span(a).total_cmp(&span(b))).map(|number| number.name.clone())
        };
        let ledger = route.ledger(router);
        let payload = route.payload;
        Ok(PathAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            mode_note: system.mode_note(),
            path: operation.path.to_string(),
            verb: operation.verb.to_string(),
            payload_bytes: payload.get(),
            posting: posting_name(operation.posting),
            latency_ends: if route.ends_at_responder {
                "one way: the responder's program starts to handle the message"
            } else {
                "the requester's program sees the completion"
            },
            latency_us,
            latency_low_80_us: ends_us[0],
            latency_high_80_us: ends_us[1],
            latency_basis: known.latency_basis.name(),
            latency_most_moved_by: most(|r| (r.latency_at_high_us - r.latency_at_low_us).abs()),
            echo_latency_us,
            terms: unloaded
                .terms
                .iter()
                .map(|term| TermAnswer {
                    label: term.label.clone(),
                    station: term.station.map(name),
                    time_ns: term.time.as_ns(),
                })
                .collect(),
            capacity_mreq_per_s,
            capacity_low_80_mreq_per_s: ends_mreq_per_s[0],
            capacity_high_80_mreq_per_s: ends_mreq_per_s[1],
            capacity_basis: known.rate_basis.name(),
            capacity_most_moved_by: most(|r| {
                (r.capacity_at_high_mreq_per_s - r.capacity_at_low_mreq_per_s).abs()
            }),
            capacity_gbit_per_s: gbit_per_s(round(capacity_mreq_per_s), payload),
            capacity_low_80_gbit_per_s: gbit_per_s(round(ends_mreq_per_s[0]), payload),
            capacity_high_80_gbit_per_s: gbit_per_s(round(ends_mreq_per_s[1]), payload),
            binding_station: name(binding),
            binding_station_meaning: router.stations()[binding.index()].meaning,
            contexts_held: unloaded
                .held
                .iter()
                .map(|(station, time)| HeldAnswer { station: name(*station), time_ns: time.as_ns() })
                .collect(),
            demand: demands(&demand, per_second, router),
            pcie_packets: system
                .machines
                .iter()
                .flat_map(|machine| machine.links.iter().map(move |link| (machine, link)))
                .filter(|(_, link)| link.pcie.is_some())
                .map(|(machine, link)| (machine, link, ledger.link(&link.name)))
                // The card's own links are always there, other machines' where the path passes them.
                .filter(|(machine, _, packets)| machine.prefix.is_empty() || *packets > 0)
                .map(|(_, link, packets)| (link.name.clone(), packets))
                .collect::<BTreeMap<String, u64>>()
                .into_iter()
                .collect(),
            links: ledger
                .links
                .iter()
                .map(|(station, packets)| PacketsAnswer {
                    station: station.clone(),
                    data_packets: packets.data,
                    payload_bytes: packets.payload.get(),
                    framed_bytes: packets.framed.get(),
                })
                .collect(),
            ranged_numbers,
            // An atomic always moves 8 bytes, so it has no curve.
            curve: match operation.verb.is_atomic() {
                true => Vec::new(),
                false => curve(router, operation)?,
            },
            over_payloads: if bands { over_payloads(router, operation)? } else { Vec::new() },
            topology: None,
        })
    }
}

/// The demand by station, the one that binds first.
fn demands(demand: &Demand, per_second: f64, router: &Router) -> Vec<DemandAnswer> {
    let mut stations: Vec<StationId> = demand.time.keys().copied().collect();
    stations.extend(demand.requests.keys().map(|(station, _)| *station));
    stations.sort_unstable();
    stations.dedup();
    let mut all: Vec<DemandAnswer> = stations
        .into_iter()
        .map(|station| {
            // What this station alone would carry says how busy it is at the capacity of all.
            let mut alone = Demand::default();
            alone.time.extend(demand.time.get_key_value(&station));
            alone.banks.extend(demand.banks.get_key_value(&station));
            alone.requests.extend(demand.requests.iter().filter(|((of, _), _)| *of == station));
            let requests: u64 = alone.requests.values().sum();
            let at = &router.stations()[station.index()];
            DemandAnswer {
                station: at.name.clone(),
                meaning: at.meaning,
                time_ns: demand.time.get(&station).map(|time| time.as_ns()),
                requests: (requests > 0).then_some(requests),
                utilization_at_capacity: per_second / capacity(&alone, router).0,
            }
        })
        .collect();
    all.sort_by(|a, b| b.utilization_at_capacity.total_cmp(&a.utilization_at_capacity));
    all
}

/// What each number that is only known as a range does to the answer, one at a time; those that do
/// nothing are left out.
fn ranged(router: &Router, operation: &Operation) -> Result<Vec<RangedAnswer>, RouteError> {
    let system = router.system();
    let plain = cost(router, operation)?;
    let mut all = Vec::new();
    for (name, number) in &system.numbers {
        if number.low.is_none() && number.high.is_none() {
            continue;
        }
        let at = |end: Option<Quantity>| -> Result<Cost, RouteError> {
            let value = end.unwrap_or(number.value);
            // An end outside what loading accepts cannot be the card's value, so it moves nothing.
            match system.with(name, value) {
                Ok(changed) => cost(&Router::new(&changed)?, operation),
                Err(_) => cost(router, operation),
            }
        };
        let (low, high) = (at(number.low)?, at(number.high)?);
        let moved = |end: &Cost| end.latency_us != plain.latency_us || end.per_second != plain.per_second;
        if moved(&low) || moved(&high) {
            all.push(RangedAnswer {
                name: name.clone(),
                low: number.low.unwrap_or(number.value).to_string(),
                high: number.high.unwrap_or(number.value).to_string(),
                latency_at_low_us: low.latency_us,
                latency_at_high_us: high.latency_us,
                capacity_at_low_mreq_per_s: low.per_second / 1e6,
                capacity_at_high_mreq_per_s: high.per_second / 1e6,
            });
        }
    }
    Ok(all)
}

/// The sizes of the curve: 0 B and the powers of two up to 16 MiB.
fn sizes() -> impl Iterator<Item = Bytes> {
    std::iter::once(Bytes::ZERO).chain((0..=24).map(|power| Bytes::new(1 << power)))
}

fn curve(router: &Router, operation: &Operation) -> Result<Vec<PointAnswer>, RouteError> {
    let mut points = Vec::new();
    // An atomic always moves 8 bytes.
    for payload in sizes().filter(|payload| !operation.verb.is_atomic() || payload.get() == 8) {
        let cost = match cost(router, &Operation { payload, ..operation.clone() }) {
            Ok(cost) => cost,
            // A datagram ends at the network's MTU.
            Err(RouteError::PayloadTooLarge { .. }) => break,
            Err(error) => return Err(error),
        };
        let capacity_mreq_per_s = cost.per_second / 1e6;
        points.push(PointAnswer {
            payload_bytes: payload.get(),
            latency_us: cost.latency_us,
            capacity_mreq_per_s,
            capacity_gbit_per_s: gbit_per_s(round(capacity_mreq_per_s), payload),
            binding_station: router.stations()[cost.binding.index()].name.clone(),
        });
    }
    Ok(points)
}

/// Every payload's cost, then again with each uncertain number at either end of its range.
fn over_payloads(router: &Router, operation: &Operation) -> Result<Vec<BandAnswer>, RouteError> {
    let band = |point: PointAnswer| BandAnswer {
        latency_low_us: point.latency_us,
        latency_high_us: point.latency_us,
        capacity_low_mreq_per_s: point.capacity_mreq_per_s,
        capacity_high_mreq_per_s: point.capacity_mreq_per_s,
        capacity_low_gbit_per_s: 0.0,
        capacity_high_gbit_per_s: 0.0,
        point,
    };
    let mut bands: Vec<BandAnswer> = curve(router, operation)?.into_iter().map(band).collect();
    let system = router.system();
    for (name, number) in &system.numbers {
        for value in [number.low, number.high].into_iter().flatten() {
            // An end outside what loading accepts cannot be the card's value, so it moves nothing.
            let Ok(changed) = system.with(name, value) else { continue };
            let router = Router::new(&changed)?;
            for band in &mut bands {
                let payload = Bytes::new(band.point.payload_bytes);
                let Ok(cost) = cost(&router, &Operation { payload, ..operation.clone() }) else { continue };
                let capacity_mreq_per_s = cost.per_second / 1e6;
                band.latency_low_us = band.latency_low_us.min(cost.latency_us);
                band.latency_high_us = band.latency_high_us.max(cost.latency_us);
                band.capacity_low_mreq_per_s = band.capacity_low_mreq_per_s.min(capacity_mreq_per_s);
                band.capacity_high_mreq_per_s = band.capacity_high_mreq_per_s.max(capacity_mreq_per_s);
            }
        }
    }
    for band in &mut bands {
        let payload = Bytes::new(band.point.payload_bytes);
        band.capacity_low_gbit_per_s = gbit_per_s(band.capacity_low_mreq_per_s, payload);
        band.capacity_high_gbit_per_s = gbit_per_s(band.capacity_high_mreq_per_s, payload);
    }
    Ok(bands)
}
