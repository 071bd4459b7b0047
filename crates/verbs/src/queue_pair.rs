//! Queue pairs: posting, completing, failing.
//!
//! The device reports what it did; this file keeps, for each queue pair, the requests that it has not
//! reported yet in posting order, and with each the regions that it uses. A queue pair that failed is
//! put into the device's error state, posts nothing more to it, and is destroyed when the device does
//! not flush it in time, so that every request has an end.

use crate::bindings::*;
use crate::completion::{Completer, CompletionTable, VerbsCompletion};
use crate::device::{CompletionQueue, Device, EventChannel, QUEUE_KEY, path};
use crate::direct::Link;
use crate::manager::{Agreed, Connection};
use crate::region::{HEADER, Scratch, VerbsRegion};
use crate::{Core, VerbsFabric};
use offpath_fabric::runtime::{Clock, WallClock, check_options};
use offpath_fabric::*;
use offpath_quantity::Time;
use std::borrow::Borrow;
use std::cell::Cell;
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
        let local = into_local(request.operation);
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

/// What a peer needs to know to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parameters {
    pub queue_pair: u32,
    /// The number of the first packet that this end sends.
    pub first_packet: u32,
    pub path: [u8; 20],
    pub mtu: u8,
    /// How many READs and atomics this end answers at once.
    pub reads: u8,
    /// How long this end waits when the other has no receive, as verbs encode it: the other end's
    /// refusals say it.
    pub receiver_not_ready: u8,
}

impl Parameters {
    pub const BYTES: usize = 31;

    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.queue_pair.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.first_packet.to_le_bytes());
        bytes[8..28].copy_from_slice(&self.path);
        bytes[28..].copy_from_slice(&[self.mtu, self.reads, self.receiver_not_ready]);
        bytes
    }

    pub fn from_bytes(bytes: &[u8; Self::BYTES]) -> Parameters {
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let mut path = [0; 20];
        path.copy_from_slice(&bytes[8..28]);
        Parameters {
            queue_pair: word(0),
            first_packet: word(4) & 0xff_ffff,
            path,
            mtu: bytes[28],
            reads: bytes[29],
            receiver_not_ready: bytes[30],
        }
    }
}

/// The least `n` of verbs with `4.096 us * 2^n` at or above `span`.
fn timeout_code(span: Time) -> u8 {
    let code = (1..31).find(|code| Time::from_ns(4096 << code) >= span);
    code.unwrap_or(31)
}

/// The waits for a receive that verbs can express, in us; the place is the code.
const NOT_READY: [u64; 32] = [
    655_360, 10, 20, 30, 40, 60, 80, 120, 160, 240, 320, 480, 640, 960, 1280, 1920, 2560, 3840, 5120, 7680,
    10_240, 15_360, 20_480, 30_720, 40_960, 61_440, 81_920, 122_880, 163_840, 245_760, 327_680, 491_520,
];

/// The least wait of verbs at or above `span`.
fn not_ready_code(span: Time) -> u8 {
    // The longest has code 0.
    (1..32u8).find(|code| Time::from_us(NOT_READY[usize::from(*code)]) >= span).unwrap_or(0)
}

pub(crate) fn status(code: u32) -> Status {
    match code {
        IBV_WC_SUCCESS => Status::Success,
        IBV_WC_LOC_LEN_ERR => Status::LocalLength,
        IBV_WC_LOC_QP_OP_ERR => Status::LocalOperation,
        IBV_WC_LOC_PROT_ERR | IBV_WC_LOC_ACCESS_ERR => Status::LocalProtection,
        IBV_WC_WR_FLUSH_ERR => Status::Flushed,
        IBV_WC_BAD_RESP_ERR => Status::BadResponse,
        IBV_WC_REM_INV_REQ_ERR => Status::RemoteInvalidRequest,
        IBV_WC_REM_ACCESS_ERR => Status::RemoteAccess,
        IBV_WC_REM_OP_ERR | IBV_WC_REM_ABORT_ERR => Status::RemoteOperation,
        IBV_WC_RETRY_EXC_ERR | IBV_WC_RESP_TIMEOUT_ERR => Status::RetryExceeded,
        IBV_WC_RNR_RETRY_EXC_ERR => Status::ReceiverNotReady,
        _ => Status::Fatal,
    }
}

/// The sender's GID in the header before a UD message: an InfiniBand header, or an IPv4 one in the last
/// 20 bytes, as RoCE v2 has it.
fn sender(header: &[u8; HEADER as usize]) -> [u8; 16] {
    let mut gid = [0; 16];
    if header[0] >> 4 == 6 {
        gid.copy_from_slice(&header[8..24]);
    } else {
        gid[10..12].fill(0xff);
        gid[12..].copy_from_slice(&header[32..36]);
    }
    gid
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

    /// Takes completions, and gives up on devices that do not flush. Says whether there was anything.
    #[inline]
    pub fn turn(&mut self, clock: &WallClock) -> bool {
        let mut any = false;
        for queue in 0..self.queues.len() {
            loop {
                let count = self.queues[queue].poll(&mut self.taken[..]);
                any |= count > 0;
                for index in 0..count {
                    let ibv_wc { wr_id: identifier, status: code, .. } = self.taken[index];
                    if code != IBV_WC_SUCCESS || identifier >> 62 != 0 || !self.sent(identifier) {
                        let work = self.taken[index];
                        self.complete(&work, clock);
                    }
                }
                if count < TAKEN {
                    break;
                }
            }
        }
        if !self.failing.is_empty() {
            any |= self.give_up(clock.now());
        }
        any
    }

    /// Destroys the failed queue pairs that the device does not flush; says whether there was one.
    fn give_up(&mut self, now: Time) -> bool {
        let mut any = false;
        self.failing = std::mem::take(&mut self.failing)
            .into_iter()
            .filter(|pair_slot| {
                let Some(pair) = self.pair_slots[*pair_slot].pair.as_mut() else { return false };
                if !pair.is_settled() && pair.flushed_at.is_some_and(|at| now > at + FLUSH_PATIENCE) {
                    pair.destroy(&self.completions);
                    any = true;
                }
                !pair.is_settled()
            })
            .collect();
        any
    }

    /// Ends a request that succeeded, where nothing needs a second look; says whether it did.
    #[inline]
    fn sent(&mut self, identifier: u64) -> bool {
        let at = At::of(identifier);
        let Some(pair_slot) =
            self.pair_slots.get_mut(at.pair_slot).filter(|pair_slot| pair_slot.generation == at.generation)
        else {
            return false;
        };
        let Some(pair) = pair_slot.pair.as_mut().filter(|pair| pair.state == QueuePairState::Ready) else {
            return false;
        };
        let queue = &mut pair.sends;
        let Some(before) = queue.before(identifier as u32) else { return false };
        // What is held back has its turn only once all that the device has is done.
        if queue.slots.get(before + 1).is_some_and(Slot::is_held) {
            return false;
        }
        for _ in 0..=before {
            // Requests end in order, so one that reports covers the silent ones before it.
            if let Some(slot) = queue.pop() {
                slot.end(&self.completions, Status::Success);
            }
        }
        true
    }

    /// When the next failed queue pair is given up on.
    pub fn deadline(&self) -> Option<Time> {
        let pairs = self.failing.iter().filter_map(|pair_slot| self.pair_slots[*pair_slot].pair.as_ref());
        pairs.filter_map(|pair| pair.flushed_at).map(|at| at + FLUSH_PATIENCE + Time::from_us(1)).min()
    }

    /// Arms the completion queues where completions are waited for by events; says whether so.
    pub fn arm(&self) -> bool {
        if self.channel.is_some() {
            self.queues.iter().for_each(CompletionQueue::arm);
        }
        self.channel.is_some()
    }

    /// What has something to read when the device has something to say.
    pub fn descriptors(&self) -> Vec<i32> {
        let channel = self.channel.iter().map(EventChannel::descriptor);
        channel.chain([self.device.event_descriptor()]).collect()
    }

    /// Reads what the descriptors have.
    pub fn take_events(&mut self, clock: &WallClock) {
        if let Some(channel) = &self.channel {
            channel.drain();
        }
        while let Some((kind, element)) = self.device.next_event() {
            let about = |pair: &Pair| match kind {
                IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => {
                    pair.raw.as_ref().is_some_and(|raw| raw.raw.as_ptr() as usize == element)
                }
                IBV_EVENT_DEVICE_FATAL => true,
                _ => false,
            };
            let pair_slots = self.pair_slots.iter().enumerate();
            let hit: Vec<_> =
                pair_slots.filter(|(_, s)| s.pair.as_ref().is_some_and(about)).map(|(at, _)| at).collect();
            hit.into_iter().for_each(|pair_slot| self.fail(pair_slot, clock.now()));
        }
    }

    fn complete(&mut self, work: &ibv_wc, clock: &WallClock) {
        let (number, at) = (work.wr_id as u32, At::of(work.wr_id));
        let status = status(work.status);
        if work.wr_id >> 62 == 2 {
            return self.complete_shared(work, number, at.pair_slot, status, clock);
        }
        let (device, completions) = (self.device.clone(), self.completions.clone());
        // What is left of a queue pair that is gone was ended when it went.
        let Some(pair) = self.pair(at) else { return };
        let send = work.wr_id >> 62 == 0;
        let queue = if send { &mut pair.sends } else { &mut pair.receives };
        let Some(before) = queue.before(number) else { return };
        for _ in 0..before {
            if let Some(slot) = queue.pop() {
                slot.end(&completions, Status::Success);
            }
        }
        let Some(slot) = queue.pop() else { return };
        if send || status != Status::Success {
            slot.end(&completions, status);
        } else {
            let header =
                pair.headers.as_ref().map(|headers| headers.header(number % pair.options.receive_depth));
            slot.end_as(&completions, received(&device, work, header));
        }
        let held = pair.sends.slots.front().is_some_and(Slot::is_held);
        if pair.state == QueuePairState::Error {
            pair.flushed_at = Some(clock.now());
            pair.settle(&completions);
        } else if status != Status::Success || held {
            self.fail(at.pair_slot, clock.now());
        }
    }

    fn complete_shared(
        &mut self,
        work: &ibv_wc,
        number: u32,
        place: usize,
        status: Status,
        clock: &WallClock,
    ) {
        let slot = self.shared.get_mut(place).and_then(Option::as_mut).and_then(|s| s.slots.remove(&number));
        let Some(slot) = slot else { return };
        if status == Status::Success {
            let source = Some(self.device.address(work.qp_num));
            slot.end_as(&self.completions, Completion { source, ..received(&self.device, work, None) });
            return;
        }
        slot.end(&self.completions, status);
        let hit =
            |pair_slot: &PairSlot| pair_slot.pair.as_ref().is_some_and(|pair| pair.number == work.qp_num);
        if let Some(pair_slot) = self.pair_slots.iter().position(hit) {
            self.fail(pair_slot, clock.now());
        }
    }

    /// Puts a queue pair into the error state, here and on the device.
    fn fail(&mut self, pair_slot: usize, now: Time) {
        let Some(pair) = self.pair_slots[pair_slot].pair.as_mut() else { return };
        if pair.state == QueuePairState::Error {
            return;
        }
        pair.state = QueuePairState::Error;
        pair.flushed_at = Some(now);
        if let Some(raw) = &pair.raw {
            let attributes = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..zeroed() };
            // SAFETY: the queue pair is alive. Where the device refuses, it is destroyed when it does not
            // flush in time.
            let _ = unsafe { self.device.modify(raw.raw, attributes, IBV_QP_STATE) };
        }
        pair.settle(&self.completions);
        if !pair.is_settled() {
            self.failing.push(pair_slot);
        }
    }

    /// Closes a queue pair.
    fn close(&mut self, at: At, clock: &WallClock) {
        if self.pair(at).is_none() {
            return;
        }
        // What has been done is told before the rest is flushed.
        self.turn(clock);
        let pair_slot = &mut self.pair_slots[at.pair_slot];
        pair_slot.generation = pair_slot.generation.wrapping_add(1) & 0x3fff;
        if let Some(mut pair) = pair_slot.pair.take() {
            pair.destroy(&self.completions);
            if pair.link.is_none() {
                self.queues[pair.queue].room += Pair::entries(&pair.options);
            }
            self.free.push(at.pair_slot);
        }
    }

    pub fn close_all_of(&mut self, role: usize, clock: &WallClock) {
        let pair_slots = self.pair_slots.iter().enumerate();
        let own: Vec<_> = pair_slots
            .filter(|(_, s)| s.pair.as_ref().is_some_and(|pair| pair.role == role))
            .map(|(pair_slot, s)| At { pair_slot, generation: s.generation })
            .collect();
        own.into_iter().for_each(|at| self.close(at, clock));
        for place in &mut self.shared {
            if place.as_ref().is_some_and(|shared| shared.role == role)
                && let Some(Shared { raw, slots, .. }) = place.take()
            {
                // Its queue pairs are gone, so this was the last that kept it.
                drop(raw);
                slots.into_values().for_each(|slot| slot.end(&self.completions, Status::Flushed));
            }
        }
    }

    /// A completion queue with room for a queue pair.
    fn queue_with_room(&mut self, entries: u32) -> Result<usize, String> {
        if let Some(queue) = self.queues.iter().position(|queue| queue.room >= entries) {
            return Ok(queue);
        }
        let most = u32::try_from(self.device.attributes.max_cqe).unwrap_or(u32::MAX);
        let size = QUEUE_ENTRIES.min(most).max(entries);
        self.queues.push(CompletionQueue::new(&self.device, size, self.channel.as_ref())?);
        Ok(self.queues.len() - 1)
    }

    fn create(
        &mut self,
        role: usize,
        options: QueuePairOptions,
        shared: Option<Rc<RawShared>>,
        by_hand: bool,
    ) -> Result<(At, u32, Option<Rc<Link>>), String> {
        if self.free.is_empty() && self.pair_slots.len() > PAIR_SLOTS_LAST {
            return Err(format!("{} queue pairs are open", self.pair_slots.len()));
        }
        let entries = Pair::entries(&options);
        let link = if by_hand {
            // A device rounds depths up, and the queue holds what it then may report.
            let most = u32::try_from(self.device.attributes.max_cqe).unwrap_or(u32::MAX);
            let queue = CompletionQueue::new(&self.device, (2 * entries).min(most).max(entries), None)?;
            Some(Rc::new(Link { raw: Cell::new(None), queue }))
        } else {
            None
        };
        let queue = if by_hand { 0 } else { self.queue_with_room(entries)? };
        let ud = options.kind == QueuePairType::Ud;
        let capacity = ibv_qp_cap {
            // One more, for a marker.
            max_send_wr: options.send_depth + 1,
            max_recv_wr: if shared.is_some() { 0 } else { options.receive_depth.max(1) },
            max_send_sge: 1,
            max_recv_sge: if ud { 2 } else { 1 },
            max_inline_data: options.inline_max,
        };
        let kind = if ud { IBV_QPT_UD } else { IBV_QPT_RC };
        let on = shared.as_ref().map(|shared| shared.raw);
        let completions = link.as_ref().map_or_else(|| self.queues[queue].queue, |link| link.queue.queue);
        let raw = self.device.create_queue_pair(kind, completions, capacity, on)?;
        let raw = Raw { raw, device: self.device.clone() };
        // SAFETY: just made.
        let number = unsafe { (*raw.raw.as_ptr()).qp_num };
        self.initialise(&raw, ud)?;
        let headers = if ud {
            Some(Scratch::new(&self.device, options.receive_depth).map_err(|e| e.to_string())?)
        } else {
            None
        };
        let state = if ud { QueuePairState::Ready } else { QueuePairState::Initialised };
        let pair = Pair {
            raw: Some(raw),
            headers,
            shared,
            link: link.clone(),
            role,
            options,
            state,
            number,
            queue,
            sends: Outstanding::default(),
            receives: Outstanding::default(),
            flushed_at: None,
            connection: None,
            gone: false,
        };
        if let (Some(link), Some(raw)) = (&link, &pair.raw) {
            link.raw.set(Some(raw.raw));
        } else {
            self.queues[queue].room -= entries;
        }
        let pair_slot = self.free.pop().unwrap_or_else(|| {
            self.pair_slots.push(PairSlot::default());
            self.pair_slots.len() - 1
        });
        self.pair_slots[pair_slot].pair = Some(pair);
        Ok((At { pair_slot, generation: self.pair_slots[pair_slot].generation }, number, link))
    }

    /// Lets a fresh queue pair take receives; a UD one is then ready.
    fn initialise(&self, raw: &Raw, ud: bool) -> Result<(), String> {
        let device = &self.device;
        let rights = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_WRITE
            | if device.attributes.atomic_cap > 0 { IBV_ACCESS_REMOTE_ATOMIC } else { 0 };
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: device.port,
            qkey: QUEUE_KEY,
            qp_access_flags: rights as u32,
            ..zeroed()
        };
        let own = if ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
        // SAFETY: the queue pair is alive.
        let change = |attributes, mask| unsafe { device.modify(raw.raw, attributes, mask) };
        change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own)?;
        if ud {
            change(ibv_qp_attr { qp_state: IBV_QPS_RTR, ..zeroed() }, IBV_QP_STATE)?;
            let attributes = ibv_qp_attr { qp_state: IBV_QPS_RTS, ..zeroed() };
            change(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN)?;
        }
        Ok(())
    }

    /// What a peer needs to know of a queue pair whose first packet will have this number.
    pub fn parameters(&mut self, at: At, first_packet: u32) -> Option<Parameters> {
        let device = self.device.clone();
        let pair = self.pair(at)?;
        Some(Parameters {
            queue_pair: pair.number,
            first_packet: first_packet & 0xff_ffff,
            path: path(device.gid, device.lid()),
            mtu: device.port_attributes.active_mtu as u8,
            reads: device.reads_answered(),
            receiver_not_ready: not_ready_code(pair.options.receiver_not_ready_delay),
        })
    }

    /// Connects a queue pair to a peer's, as both parameters say or, for what the connection
    /// manager agreed on, as that says.
    pub fn connect(
        &mut self,
        at: At,
        own: Parameters,
        peer: Parameters,
        managed: Option<&Agreed>,
    ) -> Result<(), String> {
        let device = self.device.clone();
        let floor = self.acknowledgement_floor;
        let pair = self.pair(at).ok_or("the queue pair was closed meanwhile")?;
        let raw = pair.raw.as_ref().ok_or("the queue pair was closed meanwhile")?;
        let (path, attributes_set) = managed.map(|agreed| agreed.receiving).unwrap_or_else(|| {
            let attributes = ibv_qp_attr {
                path_mtu: u32::from(own.mtu.min(peer.mtu).max(1)),
                dest_qp_num: peer.queue_pair,
                rq_psn: peer.first_packet,
                ah_attr: device.route(&peer.path),
                ..zeroed()
            };
            (attributes, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
        });
        let receiving = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            max_dest_rd_atomic: own.reads,
            min_rnr_timer: peer.receiver_not_ready & 31,
            ..path
        };
        let mask = attributes_set | IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        // SAFETY: the queue pair is alive.
        unsafe { device.modify(raw.raw, receiving, mask) }?;
        let exchanged = (ibv_qp_attr { sq_psn: own.first_packet, ..zeroed() }, IBV_QP_SQ_PSN);
        let (path, attributes_set) = managed.map_or(exchanged, |agreed| agreed.sending);
        let sending = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            timeout: timeout_code(pair.options.acknowledgement_timeout.max(floor)),
            retry_cnt: pair.options.retries.min(device.retries_max()),
            rnr_retry: pair.options.receiver_not_ready_retries.min(7),
            max_rd_atomic: device.reads_started().min(peer.reads),
            ..path
        };
        let mask = attributes_set
            | IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_MAX_QP_RD_ATOMIC;
        // SAFETY: the queue pair is alive.
        unsafe { device.modify(raw.raw, sending, mask) }?;
        pair.state = QueuePairState::Ready;
        Ok(())
    }

    /// Keeps the connection of a queue pair that it connected, so that the peer is told when it goes.
    pub fn keep(&mut self, at: At, connection: Connection) {
        if let Some(pair) = self.pair(at) {
            connection.belongs_to(at);
            pair.connection = Some(connection);
        }
    }

    /// The connection manager said that the peer left. As in every backend, it is a request that learns it;
    /// those in flight end as the device says.
    pub fn peer_gone(&mut self, at: At) {
        if let Some(pair) = self.pair(at) {
            pair.gone = true;
        }
    }
}

/// The completion of a receive that a message filled.
fn received(device: &Device, work: &ibv_wc, header: Option<[u8; HEADER as usize]>) -> Completion {
    let opcode = match work.opcode {
        IBV_WC_RECV_RDMA_WITH_IMM => Opcode::ReceiveWriteImmediate,
        _ => Opcode::Receive,
    };
    let before = if header.is_some() { u64::from(HEADER) } else { 0 };
    let bytes = u64::from(work.byte_len).saturating_sub(before);
    let immediate = (work.wc_flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(work.imm_data));
    let source = header.map(|header| {
        let gid = if work.wc_flags & IBV_WC_GRH != 0 { sender(&header) } else { [0; 16] };
        let lid = if device.lid() == 0 { 0 } else { work.slid };
        Address { path: path(gid, lid), ..device.address(work.src_qp) }
    });
    Completion { immediate, source, ..Completion::new(opcode, Status::Success, bytes) }
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

pub(crate) fn create(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
    shared: Option<&VerbsSharedReceiveQueue>,
) -> Result<VerbsQueuePair, Unsupported> {
    Ok(make(fabric, options, shared, false)?.0)
}

/// A queue pair for requests by hand.
pub(crate) fn create_direct(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
) -> Result<(VerbsQueuePair, Rc<Link>), Unsupported> {
    let (pair, link) = make(fabric, options, None, true)?;
    let missing = || fabric.unsupported("requests by hand", "use `create_queue_pair`");
    Ok((pair, link.ok_or_else(missing)?))
}

fn make(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
    shared: Option<&VerbsSharedReceiveQueue>,
    by_hand: bool,
) -> Result<(VerbsQueuePair, Option<Rc<Link>>), Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let can = core.backend.supports();
    let refuse = |feature: &str, next_step: &str| Err(fabric.unsupported(feature, next_step));
    if core.roles[role].ended.get() {
        return refuse("a queue pair for a role that ended", "make it before");
    }
    if options.kind == QueuePairType::Ud && !can.ud {
        return refuse("UD queue pairs", "use an RC queue pair, or another device");
    }
    if options.kind == QueuePairType::Ud && shared.is_some() {
        return refuse("UD queue pairs on a shared receive queue", "use an RC queue pair");
    }
    check_options(&options, &can)?;
    let shared = match shared {
        Some(shared) => Some(shared.raw().ok_or_else(|| {
            fabric.unsupported("a shared receive queue of a role that ended", "make another")
        })?),
        None => None,
    };
    let made = core.engine.borrow_mut().create(role, options, shared, by_hand);
    let (at, number, link) = made.map_err(|reason| {
        fabric.unsupported(
            &format!("a queue pair like this ({reason})"),
            "ask for less depth or inline payload",
        )
    })?;
    let message_max = match options.kind {
        QueuePairType::Rc => u64::from(core.device.port_attributes.max_msg_sz),
        QueuePairType::Ud => core.device.mtu(),
    };
    let QueuePairOptions { kind, inline_max, signal_all, .. } = options;
    let terms = Terms { kind, inline_max, signal_all, message_max };
    Ok((VerbsQueuePair(Rc::new(Handle { core: core.clone(), at, number, options, terms })), link))
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

impl Handle {
    fn way_to(&self, to: &Address) -> Result<ud_part, PostError> {
        let handle = self.core.device.handle(&to.path).map_err(|reason| Unsupported {
            backend: "verbs".into(),
            feature: format!("reaching this address ({reason})"),
            next_step: "check that it came from `resolve` or from a receive on this network".into(),
        })?;
        Ok(ud_part { ah: handle.as_ptr(), remote_qpn: to.queue_pair, remote_qkey: to.queue_key })
    }
}

/// Checks what the caller could have, and says it as verbs do.
#[inline(always)]
pub(crate) fn prepare<R: Borrow<VerbsRegion>>(
    terms: Terms,
    request: &WorkRequest<R>,
    work: &mut ibv_send_wr,
    slice: &mut ibv_sge,
    way_to: impl FnOnce(&Address) -> Result<ud_part, PostError>,
) -> Result<(), PostError> {
    let Terms { kind, inline_max, signal_all, message_max } = terms;
    request.check(kind, message_max, inline_max)?;
    let operation = &request.operation;
    let local = operation.local();
    let mut flags = 0;
    if request.signaled || signal_all {
        flags |= IBV_SEND_SIGNALED;
    }
    if request.fence && kind == QueuePairType::Rc {
        flags |= IBV_SEND_FENCE;
    }
    let at = |remote: &RemoteAddress| rdma_part {
        remote_addr: remote.region.base.wrapping_add(remote.offset),
        rkey: remote.region.key,
    };
    let mut word = None;
    work.opcode = match operation {
        WorkKind::Read { remote, .. } => {
            work.wr.rdma = at(remote);
            IBV_WR_RDMA_READ
        }
        WorkKind::Write { remote, immediate, .. } => {
            work.wr.rdma = at(remote);
            word = *immediate;
            if word.is_some() { IBV_WR_RDMA_WRITE_WITH_IMM } else { IBV_WR_RDMA_WRITE }
        }
        WorkKind::Send { to, immediate, .. } => {
            if let Some(to) = to {
                work.wr.ud = way_to(to)?;
            }
            word = *immediate;
            if word.is_some() { IBV_WR_SEND_WITH_IMM } else { IBV_WR_SEND }
        }
        WorkKind::CompareAndSwap { remote, compare, swap, .. } => {
            let rdma_part { remote_addr, rkey } = at(remote);
            work.wr.atomic = atomic_part { remote_addr, compare_add: *compare, swap: *swap, rkey };
            IBV_WR_ATOMIC_CMP_AND_SWP
        }
        WorkKind::FetchAndAdd { remote, add, .. } => {
            let rdma_part { remote_addr, rkey } = at(remote);
            work.wr.atomic = atomic_part { remote_addr, compare_add: *add, swap: 0, rkey };
            IBV_WR_ATOMIC_FETCH_AND_ADD
        }
    };
    work.imm_data = word.unwrap_or_default().to_be();
    if request.inline {
        if local.length > 0 {
            // The processor reads the payload while posting: nobody else checks the range.
            local.region.borrow().check(local.offset, local.length)?;
        }
        flags |= IBV_SEND_INLINE;
    }
    work.send_flags = flags;
    *slice = ibv_sge {
        addr: local.region.borrow().address(local.offset),
        length: local.length as u32,
        lkey: local.region.borrow().local_key(),
    };
    work.num_sge = i32::from(local.length > 0);
    Ok(())
}

/// A queue pair of the verbs backend.
#[derive(Clone)]
pub struct VerbsQueuePair(Rc<Handle>);

impl VerbsQueuePair {
    pub(crate) fn at(&self) -> At {
        self.0.at
    }

    pub(crate) fn terms(&self) -> Terms {
        self.0.terms
    }

    /// Has this end know of a failure that whoever polls by hand saw.
    #[cold]
    pub(crate) fn failed(&self) {
        let Handle { core, at, .. } = &*self.0;
        let mut engine = core.engine.borrow_mut();
        if engine.pair(*at).is_some() {
            engine.fail(at.pair_slot, core.timers.clock().now());
        }
    }

    #[inline]
    fn prepare(
        &self,
        request: &WorkRequest<VerbsRegion>,
        work: &mut ibv_send_wr,
        slice: &mut ibv_sge,
    ) -> Result<(), PostError> {
        prepare(self.0.terms, request, work, slice, |to| self.0.way_to(to))
    }

    /// The queue pair, where it takes requests.
    #[inline]
    fn postable<'a>(&self, engine: &'a mut Engine) -> Result<&'a mut Pair, PostError> {
        match engine.pair(self.0.at) {
            Some(pair) if pair.link.is_some() => Err(by_hand()),
            Some(pair) if pair.state != QueuePairState::Initialised => Ok(pair),
            Some(pair) => Err(PostError::State { state: pair.state }),
            None => Err(PostError::State { state: QueuePairState::Closed }),
        }
    }

    /// Posts what was prepared as one linked list.
    ///
    /// Where the device refuses a request of it, that one and those behind it are held back, and end when
    /// what lies before them has: as if the device had taken the request and failed at it.
    #[inline]
    fn submit(
        &self,
        engine: &mut Engine,
        requests: impl ExactSizeIterator<Item = WorkRequest<VerbsRegion>>,
        work: &mut [ibv_send_wr],
        mut completion: impl FnMut(VerbsCompletion),
    ) -> Result<(), PostError> {
        let Handle { core, at: At { pair_slot, generation }, .. } = &*self.0;
        let pair = self.postable(engine)?;
        let depth = pair.options.send_depth;
        let (mut posted, mut refusal) = (0, Status::Flushed);
        let failed = pair.state == QueuePairState::Error;
        let gone = pair.gone && pair.sends.slots.is_empty();
        if gone && !failed {
            refusal = Status::RetryExceeded;
        }
        let blocked = failed || gone || pair.sends.slots.back().is_some_and(Slot::is_held);
        if !blocked {
            if pair.sends.slots.len() + work.len() > depth as usize {
                return Err(PostError::QueueFull { depth });
            }
            let first = pair.sends.next();
            for (index, one) in work.iter_mut().enumerate() {
                one.wr_id =
                    identifier(Queue::Send, *generation, *pair_slot, first.wrapping_add(index as u32));
            }
            let start = work.as_mut_ptr();
            for index in 1..work.len() {
                // SAFETY: both elements are of the array, which no reference holds.
                unsafe { (*start.add(index - 1)).next = start.add(index) };
            }
            if let (Some(raw), false) = (&pair.raw, work.is_empty()) {
                // SAFETY: the queue pair is alive; the list and its slices live until the call returns; the
                // regions live in the slots made below, or in the requests where nothing was posted.
                match unsafe { post_send(raw.raw, start, work.len(), WORK) } {
                    Ok(()) => posted = work.len(),
                    Err((reason, count)) => {
                        // Some providers look at what others leave to the peer.
                        let unaligned = work.get(count).is_some_and(is_unaligned_atomic);
                        if count == 0 && !unaligned {
                            return Err(refused("posting a request", &reason));
                        }
                        posted = count;
                        refusal =
                            if unaligned { Status::RemoteInvalidRequest } else { Status::LocalOperation };
                    }
                }
            }
        }
        let all = requests.len();
        for (index, request) in requests.enumerate() {
            let (completer, own) = core.completions.make(core);
            completion(own);
            let place = match index {
                _ if index < posted => Place::Posted,
                _ if index == posted => Place::Held(refusal),
                _ => Place::Held(Status::Flushed),
            };
            if index == posted && !blocked {
                pair.mark(self.0.at);
            }
            pair.keep(request, completer, place);
        }
        if failed {
            pair.settle(&core.completions);
        } else if posted < all && pair.sends.slots.front().is_some_and(Slot::is_held) {
            engine.fail(*pair_slot, core.timers.clock().now());
        }
        Ok(())
    }
}

fn is_unaligned_atomic(work: &ibv_send_wr) -> bool {
    // SAFETY: every part of the union begins with the remote address or, for UD, with a pointer.
    let address = unsafe { work.wr.atomic.remote_addr };
    matches!(work.opcode, IBV_WR_ATOMIC_CMP_AND_SWP | IBV_WR_ATOMIC_FETCH_AND_ADD)
        && !address.is_multiple_of(8)
}

#[cold]
fn by_hand() -> PostError {
    PostError::Unsupported(Unsupported {
        backend: "verbs".into(),
        feature: "a completion of a queue pair that is posted to by hand".into(),
        next_step: "post to its `VerbsDirect`, or make it with `create_queue_pair`".into(),
    })
}

pub(crate) fn refused(feature: &str, reason: &str) -> PostError {
    PostError::Unsupported(Unsupported {
        backend: "verbs".into(),
        feature: format!("{feature} ({reason})"),
        next_step: "check the queue pair's options and the device's log".into(),
    })
}

fn into_local(operation: WorkKind<VerbsRegion>) -> Slice<VerbsRegion> {
    match operation {
        WorkKind::Read { local, .. }
        | WorkKind::Write { local, .. }
        | WorkKind::Send { local, .. }
        | WorkKind::CompareAndSwap { local, .. }
        | WorkKind::FetchAndAdd { local, .. } => local,
    }
}

/// What the provider said when it refused, and how many it took.
#[cold]
fn refusal(
    result: i32,
    list: *mut ibv_send_wr,
    bad: *mut ibv_send_wr,
    count: usize,
    step: usize,
) -> (String, usize) {
    let posted = if bad.is_null() { 0 } else { (bad as usize).wrapping_sub(list as usize) / step };
    (std::io::Error::from_raw_os_error(result.abs()).to_string(), posted.min(count))
}

/// Posts a list of `count`, `step` bytes apart; where not all were posted, gives the reason and how many.
///
/// # Safety
///
/// The queue pair must be alive, the list linked and its memory kept until the requests complete.
#[inline(always)]
pub(crate) unsafe fn post_send(
    raw: NonNull<ibv_qp>,
    list: *mut ibv_send_wr,
    count: usize,
    step: usize,
) -> Result<(), (String, usize)> {
    let mut bad = std::ptr::null_mut();
    // SAFETY: the caller's.
    unsafe {
        let Some(post) = (*(*raw.as_ptr()).context).ops.post_send else {
            return Err(("the provider posts nothing".into(), 0));
        };
        let result = post(raw.as_ptr(), list, &mut bad);
        if result == 0 {
            return Ok(());
        }
        Err(refusal(result, list, bad, count, step))
    }
}

/// Posts one receive; where it was not posted, gives the reason.
///
/// # Safety
///
/// The queue pair must be alive and its memory kept, or deregistered before it goes.
#[inline(always)]
pub(crate) unsafe fn post_receive(raw: NonNull<ibv_qp>, work: &mut ibv_recv_wr) -> Result<(), String> {
    let mut bad = std::ptr::null_mut();
    // SAFETY: the caller's.
    let result = unsafe {
        let post = (*(*raw.as_ptr()).context).ops.post_recv;
        post.map_or(libc::ENOSYS, |post| post(raw.as_ptr(), work, &mut bad))
    };
    if result == 0 { Ok(()) } else { Err(std::io::Error::from_raw_os_error(result.abs()).to_string()) }
}

impl QueuePair for VerbsQueuePair {
    type Region = VerbsRegion;
    type CompletionFuture = VerbsCompletion;

    fn batch(&self, requests: Vec<WorkRequest<VerbsRegion>>) -> Result<Vec<VerbsCompletion>, PostError> {
        let engine = &mut *self.0.core.engine.borrow_mut();
        self.postable(engine)?;
        let mut lists = std::mem::take(&mut engine.lists);
        lists.work.clear();
        lists.work.resize(requests.len(), zeroed());
        lists.slices.resize(requests.len(), zeroed());
        let mut completions = Vec::with_capacity(requests.len());
        let mut prepare = || {
            for ((request, work), slice) in requests.iter().zip(&mut lists.work).zip(&mut lists.slices) {
                self.prepare(request, work, slice)?;
                work.sg_list = slice;
            }
            Ok(())
        };
        let posted = prepare().and_then(|()| {
            self.submit(engine, requests.into_iter(), &mut lists.work, |completion| {
                completions.push(completion)
            })
        });
        engine.lists = lists;
        posted.map(|()| completions)
    }

    #[inline]
    fn post(&self, request: WorkRequest<VerbsRegion>) -> Result<VerbsCompletion, PostError> {
        let Handle { core, at, .. } = &*self.0;
        let engine = &mut *core.engine.borrow_mut();
        let pair = self.postable(engine)?;
        let (state, depth) = (pair.state, pair.options.send_depth);
        let (mut work, mut slice) = (zeroed::<ibv_send_wr>(), zeroed());
        self.prepare(&request, &mut work, &mut slice)?;
        work.sg_list = &mut slice;
        if let (QueuePairState::Ready, Some(raw)) = (state, &pair.raw)
            && pair.sends.slots.len() < depth as usize
            && !pair.gone
            && !pair.sends.slots.back().is_some_and(Slot::is_held)
        {
            work.wr_id = identifier(Queue::Send, at.generation, at.pair_slot, pair.sends.next());
            // SAFETY: the queue pair is alive; the request and its slice live until the call returns; the
            // region lives in the slot made below.
            if unsafe { post_send(raw.raw, &mut work, 1, WORK) }.is_ok() {
                let (completer, completion) = core.completions.make(core);
                pair.keep(request, completer, Place::Posted);
                return Ok(completion);
            }
        }
        // What was not posted is tried again, so that its refusal is told apart in one place.
        let mut own = None;
        self.submit(engine, std::iter::once(request), std::slice::from_mut(&mut work), |completion| {
            own = Some(completion)
        })?;
        own.ok_or(PostError::State { state })
    }

    fn receive(&self, into: Slice<VerbsRegion>) -> Result<VerbsCompletion, PostError> {
        let Handle { core, at, .. } = &*self.0;
        let mut engine = core.engine.borrow_mut();
        let Some(pair) = engine.pair(*at) else {
            return Err(PostError::State { state: QueuePairState::Closed });
        };
        if pair.link.is_some() {
            return Err(by_hand());
        }
        if pair.shared.is_some() {
            return Err(PostError::NotOnThisKind {
                opcode: Opcode::Receive,
                kind: pair.options.kind,
                reason: "its receives are shared; post to the shared receive queue",
            });
        }
        let depth = pair.options.receive_depth;
        let failed = pair.state == QueuePairState::Error;
        if !failed && pair.receives.slots.len() >= depth as usize {
            return Err(PostError::ReceiveQueueFull { depth });
        }
        let place = if failed { Place::Held(Status::Flushed) } else { Place::Posted };
        if let (false, Some(raw)) = (failed, &pair.raw) {
            let number = pair.receives.next();
            let own = receive_slice(&into);
            let mut slices = [own; 2];
            let mut count = i32::from(into.length > 0);
            if let Some(headers) = &pair.headers {
                let header =
                    ibv_sge { addr: headers.address(number % depth), length: HEADER, lkey: headers.key() };
                slices = [header, own];
                count += 1;
            }
            let wr_id = identifier(Queue::Receive, at.generation, at.pair_slot, number);
            let mut work = ibv_recv_wr {
                wr_id,
                next: std::ptr::null_mut(),
                sg_list: slices.as_mut_ptr(),
                num_sge: count,
            };
            // SAFETY: the queue pair is alive, the request lives until the call returns, and the region is
            // kept in the slot made below.
            let made = unsafe { post_receive(raw.raw, &mut work) };
            made.map_err(|reason| refused("posting a receive", &reason))?;
        }
        let (completer, completion) = core.completions.make(core);
        let bytes = into.length;
        let waiting = Some((completer, into.region));
        let slot = Slot { waiting, opcode: Opcode::Receive, bytes, signaled: true, place };
        pair.receives.slots.push_back(slot);
        pair.settle(&core.completions);
        Ok(completion)
    }

    fn options(&self) -> QueuePairOptions {
        self.0.options
    }

    fn state(&self) -> QueuePairState {
        self.0.core.engine.borrow().state(self.0.at)
    }

    fn address(&self) -> Address {
        self.0.core.device.address(self.0.number)
    }

    fn message_max(&self) -> u64 {
        self.0.terms.message_max
    }

    fn send_slots_taken(&self) -> u32 {
        self.0.core.engine.borrow_mut().pair(self.0.at).map_or(0, |pair| pair.sends.slots.len() as u32)
    }

    fn close(&self) {
        self.0.core.engine.borrow_mut().close(self.0.at, self.0.core.timers.clock());
    }
}

#[inline]
pub(crate) fn receive_slice<R: Borrow<VerbsRegion>>(into: &Slice<R>) -> ibv_sge {
    // A receive longer than the device's word holds what the longest message needs.
    let length = u32::try_from(into.length).unwrap_or(u32::MAX);
    let region = into.region.borrow();
    ibv_sge { addr: region.address(into.offset), length, lkey: region.local_key() }
}

/// Receives that several connections share: whichever a message comes on takes the next. It lasts until
/// its role ends.
#[derive(Clone)]
pub struct VerbsSharedReceiveQueue {
    core: Rc<Core>,
    place: usize,
    role: usize,
}

pub(crate) fn create_shared(
    fabric: &VerbsFabric,
    depth: u32,
) -> Result<VerbsSharedReceiveQueue, Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let refuse =
        |feature: String| fabric.unsupported(&feature, "ask for less, or use each queue pair's own receives");
    let bound = u32::try_from(core.device.attributes.max_srq_wr).unwrap_or(0).min(core.device.depth_max);
    if depth > bound {
        return Err(refuse(format!("a shared receive queue of {depth} (at most {bound})")));
    }
    let raw = core.device.create_shared(depth.max(1));
    let raw = raw.map_err(|reason| refuse(format!("a shared receive queue of {depth} ({reason})")))?;
    let raw = Rc::new(RawShared { raw, device: core.device.clone() });
    let mut engine = core.engine.borrow_mut();
    engine.shared.push(Some(Shared { raw, role, depth, slots: BTreeMap::new(), next: 0 }));
    Ok(VerbsSharedReceiveQueue { core: core.clone(), place: engine.shared.len() - 1, role })
}

impl VerbsSharedReceiveQueue {
    fn raw(&self) -> Option<Rc<RawShared>> {
        let engine = self.core.engine.borrow();
        let shared = engine.shared.get(self.place)?.as_ref()?;
        (shared.role == self.role).then(|| shared.raw.clone())
    }

    /// Posts a receive for one message of any of the connections. Its completion names in `source` the
    /// queue pair of this end that took it.
    pub fn receive(&self, into: Slice<VerbsRegion>) -> Result<VerbsCompletion, PostError> {
        let mut engine = self.core.engine.borrow_mut();
        let Some(shared) = engine.shared.get_mut(self.place).and_then(Option::as_mut) else {
            return Err(PostError::State { state: QueuePairState::Closed });
        };
        if shared.slots.len() >= shared.depth as usize {
            return Err(PostError::ReceiveQueueFull { depth: shared.depth });
        }
        let mut slice = receive_slice(&into);
        let number = shared.next;
        let mut work = ibv_recv_wr {
            wr_id: identifier(Queue::Shared, 0, self.place, number),
            next: std::ptr::null_mut(),
            sg_list: &mut slice,
            num_sge: i32::from(into.length > 0),
        };
        // SAFETY: the queue is alive, the request lives until the call returns, and the region is kept in
        // the slot made below.
        unsafe {
            let mut bad = std::ptr::null_mut();
            let raw = shared.raw.raw;
            let post = (*(*raw.as_ptr()).context).ops.post_srq_recv;
            let result = post.map_or(libc::ENOSYS, |post| post(raw.as_ptr(), &mut work, &mut bad));
            if result != 0 {
                let reason = std::io::Error::from_raw_os_error(result.abs()).to_string();
                return Err(refused("posting a shared receive", &reason));
            }
        }
        shared.next = shared.next.wrapping_add(1);
        let (completer, completion) = self.core.completions.make(&self.core);
        let (opcode, bytes) = (Opcode::Receive, into.length);
        shared.slots.insert(
            number,
            Slot {
                waiting: Some((completer, into.region)),
                opcode,
                bytes,
                signaled: true,
                place: Place::Posted,
            },
        );
        Ok(completion)
    }

    /// How many receives it holds.
    pub fn depth(&self) -> u32 {
        let engine = self.core.engine.borrow();
        engine.shared.get(self.place).and_then(Option::as_ref).map_or(0, |shared| shared.depth)
    }
}

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

    #[test]
    fn times_are_rounded_up_to_what_verbs_express() {
        assert_eq!(timeout_code(Time::ZERO), 1);
        assert_eq!(timeout_code(Time::from_ns(8192)), 1);
        assert_eq!(timeout_code(Time::from_ms(1)), 8);
        assert_eq!(timeout_code(Time::MAX), 31);
        assert_eq!(not_ready_code(Time::ZERO), 1);
        assert_eq!(not_ready_code(Time::from_us(11)), 2);
        assert_eq!(not_ready_code(Time::from_ms(491)), 31);
        assert_eq!(not_ready_code(Time::from_ms(500)), 0);
    }

    #[test]
    fn parameters_come_back_from_bytes() {
        let parameters = Parameters {
            queue_pair: 0x0102_0304,
            first_packet: 0x0a_0b0c,
            path: std::array::from_fn(|index| index as u8),
            mtu: 3,
            reads: 16,
            receiver_not_ready: 31,
        };
        assert_eq!(Parameters::from_bytes(&parameters.to_bytes()), parameters);
    }

    #[test]
    fn senders_are_found_behind_both_headers() {
        let mut header = [0; 40];
        header[0] = 0x60;
        header[8..24].copy_from_slice(&[7; 16]);
        assert_eq!(sender(&header), [7; 16]);
        let mut header = [0; 40];
        header[20] = 0x45;
        header[32..36].copy_from_slice(&[10, 0, 0, 9]);
        assert_eq!(sender(&header), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 9]);
    }

    #[test]
    fn every_status_has_a_name() {
        assert_eq!(status(IBV_WC_SUCCESS), Status::Success);
        assert_eq!(status(IBV_WC_RETRY_EXC_ERR), Status::RetryExceeded);
        assert_eq!(status(19), Status::Fatal);
        assert_eq!(status(99), Status::Fatal);
    }
}
