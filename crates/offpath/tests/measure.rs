//! `offpath measure` as its users see it.

use crate::common::{check, json, offpath, said, schema, wide_answer};
use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// A few points of one path.
const FEW: [&str; 9] =
    ["measure", "twin:bluefield2", "--path", "client-host", "--verb", "read,send", "--size", "64B", "--qps"];

fn few<'a>(more: &[&'a str]) -> Vec<&'a str> {
    [&FEW[..], &["2"], more].concat()
}

#[test]
fn a_suite_is_listed_measured_and_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.jsonl").display().to_string();
    let listed = json(&few(&["--list"]));
    check(&listed, &schema("measure-list.json"), "measure --list");
    let names = |answer: &serde_json::Value| -> Vec<String> {
        let points = answer["points"].as_array().expect("a list").iter();
        points.map(|point| point["point"].as_str().expect("a name").to_string()).collect()
    };
    let measured = offpath(&few(&["-o", &file, "--format", "json"]));
    assert_eq!(measured.code, 0, "{}", measured.stderr);
    let found: serde_json::Value = serde_json::from_str(&measured.stdout).expect("the answer is JSON");
    check(&found, &schema("measure.json"), "measure");
    assert_eq!(names(&listed), names(&found));
    let text = wide_answer(&few(&["-o", &file]));
    for wanted in [
        "Latency",
        "Throughput",
        "both directions",
        "4 threads",
        "beside client-host:send",
        "of virtual time",
    ] {
        assert!(text.contains(wanted), "{wanted}:\n{text}");
    }
    let again = offpath(&few(&["-o", &file]));
    let count = names(&found).len();
    assert!(said(&again).contains(&format!("{count} points, {count} of them kept")), "{}", again.stderr);
    // Three windows and a seed are in the stamp; what identifies the machine is not.
    let first = fs::read_to_string(&file).expect("it is there");
    let stamp: serde_json::Value = serde_json::from_str(first.lines().next().expect("a line")).expect("JSON");
    assert_eq!(
        (&stamp["windows"], &stamp["seed"], &stamp["device"]),
        (&3.into(), &1.into(), &"bluefield2".into())
    );
    let imported = json(&["import", &file]);
    assert_eq!(imported["files"][0]["unknown_lines"], 0);
    assert_eq!(imported["files"][0]["measured_lines"], count);
}

/// A program that is killed in the middle loses the running point, and the same command makes the file whole.
#[test]
fn what_was_killed_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("a.jsonl");
    let shown = file.display().to_string();
    let arguments = ["measure", "twin:bluefield2", "--path", "client-host", "--verb", "read", "-o", &shown];
    let mut child = Command::new(env!("CARGO_BIN_EXE_offpath"))
        .args(arguments)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let began = Instant::now();
    let lines = || fs::read_to_string(&file).map_or(0, |text| text.lines().count());
    while lines() < 4 && child.try_wait().expect("it is ours").is_none() {
        assert!(began.elapsed() < Duration::from_secs(120), "{} lines", lines());
        std::thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    let before = fs::read_to_string(&file).expect("it is there");
    let whole = before.rfind('\n').map_or("", |end| &before[..=end]);
    assert!(whole.lines().count() >= 4, "{before}");
    let ended = offpath(&arguments);
    assert_eq!(ended.code, 0, "{}", ended.stderr);
    let after = fs::read_to_string(&file).expect("it is there");
    assert!(after.starts_with(whole), "what was on the disk stays");
    let names: Vec<&str> = after.lines().filter_map(|line| line.split('"').nth(3)).collect();
    let mut once = names.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), names.len(), "no point stands twice");
}

#[test]
fn what_cannot_be_measured_is_refused_with_a_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("other.txt");
    fs::write(&other, "notes\n").expect("it can be written");
    let other = other.display().to_string();
    // A letter of two bytes lies across the place where the beginning of a stamp ends.
    let torn = folder.path().join("torn.jsonl");
    fs::write(&torn, "aaaaaaaaaaaaaaaaa\u{e9}").expect("it can be written");
    let torn = torn.display().to_string();
    for (arguments, wanted) in [
        (&["measure", "local"][..], "the local backend has no card to measure"),
        (&["measure", "cloud"], "there are the backends"),
        (&["measure", "twin:no-such-card"], "no-such-card"),
        (&["measure", "twin:bluefield2", "--connect", "10.0.0.1:7000"], "--connect is about another process"),
        (&["measure", "twin:bluefield2", "--listen", "10.0.0.1:7000"], "--listen is about another process"),
        (&["measure", "twin:bluefield2", "--path", "client-moon"], "moon"),
        (&["measure", "twin:bluefield2", "--path", "soc-host-dma"], "carried by no queue pairs"),
        (&["measure", "twin:bluefield2", "--verb", "load"], "no run of the suite is of load"),
        (&["measure", "twin:stingray"], "stingray has no verbs"),
        (&["measure", "twin:bluefield2", "--qps", "0"], "whole number from 1 to 1024"),
        (&["measure", "twin:bluefield2", "--windows", "0"], "whole number from 1 to 1000"),
        (&["measure", "twin:bluefield2", "--list", "-o", "a.jsonl"], "cannot be used with"),
        (&["measure", "verbs:no-such-device", "--set", "network.delay=1us"], "only the twin has one"),
        (&["measure", "verbs:no-such-device"], "or take the twin"),
        (&["measure", "twin:bluefield2", "-o", &other], "none of `offpath measure`"),
        (&["measure", "twin:bluefield2", "-o", &torn], "none of `offpath measure`"),
        (&["measure", "twin:bluefield2", "-o", "."], "is a directory"),
        (&["measure", "twin:bluefield2", "-o", "no/such/folder/a.jsonl"], "cannot write"),
        (&["measure", "twin:bluefield2", "--suggest", "no-such-design.toml"], "no-such-design.toml"),
        (&["measure", "verbs:mlx5_0", "--suggest", "no-such-design.toml"], "twin:mycard.toml --suggest"),
    ] {
        let refused = offpath(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
        assert!(said(&refused).contains(wanted), "{arguments:?}: {}", refused.stderr);
    }
    assert_eq!(fs::read_to_string(&other).expect("it is there"), "notes\n");
    // What is refused is not offered either.
    let unknown = said(&offpath(&["measure", "cloud"]));
    assert!(unknown.contains("twin:DEVICE") && !unknown.contains("`local`"), "{unknown}");
}

#[test]
fn runs_that_narrow_a_plan_are_named_with_their_options() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store.toml");
    let arguments = ["measure", "twin:bluefield2", "--suggest", design, "--size", "64B,4KiB"];
    let answer = offpath(&[&arguments[..], &["--format", "json"]].concat());
    assert_eq!((answer.code, &*answer.stderr), (0, ""), "{}", answer.notes);
    for phase in ["plans of the design (1 step)", "numbers that runs may tell ("] {
        assert!(answer.notes.contains(&format!("note: at work: {phase}")), "{}", answer.notes);
    }
    let found: serde_json::Value = serde_json::from_str(&answer.stdout).expect("the answer is JSON");
    check(&found, &schema("measure-suggest.json"), "measure --suggest");
    let runs = found["runs"].as_array().expect("a list");
    let untold = found["untold"].as_array().expect("a list");
    assert!(!runs.is_empty() && runs.len() + untold.len() <= 5, "{found}");
    for run in runs {
        assert!(run["moves_plan"].as_f64() >= Some(0.01) && run["moves_run"].as_f64() >= Some(0.01), "{run}");
        // The options are those of a suite that has the run.
        let options: Vec<&str> = run["options"].as_str().expect("words").split_whitespace().collect();
        let listed = json(&[&["measure", "twin:bluefield2", "--list"], &options[..]].concat());
        let points = listed["points"].as_array().expect("a list");
        assert!(points.iter().any(|point| point["point"] == run["point"]), "{run}");
    }
    let order: Vec<f64> = runs.iter().filter_map(|run| run["moves_plan"].as_f64()).collect();
    assert!(order.windows(2).all(|pair| pair[0] >= pair[1]), "{order:?}");
}
