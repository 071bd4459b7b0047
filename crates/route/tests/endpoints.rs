//! A card with many endpoints: routes where they have no in-flight slots of their own, a refusal with its bound where they do.

use offpath_profile::{Category, Library, MOST_ENDPOINTS, ProfileError, System, SystemRequest};
use offpath_quantity::{Bytes, Quantity, Time};
use offpath_route::{AddressSpread, PathOperation, Posting, RouteError, Router, Verb};

/// The file of the shipped card with so many more endpoints like its SoC.
fn with_endpoints(more: usize, reserved: &str) -> String {
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
    text
}

/// A card of the name `many`, with settings.
fn load(text: &str, settings: &[&str]) -> Result<System, ProfileError> {
    let mut library = Library::builtin();
    library.insert(Category::Device, "many", text);
    let settings = settings.iter().map(ToString::to_string).collect();
    library.load(&SystemRequest { device: "many", settings, ..SystemRequest::default() })
}

/// Its routes.
fn router(text: &str) -> Result<Router, RouteError> {
    Router::new(&load(text, &[]).expect("the card is in order"))
}

#[test]
fn forty_endpoints_share_the_slots_of_a_card() {
    let router = router(&with_endpoints(38, "0")).expect("it has routes");
    router.path("client-u37").expect("the last one is reached");
    assert!(router.stations().iter().all(|one| !one.name.contains("inflight_slots-of")));
}

/// A file that has them is refused at its line, a setting at itself, and a number that is changed afterwards as soon as there
/// are routes to be.
#[test]
fn slots_of_more_endpoints_than_are_modelled_are_refused() {
    for more in [3, 38] {
        let text = with_endpoints(more, "4");
        let refused = load(&text, &[]).map(|_| ()).expect_err("they are too many");
        let line = text.lines().position(|line| line.starts_with("reserved_inflight_slots"));
        assert_eq!(
            refused.place().map(|(file, line, _)| (file, line - 1)),
            line.map(|line| ("devices/many.toml", line))
        );
        let says = format!("for each of {} endpoints, and at most {MOST_ENDPOINTS} are modelled", more + 2);
        assert!(refused.to_string().contains(&says), "{refused}");
        let set = load(&with_endpoints(more, "0"), &["nic.reserved_inflight_slots=4"]).map(|_| ());
        let set = set.expect_err("they are too many");
        assert_eq!((set.to_string(), set.place()), (refused.to_string(), Some(("set", 1, 1))));
        let changed = load(&with_endpoints(more, "0"), &[]).expect("it loads");
        let changed = changed.with("nic.reserved_inflight_slots", Quantity::Count(4));
        match Router::new(&changed.expect("it is in its range")) {
            Err(RouteError::TooManyEndpoints { endpoints, most, .. }) => {
                assert_eq!((endpoints, most), (more + 2, MOST_ENDPOINTS));
            }
            other => panic!("{:?}", other.map(|_| "it has routes")),
        }
    }
    router(&with_endpoints(2, "4")).expect("four are modelled");
}

/// The shipped card with so many more memories at its NIC, each further away than the one before.
fn with_memories(more: usize) -> Router {
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    let mut text = shipped.replace("\nname = \"bluefield2\"\n", "\nname = \"many\"\n");
    for index in 0..more {
        let number = |name: &str, value: &str| {
            format!("{name} = {{ value = {value}, source = \"t\", provenance = \"datasheet\" }}\n")
        };
        text += &format!("\n[m{index}]\nkind = \"memory\"\n");
        for (name, value) in [
            ("capacity", "\"1 GiB\""),
            ("pcie_mtu", "\"128 B\""),
            ("ddio", "false"),
            ("read_latency", "\"100 ns\""),
            ("write_latency", "\"100 ns\""),
            ("bandwidth", "\"100 Gbit/s\""),
            ("banks", "16"),
            ("bank_stride", "\"64 B\""),
            ("bank_read_time", "\"30 ns\""),
            ("bank_write_time", "\"30 ns\""),
        ] {
            text += &number(name, value);
        }
        text += &format!("\n[m{index}_wire]\nkind = \"wire\"\nbetween = [\"nic\", \"m{index}\"]\n");
        text += &number("delay", &format!("\"{} ns\"", 10 * index));
    }
    router(&text).expect("it has routes")
}

/// The host and the SoC have one each, so that a byte would give the last ones the hops of the first.
#[test]
fn each_of_more_memories_than_a_byte_can_name_has_its_own_hops() {
    let router = with_memories(258);
    let latency = |index: usize| {
        let path = router.path(&format!("client-soc:m{index}")).expect("the NIC reaches it");
        let (posting, access) = (Posting::Single, AddressSpread::UNIFORM);
        let read = PathOperation { verb: Verb::Read, path, payload: Bytes::new(64), posting, access };
        router.route(&read).expect("it has a route").latency(&router)
    };
    let first = latency(0);
    for index in [100, 253, 254, 257] {
        assert_eq!(latency(index), first + Time::from_ns(2 * 10 * index as u64), "m{index}");
    }
}

/// The card's NIC is that of both ends: their limits, and those of the groups that one of them is in, are kept as long as
/// the pool is. A client keeps what the responder's endpoint has.
#[test]
fn a_request_within_a_machine_keeps_a_slot_of_both_its_endpoints() {
    let router = router(&with_endpoints(2, "4")).expect("four are modelled");
    let held = |path: &str, verb: Verb| {
        let path = router.path(path).expect("it is there");
        let (posting, access) = (Posting::Single, AddressSpread::UNIFORM);
        let operation = PathOperation { verb, path, payload: Bytes::new(64), posting, access };
        let demand = router.route(&operation).expect("it has a route").demand(&router);
        let slots = demand.time.iter().filter_map(|(station, time)| {
            let name = router.stations()[station.index()].name.strip_prefix("nic.inflight_slots")?;
            Some((name.trim_start_matches("-of-").to_string(), *time))
        });
        let slots: Vec<(String, Time)> = slots.collect();
        assert!(slots.iter().all(|(_, time)| *time == slots[0].1), "as long each: {slots:?}");
        slots.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    let is_of =
        |ends: &[&str], name: &str| name.is_empty() || name.split("-and-").any(|one| ends.contains(&one));
    let names: Vec<&str> =
        router.stations().iter().filter_map(|one| one.name.strip_prefix("nic.inflight_slots")).collect();
    for verb in [Verb::Read, Verb::Write, Verb::SendDatagram, Verb::CompareAndSwap] {
        for (path, ends) in [
            ("client-soc", &["soc"][..]),
            ("host-soc", &["host", "soc"]),
            ("soc-host", &["host", "soc"]),
            ("u0-u1", &["u0", "u1"]),
        ] {
            let expected =
                names.iter().map(|name| name.trim_start_matches("-of-")).filter(|name| is_of(ends, name));
            assert_eq!(held(path, verb), expected.collect::<Vec<_>>(), "{path} {verb:?}");
        }
    }
    assert_eq!(
        (names.len(), held("client-soc", Verb::Read).len(), held("host-soc", Verb::Read).len()),
        (15, 8, 12)
    );
}
