//! A card with many endpoints: routes where they have no in-flight slots of their own, a refusal with its bound where they do.

use offpath_profile::{Category, Library, SystemRequest};
use offpath_route::{RouteError, Router};

/// The shipped card with so many more endpoints like its SoC.
fn with_endpoints(more: usize, reserved: &str) -> Result<Router, RouteError> {
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    let table = |name: &str| {
        let (_, rest) = shipped.split_once(&format!("\n[{name}]\n")).expect("the card has it");
        rest.split_once("\n[").map_or(rest, |(own, _)| own)
    };
    let named = shipped.replace("\nname = \"bluefield2\"\n", "\nname = \"many\"\n");
    let mut text: String = named
        .lines()
        .map(|line| match line.starts_with("reserved_inflight_slots") {
            true => format!(
                "reserved_inflight_slots = {{ value = {reserved}, source = \"t\", provenance = \"datasheet\" }}\n"
            ),
            false => format!("{line}\n"),
        })
        .collect();
    for index in 0..more {
        let own = format!("u{index}");
        for name in ["soc_wire", "soc", "soc_verbs"] {
            let renamed = table(name).replace("\"soc\"", &format!("\"{own}\""));
            text += &format!("\n[{}]\n{renamed}\n", name.replace("soc", &own));
        }
    }
    let mut library = Library::builtin();
    library.insert(Category::Device, "many", &text);
    Router::new(
        &library
            .load(&SystemRequest { device: "many", ..SystemRequest::default() })
            .expect("the card is in order"),
    )
}

#[test]
fn forty_endpoints_share_the_slots_of_a_card() {
    let router = with_endpoints(38, "0").expect("it has routes");
    router.path("client-u37").expect("the last one is reached");
    assert!(router.stations().iter().all(|one| !one.name.contains("inflight_slots-of")));
}

#[test]
fn slots_of_more_endpoints_than_are_modelled_are_refused() {
    for more in [3, 38] {
        match with_endpoints(more, "4") {
            Err(RouteError::TooManyEndpoints { endpoints, most, .. }) => {
                assert_eq!((endpoints, most), (more + 2, 4));
            }
            other => panic!("{:?}", other.map(|_| "it has routes")),
        }
    }
    with_endpoints(2, "4").expect("four are modelled");
}
