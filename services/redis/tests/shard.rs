//! Real clusters: made, changed under load, and measured. Six servers on loopback.

mod servers;

use offpath_redis::resp::Value;
use offpath_redis::shard::ShardError;
use offpath_redis::shard::apply::{Done, apply, apply_through_stalls};
use offpath_redis::shard::bitmap::{Bitmap, Side};
use offpath_redis::shard::client::{ClusterClient, RedisAccess};
use offpath_redis::shard::measure;
use offpath_redis::shard::plan::SlotPlan;
use offpath_redis::shard::slots::slot;
use offpath_redis::shard::topology;
use servers::{Server, redis, valkey};
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

fn servers(program: &Path, count: usize) -> Vec<Server> {
    (0..count)
        .map(|_| Server::start(program, &["--cluster-enabled", "yes", "--cluster-node-timeout", "2000"]))
        .collect()
}

fn plan(servers: &[&Server], capacities: &[f64]) -> SlotPlan {
    let endpoints: Vec<(String, String, f64)> = servers
        .iter()
        .zip(capacities)
        .enumerate()
        .map(|(index, (server, capacity))| (format!("n{index}"), server.address(), *capacity))
        .collect();
    SlotPlan::new(&endpoints).expect("a plan")
}

fn carry_out(plan: &SlotPlan) -> Result<Done, ShardError> {
    apply(plan, &RedisAccess::default(), false, &mut |_, _| {})
}

fn slots_of(server: &Server) -> u16 {
    let nodes = topology::nodes(&mut server.client()).expect("a description");
    nodes.iter().find(|node| node.myself).expect("itself").slots.len()
}

/// Writes numbered keys and reads them back until it is told to stop; the answer is what every key has
/// to hold, the redirections, and what failed.
fn work(seed: String, worker: u32, stop: Arc<AtomicBool>) -> (BTreeMap<String, String>, u64, Vec<String>) {
    let mut client = ClusterClient::connect(&seed, RedisAccess::default()).expect("a cluster");
    let (mut expected, mut failures) = (BTreeMap::new(), Vec::new());
    let mut round = 0;
    while !stop.load(Ordering::SeqCst) {
        for index in 0..400u32 {
            let (key, value) = (format!("w{worker}:{index}"), format!("{round}"));
            match client.ask(key.as_bytes(), &[b"SET", key.as_bytes(), value.as_bytes()]) {
                Ok(_) => drop(expected.insert(key.clone(), value)),
                Err(error) => failures.push(error.to_string()),
            }
            let wanted = expected.get(&key).map(|value| Value::Bulk(value.clone().into_bytes()));
            match client.ask(key.as_bytes(), &[b"GET", key.as_bytes()]) {
                Ok(found) if Some(&found) == wanted.as_ref() => {}
                Ok(found) => failures.push(format!("{key} holds {found:?} instead of {wanted:?}")),
                Err(error) => failures.push(error.to_string()),
            }
        }
        round += 1;
    }
    (expected, client.redirected, failures)
}

#[test]
fn ten_migrations_under_load_lose_nothing() {
    let Some(program) = redis() else { return };
    let servers = servers(&program, 6);
    let all: Vec<&Server> = servers.iter().collect();
    let done = carry_out(&plan(&all[..2], &[2.0, 1.0])).unwrap();
    assert!(done.created);
    assert_eq!((slots_of(&servers[0]), slots_of(&servers[1])), (10_923, 5_461));

    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..3)
        .map(|worker| {
            let (seed, stop) = (servers[0].address(), stop.clone());
            thread::spawn(move || work(seed, worker, stop))
        })
        .collect();
    let mut moved = 0;
    // Shares change, endpoints join, one after another leaves, and all come back.
    for (index, capacities) in [
        vec![1.1, 1.0],
        vec![1.1, 1.0, 0.1],
        vec![1.1, 1.0, 0.1, 0.1],
        vec![1.1, 1.0, 0.1, 0.1, 0.1],
        vec![1.1, 1.0, 0.1, 0.1, 0.1, 0.1],
        vec![1.1, 1.0, 0.1, 0.1, 0.1, 0.0],
        vec![1.1, 1.0, 0.1, 0.1, 0.0, 0.1],
        vec![1.0, 1.0, 0.1, 0.1, 0.0, 0.1],
        vec![1.0, 1.0, 0.1, 0.1, 0.2, 0.1],
        vec![1.0, 1.0, 0.2, 0.2, 0.2, 0.2],
    ]
    .into_iter()
    .enumerate()
    {
        let plan = plan(&all[..capacities.len()], &capacities);
        for (server, endpoint) in servers.iter().zip(&plan.endpoint) {
            // Who gave its last slot became a replica, and comes back as an empty master.
            if endpoint.slots > 0 && server.info("replication", "role") == "slave" {
                server.client().ask(&["CLUSTER", "RESET", "SOFT"]).unwrap();
            }
        }
        let began = Instant::now();
        let done = carry_out(&plan).unwrap_or_else(|error| panic!("migration {index}: {error}"));
        println!("migration {index}: {done:?} in {:?}", began.elapsed());
        assert!(done.moved_slots > 0, "migration {index} moved nothing");
        moved += done.moved_slots;
        for (server, endpoint) in servers.iter().zip(&plan.endpoint) {
            assert_eq!(slots_of(server), endpoint.slots, "migration {index}, {}", endpoint.address);
        }
        assert_eq!(carry_out(&plan).unwrap().moved_slots, 0, "a second run has nothing to do");
    }
    thread::sleep(Duration::from_millis(100));
    stop.store(true, Ordering::SeqCst);
    let (mut keys, mut redirected) = (0, 0);
    let mut client = ClusterClient::connect(&servers[5].address(), RedisAccess::default()).unwrap();
    for worker in workers {
        let (expected, redirections, failures) = worker.join().expect("a worker ends");
        assert!(failures.is_empty(), "{} failed: {:?}", failures.len(), &failures[..failures.len().min(3)]);
        redirected += redirections;
        for (key, value) in expected {
            let found = client.ask(key.as_bytes(), &[b"GET", key.as_bytes()]).unwrap();
            assert_eq!(found, Value::Bulk(value.into_bytes()), "{key}");
            keys += 1;
        }
    }
    let sizes: i64 = servers.iter().map(|server| server.client().number(&["DBSIZE"]).unwrap()).sum();
    assert_eq!(sizes, keys, "no key is lost and none is there twice");
    assert!(redirected > 0, "the load met no migration");
    println!("{moved} slots moved, {keys} keys, {redirected} redirections");
}

#[test]
fn an_interrupted_move_is_finished() {
    let Some(program) = redis() else { return };
    let servers = servers(&program, 2);
    let all: Vec<&Server> = servers.iter().collect();
    carry_out(&plan(&all, &[1.0, 1.0])).unwrap();
    let mut client = ClusterClient::connect(&servers[0].address(), RedisAccess::default()).unwrap();
    for index in 0..100 {
        let key = format!("{{foo}}{index}");
        client.ask(key.as_bytes(), &[b"SET", key.as_bytes(), b"v"]).unwrap();
    }
    let number = slot(b"foo");
    let (from, to) = if number < 8_192 { (0, 1) } else { (1, 0) };
    let text = number.to_string();
    let id = |index: usize| servers[index].client().text(&["CLUSTER", "MYID"]).unwrap();
    servers[to].client().ask(&["CLUSTER", "SETSLOT", &text, "IMPORTING", &id(from)]).unwrap();
    servers[from].client().ask(&["CLUSTER", "SETSLOT", &text, "MIGRATING", &id(to)]).unwrap();
    let port = servers[to].port.to_string();
    servers[from].client().ask(&["MIGRATE", "127.0.0.1", &port, "{foo}7", "0", "1000"]).unwrap();
    let done = carry_out(&plan(&all, &[1.0, 1.0])).unwrap();
    // The 99 keys that were left follow, and then the slot with all 100 goes back to its share.
    assert_eq!((done.finished, done.moved_keys, done.moved_slots), (1, 199, 1));
    for index in 0..100 {
        let key = format!("{{foo}}{index}");
        let found = client.ask(key.as_bytes(), &[b"GET", key.as_bytes()]).unwrap();
        assert_eq!(found, Value::Bulk(b"v".to_vec()), "{key}");
    }
}

/// An endpoint that stands still, before a run and in the middle of one, is waited for, and the run goes on by itself.
#[test]
fn a_stalled_endpoint_is_waited_out() {
    let Some(program) = redis() else { return };
    let servers = servers(&program, 3);
    let all: Vec<&Server> = servers.iter().collect();
    carry_out(&plan(&all[..2], &[1.0, 1.0])).unwrap();
    let mut client = ClusterClient::connect(&servers[0].address(), RedisAccess::default()).unwrap();
    for index in 0..2_000 {
        let key = format!("k{index}");
        client.ask(key.as_bytes(), &[b"SET", key.as_bytes(), b"v"]).unwrap();
    }
    let go_on_after = |seconds: u64| {
        let pid = servers[2].pid().to_string();
        thread::spawn(move || {
            thread::sleep(Duration::from_secs(seconds));
            assert!(std::process::Command::new("kill").args(["-CONT", &pid]).status().unwrap().success());
        })
    };
    servers[2].signal("-STOP");
    // Longer than one answer is waited for.
    let first = go_on_after(12);
    let wanted = plan(&all, &[1.0, 1.0, 1.0]);
    let mut second = None;
    let mut waits = Vec::new();
    let done = apply_through_stalls(
        &wanted,
        &RedisAccess::default(),
        false,
        Duration::from_secs(60),
        &mut |at, _| {
            if at >= 1_000 && second.is_none() {
                servers[2].signal("-STOP");
                second = Some(go_on_after(4));
            }
        },
        &mut |error| waits.push(error.to_string()),
    );
    let done = done.unwrap_or_else(|error| panic!("{error}; waited for {waits:?}"));
    first.join().unwrap();
    second.expect("it was stopped again").join().unwrap();
    assert!(waits.len() >= 2 && waits[0].contains(&servers[2].address()), "{waits:?}");
    assert!(waits[0].contains("no answer within 10 s"), "{waits:?}");
    assert_eq!(done.joined, [servers[2].address()]);
    for (server, endpoint) in servers.iter().zip(&wanted.endpoint) {
        assert_eq!(slots_of(server), endpoint.slots);
    }
    let sizes: Vec<i64> = servers.iter().map(|server| server.client().number(&["DBSIZE"]).unwrap()).collect();
    assert_eq!(sizes.iter().sum::<i64>(), 2_000);
    assert_eq!(done.moved_keys, sizes[2] as u64, "{done:?}");

    servers[2].signal("-STOP");
    let back = plan(&all, &[1.0, 1.0, 0.5]);
    let late = apply_through_stalls(
        &back,
        &RedisAccess::default(),
        false,
        Duration::from_millis(100),
        &mut |_, _| {},
        &mut |_| {},
    );
    servers[2].signal("-CONT");
    let late = late.unwrap_err().to_string();
    assert!(
        late.contains("nothing has moved for 0.1 s") && late.contains("goes on where it stopped"),
        "{late}"
    );
}

#[test]
fn the_bitmap_finds_the_side_of_every_key() {
    let Some(program) = redis() else { return };
    let servers = servers(&program, 2);
    let all: Vec<&Server> = servers.iter().collect();
    carry_out(&plan(&all, &[3.0, 1.0])).unwrap();
    let map = Bitmap::read(&mut servers[1].client(), &servers[0].address()).unwrap();
    let mut sides = [0, 0];
    for index in 0..200 {
        let key = format!("key:{index}");
        let side = map.side(key.as_bytes());
        sides[usize::from(side == Side::Card)] += 1;
        let server = if side == Side::Host { &servers[0] } else { &servers[1] };
        assert_eq!(map.address(key.as_bytes()), server.address());
        server.client().ask(&["SET", &key, "v"]).expect("no redirection is needed");
        let told = server.client().number(&["CLUSTER", "KEYSLOT", &key]).unwrap();
        assert_eq!(told, i64::from(slot(key.as_bytes())));
    }
    assert!(sides[0] > sides[1] && sides[1] > 20, "{sides:?}");
    let error = Bitmap::read(&mut servers[1].client(), "127.0.0.1:1").unwrap_err().to_string();
    assert!(error.contains("127.0.0.1:1"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_and_nothing_changes() {
    let Some(program) = redis() else { return };
    let alone = Server::start(&program, &[]);
    let servers = servers(&program, 4);
    let refused = |servers: &[&Server]| {
        let capacities = vec![1.0; servers.len()];
        carry_out(&plan(servers, &capacities)).unwrap_err().to_string()
    };
    assert!(refused(&[&servers[0], &alone]).contains("cluster-enabled"));
    assert_eq!(slots_of(&servers[0]), 0);
    carry_out(&plan(&[&servers[0], &servers[1]], &[1.0, 1.0])).unwrap();
    carry_out(&plan(&[&servers[2]], &[1.0])).unwrap();
    assert!(refused(&[&servers[0], &servers[2]]).contains("another cluster"));
    let dry =
        apply(&plan(&[&servers[0], &servers[3]], &[1.0, 1.0]), &RedisAccess::default(), true, &mut |_, _| {})
            .unwrap();
    assert_eq!((dry.joined.len(), dry.moved_slots), (1, 8_192));
    assert_eq!((slots_of(&servers[1]), slots_of(&servers[3])), (8_192, 0));
}

#[test]
fn capacities_are_measured_on_what_a_server_may_take() {
    let Some(program) = redis() else { return };
    let servers = servers(&program, 2);
    let (access, time) = (RedisAccess::default(), Duration::from_millis(300));
    let empty = measure::load(&servers[0].address(), &access, time).unwrap();
    assert!(empty.load.contains("ECHO") && empty.requests_per_second > 1_000.0, "{empty:?}");
    carry_out(&plan(&[&servers[0], &servers[1]], &[1.0, 1.0])).unwrap();
    let owner = measure::load(&servers[1].address(), &access, time).unwrap();
    assert!(owner.load.starts_with("SET") && owner.requests_per_second > 1_000.0, "{owner:?}");
    assert_eq!(servers[1].client().number(&["DBSIZE"]).unwrap(), 0, "the load leaves no keys");
    let idle = measure::observe(&servers[1].address(), &access, time).unwrap_err().to_string();
    assert!(idle.contains("observe under load"), "{idle}");
    let address = servers[1].address();
    let loading =
        thread::spawn(move || measure::load(&address, &RedisAccess::default(), Duration::from_secs(2)));
    thread::sleep(Duration::from_millis(200));
    let observed = measure::observe(&servers[1].address(), &access, Duration::from_secs(1)).unwrap();
    assert!(observed.requests_per_second > 1_000.0, "{observed:?}");
    loading.join().unwrap().unwrap();
}

#[test]
fn valkey_clusters_are_clusters() {
    let Some(program) = valkey() else { return };
    let servers = servers(&program, 2);
    let all: Vec<&Server> = servers.iter().collect();
    assert!(carry_out(&plan(&all, &[1.0, 1.0])).unwrap().created);
    let mut client = ClusterClient::connect(&servers[0].address(), RedisAccess::default()).unwrap();
    for index in 0..500 {
        let key = format!("k{index}");
        client.ask(key.as_bytes(), &[b"SET", key.as_bytes(), b"v"]).unwrap();
    }
    let done = carry_out(&plan(&all, &[3.0, 1.0])).unwrap();
    assert_eq!(done.moved_slots, 4_096);
    assert!(done.moved_keys > 50, "{done:?}");
    let sizes: i64 = servers.iter().map(|server| server.client().number(&["DBSIZE"]).unwrap()).sum();
    assert_eq!(sizes, 500);
}
