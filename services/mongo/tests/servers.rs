//! Real servers: two endpoints, sharded both ways, with documents that move under load.
//!
//! A server is found by `OFFPATH_MONGO_SERVER`, or as `mongod` or `secantusd-py` on PATH. SecantusDB is
//! a stand-in that speaks the protocol: what is found on it says nothing of MongoDB's speed.

mod mongo_server;

use bson::{Bson, Document, doc};
use mongo_server::{Server, program, two};
use offpath_mongo::MongoError;
use offpath_mongo::client::{MongoAccess, MongoClient};
use offpath_mongo::key::ShardKey;
use offpath_mongo::map::{Map, Method, MongoEndpoint};
use offpath_mongo::measure::reads_per_second;
use offpath_mongo::router::{DocumentRouter, EndpointHoldings, MovedDocuments};
use offpath_mongo::ycsb;
use offpath_workload::{ClientOperation, Workload};
use std::collections::BTreeMap;
use std::io::Write;
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

fn endpoints(servers: &[Server], weights: &[f64]) -> Vec<MongoEndpoint> {
    let names = ["host", "card"];
    let one = |((server, weight), name): ((&Server, &f64), &str)| MongoEndpoint {
        name: name.to_string(),
        address: server.address(),
        weight: *weight,
    };
    servers.iter().zip(weights).zip(names).map(one).collect()
}

fn map(method: Method, collection: &str, servers: &[Server], weights: &[f64], splits: &[ShardKey]) -> Map {
    let endpoints = endpoints(servers, weights);
    match method {
        Method::Hashed => Map::hashed(collection, endpoints),
        Method::Range => Map::ranges(collection, endpoints, splits),
    }
    .expect("a map")
}

fn id(number: u32) -> ShardKey {
    ShardKey::Text(format!("user{number:04}"))
}

fn document(number: u32, version: i64) -> Document {
    doc! { "_id": id(number).bson(), "version": version, "text": "t".repeat(50) }
}

fn moved(router: &DocumentRouter, weights: &[f64]) -> MovedDocuments {
    router.rebalance(weights, &mut |_| {}).expect("documents move")
}

/// What is at an endpoint itself, by `_id`.
fn there(server: &Server, database: &str, collection: &str) -> BTreeMap<ShardKey, Document> {
    let mut found = BTreeMap::new();
    let find = doc! { "find": collection, "filter": {}, "batchSize": 100 };
    server
        .client()
        .each_batch::<MongoError>(database, find, |documents| {
            for document in documents {
                let key = ShardKey::of(document.get("_id"))?;
                assert!(found.insert(key, document).is_none(), "a document twice");
            }
            Ok(())
        })
        .expect("the documents are given");
    found
}

#[test]
fn every_operation_goes_to_its_endpoint() {
    let Some(program) = program() else { return };
    let servers = two(&program);
    for method in [Method::Hashed, Method::Range] {
        let collection = format!("t.{method}");
        let router = DocumentRouter::new(
            map(method, &collection, &servers, &[2.0, 1.0], &[id(200)]),
            MongoAccess::default(),
        );
        let mut model: BTreeMap<ShardKey, Document> = (0..300).map(|n| (id(n), document(n, 0))).collect();
        router.insert_many(model.values().skip(1).cloned().collect()).unwrap();
        router.insert(document(0, 0)).unwrap();
        match router.insert(document(7, 1)).unwrap_err() {
            MongoError::Refused { code: 11_000, .. } => {}
            other => panic!("{other}"),
        }
        for number in (0..300).step_by(7) {
            assert!(router.update(&id(number), doc! { "$set": { "version": 1_i64 } }).unwrap());
            model.insert(id(number), document(number, 1));
        }
        for number in (0..300).step_by(11) {
            assert!(router.delete(&id(number)).unwrap());
            assert!(!router.delete(&id(number)).unwrap());
            model.remove(&id(number));
        }
        assert!(!router.update(&id(0), doc! { "$set": { "version": 5_i64 } }).unwrap());
        for number in 0..300 {
            assert_eq!(router.find(&id(number), &[]).unwrap().as_ref(), model.get(&id(number)), "{number}");
        }
        let part = router.find(&id(1), &["version"]).unwrap().unwrap();
        assert_eq!(part, doc! { "_id": "user0001", "version": 0_i64 });

        // Scans within an endpoint, across both, to the end, and from where nothing is.
        for (from, count) in [(0, 10), (195, 20), (120, 150), (290, 50), (11, 1), (400, 5)] {
            let wanted: Vec<Document> = model.range(id(from)..).take(count).map(|(_, d)| d.clone()).collect();
            assert_eq!(router.scan(&id(from), count, &[]).unwrap(), wanted, "{method} from {from}");
        }
        assert!(router.scan(&id(0), 0, &[]).unwrap().is_empty());
        // Keys of other types are not in the order of strings, and are found all the same.
        router.insert(doc! { "_id": 5_i32, "n": 1 }).unwrap();
        assert!(router.find(&ShardKey::Integer(5), &[]).unwrap().is_some());
        assert_eq!(router.scan(&id(298), 10, &[]).unwrap().len(), model.range(id(298)..).count());
        router.delete(&ShardKey::Integer(5)).unwrap();

        let table = method.to_string();
        let parts: Vec<_> = servers.iter().map(|server| there(server, "t", &table)).collect();
        assert_eq!(parts[0].len() + parts[1].len(), model.len(), "each document is at one endpoint");
        for (endpoint, part) in parts.iter().enumerate() {
            assert!(part.len() > 60, "{method}: {}", part.len());
            assert!(part.keys().all(|key| router.map().owner(key) == endpoint));
        }
    }
    assert!(
        reads_per_second(&servers[0].address(), &MongoAccess::default(), "t", Duration::from_millis(300))
            .unwrap()
            > 10.0
    );
    let refused = router_of(&servers).insert(doc! { "_id": null, "n": 1 }).unwrap_err().to_string();
    assert!(refused.contains("whole numbers, strings or object ids"), "{refused}");
}

fn router_of(servers: &[Server]) -> DocumentRouter {
    DocumentRouter::new(map(Method::Hashed, "t.u", servers, &[1.0, 1.0], &[]), MongoAccess::default())
}

/// Writes its own documents until it is told to stop; the answer is what has to be there.
fn keep_writing(router: &DocumentRouter, worker: u32, stop: &AtomicBool) -> BTreeMap<ShardKey, i64> {
    let mut model = BTreeMap::new();
    let mut state = u64::from(worker) + 1;
    let mut version = 0_i64;
    while !stop.load(Ordering::SeqCst) {
        // A linear congruential generator: enough to mix the operations.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = worker + 3 * ((state >> 33) as u32 % 100);
        let key = id(number);
        version += 1;
        match model.get(&key) {
            None => {
                router.insert(document(number, version)).expect("an insert");
                model.insert(key, version);
            }
            Some(_) if state >> 62 == 0 => {
                assert!(router.delete(&key).expect("a delete"), "{key} was lost");
                model.remove(&key);
            }
            Some(before) => {
                let found =
                    router.find(&key, &[]).expect("a read").map(|d| d.get_i64("version").unwrap_or(-1));
                assert_eq!(found, Some(*before), "{key}");
                let change = doc! { "$set": { "version": version } };
                assert!(router.update(&key, change).expect("an update"), "{key} was lost");
                model.insert(key, version);
            }
        }
    }
    model
}

#[test]
fn documents_move_under_load_and_none_is_lost() {
    let Some(program) = program() else { return };
    let servers = two(&program);
    let folder = tempfile::tempdir().expect("a temporary directory");
    for method in [Method::Hashed, Method::Range] {
        let collection = format!("t.{method}");
        let path = folder.path().join(format!("{method}.toml"));
        map(method, &collection, &servers, &[1.0, 1.0], &[id(150)]).save(&path).unwrap();
        let router = DocumentRouter::open(&path, MongoAccess::default()).unwrap();
        // Documents that nobody writes, so that there is something to move from the start.
        router.insert_many((300..900).map(|number| document(number, 0)).collect()).unwrap();
        let stop = AtomicBool::new(false);
        let (model, moves) = thread::scope(|scope| {
            let (router, stop) = (&router, &stop);
            let writers: Vec<_> =
                (0..3).map(|worker| scope.spawn(move || keep_writing(router, worker, stop))).collect();
            let scanner = scope.spawn(move || {
                let mut count = 0;
                while !stop.load(Ordering::SeqCst) {
                    let found = router.scan(&id(600), 20, &["version"]).expect("a scan");
                    let ids: Vec<ShardKey> =
                        found.iter().map(|d| ShardKey::of(d.get("_id")).expect("a key")).collect();
                    assert_eq!(ids, (600..620).map(id).collect::<Vec<_>>(), "a scan during a move");
                    count += 1;
                }
                count
            });
            let mut moves = Vec::new();
            for weights in [[3.0, 1.0], [1.0, 3.0], [1.0, 1.0]] {
                thread::sleep(Duration::from_millis(200));
                moves.push(moved(router, &weights));
            }
            thread::sleep(Duration::from_millis(200));
            stop.store(true, Ordering::SeqCst);
            let mut model = BTreeMap::new();
            for writer in writers {
                model.extend(writer.join().expect("a writer ends"));
            }
            assert!(scanner.join().expect("the scanner ends") > 0);
            (model, moves)
        });
        println!("{method}: {moves:?}");
        assert!(moves.iter().all(|moved| moved.documents > 100 && moved.strays == 0), "{moves:?}");
        let held = router.held().unwrap();
        assert_eq!(held.iter().map(|held| held.documents).sum::<u64>(), model.len() as u64 + 600);
        assert!(held.iter().all(|held| held.strays == 0 && held.documents > 250), "{held:?}");
        for (key, version) in &model {
            let found = router.find(key, &[]).unwrap().unwrap_or_else(|| panic!("{key} is lost"));
            assert_eq!(found.get_i64("version").unwrap(), *version, "{key}");
        }
        assert!((300..900).all(|number| router.find(&id(number), &[]).unwrap().is_some()));
        assert_eq!(Map::load(&path).unwrap(), router.map(), "the file is what is in force");

        // While another router has the map open, nothing moves.
        let other = DocumentRouter::open(&path, MongoAccess::default()).unwrap();
        let refused = router.rebalance(&[1.0, 2.0], &mut |_| {}).unwrap_err().to_string();
        assert!(refused.contains("another process"), "{refused}");
        drop(other);
        assert!(moved(&router, &[1.0, 0.0]).documents > 0);
        assert_eq!(router.held().unwrap()[1], EndpointHoldings::default());
    }
}

#[test]
fn what_an_interrupted_move_left_is_nobodys() {
    let Some(program) = program() else { return };
    let servers = two(&program);
    let router = router_of(&servers);
    router.insert_many((0..100).map(|number| document(number, 1)).collect()).unwrap();
    // Old copies at the other endpoint, as a move leaves them that ended before its switch.
    let map = router.map();
    for (endpoint, server) in servers.iter().enumerate() {
        let strays: Vec<Document> =
            (0..100).filter(|n| map.owner(&id(*n)) != endpoint).map(|n| document(n, 0)).collect();
        assert!(strays.len() > 20);
        server.client().ask("t", doc! { "insert": "u", "documents": strays }).unwrap();
    }
    assert!(router.delete(&id(50)).unwrap());
    let left = |number: &u32| *number != 50;
    let versions = |router: &DocumentRouter| -> Vec<(ShardKey, i64)> {
        let found = router.scan(&id(0), 200, &[]).expect("a scan");
        found.iter().map(|d| (ShardKey::of(d.get("_id")).unwrap(), d.get_i64("version").unwrap())).collect()
    };
    let wanted: Vec<(ShardKey, i64)> = (0..100).filter(left).map(|number| (id(number), 1)).collect();
    assert_eq!(versions(&router), wanted);
    assert_eq!(router.held().unwrap().iter().map(|held| held.strays).sum::<u64>(), 100);
    let moved = moved(&router, &[1.0, 4.0]);
    assert_eq!(moved.strays, 100);
    assert_eq!(versions(&router), wanted, "what was deleted stays deleted");
    assert_eq!(router.held().unwrap().iter().map(|held| held.strays).sum::<u64>(), 0);

    // A taker that is gone: nothing changes, and the documents are where they were.
    let mut servers = servers;
    let before = router.map();
    servers[0].stop();
    assert!(matches!(router.rebalance(&[4.0, 1.0], &mut |_| {}), Err(MongoError::Io { .. })));
    assert_eq!(router.map(), before);
    servers[0].restart(&[]);
    assert_eq!(versions(&router), wanted);
}

#[test]
fn ycsb_runs_and_finds_what_it_wrote() {
    let Some(program) = program() else { return };
    let servers = two(&program);
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads");
    for method in [Method::Hashed, Method::Range] {
        for letter in ["a", "b", "c", "d", "e", "f"] {
            let overrides = [("recordcount", "300"), ("operationcount", "100"), ("maxscanlength", "20")];
            let overrides = overrides.map(|(key, value)| (key.to_string(), value.to_string()));
            let workload = Workload::load(format!("{folder}/workload{letter}")).unwrap();
            let workload = workload.with_overrides(overrides.into()).unwrap();
            let weights = [2.0, 1.0];
            let splits = ycsb::splits(&workload, &weights).unwrap();
            let collection = format!("ycsb.{method}{letter}");
            let router = DocumentRouter::new(
                map(method, &collection, &servers, &weights, &splits),
                MongoAccess::default(),
            );
            assert_eq!(ycsb::load(&router, &workload, 2, 1, &|_| {}).unwrap().0, 300);
            let report = ycsb::run(&router, &workload, 100, 3, 1).unwrap();
            println!("{method} {letter}: {report:?}");
            assert_eq!((report.operations, report.missing, report.wrong), (100, 0, 0));
            assert_eq!(report.timing.iter().map(|timing| timing.count).sum::<u64>(), 100);
            let inserted = |timing: &&ycsb::Timing| timing.operation == ClientOperation::Insert;
            let inserts = report.timing.iter().find(inserted).map_or(0, |timing| timing.count);
            let held = router.held().unwrap();
            assert_eq!(held.iter().map(|held| held.documents).sum::<u64>(), 300 + inserts);
            assert!((170..=230).contains(&(held[0].documents * 300 / (300 + inserts))), "{held:?}");
            if letter == "e" {
                assert!(report.scanned > 300, "{report:?}");
            } else {
                assert!(report.requests.iter().all(|count| *count > 10), "{report:?}");
            }
        }
    }
}

#[test]
fn users_show_their_password() {
    let Some(program) = program() else { return };
    let mut server = Server::start(&program);
    let create = doc! { "createUser": "writer", "pwd": "secret, with = signs",
    "roles": [{ "role": "readWrite", "db": "t" }] };
    server.client().ask("admin", create).unwrap();
    server.restart(&["--auth"]);
    let insert = || doc! { "insert": "u", "documents": [{ "_id": 1 }] };
    match server.client().ask("t", insert()).unwrap_err() {
        MongoError::Refused { code, .. } => assert_eq!(code, 13, "not authorised"),
        other => panic!("{other}"),
    }
    let access = |password: &str| MongoAccess {
        user: Some("writer".into()),
        password: Some(password.into()),
        ..MongoAccess::default()
    };
    let mut client = MongoClient::connect(&server.address(), &access("secret, with = signs")).unwrap();
    assert_eq!(client.ask("t", insert()).unwrap().get("n"), Some(&Bson::Int32(1)));
    assert!(matches!(
        MongoClient::connect(&server.address(), &access("wrong")),
        Err(MongoError::Refused { .. })
    ));
}

#[test]
fn peers_that_are_no_servers_are_refused() {
    use std::io::Read;
    let garbage: [&[u8]; 4] = [b"-ERR unknown command\r\n", &[0xff; 64], &[16, 0, 0, 0], b""];
    for bytes in garbage {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let peer = thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            let _ = stream.read(&mut [0; 512]);
            let _ = stream.write_all(bytes);
        });
        let error = MongoClient::connect(&address, &MongoAccess::default()).unwrap_err();
        assert!(matches!(error, MongoError::Wire { .. } | MongoError::Io { .. }), "{error}");
        peer.join().expect("the peer ends");
    }
}
