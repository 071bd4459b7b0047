//! Designs in which something is rare, slow, large, or not taken: what is said of them holds for all of it.

use crate::common::*;
use offpath_plan::check::{Bunched, Chosen, Settled, settle, settle_alone};
use offpath_plan::observe::observe;
use offpath_plan::solve::solved;
use offpath_plan::{Basis, Changes, Design, Plan, Ready, prepare};
use offpath_twin::Seed;
use std::collections::BTreeMap;

const MOST: &str = "objective = \"most-throughput\"";

fn design(goal: &str, alternatives: &[(&str, &str)]) -> Design {
    parse(&design_text(goal, alternatives), &Changes::default())
}

fn design_text(goal: &str, alternatives: &[(&str, &str)]) -> String {
    let alternatives = alternatives
        .iter()
        .map(|(name, steps)| format!("[[alternative]]\nname = \"{name}\"\nrequest = [ {steps} ]\n"));
    let alternatives: String = alternatives.collect();
    let head = "[design]\nname = \"awkward\"\ndevice = \"bluefield2\"\nrank_by = \"throughput\"\n";
    format!("{head}{goal}\n{alternatives}")
}

fn made_ready(design: &Design) -> Vec<Ready> {
    prepare(design, &setting(&[], &[])).expect("the design is in order")
}

fn settled(design: &Design, ready: &[Ready], seed: u64) -> Settled {
    settle(design, ready, Chosen::Best, Seed::new(seed)).expect("the twin runs it")
}

/// What `plan` prints of a design.
fn studied(design: &Design) -> Plan {
    study_of(design, &Changes::default(), &setting(&[], &[])).expect("it is planned").checked.plan
}

/// One request in 10,000 takes 10 ms of a core: 1 us each, three times what all the others take together.
#[test]
fn a_rare_case_is_demanded() {
    let rare = |share: f64| {
        let branch = format!(
            "{{ probability = {share}, then = [{{ compute = \"soc\", time = \"10 ms\" }}], otherwise = [] }}"
        );
        format!(
            "{{ send = \"client-soc\", bytes = \"64 B\" }}, {branch}, {{ send = \"soc-client\", bytes = \"64 B\" }}"
        )
    };
    let design = design(MOST, &[("a", &rare(0.0001))]);
    let ready = made_ready(&design);
    let seen = observe(&ready[0], Seed::new(3)).expect("the idle twin runs it").fold;
    let added = ready[0].compiled.fold(&ready[0].router);
    near("the SoC's cores", seen.seconds["soc.cpu"], added.seconds["soc.cpu"], 0.02);
    near("latency", seen.latency, added.latency, 0.02);
    near("the plan", settled(&design, &ready, 1).rate, 8.0 / added.seconds["soc.cpu"], 0.02);
}

/// A window in which a case hardly comes says nothing of the plan, whatever it carried.
#[test]
fn what_a_window_does_not_hold_confirms_nothing() {
    let steps = "{ compute = \"host\", time = \"1 us\" }, { probability = 0.0000001, then = [{ compute = \"host\", time = \"1 us\" }], otherwise = [] }";
    let design = design(MOST, &[("a", steps)]);
    let found = settled(&design, &made_ready(&design), 1);
    let why = found.gap.and_then(|gap| gap.blind).expect("it is said");
    assert!(why.contains("one request in 10000000 takes"), "{why}");
    // What no window would hold is not run for as long as one may be.
    let steps = "{ read = \"client-host\", bytes = \"64 B\" }, { probability = 0.001, then = [{ wait = \"10 ms\" }], otherwise = [] }";
    let design = self::design(MOST, &[("a", steps)]);
    let found = settled(&design, &made_ready(&design), 1);
    let why = found.gap.and_then(|gap| gap.blind).expect("it is said");
    assert!(why.contains("may take 10.003 ms, and its longest window is 3.8"), "{why}");
    assert!(found.loaded.window.as_seconds() < 1e-4, "{}", found.loaded.window);
}

/// What an alternative does alone does not depend on one that the mix leaves out.
#[test]
fn an_alternative_that_is_not_taken_moves_no_other() {
    let other = "{ read = \"client-soc\", bytes = \"64 B\" }";
    let read = &[other, other].join(", ");
    let both = studied(&design(MOST, &[("A", read), ("B", other)]));
    let own = studied(&design(MOST, &[("A", read)]));
    let left_out = both.optimal.shares.iter().all(|(name, _)| name != "A");
    assert!(left_out, "{:?}", both.optimal.shares);
    near("A alone", alone(&both, "A").rate.value, alone(&own, "A").rate.value, 0.01);
}

/// Of mixes that take as little of the host the quickest is taken, as is said.
#[test]
fn a_tie_in_host_time_is_broken_by_latency() {
    let one = "{ read = \"client-soc\", bytes = \"64 B\" }";
    let two = format!("{one}, {one}");
    let goal = "objective = \"least-host-cpu\"\noffered_load = \"10 M/s\"";
    let plan = studied(&design(goal, &[("two", &two), ("one", one)]));
    assert!(!plan.optimal.unique);
    assert!(
        plan.optimal.shares.iter().all(|(name, share)| name == "one" || *share < 1e-6),
        "{:?}",
        plan.optimal.shares
    );
}

/// At a load the answer is what the goal is about, and rests on what decides that.
#[test]
fn a_goal_at_a_load_rests_on_what_decides_it() {
    let steps = "{ send = \"client-host\", bytes = \"64 B\" }, \
                 { compute = \"host\", time = { value = \"1 us\", low = \"0.5 us\", high = \"8 us\" } }, \
                 { send = \"host-client\", bytes = \"64 B\" }";
    let goal = "objective = \"least-host-cpu\"\noffered_load = \"1 M/s\"";
    let plan = studied(&design(goal, &[("rpc", steps)]));
    let heaviest = &plan.recommendation.rests_on[0];
    assert!(heaviest.number.contains("time") && heaviest.weight > 0.5, "{heaviest:?}");
    assert_eq!(plan.recommendation.basis, Basis::YourEstimate);
    assert!(plan.worth.range_80.1 > 3.0 * plan.worth.value, "{:?}", plan.worth);
    let (low, high) = (plan.influences[0].at_low, plan.influences[0].at_high);
    assert!(low < Some(plan.worth.value) && Some(plan.worth.value) < high, "{low:?} {high:?}");
}

/// However rarely requests come, as many are counted.
#[test]
fn a_low_rate_is_told_as_well_as_a_high_one() {
    let steps = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"1 ms\" }, \
                 { send = \"host-client\", bytes = \"64 B\" }";
    let design = design("objective = \"least-host-cpu\"\noffered_load = \"500/s\"", &[("a", steps)]);
    let ready = made_ready(&design);
    for seed in 1..4 {
        let found = settled(&design, &ready, seed);
        assert_eq!(found.gap, None, "seed {seed}");
        near("what is carried", found.loaded.throughput.mean, 500.0, 0.02);
    }
}

/// Payloads that fill a good part of a memory run, and those that do not fit are refused with their place.
#[test]
fn large_payloads_run_or_are_refused() {
    let read = "{ probability = 0.01, then = [{ read = \"client-host\", bytes = \"1 GiB\" }], \
                otherwise = [{ read = \"client-host\", bytes = \"64 B\" }] }";
    let large = design(MOST, &[("a", read)]);
    assert_eq!(settled(&large, &made_ready(&large), 1).loaded.failed, 0);
    let message = design(
        MOST,
        &[("a", "{ send = \"client-soc\", bytes = \"1 GiB\" }, { send = \"soc-client\", bytes = \"64 B\" }")],
    );
    let refused = prepare(&message, &setting(&[], &[])).expect_err("no connection has such a buffer");
    assert!(refused.to_string().contains("above 96 MiB") && refused.labels().is_some(), "{refused}");
}

/// While long requests are in flight short ones end, and those that have ended ask for less than all that
/// began: what is carried is told from all of them.
#[test]
fn long_requests_that_have_not_ended_are_asked_for_too() {
    let steps = "{ send = \"client-soc\", bytes = \"64 B\" }, \
                 { probability = 0.02, then = [{ compute = \"soc\", time = \"200 us\" }, { wait = \"3 ms\" }, \
                 { compute = \"soc\", time = \"200 us\" }], otherwise = [{ compute = \"soc\", time = \"1 us\" }] }, \
                 { send = \"soc-client\", bytes = \"64 B\" }";
    let design = design(MOST, &[("a", steps)]);
    let ready = made_ready(&design);
    for seed in 1..4 {
        let found = settled(&design, &ready, seed);
        near("what is carried", found.loaded.throughput.mean, found.rate, 0.01);
    }
}

/// Where the twin cannot have as many requests in flight as a load takes, their latency is that of its own bound.
#[test]
fn a_curve_ends_where_the_twin_runs_out_of_requests() {
    let steps = "{ read = \"client-soc\", bytes = \"64 B\" }, { wait = \"100 us\" }";
    let design = design(MOST, &[("a", steps)]);
    let ready = made_ready(&design);
    let found = settled(&design, &ready, 1);
    let why = found.gap.and_then(|gap| gap.blind).expect("it is said");
    assert!(why.contains("requests in flight, and the twin runs 4096"), "{why}");
    let plan = offpath_plan::plan(&design, &ready, &found.folds, &[], Seed::new(1)).expect("it is planned");
    let points = offpath_plan::check::curve(&design, &ready, &plan, Seed::new(1)).expect("the twin runs it");
    // A tenth of 142 M/s for 102 us is 1450 in flight; a quarter is more than 2048.
    assert_eq!(points.len(), 1, "{points:?}");
}

/// Requests of many bursts are events by the million: of them the twin runs fewer, and says so.
#[test]
fn of_requests_that_move_much_the_twin_runs_fewer() {
    let steps = "{ read = \"client-soc\", bytes = \"16 MiB\" }, { wait = \"1 s\" }";
    let design = design(MOST, &[("a", steps)]);
    let found = settled(&design, &made_ready(&design), 1);
    let why = found.gap.and_then(|gap| gap.blind).expect("it is said");
    assert!(why.ends_with("and the twin runs 243, since one is 1025 verbs and bursts of a payload"), "{why}");
}

/// A rare case of many steps costs the twin little in the mean, so that it runs as many requests as the mix takes.
#[test]
fn what_is_rare_does_not_make_the_twin_run_fewer() {
    let steps = "{ read = \"client-soc\", bytes = \"64 B\" }, { wait = \"10 us\" }, { probability = 0.001, \
                 then = [{ repeat = 400, steps = [{ read = \"client-soc\", bytes = \"64 B\" }] }], otherwise = [] }";
    let design = design(MOST, &[("a", steps)]);
    let found = settled(&design, &made_ready(&design), 1);
    assert!(found.gap.as_ref().is_none_or(|gap| gap.blind.is_none()), "{:?}", found.gap);
}

/// Arrivals at random are more or fewer than their rate says: that is not a difference between twin and plan, whatever the
/// seed.
#[test]
fn chance_arrivals_are_no_difference() {
    let goal = "objective = \"least-host-cpu\"\noffered_load = \"400 /s\"";
    let design = design(goal, &[("a", "{ read = \"client-soc\", bytes = \"4 MiB\" }")]);
    let ready = made_ready(&design);
    let mut furthest = 0.0f64;
    for seed in 1..6 {
        let found = settled(&design, &ready, seed);
        assert_eq!(found.gap, None, "seed {seed}");
        furthest = furthest.max((found.loaded.throughput.mean / 400.0 - 1.0).abs());
    }
    assert!(furthest > 0.03, "chance is not seen: {furthest}");
}

/// A probability of the design is what is planned with, not how often a case came among the sampled requests.
#[test]
fn a_probability_enters_as_it_is_given() {
    let steps = "{ send = \"client-host\", bytes = \"64 B\" }, { probability = 0.01, \
                 then = [{ compute = \"host\", time = \"1 ms\" }], otherwise = [{ compute = \"host\", time = \"1 us\" }] }, \
                 { send = \"host-client\", bytes = \"64 B\" }";
    let design = design(MOST, &[("a", steps)]);
    let ready = made_ready(&design);
    let observed = observe(&ready[0], Seed::new(3)).expect("the idle twin runs it");
    let added = ready[0].compiled.fold(&ready[0].router);
    assert_eq!(observed.fold.seconds["host.cpu"], added.seconds["host.cpu"]);
    assert!(observed.sampled.seconds["host.cpu"] != added.seconds["host.cpu"], "chance is not seen");
}

/// How often a case comes among few samples is not how often it comes: a rare wait weighs by its probability.
#[test]
fn a_rare_wait_takes_its_share_of_the_latency() {
    let of = |rare: &str| {
        let steps = format!(
            "{{ send-ud = \"client-soc\", bytes = \"64 B\" }}, {{ compute = \"soc\", time = \"3 us\" }}, \
             {rare} {{ send-ud = \"soc-client\", bytes = \"64 B\" }}"
        );
        let design = design(MOST, &[("a", &steps)]);
        let ready = made_ready(&design);
        settled(&design, &ready, 1).folds[0].latency
    };
    let (plain, rare) =
        (of(""), of("{ probability = 0.002, then = [{ wait = \"5 ms\" }], otherwise = [] },"));
    near("a wait of 5 ms in one of 500", rare - plain, 0.002 * 5e-3, 0.01);
}

/// What the design's constraints forbid carries nothing, and no number of clients runs it.
#[test]
fn few_clients_run_nothing_that_is_forbidden() {
    let read = "{ read = \"client-host\", bytes = \"64 B\" }";
    let served = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"1 us\" }, \
                  { send = \"host-client\", bytes = \"64 B\" }";
    let text = design(MOST, &[("read", read), ("served", served)]).source.1;
    let text = format!("{text}[constraints]\nhost_cpu_share = 0.0\n[clients]\ncounts = [1, 2]\n");
    let design = parse(&text, &Changes::default());
    let ready = made_ready(&design);
    let plan = studied(&design);
    let rows =
        offpath_plan::check::few_clients(&design, &ready, &plan, Seed::new(1)).expect("the twin runs it");
    let names: Vec<&str> = rows.iter().map(|(name, _)| name.as_str()).collect();
    assert!(names.contains(&"read") && !names.contains(&"served"), "{names:?}");
}

/// Where an alternative stands in the file moves no digit: the twin draws by names, and of what is as good the solver takes what
/// comes first by name.
#[test]
fn the_order_of_alternatives_moves_no_digit() {
    let swap = |at: &str| {
        format!(
            "{{ compare-and-swap = \"client-{at}\" }}, {{ read = \"client-host\", bytes = \"64 B\" }}, \
             {{ write = \"client-host\", bytes = \"64 B\" }}, {{ compare-and-swap = \"client-{at}\" }}"
        )
    };
    let asked = "{ send-ud = \"client-soc\", bytes = \"32 B\" }, { compute = \"soc\", time = \"200 ns\" }, \
                 { send-ud = \"soc-client\", bytes = \"64 B\" }";
    let (host, soc) = (swap("host"), swap("soc"));
    let all = [("host", host.as_str()), ("soc", soc.as_str()), ("asked", asked), ("soc again", soc.as_str())];
    let seen = |order: [usize; 4]| {
        let design = design(MOST, &order.map(|at| all[at]));
        let ready = made_ready(&design);
        let settled = settled(&design, &ready, 1);
        let demands =
            ready.iter().zip(&settled.folds).map(|(one, fold)| (one.alternative.name.clone(), fold));
        let held = demands.map(|(name, fold)| (name, fold.seconds.clone())).collect::<BTreeMap<_, _>>();
        let added = solved(&design, &ready, &folds(&ready)).expect("it is solved");
        let added = (added.optimal.shares, added.greedy.shares, added.order);
        (settled.shares, settled.rate, settled.loaded.throughput.mean, held, added)
    };
    let first = seen([0, 1, 2, 3]);
    for order in [[3, 2, 1, 0], [1, 0, 3, 2], [2, 3, 0, 1], [2, 0, 1, 3]] {
        assert_eq!(seen(order), first, "{order:?}");
    }
}

/// What the twin cannot show it is not asked for: one short run says how many requests are missing, and the plan is
/// that of the stations.
#[test]
fn a_mix_that_no_twin_confirms_is_not_run_for_long() {
    let steps = "{ read = \"client-soc\", bytes = \"64 B\" }, { wait = \"1 ms\" }";
    let design = design(MOST, &[("a", steps)]);
    let settled = settled(&design, &made_ready(&design), 1);
    let gap = settled.gap.as_ref().expect("it is not confirmed");
    assert!(gap.blind.as_ref().is_some_and(|why| why.contains("requests in flight")), "{gap:?}");
    assert_eq!((settled.rounds, settled.rate), (1, settled.first_rate));
    let counted = settled.loaded.window.as_seconds() * settled.rate;
    assert!(counted < 1_000.0, "{counted} requests are counted of a run that nothing is read of");
}

/// Long READs from the SoC to clients, and the small requests of long READs from clients, wait for one port; the other way
/// round for the other. Requests fill one port after the other, whether they are in closed loops or come at random.
const BOTH_WAYS: &str = r#"
    { read = "client-soc", bytes = "16 KiB" }, { send-ud = "client-host", bytes = "64 B" },
    { compute = "host", time = "50 ns" }, { send-ud = "host-soc", bytes = "64 B" },
    { send-ud = "soc-host", bytes = "64 B" }, { read = "host-client", bytes = "16 KiB" },
    { send = "host-client", bytes = "64 B" }"#;

/// The way back is that of small requests alone, but for a WRITE before the READ.
const ONE_WAY: &str = r#"
    { write = "client-soc", bytes = "4 KiB" }, { read = "client-soc", bytes = "16 KiB" },
    { send = "client-soc", bytes = "64 B" }, { send = "soc-host", bytes = "64 B" },
    { read = "host-soc", bytes = "8 B" }, { send = "host-client", bytes = "64 B" }"#;

fn bunched(steps: &str) -> (Settled, Option<Bunched>) {
    let design = design(MOST, &[("a", steps)]);
    let settled = settled(&design, &made_ready(&design), 1);
    let bunched = settled.gap.as_ref().and_then(|gap| gap.bunched.clone());
    (settled, bunched)
}

/// Whoever waits before one of two ports is not at the other: the stations that are never busy together are named, and
/// what is carried lies between what they carry in turns and what the plan adds up.
#[test]
fn closed_loops_that_stay_bunched_are_told_what_they_wait_for() {
    let (settled, bunched) = bunched(BOTH_WAYS);
    let gap = settled.gap.as_ref().expect("the plan is not carried");
    let full = gap.fullest.as_ref().expect("a station is the fullest");
    assert!(full.busy < 0.6, "{full:?}");
    let behind = bunched.and_then(|one| one.behind).expect("the other port is busy meanwhile");
    let ports = [full.station.as_str(), behind.station.station.as_str()];
    assert!(ports.contains(&"nic.transmit") && ports.contains(&"nic.receive"), "{ports:?}");
    assert!(behind.station.busy > 0.95 && behind.in_all < 0.6, "{behind:?}");
    let in_turns: f64 = ports.iter().map(|port| settled.folds[0].seconds[*port]).sum();
    let of_bound = gap.carried_per_s.expect("it tells").mean * in_turns;
    assert!((0.98..1.2).contains(&of_bound), "{of_bound} of what both carry in turns");
}

/// Where only closed loops bunch, the load that they do not reach is carried when its requests come at random.
#[test]
fn requests_at_random_tell_whether_stations_have_room() {
    let (planned, found) = bunched(ONE_WAY);
    let found = found.expect("the plan is not carried");
    let behind = found.behind.as_ref().expect("a station is busy meanwhile");
    assert_eq!(behind.station.station, "nic.receive", "{found:?}");
    assert!(behind.station.busy > 0.9 && behind.in_all < 0.3, "{behind:?}");
    let at_random = found.at_random.expect("it is carried");
    near("the load", at_random.load_per_s, 0.98 * planned.rate, 1e-9);
    let closed = f64::from(planned.loaded.in_flight);
    assert!(at_random.mean_in_flight < 0.5 * closed, "{at_random:?}, {closed} in flight in closed loops");
    // Without the WRITE nothing long goes in, and the loops fill the port.
    let (_, without) = ONE_WAY.split_once("},").expect("the WRITE is the first step");
    assert_eq!(bunched(without).0.gap, None);
}

const HOT_PAIR: &str = r#"{ read = "client-soc", bytes = "64 B", object = "hot" },
    { write = "client-soc", bytes = "64 B", object = "hot" }"#;

const HOT_READ_AND_SWAP: &str = r#"{ read = "client-soc", bytes = "64 B", object = "hot" }, { compare-and-swap = "client-soc", object = "hot" }"#;

const HOT_SWAP: &str = r#"{ compare-and-swap = "client-soc", object = "hot" }"#;

const PLAIN_READ: &str = r#"{ read = "client-soc", bytes = "64 B" }"#;

/// Alternatives that share so many records of 64 B.
fn on_hot_records(records: u32, alternatives: &[(&str, &str)]) -> Design {
    let head = format!(
        "{MOST}\n[workload]\nycsb = \"../workloads/workloadc\"\n\
         set = {{ recordcount = {records}, requestdistribution = \"uniform\", fieldcount = 1, fieldlength = 64 }}\n\
         [object.hot]\nentry = \"64 B\""
    );
    let text = design_text(&head, alternatives).replace("request = [", "read = [");
    parse(&text, &Changes::default())
}

/// What a design says of each alternative alone: requests per second, what binds, and for how long slots are held.
type Rows = BTreeMap<String, (f64, String, BTreeMap<String, f64>)>;

fn rows(design: &Design) -> (Settled, Rows) {
    let ready = made_ready(design);
    let mut settled = settled(design, &ready, 1);
    settle_alone(design, &ready, &mut settled, Seed::new(1)).expect("the twin runs each");
    let alone = solved(design, &ready, &settled.folds).expect("it is solved").alone;
    let rows = ready.iter().zip(&settled.folds).zip(alone).map(|((one, fold), alone)| {
        let mut holds = fold.alone().seconds;
        holds.retain(|station, _| station.contains("inflight_slots"));
        let binds = alone.binding.first().expect("something binds").constraint.to_string();
        (one.alternative.name.clone(), (alone.total, binds, holds))
    });
    let rows = rows.collect();
    (settled, rows)
}

/// Each alternative alone is what it is in a file of its own, to the last digit: what else a design holds, before or after
/// it, says nothing of it.
#[test]
fn an_alternative_alone_is_the_same_in_any_company() {
    let designs: [(u32, &[(&str, &str)]); 5] = [
        (48, &[("m", HOT_PAIR), ("f", PLAIN_READ)]),
        (48, &[("p", HOT_READ_AND_SWAP), ("f", PLAIN_READ)]),
        (64, &[("p", HOT_READ_AND_SWAP), ("f", PLAIN_READ)]),
        (64, &[("f", PLAIN_READ), ("c", HOT_SWAP)]),
        (64, &[("c", HOT_SWAP), ("m", HOT_PAIR)]),
    ];
    for (records, alternatives) in designs {
        let (_, together) = rows(&on_hot_records(records, alternatives));
        for one in alternatives {
            let (_, alone) = rows(&on_hot_records(records, &[*one]));
            assert_eq!(alone[one.0], together[one.0], "{} of {records} records", one.0);
        }
    }
}

/// The alternative that the twin carries most of is the answer, though another one carries more by added-up demands.
#[test]
fn alternatives_are_compared_by_what_each_carries_alone() {
    let design = on_hot_records(64, &[("c", HOT_SWAP), ("m", HOT_PAIR)]);
    let (settled, rows) = rows(&design);
    assert!(rows["c"].0 > rows["m"].0, "{rows:?}");
    assert_eq!(settled.shares, [("c".to_string(), 1.0)]);
    assert!(settled.has_settled() && settled.gap.is_none(), "{:?}", settled.gap);
    assert_eq!(settled.rate, rows["c"].0);
}

/// Slots fill while their holders wait for what binds, and bind nothing for that: what more of a station brings is what it
/// brings when it is planned.
#[test]
fn what_binds_beside_slots_that_wait_for_it_is_worth_what_planning_with_more_of_it_shows() {
    let text = design_text(
        MOST,
        &[
            ("read", r#"{ read = "client-host", bytes = "64 B" }, { read = "client-host", bytes = "64 B" }"#),
            (
                "rpc",
                r#"{ send-ud = "client-host", bytes = "64 B" }, { compute = "host", time = "2 us" },
                   { send-ud = "host-client", bytes = "64 B" }"#,
            ),
        ],
    )
    .replace("bluefield2", "connectx6");
    let design = parse(&text, &Changes::default());
    let planned = |more: &[&str]| {
        study_of(&design, &Changes::default(), &setting(&[], more)).expect("it is planned").checked.plan
    };
    let as_it_is = planned(&[]);
    let reads = as_it_is.optimal.bounds.iter().find(|one| one.name == "host.inbound_reads");
    let reads = reads.unwrap_or_else(|| panic!("{:?}", as_it_is.optimal.bounds));
    // A tenth more of the 135 M/s that the profile has.
    let more = planned(&["host.inbound_read_rate=148.5M/s"]);
    let shown = more.optimal.rate.value / as_it_is.optimal.rate.value - 1.0;
    assert!(shown > 0.05, "{shown}");
    near("10% more", reads.gain_percent.expect("it has a price") / 100.0, shown, 0.1);
    let slots = |name: &str| name.contains("inflight_slots");
    assert!(as_it_is.optimal.bounds.iter().all(|one| !slots(&one.name)), "{:?}", as_it_is.optimal.bounds);
    assert!(as_it_is.recommendation.rests_on.iter().all(|one| !slots(&one.number)));
}

const HOST: &str = "{ send = \"client-host\", bytes = \"64 B\" }, { compute = \"host\", time = \"10 us\" }, \
                    { send = \"host-client\", bytes = \"16 B\" }";

/// To be of fewer alternatives a mix may lose a hundredth of what any mix carries, however many are left out on the way.
#[test]
fn no_mix_is_better_than_the_best_by_more_than_a_hundredth() {
    let soc = HOST.replace("host", "soc").replace("10 us", "360 us");
    let large = "{ read = \"client-host\", bytes = \"1100 KiB\" }";
    let mix = "[[mix]]\nname = \"all\"\nfill = [\"host\", \"soc\", \"large\"]\n";
    let text = design_text(MOST, &[("host", HOST), ("soc", &soc), ("large", large)]) + mix;
    let plan = planned(&parse(&text, &Changes::default()), &[], &[]);
    let others = [plan.greedy.rate.value, plan.mixes[0].rate.value];
    let most = others.into_iter().fold(plan.optimal.rate.value, f64::max);
    assert!(plan.optimal.rate.value >= most * 0.99, "{} of {most}", plan.optimal.rate.value);
    assert!(
        plan.optimal.composition().len() < 3,
        "what brings next to nothing is left out: {:?}",
        plan.optimal
    );
    assert_eq!(plan.recommendation.matched_in, None, "no other is as good");
}

/// Where another alternative is as good, a reader is told in how many draws which is named decides nothing.
#[test]
fn what_is_as_good_is_told_apart_from_what_is_better() {
    let plan = |wait: &str| {
        let read = "{ read = \"client-host\", bytes = \"4 KiB\" }";
        let other = format!("{read}, {{ wait = \"{wait}\" }}");
        planned(&design(MOST, &[("read", read), ("waits", &other)]), &[], &[])
    };
    // The port binds both.
    let sure = plan("20 ns").recommendation;
    assert!(sure.best_in > 0.9 && sure.matched_in.is_some_and(|share| share > 0.8), "{sure:?}");
    let slower = plan("2 us").recommendation;
    assert_eq!((slower.best_in, slower.matched_in), (1.0, None), "as much, and slower");
}

/// A request begins at one endpoint, whichever case of a first branch is written first.
#[test]
fn a_request_begins_at_one_endpoint() {
    let host = "[{ compute = \"host\", time = \"1 us\" }, { send = \"host-client\", bytes = \"64 B\" }]";
    let client =
        "[{ send = \"client-host\", bytes = \"64 B\" }, { send = \"host-client\", bytes = \"64 B\" }]";
    for (one, other) in [(host, client), (client, host)] {
        let steps = format!("{{ probability = 0.5, then = {one}, otherwise = {other} }}");
        let design = design(MOST, &[("a", &steps)]);
        let refused = prepare(&design, &setting(&[], &[])).expect_err("it begins at two").to_string();
        assert!(refused.contains("begins at `"), "{refused}");
    }
}

/// Of parts side by side the last is waited for, in each case of their branches: half of the requests wait for 1 ms.
#[test]
fn a_branch_beside_another_part_is_waited_for_in_each_case() {
    let around = |within: &str| {
        format!(
            "{{ send = \"client-soc\", bytes = \"64 B\" }}, {within}, {{ send = \"soc-client\", bytes = \"64 B\" }}"
        )
    };
    let latency = |within: &str| {
        let design = design(MOST, &[("a", &around(within))]);
        let ready = made_ready(&design);
        let seen = observe(&ready[0], Seed::new(3)).expect("the idle twin runs it");
        // Two branches of one request come in step where cases are taken in proportion, and by chance elsewhere.
        if within.matches("probability").count() < 2 {
            near("what the twin saw", seen.sampled.latency, seen.fold.latency, 0.03);
        }
        seen.fold.latency
    };
    let case = "{ probability = 0.5, then = [{ wait = \"1 ms\" }], otherwise = [] }";
    let other = "[{ wait = \"500 us\" }]";
    let (long, short) = (latency("{ wait = \"1 ms\" }"), latency("{ wait = \"500 us\" }"));
    near("one case", latency(&format!("{{ parallel = [[{case}], {other}] }}")), (long + short) / 2.0, 0.001);
    // Neither of two is long in a quarter of them.
    let both = latency(&format!("{{ parallel = [[{case}], [{case}], {other}] }}"));
    near("two cases", both, 0.75 * long + 0.25 * short, 0.001);
}
