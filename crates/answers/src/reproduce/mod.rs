//! What `offpath reproduce` answers: published rows beside their predictions.

mod answer;
mod html;
mod text;

pub use answer::*;

use crate::report::Page;
use crate::rows::{known, library, refused, rows, threads};
use offpath_evidence::{Row, Wrong, falsified, figures, reproduce as predicted, residual, variants};
use offpath_profile::Library;
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;

/// By what fitted numbers are wrong in the null that knows the profiles and nothing of the fit.
const FALSIFIED: [Wrong; 3] = [Wrong::Alike(1.5), Wrong::Alike(1.0 / 1.5), Wrong::Apart(1.5, 1)];

/// Published rows to be predicted.
#[derive(Clone, Debug, Default)]
pub struct ReproduceRequest {
    /// The rows, as in `W072`; every row where empty. What moves a row is looked for where rows are named.
    pub rows: Vec<String>,
    /// The profiles and the mechanisms; rows say themselves which testbed, mode and settings they were measured in.
    pub system: SystemOptions,
    /// Threads; one for each core where absent. The answer is the same.
    pub threads: Option<u16>,
    /// Whether the papers' figures are drawn, as a page shows them: then every row is predicted.
    pub figures: bool,
}

/// Rows that are known, on profiles that are loaded, and are not predicted yet.
pub struct ReproduceDraft<'a> {
    request: &'a ReproduceRequest,
    rows: Vec<Row>,
    library: Library,
}

/// Predicts every published row, or those that are named, and holds the predictions to what was published: each with its
/// 80% and 95% interval and its error as a share, beside two null models.
///
/// Of all rows the answer has the score too; where no mechanism is held by an overlay also what becomes of it under each
/// variant, and with every fitted number wrong by a factor.
///
/// ```
/// use offpath_answers::reproduce::ReproduceRequest;
///
/// let request = ReproduceRequest { rows: vec!["W072".into()], ..ReproduceRequest::default() };
/// let answer = offpath_answers::reproduce(&request)?;
/// let row = &answer.rows[0];
/// println!("{:?} {} are predicted where {:?} is published", row.predicted, row.unit, row.published_as);
/// assert!(row.predicted.is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where a row is unknown, a profile or an overlay is refused, or settings are given, which rows have of their own.
pub fn reproduce(request: &ReproduceRequest) -> Result<ReproduceAnswer, Failure> {
    ReproduceDraft::load(request)?.answer(|| {})
}

impl<'a> ReproduceDraft<'a> {
    /// Looks the rows up and loads the profiles, which costs nothing beside the answer.
    ///
    /// # Errors
    /// Where a row is unknown or a profile is refused.
    pub fn load(request: &'a ReproduceRequest) -> Result<ReproduceDraft<'a>, Failure> {
        let rows = rows();
        known(&request.rows, &rows)?;
        Ok(ReproduceDraft { rows, library: library(&request.system)?, request })
    }

    /// Predicts the rows; `drawing` is told when they are, and figures come next.
    ///
    /// # Errors
    /// As [`reproduce`].
    pub fn answer(&self, drawing: impl FnOnce()) -> Result<ReproduceAnswer, Failure> {
        let ReproduceRequest { rows: asked, system, .. } = self.request;
        let (library, overlays, threads) = (&self.library, &system.overlay, threads(self.request.threads));
        // Figures stand beside all rows.
        let only = if self.request.figures { &[] } else { asked.as_slice() };
        let lines = predicted(library, &self.rows, only, overlays, threads).map_err(refused)?;
        // A variant beside another one would say nothing about either.
        let alone = overlays.is_empty() && only.is_empty();
        let wrong: &[Wrong] = if alone { &FALSIFIED } else { &[] };
        let scores = if alone { variants(library, &lines, threads).map_err(refused)? } else { Vec::new() };
        let wrong = wrong.iter().map(|wrong| falsified(library, &lines, *wrong, threads));
        let wrong: Vec<_> = wrong.filter_map(Result::transpose).collect::<Result<_, _>>().map_err(refused)?;
        let mut answer = ReproduceAnswer::of(&lines, asked, overlays, scores, &wrong);
        if self.request.figures {
            drawing();
            answer.figures = figures(library, &lines, overlays, threads).map_err(refused)?;
        }
        Ok(answer)
    }
}

impl ReproduceAnswer {
    /// The answer as a page with every figure that was asked for.
    pub fn page(&self) -> Page {
        html::page(self)
    }

    /// The errors of the predictions as evidence/residuals.toml has them.
    pub fn residuals_toml(&self) -> String {
        residual::written(&self.residuals, &self.missed)
    }
}
