//! What a plan says of its own certainty, on cards whose every number is known in a stated way.

use crate::common::*;
use offpath_plan::Ranged;
use offpath_plan::factor::Origin;
use offpath_plan::known::{BoundedFigure, FigureOf, MovedBy, known, known_figures};
use offpath_plan::residual::{FigureKind, Lesson};
use offpath_plan::rests::{estimated, guessed};
use offpath_plan::solve::solved;
use offpath_plan::{Basis, Changes, Design, Plan, Ready, Setting, plan, prepare, prepare_named};
use offpath_profile::{Category, Library, Number, Provenance, System, SystemRequest};
use offpath_quantity::{Bytes, Quantity};
use offpath_route::{PathOperation, Router, Verb};
use offpath_twin::Seed;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The invented card, its numbers known as `known` says: by a data sheet, or as guesses within a fifth.
fn card(known: &dyn Fn(&str) -> Provenance) -> Library {
    let text = include_str!("../../profile/tests/data/invented.toml");
    let mut table = String::new();
    let lines = text.lines().map(|line| {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_string();
        }
        let Some((key, rest)) = line.split_once(" = { value = ") else { return line.to_string() };
        let known = known(&format!("{table}.{key}"));
        let (value, _) = rest.split_once(',').expect("a number has a source");
        if !known.is_guess() || value == "true" || value == "false" {
            return line.replace("\"datasheet\"", &format!("\"{}\"", known.name()));
        }
        let packet = ["pcie_mtu", "read_request_limit"].contains(&key);
        let end = |factor: f64| {
            // Packets come in powers of two alone.
            let factor = match packet {
                true if factor > 1.0 => 2.0,
                true => 1.0,
                false => factor,
            };
            let (number, unit) = value.trim_matches('"').split_once(' ').unwrap_or((value, ""));
            let number: f64 = number.parse().expect("a number");
            let moved = number * factor;
            match unit {
                "" if value.contains('.') => moved.min(1.0).to_string(),
                "" => moved.round().to_string(),
                unit => format!("\"{moved} {unit}\""),
            }
        };
        let word = known.name();
        format!("{key} = {{ value = {value}, low = {}, high = {}, source = \"invented\", provenance = \"{word}\" }}", end(0.8), end(1.25))
    });
    let text: Vec<String> = lines.collect();
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", &text.join("\n"));
    library
}

const DESIGN: &str = r#"
[design]
name = "two processors"
device = "invented"
objective = "most-throughput"
rank_by = "unloaded-latency"

[[alternative]]
name = "host"
request = [
  { send = "client-host", bytes = "64 B" },
  { send = "host-client", bytes = "64 B" },
]

[[alternative]]
name = "arm"
request = [
  { send = "client-arm", bytes = "64 B" },
  { send = "arm-client", bytes = "64 B" },
]

[[alternative]]
name = "atomic"
mixed = false
request = [ { fetch-and-add = "client-host" } ]
"#;

fn planned_on(library: Library, design: &str) -> Plan {
    let setting = Setting::plain(library);
    planned_with(&setting, design)
}

/// The design on the card of guesses, and on the same known by its data sheet.
static OF_GUESSES: LazyLock<Plan> = LazyLock::new(|| planned_on(card(&|_| Provenance::Assumed), DESIGN));
static OF_DATASHEET: LazyLock<Plan> = LazyLock::new(|| planned_on(card(&|_| Provenance::Datasheet), DESIGN));

fn ready_with(setting: &Setting, design: &str) -> (Design, Vec<Ready>) {
    let design = Design::parse(design, "d.toml", Path::new("."), &Changes::default()).expect("in order");
    let ready = prepare_named(&design, setting).expect("the card has these paths");
    (design, ready)
}

fn planned_with(setting: &Setting, design: &str) -> Plan {
    let (design, ready) = ready_with(setting, design);
    plan(&design, &ready, &folds(&ready), &[], Seed::new(3)).expect("there is a mix")
}

#[test]
fn a_card_of_guesses_is_good_for_an_order_alone() {
    let guess = &OF_GUESSES;
    for one in &guess.alternatives {
        assert_eq!(one.basis, Basis::OrderOnly, "{}", one.name);
    }
    assert_eq!(guess.recommendation.basis, Basis::OrderOnly);
    let carried = planned_on(card(&|_| Provenance::CarriedOver), DESIGN);
    assert!(carried.alternatives.iter().all(|one| one.basis == Basis::OrderOnly));
    // The same card known by its data sheet: what is left are guesses of the testbed's clients.
    let known = &OF_DATASHEET;
    assert!(alone(known, "host").basis < Basis::OrderOnly, "{:?}", alone(known, "host").rests_on);
    // Nothing published speaks of atomics, however well the card is described.
    assert_eq!(alone(known, "atomic").basis, Basis::OrderOnly);
}

/// What a published row measured is the shipped design on the shipped system. Numbers that a user's own files change are
/// changed as much as those of the command line, and the design's own device is part of it.
#[test]
fn a_row_is_about_the_system_that_is_shipped() {
    let replication = text("replication.toml");
    let is_other = |setting: &Setting, text: &str| {
        setting.is_other_system(&parse(text, &Changes::default())).expect("the profiles are in order")
    };
    let mut two_clients = Library::builtin();
    let rack = two_clients.source(Category::Testbed, "rack").expect("it is shipped").to_string();
    two_clients.insert(
        Category::Testbed,
        "rack",
        &rack.replace("count = { value = 11,", "count = { value = 2,"),
    );
    let mut same = Library::builtin();
    same.insert(Category::Testbed, "rack", &rack);
    let plain = Setting::plain(Library::builtin());
    assert!(!is_other(&plain, &replication));
    assert!(!is_other(&Setting::plain(same), &replication), "a copy is what it is a copy of");
    assert!(is_other(&Setting::plain(two_clients.clone()), &replication));
    assert!(is_other(&setting(&[], &["client.count=2"]), &replication));
    assert!(!is_other(&setting(&[], &["client.count=11"]), &replication), "it is what it was");
    let modes = Setting { mode: Some("embedded-cpu".into()), ..plain.clone() };
    assert!(is_other(&modes, &replication));
    let elsewhere = replication.replace("testbed = \"rack\"", "testbed = \"rack-cli\"");
    assert!(is_other(&plain, &elsewhere), "the design says otherwise");
    // A setting by a choice that the copy has no more, or calls otherwise, is another.
    let aggregate = text("aggregate-bf3.toml");
    let renamed = aggregate.replace("dpa_cores", "cores");
    let dropped = aggregate.lines().filter(|line| !line.contains("dpa_cores")).collect::<Vec<_>>().join("\n");
    assert!(!is_other(&plain, &aggregate) && renamed != aggregate && dropped != aggregate);
    assert!(is_other(&plain, &renamed) && is_other(&plain, &dropped));
    // A design of one's own is on its own system.
    let own = replication.replace("name = \"replication\"", "name = \"mine\"");
    assert!(
        !is_other(&Setting::plain(two_clients.clone()), &own)
            && is_other(&setting(&[], &["client.count=2"]), &own)
    );
    // Whoever lays files beside the shipped ones has no evidence that the command line would take away.
    let design = parse(&replication, &Changes::default());
    let ready = prepare(&design, &Setting::plain(two_clients)).expect("the numbers are in order");
    let cited: Vec<_> = ready.iter().flat_map(|one| &one.alternative.rows).collect();
    assert!(!cited.is_empty() && cited.iter().all(|(_, objection)| objection.is_some()), "{cited:?}");
}

/// Where the card's mode costs what no number says, nothing follows from the numbers.
#[test]
fn a_mode_that_no_number_speaks_of_is_weak_at_best() {
    let bases = |mode: Option<&str>| {
        let library = card(&|_| Provenance::Datasheet);
        let mode = mode.map(str::to_string);
        let setting = Setting { mode, ..Setting::plain(library) };
        let plan = planned_with(&setting, DESIGN);
        [alone(&plan, "host").basis, alone(&plan, "arm").basis, plan.recommendation.basis]
    };
    assert_eq!(bases(None), [Basis::Predicted; 3]);
    assert_eq!(bases(Some("embedded-cpu")), [Basis::Weak; 3]);
}

/// What past predictions were wrong by makes no port faster, of an alternative or of a mix.
#[test]
fn no_interval_reaches_beyond_what_a_port_carries() {
    const DESIGN: &str = r#"
[design]
name = "bulk"
device = "bluefield2"
objective = "most-throughput"
rank_by = "throughput"
[[alternative]]
name = "out"
request = [ { read = "client-host", bytes = "1 MiB" } ]
[[alternative]]
name = "in"
request = [ { write = "client-host", bytes = "1 MiB" } ]
"#;
    let plan = planned_on(Library::builtin(), DESIGN);
    let port = 200e9 / 8.0 / f64::from(1 << 20);
    for one in &plan.alternatives {
        assert!(one.rate.range_95.0 < 0.95 * one.rate.value, "errors widen it: {:?}", one.rate);
        assert!(one.rate.range_95.1 <= port, "{}: {:?} of {port}", one.name, one.rate);
        // Headers are part of the model, so that an error may be theirs.
        assert!(one.rate.range_95.1 > 0.99 * port && one.rate.value < 0.97 * port, "{:?}", one.rate);
    }
    let Ranged { range_95: (_, high), .. } = plan.optimal.rate;
    assert!(high > port && high <= 2.0 * port, "both directions carry {high} of twice {port}");
}

/// Rates of the card's alternatives where the number of a key stands at an end of its interval, everywhere.
fn rates_at(guessed: &Library, key: &str, end: fn(&Number) -> Option<Quantity>) -> Vec<f64> {
    let setting = |settings| Setting { settings, ..Setting::plain(guessed.clone()) };
    let system =
        guessed.load(&SystemRequest { device: "invented", ..SystemRequest::default() }).expect("in order");
    let of_key =
        system.numbers.iter().filter(|(_, number)| number.key == key && number.file.contains("invented"));
    let settings = of_key.filter_map(|(name, number)| Some(format!("{name}={}", end(number)?)));
    let (design, ready) = ready_with(&setting(settings.collect()), DESIGN);
    let seen = solved(&design, &ready, &folds(&ready)).expect("there is a mix");
    seen.alone.iter().take(2).map(|one| one.total).collect()
}

/// Whatever number becomes a guess, those alternatives fall that it moves, and no others. What moves is found by
/// planning the card with the number at either end.
#[test]
fn one_guess_lowers_exactly_what_it_moves() {
    let library = card(&|_| Provenance::Datasheet);
    let system =
        library.load(&SystemRequest { device: "invented", ..SystemRequest::default() }).expect("in order");
    let own: Vec<String> = system
        .numbers
        .values()
        .filter(|number| number.file.contains("invented"))
        .map(|number| number.key.clone())
        .collect();
    let known = planned_on(library, DESIGN);
    let (mut lowered, mut untouched) = (0, 0);
    // Every fourth number: all of them take minutes.
    for key in own.iter().step_by(4) {
        let guessed = card(&|name| if name == key { Provenance::Assumed } else { Provenance::Datasheet });
        let ends =
            [rates_at(&guessed, key, |number| number.low), rates_at(&guessed, key, |number| number.high)];
        let plan = planned_on(guessed, DESIGN);
        for (index, (before, after)) in known.alternatives.iter().zip(&plan.alternatives).take(2).enumerate()
        {
            let moves =
                ends.iter().map(|end| (end[index] / after.rate.value - 1.0).abs()).fold(0.0, f64::max);
            if moves > 0.02 {
                lowered += 1;
                assert!(after.basis >= Basis::Weak, "{key} moves {} by {moves}", after.name);
            } else if moves < 0.005 {
                untouched += 1;
                assert_eq!(after.basis, before.basis, "{key} does not move {}", after.name);
            }
        }
    }
    assert!(lowered >= 2 && untouched >= 10, "{lowered} lowered, {untouched} untouched");
}

/// A flag that was measured is taken as it is: what binds beside guesses is known no better for it.
#[test]
fn a_measured_flag_lifts_no_basis() {
    let flag = Library::builtin().load(&SystemRequest { device: "bluefield3", ..SystemRequest::default() });
    let flag = flag.expect("it loads").numbers["soc.ddio"].clone();
    assert_eq!(
        (flag.value.base(), flag.provenance),
        (1.0, Provenance::Measured),
        "it is a measured flag that is set"
    );
    // One client's WRITEs to eight records, which without DDIO would wait for banks.
    let design = "[design]\nname = \"own\"\ndevice = \"bluefield3\"\ntestbed = \"rack\"\nset = [\"client.count=1\"]\n\
                  objective = \"most-throughput\"\nrank_by = \"throughput\"\n[workload]\nycsb = \"../../workloads/workloada\"\n\
                  set = { recordcount = 8, requestdistribution = \"uniform\", fieldcount = 1, fieldlength = 64, \
                  readproportion = 1.0, updateproportion = 0.0 }\n[object.hot]\nentry = \"64 B\"\n[[alternative]]\n\
                  name = \"a\"\nread = [{ write = \"client-soc\", bytes = \"64 B\", object = \"hot\" }]\n";
    let plan = planned_on(Library::builtin(), design);
    let one = &plan.alternatives[0];
    assert!(one.rests_on.iter().all(|rest| rest.number != "soc.ddio"), "{:?}", one.rests_on);
    assert_eq!(one.basis, Basis::OrderOnly, "{:?}", one.rests_on);
}

/// A flag has no interval, and is looked at as the other one that it may be.
#[test]
fn a_guessed_flag_is_a_guess() {
    let shipped = Library::builtin();
    let text = shipped.source(Category::Device, "bluefield2").expect("it ships");
    let measured = "ddio = { value = false, source = \"wei2023 §3.2\", provenance = \"measured\" }";
    assert!(text.contains(measured), "the card says whether its SoC has DDIO");
    let text = text.replace(measured, "ddio = { value = false, source = \"s\", provenance = \"assumed\" }");
    let mut library = Library::builtin();
    library.insert(Category::Device, "bluefield2", &text);
    // Twenty-four records of 64 B in the SoC's memory reach few banks, which DDIO would spare.
    let design = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                  rank_by = \"throughput\"\n[workload]\nycsb = \"../../workloads/workloadc\"\nset = { recordcount = 24, \
                  requestdistribution = \"uniform\", fieldcount = 1, fieldlength = 64, readproportion = 0, updateproportion = 1 }\n\
                  [object.hot]\nentry = \"64 B\"\n[[alternative]]\nname = \"a\"\n\
                  update = [{ write = \"client-soc\", bytes = \"64 B\", object = \"hot\" }]\n";
    let plan = planned_on(library, design);
    let one = &plan.alternatives[0];
    let flag = one.rests_on.iter().find(|rest| rest.number == "soc.ddio");
    let flag = flag.unwrap_or_else(|| panic!("{:?}", one.rests_on));
    assert!(flag.moves > 0.5 && flag.weight > 0.1, "{flag:?}");
    assert!(one.basis >= Basis::Weak, "{:?} by {:?}", one.basis, one.rests_on);
}

#[test]
fn the_joint_interval_holds_the_value_and_grows_with_what_is_open() {
    let known = &OF_DATASHEET;
    let guess = &OF_GUESSES;
    // The atomic is bound by the client, which is the testbed's in both.
    for (known, guess) in known.alternatives.iter().zip(&guess.alternatives).take(2) {
        for one in [known, guess] {
            let (rate, latency) = (one.rate, one.latency_s);
            for figure in [rate, latency] {
                assert!(figure.range_95.0 <= figure.range_80.0 && figure.range_80.1 <= figure.range_95.1);
                assert!(figure.range_80.0 <= figure.value && figure.value <= figure.range_80.1, "{figure:?}");
            }
        }
        let width = |(low, high): (f64, f64)| high / low;
        // Past errors are as wide as the guesses here, and few: their steps decide where the 80% interval ends.
        assert!(width(guess.rate.range_95) > width(known.rate.range_95), "{}", guess.name);
    }
    let again = planned_on(card(&|_| Provenance::Assumed), DESIGN);
    assert_eq!(
        format!("{:?}", again.alternatives),
        format!("{:?}", guess.alternatives),
        "same seed, same bytes"
    );
    assert!((0.0..=1.0).contains(&guess.recommendation.best_in));
    let sets: f64 = guess.recommendation.best_sets.iter().map(|(_, share)| share).sum();
    assert!((sets - 1.0).abs() < 1e-9);
}

/// An interval without room does not make a guess exact.
#[test]
fn a_guess_without_room_is_a_guess() {
    let exact = |name: &str| format!("{name} is exact");
    let text = include_str!("../../profile/tests/data/invented.toml");
    let lines: Vec<String> = text
        .lines()
        .map(|line| match line.split_once(" = { value = ") {
            Some((key, rest)) if !rest.starts_with("true") && !rest.starts_with("false") => {
                let (value, _) = rest.split_once(',').unwrap_or_else(|| panic!("{}", exact(key)));
                format!("{key} = {{ value = {value}, low = {value}, high = {value}, source = \"s\", provenance = \"assumed\" }}")
            }
            _ => line.replace("\"datasheet\"", "\"assumed\""),
        })
        .collect();
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", &lines.join("\n"));
    let plan = planned_on(library, DESIGN);
    assert!(
        plan.alternatives.iter().all(|one| one.basis == Basis::OrderOnly),
        "{:?}",
        plan.alternatives[0].rests_on
    );
}

/// Who claims that a card's guesses are exact is believed no more than who says how far off they may be.
#[test]
fn guesses_that_claim_to_be_exact_raise_no_basis() {
    let shipped = include_str!("../../../profiles/devices/bluefield2.toml");
    let exact = |line: &str| -> Option<String> {
        let is_guess = ["\"assumed\"", "\"carried-over\""].iter().any(|word| line.contains(word));
        let (key, rest) = line.split_once(" = { value = ").filter(|_| is_guess)?;
        let (value, rest) = rest.split_once(", low = ")?;
        let (_, rest) = rest.split_once(", source = ")?;
        Some(format!("{key} = {{ value = {value}, low = {value}, high = {value}, source = {rest}"))
    };
    let lines: Vec<String> =
        shipped.lines().map(|line| exact(line).unwrap_or_else(|| line.to_string())).collect();
    let text = lines.join("\n");
    assert_ne!(text, shipped);
    let mut library = Library::builtin();
    let bases = |library: &Library| {
        let system = library
            .load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() })
            .expect("in order");
        let router = Router::new(&system).expect("it has routes");
        let operations: Vec<PathOperation> = ["client-soc", "host-soc", "soc-host"]
            .iter()
            .flat_map(|path| [Verb::Read, Verb::Write].map(|verb| (*path, verb)))
            .map(|(path, verb)| PathOperation::new(verb, path.parse().expect("a path"), Bytes::new(4096)))
            .collect();
        let known = known(&router, &operations, Seed::new(1)).expect("they are known");
        known.iter().flat_map(|one| [one.latency_basis, one.rate_basis]).collect::<Vec<Basis>>()
    };
    let before = bases(&library);
    library.insert(Category::Device, "bluefield2", &text);
    let after = bases(&library);
    assert!(before.iter().zip(&after).all(|(was, is)| is >= was), "{before:?} became {after:?}");
    assert!(before.contains(&Basis::Weak), "some rest on guesses: {before:?}");
}

#[test]
fn the_weights_of_what_a_figure_rests_on_sum_to_one() {
    let plan = &OF_GUESSES;
    assert!(plan.alternatives.iter().take(2).all(|one| guessed(&one.rests_on) > 0.5));
    for one in &plan.alternatives {
        let total: f64 = one.rests_on.iter().map(|rest| rest.weight).sum();
        assert!((total - 1.0).abs() < 1e-9, "{}: {total}", one.name);
    }
}

#[test]
fn a_guessed_processor_time_is_called_the_users_estimate() {
    let with = |time: &str| {
        let answer = "{ send = \"host-client\", bytes = \"64 B\" }";
        let text = DESIGN.replacen(answer, &format!("{{ compute = \"host\", time = {time} }}, {answer}"), 1);
        planned_on(card(&|_| Provenance::Datasheet), &text)
    };
    let plan = with("\"2 us\"");
    let host = alone(&plan, "host");
    assert_eq!(host.basis, Basis::YourEstimate, "{:?}", host.rests_on);
    let own = host.rests_on.iter().find(|rest| rest.origin == Origin::Yours).expect("the time counts");
    assert_eq!(own.number, "alternative.host.request.2.time");
    // The rest are the cores that it is spread over, and what sending and receiving take.
    assert!(own.weight > 0.3, "{own:?}");
    assert_ne!(alone(&plan, "arm").basis, Basis::YourEstimate, "the other is not touched");
    // An interval of the user's is drawn with all the others.
    let wide = with("\"1 us to 8 us\"");
    let (low, high) = alone(&wide, "host").rate.range_80;
    assert!(high / low > 3.0, "{low} to {high}");
}

/// A time without an interval may be off by half, as any guess: a figure rests on it also where it binds only
/// then. Its author's interval says otherwise.
#[test]
fn a_time_that_would_bind_a_little_further_is_an_estimate() {
    let with = |step: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
             request = [{{ read = \"client-host\", bytes = \"1 MiB\" }}{step}]\n"
        );
        planned_on(Library::builtin(), &text)
    };
    let plain = with("");
    let busy = 0.8e9 * plain.servers["client.cpu"] / alone(&plain, "a").rate.value;
    assert_ne!(alone(&plain, "a").basis, Basis::YourEstimate);
    let guessed = with(&format!(", {{ compute = \"client\", time = \"{busy:.0} ns\" }}"));
    near("the rate", alone(&guessed, "a").rate.value, alone(&plain, "a").rate.value, 1e-6);
    assert_eq!(alone(&guessed, "a").basis, Basis::YourEstimate, "{:?}", alone(&guessed, "a").rests_on);
    // In eight steps it is as little known, though none of them alone binds anything.
    let step = format!(", {{ compute = \"client\", time = \"{:.0} ns\" }}", busy / 8.0);
    let split = with(&step.repeat(8));
    near("the rate", alone(&split, "a").rate.value, alone(&guessed, "a").rate.value, 1e-6);
    let one = alone(&split, "a");
    let yours: Vec<&str> = one
        .rests_on
        .iter()
        .filter(|rest| rest.origin == Origin::Yours && rest.moves > 0.01)
        .map(|rest| rest.number.as_str())
        .collect();
    assert_eq!(yours, ["your numbers together"], "{:?}", one.rests_on);
    // They are counted one by one already.
    near("the weights", one.rests_on.iter().map(|rest| rest.weight).sum(), 1.0, 1e-6);
    assert_eq!(one.basis, Basis::YourEstimate, "{:?}", one.rests_on);
    let ends = format!("{:.0} ns to {:.0} ns", 0.95 * busy, 1.05 * busy);
    let known = with(&format!(", {{ compute = \"client\", time = \"{ends}\" }}"));
    assert_ne!(alone(&known, "a").basis, Basis::YourEstimate, "{:?}", alone(&known, "a").rests_on);
}

/// A guess is as wide however it is written: in one step or in ten, as a time or as a rate, in one alternative or in two.
#[test]
fn a_guess_is_as_wide_however_it_is_written() {
    let answer = "{ send = \"host-client\", bytes = \"64 B\" }";
    let with = |steps: &str| {
        let steps = format!("{steps}, {answer}");
        planned_on(card(&|_| Provenance::Datasheet), &DESIGN.replacen(answer, &steps, 1))
    };
    let of = |plan: &Plan| alone(plan, "host").rate;
    let one = of(&with("{ compute = \"host\", time = \"20 us\" }"));
    let ten = of(&with(&["{ compute = \"host\", time = \"2 us\" }"; 10].join(", ")));
    // 2,500 B at 1 Gbit/s are 20 us.
    let rate = of(&with("{ compute = \"host\", bytes = \"2500 B\", rate = \"1 Gbit/s\" }"));
    for (name, other) in [("ten steps", ten), ("a rate", rate)] {
        near(name, other.value, one.value, 1e-6);
        for (end, of_one) in [(other.range_80, one.range_80), (other.range_95, one.range_95)] {
            near(name, end.0, of_one.0, 1e-4);
            near(name, end.1, of_one.1, 1e-4);
        }
    }
    assert!(one.range_95.1 / one.range_95.0 > 2.0, "{one:?}");
}

/// One number that was measured, and that nothing rests on, makes no guess surer; nor does the name of a card to which
/// rows are fitted.
#[test]
fn a_measured_number_that_decides_nothing_narrows_no_interval() {
    let wide = |library: Library, design: &str| {
        let (low, high) = alone(&planned_on(library, design), "host").rate.range_80;
        high / low
    };
    let guessed = wide(card(&|_| Provenance::Assumed), DESIGN);
    let of_one = |key: &str| match key == "arm.cores" {
        true => Provenance::MeasuredHere,
        false => Provenance::Assumed,
    };
    near("one measured", wide(card(&of_one), DESIGN), guessed, 0.01);
    let library = card(&|_| Provenance::Assumed);
    let text = library.source(Category::Device, "invented").expect("it was inserted").to_string();
    let mut library = Library::builtin();
    library.insert(
        Category::Device,
        "bluefield2",
        &text.replace("name = \"invented\"", "name = \"bluefield2\""),
    );
    near("by name", wide(library, &DESIGN.replace("\"invented\"", "\"bluefield2\"")), guessed, 0.01);
    // What a figure rests on decides: with all of it measured the errors of fitted cards speak.
    assert!(wide(card(&|_| Provenance::MeasuredHere), DESIGN) < guessed / 1.5);
}

/// Where a time of the user's begins to outweigh the guesses of a card, its basis is another one, and what predictions of
/// such cards were wrong by is not.
#[test]
fn a_longer_time_of_the_users_makes_no_card_surer() {
    let at = |time: &str| {
        let design = format!(
            "[design]\nname = \"c\"\ndevice = \"bluefield3\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
             [[alternative]]\nname = \"a\"\nrequest = [ {{ send = \"client-soc\", bytes = \"64 B\" }}, \
             {{ compute = \"soc\", time = \"{time}\" }}, {{ send = \"soc-client\", bytes = \"64 B\" }} ]\n"
        );
        let plan = planned_on(Library::builtin(), &design);
        let (low, high) = alone(&plan, "a").rate.range_80;
        assert_eq!(plan.recommendation.lessons.into_iter().collect::<Vec<_>>(), [Lesson::OfGuessedCards]);
        (plan.recommendation.basis, high / low)
    };
    let (short, long) = (at("3 us"), at("6 us"));
    assert_eq!((short.0, long.0), (Basis::OrderOnly, Basis::YourEstimate));
    near("the reach", long.1, short.1, 0.1);
}

/// What a data sheet says was held to no prediction.
#[test]
fn a_data_sheet_is_no_lesson() {
    assert_eq!(OF_DATASHEET.recommendation.lesson, Lesson::OfGuessedCards);
    let measured = planned_on(card(&|_| Provenance::MeasuredHere), DESIGN);
    assert_eq!(measured.recommendation.lesson, Lesson::OfFittedCards);
}

/// Who gives no interval knows no more than who gives one: a time is drawn by half to either side, and what it decides is
/// no surer than by an interval as wide.
#[test]
fn an_estimate_without_an_interval_makes_nothing_surer() {
    let with = |time: &str| {
        let answer = "{ send = \"host-client\", bytes = \"64 B\" }";
        let step = format!("{{ compute = \"host\", time = {time} }}, {answer}");
        planned_on(card(&|_| Provenance::Datasheet), &DESIGN.replacen(answer, &step, 1))
    };
    let range = |plan: &Plan| alone(plan, "host").rate.range_80;
    let silent = with("\"20 us\"");
    // What has no interval is drawn at the place of its processor's guesses, what has one at its own.
    let said = range(&with("{ value = \"20 us\", low = \"13.333333 us\", high = \"30 us\" }"));
    near("the lower end", range(&silent).0, said.0, 1e-3);
    near("the upper end", range(&silent).1, said.1, 1e-3);
    // What is said with an interval may be surer, and what claims to be exact is not.
    let (narrow, exact) = (with("\"19 us to 21 us\""), with("\"20 us to 20 us\""));
    let wide = |plan: &Plan| range(plan).1 / range(plan).0;
    assert!(wide(&narrow) < wide(&silent), "{} and {}", wide(&narrow), wide(&silent));
    assert_eq!(range(&exact), range(&silent));
}

/// A number that can end what an alternative carries, or begin it, moves it as far as can be: it is never passed over for
/// having no ratio.
#[test]
fn a_number_that_makes_a_figure_nothing_decides_it() {
    let with = |objective: &str, hits: &str, constraint: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\n{objective}\nrank_by = \"throughput\"\n\
             [parameters]\nhits = {hits}\n{constraint}\n[[alternative]]\nname = \"a\"\nrequest = [\n\
             {{ send = \"client-soc\", bytes = \"64 B\" }},\n\
             {{ probability = \"hits\", then = [], otherwise = [{{ send = \"soc-host\", bytes = \"64 B\" }}, \
             {{ send = \"host-soc\", bytes = \"64 B\" }}] }},\n{{ send = \"soc-client\", bytes = \"64 B\" }}]\n"
        );
        planned_on(Library::builtin(), &text)
    };
    let most = "objective = \"most-throughput\"";
    let hits = "{ value = 1.0, low = 0.9, high = 1.0 }";
    for plan in [
        with(most, hits, ""),
        with(most, hits, "[constraints]\nhost_cpu_share = 0.0"),
        with("objective = \"least-host-cpu\"\noffered_load = \"10 M/s\"", hits, ""),
    ] {
        let rests = &plan.recommendation.rests_on;
        assert!(rests.iter().any(|rest| rest.number == "parameters.hits" && rest.moves > 0.01), "{rests:?}");
        assert!(plan.recommendation.basis >= Basis::YourEstimate, "{:?}", plan.recommendation.basis);
        assert!(!estimated(rests).is_sign_negative() && !guessed(rests).is_sign_negative());
    }
}

/// Who admits that a number of the design is a guess gets no better basis for it.
#[test]
fn a_number_of_the_design_that_is_called_assumed_is_no_better_known() {
    let with = |provenance: &str| {
        let time = format!("{{ value = \"150 ns\", low = \"50 ns\", high = \"400 ns\"{provenance} }}");
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
             request = [{{ send = \"client-soc\", bytes = \"64 B\" }}, {{ compute = \"soc\", time = {time} }}, \
             {{ send = \"soc-client\", bytes = \"64 B\" }}]\n"
        );
        alone(&planned_on(Library::builtin(), &text), "a").basis
    };
    assert_eq!(with(""), Basis::YourEstimate);
    assert!(with(", provenance = \"assumed\"") >= Basis::YourEstimate);
}

/// What an alternative carries alone, and a mix at its shares, is the same whatever load the design asks of the best one: draws
/// in which that load is not carried count for them too.
#[test]
fn the_load_that_is_asked_for_does_not_choose_the_draws_of_capacities() {
    let of = |objective: &str| {
        let text = DESIGN.replace("objective = \"most-throughput\"", objective);
        assert!(text.contains(objective));
        planned_on(Library::builtin(), &text.replace("\"invented\"", "\"bluefield2\"").replace("arm", "soc"))
    };
    let free = of("objective = \"most-throughput\"");
    let load = 0.97 * free.optimal.rate.value;
    let asked = of(&format!("objective = \"least-host-cpu\"\noffered_load = \"{load:.0}/s\""));
    assert!((0.1..0.9).contains(&asked.recommendation.carried_in), "{:?}", asked.recommendation);
    for (one, other) in free.alternatives.iter().zip(&asked.alternatives) {
        assert_eq!((&one.name, one.rate), (&other.name, other.rate));
        assert_eq!((&one.name, one.latency_s), (&other.name, other.latency_s));
    }
    assert!(free.greedy.shares.len() == 2 && free.greedy.shares == asked.greedy.shares, "{:?}", free.greedy);
    assert_eq!(free.greedy.rate, asked.greedy.rate);
}

/// Who asks for more knows no better what a request costs: the host's time and the latency of the same shares have the same
/// intervals at a load that every draw carries and at one that half of them do.
#[test]
fn a_greater_load_makes_no_cost_surer() {
    let steps = "{ send-ud = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"1 us to 5 us\" }, \
                 { send-ud = \"host-client\", bytes = \"64 B\" }";
    let plan = |objective: &str, load: Option<f64>| {
        let load = load.map(|load| format!("offered_load = \"{load:.0}/s\"\n")).unwrap_or_default();
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"{objective}\"\n{load}\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n"
        );
        planned_on(Library::builtin(), &text)
    };
    let most = plan("most-throughput", None).optimal.rate.value;
    for objective in ["least-host-cpu", "lowest-p99"] {
        let [little, much] = [0.3, 0.97].map(|part| plan(objective, Some(part * most)));
        let (all, some) = (little.recommendation.carried_in, much.recommendation.carried_in);
        assert!(all > 0.99 && (0.3..0.7).contains(&some), "{objective}: carried in {all} and {some}");
        near(objective, much.worth.value, little.worth.value, 1e-9);
        for (name, one, other) in [
            ("80%", much.worth.range_80, little.worth.range_80),
            ("95%", much.worth.range_95, little.worth.range_95),
        ] {
            near(&format!("{objective}: low of {name}"), one.0, other.0, 1e-9);
            near(&format!("{objective}: high of {name}"), one.1, other.1, 1e-9);
        }
    }
}

/// Who sends an alternative a share of all requests gets no more of them than what it carries over that share, whatever
/// the card does.
#[test]
fn no_mix_beats_a_part_of_it_by_more_than_its_share_leaves() {
    let designs = [
        "aggregate-bf3",
        "compaction-offload",
        "kv-batching",
        "kv-ycsb-c",
        "mongo-sharding",
        "nic-cache",
        "pubsub-fanout",
        "redis-sharding",
        "regex-logs",
    ];
    let mut parts = 0;
    for name in designs {
        // What is open of a whole deployment is fixed, where anything is.
        let deployed =
            [("far", "dpa:soc"), ("dpa_cores", "16")].map(|(name, value)| (name.into(), value.into()));
        let parameters = deployed.into_iter().filter(|_| name == "aggregate-bf3").collect();
        let changes = Changes { parameters, ..Changes::default() };
        let plan = planned(&parse(&text(&format!("{name}.toml")), &changes), &[], &[]);
        for over in &plan.recommendation.over {
            let share = plan.optimal.shares.iter().find(|(own, _)| *own == over.name);
            let Some((_, share)) = share else { continue };
            parts += 1;
            let (most, above) = (1.0 / share, over.ratio.range_95.1);
            assert!(above <= most * (1.0 + 1e-6), "{name}: over {} to {above}, at most {most}", over.name);
        }
    }
    assert!(parts > 15, "{parts}");
}

/// How often something happens is guessed as how long it takes is, whether or not it is planned at other values
/// besides. A share of nothing or of all is not a guess.
#[test]
fn a_guessed_share_is_called_the_users_estimate() {
    let of = |head: &str, alternative: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"invented\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n{head}\n[[alternative]]\nname = \"a\"\n{alternative}\n"
        );
        planned_on(card(&|_| Provenance::Datasheet), &text).alternatives.remove(0).basis
    };
    let branch = |probability: &str| {
        format!(
            "request = [{{ send = \"client-host\", bytes = \"64 B\" }}, {{ probability = {probability}, then = \
             [{{ read = \"host-arm\", bytes = \"64 KiB\" }}], otherwise = [] }}, \
             {{ send = \"host-client\", bytes = \"64 B\" }}]"
        )
    };
    let parameter = "[parameters]\nshare = 0.3";
    assert_eq!(of("", &branch("0.3")), Basis::YourEstimate);
    assert_eq!(of(parameter, &branch("\"share\"")), Basis::YourEstimate);
    assert_eq!(of("", &branch("1.0")), Basis::Predicted);
    let swept = "[sweep]\nparameter = \"share\"\nvalues = [0.1, 0.3]";
    assert_eq!(of(&format!("{parameter}\n{swept}"), &branch("\"share\"")), Basis::YourEstimate);
    let cache = "[object.values]\nentry = \"64 KiB\"\n[workload]\nycsb = \"../../workloads/workloadc\"\nset = { recordcount \
                 = 1000 }\n[cache]\nat = \"arm\"\nbudget = \"16 MiB\"\nhottest = \"values\"";
    let cached = |ratio: &str| {
        format!(
            "hit_ratio = {ratio}\nread = [{{ send = \"client-host\", bytes = \"64 B\" }}, {{ cached = \"values\", hit \
             = [], miss = [{{ read = \"host-arm\", bytes = \"64 KiB\" }}] }}, \
             {{ send = \"host-client\", bytes = \"64 B\" }}]"
        )
    };
    assert_eq!(of(cache, &cached("0.7")), Basis::YourEstimate);
    assert_eq!(of(cache, &cached("0.0")), Basis::Predicted);
}

#[test]
fn a_setting_is_an_estimate_and_a_setting_to_the_same_value_is_none() {
    let setting = |settings: &[&str]| Setting {
        settings: settings.iter().map(ToString::to_string).collect(),
        ..Setting::plain(card(&|_| Provenance::Datasheet))
    };
    let plain = planned_with(&setting(&[]), DESIGN);
    let same = planned_with(&setting(&["arm.cores=16"]), DESIGN);
    assert_eq!(format!("{plain:?}"), format!("{same:?}"), "nothing changes, so no digit does");
    let other = planned_with(&setting(&["arm.cores=3"]), DESIGN);
    assert_eq!(alone(&other, "arm").basis, Basis::YourEstimate, "{:?}", alone(&other, "arm").rests_on);
}

/// What changes the system beside the design changes what was measured of it, however it is asked for.
#[test]
fn no_flag_keeps_evidence_of_another_system() {
    let text = text("kv-ycsb-c.toml");
    let of = |changes: Changes, overlays: &[&str], settings: &[&str], mode: Option<&str>| {
        let setting = Setting { mode: mode.map(str::to_string), ..setting(overlays, settings) };
        let design = parse(&text, &Changes { steps: true, ..changes });
        let ready = prepare(&design, &setting).expect("the design is in order");
        let own = ready.iter().find(|one| one.alternative.name == "A1").expect("it is there");
        own.alternative.rows.iter().all(|(_, objection)| objection.is_none())
    };
    let none = Changes::default;
    assert!(of(none(), &[], &[], None), "as it is shipped");
    assert!(of(none(), &[], &["nic.inflight_slots=142"], Some("separated-host")), "to what is there already");
    assert!(!of(none(), &[], &["network.mtu=256B"], None));
    assert!(!of(none(), &["ideal-links"], &[], None));
    assert!(!of(none(), &[], &[], Some("embedded-cpu")));
    let folder = tempfile::tempdir().expect("a folder");
    let other = folder.path().join("workloadc");
    let file = std::fs::read_to_string(designs().join("../workloads/workloadc")).expect("it is there");
    // Each property that the file gives counts, whether or not the design sets it too.
    let own = file.replace("recordcount=1000\n", "recordcount=100000000\nfieldcount=1\nfieldlength=64\n");
    for (from, to, is_own) in [
        ("", "", true),
        ("zipfian", "uniform", false),
        ("recordcount=100000000", "recordcount=20000", false),
        ("fieldlength=64", "fieldlength=1000", false),
    ] {
        assert!(own.contains(from));
        std::fs::write(&other, own.replace(from, to)).expect("it can be written");
        assert_eq!(of(Changes { workload: Some(other.clone()), ..none() }, &[], &[], None), is_own, "{to}");
    }
}

/// A workload file that is given is the workload: what it says stands above what the design sets, what it leaves out is the
/// design's, and both are said.
#[test]
fn a_workload_file_is_what_is_planned() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("mine");
    std::fs::write(
        &file,
        "recordcount=20000\noperationcount=1\nreadproportion=1.0\nupdateproportion=0\nfieldcount=1\n",
    )
    .expect("it can be written");
    let changes = Changes { workload: Some(file), steps: true, ..Changes::default() };
    let design = parse(&text("kv-ycsb-c.toml"), &changes);
    assert!(design.workload.starts_with("YCSB mine: "), "{}", design.workload);
    assert!(design.workload.ends_with("over 20000 records of 64 B"), "{}", design.workload);
    assert!(
        design.warnings.iter().any(|said| said.contains("does not say `fieldlength`, so that")),
        "{:?}",
        design.warnings
    );
}

/// An alternative that a mix takes for next to nothing would decide how well all of it is known.
#[test]
fn a_mix_takes_no_sliver() {
    let text = |slow: &str| {
        format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"unloaded-latency\"\n[[alternative]]\nname = \"fast\"\n\
             request = [{{ read = \"client-host\", bytes = \"64 B\" }}]\n{slow}"
        )
    };
    let slow = "[[alternative]]\nname = \"slow\"\nrequest = [{ send = \"client-host\", bytes = \"64 B\" }, \
                { compute = \"host\", time = \"2 ms\" }, { send = \"host-client\", bytes = \"64 B\" }]\n";
    let (plain, both) =
        (planned_on(Library::builtin(), &text("")), planned_on(Library::builtin(), &text(slow)));
    assert_eq!(both.optimal.shares, [("fast".to_string(), 1.0)]);
    assert_eq!(both.greedy.shares, both.optimal.shares);
    assert_eq!(both.recommendation.basis, plain.recommendation.basis);
    assert_eq!(both.optimal.latency_s, plain.optimal.latency_s);
}

/// At a load the question is latency or the host's time: how well rates are known says nothing of it.
#[test]
fn at_a_load_the_basis_is_that_of_what_is_asked() {
    let of = |goal: &str| {
        let text = format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\n{goal}\nrank_by = \"unloaded-latency\"\n\
             [[alternative]]\nname = \"a\"\nrequest = [{{ read = \"client-host\", bytes = \"1 MiB\" }}, \
             {{ wait = \"200 us\" }}]\n"
        );
        planned_on(Library::builtin(), &text).recommendation
    };
    assert_ne!(of("objective = \"most-throughput\"").basis, Basis::YourEstimate);
    let loaded = of("objective = \"lowest-p99\"\noffered_load = \"1 k/s\"");
    assert_eq!(loaded.basis, Basis::YourEstimate, "{:?}", loaded.rests_on);
}

/// What costs the host nothing costs nothing whatever the card's numbers are, and whether the card carries the load
/// rests on them all the same.
#[test]
fn a_worth_of_nothing_is_no_better_known_than_what_carries_it() {
    let goal = "objective = \"least-host-cpu\"\noffered_load = \"1 M/s\"";
    let text = DESIGN.replace("objective = \"most-throughput\"", goal);
    let guess = planned_on(card(&|_| Provenance::Assumed), &text);
    assert_eq!(guess.optimal.shares[0].0, "arm", "{:?}", guess.optimal.shares);
    assert_eq!(guess.worth.value, 0.0);
    assert_eq!(guess.recommendation.basis, Basis::OrderOnly);
}

/// A number of the card is none of the plain NIC's, though both call it by one name.
#[test]
fn a_setting_of_the_card_leaves_the_plain_nic_as_it_is() {
    let design = parse(&small("kv-ycsb-c.toml"), &Changes { steps: true, ..Changes::default() });
    let rates = |settings: &[&str]| {
        let plan = planned(&design, &[], settings);
        (alone(&plan, "rnic").rate.value, alone(&plan, "A1").rate.value)
    };
    let (rnic, card) = rates(&[]);
    let (same, slower) = rates(&["nic.shared_packet_rate=10M/s"]);
    assert_eq!(same, rnic);
    assert!(slower < 0.5 * card, "{slower} and {card}");
    // The clients are the same ones.
    let (behind, too) = rates(&["client.nic.port_rate=1Gbit/s"]);
    assert!(behind < 0.5 * rnic && too < 0.5 * card, "{behind} {too}");
}

/// A row that measured something else is not evidence of an alternative that names it, and its author hears so.
#[test]
fn a_row_of_something_else_fixes_nothing() {
    let text = |rows: &str| {
        format!(
            "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n{rows}request = [\n\
             {{ send = \"client-soc\", bytes = \"64 B\" }},\n{{ read = \"soc-host\", bytes = \"2 KiB\" }},\n\
             {{ send = \"soc-client\", bytes = \"64 B\" }},\n]\n"
        )
    };
    let of = |rows: &str| planned_on(Library::builtin(), &text(rows)).alternatives.remove(0);
    let (plain, flattered) = (of(""), of("rows = [\"W149\", \"W999\"]\n"));
    assert_eq!((flattered.basis, flattered.rate), (plain.basis, plain.rate));
    // Under the name of the design that a row measured it is another all the same.
    let text = |rows: &str| text(rows).replace("\"own\"", "\"kv-ycsb-c\"").replace("\"a\"", "\"A1\"");
    let copied = planned_on(Library::builtin(), &text("rows = [\"W273/W275\"]\n")).alternatives.remove(0);
    assert_eq!((copied.basis, copied.rate), (plain.basis, plain.rate));
    let notes = parse(&text("rows = [\"W149\", \"W999\"]\n"), &Changes::default()).notes;
    assert!(notes[0].contains("W149 measured no alternative of this name"), "{notes:?}");
    assert!(notes[1].contains("W999 is published nowhere"), "{notes:?}");
}

/// Which of several alternatives that are the same is named decides nothing, and no draw may hold it against it.
#[test]
fn what_is_the_same_twice_is_the_best_in_every_draw() {
    let one = |name: &str| {
        format!(
            "[[alternative]]\nname = \"{name}\"\nrequest = [{{ read = \"client-host\", bytes = \"64 B\" }}]\n"
        )
    };
    let plan = planned_on(
        Library::builtin(),
        &format!(
            "[design]\nname = \"same\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n{}{}{}",
            one("a"),
            one("b"),
            one("c")
        ),
    );
    let sure = &plan.recommendation;
    let named: Vec<String> = plan.optimal.shares.iter().map(|(name, _)| name.clone()).collect();
    assert_eq!((sure.best_in, &sure.best_sets), (1.0, &vec![(named, 1.0)]));
}

/// In-flight slots that are reserved for an endpoint which does nothing lend the others nothing: a processor more on the
/// card makes no traffic faster that never touches it.
#[test]
fn an_idle_endpoint_lends_nothing() {
    let text = include_str!("../../../profiles/devices/bluefield2.toml");
    let own = |header: &str| ["[soc_wire]", "[soc]", "[soc_verbs]"].contains(&header);
    let mut is_own = false;
    let copied: Vec<String> = text
        .lines()
        .filter(|line| {
            is_own = if line.starts_with('[') { own(line) } else { is_own };
            is_own
        })
        .map(|line| line.replace("[soc", "[dpa").replace("\"soc\"", "\"dpa\""))
        .collect();
    assert!(copied.len() > 20, "{copied:?}");
    let named = |more: &str| text.replacen("name = \"bluefield2\"", "name = \"own\"", 1) + more;
    let design = "[design]\nname = \"both\"\ndevice = \"own\"\nobjective = \"most-throughput\"\n\
                  rank_by = \"throughput\"\n[[alternative]]\nname = \"h\"\n\
                  request = [{ write = \"client-host\", bytes = \"64 B\" }]\n[[alternative]]\nname = \"s\"\n\
                  request = [{ write = \"client-soc\", bytes = \"64 B\" }]\n";
    let of = |text: &str| {
        let mut library = Library::builtin();
        library.insert(Category::Device, "own", text);
        planned_on(library, design)
    };
    let (two, three) = (of(&named("")), of(&named(&format!("\n{}\n", copied.join("\n")))));
    near("with an idle endpoint", three.optimal.rate.value, two.optimal.rate.value, 1e-9);
    near("its larger share", three.optimal.shares[0].1, two.optimal.shares[0].1, 1e-9);
}

const TWO_WAYS: &str = "[design]\nname = \"two ways\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                        rank_by = \"throughput\"\n";

/// A set that holds the winner is not a winner: where one alternative alone is the best, the recommended two are not.
#[test]
fn who_is_not_taken_does_not_share_the_win() {
    let text = format!(
        "{TWO_WAYS}[[alternative]]\nname = \"plain\"\nrequest = [{{ read = \"client-host\", bytes = \"64 B\" }}]\n\
         [[alternative]]\nname = \"soc\"\nrequest = [{{ send-ud = \"client-soc\", bytes = \"64 B\" }}, \
         {{ compute = \"soc\", time = {{ value = \"100 ns\", low = \"90 ns\", high = \"50 ms\" }} }}, \
         {{ send-ud = \"soc-client\", bytes = \"64 B\" }}]\n"
    );
    let plan = planned(&parse(&text, &Changes::default()), &[], &[]);
    let sure = &plan.recommendation;
    assert_eq!(plan.optimal.composition(), ["plain", "soc"]);
    let alone = sure.best_sets.iter().find(|(set, _)| *set == ["plain"]).map_or(0.0, |(_, share)| *share);
    assert!(alone > 0.3 && sure.best_in + alone < 1.0 + 1e-9, "{:?}", sure.best_sets);
    let time = plan.influences.iter().find(|one| one.number.ends_with("time")).expect("the time decides");
    assert_eq!(time.changes.as_deref(), Some("plain at 50 ms"), "{time:?}");
}

/// What the design refuses at one end of a number is nothing that the other alternatives do.
#[test]
fn a_refused_end_charges_nobody_else() {
    let plan = |high: &str| {
        let text = format!(
            "{TWO_WAYS}[[alternative]]\nname = \"write\"\nrequest = [{{ write = \"host-soc\", bytes = \"64 KiB\" }}]\n\
             [[alternative]]\nname = \"ud\"\nrequest = [{{ send-ud = \"client-host\", \
             bytes = {{ value = \"900 B\", low = \"512 B\", high = \"{high}\" }} }}, \
             {{ send-ud = \"host-client\", bytes = \"64 B\" }}]\n"
        );
        planned(&parse(&text, &Changes::default()), &[], &[])
    };
    // A datagram takes no more than a packet holds.
    let (fits, refused) = (plan("1000 B"), plan("4 KiB"));
    let of = |plan: &Plan| (alone(plan, "write").basis, alone(plan, "write").rests_on.clone());
    assert_eq!(of(&refused), of(&fits));
    let own = &alone(&refused, "ud").rests_on;
    assert!(own.iter().any(|rest| rest.number.contains("ud") && rest.moves < 1.0), "{own:?}");
}

/// One byte beyond a measured threshold a figure rests on what binds there, as it does far beyond.
#[test]
fn a_threshold_beside_a_payload_makes_no_guess_seem_little() {
    let basis_and_guesses = |bytes: &str| {
        let text = format!(
            "[design]\nname = \"d\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
             rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
             request = [{{ read = \"client-soc\", bytes = \"{bytes}\" }}]\n"
        );
        let design = Design::parse(&text, "d.toml", Path::new("."), &Changes::default()).expect("in order");
        let plan = planned(&design, &[], &[]);
        (alone(&plan, "a").basis, guessed(&alone(&plan, "a").rests_on))
    };
    let (beside, far) = (basis_and_guesses("9437185 B"), basis_and_guesses("16 MiB"));
    assert_eq!(beside.0, far.0, "the basis");
    assert!(beside.1 > 0.95 && far.1 > 0.95, "guesses decide {} and {}", beside.1, far.1);
}

/// What is set can bind beside a guess, which then seems to move little. It is as much a guess as before.
#[test]
fn what_is_set_hides_no_guess() {
    let basis = |settings: &[&str]| {
        let settings = settings.iter().map(ToString::to_string).collect();
        let request = SystemRequest { device: "bluefield2", settings, ..SystemRequest::default() };
        let router = Router::new(&Library::builtin().load(&request).expect("in range")).expect("routes");
        let path = "host-client".parse().expect("a path");
        let send = PathOperation::new(Verb::Send, path, Bytes::new(256));
        known(&router, &[send], Seed::new(1)).expect("the path carries it").remove(0).rate_basis
    };
    assert_eq!(basis(&[]), Basis::Weak);
    for set in ["nic.inline_limit=260B", "nic.inline_limit=316B", "nic.inline_limit=220B"] {
        assert_eq!(basis(&[set]), Basis::Weak, "{set}");
    }
}

/// A number that two machines share is moved at both at once, and the sum decides what moves a figure most.
#[test]
fn machines_with_the_same_card_share_its_numbers() {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let router = Router::new(&Library::builtin().load(&request).expect("it is shipped")).expect("routes");
    let read = PathOperation::new(Verb::Read, "host-backup".parse().expect("a path"), Bytes::new(64));
    let known = known(&router, &[read], Seed::new(1)).expect("the path carries it").remove(0);
    let span = |one: &&MovedBy| (one.latency_s[1] - one.latency_s[0]).abs();
    let most = known.moved_by.iter().max_by(|one, two| span(one).total_cmp(&span(two))).expect("some do");
    assert_eq!(most.names, ["switch.pass_time", "backup.switch.pass_time"]);
    let all: Vec<&String> = known.moved_by.iter().flat_map(|one| &one.names).collect();
    let once: std::collections::BTreeSet<_> = all.iter().collect();
    assert_eq!(all.len(), once.len(), "no number is there twice");
}

/// A log has hundreds of runs: how many systems are looked at does not grow with them.
#[test]
fn many_figures_are_looked_at_together() {
    let request = SystemRequest { device: "connectx7", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("it ships");
    let router = Router::new(&system).expect("it has routes");
    let looked = |figures: usize| {
        let of = FigureOf {
            kind: FigureKind::Throughput,
            traffic: "read".to_string(),
            path: "client-host".to_string(),
            bound_by: "posting thread".to_string(),
            has_evidence: true,
        };
        let systems = AtomicUsize::new(0);
        let rates = |system: &System| -> Option<Vec<BoundedFigure>> {
            systems.fetch_add(1, Ordering::Relaxed);
            let router = Router::new(system).ok()?;
            let rate = |figure: usize| {
                let path = "client-host".parse().expect("a path");
                let read = PathOperation::new(Verb::Read, path, Bytes::new(64 << (figure % 8)));
                let (value, _) = router.route(&read).ok()?.demand(&router).capacity(&router)?;
                Some(BoundedFigure { value, most: f64::INFINITY })
            };
            (0..figures).map(rate).collect()
        };
        let known = known_figures(&router, &vec![of; figures], Seed::new(1), rates).expect("it has rates");
        assert!(known.iter().any(|figure| figure.most_moved_by.is_some()), "what moves it is looked for");
        systems.into_inner()
    };
    assert_eq!(looked(40), looked(8));
}

/// A datagram takes no more than a packet holds, so that with some payloads `ud` cannot run. The other alternative does, and
/// is the best set there.
#[test]
fn a_draw_that_one_alternative_refuses_is_a_draw_of_the_others() {
    let way = |name: &str, verb: &str| {
        format!(
            "[[alternative]]\nname = \"{name}\"\nrequest = [{{ {verb} = \"client-host\", bytes = \"64 B\" }}, \
             {{ compute = \"host\", time = \"100 ns\" }}, {{ {verb} = \"host-client\", bytes = \"size\" }}]\n"
        )
    };
    let of = |ways: &[String]| {
        let text = format!("{TWO_WAYS}[parameters]\nsize = \"200 B to 1800 B\"\n{}", ways.concat());
        planned(&parse(&text, &Changes::default()), &[], &[])
    };
    let (ud, rc) = (way("datagram", "send-ud"), way("reliable", "send"));
    let (both, rc) = (of(&[ud, rc.clone()]), of(&[rc]));
    assert_eq!(
        alone(&both, "reliable").rate,
        alone(&rc, "reliable").rate,
        "another alternative moves none of its figures"
    );
    assert_eq!(alone(&both, "reliable").latency_s, alone(&rc, "reliable").latency_s);
    assert_eq!(alone(&both, "reliable").runs_in, 1.0);
    let runs = alone(&both, "datagram").runs_in;
    assert!(runs > 0.5 && runs < 0.9, "{runs}");
    let sure = &both.recommendation;
    assert_eq!(both.optimal.composition(), ["datagram"]);
    assert_eq!((sure.runs_in, sure.carried_in), (runs, 1.0));
    near("the best in the rest at most", sure.best_in, runs, 1e-9);
    assert_eq!(
        sure.best_sets.iter().map(|(set, _)| &set[0][..]).collect::<Vec<_>>(),
        ["datagram", "reliable"]
    );
}

const BOUND: &str = r#"
[parameters]
work = "1 us to 3 us"
[[alternative]]
name = "host"
request = [
    { send = "client-host", bytes = "64 B" },
    { compute = "host", time = "work" },
    { send = "host-client", bytes = "512 B" },
]
[[alternative]]
name = "soc"
request = [
    { send = "client-soc", bytes = "64 B" },
    { compute = "soc", time = "work * 1.5" },
    { send = "soc-client", bytes = "512 B" },
]
"#;

fn bounded(bound: &str, more: &str) -> Plan {
    let text = format!("{TWO_WAYS}{BOUND}[constraints]\nlatency_bound = \"{bound}\"\n{more}");
    planned(&parse(&text, &Changes::default()), &[], &[])
}

/// The printed shares carry as much whether or not they keep the latency bound: in how many draws they do is said apart.
#[test]
fn a_latency_bound_that_draws_break_is_told_apart_from_what_they_carry() {
    let free = planned(&parse(&format!("{TWO_WAYS}{BOUND}"), &Changes::default()), &[], &[]);
    assert_eq!(free.recommendation.keeps_bound_in, None);
    let plan = bounded("8.4 us", "");
    let sure = &plan.recommendation;
    assert_eq!(plan.optimal.composition(), ["host", "soc"]);
    assert_eq!(plan.optimal.rate, free.optimal.rate);
    assert_eq!((sure.runs_in, sure.carried_in), (1.0, 1.0), "host alone keeps it");
    let kept = sure.keeps_bound_in.expect("there is a bound");
    assert!(kept > 0.3 && kept < 0.8, "{kept}");
    near("where it breaks the bound it is not the best", sure.best_in, kept, 0.02);
}

/// What the page says that a mix rests on decides its basis, whether it is of one alternative or of several.
#[test]
fn a_mix_of_one_is_known_as_well_as_what_it_rests_on() {
    let plan = bounded("6.7 us", "");
    let sure = &plan.recommendation;
    assert_eq!(plan.optimal.composition(), ["host"]);
    assert!(guessed(&sure.rests_on) >= 0.5 * (1.0 - estimated(&sure.rests_on)), "{:?}", sure.rests_on);
    assert_eq!((alone(&plan, "host").basis, sure.basis), (Basis::YourEstimate, Basis::OrderOnly));
}

/// A mean within the bound does not let a mix take what breaks it.
#[test]
fn a_named_mix_beyond_the_latency_bound_is_marked() {
    let plan = bounded("7 us", "[[mix]]\nname = \"both\"\nfill = [\"host\", \"soc\"]\n");
    assert_eq!(plan.mixes[0].beyond_bound, ["soc"]);
    assert!(plan.mixes[0].latency_s < 7e-6, "its mean keeps it: {}", plan.mixes[0].latency_s);
    assert!(plan.optimal.beyond_bound.is_empty());
}
