//! What the twin says of shipped designs agrees with what their step lists add up to.

use crate::common::*;
use offpath_fabric::LocalBoxFuture;
use offpath_fabric::local::{Local, LocalClock, LocalFabric};
use offpath_fabric::{Backend, Fabric};
use offpath_plan::check::{CheckedPlan, Chosen, plan_and_check, settle};
use offpath_plan::interpret::{Chance, Job, RunState, roles};
use offpath_plan::observe::{Loaded, RequestArrivals, load, observe};
use offpath_plan::planner::prepare_named;
use offpath_plan::{Changes, Design, Ready, prepare};
use offpath_quantity::{Bytes, Time};
use offpath_twin::Seed;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

fn store() -> Vec<Ready> {
    let design = parse(&small("kv-ycsb-c.toml"), &Changes::default());
    prepare(&design, &setting(&[], &[])).expect("the design is in order")
}

fn one<'r>(ready: &'r [Ready], name: &str) -> &'r Ready {
    ready.iter().find(|one| one.alternative.name == name).unwrap_or_else(|| panic!("{name} is there"))
}

#[test]
fn an_idle_twin_sees_what_the_step_lists_add_up_to() {
    for text in [small("kv-ycsb-c.toml"), small("kv-batching.toml"), text("replication.toml")] {
        let design = parse(&text, &Changes::default());
        for one in prepare(&design, &setting(&[], &[])).expect("the design is in order") {
            let name = format!("{} {}", design.name, one.alternative.name);
            let fold = one.compiled.fold(&one.router);
            let seen = observe(&one, Seed::new(3)).expect("the twin runs it");
            assert!(seen.widest <= 0.01, "{name}: {}", seen.widest);
            near(&format!("{name}: latency"), seen.sampled.latency, fold.latency, 0.01);
            near(&format!("{name}: network"), seen.fold.network_bytes, fold.network_bytes, 0.01);
            let stations = fold.seconds.keys().chain(seen.sampled.seconds.keys());
            for station in stations {
                let of = |seconds: &BTreeMap<String, f64>| seconds.get(station).copied().unwrap_or(0.0);
                let (added, observed) = (of(&fold.seconds), of(&seen.sampled.seconds));
                // A femtosecond a request is rounding, not demand.
                assert!(
                    (observed - added).abs() <= 0.01 * added + 1e-15,
                    "{name}: {station} was seen for {observed} s and adds up to {added} s"
                );
            }
            for (pool, count) in &fold.requests {
                let observed = seen.sampled.requests.get(pool).copied().unwrap_or(0.0);
                assert!((observed - count).abs() <= 0.01 * count, "{name}: {pool:?}");
            }
        }
    }
}

fn checked(design: &Design, ready: &[Ready], seed: Seed) -> CheckedPlan {
    let settled = settle(design, ready, Chosen::Best, seed).expect("the twin runs it");
    plan_and_check(design, ready, settled, &[], seed).expect("there is a plan")
}

#[test]
fn a_loaded_twin_carries_what_the_plan_says_and_no_more() {
    for text in [small("kv-ycsb-c.toml"), small("kv-batching.toml"), text("replication.toml")] {
        let design = parse(&text, &Changes::default());
        let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
        let checked = checked(&design, &ready, Seed::new(5));
        assert_eq!(checked.settled.gap, None);
        let share = checked.settled.loaded.throughput.mean / checked.plan.optimal.rate.value;
        assert!((0.97..=1.005).contains(&share), "{}: {share} of the plan", design.name);
        let loaded = &checked.settled.loaded;
        assert_eq!(loaded.failed, 0);
        // Work and ends are counted apart. Those that stand at the window's ends are in one of them alone.
        let ended = loaded.latencies.count() as f64 / loaded.window.as_seconds();
        let edges = f64::from(loaded.in_flight) / loaded.latencies.count() as f64;
        near(&design.name, ended, loaded.throughput.mean, 0.01 + edges);
        assert!(checked.settled.rounds < 6, "{}: the holds settle", design.name);
        assert!(checked.settled.widest <= 0.01);
    }
}

/// Half SEND, half READ, with a little of everything that draws: branches, skew, several clients.
fn busy(seed: u64, arrivals: RequestArrivals, window: Time) -> Loaded {
    let ready = store();
    let own = [one(&ready, "A5-send"), one(&ready, "A4")];
    load(&own, &[0.25, 0.75], arrivals, Time::from_us(20), window, Seed::new(seed)).expect("the twin runs it")
}

#[test]
fn the_same_seed_gives_the_same_answer_on_one_and_two_threads() {
    let say = |seed| format!("{:?}", busy(seed, RequestArrivals::Closed(64), Time::from_us(100)));
    let first = say(7);
    assert_eq!(first, say(7));
    let both: Vec<String> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..2).map(|_| scope.spawn(|| say(7))).collect();
        threads.into_iter().map(|thread| thread.join().expect("it ends")).collect()
    });
    assert_eq!(both, [first.clone(), first.clone()]);
    assert_ne!(first, say(8), "another seed draws otherwise");
}

#[test]
fn littles_law_holds_in_a_closed_loop() {
    // What the window's edges cut off is at most a latency's share of the window.
    for (in_flight, window) in [(8, Time::from_us(1000)), (64, Time::from_us(400)), (512, Time::from_us(400))]
    {
        let loaded = busy(11, RequestArrivals::Closed(in_flight), window);
        near("requests in flight", loaded.mean_in_flight, f64::from(in_flight), 0.02);
        assert_eq!(loaded.failed, 0);
    }
}

/// A design of one alternative with such a request.
fn only(request: &str) -> (Design, [Ready; 1]) {
    let text = format!(
        "[design]\nname = \"rare\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
         [[alternative]]\nname = \"only\"\nrequest = {request}"
    );
    let design = parse(&text, &Changes::default());
    let ready = prepare(&design, &setting(&[], &[])).expect("it is in order");
    (design, <[Ready; 1]>::try_from(ready).expect("there is one alternative"))
}

/// A full core passes as many as its time is enough for: in a window in which the rare long ones came more or less
/// often than in the long run, more or fewer than that ended, and the interval knows both.
#[test]
fn the_interval_of_a_full_station_reaches_to_what_was_counted() {
    let request = r#"[
            { send-ud = "client-soc", bytes = "16 B" },
            { probability = 0.01, then = [ { compute = "soc", time = "200 us" } ], otherwise = [ { compute = "soc", time = "2 us" } ] },
            { send-ud = "soc-client", bytes = "64 B" },
        ]
    "#;
    let (_, ready) = only(request);
    let ready: Vec<&Ready> = ready.iter().collect();
    let (mut far, mut held) = (0, 0);
    for seed in 0..20 {
        let (warm_up, window) = (Time::from_ms(2), Time::from_ms(20));
        let seen = load(&ready, &[1.0], RequestArrivals::Closed(64), warm_up, window, Seed::new(seed));
        let seen = seen.expect("the twin runs it");
        let counted = seen.latencies.count() as f64 / window.as_seconds();
        // What was in flight at the window's edges is counted whole or not at all, a long one on each core at worst.
        let edges = 200e-6 / window.as_seconds();
        let part = counted / seen.throughput.mean - 1.0;
        let high = seen.throughput.high / seen.throughput.mean - 1.0;
        held += u32::from(part.abs() <= high + edges);
        far += u32::from(part.abs() > 2.0 * edges);
    }
    assert!(far >= 5, "requests ask for nearly the same in all but {far} of 20 windows");
    assert!(held >= 18, "{held} of 20 intervals hold what was counted");
}

/// Large requests outlast a window that small ones fill, so that what ends there asked for little: no rate that follows
/// from it lies above what a port carries.
#[test]
fn rare_large_requests_show_no_rate_above_a_port() {
    let request = r#"[
            { probability = 0.01, then = [ { write = "client-host", bytes = "12 MiB" } ], otherwise = [ { read = "client-soc", bytes = "64 B" } ] },
            { wait = "50 us" },
        ]
    "#;
    let (design, ready) = only(request);
    for seed in 1..4 {
        let settled = settle(&design, &ready, Chosen::Best, Seed::new(seed)).expect("the twin runs it");
        let carried = settled.loaded.throughput;
        assert!(carried.mean <= settled.rate * 1.02, "seed {seed}: {carried:?} of {}", settled.rate);
        let is_said = settled.gap.is_some() || carried.low < carried.mean;
        assert!(is_said, "seed {seed}: {carried:?} as if it were exact");
    }
}

#[test]
fn an_open_loop_at_half_the_load_carries_what_is_offered() {
    let ready = store();
    let own = [one(&ready, "A4")];
    let offered = 28e6;
    let window = Time::from_us(600);
    let loaded =
        load(&own, &[1.0], RequestArrivals::Poisson(offered), Time::from_us(50), window, Seed::new(13))
            .expect("runs");
    near("throughput", loaded.throughput.mean, offered, 0.03);
    let unloaded = own[0].compiled.fold(&own[0].router).latency;
    let mean = loaded.latencies.mean().expect("requests ended").as_seconds();
    assert!(mean > unloaded * 0.999, "{mean} s under load, {unloaded} s without");
    assert!(mean < unloaded * 1.2, "queues are short at half the load: {mean} s");
}

#[test]
fn the_other_objectives_have_answers() {
    let changes = |objective: &str, load: &str| Changes {
        objective: Some(objective.to_string()),
        offered_load: Some(load.to_string()),
        ..Changes::default()
    };
    let check = |changes: &Changes| {
        let design = parse(&small("kv-ycsb-c.toml"), changes);
        let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
        checked(&design, &ready, Seed::new(17))
    };
    // A window lasts 400 ms at most, so a small load is quickly run.
    let least = check(&changes("least-host-cpu", "20 k/s"));
    assert_eq!(least.plan.optimal.host_cpu_s, 0.0, "the SoC and READs can serve it without the host");
    near("throughput", least.settled.loaded.throughput.mean, 20e3, 0.03);

    let tail = check(&changes("lowest-p99", "20 k/s"));
    let shares = &tail.settled.shares;
    let total: f64 = shares.iter().map(|(_, share)| share).sum();
    assert!((total - 1.0).abs() < 1e-6, "{shares:?}");
    assert_eq!(tail.plan.optimal.shares, *shares);
    near("throughput", tail.settled.loaded.throughput.mean, 20e3, 0.03);
}

/// Every kind of step, on a backend that has no card at all.
const EVERY_STEP: &str = r#"
[design]
name = "every-step"
device = "bluefield2"
testbed = "rack"
objective = "most-throughput"
rank_by = "unloaded-latency"

[[alternative]]
name = "one-sided"
request = [
    { compute = "client", time = "10 ns" },
    { parallel = [
        [{ read = "client-host", bytes = "4 KiB" }],
        [{ write = "client-soc", bytes = "64 B", batch = 4 }],
    ] },
    { repeat = 2, steps = [{ fetch-and-add = "client-host" }] },
    { compare-and-swap = "client-soc" },
]

[[alternative]]
name = "served"
request = [
    { send-ud = "client-soc", bytes = "16 B" },
    { compute = "soc", time = "50 ns" },
    { probability = 0.5, then = [
        { read = "soc-host-dma", bytes = "64 B" },
    ], otherwise = [
        { read = "soc-host", bytes = "64 B" },
    ] },
    { send-ud = "soc-client", bytes = "64 B" },
]

[[alternative]]
name = "connected"
request = [
    { send = "client-host", bytes = "64 B" },
    { compute = "host", time = "50 ns" },
    { send = "host-client", bytes = "64 B" },
]
"#;

#[test]
fn the_same_interpreter_serves_every_request_on_the_local_backend() {
    const EACH: u32 = 40;
    let design = parse(EVERY_STEP, &Changes::default());
    let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
    let script: Vec<_> = ready.iter().map(|one| one.compiled.clone()).collect();
    let ended: Rc<RefCell<Vec<u32>>> = Rc::new(RefCell::new(vec![0; script.len()]));
    let failures = Rc::new(Cell::new(0));
    let shared = {
        let (ended, failures) = (ended.clone(), failures.clone());
        RunState::new(script.clone(), Chance::Random, move |job: Job, at, result| {
            assert!(at >= job.born);
            ended.borrow_mut()[usize::from(job.alternative)] += 1;
            failures.set(failures.get() + u32::from(result.is_err()));
        })
        .expect("messages can name the programs")
    };
    assert_eq!(shared.endpoints(), ["client", "host", "soc"].map(String::from).into());
    let all = EACH * script.len() as u32;
    let main = {
        let (shared, ended) = (shared.clone(), ended.clone());
        move |fabric: LocalFabric| -> LocalBoxFuture<()> {
            let (shared, ended) = (shared.clone(), ended.clone());
            Box::pin(async move {
                while shared.connected() < 8 {
                    fabric.sleep(Time::from_us(1)).await;
                }
                for number in 0..all {
                    let alternative = (number % 3) as u16;
                    shared.push(Job { alternative, program: 0, born: fabric.now(), label: 0 }, 0);
                }
                let until = fabric.now() + Time::from_ms(1_000);
                while ended.borrow().iter().sum::<u32>() < all && fabric.now() < until {
                    fabric.sleep(Time::from_us(1)).await;
                }
            })
        }
    };
    let mut backend = Local::new(19).clock(LocalClock::Manual).dma_engine("dma");
    for endpoint in shared.endpoints() {
        backend = backend.memory(&endpoint, &endpoint, Bytes::new(16 << 20));
    }
    let instances = [("client".to_string(), 2)].into();
    let roles = roles(&shared, &instances, 8, 8, main).expect("messages can name the tasks");
    backend.run(roles).expect("every role ends");
    assert_eq!(*ended.borrow(), [EACH; 3]);
    assert_eq!(failures.get(), 0);
    assert_eq!(shared.broken(), None);
}

/// Slots that fill because their holders wait for a full station bind nothing, however many there are.
#[test]
fn slots_that_wait_for_another_station_do_not_bind() {
    let text = "[design]\nname = \"reads\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                rank_by = \"throughput\"\n[[alternative]]\nname = \"r\"\n\
                request = [{ read = \"client-soc\", bytes = \"64 B\" }]\n";
    let design = parse(text, &Changes::default());
    let binds = |inflight_slots: &str| {
        let ready = prepare(&design, &setting(&[], &[inflight_slots])).expect("the design is in order");
        checked(&design, &ready, Seed::new(1)).plan.alternatives[0].binding.clone()
    };
    assert_eq!(binds("nic.inflight_slots=142"), "nic.inflight_slots-of-soc");
    assert_eq!(binds("nic.inflight_slots=300"), "nic.cores (shared)");
    assert_eq!(binds("nic.inflight_slots=600"), "nic.cores (shared)");
}

/// What the twin carries there is known to 1.4 to 1.6% and lies 1.3 to 3.4% below the plan, where 2% is let pass: no seed decides
/// whether it confirms the plan.
#[test]
fn a_difference_within_the_twins_noise_is_no_verdict() {
    let design = Design::load(&designs().join("replication.toml"), &with_ratio(0.25)).expect("it is read");
    let ready = prepare_named(&design, &setting(&[], &[])).expect("it is in order");
    for seed in 1..=3 {
        let settled = settle(&design, &ready, Chosen::Best, Seed::new(seed)).expect("the twin runs it");
        let noise = settled.noise.expect("it is within it");
        let apart = (settled.loaded.throughput.mean / settled.rate - 1.0).abs();
        assert!(settled.gap.is_none() && noise <= settled.allowed(), "seed {seed}: {:?}", settled.gap);
        assert!((apart - settled.allowed()).abs() <= noise, "seed {seed}: {apart} and {noise}");
    }
}

/// More requests in flight hold the slots of both endpoints for longer, by about as much as solving for fewer gives back: whole
/// steps swing by 3 to 6% around the solution, so that its rate would be one of the seed.
#[test]
fn holds_that_swing_come_to_rest() {
    let text = "[design]\nname = \"w\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
                [[alternative]]\nname = \"a\"\nrequest = [{ write = \"client-host\", bytes = \"64 B\" }, \
                { read = \"client-soc\", bytes = \"64 B\" }]\n";
    let ready = prepare(&parse(text, &Changes::default()), &setting(&[], &[])).expect("it is in order");
    let rates = (1..=5).map(|seed| {
        let design = parse(text, &Changes::default());
        let settled = settle(&design, &ready, Chosen::Best, Seed::new(seed)).expect("the twin runs it");
        assert!(settled.has_settled(), "seed {seed} still moves by {}", settled.moved);
        assert!(settled.gap.is_none(), "seed {seed}: {:?}", settled.gap);
        settled.rate
    });
    let rates: Vec<f64> = rates.collect();
    let (least, most) =
        (rates.iter().copied().fold(f64::INFINITY, f64::min), rates.iter().copied().fold(0.0, f64::max));
    // Each has settled to a hundredth.
    assert!(most / least < 1.02, "{rates:?}");
}
