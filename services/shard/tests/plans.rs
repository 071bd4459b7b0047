//! `offpath-shard` as its users see it, without a server.

#[path = "../../../crates/offpath/tests/common/mod.rs"]
mod common;

use std::fs;

fn offpath(arguments: &[&str]) -> (i32, String, String) {
    let common::Answer { code, stdout, stderr, .. } = common::offpath(arguments);
    (code, stdout, stderr)
}

/// What says which system is meant changes nothing where no system is asked about.
#[test]
fn options_of_a_system_are_refused_where_none_is_asked_about() {
    for command in
        [&["status", "h:1"][..], &["route", "key", "--at", "h:1"], &["mongo", "status", "map.toml"]]
    {
        for option in
            ["--set=soc.cores=1", "--mode=nic", "--overlay=one-pool", "--testbed=sun", "--profiles=."]
        {
            let (code, _, message) = offpath(&[command, &[option]].concat());
            let (name, _) = option.split_once('=').expect("it has a value");
            assert!(code == 2 && message.contains(&format!("{name} has no effect")), "{message}");
        }
    }
}

#[test]
fn a_plan_shares_all_slots() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("shards.toml").display().to_string();
    let plan = ["plan", "host=h:1=300", "soc=c:2=100", "--format", "json", "--out", &file];
    let (code, answer, message) = offpath(&plan);
    assert_eq!(code, 0, "{message}");
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    let slots: Vec<u64> = (0..2).filter_map(|index| answer["endpoint"][index]["slots"].as_u64()).collect();
    assert_eq!(slots, [12_288, 4_096]);
    assert!(fs::read_to_string(&file).expect("the plan was written").contains("slots = 12288"));
    // A device gives ratios alone.
    let (code, answer, message) = offpath(&["plan", "host=h:1=100", "soc=c:2", "--device", "bluefield2"]);
    assert!(code == 0 && answer.contains("soc"), "{message}");
    for (arguments, reason) in [
        (&["host=h:1"][..], "its rate is unknown"),
        (&["host=h:1=x"], "is not a number"),
        (&["host=h:1=0"], "above 0"),
        (&["host=h"], "rate is unknown"),
        (&["a=h:1=1", "b=h:1=1"], "named once"),
        (&["a=h:1", "b=h:1=1", "--device", "bluefield2"], "no endpoint before"),
        (&["host=h:1=1", "--set", "soc.cores=1"], "--set has no effect on `offpath shard plan` without"),
    ] {
        let (code, _, message) = offpath(&[&["plan"], arguments].concat());
        assert!(code == 2 && message.contains(reason), "{arguments:?}: {message}");
    }
}

#[test]
fn slips_about_servers_are_refused_with_their_reason() {
    for (line, words) in [
        ("plan a=127.0.0.1:1=100 a=127.0.0.1:2=100", "name of another endpoint"),
        ("plan a=127.0.0.1:1=1e300", "from 0 to 1e12 requests/s"),
        ("plan a=127.0.0.1:1=-5", "from 0 to 1e12 requests/s"),
        ("plan a=127.0.0.1:1=NaN", "from 0 to 1e12 requests/s"),
        ("status here", "HOST:PORT"),
        ("route key --at here", "HOST:PORT"),
        ("apply Cargo.toml", "`Cargo.toml` is not a plan of shares"),
    ] {
        let (code, out, message) = offpath(&line.split(' ').collect::<Vec<_>>());
        assert!(code == 2 && out.is_empty() && message.contains(words), "{line}: {message}");
    }
}
