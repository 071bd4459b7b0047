//! offpath sizes and plans SmartNIC offloads: what each path of a card costs, what binds it, and
//! which mix of offload alternatives carries the most.
//!
//! This crate is the facade over the crates that do the work, and the home of the command line
//! `offpath`.
//!
//! ```
//! use offpath::profile::{Library, SystemRequest};
//! use offpath::quantity::Bytes;
//! use offpath::route::{PathOperation, Router, Verb};
//!
//! let library = Library::builtin();
//! let system = library.load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() })?;
//! let router = Router::new(&system)?;
//! let operation = PathOperation::new(Verb::Read, router.path("client-soc")?, Bytes::new(64));
//! let route = router.route(&operation)?;
//! let (per_second, station) = route.demand(&router).capacity(&router).ok_or("nothing is visited")?;
//! println!("{:.1} M/s, bound by {}", per_second / 1e6, router.stations()[station.index()].name);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub use offpath_answers as answers;
pub use offpath_answers::{report, torture};
pub use offpath_apps as apps;
pub use offpath_capacity as capacity;
pub use offpath_evidence as evidence;
pub use offpath_fabric as fabric;
pub use offpath_learn as learn;
pub use offpath_logs as logs;
pub use offpath_measure as measure;
pub use offpath_plan as plan;
pub use offpath_profile as profile;
pub use offpath_quantity as quantity;
pub use offpath_route as route;
pub use offpath_twin as twin;
pub use offpath_verbs as verbs;
pub use offpath_workload as workload;

pub mod run;
