//! Numbers that a design gives are its author's estimates: each has an identifier, may have an interval,
//! and moves what it stands for and nothing else.

use crate::common::*;
use offpath_plan::sample::Drawn;
use offpath_plan::{Changes, Design, Fold, Ready, prepare_named};
use offpath_quantity::{Dimension, Quantity};
use std::collections::BTreeMap;

const DESIGN: &str = r#"
[design]
name = "estimated"
device = "bluefield2"
testbed = "rack"
objective = "most-throughput"
rank_by = "unloaded-latency"

[parameters]
service = "2 us to 4 us"
codec = { value = "8 Gbit/s", low = "4 Gbit/s", high = "10 Gbit/s" }
chunk = "4 KiB"
copies = 2
share = "0.2 to 0.6"

[[alternative]]
name = "asked"
request = [
    { send-ud = "client-host", bytes = "64 B" },
    { compute = "host", time = "service * 2" },
    { compute = "host", time = { value = "1 us", low = "0.5 us", high = "2 us" } },
    { repeat = "copies", steps = [{ compute = "host", bytes = "chunk", rate = "codec" }] },
    { probability = "share", then = [{ compute = "host", time = "100 ns" }], otherwise = [] },
    { send-ud = "host-client", bytes = "64 B" },
]

[[alternative]]
name = "read"
request = [{ read = "client-host", bytes = "chunk * 2" }]
"#;

fn prepared(design: &Design) -> Vec<Ready> {
    prepare_named(design, &setting(&[], &[])).expect("the design is in order")
}

fn fold(design: &Design, name: &str) -> Fold {
    let ready = prepared(design);
    let one = ready.iter().find(|one| one.alternative.name == name).expect("it is there");
    one.compiled.fold(&one.router)
}

fn moved(design: &Design, id: &str, value: &str, dimension: Dimension) -> Design {
    let value = Quantity::parse(value, dimension).expect("a quantity");
    design.with_estimates(&BTreeMap::from([(id.to_string(), value)])).expect("it may have this value")
}

#[test]
fn every_number_of_a_design_is_an_estimate_with_a_place() {
    let design = parse(DESIGN, &Changes::default());
    let seen: Vec<String> = design
        .estimates()
        .iter()
        .map(|one| match (one.low, one.high) {
            (Some(low), Some(high)) => format!("{} = {} ({low} to {high})", one.id, one.value),
            _ => format!("{} = {}", one.id, one.value),
        })
        .collect();
    assert_eq!(
        seen,
        [
            "parameters.service = 3 us (2 us to 4 us)",
            "parameters.codec = 8 Gbit/s (4 Gbit/s to 10 Gbit/s)",
            "parameters.chunk = 4 KiB",
            "parameters.copies = 2",
            "parameters.share = 0.4 (0.2 to 0.6)",
            "alternative.asked.request.1.bytes = 64 B",
            "alternative.asked.request.3.time = 1 us (500 ns to 2 us)",
            "alternative.asked.request.5.then.1.time = 100 ns",
            "alternative.asked.request.6.bytes = 64 B",
        ]
    );
    for one in design.estimates() {
        assert!(!one.span.is_empty() && one.span.end <= DESIGN.len(), "{one:?}");
    }
}

#[test]
fn a_fold_says_which_estimates_a_processor_works_for() {
    let design = parse(DESIGN, &Changes::default());
    let fold = fold(&design, "asked");
    let host = &fold.estimated["host.cpu"];
    let near = |id: &str, seconds: f64| {
        let seen = host.get(id).unwrap_or_else(|| panic!("{id} weighs at the host: {host:?}"));
        assert!((seen / seconds - 1.0).abs() < 1e-9, "{id} weighs {seen} s, not {seconds}");
    };
    // 4 KiB at 8 Gbit/s, twice.
    let coding = 2.0 * 4096.0 * 8.0 / 8e9;
    near("parameters.service", 6e-6);
    near("alternative.asked.request.3.time", 1e-6);
    near("parameters.codec", coding);
    near("parameters.chunk", coding);
    near("parameters.copies", coding);
    near("alternative.asked.request.5.then.1.time", 0.4 * 100e-9);
    near("parameters.share", 0.4 * 100e-9);
    assert_eq!(fold.estimated.keys().collect::<Vec<_>>(), ["host.cpu"], "no other station computes");
    let all = fold.seconds["host.cpu"];
    let computed = 6e-6 + 1e-6 + coding + 0.4 * 100e-9;
    assert!(all > computed, "messages take the host {all} s, which no estimate says");
}

#[test]
fn moving_an_estimate_moves_what_it_stands_for_and_nothing_else() {
    let design = parse(DESIGN, &Changes::default());
    let seconds = |design: &Design| fold(design, "asked").seconds["host.cpu"];
    let base = seconds(&design);
    let near = |name: &str, seen: f64, expected: f64| {
        assert!((seen - expected).abs() < 1e-15, "{name}: {seen} s is not {expected} s");
    };
    let service = moved(&design, "parameters.service", "4 us", Dimension::Time);
    near("service", seconds(&service), base + 2e-6);
    assert_eq!(service.parameters["service"], 4e6);
    assert_eq!(fold(&service, "read"), fold(&design, "read"));
    let coding = 4096.0 * 8.0 / 8e9;
    near(
        "codec",
        seconds(&moved(&design, "parameters.codec", "4 Gbit/s", Dimension::BitRate)),
        base + 2.0 * coding,
    );
    // Whole numbers are rounded, and at least 1.
    near("copies", seconds(&moved(&design, "parameters.copies", "2.6", Dimension::Ratio)), base + coding);
    near("copies", seconds(&moved(&design, "parameters.copies", "0", Dimension::Ratio)), base - coding);
    near("share", seconds(&moved(&design, "parameters.share", "0.6", Dimension::Ratio)), base + 0.2 * 100e-9);
    let longer = moved(&design, "alternative.asked.request.3.time", "2 us", Dimension::Time);
    near("a step's own", seconds(&longer), base + 1e-6);
    let chunk = moved(&design, "parameters.chunk", "8 KiB", Dimension::Bytes);
    near("chunk", seconds(&chunk), base + 2.0 * coding);
    assert!(fold(&chunk, "read").network_bytes == 2.0 * 8192.0);
    // Back again is where it was, and the interval stays.
    let back = moved(&service, "parameters.service", "3 us", Dimension::Time);
    assert_eq!(back.estimates(), design.estimates());
    assert_eq!(fold(&back, "asked"), fold(&design, "asked"));
}

/// A factor of work is a guess, whole or not, unless it says as well how many there are; what is written into a product, a
/// factor of 1 and a whole multiple of a payload are taken as they are.
#[test]
fn a_whole_factor_of_work_is_an_estimate() {
    let rests = |factor: &str, more: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[parameters]\nfactor = {factor}\nmerge = \"8 Gbit/s\"\nput = \"2 us\"\n\
             [[alternative]]\nname = \"a\"\nrequest = [ {{ send-ud = \"client-host\", bytes = \"64 B\" }}, {more}, \
             {{ send-ud = \"host-client\", bytes = \"64 B\" }} ]\n"
        );
        let plan = planned(&parse(&text, &Changes::default()), &[], &[]);
        let one = alone(&plan, "a");
        let rest = one.rests_on.iter().find(|rest| rest.number == "parameters.factor");
        (rest.map(|rest| rest.drawn), one.rate.range_80)
    };
    let bytes = "{ compute = \"host\", bytes = \"64 B * factor\", rate = \"merge\" }";
    let time = "{ compute = \"host\", time = \"put * factor\" }";
    let rate = "{ compute = \"host\", bytes = \"64 KiB\", rate = \"merge * factor\" }";
    for step in [bytes, time, rate] {
        let (whole, other) = (rests("10", step), rests("10.001", step));
        assert_eq!((whole.0, other.0), (Some(Drawn::Half), Some(Drawn::Half)), "{step}");
        near(step, whole.1.0, other.1.0, 1e-3);
        near(step, whole.1.1, other.1.1, 1e-3);
        assert_eq!(rests("1", step).0, None, "{step}: 1 multiplies nothing");
        assert_eq!(rests("10", &step.replace("factor", "10")).0, None, "{step}: written into the product");
    }
    let counted =
        format!("{{ repeat = \"factor\", steps = [ {{ compute = \"host\", time = \"10 ns\" }} ] }}, {time}");
    assert_eq!(rests("10", &counted).0, None, "it says how many there are");
    let payload =
        format!("{{ read = \"host-soc\", bytes = \"64 B * factor\" }}, {}", time.replace(" * factor", ""));
    assert_eq!(rests("10", &payload).0, None, "sizes of payloads are the question");
}

#[test]
fn what_no_estimate_can_be_is_refused() {
    let design = parse(DESIGN, &Changes::default());
    let refused = |id: &str, value: &str, dimension: Dimension| {
        let value = Quantity::parse(value, dimension).expect("a quantity");
        let moved = BTreeMap::from([(id.to_string(), value)]);
        design.with_estimates(&moved).expect_err("it cannot be").to_string()
    };
    assert!(refused("parameters.none", "1 us", Dimension::Time).contains("no number `parameters.none`"));
    assert!(refused("parameters.service", "1 B", Dimension::Bytes).contains("is a time, and 1 B is a size"));
    assert!(
        refused("parameters.share", "2", Dimension::Ratio).contains("a probability of 2 is outside 0 to 1")
    );
    let of = |from: &str, to: &str| {
        assert!(DESIGN.contains(from));
        let text = DESIGN.replacen(from, to, 1);
        Design::parse(&text, "design.toml", &designs(), &Changes::default()).expect_err(to).to_string()
    };
    for (from, to, words) in [
        ("time = \"service * 2\"", "time = \"chunk\"", "`chunk` is a size, and here is a time wanted"),
        ("time = \"service * 2\"", "time = \"service * service\"", "multiplies 2 numbers that are a time"),
        ("time = \"service * 2\"", "time = \"copies\"", "multiplies 0 numbers that are a time"),
        ("repeat = \"copies\"", "repeat = \"share\"", "`repeat` is 0.4; it has to be a whole number"),
        ("repeat = \"copies\"", "repeat = 0", "`repeat` is 0"),
        ("repeat = \"copies\"", "repeat = \"service\"", "`service` is a time, and here is a plain number"),
        ("rate = \"codec\"", "rate = \"0 bit/s\"", "the rate is 0"),
        ("rate = \"codec\"", "rate = \"1 bit/s\"", "longer than 60 s"),
        ("\"2 us to 4 us\"", "\"4 us to 2 us\"", "from 4 us to 2 us ends below where it begins"),
        ("time = \"service * 2\"", "time = \"5\"", "`5` has no unit"),
        ("\"0.2 to 0.6\"", "true", "parameter `share`: what stands here, of type boolean"),
    ] {
        let error = of(from, to);
        assert!(error.contains(words), "{to}: {error}");
    }
}

#[test]
fn parameters_of_any_unit_are_changed_and_swept() {
    let text = format!("{DESIGN}\n[sweep]\nparameter = \"service\"\nvalues = [\"1 us\", \"5 us\"]\n");
    let design = parse(&text, &Changes::default());
    let (name, values) = design.sweep.clone().expect("there is one");
    let busy = |value: f64| {
        let parameters = BTreeMap::from([(name.clone(), design.parameter_text(&name, value))]);
        let changed = parse(&text, &Changes { parameters, ..Changes::default() });
        // A value from outside takes the place of the file's, its interval included.
        let own =
            changed.estimates().iter().find(|one| *one.id == *"parameters.service").expect("it is there");
        assert_eq!((own.low, own.high), (None, None));
        fold(&changed, "asked").seconds["host.cpu"]
    };
    assert!((busy(values[1]) - busy(values[0]) - 8e-6).abs() < 1e-15);
    let parameters = BTreeMap::from([("codec".to_string(), "1 Gbit/s to 3 Gbit/s".to_string())]);
    let changed = parse(&text, &Changes { parameters, ..Changes::default() });
    assert_eq!(changed.parameters["codec"], 2e9);
    for (values, words) in [
        ("[\"1 KiB\"]", "is a time, and this is a size"),
        ("[3]", "is a time, and this has no unit"),
        ("[\"1 us to 2 us\"]", "a value of a sweep has no interval"),
    ] {
        let text = text.replace("[\"1 us\", \"5 us\"]", values);
        let error = Design::parse(&text, "design.toml", &designs(), &Changes::default()).expect_err(values);
        assert!(error.to_string().contains(words), "{values}: {error}");
    }
}

#[test]
fn an_applications_times_are_found_in_what_its_code_does() {
    let design = parse(&small("kv-ycsb-c.toml"), &Changes::default());
    let ready = prepared(&design);
    let of = |name: &str| {
        let one = ready.iter().find(|one| one.alternative.name == name).expect("it is there");
        one.compiled.fold(&one.router).estimated
    };
    let reads = of("A1");
    let client = &reads["client.cpu"];
    let ns = |id: &str| (client.get(id).copied().unwrap_or(0.0) * 1e12).round() / 1e3;
    let all = ["build", "search", "check"].map(|key| ns(&format!("application.{key}")));
    assert_eq!(all, [100.0, 150.0, 50.0], "{client:?}");
    assert_eq!(reads.keys().collect::<Vec<_>>(), ["client.cpu"]);
    let sent = of("A5-send (100% hits)");
    assert!(sent["soc.cpu"].contains_key("application.card_lookup"), "{sent:?}");
    // The code says the same when it is followed with the number moved.
    let longer = moved(&design, "application.card_lookup", "180 ns", Dimension::Time);
    let soc = |design: &Design| fold(design, "A5-send (100% hits)").seconds["soc.cpu"];
    assert!((soc(&longer) - soc(&design) - 100e-9).abs() < 1e-12);
}

/// What a number of the design may be does not hang on how its author writes it: a factor may be above 1 where it is below, a
/// share and the rest are one guess, and how often something happens is not how long it takes.
#[test]
fn factors_and_shares_are_drawn_as_what_they_are() {
    let head = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                rank_by = \"throughput\"\n";
    let plan = |parameters: &str, work: &str| {
        let steps = format!(
            "{{ send = \"client-soc\", bytes = \"64 B\" }}, {work}, {{ send = \"soc-client\", bytes = \"64 B\" }}"
        );
        let alternative = format!("[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n");
        planned(
            &parse(&format!("{head}[parameters]\n{parameters}\n{alternative}"), &Changes::default()),
            &[],
            &[],
        )
    };
    let ends = |plan: &offpath_plan::Plan, number: &str| {
        let found = plan.influences.iter().find(|one| one.number.ends_with(number));
        let one = found.unwrap_or_else(|| panic!("{number}: {:?}", plan.influences));
        (one.low.base(), one.high.base(), one.drawn_with.clone())
    };
    for factor in [0.9, 1.1] {
        let work = "{ compute = \"soc\", time = \"10 us * slower\" }";
        let (low, high, _) = ends(&plan(&format!("slower = {factor}"), work), "slower");
        assert!(
            (low * 1.5 / factor - 1.0).abs() < 1e-9 && (high / 1.5 / factor - 1.0).abs() < 1e-9,
            "{low} {high}"
        );
    }
    let cases = |share: &str, then: &str, otherwise: &str| {
        format!("{{ probability = {share}, then = [{then}], otherwise = [{otherwise}] }}")
    };
    let (fast, slow) = ("{ compute = \"soc\", time = \"1 us\" }", "{ compute = \"soc\", time = \"50 us\" }");
    let hit = plan("hit = 0.99", &cases("\"hit\"", fast, slow));
    let miss = plan("miss = 0.01", &cases("\"miss\"", slow, fast));
    let (low, high, _) = ends(&hit, "hit");
    let (least, most, _) = ends(&miss, "miss");
    assert!(
        (low + most - 1.0).abs() < 1e-9 && (high + least - 1.0).abs() < 1e-9,
        "{low} {high} {least} {most}"
    );
    near("the lower ends", hit.optimal.rate.range_80.0, miss.optimal.rate.range_80.0, 0.03);
    near("the upper ends", hit.optimal.rate.range_80.1, miss.optimal.rate.range_80.1, 0.03);
    // Written where they are used, the times are drawn together and the share by itself.
    let unnamed = plan("", &cases("0.5", slow, ""));
    assert_eq!(ends(&unnamed, "probability").2, None);
    assert_eq!(ends(&unnamed, "time").2.as_deref(), Some("soc.cpu"));
    let swapped = plan("", &cases("0.5", "", slow));
    near("swapped", unnamed.optimal.rate.range_80.0, swapped.optimal.rate.range_80.0, 0.05);
    near("swapped", unnamed.optimal.rate.range_80.1, swapped.optimal.rate.range_80.1, 0.05);
}
