//! Published rows beside their predictions, as a page of text.

use super::{BesideAnswer, CountAnswer, MediansAnswer, ReproduceAnswer, RowAnswer, VariantScoreAnswer};
use crate::rows::{error_percent, figure, is_nowhere};
use offpath_evidence::LogEntry;
use offpath_evidence::reproduce::MovedRow;
use offpath_terminal::output::{Format, Screen, TableCell, short};

pub(super) const HEADER: [&str; 9] =
    ["row", "stands in", "published", "predicted", "interval", "error", "null error", "counts as", "is"];

/// What [`RowAnswer::interval_of`] means, below the tables.
const INTERVALS: &str = "Where a sweep is predicted, its interval is that of the one place that the row is judged by, whose \
     value stands behind it: `0.9 to 1.2 of 1.0`.";

impl ReproduceAnswer {
    /// The answer as text: in Markdown the page that stands in docs/validation.md; else the score and the rows that miss,
    /// `all` rows, or those that were asked for.
    pub fn text(&self, screen: &Screen, all: bool) -> String {
        match screen.format {
            Format::Markdown => self.validation(screen),
            _ => self.table(screen, all),
        }
    }

    fn table(&self, screen: &Screen, all: bool) -> String {
        let whole = self.summary.is_some();
        let is_shown = |row: &&RowAnswer| if whole { all || row.is_listed() } else { row.asked };
        let shown: Vec<&RowAnswer> = self.rows.iter().filter(is_shown).collect();
        let mut text = String::new();
        if !self.overlays.is_empty() {
            text += &format!("With {}:\n\n", self.overlays.join(", "));
        }
        if whole {
            text += &self.score_text(screen);
            text += &screen.heading(if all { "Every row" } else { "Rows that miss" });
        }
        text += &screen.table(&HEADER, shown.iter().map(|row| row.entries()).collect());
        if whole && !self.variants.is_empty() {
            text += &screen.heading("Variants of open mechanisms");
            text.extend(self.variant_lines().map(|line| line + "\n"));
        }
        if shown.iter().any(|row| row.interval_of.is_some()) {
            text += &format!("\n{INTERVALS}\n");
        }
        text += "\n`offpath explain ROW` shows the experiment behind a row.";
        text += if all || !whole { "\n" } else { " `--all` shows every row.\n" };
        text
    }

    /// The page that stands in docs/validation.md.
    fn validation(&self, screen: &Screen) -> String {
        let mut text = "# Validation: published rows beside their predictions\n\n\
            `offpath reproduce --format markdown` writes this page; a test compares it. `offpath explain ROW` shows the \
            experiment behind a row, and [evidence.md](evidence.md) says how rows are judged, and which are not.\n\n"
            .to_string();
        text += &self.score_text(screen);
        text += &screen.heading("Variants of open mechanisms");
        text += "Where the papers leave a mechanism open, both are variants of the profile. Rows that hold under one \
                 alone:\n\n";
        text.extend(self.variant_lines().map(|line| format!("- {line}\n")));
        text += &screen.heading("What mispredictions taught");
        for entry in &self.log {
            let (rows, rest) = log_parts(entry);
            text += &format!("- **{rows}** {rest}\n");
        }
        text += &screen.heading("Rows that miss");
        text += &format!("{INTERVALS}\n\n");
        let missed = self.rows.iter().filter(|row| row.misses);
        text += &screen.table(&HEADER, missed.map(RowAnswer::entries).collect());
        text += &screen.heading("Every row");
        text += &screen.table(&HEADER, self.rows.iter().map(RowAnswer::entries).collect());
        text += &screen.heading("What the rows say, and why some are not predicted");
        let rows = self.rows.iter().map(|row| {
            let note = if row.reason.is_empty() { "-" } else { &row.reason };
            vec![
                TableCell::Name(row.id.clone()),
                TableCell::Text(row.states.replace('|', " or ")),
                TableCell::Text(note.to_string()),
            ]
        });
        text += &screen.table(&["row", "states", "note"], rows.collect());
        text
    }

    fn score_text(&self, screen: &Screen) -> String {
        let score = &self.score;
        let row = |what: &str, count: CountAnswer, goal: &str| {
            let percent = count.percent.map_or_else(|| "-".to_string(), |share| format!("{share:.1}%"));
            vec![
                TableCell::Text(what.to_string()),
                TableCell::Number(count.words()),
                TableCell::Number(percent),
                TableCell::Text(goal.to_string()),
            ]
        };
        let having = |count: CountAnswer, of: usize| CountAnswer::new(count.within, of);
        let measured_here = row("- of them on times that were measured here", score.measured_here, "");
        let rows = [
            Some(row("predicted: measured numbers", score.measured, "75%")),
            Some(row("- inside their 80% interval", score.covered_80, "75% to 90%")),
            Some(row("- inside their 95% interval", score.covered_95, "90% to 98%")),
            Some(row(
                "- inside 80%, of those that have an interval",
                having(score.covered_80, score.with_interval),
                "",
            )),
            Some(row(
                "- inside 95%, of those that have an interval",
                having(score.covered_95, score.with_interval),
                "",
            )),
            Some(row("- inside 80% intervals without past errors", score.covered_80_by_numbers, "")),
            (score.measured_here.of > 0).then_some(measured_here),
            Some(row("- the nearest published row instead", score.nearest_row, "")),
            Some(row("predicted: orders and bounds", score.orders, "95%")),
            Some(row("no predictions: restate others, or were given", score.restated, "")),
            Some(row("fitted, or decided a number by hand", score.fitted, "90%")),
            Some(row("- inside their 80% interval", score.fitted_covered_80, "")),
            Some(row(
                "- inside 80%, of the fitted that have an interval",
                having(score.fitted_covered_80, score.fitted_with_interval),
                "",
            )),
            Some(row("predicted: cards of which nothing was fitted", score.unfitted, "")),
            Some(row("- no difference, else links alone instead", score.unfitted_simple, "")),
            Some(row("- of them measured numbers", score.unfitted_measured, "")),
            Some(row("- inside 80% intervals of the others' errors", score.unfitted_covered_80, "")),
            Some(row("- inside 95% intervals of the others' errors", score.unfitted_covered_95, "")),
            Some(row("- rows that decided a number there, or restate one", score.unfitted_restated, "")),
            Some(row("read from a profile", score.configured, "all")),
            Some(row("formulas, limits and counts, without headers", score.exact, "all")),
        ];
        let rows = rows.into_iter().flatten().collect();
        let mut text = screen.table(&["rows", "within tolerance", "", "goal"], rows);
        text += &format!(
            "\n{} rows are not modelled ({:.1}% of the scored kinds; \
             docs/evidence.md says which), {} contradict others, {} are settings of the \
             authors' experiments. Half of the 80% intervals reach a factor of {:.2} or more to either side.\n\nMedian \
             error of the {} predicted measured numbers that are no places: {:.1}%. Beside another model both \
             medians are over the rows that both answer; alike is to half a percent. Inside and reach are of 80% intervals, \
             offpath's before the other's, which are made of its own errors on these rows as offpath's are.\n\n",
            score.not_modelled,
            score.not_modelled_percent,
            score.conflicts,
            score.settings,
            1.0 + score.median_half_width_80_share,
            score.median_errors.rows,
            100.0 * score.median_errors.model.unwrap_or(0.0),
        );
        text += &beside_table(&score.median_errors, screen);
        if !self.falsified.is_empty() {
            text += "\nWith every fitted number of the profiles wrong. Where that is as good as the profiles, the predictions do \
                     not test the fit: they rest on links, headers and the structure.\n\n";
            text += &self.wrong_table(screen);
        }
        text
    }

    fn wrong_table(&self, screen: &Screen) -> String {
        let rows = self.falsified.iter().map(|one| {
            let times = short(one.times);
            let by = match one.draw {
                None => format!("all times {times}"),
                Some(draw) => format!("each times {times} or its inverse (draw {draw})"),
            };
            let of = |count: CountAnswer| TableCell::Number(count.words());
            vec![
                TableCell::Text(by),
                of(one.measured),
                of(one.moved),
                of(one.moved_before),
                TableCell::Number(format!("{:.1}%", 100.0 * one.median_error)),
                of(one.fitted),
            ]
        });
        let head = [
            "fitted numbers",
            "measured",
            "of those moved",
            "by the profiles",
            "median error",
            "fitted rows",
        ];
        screen.table(&head, rows.collect())
    }

    /// What the rows say of each variant, a line each.
    pub(super) fn variant_lines(&self) -> impl Iterator<Item = String> {
        self.variants.iter().map(|variant| variant.line(self.score.measured))
    }
}

/// What an entry of the log is about, and what it says.
pub(super) fn log_parts(entry: &LogEntry) -> (String, String) {
    let state = if entry.open { "still missed" } else { "holds by now" };
    (entry.rows.join(", "), format!("({state}). {} {}", entry.missed, entry.taught))
}

fn beside_table(errors: &MediansAnswer, screen: &Screen) -> String {
    let row = |name: &str, of: &BesideAnswer| {
        let median = |value: Option<f64>| {
            TableCell::Number(value.map_or_else(|| "-".to_string(), |value| format!("{:.1}%", 100.0 * value)))
        };
        let number = |count: usize| TableCell::Number(count.to_string());
        let reach = |share: Option<f64>| 1.0 + share.unwrap_or(0.0);
        let (own, other) = (reach(of.half_width_80_share), reach(of.half_width_80_share_other));
        vec![
            TableCell::Text(name.to_string()),
            number(of.rows),
            median(of.model),
            median(of.other),
            number(of.nearer),
            number(of.further),
            number(of.alike),
            TableCell::Text(format!("{} : {}", of.covered_80, of.covered_80_other)),
            TableCell::Text(format!("{own:.2} : {other:.2}")),
        ]
    };
    let rows = vec![
        row("the nearest published row", &errors.nearest_row),
        row("- where links alone speak", &errors.nearest_row_where_links_speak),
        row("- elsewhere", &errors.nearest_row_elsewhere),
        row("links alone", &errors.links_alone),
        row("no difference, where two things are compared", &errors.no_change),
        row("what needs no card: no difference, else links alone", &errors.simple),
        row("no difference, else the nearest published row", &errors.no_change_or_nearest_row),
    ];
    let head = [
        "median errors beside",
        "rows",
        "offpath",
        "the other",
        "nearer",
        "further off",
        "alike",
        "inside 80%",
        "reach",
    ];
    screen.table(&head, rows)
}

impl CountAnswer {
    fn words(self) -> String {
        format!("{} of {}", self.within, self.of)
    }
}

impl RowAnswer {
    /// The row of a table under [`HEADER`].
    pub(super) fn entries(&self) -> Vec<TableCell> {
        let dash = || "-".to_string();
        let unit = |text: &str| {
            if self.unit.is_empty() { text.to_string() } else { format!("{text} {}", self.unit) }
        };
        let predicted = match (&self.held, self.predicted, self.predicted_from, self.predicted_to) {
            (Some(held), ..) => held.clone(),
            (None, Some(value), Some(from), Some(to)) if from == to || is_nowhere(to) => figure(value),
            (None, Some(_), Some(from), Some(to)) => format!("{} to {}", figure(from), figure(to)),
            _ => dash(),
        };
        let published = match (&self.number, &self.published_as) {
            (Some(number), _) => number.clone(),
            (None, Some(claim)) => unit(claim),
            (None, None) if self.predicted.is_some() => "a formula".to_string(),
            (None, None) => dash(),
        };
        let interval = match (self.low, self.high) {
            (Some(low), Some(high)) if high - low > 1e-9 * high.abs() => {
                let of = self.interval_of.map_or_else(String::new, |value| format!(" of {}", figure(value)));
                format!("{} to {}{of}", figure(low), figure(high))
            }
            _ => dash(),
        };
        let name = match self.standing {
            "MISSES" => TableCell::Strong(self.id.clone()),
            _ => TableCell::Name(self.id.clone()),
        };
        let counts_as = self.counts_as.map_or_else(|| self.role.replace('_', " "), str::to_string);
        vec![
            name,
            TableCell::Text(self.source.clone()),
            TableCell::Text(published),
            TableCell::Text(predicted),
            TableCell::Text(interval),
            TableCell::Number(
                self.error.map_or_else(dash, |error| error_percent(error, self.within == Some(false))),
            ),
            TableCell::Number(self.null_error.map_or_else(dash, |error| error_percent(error, false))),
            TableCell::Name(counts_as),
            TableCell::Name(self.standing.to_string()),
        ]
    }
}

impl VariantScoreAnswer {
    fn line(&self, measured_without: CountAnswer) -> String {
        let list = |moved: &[MovedRow]| {
            let one = |row: &MovedRow| {
                format!(
                    "{} ({} {} published, {} becomes {})",
                    row.id,
                    row.published,
                    row.unit,
                    figure(row.without),
                    figure(row.with)
                )
            };
            match moved {
                [] => "no row".to_string(),
                some => some.iter().map(one).collect::<Vec<_>>().join("; "),
            }
        };
        format!(
            "{} ({}): {} of {} measured predictions within tolerance with it, {} without. Against it: {}; for \
             it: {}. Of the rows that were fitted or decided between the two, which cannot speak for the one that \
             they chose, against it: {}; for it: {}.",
            self.overlay,
            self.description,
            self.measured.within,
            self.measured.of,
            measured_without.within,
            list(&self.refuted_by),
            list(&self.favoured_by),
            list(&self.no_predictions_against),
            list(&self.no_predictions_for),
        )
    }
}
