//! Services for Redis and Valkey that run beside unmodified servers, on a card's cores or anywhere.
//!
//! - [`relay`]: a replication relay. To the master it is one replica, to any number of replicas it is
//!   the master. It keeps no data, only the latest bytes of the stream.
//!
//! - [`shard`]: shares of a cluster by capacity, live migration of slots, and clients.
//!
//! Where to look: [`process`] starts and ends a relay. [`upstream`] is the side of the master, [`downstream`] and
//! [`serving`] that of replicas; both meet in [`relay::Relay`], but for the file that a client wants of this moment, which
//! [`serving`] has fetched by [`upstream`]. What they exchange is read by [`resp`], [`framing`] and
//! [`payload`], which do no input or output and keep within bounds whatever a peer sends.
//!
//! Not supported: serving reads, replication filters but for functions alone, and the second channel for files that
//! Valkey 8 and Redis 8 may use when both sides ask for it.

pub mod acknowledge;
pub mod backlog;
pub mod client;
pub mod config;
pub mod connection;
pub mod counters;
pub mod descriptors;
pub mod downstream;
pub mod framing;
pub mod handshake;
pub mod history;
pub mod info;
pub mod log;
pub mod metrics;
pub mod names;
pub mod payload;
pub mod process;
pub mod questions;
pub mod relay;
pub mod replica;
pub mod resp;
pub mod serving;
pub mod shard;
pub mod spool;
pub mod state;
pub mod tls;
pub mod upstream;

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// The files that a file of the crate's root names: of `crate::{a::{b, c}, d}` these are `a` and `d`.
    fn used(code: &str) -> Vec<String> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let name = |text: &str| text.chars().take_while(|c| is_name(*c)).collect::<String>();
        let mut used = Vec::new();
        for rest in ["crate::", "super::"].iter().flat_map(|root| code.split(root).skip(1)) {
            let Some(group) = rest.strip_prefix('{') else {
                used.push(name(rest));
                continue;
            };
            let (mut depth, mut begins) = (0, true);
            for (at, c) in group.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' => begins |= depth == 0,
                    _ if begins && is_name(c) => {
                        used.push(name(&group[at..]));
                        begins = false;
                    }
                    _ => {}
                }
            }
        }
        used
    }

    #[test]
    fn names_are_found_in_groups_and_alone() {
        let code = "use crate::{info, relay::{Relay, RelayError}};\nuse super::tls::Stream;\nlet a = crate::log::line;";
        assert_eq!(used(code), ["info", "relay", "log", "tls"]);
    }

    /// Files are drawn from the top to the bottom, and use nothing above them.
    #[test]
    fn files_use_what_the_map_draws_below_them() {
        let map = include_str!("../../../ARCHITECTURE.md");
        let (_, map) = map.split_once("`services/redis/src/lib.rs` has the test.\n\n```\n").unwrap();
        let (map, _) = map.split_once("\n```").unwrap();
        let files = |line: &'static str| line.split_whitespace().filter_map(|word| word.strip_suffix(".rs"));
        let lines: Vec<Vec<&str>> = map.lines().map(|line| files(line).collect()).collect();
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
        for (at, file) in
            lines.iter().enumerate().flat_map(|(at, files)| files.iter().map(move |file| (at, file)))
        {
            let text = std::fs::read_to_string(folder.join(format!("{file}.rs"))).unwrap();
            let code = text.split("#[cfg(test)]").next().unwrap();
            let used = used(code);
            for above in lines[..at].iter().flatten() {
                assert!(
                    !used.iter().any(|used| used == above),
                    "{file}.rs uses {above}.rs, which stands above it"
                );
            }
        }
        let mut drawn: Vec<&str> = lines.concat();
        let mut here: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| {
                entry.unwrap().file_name().into_string().unwrap().strip_suffix(".rs").map(str::to_string)
            })
            .filter(|file| file != "lib")
            .collect();
        drawn.sort_unstable();
        here.sort_unstable();
        assert_eq!(here, drawn, "every file is on the map");
    }
}
