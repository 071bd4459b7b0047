//! A page: sections of text, tables and drawings in one HTML file.

use super::{Chart, PublishedChart, Spans, Topology, escape, slug, style};
use std::collections::BTreeSet;
use std::fmt::Write;

/// A page. [`Page::html`] writes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Page {
    /// What it is about.
    pub title: String,
    /// A sentence below the title; may be empty.
    pub subtitle: String,
    /// Its parts, in order; a list of contents leads to each.
    pub sections: Vec<Section>,
}

/// A part of a page under a heading.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// The name that links lead to. Only letters, digits and hyphens of it are kept; a name that is
    /// taken on the page gets a number.
    pub id: String,
    /// Its heading.
    pub heading: String,
    /// Text below the heading; may be empty.
    pub prose: String,
    /// What it shows.
    pub body: Vec<PageBlock>,
}

impl Section {
    /// An empty section.
    pub fn new(id: impl Into<String>, heading: impl Into<String>) -> Section {
        Section { id: id.into(), heading: heading.into(), ..Section::default() }
    }

    /// With text below its heading.
    pub fn saying(mut self, prose: impl Into<String>) -> Section {
        self.prose = prose.into();
        self
    }

    /// With one more block.
    pub fn with(mut self, block: PageBlock) -> Section {
        self.body.push(block);
        self
    }
}

/// What a section shows.
#[derive(Clone, Debug, PartialEq)]
pub enum PageBlock {
    /// A paragraph.
    Paragraph(String),
    /// Short remarks, one below the other.
    Notes(Vec<String>),
    /// The few answers that matter most.
    Facts(Vec<Fact>),
    /// A table.
    Table(Table),
    /// A chart with its numbers below.
    Chart(Chart),
    /// A chart that links can lead to, with the source of its published values.
    Figure(PublishedChart),
    /// Horizontal spans with their numbers below.
    Spans(Spans),
    /// A system's topology.
    Topology(Topology),
}

/// An answer, large enough to be seen first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fact {
    /// What it answers.
    pub name: String,
    /// The answer with its unit.
    pub value: String,
    /// Its confidence, or where it comes from.
    pub note: String,
}

impl Fact {
    /// An answer.
    pub fn new(name: impl Into<String>, value: impl Into<String>, note: impl Into<String>) -> Fact {
        Fact { name: name.into(), value: value.into(), note: note.into() }
    }
}

/// A table of text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    /// What it holds; may be empty.
    pub caption: String,
    /// Heads of the columns, and whether a column holds numbers.
    pub columns: Vec<(String, bool)>,
    /// Cells, row by row.
    pub rows: Vec<Vec<String>>,
    /// Rows that stand out, by position.
    pub marked: BTreeSet<usize>,
}

impl Table {
    /// A table without rows. Each column has a head, and holds numbers or words.
    pub fn new(columns: Vec<(String, bool)>) -> Table {
        Table { columns, ..Table::default() }
    }

    /// A table of these columns; the head of a column of numbers begins with `#`, which is not shown.
    pub fn of(columns: &[&str]) -> Table {
        let column = |name: &&str| match name.strip_prefix('#') {
            Some(numbers) => (numbers.to_string(), true),
            None => (name.to_string(), false),
        };
        Table::new(columns.iter().map(column).collect())
    }

    /// Adds a row.
    pub fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    fn html(&self) -> String {
        let class = |numbers: bool| if numbers { " class=\"number\"" } else { "" };
        let mut out = String::from("<div class=\"wide\"><table>");
        if !self.caption.is_empty() {
            let _ = write!(out, "<caption>{}</caption>", escape(&self.caption));
        }
        out += "\n<thead><tr>";
        for (name, numbers) in &self.columns {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(*numbers), escape(name));
        }
        out += "</tr></thead>\n<tbody>\n";
        for (index, row) in self.rows.iter().enumerate() {
            out += if self.marked.contains(&index) { "<tr class=\"marked\">" } else { "<tr>" };
            for (column, cell) in row.iter().enumerate() {
                let numbers = self.columns.get(column).is_some_and(|(_, numbers)| *numbers);
                let _ = write!(out, "<td{}>{}</td>", class(numbers), escape(cell));
            }
            out += "</tr>\n";
        }
        out + "</tbody></table></div>\n"
    }
}

/// Names on a page, each given once.
#[derive(Default)]
struct Names(BTreeSet<String>);

impl Names {
    fn give(&mut self, wanted: &str) -> String {
        let wanted = slug(wanted);
        let mut name = wanted.clone();
        let mut count = 2;
        while !self.0.insert(name.clone()) {
            name = format!("{wanted}-{count}");
            count += 1;
        }
        name
    }
}

impl Page {
    /// The page as one HTML file, which is well-formed XML as well. It loads nothing and runs nothing.
    pub fn html(&self) -> String {
        let mut names = Names::default();
        let sections: Vec<(String, &Section)> =
            self.sections.iter().map(|section| (names.give(&section.id), section)).collect();
        let title = escape(&self.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\" xmlns=\"http://www.w3.org/1999/xhtml\">\n<head>\n\
             <meta charset=\"utf-8\"/>\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n\
             <meta name=\"generator\" content=\"offpath {}\"/>\n<title>{title}</title>\n<style>\n{}</style>\n\
             </head>\n<body>\n<header>\n<h1>{title}</h1>\n",
            env!("CARGO_PKG_VERSION"),
            style::page()
        );
        if !self.subtitle.is_empty() {
            let _ = writeln!(out, "<p class=\"subtitle\">{}</p>", escape(&self.subtitle));
        }
        out += "</header>\n";
        if sections.len() > 1 {
            out += "<nav aria-label=\"Contents\"><ul>\n";
            for (id, section) in &sections {
                let _ = writeln!(out, "<li><a href=\"#{id}\">{}</a></li>", escape(&section.heading));
            }
            out += "</ul></nav>\n";
        }
        out += "<main>\n";
        for (id, section) in &sections {
            let _ = writeln!(out, "<section id=\"{id}\">\n<h2>{}</h2>", escape(&section.heading));
            if !section.prose.is_empty() {
                let _ = writeln!(out, "<p>{}</p>", escape(&section.prose));
            }
            for block in &section.body {
                out += &block.html(id, &mut names);
            }
            out += "</section>\n";
        }
        let _ = writeln!(
            out,
            "</main>\n<footer><p>Written by offpath {}. The same input gives the same bytes.</p></footer>\n</body>\n</html>",
            env!("CARGO_PKG_VERSION")
        );
        out
    }
}

impl PageBlock {
    fn html(&self, section: &str, names: &mut Names) -> String {
        match self {
            PageBlock::Paragraph(text) => format!("<p>{}</p>\n", escape(text)),
            PageBlock::Notes(notes) => {
                let items: Vec<String> =
                    notes.iter().map(|note| format!("<li>{}</li>\n", escape(note))).collect();
                // An empty list is not valid HTML.
                if items.is_empty() { String::new() } else { format!("<ul>\n{}</ul>\n", items.concat()) }
            }
            PageBlock::Facts(facts) => {
                let fact = |fact: &Fact| {
                    format!(
                        "<div><dt>{}</dt><dd><strong>{}</strong> {}</dd></div>\n",
                        escape(&fact.name),
                        escape(&fact.value),
                        escape(&fact.note)
                    )
                };
                format!("<dl>\n{}</dl>\n", facts.iter().map(fact).collect::<String>())
            }
            PageBlock::Table(table) => table.html(),
            PageBlock::Chart(chart) => charted(chart, &names.give(&format!("{section}-{}", chart.title)), ""),
            PageBlock::Figure(figure) => charted(&figure.chart, &names.give(&figure.id), &figure.citation),
            PageBlock::Spans(spans) => {
                let id = names.give(&format!("{section}-{}", spans.title));
                framed(&id, &spans.title, &spans.caption, &spans.svg(&id), &[spans.table()])
            }
            PageBlock::Topology(topology) => {
                let id = names.give(&format!("{section}-topology"));
                framed(&id, &topology.title, &topology.caption, &topology.svg, topology.table.as_slice())
            }
        }
    }
}

fn charted(chart: &Chart, id: &str, citation: &str) -> String {
    let caption = match (chart.caption.as_str(), citation) {
        (caption, "") => caption.to_string(),
        ("", citation) => format!("Published: {citation}."),
        (caption, citation) => format!("{caption} Published: {citation}."),
    };
    let tables: Vec<Table> = chart.published_table().into_iter().chain([chart.table()]).collect();
    framed(id, &chart.title, &caption, &chart.svg(id), &tables)
}

/// A picture with its caption above and its numbers below.
fn framed(id: &str, title: &str, caption: &str, svg: &str, tables: &[Table]) -> String {
    let mut out = format!("<figure id=\"{id}\">\n<figcaption><strong>{}</strong>", escape(title));
    if !caption.is_empty() {
        let _ = write!(out, "<span class=\"caption\">{}</span>", escape(caption));
    }
    let _ = write!(out, "</figcaption>\n<div class=\"picture\">\n{svg}</div>\n");
    if !tables.is_empty() {
        let tables: String = tables.iter().map(Table::html).collect();
        let _ = write!(out, "<details><summary>The numbers</summary>\n{tables}</details>\n");
    }
    out + "</figure>\n"
}
