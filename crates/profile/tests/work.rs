//! What is known of kinds of work that were measured of one processor alone.

use offpath_profile::{Category, Library, System, SystemRequest};
use offpath_quantity::Quantity;

const CARD: &str = include_str!("../../../profiles/devices/bluefield2.toml");

fn tables(text: &str) -> Vec<&str> {
    let work: Vec<&str> =
        text.split("\n[soc_work_").skip(1).map(|one| one.split(']').next().unwrap_or_default()).collect();
    assert_eq!(work.len(), 15);
    work
}

/// The card without one of its tables of work.
fn without(text: &str, name: &str) -> String {
    let start = text.find(&format!("[soc_work_{name}]")).expect("the card has it");
    let end = text[start + 1..].find("\n[").map_or(text.len(), |at| start + 1 + at + 1);
    format!("{}{}", &text[..start], &text[end..])
}

fn system(text: &str, mode: Option<&str>) -> System {
    let mut library = Library::builtin();
    library.insert(Category::Device, "own", &text.replacen("\"bluefield2\"", "\"own\"", 1));
    let request = SystemRequest { device: "own", testbed: Some("sun"), mode, ..SystemRequest::default() };
    library.load(&request).unwrap_or_else(|error| panic!("the card is refused: {error}"))
}

/// The interval of how fast the SoC is beside the host at a kind that was not measured of it.
fn interval(system: &System) -> (f64, f64) {
    let (machine, _) = system.endpoint("soc").expect("it has one");
    let mean = machine.times_as_fast("soc", "host").expect("14 kinds say it");
    let number = &system.numbers["soc_beside_host.other_work"];
    let end = |end: Option<Quantity>| mean * end.expect("an assumed number has an interval").base();
    (end(number.low), end(number.high))
}

/// docs/models/kinds-of-work.md says how the rule does by the kinds that it knows.
#[test]
fn fourteen_of_fifteen_kinds_lie_where_the_others_leave_them() {
    let whole = system(CARD, None);
    let (machine, _) = whole.endpoint("soc").expect("it has one");
    let outside: Vec<&str> = tables(CARD)
        .into_iter()
        .filter(|name| {
            let kind = format!("stress-ng-{name}");
            let cost = |at: &str| machine.work_cost(at, &kind).expect("it was measured").unit_ps;
            let measured = cost("host") / cost("soc");
            let rest = system(&without(CARD, name), None);
            let (own, _) = rest.endpoint("soc").expect("it has one");
            assert_eq!(own.work_cost("soc", &kind).expect("the others say it").measured_of, Some("host"));
            let (low, high) = interval(&rest);
            !(low..=high).contains(&measured)
        })
        .collect();
    assert_eq!(outside, ["cpu"]);
    let (low, high) = interval(&whole);
    assert!((low - 0.0933).abs() < 5e-5 && (high - 1.104).abs() < 5e-4, "{low} to {high}");
}

#[test]
fn less_than_three_kinds_say_nothing_of_others() {
    let mut text = CARD.to_string();
    let all = tables(CARD);
    for name in &all[..12] {
        text = without(&text, name);
    }
    interval(&system(&text, None));
    let two = system(&without(&text, all[12]), None);
    assert!(!two.numbers.keys().any(|name| name.contains("_beside_")), "no number is made of two");
    let (machine, _) = two.endpoint("soc").expect("it has one");
    let refused = machine.times_as_fast("soc", "host").expect_err("two are too few").to_string();
    assert!(refused.contains("2 kinds of work were measured of both, and 3 at least"), "{refused}");
    let refused = machine.work_cost("soc", "stress-ng-cpu").expect_err("two are too few").to_string();
    assert!(refused.contains("was measured of `host` and not of `soc`"), "{refused}");
    // What was measured of it costs that all the same.
    assert_eq!(machine.work_cost("soc", "stress-ng-tree").expect("it is left").unit_ps, 2e12);
}

/// Each processor of each machine has numbers of its own; a card whose processors are hidden has none.
#[test]
fn the_numbers_are_those_of_the_machine() {
    let whole = system(CARD, None);
    let beside = |system: &System| -> Vec<String> {
        system.numbers.keys().filter(|name| name.contains("_beside_")).cloned().collect()
    };
    assert_eq!(beside(&whole), ["host_beside_soc.other_work", "soc_beside_host.other_work"]);
    assert!(beside(&system(CARD, Some("nic"))).is_empty());
    let twice = whole.with("soc_beside_host.other_work", Quantity::Ratio(2.0)).expect("it is in range");
    let cost = |system: &System, at: &str| {
        let (machine, _) = system.endpoint(at).expect("it is there");
        machine.work_cost(at, "regular-expressions").expect("it is known").unit_ps
    };
    assert_eq!(cost(&twice, "soc") * 2.0, cost(&whole, "soc"));
    assert_eq!(cost(&whole, "client"), cost(&whole, "host"), "the client is a host of the same kind");
    let faster = whole.with(
        "host_work_regular_expressions.byte_rate",
        Quantity::parse("8 Gbit/s", offpath_quantity::Dimension::BitRate).expect("a rate"),
    );
    assert_eq!(cost(&faster.expect("it is in range"), "soc") * 2.0, cost(&whole, "soc"));
}
