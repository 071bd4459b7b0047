//! What the tests on the twin share.

use offpath_profile::{Library, Request};
use offpath_route::Router;
use std::rc::Rc;

/// The routes of the shipped system.
pub fn router() -> Rc<Router> {
    let request = Request { device: "bluefield2", ..Request::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Rc::new(Router::new(&system).expect("a shipped profile has routes"))
}
