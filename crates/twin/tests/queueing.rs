//! Queues follow queueing theory, and losses follow the rules of a reliable connection.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{InflightSlots, MOST_LIMITS, PathOperation, Pick, Route, Router, Verb, Visit};
use offpath_twin::{
    Arrivals, EventEngine, Fault, FaultRule, Faults, Load, Occurrence, OperationFailure, Retransmission,
    Seed, Tag, batch_means, run,
};
use proptest::prelude::*;
use std::sync::Arc;

fn router() -> Arc<Router> {
    let system =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    Arc::new(Router::new(&system).unwrap())
}

fn read(router: &Router, path: &str) -> Route {
    router.route(&PathOperation::new(Verb::Read, router.path(path).unwrap(), Bytes::new(64))).unwrap()
}

#[test]
fn poisson_arrivals_wait_as_in_m_d_1() {
    let router = router();
    let service = Time::from_ns(100);
    let visit = Visit::Serve {
        label: "service",
        station: router.station("pcie1.up").unwrap(),
        pick: Pick::Any,
        occupancy: service,
        latency: service,
        detached: false,
    };
    let route = Arc::new(Route { visits: vec![visit], ..read(&router, "soc-host") });
    for load in [0.3, 0.6, 0.8] {
        let waits: Vec<f64> = (0..12)
            .map(|seed| {
                let arrivals = Arrivals::Poisson { rate_per_s: load / service.as_seconds() };
                let mix = vec![(route.clone(), 1.0)];
                let (warm_up, window) = (Time::from_us(200), Time::from_ms(4));
                let load = Load { mix, arrivals, warm_up, window, seed: Seed::new(seed), faults: None };
                let mean = run(&router, &load).unwrap().latencies.mean().unwrap();
                mean.as_seconds() - service.as_seconds()
            })
            .collect();
        let interval = batch_means(&waits).unwrap();
        let expected = load * service.as_seconds() / (2.0 * (1.0 - load));
        // The histogram keeps 3 digits, so its mean may be off by a thousandth of the latency.
        let rounding = 0.001 * (expected + service.as_seconds());
        assert!(
            (interval.low - rounding..=interval.high + rounding).contains(&expected),
            "at load {load} the mean wait is {interval:?}, expected {expected}"
        );
        assert!((interval.high - interval.low) / expected < 0.1, "{interval:?} shows nothing");
    }
}

fn lossy(router: &Arc<Router>, until: Time, retransmission: Retransmission) -> (Occurrence, Time) {
    let mut engine = EventEngine::new(router.clone(), Seed::new(3));
    engine.set_retransmission(retransmission);
    let rule = FaultRule { from: Time::ZERO, until, between: None, probability: 1.0, fault: Fault::Drop };
    engine.inject(Faults::new(vec![rule], Seed::new(4)));
    let route = Arc::new(read(router, "client-soc"));
    engine.start(Tag(1), route, vec![0; router.system().machines.len()].into(), false);
    let occurrence = engine.next().unwrap();
    (occurrence, engine.now())
}

#[test]
fn a_loss_costs_the_timeout() {
    let router = router();
    let latency = read(&router, "client-soc").latency(&router);
    let retransmission = Retransmission { timeout: Time::from_us(67), retries: 7 };
    let (occurrence, at) = lossy(&router, Time::from_us(2), retransmission);
    assert_eq!((occurrence, at), (Occurrence::Done { tag: Tag(1) }, latency + retransmission.timeout));
    let (_, at) = lossy(&router, Time::from_us(68), retransmission);
    assert_eq!(at, latency + retransmission.timeout.times(2), "lost twice");
}

#[test]
fn retries_are_spent_after_the_last_timeout() {
    let router = router();
    let retransmission = Retransmission { timeout: Time::from_us(10), retries: 3 };
    let (occurrence, at) = lossy(&router, Time::from_ms(10), retransmission);
    assert_eq!(occurrence, Occurrence::Failed { tag: Tag(1), why: OperationFailure::RetryExceeded });
    assert!(at >= Time::from_us(40) && at < Time::from_us(42), "failed at {at}: four timeouts of 10 us");
}

#[test]
fn losses_are_counted() {
    let router = router();
    let rule = FaultRule {
        from: Time::ZERO,
        until: Time::from_ms(100),
        between: None,
        probability: 0.3,
        fault: Fault::Drop,
    };
    let load = Load {
        mix: vec![(Arc::new(read(&router, "client-soc")), 1.0)],
        arrivals: Arrivals::Closed { in_flight: 32 },
        warm_up: Time::ZERO,
        window: Time::from_ms(20),
        seed: Seed::new(5),
        faults: Some(Faults::new(vec![rule], Seed::new(6))),
    };
    let observed = run(&router, &load).unwrap();
    let [started, done, failed, left] = observed.balance;
    assert_eq!(started, done + failed + left);
    assert_eq!((done, failed, left), (observed.completed, observed.failed, 32));
    assert!(failed > 0 && done > 20 * failed, "both crossings lost 0.3 of the time: {:?}", observed.balance);
}

/// A loop starts its next operation when its last one ends, whatever the others do: unhindered, each kind ends as often
/// as its latency lets so many loops.
#[test]
fn each_operation_of_a_mix_has_loops_of_its_own() {
    let router = router();
    let mix = [("client-soc", 3.0), ("client-host", 2.0)];
    let load = Load {
        mix: mix.iter().map(|(path, count)| (Arc::new(read(&router, path)), *count)).collect(),
        arrivals: Arrivals::Loops,
        warm_up: Time::from_us(10),
        window: Time::from_ms(2),
        seed: Seed::new(9),
        faults: None,
    };
    let observed = run(&router, &load).unwrap();
    for ((path, count), ended) in mix.into_iter().zip(&observed.completed_of) {
        let expected = count * load.window.as_seconds() / read(&router, path).latency(&router).as_seconds();
        assert!(
            (*ended as f64 / expected - 1.0).abs() < 0.02,
            "{path}: {ended} where {expected} are expected"
        );
    }
    assert!((observed.mean_in_flight - 5.0).abs() < 0.05, "{}", observed.mean_in_flight);
}

#[test]
fn a_mix_is_drawn_by_its_shares() {
    let router = router();
    let mix = [("client-soc", 3.0), ("soc-host", 0.0), ("client-host", 1.0), ("host-soc", 2.0)];
    let load = Load {
        mix: mix.iter().map(|(path, share)| (Arc::new(read(&router, path)), *share)).collect(),
        arrivals: Arrivals::Closed { in_flight: 8 },
        warm_up: Time::from_us(10),
        window: Time::from_ms(2),
        seed: Seed::new(9),
        faults: None,
    };
    let observed = run(&router, &load).unwrap();
    let (count, of) = (observed.completed as f64, &observed.completed_of);
    assert!(count > 5000.0 && of[1] == 0, "{of:?}");
    for (of, (path, asked)) in of.iter().zip(mix) {
        let (share, asked) = (*of as f64 / count, asked / 6.0);
        let deviation = (asked * (1.0 - asked) / count).sqrt();
        assert!(
            (share - asked).abs() <= 4.0 * deviation,
            "{path}: {share} of {count} where {asked} are asked for"
        );
    }
}

#[test]
fn the_interval_of_a_rate_is_that_of_random_arrivals() {
    let router = router();
    let route = Arc::new(read(&router, "client-soc"));
    let rate = 5e6;
    let window = Time::from_ms(2);
    let (mut inside, mut widths) = (0, 0.0);
    for seed in 0..20 {
        let load = Load {
            mix: vec![(route.clone(), 1.0)],
            arrivals: Arrivals::Poisson { rate_per_s: rate },
            warm_up: Time::from_us(20),
            window,
            seed: Seed::new(seed),
            faults: None,
        };
        let observed = run(&router, &load).unwrap();
        let interval = observed.interval;
        let ended = observed.completed as f64 / window.as_seconds();
        assert!((interval.mean / ended - 1.0).abs() < 0.002, "{interval:?}, and {ended} per second ended");
        assert_eq!((interval.result(), observed.throughput_per_s), (Some(interval.mean), interval.mean));
        inside += u32::from((interval.low..=interval.high).contains(&rate));
        widths += (interval.high - interval.low) / 20.0;
    }
    // Arrivals in a window vary by the root of their number; Student's t of 20 batches is 2.093.
    let expected = 2.0 * 2.093 * (rate / window.as_seconds()).sqrt();
    assert!((0.8..1.2).contains(&(widths / expected)), "{widths} wide where {expected} is");
    assert!(inside >= 16, "{inside} of 20 intervals of 95% hold the rate");
}

#[test]
fn an_interval_wider_than_its_mean_is_no_result() {
    for (batches, result) in [
        ([2.0, 2.0, 2.0], Some(2.0)),
        ([0.0, 0.0, 6.0], None),
        // Nothing came: not known to be 0.
        ([0.0, 0.0, 0.0], None),
        ([f64::NAN, 1.0, 1.0], None),
    ] {
        let interval = batch_means(&batches).unwrap();
        assert_eq!(interval.result(), result, "{interval:?}");
        assert_eq!(interval.is_wider_than_its_mean(), result.is_none());
    }
}

/// A read of several bursts gives its in-flight slot back at a moment that is known only with its last burst;
/// those who wait meanwhile are woken then.
#[test]
fn those_who_wait_for_a_slot_are_woken_by_the_last_burst() {
    let router = with_slots(1);
    let path = router.path("client-soc").unwrap();
    let route = Arc::new(router.route(&PathOperation::new(Verb::Read, path, Bytes::new(256 << 10))).unwrap());
    let mut engine = EventEngine::new(router.clone(), Seed::new(1));
    let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
    for number in 0..4 {
        engine.start(Tag(number), route.clone(), instances.clone(), false);
    }
    let ended: Vec<Occurrence> = engine.by_ref().collect();
    assert_eq!(ended, (0..4).map(|number| Occurrence::Done { tag: Tag(number) }).collect::<Vec<_>>());
    // One at a time, each from the request at the card to the last byte.
    let alone = route.demand(&router).time[&router.station("nic.inflight_slots").unwrap()];
    assert!(engine.now() >= alone.times(4), "four at a time through one in-flight slot: {}", engine.now());
}

/// The busiest machine is told from the mean over all.
#[test]
fn a_full_machine_is_told_from_idle_ones() {
    let router = router();
    let instances: Arc<[u32]> =
        router.system().machines.iter().map(|machine| machine.count as u32 - 1).collect::<Vec<_>>().into();
    let mut engine = EventEngine::new(router.clone(), Seed::new(1));
    let before = engine.snapshot();
    let route = Arc::new(read(&router, "client-soc"));
    for number in 0..100 {
        engine.start(Tag(number), route.clone(), instances.clone(), false);
    }
    assert_eq!(engine.by_ref().count(), 100);
    let station = router.station("client.nic.receive").unwrap();
    let machines = router.stations()[station.index()].instances;
    let usage = engine.snapshot().usage(&before, &router).swap_remove(station.index());
    let (machine, share) = usage.fullest().unwrap();
    assert_eq!((usage.station, u64::from(machine)), (station, machines - 1));
    assert!(machines > 1 && share > 0.01 && share <= 1.0, "{usage:?}");
    assert!((usage.mean() - share / machines as f64).abs() < 1e-12, "{usage:?}");
}

/// A visit that keeps one of `nic.inflight_slots` for `hold`; the operation goes on once it has it.
fn keeping(router: &Router, hold: Time) -> Visit {
    let inflight_slots =
        InflightSlots { pool: router.station("nic.inflight_slots").unwrap(), limits: [None; MOST_LIMITS] };
    Visit::Acquire { inflight_slots, time: Some(hold) }
}

/// A router of the card with so many in-flight slots.
fn with_slots(inflight_slots: u64) -> Arc<Router> {
    let settings =
        vec![format!("nic.inflight_slots={inflight_slots}"), "nic.reserved_inflight_slots=0".to_string()];
    let system = Library::builtin().load(&SystemRequest {
        device: "bluefield2",
        settings,
        ..SystemRequest::default()
    });
    Arc::new(Router::new(&system.unwrap()).unwrap())
}

proptest! {
    /// Every request has its in-flight slot at the very moment at which a queue in order of arrival gives it one,
    /// so nobody waits longer than those ahead of it hold.
    #[test]
    fn slots_are_given_in_the_order_of_asking(
        inflight_slots in 1u64..4,
        jobs in proptest::collection::vec((0u64..4, 1u64..8), 1..60),
    ) {
        let router = with_slots(inflight_slots);
        let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
        let read = read(&router, "client-soc");
        let mut engine = EventEngine::new(router.clone(), Seed::new(1));
        let mut free = vec![0; inflight_slots as usize];
        let mut asked = 0;
        let mut expected = Vec::new();
        for (number, (gap, hold)) in jobs.into_iter().enumerate() {
            // Whole steps of time, so that many ask at the moment of a release.
            asked += gap;
            let earliest = free.iter_mut().min().unwrap();
            let granted = asked.max(*earliest);
            *earliest = granted + hold;
            expected.push((Tag(number as u64), Time::from_ns(granted)));
            let delay = Visit::Delay { label: "until it asks", time: Time::from_ns(asked) };
            let visits = vec![delay, keeping(&router, Time::from_ns(hold))];
            let route = Arc::new(Route { visits, ..read.clone() });
            engine.start(Tag(number as u64), route, instances.clone(), false);
        }
        let mut granted = Vec::new();
        while let Some(occurrence) = engine.next() {
            let Occurrence::Done { tag } = occurrence else { panic!("{occurrence:?}") };
            granted.push((tag, engine.now()));
        }
        prop_assert_eq!(granted, expected);
    }
}

/// The endpoints of a request to the host, of one to the SoC, and of one between them.
const ENDPOINTS: [&[usize]; 3] = [&[0], &[1], &[0, 1]];

proptest! {
    /// Where a part of the pool is reserved, a request has its in-flight slot at the first moment at which the pool
    /// and the limits of its endpoints, of one or of both, have room and nobody who asked before it could have that
    /// in-flight slot: those that a limit holds up hold up nobody else, and keep nothing of the pool or of the other
    /// limit meanwhile.
    #[test]
    fn limits_within_a_pool_hold_up_their_own_endpoint_alone(
        inflight_slots in 1u64..5,
        reserved in 1u64..3,
        jobs in proptest::collection::vec((0u64..3, 1u64..8, 0usize..3), 1..60),
    ) {
        let reserved = reserved.min(inflight_slots);
        let settings = vec![format!("nic.inflight_slots={inflight_slots}"), format!("nic.reserved_inflight_slots={reserved}")];
        let request = SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() };
        let router = Arc::new(Router::new(&Library::builtin().load(&request).unwrap()).unwrap());
        let station = |name: &str| router.station(name).unwrap();
        let owns = ["nic.inflight_slots-of-host", "nic.inflight_slots-of-soc"].map(station);
        let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
        let read = read(&router, "client-soc");
        let mut engine = EventEngine::new(router.clone(), Seed::new(1));
        let mut asked = 0;
        let mut queue = Vec::new();
        for (number, (gap, hold, class)) in jobs.into_iter().enumerate() {
            asked += gap;
            queue.push((asked, hold, class, number as u64));
            let mut limits = [None; MOST_LIMITS];
            limits.iter_mut().zip(ENDPOINTS[class]).for_each(|(place, one)| *place = Some(owns[*one]));
            let inflight_slots = InflightSlots { pool: station("nic.inflight_slots"), limits };
            let delay = Visit::Delay { label: "until it asks", time: Time::from_ns(asked) };
            let visits = vec![delay, Visit::Acquire { inflight_slots, time: Some(Time::from_ns(hold)) }];
            engine.start(Tag(number as u64), Arc::new(Route { visits, ..read.clone() }), instances.clone(), false);
        }
        let mut expected = std::collections::BTreeSet::new();
        let mut held: Vec<(u64, usize)> = Vec::new();
        for now in 0.. {
            if queue.is_empty() {
                break;
            }
            held.retain(|(until, _)| *until > now);
            queue.retain(|&(asked, hold, class, number)| {
                let of = |one: &usize| held.iter().filter(|(_, other)| ENDPOINTS[*other].contains(one)).count() as u64;
                let has_room = ENDPOINTS[class].iter().all(|one| of(one) < inflight_slots);
                let granted = asked <= now && has_room && (held.len() as u64) < inflight_slots + reserved;
                if granted {
                    held.push((now + hold, class));
                    expected.insert((number, Time::from_ns(now)));
                }
                !granted
            });
        }
        let mut granted = std::collections::BTreeSet::new();
        while let Some(occurrence) = engine.next() {
            let Occurrence::Done { tag } = occurrence else { panic!("{occurrence:?}") };
            granted.insert((tag.0, engine.now()));
        }
        prop_assert_eq!(granted, expected);
    }
}

/// A request of two endpoints is overtaken while either of their limits is full. Beside full flows to both, every flow goes
/// on with the number of the profile and with most of the slots reserved; with all of them reserved both limits never have
/// room at one moment, and the flow of two endpoints stands.
#[test]
fn a_request_of_two_endpoints_is_overtaken_and_goes_on_while_slots_are_shared() {
    let shares = [0, 47, 120, 142].map(|reserved| {
        let settings = vec![format!("nic.reserved_inflight_slots={reserved}")];
        let request = SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() };
        let router = Arc::new(Router::new(&Library::builtin().load(&request).unwrap()).unwrap());
        let mix = [("client-host", 4000.0), ("client-soc", 4000.0), ("host-soc", 384.0)];
        let load = Load {
            mix: mix.iter().map(|(path, count)| (Arc::new(read(&router, path)), *count)).collect(),
            arrivals: Arrivals::Loops,
            warm_up: Time::from_us(100),
            window: Time::from_us(400),
            seed: Seed::new(3),
            faults: None,
        };
        let observed = run(&router, &load).unwrap();
        let ended = observed.completed_of.iter().map(|of| *of as f64);
        let each: Vec<f64> = ended.zip(mix).map(|(ended, (_, count))| ended / count).collect();
        assert!(each[0] > 4.0 && each[1] > 4.0, "a flow of one endpoint stands with {reserved}: {each:?}");
        assert!(reserved == 142 || each[2] > 4.0, "the flow of both stands with {reserved}: {each:?}");
        observed.completed_of[2] as f64 / observed.completed as f64
    });
    let fair = 384.0 / 8384.0;
    for share in &shares[..2] {
        assert!((share / fair - 1.0).abs() < 0.05, "in the order of asking: {shares:?}");
    }
    assert!(shares[2] < 0.95 * fair && shares[3] < 0.01 * fair, "who needs both is overtaken: {shares:?}");
}

/// One in-flight slot is held by a long request, the other by a read whose release becomes known only with its last
/// burst. Whoever waits is woken by the one that comes first, be others coming after it or not, and nobody who
/// asks later comes before it.
#[test]
fn a_release_that_becomes_known_late_wakes_those_who_wait() {
    let router = with_slots(2);
    let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
    let path = router.path("client-soc").unwrap();
    let large = Arc::new(router.route(&PathOperation::new(Verb::Read, path, Bytes::new(256 << 10))).unwrap());
    let asking = |at: Time, hold: Time| {
        let delay = Visit::Delay { label: "until it asks", time: at };
        Arc::new(Route { visits: vec![delay, keeping(&router, hold)], ..read(&router, "client-soc") })
    };
    for until in [3, 200] {
        let mut engine = EventEngine::new(router.clone(), Seed::new(1));
        engine.start(Tag(0), asking(Time::ZERO, Time::from_ms(1)), instances.clone(), false);
        engine.start(Tag(1), large.clone(), instances.clone(), false);
        // Behind the read, and then one a microsecond, each of which would fill the in-flight slot by itself.
        for number in 2..until {
            let at = Time::from_us(number.max(3));
            engine.start(Tag(number), asking(at, Time::from_us(1)), instances.clone(), false);
        }
        let mut granted = Vec::new();
        while let Some(occurrence) = engine.next() {
            let Occurrence::Done { tag } = occurrence else { panic!("{occurrence:?}") };
            granted.push((tag.0, engine.now()));
        }
        let order: Vec<u64> = granted.iter().map(|(tag, _)| *tag).filter(|tag| *tag != 1).collect();
        assert_eq!(order, [0].into_iter().chain(2..until).collect::<Vec<_>>());
        let second = granted.iter().find(|(tag, _)| *tag == 2).unwrap().1;
        assert!(second > Time::from_us(3) && second < large.latency(&router), "woken at {second}");
    }
}

/// A request that is ended while it waits leaves its place to those behind it.
#[test]
fn who_is_gone_holds_nobody_up() {
    let router = with_slots(1);
    let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
    let asking =
        Arc::new(Route { visits: vec![keeping(&router, Time::from_ns(100))], ..read(&router, "client-soc") });
    let mut engine = EventEngine::new(router.clone(), Seed::new(1));
    let started: Vec<_> =
        (0..4).map(|number| engine.start(Tag(number), asking.clone(), instances.clone(), false)).collect();
    engine.kill(started[1]);
    engine.kill(started[3]);
    let mut granted = Vec::new();
    while let Some(Occurrence::Done { tag }) = engine.next() {
        granted.push((tag.0, engine.now()));
    }
    assert_eq!(granted, [(0, Time::ZERO), (2, Time::from_ns(100))]);
    engine.timer(Tag(9), Time::from_us(1));
    assert_eq!(engine.next(), Some(Occurrence::Timer { tag: Tag(9) }));
    engine.start(Tag(5), asking, instances, false);
    assert_eq!((engine.next(), engine.now()), (Some(Occurrence::Done { tag: Tag(5) }), Time::from_us(1)));
}

/// Room that an operation leaves when it is ended is taken at once, by those who wait and by those who come later, with
/// limits within the pool and without.
#[test]
fn who_is_ended_leaves_its_slot_to_those_who_wait() {
    for (slots, reserved) in [(1, 0), (2, 1), (142, 48)] {
        let settings =
            vec![format!("nic.inflight_slots={slots}"), format!("nic.reserved_inflight_slots={reserved}")];
        let request = SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() };
        let router = Arc::new(Router::new(&Library::builtin().load(&request).unwrap()).unwrap());
        let instances: Arc<[u32]> = vec![0; router.system().machines.len()].into();
        let path = router.path("client-soc").unwrap();
        let large =
            Arc::new(router.route(&PathOperation::new(Verb::Read, path, Bytes::new(64 << 20))).unwrap());
        let small = Arc::new(read(&router, "client-soc"));
        let mut engine = EventEngine::new(router.clone(), Seed::new(1));
        let holders: Vec<_> = (0..slots)
            .map(|number| engine.start(Tag(number), large.clone(), instances.clone(), false))
            .collect();
        engine.timer(Tag(1000), Time::from_us(5));
        assert_eq!(engine.next(), Some(Occurrence::Timer { tag: Tag(1000) }));
        engine.start(Tag(1001), small.clone(), instances.clone(), false);
        engine.timer(Tag(1002), Time::from_us(10));
        assert_eq!(engine.next(), Some(Occurrence::Timer { tag: Tag(1002) }), "all slots are held");
        holders.into_iter().for_each(|holder| engine.kill(holder));
        engine.start(Tag(1003), small.clone(), instances.clone(), false);
        let ended: Vec<Occurrence> = engine.by_ref().collect();
        let done = |number| Occurrence::Done { tag: Tag(number) };
        assert_eq!(ended, [done(1001), done(1003)], "{slots} slots, {reserved} reserved");
    }
}

/// A pool is full where those who send through it have nothing left, whatever is reserved for others who send nothing.
#[test]
fn a_full_pool_is_seen_to_be_full() {
    let router = router();
    let cores = router.station("nic.cores").unwrap();
    let operation = PathOperation::new(Verb::Read, router.path("client-host").unwrap(), Bytes::ZERO);
    let route = Arc::new(router.route(&operation).unwrap());
    let (most, _) = route.demand(&router).capacity(&router).unwrap();
    let usage = |share: f64| {
        let arrivals = Arrivals::Poisson { rate_per_s: share * most };
        let (warm_up, window) = (Time::from_us(50), Time::from_us(200));
        let mix = vec![(route.clone(), 1.0)];
        let load = Load { mix, arrivals, warm_up, window, seed: Seed::new(1), faults: None };
        let seen = run(&router, &load).unwrap();
        seen.usage.iter().find(|one| one.station == cores).unwrap().fullest().unwrap().1
    };
    let (half, full) = (usage(0.5), usage(0.99));
    assert!((0.45..0.55).contains(&half), "{half}");
    assert!((0.96..=1.0).contains(&full), "{full}");
}
