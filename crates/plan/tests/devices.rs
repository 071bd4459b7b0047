//! One design on several devices: what each runs of it, which is the best, and what numbers they share in draws.
//!
//! A row of the tables that changes is a decision that users would see change: accept it with
//! `INSTA_UPDATE=always cargo test --release -p offpath-plan --test all devices::` once its reason is understood.

use crate::common::*;
use offpath_plan::comparison::{CompareAsk, Comparison, Contest, DrawsSay, Entrant, on_device};
use offpath_plan::residual::{FigureKind, Lesson};
use offpath_plan::solve::{shares, solved};
use offpath_plan::{Changes, Design, Setting};
use offpath_profile::{Category, Library, SystemRequest};
use offpath_quantity::Time;
use offpath_twin::Seed;
use std::fmt::Write;
use std::sync::LazyLock;

const CARDS: [&str; 2] = ["bluefield2", "bluefield3"];

fn ask<'a>(
    design: &'a Design,
    changes: &'a Changes,
    setting: &'a Setting,
    entrants: &'a [Entrant],
) -> CompareAsk<'a> {
    CompareAsk { design, changes, setting, entrants, beside_first: false, seed: Seed::new(1) }
}

fn compared(design: &Design, setting: &Setting, devices: &[&str]) -> Result<Comparison, miette::Report> {
    let devices: Vec<Entrant> = devices.iter().map(|device| Entrant::device(device)).collect();
    Comparison::of(&ask(design, &Changes::default(), setting, &devices))
}

fn contest<'c>(comparison: &'c Comparison, device: &str) -> &'c Contest {
    let own = comparison.contenders.iter().find(|one| one.name == device).expect("it was asked for");
    own.outcome.as_ref().unwrap_or_else(|why| panic!("{device} has a plan: {why}"))
}

/// What each device runs of a design, what the best mix is by added-up demands, and what binds it.
fn decisions(name: &str, plain: &str) -> String {
    let design = parse(&text(&format!("{name}.toml")), &Changes::default());
    let (changes, setting) = (Changes::default(), setting(&[], &[]));
    let mut table = String::new();
    for device in CARDS.into_iter().chain([plain]) {
        let devices = [Entrant::device(device)];
        let (contender, own) =
            on_device(&ask(&design, &changes, &setting, &devices), &devices[0]).expect("it is looked at");
        let line = match own {
            None => format!("no plan: {}", contender.outcome.err().unwrap_or_default()),
            Some(own) => {
                let seen = solved(&own.design, &own.ready, &folds(&own.ready)).expect("it is solved");
                let mix: Vec<String> = shares(&seen.optimal)
                    .iter()
                    .filter(|(_, share)| *share > 0.0005)
                    .map(|(name, share)| format!("{:.1}% {name}", share * 100.0))
                    .collect();
                let bounds: Vec<String> =
                    seen.optimal.binding.iter().map(|one| one.constraint.to_string()).collect();
                let chosen = own.search.iter().flat_map(|search| &search.for_all);
                let chosen: String =
                    chosen.map(|one| format!("; {} = {}", one.choice, one.taken.join(" "))).collect();
                let gap = own.search.as_ref().map_or(0.0, |search| search.gap);
                assert_eq!(gap, 0.0, "{name} on {device}: every deployment is looked at or ruled out");
                format!(
                    "{:.3} M/s of {} in {}; {} binds{chosen}",
                    seen.optimal.total / 1e6,
                    mix.join(" + "),
                    contender.system.testbed,
                    bounds.join(" and ")
                )
            }
        };
        writeln!(table, "{device}: {line}").expect("text can be written");
        for (alternative, reason) in contender.left_out {
            writeln!(table, "    without {alternative}: {reason}").expect("text can be written");
        }
        for setting in contender.settings_left_out {
            writeln!(table, "    without the setting {setting}").expect("text can be written");
        }
    }
    table
}

#[test]
fn decisions_for_the_nvme_target() {
    insta::assert_snapshot!(decisions("nvme-of-target", "connectx7"));
}

#[test]
fn decisions_for_aggregation() {
    insta::assert_snapshot!(decisions("aggregate-bf3", "connectx7"));
}

#[test]
fn decisions_for_a_cache_on_the_card() {
    insta::assert_snapshot!(decisions("nic-cache", "connectx6"));
}

#[test]
fn decisions_for_headroom() {
    insta::assert_snapshot!(decisions("echo-headroom", "connectx6"));
}

#[test]
fn decisions_for_compaction() {
    insta::assert_snapshot!(decisions("compaction-offload", "connectx6"));
}

#[test]
fn decisions_for_a_broker() {
    insta::assert_snapshot!(decisions("pubsub-fanout", "connectx6"));
}

#[test]
fn decisions_for_logs() {
    insta::assert_snapshot!(decisions("regex-logs", "connectx6"));
}

/// A design that the host's cores bind, whose time its author knows within a factor of ten.
const HOST: &str = r#"
[design]
name = "bound"
device = "bluefield2"
testbed = "rack"
mode = "separated-host"
set = ["soc.cores=4"]
objective = "most-throughput"
rank_by = "throughput"
[parameters]
work = { value = "3 us", low = "1 us", high = "10 us" }
[[alternative]]
name = "host"
request = [
    { send-ud = "client-host", bytes = "64 B" },
    { compute = "host", time = "work" },
    { send-ud = "host-client", bytes = "64 B" },
]
[[alternative]]
name = "soc"
request = [
    { send-ud = "client-soc", bytes = "64 B" },
    { compute = "soc", time = "work" },
    { send-ud = "soc-client", bytes = "64 B" },
]
"#;

/// A plain NIC runs what it can, is told to lack the rest, and each device's figures are those of its own plan.
#[test]
fn each_device_has_the_figures_of_its_own_plan() {
    let design = parse(HOST, &Changes::default());
    let setting = setting(&[], &[]);
    let comparison = compared(&design, &setting, &["bluefield2", "connectx6"]).expect("both have a plan");
    let study = study_of(&design, &Changes::default(), &setting).expect("it has a plan");
    assert_eq!(contest(&comparison, "bluefield2").checked.plan.optimal, study.checked.plan.optimal);
    let plain = &comparison.contenders[1];
    assert!(plain.is_plain() && comparison.reference == Some(1));
    let [(left_out, reason)] = &plain.left_out[..] else { panic!("{:?}", plain.left_out) };
    assert!(left_out == "soc" && reason.contains("soc"), "{left_out}: {reason}");
    assert_eq!(plain.settings_left_out, ["soc.cores=4"]);
    let alone = parse(
        &HOST[..HOST.find("[[alternative]]\nname = \"soc\"").expect("it is there")],
        &Changes::default(),
    );
    let alone = parse(
        &alone
            .source
            .1
            .replace("bluefield2", "connectx6")
            .replace("set = [\"soc.cores=4\"]\n", "")
            .replace("mode = \"separated-host\"\n", ""),
        &Changes::default(),
    );
    let study = study_of(&alone, &Changes::default(), &setting).expect("it has a plan");
    let plan = &contest(&comparison, "connectx6").checked.plan;
    assert_eq!(plan.optimal.rate, study.checked.plan.optimal.rate);
}

/// What devices share is drawn once: a time of the design that moves both alike tells none of them apart.
#[test]
fn numbers_that_devices_share_are_drawn_together() {
    let only_host = HOST.replace("set = [\"soc.cores=4\"]\n", "");
    let only_host = &only_host[..only_host.find("[[alternative]]\nname = \"soc\"").expect("it is there")];
    let design = parse(only_host, &Changes::default());
    let setting = setting(&[], &[]);
    let comparison = compared(&design, &setting, &["bluefield2", "connectx6"]).expect("both have a plan");
    let card = contest(&comparison, "bluefield2");
    let (low, high) = card.checked.plan.optimal.rate.range_80;
    assert!(high / low > 4.0, "its author knows the time within a factor of ten: {low} to {high}");
    let marginal = high / low;
    let over = card.over.expect("it is not the reference");
    let (low, high) = over.ratio.expect("both carry something").range_80;
    // Were each drawn for itself, the ratio would be the wider one.
    assert!(high / low < 0.7 * marginal, "the ratio does not rest on it: {low} to {high}");
    let plain = contest(&comparison, "connectx6");
    assert!(plain.best_in + card.best_in <= 1.0 && plain.as_good_in >= plain.best_in);
    // No processor but the host's takes part: none is freed.
    assert!(over.freed_cores.value.abs() < plain.host_cores.value / 2.0, "{:?}", over.freed_cores);
}

/// At a load that the host's cores carry alone up to 4 us of work, and no device up to 12.
static LOAD: LazyLock<String> = LazyLock::new(|| {
    HOST.replace("set = [\"soc.cores=4\"]\n", "offered_load = \"4.5 M/s\"\n")
        .replace("most-throughput", "least-host-cpu")
        .replace("low = \"1 us\", high = \"10 us\"", "low = \"1.5 us\", high = \"12 us\"")
});

/// A turning point is where whoever plans with that value finds another device the best, or no device that carries the load.
#[test]
fn a_turning_point_is_one_when_compared_there() {
    let (design, setting) = (parse(&LOAD, &Changes::default()), setting(&[], &[]));
    let devices = ["bluefield2", "connectx6"].map(Entrant::device);
    let comparison = compared(&design, &setting, &["bluefield2", "connectx6"]).expect("both have a plan");
    let best = comparison.best.expect("there is one");
    let own: Vec<_> = comparison.turns.iter().filter(|turn| turn.number == "parameters.work").collect();
    assert!(own.iter().any(|turn| turn.at.to_string() == "12 us"), "{:?}", comparison.turns);
    for turn in own {
        assert_ne!(turn.device, Some(best));
        let parameters = [("work".to_string(), turn.at.to_string())].into();
        let changes = Changes { parameters, ..Changes::default() };
        let there = design.changed(&changes).expect("it is in order");
        let there = Comparison::of(&ask(&there, &changes, &setting, &devices)).ok();
        assert_eq!(there.and_then(|there| there.best), turn.device, "{turn:?}");
    }
    // The draws in which nobody carries the load speak against no device.
    let card = contest(&comparison, "bluefield2");
    let plain = contest(&comparison, "connectx6");
    assert!(comparison.counted_in < 0.95, "{}", comparison.counted_in);
    assert!(card.carried_in <= comparison.counted_in && plain.carried_in < card.carried_in);
    assert!(comparison.said.card_best_in.expect("one is a card") > 0.9, "{:?}", comparison.said);
    assert!(card.best_in + plain.as_good_in > 0.99, "where the one is not better the other is as good");
}

/// What past errors make of an answer is told beside what the draws say without them, and what each mechanism says: no ratio is
/// beyond what both rates can be.
#[test]
fn what_past_errors_and_mechanisms_make_of_the_answer_is_told() {
    let (design, setting) = (parse(&small("kv-ycsb-c.toml"), &Changes::default()), setting(&[], &[]));
    let comparison = compared(&design, &setting, &["bluefield2", "connectx6"]).expect("both have a plan");
    let (said, without) = (comparison.said, comparison.said_without_errors);
    let of = |said: DrawsSay| said.card_best_in.expect("one is a card");
    assert!(of(without) > 0.85 && of(said) < 0.8, "{said:?} and without past errors {without:?}");
    let [base, variant] = comparison.said_by_mechanism.expect("one-pool is open");
    assert_eq!(comparison.open, ["one-pool"]);
    // Half of the draws are of each.
    let both = f64::midpoint(of(base), of(variant));
    assert!((both - of(without)).abs() < 1e-9, "{base:?} {variant:?} {without:?}");
    assert!(of(base) > of(variant), "one pool carries less");
    let card = contest(&comparison, "bluefield2");
    assert_eq!((card.best_in, card.without_errors.0), (said.best_in, without.best_in));
    let over = card.over.expect("it is not the reference");
    assert_eq!((over.better_in, over.better_without_errors_in), (of(said), of(without)));
    assert_eq!(over.drawn.better_in, of(without));
}

/// A ratio is no more than what links carry of the one over the least of the other, whatever past errors of ratios were.
#[test]
fn a_ratio_ends_where_both_rates_do() {
    let read = "[design]\nname = \"own\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                rank_by = \"throughput\"\n[[alternative]]\nname = \"read\"\n\
                request = [ { read = \"client-host\", bytes = \"64 KiB\" } ]\n";
    let design = parse(read, &Changes::default());
    let comparison =
        compared(&design, &setting(&[], &[]), &["bluefield3", "connectx6"]).expect("both have a plan");
    let rate = |device: &str| contest(&comparison, device).checked.plan.optimal.rate;
    let (card, plain) = (rate("bluefield3"), rate("connectx6"));
    let reach = |lesson: Lesson, kind| lesson.sizes(kind).last().expect("there are some").exp();
    let least = plain.value / reach(Lesson::OfFittedCards, FigureKind::Throughput);
    let ratio = contest(&comparison, "bluefield3").over.expect("it is not the reference").ratio;
    let ratio = ratio.expect("both carry something");
    // Of the rate as it is: draws of the plain NIC's numbers lie a little around it.
    let most = card.range_95.1 / least;
    assert!(ratio.range_95.1 <= most * 1.01, "{ratio:?}, and the rates allow {most}");
    let errors = reach(Lesson::OfGuessedCards, FigureKind::ThroughputRatio);
    assert!(ratio.value * errors > 1.2 * most, "errors of ratios alone reach farther");
}

/// Where neither takes any of what is spared they are even, and beside one that takes none there is no ratio.
#[test]
fn nothing_over_nothing_is_even() {
    let read =
        "[[alternative]]\nname = \"read\"\nrequest = [ { read = \"client-host\", bytes = \"64 B\" } ]\n";
    let setting = setting(&[], &[]);
    let both = compared(
        &parse(&format!("{}{read}", *LOAD), &Changes::default()),
        &setting,
        &["bluefield2", "connectx6"],
    )
    .expect("both have a plan");
    let over = contest(&both, "bluefield2").over.expect("it is not the reference");
    let ratio = over.ratio.expect("they are even");
    assert_eq!((ratio.value, ratio.range_80), (1.0, (1.0, 1.0)));
    assert_eq!((contest(&both, "bluefield2").best_in, over.better_in), (0.0, 0.0));
    let alone =
        format!("{}{}", *LOAD, read.replace("[[alternative]]", "[[alternative]]\ndevice = \"connectx6\""));
    let one = compared(&parse(&alone, &Changes::default()), &setting, &["bluefield2", "connectx6"])
        .expect("both have");
    let over = contest(&one, "bluefield2").over.expect("it is not the reference");
    assert_eq!(over.ratio, None, "the plain NIC needs no host at all");
}

/// The mix that spares the host is the one that its cores are those of, and not the one whose rate is printed.
#[test]
fn the_host_is_spared_by_a_mix_of_its_own() {
    let (design, setting) = (parse(HOST, &Changes::default()), setting(&[], &[]));
    let comparison = compared(&design, &setting, &["bluefield2", "connectx6"]).expect("both have a plan");
    let card = contest(&comparison, "bluefield2");
    let share =
        |of: &[(String, f64)]| of.iter().find(|(name, _)| name == "host").map_or(0.0, |(_, share)| *share);
    let (best, sparing) = (share(&card.checked.plan.optimal.shares), share(&card.sparing));
    assert!(sparing < best - 0.01, "{sparing} of requests where the best mix has {best}");
    let plain = contest(&comparison, "connectx6");
    // At the plain NIC's own rate every request there takes the host, so that the cores are as the shares.
    let expected = plain.host_cores.value * sparing;
    assert!((card.host_cores.value / expected - 1.0).abs() < 0.2, "{:?} for {expected}", card.host_cores);
    let freed = card.over.expect("it is not the reference").freed_cores;
    assert!(
        freed.value > 0.5 && freed.range_80.0 <= freed.value && freed.value <= freed.range_80.1,
        "{freed:?}"
    );
    assert!((freed.value - (plain.host_cores.value - card.host_cores.value)).abs() < 1e-9);
}

/// What nothing that a device runs goes by is no choice of it.
#[test]
fn a_choice_that_nothing_goes_by_is_not_reported() {
    let (design, setting) = (parse(&text("aggregate-bf3.toml"), &Changes::default()), setting(&[], &[]));
    let chosen = |device: &str| {
        let devices = [Entrant::device(device)];
        let (_, own) = on_device(&ask(&design, &Changes::default(), &setting, &devices), &devices[0])
            .expect("looked at");
        let search = own.expect("something runs").search.expect("it has choices");
        search.for_all.iter().map(|one| one.choice.clone()).collect::<Vec<String>>()
    };
    assert_eq!(chosen("bluefield3"), ["far", "dpa_cores"]);
    assert!(chosen("bluefield2").is_empty(), "it has no DPA");
}

/// What a testbed fits into its server is there with every card, and what is part of one card with that alone.
#[test]
fn a_testbed_fits_engines_into_its_server() {
    let engines = |device: &str, testbed: &str| -> Vec<String> {
        let request = SystemRequest { device, testbed: Some(testbed), ..SystemRequest::default() };
        let system = Library::builtin().load(&request).expect("it is in order");
        system.machine("server").expect("it is there").engines.iter().map(|one| one.name.clone()).collect()
    };
    assert_eq!(engines("connectx6", "nvme"), ["ssd"]);
    assert_eq!(engines("bluefield2", "nvme"), ["dma", "ssd"]);
    assert_eq!(engines("bluefield2", "sun-regex"), ["dma", "regex"]);
    assert!(engines("connectx6", "sun-regex").is_empty());
    assert_eq!(engines("bluefield3", "sun-regex"), ["dma"]);
}

/// An accelerator that a testbed has of another card is left out where cards are compared, and refused where it is asked for.
#[test]
fn an_accelerator_is_its_own_cards() {
    let (design, setting) = (parse(&text("regex-logs.toml"), &Changes::default()), setting(&[], &[]));
    let devices = [Entrant::device("bluefield3")];
    let changes = Changes::default();
    let (own, _) = on_device(&ask(&design, &changes, &setting, &devices), &devices[0]).expect("looked at");
    let why = "the engine `regex`, which in the testbed `sun-regex` is part of `bluefield2`";
    let (name, reason) =
        own.left_out.iter().map(|one| (&one.0, &one.1)).next().expect("it has no such engine");
    assert!(name == "accelerator" && reason.contains(why), "{name}: {reason}");
}

/// A card's own engine takes the place of the testbed's of that name.
#[test]
fn an_engine_of_the_card_stands_before_that_of_the_testbed() {
    let shipped = Library::builtin();
    let regex = shipped.source(Category::Testbed, "sun-regex").expect("it is there");
    let (_, regex) = regex.split_once("[regex]\n").expect("it has one");
    let regex = regex.replace("device = \"bluefield2\"\n", "").replace("10 us", "7 us");
    let card = shipped.source(Category::Device, "bluefield3").expect("it is there");
    let mut library = Library::builtin();
    library.insert(Category::Device, "bluefield3", &format!("{card}\n[regex]\n{regex}\n[ssd]\n{regex}"));
    for (testbed, engine) in [("sun-regex", "regex"), ("nvme", "ssd")] {
        let request =
            SystemRequest { device: "bluefield3", testbed: Some(testbed), ..SystemRequest::default() };
        let system = library.load(&request).expect("it is in order");
        let engine = system.machine("server").expect("it is there").engine(engine).expect("it is there");
        assert_eq!(engine.start_latency, Time::from_ns(7000), "{testbed}");
    }
}

#[test]
fn what_nothing_runs_or_has_is_refused_by_name() {
    let soc = HOST
        .replace("client-host", "client-soc")
        .replace("host-client", "soc-client")
        .replace("\"host\", time", "\"soc\", time");
    let design = parse(&soc, &Changes::default());
    let refused =
        compared(&design, &setting(&[], &[]), &["connectx6", "connectx7"]).err().expect("nothing runs");
    assert!(refused.to_string().contains("no plan on any of the devices"), "{refused}");
    let design = parse(HOST, &Changes::default());
    let refused = compared(&design, &setting(&[], &["mars.cores=2"]), &["bluefield2", "connectx6"]);
    let refused = refused.err().expect("nobody has it").to_string();
    assert!(refused.contains("mars.cores=2") && refused.contains("connectx6"), "{refused}");
    let refused =
        compared(&design, &setting(&[], &[]), &["bluefield2", "bluefield9"]).err().expect("there is none");
    assert!(refused.to_string().contains("bluefield9"), "{refused}");
}

/// A cache on the card binds what asks it, and nothing else: the plain NIC serves the store in its own way.
#[test]
fn what_asks_no_cache_runs_without_one() {
    let (design, setting) = (parse(&small("kv-ycsb-c.toml"), &Changes::default()), setting(&[], &[]));
    let devices = [Entrant::device("connectx6")];
    let (contender, own) =
        on_device(&ask(&design, &Changes::default(), &setting, &devices), &devices[0]).expect("looked at");
    let names: Vec<String> =
        own.expect("it serves gets").design.alternatives.iter().map(|one| one.name.clone()).collect();
    assert_eq!(names, ["A1", "rnic"]);
    assert!(contender.left_out.iter().any(|(name, why)| name == "A5-read" && why.contains("cache")));
    assert!(contender.left_out.iter().all(|(name, why)| name.starts_with("A5") || !why.contains("cache")));
}

/// Devices that nobody put into one testbed stand in that of the design's own, and where their clients differ and bind, or
/// their testbeds do, no answer is one about the devices.
#[test]
fn what_stands_around_a_device_is_no_answer_about_it() {
    let read = "[design]\nname = \"rd\"\ndevice = \"bluefield3\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
                [[alternative]]\nname = \"read\"\nrequest = [ { read = \"client-host\", bytes = \"64 B\" } ]\n";
    let of = |text: &str, testbed: Option<&str>| {
        let setting = Setting { testbed: testbed.map(str::to_string), ..setting(&[], &[]) };
        compared(&parse(text, &Changes::default()), &setting, &["bluefield2", "connectx7"])
            .expect("both have a plan")
    };
    let unsaid = of(read, None);
    let testbeds: Vec<&str> = unsaid.contenders.iter().map(|one| one.system.testbed.as_str()).collect();
    assert_eq!(testbeds, ["bluefield3-pair"; 2]);
    let why = unsaid.unlike.expect("the one client binds, and carries the card");
    assert!(why.contains("client.cpu"), "{why}");
    assert_eq!(of(read, Some("rack")).unlike, None, "its clients are the same");
}

/// A load that one of the devices does not carry is an answer about that device, whatever choices are open.
#[test]
fn a_load_that_one_device_does_not_carry_refuses_no_other() {
    let open = LOAD.replace("name = \"host\"", "name = \"host\"\nchoose = { bytes = [\"64 B\", \"128 B\"] }");
    let open = open.replacen("bytes = \"64 B\"", "bytes = \"{bytes}\"", 1).replace("4.5 M/s", "8.5 M/s");
    let design = parse(&open, &Changes::default());
    let comparison =
        compared(&design, &setting(&[], &[]), &["bluefield2", "connectx6"]).expect("one carries it");
    let why: Vec<Option<&String>> =
        comparison.contenders.iter().map(|one| one.outcome.as_ref().err()).collect();
    assert!(why[0].is_none() && why[1].is_some_and(|why| why.contains("host.cpu")), "{why:?}");
}

/// Of cards that tie the one that leaves most of the host free is the one that is told, in whatever order they are named.
#[test]
fn of_cards_that_tie_the_one_that_spares_the_host_is_told() {
    let design = parse(&text("nvme-of-target.toml"), &Changes::default());
    for devices in [["bluefield2", "bluefield3", "connectx7"], ["bluefield3", "bluefield2", "connectx7"]] {
        let comparison = compared(&design, &setting(&[], &[]), &devices).expect("all have a plan");
        let cores = |device: &str| contest(&comparison, device).host_cores.value;
        assert!(cores("bluefield3") < cores("bluefield2"), "{devices:?}");
        let card = comparison.card.expect("two are cards");
        assert_eq!(comparison.contenders[card].name, "bluefield3");
    }
}

/// No more of the host's cores are busy, or freed, than requests may use, and how often the load is not carried is told.
#[test]
fn no_more_cores_are_freed_than_requests_may_use() {
    for (limit, cores) in [("", 24.0), ("[constraints]\nhost_cpu_share = 0.25\n", 6.0)] {
        let text = HOST.replacen("[[alternative]]", &format!("{limit}[[alternative]]"), 1);
        let design = parse(&text, &Changes::default());
        let comparison =
            compared(&design, &setting(&[], &[]), &["bluefield2", "connectx6"]).expect("both have a plan");
        let (card, plain) = (contest(&comparison, "bluefield2"), contest(&comparison, "connectx6"));
        let freed = card.over.expect("it is not the reference").freed_cores;
        assert!(freed.range_95.1 <= cores && freed.value <= cores, "{freed:?} of {cores}");
        near("cores of the plain NIC", plain.host_cores.range_95.1, cores, 1e-3);
        // Its own rate is the load, which it carries in the draws in which it is no slower.
        let carried = plain.host_load_carried_in;
        assert!(0.2 < carried && carried < 0.8, "{carried}");
    }
}

/// A number that makes another answer where all draws have it at its end is found, though no other device is the best there.
#[test]
fn a_number_that_makes_another_answer_is_found() {
    let design = parse(&text("regex-logs.toml"), &Changes::default());
    let comparison =
        compared(&design, &setting(&[], &[]), &["bluefield2", "connectx7"]).expect("both have a plan");
    assert_eq!(comparison.turns, []);
    let of = |said: DrawsSay| said.card_best_in.expect("one is a card");
    assert!(of(comparison.said) < 0.8, "{:?}", comparison.said);
    let rate = comparison.held.iter().find(|one| one.number == "host_work_regular_expressions.byte_rate");
    let rate = rate.unwrap_or_else(|| panic!("{:?}", comparison.held));
    assert!(rate.at.base() < rate.value.base() && of(rate.said) >= 0.8, "{rate:?}");
}

/// A value of a choice that makes no system is left out of what each device runs, wherever it is listed.
#[test]
fn a_value_that_is_no_system_ends_no_comparison() {
    let open = HOST.replace("set = [\"soc.cores=4\"]", "set = [\"soc.cores={cores}\"]");
    let open = format!("{open}\n[choose]\ncores = [0, 4]\n");
    let design = parse(&open, &Changes::default());
    let comparison =
        compared(&design, &setting(&[], &[]), &["bluefield2", "connectx6"]).expect("both have a plan");
    let search = contest(&comparison, "bluefield2").search.as_ref().expect("it has a choice");
    let [(value, _)] = &search.no_systems[..] else { panic!("{:?}", search.no_systems) };
    assert_eq!((value.as_str(), search.for_all[0].taken.join("")), ("cores=0", "4".to_string()));
}
