//! A log, line by line: who wrote each line is told from what it says, and every line is accounted for.

use crate::document::{self, Node};
use crate::failure::says_failure;
use crate::measurement::{LogCaution, LogMeasurement, LogTool};
use crate::tools::{LineTool, MeasuredSuite, all_tools, has_perftest_row, perftest_fails, read_document};
use std::borrow::Cow;
use std::collections::{BTreeSet, VecDeque};
use std::io::{self, BufRead};

/// Bytes that are kept of one line, and of one JSON document: more is no log's, and would not leave memory flat.
const LONGEST: usize = 16 << 20;

/// Items that wait at most for a table to end.
const MOST_HELD: usize = 4096;

/// Characters of a line that a remark repeats.
const EXCERPT: usize = 200;

/// What a log holds, in its order.
#[derive(Clone, Debug, PartialEq)]
pub enum LogItem {
    /// A figure.
    Measurement(LogMeasurement),
    /// Something that a reader of the figures has to know.
    Remark(LogRemark),
}

/// Why a remark is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RemarkKind {
    /// The line is of no known tool, or stands where its tool never prints it.
    Unknown,
    /// The tool failed, and says so in place of figures.
    Failure,
    /// The line is known, and a figure on it cannot be typed without guessing.
    Withheld,
    /// The line begins a run that has no row, is the row behind a gap of a sweep, or is the last of a table or file that ends
    /// before its run did or lacks sizes that its command asks for.
    Unended,
}

impl RemarkKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            RemarkKind::Unknown => "unknown",
            RemarkKind::Failure => "failure",
            RemarkKind::Withheld => "withheld",
            RemarkKind::Unended => "unended",
        }
    }
}

/// What is said of lines that give no figure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogRemark {
    /// The line, from 1.
    pub line: u64,
    /// How many lines it is about, from that one on.
    pub lines: u64,
    /// Of which kind it is.
    pub kind: RemarkKind,
    /// The start of the line.
    pub text: String,
    /// What is wrong with it.
    pub why: Cow<'static, str>,
}

impl LogRemark {
    /// Whether somebody wrote the line around runs, and no program at its end: a comment, a caption, or what was asked of a shell.
    pub fn is_note(&self) -> bool {
        let text = self.text.trim();
        let rule = |c: char| "-=*_~+#".contains(c);
        let is_caption = text.ends_with(':') || text.starts_with(rule) && text.ends_with(rule);
        let mut words = text.split_ascii_whitespace().take(3);
        let is_prompt = |word: &str| {
            let behind = word.strip_suffix(['$', '#']);
            behind.is_some_and(|own| own.is_empty() || own.contains(['@', ']', '~', '/', ':']))
        };
        is_caption || text.starts_with(['#', '+']) || words.any(is_prompt)
    }
}

impl LogRemark {
    /// Whether the line says that a run failed, as perftest says it or the system, its launcher or its shell, and no note does.
    pub fn says_failure(&self) -> bool {
        let small = self.text.trim().to_ascii_lowercase();
        let is_banner = BANNERS.iter().any(|of| small.contains(of));
        !is_banner
            && !self.is_note()
            && (says_failure(&small) || small.len() <= 1_000 && perftest_fails(untitled(untagged(&small))))
    }

    /// Whether the line is a row or a head of perftest behind something else, such as a time or the name of a machine.
    pub fn is_row(&self) -> bool {
        !self.is_note() && has_perftest_row(&self.text)
    }
}

/// Failures of which a machine's banner speaks, and no run does.
const BANNERS: &[&str] = &["login", "failed units"];

/// A line without the name before it by which a launcher says whose it is, as in `node1: ` and `[node1] `.
fn untitled(text: &str) -> &str {
    let behind = match text.strip_prefix('[') {
        Some(rest) => rest.split_once("] "),
        None => text.split_once(": ").filter(|(name, _)| !name.contains(char::is_whitespace)),
    };
    behind.map_or(text, |(_, rest)| rest.trim_start())
}

/// What became of a log's lines: each counts once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LineAccount {
    /// Those that gave a figure.
    pub measured: u64,
    /// Heads, conditions and remarks of a known tool, rows all of whose figures are withheld, and lines of a table that are not
    /// read.
    pub known: u64,
    /// Those with nothing on them but rulers.
    pub blank: u64,
    /// Those that report a failure, and give no figure.
    pub failed: u64,
    /// Those that nobody knows.
    pub unknown: u64,
}

impl LineAccount {
    /// All lines.
    pub fn lines(&self) -> u64 {
        self.measured + self.known + self.blank + self.failed + self.unknown
    }
}

/// A line that a tool looks at.
pub(crate) struct LogLine<'a> {
    pub(crate) number: u64,
    /// Without what quotes it, and without blanks around it.
    pub(crate) text: &'a str,
    /// Whether the log ends before the line does: its last number may lack digits.
    pub(crate) is_cut: bool,
}

/// What a tool says of a line.
pub(crate) enum Taken {
    /// It is another's.
    No,
    /// It is the tool's, and gives no figure by itself.
    Known,
    /// It gave figures.
    Measured,
    /// It reports a failure.
    Failure,
    /// It is nobody else's either, and why it cannot be read.
    Unknown(Cow<'static, str>),
}

/// Where tools put what they find.
#[derive(Default)]
pub(crate) struct Sink {
    items: VecDeque<LogItem>,
    /// The place of the first item that waits, since what follows may show that it is none of its head's.
    held: Option<usize>,
    /// Tables of which nothing says whether their runs ended.
    open_tables: u64,
    /// Rows so far.
    rows: u64,
    /// What the file of `offpath measure` that is read means to have.
    pub(crate) suite: Option<MeasuredSuite>,
}

impl Sink {
    /// Has what is put from here on wait, and nothing before it.
    pub(crate) fn hold(&mut self) {
        self.held = Some(self.items.len());
    }

    /// Changes the figures that wait.
    pub(crate) fn revise(&mut self, change: impl FnMut(&mut LogMeasurement)) {
        let waiting = self.items.iter_mut().skip(self.held.unwrap_or(usize::MAX));
        let figures = waiting.filter_map(|item| match item {
            LogItem::Measurement(measurement) => Some(measurement),
            LogItem::Remark(_) => None,
        });
        figures.for_each(change);
    }

    /// The next item that does not wait.
    fn next(&mut self, is_ended: bool) -> Option<LogItem> {
        if is_ended || self.items.len() > MOST_HELD {
            self.held = None;
        }
        if let Some(held) = &mut self.held {
            *held = held.checked_sub(1)?;
        }
        self.items.pop_front()
    }

    /// The file of `offpath measure` that was read is over; `is_cut` where it ends within a record.
    pub(crate) fn end_suite(&mut self, is_cut: bool) {
        if let Some(suite) = self.suite.take() {
            suite.tell_missing(is_cut, self);
        }
    }

    /// A table is over, and nothing says whether its run is.
    pub(crate) fn open_table(&mut self) {
        self.open_tables += 1;
    }

    /// Whether what was put from a place on has a figure.
    fn has_figure_from(&self, place: usize) -> bool {
        self.items.iter().skip(place).any(|item| matches!(item, LogItem::Measurement(_)))
    }

    /// The number of the row or run whose figures are put next.
    pub(crate) fn begin_row(&mut self) -> u64 {
        self.rows += 1;
        self.rows
    }

    pub(crate) fn measurement(&mut self, measurement: LogMeasurement) {
        self.items.push_back(LogItem::Measurement(measurement));
    }

    pub(crate) fn remark(
        &mut self,
        kind: RemarkKind,
        line: u64,
        text: &str,
        why: impl Into<Cow<'static, str>>,
    ) {
        self.remark_of(kind, line, 1, text, why.into());
    }

    fn remark_of(&mut self, kind: RemarkKind, line: u64, lines: u64, text: &str, why: Cow<'static, str>) {
        let text: String = text.chars().take(EXCERPT).collect();
        // Of several figures of one line that cannot be taken the line is told once.
        if let Some(LogItem::Remark(last)) = self.items.back()
            && (last.kind, last.line, last.lines, &last.text, &last.why) == (kind, line, lines, &text, &why)
        {
            return;
        }
        self.items.push_back(LogItem::Remark(LogRemark { line, lines, kind, text, why }));
    }
}

/// Reads a log of one or several tools, one line at a time.
///
/// An item is an error where the log cannot be read on; nothing in it is one.
///
/// ```
/// use offpath_logs::{LogItem, LogReader};
/// let log = "                    RDMA_Read BW Test
///  #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]
///  65536      1000             92.31              92.30             0.176048
/// ";
/// let mut reader = LogReader::new(log.as_bytes());
/// let mut found = Vec::new();
/// for item in reader.by_ref() {
///     if let LogItem::Measurement(figure) = item? {
///         found.push(format!("{} = {} at line {}", figure.key(), figure.figure.value(), figure.line));
///     }
/// }
/// assert_eq!(found[1], "bandwidth_gbit_per_s_mean = 92.3 at line 3");
/// assert_eq!(reader.account().known, 2);
/// # Ok::<(), std::io::Error>(())
/// ```
pub struct LogReader<R> {
    input: R,
    number: u64,
    ended: bool,
    /// Whether the log ended before the last line did.
    is_cut: bool,
    account: LineAccount,
    sink: Sink,
    tools: Vec<Box<dyn LineTool>>,
    /// The tool that took the line before: it is asked first.
    last: usize,
    /// Lines of a JSON document that has not ended.
    open: Option<Capture>,
}

/// A JSON document that is being collected.
struct Capture {
    first: u64,
    lines: Vec<String>,
    bytes: usize,
    depth: usize,
}

impl<R: BufRead> LogReader<R> {
    /// A reader from the start of a log.
    pub fn new(input: R) -> LogReader<R> {
        LogReader {
            input,
            number: 0,
            ended: false,
            is_cut: false,
            account: LineAccount::default(),
            sink: Sink::default(),
            tools: all_tools(),
            last: 0,
            open: None,
        }
    }

    /// What became of the lines that were read so far.
    pub fn account(&self) -> LineAccount {
        self.account
    }

    /// How many tables there were so far of which nothing says whether they are whole: rows of a sweep may be missing behind
    /// them.
    pub fn open_tables(&self) -> u64 {
        self.sink.open_tables
    }

    /// Reads a line, without its end; `None` at the end of the log. What is beyond the longest line is dropped and
    /// counted.
    fn read_line(&mut self) -> io::Result<Option<(Vec<u8>, usize)>> {
        self.is_cut = false;
        let (mut line, mut dropped, mut any) = (Vec::new(), 0, false);
        loop {
            let buffer = match self.input.fill_buf() {
                Ok(buffer) => buffer,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if buffer.is_empty() {
                self.is_cut = any;
                return Ok(any.then_some((line, dropped)));
            }
            any = true;
            let end = buffer.iter().position(|byte| *byte == b'\n');
            let part = &buffer[..end.unwrap_or(buffer.len())];
            let kept = part.len().min(LONGEST - line.len());
            line.extend_from_slice(&part[..kept]);
            dropped += part.len() - kept;
            let used = part.len() + usize::from(end.is_some());
            self.input.consume(used);
            if end.is_some() {
                return Ok(Some((line, dropped)));
            }
        }
    }

    /// Looks at the next line.
    fn step(&mut self) -> io::Result<()> {
        let Some((bytes, dropped)) = self.read_line()? else {
            self.ended = true;
            let is_cut = self.open.is_some();
            self.abandon("the JSON document does not end");
            for tool in &mut self.tools {
                tool.finish(&mut self.sink);
            }
            self.sink.end_suite(is_cut);
            return Ok(());
        };
        self.number += 1;
        let text = plain(&bytes);
        // What quotes a log quotes each line of a document.
        let body = untagged(unquoted(&text));
        if dropped > 0 {
            self.account.unknown += 1;
            let why = format!("the line is {} bytes long; at most {LONGEST} are read", bytes.len() + dropped);
            self.sink.remark(RemarkKind::Unknown, self.number, &text, why);
            return Ok(());
        }
        // A document that begins anew shows that the one before was cut off, where no list holds both.
        let is_cut = |open: &Capture| {
            open.depth != 1 || open.lines.first().is_none_or(|line| !line.trim().starts_with('['))
        };
        if self.open.as_ref().is_some_and(is_cut) && body.starts_with(['{']) && begins_document(body) {
            self.abandon("the JSON document does not end");
        }
        match &mut self.open {
            Some(open) => {
                open.add(body.to_string());
                self.close_document();
            }
            None if begins_document(body) => {
                let mut open = Capture { first: self.number, lines: Vec::new(), bytes: 0, depth: 0 };
                open.add(body.to_string());
                self.open = Some(open);
                self.close_document();
            }
            None => self.look_at(self.number, &text),
        }
        Ok(())
    }

    /// Reads the document that is open, where its last bracket is closed.
    fn close_document(&mut self) {
        let Some(open) = &self.open else { return };
        if open.bytes > LONGEST {
            self.abandon("the JSON document is longer than 16 MiB");
        } else if open.depth == 0
            && let Some(open) = self.open.take()
        {
            let text = open.lines.join("\n");
            let read = document::read(&text, open.first).and_then(|node| self.take_document(&node));
            match read {
                Some((measured, failed)) => {
                    let lines = open.lines.len() as u64;
                    let measured = measured.min(lines);
                    let failed = failed.min(lines - measured);
                    self.account.measured += measured;
                    self.account.failed += failed;
                    self.account.known += lines - measured - failed;
                }
                None => self.give_back(open, "the JSON document is of no known tool"),
            }
        }
    }

    /// How many lines of a document gave figures, and how many others report a failure; nothing where no tool knows it.
    fn take_document(&mut self, node: &Node) -> Option<(u64, u64)> {
        let before = self.sink.items.len();
        if !read_document(node, &mut self.sink) {
            return None;
        }
        let (mut measured, mut failed) = (BTreeSet::new(), BTreeSet::new());
        for item in self.sink.items.iter().skip(before) {
            match item {
                LogItem::Measurement(measurement) => measured.insert(measurement.line),
                LogItem::Remark(remark) => remark.kind == RemarkKind::Failure && failed.insert(remark.line),
            };
        }
        Some((measured.len() as u64, failed.difference(&measured).count() as u64))
    }

    /// Gives up the document that is open.
    fn abandon(&mut self, why: &'static str) {
        if let Some(open) = self.open.take() {
            self.give_back(open, why);
        }
    }

    /// Lines that looked like a document are lines like others: those that a tool knows are not lost. Those that none
    /// knows are one remark as far as they follow each other.
    fn give_back(&mut self, open: Capture, why: &'static str) {
        let mut unknown: Option<(u64, u64, String)> = None;
        for (number, line) in (open.first..).zip(open.lines) {
            let known = self.offer(number, &line);
            match (&mut unknown, known) {
                (Some((_, lines, _)), Offered::Nobody(_)) => *lines += 1,
                (None, Offered::Nobody(_)) => unknown = Some((number, 1, line)),
                (_, Offered::Taken) => {
                    if let Some((first, lines, text)) = unknown.take() {
                        self.sink.remark_of(RemarkKind::Unknown, first, lines, text.trim(), why.into());
                    }
                }
            }
        }
        if let Some((first, lines, text)) = unknown {
            self.sink.remark_of(RemarkKind::Unknown, first, lines, text.trim(), why.into());
        }
    }

    /// Looks at a line that belongs to no document.
    fn look_at(&mut self, number: u64, text: &str) {
        if let Offered::Nobody(why) = self.offer(number, text) {
            self.sink.remark(RemarkKind::Unknown, number, text.trim(), why);
        }
    }

    /// Looks at a line that no tool reads, `why`: a program that fails says so in words of its libraries, its launcher or its
    /// shell, and what stands within a table may be a row of it.
    fn miss(&mut self, line: &LogLine<'_>, why: Option<Cow<'static, str>>) -> Offered {
        if says_failure(line.text) && self.tools.iter_mut().any(|tool| tool.fail()) {
            self.account.failed += 1;
            self.sink.remark(RemarkKind::Failure, line.number, line.text, "the run failed");
            return Offered::Taken;
        }
        let mut is_within = false;
        for tool in &mut self.tools {
            is_within |= tool.miss(line, &mut self.sink);
        }
        if !is_within {
            self.account.unknown += 1;
            return Offered::Nobody(why.unwrap_or(Cow::Borrowed("no known tool prints such a line")));
        }
        self.account.known += 1;
        let why = why.unwrap_or(Cow::Borrowed("the line stands within a table, and no known tool prints it"));
        self.sink.remark(RemarkKind::Withheld, line.number, line.text, why);
        Offered::Taken
    }

    /// Offers a line to the tools, as it stands but for what quotes or tags it and then without the sign of a comment, and
    /// counts it.
    fn offer(&mut self, number: u64, text: &str) -> Offered {
        let mut body = unquoted(text.trim());
        let mut why = None;
        loop {
            body = untagged(body).trim_start();
            if is_ruler(body) {
                for tool in &mut self.tools {
                    tool.ruler(body, &mut self.sink);
                }
                self.account.blank += 1;
                return Offered::Taken;
            }
            let before = self.sink.items.len();
            match self.ask(&LogLine { number, text: body, is_cut: self.is_cut }) {
                Taken::No => {}
                // All of its figures were withheld, and reported.
                Taken::Measured if !self.sink.has_figure_from(before) => {
                    self.account.known += 1;
                    return Offered::Taken;
                }
                Taken::Known => {
                    self.account.known += 1;
                    return Offered::Taken;
                }
                Taken::Measured => {
                    self.account.measured += 1;
                    // perftest prints so many decimals, by which it tells itself what is cut.
                    if self.is_cut {
                        let of_line = self.sink.items.iter_mut().rev().map_while(|item| match item {
                            LogItem::Measurement(own) if own.line == number => Some(own),
                            _ => None,
                        });
                        let of_line = of_line.filter(|own| own.tool != LogTool::Perftest);
                        of_line.for_each(|own| own.cautions = own.cautions.with(LogCaution::UnendedLine));
                    }
                    return Offered::Taken;
                }
                Taken::Failure => {
                    self.account.failed += 1;
                    self.sink.remark(RemarkKind::Failure, number, body, "the tool failed");
                    return Offered::Taken;
                }
                Taken::Unknown(reason) => why = why.or(Some(reason)),
            }
            // What quotes a log may quote a line that begins with the same sign.
            match body.strip_prefix(['#', '>']) {
                Some(rest) => body = rest.trim_start(),
                None => break,
            }
        }
        self.miss(&LogLine { number, text: body, is_cut: self.is_cut }, why)
    }

    /// Asks the tools for a line: the one of the line before, the others, and then whether it is a row that lost its
    /// header.
    fn ask(&mut self, line: &LogLine<'_>) -> Taken {
        let mut why = None;
        let order = std::iter::once(self.last).chain((0..self.tools.len()).filter(|tool| *tool != self.last));
        for tool in order {
            match self.tools[tool].take(line, &mut self.sink) {
                Taken::No => {}
                Taken::Unknown(reason) => why = why.or(Some(reason)),
                taken => {
                    self.last = tool;
                    return taken;
                }
            }
        }
        for tool in 0..self.tools.len() {
            match self.tools[tool].take_fragment(line, &mut self.sink) {
                Taken::No => {}
                Taken::Unknown(reason) => why = why.or(Some(reason)),
                taken => {
                    self.last = tool;
                    return taken;
                }
            }
        }
        why.map_or(Taken::No, Taken::Unknown)
    }
}

/// Whether a tool took a line.
enum Offered {
    Taken,
    Nobody(Cow<'static, str>),
}

impl<R: BufRead> Iterator for LogReader<R> {
    type Item = io::Result<LogItem>;

    fn next(&mut self) -> Option<io::Result<LogItem>> {
        loop {
            if let Some(item) = self.sink.next(self.ended) {
                return Some(Ok(item));
            }
            if self.ended {
                return None;
            }
            if let Err(error) = self.step() {
                self.ended = true;
                return Some(Err(error));
            }
        }
    }
}

impl Capture {
    /// Takes a line, and follows its brackets; a string ends with its line.
    fn add(&mut self, line: String) {
        let (mut quoted, mut escaped) = (false, false);
        for byte in line.bytes() {
            match byte {
                _ if escaped => escaped = false,
                b'\\' if quoted => escaped = true,
                b'"' => quoted = !quoted,
                b'{' | b'[' if !quoted => self.depth += 1,
                b'}' | b']' if !quoted => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
        self.bytes += line.len() + 1;
        self.lines.push(line);
    }
}

/// Whether a line may begin a JSON document: prompts and tags of programs stand in brackets too.
fn begins_document(text: &str) -> bool {
    let text = text.trim();
    let inside = match text.as_bytes().first() {
        Some(b'{') => text[1..].trim_start(),
        Some(b'[') => {
            let inside = text[1..].trim_start();
            return inside.is_empty() || inside.starts_with(['{', '[']) && !inside.ends_with(['$', '#']);
        }
        _ => return false,
    };
    inside.is_empty()
        || inside.starts_with(['"', '}'])
        || inside.starts_with(|c: char| c.is_ascii_alphabetic()) && inside.contains(':')
}

/// Text without carriage returns, byte-order marks and what colours a terminal.
fn plain(bytes: &[u8]) -> Cow<'_, str> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let bytes = bytes.strip_suffix(b"\r").unwrap_or(bytes);
    let text = String::from_utf8_lossy(bytes);
    if !text.contains(['\x1b', '\r']) {
        return text;
    }
    let mut clean = String::with_capacity(text.len());
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => clean.push(' '),
            '\x1b' if letters.peek() == Some(&'[') => {
                letters.next();
                letters.by_ref().find(|letter| ('\x40'..='\x7e').contains(letter));
            }
            _ => clean.push(letter),
        }
    }
    clean.into()
}

/// A line without what quotes it.
fn unquoted(text: &str) -> &str {
    let mut body = text;
    while let Some(rest) = body.trim_start().strip_prefix('>') {
        body = rest.trim_start();
    }
    body
}

/// A line without the tag by which mpirun says whose it is, as `[1,0]<stdout>:` or `[prterun-host-123@1,0]<stderr>: `.
fn untagged(text: &str) -> &str {
    let behind_tag = || {
        let (who, rest) = text.strip_prefix('[')?.split_once("]<")?;
        let (job, rank) = who.rsplit_once('@').map_or(who, |(_, who)| who).split_once(',')?;
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let (stream, rest) = rest.split_once(">:")?;
        let is_tag = is_number(job) && is_number(rank) && ["stdout", "stderr"].contains(&stream);
        is_tag.then(|| rest.strip_prefix(' ').unwrap_or(rest))
    };
    behind_tag().unwrap_or(text)
}

/// Whether nothing is on a line but what separates.
fn is_ruler(text: &str) -> bool {
    text.bytes().all(|byte| b"-=*_~+`#. \t".contains(&byte))
}
