//! Measuring a remedy: the design as given and as changed, on the twin, with the same seeds.

use super::Scope;
use crate::check::{Counted, Moves, run_mix};
use crate::design::{Changes, Design, Objective};
use crate::observe::ObserveError;
use crate::planner::{Ready, Setting, prepare, shares_run};
use crate::program::Fold;
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, host_seconds};
use offpath_quantity::Time;
use offpath_twin::{Interval, Seed, batch_means, unit_of};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;

/// Where a design comes from and how it is run.
#[derive(Debug)]
pub struct TrialBench<'b> {
    /// The file's name in messages.
    pub name: &'b str,
    /// From where its workload files are found.
    pub directory: &'b Path,
    /// What the user changes in it.
    pub changes: &'b Changes,
    /// The systems it runs on.
    pub setting: &'b Setting,
    /// The seed of every draw: the plan's, so that its mix is the one that is looked at.
    pub seed: Seed,
    /// What was run before: the same design, mix and load give the same samples.
    samples: RefCell<BTreeMap<Key, Sample>>,
}

type Key = (String, String, Scope, u64);

/// Pairs of runs that a gain rests on. Each has a seed of its own, the same as given and as changed.
pub const SEEDS: u64 = 4;
/// Requests that one run counts, of such as are one burst.
pub(super) const REQUESTS: f64 = 8_000.0;

/// A design with the mix that is looked at.
#[derive(Clone, Debug)]
pub struct AdviceCase {
    /// The file's text.
    pub text: String,
    /// The design.
    pub design: Design,
    /// The mix: shares by alternative.
    pub shares: Vec<(String, f64)>,
}

/// What a request of a mix asks by adding up its steps.
#[derive(Clone, Copy, Debug)]
pub struct Added {
    /// Requests per second that the stations carry.
    pub capacity: f64,
    /// The same where a limit of the design stops them short of that, which no run runs into by itself.
    pub limited: Option<f64>,
    /// Mean unloaded latency in seconds.
    pub latency_s: f64,
    /// The greatest unloaded latency of an alternative of the mix.
    pub longest_s: f64,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
    /// Most requests that a saturated run of it has in flight.
    pub most_in_flight: u32,
}

/// What one run shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sample {
    /// Requests per second.
    pub throughput: f64,
    /// The upper end of its 95% interval: arrivals at random are more or fewer in a window.
    pub throughput_high: f64,
    /// The 99th percentile of latency in seconds.
    pub p99_s: f64,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
}

impl Sample {
    /// What the objective seeks more or less of.
    pub fn value(&self, objective: Objective) -> f64 {
        match objective {
            Objective::MostThroughput => self.throughput,
            Objective::LowestP99 { .. } => self.p99_s,
            Objective::LeastHostCpu { .. } => self.host_cpu_s,
        }
    }
}

/// What a change gains.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gain {
    /// The objective's mean as given: requests per second, or seconds.
    pub before: f64,
    /// Its 95% interval over the runs, which are others than the plan's one.
    pub before_95: (f64, f64),
    /// And as changed.
    pub after: f64,
    /// The gain as a share, with the 95% interval over the paired seeds: how much more throughput, or
    /// how much less latency or processor time.
    pub share: Interval,
}

impl Gain {
    /// The gain of paired runs; `None` where there is nothing to compare with.
    fn of(objective: Objective, before: &[Sample], after: &[Sample]) -> Option<Gain> {
        let pairs = before.iter().zip(after);
        let shares: Option<Vec<f64>> = pairs.map(|(before, after)| share(objective, before, after)).collect();
        let mean = |samples: &[Sample]| {
            samples.iter().map(|sample| sample.value(objective)).sum::<f64>() / samples.len() as f64
        };
        let each: Vec<f64> = before.iter().map(|sample| sample.value(objective)).collect();
        let Interval { mean: given, low, high } = batch_means(&each)?;
        let after = mean(after);
        Some(Gain { before: given, before_95: (low, high), after, share: batch_means(&shares?)? })
    }
}

/// The gain of one pair of runs as a share; `None` where there is nothing to compare with.
fn share(objective: Objective, before: &Sample, after: &Sample) -> Option<f64> {
    let (old, new) = (before.value(objective), after.value(objective));
    // A mix that does not carry the load has a low latency for few.
    let carries = objective.load().is_none_or(|load| after.throughput_high >= 0.97 * load);
    let share = if objective == Objective::MostThroughput { new / old - 1.0 } else { 1.0 - new / old };
    (old > 0.0 && carries && share.is_finite()).then_some(share)
}

/// Compiled alternatives with one operation of the workload alone, or with all.
fn within(ready: &[Ready], scope: &Scope) -> Vec<Ready> {
    let Scope::Operation(name) = scope else { return ready.to_vec() };
    ready
        .iter()
        .map(|one| {
            let mut one = one.clone();
            let names = one.alternative.operations.iter().map(|(name, ..)| name);
            let kept = names.zip(one.compiled.programs.drain(..)).filter(|(own, _)| *own == name);
            one.compiled.programs = kept.map(|(_, (_, program))| (1.0, program)).collect();
            one
        })
        .collect()
}

/// Adds up what the mix of a case asks in a scope.
pub fn added(case: &AdviceCase, ready: &[Ready], scope: &Scope) -> Result<Added, miette::Report> {
    let ready = within(ready, scope);
    let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
    let solution = solve::at_fixed(&case.design, &Part::all(&ready), &folds, &case.shares)?;
    let (capacity, limited) = (solution.total, solve::limited(&solution));
    let share = |name: &str| case.shares.iter().find(|(own, _)| own == name).map_or(0.0, |(_, share)| *share);
    let most_in_flight = Moves::of(&ready, &case.shares).most_in_flight();
    let mut sum =
        Added { capacity, limited, latency_s: 0.0, longest_s: 0.0, host_cpu_s: 0.0, most_in_flight };
    for (one, fold) in ready.iter().zip(&folds) {
        let share = share(&one.alternative.name);
        if share <= 0.0 {
            continue;
        }
        sum.latency_s += share * fold.latency;
        sum.longest_s = sum.longest_s.max(fold.latency);
        sum.host_cpu_s += share * host_seconds(fold, &one.router);
    }
    Ok(sum)
}

impl<'b> TrialBench<'b> {
    /// A bench on which nothing was run yet.
    pub fn new(
        name: &'b str,
        directory: &'b Path,
        changes: &'b Changes,
        setting: &'b Setting,
        seed: Seed,
    ) -> TrialBench<'b> {
        TrialBench { name, directory, changes, setting, seed, samples: RefCell::default() }
    }

    /// Reads a text and compiles it; `held` is the mix to look at, else the one that the design runs.
    pub fn case(
        &self,
        text: &str,
        held: Option<&[(String, f64)]>,
    ) -> Result<(AdviceCase, Vec<Ready>), miette::Report> {
        // Remedies change step lists, so what they gain shows in step lists alone.
        let changes = Changes { steps: true, ..self.changes.clone() };
        let design = Design::parse(text, self.name, self.directory, &changes)?;
        let ready = prepare(&design, self.setting)?;
        let shares = match held {
            Some(shares) => shares.to_vec(),
            None => {
                let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
                shares_run(&design, &ready, &folds)?
            }
        };
        Ok((AdviceCase { text: text.to_string(), design, shares }, ready))
    }

    /// Runs cases side by side, `seeds` times each. A run depends on its seed alone, so the answer
    /// does not depend on the number of threads.
    pub fn run(&self, jobs: &[(&AdviceCase, &Scope)], seeds: u64) -> Result<Vec<Vec<Sample>>, ObserveError> {
        let mut open: Vec<(Key, &AdviceCase, &Scope, u64)> = Vec::new();
        for job in jobs {
            for seed in 0..seeds {
                let key = key(job.0, job.1, seed);
                let known = self.samples.borrow().contains_key(&key);
                if !known && !open.iter().any(|other| other.0 == key) {
                    open.push((key, job.0, job.1, seed));
                }
            }
        }
        let (setting, root) = (self.setting, self.seed.child("advice"));
        let results = side_by_side(open.len(), |index| {
            let (_, case, scope, seed) = &open[index];
            sample(case, scope, root.index(*seed), setting)
        });
        let mut samples = self.samples.borrow_mut();
        for ((key, ..), result) in open.into_iter().zip(results) {
            samples.insert(key, result?);
        }
        Ok(jobs
            .iter()
            .map(|job| (0..seeds).map(|seed| samples[&key(job.0, job.1, seed)]).collect())
            .collect())
    }

    /// Throughput of the runs of a case with all its requests, with the 95% interval of its mean; `None` where it
    /// was not run often enough to have one.
    pub(super) fn carried(&self, case: &AdviceCase) -> Option<Interval> {
        let samples = self.samples.borrow();
        let key = |seed| key(case, &Scope::All, seed);
        let seen: Vec<f64> =
            (0..SEEDS).filter_map(|seed| Some(samples.get(&key(seed))?.throughput)).collect();
        batch_means(&seen)
    }

    /// What `changed` gains over `given`.
    pub fn gain(
        &self,
        given: &AdviceCase,
        changed: &AdviceCase,
        scope: &Scope,
    ) -> Result<Option<Gain>, ObserveError> {
        let runs = self.run(&[(given, scope), (changed, scope)], SEEDS)?;
        Ok(Gain::of(given.design.objective, &runs[0], &runs[1]))
    }

    /// The gain of `changed` over `given` by one pair of runs; `None` where there is nothing to compare with. It may gain
    /// what is worth a change only where this does: the lower end of the interval of all pairs lies below the least.
    pub(super) fn first_gain(
        &self,
        given: &AdviceCase,
        changed: &AdviceCase,
        scope: &Scope,
    ) -> Result<Option<f64>, ObserveError> {
        let runs = self.run(&[(given, scope), (changed, scope)], 1)?;
        Ok(share(given.design.objective, &runs[0][0], &runs[1][0]))
    }
}

fn key(case: &AdviceCase, scope: &Scope, seed: u64) -> Key {
    (case.text.clone(), format!("{:?}", case.shares), scope.clone(), seed)
}

/// One run of a case's mix, saturated where throughput is sought and else at the load.
fn sample(case: &AdviceCase, scope: &Scope, seed: Seed, setting: &Setting) -> Result<Sample, ObserveError> {
    let stopped = |error: miette::Report| ObserveError::Backend { reason: error.to_string() };
    let ready = prepare(&case.design, setting).map_err(stopped)?;
    let added = added(case, &ready, scope).map_err(stopped)?;
    let ready = within(&ready, scope);
    let offered = case.design.objective.load().or(added.limited);
    // Each seed begins at another moment of a round, so that the interval knows what the edges cut off.
    let counted = Counted::from_phase(REQUESTS, unit_of(seed.child("phase").value()));
    let loaded = run_mix(&ready, &case.shares, (added.capacity, added.latency_s), offered, counted, seed)?;
    let router = &ready[0].router;
    let host = router.host_processor().map(|id| &router.stations()[id.index()]);
    let servers = host.map_or(0, |station| station.servers());
    let busy = host.and_then(|station| loaded.utilization.get(&station.name)).copied().unwrap_or(0.0);
    Ok(Sample {
        throughput: loaded.throughput.mean,
        throughput_high: loaded.throughput.high,
        p99_s: loaded.latencies.quantile(0.99).map_or(f64::INFINITY, Time::as_seconds),
        host_cpu_s: busy * servers as f64 / loaded.throughput.mean.max(1.0),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So one pair that gains nothing decides, whatever the others would show.
    #[test]
    fn the_lower_end_of_a_gain_is_below_the_least_of_its_pairs() {
        for others in [[0.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1.0, 1.0], [0.0, 0.0, 1.0], [0.5, 0.9, 1.0]] {
            for times in [1e-3, 0.1, 100.0] {
                let pairs: Vec<f64> = others.iter().map(|one| 0.01 + times * one).chain([0.01]).collect();
                assert_eq!(pairs.len() as u64, SEEDS);
                let low = batch_means(&pairs).expect("there are several").low;
                assert!(low <= 0.01 + 1e-12, "{pairs:?} give {low}");
            }
        }
    }
}
