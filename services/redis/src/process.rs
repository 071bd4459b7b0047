//! A relay as a process: what it is made of, its signals, and its end.

use crate::config::Config;
use crate::relay::{LinkState, Relay, RelayError};
use crate::{descriptors, downstream, log, metrics, names, upstream};
use nix::sys::signal::{SigSet, Signal as NixSignal};
use std::fs::{File, TryLockError};
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::task::{JoinError, JoinSet, LocalSet};
use tokio::time::{sleep, timeout};

/// How often a master with nothing to write is heard by default.
const PINGS: Duration = Duration::from_secs(10);

/// Keeps other relays from the state file for as long as what is returned lives. The file itself is replaced as a whole,
/// so what is locked lies beside it.
fn state_lock(path: &Path) -> Result<File, RelayError> {
    let shown = || path.display().to_string();
    let refused = |cause| RelayError::State { path: shown(), cause };
    let mut beside = path.as_os_str().to_owned();
    beside.push(".lock");
    let lock = File::options().create(true).append(true).open(beside).map_err(refused)?;
    match lock.try_lock() {
        Ok(()) => Ok(lock),
        Err(TryLockError::WouldBlock) => Err(RelayError::Taken { path: shown() }),
        Err(TryLockError::Error(cause)) => Err(refused(cause)),
    }
}

async fn listen(address: &str) -> Result<TcpListener, RelayError> {
    TcpListener::bind(address)
        .await
        .map_err(|cause| RelayError::Listen { address: address.to_string(), cause })
}

/// Holds SIGHUP back, which ends a process that has not said what it does then; [`run`] takes it once it has. To be called
/// before anything else.
pub fn hold_hangups() -> io::Result<()> {
    Ok(hangups().thread_block()?)
}

fn hangups() -> SigSet {
    SigSet::from_iter([NixSignal::SIGHUP])
}

/// Reads the configuration again at each SIGHUP; one that cannot be read or is refused leaves the one of before.
async fn reload_at(mut hangups: Signal, relay: Rc<Relay>, configure: impl Fn() -> Result<Config, String>) {
    while hangups.recv().await.is_some() {
        let reloaded = configure().and_then(|config| relay.reload(config).map_err(|error| error.to_string()));
        log::line(&match reloaded {
            Ok(kept) if kept.is_empty() => "SIGHUP: the configuration is what was read just now".to_string(),
            Ok(kept) => format!(
                "SIGHUP: the configuration is what was read just now, but for what takes a restart: {}",
                kept.join(", ")
            ),
            Err(error) => {
                format!("SIGHUP: the configuration is refused, and the one of before holds: {error}")
            }
        });
    }
}

/// What is left to do where a part of the relay has ended: its panic is the relay's.
fn broken(ended: Result<(), JoinError>) -> RelayError {
    match ended.map_err(JoinError::try_into_panic) {
        Err(Ok(panic)) => std::panic::resume_unwind(panic),
        _ => RelayError::Io(io::Error::other("a part of the relay has ended, and the relay with it")),
    }
}

async fn every_second(relay: Rc<Relay>) {
    let mut rate = StreamRate::default();
    let mut quorum = QuorumWatch::default();
    loop {
        sleep(Duration::from_secs(1)).await;
        relay.look_after_replicas();
        let (kept, came) = (relay.current.borrow().kept_above, relay.counters.stream_bytes_in.get());
        if let Some(text) = rate.look(came, kept) {
            log::line(&text);
        }
        let standing = {
            let current = relay.current.borrow();
            let wanted = relay.settings().config.acknowledge.quorum();
            wanted.filter(|_| current.link == LinkState::Up).map(|wanted| (relay.living(&current), wanted))
        };
        if let Some(text) = quorum.look(standing) {
            log::line(&text);
        }
    }
}

/// Whether as many replicas live as the quorum has, while the master is followed.
#[derive(Default)]
struct QuorumWatch {
    /// Seconds in a row in which fewer did.
    short: u32,
    is_said: bool,
}

impl QuorumWatch {
    /// Takes how many live and how many are wanted, each second; nothing where there is no stream or no quorum. One that
    /// joins takes a moment to speak, so that it is said after three.
    fn look(&mut self, standing: Option<(usize, usize)>) -> Option<String> {
        let Some((living, wanted)) = standing else {
            *self = QuorumWatch::default();
            return None;
        };
        if living >= wanted {
            let was_said = self.is_said;
            *self = QuorumWatch::default();
            return was_said.then(|| format!("living replicas: {living} of a quorum of {wanted} again"));
        }
        self.short += 1;
        if self.short < 3 || self.is_said {
            return None;
        }
        self.is_said = true;
        Some(format!(
            "living replicas: {living} of a quorum of {wanted}; the master hears nothing of what is replicated until \
             they are as many (`[acknowledge] replicas`)"
        ))
    }
}

/// How fast the stream comes beside what the master keeps of it.
#[derive(Default)]
struct StreamRate {
    last: u64,
    /// Seconds in a row in which half of what the master keeps came, or more.
    fast: u32,
    /// For which size of what it keeps that was said.
    said: Option<u64>,
}

impl StreamRate {
    /// Takes the bytes that came so far, each second. Where what is kept holds less than two seconds of what comes, for three
    /// seconds in a row, that is worth a line: a relay that restarts has been away for about as long.
    fn look(&mut self, came: u64, kept: Option<u64>) -> Option<String> {
        let each = came - std::mem::replace(&mut self.last, came).min(came);
        let kept = kept.filter(|kept| 2 * each > *kept);
        self.fast = if kept.is_some() { self.fast + 1 } else { 0 };
        let kept = kept.filter(|_| self.fast >= 3)?;
        (self.said.replace(kept) != Some(kept)).then(|| {
            format!(
                "the master writes {each} B a second and keeps {kept} B of it (`repl-backlog-size`): a relay that restarts or \
                 whose link is cut for longer than that takes a full synchronisation; let it hold two seconds or more"
            )
        })
    }
}

/// Keeps the state every second, and at once where the history has another name.
async fn keep_position(relay: Rc<Relay>) {
    loop {
        tokio::select! {
            () = sleep(Duration::from_secs(1)) => {}
            () = relay.save.notified() => {}
        }
        relay.keep_state_or_say().await;
    }
}

/// Lets replicas take what is left, tells the master, and keeps the position.
async fn drain(relay: &Relay) {
    let everything_sent = async {
        loop {
            let done = {
                let current = relay.current.borrow();
                let published = current.backlog.published();
                let all = current.boundary.saturating_sub(1);
                current
                    .replicas
                    .values()
                    .filter(|replica| replica.counts())
                    .all(|replica| replica.next.get() >= published && replica.acknowledged.get() >= all)
            };
            if done {
                break;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    let (began, most) = (Instant::now(), relay.settings().checked.drain);
    let in_time = timeout(most, everything_sent).await.is_ok();
    // A disk that does not answer holds nobody for longer than replicas may, or a second where they took all of that.
    let left = most.saturating_sub(began.elapsed()).max(Duration::from_secs(1));
    if timeout(left, relay.keep_state_or_say()).await.is_err() {
        log::line("the position is not kept: the disk has not answered in time");
    }
    let current = relay.current.borrow();
    let published = current.backlog.published();
    let following = current.replicas.values().filter(|replica| replica.counts()).count();
    let others = current.replicas.len() - following;
    let mut how = match (in_time, following) {
        (false, _) => "some replicas were given up".to_string(),
        (true, 0) => "no replica followed it".to_string(),
        (true, 1) => "the replica that followed has it".to_string(),
        (true, following) => format!("the {following} replicas that followed have it"),
    };
    if others > 0 {
        how += &format!(", and {others} that waited or loaded have not");
    }
    log::line(&format!("drained at offset {}: {how}", published.saturating_sub(1)));
}

/// Runs a relay until SIGTERM or SIGINT; `configure` reads its configuration, again at each SIGHUP, and `ready` is told
/// the address that replicas can use.
pub fn run(
    config: Config,
    configure: impl Fn() -> Result<Config, String> + 'static,
    ready: impl FnOnce(SocketAddr),
) -> Result<(), RelayError> {
    let runtime =
        Builder::new_current_thread().enable_all().max_blocking_threads(names::LOOK_UPS + 4).build()?;
    let at_hangup = {
        let _entered = runtime.enter();
        signal(SignalKind::hangup())?
    };
    hangups().thread_unblock().map_err(io::Error::from)?;
    // Before the position is read that another one may be writing.
    let _lock = config.spool.state_file.as_deref().map(state_lock).transpose()?;
    let relay = Relay::new(config)?;
    relay.descriptors.set(descriptors::provide(&relay.settings().config.limits));
    let local = LocalSet::new();
    let ended = local.block_on(&runtime, async move {
        let mut terminate = signal(SignalKind::terminate())?;
        let mut interrupt = signal(SignalKind::interrupt())?;
        let listener = listen(&relay.settings().config.listen.address).await?;
        let bound = listener.local_addr()?;
        relay.bound.set(Some(bound));
        relay.port.set(relay.settings().config.announced_port(bound.port()));
        // What the relay is made of. None ends before the relay does: a relay that goes on without one of them promises
        // what it does not do.
        let mut parts = JoinSet::new();
        if let Some(address) = &relay.settings().config.metrics.address {
            let listener = listen(address).await?;
            log::line(&format!("metrics at http://{}/metrics", listener.local_addr()?));
            parts.spawn_local(metrics::serve(relay.clone(), listener));
        }
        parts.spawn_local(downstream::listen(relay.clone(), listener));
        parts.spawn_local(upstream::follow(relay.clone()));
        parts.spawn_local(upstream::fetch_files(relay.clone()));
        parts.spawn_local(every_second(relay.clone()));
        parts.spawn_local(keep_position(relay.clone()));
        parts.spawn_local(reload_at(at_hangup, relay.clone(), configure));
        if downstream::is_protected(&relay.settings().config) && !bound.ip().is_loopback() {
            log::line("protected mode: without a [[user]] connections of other machines are refused");
        }
        log::line(&format!("replicas of {} connect to {bound}", relay.current.borrow().master));
        let silence = relay.settings().checked.timeout;
        if silence <= PINGS {
            log::line(&format!(
                "`limits.timeout` is {silence:?}, and a master with nothing to write is heard every {PINGS:?} \
                 (`repl-ping-replica-period`): unless its period is shorter the link is cut again and again"
            ));
        }
        if relay.settings().config.acknowledge.quorum().is_none() {
            log::line("it acknowledges what it has received, which no replica may have");
        }
        ready(bound);
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            Some(ended) = parts.join_next() => return Err(broken(ended)),
        }
        relay.ending.send_replace(true);
        drain(&relay).await;
        Ok(())
    });
    // Nothing waits for a disk or a name server that does not answer.
    runtime.shutdown_background();
    ended
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quorum_that_does_not_live_is_said_once_and_so_is_its_return() {
        let mut watch = QuorumWatch::default();
        let mut said = Vec::new();
        let seconds = [(2, 2), (1, 2), (1, 2), (2, 2), (1, 2), (1, 2), (1, 2), (0, 2), (2, 2), (2, 2)];
        for (at, standing) in seconds.into_iter().enumerate() {
            said.extend(watch.look(Some(standing)).map(|text| (at, text)));
        }
        assert_eq!(said.iter().map(|(at, _)| *at).collect::<Vec<_>>(), [6, 8], "{said:?}");
        assert!(said[0].1.starts_with("living replicas: 1 of a quorum of 2; the master"), "{said:?}");
        // Without a stream nobody is told anything, which is said elsewhere.
        assert!((0..9).all(|_| watch.look(None).is_none()));
    }

    #[test]
    fn a_backlog_that_holds_less_than_two_seconds_is_said_once() {
        let mut rate = StreamRate::default();
        let mut said = Vec::new();
        // A burst, then a steady stream.
        for came in [0, 900, 900, 901, 1_500, 2_100, 2_700, 3_300, 3_900] {
            said.extend(rate.look(came, Some(1_000)).map(|text| (came, text)));
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            said[0].0 == 2_700 && said[0].1.contains("writes 600 B a second and keeps 1000 B"),
            "{said:?}"
        );
        assert_eq!(rate.look(4_500, Some(1_200)), None, "600 B a second are two seconds of 1,200 B");
        assert_eq!((5..9).filter_map(|index| rate.look(index * 600 + 2_000, None)).count(), 0);
    }
}
