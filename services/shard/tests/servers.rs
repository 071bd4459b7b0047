//! `offpath-shard` on real servers: its JSON follows docs/schemas, and says what happened.

#[path = "../../../crates/offpath/tests/common/mod.rs"]
mod common;
#[path = "../../mongo/tests/mongo_server/mod.rs"]
mod mongo_server;
#[path = "../../redis/tests/servers/mod.rs"]
mod redis_servers;

use common::{check, json, offpath, schema};
use redis_servers::Server;
use serde_json::Value;

/// A file in a directory of its own.
fn file(name: &str) -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join(name).display().to_string();
    (folder, file)
}

fn total(answer: &Value, list: &str, key: &str) -> u64 {
    answer[list].as_array().into_iter().flatten().filter_map(|row| row[key].as_u64()).sum()
}

#[test]
fn shards_of_a_cluster_follow_their_schemas() {
    let (_folder, file) = file("shards.toml");
    let planned = json(&["plan", "host=h:1=300", "card=h:2=100"]);
    check(&planned, &schema("shard-plan.json"), "shard-plan.json");
    let Some(program) = redis_servers::redis() else { return };
    let [host, card] = [(); 2].map(|()| Server::start(&program, &["--cluster-enabled", "yes"]));
    let endpoints = [format!("host={}=300", host.address()), format!("card={}=100", card.address())];
    json(&["plan", &endpoints[0], &endpoints[1], "--out", &file]);
    for (name, arguments) in [
        ("shard-apply.json", &["apply", &file, "--dry-run"][..]),
        ("shard-apply.json", &["apply", &file]),
        ("shard-status.json", &["status", &host.address()]),
        ("shard-route.json", &["route", "a", "b", "--at", &card.address()]),
    ] {
        check(&json(arguments), &schema(name), name);
    }
    let status = json(&["status", &card.address()]);
    let slots: Vec<u64> = (0..2).filter_map(|index| status["node"][index]["slots"].as_u64()).collect();
    assert_eq!((slots.iter().sum::<u64>(), slots.contains(&4_096)), (16_384, true), "{status}");
    let refused = offpath(&["rebalance", &file, "--observe", "100ms", "--format", "json"]);
    assert!(refused.code == 2 && refused.stderr.contains("observe under load"), "{}", refused.stderr);
}

#[test]
fn a_sharded_collection_follows_its_schemas() {
    let (_folder, file) = file("map.toml");
    let plan = |host: &str, card: &str| {
        let arguments = ["mongo", "plan", host, card, "--collection", "ycsb.usertable", "--out", &file];
        let planned = json(&arguments);
        check(&planned, &schema("shard-mongo-map.json"), "shard-mongo-map.json");
        planned
    };
    let planned = plan("host=h:1=3", "card=h:2=1");
    assert_eq!(planned["endpoint"][0]["share"].as_f64(), Some(0.75), "{planned}");
    let routed = json(&["mongo", "route", &file, "user17", "user18"]);
    check(&routed, &schema("shard-mongo-route.json"), "shard-mongo-route.json");

    let Some(program) = mongo_server::program() else { return };
    let [host, card] = mongo_server::two(&program);
    plan(&format!("host={}=3", host.address()), &format!("card={}=1", card.address()));
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/workloade");
    let small = ["--property", "recordcount=300", "--property", "operationcount=200", "--threads", "2"];
    let run = [&["mongo", "ycsb", &file, workload, "--load"], &small[..]].concat();
    let ran = json(&run);
    check(&ran, &schema("shard-mongo-ycsb.json"), "shard-mongo-ycsb.json");
    assert_eq!((&ran["loaded_records"], &ran["operations"]), (&300.into(), &200.into()), "{ran}");
    let status = json(&["mongo", "status", &file]);
    check(&status, &schema("shard-mongo-map.json"), "shard-mongo-map.json");
    let held = total(&status, "endpoint", "documents");
    assert!(held >= 300, "{status}");
    let moved = json(&["mongo", "rebalance", &file, "host=1", "card=1"]);
    check(&moved, &schema("shard-mongo-map.json"), "shard-mongo-map.json");
    assert_eq!(total(&moved, "endpoint", "documents"), held, "{moved}");
    assert!(moved["moved"]["documents"].as_u64() > Some(0), "{moved}");
}
