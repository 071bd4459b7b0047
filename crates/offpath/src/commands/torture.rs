//! `offpath torture`: seeded faults against a system on the twin.

use super::Context;
use crate::failure::{Failure, NEGATIVE};
use crate::options::{SystemOptions, as_shell_words};
use crate::output::{Format, SCHEMA_VERSION, Screen, system_line};
use crate::progress::Progress;
use clap::Args;
use clap::builder::PossibleValuesParser;
use miette::Diagnostic;
use offpath::apps::Shipped;
use offpath::apps::system::{About, Registry, Visitor};
use offpath::apps::torture::{Schedule, SystemFault, Tally};
use offpath::profile::System;
use offpath::route::Router;
use offpath::torture::{Case, TortureError, check_system};
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

const EXAMPLES: &str = "\
Examples:
  offpath torture kv --seeds 10000                       crashes, partitions, loss against the store
  offpath torture replog --seeds 10000                   and against the replicated log
  offpath torture kv --first-seed 4711 --seeds 1         one seed again, exactly as it was
  offpath torture kv --inject-bug no-version-check            a bug that must be found

Each seed draws a load and a schedule of faults. What was seen is judged: the store's histories by a
linearizability checker, the log by what its replicas kept. A seed that fails is printed with the
smallest schedule that still fails. The same seeds give the same answer on any number of threads.";

/// Put an application under seeded faults on the twin, and check what it kept
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[arg(help = subjects(), value_parser = PossibleValuesParser::new(names()))]
    subject: String,
    /// How many seeds are played
    #[arg(long, default_value_t = 1000, value_parser = crate::options::whole::<u64>(1, u64::MAX))]
    seeds: u64,
    /// The first of them
    #[arg(long, default_value_t = 0, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    first_seed: u64,
    /// The device that the system runs on: a name, or a .toml file
    #[arg(long, default_value = "bluefield2")]
    device: String,
    /// Inject a bug, to see that it is found; a wrong name lists them
    #[arg(long, value_name = "BUG")]
    inject_bug: Option<String>,
    /// Threads [default: one for each core]
    #[arg(long, value_parser = crate::options::whole::<u16>(1, 65_535))]
    threads: Option<u16>,
}

fn names() -> impl Iterator<Item = &'static str> {
    Shipped::all().into_iter().map(|about| about.name)
}

fn subjects() -> String {
    format!("The system: {}", names().collect::<Vec<_>>().join(" or "))
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

/// Plays the seeds and prints the verdict; the exit code says whether the promise held.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let torture = Torture { options, context };
    Shipped::with(&options.subject, torture).expect("clap accepts names of systems alone")
}

/// What the command line asks for.
struct Torture<'a> {
    options: &'a Options,
    context: &'a Context,
}

impl Visitor for Torture<'_> {
    type Out = Result<ExitCode, Failure>;

    fn visit<S: offpath::apps::system::AppSystem>(self) -> Result<ExitCode, Failure> {
        let Torture { options, context } = self;
        let library = context.system.library()?;
        let system = context.system.load(&library, &options.device, &[])?;
        check_system(S::ABOUT, &Router::new(&system)?).map_err(refused)?;
        // A wrong name is refused before anything runs.
        Case::<S>::of(options.first_seed, options.inject_bug.as_deref()).map_err(refused)?;
        let Some(end) = options.first_seed.checked_add(options.seeds) else {
            return Err(Failure::input(
                format!("seeds from {} on are fewer than {}", options.first_seed, options.seeds),
                "choose a smaller `--first-seed`",
            ));
        };
        let verdict = play::<S>(options, &system, end)?;
        context.screen.emit(&match context.screen.format {
            Format::Json => context.screen.json(&Report::of(S::ABOUT, options, &system, &verdict))?,
            _ => page(S::ABOUT, (options, &context.system), &system, &verdict, &context.screen),
        })?;
        Ok(if verdict.failed.is_some() { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
    }
}

/// What the seeds up to and with the first that failed show.
struct Verdict {
    played: u64,
    tally: Tally,
    faults: BTreeMap<&'static str, u64>,
    failed: Option<Failed>,
}

/// What one seed gave: its tally and faults, or its failure.
type Played = Result<(Tally, Schedule), Failed>;

/// The first seed that failed.
struct Failed {
    seed: u64,
    alternative: &'static str,
    reason: String,
    drawn: Schedule,
    shrunk: Schedule,
}

fn kind(fault: &SystemFault) -> &'static str {
    match fault {
        SystemFault::Network { .. } => "network",
        SystemFault::Partition { .. } => "partition",
        SystemFault::Crash { .. } => "crash",
        SystemFault::Slow { .. } => "slow_station",
    }
}

fn play<S: offpath::apps::system::AppSystem>(
    options: &Options,
    system: &System,
    end: u64,
) -> Result<Verdict, Failure> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cores, usize::from);
    let progress = Progress::counted(options.seeds, "seeds");
    // Seeds are counted from the first: the last of all has none after it.
    let next = AtomicU64::new(0);
    // Every seed below the lowest that failed is played, so the answer does not depend on who was fast.
    let lowest = AtomicU64::new(u64::MAX);
    let ended: Mutex<BTreeMap<u64, Played>> = Mutex::default();
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                let (next, lowest, ended, progress) = (&next, &lowest, &ended, &progress);
                scope.spawn(move || -> Result<(), Failure> {
                    let router = Arc::new(Router::new(system)?);
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed);
                        let seed = options.first_seed.checked_add(at).filter(|seed| *seed < end);
                        let Some(seed) = seed.filter(|seed| *seed <= lowest.load(Ordering::Relaxed)) else {
                            return Ok(());
                        };
                        let case = Case::<S>::of(seed, options.inject_bug.as_deref()).map_err(refused)?;
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
                        progress.advance();
                        ended.lock().expect("no worker panics with it").insert(seed, played);
                    }
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| worker.join().expect("a worker that panics is a bug"))
    })?;
    drop(progress);
    let mut verdict = Verdict { played: 0, tally: Tally::default(), faults: BTreeMap::new(), failed: None };
    let mut checksum = crc32fast::Hasher::new();
    for (_, played) in ended.into_inner().expect("no worker panics with it") {
        verdict.played += 1;
        match played {
            Ok((tally, schedule)) => {
                verdict.tally.operations += tally.operations;
                verdict.tally.unacknowledged += tally.unacknowledged;
                checksum.update(&tally.checksum.to_le_bytes());
                for fault in &schedule.faults {
                    *verdict.faults.entry(kind(fault)).or_default() += 1;
                }
            }
            Err(failed) => {
                verdict.failed = Some(failed);
                break;
            }
        }
    }
    verdict.tally.checksum = checksum.finalize();
    Ok(verdict)
}

fn page(
    about: &About,
    (options, chosen): (&Options, &SystemOptions),
    system: &System,
    verdict: &Verdict,
    screen: &Screen,
) -> String {
    let last = options.first_seed + verdict.played - 1;
    let mut text = format!(
        "torture {} on {}: seeds {} to {last}\n",
        about.name,
        system_line(system),
        options.first_seed
    );
    if let Some(name) = &options.inject_bug {
        text += &format!("injected bug: {name}\n");
    }
    let faults: Vec<String> = verdict
        .faults
        .iter()
        .map(|(kind, count)| {
            let kind = match *kind {
                "network" => "spells of loss, delay, duplication or corruption",
                "partition" => "partitions",
                "crash" => "crashes",
                _ => "slow stations",
            };
            format!("{count} {kind}")
        })
        .collect();
    let Tally { operations, unacknowledged, checksum } = verdict.tally;
    text += &format!(
        "{operations} operations, {unacknowledged} of them ended without an answer; checksum {checksum:08x}\n"
    );
    if !faults.is_empty() {
        text += &format!("{}\n", faults.join(", "));
    }
    match &verdict.failed {
        None => text += &format!("held: {}\n", about.promise),
        Some(failed) => {
            text += &format!("BROKEN at seed {} ({}): {}\n", failed.seed, failed.alternative, failed.reason);
            text += &match failed.shrunk.faults.len() {
                0 => "it fails without any fault\n".to_string(),
                count => format!("shrunk from {} faults to {count}:\n", failed.drawn.faults.len()),
            };
            if !failed.shrunk.faults.is_empty() {
                text += &screen.verbatim(&failed.shrunk.to_string());
            }
            let option = |name: &str, value: &str| [name.to_string(), value.to_string()];
            let mut words = Vec::from(option("--first-seed", &failed.seed.to_string()));
            words.extend(option("--seeds", "1"));
            if options.device != "bluefield2" {
                words.extend(option("--device", &options.device));
            }
            words.extend(options.inject_bug.iter().flat_map(|bug| option("--inject-bug", bug)));
            words.extend([chosen.arguments(), chosen.profiles_arguments()].concat());
            text += &format!("again: offpath torture {}{}\n", about.name, as_shell_words(&words));
        }
    }
    text
}

#[derive(Serialize)]
struct FailedReport {
    seed: u64,
    alternative: &'static str,
    reason: String,
    faults: Vec<String>,
    shrunk_faults: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    subject: &'static str,
    promise: &'static str,
    device: String,
    testbed: String,
    mode: String,
    overlays: Vec<String>,
    injected_bug: Option<String>,
    first_seed: u64,
    seeds_played: u64,
    operations: u64,
    operations_without_answer: u64,
    checksum_crc32: String,
    faults: BTreeMap<&'static str, u64>,
    held: bool,
    failed: Option<FailedReport>,
}

impl Report {
    fn of(about: &About, options: &Options, system: &System, verdict: &Verdict) -> Report {
        let lines = |schedule: &Schedule| schedule.faults.iter().map(ToString::to_string).collect();
        Report {
            schema_version: SCHEMA_VERSION,
            subject: about.name,
            promise: about.promise,
            device: system.device.clone(),
            testbed: system.testbed.clone(),
            mode: system.mode.to_string(),
            overlays: system.overlays.clone(),
            injected_bug: options.inject_bug.clone(),
            first_seed: options.first_seed,
            seeds_played: verdict.played,
            operations: verdict.tally.operations,
            operations_without_answer: verdict.tally.unacknowledged,
            checksum_crc32: format!("{:08x}", verdict.tally.checksum),
            faults: verdict.faults.clone(),
            held: verdict.failed.is_none(),
            failed: verdict.failed.as_ref().map(|failed| FailedReport {
                seed: failed.seed,
                alternative: failed.alternative,
                reason: failed.reason.clone(),
                faults: lines(&failed.drawn),
                shrunk_faults: lines(&failed.shrunk),
            }),
        }
    }
}
