//! What only the loaded twin answers: tails, and latency over offered load.

use crate::common::*;
use offpath_plan::advice::{Depth, TrialBench, advise};
use offpath_plan::check::{Chosen, curve, plan_and_check, settle};
use offpath_plan::observe::{Loaded, RequestArrivals, load};
use offpath_plan::{Changes, Design, plan, prepare};
use offpath_quantity::Time;
use offpath_twin::Seed;

#[test]
fn a_curve_goes_from_a_tenth_of_the_best_mix_to_nearly_all() {
    let design = parse(&small("kv-ycsb-c.toml"), &Changes::default());
    let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
    let plan = plan(&design, &ready, &folds(&ready), &[], Seed::new(1)).expect("there is a plan");
    let points = curve(&design, &ready, &plan, Seed::new(3)).expect("the twin runs it");
    let offered: Vec<f64> =
        points.iter().map(|point| point.offered_per_s / plan.optimal.rate.value).collect();
    assert!(offered.is_sorted() && offered.len() >= 8, "{offered:?}");
    near("the least load", offered[0], 0.1, 1e-9);
    near("the most load", offered[offered.len() - 1], 0.95, 1e-9);
    for point in &points {
        // Arrivals in a window of some 24,000 vary by 0.65%.
        near("what is carried", point.loaded.throughput.mean, point.offered_per_s, 0.03);
    }
    let mean = |index: usize| points[index].loaded.latencies.mean().expect("requests ended").as_seconds();
    near("hardly anybody waits at a tenth", mean(0), plan.optimal.latency_s, 0.05);
    // The packet cores that bind serve within nanoseconds, so even at 95% they hold up by little.
    assert!(mean(points.len() - 1) > 1.01 * mean(0), "{} and {}", mean(0), mean(points.len() - 1));
}

#[test]
fn no_alternative_alone_has_a_lower_tail_than_the_mix_that_was_asked_to_have_the_lowest() {
    let offered = 20e6;
    let changes = Changes {
        objective: Some("lowest-p99".into()),
        offered_load: Some("20 M/s".into()),
        ..Changes::default()
    };
    let design = parse(&small("kv-ycsb-c.toml"), &changes);
    let ready = prepare(&design, &setting(&[], &[])).expect("the design is in order");
    let settled = settle(&design, &ready, Chosen::Best, Seed::new(17)).expect("the twin runs it");
    let checked = plan_and_check(&design, &ready, settled, &[], Seed::new(17)).expect("there is a plan");
    let (shares, loaded) = (checked.settled.shares, checked.settled.loaded);
    let found = loaded.latencies.quantile(0.99).expect("requests ended");
    let mut alone = Vec::new();
    for one in &ready {
        let name = &one.alternative.name;
        let planned = checked.plan.alternatives.iter().find(|planned| planned.name == *name);
        if planned.is_some_and(|planned| planned.mixed && planned.rate.value > 1.05 * offered) {
            let (warm_up, window) = (Time::from_us(100), Time::from_us(1200));
            let seen =
                load(&[one], &[1.0], RequestArrivals::Poisson(offered), warm_up, window, Seed::new(17));
            let tail = seen.expect("the twin runs it").latencies.quantile(0.99).expect("requests ended");
            alone.push((name.clone(), tail));
        }
    }
    assert!(alone.len() >= 3, "{alone:?}");
    for (name, tail) in &alone {
        // Windows of their own differ by chance.
        assert!(found.as_seconds() <= 1.03 * tail.as_seconds(), "{shares:?}: {found}, {name} alone: {tail}");
    }
    let worst = alone.iter().map(|(_, tail)| *tail).max().expect("some can carry it");
    assert!(worst.as_seconds() > 1.05 * found.as_seconds(), "nothing was to choose: {alone:?}, {found}");
}

/// Users come to every client machine alike: were they sent to one after the other, its port, half as fast
/// as the server's, would hold them up long before the server's is full.
#[test]
fn requests_at_random_wait_as_in_m_d_1_at_the_port_that_is_full_first() {
    let text = r#"
        [design]
        name = "read"
        description = "READs of 4 KiB"
        device = "bluefield2"
        testbed = "rack"
        mode = "separated-host"
        objective = "most-throughput"
        rank_by = "unloaded-latency"
        [[alternative]]
        name = "READ"
        request = [{ read = "client-host", bytes = "4 KiB" }]
    "#;
    let ready = prepare(&parse(text, &Changes::default()), &setting(&[], &[])).expect("it is in order");
    let fold = &folds(&ready)[0];
    let port = fold.seconds["nic.transmit"];
    let clients = ready[0].router.system().machine("client").expect("there are clients").count as f64;
    let client_port = fold.seconds["client.nic.receive"];
    assert!(client_port > 1.9 * port && clients > 10.0, "{client_port} {port} {clients}");
    // Pollaczek and Khinchine, for a service of constant time.
    let wait = |service: f64, busy: f64| busy * service / (2.0 * (1.0 - busy));
    let mut before = Time::ZERO;
    for part in [0.5, 0.8, 0.9] {
        let arrivals = RequestArrivals::Poisson(part / port);
        let (warm_up, window) = (Time::from_us(200), Time::from_ms(8));
        let ready: Vec<_> = ready.iter().collect();
        let seen = load(&ready, &[1.0], arrivals, warm_up, window, Seed::new(5)).expect("the twin runs it");
        let mean = seen.latencies.mean().expect("requests ended").as_seconds() - fold.latency;
        // Stations of constant time in a row hold up as their slowest does; what comes through it is more
        // even than what comes at random, so at a client's port they wait at most as long as that.
        let least = wait(port, part);
        let most = least + wait(client_port, part * client_port / port / clients);
        assert!((0.9 * least..=1.1 * most).contains(&mean), "at {part}: {mean}, not {least} to {most}");
        let median = seen.latencies.quantile(0.5).expect("requests ended");
        assert!(median >= before, "p50 {median} at {part} of the load, {before} below it");
        before = median;
    }
}

/// The mix of least mean latency fills a station; one that leaves it room has the lower tail, and is what `check`
/// looks at.
#[test]
fn the_lowest_tail_is_not_that_of_a_full_station() {
    let changes = Changes {
        objective: Some("lowest-p99".into()),
        offered_load: Some("60 M/s".into()),
        ..Changes::default()
    };
    let design = parse(&small("kv-batching.toml"), &changes);
    // In one pool the card's cores and A4 make up the load together.
    let ready = prepare(&design, &setting(&["one-pool"], &[])).expect("the design is in order");
    let settled = settle(&design, &ready, Chosen::Best, Seed::new(17)).expect("the twin runs it");
    let checked = plan_and_check(&design, &ready, settled, &[], Seed::new(17)).expect("there is a plan");
    let busy = |loaded: &Loaded| loaded.fullest.values().map(|(_, busy)| *busy).fold(0.0, f64::max);
    let p99 = |loaded: &Loaded| loaded.latencies.quantile(0.99).expect("requests ended");
    // By adding up the least mean latency alone is known.
    let folds: Vec<_> = checked.plan.alternatives.iter().map(|one| one.demand.clone()).collect();
    let quickest = plan(&design, &ready, &folds, &[], Seed::new(17)).expect("there is a plan").optimal;
    let quickest = settle(&design, &ready, Chosen::Held(&quickest.shares), Seed::new(17)).expect("it runs");
    assert!(busy(&quickest.loaded) > 0.99, "least latency fills a station");
    let (shares, found) = (&checked.settled.shares, &checked.settled.loaded);
    assert!(busy(found) < 0.97, "{shares:?}: {}", busy(found));
    assert!(p99(found).as_seconds() < 0.97 * p99(&quickest.loaded).as_seconds(), "{shares:?}");
    // What is said of the plan is said of that mix.
    assert_eq!((&checked.plan.optimal.shares, checked.plan.optimal.rate.value), (shares, 60e6));
    let curve = curve(&design, &ready, &checked.plan, Seed::new(17)).expect("the twin runs it");
    let at = curve.iter().find(|point| point.offered_per_s == 60e6).expect("the load is on the curve");
    near("p99 on the curve", p99(&at.loaded).as_seconds(), p99(found).as_seconds(), 0.02);
}

#[test]
fn what_is_advised_is_advised_of_the_lowest_tail_that_is_planned() {
    let changes = Changes {
        objective: Some("lowest-p99".into()),
        offered_load: Some("70 M/s".into()),
        // What `check` edits.
        steps: true,
        ..Changes::default()
    };
    let file = designs().join("kv-ycsb-c.toml");
    let setting = setting(&[], &[]);
    let design = Design::load(&file, &changes).expect("it is read");
    let study = study_of(&design, &changes, &setting).expect("it is planned");
    let planned = &study.checked.plan.optimal.shares;
    assert_eq!(study.advised.shares, *planned);

    let text = std::fs::read_to_string(&file).expect("the design is there");
    let directory = designs();
    let bench = TrialBench::new("kv-ycsb-c.toml", &directory, &changes, &setting, Seed::new(1));
    let advised = advise(&bench, &text, Depth::Promising).expect("it is checked");
    assert_eq!(advised.shares, *planned, "`check` looks at the mix that `plan` answers with");
}

/// A setting that changes nothing leaves the mix of the lowest tail as it is, and one that changes something is compared
/// with the mix that would be answered without it.
#[test]
fn what_a_setting_changed_is_told_of_the_lowest_tail() {
    let changes = Changes {
        objective: Some("lowest-p99".into()),
        offered_load: Some("60 M/s".into()),
        ..Changes::default()
    };
    let file = designs().join("kv-batching.toml");
    let study = |settings: &[&str]| {
        let setting = setting(&[], settings);
        let design = Design::load(&file, &changes).expect("it is read");
        study_of(&design, &changes, &setting).expect("it is planned")
    };
    let plain = study(&[]).checked.plan.optimal.shares;
    let same = study(&["soc.cores=8"]);
    assert_eq!(same.checked.plan.optimal.shares, plain);
    let before = same.changed.expect("there is a setting").before.expect("it is planned without it");
    assert_eq!(before.shares, plain);
}
