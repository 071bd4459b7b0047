//! `offpath calibrate` and `offpath path --as` as their users see them.

mod common;

use common::{check, json, offpath, schema, wide_answer};
use std::fmt::Write;
use std::fs;
use std::path::PathBuf;

/// A log as perftest writes it, of a card that posts a message in so many nanoseconds and carries so much.
fn log(queue_pairs: u32, post_ns: f64, gbit_per_s: f64) -> String {
    let mut text = format!(
        "                    RDMA_Read BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n Number of qps   : \
         {queue_pairs}\t\tTransport type : IB\n Connection type : RC\t\tUsing SRQ      : OFF\n TX depth        : 128\n CQ \
         Moderation   : 100\n Mtu             : 4096[B]\n Link type       : Ethernet\n Outstand reads  : 16\n #bytes     \
         #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    );
    for power in 1..=20 {
        let bytes = f64::from(1 << power);
        let rate = (1e9 / post_ns).min(gbit_per_s * 1e9 / 8.0 / bytes);
        let gbit = rate * bytes * 8.0 / 1e9;
        let printed = if gbit < 0.1 { format!("{gbit:.6}") } else { format!("{gbit:.2}") };
        let iterations = 1000 * queue_pairs;
        let _ = writeln!(text, " {bytes:<10} {iterations:<14} {printed:<18} {printed:<20} {:.6}", rate / 1e6);
    }
    text
}

/// What a command said on stderr, however its lines are broken.
fn said(answer: &common::Answer) -> String {
    answer.stderr.split_whitespace().filter(|word| *word != "│").collect::<Vec<_>>().join(" ")
}

/// An empty folder of a test's own.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("offpath-calibrate-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("it can be made");
    folder
}

#[test]
fn a_card_is_learnt_written_loaded_and_laid_beside_its_log() {
    let folder = folder("card");
    let path = |name: &str| folder.join(name).display().to_string();
    fs::write(folder.join("one.log"), log(1, 300.0, 150.0)).expect("written");
    fs::write(folder.join("eight.log"), log(8, 300.0, 150.0)).expect("written");
    let (one, eight, card) = (path("one.log"), path("eight.log"), path("mycard.toml"));
    let learnt =
        offpath(&["calibrate", &one, &eight, "--base", "connectx7", "-o", &card, "--format", "json"]);
    assert_eq!(learnt.code, 0, "{}", learnt.stderr);
    assert!(said(&learnt).contains("wrote"), "{}", learnt.stderr);
    let found: serde_json::Value = serde_json::from_str(&learnt.stdout).expect("the answer is JSON");
    check(&found, &schema("calibrate.json"), "calibrate");
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
    // Without `--mtu` it is that of the logs and not of the base's testbed.
    assert_eq!((tool["mtu_bytes"].as_u64(), found["mtu_bytes"].as_u64()), (Some(4096), Some(4096)));
    // What somebody has is never replaced.
    let again = offpath(&["calibrate", &one, "--base", "connectx7", "-o", &card]);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(said(&again).contains("is there already"), "{}", again.stderr);
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
    let cases: [(&str, &[&str], &str); 6] = [
        ("headless.log", &[], "the log does not say"),
        ("prose.log", &[], "no row of perftest"),
        ("whole.log", &["--hold-out", "half"], "is not a rule"),
        ("whole.log", &["--hold-out", "verb=read"], "0 of 20 points"),
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
    for (options, said) in [
        (&["--as", "ib_read_lat", "--qps", "2"][..], "--qps has no effect"),
        (&["--as", "ib_read_bw", "--verb", "write"], "cannot be used with"),
        (&["--qps", "2"], "--as"),
        (&["--as", "ib_atomic_lat", "--size", "64B"], "always moves"),
    ] {
        let found = offpath(&[&["path", "connectx7"], options].concat());
        assert_eq!(found.code, 2, "{options:?}: {}", found.stderr);
        assert!(self::said(&found).contains(said), "{options:?}: {}", found.stderr);
    }
}
