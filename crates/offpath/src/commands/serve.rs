//! `offpath serve`: roles of an application that a run in another process uses.

use super::Context;
use super::run::{
    BackendOptions, LogOptions, StoreOptions, argument, kv_failed, log_failed, role_name, run_failed,
    unknown_system,
};
use crate::failure::Failure;
use crate::output::emit;
use clap::{Args, Subcommand, ValueEnum};
use offpath::apps::kv::{Home, Placement, Stop};
use offpath::fabric::RoleName;
use offpath::run::{LogServers, StoreServers, Surroundings, followers_of, homes_of, play};
use std::ffi::OsString;
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
    system: System,
}

#[derive(Subcommand, Debug)]
enum System {
    Kv(Box<KvOptions>),
    Replog(Box<ReplogOptions>),
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

/// The memory server of the key-value store, or one side of it
#[derive(Args, Debug)]
struct KvOptions {
    #[command(flatten)]
    backend: BackendOptions,
    #[command(flatten)]
    store: StoreOptions,
    /// Where other processes find this one
    #[arg(long, value_name = "IP:PORT", value_parser = crate::options::own_address)]
    listen: SocketAddr,
    /// The side that is served [default: those that the placement uses]
    #[arg(long, value_enum)]
    home: Option<Side>,
    /// Clients that the store has room for the inserts of
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u32>(1, 4096))]
    clients: u32,
}

/// A side of the memory server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Side {
    /// The host, with the records
    Host,
    /// The card, with index and cache
    Soc,
}

/// Backups of the replicated log, or its card
#[derive(Args, Debug)]
struct ReplogOptions {
    #[command(flatten)]
    backend: BackendOptions,
    #[command(flatten)]
    log: LogOptions,
    /// Where other processes find this one
    #[arg(long, value_name = "IP:PORT", value_parser = crate::options::own_address)]
    listen: SocketAddr,
    /// The roles that are served: `backup`, `backup:1`, ..., `soc`; may be given several times
    #[arg(long, value_name = "ROLE", default_value = "backup", value_parser = role_name)]
    role: Vec<RoleName>,
}

/// Serves until it is asked to stop.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    match &options.system {
        System::Kv(options) => store(options, context),
        System::Replog(options) => log(options, context),
        System::Unknown(arguments) => Err(unknown_system(arguments)),
    }
}

/// A request to stop that a signal makes.
fn stop_on_signal() -> Result<Stop, Failure> {
    let stop = Stop::default();
    let asked = stop.clone();
    ctrlc::set_handler(move || asked.ask())
        .map_err(|error| Failure::input(format!("signals cannot be handled: {error}"), ""))?;
    Ok(stop)
}

/// Says who is served where, before anybody connects.
fn announce(system: &str, names: &[RoleName], listen: SocketAddr) -> Result<(), Failure> {
    if listen.port() == 0 {
        let help = "name a port that clients can be told, as in `--listen 10.0.0.1:7000`";
        return Err(Failure::input(format!("nobody finds {listen}"), help));
    }
    let names: Vec<String> = names.iter().map(argument).collect();
    emit(&format!("serving {system} ({}) at {listen}\n", names.join(", ")))
}

fn store(options: &KvOptions, context: &Context) -> Result<ExitCode, Failure> {
    let workload = options.store.workload()?;
    let shape =
        options.store.options(&workload, options.clients, Placement::SplitOneSided, &options.backend)?;
    let homes = match options.home {
        Some(Side::Host) => vec![Home::Host],
        Some(Side::Soc) => vec![Home::Soc],
        None => homes_of(shape.placement),
    };
    let name = |home: &Home| RoleName::new(home.role(), 0);
    // The card connects to the host; the host to nobody.
    let needed = if homes == [Home::Soc] { vec![name(&Home::Host)] } else { Vec::new() };
    if !needed.is_empty() && !options.backend.connects() {
        let help = "add `--connect host=IP:PORT`";
        return Err(Failure::input("the card's side is served without its host", help));
    }
    let (place, _) = options.backend.open(context, &needed, Some(options.listen))?;
    announce("kv", &homes.iter().map(name).collect::<Vec<_>>(), options.listen)?;
    let parts = StoreServers { options: shape, homes, stop: stop_on_signal()? };
    let around = Surroundings { seed: options.backend.seed, directory: None, engine: None };
    let ended = play(place, &parts, &around).map_err(run_failed)?;
    for (name, answer) in ended.answers {
        let served = answer.map_err(kv_failed)?;
        let (connections, gets, changes) = (served.connections, served.gets, served.changes);
        emit(&format!("{}: {connections} connections, {gets} gets, {changes} changes\n", argument(&name)))?;
    }
    Ok(ExitCode::SUCCESS)
}

fn log(options: &ReplogOptions, context: &Context) -> Result<ExitCode, Failure> {
    let shape = options.log.options(&options.backend)?;
    let followers = followers_of(&shape);
    if let Some(strange) = options.role.iter().find(|role| !followers.contains(role)) {
        let known: Vec<String> = followers.iter().map(argument).collect();
        return Err(Failure::input(
            format!("this log has no role `{}`", argument(strange)),
            format!("it has {}; `--backups` and `--placement` say so", known.join(", ")),
        ));
    }
    // Each passes on to the next in the chain, and the card to the first.
    let next = |role: &RoleName| match shape.chain.iter().position(|name| name == role) {
        Some(position) => shape.chain.get(position + 1).cloned(),
        None => shape.chain.first().cloned(),
    };
    let elsewhere = |role: &RoleName| !options.role.contains(role);
    let needed: Vec<RoleName> = options.role.iter().filter_map(next).filter(elsewhere).collect();
    if let (Some(missing), false) = (needed.first(), options.backend.connects()) {
        let name = argument(missing);
        let help = format!("add `--connect {name}=IP:PORT`");
        return Err(Failure::input(format!("nothing says where `{name}` is, to pass entries on to"), help));
    }
    let (place, _) = options.backend.open(context, &needed, Some(options.listen))?;
    announce("replog", &options.role, options.listen)?;
    let parts = LogServers { options: shape, names: options.role.clone(), stop: stop_on_signal()? };
    let ended = play(place, &parts, &options.log.around(options.backend.seed)).map_err(run_failed)?;
    for (_, answer) in ended.answers {
        answer.map_err(log_failed)?;
    }
    Ok(ExitCode::SUCCESS)
}
