//! The log of mispredictions and what each taught.

use serde::Deserialize;

/// A misprediction.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LogEntry {
    /// The rows that were or are missed.
    pub rows: Vec<String>,
    /// Whether they are still missed.
    pub open: bool,
    /// What was predicted, beside what was measured.
    pub missed: String,
    /// What follows.
    pub taught: String,
}

#[derive(Deserialize)]
struct File {
    entry: Vec<LogEntry>,
}

/// The log of this repository's evidence.
///
/// # Errors
/// The parser's message where the file is malformed, which its tests rule out.
pub fn shipped_log() -> Result<Vec<LogEntry>, toml::de::Error> {
    toml::from_str::<File>(include_str!("../../../evidence/log.toml")).map(|file| file.entry)
}
