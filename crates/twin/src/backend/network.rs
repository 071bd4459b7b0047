//! How roles meet: at once but for the network's delay; datagrams travel by route.

use super::device::TwinQueuePair;
use super::subject::{Subject, Tagged};
use super::{Core, Plan, TwinFabric};
use crate::engine::{Marks, Start};
use offpath_fabric::runtime::{
    ArenaSlot, Asking, Datagram, InProcess, Port, Rendezvous, Sends, ServiceListener,
};
use offpath_fabric::{DatagramError, PortAddress};
use offpath_quantity::Time;
use offpath_route::{Posting, Verb};

/// A service on the twin that is listened for.
pub type TwinListener = ServiceListener<TwinFabric>;
/// A datagram port on the twin. What it sends is counted under the label of the context that bound it.
pub type TwinSocket = Port<TwinFabric>;

/// A datagram on its way.
#[derive(Clone)]
pub(super) struct Flying {
    to: (usize, u16),
    from: PortAddress,
    bytes: Vec<u8>,
}

impl Core {
    /// A datagram arrives.
    pub(super) fn datagram_arrived(&self, key: ArenaSlot) {
        let Some(Flying { to, from, bytes }) = self.flying.borrow_mut().remove(key) else { return };
        self.rendezvous.ports.borrow_mut().deliver(to.0, to.1, bytes, from);
    }

    /// A datagram is lost.
    pub(super) fn datagram_lost(&self, key: ArenaSlot) {
        self.flying.borrow_mut().remove(key);
    }

    /// A fault copied a datagram; the copy arrives at `at`.
    pub(super) fn datagram_duplicated(&self, key: ArenaSlot, at: Time) {
        let mut flying = self.flying.borrow_mut();
        if let Some(copy) = flying.get(key).cloned() {
            let key = flying.insert(copy);
            self.engine.borrow_mut().timer(key.tag(Subject::DatagramArrived), at);
        }
    }
}

impl Sends for TwinFabric {
    type Asking = Asking;

    fn at(&self) -> (&Rendezvous<Asking>, usize) {
        (&self.core.rendezvous, self.role)
    }

    fn datagram_max(&self) -> usize {
        self.core.mtu.get() as usize
    }

    async fn send_datagram(&self, datagram: Datagram<'_>) -> Result<(), DatagramError> {
        let Datagram { bytes, from, to } = datagram;
        let core = &self.core;
        let Some(there) = self.core.rendezvous.number_of(&to.role) else {
            return Err(DatagramError::NoSuchRole { peer: to.role.clone() });
        };
        let port = from.port;
        let flying = Flying { to: (there, to.port), from: from.clone(), bytes: bytes.to_vec() };
        let key = core.flying.borrow_mut().insert(flying);
        let (here, place) = (core.roles[self.role].place, core.roles[there].place);
        let now = core.now();
        if !core.is_joined(self.role, there) {
            // Within one endpoint it goes through the operating system, which no route describes.
            let at = now + core.control_delay(self.role, there);
            core.engine.borrow_mut().timer(key.tag(Subject::DatagramArrived), at);
            return Ok(());
        }
        let planned = core.plan(Plan {
            verb: Verb::SendDatagram,
            from: here,
            to: place,
            engine: None,
            payload: bytes.len() as u64,
            posting: Posting::Single,
            access: offpath_route::AddressSpread::UNIFORM,
            signaled: true,
        });
        let planned = planned.map_err(|why| DatagramError::System { port, reason: why.to_string() })?;
        core.observer.add_route(self.label, &planned, core);
        let at = core.executor.charge(now, core.places[here].verbs.post_time);
        // A mark is asked for only so that copies are told of.
        let marks = Marks::of(&[offpath_route::Mark::Delivered]);
        let start = Start { at, is_posted: false, marks, retransmission: None };
        let instances = core.instances(self.role, there);
        let tag = key.tag(Subject::Datagram);
        core.engine.borrow_mut().start_as(tag, planned.route.clone(), instances, start);
        Ok(())
    }
}

impl InProcess for TwinFabric {
    fn is_gone(&self, role: usize) -> bool {
        let state = &self.core.roles[role];
        state.ended.get() && !state.restarts.get()
    }

    fn unreachable(&self, role: usize) -> Option<&'static str> {
        let joined = self.core.is_joined(self.role, role);
        (!joined).then_some("both are at one endpoint, between which no path runs: place them apart")
    }

    fn control_delay(&self, role: usize) -> Time {
        self.core.control_delay(self.role, role)
    }

    fn queue_pair_number(queue_pair: &TwinQueuePair) -> u32 {
        queue_pair.number()
    }

    fn join(&self, one: u32, other: u32) -> bool {
        self.core.device.borrow_mut().join(&self.core, one, other)
    }
}
