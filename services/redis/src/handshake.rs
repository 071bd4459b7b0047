//! What a replica says to its master before the stream begins.
//!
//! Source: the replication protocol of Redis 7 as its documentation ("Redis replication", "PSYNC")
//! describes it: PING, AUTH, REPLCONF listening-port, ip-address, capa and version, then PSYNC.

use crate::config::Master;
use crate::history::{History, NoReplicationId, ReplicationId, ServerIdentity};
use crate::names;
use crate::payload::PayloadError;
use crate::resp::{self, Limits, RespError, Value};
use crate::tls::{Connector, Stream};
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::time::Duration;
use thiserror::Error;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

/// How long a connection or its TLS may take to be there.
const CONNECTING: Duration = Duration::from_secs(10);

/// Why there is no stream.
#[derive(Debug, Error)]
pub enum HandshakeError {
    /// The connection failed.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The master said something that is not RESP.
    #[error("{0}")]
    Resp(#[from] RespError),
    /// The file of a full synchronisation was not what it has to be.
    #[error("{0}")]
    Payload(#[from] PayloadError),
    /// The master refused a step.
    #[error("{step} was refused: {reply}")]
    Refused {
        /// What was asked.
        step: &'static str,
        /// What the master said.
        reply: String,
    },
    /// An answer that the step does not have.
    #[error("{step} was answered by `{reply}`; is this a Redis or Valkey server?")]
    Reply {
        /// What was asked.
        step: &'static str,
        /// What the master said.
        reply: String,
    },
    /// The master did not greet as `[master.tls]` asks for.
    #[error(
        "no TLS with the master: {0}; does it speak TLS at this port, with a certificate of `master.tls.authorities`?"
    )]
    Tls(String),
    /// A name of a history that is none.
    #[error("{0}; is this a Redis or Valkey server?")]
    Id(#[from] NoReplicationId),
    /// The peer closed or was silent.
    #[error("the master was silent for {0:?}")]
    Silent(Duration),
}

/// The error for an answer that a step does not have.
fn refused(step: &'static str, reply: &Value) -> HandshakeError {
    match reply {
        Value::Error(text) => HandshakeError::Refused { step, reply: text.clone() },
        other => HandshakeError::Reply { step, reply: format!("{other:?}").chars().take(80).collect() },
    }
}

/// The capability by which a relay makes itself known to another.
pub const RELAY: &[u8] = b"offpath-relay";

/// What the master answers to PSYNC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Psync {
    /// A file follows, then the stream behind `offset`.
    Full {
        /// The history.
        id: ReplicationId,
        /// Where the file stands.
        offset: u64,
    },
    /// The stream goes on where it was asked for; a new name means that a replica was promoted.
    Continue {
        /// The history's name from here on, where the master told it.
        id: Option<ReplicationId>,
    },
}

/// Reads the answer to PSYNC.
pub fn psync_reply(reply: &Value) -> Result<Psync, HandshakeError> {
    let step = "PSYNC";
    let wrong = |reply: String| HandshakeError::Reply { step, reply };
    match reply {
        Value::Error(reply) => Err(HandshakeError::Refused { step, reply: reply.clone() }),
        Value::Simple(line) => {
            let mut words = line.split_ascii_whitespace();
            match (words.next(), words.next(), words.next()) {
                (Some("FULLRESYNC"), Some(id), Some(offset)) => {
                    let offset: u64 = offset.parse().map_err(|_| wrong(line.clone()))?;
                    // Offsets are signed in servers; above that nothing can follow.
                    if offset > i64::MAX as u64 / 2 {
                        return Err(wrong(line.clone()));
                    }
                    Ok(Psync::Full { id: id.parse()?, offset })
                }
                (Some("CONTINUE"), id, _) => Ok(Psync::Continue { id: id.map(str::parse).transpose()? }),
                _ => Err(wrong(line.chars().take(80).collect())),
            }
        }
        other => Err(wrong(format!("{other:?}").chars().take(80).collect())),
    }
}

/// A connection to a master with what was read and not yet used.
pub struct MasterLink {
    /// The connection.
    pub stream: Stream,
    /// Bytes behind the last reply.
    pub input: Vec<u8>,
    silence: Duration,
}

impl MasterLink {
    /// Connects to `address`, `HOST:PORT`; every wait ends after `silence`.
    pub async fn connect(
        address: &str,
        connector: Option<&Connector>,
        silence: Duration,
    ) -> Result<MasterLink, HandshakeError> {
        let longest = silence.min(CONNECTING);
        let connecting = async {
            let stream = names::connect(address).await?;
            stream.set_nodelay(true)?;
            Ok::<_, io::Error>(stream)
        };
        let stream = timeout(longest, connecting).await.map_err(|_| HandshakeError::Silent(longest))??;
        let stream = match connector {
            None => Stream::Plain(stream),
            Some(connector) => {
                let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
                let greeting = timeout(longest, connector.connect(host.trim_matches(['[', ']']), stream));
                let timed_out = || format!("it did not answer within {longest:?}");
                let greeted = greeting.await.map_err(|_| HandshakeError::Tls(timed_out()))?;
                greeted.map_err(|error| HandshakeError::Tls(error.to_string()))?
            }
        };
        Ok(MasterLink { stream, input: Vec::new(), silence })
    }

    /// Sends bytes.
    pub async fn send(&mut self, bytes: &[u8]) -> Result<(), HandshakeError> {
        let sending = async {
            self.stream.write_all(bytes).await?;
            self.stream.flush().await
        };
        Ok(timeout(self.silence, sending).await.map_err(|_| HandshakeError::Silent(self.silence))??)
    }

    /// Reads more bytes into `input`.
    pub async fn more(&mut self) -> Result<(), HandshakeError> {
        let mut piece = [0; 16 << 10];
        let reading = self.stream.read(&mut piece);
        let count =
            timeout(self.silence, reading).await.map_err(|_| HandshakeError::Silent(self.silence))??;
        if count == 0 {
            return Err(
                io::Error::new(io::ErrorKind::UnexpectedEof, "the master closed the connection").into()
            );
        }
        self.input.extend_from_slice(&piece[..count]);
        Ok(())
    }

    /// Reads into `buffer`, up to what it has room for, without the timeout of the other calls.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|context| {
            let mut read = ReadBuf::new(buffer);
            Pin::new(&mut self.stream).poll_read(context, &mut read).map_ok(|()| read.filled().len())
        })
        .await
    }

    /// The next reply, behind the empty lines that a master sends while it prepares one.
    pub async fn reply(&mut self) -> Result<Value, HandshakeError> {
        self.reply_within(Limits::CLIENT).await
    }

    async fn reply_within(&mut self, limits: Limits) -> Result<Value, HandshakeError> {
        loop {
            let blank = self.input.iter().take_while(|byte| **byte == b'\n').count();
            self.input.drain(..blank);
            if let Some((value, taken)) = resp::reply(&self.input, limits)? {
                self.input.drain(..taken);
                return Ok(value);
            }
            self.more().await?;
        }
    }

    /// Sends a request and waits for its reply.
    pub async fn ask(&mut self, arguments: &[&[u8]]) -> Result<Value, HandshakeError> {
        let mut out = Vec::new();
        resp::write_request(&mut out, arguments);
        self.send(&out).await?;
        self.reply().await
    }

    /// Shows the relay's password, and introduces the connection by a name.
    pub async fn log_in(&mut self, master: &Master, name: &str) -> Result<(), HandshakeError> {
        match self.ask(&[b"PING"]).await? {
            Value::Simple(_) | Value::Bulk(_) => {}
            // The master wants a password first.
            Value::Error(text) if text.starts_with("NOAUTH") && master.password.is_some() => {}
            other => return Err(refused("PING", &other)),
        }
        if let Some(password) = &master.password {
            let mut words: Vec<&[u8]> = vec![b"AUTH"];
            words.extend(master.user.as_ref().map(|user| user.as_bytes()));
            words.push(password.as_bytes());
            match self.ask(&words).await? {
                Value::Simple(_) => {}
                other => return Err(refused("AUTH", &other)),
            }
        }
        // For CLIENT LIST; a user may lack the permission, and goes without a name.
        self.ask(&[b"CLIENT", b"SETNAME", name.as_bytes()]).await?;
        Ok(())
    }

    /// Introduces the relay as a replica that listens on `port`.
    pub async fn introduce(
        &mut self,
        master: &Master,
        port: u16,
        address: Option<&str>,
    ) -> Result<(), HandshakeError> {
        let port = port.to_string();
        let mut steps: Vec<Vec<&[u8]>> = vec![vec![b"REPLCONF", b"listening-port", port.as_bytes()]];
        if let Some(address) = address {
            steps.push(vec![b"REPLCONF", b"ip-address", address.as_bytes()]);
        }
        // Servers ignore capabilities that they do not know; another relay asks these who is above them.
        steps.push(vec![b"REPLCONF", b"capa", b"eof", b"capa", b"psync2", b"capa", RELAY]);
        if let Some(version) = &master.announce_version {
            steps.push(vec![b"REPLCONF", b"version", version.as_bytes()]);
        }
        for step in steps {
            match self.ask(&step).await? {
                // Servers refuse options that they do not know, and go on without them.
                Value::Simple(_) => {}
                Value::Error(text) if text.starts_with("ERR") => {}
                other => return Err(refused("REPLCONF", &other)),
            }
        }
        Ok(())
    }

    /// What the master says of its history; a user that may not ask is told nothing.
    pub async fn history(&mut self) -> Result<Option<History>, HandshakeError> {
        let mut out = Vec::new();
        resp::write_request(&mut out, &[b"INFO", b"replication"]);
        self.send(&out).await?;
        // It has a line for each replica.
        let answer = self.reply_within(Limits::INFO).await?;
        Ok(answer.text().and_then(|text| History::parse(&text)))
    }

    /// Which server the master is; a user that may not ask is told nothing.
    pub async fn identity(&mut self) -> Result<ServerIdentity, HandshakeError> {
        let answer = self.ask(&[b"INFO", b"server"]).await?;
        Ok(answer.text().map(|text| ServerIdentity::parse(&text)).unwrap_or_default())
    }

    /// Asks for files with parts of the data alone. A file with all of it would not be what was asked for.
    pub async fn want_parts(&mut self, filter: &str) -> Result<(), HandshakeError> {
        let step = "REPLCONF rdb-filter-only";
        match self.ask(&[b"REPLCONF", b"rdb-filter-only", filter.as_bytes()]).await? {
            Value::Simple(_) => Ok(()),
            Value::Error(reply) => Err(HandshakeError::Refused { step, reply }),
            other => {
                Err(HandshakeError::Reply { step, reply: format!("{other:?}").chars().take(80).collect() })
            }
        }
    }

    /// Asks for files alone, so that the master neither counts this connection as a replica nor keeps the stream for
    /// it. Servers before 7.0 refuse that and go on without it.
    pub async fn want_files_alone(&mut self) -> Result<(), HandshakeError> {
        self.ask(&[b"REPLCONF", b"rdb-only", b"1"]).await.map(|_| ())
    }

    /// Asks for the stream from byte `next` of history `id`, or for a full synchronisation.
    pub async fn psync(&mut self, from: Option<(ReplicationId, u64)>) -> Result<Psync, HandshakeError> {
        let (id, offset) = match from {
            Some((id, next)) => (id.to_string(), next.to_string()),
            None => ("?".to_string(), "-1".to_string()),
        };
        let reply = self.ask(&[b"PSYNC", id.as_bytes(), offset.as_bytes()]).await?;
        psync_reply(&reply)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ID: &str = "0123456789abcdef0123456789abcdef01234567";

    #[test]
    fn answers_to_psync() {
        let answer = |text: &str| psync_reply(&Value::Simple(text.into()));
        let id = ID.parse().unwrap();
        assert!(matches!(answer(&format!("FULLRESYNC {ID} 42")), Ok(Psync::Full { offset: 42, .. })));
        assert_eq!(answer(&format!("CONTINUE {ID}")).unwrap(), Psync::Continue { id: Some(id) });
        assert_eq!(answer("CONTINUE").unwrap(), Psync::Continue { id: None });
        for wrong in ["FULLRESYNC x 42", "FULLRESYNC", "CONTINUE x", "OK", ""] {
            assert!(answer(wrong).is_err(), "{wrong}");
        }
        assert!(answer(&format!("FULLRESYNC {ID} -1")).is_err());
        assert!(answer(&format!("FULLRESYNC {ID} 18446744073709551615")).is_err());
        let error = psync_reply(&Value::Error("NOMASTERLINK no".into())).unwrap_err().to_string();
        assert!(error.contains("NOMASTERLINK"), "{error}");
    }

    /// A relay below one that has a thousand replicas reads its INFO as any other.
    #[tokio::test]
    async fn a_master_of_very_many_replicas_says_its_history() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let replicas: String = (0..2_000)
            .map(|number| format!("slave{number}:ip=127.0.0.1,port={number},state=online\r\n"))
            .collect();
        let text = format!(
            "{replicas}master_replid:{ID}\r\nmaster_repl_offset:9\r\nsecond_repl_offset:-1\r\n\
             repl_backlog_first_byte_offset:1\r\n"
        );
        assert!(text.len() > Limits::CLIENT.bytes);
        let answers = async {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut asked = [0; 64];
            let _ = stream.read(&mut asked).await.unwrap();
            stream.write_all(format!("${}\r\n{text}\r\n", text.len()).as_bytes()).await.unwrap();
        };
        let asks = async {
            let mut link = MasterLink::connect(&address, None, Duration::from_secs(20)).await.unwrap();
            link.history().await.unwrap().map(|history| history.id.to_string())
        };
        assert_eq!(tokio::join!(answers, asks).1.as_deref(), Some(ID));
    }

    proptest! {
        #[test]
        fn any_answer_is_answered(text in "(FULLRESYNC|CONTINUE)?[ -~]{0,80}") {
            let _ = psync_reply(&Value::Simple(text));
        }
    }
}
