//! The three readings of a route agree, on profiles that nobody has seen: generated from a seed,
//! written as TOML and loaded as a user's files are.

mod generated;

use generated::{Draw, system};
use offpath_quantity::{Bytes, Time};
use offpath_route::{
    AddressSpread, POSTED_CREDIT, PathOperation, Posting, Reader, Route, Router, StationId, StationKind,
    VERBS, Verb, Visit,
};
use offpath_twin::{Arrivals, EventEngine, Load, LoadObservation, Occurrence, Seed, Snapshot, Tag, run};
use std::sync::Arc;

/// The first profile and how many are drawn: `OFFPATH_PROFILES=5000` or `OFFPATH_PROFILES=5000@200`
/// draws 5,000, the latter from the 200th on; `few` otherwise.
fn drawn(few: u64) -> (u64, u64) {
    let Ok(text) = std::env::var("OFFPATH_PROFILES") else { return (0, few) };
    let (count, first) = text.split_once('@').unwrap_or((&text, "0"));
    let number = |text: &str| {
        text.parse().unwrap_or_else(|_| {
            panic!("OFFPATH_PROFILES={text}: expected a number of profiles, as in 5000 or 5000@200")
        })
    };
    (number(first), number(count))
}

/// The greatest share by which a window may show more than the capacity: windows and demands are whole
/// picoseconds, of at least 50 operations and some of them of a few nanoseconds.
const ABOVE: f64 = 1e-4;

/// The most that fits into one packet, of a verb that is one.
fn longest(router: &Router, verb: Verb) -> Option<u64> {
    match verb {
        Verb::SendDatagram => Some(router.system().network.mtu.get()),
        // A jumbo frame.
        Verb::Forward => Some(9216),
        _ => None,
    }
}

fn operation(router: &Router, draw: &mut Draw) -> PathOperation {
    let path = generated::path(router, draw);
    let verb = draw.one_of(&router.verbs(&path));
    let most = longest(router, verb).unwrap_or_else(|| 1 << draw.within(0, 19));
    let payload = draw.one_of(&[0, 1, 64, 64, 512, 4096, most]).min(most);
    let posting = if draw.chance(30) { Posting::Batch(draw.within(1, 64) as u32) } else { Posting::Single };
    let mut operation = PathOperation::new(verb, path, Bytes::new(payload)).posted(posting);
    if draw.chance(20) {
        let range = Some(Bytes::new(1 << draw.within(9, 20)));
        operation = operation.accessing(AddressSpread {
            range,
            arrived: false,
            hottest: draw.one_of(&[0.0, 0.1, 0.5]),
        });
    }
    operation
}

/// Latencies of `count` operations one after another, each on stations that are idle again, and the stations
/// after them.
fn idle_twin(router: &Arc<Router>, route: &Arc<Route>, count: u64) -> (Vec<Time>, Snapshot) {
    let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
    let mut engine = EventEngine::new(router.clone(), Seed::new(1));
    let mut latencies = Vec::new();
    for number in 0..count {
        let start = engine.now();
        engine.start(Tag(number), route.clone(), instances.clone(), number % 2 == 1);
        while let Some(occurrence) = engine.next() {
            if let Occurrence::Done { tag } = occurrence {
                assert_eq!(tag, Tag(number));
                latencies.push(engine.now() - start);
            }
        }
        // Posted writes may still be on their way when their operation is over.
        engine.timer(Tag(u64::MAX), engine.now() + Time::from_ms(1));
        assert_eq!(engine.next(), Some(Occurrence::Timer { tag: Tag(u64::MAX) }));
    }
    let stations = engine.snapshot();
    (latencies, stations)
}

/// Where stations served something else than `count` times the demand.
fn work_and_demand_differ(router: &Router, route: &Route, count: u64, after: &Snapshot) -> Vec<String> {
    let demand = route.demand(router);
    let mut wrong = Vec::new();
    for (index, station) in router.stations().iter().enumerate() {
        let id = router.station(&station.name).expect("every station has its name");
        let (asked, served) = if matches!(station.kind, StationKind::Pool { .. }) {
            let requests: u64 =
                demand.requests.iter().filter(|((pool, _), _)| *pool == id).map(|(_, count)| *count).sum();
            ((requests * count) as f64, after.passed[index])
        } else {
            let time = demand.time.get(&id).copied().unwrap_or_default();
            (time.times(count).ps() as f64, after.held[index].ps() as f64)
        };
        if (asked - served).abs() > 1e-6 {
            wrong.push(format!("{} is asked for {asked} and served {served}", station.name));
        }
    }
    wrong
}

/// How far the rest of a route could carry more than its capacity, as a factor: what the stations but the
/// one that binds allow, and what the requests in flight can fill.
fn slack(router: &Router, route: &Route, (capacity, station): (f64, StationId), in_flight: f64) -> f64 {
    let mut others = route.demand(router);
    let is_slots = |station: &StationId| matches!(router.kind(*station), StationKind::InflightSlots(_));
    others.time.retain(|other, _| *other != station && !(is_slots(&station) && is_slots(other)));
    others.requests.retain(|(pool, _), _| *pool != station);
    let others = others.capacity(router).map_or(f64::INFINITY, |(most, _)| most / capacity);
    others.min(in_flight / (capacity * route.latency(router).as_seconds()))
}

/// Requests in flight that saturate by Little's law, and the load that shows it.
///
/// As many as are in flight on an idle system at the capacity would do, were they evenly spread. All
/// begin together, though, and may stay together: then they pass the station that binds in turns, which
/// last as long as it needs for all of them, and it may be idle for a latency in each. Of `times` as many
/// as Little's law asks for, one turn in `times` is lost at most.
fn saturating(
    router: &Router,
    route: &Route,
    (capacity, station): (f64, StationId),
    times: f64,
) -> (u32, Load) {
    let latency = route.latency(router);
    let mut in_flight = times * capacity * latency.as_seconds() + 64.0;
    let demand = route.demand(router);
    let is_even = |station: StationId| match router.kind(station) {
        StationKind::Banks(banks) => {
            demand.banks.get(&station).is_none_or(|hottest| hottest * *banks as f64 <= 1.0 + 1e-9)
        }
        _ => false,
    };
    for (station, time) in &demand.time {
        // Chance must not leave a bank idle where banks that are reached evenly are what binds.
        let servers = router.stations()[station.index()].servers() as f64;
        if is_even(*station) && capacity * time.as_seconds() > 0.5 * servers {
            in_flight += 50.0 * servers;
        }
    }
    // Ends just outside the window are at most those of one turn: of ten, and where it has to be told more
    // closely of as many as run in a few seconds.
    let operations = (times * in_flight).min(400_000.0).max(10.0 * in_flight).max(2000.0);
    // Until all requests have gathered before the station that binds, others carry more than it does, and
    // what they carry more gathers there. Then each request has to have waited in the whole queue once. Of a
    // hot bank both take the longer, the fewer of all requests go to it.
    let more = slack(router, route, (capacity, station), in_flight) - 1.0;
    let share = match demand.banks.get(&station) {
        Some(hottest) if !is_even(station) => *hottest,
        _ => 1.0,
    };
    let gathered = if more > 0.02 { 1.0 / more } else { 0.0 };
    let warm_up = 2.0 + (2.0 + gathered) / share;
    let in_flight = in_flight.ceil() as u32;
    // What is posted is over before its station has served it, until that is so far behind that it holds back.
    let is_posted = |visit: &Visit| match visit {
        Visit::Serve { station: of, detached, .. } => *detached && *of == station,
        _ => false,
    };
    let behind = match route.visits.iter().any(is_posted) {
        true => POSTED_CREDIT.scaled(1.0 + gathered),
        false => Time::ZERO,
    };
    let load = Load {
        mix: vec![(Arc::new(route.clone()), 1.0)],
        arrivals: Arrivals::Closed { in_flight },
        warm_up: Time::from_ps((warm_up * f64::from(in_flight) / capacity * 1e12) as u64)
            + latency.times(2)
            + behind,
        window: Time::from_ps((operations / capacity * 1e12) as u64),
        seed: Seed::new(7),
        faults: None,
    };
    (in_flight, load)
}

/// The in-flight slots that were full, if any: of whoever holds one and waits inside, they count the wait, so
/// that fewer requests reach what binds than it could serve.
fn full_slots(router: &Router, observed: &LoadObservation) -> Option<f64> {
    let held = observed
        .usage
        .iter()
        .filter(|usage| matches!(router.kind(usage.station), StationKind::InflightSlots(_)));
    let fullest = held.filter_map(|usage| usage.fullest()).map(|(_, share)| share).fold(0.0, f64::max);
    (fullest > 0.98).then_some(fullest)
}

/// The least that a load carries where in-flight slots are full: those who hold one are a closed loop of so many through
/// the other stations, and wait at each for no more than all others that hold one, as in the balanced bound of
/// closed queueing networks.
fn least_through_slots(router: &Router, route: &Route) -> f64 {
    let mut others = route.demand(router);
    let mut held: Vec<(f64, f64)> = Vec::new();
    others.time.retain(|station, time| {
        let is_slots = matches!(router.kind(*station), StationKind::InflightSlots(_));
        if is_slots {
            let servers = router.stations()[station.index()].servers() as f64;
            held.push((servers, time.as_seconds()));
        }
        !is_slots
    });
    let others = others.capacity(router).map_or(f64::INFINITY, |(most, _)| most);
    let each = held
        .into_iter()
        .map(|(inflight_slots, hold)| inflight_slots / (hold + (inflight_slots - 1.0) / others));
    each.fold(f64::INFINITY, f64::min)
}

/// The share by which chance may put fewer requests on the hottest bank than its share: four standard
/// deviations. Where all banks are equally likely none is above the rest, and the sum of all decides.
fn luck(router: &Router, route: &Route, station: StationId, observed: &LoadObservation) -> f64 {
    match (router.kind(station), route.demand(router).banks.get(&station)) {
        (StationKind::Banks(banks), Some(hottest)) if hottest * *banks as f64 > 1.0 + 1e-9 => {
            4.0 * ((1.0 - hottest) / hottest / observed.completed.max(1) as f64).sqrt()
        }
        _ => 0.0,
    }
}

/// What is wrong where the throughput, counted by work, is not that of the operations that ended: those
/// in flight at the two edges of the window are all that may lie between, and those that ended while a station is behind
/// with what they posted.
fn work_and_ends_differ(observed: &LoadObservation, load: &Load) -> Option<String> {
    let Arrivals::Closed { in_flight } = load.arrivals else { unreachable!("the load is a closed loop") };
    let passed = observed.throughput_per_s * load.window.as_seconds();
    let apart = (passed - observed.completed as f64).abs();
    let behind = observed.throughput_per_s * POSTED_CREDIT.as_seconds();
    (apart > f64::from(in_flight) + behind + 1.0)
        .then(|| format!("{} ended where {passed:.1} passed, with {in_flight} in flight", observed.completed))
}

/// Runs a saturating load and says what is wrong with it, and in which way it falls short of its capacity.
fn check_saturated(
    router: &Arc<Router>,
    load: &Load,
    (capacity, station): (f64, StationId),
    name: &str,
    twice: bool,
) -> (Vec<String>, Vec<String>) {
    let (mut wrong, mut short) = (Vec::new(), Vec::new());
    let Arrivals::Closed { in_flight } = load.arrivals else { unreachable!("the load is a closed loop") };
    let observed = run(router, load).unwrap();
    let ratio = observed.throughput_per_s / capacity;
    if ratio > 1.0 + ABOVE + luck(router, &load.mix[0].0, station, &observed) {
        wrong.push(format!("{name}: the twin shows {ratio:.6} of the capacity"));
    }
    wrong.extend(work_and_ends_differ(&observed, load).map(|what| format!("{name}: {what}")));
    let full = full_slots(router, &observed);
    if ratio < if full.is_some() { 0.95 } else { 0.98 } {
        let what = format!("{name}: the twin reaches {ratio:.4} of {:.3} M/s", capacity / 1e6);
        // Full in-flight slots are the capacity at the holds that the load brings; at those of an idle
        // system, which the capacity counts, it is out of reach.
        match full {
            Some(full) => {
                let least = least_through_slots(router, &load.mix[0].0);
                let what =
                    format!("{what}, its in-flight slots {full:.3} full: queues inside lengthen the hold");
                if observed.throughput_per_s < 0.95 * least {
                    short.push(format!("{what} beyond the {:.3} M/s that they leave", least / 1e6));
                } else {
                    println!("{what}");
                }
            }
            None => short.push(what),
        }
    }
    let [started, done, failed, left] = observed.balance;
    assert_eq!((started, failed, left), (done + failed + left, 0, u64::from(in_flight)), "{name}");
    // Little: requests in flight = throughput x mean latency. Of a hot bank, chance decides how many of those
    // that ended it served, and with that how long they took in the mean: there the ends are the throughput.
    // Elsewhere the work is, since many may end together just outside the window.
    let by_chance = luck(router, &load.mix[0].0, station, &observed) > 0.0;
    let ended_per_s = observed.completed as f64 / load.window.as_seconds();
    let per_s = if by_chance { ended_per_s } else { observed.throughput_per_s };
    let mean = observed.latencies.mean().unwrap_or_default().as_seconds();
    let little = per_s * mean / observed.mean_in_flight;
    if (little - 1.0).abs() > 0.02 {
        wrong.push(format!("{name}: Little's law gives {little:.4}"));
    }
    if twice {
        let again = run(router, load).unwrap();
        assert_eq!(format!("{observed:?}"), format!("{again:?}"), "{name}: two runs differ");
    }
    (wrong, short)
}

#[test]
fn the_readings_agree_on_generated_profiles() {
    let mut failures = Vec::new();
    let mut binding = std::collections::BTreeMap::<&str, u32>::new();
    let mut verbs = std::collections::BTreeMap::<&str, u32>::new();
    let (first, count) = drawn(200);
    for seed in first..first + count {
        let (system, mut draw) = system("agreement", seed);
        let router = Arc::new(Router::new(&system).unwrap());
        let mut reader = Reader::new(&router);
        for _ in 0..3 {
            let operation = operation(&router, &mut draw);
            *verbs.entry(operation.verb.name()).or_default() += 1;
            let route = Arc::new(router.route(&operation).unwrap());
            let unloaded = route.unloaded(&router);
            let name = format!("profile {seed}, {} {} {}", operation.path, operation.verb, operation.payload);
            let latency = route.latency(&router);
            if unloaded.terms.iter().map(|term| term.time).sum::<Time>() != latency
                || unloaded.latency != latency
            {
                failures.push(format!("{name}: terms do not sum to {latency}: {unloaded:?}"));
            }
            let reading = reader.read(&route);
            assert_eq!((reading.latency, &reading.demand), (latency, &route.demand(&router)), "{name}");
            let (idle, after) = idle_twin(&router, &route, 3);
            let differ = work_and_demand_differ(&router, &route, 3, &after);
            failures.extend(differ.into_iter().map(|what| format!("{name}: {what}")));
            if idle != vec![latency; 3] {
                failures.push(format!("{name}: the idle twin takes {idle:?}, the sum is {latency}"));
            }
        }
        let operation = operation(&router, &mut draw);
        let route = router.route(&operation).unwrap();
        let Some((capacity, station)) = route.demand(&router).capacity(&router) else { continue };
        let (in_flight, load) = saturating(&router, &route, (capacity, station), 3.0);
        let at = &router.stations()[station.index()];
        *binding.entry(at.meaning).or_default() += 1;
        let name = |in_flight: u32| {
            let PathOperation { path, verb, payload, .. } = &operation;
            format!("profile {seed}, {path} {verb} {payload} x{in_flight}, bound by {}", at.name)
        };
        let binds = (capacity, station);
        let (wrong, short) = check_saturated(&router, &load, binds, &name(in_flight), seed % 10 == 0);
        failures.extend(wrong);
        if !short.is_empty() {
            // Three times Little's law are enough to reach the capacity for most and fifty for all; they cost as much
            // more. What else is wrong is wrong with any number.
            let (in_flight, load) = saturating(&router, &route, binds, 50.0);
            let (wrong, short) = check_saturated(&router, &load, binds, &name(in_flight), false);
            failures.extend(wrong.into_iter().chain(short));
        }
    }
    println!("what bound: {binding:?}; operations: {verbs:?}");
    // What is not drawn agrees with everything.
    assert!(first > 0 || count < 200 || VERBS.iter().all(|row| verbs.contains_key(row.name)), "{verbs:?}");
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}

#[test]
fn no_window_shows_more_than_the_capacity() {
    let mut failures = Vec::new();
    let mut worst = Vec::new();
    let (first, count) = drawn(60);
    for seed in first..first + count {
        let (system, mut draw) = system("window", seed);
        let router = Arc::new(Router::new(&system).unwrap());
        for row in VERBS {
            let mut operation = operation(&router, &mut draw);
            let verb = row.verb;
            if !router.verbs(&operation.path).contains(&verb) {
                continue;
            }
            operation.verb = verb;
            operation.access = AddressSpread::UNIFORM;
            let in_flight: u32 = 1 << draw.within(0, 12);
            // Payloads to 16 MiB, and so many bursts of 16 KiB in all that the run stays short.
            let most: u64 = 1 << draw.within(0, 24).min(13 + 14 - in_flight.ilog2() as u64);
            let payload = draw.within(most / 2, most);
            operation.payload = Bytes::new(payload.min(longest(&router, verb).unwrap_or(payload)));
            let route = router.route(&operation).unwrap();
            let Some((capacity, station)) = route.demand(&router).capacity(&router) else { continue };
            let counted = draw.one_of(&[50.0, 400.0, 2000.0]);
            let turns = draw.one_of(&[0.0, 0.5, 2.0]);
            let time = |operations: f64| Time::from_ps((operations / capacity * 1e12) as u64);
            let load = Load {
                mix: vec![(Arc::new(route.clone()), 1.0)],
                arrivals: Arrivals::Closed { in_flight },
                warm_up: time(turns * f64::from(in_flight)),
                window: time(counted),
                seed: Seed::new(seed),
                faults: None,
            };
            let observed = run(&router, &load).unwrap();
            let ratio = observed.throughput_per_s / capacity;
            let at = &router.stations()[station.index()].name;
            let name = format!(
                "{ratio:.9} profile {seed}, {} {verb} {} x{in_flight}, {counted} counted after {turns} turns, bound by {at}",
                operation.path, operation.payload
            );
            for usage in &observed.usage {
                if let Some((machine, share)) = usage.fullest().filter(|(_, share)| *share > 1.0 + 1e-9) {
                    failures
                        .push(format!("{name}: {:?} of {machine} serves {share} of its time", usage.station));
                }
            }
            if ratio > 1.0 + ABOVE {
                failures.push(name.clone());
            }
            failures.extend(work_and_ends_differ(&observed, &load).map(|what| format!("{name}: {what}")));
            worst.push((ratio, name));
        }
    }
    worst.sort_by(|a, b| b.0.total_cmp(&a.0));
    for (_, name) in worst.iter().take(40) {
        println!("{name}");
    }
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
