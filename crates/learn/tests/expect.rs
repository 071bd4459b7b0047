//! What a run prints follows from the readings of its route, and from what the tool adds.

use offpath_learn::{CeilingKind, Expected, NotARun, RunKind, ToolBench, ToolProgram, ToolRun};
use offpath_logs::{LatencySpan, LogItem, LogMeasurement, LogReader, TrafficDirections};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation, Router, Verb};

fn system(settings: &[&str]) -> System {
    let settings = settings.iter().map(|one| one.to_string()).collect();
    let request = SystemRequest { device: "connectx7", settings, ..SystemRequest::default() };
    Library::builtin().load(&request).expect("the shipped card loads")
}

fn run(program: &str, bytes: u64) -> ToolRun {
    ToolProgram::named(program).expect("it is listed").run(Bytes::new(bytes))
}

fn on(system: &System, run: &ToolRun) -> Expected {
    let bench = ToolBench::new(system, "client-host").expect("the path exists");
    bench.expect(run).expect("the run is modelled")
}

/// Large payloads are bound by a link or a queue pair, whatever posts; small ones by the thread, as many queue pairs as there are.
#[test]
fn the_thread_binds_small_requests_and_bytes_the_large_ones() {
    let system = system(&[]);
    let small = on(&system, &ToolRun { queue_pairs: 8, ..run("ib_write_bw", 64) });
    assert_eq!(small.binding(), &CeilingKind::PostingThread);
    let rate = small.rate_per_s;
    let more = on(&system, &ToolRun { queue_pairs: 16, ..run("ib_write_bw", 64) });
    assert!((more.rate_per_s / rate - 1.0).abs() < 0.01, "{} and {rate}", more.rate_per_s);
    let large = on(&system, &ToolRun { queue_pairs: 8, ..run("ib_write_bw", 1 << 20) });
    assert!(matches!(large.binding(), CeilingKind::Station(_)), "{:?}", large.ceilings);
    let router = Router::new(&system).expect("it has routes");
    let path = router.path("client-host").expect("it exists");
    let route = router.route(&PathOperation::new(Verb::Write, path, Bytes::new(1 << 20))).expect("it exists");
    let (capacity, _) = route.demand(&router).capacity(&router).expect("it is bound");
    assert!((large.rate_per_s / capacity - 1.0).abs() < 0.02, "{} of {capacity}", large.rate_per_s);
}

/// One request at a time takes its latency; few READs in flight give as many latencies at once.
#[test]
fn depth_and_reads_in_flight_bind_by_the_latency() {
    let system = system(&[]);
    let one = on(&system, &ToolRun { tx_depth: 1, cq_moderation: 1, ..run("ib_write_bw", 64) });
    assert_eq!(one.binding(), &CeilingKind::TxDepth);
    assert!((one.rate_per_s * one.latency.as_seconds() - 1.0).abs() < 0.01, "{one:?}");
    // perftest takes a latency of READ from one post to the next, which is that loop.
    let read = on(&system, &ToolRun { tx_depth: 1, cq_moderation: 1, ..run("ib_read_bw", 64) });
    let latency = on(&system, &run("ib_read_lat", 64)).latency;
    assert!((read.rate_per_s * latency.as_seconds() - 1.0).abs() < 0.01, "{read:?} {latency}");
    let reads = on(&system, &ToolRun { outstanding_reads: Some(1), ..run("ib_read_bw", 64) });
    assert_eq!(reads.binding(), &CeilingKind::OutstandingReads);
    let more = on(&system, &ToolRun { outstanding_reads: Some(2), ..run("ib_read_bw", 64) });
    assert!(
        (more.rate_per_s / reads.rate_per_s - 2.0).abs() < 0.02,
        "{} {}",
        more.rate_per_s,
        reads.rate_per_s
    );
}

/// READs that are posted in lists are in flight for as long as others: while the thread writes a list none of it is, and its time binds
/// where it is the longer one.
#[test]
fn reads_of_a_list_are_in_flight_as_long_as_others() {
    for program in ["ib_read_bw", "ib_atomic_bw"] {
        let of = |list: u64| {
            let run = ToolRun { post_list: list, cq_moderation: list, ..run(program, 8) };
            on(&system(&[]), &run)
        };
        let ceiling = |expected: &Expected, kind: &CeilingKind| {
            expected.ceilings.iter().find(|one| one.kind == *kind).expect("it is a ceiling").rate_per_s
        };
        let single = ceiling(&of(1), &CeilingKind::OutstandingReads);
        for list in [4, 16, 32] {
            let expected = of(list);
            assert_eq!(ceiling(&expected, &CeilingKind::OutstandingReads), single, "{program} {list}");
            let thread = ceiling(&expected, &CeilingKind::PostingThread);
            let share = expected.rate_per_s / thread.min(single);
            assert!(share > 0.97, "{program} {list}: {expected:?}");
        }
        assert_eq!(of(32).binding(), &CeilingKind::PostingThread, "{program}");
    }
}

/// Latencies are what the tool says they are: READ the whole operation, WRITE and SEND half of there and back.
#[test]
fn latencies_are_the_tools_own() {
    let system = system(&[]);
    let router = Router::new(&system).expect("it has routes");
    let of = |verb, from: &str| {
        let path = router.path(from).expect("it exists");
        router.route(&PathOperation::new(verb, path, Bytes::new(8))).expect("it exists").latency(&router)
    };
    let read = on(&system, &run("ib_read_lat", 8));
    assert_eq!((read.latency, read.span), (of(Verb::Read, "client-host"), LatencySpan::WholeOperation));
    let send = on(&system, &run("ib_send_lat", 8));
    let both = of(Verb::Send, "client-host") + of(Verb::Send, "host-client");
    assert_eq!((send.latency, send.span), (Time::from_ps(both.ps() / 2), LatencySpan::HalfRoundTrip));
    let write = on(&system, &run("ib_write_lat", 8));
    assert!(write.latency < of(Verb::Write, "client-host") && write.latency > Time::ZERO, "{write:?}");
    assert!(write.latency < send.latency, "nobody is woken for a WRITE");
}

/// Both directions print their sum, and a link that carries each way by itself carries twice.
/// A message of which a queue pair carries the bytes slower than all else takes as long as its bytes, in a test of latency as in one of
/// bandwidth with one request at a time; a short one waits for none of it.
#[test]
fn a_slow_queue_pair_is_in_the_latency() {
    let (fast, slow) = (system(&[]), system(&["nic.queue_pair_rate=150Gbit/s"]));
    for (latency, bandwidth) in
        [("ib_read_lat", "ib_read_bw"), ("ib_write_lat", "ib_write_bw"), ("ib_send_lat", "ib_send_bw")]
    {
        let bytes = 256 << 10;
        let own = on(&slow, &run(latency, bytes)).latency.as_seconds();
        let least = bytes as f64 * 8.0 / 150e9;
        assert!(own > least, "{latency}: {own} s for what takes {least} s");
        let one = on(&slow, &ToolRun { tx_depth: 1, cq_moderation: 1, ..run(bandwidth, bytes) });
        assert!(one.rate_per_s * least < 1.0, "{bandwidth}: {one:?}");
        if latency == "ib_read_lat" {
            assert!((one.rate_per_s * own - 1.0).abs() < 0.01, "{one:?} {own}");
        }
        let short = |system: &System| on(system, &run(latency, 64)).latency;
        assert_eq!(short(&slow), short(&fast), "{latency}");
    }
}

#[test]
fn both_directions_are_summed() {
    let system = system(&["nic.queue_pair_rate=400Gbit/s"]);
    let one = ToolRun { queue_pairs: 8, ..run("ib_write_bw", 1 << 20) };
    let both = ToolRun { directions: TrafficDirections::Both, ..one.clone() };
    let (one, both) = (on(&system, &one), on(&system, &both));
    let times = both.rate_per_s / one.rate_per_s;
    assert!((1.8..=2.0).contains(&times), "{times}");
    assert!((both.mib_per_s() * 1.048576 * 8.0 / 1e3 / both.gbit_per_s() - 1.0).abs() < 1e-12);
}

const ALL_ZERO: [&str; 6] = [
    "host_verbs.post_time=0ns",
    "client.host_verbs.post_time=0ns",
    "host_verbs.poll_time=0ns",
    "client.host_verbs.poll_time=0ns",
    "nic.queue_pair_request_time=0ns",
    "client.nic.queue_pair_request_time=0ns",
];

/// Whatever a run asks for, its rate is finite and below every ceiling.
#[test]
fn no_rate_is_above_a_ceiling() {
    for system in [system(&[]), system(&ALL_ZERO)] {
        for program in offpath_learn::PROGRAMS {
            for bytes in [0, 1, 64, 4096, 8 << 20] {
                for (queue_pairs, tx_depth) in [(1, 1), (3, 128), (64, 2)] {
                    let run = ToolRun { queue_pairs, tx_depth, ..program.run(Bytes::new(bytes)) };
                    let found = on(&system, &run);
                    assert!(found.rate_per_s.is_finite() && found.rate_per_s > 0.0, "{run}: {found:?}");
                    let least = found.ceilings[0].rate_per_s;
                    assert!(
                        found.rate_per_s <= least * (1.0 + 1e-9),
                        "{run}: {} above {least}",
                        found.rate_per_s
                    );
                }
            }
        }
    }
}

const LOG: &str = "\
                    RDMA_Read BW Test
 Dual-port       : OFF		Device         : mlx5_0
 Number of qps   : 1		Transport type : IB
 Connection type : RC		Using SRQ      : OFF
 TX depth        : 128
 CQ Moderation   : 1
 Mtu             : 4096[B]
 Link type       : Ethernet
 Outstand reads  : 16
---------------------------------------------------------------------------------------
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 65536      1000            11000.10            10990.00             0.175840
";

fn measurements(log: &str) -> Vec<LogMeasurement> {
    let items = LogReader::new(log.as_bytes()).map(|item| item.expect("a text can be read"));
    let measured = items.filter_map(|item| match item {
        LogItem::Measurement(one) => Some(one),
        LogItem::Remark(_) => None,
    });
    measured.collect()
}

/// A figure of a log has its counterpart in the same unit; what the log leaves open is asked for by name.
#[test]
fn figures_of_a_log_are_expected_or_refused_by_what_is_missing() {
    let bench = ToolBench::new(&system(&[]), "client-host").expect("the path exists");
    let figures = measurements(LOG);
    let run = ToolRun::of(&figures[0]).expect("the log says all");
    assert_eq!((run.kind, run.verb, run.outstanding_reads), (RunKind::Bandwidth, Verb::Read, Some(16)));
    let keys: Vec<String> = figures.iter().map(LogMeasurement::key).collect();
    for one in &figures {
        let expected = bench.expect_of(one).expect("it is modelled");
        match expected.figure(&one.metric) {
            Some(figure) => assert_eq!(figure.unit(), one.figure.unit()),
            None => assert!(one.key().ends_with("_peak"), "{keys:?}"),
        }
    }
    let headless: String = LOG.lines().skip(10).map(|line| format!("{line}\n")).collect();
    let cut = measurements(&headless);
    let Err(NotARun::Missing { missing }) = ToolRun::of(&cut[0]) else {
        panic!("{:?}", ToolRun::of(&cut[0]))
    };
    assert!(missing.contains(&"the depth") && missing.contains(&"the verb"), "{missing:?}");
    // Forty times the bandwidth of its rate, and a second row of another program.
    let odd = [LOG.replace("10990.00", "439600.00"), format!("{LOG} 2  5000  6.90  6.86  3.600000\n")];
    for log in odd {
        let contradictory = measurements(&log);
        assert!(
            contradictory.iter().all(|one| matches!(ToolRun::of(one), Err(NotARun::Contradictory { .. }))),
            "{log}"
        );
    }
    let datagrams = LOG.replace(": RC", ": UD");
    assert!(matches!(ToolRun::of(&measurements(&datagrams)[0]), Err(NotARun::NotModelled { .. })));
}
