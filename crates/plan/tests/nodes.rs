//! A card with every kind of component is one file, and designs that use them plan and run on the twin.

use crate::common::{alone, setting, study_of};
use offpath_plan::Basis;
use offpath_plan::check::{Chosen, settle_counting};
use offpath_plan::{Changes, Design, prepare};
use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Quantity, Time};
use offpath_route::{AddressSpread, PathOperation, Posting, RouteError, Router, Verb};
use offpath_twin::Seed;
use std::path::Path;
use std::sync::Arc;

const DESIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/everywhere.toml");
const CARD: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/data/everything.toml");

fn router(settings: &[&str]) -> Router {
    let settings = settings.iter().map(ToString::to_string).collect();
    let request = SystemRequest { device: CARD, settings, ..SystemRequest::default() };
    Router::new(&Library::builtin().load(&request).expect("the card is in order")).expect("it has routes")
}

fn latency(router: &Router, verb: Verb, path: &str, bytes: u64, range: Option<u64>) -> Time {
    let access = AddressSpread { range: range.map(Bytes::new), ..AddressSpread::UNIFORM };
    let path = router.path(path).expect("the path is there");
    let operation = PathOperation::new(verb, path, Bytes::new(bytes)).accessing(access);
    router.route(&operation).expect("it has a route").latency(router)
}

#[test]
fn a_design_over_every_kind_of_component_plans_and_says_what_binds() {
    let changes = Changes::default();
    let design = Design::load(Path::new(DESIGN), &changes).expect("it is read");
    let study = study_of(&design, &changes, &setting(&[], &[])).expect("the design has a plan");
    let plan = &study.checked.plan;
    let bound = |name: &str| alone(plan, name).binding.clone();
    assert_eq!(bound("one-sided"), "pcie0.up", "as in a design of its own: its slots fill behind the link");
    assert_eq!(bound("dpa"), "dpa_to_arm.loads", "256 B over 100 Gbit/s");
    assert_eq!(bound("near"), "dpa_memory.memory", "256 B over 200 Gbit/s, not the host's memory");
    assert_eq!(bound("stored"), "ssd.requests", "a request a microsecond");
    assert_eq!(bound("filtered"), "regex.total", "4 KiB in and 1 KiB out over 50 Gbit/s");
    assert_eq!(bound("moved"), "regex.total", "the same bytes, wherever they go");
    assert_eq!(bound("shuffled"), "copy.total", "4 KiB in and 4 KiB out over 200 Gbit/s");
    let rate = |name: &str| alone(plan, name).rate.value;
    for (name, expected) in [
        ("dpa", 1.0 / 20.48e-9),
        ("near", 1.0 / 10.24e-9),
        ("stored", 1e6),
        ("filtered", 1.0 / 819.2e-9),
        ("moved", 1.0 / 819.2e-9),
        ("shuffled", 1.0 / 327.68e-9),
    ] {
        assert!((rate(name) / expected - 1.0).abs() < 0.01, "{name}: {} for {expected}", rate(name));
        // Nothing published speaks of loads, accelerators, storage, or of memories apart from their processor.
        assert_eq!(alone(plan, name).basis, Basis::OrderOnly, "{name}");
    }
    assert_ne!(alone(plan, "one-sided").basis, Basis::OrderOnly);
}

/// What is planned is what the twin carries, each alternative by itself.
#[test]
fn the_twin_carries_each_alternative_as_planned() {
    let design = Design::load(Path::new(DESIGN), &Changes::default()).expect("the design is in order");
    let ready = prepare(&design, &setting(&[], &[])).expect("its steps have routes");
    assert_eq!(ready.len(), 7);
    for one in ready {
        let name = one.alternative.name.clone();
        let one = [one];
        let settled = settle_counting(&design, &one, Chosen::Best, 24_000.0, Seed::new(1)).expect("it runs");
        assert_eq!(settled.loaded.failed, 0, "{name}");
        assert!(settled.gap.is_none(), "{name}: {:?}", settled.gap);
        let of = settled.loaded.throughput.mean / settled.rate;
        assert!((0.94..1.02).contains(&of), "{name}: {of} of its plan");
    }
}

/// A load waits as long as the caches on its way that hold its working set, and for memory beyond them.
#[test]
fn loads_look_through_the_caches_on_their_way() {
    let router = router(&[]);
    let load = |path: &str, range: u64| latency(&router, Verb::Load, path, 0, Some(range));
    let own = |range| load("dpa-dpa", range);
    assert_eq!(own(512), Time::from_ns(5), "the nearest cache holds it");
    // Half of 2 KiB is in 1 KiB of L1, the rest in L2.
    assert_eq!(own(2 << 10), Time::from_ps(22_500));
    assert_eq!(own(1 << 29).ps().div_ceil(1_000), 297, "all but a share that no cache holds");
    // The way to the SoC's memory leads through L1 alone.
    assert_eq!(load("dpa-dpa:arm", 1 << 20).ps() / 1_000, 499);
    assert!(load("dpa-dpa:arm", 1 << 20) > own(1 << 20));
    // Beyond its own caches a thread looks into the SoC's last one, 100 ns sooner than into the memory behind it, as the
    // SoC's own loads do: 1.5 of 12 MiB are in L2, as much more in L3, the rest there.
    assert_eq!(own(12 << 20).ps().div_ceil(1_000), 170);
    assert_eq!(load("arm-arm", 1 << 20), Time::from_ns(30));
}

/// What a NIC wrote last waits in the caches that take its writes, the newest in the nearest; in memory where none does.
#[test]
fn what_arrived_waits_where_the_nic_put_it() {
    let waits = |router: &Router, path: &str, backlog: u64| {
        let access = AddressSpread { range: Some(Bytes::new(backlog)), arrived: true, hottest: 0.0 };
        let operation = PathOperation::new(Verb::Load, router.path(path).expect("it is there"), Bytes::ZERO);
        Ok::<Time, RouteError>(router.route(&operation.accessing(access))?.latency(router))
    };
    let router = self::router(&["dpa_memory.ddio=true"]);
    let own = |backlog| waits(&router, "dpa-dpa", backlog).expect("it has a route").ps();
    assert_eq!(own(64 << 10), 40_000, "in L2, and never in L1");
    assert_eq!(own(128 << 10), 40_000);
    assert_eq!(own(256 << 10), (40_000 + 120_000) / 2, "the older half in L3");
    // An eighth of 1 MiB in L2, the rest of it in L3; the older half of 2 MiB in the SoC's, 100 ns before memory.
    assert_eq!(own(2 << 20), (40_000 + 7 * 120_000 + 8 * 200_000) / 16);
    assert!(own(512 << 20) > 295_000, "in memory");
    let written_past = self::router(&[]);
    assert_eq!(waits(&written_past, "dpa-dpa", 64 << 10).expect("it has a route"), Time::from_ns(300));
    // A profile that does not say how much lies in a cache is told so, by the number that it lacks.
    let request = SystemRequest { device: "liquidio-cn2350", ..SystemRequest::default() };
    let lacking =
        Router::new(&Library::builtin().load(&request).expect("it is shipped")).expect("it has routes");
    let refused = waits(&lacking, "host-host", 4096).expect_err("no cache has the number").to_string();
    assert!(refused.contains("give `host_l3.arrivals`"), "{refused}");
}

/// A thread moves the bytes that its nearest cache holds at that cache's bandwidth, and waits for each line beyond it, for
/// as many at once as it keeps outstanding.
#[test]
fn a_thread_moves_bytes_as_its_outstanding_lines_let_it() {
    let router = router(&[]);
    let load = |path: &str, bytes: u64, range: u64| latency(&router, Verb::Load, path, bytes, Some(range));
    assert_eq!(load("dpa-dpa", 4000, 512), Time::from_ns(8_000), "4 Gbit/s of the nearest cache");
    assert_eq!(load("dpa-dpa", 1, 512), Time::from_ns(5), "one load takes its latency");
    // 16 lines in L2: each 35 ns more than in L1, beside 1 KiB from L1.
    assert_eq!(load("dpa-dpa", 1024, 1 << 20).ps() / 1_000, (5 + 2_043 + 16 * 35) - 1);
    // The way to the SoC keeps 2 lines outstanding: the first waits, each further one half as long.
    let router = self::router(&["dpa_l1.capacity=1B"]);
    let load = |bytes: u64| latency(&router, Verb::Load, "dpa-dpa:arm", bytes, Some(1 << 30)).ps() as f64;
    let further = (load(1024) - load(64)) / 1e3 - 1920.0;
    assert!((further / (15.0 * 495.0 / 2.0) - 1.0).abs() < 0.001, "{further}");
    // Whatever a load asks for, a miss brings whole lines over the way; a store sends what it writes.
    let demand = |verb: Verb, bytes: u64, station: &str| {
        let path = router.path("dpa-dpa:arm").expect("it is there");
        let access = AddressSpread { range: Some(Bytes::new(1 << 30)), ..AddressSpread::UNIFORM };
        let operation = PathOperation::new(verb, path, Bytes::new(bytes)).accessing(access);
        let demand = router.route(&operation).expect("it has a route").demand(&router);
        demand.time.get(&router.station(station).expect("it is there")).copied()
    };
    assert_eq!(demand(Verb::Load, 8, "dpa_to_arm.loads"), demand(Verb::Load, 64, "dpa_to_arm.loads"));
    let stored = |bytes: u64| demand(Verb::Store, bytes, "dpa_to_arm.stores").expect("it binds");
    assert_eq!(stored(8000).ps().div_ceil(10), stored(800).ps());
    assert_eq!(demand(Verb::Store, 8, "dpa_to_arm.loads"), None);
}

#[test]
fn engines_store_transform_and_copy_within_one_memory() {
    let router = router(&[]);
    let read = latency(&router, Verb::Read, "store-ssd", 4096, None);
    let write = latency(&router, Verb::Write, "store-ssd", 4096, None);
    assert!(
        write > read + Time::from_us(10),
        "storing takes 12 us more, and reads no completion: {read} {write}"
    );
    let path = router.path("store-ssd").expect("the second word is an engine");
    assert_eq!((path.responder.as_str(), path.engine.as_deref()), ("store", Some("ssd")));
    assert_eq!(path.to_string(), "store-ssd");
    let within = latency(&router, Verb::Copy, "arm-copy", 64, None);
    let across = latency(&router, Verb::Copy, "arm-host-copy", 64, None);
    assert!(within < across, "{within} {across}");
    let demand = |verb: Verb, path: &str, station: &str| {
        let path = router.path(path).expect("it is there");
        let operation = PathOperation::new(verb, path, Bytes::new(4096));
        let demand = router.route(&operation).expect("it has a route").demand(&router);
        demand.time[&router.station(station).expect("it is there")]
    };
    // The accelerator gives a quarter of what it takes: it writes a quarter of the bytes.
    let of_regex = |station: &str| demand(Verb::Transform, "arm-regex", station).ps();
    assert_eq!(of_regex("regex.write") * 4, of_regex("regex.read"));
    // `total_rate` is that of both directions together, and within one memory every byte goes both ways.
    for verb in [Verb::Copy, Verb::Read] {
        let total = |path: &str| demand(verb, path, "copy.total").ps();
        assert_eq!(total("arm-copy"), 2 * total("arm-host-copy"), "{verb}");
    }
}

#[test]
fn what_cannot_be_is_refused_with_the_reason() {
    let router = Arc::new(router(&[]));
    let refused = |verb: Verb, path: &str| {
        let path = router.path(path);
        let routed = path.and_then(|path| router.route(&PathOperation::new(verb, path, Bytes::new(64))));
        routed.expect_err("there is no such route").to_string()
    };
    for (verb, path, says) in [
        (Verb::Read, "host-host", "joins an endpoint with itself"),
        (Verb::Read, "host-host:arm", "joins a processor with itself"),
        (
            Verb::Load,
            "host-host:arm",
            "add a table of kind `reach` with `processor = \"host\"` and `memory = \"arm\"`",
        ),
        (Verb::Load, "client-host", "leaves the processor `client`"),
        (
            Verb::Read,
            "arm-regex",
            "an engine that transforms has no `read`: path `arm-regex` takes transform",
        ),
        (Verb::Send, "arm-host-copy", "takes read, write and copy"),
        (Verb::Transform, "arm-host-regex", "`regex` reaches arm, store"),
        (Verb::Read, "store-host-ssd", "name the one memory, as in `store-ssd`"),
        (Verb::Read, "client-host:moon", "names `host:moon`"),
    ] {
        let why = refused(verb, path);
        assert!(why.contains(says), "{verb} {path}: {why}");
    }
}

/// A memory apart from the processor that posts: the payload takes the memory's way, what is posted the processor's.
#[test]
fn a_payload_lies_in_another_memory_than_its_processors() {
    let router = router(&[]);
    let demand = |path: &str| {
        let path = router.path(path).expect("the path is there");
        let route =
            router.route(&PathOperation::new(Verb::Write, path, Bytes::new(4096))).expect("it has a route");
        route.demand(&router)
    };
    let at = |path: &str, station: &str| {
        let id = router.station(station).expect("the station is there");
        demand(path).time.get(&id).copied().unwrap_or(Time::ZERO)
    };
    for station in ["host.cpu", "lane_b.up", "pcie0.up", "arm.memory", "host.memory"] {
        let (own, apart) = (at("host-client", station), at("host:arm-client", station));
        match station {
            "host.cpu" => assert_eq!(own, apart, "the host's processor posts"),
            "lane_b.up" | "arm.memory" => assert!(own == Time::ZERO && apart > Time::ZERO, "{station}"),
            _ => assert!(apart < own, "{station}: the host's side carries requests and completions alone"),
        }
    }
}

/// The invented card with more tables, in a mode.
fn with_tables(tables: &str, mode: Option<&str>) -> Router {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("card.toml");
    let text = std::fs::read_to_string(CARD).expect("the card is there") + tables;
    std::fs::write(&card, text).expect("it is written");
    let device = card.to_str().expect("a UTF-8 path");
    let request = SystemRequest { device, mode, ..SystemRequest::default() };
    Router::new(&Library::builtin().load(&request).expect("the card is in order")).expect("it has routes")
}

/// A processor with a memory at a node of its own is the responder of a limit as any other is.
#[test]
fn a_large_transfer_limit_holds_for_a_processor_apart_from_its_memory() {
    let router = with_tables(
        r#"
[large]
kind = "large-transfer-limit"
requester = "*"
responder = "dpa"
verbs = ["read"]
above = { value = "9 MiB", source = "invented", provenance = "datasheet" }
rate = { value = "10 Gbit/s", source = "invented", provenance = "datasheet" }
"#,
        None,
    );
    let limited = |path: &str, bytes: u64| {
        let path = router.path(path).expect("the path is there");
        let operation = PathOperation::new(Verb::Read, path, Bytes::new(bytes));
        let demand = router.route(&operation).expect("it has a route").demand(&router);
        demand.time.get(&router.station("large").expect("the limit is there")).copied()
    };
    let at_10_gbit_per_s = Some(Time::from_ps((16 << 20) * 8 * 100));
    assert_eq!(limited("client-dpa", 16 << 20), at_10_gbit_per_s);
    assert_eq!(limited("client-host:dpa_memory", 16 << 20), at_10_gbit_per_s, "the memory is the same");
    assert_eq!(limited("client-dpa", 8 << 20), None);
    assert_eq!(limited("client-arm", 16 << 20), None);
}

/// What a mode hides takes an engine with it whose every memory it is.
#[test]
fn an_engine_whose_memories_are_hidden_reaches_none_other() {
    let number = |key: &str, value: &str| {
        format!("{key} = {{ value = \"{value}\", source = \"invented\", provenance = \"datasheet\" }}\n")
    };
    let mut tables = "\n[grab]\nkind = \"engine\"\nendpoint = \"host\"\nreaches = [\"arm\"]\n".to_string();
    for key in ["start_latency", "request_time", "post_time", "poll_latency"] {
        tables += &number(key, "100 ns");
    }
    for key in ["read_rate", "write_rate", "total_rate"] {
        tables += &number(key, "100 Gbit/s");
    }
    let has = |mode: Option<&str>, path: &str| with_tables(&tables, mode).path(path).is_ok();
    assert!(has(None, "host:arm-grab"));
    assert!(!has(None, "host-grab"), "the host's memory is none of those named");
    assert!(!has(Some("nic"), "host-grab"));
}

/// Numbers that move no route, by the end of their names, and what they are for.
const NOT_OF_ROUTES: [(&str, &str); 11] = [
    (".arrivals", "loads of what arrived, where the NIC writes into caches, which it does not on this card"),
    (".frequency", "programs that compute in cycles, and advice that moves computing"),
    (".write_latency", "when a byte is visible to others, which its operation does not wait for"),
    ("arm.capacity", "what fits the memory, and the range of accesses that are told none"),
    ("store.capacity", "the same"),
    ("dpa_memory.capacity", "the same"),
    ("dpa_memory.pcie_mtu", "TLPs, and no PCIe link leads to this memory"),
    ("nic.outstanding_reads", "what benchmarks print, whose queue pairs no route visits"),
    ("nic.queue_pair_request_time", "the same"),
    ("nic.queue_pair_rate", "the same"),
    ("arm_md5.byte_rate", "programs that compute this kind of work"),
];

/// Every number that a profile declares is read by something.
#[test]
fn every_number_of_the_card_moves_the_cost_of_some_route() {
    let system = router(&[]).system().clone();
    let cost = |settings: &[&str]| {
        let settings = settings.iter().map(ToString::to_string).collect();
        let request = SystemRequest { device: CARD, settings, ..SystemRequest::default() };
        let router = Router::new(&Library::builtin().load(&request).ok()?).ok()?;
        let kinds: Vec<_> = router.stations().iter().map(|one| one.kind.clone()).collect();
        let mut costs = Vec::new();
        let remote = ["client-host", "client-arm", "client-store", "client-dpa"];
        let back = ["host-client", "arm-client", "store-client", "dpa-client", "arm-host", "dpa-host:arm"];
        let engines = ["arm-copy", "arm-host-copy", "arm-regex", "store-ssd"];
        let own = ["dpa-dpa", "dpa-dpa:arm", "dpa-dpa:host", "arm-arm"];
        for path in [&remote[..], &back, &engines, &own].concat() {
            let path = router.path(path).ok()?;
            for verb in router.verbs(&path) {
                for (bytes, posting, range) in [
                    (100, Posting::Single, 64 << 30),
                    (300, Posting::Single, 64 << 30),
                    (4096, Posting::Batch(4), 2 << 10),
                    (3 << 20, Posting::Single, 2 << 20),
                ] {
                    let access = AddressSpread { range: Some(Bytes::new(range)), ..AddressSpread::UNIFORM };
                    let operation = PathOperation::new(verb, path.clone(), Bytes::new(bytes));
                    let Ok(route) = router.route(&operation.posted(posting).accessing(access)) else {
                        continue;
                    };
                    let demand = route.demand(&router);
                    costs.push((route.latency(&router), demand.time, demand.requests, demand.banks));
                }
            }
        }
        Some((kinds, costs))
    };
    let before = cost(&[]).expect("the card is in order");
    let mut still = Vec::new();
    // Other machines with the card have the same numbers under names of theirs.
    for (name, number) in &system.numbers {
        if !number.file.ends_with("everything.toml") || name.matches('.').count() > 1 {
            continue;
        }
        let value = &number.value;
        let others = [2.0, 0.5, 0.9]
            .into_iter()
            .filter_map(|by| Some(Quantity::from_base(value.base() * by, value.dimension())?.to_string()));
        let others = others.chain(["true", "false", "10", "12", "12 ns"].map(str::to_string));
        let moves = others
            .map(|other| cost(&[&format!("{name}={other}")]))
            .any(|cost| cost.is_some_and(|cost| cost != before));
        if !moves {
            still.push(name.clone());
        }
    }
    let reason = |name: &String| NOT_OF_ROUTES.iter().any(|(end, _)| name.ends_with(end));
    assert_eq!(still.iter().filter(|name| !reason(name)).collect::<Vec<_>>(), Vec::<&String>::new());
    for (end, why) in NOT_OF_ROUTES {
        assert!(still.iter().any(|name| name.ends_with(end)), "`{end}` moves a route, and is here for {why}");
    }
}

/// A packet costs its processor a time and a time for each byte, between the port and the port.
#[test]
fn a_processor_forwards_packets_at_what_they_cost_it() {
    let carried = |settings: &[&str], bytes: u64| {
        let router = router(settings);
        let path = router.path("arm-arm").expect("it is there");
        let route = router.route(&PathOperation::new(Verb::Forward, path, Bytes::new(bytes)));
        let route = route.expect("it has a route");
        let (rate, station) = route.demand(&router).capacity(&router).expect("something binds");
        (rate, router.stations()[station.index()].name.clone(), route.latency(&router))
    };
    let (rate, station, latency) = carried(&["arm_packets.packet_rate=20M/s"], 1000);
    assert_eq!((rate.round(), station.as_str()), (20e6, "arm_packets.packets"), "16 cores take 360 ns each");
    let (_, _, twice) = carried(&["arm_packets.packet_time=400ns"], 1000);
    assert_eq!(twice - latency, Time::from_ns(200));
    let (rate, station, slower) = carried(&["arm_packets.byte_rate=5Gbit/s"], 1000);
    assert_eq!((rate.round(), station.as_str()), ((16.0 / 1800e-9f64).round(), "arm.cpu"));
    assert_eq!(slower - latency, Time::from_ns(1600 - 160));
    let router = router(&[]);
    let refused = |path: &str, bytes: u64| {
        let path = router.path(path).expect("it is there");
        router.route(&PathOperation::new(Verb::Forward, path, Bytes::new(bytes))).expect_err("no").to_string()
    };
    assert!(
        refused("arm-arm", 10_000).contains("the largest that a packet carries"),
        "{}",
        refused("arm-arm", 10_000)
    );
    let why = refused("dpa-dpa", 64);
    assert!(why.contains("add a table of kind `packets` with `processor = \"dpa\"`"), "{why}");
    assert!(refused("arm-arm:host", 64).contains("write `arm-arm`"));
}

/// A card without verbs says so by name, and has what its processors do themselves.
#[test]
fn a_port_carries_no_verbs_and_says_so() {
    let library = Library::builtin();
    for device in ["liquidio-cn2350", "liquidio-cn2360", "stingray"] {
        let request = SystemRequest { device, ..SystemRequest::default() };
        let router = Router::new(&library.load(&request).expect("it loads")).expect("it has routes");
        for (verb, path) in [
            (Verb::Read, "client-host"),
            (Verb::Write, "host-cores"),
            (Verb::SendDatagram, "cores-client"),
            (Verb::FetchAndAdd, "client-cores"),
        ] {
            let path = router.path(path).expect("its ends are there");
            let why = router.route(&PathOperation::new(verb, path, Bytes::new(64))).expect_err("it has none");
            let why = why.to_string();
            assert!(
                why.contains("is a port that hands packets to processors") && why.contains(device),
                "{why}"
            );
            // The DMA engine of one of them has READ and WRITE too.
            let paths = router.paths_of(verb);
            assert!(paths.iter().all(|path| path.engine.is_some()), "{device} lists paths of {verb}");
        }
        assert!(!router.paths_of(Verb::Forward).is_empty() && !router.paths_of(Verb::Load).is_empty());
    }
}
