//! Whether a system keeps its promises while things fail.
//!
//! A [`Schedule`] is a list of faults as plain values, drawn from a seed and a [`Menu`] of what a
//! backend can do; a backend's caller translates it. [`store`] runs clients against the key-value store and
//! records what they saw, and [`linear`] checks it; [`log`] writes to the replicated log and compares what
//! its replicas kept. A schedule that shows a violation
//! is [shrunk](shrink) to one whose every fault is needed.

pub mod linear;
pub mod log;
mod schedule;
pub mod store;

pub use schedule::{Menu, Schedule, SystemFault, Trouble, shrink};
