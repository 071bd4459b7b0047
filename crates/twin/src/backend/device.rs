//! The NICs: queue pairs, their operations on the engine, copies by the card's engines.
//!
//! The engine tells the moments at which an operation touches memory as soon as it knows them. Those
//! of one queue pair are put into posting order here, so that the responder executes in order
//! although routes may overtake one another.

use super::memory::{self, Payload, TwinRegion};
use super::subject::{Subject, Tagged};
use super::{Core, LONGEST, Label, ObservedStep, Planned, TwinFabric};
use crate::engine::{Handle, Marks, OperationFailure, Retransmission, Start};
use offpath_fabric::runtime::{Arena, ArenaSlot, check_options};
use offpath_fabric::*;
use offpath_quantity::{Bytes, Time};
use offpath_route::{LONGEST_MESSAGE, Mark, Moves, Posting, Verb};
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;

type Request = WorkRequest<TwinRegion>;

/// A request from posting until nobody can learn of it any more.
struct Op {
    pair: u32,
    role: usize,
    request: Request,
    label: Option<Label>,
    posting: Posting,
    access: offpath_route::AddressSpread,
    ends: Option<(usize, usize)>,
    /// When posting begins.
    post_at: Time,
    planned: Option<Rc<Planned>>,
    instances: Arc<[u32]>,
    handle: Option<Handle>,
    completer: Option<Completer>,
    /// What a WRITE or SEND carries, once it was read from memory.
    payload: Option<Payload>,
    /// Where a READ reads, and its number among the readers there.
    source: Option<(TwinRegion, u64, u64)>,
    /// When the first and last lines are touched at the responder.
    start: Time,
    end: Time,
    acknowledged: Option<Time>,
    not_ready: u8,
    failure: Option<Status>,
    /// The moments of its effect are known.
    known: bool,
    /// Its effect stands, in the order of the queue pair.
    applied: bool,
    /// The engine has nothing more to do for it.
    over: bool,
    /// The requester has, or may have, its completion.
    finished: bool,
    /// A receive of the peer waits for its handler to run.
    receiving: Option<u32>,
    /// It waits until the peer posts a receive, since this moment.
    parked: Option<Time>,
    /// The sender's completion is on its way.
    polled: bool,
}

impl Op {
    fn stop_reading(&mut self) {
        if let Some((region, _, reader)) = self.source.take() {
            region.end_reading(reader);
        }
    }

    fn is_datagram(&self) -> bool {
        matches!(self.request.operation, WorkKind::Send { to: Some(_), .. })
    }
}

struct Receive {
    into: Slice<TwinRegion>,
    completer: Completer,
}

/// A receive that a message took.
struct Landed {
    key: ArenaSlot,
    completer: Completer,
    completion: Completion,
    ready: bool,
}

struct Pair {
    role: usize,
    options: QueuePairOptions,
    state: QueuePairState,
    peer: Option<u32>,
    instances: Arc<[u32]>,
    /// Requests without a completion yet, in posting order.
    sends: VecDeque<ArenaSlot>,
    /// How many of them, from the first on, were started.
    started: usize,
    /// How many of them, from the first on, have their effect.
    applied: usize,
    /// Started READs and atomics that have not returned.
    returning: u32,
    /// Ended unsignaled requests, which the next signaled one completes.
    covered: Vec<(Completer, Completion)>,
    receives: VecDeque<Receive>,
    landed: VecDeque<Landed>,
    /// When the last effect of an earlier request ends at the responder.
    effects_until: Time,
    /// The route of the last request: most requests of a queue pair are alike.
    planned: Option<(super::Plan, Rc<Planned>)>,
}

impl Pair {
    fn slots_taken(&self) -> usize {
        self.sends.len() + self.covered.len()
    }
}

/// A copy by an engine of the card.
struct Copy {
    role: usize,
    from: Option<(TwinRegion, u64)>,
    to: Option<(TwinRegion, u64)>,
    length: u64,
    reader: Option<u64>,
    start: Time,
    end: Time,
    status: Status,
    completer: Completer,
    handle: Option<Handle>,
}

#[derive(Default)]
pub(super) struct Device {
    /// By number, from 1 on; numbers are never used again.
    pairs: Vec<Option<Box<Pair>>>,
    ops: Arena<Op>,
    copies: Arena<Copy>,
}

const READ_MARKS: Marks = Marks::of(&[Mark::SourceStart, Mark::SourceEnd]);
const WRITE_MARKS: Marks = Marks::of(&[Mark::SourceEnd, Mark::TargetStart, Mark::TargetEnd]);
const SEND_MARKS: Marks = Marks::of(&[Mark::SourceEnd, Mark::Delivered, Mark::Acknowledged]);

fn verb_of(operation: &WorkKind<TwinRegion>, kind: QueuePairType) -> Verb {
    match operation {
        WorkKind::Read { .. } => Verb::Read,
        WorkKind::Write { .. } => Verb::Write,
        WorkKind::Send { .. } if kind == QueuePairType::Ud => Verb::SendDatagram,
        WorkKind::Send { .. } => Verb::Send,
        WorkKind::CompareAndSwap { .. } => Verb::CompareAndSwap,
        WorkKind::FetchAndAdd { .. } => Verb::FetchAndAdd,
    }
}

/// Whether a device may use a local slice for `role`.
fn local_is_good(role: usize, slice: &Slice<TwinRegion>, right: Access) -> bool {
    slice.length == 0
        || (slice.region.belongs_to(role)
            && slice.region.grants(right)
            && slice.region.check(slice.offset, slice.length).is_ok())
}

fn returns_data(operation: &WorkKind<TwinRegion>) -> bool {
    !matches!(operation, WorkKind::Write { .. } | WorkKind::Send { .. })
}

fn payload_of(slice: &Slice<TwinRegion>, at: Time) -> Payload {
    match slice.length {
        0 => Payload::default(),
        length => slice.region.take(slice.offset, length, at, at),
    }
}

impl Device {
    fn pair(&mut self, number: u32) -> Option<&mut Pair> {
        self.pairs.get_mut((number as usize).wrapping_sub(1))?.as_deref_mut()
    }

    fn look(&self, number: u32) -> Option<&Pair> {
        self.pairs.get((number as usize).wrapping_sub(1))?.as_deref()
    }

    /// What a queue pair is, by number.
    pub(super) fn state(&self, number: u32) -> QueuePairState {
        self.look(number).map_or(QueuePairState::Closed, |pair| pair.state)
    }

    /// Connects two queue pairs that wait for it; says whether both did.
    pub(super) fn join(&mut self, core: &Core, one: u32, other: u32) -> bool {
        let waits =
            |number| self.look(number).filter(|p| p.state == QueuePairState::Initialised).map(|p| p.role);
        let (Some(role), Some(peer_role)) = (waits(one), waits(other)) else { return false };
        if one == other {
            return false;
        }
        for (number, peer, from, to) in [(one, other, role, peer_role), (other, one, peer_role, role)] {
            if let Some(pair) = self.pair(number) {
                (pair.state, pair.peer) = (QueuePairState::Ready, Some(peer));
                pair.instances = core.instances(from, to);
            }
        }
        true
    }

    /// What the outstanding work of a role waits for, in words.
    pub(super) fn waits(&self, role: usize) -> Vec<String> {
        let mut all = Vec::new();
        for (index, pair) in self.pairs.iter().enumerate() {
            let Some(pair) = pair.as_deref().filter(|pair| pair.role == role) else { continue };
            for key in &pair.sends {
                let Some(op) = self.ops.get(*key) else { continue };
                let why = match () {
                    () if op.parked.is_some() => "waits for a receive of its peer",
                    () if op.handle.is_none() => "waits for earlier work to return",
                    () if op.over => "waits for its turn",
                    () => "is in flight",
                };
                let opcode = op.request.operation.opcode();
                all.push(format!("{opcode:?} on queue pair {} {why}", index + 1));
            }
            if !pair.receives.is_empty() {
                all.push(format!("{} receives of queue pair {} wait", pair.receives.len(), index + 1));
            }
        }
        all
    }

    /// Starts what may start, in posting order.
    fn start(&mut self, core: &Core, number: u32) {
        while let Some(pair) = self.pair(number) {
            let Some(&key) = pair.sends.get(pair.started) else { return };
            let (returning, state) = (pair.returning, pair.state);
            let Some(op) = self.ops.get_mut(key) else { return };
            if state != QueuePairState::Ready || (op.request.fence && returning > 0) {
                return;
            }
            let reads = returns_data(&op.request.operation);
            self.begin(core, number, key);
            if let Some(pair) = self.pair(number) {
                pair.started += 1;
                pair.returning += u32::from(reads);
            }
        }
    }

    /// Hands a request to the engine.
    fn begin(&mut self, core: &Core, number: u32, key: ArenaSlot) {
        let Some(pair) = self.look(number) else { return };
        let (kind, peer, instances) = (pair.options.kind, pair.peer, pair.instances.clone());
        let (options, signal_all) = (pair.options, pair.options.signal_all);
        let peer_role = peer.and_then(|peer| self.look(peer)).map(|peer| peer.role);
        let Some(op) = self.ops.get_mut(key) else { return };
        let operation = &op.request.operation;
        let local = operation.local();
        let right = if returns_data(operation) { Access::LOCAL_WRITE } else { Access::READ_ONLY };
        if op.payload.is_none() && !local_is_good(op.role, local, right) {
            op.failure = Some(Status::LocalProtection);
            core.engine.borrow_mut().timer(key.tag(Subject::Refused), op.post_at);
            return;
        }
        let responder = match (kind, operation) {
            (QueuePairType::Ud, WorkKind::Send { to: Some(to), .. }) => {
                let role = to.endpoint.0 as usize;
                op.instances = core.instances(op.role, role.min(core.roles.len() - 1));
                Some(role)
            }
            _ => {
                op.instances = instances;
                peer_role
            }
        };
        let responder = responder.filter(|role| *role < core.roles.len());
        let Some(responder) = responder else { return self.no_answer(core, key, options) };
        let verb = verb_of(operation, kind);
        let signaled = op.request.signaled || signal_all;
        let place = core.roles[op.role].place;
        let (from, to) = op.ends.unwrap_or((place, core.roles[responder].place));
        let plan = super::Plan {
            verb,
            from,
            to,
            engine: None,
            payload: local.length,
            posting: op.posting,
            access: op.access,
            signaled,
        };
        let pair = self.pairs.get_mut((number as usize).wrapping_sub(1)).and_then(Option::as_deref_mut);
        let Some(pair) = pair else { return };
        let planned = match &pair.planned {
            Some((last, planned)) if *last == plan => planned.clone(),
            _ => {
                let Ok(planned) = core.plan(plan.clone()) else {
                    op.failure = Some(Status::LocalOperation);
                    core.engine.borrow_mut().timer(key.tag(Subject::Refused), op.post_at);
                    return;
                };
                pair.planned = Some((plan, planned.clone()));
                planned
            }
        };
        // What lies inside the work request was read by the processor that posted it.
        let carries = matches!(operation, WorkKind::Write { .. } | WorkKind::Send { .. });
        if carries && op.payload.is_none() && local.length <= core.places[place].inline_limit.get() {
            op.payload = Some(payload_of(local, core.now()));
        }
        core.observer.add_route(op.label, &planned, core);
        core.observer.did(op.label, || {
            let (remote, immediate) = match operation {
                WorkKind::Read { remote, .. }
                | WorkKind::CompareAndSwap { remote, .. }
                | WorkKind::FetchAndAdd { remote, .. } => (Some(remote), None),
                WorkKind::Write { remote, immediate, .. } => (Some(remote), *immediate),
                WorkKind::Send { immediate, .. } => (None, *immediate),
            };
            observed_step(&planned, (op.posting, op.access), signaled, immediate.is_some(), remote)
        });
        if signaled && verb.is_message() {
            core.observer.add_time(op.label, core.places[place].cpu, core.places[place].verbs.poll_time);
        }
        let answer = retransmission(core, &options);
        let marks = match verb.row().moves {
            _ if verb.is_message() => SEND_MARKS,
            Moves::ToRequester => READ_MARKS,
            Moves::ToResponder => WRITE_MARKS,
        };
        let start = Start { at: op.post_at, retransmitted: false, marks, retransmission: Some(answer) };
        let tag = key.tag(Subject::Operation);
        let handle =
            core.engine.borrow_mut().start_as(tag, planned.route.clone(), op.instances.clone(), start);
        op.handle = Some(handle);
        op.planned = Some(planned);
    }

    /// The peer is gone: all retries are waited for, then the queue pair fails.
    fn no_answer(&mut self, core: &Core, key: ArenaSlot, options: QueuePairOptions) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if options.kind == QueuePairType::Ud {
            // Nobody learns that a datagram went nowhere.
            op.over = true;
            op.failure = None;
            core.engine.borrow_mut().timer(key.tag(Subject::Polled), op.post_at);
            return;
        }
        let answer = retransmission(core, &options);
        op.failure = Some(Status::RetryExceeded);
        op.stop_reading();
        let wait = answer.timeout.times(u64::from(answer.retries) + 1);
        let at = core.now().max(op.post_at) + wait;
        let mut engine = core.engine.borrow_mut();
        if let Some(handle) = op.handle.take() {
            engine.kill(handle);
        }
        op.over = true;
        engine.timer(key.tag(Subject::Refused), at);
    }

    /// The responder refuses: the requester learns it by the next packet back.
    fn refuse(&mut self, core: &Core, key: ArenaSlot, status: Status) {
        let Some(op) = self.ops.get_mut(key) else { return };
        op.failure = Some(status);
        op.stop_reading();
        let mut engine = core.engine.borrow_mut();
        if let Some(handle) = op.handle.take() {
            engine.kill(handle);
        }
        op.over = true;
        engine.timer(key.tag(Subject::Refused), core.now() + core.network_delay);
    }

    /// The engine tells a moment of an operation.
    pub(super) fn marked(&mut self, core: &Core, key: ArenaSlot, mark: Mark, at: Time) {
        let Some(op) = self.ops.get_mut(key) else { return };
        let number = op.pair;
        let reads = matches!(op.request.operation, WorkKind::Read { .. });
        let atomic = !reads && returns_data(&op.request.operation);
        match mark {
            Mark::SourceStart if reads => {
                op.start = at;
                return self.begin_reading(core, key);
            }
            Mark::SourceStart if atomic => {
                op.start = at;
                if op.known {
                    return;
                }
                op.end = at;
            }
            Mark::SourceEnd if reads => op.end = at.max(op.start),
            Mark::SourceEnd if !atomic => {
                if op.payload.is_none() {
                    op.payload = Some(payload_of(op.request.operation.local(), at.min(core.now())));
                }
                return;
            }
            Mark::TargetStart => {
                op.start = at;
                return;
            }
            Mark::TargetEnd => op.end = at.max(op.start),
            Mark::Delivered => (op.start, op.end) = (at, at),
            Mark::Acknowledged => {
                op.acknowledged = Some(at);
                return self.acknowledge(core, key);
            }
            _ => return,
        }
        if op.applied {
            return;
        }
        op.known = true;
        // A datagram flies on without the queue pair that sent it.
        if op.is_datagram() { self.deliver_datagram(core, key) } else { self.apply(core, number) }
    }

    /// Gives effects to the requests of a queue pair, in posting order, as far as they are known.
    fn apply(&mut self, core: &Core, number: u32) {
        loop {
            let Some(pair) = self.pair(number) else { return };
            if pair.state != QueuePairState::Ready {
                return;
            }
            let Some(&key) = pair.sends.get(pair.applied) else { return };
            let Some(op) = self.ops.get(key) else { return };
            if !op.known || op.failure.is_some() || op.parked.is_some() || !self.effect(core, number, key) {
                return;
            }
            if let Some(pair) = self.pair(number) {
                pair.applied += 1;
            }
            if let Some(op) = self.ops.get_mut(key) {
                op.applied = true;
            }
            self.acknowledge(core, key);
            self.return_or_wait(core, key);
        }
    }

    /// A READ comes to its first byte: from now on what it passes over is kept as it was when it did. How long it takes is
    /// known with its last burst alone, and what is wrong with it is told then.
    fn begin_reading(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get(key).filter(|op| op.source.is_none()) else { return };
        let WorkKind::Read { remote, .. } = &op.request.operation else { return };
        let length = op.request.operation.local().length;
        let peer = self.look(op.pair).and_then(|pair| pair.peer).and_then(|peer| self.look(peer));
        let Some(there) = peer.filter(|peer| peer.state == QueuePairState::Ready && length > 0) else {
            return;
        };
        let found = memory::resolve(core, there.role, remote, length, Access::REMOTE_READ).ok();
        if let Some(op) = self.ops.get_mut(key) {
            op.source = found.map(begun);
        }
    }

    /// The effect of the first request that has none yet; false where it is not to be had now.
    fn effect(&mut self, core: &Core, number: u32, key: ArenaSlot) -> bool {
        let now = core.now();
        let pair = self.pair(number).expect("a queue pair is looked at before its requests are");
        let (options, until, peer) = (pair.options, pair.effects_until, pair.peer);
        let there = peer.and_then(|p| self.look(p)).filter(|p| p.state == QueuePairState::Ready);
        let Some((there, peer)) = there.zip(peer) else {
            self.no_answer(core, key, options);
            return false;
        };
        let (peer_role, has_receive) = (there.role, !there.receives.is_empty());
        let Some(op) = self.ops.get_mut(key) else { return false };
        // Nothing may be seen of it before what was posted earlier.
        op.start = op.start.max(until);
        op.end = op.end.max(op.start);
        let end = op.end;
        let length = op.request.operation.local().length;
        let place = |at: &RemoteAddress, length: u64, right: Access| match length {
            0 => Ok(None),
            _ => memory::resolve(core, peer_role, at, length, right).map(Some),
        };
        let outcome = match &op.request.operation {
            // What may be read was asked when the first byte was; what is gone since is refused all the same.
            WorkKind::Read { remote, .. } => place(remote, length, Access::REMOTE_READ).map(|found| {
                if op.source.is_none() {
                    op.source = found.map(begun);
                }
            }),
            WorkKind::Write { remote, immediate, .. } => {
                let immediate = *immediate;
                if immediate.is_some() && !has_receive {
                    return self.not_ready(core, number, key);
                }
                match place(remote, length, Access::REMOTE_WRITE) {
                    Ok(found) => {
                        if let Some((region, offset)) = found {
                            let bytes = op.payload.take().unwrap_or_default();
                            region.write_timed(offset, bytes, op.start, op.end);
                        }
                        if immediate.is_some() {
                            op.receiving = Some(peer);
                            let completion = Completion {
                                immediate,
                                ..Completion::new(Opcode::ReceiveWriteImmediate, Status::Success, length)
                            };
                            self.land(peer, key, completion);
                            core.engine.borrow_mut().timer(key.tag(Subject::Announced), end);
                        }
                        Ok(())
                    }
                    Err(status) => Err(status),
                }
            }
            WorkKind::Send { immediate, .. } => {
                let immediate = *immediate;
                if !has_receive {
                    return self.not_ready(core, number, key);
                }
                self.fill_receive(core, peer, key, immediate)
            }
            WorkKind::CompareAndSwap { .. } | WorkKind::FetchAndAdd { .. } if end > now => {
                core.engine.borrow_mut().timer(key.tag(Subject::Effect), end);
                return false;
            }
            WorkKind::CompareAndSwap { remote, compare, swap, .. } => {
                let change = |word| if word == *compare { *swap } else { word };
                place(remote, 8, Access::REMOTE_ATOMIC)
                    .and_then(|found| update(found, change))
                    .map(|old| op.payload = Some(old))
            }
            WorkKind::FetchAndAdd { remote, add, .. } => place(remote, 8, Access::REMOTE_ATOMIC)
                .and_then(|found| update(found, |word| word.wrapping_add(*add)))
                .map(|old| op.payload = Some(old)),
        };
        if let Err(status) = outcome {
            if matches!(status, Status::RemoteAccess | Status::RemoteInvalidRequest) {
                // The responder's end fails with the request; a bad receive failed it already.
                self.fail(core, peer, None, None);
            }
            self.refuse(core, key, status);
            return false;
        }
        if let Some(pair) = self.pair(number) {
            pair.effects_until = end;
        }
        true
    }

    /// The peer has no receive posted for a message: it waits, or is retransmitted, or fails.
    fn not_ready(&mut self, core: &Core, number: u32, key: ArenaSlot) -> bool {
        let now = core.now();
        let Some(options) = self.look(number).map(|pair| pair.options) else { return false };
        let Some(op) = self.ops.get_mut(key) else { return false };
        if op.end > now {
            // It is not there yet: a receive may still be posted in time.
            core.engine.borrow_mut().timer(key.tag(Subject::Effect), op.end);
        } else if options.receiver_not_ready_retries >= QueuePairOptions::FOR_EVER {
            op.parked = Some(now);
        } else if op.not_ready >= options.receiver_not_ready_retries {
            self.refuse(core, key, Status::ReceiverNotReady);
        } else {
            op.not_ready += 1;
            self.send_again(core, number, key, now + options.receiver_not_ready_delay);
        }
        false
    }

    /// Sends a message again that found no receive.
    fn send_again(&mut self, core: &Core, number: u32, key: ArenaSlot, at: Time) {
        let Some(options) = self.look(number).map(|pair| pair.options) else { return };
        let Some(op) = self.ops.get_mut(key) else { return };
        let Some(planned) = op.planned.clone() else { return };
        op.parked = None;
        op.known = false;
        op.over = false;
        op.acknowledged = None;
        let answer = retransmission(core, &options);
        let marks =
            if matches!(op.request.operation, WorkKind::Send { .. }) { SEND_MARKS } else { WRITE_MARKS };
        let start = Start { at, retransmitted: true, marks, retransmission: Some(answer) };
        let mut engine = core.engine.borrow_mut();
        if let Some(handle) = op.handle.take() {
            engine.kill(handle);
        }
        let tag = key.tag(Subject::Operation);
        op.handle = Some(engine.start_as(tag, planned.route.clone(), op.instances.clone(), start));
    }

    /// A receive was posted: a message that waits for it comes with its next try.
    fn resume_parked(&mut self, core: &Core, number: Option<u32>) {
        let Some(number) = number else { return };
        let Some(pair) = self.look(number) else { return };
        let delay = pair.options.receiver_not_ready_delay.ps().max(1);
        let Some(&key) = pair.sends.get(pair.applied) else { return };
        let Some(since) = self.ops.get(key).and_then(|op| op.parked) else { return };
        let tries = core.now().saturating_sub(since).ps().div_ceil(delay).max(1);
        self.send_again(core, number, key, since + Time::from_ps(delay * tries));
    }

    /// Takes the next receive for a message.
    fn land(&mut self, peer: u32, key: ArenaSlot, completion: Completion) {
        let Some(there) = self.pair(peer) else { return };
        if let Some(Receive { completer, .. }) = there.receives.pop_front() {
            there.landed.push_back(Landed { key, completer, completion, ready: false });
        }
    }

    /// Puts a SEND on a connection into the peer's next receive.
    fn fill_receive(
        &mut self,
        core: &Core,
        peer: u32,
        key: ArenaSlot,
        immediate: Option<u32>,
    ) -> Result<(), Status> {
        let Some(op) = self.ops.get_mut(key) else { return Err(Status::RemoteOperation) };
        let length = op.request.operation.local().length;
        let (at, over) = (op.end, op.over);
        let payload = op.payload.take().unwrap_or_default();
        let Some(there) = self.pair(peer) else { return Err(Status::RemoteOperation) };
        let Some(receive) = there.receives.front() else { return Err(Status::RemoteOperation) };
        let (here, at_requester) = if receive.into.length < length {
            (Status::LocalLength, Status::RemoteInvalidRequest)
        } else if !local_is_good(there.role, &receive.into, Access::LOCAL_WRITE) {
            (Status::LocalProtection, Status::RemoteOperation)
        } else {
            receive.into.region.write_timed(receive.into.offset, payload, at, at);
            let completion =
                Completion { immediate, ..Completion::new(Opcode::Receive, Status::Success, length) };
            self.land(peer, key, completion);
            if let Some(op) = self.ops.get_mut(key) {
                op.receiving = Some(peer);
            }
            if over {
                core.engine.borrow_mut().timer(key.tag(Subject::Received), at);
            }
            return Ok(());
        };
        let failed = there
            .receives
            .pop_front()
            .map(|receive| (receive.completer, Completion::new(Opcode::Receive, here, 0)));
        self.fail(core, peer, None, failed);
        Err(at_requester)
    }

    /// A datagram reaches its receiver's NIC, or will: it takes a receive, or is dropped.
    fn deliver_datagram(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get(key) else { return };
        let WorkKind::Send { to: Some(to), local, immediate } = &op.request.operation else { return };
        let (to, length, immediate, at) = (*to, local.length, *immediate, op.end);
        if op.receiving.is_some() || op.failure.is_some() {
            return;
        }
        let source = address(op.role, op.pair);
        let there = self.look(to.queue_pair).filter(|pair| {
            pair.state == QueuePairState::Ready
                && pair.options.kind == QueuePairType::Ud
                && address(pair.role, to.queue_pair) == to
        });
        let Some(there) = there else { return };
        let Some(receive) = there.receives.front() else {
            if at > core.now() {
                core.engine.borrow_mut().timer(key.tag(Subject::Effect), at);
            }
            return;
        };
        if receive.into.length < length || !local_is_good(there.role, &receive.into, Access::LOCAL_WRITE) {
            return;
        }
        let into = receive.into.clone();
        let over = op.over;
        let completion = Completion {
            immediate,
            source: Some(source),
            ..Completion::new(Opcode::Receive, Status::Success, length)
        };
        self.land(to.queue_pair, key, completion);
        if let Some(op) = self.ops.get_mut(key) {
            into.region.write_timed(into.offset, op.payload.take().unwrap_or_default(), at, at);
            op.receiving = Some(to.queue_pair);
            if over {
                core.engine.borrow_mut().timer(key.tag(Subject::Received), at);
            }
        }
    }

    /// A message's handler may run: its receive completes when those before it did.
    fn received(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if let Some(number) = op.receiving.take()
            && let Some(pair) = self.pair(number)
        {
            if let Some(landed) = pair.landed.iter_mut().find(|landed| landed.key == key) {
                landed.ready = true;
            }
            let role = pair.role;
            while pair.landed.front().is_some_and(|landed| landed.ready) {
                if let Some(landed) = pair.landed.pop_front() {
                    core.trace(role, || format!("received {} B", landed.completion.bytes));
                    landed.completer.complete(landed.completion);
                }
            }
        }
        self.release(key);
    }

    /// The sender of a message learns of its success when the message has landed and the answer is here.
    fn acknowledge(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if !matches!(op.request.operation, WorkKind::Send { .. }) || op.polled || op.finished {
            return;
        }
        let datagram = op.is_datagram();
        let Some(at) = op.acknowledged else { return };
        if !datagram && !op.applied {
            return;
        }
        op.polled = true;
        let at = if datagram { at } else { at.max(op.end) };
        core.engine.borrow_mut().timer(key.tag(Subject::Acknowledged), at);
    }

    /// The engine is done with an operation.
    pub(super) fn done(&mut self, core: &Core, key: ArenaSlot) {
        let now = core.now();
        let Some(op) = self.ops.get_mut(key) else { return };
        op.over = true;
        op.handle = None;
        if matches!(op.request.operation, WorkKind::Send { .. }) {
            if op.receiving.is_some() {
                if op.end <= now {
                    return self.received(core, key);
                }
                core.engine.borrow_mut().timer(key.tag(Subject::Received), op.end);
            }
            return self.release(key);
        }
        if !op.known {
            // Without payload there is no moment at which memory is touched.
            (op.start, op.end, op.known) = (now, now, true);
            let number = op.pair;
            return self.apply(core, number);
        }
        self.return_or_wait(core, key);
    }

    /// Ends a one-sided request that came back and whose effect stands.
    fn return_or_wait(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if !op.over || !op.applied || op.finished || matches!(op.request.operation, WorkKind::Send { .. }) {
            return;
        }
        let reads = returns_data(&op.request.operation);
        if reads && op.end > core.now() {
            core.engine.borrow_mut().timer(key.tag(Subject::Effect), op.end);
            return;
        }
        let local = op.request.operation.local();
        if let Some((region, offset, reader)) = op.source.take() {
            // The local region may be gone by now, as may be the peer's.
            let bytes = region.take(offset, local.length, op.start, op.end);
            region.end_reading(reader);
            let _ = local.region.put(local.offset, bytes);
        } else if reads && let Some(old) = op.payload.take() {
            let _ = local.region.put(local.offset, old);
        }
        op.finished = true;
        let number = op.pair;
        self.settle(core, number);
    }

    /// A fault copied a datagram: the copy takes a receive of its own, or is dropped.
    pub(super) fn duplicated(&mut self, core: &Core, key: ArenaSlot, at: Time) {
        let Some(op) = self.ops.get(key) else { return };
        let copy = Op {
            pair: op.pair,
            role: op.role,
            request: op.request.clone(),
            label: None,
            posting: op.posting,
            access: op.access,
            ends: op.ends,
            post_at: op.post_at,
            planned: None,
            instances: op.instances.clone(),
            handle: None,
            completer: None,
            payload: Some(op.payload.clone().unwrap_or_else(|| payload_of(op.request.operation.local(), at))),
            source: None,
            start: at,
            end: at,
            acknowledged: None,
            not_ready: 0,
            failure: None,
            known: true,
            applied: false,
            over: true,
            finished: true,
            receiving: None,
            parked: None,
            polled: true,
        };
        let key = self.ops.insert(copy);
        core.engine.borrow_mut().timer(key.tag(Subject::Effect), at);
    }

    /// A timer about an operation.
    pub(super) fn timer(&mut self, core: &Core, subject: Subject, key: ArenaSlot) {
        let now = core.now();
        let Some(op) = self.ops.get_mut(key) else { return };
        let number = op.pair;
        match subject {
            Subject::Effect if op.is_datagram() => {
                op.applied = true;
                self.deliver_datagram(core, key);
                self.release(key);
            }
            Subject::Effect if op.applied => self.return_or_wait(core, key),
            Subject::Effect => self.apply(core, number),
            Subject::Refused | Subject::Polled => {
                op.finished = true;
                self.settle(core, number);
                self.release(key);
            }
            Subject::Acknowledged => {
                let signal_all = self.look(number).is_some_and(|pair| pair.options.signal_all);
                let Some(op) = self.ops.get_mut(key) else { return };
                if op.request.signaled || signal_all {
                    let state = &core.roles[op.role];
                    let place = &core.places[state.place];
                    let tag = key.tag(Subject::Polled);
                    let (time, latency) = (place.verbs.poll_time, place.verbs.poll_latency);
                    let instances = &op.instances;
                    core.engine.borrow_mut().compute_at(tag, place.cpu, instances, now, time, latency);
                } else {
                    op.finished = true;
                    self.settle(core, number);
                    self.release(key);
                }
            }
            Subject::Received => self.received(core, key),
            Subject::Announced => {
                let Some(role) = op.receiving.and_then(|peer| self.look(peer)).map(|pair| pair.role) else {
                    return self.received(core, key);
                };
                let Some(op) = self.ops.get(key) else { return };
                let place = &core.places[core.roles[role].place];
                core.observer.add_time(op.label, place.cpu, place.verbs.receive_time);
                let tag = key.tag(Subject::Received);
                let (time, latency) = (place.verbs.receive_time, place.verbs.receive_latency);
                core.engine.borrow_mut().compute_at(tag, place.cpu, &op.instances, now, time, latency);
            }
            _ => {}
        }
    }

    /// The engine gave an operation up.
    pub(super) fn failed(&mut self, core: &Core, key: ArenaSlot, why: OperationFailure) {
        let Some(op) = self.ops.get_mut(key) else { return };
        op.over = true;
        op.handle = None;
        op.stop_reading();
        match why {
            OperationFailure::RetryExceeded => {
                op.failure = Some(Status::RetryExceeded);
                op.finished = true;
                let number = op.pair;
                self.settle(core, number);
            }
            OperationFailure::Lost | OperationFailure::Corrupted => self.release(key),
        }
    }

    /// Completes, in posting order, what is finished.
    fn settle(&mut self, core: &Core, number: u32) {
        loop {
            let Some(pair) = self.pair(number) else { return };
            let signal_all = pair.options.signal_all;
            let Some(&key) = pair.sends.front() else { return };
            let Some(op) = self.ops.get_mut(key).filter(|op| op.finished) else { return };
            let opcode = op.request.operation.opcode();
            let signaled = op.request.signaled || signal_all;
            let reads = returns_data(&op.request.operation);
            let status = op.failure.unwrap_or(Status::Success);
            let bytes = if status == Status::Success { op.request.operation.local().length } else { 0 };
            let completion = Completion::new(opcode, status, bytes);
            let Some(completer) = op.completer.take() else { return };
            let role = op.role;
            core.trace(role, || format!("{opcode:?} {status:?} {bytes} B"));
            let Some(pair) = self.pair(number) else { return };
            pair.sends.pop_front();
            pair.started = pair.started.saturating_sub(1);
            pair.applied = pair.applied.saturating_sub(1);
            if status != Status::Success {
                self.fail(core, number, Some((completer, completion)), None);
                return self.release(key);
            }
            pair.returning = pair.returning.saturating_sub(u32::from(reads));
            if signaled {
                pair.covered.drain(..).for_each(|(completer, completion)| completer.complete(completion));
                completer.complete(completion);
            } else {
                pair.covered.push((completer, completion));
            }
            let waits = pair.started < pair.sends.len();
            self.release(key);
            if waits {
                self.start(core, number);
            }
        }
    }

    /// Forgets an operation that nobody can learn of any more.
    fn release(&mut self, key: ArenaSlot) {
        let over =
            |op: &Op| op.over && op.completer.is_none() && op.receiving.is_none() && op.source.is_none();
        if self.ops.get(key).is_some_and(over) {
            self.ops.discard(key);
        }
    }

    /// Puts a queue pair into the error state: what went before is done, the failed request and the
    /// failed receive tell why, and the rest is flushed.
    fn fail(
        &mut self,
        core: &Core,
        number: u32,
        failed_send: Option<(Completer, Completion)>,
        failed_receive: Option<(Completer, Completion)>,
    ) {
        let Some(pair) = self.pair(number) else { return };
        pair.state = QueuePairState::Error;
        let peer = pair.peer;
        let ended = pair.covered.drain(..).chain(failed_send).chain(failed_receive);
        ended.for_each(|(completer, completion)| completer.complete(completion));
        self.flush(core, number);
        self.look_again(core, peer);
    }

    /// Flushes whatever is posted.
    fn flush(&mut self, core: &Core, number: u32) {
        let Some(pair) = self.pair(number) else { return };
        let sends = std::mem::take(&mut pair.sends);
        let receives = std::mem::take(&mut pair.receives);
        (pair.started, pair.applied, pair.returning) = (0, 0, 0);
        for key in sends {
            let Some(op) = self.ops.get_mut(key) else { continue };
            op.failure = Some(Status::Flushed);
            op.stop_reading();
            // A message that took a receive is on its way to the handler whatever becomes of its sender.
            if op.receiving.is_none() {
                if let Some(handle) = op.handle.take() {
                    core.engine.borrow_mut().kill(handle);
                }
                op.over = true;
            }
            let opcode = op.request.operation.opcode();
            if let Some(completer) = op.completer.take() {
                completer.complete(Completion::new(opcode, Status::Flushed, 0));
            }
            self.release(key);
        }
        for receive in receives {
            receive.completer.complete(Completion::new(Opcode::Receive, Status::Flushed, 0));
        }
    }

    /// A peer that waits for a receive sees that there will be none.
    fn look_again(&mut self, core: &Core, number: Option<u32>) {
        let Some(number) = number else { return };
        let Some(pair) = self.look(number) else { return };
        let Some(&key) = pair.sends.get(pair.applied) else { return };
        if let Some(op) = self.ops.get_mut(key)
            && op.parked.take().is_some()
        {
            self.apply(core, number);
        }
    }

    fn close(&mut self, core: &Core, number: u32) {
        let Some(pair) = self.pair(number) else { return };
        pair.covered.drain(..).for_each(|(completer, completion)| completer.complete(completion));
        let peer = pair.peer;
        for landed in std::mem::take(&mut pair.landed) {
            landed.completer.complete(Completion::new(Opcode::Receive, Status::Flushed, 0));
        }
        self.flush(core, number);
        if let Some(slot) = self.pairs.get_mut(number as usize - 1) {
            *slot = None;
        }
        self.look_again(core, peer);
    }

    pub(super) fn copy_marked(&mut self, key: ArenaSlot, mark: Mark, at: Time) {
        let Some(copy) = self.copies.get_mut(key) else { return };
        match mark {
            Mark::SourceStart => {
                copy.start = at;
                copy.reader = copy.from.as_ref().map(|(region, _)| region.begin_reading());
            }
            Mark::SourceEnd => copy.end = at,
            _ => {}
        }
    }

    pub(super) fn copy_done(&mut self, core: &Core, key: ArenaSlot) {
        let Some(copy) = self.copies.remove(key) else { return };
        let bytes = if copy.status == Status::Success { copy.length } else { 0 };
        if let (Some((from, offset)), Some((to, to_offset))) = (&copy.from, &copy.to) {
            let moved = from.take(*offset, copy.length, copy.start, copy.end);
            // A target that was deregistered meanwhile has nobody to look at it.
            let _ = to.put(*to_offset, moved);
        }
        if let (Some((from, _)), Some(reader)) = (&copy.from, copy.reader) {
            from.end_reading(reader);
        }
        core.trace(copy.role, || format!("copied {bytes} B"));
        copy.completer.complete(Completion::new(Opcode::DmaCopy, copy.status, bytes));
    }
}

/// What an observer is told of an operation that begins.
fn observed_step(
    planned: &Planned,
    (posting, access): (Posting, offpath_route::AddressSpread),
    signaled: bool,
    immediate: bool,
    remote: Option<&RemoteAddress>,
) -> ObservedStep {
    let route = &planned.route;
    let (verb, path, payload) = (route.verb, route.path.clone(), route.payload);
    let operation = offpath_route::PathOperation { verb, path, payload, posting, access };
    let region = remote.map(|remote| Bytes::new(remote.region.length));
    ObservedStep::Operation { operation, signaled, immediate, region }
}

fn retransmission(core: &Core, options: &QueuePairOptions) -> Retransmission {
    let own =
        Retransmission { timeout: options.acknowledgement_timeout, retries: u32::from(options.retries) };
    core.retransmission.unwrap_or(own)
}

/// A place in a region, with the number of the reader that begins there.
fn begun((region, offset): (TwinRegion, u64)) -> (TwinRegion, u64, u64) {
    let reader = region.begin_reading();
    (region, offset, reader)
}

/// Changes a peer's word; gives what it was.
fn update(place: Option<(TwinRegion, u64)>, change: impl FnOnce(u64) -> u64) -> Result<Payload, Status> {
    let (region, offset) = place.ok_or(Status::RemoteAccess)?;
    let old = region.update(offset, change).map_err(|_| Status::RemoteInvalidRequest)?;
    Ok(Payload::from(Box::from(old.to_le_bytes())))
}

fn address(role: usize, number: u32) -> Address {
    Address { endpoint: EndpointId(role as u32), queue_pair: number, queue_key: number, path: [0; 20] }
}

pub(super) fn create(fabric: &TwinFabric, options: QueuePairOptions) -> Result<TwinQueuePair, Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    check_options(&options, &core.capabilities[role])?;
    let options = QueuePairOptions {
        retries: options.retries.min(7),
        acknowledgement_timeout: options.acknowledgement_timeout.min(LONGEST),
        receiver_not_ready_delay: options.receiver_not_ready_delay.min(LONGEST),
        ..options
    };
    let mut device = core.device.borrow_mut();
    let state =
        if options.kind == QueuePairType::Ud { QueuePairState::Ready } else { QueuePairState::Initialised };
    device.pairs.push(Some(Box::new(Pair {
        role,
        options,
        state,
        peer: None,
        instances: core.roles[role].instances.clone(),
        sends: VecDeque::new(),
        started: 0,
        applied: 0,
        returning: 0,
        covered: Vec::new(),
        receives: VecDeque::new(),
        landed: VecDeque::new(),
        effects_until: Time::ZERO,
        planned: None,
    })));
    let number = device.pairs.len() as u32;
    let handle = Rc::new(PairHandle { core: core.clone(), role, number, options });
    Ok(TwinQueuePair {
        handle,
        label: fabric.label,
        access: offpath_route::AddressSpread::UNIFORM,
        ends: None,
        doorbell: 1,
    })
}

pub(super) fn close_all_of(core: &Core, role: usize) {
    let mut device = core.device.borrow_mut();
    for number in 1..=device.pairs.len() as u32 {
        if device.look(number).is_some_and(|pair| pair.role == role) {
            device.close(core, number);
        }
    }
    let copies: Vec<_> = device.copies.keys().collect();
    for key in copies {
        if device.copies.get(key).is_some_and(|copy| copy.role == role)
            && let Some(copy) = device.copies.remove(key)
        {
            if let Some(handle) = copy.handle {
                core.engine.borrow_mut().kill(handle);
            }
            if let (Some((from, _)), Some(reader)) = (&copy.from, copy.reader) {
                from.end_reading(reader);
            }
        }
    }
}

/// Has an engine of the card copy bytes between two roles of one machine.
pub(super) fn copy(
    fabric: &TwinFabric,
    engine: &str,
    from: MemoryAt<TwinRegion>,
    to: MemoryAt<TwinRegion>,
    length: u64,
) -> Result<CompletionFuture, Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let (verb, remote) = match (&from, &to) {
        (MemoryAt::Remote(remote), MemoryAt::Local { .. }) => (Verb::Read, *remote),
        (MemoryAt::Local { .. }, MemoryAt::Remote(remote)) => (Verb::Write, *remote),
        _ => {
            let feature = "a copy whose ends are both local or both remote";
            return Err(TwinFabric::unsupported(feature, "name one local and one remote end"));
        }
    };
    let there = remote.region.endpoint.0 as usize;
    let mut status = Status::Success;
    let place = |at: &MemoryAt<TwinRegion>, local: Access, right: Access| match at {
        MemoryAt::Local { region, offset } => {
            let good = region.check(*offset, length).is_ok() && region.grants(local);
            if good { Ok((region.clone(), *offset)) } else { Err(Status::LocalProtection) }
        }
        MemoryAt::Remote(at) => memory::resolve(core, there, at, length, right),
    };
    let (mut source, mut target) = (None, None);
    if length > 0 {
        match place(&from, Access::READ_ONLY, Access::REMOTE_READ) {
            Ok(found) => source = Some(found),
            Err(why) => status = why,
        }
        match place(&to, Access::LOCAL_WRITE, Access::REMOTE_WRITE) {
            Ok(found) => target = Some(found),
            Err(why) => status = why,
        }
    }
    let other = core.roles.get(there).filter(|other| other.machine == core.roles[role].machine);
    let Some(other) = other else {
        return Err(TwinFabric::unsupported("a copy between machines", "use READ or WRITE"));
    };
    let planned = core.plan(super::Plan {
        verb,
        from: core.roles[role].place,
        to: other.place,
        engine: Some(engine.to_string()),
        payload: if status == Status::Success { length } else { 0 },
        posting: Posting::Single,
        access: offpath_route::AddressSpread::UNIFORM,
        signaled: true,
    });
    let planned = planned.map_err(|why| {
        TwinFabric::unsupported(&format!("this copy by `{engine}` ({why})"), "use READ or WRITE")
    })?;
    if status != Status::Success {
        (source, target) = (None, None);
    }
    core.observer.add_route(fabric.label, &planned, core);
    let plain = (Posting::Single, offpath_route::AddressSpread::UNIFORM);
    core.observer.did(fabric.label, || observed_step(&planned, plain, true, false, Some(&remote)));
    let (completer, completion) = completion_future();
    let copy = Copy {
        role,
        from: source,
        to: target,
        length,
        reader: None,
        start: Time::ZERO,
        end: Time::ZERO,
        status,
        completer,
        handle: None,
    };
    let mut device = core.device.borrow_mut();
    let key = device.copies.insert(copy);
    let at = core.executor.charge(core.now(), planned.post_time);
    let start = Start { at, retransmitted: false, marks: READ_MARKS, retransmission: None };
    let instances = core.instances(role, there);
    let tag = key.tag(Subject::Copy);
    let handle = core.engine.borrow_mut().start_as(tag, planned.route.clone(), instances, start);
    if let Some(copy) = device.copies.get_mut(key) {
        copy.handle = Some(handle);
    }
    Ok(completion)
}

struct PairHandle {
    core: Rc<Core>,
    role: usize,
    number: u32,
    options: QueuePairOptions,
}

impl Drop for PairHandle {
    fn drop(&mut self) {
        self.core.device.borrow_mut().close(&self.core, self.number);
    }
}

/// A queue pair on the twin.
#[derive(Clone)]
pub struct TwinQueuePair {
    handle: Rc<PairHandle>,
    label: Option<Label>,
    access: offpath_route::AddressSpread,
    /// The places between which payloads move, where they are not those of the two roles.
    ends: Option<(usize, usize)>,
    /// Requests behind the doorbell of each request posted alone.
    doorbell: u32,
}

impl TwinQueuePair {
    /// A handle to the same queue pair whose requests are counted under `label`.
    pub fn labelled(&self, label: Label) -> TwinQueuePair {
        TwinQueuePair { label: Some(label), ..self.clone() }
    }

    /// A handle to the same queue pair whose requests spread over the responder's memory as `access`
    /// says, which decides about memory banks. Without it they are spread over the whole memory.
    pub fn accessing(&self, access: offpath_route::AddressSpread) -> TwinQueuePair {
        TwinQueuePair { access, ..self.clone() }
    }

    /// A handle to the same queue pair whose payloads move between the memories that `path` names, each of a role's
    /// own machine, and not those that the roles' regions lie in. Without it they move between the latter.
    pub fn between(&self, path: &offpath_route::Path) -> TwinQueuePair {
        let place = |name: &str| self.handle.core.places.iter().position(|place| place.name == name);
        TwinQueuePair { ends: place(&path.requester).zip(place(&path.responder)), ..self.clone() }
    }

    /// A handle to the same queue pair whose requests, posted alone, cost what one of `count` behind
    /// a common doorbell does. It stands for a program that gathers requests of many tasks.
    pub fn batched(&self, count: u32) -> TwinQueuePair {
        TwinQueuePair { doorbell: count.max(1), ..self.clone() }
    }

    pub(super) fn number(&self) -> u32 {
        self.handle.number
    }

    /// Checks what the caller could have; gives the payload where it is posted inline.
    fn check(&self, request: &Request) -> Result<Option<Payload>, PostError> {
        let QueuePairOptions { kind, inline_max, .. } = self.handle.options;
        let core = &self.handle.core;
        request.check(kind, self.message_max(), inline_max)?;
        if let WorkKind::Send { to: Some(to), .. } = &request.operation {
            let there = to.endpoint.0 as usize;
            if there < core.roles.len() && !core.is_joined(self.handle.role, there) {
                let feature = "a message between two roles at one endpoint";
                return Err(TwinFabric::unsupported(feature, "use datagrams or place them apart").into());
            }
        }
        if !request.inline {
            return Ok(None);
        }
        let local = request.operation.local();
        local.region.check(local.offset, local.length).or_else(|why| match local.length {
            0 => Ok(()),
            _ => Err(why),
        })?;
        Ok(Some(payload_of(local, core.now())))
    }

    fn post_all(
        &self,
        requests: impl ExactSizeIterator<Item = (Request, Option<Payload>)>,
        mut give: impl FnMut(CompletionFuture),
    ) -> Result<(), PostError> {
        let PairHandle { core, role, number, .. } = &*self.handle;
        let count = requests.len();
        let mut device = core.device.borrow_mut();
        let state = device.state(*number);
        let Some(pair) = device.pair(*number) else { return Err(PostError::State { state }) };
        if state == QueuePairState::Initialised {
            return Err(PostError::State { state });
        }
        let depth = pair.options.send_depth;
        if state == QueuePairState::Ready && pair.slots_taken() + count > depth as usize {
            return Err(PostError::QueueFull { depth });
        }
        let place = &core.places[core.roles[*role].place];
        let (posting, time) = match count {
            0 => return Ok(()),
            1 if self.doorbell > 1 => {
                let list = place.verbs.list(self.doorbell);
                (Posting::Batch(self.doorbell), Time::from_ps(list.ps() / u64::from(self.doorbell)))
            }
            1 => (Posting::Single, place.verbs.post_time),
            _ => (Posting::Batch(count as u32), place.verbs.list(count as u32)),
        };
        let post_at = core.executor.charge(core.now(), time);
        for (request, payload) in requests {
            let (completer, completion) = completion_future();
            give(completion);
            let key = device.ops.insert(Op {
                pair: *number,
                role: *role,
                request,
                label: self.label,
                posting,
                access: self.access,
                ends: self.ends,
                post_at,
                planned: None,
                instances: core.roles[*role].instances.clone(),
                handle: None,
                completer: Some(completer),
                payload,
                source: None,
                start: Time::ZERO,
                end: Time::ZERO,
                acknowledged: None,
                not_ready: 0,
                failure: None,
                known: false,
                applied: false,
                over: false,
                finished: false,
                receiving: None,
                parked: None,
                polled: false,
            });
            if let Some(pair) = device.pair(*number) {
                pair.sends.push_back(key);
            }
        }
        if state == QueuePairState::Error {
            device.flush(core, *number);
        } else {
            device.start(core, *number);
        }
        Ok(())
    }
}

impl QueuePair for TwinQueuePair {
    type Region = TwinRegion;
    type CompletionFuture = CompletionFuture;

    fn batch(&self, requests: Vec<Request>) -> Result<Vec<CompletionFuture>, PostError> {
        let inlines = requests.iter().map(|request| self.check(request)).collect::<Result<Vec<_>, _>>()?;
        let mut completions = Vec::with_capacity(requests.len());
        self.post_all(requests.into_iter().zip(inlines), |completion| completions.push(completion))?;
        Ok(completions)
    }

    fn post(&self, request: Request) -> Result<CompletionFuture, PostError> {
        let inline = self.check(&request)?;
        let mut posted = None;
        self.post_all(std::iter::once((request, inline)), |completion| posted = Some(completion))?;
        posted.ok_or(PostError::State { state: self.state() })
    }

    fn receive(&self, into: Slice<TwinRegion>) -> Result<CompletionFuture, PostError> {
        let core = &self.handle.core;
        let mut device = core.device.borrow_mut();
        let state = device.state(self.handle.number);
        let Some(pair) = device.pair(self.handle.number) else { return Err(PostError::State { state }) };
        let depth = pair.options.receive_depth;
        // A receive keeps its slot until it completes.
        if pair.receives.len() + pair.landed.len() >= depth as usize {
            return Err(PostError::ReceiveQueueFull { depth });
        }
        let (completer, completion) = completion_future();
        pair.receives.push_back(Receive { into, completer });
        let peer = pair.peer;
        if state == QueuePairState::Error {
            device.flush(core, self.handle.number);
        }
        device.resume_parked(core, peer);
        Ok(completion)
    }

    fn options(&self) -> QueuePairOptions {
        self.handle.options
    }

    fn state(&self) -> QueuePairState {
        self.handle.core.device.borrow().state(self.handle.number)
    }

    fn address(&self) -> Address {
        address(self.handle.role, self.handle.number)
    }

    fn message_max(&self) -> u64 {
        match self.handle.options.kind {
            QueuePairType::Rc => LONGEST_MESSAGE.get(),
            QueuePairType::Ud => self.handle.core.mtu.get(),
        }
    }

    fn send_slots_taken(&self) -> u32 {
        self.handle.core.device.borrow().look(self.handle.number).map_or(0, |pair| pair.slots_taken() as u32)
    }

    fn close(&self) {
        self.handle.core.device.borrow_mut().close(&self.handle.core, self.handle.number);
    }
}
