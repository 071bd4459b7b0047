//! `offpath collect`, `offpath new device --from` and `offpath diagnose` as their users see them.

use crate::common::{answer, check, in_columns, json, offpath, said, schema, wide_answer};
use offpath::answers::diagnose::{DiagnoseRequest, diagnose};
use offpath_learn::{RunKind, ToolBench, ToolProgram};
use offpath_plan::sample::between;
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::Bytes;
use offpath_twin::{Seed, unit};
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

fn machine(name: &str, files: &[&str]) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../logs/tests/data/machines").join(name);
    let all: Vec<String> = files.iter().map(|file| folder.join(file).display().to_string()).collect();
    all.join(",")
}

const NARROW: &[&str] = &["lspci.txt", "ibv_devinfo.txt", "lscpu.txt", "numactl.txt", "sys.txt"];

#[test]
fn a_machine_begins_a_card_that_loads_and_plans_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("own.toml").display().to_string();
    let from = machine("narrow", NARROW);
    let arguments = ["new", "device", "own", "--base", "connectx6", "--from", &from, "--out", &out];
    let found = json(&arguments);
    check(&found, &schema("new-device.json"), "new device");
    assert!(folder.path().join("own-host.toml").exists());
    let slow = &found["machine"]["oddities"][0];
    assert_eq!(slow["kind"], "link-below-maximum");
    let costs = slow["costs"].as_array().expect("a list");
    let large = costs.iter().find(|cost| cost["payload_bytes"] == 65536).expect("large transfers");
    assert!(large["lost_percent"].as_f64().is_some_and(|lost| lost > 30.0), "{large}");
    // Sources name files, and not where they lay.
    let text = fs::read_to_string(&out).expect("it was written");
    assert!(text.contains("source = \"ibv_devinfo.txt:") && !text.contains("tests/data"), "{text}");
    assert!(
        text.contains("that says `carried-over` is another device's"),
        "some are this machine's own: {text}"
    );
    let shown = wide_answer(&["device", "show", &out]);
    assert!(shown.contains("128 Gbit/s"), "{shown}");
    let path = json(&["path", &out, "--path", "client-host", "--verb", "write", "--size", "64KiB"]);
    assert!(path["binding_station"].as_str().is_some_and(|name| name.contains("pcie0")), "{path}");
    // Runs are between two of such machines, whatever asks for them.
    let log = folder.path().join("own.log").display().to_string();
    let mut rows = "                    RDMA_Read BW Test\n Number of qps   : 1\n TX depth        : 128\n CQ Moderation   : 100\n \
                    Mtu             : 4096[B]\n Outstand reads  : 16\n #bytes     #iterations    BW peak[Gb/sec]    BW \
                    average[Gb/sec]   MsgRate[Mpps]\n"
        .to_string();
    for (bytes, rate) in [(64, 2.9), (256, 2.9), (1024, 2.9), (4096, 2.5), (16384, 0.7), (65536, 0.17f64)] {
        let gbit = rate * f64::from(bytes) * 8.0 / 1e3;
        rows += &format!(" {bytes}  1000  {gbit:.6}  {gbit:.6}  {rate:.6}\n");
    }
    fs::write(&log, rows).expect("a file");
    for asked in [
        &["path", &out, "--as", "ib_read_lat", "-s", "8"][..],
        &["diagnose", &log, "--device", &out],
        &["calibrate", &log, "--base", &out, "--fit", "client.host_verbs.post_time"],
        &["measure", &format!("twin:{out}"), "--list"],
    ] {
        let answer = offpath(asked);
        assert!(!answer.stderr.contains("testbed"), "{asked:?}: {}", answer.stderr);
        assert!(answer.code <= 1, "{asked:?}: {}", answer.stderr);
    }
    // Nothing is overwritten, and nothing half written stays.
    let again = offpath(&arguments);
    assert_eq!(again.code, 2, "{}", again.stderr);
    assert!(again.stderr.contains("exists already"), "{}", again.stderr);
    assert_eq!(fs::read_to_string(&out).expect("it is still there"), text);
}

#[test]
fn a_collection_is_shown_as_data_and_as_text() {
    for (name, files) in [
        ("narrow", NARROW),
        ("behind-switch", &["lspci.txt", "ibv_devinfo.txt", "lscpu.txt", "ethtool.txt"]),
        ("card-in-host", &["lspci.txt", "ibv_devinfo.txt", "lscpu.txt", "meminfo.txt", "mlxconfig.txt"]),
        ("card-itself", &["lspci.txt", "lscpu.txt", "meminfo.txt"]),
    ] {
        let from = machine(name, files);
        let found = json(&["collect", "--from", &from]);
        check(&found, &schema("collect.json"), name);
        assert!(found["files"].as_array().is_some_and(|all| all.len() == files.len()), "{name}");
        assert_eq!(found["machine"]["card"]["is_own_processor"], name == "card-itself", "{name}");
        let text = wide_answer(&["collect", "--from", &from]);
        assert!(text.contains("Links between the card and the root"), "{text}");
    }
    // READs in flight are the lesser of what a port asks and answers, also where one is said alone, as a new device has them.
    let folder = tempfile::tempdir().expect("a folder");
    let ports = folder.path().join("ibv_devinfo.txt");
    fs::write(&ports, "hca_id:\tmlx5_0\n\tmax_qp_rd_atom:\t\t\t16\n\tphys_port_cnt:\t\t\t1\n\t\tport:\t1\n")
        .expect("a file");
    let ports = ports.display().to_string();
    let found = json(&["collect", "--from", &ports]);
    assert_eq!(found["machine"]["ports"][0]["outstanding_reads"], 16, "{found}");
    let text = wide_answer(&["collect", "--from", &ports]);
    assert!(text.lines().any(|line| line.contains("mlx5_0 port 1") && line.contains("16")), "{text}");
    // This machine is asked without a refusal, whatever it has, and the archive is read again.
    let folder = tempfile::tempdir().expect("a folder");
    let archive = folder.path().join("machine.tar").display().to_string();
    let asked = offpath(&["collect", "-o", &archive, "--format", "json"]);
    assert!(Path::new(&archive).exists(), "{}", asked.stderr);
    let kept = fs::read(&archive).expect("it was written");
    let again = offpath(&["collect", "-o", &archive]);
    assert!(again.code == 2 && again.stderr.contains("is there already"), "{}", again.stderr);
    assert_eq!(fs::read(&archive).expect("it is still there"), kept);
    let read = offpath(&["collect", "--from", &archive, "--format", "json"]);
    // A machine with several cards is asked which; what was gathered is whole all the same.
    assert_eq!(asked.code, read.code, "{}\n{}", asked.stderr, read.stderr);
}

#[test]
fn files_that_are_no_machine_are_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, bytes: &[u8]| {
        let path = folder.path().join(name);
        fs::write(&path, bytes).expect("a file");
        path.display().to_string()
    };
    let other = file("other.txt", b"nothing that is known\n");
    let refused = offpath(&["collect", "--from", &other]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("no line of `other.txt` says anything"), "{}", refused.stderr);
    let cards =
        file("lspci.txt", b"01:00.0 Ethernet controller: A One\n02:00.0 Ethernet controller: B Two\n");
    let refused = offpath(&["collect", "--from", &cards]);
    assert_eq!(refused.code, 2);
    assert!(refused.stderr.contains("--card"), "{}", refused.stderr);
    answer(&["collect", "--from", &cards, "--card", "02:00.0"]);
    // Files by hand that two machines gave.
    for (one, other, what) in [
        ("Model name: One\n", "Model name: Two\n", "the processor is `One` by"),
        (
            "01:00.0 Ethernet controller: A One\n",
            "01:00.0 Ethernet controller: B Two\n",
            "the function 0000:01:00.0 is",
        ),
        (
            "hca_id:\tmlx5_0\n\tfw_ver:\t1.2\n\tport:\t1\n",
            "hca_id:\tmlx5_0\n\tfw_ver:\t1.3\n\tport:\t1\n",
            "the firmware of mlx5_0",
        ),
    ] {
        let both =
            format!("{},{}", file("one-tool.txt", one.as_bytes()), file("other-tool.txt", other.as_bytes()));
        let refused = offpath(&["collect", "--from", &both]);
        let said = said(&refused);
        assert!(
            refused.code == 2 && said.contains("of two machines") && said.contains(what),
            "{said}{}",
            refused.stdout
        );
    }
    // The same card with its numbers is the same card.
    let plain = file("one-tool.txt", b"01:00.0 Ethernet controller: A One [B-2] (rev 01)\n");
    let numbered = file("other-tool.txt", b"01:00.0 Ethernet controller [0200]: A One [B-2] [15b3:1021]\n");
    answer(&["collect", "--from", &format!("{plain},{numbered}")]);
    // An archive that was cut off, and one whose size says more than there is.
    let whole = folder.path().join("whole.tar").display().to_string();
    offpath(&["collect", "-o", &whole]);
    let bytes = fs::read(&whole).expect("it was written");
    let cut = file("cut.tar", &bytes[..700.min(bytes.len())]);
    let refused = offpath(&["collect", "--from", &cut]);
    assert_eq!(refused.code, 2, "{}", refused.stderr);
    let both = format!("{whole},{whole}");
    let refused = offpath(&["collect", "--from", &both]);
    assert!(refused.code == 2 && refused.stderr.contains("two machines"), "{}", refused.stderr);
    let missing = offpath(&["new", "device", "x", "--from", "no-such-file.txt"]);
    assert!(missing.code == 2 && missing.stderr.contains("cannot be read"), "{}", missing.stderr);
}

/// Rows of a run with one request at a time, without its head.
const DEPTH_ONE: &str = "\
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
 64         1000             25.10              25.05              0.410400
 1024       1000             395.00             394.20             0.403700
 4096       1000             1480.00            1475.00            0.377600
 16384      1000             4450.00            4440.00            0.284200
 65536      1000             9300.00            9280.00            0.148500
";

#[test]
fn low_rows_have_a_cause_and_an_exit_code() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("rows.log");
    fs::write(&log, DEPTH_ONE).expect("a log");
    let log = log.display().to_string();
    let arguments = ["diagnose", &log, "--device", "connectx7"];
    let found = json(&arguments);
    check(&found, &schema("diagnose.json"), "diagnose");
    assert_eq!(found["verdict"], "low", "{found}");
    assert_eq!(found["points"].as_array().map(Vec::len), Some(5));
    let first = &found["causes"][0]["causes"][0];
    assert_eq!(first["cause"], "tx-depth", "{}", found["causes"]);
    let text = wide_answer(&arguments);
    assert!(text.contains("--tx-depth 128") && text.contains("Measured and expected"), "{text}");
    // A card of 200 Gbit/s is judged against one of its own, and against clients of half of that only where they are named.
    let taken = |more: &[&str]| {
        let found = json(&[&["diagnose", &log, "--device", "connectx6"], more].concat());
        let said = |key: &str, words: &str| found[key].to_string().contains(words);
        (
            said("unlike_ends", "by `--testbed`, as `rack-pair`"),
            said("assumed", "both machines have this card"),
        )
    };
    assert_eq!(taken(&[]), (false, true));
    assert_eq!(taken(&["--testbed", "rack"]), (true, false));
    let accepted = offpath(&["diagnose", &log, "--device", "connectx7", "--expect", "0.9"]);
    assert_eq!(accepted.code, 1, "{}", accepted.stdout);
    let accepted = offpath(&["diagnose", &log, "--device", "connectx7", "--expect", "0.001"]);
    assert_eq!(accepted.code, 0, "{}", accepted.stdout);
    let refused = offpath(&["diagnose", &log, "--device", "connectx7", "--expect", "1.5"]);
    assert_eq!(refused.code, 2);
    // What the machine says speaks for a cause that the rows leave, and names its line.
    let collection = machine("narrow", NARROW);
    let with = json(&["diagnose", &log, "--device", "connectx7", "--collection", &collection]);
    let all = with["causes"]
        .as_array()
        .expect("a list")
        .iter()
        .flat_map(|group| group["causes"].as_array().expect("a list"));
    let link = all.clone().find(|one| one["cause"] == "pcie-link").expect("it explains a part");
    assert!(link["evidence"][0].as_str().is_some_and(|said| said.contains("lspci.txt:")), "{link}");
    assert_eq!(
        with["causes"][0]["causes"][0]["cause"], "tx-depth",
        "it does not go before what the rows favour"
    );
    let nothing = folder.path().join("nothing.log");
    fs::write(&nothing, "what is this?\n").expect("a log");
    let refused = offpath(&["diagnose", &nothing.display().to_string(), "--device", "connectx7"]);
    assert_eq!(refused.code, 1, "{}", refused.stderr);
    assert!(refused.stdout.contains("No row can be compared"), "{}", refused.stdout);
    assert!(refused.stdout.contains("nothing.log:1: "), "{}", refused.stdout);
    // Figures that no model predicts are named, with the reason and with what is predicted.
    let counters = folder.path().join("counters.log");
    fs::write(&counters, "NIC statistics:\n     rx_packets: 12\n     tx_packets: 13\n").expect("a log");
    let empty = folder.path().join("empty.log");
    fs::write(&empty, "").expect("a log");
    for (log, words) in [
        (
            &counters,
            &["not compared: 2 figures: ", "there: 2 `counter_count` of ", "To compare: `ib_read_bw -a"][..],
        ),
        (&empty, &["no line that gives a figure", "To compare: "]),
    ] {
        let log = log.display().to_string();
        let refused = offpath(&["diagnose", &log, "--device", "connectx7"]);
        assert_eq!(refused.code, 1, "{}", refused.stderr);
        assert!(words.iter().all(|word| refused.stdout.contains(word)), "{}", refused.stdout);
        let found = offpath(&["diagnose", &log, "--device", "connectx7", "--format", "json"]);
        let found: serde_json::Value = serde_json::from_str(&found.stdout).expect("it is JSON");
        check(&found, &schema("diagnose.json"), "nothing");
        assert!(found["nothing_comparable"]["measure"].is_string(), "{found}");
    }
}

/// A sweep that was killed has rows that are fine, and passes no acceptance test; of a part of a log nobody knows whether it is
/// whole, and it is used.
#[test]
fn a_sweep_that_died_is_not_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = json(&["path", "connectx7", "--as", "ib_write_bw"]);
    let rows: String = tool["rows"].as_array().expect("a list")[..12]
        .iter()
        .map(|row| {
            let of = |key: &str| row[key].as_f64().expect("a number");
            let (size, rate) = (of("payload_bytes"), of("operations_per_s_mean"));
            let mib = size * rate / 1_048_576.0;
            format!(" {size} 5000 {mib:.2} {mib:.2} {:.6}\n", rate / 1e6)
        })
        .collect();
    let ruler = "-".repeat(87);
    let head = format!(
        "{ruler}\n                    RDMA_Write BW Test\n Connection type : RC\t\tUsing SRQ      : OFF\n TX depth        : 128\n{ruler}\n \
         #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
    );
    let of = |name: &str, log: String| {
        let file = folder.path().join(name);
        fs::write(&file, log).expect("a log");
        let asked = ["diagnose", &file.display().to_string(), "--device", "connectx7", "--expect", "0.8"];
        let found = offpath(&[&asked[..], &["--format", "json"]].concat());
        let answer: serde_json::Value = serde_json::from_str(&found.stdout).expect("it is JSON");
        check(&answer, &schema("diagnose.json"), name);
        assert_eq!(answer["reaching_rows"], 12, "{name}: {answer}");
        (found.code, answer, offpath(&asked).stdout.split_whitespace().collect::<Vec<_>>().join(" "))
    };
    let (code, answer, text) = of("whole.log", format!("{head}{rows}{ruler}\n"));
    assert_eq!((code, &answer["verdict"]), (0, &"normal".into()), "{text}");
    assert!(!text.contains("nobody knows"), "{text}");
    for (name, log, failed) in [
        ("killed.log", format!("{head}{rows}"), 1),
        ("failed.log", format!("{head}{rows} Completion with error at client\n"), 2),
    ] {
        let (code, answer, text) = of(name, log);
        assert_eq!((code, &answer["verdict"]), (1, &"incomplete".into()), "{name}: {text}");
        assert_eq!(answer["failed"].as_array().map(Vec::len), Some(failed), "{name}: {answer}");
        assert!(text.contains("no line of dashes ends the table below this row"), "{name}: {text}");
    }
    let (code, answer, text) = of("part.log", rows);
    assert_eq!((code, &answer["verdict"]), (0, &"normal".into()), "{text}");
    assert!(text.contains("whether the run ended, and rows are missing, nobody knows"), "{text}");
}

/// A row that is off is named beside a verdict of all others.
#[test]
fn a_row_that_is_off_is_named_beside_a_normal_verdict() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("one.log");
    let tool = json(&["path", "connectx7", "--as", "ib_write_bw", "--mtu", "4KiB"]);
    let mut text =
        " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n".to_string();
    for row in tool["rows"].as_array().expect("a list") {
        let of = |key: &str| row[key].as_f64().expect("a number");
        let size = of("payload_bytes");
        let rate = of("operations_per_s_mean") * if size == 4096.0 { 0.74 } else { 1.0 };
        let mib = size * rate / 1_048_576.0;
        text += &format!(" {size} 5000 {mib:.2} {mib:.2} {:.6}\n", rate / 1e6);
    }
    fs::write(&log, text).expect("a log");
    let log = log.display().to_string();
    let found = json(&["diagnose", &log, "--device", "connectx7"]);
    assert_eq!((&found["verdict"], &found["off_rows"]), (&"normal".into(), &1.into()), "{found}");
    assert_eq!(found["worst_rows"][0]["line"], 13, "{}", found["worst_rows"]);
    let text = wide_answer(&["diagnose", &log, "--device", "connectx7"]);
    assert!(text.contains("one.log:13 74%") && text.contains("connectx7: normal, but for 1 row\n"), "{text}");
}

/// Latencies are compared by their medians: a run of which a few operations stalled is told so, and passes no acceptance test.
#[test]
fn a_latency_with_a_tail_is_not_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = json(&["path", "connectx7", "--as", "ib_read_lat", "-s", "64", "--mtu", "4KiB"]);
    let us = tool["rows"][0]["latency_ns_median"].as_f64().expect("a latency") / 1e3;
    let of = |name: &str, mean: f64, longest: f64| {
        let file = folder.path().join(name);
        let text = format!(
            "                    RDMA_Read Latency Test\n Connection type : RC\n TX depth        : 1\n Mtu             : 4096[B]\n Outstand \
             reads  : 16\n{0}\n #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% \
             percentile[usec]   99.9% percentile[usec] \n 64       1000          {us:.2}           {longest:.2}        {us:.2}        \
             {mean:.2}        0.10        {us:.2}        {longest:.2}\n{0}\n",
            "-".repeat(87)
        );
        fs::write(&file, text).expect("a log");
        let answer =
            offpath(&["diagnose", &file.display().to_string(), "--device", "connectx7", "--expect", "0.9"]);
        (answer.code, answer.stdout)
    };
    let (code, text) = of("usual.log", us * 1.05, us * 4.0);
    assert!(code == 0 && !text.contains("waited"), "{text}");
    // Far less than a timer's time, and a mean that is no longer what is expected.
    let (code, text) = of("lossy.log", us * 300.0, 35_000.0);
    let text = crate::common::unbroken(&text);
    assert!(code == 1 && text.contains("by the mean and not by the median"), "{text}");
    let (code, text) = of("stalled.log", us * 300.0, 655_360.0);
    assert!(code == 1 && text.contains("Some operations waited") && text.contains("655.360 ms"), "{text}");
}

/// A run whose log states what the model has no number for is compared with nothing, and learnt from by nothing.
#[test]
fn a_run_that_no_model_is_of_is_compared_with_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let head = "                    RDMA_Write BW Test\n Number of qps   : 1\n Connection type : RC\n TX depth        : 128\n CQ \
                Moderation   : 1\n Mtu             : 4096[B]\n Max inline data : 0[B]\n #bytes     #iterations    BW \
                peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n 65536      5000           50.00              49.97           \
                0.095310\n";
    for (command, words) in [
        ("ib_write_bw -e server", "`--events`"),
        ("ib_write_bw --odp server", "`--odp`"),
        ("ib_write_bw --rate_limit=50 --rate_units=g server", "limits to 50 g"),
        ("ib_write_bw --use_cuda=0 server", "memory of another kind (`cuda`)"),
        ("ib_write_bw -O server", "both ports at once"),
    ] {
        let log = folder.path().join("one.log");
        fs::write(&log, format!("$ {command}\n{head}")).expect("a log");
        let log = log.display().to_string();
        let found = offpath(&["diagnose", &log, "--device", "connectx7"]);
        let text = crate::common::unbroken(&found.stdout);
        assert!(
            found.code == 1 && text.contains(words) && text.contains("nothing-comparable"),
            "{command}: {text}"
        );
        let learnt = offpath(&["calibrate", &log, "--base", "connectx7"]);
        assert!(learnt.code == 2 && said(&learnt).contains(words), "{command}: {}", learnt.stderr);
    }
}

/// Rows without a head are taken for the nearest program's, and the command on a line above them decides it.
#[test]
fn a_command_above_rows_without_a_head_says_their_program() {
    let folder = tempfile::tempdir().expect("a folder");
    let rows = " 64         8000           180.30             180.26               2.953458\n \
                4096       8000           11000.00           11000.00             2.816000\n";
    let found = |name: &str, text: String| {
        let file = folder.path().join(name);
        fs::write(&file, text).expect("a log");
        let found = json(&["diagnose", &file.display().to_string(), "--device", "bluefield2"]);
        check(&found, &schema("diagnose.json"), name);
        (found["assumed"].to_string(), found["points"][0]["run"].to_string())
    };
    let (assumed, _) = found("bare.log", rows.to_string());
    assert!(assumed.contains("the command that ran"), "{assumed}");
    for program in ["write", "read", "send"] {
        let (assumed, run) = found("said.log", format!("$ ib_{program}_bw -q 8\n{rows}"));
        assert!(!assumed.contains("no head"), "{assumed}");
        assert!(run.contains(program) && run.contains("8 queue pairs"), "{run}");
    }
}

/// What carried nothing, what could not be compared and what no port carries are no rows that an acceptance test passes.
#[test]
fn what_says_nothing_good_is_not_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let tool = json(&["path", "connectx7", "--as", "ib_write_bw", "--mtu", "4KiB"]);
    let rows: Vec<(f64, f64)> = tool["rows"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| {
            let of = |key: &str| row[key].as_f64().expect("a number");
            (of("payload_bytes"), of("operations_per_s_mean"))
        })
        .collect();
    let head = |connection: &str| {
        format!(
            "-----\n                    RDMA_Write BW Test\n Number of qps   : 1\n Connection type : {connection}\n TX depth        : \
             128\n CQ Moderation   : 100\n Mtu             : 4096[B]\n Max inline data : 0[B]\n #bytes     #iterations    BW \
             peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
        )
    };
    let of = |name: &str, connection: &str, share: fn(f64) -> f64| {
        let mut text = head(connection);
        for (size, rate) in &rows {
            let rate = rate * share(*size);
            let mib = size * rate / 1_048_576.0;
            text += &format!(" {size} 5000 {mib:.2} {mib:.2} {:.6}\n", rate / 1e6);
        }
        let file = folder.path().join(name);
        fs::write(&file, text + "-----\n").expect("a log");
        file.display().to_string()
    };
    let good = of("good.log", "RC", |_| 1.0);
    let stalled = of("stalled.log", "RC", |size| if size >= 65536.0 { 0.0 } else { 1.0 });
    let dead = of("dead.log", "RC", |_| 0.0);
    let other = of("other.log", "UC", |_| 0.1);
    let impossible = of("impossible.log", "RC", |_| 1.3);
    let asked = |logs: &[&str]| {
        let more = ["--device", "connectx7", "--expect", "0.9", "--format", "json"];
        let answer = offpath(&[&["diagnose"], logs, &more].concat());
        let found: serde_json::Value = serde_json::from_str(&answer.stdout).expect("it is JSON");
        (answer.code, found)
    };
    let (code, found) = asked(&[&good]);
    assert_eq!((code, &found["verdict"]), (0, &"normal".into()), "{found}");
    const ASIDE: &str =
        "the row is not compared: no program of perftest over RC that is modelled writes such rows";
    let read = |file: &str| fs::read_to_string(file).expect("it was written");
    let joined = |name: &str, parts: &[&str]| {
        let file = folder.path().join(name);
        fs::write(&file, parts.concat()).expect("a log");
        file.display().to_string()
    };
    for (logs, why) in [
        (&[stalled.as_str()][..], "the row has a rate of 0: the run carried nothing"),
        (&[&good, &dead], "the row has a rate of 0: the run carried nothing"),
        (&[&good, &other], ASIDE),
        // One file of both is no better than two.
        (&[&joined("both.log", &[&read(&good), &read(&other)])], ASIDE),
        (
            &[&joined("hung.log", &[&read(&good), &head("RC")])],
            "a run of perftest begins here and no row of it follows",
        ),
        (&[&joined("killed.log", &[&read(&good), "Killed\n"])], "the run failed: `Killed`"),
    ] {
        let (code, found) = asked(logs);
        assert_eq!((code, &found["verdict"]), (1, &"incomplete".into()), "{logs:?}: {found}");
        let told = found["failed"][0]["why"].as_str().expect("it is told");
        assert!(told.starts_with(why), "{logs:?}: {found}");
    }
    // Nor are rows that their own head does not allow.
    let text = read(&good).replace("TX depth        : 128", "TX depth        : 1");
    let (code, found) = asked(&[&joined("other-head.log", &[&text])]);
    assert_eq!((code, &found["verdict"]), (1, &"contradictory".into()), "{found}");
    check(&found, &schema("diagnose.json"), "contradictory");
    let (code, found) = asked(&[&impossible]);
    assert_eq!(code, 1, "{found}");
    let shapes = found["shapes"].as_array().expect("a list");
    assert!(shapes.iter().any(|shape| shape["name"] == "above-line-rate"), "{found}");
    // Nor what nobody reads below the rows, loopback, a command of another run, and what is far above what is expected.
    let ports = |state: &str| {
        let file = folder.path().join("ibv_devinfo.txt");
        let text =
            format!("hca_id:\tmlx5_0\n\tphys_port_cnt:\t\t1\n\t\tport:\t1\n\t\t\tstate:\t\t\t{state}\n");
        fs::write(&file, text).expect("a file");
        file.display().to_string()
    };
    let with = |log: &str, more: &[&str]| {
        let asked = ["diagnose", log, "--device", "connectx7", "--expect", "0.9"];
        let found = offpath(&[&asked[..], more, &["--format", "json"]].concat());
        let answer: serde_json::Value = serde_json::from_str(&found.stdout).expect("it is JSON");
        check(&answer, &schema("diagnose.json"), log);
        let reasons = answer["not_accepted"].as_array().expect("a list").clone();
        assert_eq!(found.code == 1, !reasons.is_empty(), "{reasons:?}");
        let text = crate::common::unbroken(&offpath(&[&asked[..], more].concat()).stdout);
        assert_eq!(text.matches("NOT ACCEPTED: ").count(), reasons.len(), "{text}");
        reasons.iter().map(|reason| reason.as_str().expect("a sentence").to_string()).collect::<Vec<_>>()
    };
    let rows = read(&good);
    let of = |name: &str, parts: &[&str], more: &[&str]| with(&joined(name, parts), more);
    let none: [&str; 0] = [];
    assert_eq!(of("noted.log", &[&rows, "# node 2\nsecond run:\n", &rows], &[]), none);
    assert_eq!(of("before.log", &["it begins now\n", &rows], &[]), none);
    // Above the first row a banner is one, and what failed there failed.
    let banner = "Welcome to node2\nThere were 3 failed login attempts since the last successful login.\n\
                  System load: 0.08  Processes: 300\nMem: 263780000 12000 250000 100 1024 251000\n# an attempt that failed\n";
    assert_eq!(of("banner.log", &[banner, &rows], &[]), none);
    let prefixed: String = rows.lines().map(|line| format!("Nov 30 11:54:01 {line}\n")).collect();
    for above in [
        "Couldn't connect to server:18515\n",
        "node1: Unable to open file descriptor for socket connection\n",
        " IB device mlx5_1 not found\n",
        "bash: ib_read_bw: command not found\n",
        "Segmentation fault (core dumped)\n",
        "slurmstepd: error: *** STEP 7.0 CANCELLED ***\n",
        "[node1]  65536      1000             92.31              92.30             0.176048\n",
        prefixed.as_str(),
    ] {
        let found = of("above.log", &[above, &rows], &[]);
        assert!(
            found.len() == 1 && found[0].contains("not measured or not compared: "),
            "{above}: {found:?}"
        );
        assert!(found[0].contains("above.log:"), "{above}: {found:?}");
    }
    let after = rows.lines().count() + 1;
    let found = of("unread.log", &[&rows, "Connection to node2 closed.\n"], &[]);
    assert!(found.len() == 1 && found[0].contains(&format!("unread.log:{after}: ")), "{found:?}");
    let found = of("script.log", &[&rows, "node2 | FAILED | rc=124 >>\n"], &[]);
    assert!(found[0].contains(&format!("script.log:{after}")), "{found:?}");
    for command in ["ib_write_bw localhost", "ib_read_bw 10.0.0.2"] {
        let found = of("command.log", &[&format!("$ {command}\n"), &rows], &[]);
        assert!(found[0].contains("no row could be compared"), "{command}: {found:?}");
    }
    let whole = rows.replace("-----\n", &format!("{}\n", "-".repeat(87)));
    let cut: String =
        whole.lines().filter(|line| !line.starts_with(" 8388608 ")).map(|line| format!("{line}\n")).collect();
    assert_eq!(of("all.log", &["$ ib_write_bw -a 10.0.0.2\n", &whole], &[]), none);
    let found = of("cut.log", &["$ ib_write_bw -a 10.0.0.2\n", &cut], &[]);
    assert!(found.len() == 1 && found[0].contains("not measured or not compared"), "{found:?}");
    assert_eq!(with(&good, &["--collection", &ports("PORT_ACTIVE (4)")]), none);
    let found = with(&good, &["--collection", &ports("PORT_DOWN (1)")]);
    assert!(found.len() == 1 && found[0].contains("port 1 of `mlx5_0` is down"), "{found:?}");
}

/// Rows of a suite on a system, a log for each program.
fn suite_of(system: &System) -> Vec<String> {
    let bench = ToolBench::new(system, "client-host").expect("a path");
    let rows = |name: &str, title: &str, columns: &str| {
        let program = ToolProgram::named(name).expect("it is one of perftest's");
        let is_latency = program.kind == RunKind::Latency;
        let ruler = "-".repeat(87);
        let mut text = format!(
            "{ruler}\n                    {title} Test\n Number of qps   : 1\n Connection type : RC\n TX depth        : 128\n CQ Moderation   : \
             100\n Mtu             : {}[B]\n Link type       : IB\n{ruler}\n {columns}\n",
            system.network.mtu.get()
        );
        for power in (1..=19).step_by(3) {
            let mut run = program.run(Bytes::new(1 << power));
            run.cq_moderation = if is_latency { 1 } else { 100 };
            let expected = bench.expect(&run).expect("it is modelled");
            let (size, us) = (run.payload.get(), expected.latency.as_us());
            let (mib, rate) = (expected.mib_per_s(), expected.rate_per_s / 1e6);
            text += &match is_latency {
                true => format!(" {size} 1000 {us:.2} {us:.2} {us:.2} {us:.2} 0.01 {us:.2} {us:.2}\n"),
                false => format!(" {size} 5000 {mib:.2} {mib:.2} {rate:.6}\n"),
            };
        }
        format!("{text}{ruler}\n")
    };
    let bandwidth = "#bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]";
    let latency = "#bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   \
                   99.9% percentile[usec]";
    vec![
        rows("ib_read_bw", "RDMA_Read BW", bandwidth),
        rows("ib_write_bw", "RDMA_Write BW", bandwidth),
        rows("ib_read_lat", "RDMA_Read Latency", latency),
    ]
}

/// A healthy card whose numbers lie anywhere within what its profile leaves open is called neither low nor high, but for what intervals
/// of 95% leave out.
#[test]
fn a_healthy_card_that_is_not_known_is_called_neither_low_nor_high() {
    let folder = tempfile::tempdir().expect("a folder");
    let request = SystemRequest { device: "connectx7", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("it ships");
    let (mut verdicts, mut off) = (BTreeMap::<&str, u32>::new(), 0);
    for seed in 1..=12 {
        let mut draws = Seed::new(seed).generator();
        // A card has one number for both machines.
        let mut places: BTreeMap<(&str, &str), f64> = BTreeMap::new();
        let mut drawn = Vec::new();
        for (name, number) in &system.numbers {
            let Some((low, high)) = number.low.zip(number.high) else { continue };
            let at = places.entry((&number.file, &number.key)).or_insert_with(|| unit(&mut draws));
            drawn.push((name.as_str(), between(number.value, low, high, *at)));
        }
        let card = system.with_all(drawn).expect("it is a system");
        let mut logs = Vec::new();
        for (place, text) in suite_of(&card).into_iter().enumerate() {
            let file = folder.path().join(format!("{seed}-{place}.log"));
            fs::write(&file, text).expect("a log");
            logs.push(file);
        }
        let device = "connectx7".to_string();
        let found = diagnose(&DiagnoseRequest { logs, device, ..DiagnoseRequest::default() })
            .expect("it is compared");
        *verdicts.entry(found.verdict).or_default() += 1;
        off += u32::from(found.off_rows > 3);
    }
    println!("{verdicts:?}");
    let alarms: u32 =
        ["low", "high", "contradictory"].iter().filter_map(|verdict| verdicts.get(verdict)).sum();
    assert!(alarms <= 1 && off >= 6, "{verdicts:?}, {off} with rows that are off");
}

/// Rows of a sweep have what they share above them, and a line each on a page of 100 columns; rows of several logs say which.
#[test]
fn a_row_is_a_line_and_says_its_log() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("b")).expect("a folder");
    let rule = "-".repeat(87);
    let latency = |us: f64| {
        format!(
            "{rule}\n                    RDMA_Write Latency Test\n Number of qps   : 1\t\tTransport type : IB\n Connection type : RC\t\t\
             Using SRQ      : OFF\n TX depth        : 1\n Mtu             : 4096[B]\n Link type       : IB\n Max inline data : 220[B]\n{rule}\n \
             #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n \
             64 1000 {:.2} {:.2} {us:.2} {us:.2} 0.02 {:.2} {:.2}\n{rule}\n",
            us * 0.9,
            us * 2.0,
            us * 1.1,
            us * 1.2
        )
    };
    fs::write(path("rows.log"), DEPTH_ONE).expect("a log");
    fs::write(path("a.log"), latency(1.1)).expect("a log");
    fs::write(path("b/a.log"), latency(1.2)).expect("a log");
    let of = |logs: &[&str]| {
        let logs: Vec<String> = logs.iter().map(|name| path(name)).collect();
        let logs: Vec<&str> = logs.iter().map(String::as_str).collect();
        let found = in_columns(&[&["diagnose"], &logs[..], &["--device", "connectx7"]].concat(), Some("100"));
        let (_, rows) = found.stdout.split_once("Measured and expected\n").expect("a table");
        let lines = rows.lines().take_while(|line| !line.contains("The interval is of the share"));
        lines.map(str::to_string).collect::<Vec<_>>()
    };
    let sweep = of(&["rows.log"]);
    assert!(
        sweep[0].contains("bandwidth, 1 queue pair of depth 128, `")
            && sweep[1].starts_with(" line  payload"),
        "{sweep:#?}"
    );
    assert!(sweep.iter().all(|line| line.chars().count() <= 100), "{sweep:#?}");
    let is_row = |line: &&String| {
        line.contains("% to ") && line.trim_start().starts_with(|c: char| c.is_ascii_digit())
    };
    assert_eq!(sweep.iter().filter(is_row).count(), 5, "{sweep:#?}");
    let several = of(&["a.log", "b/a.log"]);
    assert!(several[0].starts_with("write latency, `latency_ns_median`"), "{several:#?}");
    for log in [" a.log:", " b/a.log:"] {
        assert_eq!(several.iter().filter(|line| line.starts_with(log)).count(), 1, "{log}: {several:#?}");
    }
}

/// An acceptance test says the same of a run, whether its log is text, JSON an entry a line or on one line, or both sides of it.
#[test]
fn an_acceptance_test_says_one_thing_of_a_run_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let expected = json(&["path", "connectx7", "--as", "ib_read_bw", "-s", "65536", "--mtu", "4KiB"]);
    let rate = expected["rows"][0]["operations_per_s_mean"].as_f64().expect("a rate");
    let pretty = |times: f64| {
        let (rate, gbit) = (rate * times / 1e6, rate * times * 65536.0 * 8.0 / 1e9);
        format!(
            "{{\n\"test_info\": {{\n\"test\": \"RDMA_Read_BW_Test\",\n\"Dual_port\": \"OFF\",\n\"Device\": \"mlx5_0\",\n\"Number_of_qps\": 1,\n\
             \"Transport_type\": \"IB\",\n\"Connection_type\": \"RC\",\n\"TX_depth\": 128,\n\"CQ_Moderation\": 1,\n\"Outstand_reads\": 16,\n\
             \"Mtu\": 4096,\n\"Link_type\": \"IB\"\n}},\n\"results\": {{\n\"MsgSize\": 65536,\n\"n_iterations\": 1000,\n\"BW_peak\": {:.2},\n\
             \"BW_average\": {gbit:.2},\n\"MsgRate\": {rate:.6}\n}}\n}}\n",
            gbit * 1.01
        )
    };
    let on_a_line = |times: f64| pretty(times).split_whitespace().collect::<Vec<_>>().join(" ") + "\n";
    let list = |between: &str, of: &dyn Fn(f64) -> String, all: [f64; 2]| {
        format!("[{between}{}{between}]\n", all.map(|times| of(times).trim_end().to_string()).join(","))
    };
    for (all, code, reaching) in [([1.0, 0.99], 0, 2), ([1.0, 0.5], 1, 1)] {
        let forms = [
            pretty(all[0]) + &pretty(all[1]),
            on_a_line(all[0]) + &on_a_line(all[1]),
            list("\n", &pretty, all),
            list("", &on_a_line, all),
        ];
        for (place, form) in forms.iter().enumerate() {
            let file = folder.path().join(format!("{place}-{code}.json")).display().to_string();
            fs::write(&file, form).expect("a log");
            let asked = ["diagnose", &file, "--device", "connectx7", "--expect", "0.9", "--format", "json"];
            let found = offpath(&asked);
            let answer: serde_json::Value = serde_json::from_str(&found.stdout).expect("it is JSON");
            check(&answer, &schema("diagnose.json"), "diagnose");
            let rows = answer["points"].as_array().map(Vec::len);
            assert_eq!(
                (found.code, rows, &answer["reaching_rows"]),
                (code, Some(2), &reaching.into()),
                "{form}: {answer}"
            );
            assert_eq!(answer["failed"].as_array().map(Vec::len), Some(0), "{form}: {answer}");
        }
    }
}
