//! Whether a system keeps its promises while things fail.
//!
//! A [`Schedule`] is a list of faults as plain values, drawn from a seed and a [`Menu`] of what a
//! backend can do; a backend's caller translates it. A system's [`Trial`] is what one seed draws for it: users,
//! faults, and a checker of what was seen. [`linear`] checks histories of any map of keys. A schedule that
//! shows a violation is [shrunk](shrink) to one whose every fault is needed.

pub mod linear;
mod schedule;
mod trial;

pub use schedule::{Menu, Schedule, SystemFault, Trouble, shrink};
pub use trial::{PROCESSOR, Tally, Trial, checksum, machine, processors};
