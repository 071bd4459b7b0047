//! Connections between roles that are all in this process.

use super::{NameService, Sends, Service, check_queue_pair};
use crate::queue_pair::{Address, QueuePair, QueuePairState, QueuePairType};
use crate::{ConnectError, Fabric, Listener, RoleName};
use offpath_quantity::Time;
use std::cell::RefCell;
use std::future::poll_fn;
use std::task::Poll;

/// Someone who wants to be accepted: its queue pair and its role, by their numbers.
#[derive(Clone, Copy, Debug)]
pub struct Asking {
    queue_pair: u32,
    role: usize,
}

/// A backend whose roles are all in this process.
pub trait InProcess: Sends<Asking = Asking> {
    /// Whether a role ended for good.
    fn is_gone(&self, role: usize) -> bool;

    /// Why no connection can be made to a role, where that is so.
    fn unreachable(&self, _role: usize) -> Option<&'static str> {
        None
    }

    /// How long a message between the operating systems of this role and another takes, one way.
    fn control_delay(&self, _role: usize) -> Time {
        Time::ZERO
    }

    /// The number of a queue pair, by which [`InProcess::join`] finds it.
    fn queue_pair_number(queue_pair: &Self::QueuePair) -> u32;

    /// Connects two queue pairs where both are yet to be connected; says whether they are now.
    fn join(&self, one: u32, other: u32) -> bool;
}

/// A service that is listened for, until this is dropped.
pub struct ServiceListener<F: InProcess> {
    fabric: F,
    service: Service,
}

impl<F: InProcess> Drop for ServiceListener<F> {
    fn drop(&mut self) {
        self.fabric.at().0.services.borrow_mut().stop_listening(&self.service);
    }
}

/// Listens for `service` of the context's role; see [`crate::Fabric::listen`].
pub(super) fn listen<F: InProcess>(fabric: &F, service: &str) -> Result<ServiceListener<F>, ConnectError> {
    let service = (fabric.at().1, service.to_string());
    fabric.at().0.services.borrow_mut().listen(service.clone(), &fabric.role())?;
    Ok(ServiceListener { fabric: fabric.clone(), service })
}

impl<F: InProcess> Listener for ServiceListener<F> {
    type QueuePair = F::QueuePair;

    async fn accept(&self, queue_pair: &F::QueuePair) -> Result<RoleName, ConnectError> {
        poll_fn(|context| {
            check_queue_pair(queue_pair, QueuePairType::Rc, QueuePairState::Initialised)?;
            let mut services = self.fabric.at().0.services.borrow_mut();
            while let Some(asking) = services.next_request(&self.service) {
                // A peer that gave up meanwhile is passed over.
                if self.fabric.join(asking.queue_pair, F::queue_pair_number(queue_pair)) {
                    services.changed();
                    return Poll::Ready(Ok(self.fabric.at().0.name_of(asking.role).clone()));
                }
            }
            services.wait(context)
        })
        .await
    }
}

/// Takes a request back when its connecting future is dropped.
struct TakenBack<'a> {
    services: &'a RefCell<NameService<Asking>>,
    queue_pair: u32,
}

impl Drop for TakenBack<'_> {
    fn drop(&mut self) {
        self.services.borrow_mut().retain_requests(|_, asking| asking.queue_pair != self.queue_pair);
    }
}

/// Asks, and waits until `look` finds something, the peer ended, or `limit` passed. What is asked and what
/// is found travel for the control delay each.
async fn meet<F: InProcess, T>(
    fabric: &F,
    (peer, service): (usize, &str),
    limit: Time,
    ask: impl FnOnce(&mut NameService<Asking>),
    mut look: impl FnMut(&NameService<Asking>) -> Option<T>,
) -> Result<T, ConnectError> {
    let name = || fabric.at().0.name_of(peer).clone();
    let delay = fabric.control_delay(peer);
    let found = fabric.timeout(limit, async {
        if delay > Time::ZERO {
            fabric.sleep(delay).await;
        }
        ask(&mut fabric.at().0.services.borrow_mut());
        let found = poll_fn(|context| {
            let mut services = fabric.at().0.services.borrow_mut();
            if let Some(found) = look(&services) {
                return Poll::Ready(Ok(found));
            }
            if fabric.is_gone(peer) {
                let reason = "it ended".to_string();
                let failed = ConnectError::Failed { peer: name(), service: service.into(), reason };
                return Poll::Ready(Err(failed));
            }
            services.wait(context)
        })
        .await?;
        if delay > Time::ZERO {
            fabric.sleep(delay).await;
        }
        Ok(found)
    });
    let timeout = || ConnectError::Timeout { peer: name(), service: service.into(), waited: limit };
    found.await.unwrap_or_else(|| Err(timeout()))
}

/// Connects an RC queue pair to `service` of `peer`; see [`crate::Fabric::connect`].
pub(super) async fn connect<F: InProcess>(
    fabric: &F,
    queue_pair: &F::QueuePair,
    peer: RoleName,
    service: &str,
) -> Result<(), ConnectError> {
    check_queue_pair(queue_pair, QueuePairType::Rc, QueuePairState::Initialised)?;
    let Some(index) = fabric.at().0.number_of(&peer) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    if let Some(reason) = fabric.unreachable(index) {
        return Err(ConnectError::Failed { peer, service: service.into(), reason: reason.into() });
    }
    let number = F::queue_pair_number(queue_pair);
    let _taken_back = TakenBack { services: &fabric.at().0.services, queue_pair: number };
    let asking = Asking { queue_pair: number, role: fabric.at().1 };
    let limit = queue_pair.options().connect_timeout;
    let ask = |services: &mut NameService<_>| services.ask((index, service.to_string()), asking);
    let look = |_: &_| (queue_pair.state() != QueuePairState::Initialised).then_some(());
    meet(fabric, (index, service), limit, ask, look).await
}

/// Publishes the address of a UD queue pair; see [`crate::Fabric::publish`].
pub(super) fn publish<F: InProcess>(
    fabric: &F,
    service: &str,
    queue_pair: &F::QueuePair,
) -> Result<(), ConnectError> {
    let service = (fabric.at().1, service.to_string());
    fabric.at().0.services.borrow_mut().publish(service, &fabric.role(), queue_pair)
}

/// The address that `peer` publishes as `service`; see [`crate::Fabric::resolve`].
pub(super) async fn resolve<F: InProcess>(
    fabric: &F,
    peer: RoleName,
    service: &str,
    limit: Time,
) -> Result<Address, ConnectError> {
    let Some(index) = fabric.at().0.number_of(&peer) else {
        return Err(ConnectError::NoSuchRole { peer });
    };
    let key = (index, service.to_string());
    meet(fabric, (index, service), limit, NameService::changed, |services| services.published(&key)).await
}
