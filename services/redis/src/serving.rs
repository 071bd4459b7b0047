//! A replica from PSYNC to its end: the file, what came meanwhile, the stream.

use crate::connection::Connection;
use crate::counters::count;
use crate::history::ReplicationId;
use crate::log;
use crate::payload::{Form, RdbFormat};
use crate::relay::{FAILURES, Failures, LinkState, OwnAsk, Relay, SyncAnswer};
use crate::replica::{Dropped, Phase, Replica};
use crate::resp::{self, Limits, write_error};
use crate::spool::{Spool, Stage};
use crate::upstream;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant};
use tokio::sync::oneshot;
use tokio::task::spawn_local;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

/// How long a replica that is ahead of the relay waits before it gets a file instead.
const AHEAD: Duration = Duration::from_secs(5);
/// How long a replica that went back to disk may take nothing.
const STALLED: Duration = Duration::from_secs(2);
/// Bytes of a file that are read and sent at a time.
const PIECE: u64 = 256 << 10;

/// What a connection that follows the stream comes back with.
enum Event {
    /// So many bytes were read; none means the end.
    Input(usize),
    /// What came from disk has left.
    Sent,
}

/// What a replica is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// The stream, behind a file where it is needed.
    Stream,
    /// A file of now, and the end.
    File,
}

/// What a replica has said of itself.
#[derive(Clone, Debug)]
pub struct Introduction {
    /// Its address.
    pub address: String,
    /// The port it listens on.
    pub port: u16,
    /// The user that it is.
    pub user: String,
    /// Whether it takes files that end with a mark.
    pub mark: bool,
    /// Whether it takes another name of the history.
    pub psync2: bool,
    /// Its version, which Valkey says.
    pub version: Option<String>,
    /// Whether it asked by SYNC, and so expects no line before the file and says nothing of how far it is.
    pub is_old: bool,
    /// Whether it says that it is a relay.
    pub is_relay: bool,
    /// Of a relay that asked which relays it would follow, what was told: as many changes of these as there were.
    pub was_told: Option<u64>,
    /// What it is served.
    pub wanted: Wanted,
    /// The parts of the data that it wants in its file; all of them without a word on it.
    pub filter: Option<String>,
}

/// Takes the replica off the list when its connection ends, however it ends.
struct Listed<'a> {
    relay: &'a Relay,
    replica: Rc<Replica>,
}

impl Drop for Listed<'_> {
    fn drop(&mut self) {
        let replica = &self.replica;
        replica.socket.take();
        let mut current = self.relay.current.borrow_mut();
        current.replicas.remove(&replica.number);
        current.remember(replica);
        current.left = Some(Instant::now());
        let reason = replica.dropped.get().map_or("its connection ended", Dropped::reason);
        let next = replica.next.get().saturating_sub(1);
        if !current.fails(&replica.address, replica.port) {
            log::line(&format!(
                "replica {}:{} left at offset {next}: {reason}",
                replica.address, replica.port
            ));
        }
        drop(current);
        self.relay.acknowledge.notify_one();
        self.relay.tell_waiting();
    }
}

/// Takes who is given a file alone off the list when its connection ends.
struct ListedBackup<'a> {
    relay: &'a Relay,
    number: u64,
}

impl Drop for ListedBackup<'_> {
    fn drop(&mut self) {
        let ended = self.relay.current.borrow_mut().backups.remove(&self.number);
        if let Some((replica, why)) =
            ended.and_then(|replica| Some((replica.clone(), replica.dropped.get()?)))
        {
            log::line(&format!("the file for {} is not sent on: {}", replica.address, why.reason()));
        }
    }
}

/// Serves a replica that has sent PSYNC.
pub async fn serve(
    relay: &Rc<Relay>,
    mut connection: Connection,
    introduction: Introduction,
    asked: Option<(ReplicationId, u64)>,
) -> io::Result<()> {
    if let Some(reason) = relay.is_full() {
        count(&relay.counters.refused, 1);
        relay
            .noise
            .line(&format!("replica {}:{} was refused: {reason}", introduction.address, introduction.port));
        write_error(&mut connection.out, &reason);
        return connection.write().await;
    }
    if introduction.was_told.is_some_and(|told| told != relay.current.borrow().above_changes) {
        write_error(&mut connection.out, "NOMASTERLINK the relay follows others by now; ask it again");
        return connection.write().await;
    }
    let replica = introduced(relay, &introduction, asked);
    {
        let mut current = relay.current.borrow_mut();
        current.away.remove(&(replica.address.clone(), replica.port));
        current.replicas.insert(replica.number, replica.clone());
    }
    // The relay may follow nobody while there is nobody to follow for.
    relay.tell_waiting();
    let listed = Listed { relay, replica: replica.clone() };
    let mut serving = Serving { relay, replica, introduction, loading: false };
    let ended = serving.run(&mut connection, asked).await;
    drop(listed);
    ended
}

fn introduced(
    relay: &Relay,
    introduction: &Introduction,
    asked: Option<(ReplicationId, u64)>,
) -> Rc<Replica> {
    count(&relay.numbers, 1);
    let Introduction { address, port, user, .. } = introduction;
    Rc::new(Replica {
        is_relay: introduction.is_relay,
        acknowledges: !introduction.is_old,
        asked,
        ..Replica::new(relay.numbers.get(), address, *port, user)
    })
}

/// Serves who wants a file and nothing behind it, as a backup does: one that the master writes now, since the relay's
/// own may be as old as its window. It is not a replica, so nothing is acknowledged or followed for it.
pub async fn serve_file(
    relay: &Rc<Relay>,
    mut connection: Connection,
    introduction: Introduction,
) -> io::Result<()> {
    let replica = introduced(relay, &introduction, None);
    let number = replica.number;
    relay.current.borrow_mut().backups.insert(number, replica.clone());
    let _listed = ListedBackup { relay, number };
    let mut serving = Serving { relay, replica, introduction, loading: false };
    let Some(spool) = serving.own_file(&mut connection).await? else { return Ok(()) };
    serving.send_file(&mut connection, &spool).await?;
    // What was sent would be lost with a connection that is closed before all that it said was read.
    let closed = async {
        while connection.read().await.is_ok_and(|count| count > 0) {
            connection.input.clear();
        }
    };
    let _ = timeout(STALLED, closed).await;
    Ok(())
}

struct Serving<'a> {
    relay: &'a Rc<Relay>,
    replica: Rc<Replica>,
    introduction: Introduction,
    /// Whether a file was sent that the replica has not acknowledged.
    loading: bool,
}

impl Serving<'_> {
    async fn run(
        &mut self,
        connection: &mut Connection,
        asked: Option<(ReplicationId, u64)>,
    ) -> io::Result<()> {
        let answer = match self.introduction.filter {
            None => self.decide(connection, asked).await?,
            Some(_) => self.decide_for_part(connection).await?,
        };
        let Some(answer) = answer else { return Ok(()) };
        let who = format!("{}:{}", self.replica.address, self.replica.port);
        match answer {
            SyncAnswer::Wait => return Ok(()),
            SyncAnswer::Continue(from) => {
                count(&self.relay.counters.replica_partial, 1);
                // It has loaded its file, though it may have left before it said so.
                self.forget_failures();
                let id = self.relay.current.borrow().id.unwrap_or(ReplicationId::NONE);
                let line = if self.introduction.psync2 {
                    format!("+CONTINUE {id}\r\n")
                } else {
                    "+CONTINUE\r\n".into()
                };
                connection.out.extend_from_slice(line.as_bytes());
                log::line(&format!("replica {who} resumes at offset {}", from - 1));
            }
            SyncAnswer::Full(spool) => {
                if let Err(reason) = self.can_load(&spool) {
                    log::line(&format!("replica {who} was refused: {reason}"));
                    // Replicas try again later on this word, and on others ask for the old SYNC.
                    write_error(&mut connection.out, &format!("NOMASTERLINK {reason}"));
                    return self.limited(connection).await;
                }
                count(&self.relay.counters.replica_full, 1);
                if !self.relay.current.borrow().fails(&self.replica.address, self.replica.port) {
                    log::line(&format!("replica {who} gets the file of offset {}", spool.offset));
                }
                self.loading = true;
                let sent = self.send_file(connection, &spool).await;
                if sent.is_err() {
                    self.failed(&spool);
                }
                sent?;
                let followed = self.follow(connection).await;
                if self.loading && self.replica.dropped.get().is_none() {
                    self.failed(&spool);
                }
                return followed;
            }
        }
        self.follow(connection).await
    }

    /// Waits for a file that the master writes for this one alone, and shows meanwhile that the relay is alive.
    async fn own_file(&mut self, connection: &mut Connection) -> io::Result<Option<Rc<Spool>>> {
        let (give, mut taken) = oneshot::channel();
        let filter = self.introduction.filter.clone();
        self.relay.own_waiting.borrow_mut().push(OwnAsk { filter: filter.clone(), give });
        spawn_local(upstream::receive_own_file(self.relay.clone(), filter));
        let mut ticks = interval(Duration::from_secs(1));
        ticks.tick().await;
        let spool = loop {
            tokio::select! {
                taken = &mut taken => break taken.unwrap_or_else(|_| Err("the relay is ending".to_string())),
                _ = ticks.tick() => {
                    self.blank(connection).await?;
                    // Its file would begin anew with its return.
                    self.replica.heard.set(Instant::now());
                }
                () = self.replica.wake.notified() => return Ok(None),
                read = connection.read() => {
                    if read? == 0 || connection.input.len() > Limits::CLIENT.bytes {
                        return Ok(None);
                    }
                }
            }
        };
        let who = &self.replica.address;
        match spool {
            Ok(spool) => {
                log::line(&format!("{who} gets a file of its own, of offset {}", spool.offset));
                Ok(Some(spool))
            }
            Err(reason) => {
                log::line(&format!("no file for {who}: {reason}"));
                write_error(&mut connection.out, &format!("NOMASTERLINK {reason}"));
                self.limited(connection).await.map(|()| None)
            }
        }
    }

    /// The stream behind a file with a part of the data, once the relay has that stream.
    async fn decide_for_part(&mut self, connection: &mut Connection) -> io::Result<Option<SyncAnswer>> {
        let mut changed = self.relay.changed.subscribe();
        let mut ticks = interval(Duration::from_secs(1));
        ticks.tick().await;
        while self.relay.current.borrow().link != LinkState::Up {
            tokio::select! {
                _ = changed.changed() => {}
                _ = ticks.tick() => self.blank(connection).await?,
                () = self.replica.wake.notified() => return Ok(None),
                read = connection.read() => {
                    if read? == 0 || connection.input.len() > Limits::CLIENT.bytes {
                        return Ok(None);
                    }
                }
            }
        }
        let Some(spool) = self.own_file(connection).await? else { return Ok(None) };
        if !self.relay.goes_on_from(&spool) {
            // It comes back, as from a master that it lost.
            return Ok(None);
        }
        self.replica.next.set(spool.offset + 1);
        self.replica.heard.set(Instant::now());
        self.replica.phase.set(Phase::Loading);
        Ok(Some(SyncAnswer::Full(spool)))
    }

    async fn limited(&self, connection: &mut Connection) -> io::Result<()> {
        match timeout(self.relay.settings().checked.timeout, connection.write()).await {
            Ok(written) => written,
            Err(_) => {
                self.replica.drop_for("it took no bytes for longer than `limits.timeout`");
                Err(io::ErrorKind::TimedOut.into())
            }
        }
    }

    /// Waits for the stream or a file, and shows meanwhile that the relay is alive.
    async fn decide(
        &mut self,
        connection: &mut Connection,
        asked: Option<(ReplicationId, u64)>,
    ) -> io::Result<Option<SyncAnswer>> {
        let mut began = Instant::now();
        let mut changed = self.relay.changed.subscribe();
        let mut published = self.relay.published.subscribe();
        let mut ticks = interval(Duration::from_secs(1));
        ticks.tick().await;
        loop {
            changed.borrow_and_update();
            published.borrow_and_update();
            // What it waits for is the stream, which has to come first.
            if self.relay.current.borrow().link != LinkState::Up {
                began = Instant::now();
            }
            let patient = began.elapsed() < AHEAD;
            match self.relay.answer(asked, patient) {
                SyncAnswer::Continue(from) => {
                    self.replica.next.set(from);
                    self.replica.given.set(Some(from - 1));
                    self.replica.heard.set(Instant::now());
                    self.replica.joined.set(Some(Instant::now()));
                    self.replica.phase.set(Phase::Online);
                    return Ok(Some(SyncAnswer::Continue(from)));
                }
                SyncAnswer::Full(spool) => {
                    // From here on the stream behind the file is kept for this replica.
                    self.replica.next.set(spool.offset + 1);
                    self.replica.heard.set(Instant::now());
                    self.replica.phase.set(Phase::Loading);
                    let mut stage = spool.watch();
                    while self.waits_for_format(&spool) && stage.borrow_and_update().0 == Stage::Receiving {
                        if !self.waits_for(stage.changed(), connection, &mut ticks).await? {
                            return Ok(None);
                        }
                    }
                    if stage.borrow().0 != Stage::Failed {
                        return Ok(Some(SyncAnswer::Full(spool)));
                    }
                    self.replica.phase.set(Phase::Waiting);
                }
                SyncAnswer::Wait => {}
            }
            tokio::select! {
                _ = changed.changed() => {}
                _ = published.changed(), if asked.is_some() && patient => {}
                _ = ticks.tick() => self.blank(connection).await?,
                read = connection.read() => {
                    if read? == 0 || connection.input.len() > Limits::CLIENT.bytes {
                        return Ok(None);
                    }
                }
                () = self.replica.wake.notified() => {
                    if matches!(self.replica.dropped.get(), Some(Dropped::Itself(_))) {
                        return Ok(None);
                    }
                    // It was dropped in the moment in which the file that it was to get failed.
                    self.replica.dropped.set(None);
                }
            }
        }
    }

    /// Waits for the next of a file that it is to get, for which it is the relay that has it wait: meanwhile the relay shows
    /// each second that it is alive, and hears what it says. Whether it may go on, and is not dropped.
    async fn waits_for<T>(
        &mut self,
        next: impl Future<Output = T>,
        connection: &mut Connection,
        ticks: &mut Interval,
    ) -> io::Result<bool> {
        let mut next = pin!(next);
        loop {
            tokio::select! {
                _ = &mut next => {
                    self.replica.heard.set(Instant::now());
                    return Ok(true);
                }
                _ = ticks.tick() => {
                    self.blank(connection).await?;
                    self.replica.heard.set(Instant::now());
                }
                // One that is gone is one less to receive the file for.
                read = connection.read() => {
                    if read? == 0 {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                    self.listen(connection)?;
                }
                () = self.replica.wake.notified() => return Ok(false),
            }
        }
    }

    /// Replicas take an empty line for a sign of life before the reply and before the file.
    async fn blank(&self, connection: &mut Connection) -> io::Result<()> {
        connection.out.push(b'\n');
        self.limited(connection).await
    }

    /// Whether it has to be known who wrote the file before the replica hears of it. Only a relay that announces a version
    /// gets one that not everybody loads, and the first bytes of a file may take their time.
    fn waits_for_format(&self, spool: &Spool) -> bool {
        self.relay.settings().config.master.announce_version.is_some() && spool.format().is_none()
    }

    /// Refuses a file that the replica is known not to load.
    fn can_load(&self, spool: &Spool) -> Result<(), String> {
        let Some(format) = spool.format() else { return Ok(()) };
        let readers = format.readers();
        if matches!(format, RdbFormat::Valkey(_)) {
            let major = self
                .introduction
                .version
                .as_deref()
                .and_then(|text| text.split('.').next()?.parse::<u32>().ok());
            if major.is_none_or(|major| major < 9) {
                return Err(format!(
                    "the master's file is {format}, which only {readers} load; remove \
                     `master.announce_version` from the relay's configuration, or use such a replica"
                ));
            }
        }
        Ok(())
    }

    /// Notes that a replica left without having loaded its file. That is said and nothing more: the address and the
    /// port are what anybody may announce, and the file costs the master nothing.
    fn failed(&self, spool: &Spool) {
        if spool.stage().0 == Stage::Failed || *self.relay.ending.borrow() || self.replica.port == 0 {
            return;
        }
        let key = (self.replica.address.clone(), self.replica.port);
        let mut current = self.relay.current.borrow_mut();
        if current.failures.len() > 1_000 {
            current.failures.clear();
        }
        let failures = current.failures.entry(key).or_insert(Failures { count: 0, last: Instant::now() });
        *failures = Failures { count: failures.count.saturating_add(1), last: Instant::now() };
        if failures.count == FAILURES {
            let format = spool.format().map(|format| format.to_string()).unwrap_or_default();
            let readers = spool.format().map_or("its readers", |format| format.readers());
            log::line(&format!(
                "replica {}:{} left {FAILURES} times without loading the file {format}; {readers} load it. What it tries \
                 from here on is counted and not said, until it loads one",
                self.replica.address, self.replica.port
            ));
        }
    }

    async fn send_file(&mut self, connection: &mut Connection, spool: &Spool) -> io::Result<()> {
        if !self.introduction.is_old {
            let id = match self.introduction.wanted {
                Wanted::Stream => self.relay.current.borrow().id.unwrap_or(spool.id),
                Wanted::File => spool.id,
            };
            connection.out.extend_from_slice(format!("+FULLRESYNC {id} {}\r\n", spool.offset).as_bytes());
            self.limited(connection).await?;
        }
        let mut stage = spool.watch();
        let mut ticks = interval(Duration::from_secs(1));
        ticks.tick().await;
        let form = loop {
            let (now, _) = *stage.borrow_and_update();
            match spool.form() {
                _ if now == Stage::Failed => {
                    self.replica.loses("the file that it was to get broke off");
                    return self.cut();
                }
                Some(form) => break form,
                None if self.waits_for(stage.changed(), connection, &mut ticks).await? => {}
                None => return self.cut(),
            }
        };
        let mark = match form {
            Form::Mark(mark) if self.introduction.mark && spool.stage().0 == Stage::Receiving => Some(mark),
            _ => None,
        };
        if self.introduction.is_old && mark.is_none() {
            // It does not say when it has loaded.
            self.loading = false;
        }
        match (mark, form) {
            (Some(mark), _) => {
                connection.out.extend_from_slice(b"$EOF:");
                connection.out.extend_from_slice(&mark);
                connection.out.extend_from_slice(b"\r\n");
            }
            (None, Form::Length(length)) => {
                connection.out.extend_from_slice(format!("${length}\r\n").as_bytes());
            }
            (None, Form::Mark(_)) => {
                // The length is known when the file is complete.
                while stage.borrow_and_update().0 == Stage::Receiving {
                    if !self.waits_for(stage.changed(), connection, &mut ticks).await? {
                        return self.cut();
                    }
                }
                if spool.stage().0 == Stage::Failed {
                    return self.cut();
                }
                connection.out.extend_from_slice(format!("${}\r\n", spool.stage().1).as_bytes());
            }
        }
        let mut at = 0;
        loop {
            let (now, written) = *stage.borrow_and_update();
            if at < written {
                let piece = spool.read(at, (written - at).min(PIECE) as usize).await?;
                at += piece.len() as u64;
                count(&self.relay.counters.file_bytes_out, piece.len() as u64);
                if connection.has_output() {
                    connection.out.extend_from_slice(&piece);
                } else {
                    connection.out = piece;
                }
                tokio::select! {
                    sent = self.limited(connection) => sent?,
                    () = self.replica.wake.notified() => return self.cut(),
                }
                self.replica.heard.set(Instant::now());
                continue;
            }
            match now {
                Stage::Complete => break,
                Stage::Failed => {
                    self.replica.loses("the file that it was to get broke off");
                    return self.cut();
                }
                Stage::Receiving => tokio::select! {
                    _ = stage.changed() => self.replica.heard.set(Instant::now()),
                    () = self.replica.wake.notified() => return self.cut(),
                },
            }
        }
        if let Some(mark) = mark {
            connection.out.extend_from_slice(&mark);
            self.limited(connection).await?;
        }
        // It may load the file without the relay, and resume behind it.
        self.replica.given.set(Some(spool.offset));
        if mark.is_some() {
            // Whatever followed the mark at once would be taken for a part of the file.
            while self.loading {
                tokio::select! {
                    read = connection.read() => {
                        if read? == 0 {
                            return Err(io::ErrorKind::UnexpectedEof.into());
                        }
                        self.listen(connection)?;
                    }
                    () = self.replica.wake.notified() => return self.cut(),
                }
            }
        }
        Ok(())
    }

    fn cut(&self) -> io::Result<()> {
        Err(io::ErrorKind::ConnectionReset.into())
    }

    /// Takes what the replica says: acknowledgements, and empty lines while it loads.
    fn listen(&mut self, connection: &mut Connection) -> io::Result<()> {
        self.replica.heard.set(Instant::now());
        let mut used = 0;
        loop {
            match resp::request(&connection.input[used..], Limits::STRANGER) {
                Ok(Some((request, taken))) => {
                    used += taken;
                    let word = |index: usize| request.get(index).map(Vec::as_slice).unwrap_or_default();
                    let is = |index: usize, name: &[u8]| word(index).eq_ignore_ascii_case(name);
                    let offset = |index: usize| std::str::from_utf8(word(index)).ok()?.parse().ok();
                    if request.is_empty() {
                        self.relay.lives(&self.replica);
                    } else if is(0, b"REPLCONF")
                        && is(1, b"ACK")
                        && let Some(acknowledged) = offset(2)
                    {
                        self.loaded();
                        let fsynced = if is(3, b"FACK") { offset(4) } else { None };
                        if self.replica.acknowledges {
                            self.relay.acknowledged(&self.replica, acknowledged, fsynced);
                        }
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    count(&self.relay.counters.refused, 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            }
        }
        connection.input.drain(..used);
        Ok(())
    }

    fn loaded(&mut self) {
        if self.loading {
            self.loading = false;
            self.forget_failures();
        }
    }

    fn forget_failures(&self) {
        let key = (self.replica.address.clone(), self.replica.port);
        self.relay.current.borrow_mut().failures.remove(&key);
    }

    /// Sends the stream, from disk until memory has it, then from memory.
    async fn follow(&mut self, connection: &mut Connection) -> io::Result<()> {
        let relay = self.relay.clone();
        let replica = self.replica.clone();
        if !relay.is_short_of_descriptors() {
            replica.socket.replace(connection.socket());
        }
        let mut ticks = interval(Duration::from_secs(1));
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut moved = Instant::now();
        loop {
            if replica.dropped.get().is_some() {
                return Ok(());
            }
            self.catch_up(connection).await?;
            let event = poll_fn(|context| {
                replica.is_clear.set(false);
                loop {
                    if connection.has_output() {
                        match connection.poll_output(context) {
                            Poll::Ready(Ok(())) if replica.phase.get() == Phase::Loading => {
                                moved = Instant::now();
                                return Poll::Ready(Ok(Event::Sent));
                            }
                            Poll::Ready(Ok(())) => {}
                            Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                            Poll::Pending => break,
                        }
                    }
                    // Bytes behind the end of its history would cost it the place to resume at.
                    if replica.dropped.get().is_some() {
                        return Poll::Ready(Ok(Event::Input(0)));
                    }
                    let written = {
                        let current = relay.current.borrow();
                        let slices = current.backlog.slices(replica.next.get());
                        if slices.is_empty() { None } else { Some(connection.poll_slices(context, &slices)) }
                    };
                    match written {
                        Some(Poll::Ready(Ok(0))) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                        Some(Poll::Ready(Ok(taken))) => {
                            count(&relay.counters.stream_bytes_out, taken as u64);
                            replica.next.set(replica.next.get() + taken as u64);
                            moved = Instant::now();
                            if replica.phase.get() == Phase::Loading {
                                // It may have come near enough to follow the window.
                                return Poll::Ready(Ok(Event::Sent));
                            }
                        }
                        Some(Poll::Ready(Err(error))) => return Poll::Ready(Err(error)),
                        Some(Poll::Pending) => break,
                        None => {
                            if let Poll::Ready(Err(error)) = connection.poll_flush(context) {
                                return Poll::Ready(Err(error));
                            }
                            moved = Instant::now();
                            replica.is_clear.set(true);
                            break;
                        }
                    }
                }
                connection.poll_input(context).map_ok(Event::Input)
            });
            tokio::select! {
                biased;
                event = event => match event? {
                    Event::Input(0) => return Ok(()),
                    Event::Input(_) => self.listen(connection)?,
                    Event::Sent => {}
                },
                () = replica.more.notified() => {}
                () = replica.wake.notified() => {}
                _ = ticks.tick() => {
                    // One that loads takes nothing for a while, and says that it is alive.
                    let silent = replica.heard.get().elapsed();
                    if moved.elapsed().min(silent) > relay.settings().checked.timeout {
                        replica.drop_for("it took no bytes for longer than `limits.timeout`");
                    }
                    // One that went back to disk keeps up, or is as slow as any other that does not.
                    let went_back = replica.phase.get() == Phase::Loading && replica.joined.get().is_some();
                    if went_back && moved.elapsed() > STALLED {
                        relay.too_slow(&replica, "it went back to disk, and took nothing of that for 2 s");
                    }
                }
            }
        }
    }

    /// Prepares what has left memory meanwhile; after that the replica follows the window.
    async fn catch_up(&mut self, connection: &mut Connection) -> io::Result<()> {
        if self.replica.phase.get() != Phase::Loading || connection.has_output() {
            return Ok(());
        }
        let next = self.replica.next.get();
        let (start, spill) = {
            let current = self.relay.current.borrow();
            (current.backlog.start(), current.spill.clone())
        };
        if next >= start {
            // Until it acknowledges, its socket may take bytes that it does not read before it has
            // loaded its file, so what leaves memory is still kept for it. And until it is well within
            // its limit: at the edge, the next block that leaves would show it as too slow.
            let published = self.relay.current.borrow().backlog.published();
            let near = published.saturating_sub(next) <= self.relay.settings().checked.behind / 2;
            if !self.loading && near {
                self.replica.joined.set(Some(Instant::now()));
                self.replica.phase.set(Phase::Online);
                // The acknowledgement that showed it may be the one that the master waits for.
                self.relay.tell_master();
            }
            return Ok(());
        }
        let Some(spill) = spill.filter(|spill| spill.start() <= next) else {
            self.replica.loses("the stream behind its file is no longer kept");
            return Ok(());
        };
        let piece = spill.read(next).await?;
        count(&self.relay.counters.stream_bytes_out, piece.len() as u64);
        self.replica.next.set(next + piece.len() as u64);
        connection.out = piece;
        Ok(())
    }
}
