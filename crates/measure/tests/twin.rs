//! The program on the twin measures what the model of a run says, where both have it: they are two implementations, one
//! of queues in virtual time and one of equations.

use offpath_fabric::Backend;
use offpath_learn::{CeilingKind, RunKind, ToolBench, ToolRun};
use offpath_logs::TrafficDirections;
use offpath_measure::{
    FlowFigures, MeasurePoint, MeasuringEffort, MeasuringProgram, SuiteChoice, figures_of, suite,
};
use offpath_profile::{Library, Machine, System, SystemRequest};
use offpath_quantity::{BitRate, Bytes, Time};
use offpath_route::{PathOperation, Router, Verb};
use offpath_twin::{Fault, FaultRule, TwinBackend};

fn system() -> System {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    Library::builtin().load(&request).expect("the shipped card loads")
}

fn measured(system: &System, point: &MeasurePoint, limited: bool) -> Vec<FlowFigures> {
    let program = MeasuringProgram::new(point, MeasuringEffort::of(point, 3));
    let mut system = system.clone();
    system.machines.iter_mut().for_each(|machine| machine.nic.inline_limit = point.run.inline);
    let backend = TwinBackend::new(&system, 1).expect("it has ways");
    let backend = if limited { backend.with_queue_pair_limits() } else { backend };
    figures_of(backend.run(program.roles(|_| true)).expect("it runs")).expect("it measures")
}

fn rate(figures: &FlowFigures) -> f64 {
    let (requests, time) = figures
        .windows
        .iter()
        .fold((0, Time::ZERO), |(requests, time), one| (requests + one.requests, time + one.time));
    requests as f64 / time.as_seconds()
}

fn latency_ns(figures: &FlowFigures) -> f64 {
    let mut all: Vec<Time> = figures.latencies.concat();
    all.sort();
    all[all.len() / 2].as_ns()
}

fn points(verbs: &[Verb], payloads: &[u64], queue_pairs: &[u64], paths: &[&str]) -> Vec<MeasurePoint> {
    let choice = SuiteChoice {
        verbs: verbs.to_vec(),
        payloads: payloads.iter().map(|bytes| Bytes::new(*bytes)).collect(),
        queue_pairs: queue_pairs.to_vec(),
    };
    let paths: Vec<_> = paths.iter().map(|path| path.parse().expect("a path")).collect();
    suite(&paths, &choice)
}

/// The same with queue pairs that hold no byte back: on the twin a message alone waits for none of them.
fn without_slow_queue_pairs() -> System {
    let mut system = system();
    for machine in &mut system.machines {
        machine.nic.queue_pair_rate = BitRate::from_bits_per_second(1_000_000_000_000);
    }
    system
}

/// A latency test takes what the idle route takes; of a WRITE as exactly as a program looks at its memory.
#[test]
fn latencies_are_those_of_idle_routes() {
    let system = without_slow_queue_pairs();
    let verbs = [Verb::Read, Verb::Write, Verb::Send, Verb::FetchAndAdd];
    let mut seen = 0;
    for point in
        points(&verbs, &[8, 4096, 65536], &[1], &["client-host", "client-soc", "host-soc", "soc-host"])
    {
        if point.run.kind != RunKind::Latency || !point.is_plain() {
            continue;
        }
        let bench = ToolBench::new(&system, &point.path.to_string()).expect("the path exists");
        let expected = bench.expect(&point.run).expect("it is modelled").latency.as_ns();
        let own = latency_ns(&measured(&system, &point, true)[0]);
        let most = if point.run.verb == Verb::Write { 20.0 } else { 0.002 };
        assert!((own - expected).abs() <= most, "{point}: {own} ns, not {expected} ns");
        seen += 1;
    }
    assert!(seen >= 40, "{seen}");
}

/// One thread that posts singly or in short lists, with deep queues, and of SENDs with any: within 2% of the equations, whatever
/// binds.
#[test]
fn rates_are_those_of_the_model_of_a_run() {
    let system = system();
    let mut seen = 0;
    for point in points(
        &[Verb::Read, Verb::Write, Verb::Send],
        &[64, 4096, 65536],
        &[1, 8],
        &["client-host", "client-soc", "host-soc"],
    ) {
        let run = &point.run;
        let is_deep = run.kind == RunKind::Bandwidth
            && (run.tx_depth >= 128 || run.verb == Verb::Send)
            && run.post_list <= 4;
        // Both directions have two threads, which the equations have otherwise; a message alone waits for its queue pair in them, which
        // is the port's rate on a path that passes no port.
        let waits_for_pair = run.tx_depth < 128 && point.path.to_string() == "host-soc";
        if !is_deep || !point.is_plain() || run.directions == TrafficDirections::Both || waits_for_pair {
            continue;
        }
        // The twin takes completions on another core, so that lists have fewer here than by themselves.
        let moderation = if run.post_list > 1 { 100 } else { run.cq_moderation };
        let run = &ToolRun { cq_moderation: moderation, ..run.clone() };
        let point = &MeasurePoint { run: run.clone(), ..point.clone() };
        let bench = ToolBench::new(&system, &point.path.to_string()).expect("the path exists");
        let expected = bench.expect(run).expect("it is modelled");
        let own = rate(&measured(&system, point, true)[0]);
        let off = own / expected.rate_per_s - 1.0;
        println!(
            "{point}: {own:.0}/s, {:.0}/s by {}, {:+.2}%",
            expected.rate_per_s,
            expected.binding().name(),
            100.0 * off
        );
        assert!(
            off.abs() < 0.02,
            "{point}: {own} and not {} by {}",
            expected.rate_per_s,
            expected.binding().name()
        );
        seen += 1;
    }
    assert!(seen >= 50, "{seen}");
}

/// READs and atomics of a list are in flight once the list is posted and a slot is free, and nobody posts them again: as by the
/// equations, by up to 8% more since completions are taken on another core.
#[test]
fn lists_of_reads_are_posted_once() {
    let system = system();
    let mut seen = 0;
    for point in points(&[Verb::Read, Verb::FetchAndAdd], &[64], &[1, 8], &["client-host", "host-soc"]) {
        let run = &point.run;
        let is_list = run.kind == RunKind::Bandwidth && run.post_list > 1;
        if !is_list || !point.is_plain() || run.directions == TrafficDirections::Both {
            continue;
        }
        let run = &ToolRun { cq_moderation: run.post_list, ..run.clone() };
        let bench = ToolBench::new(&system, &point.path.to_string()).expect("the path exists");
        let expected = bench.expect(run).expect("it is modelled").rate_per_s;
        let own = rate(&measured(&system, &point, true)[0]);
        println!("{point}: {own:.0}/s, {expected:.0}/s");
        assert!((0.97..1.08).contains(&(own / expected)), "{point}: {own} and not {expected}");
        seen += 1;
    }
    assert!(seen >= 6, "{seen}");
}

/// Of large payloads many requests end together: still no window has more than the port, PCIe or a queue pair carries, and the
/// median is no less where the model has that one of them binds.
#[test]
fn no_window_has_more_than_its_links_carry() {
    let mut seen = 0;
    for device in ["bluefield2", "connectx7"] {
        let system = Library::builtin()
            .load(&SystemRequest { device, ..SystemRequest::default() })
            .expect("the shipped card loads");
        let bench = ToolBench::new(&system, "client-host").expect("the path exists");
        let sizes = [24 << 10, 64 << 10, 128 << 10, 1 << 20, 8 << 20];
        for point in points(&[Verb::Read, Verb::Write], &sizes, &[1, 2, 8, 32], &["client-host"]) {
            let ToolRun { kind, tx_depth, post_list, directions, .. } = point.run;
            let is_deep = kind == RunKind::Bandwidth && tx_depth >= 16 && post_list == 1;
            if !is_deep || !point.is_plain() || directions == TrafficDirections::Both {
                continue;
            }
            let expected = bench.expect(&point.run).expect("it is modelled").rate_per_s;
            let figures = measured(&system, &point, true);
            let windows = figures[0].windows.iter();
            let mut rates: Vec<f64> =
                windows.map(|one| one.requests as f64 / one.time.as_seconds() / expected).collect();
            rates.sort_by(f64::total_cmp);
            assert!(rates[2] < 1.01 && rates[1] > 0.98, "{device} {point}: {rates:?} of {expected}");
            seen += 1;
        }
    }
    assert!(seen >= 80, "{seen}");
}

/// What a run carries at most but for its READs in flight.
fn bench_most(bench: &ToolBench, run: &ToolRun) -> f64 {
    let expected = bench.expect(run).expect("it is modelled");
    let others = expected.ceilings.iter().filter(|one| one.kind != CeilingKind::OutstandingReads);
    others.map(|one| one.rate_per_s).fold(f64::INFINITY, f64::min)
}

/// A queue pair carries no more than its NIC lets one carry, and that is the limit's doing.
#[test]
fn one_queue_pair_is_held_to_what_its_nic_lets_it_carry() {
    let few_reads: fn(&mut Machine) = |machine: &mut Machine| machine.nic.outstanding_reads = 4;
    let slow_pairs: fn(&mut Machine) = |machine: &mut Machine| {
        machine.nic.queue_pair_rate = BitRate::from_bits_per_second(40_000_000_000);
    };
    let runs = points(&[Verb::Read], &[4096, 65536], &[1], &["client-host"]);
    let plain = |payload: u64| {
        let is_it = |point: &&MeasurePoint| {
            point.run.kind == RunKind::Bandwidth
                && point.run.payload.get() == payload
                && point.run.tx_depth == 128
                && point.run.post_list == 1
                && point.is_plain()
                && point.run.directions == TrafficDirections::One
        };
        runs.iter().find(is_it).expect("it is in the suite")
    };
    for payload in [4096, 65536] {
        let mut system = system();
        system.machines.iter_mut().for_each(if payload == 4096 { few_reads } else { slow_pairs });
        let bench = ToolBench::new(&system, "client-host").expect("the path exists");
        let point = plain(payload);
        let expected = bench.expect(&point.run).expect("it is modelled").rate_per_s;
        // The equations take the thread's time for posting off the latency, the twin counts from where the request leaves to where its
        // data is back: no longer than the whole latency of one alone, nor shorter than that without what comes before and behind.
        let alone = ToolRun { kind: RunKind::Latency, ..point.run.clone() };
        let latency = bench.expect(&alone).expect("it is modelled").latency;
        let least = (4.0 / latency.as_seconds()).min(expected);
        let router = Router::new(&system).expect("it has routes");
        let operation = PathOperation::new(Verb::Read, point.path.clone(), point.run.payload);
        let before = router.route(&operation).expect("it exists").departs_after();
        let client = system.endpoint("client").expect("it is there").1;
        let in_flight = latency.saturating_sub(before + client.processor.verbs.poll_latency);
        let most = expected.max((4.0 / in_flight.as_seconds()).min(bench_most(&bench, &point.run)));
        let limited = rate(&measured(&system, point, true)[0]);
        let free = rate(&measured(&system, point, false)[0]);
        assert!(
            (0.98 * least..=1.02 * most).contains(&limited),
            "{point}: {limited} is not from {least} to {most}"
        );
        assert!(free > 1.1 * limited, "{point}: {free} without, {limited} with");
    }
}

/// Both directions, two verbs and two paths at once: each flow has its windows, and together they carry no less than one.
#[test]
fn flows_at_the_same_time_are_measured_together() {
    let system = system();
    let mut seen = 0;
    for point in points(&[Verb::Read, Verb::Write], &[4096], &[4], &["client-host", "client-soc"]) {
        let is_double = point.beside.is_some() || point.run.directions == TrafficDirections::Both;
        if !is_double && point.threads == 1 {
            continue;
        }
        let flows = measured(&system, &point, true);
        assert_eq!(flows.len(), if is_double { 2 } else { 1 }, "{point}");
        for flow in &flows {
            assert_eq!(flow.windows.len(), 3, "{point}");
            assert!(rate(flow) > 1e5, "{point}: {}", rate(flow));
        }
        seen += 1;
    }
    assert!(seen >= 9, "{seen}");
}

/// Where acknowledgements are lost, an answer is there before the completion of what it answers, which still has its slot.
#[test]
fn an_answer_before_the_completion_fills_no_queue() {
    let system = system();
    let until = Time::from_ms(100_000);
    let rule = FaultRule { from: Time::ZERO, until, between: None, probability: 0.1, fault: Fault::Drop };
    for verb in [Verb::Write, Verb::Send] {
        let points = points(&[verb], &[64], &[1], &["client-host"]);
        let point =
            points.iter().find(|point| point.run.kind == RunKind::Latency).expect("one is of latency");
        let effort = MeasuringEffort { requests: 200, ..MeasuringEffort::of(point, 1) };
        let program = MeasuringProgram::new(point, effort);
        let backend = TwinBackend::new(&system, 1).expect("it has ways").with_faults(vec![rule.clone()]);
        let figures =
            figures_of(backend.run(program.roles(|_| true)).expect("it runs")).expect("it measures");
        assert!(figures[0].latencies[0].len() >= 200, "{verb}: {figures:?}");
    }
}
