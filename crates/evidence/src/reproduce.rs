//! Every row's experiment, run and judged, beside the null models.

use crate::bench::{Bench, Change, ExperimentError, LoopMemory, Measurement, SweepPoint};
use crate::experiment::{Compare, Experiment, Measure};
use crate::judge::{Verdict, judge, plain};
use crate::residual::{
    self, Residual, is_measured, is_theoretical, is_threshold, kind_of, lesson_of, spread,
};
use crate::row::{Claim, Row, RowRole, ValueKind, restated};
use crate::sample::drawn;
use offpath_plan::residual::{Lesson, Widened};
use offpath_plan::side_by_side::side_by_side_with;
use offpath_profile::{Library, Provenance, SystemRequest};
use offpath_quantity::{Dimension, Quantity};
use offpath_twin::{Seed, unit_of};
use std::collections::{BTreeMap, BTreeSet};

/// What became of one row.
#[derive(Clone, Debug)]
pub struct Line {
    /// The row.
    pub row: Row,
    /// The outcome against the published value; `None` where there is nothing to hold it to.
    pub verdict: Option<Verdict>,
    /// What the experiment gave.
    pub outcome: Option<Measurement>,
    /// The lower end of the 80% interval of the deciding prediction; `None` where nothing moves it.
    pub low: Option<f64>,
    /// Its upper end.
    pub high: Option<f64>,
    /// The ends of the 95% interval.
    pub wide: Option<(f64, f64)>,
    /// Whether past errors are in both.
    pub widened: bool,
    /// The ends of the 80% interval by the profiles' numbers alone, without what past predictions were wrong by.
    pub bare: Option<(f64, f64)>,
    /// Which part of the score it counts in.
    pub sort: Option<Sort>,
    /// The fitted rows that it restates.
    pub restates: Vec<String>,
    /// The numbers that move it, with the change of the prediction in percent, the strongest first.
    pub moved_by: Vec<(String, f64)>,
    /// The numbers that, each alone at an end of its interval, turn whether the row is within its tolerance.
    pub turned_by: Vec<String>,
    /// Error of the model that has links alone.
    pub null_links: Option<f64>,
    /// Error of taking the nearest published row, and that row.
    pub null_nearest: Option<(f64, String)>,
    /// Whether that would be within the row's tolerance, by the same judgement.
    pub null_nearest_within: Option<bool>,
    /// Error of predicting no difference, where the row compares two things.
    pub null_no_change: Option<f64>,
    /// Whether what needs no card would be within the row's tolerance: no difference where the row compares two things,
    /// orders among them, links alone elsewhere.
    pub null_simple_within: Option<bool>,
    /// What a configured number is in the profile, and whether it agrees.
    pub configured: Option<(String, bool)>,
}

impl Line {
    /// The smaller error of links alone and of the nearest published row.
    pub fn null_error(&self) -> Option<f64> {
        let nearest = self.null_nearest.as_ref().map(|(error, _)| *error);
        [self.null_links, nearest].into_iter().flatten().reduce(|a, b| if b.abs() < a.abs() { b } else { a })
    }

    /// Whether the published number lies in the 80% and the 95% interval of its prediction; `None` where
    /// it is not a prediction of a measured number.
    pub fn covered(&self) -> Option<(bool, bool)> {
        if self.sort == Some(Sort::Measured) { self.lies() } else { None }
    }

    /// Whether what is predicted is a place of the sweep: between two of them lies nothing that an error could move
    /// it to.
    pub fn is_place(&self) -> bool {
        let compare = self.row.experiment.as_ref().map(|experiment| experiment.compare);
        matches!(compare, Some(Compare::From(_) | Compare::Until(_)))
    }

    /// Whether its error is one of a measured number: neither that of a place of a sweep nor of a break-even.
    pub fn is_numeric(&self) -> bool {
        self.sort == Some(Sort::Measured) && !is_threshold(&self.row)
    }

    /// The same of a card of which nothing was fitted.
    fn is_numeric_guess(&self) -> bool {
        let is_number = matches!(self.row.kind, ValueKind::Measurement | ValueKind::Ratio);
        let is_bound = self.row.published.is_none_or(Claim::is_bound);
        self.sort == Some(Sort::Unfitted) && is_number && !is_bound && !is_threshold(&self.row)
    }

    /// [`Line::covered`] of a row of any sort. A bound is not a number that may lie in an interval.
    fn lies(&self) -> Option<(bool, bool)> {
        if self.is_place() || self.row.published.is_some_and(Claim::is_bound) {
            return None;
        }
        let published = self.verdict.as_ref()?.published?;
        let within = |low: f64, high: f64| low <= published && published <= high;
        let (low, high) = self.wide?;
        Some((within(self.low?, self.high?), within(low, high)))
    }

    /// How far its 80% interval reaches to either side, as a share, where it has one.
    fn reach(&self) -> Option<f64> {
        let [low, high] = [self.low?, self.high?].map(|end| plain(&self.row.unit, end));
        Some((high / low).sqrt() - 1.0)
    }

    /// Whether the published number lies in the 80% interval by the profiles' numbers alone; `None` as for
    /// [`Line::covered`], and where they were not drawn.
    pub fn covered_by_numbers(&self) -> Option<bool> {
        self.covered()?;
        let (published, (low, high)) = (self.verdict.as_ref()?.published?, self.bare?);
        Some(low <= published && published <= high)
    }

    /// Whether a profile's number is as published, or the prediction within its tolerance; `None` where there is nothing
    /// to hold it to.
    pub fn within(&self) -> Option<bool> {
        let agrees = self.configured.as_ref().map(|(_, agrees)| *agrees);
        agrees.or_else(|| self.verdict.as_ref().map(|verdict| verdict.within))
    }

    /// Whether it counts and lies within its tolerance; `None` where it does not count.
    pub fn scored(&self) -> Option<bool> {
        if !self.row.scored {
            return None;
        }
        self.verdict.as_ref().map(|verdict| verdict.within)
    }
}

/// A part of the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// A measured number that was predicted.
    Measured,
    /// An order, a bound or an equality in words that was predicted.
    Order,
    /// A prediction that says again what was fitted, or follows from it by arithmetic.
    Restated,
    /// A row that the fit read, or that decided a number by hand.
    Fitted,
    /// A number that a profile holds as published.
    Read,
    /// A formula or a limit, on links without headers.
    Exact,
    /// What is predicted of a card of which nothing was fitted: it tells what guesses are worth.
    Unfitted,
    /// What of such a card decided a number, says again what did, or could not fail.
    UnfittedRestated,
}

/// Whether a row runs a card of which no row fitted a number.
fn is_of_unfitted_card(row: &Row) -> bool {
    lesson_of(row) == Lesson::OfGuessedCards
}

impl Sort {
    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Sort::Measured => "measured",
            Sort::Order => "order",
            Sort::Restated => "restated",
            Sort::Fitted => "fitted",
            Sort::Read => "read",
            Sort::Exact => "exact",
            Sort::Unfitted => "unfitted",
            Sort::UnfittedRestated => "unfitted-restated",
        }
    }

    fn of(row: &Row, restates: &[String]) -> Option<Sort> {
        match row.role {
            RowRole::Conflict | RowRole::NotModelled | RowRole::Setting => None,
            RowRole::Read => Some(Sort::Read),
            _ if row.number.is_some() => Some(Sort::Read),
            _ if row.scored && is_of_unfitted_card(row) => match row.no_prediction(restates) {
                None if row.role == RowRole::Predict => Some(Sort::Unfitted),
                _ => Some(Sort::UnfittedRestated),
            },
            _ if is_theoretical(row) => Some(Sort::Exact),
            // A formula that the model runs on the real profile is no arithmetic.
            RowRole::Predict if row.kind == ValueKind::Formula && row.no_prediction(restates).is_some() => {
                Some(Sort::Restated)
            }
            _ if matches!(row.kind, ValueKind::Formula | ValueKind::Config) => Some(Sort::Exact),
            _ if !row.scored => None,
            RowRole::Fit => Some(Sort::Fitted),
            RowRole::Predict if row.decides.is_some() => Some(Sort::Fitted),
            RowRole::Predict if row.no_prediction(restates).is_some() => Some(Sort::Restated),
            RowRole::Predict if row.kind == ValueKind::Ordering => Some(Sort::Order),
            RowRole::Predict if row.published.is_none_or(|claim| claim.is_bound()) => Some(Sort::Order),
            RowRole::Predict => Some(Sort::Measured),
        }
    }
}

/// How many rows of a sort hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Those within their tolerance.
    pub within: usize,
    /// All.
    pub of: usize,
}

impl Count {
    fn count(&mut self, within: bool) {
        self.of += 1;
        self.within += usize::from(within);
    }

    /// The share that holds, in percent; `None` of none.
    pub fn percent(self) -> Option<f64> {
        (self.of > 0).then(|| 100.0 * self.within as f64 / self.of as f64)
    }
}

impl std::ops::Add for Count {
    type Output = Count;

    fn add(self, other: Count) -> Count {
        Count { within: self.within + other.within, of: self.of + other.of }
    }
}

/// Errors that differ by less count as alike, as a share.
pub const ALIKE: f64 = 0.005;

/// How offpath's errors stand beside those of another model, over the rows that both answer: medians of different
/// rows would say which rows are hard.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Beside {
    /// How many rows both answer.
    pub rows: usize,
    /// The median of offpath's errors, as a share; 0 of none.
    pub model: f64,
    /// The median of the other's.
    pub other: f64,
    /// Rows where offpath is nearer to what was published.
    pub nearer: usize,
    /// Rows where the other is.
    pub further: usize,
    /// Rows where both miss alike, to [`ALIKE`].
    pub alike: usize,
    /// How many of the rows lie in offpath's 80% interval.
    pub covered: usize,
    /// How many lie in the other's, made of its own errors on these rows as offpath's are, each without its own.
    pub covered_other: usize,
    /// The median of how far offpath's intervals reach to either side, as a share; 0 of none.
    pub reach: f64,
    /// The median of how far the other's reach.
    pub reach_other: f64,
}

impl Beside {
    fn of(lines: &[&Line], other: impl Fn(&Line) -> Option<f64>) -> Beside {
        let rows: Vec<Row> = lines.iter().map(|line| line.row.clone()).collect();
        let answered: Vec<(&Line, f64)> = lines
            .iter()
            .filter(|line| line.verdict.is_some())
            .filter_map(|line| Some((*line, other(line)?)))
            .collect();
        let errors = answered.iter().filter_map(|(line, error)| {
            let (row, kind) = (line.row.id.clone(), kind_of(&line.row)?);
            let log_error = (1.0 + error).ln();
            let card = line.row.experiment.as_ref()?.plain.device.clone();
            log_error.is_finite().then_some(Residual { row, card, kind, log_error })
        });
        let errors: Vec<Residual> = errors.collect();
        // By how far an error of the other's lies from what was published, and how far its interval reaches.
        let others = answered.iter().map(|(line, error)| {
            let sizes = spread(&errors, &line.row, &rows);
            let reach = Widened::new(vec![(1.0, f64::INFINITY)], &sizes).quantile(0.9);
            ((1.0 + error).ln().abs(), reach.ln())
        });
        let others: Vec<(f64, f64)> = others.collect();
        let both: Vec<(f64, f64)> = lines
            .iter()
            .filter_map(|line| Some((line.verdict.as_ref()?.error.abs(), other(line)?.abs())))
            .collect();
        let mut beside = Beside {
            rows: both.len(),
            model: median(both.iter().map(|(own, _)| *own).collect()),
            other: median(both.iter().map(|(_, other)| *other).collect()),
            covered: answered
                .iter()
                .filter(|(line, _)| line.lies().is_some_and(|(narrow, _)| narrow))
                .count(),
            covered_other: others.iter().filter(|(off, reach)| off <= reach).count(),
            reach: median(answered.iter().filter_map(|(line, _)| line.reach()).collect()),
            reach_other: median(others.iter().map(|(_, reach)| reach.exp() - 1.0).collect()),
            ..Beside::default()
        };
        for (own, other) in both {
            let counter = if (own - other).abs() < ALIKE {
                &mut beside.alike
            } else if own < other {
                &mut beside.nearer
            } else {
                &mut beside.further
            };
            *counter += 1;
        }
        beside
    }
}

/// Median errors of the predicted measured numbers but places of a sweep, which have none, as shares.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Medians {
    /// How many rows there are.
    pub rows: usize,
    /// The median of offpath's errors over all of them.
    pub model: f64,
    /// Beside taking the nearest published row.
    pub nearest: Beside,
    /// The same over the rows that links alone speak of.
    pub nearest_where_links: Beside,
    /// The same over the others.
    pub nearest_elsewhere: Beside,
    /// Beside the model that has links alone.
    pub links: Beside,
    /// Beside predicting that two things do not differ, where two are compared.
    pub no_change: Beside,
    /// Beside what needs no card: no difference where two things are compared, links alone elsewhere.
    pub simple: Beside,
    /// Beside no difference where two things are compared, and the nearest published row elsewhere.
    pub no_change_or_nearest: Beside,
}

impl Medians {
    fn of(lines: &[&Line]) -> Medians {
        let nearest = |line: &Line| line.null_nearest.as_ref().map(|(error, _)| *error);
        let speaks = |line: &Line| line.null_links.is_some();
        let errors = lines.iter().filter_map(|line| line.verdict.as_ref()).map(|verdict| verdict.error.abs());
        Medians {
            rows: lines.len(),
            model: median(errors.collect()),
            nearest: Beside::of(lines, nearest),
            nearest_where_links: Beside::of(lines, |line| nearest(line).filter(|_| speaks(line))),
            nearest_elsewhere: Beside::of(lines, |line| nearest(line).filter(|_| !speaks(line))),
            links: Beside::of(lines, |line| line.null_links),
            no_change: Beside::of(lines, |line| line.null_no_change),
            simple: Beside::of(lines, |line| line.null_no_change.or(line.null_links)),
            no_change_or_nearest: Beside::of(lines, |line| line.null_no_change.or_else(|| nearest(line))),
        }
    }
}

/// What all rows say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Measured numbers that were predicted.
    pub measured: Count,
    /// Those of them that lie in the 80% interval of their prediction. One without an interval lies in none.
    pub covered: Count,
    /// Those in the 95% interval.
    pub covered_wide: Count,
    /// How many of them have an interval.
    pub with_interval: usize,
    /// Those that lie in the 80% interval by the profiles' numbers alone, of those where these were drawn.
    pub covered_by_numbers: Count,
    /// Measured predictions that the nearest published row would have within tolerance, of those that have one.
    pub nearest_within: Count,
    /// Those that rest on times that were measured here, within their tolerance.
    pub measured_here: Count,
    /// Orders and bounds that were predicted.
    pub orders: Count,
    /// Rows of role `predict` that are no predictions ([`Row::no_prediction`]).
    pub restated: Count,
    /// Scored rows that were fitted.
    pub fitted: Count,
    /// Those of them that lie in their 80% interval, by the rule of the predictions.
    pub covered_fitted: Count,
    /// How many of them have one.
    pub fitted_with_interval: usize,
    /// Formula rows and limits, which must be exact.
    pub exact: Count,
    /// Predictions of cards of which nothing was fitted.
    pub unfitted: Count,
    /// Those that what needs no card would have within tolerance ([`Line::null_simple_within`]); where it has no answer it
    /// has none within.
    pub unfitted_simple: Count,
    /// Those of them that are measured numbers, within their tolerance.
    pub unfitted_measured: Count,
    /// Those inside their 80% interval, which is made of the errors of the others.
    pub covered_unfitted: Count,
    /// Those inside their 95% interval.
    pub covered_unfitted_wide: Count,
    /// Rows of such cards that decided a number, say again what did, or could not fail.
    pub unfitted_restated: Count,
    /// Numbers that the profiles hold.
    pub configured: Count,
    /// Rows that the literature contradicts.
    pub conflicts: usize,
    /// Scored kinds without a model.
    pub not_modelled: usize,
    /// Rows of the scored kinds, of which the former are a part.
    pub of_scored_kinds: usize,
    /// Settings of the authors' experiments.
    pub settings: usize,
    /// The errors of the measured numbers, beside those of other models.
    pub errors: Medians,
    /// The median of how far the 80% intervals reach to either side, as a share.
    pub median_half_width: f64,
}

/// Runs the rows that `only` names, or all where it is empty, on so many threads, with `overlays` in
/// force for every experiment. Null models look at all of `rows`.
///
/// # Errors
/// [`ExperimentError`] of the first row whose experiment is refused, with the row's name.
pub fn reproduce(
    library: &Library,
    rows: &[Row],
    only: &[String],
    overlays: &[String],
    threads: usize,
) -> Result<Vec<Line>, ExperimentError> {
    let uncertain = uncertain(library)?;
    let chosen: Vec<&Row> = rows.iter().filter(|row| only.is_empty() || only.contains(&row.id)).collect();
    // What moves a row is a matter of a few rows: every number is moved by itself.
    let alone = !only.is_empty();
    let open = open_mechanisms(library, overlays)?;
    let loops = LoopMemory::default();
    let benches = || Benches::new(library, overlays, &uncertain, &open, alone, &loops);
    let lines = side_by_side_with(chosen.len(), threads, benches, |benches, index| {
        let row = chosen[index];
        let line = benches.line(row, rows, residual::shipped());
        line.map_err(|error| ExperimentError::Refused(format!("row {}: {error}", row.id)))
    });
    let mut lines: Vec<Line> = lines.into_iter().collect::<Result<_, _>>()?;
    for line in &mut lines {
        if let Some((verdict, other)) = nearest(line, rows) {
            (line.null_nearest, line.null_nearest_within) =
                (Some((verdict.error, other)), Some(verdict.within));
        }
    }
    Ok(lines)
}

/// The mechanisms that the measured card leaves open and no overlay holds.
pub(crate) fn open_mechanisms(
    library: &Library,
    overlays: &[String],
) -> Result<Vec<String>, ExperimentError> {
    let mut open =
        library.variants_of(MEASURED[0].0).map_err(|error| ExperimentError::Refused(error.to_string()))?;
    open.retain(|name| !overlays.contains(name));
    Ok(open)
}

/// A number of a profile file that is known within an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Uncertain {
    /// Its name with the file, as in `bluefield2 soc.read_latency`.
    pub name: String,
    /// The file, as in `profiles/devices/bluefield2.toml`.
    pub file: String,
    /// Its table and key.
    pub key: String,
    /// Its value.
    pub value: Quantity,
    /// Its lower end.
    pub low: Quantity,
    /// Its upper end.
    pub high: Quantity,
}

impl Uncertain {
    /// The bench with this number at `value`.
    fn at(&self, bench: &Bench, value: Quantity) -> Bench {
        bench.with(vec![Change { file: self.file.clone(), key: self.key.clone(), value }])
    }
}

/// The devices whose numbers the rows rest on, with the testbeds they were measured in.
pub(crate) const MEASURED: [(&str, Option<&str>); 4] = [
    ("bluefield2", None),
    ("connectx6", None),
    ("bluefield2", Some("rack-cli")),
    ("bluefield2", Some("sun")),
];

/// Every number of the profiles that has an interval.
pub fn uncertain(library: &Library) -> Result<Vec<Uncertain>, ExperimentError> {
    uncertain_of(library, MEASURED)
}

/// The same of such systems.
fn uncertain_of<'s>(
    library: &Library,
    systems: impl IntoIterator<Item = (&'s str, Option<&'s str>)>,
) -> Result<Vec<Uncertain>, ExperimentError> {
    let mut found: BTreeMap<(String, String), Uncertain> = BTreeMap::new();
    for (device, testbed) in systems {
        let request = SystemRequest { device, testbed, ..SystemRequest::default() };
        let system = library.load(&request).map_err(|error| ExperimentError::Refused(error.to_string()))?;
        for number in system.numbers.values() {
            let (low, high) = (number.low.unwrap_or(number.value), number.high.unwrap_or(number.value));
            if low.base() == high.base() {
                continue;
            }
            let (file, key) = (number.file.clone(), number.key.clone());
            let stem = file.rsplit('/').next().unwrap_or(&file).trim_end_matches(".toml");
            let name = format!("{stem} {key}");
            let one =
                Uncertain { name, file: file.clone(), key: key.clone(), value: number.value, low, high };
            found.entry((file, key)).or_insert(one);
        }
    }
    Ok(found.into_values().collect())
}

/// The benches of one thread: the profiles as they are, with every uncertain number drawn, with each at
/// its ends where that is asked for, and links alone.
struct Benches<'u> {
    own: Bench,
    drawn: Vec<Bench>,
    moved: Vec<(&'u str, Bench)>,
    links: Bench,
    /// Whether a few rows are looked at alone, with every number moved by itself.
    alone: bool,
}

impl<'u> Benches<'u> {
    fn new(
        library: &Library,
        overlays: &[String],
        uncertain: &'u [Uncertain],
        open: &[String],
        alone: bool,
        loops: &LoopMemory,
    ) -> Benches<'u> {
        let own = Bench::new(library.clone()).remembering(loops).under(overlays.to_vec());
        let drawn = drawn(&own, uncertain, open);
        let moved = uncertain
            .iter()
            .filter(|_| alone)
            .flat_map(|one| [one.low, one.high].map(|end| (one.name.as_str(), one.at(&own, end))))
            .collect();
        let links = own.links_alone();
        Benches { own, drawn, moved, links, alone }
    }

    fn line(&self, row: &Row, rows: &[Row], residuals: &[Residual]) -> Result<Line, ExperimentError> {
        let restates = restated(row, rows);
        let mut line = Line {
            row: row.clone(),
            verdict: None,
            outcome: None,
            low: None,
            high: None,
            wide: None,
            widened: false,
            bare: None,
            sort: Sort::of(row, &restates),
            restates,
            moved_by: Vec::new(),
            turned_by: Vec::new(),
            null_links: None,
            null_nearest: None,
            null_nearest_within: None,
            null_no_change: None,
            null_simple_within: None,
            configured: None,
        };
        if let Some(number) = &row.number {
            line.configured = Some(self.own.configured(number)?);
        }
        let Some(experiment) = &row.experiment else { return Ok(line) };
        let outcome = self.own.run(experiment)?;
        line.verdict = judge(row, &outcome);
        let mut by_links = None;
        if let Some(verdict) = &line.verdict {
            // Where no link is passed, links alone have nothing to say.
            let few_clients = experiment.plain.measure == Measure::DesignClients;
            let has_model = has_links_model(experiment);
            let links = (has_model || few_clients).then(|| self.links.run(experiment).ok()).flatten();
            // No error of a model makes a rate greater than what links carry of the payload alone.
            let most = links.as_ref().filter(|_| is_rate(experiment.plain.measure) && !is_ratio(&row.unit));
            let most = most.and_then(|links| verdict.statistic.of(&links.points)).unwrap_or(f64::INFINITY);
            // Only the fitted cards' numbers are drawn: the interval of what is predicted of a card that was only guessed at is
            // made of the errors of its like alone.
            let is_guessed = is_of_unfitted_card(row);
            let widened = is_measured(row, rows);
            line.widened = widened;
            let mut drawn = vec![verdict.predicted];
            if !is_guessed && is_moved(row, experiment) {
                drawn.clear();
                for bench in &self.drawn {
                    drawn.extend(verdict.statistic.of(&bench.run(experiment)?.points));
                }
                let moved = self.moved.iter().map(|(name, bench)| (*name, bench));
                (line.moved_by, line.turned_by) = moved_by(row, experiment, verdict, moved)?;
            }
            if is_guessed && self.alone && is_moved(row, experiment) {
                let plains =
                    experiment.parts().flat_map(|part| std::iter::once(&part.plain).chain(&part.against));
                let systems = plains.map(|plain| (plain.device.as_str(), plain.testbed.as_deref()));
                let guesses = uncertain_of(self.own.library(), systems.collect::<BTreeSet<_>>())?;
                let ends = guesses
                    .iter()
                    .flat_map(|one| [one.low, one.high].map(|end| (one, one.at(&self.own, end))));
                let ends: Vec<(&Uncertain, Bench)> = ends.collect();
                let moved = ends.iter().map(|(one, bench)| (one.name.as_str(), bench));
                (line.moved_by, line.turned_by) = moved_by(row, experiment, verdict, moved)?;
            }
            // Between two places of a sweep lies nothing that a draw or an error could move it to.
            if !line.is_place() && (widened || drawn.len() > 1) {
                let sizes = if widened { spread(residuals, row, rows) } else { Vec::new() };
                let [low, high, lower, higher] = interval(&row.unit, &drawn, &sizes, most);
                // What nothing moves has no interval.
                if high - low > 1e-9 * high.abs() {
                    (line.low, line.high, line.wide) = (Some(low), Some(high), Some((lower, higher)));
                }
                if drawn.len() > 1 {
                    let [low, high, ..] = interval(&row.unit, &drawn, &[], most);
                    line.bare = Some((low, high));
                }
            }
            if has_model && row.published.is_some_and(|claim| !claim.is_bound()) {
                // A part that no link carries has no answer: nothing over nothing is no number.
                let error = links.as_ref().and_then(|links| judge(row, links)).map(|verdict| verdict.error);
                line.null_links = error.filter(|error| !error.is_nan());
            }
            by_links = links.filter(|_| has_model).and_then(|links| judge(row, &links));
        }
        line.outcome = Some(outcome);
        let same = no_change(&line);
        line.null_simple_within = same.as_ref().or(by_links.as_ref()).map(|verdict| verdict.within);
        if row.published.is_some_and(|claim| !claim.is_bound()) {
            line.null_no_change = same.map(|verdict| verdict.error);
        }
        Ok(line)
    }
}

/// Numbers with the change in percent that each makes.
type ChangesByNumber = Vec<(String, f64)>;

/// The change of the deciding prediction in percent by each number at an end of its interval, the strongest first, and the
/// numbers that turn by it whether the row is within its tolerance.
fn moved_by<'b>(
    row: &Row,
    experiment: &Experiment,
    verdict: &Verdict,
    moved: impl Iterator<Item = (&'b str, &'b Bench)>,
) -> Result<(ChangesByNumber, Vec<String>), ExperimentError> {
    let base = verdict.predicted;
    let mut moved_by: BTreeMap<&str, f64> = BTreeMap::new();
    let mut turned_by: BTreeSet<&str> = BTreeSet::new();
    for (name, bench) in moved {
        let outcome = bench.run(experiment)?;
        let Some(value) = verdict.statistic.of(&outcome.points) else { continue };
        let strongest = moved_by.entry(name).or_default();
        if (value - base).abs() > strongest.abs() {
            *strongest = value - base;
        }
        if judge(row, &outcome).is_some_and(|moved| moved.within != verdict.within) {
            turned_by.insert(name);
        }
    }
    let mut moved_by: Vec<(String, f64)> = moved_by
        .into_iter()
        .filter(|(_, change)| change.abs() > 1e-4 * base.abs())
        .map(|(name, change)| (name.to_string(), 100.0 * change / base))
        .collect();
    moved_by.sort_by(|a, b| b.1.abs().total_cmp(&a.1.abs()).then(a.0.cmp(&b.0)));
    Ok((moved_by, turned_by.into_iter().map(str::to_string).collect()))
}

/// The ends of the 80% and of the 95% interval: every draw with every error in both directions, none of which
/// moves it beyond `most`.
fn interval(unit: &str, drawn: &[f64], sizes: &[f64], most: f64) -> [f64; 4] {
    let all = Widened::new(drawn.iter().map(|value| (plain(unit, *value), most)).collect(), sizes);
    let printed = |value: f64| if unit == "%" { 100.0 * (value - 1.0) } else { value };
    [0.1, 0.9, 0.025, 0.975].map(|share| printed(all.quantile(share)))
}

/// The rows about designs whose prediction is not within its tolerance, whatever they count as.
pub fn missed(lines: &[Line]) -> Vec<String> {
    let is_missed = |line: &&Line| {
        line.row.experiment.as_ref().is_some_and(|one| one.plain.design.is_some())
            && (line.row.scored || line.row.derived)
            && line.verdict.as_ref().is_some_and(|verdict| !verdict.within)
    };
    lines.iter().filter(is_missed).map(|line| line.row.id.clone()).collect()
}

/// The errors of the predictions of measured numbers. A threshold teaches none, as none widens its interval.
pub fn residuals(lines: &[Line]) -> Vec<Residual> {
    let error = |line: &Line| {
        let verdict = line.verdict.as_ref()?;
        let kind = kind_of(&line.row)?;
        let log_error = (1.0 + verdict.error).ln();
        let card = line.row.experiment.as_ref()?.plain.device.clone();
        log_error.is_finite().then(|| Residual { row: line.row.id.clone(), card, kind, log_error })
    };
    let is_told = |line: &&Line| line.is_numeric() || line.is_numeric_guess();
    lines.iter().filter(is_told).filter_map(error).collect()
}

/// Whether a row's prediction follows from numbers with intervals: theoretical rows are exact, and
/// whole runs on the twin would be repeated too often.
fn is_moved(row: &Row, experiment: &Experiment) -> bool {
    row.kind != ValueKind::Formula && row.kind != ValueKind::Config && !is_run_on_twin(experiment)
}

/// Whether an experiment runs on the loaded twin.
pub fn is_run_on_twin(experiment: &Experiment) -> bool {
    matches!(
        experiment.plain.measure,
        Measure::DesignClients
            | Measure::Loop
            | Measure::LoopLatency
            | Measure::LoopRate
            | Measure::LoopTotal
    )
}

fn has_links_model(experiment: &Experiment) -> bool {
    matches!(
        experiment.plain.measure,
        Measure::Latency
            | Measure::Rate
            | Measure::Bandwidth
            | Measure::Packets
            | Measure::DesignRate
            | Measure::DesignBandwidth
    )
}

fn is_rate(measure: Measure) -> bool {
    !matches!(measure, Measure::Latency) && !matches!(measure, Measure::Packets)
}

/// The nearest other row that publishes the same kind of figure, and how its value is judged in place of the
/// prediction's: by the same rules, at the end where it misses most.
fn nearest(line: &Line, rows: &[Row]) -> Option<(Verdict, String)> {
    let row = &line.row;
    line.verdict.as_ref()?;
    row.published.filter(|claim| !claim.is_bound())?;
    let own = row.experiment.as_ref()?;
    let mut best: Vec<(f64, &Row)> = Vec::new();
    for other in rows {
        let Some(theirs) = &other.experiment else { continue };
        let comparable = other.id != row.id
            && is_ratio(&other.unit) == is_ratio(&row.unit)
            && (is_ratio(&row.unit) || other.unit == row.unit)
            && other.kind != ValueKind::Formula
            && other.kind != ValueKind::Config
            && other.role != RowRole::Conflict
            // Of a card that was only guessed at nothing is known that another card's row would be told by.
            && is_of_unfitted_card(other) == is_of_unfitted_card(row)
            // What follows from a prediction's own value would predict it.
            && (!other.derived || other.role == RowRole::Fit)
            && other.published.is_some_and(|claim| !claim.is_bound())
            && is_like(own.plain.measure, theirs.plain.measure)
            && std::mem::discriminant(&as_ratio(own.compare)) == std::mem::discriminant(&as_ratio(theirs.compare))
            // What was fitted may be known to both models; what is predicted may not predict itself.
            && (other.role == RowRole::Fit || !(row.alike.contains(&other.id) || other.alike.contains(&row.id)));
        if !comparable {
            continue;
        }
        let far = unlikeness(own, theirs);
        let least = best.first().map_or(f64::INFINITY, |(least, _)| *least);
        if far < least - 1e-9 {
            best.clear();
        }
        if far < least + 1e-9 {
            best.push((far, other));
        }
    }
    // Of rows that are equally near the middle one by its error is taken, so that no order of the file decides.
    let mut judged: Vec<(Verdict, String)> = best
        .into_iter()
        .filter_map(|(_, other)| {
            let (low, high) = other.published?.ends();
            let mut values = vec![low, high];
            values.dedup();
            let values = values.into_iter().map(|value| {
                let value = plain(&other.unit, value);
                if row.unit == "%" { 100.0 * (value - 1.0) } else { value }
            });
            Some((judged_as(line, values.collect())?, other.id.clone()))
        })
        .collect();
    judged.sort_by(|a, b| a.0.error.abs().total_cmp(&b.0.error.abs()).then(a.1.cmp(&b.1)));
    let middle = judged.len().checked_sub(1)? / 2;
    Some(judged.swap_remove(middle))
}

/// How a row would be judged whose places gave these values: one for all of a sweep's places is one for each.
fn judged_as(line: &Line, mut values: Vec<f64>) -> Option<Verdict> {
    if let [one] = values[..]
        && line.outcome.as_ref()?.points.len() > 1
    {
        values.push(one);
    }
    let point = |value| SweepPoint { place: String::new(), variables: BTreeMap::new(), value, binding: None };
    let points = values.into_iter().map(point).collect();
    judge(&line.row, &Measurement { points, ..Measurement::default() })
}

/// How predicting that two things do not differ is judged. A threshold compares none: where a ratio has one, 1 is a place
/// as any other.
fn no_change(line: &Line) -> Option<Verdict> {
    let none = if line.row.unit == "%" { 0.0 } else { 1.0 };
    (is_ratio(&line.row.unit) && !is_threshold(&line.row)).then(|| judged_as(line, vec![none]))?
}

/// Whether a unit is that of one number over another.
fn is_ratio(unit: &str) -> bool {
    matches!(unit, "%" | "x")
}

/// A change in percent is a ratio.
fn as_ratio(compare: Compare) -> Compare {
    if compare == Compare::Change { Compare::Ratio } else { compare }
}

fn is_like(a: Measure, b: Measure) -> bool {
    let sort = |measure: Measure| match measure {
        Measure::Latency | Measure::Posting | Measure::DesignLatency | Measure::LoopLatency => 0,
        Measure::Rate | Measure::DesignRate | Measure::LoopRate | Measure::LoopTotal => 1,
        Measure::Bandwidth
        | Measure::BlockingBandwidth
        | Measure::PostingBandwidth
        | Measure::DesignBandwidth
        | Measure::DesignClients
        | Measure::Loop => 2,
        _ => 3,
    };
    sort(a) == sort(b) && (sort(a) != 3 || a == b)
}

/// How far two experiments are apart: the path counts most, then the verb and device, then sizes by their doublings.
fn unlikeness(a: &Experiment, b: &Experiment) -> f64 {
    let set = |list: &[String]| list.iter().cloned().collect::<BTreeSet<String>>();
    let paths = |one: &Experiment| {
        let of = |one: &Experiment| {
            let plain = &one.plain;
            let flows = plain.together.iter().map(|flow| flow.path.clone());
            let mixed = plain.alternative.iter().cloned().chain(plain.mix.clone());
            plain.path.iter().cloned().chain(flows).chain(mixed).collect::<Vec<_>>()
        };
        one.parts().flat_map(of).collect::<BTreeSet<String>>()
    };
    let bytes = |list: &[String]| {
        let first = list.first()?.parse::<offpath_quantity::Bytes>().ok()?;
        Some(first.get() as f64)
    };
    let batch = |one: &Experiment| one.plain.batch.first().map(|batch| f64::from(*batch));
    let clients = |one: &Experiment| one.plain.clients.first().map(|clients| *clients as f64);
    let doublings = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) => ((a + 1.0).log2() - (b + 1.0).log2()).abs() * 0.25,
        (None, None) => 0.0,
        _ => 1.0,
    };
    let differ = |same: bool, weight: f64| if same { 0.0 } else { weight };
    let overlap = |a: BTreeSet<String>, b: BTreeSet<String>| {
        let common = a.intersection(&b).count() as f64;
        1.0 - common / (a.len().max(b.len()).max(1)) as f64
    };
    let devices = |one: &Experiment| one.parts().map(|one| one.plain.device.clone()).collect::<BTreeSet<_>>();
    // A ratio over the same thing is the same metric.
    let second = |one: &Experiment| {
        let of = |plain: &crate::experiment::Plain| {
            let mut names = plain.path.clone();
            names.extend(plain.alternative.clone());
            names.push(plain.device.clone());
            names
        };
        one.parts().flat_map(|one| &one.against).flat_map(of).collect::<BTreeSet<String>>()
    };
    4.0 * overlap(second(a), second(b))
        + 4.0 * overlap(paths(a), paths(b))
        + 2.0 * overlap(set(&a.plain.verb), set(&b.plain.verb))
        + differ(devices(a) == devices(b), 1.0)
        + differ(a.plain.measure == b.plain.measure, 1.0)
        + differ(a.plain.design == b.plain.design, 4.0)
        + doublings(bytes(&a.plain.payload), bytes(&b.plain.payload))
        + doublings(bytes(&a.plain.range), bytes(&b.plain.range))
        + doublings(batch(a), batch(b))
        + doublings(clients(a), clients(b))
}

/// What all lines say together.
pub fn summary(lines: &[Line]) -> Summary {
    let mut summary = Summary::default();
    for line in lines {
        let row = &line.row;
        if row.kind.is_scored() && !row.derived && row.role != RowRole::Setting {
            summary.of_scored_kinds += 1;
        }
        match row.role {
            RowRole::Conflict => summary.conflicts += 1,
            RowRole::NotModelled => summary.not_modelled += 1,
            RowRole::Setting => summary.settings += 1,
            RowRole::Fit | RowRole::Predict | RowRole::Read => {}
        }
        let Some(within) = line.within() else { continue };
        match line.sort {
            Some(Sort::Measured) => summary.measured.count(within),
            Some(Sort::Order) => summary.orders.count(within),
            Some(Sort::Restated) => summary.restated.count(within),
            Some(Sort::Fitted) => summary.fitted.count(within),
            Some(Sort::Read) => summary.configured.count(within),
            Some(Sort::Exact) => summary.exact.count(within),
            Some(Sort::Unfitted) => {
                summary.unfitted.count(within);
                summary.unfitted_simple.count(line.null_simple_within == Some(true));
            }
            Some(Sort::UnfittedRestated) => summary.unfitted_restated.count(within),
            None => {}
        }
        // What has no interval lies in none, whether it was predicted or fitted.
        let lies = line.lies();
        let (narrow, wide) = lies.unwrap_or((false, false));
        if line.sort == Some(Sort::Fitted) {
            summary.covered_fitted.count(narrow);
            summary.fitted_with_interval += usize::from(lies.is_some());
        }
        if line.is_numeric_guess() {
            summary.unfitted_measured.count(within);
            summary.covered_unfitted.count(narrow);
            summary.covered_unfitted_wide.count(wide);
        }
        if line.sort == Some(Sort::Measured) {
            summary.covered.count(narrow);
            summary.covered_wide.count(wide);
            summary.with_interval += usize::from(lies.is_some());
            line.covered_by_numbers()
                .into_iter()
                .for_each(|covered| summary.covered_by_numbers.count(covered));
            line.null_nearest_within.into_iter().for_each(|within| summary.nearest_within.count(within));
            if line.row.measured_here.is_some() {
                summary.measured_here.count(within);
            }
        }
    }
    let numeric: Vec<&Line> = lines.iter().filter(|line| line.is_numeric()).collect();
    summary.errors = Medians::of(&numeric);
    summary.median_half_width = median(numeric.iter().filter_map(|line| line.reach()).collect());
    summary
}

/// The middle of some values; 0 of none.
pub fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        len if len % 2 == 1 => values[len / 2],
        len => (values[len / 2 - 1] + values[len / 2]) / 2.0,
    }
}

/// By what every fitted number is wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Wrong {
    /// All by one factor, which leaves what compares two of them.
    Alike(f64),
    /// Each by the factor or by its inverse, as this draw has it.
    Apart(f64, u64),
}

impl Wrong {
    fn of(self, (file, key): &(String, String)) -> f64 {
        match self {
            Wrong::Alike(times) => times,
            Wrong::Apart(times, draw) => {
                let seed =
                    Seed::new(draw).child("wrong").child(file).child(&offpath_profile::first_name(key));
                if unit_of(seed.value()) < 0.5 { times } else { 1.0 / times }
            }
        }
    }
}

/// What the rows say of profiles whose every fitted number is wrong by a factor.
#[derive(Clone, Debug, PartialEq)]
pub struct Falsified {
    /// By what.
    pub wrong: Wrong,
    /// Measured predictions within their tolerance.
    pub measured: Count,
    /// Those of them that it moves by a hundredth or more: the others say nothing of the fit.
    pub moved: Count,
    /// The same rows with the profiles as they are.
    pub moved_before: Count,
    /// The median of their errors, but places of a sweep.
    pub median_error: f64,
    /// Fitted rows within theirs.
    pub fitted: Count,
}

/// Judges the fitted rows and the predictions of measured numbers with every fitted number wrong by a factor, as far as
/// its range goes: a score that does not fall tells nothing of the fit. `None` where no number is fitted.
///
/// # Errors
/// As [`reproduce`].
pub fn falsified(
    library: &Library,
    lines: &[Line],
    wrong: Wrong,
    threads: usize,
) -> Result<Option<Falsified>, ExperimentError> {
    let mut changes: BTreeMap<(String, String), Quantity> = BTreeMap::new();
    for (device, testbed) in MEASURED {
        let request = SystemRequest { device, testbed, ..SystemRequest::default() };
        let system = library.load(&request).map_err(|error| ExperimentError::Refused(error.to_string()))?;
        for (name, number) in &system.numbers {
            let place = (number.file.clone(), number.key.clone());
            let base = number.value.base() * wrong.of(&place);
            let whole = if number.value.dimension() == Dimension::Ratio { base } else { base.round() };
            let value = Quantity::from_base(whole, number.value.dimension());
            let value = value.filter(|value| system.with(name, *value).is_ok());
            if let (Provenance::Fitted, Some(value)) = (number.provenance, value) {
                changes.insert(place, value);
            }
        }
    }
    if changes.is_empty() {
        return Ok(None);
    }
    let changes = changes.into_iter().map(|((file, key), value)| Change { file, key, value });
    let changes: Vec<Change> = changes.collect();
    let loops = LoopMemory::default();
    let judged = side_by_side_with(
        lines.len(),
        threads,
        || Bench::new(library.clone()).remembering(&loops).with(changes.clone()),
        |bench, index| {
            let row = &lines[index].row;
            let counts = matches!(lines[index].sort, Some(Sort::Measured | Sort::Fitted));
            let Some(experiment) = row.experiment.as_ref().filter(|_| counts) else { return Ok(None) };
            Ok(judge(row, &bench.run(experiment)?))
        },
    );
    let [mut measured, mut moved, mut moved_before, mut fitted] = [Count::default(); 4];
    let mut errors = Vec::new();
    for (line, verdict) in lines.iter().zip(judged) {
        let Some(verdict) = verdict? else { continue };
        let is_predicted = line.sort == Some(Sort::Measured);
        let count = if is_predicted { &mut measured } else { &mut fitted };
        count.count(verdict.within);
        if let Some(before) = line.verdict.as_ref().filter(|_| is_predicted)
            && is_moved_by_a_hundredth(&line.row.unit, before.predicted, verdict.predicted)
        {
            moved.count(verdict.within);
            moved_before.count(before.within);
        }
        if line.is_numeric() {
            errors.push(verdict.error.abs());
        }
    }
    Ok(Some(Falsified { wrong, measured, moved, moved_before, median_error: median(errors), fitted }))
}

/// Whether a prediction becomes another one. A change in percent stands for a ratio.
fn is_moved_by_a_hundredth(unit: &str, before: f64, after: f64) -> bool {
    let (before, after) = (plain(unit, before), plain(unit, after));
    (after - before).abs() > 0.01 * before.abs()
}

/// A variant of an open mechanism, and what the rows say of it.
#[derive(Clone, Debug, PartialEq)]
pub struct VariantScore {
    /// The overlay that holds it.
    pub overlay: String,
    /// What it says.
    pub description: String,
    /// Measured predictions within their tolerance with it.
    pub measured: Count,
    /// The median of their errors with it, but places of a sweep, as a share.
    pub median_error: f64,
    /// Rows that hold without it and not with it, each with both errors.
    pub refuted_by: Vec<MovedRow>,
    /// Rows that hold with it and not without it.
    pub favoured_by: Vec<MovedRow>,
}

/// A row that a variant moves over its tolerance.
#[derive(Clone, Debug, PartialEq)]
pub struct MovedRow {
    /// The row.
    pub id: String,
    /// The published value in words.
    pub published: String,
    /// What is predicted without the variant.
    pub without: f64,
    /// What is predicted with it.
    pub with: f64,
    /// The unit of both.
    pub unit: String,
    /// Whether it is a prediction. A row that was fitted, that restates one, or that decided between the
    /// mechanisms cannot speak for or against the one that it chose.
    pub is_prediction: bool,
}

/// Runs the scored rows and the conflicts under each mechanism that the first measured device names
/// as a variant.
///
/// # Errors
/// As [`reproduce`].
pub fn variants(
    library: &Library,
    lines: &[Line],
    threads: usize,
) -> Result<Vec<VariantScore>, ExperimentError> {
    let request = SystemRequest { device: MEASURED[0].0, ..SystemRequest::default() };
    let system = library.load(&request).map_err(|error| ExperimentError::Refused(error.to_string()))?;
    let open = &system.variants;
    let all = open.iter().map(|(overlay, description)| {
        let loops = LoopMemory::default();
        let judged = side_by_side_with(
            lines.len(),
            threads,
            || Bench::new(library.clone()).remembering(&loops).under(vec![overlay.clone()]),
            |bench, index| {
                let row = &lines[index].row;
                let counts = lines[index].verdict.is_some() && (row.scored || row.role == RowRole::Fit);
                let Some(experiment) = row.experiment.as_ref().filter(|_| counts) else { return Ok(None) };
                let outcome = bench.run(experiment).map_err(|error| {
                    ExperimentError::Refused(format!("row {} under {overlay}: {error}", row.id))
                })?;
                Ok(judge(row, &outcome))
            },
        );
        let mut variant = VariantScore {
            overlay: overlay.clone(),
            description: description.clone(),
            measured: Count::default(),
            median_error: 0.0,
            refuted_by: Vec::new(),
            favoured_by: Vec::new(),
        };
        let mut errors = Vec::new();
        for (line, under) in lines.iter().zip(judged) {
            let (row, Some(verdict), Some(under)) = (&line.row, &line.verdict, under?) else { continue };
            if line.is_numeric() {
                errors.push(under.error.abs());
            }
            if line.sort == Some(Sort::Measured) {
                variant.measured.count(under.within);
            }
            if under.within == verdict.within {
                continue;
            }
            let moved = MovedRow {
                id: row.id.clone(),
                published: row.published.map_or_else(String::new, |claim| claim.to_string()),
                without: verdict.predicted,
                with: under.predicted,
                unit: row.unit.clone(),
                is_prediction: matches!(line.sort, Some(Sort::Measured | Sort::Order)),
            };
            if under.within { variant.favoured_by.push(moved) } else { variant.refuted_by.push(moved) }
        }
        variant.median_error = median(errors);
        Ok(variant)
    });
    all.collect()
}

#[cfg(test)]
mod tests {
    use super::is_moved_by_a_hundredth;

    #[test]
    fn a_change_in_percent_moves_as_the_ratio_that_it_stands_for() {
        assert!(!is_moved_by_a_hundredth("%", 0.0, 0.0), "what stays is not moved");
        assert!(!is_moved_by_a_hundredth("%", -0.076, -0.105));
        assert!(is_moved_by_a_hundredth("%", -0.076, 1.2));
        assert!(is_moved_by_a_hundredth("us", 0.3, 0.304));
    }
}
