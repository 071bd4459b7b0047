//! How roles meet: services, published addresses, datagrams.

use super::arena::{Arena, Key, Subject};
use super::device::TwinQueuePair;
use super::{Core, Label, Plan, TwinFabric};
use crate::engine::{Marks, Start};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::{Posting, Verb};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// How many datagrams wait at a socket before more are dropped.
const DATAGRAMS_WAITING: usize = 1024;

/// Someone who wants to be accepted.
struct Request {
    queue_pair: u32,
    role: usize,
}

struct Waiting {
    datagrams: VecDeque<(Vec<u8>, PortAddress)>,
    readers: Vec<Waker>,
}

/// A datagram on its way.
struct Flying {
    to: (usize, u16),
    from: PortAddress,
    bytes: Vec<u8>,
}

type Service = (usize, String);

#[derive(Default)]
pub(super) struct Network {
    listening: BTreeSet<Service>,
    requests: BTreeMap<Service, VecDeque<Request>>,
    published: BTreeMap<Service, Address>,
    sockets: BTreeMap<(usize, u16), Waiting>,
    flying: Arena<Flying>,
    /// Everyone who waits for a peer; all look again whenever something changed.
    meeting: Vec<Waker>,
}

impl Network {
    /// Ends whatever the role offered; those who wait for it look again.
    pub(super) fn remove_role(&mut self, role: usize) {
        self.listening.retain(|(owner, _)| *owner != role);
        self.sockets.retain(|(owner, _), _| *owner != role);
        self.published.retain(|(owner, _), _| *owner != role);
        self.requests.values_mut().for_each(|requests| requests.retain(|r| r.role != role));
        self.changed();
    }

    fn changed(&mut self) {
        self.meeting.drain(..).for_each(Waker::wake);
    }

    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.meeting.push(context.waker().clone());
        Poll::Pending
    }

    /// A datagram arrives.
    pub(super) fn arrived(&mut self, key: Key) {
        let Some(Flying { to, from, bytes }) = self.flying.remove(key) else { return };
        if let Some(socket) = self.sockets.get_mut(&to)
            && socket.datagrams.len() < DATAGRAMS_WAITING
        {
            socket.datagrams.push_back((bytes, from));
            socket.readers.drain(..).for_each(Waker::wake);
        }
    }

    /// A datagram is lost.
    pub(super) fn lost(&mut self, key: Key) {
        self.flying.remove(key);
    }

    /// A fault copied a datagram; the copy arrives at `at`.
    pub(super) fn duplicated(&mut self, core: &Core, key: Key, at: Time) {
        if let Some(Flying { to, from, bytes }) = self.flying.get(key) {
            let copy = Flying { to: *to, from: from.clone(), bytes: bytes.clone() };
            let key = self.flying.insert(copy);
            core.engine.borrow_mut().timer(key.tag(Subject::DatagramArrived), at);
        }
    }
}

/// A service on the twin that is listened for.
pub struct TwinListener {
    core: Rc<Core>,
    service: Service,
}

impl Drop for TwinListener {
    fn drop(&mut self) {
        self.core.network.borrow_mut().listening.remove(&self.service);
    }
}

pub(super) fn listen(fabric: &TwinFabric, service: &str) -> Result<TwinListener, ConnectError> {
    let key = (fabric.role, service.to_string());
    let mut network = fabric.core.network.borrow_mut();
    if network.listening.contains(&key) {
        return Err(ConnectError::ServiceTaken { role: fabric.role(), service: service.into() });
    }
    network.listening.insert(key.clone());
    network.changed();
    Ok(TwinListener { core: fabric.core.clone(), service: key })
}

fn check(queue_pair: &TwinQueuePair, kind: Kind, state: QueuePairState) -> Result<(), ConnectError> {
    let (is, of) = (queue_pair.state(), queue_pair.options().kind);
    if (is, of) == (state, kind) {
        return Ok(());
    }
    let next_step = match kind {
        Kind::Rc => "make a new one with `QueuePairOptions::rc`",
        Kind::Ud => "make a new one with `QueuePairOptions::ud`",
    };
    Err(ConnectError::WrongQueuePair { kind: of, state: is, next_step })
}

impl Listener for TwinListener {
    type QueuePair = TwinQueuePair;

    async fn accept(&self, queue_pair: &TwinQueuePair) -> Result<RoleName, ConnectError> {
        poll_fn(|context| {
            check(queue_pair, Kind::Rc, QueuePairState::Initialised)?;
            let mut network = self.core.network.borrow_mut();
            while let Some(request) = network.requests.get_mut(&self.service).and_then(VecDeque::pop_front) {
                // A peer that gave up meanwhile is passed over.
                let mut device = self.core.device.borrow_mut();
                if device.join(&self.core, request.queue_pair, queue_pair.number()) {
                    network.changed();
                    return Poll::Ready(Ok(self.core.roles[request.role].name.clone()));
                }
            }
            network.wait(context)
        })
        .await
    }
}

/// Takes a request back when its connecting future is dropped.
struct Asking<'a> {
    core: &'a Core,
    service: Service,
    queue_pair: u32,
}

impl Drop for Asking<'_> {
    fn drop(&mut self) {
        if let Some(requests) = self.core.network.borrow_mut().requests.get_mut(&self.service) {
            requests.retain(|request| request.queue_pair != self.queue_pair);
        }
    }
}

/// Waits until `look` finds something, the peer ended, or `limit` passed. A message each way takes
/// the network's delay.
async fn meet<T>(
    fabric: &TwinFabric,
    peer: usize,
    service: &str,
    limit: Time,
    ask: impl FnOnce(&mut Network),
    mut look: impl FnMut(&Network) -> Option<T>,
) -> Result<T, ConnectError> {
    let core = &fabric.core;
    let name = &core.roles[peer].name;
    let way = core.control_delay(fabric.role, peer);
    let found = fabric.timeout(limit, async {
        fabric.sleep(way).await;
        {
            let mut network = core.network.borrow_mut();
            ask(&mut network);
            network.changed();
        }
        let found = poll_fn(|context| {
            let mut network = core.network.borrow_mut();
            if let Some(found) = look(&network) {
                return Poll::Ready(Ok(found));
            }
            let role = &core.roles[peer];
            if role.ended.get() && !role.restarts.get() {
                let reason = "it ended".to_string();
                let (peer, service) = (name.clone(), service.into());
                return Poll::Ready(Err(ConnectError::Failed { peer, service, reason }));
            }
            network.wait(context)
        })
        .await?;
        fabric.sleep(way).await;
        Ok(found)
    });
    let timeout = || ConnectError::Timeout { peer: name.clone(), service: service.into(), waited: limit };
    found.await.unwrap_or_else(|| Err(timeout()))
}

pub(super) async fn connect(
    fabric: &TwinFabric,
    queue_pair: &TwinQueuePair,
    peer: RoleName,
    service: &str,
) -> Result<(), ConnectError> {
    check(queue_pair, Kind::Rc, QueuePairState::Initialised)?;
    let core = &fabric.core;
    let Some(index) = core.role_index(&peer.role, peer.instance) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    if !core.is_joined(fabric.role, index) {
        let reason = "both are at one endpoint, between which no path runs: place them apart".to_string();
        return Err(ConnectError::Failed { peer, service: service.into(), reason });
    }
    let key = (index, service.to_string());
    let number = queue_pair.number();
    let _asking = Asking { core, service: key.clone(), queue_pair: number };
    let request = Request { queue_pair: number, role: fabric.role };
    let limit = queue_pair.options().connect_timeout;
    let ask = |network: &mut Network| network.requests.entry(key).or_default().push_back(request);
    let state = || core.device.borrow().state(number);
    let look = |_: &Network| (state() != QueuePairState::Initialised).then_some(());
    meet(fabric, index, service, limit, ask, look).await
}

pub(super) fn publish(
    fabric: &TwinFabric,
    service: &str,
    queue_pair: &TwinQueuePair,
) -> Result<(), ConnectError> {
    check(queue_pair, Kind::Ud, QueuePairState::Ready)?;
    let mut network = fabric.core.network.borrow_mut();
    let key = (fabric.role, service.to_string());
    if network.published.contains_key(&key) {
        return Err(ConnectError::ServiceTaken { role: fabric.role(), service: service.into() });
    }
    network.published.insert(key, queue_pair.address());
    network.changed();
    Ok(())
}

pub(super) async fn resolve(
    fabric: &TwinFabric,
    peer: RoleName,
    service: &str,
    limit: Time,
) -> Result<Address, ConnectError> {
    let Some(index) = fabric.core.role_index(&peer.role, peer.instance) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    let key = (index, service.to_string());
    meet(fabric, index, service, limit, |_| (), |network| network.published.get(&key).copied()).await
}

/// A datagram port on the twin.
pub struct TwinSocket {
    core: Rc<Core>,
    role: usize,
    port: u16,
    label: Option<Label>,
}

impl TwinSocket {
    /// Counts what this port sends from now on under `label`.
    pub fn set_label(&mut self, label: Option<Label>) {
        self.label = label;
    }
}

impl Drop for TwinSocket {
    fn drop(&mut self) {
        self.core.network.borrow_mut().sockets.remove(&(self.role, self.port));
    }
}

pub(super) fn bind(fabric: &TwinFabric, port: u16) -> Result<TwinSocket, DatagramError> {
    let mut network = fabric.core.network.borrow_mut();
    if network.sockets.contains_key(&(fabric.role, port)) {
        return Err(DatagramError::PortTaken { role: fabric.role(), port });
    }
    network.sockets.insert((fabric.role, port), Waiting { datagrams: VecDeque::new(), readers: Vec::new() });
    Ok(TwinSocket { core: fabric.core.clone(), role: fabric.role, port, label: fabric.label })
}

impl Socket for TwinSocket {
    fn datagram_max(&self) -> usize {
        self.core.mtu.get() as usize
    }

    fn address(&self) -> PortAddress {
        PortAddress { role: self.core.roles[self.role].name.clone(), port: self.port }
    }

    async fn send_to(&self, bytes: &[u8], to: &PortAddress) -> Result<(), DatagramError> {
        let core = &self.core;
        let bound = self.datagram_max();
        if bytes.len() > bound {
            return Err(DatagramError::TooLong { length: bytes.len(), bound });
        }
        let Some(there) = core.role_index(&to.role.role, to.role.instance) else {
            return Err(DatagramError::NoSuchRole { peer: to.role.clone() });
        };
        let flying = Flying { to: (there, to.port), from: self.address(), bytes: bytes.to_vec() };
        let key = core.network.borrow_mut().flying.insert(flying);
        let (from, place) = (&core.roles[self.role], core.roles[there].place);
        let now = core.now();
        if !core.is_joined(self.role, there) {
            // Within one endpoint it goes through the operating system, which no route describes.
            let at = now + core.control_delay(self.role, there);
            core.engine.borrow_mut().timer(key.tag(Subject::DatagramArrived), at);
            return Ok(());
        }
        let planned = core.plan(Plan {
            verb: Verb::SendDatagram,
            from: from.place,
            to: place,
            engine: None,
            payload: bytes.len() as u64,
            posting: Posting::Single,
            access: offpath_route::Access::UNIFORM,
            signaled: true,
        });
        let planned =
            planned.map_err(|why| DatagramError::System { port: self.port, reason: why.to_string() })?;
        core.observer.add_route(self.label, &planned, core);
        let at = core.executor.charge(now, core.places[from.place].verbs.post_time);
        // A mark is asked for only so that copies are told of.
        let marks = Marks::of(&[offpath_route::Mark::Delivered]);
        let start = Start { at, sent_again: false, marks, retransmission: None };
        let instances = core.instances(self.role, there);
        let tag = key.tag(Subject::Datagram);
        core.engine.borrow_mut().start_as(tag, planned.route.clone(), instances, start);
        Ok(())
    }

    async fn receive_from(&self, into: &mut [u8]) -> Result<(usize, PortAddress), DatagramError> {
        let (bytes, from) = poll_fn(|context| {
            let mut network = self.core.network.borrow_mut();
            let Some(socket) = network.sockets.get_mut(&(self.role, self.port)) else {
                let reason = "the role of this socket ended".into();
                return Poll::Ready(Err(DatagramError::System { port: self.port, reason }));
            };
            if let Some(datagram) = socket.datagrams.pop_front() {
                return Poll::Ready(Ok(datagram));
            }
            socket.readers.push(context.waker().clone());
            Poll::Pending
        })
        .await?;
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        Ok((length, from))
    }
}
