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
