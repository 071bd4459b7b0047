//! The backends that a system is run in, as the command line names them.

use super::Context;
use super::systems::refused;
use crate::failure::Failure;
use crate::output::{SCHEMA_VERSION, system_line, tell, tell_mode};
use clap::{Args, ValueEnum};
use offpath::apps::system::{BackendKind, BackendReport, Refusal, RunSetting, role_name, role_text};
use offpath::fabric::{RoleName, RunError};
use offpath::quantity::Time;
use offpath::route::Router;
use offpath::run::OpenedBackend;
use offpath::verbs::{Verbs, VerbsError, Waiting};
use offpath_terminal::options::SystemOptions;
use std::net::SocketAddr;
use std::str::FromStr;
use std::sync::Arc;

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

/// A backend for a command that is about a card, which the local one has not: it is no choice there.
pub(super) fn with_a_card(text: &str) -> Result<On, String> {
    text.parse().map_err(|_: String| {
        "there are the backends `twin:DEVICE` (as in `twin:bluefield2`), `verbs` and `verbs:DEVICE` (as in `verbs:mlx5_0`)"
            .to_string()
    })
}

/// Where a role is found: `ADDRESS` for all that run elsewhere, or `ROLE=ADDRESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Peer {
    pub(super) role: Option<RoleName>,
    pub(super) address: SocketAddr,
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
    on: On,
    /// What is drawn; the same seed draws the same
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
    /// Where the roles that run in other processes are: IP:PORT, or ROLE=IP:PORT; may be given several
    /// times
    #[arg(long, value_name = "ADDRESS")]
    connect: Vec<Peer>,
    /// How long a silent peer is waited for before it is asked again; on verbs also the least
    /// acknowledgement timeout [default: 1 ms, and the device's]
    #[arg(long, value_name = "TIME", value_parser = crate::options::some_time)]
    patience: Option<Time>,
    /// How a process on verbs waits for completions [default: polling]
    #[arg(long, value_enum)]
    wait: Option<Wait>,
}

/// Refuses what changes a profile where the backend has none.
pub(super) fn refuse_profile_changes(system: &SystemOptions, next_step: &'static str) -> Result<(), Failure> {
    let changes = [
        (!system.set.is_empty(), "--set"),
        (!system.overlay.is_empty(), "--overlay"),
        (system.testbed.is_some(), "--testbed"),
        (system.mode.is_some(), "--mode"),
    ];
    match changes.into_iter().find(|(given, _)| *given) {
        Some((_, option)) => {
            Err(Failure::input(format!("{option} changes a profile, and only the twin has one"), next_step))
        }
        None => Ok(()),
    }
}

impl BackendOptions {
    /// Whether other processes run the other roles.
    fn connects(&self) -> bool {
        !self.connect.is_empty()
    }

    /// Refuses what the backend cannot do.
    fn check(&self, context: &Context, across: bool) -> Result<(), Failure> {
        if !self.is_twin() {
            refuse_profile_changes(&context.system, "leave it out, or run `--on twin:DEVICE`")?;
        }
        if self.wait.is_some() && !matches!(self.on, On::Verbs(_)) {
            let why = "says how a process on verbs waits, and this backend is another";
            return Err(refused(Refusal::unread("--wait", why)));
        }
        let why = match &self.on {
            _ if !across && !self.connects() => return Ok(()),
            On::Verbs(_) => return Ok(()),
            On::Twin(_) => "the twin simulates all roles in one process, not in several",
            On::Local => "the local backend has no network, so its roles cannot be in several processes",
        };
        let help = match across {
            true => "serve `--on verbs:DEVICE`; `offpath run` has all roles in one process",
            false => "leave `--connect` out to run all roles in one process, or take `--on verbs:DEVICE`",
        };
        Err(Failure::input(why, help))
    }

    /// Whether the backend is the twin.
    fn is_twin(&self) -> bool {
        matches!(self.on, On::Twin(_))
    }

    /// What a system is told of the backend before it is opened.
    pub fn setting(&self) -> RunSetting<'static> {
        RunSetting {
            backend: match self.on {
                On::Local => BackendKind::Local,
                On::Twin(_) => BackendKind::Twin,
                On::Verbs(_) => BackendKind::Verbs,
            },
            connects: self.connects(),
            patience: self.patience,
            seed: self.seed,
            plan_version: SCHEMA_VERSION,
            tell: &tell,
        }
    }

    /// Opens the backend. `needed` are the roles that run elsewhere where `--connect` names them,
    /// `placed` those that the twin runs on processors of other names; `listen` is where this process is found, where others look for it.
    pub fn open(
        &self,
        context: &Context,
        needed: &[RoleName],
        placed: &[(&str, &str)],
        listen: Option<SocketAddr>,
    ) -> Result<(OpenedBackend, BackendReport), Failure> {
        self.check(context, listen.is_some())?;
        let mut report = BackendReport {
            backend: "local",
            line: "one process without a network".to_string(),
            ..BackendReport::default()
        };
        match &self.on {
            On::Local => Ok((OpenedBackend::Local, report)),
            On::Twin(device) => {
                let system = context.system.load(&context.system.library()?, device, &[])?;
                tell_mode(&system);
                // The profile says best why it has no such endpoint, and what it has.
                for name in needed.iter().filter(|name| placed.iter().all(|(role, _)| *role != name.role)) {
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
        let names = || needed.iter().map(role_text).collect::<Vec<_>>().join(", ");
        for role in self.connect.iter().filter_map(|peer| peer.role.as_ref()) {
            if !needed.contains(role) {
                let roles = if needed.is_empty() { "none".to_string() } else { names() };
                return Err(Failure::input(
                    format!("this process looks for no role `{}`", role_text(role)),
                    format!("the roles that it looks for: {roles}"),
                ));
            }
        }
        let address_of = |name: &RoleName| {
            let own = self.connect.iter().find(|peer| peer.role.as_ref() == Some(name));
            let found = own.or_else(|| self.connect.iter().find(|peer| peer.role.is_none()));
            found.map(|peer| (name.clone(), peer.address)).ok_or_else(|| {
                Failure::input(
                    format!("nothing says where `{}` is", role_text(name)),
                    format!("add `--connect {}=IP:PORT`, or one address for all", role_text(name)),
                )
            })
        };
        let across = self.connects();
        needed.iter().filter(|_| across).map(address_of).collect()
    }
}

/// What an error leads to.
pub(super) fn device_refused(error: VerbsError) -> Failure {
    Failure::input(error.to_string(), "or take the twin: `twin:DEVICE`")
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
