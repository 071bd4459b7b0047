//! A card that exists nowhere, with two processors, plans from its file alone.

use crate::common::{alone, folds};
use offpath_plan::observe::{RequestArrivals, load};
use offpath_plan::{Changes, Design, Setting, plan, prepare};
use offpath_profile::{Category, Library};
use offpath_quantity::Time;
use offpath_twin::Seed;
use std::path::Path;

const CARD: &str = include_str!("../../profile/tests/data/invented.toml");

/// The first processor looks keys up; the second has the values. Larger requests go to the host.
const DESIGN: &str = r#"
[design]
name = "two-processors"
device = "invented"
testbed = "rack"
objective = "most-throughput"
rank_by = "unloaded-latency"

[[alternative]]
name = "relay"
request = [
    { send-ud = "client-arm", bytes = "16 B" },
    { compute = "arm", time = "60 ns" },
    { read = "arm-dpa", bytes = "64 B" },
    { send-ud = "arm-client", bytes = "64 B" },
]

[[alternative]]
name = "dpa"
request = [
    { send-ud = "client-dpa", bytes = "16 B" },
    { compute = "dpa", time = "200 ns" },
    { send-ud = "dpa-client", bytes = "64 B" },
]

[[alternative]]
name = "host"
request = [
    { read = "client-arm", bytes = "64 B" },
    { read = "client-host", bytes = "64 B" },
]

[[alternative]]
name = "copied"
request = [
    { send-ud = "client-arm", bytes = "16 B" },
    { read = "arm-host-copy", bytes = "64 B" },
    { send-ud = "arm-client", bytes = "64 B" },
]
"#;

#[test]
fn a_card_of_text_alone_is_planned_and_cross_checked() {
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", CARD);
    let setting = Setting::plain(library);
    let design =
        Design::parse(DESIGN, "invented.toml", Path::new("."), &Changes::default()).expect("in order");
    let ready = prepare(&design, &setting).expect("the card has these paths");
    let plan = plan(&design, &ready, &folds(&ready), &[], Seed::new(1)).expect("there is a mix");
    for one in &plan.alternatives {
        assert!(one.rate.value > 1e6 && one.latency_s.value > 1e-6 && !one.binding.is_empty(), "{one:?}");
    }
    // Two processors that answer side by side carry more than either.
    let single = plan.alternatives.iter().map(|one| one.rate.value).fold(0.0, f64::max);
    assert!(plan.optimal.rate.value > 1.05 * single, "{} and {single}", plan.optimal.rate.value);
    assert!(alone(&plan, "dpa").binding.contains("dpa.cpu"), "{}", alone(&plan, "dpa").binding);
    let (own, shares): (Vec<_>, Vec<f64>) = plan
        .optimal
        .shares
        .iter()
        .filter_map(|(name, share)| Some((ready.iter().find(|one| one.alternative.name == *name)?, *share)))
        .unzip();
    let (warm_up, window) = (Time::from_us(60), Time::from_us(150));
    let loaded =
        load(&own, &shares, RequestArrivals::Closed(1024), warm_up, window, Seed::new(1)).expect("it runs");
    let share = loaded.throughput.mean / plan.optimal.rate.value;
    assert!((0.9..=1.005).contains(&share), "{share} of the plan");
    assert_eq!(loaded.failed, 0);
}
