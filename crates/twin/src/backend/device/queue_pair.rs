//! What applications hold of a queue pair.

use super::super::memory::{Payload, TwinRegion};
use super::super::{Core, LONGEST, Label, TwinFabric};
use super::stage::{Carriage, Stage};
use super::{Op, Pair, Receive, Request, address, payload_of};
use offpath_fabric::runtime::{KeptHandle, check_options};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::{LONGEST_MESSAGE, Posting};
use std::collections::VecDeque;
use std::rc::Rc;

pub(in crate::backend) fn create(
    fabric: &TwinFabric,
    options: QueuePairOptions,
) -> Result<TwinQueuePair, Unsupported> {
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
        busy_until: Time::ZERO,
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

    pub(in crate::backend) fn number(&self) -> u32 {
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
        local.region.registration().check(local.offset, local.length).or_else(|why| match local.length {
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
                carriage: Carriage::Waits,
                stage: Stage::Posted,
                completer: Some(completer),
                payload,
                source: None,
                start: Time::ZERO,
                end: Time::ZERO,
                acknowledged: None,
                not_ready: 0,
                failure: None,
                receiving: None,
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
