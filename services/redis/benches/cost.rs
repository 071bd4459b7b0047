//! What replication costs the master and the relay, on real servers:
//! `cargo bench -p offpath-redis --bench cost -- ROUNDS SETS CLIENTS`.
//!
//! Each round starts a master with 1, 3 and 5 replicas, directly and behind a relay, and loads it with
//! `redis-benchmark` SETs of 64 B. Processor time is that of all threads as the kernel accounts it.
//! Medians are printed, with every round behind them.

#[path = "../tests/servers/mod.rs"]
mod servers;

use servers::{Relay, Server, processor_seconds, redis, settle, tool};
use std::path::Path;
use std::process::Command;

/// Seconds of processor time for 100,000 SETs.
struct Cost {
    master: f64,
    relay: f64,
}

fn load(benchmark: &Path, port: u16, sets: u64, clients: u64) {
    let (port, sets, clients) = (port.to_string(), sets.to_string(), clients.to_string());
    let output = Command::new(benchmark)
        .args(["-p", &port, "-t", "set", "-d", "64", "-q", "-n", &sets, "-c", &clients])
        .output()
        .expect("redis-benchmark runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn measure(server: &Path, benchmark: &Path, replicas: usize, relayed: bool, sets: u64, clients: u64) -> Cost {
    let master = Server::start(server, &[]);
    let relay = relayed.then(|| Relay::start(&master.address(), ""));
    let from = relay.as_ref().map_or_else(|| master.address(), Relay::address);
    let replicas: Vec<Server> = (0..replicas).map(|_| Server::start(server, &[])).collect();
    for replica in &replicas {
        replica.follow(&from);
    }
    let all: Vec<&Server> = replicas.iter().collect();
    settle(&master, &all);
    load(benchmark, master.port, 10_000, clients);
    settle(&master, &all);
    let of_relay = || relay.as_ref().map_or(0.0, |relay| processor_seconds(relay.pid()));
    let before = (master.processor_seconds(), of_relay());
    load(benchmark, master.port, sets, clients);
    settle(&master, &all);
    let scale = 100_000.0 / sets as f64;
    Cost { master: (master.processor_seconds() - before.0) * scale, relay: (of_relay() - before.1) * scale }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let [rounds, sets, clients] = numbers[..] else {
        println!("usage: cargo bench -p offpath-redis --bench cost -- ROUNDS SETS CLIENTS, as in 5 200000 8");
        return;
    };
    let (Some(server), Some(benchmark)) = (redis(), tool("redis-benchmark", "redis-tools")) else { return };
    let cases = [(1, false), (3, false), (5, false), (1, true), (3, true), (5, true)];
    let mut costs: Vec<Vec<Cost>> = cases.iter().map(|_| Vec::new()).collect();
    for round in 0..rounds {
        // In turn, so that a slow minute of the machine meets every case, and each round begins with another, so that what
        // the machine does with time meets all alike.
        for index in 0..cases.len() {
            let index = (index + round as usize) % cases.len();
            let (replicas, relayed) = cases[index];
            costs[index].push(measure(&server, &benchmark, replicas, relayed, sets, clients));
        }
    }
    println!("processor seconds for 100,000 SETs of 64 B, {clients} clients, median of {rounds}");
    println!("replicas  way      master  against one  relay  relay/replica  rounds of master");
    let floor = median(costs[0].iter().map(|cost| cost.master).collect());
    for (cost, (replicas, relayed)) in costs.iter().zip(cases) {
        let master = median(cost.iter().map(|cost| cost.master).collect());
        let relay = median(cost.iter().map(|cost| cost.relay).collect());
        let rounds: Vec<String> = cost.iter().map(|cost| format!("{:.2}", cost.master)).collect();
        println!(
            "{replicas:>8}  {:<7}  {master:>6.3}  {:>11.3}  {relay:>5.3}  {:>13.3}  {}",
            if relayed { "relayed" } else { "direct" },
            master / floor,
            relay / replicas as f64,
            rounds.join(" ")
        );
    }
}
