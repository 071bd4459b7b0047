//! Learns a real card: what a machine says of itself becomes numbers of a profile, and what is odd about it is said with
//! what it costs.

pub mod describe;
