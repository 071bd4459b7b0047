//! Datagram sockets: what waits at them, and who waits for it.

use super::{BackendContext, Rendezvous};
use crate::datagram::{PortAddress, Socket};
use crate::{DatagramError, Fabric};
use std::collections::{BTreeMap, VecDeque};
use std::future::poll_fn;
use std::task::Waker;

/// How many datagrams wait at a socket before more are dropped.
const DATAGRAMS_WAITING: usize = 1024;

#[derive(Debug, Default)]
struct Waiting {
    datagrams: VecDeque<(Vec<u8>, PortAddress)>,
    readers: Vec<Waker>,
}

/// The open ports of a process, by role and port.
#[derive(Debug, Default)]
pub struct Ports(BTreeMap<(usize, u16), Waiting>);

impl Ports {
    /// A datagram arrives; where nobody has the port open, or too many wait there, it is dropped.
    pub fn deliver(&mut self, role: usize, port: u16, bytes: Vec<u8>, from: PortAddress) {
        if let Some(socket) = self.0.get_mut(&(role, port))
            && socket.datagrams.len() < DATAGRAMS_WAITING
        {
            socket.datagrams.push_back((bytes, from));
            socket.readers.drain(..).for_each(Waker::wake);
        }
    }

    /// Closes the ports of a role. Who reads there is not woken: its task ends with the role.
    pub fn remove_role(&mut self, role: usize) {
        self.0.retain(|(owner, _), _| *owner != role);
    }
}

/// A backend's own part of datagrams.
pub trait Sends: BackendContext {
    /// A request to be accepted.
    type Asking: 'static;

    /// Where the roles of this process meet, and the number of this context's role there.
    fn at(&self) -> (&Rendezvous<Self::Asking>, usize);

    /// The longest datagram, in bytes.
    fn datagram_max(&self) -> usize;

    /// Has a datagram that is not too long leave.
    async fn send_datagram(&self, datagram: Datagram<'_>) -> Result<(), DatagramError>;
}

/// A datagram to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// What it carries.
    pub bytes: &'a [u8],
    /// Whose it is.
    pub from: &'a PortAddress,
    /// Where it goes.
    pub to: &'a PortAddress,
}

/// An open datagram port; it closes when it is dropped.
pub struct Port<F: Sends> {
    fabric: F,
    port: u16,
}

impl<F: Sends> Port<F> {
    /// Opens port `port` of the context's role; refused where it is open.
    pub fn bind(fabric: &F, port: u16) -> Result<Port<F>, DatagramError> {
        let (rendezvous, role) = fabric.at();
        let mut ports = rendezvous.ports.borrow_mut();
        let key = (role, port);
        if ports.0.contains_key(&key) {
            return Err(DatagramError::PortTaken { role: fabric.role(), port });
        }
        ports.0.insert(key, Waiting::default());
        Ok(Port { fabric: fabric.clone(), port })
    }
}

impl<F: Sends> Drop for Port<F> {
    fn drop(&mut self) {
        let (rendezvous, role) = self.fabric.at();
        rendezvous.ports.borrow_mut().0.remove(&(role, self.port));
    }
}

impl<F: Sends> Socket for Port<F> {
    fn datagram_max(&self) -> usize {
        self.fabric.datagram_max()
    }

    fn address(&self) -> PortAddress {
        PortAddress { role: self.fabric.role(), port: self.port }
    }

    async fn send_to(&self, bytes: &[u8], to: &PortAddress) -> Result<(), DatagramError> {
        let bound = self.datagram_max();
        if bytes.len() > bound {
            return Err(DatagramError::TooLong { length: bytes.len(), bound });
        }
        self.fabric.send_datagram(Datagram { bytes, from: &self.address(), to }).await
    }

    async fn receive_from(&self, into: &mut [u8]) -> Result<(usize, PortAddress), DatagramError> {
        let (rendezvous, role) = self.fabric.at();
        let key = (role, self.port);
        let (bytes, from) = poll_fn(|context| {
            let mut ports = rendezvous.ports.borrow_mut();
            let Some(socket) = ports.0.get_mut(&key) else {
                let reason = "the role of this socket ended".into();
                return Err(DatagramError::System { port: self.port, reason }).into();
            };
            if let Some(datagram) = socket.datagrams.pop_front() {
                return Ok(datagram).into();
            }
            socket.readers.push(context.waker().clone());
            std::task::Poll::Pending
        })
        .await?;
        let length = bytes.len().min(into.len());
        into[..length].copy_from_slice(&bytes[..length]);
        Ok((length, from))
    }
}
