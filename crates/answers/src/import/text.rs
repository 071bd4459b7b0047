//! Figures of logs as tables: those of one kind that follow each other are one, conditions that hold for all of it above.

use super::{ImportRemarkAnswer, ImportedFigureAnswer, ImportedFileAnswer};
use offpath_logs::{LogCautions, LogItem, LogMeasurement, LogMetric};
use offpath_terminal::output::{Screen, TableCell, short};
use std::collections::BTreeSet;

/// Rows of a table, and remarks, that a page shows; JSON and CSV have all.
const MOST_ROWS: usize = 200;

/// Rows of all tables that it shows.
const MOST_OF_ALL: usize = 5000;

/// Cells that are conditions, by their place in [`ImportedFigureAnswer::COLUMNS`].
pub(super) const CONDITIONS: std::ops::Range<usize> = 8..27;

/// Figures that stand together.
struct TableRow {
    conditions: Vec<(String, String)>,
    figures: Vec<ImportedFigureAnswer>,
}

/// Rows with the same columns.
struct Block {
    file: String,
    tool: &'static str,
    metrics: Vec<Column>,
    rows: Vec<TableRow>,
    /// Those that are not shown.
    more: usize,
}

/// What a column of a table has: the figure, its unit and its span.
type Column = (LogMetric, &'static str);

/// Figures of logs as tables, taken one by one: what a page does not show is counted and not kept.
#[derive(Default)]
pub struct ImportTables {
    blocks: Vec<Block>,
    /// Figures of the row that may go on, and their file.
    open: Vec<LogMeasurement>,
    file: String,
    shown: usize,
    /// Rows of tables that are not shown at all.
    more: usize,
    cautions: LogCautions,
    remarks: Vec<ImportRemarkAnswer>,
    remarked: usize,
}

impl ImportTables {
    /// Takes what a file gives.
    pub fn take(&mut self, file: &str, item: LogItem) {
        let figure = match item {
            LogItem::Measurement(figure) => figure,
            LogItem::Remark(remark) => {
                self.remarked += 1;
                if self.remarks.len() < MOST_ROWS {
                    self.remarks.push(ImportRemarkAnswer::of(file, remark));
                }
                return;
            }
        };
        self.cautions = self.cautions.union(figure.cautions);
        // A log that is named twice has each row again.
        let is_known = self.open.iter().any(|own| own.metric == figure.metric);
        let is_of_it = |last: &LogMeasurement| self.file == file && last.row == figure.row && !is_known;
        let goes_on = self.open.last().is_some_and(is_of_it);
        if !goes_on {
            self.end_row();
            if self.file != file {
                self.file = file.to_string();
            }
        }
        self.open.push(figure);
    }

    /// Puts the row that was open into the table that it goes on, or into one of its own.
    fn end_row(&mut self) {
        let Some(first) = self.open.first() else { return };
        let is_column = |(own, column): (&LogMeasurement, &Column)| {
            own.metric == column.0 && own.figure.unit() == column.1
        };
        let goes_on = |last: &Block| {
            last.file == self.file
                && last.tool == first.tool.name()
                && last.metrics.len() == self.open.len()
                && self.open.iter().zip(&last.metrics).all(is_column)
        };
        let is_new = !self.blocks.last().is_some_and(goes_on);
        if self.shown >= MOST_OF_ALL && is_new || self.more > 0 {
            self.more += 1;
            self.open.clear();
            return;
        }
        if is_new {
            self.blocks.push(Block {
                file: self.file.clone(),
                tool: first.tool.name(),
                metrics: self.open.iter().map(|own| (own.metric, own.figure.unit())).collect(),
                rows: Vec::new(),
                more: 0,
            });
        }
        let block = self.blocks.last_mut().expect("there is one");
        if block.rows.len() >= MOST_ROWS || self.shown >= MOST_OF_ALL {
            block.more += 1;
            self.open.clear();
            return;
        }
        self.shown += 1;
        let figures: Vec<ImportedFigureAnswer> =
            self.open.drain(..).map(|figure| ImportedFigureAnswer::of(&self.file, &figure)).collect();
        block.rows.push(TableRow { conditions: conditions(&figures[0]), figures });
    }

    /// The figures as tables, and what else has to be known; `files` are what became of the lines of each. And whether there
    /// is a figure.
    pub fn text(mut self, files: &[ImportedFileAnswer], screen: &Screen) -> (String, bool) {
        self.end_row();
        let mut text = String::new();
        for block in &self.blocks {
            text += &block.text(screen);
        }
        if self.more > 0 {
            text += &format!(
                "and {} more rows of other tables: `--format json` and `--format csv` have all\n",
                self.more
            );
        }
        text += &self.cautions(screen);
        text += &remarks(&self.remarks, self.remarked, screen);
        text += &screen.heading("Lines");
        for file in files {
            text += &format!(
                "{}: {} lines, {} with figures, {} known without, {} blank, {} failures, {} unknown\n",
                file.file,
                file.lines,
                file.measured_lines,
                file.known_lines,
                file.blank_lines,
                file.failed_lines,
                file.unknown_lines
            );
        }
        let has_figures = !self.blocks.is_empty();
        if !has_figures {
            text += "No line has a figure of a known tool; docs/import.md says which are known.\n";
        }
        (text.trim_start_matches('\n').to_string(), has_figures)
    }

    /// What the cautions mean that figures have.
    fn cautions(&self, screen: &Screen) -> String {
        let mut all = self.cautions.iter().peekable();
        if all.peek().is_none() {
            return String::new();
        }
        let mut text = screen.heading("Cautions");
        for caution in all {
            text += &format!("{}: {}\n", caution.name(), caution.meaning());
        }
        text
    }
}

/// Lines that give no figure: those that are shown, of so many.
fn remarks(remarks: &[ImportRemarkAnswer], all: usize, screen: &Screen) -> String {
    if remarks.is_empty() {
        return String::new();
    }
    let mut text = screen.heading("Lines without figures");
    for remark in remarks {
        text += &(remark.sentence() + "\n");
    }
    text + &beyond(all - remarks.len(), "")
}

/// What is said of what a page does not show.
fn beyond(more: usize, which: &str) -> String {
    match more {
        0 => String::new(),
        more => format!("and {more} more{which}: `--format json` and `--format csv` have all\n"),
    }
}

/// The name of a figure's column: with the span, where a row has several of one name.
fn column(figure: &ImportedFigureAnswer, figures: &[ImportedFigureAnswer]) -> String {
    let of_name = figures.iter().filter(|other| other.metric == figure.metric).count();
    match figure.span.filter(|_| of_name > 1) {
        Some(span) => format!("{} of {span}", figure.metric),
        None => figure.metric.clone(),
    }
}

/// What a figure was taken under, as far as it is stated.
fn conditions(figure: &ImportedFigureAnswer) -> Vec<(String, String)> {
    let cells = figure.cells();
    let named = ImportedFigureAnswer::COLUMNS[CONDITIONS].iter().map(|name| name.to_string());
    let own = named.zip(cells[CONDITIONS].iter().cloned()).filter(|(_, cell)| !cell.is_empty());
    own.chain(figure.more.iter().map(|(key, own)| (key.clone(), own.to_string()))).collect()
}

impl Block {
    fn text(&self, screen: &Screen) -> String {
        let value = |row: &TableRow, key: &str| {
            row.conditions
                .iter()
                .find(|(own, _)| own == key)
                .map(|(_, value)| value.clone())
                .unwrap_or_default()
        };
        let first = &self.rows[0].figures;
        let columns: Vec<String> = first.iter().map(|figure| column(figure, first)).collect();
        let mut keys: Vec<&String> = Vec::new();
        for (key, _) in self.rows.iter().flat_map(|row| &row.conditions) {
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        let is_same =
            |key: &&String| self.rows.iter().all(|row| value(row, key) == value(&self.rows[0], key));
        let (same, varying): (Vec<&String>, Vec<&String>) = keys.into_iter().partition(is_same);
        let stated: Vec<String> = same
            .iter()
            .map(|key| format!("{} {}", key.replace('_', " "), value(&self.rows[0], key)))
            .collect();
        let mut text = screen.heading(&format!("{}, {}", self.file, self.tool));
        if !stated.is_empty() {
            text += &(stated.join(", ") + "\n");
        }
        let spans: BTreeSet<&str> =
            self.rows.iter().flat_map(|row| row.figures.iter().filter_map(|figure| figure.span)).collect();
        let columns_tell = columns.iter().any(|column| column.contains(" of "));
        if !spans.is_empty() && !columns_tell {
            text += &format!("latency is of: {}\n", spans.into_iter().collect::<Vec<_>>().join(", "));
        }
        let with_cautions =
            self.rows.iter().any(|row| row.figures.iter().any(|figure| !figure.cautions.is_empty()));
        let mut header = vec!["line"];
        header.extend(varying.iter().map(|key| key.as_str()));
        header.extend(columns.iter().map(String::as_str));
        if with_cautions {
            header.push("cautions");
        }
        let cells = |row: &TableRow| {
            let mut cells = vec![TableCell::Number(row.figures[0].line.to_string())];
            for key in &varying {
                let cell = value(row, key);
                cells.push(match cell.parse::<f64>() {
                    Ok(_) => TableCell::Number(cell),
                    Err(_) => TableCell::Name(cell),
                });
            }
            cells.extend(row.figures.iter().map(|figure| TableCell::Number(short(figure.value))));
            if with_cautions {
                let own: BTreeSet<&str> =
                    row.figures.iter().flat_map(|figure| figure.cautions.iter().copied()).collect();
                cells.push(TableCell::Text(own.into_iter().collect::<Vec<_>>().join(" ")));
            }
            cells
        };
        text += &screen.table(&header, self.rows.iter().map(cells).collect());
        text + &beyond(self.more, ", whose conditions may be others")
    }
}
