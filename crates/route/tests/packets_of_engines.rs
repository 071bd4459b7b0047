//! What an engine's packets cost: TLPs that it sends one by one, completions that a host cuts, and its own buffers.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, PathOperation, Route, Router, Verb};

fn router(settings: &[&str]) -> Router {
    let settings = settings.iter().map(|one| one.to_string()).collect();
    let request = SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() };
    Router::new(&Library::builtin().load(&request).expect("the shipped card loads")).expect("it has stations")
}

fn route(router: &Router, verb: Verb, payload: u64) -> Route {
    route_on(router, "soc-host-dma", verb, payload)
}

fn route_on(router: &Router, path: &str, verb: Verb, payload: u64) -> Route {
    let path = router.path(path).expect("the card has the path");
    router.route(&PathOperation::new(verb, path, Bytes::new(payload))).expect("the engine carries it")
}

fn demand(router: &Router, verb: Verb, payload: u64) -> Demand {
    route(router, verb, payload).demand(router)
}

fn kept(router: &Router, verb: Verb, payload: u64, station: &str) -> Time {
    let station = router.station(station).expect("the system has the station");
    demand(router, verb, payload).time.get(&station).copied().unwrap_or_default()
}

/// Of TLPs that cost time a WRITE's direction is kept by each, a READ's by its start alone, and each starts its own.
#[test]
fn every_packet_that_an_engine_sends_keeps_its_direction() {
    let plain = router(&[]);
    let timed = router(&["dma.packet_time=17ns", "dma.packet_payload=128B", "dma.request_time=4ns"]);
    for (payload, packets) in [(1, 1), (128, 1), (129, 2), (512, 4), (513, 5)] {
        let more =
            kept(&timed, Verb::Write, payload, "dma.write") - kept(&plain, Verb::Write, payload, "dma.write");
        assert_eq!(more, Time::from_ns(4 + 17 * packets), "WRITE of {payload} B");
        let more =
            kept(&timed, Verb::Read, payload, "dma.read") - kept(&plain, Verb::Read, payload, "dma.read");
        assert_eq!(more, Time::from_ns(4), "READ of {payload} B");
        for verb in [Verb::Read, Verb::Write] {
            assert_eq!(kept(&timed, verb, payload, "dma.requests"), Time::ZERO);
            assert!(kept(&plain, verb, payload, "dma.requests") > Time::ZERO);
        }
    }
}

/// A host that READs has the engine write to it, and one that WRITEs has it read: TLPs cost time the way that they go. Within the
/// engine's own memory there are none.
#[test]
fn packets_follow_the_bytes_and_not_the_verb() {
    let plain = router(&[]);
    let timed = router(&["dma.packet_time=17ns", "dma.packet_payload=128B", "dma.request_time=4ns"]);
    let cases = [
        ("host-soc-dma", Verb::Read, "dma.write", 4 + 17 * 4),
        ("host-soc-dma", Verb::Write, "dma.read", 4),
        ("soc-dma", Verb::Write, "dma.write", 4),
    ];
    for (path, verb, line, more) in cases {
        for station in ["dma.read", "dma.write"] {
            let kept = |router: &Router| {
                let station = router.station(station).expect("the system has the station");
                let demand = route_on(router, path, verb, 512).demand(router);
                demand.time.get(&station).copied().unwrap_or_default()
            };
            let expected = if station == line { more } else { 0 };
            assert_eq!(
                kept(&timed) - kept(&plain),
                Time::from_ns(expected),
                "{station} of a {verb} on {path}"
            );
        }
    }
}

/// A WRITE crosses PCIe in the packets that the engine makes: 128 B where the host would take 512.
#[test]
fn an_engine_writes_packets_of_its_own_size() {
    let router = router(&["dma.packet_payload=128B"]);
    for (payload, packets) in [(128, 1), (512, 4), (513, 5)] {
        let ledger = route(&router, Verb::Write, payload).ledger(&router);
        assert_eq!(ledger.links["pcie0.down"].data, packets, "{payload} B");
    }
}

/// Short READs are answered boundary by boundary, longer ones in packets of the MTU as far as the host combines.
#[test]
fn completions_are_cut_as_the_host_cuts_them() {
    let with = |share: &str| {
        let share = format!("host.combined_share={share}");
        router(&["host.read_completion_boundary=64B", "host.cut_up_to=256B", &share, "host.pcie_mtu=256B"])
    };
    let uncut = router(&["host.pcie_mtu=256B"]);
    let link = |router: &Router, payload| kept(router, Verb::Read, payload, "pcie0.up");
    let header = {
        // What one completion's header takes, from two sizes that differ by one.
        let byte = link(&uncut, 256) - link(&uncut, 255);
        (link(&uncut, 257) - link(&uncut, 256)).saturating_sub(byte).as_ns()
    };
    for share in [0.25, 0.5, 1.0] {
        let router = with(&share.to_string());
        for payload in [64u64, 65, 256, 257, 512, 2048] {
            let (all, whole) = (payload.div_ceil(64) as f64, payload.div_ceil(256) as f64);
            let packets = if payload <= 256 { all } else { whole + (1.0 - share) * (all - whole) };
            let more = (link(&router, payload) - link(&uncut, payload)).as_ns();
            let expected = (packets - whole) * header;
            assert!(
                (more - expected).abs() < 0.01 * expected + 0.01,
                "{payload} B, {share}: {more} ns, not {expected}"
            );
            let data = route(&router, Verb::Read, payload).ledger(&router).links["pcie0.up"].data;
            assert_eq!(data, packets.ceil() as u64, "{payload} B, {share}");
        }
    }
}

/// What an engine buffers a request waits for, and no station is kept longer.
#[test]
fn buffers_are_latency_alone() {
    let (plain, buffered) = (router(&[]), router(&["dma.buffer_rate=64Gbit/s"]));
    for verb in [Verb::Read, Verb::Write] {
        let more =
            route(&buffered, verb, 2048).latency(&buffered) - route(&plain, verb, 2048).latency(&plain);
        assert_eq!(more, Time::from_ns(256));
        assert_eq!(demand(&buffered, verb, 2048), demand(&plain, verb, 2048));
    }
}

/// Bytes that stay at the engine's own memory are there no later than those that go on over links.
#[test]
fn what_stays_near_is_no_later_than_what_goes_far() {
    let card = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/data/everything.toml");
    let request = SystemRequest { device: card, ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("the card is in order");
    let router = Router::new(&system).expect("it has routes");
    for payload in [64u64, 512, 2048, 4096, 16_384, 65_536, 1 << 20] {
        let read = |path: &str| route_on(&router, path, Verb::Read, payload).latency(&router);
        let (near, far) = (read("store-ssd"), read("arm-ssd"));
        assert!(near <= far, "{payload} B: {near} near, {far} far");
        let compute = |path: &str| route_on(&router, path, Verb::Transform, payload).latency(&router);
        let (near, far) = (compute("arm-regex"), compute("arm-store-regex"));
        assert!(near <= far, "{payload} B transformed: {near} near, {far} far");
    }
}

/// A copy between two endpoints is what a WRITE between them is, and known as well; within one memory nobody measured any.
#[test]
fn a_copy_has_the_evidence_of_a_write() {
    let card = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/data/everything.toml");
    for (device, path, within) in
        [("bluefield2", "soc-host-dma", "soc-dma"), (card, "arm-host-copy", "arm-copy")]
    {
        let request = SystemRequest { device, ..SystemRequest::default() };
        let system = Library::builtin().load(&request).expect("the card is in order");
        let router = Router::new(&system).expect("it has routes");
        let [copy, write] = [Verb::Copy, Verb::Write].map(|verb| route_on(&router, path, verb, 4096));
        assert!(copy.is_published && write.is_published, "{path}");
        assert_eq!(copy.latency(&router), write.latency(&router), "{path}");
        assert!(!route_on(&router, within, Verb::Copy, 4096).is_published, "{within}");
    }
}
