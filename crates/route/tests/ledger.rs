//! The packet ledger is wei2023 Table 4 for every payload, and no hop gains or loses a byte.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::Bytes;
use offpath_route::{Ledger, PathOperation, Router, Verb, Visit};
use proptest::prelude::*;

fn router() -> Router {
    let system =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    Router::new(&system).unwrap()
}

/// Data packets on pcie1 and pcie0 by path (wei2023 Table 4).
fn table_4(path: &str, n: u64) -> (u64, u64) {
    let (host, soc) = (n.div_ceil(512), n.div_ceil(128));
    match path {
        "client-host" => (host, host),
        "client-soc" => (soc, 0),
        "soc-host" | "host-soc" => (host + soc, host),
        "soc-host-dma" | "host-soc-dma" => (0, host),
        other => panic!("Table 4 has no path {other}"),
    }
}

fn check(router: &Router, path: &str, verb: Verb, n: u64) {
    // An inline payload is inside the work request, which Table 4 does not count as data: it
    // leaves the requester's memory by no packets of its own.
    let named = router.path(path).unwrap();
    let route = router.route(&PathOperation::new(verb, named, Bytes::new(n))).unwrap();
    let ledger = route.ledger(router);
    let inline = verb == Verb::Write && !path.starts_with("client") && !path.ends_with("dma") && n <= 220;
    if !inline {
        assert_eq!((ledger.link("pcie1"), ledger.link("pcie0")), table_4(path, n), "{path} {verb} {n}");
    }
    conserved(router, &ledger, &route.visits, n);
}

fn conserved(router: &Router, ledger: &Ledger, visits: &[Visit], n: u64) {
    for (name, packets) in &ledger.links {
        assert_eq!(packets.payload, Bytes::new(n), "{name}");
        assert!(packets.framed >= packets.payload);
    }
    for visit in visits {
        let Visit::Train(train) = visit else { continue };
        assert_eq!(train.bytes, Bytes::new(n));
        for hop in &train.hops {
            // The bursts of a hop are the differences of this function, so their sum is the whole.
            let name = &router.stations()[hop.station.index()].name;
            assert!(hop.packets(train.bytes) * hop.mtu.get() >= n, "{name} carries less than {n} B");
            assert!(hop.packets(train.bytes) <= n.div_ceil(hop.mtu.get()).max(1), "{name}");
        }
    }
}

const PATHS: [&str; 6] =
    ["client-host", "client-soc", "soc-host", "host-soc", "soc-host-dma", "host-soc-dma"];

#[test]
fn every_payload_up_to_70000() {
    let router = router();
    for n in 0..=70_000 {
        for path in PATHS {
            check(&router, path, Verb::Read, n);
            check(&router, path, Verb::Write, n);
        }
    }
}

#[test]
fn the_invented_card_has_routes_on_every_path() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/data/invented.toml");
    let system =
        Library::builtin().load(&SystemRequest { device: file, ..SystemRequest::default() }).unwrap();
    let router = Router::new(&system).unwrap();
    let paths = router.paths();
    for name in ["client-arm", "client-dpa", "arm-dpa", "dpa-host", "host-arm-copy", "arm-dpa-copy"] {
        assert!(paths.iter().any(|path| path.to_string() == name), "{name} is missing from {paths:?}");
    }
    for path in paths {
        for verb in router.verbs(&path) {
            for n in [0, 1, 64, 1024] {
                let route = router.route(&PathOperation::new(verb, path.clone(), Bytes::new(n))).unwrap();
                let unloaded = route.unloaded(&router);
                assert_eq!(unloaded.latency, unloaded.terms.iter().map(|term| term.time).sum());
                assert_eq!(unloaded.latency, route.latency(&router));
                assert!(route.demand(&router).capacity(&router).is_some(), "{path} {verb} {n}");
                conserved(&router, &route.ledger(&router), &route.visits, route.payload.get());
            }
        }
    }
    let packets = |path: &str, link: &str| {
        let route =
            router.route(&PathOperation::new(Verb::Read, router.path(path).unwrap(), Bytes::new(4096)));
        route.unwrap().ledger(&router).link(link)
    };
    // Its lanes carry TLPs of 128 B to the card's processors and of 512 B to the host.
    assert_eq!([packets("client-arm", "lane_a"), packets("client-arm", "lane_b")], [32, 32]);
    assert_eq!([packets("client-dpa", "lane_c"), packets("client-dpa", "lane_a")], [32, 0]);
    assert_eq!([packets("dpa-host", "lane_a"), packets("dpa-host", "lane_c")], [8, 32]);
}

proptest! {
    #[test]
    fn random_payloads_up_to_1_gib(n in 1u64..=1 << 30, path in 0usize..6) {
        let router = router();
        check(&router, PATHS[path], Verb::Read, n);
        check(&router, PATHS[path], Verb::Write, n);
    }
}
