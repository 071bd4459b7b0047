//! What a run says to people, as a description that a command line draws.

/// A page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPage {
    /// What was run, behind the names of the system and its backend.
    pub title: String,
    /// What stands below.
    pub blocks: Vec<Block>,
}

/// A part of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
    /// Lines, each with its end.
    Text(String),
    /// A heading.
    Heading(String),
    /// A table.
    Table(RunTable),
    /// Where the stations of the twin are shown that were busiest.
    Stations,
}

/// A table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunTable {
    /// The titles of its columns.
    pub header: Vec<&'static str>,
    /// Its rows.
    pub rows: Vec<Vec<Cell>>,
}

/// A cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Cell {
    /// A name.
    Name(String),
    /// A name that matters.
    Strong(String),
    /// A number.
    Number(String),
}
