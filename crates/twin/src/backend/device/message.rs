//! Messages at their receiver, with the receives that they take.

use super::super::Core;
use super::super::subject::{Subject, Tagged};
use super::stage::{Carriage, Stage};
use super::{Device, Landed, Op, Receive, address, local_is_good, payload_of};
use offpath_fabric::runtime::ArenaSlot;
use offpath_fabric::*;
use offpath_quantity::Time;

impl Device {
    /// Takes the next receive for a message.
    pub(super) fn land(&mut self, peer: u32, key: ArenaSlot, completion: Completion) {
        let Some(there) = self.pair(peer) else { return };
        if let Some(Receive { completer, .. }) = there.receives.pop_front() {
            there.landed.push_back(Landed { key, completer, completion, ready: false });
        }
    }

    /// Puts a SEND on a connection into the peer's next receive.
    pub(super) fn fill_receive(
        &mut self,
        core: &Core,
        peer: u32,
        key: ArenaSlot,
        immediate: Option<u32>,
    ) -> Result<(), Status> {
        let Some(op) = self.ops.get_mut(key) else { return Err(Status::RemoteOperation) };
        let length = op.request.operation.local().length;
        let (at, over) = (op.end, op.carriage == Carriage::Over);
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
    pub(super) fn deliver_datagram(&mut self, core: &Core, key: ArenaSlot) {
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
        let over = op.carriage == Carriage::Over;
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
    pub(super) fn received(&mut self, core: &Core, key: ArenaSlot) {
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

    /// A fault copied a datagram: the copy takes a receive of its own, or is dropped.
    pub(in crate::backend) fn duplicated(&mut self, core: &Core, key: ArenaSlot, at: Time) {
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
            carriage: Carriage::Over,
            stage: Stage::Finished,
            completer: None,
            payload: Some(op.payload.clone().unwrap_or_else(|| payload_of(op.request.operation.local(), at))),
            source: None,
            start: at,
            end: at,
            acknowledged: None,
            not_ready: 0,
            failure: None,
            receiving: None,
        };
        let key = self.ops.insert(copy);
        core.engine.borrow_mut().timer(key.tag(Subject::Effect), at);
    }
}
