//! Devices, hosts and testbeds as data: loading, validation, provenance and what-if overlays.
//!
//! A device file, a host file and a testbed file together make a [`System`]. Every number in them
//! carries a unit, a source and a provenance; a file that lacks one is refused, with the line and
//! what to write instead.
//!
//! ```
//! use offpath_profile::{Category, Library, SystemRequest};
//! let library = Library::builtin();
//! let device = &library.names(Category::Device)[0].name;
//! let system = library.load(&SystemRequest { device, ..SystemRequest::default() })?;
//! let (server, host) = system.endpoint("host")?;
//! for hop in server.hops(&server.nic.name, &host.name)? {
//!     println!("{} {:?}", hop.link.name, hop.direction);
//! }
//! # Ok::<(), offpath_profile::ProfileError>(())
//! ```

mod assemble;
mod builtin;
mod coherent;
mod document;
mod draft;
mod error;
mod library;
mod model;
mod overlay;
mod renamed;
mod schema;
mod topology;
mod work;

pub use document::{CONTROL_CHARACTER_HELP, control_character, control_character_reason};
pub use draft::{Draft, DraftNumber, DraftPart, DraftRequest};
pub use error::{Problem, ProfileError, did_you_mean};
pub use library::{
    Category, Library, Listed, OverlayHead, SystemRequest, open_file, read_text, refuse_named_pipe,
};
pub use model::*;
pub use renamed::first_name;
pub use schema::UnknownProvenance;
pub use topology::{Direction, LinkHop};
pub use work::WorkCost;
