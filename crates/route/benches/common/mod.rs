//! What the bench measures and a test runs once.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation, Reader, Router, Verb};

/// The routes of the first shipped device.
pub fn router() -> Router {
    let system =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    Router::new(&system).unwrap()
}

/// One operation for each kind of path.
pub fn operations(router: &Router) -> Vec<PathOperation> {
    let operation = |(path, verb)| PathOperation::new(verb, router.path(path).unwrap(), Bytes::new(64));
    [
        ("client-host", Verb::Read),
        ("client-soc", Verb::Write),
        ("soc-host", Verb::Read),
        ("soc-host-dma", Verb::Read),
    ]
    .map(operation)
    .to_vec()
}

/// From an operation to its unloaded latency and its capacity in operations per second.
pub fn latency_and_capacity(router: &Router, reader: &mut Reader, operation: &PathOperation) -> (Time, f64) {
    let reading = reader.read(&router.route(operation).unwrap());
    (reading.latency, reading.demand.capacity(router).unwrap().0)
}
