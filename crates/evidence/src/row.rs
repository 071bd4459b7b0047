//! Published rows: what was measured, where it stands, and how it is judged.

use crate::experiment::Experiment;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What kind of claim a row makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ValueKind {
    /// A property of the hardware or a setting of an experiment.
    Config,
    /// A measured value.
    Measurement,
    /// One measured value over another.
    Ratio,
    /// Where a behaviour begins or ends.
    Threshold,
    /// A formula, or a number that follows from one.
    Formula,
    /// Which of two is greater.
    Ordering,
}

impl ValueKind {
    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            ValueKind::Config => "config",
            ValueKind::Measurement => "measurement",
            ValueKind::Ratio => "ratio",
            ValueKind::Threshold => "threshold",
            ValueKind::Formula => "formula",
            ValueKind::Ordering => "ordering",
        }
    }

    /// Whether rows of this kind count in the score.
    pub fn is_scored(self) -> bool {
        matches!(self, ValueKind::Measurement | ValueKind::Ratio | ValueKind::Threshold | ValueKind::Ordering)
    }
}

/// What a row is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RowRole {
    /// The fitting program reads it.
    Fit,
    /// The fit does not read it.
    Predict,
    /// The literature contradicts itself; the reason says which side is followed.
    Conflict,
    /// No model here speaks to it; the reason says what is missing.
    NotModelled,
    /// A number of a profile states it: nothing is predicted.
    Read,
    /// A setting of the authors' experiments, without an outcome.
    Setting,
}

impl RowRole {
    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            RowRole::Fit => "fit",
            RowRole::Predict => "predict",
            RowRole::Conflict => "conflict",
            RowRole::NotModelled => "not_modelled",
            RowRole::Read => "read",
            RowRole::Setting => "setting",
        }
    }
}

/// How a published value is to be read.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedValue {
    /// The value, exactly as printed.
    pub is: Option<f64>,
    /// The value, as printed with "about".
    pub about: Option<f64>,
    /// The lower end of a printed range.
    pub from: Option<f64>,
    /// The upper end of a printed range.
    pub to: Option<f64>,
    /// The greatest that was attained ("up to").
    pub up_to: Option<f64>,
    /// The least that was attained ("down to").
    pub down_to: Option<f64>,
    /// A bound from above.
    pub at_most: Option<f64>,
    /// A bound from below.
    pub at_least: Option<f64>,
    /// Strictly below.
    pub below: Option<f64>,
    /// Strictly above.
    pub above: Option<f64>,
}

/// A published value in the one form that it has.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Claim {
    /// Exactly this.
    Is(f64),
    /// About this.
    About(f64),
    /// A range that a sweep fills.
    Range(f64, f64),
    /// The greatest of a sweep.
    UpTo(f64),
    /// The least of a sweep.
    DownTo(f64),
    /// No more than this.
    AtMost(f64),
    /// No less than this.
    AtLeast(f64),
    /// Less than this.
    Below(f64),
    /// More than this.
    Above(f64),
}

impl PublishedValue {
    fn claim(&self) -> Result<Claim, String> {
        let mut claims: Vec<Claim> = [
            self.is.map(Claim::Is),
            self.about.map(Claim::About),
            self.up_to.map(Claim::UpTo),
            self.down_to.map(Claim::DownTo),
            self.at_most.map(Claim::AtMost),
            self.at_least.map(Claim::AtLeast),
            self.below.map(Claim::Below),
            self.above.map(Claim::Above),
        ]
        .into_iter()
        .flatten()
        .collect();
        match (self.from, self.to) {
            (Some(from), Some(to)) => claims.push(Claim::Range(from, to)),
            (None, None) => {}
            _ => return Err("`from` and `to` come together".to_string()),
        }
        match claims.as_slice() {
            [one] => Ok(*one),
            _ => Err("a published value has exactly one form, as in `{ is = 2.6 }`".to_string()),
        }
    }
}

impl Claim {
    /// Its ends: the value twice where there is one.
    pub fn ends(self) -> (f64, f64) {
        match self {
            Claim::Range(from, to) => (from, to),
            Claim::Is(v)
            | Claim::About(v)
            | Claim::UpTo(v)
            | Claim::DownTo(v)
            | Claim::AtMost(v)
            | Claim::AtLeast(v)
            | Claim::Below(v)
            | Claim::Above(v) => (v, v),
        }
    }

    /// Whether the claim is only about order or a bound, so that no distance to it is an error.
    pub fn is_bound(self) -> bool {
        matches!(self, Claim::AtMost(_) | Claim::AtLeast(_) | Claim::Below(_) | Claim::Above(_))
    }
}

impl std::fmt::Display for Claim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text = match self {
            Claim::Is(v) => v.to_string(),
            Claim::About(v) => format!("about {v}"),
            Claim::Range(from, to) => format!("{from} to {to}"),
            Claim::UpTo(v) => format!("up to {v}"),
            Claim::DownTo(v) => format!("down to {v}"),
            Claim::AtMost(v) => format!("at most {v}"),
            Claim::AtLeast(v) => format!("at least {v}"),
            Claim::Below(v) => format!("below {v}"),
            Claim::Above(v) => format!("above {v}"),
        };
        f.pad(&text)
    }
}

/// What was chosen by hand with a row in view.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decided {
    /// A number: the file that holds it, and its table and key there. The row moves with it.
    Number {
        /// The file, as in `profiles/devices/bluefield2.toml`.
        file: String,
        /// Its table and key, as in `dma.write_rate`.
        key: String,
    },
    /// A mechanism, in words: no number of it need move the row.
    Mechanism(String),
}

impl Decided {
    /// Reads `FILE NUMBER` or `mechanism WORDS`.
    fn parse(text: &str) -> Result<Decided, String> {
        let wrong = || {
            format!(
                "`decides` is `{text}`; it names a number, as in `profiles/devices/bluefield2.toml dma.write_rate`, or a \
                 mechanism, as in `mechanism reserved slots`"
            )
        };
        if let Some(words) = text.strip_prefix("mechanism ") {
            return match words.trim() {
                "" => Err(wrong()),
                words => Ok(Decided::Mechanism(words.to_string())),
            };
        }
        match text.split_once(' ') {
            Some((file, key)) if file.ends_with(".toml") && !key.is_empty() && !key.contains(' ') => {
                Ok(Decided::Number { file: file.to_string(), key: key.to_string() })
            }
            _ => Err(wrong()),
        }
    }
}

impl std::fmt::Display for Decided {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Decided::Number { file, key } => write!(f, "it decided {file} {key}"),
            Decided::Mechanism(words) => {
                write!(f, "it was weighed for the mechanism of {words}, and for no number")
            }
        }
    }
}

/// A row of the evidence files.
#[derive(Clone, Debug)]
pub struct Row {
    /// Its name, as in `W072`; a derived row joins the names that it follows from, as in `W115/W116`.
    pub id: String,
    /// What kind of claim it makes.
    pub kind: ValueKind,
    /// Where it stands, as in `wei2023 §3.1`.
    pub source: String,
    /// What was measured, in our words.
    pub states: String,
    /// The published value; a row of text values (a profile's number) has none.
    pub published: Option<Claim>,
    /// The unit of published and predicted values: `us`, `M/s`, `Gbit/s`, `x`, `%`, `B`.
    pub unit: String,
    /// What it is used for.
    pub role: RowRole,
    /// Why, for a conflict and for what is not modelled; else what a reader should know.
    pub reason: String,
    /// The rows that state nearly the same, which are left out together.
    pub alike: Vec<String>,
    /// Predictions that rest on the same measurement: their errors do not widen its interval.
    pub errs_with: Vec<String>,
    /// Whether it follows from other rows and so does not count by itself.
    pub derived: bool,
    /// The payloads that it states, the least and the greatest, where it states any.
    pub spans: Option<(f64, f64)>,
    /// The rows that the fit read and that say the same, or that it follows from by arithmetic: it is no
    /// prediction. Those that [`restated`] finds by their experiments need not be named.
    pub restates: Vec<String>,
    /// What was chosen with this row in view, where something was: it is not a prediction either.
    pub decides: Option<Decided>,
    /// Why no number could make it fail, where that is so: it is not a prediction either.
    pub foregone: Option<String>,
    /// What its prediction rests on that was measured here, on other machines than the paper's.
    pub measured_here: Option<String>,
    /// Its own tolerance as a share, where the usual one does not fit; the reason says why.
    pub tolerance: Option<f64>,
    /// Whether it counts in the score.
    pub scored: bool,
    /// What predicts it.
    pub experiment: Option<Experiment>,
    /// The part of it that the fit reads, where that is less than the row is judged by; the reason says why.
    pub read_by_fit: Option<Experiment>,
    /// For a `config` row, the profile's number and its value as published.
    pub number: Option<ProfileValue>,
}

impl Row {
    /// The experiment that the fit reads.
    pub fn fitted(&self) -> Option<&Experiment> {
        self.read_by_fit.as_ref().or(self.experiment.as_ref())
    }

    /// Why a row of role `predict` is not a prediction, where it is none: for what it `restates`, as [`restated`] finds
    /// that, or for what it says of itself.
    pub fn no_prediction(&self, restates: &[String]) -> Option<String> {
        if self.role != RowRole::Predict {
            return None;
        }
        let restated = (!restates.is_empty()).then(|| format!("it restates {}", restates.join(", ")));
        let decided = self.decides.as_ref().map(ToString::to_string);
        restated.or(decided).or_else(|| self.foregone.clone())
    }
}

/// A number that a profile has to hold.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileValue {
    /// The device whose system holds it.
    #[serde(default = "bluefield2")]
    pub device: String,
    /// Its dotted name.
    pub name: String,
    /// The number that it is multiplied by, where what is published is their product.
    pub times: Option<String>,
    /// Its value with unit.
    pub value: String,
}

/// The card that most rows speak of.
pub(crate) fn bluefield2() -> String {
    "bluefield2".to_string()
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    row: Vec<RawRow>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRow {
    id: String,
    kind: ValueKind,
    source: String,
    states: String,
    published: Option<PublishedValue>,
    #[serde(default)]
    unit: String,
    role: RowRole,
    #[serde(default)]
    reason: String,
    #[serde(default)]
    alike: Vec<String>,
    #[serde(default)]
    errs_with: Vec<String>,
    #[serde(default)]
    derived: bool,
    spans: Option<String>,
    #[serde(default)]
    restates: Vec<String>,
    decides: Option<String>,
    foregone: Option<String>,
    measured_here: Option<String>,
    tolerance: Option<f64>,
    experiment: Option<toml::Table>,
    read_by_fit: Option<toml::Table>,
    number: Option<ProfileValue>,
}

/// Why an evidence file is refused.
#[derive(Debug, thiserror::Error)]
pub enum RowError {
    /// It is not TOML, or a key is wrong.
    #[error("{file}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong, with its place.
        message: String,
    },
    /// A row contradicts itself.
    #[error("{file}: row {id}: {message}")]
    Row {
        /// The file.
        file: String,
        /// The row.
        id: String,
        /// What is wrong.
        message: String,
    },
}

/// Rows of later sections that may be fitted: wei2023 §5 is for prediction, but for the processor
/// rate of the SoC, the DMA engine's rate, the latency of a message that the plain NIC's scale comes
/// from, and the one rate that fixes the pool of in-flight slots, which follows from two rows.
const FITTED_FROM_CASE_STUDIES: [&str; 4] = ["W239", "W254", "W265", "W273/W275"];

/// Where the papers show what systems reach: kept for prediction. A section stands for its parts too.
const CASE_STUDIES: [(&str, &[&str]); 3] = [
    ("wei2023", &["§5", "§6", "Fig 13", "Fig 15", "Fig 17", "Fig 18"]),
    ("sun2023", &["§4", "Fig 6", "Fig 7", "Fig 8", "Fig 9", "Fig 10", "Fig 11", "Fig 12", "Fig 13"]),
    ("dpa2024", &["§5", "§6"]),
];

/// Whether a source is a case study of its paper.
fn is_case_study(source: &str) -> bool {
    let Some((paper, places)) = source.split_once(' ') else { return false };
    let is_at = |kept: &&str| {
        places.split(", ").any(|place| {
            place == *kept
                || kept.starts_with('§')
                    && place.strip_prefix(*kept).is_some_and(|part| part.starts_with('.'))
        })
    };
    CASE_STUDIES.iter().any(|(of, kept)| *of == paper && kept.iter().any(is_at))
}

/// Reads an evidence file.
///
/// # Errors
/// [`RowError`] with the row and what is wrong with it: a value without a form, an experiment that
/// is not understood, a missing reason, a fitted row from a section that is kept for prediction.
pub fn parse(text: &str, file: &str) -> Result<Vec<Row>, RowError> {
    let raw: RawFile = toml::from_str(text)
        .map_err(|error| RowError::Malformed { file: file.to_string(), message: error.to_string() })?;
    let mut rows: Vec<Row> = Vec::with_capacity(raw.row.len());
    let mut seen = BTreeSet::new();
    for one in raw.row {
        let id = one.id.clone();
        let refuse = |message: String| RowError::Row { file: file.to_string(), id: id.clone(), message };
        if !seen.insert(one.id.clone()) {
            return Err(refuse("stands twice; remove one".to_string()));
        }
        rows.push(finish(one).map_err(refuse)?);
    }
    let known: BTreeMap<&str, RowRole> = rows.iter().map(|row| (row.id.as_str(), row.role)).collect();
    for row in &rows {
        let counts = |id: &String| matches!(known.get(id.as_str()), Some(RowRole::Fit | RowRole::Predict));
        if let Some(other) = row.restates.iter().find(|id| !counts(id)) {
            let message = format!(
                "`restates` names {other}, which is not a row of role `fit` or `predict` of this file"
            );
            return Err(RowError::Row { file: file.to_string(), id: row.id.clone(), message });
        }
        for (key, named) in [("alike", &row.alike), ("errs_with", &row.errs_with)] {
            if let Some(stranger) = named.iter().find(|id| !known.contains_key(id.as_str())) {
                let message = format!("`{key}` names {stranger}, which is not a row of this file");
                return Err(RowError::Row { file: file.to_string(), id: row.id.clone(), message });
            }
        }
    }
    Ok(rows)
}

/// The payloads that a row states, as in `0 B to 511 B`, `64 B` or `512 B to inf`.
fn spanned(text: &str) -> Result<(f64, f64), String> {
    let bytes = |text: &str| -> Result<f64, String> {
        if text == "inf" {
            return Ok(f64::INFINITY);
        }
        let bytes: offpath_quantity::Bytes = text.parse().map_err(|error| format!("`spans`: {error}"))?;
        Ok(bytes.get() as f64)
    };
    let (from, to) = text.split_once(" to ").unwrap_or((text, text));
    Ok((bytes(from)?, bytes(to)?))
}

/// The rows that a prediction restates: those it names, fitted ones whose experiment runs at every place that its
/// own does, with the same measure against the same, and predictions before it whose experiment is its own: a
/// number that a paper gives twice counts once.
pub fn restated(row: &Row, rows: &[Row]) -> Vec<String> {
    let mut found = row.restates.clone();
    let Some(own) = row.experiment.as_ref().filter(|_| row.role == RowRole::Predict) else { return found };
    let mut is_before = true;
    for other in rows {
        if other.id == row.id {
            is_before = false;
            continue;
        }
        let Some(theirs) = other.fitted() else { continue };
        // One published number given twice is one, also where one place of a sweep repeats the sweep.
        let (part, whole) = (own.repeats(theirs), theirs.repeats(own));
        let is_copy = row.alike.contains(&other.id) && row.published == other.published && !whole;
        let is_order = |one: &Row| one.kind == ValueKind::Ordering;
        let is_restated = match other.role {
            RowRole::Fit => part,
            // What an order foretold is measured all the same.
            RowRole::Predict if is_order(other) && !is_order(row) => false,
            RowRole::Predict => part && (is_before && whole || is_copy),
            _ => false,
        };
        if is_restated && !found.contains(&other.id) {
            found.push(other.id.clone());
        }
    }
    found
}

fn finish(raw: RawRow) -> Result<Row, String> {
    let published = raw.published.as_ref().map(PublishedValue::claim).transpose()?;
    let read_by_fit = match (&raw.experiment, raw.read_by_fit) {
        (Some(whole), Some(part)) if raw.role == RowRole::Fit && !raw.reason.is_empty() => {
            let mut read = whole.clone();
            read.extend(part);
            Some(Experiment::parse(read)?)
        }
        (_, Some(_)) => {
            let what = "`read_by_fit` is a part of the `experiment` of a row that is fitted, and `reason` says why no more is";
            return Err(what.to_string());
        }
        (_, None) => None,
    };
    let experiment = raw.experiment.map(Experiment::parse).transpose()?;
    let spans = raw.spans.as_deref().map(spanned).transpose()?;
    let decides = raw.decides.as_deref().map(Decided::parse).transpose()?;
    if raw.tolerance.is_some() && raw.reason.is_empty() {
        return Err("has a tolerance of its own, but lacks `reason`: say where it comes from".to_string());
    }
    let speaks = !raw.restates.is_empty() || decides.is_some() || raw.foregone.is_some();
    if speaks && raw.role != RowRole::Predict {
        let what = "`restates`, `decides` and `foregone` speak of predictions; remove them or make its role `predict`";
        return Err(what.to_string());
    }
    if raw.role == RowRole::Fit
        && is_case_study(&raw.source)
        && !FITTED_FROM_CASE_STUDIES.contains(&raw.id.as_str())
    {
        return Err(format!("{} is kept for prediction; its role cannot be `fit`", raw.source));
    }
    if matches!(raw.role, RowRole::Conflict | RowRole::NotModelled) && raw.reason.is_empty() {
        return Err("lacks `reason`: say what contradicts it, or what a model would need".to_string());
    }
    match raw.role {
        RowRole::Fit | RowRole::Predict | RowRole::Read if experiment.is_none() && raw.number.is_none() => {
            return Err("lacks `experiment`; without one its role is `not_modelled`".to_string());
        }
        _ => {}
    }
    if let Some(experiment) = &experiment
        && published.is_none()
        && experiment.expect.is_none()
    {
        return Err(
            "has an experiment and nothing to compare it with: add `published` or `expect`".to_string()
        );
    }
    let scored = raw.kind.is_scored() && !raw.derived && matches!(raw.role, RowRole::Fit | RowRole::Predict);
    Ok(Row {
        id: raw.id,
        kind: raw.kind,
        source: raw.source,
        states: raw.states,
        published,
        unit: raw.unit,
        role: raw.role,
        reason: raw.reason,
        alike: raw.alike,
        errs_with: raw.errs_with,
        derived: raw.derived,
        spans,
        restates: raw.restates,
        decides,
        foregone: raw.foregone,
        measured_here: raw.measured_here,
        tolerance: raw.tolerance,
        scored,
        experiment,
        read_by_fit,
        number: raw.number,
    })
}
