//! Which alternatives the store's best mix takes, and what binds it, as its system changes.
//!
//! A row that changes is a decision that users would see change: accept it with
//! `INSTA_UPDATE=always cargo test -p offpath-plan --test golden` once its reason is understood.

mod common;

use common::*;
use offpath_plan::Changes;
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
        let line = match try_plan(&design, &setting) {
            Err(error) => format!("refused: {error}"),
            Ok(plan) => {
                let shares: Vec<String> = plan
                    .optimal
                    .shares
                    .iter()
                    .filter(|(_, share)| *share > 0.0005)
                    .map(|(name, share)| format!("{:.1}% {name}", share * 100.0))
                    .collect();
                let bounds: Vec<&str> = plan.optimal.bounds.iter().map(|b| b.name.as_str()).collect();
                format!(
                    "{:.1} M/s of {}; {} bind{}",
                    plan.optimal.rate.value / 1e6,
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
