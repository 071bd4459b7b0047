//! What is known of one replica.

use crate::backlog::Backlog;
use crate::counters::{Counters, count};
use crate::history::ReplicationId;
use std::cell::{Cell, RefCell};
use std::io::Write;
use std::net::TcpStream;
use std::time::{Duration, Instant};
use tokio::sync::Notify;

/// For how long a replica that was heard is taken to live, where the master has asked: replicas speak every second.
pub const LIVES: Duration = Duration::from_secs(1);
/// For how long a replica that came to follow the window may go back to disk rather than be dropped.
pub const JOINING: Duration = Duration::from_secs(10);

/// Where a replica is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It has asked and waits for the file or for the stream.
    Waiting,
    /// It receives or loads the file, or what came meanwhile.
    Loading,
    /// It follows the stream.
    Online,
}

/// Why a replica is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// What it was given of a file or of the stream is of no use any more. One that waits again has nothing of it.
    Given(&'static str),
    /// It has to go, whether it waits or not.
    Itself(&'static str),
}

impl Dropped {
    /// In words.
    pub fn reason(self) -> &'static str {
        match self {
            Dropped::Given(reason) | Dropped::Itself(reason) => reason,
        }
    }
}

/// One replica.
#[derive(Debug)]
pub struct Replica {
    /// A number that no other connection has.
    pub number: u64,
    /// Its address, as it announced it or as it connected.
    pub address: String,
    /// The port that it announced.
    pub port: u16,
    /// The user that it is.
    pub user: String,
    /// Whether it says that it is a relay.
    pub is_relay: bool,
    /// Whether it says how far it is; who asks by SYNC does not.
    pub acknowledges: bool,
    /// The offset that it acknowledged last; 0 before the first acknowledgement of this connection.
    pub acknowledged: Cell<u64>,
    /// The offset that it has on disk, where it says one.
    pub fsynced: Cell<Option<u64>>,
    /// When it acknowledged last, or said while it loaded that it lives.
    pub lived: Cell<Option<Instant>>,
    /// The offset that it had when it resumed, or that of the file it was sent in full: where it may
    /// come back from before it acknowledges.
    pub given: Cell<Option<u64>>,
    /// The next byte of the stream to send to it.
    pub next: Cell<u64>,
    /// What it asked for to go on from: a byte of a history.
    pub asked: Option<(ReplicationId, u64)>,
    /// Where it is in its life.
    pub phase: Cell<Phase>,
    /// When it was heard last.
    pub heard: Cell<Instant>,
    /// When it came to follow the window: from its file, or from where it had left.
    pub joined: Cell<Option<Instant>>,
    /// Since when it is further behind than the soft limit.
    pub behind_since: Cell<Option<Instant>>,
    /// Why it is to be dropped.
    pub dropped: Cell<Option<Dropped>>,
    /// Wakes its connection to see that it is dropped.
    pub wake: Notify,
    /// Wakes its connection to send more of the stream.
    pub more: Notify,
    /// Its socket a second time, where what is published is written to it at once.
    pub socket: RefCell<Option<TcpStream>>,
    /// Whether its connection has nothing left to write, so that the stream may be.
    pub is_clear: Cell<bool>,
}

impl Replica {
    /// One that waits and has nothing yet.
    pub fn new(number: u64, address: &str, port: u16, user: &str) -> Replica {
        Replica {
            number,
            address: address.to_string(),
            port,
            user: user.to_string(),
            is_relay: false,
            acknowledges: true,
            acknowledged: Cell::new(0),
            fsynced: Cell::new(None),
            lived: Cell::new(None),
            given: Cell::new(None),
            next: Cell::new(0),
            asked: None,
            phase: Cell::new(Phase::Waiting),
            heard: Cell::new(Instant::now()),
            joined: Cell::new(None),
            behind_since: Cell::new(None),
            dropped: Cell::new(None),
            wake: Notify::new(),
            more: Notify::new(),
            socket: RefCell::default(),
            is_clear: Cell::new(false),
        }
    }

    /// Lets one that came to follow the window just now go back to being given the stream from disk, where it has
    /// fallen behind; whether that is done. What came while it loaded may still be on its way from the master then,
    /// and comes faster than any replica takes it.
    pub fn goes_back(&self) -> bool {
        let is_new = self.joined.get().is_some_and(|joined| joined.elapsed() < JOINING);
        if is_new {
            self.phase.set(Phase::Loading);
        }
        is_new
    }

    /// Whether it was given a file or the stream.
    pub fn is_served(&self) -> bool {
        self.phase.get() != Phase::Waiting && self.dropped.get().is_none()
    }

    /// Whether it follows the stream of the current history, so that what it acknowledges counts.
    pub fn counts(&self) -> bool {
        self.acknowledges && self.phase.get() == Phase::Online && self.dropped.get().is_none()
    }

    /// The byte from which it may come back, once it was given anything.
    pub fn place(&self) -> Option<u64> {
        Some(self.given.get()?.max(self.acknowledged.get()) + 1)
    }

    /// The byte behind the last one that it is known to have: what it acknowledged, or the file that it was sent. Of one
    /// that says nothing, or is being sent its file, that is where it is in the stream.
    pub fn has_up_to(&self) -> u64 {
        match self.given.get() {
            Some(given) if self.acknowledges => given.max(self.acknowledged.get()) + 1,
            None if self.acknowledges && self.acknowledged.get() > 0 => self.acknowledged.get() + 1,
            _ => self.next.get(),
        }
    }

    /// Writes what was published behind the last byte that it was sent, where its socket takes all of it at once, and says
    /// whether it did. The rest is for its connection, which waits for room.
    pub fn write_at_once(&self, backlog: &Backlog, counters: &Counters) -> bool {
        let socket = self.socket.borrow();
        let (Some(socket), true) = (socket.as_ref(), self.is_clear.get()) else { return false };
        let slices = backlog.slices(self.next.get());
        // An error shows itself to the connection again.
        let mut writer = socket;
        let taken = if slices.is_empty() { 0 } else { writer.write_vectored(&slices).unwrap_or(0) };
        count(&counters.stream_bytes_out, taken as u64);
        self.next.set(self.next.get() + taken as u64);
        let is_done = self.next.get() == backlog.published();
        self.is_clear.set(is_done);
        is_done
    }

    /// Ends its connection, whatever it waits for.
    pub fn drop_for(&self, reason: &'static str) {
        if !matches!(self.dropped.get(), Some(Dropped::Itself(_))) {
            self.dropped.set(Some(Dropped::Itself(reason)));
            self.wake.notify_one();
        }
    }

    /// Ends its connection, unless it waits again by the time that it sees this.
    pub fn loses(&self, reason: &'static str) {
        if self.dropped.get().is_none() {
            self.dropped.set(Some(Dropped::Given(reason)));
            self.wake.notify_one();
        }
    }
}
