//! What predictions err by: without their own run, without what errs together with it, and from one run to its repetition.

use super::answer::{CoveredPoints, Directions, ErrorSummary, PredictedPoint, SHARES, WidenedErrors};
use super::left_out::LeftOutPoint;
use crate::descent::SCALE;
use crate::dma::{DmaOperation, DmaRun};
use crate::points::{ALIKE, LogDoubt, MeasuredPoint};
use crate::run::{MeasuredRun, RunKind};
use offpath_profile::{LEARNT_FIGURES, LearntErrors};
use std::collections::{BTreeMap, BTreeSet};

/// By how much an interval of 80% (0) or 90% (1) is wider where its deviation is known from so many clusters alone: the
/// quantile of Student's distribution over that of the normal one.
pub(super) fn student(level: usize, clusters: usize) -> f64 {
    const QUANTILES: [[f64; 10]; 2] = [
        [3.078, 1.886, 1.638, 1.533, 1.476, 1.440, 1.415, 1.397, 1.383, 1.372],
        [6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812],
    ];
    let normal = [SIDE_80, SIDE_90][level];
    match clusters.saturating_sub(2) {
        // One cluster says nothing of what another would differ by; what its points differ by stands for it.
        0 if clusters < 2 => 1.0,
        freedom => QUANTILES[level].get(freedom).map_or(1.0, |quantile| quantile / normal),
    }
}

/// Standard deviations on each side of a 90% and of an 80% interval.
pub(super) const SIDE_90: f64 = 1.645;
pub(super) const SIDE_80: f64 = 1.282;

/// Which points err together beyond what they are fitted to, by number: the doubt of a number is that of so many clusters and
/// not of so many points.
pub(super) fn clusters(points: &[MeasuredPoint]) -> Vec<usize> {
    let mut numbers: BTreeMap<(&str, Option<MeasuredRun>, u64), usize> = BTreeMap::new();
    let mut times: BTreeMap<(&str, &MeasuredRun), u64> = BTreeMap::new();
    let mut all = Vec::with_capacity(points.len());
    for point in points {
        // A run that stands in a log again was taken at another time, as one in a log of its own was: what differs between the two
        // is the same whether somebody put them into one file or into two.
        let again = times.entry((&point.file, &point.run)).and_modify(|count| *count += 1).or_default();
        let series = match &point.run {
            // A log of queue pairs is one setting of two machines: whatever is off there (a core, a frequency, a link) is off
            // in its bandwidths and latencies alike, so that its series do not count apart.
            MeasuredRun::QueuePairs(_) => None,
            // A log of a device's DMA has all series of a server in one table, so that as one cluster its errors would add up
            // to nothing at the best fit, and nothing would be in doubt. What a model lacks is another thing for each
            // operation and for each state of the caches, and goes through all sizes of it.
            MeasuredRun::Dma(_) => Some(point.run.series()),
        };
        let next = numbers.len();
        all.push(*numbers.entry((&point.file, series, *again)).or_insert(next));
    }
    all
}

/// How far predictions err by what fitted points do that are predicted without their own run or cluster.
pub(super) struct Scatter {
    /// By series, of points without their own run.
    pub own: BTreeMap<MeasuredRun, f64>,
    /// Of series that are fitted nowhere.
    pub others: f64,
}

impl Scatter {
    pub fn new(
        points: &[MeasuredPoint],
        held: &[bool],
        (left_out, left_out_clusters): (&[Option<LeftOutPoint>], &[Option<LeftOutPoint>]),
        clusters: usize,
    ) -> Scatter {
        let error = |one: LeftOutPoint, index: usize| (one.predicted / points[index].measured).ln().abs();
        let mut errors: BTreeMap<MeasuredRun, Vec<f64>> = BTreeMap::new();
        for index in (0..points.len()).filter(|index| !held[*index]) {
            let own = errors.entry(points[index].run.series()).or_default();
            own.extend(left_out[index].map(|one| error(one, index)));
        }
        let all: Vec<f64> = errors.values().flatten().copied().collect();
        let of_clusters: Vec<f64> = (0..points.len())
            .filter_map(|index| left_out_clusters[index].map(|one| error(one, index)))
            .collect();
        // What clusters scatter by is known from few of them, and the next is one more.
        let few = student(0, clusters) * (1.0 + 1.0 / clusters.max(1) as f64).sqrt();
        Scatter {
            others: quantile(&all, 0.8).max(quantile(&of_clusters, 0.8) * few),
            own: errors
                .into_iter()
                .map(|(series, errors)| (series, next_within(0.8, &errors).unwrap_or(quantile(&all, 0.8))))
                .collect(),
        }
    }

    /// How far an 80% interval reaches on each side of a prediction, as a logarithm. Of a series that is fitted at other sizes
    /// errors without a run have in them what the numbers leave open; of others that comes on top.
    pub fn side_80(&self, run: &MeasuredRun, open: impl FnOnce() -> f64) -> f64 {
        self.own.get(&run.series()).copied().unwrap_or_else(|| open().hypot(self.others))
    }
}

/// What the next error is within with a chance, where it may take any place among these with the same chance; nothing where
/// these are too few to say.
pub(super) fn next_within(chance: f64, errors: &[f64]) -> Option<f64> {
    let mut sorted = errors.to_vec();
    sorted.sort_by(f64::total_cmp);
    let place = (chance * (sorted.len() + 1) as f64).ceil() as usize;
    sorted.get(place.checked_sub(1)?).copied()
}

/// Errors of a kind of figure that have to be there before they speak for it.
pub(super) const FEWEST: usize = 8;

/// What predictions of a kind of figure are off by where neither their own run nor their own cluster was fitted, whichever
/// reaches farther: of rates by what binds, where that has enough points, since one thread or queue pair says nothing of what another
/// ceiling is off by. Nothing where one cluster alone has such figures, or alone tells a number that they hang on, since of another
/// one it says nothing.
pub(super) fn learnt_errors(
    points: &[MeasuredPoint],
    (path, bound_by): (&str, &[Option<&str>]),
    clusters: &[usize],
    (left_out, left_out_clusters): (&[Option<LeftOutPoint>], &[Option<LeftOutPoint>]),
) -> Vec<WidenedErrors> {
    let error = |of: &[Option<LeftOutPoint>], index: usize| -> Option<f64> {
        let one = of[index].filter(|one| !one.is_of_base)?;
        Some((one.predicted / points[index].measured).ln().abs())
    };
    let mut found = Vec::new();
    for (kind, figure) in [RunKind::Bandwidth, RunKind::Latency].into_iter().zip(LEARNT_FIGURES) {
        let own = (0..points.len()).filter(|index| points[*index].run.kind() == kind);
        let own: Vec<usize> = own.filter(|index| error(left_out_clusters, *index).is_some()).collect();
        let mut classes: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
        own.iter().for_each(|index| classes.entry(bound_by[*index]).or_default().push(*index));
        let errors_of = |names: Vec<&str>, of: &[usize]| -> Option<WidenedErrors> {
            let told: BTreeSet<usize> = of.iter().map(|index| clusters[*index]).collect();
            let errors =
                |left_out| of.iter().filter_map(|index| error(left_out, *index)).collect::<Vec<f64>>();
            let (of_runs, of_clusters) = (errors(left_out), errors(left_out_clusters));
            if told.len() < 2 || of_runs.len().min(of_clusters.len()) < FEWEST {
                return None;
            }
            let greatest = |errors: &[f64]| errors.iter().copied().fold(0.0, f64::max);
            let within = |chance: f64| {
                let of = |errors: &[f64]| next_within(chance, errors).unwrap_or_else(|| greatest(errors));
                [of(&of_runs), of(&of_clusters)]
            };
            let traffic: BTreeSet<String> = of.iter().map(|index| points[*index].run.traffic()).collect();
            let errors = LearntErrors {
                figure: figure.to_string(),
                traffic: traffic.into_iter().collect(),
                path: path.to_string(),
                bound_by: names.into_iter().map(str::to_string).collect(),
                points: of_clusters.len() as u64,
                half_within: 0.0,
                eight_of_ten_within: 0.0,
                nine_of_ten_within: 0.0,
                all_within: 0.0,
            };
            Some(WidenedErrors::new(errors, SHARES.map(within), told.len()))
        };
        let mut others = Vec::new();
        for (name, of) in classes {
            match errors_of(name.into_iter().collect(), &of) {
                Some(errors) => found.push(errors),
                None => others.extend(name),
            }
        }
        // What too few points speak for has the errors of all.
        found.extend(errors_of(others.clone(), &own).filter(|_| !others.is_empty()));
    }
    found
}

/// What runs that were repeated differ by.
pub(super) fn repeated(points: &[MeasuredPoint], places: &[usize]) -> ErrorSummary {
    let mut differences = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let others = points[..index].iter().enumerate().filter(|(other, _)| places[*other] == places[index]);
        differences.extend(others.map(|(_, other)| (point.measured / other.measured).ln().abs().exp() - 1.0));
    }
    ErrorSummary::of(&differences)
}

/// Where repetitions of runs on one device contradict each other: by how many times they differ in the middle one of the runs of a
/// series, in the series of which that is most, where that is more than two devices of one kind may; and that in words.
pub(super) fn contradiction(points: &[&MeasuredPoint]) -> Option<(f64, LogDoubt)> {
    let mut of_runs: BTreeMap<(Option<&str>, &MeasuredRun), Vec<&MeasuredPoint>> = BTreeMap::new();
    for point in points {
        of_runs.entry((point.device.as_deref(), &point.run)).or_default().push(point);
    }
    let mut of_series: BTreeMap<_, Vec<(f64, &MeasuredPoint, &MeasuredPoint)>> = BTreeMap::new();
    for ((device, run), mut own) in of_runs.into_iter().filter(|(_, own)| own.len() > 1) {
        own.sort_by(|one, other| one.measured.total_cmp(&other.measured));
        let (least, most) = (own[0], own[own.len() - 1]);
        let apart = (most.measured / least.measured, least, most);
        of_series.entry((device, run.series())).or_default().push(apart);
    }
    let middles = of_series.into_values().map(|mut own| {
        own.sort_by(|(one, ..), (other, ..)| one.total_cmp(other));
        own[(own.len() - 1) / 2]
    });
    let (ratio, least, most) = middles.max_by(|(one, ..), (other, ..)| one.total_cmp(other))?;
    let said = format!(
        "runs that were repeated differ {ratio:.1} times ({}:{} and {}:{}, {}): nothing here says which of them the card does; take \
         both again, and leave out what is not of this card",
        least.file, least.line, most.file, most.line, least.run
    );
    (ratio > ALIKE).then_some((ratio, LogDoubt { said, is_of_figures: true }))
}

/// Which of two runs is faster, where they differ in what caches hold alone. What the fit takes for scatter is no difference: where
/// none is measured no direction can be missed, so that such pairs count apart.
pub(super) fn warm_against_cold(points: &[MeasuredPoint], answer: &[PredictedPoint]) -> Directions {
    let direction = |warm: f64, cold: f64| match (warm / cold).ln() {
        apart if apart.abs() <= SCALE => 0,
        apart if apart > 0.0 => 1,
        _ => -1,
    };
    let mut found = Directions::default();
    for (cold, point) in points.iter().enumerate() {
        let Some(run) = point.run.dma().filter(|run| !run.is_warm) else { continue };
        let same = MeasuredRun::Dma(DmaRun { is_warm: true, ..run.clone() });
        // Who knows no number says that what reads is faster warm, and that what writes does not wait for the memory.
        let by_rule = match (run.operation, run.kind) {
            (DmaOperation::Write | DmaOperation::WriteThenRead, _) => 0,
            (_, RunKind::Bandwidth) => 1,
            (_, RunKind::Latency) => -1,
        };
        let own = |warm: &usize| points[*warm].run == same && points[*warm].file == point.file;
        for warm in (0..points.len()).filter(own) {
            let measured = direction(points[warm].measured, point.measured);
            let predicted = direction(answer[warm].predicted, answer[cold].predicted);
            let of = if measured == 0 { &mut found.alike } else { &mut found.apart };
            of.pairs += 1;
            of.right += usize::from(measured == predicted);
            of.right_by_rule += usize::from(measured == by_rule);
        }
    }
    found
}

/// Held-out points of series of which none is fitted, and how many of them lie within their intervals.
pub(super) fn covered_elsewhere(
    points: &[MeasuredPoint],
    scatter: &Scatter,
    answer: &[PredictedPoint],
) -> CoveredPoints {
    let mut found = CoveredPoints::default();
    let is_elsewhere = |one: &&PredictedPoint| !scatter.own.contains_key(&points[one.point].run.series());
    for one in answer.iter().filter(is_elsewhere) {
        found.points += 1;
        found.within += usize::from(one.holds(points[one.point].measured));
    }
    found
}

pub(crate) fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len => {
            let at = share * (len - 1) as f64;
            let (below, rest) = (at.floor() as usize, at.fract());
            let above = (below + 1).min(len - 1);
            sorted[below] * (1.0 - rest) + sorted[above] * rest
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of four errors the next is within the greatest with a chance of four in five, and of three nothing is said.
    #[test]
    fn few_errors_say_what_the_next_is_within() {
        assert_eq!(next_within(0.8, &[0.3, 0.1, 0.2]), None);
        assert_eq!(next_within(0.8, &[0.3, 0.1, 0.4, 0.2]), Some(0.4));
        let many: Vec<f64> = (1..=19).map(f64::from).collect();
        assert_eq!(next_within(0.8, &many), Some(16.0));
    }
}
