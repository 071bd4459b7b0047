//! Designs that are ordinary work: answers from elsewhere, work after the answer, one message to several
//! machines, waiting. Each loads, plans, is seen on the idle twin for what it adds up to, and runs under
//! load at what its plan says.

use crate::common::*;
use offpath_plan::observe::{Loaded, RequestArrivals, load, observe};
use offpath_plan::{Changes, Design, Plan, Ready, plan, prepare};
use offpath_quantity::Time;
use offpath_twin::Seed;
use std::collections::BTreeMap;

fn design(steps: &str) -> String {
    format!(
        "[design]\nname = \"shape\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nobjective = \"most-throughput\"\n\
         rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\n{steps}\n"
    )
}

struct Shape {
    ready: Vec<Ready>,
    plan: Plan,
}

fn shape(steps: &str) -> Shape {
    let design = parse(&design(steps), &Changes::default());
    let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
    let seen = observe(&ready[0], Seed::new(3)).expect("the idle twin runs it").fold;
    let added = ready[0].compiled.fold(&ready[0].router);
    for station in added.seconds.keys().chain(seen.seconds.keys()) {
        let of = |seconds: &BTreeMap<String, f64>| seconds.get(station).copied().unwrap_or(0.0);
        let (one, other) = (of(&added.seconds), of(&seen.seconds));
        assert!(
            (one - other).abs() <= 0.01 * one + 1e-15,
            "{steps}: {station} {other} s seen, {one} s added"
        );
    }
    for (pool, count) in &added.requests {
        let other = seen.requests.get(pool).copied().unwrap_or(0.0);
        assert!((count - other).abs() <= 0.01 * count, "{steps}: {pool:?} {other} seen, {count} added");
    }
    let plan = plan(&design, &ready, &[seen], &[], Seed::new(1)).expect("there is a plan");
    Shape { ready, plan }
}

impl Shape {
    fn rate(&self) -> f64 {
        self.plan.alternatives[0].rate.value
    }

    fn latency(&self) -> f64 {
        self.plan.alternatives[0].latency_s.value
    }

    fn loaded(&self) -> Loaded {
        let fold = &self.plan.alternatives[0].demand;
        let in_flight = (self.rate() * (fold.latency + fold.background) * 6.0).clamp(64.0, 2048.0);
        let span = |requests: f64| Time::from_ps((requests / self.rate() * 1e12) as u64);
        let (warm_up, window) = (span(in_flight * 4.0), span(12_000.0));
        let arrivals = RequestArrivals::Closed(in_flight as u32);
        load(&[&self.ready[0]], &[1.0], arrivals, warm_up, window, Seed::new(5)).expect("the twin runs it")
    }

    /// Holds the loaded twin to the plan.
    fn holds(&self, share: f64) -> Loaded {
        let loaded = self.loaded();
        let of = loaded.throughput.mean / self.rate();
        let binding = &self.plan.alternatives[0].binding;
        assert_eq!(loaded.failed, 0);
        assert!(
            (1.0 - share..=1.005).contains(&of),
            "{of:.3} of the plan's {:.3e}/s, bound by {binding}: {:?}",
            self.rate(),
            loaded.utilization
        );
        loaded
    }
}

#[test]
fn a_server_writes_to_the_machine_that_asked() {
    let shape = shape(
        r#"request = [
            { send = "client-host", bytes = "64 B" },
            { compute = "host", time = "1 us" },
            { write = "host-client", bytes = "4 KiB" },
            { send = "host-client", bytes = "16 B" },
        ]"#,
    );
    assert!(shape.rate() > 5.5e6, "{}", shape.rate());
    shape.holds(0.02);
}

#[test]
fn an_answer_may_come_from_another_endpoint_than_was_asked() {
    for kinds in [
        ["send"; 3],
        ["send-ud"; 3],
        ["send", "send-ud", "send"],
        ["send-ud", "send", "send-ud"],
        ["send", "send", "send-ud"],
        ["send-ud", "send-ud", "send"],
    ] {
        let [first, second, third] = kinds;
        let shape = shape(&format!(
            r#"request = [
                {{ {first} = "client-host", bytes = "64 B" }},
                {{ compute = "host", time = "1 us" }},
                {{ {second} = "host-soc", bytes = "64 B" }},
                {{ compute = "soc", time = "200 ns" }},
                {{ {third} = "soc-client", bytes = "64 B" }},
            ]"#
        ));
        println!("{kinds:?}: {:.3e}/s", shape.rate());
        shape.holds(0.02);
    }
}

#[test]
fn a_chain_goes_round_and_back_by_any_way() {
    // The host is visited twice, by its client's connection and by the SoC's; one way skips the SoC.
    let shape = shape(
        r#"request = [
            { send = "client-host", bytes = "64 B" },
            { probability = 0.5, then = [
                { send-ud = "host-soc", bytes = "64 B" },
                { compute = "soc", time = "500 ns" },
                { send-ud = "soc-host", bytes = "64 B" },
            ], otherwise = [
                { send = "host-soc", bytes = "64 B" },
                { send = "soc-host", bytes = "64 B" },
            ] },
            { probability = 0.25, then = [
                { send = "host-soc", bytes = "64 B" },
                { send = "soc-client", bytes = "64 B" },
            ], otherwise = [{ send = "host-client", bytes = "64 B" }] },
        ]"#,
    );
    shape.holds(0.02);
}

#[test]
fn work_after_the_answer_costs_stations_and_no_latency() {
    let answered = r#"request = [
            { send = "client-host", bytes = "64 B" },
            { compute = "host", time = "300 ns" },
            { send = "host-client", bytes = "64 B" },
        ]"#;
    let plain = shape(answered);
    let written = |background: &str| shape(&format!("{answered}\nbackground = [ {background} ]"));
    let logged =
        written(r#"{ compute = "host", time = "2 us" }, { write = "host-backup", bytes = "4 KiB" }"#);
    near("latency", logged.latency(), plain.latency(), 1e-6);
    assert!(logged.plan.alternatives[0].demand.background > 2e-6);
    assert!(logged.rate() < plain.rate() / 2.0, "the host's cores bind");
    let loaded = logged.holds(0.02);
    assert!(loaded.mean_in_flight > 0.0);
    // Messages may carry it elsewhere, where it ends.
    let moved = written(
        r#"{ send = "host-soc", bytes = "64 B" }, { compute = "soc", time = "2 us" },
           { write = "soc-backup", bytes = "1 KiB" }"#,
    );
    near("latency", moved.latency(), plain.latency(), 1e-6);
    moved.holds(0.02);
    let told = written(
        r#"{ send-ud = "host-soc", bytes = "64 B" }, { send-ud = "soc-host", bytes = "64 B" },
           { compute = "host", time = "1 us" }, { send-ud = "host-client", bytes = "64 B", to = 3 }"#,
    );
    told.holds(0.02);
    // Where no message answers, the client goes on itself.
    let own = shape(
        r#"request = [{ read = "client-host", bytes = "64 B" }, { background = [{ compute = "client", time = "30 us" }] }]"#,
    );
    assert!(own.latency() < 10e-6);
    own.holds(0.02);
}

/// A request is over when its answer is used and its work in the background is done, whichever comes last: else
/// what it does after the background's end is counted for nobody.
#[test]
fn a_request_is_over_with_its_last_part() {
    let request = r#"request = [
            { send = "client-host", bytes = "8 B" },
            { send = "host-client", bytes = "8 B" },
            { write = "client-host", bytes = "16 KiB" },
        ]"#;
    let plain = shape(request);
    let quick = shape(&format!("{request}\nbackground = [ {{ wait = \"300 ns\" }} ]"));
    near("the rate", quick.rate(), plain.rate(), 1e-3);
    let (alone, beside) = (plain.holds(0.1), quick.holds(0.1));
    near("what is carried", beside.throughput.mean, alone.throughput.mean, 0.02);
    assert!(
        beside.throughput.high - beside.throughput.low < 0.02 * beside.throughput.mean,
        "{:?}",
        beside.throughput
    );
    near("requests in flight", beside.mean_in_flight, alone.mean_in_flight, 0.2);
}

/// A verb that nobody waits for takes the stations that it takes, of the latency its posting, and what is left of it of the
/// time that a request is in flight.
#[test]
fn a_verb_that_nobody_waits_for_costs_its_posting() {
    let through = |steps: &str| {
        shape(&format!(
            r#"request = [
                {{ send = "client-soc", bytes = "64 B" }},
                {steps}
                {{ compute = "soc", time = "500 ns" }},
                {{ send = "soc-client", bytes = "64 B" }},
            ]"#
        ))
    };
    let plain = through("");
    for (step, times) in [
        (r#"{ write = "soc-host-dma", bytes = "4 KiB""#, 1.0),
        (r#"{ read = "soc-host-dma", bytes = "4 KiB""#, 1.0),
        (r#"{ copy = "soc-host-dma", bytes = "4 KiB""#, 1.0),
        (r#"{ copy = "soc-dma", bytes = "4 KiB""#, 1.0),
        (r#"{ read = "soc-host", bytes = "64 B""#, 1.0),
        (r#"{ write = "soc-host", bytes = "64 B", batch = 8"#, 1.0),
        (r#"{ fetch-and-add = "soc-host""#, 1.0),
        (r#"{ write = "soc-client", bytes = "512 B", to = 3"#, 3.0),
    ] {
        let waits = through(&format!("{step} }},"));
        let posts = through(&format!("{step}, awaited = false }},"));
        let route = posts.ready[0].compiled.routes().nth(1).expect("the verb follows a message").clone();
        let post_time = times * route.post_time().as_seconds();
        assert!(post_time > 0.0, "{step}");
        let [none, own] = [&plain, &posts].map(|one| one.ready[0].compiled.fold(&one.ready[0].router));
        near(step, own.latency - none.latency, post_time, 1e-6);
        near(step, posts.latency(), own.latency, 0.002);
        let flight = times * route.latency(&posts.ready[0].router).as_seconds() - post_time;
        near(step, own.background, flight, 1e-6);
        assert_eq!(posts.plan.alternatives[0].demand.requests, waits.plan.alternatives[0].demand.requests);
        near(step, posts.rate(), waits.rate(), 0.005);
        posts.holds(0.02);
    }
}

/// More of them than a queue pair has room for wait until there is room, and what is waited for beside them completes.
#[test]
fn verbs_that_nobody_waits_for_stand_wherever_one_sided_verbs_do() {
    shape(
        r#"request = [
            { repeat = 200, steps = [{ write = "client-host", bytes = "4 KiB", awaited = false }] },
            { read = "client-host", bytes = "64 B" },
        ]"#,
    );
    let beside = shape(
        r#"request = [
            { parallel = [
                [{ write = "client-soc", bytes = "64 B", awaited = false }, { read = "client-host", bytes = "64 B" }],
                [{ read = "client-soc", bytes = "64 B", awaited = false }, { compute = "client", time = "1 us" }],
            ] },
            { probability = 0.5, then = [{ read = "client-host", bytes = "512 B", awaited = false }], otherwise = [] },
            { send = "client-host", bytes = "64 B" },
            { write = "host-client", bytes = "512 B", awaited = false },
            { send = "host-client", bytes = "64 B" },
        ]
        background = [
            { write = "host-backup", bytes = "4 KiB", awaited = false },
            { write = "host-soc", bytes = "4 KiB" },
        ]"#,
    );
    beside.holds(0.03);
}

#[test]
fn one_message_goes_out_to_several_machines() {
    let asked = |out: &str| {
        shape(&format!(
            r#"request = [
                {{ send = "client-host", bytes = "64 B" }},
                {{ compute = "host", time = "500 ns" }},
                {out}
            ]"#
        ))
    };
    let one =
        asked(r#"{ write = "host-client", bytes = "4 KiB" }, { send = "host-client", bytes = "16 B" }"#);
    let written = asked(
        r#"{ write = "host-client", bytes = "4 KiB", to = 3 }, { send = "host-client", bytes = "16 B" }"#,
    );
    let port = |shape: &Shape| shape.plan.alternatives[0].demand.network_bytes;
    near("network", port(&written) - port(&one), 2.0 * 4096.0, 1e-9);
    let loaded = written.holds(0.02);
    // All eleven machines take their part.
    let received = loaded.utilization["client.nic.receive"];
    near("ports", received * 11.0 * 100.0, loaded.utilization["nic.transmit"] * 200.0, 0.05);
    for kind in ["send", "send-ud"] {
        let sent = asked(&format!(r#"{{ {kind} = "host-client", bytes = "1 KiB", to = 4 }}"#));
        near("network", port(&sent), 64.0 + 4.0 * 1024.0, 1e-9);
        sent.holds(0.02);
    }
}

/// What the parts of a request wait for each other is in its latency, whatever branches stand beside them and however rare a
/// case is.
#[test]
fn a_request_that_waits_for_itself_takes_as_long_with_branches() {
    let latency = |steps: &str| {
        let text = design(&format!("request = [ {steps} ]"));
        let ready = prepare(&parse(&text, &Changes::default()), &setting(&[], &[])).expect("it is in order");
        observe(&ready[0], Seed::new(3)).expect("the idle twin runs it").fold.latency
    };
    let read = r#"[ { read = "client-soc", bytes = "64 KiB" } ]"#;
    let many = format!("{{ parallel = [ {} ] }}", [read; 8].join(", "));
    let copies = r#"{ send-ud = "client-host", bytes = "64 B" }, { write = "host-client", bytes = "64 KiB", to = 8 },
        { send-ud = "host-client", bytes = "64 B" }"#;
    for steps in [many.as_str(), copies] {
        let plain = latency(steps);
        for share in ["0.5", "0.001"] {
            let branch = format!(
                r#"{{ probability = {share}, then = [ {{ compute = "client", time = "1 ns" }} ],
                otherwise = [ {{ compute = "client", time = "2 ns" }} ] }}, {steps}"#
            );
            near(&branch, latency(&branch), plain, 1e-3);
        }
    }
    // A case that is too rare for the sample counts as often as it comes, and waits no longer for itself.
    let rare = format!(
        r#"{many}, {{ probability = 0.00001, then = [ {{ compute = "client", time = "1 s" }} ], otherwise = [] }}"#
    );
    near("rare", latency(&rare) - latency(&many), 1e-5, 0.01);
}

#[test]
fn waiting_takes_time_and_no_core() {
    let steps = |wait: &str| {
        format!(
            r#"request = [
                {{ send-ud = "client-soc", bytes = "64 B" }},
                {{ compute = "soc", time = "1 us" }},
                {wait}
                {{ send-ud = "soc-client", bytes = "64 B" }},
            ]"#
        )
    };
    let (plain, waited) = (shape(&steps("")), shape(&steps("{ wait = \"20 us\" },")));
    near("latency", waited.latency() - plain.latency(), 20e-6, 1e-3);
    near("rate", waited.rate(), plain.rate(), 1e-9);
    waited.holds(0.02);
    let noted = |steps: &str| parse(&design(steps), &Changes::default()).notes;
    assert!(noted(&steps("")).is_empty());
    let note = noted(&steps("{ wait = \"20 us\" },"));
    assert!(note.len() == 1 && note[0].contains("serve any number of requests at once"), "{note:?}");
    let note = noted(&steps("{ compute = \"soc\", time = \"20 us\" },"));
    assert!(note.len() == 1 && note[0].contains("20 us") && note[0].contains("`wait`"), "{note:?}");
}

#[test]
fn what_cannot_be_run_is_refused_at_its_line() {
    let refused = |steps: &str| {
        let parsed = Design::parse(&design(steps), "design.toml", &designs(), &Changes::default());
        let error = parsed.and_then(|design| prepare(&design, &setting(&[], &[]))).expect_err(steps);
        assert!(error.labels().is_some(), "{steps}: {error}");
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        assert!(!help.is_empty(), "{steps}: {error}");
        error.to_string()
    };
    for (steps, words) in [
        (r#"request = [{ wait = "1 us" }]"#, "does not say where the request begins"),
        (r#"request = [{ wait = "61 s" }]"#, "longer than 60 s"),
        (
            r#"request = [{ repeat = 60, steps = [{ compute = "host", time = "59 s" }] }]"#,
            "and a request may for 60 s",
        ),
        (r#"request = [{ read = "client-host", bytes = "64 B", to = 0 }]"#, "`to` is 0"),
        (
            r#"request = [{ background = [{ read = "client-host", bytes = "64 B" }] }]"#,
            "has work in the background of nothing",
        ),
        (r#"request = [{ read = "soc-host", bytes = "64 B", to = 2 }]"#, "both ends are in one machine"),
        (
            r#"request = [{ write = "client-host", bytes = "64 B", awaited = false }]"#,
            "nobody waits for any step of `request`",
        ),
        (
            r#"request = [{ compute = "client", time = "1 us" }, { parallel = [[{ repeat = 2, steps = [
               { write = "client-host", bytes = "64 B", awaited = false }] }], [{ read = "client-host", bytes = "64 B" }]] }]"#,
            "nobody waits for any step of a list of `parallel`",
        ),
        (
            r#"request = [{ read = "client-host", bytes = "64 B" }]
               background = [{ write = "client-host", bytes = "64 B", awaited = false }]"#,
            "nobody waits for any step of `background`",
        ),
        (
            r#"request = [{ send = "client-host", bytes = "64 B", awaited = false }, { send = "host-client", bytes = "64 B" }]"#,
            "a `send` step takes no `awaited`",
        ),
        (
            r#"request = [{ load = "host-host", bytes = "64 B", awaited = false }]"#,
            "a `load` step takes no `awaited`",
        ),
        (r#"request = [{ read = "soc-host-dma", bytes = "64 B", to = 2 }]"#, "both ends are in one machine"),
        (
            r#"request = [{ read = "soc-host-dma", bytes = "64 B", batch = 2 }]"#,
            "the engine `dma` has no doorbell batches",
        ),
        (
            // Whether the host's message is the last one is decided at the client, after it.
            r#"request = [{ send = "client-host", bytes = "8 B" }, { send = "host-client", bytes = "8 B" },
               { probability = 0.5, then = [{ send = "client-host", bytes = "8 B" },
               { send = "host-client", bytes = "8 B" }], otherwise = [] }]
               background = [{ wait = "1 us" }]"#,
            "answered last by one message or by another after it",
        ),
        (
            r#"request = [{ background = [] }, { compute = "host", time = "1 us" }]"#,
            "`background` stands at the end",
        ),
        (
            r#"request = [{ send = "client-host", bytes = "64 B" }, { send = "host-client", bytes = "64 B" }]
               background = [{ send = "host-client", bytes = "8 B" }, { compute = "client", time = "1 us" }]"#,
            "nothing follows a message to `client` in the background",
        ),
        (
            r#"request = [{ send = "client-host", bytes = "64 B" }, { probability = 0.5,
               then = [{ send = "host-client", bytes = "64 B" }],
               otherwise = [{ send = "host-soc", bytes = "64 B" }, { send = "soc-client", bytes = "64 B" }] }]
               background = [{ compute = "host", time = "1 us" }]"#,
            "answered at `host` or at `soc`",
        ),
        (
            r#"request = [{ compute = "host", time = "1 us" }, { repeat = 9, steps = [{ send = "host-soc", bytes = "64 B" },
               { send = "soc-backup", bytes = "64 B" }, { send = "backup-host", bytes = "64 B" }] }]
               background = [{ compute = "client", time = "1 us" }]"#,
            "this step runs at `client`",
        ),
    ] {
        let error = refused(steps);
        assert!(error.contains(words), "{steps}: {error}");
    }
}

#[test]
fn scenarios_are_planned_one_at_a_time() {
    let text = text("redis-replication.toml");
    let whole = parse(&text, &Changes::default());
    assert_eq!(whole.scenarios, ["3 replicas", "5 replicas"]);
    let names = |design: &Design, mixed: bool| -> Vec<String> {
        let all = design.alternatives.iter().filter(|one| one.mixed || !mixed);
        all.map(|one| one.name.clone()).collect()
    };
    // Until one is chosen, the mixes are those of the first.
    assert_eq!(names(&whole, true), ["direct-3", "relayed-3"]);
    assert_eq!(names(&whole, false).len(), 5);
    let five = whole.in_scenario("5 replicas").expect("the design has it");
    assert_eq!(names(&five, true), ["direct-5", "relayed-5"]);
    assert_eq!(names(&five, false), ["direct-5", "relayed-5", "read"], "what has no scenario is in each");
    assert!(five.published.is_empty(), "the published ratio is of the other: {:?}", five.published);
    assert_eq!(whole.in_scenario("3 replicas").expect("the design has it").published, whole.published);
    // The same from the start, and with numbers moved.
    let chosen = Changes { scenario: Some("5 replicas".into()), ..Changes::default() };
    let chosen = parse(&text, &chosen);
    assert_eq!(names(&chosen, true), names(&five, true));
    let moved = chosen.with_estimates(&BTreeMap::new()).expect("no number moves");
    assert_eq!((names(&moved, false), moved.scenario.as_deref()), (names(&five, false), Some("5 replicas")));
    let unknown = whole.in_scenario("4 replicas").expect_err("the design has none such");
    assert!(unknown.to_string().contains("no scenario `4 replicas`"), "{unknown}");
    // What the design runs is kept where it is of the scenario, or of none.
    let runs = |mix: &str, scenario: &str| {
        let text = text.replacen("[design]\n", &format!("[design]\nmix = \"{mix}\"\n"), 1);
        parse(&text, &Changes::default())
            .in_scenario(scenario)
            .expect("the design has it")
            .runs
            .name()
            .to_string()
    };
    assert_eq!(runs("relayed-5", "5 replicas"), "relayed-5");
    assert_eq!(runs("greedy", "5 replicas"), "greedy");
    assert_eq!(runs("relayed-5", "3 replicas"), "optimal");
    // Each has the mix of its own alternatives.
    let taken = |design: &Design| {
        let ready = prepare(design, &setting(&[], &[])).expect("the design is in order");
        let folds: Vec<_> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let planned = plan(design, &ready, &folds, &[], Seed::new(1)).expect("it can be planned");
        let shares: Vec<String> = planned.optimal.shares.iter().map(|(name, _)| name.clone()).collect();
        shares
    };
    assert_eq!((taken(&whole), taken(&five)), (vec!["relayed-3".to_string()], vec!["relayed-5".to_string()]));
}

#[test]
fn a_mix_of_two_scenarios_is_refused() {
    let refused = |from: &str, to: &str| {
        let text = text("redis-replication.toml").replace(from, to);
        let error = Design::parse(&text, "design.toml", &designs(), &Changes::default()).expect_err(to);
        error.to_string()
    };
    let mixed = refused(
        "[clients]",
        "[[mix]]\nname = \"both\"\nfill = [\"direct-3\", \"read\", \"relayed-5\"]\n[clients]",
    );
    assert!(mixed.contains("mix `both` takes `relayed-5` of scenario `5 replicas`"), "{mixed}");
    let published = refused("over = \"direct-3\"", "over = \"direct-5\"");
    assert!(published.contains("the published ratio takes `direct-5`"), "{published}");
    let unnamed = refused("scenario = \"3 replicas\"", "scenario = \" \"");
    assert!(unnamed.contains("a scenario has no name"), "{unnamed}");
}
