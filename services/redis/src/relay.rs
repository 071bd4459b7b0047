//! What the two sides of a relay share: the stream's window, the file of the last full
//! synchronisation, the replicas, and how far each of them is.
//!
//! One thread runs everything, so what is shared are cells; the locks put what waits for the disk in turn. A replica
//! costs its connection, a few kB and a place in the stream; the bytes themselves are kept once.

use crate::backlog::Backlog;
use crate::config::{CheckedConfig, Config, ConfigError, May};
use crate::counters::{Counters, count};
use crate::history::{ReplicationId, ServerIdentity};
use crate::questions::Questions;
use crate::replica::{LIVES, Phase, Replica};
use crate::spool::{Spill, Spool, Stage};
use crate::state::{LEFT, LeftHistory};
use crate::tls::{Acceptor, Connector, TlsError};
use crate::{descriptors, log, names, state};
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::{Mutex, Notify, broadcast, oneshot, watch};
use tokio::time::timeout;

/// Published messages that wait for a subscriber; one that falls further behind loses the oldest.
const MESSAGES: usize = 64;

/// How long a name may take to be looked up before a REPLICAOF is answered.
const LOOK_UP: Duration = Duration::from_secs(1);

/// Files that a replica may fail to load before that is said, and nothing more of it.
pub const FAILURES: u32 = 3;

/// For how long after its last failure a replica that fails stands for nobody.
const FAILED: Duration = Duration::from_secs(60);
/// For how long a relay that starts again begins where a replica was that is away, and from how many bytes behind what it had
/// itself: those that are here wait meanwhile until it is where they are.
const BACK: Duration = Duration::from_secs(60);
const NEAR: u64 = 16 << 20;

/// Why a relay cannot start or had to end.
#[derive(Debug, Error)]
pub enum RelayError {
    /// The configuration is refused.
    #[error("{0}")]
    Config(#[from] ConfigError),
    /// Keys or certificates are refused.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// An address cannot be listened on.
    #[error("cannot listen on {address}: {cause}; choose a free address of this machine")]
    Listen {
        /// Which address.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The directory of the spool cannot be used.
    #[error("cannot write to {directory}: {cause}; set `spool.directory` to a directory with room")]
    Spool {
        /// Which directory.
        directory: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The directory of the position cannot be used.
    #[error(
        "cannot write beside {path}: {cause}; set `spool.state_file` to a file in a directory that exists"
    )]
    State {
        /// Which file.
        path: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The state that was kept cannot be read.
    #[error("cannot use {path}: {cause}")]
    Kept {
        /// Which file.
        path: String,
        /// What is wrong with it.
        cause: io::Error,
    },
    /// Another relay keeps its position in the same file.
    #[error(
        "another relay runs that keeps its position in {path}; give each relay a `spool.state_file` of its own, or end \
         the other"
    )]
    Taken {
        /// Which file.
        path: String,
    },
    /// The system refuses a runtime.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The link to the master.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkState {
    /// There is none.
    Down,
    /// The master answers, and nobody is there to follow it for.
    Held,
    /// The file of a full synchronisation is coming.
    Synchronising,
    /// The stream is coming.
    Up,
}

/// Who waits for a file that the master writes now.
pub struct OwnAsk {
    /// The parts of the data that it is to hold; all without a word on it.
    pub filter: Option<String>,
    /// Takes the file once it begins, or why there is none.
    pub give: oneshot::Sender<Result<Rc<Spool>, String>>,
}

/// The place of a user that is no replica.
pub struct UserPlace {
    /// Tells its connection to leave.
    pub leave: Rc<Notify>,
    /// When it said something last; nothing of one that is sent a file or messages.
    pub heard: Option<Instant>,
}

/// What changes while the relay runs.
pub struct Current {
    /// `HOST:PORT` of the master.
    pub master: String,
    /// What the master says that it is, once it was asked.
    pub identity: ServerIdentity,
    /// Whether REPLICAOF named it, and not the configuration.
    pub is_told: bool,
    /// Whether REPLICAOF named it and it was not followed since, so that its history is meant whatever it is.
    pub is_meant: bool,
    /// The histories that were left for others.
    pub histories_left: Vec<LeftHistory>,
    /// Where the relay itself was when it was stopped, until the first link.
    pub resume_at: Option<u64>,
    /// The link to it.
    pub link: LinkState,
    /// Why there is none, where there was none last.
    pub trouble: Option<String>,
    /// The runs of the relays between this one and the master, the nearest first.
    pub above: Vec<String>,
    /// Grows with each change of these.
    pub above_changes: u64,
    /// Bytes of the stream that it keeps for those who come back, where it says so.
    pub kept_above: Option<u64>,
    /// When something was read from it.
    pub heard: Instant,
    /// The name of the history; unknown before the first answer of a master.
    pub id: Option<ReplicationId>,
    /// The name before the last promotion.
    pub second_id: ReplicationId,
    /// The first offset that `second_id` does not cover; 0 without one.
    pub second_offset: u64,
    /// The stream's window.
    pub backlog: Backlog,
    /// The offset behind the last command or transaction that is whole.
    pub boundary: u64,
    /// What loading replicas still need and memory has not.
    pub spill: Option<Rc<Spill>>,
    /// The file that a new replica can start from.
    pub spool: Option<Rc<Spool>>,
    /// Why replicas could not be given the last file of the master, unless they were given one since.
    pub no_file: Option<NoFile>,
    /// Whether a file is being fetched beside the stream.
    pub fetching: bool,
    /// Replicas by number.
    pub replicas: BTreeMap<u64, Rc<Replica>>,
    /// Who is given a file and nothing behind it, by number: no replica of any stream.
    pub backups: BTreeMap<u64, Rc<Replica>>,
    /// The most that the master was told on this link, which is what it keeps.
    pub acknowledged: u64,
    /// The same of what is on disk.
    pub acknowledged_fsync: Option<u64>,
    /// When that offset became more.
    pub raised_at: Option<Instant>,
    /// When that of what is on disk did.
    pub raised_fsync_at: Option<Instant>,
    /// When the master was told anything, or when the link began.
    pub told_at: Instant,
    /// Where the master asked for acknowledgements that it has not got.
    pub asked: Questions,
    /// The same for what is on disk.
    pub asked_fsync: Questions,
    /// When a replica left last.
    pub left: Option<Instant>,
    /// Whether the master has said that it refuses writes without a replica.
    pub needs_replicas: bool,
    /// Connections of users that are not replicas, by when they were heard.
    pub clients: BTreeMap<u64, UserPlace>,
    /// Connections that have shown no password and are not replicas, by when they were heard; each is told to leave
    /// where others need its place.
    pub strangers: BTreeMap<u64, Rc<Notify>>,
    /// Where replicas have left that may come back, by the address and port that they announced, and when they did.
    pub away: BTreeMap<(String, u16), (u64, Instant)>,
    /// Whether the place where the relay began is one that a replica named.
    pub borrowed: bool,
    /// Whether such a place was none.
    pub misled: bool,
    /// How often in a row replicas left before they acknowledged a file, by the address and port that they announced.
    /// Who announces no port is not a replica that could be told from others.
    pub failures: BTreeMap<(String, u16), Failures>,
}

/// Files of the master that did not come whole.
#[derive(Clone, Debug)]
pub struct NoFile {
    /// How many, one after the other. One that the spool had no room for stands for all that follow.
    pub failures: Failures,
    /// Why the last one did not.
    pub why: String,
}

/// How a replica has failed to load what it was sent.
#[derive(Clone, Copy, Debug)]
pub struct Failures {
    /// How often in a row.
    pub count: u32,
    /// When last.
    pub last: Instant,
}

impl Current {
    /// Connections that are not replicas.
    pub fn open(&self) -> usize {
        self.clients.len() + self.strangers.len()
    }

    /// Whether it was said that a replica of this address and port fails to load its files. One that comes back at once
    /// fills a log.
    pub fn fails(&self, address: &str, port: u16) -> bool {
        self.failures.get(&(address.to_string(), port)).is_some_and(|failures| failures.count >= FAILURES)
    }

    /// Whether a replica cannot be taken for alive: it has failed to load its files until just now, or it needs a file and none
    /// could be given. One that asks for a place in a history has loaded a file since, and one that
    /// follows the stream has loaded this one.
    pub fn is_failing(&self, replica: &Replica) -> bool {
        if replica.phase.get() == Phase::Online {
            return false;
        }
        let lasts = |failures: &Failures| failures.count >= FAILURES && failures.last.elapsed() < FAILED;
        let fails = self.failures.get(&(replica.address.clone(), replica.port)).is_some_and(lasts);
        let resumes = replica
            .asked
            .is_some_and(|(id, from)| Relay::same_history(self, id, from) && from >= self.backlog.start());
        replica.asked.is_none() && fails || !resumes && self.has_no_file()
    }

    /// Whether the master's files do not come, until just now.
    pub fn has_no_file(&self) -> bool {
        let failures = self.no_file.as_ref().map(|no_file| no_file.failures);
        failures.is_some_and(|failures| failures.count >= FAILURES && failures.last.elapsed() < FAILED)
    }

    /// Replicas that are here, say how far they are, and do not fail to load their files. With one that leaves goes what the
    /// master knew of those that have said nothing for a while.
    pub fn speaking(&self) -> usize {
        let is_silent = |replica: &Replica| {
            replica.lived.get().is_some_and(|lived| {
                lived.elapsed() > 2 * LIVES && self.left.is_some_and(|left| left > lived)
            })
        };
        let speaks = |replica: &&Rc<Replica>| {
            replica.acknowledges && replica.dropped.get().is_none() && !is_silent(replica)
        };
        self.replicas.values().filter(speaks).filter(|replica| !self.is_failing(replica)).count()
    }

    /// Remembers where a replica has left.
    pub fn remember(&mut self, replica: &Replica) {
        if let Some(place) = replica.place().filter(|_| replica.port > 0) {
            self.away.retain(|_, (_, left)| left.elapsed() < BACK);
            self.away.insert((replica.address.clone(), replica.port), (place, Instant::now()));
        }
    }

    /// Remembers a history that was left for another at offset `end`.
    pub fn leave(&mut self, id: ReplicationId, end: u64) {
        if id == ReplicationId::NONE || self.histories_left.iter().any(|left| left.id == id) {
            return;
        }
        if self.histories_left.len() == LEFT {
            self.histories_left.remove(0);
        }
        self.histories_left.push(LeftHistory { id, end });
    }

    /// Replicas that were given something of the history. Those that still wait for it lose nothing when it
    /// starts again or is renamed: that is what they wait for.
    fn served(&self) -> impl Iterator<Item = &Rc<Replica>> {
        self.replicas.values().filter(|replica| replica.phase.get() != Phase::Waiting)
    }
}

/// What a configuration comes to.
pub struct Settings {
    /// The configuration, with passwords in their places.
    pub config: Config,
    /// The checked values of it.
    pub checked: CheckedConfig,
    /// TLS towards the master.
    pub connector: Option<Connector>,
    /// TLS towards replicas.
    pub acceptor: Option<Acceptor>,
}

impl Settings {
    /// Checks a configuration, and reads its passwords, keys and certificates.
    pub fn of(mut config: Config) -> Result<Settings, RelayError> {
        let checked = config.check()?;
        let connector = config.master.tls.as_ref().map(Connector::new).transpose()?;
        let acceptor = config.listen.tls.as_ref().map(Acceptor::new).transpose()?;
        Ok(Settings { config, checked, connector, acceptor })
    }
}

/// A master that REPLICAOF names.
struct Told {
    master: String,
    /// Whether the configuration names another.
    is_told: bool,
}

/// A running relay.
pub struct Relay {
    settings: RefCell<Rc<Settings>>,
    /// What changes.
    pub current: RefCell<Current>,
    /// The offset behind the last byte that replicas may have.
    pub published: watch::Sender<u64>,
    /// Grows whenever something changes that a waiting replica may wait for.
    pub changed: watch::Sender<u64>,
    /// What strangers bring about.
    pub noise: log::Seldom,
    /// Wakes the link to acknowledge at once.
    pub acknowledge: Notify,
    /// Wakes the link because the master is another one.
    pub retarget: Notify,
    /// Wakes what fetches a file beside the stream.
    pub fetch: Notify,
    /// Wakes what keeps the position, because the history has another name.
    pub save: Notify,
    /// Grows with each configuration that is taken while the relay runs.
    pub reloads: watch::Sender<u64>,
    /// What is on disk of the state.
    kept: Mutex<state::State>,
    /// Why it was not kept last.
    unkept: RefCell<Option<String>>,
    /// Held by the REPLICAOF that is carried out.
    following: Mutex<()>,
    /// Held by whoever receives a file of its own, so that the master writes one of these at a time.
    pub own_file: Mutex<()>,
    /// Who waits for one, and for which parts of the data.
    pub own_waiting: RefCell<Vec<OwnAsk>>,
    /// Whether the relay is ending.
    pub ending: watch::Sender<bool>,
    /// Channels and messages that clients publish, as Sentinels do to find each other.
    pub messages: broadcast::Sender<(String, String)>,
    /// What has happened.
    pub counters: Counters,
    /// Replicas so far; each gets the next number.
    pub numbers: Cell<u64>,
    /// The port that the master is told.
    pub port: Cell<u16>,
    /// Where it listens.
    pub bound: Cell<Option<SocketAddr>>,
    /// How many files and connections may be open.
    pub descriptors: Cell<u64>,
    /// When it was started.
    pub started: Instant,
    /// A name for this run.
    pub run_id: String,
}

/// What to do for a replica that asks for the stream.
pub enum SyncAnswer {
    /// The stream from this byte.
    Continue(u64),
    /// A file, then the stream behind it.
    Full(Rc<Spool>),
    /// Nothing yet.
    Wait,
}

impl Relay {
    /// A relay of this configuration, which does nothing yet.
    pub fn new(config: Config) -> Result<Rc<Relay>, RelayError> {
        let settings = Settings::of(config)?;
        let config = &settings.config;
        check_directories(config)?;
        let mut current = Current {
            master: config.master.address.clone(),
            identity: ServerIdentity::default(),
            is_told: false,
            is_meant: false,
            histories_left: Vec::new(),
            resume_at: None,
            link: LinkState::Down,
            trouble: None,
            above: Vec::new(),
            above_changes: 0,
            heard: Instant::now(),
            id: None,
            second_id: ReplicationId::NONE,
            second_offset: 0,
            backlog: Backlog::new(1, settings.checked.backlog),
            boundary: 1,
            spill: None,
            spool: None,
            no_file: None,
            kept_above: None,
            fetching: false,
            replicas: BTreeMap::new(),
            backups: BTreeMap::new(),
            acknowledged: 0,
            acknowledged_fsync: None,
            raised_at: None,
            raised_fsync_at: None,
            told_at: Instant::now(),
            asked: Questions::default(),
            asked_fsync: Questions::default(),
            left: None,
            needs_replicas: false,
            clients: BTreeMap::new(),
            strangers: BTreeMap::new(),
            away: BTreeMap::new(),
            borrowed: false,
            misled: false,
            failures: BTreeMap::new(),
        };
        if let Some(path) = &config.spool.state_file {
            let kept = state::load(path)
                .map_err(|cause| RelayError::Kept { path: path.display().to_string(), cause })?;
            (current.is_meant, current.histories_left) = (kept.is_meant, kept.left);
            if let Some(position) = kept.position {
                current.id = Some(position.id);
                current.second_id = position.second_id;
                current.second_offset = position.second_offset;
                current.backlog.reset(position.next);
                current.boundary = position.next;
                current.resume_at = Some(position.end);
            }
            if let Some(master) = kept.master.filter(|master| *master != current.master) {
                log::line(&format!(
                    "the configuration names the master {}, and REPLICAOF has pointed this relay at {master} since: it \
                     follows {master}. REPLICAOF leads it elsewhere; so does a start without {}",
                    current.master,
                    path.display()
                ));
                (current.master, current.is_told) = (master, true);
            }
        }
        let published = watch::Sender::new(current.backlog.published());
        Ok(Rc::new(Relay {
            run_id: run_id(),
            settings: RefCell::new(Rc::new(settings)),
            current: RefCell::new(current),
            published,
            changed: watch::Sender::new(0),
            noise: log::Seldom::default(),
            acknowledge: Notify::new(),
            retarget: Notify::new(),
            fetch: Notify::new(),
            save: Notify::new(),
            reloads: watch::Sender::new(0),
            kept: Mutex::default(),
            unkept: RefCell::default(),
            following: Mutex::default(),
            own_file: Mutex::default(),
            own_waiting: RefCell::default(),
            ending: watch::Sender::new(false),
            messages: broadcast::Sender::new(MESSAGES),
            counters: Counters::default(),
            numbers: Cell::new(0),
            port: Cell::new(0),
            bound: Cell::new(None),
            descriptors: Cell::new(u64::MAX),
            started: Instant::now(),
        }))
    }

    /// What it was configured to be.
    pub fn settings(&self) -> Rc<Settings> {
        self.settings.borrow().clone()
    }

    /// Takes another configuration while it runs, and gives the keys that only hold from the next start on. One that is
    /// refused changes nothing.
    pub fn reload(&self, config: Config) -> Result<Vec<&'static str>, RelayError> {
        let running = self.settings();
        // As a start would take it, before anything of it is replaced: a file that was cut or emptied is none.
        let mut settings = Settings::of(config)?;
        check_directories(&settings.config)?;
        settings.config.keeps_guards(&running.config)?;
        let kept = settings.config.keep_fixed(&running.config);
        settings.checked = settings.config.check()?;
        // Who is no longer allowed what it does goes; who has shown a password that was replaced stays, as in Redis.
        let current = self.current.borrow();
        for replica in current.replicas.values().chain(current.backups.values()) {
            if settings.config.may(&replica.user) != Some(May::Replicate) {
                replica.drop_for("its user is no longer in the configuration, or may only observe");
            }
        }
        drop(current);
        self.descriptors.set(descriptors::provide(&settings.config.limits));
        self.settings.replace(Rc::new(settings));
        {
            // Who reads it again may have made room, or replaced who could not load.
            let mut current = self.current.borrow_mut();
            current.no_file = None;
            current.failures.clear();
        }
        // Nothing that was due by what held before is forgotten, and nobody waits by it.
        self.reloads.send_modify(|count| *count += 1);
        self.tell_master();
        self.tell_waiting();
        Ok(kept)
    }

    /// Why there is no room for another replica, where there is none.
    pub fn is_full(&self) -> Option<String> {
        let most = self.settings().config.limits.replicas;
        let current = self.current.borrow();
        (current.replicas.len() >= most).then(|| {
            format!("NOMASTERLINK the relay has {most} replicas, as many as its `limits.replicas` allows")
        })
    }

    /// Whether all that may be open is needed by those who are here, and by the relay itself for links to the master and files.
    pub fn is_short_of_descriptors(&self) -> bool {
        let current = self.current.borrow();
        let taken =
            descriptors::taken(current.clients.len(), current.strangers.len(), current.replicas.len());
        taken >= self.descriptors.get()
    }

    /// Has the connection leave that has shown no password and was silent for longest; whether there is one. Who has a
    /// password or wants to be a replica needs such a place for a moment only.
    pub fn make_room(&self) -> bool {
        let longest = self.current.borrow_mut().strangers.pop_first();
        if let Some((_, longest)) = &longest {
            count(&self.counters.refused, 1);
            longest.notify_one();
        }
        longest.is_some()
    }

    /// Takes the path of the master: the relays that are between it and this one. Relays that follow this one ask again, so
    /// that each knows all of those above it.
    pub fn is_behind(&self, path: &[String]) {
        let mut current = self.current.borrow_mut();
        if current.above == path {
            return;
        }
        current.above = path.to_vec();
        current.above_changes += 1;
        for replica in current.replicas.values().filter(|replica| replica.is_relay) {
            replica.drop_for("the relays that it follows are others by now; it asks for them and can resume");
        }
    }

    /// Wakes replicas that wait for a change.
    pub fn tell_waiting(&self) {
        self.changed.send_modify(|count| *count += 1);
    }

    /// The history starts again at a file of `id` that stands at `offset`: nobody can go on.
    pub fn restart(&self, id: ReplicationId, offset: u64) {
        let mut current = self.current.borrow_mut();
        for replica in current.served() {
            replica.loses("the master began a full synchronisation");
        }
        current.away.clear();
        current.id = Some(id);
        current.second_id = ReplicationId::NONE;
        current.second_offset = 0;
        current.backlog.reset(offset + 1);
        current.boundary = offset + 1;
        current.spill = None;
        current.spool = None;
        current.borrowed = false;
        self.published.send_replace(offset + 1);
        self.save.notify_one();
    }

    /// Whether there is nobody left to follow the master for. One that refuses writes without a replica is left at once when
    /// fewer than the quorum are here, as it is by a replica that ends, and stays left while those that come fail; while it
    /// sends its file it takes nobody for alive, so one who waits for that is enough. Any other is left after
    /// `limits.linger` without a replica.
    pub fn is_alone(&self) -> bool {
        let settings = self.settings();
        let Some(quorum) = settings.config.acknowledge.quorum() else { return false };
        let current = self.current.borrow();
        if !current.needs_replicas {
            return current.replicas.is_empty()
                && current.left.is_none_or(|left| left.elapsed() >= settings.checked.linger);
        }
        if current.link == LinkState::Up {
            current.speaking() < quorum
        } else {
            current.replicas.values().filter(|replica| !current.is_failing(replica)).count() == 0
        }
    }

    /// Whether fewer than the quorum are here.
    pub fn is_below_quorum(&self) -> bool {
        let quorum = self.settings().config.acknowledge.quorum();
        quorum.is_some_and(|quorum| self.current.borrow().speaking() < quorum)
    }

    /// The history goes on under another name, because a replica of the old master was promoted.
    pub fn rename(&self, id: ReplicationId) {
        let mut current = self.current.borrow_mut();
        let Some(old) = current.id.filter(|old| *old != id) else {
            current.id = Some(id);
            return;
        };
        log::line(&format!("the history {old} goes on as {id}"));
        self.save.notify_one();
        current.second_id = old;
        current.second_offset = current.backlog.end();
        current.id = Some(id);
        let end = current.second_offset;
        current.leave(old, end);
        for replica in current.served() {
            replica.loses("the history has another name; it can resume");
        }
    }

    /// Whether `from` of history `id` is the same byte as that of the current history.
    fn same_history(current: &Current, id: ReplicationId, from: u64) -> bool {
        current.id == Some(id)
            || (current.second_id == id && id != ReplicationId::NONE && from <= current.second_offset)
    }

    /// What a replica gets that asks for byte `from` of history `id`; `patient` while it may still
    /// wait for the relay to get as far as the replica is.
    pub fn answer(&self, asked: Option<(ReplicationId, u64)>, patient: bool) -> SyncAnswer {
        let mut current = self.current.borrow_mut();
        // Where the relay begins is only sure once the master goes on from there, perhaps under another name.
        if current.borrowed && current.link != LinkState::Up {
            return SyncAnswer::Wait;
        }
        if let Some((id, from)) = asked {
            if Relay::same_history(&current, id, from) {
                let (start, published) = (current.backlog.start(), current.backlog.published());
                if (start..=published).contains(&from) {
                    return SyncAnswer::Continue(from);
                }
                if from > published && patient {
                    return SyncAnswer::Wait;
                }
            } else if matches!(current.link, LinkState::Down | LinkState::Held) {
                // The master's answer may bring the history that the replica knows.
                return SyncAnswer::Wait;
            }
        }
        if matches!(current.link, LinkState::Down | LinkState::Held) && current.id.is_none() {
            return SyncAnswer::Wait;
        }
        if let Some(spool) = current.spool.clone() {
            let usable = spool.stage().0 != Stage::Failed
                && Relay::same_history(&current, spool.id, spool.offset + 1)
                && self.reaches(&current, spool.offset + 1);
            if usable {
                return SyncAnswer::Full(spool);
            }
            current.spool = None;
        }
        if current.link == LinkState::Up && !current.fetching {
            current.fetching = true;
            self.fetch.notify_one();
        }
        SyncAnswer::Wait
    }

    /// Whether the stream goes on from a file without a gap.
    pub fn goes_on_from(&self, spool: &Spool) -> bool {
        let current = self.current.borrow();
        let next = spool.offset + 1;
        Relay::same_history(&current, spool.id, next) && self.reaches(&current, next)
    }

    /// Whether the stream from byte `from` can be given without a gap.
    fn reaches(&self, current: &Current, from: u64) -> bool {
        let spilled = current.spill.as_ref().is_some_and(|spill| spill.start() <= from);
        from >= current.backlog.start() || spilled
    }

    /// Takes what was read from the master, `end` being the last place where no command is open. Replicas that can take it
    /// at once have it then; whether all of them have.
    pub fn publish(&self, boundary: u64) -> bool {
        let mut current = self.current.borrow_mut();
        current.backlog.publish(boundary);
        let mut has_left = true;
        for replica in current.replicas.values().filter(|replica| replica.is_served()) {
            // Waking the task of each costs more than what it would do.
            if replica.phase.get() != Phase::Online
                || !replica.write_at_once(&current.backlog, &self.counters)
            {
                has_left = false;
                replica.more.notify_one();
            }
        }
        while let Some(block) = current.backlog.evict() {
            self.keep_or_drop(&mut current, block);
        }
        let (published, behind) = (current.backlog.published(), self.settings().checked.behind);
        if behind < self.settings().checked.backlog {
            for replica in current.replicas.values() {
                if replica.phase.get() == Phase::Online
                    && published - replica.next.get().min(published) > behind
                    && !replica.goes_back()
                {
                    self.too_slow(replica, "it is further behind than `limits.replica_behind`");
                }
            }
        }
        drop(current);
        self.published.send_replace(published);
        has_left
    }

    /// Forgets a command that its sender never finished. A replica that has a part of it starts again where the command
    /// began.
    pub fn close_unfinished(&self) {
        let mut current = self.current.borrow_mut();
        let boundary = current.boundary;
        match boundary < current.backlog.start() {
            // It is longer than the window, which has no place left from which the stream can go on.
            true => {
                current.backlog.reset(boundary);
                current.spill = None;
            }
            false => current.backlog.truncate(boundary),
        }
        let end = current.backlog.end();
        for replica in current.replicas.values() {
            if replica.next.get() > end {
                replica.loses("it has a part of a command that the master never finished");
            }
        }
        drop(current);
        self.published.send_replace(end);
    }

    /// Drops a replica that does not keep up.
    pub fn too_slow(&self, replica: &Replica, reason: &'static str) {
        if replica.dropped.get().is_none() {
            count(&self.counters.dropped_slow, 1);
            replica.loses(reason);
        }
    }

    /// A block has left the window: those who load get it from disk, those who follow are too slow.
    fn keep_or_drop(&self, current: &mut Current, block: crate::backlog::StreamBlock) {
        let mut needed = false;
        for replica in current.replicas.values() {
            if replica.next.get() < block.end() && replica.dropped.get().is_none() {
                match replica.phase.get() {
                    Phase::Loading => needed = true,
                    Phase::Online if replica.goes_back() => needed = true,
                    Phase::Online => self.too_slow(replica, "it is further behind than `limits.backlog`"),
                    Phase::Waiting => {}
                }
            }
        }
        if !needed {
            current.spill = None;
            current.backlog.reuse(block);
            return;
        }
        if current.spill.is_none() {
            match Spill::create(
                &self.settings().config.spool.directory,
                block.start,
                self.settings().checked.stream,
            ) {
                Ok(spill) => current.spill = Some(spill),
                Err(error) => log::line(&format!("the stream cannot be kept on disk: {error}")),
            }
        }
        let end = block.end();
        if !current.spill.as_ref().is_some_and(|spill| spill.push(block)) {
            current.spill = None;
            for replica in current.replicas.values() {
                if replica.phase.get() == Phase::Loading && replica.next.get() < end {
                    self.too_slow(
                        replica,
                        "what came while it loaded is more than `spool.stream`, or the disk does not take it in time",
                    );
                }
            }
        }
    }

    /// Drops replicas that have been silent or behind for too long; called every second.
    pub fn look_after_replicas(&self) {
        let now = Instant::now();
        let current = self.current.borrow();
        let published = current.backlog.published();
        for replica in current.replicas.values() {
            // A file that is on its way has whoever waits for it heard, or not.
            let is_due = replica.phase.get() != Phase::Waiting || !current.fetching;
            if replica.acknowledges && is_due && now - replica.heard.get() > self.settings().checked.timeout {
                // One that waits has nothing to say, and one of these that lives comes back at once.
                replica.drop_for(match replica.phase.get() {
                    Phase::Waiting => {
                        "it waited for longer than `limits.timeout`, and comes back if it lives"
                    }
                    Phase::Loading | Phase::Online => "it was silent for longer than `limits.timeout`",
                });
            }
            let behind = published.saturating_sub(replica.next.get());
            if replica.phase.get() != Phase::Online || behind <= self.settings().checked.behind_soft {
                replica.behind_since.set(None);
            } else {
                let since = replica.behind_since.get().unwrap_or(now);
                replica.behind_since.set(Some(since));
                if now - since > self.settings().checked.behind_time {
                    self.too_slow(
                        replica,
                        "it was further behind than `limits.replica_behind_soft` for `limits.replica_behind_time`",
                    );
                }
            }
        }
    }

    /// What a restarted relay has to know so that every replica of now can resume, and whom it follows.
    fn state(&self) -> state::State {
        let current = self.current.borrow();
        let start = current.backlog.start();
        let places = current.replicas.values().filter_map(|replica| replica.place());
        let near = current.boundary.saturating_sub(NEAR);
        let away = current.away.values().filter(|(place, left)| *place >= near && left.elapsed() < BACK);
        let places = places.chain(away.map(|(place, _)| *place));
        // A replica whose place has left the window is given a file in any case. The window's own beginning is the middle of
        // a command, from which nothing can go on.
        let next = places.filter(|place| *place >= start).fold(current.boundary, u64::min);
        let position = current.id.map(|id| state::Position {
            id,
            second_id: current.second_id,
            second_offset: current.second_offset,
            next,
            end: current.boundary.max(next),
        });
        state::State {
            position,
            master: current.is_told.then(|| current.master.clone()),
            is_meant: current.is_meant,
            left: current.histories_left.clone(),
        }
    }

    /// Keeps the state, where there is a file for it and it has changed, with another master where one is `told`. One call
    /// at a time, so that none replaces what a later one has written.
    async fn keep_state(&self, told: Option<&Told>) -> io::Result<()> {
        let mut kept = self.kept.lock().await;
        let mut state = self.state();
        if let Some(told) = told {
            state.master = told.is_told.then(|| told.master.clone());
            state.is_meant = true;
        }
        if let Some(path) = &self.settings().config.spool.state_file
            && *kept != state
        {
            if let Err(error) = state::save(path, &state).await {
                count(&self.counters.state_failures, 1);
                return Err(error);
            }
            *kept = state;
        }
        Ok(())
    }

    /// The master at `address` is followed, and if REPLICAOF named it, that is what was meant: its history is no longer one
    /// that was left, and what comes after it is not meant.
    pub fn has_come_to(&self, address: &str) {
        let mut current = self.current.borrow_mut();
        if current.is_meant && current.master == address {
            current.is_meant = false;
            let id = current.id;
            current.histories_left.retain(|left| Some(left.id) != id);
            self.save.notify_one();
        }
    }

    /// Whether `address` is the relay's own. One that only leads to it, as through an address translation, shows itself by
    /// its run once it is connected to.
    pub async fn is_itself(&self, address: &str) -> bool {
        let (Some(bound), Some((host, port))) = (self.bound.get(), address.rsplit_once(':')) else {
            return false;
        };
        let port = port.parse().unwrap_or(0);
        if self.settings().config.listen.announce_address.as_deref() == Some(host) && port == self.port.get()
        {
            return true;
        }
        if port != bound.port() {
            return false;
        }
        // A name that is not found now is followed when it is.
        match timeout(LOOK_UP, names::look_up(address)).await {
            Ok(Ok(found)) => found.iter().any(|found| is_own(found.ip(), bound.ip())),
            _ => false,
        }
    }

    /// Follows another master from here on, also after a crash, and whatever its history is. Where it follows it already,
    /// that changes nothing, which the answer is. One call at a time: what one answers holds for what is on disk, whoever asks meanwhile.
    pub async fn follow(&self, master: String) -> io::Result<bool> {
        let _one = self.following.lock().await;
        let is_told = master != self.settings().config.master.address;
        let is_other = {
            let current = self.current.borrow();
            let is_other = current.master != master;
            if !is_other && matches!(current.link, LinkState::Synchronising | LinkState::Up) {
                return Ok(false);
            }
            is_other
        };
        let told = Told { master, is_told };
        self.keep_state(Some(&told)).await?;
        // Nobody sees the new master with the link to the old one.
        let mut current = self.current.borrow_mut();
        (current.master, current.is_told, current.is_meant) = (told.master, is_told, true);
        if is_other {
            (current.link, current.trouble) = (LinkState::Down, None);
            self.retarget.notify_one();
        }
        Ok(true)
    }

    /// Keeps the state, and says it where that fails, once for each reason.
    pub async fn keep_state_or_say(&self) {
        let failed = self.keep_state(None).await.err().map(|error| error.to_string());
        let was = self.unkept.replace(failed.clone());
        match (was, failed) {
            (was, Some(error)) if was.as_ref() != Some(&error) => {
                log::line(&format!("the position cannot be kept: {error}; the relay goes on trying"));
            }
            (Some(_), None) => log::line("the position is kept again"),
            _ => {}
        }
    }
}

fn check_directories(config: &Config) -> Result<(), RelayError> {
    if let Some(path) = &config.spool.state_file {
        crate::spool::nameless(state::folder(path))
            .map_err(|cause| RelayError::State { path: path.display().to_string(), cause })?;
    }
    let directory = &config.spool.directory;
    crate::spool::nameless(directory)
        .map_err(|cause| RelayError::Spool { directory: directory.display().to_string(), cause })?;
    if statfs(directory).is_ok_and(|found| found.filesystem_type() == TMPFS_MAGIC) {
        log::line(&format!(
            "{} is memory (tmpfs), which the master's file will take; set `spool.directory` to a directory on a disk",
            directory.display()
        ));
    }
    Ok(())
}

/// Whether who connects to `address` comes to what listens on `bound`, the port being the same.
fn is_own(address: IpAddr, bound: IpAddr) -> bool {
    let (address, bound) = (address.to_canonical(), bound.to_canonical());
    match bound.is_unspecified() {
        // Every address of this machine, which are those that can be bound to.
        true => UdpSocket::bind((address, 0)).is_ok(),
        false => address == bound || address.is_unspecified() && bound.is_loopback(),
    }
}

/// 40 hexadecimal digits that another run will not have.
fn run_id() -> String {
    use std::hash::{BuildHasher, Hasher, RandomState};
    // Each state is made of other random keys than the last.
    let words: Vec<String> =
        (0..3).map(|_| format!("{:016x}", RandomState::new().build_hasher().finish())).collect();
    words.concat()[..40].to_string()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::replica::{Dropped, JOINING};
    use std::future::Future;
    use std::net::TcpStream;
    use tokio::task::LocalSet;

    /// Takes `bytes` more of the stream, of which all before `published` may be given on.
    pub fn take(relay: &Relay, bytes: usize, published: u64) {
        {
            let mut current = relay.current.borrow_mut();
            current.backlog.room().extend(vec![b'x'; bytes]);
            current.backlog.received();
        }
        relay.publish(published);
    }

    /// A replica of a test in this phase.
    pub fn replica(relay: &Relay, number: u64, phase: Phase) -> Rc<Replica> {
        replica_that(relay, number, phase, true)
    }

    /// One that says how far it is, or not.
    pub fn replica_that(relay: &Relay, number: u64, phase: Phase, acknowledges: bool) -> Rc<Replica> {
        let replica = Rc::new(Replica {
            acknowledges,
            next: Cell::new(1),
            phase: Cell::new(phase),
            ..Replica::new(number, "127.0.0.1", 1, "default")
        });
        relay.current.borrow_mut().replicas.insert(number, replica.clone());
        replica
    }

    /// One whose window is 64 KiB and whose disk is a folder that goes with what is returned.
    fn relay_of_a_small_window() -> (Rc<Relay>, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let mut config = Config::of("127.0.0.1:6379", "127.0.0.1:0");
        config.spool.directory = directory.path().into();
        config.limits.backlog = "64KiB".into();
        (Relay::new(config).unwrap(), directory)
    }

    #[test]
    fn a_history_that_starts_again_or_is_renamed_drops_those_alone_who_have_some_of_it() {
        let id = |digit: &str| digit.repeat(40).parse::<ReplicationId>().expect("an id");
        for renamed in [false, true] {
            let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
            relay.restart(id("a"), 0);
            let all = [Phase::Waiting, Phase::Loading, Phase::Online];
            let all = [1, 2, 3].map(|number| replica(&relay, number, all[number as usize - 1]));
            match renamed {
                true => relay.rename(id("b")),
                false => relay.restart(id("b"), 0),
            }
            assert_eq!([0, 1, 2].map(|index: usize| all[index].dropped.get().is_some()), [false, true, true]);
        }
    }

    /// A replica that waits again has nothing that could be of no use, and still has to go where its user has to.
    #[test]
    fn who_has_to_go_goes_whatever_it_waits_for() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        let replica = replica(&relay, 1, Phase::Loading);
        replica.loses("of its file");
        assert_eq!(replica.dropped.get(), Some(Dropped::Given("of its file")));
        replica.loses("of another");
        replica.drop_for("of its user");
        replica.loses("of a third");
        assert_eq!(replica.dropped.get(), Some(Dropped::Itself("of its user")));
    }

    /// The window is smaller than some commands are, and the stream can only go on from where one began.
    #[test]
    fn a_command_that_is_longer_than_the_window_is_asked_for_from_its_beginning() {
        let mut config = Config::of("127.0.0.1:6379", "127.0.0.1:0");
        config.limits.backlog = "64KiB".into();
        let relay = Relay::new(config).unwrap();
        relay.restart("a".repeat(40).parse().unwrap(), 0);
        take(&relay, 54, 55);
        relay.current.borrow_mut().boundary = 55;
        for index in 1..=9 {
            take(&relay, 16 << 10, 55 + (index << 14));
        }
        assert!(relay.current.borrow().backlog.start() > 55, "its beginning has left the window");
        let position = relay.state().position.expect("a position");
        assert_eq!((position.next, position.end), (55, 55));
        relay.close_unfinished();
        let current = relay.current.borrow();
        assert_eq!((current.backlog.start(), current.backlog.end(), *relay.published.borrow()), (55, 55, 55));
    }

    /// Where the window begins is the middle of a command, and no place to go on from; a replica that needs a file in any case
    /// moves nobody else's place.
    #[tokio::test]
    async fn a_replica_that_the_window_has_left_is_in_nobodys_position() {
        let (relay, _directory) = relay_of_a_small_window();
        let all = LocalSet::new();
        let _entered = all.enter();
        relay.restart("a".repeat(40).parse().unwrap(), 0);
        let (loading, online) = (replica(&relay, 1, Phase::Loading), replica(&relay, 2, Phase::Online));
        loading.given.set(Some(100));
        online.given.set(Some(100));
        for index in 1..=9 {
            take(&relay, 16 << 10, 1 + (index << 14));
        }
        relay.current.borrow_mut().boundary = 1 + (9 << 14);
        online.acknowledged.set(140_000);
        assert!((101..140_001).contains(&relay.current.borrow().backlog.start()));
        let position = relay.state().position.expect("a position");
        assert_eq!((position.next, position.end), (140_001, 1 + (9 << 14)));
    }

    /// OK says that it is on disk, to each who asks and whatever others ask meanwhile.
    #[tokio::test]
    async fn replicaof_is_answered_by_what_is_on_disk() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("place");
        std::fs::create_dir(&place).unwrap();
        let mut config = Config::of("127.0.0.1:6379", "127.0.0.1:0");
        config.spool.directory = folder.path().into();
        config.spool.state_file = Some(place.join("state"));
        let relay = Relay::new(config).unwrap();
        let up = || {
            relay.current.borrow_mut().link = LinkState::Up;
        };
        let shown = || (relay.current.borrow().master.clone(), relay.current.borrow().link);
        let (a, b) = ("127.0.0.1:1".to_string(), "127.0.0.1:2".to_string());
        std::fs::remove_dir(&place).unwrap();
        up();
        let both = tokio::join!(relay.follow(a.clone()), relay.follow(a.clone()));
        assert!(both.0.is_err() && both.1.is_err(), "{both:?}");
        assert_eq!(shown(), ("127.0.0.1:6379".to_string(), LinkState::Up));
        assert_eq!(relay.counters.state_failures.get(), 2);
        std::fs::create_dir(&place).unwrap();
        let asking = relay.follow(a.clone());
        let mut asking = std::pin::pin!(asking);
        std::future::poll_fn(|context| {
            assert!(asking.as_mut().poll(context).is_pending(), "the disk has not answered");
            std::task::Poll::Ready(())
        })
        .await;
        assert_eq!(shown(), ("127.0.0.1:6379".to_string(), LinkState::Up), "nobody sees what is not on disk");
        asking.await.unwrap();
        assert_eq!(shown(), (a, LinkState::Down), "nor the new master with the old one's link");
        up();
        tokio::join!(relay.follow(b.clone()), relay.follow(b.clone())).0.unwrap();
        let kept = state::load(&place.join("state")).unwrap();
        assert_eq!((kept.master, kept.is_meant), (Some(b), true));
    }

    #[test]
    fn what_is_published_is_with_replicas_that_take_it_and_left_to_the_connections_of_others() {
        let relay = Relay::new(Config::of("127.0.0.1:6379", "127.0.0.1:0")).unwrap();
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        near.set_nonblocking(true).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        let replica = replica(&relay, 1, Phase::Online);
        let other = replica_that(&relay, 2, Phase::Waiting, true);
        replica.socket.replace(Some(near));
        take(&relay, 100, 101);
        assert_eq!(replica.next.get(), 1, "its connection has something to write first");
        replica.is_clear.set(true);
        // 20 B of these are the begin of a command.
        take(&relay, 50, 131);
        assert_eq!((replica.next.get(), other.next.get(), replica.is_clear.get()), (131, 1, true));
        let mut found = vec![0; 130];
        std::io::Read::read_exact(&mut far, &mut found).unwrap();
        assert!(found.iter().all(|byte| *byte == b'x'));
        // One that does not read is full at some point, and then its connection waits for room.
        let mut published = 131;
        while replica.is_clear.get() && published < 64 << 20 {
            published += 16 << 10;
            take(&relay, 16 << 10, published);
        }
        assert!(!replica.is_clear.get() && replica.next.get() < published, "{published} B fit a socket");
        let sent = replica.next.get();
        take(&relay, 16 << 10, published + (16 << 10));
        assert_eq!(replica.next.get(), sent, "in order, so nothing goes past what waits");
        replica.socket.take();
        drop(relay);
        let mut rest = Vec::new();
        drop(replica);
        std::io::Read::read_to_end(&mut far, &mut rest).unwrap();
        assert_eq!(rest.len() as u64, sent - 131);
    }

    /// What came from the master while a replica loaded comes faster than any replica takes it.
    #[tokio::test]
    async fn who_came_to_follow_just_now_goes_back_to_disk_and_is_not_dropped() {
        let (relay, _directory) = relay_of_a_small_window();
        let all = LocalSet::new();
        let _entered = all.enter();
        let [new, old, never] = [1, 2, 3].map(|number| replica(&relay, number, Phase::Online));
        new.joined.set(Some(Instant::now()));
        old.joined.set(Instant::now().checked_sub(JOINING));
        for index in 1..=9 {
            take(&relay, 16 << 10, (index << 14) + 1);
        }
        assert_eq!((new.phase.get(), new.dropped.get()), (Phase::Loading, None));
        assert!([&old, &never].iter().all(|one| one.dropped.get().is_some()), "the window has left them");
        let current = relay.current.borrow();
        let spill = current.spill.as_ref().expect("what has left the window is on disk");
        assert!(spill.start() <= new.next.get() && new.next.get() < current.backlog.start());
        assert_eq!(spill.start() + spill.length(), current.backlog.start(), "without a gap");
    }
}
