//! Published rows beside their predictions, as data.

use crate::SCHEMA_VERSION;
use offpath_evidence::reproduce::MovedRow;
use offpath_evidence::{
    Beside, Count, Falsified, Figure, Line, LogEntry, Medians, Residual, RowRole, Sort, Summary, ValueKind,
    VariantScore, Wrong, missed, residuals, shipped_log, summary,
};
use serde::{Serialize, Serializer};

/// Published rows beside their predictions; errors are shares of the published value, unit is that of published and
/// predicted
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ReproduceAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// Of all rows; null where only some were asked for.
    pub summary: Option<SummaryAnswer>,
    /// The score with every fitted number wrong by a factor; empty under another mechanism and where only some rows
    /// were run.
    pub falsified: Vec<FalsifiedAnswer>,
    /// The rows; in JSON those that were asked for.
    #[serde(serialize_with = "asked_for")]
    #[cfg_attr(test, schemars(with = "Vec<RowAnswer>"))]
    pub rows: Vec<RowAnswer>,
    /// The variants of mechanisms that the evidence leaves open; empty where one of them is in force and where only
    /// some rows were run.
    pub variants: Vec<VariantScoreAnswer>,
    /// The score of the rows that were run, be it all or some.
    #[serde(skip)]
    pub score: SummaryAnswer,
    /// The overlays that were in force.
    #[serde(skip)]
    pub overlays: Vec<String>,
    /// The papers' figures over predicted curves, where they were asked for.
    #[serde(skip)]
    pub figures: Vec<Figure>,
    /// What mispredictions taught.
    #[serde(skip)]
    pub log: Vec<LogEntry>,
    /// The errors of the predictions of measured numbers, by which intervals are widened.
    #[serde(skip)]
    pub residuals: Vec<Residual>,
    /// The rows about designs whose prediction is not within its tolerance.
    #[serde(skip)]
    pub missed: Vec<String>,
}

/// How many rows hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CountAnswer {
    /// Those that hold.
    pub within: usize,
    /// All.
    pub of: usize,
    /// The share, in percent; null of none.
    pub percent: Option<f64>,
}

/// What all rows say together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SummaryAnswer {
    /// Predictions: measured numbers and orders together.
    pub predicted: CountAnswer,
    /// Predictions of measured numbers: neither restated from fitted rows nor of rows that decided a number.
    pub measured: CountAnswer,
    /// Of those, the published numbers inside their 80% interval; one without an interval is outside.
    pub covered_80: CountAnswer,
    /// The same for the 95% interval.
    pub covered_95: CountAnswer,
    /// How many of the measured predictions have an interval; the others count as outside of theirs.
    pub with_interval: usize,
    /// The same for the 80% interval by the profiles' numbers alone, without what past predictions were wrong by, of
    /// those whose experiment was drawn.
    pub covered_80_by_numbers: CountAnswer,
    /// Those whose prediction rests on times that were measured here, within their tolerance.
    pub measured_here: CountAnswer,
    /// Measured predictions that the nearest published row would have within tolerance, of those that have one.
    pub nearest_row: CountAnswer,
    /// Orders and bounds that were predicted.
    pub orders: CountAnswer,
    /// Rows of role predict that are no predictions: they restate others or cannot fail. Rows that decided a number
    /// count as fitted.
    pub restated: CountAnswer,
    /// Scored rows that were fitted, within tolerance and in all.
    pub fitted: CountAnswer,
    /// Scored fitted rows inside their 80% interval; one without an interval is outside.
    pub fitted_covered_80: CountAnswer,
    /// How many of the scored fitted rows have an interval.
    pub fitted_with_interval: usize,
    /// Formulas and limits, on links without headers.
    pub exact: CountAnswer,
    /// Predictions of cards of which nothing was fitted: they tell what guesses are worth.
    pub unfitted: CountAnswer,
    /// Those that what needs no card would have within tolerance: no difference where two things are compared, links alone
    /// elsewhere. Where it has no answer it has none within.
    pub unfitted_simple: CountAnswer,
    /// Those of them that are measured numbers, within their tolerance.
    pub unfitted_measured: CountAnswer,
    /// Those inside their 80% interval, which the errors of the others make.
    pub unfitted_covered_80: CountAnswer,
    /// Those inside their 95% interval.
    pub unfitted_covered_95: CountAnswer,
    /// Rows of such cards that decided a number by hand, say again what did, or could not fail.
    pub unfitted_restated: CountAnswer,
    /// Numbers that the profiles hold.
    pub configured: CountAnswer,
    /// Rows that the literature contradicts.
    pub conflicts: usize,
    /// Rows of the scored kinds that have no model.
    pub not_modelled: usize,
    /// Their share of the rows of the scored kinds that are loaded.
    pub not_modelled_percent: f64,
    /// Settings of the authors' experiments.
    pub settings: usize,
    /// Median errors of the predicted measured numbers that are no places: neither where something begins or ends, nor
    /// a break-even.
    pub median_errors: MediansAnswer,
    /// The median of how far the 80% intervals reach to either side, as a share.
    pub median_half_width_80_share: f64,
}

/// Median errors, beside those of other models over the rows that both answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MediansAnswer {
    /// How many numbers these are.
    pub rows: usize,
    /// The median of offpath's errors over all of them, as a share; null of none.
    pub model: Option<f64>,
    /// Beside taking the nearest published row.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub nearest_row: BesideAnswer,
    /// The same over the rows that links alone speak of.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub nearest_row_where_links_speak: BesideAnswer,
    /// The same over the others.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub nearest_row_elsewhere: BesideAnswer,
    /// Beside the model that has links alone.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub links_alone: BesideAnswer,
    /// Beside predicting that two things do not differ, where two are compared.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub no_change: BesideAnswer,
    /// Beside what needs no card: no difference where two things are compared, links alone elsewhere.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub simple: BesideAnswer,
    /// Beside no difference where two things are compared, and the nearest published row elsewhere.
    #[cfg_attr(test, schemars(extend("$ref" = "reproduce-beside.json")))]
    pub no_change_or_nearest_row: BesideAnswer,
}

/// Offpath beside another model, over the rows that both answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BesideAnswer {
    /// How many rows both answer; both medians are over these.
    pub rows: usize,
    /// The median of offpath's errors, as a share; null of none.
    pub model: Option<f64>,
    /// The median of the other's errors.
    pub other: Option<f64>,
    /// Rows where offpath is nearer to what was published.
    pub nearer: usize,
    /// Rows where it is further off.
    pub further: usize,
    /// Rows where both miss alike, to half a percent.
    pub alike: usize,
    /// Rows that lie in offpath's 80% interval.
    pub covered_80: usize,
    /// Rows that lie in the other's, made of its own errors on these rows as offpath's are, each without its own.
    pub covered_80_other: usize,
    /// The median of how far offpath's 80% intervals reach to either side, as a share.
    pub half_width_80_share: Option<f64>,
    /// The median of how far the other's reach.
    pub half_width_80_share_other: Option<f64>,
}

/// The score with every fitted number wrong.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FalsifiedAnswer {
    /// The factor.
    pub times: f64,
    /// Where each number is wrong by the factor or by its inverse: which draw; null where all are wrong by the factor.
    pub draw: Option<u64>,
    /// Measured predictions within their tolerance.
    pub measured: CountAnswer,
    /// Those of the measured predictions that it moves by a hundredth or more.
    pub moved: CountAnswer,
    /// The same rows with the profiles as they are.
    pub moved_before: CountAnswer,
    /// The median of their errors, but places of a sweep, as a share.
    pub median_error: f64,
    /// Fitted rows within their tolerance.
    pub fitted: CountAnswer,
}

/// A published row beside its prediction.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RowAnswer {
    /// The row's name in evidence/wei.toml; a derived row joins the names that it follows from.
    pub id: String,
    /// What sort of claim it is.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::KINDS)))]
    pub kind: &'static str,
    /// What the row is used for (docs/evidence.md).
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::ROLES)))]
    pub role: &'static str,
    /// The part of the score that it counts in; null where it does not count.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::SORTS)))]
    pub counts_as: Option<&'static str>,
    /// The fitted rows that it restates.
    pub restates: Vec<String>,
    /// Where the number stands.
    pub source: String,
    /// What was measured, in our words.
    pub states: String,
    /// Unit of published, predicted, low and high: us, M/s, Gbit/s, x (a ratio), % (a change), B, cycles, packets.
    pub unit: String,
    /// The published value that the prediction is held to; of a range the end that decides, and of one that holds it the
    /// prediction itself.
    pub published: Option<f64>,
    /// The published value as it is claimed.
    pub published_as: Option<String>,
    /// The prediction that decides: the worst place of the sweep.
    pub predicted: Option<f64>,
    /// The least prediction of the sweep.
    pub predicted_from: Option<f64>,
    /// The greatest.
    pub predicted_to: Option<f64>,
    /// Of a sweep, the prediction of the one place that `low` and `high` are of; null where one place is predicted, or
    /// where there is no interval.
    pub interval_of: Option<f64>,
    /// Lower end of the 80% interval of the prediction; null where it has none.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// Lower end of the 95% interval.
    pub low_95: Option<f64>,
    /// Its upper end.
    pub high_95: Option<f64>,
    /// Prediction over published value less 1, changes in percent as ratios; 0 where an order or a bound holds.
    pub error: Option<f64>,
    /// The smaller error of the two null models.
    pub null_error: Option<f64>,
    /// Whether it is within the tolerance; null where there is nothing to hold it to.
    pub within: Option<bool>,
    /// Whether it counts in the summary's fitted or predicted.
    pub scored: bool,
    /// Where in the sweep the deciding prediction is.
    pub place: Option<String>,
    /// The number that moves it most, where rows were named; else null.
    pub most_moved_by: Option<String>,
    /// Why a row is a conflict or not modelled, or what to know about its experiment.
    pub reason: String,
    /// Whether it was asked for: figures stand beside rows that were not.
    #[serde(skip)]
    pub asked: bool,
    /// The value of a profile's number that it publishes, with unit.
    #[serde(skip)]
    pub number: Option<String>,
    /// What that number is in the profile.
    #[serde(skip)]
    pub held: Option<String>,
    /// How it stands, in a word.
    #[serde(skip)]
    pub standing: &'static str,
    /// Whether it counts and is not within its tolerance.
    #[serde(skip)]
    pub misses: bool,
}

/// A variant of an open mechanism, and what the rows say of it; in JSON rows stand by their names.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VariantScoreAnswer {
    /// The overlay that holds it.
    pub overlay: String,
    /// What it says.
    pub description: String,
    /// Measured predictions within their tolerance with it.
    pub measured: CountAnswer,
    /// Predictions that hold without it and not with it.
    #[serde(serialize_with = "names")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub refuted_by: Vec<MovedRow>,
    /// Predictions that hold with it and not without it.
    #[serde(serialize_with = "names")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub favoured_by: Vec<MovedRow>,
    /// Rows that hold without it alone and were fitted or decided between the two, which cannot speak against it.
    #[serde(serialize_with = "names")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub no_predictions_against: Vec<MovedRow>,
    /// Such rows that hold with it alone.
    #[serde(serialize_with = "names")]
    #[cfg_attr(test, schemars(with = "Vec<String>"))]
    pub no_predictions_for: Vec<MovedRow>,
}

fn asked_for<S: Serializer>(rows: &[RowAnswer], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().filter(|row| row.asked))
}

fn names<S: Serializer>(rows: &[MovedRow], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(rows.iter().map(|row| &row.id))
}

impl ReproduceAnswer {
    pub(super) fn of(
        lines: &[Line],
        asked: &[String],
        overlays: &[String],
        variants: Vec<VariantScore>,
        falsified: &[Falsified],
    ) -> ReproduceAnswer {
        let score = SummaryAnswer::of(&summary(lines));
        ReproduceAnswer {
            schema_version: SCHEMA_VERSION,
            summary: asked.is_empty().then(|| score.clone()),
            falsified: falsified.iter().map(FalsifiedAnswer::of).collect(),
            rows: lines.iter().map(|line| RowAnswer::of(line, asked)).collect(),
            variants: variants.into_iter().map(VariantScoreAnswer::of).collect(),
            score,
            overlays: overlays.to_vec(),
            figures: Vec::new(),
            log: shipped_log().unwrap_or_else(|error| panic!("the built-in log is refused: {error}")),
            residuals: residuals(lines),
            missed: missed(lines),
        }
    }
}

impl From<Count> for CountAnswer {
    fn from(count: Count) -> CountAnswer {
        CountAnswer { within: count.within, of: count.of, percent: count.percent() }
    }
}

impl CountAnswer {
    pub(super) fn new(within: usize, of: usize) -> CountAnswer {
        Count { within, of }.into()
    }
}

impl SummaryAnswer {
    fn of(all: &Summary) -> SummaryAnswer {
        SummaryAnswer {
            predicted: (all.measured + all.orders).into(),
            measured: all.measured.into(),
            covered_80: all.covered.into(),
            covered_95: all.covered_wide.into(),
            with_interval: all.with_interval,
            covered_80_by_numbers: all.covered_by_numbers.into(),
            measured_here: all.measured_here.into(),
            nearest_row: all.nearest_within.into(),
            orders: all.orders.into(),
            restated: all.restated.into(),
            fitted: all.fitted.into(),
            fitted_covered_80: all.covered_fitted.into(),
            fitted_with_interval: all.fitted_with_interval,
            exact: all.exact.into(),
            unfitted: all.unfitted.into(),
            unfitted_simple: all.unfitted_simple.into(),
            unfitted_measured: all.unfitted_measured.into(),
            unfitted_covered_80: all.covered_unfitted.into(),
            unfitted_covered_95: all.covered_unfitted_wide.into(),
            unfitted_restated: all.unfitted_restated.into(),
            configured: all.configured.into(),
            conflicts: all.conflicts,
            not_modelled: all.not_modelled,
            not_modelled_percent: 100.0 * all.not_modelled as f64 / all.of_scored_kinds.max(1) as f64,
            settings: all.settings,
            median_errors: MediansAnswer::of(&all.errors),
            median_half_width_80_share: all.median_half_width,
        }
    }
}

impl MediansAnswer {
    fn of(of: &Medians) -> MediansAnswer {
        MediansAnswer {
            rows: of.rows,
            model: (of.rows > 0).then_some(of.model),
            nearest_row: of.nearest.into(),
            nearest_row_where_links_speak: of.nearest_where_links.into(),
            nearest_row_elsewhere: of.nearest_elsewhere.into(),
            links_alone: of.links.into(),
            no_change: of.no_change.into(),
            simple: of.simple.into(),
            no_change_or_nearest_row: of.no_change_or_nearest.into(),
        }
    }
}

impl From<Beside> for BesideAnswer {
    fn from(of: Beside) -> BesideAnswer {
        let told = |value: f64| (of.rows > 0).then_some(value);
        BesideAnswer {
            rows: of.rows,
            model: told(of.model),
            other: told(of.other),
            nearer: of.nearer,
            further: of.further,
            alike: of.alike,
            covered_80: of.covered,
            covered_80_other: of.covered_other,
            half_width_80_share: told(of.reach),
            half_width_80_share_other: told(of.reach_other),
        }
    }
}

impl FalsifiedAnswer {
    fn of(one: &Falsified) -> FalsifiedAnswer {
        let (times, draw) = match one.wrong {
            Wrong::Alike(times) => (times, None),
            Wrong::Apart(times, draw) => (times, Some(draw)),
        };
        FalsifiedAnswer {
            times,
            draw,
            measured: one.measured.into(),
            moved: one.moved.into(),
            moved_before: one.moved_before.into(),
            median_error: one.median_error,
            fitted: one.fitted.into(),
        }
    }
}

impl RowAnswer {
    fn of(line: &Line, asked: &[String]) -> RowAnswer {
        let (row, verdict) = (&line.row, line.verdict.as_ref());
        let has_interval = line.low.and(line.high).is_some();
        RowAnswer {
            id: row.id.clone(),
            kind: row.kind.name(),
            role: row.role.name(),
            counts_as: line.sort.map(Sort::name),
            restates: line.restates.clone(),
            source: row.source.clone(),
            states: row.states.clone(),
            unit: row.unit.clone(),
            published: verdict.and_then(|verdict| verdict.published),
            published_as: row.published.map(|claim| claim.to_string()),
            predicted: verdict.map(|verdict| verdict.predicted),
            predicted_from: verdict.map(|verdict| verdict.from),
            predicted_to: verdict.map(|verdict| verdict.to),
            interval_of: verdict
                .filter(|verdict| has_interval && verdict.from != verdict.to)
                .map(|verdict| verdict.predicted),
            low: line.low,
            high: line.high,
            low_95: line.wide.map(|(low, _)| low),
            high_95: line.wide.map(|(_, high)| high),
            error: verdict.map(|verdict| verdict.error),
            null_error: line.null_error(),
            within: line.within(),
            scored: row.scored,
            place: verdict.map(|verdict| verdict.place.clone()),
            most_moved_by: line.moved_by.first().map(|(name, _)| name.clone()),
            reason: row.reason.clone(),
            asked: asked.is_empty() || asked.contains(&row.id),
            number: row.number.as_ref().map(|number| number.value.clone()),
            held: line.configured.as_ref().map(|(held, _)| held.clone()),
            standing: standing(line),
            misses: line.scored() == Some(false),
        }
    }

    /// Whether it is listed where rows that miss are: also a formula that is not exact, and a number that a profile does
    /// not hold, which count in no score of predictions.
    pub(super) fn is_listed(&self) -> bool {
        let is_formula = self.kind == ValueKind::Formula.name();
        self.misses || self.standing == "differs" || is_formula && self.standing == "MISSES"
    }
}

/// How a row stands, in a word.
fn standing(line: &Line) -> &'static str {
    match (line.row.role, line.within()) {
        (_, Some(agrees)) if line.configured.is_some() || line.row.role == RowRole::Read => match agrees {
            true => "same",
            false => "differs",
        },
        (RowRole::Conflict, _) => "conflict",
        (RowRole::NotModelled, _) => "not modelled",
        (RowRole::Setting, _) => "setting",
        (_, Some(true)) => "within",
        (_, Some(false)) => "MISSES",
        (_, None) => "-",
    }
}

impl VariantScoreAnswer {
    fn of(variant: VariantScore) -> VariantScoreAnswer {
        let apart = |moved: Vec<MovedRow>| moved.into_iter().partition(|row| row.is_prediction);
        let (refuted_by, no_predictions_against) = apart(variant.refuted_by);
        let (favoured_by, no_predictions_for) = apart(variant.favoured_by);
        VariantScoreAnswer {
            overlay: variant.overlay,
            description: variant.description,
            measured: variant.measured.into(),
            refuted_by,
            favoured_by,
            no_predictions_against,
            no_predictions_for,
        }
    }
}
