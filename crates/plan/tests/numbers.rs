//! The figures that the shipped designs have to reach, and what moves them.

use crate::common::*;
use offpath_plan::choices::search;
use offpath_plan::{Basis, Changes, Design};
use std::sync::LazyLock;

/// Drawing the popularity of 10^8 records takes a while, so the tests share it.
static STORE: LazyLock<Design> = LazyLock::new(|| parse(&text("kv-ycsb-c.toml"), &Changes::default()));

static BATCHING: LazyLock<Design> = LazyLock::new(|| parse(&text("kv-batching.toml"), &Changes::default()));

const CHUNK_BITS: f64 = 256.0 * 1024.0 * 8.0;

fn replication(ratio: f64) -> Design {
    parse(&text("replication.toml"), &with_ratio(ratio))
}

#[test]
fn the_store_reaches_its_published_figures() {
    let plan = planned(&STORE, &[], &[]);
    let rate = |name: &str| alone(&plan, name).rate.value / 1e6;
    near("A1", rate("A1"), 50.0, 0.005);
    near("A5-read", rate("A5-read (100% hits)"), 70.0, 0.05);
    near("A5-send", rate("A5-send (100% hits)"), 17.6, 0.15);
    for name in ["A2", "A3"] {
        assert!(rate(name) < rate("A1") / 2.0, "{name} is far below A1: {}", rate(name));
    }
    // Both paths at once are published faster than one pool lets them be, and the store's A4 as fast as one pool does:
    // what is measured lies under the mechanism that the evidence leaves open.
    let pool = planned(&STORE, &["one-pool"], &[]);
    for (name, published, reserved, one_pool) in [
        ("A4", 58.3, rate("A4"), alone(&pool, "A4").rate.value / 1e6),
        ("A4+A5", 68.0, mix(&plan, "A4+A5").rate.value / 1e6, mix(&pool, "A4+A5").rate.value / 1e6),
    ] {
        near(name, one_pool, published, 0.05);
        assert!(
            reserved >= one_pool,
            "{name}: slots that are reserved take nothing away: {reserved} and {one_pool}"
        );
    }
    assert_eq!(alone(&plan, "A1").basis, Basis::Fitted);
    assert_eq!(alone(&plan, "A5-send (100% hits)").basis, Basis::Predicted);
}

/// The READ ratio of paths 2 and 1 is published as a range, so A5 by READ is no better known (W267: 70).
#[test]
fn reading_cached_values_is_known_as_an_interval() {
    let plan = planned(&STORE, &[], &[]);
    let cached = alone(&plan, "A5-read (100% hits)");
    let (low, high) = (cached.rate.range_80.0 / 1e6, cached.rate.range_80.1 / 1e6);
    assert!(low < 70.0 && 70.0 < high, "{low} to {high}");
    assert!(high / low > 1.1, "one number alone leaves it 62 to 74: {low} to {high}");
    assert_eq!(cached.basis, Basis::Weak);
}

/// wei2023 §5.2 measured A5 by SEND as the lowest of all on the card (W265): here it is so or within a fiftieth, and has its
/// published latency.
#[test]
fn asking_the_soc_is_among_the_lowest_latencies() {
    let plan = planned(&STORE, &[], &[]);
    let names = ["A1", "A2", "A3", "A4", "A5-read (100% hits)", "A5-send (100% hits)"];
    let lowest = names
        .into_iter()
        .min_by(|a, b| alone(&plan, a).latency_s.value.total_cmp(&alone(&plan, b).latency_s.value))
        .expect("there are some");
    let asked = alone(&plan, "A5-send (100% hits)").latency_s.value;
    near("over the lowest", asked, alone(&plan, lowest).latency_s.value, 0.02);
    near("its latency in us", asked * 1e6, 4.6, 0.05);
}

/// The plain NIC's 54.4 M gets/s follow from wei2023 §5.2 (W273, W274). What is planned is bound by its inbound-read limit,
/// which the microbenchmark fixes, so a get of two READs gets half of what one READ gets.
#[test]
fn the_plain_nic_is_reported_beside_the_card() {
    let plan = planned(&STORE, &[], &[]);
    let plain = alone(&plan, "rnic");
    assert_eq!(plain.device.as_deref(), Some("connectx6"));
    assert_eq!(plain.binding, "host.inbound_reads");
    near("gets of two READs", plain.rate.value / 1e6, 135.0 / 2.0, 0.01);
    assert!(!plan.optimal.shares.iter().any(|(name, share)| name == "rnic" && *share > 0.0));
}

#[test]
fn replication_reaches_its_published_figures() {
    let plan = planned(&replication(1.0), &[], &[]);
    let rate = |name: &str| alone(&plan, name).rate.value * CHUNK_BITS / 1e9;
    near("A1", rate("A1"), 117.0, 0.05);
    near("A2", rate("A2"), 133.0, 0.01);
    near("A3", rate("A3"), 191.0, 0.02);
}

#[test]
fn the_best_mix_is_never_below_greedy() {
    let mut compared = 0;
    for entry in std::fs::read_dir(designs()).expect("the designs are shipped") {
        let file = entry.expect("the entry can be read").file_name();
        let name = file.to_str().expect("a UTF-8 name");
        let given = match name {
            "kv-ycsb-c.toml" => STORE.clone(),
            "kv-batching.toml" => BATCHING.clone(),
            _ => parse(&text(name), &Changes::default()),
        };
        // What a design leaves open is searched first.
        let found = search(&given, &Changes::default(), &setting(&[], &[]), &|design| design);
        let chosen = found.expect("some deployment runs").map(|found| found.changes);
        let given = chosen.as_ref().map_or(given, |chosen| parse(&text(name), chosen));
        let mut all = vec![given.clone()];
        if let Some((parameter, values)) = &given.sweep {
            let (first, last) = (values[0], values[values.len() - 1]);
            all.extend((0..=10).map(|step| {
                let value = first + (last - first) * f64::from(step) / 10.0;
                // What has a unit is a whole number of the smallest.
                let value = if given.parameter_unit(parameter).is_some() { value.round() } else { value };
                let mut changes = chosen.clone().unwrap_or_default();
                changes.parameters.insert(parameter.clone(), given.parameter_text(parameter, value));
                parse(&text(name), &changes)
            }));
        }
        for design in all {
            let seen = try_solved(&design, &setting(&[], &[])).expect("the design has a plan");
            let (best, greedy) = (seen.optimal.total, seen.greedy.total);
            // Of mixes that carry as much the quickest is solved for at a millionth less (`solve.rs`).
            let least = 1.0 - 1.001e-6;
            assert!(best >= greedy * least, "{name} {:?}: {best} < {greedy}", design.parameters);
            for (one, alone) in design.alternatives.iter().zip(&seen.alone).filter(|(one, _)| one.mixed) {
                assert!(best >= alone.total * least, "{name}: {} alone is better", one.name);
            }
            compared += 1;
        }
    }
    assert!(compared >= 14, "only {compared} plans were compared");
}

#[test]
fn two_binding_constraints_make_the_best_mix_better_than_greedy() {
    let plan = planned(&BATCHING, &[], &[]);
    assert!(plan.optimal.rate.value > plan.greedy.rate.value * 1.01);
    assert!(plan.optimal.bounds.len() >= 2, "{:?}", plan.optimal.bounds);
    assert!(plan.optimal.shares.iter().filter(|(_, share)| *share > 0.01).count() >= 2);
}

/// wei2023 §5.1: with P = 256 Gbit/s twice over PCIe1, A1 carries P / (1 + r) and meets the network's
/// N = 200 at r = 0.28. Headers move the point, so it is exact on `ideal-links` alone.
#[test]
fn break_even_lies_at_a_ratio_of_0_28() {
    let rate = |ratio: f64, overlays: &[&str]| {
        rate_alone(&replication(ratio), overlays, &[], "A1") * CHUNK_BITS / 1e9
    };
    let break_even = |overlays: &[&str]| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..12 {
            let middle = (low + high) / 2.0;
            if rate(middle, overlays) > 200.0 { low = middle } else { high = middle }
        }
        low
    };
    let ideal = break_even(&["ideal-links"]);
    assert!((ideal - 0.28).abs() < 1e-3, "{ideal}");
    near("P / (1 + r)", rate(0.5, &["ideal-links"]), 256.0 / 1.5, 1e-3);
    let real = break_even(&[]);
    println!("break-even on ideal links at {ideal:.4}, on the card at {real:.4}");
    assert!(real < ideal);
}

#[test]
fn what_ifs_move_the_plan_in_the_right_direction() {
    let rate = |name: &str, overlays: &[&str], settings: &[&str]| {
        rate_alone(&replication(1.0), overlays, settings, name)
    };
    // Larger TLPs at the SoC mean fewer headers on PCIe1, which binds A1.
    assert!(rate("A1", &[], &["soc.pcie_mtu=512B"]) > rate("A1", &[], &[]) * 1.01);
    assert!(rate("A1", &[], &["soc.pcie_mtu=256B"]) < rate("A1", &[], &["soc.pcie_mtu=512B"]));
    for name in ["A1", "A3"] {
        assert!(rate(name, &["ideal-links"], &[]) > rate(name, &[], &[]), "{name}");
    }
    // The host writes without the SoC, whatever its TLPs.
    assert_eq!(rate("A3", &[], &["soc.pcie_mtu=512B"]), rate("A3", &[], &[]));
}
