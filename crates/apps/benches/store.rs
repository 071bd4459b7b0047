//! What the store costs: `cargo bench -p offpath-apps --bench store`.
//!
//! Beside criterion's times it prints how many gets of YCSB C the twin simulates in a second of one
//! core, real bytes and statistics included, with 11 client machines and gets split between the card's
//! answers and READs: medians of five. Time is the processor's where Linux tells it, so that other programs on
//! the machine do not count; elsewhere it is the wall clock's.

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use offpath_apps::kv::{Placement, Spread};
use offpath_profile::{Library, SystemRequest};
use offpath_quantity::Time;
use offpath_route::Router;
use std::hint::black_box;
use std::sync::Arc;
use std::time::Instant;

#[path = "common/mod.rs"]
mod common;

fn router() -> Arc<Router> {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Arc::new(Router::new(&system).expect("a shipped profile has routes"))
}

/// Seconds for which this thread had a core.
fn seconds(began: Instant) -> f64 {
    let statistics = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let running = statistics.split_whitespace().next().and_then(|text| text.parse::<f64>().ok());
    running.map_or_else(|| began.elapsed().as_secs_f64(), |nanoseconds| nanoseconds / 1e9)
}

/// Gets simulated in a second of one core, set-up and warm-up left out by a difference of two runs.
fn simulated(router: &Arc<Router>, placement: Placement, spread: &Spread) {
    let options = common::options(placement);
    let began = Instant::now();
    let run = |window| {
        let load = common::load(common::workload_c(), 40, spread.clone(), window);
        let before = seconds(began);
        let report = common::run(router, &options, &load);
        assert_eq!(report.wrong + report.absent + report.failed(), 0);
        (seconds(began) - before, report)
    };
    let mut rates: Vec<f64> = (0..5)
        .map(|_| {
            let ((short, few), (long, many)) = (run(Time::from_us(100)), run(Time::from_us(2100)));
            (many.total() - few.total()) as f64 / (long - short)
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let (_, report) = run(Time::from_ms(1));
    println!(
        "twin, {spread:?}: {:.0} k gets/s of one core ({:.0} to {:.0}), {:.1} events a get, {:.1} M gets/s \
         of virtual time",
        rates[2] / 1e3,
        rates[0] / 1e3,
        rates[4] / 1e3,
        report.events_per_operation().unwrap_or_default(),
        report.per_second() / 1e6
    );
}

fn twin(criterion: &mut Criterion) {
    let router = router();
    let both = Spread::Split(Placement::SocCacheSend, Placement::SplitOneSided);
    simulated(&router, Placement::SocCacheSend, &both);
    simulated(&router, Placement::SplitOneSided, &Spread::One);
    let options = common::options(Placement::SocCacheSend);
    let load = common::load(common::workload_c(), 40, both, Time::from_us(100));
    criterion.bench_function("twin: 11 clients, 400 us of YCSB C", |bencher| {
        bencher.iter(|| common::run(&router, &options, &load));
    });
}

fn one_process(criterion: &mut Criterion) {
    for placement in Placement::ALL {
        criterion.bench_function(&format!("local: a get by {placement}"), |bencher| {
            bencher.iter_custom(|gets| common::local_gets(placement, gets));
        });
    }
    // What a map in one address space takes for the same records and the same copy of the value.
    let map = dashmap::DashMap::new();
    for record in 0..common::RECORDS {
        map.insert(record, offpath_apps::kv::value_of(record, 0, 64));
    }
    let mut number = 0;
    criterion.bench_function("dashmap: a get with a copy", |bencher| {
        bencher.iter_batched(
            || {
                number += 797;
                number % common::RECORDS
            },
            |key| black_box(map.get(&key).map(|value| value.value().clone())),
            BatchSize::SmallInput,
        );
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(10);
    targets = twin, one_process
}
criterion_main!(benches);
