//! What past predictions were wrong by, which no number of a profile stands for.
//!
//! `evidence/residuals.toml` holds the log-error of every prediction of a measured number that restates no
//! fitted row, with the card that it was for. An interval of a plan is that of the joint sample, each draw widened by the
//! errors of its kind with both signs. One more error is counted than was seen, as large as the largest. What predictions
//! of cards were wrong by to which rows are fitted says nothing of a card to which none is: such a card has the errors of
//! its like.
//!
//! A dozen errors lie apart, and a quantile of a sample that they move would jump from one to the next: whoever knows
//! less could be told more. So they are taken for what they are drawn from, of which nothing is said but that smaller
//! errors are no rarer than greater ones (the estimate of Grenander, 1956: the least concave majorant of their
//! distribution). Then no sample that reaches farther gives a narrower interval (the inequality of Anderson, 1955).

use crate::known::FigureOf;
use crate::rests::{Rest, is_measured, is_measured_here};
use crate::sample::quantile;
use offpath_profile::{LearntErrors, Provenance, System};
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::OnceLock;

/// What a figure is: errors of one kind say what to expect of the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FigureKind {
    /// Requests, bytes or packets in a time.
    Throughput,
    /// A time.
    Latency,
    /// One throughput over another.
    ThroughputRatio,
    /// One time over another.
    LatencyRatio,
    /// Anything else.
    Other,
}

impl FigureKind {
    /// Its name in the file of errors.
    pub fn name(self) -> &'static str {
        match self {
            FigureKind::Throughput => "throughput",
            FigureKind::Latency => "latency",
            FigureKind::ThroughputRatio => "throughput-ratio",
            FigureKind::LatencyRatio => "latency-ratio",
            FigureKind::Other => "other",
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    missed: Vec<String>,
    residual: Vec<Residual>,
}

/// The error of one prediction of a measured number.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    /// The evidence row that was predicted.
    pub row: String,
    /// The card that it was predicted for.
    pub card: String,
    /// What it measures.
    pub kind: FigureKind,
    /// Natural logarithm of predicted over published; of a change in percent, of the ratios meant.
    pub log_error: f64,
}

/// The cards to which published rows are fitted.
pub const CARDS: [&str; 2] = ["bluefield2", "connectx6"];

/// For which cards errors of predictions speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lesson {
    /// Those of which something was fitted or measured.
    OfFittedCards,
    /// Those of which every cost is a guess.
    OfGuessedCards,
}

impl Lesson {
    /// What speaks for a figure on some systems that rests on these numbers: where each is a card to which published rows are
    /// fitted, or where most of what it rests on beside the user's numbers was measured or fitted, the errors of fitted cards.
    pub fn of<'s>(rests: &[Rest], systems: impl IntoIterator<Item = &'s System>) -> Lesson {
        let is_known = |system: &System| {
            // A name alone is none: what a file of the user's changes under it is carried over.
            let mut own = system.numbers.iter().filter(|(name, _)| name.starts_with("nic."));
            CARDS.contains(&system.device.as_str())
                && own.any(|(_, number)| number.provenance == Provenance::Fitted)
        };
        match is_measured(rests) || systems.into_iter().all(is_known) {
            true => Lesson::OfFittedCards,
            false => Lesson::OfGuessedCards,
        }
    }

    /// Whether errors of predictions for a card are its.
    pub fn takes(self, card: &str) -> bool {
        CARDS.contains(&card) == (self == Lesson::OfFittedCards)
    }

    /// The cards that its errors are of.
    pub fn cards(self) -> Vec<&'static str> {
        let cards = shipped().iter().map(|one| one.card.as_str()).filter(|card| self.takes(card));
        cards.collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// What an error of a kind is within with a chance, by those that were seen.
    pub fn within(self, figure: FigureKind, chance: f64) -> f64 {
        let sizes = self.sizes(figure);
        let place = (chance * sizes.len() as f64).ceil() as usize;
        sizes.get(place.saturating_sub(1)).copied().unwrap_or(f64::INFINITY)
    }

    /// The sizes of its log-errors of a kind, sorted, the largest counted once more.
    pub fn sizes(self, figure: FigureKind) -> Vec<f64> {
        let own = shipped().iter().filter(|one| self.takes(&one.card));
        sizes_of(own.map(|one| (one.kind == figure, one.log_error)))
    }
}

/// Whose errors widen what a benchmark prints.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum PastErrors<'s> {
    /// Those of the card's own calibration, of points that its numbers were not fitted to.
    OfThisCard(&'s LearntErrors),
    /// Those of past predictions for other cards, or for those that are fitted to published rows.
    Of(Lesson),
}

impl<'s> PastErrors<'s> {
    /// What speaks for a figure of a system that rests on these numbers. The errors of a calibration are those of numbers that
    /// were measured or held to what was, of the traffic that was measured, on its path, and of what bound it there: what rests more on
    /// others, has another verb, or is bound by what one log alone told, may be wrong by more.
    pub fn of(figure: &FigureOf, rests: &[Rest], system: &'s System) -> PastErrors<'s> {
        let kind = figure.kind.name();
        let own = system.learnt_errors(kind, (&figure.traffic, &figure.path), &figure.bound_by);
        let is_untold = system.is_untold(kind, &figure.traffic, &figure.path);
        match own.filter(|_| is_measured_here(rests) && !is_untold) {
            Some(own) => PastErrors::OfThisCard(own),
            None => PastErrors::Of(Lesson::of(rests, [system])),
        }
    }

    /// The cards that they are of; `device` is the card that they widen.
    pub fn cards(self, device: &str) -> Vec<String> {
        match self {
            PastErrors::OfThisCard(_) => vec![device.to_string()],
            PastErrors::Of(lesson) => lesson.cards().into_iter().map(str::to_string).collect(),
        }
    }

    /// A sample of figures of a kind that is moved by them.
    pub(crate) fn widen(self, figure: FigureKind, sample: Vec<(f64, f64)>) -> Widened {
        match self {
            PastErrors::Of(lesson) => Widened::new(sample, &lesson.sizes(figure)),
            PastErrors::OfThisCard(own) => {
                let LearntErrors { half_within, eight_of_ten_within, nine_of_ten_within, all_within, .. } =
                    *own;
                let within = [
                    (half_within, 0.5),
                    (eight_of_ten_within, 0.8),
                    (nine_of_ten_within, 0.9),
                    (all_within, 1.0),
                ];
                Widened::within(bounded_above(sample), within.into_iter())
            }
        }
    }
}

/// Errors of one kind that have to be there before they speak for it alone; with fewer, those of all kinds
/// stand in for them.
pub const FEWEST: usize = 8;

/// The errors that this repository holds.
pub fn shipped() -> &'static [Residual] {
    &file().residual
}

/// The published rows about shipped designs that this version does not meet.
pub(crate) fn missed() -> &'static [String] {
    &file().missed
}

fn file() -> &'static File {
    static FILE: OnceLock<File> = OnceLock::new();
    FILE.get_or_init(|| {
        let text = include_str!("../../../evidence/residuals.toml");
        toml::from_str(text).expect("the shipped errors are in order; a test reads them")
    })
}

/// The sizes of those of the log-errors that are of the kind in question, sorted, the largest counted once
/// more: it stands for the error that was not seen yet.
pub fn sizes_of(errors: impl Iterator<Item = (bool, f64)> + Clone) -> Vec<f64> {
    let few = errors.clone().filter(|(own, _)| *own).count() < FEWEST;
    let mut sizes: Vec<f64> = errors.filter(|(own, _)| few || *own).map(|(_, error)| error.abs()).collect();
    sizes.sort_by(f64::total_cmp);
    sizes.extend(sizes.last().copied());
    sizes
}

/// A value of a sample, with the least and the most that it can be whatever a model is wrong by: an error moves nothing
/// beyond these.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedDraw {
    /// The value.
    pub drawn: f64,
    /// The least that it can be.
    pub least: f64,
    /// The most.
    pub most: f64,
}

/// By which factor errors may move a rate, either way; by none where nothing widens it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reach(f64);

/// The least and the most that a rate can be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RateEnds {
    pub least: f64,
    pub most: f64,
}

impl Reach {
    /// That of the errors of a kind on cards of one sort.
    pub fn of(errors: Option<(Lesson, FigureKind)>) -> Reach {
        let largest = errors.and_then(|(lesson, kind)| lesson.sizes(kind).last().copied());
        Reach(largest.map_or(1.0, f64::exp))
    }

    /// The ends of a rate that was solved, of which ports and links carry `most`.
    pub fn ends(self, solved: f64, most: f64) -> RateEnds {
        RateEnds { least: solved / self.0, most: (solved * self.0).min(most.max(solved)) }
    }
}

impl RateEnds {
    /// The least and the most that a rate over another one can be.
    pub fn over(self, other: RateEnds) -> (f64, f64) {
        (self.least / other.most, self.most / other.least)
    }
}

/// A sample of which each value is moved by errors of some sizes, up and down.
#[derive(Clone, Debug, Default)]
pub struct Widened {
    /// The sorted values, each with its bounds.
    sample: Vec<BoundedDraw>,
    /// The corners of the least concave majorant of the share of errors up to a size; none of no errors.
    errors: Vec<(f64, f64)>,
}

/// Values with the most that each can be.
fn bounded_above(sample: Vec<(f64, f64)>) -> Vec<BoundedDraw> {
    sample.into_iter().map(|(drawn, most)| BoundedDraw { drawn, least: 0.0, most }).collect()
}

impl Widened {
    /// `sample`, each value with the most that it can be, moved by errors of the sorted `sizes`.
    pub fn new(sample: Vec<(f64, f64)>, sizes: &[f64]) -> Widened {
        Widened::bounded(bounded_above(sample), sizes)
    }

    /// The same of values that have a least too.
    pub fn bounded(sample: Vec<BoundedDraw>, sizes: &[f64]) -> Widened {
        // Each error stands at the lower end of its share: one that lies between two that were seen counts as the greater.
        let share = |count: usize| count as f64 / sizes.len() as f64;
        let seen = sizes.iter().enumerate().map(|(count, size)| (*size, share(count)));
        Widened::within(sample, seen.chain(sizes.last().map(|largest| (*largest, 1.0))))
    }

    /// `sample` moved by errors that are within each size with a share.
    fn within(mut sample: Vec<BoundedDraw>, shares: impl Iterator<Item = (f64, f64)>) -> Widened {
        sample.sort_by(|a, b| a.drawn.total_cmp(&b.drawn));
        let mut errors: Vec<(f64, f64)> = Vec::new();
        for corner in shares {
            if errors.is_empty() {
                errors.push((0.0, 0.0));
            }
            while let [.., before, last] = errors[..] {
                let last_is_below = (last.1 - before.1) * (corner.0 - before.0)
                    <= (corner.1 - before.1) * (last.0 - before.0);
                if !last_is_below {
                    break;
                }
                errors.pop();
            }
            errors.push(corner);
        }
        Widened { sample, errors }
    }

    /// Whether nothing was drawn.
    pub fn is_empty(&self) -> bool {
        self.sample.is_empty()
    }

    /// Which share of it lies at or below a value; 0 of nothing.
    pub fn below(&self, value: f64) -> f64 {
        let of = |&BoundedDraw { drawn, least, most }: &BoundedDraw| match self.errors.last() {
            Some(_) if value < drawn.min(least) => 0.0,
            Some(_) if drawn > 0.0 && value < drawn.max(most) => {
                let by = if value > 0.0 { (value / drawn).ln() } else { f64::NEG_INFINITY };
                0.5 + 0.5 * self.up_to(by.abs()).copysign(by)
            }
            _ => f64::from(u8::from(drawn <= value)),
        };
        self.sample.iter().map(of).sum::<f64>() / self.sample.len().max(1) as f64
    }

    /// Which share of the errors is of this size at most.
    fn up_to(&self, size: f64) -> f64 {
        let above = self.errors.partition_point(|corner| corner.0 < size);
        match (above.checked_sub(1).map(|below| self.errors[below]), self.errors.get(above)) {
            (Some(from), Some(to)) => from.1 + (size - from.0) / (to.0 - from.0) * (to.1 - from.1),
            (None, Some(_)) => 0.0,
            (_, None) => 1.0,
        }
    }

    /// The value below which a share of it lies; NaN of nothing.
    pub fn quantile(&self, share: f64) -> f64 {
        let Some((first, last)) = self.sample.first().zip(self.sample.last()) else { return f64::NAN };
        let (least, greatest) = (first.drawn, last.drawn);
        let Some((largest, _)) = self.errors.last().copied().filter(|_| greatest > 0.0) else {
            let values: Vec<f64> = self.sample.iter().map(|one| one.drawn).collect();
            return quantile(&values, share);
        };
        let lowest = if least > 0.0 { least * (-largest).exp() } else { least };
        let (mut low, mut high) = (lowest, greatest * largest.exp());
        // Each halves what is left, by ratio where there is one: 64 leave nothing that a number could hold.
        for _ in 0..64 {
            let middle = if low > 0.0 { (low * high).sqrt() } else { (low + high) / 2.0 };
            if self.below(middle) < share { low = middle } else { high = middle }
        }
        high
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_has_errors_and_its_largest_counts_twice() {
        for figure in [FigureKind::Throughput, FigureKind::Latency, FigureKind::ThroughputRatio] {
            for lesson in [Lesson::OfFittedCards, Lesson::OfGuessedCards] {
                let sizes = lesson.sizes(figure);
                let all = || shipped().iter().filter(|one| lesson.takes(&one.card));
                let own = all().filter(|one| one.kind == figure).count();
                let taken = if own < FEWEST { all().count() } else { own };
                assert!(taken > 5, "{lesson:?} {figure:?}");
                assert_eq!(sizes.len(), taken + 1, "{figure:?}: {sizes:?}");
                assert!(sizes.windows(2).all(|pair| pair[0] <= pair[1]));
                assert_eq!(sizes[sizes.len() - 1], sizes[sizes.len() - 2]);
            }
        }
    }

    /// Eight errors of a kind speak for it alone, fewer do not; an error is as large upwards as downwards.
    #[test]
    fn a_kind_of_few_errors_has_those_of_all() {
        let of = |own: usize| {
            let own = (1..=own).map(|size| (true, -(size as f64)));
            sizes_of(own.chain([(false, 20.0), (false, -30.0)]))
        };
        assert_eq!(of(8), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 8.0]);
        assert_eq!(of(7), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 20.0, 30.0, 30.0]);
    }

    /// A figure has the errors of its card's own calibration where half of what it rests on was measured there, and they are of
    /// its kind; a guess keeps the general ones.
    #[test]
    fn own_errors_are_those_of_what_was_measured() {
        let request = offpath_profile::SystemRequest { device: "connectx7", ..Default::default() };
        let mut system = offpath_profile::Library::builtin().load(&request).expect("the shipped card loads");
        let own = LearntErrors {
            figure: "throughput".to_string(),
            traffic: vec!["read".to_string()],
            path: "client-host".to_string(),
            bound_by: vec!["posting thread".to_string()],
            points: 40,
            half_within: 0.01,
            eight_of_ten_within: 0.03,
            nine_of_ten_within: 0.05,
            all_within: 0.2,
        };
        system.learnt_errors.push(own.clone());
        let rests = |measured_here: f64| {
            let known =
                [(Provenance::MeasuredHere, measured_here), (Provenance::CarriedOver, 1.0 - measured_here)];
            let rest = |(provenance, weight)| Rest {
                with: Vec::new(),
                number: "nic.pass_time".to_string(),
                origin: crate::factor::Origin::Profile(provenance),
                elasticity: weight,
                weight,
                moves: 0.0,
                drawn: crate::sample::Drawn::Interval,
                own_evidence: false,
            };
            known.map(rest)
        };
        let of_runs = |kind, [traffic, path, bound_by]: [&str; 3], measured_here: f64| {
            let [traffic, path, bound_by] = [traffic, path, bound_by].map(str::to_string);
            let of = FigureOf { kind, traffic, path, bound_by, has_evidence: true };
            PastErrors::of(&of, &rests(measured_here), &system)
        };
        let of_traffic = |kind, traffic: &str, measured_here: f64| {
            of_runs(kind, [traffic, "client-host", "posting thread"], measured_here)
        };
        let of = |kind, measured_here| of_traffic(kind, "read", measured_here);
        assert_eq!(of(FigureKind::Throughput, 0.5), PastErrors::OfThisCard(&own));
        assert_eq!(of(FigureKind::Throughput, 0.49), PastErrors::Of(Lesson::OfGuessedCards));
        // What READs were wrong by says nothing of a verb that was not measured, nor of both ways at once.
        for other in ["write", "read both ways"] {
            let untold = of_traffic(FigureKind::Throughput, other, 0.9);
            assert_eq!(untold, PastErrors::Of(Lesson::OfFittedCards), "{other}");
        }
        // Nor of another path, nor of runs that something else binds.
        for elsewhere in [["read", "client-soc", "posting thread"], ["read", "client-host", "queue pairs"]] {
            let untold = of_runs(FigureKind::Throughput, elsewhere, 0.9);
            assert_eq!(untold, PastErrors::Of(Lesson::OfFittedCards), "{elsewhere:?}");
        }
        assert_eq!(of(FigureKind::Latency, 0.9), PastErrors::Of(Lesson::OfFittedCards));
        let sample = || vec![(10.0, FREE)];
        let wide = of(FigureKind::Throughput, 0.5).widen(FigureKind::Throughput, sample());
        assert!((wide.quantile(0.9) / 10.0 - 0.03f64.exp()).abs() < 1e-9, "{}", wide.quantile(0.9));
        let guessed = of(FigureKind::Throughput, 0.49).widen(FigureKind::Throughput, sample());
        assert!(guessed.quantile(0.9) > 2.0 * wide.quantile(0.9));
    }

    const FREE: f64 = f64::INFINITY;

    #[test]
    fn errors_move_up_and_down_alike() {
        let wide = Widened::new(vec![(10.0, FREE)], &[2.0f64.ln()]);
        let ends = [0.0, 0.25, 0.5, 1.0].map(|share| wide.quantile(share));
        let expected = [5.0, 50.0f64.sqrt(), 10.0, 20.0];
        assert!(
            ends.iter().zip(expected).all(|(end, expected)| (end / expected - 1.0).abs() < 1e-9),
            "{ends:?}"
        );
        assert_eq!((wide.below(4.9), wide.below(10.0), wide.below(20.0)), (0.0, 0.5, 1.0));
        let exact = Widened::new(vec![(10.0, 11.0), (0.0, FREE)], &[]);
        assert_eq!([0.0, 0.5, 1.0].map(|share| exact.quantile(share)), [0.0, 5.0, 10.0]);
        assert_eq!(Widened::new(vec![(0.0, FREE)], &[0.5]).quantile(0.9), 0.0, "nothing has no error");
        assert!(Widened::default().quantile(0.5).is_nan());
    }

    /// Of the sizes 0.1, 0.2, 0.3 and 0.9 the first three stand at 0, 1/4 and 1/2, the last at 3/4 and more: the
    /// majorant goes from 0 to 1/2 at 0.3, on to 1 at 0.9.
    #[test]
    fn small_errors_are_no_rarer_than_great_ones() {
        let wide = Widened::new(vec![(1.0, FREE)], &[0.1, 0.2, 0.3, 0.9]);
        for (size, share) in [(0.15, 0.25), (0.3, 0.5), (0.6, 0.75), (0.9, 1.0), (2.0, 1.0)] {
            assert!((wide.up_to(size) - share).abs() < 1e-12, "{size}: {}", wide.up_to(size));
        }
        let equal = Widened::new(vec![(1.0, FREE)], &[0.4, 0.4]);
        assert!((equal.up_to(0.2) - 0.5).abs() < 1e-12 && equal.up_to(0.4) == 1.0);
    }

    /// Whoever knows less is not told more: a sample that reaches farther gives no narrower interval.
    #[test]
    fn a_wider_sample_gives_no_narrower_interval() {
        for errors in [Lesson::OfFittedCards.sizes(FigureKind::Throughput), vec![0.3, 0.31, 0.32, 0.32]] {
            let reach = |half: f64| {
                let draw = |draw: i32| ((half * (f64::from(draw) / 127.5 - 1.0)).exp(), FREE);
                let wide = Widened::new((0..256).map(draw).collect(), &errors);
                [0.8, 0.95].map(|share| wide.quantile(0.5 + share / 2.0) / wide.quantile(0.5 - share / 2.0))
            };
            let reaches: Vec<[f64; 2]> = (0..40).map(|step| reach(f64::from(step) * 0.02)).collect();
            for pair in reaches.windows(2) {
                assert!((0..2).all(|end| pair[1][end] >= pair[0][end] * (1.0 - 1e-9)), "{pair:?}");
            }
        }
    }

    /// A ratio of two rates ends where both do: of rates that nothing widens it is what was drawn, and where the lower one is
    /// known it is no more than what wires carry over that.
    #[test]
    fn a_ratio_is_within_what_both_rates_can_be() {
        let wide = Reach::of(Some((Lesson::OfFittedCards, FigureKind::Throughput)));
        let exact = Reach::of(None);
        let ends = |of: RateEnds, over: RateEnds| of.over(over);
        assert_eq!(ends(exact.ends(20.0, 30.0), exact.ends(10.0, 50.0)), (2.0, 2.0));
        assert_eq!(ends(wide.ends(20.0, 21.0), exact.ends(10.0, 50.0)).1, 2.1);
        assert_eq!(ends(exact.ends(20.0, 30.0), wide.ends(10.0, 12.5)).0, 1.6);
        let bounded = |(least, most): (f64, f64)| {
            let sizes = Lesson::OfFittedCards.sizes(FigureKind::ThroughputRatio);
            Widened::bounded(vec![BoundedDraw { drawn: 2.0, least, most }], &sizes)
        };
        for ends in [(2.0, 2.0), (1.6, 2.1), (0.0, 2.1), (1.6, FREE)] {
            let ratio = bounded(ends);
            let (low, high) = (ratio.quantile(0.025), ratio.quantile(0.975));
            assert!(ends.0 * (1.0 - 1e-9) <= low && high <= ends.1 * (1.0 + 1e-9), "{ends:?}: {low} {high}");
            assert!(low <= 2.0 + 1e-9 && high >= 2.0 - 1e-9, "{ends:?}: {low} {high}");
        }
    }

    #[test]
    fn no_error_moves_a_rate_beyond_what_wires_carry() {
        let wide = Widened::new(vec![(10.0, 12.0)], &[2.0f64.ln()]);
        assert!(
            (wide.quantile(1.0) - 12.0).abs() < 1e-9 && wide.below(11.9) < 1.0 && wide.below(12.0) == 1.0
        );
        let above = Widened::new(vec![(20.0, 12.0)], &[2.0f64.ln()]);
        assert!(
            (above.quantile(1.0) - 20.0).abs() < 1e-9,
            "a value above its own bound stays where it was solved"
        );
        assert!(0.0 < above.below(15.0) && above.below(15.0) < 0.5, "and may be less by an error");
    }
}
