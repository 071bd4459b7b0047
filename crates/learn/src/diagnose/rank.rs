//! Causes by how much of the gap each explains, alone and in pairs.

use super::cause::{Cause, CauseChange, CauseDegree, of_links, of_ports};
use super::machine::{is_stated, spoken_for};
use super::points::{self, PrintedUnit, Runs, UNITS};
use super::rows::{MOST_DEVIATION, Row, changed, deviation, is_off, is_systematic};
use super::{CauseGroup, Diagnosis, Finding, shape};
use crate::describe::Description;
use crate::expect::{CeilingKind, ExpectError, ToolBench};
use crate::run::{RunKind, RunLength};
use offpath_logs::LogFigure;
use offpath_profile::System;
use offpath_quantity::{Bytes, Time};
use std::collections::BTreeMap;

/// Two causes whose predictions differ by less than this on the mean cannot be told apart by rows that scatter by 2%.
pub(super) const SAME: f64 = 0.015;

/// A second cause explains this share more than the first alone, or leaves no gap.
pub(super) const MORE: f64 = 0.1;

/// A second cause that leaves at most this share of what the first leaves explains something of its own, however small that is of
/// the whole gap.
pub(super) const MOST_OF_REST: f64 = 0.65;

/// What explains less than this share of the gap is not shown as a cause.
pub(super) const LEAST_SHARE: f64 = 0.2;

/// The same of a small gap.
pub(super) const LEAST_SMALL_SHARE: f64 = 0.05;

/// How much more of the gap a cause has to explain than one that the log states, to go before it.
const STATED: f64 = 0.1;

/// How often a share is corrected by what is expected with it.
pub(super) const CORRECTIONS: usize = 12;

/// By how much what is expected may still differ, for a share to be that of the plateau.
pub(super) const AT_PLATEAU: f64 = 0.02;

/// Shares of a rate below which nobody's is, and from which on it is the whole.
pub(super) const SHARES: std::ops::Range<f64> = 0.01..0.97;

/// No processor is slower by more than its clock and its cores' power saving make it.
const MOST_TIMES: f64 = 4.0;

/// Message rates are one rate down to this share of the greatest.
const NEAR_GREATEST: f64 = 0.9;

/// Ports and links that are as slow as the greatest bandwidth of the rows has them, and a processor that is as slow as their greatest
/// message rate has it, whatever these are called: one that fell to another rate than half of it is as much a cause.
pub(super) fn of_plateau(rows: &[(&Row, f64)], system: &System, path: &str) -> Vec<CauseDegree> {
    let greatest = |of: &dyn Fn(&Row) -> Option<f64>| {
        let all = rows.iter().filter_map(|(row, _)| Some((*row, of(row)?)));
        all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|(row, _)| row)
    };
    let of =
        |row: Option<&Row>, cause: Cause, change: fn(f64) -> CauseChange, degree: &dyn Fn(f64) -> String| {
            let row = row?;
            let (run, measured) = (&row.runs.reference, row.point.performance());
            let mut share = 1.0;
            for _ in 0..=CORRECTIONS {
                let expected = changed(system, path, &[&change(share)])?.expect(run).ok()?;
                let ratio = measured / points::performance(row.figure(&expected)?);
                if share < 1.0 && (ratio - 1.0).abs() < AT_PLATEAU {
                    return Some(CauseDegree { cause, degree: degree(share), change: change(share) });
                }
                share *= ratio;
                if !SHARES.contains(&share) {
                    return None;
                }
            }
            None
        };
    let bytes = greatest(&|row| Some(row.rate_per_s()? * row.runs.reference.payload.get() as f64));
    // A thread that is slower shows where it bound before, of the run as it is stated: a depth of 1 is no slow clock. Of many rows at one rate the greatest is so by its noise.
    let is_of_thread = |row: &Row| {
        let expected = changed(system, path, &[]).and_then(|bench| bench.expect(&row.runs.stated).ok());
        expected.is_some_and(|expected| {
            matches!(expected.binding(), CeilingKind::PostingThread | CeilingKind::ReceivingThread)
        })
    };
    let mut at_greatest: Vec<(&Row, f64)> =
        rows.iter().filter_map(|(row, _)| Some((*row, row.rate_per_s()?))).collect();
    at_greatest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let most = at_greatest.first().map_or(0.0, |(_, rate)| *rate);
    at_greatest.retain(|(_, rate)| *rate >= NEAR_GREATEST * most);
    let messages =
        at_greatest.get(at_greatest.len() / 2).map(|(row, _)| *row).filter(|row| is_of_thread(row));
    let times: fn(f64) -> CauseChange = |share| CauseChange::ProcessorTimes(1.0 / share);
    [
        of(bytes, Cause::PortRate, CauseChange::PortShare, &|share| of_ports(system, share)),
        of(bytes, Cause::PcieLink, CauseChange::LinkShare, &|share| of_links(system, share)),
        of(messages, Cause::ProcessorClock, times, &|share| format!("{:.2} times as long", 1.0 / share))
            .filter(
                |degree| matches!(degree.change, CauseChange::ProcessorTimes(times) if times <= MOST_TIMES),
            ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Payloads whose latency is that of a request and not of its bytes.
const SHORT: Bytes = Bytes::new(256);

/// What every pass of a PCIe link takes longer at most, in nanoseconds: a link that sleeps wakes within it.
const MOST_OF_LINK: f64 = 100e3;
/// What every packet takes longer on a network at most: what is farther away is no rack and no tunnel.
const MOST_OF_NETWORK: f64 = 1e6;

/// PCIe links and networks that take as much longer as the latencies of short payloads have it.
pub(super) fn of_short_latencies(rows: &[(&Row, f64)], system: &System, path: &str) -> Vec<CauseDegree> {
    let is_short =
        |row: &&Row| row.runs.reference.kind == RunKind::Latency && row.runs.reference.payload <= SHORT;
    let short: Vec<&Row> = rows.iter().map(|(row, _)| *row).filter(is_short).collect();
    // Less than the least is no other node, and no other switch; more than the most is no delay of every packet, but a wait.
    let of =
        |cause: Cause, change: fn(Time) -> CauseChange, span: std::ops::RangeInclusive<f64>, words: &str| {
            let probe = Time::from_ns(1000);
            let latencies = |changes: &[&CauseChange]| -> Option<Vec<f64>> {
                let bench = changed(system, path, changes)?;
                let each =
                    short.iter().map(|row| Some(bench.expect(&row.runs.reference).ok()?.latency.as_ns()));
                each.collect()
            };
            let (without, with) = (latencies(&[])?, latencies(&[&change(probe)])?);
            let mut more: Vec<f64> = short
                .iter()
                .zip(without.iter().zip(&with))
                .filter_map(|(row, (without, with))| {
                    let LogFigure::Time(measured) = row.point.measured else { return None };
                    let times = (with - without) / probe.as_ns();
                    (times > 0.0).then(|| (measured.as_ns() - without) / times)
                })
                .collect();
            more.sort_by(f64::total_cmp);
            let more = more.get(more.len() / 2).filter(|more| span.contains(*more))?;
            let more = Time::from_ns(more.round() as u64);
            Some(CauseDegree { cause, degree: format!("{more} more {words}"), change: change(more) })
        };
    let links = of(Cause::PcieLatency, CauseChange::LinkDelay, 100.0..=MOST_OF_LINK, "for each pass");
    let network = of(Cause::NetworkLatency, CauseChange::NetworkDelay, 250.0..=MOST_OF_NETWORK, "each way");
    [links, network].into_iter().flatten().collect()
}

/// Rows to be explained.
pub(super) struct Fit<'r, 's> {
    pub rows: Vec<(&'r Row<'s>, f64)>,
    /// All rows, of which those are some.
    pub all: &'r [(&'r Row<'s>, f64)],
    pub system: &'r System,
    pub path: &'r str,
}

/// What a variant leaves of the gap.
pub(super) struct Candidate {
    pub cause: Cause,
    pub degree: String,
    pub change: CauseChange,
    pub deviations: Vec<f64>,
    pub error: f64,
    pub evidence: Vec<String>,
}

pub(super) fn mean_of(deviations: &[f64]) -> f64 {
    deviations.iter().map(|one| one.abs()).sum::<f64>() / deviations.len().max(1) as f64
}

impl Fit<'_, '_> {
    pub fn deviations(&self, bench: &ToolBench, changes: &[&CauseChange]) -> Option<Vec<f64>> {
        self.rows.iter().map(|(row, _)| deviation(row, bench, changes)).collect()
    }

    /// Whether changes leave something for another cause, by all rows.
    pub fn leaves(&self, changes: &[&CauseChange]) -> bool {
        let Some(bench) = changed(self.system, self.path, changes) else { return true };
        let left = self.all.iter().map(|(row, _)| Some((*row, deviation(row, &bench, changes)?)));
        let Some(left) = left.collect::<Option<Vec<(&Row, f64)>>>() else { return true };
        is_off(&left, 1.0) || is_off(&left, -1.0) || is_systematic(&left)
    }

    /// What logs state and what could hold runs back, as changes of the reference.
    pub fn stated(&self) -> Vec<(Cause, String, CauseChange, String)> {
        let mut found: Vec<(Cause, String, CauseChange, String)> = Vec::new();
        let mut add = |cause: Cause, degree: String, change: CauseChange, says: &str| {
            if !found.iter().any(|(_, _, known, _)| *known == change) {
                let evidence = format!("the log states {says}");
                found.push((cause, degree, change, evidence));
            }
        };
        for (row, _) in &self.rows {
            let Runs { stated, reference } = &row.runs;
            if stated.tx_depth < reference.tx_depth {
                let degree = format!("{} posted ahead", stated.tx_depth);
                let says = format!("a depth of {}", stated.tx_depth);
                add(Cause::TxDepth, degree, CauseChange::TxDepth(stated.tx_depth), &says);
            }
            if let Some(mtu) = stated.mtu.filter(|mtu| *mtu < self.system.network.mtu) {
                let says = format!("an MTU of {mtu}");
                add(Cause::PathMtu, mtu.to_string(), CauseChange::PathMtu(mtu), &says);
            }
            if let Some(reads) = stated.outstanding_reads.filter(|_| stated.is_read()) {
                let says = format!("{reads} READs in flight");
                add(
                    Cause::OutstandingReads,
                    format!("{reads} in flight"),
                    CauseChange::OutstandingReads(reads),
                    &says,
                );
            }
            if stated.inline < reference.inline {
                let (degree, says) =
                    (format!("{} inline", stated.inline), format!("{} inline", stated.inline));
                add(Cause::InlineOff, degree, CauseChange::Inline(stated.inline), &says);
            }
            if let PrintedUnit::Wrong(times) = row.series.unit
                && let Some((degree, _)) = UNITS.into_iter().find(|(_, own)| *own == times)
            {
                let says =
                    format!("bandwidths that are {times:.4} times size times message rate of their rows");
                add(Cause::Unit, degree.to_string(), CauseChange::Unit(times), &says);
            }
            if let (Some(RunLength::Iterations(own)), Some(RunLength::Iterations(usual))) =
                (stated.length, reference.length)
                && own < usual
            {
                let each = own / stated.queue_pairs.max(1);
                let says = format!("{own} iterations");
                add(
                    Cause::FewIterations,
                    format!("{each} of each queue pair"),
                    CauseChange::Iterations(each),
                    &says,
                );
            }
        }
        found
    }

    pub fn rank(
        &self,
        variants: &[CauseDegree],
        bench_of: &mut [Option<ToolBench>],
        machine: Option<&Description>,
        diagnosis: &mut Diagnosis,
    ) -> Result<f64, ExpectError> {
        let healthy = ToolBench::new(self.system, self.path)?;
        let base: Vec<f64> =
            self.rows.iter().map(|(_, own)| own.clamp(-MOST_DEVIATION, MOST_DEVIATION)).collect();
        let error_without = mean_of(&base);
        let mut best: BTreeMap<Cause, Candidate> = BTreeMap::new();
        let mut consider = |candidate: Candidate| match best.get(&candidate.cause) {
            // What the log states goes before a degree that was guessed, where both fit alike.
            Some(known) if known.error <= candidate.error + 0.002 && known.error < error_without => {}
            _ => {
                best.insert(candidate.cause, candidate);
            }
        };
        for (cause, degree, change, evidence) in self.stated() {
            let bench = changed(self.system, self.path, &[&change]);
            if let Some(deviations) = bench.as_ref().and_then(|bench| self.deviations(bench, &[&change])) {
                let error = mean_of(&deviations);
                consider(Candidate { cause, degree, change, deviations, error, evidence: vec![evidence] });
            }
        }
        for (index, variant) in variants.iter().enumerate() {
            let needs_own =
                variant.change.is_of_system() || matches!(variant.change, CauseChange::OtherPath(_));
            if needs_own && bench_of[index].is_none() {
                bench_of[index] = changed(self.system, self.path, &[&variant.change]);
            }
            let bench = if needs_own { bench_of[index].as_ref() } else { Some(&healthy) };
            let Some(deviations) = bench.and_then(|bench| self.deviations(bench, &[&variant.change])) else {
                continue;
            };
            let error = mean_of(&deviations);
            consider(Candidate {
                cause: variant.cause,
                degree: variant.degree.clone(),
                change: variant.change.clone(),
                deviations,
                error,
                evidence: Vec::new(),
            });
        }
        let share = |error: f64| (1.0 - error / error_without).clamp(0.0, 1.0);
        // Of a small gap most is scatter, which nothing explains.
        let least_share = if diagnosis.verdict.is_slight() { LEAST_SMALL_SHARE } else { LEAST_SHARE };
        let mut ranked: Vec<Candidate> =
            best.into_values().filter(|one| share(one.error) >= least_share).collect();
        // What the log itself or the machine states is no guess, nor is a half that leaves as little: another cause has to explain clearly more to go
        // before it.
        let is_half =
            |one: &Candidate| one.cause == Cause::HalfCounted && one.error <= STATED * error_without;
        let stated = |one: &Candidate| {
            let is_stated =
                !one.evidence.is_empty() || is_half(one) || is_stated(&one.change, self.system, machine);
            if is_stated { STATED * error_without } else { 0.0 }
        };
        ranked.sort_by(|a, b| (a.error - stated(a)).total_cmp(&(b.error - stated(b))));
        let mut left = ranked.first().map_or(error_without, |one| one.error);
        if let Some(pair) = self.pair(variants, error_without, &mut ranked, diagnosis) {
            left = pair;
        }
        // To the degree that stands: beside another cause it may be another one.
        for candidate in &mut ranked {
            let said = spoken_for(candidate.cause, &candidate.change, self.system, machine);
            candidate.evidence.extend(said);
            candidate.evidence.extend(shape::spoken_for(candidate.cause, diagnosis));
        }
        let mut groups: Vec<(Vec<f64>, CauseGroup)> = Vec::new();
        for candidate in ranked {
            let finding = Finding {
                cause: candidate.cause,
                degree: candidate.degree,
                explained_share: share(candidate.error),
                evidence: candidate.evidence,
            };
            let is_same = |others: &[f64]| {
                let apart: Vec<f64> =
                    others.iter().zip(&candidate.deviations).map(|(one, other)| one - other).collect();
                mean_of(&apart) < SAME
            };
            match groups.iter_mut().find(|(others, _)| is_same(others)) {
                Some((_, group)) => group.findings.push(finding),
                None => {
                    let explained_share = finding.explained_share;
                    groups.push((
                        candidate.deviations,
                        CauseGroup { findings: vec![finding], explained_share },
                    ));
                }
            }
        }
        diagnosis.groups = groups
            .into_iter()
            .map(|(_, mut group)| {
                // That half is counted says less than which half.
                group.findings.sort_by_key(|finding| {
                    (std::cmp::Reverse(finding.evidence.len()), finding.cause == Cause::HalfCounted)
                });
                group
            })
            .collect();
        Ok(left)
    }

    /// Where one cause leaves a gap, the two that leave least stand first.
    pub fn pair(
        &self,
        variants: &[CauseDegree],
        error_without: f64,
        ranked: &mut Vec<Candidate>,
        diagnosis: &mut Diagnosis,
    ) -> Option<f64> {
        /// Single causes that a second one is looked for beside.
        const FIRSTS: usize = 5;
        let least = ranked.first().map(|one| one.error)?;
        if !self.leaves(&[&ranked[0].change]) {
            return None;
        }
        // What logs state goes before a guess, which such rows hold to what is stated.
        let stated = self
            .stated()
            .into_iter()
            .map(|(cause, degree, change, evidence)| (CauseDegree { cause, degree, change }, vec![evidence]));
        let seconds: Vec<(CauseDegree, Vec<String>)> =
            stated.chain(variants.iter().map(|variant| (variant.clone(), Vec::new()))).collect();
        // Where half is nearly all of it, what else is off is sought beside that and not in its place.
        let is_half = ranked[0].cause == Cause::HalfCounted && least <= STATED * error_without;
        let firsts = if is_half { 1 } else { FIRSTS };
        let mut best: Option<(f64, usize, usize, Vec<f64>)> = None;
        for (index, first) in ranked.iter().take(firsts).enumerate() {
            for (other, (second, _)) in seconds.iter().enumerate() {
                if second.cause == first.cause {
                    continue;
                }
                let changes = [&first.change, &second.change];
                let Some(bench) = changed(self.system, self.path, &changes) else { continue };
                let Some(deviations) = self.deviations(&bench, &changes) else { continue };
                let error = mean_of(&deviations);
                if best.as_ref().is_none_or(|(known, ..)| error < *known) {
                    best = Some((error, index, other, deviations));
                }
            }
        }
        let (error, first, second, both) = best?;
        let alone_of_first = &ranked[0].deviations;
        // A second cause earns its place by what it explains more, or by leaving nothing that would be called a gap.
        let second_closes = !self.leaves(&[&ranked[first].change, &seconds[second].0.change]);
        // Or by what it explains of the rest, where that can be told from the first alone.
        let apart: Vec<f64> = alone_of_first.iter().zip(&both).map(|(one, other)| one - other).collect();
        let second_settles = error <= MOST_OF_REST * least && mean_of(&apart) >= SAME;
        if (least - error) / error_without < MORE && !second_closes && !second_settles {
            return None;
        }
        diagnosis.explained_together = Some((1.0 - error / error_without).clamp(0.0, 1.0));
        let (second, says) = &seconds[second];
        let first = ranked.remove(first);
        let known = ranked.iter().position(|one| one.cause == second.cause);
        let alone = changed(self.system, self.path, &[&second.change])
            .and_then(|bench| self.deviations(&bench, &[&second.change]));
        let evidence = known.map_or_else(|| says.clone(), |at| ranked.remove(at).evidence);
        ranked.insert(0, first);
        if let Some(deviations) = alone {
            let error = mean_of(&deviations);
            let (cause, degree, change) = (second.cause, second.degree.clone(), second.change.clone());
            ranked.insert(1, Candidate { cause, degree, change, deviations, error, evidence });
        }
        Some(error)
    }
}
