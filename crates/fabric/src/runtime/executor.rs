//! Timers, and the loop of a backend that goes in rounds.

use super::tasks::{Host, Tasks, Waiter};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Instant;

/// What says how late it is.
pub trait Clock: 'static {
    /// The time since the run began.
    fn now(&self) -> Time;

    /// A round went by in which something ran: a clock that only these move goes on.
    fn passed(&self) {}
}

/// The machine's monotonic clock.
#[derive(Clone, Copy, Debug)]
pub struct WallClock(Instant);

impl WallClock {
    /// A clock that begins now.
    pub fn new() -> WallClock {
        WallClock(Instant::now())
    }
}

impl Default for WallClock {
    fn default() -> WallClock {
        WallClock::new()
    }
}

impl Clock for WallClock {
    #[inline]
    fn now(&self) -> Time {
        Time::from_ns(self.0.elapsed().as_nanos() as u64)
    }
}

/// What happens when an instant comes.
enum Timer<E> {
    Wake(Waiter),
    /// Something of the backend's own.
    Event(E),
}

/// The timers of a backend whose own events are `E`, by its clock.
pub struct Timers<C, E> {
    clock: C,
    all: RefCell<BTreeMap<(Time, u64), Timer<E>>>,
    next: Cell<u64>,
}

impl<C: Clock, E> Timers<C, E> {
    /// No timers yet.
    pub fn new(clock: C) -> Timers<C, E> {
        Timers { clock, all: RefCell::default(), next: Cell::new(0) }
    }

    /// The clock.
    pub fn clock(&self) -> &C {
        &self.clock
    }

    fn add(&self, at: Time, timer: Timer<E>) -> u64 {
        let number = self.next.replace(self.next.get() + 1);
        self.all.borrow_mut().insert((at, number), timer);
        number
    }

    /// Has the backend told of `event` after `delay`.
    pub fn after(&self, delay: Time, event: E) {
        let at = Time::from_ps(self.clock.now().ps().saturating_add(delay.ps()));
        self.add(at, Timer::Event(event));
    }

    /// When the next timer fires.
    pub fn next(&self) -> Option<Time> {
        self.all.borrow().first_key_value().map(|((at, _), _)| *at)
    }
}

/// What a round brought.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// Tasks ran.
    pub ran: bool,
    /// The device did something, or timers fired, or tasks can go on: there is no reason to wait.
    pub goes_on: bool,
}

/// Every task waits and nothing will wake one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deadlock;

/// A backend that goes in rounds: what is its own of them.
pub trait Reactor: Host {
    /// Its clock.
    type Clock: Clock;
    /// What it has timers for, beside sleeps.
    type Event;

    /// Its timers.
    fn timers(&self) -> &Timers<Self::Clock, Self::Event>;

    /// Has the device do its next pieces of work; says whether there were any.
    fn turn(&self) -> bool;

    /// The instant of an event came.
    fn due(&self, event: Self::Event);

    /// A round is over: it may wait for what is next.
    fn rest(&self, round: Round) -> Result<(), Deadlock>;

    /// Whether the main roles ended.
    fn is_over(&self) -> bool;
}

/// Runs until the main roles ended. In each round the ready tasks run once, then the device has its turn,
/// then due timers fire: nobody can starve another.
pub fn run<R: Reactor>(reactor: &Rc<R>) -> Result<(), Deadlock> {
    let (tasks, timers) = (reactor.tasks(), reactor.timers());
    loop {
        let count = tasks.ready();
        for _ in 0..count {
            tasks.poll_next(reactor);
            if reactor.is_over() {
                return Ok(());
            }
        }
        let (ran, worked) = (count > 0, reactor.turn());
        if ran || worked {
            timers.clock.passed();
        }
        let fired = fire_due(&**reactor, tasks, timers);
        reactor.rest(Round { ran, goes_on: worked || fired || tasks.ready() > 0 })?;
    }
}

fn fire_due<R: Reactor>(reactor: &R, tasks: &Tasks<R::State>, timers: &Timers<R::Clock, R::Event>) -> bool {
    if timers.all.borrow().is_empty() {
        return false;
    }
    let now = timers.clock.now();
    let mut due = Vec::new();
    let mut all = timers.all.borrow_mut();
    while let Some(entry) = all.first_entry().filter(|entry| entry.key().0 <= now) {
        due.push(entry.remove());
    }
    // Waking may run foreign code, which may set timers.
    drop(all);
    let fired = !due.is_empty();
    for timer in due {
        match timer {
            Timer::Wake(waiter) => tasks.wake(waiter),
            Timer::Event(event) => reactor.due(event),
        }
    }
    fired
}

/// Waits for an instant.
pub struct Sleep<R: Reactor> {
    reactor: Rc<R>,
    at: Time,
    number: Option<u64>,
}

impl<R: Reactor> Sleep<R> {
    /// Resolves at `at`, or in the next round where that has passed.
    pub fn until(reactor: Rc<R>, at: Time) -> Sleep<R> {
        Sleep { reactor, at, number: None }
    }
}

impl<R: Reactor> Future for Sleep<R> {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let timers = self.reactor.timers();
        let waiter = self.reactor.tasks().waiter(context.waker());
        // A timer fires in its turn, so that equal instants keep their order; also one whose instant has
        // passed, so that a task that sleeps until what has passed lets others run.
        match self.number {
            None => {
                self.number = Some(timers.add(self.at, Timer::Wake(waiter)));
                Poll::Pending
            }
            Some(number) => match timers.all.borrow_mut().get_mut(&(self.at, number)) {
                None => Poll::Ready(()),
                Some(timer) => {
                    *timer = Timer::Wake(waiter);
                    Poll::Pending
                }
            },
        }
    }
}

impl<R: Reactor> Drop for Sleep<R> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            let timer = self.reactor.timers().all.borrow_mut().remove(&(self.at, number));
            drop(timer);
        }
    }
}
