use offpath_plan::*;
use offpath_profile::Library;
use std::path::Path;
#[test]
fn show() {
    for file in ["kv-ycsb-c","kv-batching","replication"] {
    let d = Design::load(Path::new(&format!("{}/../../designs/{file}.toml", env!("CARGO_MANIFEST_DIR"))), &Changes::default()).map_err(|e| {eprintln!("{e:?}"); e}).unwrap();
    println!("{} {:?}", d.workload, d.cache);
    let setting = Setting { library: Library::builtin(), overlays: vec![], settings: vec![], testbed: None, mode: None };
    let ready = prepare(&d, &setting).map_err(|e| {eprintln!("{e:?}"); e}).unwrap();
    let folds: Vec<_> = ready.iter().map(|r| r.compiled.fold(&r.router)).collect();
    let t = std::time::Instant::now();
    let p = plan(&d, &ready, &folds).map_err(|e| {eprintln!("{e:?}"); e}).unwrap();
    println!("{:?}", t.elapsed());
    for a in &p.alternatives { println!("{:22} {:.2} [{:.2} {:.2}] M/s {:.1} Gb/s {:.3} us {} | {} | {:?} {:?}", a.name, a.rate.value/1e6, a.rate.low/1e6, a.rate.high/1e6, a.rate.value*262144.*8e-9, a.latency_s*1e6, a.binding, a.reason, a.basis, a.leading); }
    for m in p.mixes.iter().chain([&p.greedy,&p.optimal]) { println!("{} {:.2} [{:.2} {:.2}] {:.1} Gb/s {:?} {:?}", m.name, m.rate.value/1e6, m.rate.low/1e6, m.rate.high/1e6,m.rate.value*262144.*8e-9, m.shares, m.bounds); }
    println!("{:?} {:?}", p.influences, p.greedy_order);
    }
}
