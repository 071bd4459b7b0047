//! Numbers that tasks take and give back, as slots of a buffer.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::pin::pin;
use std::task::{Poll, Waker};

/// A set of free numbers. Who waits with the lowest rank is served first. A number is given back by
/// hand and never by a drop: an abandoned operation may still write into its slot.
pub(crate) struct Pool {
    free: RefCell<Vec<u64>>,
    waiting: RefCell<BTreeMap<(u64, u64), Waker>>,
    /// Numbers that are handed to a waiter that has not run since.
    granted: RefCell<BTreeMap<(u64, u64), u64>>,
    arrivals: Cell<u64>,
}

impl Pool {
    pub(crate) fn new(count: u64) -> Pool {
        Pool {
            free: RefCell::new((0..count).rev().collect()),
            waiting: RefCell::default(),
            granted: RefCell::default(),
            arrivals: Cell::new(0),
        }
    }

    /// Waits for a free number and takes it. Of one rank, who came first is first.
    pub(crate) async fn take(&self, rank: u64) -> u64 {
        if let Some(number) = self.free.borrow_mut().pop() {
            return number;
        }
        let own = (rank, self.arrivals.get());
        self.arrivals.set(own.1 + 1);
        poll_fn(|context| match self.granted.borrow_mut().remove(&own) {
            Some(number) => Poll::Ready(number),
            None => {
                self.waiting.borrow_mut().insert(own, context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    pub(crate) fn give(&self, number: u64) {
        let first = self.waiting.borrow_mut().pop_first();
        match first {
            Some((own, waker)) => {
                self.granted.borrow_mut().insert(own, number);
                waker.wake();
            }
            None => self.free.borrow_mut().push(number),
        }
    }
}

/// One lock for each key; who waits is served in turn.
#[derive(Default)]
pub(crate) struct KeyLocks {
    held: RefCell<BTreeMap<u64, VecDeque<Waker>>>,
}

impl KeyLocks {
    /// Waits until nobody holds `key`, and holds it until the guard is dropped.
    pub(crate) async fn lock(&self, key: u64) -> KeyGuard<'_> {
        poll_fn(|context| {
            let mut held = self.held.borrow_mut();
            match held.get_mut(&key) {
                Some(waiting) => {
                    waiting.push_back(context.waker().clone());
                    Poll::Pending
                }
                None => {
                    held.insert(key, VecDeque::new());
                    Poll::Ready(())
                }
            }
        })
        .await;
        KeyGuard { locks: self, key }
    }
}

pub(crate) struct KeyGuard<'a> {
    locks: &'a KeyLocks,
    key: u64,
}

impl Drop for KeyGuard<'_> {
    fn drop(&mut self) {
        // All look again: the first one polled takes it, the others queue anew.
        let waiting = self.locks.held.borrow_mut().remove(&self.key);
        waiting.into_iter().flatten().for_each(Waker::wake);
    }
}

/// One task at a time, in no order.
#[derive(Default)]
pub(crate) struct Turn(KeyLocks);

impl Turn {
    /// Waits until nobody has the turn, and has it until the guard is dropped.
    pub(crate) async fn take(&self) -> KeyGuard<'_> {
        self.0.lock(0).await
    }
}

/// A value that one task waits for and another gives.
pub(crate) struct Promise<T>(RefCell<(Option<T>, Option<Waker>)>);

impl<T> Promise<T> {
    pub(crate) fn new() -> std::rc::Rc<Promise<T>> {
        std::rc::Rc::new(Promise(RefCell::new((None, None))))
    }

    pub(crate) fn give(&self, value: T) {
        let waker = {
            let mut slot = self.0.borrow_mut();
            slot.0 = Some(value);
            slot.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    pub(crate) async fn wait(&self) -> T {
        poll_fn(|context| {
            let mut slot = self.0.borrow_mut();
            match slot.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    slot.1 = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

/// Tasks that look again whenever something changed.
#[derive(Default)]
pub(crate) struct Change(RefCell<Vec<Waker>>);

impl Change {
    pub(crate) fn tell(&self) {
        self.0.take().into_iter().for_each(Waker::wake);
    }

    /// Waits until `look` finds something.
    pub(crate) async fn until<T>(&self, mut look: impl FnMut() -> Option<T>) -> T {
        poll_fn(|context| match look() {
            Some(found) => Poll::Ready(found),
            None => {
                self.0.borrow_mut().push(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }
}

/// Tasks that end together, whatever they wait for: what they hold is free then.
#[derive(Default)]
pub(crate) struct Together {
    over: Cell<bool>,
    tasks: Cell<u64>,
    waiting: RefCell<BTreeMap<u64, Waker>>,
}

impl Together {
    pub(crate) fn end(&self) {
        self.over.set(true);
        self.waiting.take().into_values().for_each(Waker::wake);
    }

    /// Runs a task until it has ended or all do.
    pub(crate) async fn run(&self, task: impl Future<Output = ()>) {
        let own = self.tasks.get();
        self.tasks.set(own + 1);
        let mut task = pin!(task);
        poll_fn(|context| {
            if self.over.get() {
                return Poll::Ready(());
            }
            let polled = task.as_mut().poll(context);
            match polled {
                Poll::Ready(()) => self.waiting.borrow_mut().remove(&own),
                Poll::Pending => self.waiting.borrow_mut().insert(own, context.waker().clone()),
            };
            polled
        })
        .await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Context;

    #[test]
    fn the_lowest_rank_is_served_first() {
        let pool = Pool::new(1);
        let mut context = Context::from_waker(Waker::noop());
        let mut poll = |future: std::pin::Pin<&mut dyn Future<Output = u64>>| future.poll(&mut context);
        let (mut first, mut late, mut early) = (pin!(pool.take(9)), pin!(pool.take(5)), pin!(pool.take(2)));
        assert_eq!(poll(first.as_mut()), Poll::Ready(0));
        assert_eq!(poll(late.as_mut()), Poll::Pending);
        assert_eq!(poll(early.as_mut()), Poll::Pending);
        pool.give(0);
        // A number that is promised cannot be taken in between.
        let mut between = pin!(pool.take(0));
        assert_eq!(poll(between.as_mut()), Poll::Pending);
        assert_eq!(poll(late.as_mut()), Poll::Pending);
        assert_eq!(poll(early.as_mut()), Poll::Ready(0));
    }
}
