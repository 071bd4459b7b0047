//! How answers are printed: tables on a terminal, JSON for programs, markdown for documents.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use comfy_table::{
    Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, Width, presets,
};
use offpath_profile::System;
pub use offpath_quantity::figures::{fixed, percent, round, short};
use serde::Serialize;
use serde_json::ser::{Formatter, PrettyFormatter};
use std::fs::{File, OpenOptions};
use std::io::{BufWriter, ErrorKind, IsTerminal, Read, Write, stderr, stdout};
use std::path::{Path, PathBuf};
use terminal_size::terminal_size_of;
use textwrap::core::display_width;

/// The version of every JSON output; it grows when a key changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 2;

/// The form of the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// Text for people
    #[default]
    Table,
    /// JSON with units in its keys; docs/schemas describes it
    Json,
    /// Markdown, to paste into a document
    Markdown,
    /// Rows of comma-separated values, of `offpath import`
    Csv,
}

/// When to use colour, which is never the only cue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// How to print.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Output")]
pub struct OutputOptions {
    /// The form of the answer
    #[arg(long, global = true, value_enum, default_value_t)]
    pub format: Format,
    /// When to use colour; it is never the only cue
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
}

impl OutputOptions {
    /// Refuses the form that an answer of tables and sentences does not have.
    pub fn refuse_csv(&self) -> Result<(), Failure> {
        match self.format {
            Format::Csv => Err(Failure::input(
                "`--format csv` is a form of the answer of `offpath import` alone",
                "ask for table, json or markdown",
            )),
            _ => Ok(()),
        }
    }
}

/// Whether a stream may be coloured. NO_COLOR counts when it is set and not empty (no-color.org).
pub fn allows_color(color: Color, terminal: bool) -> bool {
    match color {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => {
            let set = |name| std::env::var_os(name).filter(|value| !value.is_empty());
            terminal && set("NO_COLOR").is_none() && set("TERM").is_none_or(|term| term != "dumb")
        }
    }
}

/// How wide text is where nobody says how wide the page is, as in a pipe.
pub const COLUMNS: usize = 100;
/// The least width that text is laid out for.
const LEAST: usize = 20;
/// Starts a line that is printed as it stands; it is taken away when the line is printed.
const AS_IT_STANDS: char = '\u{1}';
/// Before a sentence that continues the line above it.
const CONTINUED: &str = "      ";

/// The columns of the page that a stream shows: what COLUMNS says, else the terminal's; `None` in a pipe.
pub fn columns(stream: &impl std::os::fd::AsFd) -> Option<usize> {
    let said = std::env::var("COLUMNS").ok().and_then(|said| said.trim().parse::<usize>().ok());
    let columns = said.filter(|columns| *columns > 0);
    columns.or_else(|| terminal_size_of(stream).map(|(width, _)| usize::from(width.0)))
}

/// Where an answer is printed.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The form of the answer.
    pub format: Format,
    color: bool,
    width: usize,
    /// Whether a line that is too long would be broken by who shows it.
    narrow: bool,
}

/// A cell of a table. The first row decides which columns may wrap.
pub enum TableCell {
    /// Aligned left, wrapped where the terminal is narrow.
    Text(String),
    /// Aligned left, never wrapped.
    Name(String),
    /// Aligned left, never wrapped, and bold where there is colour.
    Strong(String),
    /// Aligned right, never wrapped.
    Number(String),
}

impl TableCell {
    fn text(&self) -> &str {
        let (TableCell::Text(text)
        | TableCell::Name(text)
        | TableCell::Strong(text)
        | TableCell::Number(text)) = self;
        text
    }

    /// The least width that the cell can be laid out in.
    fn least(&self) -> usize {
        match self {
            TableCell::Text(text) => longest_word(text),
            whole => display_width(whole.text()),
        }
    }
}

fn longest_word(text: &str) -> usize {
    text.split_whitespace().map(display_width).max().unwrap_or(0)
}

/// The widths of a table's columns: that of their contents, the widest taken back as far as their words
/// allow until the table fits `page`.
fn widths(header: &[&str], rows: &[Vec<TableCell>], page: usize) -> Vec<usize> {
    let cells = |column: usize| rows.iter().filter_map(move |row| row.get(column));
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0).max(header.len());
    let title = |column: usize| header.get(column).copied().unwrap_or("");
    let mut widths: Vec<usize> = (0..columns)
        .map(|column| {
            let own = cells(column).map(|entry| display_width(entry.text())).max().unwrap_or(0);
            own.max(display_width(title(column)))
        })
        .collect();
    let least: Vec<usize> = (0..columns)
        .map(|column| cells(column).map(TableCell::least).max().unwrap_or(0).max(longest_word(title(column))))
        .collect();
    // A blank on either side of each column; the last one is not printed.
    while widths.iter().map(|width| width + 2).sum::<usize>() > page + 1 {
        let widest = (0..columns).filter(|column| widths[*column] > least[*column]);
        let Some(widest) = widest.max_by_key(|column| widths[*column]) else { break };
        widths[widest] -= 1;
    }
    widths
}

/// Markdown in which each line stays one: a line below a table would be its last row, and lines below each other
/// one paragraph.
fn paragraphs(text: &str) -> String {
    let mut page = String::with_capacity(text.len());
    let (mut before, mut drawn) = ("", false);
    for line in text.lines() {
        let is_plain = |line: &str| !line.is_empty() && !line.starts_with(['|', '#', '-', '`', ' ']);
        let ends_table = before.starts_with('|') && !line.is_empty() && !line.starts_with('|');
        if !drawn && (ends_table || is_plain(before) && is_plain(line)) {
            page.push('\n');
        }
        drawn ^= line.starts_with("```");
        page += line;
        page.push('\n');
        before = line;
    }
    page
}

impl Screen {
    /// The screen that the options ask for.
    pub fn new(options: OutputOptions) -> Screen {
        let terminal = stdout().is_terminal();
        Screen {
            format: options.format,
            color: options.format == Format::Table && allows_color(options.color, terminal),
            width: columns(&stdout()).unwrap_or(COLUMNS).max(LEAST),
            narrow: columns(&stdout()).is_some(),
        }
    }

    /// A heading with an empty line before it.
    pub fn heading(&self, text: &str) -> String {
        match (self.format, self.color) {
            (Format::Markdown, _) => format!("\n## {text}\n\n"),
            // Wrapped before it is coloured, so that the escape sequences take no columns.
            (_, true) => format!("\n\x1b[1m{}\x1b[0m\n", textwrap::fill(text, self.wrapping())),
            _ => format!("\n{text}\n"),
        }
    }

    /// Text whose columns matter, such as a drawing. It is never wrapped.
    pub fn verbatim(&self, text: &str) -> String {
        let text = text.trim_end_matches('\n');
        match self.format {
            Format::Markdown => format!("```text\n{text}\n```\n"),
            _ => text.lines().map(|line| format!("{AS_IT_STANDS}{line}\n")).collect(),
        }
    }

    /// Breaks sentences at words, so that a page fits its screen. Lines that start with a blank or a stroke
    /// are tables, which are laid out already, and what is [verbatim](Screen::verbatim) stays as it is.
    pub fn prose(&self, text: &str) -> String {
        match self.format {
            Format::Table => {}
            Format::Markdown => return paragraphs(text),
            Format::Json | Format::Csv => return text.to_string(),
        }
        let mut page = String::with_capacity(text.len());
        for line in text.lines() {
            // A sentence that continues the line above it.
            let continued = line.strip_prefix(CONTINUED);
            let continued = continued.filter(|rest| rest.starts_with(|c: char| c.is_ascii_lowercase()));
            let is_colored = line.contains('\x1b');
            let whole = display_width(line) <= self.width || is_colored;
            page += &match continued {
                _ if whole => line.to_string(),
                Some(rest) => {
                    let options = self.wrapping().initial_indent(CONTINUED).subsequent_indent(CONTINUED);
                    textwrap::fill(rest, options)
                }
                None if line.starts_with([' ', '|', AS_IT_STANDS]) => line.to_string(),
                None => textwrap::fill(line, self.wrapping()),
            };
            page.push('\n');
        }
        page
    }

    /// How sentences are wrapped: at words, lines after the first indented.
    fn wrapping(&self) -> textwrap::Options<'static> {
        textwrap::Options::new(self.width)
            .subsequent_indent("  ")
            .break_words(false)
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
    }

    /// Prints the answer, its sentences wrapped.
    pub fn emit(&self, text: &str) -> Result<(), Failure> {
        emit(&self.prose(text))
    }

    /// Prints a part of an answer that goes on, its sentences wrapped; whether anybody still reads.
    pub fn emit_part(&self, text: &str) -> Result<bool, Failure> {
        emit_part(&self.prose(text))
    }

    /// A table with a line for each of `rows`. Words stay whole, so that no number becomes another; where
    /// the screen is too narrow for that, each row is a paragraph.
    pub fn table(&self, header: &[&str], rows: Vec<Vec<TableCell>>) -> String {
        let mut table = Table::new();
        let markdown = self.format == Format::Markdown;
        table.load_preset(if markdown { presets::ASCII_MARKDOWN } else { presets::NOTHING });
        table.force_no_tty();
        let widths = if markdown { None } else { Some(widths(header, &rows, self.width)) };
        if let Some(widths) = &widths
            && self.narrow
            && header.len() > 1
            && widths.iter().map(|width| width + 2).sum::<usize>() > self.width + 1
        {
            return self.paragraphs(header, rows);
        }
        if self.color {
            table.enforce_styling();
        }
        let numeric = |column: usize| {
            rows.first().is_some_and(|row| matches!(row.get(column), Some(TableCell::Number(_))))
        };
        let title = |(column, name): (usize, &&str)| {
            let cell = Cell::new(name).add_attribute(Attribute::Dim);
            cell.set_alignment(if numeric(column) { CellAlignment::Right } else { CellAlignment::Left })
        };
        table.set_header(header.iter().enumerate().map(title).collect::<Vec<_>>());
        for row in rows {
            table.add_row(row.into_iter().map(|entry| match entry {
                TableCell::Text(text) | TableCell::Name(text) if markdown => Cell::new(in_markdown(&text)),
                TableCell::Text(text) | TableCell::Name(text) => Cell::new(text),
                TableCell::Strong(text) if markdown => Cell::new(in_markdown(&text)),
                TableCell::Strong(text) => Cell::new(text).add_attribute(Attribute::Bold),
                TableCell::Number(text) => Cell::new(text).set_alignment(CellAlignment::Right),
            }));
        }
        for (column, width) in widths.iter().flatten().enumerate() {
            if let Some(column) = table.column_mut(column) {
                let padded = u16::try_from(width + 2).unwrap_or(u16::MAX);
                column.set_constraint(ColumnConstraint::Absolute(Width::Fixed(padded)));
            }
        }
        if widths.is_some() {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(u16::MAX);
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// A table whose rows are paragraphs: the first cell, and below it a line for each of the others.
    fn paragraphs(&self, header: &[&str], rows: Vec<Vec<TableCell>>) -> String {
        let label = header.iter().skip(1).map(|name| display_width(name)).max().unwrap_or(0);
        let mut text = String::new();
        for row in rows {
            for (column, entry) in row.iter().enumerate() {
                let own = entry.text();
                let (indent, name) = match column {
                    0 => (1, String::new()),
                    // A value without a title continues the line above it.
                    _ => (3, format!("{:label$} ", header.get(column).unwrap_or(&""))),
                };
                if column > 0 && own.is_empty() {
                    continue;
                }
                let first = format!("{}{name}", " ".repeat(indent));
                let hanging = " ".repeat(display_width(&first));
                let options = textwrap::Options::new(self.width.max(hanging.len() + LEAST))
                    .initial_indent(&first)
                    .subsequent_indent(&hanging)
                    .break_words(false)
                    .word_splitter(textwrap::WordSplitter::NoHyphenation);
                text += textwrap::fill(own, options).trim_end();
                text.push('\n');
            }
        }
        text
    }

    /// The answer as JSON, keys in the order of the type's fields.
    pub fn json(&self, answer: &impl Serialize) -> Result<String, Failure> {
        json(answer, PrettyFormatter::new())
    }
}

/// An answer as JSON, keys in the order of the type's fields, numbers [rounded](round).
pub fn rounded_json(answer: &impl Serialize) -> Result<String, Failure> {
    json(answer, Rounded(PrettyFormatter::new()))
}

/// Writes an answer to stdout as [`rounded_json`] has it, while it is serialised: one that is larger than memory can be
/// written so. A reader that closes its end early is not an error.
pub fn emit_json(answer: &impl Serialize) -> Result<(), Failure> {
    let mut out = std::io::BufWriter::with_capacity(1 << 16, stdout().lock());
    let formatter = Rounded(PrettyFormatter::new());
    let written = answer
        .serialize(&mut serde_json::Serializer::with_formatter(&mut out, formatter))
        .map_err(std::io::Error::from)
        .and_then(|()| out.write_all(b"\n"))
        .and_then(|()| out.flush());
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(Failure::unwritten(
            format!("cannot write the answer: {error}"),
            "check where the output goes",
        )),
        _ => Ok(()),
    }
}

fn json(answer: &impl Serialize, formatter: impl Formatter) -> Result<String, Failure> {
    let mut text = Vec::new();
    answer
        .serialize(&mut serde_json::Serializer::with_formatter(&mut text, formatter))
        .map_err(|error| Failure::input(format!("the answer has no JSON form: {error}"), ""))?;
    text.push(b'\n');
    Ok(String::from_utf8(text).expect("JSON is UTF-8"))
}

/// Lays JSON out for people, and rounds what has a fraction.
struct Rounded(PrettyFormatter<'static>);

/// What is written as it would be without rounding.
macro_rules! laid_out {
    ($($name:ident($($argument:ident: $kind:ty)?)),+) => {
        $(fn $name<W: ?Sized + Write>(&mut self, out: &mut W $(, $argument: $kind)?) -> std::io::Result<()> {
            self.0.$name(out $(, $argument)?)
        })+
    };
}

impl Formatter for Rounded {
    laid_out!(
        begin_array(), end_array(), begin_array_value(first: bool), end_array_value(), begin_object(), end_object(),
        begin_object_key(first: bool), begin_object_value(), end_object_value()
    );

    fn write_f64<W: ?Sized + Write>(&mut self, out: &mut W, value: f64) -> std::io::Result<()> {
        match round(value) {
            rounded if rounded.is_finite() => self.0.write_f64(out, rounded),
            // Rounding takes what stands for no place beyond all numbers, as JSON has none.
            _ => self.0.write_null(out),
        }
    }
}

/// Writes to stdout. A reader that closes its end early, as `head` does, is not an error.
pub fn emit(text: &str) -> Result<(), Failure> {
    emit_part(text).map(|_| ())
}

/// The same of an answer that goes on; whether anybody still reads.
fn emit_part(text: &str) -> Result<bool, Failure> {
    let text = text.replace(AS_IT_STANDS, "");
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(false),
        Err(error) => Err(Failure::unwritten(
            format!("cannot write the answer: {error}"),
            "check where the output goes",
        )),
    }
}

/// Writes a line to stderr. Where nobody can read it, there is nobody to tell either.
pub fn tell(line: &str) {
    let _ = writeln!(stderr().lock(), "{line}");
}

/// A file that an answer goes to.
///
/// It is tried before anything is computed, so that a file that cannot be written is known at once. What
/// is there stays until the new content is complete, and takes its place as a whole.
#[derive(Debug)]
pub struct OutputFile {
    shown: PathBuf,
    /// Where the content goes: the file that a link names; `None` for devices and pipes, which are
    /// written to as they are.
    replaced: Option<PathBuf>,
    /// Whether nothing may be there when the content takes its place.
    is_new: bool,
}

impl OutputFile {
    /// The same for a page or a picture: what is there and is none stays, since it may well be the design, the
    /// profile or the workload that the page is about.
    pub fn create_page(file: &Path) -> Result<OutputFile, Failure> {
        // A pipe is not opened for reading: that would wait for whoever writes to it.
        let is_file = std::fs::metadata(file).is_ok_and(|known| known.is_file());
        let mut head = [0; 64];
        let read = |head: &mut [u8]| File::open(file).and_then(|mut open| open.read(head));
        let length = if is_file { read(&mut head).unwrap_or(0) } else { 0 };
        let starts = String::from_utf8_lossy(&head[..length]).to_lowercase();
        if length > 0 && !["<!doctype html", "<svg", "<?xml"].iter().any(|start| starts.starts_with(start)) {
            return Err(Failure::input(
                format!("`{}` is there, and is not a page or picture of an earlier run", file.display()),
                "name another file, or remove this one first",
            ));
        }
        OutputFile::create(file)
    }

    /// Refuses a file that is there: what somebody has is never replaced.
    pub fn absent(file: &Path) -> Result<(), Failure> {
        // What is no file, such as a pipe or a terminal, is written to as it is.
        let is_file = match std::fs::metadata(file) {
            Ok(known) => known.is_file(),
            // A link to nothing has the name.
            Err(_) => std::fs::symlink_metadata(file).is_ok(),
        };
        if is_file { Err(is_there(file)) } else { Ok(()) }
    }

    /// The same for a file that is never replaced: what comes to be there meanwhile stays too, and is refused at the end.
    pub fn create_new(file: &Path) -> Result<OutputFile, Failure> {
        OutputFile::absent(file)?;
        Ok(OutputFile { is_new: true, ..OutputFile::create(file)? })
    }

    /// Makes sure that the file can be written.
    pub fn create(file: &Path) -> Result<OutputFile, Failure> {
        let failed = |error: std::io::Error| unwritable(file, &error);
        match std::fs::metadata(file) {
            Ok(known) if known.is_dir() => Err(Failure::input(
                format!("cannot write `{}`: it is a directory", file.display()),
                "name a file in it",
            )),
            Ok(known) if !known.is_file() => {
                Ok(OutputFile { shown: file.to_path_buf(), replaced: None, is_new: false })
            }
            Ok(_) => {
                OpenOptions::new().append(true).open(file).map_err(failed)?;
                OutputFile::tried(file, file.canonicalize().map_err(failed)?)
            }
            Err(error) if error.kind() == ErrorKind::NotFound => OutputFile::tried(file, file.to_path_buf()),
            Err(error) => Err(failed(error)),
        }
    }

    fn tried(shown: &Path, replaced: PathBuf) -> Result<OutputFile, Failure> {
        remove_left(&replaced);
        let output =
            OutputFile { shown: shown.to_path_buf(), replaced: Some(replaced.clone()), is_new: false };
        let beside = beside(&replaced);
        let tried = File::create(&beside).and_then(|_| std::fs::remove_file(&beside));
        tried.map_err(|error| unwritable(shown, &error))?;
        Ok(output)
    }

    /// Gives the file its content.
    pub fn write(self, content: &[u8]) -> Result<(), Failure> {
        let written = match &self.replaced {
            None => std::fs::write(&self.shown, content),
            Some(file) => replace_by(file, self.is_new, |mut open| open.write_all(content).map(|()| open)),
        };
        written.map_err(|error| unwritable(&self.shown, &error))
    }

    /// Gives the file what `content` writes, bit by bit; what is there stays where that fails.
    pub fn write_by(
        self,
        content: impl FnOnce(&mut dyn Write) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut failure = None;
        let fill = |open: File| {
            let mut open = BufWriter::with_capacity(1 << 16, open);
            content(&mut open).map_err(|why| {
                failure = Some(why);
                std::io::Error::other("its content cannot be made")
            })?;
            open.into_inner().map_err(|error| error.into_error())
        };
        let written = match &self.replaced {
            None => OpenOptions::new().write(true).open(&self.shown).and_then(|open| fill(open).map(|_| ())),
            Some(file) => replace_by(file, self.is_new, fill),
        };
        written.map_err(|error| failure.unwrap_or_else(|| unwritable(&self.shown, &error)))
    }
}

/// The name under which a file is written before it takes its place.
fn beside(file: &Path) -> PathBuf {
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    file.with_file_name(format!(".{name}.{}.new", std::process::id()))
}

/// Removes what processes that were killed while they wrote `file` left beside it. What a living one writes is locked; where
/// files have no locks, nothing is removed.
pub fn remove_left(file: &Path) {
    let folder = file.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let own = entry.file_name();
        let process = own.to_str().and_then(|own| {
            own.strip_prefix('.')?.strip_prefix(name.as_str())?.strip_prefix('.')?.strip_suffix(".new")
        });
        let is_ours = process.is_some_and(|process| process.parse::<u32>().is_ok());
        if is_ours && File::open(entry.path()).is_ok_and(|open| open.try_lock().is_ok()) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Puts a file with this content in the place of an earlier one: a reader sees the one or the other, and the content is on the
/// disk before the name is its (a relay's answers rest on that).
pub fn replace(file: &Path, content: &[u8]) -> std::io::Result<()> {
    replace_by(file, false, |mut open| open.write_all(content).map(|()| open))
}

/// Puts what `fill` writes in the place of a file; of one that is new, only where nothing is.
fn replace_by(
    file: &Path,
    is_new: bool,
    fill: impl FnOnce(File) -> std::io::Result<File>,
) -> std::io::Result<()> {
    let beside = beside(file);
    let write = || {
        let open = File::create(&beside)?;
        // While it lives, nobody takes the file for one that was left.
        let _ = open.try_lock();
        fill(open)?.sync_all()?;
        if is_new {
            // Of several that end at once one has the name.
            OpenOptions::new().write(true).create_new(true).open(file)?;
        } else if let Ok(known) = std::fs::metadata(file) {
            std::fs::set_permissions(&beside, known.permissions())?;
        }
        std::fs::rename(&beside, file).inspect_err(|_| {
            if is_new {
                let _ = std::fs::remove_file(file);
            }
        })
    };
    write().inspect_err(|_| {
        // What is left of a failed attempt would only be in the way.
        let _ = std::fs::remove_file(&beside);
    })
}

fn is_there(file: &Path) -> Failure {
    Failure::input(
        format!("`{}` is there already", file.display()),
        "name another file, or remove this one first",
    )
}

/// A file that cannot be written.
pub fn unwritable(file: &Path, error: &std::io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", file.display());
    match error.kind() {
        ErrorKind::AlreadyExists => is_there(file),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            Failure::unwritten(message, "make room, or write to another disk")
        }
        _ => Failure::input(message, "check that the directory exists and can be written"),
    }
}

/// The system in one line, with what was changed in it.
pub fn system_line(system: &System) -> String {
    let changed = match system.overlays.as_slice() {
        [] => String::new(),
        changes => format!(", with {}", changes.join(", ")),
    };
    format!("{} in testbed {}, mode {}{changed}", system.device, system.testbed, system.mode)
}

/// Says on standard error what the card's mode means, where it is not the common one.
pub fn tell_mode(system: &System) {
    if let Some(note) = system.mode_note() {
        tell(&format!("note: {note}"));
    }
}

/// A station with the machine of its role that is meant, from 1; without where there is but one.
pub fn place(station: &str, role: &str, machine: u32, machines: u64) -> String {
    if machines <= 1 {
        return station.to_string();
    }
    let part = station.strip_prefix(role).and_then(|part| part.strip_prefix('.')).unwrap_or(station);
    format!("{role} {machine} of {machines}: {part}")
}

/// So many of something, as in `1 row` and `2 rows`; a name between backquotes stays as it is.
pub fn counted(count: u64, what: &str) -> String {
    let end = if count == 1 || what.ends_with('`') { "" } else { "s" };
    format!("{count} {what}{end}")
}

/// A change in percent, with its sign; what rounds to 0 has none.
pub fn signed(percent: f64, decimals: usize) -> String {
    let text = fixed(percent, decimals);
    let sign =
        if percent > 0.0 && text.bytes().any(|digit| (b'1'..=b'9').contains(&digit)) { "+" } else { "" };
    format!("{sign}{text}%")
}

/// A cell of a Markdown table: a bar would begin the next one, and `<` a tag that a browser takes for its own.
fn in_markdown(text: &str) -> String {
    text.replace('|', "\\|").replace('<', "&lt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn screen(width: usize) -> Screen {
        Screen { format: Format::Table, color: false, width, narrow: true }
    }

    #[test]
    fn nothing_has_a_sign() {
        for (value, decimals, text) in [
            (-0.04, 1, "0.0"),
            (-0.0, 0, "0"),
            (-0.4, 0, "0"),
            (-0.06, 1, "-0.1"),
            (0.04, 1, "0.0"),
            (-12.0, 0, "-12"),
        ] {
            assert_eq!(fixed(value, decimals), text, "{value}");
        }
        assert_eq!((signed(-0.04, 1), signed(0.04, 1)), ("0.0%".to_string(), "0.0%".to_string()));
        assert_eq!((signed(-1.26, 1), signed(10.0, 1)), ("-1.3%".to_string(), "+10.0%".to_string()));
        assert_eq!(percent(-0.001, 0), "0%");
        assert_eq!((short(0.000_012_34), short(2.5e-8)), ("0.0000123".into(), "0.0000000250".into()));
        assert_eq!((round(116.812_345_678), round(2.5e-8)), (116.812_346, 2.5e-8));
        assert_eq!((short(-1e-12), short(-0.0), short(-2.0)), ("0.00000".into(), "0".into(), "-2.00".into()));
        assert!(round(-1e-13).is_sign_positive());
    }

    #[test]
    fn json_has_what_a_number_rounds_to_or_null() {
        let text =
            rounded_json(&[0.123_456_789, -1e-13, f64::MAX]).unwrap_or_else(|_| panic!("it has a form"));
        assert_eq!(text, "[\n  0.1234568,\n  0.0,\n  null\n]\n");
    }

    #[test]
    fn headings_and_sentences_that_continue_wrap_at_the_screen_with_colour_and_without() {
        let heading = "The stations of the mix, with what a request asks of each of them";
        let plain = screen(40);
        let coloured = Screen { color: true, ..plain };
        let without_color = |text: String| text.replace("\u{1b}[1m", "").replace("\u{1b}[0m", "");
        let expected = plain.prose(&plain.heading(heading));
        assert_eq!(expected.lines().count(), 3, "{expected}");
        assert_eq!(without_color(coloured.prose(&coloured.heading(heading))), expected);
        let text = "twin: 12 M/s\n      validates the queueing model only; hardware accuracy rests on the evidence\n";
        let page = plain.prose(text);
        assert!(page.lines().all(|line| display_width(line) <= 40), "{page}");
        assert!(page.lines().skip(1).all(|line| line.starts_with("      ")), "{page}");
        assert_eq!(screen(100).prose(text), text);
    }

    #[test]
    fn tables_fit_and_keep_their_words() {
        let rows = || {
            vec![
                vec![
                    TableCell::Strong("optimal".into()),
                    TableCell::Number("1234567".into()),
                    TableCell::Text("171 ns to 269 ns".into()),
                    TableCell::Text("143 in-flight slots held during PCIe: 2859 ns a request".into()),
                ],
                vec![
                    TableCell::Strong("greedy".into()),
                    TableCell::Number("68.7".into()),
                    TableCell::Text("-".into()),
                    TableCell::Text("8 processor cores".into()),
                ],
            ]
        };
        let header = ["mix", "M req/s", "interval", "why"];
        let words = |text: &str| {
            let mut words: Vec<String> = text.split_whitespace().map(str::to_string).collect();
            words.sort();
            words
        };
        let wide = screen(200).table(&header, rows());
        assert_eq!(wide.lines().count(), 3);
        for width in [40, 60, 80, 120] {
            let table = screen(width).table(&header, rows());
            assert!(table.lines().all(|line| display_width(line) <= width), "{width}:\n{table}");
            assert_eq!(words(&table), words(&wide), "{width}:\n{table}");
        }
        // Where not even the words fit side by side, the rows are paragraphs.
        let narrow = screen(36).table(&header, rows());
        assert!(narrow.lines().all(|line| display_width(line) <= 36), "{narrow}");
        assert!(narrow.starts_with(" optimal\n   M req/s  1234567\n"), "{narrow}");
        // A pipe is not a screen: nobody breaks its lines.
        let pipe = Screen { narrow: false, ..screen(36) }.table(&header, rows());
        assert!(pipe.contains("1234567") && pipe.starts_with(" mix"), "{pipe}");
    }

    #[test]
    fn sentences_wrap_and_drawings_do_not() {
        let screen = screen(40);
        let drawing = "│ a drawing whose lines are longer than the page that it is on │\n";
        let sentence = "a sentence of 123456789012 words that is longer than the page is wide\n";
        let text = screen.prose(&format!("{}{sentence}", screen.verbatim(drawing)));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0].trim_start_matches(AS_IT_STANDS), drawing.trim_end());
        assert!(lines[1..].iter().all(|line| display_width(line) <= 40) && lines.len() == 3, "{text}");
        assert!(lines[2].starts_with("  "));
        let markdown = Screen { format: Format::Markdown, ..screen };
        let bar = markdown
            .table(&["a", "b"], vec![vec![TableCell::Name("x | <b>".into()), TableCell::Number("1".into())]]);
        assert!(bar.contains("| x \\| &lt;b> | 1 |"), "{bar}");
        assert_eq!(markdown.prose(sentence), sentence);
        let page = "one\ntwo\n\n| a |\n| b |\nthree\n```text\nfour\nfive\n```\n- six\n- seven\n";
        let kept = "one\n\ntwo\n\n| a |\n| b |\n\nthree\n```text\nfour\nfive\n```\n- six\n- seven\n";
        assert_eq!(markdown.prose(page), kept, "a line is a line, and a table ends where it ends");
    }

    /// Of two that begin together the one that ends later is refused, and takes nothing from the other.
    #[test]
    fn a_new_file_takes_no_other_ones_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("card.toml");
        let create = || OutputFile::create_new(&file).expect("nothing is there");
        let (one, other, third) = (create(), create(), create());
        one.write(b"one").expect("it is written");
        let refused = other.write(b"other").expect_err("it is there").to_string();
        assert!(refused.contains("is there already"), "{refused}");
        assert!(third.write_by(|out| out.write_all(b"third").map_err(|_| unreachable!())).is_err());
        assert_eq!(std::fs::read(&file).expect("it is there"), b"one");
        assert!(OutputFile::create_new(&file).is_err());
        assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 1, "nothing is left behind");
    }

    /// What was left by who was killed goes; what somebody writes, and what is called otherwise, stays.
    #[test]
    fn what_killed_processes_left_is_removed() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("design.toml");
        let name = |name: &str| folder.path().join(name);
        let kept = [".design.toml.x.new", ".other.toml.17.new", "design.toml.17.new", ".design.toml.18.new"];
        for name in kept.iter().chain(&[".design.toml.17.new"]).map(|own| name(own)) {
            std::fs::write(name, b"cut").expect("it is written");
        }
        let living = File::open(name(".design.toml.18.new")).expect("it is there");
        living.try_lock().expect("nobody has it");
        remove_left(&file);
        assert!(kept.iter().all(|own| name(own).exists()) && !name(".design.toml.17.new").exists());
        drop(living);
        OutputFile::create(&file).expect("it can be written");
        assert!(!name(".design.toml.18.new").exists());
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("page.html");
        let names = || std::fs::read_dir(folder.path()).expect("a folder").count();
        let output = OutputFile::create(&file).expect("it can be written");
        assert_eq!(names(), 0, "a run that is interrupted leaves nothing");
        output.write(b"one").expect("it is written");
        let again = OutputFile::create(&file).expect("it can be written");
        assert_eq!(std::fs::read(&file).expect("it is there"), b"one", "what is there stays until the end");
        drop(again);
        let link = folder.path().join("link.html");
        std::os::unix::fs::symlink(&file, &link).expect("a link");
        OutputFile::create(&link).expect("it can be written").write(b"two").expect("it is written");
        assert_eq!(std::fs::read(&file).expect("it is there"), b"two");
        assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(names(), 2);
        assert!(OutputFile::create_page(&file).is_err(), "it is not a page");
        std::fs::write(&file, "<!DOCTYPE html><p>").expect("it can be written");
        OutputFile::create_page(&file).expect("an earlier page");
        OutputFile::create_page(&folder.path().join("new.svg")).expect("nothing is there");
        assert!(OutputFile::create(folder.path()).is_err(), "a directory");
        assert!(OutputFile::create(&folder.path().join("none/page.html")).is_err());
        OutputFile::create(Path::new("/dev/null")).expect("a device").write(b"three").expect("it takes all");
        assert!(!std::fs::metadata("/dev/null").expect("it is there").is_file());
    }
}
