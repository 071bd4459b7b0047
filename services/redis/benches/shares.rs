//! Whether planned shares are the best ones, on two real servers of unlike strength:
//! `cargo bench -p offpath-redis --bench shares -- ROUNDS HOST_PERCENT CARD_PERCENT`.
//!
//! Each server may run for its percentage of every 10 ms and is stopped for the rest (SIGSTOP), so a
//! machine of two cores has two servers of known ratio and processor time left for the load. The plan
//! measures them as `offpath shard plan --measure` does. Then the host's share goes from 40% to 95% in
//! steps of 2.5%, up in one round and down in the next, and SETs of 64 B on evenly spread keys are
//! timed at each. Medians are printed, with every round behind them.

#[path = "../tests/servers/mod.rs"]
mod servers;

use offpath_redis::resp::Value;
use offpath_redis::shard::apply::apply;
use offpath_redis::shard::bitmap::{Bitmap, Side};
use offpath_redis::shard::client::RedisAccess;
use offpath_redis::shard::measure;
use offpath_redis::shard::plan::SlotPlan;
use rustix::process::{Pid, Signal, kill_process};
use servers::{Server, redis};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

const PERIOD: Duration = Duration::from_millis(10);
/// How long each share is timed.
const TIME: Duration = Duration::from_millis(1_500);
const WORKERS: u64 = 4;
/// Requests that a worker has in flight: many periods' worth, so that stops do not show.
const BATCH: u64 = 4_096;
const KEYS: u64 = 4_000;

/// Lets a process run for `share` of each period until `ended`.
fn hold_back(pid: u32, share: f64, ended: &AtomicBool) {
    let pid = Pid::from_raw(pid as i32).expect("a process id");
    let tell = |signal| kill_process(pid, signal).expect("the server runs");
    let mut begins = Instant::now();
    while !ended.load(Ordering::SeqCst) {
        tell(Signal::CONT);
        thread::sleep((begins + PERIOD.mul_f64(share)).saturating_duration_since(Instant::now()));
        tell(Signal::STOP);
        begins += PERIOD;
        thread::sleep(begins.saturating_duration_since(Instant::now()));
    }
    tell(Signal::CONT);
}

fn plan(servers: [&Server; 2], rates: [f64; 2]) -> SlotPlan {
    let names = ["host", "card"];
    let endpoint = |index: usize| (names[index].to_string(), servers[index].address(), rates[index]);
    SlotPlan::new(&[endpoint(0), endpoint(1)]).expect("a plan")
}

/// Requests per second that both carry together with the slots as they are.
fn throughput(servers: [&Server; 2], round: u64) -> f64 {
    let map = Bitmap::read(&mut servers[0].client(), &servers[0].address()).expect("a map");
    let keys: Vec<String> = (0..KEYS).map(|number| format!("key:{number}")).collect();
    let sides: Vec<usize> =
        keys.iter().map(|key| usize::from(map.side(key.as_bytes()) == Side::Card)).collect();
    let count = AtomicU64::new(0);
    let began = Instant::now();
    thread::scope(|scope| {
        for worker in 0..WORKERS {
            let (keys, sides, count) = (&keys, &sides, &count);
            scope.spawn(move || {
                let mut clients = servers.map(Server::client);
                let mut draws = servers::Draws(round * WORKERS + worker);
                while began.elapsed() < TIME {
                    let mut requests: [Vec<Vec<&[u8]>>; 2] = Default::default();
                    for _ in 0..BATCH {
                        let index = draws.below(KEYS) as usize;
                        requests[sides[index]].push(vec![b"SET", keys[index].as_bytes(), &[b'v'; 64]]);
                    }
                    for (client, requests) in clients.iter_mut().zip(&requests) {
                        client.send(requests).expect("the server takes requests");
                    }
                    for (client, requests) in clients.iter_mut().zip(&requests) {
                        for _ in requests {
                            let reply = client.receive().expect("the server answers");
                            assert!(!matches!(reply, Value::Error(_)), "{reply:?}");
                        }
                    }
                    count.fetch_add(BATCH, Ordering::Relaxed);
                }
            });
        }
    });
    count.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64()
}

fn main() {
    let numbers: Vec<u64> = std::env::args().filter_map(|argument| argument.parse().ok()).collect();
    let [rounds @ 1..=1_000, host @ 1..=100, card @ 1..=100] = numbers[..] else {
        println!(
            "usage: cargo bench -p offpath-redis --bench shares -- ROUNDS HOST_PERCENT CARD_PERCENT, as in 3 30 12"
        );
        return;
    };
    let Some(program) = redis() else { return };
    let start = || Server::start(&program, &["--cluster-enabled", "yes", "--cluster-node-timeout", "15000"]);
    let all = [start(), start()];
    let servers = [&all[0], &all[1]];
    let access = RedisAccess::default();
    let change = |plan: &SlotPlan| apply(plan, &access, false, &mut |_, _| {}).expect("the slots move");
    change(&plan(servers, [1.0, 1.0]));
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        for (server, percent) in servers.into_iter().zip([host, card]) {
            let ended = &ended;
            scope.spawn(move || hold_back(server.pid(), percent as f64 / 100.0, ended));
        }
        let mut planned = Vec::new();
        let mut best = Vec::new();
        let shares: Vec<f64> = (0..=22).map(|step| 40.0 + 2.5 * f64::from(step)).collect();
        let mut found: Vec<Vec<f64>> = shares.iter().map(|_| Vec::new()).collect();
        for round in 0..rounds {
            let rates = servers.map(|server| {
                let measured = measure::load(&server.address(), &access, 2 * TIME).expect("a rate");
                measured.requests_per_second
            });
            let share = 100.0 * f64::from(plan(servers, rates).endpoint[0].slots) / 16_384.0;
            println!(
                "round {round}: host {:.0}/s, card {:.0}/s, planned share {share:.1}%",
                rates[0], rates[1]
            );
            planned.push(share);
            let mut order: Vec<usize> = (0..shares.len()).collect();
            if round % 2 == 1 {
                order.reverse();
            }
            for index in order {
                change(&plan(servers, [shares[index], 100.0 - shares[index]]));
                found[index].push(throughput(servers, round));
            }
            let most = (0..shares.len())
                .max_by(|a, b| found[*a][round as usize].total_cmp(&found[*b][round as usize]));
            best.push(shares[most.expect("shares")]);
        }
        ended.store(true, Ordering::SeqCst);
        println!("host's share  requests/s, median  rounds");
        let mut top = (0.0, 0.0);
        for (share, rates) in shares.iter().zip(&found) {
            let middle = median(rates.clone());
            if middle > top.1 {
                top = (*share, middle);
            }
            let rounds: Vec<String> = rates.iter().map(|rate| format!("{rate:.0}")).collect();
            println!("{share:>11.1}%  {middle:>18.0}  {}", rounds.join(" "));
        }
        println!("best by round: {best:?}");
        println!("planned {:.1}%, best {:.1}%, median of {rounds}", median(planned), top.0);
    });
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
