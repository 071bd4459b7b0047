//! What a run shares, and its loop: events of the engine, turns of the tasks.

use super::device::{self, Device};
use super::executor::Executor;
use super::files::Files;
use super::memory::Regions;
use super::network::Flying;
use super::observe::Observer;
use super::place::{Place, RoleState};
use super::plans::Plans;
use super::schedule::Scheduled;
use super::subject::{Subject, Tagged};
use crate::engine::{EventEngine, Occurrence, Retransmission};
use crate::window::Snapshot;
use offpath_fabric::Capabilities;
use offpath_fabric::runtime::{Arena, ArenaSlot, Asking, Host, Rendezvous};
use offpath_quantity::{Bytes, Time};
use offpath_route::Router;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

type Between = BTreeMap<(usize, usize), Arc<[u32]>>;

/// Everything that a run shares. Its parts are cells of their own, so that dropping a task or a region
/// can reach one of them while another is in use.
pub(crate) struct Core {
    pub(super) router: Arc<Router>,
    pub(super) seed: u64,
    pub(super) mtu: Bytes,
    /// Whether queue pairs carry no more than their NICs let one carry.
    pub(super) queue_pair_limits: bool,
    pub(super) network_delay: Time,
    pub(super) retransmission: Option<Retransmission>,
    pub(super) capabilities: Vec<Capabilities>,
    pub(super) places: Vec<Place>,
    pub(super) roles: Vec<RoleState>,
    pub(super) engine: RefCell<EventEngine>,
    /// The engine's time, readable while the engine is in use.
    pub(super) clock: Cell<Time>,
    pub(super) executor: Executor,
    pub(super) regions: Regions,
    pub(super) device: RefCell<Device>,
    pub(super) rendezvous: Rendezvous<Asking>,
    pub(super) flying: RefCell<Arena<Flying>>,
    pub(super) files: RefCell<Files>,
    pub(super) plans: RefCell<Plans>,
    /// The machine instances that take part between two roles.
    pub(super) between: RefCell<Between>,
    pub(super) schedule: RefCell<Vec<Scheduled>>,
    pub(super) observer: Observer,
    /// Main roles that have not ended.
    pub(super) running: Cell<usize>,
    /// When something last happened, beside timers that nobody waits for any more.
    pub(super) moved_at: Cell<Time>,
}

impl Core {
    pub(super) fn now(&self) -> Time {
        self.clock.get()
    }

    /// The NIC of the machine that a place is in.
    pub(super) fn nic_of(&self, place: usize) -> &offpath_profile::Nic {
        &self.router.system().machines[self.places[place].machine].nic
    }

    pub(super) fn trace(&self, role: usize, event: impl FnOnce() -> String) {
        self.observer.note(|| format!("{} {} {}", self.now().ps(), self.roles[role].name, event()));
    }

    /// Whether paths run between two roles: they are at two endpoints, which are not on two machines of
    /// one kind.
    pub(super) fn is_joined(&self, one: usize, other: usize) -> bool {
        let (a, b) = (&self.roles[one], &self.roles[other]);
        a.place != b.place && (a.machine != b.machine || a.instance == b.instance)
    }

    /// How long a message between two operating systems takes, where no route is modelled.
    pub(super) fn control_delay(&self, one: usize, other: usize) -> Time {
        let (a, b) = (&self.roles[one], &self.roles[other]);
        let same = (a.machine, a.instance) == (b.machine, b.instance);
        if same { Time::ZERO } else { self.network_delay }
    }

    pub(super) fn instances(&self, from: usize, to: usize) -> Arc<[u32]> {
        let mut between = self.between.borrow_mut();
        let found = between.entry((from, to)).or_insert_with(|| {
            let mut all = self.roles[from].instances.to_vec();
            let there = &self.roles[to];
            if there.machine != self.roles[from].machine {
                all[there.machine] = there.instance;
            }
            all.into()
        });
        found.clone()
    }

    /// A role's function returned.
    pub(super) fn finish_role(self: &Rc<Core>, role: usize) {
        self.trace(role, || "ends".into());
        if self.roles[role].main {
            self.running.set(self.running.get() - 1);
        }
        self.end_role(role);
    }

    /// Takes from the backend whatever belongs to a role.
    pub(super) fn end_role(&self, role: usize) {
        self.end_roles(|of| of == role);
    }

    /// The same of all roles that are meant: a run under load has many thousands of tasks, regions and queue pairs,
    /// which are gone through once.
    pub(super) fn end_roles(&self, is_meant: impl Fn(usize) -> bool) {
        let meant = || (0..self.roles.len()).filter(|role| is_meant(*role));
        meant().for_each(|role| self.roles[role].ended.set(true));
        // Tasks may hold handles whose drop reaches the other cells.
        drop(self.tasks().take(|owner| owner.role().is_some_and(&is_meant)));
        device::close_all_of(self, &is_meant);
        self.regions.end_all_of(&is_meant);
        meant().for_each(|role| self.rendezvous.remove_role(role));
    }

    pub(super) fn snapshot(&self) -> Snapshot {
        self.engine.borrow().snapshot()
    }

    pub(super) fn dispatch(self: &Rc<Core>, occurrence: Occurrence, start: &dyn Fn(usize)) {
        match occurrence {
            Occurrence::Marked { tag, mark, at } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().marked(self, key, mark, at),
                (Subject::Copy, key) => self.device.borrow_mut().copy_marked(key, mark, at),
                _ => {}
            },
            Occurrence::Done { tag } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().done(self, key),
                (Subject::Copy, key) => self.device.borrow_mut().copy_done(self, key),
                (Subject::Sleep, key) => {
                    if self.executor.is_awaited(key) {
                        self.executor.wake(key);
                    }
                }
                (_, key) => self.datagram_arrived(key),
            },
            Occurrence::Failed { tag, why } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().failed(self, key, why),
                (_, key) => self.datagram_lost(key),
            },
            Occurrence::Duplicated { tag, at } => match ArenaSlot::of(tag) {
                (Subject::Operation, key) => self.device.borrow_mut().duplicated(self, key, at),
                (_, key) => self.datagram_duplicated(key, at),
            },
            Occurrence::Timer { tag } => match ArenaSlot::of(tag) {
                (Subject::Sleep, key) => {
                    if !self.executor.is_awaited(key) {
                        return;
                    }
                    self.executor.wake(key);
                }
                (Subject::Scheduled, key) => self.scheduled(key.index(), start),
                (Subject::DatagramArrived, key) => self.datagram_arrived(key),
                (subject, key) => self.device.borrow_mut().timer(self, subject, key),
            },
        }
        self.moved_at.set(self.now());
    }

    /// Runs until the main roles ended; false where nothing can move any more.
    pub(super) fn execute(self: &Rc<Core>, start: &dyn Fn(usize)) -> bool {
        while self.running.get() > 0 {
            if self.tasks().poll_next(self) {
                continue;
            }
            let mut engine = self.engine.borrow_mut();
            let next = engine.next();
            self.clock.set(engine.now());
            drop(engine);
            match next {
                Some(occurrence) => self.dispatch(occurrence, start),
                None => return false,
            }
        }
        true
    }
}
