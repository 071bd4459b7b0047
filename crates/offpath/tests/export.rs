//! `offpath export` as its users see it.

use crate::common::{answer, check, json, offpath, schema};
use serde_json::Value;
use std::fs;

const DESIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store.toml");
const COUNTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/counters-host.txt");

#[test]
fn rows_of_answers_and_logs_are_one_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = json(&["plan", DESIGN]);
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let plan_file = file("plan.json", &plan.to_string());
    let write = |files: &[&str], name: &str| {
        let out = folder.path().join(name).display().to_string();
        let found = offpath(&[&["export", "table"], files, &["-o", &out]].concat());
        (found, out)
    };
    let (found, csv) = write(&[&plan_file, COUNTERS], "rows.csv");
    assert_eq!((found.code, &*found.stdout), (0, ""), "{}", found.stderr);
    let (found, rows) = write(&[&plan_file, COUNTERS], "rows.json");
    assert_eq!(found.code, 0, "{}", found.stderr);
    let rows: Vec<Value> =
        serde_json::from_str(&fs::read_to_string(rows).expect("it is written")).expect("JSON");
    let kinds = |kind: &str| rows.iter().filter(|row| row["kind"] == kind).count();
    let alternatives = plan["alternatives"].as_array().expect("a list").len();
    assert_eq!((kinds("alternative"), kinds("mix")), (alternatives, 3));
    assert!(kinds("figure") > 10);
    let best = rows.iter().find(|row| row["name"] == "optimal").expect("the best mix");
    assert_eq!(best["throughput_mreq_per_s"], plan["optimal"]["throughput_mreq_per_s"]);
    assert!(best["throughput_mreq_per_s"].is_f64(), "{best}");
    assert_eq!(best["design"], "small-store");
    // The same in both forms, cell by cell.
    let text = fs::read_to_string(&csv).expect("it is written");
    assert!(text.starts_with("file,kind,name,design,device,"), "{}", text.lines().next().unwrap_or_default());
    let header: Vec<&str> = text.lines().next().expect("a header").split(',').collect();
    assert_eq!(header.len(), rows[0].as_object().expect("an object").len());
    assert_eq!(text.lines().count(), 1 + rows.len());
    // What is there stays.
    let (again, _) = write(&[&plan_file], "rows.csv");
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{}", again.stderr);
    let (other, _) = write(&[&plan_file], "rows.xlsx");
    assert!(other.code == 2 && other.stderr.contains("ends neither in"), "{}", other.stderr);
    let none = file("none.log", "nothing\n");
    let (none, _) = write(&[&none], "none.csv");
    assert!(none.code == 2 && none.stderr.contains("has no row"), "{}", none.stderr);
    // Counters that were watched: a row for each of both intervals.
    let watched = offpath(&["watch", "--expect", &plan_file, COUNTERS, "--format", "json"]);
    let (found, rows) = write(&[&file("watch.json", &watched.stdout)], "watch.json.csv");
    assert_eq!(found.code, 0, "{}", found.stderr);
    assert_eq!(fs::read_to_string(rows).expect("it is written").lines().count(), 1 + 7 + 6);
    let (parquet, out) = write(&[&plan_file, COUNTERS], "rows.parquet");
    match cfg!(feature = "parquet") {
        true => {
            let bytes = fs::read(out).expect("it is written");
            assert!(bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1"));
        }
        false => {
            assert!(parquet.code == 2 && parquet.stderr.contains("--features parquet"), "{}", parquet.stderr)
        }
    }
}

#[test]
fn what_a_profile_determines_of_ucx_is_written_and_guesses_are_not() {
    let found = json(&["export", "ucx", "bluefield2"]);
    check(&found, &schema("export-ucx.json"), "export ucx");
    let keys = |more: &[&str]| -> Vec<String> {
        let text = answer(&[&["export", "ucx", "bluefield2"], more].concat());
        let keys: Vec<String> =
            text.lines().filter(|line| !line.starts_with('#')).map(str::to_string).collect();
        for key in ["UCX_RC_PATH_MTU", "UCX_RC_MAX_RD_ATOMIC", "UCX_RC_TX_QUEUE_LEN", "UCX_RNDV_THRESH"] {
            let is_written = keys.iter().any(|line| line.starts_with(key));
            assert!(is_written != text.contains(&format!("# not written: {key}: ")), "{key}: {text}");
        }
        keys
    };
    // The testbed's MTU is a guess, and 8 requests ahead are enough.
    assert_eq!(keys(&[]), ["UCX_RC_MAX_RD_ATOMIC=16"]);
    let set = ["--set", "client.nic.outstanding_reads=4", "--set", "network.mtu=4KiB"];
    assert_eq!(keys(&set), ["UCX_RC_PATH_MTU=4096", "UCX_RC_MAX_RD_ATOMIC=4"]);
    // A card that is a port has no verbs to be configured.
    let port = offpath(&["export", "ucx", "stingray"]);
    assert!(port.code == 2 && port.stderr.contains("stingray has no verbs"), "{}", port.stderr);
    // Far away, many have to be ahead.
    let far = keys(&["--set", "network.delay=200us"]);
    let ahead: u64 =
        far[1].strip_prefix("UCX_RC_TX_QUEUE_LEN=").and_then(|n| n.parse().ok()).expect("a depth");
    assert!(ahead > 256 && ahead.is_power_of_two(), "{far:?}");
}
