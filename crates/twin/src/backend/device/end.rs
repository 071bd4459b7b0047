//! How requests end: completed in posting order, refused, or flushed.

use super::super::Core;
use super::super::subject::{Subject, Tagged};
use super::begin::retransmission;
use super::stage::{Carriage, Stage};
use super::{Device, Op, returns_data};
use crate::engine::OperationFailure;
use offpath_fabric::runtime::ArenaSlot;
use offpath_fabric::*;

impl Device {
    /// A timer about an operation.
    pub(in crate::backend) fn timer(&mut self, core: &Core, subject: Subject, key: ArenaSlot) {
        let now = core.now();
        let Some(op) = self.ops.get_mut(key) else { return };
        let number = op.pair;
        match subject {
            Subject::Effect if op.is_datagram() => {
                self.deliver_datagram(core, key);
                self.release(key);
            }
            Subject::Effect => match op.stage {
                Stage::Posted | Stage::Known | Stage::Parked(_) => self.apply(core, number),
                Stage::Applied => self.return_or_wait(core, key),
                Stage::Polled | Stage::Finished => {}
            },
            Subject::Refused | Subject::Polled => {
                op.go_on_to(Stage::Finished);
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
                    op.go_on_to(Stage::Finished);
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

    /// The engine is done with an operation.
    pub(in crate::backend) fn done(&mut self, core: &Core, key: ArenaSlot) {
        let now = core.now();
        let Some(op) = self.ops.get_mut(key) else { return };
        op.carriage = Carriage::Over;
        if op.is_message() {
            if op.receiving.is_some() {
                if op.end <= now {
                    return self.received(core, key);
                }
                core.engine.borrow_mut().timer(key.tag(Subject::Received), op.end);
            }
            return self.release(key);
        }
        if op.stage == Stage::Posted {
            // Without payload there is no moment at which memory is touched.
            (op.start, op.end) = (now, now);
            op.go_on_to(Stage::Known);
            let number = op.pair;
            return self.apply(core, number);
        }
        self.return_or_wait(core, key);
    }

    /// The engine gave an operation up.
    pub(in crate::backend) fn failed(&mut self, core: &Core, key: ArenaSlot, why: OperationFailure) {
        let Some(op) = self.ops.get_mut(key) else { return };
        op.carriage = Carriage::Over;
        op.stop_reading();
        match why {
            OperationFailure::RetryExceeded => {
                op.failure = Some(Status::RetryExceeded);
                op.go_on_to(Stage::Finished);
                let number = op.pair;
                self.settle(core, number);
            }
            OperationFailure::Lost | OperationFailure::Corrupted => self.release(key),
        }
    }

    /// The sender of a message learns of its success when the message has landed and the answer is here.
    pub(super) fn acknowledge(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get_mut(key) else { return };
        let datagram = op.is_datagram();
        let is_due = match op.stage {
            Stage::Posted | Stage::Known | Stage::Parked(_) => datagram,
            Stage::Applied => op.is_message(),
            Stage::Polled | Stage::Finished => false,
        };
        let Some(at) = op.acknowledged.filter(|_| is_due) else { return };
        op.go_on_to(Stage::Polled);
        let at = if datagram { at } else { at.max(op.end) };
        core.engine.borrow_mut().timer(key.tag(Subject::Acknowledged), at);
    }

    /// Ends a one-sided request that came back and whose effect stands.
    pub(super) fn return_or_wait(&mut self, core: &Core, key: ArenaSlot) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if op.carriage != Carriage::Over || op.stage != Stage::Applied || op.is_message() {
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
            region.take_into(&mut self.held, offset, local.length, op.start, op.end);
            region.end_reading(reader);
            let _ = local.region.put_bytes(local.offset, &self.held, local.length);
        } else if reads && let Some(old) = op.payload.take() {
            let _ = local.region.put(local.offset, &old);
        }
        op.go_on_to(Stage::Finished);
        let number = op.pair;
        self.settle(core, number);
    }

    /// The peer is gone: all retries are waited for, then the queue pair fails.
    pub(super) fn no_answer(&mut self, core: &Core, key: ArenaSlot, options: QueuePairOptions) {
        let Some(op) = self.ops.get_mut(key) else { return };
        if options.kind == QueuePairType::Ud {
            // Nobody learns that a datagram went nowhere.
            (op.carriage, op.failure) = (Carriage::Over, None);
            core.engine.borrow_mut().timer(key.tag(Subject::Polled), op.post_at);
            return;
        }
        let answer = retransmission(core, &options);
        op.failure = Some(Status::RetryExceeded);
        op.stop_reading();
        let wait = answer.timeout.times(u64::from(answer.retries) + 1);
        let at = core.now().max(op.post_at) + wait;
        op.take_off(core);
        core.engine.borrow_mut().timer(key.tag(Subject::Refused), at);
    }

    /// The responder refuses: the requester learns it by the next packet back.
    pub(super) fn refuse(&mut self, core: &Core, key: ArenaSlot, status: Status) {
        let Some(op) = self.ops.get_mut(key) else { return };
        op.failure = Some(status);
        op.stop_reading();
        op.take_off(core);
        core.engine.borrow_mut().timer(key.tag(Subject::Refused), core.now() + core.network_delay);
    }

    /// Completes, in posting order, what is finished.
    pub(super) fn settle(&mut self, core: &Core, number: u32) {
        loop {
            let Some(pair) = self.pair(number) else { return };
            let signal_all = pair.options.signal_all;
            let Some(&key) = pair.sends.front() else { return };
            let Some(op) = self.ops.get_mut(key).filter(|op| op.stage == Stage::Finished) else { return };
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
    pub(super) fn release(&mut self, key: ArenaSlot) {
        let is_over = |op: &Op| {
            let is_known = op.completer.is_none() && op.receiving.is_none() && op.source.is_none();
            op.carriage == Carriage::Over && is_known
        };
        if self.ops.get(key).is_some_and(is_over) {
            self.ops.discard(key);
        }
    }

    /// Puts a queue pair into the error state: what went before is done, the failed request and the
    /// failed receive tell why, and the rest is flushed.
    pub(super) fn fail(
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
    pub(super) fn flush(&mut self, core: &Core, number: u32) {
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
                op.take_off(core);
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

    pub(super) fn close(&mut self, core: &Core, number: u32) {
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
}

/// Closes the queue pairs of the roles that are meant, and ends their copies.
pub(in crate::backend) fn close_all_of(core: &Core, is_meant: impl Fn(usize) -> bool) {
    let mut device = core.device.borrow_mut();
    for number in 1..=device.pairs.len() as u32 {
        if device.look(number).is_some_and(|pair| is_meant(pair.role)) {
            device.close(core, number);
        }
    }
    device.end_copies_of(core, is_meant);
}
