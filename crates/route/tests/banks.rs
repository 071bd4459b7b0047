//! A range of addresses reaches as many banks as it has strides, and no more than there are.

use offpath_profile::{Library, SystemRequest};
use offpath_quantity::Bytes;
use offpath_route::{AddressSpread, PathOperation, Pick, Route, Router, Verb, Visit};

fn banks(route: &Route) -> Vec<(u32, f64)> {
    let of = |visit: &Visit| match visit {
        Visit::Serve { pick: Pick::Bank { reach, hottest }, .. } => Some((*reach, *hottest)),
        _ => None,
    };
    route.visits.iter().filter_map(of).collect()
}

#[test]
fn a_range_reaches_a_bank_a_stride() {
    let system =
        Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() }).unwrap();
    let router = Router::new(&system).unwrap();
    let (_, soc) = system.endpoint("soc").unwrap();
    let (stride, all) = (soc.memory.bank_stride.get(), soc.memory.banks as u32);
    assert!(all > 8, "the cases below reach up to 8 banks of {all}");
    let reached = |verb: Verb, range: Option<u64>, hottest: f64| {
        let path = router.path("client-soc").unwrap();
        let access = AddressSpread { range: range.map(Bytes::new), arrived: false, hottest };
        let operation = PathOperation::new(verb, path, Bytes::new(64)).accessing(access);
        let route = router.route(&operation).unwrap();
        let station = router.station("soc.banks").unwrap();
        let found = banks(&route);
        assert_eq!(route.demand(&router).banks[&station], found[0].1, "the demand counts the hottest bank");
        found
    };
    for verb in [Verb::Read, Verb::Write] {
        for (range, reach) in
            [(1, 1), (stride, 1), (stride + 1, 2), (2 * stride, 2), (8 * stride, 8), (stride << 20, all)]
        {
            assert_eq!(
                reached(verb, Some(range), 0.0),
                [(reach, 1.0 / f64::from(reach))],
                "{verb} of {range} B"
            );
        }
        assert_eq!(reached(verb, None, 0.0), [(all, 1.0 / f64::from(all))]);
        // The hottest line's bank has its even share of the rest beside it.
        assert_eq!(reached(verb, Some(4 * stride), 0.5), [(4, 0.5 + 0.5 / 4.0)]);
        assert_eq!(reached(verb, Some(4 * stride), 0.1), [(4, 0.25)], "below an even share nothing is hot");
    }
    // An atomic reads and writes.
    assert_eq!(reached(Verb::FetchAndAdd, Some(2 * stride), 0.0), [(2, 0.5), (2, 0.5)]);
}
