//! How roles meet: services, published addresses, datagrams.
//!
//! Each process has one TCP and one UDP socket at the same address. A role that connects dials the
//! process of its peer, also where that is its own. On the stream go frames of a 2-byte length and a
//! tag:
//!
//! | from | frame | says |
//! |---|---|---|
//! | dialler | `CONNECT` | to whom, which service, from whom, its queue pair |
//! | acceptor | `ANSWER` | its queue pair |
//! | dialler | `COMMIT` | it still waits: only now does either end change its queue pair |
//! | acceptor | `READY` | its queue pair takes requests |
//! | dialler | `UP` | so does the dialler's |
//! | dialler | `RESOLVE` | whose address of which service |
//! | acceptor | `ADDRESS` | that |
//! | acceptor | `ENDED`, `UNKNOWN` | the role ended, or is not of this process |
//! | acceptor | `OTHERWISE` | it makes connections in another way |
//!
//! With the connection manager, `ANSWER` also has a port and a token of its. The dialler asks for the
//! connection there, and no `COMMIT` and `READY` are sent: a request with the token says the one, its answer
//! the other.

use crate::manager::Token;
use crate::queue_pair::{Parameters, VerbsQueuePair};
use crate::{Core, VerbsFabric};
use offpath_fabric::runtime::{Datagram, Meets, Owner, Port, Rendezvous, Sends, Service, check_queue_pair};
use offpath_fabric::*;
use offpath_quantity::Time;
use rand_core::RngCore;
use socket2::{Domain, Protocol, SockAddr, Socket as RawSocket, Type};
use std::future::poll_fn;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::AsRawFd;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

const CONNECT: u8 = 1;
const ANSWER: u8 = 2;
const COMMIT: u8 = 3;
const READY: u8 = 4;
const UP: u8 = 5;
const RESOLVE: u8 = 6;
const ADDRESS: u8 = 7;
const ENDED: u8 = 8;
const UNKNOWN: u8 = 9;
const OTHERWISE: u8 = 10;

/// The longest frame. A longer one is not a frame of ours, and its stream is dropped.
const FRAME_MAX: usize = 1024;
/// The longest name of a role or service, in bytes.
pub(crate) const NAME_MAX: usize = 48;
/// What names of sender and receiver take of a datagram at most.
const DATAGRAM_NAMES: usize = 128;
/// One Ethernet frame of 1500 B, less the IPv4, UDP and own headers.
const DATAGRAM_MAX: usize = 1472 - DATAGRAM_NAMES;
/// How long a dialler waits before it dials again.
const DIAL_AGAIN: Time = Time::from_ms(2);

/// Someone who wants to be accepted, by the stream that it dialled.
pub struct Dialler {
    from: RoleName,
    parameters: Parameters,
    stream: Stream,
}

/// The sockets at which the processes of a run meet.
pub(crate) struct RendezvousSockets {
    pub local: SocketAddr,
    listener: TcpListener,
    datagrams: UdpSocket,
}

impl RendezvousSockets {
    /// Binds both sockets at `address`; with port 0, at a port that is free for both.
    pub fn new(address: SocketAddr) -> io::Result<RendezvousSockets> {
        let mut tries = 0;
        loop {
            let listener = TcpListener::bind(address)?;
            let local = listener.local_addr()?;
            tries += 1;
            let datagrams = match UdpSocket::bind(local) {
                Err(error) if error.kind() == ErrorKind::AddrInUse && address.port() == 0 && tries < 100 => {
                    continue;
                }
                bound => bound?,
            };
            listener.set_nonblocking(true)?;
            datagrams.set_nonblocking(true)?;
            return Ok(RendezvousSockets { local, listener, datagrams });
        }
    }
}

/// Reads names and numbers from a frame.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }
    fn name(&mut self) -> Option<String> {
        let length = usize::from(self.array::<1>()?[0]);
        String::from_utf8(self.take(length)?.to_vec()).ok()
    }
    fn role(&mut self) -> Option<RoleName> {
        Some(RoleName { role: self.name()?, instance: u32::from_le_bytes(self.array()?) })
    }
    fn port(&mut self) -> Option<PortAddress> {
        Some(PortAddress { role: self.role()?, port: u16::from_le_bytes(self.array()?) })
    }
}

fn put_name(frame: &mut Vec<u8>, name: &str) {
    let name = &name.as_bytes()[..name.len().min(255)];
    frame.push(name.len() as u8);
    frame.extend_from_slice(name);
}

fn put_role(frame: &mut Vec<u8>, role: &RoleName) {
    put_name(frame, &role.role);
    frame.extend_from_slice(&role.instance.to_le_bytes());
}

fn put_port(frame: &mut Vec<u8>, port: &PortAddress) {
    put_role(frame, &port.role);
    frame.extend_from_slice(&port.port.to_le_bytes());
}

/// A TCP stream that waits by the executor.
struct Stream {
    core: Rc<Core>,
    stream: TcpStream,
}

impl Stream {
    fn new(core: &Rc<Core>, stream: TcpStream) -> io::Result<Stream> {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
        Ok(Stream { core: core.clone(), stream })
    }

    async fn dial(core: &Rc<Core>, address: SocketAddr) -> io::Result<Stream> {
        let socket = RawSocket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        socket.set_nonblocking(true)?;
        match socket.connect(&SockAddr::from(address)) {
            Ok(()) => {}
            Err(error) if error.raw_os_error() == Some(libc::EINPROGRESS) => {
                core.looks.descriptor(socket.as_raw_fd(), libc::POLLOUT).await;
                if let Some(error) = socket.take_error()? {
                    return Err(error);
                }
            }
            Err(error) => return Err(error),
        }
        Stream::new(core, socket.into())
    }

    async fn send(&self, tag: u8, body: &[u8]) -> io::Result<()> {
        let length = (body.len() + 1) as u16;
        let mut frame = length.to_le_bytes().to_vec();
        frame.push(tag);
        frame.extend_from_slice(body);
        let mut rest = &frame[..];
        while !rest.is_empty() {
            match (&self.stream).write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) => self.wait(error, libc::POLLOUT).await?,
            }
        }
        Ok(())
    }

    async fn receive(&self) -> io::Result<(u8, Vec<u8>)> {
        let mut length = [0; 2];
        self.fill(&mut length).await?;
        let length = usize::from(u16::from_le_bytes(length));
        if !(1..=FRAME_MAX).contains(&length) {
            return Err(io::Error::new(ErrorKind::InvalidData, format!("a frame of {length} B")));
        }
        let mut frame = vec![0; length];
        self.fill(&mut frame).await?;
        let tag = frame.remove(0);
        Ok((tag, frame))
    }

    async fn fill(&self, into: &mut [u8]) -> io::Result<()> {
        let mut done = 0;
        while done < into.len() {
            match (&self.stream).read(&mut into[done..]) {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Ok(count) => done += count,
                Err(error) => self.wait(error, libc::POLLIN).await?,
            }
        }
        Ok(())
    }

    /// Waits where the error only says that it has to.
    async fn wait(&self, error: io::Error, events: i16) -> io::Result<()> {
        match error.kind() {
            ErrorKind::WouldBlock => {
                self.core.looks.descriptor(self.stream.as_raw_fd(), events).await;
                Ok(())
            }
            ErrorKind::Interrupted => Ok(()),
            _ => Err(error),
        }
    }
}

/// Serves the process's sockets for as long as the run lasts.
pub(crate) fn serve(core: &Rc<Core>) {
    let own = core.clone();
    core.tasks.spawn(
        Owner::Backend,
        Box::pin(async move {
            loop {
                match own.sockets.listener.accept() {
                    Ok((stream, _)) => {
                        let Ok(stream) = Stream::new(&own, stream) else { continue };
                        let core = own.clone();
                        // A stream that ends or says nonsense is dropped; its dialler sees that.
                        let task = async move { drop(answer(core, stream).await) };
                        own.tasks.spawn(Owner::Backend, Box::pin(task));
                    }
                    Err(_) => own.looks.descriptor(own.sockets.listener.as_raw_fd(), libc::POLLIN).await,
                }
            }
        }),
    );
    let own = core.clone();
    core.tasks.spawn(
        Owner::Backend,
        Box::pin(async move {
            let mut datagram = [0; 2048];
            loop {
                match own.sockets.datagrams.recv_from(&mut datagram) {
                    Ok((length, _)) => own.deliver(&datagram[..length]),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => {
                        own.looks.descriptor(own.sockets.datagrams.as_raw_fd(), libc::POLLIN).await;
                    }
                    // An earlier datagram found nobody, which UDP does not promise to tell.
                    Err(_) => {}
                }
            }
        }),
    );
}

impl Core {
    fn deliver(&self, datagram: &[u8]) {
        let mut reader = Reader(datagram);
        let (Some(to), Some(from)) = (reader.port(), reader.port()) else { return };
        let Some(role) = self.rendezvous.number_of(&to.role) else { return };
        self.rendezvous.ports.borrow_mut().deliver(role, to.port, reader.0.to_vec(), from);
    }
}

fn nonsense() -> io::Error {
    ErrorKind::InvalidData.into()
}

/// Answers what a dialler asks first.
async fn answer(core: Rc<Core>, stream: Stream) -> io::Result<()> {
    let (tag, body) = stream.receive().await?;
    let mut reader = Reader(&body);
    let to = reader.role().ok_or_else(nonsense)?;
    let service = reader.name().ok_or_else(nonsense)?;
    let Some(role) = core.rendezvous.number_of(&to) else { return stream.send(UNKNOWN, &[]).await };
    if core.roles[role].ended.get() {
        return stream.send(ENDED, &[]).await;
    }
    match tag {
        CONNECT => {
            let from = reader.role().ok_or_else(nonsense)?;
            let parameters = Parameters::from_bytes(&reader.array().ok_or_else(nonsense)?);
            if reader.array() != Some([u8::from(core.manager.is_some())]) {
                return stream.send(OTHERWISE, &[]).await;
            }
            let request = Dialler { from, parameters, stream };
            core.rendezvous.services.borrow_mut().ask((role, service), request);
            Ok(())
        }
        RESOLVE => {
            let key = (role, service);
            let found = poll_fn(|context| {
                let mut services = core.rendezvous.services.borrow_mut();
                if let Some(address) = services.published(&key) {
                    return Poll::Ready(Some(address));
                }
                if core.roles[role].ended.get() {
                    return Poll::Ready(None);
                }
                services.wait(context)
            });
            match found.await {
                Some(address) => stream.send(ADDRESS, &address.to_bytes()).await,
                None => stream.send(ENDED, &[]).await,
            }
        }
        _ => Err(nonsense()),
    }
}

fn check_name(peer: &RoleName, service: &str) -> Result<(), ConnectError> {
    if service.len() <= NAME_MAX {
        return Ok(());
    }
    let reason = format!("a service's name has at most {NAME_MAX} B, this one {}", service.len());
    Err(ConnectError::Failed { peer: peer.clone(), service: service.into(), reason })
}

/// A service of the verbs backend that is listened for.
pub struct VerbsListener {
    core: Rc<Core>,
    service: Service,
}

impl Drop for VerbsListener {
    fn drop(&mut self) {
        self.core.rendezvous.services.borrow_mut().stop_listening(&self.service);
    }
}

impl Core {
    fn own_parameters(&self, role: usize, queue_pair: &VerbsQueuePair) -> Option<Parameters> {
        let first_packet = self.roles[role].rng_of_connections.borrow_mut().next_u32();
        self.engine.borrow_mut().parameters(queue_pair.at(), first_packet)
    }

    fn token(&self, role: usize) -> Token {
        let mut token = Token::default();
        self.roles[role].rng_of_connections.borrow_mut().fill_bytes(&mut token);
        token
    }
}

impl Listener for VerbsListener {
    type QueuePair = VerbsQueuePair;

    async fn accept(&self, queue_pair: &VerbsQueuePair) -> Result<RoleName, ConnectError> {
        loop {
            let next = poll_fn(|context| {
                check_queue_pair(queue_pair, QueuePairType::Rc, QueuePairState::Initialised)?;
                let mut services = self.core.rendezvous.services.borrow_mut();
                match services.next_request(&self.service) {
                    Some(request) => Poll::Ready(Ok(request)),
                    None => services.wait(context),
                }
            });
            let Dialler { from, parameters: peer, stream } = next.await?;
            let Some(own) = self.core.own_parameters(self.service.0, queue_pair) else { continue };
            let failed = |reason: String| ConnectError::Failed {
                peer: from.clone(),
                service: self.service.1.clone(),
                reason,
            };
            let check = || check_queue_pair(queue_pair, QueuePairType::Rc, QueuePairState::Initialised);
            let (core, at) = (&self.core, queue_pair.at());
            // A peer that gave up meanwhile is passed over.
            if let Some(manager) = &core.manager {
                let token = core.token(self.service.0);
                let invitation = manager.invite(token);
                let mut body = own.to_bytes().to_vec();
                body.extend_from_slice(&manager.port().to_le_bytes());
                body.extend_from_slice(&token);
                if stream.send(ANSWER, &body).await.is_err() {
                    continue;
                }
                let asked = before(invitation.request(), stream.receive()).await;
                let Some(connection) = asked else { continue };
                let Ok(agreed) = connection.agreed() else { continue };
                check()?;
                let engine = || core.engine.borrow_mut();
                engine().connect(at, own, peer, Some(&agreed)).map_err(failed)?;
                let gone = connection.accept(&own).is_err();
                engine().keep(at, connection);
                if gone {
                    engine().peer_gone(at);
                    return Ok(from);
                }
            } else {
                if stream.send(ANSWER, &own.to_bytes()).await.is_err() {
                    continue;
                }
                if !matches!(stream.receive().await, Ok((COMMIT, _))) {
                    continue;
                }
                check()?;
                core.engine.borrow_mut().connect(at, own, peer, None).map_err(failed)?;
                if stream.send(READY, &[]).await.is_err() {
                    return Ok(from);
                }
            }
            // Where the peer dies here, its connection is one to a peer that is gone: the next request
            // tells.
            let _ = stream.receive().await;
            return Ok(from);
        }
    }
}

/// What `first` gives, unless `other` ends before it.
async fn before<T, U>(first: impl Future<Output = T>, other: impl Future<Output = U>) -> Option<T> {
    let (mut first, mut other) = (pin!(first), pin!(other));
    poll_fn(|context| match (first.as_mut().poll(context), other.as_mut().poll(context)) {
        (Poll::Ready(value), _) => Poll::Ready(Some(value)),
        (Poll::Pending, Poll::Ready(_)) => Poll::Ready(None),
        _ => Poll::Pending,
    })
    .await
}

/// How dialling once ended.
enum Once<T> {
    Met(T),
    /// Nobody was there, or they dropped the request: it is worth dialling again.
    Again,
    Failed(String),
}

fn address_of(fabric: &VerbsFabric, peer: &RoleName) -> Result<SocketAddr, ConnectError> {
    let core = &fabric.core;
    let own = core.rendezvous.number_of(peer).map(|_| core.sockets.local);
    own.or_else(|| core.backend.peers.get(peer).copied())
        .ok_or_else(|| ConnectError::NoSuchRole { peer: peer.clone() })
}

/// Dials `peer` until `once` met it or failed for good, up to `limit`.
async fn meet<T>(
    fabric: &VerbsFabric,
    peer: &RoleName,
    service: &str,
    limit: Time,
    once: impl AsyncFn(Stream) -> io::Result<Once<T>>,
) -> Result<T, ConnectError> {
    check_name(peer, service)?;
    let address = address_of(fabric, peer)?;
    let found = fabric.timeout(limit, async {
        loop {
            let dialled = Stream::dial(&fabric.core, address).await;
            let ended = match dialled {
                Ok(stream) => once(stream).await.unwrap_or(Once::Again),
                Err(_) => Once::Again,
            };
            match ended {
                Once::Met(met) => return Ok(met),
                Once::Failed(reason) => {
                    return Err(ConnectError::Failed { peer: peer.clone(), service: service.into(), reason });
                }
                Once::Again => fabric.sleep(DIAL_AGAIN).await,
            }
        }
    });
    let timeout = || ConnectError::Timeout { peer: peer.clone(), service: service.into(), waited: limit };
    found.await.unwrap_or_else(|| Err(timeout()))
}

fn ended<T>(tag: u8) -> io::Result<Once<T>> {
    match tag {
        ENDED => Ok(Once::Failed("it ended".into())),
        UNKNOWN => Ok(Once::Failed("no such role runs at its address".into())),
        OTHERWISE => Ok(Once::Failed(
            "it makes connections in another way; give both processes the same `Verbs::connect_by`".into(),
        )),
        _ => Ok(Once::Failed("it speaks another protocol".into())),
    }
}

/// Roles meet by an exchange over TCP, be they in one process or in two.
pub struct MeetsByExchange;

impl Meets<VerbsFabric> for MeetsByExchange {
    type Listener = VerbsListener;

    fn listen(fabric: &VerbsFabric, service: &str) -> Result<VerbsListener, ConnectError> {
        let own = fabric.role();
        check_name(&own, service)?;
        let key = (fabric.role, service.to_string());
        fabric.core.rendezvous.services.borrow_mut().listen(key.clone(), &own)?;
        Ok(VerbsListener { core: fabric.core.clone(), service: key })
    }

    async fn connect(
        fabric: &VerbsFabric,
        queue_pair: &VerbsQueuePair,
        peer: RoleName,
        service: &str,
    ) -> Result<(), ConnectError> {
        check_queue_pair(queue_pair, QueuePairType::Rc, QueuePairState::Initialised)?;
        let limit = queue_pair.options().connect_timeout;
        let core = &fabric.core;
        let once = async |stream: Stream| {
            let Some(own) = core.own_parameters(fabric.role, queue_pair) else {
                return Ok(Once::Failed("the queue pair was closed meanwhile".into()));
            };
            let mut body = Vec::new();
            put_role(&mut body, &peer);
            put_name(&mut body, service);
            put_role(&mut body, &fabric.role());
            body.extend_from_slice(&own.to_bytes());
            body.push(u8::from(core.manager.is_some()));
            stream.send(CONNECT, &body).await?;
            let (tag, body) = stream.receive().await?;
            if tag != ANSWER {
                return ended(tag);
            }
            let mut reader = Reader(&body);
            let answer = Parameters::from_bytes(&reader.array().ok_or_else(nonsense)?);
            let at = queue_pair.at();
            if let Some(manager) = &core.manager {
                let port = u16::from_le_bytes(reader.array().ok_or_else(nonsense)?);
                let token = reader.array().ok_or_else(nonsense)?;
                let connection = match manager.dial(&own, &answer, port, &token).await {
                    Ok(connection) => connection,
                    Err(failure) => return Ok(Once::Failed(failure.to_string())),
                };
                let made = connection.agreed().map_err(|failure| failure.to_string()).and_then(|agreed| {
                    core.engine.borrow_mut().connect(at, own, answer, Some(&agreed))?;
                    connection.establish().map_err(|failure| failure.to_string())
                });
                if let Err(reason) = made {
                    return Ok(Once::Failed(reason));
                }
                core.engine.borrow_mut().keep(at, connection);
            } else {
                stream.send(COMMIT, &[]).await?;
                // From here the other end may be connected, so this must not be done again.
                match stream.receive().await {
                    Ok((READY, _)) => {}
                    _ => return Ok(Once::Failed("it left while connecting".into())),
                }
                if let Err(reason) = core.engine.borrow_mut().connect(at, own, answer, None) {
                    return Ok(Once::Failed(reason));
                }
            }
            // The other end waits for this; where it left, the next request tells.
            let _ = stream.send(UP, &[]).await;
            Ok(Once::Met(()))
        };
        meet(fabric, &peer, service, limit, once).await
    }

    fn publish(fabric: &VerbsFabric, service: &str, queue_pair: &VerbsQueuePair) -> Result<(), ConnectError> {
        let own = fabric.role();
        check_name(&own, service)?;
        let service = (fabric.role, service.to_string());
        fabric.core.rendezvous.services.borrow_mut().publish(service, &own, queue_pair)
    }

    async fn resolve(
        fabric: &VerbsFabric,
        peer: RoleName,
        service: &str,
        limit: Time,
    ) -> Result<Address, ConnectError> {
        let once = async |stream: Stream| {
            let mut body = Vec::new();
            put_role(&mut body, &peer);
            put_name(&mut body, service);
            stream.send(RESOLVE, &body).await?;
            let (tag, body) = stream.receive().await?;
            match (tag, Address::from_bytes(&body)) {
                (ADDRESS, Ok(address)) => Ok(Once::Met(address)),
                _ => ended(tag),
            }
        };
        meet(fabric, &peer, service, limit, once).await
    }
}

/// A datagram port of the verbs backend.
pub type VerbsSocket = Port<VerbsFabric>;

impl Sends for VerbsFabric {
    type Asking = Dialler;

    fn at(&self) -> (&Rendezvous<Dialler>, usize) {
        (&self.core.rendezvous, self.role)
    }

    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    async fn send_datagram(&self, datagram: Datagram<'_>) -> Result<(), DatagramError> {
        let Datagram { bytes, from, to } = datagram;
        let address =
            address_of(self, &to.role).map_err(|_| DatagramError::NoSuchRole { peer: to.role.clone() })?;
        let mut datagram = Vec::with_capacity(DATAGRAM_NAMES + bytes.len());
        put_port(&mut datagram, to);
        put_port(&mut datagram, from);
        datagram.extend_from_slice(bytes);
        let core = &self.core;
        loop {
            match core.sockets.datagrams.send_to(&datagram, address) {
                Ok(_) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    core.looks.descriptor(core.sockets.datagrams.as_raw_fd(), libc::POLLOUT).await;
                }
                // An earlier datagram found nobody; this one has not been sent yet.
                Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
                Err(error) => {
                    return Err(DatagramError::System { port: from.port, reason: error.to_string() });
                }
            }
        }
    }
}
