//! Random crashes and cuts between a master, a relay and its replicas, under load. After each round
//! every replica is what the master is, and a full synchronisation happened only where no partial one
//! was possible.
//!
//! `OFFPATH_CHAOS_ROUNDS=200 cargo test -p offpath-redis --test chaos` runs more rounds,
//! `OFFPATH_CHAOS_SEED` replays others.

mod servers;

use offpath_redis::client::RedisClient;
use servers::{Draws, Proxy, Relay, SILENCE, Server, assert_same, redis, settle, wait_for, write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

fn number(variable: &str, default: u64) -> u64 {
    match std::env::var(variable) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{variable} = {text} is not a number")),
        Err(_) => default,
    }
}

/// Writes until it is told to stop, through crashes of the server.
fn keep_writing(address: String, seed: u64, stop: Arc<AtomicBool>, written: Arc<AtomicU64>) {
    let mut draws = Draws(seed);
    while !stop.load(Ordering::SeqCst) {
        let Ok(mut client) = RedisClient::connect(&address, SILENCE) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !stop.load(Ordering::SeqCst) && write(&mut client, &mut draws).is_ok() {
            written.fetch_add(1, Ordering::SeqCst);
            thread::sleep(Duration::from_micros(draws.below(400)));
        }
    }
}

#[test]
fn every_replica_agrees_after_crashes_and_cuts() {
    let Some(program) = redis() else { return };
    let rounds = number("OFFPATH_CHAOS_ROUNDS", 6);
    let seed = number("OFFPATH_CHAOS_SEED", 1);
    let mut draws = Draws(seed);
    let mut master = Server::start(&program, &["--appendonly", "yes", "--repl-backlog-size", "16mb"]);
    write_some(&master, seed);
    let upper = Proxy::to(&master.address());
    let mut relay = Relay::start(&upper.address(), "[limits]\nbacklog = '16MiB'\n");
    let lower: Vec<Proxy> = (0..3).map(|_| Proxy::to(&relay.address())).collect();
    let mut replicas: Vec<Server> = lower
        .iter()
        .map(|link| {
            // As an operator would configure it, so that a replica that was killed comes back as one.
            Server::start(&program, &["--replicaof", &format!("127.0.0.1 {}", link.port)])
        })
        .collect();
    settle(&master, &replicas.iter().collect::<Vec<_>>());
    // The relay's file has the position by then.
    thread::sleep(Duration::from_millis(1_200));

    let mut actions = std::collections::BTreeMap::<&str, u64>::new();
    for round in 0..rounds {
        let stop = Arc::new(AtomicBool::new(false));
        let written = Arc::new(AtomicU64::new(0));
        let writer = {
            let (address, stop, written) = (master.address(), stop.clone(), written.clone());
            let seed = draws.next();
            thread::spawn(move || keep_writing(address, seed, stop, written))
        };
        // On a starved machine the first write takes its time, and a round without any tests nothing.
        wait_for("the first write of a round", SILENCE, || written.load(Ordering::SeqCst) > 0);
        thread::sleep(Duration::from_millis(50 + draws.below(150)));
        let full_before = master.number("stats", "sync_full");
        let files = |replicas: &[Server]| -> usize {
            replicas.iter().map(|replica| replica.log().matches("Full resync from master").count()).sum()
        };
        let files_before = files(&replicas);
        let mut partial_is_possible = true;
        let one = draws.below(3) as usize;
        let action = match draws.below(8) {
            0 => {
                master.restart();
                partial_is_possible = false;
                "kill the master"
            }
            1 | 2 => {
                relay.restart();
                "kill the relay"
            }
            3 => {
                replicas[one].restart();
                partial_is_possible = false;
                "kill a replica"
            }
            4 => {
                upper.cut();
                "cut the master's link"
            }
            5 => {
                lower[one].cut();
                "cut a replica's link"
            }
            6 => {
                for link in lower.iter().chain([&upper]) {
                    link.cut();
                    thread::sleep(Duration::from_millis(draws.below(30)));
                }
                "cut every link"
            }
            _ => {
                upper.slow(1 + draws.below(200));
                lower[one].stall(true);
                thread::sleep(Duration::from_millis(300));
                upper.cut();
                upper.slow(0);
                lower[one].stall(false);
                "slow the master's link, stall a replica's, cut"
            }
        };
        *actions.entry(action).or_default() += 1;
        thread::sleep(Duration::from_millis(100 + draws.below(300)));
        stop.store(true, Ordering::SeqCst);
        writer.join().expect("the writer ends");
        println!("seed {seed}, round {round}: {action}, {} writes", written.load(Ordering::SeqCst));
        assert_same(&master, &replicas.iter().collect::<Vec<_>>());
        if partial_is_possible {
            let full = master.number("stats", "sync_full") - full_before;
            assert_eq!(full, 0, "the master sent a file; seed {seed}, round {round}, {action}");
            assert_eq!(
                files(&replicas),
                files_before,
                "a replica got a file; seed {seed}, round {round}, {action}"
            );
        }
    }
    println!("{rounds} rounds of seed {seed}: {actions:?}");
}

fn write_some(master: &Server, seed: u64) {
    let mut client = master.client();
    let mut draws = Draws(seed);
    for _ in 0..500 {
        write(&mut client, &mut draws).expect("the write is taken");
    }
}
