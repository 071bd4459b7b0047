//! Tasks and their wakers, on one thread.

use super::arena::{Arena, ArenaSlot};
use crate::LocalBoxFuture;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Wake, Waker};

/// Tasks that were woken by a `Waker`, which demands that it may cross threads.
#[derive(Debug, Default)]
struct Woken {
    /// Whether there are any: cheaper to ask than the lock.
    any: AtomicBool,
    tasks: Mutex<Vec<ArenaSlot>>,
}

#[derive(Debug)]
struct TaskWaker {
    task: ArenaSlot,
    queued: AtomicBool,
    woken: Arc<Woken>,
}

impl TaskWaker {
    /// Whether it is to be queued, which it is from then on. A thread that comes in between can only
    /// have the task polled once too often.
    #[inline]
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
            self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner).push(self.task);
            self.woken.any.store(true, Ordering::Release);
        }
    }
}

/// Whose task it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The backend's own, as the reading of sockets.
    Backend,
    /// A role's.
    Role(usize),
    /// A role's own function.
    Function(usize),
}

impl Owner {
    /// The role that the task ends with.
    pub fn role(self) -> Option<usize> {
        match self {
            Owner::Backend => None,
            Owner::Role(role) | Owner::Function(role) => Some(role),
        }
    }

    /// Whether the task ends with this role.
    pub fn is_of(self, role: usize) -> bool {
        self.role() == Some(role)
    }
}

/// A task: its future is away while it is polled.
struct Task<S> {
    owner: Owner,
    future: Option<LocalBoxFuture<()>>,
    flag: Arc<TaskWaker>,
    /// Away while its future is.
    waker: Option<Waker>,
    state: S,
}

/// The task that runs now.
struct Running {
    task: ArenaSlot,
    waker: Waker,
}

/// Who waits: a task itself, or somebody within it that has a waker of its own.
#[derive(Debug)]
pub enum Waiter {
    /// A task.
    Task(ArenaSlot),
    /// Somebody within one.
    Other(Waker),
}

/// What runs tasks.
pub trait Host: 'static {
    /// What it keeps for a task while that does not run.
    type State: Copy + Default;

    /// Its tasks.
    fn tasks(&self) -> &Tasks<Self::State>;

    /// A task is about to run, for which `state` was kept.
    fn resume(&self, state: Self::State);

    /// A task ran and waits now; gives what is to be kept for it.
    fn suspend(&self) -> Self::State;

    /// A role's own function returned.
    fn function_ended(self: &Rc<Self>, role: usize);
}

/// Tasks, and the queue of those that can go on.
pub struct Tasks<S> {
    all: RefCell<Arena<Task<S>>>,
    /// Tasks that can go on, first woken first; those in `woken` come after them.
    ready: RefCell<VecDeque<ArenaSlot>>,
    woken: Arc<Woken>,
    running: RefCell<Option<Running>>,
}

impl<S> Default for Tasks<S> {
    fn default() -> Tasks<S> {
        Tasks {
            all: RefCell::default(),
            ready: RefCell::default(),
            woken: Arc::default(),
            running: RefCell::default(),
        }
    }
}

impl<S: Copy + Default> Tasks<S> {
    /// Runs `future` until it ends or is taken.
    pub fn spawn(&self, owner: Owner, future: LocalBoxFuture<()>) {
        let mut tasks = self.all.borrow_mut();
        let flag = |task, queued| {
            Arc::new(TaskWaker { task, queued: AtomicBool::new(queued), woken: self.woken.clone() })
        };
        // The key is known only once the task is there, so its waker comes after it.
        let nobody = flag(ArenaSlot::plain(0), true);
        let future = Some(future);
        let key = tasks.insert(Task { owner, future, flag: nobody, waker: None, state: S::default() });
        let flag = flag(key, false);
        if let Some(task) = tasks.get_mut(key) {
            task.waker = Some(Waker::from(flag.clone()));
            task.flag = flag.clone();
        }
        flag.wake();
    }

    /// The futures of some owners' tasks, to be dropped by the caller when no cell is in use.
    pub fn take(&self, whose: impl Fn(Owner) -> bool) -> Vec<LocalBoxFuture<()>> {
        let mut tasks = self.all.borrow_mut();
        let all: Vec<_> = tasks.keys().collect();
        let own = all.into_iter().filter(|key| tasks.get(*key).is_some_and(|task| whose(task.owner)));
        let own: Vec<_> = own.collect();
        own.into_iter().filter_map(|key| tasks.remove(key)).filter_map(|task| task.future).collect()
    }

    /// Moves those who were woken by a waker behind those who were woken before them.
    #[inline]
    fn gather(&self) {
        if self.woken.any.load(Ordering::Acquire) {
            self.gather_woken();
        }
    }

    #[inline(never)]
    fn gather_woken(&self) {
        let mut woken = self.woken.tasks.lock().unwrap_or_else(PoisonError::into_inner);
        self.woken.any.store(false, Ordering::Relaxed);
        self.ready.borrow_mut().extend(woken.drain(..));
    }

    /// How many tasks can go on.
    #[inline]
    pub fn ready(&self) -> usize {
        self.gather();
        self.ready.borrow().len()
    }

    /// The task that runs now.
    pub fn running(&self) -> Option<ArenaSlot> {
        self.running.borrow().as_ref().map(|running| running.task)
    }

    /// Who would be woken by `waker`.
    #[inline]
    pub fn waiter(&self, waker: &Waker) -> Waiter {
        match &*self.running.borrow() {
            Some(running) if running.waker.will_wake(waker) => Waiter::Task(running.task),
            _ => Waiter::Other(waker.clone()),
        }
    }

    /// Has a waiter go on.
    #[inline]
    pub fn wake(&self, waiter: Waiter) {
        match waiter {
            Waiter::Task(task) => {
                let queues = self.all.borrow().get(task).is_some_and(|task| task.flag.queue());
                if queues {
                    self.gather();
                    self.ready.borrow_mut().push_back(task);
                }
            }
            Waiter::Other(waker) => waker.wake(),
        }
    }

    /// Runs the next ready task of `host`, whose tasks these are, once; says whether there was one.
    #[inline]
    pub fn poll_next<H: Host<State = S>>(&self, host: &Rc<H>) -> bool {
        self.gather();
        let Some(key) = self.ready.borrow_mut().pop_front() else { return false };
        let taken = self.all.borrow_mut().get_mut(key).and_then(|task| {
            task.flag.queued.store(false, Ordering::Relaxed);
            host.resume(task.state);
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
            if let (Some(task), Some(ran)) = (self.all.borrow_mut().get_mut(key), ran) {
                task.future = Some(future);
                task.waker = Some(ran.waker);
                task.state = host.suspend();
                return true;
            }
            // Its role ended while it ran; what it holds is dropped outside of every cell.
            return true;
        }
        drop(future);
        let task = self.all.borrow_mut().remove(key);
        if let Some(Task { owner: Owner::Function(role), .. }) = task {
            host.function_ended(role);
        }
        true
    }
}

/// Lets every other ready task run once.
pub fn yield_now() -> impl Future<Output = ()> + 'static {
    let mut yielded = false;
    std::future::poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return std::task::Poll::Ready(());
        }
        context.waker().wake_by_ref();
        std::task::Poll::Pending
    })
}
