//! Time of one route with its latency and capacity: `cargo bench -p offpath-route`.

use criterion::{Criterion, criterion_group, criterion_main};

#[path = "common/mod.rs"]
mod common;

fn reading(criterion: &mut Criterion) {
    let router = common::router();
    let mut reader = offpath_route::Reader::new(&router);
    for operation in common::operations(&router) {
        let name = format!("{} {} {}", operation.path, operation.verb, operation.payload);
        criterion.bench_function(&format!("latency and capacity: {name}"), |bencher| {
            bencher.iter(|| common::latency_and_capacity(&router, &mut reader, &operation));
        });
    }
}

criterion_group!(benches, reading);
criterion_main!(benches);
