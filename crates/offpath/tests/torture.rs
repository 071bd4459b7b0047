//! The applications under seeded faults on the twin. The command plays many more seeds.

use offpath::apps::kv::Kv;
use offpath::apps::replog::Replog;
use offpath::apps::system::AppSystem;
use offpath::apps::torture::SystemFault;
use offpath::profile::{Category, Library, SystemRequest};
use offpath::route::Router;
use offpath::torture::{Case, check_system};
use std::sync::Arc;

fn router() -> Arc<Router> {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Arc::new(Router::new(&system).expect("a shipped profile has routes"))
}

fn case<S: AppSystem>(seed: u64, bug: Option<&str>) -> Case<S> {
    Case::of(seed, bug).expect("the bug is known")
}

/// Seeds that a test plays.
const SEEDS: u64 = 200;

/// Seeds of the log that reach corners which the first ones miss: chunks of a past incarnation that arrive while a
/// backup is cut, a primary that is lost after its entries went to the card's files, and chunks of a past
/// incarnation that the card must not digest, since the chain does not have them.
const CORNERS: [u64; 3] = [6978, 8669, 18102];

#[test]
fn what_few_seeds_reach_holds_too() {
    let router = router();
    for seed in CORNERS {
        let case = case::<Replog>(seed, None);
        case.play(&router, &case.schedule).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}

fn holds<S: AppSystem>(least: u64) {
    let router = router();
    check_system(S::ABOUT, &router).expect("the shipped system has what it needs");
    let (mut operations, mut unacknowledged) = (0, 0);
    for seed in 0..SEEDS {
        let case = case::<S>(seed, None);
        let tally = case.play(&router, &case.schedule).unwrap_or_else(|broken| {
            panic!("seed {seed} ({}): {broken}\n{}", case.alternative(), case.shrink(&router))
        });
        operations += tally.operations;
        unacknowledged += tally.unacknowledged;
    }
    // Faults that nobody notices would show nothing.
    assert!(unacknowledged > 0 && operations - unacknowledged > least * SEEDS);
}

#[test]
fn every_history_of_the_store_is_linearizable() {
    holds::<Kv>(100);
}

#[test]
fn nothing_that_the_log_acknowledged_is_lost_and_replicas_are_equal() {
    holds::<Replog>(30);
}

fn gives_the_same_twice<S: AppSystem>() {
    let router = router();
    for seed in [3, 5, 11, 17] {
        let case = case::<S>(seed, None);
        let play = || case.play(&router, &case.schedule).expect("its promise holds");
        assert_eq!(play(), play(), "{} {seed}", S::ABOUT.name);
    }
}

#[test]
fn a_seed_gives_the_same_twice() {
    gives_the_same_twice::<Kv>();
    gives_the_same_twice::<Replog>();
}

fn finds_every_bug<S: AppSystem>() {
    let router = router();
    let mut missed = Vec::new();
    for bug in S::ABOUT.bugs {
        let found = (0..1000).find_map(|seed| {
            let case = case::<S>(seed, Some(bug));
            let broken = case.play(&router, &case.schedule).err()?;
            Some((case, broken))
        });
        let Some((case, broken)) = found else {
            missed.push(bug);
            continue;
        };
        let small = case.shrink(&router);
        println!("{bug}: seed {}, {}: {broken}\n{small}", case.seed, case.alternative());
        assert!(small.faults.len() <= case.schedule.faults.len());
        assert!(case.play(&router, &small).is_err(), "{bug}: what was shrunk no longer fails");
    }
    assert!(missed.is_empty(), "not found within 1,000 seeds: {missed:?}");
}

#[test]
fn every_bug_injected_in_the_store_is_found() {
    finds_every_bug::<Kv>();
}

#[test]
fn every_bug_injected_in_the_log_is_found() {
    finds_every_bug::<Replog>();
}

/// How many schedules of a system slow the card down; each is played on both cards alike.
fn slowed<S: AppSystem>(own: &Arc<Router>, shipped: &Arc<Router>) -> usize {
    check_system(S::ABOUT, own).expect("it has what the subject needs");
    let slows_the_card = |seed: u64| {
        let case = case::<S>(seed, None);
        let play = |router| case.play(router, &case.schedule).expect("its promise holds");
        assert_eq!(play(own), play(shipped), "seed {seed}");
        let is_slow =
            |fault: &SystemFault| matches!(fault, SystemFault::Slow { station, .. } if station == "soc.cpu");
        case.schedule.faults.iter().any(is_slow)
    };
    (0..20).filter(|seed| slows_the_card(*seed)).count()
}

/// Schedules name processors by what they do in the system; the profile calls them what it likes.
#[test]
fn faults_find_the_processors_of_a_card_that_calls_them_otherwise() {
    let mut library = Library::builtin();
    let card = library.source(Category::Device, "bluefield2").expect("it ships").replace("soc", "arm");
    library.insert(Category::Device, "own", &card.replace("name = \"bluefield2\"", "name = \"own\""));
    let system =
        library.load(&SystemRequest { device: "own", ..SystemRequest::default() }).expect("it is in order");
    let (own, shipped) = (Arc::new(Router::new(&system).expect("it has routes")), router());
    let slowed = slowed::<Kv>(&own, &shipped) + slowed::<Replog>(&own, &shipped);
    assert!(slowed > 0, "no processor of a card was slow");
}

/// Of two processors nothing says which is meant, and the refusal says so.
#[test]
fn torture_says_why_a_part_has_no_processor() {
    let mut library = Library::builtin();
    let card = include_str!("../../profile/tests/data/invented.toml");
    library.insert(Category::Device, "invented", card);
    let request = SystemRequest { device: "invented", testbed: Some("rack"), ..SystemRequest::default() };
    let system = library.load(&request).expect("it is in order");
    let router = Router::new(&system).expect("it has routes");
    let error = check_system(Kv::ABOUT, &router).expect_err("no processor is `soc`").to_string();
    assert!(error.contains("does not say which of `arm` and `dpa` runs"), "{error}");
}
