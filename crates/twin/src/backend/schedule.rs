//! Faults that come at their moments: crashes with restarts, and stations that are slow for a while.

use super::subject::{Subject, Tagged};
use super::{Core, LONGEST, TwinBackend, bad_roles};
use crate::seed::Seed;
use offpath_fabric::runtime::ArenaSlot;
use offpath_fabric::{RoleName, RunError};
use offpath_quantity::Time;
use offpath_route::StationId;
use std::rc::Rc;
use std::sync::Arc;

/// What crashes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Crashing {
    /// One instance of a role.
    Role(RoleName),
    /// A machine with every role on it: its kind, as `client`, and which of them.
    Machine(String, u32),
}

/// A crash at a moment.
///
/// Tasks, queue pairs and memory are gone, unsynced bytes of files in part. Peers notice only by
/// [`offpath_fabric::Status::RetryExceeded`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crash {
    /// What crashes.
    pub what: Crashing,
    /// When.
    pub at: Time,
    /// How long after that it starts anew, with the files that were left; `None` for never.
    pub restart_after: Option<Time>,
}

/// A station that is slow for a while.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowStation {
    /// The station's name, as `nic.transmit`.
    pub station: String,
    /// On which machine of its kind.
    pub instance: u32,
    /// How many times as long every visit keeps it.
    pub factor: f64,
    /// From when on.
    pub from: Time,
    /// Until when.
    pub until: Time,
}

/// An entry of the schedule of faults.
#[derive(Clone, Debug)]
pub(super) enum Scheduled {
    Crash(Vec<usize>, Option<(usize, u32)>, Option<Time>),
    Restart(Vec<usize>, Option<(usize, u32)>),
    Slow(StationId, Arc<[u32]>, f64),
}

impl TwinBackend {
    /// The schedule of faults, or what in it is not in this run.
    pub(super) fn schedule(&self, core: &Core) -> Result<(), RunError> {
        let machines = &self.router.system().machines;
        for slow in &self.slow {
            let station = self.router.station(&slow.station);
            let Some(station) = station.filter(|_| slow.factor > 0.0) else {
                return Err(bad_roles(format!(
                    "station `{}` cannot be made {} times as slow; name one of this system and a factor above 0",
                    slow.station, slow.factor
                )));
            };
            let machine = self.router.stations()[station.index()].machine;
            if u64::from(slow.instance) >= machines[machine].count {
                return Err(bad_roles(format!(
                    "station `{}` has {} instances and no instance {}; number them from 0",
                    slow.station, machines[machine].count, slow.instance
                )));
            }
            let mut instances = vec![0; machines.len()];
            instances[machine] = slow.instance;
            let instances: Arc<[u32]> = instances.into();
            core.schedule_at(Scheduled::Slow(station, instances.clone(), slow.factor), slow.from);
            core.schedule_at(Scheduled::Slow(station, instances, 1.0), slow.until);
        }
        for Crash { what, at, restart_after } in &self.crashes {
            let all = 0..core.roles.len();
            let (roles, machine): (Vec<_>, _) = match what {
                Crashing::Role(name) => (all.filter(|role| core.roles[*role].name == *name).collect(), None),
                Crashing::Machine(kind, instance) => {
                    let machine = machines.iter().position(|machine| machine.role == *kind);
                    let place = machine.map(|machine| (machine, *instance));
                    let at = |role: &usize| Some((core.roles[*role].machine, core.roles[*role].instance));
                    (all.filter(|role| at(role) == place).collect(), place)
                }
            };
            if roles.is_empty() {
                return Err(bad_roles(format!(
                    "{what:?} cannot crash, since nothing of it is in this run; correct its name"
                )));
            }
            core.schedule_at(Scheduled::Crash(roles, machine, *restart_after), *at);
        }
        Ok(())
    }
}

impl Core {
    pub(super) fn crash(self: &Rc<Core>, role: usize, restarts: bool) {
        let state = &self.roles[role];
        if state.ended.get() {
            return;
        }
        self.trace(role, || "crashes".into());
        state.crashed.set(true);
        state.restarts.set(restarts);
        self.end_role(role);
        let name = &state.name;
        let at = Seed::new(self.seed).child("crash").child(&name.to_string()).index(self.now().ps());
        self.files.borrow_mut().crash(role, &mut at.generator());
        if state.main && !restarts {
            self.running.set(self.running.get() - 1);
        }
    }

    pub(super) fn scheduled(self: &Rc<Core>, index: usize, start: &dyn Fn(usize)) {
        let entry = self.schedule.borrow()[index].clone();
        match entry {
            Scheduled::Crash(roles, machine, restart_after) => {
                if let Some((machine, instance)) = machine {
                    self.engine.borrow_mut().set_down(machine, instance, true);
                }
                let crashed: Vec<_> =
                    roles.into_iter().filter(|role| !self.roles[*role].ended.get()).collect();
                crashed.iter().for_each(|role| self.crash(*role, restart_after.is_some()));
                if let Some(after) = restart_after {
                    let at = self.now() + after.min(LONGEST);
                    self.schedule_at(Scheduled::Restart(crashed, machine), at);
                }
            }
            Scheduled::Restart(roles, machine) => {
                if let Some((machine, instance)) = machine {
                    self.engine.borrow_mut().set_down(machine, instance, false);
                }
                for role in roles {
                    let state = &self.roles[role];
                    state.ended.set(false);
                    state.crashed.set(false);
                    state.restarts.set(false);
                    self.trace(role, || "restarts".into());
                    start(role);
                }
            }
            Scheduled::Slow(station, instances, factor) => {
                self.engine.borrow_mut().slow_down(station, &instances, factor);
            }
        }
    }

    pub(super) fn schedule_at(&self, entry: Scheduled, at: Time) {
        let mut schedule = self.schedule.borrow_mut();
        let tag = ArenaSlot::plain(schedule.len()).tag(Subject::Scheduled);
        schedule.push(entry);
        self.engine.borrow_mut().timer(tag, at);
    }
}
