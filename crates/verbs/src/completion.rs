//! Completions of the verbs backend: places in one pool, so that posting allocates nothing.

use crate::Core;
use offpath_fabric::{Completion, Opcode, Status};
use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// No place.
const NONE: u32 = u32::MAX;

enum Entry {
    /// It is free, and so is the next one named.
    Free(u32),
    Waiting(Option<Waker>),
    /// Nobody waits for it any more.
    Abandoned,
    Ended {
        opcode: Opcode,
        status: Status,
        bytes: u64,
    },
    /// With what only receives have.
    Received(Box<Completion>),
}

struct Pool {
    entries: Vec<Entry>,
    free: u32,
}

impl Pool {
    #[inline(always)]
    fn release(&mut self, place: u32) -> Entry {
        let free = std::mem::replace(&mut self.free, place);
        std::mem::replace(&mut self.entries[place as usize], Entry::Free(free))
    }
}

/// The pool of a run.
pub(crate) struct CompletionTable(RefCell<Pool>);

impl CompletionTable {
    pub fn new() -> CompletionTable {
        CompletionTable(RefCell::new(Pool { entries: Vec::new(), free: NONE }))
    }

    /// Both ends of a completion.
    #[inline(always)]
    pub fn make(&self, core: &Rc<Core>) -> (Completer, VerbsCompletion) {
        let pool = &mut *self.0.borrow_mut();
        let place = pool.free;
        let place = match pool.entries.get_mut(place as usize) {
            Some(entry) => {
                if let Entry::Free(next) = *entry {
                    pool.free = next;
                }
                *entry = Entry::Waiting(None);
                place
            }
            None => {
                pool.entries.push(Entry::Waiting(None));
                pool.entries.len() as u32 - 1
            }
        };
        (Completer(place), VerbsCompletion { core: core.clone(), place })
    }

    /// Ends a completion; its task is woken.
    #[inline(always)]
    pub fn end(&self, Completer(place): Completer, opcode: Opcode, status: Status, bytes: u64) {
        self.put(place, Entry::Ended { opcode, status, bytes });
    }

    /// The same with a completion that may say more.
    pub fn end_as(&self, Completer(place): Completer, completion: Completion) {
        let ended = match completion {
            Completion { opcode, status, bytes, immediate: None, source: None } => {
                Entry::Ended { opcode, status, bytes }
            }
            _ => Entry::Received(Box::new(completion)),
        };
        self.put(place, ended);
    }

    #[inline(always)]
    fn put(&self, place: u32, ended: Entry) {
        let mut pool = self.0.borrow_mut();
        let entry = &mut pool.entries[place as usize];
        match entry {
            Entry::Waiting(None) => *entry = ended,
            Entry::Waiting(waker) => {
                let waker = waker.take();
                *entry = ended;
                // Waking may run foreign code, which may look at completions.
                drop(pool);
                waker.into_iter().for_each(Waker::wake);
            }
            _ => drop(pool.release(place)),
        }
    }

    #[inline(always)]
    fn is_waiting(&self, place: u32) -> bool {
        matches!(self.0.borrow().entries.get(place as usize), Some(Entry::Waiting(_)))
    }

    /// What a completion has, where it ended.
    #[inline(always)]
    fn take(&self, place: u32) -> Option<Completion> {
        let mut pool = self.0.borrow_mut();
        match pool.entries[place as usize] {
            Entry::Ended { opcode, status, bytes } => {
                pool.release(place);
                Some(Completion::new(opcode, status, bytes))
            }
            Entry::Received(_) => match pool.release(place) {
                Entry::Received(completion) => Some(*completion),
                _ => None,
            },
            _ => None,
        }
    }

    fn wait(&self, place: u32, waker: &Waker) {
        let old = match &mut self.0.borrow_mut().entries[place as usize] {
            Entry::Waiting(Some(old)) if old.will_wake(waker) => return,
            Entry::Waiting(old) => old.replace(waker.clone()),
            _ => None,
        };
        // Dropped only here, where the pool is free: a waker is foreign code.
        drop(old);
    }

    fn abandon(&self, place: u32) {
        let mut pool = self.0.borrow_mut();
        let old = match &mut pool.entries[place as usize] {
            entry @ Entry::Waiting(_) => std::mem::replace(entry, Entry::Abandoned),
            _ => pool.release(place),
        };
        drop(pool);
        drop(old);
    }
}

/// The end that resolves a completion. Dropped without use, the completion stays pending for ever.
pub(crate) struct Completer(u32);

/// The completion of a request of the verbs backend, as a future. It must not be polled again once it
/// resolved.
#[must_use = "a dropped completion abandons the result of the operation"]
pub struct VerbsCompletion {
    core: Rc<Core>,
    place: u32,
}

impl std::fmt::Debug for VerbsCompletion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerbsCompletion").field("place", &self.place).finish_non_exhaustive()
    }
}

impl Future for VerbsCompletion {
    type Output = Completion;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Completion> {
        let VerbsCompletion { core, place } = &mut *self;
        if *place == NONE {
            return Poll::Pending;
        }
        // The device may be done already, and looking costs less than a round of the executor.
        // A waker that polls at once would find the engine in use, and is told later.
        if core.completions.is_waiting(*place)
            && core.looks.may_look()
            && let Ok(mut engine) = core.engine.try_borrow_mut()
        {
            engine.turn(core.timers.clock());
        }
        match core.completions.take(*place) {
            Some(completion) => {
                *place = NONE;
                Poll::Ready(completion)
            }
            None => {
                core.completions.wait(*place, context.waker());
                Poll::Pending
            }
        }
    }
}

impl Drop for VerbsCompletion {
    #[inline(always)]
    fn drop(&mut self) {
        if self.place != NONE {
            self.core.completions.abandon(self.place);
        }
    }
}
