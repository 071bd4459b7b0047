//! What `offpath fit` answers: the profiles' fitted numbers, fitted again to the published rows.

use crate::SCHEMA_VERSION;
use crate::rows::threads;
use offpath_evidence::fit::{
    Effort, FitError, Fitted, FittedParameter, FittedRow, LeftOut, ParameterInterval, Refitted,
    fit as fitted, under_variants,
};
use offpath_evidence::{Row, Specification, free_parameters, shipped, write};
use offpath_profile::{Category, Library};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{Screen, TableCell, fixed, signed};
use serde::Serialize;
use std::fmt::Display;

/// Profiles to be fitted.
#[derive(Clone, Debug, Default)]
pub struct FitRequest {
    /// The profiles; nothing else of it applies.
    pub system: SystemOptions,
    /// Whether no row is left out in turn and the fit starts at the priors alone: the same result, sooner.
    pub quick: bool,
}

/// What is loaded for a fit that has not begun.
pub struct FitDraft {
    library: Library,
    rows: Vec<Row>,
    specification: Specification,
    effort: Effort,
}

/// The profiles' fitted numbers, fitted again
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FitAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// How many numbers are free.
    pub free_parameters: usize,
    /// Rows of role fit
    pub rows_read: usize,
    /// From how many points the search began.
    pub starts: usize,
    /// How many of these searches end at the result.
    pub starts_at_the_same_minimum: usize,
    /// Sum of the squared residuals, in tolerances
    pub cost: f64,
    /// As a share; null with --quick
    pub left_out_median_error: Option<f64>,
    /// The free numbers.
    pub parameters: Vec<FitParameterAnswer>,
    /// The rows that were read.
    pub rows: Vec<FitRowAnswer>,
    /// Profile files that hold other numbers than this result
    pub differs_from_profiles: Vec<String>,
    /// The mechanisms that the evidence leaves open, fitted again
    pub variants: Vec<FitVariantAnswer>,
    /// Rows that enter through a derived row alone, and that row.
    #[serde(skip)]
    pub through: Vec<(String, String)>,
    /// Rows of which one end is reached by no free number, and why.
    #[serde(skip)]
    pub set_aside: Vec<(String, String)>,
    /// Every profile with a free number, before and after the fit.
    #[serde(skip)]
    pub profiles: Vec<FittedProfile>,
    /// How many threads worked.
    #[serde(skip)]
    pub threads: usize,
}

/// A free number with what the rows make of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = false)))]
pub struct FitParameterAnswer {
    /// What it is called by: its file's name and its key.
    pub name: String,
    /// The profile that holds it.
    pub file: String,
    /// Its key there.
    pub key: String,
    /// Numbers of other files that are the same one
    pub also: Vec<String>,
    /// With unit
    pub value: String,
    /// Where every met row stays met while this number moves alone
    pub alone: FitIntervalAnswer,
    /// The same with the other numbers free to follow
    pub others_free: FitIntervalAnswer,
}

/// The interval that a number is left.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = false)))]
pub struct FitIntervalAnswer {
    /// With unit
    pub low: String,
    /// With unit
    pub high: String,
    /// The rows that hold the ends
    pub rows: Vec<String>,
    /// Numbers whose bounds in evidence/fit.toml hold an end: assumption
    pub bounded_by: Vec<String>,
}

/// The same numbers fitted to the same rows under a variant of an open mechanism.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = false)))]
pub struct FitVariantAnswer {
    /// The overlay that holds it
    pub overlay: String,
    /// The numbers that the rows make otherwise there: its overlay would have to multiply them
    pub differs: Vec<FitOtherwiseAnswer>,
}

/// A number that the rows make otherwise under a variant.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = false)))]
pub struct FitOtherwiseAnswer {
    /// What it is called by
    pub name: String,
    /// With unit
    pub value: String,
    /// Under the base mechanism, with unit
    pub base: String,
}

/// A row that was read.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[cfg_attr(test, schemars(extend("additionalProperties" = false)))]
pub struct FitRowAnswer {
    /// Its name.
    pub id: String,
    /// The unit of its value.
    pub unit: String,
    /// The prediction, in the row's unit
    pub fitted: f64,
    /// As a share
    pub error: f64,
    /// Whether it is within the row's tolerance.
    pub within: bool,
    /// The free numbers that move it.
    pub moved_by: Vec<String>,
    /// Error of the prediction without this row and those alike, as a share; null where it was not left out or
    /// identifies a number alone
    pub left_out_error: Option<f64>,
    /// Numbers that are not identified without this row
    pub alone_identifies: Vec<String>,
    /// The published value as it is claimed, with unit.
    #[serde(skip)]
    pub published: Option<String>,
    /// Whether rows were left out in turn and this one was not, since no free number moves it: what it says stands in the
    /// profile as measured.
    #[serde(skip)]
    pub is_taken: bool,
}

/// A profile with a free number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FittedProfile {
    /// Its file, as in `profiles/devices/NAME.toml`.
    pub file: String,
    /// Its text as it was loaded.
    pub before: String,
    /// The same with the fitted numbers.
    pub after: String,
}

/// Fits the profiles' free numbers to the published rows of role `fit` alone: each with its value, the interval that it is
/// left and the rows that identify it, all with units; and what becomes of each row when it is left out.
///
/// ```no_run
/// use offpath_answers::fit::FitRequest;
///
/// let answer = offpath_answers::fit(&FitRequest { quick: true, ..FitRequest::default() })?;
/// for one in &answer.parameters {
///     println!("{} = {}, {} to {} alone", one.name, one.value, one.alone.low, one.alone.high);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where a profile is refused, or does not stay valid within the bounds that free numbers may move in.
pub fn fit(request: &FitRequest) -> Result<FitAnswer, Failure> {
    FitDraft::load(request)?.answer()
}

impl FitDraft {
    /// Loads profiles, rows and what is free, which costs nothing beside the fit.
    ///
    /// # Errors
    /// Where one of them is refused.
    pub fn load(request: &FitRequest) -> Result<FitDraft, Failure> {
        let broken =
            |error: &dyn Display| Failure::input(error.to_string(), "correct the file, or restore it");
        let library = request.system.library()?;
        let rows = shipped().map_err(|error| broken(&error))?;
        let specification = free_parameters().map_err(|error| broken(&error))?;
        let effort = Effort {
            threads: threads(None),
            starts: if request.quick { 1 } else { specification.starts },
            leave_one_out: !request.quick,
        };
        Ok(FitDraft { library, rows, specification, effort })
    }

    /// Fits.
    ///
    /// # Errors
    /// As [`fit`].
    pub fn answer(&self) -> Result<FitAnswer, Failure> {
        let refused = |error: FitError| {
            let help = match error {
                FitError::Specification(_) => "correct evidence/fit.toml",
                _ => "free numbers of the profiles have to stay valid within the bounds of evidence/fit.toml",
            };
            Failure::input(error.to_string(), help)
        };
        let (library, rows, specification) = (&self.library, &self.rows, &self.specification);
        let fitted = fitted(library, rows, specification, &self.effort).map_err(refused)?;
        let variants =
            under_variants(library, rows, specification, (&fitted, &self.effort)).map_err(refused)?;
        let profiles = profiles(library, &fitted)?;
        Ok(FitAnswer::of(fitted, profiles, variants, self.effort.threads))
    }
}

fn profiles(library: &Library, fitted: &Fitted) -> Result<Vec<FittedProfile>, Failure> {
    let profile = |file: String| {
        let parts: Vec<&str> = file.trim_end_matches(".toml").rsplit('/').collect();
        let category = Category::ALL.into_iter().find(|category| parts.get(1) == Some(&category.directory()));
        let (Some(category), Some(name)) = (category, parts.first()) else {
            return Err(Failure::input(
                format!("evidence/fit.toml frees numbers of `{file}`, which is not a profile"),
                "name a file as in `profiles/devices/NAME.toml`",
            ));
        };
        let before = library.source(category, name)?.to_string();
        let after = write::write(&before, fitted, &file)
            .map_err(|error| Failure::input(error.to_string(), "correct evidence/fit.toml or the profile"))?;
        Ok(FittedProfile { file, before, after })
    };
    write::files(fitted).into_iter().map(profile).collect()
}

impl FitVariantAnswer {
    fn of(refitted: Refitted) -> FitVariantAnswer {
        let otherwise = |(one, value): (FittedParameter, f64)| FitOtherwiseAnswer {
            name: one.parameter.name(),
            value: one.parameter.written(value),
            base: one.parameter.written(one.value),
        };
        FitVariantAnswer {
            overlay: refitted.overlay,
            differs: refitted.differs.into_iter().map(otherwise).collect(),
        }
    }

    fn text(&self) -> String {
        let Self { overlay, differs } = self;
        if differs.is_empty() {
            return format!("Fitted again under `{overlay}`, every number comes out the same.\n");
        }
        let each = |one: &FitOtherwiseAnswer| format!("{} {} in place of {}", one.name, one.value, one.base);
        let all: Vec<String> = differs.iter().map(each).collect();
        format!(
            "Fitted again under `{overlay}`, {}: let its overlay multiply them, so that the variant is compared as it fits.\n",
            all.join(", ")
        )
    }
}

impl FittedProfile {
    /// Whether the fit changes it.
    pub fn differs(&self) -> bool {
        self.before != self.after
    }

    /// The lines that differ; the fit changes lines and never their number.
    fn difference(&self) -> String {
        let lines = self.before.lines().zip(self.after.lines()).filter(|(before, after)| before != after);
        lines.map(|(before, after)| format!("- {before}\n+ {after}\n")).collect()
    }
}

impl FitAnswer {
    fn of(
        fitted: Fitted,
        profiles: Vec<FittedProfile>,
        variants: Vec<Refitted>,
        threads: usize,
    ) -> FitAnswer {
        let differing = profiles.iter().filter(|profile| profile.differs());
        FitAnswer {
            schema_version: SCHEMA_VERSION,
            free_parameters: fitted.parameters.len(),
            rows_read: fitted.rows.len(),
            starts: fitted.starts,
            starts_at_the_same_minimum: fitted.same_minimum,
            cost: fitted.cost,
            left_out_median_error: fitted.left_out_median,
            parameters: fitted.parameters.iter().map(FitParameterAnswer::of).collect(),
            rows: fitted.rows.into_iter().map(FitRowAnswer::of).collect(),
            differs_from_profiles: differing.map(|profile| profile.file.clone()).collect(),
            variants: variants.into_iter().map(FitVariantAnswer::of).collect(),
            through: fitted.through,
            set_aside: fitted.set_aside,
            profiles,
            threads,
        }
    }

    /// Parameters and rows as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = self.counts();
        text += &screen.heading("Parameters");
        let rows = self.parameters.iter().map(|one| {
            let assumed = match one.others_free.bounded_by.is_empty() {
                true => "-".to_string(),
                false => one.others_free.bounded_by.join(", "),
            };
            vec![
                TableCell::Strong(one.name.clone()),
                TableCell::Number(one.value.clone()),
                TableCell::Name(one.alone.words()),
                TableCell::Text(one.alone.rows.join(" ")),
                TableCell::Name(one.others_free.words()),
                TableCell::Text(one.others_free.rows.join(" ")),
                TableCell::Text(assumed),
            ]
        });
        let header = [
            "parameter",
            "value",
            "alone",
            "held by",
            "others free",
            "identified by",
            "bounded by assumption on",
        ];
        text += &screen.table(&header, rows.collect());
        text += &screen.heading("Rows");
        let rows = self.rows.iter().map(FitRowAnswer::entries);
        text += &screen.table(&["row", "published", "fitted", "error", "left out"], rows.collect());
        for (part, whole) in &self.through {
            text += &format!("{part} enters through {whole}.\n");
        }
        for (row, reason) in &self.set_aside {
            text += &format!("One end of {row} is set aside: {reason}.\n");
        }
        for one in &self.variants {
            text += &one.text();
        }
        if let Some(median) = self.left_out_median_error {
            let predicted = self.rows.iter().filter(|row| row.left_out_error.is_some());
            text += &format!(
                "Left out with those alike, the {} rows whose parameters stay identified have a median error of {:.1}%.\n",
                predicted.count(),
                100.0 * median
            );
        }
        text
    }

    /// What the fit changes in the profiles, line by line, or that it changes nothing.
    pub fn differences(&self, screen: &Screen) -> String {
        if self.differs_from_profiles.is_empty() {
            return "The result is what the program ships with, byte for byte.\n".to_string();
        }
        let differing = self.profiles.iter().filter(|profile| profile.differs());
        let shown = differing.map(|one| {
            screen.heading(&format!("{} differs", one.file)) + &screen.verbatim(&one.difference())
        });
        shown.collect()
    }

    /// Whether profiles and variants hold what the rows make of them.
    pub fn is_shipped(&self) -> bool {
        self.differs_from_profiles.is_empty() && self.variants.iter().all(|one| one.differs.is_empty())
    }

    fn counts(&self) -> String {
        let moved = self.rows.iter().filter(|row| !row.is_taken && !row.moved_by.is_empty()).count();
        let within = self.rows.iter().filter(|row| row.within).count();
        format!(
            "{} free parameters, {moved} rows that they move, {} more rows taken as measured; {within} of {} rows within \
             their tolerance.\n{} of {} starts end at the same minimum, cost {:.3}.\n",
            self.free_parameters,
            self.rows_read - moved,
            self.rows_read,
            self.starts_at_the_same_minimum,
            self.starts,
            self.cost
        )
    }
}

impl FitParameterAnswer {
    fn of(one: &FittedParameter) -> FitParameterAnswer {
        let ends = |interval: &ParameterInterval| FitIntervalAnswer {
            low: one.parameter.written(interval.low),
            high: one.parameter.written(interval.high),
            rows: interval.rows.clone(),
            bounded_by: interval.bounded_by.clone(),
        };
        FitParameterAnswer {
            name: one.parameter.name(),
            file: one.parameter.place.file.clone(),
            key: one.parameter.place.key.clone(),
            also: one.parameter.also.iter().map(|place| place.name()).collect(),
            value: one.parameter.written(one.value),
            alone: ends(&one.alone),
            others_free: ends(&one.free),
        }
    }
}

impl FitIntervalAnswer {
    fn words(&self) -> String {
        format!("{} to {}", self.low, self.high)
    }
}

impl FitRowAnswer {
    fn of(one: FittedRow) -> FitRowAnswer {
        let FittedRow { row, predicted, error, within, moved_by, left_out } = one;
        FitRowAnswer {
            published: row.published.map(|claim| format!("{claim} {}", row.unit)),
            id: row.id,
            unit: row.unit,
            fitted: predicted,
            error,
            within,
            moved_by,
            left_out_error: match left_out {
                LeftOut::Predicted { error, .. } => Some(error),
                _ => None,
            },
            is_taken: left_out == LeftOut::Taken,
            alone_identifies: match left_out {
                LeftOut::Alone(names) => names,
                _ => Vec::new(),
            },
        }
    }

    fn entries(&self) -> Vec<TableCell> {
        let outside = if self.within { "" } else { " outside" };
        let left_out = match self.left_out_error {
            Some(error) => signed(100.0 * error, 1),
            None if !self.alone_identifies.is_empty() => {
                format!("it alone identifies {}", self.alone_identifies.join(", "))
            }
            None if self.is_taken => "taken as measured".to_string(),
            None => "-".to_string(),
        };
        vec![
            TableCell::Strong(self.id.clone()),
            TableCell::Name(self.published.clone().unwrap_or_default()),
            TableCell::Name(fixed(self.fitted, 3)),
            TableCell::Name(format!("{}{outside}", signed(100.0 * self.error, 1))),
            TableCell::Text(left_out),
        ]
    }
}
