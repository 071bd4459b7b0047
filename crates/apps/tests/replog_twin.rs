//! The log on the twin: what its chunks demand and reach, beside the step lists of its design, and where
//! the host's time goes.

mod common;

use offpath_apps::replog::{self, Driven, LogAlternative, LogConfig, LogCosts, WriteLoad, drive};
use offpath_fabric::{Backend, Fabric, Role, RoleName, Work};
use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, PathOperation as Routed, Router, Verb};
use offpath_twin::backend::{Observer, Recorded};
use offpath_twin::{TwinBackend, TwinFabric};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The chunk of the design.
const CHUNK: u64 = 256 * 1024;

fn options(alternative: LogAlternative) -> LogConfig {
    LogConfig { compress: false, ..LogConfig::new(alternative, vec![RoleName::new("backup", 0)]) }
}

/// The backup and the card, labelled where demands are recorded.
fn others(
    options: &LogConfig,
    label: impl Fn(TwinFabric) -> TwinFabric + Clone + 'static,
) -> Vec<Role<TwinFabric, Option<Driven>>> {
    let (of_backup, of_card, other) = (options.clone(), options.clone(), label.clone());
    let backup = Role::new("backup", 0, move |fabric| {
        let fabric = label(fabric);
        let options = of_backup.clone();
        async move {
            replog::backup(fabric, options).await.expect("the backup serves");
            None
        }
    });
    let card = Role::new("soc", 0, move |fabric| {
        let fabric = other(fabric);
        let options = of_card.clone();
        async move {
            replog::card(fabric, options).await.expect("the card serves");
            None
        }
    });
    vec![backup.in_background(), card.in_background()]
}

/// What `chunks` chunks demand in all, set-up included.
fn recorded(router: &Arc<Router>, options: &LogConfig, chunks: u64) -> Recorded {
    let observer = Observer::new();
    let label = observer.begin(0);
    let mut roles = others(options, move |fabric| fabric.labelled(label));
    let of_host = options.clone();
    roles.push(Role::new("host", 0, move |fabric: TwinFabric| {
        let options = of_host.clone();
        async move {
            let load = WriteLoad { sessions: 1, writes: chunks, bytes: CHUNK, compressible_percent: 0 };
            let driven = drive(&fabric.labelled(label), &options, &load).await.expect("it writes");
            // The same end for every number of chunks, so that keeping connections up costs the same.
            fabric.sleep_until(Time::from_ms(20)).await;
            Some(driven)
        }
    }));
    TwinBackend::on(router.clone(), 1).with_observer(&observer).run(roles).expect("the run ends");
    observer.end(label);
    observer.recorded().remove(&0).expect("it ended")
}

/// The demand of the design's step lists: the verbs that carry the chunk.
fn listed(router: &Router, alternative: LogAlternative) -> BTreeMap<String, f64> {
    let steps: &[(Verb, &str)] = match alternative {
        LogAlternative::CardPullsByRead => &[(Verb::Read, "soc-host"), (Verb::Write, "soc-backup")],
        LogAlternative::CardPullsByEngine => &[(Verb::Read, "soc-host-dma"), (Verb::Write, "soc-backup")],
        _ => &[(Verb::Write, "host-backup")],
    };
    let mut demand = Demand::default();
    for (verb, path) in steps {
        let path = router.path(path).expect("a path of the design");
        let route = router.route(&Routed::new(*verb, path, Bytes::new(CHUNK))).expect("it has a route");
        demand.add(&route.demand(router));
    }
    let named = |station: &offpath_route::StationId| router.stations()[station.index()].name.clone();
    demand.time.iter().map(|(station, time)| (named(station), time.ps() as f64)).collect()
}

#[test]
fn the_implemented_log_demands_what_its_step_lists_say() {
    let router = common::router();
    for alternative in
        [LogAlternative::CardPullsByRead, LogAlternative::CardPullsByEngine, LogAlternative::HostWrites]
    {
        let options = options(alternative);
        let (few, many) = (recorded(&router, &options, 4), recorded(&router, &options, 4 + 64));
        let mut implemented: BTreeMap<String, f64> = BTreeMap::new();
        for (station, moments) in &many.time {
            let before = few.time.get(station).map_or(0.0, |moments| moments.sum);
            implemented
                .insert(router.stations()[station.index()].name.clone(), (moments.sum - before) / 64.0);
        }
        let listed = listed(&router, alternative);
        assert!(listed.keys().all(|name| implemented.contains_key(name)), "{alternative:?}");
        for (name, time) in &implemented {
            let step = listed.get(name).copied().unwrap_or(0.0);
            println!("{alternative:?} {name}: {time:.0} ps implemented, {step:.0} ps listed");
            // Beside the chunk go a header of 32 B, a notice of 24 B and acknowledgements without payload.
            // What carries bytes is 0.05% busier with the header, and a few packets longer: 12 ns hold 8
            // of 24 B at the slowest link. Processors post and poll each message, and each keeps a
            // in-flight slot or a bank while it is acknowledged; neither binds.
            let more = match name.rsplit('.').next() {
                Some("cpu") => 600e3,
                Some(part) if part.starts_with("inflight_slots") => 3600e3,
                Some("banks") => 200e3,
                _ => 12e3 + 0.0005 * step,
            };
            assert!(
                *time >= step && *time <= step + more,
                "{alternative:?} {name}: {time} ps, {step} listed"
            );
        }
    }
}

/// A load on the log of a host whose processor also does `busy` tasks of endless work.
fn driven(router: &Arc<Router>, options: &LogConfig, load: WriteLoad, busy: u32) -> Driven {
    let mut roles = others(options, |fabric| fabric);
    let of_host = options.clone();
    roles.push(Role::new("host", 0, move |fabric: TwinFabric| {
        let options = of_host.clone();
        async move { Some(drive(&fabric, &options, &load).await.expect("it writes")) }
    }));
    let neighbour = Role::new("neighbour", 0, move |fabric: TwinFabric| async move {
        for _ in 0..busy {
            let own = fabric.clone();
            fabric.spawn_task(Box::pin(async move {
                loop {
                    own.compute(Work::Time(Time::from_us(20))).await;
                }
            }));
        }
        fabric.sleep(Time::from_ms(10_000)).await;
        None
    });
    roles.push(neighbour.in_background());
    let backend = TwinBackend::on(router.clone(), 1).with_placement("neighbour", "host");
    let run = backend.run(roles).expect("the run ends");
    run.outcomes.into_iter().find_map(|outcome| outcome.end.finished().flatten()).expect("the host ended")
}

/// Many clients of one chunk each.
const MANY: WriteLoad = WriteLoad { sessions: 16, writes: 32, bytes: CHUNK, compressible_percent: 0 };

fn gbits_per_second(driven: &Driven) -> f64 {
    driven.bits_per_second / 1e9
}

#[test]
fn the_implemented_log_reaches_what_the_design_predicts() {
    let router = common::router();
    // What the plan of the step lists gives for each alternative alone, in Gbit/s.
    for (alternative, predicted) in [
        (LogAlternative::CardPullsByRead, 115.0),
        (LogAlternative::CardPullsByEngine, 133.0),
        (LogAlternative::HostWrites, 191.0),
    ] {
        let options = LogConfig { slots: 16, ..options(alternative) };
        let driven = driven(&router, &options, MANY, 0);
        let rate = gbits_per_second(&driven);
        println!("{alternative:?}: {rate:.1} Gbit/s, the plan says {predicted}");
        assert!((rate / predicted - 1.0).abs() < 0.05, "{alternative:?}: {rate:.1} Gbit/s, not {predicted}");
        assert_eq!(driven.bytes, u64::from(MANY.sessions) * MANY.writes * CHUNK);
    }
}

#[test]
fn card_and_host_together_beat_the_card() {
    let router = common::router();
    let rate = |alternative, slots, share| {
        let options = LogConfig { slots, card_share_percent: share, ..options(alternative) };
        let driven = driven(&router, &options, MANY, 0);
        let rate = gbits_per_second(&driven);
        println!(
            "{alternative:?}, share {share:?}: {rate:.1} Gbit/s, {} and {}",
            driven.by_card, driven.by_host
        );
        (rate, driven.by_card, driven.by_card + driven.by_host)
    };
    let (alone, ..) = rate(LogAlternative::CardPullsByEngine, 16, None);
    let (greedy, by_card, all) = rate(LogAlternative::EngineAndHost, 8, None);
    assert!(
        greedy > alone && by_card > 0 && by_card < all,
        "{greedy:.1} Gbit/s, {alone:.1} by the card alone"
    );
    let mut before = f64::INFINITY;
    for share in [25, 50, 75] {
        let (planned, by_card, all) = rate(LogAlternative::EngineAndHost, 16, Some(share));
        assert_eq!(by_card, all * u64::from(share) / 100);
        assert!(
            planned > alone && planned < before * 1.05,
            "{share}%: {planned:.1} Gbit/s after {before:.1}"
        );
        before = planned;
    }
}

/// Costs of a core that appends 4 GB and compresses 1 GB a second: of the order of a memory copy and of
/// LZ4. The twin charges what it is told; nothing published gives them for this host.
const COSTS: LogCosts = LogCosts {
    file_bytes_per_second: 4_000_000_000,
    compress_bytes_per_second: 1_000_000_000,
    sync: Time::ZERO,
};

#[test]
fn the_hosts_time_is_told_by_part() {
    let router = common::router();
    let load = WriteLoad { sessions: 1, writes: 4, bytes: 8 << 20, compressible_percent: 50 };
    let parts = |alternative, compress| {
        let options = LogConfig {
            costs: COSTS,
            slots: 32,
            compress,
            host_compresses: compress,
            ..options(alternative)
        };
        let driven = driven(&router, &options, load, 0);
        let parts = driven.parts;
        let each = |time: Time| time.ps() as f64 / 1e6 / load.writes as f64;
        println!(
            "{alternative:?}, compress {compress}: us of an 8 MiB write: post {:.1}, wait {:.1}, file system {:.1}, \
             compression {:.1}; {:.1} in all",
            each(parts.post),
            each(parts.wait),
            each(parts.file_system),
            each(parts.compression),
            each(driven.mean_latency) * load.writes as f64,
        );
        parts
    };
    let [a1, a2, a3] =
        [LogAlternative::CardPullsByRead, LogAlternative::CardPullsByEngine, LogAlternative::HostWrites]
            .map(|one| parts(one, false));
    // The file system's part is what it was told to cost, whoever carries the chunks.
    for one in [a1, a2, a3] {
        assert_eq!(one.file_system, Time::from_ps(load.writes * load.bytes * 250));
        assert_eq!(one.compression, Time::ZERO);
        assert!(one.post > Time::ZERO);
    }
    // One hop less is less to wait for (wei2023 §5.1, W240).
    assert!(a3.wait < a2.wait && a3.wait < a1.wait);
    let [by_card, by_host] =
        [LogAlternative::CardPullsByEngine, LogAlternative::HostWrites].map(|one| parts(one, true));
    assert_eq!(by_card.compression, Time::ZERO);
    assert!(by_host.compression >= Time::from_ps(load.writes * load.bytes * 1000));
}

#[test]
fn a_busy_host_slows_the_host_more_than_the_card() {
    let router = common::router();
    let rate = |alternative, busy| {
        // A log has one writer: its appends alone would bind long before the cores do.
        let costs = LogCosts { file_bytes_per_second: 0, ..COSTS };
        let options =
            LogConfig { costs, slots: 16, compress: true, host_compresses: true, ..options(alternative) };
        let load = WriteLoad { compressible_percent: 50, ..MANY };
        let rate = gbits_per_second(&driven(&router, &options, load, busy));
        println!("{alternative:?}, {busy} busy tasks: {rate:.1} Gbit/s");
        rate
    };
    // Five runnable tasks for each core.
    let [card, host] = [LogAlternative::CardPullsByEngine, LogAlternative::HostWrites]
        .map(|one| rate(one, 120) / rate(one, 0));
    assert!(card < 1.0 && host < card, "the card keeps {card:.2} of its throughput, the host {host:.2}");
}

/// An engine of the card that does not copy at all, and one that does not reach the host's memory.
#[test]
fn an_engine_that_cannot_pull_is_refused_and_not_tried_without_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("card.toml");
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    let engine = |name: &str, rest: &str| {
        let number = |key: &str, value: &str| {
            format!("{key} = {{ value = {value}, source = \"invented\", provenance = \"datasheet\" }}\n")
        };
        let times = ["start_latency", "request_time", "post_time", "poll_latency"];
        let rates = ["read_rate", "write_rate", "total_rate"];
        let times: String = times.map(|key| number(key, "\"100 ns\"")).concat();
        let rates: String = rates.map(|key| number(key, "\"50 Gbit/s\"")).concat();
        format!("\n[{name}]\nkind = \"engine\"\nendpoint = \"soc\"\n{rest}\n{times}{rates}")
    };
    let share = "output_share = { value = 0.5, source = \"invented\", provenance = \"datasheet\" }";
    let regex = engine("regex", &format!("work = \"transform\"\n{share}"));
    let text = [shipped, &regex, &engine("inner", "reaches = [\"soc\"]")].concat();
    std::fs::write(&card, text).expect("written");
    let device = card.to_str().expect("a UTF-8 path");
    let system = Library::builtin().load(&SystemRequest { device, ..SystemRequest::default() });
    let router = Arc::new(Router::new(&system.expect("the card is in order")).expect("it has routes"));
    for engine in ["regex", "inner"] {
        let options = LogConfig { engine: engine.to_string(), ..options(LogAlternative::CardPullsByEngine) };
        let mut roles = others(&options, |fabric| fabric);
        roles.push(Role::new("host", 0, move |fabric: TwinFabric| {
            let options = options.clone();
            async move {
                let load = WriteLoad { sessions: 1, writes: 2, bytes: CHUNK, compressible_percent: 0 };
                let refused = drive(&fabric, &options, &load).await.expect_err("it cannot pull");
                let why = refused.to_string();
                assert!(why.contains(&format!("no DMA engine `{}`", options.engine)), "{why}");
                assert!(fabric.now() < Time::from_ms(1_000), "{}", fabric.now());
                None
            }
        }));
        TwinBackend::on(router.clone(), 1).run(roles).expect("the run ends");
    }
}
