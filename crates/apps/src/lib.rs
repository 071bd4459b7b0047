//! Complete systems, written once to the [fabric](offpath_fabric) and run in every world.
//!
//! Each is a folder that says everything of itself by the trait [`System`](system::System): [`kv`] is a
//! disaggregated key-value store, [`replog`] a replicated log. [`Shipped`] lists them, and planning, running,
//! serving and [`torture`] find them there. No module knows its world: where an optional part of a platform
//! is missing, the alternative that needs it is refused by a named error and never emulated.
#![allow(async_fn_in_trait, reason = "futures are !Send by contract, so no caller needs the bound")]

mod alive;
mod bytes;
pub mod kv;
mod outbox;
mod pool;
pub mod replog;
mod stop;
pub mod system;
pub mod torture;

pub use bytes::{hash, is_value_of, value_of};
pub use stop::Stop;

systems! {
    /// The systems that are shipped: a new one is listed here, and nowhere else.
    pub Shipped: kv::Kv, replog::Replog
}
