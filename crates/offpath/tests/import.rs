//! `offpath import` as its users see it.

use crate::common::{answer, check, json, offpath, schema, unbroken, wide_answer};
use std::fs;
use std::path::Path;

/// A log of the reader's own tests.
fn log(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../logs/tests/data").join(name).display().to_string()
}

/// An answer without the folder that the sources lie in.
fn without_folder(text: &str) -> String {
    text.replace(&log(""), "")
}

#[test]
fn tables_show_figures_with_their_conditions() {
    let text = wide_answer(&["import", &log("write_bw.log"), &log("read_lat.log"), &log("fio.json")]);
    insta::assert_snapshot!("import", without_folder(&text));
    let text = wide_answer(&["import", &log("perftest.json"), "--format", "markdown"]);
    insta::assert_snapshot!("import_markdown", without_folder(&text));
}

#[test]
fn json_follows_its_schema() {
    let logs =
        ["write_bw.log", "read_lat.log", "perftest.json", "dma.dat", "stress.yaml", "stress.log", "fio.json"];
    let more = ["sysbench.log", "osu.log", "nccl.log", "counters.txt"];
    for name in logs.iter().chain(&more) {
        let found = json(&["import", &log(name)]);
        check(&found, &schema("import.json"), name);
        assert_eq!(found["files"][0]["unknown_lines"], 0, "{name}");
        assert!(found["measurements"].as_array().is_some_and(|all| !all.is_empty()), "{name}");
    }
    let found = json(&["import", &log("write_bw.log")]);
    let last = found["measurements"].as_array().and_then(|all| all.last()).expect("there is one");
    assert_eq!(last["metric"], "operations_per_s_mean");
    assert_eq!(last["value"].as_f64(), Some(176_048.0));
    assert_eq!((last["line"].as_u64(), last["payload_bytes"].as_u64()), (Some(27), Some(65_536)));
    assert!(last["rx_depth"].is_null(), "the log does not say it");
    assert_eq!(last["more"]["relaxed_ordering"], true);
}

/// CSV has the figures of JSON, a row for each.
#[test]
fn rows_have_what_json_has() {
    let logs = [log("write_bw.log"), log("read_lat.log")];
    let arguments = ["import", &logs[0], &logs[1]];
    let all = json(&arguments);
    let found = offpath(&[&arguments[..], &["--format", "csv"]].concat());
    assert_eq!(found.code, 0, "{}", found.stderr);
    let text = found.stdout;
    let mut reader = csv::Reader::from_reader(text.as_bytes());
    let header = reader.headers().expect("it has a header").clone();
    let rows: Vec<csv::StringRecord> = reader.records().map(|row| row.expect("it is CSV")).collect();
    let figures = all["measurements"].as_array().expect("a list");
    assert_eq!(rows.len(), figures.len());
    let keys: Vec<&String> = figures[0].as_object().expect("an object").keys().collect();
    let columns: std::collections::BTreeSet<&str> = header.iter().collect();
    assert!(columns.iter().eq(&keys), "columns are the keys of JSON: {columns:?} and {keys:?}");
    for (row, figure) in rows.iter().zip(figures) {
        for (name, cell) in header.iter().zip(row).filter(|(name, _)| !["cautions", "more"].contains(name)) {
            match &figure[name] {
                serde_json::Value::Null => assert_eq!(cell, "", "{name}"),
                serde_json::Value::String(text) => assert_eq!(cell, text, "{name}"),
                number => {
                    let (one, other) =
                        (number.as_f64().expect("a number"), cell.parse::<f64>().expect("a number"));
                    assert!((one - other).abs() <= 1e-6 * one.abs(), "{name}: {one} and {other}");
                }
            }
        }
    }
}

/// A page shows what a screen can take, and says how much more there is; JSON has all, remarks beyond what is kept among it.
#[test]
fn a_long_log_is_counted_beyond_a_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("long.log");
    let mut text =
        String::from(" #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n");
    for row in 0..300 {
        text += " 65536      5000             92.40              92.30                0.176048\n";
        text += &"what is this?\n".repeat(if row == 299 { 11_000 } else { 0 });
    }
    // One size goes on and on, and then each row is a table of its own kind.
    for row in 0..6_000 {
        text += match row % 2 {
            0 => " 2             2631578            1.90        526315.79\n",
            _ => " 65536      5000             92.40              92.30                0.176048\n",
        };
    }
    fs::write(&file, text).expect("written");
    let file = file.to_str().expect("a path");
    let text = wide_answer(&["import", file]);
    assert!(
        text.contains("and 100 more, whose conditions may be others: `--format json`"),
        "{}",
        &text[..2000]
    );
    assert!(text.contains("and 10800 more: `--format json`"), "remarks");
    assert!(text.contains("and 1200 more rows of other tables"), "{}", &text[text.len() - 3000..]);
    let found = json(&["import", file]);
    check(&found, &schema("import.json"), "long");
    let count = |key: &str| found[key].as_array().map(Vec::len);
    assert_eq!(
        (count("measurements"), count("remarks")),
        (Some(300 * 3 + 3_000 * 2 + 3_000 * 3), Some(11_000))
    );
    assert_eq!(found["files"][0]["unknown_lines"], 11_000);
}

/// What gives no figure is told, on standard error where rows have no place for it.
#[test]
fn unknown_lines_are_told_with_their_number() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("some.log");
    let own = fs::read_to_string(log("write_bw.log")).expect("it is there");
    fs::write(&file, format!("{own}what is this?\n Failed status 12: wr_id 0 syndrom 0x81\n"))
        .expect("written");
    let file = file.to_str().expect("a path");
    let text = wide_answer(&["import", file]);
    let said = "some.log:29: unknown: no known tool prints such a line: `what is this?`";
    assert!(text.contains(said), "{text}");
    let rows = offpath(&["import", file, "--format", "csv"]);
    assert_eq!(rows.code, 0, "{}", rows.stderr);
    assert!(rows.stderr.contains(said) && !rows.stdout.contains("what is this?"), "{}", rows.stderr);
    let found = json(&["import", file]);
    let remarks = found["remarks"].as_array().expect("a list");
    assert!(remarks.iter().any(|one| one["line"] == 29), "{remarks:?}");
    check(&found, &schema("import.json"), "import.json");
}

#[test]
fn a_log_without_figures_is_a_negative_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("prose.txt");
    fs::write(&file, "nothing is measured here\n").expect("written");
    let file = file.to_str().expect("a path");
    for format in ["table", "json", "csv"] {
        let found = offpath(&["import", file, "--format", format]);
        assert_eq!(found.code, 1, "{format}: {}", found.stderr);
        let said = found.stdout + &found.stderr;
        assert!(said.contains("nothing is measured here"), "{format}: {said}");
    }
}

#[test]
fn standard_input_is_a_log() {
    let output = assert_cmd::cargo::cargo_bin_cmd!("offpath")
        .args(["import", "-", "--format", "csv"])
        .write_stdin(fs::read(log("dma.dat")).expect("it is there"))
        .output()
        .expect("the program starts");
    let text = String::from_utf8(output.stdout).expect("text is UTF-8");
    assert!(output.status.success());
    assert!(
        text.lines()
            .nth(1)
            .is_some_and(|row| row.starts_with("-,2,1,pcie-bench,bandwidth_gbit_per_s_mean,32,")),
        "{text}"
    );
}

#[test]
fn wrong_input_is_refused_with_a_next_step() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().to_str().expect("a path");
    let known = log("dma.dat");
    let packed = Path::new(folder).join("a.log.gz");
    fs::write(&packed, b"\x1f\x8b\x08\x00rest").expect("written");
    let packed = packed.to_str().expect("a path");
    let cases: [(&[&str], &[&str]); 8] = [
        (&["import", packed], &["is compressed by gzip", "`zcat`"]),
        (&["diagnose", packed, "--device", "connectx7"], &["is compressed by gzip"]),
        (&["import"], &["<LOG>"]),
        (&["import", &known, "no-such.log"], &["`no-such.log` cannot be read", "check the name"]),
        (&["import", folder], &["is a folder", "name its files"]),
        (&["import", "-", "-"], &["2 times", "name `-` once"]),
        (&["import", &known, "--set", "soc.cores=4"], &["--set has no effect on `offpath import`"]),
        (&["path", "bluefield2", "--format", "csv"], &["`offpath import` alone", "table, json or markdown"]),
    ];
    for (arguments, words) in cases {
        let refused = offpath(arguments);
        assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{arguments:?}");
        for word in words {
            assert!(refused.stderr.contains(word), "{arguments:?} lacks {word}: {}", refused.stderr);
        }
    }
    let help = answer(&["import", "--help"]);
    assert!(help.contains("Examples:") && help.matches("offpath import").count() >= 3, "{help}");
}

/// The page has every caution and span that there is, in the words of the code.
#[test]
fn the_page_has_every_caution_and_span() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/import.md");
    let page = fs::read_to_string(path).expect("the page is there");
    for caution in offpath::logs::LogCaution::ALL {
        let row = format!("| `{}` | {} |", caution.name(), caution.meaning());
        assert!(page.contains(&row), "the page lacks: {row}");
    }
    use offpath::logs::LatencySpan as Span;
    for span in [
        Span::HalfRoundTrip,
        Span::WholeOperation,
        Span::Submission,
        Span::Completion,
        Span::Transaction,
        Span::TransactionWithOverhead,
        Span::Collective,
    ] {
        assert!(page.contains(&format!("`{}`", span.name())), "the page lacks `{}`", span.name());
    }
}

/// A run that failed after rows that are as expected is no passed test: what failed is named, and what it was to measure is not
/// judged. Nor is a log without a figure.
#[test]
fn a_run_that_failed_is_not_passed() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("failed-run");
    fs::create_dir_all(&folder).expect("a folder");
    // The sizes of that log jump, as those of a run that lost rows do, and its command asks for all.
    let jumps = fs::read_to_string(log("write_bw.log")).expect("a log");
    let (head, _) = jumps.split_once(" 4096       10000").expect("its second row");
    let rows = " 4          10000           0.115384            0.115015            3.594215\n \
                8          10000           0.230768            0.230030            3.594215\n";
    let whole = format!("{}{rows}{}\n", head.replacen(" -a", "", 1), "-".repeat(87));
    let own = folder.join("whole.log");
    fs::write(&own, &whole).expect("it is written");
    let own = own.display().to_string();
    let cut = folder.join("cut.log");
    let failure = " Completion with error at client\n Failed status 12: wr_id 0 syndrom 0x81\n";
    fs::write(&cut, format!("{}\n{failure}", whole.trim_end_matches(['-', '\n']))).expect("it is written");
    let empty = folder.join("empty.log");
    fs::write(&empty, "Couldn't connect to server:18515\n").expect("it is written");
    let (cut, empty) = (cut.display().to_string(), empty.display().to_string());
    let of = |logs: &[&str]| {
        let asked = ["--device", "connectx7", "--expect", "0.01"];
        let found = offpath(&[&["diagnose"], logs, &asked].concat());
        let answer = offpath(&[&["diagnose"], logs, &asked, &["--format", "json"]].concat());
        let answer: serde_json::Value = serde_json::from_str(&answer.stdout).expect("it is JSON");
        check(&answer, &schema("diagnose.json"), "diagnose");
        let names: Vec<String> = answer["failed"]
            .as_array()
            .expect("a list")
            .iter()
            .map(|one| one["file"].as_str().expect("a file").to_string())
            .collect();
        (found.code, found.stdout, names)
    };
    let (code, _, failed) = of(&[&own]);
    assert_eq!((code, failed.len()), (0, 0));
    let (code, _, failed) = of(&[&log("write_bw.log")]);
    assert_eq!((code, failed.is_empty()), (1, false), "its sizes jump");
    let (code, text, failed) = of(&[&cut]);
    // What the tool says, and that its table ends without its last line.
    assert_eq!((code, &failed[..]), (1, &[cut.clone(), cut.clone()][..]));
    assert!(text.contains("FAILED: ") && text.contains("Completion with error"), "{text}");
    let (code, text, failed) = of(&[&own, &empty]);
    assert_eq!((code, &failed[..]), (1, &[empty.clone()][..]));
    assert!(text.contains("no line that gives a figure"), "{text}");
}

/// A benchmark is taken to run between two machines with the same card: where the testbed that is named has another one at the
/// other end, whose port is slower, that stands beside what is predicted.
#[test]
fn ends_of_unlike_ports_are_said() {
    let said =
        "taken to run from `client`, whose port carries 100 Gbit/s, to `host`, whose port carries 200 Gbit/s";
    let of = |more: &[&str]| {
        wide_answer(&[&["path", "connectx6", "--as", "ib_write_bw", "--size", "64KiB"], more].concat())
    };
    assert!(of(&["--testbed", "rack"]).contains(said), "{}", of(&["--testbed", "rack"]));
    assert!(!of(&[]).contains("taken to run from"));
    let text = wide_answer(&["diagnose", &log("write_bw.log"), "--device", "connectx6", "--testbed", "rack"]);
    let place = text.find(said).expect("it is said");
    assert!(place < text.find("Measured and expected").expect("a table"), "{text}");
}

/// What a collection finds odd is said whatever the rows look like: the profile may have been made of the same machine.
#[test]
fn an_odd_machine_is_said_beside_rows_that_are_normal() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("odd-machine");
    fs::create_dir_all(&folder).expect("a folder");
    let lspci = folder.join("lspci.txt");
    let text = "3b:00.0 Ethernet controller: Mellanox Technologies MT2910 Family [ConnectX-7]\n\
                \tLnkCap:\tPort #0, Speed 32GT/s, Width x16, ASPM not supported\n\
                \tLnkSta:\tSpeed 32GT/s, Width x8 (downgraded)\n\
                \tDevCtl:\tCorrErr+\n\t\tMaxPayload 256 bytes, MaxReadReq 512 bytes\n";
    fs::write(&lspci, text).expect("it is written");
    let lspci = lspci.display().to_string();
    let asked = ["diagnose", &log("write_bw.log"), "--device", "connectx7", "--collection", &lspci];
    let found = offpath(&asked);
    assert!(
        found.stdout.contains("the collection says: ") && found.stdout.contains("x8"),
        "{}{}",
        found.stdout,
        found.stderr
    );
}

/// Where a machine stands: platforms of a summary, and a file that is a machine of its own.
#[test]
fn a_machine_is_ranked_among_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("a file");
        path.display().to_string()
    };
    let summary = file(
        "summary",
        "PLATFORM\taccess\tcpu\tdir\n\nbig\t400/0/4\t100/0/1\t8/0/1\nold\t200/0/2\t50/0/1\tnan/nan/nan\n\
         board\t100/0/1\t100/0/1\t2/0/1\n",
    );
    let of = |arguments: &[&str]| {
        let found = json(&[&["import"], arguments].concat());
        check(&found, &schema("import-rank.json"), "import --rank");
        found
    };
    let found = of(&[&summary, "--rank", "old"]);
    let ranks: Vec<_> =
        found["works"].as_array().expect("a list").iter().map(|one| (&one["rank"], &one["of"])).collect();
    let number = |of: u64| serde_json::Value::from(of);
    assert_eq!(ranks, [(&number(2), &number(3)), (&number(3), &number(3))], "it never ran dir");
    assert_eq!(
        (&found["works"][0]["share_of_fastest"], &found["works"][0]["fastest"]),
        (&0.5.into(), &"big".into())
    );
    // Those that are as fast share a rank.
    assert_eq!(of(&[&summary, "--rank", "board"])["works"][1]["rank"], 1);
    // Beside the board it is twice as fast in the one, and half as fast in the other.
    let board = &found["others"].as_array().expect("a list")[1];
    assert_eq!(
        (&board["machine"], &board["works"], &board["faster"]),
        (&"board".into(), &number(2), &number(1))
    );
    assert_eq!(board["median_share"], 1.25);
    // A file of its own, whose instances have figures beside those of all.
    let yaml = log("stress.yaml");
    let found = of(&[&summary, &yaml, "--rank", &yaml]);
    let cpu = &found["works"][0];
    assert_eq!(
        (&cpu["work"], &cpu["rank"], &cpu["bogo_ops_per_s"]),
        (&"cpu".into(), &number(1), &108.719.into())
    );
    for (arguments, said) in [
        (vec![&*summary, "--rank", "bord"], "did you mean `board`?"),
        (vec![&*yaml, "--rank", &yaml], "no other machine of the logs ran what"),
        (vec![&*summary, "--rank", "old", "--format", "csv"], "`--rank` prints no CSV"),
    ] {
        let refused = offpath(&[&["import"][..], &arguments].concat());
        assert!(refused.code == 2 && refused.stderr.contains(said), "{arguments:?}: {}", refused.stderr);
    }
    let text = wide_answer(&["import", &summary, "--rank", "big"]);
    assert!(text.contains("big: 3 kinds of work of stress-ng, among 3 machines"), "{text}");
}

/// A reader that has seen enough ends the program, whatever is still to be read.
#[cfg(unix)]
#[test]
fn rows_end_when_nobody_reads_them() {
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    let mut running = Command::new(env!("CARGO_BIN_EXE_offpath"));
    let running = running.args(["import", "-", "--format", "csv"]).stdin(Stdio::piped());
    let mut running = running.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut log = running.stdin.take().expect("it was asked for");
    let row = " 65536      1000             92.31              92.30             0.176048\n".repeat(100);
    // Its first rows, and then nobody reads; the log goes on until nobody reads that either.
    let mut rows = BufReader::new(running.stdout.take().expect("it was asked for"));
    let writer = std::thread::spawn(move || {
        (0..1_000_000).take_while(|_| log.write_all(row.as_bytes()).is_ok()).count()
    });
    let mut first = String::new();
    rows.read_line(&mut first).expect("a header");
    assert!(first.starts_with("file,line"), "{first}");
    drop(rows);
    let ended = running.wait_with_output().expect("it ends");
    assert_eq!((ended.status.code(), ended.stderr.len()), (Some(0), 0), "{ended:?}");
    assert!(writer.join().expect("it writes") < 100_000, "it is not read to its end");
}

/// What became of the lines, and whether there is a figure, are one truth.
#[test]
fn a_row_whose_figures_are_withheld_is_no_line_with_figures() {
    let folder = tempfile::tempdir().expect("a folder");
    let log = folder.path().join("huge.log");
    let row = " 65536 5000 99999999999999.99 99999999999999.99 99999999999999.999999\n";
    let head = " #bytes     #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n";
    fs::write(&log, format!("{head}{row}{row}")).expect("a log");
    let found = offpath(&["import", &log.display().to_string()]);
    assert_eq!(found.code, 1, "{}", found.stderr);
    let text = found.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("3 lines, 0 with figures, 3 known without"), "{text}");
    assert!(text.contains("No line has a figure"), "{text}");
}

/// A named pipe that nobody writes to would be waited for without end: it is refused by its name, wherever a whole file is read.
/// What a shell opened for the program is read.
#[test]
fn named_pipes_are_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let pipe = |name: &str| {
        let pipe = folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().expect("there is mkfifo");
        assert!(made.success());
        pipe.display().to_string()
    };
    let (one, card, design) = (pipe("one.log"), pipe("card.toml"), pipe("design.toml"));
    let written = |name: &str| folder.path().join(name).display().to_string();
    let run = |arguments: &[&str]| {
        let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_offpath"))
            .args(arguments)
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::piped())
            .spawn()
            .expect("the program starts");
        let begun = std::time::Instant::now();
        while child.try_wait().expect("it is ours").is_none() {
            if begun.elapsed().as_secs() > 60 {
                child.kill().expect("it is ours");
                panic!("{arguments:?} waits");
            }
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        child.wait_with_output().expect("it has ended")
    };
    for arguments in [
        &["import", &one][..],
        &["import", &log("write_bw.log"), &one],
        &["calibrate", &one, "--base", "connectx7"],
        &["diagnose", &one, "--device", "connectx7"],
        &["diagnose", &log("write_bw.log"), "--device", "connectx7", "--collection", &one],
        &["watch", "--expect", &one],
        &["collect", "--from", &one],
        &["new", "device", "own", "--from", &one, "--out", &written("own.toml")],
        &["export", "table", &one, "-o", &written("rows.csv")],
        &["measure", "twin:connectx7", "--suggest", &design],
        &["measure", &format!("twin:{card}"), "--list"],
        &["plan", &design],
        &["device", "show", &card],
    ] {
        let found = run(arguments);
        let said = unbroken(&String::from_utf8(found.stderr).expect("it is text"));
        assert_eq!(found.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(
            said.contains("named pipe") && said.contains("write what it gives to a file"),
            "{arguments:?}: {said}"
        );
    }
    let text = fs::read(log("write_bw.log")).expect("it is there");
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_offpath"))
        .args(["import", "/dev/stdin", "--format", "csv"])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the program starts");
    std::io::Write::write_all(&mut child.stdin.take().expect("it is a pipe"), &text).expect("it is read");
    let found = child.wait_with_output().expect("it ends");
    assert!(found.status.success() && found.stdout.len() > 100, "{found:?}");
}

/// A prediction and an archive are no logs, and each says what it is and who reads it.
#[test]
fn what_is_no_log_says_what_it_is() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (name, more) in [("text", &[][..]), ("json", &["--format", "json"])] {
        let predicted =
            offpath(&[&["path", "connectx7", "--as", "ib_read_bw", "-s", "65536"][..], more].concat());
        fs::write(path(name), &predicted.stdout).expect("written");
        let found = offpath(&["import", &path(name)]);
        assert_eq!(found.code, 1, "{name}: {}", found.stdout);
        assert!(
            unbroken(&found.stdout).contains("and no measurement: no figure of it is read"),
            "{name}: {}",
            found.stdout
        );
        let asked = ["diagnose", &path(name), "--device", "connectx7", "--expect", "0.9"];
        assert_eq!(offpath(&asked).code, 1, "{name}");
    }
    let mut archive = vec![0; 1024];
    archive[257..262].copy_from_slice(b"ustar");
    fs::write(path("machine.tar"), archive).expect("written");
    let found = offpath(&["import", &path("machine.tar")]);
    assert_eq!(found.code, 2, "{}", found.stdout);
    for words in ["is an archive, as `offpath collect` writes one", "`offpath new device NAME --from FILE`"] {
        assert!(unbroken(&found.stderr).contains(words), "{words}: {}", found.stderr);
    }
}
