//! Complete systems, written once to the [fabric](offpath_fabric) and run in every backend.
//!
//! [`kv`] is a disaggregated key-value store, [`replog`] a replicated log, and [`torture`] is what checks such systems under seeded
//! faults. No module knows its backend: where an optional part of a platform is missing, the
//! alternative that needs it is refused by a named error and never emulated.
#![allow(async_fn_in_trait, reason = "futures are !Send by contract, so no caller needs the bound")]

mod alive;
pub mod kv;
mod outbox;
mod pool;
pub mod replog;
pub mod torture;
