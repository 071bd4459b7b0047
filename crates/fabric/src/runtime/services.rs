//! The name service of a process: who listens, who asks to be accepted, which addresses are published.

use crate::queue_pair::{Address, QueuePair, QueuePairState, QueuePairType};
use crate::{ConnectError, RoleName};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::task::{Context, Poll, Waker};

/// A service: the number of the role that offers it, and its name.
pub type Service = (usize, String);

/// What the roles of a process offer to their peers, and the requests `R` of those who want to be accepted.
#[derive(Debug)]
pub struct NameService<R> {
    listening: BTreeSet<Service>,
    requests: BTreeMap<Service, VecDeque<R>>,
    published: BTreeMap<Service, Address>,
    /// Everyone who waits for something to change here; all look again.
    waiting: Vec<Waker>,
}

impl<R> Default for NameService<R> {
    fn default() -> NameService<R> {
        NameService {
            listening: BTreeSet::new(),
            requests: BTreeMap::new(),
            published: BTreeMap::new(),
            waiting: Vec::new(),
        }
    }
}

impl<R> NameService<R> {
    /// Has everyone who waits look again.
    pub fn changed(&mut self) {
        self.waiting.drain(..).for_each(Waker::wake);
    }

    /// Waits for something to change.
    pub fn wait<T>(&mut self, context: &Context<'_>) -> Poll<T> {
        self.waiting.push(context.waker().clone());
        Poll::Pending
    }

    /// Ends whatever a role offered. Requests to it stay, since it may start anew.
    pub fn remove_role(&mut self, role: usize) {
        self.listening.retain(|(owner, _)| *owner != role);
        self.published.retain(|(owner, _), _| *owner != role);
        self.changed();
    }

    /// Listens for `service`, which `owner` offers. Refused where it does so already.
    pub fn listen(&mut self, service: Service, owner: &RoleName) -> Result<(), ConnectError> {
        if self.listening.contains(&service) {
            return Err(ConnectError::ServiceTaken { role: owner.clone(), service: service.1 });
        }
        self.listening.insert(service);
        self.changed();
        Ok(())
    }

    /// Ends what [`NameService::listen`] began.
    pub fn stop_listening(&mut self, service: &Service) {
        self.listening.remove(service);
    }

    /// Publishes the address of a UD queue pair as `service`, which `owner` offers. Refused where it does so
    /// already, or the queue pair is not a ready UD one.
    pub fn publish(
        &mut self,
        service: Service,
        owner: &RoleName,
        queue_pair: &impl QueuePair,
    ) -> Result<(), ConnectError> {
        check_queue_pair(queue_pair, QueuePairType::Ud, QueuePairState::Ready)?;
        if self.published.contains_key(&service) {
            return Err(ConnectError::ServiceTaken { role: owner.clone(), service: service.1 });
        }
        self.published.insert(service, queue_pair.address());
        self.changed();
        Ok(())
    }

    /// The address that is published as `service`.
    pub fn published(&self, service: &Service) -> Option<Address> {
        self.published.get(service).copied()
    }

    /// Puts a request behind those that wait for `service`.
    pub fn ask(&mut self, service: Service, request: R) {
        self.requests.entry(service).or_default().push_back(request);
        self.changed();
    }

    /// The request that has waited longest for `service`.
    pub fn next_request(&mut self, service: &Service) -> Option<R> {
        self.requests.get_mut(service)?.pop_front()
    }

    /// Drops the requests that are not to be kept.
    pub fn retain_requests(&mut self, mut keep: impl FnMut(&Service, &R) -> bool) {
        for (service, requests) in &mut self.requests {
            requests.retain(|request| keep(service, request));
        }
    }
}

/// Refuses a queue pair that is not of this kind in this state.
pub fn check_queue_pair(
    queue_pair: &impl QueuePair,
    kind: QueuePairType,
    state: QueuePairState,
) -> Result<(), ConnectError> {
    let (is, of) = (queue_pair.state(), queue_pair.options().kind);
    if (is, of) == (state, kind) {
        return Ok(());
    }
    let next_step = match kind {
        QueuePairType::Rc => "make a new one with `QueuePairOptions::rc`",
        QueuePairType::Ud => "make a new one with `QueuePairOptions::ud`",
    };
    Err(ConnectError::WrongQueuePair { kind: of, state: is, next_step })
}
