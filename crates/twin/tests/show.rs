//! Prints capacity beside the loaded twin for a few operations.

use offpath_profile::{Library, Request};
use offpath_quantity::*;
use offpath_route::*;
use offpath_twin::*;
use std::rc::Rc;
#[test]
fn show() {
    let system = Library::builtin().load(&Request { device: "bluefield2", ..Request::default() }).unwrap();
    let r = Rc::new(Router::new(&system).unwrap());
    for (p, v, n, k) in [
        ("client-soc", Verb::Read, 64, 512),
        ("client-soc", Verb::Read, 64, 1),
        ("client-host", Verb::Read, 64, 512),
        ("client-soc", Verb::Read, 0, 1024),
        ("client-host", Verb::Read, 4096, 512),
        ("client-host", Verb::Write, 64, 1024),
        ("client-host", Verb::Write, 4096, 512),
        ("soc-host", Verb::Read, 262144, 16),
        ("soc-host-dma", Verb::Read, 262144, 16),
        ("client-soc", Verb::Read, 1 << 30, 1),
        ("client-soc", Verb::Send, 64, 1024),
    ] {
        let op = Operation::new(v, r.path(p).unwrap(), Bytes::new(n));
        let route = Rc::new(r.route(&op).unwrap());
        let (c, s) = route.demand(&r).capacity(&r).unwrap();
        let lat = route.latency(&r);
        let window = Time::from_ps(((20_000.0 / c * 1e12) as u64).max(lat.ps() * 20)).min(Time::from_ms(900));
        let start = std::time::Instant::now();
        let o = run(
            &r,
            &Load {
                mix: vec![(route, 1.0)],
                arrivals: Arrivals::Closed { in_flight: k },
                warm_up: lat.times(10).min(Time::from_ms(200)),
                window,
                seed: Seed::new(1),
                faults: None,
            },
        )
        .unwrap();
        let el = start.elapsed().as_secs_f64();
        println!(
            "{p} {v} {n} x{k}: cap {:.3} twin {:.3} M/s ({:.4}) unloaded {} mean {} events/op {:.2} {:.3} M ops/s wall; {}; little {:.2} balance {:?}",
            c / 1e6,
            o.throughput_per_s / 1e6,
            o.throughput_per_s / c,
            lat,
            o.latencies.mean().unwrap_or_default(),
            o.events_per_operation,
            o.completed as f64 / el / 1e6,
            r.stations()[s.index()].name,
            o.mean_in_flight,
            o.balance
        );
    }
}
