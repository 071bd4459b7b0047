//! The applications under seeded faults on the twin. The command plays many more seeds.

use offpath::apps::torture::SystemFault;
use offpath::profile::{Category, Library, SystemRequest};
use offpath::route::Router;
use offpath::torture::{Subject, Trial, check_system};
use std::sync::Arc;

fn router() -> Arc<Router> {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Arc::new(Router::new(&system).expect("a shipped profile has routes"))
}

fn trial(subject: Subject, seed: u64, bug: Option<&str>) -> Trial {
    Trial::of(subject, seed, bug).expect("the bug is known")
}

/// Seeds that a test plays.
const SEEDS: u64 = 200;

/// Seeds that reach corners which the first ones miss: chunks of a past incarnation that arrive while a
/// backup is cut, a primary that is lost after its entries went to the card's files, and chunks of a past
/// incarnation that the card must not digest, since the chain does not have them.
const CORNERS: [(Subject, u64); 3] =
    [(Subject::Replog, 6978), (Subject::Replog, 8669), (Subject::Replog, 18102)];

#[test]
fn what_few_seeds_reach_holds_too() {
    let router = router();
    for (subject, seed) in CORNERS {
        let trial = trial(subject, seed, None);
        trial.play(&router, &trial.schedule).unwrap_or_else(|broken| panic!("seed {seed}: {broken}"));
    }
}

fn holds(subject: Subject, least: u64) {
    let router = router();
    check_system(subject, &router).expect("the shipped system has what it needs");
    let (mut operations, mut unacknowledged) = (0, 0);
    for seed in 0..SEEDS {
        let trial = trial(subject, seed, None);
        let tally = trial.play(&router, &trial.schedule).unwrap_or_else(|broken| {
            panic!("seed {seed} ({}): {broken}\n{}", trial.alternative(), trial.shrink(&router))
        });
        operations += tally.operations;
        unacknowledged += tally.unacknowledged;
    }
    // Faults that nobody notices would show nothing.
    assert!(unacknowledged > 0 && operations - unacknowledged > least * SEEDS);
}

#[test]
fn every_history_of_the_store_is_linearizable() {
    holds(Subject::Kv, 100);
}

#[test]
fn nothing_that_the_log_acknowledged_is_lost_and_replicas_are_equal() {
    holds(Subject::Replog, 30);
}

#[test]
fn a_seed_gives_the_same_twice() {
    let router = router();
    for subject in [Subject::Kv, Subject::Replog] {
        for seed in [3, 5, 11, 17] {
            let trial = trial(subject, seed, None);
            let play = || trial.play(&router, &trial.schedule).expect("its promise holds");
            assert_eq!(play(), play(), "{} {seed}", subject.name());
        }
    }
}

fn finds_every_bug(subject: Subject) {
    let router = router();
    let mut missed = Vec::new();
    for bug in subject.bugs() {
        let found = (0..1000).find_map(|seed| {
            let trial = trial(subject, seed, Some(&bug));
            let broken = trial.play(&router, &trial.schedule).err()?;
            Some((trial, broken))
        });
        let Some((trial, broken)) = found else {
            missed.push(bug);
            continue;
        };
        let small = trial.shrink(&router);
        println!("{bug}: seed {}, {}: {broken}\n{small}", trial.seed, trial.alternative());
        assert!(small.faults.len() <= trial.schedule.faults.len());
        assert!(trial.play(&router, &small).is_err(), "{bug}: what was shrunk no longer fails");
    }
    assert!(missed.is_empty(), "not found within 1,000 seeds: {missed:?}");
}

#[test]
fn every_bug_injected_in_the_store_is_found() {
    finds_every_bug(Subject::Kv);
}

#[test]
fn every_bug_injected_in_the_log_is_found() {
    finds_every_bug(Subject::Replog);
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
    let mut slowed = 0;
    for subject in [Subject::Kv, Subject::Replog] {
        check_system(subject, &own).expect("it has what the subject needs");
        for seed in 0..20 {
            let trial = trial(subject, seed, None);
            let play = |router| trial.play(router, &trial.schedule).expect("its promise holds");
            assert_eq!(play(&own), play(&shipped), "seed {seed}");
            let is_slow = |fault: &SystemFault| matches!(fault, SystemFault::Slow { station, .. } if station == "soc.cpu");
            slowed += usize::from(trial.schedule.faults.iter().any(is_slow));
        }
    }
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
    let error = check_system(Subject::Kv, &router).expect_err("no processor is `soc`").to_string();
    assert!(error.contains("does not say which of `arm` and `dpa` runs"), "{error}");
}
