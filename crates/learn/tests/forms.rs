//! One run says one thing, in whichever form its log has it and however often it stands there.

use offpath_learn::diagnose::{Diagnosis, LoggedFigures, diagnose, exactly};
use offpath_learn::{LeftAside, MeasuredPoint, PointCollector, ToolBench, ToolProgram};
use offpath_logs::{LogItem, LogReader};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::Bytes;
use std::fmt::Write;

/// A run by what perftest prints of it.
#[derive(Clone, Debug)]
struct Run {
    is_latency: bool,
    bytes: u64,
    iterations: u64,
    /// The figures behind size and iterations, by the keys of JSON.
    figures: Vec<(&'static str, String)>,
    /// What either end calls its queue pair, the requester's first; a log of JSON has none.
    ends: Option<[(u32, u32); 2]>,
}

fn system() -> System {
    let request = SystemRequest { device: "connectx7", ..SystemRequest::default() };
    Library::builtin().load(&request).unwrap_or_else(|error| panic!("{error:?}"))
}

/// What a card prints of a READ of so many bytes, `times` as fast as it is expected to be.
fn bandwidth(bytes: u64, times: f64) -> Run {
    let bench = ToolBench::new(&system(), "client-host").expect("a path");
    let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
    let mut run = program.run(Bytes::new(bytes));
    run.mtu = Some(Bytes::new(4096));
    let expected = bench.expect(&run).expect("it is modelled");
    let gbit = expected.gbit_per_s() * times;
    let figures = vec![
        ("BW_peak", format!("{:.2}", gbit * 1.01)),
        ("BW_average", format!("{gbit:.2}")),
        ("MsgRate", format!("{:.6}", gbit * 1e3 / 8.0 / bytes as f64)),
    ];
    Run { is_latency: false, bytes, iterations: 1000, figures, ends: None }
}

/// The same of a WRITE's latency; the mean is so many times the median.
fn latency(bytes: u64, times: f64, tail: f64) -> Run {
    let bench = ToolBench::new(&system(), "client-host").expect("a path");
    let program = ToolProgram::named("ib_write_lat").expect("it is one of perftest's");
    let mut run = program.run(Bytes::new(bytes));
    run.mtu = Some(Bytes::new(4096));
    let us = bench.expect(&run).expect("it is modelled").latency.as_us() * times;
    let of = |times: f64| format!("{:.2}", us * times);
    let figures = vec![
        ("t_min", of(0.97)),
        ("t_max", of(30.0 * tail)),
        ("t_typical", of(1.0)),
        ("t_avg", of(tail)),
        ("t_stdev", of(0.02)),
        ("percentile_99", of(1.1 * tail)),
        ("percentile_99.9", of(1.5 * tail)),
    ];
    Run { is_latency: true, bytes, iterations: 1000, figures, ends: None }
}

impl Run {
    /// The head's fields, by their titles in text and their keys in JSON.
    fn head(&self) -> Vec<(&'static str, &'static str, &'static str)> {
        let mut head = vec![
            ("Dual-port", "Dual_port", "OFF"),
            ("Device", "Device", "mlx5_0"),
            ("Number of qps", "Number_of_qps", "1"),
            ("Transport type", "Transport_type", "IB"),
            ("Connection type", "Connection_type", "RC"),
            ("Using SRQ", "Using_SRQ", "OFF"),
            ("TX depth", "TX_depth", if self.is_latency { "1" } else { "128" }),
        ];
        if !self.is_latency {
            head.push(("CQ Moderation", "CQ_Moderation", "1"));
        }
        head.extend([("Mtu", "Mtu", "4096"), ("Link type", "Link_type", "IB")]);
        head.push(match self.is_latency {
            true => ("Max inline data", "Max_inline_data", "220"),
            false => ("Outstand reads", "Outstand_reads", "16"),
        });
        head
    }

    /// As the program prints it; of the responder without the depth, as it has none.
    fn text(&self, is_responder: bool) -> String {
        let rule = format!("{}\n", "-".repeat(87));
        let title = if self.is_latency { "RDMA_Write Latency Test" } else { "RDMA_Read BW Test" };
        let mut text =
            if is_responder { "* Waiting for client to connect... *\n".into() } else { String::new() };
        let _ = writeln!(text, "{rule}                    {title}");
        for (key, _, value) in self.head().into_iter().filter(|(key, ..)| *key != "TX depth" || !is_responder)
        {
            let unit = if ["Mtu", "Max inline data"].contains(&key) { "[B]" } else { "" };
            let _ = writeln!(text, " {key:<15} : {value}{unit}");
        }
        text += &rule;
        if let Some([requester, responder]) = self.ends {
            let (local, remote) = if is_responder { (responder, requester) } else { (requester, responder) };
            for (whose, (number, sequence)) in [("local", local), ("remote", remote)] {
                let _ = writeln!(text, " {whose} address: LID 0000 QPN {number:#06x} PSN {sequence:#08x}");
            }
            text += &rule;
        }
        text += match self.is_latency {
            true => {
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] \n"
            }
            false => " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n",
        };
        let cells: Vec<&str> = self.figures.iter().map(|(_, figure)| &**figure).collect();
        let _ = write!(text, " {} {} {}\n{rule}", self.bytes, self.iterations, cells.join(" "));
        text
    }

    /// As `--out_json` writes it, each key behind a separator.
    fn json(&self, between: &str) -> String {
        let test = if self.is_latency { "RDMA_Write_Latency_Test" } else { "RDMA_Read_BW_Test" };
        let pair = |key: &str, value: &str| match value.parse::<f64>() {
            Ok(_) => format!("\"{key}\": {value}"),
            Err(_) => format!("\"{key}\": \"{value}\""),
        };
        let join =
            |pairs: Vec<String>| format!("{{{between}{}{between}}}", pairs.join(&format!(",{between}")));
        let head = [pair("test", test)].into_iter();
        let head = head.chain(self.head().into_iter().map(|(_, key, value)| pair(key, value)));
        let size =
            [pair("MsgSize", &self.bytes.to_string()), pair("n_iterations", &self.iterations.to_string())];
        let results = size.into_iter().chain(self.figures.iter().map(|(key, figure)| pair(key, figure)));
        let parts = [("test_info", join(head.collect())), ("results", join(results.collect()))];
        join(parts.map(|(key, own)| format!("\"{key}\": {own}")).to_vec())
    }
}

type Logs = Vec<(String, String)>;

/// The runs in every form of a log: a file each and all in one.
fn forms(runs: &[Run]) -> Vec<(&'static str, Logs)> {
    let each = |of: &dyn Fn(&Run) -> String| -> Logs {
        runs.iter().enumerate().map(|(index, run)| (format!("{index}.log"), of(run))).collect()
    };
    let all = |text: String| vec![("all.log".to_string(), text)];
    let list = |between: &str, end: &str| {
        let each: Vec<String> = runs.iter().map(|run| run.json(between)).collect();
        format!("[{end}{}{end}]\n", each.join(&format!(",{end}")))
    };
    let behind = |of: &dyn Fn(&Run) -> String| runs.iter().map(of).collect::<String>();
    vec![
        ("text", each(&|run| run.text(false))),
        ("text in one file", all(behind(&|run| run.text(false)))),
        ("pretty JSON", each(&|run| run.json("\n") + "\n")),
        ("pretty JSON in one file", all(behind(&|run| run.json("\n") + "\n"))),
        ("JSON on a line", each(&|run| run.json(" ") + "\n")),
        ("JSON on a line in one file", all(behind(&|run| run.json(" ") + "\n"))),
        ("a list on one line", all(list(" ", ""))),
        ("a pretty list", all(list("\n", "\n"))),
        ("both sides", {
            let mut both = each(&|run| run.text(false));
            both.extend(
                runs.iter().enumerate().map(|(index, run)| (format!("server-{index}.log"), run.text(true))),
            );
            both
        }),
        ("the other side first", {
            let mut both: Logs = runs
                .iter()
                .enumerate()
                .map(|(index, run)| (format!("{index}.log"), run.text(true)))
                .collect();
            both.extend(
                runs.iter().enumerate().map(|(index, run)| (format!("client-{index}.log"), run.text(false))),
            );
            both
        }),
        ("a copy of each", {
            let mut twice = each(&|run| run.text(false));
            twice.extend(
                runs.iter().enumerate().map(|(index, run)| (format!("copy-{index}.log"), run.text(false))),
            );
            twice
        }),
        ("all twice in one file", all(behind(&|run| run.text(false)) + &behind(&|run| run.text(false)))),
        ("the same log named twice", {
            let once = all(behind(&|run| run.text(false)));
            [once.clone(), once].concat()
        }),
    ]
}

fn diagnosed(logs: &Logs) -> Diagnosis {
    let mut all = LoggedFigures::new("client-host");
    for (name, text) in logs {
        for item in LogReader::new(text.as_bytes()) {
            if let LogItem::Measurement(measurement) = item.expect("it is in memory") {
                all.add(name, &measurement);
            }
        }
    }
    diagnose(&system(), all, None, exactly).expect("it is compared")
}

fn collected(logs: &Logs) -> (Vec<MeasuredPoint>, Vec<LeftAside>) {
    let mut points = PointCollector::default();
    for (name, text) in logs {
        for item in LogReader::new(text.as_bytes()) {
            if let LogItem::Measurement(measurement) = item.expect("it is in memory") {
                points.take(name, &measurement);
            }
        }
    }
    points.finish()
}

/// What is said of some runs: the verdict, what is not compared, and the rows by what each is of.
type Said = (&'static str, Vec<(&'static str, String)>, usize, Vec<(String, String, f64)>);

fn said(found: &Diagnosis) -> Said {
    let mut rows: Vec<(String, String, f64)> =
        found.points.iter().map(|point| (point.run.clone(), point.metric.clone(), point.share)).collect();
    rows.sort_by(|one, other| one.0.cmp(&other.0).then(one.2.total_cmp(&other.2)));
    let shapes = found.shapes.iter().map(|shape| (shape.name, shape.what.clone())).collect();
    (found.verdict.name(), shapes, found.left_aside.len(), rows)
}

fn hold_to_one_another(runs: &[Run]) {
    let forms = forms(runs);
    let expected = said(&diagnosed(&forms[0].1));
    assert_eq!((expected.2, expected.3.len()), (0, runs.len()), "{expected:?}");
    let points = |logs: &Logs| {
        let (points, aside) = collected(logs);
        let own = points.into_iter().map(|point| (point.run, point.metric, point.measured.to_bits()));
        let mut own: Vec<_> = own.collect();
        own.sort();
        (own, aside)
    };
    let (measured, aside) = points(&forms[0].1);
    assert_eq!((measured.len(), aside.len()), (runs.len(), 0), "{aside:?}");
    for (form, logs) in &forms[1..] {
        let own = said(&diagnosed(logs));
        assert_eq!((own.0, own.2, &own.3), (expected.0, expected.2, &expected.3), "{form}");
        let (own, aside) = points(logs);
        assert_eq!(own, measured, "{form}: {aside:?}");
    }
}

/// The same four runs are four rows of one verdict in every form, and four points.
#[test]
fn one_run_is_one_row_in_every_form() {
    let sizes = [65_536, 262_144, 1_048_576, 4_096];
    let healthy: Vec<Run> = sizes.iter().map(|bytes| bandwidth(*bytes, 1.0)).collect();
    hold_to_one_another(&healthy);
    // The one that is bad is bad in each.
    let bad: Vec<Run> = [(65_536, 1.0), (262_144, 0.4), (1_048_576, 0.4)]
        .map(|(bytes, times)| bandwidth(bytes, times))
        .into();
    hold_to_one_another(&bad);
    let latencies: Vec<Run> = [2, 64, 4_096].map(|bytes| latency(bytes, 1.0, 1.02)).into();
    hold_to_one_another(&latencies);
    // A long tail is no second row: the mean stands beside the median.
    let tails: Vec<Run> = vec![latency(64, 1.0, 3.1)];
    hold_to_one_another(&tails);
    let found = diagnosed(&forms(&tails)[2].1);
    assert_eq!(found.shapes.iter().map(|shape| shape.name).collect::<Vec<_>>(), ["tail"]);
}

/// Ten runs whose medians agree to the last digit are ten: the ends call their queue pairs otherwise in each. The log that the other side
/// wrote of one of them is that one, and a copy of it too.
#[test]
fn runs_that_were_repeated_count_and_copies_do_not() {
    let run = |index: u32| {
        let mut run = latency(64, 1.0, 1.02);
        run.ends = Some([(0x100 + index, 0x2a2db6 + 77 * index), (0x900 + index, 0xf6effe - 31 * index)]);
        run
    };
    let text = |index: u32| (format!("{index}.log"), run(index).text(false));
    let all: Logs = (0..10).map(text).collect();
    let held = |logs: &Logs, why: &[(&str, u64)]| {
        let found = diagnosed(logs);
        let said = |all: &[LeftAside]| -> Vec<(String, u64)> {
            all.iter().map(|one| (format!("{}: {}", one.file, one.why), one.rows)).collect()
        };
        let expected: Vec<(String, u64)> = why.iter().map(|(why, rows)| (why.to_string(), *rows)).collect();
        assert_eq!((found.points.len(), said(&found.repeated)), (10, expected.clone()), "diagnose");
        let (points, aside) = collected(logs);
        assert_eq!((points.len(), said(&aside)), (10, expected), "calibrate");
    };
    held(&all, &[]);
    let together =
        || vec![("all.log".to_string(), all.iter().map(|(_, text)| text.clone()).collect::<String>())];
    held(&together(), &[]);
    let and = |mut logs: Logs, name: &str, text: String| {
        logs.push((name.to_string(), text));
        logs
    };
    let other_side = "server.log: the other side of the run prints the same figures, which count once";
    held(&and(all.clone(), "server.log", run(3).text(true)), &[(other_side, 1)]);
    let copy = "x.log: all its rows stand in 3.log, too, and count once";
    held(&and(all.clone(), "x.log", run(3).text(false)), &[(copy, 1)]);
    let among = "x.log: the same row of the same run stands in all.log, and counts once";
    let before = "all.log: the same row of the same run stands before, and counts once";
    let mut again = together();
    again[0].1 += &run(3).text(false);
    held(&again, &[(before, 1)]);
    let mut fewer = together();
    fewer[0].1 = (0..9).map(|index| run(index).text(false)).collect();
    held(&and(fewer, "x.log", run(3).text(false) + &run(9).text(false)), &[(among, 1)]);
    // The log of the other side of a run that is not here is a run like others.
    let found = diagnosed(&and(all, "server.log", run(11).text(true)));
    assert_eq!((found.points.len(), found.repeated.len()), (11, 0));
}

/// What a card sends to itself may never reach its port, and nothing is learnt from it; a device in software has none.
#[test]
fn what_goes_to_itself_is_learnt_from_in_software_alone() {
    let run = Run { ends: Some([(0x11, 0x1), (0x12, 0x2)]), ..bandwidth(4096, 1.0) };
    let gid = " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:01\n";
    let to_itself: String = run.text(false).lines().fold(String::new(), |text, line| {
        let own = if line.contains("address:") { gid } else { "" };
        text + line + "\n" + own
    });
    let of = |device: &str| {
        let text = to_itself.replace("mlx5_0", device);
        let (points, aside) = collected(&vec![("a.log".to_string(), text)]);
        (points.len(), aside.into_iter().map(|one| one.why).collect::<Vec<_>>())
    };
    assert_eq!(of("rxe0"), (1, vec![]));
    let (points, aside) = of("mlx5_0");
    assert!(points == 0 && aside.len() == 1 && aside[0].contains("one machine"), "{points} {aside:?}");
}
