//! Kinds of work: what a processor takes for each, and what it is taken to for one that was measured of another alone.

use crate::error::{list, suggestion};
use crate::schema::Blank;
use crate::{Endpoint, Machine, Number, OtherWork, Problem, ProfileError, Provenance, WorkSpeed};
use offpath_quantity::Quantity;
use std::collections::BTreeSet;

/// The number of [`OtherWork`].
pub(crate) const OTHER_WORK: &str = "other_work";

/// Kinds that have to be measured of two processors before they say anything of another kind: of two a gap is one number.
const LEAST_SHARED: usize = 3;

/// What a kind of work costs a thread of a processor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WorkCost<'s> {
    /// Picoseconds for one operation, or one byte where it is counted in bytes.
    pub unit_ps: f64,
    /// Whether it is counted in bytes.
    pub counts_bytes: bool,
    /// The processor that it was measured of, where it was not measured of the one that does it.
    pub measured_of: Option<&'s str>,
}

impl WorkSpeed {
    /// Picoseconds that a thread takes for one operation, or for one byte where it is counted in bytes.
    pub fn unit_ps(&self) -> f64 {
        match (self.operations_per_s, self.operation_time, self.byte_rate) {
            (Some(rate), ..) => 1e12 / rate,
            (_, Some(time), _) => time.ps() as f64,
            (.., Some(rate)) => 8e12 / rate.bits_per_second() as f64,
            (None, None, None) => unreachable!("a table without any of its numbers is refused"),
        }
    }

    /// Whether it is counted in bytes.
    pub fn counts_bytes(&self) -> bool {
        self.byte_rate.is_some()
    }
}

/// How many times as fast one processor is as another at each kind of work that was measured of both.
fn ratios(of: &[WorkSpeed], beside: &[WorkSpeed]) -> Vec<f64> {
    let of = of.iter().filter_map(|own| {
        let other = beside.iter().find(|other| other.work == own.work)?;
        Some(other.unit_ps() / own.unit_ps())
    });
    of.collect()
}

fn mean_logarithm(ratios: &[f64]) -> f64 {
    ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / ratios.len() as f64
}

/// For every two processors of a machine that enough kinds of work were measured of: how another kind may lie beside their
/// mean, with the interval that their ratios leave. It reaches from the least ratio to the greatest, and beyond each by as
/// much as ratios lie apart in the mean, all by their logarithms.
pub(crate) fn other_work(
    endpoints: &[Endpoint],
    prefix: &str,
    short: impl Fn(&str) -> String,
    files: &str,
) -> Vec<(OtherWork, Number)> {
    let mut all = Vec::new();
    for of in endpoints.iter().map(|one| &one.processor) {
        for beside in endpoints.iter().map(|one| &one.processor).filter(|beside| beside.name != of.name) {
            let ratios = ratios(&of.works, &beside.works);
            if ratios.len() < LEAST_SHARED {
                continue;
            }
            let name = format!("{}_beside_{}", short(&of.name), short(&beside.name));
            let mean = mean_logarithm(&ratios);
            let least = ratios.iter().copied().fold(f64::INFINITY, f64::min);
            let greatest = ratios.iter().copied().fold(0.0, f64::max);
            let gap = (greatest.ln() - least.ln()) / (ratios.len() - 1) as f64;
            let end = |logarithm: f64| Some(Quantity::Ratio(logarithm.exp()));
            let number = Number {
                value: Quantity::Ratio(1.0),
                low: end((least.ln() - gap - mean).min(0.0)),
                high: end((greatest.ln() + gap - mean).max(0.0)),
                replaced: None,
                source: format!(
                    "{} kinds of work measured of both: `{}` is {:.3} times as fast as `{}` in the mean, {least:.3} to {greatest:.3} times by each",
                    ratios.len(),
                    of.name,
                    mean.exp(),
                    beside.name
                ),
                provenance: Provenance::Assumed,
                rows: Vec::new(),
                note: "that a kind which was not measured lies as these do".into(),
                file: files.to_string(),
                key: format!("{name}.{OTHER_WORK}"),
                multiple_of: None,
            };
            let other = OtherWork {
                name: format!("{prefix}{name}"),
                processor: of.name.clone(),
                beside: beside.name.clone(),
                ..OtherWork::blank()
            };
            all.push((other, number));
        }
    }
    all
}

impl Machine {
    fn works(&self, processor: &str) -> &[WorkSpeed] {
        let found = self.endpoints.iter().find(|one| one.processor.name == processor);
        found.map_or(&[], |one| &one.processor.works)
    }

    /// How many times as fast a processor of this machine does work that was measured of another one of it; 1 where both
    /// are one.
    ///
    /// # Errors
    /// Where too few kinds of work were measured of both.
    pub fn times_as_fast(&self, processor: &str, beside: &str) -> Result<f64, ProfileError> {
        if processor == beside {
            return Ok(1.0);
        }
        let shared = ratios(self.works(processor), self.works(beside));
        let spread = self.other_work.iter().find(|one| one.processor == processor && one.beside == beside);
        let Some(spread) = spread.filter(|_| shared.len() >= LEAST_SHARED) else {
            let reason = format!(
                "how fast `{processor}` is beside `{beside}` is not known: {} kinds of work were measured of both, and {LEAST_SHARED} at least say it",
                shared.len()
            );
            return Err(ProfileError::new(
                Problem::Structure { reason },
                format!(
                    "add tables with `kind = \"work\"` of both to their files, or say in the design what the step takes on `{processor}`"
                ),
                None,
            ));
        };
        Ok(mean_logarithm(&shared).exp() * spread.other_work)
    }

    /// What a kind of work costs a thread of a processor of this machine: as it was measured, else as it was measured of
    /// the processor of the machine that shares most other kinds with it, by how fast both are at those.
    ///
    /// # Errors
    /// Where neither is known, with what is.
    pub fn work_cost(&self, processor: &str, work: &str) -> Result<WorkCost<'_>, ProfileError> {
        let own = self.works(processor);
        if let Some(speed) = own.iter().find(|speed| speed.work == work) {
            return Ok(WorkCost {
                unit_ps: speed.unit_ps(),
                counts_bytes: speed.counts_bytes(),
                measured_of: None,
            });
        }
        let mut nearest: Option<(usize, &str, &WorkSpeed)> = None;
        for other in self.endpoints.iter().map(|one| &one.processor) {
            let Some(speed) = other.works.iter().find(|speed| speed.work == work) else { continue };
            let shared = ratios(own, &other.works).len();
            if nearest.is_none_or(|(most, ..)| shared > most) {
                nearest = Some((shared, &other.name, speed));
            }
        }
        let Some((_, beside, speed)) = nearest else {
            let known: BTreeSet<&str> = self
                .endpoints
                .iter()
                .flat_map(|one| &one.processor.works)
                .map(|speed| speed.work.as_str())
                .collect();
            let near = match known.is_empty() {
                true => format!("nothing was measured of a processor of the machine `{}`", self.role),
                false => suggestion(work, known.iter().copied()),
            };
            let problem = Problem::Unknown {
                what: "kind of work".into(),
                name: work.into(),
                place: format!("for `{processor}`"),
            };
            let keys = ["operations_per_s", "operation_time", "byte_rate"];
            return Err(ProfileError::new(
                problem,
                format!(
                    "{near}; add a table with `kind = \"work\"`, `processor`, `work = \"{work}\"` and one of {} to the file of the processor, or give the step a `time`",
                    list(keys)
                ),
                None,
            ));
        };
        let faster = self.times_as_fast(processor, beside).map_err(|error| {
            ProfileError::new(
                Problem::Structure {
                    reason: format!("the work `{work}` was measured of `{beside}` and not of `{processor}`, and {error}"),
                },
                format!(
                    "add a table with `kind = \"work\"`, `work = \"{work}\"` and what `{processor}` does of it to its file, or give the step a `time`"
                ),
                None,
            )
        })?;
        Ok(WorkCost {
            unit_ps: speed.unit_ps() / faster,
            counts_bytes: speed.counts_bytes(),
            measured_of: Some(beside),
        })
    }
}
