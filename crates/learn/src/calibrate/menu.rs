//! Runs that a user is likely to have the programs for, of which those that would tell a number are named.

use super::candidates::{Candidate, Runs, bounds, logarithm, stated};
use super::errors::quantile;
use crate::descent::{Found, Model, SCALE, Search};
use crate::dma::{DmaOperation, DmaRun};
use crate::doubt::Replacement;
use crate::posting::KnownLoops;
use crate::run::{MeasuredRun, RunKind, RunLength, ToolRun};
use offpath_profile::System;
use offpath_quantity::Bytes;
use offpath_route::Verb;
use std::sync::Arc;

/// How far of its way to an end a number is taken, where the points do not fit as well farther off.
const PARTS: [f64; 5] = [1.0, 0.5, 0.25, 0.125, 0.0625];

/// A list of a run of the menu: what perftest runs by itself is a multiple of it.
pub(super) const LIST: u64 = 25;

/// Runs that a user is likely to have the programs for.
pub(super) struct Menu<'a> {
    pub words: Vec<String>,
    pub model: Runs<'a>,
    pub low: Vec<f64>,
    pub high: Vec<f64>,
    /// How far the predictions of a run have to lie apart for it to tell, as a logarithm.
    pub least: f64,
}

/// How far two predictions of a run have to lie apart for its figure to say which of them holds: by twice what eight of ten points err
/// by at the best fit, since the figure errs from either by as much, and by what the fit takes for scatter at least.
pub(super) fn telling_difference(search: &Search<'_>, best: &Found) -> f64 {
    let errors = search.points.iter().map(|(place, measured)| (best.predicted[*place] - measured).abs());
    SCALE.max(2.0 * quantile(&errors.collect::<Vec<_>>(), 0.8))
}

/// What all have, where they have the same.
fn common<T: PartialEq>(mut all: impl Iterator<Item = T>) -> Option<T> {
    let first = all.next()?;
    all.all(|one| one == first).then_some(first)
}

impl<'a> Menu<'a> {
    /// Those that are not among the runs that there are, on the same network and with as many READs in flight.
    pub fn new(
        candidates: &'a [Candidate],
        base: &'a System,
        path: &'a str,
        there: &[MeasuredRun],
        loops: &Arc<KnownLoops>,
        least: f64,
    ) -> Menu<'a> {
        let (mut words, mut runs) = (Vec::new(), Vec::new());
        let is_of_dma = there.iter().any(|run| matches!(run, MeasuredRun::Dma(_)));
        for run in dma_menu().into_iter().filter(|_| is_of_dma) {
            if !there.contains(&MeasuredRun::Dma(run.clone())) {
                words.push(run.to_string());
                runs.push(MeasuredRun::Dma(run));
            }
        }
        let there: Vec<&ToolRun> = there.iter().filter_map(MeasuredRun::queue_pairs).collect();
        let mtu = common(there.iter().map(|run| run.mtu)).flatten();
        let reads = there.iter().filter(|run| run.is_read()).map(|run| run.outstanding_reads);
        let reads = common(reads).flatten();
        for program in crate::run::PROGRAMS.iter().filter(|_| !is_of_dma) {
            // An atomic has one size.
            let is_atomic = program.verb == Verb::FetchAndAdd;
            let sizes: &[u64] = if is_atomic { &[8] } else { &[8, 4096, 1 << 20] };
            for size in sizes {
                let plain = program.run(Bytes::new(*size));
                let outstanding_reads = reads.filter(|_| plain.is_read());
                let plain = ToolRun { mtu, outstanding_reads, ..plain };
                let option = if is_atomic { String::new() } else { format!(" -s {size}") };
                let mut add = |options: &str, run: ToolRun| {
                    if !there.iter().any(|other| is_same_command(&run, other)) {
                        words.push(format!("{}{option}{options}", program.name));
                        runs.push(MeasuredRun::QueuePairs(run));
                    }
                };
                add("", plain.clone());
                if program.kind == RunKind::Bandwidth {
                    // What one thread posts for several queue pairs, which each alone would not hold back.
                    let length = Some(RunLength::Iterations(8 * program.iterations));
                    add(" -q 8", ToolRun { queue_pairs: 8, length, ..plain.clone() });
                    let length = Some(RunLength::Iterations(16 * program.iterations));
                    add(
                        &format!(" -q 16 -l {LIST}"),
                        ToolRun { queue_pairs: 16, length, ..plain.clone().listed(LIST) },
                    );
                    add(" -t 1", ToolRun { tx_depth: 1, cq_moderation: 1, ..plain });
                }
            }
        }
        let model = Runs::new((base, path), runs, candidates, loops);
        let (low, high) = candidates.iter().map(bounds).unzip();
        Menu { words, model, low, high, least }
    }

    /// The run that differs most between what was found and where a number is elsewhere, the fitted ones standing for it by `factors`, as
    /// far as the points fit as well then: to either end of its interval, or of a number that has none or that is asked for, of the search. Nothing where
    /// they fit nowhere else, or none of the runs tells.
    pub fn telling(
        &self,
        (index, candidate): (usize, &Candidate),
        (free, factors): (&[usize], &[f64]),
        (coarse, margin): (&Search<'_>, f64),
        best: &Found,
    ) -> Option<String> {
        let here = self.model.predict(&best.at)?;
        let enough = coarse.cost(&coarse.model.predict(&best.at)?) + margin;
        let ends = match candidate.number.low {
            Some(_) if !candidate.is_asked => <[_; 2]>::from(stated(candidate)).map(logarithm),
            _ => [self.low[index], self.high[index]],
        };
        let mut most = vec![0.0f64; here.len()];
        for end in ends {
            let elsewhere = |part: f64| {
                let by = part * (end - best.at[index]);
                let mut at = best.at.clone();
                at[index] += by;
                for (other, factor) in free.iter().zip(factors) {
                    at[*other] = (at[*other] - factor * by).clamp(self.low[*other], self.high[*other]);
                }
                at
            };
            let fits = |at: Vec<f64>| -> Option<Vec<f64>> {
                let found = coarse.found(at)?;
                // Numbers that are asked for are two or three, so that there is time to fit the others anew.
                let found = match found.cost > enough && candidate.is_asked {
                    true => coarse.descend(found, free),
                    false => found,
                };
                (found.cost <= enough).then_some(found.at)
            };
            let Some(at) = PARTS.into_iter().find_map(|part| fits(elsewhere(part))) else { continue };
            let Some(there) = self.model.predict(&at) else { continue };
            for ((most, there), here) in most.iter_mut().zip(there).zip(&here) {
                *most = most.max((there - here).abs());
            }
        }
        self.farthest(&most)
    }

    /// The run that moves most where a number goes to either of its bounds; nothing where all stay.
    pub fn feeling(&self, index: usize, best: &Found) -> Option<String> {
        let here = self.model.predict(&best.at)?;
        let mut most = vec![0.0f64; here.len()];
        for end in [self.low[index], self.high[index]] {
            let mut to = best.at.clone();
            to[index] = end;
            let Some(there) = self.model.predict(&to) else { continue };
            for ((most, there), here) in most.iter_mut().zip(there).zip(&here) {
                *most = most.max((there - here).abs());
            }
        }
        self.farthest(&most)
    }

    /// The run that differs most between what was found and the other way; nothing where all are alike there. A way that runs of
    /// one queue pair cannot rule out is told by runs of several alone.
    pub fn between(&self, best: &Found, way: &Replacement) -> Option<String> {
        let (one, other) = (self.model.predict(&best.at)?, self.model.predict(&way.at)?);
        let tells =
            |run: &MeasuredRun| !way.is_held || run.queue_pairs().is_some_and(|run| run.queue_pairs > 1);
        let apart = one.iter().zip(other).zip(&self.model.runs);
        let apart = apart.map(|((one, other), run)| if tells(run) { one - other } else { 0.0 });
        self.farthest(&apart.collect::<Vec<f64>>())
    }

    pub fn farthest(&self, apart: &[f64]) -> Option<String> {
        let places = 0..self.words.len();
        let best = places
            .max_by(|one, other| apart[*one].abs().total_cmp(&apart[*other].abs()).then(other.cmp(one)))?;
        (apart[best].abs() > self.least).then(|| self.words[best].clone())
    }
}

/// Runs of a device's DMA that tell of it: each test, short and long, of what caches hold and of what they do not.
pub(super) fn dma_menu() -> Vec<DmaRun> {
    const OPERATIONS: [(RunKind, DmaOperation); 5] = [
        (RunKind::Latency, DmaOperation::Read),
        (RunKind::Latency, DmaOperation::WriteThenRead),
        (RunKind::Bandwidth, DmaOperation::Read),
        (RunKind::Bandwidth, DmaOperation::Write),
        (RunKind::Bandwidth, DmaOperation::ReadWrite),
    ];
    let mut all = Vec::new();
    for (kind, operation) in OPERATIONS {
        for payload in [64, 256, 2048].map(Bytes::new) {
            for is_warm in [true, false] {
                all.push(DmaRun { kind, operation, payload, window: Bytes::new(8192), is_warm });
            }
        }
    }
    all
}

/// Whether a run of the menu is one that was taken: how long it went, and what a machine sets by itself, may differ.
pub(super) fn is_same_command(run: &ToolRun, taken: &ToolRun) -> bool {
    let is_inline = |run: &ToolRun| run.payload <= run.inline;
    let key = |run: &ToolRun| {
        (run.kind, run.verb, run.payload, run.queue_pairs, run.tx_depth, run.post_list, run.directions)
    };
    key(run) == key(taken) && is_inline(run) == is_inline(taken)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::ToolProgram;

    /// The menu has atomics of their one size, and no run that is there already, however long it went.
    #[test]
    fn runs_that_are_there_are_not_on_the_menu() {
        let request = offpath_profile::SystemRequest { device: "connectx7", ..Default::default() };
        let system = offpath_profile::Library::builtin().load(&request).expect("the shipped card loads");
        let program = ToolProgram::named("ib_read_bw").expect("it is one of perftest's");
        let mut taken = program.run(Bytes::new(8));
        (taken.length, taken.mtu, taken.outstanding_reads) = (None, Some(Bytes::new(4096)), Some(16));
        let all = Menu::new(&[], &system, "client-host", &[], &Arc::default(), 0.02).words;
        let rest =
            Menu::new(&[], &system, "client-host", &[MeasuredRun::QueuePairs(taken)], &Arc::default(), 0.02)
                .words;
        let gone: Vec<&String> = all.iter().filter(|word| !rest.contains(word)).collect();
        assert_eq!(gone, ["ib_read_bw -s 8"]);
        let atomics: Vec<&String> = all.iter().filter(|word| word.starts_with("ib_atomic")).collect();
        assert_eq!(
            atomics,
            [
                "ib_atomic_bw",
                "ib_atomic_bw -q 8",
                "ib_atomic_bw -q 16 -l 25",
                "ib_atomic_bw -t 1",
                "ib_atomic_lat"
            ]
        );
    }
}
