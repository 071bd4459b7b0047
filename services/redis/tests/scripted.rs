//! Slots moved between two played cluster nodes, so that what servers seldom say is said: passwords of
//! each form, and moves that an earlier run left half told.

use offpath_redis::resp::{self, Limits, Value};
use offpath_redis::shard::ShardError;
use offpath_redis::shard::apply::{Done, apply};
use offpath_redis::shard::client::{ClusterClient, RedisAccess};
use offpath_redis::shard::plan::{RedisEndpoint, SlotPlan};
use offpath_redis::shard::slots::slot;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

const SLOTS: u16 = 16_384;

/// What one node knows and has.
#[derive(Default)]
struct Node {
    address: String,
    /// The owner of each slot, as this node sees it.
    owner: Vec<usize>,
    /// Slots that come or go, with the other node.
    importing: BTreeMap<u16, usize>,
    migrating: BTreeMap<u16, usize>,
    keys: BTreeMap<u16, Vec<String>>,
    /// What was said of slots, in order.
    told: Vec<String>,
}

/// Two nodes that may ask for a password, and may refuse a slot's word.
#[derive(Default)]
struct Cluster {
    nodes: Vec<Node>,
    /// The words that enter a node behind AUTH, and those that enter the other behind MIGRATE's.
    login: Option<Vec<&'static str>>,
    /// Which node refuses which word of SETSLOT, and how. Of an owner it hears from others all the same.
    refuse: Option<(usize, &'static str, &'static str)>,
    /// How often MIGRATE fails before each time that it works.
    failures: usize,
    failed: usize,
    /// A node that says that the cluster is down.
    down: Option<usize>,
    /// How many requests are answered by the end of the connection.
    hang_ups: usize,
}

fn id(node: usize) -> String {
    format!("{node:040x}")
}

fn bulk(text: &str) -> String {
    format!("${}\r\n{text}\r\n", text.len())
}

fn ranges(owner: &[usize], node: usize) -> String {
    let slots: Vec<usize> = (0..owner.len()).filter(|slot| owner[*slot] == node).collect();
    let runs = slots.chunk_by(|a, b| a + 1 == *b);
    runs.map(|run| format!(" {}-{}", run[0], run[run.len() - 1])).collect()
}

impl Cluster {
    fn description(&self, asked: usize) -> String {
        let mut text = String::new();
        for (index, node) in self.nodes.iter().enumerate() {
            let (myself, view) = (index == asked, &self.nodes[asked]);
            let flags = if myself { "myself,master" } else { "master" };
            text += &format!("{} {}@1 {flags} - 0 0 {} connected", id(index), node.address, index + 1);
            text += &ranges(&view.owner, index);
            if myself {
                for (slot, other) in &node.migrating {
                    text += &format!(" [{slot}->-{}]", id(*other));
                }
                for (slot, other) in &node.importing {
                    text += &format!(" [{slot}-<-{}]", id(*other));
                }
            }
            text += "\n";
        }
        text
    }

    fn set_slot(&mut self, asked: usize, slot: u16, word: &str, other: &str) -> String {
        let other = (0..self.nodes.len()).find(|node| id(*node) == other).expect("a node of this cluster");
        let node = &mut self.nodes[asked];
        node.told.push(format!("{slot} {word} {other}"));
        if let Some((who, refused, reply)) = self.refuse
            && (who, refused) == (asked, word)
        {
            if word == "NODE" {
                node.owner[usize::from(slot)] = other;
                node.migrating.remove(&slot);
            }
            return format!("-{reply}\r\n");
        }
        let owns = node.owner[usize::from(slot)] == asked;
        match word {
            "IMPORTING" if owns => return format!("-ERR I'm already the owner of hash slot {slot}\r\n"),
            "IMPORTING" => {
                node.importing.insert(slot, other);
            }
            "MIGRATING" if !owns => return format!("-ERR I'm not the owner of hash slot {slot}\r\n"),
            "MIGRATING" => {
                node.migrating.insert(slot, other);
            }
            "NODE" => {
                node.owner[usize::from(slot)] = other;
                node.importing.remove(&slot);
                node.migrating.remove(&slot);
            }
            other => panic!("SETSLOT {other}"),
        }
        "+OK\r\n".into()
    }

    fn migrate(&mut self, from: usize, words: &[&str]) -> String {
        let (at, options) = (format!("{}:{}", words[1], words[2]), &words[6..]);
        let keys = options.iter().position(|word| *word == "KEYS").expect("keys follow");
        let shown: Vec<&str> = options[..keys].iter().copied().filter(|word| *word != "REPLACE").collect();
        if shown != self.login.as_deref().map(migrate_login).unwrap_or_default() {
            return "-ERR Target instance replied with error: NOAUTH Authentication required.\r\n".into();
        }
        if self.failed < self.failures {
            self.failed += 1;
            return "-IOERR error or timeout reading to target instance\r\n".into();
        }
        self.failed = 0;
        let to = self.nodes.iter().position(|node| node.address == at).expect("a node of this cluster");
        for key in &options[keys + 1..] {
            let mut slots = self.nodes[from].keys.iter_mut();
            let found = slots.find_map(|(slot, all)| {
                let at = all.iter().position(|known| known == key)?;
                Some((*slot, all.remove(at)))
            });
            let (slot, key) = found.expect("a key of the giver");
            self.nodes[to].keys.entry(slot).or_default().push(key);
        }
        "+OK\r\n".into()
    }

    fn answer(&mut self, asked: usize, words: &[&str], entered: &mut bool) -> String {
        if words[0] == "AUTH" {
            *entered = self.login.as_deref() == Some(&words[1..]);
            return if *entered { "+OK\r\n".into() } else { "-WRONGPASS no\r\n".into() };
        }
        if self.login.is_some() && !*entered {
            return "-NOAUTH Authentication required.\r\n".into();
        }
        match words {
            ["INFO", "cluster"] => bulk("# Cluster\r\ncluster_enabled:1\r\n"),
            ["PING"] => "+PONG\r\n".into(),
            ["DBSIZE"] => ":0\r\n".into(),
            ["CLUSTER", "NODES"] => bulk(&self.description(asked)),
            ["CLUSTER", "INFO"] => bulk("cluster_state:ok\r\n"),
            ["CLUSTER", "SETSLOT", slot, word, other] => {
                self.set_slot(asked, slot.parse().expect("a slot"), word, other)
            }
            ["CLUSTER", "GETKEYSINSLOT", slot, most] => {
                let slot: u16 = slot.parse().expect("a slot");
                let most: usize = most.parse().expect("a number");
                let none = Vec::new();
                let keys = self.nodes[asked].keys.get(&slot).unwrap_or(&none);
                let keys: Vec<String> = keys.iter().take(most).map(|key| bulk(key)).collect();
                format!("*{}\r\n{}", keys.len(), keys.concat())
            }
            ["GET", _] if self.down == Some(asked) => "-CLUSTERDOWN The cluster is down\r\n".into(),
            ["GET", key] => {
                let owner = self.nodes[asked].owner[usize::from(slot(key.as_bytes()))];
                let moved = format!("-MOVED {} {}\r\n", slot(key.as_bytes()), self.nodes[owner].address);
                if owner == asked { bulk(&asked.to_string()) } else { moved }
            }
            ["MIGRATE", ..] => self.migrate(asked, words),
            other => panic!("{other:?} was not expected"),
        }
    }
}

/// The words behind REPLACE that enter the other node.
fn migrate_login(login: &[&'static str]) -> Vec<&'static str> {
    let form = if login.len() == 2 { "AUTH2" } else { "AUTH" };
    [&[form][..], login].concat()
}

fn serve(mut stream: TcpStream, cluster: &Mutex<Cluster>, asked: usize) {
    let (mut input, mut piece, mut entered) = (Vec::new(), [0; 4096], false);
    while let Ok(count) = stream.read(&mut piece) {
        if count == 0 {
            return;
        }
        input.extend_from_slice(&piece[..count]);
        while let Ok(Some((request, taken))) = resp::request(&input, Limits::CLIENT) {
            input.drain(..taken);
            let words: Vec<&str> =
                request.iter().map(|word| std::str::from_utf8(word).expect("text")).collect();
            let mut cluster = cluster.lock().expect("no panic");
            if cluster.hang_ups > 0 {
                cluster.hang_ups -= 1;
                return;
            }
            let answer = cluster.answer(asked, &words, &mut entered);
            drop(cluster);
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    }
}

/// Two nodes of which the first has the slots below `border`, with `keys` keys in each slot named.
fn play(border: u16, keys: &[(u16, usize)]) -> Arc<Mutex<Cluster>> {
    play_many(2, border, keys)
}

/// As [`play`], with more nodes that have nothing.
fn play_many(count: usize, border: u16, keys: &[(u16, usize)]) -> Arc<Mutex<Cluster>> {
    let cluster = Arc::new(Mutex::new(Cluster::default()));
    for index in 0..count {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let mut node = Node {
            address: listener.local_addr().expect("an address").to_string(),
            owner: (0..SLOTS).map(|slot| usize::from(slot >= border)).collect(),
            ..Node::default()
        };
        for &(slot, count) in keys.iter().filter(|(slot, _)| usize::from(*slot >= border) == index) {
            node.keys.insert(slot, (0..count).map(|key| format!("{slot}:{key}")).collect());
        }
        cluster.lock().expect("no panic").nodes.push(node);
        let own = cluster.clone();
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let own = own.clone();
                thread::spawn(move || serve(stream, &own, index));
            }
        });
    }
    cluster
}

fn carry_out(cluster: &Mutex<Cluster>, slots: &[u16], access: &RedisAccess) -> Result<Done, ShardError> {
    let addresses: Vec<String> =
        cluster.lock().expect("no panic").nodes.iter().map(|node| node.address.clone()).collect();
    let endpoint = |(index, slots): (usize, &u16)| RedisEndpoint {
        name: format!("n{index}"),
        address: addresses[index].clone(),
        requests_per_second: 1.0,
        slots: *slots,
    };
    let plan = SlotPlan { endpoint: slots.iter().enumerate().map(endpoint).collect() };
    apply(&plan, access, false, &mut |_, _| {})
}

/// Keys of slot `slot` at each node.
fn keys(cluster: &Mutex<Cluster>, slot: u16) -> [usize; 2] {
    let cluster = cluster.lock().expect("no panic");
    [0, 1].map(|node: usize| cluster.nodes[node].keys.get(&slot).map_or(0, Vec::len))
}

#[test]
fn keys_move_with_the_password_that_their_nodes_ask_for() {
    let text = |text: &str| Some(text.to_string());
    for (login, access) in [
        (None, RedisAccess::default()),
        (Some(vec!["secret"]), RedisAccess { user: None, password: text("secret") }),
        (Some(vec!["mover", "secret"]), RedisAccess { user: text("mover"), password: text("secret") }),
    ] {
        // More keys than one MIGRATE takes.
        let cluster = play(8_192, &[(8_190, 3), (8_191, 150), (8_192, 5)]);
        cluster.lock().unwrap().login = login.clone();
        let done = carry_out(&cluster, &[8_190, 8_194], &access).unwrap_or_else(|e| panic!("{login:?}: {e}"));
        assert_eq!((done.moved_slots, done.moved_keys, done.finished), (2, 153, 0), "{login:?}");
        assert_eq!((keys(&cluster, 8_190), keys(&cluster, 8_191)), ([0, 3], [0, 150]));
        assert_eq!(keys(&cluster, 8_192), [0, 5]);
        for node in &cluster.lock().unwrap().nodes {
            assert!(node.importing.is_empty() && node.migrating.is_empty());
            assert_eq!(node.owner.iter().filter(|owner| **owner == 0).count(), 8_190);
        }
    }
    let cluster = play(8_192, &[]);
    cluster.lock().unwrap().login = Some(vec!["secret"]);
    let error = carry_out(&cluster, &[8_192, 8_192], &RedisAccess::default()).unwrap_err().to_string();
    assert!(error.contains("NOAUTH"), "{error}");
}

#[test]
fn the_taker_hears_of_a_slot_before_the_giver() {
    let cluster = play(8_192, &[(8_191, 1)]);
    carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap();
    let cluster = cluster.lock().unwrap();
    assert_eq!(cluster.nodes[0].told, ["8191 MIGRATING 1", "8191 NODE 1"]);
    assert_eq!(cluster.nodes[1].told, ["8191 IMPORTING 0", "8191 NODE 1"]);
}

#[test]
fn a_slot_whose_taker_owns_it_already_is_finished() {
    // The earlier run ended between telling the taker and telling the giver, which has heard since.
    let cluster = play(8_191, &[]);
    {
        let mut cluster = cluster.lock().unwrap();
        cluster.nodes[0].migrating.insert(8_191, 1);
        cluster.nodes[0].keys.insert(8_191, vec!["late".into()]);
    }
    let done = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap();
    assert_eq!((done.finished, done.moved_keys, done.moved_slots), (1, 1, 0));
    assert_eq!(keys(&cluster, 8_191), [0, 1]);
    let cluster = cluster.lock().unwrap();
    assert!(cluster.nodes[0].migrating.is_empty());
    assert_eq!(cluster.nodes[1].told, ["8191 IMPORTING 0", "8191 NODE 1"]);
}

#[test]
fn a_slot_that_only_its_taker_was_told_of_is_finished_once() {
    let cluster = play(8_192, &[(8_191, 2)]);
    {
        let mut cluster = cluster.lock().unwrap();
        cluster.nodes[0].migrating.insert(8_191, 1);
        cluster.nodes[1].importing.insert(8_191, 0);
    }
    let done = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap();
    // Both sides tell of the same move.
    assert_eq!((done.finished, done.moved_keys, done.moved_slots), (1, 2, 0));
    assert_eq!(keys(&cluster, 8_191), [0, 2]);
}

#[test]
fn any_other_refusal_ends_the_run_with_its_words() {
    for (node, word) in [(1, "IMPORTING"), (0, "MIGRATING"), (1, "NODE"), (0, "NODE")] {
        let cluster = play(8_192, &[(8_191, 2)]);
        cluster.lock().unwrap().refuse = Some((node, word, "ERR Unknown node"));
        let error = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap_err().to_string();
        assert!(error.contains(&format!("CLUSTER SETSLOT 8191 {word}")), "{error}");
        assert!(error.contains("Unknown node"), "{error}");
        assert!(error.contains(&cluster.lock().unwrap().nodes[node].address), "{error}");
    }
}

#[test]
fn a_giver_that_is_a_replica_by_now_is_no_refusal() {
    let cluster = play(8_192, &[(8_191, 2)]);
    cluster.lock().unwrap().refuse = Some((0, "NODE", "ERR You can use SETSLOT only with masters."));
    let done = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap();
    assert_eq!((done.moved_slots, done.moved_keys), (1, 2));
}

#[test]
fn every_other_node_hears_of_the_owner_and_may_refuse_to() {
    for refuse in [None, Some((0, "NODE", "ERR no"))] {
        let cluster = play_many(3, 8_192, &[(16_383, 1)]);
        cluster.lock().unwrap().refuse = refuse;
        let done = carry_out(&cluster, &[8_192, 8_191, 1], &RedisAccess::default()).unwrap();
        assert_eq!((done.moved_slots, done.moved_keys), (1, 1));
        let cluster = cluster.lock().unwrap();
        assert_eq!(cluster.nodes[0].told, ["16383 NODE 2"]);
        assert_eq!(cluster.nodes[2].keys[&16_383].len(), 1);
    }
}

#[test]
fn a_migrate_is_tried_five_times_each() {
    let cluster = play(8_192, &[(8_191, 70)]);
    cluster.lock().unwrap().failures = 4;
    let done = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap();
    assert_eq!((done.moved_slots, done.moved_keys), (1, 70));
    let cluster = play(8_192, &[(8_191, 70)]);
    cluster.lock().unwrap().failures = 5;
    let error = carry_out(&cluster, &[8_191, 8_193], &RedisAccess::default()).unwrap_err().to_string();
    assert!(error.contains("MIGRATE") && error.contains("IOERR"), "{error}");
    assert_eq!(keys(&cluster, 8_191), [70, 0]);
}

#[test]
fn a_client_of_a_node_that_is_down_learns_the_owner_from_another() {
    // Every slot is the first node's as that one has it.
    let cluster = play(SLOTS, &[]);
    let address = |node: usize| cluster.lock().unwrap().nodes[node].address.clone();
    let mut client = ClusterClient::connect(&address(0), RedisAccess::default()).unwrap();
    let get = |client: &mut ClusterClient| client.ask(b"key", &[b"GET", b"key"]).map_err(|e| e.to_string());
    assert_eq!(get(&mut client), Ok(Value::Bulk(b"0".to_vec())));
    assert_eq!((client.redirected, client.address(b"key").to_string()), (0, address(0)));
    // Another key's redirection shows the client the second node.
    cluster.lock().unwrap().nodes[0].owner[usize::from(slot(b"other"))] = 1;
    cluster.lock().unwrap().nodes[1].owner.fill(1);
    assert_ne!(slot(b"other"), slot(b"key"));
    let other = client.ask(b"other", &[b"GET", b"other"]).unwrap();
    assert_eq!((other, client.redirected), (Value::Bulk(b"1".to_vec()), 1));
    cluster.lock().unwrap().down = Some(0);
    assert_eq!(get(&mut client), Ok(Value::Bulk(b"1".to_vec())));
    assert_eq!((client.redirected, client.address(b"key").to_string()), (2, address(1)));
    // Where all are down it gives up, with a word on it.
    let alone = play(SLOTS, &[]);
    let seed = alone.lock().unwrap().nodes[0].address.clone();
    let mut client = ClusterClient::connect(&seed, RedisAccess::default()).unwrap();
    alone.lock().unwrap().nodes[0].owner.fill(1);
    alone.lock().unwrap().nodes[1].owner.fill(0);
    let error = get(&mut client).unwrap_err();
    assert!(error.contains("redirected 32 times"), "{error}");
}

#[test]
fn a_connection_that_broke_is_made_anew() {
    let cluster = play(SLOTS, &[]);
    let address = cluster.lock().unwrap().nodes[0].address.clone();
    let mut client = ClusterClient::connect(&address, RedisAccess::default()).unwrap();
    let mut get = || client.ask(b"key", &[b"GET", b"key"]).ok();
    assert_eq!(get(), Some(Value::Bulk(b"0".to_vec())));
    cluster.lock().unwrap().hang_ups = 1;
    assert_eq!(get(), None);
    assert_eq!(get(), Some(Value::Bulk(b"0".to_vec())));
}
