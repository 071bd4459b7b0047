//! `offpath relay` and `offpath shard` as their users see them, without a server.

#![cfg(feature = "redis")]

mod common;

use std::fs;

fn offpath(arguments: &[&str]) -> (i32, String, String) {
    let common::Answer { code, stdout, stderr } = common::offpath(arguments);
    (code, stdout, stderr)
}

#[test]
fn a_relays_configuration_is_checked_with_its_files() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("relay.toml");
    let password = folder.path().join("password");
    let text = format!(
        "[master]\naddress = 'h:1'\n[listen]\naddress = '127.0.0.1:2'\n[[user]]\nname = 'default'\npassword_file = '{}'\n",
        password.display()
    );
    fs::write(&file, &text).expect("the file is written");
    let check =
        |file: &std::path::Path| offpath(&["relay", "--check", "--config", &file.display().to_string()]);
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("password"), "{message}");
    fs::write(&password, "secret\n").expect("the file is written");
    assert_eq!(check(&file).0, 0);
    fs::write(&file, text.replace("[listen]", "[lissen]")).expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("lissen"), "{message}");
    let (code, _, message) =
        offpath(&["relay", "--check", "--master", "h:1", "--listen", "h:2", "--backlog", "1B"]);
    assert!(code == 2 && message.contains("limits.backlog = 1B"), "{message}");
    assert_eq!(offpath(&["relay", "--master", "h:1"]).0, 2, "`--listen` is missing");
    // A file may leave out what the command line gives.
    fs::write(&file, "[limits]\ngather = '1ms'\n").expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("`master.address` is not set"), "{message}");
    let file = file.display().to_string();
    let given = ["relay", "--check", "--config", &file, "--master", "h:1", "--listen", "127.0.0.1:2"];
    assert_eq!(offpath(&given).0, 0);
}

#[test]
fn a_plan_shares_all_slots() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("shards.toml").display().to_string();
    let plan = ["shard", "plan", "host=h:1=300", "soc=c:2=100", "--format", "json", "--out", &file];
    let (code, answer, message) = offpath(&plan);
    assert_eq!(code, 0, "{message}");
    let answer: serde_json::Value = serde_json::from_str(&answer).expect("JSON");
    let slots: Vec<u64> = (0..2).filter_map(|index| answer["endpoint"][index]["slots"].as_u64()).collect();
    assert_eq!(slots, [12_288, 4_096]);
    assert!(fs::read_to_string(&file).expect("the plan was written").contains("slots = 12288"));
    // A device gives ratios alone.
    let (code, answer, message) =
        offpath(&["shard", "plan", "host=h:1=100", "soc=c:2", "--device", "bluefield2"]);
    assert!(code == 0 && answer.contains("soc"), "{message}");
    for (arguments, reason) in [
        (&["host=h:1"][..], "its rate is unknown"),
        (&["host=h:1=x"], "no number"),
        (&["host=h:1=0"], "above 0"),
        (&["host=h"], "rate is unknown"),
        (&["a=h:1=1", "b=h:1=1"], "named once"),
        (&["a=h:1", "b=h:1=1", "--device", "bluefield2"], "no endpoint before"),
    ] {
        let (code, _, message) = offpath(&[&["shard", "plan"], arguments].concat());
        assert!(code == 2 && message.contains(reason), "{arguments:?}: {message}");
    }
}
