//! How roles meet: all in this process, at once and without loss.

use super::{DATAGRAM_MAX, LocalFabric, LocalQueuePair};
use crate::DatagramError;
use crate::runtime::{Asking, Datagram, InProcess, Port, Rendezvous, Sends, ServiceListener};

/// A service of the local backend that is listened for.
pub type LocalListener = ServiceListener<LocalFabric>;
/// A datagram port of the local backend.
pub type LocalSocket = Port<LocalFabric>;

impl Sends for LocalFabric {
    type Asking = Asking;

    fn at(&self) -> (&Rendezvous<Asking>, usize) {
        (&self.core.rendezvous, self.role)
    }

    fn datagram_max(&self) -> usize {
        DATAGRAM_MAX
    }

    async fn send_datagram(&self, datagram: Datagram<'_>) -> Result<(), DatagramError> {
        let Datagram { bytes, from, to } = datagram;
        let Some(role) = self.core.rendezvous.number_of(&to.role) else {
            return Err(DatagramError::NoSuchRole { peer: to.role.clone() });
        };
        self.core.rendezvous.ports.borrow_mut().deliver(role, to.port, bytes.to_vec(), from.clone());
        Ok(())
    }
}

impl InProcess for LocalFabric {
    fn is_gone(&self, role: usize) -> bool {
        self.core.roles[role].ended.get()
    }

    fn queue_pair_number(queue_pair: &LocalQueuePair) -> u32 {
        queue_pair.number()
    }

    fn join(&self, one: u32, other: u32) -> bool {
        self.core.device.borrow_mut().join(one, other)
    }
}
