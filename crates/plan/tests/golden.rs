//! Which alternatives the store's best mix takes, and what binds it, as its system changes.
//!
//! A row that changes is a decision that users would see change: accept it with
//! `INSTA_UPDATE=always cargo test --release -p offpath-plan --test all golden::` once its reason is understood.

use crate::common::*;
use offpath_capacity::Binding;
use offpath_plan::Changes;
use offpath_plan::solve::shares;
use std::fmt::Write;

#[test]
fn decisions_for_the_store() {
    let design = parse(&text("kv-ycsb-c.toml"), &Changes::default());
    let cases: [(&str, &[&str], &[&str]); 14] = [
        ("as it is", &[], &[]),
        ("soc.cores=16", &[], &["soc.cores=16"]),
        ("soc.cores=64", &[], &["soc.cores=64"]),
        ("nic.inflight_slots=280", &[], &["nic.inflight_slots=280"]),
        ("soc.pcie_mtu=512B", &[], &["soc.pcie_mtu=512B"]),
        ("host.inbound_read_rate=10M/s", &[], &["host.inbound_read_rate=10M/s"]),
        ("host.inbound_read_rate=1G/s", &[], &["host.inbound_read_rate=1G/s"]),
        ("nic.port_rate=25Gbit/s", &[], &["nic.port_rate=25Gbit/s"]),
        ("no-inbound-read-limit", &["no-inbound-read-limit"], &[]),
        ("one-pool", &["one-pool"], &[]),
        ("ideal-links", &["ideal-links"], &[]),
        ("rack-cli", &[], &[]),
        ("embedded-cpu", &[], &[]),
        ("nic", &[], &[]),
    ];
    let mut table = String::new();
    for (name, overlays, settings) in cases {
        let mut setting = setting(overlays, settings);
        match name {
            "rack-cli" => setting.testbed = Some(name.to_string()),
            "embedded-cpu" | "nic" => setting.mode = Some(name.to_string()),
            _ => {}
        }
        let line = match try_solved(&design, &setting) {
            Err(error) => format!("refused: {error}"),
            Ok(seen) => {
                let shares: Vec<String> = shares(&seen.optimal)
                    .iter()
                    .filter(|(_, share)| *share > 0.0005)
                    .map(|(name, share)| format!("{:.1}% {name}", share * 100.0))
                    .collect();
                // As a plan prints them: what brings most first.
                let mut bounds = seen.optimal.binding.clone();
                let gain = |one: &Binding| one.gain_percent_for_10_percent_more.unwrap_or(f64::NEG_INFINITY);
                bounds.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
                let bounds: Vec<String> = bounds.iter().map(|one| one.constraint.to_string()).collect();
                format!(
                    "{:.1} M/s of {}; {} bind{}",
                    seen.optimal.total / 1e6,
                    shares.join(" + "),
                    bounds.join(" and "),
                    if bounds.len() == 1 { "s" } else { "" },
                )
            }
        };
        writeln!(table, "{name}: {line}").expect("text can be written");
    }
    insta::assert_snapshot!(table);
}
