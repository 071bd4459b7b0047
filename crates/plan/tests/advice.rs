//! Which rule says what of which design.
//!
//! A row that changes is a decision that users would see change: accept it with
//! `INSTA_UPDATE=always cargo test --release -p offpath-plan --test all advice::` once its reason is understood.

use crate::common::*;
use offpath_plan::advice::{
    Advised, Depth, Gain, GainStanding, Look, Proposed, RULES, SEEDS, Scope, TrialBench, advise,
};
use offpath_plan::check::{Chosen, settle};
use offpath_plan::design::{Alternative, Step};
use offpath_plan::rests::guessed;
use offpath_plan::{Basis, Changes, Design, Setting};
use offpath_profile::{Category, Library};
use offpath_route::Verb;
use offpath_twin::Seed;
use std::collections::BTreeSet;
use std::fmt::Write;

const CARD: &str = include_str!("../../profile/tests/data/invented.toml");
const EVERYTHING: &str = include_str!("../../profile/tests/data/everything.toml");

fn library() -> Setting {
    let mut library = Library::builtin();
    library.insert(Category::Device, "invented", CARD);
    library.insert(Category::Device, "everything", EVERYTHING);
    Setting::plain(library)
}

fn advised(text: &str, depth: Depth) -> Advised {
    let (changes, setting, directory) = (Changes::default(), library(), designs());
    let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
    advise(&bench, text, depth).unwrap_or_else(|error| panic!("{error:?}\n{text}"))
}

/// A design of alternatives alone; `more` goes under `[design]`.
fn design(device: &str, more: &str, rest: &str) -> String {
    let objective = if more.contains("objective") { "" } else { "objective = \"most-throughput\"\n" };
    format!(
        "[design]\nname = \"t\"\ndevice = \"{device}\"\ntestbed = \"rack\"\nrank_by = \"unloaded-latency\"\n\
         {objective}{more}\n{rest}"
    )
}

fn one(device: &str, more: &str, steps: &str) -> String {
    design(device, more, &format!("[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n"))
}

/// The workload of 24 records that `three-mistakes.toml` has, with updates alone.
const COUNTERS: &str = r#"
[workload]
ycsb = "../workloads/workloadc"
set = { recordcount = 24, requestdistribution = "uniform", fieldcount = 1, fieldlength = 64, readproportion = 0, updateproportion = 1 }
[object.counters]
entry = "64 B"
[[alternative]]
name = "a"
"#;

/// Two ways of the small store, in an order that gives the in-flight slots to the first.
fn two_ways() -> String {
    let text = small("kv-batching.toml");
    let cut = text.find("[[alternative]]\nname = \"A5-batch\"").expect("the last alternative");
    let text = text[..cut].replace("mode = ", "mix = \"both\"\nmode = ");
    format!("{text}\n[[mix]]\nname = \"both\"\nfill = [\"A4\", \"A5-send\"]\n")
}

/// The first of the alternatives that match logs; the third lets the card's accelerator do so.
fn logs(alternatives: usize) -> String {
    let text = text("regex-logs.toml");
    let parts: Vec<&str> = text.split("[[alternative]]").collect();
    assert_eq!(parts.len(), 4);
    parts[..=alternatives].join("[[alternative]]")
}

const RELAY: &str =
    r#"{ read = "soc-host", bytes = "256 KiB" }, { write = "soc-backup", bytes = "256 KiB" }"#;
const BEHIND_A_CACHE: &str = r#"{ send-ud = "client-soc", bytes = "16 B" }, { compute = "soc", time = "100 ns" },
    { probability = 0.2, then = [ { send-ud = "soc-client", bytes = "64 B" } ], otherwise = [
        { read = "soc-host", bytes = "64 B" }, { send-ud = "soc-client", bytes = "64 B" } ] }"#;
const SERVED: &str = r#"{ send-ud = "client-host", bytes = "16 B" }, { compute = "host", time = "800 ns" },
    { send-ud = "host-client", bytes = "64 B" }"#;

/// Designs by the rule that they are about.
fn cases() -> Vec<(&'static str, String)> {
    let counters =
        |step: &str| design("bluefield2", "mix = \"a\"", &format!("{COUNTERS}update = [ {step} ]\n"));
    vec![
        ("spread-hot-range", counters(r#"{ write = "client-soc", bytes = "record", object = "counters" }"#)),
        (
            "spread-hot-range, served by a cache",
            counters(r#"{ write = "client-host", bytes = "record", object = "counters" }"#),
        ),
        ("segment-large-reads", one("bluefield2", "", r#"{ read = "client-soc", bytes = "16 MiB" }"#)),
        (
            "segment-large-reads, WRITE",
            one("bluefield2", "", r#"{ write = "client-soc", bytes = "16 MiB" }"#),
        ),
        (
            "segment-large-reads, invented card",
            one("invented", "mix = \"a\"", r#"{ read = "client-dpa", bytes = "4 MiB" }"#),
        ),
        ("segment-transfers", one("bluefield2", "mix = \"a\"", r#"{ write = "soc-host", bytes = "4 MiB" }"#)),
        (
            "segment-transfers, by an engine",
            one("bluefield2", "mix = \"a\"", r#"{ write = "soc-host-dma", bytes = "4 MiB" }"#),
        ),
        (
            "segment-transfers, below the bound",
            one("bluefield2", "", r#"{ write = "soc-host", bytes = "1 MiB" }"#),
        ),
        ("batch-doorbells", one("bluefield2", "", r#"{ read = "soc-host", bytes = "64 B" }"#)),
        (
            "batch-doorbells, invented card",
            one("invented", "mix = \"a\"", r#"{ read = "arm-host", bytes = "64 B" }"#),
        ),
        (
            "batch-doorbells, where a list costs more",
            one("bluefield2", "", r#"{ read = "host-soc", bytes = "64 B" }"#),
        ),
        (
            "unbatch-doorbells",
            one("bluefield2", "mix = \"a\"", r#"{ read = "host-soc", bytes = "64 B", batch = 16 }"#),
        ),
        (
            "unbatch-doorbells, where the batch pays",
            one("bluefield2", "", r#"{ read = "soc-host", bytes = "64 B", batch = 16 }"#),
        ),
        ("spare-inner-link", one("bluefield2", "mix = \"a\"", RELAY)),
        ("add-alternative", one("bluefield2", "", r#"{ read = "soc-host", bytes = "256 KiB" }"#)),
        ("rank-alternatives", two_ways()),
        ("mix-alternatives", two_ways().replace("mix = \"both\"", "mix = \"A5-send\"")),
        (
            "use-accelerator",
            one(
                "bluefield2",
                "",
                r#"{ compute = "host", time = "2 us" }, { write = "host-backup", bytes = "64 B" }"#,
            ),
        ),
        ("use-accelerator, which does the card's work", logs(2)),
        ("use-accelerator, which does the host's work", logs(1)),
        (
            "use-accelerator, of the one that runs",
            logs(2).replace("mode = ", "mix = \"arm\"\nmode = ").replacen(
                "[[alternative]]",
                "[[alternative]]\nmixed = false",
                1,
            ),
        ),
        (
            "move-background-work",
            one(
                "bluefield2",
                "objective = \"least-host-cpu\"\noffered_load = \"40 k/s\"",
                r#"{ compute = "host", time = "1 us" }, { write = "host-backup", bytes = "256 KiB" }"#,
            ),
        ),
        ("shard-across-endpoints", one("bluefield2", "", SERVED)),
        (
            "shard-across-endpoints, host closed",
            one("bluefield2", "", &SERVED.replace("host", "soc")) + "[constraints]\nhost_cpu_share = 0.0\n",
        ),
        ("no-nic-side-cache", one("bluefield2", "mix = \"a\"", BEHIND_A_CACHE)),
        (
            "no-nic-side-cache, host closed",
            one("bluefield2", "mix = \"a\"", BEHIND_A_CACHE) + "[constraints]\nhost_cpu_share = 0.0\n",
        ),
    ]
}

#[test]
fn each_rule_fires_where_its_remedy_gains() {
    let (mut table, mut fired) = (String::new(), BTreeSet::new());
    for (name, text) in cases() {
        writeln!(table, "{name}").expect("text can be written");
        let advised = advised(&text, Depth::Promising);
        for one in &advised.advice {
            assert!(
                one.gain.share.low > 0.01 && one.gain.share.low <= one.gain.share.high,
                "{name}: {one:?}"
            );
            assert!(one.diff.lines().any(|line| line.starts_with('+')), "{name}: {}", one.diff);
            fired.insert(one.rule);
            let gain = one.gain.share.mean * 100.0;
            writeln!(table, "    {} {gain:+.0}%: {}", one.rule, one.remedy).expect("text can be written");
        }
        if advised.advice.is_empty() {
            writeln!(table, "    silent").expect("text can be written");
            assert_eq!(advised.text, text, "{name}");
        }
        // What is written is a design in order, and nothing in it gains again.
        let parsed = Design::parse(&advised.text, "changed.toml", &designs(), &Changes::default());
        parsed.unwrap_or_else(|error| panic!("{name}: {error:?}\n{}", advised.text));
    }
    insta::assert_snapshot!(table);
    let silent: Vec<&str> = RULES.iter().map(|rule| rule.name).filter(|name| !fired.contains(name)).collect();
    assert!(silent.is_empty(), "{silent:?}");
}

#[test]
fn every_rule_is_silent_on_the_stores_best_mix() {
    let advised = advised(&small("kv-ycsb-c.toml"), Depth::Every);
    assert!(advised.advice.is_empty(), "{:?}", advised.advice);
    assert_eq!(advised.silent.len(), RULES.len());
    assert!(advised.silent.iter().all(|one| !one.reasons.is_empty()), "{:?}", advised.silent);
}

/// By added-up demands the store's best mix looks better with other shares of what it has. Nothing is run for that.
#[test]
fn other_shares_of_a_settled_mix_are_no_change() {
    let advised = advised(&small("kv-ycsb-c.toml"), Depth::Promising);
    let added = advised.silent.iter().find(|one| one.rule == "add-alternative").expect("it was tried");
    let is_same = |reason: &String| reason.contains("leaves the mix as it is");
    assert!(!added.reasons.is_empty() && added.reasons.iter().all(is_same), "{:?}", added.reasons);
}

#[test]
fn three_mistakes_are_three_advices() {
    let text = text("three-mistakes.toml");
    let advised = advised(&text, Depth::Every);
    let found: Vec<(&str, &Scope)> = advised.advice.iter().map(|one| (one.rule, &one.scope)).collect();
    let operation = |name: &str| Scope::Operation(name.to_string());
    assert_eq!(
        found,
        [
            ("batch-doorbells", &operation("read")),
            ("spread-hot-range", &operation("update")),
            ("segment-large-reads", &operation("scan")),
        ]
    );
    // The published ratios: W117/W118 and W115/W116 for banks, W127 and the assumed rate for the limit.
    near("updates", 1.0 + advised.advice[1].gain.share.mean, 77.9 / 22.7, 0.03);
    near("scans", 1.0 + advised.advice[2].gain.share.mean, 191.0 / 92.1, 0.03);
    let comments = |text: &str| text.matches('#').count();
    assert_eq!(comments(&advised.text), comments(&text), "comments stay");
    assert!(advised.together.is_some_and(|gain| gain.share.low > 0.4));
}

/// A gain is known no better than what it rests on: where the user sets that it is the user's, where a guess decides it
/// only its order is told, and its interval follows the numbers'.
#[test]
fn a_gain_says_how_well_it_is_known_of_the_card() {
    let known = |settings: &[&str]| {
        let setting = setting(&[], settings);
        let (changes, directory) = (Changes::default(), designs());
        let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
        let text = text("three-mistakes.toml");
        let found = advise(&bench, &text, Depth::Every).expect("it is checked").advice;
        found
            .into_iter()
            .map(|one| (one.rule, one.gain, one.standing.expect("throughput is added up")))
            .collect::<Vec<_>>()
    };
    let as_it_is = known(&[]);
    for (rule, gain, standing) in &as_it_is {
        // Nothing queues but where something is full, so the twin gains what is added up.
        near(rule, 1.0 + standing.share.value, 1.0 + gain.share.mean, 0.03);
        let ((low_80, high_80), (low_95, high_95)) = (standing.share.range_80, standing.share.range_95);
        assert!(low_95 <= low_80 && low_80 < standing.share.value, "{rule}: {standing:?}");
        assert!(standing.share.value < high_80 && high_80 <= high_95, "{rule}: {standing:?}");
        assert!((0.9..=1.0).contains(&standing.gains_in), "{rule}: {standing:?}");
    }
    let of = |all: &[(&str, Gain, GainStanding)], rule: &str| {
        all.iter().find(|one| one.0 == rule).map(|one| one.2.clone()).expect("it is advised")
    };
    // Half the rate of a large transfer is assumed, and nothing else makes the gain.
    let large = of(&as_it_is, "segment-large-reads");
    assert_eq!(large.basis, Basis::OrderOnly, "{:?}", large.rests);
    assert!(guessed(&large.rests) > 0.5, "{:?}", large.rests);
    // 30 ns of the design are the user's.
    assert_eq!(of(&as_it_is, "batch-doorbells").basis, Basis::YourEstimate);
    // Where a bank ends is assumed, and within what it may be the gain is another one by more than half.
    let banks = of(&as_it_is, "spread-hot-range");
    assert_eq!(banks.basis, Basis::OrderOnly, "{:?}", banks.rests);
    assert!(guessed(&banks.rests) < 0.5, "{:?}", banks.rests);
    let set = of(&known(&["soc.bank_write_time=60 ns"]), "spread-hot-range");
    assert!(offpath_plan::rests::estimate(&set.rests).is_some(), "{:?}", set.rests);
}

/// Whichever alternative the file has first.
#[test]
fn a_gain_is_as_well_known_wherever_its_alternative_stands() {
    let head = "[design]\nname = \"d\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n";
    let alternative = |name: &str, steps: &str| {
        format!(
            "[[alternative]]\nname = \"{name}\"\nrequest = [ {{ send = \"client-host\", bytes = \"128 B\" }}, {steps} ]\n"
        )
    };
    let alone = alternative(
        "host",
        r#"{ compute = "host", time = "1.4 us" }, { send = "host-client", bytes = "128 B" }"#,
    );
    let handed = alternative(
        "handed over",
        r#"{ compute = "host", time = "1.2 us" }, { send-ud = "host-soc", bytes = "128 B" },
           { compute = "soc", time = "300 ns" }, { send = "soc-client", bytes = "128 B" }"#,
    );
    let known = |text: String| {
        let found = advised(&text, Depth::Every).advice;
        found.into_iter().map(|one| (one.rule, one.standing.map(|one| one.share))).collect::<Vec<_>>()
    };
    let first = known(format!("{head}{handed}{alone}"));
    assert!(!first.is_empty() && first.iter().all(|(_, known)| known.is_some()), "{first:?}");
    assert_eq!(known(format!("{head}{alone}{handed}")), first);
}

#[test]
fn the_same_seed_gives_the_same_advice() {
    let text = text("three-mistakes.toml");
    let say = || format!("{:?}", advised(&text, Depth::Promising));
    assert_eq!(say(), say());
}

#[test]
fn a_change_that_does_not_fit_is_not_proposed() {
    let reasons = |advised: &Advised, rule: &str| -> String {
        let found = advised.silent.iter().find(|one| one.rule == rule);
        found.map_or(String::new(), |one| one.reasons.join("\n"))
    };
    let small = format!(
        "{COUNTERS}update = [ {{ write = \"client-soc\", bytes = \"record\", object = \"counters\" }} ]\n"
    );
    let spread = advised(&design("bluefield2", "mix = \"a\"", &small), Depth::Promising);
    assert_eq!(spread.advice.first().map(|one| one.rule), Some("spread-hot-range"));
    let cache = "[cache]\nat = \"soc\"\nbudget = \"16 GiB\"\nhottest = \"counters\"\n[[alternative]]";
    let full = small.replace("[[alternative]]", cache);
    let silent = advised(&design("bluefield2", "mix = \"a\"", &full), Depth::Promising);
    let said = reasons(&silent, "spread-hot-range");
    assert!(said.contains("do not fit at `soc`"), "{said}");
    assert!(silent.advice.iter().all(|one| one.rule != "spread-hot-range"), "{:?}", silent.advice);
}

#[test]
fn data_that_does_not_fit_is_not_sharded() {
    let of = |spacing: &str| {
        design(
            "bluefield2",
            "",
            &format!(
                "{}[object.table]\nentry = \"64 B\"\nspacing = \"{spacing}\"\n[[alternative]]\nname = \"a\"\nupdate = [ {} ]\n",
                &COUNTERS[..COUNTERS.find("[object").expect("its object")],
                r#"{ read = "client-host", bytes = "record", object = "table" }"#
            ),
        )
    };
    let said = |text: &str| -> String {
        let advised = advised(text, Depth::Promising);
        let found = advised.silent.into_iter().find(|one| one.rule == "shard-across-endpoints");
        found.map_or(String::new(), |one| one.reasons.join("\n"))
    };
    // 24 entries every 1 GB are more than the SoC's memory and less than the host's.
    let large = said(&of("1000000000 B"));
    assert!(large.contains("do not fit at `soc`"), "{large}");
    let small = said(&of("64 B"));
    assert!(!small.contains("do not fit"), "{small}");
}

/// A device stands at one endpoint, and no share of its requests at another has it.
#[test]
fn work_that_waits_for_a_device_is_not_sharded() {
    let of = |wait: &str| {
        one(
            "bluefield2",
            "",
            &format!(
                r#"{{ send = "client-host", bytes = "64 B" }}, {{ compute = "host", time = "3 us" }}, {wait}
                   {{ send = "host-client", bytes = "64 B" }}"#
            ),
        )
    };
    let plain = advised(&of(""), Depth::Every);
    assert!(plain.advice.iter().any(|one| one.rule == "shard-across-endpoints"), "{:?}", plain.advice);
    let waits = advised(&of(r#"{ wait = "20 us" },"#), Depth::Every);
    assert!(waits.advice.iter().all(|one| one.rule != "shard-across-endpoints"), "{:?}", waits.advice);
    let said =
        waits.silent.into_iter().find(|one| one.rule == "shard-across-endpoints").expect("it is silent");
    assert!(said.reasons.concat().contains("waits for a device"), "{:?}", said.reasons);
}

/// What a step takes on a processor of many small threads no comparison of cores says.
#[test]
fn no_computing_goes_to_a_processor_that_nothing_compares() {
    let text = one(
        "bluefield3",
        "",
        r#"{ send-ud = "client-host", bytes = "64 B" }, { compute = "host", time = "10 us" },
           { send-ud = "host-client", bytes = "64 B" }"#,
    );
    let found = advised(&text, Depth::Every);
    let all = found.advice.iter().map(|one| &one.remedy);
    assert!(all.clone().any(|remedy| remedy.contains("on soc")), "{:?}", found.advice);
    assert!(all.clone().all(|remedy| !remedy.contains("dpa")), "{:?}", found.advice);
}

/// A kind of work that was measured of both processors goes over as it is. A time that says on which one it is taken does not: what
/// the other takes is a guess of the profiles, of which no gain would say how far it goes.
#[test]
fn work_goes_over_where_it_was_measured_of_both() {
    let of = |compute: &str| {
        let steps = format!(
            r#"{{ send = "client-host", bytes = "64 B" }}, {{ compute = "host", {compute} }}, {{ send = "host-client", bytes = "64 B" }}"#
        );
        let text = one("bluefield2", "", &steps).replace("\"rack\"", "\"sun-regex\"");
        let found = advised(&text, Depth::Every);
        let shared = found.advice.into_iter().find(|one| one.rule == "shard-across-endpoints");
        let silent = found.silent.into_iter().find(|one| one.rule == "shard-across-endpoints");
        (shared.map(|one| one.diff), silent.map_or(String::new(), |one| one.reasons.concat()))
    };
    let (diff, _) = of(r#"work = "stress-ng-mergesort", operations = 0.00001"#);
    let diff = diff.expect("it is measured of both");
    assert!(diff.contains("compute = \"soc\", work = \"stress-ng-mergesort\""), "{diff}");
    assert!(!diff.contains("soc-over-host"), "{diff}");
    for (compute, why) in [
        (r#"time = "3 us", on = "host""#, "was not measured of `soc`"),
        (
            r#"work = "regular-expressions", bytes = "4 KiB""#,
            "the work `regular-expressions` was not measured of `soc`",
        ),
    ] {
        let (diff, silent) = of(compute);
        assert!(diff.is_none() && silent.contains(why), "{compute}: {diff:?} {silent}");
    }
}

/// Requests that wait for 1 ms: no twin holds as many of them in flight as would fill a station.
const MANY_WAIT: &str = r#"{ read = "client-soc", bytes = "64 B" }, { wait = "1 ms" }"#;

#[test]
fn nothing_is_measured_where_the_twin_does_not_confirm_the_mix() {
    let text = one("bluefield2", "", MANY_WAIT);
    for depth in [Depth::Promising, Depth::Every] {
        let advised = advised(&text, depth);
        let gap = advised.unconfirmed.as_ref().expect("the twin carries less");
        assert!(gap.blind.is_some() && gap.carried_per_s.is_none(), "{gap:?}");
        assert!(advised.advice.is_empty() && advised.silent.is_empty() && advised.together.is_none());
        assert_eq!(advised.text, text);
    }
}

#[test]
fn every_rule_has_its_page() {
    let docs = designs().join("../docs/advice");
    let index = std::fs::read_to_string(docs.join("README.md")).expect("the index is there");
    for rule in RULES {
        let page = std::fs::read_to_string(docs.join(format!("{}.md", rule.name))).expect(rule.name);
        assert!(page.starts_with(&format!("# {}\n", rule.name)), "{}", rule.name);
        for part in ["**Looks for**", "**Remedy.**", "**Source.**", "**Gain.**", "**Silent**"] {
            assert!(page.contains(part), "{}: {part}", rule.name);
        }
        assert!(index.contains(&format!("[{0}]({0}.md)", rule.name)), "{} is not in the index", rule.name);
    }
    assert_eq!(std::fs::read_dir(docs).expect("the folder is there").count(), RULES.len() + 1);
}

/// Were gains measured on runs that carry less than the plan's, a remedy could gain what they lack.
#[test]
fn gains_are_measured_on_what_the_plan_was_confirmed_by() {
    let long = |steps: &str| one("bluefield2", "", steps);
    let texts = [
        long(SERVED),
        long(RELAY),
        long(BEHIND_A_CACHE),
        long(
            r#"{ send-ud = "client-soc", bytes = "16 B" }, { probability = 0.02, then = [
            { compute = "soc", time = "1 ms" } ], otherwise = [ { compute = "soc", time = "2 us" } ] },
            { send-ud = "soc-client", bytes = "64 B" }"#,
        ),
        long(
            r#"{ probability = 0.05, then = [ { read = "client-host", bytes = "4 MiB" } ], otherwise = [
            { read = "client-host", bytes = "64 B" } ] }"#,
        ),
        long(
            r#"{ send-ud = "client-soc", bytes = "16 B" }, { wait = "100 us" }, { send-ud = "soc-client", bytes = "64 B" }"#,
        ),
    ];
    let (changes, setting, directory) = (Changes::default(), library(), designs());
    for text in texts {
        let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
        let (case, ready) = bench.case(&text, None).expect("the design is in order");
        let settled = settle(&case.design, &ready, Chosen::Held(&case.shares), Seed::new(1));
        let settled = settled.expect("the twin runs it");
        assert!(settled.gap.is_none(), "{:?}\n{text}", settled.gap);
        let runs = &bench.run(&[(&case, &Scope::All)], SEEDS).expect("the twin runs it")[0];
        let mean = runs.iter().map(|run| run.throughput).sum::<f64>() / runs.len() as f64;
        near(&text, mean, settled.rate, settled.allowed());
    }
}

/// A design that the twin can hold may have a remedy that it cannot: run all the same, it would show how many
/// requests the twin has and not what the remedy gains.
#[test]
fn a_remedy_beyond_what_the_twin_holds_is_not_measured() {
    let steps = r#"{ send-ud = "client-soc", bytes = "16 B" }, { wait = "150 us" },
        { send-ud = "soc-client", bytes = "64 B" }"#;
    let advised = advised(&one("bluefield2", "", steps), Depth::Every);
    assert!(advised.unconfirmed.is_none(), "{:?}", advised.unconfirmed);
    let reasons: Vec<&String> = advised.silent.iter().flat_map(|silence| &silence.reasons).collect();
    assert!(
        reasons.iter().any(|reason| reason.contains("requests in flight, and the twin runs 4096")),
        "{reasons:#?}"
    );
}

/// The same time is scaled by as much to another processor's, however it is written.
#[test]
fn a_time_is_scaled_however_it_is_written() {
    let gain = |head: &str, time: &str| {
        let steps = SERVED.replace("\"800 ns\"", time).replace("host", "soc");
        let text =
            one("bluefield2", "", &steps).replace("[[alternative]]", &format!("{head}\n[[alternative]]"));
        let found = advised(&text, Depth::Every);
        let share = found.advice.iter().find(|advice| advice.rule == "shard-across-endpoints");
        share.unwrap_or_else(|| panic!("{text}")).gain.share.mean
    };
    let plain = gain("", "\"3 us\"");
    for (head, time) in [
        ("", "\"3 us to 3 us\""),
        ("", "{ value = \"3 us\", low = \"2 us\", high = \"4 us\" }"),
        ("[parameters]\nservice = \"3 us\"", "\"service\""),
        ("[parameters]\nservice = \"1 us\"", "\"service * 3\""),
    ] {
        near(time, gain(head, time), plain, 0.02);
    }
}

/// A remedy states how long the work takes on the other processor, and at one end that may be more than a step may take:
/// then it is no remedy, and the design as given is as good as it was.
#[test]
fn a_remedy_that_is_no_design_at_one_end_is_left_out() {
    let steps = r#"{ send = "client-host", bytes = "64 B" }, { compute = "host", time = "1 us to 30 s" },
                   { send = "host-client", bytes = "16 B" }"#;
    let found = advised(&one("bluefield2", "", steps), Depth::Promising);
    let silent: Vec<&str> =
        found.silent.iter().flat_map(|rule| rule.reasons.iter().map(String::as_str)).collect();
    assert!(silent.iter().any(|why| why.contains("longer than 60 s")), "{silent:?}");
}

/// More room is no shorter tail: at the ends of what a remedy assumes no gain of one is told, and none is written into a
/// file before its author decides it.
#[test]
fn of_a_tail_nothing_is_told_by_added_up_demands() {
    let served = r#"{ send = "client-soc", bytes = "64 B" }, { compute = "soc", time = "4 us" },
                    { send = "soc-client", bytes = "64 B" }"#;
    let text = one("bluefield2", "objective = \"lowest-p99\"\noffered_load = \"1.4 M/s\"", served);
    let found = advised(&text, Depth::Every);
    let [only] = &found.advice[..] else { panic!("{:?}", found.advice) };
    let brings = only.brings.as_ref().expect("it assumes how fast the host is");
    assert_eq!((brings.numbers.len(), brings.ends), (1, None), "{brings:?}");
    assert!(only.may_lose() && only.standing.is_none() && only.with_variants.is_empty(), "{only:?}");
    let (low, high) = only.gain.before_95;
    assert!(low < only.gain.before && only.gain.before < high, "{:?}", only.gain);
    let sure = advised(&text, Depth::Sure);
    assert!(sure.advice.is_empty() && sure.text == text, "{:?}", sure.advice);
    assert!(sure.left_out[0].contains("nothing tells what a tail gains"), "{:?}", sure.left_out);
}

/// Where a gain hangs on a mechanism that the evidence leaves open, it is told what the other gives.
#[test]
fn a_gain_is_told_under_each_open_mechanism() {
    let text = one("bluefield2", "", "{ read = \"client-host\", bytes = \"64 B\" }");
    let gain = |overlays: &[&str]| {
        let setting = setting(overlays, &[]);
        let directory = designs();
        let changes = Changes::default();
        let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
        let found = advise(&bench, &text, Depth::Every).expect("it is checked").advice;
        let [one] = &found[..] else { panic!("{found:?}") };
        (one.gain.share.mean, one.with_variants.clone())
    };
    let (base, told) = gain(&[]);
    let (pool, nothing) = gain(&["one-pool"]);
    let [(variant, Some(there))] = &told[..] else { panic!("{told:?}") };
    assert_eq!((variant.as_str(), nothing), ("one-pool", vec![]));
    assert!((there - pool).abs() < 0.03 && base > pool + 0.2, "{base}, {there} told, {pool} measured");
}

/// What other cores take is nobody's measurement of this system: the changed design says so by an interval,
/// and what rests on it is an estimate.
#[test]
fn what_other_cores_take_is_an_estimate_with_an_interval() {
    for (time, number) in [
        ("\"3 us\"", "parameters.soc-over-host"),
        // No parameter multiplies an interval: the step has one of its own.
        ("\"2 us to 4 us\"", "alternative.a on soc.request.2.time"),
    ] {
        let text = one("bluefield2", "", &SERVED.replace("\"800 ns\"", time));
        let found = advised(&text, Depth::Every);
        let share = found.advice.iter().find(|advice| advice.rule == "shard-across-endpoints").unwrap();
        let brings = share.brings.as_ref().expect("the remedy states what the other cores take");
        assert_eq!(brings.numbers, [number]);
        assert!(
            brings.ends.is_some_and(|(least, most)| least < 0.0 && most > 0.05),
            "with slow cores the advised shares lose: {brings:?}"
        );
        // What loses where these cores are slow is told, and written into nobody's file.
        let sure = advised(&text, Depth::Sure);
        assert!(sure.advice.iter().all(|one| one.rule != "shard-across-endpoints"), "{:?}", sure.advice);
        let [left_out] = &sure.left_out[..] else { panic!("{:?}", sure.left_out) };
        assert!(left_out.starts_with("shard-across-endpoints: ") && left_out.contains(number), "{left_out}");
        assert!(!sure.text.contains("assumed"), "{}", sure.text);
        let changed = found.text;
        let plan = planned(&parse(&changed, &Changes::default()), &[], &[]);
        let added = alone(&plan, "a on soc");
        // What the remedy guesses is not an estimate of the design's author.
        assert!(changed.contains("provenance = \"assumed\""), "{changed}");
        assert!(guessed(&added.rests_on) > 0.1 && added.basis > Basis::Predicted, "{:?}", added.rests_on);
        let (low, high) = added.rate.range_80;
        assert!(high / low > 2.0, "{:?} of\n{changed}", added.rate);
    }
}

/// Steps that are moved keep all that they say: a size by a parameter, an interval, a batch.
#[test]
fn moved_work_says_what_it_said() {
    let steps = r#"{ compute = "host", bytes = "chunk", rate = "800 MB/s to 1600 MB/s" },
        { compute = "host", time = "2 us to 9 us" }, { write = "host-backup", bytes = "chunk", batch = 16 }"#;
    let head = "objective = \"least-host-cpu\"\noffered_load = \"5 k/s\"\n[parameters]\nchunk = \"64 KiB\"";
    let text = one("bluefield2", head, steps);
    let changed = advised(&text, Depth::Every).text;
    let added: Vec<&str> = changed.lines().filter(|line| line.contains("soc")).collect();
    let said = added.join("\n");
    for kept in ["bytes = \"chunk\"", "batch = 16", "low = ", "high = "] {
        assert!(said.contains(kept), "`{kept}` is gone:\n{changed}");
    }
    // At another size both files are of that size: the work that moved grows with it.
    let host = |text: &str, size: &str| {
        let parameters = std::collections::BTreeMap::from([("chunk".to_string(), size.to_string())]);
        let plan = planned(&parse(text, &Changes { parameters, ..Changes::default() }), &[], &[]);
        plan.alternatives[0].rate.value
    };
    let (small, large) = (host(&changed, "16 KiB"), host(&changed, "256 KiB"));
    assert!(small > 3.0 * large, "{small} {large}\n{changed}");
}

/// Rules ask what carries a step: lists are of what a NIC posts, and an SSD or a processor's own loads have no other
/// mover.
#[test]
fn rules_know_what_carries_a_step() {
    let silent = |advised: &Advised, rule: &str| {
        let found = advised.silent.iter().find(|one| one.rule == rule);
        found.map(|one| one.reasons.join("; ")).unwrap_or_default()
    };
    let few_threads = "set = [\"dpa.cores=1\", \"dpa.threads_per_core=4\"]";
    let load = r#"{ send-ud = "client-dpa", bytes = "16 B" }, { load = "dpa-dpa:arm", bytes = "64 B" },
        { read = "dpa-host", bytes = "64 B" }, { send-ud = "dpa-client", bytes = "16 B" }"#;
    let loads = advised(&one("everything", few_threads, load), Depth::Promising);
    let batched = loads.advice.iter().find(|one| one.rule == "batch-doorbells");
    let batched = batched.unwrap_or_else(|| panic!("{}", silent(&loads, "batch-doorbells")));
    assert!(batched.gain.share.low > 0.2, "{batched:?}");
    assert!(
        !batched.diff.lines().any(|line| line.starts_with('+') && line.contains("load =")),
        "{batched:?}"
    );
    let own = r#"{ send-ud = "client-dpa", bytes = "16 B" }, { load = "dpa-dpa", bytes = "64 B" },
        { send-ud = "dpa-client", bytes = "16 B" }"#;
    // Of the card's other processors the one that loads from its own memory may serve a share.
    let own = advised(&one("everything", "", own), Depth::Promising);
    let shard = own.advice.iter().find(|one| one.rule == "shard-across-endpoints");
    let shard = shard.unwrap_or_else(|| panic!("{}", silent(&own, "shard-across-endpoints")));
    assert!(shard.diff.contains("load = \"arm-arm\"") && !shard.diff.contains("store-store"), "{shard:?}");

    let stored = r#"{ send = "client-store", bytes = "64 B" }, { read = "store-ssd", bytes = "4 KiB" },
        { compute = "store", time = "2 us" }, { send = "store-client", bytes = "64 B" }"#;
    let stored = advised(&one("everything", "", stored), Depth::Promising);
    let why = silent(&stored, "add-alternative");
    assert!(why.contains("every alternative that another mover"), "{why}");
    let why = silent(&stored, "use-accelerator");
    assert!(why.contains("`regex` transforms, and its profile names no kind of work that it does"), "{why}");
    // What an engine does already is the plan's to compare, and what it does not do is another's.
    let why = silent(&advised(&text("regex-logs.toml"), Depth::Promising), "use-accelerator");
    assert!(why.contains("`accelerator` lets `regex` do it already"), "{why}");
    let other = logs(2).replace("work = \"regular-expressions\", bytes = \"page\"", "time = \"5 us\"");
    let why = silent(&advised(&other, Depth::Promising), "use-accelerator");
    assert!(why.contains("of a kind of work that `regex` does by bytes (regular-expressions)"), "{why}");
}

/// What a request of a list asks for in the mean: steps that compute or let an engine do so, the bytes that leave a machine, and waits.
fn work(steps: &[Step], times: f64, look: &Look<'_>) -> [f64; 3] {
    let mut sum = [0.0; 3];
    let mut add = |of: [f64; 3]| (0..3).for_each(|at| sum[at] += of[at]);
    for step in steps {
        match step {
            Step::Compute { .. } => add([times, 0.0, 0.0]),
            Step::Wait { .. } => add([0.0, 0.0, times]),
            // An engine does what a processor computes otherwise.
            Step::Verb { verb: Verb::Transform, .. } => add([times, 0.0, 0.0]),
            Step::Verb { path, bytes, to, .. } => {
                let path = look.router.path(path).expect("it was compiled");
                let leaves = look.apart(&path.requester, &path.responder);
                add([0.0, if leaves { times * bytes.get() as f64 * f64::from(*to) } else { 0.0 }, 0.0]);
            }
            Step::Background { steps, .. } => add(work(steps, times, look)),
            Step::Repeat { times: count, steps, .. } => add(work(steps, times * *count as f64, look)),
            Step::Parallel(lists) => lists.iter().for_each(|steps| add(work(steps, times, look))),
            Step::Branch { probability, then, otherwise, .. } => {
                add(work(then, times * probability, look));
                add(work(otherwise, times * (1.0 - probability), look));
            }
        }
    }
    sum
}

/// Every change that any rule proposes of a design leaves each of its alternatives the work that its requests ask for, and
/// gives an alternative that it adds that of the one it is made from; or its remedy says what is dropped, and why.
fn keeps_the_work(text: &str) {
    let (changes, setting, directory) = (Changes::default(), library(), designs());
    let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
    let Ok((case, ready)) = bench.case(text, None) else { return };
    let look = Look::new(&case, &ready, &Scope::All);
    let all = |one: &Alternative| -> Vec<[f64; 3]> {
        one.operations.iter().map(|(_, _, steps)| work(steps, 1.0, &look)).collect()
    };
    for rule in RULES {
        let Proposed::Changes(proposals) = (rule.propose)(&look) else { continue };
        for rung in proposals.into_iter().flat_map(|one| one.ladder) {
            let Ok(changed) = rung.changed else { continue };
            let Ok((after, _)) = bench.case(&changed.text, None) else { continue };
            for now in &after.design.alternatives {
                let made_from = |one: &&Alternative| now.name.starts_with(&one.name);
                let from = case.design.alternatives.iter().filter(made_from).max_by_key(|one| one.name.len());
                let (given, kept) = (all(from.expect("it is made from one")), all(now));
                let same = given.iter().flatten().zip(kept.iter().flatten());
                let is_same = same.clone().all(|(a, b)| (a - b).abs() <= 1e-9 * a.max(1.0));
                // What hits do besides, misses do then too.
                let is_more = same.clone().all(|(a, b)| *b >= a - 1e-9 * a.max(1.0));
                let is_said = rung.remedy.contains("every request is served as a hit is")
                    && (is_more || rung.remedy.contains("which drops what a miss alone does"));
                assert!(
                    is_same || is_said,
                    "{}: {} leaves {kept:?} of {given:?}\n{}",
                    rule.name,
                    rung.remedy,
                    changed.text
                );
            }
        }
    }
}

/// A request that comes to the SoC, does one of two lists of steps, and is answered.
fn branched(head: &str, then: &[&str], otherwise: &[&str]) -> String {
    let keys = if head.starts_with("cached") { ["hit", "miss"] } else { ["then", "otherwise"] };
    let branch = format!(
        "{{ {head}, {} = [{}], {} = [{}] }}",
        keys[0],
        then.join(", "),
        keys[1],
        otherwise.join(", ")
    );
    let steps = format!(
        r#"{{ send-ud = "client-soc", bytes = "16 B" }}, {{ compute = "soc", time = "100 ns" }}, {branch},
        {{ compute = "soc", time = "70 ns" }}, {{ send-ud = "soc-client", bytes = "64 B" }}"#
    );
    let cache = "[cache]\nat = \"soc\"\nbudget = \"1 KiB\"\nhottest = \"counters\"\n[[alternative]]";
    design(
        "bluefield2",
        "mix = \"a\"",
        &format!("{}update = [ {steps} ]\n", COUNTERS.replace("[[alternative]]", cache)),
    )
}

/// Steps that a case of a branch may have.
const IN_A_CASE: [&str; 5] = [
    r#"{ read = "soc-host", bytes = "64 B" }"#,
    r#"{ compute = "soc", time = "50 ns" }"#,
    r#"{ compute = "soc", time = "3 us" }"#,
    r#"{ repeat = 2, steps = [{ read = "soc-host", bytes = "64 B" }] }"#,
    r#"{ parallel = [[{ read = "soc-host", bytes = "64 B" }], [{ compute = "soc", time = "50 ns" }]] }"#,
];

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig { cases: 32, failure_persistence: None, ..Default::default() })]

    #[test]
    fn what_requests_ask_for_stays(
        then in proptest::collection::vec(0usize..5, 0..3),
        otherwise in proptest::collection::vec(0usize..5, 0..3),
        is_cached in proptest::prelude::any::<bool>(),
    ) {
        let of = |which: &[usize]| which.iter().map(|at| IN_A_CASE[*at]).collect::<Vec<_>>();
        let head = if is_cached { "cached = \"counters\"" } else { "probability = 0.3" };
        keeps_the_work(&branched(head, &of(&then), &of(&otherwise)));
    }
}

#[test]
fn what_requests_of_each_rule_ask_for_stays() {
    cases().iter().for_each(|(_, text)| keeps_the_work(text));
    [text("three-mistakes.toml"), text("replication.toml"), small("kv-batching.toml"), two_ways()]
        .iter()
        .for_each(|text| keeps_the_work(text));
}

/// Of two cases that differ by more than what is fetched, each is what some requests ask for.
#[test]
fn a_branch_is_a_cache_where_its_cases_differ_by_the_fetch_or_it_says_so() {
    let [fetch, short, long, ..] = IN_A_CASE;
    let found = |head: &str, then: &[&str], otherwise: &[&str]| {
        let text = branched(head, then, otherwise);
        let (changes, setting, directory) = (Changes::default(), library(), designs());
        let bench = TrialBench::new("design.toml", &directory, &changes, &setting, Seed::new(1));
        let (case, ready) = bench.case(&text, None).expect("it is compiled");
        let rule = RULES.iter().find(|rule| rule.name == "no-nic-side-cache").expect("it is a rule");
        match (rule.propose)(&Look::new(&case, &ready, &Scope::All)) {
            Proposed::Silent(why) => Err(why),
            Proposed::Changes(all) => Ok(all[0].ladder[0].remedy.clone()),
        }
    };
    for (then, otherwise) in
        [(&[short][..], &[fetch, short][..]), (&[fetch, short], &[short]), (&[], &[fetch])]
    {
        let remedy = found("probability = 0.01", then, otherwise).expect("the fetch alone differs");
        assert!(!remedy.contains("drops"), "{remedy}");
    }
    for otherwise in [&[fetch, long][..], &[fetch], &[fetch, short, short]] {
        let why = found("probability = 0.01", &[short], otherwise).expect_err("other work");
        assert!(why.contains("the cases differ by more than that"), "{why}");
    }
    let remedy = found("cached = \"counters\"", &[short], &[fetch, short, long]).expect("it says so");
    assert!(
        remedy.contains("which drops what a miss alone does besides fetching (3 us at `soc`)"),
        "{remedy}"
    );
    let why = found("cached = \"counters\"", &[fetch, long], &[short]).expect_err("hits are kept");
    assert!(why.contains("the cases differ by more than that"), "{why}");
}

/// How sure a gain is does not hang on the order in which its author writes two steps, nor on whether they are written as one.
#[test]
fn a_number_stays_the_same_wherever_a_remedy_leaves_it() {
    let known = |times: &[&str]| {
        let computed: Vec<String> =
            times.iter().map(|time| format!("{{ compute = \"host\", time = {time} }}")).collect();
        let steps = format!("{{ write = \"host-backup\", bytes = \"4 KiB\" }}, {}", computed.join(", "));
        let found = advised(&one("bluefield2", "set = [\"host.cores=1\"]", &steps), Depth::Promising);
        let moved = found.advice.into_iter().find(|one| one.rule == "move-background-work");
        let moved = moved.expect("it gains");
        (
            moved.standing.expect("throughput is added up"),
            moved.brings.map_or(Vec::new(), |brings| brings.numbers),
        )
    };
    let (whole, _) = known(&["\"20.2 us\""]);
    for times in [["\"20 us\"", "\"200 ns\""], ["\"200 ns\"", "\"20 us\""]] {
        let (split, brings) = known(&times);
        let ends =
            [(split.share.range_80, whole.share.range_80), (split.share.range_95, whole.share.range_95)];
        for ((low, high), (whole_low, whole_high)) in ends {
            near("low", 1.0 + low, 1.0 + whole_low, 0.02);
            near("high", 1.0 + high, 1.0 + whole_high, 0.02);
        }
        assert!((split.gains_in - whole.gains_in).abs() < 0.02, "{split:?}\n{whole:?}");
        assert_eq!(brings, ["parameters.soc-over-host"]);
    }
    // Intervals are moved, each to a number of its own, however many steps stand before it now.
    let (_, brings) = known(&["\"10 us to 30 us\"", "\"100 ns to 300 ns\""]);
    assert_eq!(brings, ["alternative.a.request.3.time", "alternative.a.request.4.time"]);
}

/// An alternative that takes another's steps has them where the other's stand, and so has one of several that a choice makes.
#[test]
fn a_remedy_names_every_alternative_that_it_changes() {
    let steps = |bytes: &str| {
        format!(
            r#"request = [ {{ send = "client-soc", bytes = "64 B" }}, {{ compute = "soc", time = "100 ns" }},
            {{ read = "soc-host", bytes = "{bytes}" }}, {{ send-ud = "soc-client", bytes = "64 B" }} ]"#
        )
    };
    let alternative = |rest: &str| format!("[[alternative]]\nname = \"a\"\n{rest}\n");
    let like = alternative(&steps("64 B")) + "[[alternative]]\nname = \"b\"\nlike = \"a\"\n";
    let choice = alternative(&format!("choose = {{ size = [\"64 B\", \"4 KiB\"] }}\n{}", steps("{size}")));
    for (text, also) in [
        (design("bluefield2", "mix = \"b\"", &like), "; it changes `a` too"),
        (design("bluefield2", "mix = \"a[size=64 B]\"", &choice), "; it changes `a[size=4 KiB]` too"),
    ] {
        let found = advised(&text, Depth::Promising);
        let batched = found.advice.iter().find(|one| one.rule == "batch-doorbells");
        let batched = batched.unwrap_or_else(|| panic!("{:?}", found.silent));
        assert!(batched.remedy.ends_with(also), "{}", batched.remedy);
        assert!(found.text.contains("batch = ") && !found.text.contains("offpath step"), "{}", found.text);
    }
}

/// That a file cannot be changed so is no case of nothing to change.
#[test]
fn what_cannot_be_written_is_said() {
    let steps = r#"{ send = "client-{at}", bytes = "64 B" }, { compute = "{at}", time = "3 us" },
        { send = "{at}-client", bytes = "64 B" }"#;
    let text = one("bluefield2", "", steps).replace("request", "choose = { at = [\"host\"] }\nrequest");
    let found = advised(&text, Depth::Promising);
    let silent = found.silent.iter().find(|one| one.rule == "shard-across-endpoints").expect("it was tried");
    let why = silent.reasons.join("; ");
    assert!(
        why.contains("cannot be written into the file: `send = \"client-{at}\"` goes by a choice"),
        "{why}"
    );
    assert_eq!(found.text, text);
}
