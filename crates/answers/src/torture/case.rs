//! Seeded faults against a system on the twin, and the check of what it kept.
//!
//! A [`Case`] is what one seed draws: what the system's users do, and what befalls them. Playing it is
//! deterministic, so a seed that fails fails again. What is drawn and how it is checked, each system says
//! itself ([`Trial`]).
//!
//! ```
//! use offpath_apps::kv::Kv;
//! use offpath_profile::{Library, SystemRequest};
//! use offpath_route::Router;
//! use offpath_answers::torture::Case;
//!
//! let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() })?;
//! let router = std::sync::Arc::new(Router::new(&system)?);
//! let case = Case::<Kv>::of(7, None)?;
//! let tally = case.play(&router, &case.schedule)?;
//! assert!(tally.operations > 100);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use offpath_apps::system::{About, AppSystem};
use offpath_apps::torture::{PROCESSOR, Schedule, SystemFault, Tally, Trial, Trouble, shrink};
use offpath_fabric::{Backend, RoleName};
use offpath_profile::ProfileError;
use offpath_quantity::Time;
use offpath_route::Router;
use offpath_twin::backend::{Crash, Crashing, SlowStation};
use offpath_twin::{Fault, FaultRule, Faults, Retransmission, TwinBackend};
use std::sync::Arc;

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

/// What one seed draws for a system.
#[derive(Clone, Debug)]
pub struct Case<S: AppSystem> {
    /// The seed.
    pub seed: u64,
    /// Its faults.
    pub schedule: Schedule,
    trial: S::Trial,
}

impl<S: AppSystem> Case<S> {
    /// The case of a seed, with a bug of [`About::bugs`] injected where one is named.
    pub fn of(seed: u64, bug: Option<&str>) -> Result<Case<S>, TortureError> {
        let position = |name: &str| {
            let known = S::ABOUT.bugs;
            known.iter().position(|own| *own == name).ok_or_else(|| TortureError::UnknownBug {
                subject: S::ABOUT.name,
                name: name.to_string(),
                known: known.join(", "),
            })
        };
        let trial = S::Trial::draw(seed, bug.map(position).transpose()?);
        Ok(Case { seed, schedule: trial.schedule(), trial })
    }

    /// The label of the alternative that the seed chose.
    pub fn alternative(&self) -> &'static str {
        self.trial.alternative()
    }

    /// Plays the case on a system's idle twin, with its own schedule or another, and checks what was
    /// kept. [`check_system`] says whether the system has what it needs.
    pub fn play(&self, router: &Arc<Router>, schedule: &Schedule) -> Result<Tally, Broken> {
        let backend = suffering(router, self.seed, schedule);
        let placed = S::ABOUT.placed.iter();
        let backend = placed.fold(backend, |backend, (role, at)| backend.with_placement(role, at));
        let seen = <S::Trial as Trial>::Seen::default();
        let run = backend.run(self.trial.roles(&seen));
        let run = run.map_err(|error| Broken(format!("the run stopped: {error}")))?;
        for outcome in run.outcomes {
            if let Some(Err(error)) = outcome.end.finished() {
                return Err(Broken(format!("{}: {error}", outcome.name)));
            }
        }
        self.trial.check(&seen).map_err(Broken)
    }

    /// A smallest schedule that the case still fails under, by leaving faults out and shortening them.
    pub fn shrink(&self, router: &Arc<Router>) -> Schedule {
        shrink(&self.schedule, |schedule| self.play(router, schedule).is_err())
    }
}

/// Whether a system has the machines, endpoints and stations that the trials of a subject use.
pub fn check_system(about: &'static About, router: &Router) -> Result<(), TortureError> {
    let system = router.system();
    for name in about.endpoints {
        system.role_endpoint(name).map_err(|reason| TortureError::Nowhere {
            subject: about.name,
            role: (*name).to_string(),
            reason: Box::new(reason),
        })?;
    }
    for (role, count) in about.machines {
        let found = system.machines.iter().find(|machine| machine.role == *role);
        if found.is_none_or(|machine| machine.count < *count) {
            return Err(TortureError::Missing {
                subject: about.name,
                what: format!("{count} machines `{role}`"),
                device: system.device.clone(),
                testbed: system.testbed.clone(),
            });
        }
    }
    Ok(())
}

/// The station of a processor that a schedule names by its role.
fn processor_of(station: &str, router: &Router) -> String {
    let role = station.strip_suffix(PROCESSOR).expect("schedules name processors");
    let (_, endpoint) =
        router.system().role_endpoint(role).expect("the system was checked for the parts of the menu");
    format!("{}{PROCESSOR}", endpoint.name)
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
                let fault = match trouble {
                    Trouble::Loss => Fault::Drop,
                    Trouble::Delay(by) => Fault::Delay(by),
                    Trouble::Duplication => Fault::Duplicate,
                    Trouble::Corruption => Fault::Corrupt,
                };
                let probability = f64::from(per_mille) / 1000.0;
                backend.with_faults(vec![FaultRule { from, until, between: None, probability, fault }])
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
