//! `offpath watch` as its users see it.

use crate::common::{check, in_columns, json, offpath, said, schema, unbroken, wide_answer};
use offpath::answers::watch::{WatchRequest, Watcher};
use proptest::prelude::*;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

const DESIGN: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store.toml");
const COUNTERS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/counters-host.txt");

/// The plan of a small store, as it is saved.
fn plan() -> &'static Value {
    static PLAN: OnceLock<Value> = OnceLock::new();
    PLAN.get_or_init(|| json(&["plan", DESIGN]))
}

/// A folder with the plan in it, and the plan's name.
fn saved() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("plan.json");
    fs::write(&file, plan().to_string()).expect("a file");
    let name = file.display().to_string();
    (folder, name)
}

fn file(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

fn at<'a>(list: &'a str, station: &str, endpoint: &str) -> &'a Value {
    let found = plan()["traffic"][list]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["endpoint"] == endpoint && (list == "endpoints" || one["station"] == station));
    found.unwrap_or_else(|| panic!("{list} has {station} of {endpoint}"))
}

fn number(value: &Value) -> f64 {
    value.as_f64().expect("a number")
}

/// Readings of the host ten seconds apart, as the plan has it at `rate` requests a second with payloads of so many times its own.
fn readings(rate: f64, payload: f64) -> String {
    let reads = number(&at("endpoints", "", "host")["reads_per_request"]);
    let out = at("links", "nic.transmit", "host");
    let packets = number(&out["packets_per_request"]);
    let bytes = payload * number(&out["payload_bytes_per_request"]) + 62.0 * packets;
    let counted = |per_request: f64, worth: f64| (10.0 * rate * per_request / worth) as u64;
    let folder = "/sys/class/infiniband/nic_0/ports/1";
    format!(
        "time 1700000000.5\n{folder}/hw_counters/rx_read_requests:77\n{folder}/counters/port_xmit_packets:1000\n\
         {folder}/counters/port_xmit_data:5\n\
         time 1700000010.5\n{folder}/hw_counters/rx_read_requests:{}\n{folder}/counters/port_xmit_packets:{}\n\
         {folder}/counters/port_xmit_data:{}\n",
        77 + counted(reads, 1.0),
        1000 + counted(packets, 1.0),
        5 + counted(bytes, 4.0),
    )
}

#[test]
fn counters_are_held_to_a_plan() {
    let (folder, plan_file) = saved();
    let rate = number(&plan()["traffic"]["req_per_s"]);
    let healthy = file(folder.path(), "healthy.txt", &readings(rate, 1.0));
    let watch = |more: &[&str]| offpath(&[&["watch", "--expect", &plan_file], more].concat());
    let found = watch(&[&healthy, "--format", "json"]);
    assert_eq!((found.code, &*found.stderr), (0, ""), "{}", found.stdout);
    let found: Value = serde_json::from_str(&found.stdout).expect("JSON");
    check(&found, &schema("watch.json"), "watch");
    let interval = &found["intervals"][0];
    assert_eq!((&interval["rate_basis"], &interval["length_s"]), (&"observed".into(), &10.0.into()));
    assert!((number(&interval["observed_req_per_s"]) / rate - 1.0).abs() < 1e-3, "{interval}");
    assert!(found["not_spoken_of"].to_string().contains("cpu"), "{found}");
    let text = wide_answer(&["watch", "--expect", &plan_file, &healthy]);
    assert!(
        text.contains("Plan and card agree.") && text.contains("What no counter here speaks of"),
        "{text}"
    );
    // Payloads of four times the design's are the first difference.
    let large = file(folder.path(), "large.txt", &readings(rate, 4.0));
    let found = watch(&[&large]);
    assert_eq!(found.code, 1);
    assert!(
        found.stdout.contains("Plan and card differ:\nport_xmit_data at nic.transmit:"),
        "{}",
        found.stdout
    );
    // A tenth of the load differs, but where as much was asked for.
    let idle = file(folder.path(), "idle.txt", &readings(rate / 10.0, 1.0));
    assert_eq!(watch(&[&idle]).code, 1);
    let asked = format!("{}/s", (rate / 10.0).round());
    assert_eq!(watch(&[&idle, "--rate", &asked]).code, 0, "{}", watch(&[&idle, "--rate", &asked]).stdout);
    // A device that no reading has is refused with those that there are.
    let refused = watch(&[&healthy, "--nic", "nic_7"]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("`nic_7`") && refused.stderr.contains("nic_0"), "{}", refused.stderr);
    assert_eq!(watch(&[&healthy, "--nic", "nic_0"]).code, 0);
    // Of ethtool's counters nothing says whose they are.
    let both = readings(rate, 1.0)
        .replace("time 1700000010.5", "NIC statistics:\n     rx_packets_phy: 1\ntime 1700000010.5")
        + "NIC statistics:\n     rx_packets_phy: 5000000000\n";
    let both = file(folder.path(), "both.txt", &both);
    assert_eq!(watch(&[&both]).code, 1, "it is added");
    let found = watch(&[&both, "--nic", "nic_0"]);
    assert_eq!(found.code, 0, "{}", found.stdout);
    assert!(found.stdout.contains("1 counters whose device no reading tells"), "{}", found.stdout);
}

/// An acceptance test is not passed by what has lost packets, and is by a port that holds senders back.
#[test]
fn loss_fails_what_agrees_in_rates() {
    let (folder, plan_file) = saved();
    let rate = number(&plan()["traffic"]["req_per_s"]);
    let with = |counter: &str| {
        let line = |count: u64| format!("/sys/class/infiniband/nic_0/ports/1/{counter}:{count}\n");
        let text =
            readings(rate, 1.0).replace("time 1700000010.5\n", &format!("{}time 1700000010.5\n", line(3)));
        let name = file(folder.path(), "trouble.txt", &(text + &line(30)));
        offpath(&["watch", "--expect", &plan_file, &name])
    };
    for (counter, code, said) in [
        ("hw_counters/out_of_sequence", 1, "agree in what they move, and packets were lost or came again."),
        ("counters/port_rcv_errors", 1, "2.70/s packets with errors"),
        ("counters/port_xmit_wait", 0, "Plan and card agree."),
    ] {
        let found = with(counter);
        assert_eq!(found.code, code, "{counter}: {}{}", found.stdout, found.stderr);
        let words = found.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains(said), "{counter}: {words}");
    }
}

/// Nor by what nobody can say: a counter of loss that fell, or that one of both readings lacks.
#[test]
fn loss_that_is_not_known_is_no_agreement() {
    let (folder, plan_file) = saved();
    let rate = number(&plan()["traffic"]["req_per_s"]);
    let line =
        |count: u64| format!("/sys/class/infiniband/nic_0/ports/1/hw_counters/out_of_sequence:{count}\n");
    let of = |before: Option<u64>, after: Option<u64>| {
        let [before, after] = [before, after].map(|count| count.map(line).unwrap_or_default());
        let text =
            readings(rate, 1.0).replace("time 1700000010.5\n", &format!("{before}time 1700000010.5\n"));
        let name = file(folder.path(), "loss.txt", &(text + &after));
        let found = offpath(&["watch", "--expect", &plan_file, &name]);
        (found.code, found.stdout.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    for (before, after, said) in [
        (None, Some(70_000), "stands at 70000, and the reading before lacks it"),
        (Some(7), Some(3), "fell from 7 to 3"),
        (Some(7), None, "stood at 7, and the next reading lacks it"),
    ] {
        let (code, text) = of(before, after);
        assert!(code == 1 && text.contains(said), "{before:?} to {after:?}: {code}: {text}");
        // One that fell puts all of its device in doubt.
        let verdict = match before.is_some() && after.is_some() {
            true => "Nothing could be compared",
            false => "whether packets were lost is not known",
        };
        assert!(text.contains(verdict), "{text}");
    }
    // And one whose file has no number at all.
    let line = "/sys/class/infiniband/nic_0/ports/1/counters/symbol_error:N/A (no PMA)\n";
    let text =
        readings(rate, 1.0).replace("time 1700000010.5\n", &format!("{line}time 1700000010.5\n")) + line;
    let found = offpath(&["watch", "--expect", &plan_file, &file(folder.path(), "loss.txt", &text)]);
    let text = found.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        found.code == 1 && text.contains("symbol_error of nic_0: no rate: its file holds no number"),
        "{text}"
    );
    assert!(text.contains("whether packets were lost is not known"), "{text}");
    assert_eq!(of(Some(7), Some(7)).0, 0);
    assert_eq!(of(None, Some(0)).0, 0);
}

/// A store that sends every request to the host at the rate of those that should have come there shows the same counters.
#[test]
fn what_the_observed_rate_takes_for_granted_is_said() {
    let (folder, plan_file) = saved();
    let rate = number(&plan()["traffic"]["req_per_s"]);
    let healthy = file(folder.path(), "healthy.txt", &readings(rate, 1.0));
    let interval = |more: &[&str]| {
        let answer = json(&[&["watch", "--expect", &plan_file, &healthy], more].concat());
        answer["intervals"][0].clone()
    };
    let served = number(&at("endpoints", "", "host")["reads_per_request"]);
    let presumed = number(&interval(&[])["presumed_served_per_request"]);
    assert!(served < 1.0 && (presumed / served - 1.0).abs() < 1e-9, "{presumed} of {served}");
    let given = interval(&["--rate", &format!("{rate}/s")]);
    assert!(given["presumed_served_per_request"].is_null(), "{given}");
    let text = wide_answer(&["watch", "--expect", &plan_file, &healthy]);
    assert!(text.contains("taken from the plan: that a request asks"), "{text}");
    // All of the requests at the host, at the rate that reaches it: the rate that is given tells.
    let reaching = format!("{}/s", (rate * served).round());
    let found = offpath(&["watch", "--expect", &plan_file, &healthy, "--rate", &reaching]);
    assert_eq!(found.code, 1, "{}", found.stdout);
}

#[test]
fn what_is_no_plan_or_no_reading_is_refused() {
    let (folder, plan_file) = saved();
    let healthy = file(folder.path(), "healthy.txt", &readings(1e6, 1.0));
    let refused = |arguments: &[&str], code: i32, said: &str| {
        let found = offpath(&[&["watch"], arguments].concat());
        let stderr = unbroken(&found.stderr);
        assert_eq!(found.code, code, "{arguments:?}: {stderr}{}", found.stdout);
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    };
    let changed = |name: &str, change: &dyn Fn(&mut Value)| {
        let mut plan = plan().clone();
        change(&mut plan);
        file(folder.path(), name, &plan.to_string())
    };
    for (name, said, change) in [
        ("a", "is 0 or more", (|plan| plan["traffic"]["req_per_s"] = (-1.0).into()) as fn(&mut Value)),
        ("b", "missing field", |plan| {
            plan.as_object_mut().expect("an object").remove("traffic");
        }),
        ("c", "carries 0 Gbit/s", |plan| plan["traffic"]["links"][0]["capacity_gbit_per_s"] = 0.0.into()),
        ("l", "names no link that they pass", |plan| plan["traffic"]["links"] = serde_json::json!([])),
        ("d", "no machine has", |plan| plan["traffic"]["endpoints"][0]["machines"] = 0.into()),
        ("e", "`schema_version` is 0", |plan| plan["schema_version"] = 0.into()),
        ("f", "several scenarios", |plan| {
            *plan = serde_json::json!({ "schema_version": 1, "scenarios": [] })
        }),
        ("g", "invalid type", |plan| plan["twin"]["utilization"]["nic.cores"] = "much".into()),
        ("h", "names no endpoint", |plan| plan["traffic"]["endpoints"] = Value::Array(Vec::new())),
    ] {
        refused(&["--expect", &changed(name, &change), &healthy], 2, said);
    }
    let text = file(folder.path(), "text.json", "a plan");
    refused(&["--expect", &text, &healthy], 2, "is no saved plan: it is not JSON");
    refused(&["--expect", "no-such.json", &healthy], 2, "cannot be read");
    refused(&["--expect", &plan_file, "no-such.txt"], 2, "cannot be read");
    refused(&["--expect", &plan_file, &healthy, "--at", "hots"], 2, "did you mean `host`?");
    refused(&["--expect", &plan_file, &healthy, "--rate", "0/s"], 2, "above 0");
    refused(&["--expect", &plan_file, &healthy, "--interval", "1s"], 2, "cannot be used with");
    refused(&["--expect", &plan_file, "--interval", "1ns"], 2, "an interval is from 10 ms");
    refused(&["--expect", &plan_file, &healthy, "--set", "soc.pcie_mtu=512B"], 2, "has no effect");
    let whole = readings(1e6, 1.0);
    let (before, after) = whole.split_at(whole.rfind("time ").expect("a time"));
    let back = file(folder.path(), "back.txt", &format!("{after}{before}"));
    refused(&["--expect", &plan_file, &back], 2, "10 s before the reading above it");
    let [before, after] =
        [("before.txt", before), ("after.txt", after)].map(|(name, text)| file(folder.path(), name, text));
    assert_ne!(
        offpath(&["watch", "--expect", &plan_file, &after, &before]).code,
        2,
        "files go by their times"
    );
    let untimed =
        file(folder.path(), "untimed.txt", "/sys/class/infiniband/a/ports/1/counters/port_rcv_data:5\n");
    refused(&["--expect", &plan_file, &untimed], 1, "1 counters say no time");
    // A machine without a card says where it looked; one with a card is watched for a moment.
    let has_card = Path::new("/sys/class/infiniband").read_dir().is_ok_and(|mut all| all.next().is_some());
    if !has_card {
        refused(
            &["--expect", &plan_file, "--count", "1"],
            1,
            "/sys/class/infiniband/*/ports/*/hw_counters/*",
        );
    }
    refused(&["--expect", &plan_file, "--format", "json"], 2, "without `--count` watching has no end");
}

/// docs/watch.md has what the example prints.
#[test]
fn the_example_of_the_page_is_what_is_printed() {
    let (_folder, plan_file) = saved();
    let found = offpath(&["watch", "--expect", &plan_file, COUNTERS]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let page = include_str!("../../../docs/watch.md");
    let begin =
        "$ offpath watch --expect plan.json crates/offpath/tests/data/counters-host.txt --rate 10M/s\n";
    let printed = page.split(begin).nth(1).and_then(|rest| rest.split("```").next()).expect("the example");
    let found = in_columns(&["watch", "--expect", &plan_file, COUNTERS, "--rate", "10M/s"], None);
    assert_eq!(found.stdout, printed, "docs/watch.md");
}

/// Places of a value that are numbers, lists or objects, by their pointers.
fn places(value: &Value, at: &str, found: &mut Vec<String>) {
    found.push(at.to_string());
    match value {
        Value::Object(pairs) => {
            pairs.iter().for_each(|(key, one)| places(one, &format!("{at}/{key}"), found))
        }
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(index, one)| places(one, &format!("{at}/{index}"), found));
        }
        _ => {}
    }
}

/// A plan of one machine, as small as one can be.
fn small_plan() -> Value {
    serde_json::json!({
        "schema_version": plan()["schema_version"],
        "design": "a", "device": "b", "testbed": "c", "mode": "d", "overlays": [],
        "traffic": {
            "req_per_s": 1e6, "req_per_s_low_80": 5e5, "req_per_s_high_80": 2e6,
            "links": [at("links", "nic.transmit", "host")],
            "endpoints": [at("endpoints", "", "host"), at("endpoints", "", "soc")],
        },
        "twin": { "utilization": { "nic.cores": 0.5 } },
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a saved plan holds, it is refused or watched, and what is watched is told.
    #[test]
    fn any_plan_is_refused_or_watched(
        index in any::<prop::sample::Index>(),
        with in prop_oneof![
            Just(Value::Null), Just(Value::from(-1)), Just(Value::from(0)), Just(Value::from(1e308)),
            Just(Value::from(u64::MAX)), Just(Value::from("x")), Just(serde_json::json!([])), Just(serde_json::json!({})),
        ],
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut plan = small_plan();
        let mut all = Vec::new();
        places(&plan, "", &mut all);
        *plan.pointer_mut(&all[index.index(all.len())]).expect("it is there") = with;
        let mut text = plan.to_string();
        if let Some(cut) = cut {
            text.truncate(cut.index(text.len() + 1));
        }
        let folder = tempfile::tempdir().expect("a folder");
        let expect = folder.path().join("plan.json");
        fs::write(&expect, text).expect("a file");
        if let Ok(mut watcher) = Watcher::new(&WatchRequest { expect, ..WatchRequest::default() }) {
            watcher.read_text(&readings(1e6, 1.0));
            let answer = watcher.answer(Vec::new());
            prop_assert_eq!(answer.intervals.len(), 1);
            prop_assert!(serde_json::to_string(&answer).is_ok());
        }
    }
}

/// A plan of a device that is not there is refused with those that are; one of a file is held to the file.
#[test]
fn a_plan_of_an_unknown_device_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let readings = file(folder.path(), "healthy.txt", &readings(1e6, 1.0));
    let watched = |change: &dyn Fn(&mut Value)| {
        let mut changed = plan().clone();
        change(&mut changed);
        let saved = file(folder.path(), "plan.json", &changed.to_string());
        let found = offpath(&["watch", "--expect", &saved, "--rate", "1M/s", &readings]);
        (found.code, said(&found))
    };
    let (code, said) = watched(&|plan| plan["device"] = "bluefeild2".into());
    assert_eq!(code, 2, "{said}");
    assert!(
        said.contains("`bluefeild2`") && said.contains("did you mean") && said.contains("bluefield2"),
        "{said}"
    );
    // A card of the user's is known by its file, which may lie on another machine.
    let own = folder.path().join("own.toml").display().to_string();
    let with_file = |name: &'static str| {
        let own = own.clone();
        move |plan: &mut Value| {
            plan["device"] = name.into();
            plan["options"] = serde_json::json!(["--device", own]);
        }
    };
    let (code, said) = watched(&with_file("own"));
    assert_ne!(code, 2, "{said}");
    let made = offpath(&["new", "device", "own", "--base", "bluefield2", "--out", &own]);
    assert_eq!(made.code, 0, "{}", made.stderr);
    let (code, said) = watched(&with_file("own"));
    assert_ne!(code, 2, "{said}");
    let (code, said) = watched(&with_file("another"));
    assert!(code == 2 && said.contains("`another`") && said.contains("describes `own`"), "{code}: {said}");
}
