//! Datagrams: unreliable, unordered, of one MTU at most.

use crate::backend::RoleName;
use crate::error::DatagramError;

/// A datagram port of a role's instance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortAddress {
    /// Whose port.
    pub role: RoleName,
    /// Which port.
    pub port: u16,
}

impl PortAddress {
    /// Port `port` of instance `instance` of `role`.
    pub fn new(role: &str, instance: u32, port: u16) -> PortAddress {
        PortAddress { role: RoleName::new(role, instance), port }
    }
}

/// An open datagram port; it closes when it is dropped.
pub trait Socket: 'static {
    /// The longest datagram, in bytes.
    fn datagram_max(&self) -> usize;

    /// Its own address.
    fn address(&self) -> PortAddress;

    /// Sends `bytes`. Success says that they left; a receiver without the port bound never sees them.
    async fn send_to(&self, bytes: &[u8], to: &PortAddress) -> Result<(), DatagramError>;

    /// Waits for a datagram and copies it into `into`; gives its sender and how many bytes were
    /// copied. What does not fit is cut off, as UDP does. A dropped wait loses no datagram.
    async fn receive_from(&self, into: &mut [u8]) -> Result<(usize, PortAddress), DatagramError>;
}
