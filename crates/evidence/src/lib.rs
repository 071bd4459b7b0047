//! Published measurements, and how well the model predicts each.
//!
//! A [`row`] is a published number with an [`experiment`] that predicts it. A [`mod@bench`] runs
//! experiments on the profiles, [`judge`] holds the outcome to the row, and [`reproduce()`] does so
//! for all of them, beside null models. [`fit()`](fit::fit) fits the profiles' numbers to the rows of
//! role `fit`.

pub mod bench;
pub mod experiment;
pub mod figure;
pub mod fit;
mod identify;
pub mod judge;
pub mod log;
mod measure;
pub mod reproduce;
pub mod residual;
pub mod row;
pub mod sample;
pub mod specification;
pub mod write;

pub use bench::{Bench, Change, ExperimentError, Inside, Measurement, SweepPoint};
pub use experiment::Experiment;
pub use figure::{Figure, figures};
pub use judge::{Statistic, Verdict};
pub use log::{LogEntry, shipped_log};
use offpath_plan::shipped::ROWS;
pub use reproduce::{
    Beside, Count, Falsified, Line, Medians, Sort, Summary, VariantScore, Wrong, falsified, missed,
    reproduce, residuals, summary, variants,
};
pub use residual::Residual;
pub use row::{Claim, Decided, Row, RowError, RowRole, ValueKind, parse};
pub use specification::{Specification, SpecificationError};

/// The rows of this repository's evidence files.
///
/// # Errors
/// [`RowError`] where a file is refused, which its tests rule out.
pub fn shipped() -> Result<Vec<Row>, RowError> {
    let files = ROWS.map(|(name, text)| parse(text, name));
    Ok(files.into_iter().collect::<Result<Vec<_>, _>>()?.concat())
}

/// What the fit of this repository may move.
///
/// # Errors
/// [`SpecificationError`] where the file is refused, which its tests rule out.
pub fn free_parameters() -> Result<Specification, SpecificationError> {
    specification::parse(include_str!("../../../evidence/fit.toml"), "evidence/fit.toml")
}
