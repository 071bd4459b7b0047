//! What a master says of itself before it is followed: its history, the one that it went on from, and whether it
//! refuses writes while no replica lives. It is the text of INFO, which a user without `+info` does not get.

use std::fmt;
use std::str::FromStr;
use thiserror::Error;

/// The name of a history of writes: 40 hexadecimal digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ReplicationId([u8; 40]);

impl ReplicationId {
    /// The name that no history has; a server without a second history shows it.
    pub const NONE: ReplicationId = ReplicationId([b'0'; 40]);
}

impl FromStr for ReplicationId {
    type Err = NoReplicationId;

    fn from_str(text: &str) -> Result<ReplicationId, NoReplicationId> {
        text.as_bytes()
            .try_into()
            .ok()
            .filter(|digits: &[u8; 40]| digits.iter().all(u8::is_ascii_hexdigit))
            .map(ReplicationId)
            .ok_or_else(|| NoReplicationId(text.chars().take(80).collect()))
    }
}

impl fmt::Display for ReplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&String::from_utf8_lossy(&self.0))
    }
}

impl fmt::Debug for ReplicationId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// What is no name of a history.
#[derive(Debug, Error)]
#[error("the replication id is `{0}`, and not 40 hexadecimal digits")]
pub struct NoReplicationId(String);

/// The answer to INFO replication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// The history's name.
    pub id: ReplicationId,
    /// Its name before the last promotion; [`ReplicationId::NONE`] without one.
    pub second_id: ReplicationId,
    /// The first offset that `second_id` does not cover; 0 without one.
    pub second_offset: u64,
    /// The oldest byte that the master can send, where it keeps any.
    pub first: Option<u64>,
    /// The next byte that it will write.
    pub next: u64,
    /// Bytes of the stream that it keeps (`repl-backlog-size`), where it says so.
    pub kept: Option<u64>,
    /// Whether `min-replicas-to-write` is set: the server counts its replicas that live in this case alone.
    pub needs_replicas: bool,
    /// The runs of relays that it is and follows, itself first; none of a server that is no relay.
    pub path: Vec<String>,
}

/// So many relays one behind the other are told apart.
const PATH: usize = 64;

impl History {
    /// Reads the text of INFO; a server that leaves out what every one has says nothing of use.
    pub fn parse(text: &str) -> Option<History> {
        let field = |name: &str| {
            text.lines().find_map(|line| Some(line.strip_prefix(name)?.strip_prefix(':')?.trim().to_string()))
        };
        let number = |name: &str| field(name)?.parse::<i64>().ok();
        let id = field("master_replid")?.parse().ok()?;
        let second_id = field("master_replid2").and_then(|id| id.parse().ok()).unwrap_or(ReplicationId::NONE);
        let second_offset = number("second_repl_offset").and_then(|offset| u64::try_from(offset).ok());
        let first = number("repl_backlog_first_byte_offset").and_then(|first| u64::try_from(first).ok());
        let is_kept = number("repl_backlog_active") != Some(0);
        Some(History {
            id,
            second_id,
            second_offset: second_offset.filter(|_| second_id != ReplicationId::NONE).unwrap_or(0),
            first: first.filter(|first| *first > 0 && is_kept),
            next: u64::try_from(number("master_repl_offset")?).ok()? + 1,
            kept: number("repl_backlog_size").and_then(|kept| u64::try_from(kept).ok()),
            needs_replicas: field("min_slaves_good_slaves").is_some(),
            path: field("relay_path")
                .map_or(Vec::new(), |path| path.split(',').take(PATH).map(run).collect()),
        })
    }

    /// Why it cannot go on from byte `from` of history `id`.
    pub fn refusal(&self, id: ReplicationId, from: u64) -> String {
        let is_own = id == self.id;
        match self.first {
            _ if !is_own && id != self.second_id => format!("its history is {}", self.id),
            _ if !is_own && from > self.second_offset => {
                format!("its history left that one at byte {}", self.second_offset)
            }
            _ if from > self.next => format!("it has written no more than {} bytes", self.next - 1),
            Some(first) if from < first => format!(
                "its backlog begins at byte {first}; `repl-backlog-size`, which is {}, has to hold what it writes while the \
                 relay is away",
                self.kept.map_or("unknown".to_string(), |kept| format!("{kept} B"))
            ),
            Some(_) => "it does not say why".to_string(),
            None => "it keeps no backlog".to_string(),
        }
    }

    /// Whether the master can go on from byte `from` of history `id`.
    pub fn resumes(&self, id: ReplicationId, from: u64) -> bool {
        let is_known = id == self.id || id == self.second_id && from <= self.second_offset;
        is_known && self.first.is_some_and(|first| (first..=self.next).contains(&from))
    }
}

/// The name of a run; it is passed on in INFO.
fn run(text: &str) -> String {
    text.chars().filter(char::is_ascii_alphanumeric).take(40).collect()
}

/// Which server a master is, by its answer to INFO server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerIdentity {
    /// The version of Redis that it is, or is compatible with.
    pub redis_version: Option<String>,
    /// Its version, where it is Valkey.
    pub valkey_version: Option<String>,
    /// A name that no other process has.
    pub run_id: Option<String>,
}

impl ServerIdentity {
    /// Reads the text of INFO.
    pub fn parse(text: &str) -> ServerIdentity {
        let field = |name: &str| {
            let value = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
            Some(value.trim())
        };
        let version = |name: &str| {
            let value = field(name)?;
            // It is passed on in INFO.
            let is_version =
                !value.is_empty() && value.len() <= 32 && value.bytes().all(|byte| byte.is_ascii_graphic());
            is_version.then(|| value.to_string())
        };
        ServerIdentity {
            redis_version: version("redis_version"),
            valkey_version: version("valkey_version"),
            run_id: field("run_id").map(str::to_string),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(more: &str) -> String {
        format!(
            "# Replication\r\nrole:master\r\nmaster_replid:{}\r\nmaster_replid2:{}\r\nmaster_repl_offset:900\r\n\
             second_repl_offset:500\r\nrepl_backlog_active:1\r\nrepl_backlog_first_byte_offset:300\r\n{more}",
            "a".repeat(40),
            "b".repeat(40)
        )
    }

    #[test]
    fn a_master_resumes_what_it_has_of_both_histories() {
        let history = History::parse(&text("")).unwrap();
        assert!(!history.needs_replicas);
        let [a, b, c] = ["a", "b", "c"].map(|digit| digit.repeat(40).parse().unwrap());
        for (id, from, resumes) in [
            (a, 300, true),
            (a, 901, true),
            (a, 299, false),
            (a, 902, false),
            (b, 500, true),
            (b, 501, false),
            (c, 500, false),
            (ReplicationId::NONE, 300, false),
        ] {
            assert_eq!(history.resumes(id, from), resumes, "{id} {from}");
        }
    }

    #[test]
    fn an_identity_is_passed_on_where_it_is_one() {
        let identity = |redis: Option<&str>, valkey: Option<&str>| ServerIdentity {
            redis_version: redis.map(str::to_string),
            valkey_version: valkey.map(str::to_string),
            run_id: None,
        };
        let text = "# Server\r\nredis_version:7.2.4\r\nvalkey_version:9.1.2\r\n";
        assert_eq!(ServerIdentity::parse(text), identity(Some("7.2.4"), Some("9.1.2")));
        assert_eq!(ServerIdentity::parse("redis_version:7.0.15\r\n"), identity(Some("7.0.15"), None));
        let long = format!("redis_version:{}\r\nvalkey_version:9 1\r\n", "7".repeat(33));
        assert_eq!(ServerIdentity::parse(&long), ServerIdentity::default());
    }

    #[test]
    fn one_without_a_second_history_or_a_backlog_resumes_less() {
        let alone = text("").replace(&"b".repeat(40), &"0".repeat(40)).replace("offset:500", "offset:-1");
        let history = History::parse(&alone).unwrap();
        assert_eq!((history.second_id, history.second_offset), (ReplicationId::NONE, 0));
        assert!(!history.resumes(ReplicationId::NONE, 0));
        let none = History::parse(&text("").replace("active:1", "active:0")).unwrap();
        assert!(!none.resumes(none.id, 300));
        assert!(History::parse(&text("min_slaves_good_slaves:0\r\n")).unwrap().needs_replicas);
        assert_eq!(History::parse("role:master\r\n"), None);
        assert_eq!(none.path, [""; 0]);
        let many = format!("relay_path:abc,d\u{7}e,{}\r\n", ["f"; 100].join(","));
        let path = History::parse(&text(&many)).unwrap().path;
        assert_eq!((&path[..3], path.len()), (&["abc", "de", "f"].map(String::from)[..], PATH));
    }
}
