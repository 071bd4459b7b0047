//! Which program a log without its head is of, and what is taken as that program has it.

use super::cause::{CauseChange, CauseDegree, half};
use super::points::{self, Point, Runs, Series};
use super::rank::SAME;
use super::rows::{MOST_DEVIATION, MOST_OF_SERIES, Row, changed, deviation, gap};
use crate::expect::ToolBench;
use crate::run::{MANY_QUEUE_PAIRS, RunKind, ToolProgram, is_software};
use offpath_profile::System;
use offpath_route::Verb;
use std::fmt;

/// A program that may have written a series, and of how many queue pairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reading {
    pub program: &'static ToolProgram,
    /// As the log states them, or else as the program has it or as its iterations say.
    pub queue_pairs: u64,
}

impl fmt::Display for Reading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.program.name)?;
        match self.queue_pairs {
            2.. => write!(f, " with {} queue pairs", self.queue_pairs),
            _ => Ok(()),
        }
    }
}

/// A series whose program is known, or taken to be the one that its rows are nearest to.
pub(super) struct Resolved {
    pub reading: Reading,
    /// The runs of its rows; nothing where the payload is not said.
    pub runs: Vec<Option<Runs>>,
    /// Other readings of a series without a head of which every row is what is expected, too.
    pub others: Vec<Reading>,
}

/// What readings a series has. The table counts the iterations of all queue pairs: where no head and no command says how many these were,
/// a multiple of what a program runs of each may be of as many.
fn readings(series: &Series) -> Vec<Reading> {
    let conditions = &series.conditions;
    let is_open =
        series.kind == RunKind::Bandwidth && conditions.queue_pairs.is_none() && conditions.program.is_none();
    let mut iterations = series.points.iter().map(|point| point.conditions.iterations);
    let first = iterations.next().flatten().filter(|_| is_open);
    let shared = first.filter(|first| iterations.all(|other| other == Some(*first)));
    let of = |program: &'static ToolProgram| {
        let by_iterations =
            shared.filter(|count| count % program.iterations == 0).map(|count| count / program.iterations);
        let several = by_iterations.filter(|pairs| (2..MANY_QUEUE_PAIRS).contains(pairs));
        [Some(conditions.queue_pairs.unwrap_or(1)), several]
            .into_iter()
            .flatten()
            .map(move |queue_pairs| Reading { program, queue_pairs })
    };
    points::programs(series).into_iter().flat_map(of).collect()
}

/// The program that a series is of, and the runs of its rows. Without a head it is the one whose rows are nearest to what
/// the model expects, with or without one cause.
pub(super) fn resolve(
    series: &Series,
    healthy: &ToolBench,
    variants: &[CauseDegree],
    bench_of: &mut [Option<ToolBench>],
    system: &System,
    path: &str,
) -> Option<Resolved> {
    let candidates = readings(series);
    let is_sweep = series.is_sweep();
    let of = |reading: &Reading| -> Vec<Option<Runs>> {
        let each = series.points.iter();
        each.map(|point| points::runs(reading, point, is_sweep, system.network.mtu)).collect()
    };
    if let [reading] = candidates[..] {
        return Some(Resolved { reading, runs: of(&reading), others: Vec::new() });
    }
    let mut all: Vec<(f64, Reading, Vec<Option<Runs>>)> = Vec::new();
    let mut fitting = Vec::new();
    for reading in candidates {
        let runs = of(&reading);
        let usable: Vec<(usize, &Runs)> = runs
            .iter()
            .enumerate()
            .filter_map(|(index, runs)| runs.as_ref().map(|runs| (index, runs)))
            .collect();
        if usable.is_empty() {
            continue;
        }
        let every = usable.len().div_ceil(MOST_OF_SERIES);
        let few: Vec<&(usize, &Runs)> = usable.iter().step_by(every).collect();
        let deviation_of =
            |(index, runs): &(usize, &Runs), bench: &ToolBench, change: Option<&CauseChange>| {
                let point = &series.points[*index];
                let row = Row { series, point, runs: (*runs).clone() };
                deviation(&row, bench, change.as_slice()).map_or(MOST_DEVIATION, f64::abs)
            };
        let error_of = |bench: &ToolBench, change: Option<&CauseChange>| -> f64 {
            few.iter().map(|row| deviation_of(row, bench, change)).sum::<f64>() / few.len() as f64
        };
        if usable.iter().all(|row| deviation_of(row, healthy, None) <= gap()) {
            fitting.push(reading);
        }
        let mut error = error_of(healthy, None);
        // That half is counted is a cause of these rows alone, whatever the others of the log are.
        let halved = half(std::iter::once(series)).expect("it has one series");
        error = error.min(error_of(healthy, Some(&halved.change)));
        for (index, variant) in variants.iter().enumerate() {
            let bench = match (variant.change.is_of_system(), &variant.change) {
                (false, CauseChange::OtherPath(_)) | (true, _) => {
                    if bench_of[index].is_none() {
                        bench_of[index] = changed(system, path, &[&variant.change]);
                    }
                    bench_of[index].as_ref()
                }
                _ => Some(healthy),
            };
            if let Some(bench) = bench {
                error = error.min(error_of(bench, Some(&variant.change)));
            }
        }
        // Who says nothing else leaves the number of iterations as the program has it, and runs one queue pair.
        let usual = |point: &Point| {
            let count = reading.program.iterations * reading.queue_pairs;
            point.conditions.iterations == Some(count)
        };
        let as_usual =
            series.points.iter().filter(|point| usual(point)).count() as f64 / series.points.len() as f64;
        // By its iterations alone a run of several is as likely as one of one queue pair with another number of them, unless it is a
        // power of two, as people ask for.
        let is_said = series.conditions.queue_pairs.is_none() && reading.queue_pairs > 1;
        let of_said = if reading.queue_pairs.is_power_of_two() { 0.4 } else { 1.0 };
        let penalty = 0.05 * (1.0 - as_usual + if is_said { of_said } else { 0.0 });
        all.push((error + penalty, reading, runs));
    }
    // What rows cannot tell apart is taken for a READ or a WRITE, as most logs are, and what else it may be is said.
    let least = all.iter().map(|(error, ..)| *error).min_by(f64::total_cmp)?;
    let rank = |reading: &Reading| reading.program.verb == Verb::Send;
    let near = all.into_iter().filter(|(error, ..)| *error <= least + SAME);
    let best = near.min_by(|a, b| rank(&a.1).cmp(&rank(&b.1)).then(a.0.total_cmp(&b.0)));
    let (_, reading, runs) = best?;
    fitting.retain(|other| *other != reading);
    Some(Resolved { reading, runs, others: fitting })
}

/// What a log leaves open and was taken as the tool has it.
pub(super) fn assumptions(series: &Series, resolved: &Resolved) -> Vec<String> {
    let Resolved { reading: Reading { program, queue_pairs }, others, .. } = resolved;
    let conditions = &series.conditions;
    let file = &series.file;
    let mut found = Vec::new();
    if conditions.operation.is_none() {
        found.push(format!(
            "{file}: no head says the program; the rows are nearest to {}; the command that ran, on a line above them, \
             decides it",
            program.name
        ));
        if !others.is_empty() {
            let others: Vec<String> = others.iter().map(Reading::to_string).collect();
            found.push(format!(
                "{file}: every row is within a tenth of what is expected of {}, too, and rows alone do not tell which it was",
                others.join(", or of ")
            ));
        }
    }
    if conditions.queue_pairs.is_none() && *queue_pairs > 1 {
        found.push(format!(
            "{file}: {queue_pairs} queue pairs are taken by the iterations, which are {queue_pairs} times the {} that {} runs of each; no head \
             says how many there were",
            program.iterations, program.name
        ));
    }
    let device = conditions.device.as_deref().unwrap_or_default();
    if is_software(device) {
        found.push(format!(
            "{file}: `{device}` is by its name a device in software, whose costs are a processor's: no profile of a card is its"
        ));
    }
    let is_bandwidth = program.kind == RunKind::Bandwidth;
    let lacks = [
        (conditions.queue_pairs.is_none() && *queue_pairs == 1, "1 queue pair"),
        (conditions.tx_depth.is_none(), "a depth of 128"),
        (conditions.directions.is_none(), "one direction"),
    ];
    let lacking: Vec<&str> =
        lacks.iter().filter(|(lacks, _)| *lacks && is_bandwidth).map(|(_, what)| *what).collect();
    if !lacking.is_empty() {
        found.push(format!("{file}: not stated, and taken as the tool has it: {}", lacking.join(", ")));
    }
    found
}
