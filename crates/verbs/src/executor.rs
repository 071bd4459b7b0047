//! One thread's loop: ready tasks, completion queues, timers, sockets.

use crate::Core;
use offpath_fabric::LocalBoxFuture;
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::{Future, poll_fn};
use std::os::fd::RawFd;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

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

/// Whose task it is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The world's own, as the reading of sockets.
    World,
    /// A role's.
    Role(usize),
    /// A role's own function.
    Function(usize),
}

pub(crate) struct Task {
    owner: Owner,
    /// Away while it is polled.
    future: Option<LocalBoxFuture<()>>,
    waker: Arc<TaskWaker>,
}

pub(crate) struct Executor {
    tasks: RefCell<BTreeMap<u64, Task>>,
    next_task: Cell<u64>,
    ready: Ready,
    timers: RefCell<BTreeMap<(Time, u64), Waker>>,
    next_timer: Cell<u64>,
    started: Instant,
    /// Who waits for which descriptor to be readable or writable.
    waiting: RefCell<Vec<(RawFd, i16, Waker)>>,
    /// How often the task that runs may still look for completions itself.
    looks: Cell<u32>,
}

impl Executor {
    pub fn new() -> Executor {
        Executor {
            tasks: RefCell::default(),
            next_task: Cell::new(0),
            ready: Ready::default(),
            timers: RefCell::default(),
            next_timer: Cell::new(0),
            started: Instant::now(),
            waiting: RefCell::default(),
            looks: Cell::new(0),
        }
    }

    /// Whether the task that runs may look for completions itself: only so often, since a task that always
    /// finds one would let nobody else run.
    #[inline]
    pub fn may_look(&self) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(1));
        left > 0
    }

    pub fn now(&self) -> Time {
        Time::from_ns(self.started.elapsed().as_nanos() as u64)
    }

    pub fn spawn(&self, owner: Owner, future: LocalBoxFuture<()>) {
        let task = self.next_task.replace(self.next_task.get() + 1);
        let waker = Arc::new(TaskWaker { task, queued: AtomicBool::new(false), ready: self.ready.clone() });
        waker.wake_by_ref();
        self.tasks.borrow_mut().insert(task, Task { owner, future: Some(future), waker });
    }

    /// The tasks of an owner, to be dropped by the caller when no cell is in use.
    pub fn take_tasks(&self, whose: impl Fn(Owner) -> bool) -> Vec<Task> {
        let mut tasks = self.tasks.borrow_mut();
        let own: Vec<_> = tasks.iter().filter(|(_, task)| whose(task.owner)).map(|(id, _)| *id).collect();
        own.iter().filter_map(|id| tasks.remove(id)).collect()
    }

    fn ready_count(&self) -> usize {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner).len()
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

/// Waits for an instant.
pub(crate) struct Sleep {
    core: Rc<Core>,
    at: Time,
    number: Option<u64>,
}

impl Sleep {
    pub fn new(core: Rc<Core>, at: Time) -> Sleep {
        Sleep { core, at, number: None }
    }
}

impl Future for Sleep {
    type Output = ();
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let executor = &self.core.executor;
        // A timer fires in its turn, so that equal instants keep their order; also one whose instant has
        // passed, so that a loop that sleeps for less than it takes to come back here lets others run.
        match self.number {
            None => {
                let number = executor.next_timer.replace(executor.next_timer.get() + 1);
                executor.timers.borrow_mut().insert((self.at, number), context.waker().clone());
                self.number = Some(number);
                Poll::Pending
            }
            Some(number) => match executor.timers.borrow_mut().get_mut(&(self.at, number)) {
                None => Poll::Ready(()),
                Some(waker) => {
                    *waker = context.waker().clone();
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
pub(crate) fn yield_now() -> impl Future<Output = ()> + 'static {
    let mut yielded = false;
    poll_fn(move |context| {
        if std::mem::replace(&mut yielded, true) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// How often sockets are looked at while there is other work: a look is a system call.
const SOCKETS_EVERY: Time = Time::from_us(20);
/// How often a task may look for completions itself before the others have their turn.
const LOOKS: u32 = 64;
/// How many rounds without work are spent in a tight loop before other threads get the processor.
const TIGHT_ROUNDS: u32 = 200;
/// The longest sleep of a loop that waits for events, in milliseconds.
const SLEEP_MAX: u64 = 100;

/// Runs until the main roles ended. In each round the ready tasks run once, then completions are taken,
/// then due timers fire: nobody can starve another.
pub(crate) fn run(core: &Rc<Core>) {
    let executor = &core.executor;
    let (mut looked, mut idle) = (Time::ZERO, 0);
    loop {
        let count = executor.ready_count();
        for _ in 0..count {
            poll_next(core);
            if core.roles.iter().all(|role| role.ended.get() || !role.main) {
                return;
            }
        }
        let completed = core.engine.borrow_mut().turn(executor);
        let fired = fire_due(executor);
        let now = executor.now();
        if count > 0 || completed || fired || executor.ready_count() > 0 {
            idle = 0;
        } else {
            idle += 1;
        }
        if idle > 0 && core.engine.borrow().arm() {
            // Whatever came before the arming told nobody.
            if !core.engine.borrow_mut().turn(executor) {
                look(core, core.sleep(now));
                looked = executor.now();
            }
        } else if now >= looked + SOCKETS_EVERY {
            look(core, 0);
            looked = now;
        }
        match idle {
            0 => {}
            1..TIGHT_ROUNDS => std::hint::spin_loop(),
            _ => std::thread::yield_now(),
        }
    }
}

fn look(core: &Core, milliseconds: i32) {
    let descriptors = core.engine.borrow().descriptors();
    if core.executor.look_at_descriptors(&descriptors, milliseconds) {
        core.engine.borrow_mut().take_events(&core.executor);
    }
}

impl Core {
    /// How long, in milliseconds, a loop may sleep when only events can bring work.
    fn sleep(&self, now: Time) -> i32 {
        let timer = self.executor.timers.borrow().first_key_value().map(|((at, _), _)| *at);
        let until = [timer, self.engine.borrow().deadline()].into_iter().flatten().min();
        let span = until.map_or(SLEEP_MAX, |at| at.saturating_sub(now).ps().div_ceil(1_000_000_000));
        span.min(SLEEP_MAX) as i32
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
    executor.looks.set(LOOKS);
    if future.as_mut().poll(&mut Context::from_waker(&waker)).is_pending() {
        if let Some(task) = executor.tasks.borrow_mut().get_mut(&id) {
            task.future = Some(future);
        }
        return;
    }
    drop(future);
    let task = executor.tasks.borrow_mut().remove(&id);
    if let Some(Task { owner: Owner::Function(role), .. }) = task {
        core.end_role(role);
    }
}

fn fire_due(executor: &Executor) -> bool {
    let mut timers = executor.timers.borrow_mut();
    if timers.is_empty() {
        return false;
    }
    let now = executor.now();
    let mut due = Vec::new();
    while let Some(entry) = timers.first_entry().filter(|entry| entry.key().0 <= now) {
        due.push(entry.remove());
    }
    // Waking may run foreign code, which may set timers.
    drop(timers);
    let fired = !due.is_empty();
    due.into_iter().for_each(Waker::wake);
    fired
}
