//! Queues follow queueing theory, and losses follow the rules of a reliable connection.

use offpath_profile::{Library, Request};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Operation, Pick, Route, Router, Verb, Visit};
use offpath_twin::{
    Arrivals, Crossing, Engine, Failure, Faults, Load, Occurrence, Retransmission, Rule, Seed, Tag,
    batch_means, run,
};
use std::rc::Rc;

fn router() -> Rc<Router> {
    let system = Library::builtin().load(&Request { device: "bluefield2", ..Request::default() }).unwrap();
    Rc::new(Router::new(&system).unwrap())
}

fn read(router: &Router, path: &str) -> Route {
    router.route(&Operation::new(Verb::Read, router.path(path).unwrap(), Bytes::new(64))).unwrap()
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
    let route = Rc::new(Route { visits: vec![visit], ..read(&router, "soc-host") });
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

fn lossy(router: &Rc<Router>, until: Time, retransmission: Retransmission) -> (Occurrence, Time) {
    let mut engine = Engine::new(router.clone(), Seed::new(3));
    engine.set_retransmission(retransmission);
    let rule = Rule { from: Time::ZERO, until, between: None, probability: 1.0, crossing: Crossing::Drop };
    engine.inject(Faults::new(vec![rule], Seed::new(4)));
    let route = Rc::new(read(router, "client-soc"));
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
    assert_eq!(occurrence, Occurrence::Failed { tag: Tag(1), why: Failure::RetryExceeded });
    assert!(at >= Time::from_us(40) && at < Time::from_us(42), "failed at {at}: four timeouts of 10 us");
}

#[test]
fn losses_are_counted() {
    let router = router();
    let rule = Rule {
        from: Time::ZERO,
        until: Time::from_ms(100),
        between: None,
        probability: 0.3,
        crossing: Crossing::Drop,
    };
    let load = Load {
        mix: vec![(Rc::new(read(&router, "client-soc")), 1.0)],
        arrivals: Arrivals::Closed { in_flight: 32 },
        warm_up: Time::ZERO,
        window: Time::from_ms(20),
        seed: Seed::new(5),
        faults: Some(Faults::new(vec![rule], Seed::new(6))),
    };
    let observed = run(&router, &load).unwrap();
    let [started, done, failed, under_way] = observed.balance;
    assert_eq!(started, done + failed + under_way);
    assert_eq!((done, failed, under_way), (observed.completed, observed.failed, 32));
    assert!(failed > 0 && done > 20 * failed, "both crossings lost 0.3 of the time: {:?}", observed.balance);
}
