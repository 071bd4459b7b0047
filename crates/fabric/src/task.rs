//! Values that one task hands to another: completions to completions, results to join handles.

use crate::LocalBoxFuture;
use crate::queue_pair::Completion;
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

#[derive(Debug)]
struct Slot<T> {
    value: Option<T>,
    waker: Option<Waker>,
    giver_gone: bool,
}

#[derive(Debug)]
struct Giver<T>(Rc<RefCell<Slot<T>>>);

impl<T> Giver<T> {
    fn give(self, value: T) {
        self.0.borrow_mut().value = Some(value);
    }
}

impl<T> Drop for Giver<T> {
    fn drop(&mut self) {
        let mut slot = self.0.borrow_mut();
        slot.giver_gone = true;
        let waker = slot.waker.take();
        // Waking may run foreign code, which may look at the slot.
        drop(slot);
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

#[derive(Debug)]
struct Taker<T>(Rc<RefCell<Slot<T>>>);

impl<T> Taker<T> {
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<T>> {
        let mut slot = self.0.borrow_mut();
        if slot.giver_gone {
            return Poll::Ready(slot.value.take());
        }
        match &mut slot.waker {
            Some(waker) => waker.clone_from(context.waker()),
            none => *none = Some(context.waker().clone()),
        }
        Poll::Pending
    }
}

fn pair<T>() -> (Giver<T>, Taker<T>) {
    let slot = Rc::new(RefCell::new(Slot { value: None, waker: None, giver_gone: false }));
    (Giver(slot.clone()), Taker(slot))
}

/// A completion and the end that resolves it, for backends without a reason to have their own.
pub fn completion_future() -> (Completer, CompletionFuture) {
    let (giver, taker) = pair();
    (Completer(giver), CompletionFuture(taker))
}

/// Resolves a [`CompletionFuture`]. Dropped without use, the completion stays pending for ever, as for an operation
/// whose queue pair's owner is gone.
#[derive(Debug)]
pub struct Completer(Giver<Completion>);

impl Completer {
    /// Resolves the completion; its task is woken.
    pub fn complete(self, completion: Completion) {
        self.0.give(completion);
    }
}

/// The future of a [`Completion`]. It must not be polled again once it resolved.
#[derive(Debug)]
#[must_use = "a dropped completion abandons the result of the operation"]
pub struct CompletionFuture(Taker<Completion>);

impl Future for CompletionFuture {
    type Output = Completion;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        match self.0.poll(context) {
            Poll::Ready(Some(completion)) => Poll::Ready(completion),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    }
}

/// The task was dropped before it ended, since its role did.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the task was dropped before it ended: its role ended or crashed")]
pub struct Cancelled;

/// The result of a spawned task, as a future. It must not be polled again once it resolved.
#[derive(Debug)]
pub struct JoinHandle<T>(Taker<T>);

impl<T: 'static> JoinHandle<T> {
    /// The handle for `future`, and the task to give to an executor.
    pub fn new(future: impl Future<Output = T> + 'static) -> (JoinHandle<T>, LocalBoxFuture<()>) {
        let (giver, taker) = pair();
        (JoinHandle(taker), Box::pin(async move { giver.give(future.await) }))
    }
}

impl<T> Future for JoinHandle<T> {
    type Output = Result<T, Cancelled>;
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll(context).map(|value| value.ok_or(Cancelled))
    }
}
