//! Files of measurements: what they keep, what they refuse, and what is learnt from them.

use super::*;
use crate::calibrate::{CalibrateRequest, calibrate};
use crate::import::{ImportRequest, import};
use std::path::Path as FilePath;

fn request(device: &str, set: &[&str]) -> MeasureRequest {
    MeasureRequest {
        place: MeasurePlace::Twin(device.to_string()),
        paths: vec!["client-host".to_string()],
        choice: SuiteChoice {
            verbs: vec![Verb::Read],
            payloads: vec![Bytes::new(64), Bytes::new(65536)],
            queue_pairs: vec![1],
        },
        windows: 2,
        seed: 1,
        command: "offpath measure twin".to_string(),
        environment: MeasureEnvironment::default(),
        system: SystemOptions {
            set: set.iter().map(|one| one.to_string()).collect(),
            ..SystemOptions::default()
        },
    }
}

fn measured(request: &MeasureRequest, path: &FilePath, most: usize) -> Result<MeasureAnswer, Failure> {
    let plan = request.plan()?;
    let system = plan.system.clone().expect("it is the twin");
    let mut file = MeasureFile::open(path, &plan.stamp)?;
    let mut left = most;
    plan.run(
        Some(&mut file),
        |point, effort| match left.checked_sub(1) {
            Some(less) => {
                left = less;
                measure_on_twin(&system, request.seed, point, effort)
            }
            None => Err("the test stops here".to_string()),
        },
        || {},
    )
}

fn words(failure: Failure) -> String {
    format!("{failure:?}")
}

/// What has no end is not read to it.
#[cfg(unix)]
#[test]
fn a_device_is_no_file_to_go_on_with() {
    let plan = request("connectx7", &[]).plan().expect("it is in order");
    let Err(refused) = MeasureFile::open(FilePath::new("/dev/full"), &plan.stamp) else {
        panic!("it is refused")
    };
    let said = words(refused);
    assert!(said.contains("is no file"), "{said}");
}

/// What an interrupt leaves is gone on with: points that are there are kept as they are, a cut line is measured again.
#[test]
fn a_cut_file_is_gone_on_with() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let own = request("bluefield2", &[]);
    let all = own.plan().unwrap_or_else(|why| panic!("{why:?}")).list().points.len();
    let begun = measured(&own, &path, 4).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!((begun.points.len(), begun.failed.len()), (4, all - 4));
    let text = std::fs::read_to_string(&path).expect("it is there");
    let points = text.lines().filter(|line| line.starts_with("{\"point\"")).count();
    assert_eq!(points, 4, "{text}");
    // The fourth point's line is cut in the middle.
    let fourth = text.lines().filter(|line| line.starts_with("{\"point\"")).nth(3).expect("four are there");
    let cut = text.find(fourth).expect("it is a line") + fourth.len() / 2;
    std::fs::write(&path, &text[..cut]).expect("it can be cut");
    let whole = measured(&own, &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!((whole.points.len(), whole.kept, whole.failed.len()), (all, 3, 0));
    assert_eq!(whole.points[..3], begun.points[..3]);
    assert_eq!(whole.points[3].windows, begun.points[3].windows, "the twin gives the same again");
    let again = measured(&own, &path, 0).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!((again.points, again.kept), (whole.points, all as u64));
}

/// A file of another device, seed or suite, or of something else, is refused by what differs, and stays as it is.
#[test]
fn another_file_is_refused_by_name() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let own = request("bluefield2", &[]);
    measured(&own, &path, 1).unwrap_or_else(|why| panic!("{why:?}"));
    let before = std::fs::read(&path).expect("it is there");
    let other = |change: &dyn Fn(&mut MeasureRequest)| {
        let mut changed = own.clone();
        change(&mut changed);
        match measured(&changed, &path, 1) {
            Err(failure) => words(failure),
            Ok(_) => panic!("it is taken"),
        }
    };
    for (said, wanted) in [
        (other(&|one| one.place = MeasurePlace::Twin("bluefield1".to_string())), "the device was"),
        (other(&|one| one.system.set = vec!["network.delay=1us".to_string()]), "what is set was"),
        (other(&|one| one.seed = 2), "--seed was"),
        (other(&|one| one.windows = 5), "--windows was"),
        (other(&|one| one.choice.queue_pairs = vec![2]), "suite's points was"),
    ] {
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
    assert_eq!(std::fs::read(&path).expect("it is there"), before);
    for text in ["what is this?\n", "{\"a\": 1}\n", "no line ends"] {
        std::fs::write(&path, text).expect("it can be written");
        let said = measured(&own, &path, 1).map(|_| ()).map_err(words);
        assert!(said.is_err_and(|said| said.contains("none of `offpath measure`")), "{text}");
        assert_eq!(std::fs::read_to_string(&path).expect("it is there"), text);
    }
}

/// Every line is known to `import`, figures with their conditions; what real queue pairs cannot do is said by name.
#[test]
fn import_reads_what_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let found =
        measured(&request("bluefield2", &[]), &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    let read = import(&ImportRequest { logs: vec![path] }).unwrap_or_else(|why| panic!("{why:?}"));
    assert_eq!((read.files[0].unknown_lines, read.files[0].failed_lines, read.remarks.len()), (0, 0, 0));
    assert_eq!(read.files[0].measured_lines, found.points.len() as u64);
    let first = &read.measurements[0];
    assert_eq!((first.tool, first.metric.as_str()), ("offpath-measure", "latency_ns_median"));
    assert_eq!(Some(first.value), found.points[0].latency_ns_median);
    let place = VerbsDevice { name: "rxe0".into(), peers: vec!["host".into()], ..VerbsDevice::default() };
    let verbs = MeasureRequest { place: MeasurePlace::Verbs(place), ..request("bluefield2", &[]) };
    let listed = verbs.plan().unwrap_or_else(|why| panic!("{why:?}")).list();
    for wanted in ["posts from one thread", "`host` posts, and it is another process"] {
        assert!(listed.skipped.iter().any(|one| one.why.contains(wanted)), "{wanted}: {:?}", listed.skipped);
    }
}

/// Windows end with completions, so their requests are whole turns of the moderation that the log states, of lists, too.
#[test]
fn the_moderation_of_a_log_is_what_the_program_did() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let found =
        measured(&request("bluefield2", &[]), &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    let read = import(&ImportRequest { logs: vec![path] }).unwrap_or_else(|why| panic!("{why:?}"));
    let rows: Vec<_> =
        read.measurements.iter().filter(|row| row.metric == "operations_per_s_median").collect();
    let points: Vec<_> = found.points.iter().filter(|point| point.kind == "bandwidth").collect();
    assert_eq!(rows.len(), points.len());
    let mut lists = Vec::new();
    for (row, point) in rows.iter().zip(points) {
        let moderation = row.cq_moderation.expect("it is stated");
        for window in &point.windows {
            assert_eq!(window.requests % moderation, 0, "{}: {}", point.point, window.requests);
        }
        if let Some(list @ 2..) = row.post_list {
            assert_eq!(moderation, list, "{}", point.point);
            lists.push(list);
        }
    }
    lists.sort_unstable();
    lists.dedup();
    assert_eq!(lists, [4, 16, 32]);
}

/// What no backend measures is in the list, the file and the answer with its reason, on the screen, too, and the rest is measured.
#[test]
fn a_latency_that_cannot_be_seen_is_skipped_with_the_reason() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let mut own = request("bluefield2", &[]);
    own.choice =
        SuiteChoice { verbs: vec![Verb::Write], payloads: vec![Bytes::new(100)], queue_pairs: vec![1] };
    let name = "client-host write latency 100B";
    let place = VerbsDevice { name: "rxe0".into(), inline_max: Bytes::new(512), ..VerbsDevice::default() };
    let verbs = MeasureRequest { place: MeasurePlace::Verbs(place), ..own.clone() };
    for request in [&own, &verbs] {
        let listed = request.plan().unwrap_or_else(|why| panic!("{why:?}")).list();
        let said = listed.skipped.iter().find(|one| one.skipped == name).expect("it is listed");
        assert!(said.why.contains("multiple of 8 B"), "{said:?}");
    }
    let found = measured(&own, &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    assert!(!found.points.is_empty() && found.points.iter().all(|point| point.kind == "bandwidth"));
    assert!(found.skipped.iter().any(|one| one.skipped == name), "{:?}", found.skipped);
    let screen = offpath_terminal::output::Screen::new(offpath_terminal::output::OutputOptions::default());
    assert!(found.text(&screen).contains(&format!("skipped: {name}")), "{}", found.text(&screen));
    let kept = std::fs::read_to_string(&path).expect("it is there");
    assert!(kept.lines().any(|line| line.contains(&format!("\"skipped\":\"{name}\""))), "{kept}");
}

/// A card with hidden numbers is found again from what is measured on its twin: two implementations of one run.
#[test]
fn calibrate_finds_the_numbers_of_the_twin_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let hidden = [
        "host_verbs.post_time=290ns",
        "client.host_verbs.post_time=290ns",
        "nic.queue_pair_rate=150Gbit/s",
        "client.nic.queue_pair_rate=150Gbit/s",
    ];
    let mut own = request("connectx7", &hidden);
    own.choice = SuiteChoice {
        verbs: vec![Verb::Read, Verb::Write],
        payloads: [64, 512, 4096, 16384, 65536, 262_144].map(Bytes::new).to_vec(),
        queue_pairs: Vec::new(),
    };
    own.windows = 1;
    measured(&own, &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    let learnt = calibrate(&CalibrateRequest {
        logs: vec![path],
        base: "connectx7".to_string(),
        name: "learnt".to_string(),
        path: "client-host".to_string(),
        fit: vec!["client.host_verbs.post_time".to_string(), "client.nic.queue_pair_rate".to_string()],
        ..CalibrateRequest::default()
    })
    .unwrap_or_else(|why| panic!("{why:?}"));
    for one in &learnt.numbers {
        println!("{} = {} ({} to {})", one.name, one.value, one.low_90, one.high_90);
    }
    println!("held out: {:?}", learnt.held_out_error);
    let of = |name: &str| {
        let found = learnt.numbers.iter().find(|one| one.name == name);
        let value = &found.unwrap_or_else(|| panic!("{name} is not fitted")).value;
        value.split_whitespace().next().and_then(|digits| digits.parse::<f64>().ok()).expect("a number")
    };
    let post = of("client.host_verbs.post_time") / 290.0 - 1.0;
    let rate = of("client.nic.queue_pair_rate") / 150.0 - 1.0;
    assert!(post.abs() < 0.05 && rate.abs() < 0.05, "{post} {rate}");
    // Threads beside each other and two verbs at once are no runs of one thread, and said so.
    assert!(learnt.left_aside.iter().any(|one| one.why.contains("threads")), "{:?}", learnt.left_aside);
}

/// A file that was cut says so wherever it is read, with the command that goes on with it.
#[test]
fn a_cut_file_is_not_taken_for_a_whole_one() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a.jsonl");
    let mut own = request("bluefield2", &[]);
    own.choice.payloads = [64, 512, 4096, 65536].map(Bytes::new).to_vec();
    measured(&own, &path, usize::MAX).unwrap_or_else(|why| panic!("{why:?}"));
    let whole = std::fs::read_to_string(&path).expect("it is there");
    let remarks = || {
        let found =
            import(&ImportRequest { logs: vec![path.clone()] }).unwrap_or_else(|why| panic!("{why:?}"));
        found.remarks.into_iter().filter(|one| one.kind == "unended").collect::<Vec<_>>()
    };
    assert!(remarks().is_empty());
    let learn = || {
        let asked = CalibrateRequest {
            logs: vec![path.clone()],
            base: "bluefield2".to_string(),
            name: "own".to_string(),
            path: "client-host".to_string(),
            fit: vec!["client.host_verbs.post_time".to_string()],
            ..CalibrateRequest::default()
        };
        calibrate(&asked).unwrap_or_else(|why| panic!("{why:?}")).incomplete
    };
    assert!(learn().is_empty());
    let diagnosed = || {
        let asked = crate::diagnose::DiagnoseRequest {
            logs: vec![path.clone()],
            device: "bluefield2".to_string(),
            ..crate::diagnose::DiagnoseRequest::default()
        };
        crate::diagnose::diagnose(&asked).unwrap_or_else(|why| panic!("{why:?}")).verdict
    };
    assert_eq!(diagnosed(), "normal");
    // Two lines are missing behind the last that is there, or a line is cut in its middle.
    let rows: Vec<usize> = whole.match_indices('\n').map(|(at, _)| at + 1).collect();
    for end in [rows[rows.len() - 3], rows[rows.len() - 2] + 40] {
        std::fs::write(&path, &whole[..end]).expect("it can be cut");
        for found in [remarks(), learn()] {
            let [one] = &found[..] else { panic!("{found:?}") };
            assert!(
                one.why.contains("are missing") && one.why.contains("`offpath measure twin`"),
                "{}",
                one.why
            );
        }
        assert_eq!(diagnosed(), "incomplete");
    }
}
