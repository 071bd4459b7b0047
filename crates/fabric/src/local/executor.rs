//! The clock of a local run, and its rounds.

use super::{Core, LocalClock, device};
use crate::runtime::{self, Deadlock, Host, Reactor, Round, Tasks, Timers, WallClock};
use offpath_quantity::Time;
use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

/// What a round takes by a manual clock.
const ROUND: Time = Time::from_ns(1);

/// The clock that a local run was given.
pub(crate) enum RunClock {
    Wall(WallClock),
    Manual(Cell<Time>),
}

impl RunClock {
    pub(super) fn new(clock: LocalClock) -> RunClock {
        match clock {
            LocalClock::Wall => RunClock::Wall(WallClock::new()),
            LocalClock::Manual => RunClock::Manual(Cell::new(Time::ZERO)),
        }
    }

    fn wait_until(&self, at: Time) {
        match self {
            RunClock::Wall(wall) => {
                let left = at.saturating_sub(runtime::Clock::now(wall));
                std::thread::sleep(Duration::from_nanos(left.ps().div_ceil(1000)));
            }
            RunClock::Manual(time) => time.set(at),
        }
    }
}

impl runtime::Clock for RunClock {
    fn now(&self) -> Time {
        match self {
            RunClock::Wall(wall) => wall.now(),
            RunClock::Manual(time) => time.get(),
        }
    }

    fn passed(&self) {
        // Without this, a loop that polls memory would keep a manual clock from ever reaching a timer.
        if let RunClock::Manual(time) = self {
            time.set(time.get() + ROUND);
        }
    }
}

impl Host for Core {
    type State = ();

    fn tasks(&self) -> &Tasks<()> {
        &self.tasks
    }

    fn resume(&self, _: ()) {}

    fn suspend(&self) {}

    fn function_ended(self: &Rc<Core>, role: usize) {
        self.end_role(role);
    }
}

impl Reactor for Core {
    type Clock = RunClock;
    /// A queue pair tries again.
    type Event = u32;

    fn timers(&self) -> &Timers<RunClock, u32> {
        &self.timers
    }

    fn turn(&self) -> bool {
        device::turn(self)
    }

    fn due(&self, queue_pair: u32) {
        self.device.borrow_mut().retry(queue_pair);
    }

    fn rest(&self, round: Round) -> Result<(), Deadlock> {
        if !round.goes_on {
            self.timers.clock().wait_until(self.timers.next().ok_or(Deadlock)?);
        }
        Ok(())
    }

    fn is_over(&self) -> bool {
        self.roles.iter().all(|role| role.ended.get() || !role.main)
    }
}
