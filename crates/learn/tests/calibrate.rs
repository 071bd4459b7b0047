//! What a card is, is found from what its benchmarks print, and what they do not tell is said.

use offpath_learn::{
    Calibration, CalibrationError, CalibrationRequest, ErrorSummary, HoldOut, KeptReason, LearntDoubt,
    MeasuredPoint, MeasuredRun, PacketHeader, PointCollector, PredictedPoint, RunKind, RunLength, ToolBench,
    ToolProgram, ToolRun, WidenedErrors, calibrate,
};
use offpath_logs::{LogItem, LogMetric, LogReader, MetricStatistic, MetricSubject};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Bytes, Quantity};
use offpath_route::Verb;
use offpath_twin::{Seed, unit};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::Write;

fn system(settings: &[&str]) -> System {
    let settings = settings.iter().map(|one| one.to_string()).collect();
    let request = SystemRequest { device: "connectx7", settings, ..SystemRequest::default() };
    Library::builtin().load(&request).expect("the shipped card loads")
}

/// What a card prints, each figure off by 2% or less either way, as a seed decides.
fn measured(card: &System, runs: &[ToolRun], seed: u64) -> Vec<MeasuredPoint> {
    let bench = ToolBench::new(card, "client-host").expect("the path exists");
    let mut draws = Seed::new(seed).child("noise").generator();
    let point = |(line, run): (usize, &ToolRun)| {
        let expected = bench.expect(run).expect("the run is modelled");
        // Three draws are near enough to a bell; its deviation is 2%.
        let bell: f64 = (0..3).map(|_| unit(&mut draws) - 0.5).sum::<f64>() * 2.0;
        let value = match run.kind {
            RunKind::Bandwidth => expected.rate_per_s,
            RunKind::Latency => expected.latency.as_seconds(),
        };
        let subject = match run.kind {
            RunKind::Bandwidth => MetricSubject::OperationRate,
            RunKind::Latency => MetricSubject::Latency,
        };
        MeasuredPoint {
            file: format!("{}-{}.log", run.verb, run.queue_pairs),
            line: line as u64,
            run: MeasuredRun::QueuePairs(run.clone()),
            measured: value * (1.0 + 0.02 * bell),
            metric: LogMetric::new(subject, MetricStatistic::Mean),
            link_layer: None,
            device: None,
            has_varied_clock: false,
        }
    };
    runs.iter().enumerate().map(point).collect()
}

fn runs(programs: &[&str], queue_pairs: &[u64]) -> Vec<ToolRun> {
    let mut all = Vec::new();
    for program in programs {
        let program = ToolProgram::named(program).expect("it is listed");
        for power in (1..=21).step_by(2) {
            let plain = ToolRun {
                cq_moderation: 100.min(program.run(Bytes::new(1)).cq_moderation),
                ..program.run(Bytes::new(1 << power))
            };
            match program.kind {
                RunKind::Latency => all.push(plain),
                RunKind::Bandwidth => {
                    all.extend(
                        queue_pairs.iter().map(|count| ToolRun { queue_pairs: *count, ..plain.clone() }),
                    );
                }
            }
        }
    }
    all
}

fn learn(points: &[MeasuredPoint], base: &System, fit: &[&str]) -> Result<Calibration, CalibrationError> {
    let fit: Vec<String> = fit.iter().map(|name| name.to_string()).collect();
    calibrate(&CalibrationRequest {
        system: base,
        path: "client-host",
        points,
        hold_out: &[HoldOut::Sizes],
        fit: &fit,
        pin: &[],
        progress: &(),
    })
}

fn of(system: &System, name: &str) -> f64 {
    system.numbers[name].value.base()
}

/// A card with hidden numbers is found again from its own benchmarks, wherever they are declared to tell a number.
#[test]
fn hidden_numbers_are_found_again_where_they_are_told() {
    let base = system(&[]);
    let hidden = system(&[
        "host_verbs.post_time=290ns",
        "client.host_verbs.post_time=290ns",
        "pcie0.rate=240Gbit/s",
        "client.pcie0.rate=240Gbit/s",
        "nic.queue_pair_request_time=150ns",
        "client.nic.queue_pair_request_time=150ns",
        "nic.queue_pair_rate=215Gbit/s",
        "client.nic.queue_pair_rate=215Gbit/s",
        "network.delay=230ns",
    ]);
    for seed in [1, 2] {
        let points = measured(&hidden, &runs(&["ib_read_bw", "ib_write_bw", "ib_read_lat"], &[1, 8]), seed);
        let found = learn(&points, &base, &[]).expect("it can be learnt");
        let names: Vec<&str> = found.numbers.iter().map(|one| one.name.as_str()).collect();
        for wanted in ["client.host_verbs.post_time", "client.nic.queue_pair_rate"] {
            assert!(names.contains(&wanted), "seed {seed}: {names:?} lacks {wanted}");
        }
        // Which of two ceilings it is only some runs tell.
        ["client.pcie0.rate", "client.nic.port_rate"]
            .iter()
            .for_each(|name| assert_holds(&found, &hidden, name));
        let told = found.numbers.iter().filter(|one| one.is_told).count();
        assert!(told >= 2, "seed {seed}: {:?}", found.numbers);
        for one in &found.numbers {
            let truth = of(&hidden, &one.name);
            let off = one.value.base() / truth - 1.0;
            // The two numbers of a queue pair trade against each other, which the search does not see: a known miss, of
            // which docs/calibrate.md says how far it goes.
            let most = if one.name.contains("queue_pair") { 0.1 } else { 0.05 };
            assert!(
                !one.is_told || off.abs() < most,
                "seed {seed}: {} is {} and not {truth}",
                one.name,
                one.value
            );
        }
        assert!(
            found.predicted.median < 0.02 && found.predicted.p90 < 0.05,
            "seed {seed}: {:?}",
            found.predicted
        );
        let share = found.covered as f64 / found.predicted.points as f64;
        // Here the intervals are too wide: docs/calibrate.md has that among its misses.
        println!("seed {seed}: {share} of held-out points are within 80% intervals");
        assert!(share >= 0.65, "seed {seed}: {share} of held-out points are within 80% intervals");
    }
}

/// What one queue pair carries at most may be its own or what PCIe carries: a fit by either is no measurement of it, and the
/// other may be what the points say in its place, until runs of several queue pairs tell.
#[test]
fn a_plateau_that_another_ceiling_explains_is_not_told() {
    let base = system(&[]);
    for settings in [
        ["pcie0.rate=100Gbit/s", "client.pcie0.rate=100Gbit/s"],
        ["nic.queue_pair_rate=90Gbit/s", "client.nic.queue_pair_rate=90Gbit/s"],
    ] {
        let hidden = system(&settings);
        let programs = ["ib_read_bw", "ib_write_bw"];
        let points = measured(&hidden, &runs(&programs, &[1]), 7);
        let found = learn(&points, &base, &[]).expect("it can be learnt");
        let ceilings = ["client.pcie0.rate", "client.nic.port_rate", "client.nic.queue_pair_rate"];
        ceilings.iter().for_each(|name| assert_holds(&found, &hidden, name));
        let fitted = found.numbers.iter().filter(|one| ceilings.contains(&one.name.as_str()));
        assert!(
            fitted.clone().count() > 0 && fitted.clone().all(|one| !one.is_told),
            "{settings:?}: {:?}",
            found.numbers
        );
        // Each of the others that explain it alone or with another is named, and a run that tells it from the first, or the machine.
        let ways = fitted.filter_map(|one| match &one.doubt {
            Some(LearntDoubt::Replaceable { by, run, machine_tells }) => {
                Some((one.name.as_str(), by, run.is_some() || *machine_tells))
            }
            _ => None,
        });
        for (name, by, is_told_by_any) in ways {
            let named: Vec<&str> = by.iter().flatten().map(String::as_str).collect();
            let others = ceilings.iter().filter(|other| **other != name);
            assert!(
                others.clone().any(|other| named.contains(other)) && is_told_by_any,
                "{name}: {by:?} {:?}",
                found.numbers
            );
        }
        let points = measured(&hidden, &runs(&programs, &[1, 8]), 7);
        let found = learn(&points, &base, &[]).expect("it can be learnt");
        ceilings.iter().for_each(|name| assert_holds(&found, &hidden, name));
    }
}

/// A port that is slower than its data sheet has it is not told from a PCIe link that is: neither is a fact of the base, and
/// both are kept from carrying more than was measured.
#[test]
fn a_slower_port_is_not_told_to_be_a_pcie_link() {
    let base = system(&[]);
    let hidden = system(&["nic.port_rate=100Gbit/s", "client.nic.port_rate=100Gbit/s"]);
    let points = measured(&hidden, &runs(&["ib_read_bw", "ib_write_bw", "ib_read_lat"], &[1, 8]), 8);
    let found = learn(&points, &base, &[]).expect("it can be learnt");
    let ceilings = ["client.pcie0.rate", "client.nic.port_rate", "client.nic.queue_pair_rate"];
    ceilings.iter().for_each(|name| assert_holds(&found, &hidden, name));
}

/// Runs of several queue pairs of one verb do not say which of the links and ports holds them back, however deep the place is
/// at which the search ends first: none is told.
#[test]
fn a_link_is_not_told_to_be_a_port_by_one_log() {
    let base = system(&[]);
    for (rate, seed) in [(243, 1), (243, 2), (200, 3), (160, 4), (120, 5)] {
        let settings = [format!("pcie0.rate={rate}Gbit/s"), format!("client.pcie0.rate={rate}Gbit/s")];
        let hidden = system(&settings.each_ref().map(String::as_str));
        let points = measured(&hidden, &runs(&["ib_read_bw"], &[8]), seed);
        let found = learn(&points, &base, &[]).expect("it can be learnt");
        let ceilings = ["client.pcie0.rate", "client.nic.port_rate", "client.nic.queue_pair_rate"];
        ceilings.iter().for_each(|name| assert_holds(&found, &hidden, name));
        let told = found.numbers.iter().filter(|one| one.is_told && ceilings.contains(&one.name.as_str()));
        assert_eq!(told.count(), 0, "{rate} Gbit/s, seed {seed}: {:?}", found.numbers);
    }
}

/// The same of a real log of READs over eight queue pairs (the first of those that docs/calibrate.md has, millions a second from 2 B to
/// 8 MiB), whose machine has a slot that binds: the port fits, too, and is not told.
#[test]
fn a_real_plateau_is_not_told_to_be_the_port() {
    const RATES: [f64; 23] = [
        3.593019, 3.622614, 3.642689, 3.637703, 3.627510, 3.626029, 3.588394, 3.623402, 3.610662, 3.623927,
        3.641544, 3.657346, 3.426535, 1.742517, 0.870145, 0.436295, 0.218465, 0.109272, 0.054692, 0.027362,
        0.013677, 0.006841, 0.003421,
    ];
    let base = system(&["network.packet_header=82B"]);
    let program = ToolProgram::named("ib_read_bw").expect("it is listed");
    let run = |power: u32| ToolRun {
        queue_pairs: 8,
        cq_moderation: 100,
        mtu: Some(Bytes::new(4096)),
        outstanding_reads: Some(16),
        length: Some(RunLength::Iterations(8000)),
        ..program.run(Bytes::new(1 << power))
    };
    let runs: Vec<ToolRun> = (1..=23).map(run).collect();
    let mut points = measured(&base, &runs, 1);
    points.iter_mut().zip(RATES).for_each(|(point, rate)| point.measured = rate * 1e6);
    let found = learn(&points, &base, &[]).expect("it can be learnt");
    let ceilings = ["client.pcie0.rate", "client.nic.port_rate"];
    let fitted: Vec<_> = found.numbers.iter().filter(|one| ceilings.contains(&one.name.as_str())).collect();
    assert!(!fitted.is_empty() && fitted.iter().all(|one| !one.is_told), "{:?}", found.numbers);
}

/// The truth lies within what is said of a number that was fitted or may stand for one; what is neither is the base's.
fn assert_holds(found: &Calibration, hidden: &System, name: &str) {
    let truth = of(hidden, name);
    let fitted = found.numbers.iter().find(|one| one.name == name);
    let kept = found.kept.iter().find(|one| one.name == name);
    let said = fitted.map(|one| (one.low, one.high));
    let said = said.or_else(|| kept.and_then(|one| one.replacing.or(one.held)));
    match said {
        Some((low, high)) => {
            let around = 0.98 * low.base()..=1.02 * high.base();
            assert!(
                around.contains(&truth),
                "{name}: {low} to {high} is not {truth}: {:?} {:?}",
                found.numbers,
                found.kept
            );
        }
        None => {
            assert_eq!(of(&system(&[]), name), truth, "{name}: {:?} {:?}", found.numbers, found.kept);
        }
    }
}

/// What a size of the base may be off by is doubt of the link whose headers it sets.
#[test]
fn a_size_that_is_carried_over_widens_what_it_moves() {
    let base = system(&[]);
    let hidden = system(&[
        "host.pcie_mtu=256B",
        "client.pcie_mtu=256B",
        "pcie0.rate=256Gbit/s",
        "client.pcie0.rate=256Gbit/s",
        "network.mtu=4096B",
    ]);
    let points = measured(&hidden, &runs(&["ib_read_bw", "ib_read_lat"], &[1, 8]), 9);
    let found = learn(&points, &base, &["client.pcie0.rate"]).expect("it can be learnt");
    let link = &found.numbers[0];
    assert!((link.low.base()..=link.high.base()).contains(&256e9), "{link:?}");
    assert!(link.alike.iter().any(|name| name.ends_with("pcie_mtu")), "{link:?}");
}

/// Two numbers that bandwidth cannot tell apart are refused by name, with a run that would tell them.
#[test]
fn what_is_not_told_apart_is_refused_with_a_run_that_tells() {
    let base = system(&[]);
    let points = measured(&base, &runs(&["ib_read_lat"], &[1]), 4);
    let asked = ["network.delay", "host.read_latency"];
    match learn(&points, &base, &asked) {
        Err(CalibrationError::NotToldApart { name, from, run }) => {
            assert!(asked.contains(&name.as_str()) && from.len() == 1, "{name} {from:?}");
            assert!(run.starts_with("ib_"), "{run}");
        }
        other => panic!("{other:?}"),
    }
    let found = learn(&points, &base, &["network.delay"]).expect("alone it is told");
    assert!(
        (found.numbers[0].value.base() / of(&base, "network.delay") - 1.0).abs() < 0.2,
        "{:?}",
        found.numbers
    );
    match learn(&points, &base, &["client.nic.queue_pair_rate"]) {
        Err(CalibrationError::NotSeen { run, .. }) => assert!(run.contains("_bw"), "{run}"),
        other => panic!("{other:?}"),
    }
    for name in ["host.cores", "nic.no_such_number"] {
        assert!(
            matches!(learn(&points, &base, &[name]), Err(CalibrationError::NoSuchNumber { .. })),
            "{name}"
        );
    }
}

/// A queue pair that is faster than the thread that posts holds nothing back where the search leaves it: that no point feels it
/// makes no other number less well known, and it is no faster or slower than the points allow.
#[test]
fn a_number_that_no_point_feels_widens_no_other() {
    let base = system(&[]);
    let hidden = system(&[
        "host_verbs.post_time=92ns",
        "client.host_verbs.post_time=92ns",
        "nic.queue_pair_request_time=55ns",
        "client.nic.queue_pair_request_time=55ns",
        "nic.port_rate=100Gbit/s",
        "client.nic.port_rate=100Gbit/s",
    ]);
    for seed in [1, 2] {
        let points = measured(&hidden, &runs(&["ib_write_bw"], &[1, 8]), seed);
        let found = learn(&points, &base, &[]).expect("it can be learnt");
        let fitted = |name: &str| found.numbers.iter().find(|one| one.name == name);
        let post = fitted("client.host_verbs.post_time").expect("the thread binds small payloads");
        assert!(post.is_told && (0.95..1.05).contains(&(post.value.base() / 92e3)), "seed {seed}: {post:?}");
        let pair = fitted("client.nic.queue_pair_request_time").expect("the base's holds such runs back");
        assert!(!pair.is_told && pair.high.base() < 110e3, "seed {seed}: {pair:?}");
        assert_holds(&found, &hidden, &pair.name);
    }
}

/// A run of one size is fitted, since nothing else would be left of it, and moves no other run into the fit or out of it. What is
/// fitted to it alone is known no better than the run itself, and than what stays beside it.
#[test]
fn a_number_of_one_run_has_the_doubt_of_what_stays() {
    let base = system(&[]);
    let hidden = system(&[
        "host_verbs.batch_per_wqe_time=60ns",
        "client.host_verbs.batch_per_wqe_time=60ns",
        "host_verbs.batch_fixed_time=500ns",
        "client.host_verbs.batch_fixed_time=500ns",
    ]);
    let sweep = runs(&["ib_write_bw"], &[1, 8]);
    let program = ToolProgram::named("ib_write_bw").expect("it is listed");
    let list = ToolRun { queue_pairs: 16, post_list: 25, cq_moderation: 100, ..program.run(Bytes::new(32)) };
    let points = measured(&hidden, &[&sweep[..], &[list]].concat(), 4);
    let asked = ["client.host_verbs.batch_per_wqe_time", "client.host_verbs.post_time"];
    let found = learn(&points, &base, &asked).expect("it can be learnt");
    let held = |found: &Calibration| -> Vec<bool> { found.points.iter().map(|one| one.held_out).collect() };
    let with = held(&found);
    assert_eq!(with.last(), Some(&false), "the run of lists is fitted");
    let without = learn(&points[..sweep.len()], &base, &asked[1..]).expect("it can be learnt");
    assert_eq!(with[..sweep.len()], held(&without)[..]);
    let listed = found.numbers.iter().find(|one| one.name == asked[0]).expect("it was asked for");
    assert!(
        !listed.is_told && listed.alike.contains(&"client.host_verbs.batch_fixed_time".to_string()),
        "{listed:?}"
    );
    assert_holds(&found, &hidden, asked[0]);
    // With what stays known exactly the run's own scatter is left.
    let exact = system(&["host_verbs.batch_fixed_time=500ns", "client.host_verbs.batch_fixed_time=500ns"]);
    let found = learn(&points, &exact, &asked).expect("it can be learnt");
    let listed = found.numbers.iter().find(|one| one.name == asked[0]).expect("it was asked for");
    assert!(listed.high.base() > 1.005 * listed.low.base(), "{listed:?}");
}

/// Of a card that the model does not describe no number is taken to be measured, however well the points tell it.
#[test]
fn nothing_is_measured_of_a_card_that_is_not_described() {
    let hidden = system(&["nic.port_rate=50Gbit/s", "client.nic.port_rate=50Gbit/s"]);
    let points = measured(&hidden, &runs(&["ib_write_bw"], &[1, 8]), 5);
    let found = learn(&points, &system(&[]), &["client.host_verbs.post_time"]).expect("it can be learnt");
    assert!(!found.is_described, "{:?} {:?}", found.predicted, found.roofline);
    let [post] = &found.numbers[..] else { panic!("{:?}", found.numbers) };
    assert_eq!((post.is_told, &post.doubt), (false, &Some(LearntDoubt::NotDescribed)));
}

/// What logs say of themselves is heeded: of a device in software, a clock that varied or two cards that differ no number is measured,
/// and of networks that differ it is said what the card keeps.
#[test]
fn numbers_of_doubted_logs_are_not_measured() {
    let base = system(&[]);
    let fit = ["client.host_verbs.post_time"];
    let of = |change: &dyn Fn(usize, &mut MeasuredPoint)| {
        let mut points = measured(&system(&[]), &runs(&["ib_write_bw"], &[1, 8]), 3);
        points.retain(|point| point.run.payload() <= Bytes::new(2048));
        points.iter_mut().enumerate().for_each(|(index, point)| change(index, point));
        learn(&points, &base, &fit).expect("it can be learnt")
    };
    let told = |found: &Calibration| (found.numbers[0].is_told, found.log_doubts.len());
    assert_eq!(told(&of(&|_, point| point.device = Some("mlx5_0".into()))), (true, 0));
    let software = of(&|_, point| point.device = Some("rxe0".into()));
    assert_eq!(told(&software), (false, 1));
    assert_eq!(software.numbers[0].doubt, Some(LearntDoubt::DoubtedLogs));
    assert_eq!(told(&of(&|index, point| point.has_varied_clock = index == 0)), (false, 1));
    let layers = of(&|index, point| {
        point.link_layer = Some(if index % 2 == 0 { "Ethernet" } else { "IB" }.into());
    });
    assert_eq!(told(&layers), (true, 1));
    assert!(layers.log_doubts[0].said.contains("Ethernet, IB"), "{:?}", layers.log_doubts);
    // The same runs on two devices, one of which is slower.
    let mut points = measured(&system(&[]), &runs(&["ib_write_bw"], &[1, 8]), 3);
    let mut other = points.clone();
    points.iter_mut().for_each(|point| point.device = Some("mlx5_0".into()));
    other.iter_mut().for_each(|point| point.device = Some("mlx5_7".into()));
    let learn_both = |points: &[MeasuredPoint], other: &[MeasuredPoint]| {
        learn(&[points, other].concat(), &base, &fit).expect("it can be learnt").log_doubts
    };
    assert_eq!(learn_both(&points, &other), []);
    other.iter_mut().for_each(|point| point.measured /= 4.0);
    let doubts = learn_both(&points, &other);
    assert!(doubts.len() == 1 && doubts[0].said.contains("differ 4.0 times"), "{doubts:?}");
}

/// Runs that contradict each other doubt the fit as much where they stand behind each other in one file as where each has its own; those
/// that differ as runs do doubt nothing.
#[test]
fn repetitions_in_one_file_doubt_the_fit_as_those_in_two_do() {
    let base = system(&[]);
    let fit = ["client.host_verbs.post_time"];
    let mut first = measured(&base, &runs(&["ib_write_bw"], &[8]), 3);
    first.retain(|point| point.run.payload() <= Bytes::new(2048));
    let again = |share: f64, file: &str| -> Vec<MeasuredPoint> {
        let one = |point: &MeasuredPoint| MeasuredPoint {
            file: file.to_string(),
            line: 100 + point.line,
            measured: share * point.measured,
            ..point.clone()
        };
        first.iter().map(one).collect()
    };
    let own = first[0].file.clone();
    for share in [0.3, 0.5] {
        let with = |file: &str| {
            learn(&[&first[..], &again(share, file)].concat(), &base, &fit).expect("it can be learnt")
        };
        let (one, two) = (with(&own), with("second.log"));
        assert_eq!(one.numbers, two.numbers);
        assert_eq!(one.learnt_errors, two.learnt_errors);
        let number = &one.numbers[0];
        assert_eq!((number.is_told, one.log_doubts.len()), (false, 1), "{number:?}");
        // Both runs' numbers are within.
        let truth = of(&base, fit[0]);
        assert!(number.low.base() < truth && truth / share < number.high.base(), "{share}: {number:?}");
    }
    let alike = learn(&[&first[..], &again(1.02, &own)].concat(), &base, &fit).expect("it can be learnt");
    assert_eq!(alike.log_doubts, []);
}

/// Of a port and a PCIe link that hold back the same runs alike none is named that would tell them, since none differs by more than what
/// the points scatter by, and the machine is named, which says of itself which of them it is. The one that is not fitted is what its data
/// sheet says, and both of what it may be are within.
#[test]
fn no_run_is_named_that_does_not_tell_a_port_from_a_link() {
    let base = system(&[]);
    let hidden = system(&[
        "host_verbs.post_time=240ns",
        "client.host_verbs.post_time=240ns",
        "nic.queue_pair_rate=150Gbit/s",
        "client.nic.queue_pair_rate=150Gbit/s",
        "nic.port_rate=200Gbit/s",
        "client.nic.port_rate=200Gbit/s",
    ]);
    let points = measured(&hidden, &runs(&["ib_read_bw", "ib_read_lat", "ib_write_lat"], &[1, 8]), 1);
    let found = learn(&points, &base, &[]).expect("it can be learnt");
    let ceilings = ["client.pcie0.rate", "client.nic.port_rate"];
    let fitted = found.numbers.iter().find(|one| ceilings.contains(&one.name.as_str()));
    let fitted = fitted.unwrap_or_else(|| panic!("{:?}", found.numbers));
    let Some(LearntDoubt::Replaceable { by, run, machine_tells }) = &fitted.doubt else {
        panic!("{fitted:?}")
    };
    let other = ceilings.into_iter().find(|name| *name != fitted.name).expect("there are two");
    assert_eq!((&by[0][..], run, *machine_tells), (&[other.to_string()][..], &None, true), "{fitted:?}");
    let kept = found.kept.iter().find(|one| one.name == other).expect("it is named");
    assert_eq!((&kept.run, kept.machine_tells, kept.taken), (&None, true, kept.value), "{kept:?}");
    ceilings.iter().for_each(|name| assert_holds(&found, &hidden, name));
    let (low, high) = kept.replacing.expect("it may hold");
    assert!((low.base()..=high.base()).contains(&of(&base, other)), "{kept:?}");
}

/// What the runs do not feel stays, and is said with a run that feels it.
#[test]
fn kept_numbers_are_named_with_their_reason() {
    let base = system(&[]);
    let points = measured(&base, &runs(&["ib_write_bw"], &[1, 8]), 5);
    let found = learn(&points, &base, &[]).expect("it can be learnt");
    let fitted: Vec<&str> = found.numbers.iter().map(|one| one.name.as_str()).collect();
    let kept =
        found.kept.iter().find(|one| one.name.ends_with("read_latency")).expect("latencies are not seen");
    assert_eq!(kept.reason, KeptReason::NotSeen);
    assert!(kept.run.as_deref().is_some_and(|run| run.contains("_lat") || run.contains("-t 1")), "{kept:?}");
    assert!(found.kept.iter().all(|one| !fitted.contains(&one.name.as_str())));
}

/// The errors that a card keeps are of fitted points that were left out, and reach farther than what the fit leaves of them.
/// Nothing of what was kept for prediction is in them, and one log says nothing of the next.
#[test]
fn errors_of_a_card_are_of_points_that_were_left_out() {
    let hidden = system(&["host_verbs.post_time=290ns", "client.host_verbs.post_time=290ns"]);
    let base = system(&[]);
    let fit = ["client.host_verbs.post_time"];
    let mut points = measured(&hidden, &runs(&["ib_read_bw", "ib_write_bw"], &[1, 8]), 3);
    points.retain(|point| point.run.payload() <= Bytes::new(2048));
    let found = learn(&points, &base, &fit).expect("it can be learnt");
    let [WidenedErrors { errors, clusters: 4, widened, .. }] = &found.learnt_errors[..] else {
        panic!("{:?}", found.learnt_errors)
    };
    // Student's distribution of two degrees of freedom over the normal one: 1.886 over 1.282.
    assert!((widened - 1.278).abs() < 0.001, "{widened}");
    assert_eq!((errors.figure.as_str(), errors.points), ("throughput", found.fitted.points as u64));
    assert!(errors.half_within > found.fitted.median, "{errors:?} {:?}", found.fitted);
    assert!(errors.nine_of_ten_within > found.fitted.p90, "{errors:?} {:?}", found.fitted);
    let mut other = points.clone();
    let held = found.points.iter().filter(|one| one.held_out);
    held.for_each(|one| other[one.point].measured *= 1.5);
    let other = learn(&other, &base, &fit).expect("it can be learnt");
    assert_eq!(other.learnt_errors, found.learnt_errors);
    let of_one = measured(&hidden, &runs(&["ib_read_bw"], &[8]), 3);
    assert!(learn(&of_one, &base, &fit).expect("it can be learnt").learnt_errors.is_empty());
}

/// A ceiling that one log alone felt is none where that log is left out: no number walks to where the search ends, a thread that either
/// log tells has its own errors, and of what one log tells the card has none.
#[test]
fn what_one_log_tells_widens_nothing_else() {
    let base = system(&[]);
    let hidden = system(&[
        "host_verbs.post_time=277ns",
        "client.host_verbs.post_time=277ns",
        "pcie0.rate=240Gbit/s",
        "client.pcie0.rate=240Gbit/s",
        "nic.queue_pair_rate=215Gbit/s",
        "client.nic.queue_pair_rate=215Gbit/s",
    ]);
    let fit = ["client.host_verbs.post_time", "client.nic.queue_pair_rate", "client.pcie0.rate"];
    // As many rows that the thread holds back as a log of every power of two has.
    let whole = |queue_pairs: u64| {
        let program = ToolProgram::named("ib_read_bw").expect("it is listed");
        (1..=23).map(move |power| ToolRun {
            queue_pairs,
            cq_moderation: 100,
            ..program.run(Bytes::new(1 << power))
        })
    };
    let runs: Vec<ToolRun> = whole(1).chain(whole(8)).collect();
    let points = measured(&hidden, &runs, 4);
    let found = learn(&points, &base, &fit).expect("it can be learnt");
    assert_eq!(found.numbers.len(), fit.len(), "{:?}", found.numbers);
    assert!(!found.learnt_errors.is_empty());
    for WidenedErrors { errors, .. } in &found.learnt_errors {
        assert_eq!(errors.path, "client-host");
        assert!(errors.bound_by.iter().all(|name| !name.contains("pcie0")), "{errors:?}");
        assert!(errors.all_within < 0.3, "{errors:?}");
    }
    // By the base, whose link and port carry more than twice as much, and no farther.
    assert!((0.5..2.0).contains(&found.left_out_clusters.greatest), "{:?}", found.left_out_clusters);
}

/// What was not seen holds a number from one side: a queue pair that is not what holds a run back carries no less, and takes no longer,
/// than the run shows.
#[test]
fn what_was_not_fitted_is_no_worse_than_was_seen() {
    let port = ["nic.port_rate=200Gbit/s", "client.nic.port_rate=200Gbit/s"];
    let post = ["host_verbs.post_time=150ns", "client.host_verbs.post_time=150ns"];
    let (base, hidden) = (system(&port), system(&[&port[..], &post].concat()));
    let points = measured(&hidden, &runs(&["ib_read_bw", "ib_write_bw"], &[1, 8]), 11);
    let found = learn(&points, &base, &[]).expect("it can be learnt");
    let held = |name: &str| {
        let kept = found.kept.iter().find(|one| one.name == name);
        let kept = kept.unwrap_or_else(|| panic!("{name}: {:?} {:?}", found.kept, found.numbers));
        let (low, high) = kept.held.unwrap_or_else(|| panic!("{kept:?}"));
        assert_eq!(kept.taken, kept.value, "{kept:?}");
        assert!((low.base()..=high.base()).contains(&of(&hidden, name)), "{kept:?}");
        (low.base(), high.base())
    };
    let (low, _) = held("client.nic.queue_pair_rate");
    assert!(low > 170e9, "{low}: one queue pair carried all that the port does");
    let (_, high) = held("client.nic.queue_pair_request_time");
    assert!(high < 175e3, "{high} ps: one queue pair took a request each 150 ns");
}

/// An outlier of one log moves nothing far.
#[test]
fn outliers_are_weighed_down() {
    let hidden = system(&["host_verbs.post_time=290ns", "client.host_verbs.post_time=290ns"]);
    let base = system(&[]);
    let mut points = measured(&hidden, &runs(&["ib_write_bw"], &[8]), 6);
    points[2].measured /= 5.0;
    let found = learn(&points, &base, &["client.host_verbs.post_time"]).expect("it can be learnt");
    let ratio = found.numbers[0].value.base() / 290e3;
    assert!((ratio - 1.0).abs() < 0.05, "{:?}", found.numbers);
}

fn of_logs(folder: &std::path::Path, wanted: impl Fn(&str) -> bool) -> Vec<MeasuredPoint> {
    let mut names: Vec<String> = std::fs::read_dir(folder)
        .expect("the folder can be read")
        .map(|entry| entry.expect("an entry can be read").file_name().to_string_lossy().into_owned())
        .filter(|name| name.ends_with(".log") && wanted(name))
        .collect();
    names.sort();
    let mut points = PointCollector::default();
    for name in names {
        let log = std::fs::File::open(folder.join(&name)).expect("the log can be read");
        for item in LogReader::new(std::io::BufReader::new(log)) {
            if let LogItem::Measurement(figure) = item.expect("the log can be read") {
                points.take(&name, &figure);
            }
        }
    }
    points.finish().0
}

/// Public logs of a card, where they are at hand: READ of 1 and 8 queue pairs at every second size tells all the rest. Each figure is
/// one that docs/calibrate.md has.
#[test]
fn public_logs_are_predicted_from_a_part_of_them() {
    let Some(folder) = std::env::var_os("OFFPATH_PERFTEST_LOGS") else {
        // Past the capture of output, which hides what a test says that passes.
        let _ = writeln!(std::io::stderr(), "skipped: OFFPATH_PERFTEST_LOGS names no folder of logs");
        return;
    };
    let page = include_str!("../../../docs/calibrate.md");
    let missing = RefCell::new(Vec::new());
    let says = |what: &str| {
        println!("{what}");
        if !crate::says(page, what) {
            missing.borrow_mut().push(what.to_string());
        }
    };
    let points = of_logs(std::path::Path::new(&folder), |_| true);
    // As the command has it: packets with the headers of the link layer that the logs state.
    let layers = points.iter().map(|point| point.link_layer.as_deref());
    let header = PacketHeader::of_link_layers(layers).expect("they state Ethernet");
    let base = header.put_into(&system(&[])).expect("the base guesses it");
    let rules = ["sizes", "verb=write", "qps=2,4,16,32"];
    let learn = |points: &[MeasuredPoint], rules: &[&str], fit: &[String]| {
        let hold_out: Vec<HoldOut> = rules.iter().map(|rule| rule.parse().expect("it is a rule")).collect();
        calibrate(&CalibrationRequest {
            system: &base,
            path: "client-host",
            points,
            hold_out: &hold_out,
            fit,
            pin: &[],
            progress: &(),
        })
        .expect("it can be learnt")
    };
    let found = learn(&points, &rules, &[]);
    for one in &found.numbers {
        println!("{} {} [{} {}] from {} {}", one.name, one.value, one.low, one.high, one.base, one.at_bound);
    }
    for one in &found.kept {
        println!("kept {} {} {:?} {:?}", one.name, one.value, one.reason, one.run);
    }
    println!(
        "fitted {:?}\nleft out {:?}\nclusters {:?}",
        found.fitted, found.left_out, found.left_out_clusters
    );
    let run = |index: usize| points[index].run.queue_pairs().expect("they are of perftest");
    let size = |index: usize| run(index).payload.get();
    let is_fitted_series =
        |index: usize| run(index).verb == Verb::Read && [1, 8].contains(&run(index).queue_pairs);
    let held: Vec<&PredictedPoint> = found.points.iter().filter(|one| one.held_out).collect();
    let errors = |wanted: &dyn Fn(usize) -> bool, of: &dyn Fn(&PredictedPoint) -> f64| {
        let own = held.iter().filter(|one| wanted(one.point));
        let own: Vec<f64> = own.map(|one| (of(one) / points[one.point].measured - 1.0).abs()).collect();
        ErrorSummary::of(&own)
    };

    // What a copy of the nearest measured curves errs by: READs of 1 queue pair for 1, of 8 for all others; the mean of all that are
    // wanted at a size, a straight line of logarithms between those sizes.
    let at = |index: usize, is_wanted: &dyn Fn(&PredictedPoint) -> bool| -> f64 {
        let mut known: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
        let alike =
            |one: &&PredictedPoint| (run(one.point).queue_pairs == 1) == (run(index).queue_pairs == 1);
        let own = found.points.iter().filter(|one| is_fitted_series(one.point) && is_wanted(one));
        own.filter(alike).for_each(|one| {
            known.entry(size(one.point)).or_default().push(points[one.point].measured.ln());
        });
        let mean = |all: &Vec<f64>| all.iter().sum::<f64>() / all.len() as f64;
        let size = size(index);
        let below = known.range(..=size).next_back().or(known.iter().next()).expect("a size");
        let above = known.range(size..).next().or(known.iter().next_back()).expect("a size");
        let (low, high) = ((*below.0 as f64).ln(), (*above.0 as f64).ln());
        let share = if high > low { ((size as f64).ln() - low) / (high - low) } else { 0.0 };
        (mean(below.1) * (1.0 - share) + mean(above.1) * share).exp()
    };
    let interpolated = |one: &PredictedPoint| at(one.point, &|known| !known.held_out);
    let copied = |one: &PredictedPoint| at(one.point, &|_| true);
    // A roofline for one queue pair and one for several, each fitted as the one of the calibration is.
    let mut two_rooflines = vec![f64::NAN; points.len()];
    for (is_one, rules) in [(true, &rules[..2]), (false, &rules[..])] {
        let own: Vec<usize> =
            (0..points.len()).filter(|index| (run(*index).queue_pairs == 1) == is_one).collect();
        let of_own: Vec<MeasuredPoint> = own.iter().map(|index| points[*index].clone()).collect();
        for one in learn(&of_own, rules, &["client.host_verbs.post_time".to_string()]).points {
            assert_eq!(one.held_out, found.points[own[one.point]].held_out);
            two_rooflines[own[one.point]] = one.roofline;
        }
    }
    let two_rooflines = |one: &PredictedPoint| two_rooflines[one.point];
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let row = |name: &str, of: &ErrorSummary| {
        says(&format!(
            "| {name} | {} | {} | {} |",
            percent(of.median),
            percent(of.p90),
            percent(of.greatest)
        ));
    };
    let all = |_: usize| true;
    row("offpath", &found.predicted);
    row(
        "READs of 1 queue pair for 1, of 8 for all others, interpolated between the 12 fitted sizes",
        &errors(&all, &interpolated),
    );
    row("two rooflines, for one queue pair and for several, same 48 points", &errors(&all, &two_rooflines));
    row("roofline of two numbers, same 48 points", &found.roofline);
    row("straight line of time over size", &found.line);
    row("one direction of the servers against the other", &found.repeated);
    let elsewhere = |index: usize| !is_fitted_series(index);
    let of_copy = errors(&elsewhere, &copied);
    says(&format!("On the {} points outside the two fitted series", of_copy.points));
    row("offpath, the same 460", &errors(&elsewhere, &|one| one.predicted));
    row("the measured curve of READs at every size, fitted or not, copied", &of_copy);

    let covered = |wanted: &dyn Fn(usize) -> bool| {
        let own: Vec<_> = held.iter().filter(|one| wanted(one.point)).collect();
        let within = own.iter().filter(|one| one.holds(points[one.point].measured)).count();
        format!("{within} of {}", own.len())
    };
    for (name, least, most) in
        [("to 2 KiB", 0, 2 << 10), ("to 64 KiB", 2 << 10, 64 << 10), ("above", 64 << 10, u64::MAX)]
    {
        let own = |index: usize| size(index) > least && size(index) <= most;
        let of = |of: ErrorSummary| format!("{}, {}", percent(of.median), percent(of.p90));
        says(&format!(
            "| {name} | {} | {} | {} | {} |",
            of(errors(&own, &|one| one.predicted)),
            of(errors(&own, &|one| one.roofline)),
            of(errors(&own, &two_rooflines)),
            covered(&own),
        ));
    }
    says(&format!("{} of {} together", found.covered, found.predicted.points));
    let counts = [1, 2, 4, 8, 16, 32];
    for (verb, name) in [(Verb::Read, "READs"), (Verb::Write, "WRITEs")] {
        let of =
            counts.map(|count| covered(&|index| run(index).verb == verb && run(index).queue_pairs == count));
        says(&format!("of {name} with 1, 2, 4, 8, 16 and 32 queue pairs {}", of.join(", ")));
    }
    let elsewhere = found.covered_elsewhere;
    says(&format!("of series that are fitted at no size {} of {}", elsewhere.within, elsewhere.points));
    let up_to = |of: &dyn Fn(&PredictedPoint) -> f64| errors(&|index| size(index) <= 64 << 10, of).median;
    let share = up_to(&|one| one.predicted) / up_to(&|one| one.roofline);
    says(&format!("up to 64 KiB it is {share:.2}"));
    let writes = |size_of: u64| {
        let own = |index: usize| {
            run(index).verb == Verb::Write && run(index).queue_pairs == 1 && size(index) == size_of
        };
        let own: Vec<f64> = held
            .iter()
            .filter(|one| own(one.point))
            .map(|one| one.predicted / points[one.point].measured - 1.0)
            .collect();
        percent(-own.iter().sum::<f64>() / own.len() as f64)
    };
    let [low @ .., last] = [8, 16, 32, 64].map(|kibi| writes(kibi << 10));
    says(&format!("{} and {last} too low at 8, 16, 32 and 64 KiB", low.join(", ")));

    // The thread that posts takes in each log what its short messages say.
    let post =
        found.numbers.iter().find(|one| one.name == "client.host_verbs.post_time").expect("it is fitted");
    let mut of_logs: BTreeMap<&str, (bool, Vec<f64>)> = BTreeMap::new();
    for one in found.points.iter().filter(|one| size(one.point) <= 2 << 10) {
        let point = &points[one.point];
        let own = of_logs.entry(&point.file).or_insert((is_fitted_series(one.point), Vec::new()));
        own.1.push(post.value.base() * one.predicted / point.measured);
    }
    let inside = |is_wanted: &dyn Fn(bool) -> bool| {
        let own: Vec<_> = of_logs.values().filter(|(is_fitted, _)| is_wanted(*is_fitted)).collect();
        let middle = |all: &Vec<f64>| {
            let mut sorted = all.clone();
            sorted.sort_by(f64::total_cmp);
            sorted[sorted.len() / 2]
        };
        let within =
            own.iter().filter(|(_, all)| (post.low.base()..=post.high.base()).contains(&middle(all)));
        format!("{} of the {}", within.count(), own.len())
    };
    says(&format!("{} ({} to {})", post.value, post.low, post.high));
    says(&format!(
        "{} logs lie in it, {} that were not fitted",
        inside(&|_| true),
        inside(&|is_fitted| !is_fitted)
    ));

    // Without its first row every other size of each log is held out: the same is predicted, and less is told.
    let carried = |found: &Calibration| {
        let one =
            found.numbers.iter().find(|one| one.name == "client.nic.queue_pair_rate").expect("it is fitted");
        (one.is_told, format!("{} ({} to {})", one.value, one.low, one.high))
    };
    let rest: Vec<MeasuredPoint> =
        points.iter().filter(|point| point.run.payload() > Bytes::new(2)).cloned().collect();
    let shifted = learn(&rest, &rules, &[]);
    let ((is_told, with), (is_told_without, without)) = (carried(&found), carried(&shifted));
    assert!(is_told && !is_told_without, "{with} {without}");
    says(&format!("{with} with all rows, {without} and not told without"));
    let of = shifted.predicted;
    says(&format!(
        "its {} points {}, {} and {}",
        of.points,
        percent(of.median),
        percent(of.p90),
        percent(of.greatest)
    ));

    assert!(matches!(found.numbers[0].value, Quantity::Time(_) | Quantity::BitRate(_)));
    assert!(found.predicted.median <= 0.05 && found.predicted.p90 <= 0.15, "{:?}", found.predicted);
    assert!(found.predicted.median <= 0.5 * found.roofline.median, "{:?}", found.roofline);
    let share = found.covered as f64 / found.predicted.points as f64;
    assert!((0.7..=0.9).contains(&share), "{share}");
    let missing = missing.into_inner();
    assert!(missing.is_empty(), "docs/calibrate.md lacks {missing:#?}");
}

/// Of a slow row's figures the message rate has two digits, and the bandwidth five.
#[test]
fn a_coarse_figure_of_a_row_gives_way_to_a_finer_one() {
    let log = "                    RDMA_Read BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n \
               Number of qps   : 1\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n \
               TX depth        : 128\n CQ Moderation   : 100\n Mtu             : 4096[B]\n Link type       : Ethernet\n \
               Outstand reads  : 16\n \
               #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n \
               4096       1000             115.70             115.70             0.029619\n \
               8388608    1000             115.70             115.70             0.000014\n";
    let mut points = PointCollector::default();
    for item in LogReader::new(log.as_bytes()) {
        if let LogItem::Measurement(figure) = item.expect("a text can be read") {
            points.take("slow.log", &figure);
        }
    }
    let (points, aside) = points.finish();
    let measured: Vec<f64> = points.iter().map(|point| point.measured).collect();
    assert_eq!(measured.len(), 2, "{points:?} {aside:?}");
    // The finer message rate of a small payload stays the one that is taken.
    assert!((measured[0] - 29_619.0).abs() < 1e-6, "{measured:?}");
    assert!((measured[1] - 115.70 * 1024.0 * 1024.0 / 8_388_608.0).abs() < 1e-3, "{measured:?}");
}
