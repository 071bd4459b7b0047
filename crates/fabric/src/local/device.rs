//! The device: queue pairs, the execution of their requests, DMA.

use super::memory::{self, LocalRegion};
use super::{Core, RC_MESSAGE_MAX, UD_MESSAGE_MAX};
use crate::backend::Backend;
use crate::queue_pair::*;
use crate::region::{Access, EndpointId, MemoryAt, Region, RemoteAddress, Slice};
use crate::runtime::{KeptHandle, check_options};
use crate::task::{Completer, CompletionFuture, completion_future};
use crate::{PostError, Unsupported};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

struct Posted {
    request: WorkRequest<LocalRegion>,
    /// The payload, where it was copied at posting.
    inline: Option<Vec<u8>>,
    completer: Completer,
}

struct Receive {
    into: Slice<LocalRegion>,
    completer: Completer,
}

/// Why a queue pair with work does not run.
#[derive(Clone, Copy, PartialEq)]
enum Stall {
    /// It runs.
    None,
    /// A timer will let it try again.
    Timer,
    /// The peer's next receive will.
    Receive,
}

struct Pair {
    role: usize,
    options: QueuePairOptions,
    state: QueuePairState,
    peer: Option<u32>,
    sends: VecDeque<Posted>,
    /// Executed unsignaled requests, which the next signaled one completes.
    covered: Vec<(Completer, Completion)>,
    receives: VecDeque<Receive>,
    active: bool,
    stall: Stall,
    attempts: u8,
}

impl Pair {
    fn slots_taken(&self) -> usize {
        self.sends.len() + self.covered.len()
    }
}

struct DmaJob {
    from: MemoryAt<LocalRegion>,
    to: MemoryAt<LocalRegion>,
    length: u64,
    completer: Completer,
}

#[derive(Default)]
pub(super) struct Device {
    pairs: BTreeMap<u32, Pair>,
    last_number: u32,
    /// Queue pairs with work, in the order of their turns.
    active: VecDeque<u32>,
    dma: VecDeque<DmaJob>,
}

/// What came of trying a request.
enum Attempt {
    Done(Status),
    /// The peer is gone or in error: nothing acknowledges.
    NoAnswer,
    /// The peer has no receive posted.
    NoReceive,
}

/// Gives every queue pair and DMA job that has work one turn; says whether any had.
pub(super) fn turn(core: &Core) -> bool {
    let mut device = core.device.borrow_mut();
    let (pairs, jobs) = (device.active.len(), device.dma.len());
    for _ in 0..pairs {
        if let Some(number) = device.active.pop_front() {
            device.execute_next(core, number);
        }
    }
    for _ in 0..jobs {
        if let Some(job) = device.dma.pop_front() {
            let status = copy_by_dma(core, &job).err().unwrap_or(Status::Success);
            job.completer.complete(Completion::new(Opcode::DmaCopy, status, job.length));
        }
    }
    pairs + jobs > 0
}

fn copy_by_dma(core: &Core, job: &DmaJob) -> Result<(), Status> {
    let place = |at: &MemoryAt<LocalRegion>, local: Access, remote: Access| match at {
        MemoryAt::Local { region, offset } => {
            let registration = region.registration();
            let good = registration.serves(registration.role, *offset, job.length, local);
            if good { Ok((region.clone(), *offset)) } else { Err(Status::LocalProtection) }
        }
        MemoryAt::Remote(at) => memory::resolve(core, None, at, job.length, remote),
    };
    if job.length == 0 {
        return Ok(());
    }
    let (from, from_offset) = place(&job.from, Access::READ_ONLY, Access::REMOTE_READ)?;
    let (to, to_offset) = place(&job.to, Access::LOCAL_WRITE, Access::REMOTE_WRITE)?;
    LocalRegion::copy(&from, from_offset, &to, to_offset, job.length);
    Ok(())
}

/// Whether a device may use a local slice for `role`.
fn local_is_good(role: usize, slice: &Slice<LocalRegion>, right: Access) -> bool {
    slice.length == 0 || slice.region.registration().serves(role, slice.offset, slice.length, right)
}

impl Device {
    fn activate(&mut self, number: u32) {
        if let Some(pair) = self.pairs.get_mut(&number)
            && !pair.active
            && pair.stall == Stall::None
            && !pair.sends.is_empty()
        {
            pair.active = true;
            self.active.push_back(number);
        }
    }

    /// Ends a stall.
    pub(super) fn retry(&mut self, number: u32) {
        if let Some(pair) = self.pairs.get_mut(&number) {
            pair.stall = Stall::None;
        }
        self.activate(number);
    }

    fn ready(&self, number: Option<u32>) -> Option<(u32, &Pair)> {
        let number = number?;
        self.pairs.get(&number).filter(|p| p.state == QueuePairState::Ready).map(|pair| (number, pair))
    }

    fn execute_next(&mut self, core: &Core, number: u32) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        pair.active = false;
        let Some(posted) = pair.sends.pop_front() else { return };
        let (role, kind, peer) = (pair.role, pair.options.kind, pair.peer);
        let attempt = match kind {
            QueuePairType::Rc => self.try_rc(core, role, peer, &posted),
            QueuePairType::Ud => Attempt::Done(self.send_ud(role, number, &posted)),
        };
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        let options = pair.options;
        let again = match attempt {
            Attempt::Done(status) => return self.finish(number, posted, status),
            Attempt::NoReceive if options.receiver_not_ready_retries >= QueuePairOptions::FOR_EVER => {
                pair.stall = Stall::Receive;
                None
            }
            Attempt::NoReceive if pair.attempts >= options.receiver_not_ready_retries => {
                return self.finish(number, posted, Status::ReceiverNotReady);
            }
            Attempt::NoReceive => Some(options.receiver_not_ready_delay),
            // The peer never comes back here, so all retries are waited for at once.
            Attempt::NoAnswer if pair.attempts > 0 => {
                return self.finish(number, posted, Status::RetryExceeded);
            }
            Attempt::NoAnswer => Some(options.acknowledgement_timeout.times(u64::from(options.retries) + 1)),
        };
        pair.sends.push_front(posted);
        if let Some(delay) = again {
            pair.attempts += 1;
            pair.stall = Stall::Timer;
            core.timers.after(delay, number);
        }
    }

    /// Reports a request that was executed, and what it covers.
    fn finish(&mut self, number: u32, posted: Posted, status: Status) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        pair.attempts = 0;
        let bytes = if status == Status::Success { posted.request.operation.local().length } else { 0 };
        let completion = Completion::new(posted.request.operation.opcode(), status, bytes);
        if status != Status::Success {
            self.fail(number, Some((posted.completer, completion)), None);
            return;
        }
        pair.covered.push((posted.completer, completion));
        if posted.request.signaled || pair.options.signal_all {
            pair.covered.drain(..).for_each(|(completer, completion)| completer.complete(completion));
        }
        self.activate(number);
    }

    /// Puts a queue pair into the error state: what went before is done, the failed request and the
    /// failed receive tell why, and the rest is flushed.
    fn fail(
        &mut self,
        number: u32,
        failed_send: Option<(Completer, Completion)>,
        failed_receive: Option<(Completer, Completion)>,
    ) {
        let Some(pair) = self.pairs.get_mut(&number) else { return };
        pair.state = QueuePairState::Error;
        pair.stall = Stall::None;
        let peer = pair.peer;
        let ended = pair.covered.drain(..).chain(failed_send).chain(failed_receive);
        ended.for_each(|(completer, completion)| completer.complete(completion));
        Device::flush(pair);
        self.retry_stalled(peer);
    }

    fn flush(pair: &mut Pair) {
        for posted in pair.sends.drain(..) {
            let opcode = posted.request.operation.opcode();
            posted.completer.complete(Completion::new(opcode, Status::Flushed, 0));
        }
        for receive in pair.receives.drain(..) {
            receive.completer.complete(Completion::new(Opcode::Receive, Status::Flushed, 0));
        }
    }

    /// A peer that waits for a receive has something new to see.
    fn retry_stalled(&mut self, number: Option<u32>) {
        if let Some(number) = number
            && self.pairs.get(&number).is_some_and(|pair| pair.stall == Stall::Receive)
        {
            self.retry(number);
        }
    }

    fn try_rc(&mut self, core: &Core, role: usize, peer: Option<u32>, posted: &Posted) -> Attempt {
        let operation = &posted.request.operation;
        let local = operation.local();
        let right = match operation {
            WorkKind::Write { .. } | WorkKind::Send { .. } => Access::READ_ONLY,
            _ => Access::LOCAL_WRITE,
        };
        if posted.inline.is_none() && !local_is_good(role, local, right) {
            return Attempt::Done(Status::LocalProtection);
        }
        let Some((peer, there)) = self.ready(peer) else { return Attempt::NoAnswer };
        let (peer_role, has_receive) = (there.role, !there.receives.is_empty());
        let place =
            |at: &RemoteAddress, length: u64, right: Access| -> Result<Option<(LocalRegion, u64)>, Status> {
                if length == 0 {
                    return Ok(None);
                }
                memory::resolve(core, Some(peer_role), at, length, right).map(Some)
            };
        let outcome = match operation {
            WorkKind::Read { remote, .. } => place(remote, local.length, Access::REMOTE_READ).map(|place| {
                if let Some((from, offset)) = place {
                    LocalRegion::copy(&from, offset, &local.region, local.offset, local.length);
                }
            }),
            WorkKind::Write { remote, immediate, .. } => {
                if immediate.is_some() && !has_receive {
                    return Attempt::NoReceive;
                }
                place(remote, local.length, Access::REMOTE_WRITE).map(|place| {
                    if let Some((to, offset)) = place {
                        put(posted, &to, offset);
                    }
                    if immediate.is_some() {
                        self.end_receive(peer, Opcode::ReceiveWriteImmediate, local.length, *immediate, None);
                    }
                })
            }
            WorkKind::Send { .. } if !has_receive => return Attempt::NoReceive,
            WorkKind::Send { immediate, .. } => self.fill_receive(peer, posted, *immediate),
            WorkKind::CompareAndSwap { remote, compare, swap, .. } => {
                let change = |word| if word == *compare { *swap } else { word };
                place(remote, 8, Access::REMOTE_ATOMIC).and_then(|place| update(place, change, local))
            }
            WorkKind::FetchAndAdd { remote, add, .. } => place(remote, 8, Access::REMOTE_ATOMIC)
                .and_then(|place| update(place, |word| word.wrapping_add(*add), local)),
        };
        if let Err(Status::RemoteAccess | Status::RemoteInvalidRequest) = outcome {
            // The responder's end fails with the request; a bad receive failed it already.
            self.fail(peer, None, None);
        }
        Attempt::Done(outcome.err().unwrap_or(Status::Success))
    }

    /// Puts a SEND on a connection into the peer's next receive.
    fn fill_receive(&mut self, peer: u32, posted: &Posted, immediate: Option<u32>) -> Result<(), Status> {
        let length = posted.request.operation.local().length;
        let Some(there) = self.pairs.get_mut(&peer) else { return Err(Status::RemoteOperation) };
        let Some(receive) = there.receives.front() else { return Err(Status::RemoteOperation) };
        let (here, at_requester) = if receive.into.length < length {
            (Status::LocalLength, Status::RemoteInvalidRequest)
        } else if length > 0 && !local_is_good(there.role, &receive.into, Access::LOCAL_WRITE) {
            (Status::LocalProtection, Status::RemoteOperation)
        } else {
            if length > 0 {
                put(posted, &receive.into.region, receive.into.offset);
            }
            self.end_receive(peer, Opcode::Receive, length, immediate, None);
            return Ok(());
        };
        let failed = there
            .receives
            .pop_front()
            .map(|receive| (receive.completer, Completion::new(Opcode::Receive, here, 0)));
        self.fail(peer, None, failed);
        Err(at_requester)
    }

    fn end_receive(
        &mut self,
        number: u32,
        opcode: Opcode,
        bytes: u64,
        immediate: Option<u32>,
        source: Option<Address>,
    ) {
        if let Some(receive) = self.pairs.get_mut(&number).and_then(|pair| pair.receives.pop_front()) {
            let completion =
                Completion { immediate, source, ..Completion::new(opcode, Status::Success, bytes) };
            receive.completer.complete(completion);
        }
    }

    /// Sends on UD: the message arrives, or nobody learns that it did not.
    fn send_ud(&mut self, role: usize, number: u32, posted: &Posted) -> Status {
        let WorkKind::Send { local, to: Some(to), immediate } = &posted.request.operation else {
            return Status::LocalOperation;
        };
        if posted.inline.is_none() && !local_is_good(role, local, Access::READ_ONLY) {
            return Status::LocalProtection;
        }
        let source = address(role, number);
        if let Some((there, pair)) = self.ready(Some(to.queue_pair))
            && pair.options.kind == QueuePairType::Ud
            && address(pair.role, there) == *to
            && let Some(receive) = pair.receives.front()
            && receive.into.length >= local.length
            && local_is_good(pair.role, &receive.into, Access::LOCAL_WRITE)
        {
            if local.length > 0 {
                put(posted, &receive.into.region, receive.into.offset);
            }
            self.end_receive(there, Opcode::Receive, local.length, *immediate, Some(source));
        }
        Status::Success
    }

    pub(super) fn post_dma(
        &mut self,
        from: MemoryAt<LocalRegion>,
        to: MemoryAt<LocalRegion>,
        length: u64,
    ) -> CompletionFuture {
        let (completer, completion) = completion_future();
        self.dma.push_back(DmaJob { from, to, length, completer });
        completion
    }

    /// Connects two queue pairs that wait for it; says whether both did.
    pub(super) fn join(&mut self, one: u32, other: u32) -> bool {
        let waits =
            |number| self.pairs.get(&number).is_some_and(|p: &Pair| p.state == QueuePairState::Initialised);
        let good = one != other && waits(one) && waits(other);
        if good {
            for (number, peer) in [(one, other), (other, one)] {
                if let Some(pair) = self.pairs.get_mut(&number) {
                    (pair.state, pair.peer) = (QueuePairState::Ready, Some(peer));
                }
            }
        }
        good
    }

    /// What a queue pair is, by number.
    pub(super) fn state(&self, number: u32) -> QueuePairState {
        self.pairs.get(&number).map_or(QueuePairState::Closed, |pair| pair.state)
    }

    fn close(&mut self, number: u32) {
        if let Some(mut pair) = self.pairs.remove(&number) {
            pair.covered.drain(..).for_each(|(completer, completion)| completer.complete(completion));
            Device::flush(&mut pair);
            self.retry_stalled(pair.peer);
        }
    }
}

/// Changes a peer's word and leaves what it was in the local slice.
fn update(
    place: Option<(LocalRegion, u64)>,
    change: impl FnOnce(u64) -> u64,
    local: &Slice<LocalRegion>,
) -> Result<(), Status> {
    let (region, offset) = place.ok_or(Status::RemoteAccess)?;
    let old = region.update(offset, change).map_err(|_| Status::RemoteInvalidRequest)?;
    local.region.write(local.offset, &old.to_le_bytes()).map_err(|_| Status::LocalProtection)
}

/// Copies the payload of a WRITE or SEND to where it goes; both ranges have been checked.
fn put(posted: &Posted, to: &LocalRegion, offset: u64) {
    let local = posted.request.operation.local();
    match &posted.inline {
        // The range was checked, so the write cannot fail.
        Some(bytes) => drop(to.write(offset, bytes)),
        None => LocalRegion::copy(&local.region, local.offset, to, offset, local.length),
    }
}

fn address(role: usize, number: u32) -> Address {
    Address { endpoint: EndpointId(role as u32), queue_pair: number, queue_key: number, path: [0; 20] }
}

pub(super) fn create(
    core: &Rc<Core>,
    role: usize,
    options: QueuePairOptions,
) -> Result<LocalQueuePair, Unsupported> {
    check_options(&options, &core.backend.capabilities())?;
    let mut device = core.device.borrow_mut();
    device.last_number += 1;
    let number = device.last_number;
    let state =
        if options.kind == QueuePairType::Ud { QueuePairState::Ready } else { QueuePairState::Initialised };
    let pair = Pair {
        role,
        options,
        state,
        peer: None,
        sends: VecDeque::new(),
        covered: Vec::new(),
        receives: VecDeque::new(),
        active: false,
        stall: Stall::None,
        attempts: 0,
    };
    device.pairs.insert(number, pair);
    Ok(LocalQueuePair(Rc::new(Handle { core: core.clone(), role, number, options })))
}

pub(super) fn close_all_of(core: &Core, role: usize) {
    let mut device = core.device.borrow_mut();
    let numbers: Vec<_> =
        device.pairs.iter().filter(|(_, p)| p.role == role).map(|(number, _)| *number).collect();
    numbers.into_iter().for_each(|number| device.close(number));
}

struct Handle {
    core: Rc<Core>,
    role: usize,
    number: u32,
    options: QueuePairOptions,
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.core.device.borrow_mut().close(self.number);
    }
}

/// A queue pair of the local backend.
#[derive(Clone)]
pub struct LocalQueuePair(Rc<Handle>);

impl LocalQueuePair {
    pub(super) fn number(&self) -> u32 {
        self.0.number
    }

    /// Checks what the caller could have; gives the payload where it is posted inline.
    fn check(&self, request: &WorkRequest<LocalRegion>) -> Result<Option<Vec<u8>>, PostError> {
        let QueuePairOptions { kind, inline_max, .. } = self.0.options;
        request.check(kind, self.message_max(), inline_max)?;
        if !request.inline {
            return Ok(None);
        }
        let local = request.operation.local();
        let mut bytes = vec![0; local.length as usize];
        if !bytes.is_empty() {
            local.region.read(local.offset, &mut bytes)?;
        }
        Ok(Some(bytes))
    }
}

impl QueuePair for LocalQueuePair {
    type Region = LocalRegion;
    type CompletionFuture = CompletionFuture;

    fn batch(&self, requests: Vec<WorkRequest<LocalRegion>>) -> Result<Vec<CompletionFuture>, PostError> {
        let state = self.state();
        if matches!(state, QueuePairState::Initialised | QueuePairState::Closed) {
            return Err(PostError::State { state });
        }
        let inlines = requests.iter().map(|request| self.check(request)).collect::<Result<Vec<_>, _>>()?;
        let mut device = self.0.core.device.borrow_mut();
        let Some(pair) = device.pairs.get_mut(&self.0.number) else { return Err(PostError::State { state }) };
        let depth = pair.options.send_depth;
        if state == QueuePairState::Ready && pair.slots_taken() + requests.len() > depth as usize {
            return Err(PostError::QueueFull { depth });
        }
        let mut completions = Vec::with_capacity(requests.len());
        for (request, inline) in requests.into_iter().zip(inlines) {
            let (completer, completion) = completion_future();
            completions.push(completion);
            pair.sends.push_back(Posted { request, inline, completer });
        }
        if state == QueuePairState::Error {
            Device::flush(pair);
        }
        device.activate(self.0.number);
        Ok(completions)
    }

    fn post(&self, request: WorkRequest<LocalRegion>) -> Result<CompletionFuture, PostError> {
        let mut completions = self.batch(vec![request])?;
        completions.pop().ok_or(PostError::State { state: self.state() })
    }

    fn receive(&self, into: Slice<LocalRegion>) -> Result<CompletionFuture, PostError> {
        let state = self.state();
        let mut device = self.0.core.device.borrow_mut();
        let Some(pair) = device.pairs.get_mut(&self.0.number) else { return Err(PostError::State { state }) };
        let depth = pair.options.receive_depth;
        if pair.receives.len() >= depth as usize {
            return Err(PostError::ReceiveQueueFull { depth });
        }
        let (completer, completion) = completion_future();
        pair.receives.push_back(Receive { into, completer });
        let peer = pair.peer;
        if state == QueuePairState::Error {
            Device::flush(pair);
        }
        device.retry_stalled(peer);
        Ok(completion)
    }

    fn options(&self) -> QueuePairOptions {
        self.0.options
    }

    fn state(&self) -> QueuePairState {
        self.0.core.device.borrow().state(self.0.number)
    }

    fn address(&self) -> Address {
        address(self.0.role, self.0.number)
    }

    fn message_max(&self) -> u64 {
        match self.0.options.kind {
            QueuePairType::Rc => RC_MESSAGE_MAX,
            QueuePairType::Ud => UD_MESSAGE_MAX,
        }
    }

    fn send_slots_taken(&self) -> u32 {
        self.0.core.device.borrow().pairs.get(&self.0.number).map_or(0, |pair| pair.slots_taken() as u32)
    }

    fn close(&self) {
        self.0.core.device.borrow_mut().close(self.0.number);
    }
}
