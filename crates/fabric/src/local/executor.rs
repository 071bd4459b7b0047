//! Tasks, timers and the clock, on one thread.

use super::{Clock, Core, device};
use crate::LocalBoxFuture;
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

type Ready = Arc<Mutex<VecDeque<u64>>>;

/// Puts its task at the end of the ready queue. `Waker` demands that it may cross threads.
struct TaskWaker {
    task: u64,
    queued: AtomicBool,
    ready: Ready,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<TaskWaker>) {
        if !self.queued.swap(true, Ordering::AcqRel) {
            self.ready.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
        }
    }
}

/// What a round takes by a manual clock.
const ROUND: Time = Time::from_ns(1);

/// A task: its future is away while it is polled.
pub(super) struct Task {
    role: usize,
    /// Whether this is the role's own function.
    function: bool,
    future: Option<LocalBoxFuture<()>>,
    waker: Arc<TaskWaker>,
}

/// What happens when an instant comes.
enum Timer {
    Wake(Waker),
    /// A queue pair tries again.
    Retry(u32),
}

pub(super) struct Executor {
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
    ready: Ready,
    timers: RefCell<BTreeMap<(Time, u64), Timer>>,
    next_timer: Cell<u64>,
    started: Instant,
    /// The time of a manual clock.
    manual: Option<Cell<Time>>,
}

impl Executor {
    pub(super) fn new(clock: Clock) -> Executor {
        Executor {
            tasks: RefCell::default(),
            next_task: Cell::new(0),
            ready: Ready::default(),
            timers: RefCell::default(),
            next_timer: Cell::new(0),
            started: Instant::now(),
            manual: (clock == Clock::Manual).then(|| Cell::new(Time::ZERO)),
        }
    }

    pub(super) fn now(&self) -> Time {
        match &self.manual {
            Some(time) => time.get(),
            None => Time::from_ns(self.started.elapsed().as_nanos() as u64),
        }
    }

    pub(super) fn spawn(&self, role: usize, function: bool, future: LocalBoxFuture<()>) {
        let task = self.next_task.replace(self.next_task.get() + 1);
        let queued = AtomicBool::new(false);
        let waker = Arc::new(TaskWaker { task, queued, ready: self.ready.clone() });
        waker.wake_by_ref();
        self.tasks.borrow_mut().insert(task, Task { role, function, future: Some(future), waker });
    }

    /// The tasks of a role, to be dropped by the caller when no cell is in use.
    pub(super) fn take_tasks_of(&self, role: usize) -> Vec<Task> {
        let mut tasks = self.tasks.borrow_mut();
        let own: Vec<_> = tasks.iter().filter(|(_, task)| task.role == role).map(|(id, _)| *id).collect();
        own.iter().filter_map(|id| tasks.remove(id)).collect()
    }

    fn add_timer(&self, at: Time, timer: Timer) -> u64 {
        let number = self.next_timer.replace(self.next_timer.get() + 1);
        self.timers.borrow_mut().insert((at, number), timer);
        number
    }

    /// Has the device look at a queue pair again after `delay`.
    pub(super) fn retry_after(&self, delay: Time, queue_pair: u32) {
        let at = Time::from_ps(self.now().ps().saturating_add(delay.ps()));
        self.add_timer(at, Timer::Retry(queue_pair));
    }
}

/// Waits for an instant.
pub(super) struct Sleep {
    core: Rc<Core>,
    at: Time,
    number: Option<u64>,
}

impl Sleep {
    pub(super) fn new(core: Rc<Core>, at: Time) -> Sleep {
        Sleep { core, at, number: None }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = &self.core.executor;
        // A timer fires in its turn, so that equal instants keep their order; also one whose instant has
        // passed, so that a task that sleeps until what has passed lets others run.
        match self.number {
            None => {
                let number = executor.add_timer(self.at, Timer::Wake(context.waker().clone()));
                self.number = Some(number);
                Poll::Pending
            }
            Some(number) => match executor.timers.borrow_mut().get_mut(&(self.at, number)) {
                None => Poll::Ready(()),
                Some(timer) => {
                    *timer = Timer::Wake(context.waker().clone());
                    Poll::Pending
                }
            },
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.core.executor.timers.borrow_mut().remove(&(self.at, number));
        }
    }
}

/// Lets every other ready task run once.
pub(super) fn yield_now() -> impl Future<Output = ()> + 'static {
    let mut yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// Every task waits and nothing is under way.
pub(super) struct Standstill;

/// Runs until the main roles ended. In each round the ready tasks run once, then each queue pair with
/// work executes one request, then due timers fire: nobody can starve another.
pub(super) fn run(core: &Rc<Core>) -> Result<(), Standstill> {
    let executor = &core.executor;
    loop {
        let count = executor.ready.lock().unwrap_or_else(PoisonError::into_inner).len();
        for _ in 0..count {
            poll_next(core);
            if core.roles.iter().all(|role| role.ended.get() || !role.main) {
                return Ok(());
            }
        }
        let worked = device::turn(core);
        // Without this, a loop that polls memory would keep a manual clock from ever reaching a timer.
        if let Some(time) = executor.manual.as_ref().filter(|_| count > 0 || worked) {
            time.set(time.get() + ROUND);
        }
        let fired = fire_due(core);
        if worked || fired || !executor.ready.lock().unwrap_or_else(PoisonError::into_inner).is_empty() {
            continue;
        }
        let Some((next, _)) = executor.timers.borrow().first_key_value().map(|(key, _)| *key) else {
            return Err(Standstill);
        };
        match &executor.manual {
            Some(time) => time.set(next),
            None => std::thread::sleep(Duration::from_nanos(
                next.saturating_sub(executor.now()).ps().div_ceil(1000),
            )),
        }
    }
}

fn poll_next(core: &Rc<Core>) {
    let executor = &core.executor;
    let Some(id) = executor.ready.lock().unwrap_or_else(PoisonError::into_inner).pop_front() else { return };
    let taken = executor.tasks.borrow_mut().get_mut(&id).and_then(|task| {
        task.waker.queued.store(false, Ordering::Release);
        task.future.take().map(|future| (future, task.waker.clone()))
    });
    let Some((mut future, waker)) = taken else { return };
    let waker = Waker::from(waker);
    if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if let Some(task) = executor.tasks.borrow_mut().get_mut(&id) {
            task.future = Some(future);
        }
        return;
    }
    drop(future);
    let task = executor.tasks.borrow_mut().remove(&id);
    if let Some(task) = task
        && task.function
    {
        core.end_role(task.role);
    }
}

fn fire_due(core: &Rc<Core>) -> bool {
    let now = core.executor.now();
    let mut fired = false;
    loop {
        let mut timers = core.executor.timers.borrow_mut();
        let Some(entry) = timers.first_entry().filter(|entry| entry.key().0 <= now) else { return fired };
        let timer = entry.remove();
        drop(timers);
        fired = true;
        match timer {
            Timer::Wake(waker) => waker.wake(),
            Timer::Retry(queue_pair) => core.device.borrow_mut().retry(queue_pair),
        }
    }
}
