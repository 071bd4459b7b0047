//! What `offpath diagnose` answers: figures beside what the model expects of them, and what explains the difference.

mod text;

use crate::SCHEMA_VERSION;
use crate::import::{ImportRequest, import_each};
use crate::machine::{read_collection, read_facts};
use crate::system::{SystemAnswer, check_verbs, unlike_ends};
use crate::tool::known;
use offpath_learn::describe::describe;
use offpath_learn::diagnose::{
    CauseGroup, DiagnosedPoint, Diagnosis, Finding, Leeway, LoggedFigures, Question, RowShape, diagnose as of,
};
use offpath_learn::{LeftAside, RunKind, ToolBench, ToolRun};
use offpath_logs::{LogFigure, LogItem, LogMeasurement, LogRemark, MetricSubject, RemarkKind};
use offpath_profile::System;
use offpath_quantity::Bytes;
use offpath_route::Router;
use offpath_terminal::failure::{Failure, unknown_path};
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::counted;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// Rows that are named of those that are off.
const MOST_WORST: usize = 5;

/// Logs, and what they were taken on.
#[derive(Clone, Debug, Default)]
pub struct DiagnoseRequest {
    /// Logs of perftest and files of `offpath measure`; `-` is standard input.
    pub logs: Vec<PathBuf>,
    /// Files in which the machine says what it is, and archives of them.
    pub collection: Vec<PathBuf>,
    /// The card's address, where those files list several.
    pub card: Option<String>,
    /// The device, by name or from a file.
    pub device: String,
    /// From whom to whom the runs go; from the client to the host where absent.
    pub path: Option<String>,
    /// The least share of the expected figure that is enough, where that is asked.
    pub least_share: Option<f64>,
    /// Which system is meant.
    pub system: SystemOptions,
}

/// What is the matter with figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiagnoseAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// From whom to whom.
    pub path: String,
    /// That the ends of the path have ports of different rates, of which the slower one bounds both; null where they have not.
    pub unlike_ends: Option<String>,
    /// `normal`, `held-back-as-stated`, `incomplete` (one of these, where a run failed), `low`, `slightly-low`, `slightly-high`, `high`,
    /// `inconclusive` (lower or higher than expected, by no more than what is not known of the card leaves open), `contradictory` (more
    /// than what their own head allows: head and rows are not of one run) or `nothing-comparable`.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["normal", "held-back-as-stated", "incomplete", "low", "slightly-low", "slightly-high", "high", "inconclusive", "contradictory", "nothing-comparable"]))
    )]
    pub verdict: &'static str,
    /// The median share of the expected performance; null where no figure can be compared.
    pub median_share: Option<f64>,
    /// The share that is asked for; null where none is.
    pub least_share: Option<f64>,
    /// Rows that reach that share, by the mean of their latencies too where that lies far above the median; null where none is asked for.
    pub reaching_rows: Option<u64>,
    /// Rows that do not, and would if what is expected were at the lower end of its 95% interval; null where none is asked for.
    pub undecided_rows: Option<u64>,
    /// Where a share is asked for: each reason for which the logs pass no acceptance test, in a sentence; empty where they pass it.
    pub not_accepted: Vec<String>,
    /// Rows that are off by more than a tenth from what is expected of them as stated, whatever the verdict is of all.
    pub off_rows: u64,
    /// Those of them that are off furthest, five at most, the furthest first.
    pub worst_rows: Vec<DiagnosedPointAnswer>,
    /// Whether the profile is a card that was learnt from logs, and has what predictions of it were wrong by.
    pub is_calibrated: bool,
    /// Numbers of the profile that are guesses, of all that the system has: what is expected rests on them too.
    pub guessed_numbers: u64,
    /// All numbers of the system.
    pub numbers: u64,
    /// Every row that can be compared.
    pub points: Vec<DiagnosedPointAnswer>,
    /// What the rows look like by themselves.
    pub shapes: Vec<ShapeAnswer>,
    /// Groups of causes that the rows cannot tell apart, the ones that explain most first.
    pub causes: Vec<CauseGroupAnswer>,
    /// The share that the first two causes explain together; null where one is enough.
    pub explained_together_share: Option<f64>,
    /// What the model has no number for.
    pub questions: Vec<QuestionAnswer>,
    /// What the logs do not state, and was taken as the tool has it.
    pub assumed: Vec<String>,
    /// Rows that say again what others say, by file and reason: copies of a run, and what its other side prints. They count once.
    pub repeated: Vec<UnreadLinesAnswer>,
    /// What the collection or the log's own head says and the rows prove wrong; where it is the collection, nothing in it speaks for a
    /// cause.
    pub contradictions: Vec<String>,
    /// Figures that are not compared.
    pub skipped: Vec<SkippedAnswer>,
    /// What the collection finds odd of the machine, whatever the rows look like: the profile may have it too.
    pub oddities: Vec<String>,
    /// Runs of which somebody says that they failed, runs that began and have no row, tables that end without their last line or have a
    /// gap or a line that is not read, rows that carried nothing or are not compared, and logs without a figure or without one that could be
    /// compared, each once a log: nothing is said of what they were to measure.
    pub failed: Vec<UnreadLinesAnswer>,
    /// Other lines that give no figure and are none that a known tool prints beside them; `offpath import` names each.
    pub unread_lines: u64,
    /// Those of them that stand below rows of their file and are no comment, caption or command, once a file: what they say of the runs
    /// nobody knows.
    pub unread_below: Vec<UnreadLinesAnswer>,
    /// Where no figure can be compared: what the logs have; null elsewhere.
    pub nothing_comparable: Option<NothingComparableAnswer>,
}

/// What logs have of which no figure can be compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NothingComparableAnswer {
    /// The figures, by tool and meaning.
    pub figures: Vec<FoundFiguresAnswer>,
    /// Lines that gave none, and why, by reason; the files' blank lines and heads are none.
    pub lines: Vec<UnreadLinesAnswer>,
    /// What to measure instead, as a command.
    pub measure: String,
}

/// Figures of one meaning.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FoundFiguresAnswer {
    /// Who measured.
    pub tool: &'static str,
    /// What they mean, with their unit.
    pub metric: String,
    /// How many.
    pub count: u64,
}

/// Lines that give no figure, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnreadLinesAnswer {
    /// The file of the first, as it was named.
    pub file: String,
    /// The first line, from 1.
    pub line: u64,
    /// How many.
    pub count: u64,
    /// Why.
    pub why: String,
}

/// A row beside what is expected of it. Of a latency a share is the expected over the measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DiagnosedPointAnswer {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The run, in words.
    pub run: String,
    /// The same without its payload, which rows of a sweep have in common.
    pub test: String,
    /// Bytes of a message.
    pub payload_bytes: u64,
    /// What the figures mean, with their unit.
    pub metric: String,
    /// What was measured.
    pub measured: f64,
    /// What is expected with nothing that holds the run back.
    pub expected: f64,
    /// What is expected of the run as the log states it.
    pub expected_as_stated: f64,
    /// The measured performance as a share of the expected one.
    pub share: f64,
    /// The same by the mean, of rows whose median is compared: of latencies where it is over 1.5 times their median, of windows
    /// of `offpath measure` where it is below theirs; null elsewhere.
    pub mean_share: Option<f64>,
    /// The same of the run as the log states it.
    pub share_as_stated: f64,
    /// The lower end of the 95% interval of that share: what is expected may be more.
    pub share_as_stated_low_95: f64,
    /// The upper end: what is expected may be less.
    pub share_as_stated_high_95: f64,
    /// How well what is expected of the run as stated is known; docs/confidence.md says what each means.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::BASES)))]
    pub basis: &'static str,
    /// What binds the expected rate.
    pub bound_by: String,
}

/// A shape of the rows of a log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ShapeAnswer {
    /// The file, as it was named.
    pub file: String,
    /// Its first line.
    pub first_line: u64,
    /// Its last line.
    pub last_line: u64,
    /// Its name.
    pub name: &'static str,
    /// What it is and what it says.
    pub what: String,
}

/// Causes that the rows cannot tell apart.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CauseGroupAnswer {
    /// Share of the gap that they explain alone, 0 to 1.
    pub explained_share: f64,
    /// They; those that something else speaks for first.
    pub causes: Vec<FindingAnswer>,
}

/// A cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FindingAnswer {
    /// Its name.
    pub cause: &'static str,
    /// What it may be.
    pub meaning: &'static str,
    /// The degree that fits best.
    pub degree: String,
    /// Share of the gap that it explains alone, 0 to 1.
    pub explained_share: f64,
    /// What else speaks for it.
    pub evidence: Vec<String>,
    /// The command that tells whether it is so.
    pub command: &'static str,
}

/// Something that the model has no number for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct QuestionAnswer {
    /// What it is.
    pub what: String,
    /// What answers it.
    pub command: String,
}

/// Figures that are not compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedAnswer {
    /// How many.
    pub count: u64,
    /// Why.
    pub why: String,
}

impl UnreadLinesAnswer {
    fn of(rows: &LeftAside) -> UnreadLinesAnswer {
        let LeftAside { file, line, rows, why } = rows.clone();
        UnreadLinesAnswer { file, line, count: rows, why }
    }
}

/// Says what is the matter with the figures of logs.
///
/// # Errors
/// Where a log or the device cannot be read, the path is refused, or the share is not between 0 and 1.
pub fn diagnose(request: &DiagnoseRequest) -> Result<DiagnoseAnswer, Failure> {
    let library = request.system.library()?;
    let options = request.system.between_two(&library, &request.device)?;
    let system = options.load(&library, &request.device, &[])?;
    let router = Router::new(&system)?;
    let path = match &request.path {
        Some(path) => router.path(path).map_err(|error| unknown_path(&router, path, error))?.to_string(),
        None => usual_path(&system, &router)?,
    };
    let mut figures = LoggedFigures::new(&path);
    let mut lines: Vec<UnreadLinesAnswer> = Vec::new();
    let (mut failed, mut unread_lines): (Vec<(RemarkKind, UnreadLinesAnswer)>, u64) = (Vec::new(), 0);
    let mut stalls = Stalls::default();
    let mut unread_below: Vec<UnreadLinesAnswer> = Vec::new();
    let mut with_rows: Option<String> = None;
    let files = import_each(&ImportRequest { logs: request.logs.clone() }, |file, item| {
        if let LogItem::Remark(remark) = &item {
            match remark.kind {
                RemarkKind::Failure | RemarkKind::Unended | RemarkKind::Withheld => {
                    add_failed(&mut failed, file, remark, remark.kind, &remark.why);
                }
                RemarkKind::Unknown => {
                    unread_lines += remark.lines;
                    // Above the first row stands a banner too: what it says of no run is left to it.
                    if with_rows.as_deref() != Some(file) {
                        if remark.says_failure() {
                            let why = "a run failed, with no line that gives a figure above it";
                            add_failed(&mut failed, file, remark, RemarkKind::Failure, why);
                        } else if remark.is_row() {
                            let why = "a row or head of perftest behind something else, which is not read";
                            add_failed(&mut failed, file, remark, RemarkKind::Withheld, why);
                        }
                    } else if !remark.is_note() {
                        match unread_below.iter_mut().find(|known| known.file == file) {
                            Some(known) => known.count += remark.lines,
                            None => unread_below.push(UnreadLinesAnswer {
                                file: file.to_string(),
                                line: remark.line,
                                count: remark.lines,
                                why: format!("no known tool prints it: `{}`", remark.text),
                            }),
                        }
                    }
                }
            }
        }
        match item {
            LogItem::Measurement(measurement) => {
                if with_rows.as_deref() != Some(file) {
                    with_rows = Some(file.to_string());
                }
                stalls.add(file, &measurement);
                figures.add(file, &measurement);
            }
            // Its line has figures.
            LogItem::Remark(remark) if remark.kind == RemarkKind::Unended => {}
            LogItem::Remark(remark) => match lines.iter_mut().find(|known| known.why == remark.why) {
                Some(known) => known.count += remark.lines,
                None => lines.push(UnreadLinesAnswer {
                    file: file.to_string(),
                    line: remark.line,
                    count: remark.lines,
                    why: remark.why.into_owned(),
                }),
            },
        }
        Ok(())
    })?;
    let mut failed: Vec<UnreadLinesAnswer> = failed.into_iter().map(|(_, failed)| failed).collect();
    failed.extend(stalls.end());
    let mut open = Vec::new();
    let read: Vec<(String, u64)> = files
        .iter()
        .filter(|file| file.measured_lines > 0)
        .map(|file| (file.file.clone(), file.measured_lines))
        .collect();
    for file in files {
        if file.open_tables > 0 {
            open.push(format!(
                "{}: no line of dashes says where {} begins and ends: whether the run ended, and rows are missing, nobody knows",
                file.file,
                if file.open_tables == 1 { "its table" } else { "a table" }
            ));
        }
        if file.measured_lines == 0 && !failed.iter().any(|known| known.file == file.file) {
            let why = "it has no line that gives a figure".to_string();
            failed.push(UnreadLinesAnswer { file: file.file, line: 1, count: file.lines, why });
        }
    }
    let mut unread = Vec::new();
    let machine = match request.collection.is_empty() {
        true => None,
        false => {
            let read = read_facts(&read_collection(&request.collection)?)?;
            let facts = read.facts;
            unread = read.unread;
            Some(describe(&facts, request.card.as_deref()).map_err(|error| crate::machine::refused(&error))?)
        }
    };
    let figures_found = figures.found();
    let leeway = |system: &System, runs: &[ToolRun]| leeway(system, &path, runs);
    let found = of(&system, figures, machine.as_ref(), leeway).map_err(|error| {
        Failure::input(error.to_string(), format!("`offpath path {}` lists paths", request.device))
    })?;
    let aside = found.left_aside.iter().map(|one| UnreadLinesAnswer {
        why: format!("the row is not compared: {}", one.why),
        ..UnreadLinesAnswer::of(one)
    });
    failed.extend(aside);
    let repeated: Vec<UnreadLinesAnswer> = found.repeated.iter().map(UnreadLinesAnswer::of).collect();
    let above: Vec<String> = found
        .points
        .iter()
        .filter(|point| point.is_above())
        .map(|point| format!("{}:{} at {:.0}%", point.file, point.line, point.share_as_stated * 100.0))
        .collect();
    let (faults, are_files_refuted) = (found.faults.clone(), found.are_files_refuted);
    let mut answer = DiagnoseAnswer::of(&system, path, found, request.least_share);
    answer.assumed.extend(unread.into_iter().chain(open));
    for (file, count) in read {
        let is_known = repeated.iter().any(|again| again.file == file)
            || answer.points.iter().any(|point| point.file == file)
            || failed.iter().any(|known| known.file == file);
        if !is_known {
            let why = "no line of it could be compared with what is expected".to_string();
            failed.push(UnreadLinesAnswer { file, line: 1, count, why });
        }
    }
    if options.testbed != request.system.testbed {
        answer.assumed.push(format!(
            "both machines have this card, as in the testbed `{}`; where the other has another, name its testbed by `--testbed`",
            system.testbed
        ));
    }
    let oddities = machine.iter().filter(|_| !are_files_refuted).flat_map(|machine| &machine.oddities);
    answer.oddities = oddities.map(|one| format!("{} ({})", one.what, one.at)).collect();
    if !failed.is_empty() && ["normal", "held-back-as-stated"].contains(&answer.verdict) {
        answer.verdict = "incomplete";
    }
    (answer.failed, answer.unread_lines, answer.unread_below) = (failed, unread_lines, unread_below);
    answer.repeated = repeated;
    answer.not_accepted = answer.objections(&above, faults);
    if answer.points.is_empty() {
        answer.nothing_comparable = Some(NothingComparableAnswer::of(figures_found, lines));
    }
    Ok(answer)
}

/// Adds what a remark says to what was not measured, of each file and kind once.
fn add_failed(
    failed: &mut Vec<(RemarkKind, UnreadLinesAnswer)>,
    file: &str,
    remark: &LogRemark,
    kind: RemarkKind,
    why: &str,
) {
    match failed.iter_mut().find(|(known, one)| *known == kind && one.file == file) {
        Some((_, known)) => known.count += remark.lines,
        None => {
            let why = format!("{why}: `{}`", remark.text);
            let (file, line, count) = (file.to_string(), remark.line, remark.lines);
            failed.push((kind, UnreadLinesAnswer { file, line, count, why }));
        }
    }
}

/// How far each of some runs may be from what is expected of it on a system, as [`crate::tool`] says it of the programs.
fn leeway(system: &System, path: &str, runs: &[ToolRun]) -> Vec<Leeway> {
    const EXPECTED: &str = "each of these runs was expected on this path of this system before";
    let bench = ToolBench::new(system, path).expect(EXPECTED);
    let router = Router::new(bench.system()).expect(EXPECTED);
    let known = known(&bench, &router, path, runs).expect(EXPECTED);
    let each = runs.iter().zip(known).map(|(run, known)| {
        let (low, high) = known.ranged.range_95;
        let (least, most) = match run.kind {
            RunKind::Bandwidth => (low / known.ranged.value, high / known.ranged.value),
            RunKind::Latency => (known.ranged.value / high, known.ranged.value / low),
        };
        Leeway { least, most, basis: known.basis.name() }
    });
    each.collect()
}

/// Rows of bandwidth tests that carried nothing, of which no share of anything can be given.
#[derive(Default)]
struct Stalls {
    /// The row that is read, by file and number, its first line, whether a figure of it is 0, and whether one is not.
    row: Option<(String, u64, u64, bool, bool)>,
    found: Vec<UnreadLinesAnswer>,
}

impl Stalls {
    fn add(&mut self, file: &str, measurement: &LogMeasurement) {
        let is_rate =
            matches!(measurement.metric.subject, MetricSubject::Bandwidth | MetricSubject::OperationRate);
        if !is_rate || measurement.conditions.payload == Some(Bytes::ZERO) {
            return;
        }
        if self.row.as_ref().is_none_or(|(known, row, ..)| known != file || *row != measurement.row) {
            self.close();
            self.row = Some((file.to_string(), measurement.row, measurement.line, false, false));
        }
        if let Some((.., is_none, is_some)) = &mut self.row {
            let is_zero = measurement.figure.value() == 0.0;
            (*is_none, *is_some) = (*is_none || is_zero, *is_some || !is_zero);
        }
    }

    fn close(&mut self) {
        let Some((file, _, line, true, false)) = self.row.take() else { return };
        match self.found.iter_mut().find(|known| known.file == file) {
            Some(known) => known.count += 1,
            None => {
                let why = "the row has a rate of 0: the run carried nothing".to_string();
                self.found.push(UnreadLinesAnswer { file, line, count: 1, why });
            }
        }
    }

    fn end(mut self) -> Vec<UnreadLinesAnswer> {
        self.close();
        self.found
    }
}

/// From the client to the host of the machine that carries the card.
pub(crate) fn usual_path(system: &System, router: &Router) -> Result<String, Failure> {
    check_verbs(system)?;
    let server = system.machines.iter().find(|machine| machine.prefix.is_empty());
    let host = server.and_then(|server| server.endpoints.iter().find(|own| own.processor.is_host));
    let is_usual = |path: &offpath_route::Path| {
        path.requester == "client"
            && path.engine.is_none()
            && Some(&path.responder) == host.map(|own| &own.name)
    };
    let usual = router.paths_of(offpath_route::Verb::Read).into_iter().find(is_usual);
    usual.map(|path| path.to_string()).ok_or_else(|| {
        Failure::input(
            format!("the testbed `{}` has no client whose NIC reaches the host", system.testbed),
            format!(
                "say from whom to whom the runs go by `--path`; `offpath path {}` lists paths",
                system.device
            ),
        )
    })
}

impl DiagnoseAnswer {
    fn of(system: &System, path: String, found: Diagnosis, least_share: Option<f64>) -> DiagnoseAnswer {
        let reaching = least_share
            .map(|least| found.points.iter().filter(|point| point.least_share() >= least).count() as u64);
        let undecided = least_share.map(|least| {
            let is_undecided = |point: &&DiagnosedPoint| {
                let share = point.least_share();
                share < least && share >= least * point.leeway.least
            };
            found.points.iter().filter(is_undecided).count() as u64
        });
        let guessed = system.numbers.values().filter(|number| number.provenance.is_guess()).count() as u64;
        DiagnoseAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            unlike_ends: unlike_ends(system, &path),
            path,
            verdict: found.verdict.name(),
            median_share: Some(found.median_share).filter(|share| share.is_finite()),
            least_share,
            reaching_rows: reaching,
            undecided_rows: undecided,
            not_accepted: Vec::new(),
            off_rows: found.off.len() as u64,
            worst_rows: found
                .off
                .iter()
                .take(MOST_WORST)
                .map(|place| DiagnosedPointAnswer::of(&found.points[*place]))
                .collect(),
            guessed_numbers: guessed,
            is_calibrated: !system.learnt_errors.is_empty(),
            numbers: system.numbers.len() as u64,
            points: found.points.iter().map(DiagnosedPointAnswer::of).collect(),
            shapes: found.shapes.iter().map(ShapeAnswer::of).collect(),
            causes: found.groups.iter().map(CauseGroupAnswer::of).collect(),
            explained_together_share: found.explained_together,
            questions: found.questions.iter().map(QuestionAnswer::of).collect(),
            assumed: found.assumed,
            contradictions: found.contradictions,
            skipped: found.skipped.into_iter().map(|(why, count)| SkippedAnswer { count, why }).collect(),
            repeated: Vec::new(),
            oddities: Vec::new(),
            failed: Vec::new(),
            unread_lines: 0,
            unread_below: Vec::new(),
            nothing_comparable: None,
        }
    }

    /// Why the logs pass no acceptance test: rows that do not reach the share, or that nobody can have, what was not measured or is not
    /// read, and what the collection says. `above` names rows that are above what is expected, `faults` what the collection has.
    fn objections(&self, above: &[String], faults: Vec<String>) -> Vec<String> {
        let (Some(least), Some(reaching)) = (self.least_share, self.reaching_rows) else { return Vec::new() };
        let mut found = Vec::new();
        let all = self.points.len() as u64;
        if all == 0 {
            found.push("no row could be compared".to_string());
        }
        if reaching < all {
            let rows = counted(all - reaching, "row");
            let by_mean = self.points.iter().filter(|point| point.share >= least).count() as u64 - reaching;
            let by_mean = match by_mean {
                0 => String::new(),
                count => format!(", {count} by the mean and not by the median"),
            };
            found.push(format!("{rows} of {all} below {:.0}% of what is expected{by_mean}", least * 100.0));
        }
        if let Some(first) = above.first() {
            let rows = counted(above.len() as u64, "row");
            found.push(format!(
                "{rows} above what is expected by more than what is not known of the card leaves open: {first}{}",
                and_more(above.len() as u64 - 1)
            ));
        }
        let impossible = [
            ("above-line-rate", "more than the ports carry"),
            ("timer-wait", "an operation took as long as a timer of the transport"),
        ];
        for (name, what) in impossible {
            let of_name: Vec<&ShapeAnswer> = self.shapes.iter().filter(|shape| shape.name == name).collect();
            if let Some(first) = of_name.first() {
                let more = and_more(of_name.len() as u64 - 1);
                found.push(format!("{what}: {}:{}-{}{more}", first.file, first.first_line, first.last_line));
            }
        }
        if let Some(first) = self.failed.first() {
            let more = and_more(self.failed.len() as u64 - 1);
            found.push(format!(
                "not measured or not compared: {}:{}{more}, which stand below",
                first.file, first.line
            ));
        }
        for unread in &self.unread_below {
            found.push(format!(
                "not read, below rows of its file: {}:{}{}: {}; whether it says that a run failed nobody knows. Take it out, or make it a \
                 comment by `#`, where it does not",
                unread.file,
                unread.line,
                and_more(unread.count - 1),
                unread.why
            ));
        }
        found.extend(self.contradictions.iter().map(|said| format!("a contradiction: {said}")));
        found.extend(faults.into_iter().map(|said| format!("the collection says: {said}")));
        found
    }

    /// Whether the logs pass the acceptance test that is asked for; without one, whether any row could be compared.
    pub fn is_met(&self) -> bool {
        match self.least_share {
            Some(_) => self.not_accepted.is_empty(),
            None => !self.points.is_empty(),
        }
    }
}

fn and_more(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" and {count} more") }
}

impl DiagnoseAnswer {
    /// Whether a latency's mean lies far above its median, which is what is compared.
    fn has_tail(&self) -> bool {
        self.shapes.iter().any(|shape| ["tail", "timer-wait"].contains(&shape.name))
    }
}

impl NothingComparableAnswer {
    fn of(
        figures: BTreeMap<(&'static str, String), u64>,
        lines: Vec<UnreadLinesAnswer>,
    ) -> NothingComparableAnswer {
        NothingComparableAnswer {
            figures: figures
                .into_iter()
                .map(|((tool, metric), count)| FoundFiguresAnswer { tool, metric, count })
                .collect(),
            lines,
            measure: "`ib_read_bw -a SERVER` and `ib_read_lat -a SERVER` over RC, and keep what the client prints, head included"
                .to_string(),
        }
    }
}

impl DiagnosedPointAnswer {
    fn of(point: &DiagnosedPoint) -> DiagnosedPointAnswer {
        let value = |figure: &LogFigure| figure.value();
        DiagnosedPointAnswer {
            file: point.file.to_string(),
            line: point.line,
            run: point.run.clone(),
            test: point.test.clone(),
            payload_bytes: point.payload.get(),
            metric: point.metric.clone(),
            measured: value(&point.measured),
            expected: value(&point.expected),
            expected_as_stated: value(&point.expected_as_stated),
            share: point.share,
            mean_share: point.mean_share,
            share_as_stated: point.share_as_stated,
            share_as_stated_low_95: point.share_as_stated / point.leeway_as_stated.most,
            share_as_stated_high_95: point.share_as_stated / point.leeway_as_stated.least,
            basis: point.leeway_as_stated.basis,
            bound_by: point.bound_by.clone(),
        }
    }
}

impl ShapeAnswer {
    fn of(shape: &RowShape) -> ShapeAnswer {
        ShapeAnswer {
            file: shape.file.to_string(),
            first_line: shape.lines.0,
            last_line: shape.lines.1,
            name: shape.name,
            what: shape.what.clone(),
        }
    }
}

impl CauseGroupAnswer {
    fn of(group: &CauseGroup) -> CauseGroupAnswer {
        let finding = |finding: &Finding| FindingAnswer {
            cause: finding.cause.name(),
            meaning: finding.cause.meaning(),
            degree: finding.degree.clone(),
            explained_share: finding.explained_share,
            evidence: finding.evidence.clone(),
            command: finding.cause.command(),
        };
        CauseGroupAnswer {
            explained_share: group.explained_share,
            causes: group.findings.iter().map(finding).collect(),
        }
    }
}

impl QuestionAnswer {
    fn of(question: &Question) -> QuestionAnswer {
        QuestionAnswer { what: question.what.clone(), command: question.command.clone() }
    }
}
