//! Time of one solve with shadow prices: `cargo bench -p offpath-capacity`.

use criterion::{Criterion, criterion_group, criterion_main};
use offpath_capacity::MixObjective;

#[path = "../tests/common/mod.rs"]
mod common;

fn mix(criterion: &mut Criterion) {
    let problem = common::five_by_forty(1);
    let greedy = MixObjective::Greedy((0..5).map(|activity| format!("activity {activity}")).collect());
    criterion.bench_function("throughput of 5 activities on 40 stations", |bencher| {
        bencher.iter(|| problem.solve(&MixObjective::Throughput));
    });
    criterion.bench_function("least cost of 5 activities on 40 stations", |bencher| {
        let cost = offpath_capacity::Cost::Station("station 00".to_owned());
        let load = problem.solve(&MixObjective::Throughput).map_or(1.0, |solution| solution.total / 2.0);
        let objective = MixObjective::LeastCost { cost, load };
        bencher.iter(|| problem.solve(&objective));
    });
    criterion.bench_function("greedy of 5 activities on 40 stations", |bencher| {
        bencher.iter(|| problem.solve(&greedy));
    });
}

criterion_group!(benches, mix);
criterion_main!(benches);
