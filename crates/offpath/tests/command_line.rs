//! The command line as its users see it: answers, JSON keys, exit codes, refusals.
//!
//! `INSTA_UPDATE=always cargo test --release -p offpath` accepts new tables after a change of the profiles.

use crate::common::{answer, check, json, offpath, page, schema, timed_json, wide_answer};
use offpath::answers::explain::ExplainRequest;
use offpath::answers::reproduce::ReproduceRequest;
use offpath_terminal::output::rounded_json;
use serde_json::Value;
use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

/// An invented card whose links make a ring.
const RING: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/ring.toml");

const SOC_HOST: [&str; 8] =
    ["path", "bluefield2", "--path", "soc-host", "--verb", "read", "--size", "256KiB"];

#[test]
fn tables_say_what_they_said() {
    insta::assert_snapshot!("path", answer(&SOC_HOST));
    insta::assert_snapshot!(
        "path_send",
        answer(&["path", "bluefield2", "--path", "client-soc", "--verb", "send"])
    );
    insta::assert_snapshot!(
        "path_markdown",
        answer(&[&SOC_HOST[..], &["--format", "markdown", "--post", "batch:16"]].concat())
    );
    insta::assert_snapshot!("paths", answer(&["path", "bluefield2", "--verb", "write", "--size", "4KiB"]));
    insta::assert_snapshot!("device_list", answer(&["device", "list"]));
    insta::assert_snapshot!(
        "sweep",
        answer(&["sweep", "bluefield2", "--path", "client-soc,soc-host", "--clients", "1,4"])
    );
}

#[test]
fn a_device_is_drawn_from_its_graph_alone() {
    for (name, device) in [("drawing_bluefield2", "bluefield2"), ("drawing_ring", RING)] {
        let text = answer(&["device", "show", device]);
        let end = text.find("\nclient: ").expect("the server comes first");
        insta::assert_snapshot!(name, &text[..end]);
    }
}

/// What a plan of another design than the file's advises is looked at with the same options, and written nowhere.
#[test]
fn advice_for_a_what_if_names_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("facts.toml");
    let text = r#"
        [design]
        name = "facts"
        description = "a copy by RDMA that the engine does better"
        device = "bluefield2"
        objective = "most-throughput"
        rank_by = "throughput"
        [parameters]
        size = "64 B"
        [[alternative]]
        name = "read"
        description = "READ"
        request = [{ read = "soc-host", bytes = "size" }]
    "#;
    fs::write(&file, text).expect("written");
    let file = file.to_str().expect("a path");
    let page = answer(&["plan", file]);
    assert!(page.contains("--fix writes it"), "{page}");
    let what_if = ["--parameter", "size=256 KiB", "--set", "soc.cores=4"];
    let page = answer(&[&["plan", file], &what_if[..]].concat());
    let page: String = page.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(page.contains("--parameter 'size=256 KiB' --set soc.cores=4 says more"), "{page}");
    assert!(!page.contains("--fix"), "{page}");
    // A fact fixes it: a link's rate, whose interval is none.
    assert!(page.contains("optimal rests on: pcie1.") && page.contains("pcie1.rate (datasheet)"), "{page}");
    assert!(page.contains("of the little that is uncertain"), "{page}");
    let checked = json(&[&["check", file], &what_if[..]].concat());
    assert!(checked["advice"].as_array().is_some_and(|all| !all.is_empty()), "{checked}");
    refuses(
        &["check", file, "--fix", "--parameter", "size=256 KiB"],
        &["--parameter size=256 KiB", "leave `--fix` out"],
    );
    refuses(
        &["check", file, "--fix", "--set", "soc.cores=4", "--mode", "embedded-cpu"],
        &["--set soc.cores=4 --mode embedded-cpu", "leave `--fix` out"],
    );
    assert_eq!(fs::read_to_string(file).expect("it is there"), text);
}

/// A run that ends while one of its operations still waits has measured its own end.
#[test]
fn a_run_that_measures_its_own_end_says_so() {
    let c = workload('c');
    let arguments = |more: &[&'static str]| -> Vec<String> {
        let fixed = [
            "run",
            "kv",
            "--on",
            "twin:bluefield2",
            "--workload",
            &c,
            "--placement",
            "A5-send",
            "--clients",
            "11",
        ];
        fixed.iter().chain(more).map(ToString::to_string).collect()
    };
    let of = |more: &[&'static str]| {
        let arguments = arguments(more);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        offpath(&words)
    };
    let short = of(&["--sessions", "64"]);
    assert!(short.stderr.contains("most sessions had ended"), "{}", short.stderr);
    assert_eq!(of(&["--sessions", "16"]).stderr, "");
    assert_eq!(of(&["--sessions", "64", "--window", "5ms"]).stderr, "");
}

/// Requests that a full receive queue dropped are answered after the window: what did not end is told, and how busy
/// the stations were is of the window alone.
#[test]
fn a_run_tells_what_its_window_does_not_hold() {
    let c = workload('c');
    let run = |sessions| {
        let fixed = ["run", "kv", "--on", "twin:bluefield2", "--workload", &c, "--placement", "A5-send"];
        let load = ["--clients", "11", "--warm", "1000", "--cache", "10000", "--sessions", sessions];
        let window = ["--warm-up", "300us", "--window", "1ms", "--patience", "5ms"];
        [&fixed[..], &load, &window].concat()
    };
    let report = |sessions| {
        let report = json(&run(sessions));
        check(&report, &schema("run-kv.json"), "run-kv.json");
        report
    };
    let page = |sessions| wide_answer(&run(sessions));
    let (few, many) = (report("16"), report("128"));
    assert!(few["unanswered"].is_null(), "{few}");
    assert!(!page("16").contains("when the window ended"));
    let unanswered = &many["unanswered"];
    assert!(unanswered["sessions"].as_u64().is_some_and(|sessions| sessions > 900), "{many}");
    let rate = many["throughput_ops_per_s"].as_f64().expect("a rate");
    let mean_ns = unanswered["latency_ns_mean"].as_f64().expect("the measured mean is too low");
    assert!((mean_ns / (128.0 * 11.0 / rate * 1e9) - 1.0).abs() < 0.03, "{many}");
    let text = page("128");
    assert!(text.contains("sessions had no answer when the window ended, the oldest for"), "{text}");
    assert!(text.contains("lower bound: by Little's law the mean is"), "{text}");
    // The card's cores are full while it is measured, and idle while the others wait for their patience.
    assert_eq!(many["binding_station"], "soc.cpu", "{many}");
}

#[test]
fn a_scenario_that_is_refused_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("scenarios.toml");
    let text = r#"
        [design]
        name = "scenarios"
        description = "two that do not compete"
        device = "bluefield2"
        testbed = "rack"
        mode = "separated-host"
        objective = "most-throughput"
        rank_by = "unloaded-latency"
        [constraints]
        host_cpu_share = 0.0
        [[alternative]]
        name = "read"
        description = "one"
        scenario = "without the host"
        request = [{ read = "client-host", bytes = "64 B" }]
        [[alternative]]
        name = "served"
        description = "other"
        scenario = "by the host"
        request = [
            { send = "client-host", bytes = "64 B" }, { compute = "host", time = "1 us" },
            { send = "host-client", bytes = "64 B" },
        ]
    "#;
    fs::write(&file, text).expect("written");
    let ran = offpath(&["plan", file.to_str().expect("a path")]);
    let said = ran.stderr;
    assert_eq!(ran.code, 1, "{said}");
    assert!(said.contains("scenario `by the host`") && said.contains("`host_cpu_share` leaves 0"), "{said}");
}

#[test]
fn every_number_is_shown_with_its_origin() {
    let shown = json(&["device", "show", "bluefield2"]);
    let text = answer(&["device", "show", "bluefield2"]);
    let numbers = shown["numbers"].as_array().expect("numbers");
    assert!(numbers.len() > 100);
    // The backup is as the server, and its numbers are shown where they differ.
    let is_shown = |name: &str| !name.starts_with("backup.");
    for number in numbers {
        let name = number["name"].as_str().expect("a name");
        assert!(
            !is_shown(name) || text.lines().any(|line| line.trim_start().starts_with(&format!("{name} "))),
            "{name}"
        );
        assert_ne!(number["source"], "", "{name}");
    }
}

#[test]
fn json_answers_follow_their_schemas() {
    let cases: [(&str, &[&str]); 18] = [
        ("path.json", &SOC_HOST),
        ("path.json", &["path", "bluefield2", "--path", "client-soc", "--verb", "send-ud"]),
        ("path.json", &["path", RING, "--path", "client-arm", "--verb", "fetch-and-add"]),
        ("path.json", &["path", "bluefield3", "--path", "dpa-dpa:host", "--verb", "load", "--range", "8MiB"]),
        (
            "path.json",
            &["path", "liquidio-cn2350", "--path", "cores-cores", "--verb", "forward", "--size", "256B"],
        ),
        ("paths.json", &["path", "bluefield2", "--verb", "write"]),
        ("device-list.json", &["device", "list"]),
        ("device-show.json", &["device", "show", "bluefield2", "--mode", "nic"]),
        ("device-show.json", &["device", "show", RING, "--set", "arm.pcie_mtu=128B"]),
        ("sweep.json", &["sweep", "bluefield2", "--path", "client-host", "--operations", "1000"]),
        ("reproduce.json", &["reproduce"]),
        ("reproduce.json", &["reproduce", "W066", "W021"]),
        ("fit.json", &["fit", "--quick", "--check"]),
        ("explain.json", &["explain", "W003"]),
        ("explain.json", &["explain", "W087"]),
        ("explain.json", &["explain", "W243"]),
        ("torture.json", &["torture", "kv", "--seeds", "3"]),
        ("torture.json", &["torture", "replog", "--seeds", "3", "--threads", "1"]),
    ];
    for (file, arguments) in cases {
        check(&json(arguments), &schema(file), file);
    }
}

/// A verb is a row of one table, and its name may stand in every answer that has verbs.
#[test]
fn schemas_know_every_verb() {
    let names: Vec<&str> = offpath::route::VERBS.iter().map(|row| row.name).collect();
    let path = schema("path.json");
    let sweep = schema("sweep.json");
    for verb in [&path["properties"]["verb"], &sweep["properties"]["rows"]["items"]["properties"]["verb"]] {
        assert_eq!(verb["enum"], serde_json::json!(names));
    }
}

/// A store small enough to be planned in a moment, with a named mix and a plain NIC beside it.
const STORE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/store.toml");
/// The shipped replication with fewer points.
const LOG: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/log.toml");

#[test]
fn a_plan_says_what_it_said() {
    insta::assert_snapshot!("plan", page(&["plan", STORE]));
}

#[test]
fn plans_follow_their_schema() {
    let cases: [&[&str]; 4] = [
        &["plan", STORE],
        &["plan", STORE, "--goal", "lowest-p99", "--load", "20k/s"],
        &["plan", LOG, "--set", "soc.pcie_mtu=512B", "--overlay", "ideal-links", "--curve"],
        &["plan", LOG],
    ];
    for arguments in cases {
        let report = json(arguments);
        check(&report, &schema("plan.json"), "plan.json");
        let names = |key: &str| report[key].as_array().expect("a list").len();
        assert!(names("alternatives") >= 2 && names("mixes") == 1, "{arguments:?}");
        let key = if arguments[1] == LOG { "throughput_gbit_per_s" } else { "throughput_mreq_per_s" };
        for part in [&report["alternatives"][0], &report["mixes"][0], &report["greedy"], &report["twin"]] {
            assert!(part[key].as_f64().is_some_and(|rate| rate > 0.0), "{arguments:?}: {part}");
        }
        let shares = report["optimal"]["shares"].as_object().expect("shares").values();
        let total: f64 = shares.filter_map(Value::as_f64).sum();
        assert!((total - 1.0).abs() < 1e-3, "{arguments:?}: {total}");
    }
}

/// A twin that confirms nothing has no figure in any format: what it carried is an artefact of how many requests it runs.
#[test]
fn what_confirms_nothing_has_no_figure_in_json_either() {
    let (_folder, file, text) = written("{ read = \"client-host\", bytes = \"64 B\" }, { wait = \"1 ms\" }");
    let at_load = "objective = \"lowest-p99\"\noffered_load = \"4 M/s\"";
    fs::write(&file, text.replace("objective = \"most-throughput\"", at_load)).expect("it can be written");
    let path = file.to_str().expect("a UTF-8 path");
    let page = offpath(&["plan", path, "--curve", "--format", "json"]);
    let page: Value = serde_json::from_str(&page.stdout).expect("it is JSON");
    check(&page, &schema("plan.json"), "plan.json");
    let twin = &page["twin"];
    assert!(
        twin["difference"]["blind_because"].as_str().is_some_and(|why| why.contains("about 50")),
        "{twin}"
    );
    for key in ["latency_us_p50", "latency_us_p99"] {
        assert!(twin[key].is_null(), "{key}: {twin}");
    }
    let figures = ["throughput_mreq_per_s", "throughput_low_95_mreq_per_s", "throughput_high_95_mreq_per_s"];
    assert!(figures.iter().all(|key| twin.get(key).is_none()), "{twin}");
    assert_eq!(twin["utilization"].as_object().map(|all| all.len()), Some(0), "{twin}");
    let gap = &twin["difference"];
    assert!(
        gap["share"].is_null() && gap["fullest"].is_null() && gap.get("carried_mreq_per_s").is_none(),
        "{gap}"
    );
    assert!(page.get("lowest_p99").is_none(), "{page}");
    let checked = offpath(&["check", path, "--format", "json"]);
    let checked: Value = serde_json::from_str(&checked.stdout).expect("it is JSON");
    check(&checked, &schema("check.json"), "check.json");
    let gap = &checked["unconfirmed"];
    let none = ["carried_req_per_s", "carried_low_95_req_per_s", "difference_percent", "fullest"];
    assert!(none.iter().all(|key| gap[key].is_null()) && gap["blind_because"].is_string(), "{gap}");
}

/// A plain NIC runs what the design has for it, and the card's alternatives are left out there with the reason.
#[test]
fn devices_are_compared() {
    let both = ["compare", STORE, "--device", "bluefield2,connectx6"];
    insta::assert_snapshot!("compare", page(&both));
    let report = json(&both);
    check(&report, &schema("compare.json"), "compare.json");
    let rate = |at: usize| report["devices"][at]["plan"]["throughput_mreq_per_s"].as_f64().expect("a rate");
    let plan = json(&["plan", STORE]);
    assert_eq!(Some(rate(0)), plan["optimal"]["throughput_mreq_per_s"].as_f64(), "as its own plan has it");
    assert!(rate(1) > 0.0 && report["devices"][1]["plan"]["shares"]["rnic"].as_f64() == Some(1.0));
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("compare.html");
    answer(&[&both[..], &["--html", page.to_str().expect("a path")]].concat());
    assert!(fs::read_to_string(page).expect("it was written").contains("Unloaded latency"));
    for (devices, words) in [
        ("bluefield2", "compared with nothing"),
        ("bluefield2,bluefield2", "named twice"),
        ("bluefield2,bluefield9", "bluefield9"),
    ] {
        let refused = offpath(&["compare", STORE, "--device", devices]);
        assert!(refused.code == 2 && refused.stderr.contains(words), "{devices}: {}", refused.stderr);
    }
}

/// A host's slot that binds is named where a card's own link carries more, with both rates, and nowhere else.
#[test]
fn a_slot_that_binds_is_named_beside_a_faster_card() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/echo-headroom.toml");
    let of = |more: &[&str]| json(&[&["compare", design, "--device", "bluefield3,connectx7"], more].concat());
    let report = of(&[]);
    check(&report, &schema("compare.json"), "compare.json");
    let [slot] = &report["slower_slots"].as_array().expect("slots")[..] else { panic!("{report}") };
    assert_eq!(
        (&slot["link"], &slot["host"], &slot["card"]),
        (&"pcie0".into(), &"srv".into(), &"bluefield3".into())
    );
    assert_eq!(slot["binds"], serde_json::json!(["bluefield3", "connectx7"]));
    let rates = ["rate_gbit_per_s", "card_rate_gbit_per_s"].map(|key| slot[key].as_f64());
    assert_eq!(rates, [Some(256.0), Some(512.0)]);
    let said = "carries 256 Gbit/s and binds bluefield3 and connectx7, where bluefield3's own `pcie1` carries 512 Gbit/s";
    assert!(report["notes"].to_string().contains(said), "{}", report["notes"]);
    let faster = of(&["--set", "pcie0.rate=512Gbit/s"]);
    assert_eq!(faster["slower_slots"], serde_json::json!([]));
}

/// Suggestions and a change of one's own stand in one table, each as a plan with it has it.
#[test]
fn a_card_is_tried_with_changes() {
    let asked = ["whatif", STORE, "--set", "nic.inflight_slots=284"];
    insta::assert_snapshot!("whatif", page(&asked));
    let report = json(&asked);
    check(&report, &schema("whatif.json"), "whatif.json");
    let change = |name: &str| {
        let changes = report["changes"].as_array().expect("changes");
        changes.iter().find(|one| one["name"] == name).unwrap_or_else(|| panic!("{name} is tried")).clone()
    };
    assert_eq!(change("dpa-cache")["effect"], "not-applicable");
    assert!(change("dpa-cache")["because"].as_str().expect("why").contains("dpa_l1.latency"));
    assert_eq!(change("cxl-host-dma")["effect"], "not-used", "no step uses the engine");
    let over = &change("cxl-host-dma")["over_now"];
    for key in ["gain_percent", "gain_percent_low_80", "gain_percent_high_80", "better_in_share_of_draws"] {
        assert_eq!(over[key].as_f64(), Some(0.0), "{key}");
    }
    let rate = |of: &Value| of["throughput_mreq_per_s"].as_f64().expect("a rate");
    let plan = |more: &[&str]| rate(&json(&[&["plan", STORE], more].concat())["optimal"]);
    let (now, then) = (plan(&[]), plan(&["--set", "nic.inflight_slots=284"]));
    let own = change("nic.inflight_slots=284");
    assert_eq!((rate(&report["now"]), rate(&own["then"])), (now, then), "as plans by hand have it");
    let gain = own["over_now"]["gain_percent"].as_f64().expect("a gain");
    assert!((gain - (then / now - 1.0) * 100.0).abs() < 0.1, "{gain}");
    for (more, words) in [
        (["--overlay", "dpa-cache"], "dpa_l1.latency"),
        (["--overlay", "no-such-overlay"], "no-such-overlay"),
        (["--set", "soc.pcie_mtus=512B"], "soc.pcie_mtus"),
    ] {
        let refused = offpath(&[&["whatif", STORE][..], &more[..]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(words), "{more:?}: {}", refused.stderr);
    }
}

/// A store with three mistakes, and one whose best mix has none.
const MISTAKES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/three-mistakes.toml");

/// A copy of a design beside its workload, to be changed.
fn copy(of: &str) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("design.toml");
    let workload = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/workloadc");
    let text = fs::read_to_string(of).expect("the design is there");
    let own = folder.path().join("workloadc");
    fs::copy(workload, own).expect("the workload can be copied");
    fs::write(&file, text.replace("../workloads/workloadc", "workloadc")).expect("it can be written");
    (folder, file)
}

/// A design of one alternative that takes these steps, in a folder of its own.
fn written(steps: &str) -> (tempfile::TempDir, std::path::PathBuf, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("design.toml");
    let text = format!(
        "[design]\nname = \"t\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nobjective = \"most-throughput\"\n\
         rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [{steps}]\n"
    );
    fs::write(&file, &text).expect("it can be written");
    (folder, file, text)
}

#[test]
fn a_check_says_measures_and_writes() {
    let (folder, file) = copy(MISTAKES);
    let path = file.to_str().expect("a UTF-8 path");
    let before = fs::read_to_string(&file).expect("it is there");
    let said = answer(&["check", path, "--verbose"]).replace(path, "DESIGN");
    insta::assert_snapshot!("check", said);
    // The pages of the rules say what this design gains.
    for (rule, page) in [
        ("batch-doorbells", include_str!("../../../docs/advice/batch-doorbells.md")),
        ("spread-hot-range", include_str!("../../../docs/advice/spread-hot-range.md")),
        ("segment-large-reads", include_str!("../../../docs/advice/segment-large-reads.md")),
    ] {
        let (_, gain) = said.split_once(&format!("{rule}: `")).expect("it is advised");
        let gain = gain.split(' ').find(|word| word.starts_with('+')).expect("it gains");
        assert!(page.contains(gain), "docs/advice/{rule}.md should say {gain}");
    }
    assert_eq!(fs::read_to_string(&file).expect("it is there"), before, "nothing is written unasked");
    let report = json(&["check", path, "--fix"]);
    check(&report, &schema("check.json"), "check.json");
    let rules: Vec<&str> =
        report["advice"].as_array().expect("a list").iter().filter_map(|one| one["rule"].as_str()).collect();
    assert_eq!(rules, ["batch-doorbells", "spread-hot-range", "segment-large-reads"]);
    assert_eq!(report["fixed"], true);
    let after = fs::read_to_string(&file).expect("it is there");
    assert!(
        after.contains("spacing = ") && after.contains("batch = ") && after.contains("repeat = "),
        "{after}"
    );
    assert_eq!(after.matches('#').count(), before.matches('#').count(), "comments stay");
    let left: Vec<_> = fs::read_dir(folder.path()).expect("it can be read").collect();
    assert_eq!(left.len(), 2, "nothing is left beside the file: {left:?}");
    // What was written has nothing to gain, and writing that changes nothing.
    let again = answer(&["check", path, "--fix"]);
    assert!(again.contains("nothing to gain: 13 rules tried"), "{again}");
    assert_eq!(fs::read_to_string(&file).expect("it is there"), after);
}

/// A number that draws move with others is moved by itself there, and a reader hears so; what is alike in print is named nowhere.
#[test]
fn a_sensitivity_says_what_is_moved_by_itself() {
    let sensitivity = |steps: &str, more: &[&str]| {
        let (_folder, file, _) = written(steps);
        let said = offpath(&[&["plan", file.to_str().expect("a UTF-8 path")], more].concat());
        assert_eq!(said.code, 0, "{}", said.stderr);
        let said = said.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        let (_, after) = said.split_once("sensitivity: ").expect("it is said");
        after.split_once("not modelled").expect("it ends").0.to_string()
    };
    let waits = "{ read = \"client-host\", bytes = \"64 B\" }, { wait = \"15 us\" }, { wait = \"10 us\" }";
    let said = sensitivity(waits, &["--goal", "lowest-p99", "--load", "1M/s"]);
    assert_eq!(
        said.matches("(moved by itself; draws move your unnamed waits together)").count(),
        2,
        "{said}"
    );
    let said = sensitivity("{ read = \"client-host\", bytes = \"8 MiB\" }", &[]);
    for pair in said.split("gives about ").skip(1) {
        let (low, high) = pair.split_once(" / about ").expect("two figures");
        assert!(!high.starts_with(low), "{said}");
    }
}

/// What is given beside a design has no place in its file.
#[test]
fn a_refusal_points_at_what_it_names() {
    let said = offpath(&["plan", MISTAKES, "--overlay", "nope"]).stderr;
    assert!(said.contains("there is no overlay `nope`") && !said.contains("device ="), "{said}");
    let (_folder, file) = copy(MISTAKES);
    let text = fs::read_to_string(&file).expect("it is there");
    fs::write(&file, text.replace("testbed = \"rack\"", "testbed = \"rock\"")).expect("it can be written");
    let said = offpath(&["plan", file.to_str().expect("a path")]).stderr;
    assert!(said.contains("there is no testbed `rock`") && said.contains("testbed = \"rock\""), "{said}");
}

/// What loses at one end of what it assumes is shown, and written into nobody's file.
#[test]
fn a_remedy_that_may_lose_is_not_written() {
    let (_folder, file, text) = written(
        "{ send-ud = \"client-host\", bytes = \"16 B\" }, { compute = \"host\", time = \"3 us\" }, \
         { send-ud = \"host-client\", bytes = \"64 B\" }",
    );
    let path = file.to_str().expect("a UTF-8 path");
    let shown = answer(&["check", path]);
    assert!(
        shown.contains("shard-across-endpoints: +") && shown.contains("`--fix` leaves this out"),
        "{shown}"
    );
    assert!(!answer(&["plan", path]).contains("--fix"), "nor does a plan offer to write it");
    assert!(!shown.contains("next: "), "{shown}");
    let report = json(&["check", path, "--fix"]);
    check(&report, &schema("check.json"), "check.json");
    assert_eq!(
        (&report["fixed"], report["advice"].as_array().map(Vec::len)),
        (&false.into(), Some(0)),
        "{report}"
    );
    let said: String = answer(&["check", path, "--fix"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        said.contains("left out: shard-across-endpoints: ") && said.contains("nothing was written"),
        "{said}"
    );
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text);
}

/// A design of alternatives in a file of its own.
fn of_alternatives(alternatives: &str) -> (tempfile::TempDir, std::path::PathBuf, String) {
    let text = format!(
        "[design]\nname = \"d\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
         {alternatives}"
    );
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("design.toml");
    fs::write(&file, &text).expect("it can be written");
    (folder, file, text)
}

const ASKED: &str = "request = [\n    { send = \"client-soc\", bytes = \"64 B\" },\n    { compute = \"soc\", time = \"120 ns\" },\n    \
                     { read = \"soc-host\", bytes = \"128 B\" },\n    { send-ud = \"soc-client\", bytes = \"64 B\" },\n]\n";

/// Each scenario is looked at and named, and the command that is told writes what was shown.
#[test]
fn a_check_looks_at_each_scenario() {
    let (_folder, file, text) = of_alternatives(&format!(
        "[[alternative]]\nname = \"one\"\nscenario = \"A\"\nrequest = [{{ read = \"client-host\", bytes = \"64 B\" }}]\n\
         [[alternative]]\nname = \"two\"\nscenario = \"B\"\n{ASKED}"
    ));
    let path = file.to_str().expect("a UTF-8 path");
    let report = json(&["check", path]);
    let scenarios = report["scenarios"].as_array().expect("a list");
    let found = scenarios.iter().map(|one| {
        check(one, &schema("check.json"), "check.json");
        (one["scenario"].as_str().expect("its name"), one["advice"][0]["rule"].as_str().expect("it gains"))
    });
    assert_eq!(
        found.collect::<Vec<_>>(),
        [("A", "shard-across-endpoints"), ("B", "batch-doorbells")],
        "{report}"
    );
    let page = |command: &str| -> String {
        answer(&[command, path]).split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let checked = page("check");
    for part in ["Scenario: A", "Scenario: B", "--scenario A --fix writes", "--scenario B --fix writes"] {
        assert!(checked.contains(part), "{part}: {checked}");
    }
    let planned = page("plan");
    assert!(planned.contains("--scenario B --fix writes it"), "{planned}");
    let fixed = json(&["check", path, "--scenario", "B", "--fix"]);
    check(&fixed, &schema("check.json"), "check.json");
    assert_eq!((&fixed["scenario"], &fixed["fixed"]), (&"B".into(), &true.into()), "{fixed}");
    let after = fs::read_to_string(&file).expect("it is there");
    assert!(after.starts_with(text.split_once("[[alternative]]\nname = \"two\"").expect("B").0), "{after}");
    assert!(after.contains("batch = "), "{after}");
    let fixed = json(&["check", path, "--fix"]);
    let written = |at: usize| fixed["scenarios"][at]["fixed"].as_bool();
    assert_eq!((written(0), written(1)), (Some(true), Some(false)), "{fixed}");
    assert!(fs::read_to_string(&file).expect("it is there").contains("one on soc"), "{fixed}");
}

/// What one scenario gains by steps that it shares may be another's loss.
#[test]
fn a_fix_of_one_scenario_changes_no_other() {
    let (_folder, file, text) = of_alternatives(&format!(
        "[[alternative]]\nname = \"one\"\nscenario = \"A\"\nlike = \"two\"\nmixed = true\n\
         [[alternative]]\nname = \"two\"\nscenario = \"B\"\n{ASKED}"
    ));
    let path = file.to_str().expect("a UTF-8 path");
    let report = json(&["check", path, "--scenario", "A"]);
    let remedy = report["advice"][0]["remedy"].as_str().expect("it gains");
    assert!(remedy.contains("; it changes `two` of scenario `B` too"), "{remedy}");
    let fixed = json(&["check", path, "--fix"]);
    for (at, other) in ["`two` of scenario `B`", "`one` of scenario `A`"].into_iter().enumerate() {
        let left_out = fixed["scenarios"][at]["left_out"][0].as_str().expect("it is left out");
        assert!(left_out.contains(other) && left_out.contains("says nothing of others"), "{left_out}");
    }
    // What is added belongs to one scenario, and what was there is as it was.
    let after = fs::read_to_string(&file).expect("it is there");
    let added = after.strip_prefix(&text).expect("the file's own lines stand");
    assert_eq!(added.matches("[[alternative]]").count(), added.matches("scenario = ").count(), "{added}");
}

/// The next command asks about the same: with the options that were given, and without what would be refused with them.
#[test]
fn the_next_command_has_the_options_that_were_given() {
    let slower = ASKED.replace("120 ns", "50 us");
    let (_folder, file, _) = of_alternatives(&format!(
        "[[alternative]]\nname = \"one\"\n{slower}[[alternative]]\nname = \"two\"\n{ASKED}"
    ));
    let path = file.to_str().expect("a UTF-8 path");
    let said = |arguments: &[&str]| -> String {
        let said = offpath(&[&["check", path], arguments].concat());
        assert_eq!(said.code, 0, "{}", said.stderr);
        said.stdout.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let page = said(&["--mix", "two", "--seed", "2"]);
    assert!(page.contains(&format!("next: offpath check {path} --mix two --seed 2 --fix writes")), "{page}");
    let page = said(&["--mix", "two", "--set", "soc.cores=4"]);
    assert!(page.contains("with --set soc.cores=4 this is not the file's own design"), "{page}");
    assert!(!page.contains("--fix writes") && !page.contains("next: "), "{page}");
    let page = said(&["--mix", "two", "--fix"]);
    assert!(page.contains(&format!("wrote 1 change to {path} next: offpath plan {path}")), "{page}");
    let after = fs::read_to_string(&file).expect("it is there");
    assert!(after.contains("batch = ") && after.contains("mix = \"two\""), "{after}");
}

#[test]
fn a_check_of_a_mix_that_the_twin_does_not_confirm_measures_nothing() {
    // No twin holds as many requests in flight as would fill a station while each waits for 1 ms.
    let (_folder, file, text) = written("{ read = \"client-soc\", bytes = \"64 B\" }, { wait = \"1 ms\" }");
    let path = file.to_str().expect("a UTF-8 path");
    let said = offpath(&["check", path, "--fix"]);
    assert_eq!(said.code, 1, "{}{}", said.stdout, said.stderr);
    let words =
        ["THE TWIN CONFIRMS NOTHING", "it takes about 142318 requests in flight", "nothing is measured"];
    for part in words.into_iter().chain(["next: offpath plan"]) {
        assert!(said.stdout.contains(part), "{part}: {}", said.stdout);
    }
    assert_eq!(fs::read_to_string(&file).expect("it is there"), text, "nothing is written");
    let said = offpath(&["check", path, "--format", "json"]);
    assert_eq!(said.code, 1, "{}", said.stderr);
    let report: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
    check(&report, &schema("check.json"), "check.json");
    let reason = &report["unconfirmed"];
    // What a run carried that its own cap decided is no figure.
    assert!(reason["planned_req_per_s"].is_number() && reason["carried_req_per_s"].is_null(), "{reason}");
    let plan = offpath(&["plan", path]);
    assert!(plan.stdout.contains("advice: not measured, since the twin confirms nothing"), "{}", plan.stdout);
    assert!(!plan.stdout.contains("p99"), "no latency of a run that its own cap decided: {}", plan.stdout);
}

#[test]
fn a_check_looks_at_the_mix_that_is_named() {
    let report = json(&["check", STORE, "--mix", "A5-send"]);
    check(&report, &schema("check.json"), "check.json");
    assert_eq!(report["mix"], "A5-send");
    assert_eq!(report["advice"][0]["rule"], "mix-alternatives");
    assert_eq!(json(&["check", LOG]), json(&["check", LOG]), "the same seed gives the same answer");
    let refused = offpath(&["check", STORE, "--mix", "A6"]);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""));
    assert!(refused.stderr.contains("`A6` is neither a mix nor an alternative"), "{}", refused.stderr);
    let silent = answer(&["check", STORE]);
    assert!(silent.contains("nothing to gain: 13 rules tried"), "{silent}");
    let plan = answer(&["plan", MISTAKES]);
    assert!(plan.contains("segment-large-reads: `scan` alone +"), "{plan}");
}

#[test]
fn a_plan_has_the_same_bytes_every_time() {
    let plan = || answer(&["plan", LOG, "--seed", "9", "--format", "json"]);
    assert_eq!(plan(), plan());
}

#[test]
fn a_load_that_nothing_carries_is_a_negative_answer() {
    let refused = offpath(&["plan", STORE, "--goal", "least-host-cpu", "--load", "500M/s"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert_eq!(refused.stdout, "");
    assert!(refused.stderr.contains("more than any mix carries"), "{}", refused.stderr);
    assert!(refused.stderr.contains("help:") || refused.stderr.contains("lower the load"));
}

#[test]
fn reads_from_soc_to_host_bind_at_pcie1() {
    let report = json(&SOC_HOST);
    assert_eq!(report["binding_station"], "pcie1.down");
    // Payload passes PCIe1 twice, by the host's TLPs and by the SoC's, and PCIe0 once.
    assert_eq!(report["pcie_packets"]["pcie1"], 2048 + 512);
    assert_eq!(report["pcie_packets"]["pcie0"], 512);
    let terms = report["terms"].as_array().expect("terms");
    let sum: f64 = terms.iter().filter_map(|term| term["time_ns"].as_f64()).sum();
    assert!((sum / 1e3 - report["latency_us"].as_f64().expect("a latency")).abs() < 1e-6);
    let larger = json(&[&SOC_HOST[..], &["--set", "soc.pcie_mtu=512B"]].concat());
    assert_eq!(larger["pcie_packets"]["pcie1"], 512 + 512);
    assert_eq!(larger["overlays"][0], "soc.pcie_mtu=512B");
    assert!(larger["capacity_gbit_per_s"].as_f64() > report["capacity_gbit_per_s"].as_f64());
}

#[test]
fn intervals_contain_the_value() {
    let report = json(&["path", "bluefield2", "--path", "client-soc"]);
    let number = |key: &str| report[key].as_f64().unwrap_or_else(|| panic!("{key} is a number"));
    assert!(number("latency_low_80_us") < number("latency_us"));
    assert!(number("latency_us") < number("latency_high_80_us"));
    assert!(number("capacity_low_80_mreq_per_s") <= number("capacity_mreq_per_s"));
    assert_eq!(report["latency_most_moved_by"], "network.delay");
    assert_eq!(report["capacity_most_moved_by"], "switch.pass_time");
}

#[test]
fn an_echo_is_two_messages_and_never_half_a_round_trip() {
    let one_way = |path: &str| json(&["path", "bluefield2", "--path", path, "--verb", "send"]);
    let (there, back) = (one_way("client-soc"), one_way("soc-client"));
    let latency = |report: &Value| report["latency_us"].as_f64().expect("a latency");
    let echo = there["echo_latency_us"].as_f64().expect("messages have an echo");
    assert!((echo - latency(&there) - latency(&back)).abs() < 1e-9);
    assert_ne!(latency(&there), latency(&back));
    assert_eq!(json(&SOC_HOST)["echo_latency_us"], Value::Null);
}

/// A working set holds the access, and a larger one is never known to be faster: the ends of its interval lie no lower.
#[test]
fn the_ladder_begins_at_the_access_and_rises() {
    for (device, path, size) in [
        ("bluefield3", "dpa-dpa:host", 4096),
        ("bluefield1", "host-host", 64),
        ("bluefield3", "dpa-dpa", 64),
        ("bluefield1", "soc-soc", 64),
        ("stingray", "cores-cores", 3000),
    ] {
        let bytes = format!("{size}B");
        let found = json(&["path", device, "--path", path, "--verb", "load", "--size", &bytes]);
        let rungs = found["ladder"].as_array().expect("it has one");
        let of = |key: &str| rungs.iter().map(|rung| rung[key].as_f64().expect(key)).collect::<Vec<f64>>();
        let ranges = of("range_bytes");
        assert_eq!(ranges[0], f64::max(f64::from(size), 1024.0), "{device} {path}");
        for key in ["latency_ns", "latency_low_80_ns", "latency_high_80_ns"] {
            assert!(of(key).is_sorted(), "{device} {path}: {key} is {:?} over {ranges:?}", of(key));
        }
    }
}

/// The drives are posted to by both processors at one cost, which a plan does not keep to itself.
#[test]
fn what_posting_to_a_drive_costs_others_is_not_modelled() {
    let says = |design: &str| {
        let found = json(&["plan", &format!("../../designs/{design}.toml")]);
        let listed = found["not_modelled"].as_array().expect("it is a list").clone();
        listed.iter().any(|one| one == "what posting to an engine costs a processor other than its own")
    };
    assert!(says("nvme-of-target"), "the SoC posts to the host's drives");
    assert!(!says("regex-logs"), "the accelerator is the SoC's");
}

/// The twin that plans has queues at stations: it drops no message, and an application's own queues are not among them.
#[test]
fn queues_that_are_not_at_stations_are_not_modelled() {
    let says = |design: &str, words: &str| {
        let found = json(&["plan", design]);
        let listed = found["not_modelled"].as_array().expect("it is a list").clone();
        listed.iter().any(|one| one.as_str().expect("a text").starts_with(words))
    };
    let (_folder, reads, _) = of_alternatives(
        "[[alternative]]\nname = \"a\"\nrequest = [{ read = \"client-host\", bytes = \"64 B\" }]\n",
    );
    let reads = reads.to_str().expect("a UTF-8 path");
    let (_folder, asked, _) = of_alternatives(&format!("[[alternative]]\nname = \"a\"\n{ASKED}"));
    let asked = asked.to_str().expect("a UTF-8 path");
    let of = |design| [says(design, "receive queues"), says(design, "queues of the application")];
    assert_eq!(
        (of(reads), of(asked), of("../../designs/replication.toml")),
        ([false, false], [true, false], [true, true])
    );
}

/// An alternative that the design's limits leave nothing of is known by no evidence: a rule is no prediction.
#[test]
fn what_is_left_at_0_has_no_basis() {
    let (_folder, file, _) = of_alternatives(
        "[constraints]\nhost_cpu_share = 0.0\n\
         [[alternative]]\nname = \"read\"\nrequest = [{ read = \"client-host\", bytes = \"64 B\" }]\n\
         [[alternative]]\nname = \"served\"\nrequest = [{ send = \"client-host\", bytes = \"64 B\" }, \
         { compute = \"host\", time = \"1 us\" }, { send = \"host-client\", bytes = \"64 B\" }]\n",
    );
    let path = file.to_str().expect("a UTF-8 path");
    let plan = json(&["plan", path]);
    let of = |name: &str| {
        let all = plan["alternatives"].as_array().expect("a list");
        let own = all.iter().find(|one| one["name"] == name).expect("it is planned");
        (own["throughput_mreq_per_s"].as_f64(), own["basis"].is_null())
    };
    assert_eq!(of("served"), (Some(0.0), true));
    assert!(of("read").0 > Some(1.0) && !of("read").1, "{:?}", of("read"));
    let text = answer(&["plan", path]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains(" of 1 alternatives;"), "only what carries something is counted: {text}");
}

/// What stands in the file is what a change is told of, whatever mix is looked at.
#[test]
fn a_diff_is_of_the_file_as_it_stands() {
    let slower = ASKED.replace("120 ns", "50 us");
    let (_folder, file, text) = of_alternatives(&format!(
        "[[alternative]]\nname = \"one\"\n{slower}[[alternative]]\nname = \"two\"\n{ASKED}"
    ));
    let path = file.to_str().expect("a UTF-8 path");
    for mix in ["one", "two"] {
        let said = offpath(&["check", path, "--mix", mix, "--format", "json"]);
        let report: serde_json::Value = serde_json::from_str(&said.stdout).expect("JSON");
        let diff = report["advice"][0]["diff"].as_str().expect("it gains");
        let removed = diff.lines().filter_map(|line| line.strip_prefix(['-', ' ']));
        for line in removed {
            assert!(text.lines().any(|own| own == line), "{line} is not in the file: {diff}");
        }
        assert!(diff.lines().any(|line| line.starts_with("+mix = ")), "{diff}");
    }
}

/// A port has neither slots nor verbs, and no drawing and no message speaks of them.
#[test]
fn a_card_that_is_a_port_is_drawn_without_slots() {
    for device in ["stingray", "liquidio-cn2350"] {
        let shown = answer(&["device", "show", device]);
        assert!(shown.contains("port ") && !shown.contains("in-flight slots"), "{shown}");
    }
}

#[test]
fn wrong_input_is_refused_with_a_next_step() {
    let cases: [(&[&str], &[&str]); 26] = [
        (&["path", "bluefeld2"], &["bluefeld2", "did you mean `bluefield2`?"]),
        (
            &["path", "bluefield3", "--path", "dpa-dpa", "--verb", "load", "--range", "2GiB"],
            &["`--range 2 GiB`", "the memory of `dpa` has 1 GiB", "use 64 B to 1 GiB"],
        ),
        (&["path", "bluefield3", "--verb", "load", "--range", "0B"], &["`--range 0 B`", "leave it out"]),
        (
            &["path", "bluefield3", "--path", "client-dpa", "--arrived", "512KiB"],
            &["`--arrived 512 KiB`: a read looks through no caches", "`--verb load`"],
        ),
        (
            &["path", "bluefield2", "--set", "host.cores=4", "--set", "host.cores=8"],
            &["`--set` gives `host.cores` twice", "keep one of them"],
        ),
        (
            &["plan", "designs/replication.toml", "--parameter", "ratio=0.5", "--parameter", "ratio=0.6"],
            &["`--parameter` gives `ratio` twice", "keep one of them"],
        ),
        (
            &["path", "stingray", "--path", "client-host"],
            &["`client.nic` of `stingray` is a port", "`forward` is what it has"],
        ),
        (
            &["plan", "../../designs/nvme-of-target.toml", "--device", "connectx7"],
            &[
                "nvme-of-target.toml:",
                "needs a processor on the card",
                "offpath compare",
                "--device connectx7",
            ],
        ),
        (&["path", "bluefield2", "--path", "client-sco"], &["sco", "did you mean `client-soc`?"]),
        (&["path", "bluefield2", "--path", "client"], &["requester-responder"]),
        (&["path", "bluefield2", "--path", "soc-soc"], &["itself"]),
        (&["path", "bluefield2", "--path", "client-soc", "--mode", "nic"], &["mode `nic`"]),
        (&["path", "bluefield2", "--path", "soc-host-dma", "--verb", "send"], &["read, write and copy"]),
        (&["path", "bluefield2", "--verb", "reed"], &["reed", "'read'"]),
        (&["path", "bluefield2", "--size", "64"], &["no unit", "512 B"]),
        (&["path", "bluefield2", "--size", "1073741825B"], &["at most 1 GiB"]),
        (&["path", "bluefield2", "--size", "-1B"], &["-1"]),
        (&["path", "bluefield2", "--verb", "send-ud", "--size", "1MiB"], &["datagram", "1 KiB"]),
        (&["path", "bluefield2", "--post", "batch:0"], &["1 to 65536"]),
        (&["path", "bluefield2", "--set", "soc.pcie_mtuu=512B"], &["did you mean `soc.pcie_mtu`?"]),
        (&["path", "bluefield2", "--set", "soc.pcie_mtu=512"], &["512", "B"]),
        (&["path", "bluefield2", "--overlay", "ideal-lines"], &["did you mean `ideal-links`?"]),
        (&["device", "show", "no-such-file.toml"], &["no-such-file.toml"]),
        (
            &["sweep", "bluefield2", "--path", "client-soc", "--clients", "1000"],
            &["`--clients 1000`", "20 machines `client`"],
        ),
        (
            &["sweep", "bluefield2", "--path", "host-soc", "--clients", "2,3"],
            &["`--clients 2,3`", "--in-flight"],
        ),
        (&["sweep", "bluefield2", "--path", "client-soc", "--out", "rows.txt"], &[".csv"]),
    ];
    for (arguments, words) in cases {
        let refused = offpath(arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
        assert_eq!(refused.stdout, "", "{arguments:?}");
        for word in words {
            assert!(refused.stderr.contains(word), "{arguments:?} lacks {word}: {}", refused.stderr);
        }
        assert!(!refused.stderr.contains('\x1b'), "no colour where there is no terminal");
    }
}

/// What a newcomer gets wrong: units, signs, bounds, names of another kind, options without effect.
#[test]
fn slips_are_refused_with_their_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("a UTF-8 path").to_string();
    let own = |name: &str, text: &str| {
        fs::write(folder.path().join(name), text).expect("it is written");
        at(name)
    };
    let (design, rows) = (MISTAKES.to_string(), own("rows.csv", "a,b\n1,2\n"));
    let slip = "[overlay]\nname = \"o\"\ndescription = \"o\"\n\n[set]\n";
    let unknown = own("unknown.toml", &format!("{slip}\"sco.pcie_mtu\" = \"512 B\"\n"));
    let pattern = own("pattern.toml", &format!("{slip}\"*.encodng\" = 1\n"));
    let (bytes, directory) = (at("bytes.toml"), at(""));
    fs::write(&bytes, [0xff, 0xfe, 0]).expect("it is written");
    let nowhere = at("none/page.html");
    let c = workload('c');
    let sweep = |more: &[&str]| -> Vec<String> {
        let words = ["sweep", "bluefield2", "--path", "client-soc"];
        words.iter().chain(more).map(|word| word.to_string()).collect()
    };
    let path = |more: &[&str]| -> Vec<String> {
        ["path", "bluefield2"].iter().chain(more).map(|word| word.to_string()).collect()
    };
    let kv = |more: &[&str]| -> Vec<String> {
        let words = ["run", "kv", "--on", "twin:bluefield2", "--workload", &c];
        words.iter().chain(more).map(|word| word.to_string()).collect()
    };
    let words = |line: &str| -> Vec<String> { line.split(' ').map(str::to_string).collect() };
    let cases: Vec<(Vec<String>, &[&str])> = vec![
        (path(&["--size", "-64B"]), &["-64B", "from 0 B to 1 GiB"]),
        (path(&["--size=-64B"]), &["-64B", "from 0 B to 1 GiB"]),
        (path(&["--size", ""]), &["512 B"]),
        (path(&["--set", "host.pcie_mtu=100kB"]), &["100", "a power of two from 128 B to 4096 B"]),
        (path(&["--set", "soc.pcie_mtu=500B"]), &["500 B", "a power of two"]),
        (path(&["--set", "=512B"]), &["no name before the `=`"]),
        (path(&["--set", "soc.pcie=512B"]), &["did you mean `soc.pcie_mtu`?"]),
        (path(&["--set", "SOC.PCIE_MTU=512B"]), &["did you mean `soc.pcie_mtu`?"]),
        (path(&["--overlay", &unknown]), &["unknown.toml:6", "did you mean `soc.pcie_mtu`?"]),
        (path(&["--overlay", &pattern]), &["pattern.toml:6", "did you mean `*.encoding`?"]),
        (path(&["--overlay", "rack"]), &["`rack` is a testbed"]),
        (path(&["--html", &nowhere]), &["none/page.html", "check that the directory exists"]),
        (path(&["--html", &directory]), &["a directory", "name a file in it"]),
        (
            vec!["plan".into(), design.clone(), "--load".into(), "40M/s".into()],
            &["--load 40M/s", "--goal lowest-p99"],
        ),
        (vec!["plan".into(), LOG.into(), "--workload".into(), c.clone()], &["--workload", "no workload"]),
        (vec!["plan".into(), design.clone(), "--workload".into(), directory.clone()], &["is not a file"]),
        (words("path bluefield2 --verb fetch-and-add --size 64B"), &["`--size 64 B`", "moves 8 B"]),
        (
            words("path bluefield4"),
            &[
                "did you mean one of `bluefield1`, `bluefield2`, `bluefield3`?",
                "offpath new device my-card --base DEVICE",
            ],
        ),
        (words("device show rack"), &["`rack` is a testbed"]),
        (words("device source bluefeild2"), &["did you mean `bluefield2`?"]),
        (vec!["path".into(), design.clone()], &["is a design", "offpath plan"]),
        (vec!["device".into(), "show".into(), bytes], &["UTF-8"]),
        (words("device list --set nic.inflight_slots=3"), &["--set has no effect"]),
        (words("fit --set nic.inflight_slots=3"), &["--set has no effect"]),
        (words("completions bash --mode nic"), &["--mode has no effect"]),
        (sweep(&["--clients", "0"]), &["whole number from 1 to 1000000"]),
        (sweep(&["--clients", "1.5"]), &["whole number"]),
        (sweep(&["--threads", "-1"]), &["-1", "from 1 to 65535"]),
        (sweep(&["--seed", "-1"]), &["-1", "from 0 on"]),
        (sweep(&["--out", &format!("{directory}/.csv")]), &["neither in .csv nor in .json"]),
        (sweep(&["--out", &nowhere.replace("html", "json")]), &["none/page.json"]),
        (sweep(&["--out", &rows, "--resume"]), &["cannot resume", "rows.csv"]),
        (words("torture kv --seeds 1e3"), &["1e3", "whole number from 1 on"]),
        (words("torture kv --seeds -5"), &["-5", "whole number"]),
        (
            words(
                "sweep bluefield2 --path client-host --clients 20000 --in-flight 65536 --set client.available=20000",
            ),
            &["20000 clients with 65536", "1048576 in flight", "--in-flight"],
        ),
        (words("reproduce v072"), &["did you mean one of ", "`W072`"]),
        (kv(&["--window", "0s"]), &["longer than 0"]),
        (kv(&["--window", "-5us"]), &["-5us"]),
        (kv(&["--patience", "0ms"]), &["longer than 0"]),
        (kv(&["--warm", "99999"]), &["99999 records cannot be warm", "room for 1000"]),
        (kv(&["--mix", "controller:A4,A4"]), &["one placement twice"]),
        (kv(&["--sessions", "many"]), &["many", "from 1 to 65536"]),
        (words("run replog --on local --bytes 0B"), &["writes nothing"]),
        (words("run replog --on local --directory /dev/null/logs"), &["/dev/null/logs", "--directory"]),
        // What nothing in the run reads.
        (words("run replog --on twin:bluefield2 --directory logs"), &["`--directory`", "in memory"]),
        (words("run replog --on twin:bluefield2 --wait events"), &["`--wait`", "on verbs"]),
        (words("run replog --on local --file-rate 8Gbit/s"), &["`--file-rate`", "the twin charges"]),
        (words("run replog --on local --compress-rate 8Gbit/s"), &["`--compress-rate`"]),
        (words("run replog --on local --engine dma"), &["`--engine`", "A3 uses none"]),
        (words("run replog --on local --placement A2 --card-share 5"), &["`--card-share`", "this is A2"]),
        (words("run replog --on local --compress card"), &["it carries nothing", "--compress all"]),
        (kv(&["--placement", "A1", "--warm", "5"]), &["`--warm`", "by A1 has none"]),
        (kv(&["--placement", "A2", "--cache", "5"]), &["`--cache`", "by A2 has none"]),
        (kv(&["--placement", "A1", "--fetch", "rdma"]), &["`--fetch`", "does not use it"]),
        // A file that does not end.
        (words("plan /dev/zero"), &["/dev/zero", "16 MiB"]),
        (words("run kv --on local --workload /dev/zero"), &["/dev/zero", "1 MiB"]),
        (kv(&["--mix", "/dev/zero"]), &["/dev/zero", "not JSON"]),
        (
            words("serve replog --on local --listen localhost:7000"),
            &["localhost:7000", "names are not looked up"],
        ),
    ];
    for (arguments, words) in cases {
        refuses(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), words);
    }
    assert!(!folder.path().join("none").exists());
}

/// `relay` and `shard` are programs of their own: they get the command line without the command's name, beside
/// `offpath` or by PATH, and who lacks them learns how to build them.
#[test]
fn services_are_started_where_they_are() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let own = folder.path().join("offpath");
    fs::hard_link(env!("CARGO_BIN_EXE_offpath"), &own).expect("a second name of the program");
    let run = |path: &std::path::Path, arguments: &[&str]| {
        let output = Command::new(&own).args(arguments).env("PATH", path).output();
        let output = output.expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let nowhere = folder.path().join("nowhere");
    for (command, package) in [("relay", "offpath-redis"), ("shard", "offpath-shard")] {
        let (code, out, error) = run(&nowhere, &[command, "--config", "x"]);
        assert_eq!((code, out.as_str()), (Some(2), ""), "{error}");
        for words in
            [&format!("offpath-{command}"), "neither beside", &format!("cargo build --release -p {package}")]
        {
            assert!(error.contains(words), "{words}: {error}");
        }
    }
    let script = |folder: &std::path::Path, name: &str, says: &str| {
        use std::os::unix::fs::PermissionsExt;
        fs::create_dir_all(folder).expect("a folder");
        let file = folder.join(name);
        fs::write(&file, format!("#!/bin/sh\necho {says} \"$@\"\nexit 7\n")).expect("it is written");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("it can be run");
    };
    let path = folder.path().join("on-path");
    script(&path, "offpath-shard", "path");
    let line = ["--color", "never", "shard", "plan", "shard=h:1", "--help", "--format", "json"];
    let says = |who: &str| {
        (Some(7), format!("{who} --color never plan shard=h:1 --help --format json\n"), String::new())
    };
    assert_eq!(run(&path, &line), says("path"));
    assert_eq!(run(&path, &["help", "shard"]), (Some(7), "path --help\n".to_string(), String::new()));
    let (code, _, error) = run(&nowhere, &["help", "relay"]);
    assert!(code == Some(2) && error.contains("cargo build --release -p offpath-redis"), "{error}");
    script(folder.path(), "offpath-shard", "beside");
    assert_eq!(run(&path, &line), says("beside"));
}

/// A shell that redirects to a full disk, and one that reads no further.
#[test]
fn who_reads_the_answer_does_not_change_the_exit_code() {
    let run = |line: &str| {
        let bin = assert_cmd::cargo::cargo_bin!("offpath");
        let output =
            Command::new("bash").args(["-c", line]).env("offpath", bin).output().expect("bash starts");
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        (output.status.code(), text, String::from_utf8_lossy(&output.stdout).into_owned())
    };
    for (line, code) in [
        ("\"$offpath\" device list > /dev/full", 74),
        ("\"$offpath\" --help > /dev/full", 74),
        ("\"$offpath\" path bluefield2 --html /dev/full", 74),
        ("\"$offpath\" path bluefeld2 2> /dev/full", 2),
        ("\"$offpath\" frobnicate 2> /dev/full", 2),
        ("\"$offpath\" path bluefield2 > /dev/null 2>&-", 0),
    ] {
        let (ended, said, _) = run(line);
        assert_eq!(ended, Some(code), "{line}: {said}");
        assert!(!said.contains("internal error"), "{line}: {said}");
    }
    let (ended, said, _) = run("set -o pipefail; \"$offpath\" device show bluefield2 | head -n 1");
    assert_eq!((ended, said.as_str()), (Some(0), ""));
}

#[test]
fn a_device_shows_each_of_its_parts_once() {
    let text = answer(&["device", "show", "bluefield2"]);
    let titles: Vec<&str> =
        text.lines().filter(|line| !line.is_empty() && !line.contains([' ', '│'])).collect();
    for role in ["server", "client"] {
        assert_eq!(titles.iter().filter(|title| **title == role).count(), 1, "{role} in {titles:?}");
    }
    assert_eq!(text.matches("backup: as server").count(), 1, "{text}");
}

/// The file of a profile, as it is printed, is a card of one's own.
#[test]
fn a_profile_is_printed_and_read_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("my-card.toml");
    fs::write(&card, answer(&["device", "source", "bluefield2"])).expect("it is written");
    let cost = |device: &str| json(&["path", device, "--path", "client-soc"])["latency_us"].clone();
    assert_eq!(cost(card.to_str().expect("a UTF-8 path")), cost("bluefield2"));
}

/// Lines of tables and sentences fit the screen, and hold the same words at every width. Drawings, diffs and
/// curves keep their columns.
#[test]
fn pages_fit_the_screen() {
    let wide = |columns: usize, arguments: &[&str]| {
        let output = assert_cmd::cargo::cargo_bin_cmd!("offpath")
            .args(arguments)
            .env("COLUMNS", columns.to_string())
            .output()
            .expect("the program starts");
        assert!(output.status.success(), "{arguments:?}");
        String::from_utf8(output.stdout).expect("text is UTF-8")
    };
    let drawn =
        |line: &&str| !line.contains(['│', '─', '▁', '█', '┌', '└', '→']) && !line.starts_with("payload ");
    let numbers = |text: &str| {
        let words = text.lines().filter(drawn).flat_map(str::split_whitespace);
        // Records on narrow screens repeat the names of columns, and one is an 80% interval.
        let is_number = |word: &&str| word.starts_with(|c: char| c.is_ascii_digit()) && *word != "80%";
        let mut numbers: Vec<String> = words.filter(is_number).map(str::to_string).collect();
        numbers.sort();
        numbers
    };
    for arguments in [
        &["path", "bluefield2"][..],
        &SOC_HOST,
        &["device", "show", "bluefield2"],
        &["device", "list"],
        &["explain", "w003"],
        &["reproduce", "W066", "W021"],
        &["sweep", "bluefield2", "--path", "client-soc", "--operations", "1000"],
    ] {
        let whole = wide(400, arguments);
        for columns in [60, 80, 120] {
            let page = wide(columns, arguments);
            for line in page.lines().filter(drawn) {
                let length = line.chars().count();
                // A name that is longer than the screen stays whole.
                let words = line.split_whitespace().map(|word| word.chars().count()).max().unwrap_or(0);
                assert!(length <= columns.max(words + 24), "{arguments:?} at {columns}: {line}");
            }
            assert_eq!(numbers(&page), numbers(&whole), "{arguments:?} at {columns}");
        }
    }
    let narrow = wide(60, &["path", "bluefield2", "--path", "client-soc"]);
    insta::assert_snapshot!("path_narrow", narrow);
}

#[test]
fn a_refused_run_leaves_the_file_that_was_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let page = folder.path().join("page.html");
    fs::write(&page, "<!DOCTYPE html>mine").expect("it is written");
    let name = page.to_str().expect("a UTF-8 path");
    refuses(&["path", "bluefield2", "--path", "client-sco", "--html", name], &["client-soc"]);
    refuses(&["reproduce", "--overlay", "none", "--html", name], &["`none`"]);
    assert_eq!(fs::read_to_string(&page).expect("it is there"), "<!DOCTYPE html>mine");
    answer(&["path", "bluefield2", "--path", "client-soc", "--html", name]);
    assert!(fs::read_to_string(&page).expect("it is there").contains("</html>"));
    assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing else is left");
}

/// What bash offers for the last of these words.
fn offered(words: &[&str]) -> Vec<String> {
    let bin = assert_cmd::cargo::cargo_bin!("offpath");
    let folder = bin.parent().expect("it is in a folder").to_str().expect("a UTF-8 path");
    let path = std::env::var("PATH").unwrap_or_default();
    let quoted: Vec<String> = words.iter().map(|word| format!("'{word}'")).collect();
    // The script names its function in its last line, after `-F`.
    let line = format!(
        "script=$(offpath completions bash) && eval \"$script\" && COMP_WORDS=({}) COMP_CWORD={} COMP_TYPE=9 && \
         function=$(complete -p offpath | sed 's/.*-F \\([^ ]*\\).*/\\1/') && $function offpath '{}' '{}' && \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        quoted.join(" "),
        words.len() - 1,
        words[words.len() - 1],
        words[words.len() - 2],
    );
    let output = Command::new("bash")
        .args(["--norc", "--noprofile", "-c", &line])
        .env("PATH", format!("{folder}:{path}"))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."))
        .output()
        .expect("bash starts");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{words:?}: {text}{}", String::from_utf8_lossy(&output.stderr));
    text.lines().map(str::to_string).collect()
}

#[test]
fn bash_completes_what_the_program_knows() {
    let cases: [(&[&str], &[&str]); 13] = [
        (&["offpath", "expl"], &["explain"]),
        (&["offpath", "path", "blue"], &["bluefield2"]),
        (&["offpath", "path", "bluefield2", "--path", "client-s"], &["client-soc"]),
        (&["offpath", "path", "bluefield2", "--verb", "re"], &["read"]),
        (&["offpath", "path", "bluefield2", "--overlay", "ideal"], &["ideal-links"]),
        (&["offpath", "path", "bluefield2", "--set", "soc.pcie"], &["soc.pcie_mtu="]),
        (&["offpath", "new", "dev"], &["device"]),
        (&["offpath", "new", "device", "mine", "--base", "blue"], &["bluefield2"]),
        (&["offpath", "plan", "designs/three"], &["designs/three-mistakes.toml"]),
        (&["offpath", "plan", "designs/three-mistakes.toml", "--goal", "lo"], &["lowest-p99"]),
        (&["offpath", "explain", "W07"], &["W071", "W072", "W073"]),
        (&["offpath", "torture", "kv", "--inject-bug", "no-ch"], &["no-checksum"]),
        (&["offpath", "run", "kv", "--placement", "A5"], &["A5-read", "A5-send"]),
    ];
    for (words, expected) in cases {
        let found = offered(words);
        for one in expected {
            assert!(found.iter().any(|own| own.trim_end() == *one), "{words:?} offers {found:?}");
        }
        let begun = words.last().expect("a word");
        assert!(found.iter().all(|own| own.starts_with(begun)), "{words:?} offers {found:?}");
    }
    // The paths are those of the device on the line.
    let paths = offered(&["offpath", "path", "connectx6", "--path", "client-"]);
    assert!(
        paths.iter().any(|path| path == "client-host") && !paths.iter().any(|path| path.contains("soc")),
        "{paths:?}"
    );
}

#[test]
fn colour_is_asked_for_or_absent() {
    let plain = answer(&SOC_HOST);
    assert!(!plain.contains('\x1b'));
    let coloured = answer(&[&SOC_HOST[..], &["--color", "always"]].concat());
    assert!(coloured.contains("\x1b[1m"));
    // Without its escape sequences it says the same: colour carries nothing alone.
    let mut stripped = String::new();
    let mut letters = coloured.chars();
    while let Some(letter) = letters.next() {
        if letter == '\x1b' {
            letters.by_ref().find(|end| *end == 'm');
        } else {
            stripped.push(letter);
        }
    }
    let words = |text: &str| text.split_whitespace().map(str::to_string).collect::<Vec<_>>();
    assert_eq!(words(&stripped), words(&plain));
}

#[test]
fn a_sweep_writes_the_same_bytes_on_one_and_two_threads() {
    let directory = tempfile::tempdir().expect("a directory");
    let sweep = |name: &str, threads: &str| {
        let file = directory.path().join(name);
        let path = file.to_str().expect("a UTF-8 path");
        let run = offpath(&[&SWEEP[..], &["--threads", threads, "--out", path]].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        fs::read_to_string(&file).expect("the sweep writes its file")
    };
    let rows = sweep("one.csv", "1");
    assert_eq!(rows, sweep("two.csv", "2"));
    // 2 verbs x 2 sizes, with 1 and 2 clients from the client and once from the SoC.
    assert_eq!(rows.lines().count(), 1 + 2 * 2 * 3);
    assert!(rows.starts_with("verb,path,payload_bytes,clients,in_flight,seed,unloaded_latency_us,"));
    assert_eq!(sweep("one.json", "1"), sweep("two.json", "2"));
}

const SWEEP: [&str; 12] = [
    "sweep",
    "bluefield2",
    "--verb",
    "read,write",
    "--path",
    "client-soc,soc-host",
    "--size",
    "64B,64KiB",
    "--clients",
    "1,2",
    "--operations",
    "1000",
];

/// Long transfers in flight together end together; counted where they end they were shown to carry more
/// than the clients' ports, 205 of 200 Gbit/s.
#[test]
fn a_sweep_shows_no_more_than_the_capacity_and_which_machine_is_full() {
    let said = answer(&[
        "sweep",
        "bluefield2",
        "--path",
        "client-host",
        "--size",
        "8MiB",
        "--clients",
        "11",
        "--format",
        "json",
    ]);
    let said: serde_json::Value = serde_json::from_str(&said).expect("it is JSON");
    let row = &said["rows"][0];
    let number = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key} of {row}"));
    let share = number("throughput_mreq_per_s") / number("capacity_mreq_per_s");
    assert!((0.97..=1.0).contains(&share), "{share} of the capacity: {row}");
    assert!(number("fullest_utilization") <= 1.0 && number("fullest_utilization") > 0.97, "{row}");
    assert!(row["throughput_unknown_because"].is_null(), "{row}");
}

/// The README's score is that of the validation page.
#[test]
fn the_readme_has_the_score() {
    let counts = |text: &str, name: &str| {
        let line = text.lines().find(|line| line.starts_with(&format!("| {name}"))).unwrap_or_default();
        let words: Vec<&str> = line.split([' ', ';']).collect();
        let is_count = |three: &[&str]| three[1] == "of" && three[0].parse::<usize>().is_ok();
        let at = words.windows(3).position(is_count).unwrap_or_else(|| panic!("{name}: {line}"));
        (words[at].to_string(), words[at + 2].to_string())
    };
    let (readme, page) = (include_str!("../../../README.md"), include_str!("../../../docs/validation.md"));
    let names = [
        "predicted: measured numbers",
        "predicted: orders and bounds",
        "no predictions:",
        "predicted: cards of which nothing was fitted",
        "fitted",
        "formulas",
    ];
    for name in names {
        assert_eq!(counts(readme, name), counts(page, name), "{name}");
    }
    for (name, on_page) in [
        ("the nearest published row", "- the nearest published row"),
        ("inside 80% intervals", "- inside 80% intervals"),
    ] {
        assert_eq!(counts(readme, name), counts(page, on_page), "{name}");
    }
    // So has the page of cards what is unfitted.
    let cards = include_str!("../../../docs/cards.md").split_whitespace().collect::<Vec<_>>().join(" ");
    let of = |name: &str| counts(page, name);
    let (unfitted, none, decided) = (
        of("predicted: cards of which nothing was fitted"),
        of("- no difference, else links alone instead"),
        of("- rows that decided a number there"),
    );
    for said in [
        format!("of {} predictions {} hold,", unfitted.1, unfitted.0),
        format!("What knows no card has {} of {} within tolerance", none.0, none.1),
        format!(
            "Of {} rows that decided a number, say the same again or could not fail {} hold",
            decided.1, decided.0
        ),
    ] {
        assert!(cards.contains(&said), "docs/cards.md lacks `{said}`");
    }
    // The README has the headlines, the page of evidence what stands behind them.
    let both = [readme, include_str!("../../../docs/evidence.md")].concat();
    let words = both.split_whitespace().collect::<Vec<_>>().join(" ");
    let says = |text: String| assert!(words.contains(&text), "README and docs/evidence.md lack `{text}`");
    let cells = |name: &str| -> Vec<String> {
        let line = page.lines().find(|line| line.starts_with(&format!("| {name}")));
        let line = line.unwrap_or_else(|| panic!("the page has no {name}"));
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_string()).collect()
    };
    let count = |name: &str| cells(name)[1].clone();
    let (narrow, wide) = (count("- inside their 80%"), count("- inside their 95%"));
    says(format!("{} and {wide}; ", narrow.split(' ').next().expect("a count")));
    let fitted =
        page.lines().skip_while(|line| !line.starts_with("| fitted")).nth(1).expect("a line follows");
    let inside = fitted.split('|').nth(2).expect("a count").trim();
    says(format!("| of them inside their 80% interval | {inside} |"));
    let after = |mark: &str| {
        let (_, rest) = page.split_once(mark).unwrap_or_else(|| panic!("the page has no `{mark}`"));
        rest.split_whitespace().next().expect("a figure").trim_end_matches('.').to_string()
    };
    says(format!("a factor of {} or more", after("reach a factor of ")));
    says(format!(
        "The median error of the {} measured numbers that are no places is {};",
        after("Median error of the "),
        after("are no places: ")
    ));
    says(format!("half of which reach a factor of {}", after("reach a factor of ")));
    let nearest = page.split_once("| median errors beside").expect("the table").1;
    let nearest = nearest.lines().find(|line| line.starts_with("| the nearest")).expect("its first line");
    let nearest: Vec<&str> = nearest.split('|').map(str::trim).collect();
    let (rows, own, other) = (nearest[2], nearest[3], nearest[4]);
    says(format!(
        "Over the {rows} that the nearest published row answers too it is {own} (nearest row {other}; with"
    ));
    // Whoever is told the error is told beside it what would have erred less.
    let median = after("are no places: ");
    let beside = format!("is {median}, where the nearest published row errs by {other};");
    says(format!("of the {rows} predicted measured numbers that are no places {beside}"));
    let simple = cells("what needs no card");
    says(format!("over the {} that need no card", simple[1]));
    says(format!("elsewhere, {} (those {})", simple[2], simple[3]));
    let guess = cells("no difference, else the nearest");
    says(format!("no difference, else the nearest row, is {} off where offpath is {}", guess[3], guess[2]));
    let (own, other) = simple[7].split_once(" : ").expect("offpath's and the other's");
    assert_eq!(own, other, "the README says that both hold as many");
    let (reach, reach_other) = simple[8].split_once(" : ").expect("offpath's and the other's");
    says(format!(
        "as many of them, {own} each, and reach a factor of {reach_other} where offpath's reach {reach}"
    ));
    let wrong = cells("all times 1.50");
    says(format!("half as much again {} hold too, where {} fitted rows do", wrong[1], wrong[5]));
    let free = offpath::evidence::free_parameters().expect("the specification is accepted").parameters.len();
    says(format!("| fitted, {free} numbers ("));
    let (fitting, confidence) =
        (include_str!("../../../docs/fitting.md"), include_str!("../../../docs/confidence.md"));
    assert!(
        fitting.contains(&format!("{free} free parameters")),
        "docs/fitting.md has another number than {free}"
    );
    let inside = inside.replace(" of ", " of the ");
    assert!(
        confidence.contains(&format!("{inside} rows that numbers were fitted to")),
        "docs/confidence.md: {inside}"
    );
}

/// Of runs on the twin nothing is drawn, and the screen says so.
#[test]
fn an_interval_of_past_errors_alone_is_told() {
    let made_of = |row: &str| answer(&["explain", row]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(made_of("W001").contains("(of past errors alone: nothing of it is drawn)"));
    assert!(made_of("W154").contains("(open mechanisms and past errors in it)"));
}

/// What the README opens with is what a reader sees who types it.
#[test]
fn the_readme_opens_with_what_is_printed() {
    let readme = include_str!("../../../README.md");
    let (_, block) = readme.split_once("$ cargo run --release -- plan ").expect("it opens with a plan");
    let (design, printed) = block.split_once('\n').expect("a command is a line");
    let (printed, _) = printed.split_once("```").expect("the block ends");
    let design = format!("{}/../../{design}", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(page(&["plan", &design]), printed);
    // Greedy spends on what it fills first what that alternative is bound by.
    let words = printed.split_whitespace().collect::<Vec<_>>().join(" ");
    let (_, greedy) = words.split_once("greedy fills A5-read first and spends ").expect("it is said");
    let spent = greedy.split(' ').next().expect("a station");
    let own = printed.lines().find(|line| line.starts_with(" A5-read ")).expect("its row");
    assert!(own.contains(&format!(" {spent} ")), "{spent}: {own}");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("card.svg");
    answer(&["device", "show", "bluefield2", "--svg", file.to_str().expect("a UTF-8 path")]);
    let drawn = fs::read_to_string(file).expect("it was drawn");
    assert!(
        drawn == include_str!("../../../docs/pictures/bluefield2.svg"),
        "draw docs/pictures/bluefield2.svg again"
    );
}

/// A run that confirms nothing carried another load than the one that was asked for.
#[test]
fn what_a_blind_run_was_busy_with_is_not_shown() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("waits.toml");
    let design = "[design]\nname = \"waits\"\ndevice = \"bluefield2\"\nobjective = \"lowest-p99\"\n\
                  offered_load = \"54 M/s\"\nrank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
                  request = [{ send = \"client-host\", bytes = \"64 B\" }, { wait = \"100 us\" }, \
                  { send = \"host-client\", bytes = \"64 B\" }]\n";
    fs::write(&file, design).expect("written");
    // What is waited for has no bound of its own, and each way of showing a plan says so.
    let planned = |more: &[&str]| offpath(&[&["plan", file.to_str().expect("a UTF-8 path")], more].concat());
    let unlimited = "what `a` waits for is taken to serve any number of requests at once";
    let (shown, data) = (planned(&[]), planned(&["--format", "json"]));
    assert!(
        shown.stderr.contains(unlimited) && data.stdout.contains(unlimited),
        "{}{}",
        shown.stderr,
        data.stdout
    );
    let page = directory.path().join("waits.html");
    assert_eq!(planned(&["--html", page.to_str().expect("a UTF-8 path")]).code, 0);
    assert!(fs::read_to_string(page).expect("it was written").contains("is taken to serve any number"));
    let text = shown.stdout;
    assert!(text.contains("THE TWIN CONFIRMS NOTHING") && !text.contains("busiest at this load"), "{text}");
    // Variants are solved, and no tail is sought among them.
    assert!(text.contains("the mix of least mean latency: a tail is sought for the plan alone"), "{text}");
    // Nor do draws, which compare means, say how good a mix is that has the lowest tail.
    let says_a_best_set = |text: &str| {
        let answer = text.split_once("\n\nAlternatives").expect("the answer comes first").0;
        answer.split_whitespace().collect::<Vec<_>>().join(" ").contains("best set in")
    };
    assert!(!says_a_best_set(&text), "{text}");
    let most = design.replace("lowest-p99", "most-throughput").replace("offered_load = \"54 M/s\"\n", "");
    fs::write(&file, most).expect("written");
    let text = planned(&[]).stdout;
    assert!(text.contains("variant one-pool") && !text.contains("a tail is sought"), "{text}");
    assert!(says_a_best_set(&text), "{text}");
}

/// At 10 k/s a list of 64 takes 6.3 ms to fill, of which neither plan nor twin knows: who reads a tail of some microseconds
/// is told so beside it. Where lists fill at once nothing is said.
#[test]
fn a_latency_says_that_it_lacks_the_filling_of_lists() {
    let (_folder, file, text) = written(
        "{ send-ud = \"client-soc\", bytes = \"32 B\" }, { send-ud = \"soc-client\", bytes = \"16 B\", batch = 64 }",
    );
    let said = |load: &str| {
        let goal = format!("objective = \"lowest-p99\"\noffered_load = \"{load}\"");
        fs::write(&file, text.replace("objective = \"most-throughput\"", &goal)).expect("written");
        let file = file.to_str().expect("a UTF-8 path");
        let fill = json(&["plan", file])["list_fill_us_at_least"].as_f64().expect("a number");
        (fill, answer(&["plan", file]).split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (fill, text) = said("10 k/s");
    assert!((fill - 6300.0).abs() < 1.0, "{fill}");
    assert!(
        text.contains("LATENCIES LACK 6.3 ms OR MORE") && text.contains("WITHOUT the time that lists"),
        "{text}"
    );
    let (fill, text) = said("10 M/s");
    assert!((fill - 6.3).abs() < 0.01 && text.contains("LATENCIES LACK"), "{fill} {text}");
}

/// A design that comes by a pipe can be read once; nothing that is told of it is of an empty file.
#[cfg(unix)]
#[test]
fn a_design_is_read_once() {
    let (_folder, _, text) = written("{ read = \"client-host\", bytes = \"64 B\" }");
    for command in ["plan", "check"] {
        let mut running = Command::new(env!("CARGO_BIN_EXE_offpath"));
        let running = running.args([command, "/dev/stdin"]).stdin(Stdio::piped());
        let mut running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        running.stdin.take().expect("it was asked for").write_all(text.as_bytes()).expect("it reads");
        let ended = running.wait_with_output().expect("it ends");
        assert!(ended.status.success(), "{command}: {}", String::from_utf8_lossy(&ended.stderr));
    }
}

/// Of sweeps that begin at one moment into one file, one has it and the others are refused.
#[test]
fn two_sweeps_do_not_take_one_file() {
    let directory = tempfile::tempdir().expect("a directory");
    for (round, ending) in [(0, "csv"), (1, "csv"), (2, "csv"), (3, "json")] {
        let file = directory.path().join(format!("{round}.{ending}"));
        let begun = ["client-host", "client-soc", "soc-host"].map(|path| {
            let words =
                ["sweep", "bluefield2", "--clients", "1", "--operations", "2000", "--path", path, "--out"];
            let mut command = Command::new(env!("CARGO_BIN_EXE_offpath"));
            let quiet = command.args(words).arg(&file).stderr(Stdio::null());
            quiet.stdout(Stdio::null()).spawn().expect("it starts")
        });
        let ended = begun.map(|mut one| one.wait().expect("it ends").code());
        let had = ended.iter().filter(|code| **code == Some(0)).count();
        assert_eq!(had, 1, "{ending}: {ended:?}");
    }
}

/// A file that grows belongs to the sweep that writes it, also where two resume it.
#[test]
fn a_sweep_that_is_written_is_resumed_by_no_other() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rows.csv");
    let path = file.to_str().expect("a UTF-8 path");
    let out = [&SWEEP[..], &["--out", path]].concat();
    assert_eq!(offpath(&out).code, 0);
    let written = fs::read_to_string(&file).expect("the sweep writes its file");
    let other = fs::File::open(&file).expect("it is there");
    other.lock().expect("nobody has it");
    let resume = [&out[..], &["--resume"]].concat();
    refuses(&resume, &["another sweep writes", "wait until it has ended"]);
    assert_eq!(fs::read_to_string(&file).expect("it is left alone"), written);
    drop(other);
    assert_eq!(offpath(&resume).code, 0);
}

/// Where the disk takes no byte, no empty file is left that would refuse the same sweep a moment later.
#[cfg(target_os = "linux")]
#[test]
fn a_sweep_that_could_not_write_leaves_nothing() {
    let directory = tempfile::tempdir().expect("a directory");
    for name in ["rows.csv", "rows.json"] {
        let file = directory.path().join(name);
        let path = file.to_str().expect("a UTF-8 path");
        let out = [&SWEEP[..], &["--out", path]].concat();
        let full = std::process::Command::new("sh")
            .args(["-c", "trap '' XFSZ; ulimit -f 0; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_offpath")])
            .args(&out)
            .output()
            .expect("it runs");
        assert_eq!(full.status.code(), Some(74), "{}", String::from_utf8_lossy(&full.stderr));
        assert_eq!(fs::read_dir(directory.path()).expect("it is there").count(), 0, "{name}");
        assert_eq!(offpath(&out).code, 0);
        fs::remove_file(&file).expect("it was written");
    }
}

#[test]
fn a_sweep_resumes_where_it_was_cut_off() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("rows.csv");
    let path = file.to_str().expect("a UTF-8 path");
    let out = [&SWEEP[..], &["--out", path]].concat();
    assert_eq!(offpath(&out).code, 0);
    let whole = fs::read_to_string(&file).expect("the sweep writes its file");

    let again = offpath(&out);
    assert_eq!(again.code, 2, "a finished sweep is not overwritten");
    assert!(again.stderr.contains("--resume"), "{}", again.stderr);
    // What cannot be resumed is not said to be.
    let json = directory.path().join("rows.json");
    fs::write(&json, "").expect("written");
    let again = offpath(&[&SWEEP[..], &["--out", json.to_str().expect("a UTF-8 path")]].concat());
    assert!(
        again.stderr.contains("is there already") && !again.stderr.contains("--resume"),
        "{}",
        again.stderr
    );

    // Whoever asks for other windows is told that, and not of a row that is missing.
    let longer = [&SWEEP[..SWEEP.len() - 1], &["1777", "--out", path, "--resume"]].concat();
    refuses(&longer, &["were made with --operations 1000, not 1777", "repeat the options"]);

    // The last line was being written when the power failed.
    let cut = whole.lines().take(5).collect::<Vec<_>>().join("\n");
    fs::write(&file, format!("{cut}\n{}", &whole.lines().nth(5).expect("more rows")[..20])).expect("written");
    let resumed = offpath(&[&out[..], &["--resume"]].concat());
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(resumed.stderr.contains("12 rows, 4 of them kept"), "{}", resumed.stderr);
    assert_eq!(fs::read_to_string(&file).expect("the file is there"), whole);

    let other = offpath(&["sweep", "bluefield2", "--path", "client-host", "--out", path, "--resume"]);
    assert_eq!(other.code, 2);
    assert!(other.stderr.contains("this sweep does not have"), "{}", other.stderr);
    assert_eq!(fs::read_to_string(&file).expect("the file is there"), whole, "no row is lost");

    // A measured figure of the first row that is kept, of one in the middle and of the last; a computed one of another.
    let mut rows: Vec<Vec<String>> =
        whole.lines().map(|line| line.split(',').map(str::to_string).collect()).collect();
    let column = |name: &str| rows[0].iter().position(|own| own == name).expect("a column");
    let measured = column("latency_us_p99");
    let (capacity, rate) = (column("capacity_mreq_per_s"), column("throughput_mreq_per_s"));
    // A rate above the row's own capacity is seen in any row.
    for (line, column) in [(1, measured), (2, measured), (4, measured), (3, capacity), (3, rate)] {
        let kept = std::mem::replace(&mut rows[line][column], "99999.0".to_string());
        let text = rows.iter().take(5).map(|line| line.join(",") + "\n").collect::<String>();
        fs::write(&file, &text).expect("written");
        let refused = offpath(&[&out[..], &["--resume"]].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("this offpath does not get"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(&file).expect("the file is there"), text, "nothing is written over");
        rows[line][column] = kept;
    }

    // Notes of somebody's, with a whole line and without one.
    for foreign in ["when,what\n", "to be done"] {
        fs::write(&file, foreign).expect("written");
        let refused = offpath(&[&out[..], &["--resume"]].concat());
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains("does not begin with the names"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(&file).expect("the file is there"), foreign, "nothing is written over");
    }
}

#[test]
fn rows_of_two_cards_are_not_put_into_one_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name).to_str().expect("a UTF-8 path").to_string();
    let (card, rows) = (place("card.toml"), place("rows.csv"));
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    fs::write(&card, shipped).expect("written");
    let sweep = ["sweep", &card, "--path", "client-soc", "--clients", "1", "--operations", "1000"];
    let out = [&sweep[..], &["--out", &rows, "--resume"]].concat();
    assert_eq!(offpath(&out).code, 0);
    let set = offpath(&[&out[..], &["--set", "nic.inflight_slots=100"]].concat());
    assert_eq!(set.code, 2, "{}", set.stderr);
    let words = set.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words.contains("as its profile has it, and this sweep is of"), "{words}");
    assert!(words.contains("with nic.inflight_slots=100"), "{words}");
    let changed = shipped.replacen("cores = { value = 8", "cores = { value = 6", 1);
    assert_ne!(changed, shipped, "the profile has a number to change");
    fs::write(&card, changed).expect("written");
    let refused = offpath(&out);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("were made from other numbers"), "{}", refused.stderr);
}

/// What stands too far right to be drawn is told by its place, and is not a bug.
#[test]
fn a_mistake_in_a_very_long_line_has_its_place() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("long.toml");
    let name = file.to_str().expect("a UTF-8 path");
    // A long line beside the mistake is no part of the answer either.
    for (blanks, beside) in [(10, 0), (3_000, 0), (70_000, 0), (10, 600_000)] {
        let text = format!(
            "[design]\nname = \"a\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
             [[alternative]]\nname = \"a\"\nrequest = [{}{{ read = \"client-hots\", bytes = \"64 B\" }}]\n# {}\n",
            " ".repeat(blanks),
            "x".repeat(beside)
        );
        fs::write(&file, text).expect("written");
        let refused = offpath(&["plan", name]);
        assert_eq!(refused.code, 2, "{blanks}: {}", refused.stderr);
        assert!(
            refused.stderr.contains("client-hots") && refused.stderr.contains("help:"),
            "{}",
            refused.stderr
        );
        assert!(refused.stderr.contains(":8:"), "{blanks}: {}", refused.stderr);
        assert!(refused.stderr.len() < 4_000, "{} bytes of an answer", refused.stderr.len());
    }
}

#[test]
fn a_batch_fits_the_send_queue() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("batch.toml");
    let text = "[design]\nname = \"a\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
                [[alternative]]\nname = \"a\"\nrequest = [{ read = \"client-host\", bytes = \"64 B\", batch = 999999999 }]\n";
    fs::write(&file, text).expect("written");
    let refused = offpath(&["plan", file.to_str().expect("a UTF-8 path")]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains("999999999") && refused.stderr.contains("128"), "{}", refused.stderr);
}

#[test]
fn a_design_names_the_device_beside_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let place = |name: &str| directory.path().join(name);
    fs::write(place("card.toml"), include_str!("../../../profiles/devices/bluefield2.toml"))
        .expect("written");
    let design = "[design]\nname = \"own\"\ndevice = \"card.toml\"\nobjective = \"most-throughput\"\n\
                  rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
                  request = [{ read = \"client-soc\", bytes = \"64 B\" }]\n";
    fs::write(place("design.toml"), design).expect("written");
    let path = place("design.toml");
    let plan = || offpath(&["plan", path.to_str().expect("a UTF-8 path")]);
    assert_eq!(plan().code, 0, "{}", plan().stderr);
    fs::remove_file(place("card.toml")).expect("it is there");
    let refused = plan();
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    assert!(refused.stderr.contains(":3:10]"), "it points at the device: {}", refused.stderr);
}

/// What a twin shows that confirms nothing is not shown beside the plan.
#[test]
fn a_twin_that_confirms_nothing_gives_no_figure() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("design.toml");
    let design = "[design]\nname = \"rare\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                  rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [\n\
                  { compute = \"host\", time = \"1 us\" },\n{ probability = 0.0000001, \
                  then = [{ compute = \"host\", time = \"1 us\" }], otherwise = [] },\n]\n";
    fs::write(&path, design).expect("written");
    let said = answer(&["plan", path.to_str().expect("a UTF-8 path")]);
    assert!(said.contains("THE TWIN CONFIRMS NOTHING"), "{said}");
    assert!(said.contains("advice: not measured, since the twin confirms nothing"), "{said}");
    assert!(!said.contains("twin: "), "{said}");
    assert_eq!(said.lines().nth(1), Some("goal: most throughput"), "no workload is named");
}

#[test]
fn what_the_command_line_gives_is_refused_as_such() {
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/kv-ycsb-c.toml");
    let plan = |more: &[&str]| offpath(&[&["plan", design], more].concat());
    for (more, words) in [
        (&["--goal", "fastest"][..], "`--goal fastest`: `fastest` is not an objective"),
        (&["--goal", "least-host-cpu"], "`--goal least-host-cpu`: objective"),
        (&["--goal", "least-host-cpu", "--load", "40"], "`--load 40`: `40` has no unit"),
    ] {
        let refused = plan(more);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert!(refused.stderr.contains(words) && !refused.stderr.contains(",-["), "{}", refused.stderr);
    }
}

#[test]
fn the_picture_is_one_file_that_needs_nothing_else() {
    let directory = tempfile::tempdir().expect("a directory");
    for device in ["bluefield2", "connectx6", RING] {
        let file = directory.path().join("topology.svg");
        answer(&["device", "show", device, "--svg", file.to_str().expect("a UTF-8 path")]);
        let picture = fs::read_to_string(&file).expect("the picture is written");
        assert!(picture.starts_with("<svg xmlns=\"http://www.w3.org/2000/svg\""), "{device}");
        assert!(picture.contains("prefers-color-scheme:dark"));
        for outside in ["href", "url(", "<script", "@import"] {
            assert!(!picture.contains(outside), "{device}: {outside}");
        }
        for link in json(&["device", "show", device])["machines"][0]["links"].as_array().expect("links") {
            assert!(picture.contains(link["name"].as_str().expect("a name")), "{device}: {link}");
        }
    }
}

/// A card of which nothing is known is written, refused while blank, and planned as the guess that it is.
#[test]
fn a_new_device_is_blank_or_carried_over_and_plans_as_a_guess() {
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name).to_str().expect("a UTF-8 path").to_string();
    let (blank, mine) = (at("blank.toml"), at("mycard.toml"));
    let said = answer(&["new", "device", "blank", "--out", &blank]);
    assert!(said.contains("names what is still blank"), "{said}");
    let refused = offpath(&["device", "show", &blank]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    for words in ["`[soc]` lacks values for `cores`", "`[nic]` lacks values for", "`bank_write_time`"] {
        assert!(refused.stderr.contains(words), "{words}: {}", refused.stderr);
    }

    let said = answer(&["new", "device", "mycard", "--base", "bluefield2", "--out", &mine]);
    assert!(said.contains("carried over from bluefield2"), "{said}");
    let shown: Value =
        serde_json::from_str(&answer(&["device", "show", &mine, "--format", "json"])).expect("JSON");
    let own =
        shown["numbers"].as_array().expect("numbers").iter().filter(|number| number["file"] == mine.as_str());
    for number in own {
        let (provenance, rows) = (&number["provenance"], number["rows"].as_array().expect("rows"));
        assert!(provenance == "carried-over" || provenance == "datasheet" && rows.is_empty(), "{number}");
    }
    let plan = ["plan", "../../designs/three-mistakes.toml", "--device", &mine, "--format", "json"];
    let planned: Value = serde_json::from_str(&answer(&plan)).expect("JSON");
    assert_eq!(planned["device"], "mycard");
    let alternatives = planned["alternatives"].as_array().expect("alternatives").iter();
    let on_card: Vec<&Value> = alternatives.filter(|one| one["device"] == "mycard").collect();
    assert!(!on_card.is_empty() && on_card.iter().all(|one| one["basis"] == "order only"), "{on_card:?}");

    // Nothing is overwritten, nothing that does not load stays, and a design may still be called what it likes.
    // The template calls the card's processor what the card does.
    let own = at("own.toml");
    let card = answer(&["device", "source", "bluefield2"])
        .replace("soc", "arm")
        .replace("\"bluefield2\"", "\"own\"");
    std::fs::write(&own, card).expect("it is written");
    for kind in ["kv", "replication"] {
        let design = at(&format!("own-{kind}.toml"));
        answer(&["new", "own", "--kind", kind, "--device", &own, "--out", &design]);
        assert!(!std::fs::read_to_string(&design).expect("it is there").contains("soc"), "{kind}");
    }
    let again = offpath(&["new", "device", "mycard", "--base", "bluefield2", "--out", &mine]);
    assert!(again.code == 2 && again.stderr.contains("exists already"), "{}", again.stderr);
    let same = offpath(&["new", "device", "bluefield2", "--out", &at("same.toml")]);
    assert!(same.code == 2 && same.stderr.contains("already"), "{}", same.stderr);
    let odd = offpath(&["new", "device", "odd", "--out", &at("odd.txt")]);
    assert!(odd.code == 2 && odd.stderr.contains(".toml"), "{}", odd.stderr);
    for new in [&["new", "device", "odd"][..], &["new", "odd"]] {
        let unread = offpath(&[new, &["--set", "nic.inflight_slots=1"]].concat());
        assert!(unread.code == 2 && unread.stderr.contains("--set has no effect"), "{}", unread.stderr);
    }
    answer(&["new", "--out", &at("design.toml"), "--", "device"]);
    assert_eq!(offpath(&["new", "device"]).code, 2);
    assert_eq!(offpath(&["new"]).code, 2);
}

#[test]
fn help_teaches_by_example_and_shells_complete() {
    for command in [
        &["plan"][..],
        &["compare"],
        &["whatif"],
        &["path"],
        &["device", "list"],
        &["device", "show"],
        &["sweep"],
        &["completions"],
        &["new"],
        &["new", "device"],
        &[],
    ] {
        let help = answer(&[command, &["--help"]].concat());
        assert!(help.matches("offpath ").count() >= 3, "{command:?}: {help}");
        assert!(help.contains("Examples:"), "{command:?}");
    }
    assert!(answer(&["--help"]).contains("Exit codes:"));
    for shell in ["bash", "zsh", "fish"] {
        assert!(answer(&["completions", shell]).contains("offpath"));
    }
    assert_eq!(offpath(&[]).code, 2);
}

#[test]
fn the_validation_page_is_what_reproduce_says() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/validation.md");
    let page = fs::read_to_string(&path).expect("the page is there");
    let said = answer(&["reproduce", "--format", "markdown"]);
    let first = page.lines().zip(said.lines()).position(|(page, said)| page != said);
    assert!(
        page == said,
        "docs/validation.md differs from line {:?} on; write it anew with `offpath reproduce --format markdown`",
        first.map(|line| line + 1)
    );
}

#[test]
fn a_row_is_explained() {
    insta::assert_snapshot!("explain", answer(&["explain", "W003"]));
}

/// Who links the facade has from one call what the command prints.
#[test]
fn rows_are_answered_by_one_call() {
    let row = "W066".to_string();
    let request = ReproduceRequest { rows: vec![row.clone()], ..ReproduceRequest::default() };
    let found = offpath::answers::reproduce(&request).unwrap_or_else(|_| panic!("the row is known"));
    let printed = |command: &str| answer(&[command, "W066", "--format", "json"]);
    assert_eq!(rounded_json(&found).ok(), Some(printed("reproduce")));
    let request = ExplainRequest { row, ..ExplainRequest::default() };
    let found = offpath::answers::explain(&request).unwrap_or_else(|_| panic!("the row is known"));
    assert_eq!(rounded_json(&found).ok(), Some(printed("explain")));
}

#[test]
fn reproduce_refuses_what_rows_decide_themselves() {
    let setting = offpath(&["reproduce", "--set", "nic.inflight_slots=100"]);
    assert_eq!(setting.code, 2);
    assert!(setting.stderr.contains("--profiles"), "{}", setting.stderr);
    let unknown = offpath(&["explain", "W72"]);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("did you mean one of `W072`"), "{}", unknown.stderr);
}

/// A mix of which the twin carries less than one of its parts is planned to carry alone is not left standing as the answer.
#[test]
fn a_mix_that_the_twin_carries_less_of_than_a_part_alone_says_so() {
    const DESIGN: &str = r#"
[design]
name = "odd"
device = "bluefield2"
objective = "most-throughput"
rank_by = "throughput"

[[alternative]]
name = "a"
request = [
  { fetch-and-add = "client-host" },
  { send = "client-soc", bytes = "8 B" },
  { compute = "soc", time = "300 ns" },
  { fetch-and-add = "soc-host" },
  { compute = "soc", time = "4 us" },
  { send = "soc-client", bytes = "64 B" },
]

[[alternative]]
name = "b"
request = [
  { write = "client-host", bytes = "64 B" },
  { probability = 0.05, then = [ { wait = "200 us" } ], otherwise = [ { wait = "20 us" } ] },
  { send = "client-host", bytes = "1 KiB" },
  { write = "host-client", bytes = "4 KiB" },
  { read = "host-soc", bytes = "16 B" },
  { compute = "host", time = "300 ns" },
  { send = "host-soc", bytes = "8 B" },
  { compute = "soc", time = "50 ns" },
  { send = "soc-client", bytes = "1 KiB" },
]
background = [ { write = "soc-client", bytes = "64 KiB", to = 3 } ]
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("odd.toml");
    fs::write(&file, DESIGN).expect("written");
    let text = wide_answer(&["plan", &file.display().to_string()]);
    assert!(text.contains("TWIN AND PLAN DIFFER"), "{text}");
    assert!(text.contains("THAN a IS PLANNED TO CARRY ALONE") && text.contains("plan a by itself"), "{text}");
}

#[test]
fn torture_says_what_held() {
    let arguments = ["torture", "kv", "--seeds", "20"];
    let first = answer(&arguments);
    assert_eq!(first, answer(&[&arguments[..], &["--threads", "1"]].concat()));
    insta::assert_snapshot!("torture", first);
    // After the last of all seeds there is none.
    let last =
        ["torture", "replog", "--first-seed", "18446744073709551614", "--seeds", "1", "--threads", "2"];
    assert!(answer(&last).contains("18446744073709551614"));
}

#[test]
fn torture_that_finds_something_says_how_to_see_it_again() {
    let found = offpath(&["torture", "kv", "--inject-bug", "no-checksum", "--seeds", "100"]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    insta::assert_snapshot!("torture-found", found.stdout);
    let again = found.stdout.lines().last().and_then(|line| line.strip_prefix("again: offpath "));
    let again: Vec<&str> = again.expect("the last line is a command").split(' ').collect();
    assert_eq!(offpath(&again).code, 1);
    // On another system too: a second on the way is more than any session waits.
    let slow = offpath(&["torture", "kv", "--seeds", "1", "--set", "nic.pass_time=1s"]);
    let last = slow.stdout.lines().last().unwrap_or_default();
    assert_eq!(
        (slow.code, last),
        (1, "again: offpath torture kv --first-seed 0 --seeds 1 --set nic.pass_time=1s"),
        "{}",
        slow.stderr
    );
    // A server that never starts is told, rather than waited for.
    let small = offpath(&["torture", "kv", "--seeds", "1", "--set", "soc.capacity=1KiB"]);
    assert_eq!(small.code, 1, "{}", small.stderr);
    assert!(small.stdout.contains("memory `soc` has 1024 B left"), "{}", small.stdout);
    check(
        &serde_json::from_str(&offpath(&[&again[..], &["--format", "json"]].concat()).stdout).unwrap(),
        &schema("torture.json"),
        "torture.json",
    );
}

#[test]
fn torture_refuses_what_it_does_not_know() {
    for (arguments, words) in [
        (["torture", "kv", "--inject-bug", "no-brakes"], "has no bug `no-brakes`"),
        (["torture", "raft", "--seeds", "1"], "raft"),
        (["torture", "replog", "--device", "connectx6"], "connectx6"),
        (["torture", "kv", "--seeds", "0"], "0"),
    ] {
        let refused = offpath(&arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains(words), "{arguments:?}: {}", refused.stderr);
    }
}

const WORKLOADS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../workloads/workload");

fn workload(letter: char) -> String {
    format!("{WORKLOADS}{letter}")
}

/// A run of the store on the twin with some load.
fn store_on_twin<'a>(workload: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let common =
        ["run", "kv", "--on", "twin:bluefield2", "--workload", workload, "--clients", "4", "--sessions", "8"];
    [&common[..], more].concat()
}

/// A kind of which not one operation was carried out is no run that held, however many others were.
#[test]
fn a_run_in_which_all_gets_fail_does_not_hold() {
    let workload = workload('a');
    let impatient = ["--placement", "A2", "--patience", "10us", "--format", "json"];
    let run = offpath(
        &[&["run", "kv", "--on", "twin:bluefield2", "--workload", &workload], &impatient[..]].concat(),
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("not one read was carried out"), "{}", run.stderr);
    let report: serde_json::Value = serde_json::from_str(&run.stdout).expect("it is JSON");
    check(&report, &schema("run-kv.json"), "run-kv.json");
    assert_eq!(report["failures"][0]["operation"], "read");
    assert_eq!(report["failures"][0]["failed"], report["failed"]);
}

/// Nor is one of which most failed: its rates are those of the few that did not.
#[test]
fn a_run_in_which_most_gets_fail_does_not_hold() {
    let c = workload('c');
    let slots = ["--set", "nic.inflight_slots=1", "--set", "nic.reserved_inflight_slots=1"];
    let load = ["--placement", "A3", "--fetch", "rdma", "--sessions", "64", "--clients", "11"];
    let run = offpath(
        &[&["run", "kv", "--on", "twin:bluefield2", "--workload", &c], &slots[..], &load[..]].concat(),
    );
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stderr.contains("more of read failed than were carried out"), "{}", run.stderr);
}

/// What a run does not look into changes nothing, and whoever sets it is told.
#[test]
fn a_cache_that_no_get_looks_into_is_told() {
    let c = workload('c');
    let short = ["--property", "recordcount=1000", "--property", "operationcount=2000", "--cache", "7"];
    let split = offpath(&store_on_twin(&c, &short));
    assert!(split.stderr.contains("`--cache` changes nothing: a get by A4"), "{}", split.stderr);
    let cached = offpath(&store_on_twin(&c, &[&short[..], &["--placement", "A5-read"]].concat()));
    assert_eq!((cached.code, cached.stderr.as_str()), (0, ""));
}

/// Step lists are asked for where code would be planned, and nowhere else.
#[test]
fn options_and_sweeps_that_would_do_nothing_or_never_end_are_refused() {
    let design = format!("{}/../../designs/replication.toml", env!("CARGO_MANIFEST_DIR"));
    let mongo = format!("{}/../../designs/mongo-sharding.toml", env!("CARGO_MANIFEST_DIR"));
    assert_eq!(offpath(&["plan", &design, "--steps"]).code, 0);
    let refused = offpath(&["plan", &mongo, "--steps"]);
    assert!(refused.code == 2 && refused.stderr.contains("`--steps` has no effect"), "{}", refused.stderr);
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("swept.toml");
    let values: Vec<String> = (1..=257).map(|value| format!("\"{value} us\"")).collect();
    let text = format!(
        "[design]\nname = \"a\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
         [parameters]\nservice = \"1 us\"\n[sweep]\nparameter = \"service\"\nvalues = [{}]\n\
         [[alternative]]\nname = \"a\"\nrequest = [{{ compute = \"host\", time = \"service\" }}]\n",
        values.join(", ")
    );
    fs::write(&file, text).expect("written");
    let refused = offpath(&["plan", file.to_str().expect("a UTF-8 path")]);
    assert!(refused.code == 2 && refused.stderr.contains("257 values, and 256"), "{}", refused.stderr);
}

/// A role whose machine is the server's again is shown once; a blank file is told by its tables and not printed back.
#[test]
fn a_device_is_shown_once_and_a_blank_one_in_a_line_for_each_table() {
    let shown = answer(&["device", "show", "bluefield2"]);
    assert!(shown.contains("backup: as server, bluefield2 in host srv"), "{shown}");
    assert!(!shown.contains("backup.soc.cores") && shown.contains("client.nic.port_rate"), "{shown}");
    let other = answer(&["device", "show", "bluefield2", "--set", "backup.soc.cores=4"]);
    assert!(other.contains("backup.soc.cores"), "a machine that differs is shown");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("blank.toml");
    let path = file.to_str().expect("a UTF-8 path");
    assert_eq!(offpath(&["new", "device", "blank", "--out", path]).code, 0);
    let refused = offpath(&["device", "show", path]);
    assert_eq!(refused.code, 2);
    let blank = fs::read_to_string(&file).expect("it was written");
    let line = 1 + blank.lines().position(|line| line == "[soc]").expect("it has the table");
    let told = format!(":{line}:2: `[soc]` lacks values for `cores`");
    assert!(refused.stderr.contains(&told), "{}", refused.stderr);
    assert!(refused.stderr.lines().count() < 15, "{}", refused.stderr);
}

/// A table of a run without the folder that its workload lies in.
fn without_folder(text: &str) -> String {
    text.replace(WORKLOADS, "workload")
}

#[test]
fn runs_on_the_twin_say_what_they_said() {
    let (a, c) = (workload('a'), workload('c'));
    let mixed = store_on_twin(&c, &["--mix", "controller", "--warm", "1000", "--fetch", "dma"]);
    let cases = [
        ("run_kv", store_on_twin(&a, &["--placement", "A5-send"])),
        ("run_kv_controller", mixed),
        (
            "run_replog",
            vec!["run", "replog", "--on", "twin:bluefield2", "--placement", "A2", "--writes", "4"],
        ),
        (
            "run_replog_compress",
            vec![
                "run",
                "replog",
                "--on",
                "twin:bluefield2",
                "--backups",
                "2",
                "--compress",
                "all",
                "--writes",
                "4",
            ],
        ),
    ];
    for (name, arguments) in cases {
        let said = wide_answer(&arguments);
        assert_eq!(said, wide_answer(&arguments), "{arguments:?}: the same bytes twice");
        insta::assert_snapshot!(name, without_folder(&said));
    }
}

#[test]
fn runs_follow_their_schemas() {
    let json = |arguments: &[&str], on: &str| match on {
        "local" => timed_json(arguments),
        _ => json(arguments),
    };
    for letter in ['a', 'b', 'c', 'd', 'f'] {
        let file = workload(letter);
        for on in ["twin:bluefield2", "local"] {
            let report = json(&["run", "kv", "--on", on, "--workload", &file, "--clients", "2"], on);
            check(&report, &schema("run-kv.json"), "run-kv.json");
            assert_eq!(report["operations"], 2000, "{on} {letter}");
            assert_eq!(
                (&report["wrong"], &report["absent"], &report["failed"]),
                (&0.into(), &0.into(), &0.into())
            );
            assert!(report["throughput_ops_per_s"].as_f64().is_some_and(|rate| rate > 0.0), "{on} {letter}");
            assert_eq!(report["events_per_operation"].is_null(), on == "local", "{on} {letter}");
        }
    }
    for on in ["twin:bluefield2", "local"] {
        for placement in ["A1", "A2", "A3", "A2+A3"] {
            // Files of the local backend are synced, so this writes little.
            let size = ["--bytes", "256KiB", "--chunk", "16KiB", "--writes", "2"];
            let log = ["run", "replog", "--on", on, "--placement", placement, "--backups", "2"];
            let share = if placement == "A2+A3" { &["--card-share", "50"][..] } else { &[] };
            let report = json(&[&log[..], &size, share].concat(), on);
            check(&report, &schema("run-replog.json"), "run-replog.json");
            assert_eq!(report["writes"], 2, "{on} {placement}");
            let by =
                ["chunks_by_card", "chunks_by_host"].map(|key| report[key].as_u64().is_some_and(|by| by > 0));
            assert_eq!(
                by,
                [placement != "A3", placement.contains("A3")],
                "{on} {placement}: by card, by host"
            );
        }
    }
}

#[test]
fn a_run_takes_the_best_mix_of_a_plan() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.json");
    let file = plan.to_str().expect("a name in UTF-8");
    let write = |shares: &str| {
        let text = format!(
            "{{\"schema_version\": 2, \"workload_properties\": {{}}, \"optimal\": {{\"shares\": {shares}}}}}"
        );
        fs::write(&plan, text).expect("it is written");
    };
    let c = workload('c');
    let arguments = store_on_twin(&c, &["--mix", file, "--warm", "1000"]);
    write(r#"{"A5-read": 0.75, "A5-send": 0.25, "A4": 0.0}"#);
    let report = json(&arguments);
    let gets = report["gets"].as_array().expect("gets");
    let share = |name: &str| {
        gets.iter().find(|gets| gets["placement"] == name).and_then(|gets| gets["share"].as_f64())
    };
    // 4000 gets: six standard deviations of the share.
    assert!(share("A5-read").is_some_and(|share| (share - 0.75).abs() < 0.041), "{gets:?}");
    assert_eq!((gets.len(), share("A4")), (2, None));
    for (shares, words) in [
        (r#"{"A5-read": 0.7, "rnic": 0.3}"#, ["`rnic`", "A5-send"]),
        (r#"{"A1": 0.7, "A4": 0.3}"#, ["A4", "another placement"]),
        (r#"{"A4": 0.0}"#, ["empty", "offpath plan"]),
        (r#"{"A5-read": -5.0, "A5-send": 0.2}"#, ["`A5-read` is -5.0", "from 0 to 1"]),
        (r#"{"A5-read": 0.5}"#, ["add up to 0.5", "offpath plan"]),
        ("3", ["optimal.shares", "offpath plan"]),
    ] {
        write(shares);
        refuses(&arguments, &words);
    }
    fs::write(&plan, "{").expect("it is written");
    refuses(&arguments, &["not JSON", "plan.json"]);
    fs::write(&plan, "{\"schema_version\": 2, \"optimal\": {\"shares\": {\"A4\": 1}}}")
        .expect("it is written");
    refuses(&arguments, &["workload_properties", "another version"]);
}

/// A plan's shares are the best for the requests that it was made for.
#[test]
fn a_run_says_that_a_plan_is_for_other_requests() {
    let folder = tempfile::tempdir().expect("a folder");
    let plan = folder.path().join("plan.json");
    let file = plan.to_str().expect("a name in UTF-8");
    fs::write(&plan, answer(&["plan", STORE, "--format", "json"])).expect("it is written");
    let report = json(&["plan", STORE]);
    let c = workload('c');
    let other = offpath(&store_on_twin(&c, &["--mix", file]));
    let planned = report["workload"].as_str().expect("a text").split_once(": ").expect("its parts").1;
    // Shares of a small plan may name what no store has; the workload is looked at all the same.
    assert!(other.code == 0 || other.stderr.contains("placement"), "{}", other.stderr);
    if other.code == 0 {
        assert!(
            other.stderr.contains(planned) && other.stderr.contains("records of 1000 B"),
            "{}",
            other.stderr
        );
    }
    assert!(
        other.code != 0 || other.stderr.contains("latencies here are of the store's own queues"),
        "{}",
        other.stderr
    );
    // A plan for another system, which counts on a cache.
    let system = serde_json::json!({
        "schema_version": 2, "workload_properties": {}, "device": "connectx6", "testbed": "rack",
        "overlays": ["soc.cores=16"], "cache_hit_ratio": 0.8, "optimal": { "shares": { "A4": 1 } },
    });
    fs::write(&plan, system.to_string()).expect("it is written");
    let warned = offpath(&store_on_twin(&c, &["--mix", file])).stderr;
    for words in
        ["device connectx6, other bluefield2", "settings soc.cores=16, other none", "80% of requests"]
    {
        assert!(warned.contains(words), "{words}: {warned}");
    }
    assert!(!warned.contains("testbed rack, other"), "{warned}");
    let warm = offpath(&store_on_twin(&c, &["--mix", file, "--warm", "1000"])).stderr;
    assert!(!warm.contains("80% of requests"), "{warm}");
    // A cache that answers less than the plan counts on, and one that answers more.
    let cached = serde_json::json!({
        "schema_version": 2, "workload_properties": {}, "device": "bluefield2", "cache_hit_ratio": 0.9,
        "optimal": { "shares": { "A5-read": 1 } },
    });
    fs::write(&plan, cached.to_string()).expect("it is written");
    let hits =
        |slots| offpath(&store_on_twin(&c, &["--mix", file, "--cache", slots, "--warm", "1000"])).stderr;
    let small = hits("16");
    assert!(small.contains("plan.json` counts on 90.0%") && small.contains("--cache SLOTS"), "{small}");
    let large = hits("1000");
    assert!(large.contains("counts on 90.0%") && large.contains("fewer slots"), "{large}");
    // What makes the cache the plan's: its slots, records that are warm, and time where gets of the mix fill it.
    let remedies = |placement: &str, ratio: f64, warm: &str| {
        let cached = serde_json::json!({
            "schema_version": 2, "workload_properties": {}, "device": "bluefield2", "cache_hit_ratio": ratio,
            "cache": { "entries": 256 }, "optimal": { "shares": { placement: 1 } },
        });
        fs::write(&plan, cached.to_string()).expect("it is written");
        offpath(&store_on_twin(&c, &["--mix", file, "--cache", "128", "--warm", warm])).stderr
    };
    let read = remedies("A5-read", 0.9, "16");
    for words in ["by `--cache 256`", "by `--warm 256`", "so that `--warm-up` fills nothing"] {
        assert!(read.contains(words), "{words}: {read}");
    }
    let send = remedies("A5-send", 0.9, "16");
    assert!(send.contains("a longer `--warm-up`") && !send.contains("fills nothing"), "{send}");
    let more = remedies("A5-read", 0.1, "256");
    assert!(more.contains("by `--cache 256`") && !more.contains("--warm"), "{more}");
    // The DMA engine is a part of what the shares are best for.
    let system = serde_json::json!({
        "schema_version": 2, "workload_properties": {}, "device": "bluefield2", "fetch_engine": "dma",
        "optimal": { "shares": { "A5-send": 1 } },
    });
    fs::write(&plan, system.to_string()).expect("it is written");
    assert_eq!(json(&store_on_twin(&c, &["--mix", file]))["fetch"], "dma");
    assert_eq!(json(&store_on_twin(&c, &["--mix", file, "--fetch", "rdma"]))["fetch"], "rdma");
    assert!(answer(&store_on_twin(&c, &["--mix", file])).contains("the card reaches the host by dma"));
    // Of a plan whose workload is workloadc but for one property.
    let write = |key: &str, value: &str| {
        let mut properties = std::collections::BTreeMap::from([
            ("recordcount", "1000"),
            ("readproportion", "1"),
            ("updateproportion", "0"),
            ("requestdistribution", "zipfian"),
        ]);
        properties.insert(key, value);
        let text = serde_json::json!({
            "schema_version": 2,
            "workload_properties": properties,
            "optimal": { "shares": { "A4": 1 } },
        });
        fs::write(&plan, text.to_string()).expect("it is written");
    };
    // A run of another length, and a default that is written out, is no other workload.
    for (key, value) in [("operationcount", "7"), ("fieldcount", "10"), ("label", "mine")] {
        write(key, value);
        assert_eq!(offpath(&store_on_twin(&c, &["--mix", file])).stderr, "", "{key}");
    }
    for (key, value, difference) in [
        ("fieldlength", "64", "fieldlength 64 B, other 100 B"),
        ("updateproportion", "1", "update 50.0000%, other 0.0000%"),
        ("requestdistribution", "uniform", "requestdistribution Uniform, other Zipfian"),
        // The sentence of both is the same.
        ("readallfields", "false", "readallfields false, other true"),
    ] {
        write(key, value);
        let warned = offpath(&store_on_twin(&c, &["--mix", file]));
        assert_eq!(warned.code, 0, "{}", warned.stderr);
        assert!(
            warned.stderr.starts_with("warning: ") && warned.stderr.contains(difference),
            "{}",
            warned.stderr
        );
    }
}

/// Whoever reads a rate of a mode that costs what no number says is told so.
#[test]
fn every_command_notes_what_a_mode_leaves_out() {
    let c = workload('c');
    let commands: [&[&str]; 3] = [
        &["check", MISTAKES, "--mix", "optimal"],
        &["sweep", "bluefield2", "--path", "client-host", "--clients", "1"],
        &["run", "kv", "--on", "twin:bluefield2", "--workload", &c],
    ];
    for command in commands {
        let said = |more: &[&str]| offpath(&[command, more].concat()).stderr;
        let note = "is not part of the profile";
        assert!(said(&["--mode", "embedded-cpu"]).contains(note), "{command:?}");
        assert!(!said(&[]).contains(note), "{command:?}");
    }
}

/// A primary waits for a backup that is down; one that ended by an error in the same run does not come back.
#[test]
fn a_backup_that_cannot_go_on_ends_the_run() {
    let folder = tempfile::tempdir().expect("a directory");
    let logs = folder.path().to_str().expect("UTF-8");
    let log = ["run", "replog", "--on", "local", "--backups", "1", "--directory", logs, "--writes", "2"];
    let log = [&log[..], &["--bytes", "256KiB"]].concat();
    assert_eq!(offpath(&log).code, 0);
    let backup = folder.path().join("backup-0");
    let segment = std::fs::read_dir(&backup)
        .expect("it holds its log")
        .map(|entry| entry.expect("it is read").path())
        .find(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment")))
        .expect("a segment");
    let mut bytes = std::fs::read(&segment).expect("it is read");
    bytes[100_000] ^= 1;
    std::fs::write(&segment, bytes).expect("it is written");
    let damaged = offpath(&log);
    assert_eq!((damaged.code, damaged.stdout.as_str()), (1, ""), "{}", damaged.stderr);
    assert!(damaged.stderr.contains("segment"), "{}", damaged.stderr);
}

/// Expects a refusal of the input that names what is wrong and what to do.
fn refuses(arguments: &[&str], words: &[&str]) {
    let refused = offpath(arguments);
    assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
    assert_eq!(refused.stdout, "", "{arguments:?}");
    for word in words {
        assert!(refused.stderr.contains(word), "{arguments:?} lacks {word}: {}", refused.stderr);
    }
}

#[test]
fn runs_that_cannot_be_are_refused_with_a_next_step() {
    let (a, c, e) = (workload('a'), workload('c'), workload('e'));
    let on_twin =
        |more: &[&'static str]| [&["run", "kv", "--on", "twin:bluefield2", "--workload"], more].concat();
    let kv =
        |on: &'static str, more: &[&'static str]| [&["run", "kv", "--on", on, "--workload"], more].concat();
    // The workload stands after `--workload`.
    let with = |file: &str, mut arguments: Vec<&'static str>| {
        arguments.retain(|argument| !argument.is_empty());
        let mut all: Vec<String> = arguments.into_iter().map(str::to_string).collect();
        let at = all.iter().position(|argument| argument == "--workload").expect("it is there") + 1;
        all.insert(at, file.to_string());
        all
    };
    let cases = [
        (with(&e, on_twin(&[])), &["workloade", "scanproportion=0"][..]),
        (with("no-such-file", on_twin(&[])), &["no-such-file"]),
        (with(&c, kv("cloud", &[])), &["cloud", "twin:DEVICE"]),
        (with(&c, kv("twin:bluefeld2", &[])), &["bluefeld2", "did you mean `bluefield2`?"]),
        (with(&c, kv("twin:connectx6", &[])), &["soc"]),
        (with(&c, on_twin(&["--mode", "nic"])), &["soc", "mode `nic`"]),
        (with(&c, on_twin(&["--placement", "A9"])), &["A9", "A5-send"]),
        (with(&c, on_twin(&["--connect", "127.0.0.1:7000"])), &["twin", "verbs:DEVICE"]),
        (with(&c, kv("local", &["--connect", "127.0.0.1:7000"])), &["local", "verbs:DEVICE"]),
        (with(&c, kv("local", &["--set", "soc.pcie_mtu=512B"])), &["--set", "twin"]),
        (with(&c, on_twin(&["--key-bytes", "9"])), &["key size", "1 to 8"]),
        (with(&c, on_twin(&["--key-bytes", "1"])), &["1000 records", "1 B"]),
        (with(&c, on_twin(&["--mix", "no-plan.json"])), &["no-plan.json", "offpath plan"]),
        (with(&c, on_twin(&["--mix", "controller:A1"])), &["controller:A1", "A5-send"]),
        (with(&c, on_twin(&["--fetch", "engine"])), &["engine"]),
        (with(&c, kv("local", &["--placement", "A2", "--fetch", "engine"])), &["`engine` (there is `dma`)"]),
        (with(&a, on_twin(&["--records", "10"])), &["preloaded", "--records"]),
        (with(&a, on_twin(&["--property", "fieldlength=6554"])), &["65540", "1 to 65535"]),
        (
            with(&a, on_twin(&["--property", "threadcount=2147483647"])),
            &["2147483647 sessions", "65536", "`--sessions` counts"],
        ),
    ];
    for (arguments, words) in cases {
        refuses(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), words);
    }
    // No figure stands for a window in which nothing ended.
    let none = offpath(&store_on_twin(&c, &["--window", "1ns"]));
    assert_eq!((none.code, none.stdout.as_str()), (1, ""), "{}", none.stderr);
    assert!(none.stderr.contains("no operation ended within the 1 ns"), "{}", none.stderr);
    let log = ["run", "replog", "--on", "twin:bluefield2"];
    for (more, words) in [
        (&["--placement", "A4"][..], &["A4", "A2+A3"][..]),
        (&["--placement", "A2", "--engine", "copier"], &["copier", "A1 or A3"]),
        (&["--chunk", "0B"], &["chunk size", "536870912"]),
        (&["--backups", "3"], &["3 backups", "another backend"]),
        (&["--bytes", "8"], &["no unit"]),
        (&["--writes", "0"], &["a write at least"]),
    ] {
        refuses(&[&log[..], more].concat(), words);
    }
    let log = ["run", "replog", "--on", "local", "--writes", "2", "--bytes", "64KiB"];
    for placement in ["A2", "A2+A3"] {
        let words = ["no DMA engine `warp-drive`, only `dma`", "leave `--engine` out"];
        refuses(&[&log[..], &["--placement", placement, "--engine", "warp-drive"]].concat(), &words);
    }
    for command in ["run", "serve"] {
        refuses(&[command, "cache", "--on", "local"], &["`cache`", "`kv`", "`replog`"]);
    }
    refuses(&["run", "kv", "--on", "local"], &["--workload"]);
    let serve = |on: &'static str, listen: &'static str| ["serve", "replog", "--on", on, "--listen", listen];
    refuses(&serve("local", "127.0.0.1:7000"), &["local", "serve `--on verbs:DEVICE`", "`offpath run`"]);
    refuses(&serve("twin:bluefield2", "127.0.0.1:7000"), &["twin", "verbs:DEVICE"]);
    refuses(&serve("verbs:none", "here"), &["here"]);
    refuses(&[&serve("verbs", "127.0.0.1:7000")[..], &["--role", "soc"]].concat(), &["soc", "backup"]);
}

/// What a workload says that a run does not do is told, and the run goes on.
#[test]
fn what_a_run_leaves_of_its_workload_is_told() {
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("mine");
    let text =
        "recordcount=100\noperationcount=50\nreadproportion=1\ntarget=1000\nmaxexecutiontime=5\nzorkmid=1\n";
    std::fs::write(&file, text).expect("it is written");
    let file = file.to_str().expect("UTF-8");
    let said = |more: &[&str]| {
        let run = offpath(&[&["run", "kv", "--on", "twin:bluefield2", "--workload", file], more].concat());
        assert_eq!(run.code, 0, "{}", run.stderr);
        run.stderr
    };
    let all = said(&[]);
    let lines = [
        "warning: `target=1000` of the workload has no effect: the run is a closed loop",
        "`--clients` and `--sessions` set the load",
        "warning: `maxexecutiontime=5` of the workload has no effect",
        "`--window` says how long is measured",
        "`updateproportion` is not written, and YCSB's default is 0.05",
        "write updateproportion=0 for none",
        "unknown key `zorkmid` is ignored",
    ];
    for line in lines {
        assert!(all.contains(line), "{line}: {all}");
    }
    assert_eq!(all.matches("warning: ").count(), 4, "{all}");
    let set = ["target=0", "maxexecutiontime=0", "updateproportion=0"];
    let set: Vec<&str> = set.into_iter().flat_map(|property| ["--property", property]).collect();
    assert_eq!(said(&set).matches("warning: ").count(), 1);
}

/// A station that is always busy gives back what was planned, whatever ended meanwhile: who reads the one sees the other.
#[test]
fn what_ended_on_the_twin_stands_beside_what_its_station_did() {
    let (_folder, file, _) = written(
        r#"{ send = "client-host", bytes = "256 B" },
        { probability = 0.001, then = [ { compute = "host", time = "1 ms" } ], otherwise = [] },
        { send = "host-client", bytes = "16 B" }"#,
    );
    let design = file.to_str().expect("a UTF-8 path");
    // A core that computes for so long is remarked on.
    let told = offpath(&["plan", design, "--format", "json"]).stdout;
    let twin = &serde_json::from_str::<Value>(&told).expect("JSON")["twin"];
    let number = |key: &str| twin[key].as_f64().unwrap_or_else(|| panic!("{key} is a number: {twin}"));
    let ended = number("requests_completed") / number("window_us");
    let (low, high) = (number("throughput_low_95_mreq_per_s"), number("throughput_high_95_mreq_per_s"));
    let shown = wide_answer(&["plan", design]);
    let is_said = shown.contains("ended in the window");
    assert_eq!(
        is_said,
        (ended < low || ended > high) && (ended / number("throughput_mreq_per_s") - 1.0).abs() > 0.02,
        "{shown}"
    );
}

#[test]
fn a_full_store_ends_the_run_with_a_negative_answer() {
    // Room for the 1000 records and half as many more, and 4000 inserts.
    let d = workload('d');
    let arguments = [
        "run",
        "kv",
        "--on",
        "local",
        "--workload",
        &d,
        "--records",
        "1000",
        "--property",
        "operationcount=4000",
        "--property",
        "insertproportion=1",
        "--property",
        "readproportion=0",
    ];
    let full = offpath(&arguments);
    assert_eq!(full.code, 1, "{}", full.stderr);
    assert!(full.stderr.contains("is full") && full.stderr.contains("--records"), "{}", full.stderr);
}

#[test]
fn a_program_without_rdma_says_so() {
    let c = workload('c');
    let refused = offpath(&["run", "kv", "--on", "verbs:no-such-device", "--workload", &c]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    // Without the library, without any device, or with others.
    assert!(
        refused.stderr.contains("lab/run") || refused.stderr.contains("no-such-device"),
        "{}",
        refused.stderr
    );
    assert!(refused.stderr.contains("twin:DEVICE"), "{}", refused.stderr);
}

/// What the twin does not confirm at a value of a varied parameter stands beneath the table, not only on the
/// page of a plan at that value.
#[test]
fn a_plan_by_a_parameter_says_where_the_twin_differs() {
    let design = format!("{}/../../designs/replication.toml", env!("CARGO_MANIFEST_DIR"));
    let page: serde_json::Value =
        serde_json::from_str(&answer(&["plan", &design, "--format", "json"])).expect("it is JSON");
    // With this seed of the twin one row differs by more than its noise.
    let seeded = ["plan", &design, "--seed", "11"];
    let text = answer(&seeded);
    let swept = json(&seeded);
    let rows = swept["sweep"]["rows"].as_array().expect("the design varies a parameter");
    let differs = |row: &&serde_json::Value| row["difference"].is_object();
    assert!(rows.iter().any(|row| differs(&row)) && !rows.iter().all(|row| differs(&row)), "{rows:?}");
    for row in rows {
        let said = text.contains(&format!("optimal at {}: the twin carries", row["value"].as_f64().unwrap()));
        assert_eq!(said, differs(&row), "{row}\n{text}");
    }
    // What was measured otherwise says what of, and beside what it stands here, where the plan has that.
    let missed = page["missed_rows"].as_array().expect("some are missed");
    let row = |name: &str| missed.iter().find(|one| one["row"] == name).expect("it is missed");
    let clients = row("W241");
    assert_eq!(clients["subject"], "A3 over A2 with 1 to 8 clients");
    assert!(clients["planned_low"].as_f64() < clients["planned_high"].as_f64(), "{clients}");
    let latency = row("W240");
    assert_eq!(latency["subject"], "latency of A3 over A2 at chunk 8 MiB");
    assert!(latency["planned_low"].is_null(), "this plan has other chunks: {latency}");
    assert!(row("W234")["subject"].as_str().is_some_and(|of| of.contains("`ratio` at which")), "{missed:?}");
    let text = wide_answer(&["plan", &design]);
    let of_clients = "W241 (A3 over A2 with 1 to 8 clients: 5 to 41 %, planned +";
    assert!(text.contains(of_clients), "{text}");
}

/// What the user sets is a claim and no evidence: it closes no mechanism that the evidence leaves open, and the draws that
/// hold another value than the one set are told.
#[test]
fn a_setting_closes_no_open_mechanism() {
    let design = format!("{}/../../designs/replication.toml", env!("CARGO_MANIFEST_DIR"));
    let plain = wide_answer(&["plan", &design]);
    assert!(plain.contains("variant one-pool"), "{plain}");
    let set = wide_answer(&["plan", &design, "--set", "nic.inflight_slots=150"]);
    assert!(set.contains("variant one-pool"), "{set}");
    let taken = wide_answer(&["plan", &design, "--set", "nic.reserved_inflight_slots=10"]);
    assert!(taken.contains("variant one-pool"), "{taken}");
    let notes = |arguments: &[&str]| {
        let page: serde_json::Value = serde_json::from_str(&wide_answer(arguments)).expect("it is JSON");
        page["notes"].to_string()
    };
    let json = ["plan", &design, "--format", "json"];
    let with = |more: [&str; 2]| notes(&[json.as_slice(), &more].concat());
    let says = with(["--set", "nic.reserved_inflight_slots=10"]);
    assert!(
        says.contains("variant `one-pool` takes `nic.reserved_inflight_slots` otherwise than you set it"),
        "{says}"
    );
    let says = with(["--overlay", "one-pool"]);
    assert!(says.contains("overlay `one-pool` is one of the mechanisms"), "{says}");
    let says = with(["--set", "nic.inflight_slots=150"]);
    assert!(!says.contains("one-pool"), "{says}");
    let other = wide_answer(&["plan", &design, "--set", "soc.read_latency=300ns"]);
    assert!(other.contains("variant one-pool"), "{other}");
    let told = offpath(&["plan", &design, "--set", "nic.inflight_slots=150"]).stderr;
    assert!(told.contains("W239 of `A2` measured the system as it is shipped"), "{told}");
    assert!(set.contains(" 1 set by you") && !plain.contains("set by you"), "{set}");
    // A setting to the value that is there is none: every figure stays.
    let figures = |text: &str| -> Vec<String> {
        text.lines().filter(|line| line.contains(|c: char| c.is_ascii_digit())).map(str::to_string).collect()
    };
    let same = figures(&wide_answer(&["plan", &design, "--set", "nic.inflight_slots=142"]));
    for line in figures(&plain).iter().skip(1) {
        assert!(same.contains(line), "{line}\n{same:#?}");
    }
}

/// A page takes the place of a page, and of nothing that was written by hand.
#[test]
fn a_page_never_takes_the_place_of_what_it_is_about() {
    let (_folder, file) = copy(MISTAKES);
    let path = file.to_str().expect("a UTF-8 path");
    let before = fs::read_to_string(&file).expect("it is there");
    for arguments in [
        vec!["plan", path, "--html", path],
        vec!["path", "bluefield2", "--path", "client-soc", "--verb", "read", "--size", "64B", "--html", path],
        vec!["device", "show", "bluefield2", "--svg", path],
    ] {
        let refused = offpath(&arguments);
        assert_eq!(refused.code, 2, "{arguments:?}: {}", refused.stderr);
        assert!(refused.stderr.contains("is not a page or picture of an earlier run"), "{}", refused.stderr);
        assert_eq!(fs::read_to_string(&file).expect("it is there"), before, "{arguments:?}");
    }
}

/// No prediction for another card was ever held to a measurement, so its intervals are borrowed.
#[test]
fn intervals_of_another_card_are_said_to_be_borrowed() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = folder.path().join("mycard.toml");
    let text = answer(&["device", "source", "bluefield2"]);
    fs::write(&card, text.replace("name = \"bluefield2\"", "name = \"mycard\"")).expect("it is written");
    let said = wide_answer(&["plan", STORE, "--device", card.to_str().expect("a name in UTF-8")]);
    assert!(said.contains("nothing is fitted to published rows about mycard"), "{said}");
    assert!(!wide_answer(&["plan", STORE]).contains("nothing is fitted to published rows"));
}

/// What a design marks as assumed is a guess, and said to be one: nobody's estimate, and none of the profile's numbers.
#[test]
fn what_a_design_assumes_is_said_to_be_assumed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let page = |more: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [{{ send = \"client-soc\", bytes = \"64 B\" }}, \
             {{ compute = \"soc\", time = {{ value = \"180 ns\", low = \"150 ns\", high = \"220 ns\", provenance = \
             \"assumed\" }} }}, {more}{{ send = \"soc-client\", bytes = \"64 B\" }}]\n"
        );
        fs::write(&file, text).expect("it is written");
        wide_answer(&["plan", file.to_str().expect("a UTF-8 path")])
    };
    let assumed = page("");
    let said = "(alternative.a.request.2.time, which the design assumes, decides ";
    assert!(assumed.contains(said) && !assumed.contains("nothing here moves with it"), "{assumed}");
    let both = page("{ compute = \"soc\", time = \"150 ns\" }, ");
    assert!(both.contains("(alternative.a.request.3.time; your estimates decide "), "{both}");
    assert!(!both.contains("guesses of the profile"), "{both}");
}

/// What nothing published is about is named, and atomics only where there is one.
#[test]
fn what_nothing_published_is_about_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("own.toml");
    let page = |step: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [{step}]\n"
        );
        fs::write(&file, text).expect("it is written");
        let page = answer(&["plan", file.to_str().expect("a UTF-8 path")]);
        page.split_whitespace().collect::<Vec<_>>().join(" ")
    };
    let copies = page("{ copy = \"soc-dma\", bytes = \"4 KiB\" }");
    let about = "nothing is fitted to published rows about `copy` on `soc-dma`: order only";
    assert!(copies.contains(about), "{copies}");
    let between = page("{ copy = \"soc-host-dma\", bytes = \"4 KiB\" }");
    assert!(!between.contains("nothing is fitted to published rows"), "{between}");
    assert!(!copies.contains("atomics: no published row"), "{copies}");
    let atomics = page("{ fetch-and-add = \"client-soc\" }");
    assert!(atomics.contains("atomics: no published row is about one"), "{atomics}");
    assert!(!atomics.contains("fitted to published rows about `"), "{atomics}");
    let sweep = |device: &str, verb: &str, path: &str| {
        answer(&["sweep", device, "--path", path, "--verb", verb, "--clients", "1", "--operations", "1000"])
    };
    let copies = sweep("bluefield2", "copy", "soc-host-dma");
    assert!(
        !copies.contains("Nothing is fitted to published rows") && !copies.contains("atomics"),
        "{copies}"
    );
    let loads = sweep("bluefield3", "load", "dpa-dpa:soc");
    assert!(loads.contains("Nothing is fitted to published rows about `load`"), "{loads}");
    assert!(sweep("bluefield2", "fetch-and-add", "client-soc").contains("Nothing is published of atomics"));
}

/// A row of a card of which nothing was fitted says which guesses it rests on, and which of them alone would turn it.
#[test]
fn an_explanation_says_which_guess_turns_a_row() {
    let row = json(&["explain", "D162"]);
    let names = |key: &str| -> Vec<String> {
        let list = row[key].as_array().expect("a list").iter();
        list.map(|one| one["number"].as_str().or(one.as_str()).expect("a name").to_string()).collect()
    };
    assert_eq!(row["within"], true);
    assert_eq!(names("moved_by")[0], "bluefield3 host_verbs.post_time");
    assert_eq!(
        names("turned_by"),
        ["bluefield3 host_verbs.post_time", "bluefield3-pair network.packet_header"]
    );
    let text = answer(&["explain", "D162"]).split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        text.contains("at an end of its interval it would miss: bluefield3 host_verbs.post_time, "),
        "{text}"
    );
    // No end of an interval turns an order that could not fail.
    assert_eq!(json(&["explain", "D158"])["turned_by"], serde_json::json!([]));
}

/// Of a card of which no verb was measured nothing is better known than an order, and what is said to be is in its page.
#[test]
fn a_card_that_nobody_measured_is_known_by_its_order() {
    let page = include_str!("../../../docs/cards.md");
    for device in json(&["device", "list"])["devices"].as_array().expect("a list") {
        let name = device["name"].as_str().expect("a name");
        assert!(page.contains(&format!("| `{name}` |")), "docs/cards.md lacks {name}");
    }
    for (device, verb) in
        [("bluefield3", "read"), ("bluefield3", "send"), ("bluefield3", "load"), ("connectx7", "read")]
    {
        let paths = json(&["path", device, "--verb", verb, "--size", "64B"]);
        let paths = paths["paths"].as_array().expect("a list");
        assert!(!paths.is_empty());
        for path in paths {
            let bases = [&path["latency_basis"], &path["capacity_basis"]];
            assert!(bases.iter().all(|basis| *basis == "order only"), "{device} {verb}: {path}");
        }
    }
}

/// A draw that is no system says nothing, and is not passed over in silence: the upper part of the range of reserved slots asks for
/// more than the pool has.
#[test]
fn a_path_says_of_how_many_draws_its_intervals_are() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mycard.toml");
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/devices/bluefield2.toml");
    let text = fs::read_to_string(shipped).expect("the profile is there");
    let own = "reserved_inflight_slots = { value = 47, low = 34, high = 53";
    assert!(text.contains(own), "the profile has another range");
    let text = text.replace(own, &own.replace("high = 53", "high = 110"));
    fs::write(&file, text.replace("name = \"bluefield2\"", "name = \"mycard\"")).expect("it can be written");
    let drawn = |device: &str| {
        let asked = ["path", device, "--path", "client-host", "--verb", "read", "--size", "64B"];
        let draws = json(&asked)["interval_draws"].as_u64().expect("a number");
        (draws, answer(&asked).contains("Intervals: of the"))
    };
    let (draws, is_said) = drawn(file.to_str().expect("a UTF-8 path"));
    assert!(0 < draws && draws < 256 && is_said, "{draws}");
    assert_eq!(drawn("bluefield2"), (256, false));
}

/// Of a verb that no NIC carries every path is listed, or said that there is none; nothing is said of doorbells.
#[test]
fn paths_of_engines_and_processors_are_listed_as_what_they_are() {
    let everything = concat!(env!("CARGO_MANIFEST_DIR"), "/../profile/tests/data/everything.toml");
    let listed = |device: &str, verb: &str| {
        let page = answer(&["path", device, "--verb", verb]);
        assert!(!page.contains("doorbell"), "{page}");
        page
    };
    assert!(listed("bluefield2", "copy").contains(" soc-dma "));
    assert!(listed(everything, "load").contains(" dpa-dpa:arm "));
    assert!(listed(everything, "transform").contains(" arm-regex "));
    let refused = |arguments: &str, says: &str| {
        let answer = offpath(&arguments.split(' ').collect::<Vec<_>>());
        let said = answer.stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(answer.code == 2 && said.contains(says), "{arguments}: {} {said}", answer.code);
    };
    refused("path bluefield2 --verb load", "`bluefield2` has no path that carries `load`");
    refused("path bluefield2 --verb transform", "its paths carry read, write, send");
    refused(
        "path bluefield2 --path soc-host-dma --post batch:16",
        "`--post batch:16`: `read` on `soc-host-dma`",
    );
    refused(
        "sweep bluefield2 --path soc-host-dma --post batch:16",
        "`read` on `soc-host-dma` rings no doorbell",
    );
    refused(&format!("path {everything} --path client-dpa_memory"), "as in `client-host:dpa_memory`");
    refused(&format!("path {everything} --path client-arm-regex --verb transform"), "does not have");
    let one = wide_answer(&["path", "bluefield2", "--path", "soc-host-dma"]);
    assert!(!one.contains("doorbell") && one.contains("sees that the engine is done"), "{one}");
    // The number of banks that a card may have costs nothing.
    wide_answer(&["path", "bluefield2", "--path", "client-soc", "--set", "soc.banks=1000000"]);
}

/// A comparison says what was measured otherwise as the plan does, by the same line; which number makes another answer; and a
/// plan says that the clients bind.
#[test]
fn a_comparison_says_what_was_measured_otherwise() {
    let design = format!("{}/../../designs/regex-logs.toml", env!("CARGO_MANIFEST_DIR"));
    let compare = ["compare", &design, "--device", "bluefield2,connectx7"];
    let (plan, text) = (wide_answer(&["plan", &design]), wide_answer(&compare));
    let line = plan.lines().find(|line| line.starts_with("measured otherwise: S121")).expect("it is missed");
    let second = text.lines().find(|line| line.starts_with("bluefield2: ")).expect("it is said");
    assert_eq!(second, format!("bluefield2: {line}"));
    let held = "host_work_regular_expressions.byte_rate at 870 Mbit/s instead of 4 Gbit/s, with all else drawn: the answer is `yes`";
    assert!(text.contains(held), "{text}");
    let page: serde_json::Value =
        serde_json::from_str(&answer(&[&compare[..], &["--format", "json"]].concat())).expect("it is JSON");
    check(&page, &schema("compare.json"), "compare.json");
    assert_eq!(page["devices"][0]["missed_rows"][0]["row"], "S121");
    assert_eq!(page["verdict_turning_points"][0]["verdict"], "card");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("read.toml");
    let read = "[design]\nname = \"rd\"\ndevice = \"bluefield3\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
                [[alternative]]\nname = \"read\"\nrequest = [ { read = \"client-host\", bytes = \"64 B\" } ]\n";
    std::fs::write(&file, read).expect("it is written");
    let text = wide_answer(&["plan", file.to_str().expect("a path")]);
    let line = text.lines().find(|line| line.starts_with("answer: ")).expect("there is one");
    assert!(line.contains("; client.cpu binds, so that the server may carry more; basis"), "{line}");
}
