//! The side of the master: the relay is one replica, with a second connection where a replica needs a
//! file that the relay has not got.

use crate::counters::count;
use crate::framing::{Framer, FramingError};
use crate::handshake::{HandshakeError, MasterLink, Psync};
use crate::history::{History, ReplicationId};
use crate::log;
use crate::payload::{self, Body, Form, RdbFormat};
use crate::questions::Questions;
use crate::relay::{FAILURES, Failures, LinkState, NoFile, OwnAsk, Relay};
use crate::replica::{LIVES, Phase};
use crate::spool::{Spool, Stage};
use bytes::BufMut;
use std::cell::Cell;
use std::convert::Infallible;
use std::future::{pending, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::io::{AsyncReadExt, AsyncWrite};
use tokio::sync::Notify;
use tokio::task::yield_now;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

/// Bytes of an unfinished command or transaction that are held back; above that they are passed on,
/// so that memory stays bounded.
const HELD_BACK: u64 = 1 << 20;

/// The longest pause between two files that the disk has no room for.
const NO_ROOM: Duration = Duration::from_secs(60);

/// Bytes that are worth sending at once.
const GATHERED: u64 = 32 << 10;

/// The longest pause after a file that broke off: as often as a replica of Redis tries.
const AFTER_BREAK: Duration = Duration::from_secs(1);

/// The shortest time between the beginnings of two files beside the stream.
const BETWEEN_FILES: Duration = Duration::from_secs(1);

/// How often a master that is not followed is asked how it is.
const HELD: Duration = Duration::from_secs(1);

/// The shortest time between two times that a master is followed, where the first ended for want of a replica.
const AGAIN: Duration = Duration::from_secs(1);

/// Bytes of a piece of the stream behind which more is likely to be on its way.
const LARGE: u64 = 4 << 10;

/// For how long nothing large comes before a link begins anew, and how long that is waited for at most.
const READ_OUT: Duration = Duration::from_millis(20);
const READ_OUT_MOST: Duration = Duration::from_millis(200);

/// What may be the reason where a master of Valkey 9 ends a file in the middle.
const FIELDS: &str = "; Valkey 9 cannot write fields that expire (HEXPIRE) in the format that it is asked for, so where it has \
                      them set `master.announce_version` to its own version, for replicas that load that";

/// Why the link to the master ended.
#[derive(Debug, Error)]
enum LinkError {
    #[error("{0}")]
    Handshake(#[from] HandshakeError),
    #[error("{0}")]
    Io(#[from] io::Error),
    #[error("{0}")]
    Framing(#[from] FramingError),
    #[error("the relay follows another master")]
    Retargeted,
    #[error(
        "its history {id} is one that this relay has left, at offset {offset}, and its replicas are not taken back to \
         it; name the promoted master in the configuration or by REPLICAOF, or remove the relay's state file if it is \
         to go back"
    )]
    Left { id: ReplicationId, offset: u64 },
    #[error(
        "it follows this relay: the {length} relays of a ring have no master; name the server to relay in the configuration \
         of one of them or by REPLICAOF"
    )]
    Ring { length: usize },
    #[error("it is this relay itself; name the server to relay in the configuration or by REPLICAOF")]
    Itself,
    #[error("the master closed within its file; its log has the reason{hint}")]
    File { hint: &'static str },
    #[error(
        "the replica is gone that had what the master was told, and those that are left have not; so that WAIT counts it no more, \
         the link begins anew"
    )]
    Less,
    #[error(
        "too few replicas are behind the relay to follow it for; it is followed again for those that come"
    )]
    Alone,
    #[error(
        "the relay cannot keep the master's file in {directory}: {cause}; make room there, or set `spool.directory` to \
         a directory that has it"
    )]
    Spool { directory: String, cause: io::Error },
}

impl LinkError {
    /// What an operator can do about it, where that does not follow from the words.
    fn next_step(&self) -> &'static str {
        let reply = match self {
            LinkError::Handshake(HandshakeError::Refused { reply, .. }) => reply.as_str(),
            LinkError::Handshake(HandshakeError::Io(error)) => match error.kind() {
                io::ErrorKind::ConnectionRefused => {
                    return "; is a server running there? The relay tries again";
                }
                io::ErrorKind::ConnectionReset => return "; where it speaks TLS, set `[master.tls]`",
                _ => return "",
            },
            _ => return "",
        };
        let known = [
            ("NOAUTH", "; set `master.password` or `master.password_file`"),
            ("WRONGPASS", "; check `master.user` and its password"),
            ("NOPERM", "; give the user +psync +replconf +ping +info +client|setname at the master"),
            ("NOMASTERLINK", "; it is a replica without a link to its own master. The relay tries again"),
            ("DENIED", "; let the master listen on an address that may be used, with a password"),
        ];
        known.iter().find(|(word, _)| reply.starts_with(word)).map_or("", |(_, step)| step)
    }
}

/// Keeps the link to the master for as long as the relay runs.
pub async fn follow(relay: Rc<Relay>) {
    let mut pause = Duration::from_millis(50);
    let mut last = String::new();
    let followed = Cell::new(None);
    let begun_anew = log::Seldom::default();
    loop {
        let began = Instant::now();
        let ended = tokio::select! {
            biased;
            () = relay.retarget.notified() => Err(LinkError::Retargeted),
            ended = session(&relay, &followed) => ended,
        };
        let was = std::mem::replace(&mut relay.current.borrow_mut().link, LinkState::Down);
        let Err(error) = ended else { return };
        relay.close_unfinished();
        if matches!(error, LinkError::Framing(_)) {
            // What was received is not a stream, so it is not a base to go on from.
            let mut current = relay.current.borrow_mut();
            current.id = None;
            current.misled |= current.borrowed;
        }
        relay.tell_waiting();
        let text = format!("{error}{}", error.next_step());
        // Of a REPLICAOF it was said, and the master that it named has not been tried yet.
        let is_trouble = !matches!(error, LinkError::Retargeted);
        relay.current.borrow_mut().trouble = is_trouble.then(|| text.clone());
        // What ends a link that has lasted is news, and what a name server takes its time to say again is not.
        let has_lasted = was != LinkState::Down && began.elapsed() > Duration::from_secs(5);
        let said = format!("no link to the master {}: {text}", relay.current.borrow().master);
        let is_less = matches!(error, LinkError::Less);
        if is_trouble && (text != last || has_lasted) {
            log::line(&said);
            last = text;
        } else if is_less {
            begun_anew.line(&said);
        }
        if matches!(error, LinkError::Alone) {
            continue;
        }
        if is_less {
            count(&relay.counters.taken_back, 1);
            // A replica lives for whom the link is wanted at once.
            followed.set(None);
            continue;
        }
        // Only who was left for want of a replica waits for the next.
        followed.set(None);
        // Each time that there is no room for the file the master has written it for nothing.
        let longest = match error {
            LinkError::Spool { .. } => {
                pause = pause.max(Duration::from_secs(1));
                NO_ROOM
            }
            // As often as a replica of Redis tries.
            _ => Duration::from_secs(1),
        };
        if longest < NO_ROOM && has_lasted || matches!(error, LinkError::Retargeted) {
            pause = Duration::from_millis(50);
        }
        pause_until_reload(&relay, pause).await;
        pause = (pause * 2).min(longest);
    }
}

/// Waits, or until the configuration is read again: whoever has that done may have mended what failed.
async fn pause_until_reload(relay: &Relay, pause: Duration) {
    let mut reloads = relay.reloads.subscribe();
    let _ = timeout(pause, reloads.changed()).await;
}

/// Connects to the master and introduces the relay.
async fn open(relay: &Relay, address: &str, purpose: &str) -> Result<MasterLink, LinkError> {
    let mut link = log_in(relay, address, purpose).await?;
    let settings = relay.settings();
    let announced = settings.config.listen.announce_address.as_deref();
    link.introduce(&settings.config.master, relay.port.get(), announced).await?;
    Ok(link)
}

/// Connects to the master without a word on replication.
async fn log_in(relay: &Relay, address: &str, purpose: &str) -> Result<MasterLink, LinkError> {
    let settings = relay.settings();
    let mut link =
        MasterLink::connect(address, settings.connector.as_ref(), settings.checked.timeout).await?;
    let name = format!("offpath-relay:{}{purpose}", relay.port.get());
    link.log_in(&settings.config.master, &name).await?;
    Ok(link)
}

async fn session(relay: &Rc<Relay>, followed: &Cell<Option<Instant>>) -> Result<(), LinkError> {
    let address = relay.current.borrow().master.clone();
    let mut link = open(relay, &address, "").await?;
    let identity = link.identity().await?;
    if identity.run_id.as_ref() == Some(&relay.run_id) {
        return Err(LinkError::Itself);
    }
    relay.current.borrow_mut().identity = identity;
    let history = hold(relay, &mut link, followed.get()).await?;
    followed.set(Some(Instant::now()));
    let from = choose_start(relay, history.as_ref());
    {
        let mut current = relay.current.borrow_mut();
        (current.acknowledged, current.acknowledged_fsync) = (0, None);
        (current.raised_at, current.raised_fsync_at) = (None, None);
        current.told_at = Instant::now();
        (current.asked, current.asked_fsync) = (Questions::default(), Questions::default());
    }
    let answer = ask_to_follow(&mut link, from, &address).await?;
    match answer {
        Psync::Continue { id } => {
            count(&relay.counters.master_partial, 1);
            if let Some(id) = id {
                relay.rename(id);
            }
            let next = relay.current.borrow().backlog.end();
            log::line(&format!("the stream of {address} goes on at offset {}", next - 1));
        }
        Psync::Full { id, offset } => {
            refuse_left(relay, id)?;
            count(&relay.counters.master_full, 1);
            leave_other(relay, id);
            relay.restart(id, offset);
            {
                let mut current = relay.current.borrow_mut();
                current.link = LinkState::Synchronising;
                current.heard = Instant::now();
            }
            if let Some((asked, next)) = from {
                let why = history
                    .as_ref()
                    .map_or("it does not say why".to_string(), |one| one.refusal(asked, next));
                log::line(&format!("{address} does not go on from offset {} of {asked}: {why}", next - 1));
            }
            log::line(&format!("full synchronisation with {address} at offset {offset} of {id}"));
        }
    }
    if let Some(history) = history {
        learn_second_name(relay, &history);
    }
    relay.has_come_to(&address);
    let mut out = Outgoing { bytes: Vec::new(), sent: 0 };
    if let Psync::Full { id, offset } = answer {
        tokio::select! {
            received = receive_file(relay, &mut link, id, offset) => received?,
            () = alone(relay) => {
                // The master's child ends with the link.
                if let Some(spool) = relay.current.borrow_mut().spool.take() {
                    spool.end(Stage::Failed);
                }
                return Err(LinkError::Alone);
            }
        }
        // It starts the stream of a master that sent a file without a length. For that one moment the master takes the
        // relay for one that lives, as it does every replica that has just got its file.
        relay.replicated(&relay.current.borrow()).write(&mut out.bytes);
    }
    {
        let mut current = relay.current.borrow_mut();
        current.link = LinkState::Up;
        (current.heard, current.trouble) = (Instant::now(), None);
    }
    // Who waited for the file may be gone, and whoever had another history has yet to come back.
    if relay.is_alone() {
        return Err(LinkError::Alone);
    }
    relay.tell_waiting();
    stream(relay, link, out, matches!(answer, Psync::Full { .. })).await
}

/// Asks the master for the stream, and says it where the answer takes its time: a master waits before it writes a file.
async fn ask_to_follow(
    link: &mut MasterLink,
    from: Option<(ReplicationId, u64)>,
    address: &str,
) -> Result<Psync, HandshakeError> {
    let mut asked = pin!(link.psync(from));
    if let Ok(answer) = timeout(Duration::from_secs(1), &mut asked).await {
        return answer;
    }
    log::line(&format!(
        "waiting for {address} to begin its file, which is after `repl-diskless-sync-delay` or another child of it"
    ));
    asked.await
}

/// Waits until there is somebody to follow the master for. A master counts whoever follows it for alive, and waits for
/// it when it shuts down, so a relay that stands for no replica does not follow.
/// Nor does it come back at once to one that it has just left for want of a replica, when it `followed` that last, however
/// often replicas come and go.
async fn hold(
    relay: &Relay,
    link: &mut MasterLink,
    followed: Option<Instant>,
) -> Result<Option<History>, LinkError> {
    let mut changed = relay.changed.subscribe();
    loop {
        changed.borrow_and_update();
        let history = link.history().await?;
        if let Some(history) = &history {
            refuse_ring(relay, &history.path)?;
            refuse_left(relay, history.id)?;
            relay.current.borrow_mut().kept_above = history.kept;
        }
        let is_strict = note_strictness(relay, history.as_ref());
        let has_reason = || relay.has_reason_to_follow(is_strict) && is_for_somebody(relay, history.as_ref());
        let early = followed.map_or(Duration::ZERO, |followed| AGAIN.saturating_sub(followed.elapsed()));
        if has_reason() && early.is_zero() {
            return Ok(history);
        }
        let was = {
            let mut current = relay.current.borrow_mut();
            (current.heard, current.trouble) = (Instant::now(), None);
            std::mem::replace(&mut current.link, LinkState::Held)
        };
        if was != LinkState::Held {
            let wanted = relay.settings().config.acknowledge.quorum().unwrap_or(1);
            let master = relay.current.borrow().master.clone();
            log::line(&match wanted {
                wanted if is_strict && wanted > 1 => {
                    format!("the master {master} answers, and is followed once {wanted} replicas are here")
                }
                _ if is_strict && relay.current.borrow().has_no_file() => format!(
                    "the master {master} answers, and is followed for a replica that can resume, or for another try at its \
                     file, of which the last did not come ({})",
                    relay.current.borrow().no_file.as_ref().map_or("", |no_file| &no_file.why)
                ),
                _ => format!("the master {master} answers, and is followed once a replica is here"),
            });
        }
        sleep(early).await;
        // The master is asked for those alone that it may be followed for.
        let reason = async { while !has_reason() && changed.changed().await.is_ok() {} };
        let _ = timeout(HELD, reason).await;
    }
}

/// Whether what the master would send is for somebody. For those who have just left it is followed where its stream goes on;
/// a file it would write for nobody.
fn is_for_somebody(relay: &Relay, history: Option<&History>) -> bool {
    let current = relay.current.borrow();
    let goes_on = || {
        let place = current.id.map(|id| (id, current.backlog.end()));
        place.zip(history).is_some_and(|((id, from), history)| history.resumes(id, from))
    };
    let stands_for_itself = relay.settings().config.acknowledge.quorum().is_none();
    stands_for_itself || !current.replicas.is_empty() || goes_on()
}

/// Notes whether the master refuses writes without a replica, and says so; of one that does not say it, the safe one is
/// taken for so.
fn note_strictness(relay: &Relay, history: Option<&History>) -> bool {
    let is_strict = history.is_none_or(|history| history.needs_replicas);
    relay.current.borrow_mut().needs_replicas = is_strict;
    is_strict
}

/// Asks a master that took writes without a replica whether it still does, beside the stream: CONFIG SET may have it refuse
/// them, and the stream says nothing of that. It matters while fewer than the quorum are here, and while the stream that
/// follows a file `begins` at this byte, before which the relay acknowledges by the clock; each answer allows that once.
async fn watch(relay: &Relay, begins: Option<u64>, allowed: &Notify) -> Infallible {
    if relay.current.borrow().needs_replicas {
        return pending().await;
    }
    let mut changed = relay.changed.subscribe();
    loop {
        changed.borrow_and_update();
        let begins_still = begins.is_some_and(|begins| relay.current.borrow().backlog.end() == begins);
        if !relay.is_below_quorum() && !begins_still {
            // The sender is the relay's own.
            let _ = changed.changed().await;
            continue;
        }
        // One that cannot be asked now may be in a second; who is gone ends the stream too.
        if let Ok(history) = ask(relay).await {
            if note_strictness(relay, history.as_ref()) {
                log::line("the master refuses writes without a replica by now");
                // What the link does for too few is another thing now.
                relay.acknowledge.notify_one();
                return pending().await;
            }
            allowed.notify_one();
        }
        let _ = timeout(HELD, changed.changed()).await;
    }
}

/// Asks for the history over a connection of its own, which nobody sees for longer than that.
async fn ask(relay: &Relay) -> Result<Option<History>, LinkError> {
    let address = relay.current.borrow().master.clone();
    Ok(log_in(relay, &address, ":ask").await?.history().await?)
}

/// Waits until there is nobody left to follow the master for.
async fn alone(relay: &Relay) {
    while !relay.is_alone() {
        sleep(HELD).await;
    }
}

/// Refuses a master that follows this relay, by whatever number of other relays, and takes note of those otherwise.
fn refuse_ring(relay: &Relay, path: &[String]) -> Result<(), LinkError> {
    match path.iter().position(|run| *run == relay.run_id) {
        // Those before it are the others of the ring.
        Some(others) => Err(LinkError::Ring { length: others + 1 }),
        None => {
            relay.is_behind(path);
            Ok(())
        }
    }
}

/// Refuses a master of a history that was left for another, as a name does that leads back to a master that was failed
/// over. Where REPLICAOF was given for it, it was meant.
fn refuse_left(relay: &Relay, id: ReplicationId) -> Result<(), LinkError> {
    let current = relay.current.borrow();
    match current.histories_left.iter().find(|left| left.id == id) {
        Some(left) if !current.is_meant && current.id != Some(id) => {
            Err(LinkError::Left { id, offset: left.end.saturating_sub(1) })
        }
        _ => Ok(()),
    }
}

/// Remembers the history that a full synchronisation with another takes the replicas from, whether the new one says that it
/// comes from it or not.
fn leave_other(relay: &Relay, id: ReplicationId) {
    let mut current = relay.current.borrow_mut();
    if let Some(old) = current.id.filter(|old| *old != id) {
        let end = current.backlog.end();
        current.leave(old, end);
    }
}

/// The byte to ask for. After a restart that is the one that the slowest replica needs, or, where the master no longer
/// has it, the one that the relay itself was at. A relay that has nothing that the master could go on from asks for
/// what a waiting replica has.
fn choose_start(relay: &Relay, history: Option<&History>) -> Option<(ReplicationId, u64)> {
    let lowest = {
        let mut current = relay.current.borrow_mut();
        let first = history.and_then(|history| history.first);
        if let Some(high) = current.resume_at.take()
            && first.is_some_and(|first| first > current.backlog.end())
            && current.backlog.end() < high
        {
            current.backlog.reset(high);
            current.boundary = high;
            relay.published.send_replace(high);
        }
        let own = current.id.map(|id| (id, current.backlog.end()));
        let resumes =
            |(id, from): &(ReplicationId, u64)| history.is_some_and(|history| history.resumes(*id, *from));
        if own.as_ref().is_some_and(resumes) || current.misled {
            return own;
        }
        let waiting = current.replicas.values().filter(|replica| replica.phase.get() == Phase::Waiting);
        match waiting.filter_map(|replica| replica.asked).filter(resumes).min_by_key(|(_, from)| *from) {
            Some(lowest) => lowest,
            None => return own,
        }
    };
    let (id, from) = lowest;
    relay.restart(id, from - 1);
    relay.current.borrow_mut().borrowed = true;
    log::line(&format!("a replica is at offset {} of {id}, and the relay begins there", from - 1));
    Some(lowest)
}

/// A master that was promoted says where its own history began, so that the relay can take replicas of the old one.
fn learn_second_name(relay: &Relay, history: &History) {
    let mut current = relay.current.borrow_mut();
    if current.id == Some(history.id) && history.second_id != ReplicationId::NONE {
        (current.second_id, current.second_offset) = (history.second_id, history.second_offset);
        current.leave(history.second_id, history.second_offset);
    }
}

/// Receives the file that stands at `offset`, and offers it to replicas while it comes.
async fn receive_file(
    relay: &Relay,
    link: &mut MasterLink,
    id: ReplicationId,
    offset: u64,
) -> Result<(), LinkError> {
    count(&relay.counters.master_files, 1);
    let received = async {
        let spool = begin_file(relay, id, offset)?;
        relay.current.borrow_mut().spool = Some(spool.clone());
        relay.tell_waiting();
        end_file(relay, link, &spool).await?;
        Ok(spool)
    };
    let received = received.await;
    // What one client is sent alone says nothing of whether replicas can be served.
    match &received {
        Ok(spool) => {
            relay.current.borrow_mut().no_file = None;
            let format = spool.format().map(|format| format.to_string()).unwrap_or_default();
            let (_, bytes) = spool.stage();
            log::line(&format!("received the file {format} of offset {}, {bytes} B", spool.offset));
        }
        Err(error) => {
            count(&relay.counters.file_failures, 1);
            let mut current = relay.current.borrow_mut();
            let before = current.no_file.as_ref().map_or(0, |no_file| no_file.failures.count);
            let count = match error {
                LinkError::Spool { .. } => FAILURES,
                _ => before.saturating_add(1),
            };
            let failures = Failures { count, last: Instant::now() };
            current.no_file = Some(NoFile { failures, why: error.to_string() });
        }
    }
    received.map(drop)
}

fn begin_file(relay: &Relay, id: ReplicationId, offset: u64) -> Result<Rc<Spool>, LinkError> {
    let spool = Spool::create(&relay.settings().config.spool.directory, id, offset);
    Ok(Rc::new(spool.map_err(|cause| no_room(relay, cause))?))
}

async fn end_file(relay: &Relay, link: &mut MasterLink, spool: &Spool) -> Result<(), LinkError> {
    let received = async {
        let form = receive_announcement(link).await?;
        spool.set_form(form);
        receive_body(relay, link, spool, form).await
    };
    let received = received.await.map_err(|error: LinkError| match error {
        LinkError::Io(cause) | LinkError::Handshake(HandshakeError::Io(cause))
            if cause.kind() == io::ErrorKind::UnexpectedEof =>
        {
            let current = relay.current.borrow();
            let version = current.identity.valkey_version.as_ref();
            let major: Option<u32> = version.and_then(|version| version.split('.').next()?.parse().ok());
            let announces = relay.settings().config.master.announce_version.is_some();
            LinkError::File { hint: if major >= Some(9) && !announces { FIELDS } else { "" } }
        }
        other => other,
    });
    spool.end(if received.is_ok() { Stage::Complete } else { Stage::Failed });
    received
}

async fn receive_announcement(link: &mut MasterLink) -> Result<Form, LinkError> {
    loop {
        match payload::announcement(&link.input).map_err(HandshakeError::from)? {
            Some((form, taken)) => {
                link.input.drain(..taken);
                return Ok(form);
            }
            None => {
                let blank = link.input.iter().take_while(|byte| **byte == b'\n').count();
                link.input.drain(..blank);
                link.more().await?;
            }
        }
    }
}

fn no_room(relay: &Relay, cause: io::Error) -> LinkError {
    count(&relay.counters.spool_failures, 1);
    LinkError::Spool { directory: relay.settings().config.spool.directory.display().to_string(), cause }
}

async fn receive_body(
    relay: &Relay,
    link: &mut MasterLink,
    spool: &Spool,
    form: Form,
) -> Result<(), LinkError> {
    let mut body = Body::new(form);
    let mut first = Vec::new();
    let mut buffer = vec![0; 256 << 10];
    let mut piece = std::mem::take(&mut link.input);
    loop {
        let mut out = Vec::new();
        let taken = body.feed(&piece, &mut out).map_err(HandshakeError::from)?;
        if spool.format().is_none() {
            first.extend(out.iter().take(9 - first.len()));
            if first.len() == 9 || body.ended() {
                spool.set_format(RdbFormat::of(&first).map_err(HandshakeError::from)?);
            }
        }
        count(&relay.counters.file_bytes_in, out.len() as u64);
        if !out.is_empty() {
            spool.append(out).await.map_err(|cause| no_room(relay, cause))?;
        }
        if body.ended() {
            link.input = piece[taken..].to_vec();
            return Ok(());
        }
        let silence = relay.settings().checked.timeout;
        let count =
            timeout(silence, link.read(&mut buffer)).await.map_err(|_| HandshakeError::Silent(silence))??;
        if count == 0 {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        relay.current.borrow_mut().heard = Instant::now();
        piece.clear();
        piece.extend_from_slice(&buffer[..count]);
    }
}

/// What the link has to say, and how much of it was sent.
struct Outgoing {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outgoing {
    /// Says what is due to be acknowledged, if anything is.
    fn acknowledge(&mut self, relay: &Relay) {
        // A master that does not read is told once, not every second.
        if self.bytes.len() - self.sent < 4 << 10
            && let Some(due) = relay.take_acknowledgement()
        {
            due.write(&mut self.bytes);
        }
    }

    fn poll(&mut self, link: &mut MasterLink, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.sent < self.bytes.len() {
            match Pin::new(&mut link.stream).poll_write(context, &self.bytes[self.sent..]) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                Poll::Ready(Ok(count)) => self.sent += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
        self.bytes.clear();
        self.sent = 0;
        Pin::new(&mut link.stream).poll_flush(context)
    }
}

/// Takes the new bytes at the end of the window; the framer began at byte `base`. Whether no replica waits for any of them.
fn take_in(relay: &Relay, framer: &mut Framer, base: u64) -> Result<bool, LinkError> {
    let mut current = relay.current.borrow_mut();
    let from = current.backlog.end();
    let progress = framer.feed(current.backlog.received())?;
    let end = current.backlog.end();
    count(&relay.counters.stream_bytes_in, end - from);
    count(&relay.counters.commands, progress.commands);
    if let Some(at) = progress.boundary {
        current.boundary = from + at as u64;
    }
    for before in &progress.questions {
        // Replicas acknowledge what lies before the request itself.
        let at = (base + before).saturating_sub(1);
        current.asked.ask(at);
        current.asked_fsync.ask(at);
    }
    let held = HELD_BACK.min(relay.settings().checked.backlog / 2);
    let visible = if end - current.boundary > held { end } else { current.boundary };
    current.heard = Instant::now();
    let published = current.backlog.published();
    drop(current);
    let has_left = visible <= published || relay.publish(visible);
    if !progress.questions.is_empty() {
        relay.tell_master();
    }
    Ok(has_left)
}

/// Takes the stream; where it `follows_file`, a master that sent that without a length begins it at an acknowledgement.
async fn stream(
    relay: &Rc<Relay>,
    mut link: MasterLink,
    mut out: Outgoing,
    follows_file: bool,
) -> Result<(), LinkError> {
    let mut framer = Framer::new();
    let base = relay.current.borrow().backlog.end();
    relay.current.borrow_mut().boundary = base;
    let mut early = std::mem::take(&mut link.input);
    while !early.is_empty() {
        {
            let mut current = relay.current.borrow_mut();
            let taken = current.backlog.room_left().min(early.len());
            current.backlog.room().extend(early.drain(..taken));
        }
        take_in(relay, &mut framer, base)?;
    }
    let mut ticks = interval(Duration::from_secs(1));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ready = Instant::now();
    let mut silences = interval(Duration::from_secs(1));
    silences.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut ending = relay.ending.subscribe();
    let allowed = Notify::new();
    let mut watched = pin!(watch(relay, follows_file.then_some(base), &allowed));
    // Since when the link stands for less than the master was told.
    let less: Cell<Option<Instant>> = Cell::new(None);
    // When a large piece came last, behind which more is likely to be on its way.
    let mut burst: Option<Instant> = None;
    loop {
        // A master that always has more leaves nothing else its turn.
        if less.get().is_some() {
            stands(relay, &link, burst, &less)?;
        }
        let read = poll_fn(|context| {
            if let Poll::Ready(Err(error)) = out.poll(&mut link, context) {
                return Poll::Ready(Err(error));
            }
            let mut current = relay.current.borrow_mut();
            let room = current.backlog.room_left();
            let mut limited = current.backlog.room().limit(room);
            pin!(link.stream.read_buf(&mut limited)).poll(context)
        });
        tokio::select! {
            biased;
            () = relay.acknowledge.notified() => {
                // A replica that has left wakes the link too.
                stands(relay, &link, burst, &less)?;
                out.acknowledge(relay);
            }
            _ = ticks.tick() => {
                stands(relay, &link, burst, &less)?;
                if relay.settings().config.acknowledge.quorum().is_none() {
                    // Nobody's word is waited for.
                    out.acknowledge(relay);
                }
            }
            () = allowed.notified() => {
                let current = relay.current.borrow();
                if follows_file && current.backlog.end() == base {
                    // The first one came before the master had noted the end of its file, and replicas that say
                    // nothing are followed by no other. One that counts its replicas hears those that it counts.
                    relay.replicated(&current).write(&mut out.bytes);
                }
            }
            never = &mut watched => match never {},
            _ = ending.wait_for(|ending| *ending) => {
                // The last acknowledgement follows what replicas say while they take the rest.
                return last_words(relay, &mut link, &mut out).await;
            }
            // Where the master is quicker than the relay there is always more to read, so this comes after what has its time.
            count = read => {
                if count? == 0 {
                    return Err(io::Error::new(
                        io::ErrorKind::UnexpectedEof, "the master closed the connection").into());
                }
                let before = relay.counters.stream_bytes_in.get();
                let pause = ready.elapsed();
                let has_left = take_in(relay, &mut framer, base)?;
                let bytes = relay.counters.stream_bytes_in.get() - before;
                // A short read ends in a look at what else there is, and TLS may have read more than it gave.
                let is_short = bytes <= GATHERED && link.stream.socket().is_some();
                if !has_left || !is_short {
                    // Replicas take this piece before the next one comes, or they would fall behind in bursts. Tokio's own
                    // call also looks what other threads have done: a task that only wakes itself keeps the disk's answers
                    // waiting for as long as a burst lasts, and what replicas that load need is dropped.
                    yield_now().await;
                }
                gather(relay, bytes, pause);
                ready = Instant::now();
                if bytes >= LARGE {
                    burst = Some(ready);
                }
            }
            // What is on its way need not come from the master's backlog again, which may have it no more.
            () = sleep(READ_OUT), if less.get().is_some() => {
                stands(relay, &link, None, &less)?;
            }
            // Behind what there is to read: a relay that stood still has not heard that yet.
            _ = silences.tick() => {
                let silent = relay.current.borrow().heard.elapsed();
                if silent > relay.settings().checked.timeout {
                    return Err(HandshakeError::Silent(silent).into());
                }
            }
        }
    }
}

/// Whether the link stands for what the master takes it for, or has not since `less`, a while that is spent on reading what
/// comes. Where nothing is here and no `burst` was just now, nothing is on its way.
fn stands(
    relay: &Relay,
    link: &MasterLink,
    burst: Option<Instant>,
    less: &Cell<Option<Instant>>,
) -> Result<(), LinkError> {
    if relay.is_alone() {
        return Err(LinkError::Alone);
    }
    if !relay.stands_for_less() {
        // Who has it by now may be of no more help than for a moment, so the time that was spent on reading counts.
        less.set(less.get().filter(|since| since.elapsed() < LIVES));
        return Ok(());
    }
    less.set(Some(less.get().unwrap_or_else(Instant::now)));
    match less.get() {
        Some(_) if burst.is_none_or(|burst| burst.elapsed() >= READ_OUT) && !link.stream.has_input() => {
            Err(LinkError::Less)
        }
        Some(since) if since.elapsed() >= READ_OUT_MOST => Err(LinkError::Less),
        _ => Ok(()),
    }
}

/// Lets small pieces of the stream come together before they are read, once replicas have the last
/// one. Every piece costs a system call for each replica, whatever its size.
///
/// The thread sleeps rather than the task: a sleeping thread is not woken for each piece, which spares
/// the master the waking too. Nothing waits for longer than `limits.gather`, and nothing is gathered
/// while the master asks for acknowledgements or did just now, while a replica loads, when pieces are large, or when they
/// come further apart than that: the next of a master that has little to say is as likely to be a question.
fn gather(relay: &Relay, bytes: u64, pause: Duration) {
    let gather = relay.settings().checked.gather;
    if pause > gather || bytes > GATHERED {
        return;
    }
    {
        let current = relay.current.borrow();
        let loading = current.replicas.values().any(|replica| replica.phase.get() == Phase::Loading);
        let asks = !current.asked.is_empty() || current.asked.came_within(4 * gather);
        if asks || loading || current.replicas.is_empty() {
            return;
        }
    }
    std::thread::sleep(gather);
}

/// Acknowledges for as long as the relay drains, without taking more of the stream.
async fn last_words(relay: &Relay, link: &mut MasterLink, out: &mut Outgoing) -> Result<(), LinkError> {
    loop {
        out.acknowledge(relay);
        poll_fn(|context| out.poll(link, context)).await?;
        tokio::select! {
            () = relay.acknowledge.notified() => {}
            () = sleep(Duration::from_millis(20)) => {}
        }
    }
}

/// Fetches a file beside the stream whenever a replica needs one that the relay has not got.
pub async fn fetch_files(relay: Rc<Relay>) {
    let shortest = Duration::from_millis(500);
    let mut pause = shortest;
    loop {
        relay.fetch.notified().await;
        let began = Instant::now();
        let fetched = fetch(&relay).await;
        relay.current.borrow_mut().fetching = false;
        let rest = match fetched {
            Ok(()) => {
                relay.tell_waiting();
                pause = shortest;
                // Whoever takes a file and leaves, again and again, has the master write no more than one in so long.
                BETWEEN_FILES.saturating_sub(began.elapsed())
            }
            Err(error) => {
                // A file that the disk has no room for is written by the master for nothing; one that broke off may be whole
                // the next time, and who waits for it gets nothing meanwhile.
                let longest = match error {
                    LinkError::Spool { .. } => NO_ROOM,
                    _ => AFTER_BREAK,
                };
                log::line(&format!(
                    "no file for a full synchronisation: {error}; the next try is in {pause:?}, or at SIGHUP"
                ));
                let longer = (pause * 2).min(longest);
                std::mem::replace(&mut pause, longer)
            }
        };
        pause_until_reload(&relay, rest).await;
        relay.tell_waiting();
    }
}

async fn fetch(relay: &Relay) -> Result<(), LinkError> {
    let (mut link, id, offset) = ask_for_file(relay, None).await?;
    log::line(&format!("fetching a file at offset {offset} for replicas that cannot resume"));
    receive_file(relay, &mut link, id, offset).await
}

/// Asks the master for a file beside the stream, of parts of the data where there is a filter.
async fn ask_for_file(
    relay: &Relay,
    filter: Option<&str>,
) -> Result<(MasterLink, ReplicationId, u64), LinkError> {
    let address = relay.current.borrow().master.clone();
    let mut link = open(relay, &address, ":file").await?;
    link.want_files_alone().await?;
    if let Some(filter) = filter {
        link.want_parts(filter).await?;
    }
    match ask_to_follow(&mut link, None, &address).await? {
        Psync::Full { id, offset } => Ok((link, id, offset)),
        Psync::Continue { .. } => {
            let reply = "CONTINUE".to_string();
            Err(HandshakeError::Reply { step: "a request for a full synchronisation", reply }.into())
        }
    }
}

/// Receives a file for those who ask for one of now, and gives it on as soon as it begins, or the reason why there is none.
/// Whoever asks for the same before the master is asked shares it: each file costs the master a child.
pub async fn receive_own_file(relay: Rc<Relay>, filter: Option<String>) {
    let _one = relay.own_file.lock().await;
    let is_same = |ask: &mut OwnAsk| ask.filter == filter;
    let mut asks: Vec<OwnAsk> = relay.own_waiting.borrow_mut().extract_if(.., is_same).collect();
    asks.retain(|ask| !ask.give.is_closed());
    if asks.is_empty() {
        return;
    }
    let begun = async {
        let (link, id, offset) = ask_for_file(&relay, filter.as_deref()).await?;
        let spool = begin_file(&relay, id, offset)?;
        Ok::<_, LinkError>((link, spool))
    };
    match begun.await {
        Ok((mut link, spool)) => {
            count(&relay.counters.own_files, 1);
            for ask in asks {
                let _ = ask.give.send(Ok(spool.clone()));
            }
            tokio::select! {
                ended = end_file(&relay, &mut link, &spool) => if let Err(error) = ended {
                    log::line(&format!("a file for one alone broke off: {error}"));
                },
                // The master's child ends with the link.
                () = nobody_reads(&spool) => {}
            }
        }
        Err(error) => {
            for ask in asks {
                let _ = ask.give.send(Err(format!("the master gave no file: {error}")));
            }
        }
    }
}

/// Waits until nobody is left whom a file is for.
async fn nobody_reads(spool: &Rc<Spool>) {
    while Rc::strong_count(spool) > 1 {
        sleep(Duration::from_millis(100)).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn a_configuration_that_is_read_again_ends_a_pause() {
        let config = || Config::of("127.0.0.1:6379", "127.0.0.1:0");
        let relay = Relay::new(config()).unwrap();
        let began = Instant::now();
        pause_until_reload(&relay, Duration::from_millis(20)).await;
        assert!(began.elapsed() >= Duration::from_millis(20), "nothing ends it sooner");
        let reload = async {
            yield_now().await;
            relay.reload(config()).unwrap();
        };
        tokio::join!(pause_until_reload(&relay, Duration::from_secs(600)), reload);
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}
