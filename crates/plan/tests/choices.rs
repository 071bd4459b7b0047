//! Choices that a design leaves open: each is searched, and what is taken is the best of what may be deployed.

use crate::common::*;
use offpath_plan::choices::{Search, search};
use offpath_plan::solve::solved;
use offpath_plan::{Changes, Design, prepare};
use std::collections::BTreeMap;

/// A design with its choices for the deployment, those of an alternative, and its steps.
fn text_of(for_all: &str, own: &str, steps: &str) -> String {
    format!(
        "[design]\nname = \"open\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nmode = \"separated-host\"\n\
         objective = \"most-throughput\"\nrank_by = \"throughput\"\n[choose]\n{for_all}\n[parameters]\n\
         slower-host = 1.0\nslower-soc = 2.0\n[[alternative]]\nname = \"echo\"\nchoose = {{ {own} }}\nrequest = [ {steps} ]\n"
    )
}

const ECHO: &str = r#"{ send-ud = "client-{at}", bytes = "64 B" },
    { compute = "{at}", time = "1 us * slower-{at}" }, { send-ud = "{at}-client", bytes = "64 B" }"#;

/// A message that the host handles for so long, and its answer.
fn by_host(bytes: &str, time: &str) -> String {
    format!(
        "{{ send-ud = \"client-host\", bytes = \"{bytes}\" }}, {{ compute = \"host\", time = \"{time}\" }}, \
         {{ send-ud = \"host-client\", bytes = \"64 B\" }}"
    )
}

fn found(design: &Design) -> Result<Option<Search>, miette::Report> {
    search(design, &Changes::default(), &setting(&[], &[]), &|design| design)
}

/// Requests per second by added-up demands of a design whose deployment is fixed.
fn rate(design: &Design) -> f64 {
    let ready = prepare(design, &setting(&[], &[])).expect("it compiles");
    solved(design, &ready, &folds(&ready)).expect("it is solved").optimal.total
}

fn fixed(text: &str, values: &[(&str, &str)]) -> Changes {
    let parameters = values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
    let changes = Changes { parameters, ..Changes::default() };
    parse(text, &changes);
    changes
}

#[test]
fn a_choice_makes_an_alternative_of_each_value() {
    let design = parse(&text_of("", "at = [\"host\", \"soc\"]", ECHO), &Changes::default());
    let names: Vec<&str> = design.alternatives.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, ["echo[at=host]", "echo[at=soc]"]);
    assert!(design.alternatives.iter().all(|one| one.family == "echo"));
    // Requests may differ in it, so that the best mix takes both.
    let (both, alone) =
        (rate(&design), |at: &str| rate(&parse(&design.source.1, &fixed(&design.source.1, &[("at", at)]))));
    assert!(both > 1.1 * alone("host").max(alone("soc")), "{both}");
}

/// The whole deployment has one value, however much more a mix of several would carry.
#[test]
fn values_for_the_whole_deployment_are_not_mixed() {
    let text = text_of("at = [\"host\", \"soc\"]", "", ECHO);
    let design = parse(&text, &Changes::default());
    let refused = prepare(&design, &setting(&[], &[])).expect_err("it is open").to_string();
    assert!(refused.contains("`at` of the whole deployment is open"), "{refused}");
    let search = found(&design).expect("it is searched").expect("it has choices");
    let taken = design.changed(&search.changes).expect("it is in order");
    let alone = |at: &str| rate(&parse(&text, &fixed(&text, &[("at", at)])));
    let (host, soc) = (alone("host"), alone("soc"));
    assert!((rate(&taken) / host.max(soc) - 1.0).abs() < 1e-6);
    assert_eq!(search.gap, 0.0);
    let [margin] = &search.for_all[..] else { panic!("{:?}", search.for_all) };
    let next = margin.next.as_ref().expect("there is another");
    let (best, other) = if host > soc { ("host", "soc") } else { ("soc", "host") };
    assert_eq!((&margin.taken[..], &next.values[..]), (&[best.to_string()][..], &[other.to_string()][..]));
    assert!((next.better_by - (host.max(soc) / host.min(soc) - 1.0)).abs() < 1e-6, "{next:?}");
    let study = study_of(&design, &Changes::default(), &setting(&[], &[])).expect("it has a plan");
    assert_eq!(study.checked.plan.optimal.composition(), [format!("echo[at={best}]")]);
    assert!(study.checked.plan.optimal.rate.value < 1.05 * host.max(soc), "one value alone is deployed");
}

/// Of values that are as good, the one that is listed first; what a setting goes by is looked at on a system of its own.
#[test]
fn of_what_is_as_good_the_first_is_taken() {
    let steps = r#"{ read = "client-soc", bytes = "{size}" }"#;
    let of = |values: &str| {
        let text = text_of(&format!("size = [{values}]"), "", steps);
        let search = found(&parse(&text, &Changes::default())).expect("searched").expect("it has choices");
        search.for_all[0].taken.clone()
    };
    assert_eq!(of("\"1 B\", \"2 B\""), ["1 B"]);
    assert_eq!(of("\"2 B\", \"1 B\""), ["2 B"]);
    assert_eq!(of("\"1 MiB\", \"2 B\""), ["2 B"]);
    let cores = |values: &str| {
        let text = text_of(
            &format!("cores = [{values}]"),
            "",
            "{ send-ud = \"client-soc\", bytes = \"64 B\" }, { compute = \"soc\", time = \"5 us\" }, \
             { send-ud = \"soc-client\", bytes = \"64 B\" }",
        );
        let text = text.replace("objective", "set = [\"soc.cores={cores}\"]\nobjective");
        let search = found(&parse(&text, &Changes::default())).expect("searched").expect("it has choices");
        (search.for_all[0].taken.clone(), search.for_all[0].next.clone().expect("another").better_by)
    };
    let (taken, by) = cores("2, 4, 8");
    assert_eq!(taken, ["8"]);
    assert!((by - 1.0).abs() < 0.05, "twice the cores carry twice as much: {by}");
    let steps = r#"{ compute = "soc", time = "5 us" }, { read = "soc-host", bytes = "1 MiB" }"#;
    let text = text_of("cores = [2, 4, 8]", "", steps)
        .replace("objective", "set = [\"soc.cores={cores}\"]\nobjective");
    let search = found(&parse(&text, &Changes::default())).expect("searched").expect("it has choices");
    assert_eq!(search.for_all[0].taken, ["2"], "the link binds, and two cores are enough");
}

/// Two processors that both serve, each on so many cores: what is sent grows with what is seen of one, so that the link or the
/// cores bind.
fn on_cores(host: &str, soc: &str) -> String {
    let steps = |at: &str, time: &str| {
        format!(
            "[[alternative]]\nname = \"{at}\"\nrequest = [ {{ send-ud = \"client-{at}\", bytes = \"1 KiB\" }}, \
             {{ compute = \"{at}\", time = \"{time}\" }}, {{ send-ud = \"{at}-client\", bytes = \"64 B\" }} ]\n"
        )
    };
    format!(
        "[design]\nname = \"cores\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nmode = \"separated-host\"\n\
         set = [\"host.cores={{h}}\", \"soc.cores={{s}}\"]\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
         [choose]\nh = {host}\ns = {soc}\n{}{}",
        steps("host", "2 us"),
        steps("soc", "5 us")
    )
}

/// Where the systems of the most cores bound the others, what is taken is what looking at each of them takes.
#[test]
fn what_bounds_the_others_finds_what_each_of_them_does() {
    let searched = |host: &str, soc: &str| {
        found(&parse(&on_cores(host, soc), &Changes::default())).expect("searched").expect("it has choices")
    };
    let taken = |search: &Search| -> Vec<String> {
        search.for_all.iter().flat_map(|margin| margin.taken.clone()).collect()
    };
    let search = searched("\"2..26 by 2\"", "\"1..8\"");
    assert_eq!(search.systems, 104);
    assert!(search.looked_at < 16, "{}", search.looked_at);
    let own = |host: u64, soc: u64| {
        rate(&parse(&on_cores(&format!("[{host}]"), &format!("[{soc}]")), &Changes::default()))
    };
    let all: Vec<(u64, u64, f64)> = (1..=13)
        .flat_map(|host| (1..=8).map(move |soc| (2 * host, soc)))
        .map(|(host, soc)| (host, soc, own(host, soc)))
        .collect();
    let best = all.iter().map(|(_, _, rate)| *rate).fold(0.0, f64::max);
    let (host, soc, first) = all.iter().find(|(_, _, rate)| *rate >= 0.99 * best).expect("the best is");
    assert_eq!(taken(&search), [host.to_string(), soc.to_string()]);
    assert!((first * (1.0 + search.gap) / best - 1.0).abs() < 1e-6, "{} {first} of {best}", search.gap);
    // What is listed first is taken of what is as good, also where that is the most.
    assert_eq!(
        taken(&searched("[32, 31, 30, 16]", "[17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1]")),
        ["32", "17"]
    );
    // Of 1024 values no more than ten halvings and their neighbours are looked at, and 0 is no system.
    let wide = searched("\"0..1023\"", "[8]");
    assert_eq!(wide.systems, 1024);
    assert!(wide.looked_at <= 13, "{}", wide.looked_at);
}

/// More cores of a processor carry no less, on shipped designs, and no demand goes by them: the search rests on it.
#[test]
fn more_cores_carry_no_less_and_move_no_demand() {
    for name in ["aggregate-bf3", "echo-headroom", "regex-logs", "nic-cache"] {
        let text = text(&format!("{name}.toml")).replace("set = [\"dpa.cores={dpa_cores}\"]\n", "");
        let text = text
            .replace("dpa_cores = [4, 8, 16]\n", "")
            .replace("far = [\"dpa:soc\", \"dpa:host\"]", "far = [\"dpa:soc\"]")
            .replace("batch = [1, 16]", "batch = [1]")
            .replace("[\"host\", \"soc\", \"dpa\"]", "[\"host\", \"soc\"]");
        let design = parse(&text, &Changes::default());
        let system = setting(&[], &[]).system(&design, &design.device).expect("it loads");
        let processors: Vec<&str> = system.machines[0]
            .endpoints
            .iter()
            .map(|one| one.processor.name.as_str())
            .filter(|processor| system.numbers.contains_key(&format!("{processor}.cores")))
            .collect();
        assert!(processors.len() >= 2, "{processors:?}");
        for processor in processors.into_iter().chain(["client"]) {
            let mut before: Option<(f64, Vec<offpath_plan::Fold>)> = None;
            for count in [1, 2, 3, 7, 16, 61] {
                let own = setting(&[], &[&format!("{processor}.cores={count}")]);
                // The share of a host's cores that the design may use is less than one of few.
                let Ok(ready) = prepare(&design, &own) else {
                    assert!(processor == "host" && count < 4, "{name} with {count} of {processor}");
                    continue;
                };
                let folds = folds(&ready);
                let total = solved(&design, &ready, &folds).expect("it is solved").optimal.total;
                if let Some((less, known)) = &before {
                    assert!(
                        total >= less * 0.99,
                        "{name}: {total} with {count} of {processor}, {less} with fewer"
                    );
                    assert!(folds == *known, "{name}: with {count} of {processor} demands are others");
                }
                before = Some((total, folds));
            }
        }
    }
}

/// Branch and bound finds what trying every deployment finds, over designs that are drawn.
#[test]
fn the_search_is_as_good_as_trying_every_deployment() {
    let mut state = 7u64;
    let mut draw = |most: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % most
    };
    for _ in 0..24 {
        let sizes: Vec<String> = (0..3).map(|_| format!("\"{} B\"", 1 + draw(1 << 16))).collect();
        let (one, other) = (1 + draw(4000), 1 + draw(4000));
        let text = format!(
            "[design]\nname = \"drawn\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nmode = \"separated-host\"\n\
             objective = \"most-throughput\"\nrank_by = \"throughput\"\n\
             [choose]\nat = [\"host\", \"soc\"]\nto = [\"soc\", \"host\"]\nsize = [{}]\n\
             [[alternative]]\nname = \"a\"\nrequest = [ {{ send = \"client-{{at}}\", bytes = \"64 B\" }},\n\
             {{ compute = \"{{at}}\", time = \"{one} ns\" }}, {{ send = \"{{at}}-client\", bytes = \"{{size}}\" }} ]\n\
             [[alternative]]\nname = \"b\"\nrequest = [ {{ read = \"client-{{to}}\", bytes = \"{{size}}\" }} ]\n\
             [[alternative]]\nname = \"c\"\nrequest = [ {{ send = \"client-soc\", bytes = \"64 B\" }},\n\
             {{ compute = \"soc\", time = \"{other} ns\" }}, {{ send = \"soc-client\", bytes = \"2 KiB\" }} ]\n",
            sizes.join(", ")
        );
        let design = parse(&text, &Changes::default());
        let mut best = 0.0f64;
        for at in ["host", "soc"] {
            for to in ["host", "soc"] {
                for size in &sizes {
                    let values = [("at", at), ("to", to), ("size", size.trim_matches('"'))];
                    best = best.max(rate(&parse(&text, &fixed(&text, &values))));
                }
            }
        }
        let search = found(&design).expect("it is searched").expect("it has choices");
        let taken = design.changed(&search.changes).expect("it is in order");
        let of_best = rate(&taken) / best;
        assert!((of_best * (1.0 + search.gap) - 1.0).abs() < 3e-6, "{} and {of_best}: {text}", search.gap);
        assert!((0.99 - 1e-6..1.0 + 1e-6).contains(&of_best), "{of_best} of the best: {text}");
    }
}

/// Where the first listed of those that are as good is taken, the search says by how much another is better.
#[test]
fn what_is_taken_is_not_called_the_best_where_another_is_better() {
    let steps = &by_host("64 B", "{t}");
    let search = found(&parse(&text_of("t = [\"1000 ns\", \"995 ns\"]", "", steps), &Changes::default()))
        .expect("searched")
        .expect("it has choices");
    let next = search.for_all[0].next.as_ref().expect("there is another");
    assert_eq!(search.for_all[0].taken, ["1000 ns"]);
    assert!(next.better_by < -1e-3 && next.better_by > -0.01, "{next:?}");
    assert!((search.gap - (1.0 / (1.0 + next.better_by) - 1.0)).abs() < 1e-9, "{} {next:?}", search.gap);
}

/// With one value of what a setting goes by an alternative may run where with another it does not: it is left out where it
/// runs with none.
#[test]
fn a_value_that_one_alternative_cannot_take_refuses_no_other() {
    let of = |values: &str| {
        let text = text_of(&format!("mtu = [{values}]"), "", &by_host("2 KiB", "100 ns"));
        parse(&text.replace("objective", "set = [\"network.mtu={mtu}\"]\nobjective"), &Changes::default())
    };
    for values in ["\"1 KiB\", \"4 KiB\"", "\"4 KiB\", \"1 KiB\""] {
        let search = found(&of(values)).expect("4 KiB runs").expect("it has choices");
        assert_eq!((search.for_all[0].taken.join(""), search.left_out.len()), ("4 KiB".to_string(), 0));
    }
    let refused = found(&of("\"1 KiB\", \"512 B\"")).expect_err("no value runs").to_string();
    assert!(refused.contains("2 KiB") || refused.contains("2048"), "{refused}");
}

/// What the device lacks is left out with its reason where another value runs, and refused by its name where none does.
#[test]
fn what_a_device_cannot_do_is_told_by_its_choice() {
    let open = parse(
        &text_of("", "at = [\"dpa\", \"soc\"]", &ECHO.replace(" * slower-{at}", "")),
        &Changes::default(),
    );
    let search = found(&open).expect("it is searched").expect("it has choices");
    let [(name, reason)] = &search.left_out[..] else { panic!("{:?}", search.left_out) };
    assert!(name == "echo[at=dpa]" && reason.contains("dpa"), "{name}: {reason}");
    let none = parse(
        &text_of("", "at = [\"dpa\", \"mars\"]", &ECHO.replace(" * slower-{at}", "")),
        &Changes::default(),
    );
    let refused = found(&none).expect_err("no value runs").to_string();
    assert!(
        refused.contains("with no value of its choices") && refused.contains("echo[at=dpa]"),
        "{refused}"
    );
}

/// A value that makes no system, or that a send queue does not hold, is left out with its reason; where no value is possible
/// that is refused.
#[test]
fn what_a_value_makes_impossible_is_left_out_and_counted() {
    let steps = r#"{ read = "client-soc", bytes = "64 B" }"#;
    let of_mtu = |values: &str| {
        let text = text_of(&format!("mtu = [{values}]"), "", steps);
        found(&parse(
            &text.replace("objective", "set = [\"soc.pcie_mtu={mtu}\"]\nobjective"),
            &Changes::default(),
        ))
    };
    for values in ["\"1000 B\", \"512 B\", \"128 B\"", "\"512 B\", \"1000 B\", \"128 B\""] {
        let search = of_mtu(values).expect("two are systems").expect("it has choices");
        let [(value, why)] = &search.no_systems[..] else { panic!("{:?}", search.no_systems) };
        assert!(value == "mtu=1000 B" && why.contains("power of two"), "{value}: {why}");
        assert_eq!((search.considered, search.for_all[0].taken.join("")), (1, "512 B".to_string()));
    }
    let refused = of_mtu("\"1000 B\", \"100 B\"").expect_err("none is a system").to_string();
    assert!(refused.contains("power of two"), "{refused}");
    let batched = steps.replace("64 B\"", "64 B\", batch = \"{batch}\"");
    let of_batch = |values: &str| {
        let text = text_of("", &format!("batch = [{values}]"), &batched);
        Design::parse(&text, "design.toml", &designs(), &Changes::default())
    };
    let design = of_batch("1, 16, 1000000").expect("two are possible");
    let search = found(&design).expect("it is searched").expect("it has choices");
    let [(name, why)] = &search.left_out[..] else { panic!("{:?}", search.left_out) };
    assert!(name == "echo[batch=1000000]" && why.contains("holds 128"), "{name}: {why}");
    assert_eq!((search.considered, search.kept), (3, 2));
    for values in ["1000000, 129", "0, 1"] {
        of_batch(values).expect_err("none is possible, or it is no batch");
    }
}

/// Where a mix takes several values, the next best is the best mix without one of them, and not one without them all.
#[test]
fn the_next_best_keeps_the_other_values_of_a_mix() {
    let text = text_of("", "at = [\"host\", \"soc\"]", ECHO);
    let design = parse(&text, &Changes::default());
    let study = study_of(&design, &Changes::default(), &setting(&[], &[])).expect("it has a plan");
    let [margin] = &study.margins[..] else { panic!("{:?}", study.margins) };
    assert_eq!(margin.taken, ["host", "soc"]);
    let next = margin.next.as_ref().expect("either of them alone");
    let plan = &study.checked.plan;
    let [host, soc] = ["host", "soc"].map(|at| alone(plan, &format!("echo[at={at}]")).rate.value);
    assert_eq!(next.values, [if host > soc { "host" } else { "soc" }]);
    near("over the next best", next.better_by, plan.optimal.rate.value / host.max(soc) - 1.0, 0.02);
}

#[test]
fn choices_that_cannot_be_meant_are_refused() {
    let parsed = |text: &str, values: &[(&str, &str)]| {
        let parameters: BTreeMap<String, String> =
            values.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Design::parse(text, "design.toml", &designs(), &Changes { parameters, ..Changes::default() })
    };
    let many: Vec<String> = (0..1025).map(|size| format!("\"{} B\"", size + 1)).collect();
    let many = format!("at = [\"host\"], size = [{}]", many.join(", "));
    let sized = ECHO.replace("64 B", "{size}");
    for (for_all, own, steps, values, words) in [
        ("", "at = []", ECHO, &[][..], "the choice `at` has no values"),
        ("", "at = [\"host\", \"host\"]", ECHO, &[], "has the value host twice"),
        ("", "at = [true]", ECHO, &[], "true is not a value that the choice `at` can take"),
        ("", "at = [\"ho{s}t\"]", ECHO, &[], "is not a value that the choice `at` can take"),
        ("", "", ECHO, &[], "`{at}` of `echo` is not a choice"),
        ("", "at = [\"host\"], by = [1]", ECHO, &[], "no step of `echo` says `{by}`"),
        ("by = [1]", "at = [\"host\"]", ECHO, &[], "nothing of the design says `{by}`"),
        ("at = [\"host\"]", "at = [\"host\"]", ECHO, &[], "is a choice of the whole deployment too"),
        ("slower-host = [1]", "at = [\"host\"]", ECHO, &[], "and the name of a parameter too"),
        ("", "at = [\"host\", \"soc\"]", ECHO, &[("at", "mars")], "has no value mars"),
        ("", many.as_str(), sized.as_str(), &[], "1024 at most are planned"),
        ("", "at = \"host\"", ECHO, &[], "\"host\" is not a range that the choice `at` can take"),
        ("", "at = \"1..\"", ECHO, &[], "\"1..\" is not a range"),
        ("", "at = \"1 to 4\"", ECHO, &[], "\"1 to 4\" is not a range"),
        ("", "at = \"-1..4\"", ECHO, &[], "\"-1..4\" is not a range"),
        ("", "at = \"190..1\"", ECHO, &[], "holds nothing: 1 is less than 190"),
        ("", "at = \"1..4 by 0\"", ECHO, &[], "its step is 0"),
        ("", "at = \"1..5000\"", ECHO, &[], "holds 5000 values, and 1024 at most are taken"),
        ("", "at = [\"1..4\"]", ECHO, &[], "a range stands by itself"),
        ("", "at = 4", ECHO, &[], "expected a list of values, as in `[1, 16]`, or a range"),
        ("", "at = \"1..4\"", ECHO, &[("at", "5")], "has no value 5"),
    ] {
        let error = parsed(&text_of(for_all, own, steps), values).expect_err(words).to_string();
        assert!(error.contains(words), "{words}: {error}");
    }
    let set =
        text_of("", "at = [\"host\"]", ECHO).replace("objective", "set = [\"soc.cores={cores}\"]\nobjective");
    let error = parsed(&set, &[]).expect_err("nobody says how many").to_string();
    assert!(error.contains("`{cores}` is not a choice of the whole deployment"), "{error}");
}

/// Both ends of a range are of it, whatever its step; where it is no count of cores, each of its systems is looked at.
#[test]
fn a_range_stands_for_its_values() {
    let sized = ECHO.replace("64 B", "{size} B").replace("{at}", "host");
    let of = |range: &str| {
        let design = parse(&text_of("", &format!("size = \"{range}\""), &sized), &Changes::default());
        design.choices[0].values.join(" ")
    };
    assert_eq!(of("1..4"), "1 2 3 4");
    assert_eq!(of("4..4"), "4");
    assert_eq!(of("1..12 by 5"), "1 6 11 12");
    assert_eq!(of("1..11 by 5"), "1 6 11");
    let system = |set: &str, range: &str| {
        let text = text_of(&format!("n = \"{range}\""), "", &by_host("64 B", "2 us"));
        found(&parse(
            &text.replace("objective", &format!("set = [\"{set}={{n}}\"]\nobjective")),
            &Changes::default(),
        ))
    };
    let refused =
        system("nic.inflight_slots", "1..190").map(|_| ()).expect_err("each would be looked at").to_string();
    assert!(refused.contains("190 systems or more, and 64 at most are looked at one by one"), "{refused}");
    let few = system("nic.inflight_slots", "1..190 by 4").expect("48 are looked at").expect("it has choices");
    assert_eq!((few.systems, few.looked_at), (49, 49));
    let counted = system("host.cores", "0..190").expect("0 is no system").expect("it has choices");
    assert_eq!((counted.systems, counted.gap < 0.01), (191, true));
}

/// What a choice decides is exact, and nobody's estimate; and a setting that would hide it is refused.
#[test]
fn a_number_that_a_choice_decides_is_no_estimate() {
    let text = text_of("cores = [1, 2, 30]", "", &by_host("64 B", "2 us"));
    let design =
        parse(&text.replace("objective", "set = [\"host.cores={cores}\"]\nobjective"), &Changes::default());
    let study = study_of(&design, &Changes::default(), &setting(&[], &[])).expect("it has a plan");
    let plan = &study.checked.plan;
    assert!(
        plan.recommendation.rests_on.iter().all(|rest| rest.number != "host.cores"),
        "{:?}",
        plan.recommendation
    );
    assert!(plan.influences.iter().all(|one| one.number != "host.cores"));
    let hidden = study_of(&design, &Changes::default(), &setting(&[], &["host.cores=2"]));
    let refused = hidden.err().expect("it would hide the choice").to_string();
    assert!(refused.contains("--set host.cores"), "{refused}");
    let chosen =
        Changes { parameters: [("cores".to_string(), "2".to_string())].into(), ..Changes::default() };
    let study = study_of(&design.changed(&chosen).expect("in order"), &chosen, &setting(&[], &[]))
        .expect("it has a plan");
    assert!(study.checked.plan.recommendation.rests_on.iter().all(|rest| rest.number != "host.cores"));
}

/// Another value of a parameter may make another deployment the best: a sweep says what a plan with that value says.
#[test]
fn a_sweep_searches_at_each_value() {
    let text = text_of("at = [\"host\", \"soc\"]", "", ECHO)
        .replace("slower-host = 1.0", "slower-host = 0.5")
        + "[sweep]\nparameter = \"slower-host\"\nvalues = [0.5, 40.0]\n";
    let design = parse(&text, &Changes::default());
    let study = study_of(&design, &Changes::default(), &setting(&[], &[])).expect("it has a plan");
    let rows = study.sweep.expect("a parameter is varied").rows;
    for (value, solved) in rows {
        let solved = solved.expect("it has a plan");
        let changes = Changes {
            parameters: [("slower-host".to_string(), value.to_string())].into(),
            ..Changes::default()
        };
        // Where the search takes the SoC nothing is said by what the host takes, and the sweep is none the worse.
        let own = study_of(&parse(&text, &Changes::default()), &changes, &setting(&[], &[]));
        let own = own.expect("it has a plan").checked.plan.optimal;
        assert_eq!(own.composition().len(), 1);
        let names: Vec<&String> = solved.shares.iter().map(|(name, _)| name).collect();
        assert_eq!(names, own.composition().iter().collect::<Vec<_>>(), "at {value}");
        assert!(
            (solved.rate / own.rate.value - 1.0).abs() < 0.02,
            "{} at {value}, {}",
            solved.rate,
            own.rate.value
        );
        let expected = if value < 1.0 { "echo[at=host]" } else { "echo[at=soc]" };
        assert_eq!(names, [expected]);
    }
}
