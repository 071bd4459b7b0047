//! Which few runs would narrow a plan most.

use super::{queue_pair_path, suite_paths};
use crate::SCHEMA_VERSION;
use crate::plan::{InfluenceAnswer, PlanAnswers, PlanRequest, plan};
use crate::setting;
use crate::system::SystemAnswer;
use offpath_learn::{PhaseProgress, RunKind, ToolBench};
use offpath_measure::{MeasurePoint, SuiteChoice, suite};
use offpath_plan::Design;
use offpath_profile::System;
use offpath_route::{Path, Router};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// A plan that is to be narrowed.
#[derive(Clone, Debug)]
pub struct SuggestRequest {
    /// The design file.
    pub design: PathBuf,
    /// The device, where it is not the design's own.
    pub device: Option<String>,
    /// Paths; every one that the device has where none is named.
    pub paths: Vec<String>,
    /// What of the suite.
    pub choice: SuiteChoice,
    /// The seed of every draw of the plan.
    pub seed: u64,
    /// Which system is meant.
    pub system: SystemOptions,
}

/// The runs that would narrow a plan most.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasureSuggestAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design's name.
    pub design: String,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// What the plan says to measure next.
    pub plan_next: String,
    /// A run for each number that moves the plan most, the most first.
    pub runs: Vec<SuggestedRunAnswer>,
    /// Numbers that move the plan and that no run of queue pairs tells.
    pub untold: Vec<UntoldNumberAnswer>,
}

/// A run that narrows a number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SuggestedRunAnswer {
    /// The number.
    pub number: String,
    /// The lower end of what it is known within.
    pub low: String,
    /// The upper end.
    pub high: String,
    /// By which share the plan's figure moves between both ends.
    pub moves_plan: f64,
    /// The run, by its name in the suite.
    pub point: String,
    /// The options of `offpath measure` that run it, with its neighbours.
    pub options: String,
    /// By which share the run's figure moves between both ends.
    pub moves_run: f64,
}

/// A number that no run tells.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UntoldNumberAnswer {
    /// The number.
    pub number: String,
    /// By which share the plan's figure moves between both ends.
    pub moves_plan: f64,
    /// Why no run of queue pairs tells it.
    pub why: String,
}

/// Runs that are named.
const MOST: usize = 5;
/// What a plan or a run has to move by to count.
const TELLS: f64 = 0.01;
/// Queue pairs of the runs that are tried: more cost time and tell the same.
const FEW: u64 = 8;

/// Names the runs that would narrow a design's plan most.
///
/// # Errors
/// Where the design, the device or a path is refused, or the plan fails.
pub fn suggest(
    request: &SuggestRequest,
    progress: &dyn PhaseProgress,
) -> Result<MeasureSuggestAnswer, Failure> {
    let setting = setting(&request.system)?;
    let mut plan_request = PlanRequest {
        design: request.design.clone(),
        system: request.system.clone(),
        seed: request.seed,
        ..PlanRequest::default()
    };
    plan_request.changes.device = request.device.clone();
    let design = Design::load(&request.design, &plan_request.changes)?;
    // Runs are tried on the system that the plan is of.
    let system = setting.system(&design, &design.device)?;
    let router = Router::new(&system)?;
    let paths: Vec<Path> = match request.paths.is_empty() {
        true => suite_paths(&router, &system),
        false => request.paths.iter().map(|name| queue_pair_path(&router, name)).collect::<Result<_, _>>()?,
    };
    let points = plain_points(&paths, &request.choice);
    progress.phase("plans of the design", 1);
    let answers = plan(&plan_request)?;
    progress.step();
    let plans: Vec<_> = match &answers {
        PlanAnswers::One(one) => vec![&**one],
        PlanAnswers::Scenarios(several) => several.scenarios.iter().map(|one| &one.plan).collect(),
    };
    let mut influences: Vec<(&InfluenceAnswer, f64)> = Vec::new();
    for one in plans.iter().flat_map(|plan| &plan.influences) {
        let moves = moved(one);
        let is_first = influences.iter().all(|(other, _)| other.number != one.number);
        if is_first && moves >= TELLS && system.numbers.contains_key(&one.number) {
            influences.push((one, moves));
        }
    }
    influences.sort_by(|one, other| other.1.total_cmp(&one.1));
    influences.truncate(MOST);
    let (mut runs, mut untold) = (Vec::new(), Vec::new());
    progress.phase("numbers that runs may tell", influences.len() as u64);
    for (one, moves_plan) in influences {
        let end = |value: &str| -> Result<System, Failure> {
            let mut moved = setting.clone();
            moved.settings.push(format!("{}={value}", one.number));
            Ok(moved.system(&design, &design.device)?)
        };
        let ends = end(&one.low).and_then(|low| Ok((low, end(&one.high)?)));
        let told = ends
            .ok()
            .and_then(|(low, high)| best(&points, &low, &high).map(|(point, moves)| (point.clone(), moves)));
        match told {
            Some((point, moves_run)) => runs.push(SuggestedRunAnswer {
                number: one.number.clone(),
                low: one.low.clone(),
                high: one.high.clone(),
                moves_plan,
                options: options(&point),
                point: point.to_string(),
                moves_run,
            }),
            None => untold.push(UntoldNumberAnswer {
                number: one.number.clone(),
                moves_plan,
                why: "no run of one posting thread moves by a hundredth between its ends".to_string(),
            }),
        }
        progress.step();
    }
    let plan_next = plans.first().map(|plan| plan.next_measurement.clone()).unwrap_or_default();
    let design = plans.first().map(|plan| plan.design.clone()).unwrap_or_default();
    Ok(MeasureSuggestAnswer {
        schema_version: SCHEMA_VERSION,
        design,
        system: SystemAnswer::of(&system),
        plan_next,
        runs,
        untold,
    })
}

/// By which share the plan's figure moves between both ends of a number.
fn moved(one: &InfluenceAnswer) -> f64 {
    one.optimal.at_low().zip(one.optimal.at_high()).map_or(0.0, |(low, high)| share(low, high))
}

fn share(one: f64, other: f64) -> f64 {
    let moved = (one / other).ln().abs().exp_m1();
    if moved.is_finite() { moved } else { 0.0 }
}

/// The runs that are tried for a number.
pub(crate) fn plain_points(paths: &[Path], choice: &SuiteChoice) -> Vec<MeasurePoint> {
    let is_tried =
        |point: &MeasurePoint| point.refused().is_none() && point.is_plain() && point.run.queue_pairs <= FEW;
    suite(paths, choice).into_iter().filter(is_tried).collect()
}

/// The points whose figures tell two systems apart, each with the share by which it moves.
pub(crate) fn runs_that_tell<'p>(
    points: &'p [MeasurePoint],
    low: &'p System,
    high: &'p System,
) -> impl Iterator<Item = (&'p MeasurePoint, f64)> {
    let mut benches: BTreeMap<&Path, Option<(ToolBench, ToolBench)>> = BTreeMap::new();
    points.iter().filter_map(move |point| {
        let both = benches.entry(&point.path).or_insert_with(|| {
            let name = point.path.to_string();
            Some((ToolBench::new(low, &name).ok()?, ToolBench::new(high, &name).ok()?))
        });
        let (low, high) = both.as_ref()?;
        let (low, high) = (low.expect(&point.run).ok()?, high.expect(&point.run).ok()?);
        let moves = match point.run.kind {
            RunKind::Latency => share(low.latency.as_seconds(), high.latency.as_seconds()),
            RunKind::Bandwidth => share(low.rate_per_s, high.rate_per_s),
        };
        (moves >= TELLS).then_some((point, moves))
    })
}

/// The point whose figure moves most between two systems; of those that move as much the smallest.
fn best<'p>(
    points: &'p [MeasurePoint],
    low: &'p System,
    high: &'p System,
) -> Option<(&'p MeasurePoint, f64)> {
    runs_that_tell(points, low, high).reduce(
        |found, one| {
            if one.1 > found.1 * (1.0 + TELLS) { one } else { found }
        },
    )
}

/// The options that run a point.
fn options(point: &MeasurePoint) -> String {
    let run = &point.run;
    let size =
        run.verb.own_payload().map_or_else(|| format!(" --size {}B", run.payload.get()), |_| String::new());
    format!("--path {} --verb {}{size} --qps {}", point.path, run.verb, run.queue_pairs)
}
