//! Queue pairs: posting, completing, failing.
//!
//! The device reports what it did; this file keeps, for each queue pair, the requests that it has not
//! reported yet in posting order, and with each the regions that it uses. A queue pair that failed is
//! put into the device's error state, posts nothing more to it, and is destroyed when the device does
//! not flush it in time, so that every request has an end.

mod codes;
mod made;
mod post;
mod reports;
mod shared;

pub(crate) use codes::{Parameters, status};
pub(crate) use made::{create, create_direct};
pub(crate) use post::{post_receive, post_send, prepare, receive_slice, refused};
pub use shared::VerbsSharedReceiveQueue;
pub(crate) use shared::create_shared;

use crate::Core;
use crate::bindings::*;
use crate::completion::{Completer, CompletionTable};
use crate::device::{CompletionQueue, Device, EventChannel};
use crate::direct::Link;
use crate::manager::Connection;
use crate::region::{Scratch, VerbsRegion};
use offpath_fabric::*;

use offpath_quantity::Time;
use std::collections::{BTreeMap, VecDeque};
use std::ptr::NonNull;
use std::rc::Rc;

/// How long a device may take between two flushed completions of a failed queue pair.
const FLUSH_PATIENCE: Time = Time::from_ms(20);
/// How many completions one completion queue holds, unless one queue pair needs more.
const QUEUE_ENTRIES: u32 = 4096;
/// How many completions are taken at once.
const TAKEN: usize = 32;
/// How far apart the requests of an array lie, in bytes.
const WORK: usize = size_of::<ibv_send_wr>();

/// The last place of a queue pair that an identifier can name.
const PAIR_SLOTS_LAST: usize = 0xffff;

/// What a work request's identifier says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Queue {
    Send,
    Receive,
    Shared,
}

/// Builds a work request's identifier: queue, generation of the place, place, number in its queue.
fn identifier(queue: Queue, generation: u16, place: usize, number: u32) -> u64 {
    let queue = match queue {
        Queue::Send => 0u64,
        Queue::Receive => 1,
        Queue::Shared => 2,
    };
    queue << 62 | u64::from(generation & 0x3fff) << 48 | (place as u64 & 0xffff) << 32 | u64::from(number)
}

/// Where a request stands.
#[derive(Clone, Copy)]
enum Place {
    /// The device has it.
    Posted,
    /// The device never got it; it ends so when everything before it has.
    Held(Status),
}

struct Slot {
    /// What waits for the request: its completion, and the region that is kept registered and mapped while
    /// the device may use it. A marker, which only tells that what lies before it is done, has neither.
    waiting: Option<(Completer, VerbsRegion)>,
    opcode: Opcode,
    bytes: u64,
    signaled: bool,
    place: Place,
}

impl Slot {
    #[inline(always)]
    fn end(self, completions: &CompletionTable, status: Status) {
        if let Some((completer, _region)) = self.waiting {
            let bytes = if status == Status::Success { self.bytes } else { 0 };
            completions.end(completer, self.opcode, status, bytes);
        }
    }

    fn end_as(self, completions: &CompletionTable, completion: Completion) {
        if let Some((completer, _region)) = self.waiting {
            completions.end_as(completer, completion);
        }
    }

    fn is_held(&self) -> bool {
        matches!(self.place, Place::Held(_))
    }
}

/// A queue of the device, as far as it has not reported it.
#[derive(Default)]
struct Outstanding {
    slots: VecDeque<Slot>,
    /// The number of the first slot.
    first: u32,
}

impl Outstanding {
    fn next(&self) -> u32 {
        self.first.wrapping_add(self.slots.len() as u32)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Slot> {
        let slot = self.slots.pop_front()?;
        self.first = self.first.wrapping_add(1);
        Some(slot)
    }

    /// How many slots lie before number `number`, where it is outstanding.
    fn before(&self, number: u32) -> Option<usize> {
        let before = number.wrapping_sub(self.first) as usize;
        (before < self.slots.len()).then_some(before)
    }

    /// Ends what the device never got, once nothing that it has lies before.
    fn settle(&mut self, completions: &CompletionTable) {
        while let Some(Slot { place: Place::Held(status), .. }) = self.slots.front() {
            let status = *status;
            if let Some(slot) = self.pop() {
                slot.end(completions, status);
            }
        }
    }

    fn flush(&mut self, completions: &CompletionTable) {
        while let Some(slot) = self.pop() {
            let status = if let Place::Held(status) = slot.place { status } else { Status::Flushed };
            slot.end(completions, status);
        }
    }
}

/// A queue pair of the device, destroyed when dropped.
struct Raw {
    raw: NonNull<ibv_qp>,
    device: Rc<Device>,
}

impl Raw {
    /// Destroys it; where the device refuses, gives back what must then be kept for ever.
    fn destroy(self) -> bool {
        let raw = std::mem::ManuallyDrop::new(self);
        // SAFETY: made by this device and not destroyed before.
        let result = unsafe { (raw.device.library().ibv_destroy_qp)(raw.raw.as_ptr()) };
        // SAFETY: `raw` is not used afterwards and its only field that needs it is dropped once.
        drop(unsafe { std::ptr::read(&raw.device) });
        result == 0
    }
}

impl Drop for Raw {
    fn drop(&mut self) {
        // SAFETY: made by this device and not destroyed before.
        unsafe { (self.device.library().ibv_destroy_qp)(self.raw.as_ptr()) };
    }
}

struct Pair {
    /// Destroyed before what it uses: the first field is dropped first.
    raw: Option<Raw>,
    headers: Option<Scratch>,
    shared: Option<Rc<RawShared>>,
    /// Where its requests are posted and polled by hand.
    link: Option<Rc<Link>>,
    role: usize,
    options: QueuePairOptions,
    state: QueuePairState,
    number: u32,
    queue: usize,
    sends: Outstanding,
    receives: Outstanding,
    /// When the device last flushed a request, where the queue pair failed.
    flushed_at: Option<Time>,
    /// Where the connection manager made its connection. Goes after the device's queue pair.
    connection: Option<Connection>,
    /// Whether the connection manager said that the peer left: the next request fails at once.
    gone: bool,
}

impl Pair {
    /// How many entries of its completion queue it may fill.
    fn entries(options: &QueuePairOptions) -> u32 {
        options.send_depth + options.receive_depth + 1
    }

    fn settle(&mut self, completions: &CompletionTable) {
        self.sends.settle(completions);
        self.receives.settle(completions);
    }

    /// Keeps a request, and its region with it, until its end.
    #[inline(always)]
    fn keep(&mut self, request: WorkRequest<VerbsRegion>, completer: Completer, place: Place) {
        let opcode = request.operation.opcode();
        let signaled = request.signaled || self.options.signal_all;
        let local = post::into_local(request.operation);
        let waiting = Some((completer, local.region));
        self.sends.slots.push_back(Slot { waiting, opcode, bytes: local.length, signaled, place });
    }

    fn is_settled(&self) -> bool {
        self.sends.slots.is_empty() && self.receives.slots.is_empty()
    }

    /// Posts a request that moves nothing and reports, where what was posted before would stay silent.
    fn mark(&mut self, at: At) {
        let silent = self.sends.slots.back().is_some_and(|slot| !slot.signaled);
        let Some(raw) = self.raw.as_ref().filter(|_| silent) else { return };
        let mut work: ibv_send_wr = zeroed();
        work.wr_id = identifier(Queue::Send, at.generation, at.pair_slot, self.sends.next());
        work.opcode = IBV_WR_RDMA_WRITE;
        work.send_flags = IBV_SEND_SIGNALED;
        // SAFETY: the queue pair is alive, and an empty WRITE names no memory.
        let place = match unsafe { post_send(raw.raw, &mut work, 1, WORK) } {
            Ok(()) => Place::Posted,
            // What lies before can then only be flushed.
            Err(_) => return,
        };
        self.sends.slots.push_back(Slot {
            waiting: None,
            opcode: Opcode::Write,
            bytes: 0,
            signaled: true,
            place,
        });
    }

    /// Destroys it on the device, after which the device touches nothing, and flushes what is left.
    fn destroy(&mut self, completions: &CompletionTable) {
        if let Some(link) = &self.link {
            link.raw.set(None);
        }
        let gone = self.raw.take().is_none_or(Raw::destroy);
        if !gone {
            // The device may still write there, so the memory must never serve anything else.
            let slots = self.sends.slots.iter().chain(&self.receives.slots);
            slots.for_each(|slot| std::mem::forget(slot.waiting.as_ref().map(|(_, region)| region.clone())));
            std::mem::forget(self.headers.take());
        }
        self.connection = None;
        self.sends.flush(completions);
        self.receives.flush(completions);
    }
}

#[derive(Default)]
struct PairSlot {
    generation: u16,
    pair: Option<Pair>,
}

/// A shared receive queue of the device, destroyed when dropped.
struct RawShared {
    raw: NonNull<ibv_srq>,
    device: Rc<Device>,
}

impl Drop for RawShared {
    fn drop(&mut self) {
        // SAFETY: made by this device, and its queue pairs, which hold this, are destroyed.
        unsafe { (self.device.library().ibv_destroy_srq)(self.raw.as_ptr()) };
    }
}

struct Shared {
    raw: Rc<RawShared>,
    role: usize,
    depth: u32,
    /// By number: whichever connection a message comes on takes the next.
    slots: BTreeMap<u32, Slot>,
    next: u32,
}

/// What a list of requests is built in, kept for the next one.
#[derive(Default)]
struct Lists {
    work: Vec<ibv_send_wr>,
    slices: Vec<ibv_sge>,
}

/// Every queue pair of a run, and the completion queues that they share.
pub(crate) struct Engine {
    pair_slots: Vec<PairSlot>,
    free: Vec<usize>,
    shared: Vec<Option<Shared>>,
    queues: Vec<CompletionQueue>,
    channel: Option<EventChannel>,
    failing: Vec<usize>,
    taken: Box<[ibv_wc; TAKEN]>,
    lists: Lists,
    acknowledgement_floor: Time,
    device: Rc<Device>,
    completions: Rc<CompletionTable>,
}

impl Engine {
    pub fn new(
        device: &Rc<Device>,
        completions: &Rc<CompletionTable>,
        events: bool,
        acknowledgement_floor: Time,
    ) -> Result<Engine, String> {
        let channel = if events { Some(EventChannel::new(device)?) } else { None };
        Ok(Engine {
            pair_slots: Vec::new(),
            free: Vec::new(),
            shared: Vec::new(),
            queues: Vec::new(),
            channel,
            failing: Vec::new(),
            taken: Box::new([zeroed(); TAKEN]),
            lists: Lists::default(),
            acknowledgement_floor,
            device: device.clone(),
            completions: completions.clone(),
        })
    }

    #[inline(always)]
    fn pair(&mut self, at: At) -> Option<&mut Pair> {
        let pair_slot = self
            .pair_slots
            .get_mut(at.pair_slot)
            .filter(|pair_slot| pair_slot.generation == at.generation)?;
        pair_slot.pair.as_mut()
    }

    fn state(&self, at: At) -> QueuePairState {
        let pair_slot =
            self.pair_slots.get(at.pair_slot).filter(|pair_slot| pair_slot.generation == at.generation);
        pair_slot
            .and_then(|pair_slot| pair_slot.pair.as_ref())
            .map_or(QueuePairState::Closed, |pair| pair.state)
    }
}

/// Which slot a queue pair has, and since when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct At {
    pair_slot: usize,
    generation: u16,
}

impl At {
    fn of(identifier: u64) -> At {
        At { pair_slot: (identifier >> 32) as usize & 0xffff, generation: (identifier >> 48) as u16 & 0x3fff }
    }
}

struct Handle {
    core: Rc<Core>,
    at: At,
    number: u32,
    options: QueuePairOptions,
    terms: Terms,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.engine.borrow_mut().close(self.at, self.core.timers.clock());
    }
}

/// What a request may be.
#[derive(Clone, Copy)]
pub(crate) struct Terms {
    pub kind: QueuePairType,
    pub inline_max: u32,
    pub signal_all: bool,
    /// The longest message, in bytes.
    pub message_max: u64,
}

/// A queue pair of the verbs backend.
#[derive(Clone)]
pub struct VerbsQueuePair(Rc<Handle>);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_come_back() {
        for (queue, top) in [(Queue::Send, 0), (Queue::Receive, 1), (Queue::Shared, 2)] {
            let made = identifier(queue, 0x3ffe, 0xfffd, u32::MAX);
            assert_eq!((made >> 62, made as u32), (top, u32::MAX));
            assert_eq!(At::of(made), At { pair_slot: 0xfffd, generation: 0x3ffe });
        }
    }
}
