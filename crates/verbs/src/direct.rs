//! A queue pair that is posted to and polled by hand: no completions, nothing kept for a request.

use crate::bindings::*;
use crate::device::CompletionQueue;
use crate::queue_pair::{
    self, Terms, VerbsQueuePair, post_receive, post_send, prepare, receive_slice, status,
};
use crate::{VerbsFabric, VerbsRegion};
use offpath_fabric::*;
use std::cell::Cell;
use std::ptr::NonNull;
use std::rc::Rc;

/// How many completions are taken at once.
const TAKEN: usize = 32;

/// A request of the list, and its slice.
#[derive(Clone, Copy)]
struct Place {
    work: ibv_send_wr,
    slice: ibv_sge,
}

/// What a direct queue pair and the engine, which may end it at any time, share.
pub(crate) struct Link {
    /// `None` once the device has destroyed it.
    pub raw: Cell<Option<NonNull<ibv_qp>>>,
    /// Goes after the queue pair, which whoever destroys it takes out of `raw` first.
    pub queue: CompletionQueue,
}

/// The end of a request of a [`VerbsDirect`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DirectCompletion {
    /// What the request was given when it was posted.
    pub number: u64,
    /// How it ended. Nothing but `number` means anything unless it is [`Status::Success`].
    pub status: Status,
    /// How many bytes a message brought, for a receive.
    pub bytes: u32,
    /// The peer's word, for receives.
    pub immediate: Option<u32>,
}

/// An RC queue pair whose requests are posted and polled by hand, for loops that count instructions.
///
/// It keeps nothing of a request. A region that goes before its request ended makes the request fail, or
/// reach a region that took its place: keep it until the completion. Unsignaled requests have no completion,
/// and one behind them says that they are done. After a failure every request ends as flushed.
pub struct VerbsDirect {
    pair: VerbsQueuePair,
    link: Rc<Link>,
    list: Box<[Place]>,
    terms: Terms,
    /// How many requests were added since the last doorbell.
    added: usize,
    taken: Box<[ibv_wc; TAKEN]>,
}

pub(crate) fn create(fabric: &VerbsFabric, options: QueuePairOptions) -> Result<VerbsDirect, Unsupported> {
    if options.kind != QueuePairType::Rc {
        return Err(fabric.unsupported("a UD queue pair by hand", "use `create_queue_pair`"));
    }
    let (pair, link) = queue_pair::create_direct(fabric, options)?;
    let terms = pair.terms();
    Ok(VerbsDirect {
        pair,
        link,
        list: vec![Place { work: zeroed(), slice: zeroed() }; options.send_depth as usize].into(),
        terms,
        added: 0,
        taken: Box::new([zeroed(); TAKEN]),
    })
}

impl VerbsDirect {
    /// The queue pair, to be connected. It takes no requests of its own, only those of this.
    pub fn queue_pair(&self) -> &VerbsQueuePair {
        &self.pair
    }

    /// Adds a request to the list that the next doorbell posts. Its completion bears `number`.
    #[inline(always)]
    pub fn add(&mut self, number: u64, request: &WorkRequest<&VerbsRegion>) -> Result<(), PostError> {
        let Some(Place { work, slice }) = self.list.get_mut(self.added) else {
            return Err(PostError::QueueFull { depth: self.list.len() as u32 });
        };
        if request.inline {
            return Err(inline());
        }
        *work = zeroed();
        // It is RC, which here is known before the program runs.
        prepare(Terms { kind: QueuePairType::Rc, ..self.terms }, request, work, slice, |_| Err(inline()))?;
        work.wr_id = number;
        self.added += 1;
        Ok(())
    }

    /// Posts what was added as one linked list. Where the device has no room for all of it, says how many
    /// went, which are the first ones; the others are forgotten.
    #[inline(always)]
    pub fn ring(&mut self) -> Result<(), (PostError, usize)> {
        let count = std::mem::take(&mut self.added);
        let Some(raw) = self.link.raw.get() else {
            return Err((PostError::State { state: QueuePairState::Closed }, 0));
        };
        if count == 0 {
            return Ok(());
        }
        let list = self.list.as_mut_ptr();
        // SAFETY: the array holds `count` places, no reference to them is held, and they stay until the
        // call returns. The queue pair is alive. What its device may write to is deregistered before it is
        // unmapped, so no request reaches memory that serves something else than regions.
        unsafe {
            for index in 0..count {
                let place = list.add(index);
                (*place).work.sg_list = &raw mut (*place).slice;
                if index + 1 < count {
                    (*place).work.next = &raw mut (*place.add(1)).work;
                }
            }
            post_send(raw, &raw mut (*list).work, count, size_of::<Place>())
        }
        .map_err(|(reason, posted)| (queue_pair::refused("posting by hand", &reason), posted))
    }

    /// Posts a receive buffer for one message.
    #[inline(always)]
    pub fn receive(&mut self, number: u64, into: &Slice<&VerbsRegion>) -> Result<(), PostError> {
        let Some(raw) = self.link.raw.get() else {
            return Err(PostError::State { state: QueuePairState::Closed });
        };
        let mut slice = receive_slice(into);
        let mut work = ibv_recv_wr {
            wr_id: number,
            next: std::ptr::null_mut(),
            sg_list: &mut slice,
            num_sge: i32::from(into.length > 0),
        };
        // SAFETY: the queue pair is alive, the request lives until the call returns, and its region is
        // deregistered before it is unmapped.
        unsafe { post_receive(raw, &mut work) }
            .map_err(|reason| queue_pair::refused("posting a receive by hand", &reason))
    }

    /// Takes completions, up to 32, each to `each` in turn; says how many there were.
    #[inline(always)]
    pub fn poll(&mut self, mut each: impl FnMut(DirectCompletion)) -> usize {
        let count = self.link.queue.poll(&mut self.taken[..]);
        let mut failed = false;
        for work in self.taken.iter().take(count) {
            let success = work.status == IBV_WC_SUCCESS;
            failed |= !success;
            each(DirectCompletion {
                number: work.wr_id,
                status: if success { Status::Success } else { status(work.status) },
                bytes: work.byte_len,
                immediate: (work.wc_flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(work.imm_data)),
            });
        }
        if failed {
            self.pair.failed();
        }
        count
    }
}

#[cold]
fn inline() -> PostError {
    // The payload would be read with the doorbell, when its region may be gone.
    PostError::Unsupported(Unsupported {
        backend: "verbs".into(),
        feature: "an inline request by hand".into(),
        next_step: "post it without `inline`".into(),
    })
}
