//! What perftest prints above a table.

use super::command::{Command, LARGEST, SMALLEST, Sizes};
use super::table::Table;
use crate::decimal::Decimal;
use crate::measurement::{
    LogCaution, LogCautions, LogConditions, LogDetail, LogOperation, LogSide, QueuePairNames,
    TrafficDirections,
};
use crate::reader::{LogLine, RemarkKind, Sink};
use offpath_quantity::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Headers that are kept of programs that print into one another.
const MOST_TABLES: usize = 4;

/// The title of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Title {
    pub(super) operation: LogOperation,
    pub(super) is_bandwidth: bool,
    pub(super) is_bidirectional: bool,
}

impl Title {
    /// Reads `RDMA_Write Bidirectional BW Test` and its like; nothing where the line is none.
    pub(super) fn read(text: &str) -> Option<Title> {
        if !text.ends_with("Test") || text.len() > 100 {
            return None;
        }
        let words: Vec<&str> = text.split([' ', '\t', '_']).filter(|word| !word.is_empty()).collect();
        let (mut operation, mut rest) = match words[..] {
            ["RDMA", "Write", ..] => (LogOperation::Write, &words[2..]),
            ["RDMA", "Read", ..] => (LogOperation::Read, &words[2..]),
            ["Send", ..] => (LogOperation::Send, &words[1..]),
            ["Atomic", "CMP", "AND", "SWAP", ..] => (LogOperation::CompareAndSwap, &words[4..]),
            ["Atomic", "FETCH", "AND", "ADD", ..] => (LogOperation::FetchAndAdd, &words[4..]),
            ["Atomic", ..] => (LogOperation::Atomic, &words[1..]),
            _ => return None,
        };
        if let ["imm", after @ ..] = rest {
            operation = match operation {
                LogOperation::Write => LogOperation::WriteImmediate,
                LogOperation::Send => LogOperation::SendImmediate,
                _ => return None,
            };
            rest = after;
        }
        let mut title = Title { operation, is_bandwidth: false, is_bidirectional: false };
        for word in rest {
            match *word {
                "BW" => title.is_bandwidth = true,
                "Bidirectional" => title.is_bidirectional = true,
                "Latency" | "Post" | "List" | "forwarding" | "Multicast" | "Test" => {}
                _ => return None,
            }
        }
        Some(title)
    }

    /// Which ways traffic goes, of a bandwidth test.
    fn directions(self) -> Option<TrafficDirections> {
        self.is_bandwidth.then_some(match self.is_bidirectional {
            true => TrafficDirections::Both,
            false => TrafficDirections::One,
        })
    }
}

/// A condition that is printed as a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Field {
    DualPort,
    Device,
    QueuePairs,
    Transport,
    Connection,
    SharedReceiveQueue,
    RelaxedOrdering,
    LockFree,
    WorkRequestApi,
    DirectDataPlacement,
    EnhancedReorder,
    TxDepth,
    RxDepth,
    PostList,
    ReceivePostList,
    DciStreams,
    ActiveDciStreams,
    EncryptionKeys,
    BlockSize,
    CqModeration,
    PollBatch,
    Mtu,
    LinkType,
    BufferSize,
    GidIndex,
    GidIndex2,
    Inline,
    OutstandingReads,
    ConnectionManager,
    Rocm,
    Musa,
    Exchange,
    TypeOfService,
    NumaNode,
}

/// Titles of fields in small letters; of two that begin alike the longer stands first.
const FIELDS: &[(&str, Field)] = &[
    ("dual-port", Field::DualPort),
    ("device", Field::Device),
    ("number of qps", Field::QueuePairs),
    ("transport type", Field::Transport),
    ("connection type", Field::Connection),
    ("using srq", Field::SharedReceiveQueue),
    ("pcie relax order", Field::RelaxedOrdering),
    ("lock-free", Field::LockFree),
    ("ibv_wr* api", Field::WorkRequestApi),
    ("using ddp", Field::DirectDataPlacement),
    ("using enhanced reorder", Field::EnhancedReorder),
    ("tx depth", Field::TxDepth),
    ("rx depth", Field::RxDepth),
    ("recv post list", Field::ReceivePostList),
    ("post list", Field::PostList),
    ("dcs num streams", Field::DciStreams),
    ("dcs active num streams", Field::ActiveDciStreams),
    ("number of data encryption keys", Field::EncryptionKeys),
    ("block size", Field::BlockSize),
    ("cq moderation", Field::CqModeration),
    ("cqe poll batch", Field::PollBatch),
    ("mtu", Field::Mtu),
    ("link type", Field::LinkType),
    ("buffer size", Field::BufferSize),
    ("gid index2", Field::GidIndex2),
    ("gid index", Field::GidIndex),
    ("max inline data", Field::Inline),
    ("outstand reads", Field::OutstandingReads),
    ("rdma_cm qps", Field::ConnectionManager),
    ("use rocm memory", Field::Rocm),
    ("use musa memory", Field::Musa),
    ("data ex. method", Field::Exchange),
    ("tos", Field::TypeOfService),
    ("numa node", Field::NumaNode),
];

/// What a field may hold.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Text,
    Count,
    Bytes,
    Switch,
}

impl Field {
    fn holds(self) -> Holds {
        match self {
            Field::QueuePairs
            | Field::TxDepth
            | Field::RxDepth
            | Field::PostList
            | Field::ReceivePostList
            | Field::DciStreams
            | Field::ActiveDciStreams
            | Field::EncryptionKeys
            | Field::CqModeration
            | Field::GidIndex
            | Field::GidIndex2
            | Field::OutstandingReads
            | Field::TypeOfService
            | Field::NumaNode => Holds::Count,
            Field::Mtu | Field::Inline | Field::BufferSize | Field::BlockSize => Holds::Bytes,
            Field::DualPort | Field::SharedReceiveQueue | Field::ConnectionManager => Holds::Switch,
            _ => Holds::Text,
        }
    }

    /// Whether a value is one that the field may have.
    pub(super) fn accepts(self, value: &str) -> bool {
        match self.holds() {
            Holds::Text => !value.is_empty() && value.len() <= 60,
            Holds::Count => number(value).is_some(),
            Holds::Bytes => number(bare(value)).is_some(),
            Holds::Switch => value == "ON" || value == "OFF",
        }
    }

    /// The fields of a line, glued together or not; nothing where it begins with none.
    pub(super) fn read_line(text: &str) -> Option<Vec<(Field, &str)>> {
        if !text.contains(':') {
            return None;
        }
        let small = text.to_ascii_lowercase();
        let mut starts = Vec::new();
        let mut at = 0;
        while at < small.len() {
            match field_at(&small, at) {
                Some((field, value)) => {
                    starts.push((at, field, value));
                    at = value;
                }
                None if starts.is_empty() => return None,
                None => at += small[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        let ends = starts.iter().skip(1).map(|start| start.0).chain([text.len()]);
        let fields =
            starts.iter().zip(ends).map(|((_, field, value), end)| (*field, text[*value..end].trim()));
        Some(fields.collect())
    }

    /// The field of a key of JSON.
    pub(super) fn of_key(key: &str) -> Option<Field> {
        let key = match key {
            "Data_ex_method" => "data ex. method".to_string(),
            "ibv_wr_API" => "ibv_wr* api".to_string(),
            "Dual_port" => "dual-port".to_string(),
            "rdma_cm_QPs" => "rdma_cm qps".to_string(),
            _ => key.to_ascii_lowercase().replace('_', " "),
        };
        FIELDS.iter().find(|(title, _)| *title == key).map(|(_, field)| *field)
    }
}

/// The field that begins at a place, and where its value does.
fn field_at(small: &str, at: usize) -> Option<(Field, usize)> {
    let rest = &small[at..];
    FIELDS.iter().find_map(|(title, field)| {
        let after = rest.strip_prefix(title)?;
        let value = after.trim_start().strip_prefix(':')?;
        Some((*field, at + rest.len() - value.len()))
    })
}

/// A value without the unit behind it.
fn bare(value: &str) -> &str {
    value.strip_suffix("[B]").or(value.strip_suffix('B')).unwrap_or(value)
}

fn number(value: &str) -> Option<u64> {
    Decimal::read(value)?.whole()
}

/// Results of one side, which follow the sum of both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    Local,
    Remote,
}

impl Part {
    /// Reads a line in small letters.
    pub(super) fn read(small: &str) -> Option<Part> {
        match small.trim() {
            "local results:" => Some(Part::Local),
            "remote results:" => Some(Part::Remote),
            _ => None,
        }
    }
}

/// A checksum of what an end calls its queue pairs begins with this, and is multiplied for each (FNV-1a, of whole words).
const NAME_BASIS: u64 = 0xcbf2_9ce4_8422_2325;
const NAME_PRIME: u64 = 0x0100_0000_01b3;

/// Why a table is not whole.
const UNENDED: &str = "no line of dashes ends the table below this row, as perftest draws one where a run has ended: the \
                       program stopped before, or the log is cut";

/// Why a run is missing.
const NO_ROW: &str =
    "a run of perftest begins here and no row of it follows: the program stopped before, or the log is cut";

/// What was printed of a field so far.
#[derive(Clone, Debug)]
struct Stated {
    value: String,
    times: u32,
    differs: bool,
}

/// The rows of a table so far. Those of one run grow in size, or have one size where it goes on and on; and where
/// iterations are not counted by time, they have as many.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeenRows {
    /// The first size.
    least: u64,
    pub(super) size: u64,
    pub(super) iterations: u64,
    is_grown: bool,
    is_repeated: bool,
    /// Whether sizes lie between the last row and the one before it: those of a sweep double.
    pub(super) has_gap: bool,
}

impl SeenRows {
    pub(super) fn first(size: u64, iterations: u64) -> SeenRows {
        SeenRows { least: size, size, iterations, is_grown: false, is_repeated: false, has_gap: false }
    }

    /// Whether it is a sweep that may go on.
    pub(super) fn is_sweep(&self) -> bool {
        self.is_grown
    }

    /// Whether one size goes on until somebody interrupts it, which ends no table.
    fn is_endless(&self) -> bool {
        self.is_repeated && !self.is_grown
    }

    /// Takes the next row; why it cannot be of the run of those before it.
    pub(super) fn add(&mut self, size: u64, iterations: u64, is_counted: bool) -> Option<String> {
        let before = *self;
        (self.size, self.iterations) = (size, iterations);
        self.is_grown |= size > before.size;
        self.has_gap = self.is_sweep() && size > before.size.saturating_mul(2);
        self.is_repeated |= size == before.size;
        if size < before.size {
            Some(format!("the size falls from {} to {size} B", before.size))
        } else if self.is_grown && self.is_repeated {
            Some("of several sizes one stands twice".to_string())
        } else if iterations != before.iterations && !is_counted {
            Some(format!("the iterations change from {} to {iterations}", before.iterations))
        } else {
            None
        }
    }
}

/// The address of an end of a connection.
#[derive(Clone, Debug, Default)]
struct Address {
    /// Its local identifier on InfiniBand, which Ethernet has not.
    lid: Option<u64>,
    gid: Option<String>,
}

impl Address {
    /// Whether another one is of the same port. Without addresses, and where somebody put others into their place, nobody knows.
    fn is_of_port(&self, other: &Address) -> bool {
        match (&self.gid, &other.gid) {
            (Some(one), Some(other)) => {
                let is_group =
                    |group: &str| (1..=4).contains(&group.len()) && u64::from_str_radix(group, 16).is_ok();
                let is_told = || {
                    one.split(':').all(is_group) && one.contains(|c: char| c.is_ascii_hexdigit() && c != '0')
                };
                one == other && is_told()
            }
            _ => self.lid.is_some() && self.lid == other.lid,
        }
    }
}

/// A run: its head, and as much of its table as was read.
#[derive(Default)]
pub(super) struct Section {
    pub(super) titles: u32,
    title: Option<Title>,
    titles_differ: bool,
    fields: BTreeMap<Field, Stated>,
    /// Those whose value could not be read.
    unread: BTreeSet<Field>,
    command: Option<Command>,
    pub(super) tables: Vec<Table>,
    pub(super) rows: u64,
    pub(super) rows_of_table: u64,
    /// The rows of the table so far.
    pub(super) seen: Option<SeenRows>,
    /// Whether they cannot all be of one run.
    pub(super) is_mixed: bool,
    pub(super) rulers: u32,
    /// Whether a line of dashes stands above the table, as perftest draws one above and one below each.
    pub(super) is_ruled: bool,
    /// Whether one stands above the title, too.
    pub(super) is_title_ruled: bool,
    /// The last row of the table, with its line.
    last_row: Option<(u64, String)>,
    /// Its first line.
    first_line: Option<(u64, String)>,
    /// Lines of dashes below the header of a table that has no row.
    pub(super) rulers_of_none: u32,
    /// Whether the table's header is one that was not understood.
    pub(super) is_refused: bool,
    pub(super) failed: bool,
    pub(super) waited: bool,
    pub(super) events: bool,
    pub(super) memory: Option<Arc<str>>,
    pub(super) frequency_varied: bool,
    /// Whether times are cycles, where the log says so.
    pub(super) cycles: Option<bool>,
    /// While single operations are printed: whether in cycles.
    pub(super) samples: Option<bool>,
    pub(super) is_local: bool,
    /// What each end calls its queue pairs so far: this one and the other.
    queue_pairs: [Option<u64>; 2],
    local: Address,
    remote: Address,
    part: Option<Part>,
    /// Whether the conditions have to be put together again.
    pub(super) dirty: bool,
    conditions: Option<Arc<LogConditions>>,
}

impl Section {
    pub(super) fn add_title(&mut self, title: Title) {
        if self.titles == 0 {
            self.is_title_ruled = self.is_ruled;
        }
        self.titles += 1;
        self.titles_differ |= self.title.is_some_and(|earlier| earlier != title);
        self.title = Some(title);
        self.is_mixed = false;
        self.dirty = true;
    }

    pub(super) fn add_field(&mut self, field: Field, value: &str) {
        let stated = self.fields.entry(field).or_insert_with(|| Stated {
            value: value.to_string(),
            times: 0,
            differs: false,
        });
        stated.times += 1;
        stated.differs |= stated.value != value;
        self.dirty = true;
    }

    /// A field is there whose value cannot be read.
    pub(super) fn add_unread(&mut self, field: Field) {
        self.unread.insert(field);
        self.dirty = true;
    }

    pub(super) fn add_command(&mut self, command: Command) {
        self.cycles = command.cycles.then_some(true);
        self.command = Some(command);
        self.dirty = true;
    }

    pub(super) fn add_table(&mut self, table: Table) {
        // A table whose rows are over gives way; that of a program that prints into another one stays.
        if self.rows_of_table > 0 {
            self.tables.clear();
        }
        if self.tables.len() == MOST_TABLES {
            self.tables.remove(0);
        }
        self.tables.push(table);
        (self.rows_of_table, self.last_row) = (0, None);
        (self.rulers_of_none, self.is_refused) = (0, false);
        (self.seen, self.is_mixed) = (None, false);
        self.samples = None;
    }

    /// Takes the line of an address, which begins with whose it is.
    pub(super) fn add_address(&mut self, small: &str) {
        self.is_local = small.starts_with("local");
        let lid = small.split_once(" lid ").and_then(|(_, rest)| rest.split_ascii_whitespace().next());
        let lid = lid.and_then(|lid| u64::from_str_radix(lid.trim_start_matches("0x"), 16).ok());
        let own = if self.is_local { &mut self.local } else { &mut self.remote };
        own.lid = lid.filter(|lid| *lid > 0);
        self.dirty = true;
    }

    pub(super) fn add_gid(&mut self, text: &str) {
        let gid = text.split_once(':').map_or("", |(_, gid)| gid).trim();
        let own = if self.is_local { &mut self.local.gid } else { &mut self.remote.gid };
        if gid.len() <= 64 && own.as_deref() != Some(gid) {
            *own = Some(gid.to_string());
            self.dirty = true;
        }
    }

    /// The address of a queue pair, of the end whose turn it is: its number and first packet sequence number name it.
    pub(super) fn add_queue_pair(&mut self, text: &str) {
        let mut words = text.split_ascii_whitespace();
        let mut behind = |key: &str| {
            let number = words.by_ref().skip_while(|word| *word != key).nth(1)?;
            u64::from_str_radix(number.strip_prefix("0x")?, 16).ok()
        };
        let Some((number, sequence)) = behind("QPN").zip(behind("PSN")) else { return };
        let names = &mut self.queue_pairs[usize::from(!self.is_local)];
        *names = Some(names.unwrap_or(NAME_BASIS) ^ number << 32 ^ sequence)
            .map(|name| name.wrapping_mul(NAME_PRIME));
        self.dirty = true;
    }

    /// Whether both ends are one port, or on one machine.
    fn is_to_itself(&self) -> bool {
        let is_asked = || self.given().is_some_and(|command| command.is_to_itself);
        self.programs() == 1 && self.local.is_of_port(&self.remote) || is_asked()
    }

    /// The command, unless the head is of another one: of another verb, of both directions or of latencies, or of another device.
    fn given(&self) -> Option<&Command> {
        self.command.as_ref().filter(|command| !self.is_of_other(command))
    }

    fn is_of_other(&self, command: &Command) -> bool {
        if self.programs() > 1 || self.titles_differ {
            return false;
        }
        let family = |operation: LogOperation| match operation {
            LogOperation::WriteImmediate => LogOperation::Write,
            LogOperation::SendImmediate => LogOperation::Send,
            LogOperation::CompareAndSwap | LogOperation::FetchAndAdd => LogOperation::Atomic,
            other => other,
        };
        let is_other_title = self.title.zip(command.operation).is_some_and(|(title, operation)| {
            family(title.operation) != family(operation) || title.directions() != command.directions
        });
        let devices = self.stated(Field::Device).zip(command.conditions.device.as_deref());
        is_other_title || devices.is_some_and(|(printed, asked)| printed != asked)
    }

    /// The payloads that its command asks for, where the tool takes them as they are: with datagrams it has others, and atomics have one.
    fn asked_sizes(&self) -> Option<Sizes> {
        let sizes = self.given()?.sizes.filter(|_| self.programs() == 1 && !self.is_mixed)?;
        let operation = self.title.map(|title| title.operation).or(self.given()?.operation);
        let is_connected =
            match self.stated(Field::Connection).or(self.given()?.conditions.connection.as_deref()) {
                Some(connection) => connection == "RC",
                None => !self.given()?.program.starts_with("raw_"),
            };
        let has_sizes = matches!(
            operation,
            Some(
                LogOperation::Read
                    | LogOperation::Write
                    | LogOperation::WriteImmediate
                    | LogOperation::Send
                    | LogOperation::SendImmediate
            )
        );
        (is_connected && has_sizes).then_some(sizes)
    }

    /// Whether a row is of another payload than its command asks for.
    pub(super) fn is_of_other_size(&self, size: u64) -> bool {
        matches!(self.asked_sizes(), Some(Sizes::One(asked)) if asked != size)
    }

    /// Tells that its table has ended and lacks sizes that its command asks for.
    pub(super) fn tell_missing_sizes(&self, sink: &mut Sink) {
        let (Some(Sizes::All), Some(seen), Some((line, text))) =
            (self.asked_sizes(), self.seen, &self.last_row)
        else {
            return;
        };
        if seen.least > SMALLEST || seen.size < LARGEST {
            let why = format!(
                "the command above asks for all sizes, {SMALLEST} to {LARGEST} B, and the table has {} to {} B: rows are missing",
                seen.least, seen.size
            );
            sink.remark(RemarkKind::Unended, *line, text, why);
        }
    }

    pub(super) fn begin_samples(&mut self, cycles: bool) {
        self.samples = Some(cycles);
        self.cycles = Some(cycles);
    }

    pub(super) fn begin_part(&mut self, part: Part) {
        self.part = Some(part);
        self.tables.clear();
        (self.rows_of_table, self.rulers, self.last_row) = (0, 0, None);
        (self.rulers_of_none, self.is_refused) = (0, false);
        (self.seen, self.is_mixed) = (None, false);
        self.dirty = true;
    }

    /// Takes note of a row of the table.
    pub(super) fn add_row(&mut self, line: &LogLine<'_>) {
        self.rows += 1;
        self.rows_of_table += 1;
        self.last_row = Some((line.number, line.text.to_string()));
    }

    /// Takes note of the line in which it begins.
    pub(super) fn note_first(&mut self, line: &LogLine<'_>) {
        if self.first_line.is_none() && (self.is_begun() || !self.tables.is_empty()) {
            self.first_line = Some((line.number, line.text.to_string()));
        }
    }

    /// Whether it was begun and has nothing that was measured. What a server is asked for it prints when somebody calls, and of a
    /// READ's latency it prints the header alone.
    fn is_without_rows(&self) -> bool {
        let is_asked = self.command.as_ref().is_some_and(|command| command.side == Some(LogSide::Requester));
        let is_begun = self.has_head() || self.waited || is_asked || !self.tables.is_empty();
        let is_ended = self.rulers_of_none > 0 && self.side() != Some(LogSide::Requester);
        is_begun && self.rows == 0 && !self.failed && self.samples.is_none() && !is_ended
    }

    /// Tells that its table ends here without the line below it, or that it has no row at all. Where no line stands above the
    /// table either, somebody took a part of a log, and whether the run ended is not known.
    pub(super) fn tell_unended(&self, sink: &mut Sink) {
        if self.is_without_rows() {
            if let Some((line, text)) = &self.first_line {
                sink.remark(RemarkKind::Unended, *line, text, NO_ROW);
            }
            return;
        }
        match &self.last_row {
            _ if self.seen.is_some_and(|seen| seen.is_endless()) => {}
            Some((line, text)) if self.is_ruled => {
                sink.remark(RemarkKind::Unended, *line, text, UNENDED);
            }
            _ if self.rows > 0 => sink.open_table(),
            _ => {}
        }
    }

    /// Whether it states one of these fields.
    pub(super) fn has_stated(&self, fields: &[(Field, &str)]) -> bool {
        fields.iter().any(|(field, _)| self.fields.contains_key(field))
    }

    /// Whether anything of perftest was seen in it.
    pub(super) fn is_begun(&self) -> bool {
        self.has_head() || self.waited || self.command.is_some()
    }

    /// Whether a part of its head was printed.
    pub(super) fn has_head(&self) -> bool {
        self.titles > 0 || !self.fields.is_empty()
    }

    /// How many programs print into one another, as far as it shows.
    pub(super) fn programs(&self) -> u32 {
        let fields = self.fields.values().map(|stated| stated.times).max().unwrap_or(0);
        self.titles.max(fields).max(1)
    }

    pub(super) fn is_raw_ethernet(&self) -> bool {
        self.fields.get(&Field::Connection).is_some_and(|stated| stated.value == "RawEth")
    }

    pub(super) fn cautions(&self) -> LogCautions {
        LogCautions::default()
            .with_if(self.programs() > 1, LogCaution::Interleaved)
            .with_if(self.frequency_varied, LogCaution::FrequencyVaried)
            .with_if(self.is_to_itself(), LogCaution::ToItself)
            .with_if(self.command.is_some() && self.given().is_none(), LogCaution::OtherCommand)
    }

    /// What a field says, where all programs that print here agree in it.
    fn stated(&self, field: Field) -> Option<&str> {
        let stated = self.fields.get(&field)?;
        // A depth is printed by the side that has it alone.
        let is_of_one = matches!(field, Field::TxDepth | Field::RxDepth);
        let is_of_all = stated.times >= self.programs() || is_of_one;
        (!stated.differs && is_of_all).then_some(stated.value.as_str())
    }

    fn count(&self, field: Field) -> Option<u64> {
        number(bare(self.stated(field)?))
    }

    /// The side that wrote the log: it says so, or its head has or lacks the depth that a requester prints.
    fn side(&self) -> Option<LogSide> {
        if self.programs() > 1 {
            return None;
        }
        if self.waited {
            return Some(LogSide::Responder);
        }
        if let Some(side) = self.given().and_then(|command| command.side) {
            return Some(side);
        }
        let title = self.title?;
        // Between these two fields a requester states its depth; in traffic both ways both sides do.
        let is_whole = self.fields.contains_key(&Field::Connection) && self.fields.contains_key(&Field::Mtu);
        match self.fields.contains_key(&Field::TxDepth) {
            _ if title.is_bidirectional || !is_whole => None,
            true => Some(LogSide::Requester),
            false => Some(LogSide::Responder),
        }
    }

    /// What the ends call the queue pairs, where one program alone prints them.
    fn queue_pair_names(&self) -> Option<QueuePairNames> {
        let [local, remote] = self.queue_pairs;
        (self.programs() == 1).then_some(QueuePairNames { local: local?, remote: remote? })
    }

    /// Conditions that hold, as far as they were read.
    pub(super) fn conditions(&mut self) -> Arc<LogConditions> {
        if !self.dirty
            && let Some(conditions) = &self.conditions
        {
            return conditions.clone();
        }
        let conditions = Arc::new(self.gather());
        self.conditions = Some(conditions.clone());
        self.dirty = false;
        conditions
    }

    fn gather(&self) -> LogConditions {
        let text = |field| self.stated(field).map(Arc::from);
        let given = self.given();
        let title = self.title.filter(|_| !self.titles_differ);
        let directions = title.and_then(Title::directions);
        let directions = match self.part {
            Some(_) => Some(TrafficDirections::One),
            None => directions.or(given.and_then(|command| command.directions)),
        };
        let mut conditions = LogConditions {
            program: given.map(|command| command.program.clone()),
            operation: title.map(|title| title.operation).or(given.and_then(|command| command.operation)),
            queue_pairs: self.count(Field::QueuePairs),
            tx_depth: self.count(Field::TxDepth),
            rx_depth: self.count(Field::RxDepth),
            post_list: self.count(Field::PostList),
            cq_moderation: self.count(Field::CqModeration),
            inline: self.count(Field::Inline).map(Bytes::new),
            outstanding_reads: self.count(Field::OutstandingReads),
            mtu: self.count(Field::Mtu).map(Bytes::new),
            directions,
            connection: text(Field::Connection),
            duration: given.and_then(|command| command.duration),
            device: text(Field::Device),
            link_layer: text(Field::LinkType),
            gid_index: self.count(Field::GidIndex),
            side: self.side(),
            queue_pair_names: self.queue_pair_names(),
            ..LogConditions::default()
        };
        // What the head lacks, the command line may say.
        if let Some(command) = given {
            let own = &command.conditions;
            conditions.queue_pairs = conditions.queue_pairs.or(own.queue_pairs);
            conditions.tx_depth = conditions.tx_depth.or(own.tx_depth);
            conditions.rx_depth = conditions.rx_depth.or(own.rx_depth);
            conditions.post_list = conditions.post_list.or(own.post_list);
            conditions.cq_moderation = conditions.cq_moderation.or(own.cq_moderation);
            // Where nobody says otherwise each list has one completion.
            if !self.fields.contains_key(&Field::CqModeration) {
                conditions.cq_moderation =
                    conditions.cq_moderation.or(conditions.post_list.filter(|list| *list > 1));
            }
            conditions.outstanding_reads = conditions.outstanding_reads.or(own.outstanding_reads);
            conditions.inline = conditions.inline.or(own.inline);
            conditions.mtu = conditions.mtu.or(own.mtu);
            conditions.connection = conditions.connection.or(own.connection.clone());
            conditions.device = conditions.device.or(own.device.clone());
            conditions.gid_index = conditions.gid_index.or(own.gid_index);
        }
        self.more(&mut conditions);
        conditions
    }

    /// What perftest alone states.
    fn more(&self, conditions: &mut LogConditions) {
        const MORE: &[(Field, &str)] = &[
            (Field::DualPort, "dual_port"),
            (Field::Transport, "transport"),
            (Field::SharedReceiveQueue, "shared_receive_queue"),
            (Field::RelaxedOrdering, "relaxed_ordering"),
            (Field::LockFree, "lock_free"),
            (Field::WorkRequestApi, "work_request_api"),
            (Field::DirectDataPlacement, "direct_data_placement"),
            (Field::EnhancedReorder, "enhanced_reorder"),
            (Field::ReceivePostList, "receive_post_list"),
            (Field::DciStreams, "dci_streams"),
            (Field::ActiveDciStreams, "active_dci_streams"),
            (Field::EncryptionKeys, "encryption_keys"),
            (Field::BlockSize, "encryption_block_bytes"),
            (Field::PollBatch, "poll_batch"),
            (Field::BufferSize, "buffer_bytes"),
            (Field::GidIndex2, "gid_index_of_second_port"),
            (Field::ConnectionManager, "connection_manager"),
            (Field::Rocm, "rocm_memory"),
            (Field::Musa, "musa_memory"),
            (Field::Exchange, "data_exchange"),
            (Field::TypeOfService, "type_of_service"),
            (Field::NumaNode, "numa_node"),
        ];
        // A condition that is printed is not taken from a command, even where two heads differ in it.
        let is_printed =
            |key: &str| MORE.iter().any(|(field, own)| *own == key && self.fields.contains_key(field));
        let given = self.given().into_iter().flat_map(|command| command.conditions.more.iter());
        for (key, detail) in given.filter(|(key, _)| !is_printed(key)) {
            conditions.set(key, detail.clone());
        }
        for (field, key) in MORE {
            let Some(value) = self.stated(*field) else { continue };
            let detail = match (field.holds(), number(bare(value))) {
                (Holds::Count | Holds::Bytes, Some(number)) => LogDetail::Number(number),
                _ if value == "ON" || value == "OFF" => LogDetail::Switch(value == "ON"),
                _ => LogDetail::Text(value.into()),
            };
            conditions.set(key, detail);
        }
        // Of what a command says and cannot be read the head may say it.
        let given = self.given().into_iter().flat_map(|command| &command.unread);
        let given = given.filter(|field| !self.fields.contains_key(field));
        let unread: BTreeSet<Field> = self.unread.iter().chain(given).copied().collect();
        if !unread.is_empty() {
            let titles = FIELDS.iter().filter(|(_, field)| unread.contains(field)).map(|(title, _)| *title);
            conditions.set_text("unread_conditions", &titles.collect::<Vec<_>>().join(", "));
        }
        if let Some(memory) = &self.memory {
            conditions.set("payload_memory", LogDetail::Text(memory.clone()));
        }
        if self.events {
            conditions.set("completion_events", LogDetail::Switch(true));
        }
        if let Some(gid) = self.local.gid.as_ref().filter(|_| self.programs() == 1) {
            conditions.set_text("gid", gid);
        }
        if let Some(part) = self.part {
            conditions.set_text("results_of", if part == Part::Local { "local" } else { "remote" });
        }
    }
}
