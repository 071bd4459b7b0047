//! Routes: the visits that one operation makes to the stations of a system.
//!
//! A route is described once and read three ways, all of which use the cost functions of this
//! crate: [`Route::unloaded`] sums it on idle stations, [`Route::demand`] folds it by station, and
//! the twin executes it through [`Cursor`] on stations that other operations keep busy.
//!
//! ```
//! use offpath_profile::{Category, Library, SystemRequest};
//! use offpath_quantity::{Bytes, Time};
//! use offpath_route::{PathOperation, Router, Verb};
//!
//! let library = Library::builtin();
//! let device = &library.names(Category::Device)[0].name;
//! let system = library.load(&SystemRequest { device, ..SystemRequest::default() }).unwrap();
//! let router = Router::new(&system).unwrap();
//! let path = router.path("client-host").unwrap();
//! let route = router.route(&PathOperation::new(Verb::Read, path, Bytes::new(64))).unwrap();
//! let unloaded = route.unloaded(&router);
//! assert_eq!(unloaded.latency, unloaded.terms.iter().map(|term| term.time).sum::<Time>());
//! ```

mod build;
mod calendar;
mod cursor;
mod ledger;
mod path;
mod station;
mod visit;

pub use build::{LONGEST_MESSAGE, PathOperation, Posting, Router};
pub use calendar::{Calendar, SlotCalendars, Stations};
pub use cursor::{Advance, Cursor, Marked, POSTED_CREDIT};
pub use ledger::{Demand, Ledger, LinkPackets, Reader, Reading, Term, Unloaded};
pub use path::{
    Carrier, Moves, Path, Responder, RouteError, SlotHold, Transport, VERBS, Verb, VerbRow, processor_of,
};
pub use station::{Station, StationId, StationKind, Wire, WireWay};
pub use visit::{
    AddressSpread, Hop, InflightSlots, LEAST_BURST, MOST_BURSTS, MOST_LIMITS, Mark, PacketCut, Pick,
    Requests, Route, Train, Visit,
};
