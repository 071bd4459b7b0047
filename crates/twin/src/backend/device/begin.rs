//! Requests on their way to the engine, in posting order.

use super::super::memory::TwinRegion;
use super::super::subject::{Subject, Tagged};
use super::super::{Core, ObservedStep, Plan, Planned};
use super::stage::{Carriage, Stage};
use super::{Device, local_is_good, payload_of, returns_data};
use crate::engine::{Marks, Retransmission, Start};
use offpath_fabric::runtime::ArenaSlot;
use offpath_fabric::*;
use offpath_quantity::{Bytes, Time};
use offpath_route::{Mark, Moves, Posting, Verb};

pub(super) const READ_MARKS: Marks = Marks::of(&[Mark::SourceStart, Mark::SourceEnd]);
pub(super) const WRITE_MARKS: Marks = Marks::of(&[Mark::SourceEnd, Mark::TargetStart, Mark::TargetEnd]);
pub(super) const SEND_MARKS: Marks = Marks::of(&[Mark::SourceEnd, Mark::Delivered, Mark::Acknowledged]);

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

impl Device {
    /// Starts what may start, in posting order.
    pub(super) fn start(&mut self, core: &Core, number: u32) {
        while let Some(pair) = self.pair(number) {
            let Some(&key) = pair.sends.get(pair.started) else { return };
            let (returning, state) = (pair.returning, pair.state);
            let Some(op) = self.ops.get_mut(key) else { return };
            if state != QueuePairState::Ready || (op.request.fence && returning > 0) {
                return;
            }
            let reads = returns_data(&op.request.operation);
            if reads && self.reads_are_all_in_flight(core, number) {
                return;
            }
            self.begin(core, number, key);
            if let Some(pair) = self.pair(number) {
                pair.started += 1;
                pair.returning += u32::from(reads);
            }
        }
    }

    /// Whether a queue pair has as many READs and atomics in flight as the NICs of both ends allow, where that counts.
    fn reads_are_all_in_flight(&self, core: &Core, number: u32) -> bool {
        if !core.queue_pair_limits {
            return false;
        }
        let Some(pair) = self.look(number) else { return false };
        let peer = pair.peer.and_then(|peer| self.look(peer)).map(|peer| peer.role);
        let of = |role: usize| core.nic_of(core.roles[role].place).outstanding_reads;
        let most = std::iter::once(pair.role).chain(peer).map(of).min().expect("one end is there");
        u64::from(pair.returning) >= most.max(1)
    }

    /// Hands a request to the engine.
    pub(super) fn begin(&mut self, core: &Core, number: u32, key: ArenaSlot) {
        let Some(pair) = self.look(number) else { return };
        let (kind, peer, instances) = (pair.options.kind, pair.peer, pair.instances.clone());
        let (options, signal_all) = (pair.options, pair.options.signal_all);
        let peer_role = peer.and_then(|peer| self.look(peer)).map(|peer| peer.role);
        let Some(op) = self.ops.get_mut(key) else { return };
        let operation = &op.request.operation;
        let local = operation.local();
        let right = if returns_data(operation) { Access::LOCAL_WRITE } else { Access::READ_ONLY };
        if op.payload.is_none() && !local_is_good(op.role, local, right) {
            (op.failure, op.carriage) = (Some(Status::LocalProtection), Carriage::Over);
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
        let plan = Plan {
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
                    (op.failure, op.carriage) = (Some(Status::LocalOperation), Carriage::Over);
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
        let mut at = op.post_at;
        // A READ that its queue pair's limit held back lies posted at the NIC: what is left is to go from there.
        let is_posted = core.queue_pair_limits && returns_data(operation) && core.now() > op.post_at;
        if is_posted {
            at += planned.route.departs_after();
        }
        if core.queue_pair_limits && kind == QueuePairType::Rc {
            let keeps = |place: usize| {
                let nic = core.nic_of(place);
                nic.queue_pair_request_time + nic.queue_pair_rate.time_for(Bytes::new(local.length))
            };
            at = at.max(core.now()).max(pair.busy_until);
            pair.busy_until = at + keeps(from).max(keeps(to));
        }
        let start = Start { at, is_posted, marks, retransmission: Some(answer) };
        let tag = key.tag(Subject::Operation);
        let handle =
            core.engine.borrow_mut().start_as(tag, planned.route.clone(), op.instances.clone(), start);
        op.carried(handle);
        op.planned = Some(planned);
    }

    /// Sends a message again that found no receive.
    pub(super) fn send_again(&mut self, core: &Core, number: u32, key: ArenaSlot, at: Time) {
        let Some(options) = self.look(number).map(|pair| pair.options) else { return };
        let Some(op) = self.ops.get_mut(key) else { return };
        let Some(planned) = op.planned.clone() else { return };
        op.go_on_to(Stage::Posted);
        op.acknowledged = None;
        let answer = retransmission(core, &options);
        let marks = if op.is_message() { SEND_MARKS } else { WRITE_MARKS };
        let start = Start { at, is_posted: true, marks, retransmission: Some(answer) };
        op.take_off(core);
        let tag = key.tag(Subject::Operation);
        let mut engine = core.engine.borrow_mut();
        op.carried(engine.start_as(tag, planned.route.clone(), op.instances.clone(), start));
    }

    /// A receive was posted: a message that waits for it comes with its next try.
    pub(super) fn resume_parked(&mut self, core: &Core, number: Option<u32>) {
        let Some(number) = number else { return };
        let Some(pair) = self.look(number) else { return };
        let delay = pair.options.receiver_not_ready_delay.ps().max(1);
        let Some(&key) = pair.sends.get(pair.applied) else { return };
        let Some(Stage::Parked(since)) = self.ops.get(key).map(|op| op.stage) else { return };
        let tries = core.now().saturating_sub(since).ps().div_ceil(delay).max(1);
        self.send_again(core, number, key, since + Time::from_ps(delay * tries));
    }
}

/// What an observer is told of an operation that begins.
pub(super) fn observed_step(
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

pub(super) fn retransmission(core: &Core, options: &QueuePairOptions) -> Retransmission {
    let own =
        Retransmission { timeout: options.acknowledgement_timeout, retries: u32::from(options.retries) };
    core.retransmission.unwrap_or(own)
}
