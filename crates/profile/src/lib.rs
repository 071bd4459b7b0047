//! Devices, hosts and testbeds as data.
mod model;
pub use model::*;
