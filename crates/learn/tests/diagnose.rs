//! Causes that a twin of the tool was run under are found from the rows that it prints, with noise and without heads.

use offpath_learn::describe::describe;
use offpath_learn::diagnose::{
    Cause, CauseGroup, Diagnosis, DiagnosisVerdict, Leeway, LoggedFigures, diagnose, exactly,
};
use offpath_learn::{PacketHeader, RunKind, RunLength, ToolBench, ToolProgram, ToolRun};
use offpath_logs::{LogItem, LogOperation, LogReader, TrafficDirections};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::Verb;
use std::fmt::Write;

/// Scatter of rows.
const NOISE: f64 = 0.02;

/// A generator of numbers that scatter, from a seed.
struct Noise(u64);

impl Noise {
    fn uniform(&mut self) -> f64 {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((bits ^ (bits >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
    /// Nearly a normal number: the sum of twelve uniform ones.
    fn times(&mut self) -> f64 {
        1.0 + NOISE * ((0..12).map(|_| self.uniform()).sum::<f64>() - 6.0)
    }
}

fn system(device: &str, settings: &[&str]) -> System {
    // Both machines are alike: what is set of the server is set of the client.
    let both = settings.iter().flat_map(|one| match one.strip_prefix("host.") {
        Some(rest) => vec![one.to_string(), format!("client.{rest}")],
        None if one.starts_with("network.") => vec![one.to_string()],
        None => vec![one.to_string(), format!("client.{one}")],
    });
    let settings = both.collect();
    let request = SystemRequest { device, settings, ..SystemRequest::default() };
    Library::builtin().load(&request).unwrap_or_else(|error| panic!("{error:?}"))
}

/// The same with the packets of the link layer that heads state, as a machine has them.
fn hidden_system(device: &str, settings: &[&str]) -> System {
    let header = PacketHeader::of_link_layer("Ethernet").expect("RoCEv2 has one");
    let mtu = settings.iter().all(|one| !one.starts_with("network.mtu")).then_some("network.mtu=4KiB");
    let settings: Vec<&str> = settings.iter().copied().chain(mtu).collect();
    header.put_into(&system(device, &settings)).expect("shipped testbeds guess it")
}

/// How a tool was run, and what it got wrong about what it prints.
#[derive(Clone)]
struct Asked {
    runs: Vec<fn(&mut ToolRun)>,
    /// What it took for the number of messages, as a share: bandwidth and rate follow from it alike.
    counted: f64,
    /// How many times what it is the bandwidth says: a unit is of that column alone.
    unit: f64,
    latency_times: f64,
    has_head: bool,
    /// Whether it prints a message rate beside the bandwidth.
    has_rate: bool,
}

fn as_usual() -> Asked {
    Asked { runs: Vec::new(), counted: 1.0, unit: 1.0, latency_times: 1.0, has_head: true, has_rate: true }
}

/// What a program prints on a system for a sweep.
fn printed(bench: &ToolBench, program: &str, asked: &Asked, noise: &mut Noise) -> String {
    let program = ToolProgram::named(program).expect("it is one of perftest's");
    let title = match (program.verb.to_string().as_str(), program.kind) {
        ("read", RunKind::Bandwidth) => "RDMA_Read BW Test",
        ("write", RunKind::Bandwidth) => "RDMA_Write BW Test",
        ("read", _) => "RDMA_Read Latency Test",
        ("write", _) => "RDMA_Write Latency Test",
        (_, RunKind::Bandwidth) => "Send BW Test",
        _ => "Send Latency Test",
    };
    let mut text = String::new();
    for power in 1..=23 {
        let mut run = program.run(Bytes::new(1 << power));
        if run.kind == RunKind::Bandwidth {
            // A sweep has one moderation for all payloads.
            run.cq_moderation = 100;
        }
        run.mtu = Some(Bytes::new(4096));
        asked.runs.iter().for_each(|change| change(&mut run));
        if text.is_empty() {
            let is_both = run.directions == TrafficDirections::Both;
            let title = if is_both { title.replace("BW", "Bidirectional BW") } else { title.to_string() };
            if asked.has_head {
                writeln!(text, "                    {title}").unwrap();
                writeln!(text, " Dual-port       : OFF\t\tDevice         : mlx5_0").unwrap();
                writeln!(text, " Number of qps   : {}\t\tTransport type : IB", run.queue_pairs).unwrap();
                writeln!(text, " Connection type : RC\t\tUsing SRQ      : OFF").unwrap();
                writeln!(text, " TX depth        : {}", run.tx_depth).unwrap();
                if run.kind == RunKind::Bandwidth {
                    writeln!(text, " CQ Moderation   : {}", run.cq_moderation).unwrap();
                }
                writeln!(text, " Mtu             : {}[B]", run.mtu.expect("it was set").get()).unwrap();
                writeln!(text, " Link type       : Ethernet").unwrap();
                if run.is_read() {
                    writeln!(text, " Outstand reads  : {}", run.outstanding_reads.unwrap_or(16)).unwrap();
                } else {
                    writeln!(text, " Max inline data : {}[B]", run.inline.get()).unwrap();
                }
                writeln!(text, "{}", "-".repeat(87)).unwrap();
            }
            text += match run.kind {
                RunKind::Bandwidth if asked.has_rate => {
                    " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
                }
                RunKind::Bandwidth => " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]\n",
                RunKind::Latency => {
                    " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
                }
            };
        }
        let expected = bench.expect(&run).expect("it is modelled");
        let size = run.payload.get();
        let Some(RunLength::Iterations(count)) = run.length else { panic!("{run:?}") };
        let times = noise.times();
        match run.kind {
            RunKind::Bandwidth => {
                let mib = expected.mib_per_s() * times * asked.counted * asked.unit;
                let rate = expected.rate_per_s * times * asked.counted / 1e6;
                let rate = if asked.has_rate { format!("\t\t   {rate:.6}") } else { String::new() };
                let peak = mib * 1.01;
                writeln!(text, " {size:<10} {count:<10}       {peak:<10.2}         {mib:<10.2}{rate}")
                    .unwrap();
            }
            RunKind::Latency => {
                let us = expected.latency.as_us() * times * asked.latency_times;
                writeln!(
                    text,
                    " {size:<8} {count:<10} {:<14.2} {:<12.2} {us:<13.2} {us:<12.2} {:<14.2} {:<21.2} {:.2}",
                    us * 0.97,
                    us * 2.0,
                    us * 0.02,
                    us * 1.1,
                    us * 1.5
                )
                .unwrap();
            }
        }
    }
    text
}

const SUITE: [&str; 4] = ["ib_read_bw", "ib_write_bw", "ib_read_lat", "ib_write_lat"];

fn figures(texts: &[(String, String)]) -> LoggedFigures {
    let mut all = LoggedFigures::new("client-host");
    for (name, text) in texts {
        for item in LogReader::new(text.as_bytes()) {
            if let LogItem::Measurement(measurement) = item.expect("it is in memory") {
                all.add(name, &measurement);
            }
        }
    }
    all
}

#[derive(Clone)]
struct Case {
    name: &'static str,
    causes: Vec<Cause>,
    device: &'static str,
    path: &'static str,
    /// What is known of the system.
    known: Vec<&'static str>,
    /// What is not.
    hidden: Vec<&'static str>,
    asked: Asked,
    /// Whether rows below a head may show it.
    with_head: bool,
    /// Whether rows without a head say as much.
    without_head: bool,
}

/// The diagnosis of a suite that was run under a cause, by who knows nothing of it.
fn found(case: &Case, seed: u64) -> Diagnosis {
    let hidden = hidden_system(case.device, &[&case.known[..], &case.hidden[..]].concat());
    let bench = ToolBench::new(&hidden, case.path).expect("a path");
    let mut noise = Noise(seed);
    let texts: Vec<(String, String)> = SUITE
        .iter()
        .map(|program| (format!("{program}.log"), printed(&bench, program, &case.asked, &mut noise)))
        .collect();
    let known = system(case.device, &case.known);
    diagnose(&known, figures(&texts), None, exactly).expect("it can be compared")
}

fn healthy() -> Case {
    Case {
        name: "nothing",
        causes: Vec::new(),
        device: "connectx7",
        path: "client-host",
        known: Vec::new(),
        hidden: Vec::new(),
        asked: as_usual(),
        with_head: true,
        without_head: true,
    }
}

fn of_system(name: &'static str, cause: Cause, hidden: &[&'static str]) -> Case {
    Case { name, causes: vec![cause], hidden: hidden.to_vec(), ..healthy() }
}

fn of_run(name: &'static str, cause: Cause, run: fn(&mut ToolRun)) -> Case {
    Case { asked: Asked { runs: vec![run], ..as_usual() }, ..of_system(name, cause, &[]) }
}

fn depth<const DEPTH: u64>(run: &mut ToolRun) {
    if run.kind == RunKind::Bandwidth {
        run.tx_depth = DEPTH;
        run.cq_moderation = run.cq_moderation.min(DEPTH);
    }
}

const SLOW_CLOCK: &[&str] = &[
    "host_verbs.post_latency=155ns",
    "host_verbs.post_time=364ns",
    "host_verbs.poll_latency=560ns",
    "host_verbs.poll_time=264ns",
];

fn cases() -> Vec<Case> {
    vec![
        of_system("half a link", Cause::PcieLink, &["pcie0.rate=256Gbit/s"]),
        of_system("a quarter of a link", Cause::PcieLink, &["pcie0.rate=128Gbit/s"]),
        of_system("a link of no usual rate", Cause::PcieLink, &["pcie0.rate=180Gbit/s"]),
        of_system("slow accesses", Cause::PcieLatency, &["pcie0.delay=732ns"]),
        of_system("a longer network", Cause::NetworkLatency, &["network.delay=1.9us"]),
        of_system("a far network", Cause::NetworkLatency, &["network.delay=31us"]),
        Case {
            known: vec!["pcie0.rate=256Gbit/s"],
            ..of_system("small TLPs", Cause::MaxPayload, &["host.pcie_mtu=128B"])
        },
        of_run("MTU 256", Cause::PathMtu, |run| run.mtu = Some(Bytes::new(256))),
        of_run("MTU 1024", Cause::PathMtu, |run| run.mtu = Some(Bytes::new(1024))),
        of_system("no DDIO", Cause::DdioOff, &["host.ddio=false"]),
        Case {
            known: vec!["pcie0.read_requests=64"],
            ..of_system("small read requests", Cause::MaxReadRequest, &["pcie0.read_request_limit=128B"])
        },
        of_run("depth 1", Cause::TxDepth, depth::<1>),
        of_run("depth 4", Cause::TxDepth, depth::<4>),
        of_run("one READ", Cause::OutstandingReads, |run| run.outstanding_reads = Some(1)),
        of_run("four READs", Cause::OutstandingReads, |run| run.outstanding_reads = Some(4)),
        of_run("nothing inline", Cause::InlineOff, |run| run.inline = Bytes::ZERO),
        of_system("half a clock", Cause::ProcessorClock, SLOW_CLOCK),
        of_system(
            "a clock a quarter slower",
            Cause::ProcessorClock,
            &[
                "host_verbs.post_latency=96.9ns",
                "host_verbs.post_time=227.4ns",
                "host_verbs.poll_latency=350ns",
                "host_verbs.poll_time=165ns",
            ],
        ),
        of_system(
            "a clock of no usual rate",
            Cause::ProcessorClock,
            &[
                "host_verbs.post_latency=193.8ns",
                "host_verbs.post_time=454.8ns",
                "host_verbs.poll_latency=700ns",
                "host_verbs.poll_time=330ns",
                "host_verbs.receive_latency=3127.5ns",
                "host_verbs.receive_time=235ns",
                "host_verbs.batch_fixed_time=750ns",
                "host_verbs.batch_per_wqe_time=375ns",
            ],
        ),
        of_system("a link of 360 Gbit/s", Cause::PcieLink, &["pcie0.rate=360Gbit/s"]),
        of_system("one port of two", Cause::PortRate, &["nic.port_rate=200Gbit/s"]),
        of_system("a quarter of the ports", Cause::PortRate, &["nic.port_rate=100Gbit/s"]),
        of_system("a port of 50 Gbit/s", Cause::PortRate, &["nic.port_rate=50Gbit/s"]),
        of_system("a port of 25 Gbit/s", Cause::PortRate, &["nic.port_rate=25Gbit/s"]),
        of_system("a port of no usual rate", Cause::PortRate, &["nic.port_rate=140Gbit/s"]),
        Case {
            path: "client-soc",
            device: "bluefield3",
            ..of_system("the card's processor", Cause::OtherEndpoint, &[])
        },
        of_run("ten iterations", Cause::FewIterations, |run| run.length = Some(RunLength::Iterations(10))),
        Case {
            asked: Asked {
                runs: vec![|run| run.directions = TrafficDirections::Both],
                counted: 0.5,
                ..as_usual()
            },
            // Half of both directions is what one direction carries.
            without_head: false,
            ..of_system("one of two directions", Cause::OneDirectionCounted, &[])
        },
        Case { asked: Asked { unit: 8.0, ..as_usual() }, ..of_system("bits", Cause::Unit, &[]) },
        Case {
            asked: Asked { unit: 8.0, has_rate: false, ..as_usual() },
            ..of_system("bits without a message rate", Cause::Unit, &[])
        },
        Case {
            asked: Asked { latency_times: 2.0, ..as_usual() },
            // A head names the program, which prints one span alone.
            with_head: false,
            ..of_system("round trips", Cause::LatencySpan, &[])
        },
    ]
}

fn names(diagnosis: &Diagnosis) -> Vec<Vec<String>> {
    let of = |group: &CauseGroup| -> Vec<String> {
        let shown = group.findings.iter().map(|finding| {
            format!("{} {} {:.2}", finding.cause.name(), finding.degree, finding.explained_share)
        });
        shown.collect()
    };
    diagnosis.groups.iter().map(of).collect()
}

/// The place of a cause among the groups, from 1.
fn rank(diagnosis: &Diagnosis, cause: Cause) -> Option<usize> {
    let has = |group: &CauseGroup| group.findings.iter().any(|finding| finding.cause == cause);
    diagnosis.groups.iter().position(has).map(|place| place + 1)
}

#[test]
fn each_cause_alone_is_first_with_and_without_heads() {
    let mut wrong = Vec::new();
    for case in cases() {
        for has_head in [true, false] {
            if !(if has_head { case.with_head } else { case.without_head }) {
                continue;
            }
            let case = Case { asked: Asked { has_head, ..case.asked.clone() }, ..case.clone() };
            let diagnosis = found(&case, 7);
            let told = format!(
                "{}, head {has_head}: {:?} at {:.2}: {:?}",
                case.name,
                diagnosis.verdict,
                diagnosis.median_share,
                names(&diagnosis)
            );
            println!("{told}");
            if rank(&diagnosis, case.causes[0]) != Some(1) {
                wrong.push(told);
            }
            // A group of many is no answer.
            assert!(
                diagnosis.groups.first().is_none_or(|group| group.findings.len() <= 2),
                "{:?}",
                diagnosis.groups
            );
        }
    }
    // Without a head, the headers of an MTU of 256 B are taken for a port that carries a fifth less, with an MTU beside it.
    let missed: Vec<&str> =
        wrong.iter().filter_map(|told| told.split_once(':')).map(|(case, _)| case).collect();
    let known = ["MTU 256, head false"];
    assert_eq!(missed, known, "{}", wrong.join("\n"));
}

/// A head that states the depth, the READs in flight, the MTU and what goes inline rules out that they are another; without
/// one some of them is named.
#[test]
fn what_a_head_states_is_no_cause() {
    let causes = [
        Cause::TxDepth,
        Cause::OutstandingReads,
        Cause::PathMtu,
        Cause::InlineOff,
        Cause::FewIterations,
        Cause::LatencySpan,
    ];
    let mut without = 0;
    for name in ["round trips", "slow accesses", "half a clock", "a quarter of a link"] {
        let case = cases().into_iter().find(|case| case.name == name).expect("a case");
        for has_head in [true, false] {
            let case = Case { asked: Asked { has_head, ..case.asked.clone() }, ..case.clone() };
            let diagnosis = found(&case, 7);
            let named = causes.iter().filter(|cause| rank(&diagnosis, **cause).is_some()).count();
            assert!(!has_head || named == 0, "{name}: {:?}", names(&diagnosis));
            without += named;
        }
    }
    assert!(without > 0, "without a head nothing is ruled out");
}

/// A head without its title still has the READs in flight, which no other program's has: rows that are low for READs are not
/// taken for those of a program that they would be usual for.
#[test]
fn reads_in_flight_say_what_a_head_without_its_title_is_of() {
    let system = system("connectx7", &[]);
    let bench = ToolBench::new(&system, "client-host").expect("a path");
    let of = |times: f64, is_cut: bool| {
        let asked = Asked { counted: times, ..as_usual() };
        let text = printed(&bench, "ib_read_bw", &asked, &mut Noise(5));
        let rest = text.split_once('\n').expect("a title").1.to_string();
        let text = if is_cut { rest } else { text };
        diagnose(&system, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared")
    };
    for times in [1.0, 0.9, 0.8, 0.5] {
        let (whole, cut) = (of(times, false), of(times, true));
        assert_eq!((whole.verdict, whole.median_share), (cut.verdict, cut.median_share), "{times}");
    }
}

/// Bandwidth and message rate of a row follow from one count and one clock, so where they agree the unit of neither is wrong,
/// however far off both are: a message is no byte. A wrong clock is asked for.
#[test]
fn no_unit_is_blamed_where_bandwidth_and_message_rate_agree() {
    for (counted, has_head) in [
        (0.85, true),
        (0.9, true),
        (0.95, true),
        (0.95, false),
        (1.048_576, true),
        (0.125, true),
        (8.0, true),
    ] {
        let case = Case { asked: Asked { counted, has_head, ..as_usual() }, ..healthy() };
        let diagnosis = found(&case, 7);
        assert_eq!(rank(&diagnosis, Cause::Unit), None, "{counted}: {:?}", names(&diagnosis));
        let asks = diagnosis.questions.iter().any(|question| question.what.contains("clock"));
        assert_eq!(asks, counted == 8.0, "{counted}: {:?}", diagnosis.questions);
    }
}

/// Where a log says by itself that its bandwidths are in another unit, the log speaks for it, and by what it says.
#[test]
fn a_wrong_unit_is_told_by_the_message_rate_beside_it() {
    for (unit, degree) in [
        (8.0, "bits that are called bytes"),
        (0.125, "bytes that are called bits"),
        (1.048_576, "10^6 bytes that are called 2^20"),
        (1.0 / 1.048_576, "2^20 bytes that are called 10^6"),
    ] {
        let diagnosis = found(&Case { asked: Asked { unit, ..as_usual() }, ..healthy() }, 7);
        // 4.9% is less than a gap, and named since it is all that is off.
        let Some(group) = diagnosis.groups.first() else { panic!("{unit}: {:?}", diagnosis.verdict) };
        let first = &group.findings[0];
        assert_eq!((first.cause, first.degree.as_str()), (Cause::Unit, degree), "{:?}", names(&diagnosis));
        let verdict = match unit {
            8.0 => DiagnosisVerdict::High,
            0.125 => DiagnosisVerdict::Low,
            unit if unit > 1.0 => DiagnosisVerdict::SlightlyHigh,
            _ => DiagnosisVerdict::SlightlyLow,
        };
        assert_eq!(diagnosis.verdict, verdict, "{unit}");
        assert!(first.evidence[0].contains("times size times message rate"), "{:?}", first.evidence);
    }
}

/// Packets are those of the link layer that a head states, and where none does those of the profile: of RoCEv2 with an MTU of
/// 1024 B a port carries 3% less.
#[test]
fn the_link_layer_of_a_head_is_that_of_the_model() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let asked = Asked { runs: vec![|run| run.mtu = Some(Bytes::new(1024))], ..as_usual() };
    let text = printed(&bench, "ib_write_bw", &asked, &mut Noise(5));
    let of = |text: String| {
        let found =
            diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared");
        let large: Vec<f64> = found.points.iter().rev().take(6).map(|point| point.share_as_stated).collect();
        let is_told = found.assumed.iter().any(|assumed| assumed.contains("the logs state Ethernet"));
        (large.iter().sum::<f64>() / large.len() as f64, is_told)
    };
    let (ethernet, is_told) = of(text.clone());
    assert!((ethernet - 1.0).abs() < 0.012 && is_told, "{ethernet}");
    let (infiniband, is_told) = of(text.replace("Ethernet", "IB"));
    assert!(infiniband < 0.985 && !is_told, "{infiniband}");
}

/// What states that it goes one way is not half of two: of two logs that are half of what they should be, one of which goes both
/// ways, counting one direction explains that one alone.
#[test]
fn a_run_of_one_direction_counts_one() {
    let hidden = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden, "client-host").expect("a path");
    let of = |directions: fn(&mut ToolRun)| {
        let asked = Asked { runs: vec![directions], counted: 0.5, ..as_usual() };
        printed(&bench, "ib_write_bw", &asked, &mut Noise(5))
    };
    let both = of(|run| run.directions = TrafficDirections::Both);
    let one = of(|_| ());
    let shares = |texts: &[(String, String)]| {
        let diagnosis = diagnose(&hidden, figures(texts), None, exactly).expect("it is compared");
        let groups = diagnosis.groups.iter().flat_map(|group| group.findings.clone());
        let own = groups.filter(|finding| finding.cause == Cause::OneDirectionCounted);
        own.map(|finding| finding.explained_share).next()
    };
    let (both, one) = (("both.log".to_string(), both), ("one.log".to_string(), one));
    let of_both = shares(std::slice::from_ref(&both)).expect("it explains what goes both ways");
    let of_two = shares(&[both, one]).expect("it explains a half");
    assert!(of_both > 0.9 && (0.4..0.6).contains(&of_two), "{of_both} {of_two}");
}

/// What changes no row by a tenth is not seen, and nothing else is blamed for it.
#[test]
fn what_costs_nothing_raises_nothing() {
    for (name, hidden) in [
        ("small read requests of which any number may be in flight", "pcie0.read_request_limit=128B"),
        ("small TLPs on a wide link", "host.pcie_mtu=256B"),
    ] {
        let case = of_system(name, Cause::MaxReadRequest, &[hidden]);
        let diagnosis = found(&case, 11);
        assert_eq!((diagnosis.verdict, diagnosis.groups.len()), (DiagnosisVerdict::Normal, 0), "{name}");
    }
}

#[test]
fn of_two_causes_both_are_in_the_first_three() {
    let all = cases();
    let of = |name: &str| all.iter().find(|case| case.name == name).expect("a case").clone();
    let pairs = [
        ("half a link", "round trips", false),
        ("a quarter of a link", "half a clock", true),
        ("a quarter of the ports", "slow accesses", true),
        ("one READ", "one port of two", true),
        ("depth 4", "a quarter of a link", true),
        ("MTU 256", "slow accesses", true),
        ("nothing inline", "a quarter of the ports", true),
        ("half a clock", "one port of two", true),
        ("MTU 1024", "depth 1", true),
        ("no DDIO", "one port of two", true),
        ("small read requests", "half a clock", true),
        ("a quarter of the ports", "bits", true),
        ("bits without a message rate", "slow accesses", true),
        ("MTU 1024", "depth 1", false),
    ];
    let mut wrong = Vec::new();
    let on_other = [("MTU 1024", "depth 1", false, "bluefield3")];
    let pairs = pairs.map(|(first, second, has_head)| (first, second, has_head, "connectx7"));
    for (first, second, has_head, device) in pairs.into_iter().chain(on_other) {
        let (one, other) = (of(first), of(second));
        let case = Case {
            device,
            known: [&one.known[..], &other.known[..]].concat(),
            hidden: [&one.hidden[..], &other.hidden[..]].concat(),
            asked: Asked {
                runs: [&one.asked.runs[..], &other.asked.runs[..]].concat(),
                counted: one.asked.counted * other.asked.counted,
                unit: one.asked.unit * other.asked.unit,
                latency_times: one.asked.latency_times * other.asked.latency_times,
                has_head,
                has_rate: one.asked.has_rate && other.asked.has_rate,
            },
            ..one.clone()
        };
        let diagnosis = found(&case, 13);
        let told = format!(
            "{first} and {second}, head {has_head}, {device}: {:?}, together {:?}: {:?}",
            diagnosis.verdict,
            diagnosis.explained_together,
            names(&diagnosis)
        );
        println!("{told}");
        let is_in = |case: &Case| rank(&diagnosis, case.causes[0]).is_some_and(|rank| rank <= 3);
        if !is_in(&one) || !is_in(&other) {
            wrong.push(told);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn healthy_logs_raise_no_alarm() {
    let mut alarms = Vec::new();
    for seed in 0..200 {
        // Rows without heads take longer, since every program is tried.
        let case = Case { asked: Asked { has_head: seed % 10 != 0, ..as_usual() }, ..healthy() };
        let diagnosis = found(&case, 1000 + seed);
        if diagnosis.verdict != DiagnosisVerdict::Normal {
            alarms.push(format!("{seed}: {:?} {:?}", diagnosis.verdict, names(&diagnosis)));
        }
    }
    println!("{} alarms in 200", alarms.len());
    assert!(alarms.len() <= 4, "{}", alarms.join("\n"));
}

/// Bandwidth and message rate of a row follow from one count: where they contradict each other by no unit, which of both is
/// wrong is not said, and nothing is diagnosed from them.
#[test]
fn rows_that_contradict_themselves_are_not_diagnosed() {
    let diagnosis = found(&Case { asked: Asked { unit: 2.0, ..as_usual() }, ..healthy() }, 7);
    assert_eq!(
        (diagnosis.verdict, diagnosis.groups.len()),
        (DiagnosisVerdict::Normal, 0),
        "the latencies are"
    );
    assert!(diagnosis.points.iter().all(|point| point.metric.starts_with("latency")));
    let told =
        diagnosis.skipped.iter().find(|(why, _)| why.contains("size times rate")).map(|(_, count)| *count);
    assert!(told >= Some(40), "{:?}", diagnosis.skipped);
}

/// A row of a log whose bandwidth alone is odd is left out, and the others hold.
#[test]
fn one_row_that_contradicts_itself_is_left_out() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
    let of = |text: String| {
        diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared")
    };
    let odd: String = text
        .lines()
        .map(|line| {
            let mut cells: Vec<String> = line.split_whitespace().map(str::to_string).collect();
            if cells.len() == 5 && cells[0] == "65536" {
                cells[4] = format!("{:.6}", cells[4].parse::<f64>().expect("a rate") / 2.0);
                return cells.join(" ") + "\n";
            }
            format!("{line}\n")
        })
        .collect();
    let (whole, odd) = (of(text), of(odd));
    assert_eq!((odd.verdict, odd.points.len()), (DiagnosisVerdict::Normal, whole.points.len() - 1));
}

/// What `offpath measure` writes is compared as what it states, its path among it.
#[test]
fn files_of_measure_are_compared() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&known, "client-host").expect("a path");
    let of = |times: f64, path: &str| {
        let mut text = String::from("{\"offpath_measure\":2}\n");
        for (program, operation) in [
            ("ib_write_bw", LogOperation::Write),
            ("ib_read_bw", LogOperation::Read),
            ("ib_atomic_bw", LogOperation::CompareAndSwap),
            ("ib_atomic_bw", LogOperation::FetchAndAdd),
        ] {
            let program = ToolProgram::named(program).expect("it is one");
            for (power, depth) in [(3, 128), (3, 1), (6, 16), (12, 64), (16, 128)] {
                let is_atomic = program.verb == Verb::FetchAndAdd;
                let size = if is_atomic { 8 } else { 1u64 << power };
                let mut run = program.run(Bytes::new(size));
                (run.tx_depth, run.cq_moderation) = (depth, depth.min(100));
                if operation == LogOperation::CompareAndSwap {
                    run.verb = Verb::CompareAndSwap;
                }
                run.length = Some(RunLength::Duration(Time::from_us(900)));
                let rate = bench.expect(&run).expect("it is modelled").rate_per_s * times;
                let verb = operation.name();
                writeln!(
                    text,
                    "{{\"point\":\"p\",\"path\":\"{path}\",\"verb\":\"{verb}\",\"kind\":\"bandwidth\",\"payload_bytes\":{size},\
                     \"queue_pairs\":1,\"tx_depth\":{depth},\"post_list\":1,\"cq_moderation\":{},\"inline_bytes\":0,\
                     \"posting_threads\":1,\"directions\":\"one\",\"beside\":null,\"mtu_bytes\":4096,\"device\":\"a\",\
                     \"windows\":[],\"windows_measured\":3,\"operations_per_s_median\":{rate:.1},\"latency_ns_median\":null,\
                     \"measured_ns\":{}}}",
                    run.cq_moderation,
                    900_000 + size
                )
                .unwrap();
            }
        }
        diagnose(&known, figures(&[("a.jsonl".to_string(), text)]), None, exactly).expect("it is compared")
    };
    let as_it_is = of(1.0, "client-host");
    assert_eq!(as_it_is.points.len(), 20, "{:?}", as_it_is.skipped);
    assert_eq!(as_it_is.verdict, DiagnosisVerdict::Normal, "what it states holds nothing back");
    assert_eq!(of(0.5, "client-host").verdict, DiagnosisVerdict::Low);
    let elsewhere = of(1.0, "client-soc");
    assert_eq!(elsewhere.verdict, DiagnosisVerdict::Nothing);
    assert!(elsewhere.skipped.keys().all(|why| why.contains("--path client-soc")), "{:?}", elsewhere.skipped);
}

/// Points of `offpath measure` tell of waits as rows of perftest do: the mean over all windows counts beside their median, and
/// latencies beyond the median that is compared.
#[test]
fn waits_show_in_files_of_measure_as_in_logs() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&known, "client-host").expect("a path");
    let point = |kind: &str, size: u64, directions: TrafficDirections, more: &str| {
        let (depth, verb) = if kind == "latency" { (1, "read") } else { (128, "write") };
        format!(
            "{{\"point\":\"{kind} {size}\",\"path\":\"client-host\",\"verb\":\"{verb}\",\"kind\":\"{kind}\",\"payload_bytes\":{size},\
             \"queue_pairs\":1,\"tx_depth\":{depth},\"post_list\":1,\"cq_moderation\":{},\"inline_bytes\":0,\
             \"posting_threads\":1,\"directions\":\"{}\",\"beside\":null,\"mtu_bytes\":4096,\"device\":\"a\",\
             \"windows_measured\":3,\"measured_ns\":900000,{more}}}\n",
            depth.min(100),
            directions.name()
        )
    };
    let of = |points: String| {
        let text = format!("{{\"offpath_measure\":2}}\n{points}");
        diagnose(&known, figures(&[("a.jsonl".to_string(), text)]), None, exactly).expect("it is compared")
    };
    // A window that took so many times as long as both others.
    let rates = |times: f64, directions: TrafficDirections| {
        let points = [64u64, 512, 4096].map(|size| {
            let mut run = ToolProgram::named("ib_write_bw").expect("it is one").run(Bytes::new(size));
            run.length = Some(RunLength::Duration(Time::from_us(900)));
            run.directions = directions;
            let rate = bench.expect(&run).expect("it is modelled").rate_per_s;
            let window = |times: f64| {
                format!("{{\"requests\":4000,\"time_ns\":{:.1},\"latency_ns_median\":null}}", 4e12 / rate * times)
            };
            let (even, slow) = (window(1.0), window(times));
            let more = format!(
                "\"windows\":[{even},{slow},{even}],\"operations_per_s_median\":{rate:.1},\"operations_per_s_min\":{:.1},\
                 \"operations_per_s_max\":{rate:.1}",
                rate / times
            );
            point("bandwidth", size, directions, &more)
        });
        of(points.concat())
    };
    let named = |found: &Diagnosis| found.shapes.iter().map(|shape| shape.name).collect::<Vec<_>>();
    let stopped = rates(20.0, TrafficDirections::One);
    assert_eq!(stopped.verdict, DiagnosisVerdict::Normal, "the median is as it should be");
    assert!(named(&stopped).contains(&"burst"), "{:?}", stopped.shapes);
    for point in &stopped.points {
        let share = point.mean_share.expect("the mean is below the median") / point.share;
        assert!((share - 3.0 / 22.0).abs() < 1e-6 && point.least_share() < 0.9, "{point:?}");
    }
    let even = rates(1.0, TrafficDirections::One);
    assert!(!named(&even).contains(&"burst") && even.points.iter().all(|point| point.least_share() >= 0.99));
    // Both directions have windows of their own, of which the mean is bounded.
    let both = rates(20.0, TrafficDirections::Both);
    for point in &both.points {
        let share = point.mean_share.expect("the mean is below the median") / point.share;
        assert!((share - 2.05 / 3.0).abs() < 1e-4, "{point:?}");
    }
    // Without a mean the percentile bounds it.
    let latencies = |p99: f64, longest: f64| {
        let run = ToolProgram::named("ib_read_lat").expect("it is one").run(Bytes::new(64));
        let ns = bench.expect(&run).expect("it is modelled").latency.as_ns();
        let more = format!(
            "\"windows\":[],\"latency_ns_median\":{ns:.1},\"latency_ns_min\":{ns:.1},\"latency_ns_p99\":{:.1},\
             \"latency_ns_max\":{longest:.1}",
            ns * p99
        );
        of(point("latency", 64, TrafficDirections::One, &more))
    };
    let waited = latencies(100.0, 2.6e9);
    let shape = waited.shapes.iter().find(|shape| shape.name == "timer-wait").expect("it is told");
    assert!(
        shape.what.contains("at least 1.99 times") && shape.what.contains("2600.000 ms"),
        "{}",
        shape.what
    );
    assert!(
        (waited.points[0].mean_share.expect("it waited") - 1.0 / 1.99).abs() < 0.01,
        "{:?}",
        waited.points
    );
    assert_eq!(named(&latencies(1.1, 2.6e9)), ["timer-wait"], "one operation of a second");
    assert_eq!(named(&latencies(100.0, 3e6)), ["tail"]);
    let usual = latencies(3.0, 9e4);
    assert!(usual.shapes.is_empty() && usual.points[0].mean_share.is_none(), "{:?}", usual.shapes);
}

/// A run that waits once for a timer takes a fixed time longer: that is asked for, whatever an operation seems to take.
/// What perftest prints of a run by time: the mean, with the operations that one request at a time makes of it.
#[test]
fn a_latency_by_time_is_a_latency() {
    let system = system("connectx7", &[]);
    let bench = ToolBench::new(&system, "client-host").expect("a path");
    for (program, title) in [("ib_read_lat", "RDMA_Read"), ("ib_write_lat", "RDMA_Write")] {
        let run = ToolProgram::named(program).expect("a program").run(Bytes::new(64));
        let us = bench.expect(&run).expect("it is carried").latency.as_seconds() * 1e6;
        let head = format!(
            "                    {title} Latency Test\n Connection type : RC\t\tUsing SRQ      : OFF\n"
        );
        for head in [&*head, ""] {
            let row =
                |us: f64| format!(" 64         4000000             {us:.2}                {:.2}\n", 1e6 / us);
            let rows = " #bytes #iterations    t_avg[usec]    tps average\n";
            let of = |us: f64| {
                let text = format!("{head}{rows}{}", row(us));
                diagnose(&system, figures(&[("d.log".into(), text)]), None, exactly)
                    .expect("it can be compared")
            };
            let found = of(us);
            assert_eq!(found.points.len(), 1, "{program}: {:?}", found.skipped);
            assert!(found.points[0].metric.starts_with("latency_ns"), "{}", found.points[0].metric);
            assert_eq!(found.verdict.name(), "normal", "{program}: {:?}", found.points);
        }
    }
}

/// Heads that no program writes are not followed.
#[test]
fn what_no_program_runs_is_left_out_with_its_bound() {
    let system = system("connectx7", &[]);
    for (line, said) in [
        (" Mtu             : 0[B]", "the MTU in bytes"),
        (" Number of qps   : 4000000000", "the number of queue pairs"),
        (" TX depth        : 99999999", "the depth"),
    ] {
        let text = format!(
            "                    RDMA_Read BW Test\n Connection type : RC\n{line}\n #bytes     #iterations    BW peak[Gb/sec]    BW \
             average[Gb/sec]   MsgRate[Mpps]\n 65536      1000             100.00             100.00               0.190735\n"
        );
        let found =
            diagnose(&system, figures(&[("bad.log".into(), text)]), None, exactly).expect("it is read");
        assert!(found.points.is_empty(), "{line}: {:?}", found.points);
        assert!(found.skipped.keys().any(|why| why.contains(said)), "{line}: {:?}", found.skipped);
    }
}

#[test]
fn a_run_that_waited_once_asks_for_timers() {
    let hidden = hidden_system("connectx7", &[]);
    let bench = ToolBench::new(&hidden, "client-host").expect("a path");
    let known = system("connectx7", &[]);
    for (program, wait_s, asks) in
        [("ib_send_bw", 0.491, 2), ("ib_send_bw", 0.04, 2), ("ib_write_bw", 0.3, 1), ("ib_send_bw", 0.002, 0)]
    {
        let mut text = String::new();
        for line in printed(&bench, program, &as_usual(), &mut Noise(5)).lines() {
            let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
            match cells[..] {
                [size, count, _, _, rate] if size <= 4096.0 => {
                    let rate = count / (count / (rate * 1e6) + wait_s) / 1e6;
                    let mib = size * rate * 1e6 / 1_048_576.0;
                    writeln!(text, " {size} {count} {mib:.2} {mib:.2} {rate:.6}").unwrap();
                }
                [..] => writeln!(text, "{line}").unwrap(),
            }
        }
        let found =
            diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared");
        let waits =
            found.questions.iter().filter(|question| question.what.contains("ms longer than expected"));
        assert_eq!(waits.count(), asks, "{program} {wait_s}: {:?}", found.questions);
        let shape =
            found.shapes.iter().find(|shape| shape.name == "constant-operations").expect("it is flat");
        assert_eq!(shape.what.contains("waits once"), asks > 0, "{}", shape.what);
    }
}

/// A machine whose link carries less than a row has is another one: nothing that it says is evidence.
#[test]
fn files_that_the_rows_prove_wrong_are_no_evidence() {
    let file = "../logs/tests/data/machines/narrow/lspci.txt";
    let text =
        std::fs::read_to_string(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join(file)).expect("a file");
    let mut facts = offpath_logs::machine::MachineFacts::default();
    facts.read("lspci.txt", &text);
    let machine = describe(&facts, Some("3b:00.0")).expect("a card");
    let known = system("connectx7", &[]);
    let of = |rate: &str| {
        let hidden = hidden_system("connectx7", &[rate]);
        let bench = ToolBench::new(&hidden, "client-host").expect("a path");
        let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
        diagnose(&known, figures(&[("a.log".to_string(), text)]), Some(&machine), exactly)
            .expect("it is compared")
    };
    let has_evidence = |diagnosis: &Diagnosis| {
        diagnosis.groups.iter().flat_map(|group| &group.findings).any(|one| !one.evidence.is_empty())
    };
    let (other, own) = (of("pcie0.rate=200Gbit/s"), of("pcie0.rate=120Gbit/s"));
    assert_eq!((other.verdict, own.verdict), (DiagnosisVerdict::Low, DiagnosisVerdict::Low));
    assert!(other.contradictions[0].contains("8 GT/s x16"), "{:?}", other.contradictions);
    assert!(!has_evidence(&other), "{:?}", names(&other));
    assert!(own.contradictions.is_empty() && has_evidence(&own), "{:?}", own.contradictions);
}

/// The card's link and its port, as a machine's files state them.
fn machine_of(link: &str, port: &str) -> offpath_learn::describe::Description {
    let text = format!(
        "00:01.0 PCI bridge: A Bridge\n\tBus: primary=00, secondary=3b, subordinate=3b, sec-latency=0\n\t\tLnkCap:\tPort #1, Speed \
         16GT/s, Width x16\n\t\tLnkSta:\tSpeed {link}\n3b:00.0 Ethernet controller: B Card\n\t\tLnkCap:\tPort #0, Speed 16GT/s, Width \
         x16\n\t\tLnkSta:\tSpeed {link}\nhca_id:\tmlx5_0\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\tPORT_ACTIVE \
         (4)\n\t\t\tactive_width:\t\t4X (2)\n\t\t\tactive_speed:\t\t{port}\n"
    );
    let mut facts = offpath_logs::machine::MachineFacts::default();
    facts.read("machine.txt", &text);
    describe(&facts, None).expect("one card")
}

/// A link that is slower than it can be and that the profile has as it is explains no rows that are slower than it: the port does, which
/// the files state at the rate that the rows have.
#[test]
fn what_files_state_speaks_by_its_value() {
    let settings = ["pcie0.rate=128Gbit/s", "pcie0.encoding=0.984615", "nic.port_rate=100Gbit/s"];
    let known = system("connectx7", &settings);
    let slow = ["pcie0.rate=128Gbit/s", "pcie0.encoding=0.984615", "nic.port_rate=50Gbit/s"];
    let bench = ToolBench::new(&hidden_system("connectx7", &slow), "client-host").expect("a path");
    let texts: Vec<(String, String)> = ["ib_write_bw", "ib_read_bw"]
        .iter()
        .map(|program| (format!("{program}.log"), printed(&bench, program, &as_usual(), &mut Noise(5))))
        .collect();
    let of = |machine| diagnose(&known, figures(&texts), Some(&machine), exactly).expect("it is compared");
    let found = of(machine_of("8GT/s, Width x16", "12.5 Gbps (16)"));
    assert_eq!(found.contradictions, [""; 0]);
    let first = &found.groups[0].findings[0];
    assert_eq!(first.cause, Cause::PortRate, "{:?}", names(&found));
    assert!(first.evidence.iter().any(|said| said.contains("port_rate 50 Gbit/s")), "{:?}", first.evidence);
    assert!(first.degree.contains("50 of 100 Gbit/s"), "{}", first.degree);
    let links =
        found.groups.iter().flat_map(|group| &group.findings).find(|one| one.cause == Cause::PcieLink);
    assert!(links.is_none_or(|link| link.evidence.is_empty()), "{links:?}");
    // Files of a machine whose port carries less than a row has are of another one.
    let other = of(machine_of("8GT/s, Width x16", "2.5 Gbps (1)"));
    assert!(other.contradictions[0].contains("the ports carry 8 Gbit/s"), "{:?}", other.contradictions);
    assert!(other.are_files_refuted && other.faults.is_empty(), "{:?}", other.faults);
}

/// A small gap that nothing explains is none, and no page speaks of a cause that it does not show.
#[test]
fn a_small_gap_without_a_cause_is_normal() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let known = system("connectx7", &[]);
    for seed in 0..20 {
        let asked = Asked { runs: vec![|run| run.queue_pairs = 8], ..as_usual() };
        let mut text = String::new();
        for line in printed(&bench, "ib_read_bw", &asked, &mut Noise(seed)).lines() {
            let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
            match cells[..] {
                // One row was hit, and the others are what they should be.
                [size, count, _, _, rate] if size == 4096.0 => {
                    let rate = rate * 0.4;
                    let mib = size * rate * 1e6 / 1_048_576.0;
                    writeln!(text, " {size} {count} {mib:.2} {mib:.2} {rate:.6}").unwrap();
                }
                [..] => writeln!(text, "{line}").unwrap(),
            }
        }
        let found =
            diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared");
        let is_small = found.verdict == DiagnosisVerdict::SlightlyLow;
        assert!(!is_small || !found.groups.is_empty(), "{seed}: a cause is spoken of, and none is shown");
    }
}

/// The rows of a bandwidth test, each with its mean and its peak so many times what they were.
fn rescaled(text: &str, times: impl Fn(f64) -> (f64, f64)) -> String {
    let mut changed = String::new();
    for line in text.lines() {
        let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
        match cells[..] {
            [size, count, peak, mean, rate] => {
                let (of_mean, of_peak) = times(size);
                let (peak, mean, rate) = (peak * of_peak, mean * of_mean, rate * of_mean);
                writeln!(changed, " {size} {count} {peak:.2} {mean:.2} {rate:.6}").unwrap();
            }
            [..] => writeln!(changed, "{line}").unwrap(),
        }
    }
    changed
}

/// What a program prints, changed, as it is diagnosed.
fn of_rows(program: &str, times: impl Fn(f64) -> (f64, f64)) -> Diagnosis {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = rescaled(&printed(&bench, program, &as_usual(), &mut Noise(5)), times);
    diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
        .expect("it is compared")
}

/// One row far below is named where all others are fine, and of many the furthest comes first.
#[test]
fn rows_that_are_off_are_named_whatever_the_verdict() {
    let payload = |found: &Diagnosis, place: usize| found.points[found.off[place]].run.clone();
    let one = of_rows("ib_write_bw", |size| if size == 4096.0 { (0.74, 0.74) } else { (1.0, 1.0) });
    assert_eq!((one.verdict, one.off.len()), (DiagnosisVerdict::Normal, 1), "{:?}", one.off);
    assert!(payload(&one, 0).contains("of 4 KiB,"), "{}", payload(&one, 0));
    assert!((one.points[one.off[0]].share - 0.74).abs() < 0.06, "{}", one.points[one.off[0]].share);
    let many = of_rows("ib_write_bw", |size| match size {
        65536.0 => (0.3, 0.3),
        size if size > 65536.0 => (0.6, 0.6),
        _ => (1.0, 1.0),
    });
    assert_eq!((many.verdict, many.off.len()), (DiagnosisVerdict::Low, 8), "{:?}", many.off);
    assert!(payload(&many, 0).contains("of 64 KiB,"), "{}", payload(&many, 0));
    assert!(of_rows("ib_write_bw", |_| (1.0, 1.0)).off.is_empty());
    // Held back as stated, a row is held to what is expected of it as stated.
    let depth = Asked { runs: vec![depth::<1>], ..as_usual() };
    let held = found(&Case { asked: depth, ..healthy() }, 7);
    assert_eq!((held.verdict, held.off.len()), (DiagnosisVerdict::HeldBackAsStated, 0), "{:?}", held.off);
}

/// What is not known of a card is no fault of the machine: rows are low where they are lower than what that leaves open.
#[test]
fn rows_within_what_is_not_known_are_called_neither_low_nor_high() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let verdict = |share: f64, (least, most): (f64, f64)| {
        let asked = Asked { counted: share, ..as_usual() };
        let text = printed(&bench, "ib_write_bw", &asked, &mut Noise(7));
        let leeway = |_: &System, runs: &[ToolRun]| {
            runs.iter().map(|_| Leeway { least, most, basis: "order only" }).collect()
        };
        diagnose(&known, figures(&[("a.log".to_string(), text)]), None, leeway)
            .expect("it is compared")
            .verdict
    };
    assert_eq!(verdict(0.7, (1.0, 1.0)), DiagnosisVerdict::Low);
    assert_eq!(verdict(0.7, (0.8, 1.3)), DiagnosisVerdict::Low);
    assert_eq!(verdict(0.7, (0.6, 1.3)), DiagnosisVerdict::Inconclusive);
    assert_eq!(verdict(1.4, (0.6, 1.2)), DiagnosisVerdict::High);
    assert_eq!(verdict(1.4, (0.6, 1.5)), DiagnosisVerdict::Inconclusive);
    assert_eq!(verdict(1.0, (0.5, 2.0)), DiagnosisVerdict::Normal);
}

/// Half at every size is counting or timing, which goes before a coincidence of a slow processor and a slow link; half of large
/// sizes alone is a slow port.
#[test]
fn exactly_half_at_every_size_is_told_and_explained_by_what_halves() {
    let has_shape = |found: &Diagnosis| found.shapes.iter().any(|shape| shape.name == "exactly-half");
    for program in ["ib_write_bw", "ib_read_bw"] {
        let half = of_rows(program, |_| (0.5, 0.5));
        assert!(has_shape(&half), "{program}: {:?}", half.shapes);
        assert_eq!(rank(&half, Cause::HalfCounted), Some(1), "{program}: {:?}", names(&half));
        assert_eq!(half.explained_together, None, "{program}: {:?}", names(&half));
        // One row may be off by something of its own.
        let nearly = of_rows(program, |size| if size == 1024.0 { (0.6, 0.6) } else { (0.5, 0.5) });
        assert!(has_shape(&nearly), "{program}: {:?}", nearly.shapes);
        assert_eq!(rank(&nearly, Cause::HalfCounted), Some(1), "{program}: {:?}", names(&nearly));
        // Nor is a card that is off by a little beside it a reason for two causes that meet at a half by chance.
        let beside = of_rows(program, |size| if size > 4096.0 { (0.47, 0.47) } else { (0.5, 0.5) });
        assert_eq!(rank(&beside, Cause::HalfCounted), Some(1), "{program}: {:?}", names(&beside));
        let other = of_rows(program, |_| (0.45, 0.45));
        assert!(!has_shape(&other), "{program}: {:?}", other.shapes);
        assert_eq!(rank(&other, Cause::HalfCounted), None, "{program}: {:?}", names(&other));
    }
    let port = found(&of_system("one port of two", Cause::PortRate, &["nic.port_rate=200Gbit/s"]), 7);
    assert!(!has_shape(&port) && rank(&port, Cause::HalfCounted).is_none(), "{:?}", names(&port));
    // Twice a latency, of a program whose span its head says.
    let asked = Asked { latency_times: 2.0, ..as_usual() };
    let whole = found(&Case { asked, ..healthy() }, 7);
    assert!(has_shape(&whole), "{:?}", whole.shapes);
    assert_eq!(rank(&whole, Cause::HalfCounted), Some(1), "{:?}", names(&whole));
    // Without a head the span is a cause of its own, and says more.
    let asked = Asked { latency_times: 2.0, has_head: false, ..as_usual() };
    let first = &found(&Case { asked, ..healthy() }, 7).groups[0].findings[0];
    assert_eq!(first.cause, Cause::LatencySpan);
}

/// One request at a time takes long whatever the clock: rows of a head that states it, a little off from what is expected of them, are
/// no clock of ten times.
#[test]
fn a_stated_depth_is_no_slow_clock() {
    for device in ["connectx7", "bluefield2"] {
        for program in ["ib_read_bw", "ib_write_bw"] {
            for times in [1.0, 1.1, 1.2, 1.3] {
                let hidden = hidden_system(device, &[]);
                let bench = ToolBench::new(&hidden, "client-host").expect("a path");
                let asked = Asked { runs: vec![depth::<1>], counted: times, ..as_usual() };
                let text = printed(&bench, program, &asked, &mut Noise(9));
                let found =
                    diagnose(&system(device, &[]), figures(&[("a.log".to_string(), text)]), None, exactly);
                let found = found.expect("it can be compared");
                assert_eq!(
                    rank(&found, Cause::TxDepth),
                    Some(1),
                    "{device} {program} {times}: {:?}",
                    names(&found)
                );
            }
        }
    }
}

/// Nor are READs in flight that a head states a slow port.
#[test]
fn stated_reads_in_flight_are_no_slow_port() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let asked = Asked { runs: vec![|run| run.outstanding_reads = Some(1)], ..as_usual() };
    let whole = printed(&bench, "ib_read_bw", &asked, &mut Noise(3));
    let is_of_4096 = |line: &&str| {
        line.split_whitespace().next().is_none_or(|one| one == "4096" || one.parse::<u64>().is_err())
    };
    let one: String = whole.lines().filter(is_of_4096).map(|line| format!("{line}\n")).collect();
    let found =
        diagnose(&known, figures(&[("a.log".to_string(), one)]), None, exactly).expect("it can be compared");
    assert_eq!(rank(&found, Cause::OutstandingReads), Some(1), "{:?}", names(&found));
}

/// A best stretch that is over twice the mean is a run that stalled for a part of its time: told, asked for, and evidence, and no
/// verdict.
#[test]
fn a_burst_is_a_shape_and_no_verdict() {
    let burst = |found: &Diagnosis| found.shapes.iter().find(|shape| shape.name == "burst").cloned();
    let asks = |found: &Diagnosis| found.questions.iter().any(|one| one.what.contains("stalled the run"));
    let one = of_rows("ib_write_bw", |size| if size == 65536.0 { (0.45, 1.0) } else { (1.0, 1.0) });
    let shape = burst(&one).expect("it is told");
    assert!(shape.what.contains("2.2 times, at 10"), "the peak is what is expected: {}", shape.what);
    assert_eq!((one.verdict, asks(&one)), (DiagnosisVerdict::Normal, true));
    let many = of_rows("ib_write_bw", |size| if size >= 65536.0 { (0.35, 0.98) } else { (1.0, 1.0) });
    assert_eq!((many.verdict, asks(&many)), (DiagnosisVerdict::Low, true));
    let evidence = many.groups.iter().flat_map(|group| &group.findings);
    let port = evidence.filter(|finding| finding.cause == Cause::PortRate).flat_map(|one| &one.evidence);
    assert!(port.clone().any(|said| said.contains("pause frames")), "{:?}", names(&many));
    assert!(!many.shapes.iter().any(|shape| shape.name == "uneven"), "it is said once: {:?}", many.shapes);
    let even = of_rows("ib_write_bw", |_| (0.45, 0.85));
    assert_eq!((burst(&even), asks(&even)), (None, false));
}

/// perftest has no moderation of 0: a head that says so states none.
#[test]
fn a_moderation_of_0_is_none() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
    let none = text.replace("CQ Moderation   : 100", "CQ Moderation   : 0");
    let of = |text: String| {
        let known = system("connectx7", &[]);
        diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared")
    };
    let (stated, none) = (of(text), of(none));
    assert_eq!((none.points.len(), none.verdict), (stated.points.len(), DiagnosisVerdict::Normal));
    assert!((none.median_share - stated.median_share).abs() < 1e-9);
}

/// A log that no model made, without its head: one request at a time takes 2 us and the time of its bytes at what packets of
/// 1024 B leave of the port. Its small rows tell the depth, and its large ones the packets, which explain little of the whole gap
/// and most of what the depth leaves. Of an MTU of 4096 B no small packets are named.
#[test]
fn one_request_at_a_time_in_small_packets_is_both() {
    let known = system("connectx7", &[]);
    let of = |mtu: f64| {
        let bits = 400e9 * mtu / (mtu + known.network.packet_header.get() as f64);
        let mut text = String::new();
        for power in 1..=23 {
            let size = f64::from(1u32 << power);
            let rate = 1.0 / (2e-6 + size * 8.0 / bits);
            let mib = size * rate / 1_048_576.0;
            writeln!(text, " {size} 5000 {mib:.2} {mib:.2} {:.6}", rate / 1e6).unwrap();
        }
        let found =
            diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared");
        ([Cause::TxDepth, Cause::PathMtu].map(|cause| rank(&found, cause)), names(&found))
    };
    let (small, large) = (of(1024.0), of(4096.0));
    assert_eq!(small.0, [Some(1), Some(2)], "{:?}", small.1);
    assert_eq!(large.0, [Some(1), None], "{:?}", large.1);
}

/// A depth that a log states is so: what is slower than its rows could be at that depth explains nothing, though with many requests in
/// flight it would make the same rate.
#[test]
fn no_cause_makes_rows_impossible_that_were_measured() {
    let hidden = hidden_system("connectx7", &[]);
    let bench = ToolBench::new(&hidden, "client-host").expect("a path");
    // A card of which bandwidths alone were measured may have its latency far off.
    let known = system("connectx7", &["pcie0.delay=900ns"]);
    for has_rate in [true, false] {
        let asked = Asked { runs: vec![depth::<1>], has_rate, ..as_usual() };
        let text = printed(&bench, "ib_write_bw", &asked, &mut Noise(9));
        let open = |_: &System, runs: &[ToolRun]| -> Vec<Leeway> {
            runs.iter().map(|_| Leeway { least: 0.25, most: 4.0, basis: "weak" }).collect()
        };
        let found =
            diagnose(&known, figures(&[("a.log".to_string(), text)]), None, open).expect("it is compared");
        assert_eq!(rank(&found, Cause::TxDepth), Some(1), "{has_rate}: {:?}", names(&found));
        for cause in [Cause::NetworkLatency, Cause::PcieLatency] {
            assert_eq!(rank(&found, cause), None, "{has_rate}: {:?}", names(&found));
        }
    }
}

/// A small gap says nothing of a card that is known less well than that.
#[test]
fn a_small_gap_of_a_card_that_is_little_known_is_normal() {
    let known = system("connectx7", &[]);
    let hidden = hidden_system("connectx7", &["host.ddio=false"]);
    let bench = ToolBench::new(&hidden, "client-host").expect("a path");
    let mut noise = Noise(7);
    let texts: Vec<(String, String)> = SUITE
        .iter()
        .map(|program| (format!("{program}.log"), printed(&bench, program, &as_usual(), &mut noise)))
        .collect();
    let verdict = |least: f64| {
        let leeway = |_: &System, runs: &[ToolRun]| {
            runs.iter().map(|_| Leeway { least, most: 1.0 / least, basis: "weak" }).collect()
        };
        diagnose(&known, figures(&texts), None, leeway).expect("it is compared").verdict
    };
    assert_eq!(verdict(0.97), DiagnosisVerdict::SlightlyLow);
    assert_eq!(verdict(0.5), DiagnosisVerdict::Normal);
}

/// A few operations that waited leave the median as it is: they are told and asked for.
#[test]
fn a_mean_far_above_its_median_is_told() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let of = |mean: f64, longest: f64| {
        let mut text = String::new();
        for line in printed(&bench, "ib_send_lat", &as_usual(), &mut Noise(5)).lines() {
            let cells: Vec<f64> = line.split_whitespace().filter_map(|cell| cell.parse().ok()).collect();
            match cells[..] {
                [size, count, min, _, typical, _, deviation, p99, p999] => {
                    writeln!(
                        text,
                        " {size} {count} {min:.2} {longest:.2} {typical:.2} {:.2} {deviation:.2} {p99:.2} {p999:.2}",
                        typical * mean
                    )
                    .unwrap();
                }
                [..] => writeln!(text, "{line}").unwrap(),
            }
        }
        diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
            .expect("it is compared")
    };
    let asks = |found: &Diagnosis| found.questions.iter().any(|one| one.what.contains("operations wait for"));
    let waited = of(600.0, 655_360.05);
    let shape = waited.shapes.iter().find(|shape| shape.name == "timer-wait").expect("it is told");
    assert!(shape.what.contains("600.") && shape.what.contains("655.360 ms"), "{}", shape.what);
    // What an interrupt takes is no timer of the transport.
    let interrupted = of(1.7, 1_300.0);
    assert!(interrupted.shapes.iter().any(|shape| shape.name == "tail"), "{:?}", interrupted.shapes);
    assert_eq!((waited.verdict, asks(&waited)), (DiagnosisVerdict::Normal, true));
    let usual = of(1.1, 9.0);
    assert!(!asks(&usual) && usual.shapes.is_empty(), "{:?}", usual.shapes);
}

/// Milliseconds are no delay of every packet: they are asked for and not explained.
#[test]
fn a_latency_of_milliseconds_is_asked_for() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    for (program, asks) in [("ib_send_lat", "receiver not ready"), ("ib_read_lat", "lost and retransmitted")]
    {
        let asked = Asked { latency_times: 4000.0, ..as_usual() };
        let text = printed(&bench, program, &asked, &mut Noise(5));
        let found =
            diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
                .expect("it is compared");
        assert_eq!(found.verdict, DiagnosisVerdict::Low);
        assert!(found.questions.iter().any(|one| one.what.contains(asks)), "{:?}", found.questions);
        for cause in [Cause::NetworkLatency, Cause::PcieLatency] {
            assert_eq!(rank(&found, cause), None, "{program}: {:?}", names(&found));
        }
    }
}

/// MiB under a header of Gbit are told by the message rate beside them, and what the rows look like is said in their true unit.
#[test]
fn mebibytes_under_a_header_of_gigabits_are_a_unit() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
    let text = text.replace("[MB/sec]", "[Gb/sec]");
    let found = diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
        .expect("it is compared");
    assert_eq!(rank(&found, Cause::Unit), Some(1), "{:?}", names(&found));
    assert!(found.groups[0].findings[0].degree.contains("2^20 bytes that are called 10^9 bits"));
    let flat = found.shapes.iter().find(|shape| shape.name == "constant-operations").expect("it is flat");
    let rate: f64 = flat.what.split(' ').next().and_then(|word| word.parse().ok()).expect("a rate");
    assert!(rate < 20.0, "{}", flat.what);
    assert!(found.shapes.iter().all(|shape| shape.name != "above-line-rate"), "{:?}", found.shapes);
}

/// A row that is low alone is no end of a range.
#[test]
fn a_cliff_says_how_far_it_goes() {
    let cliff = |found: &Diagnosis| {
        found.shapes.iter().find(|shape| shape.name == "cliff").map(|shape| shape.what.clone())
    };
    let alone = of_rows("ib_write_bw", |size| if size == 65536.0 { (0.3, 0.3) } else { (1.0, 1.0) });
    assert!(cliff(&alone).is_some_and(|what| what.ends_with("at this size alone")), "{:?}", alone.shapes);
    let on = of_rows("ib_write_bw", |size| if size >= 65536.0 { (0.3, 0.3) } else { (1.0, 1.0) });
    assert!(cliff(&on).is_some_and(|what| what.ends_with("from there on")), "{:?}", on.shapes);
}

/// Rows of one size over hours.
#[test]
fn many_rows_of_one_size_are_diagnosed() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let whole = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
    let is_row = |line: &&str| line.split_whitespace().next().is_some_and(|one| one.parse::<u64>().is_ok());
    let row = whole.lines().filter(is_row).find(|line| line.contains(" 65536 ")).expect("a row");
    let mut text: String =
        whole.lines().filter(|line| !is_row(line)).map(|line| format!("{line}\n")).collect();
    for _ in 0..20_000 {
        text += row;
        text += "\n";
    }
    let found = diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
        .expect("it is compared");
    assert_eq!((found.points.len(), found.verdict), (20_000, DiagnosisVerdict::Normal));
}

/// A log that states longer packets than the port of the files sends is of another machine, or of another day.
#[test]
fn an_mtu_above_that_of_the_files_is_a_contradiction() {
    let mut facts = offpath_logs::machine::MachineFacts::default();
    for file in ["lspci.txt", "ibv_devinfo.txt"] {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../logs/tests/data/machines/narrow")
            .join(file);
        let text = std::fs::read_to_string(path).expect("a file");
        facts.read(file, &text.replace("4096 (5)", "1024 (3)"));
    }
    let machine = describe(&facts, Some("3b:00.0")).expect("a card");
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_read_lat", &as_usual(), &mut Noise(5));
    let contradictions = |text: &str| {
        let figures = figures(&[("a.log".to_string(), text.to_string())]);
        diagnose(&system("connectx7", &[]), figures, Some(&machine), exactly)
            .expect("it is compared")
            .contradictions
    };
    let stated = contradictions(&text);
    assert!(stated.iter().any(|one| one.contains("states an MTU of 4 KiB")), "{stated:?}");
    assert_eq!(contradictions(&text.replace("4096[B]", "1024[B]")), [""; 0]);
}

/// A head of another run: at a depth of 1 no card does what the rows say, which are what it does with many requests in flight.
#[test]
fn rows_that_their_own_head_does_not_allow_are_contradictory() {
    let known = system("connectx7", &[]);
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(4));
    let of = |text: &str| {
        let found = diagnose(&known, figures(&[("a.log".to_string(), text.to_string())]), None, exactly);
        found.expect("it is compared")
    };
    assert_eq!(of(&text).verdict, DiagnosisVerdict::Normal);
    let other = of(&text.replace("TX depth        : 128", "TX depth        : 1"));
    assert_eq!((other.verdict, other.groups.len()), (DiagnosisVerdict::Contradictory, 0));
    assert!(other.contradictions[0].contains("a depth of 1"), "{:?}", other.contradictions);
    // No port carries so much in packets with so many headers.
    let small = of(&text.replace("Mtu             : 4096", "Mtu             : 256"));
    assert!(small.shapes.iter().any(|shape| shape.name == "above-line-rate"), "{:?}", small.shapes);
}

/// A message is there when its last byte is, so that a latency says what a port carried.
#[test]
fn a_latency_that_no_port_has_is_told() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    for program in ["ib_read_lat", "ib_write_lat"] {
        let of = |times: f64| {
            let asked = Asked { latency_times: times, ..as_usual() };
            let text = printed(&bench, program, &asked, &mut Noise(4));
            let known = system("connectx7", &[]);
            let found = diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly);
            found.expect("it is compared").shapes.iter().any(|shape| shape.name == "above-line-rate")
        };
        assert_eq!([of(1.0), of(0.1)], [false, true], "{program}");
    }
}

/// One run of a sweep that waited for a timer is asked about, though all others are as they should be.
#[test]
fn one_run_that_waited_for_a_timer_is_asked_about() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_send_bw", &as_usual(), &mut Noise(4));
    let waited: String = text
        .lines()
        .map(|line| {
            let cells: Vec<&str> = line.split_whitespace().collect();
            if cells.first() != Some(&"64") {
                return format!("{line}\n");
            }
            let rate = 1e-6 * 1000.0 / (0.5 + 1000.0 / (cells[4].parse::<f64>().expect("a rate") * 1e6));
            let mib = 64.0 * rate * 1e6 / 1_048_576.0;
            format!(" 64 1000 {mib:.2} {mib:.2} {rate:.6}\n")
        })
        .collect();
    let of = |text: String| {
        let known = system("connectx7", &[]);
        diagnose(&known, figures(&[("a.log".to_string(), text)]), None, exactly).expect("it is compared")
    };
    let found = of(waited);
    assert_eq!(found.verdict, DiagnosisVerdict::Normal);
    let asked: Vec<&str> = found.questions.iter().map(|one| one.what.as_str()).collect();
    assert!(asked.iter().any(|what| what.contains("1 run took 500 ms longer")), "{asked:?}");
    assert!(of(text).questions.is_empty());
}

/// A log twice is one log, and what is not compared of a run is named with its file and line.
#[test]
fn a_copy_counts_once_and_what_is_left_aside_is_named() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(4));
    let known = system("connectx7", &[]);
    let of = |texts: &[(String, String)]| diagnose(&known, figures(texts), None, exactly).expect("compared");
    let twice = of(&[("a.log".to_string(), text.clone()), ("b.log".to_string(), text.clone())]);
    assert_eq!((twice.points.len(), twice.repeated.len(), twice.left_aside.len()), (23, 1, 0));
    let datagrams = text.replace("Connection type : RC", "Connection type : UD");
    let both = of(&[("a.log".to_string(), format!("{text}{}\n{datagrams}", "-".repeat(87)))]);
    assert_eq!((both.points.len(), both.left_aside.len()), (23, 1));
    assert_eq!((both.left_aside[0].rows, &*both.left_aside[0].file), (23, "a.log"));
    // A rate and a bandwidth of one row that contradict one another are no row that passes.
    let row = text.lines().find(|line| line.starts_with(" 64 ")).expect("it is there");
    let cells: Vec<&str> = row.split_whitespace().collect();
    let contradictory = text.replace(row, &format!(" 64 5000 {} {} 0.001000", cells[2], cells[3]));
    let found = of(&[("a.log".to_string(), contradictory)]);
    assert_eq!((found.points.len(), found.left_aside.len(), found.left_aside[0].rows), (22, 1, 1));
    for transport in ["IW", "SRD"] {
        let other = text.replace("Transport type : IB", &format!("Transport type : {transport}"));
        let found = of(&[("a.log".to_string(), other)]);
        assert_eq!((found.points.len(), found.left_aside.len()), (0, 1), "{transport}");
    }
    let huge = text.replace("Mtu             : 4096", "Mtu             : 65536");
    assert_eq!(of(&[("a.log".to_string(), huge)]).points.len(), 0);
    let huge = text.replace("Number of qps   : 1\t", "Number of qps   : 99999999999999999999\t");
    assert_eq!(of(&[("a.log".to_string(), huge)]).points.len(), 0);
}

/// Rows of a run by time are one run, whatever each has counted.
#[test]
fn rows_of_a_run_by_time_are_of_one_run() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let head = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(4));
    let head: String =
        head.lines().take_while(|line| !line.starts_with(" 2 ")).map(|line| format!("{line}\n")).collect();
    let mut text = head;
    for index in 0..50u64 {
        let rate = 0.7 + index as f64 / 1e4;
        let mib = 65536.0 * rate * 1e6 / 1_048_576.0;
        writeln!(text, " 65536 {:.0} 0.00 {mib:.2} {rate:.6}", rate * 6e6 + index as f64).unwrap();
    }
    let all = figures(&[("a.log".to_string(), text)]);
    let runs = std::cell::Cell::new(0);
    let leeway = |_: &System, asked: &[ToolRun]| {
        runs.set(asked.len());
        exactly(&system("connectx7", &[]), asked)
    };
    let found = diagnose(&system("connectx7", &[]), all, None, leeway).expect("it is compared");
    assert_eq!((found.points.len(), runs.get()), (50, 1));
}

/// What the files of a machine say that none has that is to be accepted; a port of another device than the log's may be down.
#[test]
fn faults_of_a_machine_are_told_beside_its_rows() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let text = printed(&bench, "ib_write_bw", &as_usual(), &mut Noise(5));
    let link = |now: &str| {
        format!(
            "00:01.0 PCI bridge: A Bridge\n\tBus: primary=00, secondary=3b, subordinate=3b, sec-latency=0\n\t\tLnkCap:\tPort #1, Speed 32GT/s, \
             Width x16\n\t\tLnkSta:\tSpeed {now}\n3b:00.0 Ethernet controller: A Card\n\t\tLnkCap:\tPort #0, Speed 32GT/s, Width \
             x16\n\t\tLnkSta:\tSpeed {now}\n"
        )
    };
    let port = |device: &str, ports: &[&str]| {
        let each = ports
            .iter()
            .enumerate()
            .map(|(index, state)| format!("\t\tport:\t{}\n\t\t\tstate:\t\t\t{state}\n", index + 1));
        format!("hca_id:\t{device}\n\tphys_port_cnt:\t\t{}\n{}", ports.len(), each.collect::<String>())
    };
    let (up, down) = ("PORT_ACTIVE (4)", "PORT_DOWN (1)");
    let of = |machine: &str| {
        let mut facts = offpath_logs::machine::MachineFacts::default();
        facts.read("machine.txt", machine);
        let machine = describe(&facts, None).expect("one card");
        let logs = figures(&[("a.log".to_string(), text.clone())]);
        diagnose(&system("connectx7", &[]), logs, Some(&machine), exactly).expect("it is compared").faults
    };
    assert_eq!(of(&link("32GT/s, Width x16")), [""; 0]);
    assert!(
        of(&link("32GT/s, Width x8"))[0]
            .contains("32 GT/s x8, and both ends can 32 GT/s x16 (machine.txt:7)")
    );
    // The log is of mlx5_0.
    assert_eq!(of(&port("mlx5_0", &[up])), [""; 0]);
    assert!(of(&port("mlx5_0", &[down]))[0].contains("port 1 of `mlx5_0` is down"));
    assert_eq!(of(&(port("mlx5_0", &[up]) + &port("mlx5_1", &[down]))), [""; 0]);
    assert_eq!(of(&port("mlx5_0", &[up, down])), [""; 0], "the run may have gone by the other port");
}

/// Small messages have headers too, and no port sends more of them than fit.
#[test]
fn more_messages_than_a_port_sends_are_told() {
    let above = |found: &Diagnosis| found.shapes.iter().any(|shape| shape.name == "above-line-rate");
    let of =
        |times: f64| of_rows("ib_write_bw", |size| if size == 8.0 { (times, times) } else { (1.0, 1.0) });
    assert!(above(&of(1000.0)) && !above(&of(1.0)));
    // A row may be more than is expected of it, and a port sends as many.
    let five = of(5.0);
    assert_eq!((above(&five), five.points.iter().filter(|point| point.is_above()).count()), (false, 1));
    let ten = of(1.08);
    assert_eq!(ten.points.iter().filter(|point| point.is_above()).count(), 0);
}

/// Where the mean is far above the median, what is asked of one is asked of the other.
#[test]
fn a_mean_reaches_a_share_as_a_median_does() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    let of = |mean: f64| {
        let mut text = String::new();
        for line in printed(&bench, "ib_write_lat", &as_usual(), &mut Noise(5)).lines() {
            let mut cells: Vec<String> = line.split_whitespace().map(str::to_string).collect();
            let is_row = cells.len() == 9 && cells[0].parse::<u64>().is_ok();
            match is_row.then(|| cells[4].parse::<f64>().expect("a time")) {
                Some(typical) => {
                    cells[5] = format!("{:.2}", typical * mean);
                    writeln!(text, " {}", cells.join(" ")).unwrap();
                }
                None => writeln!(text, "{line}").unwrap(),
            }
        }
        diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
            .expect("it is compared")
    };
    let usual = of(1.1);
    assert!(
        usual.points.iter().all(|point| point.mean_share.is_none() && point.least_share() == point.share)
    );
    let waited = of(300.0);
    assert_eq!(waited.verdict, DiagnosisVerdict::Normal);
    assert!(
        waited.points.iter().all(|point| point.share > 0.9 && point.least_share() < 0.01),
        "{:?}",
        waited.points
    );
}

/// The iterations of a log without a head say how many queue pairs a program had that runs so many of each.
#[test]
fn iterations_say_how_many_queue_pairs_there_were() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    fn eight(run: &mut ToolRun) {
        run.queue_pairs = 8;
        run.length = Some(RunLength::Iterations(8000));
    }
    let asked = Asked { runs: vec![eight], has_head: false, ..as_usual() };
    let text = printed(&bench, "ib_read_bw", &asked, &mut Noise(5));
    let found = diagnose(&system("connectx7", &[]), figures(&[("a.log".to_string(), text)]), None, exactly)
        .expect("it is compared");
    assert_eq!((found.verdict, found.off.len()), (DiagnosisVerdict::Normal, 0), "{:?}", found.assumed);
    assert!(found.points.iter().all(|point| point.run.contains("8 queue pairs")), "{}", found.points[0].run);
    assert!(found.assumed.iter().any(|said| said.contains("8 times the 1000")), "{:?}", found.assumed);
}

/// Rows at half say as much of how many queue pairs there were as healthy ones, and of a WRITE's iterations a power of two is likelier than
/// five times as many of another program.
#[test]
fn iterations_say_as_much_of_low_rows() {
    let bench = ToolBench::new(&hidden_system("connectx7", &[]), "client-host").expect("a path");
    fn of<const PAIRS: u64, const EACH: u64>(run: &mut ToolRun) {
        run.queue_pairs = PAIRS;
        run.length = Some(RunLength::Iterations(PAIRS * EACH));
    }
    type Change = fn(&mut ToolRun);
    let cases: [(&str, u64, Change); 5] = [
        ("ib_read_bw", 16, of::<16, 1000>),
        ("ib_read_bw", 2, of::<2, 1000>),
        ("ib_write_bw", 4, of::<4, 5000>),
        ("ib_write_bw", 8, of::<8, 5000>),
        ("ib_write_bw", 16, of::<16, 5000>),
    ];
    for (program, pairs, change) in cases {
        for counted in [1.0, 0.5] {
            let asked = Asked { runs: vec![change], has_head: false, counted, ..as_usual() };
            let text = printed(&bench, program, &asked, &mut Noise(5));
            let figures = figures(&[("a.log".to_string(), text)]);
            let found = diagnose(&system("connectx7", &[]), figures, None, exactly).expect("it is compared");
            let run = &found.points[0].run;
            let verb = if program == "ib_read_bw" { "read" } else { "write" };
            assert!(
                run.contains(&format!("{pairs} queue pairs")) && run.contains(verb),
                "{program}, {pairs}, {counted}: {run}: {:?}",
                found.assumed
            );
            if counted < 1.0 {
                assert_eq!(
                    rank(&found, Cause::HalfCounted),
                    Some(1),
                    "{program}, {pairs}: {:?}",
                    names(&found)
                );
            }
        }
    }
}
