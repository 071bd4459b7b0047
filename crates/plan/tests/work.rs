//! Kinds of work: a step costs on every processor what that does of it, by its profile.

use crate::common::{alone, near, parse, planned, setting, study_of};
use offpath_plan::Basis;
use offpath_plan::{Changes, Design, prepare};
use offpath_quantity::Quantity;

/// Operations a second of a core of the host and of the SoC, at each kind of work of sun2023 Table 2.
const BOTH: [(&str, f64, f64); 15] = [
    ("atomic", 181716.9, 171942.31),
    ("branch", 124392.88, 111940.98),
    ("bsearch", 385.46, 303.64),
    ("context", 6360.07, 2048.77),
    ("cpu", 1389.2, 151.27),
    ("crypt", 1196.93, 823.5),
    ("hash", 82835.08, 35500.64),
    ("heapsort", 3.87, 2.5),
    ("goto", 250457.1, 203355.43),
    ("matrix", 3396.54, 1154.74),
    ("mergesort", 26.25, 13.25),
    ("qsort", 12.13, 3.37),
    ("skiplist", 6129.61, 3726.68),
    ("str", 53560.45, 22211.69),
    ("tree", 1.87, 0.5),
];

fn design(steps: &str, more: &str) -> String {
    format!(
        "[design]\nname = \"t\"\ndevice = \"bluefield2\"\ntestbed = \"sun\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
         {more}\n[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n"
    )
}

fn seconds(steps: &str) -> f64 {
    let design = parse(&design(steps, ""), &Changes::default());
    let ready = prepare(&design, &setting(&[], &[])).expect("its steps are priced");
    ready[0].compiled.fold(&ready[0].router).latency
}

fn refused(steps: &str) -> String {
    let design = Design::parse(&design(steps, ""), "t.toml", &crate::common::designs(), &Changes::default());
    let report = match design {
        Err(report) => report,
        Ok(design) => prepare(&design, &setting(&[], &[])).map(|_| ()).expect_err(steps),
    };
    format!("{report}; {}", report.help().map(|help| help.to_string()).unwrap_or_default())
}

/// The mean of the SoC's speed over the host's, and of the logarithms the least and greatest with a mean gap beyond.
fn spread() -> (f64, f64, f64) {
    let mut logarithms: Vec<f64> = BOTH.iter().map(|(_, host, soc)| (soc / host).ln()).collect();
    logarithms.sort_by(f64::total_cmp);
    let (least, greatest) = (logarithms[0], logarithms[14]);
    let gap = (greatest - least) / 14.0;
    let mean = logarithms.iter().sum::<f64>() / 15.0;
    (mean.exp(), (least - gap - mean).exp(), (greatest + gap - mean).exp())
}

#[test]
fn work_costs_on_each_processor_what_was_measured_of_it() {
    for (kind, host, soc) in BOTH {
        for (at, rate) in [("host", host), ("soc", soc)] {
            let step = format!("{{ compute = \"{at}\", work = \"stress-ng-{kind}\", operations = 0.25 }}");
            near(&step, seconds(&step), 0.25 / rate, 1e-6);
        }
    }
    let host = r#"{ compute = "host", work = "regular-expressions", bytes = "64 KiB" }"#;
    near(host, seconds(host), 65536.0 * 8.0 / 4e9, 1e-6);
    // The client is a host of the same kind.
    near("client", seconds(&host.replace("\"host\"", "\"client\"")), 65536.0 * 8.0 / 4e9, 1e-6);
}

#[test]
fn work_that_another_processor_was_measured_at_costs_by_the_kinds_of_both() {
    let (mean, ..) = spread();
    near("the mean of the 15", mean, 1.0 / 2.13, 0.002);
    let soc = r#"{ compute = "soc", work = "regular-expressions", bytes = "64 KiB" }"#;
    near(soc, seconds(soc), 65536.0 * 8.0 / 4e9 / mean, 1e-6);
    for written in ["time = \"1 us\"", "bytes = \"1 kB\", rate = \"8 Gbit/s\""] {
        let at = |at: &str| seconds(&format!("{{ compute = \"{at}\", {written}, on = \"host\" }}"));
        near(written, at("host"), 1e-6, 1e-6);
        near(written, at("soc"), 1e-6 / mean, 1e-5);
    }
    // And back.
    near("back", seconds(r#"{ compute = "host", time = "1 us", on = "soc" }"#), 1e-6 * mean, 1e-5);
}

#[test]
fn what_was_not_measured_is_drawn_and_makes_a_plan_a_guess() {
    let (_, low, high) = spread();
    let all =
        prepare(&parse(&crate::common::text("regex-logs.toml"), &Changes::default()), &setting(&[], &[]));
    let all = all.expect("it is shipped");
    let number = &all[0].router.system().numbers["soc_beside_host.other_work"];
    assert_eq!(number.value, Quantity::Ratio(1.0));
    near("the lower end", number.low.expect("it has one").base(), low, 1e-9);
    near("the upper end", number.high.expect("it has one").base(), high, 1e-9);
    let plan = planned(&parse(&crate::common::text("regex-logs.toml"), &Changes::default()), &[], &[]);
    let arm = alone(&plan, "arm");
    assert!(arm.basis >= Basis::Weak, "{:?}", arm.basis);
    let rests = |name: &str| arm.rests_on.iter().find(|rest| rest.number == name);
    for name in ["soc_beside_host.other_work", "host_work_regular_expressions.byte_rate"] {
        let rest =
            rests(name).unwrap_or_else(|| panic!("the Arm's rate rests on {name}: {:?}", arm.rests_on));
        near(name, rest.elasticity, 1.0, 0.05);
    }
    // Each of the 15 moves the mean by a fifteenth.
    let one = rests("soc_work_cpu.operations_per_s").expect("the mean is made of it");
    near("one of 15", one.elasticity, 1.0 / 15.0, 0.1);
    let (least, most) = arm.rate.range_80;
    assert!(most / least > 3.0, "{least} to {most}");
}

#[test]
fn choices_and_settings_reach_the_work() {
    let text = design(
        "{ compute = \"{at}\", work = \"stress-ng-{kind}\", operations = \"{count}\" }",
        "",
    )
    .replace("name = \"a\"", "name = \"a\"\nchoose = { at = [\"host\", \"soc\"], kind = [\"crypt\", \"tree\"], count = [0.01, 0.02] }");
    let all = prepare(&parse(&text, &Changes::default()), &setting(&[], &[])).expect("each is priced");
    assert_eq!(all.len(), 8);
    let latency = |name: &str| {
        let one = all.iter().find(|one| one.alternative.name == name).expect("it is planned");
        one.compiled.fold(&one.router).latency
    };
    near("soc", latency("a[at=soc, kind=tree, count=0.02]"), 0.02 / 0.5, 1e-6);
    near("host", latency("a[at=host, kind=crypt, count=0.01]"), 0.01 / 1196.93, 1e-6);
    let own = parse(
        &design("{ compute = \"soc\", work = \"regular-expressions\", bytes = \"1 KiB\" }", ""),
        &Changes::default(),
    );
    let with = |set: &str| {
        let ready = prepare(&own, &setting(&[], &[set])).expect("it is priced");
        ready[0].compiled.fold(&ready[0].router).latency
    };
    near(
        "set",
        with("soc_beside_host.other_work=2"),
        seconds("{ compute = \"soc\", work = \"regular-expressions\", bytes = \"1 KiB\" }") / 2.0,
        1e-5,
    );
    assert!(
        with("soc_work_cpu.operations_per_s=1512.7") < with("soc_beside_host.other_work=1"),
        "a faster core does more"
    );
}

/// How much of a kind of work a request is, is whoever writes it guessing, whole or not; how often steps repeat is no guess.
#[test]
fn an_amount_of_work_is_an_estimate_whole_or_not() {
    let basis = |amount: &str| {
        let text = design(
            &format!(
                "{{ send = \"client-soc\", bytes = \"64 B\" }}, {{ compute = \"soc\", work = \"stress-ng-atomic\", \
                 operations = {amount} }}, {{ send = \"soc-client\", bytes = \"64 B\" }}"
            ),
            "[parameters]\namount = 3\n",
        );
        let plan = planned(&parse(&text, &Changes::default()), &[], &[]);
        alone(&plan, "a").basis
    };
    for amount in ["0.3", "1", "3", "\"amount\"", "\"amount * 2\""] {
        assert_eq!(basis(amount), Basis::YourEstimate, "{amount}");
    }
}

#[test]
fn the_twin_keeps_a_core_as_long_as_the_plan_says() {
    let text = design(
        "{ send = \"client-soc\", bytes = \"64 B\" }, { compute = \"soc\", work = \"stress-ng-str\", operations = 0.5 }, { send = \"soc-client\", bytes = \"64 B\" }",
        "",
    );
    let study = study_of(&parse(&text, &Changes::default()), &Changes::default(), &setting(&[], &[]));
    let checked = study.expect("it has a plan").checked;
    assert_eq!(alone(&checked.plan, "a").binding, "soc.cpu");
    near("8 cores", alone(&checked.plan, "a").rate.value, 8.0 * 22211.69 / 0.5, 0.02);
}

#[test]
fn what_nothing_says_is_refused_by_name() {
    for (step, words) in [
        (r#"{ compute = "soc", work = "md5", bytes = "1 KiB" }"#, "there is no kind of work `md5` for `soc`"),
        (r#"{ compute = "soc", work = "md5", bytes = "1 KiB" }"#, "add a table with `kind = \"work\"`"),
        (r#"{ compute = "soc", work = "stress-ng-tre", operations = 1 }"#, "did you mean `stress-ng-tree`?"),
        (r#"{ compute = "soc", work = "stress-ng-tree" }"#, "does not say how much of it"),
        (r#"{ compute = "soc", work = "stress-ng-tree", bytes = "1 B", operations = 1 }"#, "not both"),
        (
            r#"{ compute = "soc", work = "stress-ng-tree", bytes = "1 B" }"#,
            "`stress-ng-tree` is counted in operations",
        ),
        (r#"{ compute = "host", work = "regular-expressions", operations = 1 }"#, "is counted in bytes"),
        (r#"{ compute = "soc", work = "stress-ng-tree", time = "1 us" }"#, "needs `time`, or"),
        (r#"{ compute = "soc", work = "stress-ng-tree", operations = 1, on = "host" }"#, "needs `time`, or"),
        (
            r#"{ compute = "soc", work = "stress-ng-tree", operations = 1e30 }"#,
            "1000000000000000000000000000000 is outside",
        ),
        (r#"{ compute = "soc", work = "stress-ng-tree", operations = 1000 }"#, "a request may for 60 s"),
        (r#"{ compute = "soc", work = "stress-ng-tree", operations = -1 }"#, "-1 is outside"),
        (r#"{ compute = "soc", time = "1 us", on = "mars" }"#, "mars"),
        (r#"{ compute = "soc", time = "1 us", on = "client" }"#, "not a processor of the machine of `soc`"),
        (r#"{ compute = "client.soc", time = "1 us", on = "host" }"#, "no processor `client.soc`"),
        (
            r#"{ read = "client-soc", bytes = "1 B", work = "stress-ng-tree" }"#,
            "a `read` step takes no `work`",
        ),
        (r#"{ wait = "1 us", on = "host" }"#, "a `wait` step takes no `on`"),
    ] {
        let said = refused(step);
        assert!(said.contains(words), "{step}: {said}");
    }
    // Of the DPA one kind is known, which says nothing of others.
    let dpa = design(r#"{ compute = "dpa", work = "stress-ng-tree", operations = 0.1 }"#, "")
        .replace("bluefield2", "bluefield3")
        .replace("testbed = \"sun\"\n", "");
    let report = prepare(&parse(&dpa, &Changes::default()), &setting(&[], &[]))
        .map(|_| ())
        .expect_err("it is refused");
    let said = report.to_string();
    assert!(
        said.contains("was measured of `soc` and not of `dpa`")
            && said.contains("1 kinds of work were measured of both"),
        "{said}"
    );
}

/// How many operations a step does is a guess whatever the number: one is drawn as one and a bit is, and none is held.
#[test]
fn one_operation_is_drawn_as_any_other_number_of_them() {
    let plan = |operations: &str| {
        let steps = format!(
            r#"{{ send = "client-soc", bytes = "64 B" }},
               {{ compute = "soc", work = "stress-ng-hash", operations = {operations} }},
               {{ send = "soc-client", bytes = "64 B" }}"#
        );
        planned(&parse(&design(&steps, ""), &Changes::default()), &[], &[])
    };
    let interval = |operations: &str| alone(&plan(operations), "a").rate.range_80;
    let (one, more) = (interval("1"), interval("1.001"));
    near("the lower end", one.0, more.0, 0.01);
    near("the upper end", one.1, more.1, 0.01);
    let none = plan("0");
    assert!(none.influences.iter().all(|one| !one.number.ends_with("operations")), "{:?}", none.influences);
}
