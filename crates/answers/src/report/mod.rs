//! Pages with pictures: one HTML file that needs nothing else, and the SVG drawings in it.
//!
//! A [`Page`] has sections, a section has [`PageBlock`]s: text, tables, a [`Chart`], [`Spans`], a
//! [`Topology`]. Everything is text written at run time. The same input gives the same bytes. The
//! page can be read without a script, on paper, on a dark screen and without colour: every series
//! has a dash pattern, a marker and a name of its own, and every number stands in a table as well.
//!
//! ```
//! use offpath_answers::report::{Axis, PageBlock, Chart, Page, PublishedMark, Section, Series, Ticks};
//!
//! let chart = Chart {
//!     title: "Latency of a READ".into(),
//!     caption: "Unloaded, one request at a time.".into(),
//!     x: Axis::log2("payload", Ticks::Bytes),
//!     y: Axis::linear("latency (us)"),
//!     series: vec![Series::line("client-soc", vec![(0.0, 1.9), (64.0, 2.1), (4096.0, 2.9)])],
//!     marks: vec![PublishedMark::at(64.0, 2.0).labelled("row 7").of("client-soc")],
//! };
//! let section = Section::new("read", "READ").with(PageBlock::Chart(chart));
//! let page = Page { title: "A card".into(), subtitle: String::new(), sections: vec![section] };
//! assert!(page.html().contains("row 7"));
//! ```

mod chart;
mod page;
pub mod places;
mod spans;
mod style;
mod topology;

pub use chart::{Axis, AxisScale, Chart, MOST_SERIES, PublishedMark, Series, SeriesKind, Ticks};
pub use page::{Fact, Page, PageBlock, Section, Table};
pub use spans::{Span, Spans};
pub use topology::{StationLoad, Topology};

/// A chart that stands beside published values: a figure of a paper, or a panel of one.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedChart {
    /// Its name on the page, as in `fig3-latency-read`; a link can lead to it.
    pub id: String,
    /// Where its published values come from, as in `wei2023 Fig 3`.
    pub citation: String,
    /// What it shows. Its title is the figure's.
    pub chart: Chart,
}

impl PublishedChart {
    /// A figure of a chart.
    pub fn new(id: impl Into<String>, citation: impl Into<String>, chart: Chart) -> PublishedChart {
        PublishedChart { id: id.into(), citation: citation.into(), chart }
    }
}

/// Text as HTML and SVG take it, in elements and in attributes. What XML cannot hold becomes U+FFFD.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\t' | '\n' => out.push(letter),
            control if control.is_control() => out.push('\u{fffd}'),
            '\u{fffe}' | '\u{ffff}' => out.push('\u{fffd}'),
            other => out.push(other),
        }
    }
    out
}

/// Text as a name that a link can lead to: small letters, digits and hyphens, never empty.
fn slug(text: &str) -> String {
    let mut out = String::new();
    for letter in text.chars() {
        match letter.to_ascii_lowercase() {
            own @ ('a'..='z' | '0'..='9') => out.push(own),
            _ if out.is_empty() || out.ends_with('-') => {}
            _ => out.push('-'),
        }
    }
    let out = out.trim_end_matches('-');
    if out.is_empty() { "part".to_string() } else { out.to_string() }
}

/// A number for a table: five significant digits, no more decimals than they need.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "-".to_string();
    }
    if value == 0.0 {
        return "0".to_string();
    }
    if !(1e-5..1e9).contains(&value.abs()) {
        let text = format!("{value:.4e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.'));
    }
    let digits = (4 - value.abs().log10().floor() as i64).clamp(0, 9) as usize;
    let text = format!("{value:.digits$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A length in a drawing. No negative zero, so that equal drawings are equal text.
fn px(value: f64) -> String {
    let text = format!("{value:.1}");
    if text == "-0.0" { "0.0".to_string() } else { text }
}

/// Width of text in the drawings' 12 px letters, as wide as common fonts make it.
fn text_width(text: &str) -> f64 {
    let letter = |letter: char| match letter {
        ' ' | '.' | ',' | ':' | ';' | '\'' | '|' | '!' | 'i' | 'j' | 'l' | 'I' | '(' | ')' => 4.7,
        'f' | 'r' | 't' | '-' | '/' => 5.4,
        'm' | 'w' | 'M' | 'W' | '%' | '…' => 11.5,
        'A'..='Z' => 8.4,
        'a'..='z' | '0'..='9' => 7.5,
        // Scripts with wide letters.
        _ => 12.0,
    };
    text.chars().map(letter).sum()
}

/// Text of at most so many letters; what is cut off stands in the tables.
fn cut(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.to_string();
    }
    text.chars().take(most.saturating_sub(1)).chain(std::iter::once('…')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(
            escape("<a href=\"x\">&'\u{0}\u{1b}"),
            "&lt;a href=&quot;x&quot;&gt;&amp;&#39;\u{fffd}\u{fffd}"
        );
        assert_eq!(slug("../<Fig> 3: READ!"), "fig-3-read");
        assert_eq!(slug("<>"), "part");
        assert_eq!(cut("abcdef", 4), "abc…");
    }

    #[test]
    fn numbers_keep_five_digits() {
        for (value, text) in
            [(0.0, "0"), (1.0 / 3.0, "0.33333"), (56.0, "56"), (1234567.0, "1234567"), (-2.5, "-2.5")]
        {
            assert_eq!(number(value), text);
        }
        assert_eq!(number(1.5e12), "1.5e12");
        assert_eq!(number(-2e-7), "-2e-7");
        assert_eq!(number(f64::NAN), "-");
        assert_eq!(px(-0.01), "0.0");
    }
}
