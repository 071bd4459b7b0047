//! The side of replicas and operators: connections, credentials, and the few commands of a server
//! that a replica, `redis-cli` or Sentinel sends.

use crate::config::{Config, May};
use crate::connection::{ANSWERS, Connection};
use crate::counters::count;
use crate::descriptors::ran_out;
use crate::handshake::RELAY;
use crate::history::ReplicationId;
use crate::relay::{Relay, UserPlace};
use crate::resp::{self, Limits, RespError, write_bulk, write_error};
use crate::serving::{self, Introduction, Wanted};
use crate::tls::Stream;
use crate::{info, log};
use std::collections::BTreeSet;
use std::future::pending;
use std::io;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::sync::broadcast::{Receiver, error::RecvError};
use tokio::task::{spawn_local, yield_now};
use tokio::time::{sleep, timeout};

/// Wrong passwords after which a connection is closed.
const ATTEMPTS: u32 = 3;
/// Silence after which a user makes room for another where all places are taken: what watches asks within a minute.
const IDLE: Duration = Duration::from_secs(60);
/// Channels that a connection may subscribe to.
const CHANNELS: usize = 16;

/// Takes connections for as long as the relay is not ending.
pub async fn listen(relay: Rc<Relay>, listener: TcpListener) {
    let mut ending = relay.ending.subscribe();
    let said = log::Seldom::default();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            _ = ending.wait_for(|ending| *ending) => return,
        };
        let trouble = match accepted {
            Ok((stream, peer)) if is_denied(&relay.settings().config, peer.ip()) => {
                count(&relay.counters.connections, 1);
                deny(&relay, &stream);
                None
            }
            Ok((stream, peer)) => {
                count(&relay.counters.connections, 1);
                let is_short = relay.is_short_of_descriptors();
                match ConnectionSlot::take(&relay, is_short) {
                    Some(slot) => {
                        spawn_local(admit(relay.clone(), stream, peer.ip(), slot));
                    }
                    None => count(&relay.counters.refused, 1),
                }
                if is_short {
                    // Who had to leave closes its connection before the next one is accepted.
                    yield_now().await;
                }
                is_short.then(|| "too few files and connections may be open".to_string())
            }
            Err(error) => {
                // The system has no more descriptors, or the peer is gone again.
                if ran_out(&error) && relay.make_room() {
                    yield_now().await;
                } else {
                    sleep(Duration::from_millis(100)).await;
                }
                Some(error.to_string())
            }
        };
        if let Some(trouble) = trouble {
            let current = relay.current.borrow();
            said.line(&format!(
                "a connection was not accepted, or took the place of another: {trouble}; there are {} replicas, {} other \
                 users and {} connections that have shown no password",
                current.replicas.len(),
                current.clients.len(),
                current.strangers.len()
            ));
        }
    }
}

/// What a connection takes up.
enum Place {
    /// One of those that have shown no password, by when it was heard last.
    Stranger(u64),
    /// One of users, by when it was heard last.
    Client(u64),
    /// One of replicas, which are counted by themselves.
    Replica,
}

/// The place of a connection, which is free again when it ends, however it ends.
struct ConnectionSlot {
    relay: Rc<Relay>,
    place: Place,
    leave: Rc<Notify>,
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.free();
    }
}

impl ConnectionSlot {
    /// A place among strangers, of whom one has to leave where there is none. Where descriptors are short and there is no
    /// stranger who could leave, there is no place.
    fn take(relay: &Rc<Relay>, is_short: bool) -> Option<ConnectionSlot> {
        let most = relay.settings().config.limits.connections;
        let is_full = relay.current.borrow().strangers.len() >= most;
        if (is_short || is_full) && !relay.make_room() {
            return None;
        }
        let mut slot =
            ConnectionSlot { relay: relay.clone(), place: Place::Replica, leave: Rc::new(Notify::new()) };
        slot.be_stranger();
        Some(slot)
    }

    fn be_stranger(&mut self) {
        count(&self.relay.numbers, 1);
        let number = self.relay.numbers.get();
        self.relay.current.borrow_mut().strangers.insert(number, self.leave.clone());
        self.place = Place::Stranger(number);
    }

    /// Gives up the place for one of replicas.
    fn free(&mut self) {
        let mut current = self.relay.current.borrow_mut();
        match std::mem::replace(&mut self.place, Place::Replica) {
            // It may be gone already.
            Place::Stranger(number) => {
                current.strangers.remove(&number);
            }
            Place::Client(number) => {
                current.clients.remove(&number);
            }
            Place::Replica => {}
        }
    }

    fn is_stranger(&self) -> bool {
        matches!(self.place, Place::Stranger(_))
    }

    /// Notes that it was heard.
    fn heard(&mut self) {
        match self.place {
            Place::Stranger(number) => {
                if self.relay.current.borrow_mut().strangers.remove(&number).is_some() {
                    self.be_stranger();
                }
            }
            Place::Client(number) => {
                let was = self.relay.current.borrow_mut().clients.remove(&number);
                if let Some(was) = was {
                    self.enter();
                    if was.heard.is_none() {
                        self.stay();
                    }
                }
            }
            Place::Replica => {}
        }
    }

    /// Keeps its place however long it is silent: it is sent something that it has nothing to say to.
    fn stay(&mut self) {
        if let Place::Client(number) = &self.place
            && let Some(place) = self.relay.current.borrow_mut().clients.get_mut(number)
        {
            place.heard = None;
        }
    }

    fn enter(&mut self) {
        count(&self.relay.numbers, 1);
        let number = self.relay.numbers.get();
        let place = UserPlace { leave: self.leave.clone(), heard: Some(Instant::now()) };
        self.relay.current.borrow_mut().clients.insert(number, place);
        self.place = Place::Client(number);
    }

    /// Takes a place among users, if there is one: where all are taken, that of the user that has said nothing for longest,
    /// and for [`IDLE`] at least.
    fn be_client(&mut self) -> bool {
        if !matches!(self.place, Place::Client(_)) {
            {
                let mut current = self.relay.current.borrow_mut();
                if current.clients.len() >= self.relay.settings().config.limits.connections {
                    let idle = |place: &UserPlace| place.heard.is_some_and(|heard| heard.elapsed() >= IDLE);
                    let Some(number) =
                        current.clients.iter().find(|(_, place)| idle(place)).map(|(number, _)| *number)
                    else {
                        return false;
                    };
                    if let Some(place) = current.clients.remove(&number) {
                        place.leave.notify_one();
                        self.relay.noise.line("a user that said nothing for a minute made room for another");
                    }
                }
            }
            self.free();
            self.enter();
        }
        true
    }
}

/// Whether a connection from this address is refused whatever it says, as Redis refuses it: nobody is asked for a
/// password, and it is of another machine.
fn is_denied(config: &Config, peer: IpAddr) -> bool {
    is_protected(config) && !peer.to_canonical().is_loopback()
}

/// Whether connections of this machine alone are taken.
pub fn is_protected(config: &Config) -> bool {
    let asks = !config.user.is_empty()
        || config.listen.tls.as_ref().is_some_and(|tls| tls.client_authorities.is_some());
    config.listen.protected_mode && !asks
}

/// Says why a connection is refused.
fn deny(relay: &Relay, stream: &TcpStream) {
    count(&relay.counters.refused, 1);
    // Best effort: it is closed in any case.
    let _ = stream.try_write(
        b"-DENIED The relay is in protected mode: it has no user and takes connections of its own machine alone. Add \
        a [[user]] with a password to its configuration, or set `listen.protected_mode = false`\r\n",
    );
}

async fn admit(relay: Rc<Relay>, stream: TcpStream, peer: IpAddr, slot: ConnectionSlot) {
    let (peer, leave) = (peer.to_string(), slot.leave.clone());
    // Also one that is being written to and does not read.
    let ended = tokio::select! {
        ended = converse(&relay, stream, peer.clone(), slot) => ended,
        () = leave.notified() => Ok(()),
    };
    if let Err(error) = ended
        && !matches!(
            error.kind(),
            io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe | io::ErrorKind::UnexpectedEof
        )
    {
        relay.noise.line(&format!("the connection of {peer} ended: {error}"));
    }
}

async fn converse(
    relay: &Rc<Relay>,
    stream: TcpStream,
    peer: String,
    slot: ConnectionSlot,
) -> io::Result<()> {
    let came = Instant::now();
    stream.set_nodelay(true)?;
    let settings = relay.settings();
    let stream = match &settings.acceptor {
        None => Stream::Plain(stream),
        Some(acceptor) => match timeout(settings.checked.handshake, acceptor.accept(stream)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => {
                count(&relay.counters.refused, 1);
                let text = format!("no TLS: {error}; a replica needs `tls-replication yes` here");
                return Err(io::Error::new(error.kind(), text));
            }
            Err(_) => {
                count(&relay.counters.refused, 1);
                return Ok(());
            }
        },
    };
    let connection = Connection::new(stream);
    Session {
        relay: relay.clone(),
        came,
        place: slot,
        connection,
        introduction: Introduction {
            address: peer,
            port: 0,
            user: "default".to_string(),
            mark: false,
            psync2: false,
            version: None,
            is_old: false,
            is_relay: false,
            was_told: None,
            wanted: Wanted::Stream,
            filter: None,
        },
        may: relay.settings().config.user.is_empty().then_some(May::Replicate),
        attempts: 0,
        name: String::new(),
        version3: false,
        channels: BTreeSet::new(),
        messages: None,
    }
    .run()
    .await
}

/// What a user does that may observe only; what is not here is for users that may replicate.
const OBSERVES: [&str; 10] =
    ["PING", "ECHO", "INFO", "ROLE", "WAIT", "SELECT", "CLIENT", "ACL", "CONFIG", "SUBSCRIBE"];

/// What a command leads to.
enum Next {
    /// The next command.
    Go,
    /// The end, once what is to be written has left.
    Close,
    /// The stream.
    Replicate { asked: Option<(ReplicationId, u64)> },
    /// Another master, and the answer once it is remembered.
    Follow { master: String },
    /// The answer of WAIT, when as many replicas have all of the stream or the time is over.
    Wait { replicas: usize, most: Duration },
}

struct Session {
    relay: Rc<Relay>,
    came: Instant,
    place: ConnectionSlot,
    connection: Connection,
    introduction: Introduction,
    may: Option<May>,
    attempts: u32,
    name: String,
    version3: bool,
    channels: BTreeSet<String>,
    messages: Option<Receiver<(String, String)>>,
}

/// The next message that was published since the subscription; never comes without one.
async fn message(messages: &mut Option<Receiver<(String, String)>>) -> (String, String) {
    loop {
        let Some(receiver) = messages else { return pending().await };
        match receiver.recv().await {
            Ok(message) => return message,
            Err(RecvError::Lagged(_)) => {}
            Err(RecvError::Closed) => *messages = None,
        }
    }
}

impl Session {
    async fn run(mut self) -> io::Result<()> {
        // When it came, or said something whole last: single bytes and empty lines are no sign of whose it is.
        let mut spoke = self.came;
        let mut ending = self.relay.ending.subscribe();
        loop {
            let limits = if self.may.is_some() { Limits::CLIENT } else { Limits::STRANGER };
            let is_full = self.connection.waiting() > ANSWERS;
            let next = if is_full { Ok(None) } else { resp::request(&self.connection.input, limits) };
            match next {
                Ok(Some((request, taken))) => {
                    self.connection.input.drain(..taken);
                    let next = self.command(&request);
                    if !request.is_empty() && self.may.is_some() {
                        spoke = Instant::now();
                        self.place.heard();
                    }
                    match next {
                        Next::Go => {}
                        Next::Close => return self.last_write().await,
                        Next::Replicate { asked } => {
                            // Replies to what came before go first, which may take as long as their reader wants.
                            self.write_in_time().await?;
                            let may = self.relay.settings().config.may(&self.introduction.user);
                            if may != Some(May::Replicate) {
                                self.error(
                                    "NOPERM its user is no longer in the configuration, or may only observe",
                                );
                                return self.last_write().await;
                            }
                            if self.introduction.wanted == Wanted::Stream {
                                self.place.free();
                                return serving::serve(
                                    &self.relay,
                                    self.connection,
                                    self.introduction,
                                    asked,
                                )
                                .await;
                            }
                            // It is no replica and takes the place of none.
                            if !self.place.be_client() {
                                self.refuse_place();
                                return self.last_write().await;
                            }
                            self.place.stay();
                            return serving::serve_file(&self.relay, self.connection, self.introduction)
                                .await;
                        }
                        Next::Wait { replicas, most } => {
                            // Who sent other commands before it waits for their answers no longer than without it.
                            self.write_in_time().await?;
                            self.wait(replicas, most).await?;
                        }
                        Next::Follow { master } => self.follow(master).await,
                    }
                    continue;
                }
                Ok(None) => {}
                Err(error) => return self.protocol_error(&error).await,
            }
            self.write_in_time().await?;
            if is_full {
                // More may have been asked, and it is others' turn.
                yield_now().await;
                continue;
            }
            self.connection.input.shrink_to(ANSWERS);
            let idle = match self.may {
                // One that nobody has vouched for shows that it is alive, as Sentinels do every second.
                Some(_) if !self.place.is_stranger() || !self.channels.is_empty() => {
                    Duration::from_secs(3_600)
                }
                _ => self.relay.settings().checked.handshake.saturating_sub(spoke.elapsed()),
            };
            tokio::select! {
                read = self.connection.read() => {
                    if read? == 0 {
                        return Ok(());
                    }
                }
                (channel, text) = message(&mut self.messages) => {
                    // Whose user is gone may hear no more.
                    if self.relay.settings().config.may(&self.introduction.user).is_none() {
                        return Ok(());
                    }
                    if self.channels.contains(&channel) {
                        self.push("message", &channel);
                        self.bulk(&text);
                    }
                }
                () = sleep(idle) => {
                    if self.may.is_none() {
                        count(&self.relay.counters.refused, 1);
                    }
                    return Ok(());
                }
                _ = ending.wait_for(|ending| *ending) => return Ok(()),
            }
        }
    }

    /// Writes what is to be written; one that does not read it is cut off.
    async fn write_in_time(&mut self) -> io::Result<()> {
        match timeout(self.relay.settings().checked.timeout, self.connection.write()).await {
            Ok(written) => written,
            Err(_) => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn last_write(&mut self) -> io::Result<()> {
        match timeout(Duration::from_secs(5), self.connection.write()).await {
            Ok(written) => written,
            Err(_) => Ok(()),
        }
    }

    async fn protocol_error(&mut self, error: &RespError) -> io::Result<()> {
        count(&self.relay.counters.refused, 1);
        write_error(&mut self.connection.out, &format!("ERR Protocol error: {error}"));
        self.last_write().await
    }

    async fn wait(&mut self, replicas: usize, most: Duration) -> io::Result<()> {
        let offset = self.relay.current.borrow().backlog.published().saturating_sub(1);
        let began = Instant::now();
        loop {
            let found = self.relay.replicas_with(offset);
            if found >= replicas || began.elapsed() >= most || *self.relay.ending.borrow() {
                self.connection.out.extend_from_slice(format!(":{found}\r\n").as_bytes());
                return Ok(());
            }
            tokio::select! {
                read = self.connection.read() => {
                    if read? == 0 || self.connection.input.len() > Limits::CLIENT.bytes {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                () = sleep(Duration::from_millis(10)) => {}
            }
        }
    }

    async fn follow(&mut self, master: String) {
        if self.relay.is_itself(&master).await {
            self.error(&format!(
                "ERR {master} is this relay itself, which would have no master any more; name the server to relay"
            ));
            return;
        }
        let said = format!("REPLICAOF of {}: the master is {master} from here on", self.introduction.user);
        match self.relay.follow(master).await {
            Ok(true) => {
                log::line(&said);
                self.ok()
            }
            Ok(false) => {
                self.connection.out.extend_from_slice(b"+OK Already connected to specified master\r\n");
                Next::Go
            }
            Err(error) => {
                log::line(&format!(
                    "REPLICAOF is not carried out, since it could not be remembered: {error}"
                ));
                self.error(&format!("ERR the relay cannot remember it and goes on as before: {error}"))
            }
        };
    }

    fn ok(&mut self) -> Next {
        self.connection.out.extend_from_slice(b"+OK\r\n");
        Next::Go
    }

    fn error(&mut self, message: &str) -> Next {
        write_error(&mut self.connection.out, message);
        Next::Go
    }

    fn bulk(&mut self, text: &str) -> Next {
        write_bulk(&mut self.connection.out, text.as_bytes());
        Next::Go
    }

    fn command(&mut self, request: &[Vec<u8>]) -> Next {
        let Some(first) = request.first() else { return Next::Go };
        if self.may.is_some() {
            // The configuration may be another one by now.
            self.may = self.relay.settings().config.may(&self.introduction.user);
        }
        let name = String::from_utf8_lossy(first).to_ascii_uppercase();
        let words: Vec<String> =
            request[1..].iter().map(|word| String::from_utf8_lossy(word).into_owned()).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        match (name.as_str(), self.may) {
            // A browser can be made to send a page's text here, and would have what stands in it carried out.
            ("POST" | "HOST:", _) => {
                let from = &self.introduction.address;
                self.relay
                    .noise
                    .line(&format!("{from} speaks HTTP, as a page in a browser may be made to: it was cut off"));
                count(&self.relay.counters.refused, 1);
                Next::Close
            }
            ("AUTH", _) => self.auth(&words),
            ("HELLO", _) => self.hello(&words),
            ("QUIT", _) => {
                self.ok();
                Next::Close
            }
            (_, None) => self.error("NOAUTH Authentication required."),
            (name, Some(May::Observe)) if !OBSERVES.contains(&name) => self.error(
                "NOPERM this user may observe only; give it `may = \"replicate\"` in the relay's configuration",
            ),
            ("PING", _) => match words.first() {
                None => {
                    self.connection.out.extend_from_slice(b"+PONG\r\n");
                    Next::Go
                }
                Some(text) => self.bulk(text),
            },
            ("ECHO", _) if words.len() == 1 => self.bulk(words[0]),
            ("REPLCONF", _) => self.replconf(&words),
            ("PSYNC", _) => self.psync(&words),
            ("SYNC", _) => {
                self.introduction.is_old = true;
                Next::Replicate { asked: None }
            }
            ("INFO", _) => {
                // A relay asks on the connection that it will follow by.
                let told = self.relay.current.borrow().above_changes;
                self.introduction.was_told = self.introduction.is_relay.then_some(told);
                let text = info::text(&self.relay, &words);
                self.bulk(&text)
            }
            ("ROLE", _) => {
                let role = info::role(&self.relay);
                self.connection.out.extend_from_slice(&role);
                Next::Go
            }
            ("WAIT", _) => match words[..] {
                [replicas, most] => match (replicas.parse(), most.parse()) {
                    (Ok(replicas), Ok(0u64)) => Next::Wait { replicas, most: Duration::MAX },
                    (Ok(replicas), Ok(most)) => Next::Wait { replicas, most: Duration::from_millis(most) },
                    _ => self.error("ERR value is not an integer or out of range"),
                },
                _ => self.error("ERR wrong number of arguments for 'wait' command"),
            },
            ("REPLICAOF" | "SLAVEOF", _) => self.replicaof(&words),
            ("SELECT", _) if words == ["0"] => self.ok(),
            ("CLIENT", _) => self.client(&words),
            ("ACL", _) if words.first().is_some_and(|word| word.eq_ignore_ascii_case("WHOAMI")) => {
                let user = self.introduction.user.clone();
                self.bulk(&user)
            }
            ("CONFIG", _) => self.error(
                "ERR the relay has no CONFIG and rewrites no file: it is configured by its own file, which it reads at \
                 its start and at SIGHUP",
            ),
            ("SUBSCRIBE", _) if !words.is_empty() => self.subscribe(&words),
            ("PUBLISH", _) if words.len() == 2 => {
                let count = self.relay.messages.receiver_count();
                // Without a subscriber there is nobody to tell.
                let _ = self.relay.messages.send((words[0].to_string(), words[1].to_string()));
                self.connection.out.extend_from_slice(format!(":{count}\r\n").as_bytes());
                Next::Go
            }
            _ => {
                let shown: String = name.chars().take(40).collect();
                self.error(&format!("ERR unknown command '{shown}': a replication relay keeps no data"))
            }
        }
    }

    /// The beginning of three elements that nobody asked for at this moment.
    fn push(&mut self, kind: &str, channel: &str) {
        self.connection.out.extend_from_slice(if self.version3 { b">3\r\n" } else { b"*3\r\n" });
        self.bulk(kind);
        self.bulk(channel);
    }

    /// Sentinel takes a replica for gone that it cannot subscribe to.
    fn subscribe(&mut self, words: &[&str]) -> Next {
        for channel in words {
            if self.channels.len() >= CHANNELS && !self.channels.contains(*channel) {
                return self.error(&format!("ERR at most {CHANNELS} channels for a connection"));
            }
            self.channels.insert((*channel).to_string());
            self.push("subscribe", channel);
            let count = self.channels.len();
            self.connection.out.extend_from_slice(format!(":{count}\r\n").as_bytes());
        }
        if self.messages.is_none() {
            self.messages = Some(self.relay.messages.subscribe());
        }
        self.place.stay();
        Next::Go
    }

    fn auth(&mut self, words: &[&str]) -> Next {
        let (name, password) = match words {
            [password] => ("default", *password),
            [name, password] => (*name, *password),
            _ => return self.error("ERR wrong number of arguments for 'auth' command"),
        };
        if self.relay.settings().config.user.is_empty() {
            return self.error("ERR AUTH was called and the relay has no users; add a [[user]]");
        }
        if !self.login(name, password) {
            return self.refuse(name);
        }
        self.slot().unwrap_or_else(|| self.ok())
    }

    fn login(&mut self, name: &str, password: &str) -> bool {
        let mut found = None;
        for user in &self.relay.settings().config.user {
            let right = user.password.as_deref().unwrap_or_default();
            // Every user is compared in full, so that time tells nothing.
            if same(user.name.as_bytes(), name.as_bytes()) & same(right.as_bytes(), password.as_bytes()) {
                found = Some(user.may);
            }
        }
        if let Some(may) = found {
            self.may = Some(may);
            self.introduction.user = name.to_string();
        }
        found.is_some()
    }

    /// The place of a user, who may have to go for want of one.
    fn slot(&mut self) -> Option<Next> {
        // Who may be a replica goes on to a place of its own, or stays where it is.
        if self.place.be_client() || self.may == Some(May::Replicate) {
            return None;
        }
        Some(self.refuse_place())
    }

    fn refuse_place(&mut self) -> Next {
        count(&self.relay.counters.refused, 1);
        let most = self.relay.settings().config.limits.connections;
        self.error(&format!(
            "ERR max number of clients reached: {most} that are not replicas, as many as the relay's \
             `limits.connections` allows"
        ));
        Next::Close
    }

    fn refuse(&mut self, name: &str) -> Next {
        count(&self.relay.counters.refused, 1);
        let shown: String = name.chars().filter(char::is_ascii_graphic).take(40).collect();
        let from = &self.introduction.address;
        self.relay.noise.line(&format!("{from} has shown a wrong password for the user `{shown}`"));
        self.attempts += 1;
        self.error("WRONGPASS invalid username-password pair or user is disabled.");
        if self.attempts >= ATTEMPTS { Next::Close } else { Next::Go }
    }

    fn hello(&mut self, words: &[&str]) -> Next {
        let mut version3 = self.version3;
        let mut rest = words;
        if let [version, after @ ..] = rest {
            match *version {
                "2" => version3 = false,
                "3" => version3 = true,
                _ => return self.error("NOPROTO unsupported protocol version"),
            }
            rest = after;
        }
        loop {
            match rest {
                [word, name, password, after @ ..] if word.eq_ignore_ascii_case("AUTH") => {
                    let has_users = !self.relay.settings().config.user.is_empty();
                    // Without users there is `default`, which needs no password.
                    if !has_users && *name != "default" {
                        return self.refuse(name);
                    }
                    if has_users {
                        if !self.login(name, password) {
                            return self.refuse(name);
                        }
                        if let Some(refused) = self.slot() {
                            return refused;
                        }
                    }
                    rest = after;
                }
                [word, name, after @ ..] if word.eq_ignore_ascii_case("SETNAME") => {
                    self.name = (*name).to_string();
                    rest = after;
                }
                [] => break,
                _ => return self.error("ERR syntax error in HELLO"),
            }
        }
        if self.may.is_none() {
            return self.error(
                "NOAUTH HELLO must be called with the client already authenticated, otherwise the HELLO \
                 <proto> AUTH <user> <pass> option can be used to authenticate the client",
            );
        }
        self.version3 = version3;
        let out = &mut self.connection.out;
        out.extend_from_slice(if version3 { b"%7\r\n" } else { b"*14\r\n" });
        let version = info::redis_version(&self.relay);
        let pairs: [(&str, &str); 6] = [
            ("server", "redis"),
            ("version", &version),
            ("proto", if version3 { "3" } else { "2" }),
            ("id", "1"),
            ("mode", "standalone"),
            ("role", "replica"),
        ];
        for (key, value) in pairs {
            write_bulk(out, key.as_bytes());
            if matches!(key, "proto" | "id") {
                out.extend_from_slice(format!(":{value}\r\n").as_bytes());
            } else {
                write_bulk(out, value.as_bytes());
            }
        }
        write_bulk(out, b"modules");
        out.extend_from_slice(b"*0\r\n");
        Next::Go
    }

    fn client(&mut self, words: &[&str]) -> Next {
        match words.first().map(|word| word.to_ascii_uppercase()).as_deref() {
            Some("SETNAME") if words.len() == 2 => {
                self.name = words[1].to_string();
                self.ok()
            }
            Some("GETNAME") => {
                let name = self.name.clone();
                self.bulk(&name)
            }
            _ => self.error("ERR the relay knows CLIENT SETNAME and GETNAME alone"),
        }
    }

    fn replconf(&mut self, words: &[&str]) -> Next {
        for pair in words.chunks(2) {
            let [key, value] = pair else { return self.error("ERR syntax error in REPLCONF") };
            match key.to_ascii_lowercase().as_str() {
                "listening-port" => match value.parse() {
                    Ok(port) => self.introduction.port = port,
                    Err(_) => return self.error("ERR the listening port is not a number from 0 to 65535"),
                },
                // It is a word of INFO and of the log.
                "ip-address" if !is_host(value) => {
                    return self
                        .error("ERR the address is not a host's name or address of at most 255 characters");
                }
                "ip-address" => self.introduction.address = (*value).to_string(),
                "capa" => match *value {
                    "eof" => self.introduction.mark = true,
                    "psync2" => self.introduction.psync2 = true,
                    relay if relay.as_bytes() == RELAY => self.introduction.is_relay = true,
                    _ => {}
                },
                "version" => self.introduction.version = Some(value.chars().take(32).collect()),
                "rdb-only" => {
                    self.introduction.wanted = if *value == "0" { Wanted::Stream } else { Wanted::File };
                }
                "rdb-filter-only" => {
                    if let Some(other) = value.split(' ').find(|word| !matches!(*word, "" | "functions")) {
                        let shown: String = other.chars().take(40).collect();
                        return self.error(&format!(
                            "ERR rdb-filter-only takes `functions` or nothing at the relay, and not `{shown}`"
                        ));
                    }
                    self.introduction.filter = Some((*value).to_string());
                }
                // Acknowledgements before the stream say nothing.
                "ack" => return Next::Go,
                _ => {
                    let shown: String = key.chars().take(40).collect();
                    return self.error(&format!("ERR Unrecognized REPLCONF option: {shown}"));
                }
            }
        }
        self.ok()
    }

    fn psync(&mut self, words: &[&str]) -> Next {
        let [id, from] = words else {
            return self.error("ERR wrong number of arguments for 'psync' command");
        };
        if *id == "?" {
            return Next::Replicate { asked: None };
        }
        match (id.parse(), from.parse::<i64>()) {
            (Ok(id), Ok(from)) => {
                // An offset below 1 is not a place in a stream, so only a file can help.
                Next::Replicate {
                    asked: u64::try_from(from).ok().filter(|from| *from > 0).map(|from| (id, from)),
                }
            }
            _ => self.error("ERR PSYNC takes a replication id of 40 digits and an offset"),
        }
    }

    fn replicaof(&mut self, words: &[&str]) -> Next {
        if let Some(reason) = self.relay.settings().config.refuses_replicaof() {
            return self.error(&format!("ERR {reason}"));
        }
        match words {
            [no, one] if no.eq_ignore_ascii_case("NO") && one.eq_ignore_ascii_case("ONE") => {
                self.error("ERR a relay keeps no data and cannot be a master")
            }
            [host, port] if is_host(host) && port.parse::<u16>().is_ok_and(|port| port > 0) => {
                let address =
                    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
                Next::Follow { master: address }
            }
            _ => self.error("ERR REPLICAOF takes a host and a port"),
        }
    }
}

/// Whether a text may be a host's name or address.
fn is_host(text: &str) -> bool {
    // What ends a field of INFO's lines is in none.
    (1..256).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_:%".contains(&byte))
}

/// Whether two texts are the same, in a time that depends on their lengths alone.
fn same(a: &[u8], b: &[u8]) -> bool {
    let different = a.iter().zip(b).fold(0, |different, (a, b)| different | (a ^ b));
    a.len() == b.len() && std::hint::black_box(different) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_that_is_silent_makes_room_and_one_that_takes_a_file_does_not() {
        let mut config = Config::of("127.0.0.1:6379", "127.0.0.1:0");
        config.limits.connections = 2;
        let relay = Relay::new(config).expect("the configuration is in order");
        let come = || ConnectionSlot::take(&relay, false).expect("a stranger has a place");
        let mut silent = come();
        assert!(silent.be_client());
        let mut backup = come();
        assert!(backup.be_client());
        backup.stay();
        backup.heard();
        let [mut next, mut last] = [come(), come()];
        assert!(!next.be_client(), "two places are taken");
        let age = || {
            let mut current = relay.current.borrow_mut();
            for place in current.clients.values_mut() {
                place.heard = place.heard.and_then(|heard| heard.checked_sub(IDLE));
            }
        };
        age();
        silent.heard();
        assert!(!next.be_client(), "it has said something");
        age();
        assert!(next.be_client());
        let told = |slot: &ConnectionSlot| {
            std::pin::pin!(slot.leave.notified())
                .poll(&mut std::task::Context::from_waker(std::task::Waker::noop()))
                .is_ready()
        };
        assert!(told(&silent) && !told(&backup));
        drop(silent);
        assert!(!last.be_client() && relay.current.borrow().clients.len() == 2, "its place is another's");
        drop(next);
        assert!(last.be_client());
    }

    /// The guide names what asks for something, and sums up what a client says of itself.
    #[test]
    fn what_observers_may_is_what_the_guide_says() {
        let guide = include_str!("../../../docs/redis.md");
        let (_, rest) = guide.split_once("`may = \"observe\"` allows ").unwrap();
        let (named, _) = rest.split_once("and what a client says of itself").unwrap();
        let of_itself = ["SELECT", "CLIENT", "ACL", "CONFIG"];
        for command in OBSERVES {
            let is_named = named.split([' ', ',', '\n']).any(|word| word == command);
            assert_ne!(is_named, of_itself.contains(&command), "{command}: {named}");
        }
        let words = named.split([' ', ',', '\n']).filter(|word| word.len() > 2);
        let commands = words.filter(|word| word.bytes().all(|byte| byte.is_ascii_uppercase()));
        assert_eq!(commands.count(), OBSERVES.len() - of_itself.len(), "{named}");
    }
}
