//! The store on the twin: what its gets demand and reach, beside the step lists of its design, and how
//! its clients split themselves.

mod common;

use offpath_apps::kv::{
    self, Client, Driven, Fetch, Key, Options, Placement, Shared, Splitter, drive, value_of,
};
use offpath_fabric::{Fabric, Role, World};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, Operation as Routed, Router, Verb};
use offpath_twin::world::{Observer, Recorded};
use offpath_twin::{TwinFabric, TwinWorld};
use offpath_workload::Workload;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

const RECORDS: u64 = 2000;
/// Client machines of the testbed.
const CLIENTS: u32 = 11;

/// A store without chains and with room for every record in the cache.
fn options(placement: Placement) -> Options {
    let mut options = Options::sized(RECORDS, 64).placed(placement);
    options.layout.root_buckets = 16 * RECORDS;
    options.layout.cache_slots = 1 << 24;
    options.preload = RECORDS;
    options.warm = RECORDS;
    options.hot_share = 0;
    options.fetch = Fetch::Engine("dma".into());
    options
}

fn workload() -> Workload {
    Workload::parse(
        &format!(
            "recordcount={RECORDS}\nreadproportion=1\nupdateproportion=0\nrequestdistribution=uniform\n"
        ),
        "uniform gets",
    )
    .expect("it is a workload")
}

fn servers(options: &Options) -> Vec<Role<TwinFabric, ()>> {
    let (of_host, of_soc) = (options.clone(), options.clone());
    let host = move |fabric| {
        let options = of_host.clone();
        async move { kv::host(fabric, options).await.expect("the host serves") }
    };
    let soc = move |fabric| {
        let options = of_soc.clone();
        async move { kv::soc(fabric, options).await.expect("the card serves") }
    };
    vec![Role::new("host", 0, host).in_background(), Role::new("soc", 0, soc).in_background()]
}

/// What `gets` gets demand in all, set-up included.
fn recorded(router: &Rc<Router>, placement: Placement, gets: u64) -> Recorded {
    let observer = Observer::new();
    let label = observer.begin(0);
    let options = options(placement);
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
            let mut client = Client::connect(&fabric.labelled(label), &options).await.expect("it connects");
            for get in 0..gets {
                let key = get % RECORDS;
                let got = client.get(Key::from_number(key)).await.expect("it is there");
                assert_eq!(got, Some(value_of(key, 0, 64)));
            }
        }
    };
    let roles = vec![
        Role::new("host", 0, host).in_background(),
        Role::new("soc", 0, soc).in_background(),
        Role::new("client", 0, client),
    ];
    let world = TwinWorld::on(router.clone(), 1).with_observer(&observer);
    world.run(roles).expect("the run ends");
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
        Placement::A1 => {
            verb(Verb::Read, "client-host", 64);
            verb(Verb::Read, "client-host", 80);
            (300, 0)
        }
        Placement::A2 => {
            verb(Verb::SendDatagram, "client-soc", 16);
            verb(Verb::Read, "soc-host-dma", 64);
            verb(Verb::Read, "soc-host-dma", 80);
            verb(Verb::SendDatagram, "soc-client", 80);
            (150, 80)
        }
        Placement::A3 => {
            verb(Verb::SendDatagram, "client-soc", 16);
            verb(Verb::Read, "soc-host-dma", 80);
            verb(Verb::SendDatagram, "soc-client", 80);
            (150, 80)
        }
        Placement::A4 => {
            verb(Verb::Read, "client-soc", 64);
            verb(Verb::Read, "client-host", 80);
            (300, 0)
        }
        Placement::A5Read => {
            verb(Verb::Read, "client-soc", 64);
            verb(Verb::Read, "client-soc", 80);
            (300, 0)
        }
        Placement::A5Send => {
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
fn the_coded_store_demands_what_its_step_lists_say() {
    let router = common::router();
    for placement in Placement::ALL {
        let (few, many) = (recorded(&router, placement, 256), recorded(&router, placement, 256 + 1024));
        let mut coded: BTreeMap<String, f64> = BTreeMap::new();
        for (station, moments) in &many.time {
            let before = few.time.get(station).map_or(0.0, |moments| moments.sum);
            let time = (moments.sum - before) / 1024.0;
            if time > 0.0 {
                coded.insert(router.stations()[station.index()].name.clone(), time);
            }
        }
        let listed = listed(&router, placement);
        let names: Vec<&String> = coded.keys().collect();
        assert_eq!(names, listed.keys().collect::<Vec<_>>(), "{placement:?}");
        for (name, time) in &listed {
            let error = coded[name] / time - 1.0;
            assert!(error.abs() < 0.02, "{placement:?} {name}: {} ps coded, {time} ps listed", coded[name]);
        }
    }
}

/// What a run of many clients shows.
struct Reached {
    per_second: f64,
    /// The first placement's share at each client's end, where they split.
    shares: Vec<f64>,
    events_per_get: f64,
    driven: Vec<Driven>,
}

/// Gets per second of all clients with `sessions` sessions each.
fn reached(
    router: &Rc<Router>,
    options: &Options,
    sessions: u32,
    splitter: Option<&dyn Fn() -> Splitter>,
    window: Time,
) -> Reached {
    let shared = Rc::new(Shared::default());
    shared.active.set(sessions);
    let splitters: Vec<Option<Rc<Splitter>>> =
        (0..CLIENTS).map(|_| splitter.map(|make| Rc::new(make()))).collect();
    let counted = Rc::new(Cell::new((0u64, 0u64)));
    let driven: Rc<RefCell<Vec<Driven>>> = Rc::default();
    let mut roles = servers(options);
    for instance in 0..CLIENTS {
        let (shared, counted, driven) = (shared.clone(), counted.clone(), driven.clone());
        let (options, splitter) = (options.clone(), splitters[instance as usize].clone());
        roles.push(Role::new("client", instance, move |fabric: TwinFabric| {
            let (shared, counted, driven) = (shared.clone(), counted.clone(), driven.clone());
            let (options, splitter) = (options.clone(), splitter.clone());
            async move {
                let tasks: Vec<_> = (0..sessions)
                    .map(|session| {
                        let (own, options, splitter) = (fabric.clone(), options.clone(), splitter.clone());
                        let shared = shared.clone();
                        fabric.spawn(async move {
                            drive(&own, &options, &workload(), session, u64::MAX, splitter, &shared).await
                        })
                    })
                    .collect();
                if instance == 0 {
                    while shared.connected.get() < sessions * CLIENTS {
                        fabric.sleep(Time::from_us(5)).await;
                    }
                    fabric.sleep(Time::from_us(300)).await;
                    let before = (shared.ended.get(), fabric.snapshot().events);
                    fabric.sleep(window).await;
                    let after = (shared.ended.get(), fabric.snapshot().events);
                    counted.set((after.0 - before.0, after.1 - before.1));
                    shared.stop.set(true);
                }
                for task in tasks {
                    let one = task.await.expect("it ends").expect("every get succeeds");
                    driven.borrow_mut().push(one);
                }
            }
        }));
    }
    TwinWorld::on(router.clone(), 1).run(roles).expect("the run ends");
    let (gets, events) = counted.get();
    Reached {
        per_second: gets as f64 / window.as_seconds(),
        shares: splitters.iter().flatten().map(|splitter| splitter.share()).collect(),
        events_per_get: events as f64 / gets as f64,
        driven: driven.take(),
    }
}

#[test]
fn the_coded_store_reaches_what_the_design_predicts() {
    let router = common::router();
    // Predictions of the step lists in millions of gets a second, and how far they may be off.
    for (placement, predicted, tolerance) in
        [(Placement::A1, 50.0, 0.05), (Placement::A4, 57.6, 0.05), (Placement::A5Send, 17.8, 0.05)]
    {
        let reached = reached(&router, &options(placement), 40, None, Time::from_us(200));
        let rate = reached.per_second / 1e6;
        println!("{placement:?}: {rate:.2} M/s, {:.1} events a get", reached.events_per_get);
        assert!((rate / predicted - 1.0).abs() < tolerance, "{placement:?}: {rate:.2} M/s, not {predicted}");
        assert!(reached.driven.iter().all(|one| one.wrong == 0 && one.absent == 0));
    }
}

#[test]
fn clients_split_themselves_as_well_as_the_best_share() {
    let router = common::router();
    let options = options(Placement::A5Send);
    let pair = (Placement::A5Send, Placement::A4);
    let mut best = (0.0, 0.0);
    for percent in [10, 15, 20, 25, 30, 35] {
        let share = f64::from(percent) / 100.0;
        let fixed = || Splitter::fixed(pair.0, pair.1, share);
        let rate = reached(&router, &options, 40, Some(&fixed), Time::from_us(200)).per_second / 1e6;
        println!("{percent}% by messages: {rate:.2} M/s");
        if rate > best.0 {
            best = (rate, share);
        }
    }
    let own = || Splitter::new(pair.0, pair.1);
    let reached = reached(&router, &options, 40, Some(&own), Time::from_ms(1));
    let rate = reached.per_second / 1e6;
    println!("split by itself: {rate:.2} M/s, shares {:.3?}", reached.shares);
    assert!(rate > 0.97 * best.0, "{rate:.2} M/s, the best share of {} gives {:.2}", best.1, best.0);
}
