//! Why a master costs what it costs: how often it writes to its replicas, and what is gained and lost by how a relay
//! reads: `cargo bench -p offpath-redis --bench deliveries -- [--apart] ROUNDS SETS CLIENTS REPLICAS WAY...`.
//!
//! A WAY is `none` (no replica), `direct=COUNT` (as many replicas of its own), `hop` or `hop poll` (a second hop that only
//! reads and writes, with REPLICAS behind it; one that polls never sleeps), `chain` (a replica of Redis itself that REPLICAS
//! others follow, whose time stands under `relay`), `chain gathers` (the same with `repl-disable-tcp-nodelay yes` at the master,
//! whose kernel then gathers up to 40 ms), or keys of the relay's table `limits`, as
//! `gather='1ms'`; an empty one is the relay as it is shipped, with REPLICAS behind it. With `urgent` before it, hop or relay
//! run before all other processes. All ways take turns within a round. While `redis-benchmark` writes SETs of 64 B, messages
//! are published and awaited at a replica, one at a time: their times are the lag. With `--apart` the master has a core
//! of its own and all else shares the others, so that nothing but the number of its writes differs between the ways.

#[path = "deliveries/hop.rs"]
mod hop;
#[path = "../tests/servers/mod.rs"]
mod servers;

use hop::Hop;
use servers::{Draws, Relay, SILENCE, Server, processor_seconds, redis, settle, tool};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What one round of a way gave.
struct Round {
    /// Processor seconds of the master for 100,000 SETs.
    master: f64,
    /// The same of the relay.
    relay: f64,
    /// Writes of the master to one replica for each SET.
    deliveries: f64,
    /// SETs a second.
    rate: f64,
    /// Times from publishing to arrival, sorted, in microseconds.
    lags: Vec<f64>,
}

/// All cores but the first.
fn others() -> String {
    let last = thread::available_parallelism().expect("a number of cores").get() - 1;
    assert!(last > 0, "`--apart` needs two cores");
    format!("1-{last}")
}

fn run(program: &str, arguments: &[&str]) {
    let output = Command::new(program).args(arguments).output().expect("the program runs");
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Publishes messages at the master and awaits each at a replica, until it is told to stop.
fn probe(master: String, replica: String, stop: Arc<AtomicBool>) -> Vec<f64> {
    let connect = |address: &str| {
        let stream = TcpStream::connect(address).expect("the server answers");
        stream.set_nodelay(true).expect("a connection");
        stream.set_read_timeout(Some(SILENCE)).expect("a connection");
        BufReader::new(stream)
    };
    let (mut near, mut far) = (connect(&master), connect(&replica));
    far.get_mut().write_all(b"SUBSCRIBE lag\r\n").expect("it is sent");
    let mut line = String::new();
    let mut read_lines = |stream: &mut BufReader<TcpStream>, count: usize| {
        for _ in 0..count {
            line.clear();
            assert!(stream.read_line(&mut line).expect("a line") > 0, "the server closed");
        }
    };
    read_lines(&mut far, 6);
    let mut draws = Draws(1);
    let mut lags = Vec::new();
    while !stop.load(Ordering::SeqCst) {
        let began = Instant::now();
        near.get_mut().write_all(b"PUBLISH lag x\r\n").expect("it is sent");
        // The message is an array of three, each with its length.
        read_lines(&mut far, 7);
        lags.push(began.elapsed().as_secs_f64() * 1e6);
        read_lines(&mut near, 1);
        // Not in step with whoever gathers.
        thread::sleep(Duration::from_micros(500 + draws.below(1_500)));
    }
    lags
}

struct Bench {
    server: PathBuf,
    benchmark: PathBuf,
    sets: u64,
    clients: u64,
    replicas: usize,
    apart: bool,
}

impl Bench {
    fn load(&self, port: u16, sets: u64) {
        let (port, sets, clients) = (port.to_string(), sets.to_string(), self.clients.to_string());
        let program = self.benchmark.display().to_string();
        let mut words: Vec<&str> = Vec::new();
        let rest = if self.apart { others() } else { String::new() };
        if self.apart {
            words.extend(["-c", &rest, &program]);
        }
        words.extend(["-p", &port, "-t", "set", "-d", "64", "-q", "-n", &sets, "-c", &clients]);
        run(if self.apart { "taskset" } else { &program }, &words);
    }

    fn keep_apart(&self, master: &Server, rest: &[u32]) {
        if self.apart {
            run("taskset", &["-acp", "0", &master.pid().to_string()]);
            for pid in rest {
                run("taskset", &["-acp", &others(), &pid.to_string()]);
            }
        }
    }

    fn round(&self, way: &str) -> Round {
        let master = Server::start(&self.server, &[]);
        let direct = match way.strip_prefix("direct=") {
            Some(count) => Some(count.parse().expect("a number of replicas")),
            None => (way == "none").then_some(0),
        };
        let count = direct.unwrap_or(self.replicas);
        let (is_urgent, way) = way.strip_prefix("urgent").map_or((false, way), |rest| (true, rest.trim()));
        let polls = way == "hop poll";
        let mut hop = (way == "hop" || polls).then(|| Hop::start(&master.address(), count, polls));
        let chain = way.starts_with("chain").then(|| Server::start(&self.server, &[]));
        if way == "chain gathers" {
            master.client().ask(&["CONFIG", "SET", "repl-disable-tcp-nodelay", "yes"]).expect("Redis has it");
        }
        if let Some(chain) = &chain {
            chain.follow(&master.address());
        }
        let is_relayed = direct.is_none() && hop.is_none() && chain.is_none();
        let relay = is_relayed.then(|| Relay::start(&master.address(), &format!("[limits]\n{way}\n")));
        let from = match (&relay, &hop) {
            (Some(relay), _) => relay.address(),
            (None, Some(hop)) => format!("127.0.0.1:{}", hop.port),
            (None, None) => chain.as_ref().unwrap_or(&master).address(),
        };
        let replicas: Vec<Server> = (0..count).map(|_| Server::start(&self.server, &[])).collect();
        for replica in &replicas {
            replica.follow(&from);
        }
        let all: Vec<&Server> = replicas.iter().collect();
        let between =
            relay.as_ref().map(Relay::pid).or(hop.as_ref().map(Hop::pid)).or(chain.as_ref().map(Server::pid));
        let rest: Vec<u32> = replicas.iter().map(Server::pid).chain(between).collect();
        settle(&master, &all);
        if let Some(hop) = &mut hop {
            hop.join();
        }
        self.keep_apart(&master, &rest);
        if is_urgent && let Some(pid) = between {
            run("chrt", &["-f", "-a", "-p", "1", &pid.to_string()]);
        }
        self.load(master.port, 10_000);
        settle(&master, &all);
        let of_relay = || between.map_or(0.0, processor_seconds);
        let writes = || master.number("stats", "total_writes_processed");
        let stop = Arc::new(AtomicBool::new(false));
        let prober = replicas.last().map(|replica| {
            let (near, far, stop) = (master.address(), replica.address(), stop.clone());
            thread::spawn(move || probe(near, far, stop))
        });
        let before = (master.processor_seconds(), of_relay(), writes());
        let began = Instant::now();
        self.load(master.port, self.sets);
        let took = began.elapsed().as_secs_f64();
        stop.store(true, Ordering::SeqCst);
        let mut lags = prober.map_or_else(Vec::new, |prober| prober.join().expect("the prober ends"));
        let replies = self.sets + lags.len() as u64;
        let written = writes().saturating_sub(before.2 + replies) as f64;
        settle(&master, &all);
        lags.sort_by(f64::total_cmp);
        let links = if between.is_some() { 1 } else { count.max(1) };
        let scale = 100_000.0 / self.sets as f64;
        Round {
            master: (master.processor_seconds() - before.0) * scale,
            relay: (of_relay() - before.1) * scale,
            deliveries: written / self.sets as f64 / links as f64,
            rate: self.sets as f64 / took,
            lags,
        }
    }
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn main() {
    let mut words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if words.first().is_some_and(|word| word == hop::OPTION) {
        return hop::run(&words[1..]);
    }
    let apart = words.iter().any(|word| word == "--apart");
    words.retain(|word| word != "--apart");
    let numbers: Vec<u64> = words.iter().take(4).filter_map(|word| word.parse().ok()).collect();
    let ([rounds, sets, clients, replicas], false) = (&numbers[..], words.len() < 5) else {
        println!(
            "usage: cargo bench -p offpath-redis --bench deliveries -- [--apart] ROUNDS SETS CLIENTS REPLICAS WAY..., as in \
             5 200000 8 3 none direct=1 \"\" \"gather='1ms'\""
        );
        return;
    };
    let (Some(server), Some(benchmark)) = (redis(), tool("redis-benchmark", "redis-tools")) else { return };
    let bench =
        Bench { server, benchmark, sets: *sets, clients: *clients, replicas: *replicas as usize, apart };
    let ways = &words[4..];
    let mut found: Vec<Vec<Round>> = ways.iter().map(|_| Vec::new()).collect();
    for round in 0..*rounds {
        // In turn, so that a slow minute of the machine meets every way, and each round begins with another, so that what
        // the machine does with time meets all alike.
        for index in 0..ways.len() {
            let index = (index + round as usize) % ways.len();
            found[index].push(bench.round(&ways[index]));
        }
    }
    println!(
        "{clients} clients, {replicas} replicas behind the relay, SETs of 64 B, medians of {rounds}{}",
        if apart { ", the master on a core of its own" } else { "" }
    );
    println!(
        "master s/100k  writes/SET  relay s/100k   SETs/s  lag p50  p99 us  way (rounds of master; of lag)"
    );
    for (rounds, way) in found.iter().zip(ways) {
        let at = |round: &Round, part: f64| {
            let index = (round.lags.len() as f64 * part) as usize;
            round.lags.get(index).copied().unwrap_or(f64::NAN)
        };
        let each = |value: &dyn Fn(&Round) -> String| rounds.iter().map(value).collect::<Vec<_>>().join(" ");
        println!(
            "{:>13.3}  {:>10.2}  {:>12.3}  {:>7.0}  {:>7.0}  {:>6.0}  {} ({}; {})",
            median(rounds.iter().map(|round| round.master)),
            median(rounds.iter().map(|round| round.deliveries)),
            median(rounds.iter().map(|round| round.relay)),
            median(rounds.iter().map(|round| round.rate)),
            median(rounds.iter().map(|round| at(round, 0.5))),
            median(rounds.iter().map(|round| at(round, 0.99))),
            if way.is_empty() { "as shipped" } else { way },
            each(&|round| format!("{:.2}", round.master)),
            each(&|round| format!("{:.0}", at(round, 0.5))),
        );
    }
}
