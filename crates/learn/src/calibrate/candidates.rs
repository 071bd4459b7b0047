//! The numbers that a search may move, how far, and what runs give under values of them.

use super::CalibrationRequest;
use super::answer::{CalibrationError, over};
use super::errors::SIDE_90;
use crate::descent::Model;
use crate::dma::DmaBench;
use crate::expect::{ExpectError, Expected, ToolBench};
use crate::posting::KnownLoops;
use crate::run::{MeasuredRun, RunKind};
use offpath_profile::{Number, Provenance, System};
use offpath_quantity::Quantity;
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::available_parallelism;

/// A number that may be moved.
pub(super) struct Candidate {
    pub names: Vec<String>,
    pub number: Number,
    /// Between what loading accepts it.
    pub range: (Quantity, Quantity),
    /// Whether the user asked for it.
    pub is_asked: bool,
    /// Whether it is a size, which a machine has of a few: it is never fitted.
    pub is_size: bool,
    /// Whether it is the rate of a link or of a port.
    pub is_link: bool,
    /// Whether it stays, a size or a number beside those that are asked for: what it may be off by is doubt of those that are fitted.
    pub stays: bool,
}

impl Candidate {
    /// Whether the machine says it of itself, and the base does not have it from there.
    pub fn machine_tells(&self) -> bool {
        self.is_link && !matches!(self.number.provenance, Provenance::Measured | Provenance::MeasuredHere)
    }

    /// How far off the base may be, as a standard deviation of its logarithm, by the interval that it states.
    pub fn deviation(&self) -> f64 {
        match (self.number.low, self.number.high) {
            (Some(low), Some(high)) => (logarithm(high) - logarithm(low)) / 2.0 / SIDE_90,
            _ => 0.0,
        }
    }
}

/// Predictions of distinct runs under values of the candidates.
pub(super) struct Runs<'a> {
    base: &'a System,
    path: &'a str,
    pub runs: Vec<MeasuredRun>,
    candidates: &'a [Candidate],
    /// What was followed already, of all runs.
    loops: Arc<KnownLoops>,
    /// What was predicted already.
    known: Mutex<KnownPlaces>,
}

/// What was predicted at a place, whose values are bits.
type KnownPlaces = BTreeMap<Vec<u64>, Option<Vec<f64>>>;

/// A base value of a quantity as a logarithm; what is none counts as one unit.
pub(super) fn logarithm(quantity: Quantity) -> f64 {
    match quantity {
        Quantity::Ratio(share) => share.max(1e-3).ln(),
        _ => quantity.base().max(1.0).ln(),
    }
}

pub(super) fn quantity(of: Quantity, at: f64) -> Option<Quantity> {
    let base = if matches!(of, Quantity::Ratio(_)) { at.exp() } else { at.exp().round() };
    Quantity::from_base(base, of.dimension())
}

impl<'a> Runs<'a> {
    pub fn new(
        (base, path): (&'a System, &'a str),
        runs: Vec<MeasuredRun>,
        candidates: &'a [Candidate],
        loops: &Arc<KnownLoops>,
    ) -> Runs<'a> {
        Runs { base, path, runs, candidates, loops: loops.clone(), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, KnownPlaces> {
        self.known.lock().expect("nobody panics with the lock held")
    }

    pub fn at(&self, at: &[f64]) -> Option<System> {
        let mut changes: Vec<(&str, Quantity)> = Vec::new();
        for (candidate, at) in self.candidates.iter().zip(at) {
            if (at - logarithm(candidate.number.value)).abs() < 1e-12 {
                continue;
            }
            let value = quantity(candidate.number.value, *at)?;
            changes.extend(candidate.names.iter().map(|name| (name.as_str(), value)));
        }
        self.base.with_all(changes).ok()
    }

    /// What the runs give on a system, by so many threads.
    pub fn of(&self, system: &System, threads: usize) -> Result<Vec<f64>, ExpectError> {
        self.expected(system, threads, |expected| match expected.kind {
            RunKind::Bandwidth => expected.rate_per_s.max(1e-9).ln(),
            RunKind::Latency => expected.latency.as_seconds().max(1e-12).ln(),
        })
    }

    /// What binds each run of which rates are measured between queue pairs; nothing of others, which have one bound alone.
    pub fn bound_by(&self, at: &[f64]) -> Option<Vec<Option<String>>> {
        let threads = available_parallelism().map_or(1, usize::from);
        let names = self.expected(&self.at(at)?, threads, |expected| expected.binding().name().to_string());
        let is_bound =
            |run: &MeasuredRun| run.queue_pairs().is_some_and(|run| run.kind == RunKind::Bandwidth);
        let names = names.ok()?.into_iter().zip(&self.runs);
        Some(names.map(|(name, run)| is_bound(run).then_some(name)).collect())
    }

    fn expected<T: Send>(
        &self,
        system: &System,
        threads: usize,
        figure: impl Fn(Expected) -> T + Sync,
    ) -> Result<Vec<T>, ExpectError> {
        let loops = &self.loops;
        let predict = |runs: Vec<&MeasuredRun>| -> Result<Vec<T>, ExpectError> {
            let is_of_queue_pairs = |run: &&MeasuredRun| run.queue_pairs().is_some();
            let of_queue_pairs = runs
                .iter()
                .any(is_of_queue_pairs)
                .then(|| ToolBench::new(system, self.path))
                .transpose()?
                .map(|bench| bench.sharing(loops));
            let of_dma = runs
                .iter()
                .any(|run| !is_of_queue_pairs(run))
                .then(|| DmaBench::new(system, self.path))
                .transpose()?;
            let of = |run: &MeasuredRun| {
                Ok(figure(match run {
                    MeasuredRun::QueuePairs(run) => {
                        of_queue_pairs.as_ref().expect("made where such a run is there").expect(run)?
                    }
                    MeasuredRun::Dma(run) => {
                        of_dma.as_ref().expect("made where such a run is there").expect(run)?
                    }
                }))
            };
            runs.into_iter().map(of).collect()
        };
        dealt_out(self.runs.iter().collect(), threads, predict)
    }

    fn new_at(&self, at: &[f64], threads: usize) -> Option<Vec<f64>> {
        self.at(at).and_then(|system| self.of(&system, threads).ok())
    }
}

/// Work that is dealt out to threads in turn, since neighbours take about as long; what comes of it, in order.
fn dealt_out<W: Send, T: Send, E: Send>(
    work: Vec<W>,
    threads: usize,
    job: impl Fn(Vec<W>) -> Result<Vec<T>, E> + Sync,
) -> Result<Vec<T>, E> {
    let count = work.len();
    let mut shares: Vec<Vec<W>> = (0..threads.max(1)).map(|_| Vec::new()).collect();
    let threads = shares.len();
    work.into_iter().enumerate().for_each(|(index, one)| shares[index % threads].push(one));
    let job = &job;
    let done: Vec<Result<Vec<T>, E>> = std::thread::scope(|scope| {
        let mut shares = shares.into_iter();
        let own = shares.next().expect("there is one thread at least");
        let others: Vec<_> = shares.map(|share| scope.spawn(move || job(share))).collect();
        let own = job(own);
        let joined = others.into_iter().map(|other| other.join().expect("a prediction does not panic"));
        std::iter::once(own).chain(joined).collect()
    });
    let done: Vec<Vec<T>> = done.into_iter().collect::<Result<_, _>>()?;
    let mut done: Vec<_> = done.into_iter().map(Vec::into_iter).collect();
    Ok((0..count).filter_map(|index| done[index % threads].next()).collect())
}

/// Fewer runs than these are predicted sooner than a thread begins.
const FEW_RUNS: usize = 8;

impl Model for Runs<'_> {
    fn predict(&self, at: &[f64]) -> Option<Vec<f64>> {
        self.predict_each(&[at.to_vec()]).swap_remove(0)
    }

    fn predict_each(&self, places: &[Vec<f64>]) -> Vec<Option<Vec<f64>>> {
        let key = |at: &[f64]| -> Vec<u64> { at.iter().map(|value| value.to_bits()).collect() };
        let mut new: BTreeMap<Vec<u64>, &[f64]> = places.iter().map(|at| (key(at), &at[..])).collect();
        new.retain(|key, _| !self.known().contains_key(key));
        let is_little = new.len() * self.runs.len() < FEW_RUNS;
        let threads = if is_little { 1 } else { available_parallelism().map_or(1, usize::from) };
        // A thread has a whole place, whose system is built once, but where there is only one.
        let of_place = if new.len() > 1 { 1 } else { threads };
        let Ok(predicted) = dealt_out(new.values().collect(), threads.min(new.len()), |places| {
            Ok::<_, Infallible>(places.into_iter().map(|at| self.new_at(at, of_place)).collect())
        });
        let mut known = self.known();
        known.extend(new.into_keys().zip(predicted));
        places.iter().map(|at| known[&key(at)].clone()).collect()
    }
}

/// How far beyond the interval of a guess the search goes, as a factor.
pub(super) const BEYOND: f64 = 4.0;

/// A link trains to as little as this share of what its slot has.
pub(super) const LEAST_LINK: f64 = 1.0 / 64.0;

/// The numbers that a search may move.
pub(super) fn candidates(request: &CalibrationRequest<'_>) -> Result<Vec<Candidate>, CalibrationError> {
    let CalibrationRequest { system, fit, pin, .. } = *request;
    for name in fit.iter().chain(pin) {
        if !system.numbers.contains_key(name) {
            let why = "the system has no such number; `offpath device show` lists them".to_string();
            return Err(CalibrationError::NoSuchNumber { name: name.clone(), why });
        }
    }
    // What a link or a port has at most it need not be trained to.
    let links: BTreeSet<String> = system
        .machines
        .iter()
        .flat_map(|machine| {
            let port = std::iter::once(format!("{}.port_rate", machine.nic.name));
            machine.links.iter().map(|link| format!("{}.rate", link.name)).chain(port)
        })
        .collect();
    let mut groups: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (name, number) in &system.numbers {
        groups.entry((number.file.clone(), number.key.clone())).or_default().push(name.clone());
    }
    let mut found = Vec::new();
    for mut names in groups.into_values() {
        let number = system.numbers[&names[0]].as_ref().clone();
        let asked = |list: &[String]| list.iter().find(|name| names.contains(name)).cloned();
        // Sizes are powers of two that the machine itself states, and how many there are is counted.
        let is_continuous = match number.value {
            Quantity::Time(_) | Quantity::BitRate(_) | Quantity::OpRate(_) => true,
            Quantity::Count(_) => ["inflight_slots", "outstanding_reads", "queue_depth"]
                .iter()
                .any(|end| names[0].ends_with(end)),
            Quantity::Ratio(_) => names[0].ends_with("combined_share"),
            Quantity::Bytes(_) | Quantity::Frequency(_) => false,
        };
        let is_asked = asked(fit);
        if let (Some(name), false) = (&is_asked, is_continuous) {
            let why = "a size, a share or a count is read from the machine; set it in the base".to_string();
            return Err(CalibrationError::NoSuchNumber { name: name.clone(), why });
        }
        let is_link = names.iter().any(|name| links.contains(name));
        // What the user chose is so.
        let is_open = number.low != number.high || is_link && number.provenance != Provenance::Set;
        let is_size = matches!(number.value, Quantity::Bytes(_)) && number.low != number.high;
        let is_free = if fit.is_empty() { is_open && asked(pin).is_none() } else { is_asked.is_some() };
        let is_moved = is_continuous && is_free;
        let stays = !is_moved && (is_size || is_continuous && is_open && !fit.is_empty());
        if is_moved || stays && asked(pin).is_none() {
            // A number goes by the name that it is asked for by.
            names.sort_by_key(|name| Some(name) != is_asked.as_ref());
            let range = system.range_of(&names[0]).unwrap_or((number.value, number.value));
            found.push(Candidate {
                names,
                number,
                range,
                is_asked: is_asked.is_some(),
                is_size,
                is_link,
                stays,
            });
        }
    }
    Ok(found)
}

/// Between which logarithms a number is sought.
pub(super) fn bounds(candidate: &Candidate) -> (f64, f64) {
    let Number { value, low, high, .. } = &candidate.number;
    let (least, most) = candidate.range;
    let (from, to) = match (low, high) {
        (Some(low), Some(high)) if candidate.is_size => (logarithm(*low), logarithm(*high)),
        (Some(low), Some(high)) => {
            let (low, high) = (logarithm(*low), logarithm(*high));
            (low.min(logarithm(*value)) - BEYOND.ln(), high.max(logarithm(*value)) + BEYOND.ln())
        }
        // A fact of a data sheet: what a link has at most.
        _ => (logarithm(*value) + LEAST_LINK.ln(), logarithm(*value)),
    };
    (from.max(logarithm(least)), to.min(logarithm(most)))
}

/// The same as quantities, in which what the base states is whatever their digits are.
pub(super) fn sought(candidate: &Candidate) -> (Quantity, Quantity) {
    let of = candidate.number.value;
    let (low, high) = bounds(candidate);
    let (least, most) = candidate.range;
    let stated = stated(candidate);
    let ends = over((rounded(of, low), rounded(of, high)), stated);
    let lower = if ends.0.base() < least.base() { least } else { ends.0 };
    let upper = if ends.1.base() > most.base() { most } else { ends.1 };
    (lower, upper)
}

/// Between what the base has a number: its interval, or the number itself.
pub(super) fn stated(candidate: &Candidate) -> (Quantity, Quantity) {
    let Number { value, low, high, .. } = candidate.number;
    (low.unwrap_or(value), high.unwrap_or(value))
}

/// Where a number holds nothing back, of what the base allows, as a logarithm: a time at its least, a rate at its greatest.
pub(super) fn released(candidate: &Candidate) -> f64 {
    let (low, high) = stated(candidate);
    let is_time = matches!(candidate.number.value, Quantity::Time(_));
    logarithm(if is_time { low } else { high })
}

/// To four digits.
pub(super) fn rounded(of: Quantity, at: f64) -> Quantity {
    let base = at.exp();
    if matches!(of, Quantity::Ratio(_)) {
        let digits = 10f64.powf(3.0 - base.max(1e-6).log10().floor());
        return Quantity::Ratio((base * digits).round() / digits);
    }
    let step = 10f64.powf(base.abs().max(1.0).log10().floor() - 3.0).max(1.0);
    Quantity::from_base((base / step).round() * step, of.dimension()).unwrap_or(of)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ToolProgram;
    use offpath_profile::{Library, SystemRequest};
    use offpath_quantity::Bytes;

    #[test]
    fn work_that_is_dealt_out_comes_back_in_order() {
        for (count, threads) in [(0, 2), (1, 2), (2, 0), (5, 1), (7, 2), (7, 3), (3, 8)] {
            let done = dealt_out((0..count).collect(), threads, |share: Vec<u32>| {
                Ok::<_, String>(share.into_iter().map(|one| 10 * one).collect())
            });
            assert_eq!(done, Ok((0..count).map(|one| 10 * one).collect()), "{count} on {threads}");
        }
        let refused = dealt_out(vec![1, 2, 3], 2, |share: Vec<u32>| match share.contains(&2) {
            true => Err("2"),
            false => Ok(share),
        });
        assert_eq!(refused, Err("2"));
    }

    #[test]
    fn places_are_predicted_together_as_each_alone() {
        let request = SystemRequest { device: "connectx7", ..SystemRequest::default() };
        let system = Library::builtin().load(&request).expect("it ships");
        let of = |name: &str| {
            let (names, number) = (vec![name.to_string()], system.numbers[name].as_ref().clone());
            let range = system.range_of(name).expect("it is a number");
            Candidate { names, number, range, is_asked: false, is_size: false, is_link: false, stays: false }
        };
        let candidates = [of("client.nic.port_rate"), of("client.host_verbs.post_time")];
        let program = ToolProgram::named("ib_write_bw").expect("it is one of perftest's");
        let runs: Vec<MeasuredRun> =
            (1..10).map(|power| MeasuredRun::QueuePairs(program.run(Bytes::new(1 << power)))).collect();
        let own: Vec<f64> = candidates.iter().map(|one| logarithm(one.number.value)).collect();
        // One of them is there twice, and one is no system.
        let places: Vec<Vec<f64>> = [(0.0, 0.0), (-0.5, 0.5), (-4.0, 0.1), (-0.5, 0.5), (400.0, 0.0)]
            .map(|(rate, time)| vec![own[0] + rate, own[1] + time])
            .to_vec();
        let model = || Runs::new((&system, "client-host"), runs.clone(), &candidates, &Arc::default());
        let together = model().predict_each(&places);
        let alone: Vec<Option<Vec<f64>>> = places.iter().map(|at| model().predict(at)).collect();
        assert_eq!(together, alone);
        assert_ne!(together[0], together[1]);
        assert!(together[2].is_some() && together[4].is_none(), "{together:?}");
        let model = model();
        assert_eq!(model.predict_each(&places[..2]), alone[..2]);
        assert_eq!(model.predict_each(&places), alone, "what is known is not another thing");
    }
}
