//! How many files and connections the process may have open, and what happens where these are too few.

use crate::config::LimitsTable;
use crate::log;
use nix::errno::Errno;
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use std::io;

/// What the relay itself has open at most: standard streams, runtime, listeners, 16 readers of its metrics, links to the
/// master, files.
const OWN: u64 = 48;
/// For each user: its connection, and the file that it gets where it makes a backup.
const USER: u64 = 2;
/// For each place of a connection of a user, and as many of strangers.
const CONNECTION: u64 = USER + 1;
/// For each replica: its connection, that a second time for writing past what is read, and a file of its own.
const REPLICA: u64 = 3;

/// How many the configuration may need at a time.
fn needed(limits: &LimitsTable) -> u64 {
    OWN + CONNECTION * limits.connections as u64 + REPLICA * limits.replicas as u64
}

/// Raises what the process may have open to what the configuration may need, as far as the system lets it, and says where
/// that is not enough. Gives what it may have open then.
pub fn provide(limits: &LimitsTable) -> u64 {
    let needed = needed(limits);
    // Without a figure of the system's there is no bound that could be told from it.
    let Ok((soft, hard)) = getrlimit(Resource::RLIMIT_NOFILE) else { return u64::MAX };
    let raised = needed.clamp(soft, hard.max(soft));
    let most = match setrlimit(Resource::RLIMIT_NOFILE, raised, hard) {
        Ok(()) => raised,
        Err(_) => soft,
    };
    if let Some(text) = shortage(limits, most) {
        log::line(&text);
    }
    most
}

/// What is said where `most` are fewer than the configuration may need.
fn shortage(limits: &LimitsTable, most: u64) -> Option<String> {
    let needed = needed(limits);
    (most < needed).then(|| {
        format!(
            "this process may have {most} files and connections open, and the configuration allows {needed}: {OWN} of the \
             relay, {CONNECTION} x {} of `limits.connections` and {REPLICA} x {} of `limits.replicas`. Raise its limit \
             (LimitNOFILE of the unit, or `ulimit -n`) or lower these; where they run out, connections that have shown no \
             password make room, and others are refused",
            limits.connections, limits.replicas
        )
    })
}

/// How many may be open at most with so many users that are not replicas, strangers, and replicas.
pub fn taken(users: usize, strangers: usize, replicas: usize) -> u64 {
    OWN + USER * users as u64 + strangers as u64 + REPLICA * replicas as u64
}

/// Whether there was no descriptor left for what failed.
pub fn ran_out(error: &io::Error) -> bool {
    [Errno::EMFILE, Errno::ENFILE].iter().any(|errno| error.raw_os_error() == Some(*errno as i32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_said_with_its_figures() {
        let limits = LimitsTable { connections: 100, replicas: 10, ..LimitsTable::default() };
        assert_eq!(needed(&limits), 378);
        assert_eq!(shortage(&limits, 378), None);
        let text = shortage(&limits, 377).unwrap();
        let figures = ["have 377 ", "allows 378: 48 ", "3 x 100 of", "3 x 10 of", "LimitNOFILE"];
        assert!(figures.iter().all(|figure| text.contains(figure)), "{text}");
    }

    #[test]
    fn all_that_is_allowed_takes_what_is_needed() {
        let limits = LimitsTable::default();
        assert_eq!(taken(limits.connections, limits.connections, limits.replicas), needed(&limits));
        assert!(ran_out(&Errno::EMFILE.into()) && !ran_out(&Errno::ECONNABORTED.into()));
    }
}
