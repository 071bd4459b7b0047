//! Routes: the visits that one operation makes to the stations of a system.
//!
//! A route is described once and read three ways, all of which use the cost functions of this
//! crate: [`Route::unloaded`] sums it on idle stations, [`Route::demand`] folds it by station, and
//! the twin executes it through [`Cursor`] on stations that other operations keep busy.
//!
//! ```
//! use offpath_profile::{Library, Request};
//! use offpath_quantity::Bytes;
//! use offpath_route::{Operation, Path, Router, Verb};
//!
//! let system = Library::builtin().load(&Request { device: "bluefield2", ..Request::default() }).unwrap();
//! let router = Router::new(&system).unwrap();
//! let path: Path = router.path("client-soc").unwrap();
//! let route = router.route(&Operation::new(Verb::Read, path, Bytes::new(64))).unwrap();
//! assert!(route.unloaded(&router).latency.as_us() < 2.6);
//! ```

mod build;
mod calendar;
mod cursor;
mod ledger;
mod path;
mod station;
mod visit;

pub use build::{Operation, Posting, Router};
pub use calendar::{Calendar, Stations};
pub use cursor::{Advance, Cursor, Marked, POSTED_CREDIT};
pub use ledger::{Demand, Ledger, LinkPackets, Reader, Reading, Term, Unloaded};
pub use path::{Path, RouteError, Verb};
pub use station::{Kind, Station, StationId};
pub use visit::{Access, Hop, Mark, Pick, Requests, Route, Train, Visit};
