//! perftest of linux-rdma, as text and as JSON. What its figures mean stands in docs/import.md.

mod command;
mod head;
mod json;
mod row;
mod table;

use crate::decimal::{Decimal, Printed};
use crate::measurement::{LogCaution, LogCautions, LogConditions, LogMeasurement, LogTool};
use crate::reader::{LogLine, RemarkKind, Sink, Taken};
use crate::tools::LineTool;
use command::Command;
use head::{Field, Part, Section, SeenRows};
pub(crate) use json::read_document;
use row::{Cell, RowFacts};
use std::sync::Arc;
use table::Table;

/// Bytes of a command over several lines.
const MOST_OF_COMMAND: usize = 2_000;

/// Tokens of the longest row, and one more.
const MOST_CELLS: usize = 12;

/// Lines in which perftest fails, by their starts in small letters.
const FAILURES: &[&str] = &[
    "completion with error",
    "failed ",
    "failed:",
    "scnt=",
    "couldn't ",
    "unable to ",
    "problems with ",
    "problem in ",
    "test exited ",
    "parser function exited",
    "bad wc status",
    "unexpected cm event",
    "bad event waiting",
    "received a mad",
    "received umad",
    "ethernet_read_keys",
    "ethernet_write_keys",
    "ethernet_read_data",
    "ethernet_write_data",
    "can't produce a report",
    "function ibv_",
    "function rdma_",
    "rdma_resolve_",
    "rdma_bind_addr",
    "rdma_listen",
    "rdma_connect",
    "rdma_get_cm_events",
    "found incompatibility",
    "please try to use a different ip",
    "invalid ",
    "error",
    "accept() failed",
    "mr allocation failed",
    "no space left",
    "cuinit(0) returned",
    "cumemalloc error",
    "device not recognized",
    "did not detect devices",
    "ib device ",
];

/// Lines that perftest and its libraries print and that state no condition, by their starts in small letters.
const KNOWN: &[&str] = &[
    "please run the same command",
    "client closed connection",
    "requested sq size might be too big",
    "current tx depth is",
    "warning: bw peak won't be measured",
    "warning: large message requested",
    "warning: it can lead to inaccurate",
    "warning: cpu is not pcie relaxed",
    "warning: you should disable pcie ro",
    "post list requested - cq moderation",
    "requested mtu is higher",
    "changing to active mtu",
    "max msg size in ",
    "changing to this mtu",
    "changing msg size to this mtu",
    "changing cq moderation",
    "cq moderation can't be",
    "using srq ",
    "multicast runs on ud",
    "message size cannot be changed for atomic",
    "increasing cqe polling batch",
    "disabling dynamic polling",
    "out_reads is greater",
    "ooo_recv_wrs mismatch",
    "user stopped traffic",
    "tos only valid",
    "hop limit only valid",
    "actual inline-size",
    "scatter2cqe",
    "new post send flow is not supported",
    "perftest doesn't support",
    "setting inline size to",
    "mac attached",
    "validation",
    "data validation",
    "listing all cuda devices",
    "cuda device ",
    "picking device no",
    "picking gpu number",
    "finding pcie bus",
    "[pid = ",
    "creating cuda ctx",
    "making it the current cuda ctx",
    "cumemalloc() of a",
    "cuda device integrated",
    "allocated gpu buffer",
    "allocated ",
    "using dma-buf",
    "using data direct",
    "calling ibv_reg",
    "calling mlx5dv_reg",
    "starting gpu touching",
    "stopping cuda gpu touch",
    "deallocating ",
    "destroying current cuda ctx",
    "libibverbs: warning",
    "server is waiting",
];

/// Why a row at the end of a log is none.
const CUT: &str = "the log ends within the row's last number";

/// What perftest printed so far.
#[derive(Default)]
pub(crate) struct Perftest {
    section: Section,
    /// The section that ended with its table, which results of each side may follow.
    ended: Option<Section>,
    /// Rows of the table before, where it was a sweep.
    above: Option<SeenRows>,
    /// Whether a row of it stood before, in this file.
    has_run: bool,
    /// A command line that goes on in the next one.
    continued: Option<String>,
}

impl LineTool for Perftest {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let taken = self.take_line(line, sink);
        self.section.note_first(line);
        taken
    }

    fn take_fragment(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let Some(cells) = cells(line.text) else { return Taken::No };
        let Some(found) = row::fragment(&cells) else { return Taken::No };
        if self.section.is_refused {
            return Taken::Unknown("the header above the row has a column that is not perftest's".into());
        }
        // A table that has its header has other rows: this one stands for itself.
        let mut own = Section::default();
        own.is_mixed = self.section.is_mixed;
        if line.is_cut && row::lacks_digits(&found.cells) {
            return Taken::Unknown(CUT.into());
        }
        let section = if self.section.tables.is_empty() {
            if self.section.rows == 0 && self.section.has_head() {
                sink.hold();
            }
            self.section.rows += 1;
            &mut self.section
        } else {
            &mut own
        };
        let facts = RowFacts::of(section);
        let facts = RowFacts { cautions: facts.cautions.union(found.cautions), span: found.span, ..facts };
        row::put(&facts, &found.cells, line, sink)
    }

    fn miss(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> bool {
        // What begins as a row is one; between a table's two lines of dashes, what has a row's numbers behind something else.
        let is_number = line.text.starts_with(|c: char| c.is_ascii_digit());
        let numbers = line.text.split_ascii_whitespace().filter(|word| Decimal::read(word).is_some());
        let has_numbers = self.section.is_ruled && numbers.count() > 1;
        let has_table = !self.section.tables.is_empty() || self.section.is_refused;
        let is_within = has_table && self.section.samples.is_none() && (is_number || has_numbers);
        // What names a program is a command, whoever runs it there: what follows is none of the run before.
        let is_ended = self.section.rows > 0 || !self.section.has_head();
        if is_ended && Command::names_program(line.text) {
            self.begin(sink);
        }
        is_within
    }

    fn fail(&mut self) -> bool {
        let is_there = self.section.is_begun() || self.has_run;
        self.section.failed |= is_there;
        is_there
    }

    fn ruler(&mut self, text: &str, sink: &mut Sink) {
        if text.len() < 40 || !text.bytes().all(|byte| byte == b'-') {
            return;
        }
        if self.section.rows_of_table == 0 {
            self.section.is_ruled = true;
            let has_table = !self.section.tables.is_empty() || self.section.is_refused;
            self.section.rulers_of_none += u32::from(has_table);
            self.section.is_refused = false;
            return;
        }
        // Each of two interleaved programs ends its table with a line of its own.
        self.section.rulers += 1;
        if self.section.rulers >= self.section.programs() {
            self.section.tell_missing_sizes(sink);
            let ended = std::mem::take(&mut self.section);
            self.above = ended.seen;
            // Rows of the other program may follow.
            self.section.is_mixed = ended.is_mixed;
            self.ended = Some(ended);
        }
    }

    fn finish(&mut self, sink: &mut Sink) {
        self.section.tell_unended(sink);
    }
}

impl Perftest {
    fn take_line(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        if let Some(taken) = self.take_continued(line, sink) {
            return taken;
        }
        if text.starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            return self.take_row(line, sink);
        }
        if let Some(title) = head::Title::read(text) {
            // One line of dashes may be the one above the title of another program; of two the first ends the table.
            if self.section.rows > 0 || self.section.failed || self.section.rulers_of_none > 1 {
                self.begin(sink);
            }
            self.begin_below_one_line(sink);
            self.section.add_title(title);
            return Taken::Known;
        }
        if let Some(table) = Table::read(text) {
            return match table {
                Ok(table) => {
                    self.disown_rows(sink);
                    if self.section.rows_of_table > 0 && self.section.programs() == 1 {
                        self.section.tell_unended(sink);
                    }
                    self.section.add_table(table);
                    Taken::Known
                }
                Err(why) => {
                    self.section.is_refused = true;
                    Taken::Unknown(why.into())
                }
            };
        }
        if let Some(fields) = Field::read_line(text) {
            if fields.iter().any(|(field, value)| !field.accepts(value)) {
                // What is stated and cannot be read is no default either.
                let unread = fields.iter().filter(|(field, value)| !field.accepts(value));
                unread.for_each(|(field, _)| self.section.add_unread(*field));
                return Taken::Unknown("a condition of perftest has a value that it never prints".into());
            }
            if !self.section.has_stated(&fields) {
                self.disown_rows(sink);
            }
            if self.section.rows > 0 {
                self.begin(sink);
            }
            fields.into_iter().for_each(|(field, value)| self.section.add_field(field, value));
            return Taken::Known;
        }
        if let Some(command) = Command::read(text) {
            self.begin(sink);
            self.section.add_command(command);
            return Taken::Known;
        }
        self.take_other(text, sink)
    }

    /// A command that goes on in the next line, behind a `\\`, is looked at when it is whole.
    fn take_continued(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Option<Taken> {
        let (begun, is_begun) = match self.continued.take() {
            Some(begun) => (begun, true),
            None => (String::new(), false),
        };
        let own = line.text.strip_suffix('\\');
        if !is_begun && !own.is_some_and(Command::names_program) {
            return None;
        }
        let whole = format!("{begun} {}", own.unwrap_or(line.text));
        if own.is_some() && whole.len() < MOST_OF_COMMAND {
            self.continued = Some(whole);
            return Some(Taken::Known);
        }
        self.begin(sink);
        let command = Command::read(whole.trim())?;
        self.section.add_command(command);
        Some(Taken::Known)
    }

    /// A new run begins.
    fn begin(&mut self, sink: &mut Sink) {
        self.section.tell_unended(sink);
        let memory = match self.section.rows {
            0 if !self.section.failed => self.section.memory.take(),
            _ => None,
        };
        self.above = self.section.seen.or(self.above);
        self.section = Section::default();
        self.section.memory = memory;
        self.ended = None;
    }

    /// A title is next: where one line of dashes alone lies between it and the table above, that line is the title's, and the
    /// table has none.
    fn begin_below_one_line(&mut self, sink: &mut Sink) {
        let Some(above) = &self.ended else { return };
        if self.section.is_ruled || self.section.is_begun() || above.programs() > 1 {
            return;
        }
        // Somebody who left such lines out above the first title may have done so here.
        if above.is_title_ruled {
            above.tell_unended(sink);
        } else {
            sink.open_table();
        }
        self.ended = None;
        self.section.is_ruled = true;
    }

    /// Rows without a header that stand within a head are another program's.
    fn disown_rows(&mut self, sink: &mut Sink) {
        if self.section.rows > 0 && self.section.tables.is_empty() && self.section.has_head() {
            self.section.rows = 0;
            sink.revise(|figure| {
                if figure.cautions.has(LogCaution::NoHeader) {
                    disown(figure);
                }
            });
        }
    }

    /// Looks whether a row can be of the run whose table it stands in.
    fn hold_to_table(&mut self, cells: &[Cell], line: &LogLine<'_>, sink: &mut Sink) {
        let Some((size, iterations, is_counted)) = row::extent(cells) else { return };
        let why = match &mut self.section.seen {
            Some(seen) => seen.add(size, iterations, is_counted),
            None => {
                sink.hold();
                self.section.seen = Some(SeenRows::first(size, iterations));
                // A sweep begins at its least size, not where the one above stops.
                let goes_on = |above: &SeenRows| {
                    above.is_sweep() && above.iterations == iterations && size == above.size.saturating_mul(2)
                };
                let above = self.above.take().filter(goes_on);
                above.map(|above| format!("the first size follows the {} B of the table above", above.size))
            }
        };
        // Of several programs whose heads are here it is known, and without a head nothing is taken from one.
        let is_of_one = self.section.programs() == 1 && self.section.tables.len() == 1;
        if let Some(why) = why
            && !self.section.is_mixed
            && is_of_one
            && self.section.is_begun()
        {
            self.section.is_mixed = true;
            sink.revise(|figure| {
                if !figure.cautions.has(LogCaution::NoHeader) {
                    disown(figure);
                }
            });
            let why = format!(
                "{why}, so rows of this table are of another run than its head says; no condition is taken for them"
            );
            sink.remark(RemarkKind::Withheld, line.number, line.text, why);
        }
    }

    fn take_row(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        if let Some((_, sample)) = self.section.samples.and_then(|unit| Some((unit, row::sample(line.text)?)))
        {
            return row::put_sample(&mut self.section, sample, line, sink);
        }
        if self.section.tables.is_empty() {
            return Taken::No;
        }
        let Some(cells) = cells(line.text) else { return Taken::No };
        let Some((cells, cautions)) = self.section.cells_of_row(&cells) else {
            return Taken::Unknown("the row has another number of columns than the header above it".into());
        };
        if !row::is_row(&cells) {
            return Taken::Unknown("the row does not hold what the header above it says".into());
        }
        if line.is_cut && row::lacks_digits(&cells) {
            return Taken::Unknown(CUT.into());
        }
        let above = self.section.seen.map(|seen| seen.size);
        self.hold_to_table(&cells, line, sink);
        if let Some((seen, above)) = self.section.seen.zip(above)
            && seen.has_gap
            && self.section.is_ruled
            && !self.section.is_mixed
            && self.section.programs() == 1
        {
            let why = format!(
                "from the row above to this one the size grows from {above} to {} B, where perftest doubles it: rows are missing",
                seen.size
            );
            sink.remark(RemarkKind::Unended, line.number, line.text, why);
        }
        self.section.add_row(line);
        self.has_run = true;
        let facts = RowFacts::of(&mut self.section);
        let is_other = self.section.seen.is_some_and(|seen| self.section.is_of_other_size(seen.size));
        let cautions = cautions.with_if(is_other, LogCaution::OtherCommand);
        let facts = RowFacts { cautions: facts.cautions.union(cautions), ..facts };
        row::put(&facts, &cells, line, sink)
    }

    /// Addresses, warnings, failures, and what GPUs and other devices add.
    fn take_other(&mut self, text: &str, sink: &mut Sink) -> Taken {
        let small = text.get(..text.len().min(60)).unwrap_or(text).to_ascii_lowercase();
        let starts = |starts: &[&str]| starts.iter().any(|start| small.starts_with(start));
        if small.starts_with("local address:") || small.starts_with("remote address:") {
            self.section.add_address(&small);
            self.section.add_queue_pair(text);
            return Taken::Known;
        }
        if small.starts_with("gid:") || small.starts_with("mgid:") {
            self.section.add_gid(text);
            return Taken::Known;
        }
        if small.contains("waiting for client") {
            // A server waits before it prints its head, so a head above is of another run.
            if small.starts_with('*') && (self.section.rows > 0 || self.section.has_head()) {
                self.begin(sink);
            }
            self.section.waited = true;
            self.section.dirty = true;
            return Taken::Known;
        }
        if let Some(part) = Part::read(&small) {
            // Results of each side follow the sum of both, below its last line.
            if let Some(ended) = self.ended.take() {
                self.section = ended;
            }
            self.section.begin_part(part);
            return Taken::Known;
        }
        if starts(&[
            "conflicting cpu frequency",
            "test integrity may be harmed",
            "warning: measured timestamp",
        ]) {
            self.section.frequency_varied = true;
            return Taken::Known;
        }
        if let Some(unit) = small.strip_prefix("#, ") {
            let unit = unit.trim();
            if unit == "cycles" || unit == "usec" {
                self.section.begin_samples(unit == "cycles");
                return Taken::Known;
            }
        }
        if small.starts_with("initializing cuda") {
            if self.section.rows > 0 {
                self.begin(sink);
            }
            self.section.memory = Some(Arc::from("cuda"));
            self.section.dirty = true;
            return Taken::Known;
        }
        // Somebody ended it: what comes next is another run.
        if text == "^C" && (self.section.is_begun() || self.section.rows > 0) {
            self.begin(sink);
            return Taken::Known;
        }
        if starts(&["test with events"]) {
            self.section.events = true;
            self.section.dirty = true;
            return Taken::Known;
        }
        if starts(KNOWN) {
            return Taken::Known;
        }
        // Frames of raw Ethernet are drawn as boxes.
        if self.section.is_raw_ethernet() && (text.starts_with('|') || text.starts_with("**")) {
            return Taken::Known;
        }
        // Other programs fail in the same words, so perftest has to be there. What somebody wrote above a table ends in a colon.
        if (self.section.is_begun() || self.has_run) && !text.ends_with(':') && fails(&small) {
            self.section.failed = true;
            return Taken::Failure;
        }
        Taken::No
    }
}

/// Whether a line, in small letters, is one in which perftest fails.
pub(crate) fn fails(small: &str) -> bool {
    let starts = |all: &[&str]| all.iter().any(|start| small.starts_with(start));
    let is_failure = starts(FAILURES) || starts(&["received "]) && small.contains("addr_error");
    is_failure && !starts(&["error free", "error-free"])
}

/// Whether a line ends in a row or in a table's head, whatever stands before it.
pub(crate) fn has_row(text: &str) -> bool {
    let head = text.find("#bytes").and_then(|at| Table::read(&text[at..]));
    let is_row = |rest: &str| cells(rest).is_some_and(|cells| row::fragment(&cells).is_some());
    let ends = text.char_indices().filter(|(at, letter)| {
        !letter.is_whitespace() && (*at == 0 || text[..*at].ends_with(char::is_whitespace))
    });
    head.is_some() || ends.map(|(at, _)| &text[at..]).any(is_row)
}

/// Takes what a head says from a figure that is not of its run.
fn disown(figure: &mut LogMeasurement) {
    if figure.tool == LogTool::Perftest {
        let LogConditions { payload, iterations, .. } = *figure.conditions;
        figure.conditions = LogConditions { payload, iterations, ..LogConditions::default() }.into();
        figure.cautions = figure.cautions.with(LogCaution::MixedRows);
        figure.metric.span = None;
    }
}

/// The numbers of a row; nothing where it has something else on it.
fn cells(text: &str) -> Option<CellsOfRow> {
    let mut cells = CellsOfRow { count: 0, cells: [Printed::NoFigure; MOST_CELLS] };
    for word in text.split_ascii_whitespace() {
        let mut rest = word;
        while !rest.is_empty() {
            let (printed, after) = match Printed::read(rest) {
                Some(printed) => (printed, ""),
                None => glued(rest)?,
            };
            *cells.cells.get_mut(cells.count)? = printed;
            cells.count += 1;
            rest = after;
        }
    }
    (cells.count > 1).then_some(cells)
}

/// The first of several numbers that lost the tabs between them, and what follows it: each has two decimals.
fn glued(word: &str) -> Option<(Printed, &str)> {
    let end = word.find('.')? + 3;
    let (first, rest) = (word.get(..end)?, word.get(end..)?);
    rest.contains('.').then_some((Printed::Number(Decimal::read(first)?), rest))
}

/// The numbers of a row.
pub(super) struct CellsOfRow {
    count: usize,
    cells: [Printed; MOST_CELLS],
}

impl CellsOfRow {
    fn all(&self) -> &[Printed] {
        &self.cells[..self.count]
    }
}

impl Section {
    /// The row's cells with their columns, by the last header that has so many; of two headers with as many, the one
    /// whose unit fits.
    fn cells_of_row(&self, cells: &CellsOfRow) -> Option<(Vec<Cell>, LogCautions)> {
        let fits = |table: &&Table| table.columns.len() == cells.count;
        let of = |table: &Table| -> Vec<Cell> {
            let columns = table.columns.iter().zip(cells.all());
            columns.map(|(column, printed)| Cell { column: *column, printed: *printed }).collect()
        };
        let mut found: Option<Vec<Cell>> = None;
        for table in self.tables.iter().rev().filter(fits) {
            let cells = of(table);
            if row::rate_agrees(&cells) != Some(false) {
                return Some((cells, Default::default()));
            }
            found = found.or(Some(cells));
        }
        let cautions = LogCautions::default();
        found.map(|cells| (cells, cautions.with(LogCaution::RateDiffers)))
    }
}
