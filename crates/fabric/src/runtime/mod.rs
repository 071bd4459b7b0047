//! What backends are made of, so that each brings only what is its own.
//!
//! [`Tasks`] runs tasks. A backend that goes in rounds brings a [`Clock`] and a [`Reactor`] and has timers,
//! sleeps and its loop from here; the twin has those of its engine.
//!
//! Applications need nothing of it. A backend brings a [`BackendContext`], from which its `Fabric` follows, keeps a [`Rendezvous`] of its roles and sends by [`Sends`]; where
//! all roles are in one process, [`InProcess`] connects them too.

mod arena;
mod checks;
mod context;
mod executor;
mod in_process;
mod ports;
mod regions;
mod rendezvous;
mod results;
mod services;
mod tasks;

pub use arena::{Arena, ArenaSlot};
pub use checks::{RegionLedger, Registration, check_options, check_roles};
pub use context::{BackendContext, CompletionOf, Meets, MeetsInProcess, RegionOf, RunRole};
pub use executor::{Clock, Deadlock, Reactor, Round, Sleep, Timers, WallClock, run};
pub use in_process::{Asking, InProcess, ServiceListener};
pub use ports::{Datagram, Port, Ports, Sends};
pub use regions::{KeptHandle, KeptRegion, RegionOwner, RegionTable};
pub use rendezvous::Rendezvous;
pub use results::Results;
pub use services::{NameService, Service, check_queue_pair};
pub use tasks::{Host, Owner, Tasks, Waiter, yield_now};
