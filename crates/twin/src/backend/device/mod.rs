//! What the NICs of a run hold: queue pairs, their operations, copies by the card's engines.
//!
//! An operation goes to the engine ([`begin`]), does what it does at the responder ([`effect`], [`message`]) and
//! ends ([`end`]); [`stage`] says how far it is.

mod begin;
mod copy;
mod effect;
mod end;
mod message;
mod queue_pair;
mod stage;

pub(super) use copy::copy;
pub(super) use end::close_all_of;
pub use queue_pair::TwinQueuePair;
pub(super) use queue_pair::create;

use super::memory::{Payload, TwinRegion};
use super::{Core, Label, Plan, Planned};
use copy::Copy;
use offpath_fabric::runtime::{Arena, ArenaSlot, KeptHandle};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::Posting;
use stage::{Carriage, Stage};
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
    carriage: Carriage,
    stage: Stage,
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
    /// A receive of the peer waits for its handler to run.
    receiving: Option<u32>,
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

    fn is_message(&self) -> bool {
        matches!(self.request.operation, WorkKind::Send { .. })
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
    /// Until when its requests keep it, where its NIC's limits count.
    busy_until: Time,
    /// Ended unsignaled requests, which the next signaled one completes.
    covered: Vec<(Completer, Completion)>,
    receives: VecDeque<Receive>,
    landed: VecDeque<Landed>,
    /// When the last effect of an earlier request ends at the responder.
    effects_until: Time,
    /// The route of the last request: most requests of a queue pair are alike.
    planned: Option<(Plan, Rc<Planned>)>,
}

impl Pair {
    fn slots_taken(&self) -> usize {
        self.sends.len() + self.covered.len()
    }
}

#[derive(Default)]
pub(super) struct Device {
    /// By number, from 1 on; numbers are never used again.
    pairs: Vec<Option<Box<Pair>>>,
    ops: Arena<Op>,
    copies: Arena<Copy>,
    /// Room for bytes on their way from one region to another.
    held: Vec<u8>,
}

/// Whether a device may use a local slice for `role`.
fn local_is_good(role: usize, slice: &Slice<TwinRegion>, right: Access) -> bool {
    slice.length == 0 || slice.region.registration().serves(role, slice.offset, slice.length, right)
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
                let why = match (op.stage, op.carriage) {
                    (Stage::Parked(_), _) => "waits for a receive of its peer",
                    (_, Carriage::Waits) => "waits for earlier work to return",
                    (_, Carriage::Carried(_)) => "is in flight",
                    (_, Carriage::Over) => "waits for its turn",
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
}

fn address(role: usize, number: u32) -> Address {
    Address { endpoint: EndpointId(role as u32), queue_pair: number, queue_key: number, path: [0; 20] }
}
