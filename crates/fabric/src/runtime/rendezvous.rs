//! Where the roles of a process meet their peers.

use super::{NameService, Ports};
use crate::RoleName;
use std::cell::RefCell;

/// The roles of a process, what they offer, and their datagram ports; `R` is a request to be accepted.
#[derive(Debug)]
pub struct Rendezvous<R> {
    roles: Vec<RoleName>,
    /// What is listened for, asked for and published.
    pub services: RefCell<NameService<R>>,
    /// The datagram ports.
    pub ports: RefCell<Ports>,
}

impl<R> Rendezvous<R> {
    /// Of these roles, which are numbered in this order, nothing is offered yet.
    pub fn new(roles: Vec<RoleName>) -> Rendezvous<R> {
        Rendezvous { roles, services: RefCell::default(), ports: RefCell::default() }
    }

    /// The number of a role of this process.
    pub fn number_of(&self, role: &RoleName) -> Option<usize> {
        self.roles.iter().position(|name| name == role)
    }

    /// How many instances of `role` this process has.
    pub fn instances(&self, role: &str) -> usize {
        self.roles.iter().filter(|name| name.role == role).count()
    }

    /// The name of the role of this number.
    pub fn name_of(&self, role: usize) -> &RoleName {
        &self.roles[role]
    }

    /// Ends whatever a role offered. Requests to it stay, since it may start anew.
    pub fn remove_role(&self, role: usize) {
        self.ports.borrow_mut().remove_role(role);
        self.services.borrow_mut().remove_role(role);
    }
}
