//! Numbers that tasks take and give back, as slots of a buffer.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::future::poll_fn;
use std::task::{Poll, Waker};

/// A set of free numbers. A number is given back by hand and never by a drop: an abandoned operation
/// may still write into its slot.
pub(crate) struct Pool {
    free: RefCell<Vec<u64>>,
    waiting: RefCell<VecDeque<Waker>>,
}

impl Pool {
    pub(crate) fn new(count: u64) -> Pool {
        Pool { free: RefCell::new((0..count).rev().collect()), waiting: RefCell::default() }
    }

    /// Waits for a free number and takes it.
    pub(crate) async fn take(&self) -> u64 {
        poll_fn(|context| match self.free.borrow_mut().pop() {
            Some(number) => Poll::Ready(number),
            None => {
                self.waiting.borrow_mut().push_back(context.waker().clone());
                Poll::Pending
            }
        })
        .await
    }

    pub(crate) fn give(&self, number: u64) {
        self.free.borrow_mut().push(number);
        if let Some(waker) = self.waiting.borrow_mut().pop_front() {
            waker.wake();
        }
    }
}

/// One lock for each key; who waits is served in turn.
#[derive(Default)]
pub(crate) struct KeyLocks {
    held: RefCell<std::collections::BTreeMap<u64, VecDeque<Waker>>>,
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
