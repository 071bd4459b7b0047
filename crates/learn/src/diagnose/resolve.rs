//! Which program a log without its head is of, and what is taken as that program has it.

use super::cause::{CauseChange, CauseDegree};
use super::points::{self, Point, Runs, Series};
use super::rows::{MOST_DEVIATION, MOST_OF_SERIES, Row, changed, deviation};
use crate::expect::ToolBench;
use crate::points::is_software;
use crate::run::{RunKind, ToolProgram};
use offpath_profile::System;

/// The program that a series is of, and the runs of its rows. Without a head it is the one whose rows are nearest to what
/// the model expects, with or without one cause.
pub(super) fn resolve(
    series: &Series,
    healthy: &ToolBench,
    variants: &[CauseDegree],
    bench_of: &mut [Option<ToolBench>],
    system: &System,
    path: &str,
) -> Option<(&'static ToolProgram, Vec<Option<Runs>>)> {
    let candidates = points::programs(series);
    let is_sweep = series.is_sweep();
    let of = |program: &ToolProgram| -> Vec<Option<Runs>> {
        series.points.iter().map(|point| points::runs(program, point, is_sweep, system.network.mtu)).collect()
    };
    if let [program] = candidates[..] {
        return Some((program, of(program)));
    }
    let mut best: Option<(f64, &'static ToolProgram, Vec<Option<Runs>>)> = None;
    for program in candidates {
        let runs = of(program);
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
        let error_of = |bench: &ToolBench, change: Option<&CauseChange>| -> f64 {
            let deviations = few.iter().map(|(index, runs)| {
                let point = &series.points[*index];
                let row = Row { series, point, runs: (*runs).clone() };
                deviation(&row, bench, change.as_slice()).map_or(MOST_DEVIATION, f64::abs)
            });
            deviations.sum::<f64>() / few.len() as f64
        };
        let mut error = error_of(healthy, None);
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
        // Who says nothing else leaves the number of iterations as the program has it.
        let usual = |point: &Point| {
            let pairs = point.conditions.queue_pairs.unwrap_or(1);
            point.conditions.iterations.is_some_and(|count| count == program.iterations * pairs)
        };
        let as_usual =
            series.points.iter().filter(|point| usual(point)).count() as f64 / series.points.len() as f64;
        let penalty = 0.05 * (1.0 - as_usual);
        if best.as_ref().is_none_or(|(least, _, _)| error + penalty < *least) {
            best = Some((error + penalty, program, runs));
        }
    }
    best.map(|(_, program, runs)| (program, runs))
}

/// What a log leaves open and was taken as the tool has it.
pub(super) fn assumptions(series: &Series, program: &ToolProgram) -> Vec<String> {
    let conditions = &series.conditions;
    let file = &series.file;
    let mut found = Vec::new();
    if conditions.operation.is_none() {
        found.push(format!(
            "{file}: no head says the program; the rows are nearest to {}; the command that ran, on a line above them, \
             decides it",
            program.name
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
        (conditions.queue_pairs.is_none(), "1 queue pair"),
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
