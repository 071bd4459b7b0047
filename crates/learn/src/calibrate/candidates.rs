//! The numbers that a search may move, how far, and what runs give under values of them.

use super::CalibrationRequest;
use super::answer::CalibrationError;
use super::errors::SIDE_90;
use crate::descent::Model;
use crate::dma::DmaBench;
use crate::expect::{ExpectError, ToolBench};
use crate::posting::KnownLoops;
use crate::run::{MeasuredRun, RunKind};
use offpath_profile::{Number, System};
use offpath_quantity::Quantity;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::thread::available_parallelism;

/// A number that may be moved.
pub(super) struct Candidate {
    pub names: Vec<String>,
    pub number: Number,
    /// Whether the user asked for it.
    pub is_asked: bool,
    /// Whether it is a size, which a machine has of a few: it is never fitted, and what it may be off by is doubt of those
    /// that are.
    pub is_size: bool,
}

impl Candidate {
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
    pub base: &'a System,
    pub path: &'a str,
    pub runs: Vec<MeasuredRun>,
    pub candidates: &'a [Candidate],
    /// What was followed already, of all runs.
    pub loops: Arc<KnownLoops>,
    /// What was predicted already.
    pub known: RefCell<BTreeMap<Vec<u64>, Option<Vec<f64>>>>,
}

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

impl Runs<'_> {
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

    pub fn of(&self, system: &System, runs: &[MeasuredRun]) -> Result<Vec<f64>, ExpectError> {
        let loops = &self.loops;
        let predict = |runs: Vec<&MeasuredRun>| -> Result<Vec<f64>, ExpectError> {
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
                let expected = match run {
                    MeasuredRun::QueuePairs(run) => {
                        of_queue_pairs.as_ref().expect("made where such a run is there").expect(run)?
                    }
                    MeasuredRun::Dma(run) => {
                        of_dma.as_ref().expect("made where such a run is there").expect(run)?
                    }
                };
                Ok(match run.kind() {
                    RunKind::Bandwidth => expected.rate_per_s.max(1e-9).ln(),
                    RunKind::Latency => expected.latency.as_seconds().max(1e-12).ln(),
                })
            };
            runs.into_iter().map(of).collect()
        };
        // Side by side, dealt out in turn, since neighbours take about as long.
        let threads = if runs.len() < 8 { 1 } else { available_parallelism().map_or(1, usize::from) };
        let dealt: Vec<Result<Vec<f64>, ExpectError>> = std::thread::scope(|scope| {
            let share = |first: usize| runs.iter().skip(first).step_by(threads).collect::<Vec<_>>();
            let others: Vec<_> =
                (1..threads).map(|first| scope.spawn(move || predict(share(first)))).collect();
            let own = predict(share(0));
            let joined = others.into_iter().map(|other| other.join().expect("a prediction does not panic"));
            std::iter::once(own).chain(joined).collect()
        });
        let dealt: Vec<Vec<f64>> = dealt.into_iter().collect::<Result<_, _>>()?;
        Ok((0..runs.len()).map(|index| dealt[index % threads][index / threads]).collect())
    }
}

impl Model for Runs<'_> {
    fn predict(&self, at: &[f64]) -> Option<Vec<f64>> {
        let key: Vec<u64> = at.iter().map(|value| value.to_bits()).collect();
        if let Some(known) = self.known.borrow().get(&key) {
            return known.clone();
        }
        let predicted = self.at(at).and_then(|system| self.of(&system, &self.runs).ok());
        self.known.borrow_mut().insert(key, predicted.clone());
        predicted
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
        let is_open = number.low != number.high || names.iter().any(|name| links.contains(name));
        let is_size = matches!(number.value, Quantity::Bytes(_)) && number.low != number.high;
        let is_free = if fit.is_empty() { is_open && asked(pin).is_none() } else { is_asked.is_some() };
        if is_continuous && is_free || is_size && asked(pin).is_none() {
            // A number goes by the name that it is asked for by.
            names.sort_by_key(|name| Some(name) != is_asked.as_ref());
            found.push(Candidate { names, number, is_asked: is_asked.is_some(), is_size });
        }
    }
    Ok(found)
}

/// Between which logarithms a number is sought.
pub(super) fn bounds(candidate: &Candidate) -> (f64, f64) {
    let Number { value, low, high, .. } = &candidate.number;
    match (low, high) {
        (Some(low), Some(high)) if candidate.is_size => (logarithm(*low), logarithm(*high)),
        (Some(low), Some(high)) => {
            let (low, high) = (logarithm(*low), logarithm(*high));
            (low.min(logarithm(*value)) - BEYOND.ln(), high.max(logarithm(*value)) + BEYOND.ln())
        }
        // A fact of a data sheet: what a link has at most.
        _ => (logarithm(*value) + LEAST_LINK.ln(), logarithm(*value)),
    }
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
