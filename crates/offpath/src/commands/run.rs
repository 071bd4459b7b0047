//! `offpath run`: an application in a backend of the user's choice.

mod kv;
mod replog;

pub use kv::{StoreOptions, failed as kv_failed};
pub use replog::{LogOptions, failed as log_failed};

use super::Context;
use crate::failure::{BAD_INPUT, Failure, NEGATIVE};
use crate::output::{Screen, TableCell, place, round, short, system_line, tell_mode};
use clap::{Args, Subcommand, ValueEnum};
use offpath::fabric::{RoleName, RunError};
use offpath::quantity::Time;
use offpath::route::Router;
use offpath::run::{Busiest, OpenedBackend, TAIL};
use offpath::verbs::{Verbs, VerbsError, Waiting};
use serde::Serialize;
use std::ffi::OsString;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::str::FromStr;
use std::sync::Arc;

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
    system: System,
}

#[derive(Subcommand, Debug)]
enum System {
    Kv(Box<kv::Options>),
    Replog(Box<replog::Options>),
    #[command(external_subcommand)]
    Unknown(Vec<OsString>),
}

/// Runs the system and prints what its users saw.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    match &options.system {
        System::Kv(options) => kv::run(options, context),
        System::Replog(options) => replog::run(options, context),
        System::Unknown(arguments) => Err(unknown_system(arguments)),
    }
}

/// A system that is not implemented.
pub fn unknown_system(arguments: &[OsString]) -> Failure {
    let name = arguments.first().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let help = "the applications are `kv`, the key-value store, and `replog`, the replicated log";
    Failure::input(format!("there is no application `{name}`"), help)
}

/// A backend by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum On {
    /// The twin of a device.
    Twin(String),
    /// One process without a network.
    Local,
    /// The queue pairs of a device, or of the first that is active.
    Verbs(Option<String>),
}

impl FromStr for On {
    type Err = String;
    fn from_str(text: &str) -> Result<On, String> {
        match text.split_once(':') {
            None if text == "local" => Ok(On::Local),
            None if text == "verbs" => Ok(On::Verbs(None)),
            Some(("twin", device)) if !device.is_empty() => Ok(On::Twin(device.to_string())),
            Some(("verbs", device)) if !device.is_empty() => Ok(On::Verbs(Some(device.to_string()))),
            _ => Err("there are the backends `twin:DEVICE` (as in `twin:bluefield2`), `local`, `verbs` and \
                      `verbs:DEVICE` (as in `verbs:mlx5_0`)"
                .to_string()),
        }
    }
}

/// Where a role is found: `ADDRESS` for all that run elsewhere, or `ROLE=ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    role: Option<RoleName>,
    address: SocketAddr,
}

impl FromStr for Peer {
    type Err = String;
    fn from_str(text: &str) -> Result<Peer, String> {
        let (role, address) = match text.split_once('=') {
            Some((role, address)) => (Some(role_name(role)?), address),
            None => (None, text),
        };
        let address = address.parse().map_err(|_| {
            format!("`{address}` is not an address; write IP:PORT, as in `10.0.0.1:7000`, or ROLE=IP:PORT")
        })?;
        Ok(Peer { role, address })
    }
}

/// Reads `ROLE` or `ROLE:INSTANCE`.
pub fn role_name(text: &str) -> Result<RoleName, String> {
    let (role, instance) = text.split_once(':').unwrap_or((text, "0"));
    let instance =
        instance.parse().map_err(|_| format!("`{text}` is not a role; write `backup` or `backup:1`"))?;
    Ok(RoleName::new(role, instance))
}

/// How the process waits for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Wait {
    /// Polling: the least latency, and a core that does nothing else
    Polling,
    /// Sleeping until the device interrupts
    Events,
}

/// In which backend, and who else is there.
#[derive(Args, Debug)]
#[command(next_help_heading = "Backend")]
pub struct BackendOptions {
    /// The backend: twin:DEVICE, local, or verbs:DEVICE
    #[arg(long, value_name = "BACKEND")]
    pub on: On,
    /// What is drawn; the same seed draws the same
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    pub seed: u64,
    /// Where the roles that run in other processes are: IP:PORT, or ROLE=IP:PORT; may be given several
    /// times
    #[arg(long, value_name = "ADDRESS")]
    connect: Vec<Peer>,
    /// How long a silent peer is waited for before it is asked again; on verbs also the least
    /// acknowledgement timeout [default: 1 ms, and the device's]
    #[arg(long, value_name = "TIME", value_parser = crate::options::some_time)]
    pub patience: Option<Time>,
    /// How a process on verbs waits for completions [default: polling]
    #[arg(long, value_enum)]
    wait: Option<Wait>,
}

/// A backend as an answer names it.
#[derive(Clone, Debug, Serialize)]
pub struct BackendReport {
    backend: &'static str,
    device: Option<String>,
    testbed: Option<String>,
    mode: Option<String>,
    overlays: Vec<String>,
    #[serde(skip)]
    line: String,
}

impl BackendOptions {
    /// Whether other processes run the other roles.
    pub fn connects(&self) -> bool {
        !self.connect.is_empty()
    }

    /// Refuses what the backend cannot do.
    fn check(&self, context: &Context, across: bool) -> Result<(), Failure> {
        let system = &context.system;
        let changes = [
            (!system.set.is_empty(), "--set"),
            (!system.overlay.is_empty(), "--overlay"),
            (system.testbed.is_some(), "--testbed"),
            (system.mode.is_some(), "--mode"),
        ];
        if let (false, Some((_, option))) = (self.is_twin(), changes.iter().find(|(given, _)| *given)) {
            return Err(Failure::input(
                format!("{option} changes a profile, and only the twin has one"),
                "leave it out, or run `--on twin:DEVICE`",
            ));
        }
        if self.wait.is_some() && !matches!(self.on, On::Verbs(_)) {
            return Err(unread("--wait", "says how a process on verbs waits, and this backend is another"));
        }
        let apart = if across || self.connects() { "several processes" } else { return Ok(()) };
        match &self.on {
            On::Verbs(_) => Ok(()),
            On::Twin(_) => Err(Failure::input(
                format!("the twin simulates all roles in one process, not in {apart}"),
                "leave `--connect` out, or run `--on verbs:DEVICE`",
            )),
            On::Local => Err(Failure::input(
                format!("the local backend has no network, so its roles cannot be in {apart}"),
                "leave `--connect` out to run all roles in one process, or take `--on verbs:DEVICE`",
            )),
        }
    }

    /// Whether the backend is the twin.
    pub fn is_twin(&self) -> bool {
        matches!(self.on, On::Twin(_))
    }

    /// Opens the backend. `needed` are the roles that run elsewhere where `--connect` names them; `listen` is
    /// where this process is found, where others look for it.
    pub fn open(
        &self,
        context: &Context,
        needed: &[RoleName],
        listen: Option<SocketAddr>,
    ) -> Result<(OpenedBackend, BackendReport), Failure> {
        self.check(context, listen.is_some())?;
        let mut report = BackendReport {
            backend: "local",
            device: None,
            testbed: None,
            mode: None,
            overlays: Vec::new(),
            line: "one process without a network".to_string(),
        };
        match &self.on {
            On::Local => Ok((OpenedBackend::Local, report)),
            On::Twin(device) => {
                let system = context.system.load(&context.system.library()?, device, &[])?;
                tell_mode(&system);
                // The profile says best why it has no such endpoint, and what it has.
                for name in needed.iter().filter(|name| name.role != TAIL) {
                    system.role_endpoint(&name.role)?;
                }
                let router = Arc::new(Router::new(&system)?);
                report.backend = "twin";
                report.device = Some(system.device.clone());
                report.testbed = Some(system.testbed.clone());
                report.mode = Some(system.mode.to_string());
                report.overlays = system.overlays.clone();
                report.line = format!("the twin of {}", system_line(&system));
                Ok((OpenedBackend::Twin(router), report))
            }
            On::Verbs(device) => {
                let peers = self.peers(needed)?;
                let mut backend = Verbs::open(device.as_deref(), self.seed).map_err(device_refused)?;
                report.backend = "verbs";
                report.device = Some(backend.device().to_string());
                report.line = format!("queue pairs of {}", backend.device());
                if let Some(address) = listen {
                    backend = backend.listen_at(address);
                }
                if let Some(patience) = self.patience {
                    backend = backend.acknowledgement_floor(patience);
                }
                if self.wait == Some(Wait::Events) {
                    backend = backend.waiting(Waiting::Events);
                }
                for (name, address) in peers {
                    backend = backend.peer(&name.role, name.instance, address);
                }
                Ok((OpenedBackend::Verbs(Box::new(backend)), report))
            }
        }
    }

    /// The addresses of the roles that run elsewhere.
    fn peers(&self, needed: &[RoleName]) -> Result<Vec<(RoleName, SocketAddr)>, Failure> {
        let names = || needed.iter().map(argument).collect::<Vec<_>>().join(", ");
        for role in self.connect.iter().filter_map(|peer| peer.role.as_ref()) {
            if !needed.contains(role) {
                let roles = if needed.is_empty() { "none".to_string() } else { names() };
                return Err(Failure::input(
                    format!("this process looks for no role `{}`", argument(role)),
                    format!("the roles that it looks for: {roles}"),
                ));
            }
        }
        let address_of = |name: &RoleName| {
            let own = self.connect.iter().find(|peer| peer.role.as_ref() == Some(name));
            let found = own.or_else(|| self.connect.iter().find(|peer| peer.role.is_none()));
            found.map(|peer| (name.clone(), peer.address)).ok_or_else(|| {
                Failure::input(
                    format!("nothing says where `{}` is", argument(name)),
                    format!("add `--connect {}=IP:PORT`, or one address for all", argument(name)),
                )
            })
        };
        let across = self.connects();
        needed.iter().filter(|_| across).map(address_of).collect()
    }
}

/// A role as the command line names it.
pub fn argument(name: &RoleName) -> String {
    if name.instance == 0 { name.role.clone() } else { format!("{}:{}", name.role, name.instance) }
}

/// An option that nothing in this run reads: who gives it expects that it does something.
fn unread(option: &str, why: &str) -> Failure {
    Failure::input(format!("`{option}` {why}"), format!("leave `{option}` out, or change what it is for"))
}

/// What an error leads to.
fn device_refused(error: VerbsError) -> Failure {
    Failure::input(error.to_string(), "or run on the twin: `--on twin:DEVICE`")
}

/// What an error leads to.
pub fn run_failed(error: RunError) -> Failure {
    match error {
        RunError::Deadlock { .. } => {
            Failure::negative(error.to_string(), "please report it with the command line")
        }
        _ => Failure::input(error.to_string(), "`offpath device show NAME` lists what a system has"),
    }
}

/// An error of a system: wrong input where `is_input`, else a run that failed.
pub fn refused(error: &dyn std::fmt::Display, is_input: bool, help: &str) -> Failure {
    let code = if is_input { BAD_INPUT } else { NEGATIVE };
    if code == BAD_INPUT {
        Failure::input(error.to_string(), help)
    } else {
        Failure::negative(error.to_string(), help)
    }
}

/// From which share of its time on a station binds: beyond it a queue grows faster than it empties.
const BINDS_FROM: f64 = 0.95;
/// How many stations are shown.
const STATIONS: usize = 5;

/// A station of the twin on the machine where it was busiest.
#[derive(Debug, Serialize)]
pub struct Busy {
    station: String,
    role: String,
    machine: u32,
    machines: u64,
    utilization: f64,
}

impl Busy {
    /// The station and its machine, in words.
    fn place(&self) -> String {
        place(&self.station, &self.role, self.machine, self.machines)
    }
}

/// The busiest stations, and which of them binds.
fn busiest(busy: &[Busiest]) -> (Vec<Busy>, Option<String>) {
    let binding = busy.first().filter(|one| one.share >= BINDS_FROM).map(|one| one.station.clone());
    let of = |one: &Busiest| Busy {
        station: one.station.clone(),
        role: one.role.clone(),
        machine: one.machine,
        machines: one.machines,
        utilization: round(one.share),
    };
    (busy.iter().filter(|one| one.share > 0.0).take(STATIONS).map(of).collect(), binding)
}

/// What binds in a line, and the busiest stations below it.
fn stations_page(busy: &[Busy], binding: Option<&String>, screen: &Screen) -> String {
    let Some(first) = busy.first() else { return String::new() };
    let percent = |share: f64| format!("{}%", short(share * 100.0));
    let mut text = screen.heading(&match binding {
        Some(_) => format!("{} binds", first.place()),
        None => format!("Nothing binds; the busiest is {}, at {}", first.place(), percent(first.utilization)),
    });
    let rows = busy
        .iter()
        .map(|busy| vec![TableCell::Name(busy.place()), TableCell::Number(percent(busy.utilization))])
        .collect();
    text += &screen.table(&["station", "busy"], rows);
    text
}

fn us(time: Time) -> f64 {
    round(time.as_us())
}

fn ns(time: Time) -> f64 {
    round(time.ps() as f64 / 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn backends_and_peers_are_read() {
        assert_eq!("twin:bluefield2".parse(), Ok(On::Twin("bluefield2".into())));
        assert_eq!("verbs".parse(), Ok(On::Verbs(None)));
        assert_eq!("verbs:rxe0".parse(), Ok(On::Verbs(Some("rxe0".into()))));
        for wrong in ["twin", "twin:", "verbs:", "local:1", "cloud", ""] {
            assert!(wrong.parse::<On>().is_err_and(|error| error.contains("twin:DEVICE")), "{wrong}");
        }
        let address: SocketAddr = "10.0.0.1:7000".parse().expect("an address");
        assert_eq!("10.0.0.1:7000".parse(), Ok(Peer { role: None, address }));
        let role = Some(RoleName::new("backup", 1));
        assert_eq!("backup:1=10.0.0.1:7000".parse(), Ok(Peer { role, address }));
        for wrong in ["10.0.0.1", "host=", "backup:x=10.0.0.1:7000"] {
            assert!(wrong.parse::<Peer>().is_err(), "{wrong}");
        }
    }
}
