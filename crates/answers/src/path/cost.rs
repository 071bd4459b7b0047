//! What an operation costs, computed.

use super::{
    BandAnswer, DemandAnswer, HeldAnswer, PacketsAnswer, PathAnswer, PointAnswer, PublishedAnswer,
    RangedAnswer, RungAnswer, SEED, TermAnswer,
};
use crate::SCHEMA_VERSION;
use crate::rows::rows;
use crate::system::SystemAnswer;
use offpath_evidence::Row;
use offpath_plan::Ranged;
use offpath_plan::check::Saturated;
use offpath_plan::known::{Known, MovedBy, known};
use offpath_profile::{Cache, Endpoint, Library, Machine, System, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{
    AddressSpread, Carrier, Demand, Path, PathOperation, Posting, RouteError, Router, StationId, StationKind,
    Verb,
};
use offpath_terminal::options::{doorbells, posting_name};
use offpath_terminal::output::round;
use offpath_twin::Seed;
use std::collections::BTreeMap;

/// Latency and capacity of an operation.
struct Cost {
    latency_us: f64,
    per_second: f64,
    binding: StationId,
}

fn cost(router: &Router, operation: &PathOperation) -> Result<Cost, RouteError> {
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

/// The published rows that may have measured operations of a system: all where it is the card as it ships, in its own
/// testbed and mode.
pub(super) fn rows_about(system: &System) -> Vec<Row> {
    let request = SystemRequest { device: &system.device, ..SystemRequest::default() };
    let is_as_shipped = Library::builtin().load(&request).is_ok_and(|shipped| shipped == *system);
    if is_as_shipped { rows() } else { Vec::new() }
}

/// Those of `rows` that measured an operation of a system.
fn published(system: &System, operation: &PathOperation, rows: &[Row]) -> Vec<PublishedAnswer> {
    let is_plain = operation.posting == Posting::Single && operation.access == AddressSpread::UNIFORM;
    let (path, verb) = (operation.path.to_string(), operation.verb.to_string());
    let measured = rows.iter().filter(|_| is_plain).filter_map(|row| {
        let claim = row.published?;
        let is_about = row.experiment.as_ref()?.is_of(&system.device, &path, &verb, operation.payload);
        is_about.then(|| PublishedAnswer {
            published: format!("{claim} {}", row.unit),
            row: row.id.clone(),
            source: row.source.clone(),
            states: row.states.clone(),
        })
    });
    measured.collect()
}

impl PathAnswer {
    pub(super) fn of(
        router: &Router,
        operation: &PathOperation,
        (known, seen, rows): (&Known, &Saturated, &[Row]),
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
            let back = router.route(&PathOperation { path: reply, ..operation.clone() })?.latency(router);
            Some((unloaded.latency + back).as_us())
        } else {
            None
        };
        let ranged_numbers: Vec<RangedAnswer> = known.moved_by.iter().map(RangedAnswer::of).collect();
        let ends_us = [known.latency_s.range_80.0, known.latency_s.range_80.1].map(|end| end * 1e6);
        let ends_mreq_per_s = [known.rate.range_80.0, known.rate.range_80.1].map(|end| end / 1e6);
        let most = |span: fn(&RangedAnswer) -> f64| {
            let moved = ranged_numbers.iter().filter(|number| span(number) > 0.0);
            moved.max_by(|a, b| span(a).total_cmp(&span(b))).map(|number| number.name.clone())
        };
        let ledger = route.ledger(router);
        let payload = route.payload;
        let carrier = router.carrier(operation.verb, &operation.path)?;
        Ok(PathAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            mode_note: system.mode_note(),
            path: operation.path.to_string(),
            verb: operation.verb.to_string(),
            payload_bytes: payload.get(),
            posting: posting_name(operation.posting),
            posted: match carrier {
                Carrier::Nic => doorbells(&posting_name(operation.posting)),
                Carrier::Engine(_) => "posted to the engine".to_string(),
                Carrier::Processor => "by the processor itself".to_string(),
            },
            range_bytes: match operation.access.range {
                Some(range) => range.get(),
                None => responder(router, operation).1.memory.capacity.get(),
            },
            range_arrived: operation.access.arrived,
            published: published(system, operation, rows),
            latency_ends: match carrier {
                Carrier::Nic if route.ends_at_responder => {
                    "one way: the responder's program starts to handle the message"
                }
                Carrier::Nic => "the requester's program sees the completion",
                Carrier::Engine(_) => "the engine's program sees that the engine is done",
                Carrier::Processor if operation.verb == Verb::Forward => "the packet has left the port",
                Carrier::Processor => "the requester's processor has moved the bytes",
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
            interval_draws: known.draws,
            capacity_most_moved_by: most(|r| {
                (r.capacity_at_high_mreq_per_s - r.capacity_at_low_mreq_per_s).abs()
            }),
            capacity_gbit_per_s: gbit_per_s(round(capacity_mreq_per_s), payload),
            capacity_low_80_gbit_per_s: gbit_per_s(round(ends_mreq_per_s[0]), payload),
            capacity_high_80_gbit_per_s: gbit_per_s(round(ends_mreq_per_s[1]), payload),
            twin_throughput_mreq_per_s: seen.carried.mean / 1e6,
            twin_throughput_ci95_low_mreq_per_s: seen.carried.low / 1e6,
            twin_throughput_ci95_high_mreq_per_s: seen.carried.high / 1e6,
            twin_in_flight: seen.in_flight,
            twin_carries_less: seen.is_less,
            twin_fullest_station: seen.fullest.map(|(station, _)| name(station)),
            twin_fullest_utilization: seen.fullest.map(|(_, busy)| busy),
            twin_fills_slots: seen
                .fullest
                .is_some_and(|(station, _)| matches!(router.kind(station), StationKind::InflightSlots(_))),
            binding_station: name(binding),
            binding_station_meaning: router.stations()[binding.index()].meaning,
            slots_held: unloaded
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
            curve: curve(router, operation)?,
            over_payloads: if bands { over_payloads(router, operation)? } else { Vec::new() },
            ladder: match carrier {
                Carrier::Processor if operation.verb != Verb::Forward => ladder(router, operation)?,
                _ => Vec::new(),
            },
            topology: None,
        })
    }
}

/// The machine and endpoint that answer a routed operation.
fn responder<'r>(router: &'r Router, operation: &PathOperation) -> (&'r Machine, &'r Endpoint) {
    router.system().endpoint(&operation.path.responder).expect("a route has both its ends")
}

/// A processor's own loads or stores over working sets: from the access's own bytes over powers of four up to the memory's size,
/// and what each cache on the way holds.
fn ladder(router: &Router, operation: &PathOperation) -> Result<Vec<RungAnswer>, RouteError> {
    let (machine, responder) = responder(router, operation);
    let capacity = responder.memory.capacity;
    // The caches on the way, and of the processor whose last one stands before the memory that one.
    let way = machine.reach(&responder.processor.name, &responder.memory.name);
    let behind = way.and_then(|way| machine.last_level(way)).map(|(_, cache, _)| cache);
    let through = way.iter().flat_map(|way| &way.through).map(|name| machine.cache(name));
    let caches = through.chain(behind);
    let powers = (10..50).step_by(2).map(|power| Bytes::new(1 << power));
    let held = |cache: &Cache| if operation.access.arrived { cache.arrivals } else { Some(cache.capacity) };
    let mut ranges: Vec<Bytes> = powers.chain(caches.filter_map(held)).collect();
    // An access lies within its working set.
    let least = operation.payload.max(Bytes::new(1 << 10));
    ranges.retain(|range| least < *range && *range < capacity);
    ranges.extend([least.min(capacity), capacity]);
    ranges.sort_unstable();
    ranges.dedup();
    let over = |payload: Bytes| {
        ranges.iter().map(move |range| {
            let access = AddressSpread { range: Some(*range), ..operation.access };
            PathOperation { payload, ..operation.clone() }.accessing(access)
        })
    };
    let payload = operation.payload;
    let operations: Vec<PathOperation> = over(Bytes::new(8)).chain(over(payload)).collect();
    let mut known = known(router, &operations, Seed::new(SEED))?;
    let (chased, moved) = known.split_at_mut(ranges.len());
    [&mut *chased, &mut *moved].into_iter().for_each(narrow);
    let mut rungs = Vec::with_capacity(ranges.len());
    for ((range, operation), (chased, moved)) in
        ranges.iter().zip(over(payload)).zip(chased.iter().zip(moved))
    {
        let ends = |figure: &Ranged| [figure.value, figure.range_80.0, figure.range_80.1];
        let [latency_ns, latency_low_80_ns, latency_high_80_ns] = ends(&chased.latency_s).map(|s| s * 1e9);
        let bits = payload.get() as f64 * 8.0;
        // What takes longest carries least.
        let [thread, high, low] = ends(&moved.latency_s).map(|seconds| bits / seconds / 1e9);
        let [all, all_low, all_high] = ends(&moved.rate).map(|per_second| bits * per_second / 1e9);
        let binding = cost(router, &operation)?.binding;
        rungs.push(RungAnswer {
            range_bytes: range.get(),
            latency_ns,
            latency_low_80_ns,
            latency_high_80_ns,
            thread_gbit_per_s: thread,
            thread_low_80_gbit_per_s: low,
            thread_high_80_gbit_per_s: high,
            capacity_gbit_per_s: all,
            capacity_low_80_gbit_per_s: all_low,
            capacity_high_80_gbit_per_s: all_high,
            binding_station: router.stations()[binding.index()].name.clone(),
        });
    }
    Ok(rungs)
}

/// Narrows what is known of the latency over working sets that grow. None is quicker than a smaller one in any draw, so that a
/// smaller one's lower end and a larger one's upper end bound it too, whatever errors widen it by.
fn narrow(rungs: &mut [Known]) {
    let mut least = f64::NEG_INFINITY;
    for rung in rungs.iter_mut() {
        least = rung.latency_s.range_80.0.max(least);
        rung.latency_s.range_80.0 = least;
    }
    let mut most = f64::INFINITY;
    for rung in rungs.iter_mut().rev() {
        most = rung.latency_s.range_80.1.min(most);
        rung.latency_s.range_80.1 = most;
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

impl RangedAnswer {
    fn of(number: &MovedBy) -> RangedAnswer {
        let [latency_at_low_us, latency_at_high_us] =
            number.latency_s.map(|seconds| Time::from_seconds(seconds).as_us());
        // What a number moves by less than is shown, it does not move.
        let [low, high] = number.rate.map(|per_second| round(per_second / 1e6));
        RangedAnswer {
            name: number.names[0].clone(),
            same_number: number.names[1..].to_vec(),
            low: number.low.to_string(),
            high: number.high.to_string(),
            latency_at_low_us,
            latency_at_high_us,
            capacity_at_low_mreq_per_s: low,
            capacity_at_high_mreq_per_s: high,
        }
    }
}

/// The sizes of the curve: 0 B and the powers of two up to 16 MiB.
fn sizes() -> impl Iterator<Item = Bytes> {
    std::iter::once(Bytes::ZERO).chain((0..=24).map(|power| Bytes::new(1 << power)))
}

fn curve(router: &Router, operation: &PathOperation) -> Result<Vec<PointAnswer>, RouteError> {
    let mut points = Vec::new();
    // An atomic always moves 8 bytes, so it has no curve.
    for payload in sizes().take_while(|_| !operation.verb.is_atomic()) {
        let cost = match cost(router, &PathOperation { payload, ..operation.clone() }) {
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

/// Every payload's cost and how well it is known.
fn over_payloads(router: &Router, operation: &PathOperation) -> Result<Vec<BandAnswer>, RouteError> {
    let mut operations = Vec::new();
    // An atomic always moves 8 bytes.
    for payload in sizes().filter(|payload| !operation.verb.is_atomic() || payload.get() == 8) {
        let sized = PathOperation { payload, ..operation.clone() };
        match router.route(&sized) {
            Ok(_) => operations.push(sized),
            // A datagram ends at the network's MTU.
            Err(RouteError::PayloadTooLarge { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    let known = known(router, &operations, Seed::new(SEED))?;
    let band = |(operation, known): (&PathOperation, &Known)| {
        let ends = |figure: &Ranged| [figure.value, figure.range_80.0, figure.range_80.1];
        let [latency_us, latency_low_80_us, latency_high_80_us] = ends(&known.latency_s).map(|s| s * 1e6);
        let [capacity_mreq_per_s, capacity_low_80_mreq_per_s, capacity_high_80_mreq_per_s] =
            ends(&known.rate).map(|per_second| per_second / 1e6);
        let gbit = |mreq_per_s| gbit_per_s(mreq_per_s, operation.payload);
        BandAnswer {
            payload_bytes: operation.payload.get(),
            latency_us,
            latency_low_80_us,
            latency_high_80_us,
            capacity_mreq_per_s,
            capacity_low_80_mreq_per_s,
            capacity_high_80_mreq_per_s,
            capacity_gbit_per_s: gbit(capacity_mreq_per_s),
            capacity_low_80_gbit_per_s: gbit(capacity_low_80_mreq_per_s),
            capacity_high_80_gbit_per_s: gbit(capacity_high_80_mreq_per_s),
        }
    };
    Ok(operations.iter().zip(&known).map(band).collect())
}
