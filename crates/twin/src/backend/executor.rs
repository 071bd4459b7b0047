//! Tasks and sleeps in virtual time, on one thread.

use super::subject::{Subject, Tagged};
use super::{Core, LONGEST, ObservedStep};
use crate::{Marks, Start};
use offpath_fabric::Work;
use offpath_fabric::runtime::{Arena, ArenaSlot, Host, Tasks, Waiter};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A sleep of at least this and at most [`LATE_MAX`] is likely a time limit.
const LATE_MIN: Time = Time::from_us(50);
/// One longer limit that stays would keep all shorter ones out of the queue for limits.
const LATE_MAX: Time = Time::from_ms(100);

/// How many sleeps of a task that are due end at once within one instant. Virtual time needs no turns for
/// those that a program makes on its way, and one that makes no way must not keep others from running.
const DUE_AT_ONCE: u32 = 1000;

/// Sleeping tasks, and until when posting keeps one busy.
#[derive(Default)]
pub(super) struct Executor {
    tasks: Tasks<Time>,
    sleeps: RefCell<Arena<Waiter>>,
    /// Whose sleeps were due last, when, and how many of them ended at once.
    due: Cell<(Option<ArenaSlot>, Time, u32)>,
    /// Until when posting keeps the task busy that runs now.
    busy_until: Cell<Time>,
}

impl Executor {
    /// Keeps the running task busy for `time`, after what it posted before; gives when that begins.
    pub(super) fn charge(&self, now: Time, time: Time) -> Time {
        let start = self.busy_until.get().max(now);
        self.busy_until.set(start + time);
        start
    }

    /// Whether a sleep that is due may end at once, without letting others run. It is counted here alone, so
    /// that tasks that never ask for it pay nothing.
    fn may_end_at_once(&self, now: Time) -> bool {
        let task = self.tasks.running();
        let count = match self.due.get() {
            (last, at, count) if last == task && at == now => count + 1,
            _ => 1,
        };
        self.due.set((task, now, if count < DUE_AT_ONCE { count } else { 0 }));
        count < DUE_AT_ONCE
    }

    /// A sleep is over.
    pub(super) fn wake(&self, key: ArenaSlot) {
        let waiter = self.sleeps.borrow_mut().remove(key);
        if let Some(waiter) = waiter {
            self.tasks.wake(waiter);
        }
    }

    /// Whether somebody still waits for this sleep.
    pub(super) fn is_awaited(&self, key: ArenaSlot) -> bool {
        self.sleeps.borrow().get(key).is_some()
    }
}

impl Host for Core {
    /// Until when posting keeps the task busy.
    type State = Time;

    #[inline]
    fn tasks(&self) -> &Tasks<Time> {
        &self.executor.tasks
    }

    #[inline]
    fn resume(&self, busy_until: Time) {
        self.executor.busy_until.set(busy_until);
    }

    #[inline]
    fn suspend(&self) -> Time {
        self.executor.busy_until.get()
    }

    fn function_ended(self: &Rc<Core>, role: usize) {
        self.finish_role(role);
    }
}

/// What a sleep waits for.
enum Until {
    Instant(Time),
    Computed { role: usize, work: Work, label: Option<super::Label> },
    Performed { role: usize, planned: Rc<super::Planned>, label: Option<super::Label> },
}

/// Waits for an instant, or for the end of work on a processor.
pub(super) struct Sleep {
    core: Rc<Core>,
    until: Until,
    key: Option<ArenaSlot>,
}

impl Sleep {
    pub(super) fn until(core: Rc<Core>, at: Time) -> Sleep {
        Sleep { core, until: Until::Instant(at), key: None }
    }

    pub(super) fn compute(core: Rc<Core>, role: usize, work: Work, label: Option<super::Label>) -> Sleep {
        Sleep { core, until: Until::Computed { role, work, label }, key: None }
    }

    /// Until an operation is over that moves no bytes anybody could look at.
    pub(super) fn perform(
        core: Rc<Core>,
        role: usize,
        planned: Rc<super::Planned>,
        label: Option<super::Label>,
    ) -> Sleep {
        Sleep { core, until: Until::Performed { role, planned, label }, key: None }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let core = self.core.clone();
        let executor = &core.executor;
        if let Some(key) = self.key {
            return match executor.sleeps.borrow_mut().get_mut(key) {
                None => Poll::Ready(()),
                Some(waiter) => {
                    *waiter = executor.tasks.waiter(context.waker());
                    Poll::Pending
                }
            };
        }
        let now = core.now();
        match &self.until {
            &Until::Instant(at) if now >= at && executor.may_end_at_once(now) => return Poll::Ready(()),
            &Until::Instant(at) => {
                let key = executor.sleeps.borrow_mut().insert(executor.tasks.waiter(context.waker()));
                let mut engine = core.engine.borrow_mut();
                if (LATE_MIN..=LATE_MAX).contains(&at.saturating_sub(now)) {
                    let nobody = |tag| !executor.is_awaited(ArenaSlot::of(tag).1);
                    engine.limit(key.tag(Subject::Sleep), at, nobody);
                } else {
                    engine.timer(key.tag(Subject::Sleep), at);
                }
                drop(engine);
                self.key = Some(key);
            }
            Until::Performed { role, planned, label } => {
                let key = executor.sleeps.borrow_mut().insert(executor.tasks.waiter(context.waker()));
                core.observer.add_route(*label, planned, &core);
                let at = executor.charge(now, planned.route.post_time());
                let start = Start { at, is_posted: false, marks: Marks::of(&[]), retransmission: None };
                let instances = core.roles[*role].instances.clone();
                let route = planned.route.clone();
                core.engine.borrow_mut().start_as(key.tag(Subject::Sleep), route, instances, start);
                self.key = Some(key);
            }
            &Until::Computed { role, work, label } => {
                let state = &core.roles[role];
                let place = &core.places[state.place];
                let time = match work {
                    Work::Time(time) => time,
                    // More cycles than fit the longest wait at 10 GHz are cut before they are multiplied.
                    Work::Cycles(cycles) => place.frequency.time_for_cycles(cycles.min(1 << 51)),
                };
                let time = time.min(LONGEST);
                let key = executor.sleeps.borrow_mut().insert(executor.tasks.waiter(context.waker()));
                let start = executor.charge(now, Time::ZERO);
                core.observer.add_time(label, place.cpu, time);
                core.observer.did(label, || ObservedStep::Compute { endpoint: place.name.clone(), time });
                let instances = state.instances.clone();
                let mut engine = core.engine.borrow_mut();
                engine.compute_at(key.tag(Subject::Sleep), place.cpu, &instances, start, time, time);
                self.key = Some(key);
            }
        }
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waiter = self.core.executor.sleeps.borrow_mut().remove(key);
            drop(waiter);
        }
    }
}
