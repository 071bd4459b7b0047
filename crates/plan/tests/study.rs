//! What a study says of a design besides its mix: open mechanisms, limits that leave nothing, few clients, notes.

use crate::common::*;
use offpath_plan::advice::{Depth, TrialBench, advise};
use offpath_plan::check::{CheckedPlan, Chosen, few_clients, settle};
use offpath_plan::study::{Ask, Next, Study};
use offpath_plan::{Basis, Changes, Design, PlanError, Setting, prepare};
use offpath_profile::{Category, Library};
use offpath_twin::Seed;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;

const HEAD: &str = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                    rank_by = \"throughput\"\n";

fn alternative(name: &str, more: &str, steps: &str) -> String {
    format!("[[alternative]]\nname = \"{name}\"\n{more}request = [ {steps} ]\n")
}

fn studied(text: &str, setting: &Setting) -> Result<Study, miette::Report> {
    let changes = Changes::default();
    study_of(&Design::parse(text, "design.toml", &designs(), &changes)?, &changes, setting)
}

const BY_HOST: &str = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"1 us\" }, \
                       { send = \"host-client\", bytes = \"64 B\" }";
/// The same with much to send back.
const MUCH: &str = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"TIME\" }, \
                    { send = \"host-client\", bytes = \"8 MiB\" }";

/// The shipped replication at a ratio at which several mixes are as good.
static REPLICATION_AT_HALF: LazyLock<CheckedPlan> = LazyLock::new(|| {
    let changes = with_ratio(0.5);
    let design = parse(&text("replication.toml"), &changes);
    study_of(&design, &changes, &setting(&[], &[])).expect("it is planned").checked
});

/// The shipped card read from a file is the shipped card: what was measured of it, and what is missed, stays.
#[test]
fn a_copy_of_the_shipped_card_is_the_shipped_card() {
    let folder = tempfile::tempdir().expect("a folder");
    let card = Library::builtin().source(Category::Device, "bluefield2").expect("it ships").to_string();
    let text = text("replication.toml");
    let study = |device: Option<&str>| {
        let changes = Changes { device: device.map(str::to_string), ..Changes::default() };
        study_of(&parse(&text, &changes), &changes, &setting(&[], &[])).expect("it is planned")
    };
    let of_file = |card: &str| {
        let file = folder.path().join("card.toml");
        std::fs::write(&file, card).expect("written");
        study(file.to_str())
    };
    let (shipped, copy) = (study(None), of_file(&card));
    assert!(!copy.is_other_system);
    let figures = |study: &Study| {
        let all = study.checked.plan.alternatives.iter();
        all.map(|one| (one.name.clone(), one.rate.value, one.rate.range_80, one.basis)).collect::<Vec<_>>()
    };
    assert_eq!(figures(&copy), figures(&shipped));
    let changed =
        card.replace("bank_read_time = { value = \"35.9 ns\"", "bank_read_time = { value = \"36.9 ns\"");
    assert_ne!(changed, card);
    assert!(of_file(&changed).is_other_system, "one number of it is another");
}

/// An alternative written twice makes no number a turning point: which of the two is named decides nothing, and neither is
/// thought to carry more at an end than when it is planned there.
#[test]
fn a_copy_of_an_alternative_turns_nothing() {
    let reads = "{ read = \"client-soc\", bytes = \"64 B\" }, { read = \"client-soc\", bytes = \"64 B\" }";
    let text = HEAD.to_string() + &alternative("x", "", reads) + &alternative("y", "", reads);
    let plain = studied(&text, &setting(&[], &[])).expect("it is planned");
    let influences = &plain.checked.plan.influences;
    assert!(influences.iter().any(|one| one.planned));
    for one in influences {
        assert_eq!(one.changes, None, "{}", one.number);
    }
    let one = influences.iter().find(|one| one.number == "switch.pass_time").expect("it moves the mix");
    let set = studied(&text, &setting(&[], &["switch.pass_time=275ns"])).expect("it is planned");
    near("at its end", one.at_low.expect("it has a plan"), set.checked.plan.optimal.rate.value, 0.01);
}

/// A copy of an alternative, and one that asks for more besides, are thought no better for not having been run.
#[test]
fn a_variant_that_asks_for_more_changes_no_answer() {
    let soc = "{ compare-and-swap = \"client-soc\" }, { read = \"client-host\", bytes = \"64 B\" }, \
               { write = \"client-host\", bytes = \"64 B\" }, { compare-and-swap = \"client-soc\" }";
    let call = "{ send-ud = \"client-soc\", bytes = \"32 B\" }, { compute = \"soc\", time = \"200 ns\" }, \
                { send-ud = \"soc-client\", bytes = \"64 B\" }";
    let of = |more: &str| {
        let text = [HEAD, &alternative("soc", "", soc), &alternative("call", "", call), more].concat();
        studied(&text, &setting(&[], &[])).expect("it is planned").checked
    };
    let plain = of("");
    assert!(plain.settled.has_settled() && plain.plan.optimal.shares.len() == 2, "{:?}", plain.plan.optimal);
    let later = format!("{{ compute = \"client\", time = \"50 ns\" }}, {soc}");
    // What binds nothing costs no rate, so that each is as good, and the rate tells of the two no better one.
    let alike = |name: &str| if name == "variant" { "soc".to_string() } else { name.to_string() };
    for steps in [soc, &later] {
        let with = of(&alternative("variant", "mixed = true\n", steps));
        assert!(with.settled.has_settled(), "{steps}");
        for ((name, share), (own, of)) in with.plan.optimal.shares.iter().zip(&plain.plan.optimal.shares) {
            assert_eq!(alike(name), *own, "{steps}");
            near(steps, *share, *of, 1e-3);
        }
        near(steps, with.plan.optimal.rate.value, plain.plan.optimal.rate.value, 1e-3);
        assert!(!with.plan.optimal.unique, "{steps}");
    }
}

/// What a variant says is what a plan under it says, of every alternative; and a plain NIC beside the card has none of
/// the card's mechanisms.
#[test]
fn a_variant_is_what_it_is_planned_as() {
    let text = [
        HEAD.to_string(),
        alternative(
            "soc",
            "",
            "{ read = \"client-soc\", bytes = \"64 B\" }, { read = \"client-soc\", bytes = \"64 B\" }",
        ),
        alternative(
            "both",
            "",
            "{ read = \"client-soc\", bytes = \"64 B\" }, { read = \"client-host\", bytes = \"64 B\" }",
        ),
        alternative("nic", "device = \"connectx6\"\n", "{ write = \"client-host\", bytes = \"64 B\" }"),
    ]
    .concat();
    let plain = studied(&text, &setting(&[], &[])).expect("it is planned");
    let [variant] = &plain.variants[..] else { panic!("{:?}", plain.variants) };
    let under = studied(&text, &setting(&[&variant.overlay], &[])).expect("it is planned");
    let solved = variant.solved.as_ref().expect("it carries something");
    let figures = |study: &Study| -> Vec<(String, f64)> {
        let all = study.checked.plan.alternatives.iter();
        all.map(|one| (one.name.clone(), one.rate.value)).collect()
    };
    let of_variant: Vec<(String, f64)> =
        solved.alternatives.iter().map(|(name, rate, _)| (name.clone(), *rate)).collect();
    assert_eq!(of_variant, figures(&under));
    assert_eq!(solved.rate, under.checked.plan.optimal.rate.value);
    let of = |figures: &[(String, f64)], name: &str| {
        figures.iter().find(|(own, _)| own == name).map(|(_, rate)| *rate).expect("an alternative")
    };
    assert_eq!(of(&of_variant, "nic"), of(&figures(&plain), "nic"));
    assert!(1.2 * of(&of_variant, "both") < of(&figures(&plain), "both"), "the mechanism moves the card");
    // Its numbers are called as its own system calls them.
    let nic = alone(&plain.checked.plan, "nic");
    assert!(
        nic.rests_on.iter().any(|rest| rest.number == "connectx6:nic.inflight_slots"),
        "{:?}",
        nic.rests_on
    );
    assert!(nic.rests_on.iter().all(|rest| !rest.number.contains("backup")), "{:?}", nic.rests_on);
    // How often the set is the best lies between what the mechanisms say, and one alone has nothing to be told apart.
    let sure = &plain.checked.plan.recommendation;
    let (base, open) = sure.best_in_by_mechanism.expect("one is open");
    assert!(base.min(open) <= sure.best_in && sure.best_in <= base.max(open), "{sure:?}");
    assert_eq!(under.checked.plan.recommendation.best_in_by_mechanism, None);
    // A mechanism is nobody's setting.
    let soc = alone(&under.checked.plan, "soc");
    assert!(soc.rests_on.iter().all(|rest| rest.origin != offpath_plan::factor::Origin::Yours), "{soc:?}");
}

const SERVED: &str = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"1 us\" }, \
                      { send = \"host-client\", bytes = \"64 B\" }";

/// A limit that leaves nothing of a mix is a row of 0, and no reason to doubt the plan; of everything it is an answer.
#[test]
fn a_limit_that_leaves_nothing_is_told() {
    let none = "[constraints]\nhost_cpu_share = 0.0\n";
    let read = alternative("read", "", "{ read = \"client-host\", bytes = \"64 B\" }");
    let served = alternative("served", "", SERVED);
    let only = "[[mix]]\nname = \"only\"\nfill = [\"served\"]\n";
    let with =
        studied(&[HEAD, none, &read, &served, only].concat(), &setting(&[], &[])).expect("it is planned");
    let without = studied(&[HEAD, none, &read, &served].concat(), &setting(&[], &[])).expect("it is planned");
    let of = |study: &Study| {
        let plan = &study.checked.plan;
        (plan.optimal.rate, plan.recommendation.carried_in, plan.recommendation.basis)
    };
    assert_eq!(of(&with), of(&without));
    assert_eq!(with.checked.plan.mixes[0].rate.value, 0.0);
    let refused =
        studied(&[HEAD, none, &served].concat(), &setting(&[], &[])).err().expect("nothing is left");
    assert!(matches!(refused.downcast_ref(), Some(PlanError::NothingAllowed { .. })), "{refused:?}");
    let said = refused.to_string();
    assert!(said.contains("`host_cpu_share` leaves 0") && said.contains("`served`"), "{said}");
}

/// Copies for more machines than there are go to one of them several times, and the author hears so.
#[test]
fn copies_for_machines_that_are_not_there_are_told() {
    let text = |count: u32| {
        let steps = format!("{{ write = \"soc-backup\", bytes = \"64 KiB\", to = {count} }}");
        [HEAD, &alternative("a", "", &steps)].concat()
    };
    let notes = |count| studied(&text(count), &setting(&[], &[])).expect("it is planned").notes;
    assert_eq!(notes(1), Vec::<String>::new());
    let three = notes(3).concat();
    assert!(three.contains("1 `backup` takes part") && three.contains("backup.count=3"), "{three}");
    let enough = studied(&text(3), &setting(&[], &["backup.count=3"])).expect("it is planned").notes;
    assert_eq!(enough, Vec::<String>::new());
}

/// Work that takes no time waits for nobody: with one core, few clients carry what the core or their latency allows.
#[test]
fn few_clients_carry_what_a_core_and_their_latency_allow() {
    let steps = "{ send-ud = \"client-host\", bytes = \"128 B\" }, { compute = \"host\", time = \"14.7 us\" }, \
                 { repeat = 3, steps = [{ write = \"host-replica\", bytes = \"128 B\" }] }, \
                 { send-ud = \"host-client\", bytes = \"64 B\" }";
    let counts = [1u32, 2, 3, 8];
    let text = [
        HEAD.replace("rank_by", "testbed = \"sun\"\nrank_by"),
        alternative("a", "", steps),
        format!("[clients]\ncounts = {counts:?}\n"),
    ]
    .concat();
    let design = parse(&text, &Changes::default());
    let free: Vec<String> =
        ["post", "poll", "receive"].map(|what| format!("host_verbs.{what}_time=0 ns")).into();
    let mut settings: Vec<&str> = free.iter().map(String::as_str).collect();
    settings.push("host.cores=1");
    let setting = setting(&[], &settings);
    let ready = prepare(&design, &setting).expect("the design is in order");
    let plan = try_plan(&design, &setting).expect("it has a plan");
    let rows = few_clients(&design, &ready, &plan, Seed::new(1)).expect("the twin runs it");
    let latency = ready[0].compiled.fold(&ready[0].router).latency;
    for (count, carried) in counts.into_iter().zip(&rows[0].1) {
        let most = (f64::from(count) / latency).min(1.0 / 14.7e-6);
        near(&format!("{count} clients"), carried.mean, most, 0.03);
    }
}

/// A parameter at the value that the file has is not a change.
#[test]
fn a_parameter_that_is_given_again_changes_nothing() {
    let plan = |ratio: Option<&str>| {
        let parameters = ratio.map(|ratio| ("ratio".to_string(), ratio.to_string())).into_iter().collect();
        let changes = Changes { parameters, steps: true, ..Changes::default() };
        let design =
            offpath_plan::Design::parse(&text("replication.toml"), "replication.toml", &designs(), &changes);
        let plan = planned(&design.expect("in order"), &[], &[]);
        let alternatives = plan.alternatives.into_iter().map(|one| (one.name, one.basis, one.rate));
        (alternatives.collect::<Vec<_>>(), plan.optimal.rate)
    };
    assert_eq!(plan(Some("1")), plan(None));
    assert_eq!(plan(Some("1.00")), plan(None));
    assert_ne!(plan(Some("0.9")).0, plan(None).0);
}

const SMALL: &str = "{ repeat = 7, steps = [{ read = \"client-host\", bytes = \"64 B\" }] }";

/// Short requests hold their slots for longer beside long ones, and a mix that costs more than it brings is none:
/// whatever is added to a design, its best mix is no worse than an alternative by itself.
#[test]
fn no_alternative_alone_is_better_than_the_best_mix() {
    let twice = "{ read = \"client-soc\", bytes = \"64 B\" }, { read = \"client-soc\", bytes = \"64 B\" }";
    for (small, large, is_small_alone) in [
        (SMALL, "{ read = \"client-soc\", bytes = \"64 KiB\" }", true),
        (SMALL, "{ read = \"client-host\", bytes = \"64 KiB\" }", true),
        (twice, "{ write = \"client-soc\", bytes = \"16 KiB\" }", true),
        (twice, "{ read = \"client-host\", bytes = \"4 KiB\" }", false),
    ] {
        let text = [HEAD, &alternative("small", "", small), &alternative("large", "", large)].concat();
        let plain = setting(&[], &[]);
        let design = parse(&text, &Changes::default());
        let ready = prepare(&design, &plain).expect("it is prepared");
        let settled = settle(&design, &ready, Chosen::Best, Seed::new(1)).expect("it is settled");
        for name in ["small", "large"] {
            let only = [(name.to_string(), 1.0)];
            let alone =
                settle(&design, &ready, Chosen::Held(&only), Seed::new(1)).expect("it is settled").rate;
            assert!(settled.rate >= alone * (1.0 - 1e-3), "{name}: {alone} beside {}: {text}", settled.rate);
        }
        assert!(settled.shares.len() == 1 || !is_small_alone, "{:?}: {text}", settled.shares);
        assert!(settled.gap.is_none(), "{:?}", settled.gap);
        near(&text, settled.loaded.throughput.mean, settled.rate, 0.05);
        // What runs the best mix is looked at with the mix that a study settles on.
        let changes = Changes::default();
        let bench = TrialBench::new("design.toml", Path::new("."), &changes, &plain, Seed::new(1));
        let checked = advise(&bench, &text, Depth::Promising).expect("it is checked");
        assert_eq!(checked.shares, settled.shares, "{text}");
    }
}

/// Of two alternatives that fill the same station, one quicker by a little, no mix is quicker by enough: each alone is
/// asked.
#[test]
fn of_alternatives_as_good_the_quicker_is_taken() {
    let best = |quick: &str| {
        let of = |wait: &str, time: &str| {
            format!(
                "{{ send-ud = \"client-soc\", bytes = \"16 B\" }}, {wait} {{ compute = \"soc\", time = \"{time}\" }}, \
                 {{ send-ud = \"soc-client\", bytes = \"64 B\" }}"
            )
        };
        let text = HEAD.to_string()
            + &alternative("more", "", &of("{ wait = \"800 ns\" },", "1 us"))
            + &alternative("quick", "", &of("", quick));
        let study = studied(&text, &setting(&[], &[])).expect("it is planned");
        let optimal = &study.checked.plan.optimal;
        assert_eq!(study.checked.settled.shares, optimal.shares);
        (optimal.shares[0].0.clone(), optimal.shares.len(), optimal.unique)
    };
    assert_eq!(best("1.010 us"), ("quick".into(), 1, false), "within a hundredth");
    assert_eq!(best("1.020 us"), ("more".into(), 1, true), "two hundredths are told apart");
}

/// Two mixes within a thousandth of one another are as good, and the quicker one is taken.
#[test]
fn of_mixes_as_good_the_quicker_is_taken() {
    let plan = &REPLICATION_AT_HALF.plan;
    let named = plan.mixes.iter().find(|mix| mix.name == "A2+A3").expect("the design names it");
    let (best, other) = (&plan.optimal, named);
    let is_as_good = other.rate.value >= best.rate.value * (1.0 - 1e-3);
    assert!(is_as_good, "{:?} {:?}", other.rate, best.rate);
    assert!(other.latency_s >= best.latency_s * 0.95, "{} {}", other.latency_s, best.latency_s);
    // Some of the third would be quicker by less than a twentieth, which nobody builds it for.
    assert_eq!(plan.optimal.composition(), ["A2", "A3"]);
    // How far the shares may be chosen otherwise is said, and holds the mix that the design names.
    for mix in [best, other] {
        for (name, share) in &mix.shares {
            let (low, high) = best.as_good[name];
            assert!(low - 1e-3 <= *share && *share <= high + 1e-3, "{name}: {share} {low} {high}");
        }
    }
    assert!(best.as_good.values().any(|(low, high)| high - low > 0.01), "{:?}", best.as_good);
    assert!(other.as_good.is_empty());
}

/// Some of each alternative would carry a little more than the first does, and be about as quick, which nobody builds
/// two of them for.
#[test]
fn a_mix_that_gains_nothing_is_the_one_that_it_is_made_of() {
    let best = |time: &str| {
        let text = HEAD.to_string()
            + &alternative("one", "", &BY_HOST.replace("1 us", "5 ms"))
            + &alternative("both", "", &MUCH.replace("TIME", time));
        let plan = studied(&text, &setting(&[], &[])).expect("it is planned").checked.plan;
        plan.optimal.shares.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(best("4.997 ms"), ["one"]);
    assert_eq!(best("4.9 ms"), ["both", "one"], "a gain of a hundredth is one");
}

fn at(goal: &str, more: &str) -> String {
    HEAD.replace("objective = \"most-throughput\"", &format!("objective = \"{goal}\"")) + more
}

/// What is said to bind a mix is full at the mix that is printed, whichever of several as good it is.
#[test]
fn what_binds_a_mix_is_busy_on_the_twin() {
    let tie = HEAD.to_string()
        + &alternative("one", "", &BY_HOST.replace("1 us", "5 ms"))
        + &alternative("both", "", &MUCH.replace("TIME", "4.997 ms"));
    let tie = studied(&tie, &setting(&[], &[])).expect("it is planned").checked;
    for checked in [&*REPLICATION_AT_HALF, &tie] {
        let busy = &checked.settled.loaded.fullest;
        assert!(!checked.plan.optimal.bounds.is_empty());
        for bound in checked.plan.optimal.bounds.iter().filter(|bound| !bound.is_load) {
            let share = busy.get(bound.name.as_str()).map(|(_, share)| *share);
            assert!(share.is_none_or(|share| share > 0.98), "{} is {share:?} busy", bound.name);
        }
    }
}

/// Where another alternative takes over the best mix carries much the same, and somebody who knew the number would build
/// something else.
#[test]
fn what_another_alternative_takes_over_at_is_told() {
    let served = |steps: &str| {
        format!(
            "{{ send = \"client-host\", bytes = \"4 KiB\" }}, {{ compute = \"host\", time = \"1 us\" }}, {steps} \
             {{ send = \"host-client\", bytes = \"16 B\" }}"
        )
    };
    let copy = "{ write = \"host-backup\", bytes = \"4 KiB\" },";
    let text = HEAD.to_string()
        + &alternative("first", "", &served(""))
        + &format!(
            "background = [ {copy} {{ compute = \"host\", time = {{ value = \"2 us\", low = \"1 us\", high = \"4 us\" }} }} ]\n"
        )
        + &alternative("last", "", &served(&format!("{copy} {{ compute = \"host\", time = \"2 us\" }},")));
    let plan = studied(&text, &setting(&[], &[])).expect("it is planned").checked.plan;
    let turning = plan.influences.iter().find(|one| one.number.contains("background"));
    let turning = turning.expect("it moves the mix");
    let changes = turning.changes.as_deref().unwrap_or_default();
    assert!(turning.planned && changes.contains("last at 4 us"), "{turning:?}");
}

/// What more brings is told with slots held for as long as in the mix, which is said where they bind.
#[test]
fn slots_that_bind_are_said_beside_what_more_brings() {
    let binds = |request: &str| {
        let text = HEAD.to_string() + &alternative("a", "", request);
        let optimal = studied(&text, &setting(&[], &[])).expect("it is planned").checked.plan.optimal;
        (optimal.slots_bind, optimal.bounds.iter().any(|bound| bound.name.contains("inflight_slots")))
    };
    assert_eq!(binds("{ read = \"client-soc\", bytes = \"64 B\" }"), (true, true));
    assert_eq!(binds("{ read = \"client-soc\", bytes = \"64 KiB\" }"), (false, false));
}

/// More of all that is said to bind carries as much more: what is full and not named would be the next to bind at once.
#[test]
fn a_tenth_more_of_all_that_binds_is_a_tenth_more() {
    let study = |settings: &[&str]| {
        let (changes, setting) = (with_ratio(0.5), setting(&[], settings));
        let design = parse(&text("replication.toml"), &changes);
        study_of(&design, &changes, &setting).expect("it is planned").checked.plan.optimal
    };
    let given = study(&[]);
    let names: BTreeSet<&str> = given.bounds.iter().map(|bound| bound.name.as_str()).collect();
    let settings: Vec<&str> = names
        .iter()
        .map(|name| match *name {
            "nic.transmit" | "nic.receive" => "nic.port_rate=220 Gbit/s",
            "backup.nic.receive" => "backup.nic.port_rate=220 Gbit/s",
            "pcie0.up" | "pcie0.down" => "pcie0.rate=281.6 Gbit/s",
            "pcie1.up" | "pcie1.down" => "pcie1.rate=281.6 Gbit/s",
            other => panic!("{other} binds too, and is to be widened here"),
        })
        .collect();
    let more = study(&settings).rate.value / given.rate.value;
    assert!(more > 1.09, "10% more of {names:?} is {more} of what was carried");
}

#[test]
fn what_the_latency_bound_forbids_has_no_lowest_tail() {
    let text = at("lowest-p99", "offered_load = \"16.5 M/s\"\n[constraints]\nlatency_bound = \"4.4 us\"\n")
        + &alternative("a", "", BY_HOST)
        + &alternative("b", "", "{ read = \"client-host\", bytes = \"64 B\" }, { wait = \"2 us\" }");
    let checked = studied(&text, &setting(&[], &[])).expect("it is planned").checked;
    let b = checked.plan.alternatives.iter().find(|one| one.name == "b").expect("it is there");
    assert!(b.latency_s.value > 4.4e-6 && b.rate.value > 16.5e6, "it would carry the load");
    let shares = checked.settled.shares;
    assert!(shares.iter().all(|(name, share)| name == "a" || *share == 0.0), "{shares:?}");
}

/// Greedy fills what there is, whatever is sought.
#[test]
fn greedy_is_the_same_at_a_load() {
    let both = alternative("host", "", BY_HOST)
        + &alternative("soc", "", &BY_HOST.replace("host", "soc").replace("1 us", "35 us"));
    let greedy = |text: String| {
        let plan = studied(&text, &setting(&[], &[])).expect("it is planned").checked.plan;
        plan.greedy.shares.into_iter().map(|(name, _)| name).collect::<Vec<_>>()
    };
    assert_eq!(greedy(HEAD.to_string() + &both), ["host", "soc"]);
    assert_eq!(greedy(at("least-host-cpu", "offered_load = \"5 M/s\"\n") + &both), ["host", "soc"]);
}

/// Two alternatives of the same cost share no load between them: one carries it, and nobody builds both.
#[test]
fn of_two_equal_alternatives_one_carries_the_load() {
    let both = alternative("one", "", BY_HOST) + &alternative("other", "", BY_HOST);
    for goal in ["least-host-cpu", "lowest-p99"] {
        let text = at(goal, "offered_load = \"5 M/s\"\n") + &both;
        let plan = studied(&text, &setting(&[], &[])).expect("it is planned").checked.plan;
        assert_eq!(plan.optimal.composition().len(), 1, "{goal}: {:?}", plan.optimal.shares);
        assert!(!plan.optimal.unique, "{goal}: the other one is as good");
    }
}

/// A share of the host is so many of its cores, for plan, twin, few clients and curve alike: whole ones, rounded down.
#[test]
fn a_share_of_the_host_is_so_many_cores() {
    let seen = |constraints: &str, settings: &[&str]| {
        let text =
            [HEAD, constraints, &alternative("a", "", BY_HOST), "[clients]\ncounts = [1, 64]\n"].concat();
        let (setting, changes) = (setting(&[], settings), Changes::default());
        let design = parse(&text, &changes);
        let ask =
            Ask { design: &design, changes: &changes, setting: &setting, seed: Seed::new(1), curve: true };
        let study = Study::of(&ask).expect("it is planned");
        let plan = &study.checked.plan;
        assert_eq!(study.checked.settled.gap, None);
        assert_eq!(plan.alternatives[0].binding, "host.cpu");
        assert!(study.advised.unconfirmed.is_none(), "gains are measured under the limit");
        let loaded = &study.checked.settled.loaded;
        let of_twin = (loaded.throughput.mean, loaded.utilization["host.cpu"]);
        (plan.optimal.rate.value, of_twin, format!("{:?} {:?}", study.clients, study.curve))
    };
    let share = |share: f64| seen(&format!("[constraints]\nhost_cpu_share = {share}\n"), &[]);
    assert_eq!(share(0.5), seen("", &["host.cores=12"]));
    // 7.2 of 24.
    assert_eq!(share(0.3), seen("", &["host.cores=7"]));
    assert_eq!(share(1.0), seen("", &[]));
    let text = HEAD.to_string() + "[constraints]\nhost_cpu_share = 0.02\n" + &alternative("a", "", BY_HOST);
    let refused = studied(&text, &setting(&[], &[])).err().expect("it is less than a core").to_string();
    assert_eq!(refused, "host_cpu_share is 0.02, less than one of the host's 24 cores");
}

/// Who plans with a cache that no part of the mix fills hears so, and whose mix fills it does not.
#[test]
fn a_cache_that_no_part_of_the_mix_fills_is_told() {
    let text = small("kv-ycsb-c.toml");
    let head = text.split("[[alternative]]").next().expect("it has a head");
    let said = |name: &str| {
        let named = format!("\nname = \"{name}\"\n");
        let one = text.split("[[alternative]]").find(|one| one.starts_with(&named)).expect("it is there");
        let one = format!("[[alternative]]{one}");
        let study = studied(&[head, &one].concat(), &setting(&[], &[])).expect("it is planned");
        study.notes.into_iter().find(|note| note.contains("cache that no part of it fills"))
    };
    let note = said("A5-read").expect("its misses stay out");
    assert!(note.contains("`A5-read` on ") && note.contains("A5-send brings records in"), "{note}");
    assert_eq!((said("A5-send"), said("A4")), (None, None));
}

/// How often a load is carried is counted over what the interval of the same rate is made of, and host time, which full
/// processors turn into a rate, is known no better than that rate.
#[test]
fn a_load_and_host_time_are_known_as_well_as_the_rate() {
    let text = |objective: &str, load: &str| at(objective, load) + &alternative("a", "", BY_HOST);
    let plan = |text: &str| studied(text, &setting(&[], &[])).expect("it is planned").checked.plan;
    let free = plan(&text("most-throughput", ""));
    let (rate, (low, high)) = (free.optimal.rate.value, free.optimal.rate.range_80);
    assert!(low < 0.8 * rate && high > 1.2 * rate, "{low} {rate} {high}");
    let reached = free.recommendation.shares_carry_in;
    assert!((0.1..0.9).contains(&reached), "what lies in its interval is reached in {reached} of the draws");
    let near = plan(&text("lowest-p99", &format!("offered_load = \"{:.0}/s\"\n", 0.97 * rate)));
    let carried = near.recommendation.shares_carry_in;
    assert!(
        (0.3..0.75).contains(&carried),
        "97% of the rate is carried in {carried} of what the interval is of"
    );
    let host = plan(&text("least-host-cpu", &format!("offered_load = \"{:.0}/s\"\n", 0.3 * rate)));
    let (time, (least, most)) = (host.worth.value, host.worth.range_80);
    assert!(least / time < 0.85 && most / time > 1.15, "{least} {time} {most}");
}

/// Of one fitted alternative, too: nine of ten draws carry what the lower end of its 80% interval is.
#[test]
fn a_fitted_alternative_carries_a_load_as_often_as_its_interval_says() {
    let plan = |objective: &str, load: Option<f64>| {
        let changes = Changes {
            only: Some(["A1".to_string()].into()),
            objective: Some(objective.to_string()),
            offered_load: load.map(|load| format!("{load:.0}/s")),
            ..Changes::default()
        };
        planned(&parse(&text("kv-ycsb-c.toml"), &changes), &[], &[])
    };
    let free = plan("most-throughput", None);
    assert_eq!(free.alternatives[0].basis, Basis::Fitted);
    let (low, _) = free.optimal.rate.range_80;
    assert!(low < 0.99 * free.optimal.rate.value && low > 0.9 * free.optimal.rate.value, "{low}");
    for objective in ["least-host-cpu", "lowest-p99"] {
        let sure = plan(objective, Some(low)).recommendation;
        assert!((sure.shares_carry_in - 0.9).abs() < 0.02 && !sure.is_widened, "{}", sure.shares_carry_in);
    }
}

/// A time means the same whether it is written as one step or as ten, and so does what is said to decide and to move the mix.
#[test]
fn one_guess_in_several_steps_is_one_guess() {
    let of = |times: usize, time: &str| {
        let step = format!("{{ compute = \"soc\", time = \"{time}\" }}, ").repeat(times);
        let steps = format!(
            "{{ send = \"client-soc\", bytes = \"64 B\" }}, {step}{{ send = \"soc-client\", bytes = \"64 B\" }}"
        );
        studied(&[HEAD, &alternative("a", "", &steps)].concat(), &setting(&[], &[])).expect("it is planned")
    };
    let (one, ten) = (of(1, "800 ns"), of(10, "80 ns"));
    let yours = |study: &Study| {
        let rests = &study.checked.plan.recommendation.rests_on;
        rests.iter().find(|rest| rest.number.starts_with("alternative.")).expect("it decides").clone()
    };
    let (whole, parts) = (yours(&one), yours(&ten));
    assert_eq!((whole.with.len(), parts.with.len()), (0, 9));
    near("what it decides", parts.weight, whole.weight, 0.1);
    // Ten small steps add up to somewhat more than one large one.
    near("what it moves", parts.moves, whole.moves, 0.15);
    assert!(matches!(&one.next, Next::Undrawn { with: 0, .. }), "{:?}", one.next);
    assert!(matches!(&ten.next, Next::Undrawn { with: 9, .. }), "{:?}", ten.next);
}

/// What moves the mix by a twentieth of what past predictions were wrong by narrows its interval by next to nothing.
#[test]
fn next_is_nothing_that_past_errors_hide() {
    let next = |time: &str| {
        let steps = BY_HOST.replace("1 us", time);
        studied(&[HEAD, &alternative("a", "", &steps)].concat(), &setting(&[], &[]))
            .expect("it is planned")
            .next
    };
    assert!(matches!(next("5 us to 20 us"), Next::Narrow { .. }), "{:?}", next("5 us to 20 us"));
    assert!(!matches!(next("9.7 us to 10.3 us"), Next::Narrow { .. }), "{:?}", next("9.7 us to 10.3 us"));
}

/// Who narrows an estimate of a hundredth of a percent learns nothing by it, however much of the mix rests on it.
#[test]
fn next_is_what_narrows_the_plan() {
    let next = |time: &str| {
        let steps = BY_HOST.replace("1 us", time);
        let text = HEAD.to_string() + &alternative("a", "", &steps);
        studied(&text, &setting(&[], &[])).expect("it is planned").next
    };
    let is_yours = |next: &Next| match next {
        Next::Narrow { number, .. } | Next::Undrawn { number, .. } => number.contains("time"),
        _ => false,
    };
    assert!(matches!(next("2 us"), Next::Undrawn { is_set: false, .. }), "it has no interval");
    let wide = next("2 us to 4 us");
    assert!(matches!(wide, Next::Narrow { .. }) && is_yours(&wide), "{wide:?}");
    let narrow = next("2 us to 2.0001 us");
    assert!(!is_yours(&narrow), "{narrow:?}");
}

/// A count that binds nothing because the user says that there are many is the user's.
#[test]
fn a_great_count_of_ones_own_is_an_estimate() {
    let text = HEAD.to_string() + &alternative("a", "", "{ read = \"client-soc\", bytes = \"64 B\" }");
    let basis = |settings: &[&str]| {
        let study = studied(&text, &setting(&[], settings)).expect("it is planned");
        study.checked.plan.alternatives[0].basis
    };
    assert!(basis(&[]) < Basis::YourEstimate);
    assert_eq!(basis(&["nic.inflight_slots=200"]), Basis::YourEstimate);
    // Half of it would bind nothing either; what it was set in place of would.
    assert_eq!(basis(&["nic.inflight_slots=3000"]), Basis::YourEstimate);
}

/// A guess that the user replaces by a guess of their own is not evidence, however little of the figure it decides.
#[test]
fn what_is_set_makes_nothing_better_known() {
    let text = HEAD.to_string() + &alternative("a", "", "{ read = \"client-host\", bytes = \"4 KiB\" }");
    let basis = |settings: &[&str]| {
        let study = studied(&text, &setting(&[], settings)).expect("it is planned");
        study.checked.plan.alternatives[0].basis
    };
    assert_eq!(basis(&[]), Basis::Weak, "headers are guessed");
    assert_eq!(basis(&["network.mtu=2KiB", "network.packet_header=40B"]), Basis::YourEstimate);
}

/// At the edge of what is carried a latency still rests on what it is made of, a mix of one has that one's interval,
/// and the curve goes to what the stations carry.
#[test]
fn at_a_load_near_capacity_figures_are_what_they_are_elsewhere() {
    let text = at("lowest-p99", "offered_load = \"99.9 M/s\"\n")
        + &alternative("q", "", "{ read = \"client-host\", bytes = \"64 B\" }");
    let (changes, setting) = (Changes::default(), setting(&[], &[]));
    let ask = Ask {
        design: &parse(&text, &changes),
        changes: &changes,
        setting: &setting,
        seed: Seed::new(1),
        curve: true,
    };
    let study = Study::of(&ask).expect("it is planned");
    let plan = &study.checked.plan;
    assert!(plan.recommendation.carried_in < 0.9, "some draws do not carry it");
    let rests = &plan.recommendation.rests_on;
    assert!(rests.iter().all(|rest| !rest.number.contains("inflight_slots")), "{rests:?}");
    assert_eq!(plan.greedy.rate.range_80, plan.alternatives[0].rate.range_80);
    let loads: Vec<f64> = study.curve.iter().map(|point| point.offered_per_s).collect();
    assert!(loads.contains(&99.9e6) && loads.is_sorted(), "{loads:?}");
}

/// What the ends of the heaviest numbers are said to give is what planning with them gives: the mix by its names, and
/// its rate within what a shorter window may be off by. Scaled from what was observed, the store's turning point was
/// another mix.
#[test]
fn the_ends_that_are_told_are_what_is_planned_with_them() {
    let path = designs().join("kv-ycsb-c.toml");
    let plain = setting(&[], &[]);
    let changes = Changes::default();
    let design = Design::load(&path, &changes).expect("it is read");
    let study = study_of(&design, &changes, &plain).expect("it is planned");
    let influences = &study.checked.plan.influences;
    // What was not planned again names no other mix, and is little.
    for one in influences.iter().filter(|one| !one.planned) {
        let moves = |end: Option<f64>| (end.expect("a plan") / study.checked.plan.worth.value).ln().abs();
        assert!(one.changes.is_none() && moves(one.at_low).max(moves(one.at_high)) < 0.03, "{one:?}");
    }
    // Another set may be better there by less than a hundredth, and that is not a turning point.
    let looked: Vec<_> = influences.iter().filter(|one| one.planned).collect();
    assert!(looked.len() >= 3 && looked.iter().any(|one| one.number == "nic.pass_time"), "{looked:?}");
    let design = parse(&text("kv-ycsb-c.toml"), &changes);
    let ends = looked.iter().flat_map(|one| [(one, one.low, one.at_low), (one, one.high, one.at_high)]);
    for (one, value, worth) in ends {
        let with = setting(&[], &[&format!("{}={value}", one.number)]);
        let ready = prepare(&design, &with).expect("it is prepared");
        let settled = settle(&design, &ready, Chosen::Best, Seed::new(1)).expect("it is planned");
        near(&format!("at {value}"), worth.expect("a plan"), settled.rate, 0.015);
        let mut set: Vec<&str> = settled.shares.iter().map(|(name, _)| name.as_str()).collect();
        set.sort_unstable();
        let told = format!("{} at {value}", set.join(" + "));
        let usual = study.checked.plan.optimal.composition();
        let changes = one.changes.as_deref().unwrap_or_default();
        assert!(!changes.contains(&told) || set != usual, "{told} and {changes}");
    }
}

/// The same of a number of the design.
#[test]
fn the_ends_of_an_estimate_are_what_is_planned_with_them() {
    let alternatives = [
        alternative("host", "", SERVED).replace("\"1 us\"", "\"0.5 us to 2 us\""),
        alternative("card", "", SERVED).replace("host", "soc").replace("\"1 us\"", "\"2 us\""),
    ];
    let of = |host: &str| {
        let text = [HEAD, &alternatives[0], &alternatives[1]].concat();
        studied(&text.replace("0.5 us to 2 us", host), &setting(&[], &[])).expect("it is planned")
    };
    let study = of("0.5 us to 2 us");
    // No alternative is printed with more than the best mix, whose shares are those that advice looks at.
    let plan = &study.checked.plan;
    let most = plan.optimal.rate.value;
    assert!(plan.alternatives.iter().all(|alone| most >= alone.rate.value * (1.0 - 1e-3)), "{most}");
    assert_eq!(study.advised.shares, study.checked.settled.shares);
    let one = study.checked.plan.influences.iter().find(|one| one.number.contains("time"));
    let one = one.unwrap_or_else(|| panic!("{:?}", study.checked.plan.influences));
    assert!(one.planned, "{one:?}");
    for (host, worth) in [("0.5 us", one.at_low), ("2 us", one.at_high)] {
        near(host, worth.expect("a plan"), of(host).checked.plan.worth.value, 0.015);
    }
}

/// What a mode costs and the profile does not hold is said wherever rates are.
#[test]
fn a_mode_of_the_card_that_costs_something_is_noted() {
    let noted = |mode: Option<&str>| {
        let setting = Setting { mode: mode.map(str::to_string), ..setting(&[], &[]) };
        let study = studied(&[HEAD, &alternative("host", "", BY_HOST)].concat(), &setting);
        study.expect("it is planned").notes.iter().any(|note| note.contains("is not part of the profile"))
    };
    assert!(noted(Some("embedded-cpu")) && !noted(None));
}

/// A file that describes a card in a testbed, as `calibrate` writes it, is planned in either testbed, and whoever plans in
/// another is told that its hosts do not count there.
#[test]
fn a_card_that_brings_a_testbed_may_be_planned_in_it() {
    let library = Library::builtin();
    let card = library.source(Category::Device, "bluefield2").expect("it ships");
    let rack = library.source(Category::Testbed, "rack").expect("it ships");
    let card = card.replacen("\ntestbed = \"rack\"", "", 1);
    let rack = rack.replacen("name = \"rack\"", "name = \"own\"", 1);
    let folder = tempfile::tempdir().expect("a directory");
    let file = folder.path().join("card.toml");
    std::fs::write(&file, format!("{card}\n{rack}")).expect("written");
    let file = file.to_str().expect("it is text");
    let changes = Changes { device: Some(file.to_string()), ..Changes::default() };
    let design = parse(
        "[design]\nname = \"d\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nmode = \"separated-host\"\n\
         objective = \"most-throughput\"\nrank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n\
         request = [ { read = \"client-soc\", bytes = \"64 B\" } ]\n",
        &changes,
    );
    let of = |testbed: Option<&str>| {
        let setting = Setting { testbed: testbed.map(str::to_string), ..setting(&[], &[]) };
        study_of(&design, &changes, &setting).expect("it has a plan")
    };
    let is_told =
        |study: &Study| study.notes.iter().any(|note| note.contains("hosts and a network of its own"));
    let (elsewhere, own) = (of(None), of(Some(file)));
    assert_eq!((elsewhere.system.testbed.as_str(), own.system.testbed.as_str()), ("rack", "own"));
    assert!(is_told(&elsewhere) && !is_told(&own), "{:?} {:?}", elsewhere.notes, own.notes);
    let rate = |study: &Study| study.checked.plan.optimal.rate.value;
    assert!((rate(&elsewhere) / rate(&own) - 1.0).abs() < 1e-9, "the same machines by another name");
}

/// What is rare in a mix makes each of its runs long, so that no end of a number takes another: what was observed is scaled.
#[test]
fn the_ends_of_numbers_take_no_long_runs() {
    let steps = |share: &str| {
        format!(
            "{{ send = \"client-host\", bytes = \"64 B\" }}, {{ probability = {share}, then = [{{ compute = \"host\", \
             time = \"20 us\" }}], otherwise = [] }}, {{ send = \"host-client\", bytes = \"64 B\" }}"
        )
    };
    for (share, is_long) in [("0.0002", true), ("0.02", false)] {
        let text = format!("{}{}", HEAD, alternative("a", "", &steps(share)));
        let study = studied(&text, &Setting::plain(Library::builtin())).expect("it is planned");
        let influences = &study.checked.plan.influences;
        assert!(!influences.is_empty(), "{share}");
        assert_eq!(influences.iter().all(|one| !one.planned), is_long, "{share}: {influences:?}");
    }
}
