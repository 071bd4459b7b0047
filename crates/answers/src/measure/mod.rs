//! What `offpath measure` answers: the characterisation of a card on a backend, point by point, as it is kept in a file.

mod file;
mod record;
mod suggest;
#[cfg(test)]
mod tests;
mod text;
mod twin;

pub use file::MeasureFile;
pub use record::{MeasureRecord, MeasureStamp, MeasuredPointAnswer, SkippedPointAnswer, WindowAnswer};
pub use suggest::{MeasureSuggestAnswer, SuggestRequest, SuggestedRunAnswer, UntoldNumberAnswer, suggest};
pub(crate) use suggest::{plain_points, runs_that_tell};
pub use twin::measure_on_twin;

use crate::SCHEMA_VERSION;
use crate::path::touches_device;
use crate::sweep::digest;
use crate::system::{SystemAnswer, check_verbs};
use offpath_learn::RunKind;
use offpath_measure::{FlowFigures, MeasurePoint, MeasuringEffort, MeasuringProgram, SuiteChoice, suite};
use offpath_profile::System;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Carrier, Path, PathOperation, Posting, Router, Verb};
use offpath_terminal::failure::{Failure, unknown_path};
use offpath_terminal::options::SystemOptions;
use serde::{Deserialize, Serialize};
use std::time::Instant;

/// A device's queue pairs, and who answers them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VerbsDevice {
    /// Its name, as `mlx5_0`.
    pub name: String,
    /// The firmware's version.
    pub firmware: String,
    /// The MTU of its port.
    pub mtu: Bytes,
    /// The longest payload that goes inline.
    pub inline_max: Bytes,
    /// Endpoints in other processes that answer; empty where both ends are in this one.
    pub peers: Vec<String>,
}

/// Where it is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MeasurePlace {
    /// On the twin of a device: its name, or a .toml file that describes one.
    Twin(String),
    /// On real queue pairs.
    Verbs(VerbsDevice),
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct MeasureRequest {
    /// Where.
    pub place: MeasurePlace,
    /// Paths; every one that the place has where none is named.
    pub paths: Vec<String>,
    /// What of the suite.
    pub choice: SuiteChoice,
    /// Windows of a point.
    pub windows: u64,
    /// The seed of every draw.
    pub seed: u64,
    /// The command line, as it was given.
    pub command: String,
    /// What the machine says of itself.
    pub environment: MeasureEnvironment,
    /// Which system is meant, on the twin.
    pub system: SystemOptions,
}

/// What the machine that measures says of itself. What it does not say is null.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasureEnvironment {
    /// The operating system and its version.
    pub kernel: Option<String>,
    /// The processors' architecture.
    pub architecture: String,
    /// The processors' model.
    pub processor: Option<String>,
    /// How many processors the program may use.
    pub processors: u64,
    /// What sets their clock.
    pub governor: Option<String>,
}

/// A point of the plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedPoint {
    /// The point.
    pub point: MeasurePoint,
    /// How long it is measured.
    pub effort: MeasuringEffort,
    /// Why the place cannot run it; `None` where it can.
    pub skipped: Option<String>,
}

/// The points of a request, in their order, and the stamp that their figures get.
pub struct MeasurePlan {
    /// What every figure is of.
    pub stamp: MeasureStamp,
    /// The points.
    pub points: Vec<PlannedPoint>,
    /// The twin's system.
    pub system: Option<System>,
}

/// How long a window on real queue pairs is at least.
const WINDOW: Time = Time::from_ms(200);
/// Requests that the twin follows a second, about.
const TWIN_PER_S: f64 = 300_000.0;
/// Bytes that cost the twin as much as a request.
const BURST: u64 = 16 << 10;
/// Seconds that a connection on real queue pairs takes to make, about.
const CONNECTING_S: f64 = 0.05;

impl MeasureRequest {
    /// The points that it is about, each with why it is skipped where the place cannot run it.
    ///
    /// # Errors
    /// Where the device, a path or a choice is refused.
    pub fn plan(&self) -> Result<MeasurePlan, Failure> {
        match &self.place {
            MeasurePlace::Twin(device) => self.on_twin(device),
            MeasurePlace::Verbs(device) => self.on_verbs(device),
        }
    }

    fn suite(&self, paths: &[Path]) -> Result<Vec<MeasurePoint>, Failure> {
        let points = suite(paths, &self.choice);
        if points.is_empty() {
            let verbs: Vec<String> = self.choice.verbs.iter().map(Verb::to_string).collect();
            return Err(Failure::input(
                format!("no run of the suite is of {}", verbs.join(", ")),
                "name read, write, send, fetch-and-add or compare-and-swap, or leave `--verb` out",
            ));
        }
        Ok(points)
    }

    fn on_twin(&self, device: &str) -> Result<MeasurePlan, Failure> {
        let library = self.system.library()?;
        let system = self.system.between_two(&library, device)?.load(&library, device, &[])?;
        check_verbs(&system)?;
        let router = Router::new(&system)?;
        let paths = match self.paths.is_empty() {
            true => suite_paths(&router, &system),
            false => {
                self.paths.iter().map(|name| queue_pair_path(&router, name)).collect::<Result<_, _>>()?
            }
        };
        let points = self.suite(&paths)?;
        let plan = |point: MeasurePoint| {
            let effort = MeasuringEffort::of(&point, self.windows);
            let skipped = point.refused().or_else(|| refused_by_route(&router, &point));
            PlannedPoint { point, effort, skipped }
        };
        let mtu = system.network.mtu;
        Ok(MeasurePlan {
            stamp: MeasureStamp {
                offpath_measure: SCHEMA_VERSION,
                version: env!("CARGO_PKG_VERSION").to_string(),
                command: self.command.clone(),
                backend: "twin".to_string(),
                device: system.device.clone(),
                testbed: Some(system.testbed.clone()),
                mode: Some(system.mode.to_string()),
                overlays: system.overlays.clone(),
                profile_crc32: Some(digest(&system)),
                firmware: None,
                mtu_bytes: mtu.get(),
                peers: Vec::new(),
                seed: self.seed,
                windows: self.windows,
                suite_crc32: suite_digest(&points),
                suite_points: Some(points.len() as u64),
                environment: self.environment.clone(),
            },
            points: points.into_iter().map(plan).collect(),
            system: Some(system),
        })
    }

    fn on_verbs(&self, device: &VerbsDevice) -> Result<MeasurePlan, Failure> {
        let peers = &device.peers;
        let names: Vec<String> = match (self.paths.is_empty(), peers.is_empty()) {
            (false, _) => self.paths.clone(),
            (true, true) => vec!["client-host".to_string()],
            (true, false) => peers.iter().map(|peer| format!("client-{peer}")).collect(),
        };
        let parse = |name: &String| {
            name.parse::<Path>().map_err(Failure::from).and_then(|path| match path.engine {
                None => Ok(path),
                Some(_) => Err(no_queue_pairs(name)),
            })
        };
        let paths: Vec<Path> = names.iter().map(parse).collect::<Result<_, _>>()?;
        let points = self.suite(&paths)?;
        let plan = |point: MeasurePoint| {
            let effort = MeasuringEffort::of(&point, self.windows).lasting(WINDOW);
            let skipped = point.refused().or_else(|| refused_by_verbs(device, &point, effort));
            PlannedPoint { point, effort, skipped }
        };
        Ok(MeasurePlan {
            stamp: MeasureStamp {
                offpath_measure: SCHEMA_VERSION,
                version: env!("CARGO_PKG_VERSION").to_string(),
                command: self.command.clone(),
                backend: "verbs".to_string(),
                device: device.name.clone(),
                testbed: None,
                mode: None,
                overlays: Vec::new(),
                profile_crc32: None,
                firmware: Some(device.firmware.clone()),
                mtu_bytes: device.mtu.get(),
                peers: peers.clone(),
                seed: self.seed,
                windows: self.windows,
                suite_crc32: suite_digest(&points),
                suite_points: Some(points.len() as u64),
                environment: self.environment.clone(),
            },
            points: points.into_iter().map(plan).collect(),
            system: None,
        })
    }
}

/// The paths of a system that queue pairs carry and that the device is part of.
pub(crate) fn suite_paths(router: &Router, system: &System) -> Vec<Path> {
    // Machines of other roles that speak to the card do as the first does.
    let peer = system.machines.iter().find(|machine| !machine.prefix.is_empty()).map(|machine| &machine.role);
    let is_near = |name: &str| {
        let found = system.endpoint(name);
        found.is_ok_and(|(machine, _)| machine.prefix.is_empty() || Some(&machine.role) == peer)
    };
    let is_meant = |path: &Path| {
        path.engine.is_none()
            && is_near(&path.requester)
            && is_near(&path.responder)
            && path.requester != path.responder
            && touches_device(system, path)
            && router.carrier(Verb::Read, path).is_ok_and(|carrier| carrier == Carrier::Nic)
    };
    router.paths().into_iter().filter(is_meant).collect()
}

fn no_queue_pairs(path: &str) -> Failure {
    Failure::input(
        format!("path `{path}` is carried by no queue pairs"),
        "name two endpoints, as `offpath path DEVICE` lists them",
    )
}

/// A path that queue pairs carry.
fn queue_pair_path(router: &Router, name: &str) -> Result<Path, Failure> {
    let path = router.path(name).map_err(|error| unknown_path(router, name, error))?;
    let is_nic = router.carrier(Verb::Read, &path).is_ok_and(|carrier| carrier == Carrier::Nic);
    match path.engine.is_none() && path.requester != path.responder && is_nic {
        true => Ok(path),
        false => Err(no_queue_pairs(name)),
    }
}

/// Why the system refuses a point.
fn refused_by_route(router: &Router, point: &MeasurePoint) -> Option<String> {
    let run = &point.run;
    let posting = match run.post_list {
        0 | 1 => Posting::Single,
        list => Posting::Batch(u32::try_from(list).unwrap_or(u32::MAX)),
    };
    let own = std::iter::once((run.verb, &point.path));
    let beside = point.beside.iter().map(|beside| (beside.verb, &beside.path));
    own.chain(beside).find_map(|(verb, path)| {
        let operation = PathOperation::new(verb, path.clone(), run.payload).posted(posting);
        router.route(&operation).err().map(|error| error.to_string())
    })
}

/// Why real queue pairs cannot run a point from this process.
fn refused_by_verbs(device: &VerbsDevice, point: &MeasurePoint, effort: MeasuringEffort) -> Option<String> {
    let run = &point.run;
    if point.threads > 1 {
        return Some("a process on verbs posts from one thread".to_string());
    }
    if run.inline > device.inline_max {
        return Some(format!("`{}` takes {} inline at most", device.name, device.inline_max));
    }
    if device.peers.is_empty() {
        return None;
    }
    let program = MeasuringProgram::new(point, effort);
    let is_peer = |name: &str| device.peers.iter().any(|peer| peer == name);
    if let Some(name) = program.requesters().iter().find(|name| is_peer(name)) {
        return Some(format!("`{name}` posts, and it is another process: measure it from there"));
    }
    let missing =
        program.responders().into_iter().find(|name| !is_peer(name) && *name != point.path.requester);
    missing.map(|name| format!("nothing says where `{name}` is: `--connect {name}=IP:PORT`"))
}

/// CRC-32 of the points of a suite.
fn suite_digest(points: &[MeasurePoint]) -> String {
    let names: String = points.iter().map(|point| format!("{point}\n")).collect();
    format!("{:08x}", crc32fast::hash(names.as_bytes()))
}

/// The points that are planned, without running one.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasureListAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// `twin` or `verbs`.
    #[cfg_attr(test, schemars(extend("enum" = ["twin", "verbs"])))]
    pub backend: String,
    /// The device.
    pub device: String,
    /// The points that would run, in their order.
    pub points: Vec<ListedPointAnswer>,
    /// Those that the backend cannot run.
    pub skipped: Vec<SkippedPointAnswer>,
    /// How long all would take, about; on verbs at least.
    pub seconds_about: f64,
}

/// A point that would run.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ListedPointAnswer {
    /// Its name.
    pub point: String,
    /// Requests that it takes at least.
    pub requests: u64,
    /// How long it would take, about; on verbs at least.
    pub seconds_about: f64,
}

impl MeasurePlan {
    /// What would run.
    pub fn list(&self) -> MeasureListAnswer {
        let points: Vec<ListedPointAnswer> = self.runnable().map(|one| self.listed(one)).collect();
        MeasureListAnswer {
            schema_version: SCHEMA_VERSION,
            backend: self.stamp.backend.clone(),
            device: self.stamp.device.clone(),
            seconds_about: points.iter().map(|point| point.seconds_about).sum(),
            points,
            skipped: self.skipped(),
        }
    }

    fn runnable(&self) -> impl Iterator<Item = &PlannedPoint> {
        self.points.iter().filter(|one| one.skipped.is_none())
    }

    fn skipped(&self) -> Vec<SkippedPointAnswer> {
        let skipped = |one: &PlannedPoint| {
            let why = one.skipped.clone()?;
            Some(SkippedPointAnswer { skipped: one.point.to_string(), why })
        };
        self.points.iter().filter_map(skipped).collect()
    }

    fn listed(&self, one: &PlannedPoint) -> ListedPointAnswer {
        let PlannedPoint { point, effort, .. } = one;
        let requests = effort.all_requests();
        let flows = MeasuringProgram::new(point, *effort).flow_count() as f64;
        let seconds_about = match self.system {
            Some(_) => {
                let bursts = point.run.payload.get().div_ceil(BURST).max(1) as f64;
                // A program that looks at its memory does nothing else meanwhile.
                let looks = if point.run.kind == RunKind::Latency { 4.0 } else { 1.0 };
                flows * requests as f64 * bursts * looks / TWIN_PER_S
            }
            None => {
                let connecting = point.run.queue_pairs as f64 * CONNECTING_S;
                effort.time.as_seconds() * effort.windows as f64 + connecting
            }
        };
        ListedPointAnswer { point: point.to_string(), requests, seconds_about }
    }

    /// How many points are left where `file` has some already.
    pub fn left(&self, file: Option<&MeasureFile>) -> u64 {
        let is_done = |one: &&PlannedPoint| file.is_some_and(|file| file.has(&one.point.to_string()));
        self.runnable().filter(|one| !is_done(one)).count() as u64
    }

    /// Runs the points that `file` lacks, in their order, and appends each to it as it ends. `run` measures a point;
    /// `ended` is told of each that ended.
    ///
    /// A point that fails is kept as failed, and the others run.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn run(
        &self,
        mut file: Option<&mut MeasureFile>,
        mut run: impl FnMut(&MeasurePoint, MeasuringEffort) -> Result<Vec<FlowFigures>, String>,
        mut ended: impl FnMut(),
    ) -> Result<MeasureAnswer, Failure> {
        let mut answer = MeasureAnswer {
            schema_version: SCHEMA_VERSION,
            stamp: self.stamp.clone(),
            points: Vec::new(),
            skipped: self.skipped(),
            failed: Vec::new(),
            kept: 0,
        };
        for one in &self.points {
            let name = one.point.to_string();
            if let Some(why) = &one.skipped {
                if let Some(file) = file.as_deref_mut() {
                    file.skip(&name, why)?;
                }
                continue;
            }
            if let Some(known) = file.as_deref().and_then(|file| file.point(&name)) {
                answer.points.push(known.clone());
                answer.kept += 1;
                continue;
            }
            let began = Instant::now();
            let measured = run(&one.point, one.effort);
            let took_ms = began.elapsed().as_secs_f64() * 1e3;
            match measured {
                Ok(flows) => {
                    let record = MeasuredPointAnswer::of(&one.point, &flows, took_ms, &self.stamp);
                    if let Some(file) = file.as_deref_mut() {
                        file.append(&MeasureRecord::Point(Box::new(record.clone())))?;
                    }
                    answer.points.push(record);
                }
                Err(why) => {
                    let failed = FailedPointAnswer { failed: name, why };
                    if let Some(file) = file.as_deref_mut() {
                        file.append(&MeasureRecord::Failed(failed.clone()))?;
                    }
                    answer.failed.push(failed);
                }
            }
            ended();
        }
        Ok(answer)
    }
}

/// A point that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedPointAnswer {
    /// Its name.
    pub failed: String,
    /// Why.
    pub why: String,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MeasureAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// What every figure is of.
    pub stamp: MeasureStamp,
    /// The points, in their order.
    pub points: Vec<MeasuredPointAnswer>,
    /// Points that the backend cannot run.
    pub skipped: Vec<SkippedPointAnswer>,
    /// Points that failed.
    pub failed: Vec<FailedPointAnswer>,
    /// How many points were in the file before.
    pub kept: u64,
}

impl MeasureStamp {
    /// What the figures are of, in a line.
    pub fn line(&self) -> String {
        match (&self.testbed, &self.mode) {
            (Some(testbed), Some(mode)) => {
                let (device, overlays) = (self.device.clone(), self.overlays.clone());
                let system = SystemAnswer {
                    device,
                    testbed: testbed.clone(),
                    mode: mode.clone(),
                    overlays,
                    untold_latency: false,
                    is_fitted: true,
                };
                format!("the twin of {}", system.line())
            }
            _ => {
                let firmware = self.firmware.as_deref().filter(|text| !text.is_empty());
                let firmware = firmware.map(|text| format!(", firmware {text}")).unwrap_or_default();
                let peers = match self.peers.is_empty() {
                    true => "both ends in this process".to_string(),
                    false => format!("answered by {}", self.peers.join(", ")),
                };
                format!("queue pairs of {}{firmware}, {peers}", self.device)
            }
        }
    }
}
