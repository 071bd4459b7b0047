//! `offpath torture`: seeded faults against a system on the twin.

use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::progress::Progress;
use clap::Args;
use clap::builder::PossibleValuesParser;
use offpath::answers::torture::{TortureAnswer, TortureRequest, USUAL_DEVICE, torture_of};
use offpath::apps::Shipped;
use offpath::apps::system::Registry;
use std::process::ExitCode;

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
    #[arg(long, default_value = USUAL_DEVICE)]
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

/// Plays the seeds and prints the verdict; the exit code says whether the promise held.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = TortureRequest {
        subject: options.subject.clone(),
        seeds: options.seeds,
        first_seed: options.first_seed,
        device: options.device.clone(),
        injected_bug: options.inject_bug.clone(),
        threads: options.threads,
        system: context.system.clone(),
    };
    let progress = Progress::counted(options.seeds, "seeds");
    let found = torture_of::<Shipped>(&request, || progress.advance())?;
    drop(progress);
    context.screen.emit(&answer(&found, context, TortureAnswer::text)?)?;
    Ok(if found.held { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}
