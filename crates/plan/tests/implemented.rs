//! What applications demand, beside the step lists of the designs that name them.

use crate::common::*;
use offpath_capacity::MixObjective;
use offpath_plan::design::Step;
use offpath_plan::implemented::{agreement, observe};
use offpath_plan::observe::{RequestArrivals, load, observe as observe_on_twin};
use offpath_plan::solve::{activity, stations};
use offpath_plan::{Changes, Design, Fold, Ready, plan, prepare};
use offpath_profile::{Category, Library};
use offpath_quantity::Time;
use offpath_twin::Seed;
use std::collections::{BTreeMap, BTreeSet};

/// The store with so few records that drawing their popularity takes no time.
fn store() -> String {
    small("kv-ycsb-c.toml")
        .replace("recordcount = 1_000_000", "recordcount = 100_000")
        .replace("budget = \"43 MB\"", "budget = \"4.3 MB\"")
}

fn listed(text: &str, changes: &Changes) -> Vec<Ready> {
    let design = parse(text, &Changes { steps: true, ..changes.clone() });
    assert!(design.application.is_none());
    prepare(&design, &setting(&[], &[])).expect("its step lists are in order")
}

fn designs_with_code() -> [(String, Changes); 3] {
    let log = text("replication.toml");
    [(store(), Changes::default()), (log.clone(), Changes::default()), (log, with_ratio(0.5))]
}

fn prepared(text: &str, changes: &Changes) -> (Design, Vec<Ready>) {
    let design = parse(text, changes);
    let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
    (design, ready)
}

#[test]
fn a_program_takes_as_long_as_the_code_that_it_was_seen_from() {
    for (text, changes) in designs_with_code() {
        let (design, ready) = prepared(&text, &changes);
        for (one, plain) in ready.iter().zip(&design.alternatives) {
            let name = &plain.name;
            let seen = observe(&design, plain, &one.router).expect("it runs").expect("it has code");
            let fold = one.compiled.fold(&one.router);
            // A request goes from one thing to the next, so that nothing but rounding is left.
            near(&format!("{} {name}: latency", design.name), fold.latency, seen.latency_s, 1e-9);
        }
    }
}

#[test]
fn the_interpreter_runs_what_code_was_seen_to_do() {
    for (text, changes) in designs_with_code() {
        let (design, ready) = prepared(&text, &changes);
        for one in &ready {
            let name = format!("{} {}", design.name, one.alternative.name);
            let fold = one.compiled.fold(&one.router);
            let seen = observe_on_twin(one, Seed::new(3)).expect("the twin runs it").fold;
            near(&format!("{name}: latency"), seen.latency, fold.latency, 0.01);
            for (station, added) in &fold.seconds {
                let observed = seen.seconds.get(station).copied().unwrap_or(0.0);
                assert!(
                    (observed - added).abs() <= 0.01 * added + 1e-15,
                    "{name}: {station} was seen for {observed} s and adds up to {added} s"
                );
            }
            let of = |fold: &Fold| fold.seconds.keys().cloned().collect::<BTreeSet<_>>();
            assert!(of(&seen).is_subset(&of(&fold)), "{name}: stations that were not added up");
        }
    }
}

/// What one station of an alternative may differ by between code and step list, in seconds a request.
type Allowed<'a> = &'a dyn Fn(&str, &str, f64) -> f64;

fn held_to_steps(text: &str, changes: &Changes, allowed: Allowed<'_>) {
    let (design, ready) = prepared(text, changes);
    for (one, other) in ready.iter().zip(listed(text, changes)) {
        let name = &one.alternative.name;
        let (code, steps) = (one.compiled.fold(&one.router), other.compiled.fold(&other.router));
        let names: BTreeSet<&String> = code.seconds.keys().chain(steps.seconds.keys()).collect();
        for station in names {
            let of = |all: &BTreeMap<String, f64>| all.get(station).copied().unwrap_or(0.0);
            let (implemented, listed) = (of(&code.seconds), of(&steps.seconds));
            assert!(
                (implemented - listed).abs() <= allowed(name, station, listed) + 1e-15,
                "{} {name}: {station} gives {implemented} s to the code and {listed} s to the steps",
                design.name
            );
        }
    }
}

#[test]
fn the_implemented_store_demands_what_its_step_lists_do() {
    // The code moves records of 80 B where the lists write the 64 B of a value, so that what carries or
    // holds bytes differs by up to the 16 B of 64; time that bytes do not make is the same.
    held_to_steps(&store(), &Changes::default(), &|_, station, listed| {
        let by_bytes = ["memory", "up", "down", "transmit", "receive", "read", "write", "total"];
        let part = station.rsplit('.').next().unwrap_or_default();
        match part {
            part if part.starts_with("inflight_slots") => 0.002 * listed,
            part if by_bytes.contains(&part) => 0.26 * listed,
            _ => 0.0,
        }
    });
}

#[test]
fn the_implemented_log_demands_its_step_lists_and_what_tells_of_chunks() {
    for ratio in [1.0, 0.5] {
        held_to_steps(&text("replication.toml"), &with_ratio(ratio), &|_, station, listed| {
            let part = station.rsplit('.').next().unwrap_or_default();
            match part {
                // A notice and two acknowledgements: posted, taken and polled for by each processor.
                "cpu" => 0.6e-6,
                // The write is no longer answered before the chain has it, and a notice holds an in-flight slot.
                part if part.starts_with("inflight_slots") => 3.5e-6,
                "banks" => 0.2e-6,
                // Headers of 32 B, and messages of 24 B and none, beside 256 KiB.
                _ => 0.002 * listed + 12e-9,
            }
        });
    }
}

#[test]
fn rates_of_code_and_step_lists_are_within_the_tolerance_of_measured_rows() {
    for (text, changes) in designs_with_code() {
        let (design, ready) = prepared(&text, &changes);
        for (one, other) in ready.iter().zip(listed(&text, &changes)) {
            let name = &one.alternative.name;
            let rate = |one: &Ready| {
                let mut problem = stations(&one.router, design.host_cpu_share);
                problem.activities.push(activity(name, &one.compiled.fold(&one.router), &one.router));
                let aim = MixObjective::Shares([(name.clone(), 1.0)].into());
                problem.solve(&aim).expect("the stations bound it").total
            };
            near(&format!("{} {name}", design.name), rate(one), rate(&other), 0.05);
        }
    }
}

#[test]
fn a_loaded_twin_carries_the_programs_of_code() {
    let (_, ready) = prepared(&text("replication.toml"), &Changes::default());
    for one in &ready {
        // Many in flight at once, each answered on the connection that it came by.
        let (warm_up, window) = (Time::from_us(1000), Time::from_us(5000));
        let loaded = load(&[one], &[1.0], RequestArrivals::Closed(32), warm_up, window, Seed::new(7))
            .expect("the twin runs it");
        assert_eq!(loaded.failed, 0);
        let fold = one.compiled.fold(&one.router);
        let mut problem = stations(&one.router, None);
        problem.activities.push(activity("it", &fold, &one.router));
        let most = problem.alone("it").expect("the stations bound it").total;
        let share = loaded.throughput.mean / most;
        let name = &one.alternative.name;
        // What was in flight at the window's edges may count for it.
        let edges = 32.0 / (most * window.as_seconds());
        assert!((0.95..=1.0 + edges).contains(&share), "{name}: {share} of what its stations carry");
    }
}

#[test]
fn a_cache_makes_a_branch_of_what_a_hit_and_a_miss_do() {
    let (design, ready) = prepared(&store(), &Changes::default());
    let hit_ratio = design.cache.as_ref().expect("the design has a cache").hit_ratio;
    for one in &ready {
        let steps = &one.alternative.operations[0].2;
        let branch = match steps.as_slice() {
            [Step::Branch { probability, then, otherwise, .. }] => {
                Some((*probability, then.len(), otherwise.len()))
            }
            _ => None,
        };
        let expected = match one.alternative.name.as_str() {
            "A5-read" => Some((hit_ratio, 5, 5)),
            // A miss is told where to READ.
            "A5-send" => Some((hit_ratio, 5, 6)),
            _ => None,
        };
        assert_eq!(branch, expected, "{}", one.alternative.name);
    }
}

#[test]
fn the_agreement_names_the_largest_differences() {
    for (text, changes) in designs_with_code() {
        let (design, ready) = prepared(&text, &changes);
        let plan = plan(&design, &ready, &folds(&ready), &[], Seed::new(1)).expect("there is a plan");
        let found = agreement(&design, &ready, &plan).expect("it compiles").expect("there is code");
        assert!(found.busy.0 > 0.0 && found.busy.0 < 0.2, "{found:?}");
        assert!(found.latency.0 > 0.0 && found.latency.0 < 0.5, "{found:?}");
        let steps = parse(&text, &Changes { steps: true, ..changes });
        let ready = prepare(&steps, &setting(&[], &[])).expect("in order");
        let plan =
            offpath_plan::plan(&steps, &ready, &folds(&ready), &[], Seed::new(1)).expect("there is a plan");
        assert_eq!(agreement(&steps, &ready, &plan).expect("it compiles"), None);
    }
}

/// The message and help with which a changed design is refused.
fn refused(text: &str, device: Option<&str>) -> (String, String) {
    let changes = Changes { device: device.map(str::to_string), ..Changes::default() };
    let error = Design::parse(text, "design.toml", &designs(), &changes)
        .and_then(|design| prepare(&design, &setting(&[], &[])).map(|_| ()))
        .expect_err("it is refused");
    assert!(error.labels().is_some_and(|mut labels| labels.next().is_some()), "it points nowhere: {error}");
    (error.to_string(), error.help().map(|help| help.to_string()).unwrap_or_default())
}

#[test]
fn what_cannot_be_implemented_is_refused_in_the_applications_words() {
    let log = text("replication.toml");
    let store = store();
    for (text, device, words) in [
        (log.replace("engine = \"dma\"", "engine = \"warp\""), None, "no DMA engine `warp`"),
        (store.replace("engine = \"dma\"", "engine = \"warp\""), None, "a DMA engine `warp`"),
        (log.replace("chain = [\"backup\"]", "chain = [\"attic\"]"), None, "attic"),
        (log.replace("code = \"A3\"", "code = \"A9\""), None, "no alternative `A9`"),
        (log.replace("chunk = \"chunk\"\n", ""), None, "does not say `chunk`"),
        (log.replace("ratio = \"ratio\"", "ratio = \"2\""), None, "a compression ratio of 2"),
        (store.replace("card_hash = \"30 ns\" ", "#"), None, "does not say `card_hash`"),
        (
            store.replace("name = \"kv\"\n", "name = \"kv\"\nchunk = \"4 KiB\"\n"),
            None,
            "nothing that `kv` is told",
        ),
        (store.replace("index = \"index\" ", "index = \"attic\" #"), None, "`attic` is not an object"),
        (store.replace("fieldlength = 64", "fieldlength = 6000"), None, "longer than"),
        // The code has buckets of 64 B, whatever the lists and the cache are told.
        (
            store.replace("bytes = \"bucket\"", "bytes = \"512 B\""),
            None,
            "move 576 B a request over the network",
        ),
    ] {
        let (message, help) = refused(&text, device);
        assert!(message.contains(words), "{words}: {message}");
        assert!(!help.is_empty(), "{message}");
    }
}

/// Whoever writes another step list beside code is told that the code is planned.
#[test]
fn a_step_list_that_is_not_planned_is_told() {
    let notes = |text: &str, steps: bool| {
        let changes = Changes { steps, ..Changes::default() };
        study_of(&parse(text, &changes), &changes, &setting(&[], &[])).expect("it is planned").notes
    };
    let given = text("replication.toml");
    let own = "{ read = \"soc-host-dma\", bytes = \"chunk\" },\n    { compute = \"soc\", time = \"50 us\" },";
    let slower = given.replace("{ read = \"soc-host-dma\", bytes = \"chunk\" },", own);
    assert_ne!(given, slower);
    let told = |notes: &[String]| notes.iter().any(|note| note.contains("`A2`") && note.contains("--steps"));
    assert!(told(&notes(&slower, false)));
    assert!(!told(&notes(&slower, true)) && !told(&notes(&given, false)));
}

/// A text with the card's processor under another name, and all that is called after it.
fn renamed(text: &str) -> String {
    text.replace("soc", "arm")
}

/// Applications have a part for the card, whatever the card's processor is called: the demands are the same.
#[test]
fn code_runs_on_a_card_whose_processor_has_a_name_of_its_own() {
    let library = Library::builtin();
    let card = renamed(library.source(Category::Device, "bluefield2").expect("it ships"))
        .replace("name = \"bluefield2\"", "name = \"own-card\"");
    let own = |text: &str| {
        let mut setting = setting(&[], &[]);
        setting.library.insert(Category::Device, "own-card", &card);
        let changes = Changes { device: Some("own-card".into()), ..Changes::default() };
        prepare(&parse(&renamed(text), &changes), &setting).expect("the design is in order")
    };
    for text in [store(), text("replication.toml")] {
        let (there, here) = (own(&text), prepared(&text, &Changes::default()).1);
        let mut implemented = 0;
        for (one, other) in there.iter().zip(&here).filter(|(one, _)| one.alternative.device.is_none()) {
            let named = |fold: &Fold| -> BTreeMap<String, f64> {
                fold.seconds.iter().map(|(station, seconds)| (renamed(station), *seconds)).collect()
            };
            let (one_fold, other_fold) = (one.compiled.fold(&one.router), other.compiled.fold(&other.router));
            assert_eq!(named(&one_fold), named(&other_fold), "{}", one.alternative.name);
            implemented += usize::from(one.alternative.code.is_some());
        }
        assert!(implemented >= 3, "{implemented} alternatives have code");
    }
}

/// Of two processors nothing says which is meant.
#[test]
fn code_is_refused_on_a_card_with_two_processors_of_other_names() {
    let mut setting = setting(&[], &[]);
    setting.library.insert(
        Category::Device,
        "invented",
        include_str!("../../profile/tests/data/invented.toml"),
    );
    let text =
        store().replace("client-soc", "client-arm").replace("soc-", "arm-").replace("\"soc\"", "\"arm\"");
    let changes = Changes { device: Some("invented".into()), ..Changes::default() };
    let design = Design::parse(&text, "design.toml", &designs(), &changes).expect("it is in order");
    let error = prepare(&design, &setting).map(|_| ()).expect_err("it is refused").to_string();
    assert!(error.contains("does not say which of `arm` and `dpa` runs"), "{error}");
}
