//! The benches run, and a reader gives what the routes give one by one.

#[path = "../benches/common/mod.rs"]
mod common;

#[test]
fn a_reader_reads_what_the_route_says() {
    let router = common::router();
    let mut reader = offpath_route::Reader::new(&router);
    for operation in common::operations(&router) {
        let route = router.route(&operation).unwrap();
        let (latency, capacity) = common::latency_and_capacity(&router, &mut reader, &operation);
        assert_eq!(latency, route.latency(&router));
        assert_eq!(Some(capacity), route.demand(&router).capacity(&router).map(|(rate, _)| rate));
    }
}
