//! The relay's configuration: a TOML file, every key of which has a default but the two addresses.

use offpath_quantity::{Bytes, Time};
use serde::Deserialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use thiserror::Error;

/// A configuration that cannot be read or makes no sense.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file that cannot be read.
    #[error("{path}: {cause}; check that the file exists and that this user may read it")]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system says.
        cause: std::io::Error,
    },
    /// A text that is not TOML, or has an unknown key or a wrong type.
    #[error("{_0}{}", misplaced(_0))]
    Syntax(Box<toml::de::Error>),
    /// The same of a file.
    #[error("{path}: {cause}{}", misplaced(.cause))]
    SyntaxOf {
        /// Which file.
        path: PathBuf,
        /// Where in it, and what is wrong.
        cause: Box<toml::de::Error>,
    },
    /// A key without which nothing can be done.
    #[error("`{key}` is not set; write HOST:PORT in the file, or beside it for `offpath relay`")]
    Missing {
        /// The key with its table.
        key: String,
    },
    /// What guards the running relay is gone from a configuration that is to replace its own.
    #[error(
        "`{key}` is gone, and the running relay would have no {what} any more; put it back, or restart the relay if \
         that is meant"
    )]
    Unguarded {
        /// The table or key.
        key: String,
        /// What there would be none of.
        what: String,
    },
    /// A value that is refused.
    #[error("{key} = {value}: {reason}")]
    Value {
        /// The key with its table.
        key: String,
        /// What was written.
        value: String,
        /// The bound and a next step.
        reason: String,
    },
}

/// Where a key belongs that stands in a table and is of none.
fn misplaced(error: &toml::de::Error) -> &'static str {
    match error.message().starts_with("unknown field `acknowledge`") {
        true => "\n`acknowledge` is of no table; write it before the first line with `[`",
        false => "",
    }
}

fn refuse(key: &str, value: impl ToString, reason: impl Into<String>) -> ConfigError {
    ConfigError::Value { key: key.to_string(), value: value.to_string(), reason: reason.into() }
}

/// All that a relay has to know.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The server to relay.
    #[serde(default)]
    pub master: Master,
    /// Where replicas connect.
    #[serde(default)]
    pub listen: Listen,
    /// Who may connect; nobody listed means that no password is asked for.
    #[serde(default)]
    pub user: Vec<User>,
    /// What is kept in memory, and what bounds it.
    #[serde(default)]
    pub limits: LimitsTable,
    /// Where files of full synchronisations are kept.
    #[serde(default)]
    pub spool: SpoolTable,
    /// What the relay tells the master that was replicated.
    #[serde(default)]
    pub acknowledge: Acknowledge,
    /// Counters for Prometheus.
    #[serde(default)]
    pub metrics: MetricsTable,
}

/// The server to relay.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Master {
    /// `HOST:PORT`; it may be left out of a file, and has to be set before [`Config::check`].
    #[serde(default)]
    pub address: String,
    /// The ACL user; without one, AUTH names the password alone.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// A file with the password in its first line, instead of `password`.
    pub password_file: Option<PathBuf>,
    /// TLS towards the master.
    pub tls: Option<ClientTls>,
    /// What `REPLCONF version` says. A Valkey 9 master that hears 9 or more sends its own file format,
    /// which no Redis loads; without it every master sends what most replicas load.
    pub announce_version: Option<String>,
}

/// TLS where the relay connects.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientTls {
    /// PEM certificates of the authorities that are trusted; no others are.
    pub authorities: PathBuf,
    /// The name in the server's certificate, where it is not the host of the address.
    pub server_name: Option<String>,
    /// PEM certificates to show.
    pub certificate: Option<PathBuf>,
    /// The PEM key of `certificate`.
    pub key: Option<PathBuf>,
}

/// Where replicas connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Listen {
    /// `ADDRESS:PORT`; it may be left out of a file, and has to be set before [`Config::check`].
    #[serde(default)]
    pub address: String,
    /// The port that the master's INFO shows for the relay, where it is not that of `address`.
    pub announce_port: Option<u16>,
    /// The address that the master's INFO shows for the relay.
    pub announce_address: Option<String>,
    /// TLS towards replicas; without it connections are plain.
    pub tls: Option<ServerTls>,
    /// Whether `REPLICAOF HOST PORT` may point the relay at another master, as Sentinel does. Without a word on it,
    /// it may where there is a `spool.state_file` to remember it.
    pub follow_replicaof: Option<bool>,
    /// Whether connections of other machines are refused where nobody is asked for a password.
    #[serde(default = "yes")]
    pub protected_mode: bool,
}

fn yes() -> bool {
    true
}

impl Default for Listen {
    fn default() -> Listen {
        Listen {
            address: String::new(),
            announce_port: None,
            announce_address: None,
            tls: None,
            follow_replicaof: None,
            protected_mode: true,
        }
    }
}

/// TLS where others connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTls {
    /// PEM certificates to show.
    pub certificate: PathBuf,
    /// The PEM key of `certificate`.
    pub key: PathBuf,
    /// PEM certificates of the authorities of clients; with it clients must show a certificate.
    pub client_authorities: Option<PathBuf>,
}

/// Who may connect.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// The name; `AUTH PASSWORD` alone means `default`.
    pub name: String,
    /// The password.
    pub password: Option<String>,
    /// A file with the password in its first line, instead of `password`.
    pub password_file: Option<PathBuf>,
    /// What the user may do.
    #[serde(default)]
    pub may: May,
}

/// What a user may do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum May {
    /// Everything: be a replica, and observe.
    #[default]
    Replicate,
    /// Ask for PING, INFO, ROLE and the like.
    Observe,
}

/// What is kept in memory, and what bounds it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct LimitsTable {
    /// Bytes of the stream that are kept for replicas that come back.
    pub backlog: String,
    /// A replica that is further behind is dropped; at most the backlog, which is the default.
    pub replica_behind: Option<String>,
    /// A replica that is further behind than this for longer than `replica_behind_time` is dropped.
    pub replica_behind_soft: Option<String>,
    /// See `replica_behind_soft`.
    pub replica_behind_time: String,
    /// Connections of users that are not replicas, and as many of those that have shown no password.
    pub connections: usize,
    /// Replicas at a time.
    pub replicas: usize,
    /// A peer that is silent for longer is taken for gone.
    pub timeout: String,
    /// How long a connection may take to show its credentials.
    pub handshake: String,
    /// How long small pieces of the stream may be gathered before they are sent.
    pub gather: String,
    /// How long replicas are given to take what is left when the relay ends.
    pub drain: String,
    /// How long the relay stays with the master when its last replica has left.
    pub linger: String,
}

impl Default for LimitsTable {
    fn default() -> LimitsTable {
        LimitsTable {
            backlog: "64MiB".into(),
            replica_behind: None,
            replica_behind_soft: None,
            replica_behind_time: "60s".into(),
            connections: 256,
            replicas: 256,
            timeout: "60s".into(),
            handshake: "10s".into(),
            gather: "500us".into(),
            drain: "10s".into(),
            linger: "2s".into(),
        }
    }
}

/// Where files of full synchronisations are kept.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct SpoolTable {
    /// A directory with room for the master's file. Files in it have no name, so none stays behind.
    pub directory: PathBuf,
    /// Bytes of the stream that may wait on disk for replicas that are loading.
    pub stream: String,
    /// Where the stream's position is kept, so that a restarted relay resumes partially.
    pub state_file: Option<PathBuf>,
}

impl Default for SpoolTable {
    fn default() -> SpoolTable {
        SpoolTable { directory: std::env::temp_dir(), stream: "16GiB".into(), state_file: None }
    }
}

/// What the relay tells the master that was replicated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged, expecting = "write `acknowledge = \"received\"`, or `replicas = COUNT` in `[acknowledge]`")]
pub enum Acknowledge {
    /// What as many living replicas have.
    Replicas(Quorum),
    /// What the relay itself has received, whether a replica lives or not.
    Word(AcknowledgeWord),
}

/// How many replicas have to have a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Quorum {
    /// Living replicas that must have acknowledged an offset before the relay does.
    pub replicas: usize,
}

/// The other choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AcknowledgeWord {
    /// What the relay has received.
    Received,
}

impl Acknowledge {
    /// What the relay itself has received.
    pub const RECEIVED: Acknowledge = Acknowledge::Word(AcknowledgeWord::Received);

    /// What so many replicas have.
    pub fn replicas(replicas: usize) -> Acknowledge {
        Acknowledge::Replicas(Quorum { replicas })
    }

    /// How many replicas have to live and to have an offset; none where what was received is acknowledged.
    pub fn quorum(self) -> Option<usize> {
        match self {
            Acknowledge::Replicas(quorum) => Some(quorum.replicas),
            Acknowledge::Word(AcknowledgeWord::Received) => None,
        }
    }
}

impl std::str::FromStr for Acknowledge {
    type Err = String;

    fn from_str(text: &str) -> Result<Acknowledge, String> {
        match text.parse() {
            Ok(replicas) => Ok(Acknowledge::replicas(replicas)),
            Err(_) if text == "received" => Ok(Acknowledge::RECEIVED),
            Err(_) => Err("write a count of replicas, or `received`".to_string()),
        }
    }
}

impl Default for Acknowledge {
    fn default() -> Acknowledge {
        Acknowledge::replicas(1)
    }
}

/// Counters for Prometheus.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct MetricsTable {
    /// `ADDRESS:PORT` of an HTTP listener that answers `GET /metrics`.
    pub address: Option<String>,
}

/// The values that the running relay uses, checked.
#[derive(Clone, Copy, Debug)]
pub struct CheckedConfig {
    /// Bytes of backlog.
    pub backlog: u64,
    /// Bytes that a replica may be behind.
    pub behind: u64,
    /// Bytes that a replica may be behind for `behind_time` at most.
    pub behind_soft: u64,
    /// See `behind_soft`.
    pub behind_time: Duration,
    /// Silence after which a peer is gone.
    pub timeout: Duration,
    /// Time for a connection to show its credentials.
    pub handshake: Duration,
    /// Time over which small pieces are gathered.
    pub gather: Duration,
    /// Time for replicas to take the rest.
    pub drain: Duration,
    /// Time with the master without a replica.
    pub linger: Duration,
    /// Bytes of the stream that may wait on disk.
    pub stream: u64,
}

fn bytes(key: &str, text: &str, least: u64, most: u64) -> Result<u64, ConfigError> {
    let size: Bytes = text.parse().map_err(|error| {
        // What is meant is likely to be Redis's word, which is not what the unit of that letter is.
        let number = text.trim_end_matches(|letter: char| !letter.is_ascii_digit());
        let ours = match text[number.len()..].trim() {
            "kb" => "KiB",
            "mb" => "MiB",
            "gb" => "GiB",
            _ => return refuse(key, text, format!("{error}")),
        };
        refuse(key, text, format!("what a server's configuration calls `{text}` is `{number}{ours}`"))
    })?;
    let size = size.get();
    if !(least..=most).contains(&size) {
        return Err(refuse(key, text, format!("choose {least} B to {most} B")));
    }
    Ok(size)
}

fn duration(key: &str, text: &str, least: Duration, most: Duration) -> Result<Duration, ConfigError> {
    let time: Time = text.parse().map_err(|error| refuse(key, text, format!("{error}")))?;
    let time = Duration::from_nanos(time.ps() / 1_000);
    if !(least..=most).contains(&time) {
        return Err(refuse(key, text, format!("choose {least:?} to {most:?}")));
    }
    Ok(time)
}

/// Checks HOST:PORT; port 0, which the system replaces by a free one, only where it may be listened on.
fn address(key: &str, text: &str, least: u16) -> Result<(), ConfigError> {
    let port =
        text.rsplit_once(':').filter(|(host, _)| !host.is_empty()).map(|(_, port)| port.parse::<u16>());
    match port {
        // A URL's host ends before its port, too.
        Some(Ok(port)) if port >= least && !text.contains('/') => Ok(()),
        _ if text.is_empty() => Err(ConfigError::Missing { key: key.to_string() }),
        _ => {
            let reason = format!("write HOST:PORT with a port from {least} to 65535, as in `127.0.0.1:6379`");
            Err(refuse(key, text, reason))
        }
    }
}

/// Bytes of a file that a password is looked for in.
const PASSWORD: u64 = 64 << 10;

/// The password that a pair of keys gives.
fn password(
    key: &str,
    inline: &Option<String>,
    file: &Option<PathBuf>,
) -> Result<Option<String>, ConfigError> {
    let found = match (inline, file) {
        (Some(_), Some(path)) => {
            return Err(refuse(
                &format!("{key}.password_file"),
                path.display(),
                "`password` is given too; keep one of them",
            ));
        }
        (Some(password), None) => password.clone(),
        (None, Some(path)) => {
            let read = || {
                let mut text = String::new();
                std::fs::File::open(path)?.take(PASSWORD).read_to_string(&mut text)?;
                Ok(text)
            };
            let file_key = format!("{key}.password_file");
            let text = read().map_err(|cause: std::io::Error| match cause.kind() {
                std::io::ErrorKind::InvalidData => refuse(
                    &file_key,
                    path.display(),
                    "it is not UTF-8; write the password as text in its first line",
                ),
                _ => ConfigError::File { path: path.clone(), cause },
            })?;
            let first = text.lines().next().unwrap_or_default().to_string();
            if first.is_empty() {
                let reason =
                    "its first line is empty, and an empty password protects nothing; write one there";
                return Err(refuse(&file_key, path.display(), reason));
            }
            first
        }
        (None, None) => return Ok(None),
    };
    if found.len() as u64 >= PASSWORD {
        let path = file.as_deref().unwrap_or(Path::new("")).display();
        return Err(refuse(
            &format!("{key}.password_file"),
            path,
            "its first line has to be a line of less than 64 KiB",
        ));
    }
    if found.is_empty() {
        return Err(refuse(&format!("{key}.password"), "", "an empty password protects nothing; set one"));
    }
    Ok(Some(found))
}

impl Config {
    /// A configuration with two addresses and defaults for everything else.
    pub fn of(master: &str, listen: &str) -> Config {
        Config {
            master: Master { address: master.to_string(), ..Master::default() },
            listen: Listen { address: listen.to_string(), ..Listen::default() },
            user: Vec::new(),
            limits: LimitsTable::default(),
            spool: SpoolTable::default(),
            acknowledge: Acknowledge::default(),
            metrics: MetricsTable::default(),
        }
    }

    /// Parses TOML. Passwords in files are read by [`Config::check`].
    pub fn parse(text: &str) -> Result<Config, ConfigError> {
        toml::from_str(text).map_err(|error| ConfigError::Syntax(Box::new(error)))
    }

    /// Reads and parses a file.
    pub fn load(path: &Path) -> Result<Config, ConfigError> {
        let text =
            std::fs::read_to_string(path).map_err(|cause| ConfigError::File { path: path.into(), cause })?;
        Config::parse(&text).map_err(|error| match error {
            ConfigError::Syntax(cause) => ConfigError::SyntaxOf { path: path.into(), cause },
            other => other,
        })
    }

    /// Checks every value, and puts passwords from files in their places.
    pub fn check(&mut self) -> Result<CheckedConfig, ConfigError> {
        address("master.address", &self.master.address, 1)?;
        address("listen.address", &self.listen.address, 0)?;
        if let Some(text) = &self.metrics.address {
            address("metrics.address", text, 0)?;
        }
        let (master, listen) = (self.master.address.rsplit_once(':'), self.listen.address.rsplit_once(':'));
        // What listens everywhere listens at the machine's own names.
        let is_around = master.zip(listen).is_some_and(|((host, to), (all, at))| {
            let is_all = ["0.0.0.0", "[::]"].contains(&all);
            to == at && is_all && ["127.0.0.1", "[::1]", "localhost"].contains(&host)
        });
        if self.master.address == self.listen.address || is_around {
            let reason = "the relay listens there itself; name the server to relay";
            return Err(refuse("master.address", &self.master.address, reason));
        }
        if self.metrics.address.as_ref() == Some(&self.listen.address) && !self.listen.address.ends_with(":0")
        {
            let reason = "replicas connect there; choose another port";
            return Err(refuse("metrics.address", &self.listen.address, reason));
        }
        if self.metrics.address.as_ref() == Some(&self.master.address) {
            let reason = "the server to relay listens there; choose another port";
            return Err(refuse("metrics.address", &self.master.address, reason));
        }
        if self.spool.state_file.as_ref().is_some_and(|path| path.as_os_str().is_empty()) {
            return Err(refuse("spool.state_file", "", "name a file, or leave the key out"));
        }
        if self.spool.directory.as_os_str().is_empty() {
            return Err(refuse("spool.directory", "", "name a directory, or leave the key out"));
        }
        if self.listen.announce_port == Some(0) {
            return Err(refuse("listen.announce_port", 0, "choose 1 to 65535, or leave the key out"));
        }
        if let Some(version) = &self.master.announce_version
            && !version
                .split('.')
                .all(|part| (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit()))
        {
            let reason = "write the version of a server, as in `9.1.0`";
            return Err(refuse("master.announce_version", version, reason));
        }
        self.master.password = password("master", &self.master.password, &self.master.password_file)?;
        self.master.password_file = None;
        if let (Some(user), None) = (&self.master.user, &self.master.password) {
            return Err(refuse("master.user", user, "a user needs `password` or `password_file`"));
        }
        for user in &mut self.user {
            user.password = password(&format!("user {}", user.name), &user.password, &user.password_file)?;
            user.password_file = None;
            if user.password.is_none() {
                return Err(refuse("user.name", &user.name, "a user needs `password` or `password_file`"));
            }
        }
        for (index, user) in self.user.iter().enumerate() {
            if self.user[..index].iter().any(|one| one.name == user.name && one.password == user.password) {
                let reason = "it is listed twice with one password; remove one of them";
                return Err(refuse("user.name", &user.name, reason));
            }
            if self.user[..index].iter().any(|one| one.name == user.name && one.may != user.may) {
                let reason = "a user that is listed twice has two passwords, and `may` do the same with each; give both one `may`";
                return Err(refuse("user.name", &user.name, reason));
            }
        }
        if let Some(tls) = &self.master.tls
            && tls.certificate.is_some() != tls.key.is_some()
        {
            return Err(refuse("master.tls", "certificate or key", "give both, or neither"));
        }
        if self.listen.follow_replicaof == Some(true) && self.spool.state_file.is_none() {
            let reason =
                "the relay has to remember the master that it is pointed at; set `spool.state_file` too";
            return Err(refuse("listen.follow_replicaof", true, reason));
        }
        let limits = &self.limits;
        if !(1..=100_000).contains(&limits.connections) {
            return Err(refuse("limits.connections", limits.connections, "choose 1 to 100000"));
        }
        if !(1..=100_000).contains(&limits.replicas) {
            return Err(refuse("limits.replicas", limits.replicas, "choose 1 to 100000"));
        }
        if let Some(replicas) = self.acknowledge.quorum()
            && !(1..=limits.replicas).contains(&replicas)
        {
            let reason = format!(
                "choose 1 to {}, which is `limits.replicas`; what no replica has is acknowledged by \
                 `acknowledge = \"received\"` alone",
                limits.replicas
            );
            return Err(refuse("acknowledge.replicas", replicas, reason));
        }
        let backlog = bytes("limits.backlog", &limits.backlog, 16 << 10, 1 << 40)?;
        let behind = match &limits.replica_behind {
            Some(text) => bytes("limits.replica_behind", text, 16 << 10, backlog)?,
            None => backlog,
        };
        let behind_soft = match &limits.replica_behind_soft {
            Some(text) => bytes("limits.replica_behind_soft", text, 1, behind)?,
            None => behind,
        };
        let (second, day) = (Duration::from_secs(1), Duration::from_secs(86_400));
        Ok(CheckedConfig {
            backlog,
            behind,
            behind_soft,
            behind_time: duration("limits.replica_behind_time", &limits.replica_behind_time, second, day)?,
            timeout: duration("limits.timeout", &limits.timeout, second, day)?,
            handshake: duration("limits.handshake", &limits.handshake, second, day)?,
            gather: duration("limits.gather", &limits.gather, Duration::ZERO, Duration::from_millis(100))?,
            drain: duration("limits.drain", &limits.drain, Duration::ZERO, day)?,
            linger: duration("limits.linger", &limits.linger, Duration::ZERO, day)?,
            stream: bytes("spool.stream", &self.spool.stream, 1 << 20, 1 << 50)?,
        })
    }

    /// What a user may do; nobody where there are users and this is none of them.
    pub fn may(&self, name: &str) -> Option<May> {
        match self.user.iter().find(|user| user.name == name) {
            Some(user) => Some(user.may),
            None => self.user.is_empty().then_some(May::Replicate),
        }
    }

    /// Refuses to go without what guards the running relay, as a file that was cut short would have it do.
    pub fn keeps_guards(&self, running: &Config) -> Result<(), ConfigError> {
        let asks =
            |config: &Config| config.listen.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
        let lost = [
            ("[[user]]", "user", !running.user.is_empty() && self.user.is_empty()),
            (
                "[master.tls]",
                "TLS towards the master",
                running.master.tls.is_some() && self.master.tls.is_none(),
            ),
            (
                "[listen.tls]",
                "TLS towards replicas",
                running.listen.tls.is_some() && self.listen.tls.is_none(),
            ),
            ("listen.tls.client_authorities", "check of clients' certificates", asks(running) && !asks(self)),
        ];
        match lost.into_iter().find(|(_, _, is_lost)| *is_lost) {
            Some((key, what, _)) => {
                Err(ConfigError::Unguarded { key: key.to_string(), what: what.to_string() })
            }
            None => Ok(()),
        }
    }

    /// Takes what only holds from a start on from `running`, and names the keys that this would have changed.
    pub fn keep_fixed(&mut self, running: &Config) -> Vec<&'static str> {
        let mut kept = Vec::new();
        fn keep<T: Clone + PartialEq>(key: &'static str, new: &mut T, old: &T, kept: &mut Vec<&'static str>) {
            if *new != *old {
                new.clone_from(old);
                kept.push(key);
            }
        }
        let Config { master, listen, limits, spool, metrics, .. } = self;
        keep("master.address", &mut master.address, &running.master.address, &mut kept);
        keep("listen.address", &mut listen.address, &running.listen.address, &mut kept);
        keep("listen.announce_port", &mut listen.announce_port, &running.listen.announce_port, &mut kept);
        let size = |text: &str| text.parse::<Bytes>().ok();
        let backlog = size(&running.limits.backlog);
        // One size is written in several ways.
        if size(&limits.backlog) != backlog {
            keep("limits.backlog", &mut limits.backlog, &running.limits.backlog, &mut kept);
            // What is more than the backlog that holds waits for the other one.
            let is_more = |text: &Option<String>| text.as_deref().and_then(size) > backlog;
            let held = &running.limits;
            if is_more(&limits.replica_behind) || is_more(&limits.replica_behind_soft) {
                keep("limits.replica_behind", &mut limits.replica_behind, &held.replica_behind, &mut kept);
                let (new, old) = (&mut limits.replica_behind_soft, &held.replica_behind_soft);
                keep("limits.replica_behind_soft", new, old, &mut kept);
            }
        }
        keep("spool.state_file", &mut spool.state_file, &running.spool.state_file, &mut kept);
        if spool.state_file.is_none() && listen.follow_replicaof == Some(true) {
            // It waits for the file that it needs.
            let follow = &running.listen.follow_replicaof;
            keep("listen.follow_replicaof", &mut listen.follow_replicaof, follow, &mut kept);
        }
        keep("metrics.address", &mut metrics.address, &running.metrics.address, &mut kept);
        kept
    }

    /// Why REPLICAOF is refused, if it is.
    pub fn refuses_replicaof(&self) -> Option<&'static str> {
        match (self.listen.follow_replicaof, &self.spool.state_file) {
            (Some(false), _) => Some("the relay's configuration has `follow_replicaof = false`"),
            (None, None) => {
                Some("the relay could not remember it; set `spool.state_file` in its configuration")
            }
            _ => None,
        }
    }

    /// The port that the master is told.
    pub fn announced_port(&self, bound: u16) -> u16 {
        self.listen.announce_port.unwrap_or(bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_in_order_and_unknown_keys_are_refused() {
        let mut config = Config::parse("[master]\naddress = 'h:1'\n[listen]\naddress = 'h:2'\n").unwrap();
        let checked = config.check().unwrap();
        assert_eq!((checked.backlog, checked.behind), (64 << 20, 64 << 20));
        assert_eq!(checked.gather, Duration::from_micros(500));
        // Port 0 leaves the choice to the system, where the relay listens and nowhere else.
        config.listen.address = "h:0".into();
        config.metrics.address = Some("h:0".into());
        config.check().unwrap();
        assert!(Config::of("h:0", "h:2").check().is_err());
        let error = Config::parse("[master]\naddress = 'h:1'\nport = 1\n[listen]\naddress = 'h:2'\n");
        assert!(error.unwrap_err().to_string().contains("port"));
    }

    #[test]
    fn what_guards_a_running_relay_is_not_taken_away() {
        let text = include_str!("../../../packaging/relay.toml");
        let examples = text.lines().map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
            _ => line,
        });
        let mut running = Config::parse(&examples.collect::<Vec<_>>().join("\n")).unwrap();
        let tls = running.listen.tls.as_mut().expect("an example of TLS");
        tls.client_authorities = Some("authorities.pem".into());
        running.keeps_guards(&running).unwrap();
        type Take = fn(&mut Config);
        let less: [(Take, &str); 4] = [
            (|config| config.user.clear(), "`[[user]]`"),
            (|config| config.master.tls = None, "`[master.tls]`"),
            (|config| config.listen.tls = None, "`[listen.tls]`"),
            (
                |config| config.listen.tls.as_mut().unwrap().client_authorities = None,
                "`listen.tls.client_authorities`",
            ),
        ];
        for (take, named) in less {
            let mut config = running.clone();
            take(&mut config);
            let error = config.keeps_guards(&running).unwrap_err().to_string();
            assert!(error.starts_with(named) && error.contains("restart the relay"), "{error}");
            running.keeps_guards(&config).unwrap();
        }
        let mut fewer = running.clone();
        fewer.user.truncate(1);
        fewer.keeps_guards(&running).unwrap();
    }

    #[test]
    fn what_takes_a_restart_is_what_the_guide_says() {
        let running = Config::of("a:1", "b:2");
        let mut config = Config::of("c:3", "d:4");
        config.listen.announce_port = Some(5);
        config.limits.backlog = "1MiB".into();
        config.spool.state_file = Some("state".into());
        config.metrics.address = Some("e:6".into());
        let guide = include_str!("../../../docs/relay.md");
        let (_, rest) =
            guide.split_once("What takes a restart, and is named in the log where it differs: ").unwrap();
        let (keys, _) = rest.split_once("`. ").or(rest.split_once("`.\n")).unwrap();
        let keys: Vec<&str> = keys.split(',').map(|key| key.trim().trim_matches('`')).collect();
        assert_eq!(config.keep_fixed(&running), keys);
    }

    /// What cannot be taken without something that takes a restart waits for it, and the rest is taken.
    #[test]
    fn what_hangs_on_a_key_that_takes_a_restart_waits_with_it() {
        let mut running = Config::of("h:1", "h:2");
        running.limits.backlog = "1MiB".into();
        let kept = |change: fn(&mut Config)| {
            let mut config = running.clone();
            change(&mut config);
            config.check().unwrap();
            let kept = config.keep_fixed(&running);
            config.check().unwrap();
            kept
        };
        let more = |config: &mut Config| {
            config.limits.backlog = "8MiB".into();
            config.limits.replica_behind = Some("4MiB".into());
        };
        assert_eq!(kept(more), ["limits.backlog", "limits.replica_behind"]);
        let remembers = |config: &mut Config| {
            config.spool.state_file = Some("position".into());
            config.listen.follow_replicaof = Some(true);
        };
        assert_eq!(kept(remembers), ["spool.state_file", "listen.follow_replicaof"]);
        assert_eq!(kept(|config| config.limits.backlog = "1024KiB".into()), [""; 0], "it is the same size");
        assert_eq!(kept(|config| config.limits.replica_behind = Some("512KiB".into())), [""; 0]);
        let guarded = |config: &mut Config| {
            config.spool.state_file = Some("position".into());
            config.listen.follow_replicaof = Some(false);
        };
        assert_eq!(kept(guarded), ["spool.state_file"], "what forbids holds at once");
        let both = |config: &mut Config| {
            config.limits.backlog = "8MiB".into();
            config.limits.replica_behind = Some("512KiB".into());
        };
        assert_eq!(kept(both), ["limits.backlog"], "what holds with either is taken");
    }

    #[test]
    fn a_password_file_is_named_where_it_has_none() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |bytes: &[u8]| {
            let path = folder.path().join("password");
            std::fs::write(&path, bytes).unwrap();
            let mut config = Config::of("h:1", "h:2");
            config.master.password_file = Some(path);
            config.check().unwrap_err().to_string()
        };
        for (bytes, reason) in
            [(&b"\nsecret"[..], "its first line is empty"), (b"\xff\xfe\n", "it is not UTF-8")]
        {
            let said = refused(bytes);
            assert!(said.starts_with("master.password_file = ") && said.contains(reason), "{said}");
        }
    }

    #[test]
    fn the_packaged_file_is_in_order_commented_or_not() {
        let text = include_str!("../../../packaging/relay.toml");
        let mut config = Config::parse(text).unwrap();
        config.check().unwrap();
        let defaults = Config::of("h:1", "h:2");
        assert_eq!(
            format!("{:?}", config.limits),
            format!("{:?}", defaults.limits),
            "the guide calls these defaults"
        );
        assert_eq!(config.spool.stream, defaults.spool.stream);
        assert_eq!(config.acknowledge, defaults.acknowledge);
        assert_eq!(config.listen.protected_mode, defaults.listen.protected_mode);
        // What is commented out and has a key or a table is an example that has to be right.
        let examples: Vec<&str> = text
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(rest) if rest.starts_with('[') || rest.contains(" = ") => rest,
                _ => line,
            })
            .collect();
        let config = Config::parse(&examples.join("\n")).unwrap();
        assert_eq!((config.user.len(), config.metrics.address.is_some()), (2, true));
        assert!(config.master.tls.is_some() && config.listen.tls.is_some());
    }

    #[test]
    fn values_out_of_range_name_key_value_and_bound() {
        let refused = |change: fn(&mut Config)| {
            let mut config = Config::of("h:1", "h:2");
            change(&mut config);
            config.check().unwrap_err().to_string()
        };
        let text = refused(|config| config.limits.backlog = "1KiB".into());
        assert!(text.contains("limits.backlog = 1KiB: choose 16384 B"), "{text}");
        let text = refused(|config| config.limits.backlog = "64".into());
        assert!(text.contains("unit"), "{text}");
        let text = refused(|config| config.limits.backlog = "64mb".into());
        assert!(text.ends_with("64mb: what a server's configuration calls `64mb` is `64MiB`"), "{text}");
        let text = Config::parse("[limits]\nacknowledge = 'received'").unwrap_err().to_string();
        assert!(text.contains("line 2") && text.ends_with("before the first line with `[`"), "{text}");
        let text = refused(|config| config.limits.replica_behind = Some("65MiB".into()));
        assert!(text.contains("replica_behind"), "{text}");
        assert!(refused(|config| config.master.address = "here".into()).contains("HOST:PORT"));
        assert!(refused(|config| config.listen.address.clear()).contains("`listen.address` is not set"));
        for port in ["0", "65536"] {
            let mut config = Config::of(&format!("h:{port}"), "h:0");
            assert!(config.check().unwrap_err().to_string().contains("1 to 65535"), "{port}");
        }
        assert!(refused(|config| config.master.address = "h:2".into()).contains("listens there itself"));
        assert!(refused(|config| config.limits.timeout = "0s".into()).contains("1s to"));
        assert!(refused(|config| config.master.address = "redis://h:1".into()).contains("HOST:PORT"));
        assert!(refused(|config| config.metrics.address = Some("h:2".into())).contains("another port"));
        assert!(
            refused(|config| config.metrics.address = Some("h:1".into())).contains("the server to relay")
        );
        assert!(refused(|config| config.spool.state_file = Some("".into())).contains("leave the key out"));
        assert!(refused(|config| config.spool.directory = "".into()).contains("leave the key out"));
        assert!(refused(|config| config.spool.stream = "0MiB".into()).contains("choose 1048576 B"));
        assert!(refused(|config| config.listen.announce_port = Some(0)).contains("1 to 65535"));
        assert!(refused(|config| config.master.password_file = Some("/dev/zero".into())).contains("a line"));
        assert!(refused(|config| config.master.announce_version = Some("nine".into())).contains("9.1.0"));
        let around = refused(|config| {
            (config.master.address, config.listen.address) = ("localhost:7".into(), "0.0.0.0:7".into());
        });
        assert!(around.contains("listens there itself"), "{around}");
        assert!(refused(|config| config.master.user = Some("u".into())).contains("password"));
        assert!(refused(|config| config.master.password = Some(String::new())).contains("empty"));
        // Whoever shows one password of a user may not get what the other gives.
        let twice = |may: [May; 2]| {
            let mut config = Config::of("h:1", "h:2");
            let user = |(may, password): (May, &str)| User {
                name: "u".into(),
                password: Some(password.into()),
                password_file: None,
                may,
            };
            config.user = [(may[0], "p"), (may[1], "q")].map(user).into();
            config.check().map_err(|error| error.to_string())
        };
        for may in [[May::Replicate, May::Observe], [May::Observe, May::Replicate]] {
            assert!(twice(may).unwrap_err().contains("listed twice"));
        }
        twice([May::Observe; 2]).unwrap();
        let same = refused(|config| {
            let user = || User {
                name: "u".into(),
                password: Some("p".into()),
                password_file: None,
                may: May::Observe,
            };
            config.user = vec![user(), user()];
        });
        assert!(same.contains("listed twice with one password"), "{same}");
    }
}
