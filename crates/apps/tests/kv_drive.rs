//! The client role: every shipped workload against the store, what it reports and what it refuses.

mod common;

use offpath_apps::Stop;
use offpath_apps::kv::{
    self, ClientLoad, ClientReport, DriveError, DriveState, Home, KvError, Placement, Served, Spread,
    StoreConfig,
};
use offpath_fabric::local::{Local, LocalClock, LocalFabric};
use offpath_fabric::{Backend, Fabric, Role};
use offpath_quantity::Time;
use offpath_twin::{TwinBackend, TwinFabric};
use offpath_workload::{ClientOperation, Popularity, Workload};
use std::collections::BTreeMap;

fn shipped(letter: char) -> Workload {
    let path = format!("{}/../../workloads/workload{letter}", env!("CARGO_MANIFEST_DIR"));
    let smaller = [("recordcount", "300"), ("operationcount", "2000"), ("threadcount", "4")];
    let overrides = BTreeMap::from(smaller.map(|(key, value)| (key.to_string(), value.to_string())));
    Workload::load(path).expect("it is shipped").with_overrides(overrides).expect("it is a workload")
}

fn add_up(outcomes: Vec<offpath_fabric::Outcome<Result<ClientReport, DriveError>>>) -> ClientReport {
    let mut all = ClientReport::default();
    for outcome in outcomes {
        if let Some(report) = outcome.end.finished() {
            all.add(&report.unwrap_or_else(|error| panic!("{}: {error}", outcome.name)));
        }
    }
    all
}

fn assess(workload: &Workload, report: &ClientReport) {
    assert_eq!((report.wrong, report.absent, report.failed()), (0, 0, 0), "{}", workload.file);
    assert_eq!(report.total(), 3 * 2000, "{}", workload.file);
    for (operation, count) in report.operations() {
        let share = count as f64 / report.total() as f64;
        assert!(
            (share - workload.mix.share(operation)).abs() < 0.03,
            "{}: {operation} {share}",
            workload.file
        );
        let latency = report.latency(operation).expect("there were some");
        assert!(latency.p50 <= latency.p99 && latency.p99 <= latency.p999 && latency.p999 <= latency.max);
    }
    assert_eq!(ClientOperation::ALL.iter().filter(|kind| workload.mix.share(**kind) > 0.0).count(), {
        report.operations().count()
    });
}

#[test]
fn every_workload_without_scans_runs_in_every_backend() {
    for letter in ['a', 'b', 'c', 'd', 'f'] {
        for (placement, put_records) in [(Placement::HostOneSided, true), (Placement::SocCacheRead, false)] {
            let workload = shipped(letter);
            let mut options = StoreConfig::of_workload(&workload).expect("it fits").placed(placement);
            // Every client inserts as much as the workload says.
            options = StoreConfig { layout: StoreConfig::sized(1300, 1000).layout, ..options };
            if put_records {
                options.preload = 0;
            }
            let load = ClientLoad { put_records, ..ClientLoad::of_workload(workload.clone()) };
            let local = Local::new(7).clock(LocalClock::Manual);
            let run = local.run(kv::roles::<LocalFabric>(&options, &load, &DriveState::new(3), None));
            assess(&workload, &add_up(run.expect("the run ends").outcomes));
            let twin = TwinBackend::on(common::router(), 7);
            let count: fn(&TwinFabric) -> u64 = |fabric| fabric.snapshot().events;
            let run = twin.run(kv::roles(&options, &load, &DriveState::new(3), Some(count)));
            let report = add_up(run.expect("the run ends").outcomes);
            assess(&workload, &report);
            assert!(report.events_per_operation().is_some_and(|events| events > 1.0));
            assert!(report.per_second() > 1e5 && report.window > Time::ZERO);
        }
    }
}

#[test]
fn gets_are_spread_as_a_plan_says() {
    let workload = shipped('c');
    let mut options = StoreConfig::of_workload(&workload).expect("it fits").placed(Placement::SplitOneSided);
    options.warm = (0..300).collect();
    let shares = vec![(Placement::SocCacheRead, 0.76), (Placement::SocCacheSend, 0.24)];
    let load = ClientLoad { spread: Spread::Shares(shares), ..ClientLoad::of_workload(workload.clone()) };
    let run =
        Local::new(7).clock(LocalClock::Manual).run(kv::roles(&options, &load, &DriveState::new(3), None));
    let report = add_up(run.expect("the run ends").outcomes);
    assess(&workload, &report);
    assert!((report.share(Placement::SocCacheRead) - 0.76).abs() < 0.02);
    assert_eq!(report.gets.values().sum::<u64>(), 6000);
    assert_eq!(report.share(Placement::SplitOneSided), 0.0);
}

/// A cache that begins with the hottest records answers nearly what a plan counts on, also where misses bring nothing in; with
/// the first records it answers by their share.
#[test]
fn a_cache_warm_with_the_hottest_answers_what_a_plan_counts_on() {
    let workload = shipped('c');
    let hits = |warm: Vec<u64>| {
        let put = Placement::SocCacheRead;
        let mut options = StoreConfig::of_workload(&workload).expect("it fits").placed(put);
        options.layout.cache_slots = 256;
        options.warm = warm.into();
        let load = ClientLoad::of_workload(workload.clone());
        let backend = Local::new(7).clock(LocalClock::Manual);
        let run = backend.run(kv::roles(&options, &load, &DriveState::new(3), None));
        add_up(run.expect("the run ends").outcomes).cache_hit_ratio(put).expect("it looks into the cache")
    };
    let planned = Popularity::new(&workload).share_of_top(256);
    let (hottest, all) = (hits(workload.hottest_records(256)), hits(workload.hottest_records(1000)));
    // Sets of 16 slots leave a tenth of those out that fit as a whole (Poisson), the coldest of each.
    assert!((0.9 * planned..planned).contains(&hottest), "{hottest} of {planned}");
    // What takes their places is colder; 6000 gets tell a share to a hundredth.
    assert!((hottest..planned + 0.01).contains(&all), "{all} of {planned}");
    let first = hits((0..256).collect());
    assert!(first < hottest - 0.05, "{first}, and {hottest} of the hottest");
}

/// What a run says of the card's cache: nearly all gets of one that holds nearly every record, some of one that fills as it is
/// asked, and nothing of a placement that looks into none.
#[test]
fn gets_that_the_cache_served_are_counted() {
    let workload = shipped('c');
    let report = |warm: u64, put: Placement| {
        let mut options = StoreConfig::of_workload(&workload).expect("it fits").placed(put);
        // So many that few of the records share a slot.
        options.layout.cache_slots = 1 << 16;
        options.warm = (0..warm).collect();
        let load = ClientLoad::of_workload(workload.clone());
        let run = Local::new(7).clock(LocalClock::Manual).run(kv::roles(
            &options,
            &load,
            &DriveState::new(2),
            None,
        ));
        add_up(run.expect("the run ends").outcomes)
    };
    for placement in [Placement::SocCacheRead, Placement::SocCacheSend] {
        let (full, empty) = (report(1000, placement), report(0, placement));
        let ratio =
            |report: &ClientReport| report.cache_hit_ratio(placement).expect("it looks into the cache");
        assert!(ratio(&full) > 0.97, "{placement:?} {}", ratio(&full));
        // The card sees a key asked for only where it is asked: nobody fills a cache by READs.
        let filled = if placement.asks_the_card() { 0.05..0.95 } else { 0.0..0.001 };
        assert!(filled.contains(&ratio(&empty)), "{placement:?} {}", ratio(&empty));
        assert_eq!(full.cache_hit_ratio(Placement::SplitOneSided), None, "no get took it");
    }
    assert_eq!(report(1000, Placement::SplitOneSided).cache_hit_ratio(Placement::SplitOneSided), None);
}

#[test]
fn what_cannot_run_is_refused_by_name() {
    let of = |change: fn(&mut ClientLoad)| {
        let mut load = ClientLoad::of_workload(shipped('c'));
        change(&mut load);
        load.check().map_err(|error| error.to_string())
    };
    let scans = ClientLoad::of_workload(shipped('e')).check().expect_err("it has scans").to_string();
    assert!(scans.contains("workloade") && scans.contains("scanproportion=0"), "{scans}");
    assert!(of(|load| load.sessions = 0).is_err_and(|error| error.contains("at least 1")));
    assert!(of(|load| load.operations = None).is_err_and(|error| error.contains("window")));
    let too_long = BTreeMap::from([("fieldlength".to_string(), "6554".to_string())]);
    let workload = shipped('c').with_overrides(too_long).expect("it is a workload");
    assert!(matches!(StoreConfig::of_workload(&workload), Err(KvError::Shape { value: 65_540, .. })));
}

#[test]
fn a_run_of_another_home_is_refused() {
    let workload = shipped('c');
    let options = StoreConfig::of_workload(&workload).expect("it fits").placed(Placement::HostOneSided);
    let spread = Spread::Split(Placement::SocCacheSend, Placement::SplitOneSided);
    let load = ClientLoad { spread, ..ClientLoad::of_workload(workload) };
    let run =
        Local::new(7).clock(LocalClock::Manual).run(kv::roles(&options, &load, &DriveState::new(2), None));
    let run = run.expect("the run ends");
    for outcome in run.outcomes.into_iter().filter(|outcome| outcome.name.role == "client") {
        let refused = outcome.end.finished().expect("it ended").expect_err("it has no index on the card");
        let (asked, needed) = (Placement::SocCacheSend, Home::Soc);
        assert_eq!(refused, DriveError::Store(KvError::WrongHome { asked, needed }));
    }
}

/// What a role of a stopped run gives.
#[derive(Debug)]
enum Part {
    Served(Served),
    Drove(ClientReport),
}

#[test]
fn servers_end_when_they_are_asked_to() {
    let workload = shipped('a');
    let options = StoreConfig::of_workload(&workload).expect("it fits").placed(Placement::SocIndex);
    let stop = Stop::default();
    let server = |home: Home| {
        let (options, stop) = (options.clone(), stop.clone());
        Role::new(home.role(), 0, move |fabric: LocalFabric| {
            let (options, stop) = (options.clone(), stop.clone());
            async move {
                kv::serve(fabric, home, options, &stop).await.map(Part::Served).map_err(DriveError::from)
            }
        })
    };
    let load = ClientLoad::of_workload(workload);
    let (of_client, stopping, shared) = (options.clone(), stop.clone(), DriveState::new(1));
    let client = Role::new("client", 0, move |fabric: LocalFabric| {
        let (options, load, stop) = (of_client.clone(), load.clone(), stopping.clone());
        let shared = shared.clone();
        async move {
            let report = kv::client(fabric.clone(), options, load, shared, None).await;
            fabric.sleep(Time::from_ms(5)).await;
            stop.ask();
            report.map(Part::Drove)
        }
    });
    let roles = vec![server(Home::Host), server(Home::Soc), client];
    let run = Local::new(3).clock(LocalClock::Manual).run(roles).expect("the run ends");
    let parts: Vec<Part> = run
        .outcomes
        .into_iter()
        .map(|outcome| outcome.end.finished().expect("every role ends").expect("and well"))
        .collect();
    let [Part::Served(host), Part::Served(soc), Part::Drove(report)] = &parts[..] else {
        panic!("{parts:?}")
    };
    let count =
        |kind| report.operations().find(|(operation, _)| *operation == kind).map_or(0, |(_, count)| count);
    // The card and four sessions connect to the host, the sessions to the card.
    assert_eq!((host.connections, soc.connections), (5, 4));
    assert_eq!((soc.gets, soc.changes), (count(ClientOperation::Read), count(ClientOperation::Update)));
    assert_eq!((host.gets, host.changes), (0, 0));
}
