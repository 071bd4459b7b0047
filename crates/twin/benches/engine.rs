//! How fast virtual time goes: `cargo bench -p offpath-twin`.
//!
//! Beside criterion's times it prints the figures of docs/performance.md: events and operations
//! per second of wall clock, medians of five.

use criterion::{Criterion, criterion_group, criterion_main};
use offpath_quantity::Time;
use std::time::Instant;

#[path = "common/mod.rs"]
mod common;

fn figures() {
    let tandem = (0..5).map(|_| {
        let began = Instant::now();
        let (events, _) = common::tandem(3_000_000);
        events as f64 / began.elapsed().as_secs_f64()
    });
    println!("tandem queue: {:.2} M events/s", common::median(tandem.collect()) / 1e6);
    let mut events_per_operation = 0.0;
    let loops = (0..5).map(|_| {
        let began = Instant::now();
        let observed = common::closed_loop(Time::from_ms(30));
        events_per_operation = observed.events_per_operation;
        observed.completed as f64 / began.elapsed().as_secs_f64()
    });
    let rate = common::median(loops.collect());
    println!("closed loop: {:.2} M operations/s, {events_per_operation:.2} events each", rate / 1e6);
}

fn engine(criterion: &mut Criterion) {
    figures();
    criterion.bench_function("tandem queue, 100 000 customers", |bencher| {
        bencher.iter(|| common::tandem(100_000));
    });
    criterion.bench_function("closed loop of 64 B READs, 1 ms", |bencher| {
        bencher.iter(|| common::closed_loop(Time::from_ms(1)));
    });
}

criterion_group!(benches, engine);
criterion_main!(benches);
