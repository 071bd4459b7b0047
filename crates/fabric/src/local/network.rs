//! How roles meet: services, published addresses, datagrams.

use super::device::LocalQueuePair;
use super::{Core, DATAGRAM_MAX, DATAGRAMS_WAITING, LocalFabric};
use crate::datagram::{PortAddress, Socket};
use crate::queue_pair::{Address, Kind, QueuePair, QueuePairState};
use crate::world::RoleName;
use crate::{ConnectError, DatagramError, Fabric, Listener};
use offpath_quantity::Time;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

/// Someone who wants to be accepted.
struct Request {
    queue_pair: u32,
    from: RoleName,
}

struct Waiting {
    datagrams: VecDeque<(Vec<u8>, PortAddress)>,
    readers: Vec<Waker>,
}

type Service = (usize, String);

#[derive(Default)]
pub(super) struct Network {
    listening: BTreeSet<Service>,
    requests: BTreeMap<Service, VecDeque<Request>>,
    published: BTreeMap<Service, Address>,
    sockets: BTreeMap<(usize, u16), Waiting>,
    /// Everyone who waits for a peer; all look again whenever something changed.
    meeting: Vec<Waker>,
}

impl Network {
    /// Ends whatever the role offered; those who wait for it look again.
    pub(super) fn remove_role(&mut self, role: usize) {
        self.listening.retain(|(owner, _)| *owner != role);
        self.sockets.retain(|(owner, _), _| *owner != role);
        self.published.retain(|(owner, _), _| *owner != role);
        self.changed();
    }

    fn changed(&mut self) {
        self.meeting.drain(..).for_each(Waker::wake);
    }

    fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.meeting.push(context.waker().clone());
        Poll::Pending
    }
}

/// A service of the local world that is listened for.
pub struct LocalListener {
    core: Rc<Core>,
    service: Service,
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        self.core.network.borrow_mut().listening.remove(&self.service);
    }
}

pub(super) fn listen(core: &Rc<Core>, role: usize, service: &str) -> Result<LocalListener, ConnectError> {
    let key = (role, service.to_string());
    let mut network = core.network.borrow_mut();
    if network.listening.contains(&key) {
        return Err(ConnectError::ServiceTaken {
            role: core.roles[role].name.clone(),
            service: service.into(),
        });
    }
    network.listening.insert(key.clone());
    network.changed();
    Ok(LocalListener { core: core.clone(), service: key })
}

fn check(queue_pair: &LocalQueuePair, kind: Kind, state: QueuePairState) -> Result<(), ConnectError> {
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

impl Listener for LocalListener {
    type QueuePair = LocalQueuePair;

    async fn accept(&self, queue_pair: &LocalQueuePair) -> Result<RoleName, ConnectError> {
        poll_fn(|context| {
            check(queue_pair, Kind::Rc, QueuePairState::Initialised)?;
            let mut network = self.core.network.borrow_mut();
            while let Some(request) = network.requests.get_mut(&self.service).and_then(VecDeque::pop_front) {
                // A peer that gave up meanwhile is passed over.
                if self.core.device.borrow_mut().join(request.queue_pair, queue_pair.number()) {
                    network.changed();
                    return Poll::Ready(Ok(request.from));
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

/// Waits until `look` finds something, the peer ended, or `limit` passed.
async fn meet<T>(
    fabric: &LocalFabric,
    peer: &RoleName,
    service: &str,
    limit: Time,
    mut look: impl FnMut(&Network) -> Option<T>,
) -> Result<T, ConnectError> {
    let core = &fabric.core;
    let index = core.role_index(&peer.role, peer.instance);
    let found = fabric.timeout(
        limit,
        poll_fn(|context| {
            let mut network = core.network.borrow_mut();
            if let Some(found) = look(&network) {
                return Poll::Ready(Ok(found));
            }
            if index.is_some_and(|index| core.roles[index].ended.get()) {
                let reason = "it ended".to_string();
                return Poll::Ready(Err(ConnectError::Failed {
                    peer: peer.clone(),
                    service: service.into(),
                    reason,
                }));
            }
            network.wait(context)
        }),
    );
    let timeout = || ConnectError::Timeout { peer: peer.clone(), service: service.into(), waited: limit };
    found.await.unwrap_or_else(|| Err(timeout()))
}

pub(super) async fn connect(
    fabric: &LocalFabric,
    queue_pair: &LocalQueuePair,
    peer: RoleName,
    service: &str,
) -> Result<(), ConnectError> {
    check(queue_pair, Kind::Rc, QueuePairState::Initialised)?;
    let core = &fabric.core;
    let Some(index) = core.role_index(&peer.role, peer.instance) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    let key = (index, service.to_string());
    let request = Request { queue_pair: queue_pair.number(), from: fabric.role() };
    {
        let mut network = core.network.borrow_mut();
        network.requests.entry(key.clone()).or_default().push_back(request);
        network.changed();
    }
    let _asking = Asking { core, service: key, queue_pair: queue_pair.number() };
    let limit = queue_pair.options().connect_timeout;
    let state = || core.device.borrow().state(queue_pair.number());
    meet(fabric, &peer, service, limit, |_| (state() != QueuePairState::Initialised).then_some(())).await
}

pub(super) fn publish(
    core: &Rc<Core>,
    role: usize,
    service: &str,
    queue_pair: &LocalQueuePair,
) -> Result<(), ConnectError> {
    check(queue_pair, Kind::Ud, QueuePairState::Ready)?;
    let mut network = core.network.borrow_mut();
    let key = (role, service.to_string());
    if network.published.contains_key(&key) {
        return Err(ConnectError::ServiceTaken {
            role: core.roles[role].name.clone(),
            service: service.into(),
        });
    }
    network.published.insert(key, queue_pair.address());
    network.changed();
    Ok(())
}

pub(super) async fn resolve(
    fabric: &LocalFabric,
    peer: RoleName,
    service: &str,
    limit: Time,
) -> Result<Address, ConnectError> {
    let Some(index) = fabric.core.role_index(&peer.role, peer.instance) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    let key = (index, service.to_string());
    meet(fabric, &peer, service, limit, |network| network.published.get(&key).copied()).await
}

/// A datagram port of the local world.
pub struct LocalSocket {
    core: Rc<Core>,
    role: usize,
    port: u16,
}

impl Drop for LocalSocket {
    fn drop(&mut self) {
        self.core.network.borrow_mut().sockets.remove(&(self.role, self.port));
    }
}

pub(super) fn bind(core: &Rc<Core>, role: usize, port: u16) -> Result<LocalSocket, DatagramError> {
    let mut network = core.network.borrow_mut();
    if network.sockets.contains_key(&(role, port)) {
        return Err(DatagramError::PortTaken { role: core.roles[role].name.clone(), port });
    }
    network.sockets.insert((role, port), Waiting { datagrams: VecDeque::new(), readers: Vec::new() });
    Ok(LocalSocket { core: core.clone(), role, port })
}

impl Socket for LocalSocket {
    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    fn address(&self) -> PortAddress {
        PortAddress { role: self.core.roles[self.role].name.clone(), port: self.port }
    }

    async fn send_to(&self, bytes: &[u8], to: &PortAddress) -> Result<(), DatagramError> {
        if bytes.len() > DATAGRAM_MAX {
            return Err(DatagramError::TooLong { length: bytes.len(), bound: DATAGRAM_MAX });
        }
        let Some(role) = self.core.role_index(&to.role.role, to.role.instance) else {
            return Err(DatagramError::NoSuchRole { peer: to.role.clone() });
        };
        let mut network = self.core.network.borrow_mut();
        if let Some(socket) = network.sockets.get_mut(&(role, to.port))
            && socket.datagrams.len() < DATAGRAMS_WAITING
        {
            socket.datagrams.push_back((bytes.to_vec(), self.address()));
            socket.readers.drain(..).for_each(Waker::wake);
        }
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
