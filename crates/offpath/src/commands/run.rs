//! `offpath run`: a system on a backend of the user's choice.

use super::backend::{BackendOptions, run_failed};
use super::systems::{self, Named, refused};
use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::progress::Progress;
use clap::{ArgMatches, Args, FromArgMatches};
use offpath::apps::Shipped;
use offpath::apps::system::{AppSystem, Of, Registry, SystemRun, Visitor};
use offpath::run::{RunAnswer, Stopped};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  What does the store reach on the card, by which placement, and what binds it?
    offpath run kv --on twin:bluefield2 --workload workloads/workloadc --clients 11 --sessions 16
  The same with the shares of the best mix of a plan:
    offpath plan designs/kv-ycsb-c.toml --format json > plan.json
    offpath run kv --on twin:bluefield2 --workload workloads/workloadc --mix plan.json
  The same code in one process without a network, and on real queue pairs:
    offpath run kv --on local --workload workloads/workloada
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada
  On two machines, the server's at 10.0.0.1:
    offpath serve kv --on verbs:mlx5_0 --workload workloads/workloada --listen 10.0.0.1:7000
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada --connect 10.0.0.1:7000
  Where does the host's time go when the card replicates its log?
    offpath run replog --on twin:bluefield2 --placement A2

docs/command-line.md says what the answers mean; docs/kv.md and lab/run how it runs without hardware.";

/// Run an application: on the twin, in one process, or on real queue pairs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(subcommand_value_name = "SYSTEM", subcommand_help_heading = "Systems")]
pub struct Options {
    #[command(subcommand)]
    system: Named<false>,
}

/// Runs the system and prints what its users saw.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    of::<Shipped>(&options.system, context)
}

/// Runs a system of a registry.
pub fn of<R: Registry>(named: &Named<false>, context: &Context) -> Result<ExitCode, Failure> {
    let running = Running { arguments: &named.arguments, context };
    R::with(&named.name, running).unwrap_or_else(|| Err(systems::unknown::<R>(&named.name)))
}

/// A run that the command line asks for.
struct Running<'a> {
    arguments: &'a ArgMatches,
    context: &'a Context,
}

impl Visitor for Running<'_> {
    type Out = Result<ExitCode, Failure>;

    fn visit<S: AppSystem>(self) -> Result<ExitCode, Failure> {
        let Running { arguments, context } = self;
        let options = BackendOptions::from_arg_matches(arguments).map_err(systems::unparsed)?;
        let setting = options.setting();
        let run = S::Run::of(&systems::given(S::ABOUT, Of::Run, arguments), &setting).map_err(refused)?;
        let (opened, backend) = options.open(context, &run.servers(), S::ABOUT.placed, None)?;
        run.opened(&backend, &setting);
        let progress = Progress::endless("running the system");
        let found = offpath::run::run::<S>(opened, backend, &run, &setting);
        drop(progress);
        let found = found.map_err(|stopped| match stopped {
            Stopped::Run(error) => run_failed(error),
            Stopped::Refused(refusal) => refused(refusal),
        })?;
        context.screen.emit(&answer(&found, context, RunAnswer::text)?)?;
        Ok(if found.holds { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
    }
}
