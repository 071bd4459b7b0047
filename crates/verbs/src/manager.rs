//! Connections by the RDMA connection manager, for queue pairs that this crate owns.
//!
//! The processes of a run still meet by TCP, where the acceptor names a token and a port of the connection
//! manager. The dialler resolves the peer's GID as an IP address and asks there for a connection, with the
//! token as private data. What the connection manager agreed on comes by `rdma_init_qp_attr`; the queue pair
//! is changed here. Nothing waits: one task reads the event channel where it has something.

use crate::Core;
use crate::bindings::*;
use crate::device::{Device, last_error};
use crate::queue_pair::At;
use crate::{VerbsError, queue_pair::Parameters};
use offpath_fabric::runtime::Owner;
use socket2::SockAddr;
use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::ffi::CStr;
use std::future::poll_fn;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::ptr::NonNull;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// What says which rendezvous a request of the connection manager belongs to.
pub(crate) type Token = [u8; 16];

/// How long the system may take to find an address or a route, in milliseconds.
const RESOLVE: i32 = 2000;
/// How many requests wait before more are refused.
const BACKLOG: i32 = 128;

/// Why the connection manager made no connection. Codes are those of its events.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Failure {
    #[error("the address {0} was not resolved: {1}; check that its network is reached from this device's")]
    Address(SocketAddr, String),
    #[error("no route to {0} was resolved: {1}; check the path between both devices")]
    Route(SocketAddr, String),
    #[error("{0} leads over {1}, not over this backend's {2}; open that device, or choose another GID")]
    OtherDevice(SocketAddr, String, String),
    #[error("{0} rejected the connection with reason {1} ({2})")]
    Rejected(SocketAddr, i32, &'static str),
    #[error("{0} is unreachable: {1}; check that the machine answers there")]
    Unreachable(SocketAddr, String),
    #[error("the peer is gone")]
    Gone,
    #[error("the peer's GID is not an IP address; give its network device one")]
    NoAddress,
    #[error("{0} failed: {1}")]
    Call(&'static str, String),
    #[error("the connection manager told event {0} with status {1}")]
    Event(u32, i32),
}

/// What a reason of rejection means, as the InfiniBand specification numbers them (section 12.6.7.2).
fn rejection(reason: i32) -> &'static str {
    match reason {
        1 => "no queue pair is left",
        3 => "no resources are left",
        4 => "it timed out",
        8 => "nobody listens there",
        10 => "the connection is stale: an earlier one of the same queue pair is not forgotten yet",
        28 => "nobody there waits for this connection",
        _ => "see the reasons of the connection manager",
    }
}

/// What a negative status of an event says.
fn said(status: i32) -> String {
    io::Error::from_raw_os_error(status.saturating_neg()).to_string()
}

/// The IP address that a GID on Ethernet is, where it can be routed to.
fn ip_of(gid: &[u8]) -> Option<IpAddr> {
    let gid: [u8; 16] = gid.try_into().ok()?;
    let address = Ipv6Addr::from(gid);
    match address.to_ipv4_mapped() {
        Some(address) if address != Ipv4Addr::UNSPECIFIED => Some(IpAddr::V4(address)),
        None if !address.is_unicast_link_local() && !address.is_unspecified() => Some(IpAddr::V6(address)),
        _ => None,
    }
}

/// The IP address of the device, by which the connection manager finds it.
pub(crate) fn own_address(device: &Device) -> Result<IpAddr, VerbsError> {
    let ethernet = device.port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET;
    ip_of(&device.gid)
        .filter(|_| ethernet)
        .ok_or_else(|| VerbsError::NoIpAddress { device: device.name().into(), gid_index: device.gid_index })
}

#[derive(Clone, Copy)]
struct Event {
    kind: u32,
    status: i32,
}

/// What came for a connection that nobody has looked at.
#[derive(Default)]
struct Line {
    events: VecDeque<Event>,
    waker: Option<Waker>,
    /// The queue pair that it connected.
    pair: Option<At>,
}

/// A rendezvous that waits for its request.
#[derive(Default)]
struct Awaited {
    arrived: Option<Connection>,
    waker: Option<Waker>,
}

/// The event channel of a run, and who listens on it.
pub(crate) struct Manager {
    library: Rc<ConnectionLibrary>,
    device: Rc<Device>,
    channel: NonNull<rdma_event_channel>,
    listener: NonNull<rdma_cm_id>,
    /// Where it listens.
    local: SocketAddr,
    lines: RefCell<BTreeMap<usize, Line>>,
    awaited: RefCell<BTreeMap<Token, Awaited>>,
}

impl Drop for Manager {
    fn drop(&mut self) {
        // SAFETY: every connection holds the manager, so the listener is the last of the channel; no event
        // is kept unacknowledged.
        unsafe {
            (self.library.rdma_destroy_id)(self.listener.as_ptr());
            (self.library.rdma_destroy_event_channel)(self.channel.as_ptr());
        }
    }
}

fn checked(call: &'static str, result: i32) -> Result<(), Failure> {
    if result == 0 { Ok(()) } else { Err(Failure::Call(call, last_error())) }
}

/// Makes an identifier of connections.
///
/// # Safety
///
/// The channel must be alive for as long as the identifier is.
unsafe fn create_id(
    library: &ConnectionLibrary,
    channel: NonNull<rdma_event_channel>,
) -> Result<NonNull<rdma_cm_id>, Failure> {
    let mut id = std::ptr::null_mut();
    // SAFETY: the caller's; the pointer is written by the call.
    let result =
        unsafe { (library.rdma_create_id)(channel.as_ptr(), &mut id, std::ptr::null_mut(), RDMA_PS_TCP) };
    checked("rdma_create_id", result)?;
    NonNull::new(id).ok_or_else(|| Failure::Call("rdma_create_id", "it gave none".into()))
}

impl Manager {
    /// Opens an event channel and listens at a free port of the device's own address.
    pub fn new(library: &Rc<ConnectionLibrary>, device: &Rc<Device>) -> Result<Manager, Failure> {
        let own = own_address(device).map_err(|_| Failure::NoAddress)?;
        // SAFETY: it takes nothing.
        let channel = NonNull::new(unsafe { (library.rdma_create_event_channel)() })
            .ok_or_else(|| Failure::Call("rdma_create_event_channel", last_error()))?;
        // SAFETY: the channel is alive; its descriptor is its own. The executor reads it between other work,
        // so reading must not wait.
        let listener = unsafe {
            let flags = libc::fcntl((*channel.as_ptr()).fd, libc::F_GETFL);
            libc::fcntl((*channel.as_ptr()).fd, libc::F_SETFL, flags | libc::O_NONBLOCK);
            create_id(library, channel)
        };
        let listener = listener.inspect_err(|_| {
            // SAFETY: nothing was made on it.
            unsafe { (library.rdma_destroy_event_channel)(channel.as_ptr()) };
        })?;
        let mut manager = Manager {
            library: library.clone(),
            device: device.clone(),
            channel,
            listener,
            local: SocketAddr::new(own, 0),
            lines: RefCell::default(),
            awaited: RefCell::default(),
        };
        let address = SockAddr::from(manager.local);
        // SAFETY: the listener is alive; the address outlives the call, which only reads it.
        unsafe {
            let bound = (library.rdma_bind_addr)(listener.as_ptr(), address.as_ptr().cast_mut().cast());
            checked("rdma_bind_addr", bound)?;
            checked("rdma_listen", (library.rdma_listen)(listener.as_ptr(), BACKLOG))?;
            // Of both families the port is what follows the family.
            let bound = &raw const (*listener.as_ptr()).route.addr.src_storage;
            manager.local.set_port(u16::from_be((*bound.cast::<libc::sockaddr_in>()).sin_port));
        }
        Ok(manager)
    }

    /// The port that peers ask at.
    pub fn port(&self) -> u16 {
        self.local.port()
    }

    fn connection(self: &Rc<Manager>, id: NonNull<rdma_cm_id>) -> Connection {
        self.lines.borrow_mut().insert(id.as_ptr() as usize, Line::default());
        Connection { manager: self.clone(), id }
    }

    /// Has requests with this token wait for whoever holds the result.
    pub fn invite(self: &Rc<Manager>, token: Token) -> Invitation {
        self.awaited.borrow_mut().insert(token, Awaited::default());
        Invitation { manager: self.clone(), token }
    }

    /// Asks the peer for the connection of a rendezvous; the queue pair is then to be changed, and
    /// [`Connection::establish`] be called.
    pub async fn dial(
        self: &Rc<Manager>,
        own: &Parameters,
        peer: &Parameters,
        port: u16,
        token: &Token,
    ) -> Result<Connection, Failure> {
        let to = SocketAddr::new(ip_of(&peer.path[..16]).ok_or(Failure::NoAddress)?, port);
        // SAFETY: the connection holds the manager, which holds the channel.
        let connection = self.connection(unsafe { create_id(&self.library, self.channel) }?);
        let addresses = [SocketAddr::new(self.local.ip(), 0), to].map(SockAddr::from);
        let [from, there] = addresses.each_ref().map(|one| one.as_ptr().cast_mut().cast());
        // SAFETY: the identifier is alive; the addresses outlive the call, which only reads them.
        let asked = unsafe { (self.library.rdma_resolve_addr)(connection.id.as_ptr(), from, there, RESOLVE) };
        checked("rdma_resolve_addr", asked).map_err(|_| Failure::Address(to, last_error()))?;
        connection.expect(RDMA_CM_EVENT_ADDR_RESOLVED, to).await?;
        connection.check_device(to)?;
        // SAFETY: the identifier is alive.
        let asked = unsafe { (self.library.rdma_resolve_route)(connection.id.as_ptr(), RESOLVE) };
        checked("rdma_resolve_route", asked).map_err(|_| Failure::Route(to, last_error()))?;
        connection.expect(RDMA_CM_EVENT_ROUTE_RESOLVED, to).await?;
        let mut terms = self.terms(own);
        terms.private_data = token.as_ptr().cast();
        terms.private_data_len = token.len() as u8;
        // SAFETY: the identifier is alive; the terms and the token outlive the call.
        checked("rdma_connect", unsafe { (self.library.rdma_connect)(connection.id.as_ptr(), &mut terms) })?;
        connection.expect(RDMA_CM_EVENT_CONNECT_RESPONSE, to).await?;
        Ok(connection)
    }

    fn terms(&self, own: &Parameters) -> rdma_conn_param {
        rdma_conn_param {
            responder_resources: own.reads,
            initiator_depth: self.device.reads_started(),
            retry_count: 7,
            rnr_retry_count: 7,
            qp_num: own.queue_pair,
            ..zeroed()
        }
    }

    /// Takes one event and does what it asks for; says whether there was one.
    fn turn(self: &Rc<Manager>, core: &Core) -> bool {
        let mut event = std::ptr::null_mut();
        // SAFETY: the channel is alive; reading does not wait. What is needed of the event is copied before
        // it is acknowledged, which is at once, since destroying an identifier waits for that.
        let (id, listener, event, token) = unsafe {
            if (self.library.rdma_get_cm_event)(self.channel.as_ptr(), &mut event) != 0 || event.is_null() {
                return false;
            }
            let rdma_cm_event { id, listen_id, event: kind, status, ref param } = *event;
            let mut token = None;
            if kind == RDMA_CM_EVENT_CONNECT_REQUEST
                && usize::from(param.private_data_len) >= size_of::<Token>()
                && !param.private_data.is_null()
            {
                token = Some(param.private_data.cast::<Token>().read_unaligned());
            }
            (self.library.rdma_ack_cm_event)(event);
            (id, listen_id, Event { kind, status }, token)
        };
        let Some(id) = NonNull::new(id) else { return true };
        if event.kind == RDMA_CM_EVENT_CONNECT_REQUEST {
            assert_eq!(listener, self.listener.as_ptr());
            self.requested(id, token);
            return true;
        }
        let pair = {
            let mut lines = self.lines.borrow_mut();
            let Some(line) = lines.get_mut(&(id.as_ptr() as usize)) else { return true };
            if line.pair.is_none() {
                line.events.push_back(event);
                line.waker.take().into_iter().for_each(Waker::wake);
            }
            line.pair
        };
        let ends = [
            RDMA_CM_EVENT_DISCONNECTED,
            RDMA_CM_EVENT_REJECTED,
            RDMA_CM_EVENT_UNREACHABLE,
            RDMA_CM_EVENT_CONNECT_ERROR,
            RDMA_CM_EVENT_DEVICE_REMOVAL,
        ];
        if let Some(at) = pair.filter(|_| ends.contains(&event.kind)) {
            if event.kind == RDMA_CM_EVENT_DISCONNECTED {
                // Answers the peer, which otherwise says it again and again.
                // SAFETY: the identifier has a line, so it is alive.
                unsafe { (self.library.rdma_disconnect)(id.as_ptr()) };
            }
            core.engine.borrow_mut().peer_gone(at);
        }
        true
    }

    /// Gives a request to the rendezvous that waits for it, or rejects it.
    fn requested(self: &Rc<Manager>, id: NonNull<rdma_cm_id>, token: Option<Token>) {
        let connection = self.connection(id);
        let mut awaited = self.awaited.borrow_mut();
        let rendezvous = token.and_then(|token| awaited.get_mut(&token));
        match rendezvous.filter(|m| m.arrived.is_none() && connection.check_device(self.local).is_ok()) {
            Some(rendezvous) => {
                rendezvous.arrived = Some(connection);
                rendezvous.waker.take().into_iter().for_each(Waker::wake);
            }
            // SAFETY: the identifier is alive; there is no private data.
            None => unsafe {
                (self.library.rdma_reject)(id.as_ptr(), std::ptr::null(), 0);
            },
        }
    }
}

/// Serves the event channel for as long as the run lasts.
pub(crate) fn serve(core: &Rc<Core>) {
    let Some(manager) = core.manager.clone() else { return };
    let own = core.clone();
    core.tasks.spawn(
        Owner::Backend,
        Box::pin(async move {
            // SAFETY: the manager, and with it the channel, is alive.
            let descriptor = unsafe { (*manager.channel.as_ptr()).fd };
            loop {
                if !manager.turn(&own) {
                    own.looks.descriptor(descriptor, libc::POLLIN).await;
                }
            }
        }),
    );
}

/// A rendezvous whose request is waited for, until this is dropped.
pub(crate) struct Invitation {
    manager: Rc<Manager>,
    token: Token,
}

impl Invitation {
    /// The connection that the peer asked for; [`Connection::accept`] is then to be called.
    pub async fn request(&self) -> Connection {
        poll_fn(|context| {
            let mut awaited = self.manager.awaited.borrow_mut();
            let rendezvous = awaited.entry(self.token).or_default();
            rendezvous.waker = Some(context.waker().clone());
            rendezvous.arrived.take().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }
}

impl Drop for Invitation {
    fn drop(&mut self) {
        // What arrived and was not taken is rejected where it is dropped, when the cell is free again.
        let rendezvous = self.manager.awaited.borrow_mut().remove(&self.token);
        drop(rendezvous);
    }
}

/// One connection of the connection manager; the peer is told when it is dropped.
pub(crate) struct Connection {
    manager: Rc<Manager>,
    id: NonNull<rdma_cm_id>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.manager.lines.borrow_mut().remove(&(self.id.as_ptr() as usize));
        // SAFETY: made by this manager and not destroyed before; its events were acknowledged.
        unsafe { (self.manager.library.rdma_destroy_id)(self.id.as_ptr()) };
    }
}

/// What a queue pair needs to receive and to send: attributes, and which of them count.
pub(crate) struct Agreed {
    pub receiving: (ibv_qp_attr, i32),
    pub sending: (ibv_qp_attr, i32),
}

impl Connection {
    async fn next(&self) -> Event {
        poll_fn(|context| {
            let mut lines = self.manager.lines.borrow_mut();
            let line = lines.entry(self.id.as_ptr() as usize).or_default();
            line.waker = Some(context.waker().clone());
            line.events.pop_front().map_or(Poll::Pending, Poll::Ready)
        })
        .await
    }

    async fn expect(&self, kind: u32, to: SocketAddr) -> Result<(), Failure> {
        let Event { kind: is, status } = self.next().await;
        Err(match is {
            _ if is == kind => return Ok(()),
            RDMA_CM_EVENT_ADDR_ERROR => Failure::Address(to, said(status)),
            RDMA_CM_EVENT_ROUTE_ERROR => Failure::Route(to, said(status)),
            RDMA_CM_EVENT_REJECTED => Failure::Rejected(to, status, rejection(status)),
            RDMA_CM_EVENT_UNREACHABLE => Failure::Unreachable(to, said(status)),
            RDMA_CM_EVENT_DISCONNECTED => Failure::Gone,
            _ => Failure::Event(is, status),
        })
    }

    /// Whether the connection manager chose the device and port of this backend.
    fn check_device(&self, to: SocketAddr) -> Result<(), Failure> {
        let device = &self.manager.device;
        // SAFETY: the identifier is alive; where it has a context, that is open and has a named device.
        let (name, port) = unsafe {
            let id = self.id.as_ptr();
            let context = (*id).verbs;
            if context.is_null() {
                ("no device".into(), 0)
            } else {
                let name = (device.library().ibv_get_device_name)((*context).device);
                (CStr::from_ptr(name).to_string_lossy().into_owned(), (*id).port_num)
            }
        };
        if (name.as_str(), port) == (device.name(), device.port) {
            return Ok(());
        }
        let own = format!("port {} of {}", device.port, device.name());
        Err(Failure::OtherDevice(to, format!("port {port} of {name}"), own))
    }

    /// What was agreed on with the peer. Fails where it left meanwhile.
    pub fn agreed(&self) -> Result<Agreed, Failure> {
        Ok(Agreed { receiving: self.attributes(IBV_QPS_RTR)?, sending: self.attributes(IBV_QPS_RTS)? })
    }

    fn attributes(&self, state: u32) -> Result<(ibv_qp_attr, i32), Failure> {
        let (mut attributes, mut mask) = (ibv_qp_attr { qp_state: state, ..zeroed() }, 0);
        // SAFETY: the identifier is alive; both are written by the call.
        let result =
            unsafe { (self.manager.library.rdma_init_qp_attr)(self.id.as_ptr(), &mut attributes, &mut mask) };
        checked("rdma_init_qp_attr", result)?;
        Ok((attributes, mask))
    }

    /// Tells the peer that this end, which was asked, takes requests.
    pub fn accept(&self, own: &Parameters) -> Result<(), Failure> {
        let mut terms = self.manager.terms(own);
        // SAFETY: the identifier is alive; the terms outlive the call.
        let result = unsafe { (self.manager.library.rdma_accept)(self.id.as_ptr(), &mut terms) };
        checked("rdma_accept", result)
    }

    /// Tells the peer that this end, which asked, takes requests.
    pub fn establish(&self) -> Result<(), Failure> {
        // SAFETY: the identifier is alive and has no queue pair of its own.
        checked("rdma_establish", unsafe { (self.manager.library.rdma_establish)(self.id.as_ptr()) })
    }

    /// Has what happens to the connection from here reach the queue pair.
    pub fn belongs_to(&self, at: At) {
        if let Some(line) = self.manager.lines.borrow_mut().get_mut(&(self.id.as_ptr() as usize)) {
            line.pair = Some(at);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_gids_that_can_be_routed_to_are_addresses() {
        let mapped = Ipv4Addr::new(10, 0, 0, 1).to_ipv6_mapped().octets();
        assert_eq!(ip_of(&mapped), Some(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1))));
        let global: Ipv6Addr = "2001:db8::7".parse().unwrap();
        assert_eq!(ip_of(&global.octets()), Some(IpAddr::V6(global)));
        let local: Ipv6Addr = "fe80::7".parse().unwrap();
        assert_eq!(ip_of(&local.octets()), None);
        assert_eq!(ip_of(&[0; 16]), None);
        assert_eq!(ip_of(&Ipv4Addr::UNSPECIFIED.to_ipv6_mapped().octets()), None);
    }

    #[test]
    fn failures_name_the_reason() {
        let to = "10.0.0.1:4000".parse().unwrap();
        assert_eq!(
            Failure::Rejected(to, 8, rejection(8)).to_string(),
            "10.0.0.1:4000 rejected the connection with reason 8 (nobody listens there)"
        );
        let unreachable = Failure::Unreachable(to, said(-libc::ETIMEDOUT)).to_string();
        assert!(unreachable.contains("timed out"), "{unreachable}");
    }
}
