//! Random crashes and cuts between a master, a relay and its replicas, under load. After each round
//! every replica is what the master is, and a full synchronisation happened only where no partial one
//! was possible.
//!
//! `OFFPATH_CHAOS_ROUNDS=200 cargo test --release -p offpath-redis --test chaos` runs more rounds,
//! `OFFPATH_CHAOS_SEED` replays others.

mod servers;

use offpath_redis::client::{ClientError, RedisClient};
use servers::{Draws, Proxy, Relay, SILENCE, Server, assert_same, redis, settle, wait_for, write};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
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

/// Every action once, in an order that is drawn.
fn shuffled(actions: usize, draws: &mut Draws) -> Vec<usize> {
    let mut order: Vec<usize> = (0..actions).collect();
    for index in (1..actions).rev() {
        order.swap(index, draws.below(index as u64 + 1) as usize);
    }
    order
}

#[test]
fn every_replica_agrees_after_crashes_and_cuts() {
    let Some(program) = redis() else { return };
    const ACTIONS: usize = 8;
    let rounds = number("OFFPATH_CHAOS_ROUNDS", ACTIONS as u64);
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

    let mut actions = BTreeMap::<&str, u64>::new();
    let mut order: Vec<usize> = Vec::new();
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
        if order.is_empty() {
            order = shuffled(ACTIONS, &mut draws);
        }
        let action = match order.pop().expect("it was filled") {
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

/// What writers have seen.
#[derive(Default)]
struct Seen {
    /// Keys that the master answered `OK` for.
    taken: BTreeSet<String>,
    /// Those of which WAIT said that the relay has them at its quorum, which is every replica here.
    confirmed: BTreeSet<String>,
    /// Writes that the master refused for want of a replica.
    refused: u64,
}

/// Writes keys of its own to whoever is the master, each followed by WAIT, until it is told to stop.
fn write_and_wait(
    number: usize,
    master: Arc<Mutex<String>>,
    seen: Arc<Mutex<Seen>>,
    next: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
) {
    while !stop.load(Ordering::SeqCst) {
        let address = master.lock().unwrap().clone();
        let Ok(mut client) = RedisClient::connect(&address, SILENCE) else {
            thread::sleep(Duration::from_millis(20));
            continue;
        };
        while !stop.load(Ordering::SeqCst) {
            let key = format!("w{number}:{}", next.fetch_add(1, Ordering::SeqCst));
            match client.ask(&["SET", &key, &key.repeat(3)]) {
                Ok(_) => drop(seen.lock().unwrap().taken.insert(key.clone())),
                Err(ClientError::Refused { reply, .. }) if reply.starts_with("NOREPLICAS") => {
                    seen.lock().unwrap().refused += 1;
                    thread::sleep(Duration::from_millis(5));
                    continue;
                }
                Err(_) => break,
            }
            match client.number(&["WAIT", "1", "200"]) {
                Ok(1) => drop(seen.lock().unwrap().confirmed.insert(key)),
                Ok(_) => {}
                Err(_) => break,
            }
        }
        thread::sleep(Duration::from_millis(5));
    }
}

/// Seconds after which a master knows that its quorum is gone: `min-replicas-max-lag`, the second by which a quorum of two
/// may be late, the master's own look once a second, and one for a busy machine.
const KNOWN: Duration = Duration::from_secs(5);

/// A master with `min-replicas-to-write 1`, a relay whose quorum is both of its replicas, and what happens to them.
struct Scene {
    program: PathBuf,
    master: Server,
    upper: Proxy,
    relay: Relay,
    lower: [Proxy; 2],
    replicas: [Server; 2],
    /// Where writers go.
    written_to: Arc<Mutex<String>>,
    seen: Arc<Mutex<Seen>>,
    /// Whether REPLICAOF has led the relay away from what its configuration names.
    told: bool,
}

/// What a master takes has to be its own after kill -9, so that what is missing later was lost by others: while its disk is
/// busy, `everysec` answers before it writes.
const STRICT: [&str; 10] = [
    "--min-replicas-to-write",
    "1",
    "--min-replicas-max-lag",
    "2",
    "--appendonly",
    "yes",
    "--appendfsync",
    "always",
    "--repl-backlog-size",
    "16mb",
];

impl Scene {
    fn new(program: &Path) -> Scene {
        let master = Server::start(program, &STRICT);
        let upper = Proxy::to(&master.address());
        let relay =
            Relay::start(&upper.address(), "[limits]\nbacklog = '16MiB'\n[acknowledge]\nreplicas = 2\n");
        let lower = [Proxy::to(&relay.address()), Proxy::to(&relay.address())];
        let replicas = [Server::start(program, &STRICT), Server::start(program, &STRICT)];
        for (replica, link) in replicas.iter().zip(&lower) {
            replica.follow(&link.address());
        }
        let written_to = Arc::new(Mutex::new(master.address()));
        let seen = Arc::default();
        Scene {
            program: program.into(),
            master,
            upper,
            relay,
            lower,
            replicas,
            written_to,
            seen,
            told: false,
        }
    }

    fn try_write(&self) -> Result<(), ClientError> {
        RedisClient::connect(&self.master.address(), SILENCE)?.ask(&["SET", "tried", "1"]).map(drop)
    }

    /// Waits until the master has to know that its quorum is gone, and sees that it takes no write from there on.
    fn refuses_writes(&self) {
        thread::sleep(KNOWN);
        let taken = self.seen.lock().unwrap().taken.len();
        for _ in 0..5 {
            let refused = self.try_write().expect_err("a write without a quorum").to_string();
            assert!(refused.contains("NOREPLICAS"), "{refused}");
            thread::sleep(Duration::from_millis(100));
        }
        assert_eq!(self.seen.lock().unwrap().taken.len(), taken, "writes were taken without a quorum");
    }

    /// Sees that a server has every key of a set.
    fn holds(server: &Server, keys: &BTreeSet<String>, what: &str) {
        let mut client = server.client();
        for key in keys {
            let found = client.ask(&["GET", key]).expect("GET is answered");
            assert_eq!(found.text(), Some(key.repeat(3)), "{key} ({what}) at {}", server.address());
        }
    }

    /// Kills the master for good, promotes a replica, and leads the relay to it; a new server takes the replica's place.
    /// Where the relay is lost too, what it alone had by then is gone: that of a replica which stood still meanwhile.
    fn fail_over(&mut self, one: usize, by_replicaof: bool, with_relay: bool) {
        if with_relay {
            self.replicas[one].signal("-STOP");
            thread::sleep(Duration::from_millis(500));
            self.relay.kill();
        }
        self.master.kill();
        if with_relay {
            self.replicas[one].signal("-CONT");
        }
        // What the master confirmed before its end was read by writers by then.
        thread::sleep(Duration::from_millis(100));
        let confirmed = self.seen.lock().unwrap().confirmed.clone();
        for replica in &self.replicas {
            Scene::holds(replica, &confirmed, "confirmed before the fail-over");
        }
        let new = Server::start(&self.program, &STRICT);
        let promoted = std::mem::replace(&mut self.replicas[one], new);
        promoted.client().ask(&["REPLICAOF", "NO", "ONE"]).expect("it is promoted");
        self.master = promoted;
        if with_relay {
            self.relay.restart();
        }
        {
            // Only what was confirmed has to have survived.
            let mut seen = self.seen.lock().unwrap();
            seen.taken = confirmed;
        }
        if by_replicaof {
            self.upper = Proxy::to(&self.master.address());
            self.relay
                .client()
                .ask(&["REPLICAOF", "127.0.0.1", &self.upper.port.to_string()])
                .expect("it is remembered");
            self.told = true;
        } else {
            self.upper.lead_to(&self.master.address());
            self.upper.cut();
        }
        self.replicas[one].follow(&self.lower[one].address());
        *self.written_to.lock().unwrap() = self.master.address();
    }

    fn restart_replica(&mut self, one: usize) {
        self.replicas[one].restart();
        self.replicas[one].follow(&self.lower[one].address());
    }

    fn act(&mut self, action: usize, draws: &mut Draws) -> &'static str {
        let one = draws.below(2) as usize;
        match action {
            0 => {
                self.master.restart();
                "kill the master"
            }
            1 => {
                self.relay.restart();
                "kill the relay"
            }
            2 => {
                self.restart_replica(one);
                "kill a replica"
            }
            3 => {
                self.replicas[one].signal("-STOP");
                self.refuses_writes();
                self.replicas[one].signal("-CONT");
                "stop a replica"
            }
            4 => {
                self.relay.signal("-STOP");
                self.refuses_writes();
                self.relay.signal("-CONT");
                "stop the relay"
            }
            5 => {
                for link in self.lower.iter().chain([&self.upper]) {
                    link.cut();
                    thread::sleep(Duration::from_millis(draws.below(30)));
                }
                "cut every link"
            }
            6 => {
                self.lower[one].refuse(true);
                self.lower[one].cut();
                self.refuses_writes();
                self.lower[one].refuse(false);
                "keep a replica away"
            }
            7 => {
                // 8 KiB of a file, which 64 KiB of noise do not fit into.
                let noise: String = (0..4_096).map(|_| format!("{:016x}", draws.next())).collect();
                self.master.client().ask(&["SET", "noise", &noise]).expect("the write is taken");
                self.relay.restart_with_little_room(16);
                self.replicas[one].kill();
                self.refuses_writes();
                self.restart_replica(one);
                self.refuses_writes();
                assert!(self.relay.log().contains("cannot keep the master's file"), "{}", self.relay.log());
                self.relay.restart();
                "a full disk of the relay"
            }
            8 => {
                let by_replicaof = self.told || draws.below(2) == 0;
                self.fail_over(one, by_replicaof, false);
                "a fail-over"
            }
            9 => {
                let by_replicaof = self.told || draws.below(2) == 0;
                self.fail_over(one, by_replicaof, true);
                "a fail-over without the relay, of a replica that stood still"
            }
            _ => {
                let state = self.relay.folder.path().join("state");
                let stale = fs::read(&state).expect("a state");
                thread::sleep(Duration::from_millis(1_500));
                self.relay.kill();
                fs::write(&state, stale).expect("the state is written");
                self.relay.restart();
                "restart the relay with a stale state"
            }
        }
    }
}

/// With `min-replicas-to-write 1` at the master and both replicas in the relay's quorum: what WAIT confirms is on both, also
/// when the master is lost the next moment, what the master took is on both in the end, and it takes nothing while one
/// of them is gone.
#[test]
fn what_is_confirmed_survives_and_nothing_is_taken_without_a_quorum() {
    const ACTIONS: usize = 11;
    let Some(program) = redis() else { return };
    let rounds = number("OFFPATH_CHAOS_ROUNDS", ACTIONS as u64);
    let seed = number("OFFPATH_CHAOS_SEED", 1);
    let mut draws = Draws(seed);
    let mut scene = Scene::new(&program);
    let next = Arc::new(AtomicU64::new(0));
    let mut order: Vec<usize> = Vec::new();
    let mut actions = BTreeMap::<&str, u64>::new();
    let (mut taken, mut confirmed, mut refused) = (0, 0, 0);
    for round in 0..rounds {
        if order.is_empty() {
            // Each happens once in so many rounds, in another order each time.
            order = shuffled(ACTIONS, &mut draws);
        }
        wait_for("the first write of a round", Duration::from_secs(60), || scene.try_write().is_ok());
        scene.master.client().ask(&["FLUSHALL"]).expect("FLUSHALL is taken");
        *scene.seen.lock().unwrap() = Seen::default();
        let stop = Arc::new(AtomicBool::new(false));
        let writers: Vec<_> = (0..2)
            .map(|number| {
                let (master, seen) = (scene.written_to.clone(), scene.seen.clone());
                let (next, stop) = (next.clone(), stop.clone());
                thread::spawn(move || write_and_wait(number, master, seen, next, stop))
            })
            .collect();
        wait_for("a confirmed write", SILENCE, || !scene.seen.lock().unwrap().confirmed.is_empty());
        thread::sleep(Duration::from_millis(50 + draws.below(150)));
        let action = scene.act(order.pop().expect("it was filled"), &mut draws);
        println!("seed {seed}, round {round}: {action}");
        *actions.entry(action).or_default() += 1;
        // Writes are taken again by themselves.
        let before = scene.seen.lock().unwrap().confirmed.len();
        wait_for(&format!("writes after {action}"), Duration::from_secs(60), || {
            scene.seen.lock().unwrap().confirmed.len() > before
        });
        stop.store(true, Ordering::SeqCst);
        for writer in writers {
            writer.join().expect("the writer ends");
        }
        assert_same(&scene.master, &scene.replicas.iter().collect::<Vec<_>>());
        let seen = scene.seen.lock().unwrap();
        for server in scene.replicas.iter().chain([&scene.master]) {
            Scene::holds(server, &seen.taken, action);
            Scene::holds(server, &seen.confirmed, action);
        }
        println!(
            "seed {seed}, round {round}: {action}; {} taken, {} confirmed, {} refused",
            seen.taken.len(),
            seen.confirmed.len(),
            seen.refused
        );
        taken += seen.taken.len();
        confirmed += seen.confirmed.len();
        refused += seen.refused;
    }
    println!(
        "{rounds} rounds of seed {seed}: {taken} taken, {confirmed} confirmed, {refused} refused; {actions:?}"
    );
}
