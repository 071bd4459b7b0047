//! What applications hold of a queue pair: requests and receives on their way to the device.

use super::{At, Engine, Handle, Pair, Place, Queue, Slot, Terms, VerbsQueuePair, WORK, identifier};
use crate::bindings::*;
use crate::completion::VerbsCompletion;
use crate::region::{HEADER, VerbsRegion};
use offpath_fabric::runtime::Clock;
use offpath_fabric::*;
use std::borrow::Borrow;
use std::ptr::NonNull;

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

pub(super) fn into_local(operation: WorkKind<VerbsRegion>) -> Slice<VerbsRegion> {
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
