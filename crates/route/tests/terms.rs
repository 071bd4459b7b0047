//! What single numbers of a profile cost: the visits that an operation makes because of them.

use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{BitRate, Bytes, Quantity, Time};
use offpath_route::{AddressSpread, PathOperation, Route, Router, Verb};
use proptest::prelude::*;

fn system() -> System {
    Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap()
}

fn route(router: &Router, verb: Verb, path: &str, payload: u64) -> Route {
    router.route(&PathOperation::new(verb, router.path(path).unwrap(), Bytes::new(payload))).unwrap()
}

fn latency(system: &System, verb: Verb, path: &str, payload: u64) -> Time {
    let router = Router::new(system).unwrap();
    route(&router, verb, path, payload).latency(&router)
}

/// Server time at a station, where the operation visits it.
fn demand(router: &Router, station: &str, verb: Verb, path: &str, payload: u64) -> Option<Time> {
    let station = router.station(station).unwrap_or_else(|| panic!("there is no station {station}"));
    route(router, verb, path, payload).demand(router).time.get(&station).copied()
}

#[test]
fn no_more_slots_are_kept_for_an_endpoint_than_it_may_hold() {
    let with = |kept: u64| {
        let changes = [
            ("nic.inflight_slots", Quantity::Count(10)),
            ("nic.reserved_inflight_slots", Quantity::Count(kept)),
        ];
        Router::new(&system().with_all(changes).unwrap())
    };
    // Host and card: with all of them kept they share none.
    assert!(with(10).is_ok());
    let refused = with(11).map(|_| ()).expect_err("it may hold ten").to_string();
    assert!(
        refused.contains("keeps 11 in-flight slots for each endpoint, and one of them may hold 10"),
        "{refused}"
    );
}

#[test]
fn the_network_is_crossed_there_and_back() {
    let plain = system();
    let more = Time::from_ns(100);
    let longer = plain.clone().with("network.delay", Quantity::Time(plain.network.delay + more)).unwrap();
    for path in ["client-host", "client-soc"] {
        for (verb, payload) in [(Verb::Read, 0), (Verb::Read, 64), (Verb::Write, 0), (Verb::Write, 4096)] {
            let cost = latency(&longer, verb, path, payload) - latency(&plain, verb, path, payload);
            assert_eq!(cost, more.times(2), "{verb} of {payload} B, {path}");
        }
    }
    assert_eq!(latency(&longer, Verb::Read, "soc-host", 64), latency(&plain, Verb::Read, "soc-host", 64));
}

#[test]
fn a_packet_without_payload_takes_its_header_at_both_ports() {
    let plain = system();
    let (header, more) = (plain.network.packet_header, Bytes::new(1000));
    let longer = Bytes::new(header.get() + more.get());
    let larger = plain.clone().with("network.packet_header", Quantity::Bytes(longer)).unwrap();
    let (client, _) = plain.endpoint("client").unwrap();
    let (server, _) = plain.endpoint("host").unwrap();
    let port =
        |at: &offpath_profile::Machine| at.nic.port_rate.time_for(longer) - at.nic.port_rate.time_for(header);
    // The request and the answer, each out of one port and into the other.
    let cost = latency(&larger, Verb::Read, "client-host", 0) - latency(&plain, Verb::Read, "client-host", 0);
    assert_eq!(cost, (port(client) + port(server)).times(2));
}

#[test]
fn reads_of_the_host_pass_what_limits_its_reads() {
    let plain = system();
    let (_, host) = plain.endpoint("host").unwrap();
    let interval = host.memory.inbound_read_rate.expect("the host's reads are limited").interval();
    let router = Router::new(&plain).unwrap();
    let at = |verb, path| demand(&router, "host.inbound_reads", verb, path, 64);
    assert_eq!(
        (at(Verb::Read, "client-host"), at(Verb::FetchAndAdd, "client-host")),
        (Some(interval), Some(interval))
    );
    assert_eq!((at(Verb::Write, "client-host"), at(Verb::Read, "client-soc")), (None, None));
}

/// What the NIC reads out of a memory and what it writes into it pass a limit of their own, whichever verb moves the bytes and
/// whichever end asks; engines and the memory's own processor pass none.
#[test]
fn bytes_of_the_nic_pass_what_limits_them() {
    let gbit = |rate: u64| BitRate::from_bits_per_second(rate * 1_000_000_000);
    let plain = system();
    let limited = plain.clone().with("soc.inbound_read_bandwidth", Quantity::BitRate(gbit(40))).unwrap();
    let limited = limited.with("soc.inbound_write_bandwidth", Quantity::BitRate(gbit(20))).unwrap();
    let router = Router::new(&limited).unwrap();
    let bytes = 1024;
    let at = |part: &str, verb, path| demand(&router, &format!("soc.{part}"), verb, path, bytes);
    let [read, written] = [40, 20].map(|rate| Some(gbit(rate).time_for(Bytes::new(bytes))));
    for (verb, path, reads, writes) in [
        (Verb::Read, "client-soc", read, None),
        (Verb::Write, "client-soc", None, written),
        (Verb::Send, "client-soc", None, written),
        (Verb::SendDatagram, "soc-client", read, None),
        (Verb::Read, "soc-client", None, written),
        (Verb::Write, "soc-host", read, None),
        (Verb::Read, "client-host", None, None),
    ] {
        assert_eq!(
            (at("read_bytes", verb, path), at("written_bytes", verb, path)),
            (reads, writes),
            "{verb} {path}"
        );
    }
    let copied = demand(&router, "soc.written_bytes", Verb::Read, "soc-host-dma", bytes);
    assert_eq!(copied, None, "the engine is no NIC");
    let one_by_one = |system: &System| latency(system, Verb::Write, "client-soc", bytes);
    assert!(one_by_one(&limited) >= one_by_one(&plain));
}

#[test]
fn what_is_larger_than_a_limit_begins_is_held_to_its_rate() {
    let plain = system();
    let router = Router::new(&plain).unwrap();
    let (server, _) = plain.endpoint("host").unwrap();
    assert!(!server.large_transfer_limits.is_empty());
    for limit in &server.large_transfer_limits {
        let requester = if limit.requester == "*" { "client" } else { &limit.requester };
        let path = format!("{requester}-{}", limit.responder);
        for verb in [Verb::Read, Verb::Write] {
            let above = limit.above.get();
            assert_eq!(demand(&router, &limit.name, verb, &path, above), None, "{path} {verb}");
            let held = demand(&router, &limit.name, verb, &path, 2 * above);
            let slow = limit.verbs.iter().any(|slow| slow == verb.name());
            let expected = slow.then(|| limit.rate.time_for(Bytes::new(2 * above)));
            assert_eq!(held, expected, "{path} {verb}");
        }
    }
}

#[test]
fn a_copy_reads_the_banks_it_comes_from_and_writes_those_it_goes_to() {
    let plain = system();
    let router = Router::new(&plain).unwrap();
    let (_, soc) = plain.endpoint("soc").unwrap();
    let at = |verb| demand(&router, "soc.banks", verb, "soc-host-dma", 64);
    assert_ne!(soc.memory.bank_read_time, soc.memory.bank_write_time);
    assert_eq!(at(Verb::Read), Some(soc.memory.bank_write_time));
    assert_eq!(at(Verb::Write), Some(soc.memory.bank_read_time));
}

/// Whoever may ask an engine for what it stores has a path of its own, and one that works on its own memory alone has one.
#[test]
fn every_path_of_an_engine_is_listed() {
    for (testbed, engine, all) in
        [("nvme", "ssd", &["host-ssd", "soc-ssd"][..]), ("sun-regex", "regex", &["soc-regex"])]
    {
        let request =
            SystemRequest { device: "bluefield2", testbed: Some(testbed), ..SystemRequest::default() };
        let router = Router::new(&Library::builtin().load(&request).unwrap()).unwrap();
        let paths = router.paths().into_iter().filter(|path| path.engine.as_deref() == Some(engine));
        let mut paths: Vec<String> = paths.map(|path| path.to_string()).collect();
        paths.sort_unstable();
        assert_eq!(paths, all, "{testbed}");
    }
}

/// The latencies that a load by the DPA looks through, from the nearest to the farthest.
const LATENCIES: [&str; 9] = [
    "dpa_l1.latency",
    "dpa_l2.latency",
    "dpa_l3.latency",
    "soc_l3.latency",
    "soc_to_soc.latency",
    "dpa_to_soc.latency",
    "dpa_to_dpa_memory.latency",
    "dpa_to_host.latency",
    "host_to_host.latency",
];

/// What one load waits for over working sets from the nearest cache to beyond the farthest, with these latencies.
fn waits(system: &System, latencies: [u64; 9], path: &str) -> Vec<Time> {
    let numbers = LATENCIES.into_iter().zip(latencies.map(|ns| Quantity::Time(Time::from_ns(ns))));
    let system = system.with_all(numbers).expect("they are in their ranges");
    let router = Router::new(&system).expect("it has routes");
    let load = PathOperation::new(Verb::Load, router.path(path).expect("it is there"), Bytes::new(8));
    let over =
        |power: u32| AddressSpread { range: Some(Bytes::new(1 << power)), arrived: false, hottest: 0.0 };
    (10..30)
        .map(|power| router.route(&load.clone().accessing(over(power))).unwrap().latency(&router))
        .collect()
}

proptest! {
    /// Whatever latencies a draw takes: a larger working set is never quicker, nor are slower caches or a memory that is slower
    /// for whoever reaches it.
    #[test]
    fn slower_memory_never_makes_a_load_faster(
        latencies in prop::array::uniform9(1u64..5000),
        more in 0u64..5000,
        which in 0usize..9,
        path in prop::sample::select(vec!["dpa-dpa", "dpa-dpa:soc", "dpa-dpa:host", "soc-soc"]),
    ) {
        let system = Library::builtin().load(&SystemRequest { device: "bluefield3", ..SystemRequest::default() });
        let system = system.expect("it is shipped");
        let before = waits(&system, latencies, path);
        prop_assert!(before.is_sorted(), "{path}: {before:?}");
        // A memory is slower for its own processor and for others alike; a cache by itself.
        let is_memory = which >= 4;
        let slower = |index: usize| if is_memory { index >= 4 } else { index == which };
        let mut after = latencies;
        after.iter_mut().enumerate().filter(|(index, _)| slower(*index)).for_each(|(_, one)| *one += more);
        let after = waits(&system, after, path);
        let is_no_faster = before.iter().zip(&after).all(|(before, after)| after >= before);
        prop_assert!(is_no_faster, "{path}, {}: {before:?} became {after:?}", LATENCIES[which]);
    }
}
