//! Read requests in flight over a PCIe link, and accesses that the last-level cache does not serve.

use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation, Router, Verb};

fn load(settings: &[&str]) -> System {
    let settings = settings.iter().map(|one| one.to_string()).collect();
    Library::builtin()
        .load(&SystemRequest { device: "connectx7", settings, ..SystemRequest::default() })
        .unwrap()
}

/// Requests per second of a verb, what binds them, and the latency of one.
fn carried(system: &System, verb: Verb, payload: u64) -> (f64, String, Time) {
    let router = Router::new(system).unwrap();
    let path = router.path("client-host").unwrap();
    let route = router.route(&PathOperation::new(verb, path, Bytes::new(payload))).unwrap();
    let (rate, station) = route.demand(&router).capacity(&router).unwrap();
    (rate, router.stations()[station.index()].name.clone(), route.latency(&router))
}

#[test]
fn requests_in_flight_times_their_size_share_a_round_trip() {
    // Down, into memory and up again.
    let round_trip = 232e-9 + 149e-9 + 232e-9;
    for (verb, link) in [(Verb::Read, "pcie0"), (Verb::Write, "client.pcie0")] {
        for (requests, limit, payload) in [(8.0, 512, 65_536), (64.0, 128, 65_536), (3.0, 4096, 64 * 5)] {
            let bound =
                [format!("{link}.read_requests={requests}"), format!("{link}.read_request_limit={limit}B")];
            let (rate, binding, _) = carried(&load(&[&bound[0], &bound[1]]), verb, payload);
            let expected = requests / round_trip / payload.div_ceil(limit) as f64;
            assert!((rate / expected - 1.0).abs() < 1e-3, "{verb} {bound:?}: {rate} is not {expected}");
            assert_eq!(binding, format!("{link}.reads"));
        }
    }
    // What one end may have in flight does not bind what the other reads.
    let free = carried(&load(&[]), Verb::Write, 65_536);
    let other =
        carried(&load(&["pcie0.read_requests=8", "pcie0.read_request_limit=512B"]), Verb::Write, 65_536);
    assert_eq!(free, other);
}

#[test]
fn an_access_that_misses_the_cache_takes_longer_by_what_the_memory_says() {
    let latency = |settings: &[&str]| carried(&load(settings), Verb::Read, 64).2;
    let served = latency(&[]);
    assert_eq!(latency(&["host.miss_latency=90ns"]), served);
    let missed = latency(&["host.ddio=false", "host.miss_latency=90ns"]);
    assert_eq!(missed, latency(&["host.ddio=false", "host.miss_latency=0ns"]) + Time::from_ns(90));
    assert!(missed > served);
}
