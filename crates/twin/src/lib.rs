//! The twin: a discrete-event simulation of a system in virtual time.
//!
//! It executes the routes of [`offpath_route`] on stations with queues. An idle twin gives exactly
//! the unloaded latency; a saturated one comes to the capacity that the demands allow.

pub mod backend;
mod engine;
mod fault;
mod load;
mod queue;
mod seed;
mod statistics;
mod window;

pub use backend::{TwinBackend, TwinFabric};
pub use engine::{EventEngine, Handle, Marks, Occurrence, OperationFailure, Retransmission, Start, Tag};
pub use fault::{Crossing, Fault, FaultRule, Faults};
pub use load::{Arrivals, Load, LoadError, LoadObservation, run};
pub use queue::EventQueue;
pub use seed::{Generator, Seed, unit, unit_of};
pub use statistics::{Interval, Latencies, batch_means};
pub use window::{BATCHES, MeanDemand, Snapshot, Usage, edges, throughput};
