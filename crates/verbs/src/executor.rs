//! One thread's rounds: ready tasks, completion queues, timers, sockets.

use crate::Core;
use offpath_fabric::runtime::{Clock, Deadlock, Host, Reactor, Round, Tasks, Timers, WallClock};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::os::fd::RawFd;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// What the loop looks at beside ready tasks and timers.
#[derive(Default)]
pub(crate) struct Looks {
    /// Who waits for which descriptor to be readable or writable.
    waiting: RefCell<Vec<(RawFd, i16, Waker)>>,
    /// How often the task that runs may still look for completions itself.
    left: Cell<u32>,
    /// When sockets were looked at last.
    looked: Cell<Time>,
    /// How many rounds have gone by without work.
    idle: Cell<u32>,
}

impl Looks {
    /// Whether the task that runs may look for completions itself: only so often, since a task that always
    /// finds one would let nobody else run.
    #[inline]
    pub fn may_look(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// Waits until a descriptor may be read (`libc::POLLIN`) or written (`libc::POLLOUT`). It may come
    /// early, so the caller tries and waits again.
    pub fn descriptor(&self, descriptor: RawFd, events: i16) -> impl Future<Output = ()> {
        let mut waited = false;
        poll_fn(move |context| {
            if std::mem::replace(&mut waited, true) {
                return Poll::Ready(());
            }
            self.waiting.borrow_mut().push((descriptor, events, context.waker().clone()));
            Poll::Pending
        })
    }

    /// Wakes those whose descriptors are ready, waiting up to `milliseconds` for one of them or of
    /// `others`; says whether one of `others` is.
    fn look_at_descriptors(&self, others: &[RawFd], milliseconds: i32) -> bool {
        let mut waiting = self.waiting.borrow_mut();
        let own = waiting.iter().map(|(fd, events, _)| libc::pollfd { fd: *fd, events: *events, revents: 0 });
        let others = others.iter().map(|fd| libc::pollfd { fd: *fd, events: libc::POLLIN, revents: 0 });
        let mut asked: Vec<_> = own.chain(others).collect();
        // SAFETY: the array is ours and its length is given.
        let count = unsafe { libc::poll(asked.as_mut_ptr(), asked.len() as libc::nfds_t, milliseconds) };
        if count <= 0 {
            return false;
        }
        let mut answers = asked.iter().map(|answer| answer.revents != 0);
        let woken: Vec<_> = waiting.extract_if(.., |_| answers.next() == Some(true)).collect();
        // Waking may run foreign code.
        drop(waiting);
        woken.into_iter().for_each(|(_, _, waker)| waker.wake());
        answers.any(|ready| ready)
    }
}

/// How often sockets are looked at while there is other work: a look is a system call.
const SOCKETS_EVERY: Time = Time::from_us(20);
/// How often a task may look for completions itself before the others have their turn.
const LOOKS: u32 = 64;
/// How many rounds without work are spent in a tight loop before other threads get the processor.
const TIGHT_ROUNDS: u32 = 200;
/// The longest sleep of a loop that waits for events, in milliseconds.
const SLEEP_MAX: u64 = 100;

impl Host for Core {
    type State = ();

    #[inline]
    fn tasks(&self) -> &Tasks<()> {
        &self.tasks
    }

    #[inline]
    fn resume(&self, _: ()) {
        self.looks.left.set(LOOKS);
    }

    #[inline]
    fn suspend(&self) {}

    fn function_ended(self: &Rc<Core>, role: usize) {
        self.end_role(role);
    }
}

impl Reactor for Core {
    type Clock = WallClock;
    type Event = Infallible;

    #[inline]
    fn timers(&self) -> &Timers<WallClock, Infallible> {
        &self.timers
    }

    #[inline]
    fn turn(&self) -> bool {
        self.engine.borrow_mut().turn(self.timers.clock())
    }

    fn due(&self, event: Infallible) {
        match event {}
    }

    #[inline]
    fn rest(&self, round: Round) -> Result<(), Deadlock> {
        let now = self.timers.clock().now();
        let idle = if round.ran || round.goes_on { 0 } else { self.looks.idle.get() + 1 };
        self.looks.idle.set(idle);
        if idle > 0 && self.engine.borrow().arm() {
            // Whatever came before the arming told nobody.
            if !self.turn() {
                self.look(self.sleep(now));
                self.looks.looked.set(self.timers.clock().now());
            }
        } else if now >= self.looks.looked.get() + SOCKETS_EVERY {
            self.look(0);
            self.looks.looked.set(now);
        }
        match idle {
            0 => {}
            1..TIGHT_ROUNDS => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
        Ok(())
    }

    #[inline]
    fn is_over(&self) -> bool {
        self.roles.iter().all(|role| role.ended.get() || !role.main)
    }
}

impl Core {
    fn look(&self, milliseconds: i32) {
        let descriptors = self.engine.borrow().descriptors();
        if self.looks.look_at_descriptors(&descriptors, milliseconds) {
            self.engine.borrow_mut().take_events(self.timers.clock());
        }
    }

    /// How long, in milliseconds, a loop may sleep when only events can bring work.
    fn sleep(&self, now: Time) -> i32 {
        let until = [self.timers.next(), self.engine.borrow().deadline()].into_iter().flatten().min();
        let span = until.map_or(SLEEP_MAX, |at| at.saturating_sub(now).ps().div_ceil(1_000_000_000));
        span.min(SLEEP_MAX) as i32
    }
}
