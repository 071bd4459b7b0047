//! The twin: a discrete-event simulation of a system in virtual time.
//!
//! It executes the routes of [`offpath_route`] on stations with queues. An idle twin gives exactly
//! the unloaded latency; a saturated one comes to the capacity that the demands allow.

mod engine;
mod fault;
mod load;
mod queue;
mod seed;
mod statistics;
mod window;
pub mod world;

pub use engine::{Engine, Failure, Handle, Marks, Occurrence, Retransmission, Start, Tag};
pub use fault::{Crossing, Fault, Faults, Rule};
pub use load::{Arrivals, Load, LoadError, Observed, run};
pub use queue::EventQueue;
pub use seed::{Generator, Seed, unit, unit_of};
pub use statistics::{Interval, Latencies, batch_means};
pub use window::{BATCHES, MeanDemand, Snapshot, Usage, edges, throughput};
pub use world::{TwinFabric, TwinWorld};
