//! Tasks and sleeps in virtual time, on one thread.

use super::arena::{Arena, Key, Subject};
use super::{Core, Deed, LONGEST};
use offpath_fabric::{LocalBoxFuture, Work};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// A sleep of at least this and at most [`LATE_MAX`] is likely a time limit.
const LATE_MIN: Time = Time::from_us(50);
/// One longer limit that stays would keep all shorter ones out of the queue for limits.
const LATE_MAX: Time = Time::from_ms(100);

/// How many sleeps of a task that are due end at once within one instant. Virtual time needs no turns for
/// those that a program makes on its way, and one that makes no way must not keep others from running.
const DUE_AT_ONCE: u32 = 1000;

/// Tasks that were woken by a `Waker`, which demands that it may cross threads.
#[derive(Default)]
struct Woken {
    /// Whether there are any: cheaper to ask than the lock.
    any: AtomicBool,
    tasks: Mutex<VecDeque<Key>>,
}

struct TaskWaker {
    task: Key,
    queued: AtomicBool,
    woken: Arc<Woken>,
}

impl TaskWaker {
    /// Whether it is to be queued, which it is from then on. A thread that comes in between can only
    /// have the task polled once too often.
    fn queue(&self) -> bool {
        let queued = self.queued.load(Ordering::Relaxed);
        if !queued {
            self.queued.store(true, Ordering::Relaxed);
        }
        !queued
    }
}

impl Wake for TaskWaker {
    fn wake(self: Arc<TaskWaker>) {
        self.wake_by_ref();
    }
    fn wake_by_ref(self: &Arc<TaskWaker>) {
        if self.queue() {
            self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner).push_back(self.task);
            self.woken.any.store(true, Ordering::Release);
        }
    }
}

/// A task: its future is away while it is polled.
struct Task {
    role: usize,
    /// Whether this is the role's own function.
    function: bool,
    future: Option<LocalBoxFuture<()>>,
    flag: Arc<TaskWaker>,
    /// Away while its future is.
    waker: Option<Waker>,
    /// Until when posting keeps it busy.
    busy_until: Time,
}

/// The task that runs now.
struct Running {
    task: Key,
    waker: Waker,
}

/// Who sleeps: a task itself, or somebody within it that has a waker of its own.
enum Sleeper {
    Task(Key),
    Other(Waker),
}

#[derive(Default)]
pub(super) struct Executor {
    tasks: RefCell<Arena<Task>>,
    /// Tasks that can go on, first woken first; those in `woken` come after them.
    ready: RefCell<VecDeque<Key>>,
    woken: Arc<Woken>,
    running: RefCell<Option<Running>>,
    sleeps: RefCell<Arena<Sleeper>>,
    /// Whose sleeps were due last, when, and how many of them ended at once.
    due: Cell<(Option<Key>, Time, u32)>,
    /// Until when posting keeps the task busy that runs now.
    busy_until: Cell<Time>,
}

impl Executor {
    pub(super) fn spawn(&self, role: usize, function: bool, future: LocalBoxFuture<()>) {
        let mut tasks = self.tasks.borrow_mut();
        // The key is known only once the task is there, so its waker comes after it.
        let nobody = Arc::new(TaskWaker {
            task: Key::plain(0),
            queued: AtomicBool::new(true),
            woken: self.woken.clone(),
        });
        let (future, busy_until) = (Some(future), Time::ZERO);
        let task = Task { role, function, future, flag: nobody, waker: None, busy_until };
        let key = tasks.insert(task);
        let flag =
            Arc::new(TaskWaker { task: key, queued: AtomicBool::new(false), woken: self.woken.clone() });
        if let Some(task) = tasks.get_mut(key) {
            task.waker = Some(Waker::from(flag.clone()));
            task.flag = flag.clone();
        }
        flag.wake();
    }

    /// The futures of a role's tasks, to be dropped by the caller when no cell is in use.
    pub(super) fn take_tasks_of(&self, role: usize) -> Vec<LocalBoxFuture<()>> {
        let mut tasks = self.tasks.borrow_mut();
        let all: Vec<_> = tasks.keys().collect();
        let own = all.into_iter().filter(|key| tasks.get(*key).is_some_and(|task| task.role == role));
        let own: Vec<_> = own.collect();
        own.into_iter().filter_map(|key| tasks.remove(key)).filter_map(|task| task.future).collect()
    }

    /// Keeps the running task busy for `time`, after what it posted before; gives when that begins.
    pub(super) fn charge(&self, now: Time, time: Time) -> Time {
        let start = self.busy_until.get().max(now);
        self.busy_until.set(start + time);
        start
    }

    /// Moves those who were woken by a waker behind those who were woken before them.
    fn gather(&self) {
        if self.woken.any.load(Ordering::Acquire) {
            let mut woken = self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner);
            self.woken.any.store(false, Ordering::Relaxed);
            let mut ready = self.ready.borrow_mut();
            while let Some(task) = woken.pop_front() {
                ready.push_back(task);
            }
        }
    }

    /// Who would be woken by `waker`.
    fn sleeper(&self, waker: &Waker) -> Sleeper {
        match &*self.running.borrow() {
            Some(running) if running.waker.will_wake(waker) => Sleeper::Task(running.task),
            _ => Sleeper::Other(waker.clone()),
        }
    }

    /// Whether a sleep that is due may end at once, without letting others run. It is counted here alone, so
    /// that tasks that never ask for it pay nothing.
    fn may_end_at_once(&self, now: Time) -> bool {
        let task = self.running.borrow().as_ref().map(|running| running.task);
        let count = match self.due.get() {
            (last, at, count) if last == task && at == now => count + 1,
            _ => 1,
        };
        self.due.set((task, now, if count < DUE_AT_ONCE { count } else { 0 }));
        count < DUE_AT_ONCE
    }

    /// Runs the next ready task once; says whether there was one.
    pub(super) fn poll_next(&self, core: &Rc<Core>) -> bool {
        self.gather();
        let Some(key) = self.ready.borrow_mut().pop_front() else { return false };
        let taken = self.tasks.borrow_mut().get_mut(key).and_then(|task| {
            task.flag.queued.store(false, Ordering::Relaxed);
            self.busy_until.set(task.busy_until);
            task.future.take().zip(task.waker.take())
        });
        let Some((mut future, waker)) = taken else { return true };
        *self.running.borrow_mut() = Some(Running { task: key, waker });
        let pending = match &*self.running.borrow() {
            Some(running) => future.as_mut().poll(&mut Context::from_waker(&running.waker)).is_pending(),
            None => false,
        };
        let ran = self.running.borrow_mut().take();
        if pending {
            if let (Some(task), Some(ran)) = (self.tasks.borrow_mut().get_mut(key), ran) {
                task.future = Some(future);
                task.waker = Some(ran.waker);
                task.busy_until = self.busy_until.get();
                return true;
            }
            // Its role crashed while it ran; what it holds is dropped outside of every cell.
            return true;
        }
        drop(future);
        let task = self.tasks.borrow_mut().remove(key);
        if let Some(task) = task
            && task.function
        {
            core.finish_role(task.role);
        }
        true
    }

    /// A sleep is over.
    pub(super) fn wake(&self, key: Key) {
        let sleeper = self.sleeps.borrow_mut().remove(key);
        match sleeper {
            Some(Sleeper::Task(task)) => {
                let queues = self.tasks.borrow().get(task).is_some_and(|task| task.flag.queue());
                if queues {
                    self.gather();
                    self.ready.borrow_mut().push_back(task);
                }
            }
            Some(Sleeper::Other(waker)) => waker.wake(),
            None => {}
        }
    }

    /// Whether somebody still waits for this sleep.
    pub(super) fn is_awaited(&self, key: Key) -> bool {
        self.sleeps.borrow().get(key).is_some()
    }
}

/// What a sleep waits for.
enum Until {
    Instant(Time),
    Computed { role: usize, work: Work, label: Option<super::Label> },
}

/// Waits for an instant, or for the end of work on a processor.
pub(super) struct Sleep {
    core: Rc<Core>,
    until: Until,
    key: Option<Key>,
}

impl Sleep {
    pub(super) fn until(core: Rc<Core>, at: Time) -> Sleep {
        Sleep { core, until: Until::Instant(at), key: None }
    }

    pub(super) fn compute(core: Rc<Core>, role: usize, work: Work, label: Option<super::Label>) -> Sleep {
        Sleep { core, until: Until::Computed { role, work, label }, key: None }
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
                Some(sleeper) => {
                    *sleeper = executor.sleeper(context.waker());
                    Poll::Pending
                }
            };
        }
        let now = core.now();
        match self.until {
            Until::Instant(at) if now >= at && executor.may_end_at_once(now) => return Poll::Ready(()),
            Until::Instant(at) => {
                let key = executor.sleeps.borrow_mut().insert(executor.sleeper(context.waker()));
                let mut engine = core.engine.borrow_mut();
                if (LATE_MIN..=LATE_MAX).contains(&at.saturating_sub(now)) {
                    let nobody = |tag| !executor.is_awaited(Key::of(tag).1);
                    engine.limit(key.tag(Subject::Sleep), at, nobody);
                } else {
                    engine.timer(key.tag(Subject::Sleep), at);
                }
                drop(engine);
                self.key = Some(key);
            }
            Until::Computed { role, work, label } => {
                let state = &core.roles[role];
                let place = &core.places[state.place];
                let time = match work {
                    Work::Time(time) => time,
                    // More cycles than fit the longest wait at 10 GHz are cut before they are multiplied.
                    Work::Cycles(cycles) => place.frequency.time_for_cycles(cycles.min(1 << 51)),
                };
                let time = time.min(LONGEST);
                let key = executor.sleeps.borrow_mut().insert(executor.sleeper(context.waker()));
                let start = executor.charge(now, Time::ZERO);
                core.observer.add_time(label, place.cpu, time);
                core.observer.did(label, || Deed::Compute { endpoint: place.name.clone(), time });
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
            let sleeper = self.core.executor.sleeps.borrow_mut().remove(key);
            drop(sleeper);
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
