//! What `offpath torture` answers: seeded faults against a system on the twin, and whether it kept its promise.

mod case;
mod text;

pub use case::{Broken, Case, TortureError, check_system};

use crate::SCHEMA_VERSION;
use crate::rows::threads;
use crate::system::SystemAnswer;
use miette::Diagnostic;
use offpath_apps::Shipped;
use offpath_apps::system::{AppSystem, Registry, Visitor};
use offpath_apps::torture::{Schedule, SystemFault, Tally};
use offpath_profile::System;
use offpath_route::Router;
use offpath_terminal::failure::Failure;
use offpath_terminal::options::{SystemOptions, as_shell_words};
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// The device that a system runs on where the command line names none.
pub const USUAL_DEVICE: &str = "bluefield2";

/// Faults that a system is to be put under.
#[derive(Clone, Debug)]
pub struct TortureRequest {
    /// The system, by its name.
    pub subject: String,
    /// How many seeds are played, one at least.
    pub seeds: u64,
    /// The first of them.
    pub first_seed: u64,
    /// The device that it runs on: a name, or a .toml file.
    pub device: String,
    /// A bug of the system to be injected.
    pub injected_bug: Option<String>,
    /// Threads; one for each core where absent. The answer is the same.
    pub threads: Option<u16>,
    /// What is changed in the device's system.
    pub system: SystemOptions,
}

/// Seeded faults against an application on the twin, and whether its promise held.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TortureAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::systems())))]
    pub subject: &'static str,
    /// What it promises.
    pub promise: &'static str,
    /// What it ran on.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The bug that --inject-bug put in.
    pub injected_bug: Option<String>,
    /// The first seed that was played.
    pub first_seed: u64,
    /// Up to and with the first that failed.
    pub seeds_played: u64,
    /// What the system's users did in all seeds that held.
    pub operations: u64,
    /// They ended in an error or were never acknowledged.
    pub operations_without_answer: u64,
    /// Of what all seeds that held have shown, hexadecimal: the same seeds give it again.
    pub checksum_crc32: String,
    /// How many of each kind were drawn.
    pub faults: BTreeMap<&'static str, u64>,
    /// Whether the promise held in every seed.
    pub held: bool,
    /// The first seed in which it did not.
    pub failed: Option<FailedSeedAnswer>,
}

/// A seed in which a system broke its promise.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FailedSeedAnswer {
    /// Which.
    pub seed: u64,
    /// The alternative that it chose.
    pub alternative: &'static str,
    /// What was broken.
    pub reason: String,
    /// The faults that it drew.
    pub faults: Vec<String>,
    /// A smallest part of them that it still fails under.
    pub shrunk_faults: Vec<String>,
    /// The command that plays it again.
    #[serde(skip)]
    pub again: String,
}

/// Plays seeds on the twin, each of which draws a load and a schedule of faults, and checks what the system kept: the same
/// seeds give the same answer on any number of threads.
///
/// ```
/// use offpath_answers::torture::{TortureRequest, USUAL_DEVICE};
///
/// let request = TortureRequest {
///     subject: "kv".into(),
///     seeds: 3,
///     first_seed: 0,
///     device: USUAL_DEVICE.into(),
///     injected_bug: None,
///     threads: None,
///     system: Default::default(),
/// };
/// let answer = offpath_answers::torture(&request)?;
/// assert!(answer.held && answer.operations > 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where there is no such system or bug, where the device is refused or lacks what the system runs on, and where there are
/// not as many seeds.
pub fn torture(request: &TortureRequest) -> Result<TortureAnswer, Failure> {
    torture_of::<Shipped>(request, || {})
}

/// [`torture`] of a system of a registry; `played` is told of each seed, from any thread.
///
/// # Errors
/// As [`torture`].
pub fn torture_of<R: Registry>(
    request: &TortureRequest,
    played: impl Fn() + Sync,
) -> Result<TortureAnswer, Failure> {
    let torture = Torture { request, played };
    R::with(&request.subject, torture).unwrap_or_else(|| {
        let all: Vec<&str> = R::all().iter().map(|about| about.name).collect();
        Err(Failure::input(
            format!("there is no application `{}`", request.subject),
            format!("the applications are {}", all.join(", ")),
        ))
    })
}

/// What an error leads to.
fn refused(error: TortureError) -> Failure {
    let help = match &error {
        TortureError::UnknownBug { .. } => {
            "leave `--inject-bug` out to look for bugs that nobody injected".into()
        }
        TortureError::Missing { .. } => "`offpath device show NAME` lists what a system has".into(),
        TortureError::Nowhere { reason, .. } => {
            reason.help().map(|help| help.to_string()).unwrap_or_default()
        }
    };
    Failure::input(error.to_string(), help)
}

/// What is asked of the system that is visited.
struct Torture<'a, F> {
    request: &'a TortureRequest,
    played: F,
}

impl<F: Fn() + Sync> Visitor for Torture<'_, F> {
    type Out = Result<TortureAnswer, Failure>;

    fn visit<S: AppSystem>(self) -> Result<TortureAnswer, Failure> {
        let Torture { request, played } = self;
        let library = request.system.library()?;
        let system = request.system.load(&library, &request.device, &[])?;
        check_system(S::ABOUT, &Router::new(&system)?).map_err(refused)?;
        if request.seeds == 0 {
            return Err(Failure::input("no seed is to be played", "ask for at least 1 of them"));
        }
        // A wrong name is refused before anything runs.
        Case::<S>::of(request.first_seed, request.injected_bug.as_deref()).map_err(refused)?;
        let Some(end) = request.first_seed.checked_add(request.seeds) else {
            return Err(Failure::input(
                format!("seeds from {} on are fewer than {}", request.first_seed, request.seeds),
                "choose a smaller `--first-seed`",
            ));
        };
        let ended = play::<S>(request, &system, end, &played)?;
        Ok(TortureAnswer::of::<S>(request, &system, ended))
    }
}

/// What one seed gave: its tally and faults, or its failure.
type Played = Result<(Tally, Schedule), Failed>;

/// A seed that failed.
struct Failed {
    seed: u64,
    alternative: &'static str,
    reason: String,
    drawn: Schedule,
    shrunk: Schedule,
}

/// The kind of a fault, as a key of the answer.
fn kind(fault: &SystemFault) -> &'static str {
    match fault {
        SystemFault::Network { .. } => "network",
        SystemFault::Partition { .. } => "partition",
        SystemFault::Crash { .. } => "crash",
        SystemFault::Slow { .. } => "slow_station",
    }
}

/// Plays the seeds below `end`, by their number; some above the lowest that failed may be among them.
fn play<S: AppSystem>(
    request: &TortureRequest,
    system: &System,
    end: u64,
    told: &(impl Fn() + Sync),
) -> Result<BTreeMap<u64, Played>, Failure> {
    // Seeds are counted from the first: the last of all has none after it.
    let next = AtomicU64::new(0);
    // Every seed below the lowest that failed is played, so the answer does not depend on who was fast.
    let lowest = AtomicU64::new(u64::MAX);
    let ended: Mutex<BTreeMap<u64, Played>> = Mutex::default();
    let work = || -> Result<(), Failure> {
        let router = Arc::new(Router::new(system)?);
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let seed = request.first_seed.checked_add(at).filter(|seed| *seed < end);
            let Some(seed) = seed.filter(|seed| *seed <= lowest.load(Ordering::Relaxed)) else {
                return Ok(());
            };
            let case = Case::<S>::of(seed, request.injected_bug.as_deref()).map_err(refused)?;
            let played = match case.play(&router, &case.schedule) {
                Ok(tally) => Ok((tally, case.schedule)),
                Err(broken) => {
                    lowest.fetch_min(seed, Ordering::Relaxed);
                    Err(Failed {
                        seed,
                        alternative: case.alternative(),
                        reason: broken.to_string(),
                        shrunk: case.shrink(&router),
                        drawn: case.schedule,
                    })
                }
            };
            told();
            ended.lock().expect("no worker panics with it").insert(seed, played);
        }
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads(request.threads)).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker that panics is a bug"))
    })?;
    Ok(ended.into_inner().expect("no worker panics with it"))
}

impl TortureAnswer {
    /// What the seeds up to and with the first that failed show.
    fn of<S: AppSystem>(
        request: &TortureRequest,
        system: &System,
        ended: BTreeMap<u64, Played>,
    ) -> TortureAnswer {
        let mut answer = TortureAnswer {
            schema_version: SCHEMA_VERSION,
            subject: S::ABOUT.name,
            promise: S::ABOUT.promise,
            system: SystemAnswer::of(system),
            injected_bug: request.injected_bug.clone(),
            first_seed: request.first_seed,
            seeds_played: 0,
            operations: 0,
            operations_without_answer: 0,
            checksum_crc32: String::new(),
            faults: BTreeMap::new(),
            held: true,
            failed: None,
        };
        let mut checksum = crc32fast::Hasher::new();
        for played in ended.into_values() {
            answer.seeds_played += 1;
            match played {
                Ok((tally, schedule)) => {
                    answer.operations += tally.operations;
                    answer.operations_without_answer += tally.unacknowledged;
                    checksum.update(&tally.checksum.to_le_bytes());
                    for fault in &schedule.faults {
                        *answer.faults.entry(kind(fault)).or_default() += 1;
                    }
                }
                Err(failed) => {
                    answer.held = false;
                    answer.failed = Some(FailedSeedAnswer::of::<S>(request, failed));
                    break;
                }
            }
        }
        answer.checksum_crc32 = format!("{:08x}", checksum.finalize());
        answer
    }
}

impl FailedSeedAnswer {
    fn of<S: AppSystem>(request: &TortureRequest, failed: Failed) -> FailedSeedAnswer {
        let lines = |schedule: &Schedule| schedule.faults.iter().map(ToString::to_string).collect();
        let option = |name: &str, value: &str| [name.to_string(), value.to_string()];
        let mut words = Vec::from(option("--first-seed", &failed.seed.to_string()));
        words.extend(option("--seeds", "1"));
        if request.device != USUAL_DEVICE {
            words.extend(option("--device", &request.device));
        }
        words.extend(request.injected_bug.iter().flat_map(|bug| option("--inject-bug", bug)));
        words.extend([request.system.arguments(), request.system.profiles_arguments()].concat());
        FailedSeedAnswer {
            seed: failed.seed,
            alternative: failed.alternative,
            reason: failed.reason,
            faults: lines(&failed.drawn),
            shrunk_faults: lines(&failed.shrunk),
            again: format!("offpath torture {}{}", S::ABOUT.name, as_shell_words(&words)),
        }
    }
}
