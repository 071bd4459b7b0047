//! What a card would give a design if something of it were otherwise.

use crate::common::*;
use offpath_plan::comparison::{CompareAsk, Comparison, DrawnRatio, Entrant, on_device};
use offpath_plan::whatif::{ChangeAsk, ChangeStudy, TriedChange, TriedOutcome};
use offpath_plan::{Changes, Design, Ranged, Setting};
use offpath_profile::{Category, Library, SystemRequest};
use offpath_twin::Seed;

/// Small WRITEs to a hot range of the SoC's memory, and large ones to either memory.
const HOT: &str = r#"
[design]
name = "hot"
device = "bluefield2"
testbed = "rack"
objective = "most-throughput"
rank_by = "throughput"
[workload]
ycsb = "../workloads/workloada"
set = { recordcount = 24, fieldcount = 1, fieldlength = 64, readproportion = 0.0, updateproportion = 1.0, requestdistribution = "uniform" }
[object.counters]
entry = "record"
[[alternative]]
name = "counters"
update = [ { write = "client-soc", bytes = "record", object = "counters" } ]
"#;

/// Large WRITEs to the SoC, which the link to it carries in TLPs.
const LARGE: &str = r#"
[design]
name = "large"
device = "bluefield2"
testbed = "rack"
objective = "most-throughput"
rank_by = "throughput"
[[alternative]]
name = "copy"
request = [ { write = "soc-host", bytes = "64 KiB" } ]
"#;

/// The library with overlays of a user's.
fn library(overlays: &[(&str, &str)]) -> Library {
    let mut library = Library::builtin();
    for (name, lines) in overlays {
        let text = format!("[overlay]\nname = \"{name}\"\ndescription = \"tried\"\n[set]\n{lines}\n");
        library.insert(Category::Overlay, name, &text);
    }
    library
}

fn tried(text: &str, library: Library, overlays: &[&str]) -> Result<ChangeStudy, miette::Report> {
    let design = parse(text, &Changes::default());
    let overlays: Vec<String> = overlays.iter().map(ToString::to_string).collect();
    ChangeStudy::of(&ChangeAsk {
        design: &design,
        changes: &Changes::default(),
        setting: &Setting::plain(library),
        overlays: &overlays,
        settings: &[],
        seed: Seed::new(1),
    })
}

fn change<'s>(study: &'s ChangeStudy, name: &str) -> &'s TriedChange {
    study.tried.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} is tried"))
}

/// A change beside the card as it is.
fn over(study: &ChangeStudy, name: &str) -> DrawnRatio {
    let then = study.then(change(study, name)).unwrap_or_else(|| panic!("{name} was an entrant"));
    let then = then.unwrap_or_else(|why| panic!("{name} has a plan: {why}"));
    then.over.as_ref().expect("both have one").drawn
}

/// The card with and without an overlay, drawn together.
fn beside(text: &str, overlay: &str, lines: &str) -> DrawnRatio {
    let design: Design = parse(text, &Changes::default());
    let mut changed = Entrant::device(&design.device);
    (changed.name, changed.overlays) = (overlay.to_string(), vec![overlay.to_string()]);
    let comparison = Comparison::of(&CompareAsk {
        design: &design,
        changes: &Changes::default(),
        setting: &Setting::plain(library(&[(overlay, lines)])),
        entrants: &[Entrant::device(&design.device), changed],
        beside_first: true,
        seed: Seed::new(1),
    });
    let comparison = comparison.expect("both have a plan");
    let over = comparison.contenders[1].outcome.as_ref().expect("it has a plan").over.as_ref();
    over.expect("it stands beside the card as it is").drawn
}

fn rate(text: &str, overlays: &[&str]) -> f64 {
    let design = parse(text, &Changes::default());
    let study = study_of(&design, &Changes::default(), &setting(overlays, &[])).expect("it has a plan");
    study.checked.plan.optimal.rate.value
}

fn is_exactly_one(ranged: Option<Ranged>) -> bool {
    ranged.is_some_and(|one| (one.value, one.range_95, one.median) == (1.0, (1.0, 1.0), 1.0))
}

/// Numbers that are set to what they are, and numbers that no step of the design visits, change no draw at all.
#[test]
fn what_changes_nothing_gains_nothing_in_any_draw() {
    let cases = [
        ("once", "\"soc.bank_write_time\" = { times = 1 }"),
        ("as-it-is", "\"soc.cores\" = 8"),
        ("elsewhere", "\"dma.request_time\" = \"1 ns\"\n\"dma.read_rate\" = \"10 Gbit/s\""),
        (
            "interval-elsewhere",
            "\"dma.request_time\" = { value = \"73 ns\", low = \"1 ns\", high = \"1 us\" }",
        ),
    ];
    for (name, lines) in cases {
        let drawn = beside(HOT, name, lines);
        assert!(drawn.is_same, "{name}: {drawn:?}");
        assert!(is_exactly_one(drawn.worth) && is_exactly_one(drawn.latency), "{name}: {drawn:?}");
        assert_eq!((drawn.better_in, drawn.worse_in), (0.0, 0.0), "{name}");
    }
}

/// What a suggestion gains is what planning with its overlay and without by hand gives.
#[test]
fn a_gain_is_that_of_two_plans() {
    for (text, name) in [(HOT, "soc-ddio"), (LARGE, "soc-pcie-mtu")] {
        let study = tried(text, Library::builtin(), &[]).expect("it is planned");
        let (now, then) = (rate(text, &[]), rate(text, &[name]));
        let then_here = study.then(change(&study, name)).expect("it applies").expect("it has a plan");
        let now_here = study.now().expect("it has a plan");
        assert_eq!(now_here.checked.plan.optimal.rate.value, now, "{name}");
        assert_eq!(then_here.checked.plan.optimal.rate.value, then, "{name}");
        let gain = over(&study, name);
        let worth = gain.worth.expect("both carry something");
        assert!((worth.value / (then / now) - 1.0).abs() < 1e-9, "{name}: {worth:?} against {}", then / now);
        assert!(worth.value > 1.05 && gain.better_in > 0.8, "{name} gains where it is made to: {worth:?}");
        assert!((worth.range_80.0..=worth.range_80.1).contains(&worth.value), "{name}: {worth:?}");
        assert!(!ChangeStudy::is_unused(now_here, then_here), "{name}");
    }
}

/// What both share cancels: a multiple of a number is that multiple in every draw, however little the number is known.
#[test]
fn a_multiple_is_drawn_with_its_number() {
    // The banks bind the card as it is and with them twice as quick: the rate follows in every draw of their time.
    let drawn = beside(HOT, "half", "\"soc.bank_write_time\" = { times = 0.9 }");
    let worth = drawn.worth.expect("both carry something");
    assert!((worth.value * 0.9 - 1.0).abs() < 0.01, "{worth:?}");
    let (low, high) = worth.range_95;
    assert!(high / low < 1.005, "{worth:?}: the time itself is known to a tenth");
    // An interval of the factor is drawn too.
    let drawn = beside(HOT, "guess", "\"soc.bank_write_time\" = { times = 0.9, low = 0.7, high = 1.0 }");
    let (low, high) = drawn.worth.expect("both carry something").range_95;
    assert!(high / low > 1.1, "{drawn:?}");
}

/// What the card does not have is said with the number, and refused where somebody asks for it by name.
#[test]
fn what_a_card_lacks_is_named() {
    let study = tried(LARGE, Library::builtin(), &[]).expect("it is planned");
    for (name, number) in [("dpa-cache", "dpa_l1.latency"), ("dpa-memory", "dpa_to_dpa_memory.latency")] {
        let TriedOutcome::NotApplicable(why) = &change(&study, name).outcome else {
            panic!("{name}: {:?}", change(&study, name).outcome)
        };
        assert!(why.contains("bluefield2") && why.contains(number), "{name}: {why}");
        assert!(study.then(change(&study, name)).is_none());
        let refused = tried(LARGE, Library::builtin(), &[name]).err().expect("it was asked for").to_string();
        assert!(refused.contains(number), "{refused}");
    }
    let slip = library(&[("slip", "\"soc.pcie_mtus\" = \"512 B\"")]);
    assert!(tried(LARGE, slip, &["slip"]).err().expect("a slip").to_string().contains("soc.pcie_mtus"));
    let twice = tried(LARGE, library(&[("mine", "\"soc.cores\" = 9")]), &["mine", "mine"]);
    assert!(twice.err().expect("it is there twice").to_string().contains("`mine` is to be tried twice"));
    // The card of another generation writes into its cache already.
    let newer = LARGE.replace("\"bluefield2\"", "\"bluefield3\"").replace("\"rack\"", "\"bluefield3-pair\"");
    let study = tried(&newer, Library::builtin(), &[]).expect("it is planned");
    assert_eq!(change(&study, "soc-ddio").outcome, TriedOutcome::AlreadySo);
    assert!(matches!(change(&study, "dpa-cache").outcome, TriedOutcome::Entrant(_)));
}

/// A change that lets fewer cores do as well is told by the cores that the card has as it is.
#[test]
fn of_deployments_as_good_that_of_the_card_as_it_is_stays() {
    let design = parse(&text("aggregate-bf3.toml"), &Changes::default());
    let taken = |prefers: &[(&str, &str)]| {
        let prefers = prefers.iter().map(|(choice, value)| (choice.to_string(), value.to_string())).collect();
        let overlays = vec!["dpa-memory".to_string()];
        let entrant = Entrant { overlays, prefers, ..Entrant::device("bluefield3") };
        let ask = CompareAsk {
            design: &design,
            changes: &Changes::default(),
            setting: &setting(&[], &[]),
            entrants: &[],
            beside_first: true,
            seed: Seed::new(1),
        };
        let (_, own) = on_device(&ask, &entrant).expect("it is looked at");
        let search = own.expect("it runs").search.expect("it has choices");
        let cores = search.for_all.iter().find(|one| one.choice == "dpa_cores").expect("one of them");
        (cores.taken.clone(), cores.next.as_ref().map(|next| next.better_by))
    };
    let (free, by) = taken(&[]);
    assert!(free == ["8"] && by.is_some_and(|by| by < 1e-9), "16 are as good: {free:?} {by:?}");
    assert_eq!(taken(&[("dpa_cores", "16")]).0, ["16"]);
    assert_eq!(taken(&[("dpa_cores", "4")]).0, ["8"], "what is worse is not kept");
}

/// Each suggestion says of whom it is, and changes something of a shipped card.
#[test]
fn every_suggestion_applies_to_some_card() {
    let library = Library::builtin();
    let heads = library.suggestions().expect("they are in order");
    let names: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
    let known = ["cxl-host-dma", "dpa-cache", "dpa-memory", "soc-ddio", "soc-pcie-mtu", "soc-pcie-mtu-large"];
    assert_eq!(names, known);
    let page = std::fs::read_to_string(designs().join("../docs/whatif.md")).expect("the page is there");
    for head in &heads {
        let by = head.suggested_by.as_deref().expect("it is a suggestion");
        let listed = format!("| `{}` | {by} |", head.name);
        assert!(page.contains(&listed), "docs/whatif.md lists {listed}");
    }
    for name in names {
        let applies = library.names(Category::Device).into_iter().any(|device| {
            let of = |overlays| {
                let request = SystemRequest { device: &device.name, overlays, ..SystemRequest::default() };
                library.load(&request)
            };
            let plain = of(Vec::new()).expect("the device is shipped");
            of(vec![name]).is_ok_and(|changed| changed.numbers != plain.numbers)
        });
        assert!(applies, "{name}");
    }
}
