//! What the program carries of this repository beside profiles: designs, workload files, published rows. Whoever asks
//! for one of them by name asks here; a test compares the lists with the folders.

use crate::design::{Changes, Design};
use std::collections::BTreeMap;
use std::path::Path;

/// The designs of `designs/`, by name.
pub const DESIGNS: [(&str, &str); 14] = [
    ("aggregate-bf3", include_str!("../../../designs/aggregate-bf3.toml")),
    ("compaction-offload", include_str!("../../../designs/compaction-offload.toml")),
    ("echo-headroom", include_str!("../../../designs/echo-headroom.toml")),
    ("kv-batching", include_str!("../../../designs/kv-batching.toml")),
    ("kv-ycsb-c", include_str!("../../../designs/kv-ycsb-c.toml")),
    ("mongo-sharding", include_str!("../../../designs/mongo-sharding.toml")),
    ("nic-cache", include_str!("../../../designs/nic-cache.toml")),
    ("nvme-of-target", include_str!("../../../designs/nvme-of-target.toml")),
    ("pubsub-fanout", include_str!("../../../designs/pubsub-fanout.toml")),
    ("redis-replication", include_str!("../../../designs/redis-replication.toml")),
    ("redis-sharding", include_str!("../../../designs/redis-sharding.toml")),
    ("regex-logs", include_str!("../../../designs/regex-logs.toml")),
    ("replication", include_str!("../../../designs/replication.toml")),
    ("three-mistakes", include_str!("../../../designs/three-mistakes.toml")),
];

/// The YCSB files of `workloads/`, by name.
pub const WORKLOADS: [(&str, &str); 6] = [
    ("workloada", include_str!("../../../workloads/workloada")),
    ("workloadb", include_str!("../../../workloads/workloadb")),
    ("workloadc", include_str!("../../../workloads/workloadc")),
    ("workloadd", include_str!("../../../workloads/workloadd")),
    ("workloade", include_str!("../../../workloads/workloade")),
    ("workloadf", include_str!("../../../workloads/workloadf")),
];

/// The files of published rows, as they are called in the repository.
pub const ROWS: [(&str, &str); 4] = [
    ("evidence/wei.toml", include_str!("../../../evidence/wei.toml")),
    ("evidence/sun.toml", include_str!("../../../evidence/sun.toml")),
    ("evidence/dpa.toml", include_str!("../../../evidence/dpa.toml")),
    ("evidence/ipipe.toml", include_str!("../../../evidence/ipipe.toml")),
];

fn named(all: &[(&str, &'static str)], name: &str) -> Option<&'static str> {
    all.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}

/// The text of a design.
pub fn design(name: &str) -> Option<&'static str> {
    named(&DESIGNS, name)
}

/// The YCSB files, as the designs call them.
pub fn workload_files() -> BTreeMap<String, String> {
    WORKLOADS.map(|(name, text)| (format!("../workloads/{name}"), text.to_string())).into()
}

/// A design, by its step lists or as its code does it; `None` where there is none of that name.
pub(crate) fn parsed(name: &str, steps: bool) -> Option<Design> {
    let changes = Changes { steps, files: workload_files(), ..Changes::default() };
    let parsed = Design::parse(design(name)?, &format!("designs/{name}.toml"), Path::new("."), &changes);
    Some(parsed.expect("a shipped design is in order; a test reads each"))
}

/// The text of a YCSB file.
pub fn workload(name: &str) -> Option<&'static str> {
    named(&WORKLOADS, name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_design_is_in_order_by_its_steps_and_by_its_code() {
        for (name, _) in DESIGNS {
            for steps in [true, false] {
                assert_eq!(parsed(name, steps).expect("it is shipped").name, name);
            }
        }
        assert!(parsed("none", true).is_none());
    }
    use std::path::Path;

    /// What lies in a folder and is not in the list would be found by path and not by name.
    #[test]
    fn the_lists_are_the_folders() {
        for (folder, end, listed) in [("designs", ".toml", &DESIGNS[..]), ("workloads", "", &WORKLOADS[..])] {
            let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(folder);
            let entries = std::fs::read_dir(folder).expect("the folder is there");
            let mut names: Vec<String> = entries
                .map(|entry| {
                    entry.expect("it is read").file_name().to_string_lossy().trim_end_matches(end).to_string()
                })
                .collect();
            names.sort();
            assert_eq!(names, listed.iter().map(|(name, _)| name.to_string()).collect::<Vec<_>>());
        }
    }
}
