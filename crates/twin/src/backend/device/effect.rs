//! What requests do at the responder.
//!
//! The engine tells the moments at which an operation touches memory as soon as it knows them. Those
//! of one queue pair are put into posting order here, so that the responder executes in order
//! although routes may overtake one another.

use super::super::Core;
use super::super::memory::{self, Payload, TwinRegion};
use super::super::subject::{Subject, Tagged};
use super::stage::Stage;
use super::{Device, payload_of, returns_data};
use offpath_fabric::runtime::{ArenaSlot, KeptHandle};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::Mark;

impl Device {
    /// The engine tells a moment of an operation.
    pub(in crate::backend) fn marked(&mut self, core: &Core, key: ArenaSlot, mark: Mark, at: Time) {
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
                if op.stage != Stage::Posted {
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
        if op.stage == Stage::Posted {
            op.go_on_to(Stage::Known);
        }
        // A datagram flies on without the queue pair that sent it.
        match op.stage {
            _ if op.is_datagram() => self.deliver_datagram(core, key),
            Stage::Posted | Stage::Known | Stage::Parked(_) => self.apply(core, number),
            Stage::Applied | Stage::Polled | Stage::Finished => {}
        }
    }

    /// Gives effects to the requests of a queue pair, in posting order, as far as they are known.
    pub(super) fn apply(&mut self, core: &Core, number: u32) {
        loop {
            let Some(pair) = self.pair(number) else { return };
            if pair.state != QueuePairState::Ready {
                return;
            }
            let Some(&key) = pair.sends.get(pair.applied) else { return };
            let Some(op) = self.ops.get(key) else { return };
            if op.stage != Stage::Known || op.failure.is_some() || !self.effect(core, number, key) {
                return;
            }
            if let Some(pair) = self.pair(number) {
                pair.applied += 1;
            }
            if let Some(op) = self.ops.get_mut(key) {
                op.go_on_to(Stage::Applied);
            }
            self.acknowledge(core, key);
            self.return_or_wait(core, key);
        }
    }

    /// A READ comes to its first byte: from now on what it passes over is kept as it was when it did. How long it takes is
    /// known with its last burst alone, and what is wrong with it is told then.
    pub(super) fn begin_reading(&mut self, core: &Core, key: ArenaSlot) {
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
    pub(super) fn effect(&mut self, core: &Core, number: u32, key: ArenaSlot) -> bool {
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
    pub(super) fn not_ready(&mut self, core: &Core, number: u32, key: ArenaSlot) -> bool {
        let now = core.now();
        let Some(options) = self.look(number).map(|pair| pair.options) else { return false };
        let Some(op) = self.ops.get_mut(key) else { return false };
        if op.end > now {
            // It is not there yet: a receive may still be posted in time.
            core.engine.borrow_mut().timer(key.tag(Subject::Effect), op.end);
        } else if options.receiver_not_ready_retries >= QueuePairOptions::FOR_EVER {
            op.go_on_to(Stage::Parked(now));
        } else if op.not_ready >= options.receiver_not_ready_retries {
            self.refuse(core, key, Status::ReceiverNotReady);
        } else {
            op.not_ready += 1;
            self.send_again(core, number, key, now + options.receiver_not_ready_delay);
        }
        false
    }

    /// A peer that waits for a receive sees that there will be none.
    pub(super) fn look_again(&mut self, core: &Core, number: Option<u32>) {
        let Some(number) = number else { return };
        let Some(pair) = self.look(number) else { return };
        let Some(&key) = pair.sends.get(pair.applied) else { return };
        if let Some(op) = self.ops.get_mut(key)
            && matches!(op.stage, Stage::Parked(_))
        {
            op.go_on_to(Stage::Known);
            self.apply(core, number);
        }
    }
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
