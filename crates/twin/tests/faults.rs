//! What a station that is slow for a while costs those who use it.

use offpath_fabric::*;
use offpath_profile::Library;
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation as Routed, Router, StationId, Verb};
use offpath_twin::backend::SlowStation;
use offpath_twin::{TwinBackend, TwinFabric};
use std::cell::RefCell;
use std::rc::Rc;

const PAYLOAD: u64 = 4096;
const BURST: u64 = 64;
const FACTOR: u64 = 20;
/// When bursts begin: the second while the station is slow.
const BEGUN: [Time; 3] = [Time::from_us(500), Time::from_us(1500), Time::from_us(4500)];

fn backend() -> TwinBackend {
    let request = offpath_profile::SystemRequest { device: "bluefield2", ..Default::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    TwinBackend::new(&system, 1).expect("a shipped profile has routes")
}

/// What a client's bursts of READs of the host take, and a microsecond of its processor before each.
fn bursts(slow: &str) -> [(Time, Time); 3] {
    let (lent, took) = (Rc::new(RefCell::new(None)), Rc::new(RefCell::new(Vec::new())));
    let lends = lent.clone();
    let server = Role::new("host", 0, move |f: TwinFabric| {
        let lends = lends.clone();
        async move {
            let region = f.register("host", PAYLOAD, Access::ALL).unwrap();
            *lends.borrow_mut() = Some(region.remote());
            let queue_pair = f.create_queue_pair(QueuePairOptions::rc()).unwrap();
            f.listen("work").unwrap().accept(&queue_pair).await.unwrap();
            std::future::pending().await
        }
    });
    let takes = took.clone();
    let client = Role::new("client", 0, move |f: TwinFabric| {
        let (lent, takes) = (lent.clone(), takes.clone());
        async move {
            let queue_pair = f.create_queue_pair(QueuePairOptions::rc()).unwrap();
            f.connect(&queue_pair, "host", 0, "work").await.unwrap();
            let region = f.register("client", PAYLOAD, Access::ALL).unwrap();
            let remote: RemoteRegion = lent.borrow().expect("the host lends before it accepts");
            for moment in BEGUN {
                f.sleep_until(moment).await;
                f.compute(Work::Time(Time::from_us(1))).await;
                let computed = f.now() - moment;
                let began = f.now();
                let posted = (0..BURST).map(|_| queue_pair.read(region.all(), remote.at(0)).unwrap());
                for completion in posted.collect::<Vec<_>>() {
                    completion.await.success().unwrap();
                }
                takes.borrow_mut().push((f.now() - began, computed));
            }
        }
    });
    let slow = SlowStation {
        station: slow.into(),
        instance: 0,
        factor: FACTOR as f64,
        from: Time::from_us(1000),
        until: Time::from_us(4000),
    };
    let run = backend().with_slow_station(slow).run(vec![client, server.in_background()]);
    run.expect("the run ends").outcomes.remove(0).end.finished().expect("the client ends well");
    took.take().try_into().expect("three bursts")
}

fn demand(router: &Router) -> Vec<(StationId, Time)> {
    let path = router.path("client-host").expect("the path exists");
    let route = router.route(&Routed::new(Verb::Read, path, Bytes::new(PAYLOAD))).expect("the route exists");
    route.demand(router).time.into_iter().collect()
}

#[test]
fn a_slow_station_costs_so_many_times_its_demand_and_only_meanwhile() {
    let router = backend().router().clone();
    let mut looked_at = 0;
    for (station, time) in demand(&router) {
        let station = &router.stations()[station.index()];
        let [before, meanwhile, after] = bursts(&station.name);
        assert_eq!(before, after, "{}", station.name);
        // The station is kept for longer; the last READ goes on as soon as it did before.
        let servers = station.servers() / station.instances;
        let least = time.times((BURST - 1) * FACTOR).ps() / servers;
        if servers == 1 && least > 2 * before.0.ps() {
            looked_at += 1;
            let took = meanwhile.0.ps();
            assert!(
                took >= least && took < least + least / 10 + before.0.ps(),
                "{}: {took} ps",
                station.name
            );
        }
    }
    assert!(looked_at >= 5, "{looked_at} stations bind when they are slow");
}

#[test]
fn a_slow_processor_computes_slowly() {
    let us = Time::from_us(1);
    assert_eq!(bursts("client.cpu").map(|(_, computed)| computed), [us, us.times(FACTOR), us]);
}
