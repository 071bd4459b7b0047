//! `offpath serve`: roles of a system that a run in another process uses.

use super::Context;
use super::backend::{BackendOptions, run_failed};
use super::systems::{self, Named, refused};
use crate::failure::Failure;
use crate::output::emit;
use clap::{ArgMatches, Args, FromArgMatches};
use offpath::apps::system::{AppSystem, Of, Registry, Serve, Visitor, role_text};
use offpath::apps::{Shipped, Stop};
use offpath::fabric::RoleName;
use offpath::run::play;
use std::net::SocketAddr;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  A memory server whose host and card are one process, and a client:
    offpath serve kv --on verbs:mlx5_0 --workload workloads/workloada --listen 10.0.0.1:7000
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada --connect 10.0.0.1:7000
  With the card's part on the card:
    offpath serve kv --home host --on verbs:mlx5_0 --workload workloads/workloada --listen 10.0.0.1:7000
    offpath serve kv --home soc --on verbs:mlx5_2 --workload workloads/workloada --listen 10.0.0.2:7000 \\
        --connect host=10.0.0.1:7000
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada --connect host=10.0.0.1:7000 \\
        --connect soc=10.0.0.2:7000
  A backup that keeps its log, and a primary:
    offpath serve replog --on verbs:mlx5_0 --listen 10.0.0.3:7000 --directory logs
    offpath run replog --on verbs:mlx5_0 --connect 10.0.0.3:7000

It serves until it is interrupted (SIGINT, SIGTERM), and then says what it did. Nobody is authenticated: serve on
networks whose every user may read and write what is served.";

/// Serve roles of an application to runs in other processes
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(subcommand_value_name = "SYSTEM", subcommand_help_heading = "Systems")]
pub struct Options {
    #[command(subcommand)]
    system: Named<true>,
}

/// Serves until it is asked to stop.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let Named { name, arguments } = &options.system;
    let serving = Serving { arguments, context };
    Shipped::with(name, serving).unwrap_or_else(|| Err(systems::unknown::<Shipped>(name)))
}

/// What the command line asks to serve.
struct Serving<'a> {
    arguments: &'a ArgMatches,
    context: &'a Context,
}

impl Visitor for Serving<'_> {
    type Out = Result<ExitCode, Failure>;

    fn visit<S: AppSystem>(self) -> Result<ExitCode, Failure> {
        let Serving { arguments, context } = self;
        let options = BackendOptions::from_arg_matches(arguments).map_err(systems::unparsed)?;
        let (setting, listen) = (options.setting(), systems::listens_at(arguments));
        let (given, stop) = (systems::given(S::ABOUT, Of::Serve, arguments), Stop::default());
        let served = S::Serve::of(&given, &setting, stop.clone()).map_err(refused)?;
        let (place, _) = options.open(context, &served.needs(), S::ABOUT.placed, Some(listen))?;
        announce(S::ABOUT.name, &served.names(), listen)?;
        ctrlc::set_handler(move || stop.ask())
            .map_err(|error| Failure::input(format!("signals cannot be handled: {error}"), ""))?;
        let (gave, _) = play(place, &served, setting.seed).map_err(run_failed)?;
        for line in served.said(gave) {
            emit(&format!("{}\n", line.map_err(refused)?))?;
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Says who is served where, before anybody connects.
fn announce(system: &str, names: &[RoleName], listen: SocketAddr) -> Result<(), Failure> {
    if listen.port() == 0 {
        let help = "name a port that clients can be told, as in `--listen 10.0.0.1:7000`";
        return Err(Failure::input(format!("nobody finds {listen}"), help));
    }
    let names: Vec<String> = names.iter().map(role_text).collect();
    emit(&format!("serving {system} ({}) at {listen}\n", names.join(", ")))
}
