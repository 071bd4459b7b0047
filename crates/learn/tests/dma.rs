//! A device's own DMA: what its runs would print follows from its engine, its link and its host's memory.

use offpath_learn::{
    Calibration, CalibrationRequest, Directions, DmaBench, DmaOperation, DmaRun, HoldOut, MeasuredPoint,
    MeasuredRun, RunKind, calibrate,
};
use offpath_logs::{LogMetric, MetricStatistic, MetricSubject};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::Bytes;
use offpath_twin::{Seed, unit};

fn system(settings: &[&str]) -> System {
    let settings = settings.iter().map(|one| one.to_string()).collect();
    let device = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/dma-card.toml");
    let request = SystemRequest { device, settings, ..SystemRequest::default() };
    Library::builtin().load(&request).expect("the card loads")
}

fn of(system: &System, run: &DmaRun) -> f64 {
    let bench = DmaBench::new(system, "cores-host-dma").expect("the engine carries it");
    let expected = bench.expect(run).expect("it is modelled");
    match run.kind {
        RunKind::Bandwidth => expected.rate_per_s,
        RunKind::Latency => expected.latency.as_seconds(),
    }
}

fn expected(system: &System, kind: RunKind, operation: DmaOperation, payload: u64, is_warm: bool) -> f64 {
    of(system, &DmaRun { kind, operation, payload: Bytes::new(payload), window: Bytes::new(8192), is_warm })
}

/// What caches do not hold is read later and less often, and written as before.
#[test]
fn cold_memory_slows_what_reads_it() {
    let system = system(&["host.miss_latency=90ns"]);
    for payload in [16, 64, 512] {
        let both = |kind, operation| {
            [true, false].map(|is_warm| expected(&system, kind, operation, payload, is_warm))
        };
        let [warm, cold] = both(RunKind::Latency, DmaOperation::Read);
        assert!((cold - warm - 90e-9).abs() < 1e-10, "{payload} B: {warm} s and {cold} s");
        let [warm, cold] = both(RunKind::Bandwidth, DmaOperation::Write);
        assert_eq!(warm, cold, "{payload} B");
    }
    let small = |is_warm| expected(&system, RunKind::Bandwidth, DmaOperation::Read, 16, is_warm);
    assert!(small(true) > 1.05 * small(false));
}

/// A READ behind a WRITE ends after either alone, and before both one after the other.
#[test]
fn a_read_follows_its_write_on_the_way() {
    let system = system(&[]);
    for payload in [4, 64, 2048] {
        let of = |operation| expected(&system, RunKind::Latency, operation, payload, true);
        let (read, write, both) =
            (of(DmaOperation::Read), of(DmaOperation::Write), of(DmaOperation::WriteThenRead));
        assert!(read < both && write < both && both < read + write, "{payload} B: {read} {write} {both}");
    }
}

/// A path of queue pairs is none of an engine's own DMA.
#[test]
fn a_path_without_the_engine_is_refused() {
    let system = system(&[]);
    for path in ["host-cores-dma", "client-host"] {
        assert!(DmaBench::new(&system, path).is_err(), "{path}");
    }
}

/// A window that the last-level cache holds in part is as warm as that part, and what was just written is in the cache.
#[test]
fn a_window_is_as_warm_as_the_cache_is_large() {
    let system = system(&["host.miss_latency=80ns"]);
    let latency = |operation, window: u64, is_warm| {
        let (kind, payload, window) = (RunKind::Latency, Bytes::new(64), Bytes::new(window << 20));
        of(&system, &DmaRun { kind, operation, payload, window, is_warm })
    };
    let read = |window, is_warm| latency(DmaOperation::Read, window, is_warm);
    let least = read(1, true);
    for (window, missing) in [(25, 0.0), (50, 0.5), (100, 0.75)] {
        let more = read(window, true) - least;
        assert!((more - 80e-9 * missing).abs() < 1e-11, "{window} MiB: {more} s");
        assert!((read(window, false) - least - 80e-9).abs() < 1e-11, "{window} MiB, cold");
    }
    let both = |is_warm| latency(DmaOperation::WriteThenRead, 1, is_warm);
    assert_eq!(both(true), both(false));
}

/// Runs that differ in their size alone: what is measured, what each request does, and whether caches hold it.
type Series = (RunKind, DmaOperation, bool);

/// Points of a card, each with an error of about so much.
fn measured(system: &System, series: &[Series], deviation: f64, seed: u64) -> Vec<MeasuredPoint> {
    use RunKind::*;
    let sizes =
        [4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 384, 512, 640, 768, 1024, 1280, 1536, 2048];
    let mut draws = Seed::new(seed).child("noise").generator();
    let mut points = Vec::new();
    for &(kind, operation, is_warm) in series {
        let subject = match kind {
            Bandwidth => MetricSubject::OperationRate,
            Latency => MetricSubject::Latency,
        };
        for payload in sizes.map(Bytes::new) {
            let run = DmaRun { kind, operation, payload, window: Bytes::new(8192), is_warm };
            // Three draws are near enough to a bell of deviation one.
            let noise = (0..3).map(|_| unit(&mut draws) - 0.5).sum::<f64>() * 2.0;
            points.push(MeasuredPoint {
                file: "dma.dat".to_string(),
                line: points.len() as u64 + 1,
                measured: of(system, &run) * (1.0 + deviation * noise),
                run: MeasuredRun::Dma(run),
                metric: LogMetric::new(subject, MetricStatistic::Mean),
                link_layer: None,
                device: None,
                has_varied_clock: false,
            });
        }
    }
    points
}

fn learn(points: &[MeasuredPoint], fit: &[&str]) -> Calibration {
    let fit: Vec<String> = fit.iter().map(|name| name.to_string()).collect();
    calibrate(&CalibrationRequest {
        system: &system(&[]),
        path: "cores-host-dma",
        points,
        hold_out: &[HoldOut::Sizes],
        fit: &fit,
        pin: &[],
        progress: &(),
    })
    .expect("it can be learnt")
}

/// Held-out sizes of a card with hidden numbers are predicted to what its noise leaves, within intervals that hold about
/// four of five of them, and what caches hold is faster wherever it is.
#[test]
fn held_out_sizes_lie_within_what_fitted_ones_scatter_by() {
    let hidden = system(&["pcie0.delay=160ns", "host.miss_latency=90ns", "dma.buffer_rate=70Gbit/s"]);
    use {DmaOperation::*, RunKind::*};
    let series = [
        (Bandwidth, Read, true),
        (Bandwidth, Read, false),
        (Bandwidth, Write, true),
        (Latency, Read, true),
        (Latency, Read, false),
        (Latency, WriteThenRead, true),
    ];
    let (mut within, mut all, mut right, mut apart) = (0, 0, 0, 0);
    for seed in 1..=4 {
        let found = learn(&measured(&hidden, &series, 0.02, seed), &[]);
        assert!(found.predicted.median < 0.025 && found.predicted.p90 < 0.06, "{:?}", found.predicted);
        assert!(found.predicted.median < 0.5 * found.roofline.median, "{:?}", found.roofline);
        let pairs = found.warm_against_cold;
        assert_eq!(pairs.apart.pairs + pairs.alike.pairs, 40);
        // All are of READs, which the rule has faster warm.
        assert_eq!(pairs.alike.right_by_rule, 0, "{pairs:?}");
        apart += pairs.apart.right;
        right += pairs.apart.right + pairs.alike.right;
        within += found.covered;
        all += found.predicted.points;
    }
    // Two figures with a noise of 2% differ by 2.8%. Of 40 pairs 28 differ by 7% and more, so that noise turns none.
    assert!(apart >= 4 * 28, "{apart} of the pairs that differ are right");
    // The 12 that the link holds back differ by 0 to 3%, and are within 2% half of the time. A prediction that is right of all is so of
    // 28 + 12 * 0.52 = 34.2 with a deviation of 1.7, and of four seeds of 136.8 with one of 3.5: three of these less are 126.
    // One that knows no cache is right of 6 in 40, one that takes every cold run for slower of 31, 124 in all.
    println!("{right} of 160 pairs are right");
    assert!(right > 126, "{right} of 160 pairs of warm and cold runs are right");
    // An interval is the ninth of ten errors, which holds 9 of 11: 82%. Those of 24 series differ by 11% each, and 240 points
    // scatter by 2.5% around that, so that the share deviates by 3.4%. What is aimed at is 70% to 90%.
    let share = within as f64 / all as f64;
    println!("{within} of {all} held-out points are within their 80% intervals");
    assert!((0.7..=0.9).contains(&share), "{share} of {all} held-out points are within their 80% intervals");
}

/// Where caches make no difference none can be predicted wrongly: such pairs are no score, and a rule without a model stands beside those
/// that are.
#[test]
fn pairs_that_do_not_differ_are_no_directions() {
    use {DmaOperation::*, RunKind::*};
    let hidden = system(&["host.miss_latency=90ns"]);
    let series = [Read, Write].into_iter().flat_map(|of| [true, false].map(|warm| (Bandwidth, of, warm)));
    let points = measured(&hidden, &series.collect::<Vec<_>>(), 0.0, 1);
    let Directions { apart, alike } = learn(&points, &["client.read_latency"]).warm_against_cold;
    // 20 pairs of WRITEs, and those of READs that the link holds back.
    assert!(apart.pairs >= 5 && alike.pairs >= 20 && apart.pairs + alike.pairs == 40, "{apart:?} {alike:?}");
    assert_eq!((apart.right, apart.right_by_rule), (apart.pairs, apart.pairs), "{apart:?}");
    assert_eq!((alike.right, alike.right_by_rule), (alike.pairs, 20), "{alike:?}");
}
