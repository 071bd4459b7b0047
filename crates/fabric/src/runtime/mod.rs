//! What backends are made of, so that each brings only what is its own.
//!
//! Applications need nothing of it. A backend keeps a [`Rendezvous`] of its roles and sends by [`Sends`]; where
//! all roles are in one process, [`InProcess`] connects them too.

mod in_process;
mod ports;
mod rendezvous;
mod services;

pub use in_process::{Asking, InProcess, ServiceListener, connect, listen, publish, resolve};
pub use ports::{Port, Ports, Sends};
pub use rendezvous::Rendezvous;
pub use services::{NameService, Service, check_queue_pair};
