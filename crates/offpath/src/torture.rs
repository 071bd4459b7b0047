//! Seeded faults against the applications on the twin, and the check of what they kept.
//!
//! A [`Trial`] is what one seed draws: what the system's users do, and what befalls them. Playing it is
//! deterministic, so a seed that fails fails again.
//!
//! ```
//! use offpath::profile::{Library, SystemRequest};
//! use offpath::route::Router;
//! use offpath::torture::{Subject, Trial};
//!
//! let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() })?;
//! let router = std::sync::Arc::new(Router::new(&system)?);
//! let trial = Trial::of(Subject::Kv, 7, None)?;
//! let tally = trial.play(&router, &trial.schedule)?;
//! assert!(tally.operations > 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use offpath_apps::torture::{Menu, Schedule, SystemFault, Trouble, log, shrink, store};
use offpath_apps::{kv, replog};
use offpath_fabric::{Backend, RoleName};
use offpath_profile::ProfileError;
use offpath_quantity::Time;
use offpath_route::Router;
use offpath_twin::backend::{Crash, Crashing, SlowStation};
use offpath_twin::{Crossing, FaultRule, Faults, Retransmission, TwinBackend};
use std::sync::Arc;

/// A system that is put under faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// The key-value store: its histories are linearizable, and nothing becomes unreadable.
    Kv,
    /// The replicated log: nothing acknowledged is lost or reordered, replicas are equal byte for byte.
    Replog,
}

impl Subject {
    /// All of them, by the names that a command line uses.
    pub const NAMES: [(&str, Subject); 2] = [("kv", Subject::Kv), ("replog", Subject::Replog)];

    /// The name that a command line uses.
    pub fn name(self) -> &'static str {
        match self {
            Subject::Kv => "kv",
            Subject::Replog => "replog",
        }
    }

    /// What is promised.
    pub fn promise(self) -> &'static str {
        match self {
            Subject::Kv => "every history is linearizable, and every key can be read at the end",
            Subject::Replog => {
                "nothing acknowledged is lost or reordered, and replicas are equal byte for byte"
            }
        }
    }

    /// The bugs that can be injected in it, to see that they are found.
    pub fn bugs(self) -> Vec<String> {
        match self {
            Subject::Kv => kv::StoreBug::ALL.iter().map(|bug| kebab(&format!("{bug:?}"))).collect(),
            Subject::Replog => replog::LogBug::ALL.iter().map(|bug| kebab(&format!("{bug:?}"))).collect(),
        }
    }
}

/// `NoVersionCheck` as `no-version-check`.
fn kebab(name: &str) -> String {
    let mut text = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !text.is_empty() {
            text.push('-');
        }
        text.extend(letter.to_lowercase());
    }
    text
}

/// Why there is no trial, or no verdict.
#[derive(Clone, Debug, thiserror::Error)]
pub enum TortureError {
    /// The subject has no such bug.
    #[error("`{subject}` has no bug `{name}`; inject one of {known}")]
    UnknownBug {
        /// The subject's name.
        subject: &'static str,
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The system has no processor for a part of the subject.
    #[error("{subject} needs a processor for `{role}`: {reason}")]
    Nowhere {
        /// The subject's name.
        subject: &'static str,
        /// The part.
        role: String,
        /// Why there is none, or which of several is meant is not known.
        reason: Box<ProfileError>,
    },
    /// The system lacks what the subject runs on.
    #[error(
        "{subject} needs {what}, which {device} in testbed {testbed} does not have; choose another device or testbed"
    )]
    Missing {
        /// The subject's name.
        subject: &'static str,
        /// What is missing.
        what: String,
        /// The device.
        device: String,
        /// The testbed.
        testbed: String,
    },
}

/// A promise that did not hold.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Broken(String);

/// What a trial that held did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of the users: gets, puts and deletes, or writes to the log.
    pub operations: u64,
    /// Of those, how many ended in an error or were never acknowledged.
    pub unacknowledged: u64,
    /// The CRC-32 of what was seen, the store's history or the log's files: equal runs have equal ones.
    pub checksum: u32,
}

#[derive(Clone, Debug)]
enum Plan {
    Kv(store::StoreScenario),
    Replog(log::LogScenario),
}

/// What one seed draws.
#[derive(Clone, Debug)]
pub struct Trial {
    /// The seed.
    pub seed: u64,
    /// Its faults.
    pub schedule: Schedule,
    plan: Plan,
}

impl Trial {
    /// The trial of a seed, with a bug of [`Subject::bugs`] injected where one is named.
    pub fn of(subject: Subject, seed: u64, bug: Option<&str>) -> Result<Trial, TortureError> {
        let position = |name: &str| {
            let known = subject.bugs();
            known.iter().position(|own| own == name).ok_or_else(|| TortureError::UnknownBug {
                subject: subject.name(),
                name: name.to_string(),
                known: known.join(", "),
            })
        };
        let injected_bug = bug.map(position).transpose()?;
        Ok(match subject {
            Subject::Kv => {
                let mut plan = store::StoreScenario::of(seed);
                plan.options.injected_bug = injected_bug.map(|index| kv::StoreBug::ALL[index]);
                Trial { seed, schedule: Schedule::draw(seed, &kv_menu(&plan)), plan: Plan::Kv(plan) }
            }
            Subject::Replog => {
                // No path runs between two machines of one kind, so the second backup is on a client's.
                let chain = vec![RoleName::new("backup", 0), RoleName::new("tail", 0)];
                let mut plan = log::LogScenario::of(seed, chain);
                plan.options.injected_bug = injected_bug.map(|index| replog::LogBug::ALL[index]);
                let mut schedule = Schedule::draw(seed, &replog_menu(&plan));
                schedule.faults.extend(plan.loss());
                Trial { seed, schedule, plan: Plan::Replog(plan) }
            }
        })
    }

    /// Which alternative the seed chose.
    pub fn alternative(&self) -> String {
        match &self.plan {
            Plan::Kv(plan) => plan.options.placement.to_string(),
            Plan::Replog(plan) => plan.options.alternative.to_string(),
        }
    }

    /// Plays the trial on a system's idle twin, with its own schedule or another, and checks what was
    /// kept. [`check_system`] says whether the system has what it needs.
    pub fn play(&self, router: &Arc<Router>, schedule: &Schedule) -> Result<Tally, Broken> {
        let backend = suffering(router, self.seed, schedule);
        let stopped = |error: offpath_fabric::RunError| Broken(format!("the run stopped: {error}"));
        match &self.plan {
            Plan::Kv(plan) => {
                let seen = store::StoreHistory::default();
                let run = backend.run(store::roles(plan, &seen)).map_err(stopped)?;
                for outcome in run.outcomes {
                    if let Some(Err(error)) = outcome.end.finished() {
                        return Err(Broken(format!("{}: {error}", outcome.name)));
                    }
                }
                seen.check(plan).map_err(|violation| Broken(violation.to_string()))?;
                let history = seen.history();
                Ok(Tally {
                    operations: history.len() as u64,
                    unacknowledged: seen.failed(),
                    checksum: checksum(history.iter().map(|operation| format!("{operation:?}"))),
                })
            }
            Plan::Replog(plan) => {
                let seen = log::LogHistory::default();
                let backend = backend.with_placement("tail", "client");
                backend.run(log::roles(plan, &seen)).map_err(stopped)?;
                seen.check(plan).map_err(|violation| Broken(violation.to_string()))?;
                let (writes, acknowledged) = seen.counts();
                let files = seen.files();
                let named = files.iter().flat_map(|(role, files)| {
                    files.iter().flat_map(move |(name, bytes)| {
                        [format!("{role:?}{name}").into_bytes(), bytes.clone()]
                    })
                });
                Ok(Tally {
                    operations: writes as u64,
                    unacknowledged: (writes - acknowledged) as u64,
                    checksum: checksum(named),
                })
            }
        }
    }

    /// A smallest schedule that the trial still fails under, by leaving faults out and shortening them.
    pub fn shrink(&self, router: &Arc<Router>) -> Schedule {
        shrink(&self.schedule, |schedule| self.play(router, schedule).is_err())
    }
}

fn checksum(parts: impl Iterator<Item = impl AsRef<[u8]>>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.for_each(|part| hasher.update(part.as_ref()));
    hasher.finalize()
}

/// Whether a system has the machines, endpoints and stations that a subject's trials use.
pub fn check_system(subject: Subject, router: &Router) -> Result<(), TortureError> {
    let system = router.system();
    let missing = |what: &str| TortureError::Missing {
        subject: subject.name(),
        what: what.to_string(),
        device: system.device.clone(),
        testbed: system.testbed.clone(),
    };
    let mut endpoints = vec!["client", "host", "soc"];
    // What faults name: machines with enough instances.
    let mut machines = vec![("client", 5), ("server", 1)];
    if subject == Subject::Replog {
        endpoints.push("backup");
        machines = vec![("client", 1), ("server", 1), ("backup", 1)];
    }
    for name in endpoints {
        system.role_endpoint(name).map_err(|reason| TortureError::Nowhere {
            subject: subject.name(),
            role: name.to_string(),
            reason: Box::new(reason),
        })?;
    }
    for (role, count) in machines {
        let found = system.machines.iter().find(|machine| machine.role == role);
        if found.is_none_or(|machine| machine.count < count) {
            return Err(missing(&format!("{count} machines `{role}`")));
        }
    }
    Ok(())
}

fn machine(role: &str, instance: u32) -> (String, u32) {
    (role.to_string(), instance)
}

/// The processors that may be slow, as schedules name them; [`processor_of`] finds them in a system.
fn processors() -> Vec<String> {
    ["soc", "host"].map(|role| format!("{role}{PROCESSOR}")).to_vec()
}

const PROCESSOR: &str = ".cpu";

/// The station of a processor that a schedule names by its role.
fn processor_of(station: &str, router: &Router) -> String {
    let role = station.strip_suffix(PROCESSOR).expect("schedules name processors");
    let (_, endpoint) =
        router.system().role_endpoint(role).expect("the system was checked for the parts of the menu");
    format!("{}{PROCESSOR}", endpoint.name)
}

fn kv_menu(plan: &store::StoreScenario) -> Menu {
    Menu {
        horizon: plan.span(),
        partitions: [1, 2].map(|client| [machine("client", client), machine("server", 0)]).to_vec(),
        // A host that crashes loses its memory, which the store does not promise to survive.
        crashes: vec![machine("soc", 0), machine("client", 0), machine("client", 3)],
        stations: processors(),
        most: 5,
    }
}

fn replog_menu(plan: &log::LogScenario) -> Menu {
    let backup = || machine("backup", 0);
    Menu {
        horizon: plan.span(),
        partitions: vec![[backup(), machine("server", 0)], [backup(), machine("client", 0)]],
        crashes: ["host", "soc", "backup", "tail"].map(|role| machine(role, 0)).to_vec(),
        stations: processors(),
        most: 5,
    }
}

/// A twin that suffers a schedule.
fn suffering(router: &Arc<Router>, seed: u64, schedule: &Schedule) -> TwinBackend {
    let machine = |name: &str| {
        let found = router.system().machines.iter().position(|machine| machine.role == name);
        found.expect("the system was checked for the machines of the menu")
    };
    let mut backend = TwinBackend::on(router.clone(), seed)
        .with_retransmission(Retransmission { timeout: Time::from_us(50), retries: 7 });
    for fault in &schedule.faults {
        backend = match fault.clone() {
            SystemFault::Network { trouble, per_mille, from, until } => {
                let crossing = match trouble {
                    Trouble::Loss => Crossing::Drop,
                    Trouble::Delay(by) => Crossing::Delay(by),
                    Trouble::Duplication => Crossing::Duplicate,
                    Trouble::Corruption => Crossing::Corrupt,
                };
                let probability = f64::from(per_mille) / 1000.0;
                backend.with_faults(vec![FaultRule { from, until, between: None, probability, crossing }])
            }
            SystemFault::Partition { between: [(a, i), (b, j)], from, until } => {
                let between = [(machine(&a), i), (machine(&b), j)];
                backend.with_faults(vec![Faults::partition(from, until, between)])
            }
            SystemFault::Crash { role, instance, at, restart_after } => backend.with_crash(Crash {
                what: Crashing::Role(RoleName { role, instance }),
                at,
                restart_after: Some(restart_after),
            }),
            SystemFault::Slow { station, factor, from, until } => backend.with_slow_station(SlowStation {
                station: processor_of(&station, router),
                instance: 0,
                factor: f64::from(factor),
                from,
                until,
            }),
        };
    }
    backend
}
