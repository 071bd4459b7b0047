//! Horizontal spans, one a row: the terms of a sum one after the other, or ranges around a value.

use super::page::Table;
use super::{cut, escape, number, px, text_width};
use std::fmt::Write;

/// A row.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    /// What it is.
    pub name: String,
    /// Where it starts, in the axis' unit.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// A value within, drawn as a bar across; absent where the span is the value.
    pub point: Option<f64>,
    /// What stands beside it.
    pub text: String,
    /// Whether it stands out, as a sum does.
    pub strong: bool,
}

/// Spans over one axis. It starts at 0, except where every span is a range around a value: then it
/// shows the ranges.
#[derive(Clone, Debug, PartialEq)]
pub struct Spans {
    /// What they show.
    pub title: String,
    /// What a reader has to know beside the axis.
    pub caption: String,
    /// The axis with its unit, as in `time (ns)`.
    pub axis: String,
    /// Head of the text beside the spans, in the table.
    pub text: String,
    /// From the top.
    pub rows: Vec<Span>,
}

const WIDTH: f64 = 800.0;
const ROW: f64 = 24.0;
const NAME: usize = 44;

impl Spans {
    /// Terms that add up: each starts where the one before ended, and a last row has their sum.
    /// `write` is how a term's value is written.
    pub fn sum(
        title: impl Into<String>,
        axis: impl Into<String>,
        terms: impl IntoIterator<Item = (String, f64)>,
        write: impl Fn(f64) -> String,
    ) -> Spans {
        let mut at = 0.0;
        let mut rows: Vec<Span> = terms
            .into_iter()
            .map(|(name, value)| {
                let from = at;
                at += value;
                Span { name, from, to: at, point: None, text: write(value), strong: false }
            })
            .collect();
        rows.push(Span { name: "sum".into(), from: 0.0, to: at, point: None, text: write(at), strong: true });
        Spans { title: title.into(), caption: String::new(), axis: axis.into(), text: "value".into(), rows }
    }

    /// The spans as an SVG element; `id` has to be unique on a page. It needs the style of a page.
    pub fn svg(&self, id: &str) -> String {
        let finite = |row: &&Span| row.from.is_finite() && row.to.is_finite();
        let most = self.rows.iter().filter(finite).fold(0.0, |most: f64, row| most.max(row.from).max(row.to));
        let names = self.rows.iter().map(|row| text_width(&cut(&row.name, NAME))).fold(0.0, f64::max);
        let texts = self.rows.iter().map(|row| text_width(&row.text)).fold(0.0, f64::max);
        let (left, right) = (names + 16.0, texts + 20.0);
        let width = WIDTH.max(left + right + 260.0);
        let room = width - left - right;
        let ranges = !self.rows.is_empty() && self.rows.iter().all(|row| row.point.is_some());
        let least = self.rows.iter().filter(finite).fold(most, |least, row| least.min(row.from).min(row.to));
        let (step, low) = if ranges && least > 0.0 && most > least {
            let step = step_of(most - least);
            (step, (least / step).floor() * step)
        } else {
            (step_of(most), 0.0)
        };
        let steps = ((most - low) / step - 1e-9).ceil().max(1.0);
        let high = low + steps * step;
        let place = |value: f64| left + ((value - low) / (high - low)).clamp(0.0, 1.0) * room;
        let (top, bottom) = (6.0, 6.0 + ROW * self.rows.len() as f64);
        let mut out = String::new();
        for at in 0..=steps as u32 {
            let value = low + f64::from(at) * step;
            let x = px(place(value));
            let _ = writeln!(out, r#"<path class="grid" d="M{x} {}V{}"/>"#, px(top), px(bottom));
            let _ = writeln!(
                out,
                r#"<text text-anchor="middle" x="{x}" y="{}">{}</text>"#,
                px(bottom + 18.0),
                number(value)
            );
        }
        for (nth, row) in self.rows.iter().enumerate() {
            let y = top + ROW * nth as f64;
            let strong = if row.strong { " strong" } else { "" };
            let _ = writeln!(
                out,
                r#"<text class="name{strong}" text-anchor="end" x="{}" y="{}">{}</text>"#,
                px(left - 8.0),
                px(y + 16.0),
                escape(&cut(&row.name, NAME))
            );
            if !finite(&row) {
                continue;
            }
            let (from, to) = (place(row.from.min(row.to)), place(row.from.max(row.to)));
            // A span of nearly nothing is still seen.
            let wide = (to - from).max(1.5);
            let _ = writeln!(
                out,
                r#"<rect class="span{strong}" x="{}" y="{}" width="{}" height="14"/>"#,
                px(from),
                px(y + 5.0),
                px(wide)
            );
            if let Some(point) = row.point.filter(|point| point.is_finite()) {
                let _ = writeln!(out, r#"<path class="miss" d="M{} {}v20"/>"#, px(place(point)), px(y + 2.0));
            }
            let _ = writeln!(
                out,
                r#"<text class="{}" x="{}" y="{}">{}</text>"#,
                if row.strong { "strong" } else { "small" },
                px(from + wide + 8.0),
                px(y + 16.0),
                escape(&row.text)
            );
        }
        let _ =
            writeln!(out, r#"<path class="frame" d="M{} {}H{}"/>"#, px(left), px(bottom), px(left + room));
        let _ = writeln!(
            out,
            r#"<text class="strong" text-anchor="middle" x="{}" y="{}">{}</text>"#,
            px(left + room / 2.0),
            px(bottom + 38.0),
            escape(&self.axis)
        );
        let (height, id) = (bottom + 46.0, escape(id));
        let words: Vec<String> = self.rows.iter().map(|row| format!("{}: {}", row.name, row.text)).collect();
        format!(
            "<svg class=\"chart\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-title {id}-words\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-words\">{}</desc>\n{out}</svg>\n",
            escape(&self.title),
            escape(&words.join("; "))
        )
    }

    /// The rows as a table.
    pub fn table(&self) -> Table {
        let pointed = self.rows.iter().any(|row| row.point.is_some());
        let mut columns =
            vec![(String::new(), false), (format!("from, {}", self.axis), true), ("to".into(), true)];
        columns.extend(pointed.then(|| ("value".to_string(), true)));
        columns.push((self.text.clone(), false));
        let mut table = Table::new(columns);
        for row in &self.rows {
            let mut cells = vec![row.name.clone(), number(row.from), number(row.to)];
            if pointed {
                cells.push(row.point.map_or_else(|| "-".to_string(), number));
            }
            cells.push(row.text.clone());
            if row.strong {
                table.marked.insert(table.rows.len());
            }
            table.row(cells);
        }
        table
    }
}

fn step_of(span: f64) -> f64 {
    if span > 0.0 && span.is_finite() { super::chart::step(span, 6.0) } else { 1.0 }
}
