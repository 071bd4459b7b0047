//! The store on the twin: what its gets demand and reach, beside the step lists of its design, and how
//! its clients split themselves.

mod common;
#[path = "../benches/common/mod.rs"]
mod store;

use offpath_apps::kv::{
    self, ClientLoad, ClientReport, DriveState, Placement, Spread, StoreClient, StoreKey, value_of,
};
use offpath_fabric::{Backend, Fabric, Role};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, PathOperation as Routed, Router, Verb};
use offpath_twin::backend::{Observer, Recorded};
use offpath_twin::{TwinBackend, TwinFabric};
use offpath_workload::ClientOperation;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use store::{CLIENTS, RECORDS};

/// What `gets` gets demand in all, set-up included.
fn recorded(router: &Arc<Router>, placement: Placement, gets: u64) -> Recorded {
    let observer = Observer::new();
    let label = observer.begin(0);
    let options = store::options(placement);
    let (of_host, of_soc, of_client) = (options.clone(), options.clone(), options);
    let host = move |fabric: TwinFabric| {
        let options = of_host.clone();
        async move { kv::host(fabric.labelled(label), options).await.expect("the host serves") }
    };
    let soc = move |fabric: TwinFabric| {
        let options = of_soc.clone();
        async move { kv::soc(fabric.labelled(label), options).await.expect("the card serves") }
    };
    let client = move |fabric: TwinFabric| {
        let options = of_client.clone();
        async move {
            let mut client =
                StoreClient::connect(&fabric.labelled(label), &options).await.expect("it connects");
            for get in 0..gets {
                let key = get % RECORDS;
                let got = client.get(StoreKey::from_number(key)).await.expect("it is there");
                assert_eq!(got, Some(value_of(key, 0, 64)));
            }
        }
    };
    let roles = vec![
        Role::new("host", 0, host).in_background(),
        Role::new("soc", 0, soc).in_background(),
        Role::new("client", 0, client),
    ];
    let backend = TwinBackend::on(router.clone(), 1).with_observer(&observer);
    backend.run(roles).expect("the run ends");
    observer.end(label);
    observer.recorded().remove(&0).expect("it ended")
}

/// Station time of one get by the design's step list: verbs with their bytes, and processor time.
fn listed(router: &Router, placement: Placement) -> BTreeMap<String, f64> {
    let mut demand = Demand::default();
    let mut verb = |verb: Verb, path: &str, bytes: u64| {
        let path = router.path(path).expect("a path of the design");
        let route = router.route(&Routed::new(verb, path, Bytes::new(bytes))).expect("it has a route");
        demand.add(&route.demand(router));
    };
    let (client, card) = match placement {
        Placement::HostOneSided => {
            verb(Verb::Read, "client-host", 64);
            verb(Verb::Read, "client-host", 80);
            (300, 0)
        }
        Placement::SocLookup => {
            verb(Verb::SendDatagram, "client-soc", 16);
            verb(Verb::Read, "soc-host-dma", 64);
            verb(Verb::Read, "soc-host-dma", 80);
            verb(Verb::SendDatagram, "soc-client", 80);
            (150, 80)
        }
        Placement::SocIndex => {
            verb(Verb::SendDatagram, "client-soc", 16);
            verb(Verb::Read, "soc-host-dma", 80);
            verb(Verb::SendDatagram, "soc-client", 80);
            (150, 80)
        }
        Placement::SplitOneSided => {
            verb(Verb::Read, "client-soc", 64);
            verb(Verb::Read, "client-host", 80);
            (300, 0)
        }
        Placement::SocCacheRead => {
            verb(Verb::Read, "client-soc", 64);
            verb(Verb::Read, "client-soc", 80);
            (300, 0)
        }
        Placement::SocCacheSend => {
            verb(Verb::SendDatagram, "client-soc", 16);
            verb(Verb::SendDatagram, "soc-client", 80);
            (150, 80)
        }
    };
    let named = |station: &offpath_route::StationId| router.stations()[station.index()].name.clone();
    let mut all: BTreeMap<String, f64> =
        demand.time.iter().map(|(station, time)| (named(station), time.ps() as f64)).collect();
    *all.entry("client.cpu".into()).or_default() += client as f64 * 1e3;
    *all.entry("soc.cpu".into()).or_default() += card as f64 * 1e3;
    all.retain(|_, time| *time > 0.0);
    all
}

#[test]
fn the_implemented_store_demands_what_its_step_lists_say() {
    let router = common::router();
    for placement in Placement::ALL {
        let (few, many) = (recorded(&router, placement, 256), recorded(&router, placement, 256 + 1024));
        let mut implemented: BTreeMap<String, f64> = BTreeMap::new();
        for (station, moments) in &many.time {
            let before = few.time.get(station).map_or(0.0, |moments| moments.sum);
            let time = (moments.sum - before) / 1024.0;
            if time > 0.0 {
                implemented.insert(router.stations()[station.index()].name.clone(), time);
            }
        }
        let listed = listed(&router, placement);
        let names: Vec<&String> = implemented.keys().collect();
        assert_eq!(names, listed.keys().collect::<Vec<_>>(), "{placement:?}");
        for (name, time) in &listed {
            let error = implemented[name] / time - 1.0;
            assert!(
                error.abs() < 0.02,
                "{placement:?} {name}: {} ps implemented, {time} ps listed",
                implemented[name]
            );
        }
    }
}

/// What all clients see of uniform gets with 40 sessions each.
fn reached(router: &Arc<Router>, placement: Placement, spread: Spread, window: Time) -> ClientReport {
    let load = store::load(store::gets(), 40, spread, window);
    store::run(router, &store::options(placement), &load)
}

#[test]
fn the_implemented_store_reaches_what_the_design_predicts() {
    let router = common::router();
    // Predictions of the step lists in millions of gets a second, and how far they may be off.
    for (placement, predicted, tolerance) in [
        (Placement::HostOneSided, 50.0, 0.05),
        (Placement::SplitOneSided, 76.6, 0.05),
        (Placement::SocCacheSend, 17.8, 0.05),
    ] {
        let report = reached(&router, placement, Spread::One, Time::from_us(200));
        let rate = report.per_second() / 1e6;
        let events = report.events_per_operation().expect("the twin counts");
        println!("{placement:?}: {rate:.2} M/s, {events:.1} events a get");
        assert!((rate / predicted - 1.0).abs() < tolerance, "{placement:?}: {rate:.2} M/s, not {predicted}");
        assert!(events < 25.0, "{placement:?}: {events:.1} events a get");
        assert_eq!((report.wrong, report.absent, report.failed()), (0, 0, 0));
        assert_eq!(report.share(placement), 1.0);
    }
}

/// A card whose receive queue is full drops requests, and a session whose request was dropped waits as long as its
/// patience. The operations that end then tell of the other sessions alone.
#[test]
fn sessions_without_an_answer_at_the_end_of_the_window_are_told() {
    let router = common::router();
    let window = Time::from_ms(2);
    let run = |sessions: u32, patience: Time| {
        let load = store::load(store::gets(), sessions, Spread::One, window);
        let options = kv::StoreConfig { answer_timeout: patience, ..store::options(Placement::SocCacheSend) };
        store::run(&router, &options, &load)
    };
    let mean = |report: &ClientReport| report.latency(ClientOperation::Read).expect("there were gets").mean;
    for patience in [Time::from_ms(10), Time::from_us(1500)] {
        let report = run(128, patience);
        let unanswered = report.unanswered().expect("256 requests have room, 1408 come");
        // Little's law: sessions over rate.
        let true_mean = 128.0 * f64::from(CLIENTS) / report.per_second();
        let said = unanswered.mean.expect("it is far from the measured mean").as_seconds();
        println!("{patience}: {unanswered:?}, measured {}, {} retries", mean(&report), report.retries);
        assert!((said / true_mean - 1.0).abs() < 0.02, "{patience}: {said} s, not {true_mean} s");
        assert!(mean(&report).as_seconds() < 0.9 * true_mean, "{patience}: {}", mean(&report));
        assert!((900..1408).contains(&unanswered.sessions), "{patience}: {unanswered:?}");
        assert!(unanswered.oldest.times(10) > patience.min(window).times(9), "{patience}: {unanswered:?}");
        // Those who ask again within the window count, though few of them are answered in it.
        let asked_again = if patience < window { 900..1408 } else { 0..1 };
        assert!(asked_again.contains(&report.retries), "{patience}: {} retries", report.retries);
    }
    let healthy = run(16, Time::from_ms(1));
    assert_eq!((healthy.unanswered(), healthy.retries), (None, 0));
}

#[test]
fn clients_split_themselves_as_well_as_the_best_share() {
    let router = common::router();
    let (card, reads) = (Placement::SocCacheSend, Placement::SplitOneSided);
    let mut best = (0.0, 0);
    for percent in [10, 15, 20, 25, 30, 35] {
        let shares = vec![(card, f64::from(percent)), (reads, f64::from(100 - percent))];
        let report = reached(&router, card, Spread::Shares(shares), Time::from_us(200));
        let rate = report.per_second() / 1e6;
        println!("{percent}% by messages: {rate:.2} M/s");
        assert!((report.share(card) * 100.0 - f64::from(percent)).abs() < 1.0, "{}", report.share(card));
        if rate > best.0 {
            best = (rate, percent);
        }
    }
    let report = reached(&router, card, Spread::Split(card, reads), Time::from_ms(1));
    let rate = report.per_second() / 1e6;
    println!("split by itself: {rate:.2} M/s, {:.3} by messages", report.share(card));
    assert!(rate > 0.97 * best.0, "{rate:.2} M/s, the best share of {}% gives {:.2}", best.1, best.0);
}

/// How long after a change of load the throughput of every later window of 250 us stays within 3% of
/// the mean of the last ten, and that mean in gets per second.
fn settling(windows: &[u64]) -> (Time, f64) {
    let last = &windows[windows.len() - 10..];
    let mean = last.iter().sum::<u64>() as f64 / 10.0;
    let off = |ended: &u64| (*ended as f64 / mean - 1.0).abs() > 0.03;
    let unsettled = windows.iter().rposition(off).map_or(0, |index| index + 1);
    (WINDOW.times(unsettled as u64), mean / WINDOW.as_seconds())
}

const WINDOW: Time = Time::from_us(250);

#[test]
fn clients_settle_again_when_the_load_doubles_or_halves() {
    let router = common::router();
    let (card, reads) = (Placement::SocCacheSend, Placement::SplitOneSided);
    let options = store::options(card);
    let shared = DriveState::new(CLIENTS);
    shared.active.set(20);
    let load = ClientLoad {
        window: Some(Time::from_ms(1000)),
        ..store::load(store::workload_c(), 40, Spread::Split(card, reads), Time::ZERO)
    };
    let mut roles = kv::roles(&options, &load, &shared, None);
    // The windows of each phase: as it begins, at twice the load, at half of that.
    let seen: Rc<RefCell<Vec<Vec<u64>>>> = Rc::default();
    let (changing, phases) = (shared.clone(), seen.clone());
    roles.push(Role::new("load", 0, move |fabric: TwinFabric| {
        let (shared, phases) = (changing.clone(), phases.clone());
        async move {
            while shared.ready.get() < u64::from(CLIENTS * 40) {
                fabric.sleep(WINDOW).await;
            }
            for active in [20, 40, 20] {
                shared.active.set(active);
                let mut windows = Vec::new();
                for _ in 0..30 {
                    let before = shared.ended.get();
                    fabric.sleep(WINDOW).await;
                    windows.push(shared.ended.get() - before);
                }
                phases.borrow_mut().push(windows);
            }
            shared.stop.ask();
            Ok(ClientReport::default())
        }
    }));
    let backend = TwinBackend::on(router, 1).with_placement("load", "host");
    backend.run(roles).expect("the run ends");
    for (phase, windows) in ["20 sessions a client", "doubled", "halved"].iter().zip(seen.borrow().iter()) {
        let (settled, rate) = settling(windows);
        println!("{phase}: settled after {settled}, {:.2} M/s", rate / 1e6);
        assert!(settled <= Time::from_ms(5), "{phase}: settled after {settled}; gets by window: {windows:?}");
    }
}
