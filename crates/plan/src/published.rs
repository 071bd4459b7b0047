//! Which published rows measured a design, so that no other row is taken for evidence of it.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::OnceLock;

#[derive(Deserialize)]
struct File {
    #[serde(default)]
    row: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    id: String,
    experiment: Option<Experiment>,
}

#[derive(Deserialize)]
struct Experiment {
    design: Option<String>,
}

/// The design that each published row measured; none where it measured something else.
fn designs() -> &'static BTreeMap<String, Option<String>> {
    static DESIGNS: OnceLock<BTreeMap<String, Option<String>>> = OnceLock::new();
    DESIGNS.get_or_init(|| {
        let files = [include_str!("../../../evidence/wei.toml"), include_str!("../../../evidence/sun.toml")];
        let rows = files.into_iter().flat_map(|text| {
            toml::from_str::<File>(text).expect("the shipped rows are in order; a test reads them").row
        });
        rows.map(|row| (row.id, row.experiment.and_then(|experiment| experiment.design))).collect()
    })
}

/// Whether a published row of this name measured the design of this name.
pub fn measured(row: &str, design: &str) -> bool {
    designs().get(row).is_some_and(|of| of.as_deref() == Some(design))
}

/// Whether a row of this name is published.
pub fn is_row(row: &str) -> bool {
    designs().contains_key(row)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_about_the_design_that_it_measured() {
        assert!(measured("W273", "kv-ycsb-c") && measured("S134", "redis-replication"));
        assert!(is_row("W149") && !measured("W149", "kv-ycsb-c"));
        assert!(!is_row("W999"));
    }
}
