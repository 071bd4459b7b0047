//! `offpath calibrate` and `offpath path --as` as their users see them.

use crate::common::{check, in_columns, json, offpath, said, schema, wide_answer};
use offpath::answers::calibrate::{CalibrateRequest, calibrate};
use offpath::answers::tool::{ToolRequest, ToolRowAnswer, tool};
use offpath_learn::{DmaBench, DmaOperation, DmaRun, ErrorSummary, RunKind};
use offpath_profile::{Library, SystemRequest};
use offpath_quantity::Bytes;
use offpath_terminal::output::{Color, Format, OutputOptions, Screen};
use offpath_twin::{Seed, unit};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

/// A log as perftest writes it, of a card that posts a message in so many nanoseconds and carries so much.
fn log(queue_pairs: u32, post_ns: f64, gbit_per_s: f64) -> String {
    let rate = |bytes: f64| (1e9 / post_ns).min(gbit_per_s * 1e9 / 8.0 / bytes);
    log_of(queue_pairs, (1..=20).map(|power| f64::from(1 << power)).map(|bytes| (bytes, rate(bytes))))
}

/// The same of payloads with the rate of each.
fn log_of(queue_pairs: u32, rows: impl Iterator<Item = (f64, f64)>) -> String {
    let mut text = format!(
        "                    RDMA_Read BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : \
         {queue_pairs}\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n TX depth        : 128\n CQ \
         Moderation   : 100\n Mtu             : 4096[B]\n Link type       : Ethernet\n Outstand reads  : 16\n #bytes     \
         #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    );
    for (bytes, rate) in rows {
        let gbit = rate * bytes * 8.0 / 1e9;
        let printed = if gbit < 0.1 { format!("{gbit:.6}") } else { format!("{gbit:.2}") };
        let iterations = 1000 * queue_pairs;
        let _ = writeln!(text, " {bytes:<10} {iterations:<14} {printed:<18} {printed:<20} {:.6}", rate / 1e6);
    }
    text
}

/// What a `calibrate` that writes a card says as JSON, held to its schema.
fn learnt(arguments: &[&str]) -> serde_json::Value {
    let learnt = offpath(&[arguments, &["--format", "json"]].concat());
    assert!(said(&learnt).contains("wrote"), "{}", learnt.stderr);
    let found: serde_json::Value = serde_json::from_str(&learnt.stdout).expect("the answer is JSON");
    // A card that the model does not describe is written, and the command fails.
    let fails = found["worse_than_roofline"] == true;
    assert_eq!(learnt.code, i32::from(fails), "{}", learnt.stderr);
    check(&found, &schema("calibrate.json"), "calibrate");
    found
}

/// What is learnt from a log on connectx7, as JSON and as a page says it, and the card in a folder: of one search, which takes
/// longer than all else.
fn learnt_and_told(log: &str, folder: &Path) -> (serde_json::Value, String, String) {
    let request = CalibrateRequest {
        logs: vec![log.into()],
        base: "connectx7".into(),
        name: "mycard".into(),
        path: "client-host".into(),
        ..CalibrateRequest::default()
    };
    let found = calibrate(&request).expect("it is learnt");
    for file in &found.card {
        fs::write(folder.join(&file.name), &file.text).expect("it can be written");
    }
    let screen = Screen::new(OutputOptions { format: Format::Markdown, color: Color::Never });
    let value = serde_json::to_value(&found).expect("an answer is JSON");
    check(&value, &schema("calibrate.json"), "calibrate");
    (value, found.text(&screen), folder.join("mycard.toml").display().to_string())
}

/// How a number of a card is known, by what `device show` says.
fn provenance(shown: &serde_json::Value, name: &str) -> String {
    let mut numbers = shown["numbers"].as_array().expect("a list").iter();
    let known = numbers.find(|one| one["name"] == name).unwrap_or_else(|| panic!("the card has no {name}"));
    known["provenance"].as_str().expect("a word").to_string()
}

/// An empty folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("offpath-calibrate-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

/// Where nobody sees a bar, each phase is a line of its own.
#[test]
fn phases_are_told_in_a_pipe() {
    let folder = folder("phases");
    let file = folder.join("a.log").display().to_string();
    fs::write(&file, log(1, 200.0, 180.0)).expect("a log");
    let found = offpath(&["calibrate", &file, "--base", "connectx7"]);
    assert_eq!((found.code, &*found.stderr), (0, ""), "{}", found.notes);
    let lines: Vec<&str> = found.notes.lines().collect();
    for phase in ["numbers that move a point", "candidates for fitted number 1", "searches from elsewhere"] {
        let told = lines.iter().filter(|line| line.starts_with(&format!("note: at work: {phase} ("))).count();
        assert!(told > 0, "{phase}: {}", found.notes);
    }
    assert!(!found.notes.contains(['\r', '\u{1b}']), "{}", found.notes);
}

/// A card that a roofline describes better is written with that on it: the command fails, no number counts as measured, and no plan
/// on it is better known than by guesses.
#[test]
fn a_card_that_is_not_described_says_so_in_its_file() {
    let folder = folder("not-described");
    let (file, card) =
        (folder.join("a.log").display().to_string(), folder.join("odd.toml").display().to_string());
    fs::write(&file, log(8, 300.0, 50.0)).expect("a log");
    let fit =
        ["calibrate", &file, "--base", "connectx7", "--fit", "client.host_verbs.post_time", "-o", &card];
    let found = offpath(&fit);
    assert_eq!(found.code, 1, "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.contains("WORSE THAN TWO NUMBERS"), "{}", found.stdout);
    assert!(said(&found).contains("wrote"), "{}", found.stderr);
    let text = fs::read_to_string(&card).expect("the card is there");
    assert!(text.contains("NOT DESCRIBED BY THE MODEL"), "{text}");
    let shown = json(&["device", "show", &card]);
    assert_eq!(provenance(&shown, "host_verbs.post_time"), "assumed");
    let path = json(&["path", &card, "--as", "ib_write_bw", "-s", "8", "-q", "8"]);
    assert_ne!(path["rows"][0]["basis"], "fitted", "{path:#}");
}

/// What the fit takes minutes for has to have a place, which is looked for before anything else is.
#[test]
fn a_card_without_a_place_is_refused_before_its_logs_are_read() {
    let folder = folder("no-place");
    let log = folder.join("empty.log");
    fs::write(&log, "").expect("it can be written");
    let card = folder.join("none").join("mycard.toml");
    let (log, card) = (log.display().to_string(), card.display().to_string());
    let refused = offpath(&["calibrate", &log, "--base", "connectx7", "-o", &card]);
    assert!(
        refused.code == 2 && said(&refused).contains("cannot write"),
        "{}: {}",
        refused.code,
        refused.stderr
    );
}

/// Nor may the name be one that no card can have, or a setting be of one machine where the card has one number for two.
#[test]
fn a_card_that_could_not_be_written_is_refused_before_its_logs_are_read() {
    let folder = folder("no-name");
    let log = folder.join("empty.log");
    fs::write(&log, "").expect("it can be written");
    let log = log.display().to_string();
    let refused = |card: &str, more: &[&str], words: &str| {
        let card = folder.join(card).display().to_string();
        let refused = offpath(&[&["calibrate", &log, "--base", "connectx7", "-o", &card], more].concat());
        assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, refused.stderr);
    };
    // A host that an earlier card left beside is not replaced.
    fs::write(folder.join("mine-xeon6426y.toml"), "").expect("it can be written");
    refused("mine.toml", &[], "mine-xeon6426y.toml` is there already");
    fs::remove_file(folder.join("mine-xeon6426y.toml")).expect("it can be removed");
    refused("card.toml", &[], "`card` is a reserved word of profiles");
    refused("card.toml", &[], "as in `mycard.toml`");
    refused("connectx7.toml", &[], "there is a device `connectx7` already");
    let of_one = ["--set", "nic.queue_pair_request_time=140ns"];
    refused("mine.toml", &of_one, "give it too: `--set client.nic.queue_pair_request_time=140 ns`");
}

/// A latency in which the port does not carry the payload is refused as a rate is that it does not carry.
#[test]
fn latencies_below_what_the_port_takes_are_of_another_card() {
    let folder = folder("below-port");
    let file = folder.join("fast_lat.log").display().to_string();
    let mut text = "                    RDMA_Read Latency Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : 1\t\t\
        Transport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n TX depth        : 1\n Mtu             : 4096[B]\n \
        Link type       : Ethernet\n Outstand reads  : 16\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    \
        t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
        .to_string();
    for power in [3, 6, 12, 16, 20, 23] {
        let bytes = 1u64 << power;
        let time = 2.0 + bytes as f64 / 500_000.0;
        let _ = writeln!(
            text,
            " {bytes:<10} 1000 {time:.2} {time:.2} {time:.2} {time:.2} 0.01 {time:.2} {time:.2}"
        );
    }
    fs::write(&file, text).expect("it can be written");
    let refused = offpath(&["calibrate", &file, "--base", "connectx7"]);
    let words = "and the ports of `client-host` carry 400 Gbit/s each way";
    assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, said(&refused));
}

/// Benchmarks run between two of the card, whatever a design's clients are; rows that its port cannot carry are of another card.
#[test]
fn rows_above_the_port_are_of_another_card() {
    let folder = folder("above-port");
    let log_file = folder.join("fast.log").display().to_string();
    fs::write(&log_file, log(1, 300.0, 150.0)).expect("it can be written");
    let learn = |base: &str, more: &[&str]| {
        offpath(
            &[&["calibrate", &log_file, "--base", base, "--fit", "nic.queue_pair_request_time"], more]
                .concat(),
        )
    };
    // 150 Gbit/s are more than the clients of its cluster carry, and less than the card.
    let found = learn("connectx6", &[]);
    assert!(
        found.code != 2 && found.stdout.contains("testbed rack-pair"),
        "{}{}",
        found.stdout,
        found.stderr
    );
    let refused = learn("connectx6", &["--testbed", "rack"]);
    let words = "fast.log:29 has 150.0 Gbit/s, and the ports of `client-host` carry 100 Gbit/s each way: 9 of 20 rows are above";
    assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, refused.stderr);
    let words = said(&refused);
    let help = words.split('`').find(|part| part.starts_with("--set ")).expect("it says what gives the port");
    let helped: Vec<&str> = ["--testbed", "rack"].into_iter().chain(help.split(' ')).collect();
    let helped = learn("connectx6", &helped);
    let stays =
        ["the ports of", "not a unit", "leaves `"].into_iter().find(|why| said(&helped).contains(why));
    assert_eq!(stays, None, "{}", helped.stderr);
}

/// What holds one queue pair back may be it or the thread that posts for it: the card has both as slow, as guesses, and eight queue pairs
/// of it carry no more than one thread posts.
#[test]
fn runs_of_one_queue_pair_do_not_tell_it_from_its_thread() {
    let folder = folder("one-pair");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(path("one.log"), log(1, 280.0, 228.0)).expect("it can be written");
    let (log, card) = (path("one.log"), path("pair.toml"));
    let found = learnt(&["calibrate", &log, "--base", "connectx7", "-o", &card]);
    for number in found["numbers"].as_array().expect("a list") {
        let name = number["name"].as_str().expect("a name");
        if name.ends_with(".queue_pair_request_time") || name.ends_with(".post_time") {
            assert_eq!(number["assumed_because"], "replaceable", "{number}");
            assert!(number["run"].as_str().is_some_and(|run| run.contains(" -q 8")), "{number}");
        }
    }
    assert_scored_as_written(&found, &card);
    let eight = json(&["path", &card, "--as", "ib_read_bw", "-q", "8", "-s", "64"]);
    let rate = eight["rows"][0]["operations_per_s_mean"].as_f64().expect("a rate");
    assert!(rate < 1.1e9 / 280.0, "{rate}: more than was measured of the thread");
}

/// The card is the one that its points were held to: what was set is in it, and no measurement, and it stands in the testbed that
/// was named, also where one that ships has its name.
#[test]
fn what_was_set_is_in_the_card() {
    let folder = folder("set");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(path("one.log"), log(1, 300.0, 150.0)).expect("it can be written");
    let names = ["nic.queue_pair_request_time", "client.nic.queue_pair_request_time"];
    let set = names.map(|name| format!("{name}=140ns"));
    let given = names.iter().zip(&set).flat_map(|(name, set)| ["--set", set, "--pin", name]);
    let given: Vec<&str> = given.collect();
    let (log, card) = (path("one.log"), path("mine.toml"));
    let shipped = concat!(env!("CARGO_MANIFEST_DIR"), "/../../profiles/testbeds/bluefield3-pair.toml");
    let text = fs::read_to_string(shipped).expect("it ships");
    let own = text.replacen("available = { value = 1,", "available = { value = 7,", 1);
    assert_ne!(own, text, "the client's machine says how many there are");
    fs::create_dir(folder.join("testbeds")).expect("it can be made");
    let testbed = folder.join("testbeds").join("bluefield3-pair.toml");
    fs::write(&testbed, own).expect("it can be written");
    let testbed = testbed.display().to_string();
    let request = ["calibrate", &log, "--base", "connectx7", "--testbed", &testbed, "-o", &card];
    learnt(&[&request[..], &given].concat());
    assert!(fs::read_to_string(&card).expect("it was written").contains("available = { value = 7,"));
    let shown = json(&["device", "show", &card]);
    for name in names {
        let numbers = shown["numbers"].as_array().expect("a list");
        let number = numbers.iter().find(|one| one["name"] == name).expect("the card has it");
        assert_eq!(
            (&number["text"], &number["provenance"]),
            (&"140 ns".into(), &"assumed".into()),
            "{number}"
        );
    }
}

/// What `path --as` says of a card beside each row's points, of those that are wanted, and whether the card's own errors widen it.
fn beside<'a>(
    found: &'a serde_json::Value,
    card: &str,
    is_wanted: impl Fn(&serde_json::Value) -> bool,
) -> Vec<(ToolRowAnswer, bool, Vec<&'a serde_json::Value>)> {
    // By program, queue pairs and payload.
    let mut wanted: BTreeMap<(&str, u64), BTreeMap<Bytes, Vec<&serde_json::Value>>> = BTreeMap::new();
    for point in found["points"].as_array().expect("a list").iter().filter(|one| is_wanted(one)) {
        let of = |key: &str| point[key].as_str().unwrap_or_else(|| panic!("{key}: {point}"));
        let (_, run) = of("run").split_once(" of ").expect("a payload");
        let (size, pairs) = run.split_once(", ").unwrap_or_else(|| panic!("{run}"));
        let pairs = pairs.split(' ').next().and_then(|count| count.parse().ok()).expect("a count");
        let sizes = wanted.entry((of("program"), pairs)).or_default();
        sizes.entry(size.parse().expect("bytes")).or_default().push(point);
    }
    let mut rows = Vec::new();
    for ((program, pairs), sizes) in wanted {
        let request = ToolRequest {
            device: card.to_string(),
            path: "client-host".to_string(),
            program: program.to_string(),
            sizes: sizes.keys().copied().collect(),
            qps: Some(pairs),
            cq_moderation: Some(100),
            outstanding_reads: program.contains("read").then_some(16),
            // As perftest has it where nothing is asked for.
            iterations: None,
            ..ToolRequest::default()
        };
        let tool = tool(&request).expect("it is predicted");
        let is_own = |row: &ToolRowAnswer| row.errors_learnt_on == [tool.system.device.as_str()];
        rows.extend(
            tool.rows.iter().zip(sizes.into_values()).map(|(row, of)| (row.clone(), is_own(row), of)),
        );
    }
    rows
}

/// Holds every point to what the written card says of its run: no other card is scored than the one that is written.
fn assert_scored_as_written(found: &serde_json::Value, card: &str) {
    for (row, _, points) in beside(found, card, |_| true) {
        let written = row.operations_per_s_mean.expect("a rate");
        for point in points {
            let scored = point["predicted"].as_f64().expect("a rate");
            assert!((written / scored - 1.0).abs() < 0.002, "the card says {written}: {point}");
        }
    }
}

/// How many held-out points lie in the 80% intervals that `path --as` gives on a card, of how many, by what a row and its point have.
fn covered_by<K: Ord>(
    rows: &[(ToolRowAnswer, bool, Vec<&serde_json::Value>)],
    key: impl Fn(&ToolRowAnswer, bool, &serde_json::Value) -> K,
) -> BTreeMap<K, (u32, u32)> {
    let mut counts: BTreeMap<_, (u32, u32)> = BTreeMap::new();
    for (row, is_own, points) in rows {
        let (low, high) = row.operations_low_80_per_s.zip(row.operations_high_80_per_s).expect("an interval");
        for point in points {
            let (within, all) = counts.entry(key(row, *is_own, point)).or_default();
            *all += 1;
            *within += u32::from((low..=high).contains(&point["measured"].as_f64().expect("a rate")));
        }
    }
    counts
}

/// The same by whether the card's own errors widen them, and by their basis.
fn covered(rows: &[(ToolRowAnswer, bool, Vec<&serde_json::Value>)]) -> BTreeMap<(bool, String), (u32, u32)> {
    covered_by(rows, |row, is_own, _| (is_own, row.basis.to_string()))
}

/// Those that the card's own errors widen together, and all together.
fn own_and_every(counts: &BTreeMap<(bool, String), (u32, u32)>) -> [(u32, u32); 2] {
    [true, false].map(|is_own| {
        let those = counts.iter().filter(|((own, _), _)| *own || !is_own);
        those.fold((0, 0), |sum, (_, count)| (sum.0 + count.0, sum.1 + count.1))
    })
}

/// A card that is learnt from what its machine says of itself keeps that: a link that binds, and that the logs hold where it is, counts as
/// measured here, so that a prediction by it is no wider than from the stock card, and the machine's other facts stay what they are.
#[test]
fn what_the_machine_says_and_the_logs_hold_is_known_here() {
    let folder = folder("described");
    let path = |name: &str| folder.join(name).display().to_string();
    let machine = Path::new(env!("CARGO_MANIFEST_DIR")).join("../logs/tests/data/machines/narrow");
    let from =
        ["lspci.txt", "ibv_devinfo.txt", "lscpu.txt"].map(|file| machine.join(file).display().to_string());
    let own = path("own.toml");
    let described = ["new", "device", "own", "--base", "connectx6", "--from", &from.join(","), "--out", &own];
    assert_eq!(offpath(&described).code, 0);
    // The twin of the machine, whose thread posts otherwise than the base says.
    let hidden = ["--set", "host_verbs.post_time=310ns", "--set", "client.host_verbs.post_time=310ns"];
    let truth = |pairs: &str| -> Vec<(f64, f64)> {
        let request =
            ["path", &own, "--as", "ib_read_bw", "--iters", "1000", "--qps", pairs, "--mtu", "4KiB"];
        let found = json(&[&request[..], &hidden].concat());
        let of = |row: &serde_json::Value| {
            let of = |key: &str| row[key].as_f64().expect("a number");
            (of("payload_bytes"), of("operations_per_s_mean"))
        };
        found["rows"].as_array().expect("a list").iter().map(of).collect()
    };
    let mut draws = Seed::new(5).child("rows").generator();
    let mut logs = Vec::new();
    for pairs in ["8", "4"] {
        let rows = truth(pairs).into_iter().filter(|(bytes, _)| *bytes <= f64::from(1 << 20));
        let rows = rows.map(|(bytes, rate)| (bytes, rate * (1.0 + 0.01 * (unit(&mut draws) - 0.5))));
        fs::write(path(&format!("{pairs}.log")), log_of(pairs.parse().expect("a count"), rows))
            .expect("written");
        logs.push(path(&format!("{pairs}.log")));
    }
    let learn =
        |base: &str, card: &str| learnt(&["calibrate", &logs[0], &logs[1], "--base", base, "-o", card]);
    let (mine, stock) = (path("mine.toml"), path("stock.toml"));
    let found = learn(&own, &mine);
    assert_scored_as_written(&found, &mine);
    assert_eq!(found["facts_stay"], true);
    let kept = found["kept"].as_array().expect("a list");
    let link =
        kept.iter().find(|one| one["name"] == "client.pcie0.rate").unwrap_or_else(|| panic!("{found:#}"));
    assert_eq!((&link["reason"], &link["machine_tells"]), (&"confirmed".into(), &false.into()), "{link}");
    let number = |card: &str, name: &str| -> serde_json::Value {
        let (base, card) = (json(&["device", "show", &own]), json(&["device", "show", card]));
        let of = |shown: &serde_json::Value| {
            let mut numbers = shown["numbers"].as_array().expect("a list").iter();
            numbers.find(|one| one["name"] == name).unwrap_or_else(|| panic!("no {name}")).clone()
        };
        let (base, own) = (of(&base), of(&card));
        assert_eq!(
            (&own["text"], &own["low"], &own["high"]),
            (&base["text"], &base["low"], &base["high"]),
            "{own}"
        );
        own
    };
    let link = number(&mine, "client.pcie0.rate");
    assert_eq!(link["provenance"], "measured-here", "{link}");
    let source = link["source"].as_str().expect("a text");
    assert!(source.contains("lspci.txt:") && source.contains("the logs hold it"), "{source}");
    for (name, provenance) in
        [("nic.port_rate", "measured"), ("nic.outstanding_reads", "datasheet"), ("host.pcie_mtu", "measured")]
    {
        assert_eq!(number(&mine, name)["provenance"], provenance, "{name}");
    }
    let found = learn("connectx6", &stock);
    assert_eq!(found["facts_stay"], false);
    let reach = |card: &str| {
        let said = json(&["path", card, "--as", "ib_read_bw", "-q", "8", "-s", "1048576", "--outs", "16"]);
        let row = &said["rows"][0];
        let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        (row["errors_learnt_on"].clone(), of("operations_high_80_per_s") / of("operations_low_80_per_s"))
    };
    let (of_mine, of_stock) = (reach(&mine), reach(&stock));
    assert_eq!(of_mine.0, serde_json::json!(["mine"]));
    assert!(of_mine.1 <= of_stock.1 && of_mine.1 < 1.15, "{of_mine:?} {of_stock:?}");
}

/// Of points that were kept from the fit seven to nine of ten lie in the 80% intervals that `path --as` gives by the card's own
/// errors, where machines and runs differ by what no number stands for.
#[test]
fn points_that_were_kept_lie_in_the_intervals_of_the_card() {
    let hidden = [
        "--set",
        "host_verbs.post_time=290ns",
        "--set",
        "client.host_verbs.post_time=290ns",
        "--mtu",
        "4KiB",
    ];
    let truth = ["1", "2", "4", "8"].map(|pairs| {
        let request = ["path", "connectx7", "--as", "ib_read_bw", "--iters", "1000", "--qps", pairs];
        let found = json(&[&request[..], &hidden].concat());
        let of = |row: &serde_json::Value| {
            (
                row["payload_bytes"].as_f64().expect("bytes"),
                row["operations_per_s_mean"].as_f64().expect("a rate"),
            )
        };
        let rows: Vec<(f64, f64)> = found["rows"].as_array().expect("a list").iter().map(of).collect();
        (pairs, rows)
    });
    let (mut within, mut all) = (0, 0);
    // How machines differ is known of eight of them, so that one card's share says little.
    for seed in 1..=8 {
        let folder = folder(&format!("kept-{seed}"));
        let mut draws = Seed::new(seed).child("machines").generator();
        let mut bell = |deviation: f64| deviation * 2.0 * (0..3).map(|_| unit(&mut draws) - 0.5).sum::<f64>();
        let mut logs = Vec::new();
        for (pairs, rows) in &truth {
            for machine in 0..4 {
                let own = bell(0.015);
                let small = rows.iter().filter(|(bytes, _)| *bytes <= 512.0);
                let rows = small.map(|(bytes, rate)| (*bytes, rate * (1.0 + own + bell(0.015))));
                let file = folder.join(format!("{pairs}-{machine}.log"));
                fs::write(&file, log_of(pairs.parse().expect("a count"), rows)).expect("it can be written");
                logs.push(file.display().to_string());
            }
        }
        let card = folder.join("mine.toml").display().to_string();
        let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
        let options = ["--base", "connectx7", "-o", &card, "--fit", "client.host_verbs.post_time"];
        let kept = ["--hold-out", "sizes", "--hold-out", "qps=2,8"];
        let found = learnt(&[&["calibrate"], &logs[..], &options, &kept].concat());
        assert_eq!(found["card_errors"][0]["figure"], "throughput");
        assert_scored_as_written(&found, &card);
        let [own, every] = own_and_every(&covered(&beside(&found, &card, |one| one["held_out"] == true)));
        assert_eq!(own, every, "every row rests on what was measured");
        (within, all) = (within + own.0, all + own.1);
        let text = wide_answer(&["path", &card, "--as", "ib_read_bw", "--size", "64B"]);
        assert!(
            text.contains("all rows rest for half or more on what was measured here or is held to it"),
            "{text}"
        );
    }
    let share = f64::from(within) / f64::from(all);
    println!("{within} of {all} lie in their intervals");
    assert!(all > 700 && (0.7..=0.9).contains(&share), "{within} of {all}");
}

/// The same of public logs, where they are at hand; docs/calibrate.md has what this prints.
#[test]
fn public_points_that_were_kept_lie_in_the_intervals_of_the_card() {
    let Some(logs) = std::env::var_os("OFFPATH_PERFTEST_LOGS") else {
        skip("OFFPATH_PERFTEST_LOGS names no folder of logs");
        return;
    };
    let logs = fs::read_dir(logs).expect("the folder can be read").map(|log| log.expect("an entry").path());
    let logs = logs.filter(|log| log.extension().is_some_and(|end| end == "log"));
    let logs: Vec<String> = logs.map(|log| log.display().to_string()).collect();
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    let card = folder("public").join("public.toml").display().to_string();
    let rules = ["--hold-out", "sizes", "--hold-out", "verb=write", "--hold-out", "qps=2,4,16,32"];
    let found = learnt(&[&["calibrate", "--base", "connectx7", "-o", &card], &rules[..], &logs].concat());
    let rows = beside(&found, &card, |one| one["held_out"] == true);
    let counts = covered(&rows);
    let [own, every] = own_and_every(&counts);
    println!("within their intervals: {own:?} by the card's own errors, {every:?} of all, {counts:?}");
    // The better the basis the less its intervals hold, which the sum hides: the page has each.
    let said = counts.iter().filter(|((is_own, _), _)| *is_own);
    let mut said: Vec<String> =
        said.map(|((_, basis), (within, all))| format!("`{basis}` {within} of {all}")).collect();
    // Nor do those of runs with other numbers of queue pairs than were fitted hold as much as those with these.
    let is_fitted = |point: &serde_json::Value| {
        let run = point["run"].as_str().expect("words");
        [", 1 queue pair", ", 8 queue pairs"].iter().any(|pairs| run.contains(pairs))
    };
    let by_pairs =
        covered_by(&rows, |row, is_own, point| (is_own, row.basis == "predicted", is_fitted(point)));
    let [with, without] = [true, false].map(|is_fitted| by_pairs[&(true, true, is_fitted)]);
    let share = |(within, all): (u32, u32)| f64::from(within) / f64::from(all);
    said.push(format!(
        "{} of {} with 1 or 8 queue pairs, as were fitted, and {} of {} ({:.0}%) with others",
        with.0,
        with.1,
        without.0,
        without.1,
        100.0 * share(without)
    ));
    lacking(&said);
    // Those that other cards' errors widen are too wide: docs/calibrate.md has that among its misses.
    assert!((0.7..=0.9).contains(&share(own)) && share(every) >= 0.7, "{own:?} {every:?}");
    // Of one queue pair alone nothing tells its own ceiling from the port's: what several carry is no prediction, and no more than one does.
    let of_one: Vec<&str> =
        logs.iter().copied().filter(|log| log.contains("_clt_") && log.contains("_9000_1_")).collect();
    assert_eq!(of_one.len(), 4, "{logs:?}");
    let card = folder("public-one").join("one.toml").display().to_string();
    learnt(&[&["calibrate", "--base", "connectx7", "-o", &card], &of_one[..]].concat());
    let eight = json(&["path", &card, "--as", "ib_read_bw", "-q", "8", "-s", "1048576"]);
    let row = &eight["rows"][0];
    assert_eq!(row["basis"], "order only", "{row}");
    assert!(row["bandwidth_gbit_per_s_mean"].as_f64().expect("a rate") < 240.0, "{row}");
}

/// Holds docs/calibrate.md to what was found, wherever its lines break.
fn lacking(said: &[String]) {
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = words(include_str!("../../../docs/calibrate.md"));
    said.iter().for_each(|one| println!("{one}"));
    let lacking: Vec<&String> = said.iter().filter(|one| !page.contains(&words(one))).collect();
    assert!(lacking.is_empty(), "docs/calibrate.md lacks {lacking:#?}");
}

/// A point of a device's own DMA, in words of its test.
struct DmaPoint<'a> {
    run: DmaRun,
    answer: &'a serde_json::Value,
}

impl DmaPoint<'_> {
    fn of(found: &serde_json::Value) -> Vec<DmaPoint<'_>> {
        let of = |answer| DmaPoint { run: DmaPoint::run(answer).expect("it is of a device"), answer };
        found["points"].as_array().expect("a list").iter().map(of).collect()
    }

    /// What `run` says, as `BW_DMA_RD of 64 B, warm window of 8 KiB`.
    fn run(answer: &serde_json::Value) -> Option<DmaRun> {
        let (program, rest) = answer["run"].as_str()?.split_once(" of ")?;
        let (payload, rest) = rest.split_once(", ")?;
        let (cache, window) = rest.split_once(" window of ")?;
        let (kind, operation) = match program {
            "BW_DMA_RD" => (RunKind::Bandwidth, DmaOperation::Read),
            "BW_DMA_WR" => (RunKind::Bandwidth, DmaOperation::Write),
            "BW_DMA_RW" => (RunKind::Bandwidth, DmaOperation::ReadWrite),
            "LAT_DMA_RD" => (RunKind::Latency, DmaOperation::Read),
            _ => (RunKind::Latency, DmaOperation::WriteThenRead),
        };
        Some(DmaRun {
            kind,
            operation,
            payload: payload.parse().ok()?,
            window: window.parse().ok()?,
            is_warm: cache == "warm",
        })
    }

    fn of_key(&self, key: &str) -> f64 {
        self.answer[key].as_f64().unwrap_or_else(|| panic!("{key}: {}", self.answer))
    }

    fn is_held_out(&self) -> bool {
        self.answer["held_out"] == true
    }

    fn is_within(&self) -> bool {
        (self.of_key("low_80")..=self.of_key("high_80")).contains(&self.of_key("measured"))
    }

    /// Seconds or nanoseconds that a request takes: the inverse of a rate.
    fn time(&self) -> f64 {
        let measured = self.of_key("measured");
        if self.run.kind == RunKind::Latency { measured } else { 1.0 / measured }
    }
}

/// What guesses that know no card say of a held-out size from the fitted ones of its series, times over sizes: a straight line of the
/// cost that the fit has, and one between the two nearest sizes.
fn lines(points: &[DmaPoint], one: &DmaPoint) -> [f64; 2] {
    let own = |other: &&DmaPoint| {
        !other.is_held_out() && DmaRun { payload: one.run.payload, ..other.run.clone() } == one.run
    };
    let known: BTreeMap<u64, f64> =
        points.iter().filter(own).map(|other| (other.run.payload.get(), other.time())).collect();
    // Least squares of relative errors, in which each error beyond 2% weighs as much less as makes its cost linear.
    let (mut start, mut each) = (0.0, 0.0);
    for turn in 0..50 {
        let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
            let weighed = |(bytes, time): (&u64, &f64)| {
                let (u, v) = (1.0 / time, *bytes as f64 / time);
                let off = (start * u + each * v - 1.0).abs();
                let weight = if turn == 0 { 1.0 } else { (0.02 / off).min(1.0) };
                weight * of(u, v)
            };
            known.iter().map(weighed).sum()
        };
        let (uu, uv, vv) = (sum(&|u, _| u * u), sum(&|u, v| u * v), sum(&|_, v| v * v));
        let (u, v) = (sum(&|u, _| u), sum(&|_, v| v));
        let below = uu * vv - uv * uv;
        (start, each) = ((u * vv - v * uv) / below, (v * uu - u * uv) / below);
    }
    let least = |bytes: f64| start + each * bytes;
    let at = one.run.payload.get();
    let below = known.range(..=at).next_back().or(known.iter().next()).expect("a size is fitted");
    let above = known.range(at..).next().or(known.iter().next_back()).expect("a size is fitted");
    let share = if above.0 > below.0 { (at - below.0) as f64 / (above.0 - below.0) as f64 } else { 0.0 };
    let between = below.1 * (1.0 - share) + above.1 * share;
    let of = |time: f64| if one.run.kind == RunKind::Latency { time } else { 1.0 / time };
    [of(least(at as f64)), of(between)]
}

/// Says past the capture of output that a test is skipped: what one says that passes is hidden.
fn skip(why: &str) {
    let said = format!("skipped: {why}\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), said.as_bytes());
}

/// Two public servers with one card, where their tables are at hand: each figure is one that docs/calibrate.md has.
#[test]
fn public_tables_of_a_device_are_predicted_from_a_part_of_them() {
    let Some(logs) = std::env::var_os("OFFPATH_PCIE_BENCH_LOGS") else {
        skip("OFFPATH_PCIE_BENCH_LOGS names no folder of tables");
        return;
    };
    let [first, second] = ["bdw", "hsw"].map(|processor| {
        let mut servers =
            fs::read_dir(&logs).expect("the folder can be read").map(|one| one.expect("an entry").path());
        let is_own = |path: &PathBuf| path.display().to_string().contains(&format!("_{processor}-"));
        servers.find(is_own).unwrap_or_else(|| panic!("no folder is of {processor}"))
    });
    let folder = folder("public-dma");
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../learn/tests/data/dma-card.toml");
    let of_sizes = ["bw_dma_sz_sweep.dat", "lat_dma_sizes.dat"];
    let of_windows = ["bw_dma_win_sweep_rd_rnd_64.dat", "bw_dma_win_sweep_wr_rnd_64.dat"];
    let learn = |server: &Path, windows: bool, base: &str, card: &str, more: &[&str]| {
        let card = folder.join(card).display().to_string();
        let logs = of_sizes.iter().chain(of_windows.iter().filter(|_| windows));
        let logs: Vec<String> = logs.map(|log| server.join(log).display().to_string()).collect();
        let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
        let options = ["--base", base, "--path", "cores-host-dma", "-o", &card];
        (learnt(&[&["calibrate"], &logs[..], &options, more].concat()), card)
    };
    let again = ["--fit", "client.read_latency"];
    let ((of_first, card), (of_other, other_card)) =
        (learn(&first, false, base, "first.toml", &[]), learn(&second, false, base, "other.toml", &[]));
    let (of_second, _) = learn(&second, false, &card, "second.toml", &again);
    let (of_first_again, _) = learn(&first, false, &other_card, "first-again.toml", &again);
    let percent = |share: f64| format!("{:.1}%", 100.0 * share);
    let summary = |errors: Vec<f64>| ErrorSummary::of(&errors);
    let both = |of: ErrorSummary| format!("{} and {}", percent(of.median), percent(of.p90));
    let said = RefCell::new(Vec::new());
    let say = |text: String| said.borrow_mut().push(text);
    let points = [DmaPoint::of(&of_first), DmaPoint::of(&of_second)];
    let [first_points, second_points] = &points;
    for (name, points) in
        [("first server", first_points), ("second server, one host number fitted again", second_points)]
    {
        let held: Vec<&DmaPoint> = points.iter().filter(|one| one.is_held_out()).collect();
        let errors = |of: &dyn Fn(&DmaPoint) -> f64, is_wanted: &dyn Fn(&DmaPoint) -> bool| {
            let own = held.iter().filter(|one| is_wanted(one));
            summary(own.map(|one| (of(one) / one.of_key("measured") - 1.0).abs()).collect())
        };
        let all = |_: &DmaPoint| true;
        let row = |name: &str, of: &dyn Fn(&DmaPoint) -> f64, within: &str| {
            let of = errors(of, &all);
            say(format!(
                "| {name} | {} | {} | {} | {within} |",
                percent(of.median),
                percent(of.p90),
                percent(of.greatest)
            ));
        };
        let within = held.iter().filter(|one| one.is_within()).count();
        let share = format!("{within} ({:.0}%)", 100.0 * within as f64 / held.len() as f64);
        row(name, &|one| one.of_key("predicted"), &share);
        if std::ptr::eq(points, second_points) {
            let system =
                Library::builtin().load(&SystemRequest { device: &card, ..SystemRequest::default() });
            let bench =
                DmaBench::new(&system.expect("the card loads"), "cores-host-dma").expect("it has the engine");
            let unchanged = |one: &DmaPoint| {
                let expected = bench.expect(&one.run).expect("it is modelled");
                if one.run.kind == RunKind::Latency {
                    1e9 * expected.latency.as_seconds()
                } else {
                    expected.rate_per_s
                }
            };
            row("- nothing fitted again", &unchanged, "");
            let copied = |one: &DmaPoint| {
                first_points
                    .iter()
                    .find(|other| other.run == one.run)
                    .expect("both servers have it")
                    .of_key("measured")
            };
            row("- the first server's table, copied", &copied, "");
            let of = errors(&|one| one.of_key("predicted"), &|one| one.run.program() == "BW_DMA_RD");
            say(format!(
                "READ bandwidth of the second server alone is {} off in the median",
                percent(of.median)
            ));
        }
        row("- roofline of two numbers for each kind of test", &|one| one.of_key("roofline"), "");
        row("- straight line of time over size", &|one| one.of_key("line_of_size"), "");
        row("- the same for each series", &|one| lines(points, one)[0], "");
        row("- between the fitted sizes of each series", &|one| lines(points, one)[1], "");
        let small = |one: &DmaPoint| one.run.payload.get() < 512;
        let (own, between) =
            (errors(&|one| one.of_key("predicted"), &small), errors(&|one| lines(points, one)[1], &small));
        say(format!(
            "{} of the model on its {} points, {} between sizes",
            both(own),
            own.points,
            both(between)
        ));
    }
    let [reversed, reversed_again] = [&of_other, &of_first_again].map(|found| {
        let of = |key: &str| percent(found["held_out_error"][key].as_f64().expect("a share"));
        format!("{} and {}", of("median"), of("p90"))
    });
    say(format!("errs by {reversed}, and the one that is fitted again by {reversed_again}"));
    let number = &of_second["numbers"][0];
    let of = |key: &str| number[key].as_str().expect("words");
    say(format!(
        "{} with an interval of {} to {}, `{}`",
        of("value"),
        of("low_90"),
        of("high_90"),
        of("provenance")
    ));

    let sets = ["--set", "client.host_l3.capacity=15MiB", "--set", "host_l3.capacity=15MiB"];
    let (with_windows, _) = learn(&first, true, base, "windows.toml", &[]);
    let (second_with_windows, _) =
        learn(&second, true, &card, "second-windows.toml", &[&again[..], &sets].concat());
    let mut of_windows_alone = Vec::new();
    for (name, found) in [("first", &with_windows), ("second", &second_with_windows)] {
        let pairs = &found["warm_against_cold"];
        let of = |which: &str, key: &str| pairs[which][key].as_u64().expect("a count");
        for which in ["apart", "alike"] {
            let counts = ["pairs", "right", "right_by_rule"].map(|key| of(which, key).to_string());
            say(format!("| {name}, {which} | {} |", counts.join(" | ")));
        }
        let of = &found["held_out_error"];
        let (within, all) = (&found["held_out_within_80"], &of["points"]);
        say(format!(
            "{within} of {all} in their intervals, {} for nine of ten",
            percent(of["p90"].as_f64().expect("a share"))
        ));
        let windows = &found["held_out_of_unfitted_series"];
        of_windows_alone.push(format!("{} of {}", windows["within_80"], windows["points"]));
    }
    say(format!("of the windows alone {}", of_windows_alone.join(" and ")));
    lacking(&said.into_inner());
}

/// Files that say nothing of a machine make no card.
#[test]
fn files_that_say_nothing_are_no_machine() {
    let folder = folder("empty");
    let empty = folder.join("empty").display().to_string();
    fs::write(&empty, "\n").expect("it can be written");
    let refused = offpath(&["new", "device", "no-card", "--from", &empty, "--base", "connectx7"]);
    assert!(
        refused.code == 2 && said(&refused).contains("says nothing"),
        "{}: {}",
        refused.code,
        refused.stderr
    );
}

/// Latencies of a card's own DMA as pcie-bench writes them, of what the host's caches hold and of what they do not.
fn dma_log(window: u32, powers: std::ops::RangeInclusive<u32>) -> String {
    let mut text = "#        Test  PAT   Cache HO DO WinSZ   SZ     TAvg    Avg   Med   Min   Max   95% 99.9%   TAvg(ns) Avg(ns) Med(ns) \
                    Min(ns) Max(ns) 95%(ns) 99.9%(ns)    #outliers   #samples\n"
        .to_string();
    for (cache, begin_ns) in [("HWarm", 900.0), ("Cold", 990.0)] {
        for bytes in powers.clone().map(|power| 1_u32 << power) {
            let ns = begin_ns + 0.25 * f64::from(bytes);
            let _ = write!(text, " LAT_DMA_RD Seq {cache} 0 0 {window} {bytes}");
            [1.2 * ns, ns].iter().for_each(|time| {
                let _ = write!(text, " {time:.1} {time:.1} {0} {0} {0} {0} {0}", time.floor());
            });
            text += " 0 2000000\n";
        }
    }
    text
}

/// Rows of pcie-bench are held to the engine of a path from the device's side, and to no path of queue pairs.
#[test]
fn a_dma_engine_is_learnt_from_pcie_bench() {
    let folder = folder("dma");
    let path = |name: &str| folder.join(name).display().to_string();
    // Another window of 16 B alone, which is held out.
    let (log, window) = (path("lat.dat"), path("window.dat"));
    fs::write(&log, dma_log(8192, 3..=11)).expect("written");
    fs::write(&window, dma_log(16384, 4..=4)).expect("written");
    let base = concat!(env!("CARGO_MANIFEST_DIR"), "/../learn/tests/data/dma-card.toml");
    let arguments = ["calibrate", &log, &window, "--base", base, "--fit", "client.read_latency"];
    let on_engine = [&arguments[..], &["--path", "cores-host-dma"]].concat();
    let found = json(&on_engine);
    check(&found, &schema("calibrate.json"), "calibrate");
    let elsewhere = &found["held_out_of_unfitted_series"];
    assert_eq!(
        (&found["held_out_error"]["points"], &elsewhere["points"]),
        (&10.into(), &2.into()),
        "{found:#}"
    );
    let errors = &found["card_errors"][0];
    assert_eq!((&errors["figure"], &errors["clusters"]), (&"latency".into(), &2.into()), "{errors:#}");
    // Student's distribution of one degree of freedom over the normal one: 3.078 over 1.282.
    assert!((errors["widened_times"].as_f64().expect("a factor") - 2.401).abs() < 0.001, "{errors:#}");
    assert_eq!(found["numbers"][0]["name"], "client.read_latency");
    assert_eq!(found["points"][0]["program"], "LAT_DMA_RD");
    let of = |pairs: u64| serde_json::json!({"pairs": pairs, "right": pairs, "right_by_rule": pairs});
    assert_eq!(found["warm_against_cold"], serde_json::json!({"apart": of(10), "alike": of(0)}));
    let text = wide_answer(&on_engine);
    for said in [
        "Warm against cold: of 10 pairs that differ by over 2%, 10 do in the predicted direction, and 10 do as a rule without a model says",
        "An interval is of what the fitted logs scatter by",
        "of 2 of runs that are fitted at none.",
        "of 2 series alone, too few to say what another one errs by, so that what they err by is taken 2.4 times as far",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    let refused = offpath(&[&arguments[..], &["--path", "cores-host"]].concat());
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(said(&refused).contains("none of a device's own DMA"), "{}", refused.stderr);
}

#[test]
fn a_card_is_learnt_written_loaded_and_laid_beside_its_log() {
    let folder = folder("card");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("one.log"), log(1, 300.0, 150.0)).expect("written");
    fs::write(folder.join("eight.log"), log(8, 300.0, 150.0)).expect("written");
    let (one, eight, card) = (path("one.log"), path("eight.log"), path("mycard.toml"));
    let found = learnt(&["calibrate", &one, &eight, "--base", "connectx7", "-o", &card]);
    let names: Vec<&str> =
        found["numbers"].as_array().expect("a list").iter().filter_map(|one| one["name"].as_str()).collect();
    assert!(names.iter().any(|name| name.ends_with("post_time")), "{names:?}");
    assert!(
        found["held_out_error"]["median"].as_f64().expect("a share") < 0.05,
        "{}",
        found["held_out_error"]
    );
    let shown = json(&["device", "show", &card]);
    let here = |one: &&serde_json::Value| one["provenance"] == "measured-here";
    let measured: Vec<&serde_json::Value> =
        shown["numbers"].as_array().expect("a list").iter().filter(here).collect();
    assert!(measured.iter().any(|one| one["name"] == "client.host_verbs.post_time"), "{measured:?}");
    assert!(measured.iter().all(|one| one["source"].as_str().is_some_and(|source| source.contains("crc32"))));
    let tool = json(&["path", &card, "--as", "ib_read_bw", "--qps", "8", "--size", "64B"]);
    check(&tool, &schema("path-as.json"), "path --as");
    let rate = tool["rows"][0]["operations_per_s_mean"].as_f64().expect("a rate");
    assert!((rate * 300e-9 - 1.0).abs() < 0.05, "{rate} is not one in 300 ns");
    // What was measured here is known better than what was carried over, and the rows of both lie in their intervals.
    let base = json(&["path", "connectx7", "--as", "ib_read_bw", "--qps", "8", "--size", "64B"]);
    let reach = |tool: &serde_json::Value| {
        let row = &tool["rows"][0];
        let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let (low, value, high) =
            (of("operations_low_80_per_s"), of("operations_per_s_mean"), of("operations_high_80_per_s"));
        assert!(low <= value && value <= high, "{row}");
        let bits = of("bandwidth_low_80_gbit_per_s") / of("bandwidth_gbit_per_s_mean");
        assert!((bits / (low / value) - 1.0).abs() < 1e-3, "{row}");
        assert!(row["latency_low_80_ns"].is_null(), "{row}");
        high / low
    };
    assert!(reach(&tool) < reach(&base), "{} {}", tool["rows"][0], base["rows"][0]);
    assert_eq!(base["rows"][0]["basis"], "order only");
    assert_eq!(base["rows"][0]["most_moved_by"], "client.host_verbs.post_time");
    // The logs state Ethernet: the card has its headers, and not the base's guess.
    assert_eq!(found["packet_header_bytes"], 82);
    let header = shown["numbers"].as_array().expect("a list").iter();
    let header = header.clone().find(|one| one["name"] == "network.packet_header").expect("it has one");
    assert_eq!((&header["provenance"], &header["text"]), (&"datasheet".into(), &"82 B".into()), "{header}");
    assert!(
        fs::read_to_string(&card)
            .expect("it was written")
            .contains("that says `carried-over` is another device's")
    );
    // Without `--mtu` it is that of the logs and not of the base's testbed.
    assert_eq!((tool["mtu_bytes"].as_u64(), found["mtu_bytes"].as_u64()), (Some(4096), Some(4096)));
    // The same log once more says nothing more, nor does a copy of it.
    fs::copy(&one, path("copy.log")).expect("copied");
    let (copy, other) = (path("copy.log"), path("again.toml"));
    let again = learnt(&["calibrate", &one, &one, &copy, &eight, "--base", "connectx7", "-o", &other]);
    assert_eq!(again["numbers"], found["numbers"]);
    let aside = again["left_aside"].as_array().expect("a list");
    let whole = format!("all its rows stand in {one}, too");
    for words in ["the same row of the same run stands before", &whole] {
        let own = aside.iter().find(|one| one["why"].as_str().is_some_and(|why| why.contains(words)));
        let own = own.unwrap_or_else(|| panic!("{words}: {aside:?}"));
        assert_eq!(own["rows"], 20, "{own}");
    }
    // What somebody has is never replaced.
    let again = offpath(&["calibrate", &one, "--base", "connectx7", "-o", &card]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(said(&again).contains("is there already"), "{}", again.stderr);
}

/// Bandwidth bounds a round trip from above only: a delay that fits in the place of others, farther off than the base has it, is
/// no measurement, and nothing that rests on it is known better.
#[test]
fn what_fits_beyond_the_base_and_is_not_told_is_a_guess() {
    let folder = folder("beyond");
    let path = |name: &str| folder.join(name).display().to_string();
    // The log states an MTU, and Ethernet, whose packets have 82 B beside their payload.
    let hidden = [
        "--set",
        "network.delay=1.2us",
        "--set",
        "client.pcie0.delay=300ns",
        "--set",
        "network.packet_header=82B",
        "--mtu",
        "4KiB",
    ];
    let tool = json(&[&["path", "connectx7", "--as", "ib_read_bw"], &hidden[..]].concat());
    let rows = tool["rows"].as_array().expect("a list").iter();
    let of = |row: &serde_json::Value| {
        (
            row["payload_bytes"].as_f64().expect("bytes"),
            row["operations_per_s_mean"].as_f64().expect("a rate"),
        )
    };
    fs::write(folder.join("read.log"), log_of(1, rows.map(of))).expect("written");
    let (found, text, card) = learnt_and_told(&path("read.log"), &folder);
    let numbers = found["numbers"].as_array().expect("a list");
    let beyond: Vec<&serde_json::Value> =
        numbers.iter().filter(|one| one["assumed_because"] == "beyond-base").collect();
    assert_eq!(beyond.len(), 1, "{numbers:?}");
    assert_eq!(beyond[0]["name"], "client.pcie0.delay");
    assert_eq!(beyond[0]["low_90"], "120 ns");
    let stands_for = beyond[0]["stands_for"].as_array().expect("a list");
    assert!(stands_for.iter().any(|name| name == "network.delay"), "{stands_for:?}");
    let shown = json(&["device", "show", &card]);
    assert_eq!(provenance(&shown, "client.pcie0.delay"), "held-here");
    // What the points tell roughly they hold, and do not measure.
    let rough: Vec<_> = numbers.iter().filter(|one| one["assumed_because"] == "rough").collect();
    assert!(!rough.is_empty(), "{numbers:?}");
    for one in rough {
        assert_eq!(provenance(&shown, one["name"].as_str().expect("a name")), "held-here", "{one}");
        assert_eq!((&one["provenance"], &one["told"]), (&"held-here".into(), &false.into()), "{one}");
    }
    assert!(numbers.iter().all(|one| !one["assumed_because"].is_null()), "{numbers:?}");
    let basis = |device: &str| {
        let found = json(&["path", device, "--path", "client-host", "--verb", "read"]);
        found["latency_basis"].as_str().expect("a basis").to_string()
    };
    assert_eq!(basis(&card), basis("connectx7"));
    for said in [
        "fits, and is not told: beyond what the base allows; a latency log tells",
        // Whatever else a request waits for fits in its place, and so does the thread that posts.
        "None of its numbers is measured: client.nic.queue_pair_rate, client.pcie0.delay, client.host_verbs.poll_latency, client.host_verbs.post_time, client.nic.pass_time, \
         client.nic.queue_pair_request_time, network.delay `held-here`",
    ] {
        assert!(text.contains(said), "{said}: {text}");
    }
    // No log has a latency, and what fits the bandwidths moved it.
    let latency = |end: &str| found["untold_read_latency"][end].as_f64().expect("it moved");
    for (end, device) in [("base_ns", "connectx7"), ("card_ns", &*card)] {
        let printed = json(&["path", device, "--as", "ib_read_lat", "-s", "8", "--mtu", "4KiB"]);
        let printed = printed["rows"][0]["latency_ns_median"].as_f64().expect("a latency");
        assert!((latency(end) / printed - 1.0).abs() < 0.01, "{end}: {} is not {printed}", latency(end));
    }
    assert!(latency("card_ns") > 1.1 * latency("base_ns"), "{}", found["untold_read_latency"]);
    assert!(text.contains("NO LATENCY IS MEASURED"), "{text}");
    // A run that is there already tells nothing new, and an atomic has one size.
    let kept = found["kept"].as_array().expect("a list");
    let runs: Vec<&str> = kept.iter().filter_map(|one| one["run"].as_str()).collect();
    assert!(!runs.is_empty());
    let is_none = |run: &&str| {
        let plain = ["ib_read_bw -s 8", "ib_read_bw -s 4096", "ib_read_bw -s 1048576"].contains(run);
        plain || run.starts_with("ib_atomic") && run.contains("-s")
    };
    assert!(!runs.iter().any(is_none), "{runs:?}");
}

/// One queue pair's plateau is its own or PCIe's: neither is measured, and what rests on either is no prediction.
#[test]
fn a_plateau_that_may_be_either_ceilings_is_a_guess_of_both() {
    let folder = folder("plateau");
    let path = |name: &str| folder.join(name).display().to_string();
    let rate = |bytes: f64| (1e9 / 300.0f64).min(110e9 / 8.0 / bytes);
    fs::write(
        folder.join("one.log"),
        log_of(1, (1..=20).map(|power| f64::from(1 << power)).map(|bytes| (bytes, rate(bytes)))),
    )
    .expect("written");
    let (found, text, card) = learnt_and_told(&path("one.log"), &folder);
    assert_scored_as_written(&found, &card);
    let numbers = found["numbers"].as_array().expect("a list");
    let replaceable: Vec<&serde_json::Value> =
        numbers.iter().filter(|one| one["assumed_because"] == "replaceable").collect();
    let carried = |one: &&serde_json::Value| one["name"] == "client.nic.queue_pair_rate";
    assert!(replaceable.iter().any(carried), "{numbers:?}");
    let other_ceilings: Vec<&serde_json::Value> =
        found["kept"].as_array().expect("a list").iter().filter(|one| !one["low"].is_null()).collect();
    assert!(!other_ceilings.is_empty(), "{}", found["kept"]);
    let shown = json(&["device", "show", &card]);
    let both = replaceable.iter().chain(&other_ceilings).map(|one| one["name"].as_str().expect("a name"));
    for name in both {
        assert_eq!(provenance(&shown, name), "held-here", "{name}");
    }
    // Of many queue pairs the two differ, and what is said of 1 MiB by them is nothing that was measured.
    let swept = ["path", &card, "--path", "client-host", "--verb", "read", "--size", "1MiB"];
    let said = json(&swept);
    let low = said["capacity_low_80_gbit_per_s"].as_f64().expect("it has an interval");
    assert!(said["capacity_basis"] == "order only" && low < 150.0, "{said}");
    for said in ["fits, and is not told: the points fit as well by", "tells"] {
        assert!(text.contains(said), "{said}: {text}");
    }
}

/// A card lies where it is written: what its base names beside itself goes with it.
#[test]
fn a_card_of_a_card_loads_from_another_folder() {
    let folder = folder("moved");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::create_dir_all(folder.join("other")).expect("a folder");
    fs::write(path("one.log"), log(1, 300.0, 110.0)).expect("written");
    let (log, first, second) = (path("one.log"), path("first.toml"), path("other/second.toml"));
    let fit = ["--fit", "client.pcie0.rate"];
    learnt(&[&["calibrate", &log, "--base", "connectx7", "-o", &first], &fit[..]].concat());
    assert!(folder.join("first-xeon6426y.toml").exists(), "a host's number was fitted");
    let fit = ["--fit", "client.host_verbs.post_time"];
    learnt(&[&["calibrate", &log, "--base", &first, "-o", &second], &fit[..]].concat());
    let read = offpath(&["path", &second, "--as", "ib_read_bw", "-s", "64"]);
    assert_eq!(read.code, 0, "{}", read.stderr);
}

/// A row as `path --as` has it: how far its 80% interval reaches from end to end.
fn reach_of(card: &str, program: &str, more: &[&str]) -> f64 {
    let said = json(&[&["path", card, "--as", program], more].concat());
    let row = &said["rows"][0];
    let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
    of("operations_high_80_per_s") / of("operations_low_80_per_s")
}

/// Numbers that a READ of one and of eight queue pairs tell.
const TOLD_BY_READS: [&str; 6] = [
    "--fit",
    "client.host_verbs.post_time",
    "--fit",
    "client.nic.queue_pair_rate",
    "--fit",
    "client.pcie0.rate",
];

/// Who learns a card from two logs knows no row of it less well than who has learnt nothing, and sees at once that it carries a fifth.
#[test]
fn a_card_of_two_logs_is_known_no_worse_than_its_base() {
    let folder = folder("no-worse");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(path("1.log"), log(1, 277.0, 150.0)).expect("written");
    fs::write(path("8.log"), log(8, 279.0, 200.0)).expect("written");
    fs::write(path("fifth.log"), log(8, 5.0 * 279.0, 200.0 / 5.0)).expect("written");
    let card = path("two.toml");
    let logs = [path("1.log"), path("8.log")];
    let request = ["calibrate", &logs[0], &logs[1], "--base", "connectx7", "-o", &card];
    let found = learnt(&[&request[..], &TOLD_BY_READS].concat());
    for one in found["card_errors"].as_array().expect("a list") {
        // What the link carries one log alone tells.
        assert!(!one["bound_by"].to_string().contains("pcie0"), "{one}");
    }
    for queue_pairs in ["1", "8"] {
        for size in ["8", "512", "4096", "65536", "1048576"] {
            let run = ["-q", queue_pairs, "-s", size, "--mtu", "4KiB"];
            let (own, base) =
                (reach_of(&card, "ib_read_bw", &run), reach_of("connectx7", "ib_read_bw", &run));
            assert!(own <= base, "{run:?}: {own} on the card, {base} on its base");
        }
    }
    let low = json(&["diagnose", &path("fifth.log"), "--device", &card]);
    assert_eq!(low["verdict"], "low", "{low:#}");
}

/// What was measured of a card stays in the next one that is learnt from it, and its errors do as far as they still speak for it, in
/// the device's file, its testbed's and its hosts' alike.
#[test]
fn what_was_measured_before_stays() {
    let folder = folder("before");
    let path = |name: &str| folder.join(name).display().to_string();
    let of_reads = [log(1, 277.0, 150.0), log(1, 279.0, 151.0), log(8, 278.0, 200.0), log(8, 276.0, 199.0)];
    let logs: Vec<String> = (0..of_reads.len()).map(|place| path(&format!("{place}.log"))).collect();
    for (file, text) in logs.iter().zip(&of_reads) {
        fs::write(file, text).expect("written");
    }
    let (first, second, third) = (path("first.toml"), path("second.toml"), path("third.toml"));
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    let request = [&["calibrate", "--base", "connectx7", "-o", &first], &logs[..], &TOLD_BY_READS].concat();
    let before = learnt(&request);
    assert_eq!(
        (&before["facts_stay"], before["base_errors"].as_array().map(Vec::len)),
        (&false.into(), Some(0))
    );
    // WRITEs of one size tell the thread alone.
    let mut write = 0;
    let mut next = |card: &str, post_ns: f64| {
        write += 1;
        let own = path(&format!("write{write}.log"));
        let rows = (1..=11).map(|power| (f64::from(1 << power), 1e9 / post_ns));
        let text = log_of(8, rows).replace("RDMA_Read", "RDMA_Write").replace(" Outstand reads  : 16\n", "");
        fs::write(&own, text.replace("CQ Moderation", "Max inline data : 0[B]\n CQ Moderation"))
            .expect("written");
        learnt(&["calibrate", &own, "--base", &first, "--fit", "client.host_verbs.post_time", "-o", card])
    };
    let found = next(&second, 278.0);
    let stays = found["measured_before"].as_array().expect("a list");
    for name in ["client.nic.queue_pair_rate", "client.pcie0.rate"] {
        assert!(stays.iter().any(|one| one == name), "{name}: {stays:?}");
        let [one, other] = [&first, &second].map(|card| {
            let shown = json(&["device", "show", card]);
            let numbers = shown["numbers"].as_array().expect("a list");
            let own = numbers.iter().find(|one| one["name"] == name).expect("the card has it").clone();
            ["text", "low", "high", "provenance", "source"].map(|key| own[key].clone())
        });
        assert_eq!(one, other, "{name}");
    }
    let errors = found["base_errors"].as_array().expect("a list");
    assert!(!errors.is_empty() && errors.iter().all(|one| one["stays"] == true), "{errors:?}");
    for run in [["-q", "8", "-s", "64"], ["-q", "8", "-s", "1048576"]] {
        let (one, other) = (reach_of(&first, "ib_read_bw", &run), reach_of(&second, "ib_read_bw", &run));
        assert!(other < 1.05 * one, "{run:?}: {one} before, {other} after");
    }
    // A thread that is another now was not behind the errors that were seen.
    let found = next(&third, 380.0);
    let errors = found["base_errors"].as_array().expect("a list");
    let gone =
        |one: &serde_json::Value| one["stays"] == false && one["why"].to_string().contains("post_time");
    assert!(!errors.is_empty() && errors.iter().all(gone), "{errors:?}");
    let said = json(&["path", &third, "--as", "ib_read_bw", "-q", "8", "-s", "64"]);
    assert_ne!(said["rows"][0]["errors_learnt_on"], serde_json::json!(["third"]), "{said:#}");
}

/// What an overlay gives is in the card as what is set is; what no card's file can say is refused before anything is read.
#[test]
fn what_an_overlay_gives_is_in_the_card() {
    let folder = folder("overlay");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(path("one.log"), log(1, 300.0, 150.0)).expect("written");
    let overlay = |name: &str, line: &str| {
        let text = format!("[overlay]\nname = \"{name}\"\ndescription = \"for a test\"\n\n[set]\n{line}\n");
        fs::write(path(&format!("{name}.toml")), text).expect("written");
        path(&format!("{name}.toml"))
    };
    let (log, card) = (path("one.log"), path("mine.toml"));
    let slow = overlay("slow", "\"network.delay\" = \"700 ns\"");
    let fit = ["--fit", "client.host_verbs.post_time"];
    let request = ["calibrate", &log, "--base", "connectx7", "--overlay", &slow, "-o", &card];
    learnt(&[&request[..], &fit].concat());
    let shown = json(&["device", "show", &card]);
    let number =
        shown["numbers"].as_array().expect("a list").iter().find(|one| one["name"] == "network.delay");
    let number = number.expect("the card has it");
    assert_eq!((&number["text"], &number["provenance"]), (&"700 ns".into(), &"assumed".into()), "{number}");
    assert!(
        number["source"].as_str().is_some_and(|source| source.contains("slow.toml` gave it")),
        "{number}"
    );
    fs::write(path("empty.log"), "").expect("written");
    let empty = path("empty.log");
    let times = overlay("times", "\"nic.pass_time\" = { times = 2 }");
    let refused = offpath(&["calibrate", &empty, "--base", "connectx7", "--overlay", &times]);
    let words = "leaves `client.nic.pass_time` at 100 ns, and the card has one number for both";
    assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, said(&refused));
    let refused = offpath(&["calibrate", &empty, "--base", "bluefield2", "--overlay", "one-pool"]);
    let words = "makes `nic.reserved_inflight_slots` a multiple of";
    assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, said(&refused));
}

/// What offpath read out of a log before is named as that; a remark that many lines of a file earn is made once.
#[test]
fn what_is_said_of_many_lines_is_said_once() {
    let folder = folder("folded");
    let path = |name: &str| folder.join(name).display().to_string();
    let whole = log(8, 300.0, 150.0);
    // Of every third size, so that each row but the first lacks two before it.
    let head: String = whole.lines().take(10).map(|line| format!("{line}\n")).collect();
    let rows: String = whole.lines().skip(10).step_by(3).map(|row| format!("{row}\n")).collect();
    let ruler = "-".repeat(87);
    let runs = format!("{ruler}\n{head}{rows}{ruler}\n");
    fs::write(path("many.log"), runs).expect("written");
    let log = path("many.log");
    let request = ["calibrate", &log, "--base", "connectx7", "--fit", "client.host_verbs.post_time"];
    let found = json(&request);
    let all = found["incomplete"].as_array().expect("a list").len();
    assert!(all > 3, "{found:#}");
    let text = wide_answer(&request);
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("incomplete: ")).collect();
    assert!(lines.len() < 3 && lines.iter().any(|line| line.ends_with(" lines)")), "{lines:?}");
    let imported = offpath(&["import", &log, "--format", "json"]);
    fs::write(path("imported.json"), imported.stdout).expect("written");
    let refused = offpath(&["calibrate", &path("imported.json"), "--base", "connectx7"]);
    let words = "what `offpath import` wrote of a log, and no log";
    assert!(refused.code == 2 && said(&refused).contains(words), "{}: {}", refused.code, said(&refused));
}

/// perftest has as many READs in flight as the device, whatever it is asked for.
#[test]
fn more_reads_in_flight_than_the_card_has_are_refused() {
    let asked = |outs: &str, more: &[&str]| {
        offpath(&[&["path", "connectx7", "--as", "ib_read_bw", "-s", "64", "--outs", outs], more].concat())
    };
    assert_eq!(asked("16", &[]).code, 0);
    let refused = asked("64", &[]);
    assert_eq!(refused.code, 2, "{}", refused.stdout);
    assert!(said(&refused).contains("`--outs 64` is above the 16 READs and atomics"), "{}", refused.stderr);
    let more = ["--set", "nic.outstanding_reads=64", "--set", "client.nic.outstanding_reads=64"];
    assert_eq!(asked("64", &more).code, 0);
}

/// What logs hold, whichever of several ceilings it is, is predicted within what the card's own logs err by: a guess, and no wide one.
#[test]
fn what_is_held_is_as_near_as_what_is_measured() {
    let folder = folder("held");
    let path = |name: &str| folder.join(name).display().to_string();
    let texts = [log(1, 300.0, 110.0), log(1, 303.0, 111.0), log(8, 301.0, 232.0), log(8, 298.0, 230.0)];
    let logs: Vec<String> = (0..texts.len()).map(|place| path(&format!("{place}.log"))).collect();
    for (file, text) in logs.iter().zip(texts) {
        fs::write(file, text).expect("written");
    }
    let card = path("held.toml");
    let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
    let found = learnt(&[&["calibrate", "--base", "connectx7", "-o", &card], &logs[..]].concat());
    assert_scored_as_written(&found, &card);
    let numbers = found["numbers"].as_array().expect("a list");
    let is_held = |one: &&serde_json::Value| one["provenance"] == "held-here";
    let held: Vec<&str> = numbers.iter().filter(is_held).filter_map(|one| one["name"].as_str()).collect();
    assert!(
        held.iter().any(|name| ["client.pcie0.rate", "client.nic.port_rate"].contains(name)),
        "{numbers:?}"
    );
    let said = json(&["path", &card, "--as", "ib_read_bw", "-q", "4", "-s", "1048576"]);
    let row = &said["rows"][0];
    let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
    let mean = of("bandwidth_gbit_per_s_mean");
    assert_eq!(
        (&row["errors_learnt_on"], &row["basis"]),
        (&serde_json::json!(["held"]), &"order only".into())
    );
    assert!(of("bandwidth_low_80_gbit_per_s") > 0.8 * mean && (mean / 232.0 - 1.0).abs() < 0.05, "{row}");
    // What READs were wrong by is said of READs alone.
    let width = |program: &str, more: &[&str]| {
        let said = json(&[&["path", &card, "--as", program, "-s", "64"], more].concat());
        let row = &said["rows"][0];
        let of = |key: &str| row[key].as_f64().unwrap_or_else(|| panic!("{key}: {row}"));
        let width = of("operations_high_80_per_s") / of("operations_low_80_per_s");
        assert!(said["untold_traffic"].is_null() || row["basis"] != "predicted", "{row}");
        (said["untold_traffic"].clone(), row["errors_learnt_on"] == serde_json::json!(["held"]), width)
    };
    let (untold, is_own, of_read) = width("ib_read_bw", &[]);
    assert!(untold.is_null() && is_own, "{untold}");
    for (program, more, traffic) in
        [("ib_write_bw", &[][..], "write"), ("ib_read_bw", &["-b"], "read both ways")]
    {
        let (untold, is_own, of_other) = width(program, more);
        assert_eq!((&untold, is_own), (&traffic.into(), false), "{program} {more:?}");
        assert!(of_other > 1.1 * of_read, "{program} {more:?}: {of_other}, {of_read}");
        let text = wide_answer(&[&["path", &card, "--as", program, "-s", "64"], more].concat());
        assert!(text.contains(&format!("No log of {traffic} on client-host is behind this card")), "{text}");
    }
    // No log has a latency: whatever prints one says so, in whichever testbed the card stands, until one has.
    let with = folder.join("timed.toml").display().to_string();
    let text = fs::read_to_string(&card).expect("it was written");
    let (before, errors) = text.split_once("[throughput_errors]").expect("it has errors");
    let timed = errors.replace("\"throughput\"", "\"latency\"").replace("[throughput_", "[latency_");
    // Whatever a latency rests on, one thing binds it.
    let timed: String =
        timed.lines().filter(|line| !line.starts_with("bound_by")).map(|line| format!("{line}\n")).collect();
    let timed = timed.split("[latency_errors_2]").next().expect("there is a first part");
    let text = format!("{before}[latency_errors]{timed}\n[throughput_errors]{errors}");
    fs::write(&with, text.replace("\"held\"", "\"timed\"")).expect("it can be written");
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/echo-headroom.toml");
    for (card, is_said) in [(&card, true), (&with, false)] {
        let pair = format!("{card},connectx7");
        for asked in [
            &["path", card, "--as", "ib_read_lat", "-s", "8"][..],
            &["path", card, "--path", "client-host", "--verb", "read"],
            &["path", card],
            &["plan", design, "--device", card, "--mode", "nic", "--testbed", card],
            &["plan", design, "--device", card, "--mode", "nic"],
            &["compare", design, "--device", &pair, "--mode", "nic"],
        ] {
            let text = wide_answer(asked);
            let words = "no log of latencies is behind";
            assert_eq!(text.contains(words), is_said, "{asked:?}: {text}");
        }
        let said = json(&["path", card, "--as", "ib_read_lat", "-s", "8"]);
        assert_eq!(said["untold_latency"], is_said);
        // Errors of its own that do not widen a row are said to be passed over, and why.
        let passed_over = said["own_errors_passed_over"].to_string();
        assert_eq!(passed_over.contains("that were not measured here"), !is_said, "{passed_over}");
    }
    let text = wide_answer(&["path", "connectx7", "--as", "ib_read_lat", "-s", "8"]);
    assert!(!text.contains("no log of latencies"), "{text}");
}

#[test]
fn what_cannot_be_learnt_is_refused_by_name() {
    let folder = folder("refused");
    let whole = log(1, 300.0, 150.0);
    let headless: String = whole.lines().skip(10).map(|line| format!("{line}\n")).collect();
    for (name, text) in
        [("whole.log", whole.as_str()), ("headless.log", &headless), ("prose.log", "nothing\n")]
    {
        fs::write(folder.join(name), text).expect("written");
    }
    let path = |name: &str| folder.join(name).display().to_string();
    let cases: [(&str, &[&str], &str); 8] = [
        ("headless.log", &[], "the log does not say"),
        ("prose.log", &[], "no row of perftest"),
        ("whole.log", &["--hold-out", "half"], "is not a rule"),
        ("whole.log", &["--hold-out", "verb=read"], "0 of 20 points"),
        ("whole.log", &["--hold-out", "verb=write"], "no point is of write"),
        ("whole.log", &["--hold-out", "qps=2,4"], "the logs have 1 queue pairs"),
        ("whole.log", &["--fit", "host.cores"], "cannot be fitted"),
        ("whole.log", &["--path", "client-moon"], "client-moon"),
    ];
    for (name, options, said) in cases {
        let found = offpath(&[&["calibrate", &path(name), "--base", "connectx7"], options].concat());
        assert_eq!(found.code, 2, "{name} {options:?}: {}", found.stderr);
        assert!(self::said(&found).contains(said), "{name} {options:?}: {}", found.stderr);
    }
}

#[test]
fn a_program_prints_its_own_columns() {
    let text = wide_answer(&["path", "connectx7", "--as", "ib_write_bw", "--qps", "4", "--report-gbits"]);
    assert!(text.contains("BW average[Gb/sec]   MsgRate[Mpps]") && text.contains(" 8388608 "), "{text}");
    let text = wide_answer(&["path", "connectx7", "--as", "ib_read_lat", "--size", "64B"]);
    assert!(text.contains("t_typical[usec]") && text.contains("the whole operation"), "{text}");
    assert!(text.contains("How well each row is known") && text.contains("usec  80% interval"), "{text}");
    // By its own names and letters it is the same.
    let own = ["-q", "4", "-s", "65536", "--report_gbits", "--mtu", "4096", "-t", "64", "-n", "2000", "-b"];
    let ours = ["--qps", "4", "--size", "64KiB", "--report-gbits", "--mtu", "4KiB", "--tx-depth", "64"];
    let ours = [&ours[..], &["--iters", "2000", "--bidirectional"]].concat();
    let of =
        |options: &[&str]| wide_answer(&[&["path", "connectx7", "--as", "ib_write_bw"], options].concat());
    assert_eq!(of(&own), of(&ours));
    assert_eq!(of(&["-a", "--qp=2", "--inline_size=0"]), of(&["--qps", "2", "--inline-size", "0B"]));
    // By time perftest counts what lies within its margins: six of ten seconds.
    let by_time = json(&["path", "connectx7", "--as", "ib_write_bw", "-s", "64", "-D", "10"]);
    let row = &by_time["rows"][0];
    let counted =
        row["iterations"].as_f64().expect("a count") / row["operations_per_s_mean"].as_f64().expect("a rate");
    assert!((counted - 6.0).abs() < 0.01, "{row}");
    for (options, said) in [
        (
            &["--as", "ib_write_bw", "-c", "UD"][..],
            "`--connection` (`-c`) of `ib_write_bw` asks for another transport",
        ),
        (
            &["--as", "ib_write_bw", "--use_cuda=0"],
            "`--use_cuda` of `ib_write_bw` takes the payload from a memory",
        ),
        (&["--as", "ib_read_bw", "-C"], "`--report-cycles` (`-C`) of `ib_read_bw` prints"),
        (&["--as", "ib_read_bw", "--run_infinitely"], "`--run_infinitely` of `ib_read_bw` changes the run"),
        (&["--as", "ib_read_lat", "-D", "5"], "prints the mean alone"),
        (&["-d", "mlx5_0"], "--as"),
        (&["--as", "ib_read_lat", "--qps", "2"], "--qps has no effect"),
        (&["--as", "ib_read_bw", "--inline-size", "64B"][..], "--inline-size has no effect"),
        (&["--as", "ib_write_bw", "--outs", "4"][..], "--outs has no effect"),
        (&["--as", "ib_read_bw", "--verb", "write"], "cannot be used with"),
        (&["--qps", "2"], "--as"),
        (&["--as", "ib_atomic_lat", "--size", "64B"], "always moves"),
    ] {
        let found = offpath(&[&["path", "connectx7"], options].concat());
        assert_eq!(found.code, 2, "{options:?}: {}", found.stderr);
        assert!(self::said(&found).contains(said), "{options:?}: {}", found.stderr);
    }
}

/// A command line is pasted with what says where and how its programs connect: that moves nothing.
#[test]
fn where_programs_connect_moves_nothing() {
    let plain = wide_answer(&["path", "connectx7", "--as", "ib_read_bw", "--size", "64B"]);
    let pasted = ["-d", "mlx5_0", "-i", "1", "-x", "3", "-F", "-R", "-p", "18515", "-c", "RC"];
    let pasted = [&["path", "connectx7", "--as", "ib_read_bw", "--size", "64B"][..], &pasted].concat();
    assert_eq!(wide_answer(&pasted), plain);
}

/// What perftest refuses is refused with its option, its value and its bound.
#[test]
fn what_perftest_refuses_is_refused() {
    for (options, said) in [
        (["-s", "0"], "`--size 0` of `ib_write_bw`: perftest takes 1 B"),
        (["-I", "100000"], "'100000' for '--inline-size <INLINE_SIZE>': perftest takes 0 B to 1 KiB"),
        (["-q", "20000"], "'20000' for '--qps <QPS>': it has to be a whole number from 1 to 16384"),
        (["-t", "15001"], "'15001' for '--tx-depth <TX_DEPTH>': it has to be a whole number from 1 to 15000"),
        (["-Q", "1025"], "'1025' for '--cq-mod <CQ_MOD>': it has to be a whole number from 1 to 1024"),
        (["-n", "4"], "'4' for '--iters <ITERS>': it has to be a whole number from 5 to 4294967296"),
    ] {
        let found = offpath(&[&["path", "connectx7", "--as", "ib_write_bw"], &options[..]].concat());
        assert_eq!(found.code, 2, "{options:?}: {}", found.stderr);
        assert!(self::said(&found).contains(said), "{options:?}: {}", found.stderr);
    }
}

/// Points that ask for more than the search allows make no number measured: the card has it as a guess, and the screen says that
/// a roofline does better.
#[test]
fn a_number_at_the_end_of_the_search_is_no_measured_one() {
    let folder = folder("bound");
    let sizes = (1..=12).map(|power| f64::from(1u32 << (2 * power - 1)));
    let file = folder.join("slow.log");
    fs::write(&file, log_of(1, sizes.map(|bytes| (bytes, 0.97e9 / 8.0 / bytes)))).expect("it is written");
    let (log, card) = (file.display().to_string(), folder.join("slow.toml").display().to_string());
    let fit = ["--fit", "client.nic.port_rate"];
    let asked = [&["calibrate", &log, "--base", "connectx7", "-o", &card][..], &fit].concat();
    let found = learnt(&asked);
    let number = &found["numbers"][0];
    assert_eq!((&number["at_bound"], &number["told"]), (&true.into(), &false.into()), "{number}");
    assert_eq!(number["assumed_because"], "at-bound");
    assert_eq!(found["worse_than_roofline"], true);
    let text = fs::read_to_string(&card).expect("a card");
    assert!(text.contains("the search ends there, and the logs ask for more"), "{text}");
    fs::remove_file(&card).expect("it is there");
    let found = in_columns(&asked, Some("2000"));
    let text = found.stdout;
    assert_eq!(found.code, 1, "{}", found.stderr);
    assert!(text.contains("NOT DESCRIBED") && text.contains("WORSE THAN TWO NUMBERS"), "{text}");
}

/// What is named next works on a plain NIC, and a card that is learnt from one with a processor is planned with.
#[test]
fn the_next_command_works_on_the_card() {
    let folder = folder("next");
    let log_file = folder.join("a.log").display().to_string();
    fs::write(&log_file, log(1, 200.0, 180.0)).expect("a log");
    let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../../designs/kv-ycsb-c.toml");
    for (base, has_processor) in [("connectx7", false), ("bluefield3", true)] {
        let card = folder.join(format!("{base}-own.toml")).display().to_string();
        let found = offpath(&[
            "calibrate",
            &log_file,
            "--base",
            base,
            "-o",
            &card,
            "--fit",
            "nic.queue_pair_request_time",
        ]);
        assert_ne!(found.code, 2, "{}", found.stderr);
        let next =
            found.stderr.lines().find_map(|line| line.strip_prefix("next: offpath ")).expect("it is named");
        let words: Vec<&str> = next.split_whitespace().collect();
        let answered = offpath(&words);
        assert_eq!(answered.code, 0, "{next}: {}", answered.stderr);
        let planned = offpath(&["plan", design, "--device", &card]);
        assert_eq!(planned.code == 0, has_processor, "{base}: {}", planned.stderr);
    }
}
