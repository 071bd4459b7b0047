//! Diagnoses as text.

use super::{CauseGroupAnswer, DiagnoseAnswer, DiagnosedPointAnswer};
use crate::file_names::file_names;
use offpath_learn::diagnose::GAP;
use offpath_quantity::Bytes;
use offpath_quantity::figures::short;
use offpath_terminal::output::{Screen, TableCell, counted};
use std::collections::BTreeMap;

/// Rows of a table that a screen shows.
const MOST_ROWS: usize = 60;
/// Rows that tables have in the mean at least, where there are several: more tables say what they are of in as many lines.
const LEAST_ROWS: usize = 2;
/// Groups of causes that a screen shows.
const MOST_GROUPS: usize = 5;

/// How many rows are low, or high, and how far: the median of all may lie on the other side.
fn odd_rows(shares: &[f64], is_low: bool) -> String {
    let (name, side, end) = if is_low { ("low", "below", GAP) } else { ("high", "above", 1.0 / GAP) };
    let is_odd = |share: &f64| if is_low { *share < end } else { *share > end };
    let median = |mut of: Vec<f64>| {
        of.sort_by(f64::total_cmp);
        of.get(of.len() / 2).map(|share| format!("{:.0}%", share * 100.0)).unwrap_or_default()
    };
    let odd: Vec<f64> = shares.iter().copied().filter(is_odd).collect();
    let (count, all) = (odd.len(), shares.len());
    let are = if count == 1 { "row is" } else { "rows are" };
    let end = end * 100.0;
    let mut text = format!(
        "{count} of {all} {are} {name}, {side} {end:.0}% of what the model expects: their median is at {}.",
        median(odd)
    );
    if count < all {
        text += &format!(" The median of all is at {}.", median(shares.to_vec()));
    }
    text + "\n"
}

impl DiagnoseAnswer {
    /// The verdict, what explains it, and the rows.
    pub fn text(&self, screen: &Screen) -> String {
        let odd = match (self.verdict, self.off_rows) {
            ("normal" | "held-back-as-stated" | "slightly-low" | "slightly-high", 1..)
                if self.has_few_off() =>
            {
                format!(", but for {}", counted(self.off_rows, "row"))
            }
            ("normal" | "held-back-as-stated" | "slightly-low" | "slightly-high", 1..) => {
                format!(" in most rows, and off in {} of {}", self.off_rows, self.points.len())
            }
            _ => String::new(),
        };
        let mut text =
            screen.heading(&format!("{} on {}: {}{odd}", self.path, self.system.device, self.verdict));
        text += &self.verdict_text();
        text += &self.off_text();
        text += &self.logs_text();
        text.extend(self.unlike_ends.iter().map(|said| format!("{said}\n")));
        for failed in self.failed.iter().filter(|_| !self.points.is_empty()) {
            let lines = counted(failed.count, "line");
            text += &format!("FAILED: {}:{}: {} ({lines})\n", failed.file, failed.line, failed.why);
        }
        for oddity in &self.oddities {
            text += &format!("the collection says: {oddity}\n");
        }
        for contradiction in &self.contradictions {
            text += &format!("contradiction: {contradiction}.\n");
        }
        if !self.causes.is_empty() {
            text += &screen.heading(match self.verdict {
                "inconclusive" => "What would explain the gap, if the card is as the profile says",
                _ => "What explains the gap",
            });
            if let Some(together) = self.explained_together_share {
                text += &format!(
                    "No cause explains it alone: 1 and 2 together explain {:.0}%, each beside the other; the shares below are of each alone.\n",
                    together * 100.0
                );
            }
            for (index, group) in self.causes.iter().take(MOST_GROUPS).enumerate() {
                let together = self.explained_together_share.filter(|_| index == 1);
                text += &group.text(index + 1, together);
            }
        }
        if !self.questions.is_empty() {
            text += &screen.heading("What the model has no number for");
            for question in &self.questions {
                text += &format!("{}\n  {}\n", question.what, question.command);
            }
        }
        if !self.shapes.is_empty() {
            text += &screen.heading("What the rows look like");
            for shape in &self.shapes {
                text += &format!("{}:{}-{}: {}\n", shape.file, shape.first_line, shape.last_line, shape.what);
            }
        }
        if self.nothing_comparable.is_some() {
            return text.trim_start_matches('\n').to_string();
        }
        text += &screen.heading("Measured and expected");
        text += &self.tables(screen);
        if self.points.len() > MOST_ROWS {
            text += &format!("and {} more: `--format json` has all\n", self.points.len() - MOST_ROWS);
        }
        for assumed in &self.assumed {
            text += &format!("{assumed}\n");
        }
        for again in &self.repeated {
            let rows = counted(again.count, "row");
            text += &format!("counted once: {}:{}, {rows}: {}\n", again.file, again.line, again.why);
        }
        for skipped in &self.skipped {
            text += &format!("not compared: {} figures: {}\n", skipped.count, skipped.why);
        }
        if self.unread_lines > 0 {
            let lines = counted(self.unread_lines, "line");
            text += &format!("not read: {lines} that give no figure; `offpath import` says why of each\n");
        }
        text += &format!(
            "The interval is of the share as stated, by what is not known of the card. How well what is expected is known: {}. {} of the \
             system's {} numbers are guesses, of which `offpath calibrate` fits what logs of such runs feel.\n",
            self.bases(),
            self.guessed_numbers,
            self.numbers
        );
        text.trim_start_matches('\n').to_string()
    }

    /// The rows, those of one test and figure that follow each other as a table below what they have in common, where there are few such
    /// tables.
    fn tables(&self, screen: &Screen) -> String {
        let shown = &self.points[..self.points.len().min(MOST_ROWS)];
        let names = file_names(self.points.iter().map(|point| &*point.file));
        let is_of_one = |one: &DiagnosedPointAnswer, other: &DiagnosedPointAnswer| {
            one.test == other.test && one.metric == other.metric
        };
        let tables: Vec<&[DiagnosedPointAnswer]> = shown.chunk_by(is_of_one).collect();
        if tables.len() > 1 && tables.len() * LEAST_ROWS > shown.len() {
            return table(shown, &names, true, screen);
        }
        let each: Vec<String> = tables.into_iter().map(|rows| table(rows, &names, false, screen)).collect();
        each.join("\n")
    }

    /// What there was in place of a row that can be compared, why it cannot be, and what can.
    fn nothing_text(&self) -> String {
        let mut text = "No row can be compared with the model.\n".to_string();
        let Some(nothing) = &self.nothing_comparable else { return text };
        for skipped in &self.skipped {
            text += &format!("not compared: {}: {}\n", counted(skipped.count, "figure"), skipped.why);
        }
        for found in &nothing.figures {
            text += &format!(
                "there: {} of {}\n",
                counted(found.count, &format!("`{}`", found.metric)),
                found.tool
            );
        }
        for lines in &nothing.lines {
            let count = counted(lines.count, "line");
            text +=
                &format!("not read: {count}, the first at {}:{}: {}\n", lines.file, lines.line, lines.why);
        }
        if nothing.figures.is_empty() && nothing.lines.is_empty() {
            text += "The logs have no line that gives a figure.\n";
        }
        text + &format!("To compare: {}.\n", nothing.measure)
    }

    /// Whether rows that are off are exceptions: one of ten at most.
    fn has_few_off(&self) -> bool {
        self.off_rows * 10 <= self.points.len() as u64
    }

    /// The rows that are off furthest, whatever the verdict is of all.
    fn off_text(&self) -> String {
        if self.worst_rows.is_empty() {
            return String::new();
        }
        let row = |point: &DiagnosedPointAnswer| {
            format!("{}:{} {:.0}%", point.file, point.line, point.share_as_stated * 100.0)
        };
        let worst: Vec<String> = self.worst_rows.iter().map(row).collect();
        let more = self.off_rows - worst.len() as u64;
        let more = if more > 0 { format!(", and {more} more") } else { String::new() };
        format!(
            "Off by more than a tenth of what is expected as stated: {} of {}: {}{more}.\n",
            self.off_rows,
            counted(self.points.len() as u64, "row"),
            worst.join(", ")
        )
    }

    /// Which of several logs are off: what holds one of them back is lost among the others.
    fn logs_text(&self) -> String {
        let mut logs: BTreeMap<&str, Vec<f64>> = BTreeMap::new();
        for point in &self.points {
            logs.entry(&point.file).or_default().push(point.share_as_stated);
        }
        let is_off = |share: &&f64| !(GAP..=1.0 / GAP).contains(*share);
        let off = |shares: &[f64]| shares.iter().filter(is_off).count();
        let of: Vec<(&str, usize, usize)> =
            logs.iter().map(|(file, shares)| (*file, off(shares), shares.len())).collect();
        let worst: Vec<&(&str, usize, usize)> = of.iter().filter(|(_, off, all)| off * 4 >= *all).collect();
        if worst.is_empty() || worst.len() == of.len() {
            return String::new();
        }
        let each: Vec<String> =
            worst.iter().map(|(file, off, all)| format!("{file} ({off} of {all} rows)")).collect();
        format!(
            "Of {} logs {} off by more than a tenth in a quarter of their rows or more: {}. `offpath diagnose` of these alone ranks what \
             holds them back.\n",
            of.len(),
            if worst.len() == 1 { "1 is".to_string() } else { format!("{} are", worst.len()) },
            each.join(", ")
        )
    }

    /// How many rows are how well known.
    fn bases(&self) -> String {
        let mut counts: BTreeMap<&str, u64> = BTreeMap::new();
        for point in &self.points {
            *counts.entry(point.basis).or_default() += 1;
        }
        let each: Vec<String> =
            counts.into_iter().map(|(basis, count)| format!("{} {basis}", counted(count, "row"))).collect();
        each.join(", ")
    }

    fn shares(&self) -> Vec<f64> {
        self.points.iter().map(|point| point.share).collect()
    }

    /// Rows that are off, and not by more than what is not known leaves open.
    fn inconclusive_text(&self) -> String {
        let shares = self.shares();
        let beyond = |is_so: fn(f64) -> bool| shares.iter().filter(|share| is_so(**share)).count();
        let is_low = beyond(|share| share < GAP) >= beyond(|share| share > 1.0 / GAP);
        odd_rows(&shares, is_low)
            + match self.is_calibrated {
                true => {
                    "Whether that is the machine or the profile is not decided: what this card was learnt from leaves as much open. More \
                     logs of such runs, taken while it was well, narrow that: `offpath calibrate` with all of them.\n"
                }
                false => {
                    "Whether that is the machine or the profile is not decided: what is not known of the card leaves as much open. `offpath \
                     calibrate` with this device as its `--base` learns the card from logs that were taken while it was well; beside that \
                     card a diagnosis decides.\n"
                }
            }
    }

    fn verdict_text(&self) -> String {
        let median = self.median_share.map(|share| format!("{:.0}%", share * 100.0)).unwrap_or_default();
        let mut text = match self.verdict {
            "normal" => format!(
                "{}: {}, the median at {median} of what the model expects; no quarter of them and no three \
                 neighbours are off by more than 10%.\n",
                match self.off_rows {
                    0 => "This is normal",
                    _ if self.has_few_off() => "This is normal but for the rows below",
                    _ => "Most rows are normal, and those below are not",
                },
                counted(self.points.len() as u64, "row")
            ),
            "held-back-as-stated" => format!(
                "The rows are what the model expects of these runs, at a median of {median} of what the card does when nothing \
                 holds it back: what the log states explains them.\n"
            ),
            "incomplete" => format!(
                "What was measured is what the model expects of these runs: {}, the median at {median} of what the card does \
                 when nothing holds it back. What failed was not measured, and nothing is said of it.\n",
                counted(self.points.len() as u64, "row")
            ),
            "low" => odd_rows(&self.shares(), true),
            "slightly-low" | "slightly-high" => format!(
                "The rows are slightly {}: the median is at {median} of what the model expects. Predictions may be off by as much; \
                 but with the cause below nothing is left but what the rows scatter by.\n",
                if self.verdict == "slightly-low" { "low" } else { "high" }
            ),
            "high" => odd_rows(&self.shares(), false),
            "inconclusive" => self.inconclusive_text(),
            "contradictory" => format!(
                "Head and rows cannot be of one run: the rows are at a median of {median} of what the card does when nothing holds it \
                 back, and more than what the log states allows. A log that was put together, a head of another run, or a profile that \
                 takes longer for a request than this card does.\n"
            ),
            _ => self.nothing_text(),
        };
        if self.has_tail() {
            text += "Some operations waited: a latency's mean lies far above its median, and medians are what is compared. What the rows \
                     look like stands below.\n";
        }
        if let (Some(least), Some(reaching)) = (self.least_share, self.reaching_rows) {
            text += &format!(
                "{reaching} of {} rows reach {:.0}% of what is expected{}.\n",
                self.points.len(),
                least * 100.0,
                if self.has_tail() { ", and not all of their operations do" } else { "" }
            );
            if let Some(undecided) = self.undecided_rows.filter(|count| *count > 0) {
                text += &format!(
                    "Of {} more this is not decided: what is expected is not known well enough to say that they miss it.\n",
                    counted(undecided, "row")
                );
            }
            for objection in &self.not_accepted {
                text += &format!("NOT ACCEPTED: {objection}.\n");
            }
        }
        if self.least_share.is_none() {
            for unread in &self.unread_below {
                let lines = counted(unread.count, "line");
                text += &format!(
                    "Not read, below rows of its file: {}:{}: {} ({lines}). Whether one of them says that a run failed nobody knows.\n",
                    unread.file, unread.line, unread.why
                );
            }
        }
        text
    }
}

impl CauseGroupAnswer {
    fn text(&self, number: usize, together: Option<f64>) -> String {
        let mut share = format!("{:.0}% of the gap", self.explained_share * 100.0);
        // It stands before causes that explain more alone, and less beside the first.
        if let Some(together) = together {
            share += &format!(" alone, and {:.0}% with 1", together * 100.0);
        }
        let mut text = match self.causes.len() {
            1 => format!("{number}. {share}\n"),
            count => {
                format!("{number}. {share}, by one of {count} causes that these rows cannot tell apart\n")
            }
        };
        for cause in &self.causes {
            text += &format!("   {} ({}): {}\n", cause.cause, cause.degree, cause.meaning);
            for evidence in &cause.evidence {
                text += &format!("     speaks for it: {evidence}\n");
            }
            text += &format!("     to tell: {}\n", cause.command);
        }
        text
    }
}

/// Rows as a table. Where each says its run and its figure, they have nothing in common but perhaps their log.
fn table(
    rows: &[DiagnosedPointAnswer],
    names: &BTreeMap<&str, &str>,
    says_run: bool,
    screen: &Screen,
) -> String {
    let first = &rows[0];
    let name =
        |point: &DiagnosedPointAnswer| names.get(&*point.file).copied().unwrap_or(&point.file).to_string();
    let is_of_one = rows.iter().all(|row| row.file == first.file);
    let mut common = Vec::new();
    if is_of_one && names.len() > 1 {
        common.push(name(first));
    }
    if !says_run {
        common.push(format!("{}, `{}`", first.test, first.metric));
    }
    let header = [if is_of_one { "line" } else { "log" }].into_iter();
    let header = header.chain(if says_run { vec!["run", "figure"] } else { vec!["payload"] });
    let header: Vec<&str> =
        header.chain(["measured", "expected", "share", "as stated", "95% interval", "bound by"]).collect();
    let cells = |row: &DiagnosedPointAnswer| {
        let place = match is_of_one {
            true => TableCell::Number(row.line.to_string()),
            false => TableCell::Name(format!("{}:{}", name(row), row.line)),
        };
        let what = match says_run {
            true => vec![TableCell::Text(row.run.clone()), TableCell::Name(row.metric.clone())],
            false => vec![TableCell::Number(Bytes::new(row.payload_bytes).to_string())],
        };
        [place].into_iter().chain(what).chain(row.shares()).collect()
    };
    let table = screen.table(&header, rows.iter().map(cells).collect());
    match common.is_empty() {
        true => table,
        false => format!("{}\n{table}", common.join(": ")),
    }
}

impl DiagnosedPointAnswer {
    /// What was measured beside what is expected.
    fn shares(&self) -> Vec<TableCell> {
        let percent = |share: f64| TableCell::Number(format!("{:.0}%", share * 100.0));
        vec![
            TableCell::Number(short(self.measured)),
            TableCell::Number(short(self.expected)),
            percent(self.share),
            percent(self.share_as_stated),
            TableCell::Name(format!(
                "{:.0}% to {:.0}%",
                self.share_as_stated_low_95 * 100.0,
                self.share_as_stated_high_95 * 100.0
            )),
            TableCell::Text(self.bound_by.clone()),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three low rows among high ones are said as they are.
    #[test]
    fn what_is_low_is_counted_apart_from_the_rest() {
        let shares = [1.13, 0.5, 0.6, 0.7, 1.13, 1.14, 1.13, 1.12];
        assert_eq!(
            odd_rows(&shares, true),
            "3 of 8 rows are low, below 90% of what the model expects: their median is at 60%. The median of all is at 113%.\n"
        );
        assert_eq!(
            odd_rows(&shares[4..], false),
            "4 of 4 rows are high, above 111% of what the model expects: their median is at 113%.\n"
        );
    }
}
