//! What the tests on the twin share.

use offpath_profile::{Library, SystemRequest};
use offpath_route::Router;
use std::sync::Arc;

/// The routes of the shipped system.
pub fn router() -> Arc<Router> {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Arc::new(Router::new(&system).expect("a shipped profile has routes"))
}
