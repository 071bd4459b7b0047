//! The store under YCSB gets on the twin and in one process, for benches and tests.
#![allow(dead_code)]

use offpath_apps::kv::{
    ClientLoad, ClientReport, DriveState, Fetch, Placement, Spread, StoreClient, StoreConfig, StoreKey, host,
    roles, soc,
};
use offpath_fabric::local::{Local, LocalClock, LocalFabric};
use offpath_fabric::{Backend, Role};
use offpath_quantity::Time;
use offpath_route::Router;
use offpath_twin::{TwinBackend, TwinFabric};
use offpath_workload::Workload;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Records of the store.
pub const RECORDS: u64 = 2000;
/// Client machines of the testbed.
pub const CLIENTS: u32 = 11;

/// A store without chains and with room for every record in the cache.
pub fn options(placement: Placement) -> StoreConfig {
    let mut options = StoreConfig::of_workload(&gets()).expect("a store can hold it").placed(placement);
    options.layout.root_buckets = 16 * RECORDS;
    options.layout.cache_slots = 1 << 24;
    options.warm = (0..RECORDS).collect();
    options.hot_share = 0;
    options.fetch = Fetch::Engine("dma".into());
    options
}

/// A workload of gets of values of 64 B.
fn workload(distribution: &str) -> Workload {
    let text = format!(
        "recordcount={RECORDS}\nfieldcount=1\nfieldlength=64\nreadproportion=1\nupdateproportion=0\n\
         requestdistribution={distribution}\n"
    );
    Workload::parse(&text, "gets").expect("it is a workload")
}

/// Uniform gets.
pub fn gets() -> Workload {
    workload("uniform")
}

/// YCSB C.
pub fn workload_c() -> Workload {
    workload("zipfian")
}

/// What each client does: `sessions` sessions for `window`, after 300 us.
pub fn load(workload: Workload, sessions: u32, spread: Spread, window: Time) -> ClientLoad {
    let (warm_up, window) = (Time::from_us(300), Some(window));
    ClientLoad { sessions, operations: None, warm_up, window, spread, ..ClientLoad::of_workload(workload) }
}

/// What all clients of the testbed see.
pub fn run(router: &Arc<Router>, options: &StoreConfig, load: &ClientLoad) -> ClientReport {
    let shared = DriveState::new(CLIENTS);
    let count: fn(&TwinFabric) -> u64 = |fabric| fabric.snapshot().events;
    let run = TwinBackend::on(router.clone(), 1).run(roles(options, load, &shared, Some(count)));
    let mut all = ClientReport::default();
    for outcome in run.expect("the run ends").outcomes {
        if let Some(report) = outcome.end.finished() {
            all.add(&report.expect("every role does its work"));
        }
    }
    all
}

/// How long `gets` gets of one session take in one process, the server's work included.
pub fn local_gets(placement: Placement, gets: u64) -> Duration {
    let mut options = options(placement);
    (options.layout.cache_slots, options.fetch) = (1 << 14, Fetch::Rdma);
    let took = Rc::new(Cell::new(Duration::ZERO));
    let (of_host, of_soc, measured) = (options.clone(), options.clone(), took.clone());
    let roles = vec![
        Role::new("host", 0, move |fabric: LocalFabric| {
            let options = of_host.clone();
            async move { host(fabric, options).await.expect("it serves") }
        })
        .in_background(),
        Role::new("soc", 0, move |fabric: LocalFabric| {
            let options = of_soc.clone();
            async move { soc(fabric, options).await.expect("it serves") }
        })
        .in_background(),
        Role::new("client", 0, move |fabric: LocalFabric| {
            let (options, took) = (options.clone(), measured.clone());
            async move {
                let mut client = StoreClient::connect(&fabric, &options).await.expect("it connects");
                let began = Instant::now();
                for number in 0..gets {
                    let key = StoreKey::from_number(number * 797 % RECORDS);
                    assert!(client.get(key).await.expect("it answers").is_some());
                }
                took.set(began.elapsed());
            }
        }),
    ];
    Local::new(1).clock(LocalClock::Manual).run(roles).expect("the run ends");
    took.get()
}
