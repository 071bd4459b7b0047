//! What `offpath import` answers: the figures of logs that other tools wrote, each with its meaning, its conditions and
//! its line.

mod rank;
mod rows;
mod stream;
mod text;

use crate::machine::{GZIP, is_archive};
use crate::{ByName, SCHEMA_VERSION};
use offpath_logs::{
    LineAccount, LogDetail, LogItem, LogMeasurement, LogReader, LogRemark, LogSide, RemarkKind,
};
use offpath_profile::{open_file, refuse_named_pipe};
use offpath_terminal::failure::Failure;
use serde::Serialize;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

pub use rank::{BesideMachineAnswer, RankAnswer, RankedWorkAnswer, rank};
pub use rows::FigureRows;
pub use stream::ImportStream;
pub use text::ImportTables;

/// Logs to be read.
#[derive(Clone, Debug, Default)]
pub struct ImportRequest {
    /// Their files; `-` is standard input.
    pub logs: Vec<PathBuf>,
}

/// The figures of logs.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// Every figure, in the order of the logs.
    pub measurements: Vec<ImportedFigureAnswer>,
    /// Lines that give no figure and that a reader of the figures has to know of.
    pub remarks: Vec<ImportRemarkAnswer>,
    /// What became of the lines of each file.
    pub files: Vec<ImportedFileAnswer>,
}

/// What became of the lines of a file: each counts once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportedFileAnswer {
    /// The file, as it was named.
    pub file: String,
    /// All lines.
    pub lines: u64,
    /// Lines that gave figures.
    pub measured_lines: u64,
    /// Heads, conditions and remarks of a known tool, and rows all of whose figures are withheld.
    pub known_lines: u64,
    /// Lines with nothing on them but rulers.
    pub blank_lines: u64,
    /// Lines in which a tool reports a failure.
    pub failed_lines: u64,
    /// Lines that no known tool prints.
    pub unknown_lines: u64,
    /// Tables of perftest of which nothing says whether they are whole, since no line of dashes is above or below them.
    pub open_tables: u64,
}

/// One figure, and what it was taken under. What the log does not say is null.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportedFigureAnswer {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// The row or run that the figure is of, in the order of the file, from 1: figures that share it are of one run.
    pub row: u64,
    /// Who measured.
    pub tool: &'static str,
    /// What the figure means, with the unit of `value` and `step`, as in `latency_ns_p99` or `bandwidth_gbit_per_s_mean`.
    pub metric: String,
    /// The figure.
    pub value: f64,
    /// What one unit of the last printed digit is worth: the figure is known to half of it.
    pub step: f64,
    /// For a latency, from where to where.
    pub span: Option<&'static str>,
    /// The program or test; a stressor, a job or a collective.
    pub program: Option<String>,
    /// What an operation does.
    pub operation: Option<&'static str>,
    /// Bytes of an operation.
    pub payload_bytes: Option<u64>,
    /// Queue pairs.
    pub queue_pairs: Option<u64>,
    /// Requests in flight of each queue pair or job.
    pub tx_depth: Option<u64>,
    /// Receives that are posted ahead.
    pub rx_depth: Option<u64>,
    /// Requests behind one doorbell.
    pub post_list: Option<u64>,
    /// Requests for each completion.
    pub cq_moderation: Option<u64>,
    /// The largest payload that goes inline.
    pub inline_bytes: Option<u64>,
    /// READs and atomics in flight of each queue pair.
    pub outstanding_reads: Option<u64>,
    /// Payload of a packet on the network.
    pub mtu_bytes: Option<u64>,
    /// Which ways traffic goes: `one` or `both`, whose figures are sums of both.
    pub directions: Option<&'static str>,
    /// RC, UC, UD, XRC, DC, SRD or RawEth.
    pub connection: Option<String>,
    /// Operations that were counted, of all queue pairs together.
    pub iterations: Option<u64>,
    /// How long the run was asked to take.
    pub duration_s: Option<f64>,
    /// The device, as its driver names it.
    pub device: Option<String>,
    /// Ethernet or InfiniBand, as the tool writes it.
    pub link_layer: Option<String>,
    /// Index of the GID.
    pub gid_index: Option<u64>,
    /// Which side wrote the log: `requester` or `responder`.
    pub side: Option<&'static str>,
    /// What a reader has to know.
    pub cautions: Vec<&'static str>,
    /// What one tool alone states, by keys that name their units.
    pub more: ByName<DetailAnswer>,
}

/// A condition that one tool alone states.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum DetailAnswer {
    /// As the tool writes it.
    Text(String),
    /// A whole number.
    Number(u64),
    /// On or off.
    Switch(bool),
}

#[cfg(test)]
impl schemars::JsonSchema for DetailAnswer {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Detail".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({ "type": ["string", "integer", "boolean"] })
    }
}

/// Lines that give no figure.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ImportRemarkAnswer {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: u64,
    /// How many lines it is about, from that one on.
    pub lines: u64,
    /// `unknown`: no known tool prints the line; `failure`: the tool failed and says so; `withheld`: a figure on the line
    /// cannot be typed without guessing, or the line stands within a table and is not read; `unended`: the line begins a run that has no
    /// row, stands behind a gap of a sweep, or is the last of a table or file that ends before its run did.
    #[cfg_attr(test, schemars(extend("enum" = ["unknown", "failure", "withheld", "unended"])))]
    pub kind: &'static str,
    /// The start of the line.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

/// Reads logs, whoever wrote them.
///
/// # Errors
/// Where a file cannot be read.
///
/// ```no_run
/// use offpath_answers::import::{ImportRequest, import};
/// let answer = import(&ImportRequest { logs: vec!["ib_write_bw.log".into()] })?;
/// for figure in &answer.measurements {
///     println!("{}:{}: {} = {}", figure.file, figure.line, figure.metric, figure.value);
/// }
/// # Ok::<(), offpath_answers::Failure>(())
/// ```
pub fn import(request: &ImportRequest) -> Result<ImportAnswer, Failure> {
    let (mut measurements, mut remarks) = (Vec::new(), Vec::new());
    let files = import_each(request, |file, item| {
        match item {
            LogItem::Measurement(figure) => measurements.push(ImportedFigureAnswer::of(file, &figure)),
            LogItem::Remark(remark) => remarks.push(ImportRemarkAnswer::of(file, remark)),
        }
        Ok(())
    })?;
    Ok(ImportAnswer { schema_version: SCHEMA_VERSION, measurements, remarks, files })
}

/// Reads logs and hands over what they give one by one with the file's name, so that memory does not grow with them;
/// what became of the lines of each file.
///
/// # Errors
/// Where a file cannot be read, or `each` fails.
pub fn import_each(
    request: &ImportRequest,
    mut each: impl FnMut(&str, LogItem) -> Result<(), Failure>,
) -> Result<Vec<ImportedFileAnswer>, Failure> {
    let from_input = request.logs.iter().filter(|log| log.as_os_str() == "-").count();
    if from_input > 1 {
        return Err(Failure::input(
            format!("`-` is named {from_input} times, and standard input can be read once"),
            "name `-` once",
        ));
    }
    // A log that is missing is told before the others are read.
    for log in &request.logs {
        checked(log)?;
    }
    let mut files = Vec::new();
    for log in &request.logs {
        files.push(import_from(&log.display().to_string(), opened(log)?, &mut each)?);
    }
    Ok(files)
}

/// Reads one log.
pub(crate) fn import_from(
    file: &str,
    mut input: impl BufRead,
    mut each: impl FnMut(&str, LogItem) -> Result<(), Failure>,
) -> Result<ImportedFileAnswer, Failure> {
    if input.fill_buf().map_err(|error| unreadable(file, &error))?.starts_with(GZIP) {
        return Err(Failure::input(
            format!("`{file}` is compressed by gzip, and is not unpacked here"),
            "`gunzip` it, or name `-` and pipe what `zcat` prints of it",
        ));
    }
    if is_archive(input.fill_buf().map_err(|error| unreadable(file, &error))?) {
        return Err(Failure::input(
            format!("`{file}` is an archive, as `offpath collect` writes one of a machine, and no log"),
            "`offpath new device NAME --from FILE` and `offpath diagnose LOG --collection FILE` read what a machine says of itself; of \
             other archives unpack the logs and name them",
        ));
    }
    let mut reader = LogReader::new(input);
    for item in reader.by_ref() {
        each(file, item.map_err(|error| unreadable(file, &error))?)?;
    }
    Ok(ImportedFileAnswer::of(file.to_string(), reader.account(), reader.open_tables()))
}

/// Refuses what is no file, without opening what can be read once.
fn checked(log: &Path) -> Result<(), Failure> {
    if log.as_os_str() == "-" {
        return Ok(());
    }
    match log.metadata() {
        Ok(found) if found.is_dir() => Err(Failure::input(
            format!("`{}` is a folder, and a log is a file", log.display()),
            format!("name its files, as in `offpath import {}/*`", log.display()),
        )),
        Ok(_) => refuse_named_pipe(log).map_err(|error| unreadable(&log.display().to_string(), &error)),
        Err(error) => Err(unreadable(&log.display().to_string(), &error)),
    }
}

fn opened(log: &Path) -> Result<Box<dyn BufRead>, Failure> {
    if log.as_os_str() == "-" {
        return Ok(Box::new(BufReader::new(std::io::stdin())));
    }
    let file = open_file(log).map_err(|error| unreadable(&log.display().to_string(), &error))?;
    Ok(Box::new(BufReader::with_capacity(1 << 16, file)))
}

fn unreadable(file: &str, error: &std::io::Error) -> Failure {
    Failure::input(
        format!("`{file}` cannot be read: {error}"),
        "check the name and that it may be read; `-` is standard input",
    )
}

impl ImportedFileAnswer {
    fn of(file: String, account: LineAccount, open_tables: u64) -> ImportedFileAnswer {
        ImportedFileAnswer {
            file,
            lines: account.lines(),
            measured_lines: account.measured,
            known_lines: account.known,
            blank_lines: account.blank,
            failed_lines: account.failed,
            unknown_lines: account.unknown,
            open_tables,
        }
    }
}

impl ImportRemarkAnswer {
    /// A remark of a file.
    pub fn of(file: &str, remark: LogRemark) -> ImportRemarkAnswer {
        ImportRemarkAnswer {
            file: file.to_string(),
            line: remark.line,
            lines: remark.lines,
            kind: RemarkKind::name(remark.kind),
            text: remark.text,
            why: remark.why.into_owned(),
        }
    }

    /// The remark as a line of its own, for who reads figures elsewhere.
    pub fn sentence(&self) -> String {
        let ImportRemarkAnswer { file, line, lines, kind, text, why } = self;
        let place = match lines {
            1 => format!("{file}:{line}"),
            _ => format!("{file}:{line}-{}", line + lines - 1),
        };
        format!("{place}: {kind}: {why}: `{}`", text.escape_debug())
    }
}

impl ImportedFigureAnswer {
    /// A figure of a file.
    pub fn of(file: &str, figure: &LogMeasurement) -> ImportedFigureAnswer {
        let conditions = &figure.conditions;
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_string);
        let detail = |detail: &LogDetail| match detail {
            LogDetail::Text(text) => DetailAnswer::Text(text.to_string()),
            LogDetail::Number(number) => DetailAnswer::Number(*number),
            LogDetail::Switch(on) => DetailAnswer::Switch(*on),
        };
        ImportedFigureAnswer {
            file: file.to_string(),
            line: figure.line,
            row: figure.row,
            tool: figure.tool.name(),
            metric: figure.key(),
            value: figure.figure.value(),
            step: figure.step.value(),
            span: figure.metric.span.map(|span| span.name()),
            program: text(&conditions.program),
            operation: conditions.operation.map(|operation| operation.name()),
            payload_bytes: conditions.payload.map(|bytes| bytes.get()),
            queue_pairs: conditions.queue_pairs,
            tx_depth: conditions.tx_depth,
            rx_depth: conditions.rx_depth,
            post_list: conditions.post_list,
            cq_moderation: conditions.cq_moderation,
            inline_bytes: conditions.inline.map(|bytes| bytes.get()),
            outstanding_reads: conditions.outstanding_reads,
            mtu_bytes: conditions.mtu.map(|bytes| bytes.get()),
            directions: conditions.directions.map(|directions| directions.name()),
            connection: text(&conditions.connection),
            iterations: conditions.iterations,
            duration_s: conditions.duration.map(|time| time.as_seconds()),
            device: text(&conditions.device),
            link_layer: text(&conditions.link_layer),
            gid_index: conditions.gid_index,
            side: conditions.side.map(LogSide::name),
            cautions: figure.cautions.iter().map(|caution| caution.name()).collect(),
            more: conditions.more.iter().map(|(key, own)| (key.to_string(), detail(own))).collect(),
        }
    }

    /// The names of [`cells`](ImportedFigureAnswer::cells).
    pub const COLUMNS: [&'static str; 29] = [
        "file",
        "line",
        "row",
        "tool",
        "metric",
        "value",
        "step",
        "span",
        "program",
        "operation",
        "payload_bytes",
        "queue_pairs",
        "tx_depth",
        "rx_depth",
        "post_list",
        "cq_moderation",
        "inline_bytes",
        "outstanding_reads",
        "mtu_bytes",
        "directions",
        "connection",
        "iterations",
        "duration_s",
        "device",
        "link_layer",
        "gid_index",
        "side",
        "cautions",
        "more",
    ];

    /// The figure as a row of text, a cell for each key of its JSON. What the log does not say is empty, cautions are
    /// joined by blanks, and further conditions are `key=value`, joined by `; `.
    pub fn cells(&self) -> [String; 29] {
        fn number<T: ToString>(value: Option<T>) -> String {
            value.map_or_else(String::new, |value| value.to_string())
        }
        let word = |text: Option<&str>| text.unwrap_or_default().to_string();
        let more: Vec<String> = self.more.iter().map(|(key, own)| format!("{key}={own}")).collect();
        [
            self.file.clone(),
            self.line.to_string(),
            self.row.to_string(),
            self.tool.to_string(),
            self.metric.clone(),
            self.value.to_string(),
            self.step.to_string(),
            word(self.span),
            word(self.program.as_deref()),
            word(self.operation),
            number(self.payload_bytes),
            number(self.queue_pairs),
            number(self.tx_depth),
            number(self.rx_depth),
            number(self.post_list),
            number(self.cq_moderation),
            number(self.inline_bytes),
            number(self.outstanding_reads),
            number(self.mtu_bytes),
            word(self.directions),
            word(self.connection.as_deref()),
            number(self.iterations),
            number(self.duration_s),
            word(self.device.as_deref()),
            word(self.link_layer.as_deref()),
            number(self.gid_index),
            word(self.side),
            self.cautions.join(" "),
            more.join("; "),
        ]
    }
}

impl std::fmt::Display for DetailAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            DetailAnswer::Text(text) => text.fmt(f),
            DetailAnswer::Number(number) => number.fmt(f),
            DetailAnswer::Switch(on) => f.write_str(if *on { "on" } else { "off" }),
        }
    }
}
