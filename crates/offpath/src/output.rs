//! How answers are printed: tables on a terminal, JSON for programs, markdown for documents.

use crate::failure::Failure;
use clap::{Args, ValueEnum};
use comfy_table::{Attribute, Cell, CellAlignment, ColumnConstraint, ContentArrangement, Table, presets};
use offpath::profile::System;
use offpath::report::Page;
use serde::Serialize;
use std::io::{ErrorKind, IsTerminal, Write, stdout};
use std::path::Path;

/// The version of every JSON output; it grows when a key changes its meaning or goes away.
pub const SCHEMA_VERSION: u32 = 1;

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
}

/// When to use colour, which never says anything alone.
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
    /// When to use colour; it never says anything alone
    #[arg(long, global = true, value_enum, default_value_t)]
    pub color: Color,
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

/// Where an answer is printed.
#[derive(Clone, Copy, Debug)]
pub struct Screen {
    /// The form of the answer.
    pub format: Format,
    color: bool,
    width: Option<u16>,
}

/// A cell of a table. The first row decides which columns may wrap.
pub enum Entry {
    /// Aligned left, wrapped where the terminal is narrow.
    Text(String),
    /// Aligned left, never wrapped.
    Name(String),
    /// Aligned left, never wrapped, and bold where there is colour.
    Strong(String),
    /// Aligned right, never wrapped.
    Number(String),
}

impl Screen {
    /// The screen that the options ask for.
    pub fn new(options: OutputOptions) -> Screen {
        let terminal = stdout().is_terminal();
        Screen {
            format: options.format,
            color: options.format == Format::Table && allows_color(options.color, terminal),
            width: Table::new().width(),
        }
    }

    /// A heading with an empty line before it.
    pub fn heading(&self, text: &str) -> String {
        match (self.format, self.color) {
            (Format::Markdown, _) => format!("\n## {text}\n\n"),
            (_, true) => format!("\n\x1b[1m{text}\x1b[0m\n"),
            _ => format!("\n{text}\n"),
        }
    }

    /// Text whose columns matter, such as a drawing.
    pub fn verbatim(&self, text: &str) -> String {
        match self.format {
            Format::Markdown => format!("```text\n{}\n```\n", text.trim_end_matches('\n')),
            _ => format!("{}\n", text.trim_end_matches('\n')),
        }
    }

    /// A table with a line for each of `rows`.
    pub fn table(&self, header: &[&str], rows: Vec<Vec<Entry>>) -> String {
        let mut table = Table::new();
        let markdown = self.format == Format::Markdown;
        table.load_preset(if markdown { presets::ASCII_MARKDOWN } else { presets::NOTHING });
        table.force_no_tty();
        if let Some(width) = self.width.filter(|_| !markdown) {
            table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width);
        }
        if self.color {
            table.enforce_styling();
        }
        let numeric =
            |column: usize| rows.first().is_some_and(|row| matches!(row.get(column), Some(Entry::Number(_))));
        let title = |(column, name): (usize, &&str)| {
            let cell = Cell::new(name).add_attribute(Attribute::Dim);
            cell.set_alignment(if numeric(column) { CellAlignment::Right } else { CellAlignment::Left })
        };
        table.set_header(header.iter().enumerate().map(title).collect::<Vec<_>>());
        let whole: Vec<bool> = rows
            .first()
            .map(|row| row.iter().map(|entry| !matches!(entry, Entry::Text(_))).collect())
            .unwrap_or_default();
        for row in rows {
            table.add_row(row.into_iter().map(|entry| match entry {
                Entry::Text(text) | Entry::Name(text) => Cell::new(text),
                Entry::Strong(text) => Cell::new(text).add_attribute(Attribute::Bold),
                Entry::Number(text) => Cell::new(text).set_alignment(CellAlignment::Right),
            }));
        }
        // Names and numbers stay whole; in a narrow terminal the words beside them wrap.
        for (column, _) in whole.iter().enumerate().filter(|(_, whole)| **whole) {
            if let Some(column) = table.column_mut(column) {
                column.set_constraint(ColumnConstraint::ContentWidth);
            }
        }
        table.lines().map(|line| format!("{}\n", line.trim_end())).collect()
    }

    /// The answer as JSON, keys in the order of the type's fields.
    pub fn json(&self, answer: &impl Serialize) -> Result<String, Failure> {
        let text = serde_json::to_string_pretty(answer)
            .map_err(|error| Failure::input(format!("the answer has no JSON form: {error}"), ""))?;
        Ok(format!("{text}\n"))
    }
}

/// Writes to stdout. A reader that closes its end early, as `head` does, is no error.
pub fn emit(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::input(format!("cannot write the answer: {error}"), "check where the output goes"))
        }
        _ => Ok(()),
    }
}

/// Writes a page to a file.
pub fn write_page(file: &Path, page: &Page) -> Result<(), Failure> {
    std::fs::write(file, page.html()).map_err(|error| {
        Failure::input(
            format!("cannot write `{}`: {error}", file.display()),
            "check that the directory exists and can be written",
        )
    })
}

/// The system in one line, with what was changed in it.
pub fn system_line(system: &System) -> String {
    let changed = match system.overlays.as_slice() {
        [] => String::new(),
        changes => format!(", with {}", changes.join(", ")),
    };
    format!("{} in testbed {}, mode {}{changed}", system.device, system.testbed, system.mode)
}

/// Rounds to 6 decimals, so that every form of an answer prints the same digits.
pub fn round(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

/// A number for people: 3 or more significant digits, no more than 5 decimals.
pub fn short(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        0.0 => "0".to_string(),
        v if v >= 0.1 => format!("{value:.3}"),
        v if v >= 0.01 => format!("{value:.4}"),
        _ => format!("{value:.5}"),
    }
}
