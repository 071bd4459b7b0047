//! Figures of logs as tables: those of one kind that follow each other are one, conditions that hold for all of it above.

use super::{ImportAnswer, ImportRemarkAnswer, ImportedFigureAnswer};
use offpath_logs::LogCaution;
use offpath_terminal::output::{Screen, TableCell, short};
use std::collections::BTreeSet;

/// Rows of a table, and remarks, that a page shows; JSON and CSV have all.
const MOST_ROWS: usize = 200;

/// Cells that are conditions, by their place in [`ImportedFigureAnswer::COLUMNS`].
const CONDITIONS: std::ops::Range<usize> = 7..26;

/// Figures that stand together.
struct TableRow<'a> {
    conditions: Vec<(String, String)>,
    figures: Vec<&'a ImportedFigureAnswer>,
}

/// Rows with the same columns.
struct Block<'a> {
    file: &'a str,
    tool: &'static str,
    columns: Vec<String>,
    rows: Vec<TableRow<'a>>,
}

impl ImportAnswer {
    /// The figures as tables, and what else has to be known.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = String::new();
        for block in blocks(&self.measurements) {
            text += &block.text(screen);
        }
        text += &self.cautions(screen);
        text += &remarks(&self.remarks, screen);
        text += &screen.heading("Lines");
        for file in &self.files {
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
        if self.measurements.is_empty() {
            text += "No line has a figure of a known tool; docs/import.md says which are known.\n";
        }
        text.trim_start_matches('\n').to_string()
    }

    /// What the cautions mean that figures have.
    fn cautions(&self, screen: &Screen) -> String {
        let names: BTreeSet<&str> =
            self.measurements.iter().flat_map(|one| one.cautions.iter().copied()).collect();
        if names.is_empty() {
            return String::new();
        }
        let mut text = screen.heading("Cautions");
        for caution in LogCaution::ALL.iter().filter(|caution| names.contains(caution.name())) {
            text += &format!("{}: {}\n", caution.name(), caution.meaning());
        }
        text
    }
}

/// Lines that give no figure.
fn remarks(remarks: &[ImportRemarkAnswer], screen: &Screen) -> String {
    if remarks.is_empty() {
        return String::new();
    }
    let mut text = screen.heading("Lines without figures");
    for remark in remarks.iter().take(MOST_ROWS) {
        text += &(remark.sentence() + "\n");
    }
    text + &beyond(remarks.len())
}

/// What is said of what a page does not show.
fn beyond(count: usize) -> String {
    match count.saturating_sub(MOST_ROWS) {
        0 => String::new(),
        more => format!("and {more} more: `--format json` and `--format csv` have all\n"),
    }
}

/// The name of a figure's column: with the span, where a row has several of one name.
fn column(figure: &ImportedFigureAnswer, figures: &[&ImportedFigureAnswer]) -> String {
    let of_name = figures.iter().filter(|other| other.metric == figure.metric).count();
    match figure.span.filter(|_| of_name > 1) {
        Some(span) => format!("{} of {span}", figure.metric),
        None => figure.metric.clone(),
    }
}

/// Rows, and as long as they have the same columns, tables.
fn blocks(figures: &[ImportedFigureAnswer]) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block> = Vec::new();
    let mut rest = figures;
    while let Some(first) = rest.first() {
        let conditions = conditions(first);
        let mut own: Vec<&ImportedFigureAnswer> = Vec::new();
        for figure in rest {
            let is_new =
                |other: &&ImportedFigureAnswer| other.metric == figure.metric && other.span == figure.span;
            let is_same = figure.file == first.file
                && figure.tool == first.tool
                && self::conditions(figure) == conditions
                && !own.iter().any(is_new);
            if !is_same {
                break;
            }
            own.push(figure);
        }
        rest = &rest[own.len()..];
        let columns: Vec<String> = own.iter().map(|figure| column(figure, &own)).collect();
        let row = TableRow { conditions, figures: own };
        match blocks.last_mut() {
            Some(last) if last.file == first.file && last.tool == first.tool && last.columns == columns => {
                last.rows.push(row);
            }
            _ => blocks.push(Block { file: &first.file, tool: first.tool, columns, rows: vec![row] }),
        }
    }
    blocks
}

/// What a figure was taken under, as far as it is stated.
fn conditions(figure: &ImportedFigureAnswer) -> Vec<(String, String)> {
    let cells = figure.cells();
    let named = ImportedFigureAnswer::COLUMNS[CONDITIONS].iter().map(|name| name.to_string());
    let own = named.zip(cells[CONDITIONS].iter().cloned()).filter(|(_, cell)| !cell.is_empty());
    own.chain(figure.more.iter().map(|(key, own)| (key.clone(), own.to_string()))).collect()
}

impl Block<'_> {
    fn text(&self, screen: &Screen) -> String {
        let value = |row: &TableRow, key: &str| {
            row.conditions
                .iter()
                .find(|(own, _)| own == key)
                .map(|(_, value)| value.clone())
                .unwrap_or_default()
        };
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
        let columns_tell = self.columns.iter().any(|column| column.contains(" of "));
        if !spans.is_empty() && !columns_tell {
            text += &format!("latency is of: {}\n", spans.into_iter().collect::<Vec<_>>().join(", "));
        }
        let with_cautions =
            self.rows.iter().any(|row| row.figures.iter().any(|figure| !figure.cautions.is_empty()));
        let mut header = vec!["line"];
        header.extend(varying.iter().map(|key| key.as_str()));
        header.extend(self.columns.iter().map(String::as_str));
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
        text += &screen.table(&header, self.rows.iter().take(MOST_ROWS).map(cells).collect());
        text + &beyond(self.rows.len())
    }
}
