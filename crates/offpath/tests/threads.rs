//! What is the matter with figures of public threads whose cause is known: how often it is named, in the half that was looked at
//! before, in the half that was not, and in those that were gathered when all rules stood. The last two say something.

use offpath::answers::SystemOptions;
use offpath::answers::diagnose::{CauseGroupAnswer, DiagnoseAnswer, DiagnoseRequest, diagnose};
use offpath::learn::diagnose::Cause;
use offpath::profile::{Library, System, SystemRequest};
use serde::Deserialize;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt::Write;

/// What was measured when the threads were looked at first: how many, those whose answer is first, those whose answer is among
/// the first three. Misses are the rest.
const SEEN: Score = Score { threads: 7, first: 2, first_three: 2 };
const UNSEEN: Score = Score { threads: 9, first: 3, first_three: 3 };
const LATER: Score = Score { threads: 17, first: 7, first_three: 10 };

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Score {
    threads: usize,
    first: usize,
    first_three: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Threads {
    thread: Vec<Thread>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Thread {
    address: String,
    device: String,
    #[serde(default)]
    later: bool,
    profile: String,
    #[serde(default)]
    settings: Vec<String>,
    verdict: Option<String>,
    cause: Vec<String>,
    words: String,
    runs: Vec<Run>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Run {
    program: Option<String>,
    queue_pairs: Option<u64>,
    outstanding_reads: Option<u64>,
    unit: String,
    #[serde(default = "yes")]
    size_is_given: bool,
    rows: Vec<Row>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    size: u64,
    bandwidth: f64,
}

fn yes() -> bool {
    true
}

/// The size that perftest's programs take where none is asked for.
const USUAL_SIZE: u64 = 65536;

impl Run {
    /// As small a log of perftest as what is known makes. Its rows have a number of iterations, which threads do not give: the
    /// program's own.
    fn log(&self) -> String {
        let mut text = String::new();
        if let Some(program) = &self.program {
            let title = match program.as_str() {
                "ib_read_bw" => "RDMA_Read BW Test",
                "ib_write_bw" => "RDMA_Write BW Test",
                "ib_send_bw" => "Send BW Test",
                other => panic!("`{other}` is none of ib_read_bw, ib_write_bw and ib_send_bw"),
            };
            writeln!(text, "                    {title}").unwrap();
            if let Some(pairs) = self.queue_pairs {
                writeln!(text, " Number of qps   : {pairs}\t\tTransport type : IB").unwrap();
            }
            writeln!(text, " Connection type : RC\t\tUsing SRQ      : OFF").unwrap();
            if let Some(reads) = self.outstanding_reads {
                writeln!(text, " Outstand reads  : {reads}").unwrap();
            }
            writeln!(text, "{}", "-".repeat(87)).unwrap();
        }
        let (unit, times) = match self.unit.as_str() {
            "MB/sec" => ("MB/sec", 1.0),
            "Gb/sec" => ("Gb/sec", 1.0),
            // Bytes of 10^9, which perftest does not print.
            "GB/s" => ("Gb/sec", 8.0),
            other => panic!("`{other}` is none of MB/sec, Gb/sec and GB/s"),
        };
        writeln!(text, " #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]").unwrap();
        let iterations = if self.program.as_deref() == Some("ib_read_bw") { 1000 } else { 5000 };
        for row in &self.rows {
            assert!(
                self.size_is_given || row.size == USUAL_SIZE,
                "{} B is no size of perftest's own",
                row.size
            );
            let bandwidth = row.bandwidth * times;
            writeln!(text, " {:<10} {iterations:<10}       0.00               {bandwidth:.6}", row.size)
                .unwrap();
        }
        writeln!(text, "{}", "-".repeat(87)).unwrap();
        text
    }
}

impl Thread {
    fn is_seen(&self) -> bool {
        Sha256::digest(&self.address)[0] >> 4 & 1 == 0
    }

    /// Whether it is found by who calls everything normal that reaches nine tenths of the port, and all else the port's rate. As
    /// of a diagnosis it is enough that the cause stands in one group with that, which these rows do not tell it from.
    fn is_found_by_port_alone(&self, diagnosis: &DiagnoseAnswer) -> bool {
        let gbit = |run: &Run| {
            let times = match run.unit.as_str() {
                "MB/sec" => 8.0 * 1_048_576.0 / 1e9,
                "GB/s" => 8.0,
                _ => 1.0,
            };
            run.rows.iter().map(|row| row.bandwidth * times).fold(0.0, f64::max)
        };
        let most = self.runs.iter().map(gbit).fold(0.0, f64::max);
        let port = self.system().port_at_most(None).expect("it has machines").bits_per_second() as f64 / 1e9;
        let is_low = most < 0.9 * port;
        match &self.verdict {
            Some(_) => !is_low,
            None if self.is_any_of(Cause::PortRate.name()) => is_low,
            None => {
                let has_port = |group: &&CauseGroupAnswer| {
                    group.causes.iter().any(|one| one.cause == Cause::PortRate.name())
                };
                is_low && diagnosis.causes.iter().filter(has_port).any(|group| self.is_in(group))
            }
        }
    }

    fn is_any_of(&self, cause: &str) -> bool {
        self.cause.iter().any(|name| name == cause)
    }

    fn is_in(&self, group: &CauseGroupAnswer) -> bool {
        group.causes.iter().any(|finding| self.is_any_of(finding.cause))
    }

    fn system(&self) -> System {
        let library = Library::builtin();
        // As `offpath diagnose` has it where nobody names a testbed.
        let pair = library.pair_of(&self.profile).unwrap_or_else(|error| panic!("{error:?}"));
        let request = SystemRequest {
            device: &self.profile,
            testbed: pair.as_deref(),
            settings: self.settings.clone(),
            ..SystemRequest::default()
        };
        library.load(&request).unwrap_or_else(|error| panic!("{error:?}"))
    }

    /// What its poster would be told by the command, who knows what the thread says of the card.
    fn diagnosis(&self) -> DiagnoseAnswer {
        let folder = tempfile::tempdir().expect("a folder");
        let logs = self.runs.iter().enumerate().map(|(index, run)| {
            let file = folder.path().join(format!("{index}.log"));
            std::fs::write(&file, run.log()).expect("it can be written");
            file
        });
        let request = DiagnoseRequest {
            logs: logs.collect(),
            collection: Vec::new(),
            card: None,
            device: self.profile.clone(),
            path: None,
            least_share: None,
            system: SystemOptions { set: self.settings.clone(), ..SystemOptions::default() },
        };
        diagnose(&request).unwrap_or_else(|error| panic!("{}: {error:?}", self.address))
    }

    /// The place of what the thread found, from 1; a verdict has the first or none.
    fn place(&self, diagnosis: &DiagnoseAnswer) -> Option<usize> {
        match &self.verdict {
            Some(verdict) => (diagnosis.verdict == verdict).then_some(1),
            None => diagnosis.causes.iter().position(|group| self.is_in(group)).map(|place| place + 1),
        }
    }
}

#[test]
fn public_threads_are_diagnosed_no_worse_than_they_were() {
    let threads: Threads = toml::from_str(include_str!("threads.toml")).expect("it is in the schema");
    let mut scores = [Score::default(); 3];
    let (mut by_port, mut of_causes) = (0, 0);
    let mut wrongly_normal = Vec::new();
    let mut verdicts: BTreeMap<(bool, &str), usize> = BTreeMap::new();
    for thread in &threads.thread {
        for name in &thread.cause {
            assert!(
                Cause::ALL.iter().any(|cause| cause.name() == name),
                "`{name}` is no cause: leave it out"
            );
        }
        assert!(
            thread.verdict.is_none() || thread.cause.is_empty(),
            "{}: what is normal has no cause",
            thread.address
        );
        let diagnosis = thread.diagnosis();
        assert_ne!(diagnosis.verdict, "nothing-comparable", "{}: {:?}", thread.address, diagnosis.skipped);
        let place = thread.place(&diagnosis);
        let (group, name) = match (thread.later, thread.is_seen()) {
            (true, _) => (2, "later "),
            (false, true) => (0, "seen  "),
            (false, false) => (1, "unseen"),
        };
        by_port += usize::from(thread.is_found_by_port_alone(&diagnosis));
        let is_first = place == Some(1);
        of_causes += usize::from(is_first && thread.verdict.is_none());
        let score = &mut scores[group];
        score.threads += 1;
        score.first += usize::from(is_first);
        score.first_three += usize::from(place.is_some_and(|place| place <= 3));
        *verdicts.entry((thread.verdict.is_none(), diagnosis.verdict)).or_default() += 1;
        if diagnosis.verdict == "normal" && thread.verdict.as_deref() != Some("normal") {
            wrongly_normal.push(&thread.address);
        }
        println!(
            "{} {}: {} on {}: {}; {} at {:.2}, place {place:?}: {:?}",
            name,
            thread.address,
            thread.device,
            thread.profile,
            thread.words,
            diagnosis.verdict,
            diagnosis.median_share.unwrap_or(f64::NAN),
            diagnosis
                .causes
                .iter()
                .map(|group| group.causes.iter().map(|own| own.cause).collect::<Vec<_>>())
                .collect::<Vec<_>>(),
        );
    }
    let [seen, unseen, later] = scores;
    println!(
        "seen {seen:?}, unseen {unseen:?}, later {later:?}, by the port alone {by_port}, first causes {of_causes}, wrongly normal {wrongly_normal:?}; with a cause and without, by verdict {verdicts:?}"
    );
    assert!(wrongly_normal.is_empty(), "{wrongly_normal:?}");
    let page = include_str!("../../../docs/diagnose.md");
    let first = seen.first + unseen.first + later.first;
    for what in [
        format!("finds {by_port} of the {} first", threads.thread.len()),
        format!("Of the {first} that are found first {} are `normal`", first - of_causes),
        format!("and {of_causes} are causes"),
    ] {
        assert!(crate::common::says(page, &what), "docs/diagnose.md lacks `{what}`");
    }
    for (found, least) in scores.iter().zip([SEEN, UNSEEN, LATER]) {
        // A thread more or less is another measurement, which has to be made.
        assert_eq!(found.threads, least.threads);
        assert!(
            found.first >= least.first && found.first_three >= least.first_three,
            "{found:?}, was {least:?}"
        );
    }
}
