//! What coded applications demand, beside the step lists of the designs that name them.

mod common;

use common::*;
use offpath_plan::coded::observe;
use offpath_plan::{Changes, prepare};

#[test]
fn look() {
    for (text, changes) in [(small("kv-ycsb-c.toml"), Changes::default()), (text("replication.toml"), Changes::default()), (text("replication.toml"), with_ratio(0.1))] {
        let design = parse(&text, &changes);
        let began = std::time::Instant::now();
        let ready = prepare(&design, &setting(&[], &[])).unwrap_or_else(|e| panic!("{e:?}"));
        println!("{:?}", began.elapsed());
        let listed = prepare(&parse(&text, &Changes { steps: true, ..changes.clone() }), &setting(&[], &[])).unwrap();
        for (one, other) in ready.iter().zip(&listed) {
            let (a, b) = (one.compiled.fold(&one.router), other.compiled.fold(&other.router));
            let plain = design.alternatives.iter().find(|x| x.name == one.alternative.name).unwrap();
            let o = observe(&design, plain, &one.router).unwrap().unwrap();
            println!("{}: latency code {} fold {} steps {}", one.alternative.name, o.latency_s*1e6, a.latency*1e6, b.latency*1e6);
            if one.alternative.name.len() < 8 { println!("   {:?}", one.alternative.operations.iter().map(|x| &x.2).collect::<Vec<_>>()); }
            let keys: std::collections::BTreeSet<_> = a.seconds.keys().chain(b.seconds.keys()).collect();
            for k in keys { let (x,y) = (a.seconds.get(k).copied().unwrap_or(0.), b.seconds.get(k).copied().unwrap_or(0.)); if (x/y-1.).abs()>1e-6 || y == 0. {println!("   {k}: {:.3} ns, steps {:.3}", x*1e9, y*1e9);} }
        }
    }
}
