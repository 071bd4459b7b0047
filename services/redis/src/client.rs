//! A small blocking client for what the commands of this crate ask servers.
//!
//! It speaks RESP2 over plain TCP and waits a bounded time. Programs that serve data use a full client.

use crate::resp::{self, Limits, RespError, Value};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;
use thiserror::Error;

/// Why a server did not answer as it should.
#[derive(Debug, Error)]
pub enum ClientError {
    /// The connection failed.
    #[error("{address}: {cause}; is a server running there?")]
    Io {
        /// Which server.
        address: String,
        /// What the system says.
        cause: io::Error,
    },
    /// The server's answer is not RESP.
    #[error("{address}: {cause}")]
    Resp {
        /// Which server.
        address: String,
        /// What is wrong with it.
        cause: RespError,
    },
    /// The server refused a command.
    #[error("{address}: {command} was refused: {reply}")]
    Refused {
        /// Which server.
        address: String,
        /// The command's name.
        command: String,
        /// What the server said.
        reply: String,
    },
    /// The answer is of another kind than the command has.
    #[error("{address}: {command} was answered by {reply}")]
    Unexpected {
        /// Which server.
        address: String,
        /// The command's name.
        command: String,
        /// What the server said.
        reply: String,
    },
}

impl ClientError {
    /// Whether nobody listens at the address, or it is none; a server that hangs is there.
    pub fn is_nobody_there(&self) -> bool {
        let ClientError::Io { cause, .. } = self else { return false };
        matches!(
            cause.kind(),
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound | io::ErrorKind::InvalidInput
        )
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct RedisClient {
    address: String,
    stream: TcpStream,
    input: Vec<u8>,
}

impl RedisClient {
    /// Connects to `address`, `HOST:PORT`; every wait ends after `silence`.
    pub fn connect(address: &str, silence: Duration) -> Result<RedisClient, ClientError> {
        let io = |cause| ClientError::Io { address: address.to_string(), cause };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for socket in address.to_socket_addrs().map_err(io)? {
            match TcpStream::connect_timeout(&socket, silence) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(io)?;
                    stream.set_read_timeout(Some(silence)).map_err(io)?;
                    stream.set_write_timeout(Some(silence)).map_err(io)?;
                    return Ok(RedisClient { address: address.to_string(), stream, input: Vec::new() });
                }
                Err(error) => last = error,
            }
        }
        Err(io(last))
    }

    /// Where it is connected to.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Sends requests at once, without waiting for replies.
    pub fn send(&mut self, requests: &[Vec<&[u8]>]) -> Result<(), ClientError> {
        let mut out = Vec::new();
        for request in requests {
            resp::write_request(&mut out, request);
        }
        self.stream.write_all(&out).map_err(|cause| ClientError::Io { address: self.address.clone(), cause })
    }

    /// The next reply, errors of the server among them.
    pub fn receive(&mut self) -> Result<Value, ClientError> {
        let mut wanted = 0;
        loop {
            if self.input.len() >= wanted {
                let found = resp::reply(&self.input, Limits::REPLY)
                    .map_err(|cause| ClientError::Resp { address: self.address.clone(), cause })?;
                if let Some((value, taken)) = found {
                    self.input.drain(..taken);
                    return Ok(value);
                }
                // Long replies are looked at again when they have doubled, so the work stays linear.
                wanted = if self.input.len() < 64 << 10 { 0 } else { self.input.len() * 2 };
            }
            let mut piece = [0; 64 << 10];
            let count = self
                .stream
                .read(&mut piece)
                .and_then(|count| match count {
                    0 => Err(io::ErrorKind::UnexpectedEof.into()),
                    count => Ok(count),
                })
                .map_err(|cause| self.unanswered(cause))
                .map_err(|cause| ClientError::Io { address: self.address.clone(), cause })?;
            // A short read is most likely the end of the reply.
            if count < piece.len() {
                wanted = 0;
            }
            self.input.extend_from_slice(&piece[..count]);
        }
    }

    /// What a wait that ended without an answer is called.
    fn unanswered(&self, cause: io::Error) -> io::Error {
        match (cause.kind(), self.stream.read_timeout()) {
            (io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut, Ok(Some(silence))) => io::Error::new(
                io::ErrorKind::TimedOut,
                format!("no answer within {} s", silence.as_secs_f64()),
            ),
            _ => cause,
        }
    }

    /// Sends a request and gives its reply; an error of the server is an error here.
    pub fn ask(&mut self, words: &[&str]) -> Result<Value, ClientError> {
        let words: Vec<&[u8]> = words.iter().map(|word| word.as_bytes()).collect();
        self.ask_bytes(&words)
    }

    /// Like [`RedisClient::ask`], for arguments that are no text.
    pub fn ask_bytes(&mut self, words: &[&[u8]]) -> Result<Value, ClientError> {
        self.send(&[words.to_vec()])?;
        match self.receive()? {
            Value::Error(reply) => {
                Err(ClientError::Refused { address: self.address.clone(), command: name(words), reply })
            }
            value => Ok(value),
        }
    }

    /// The text of a reply.
    pub fn text(&mut self, words: &[&str]) -> Result<String, ClientError> {
        let value = self.ask(words)?;
        value.text().ok_or_else(|| self.unexpected(words, &value))
    }

    /// The number of a reply.
    pub fn number(&mut self, words: &[&str]) -> Result<i64, ClientError> {
        match self.ask(words)? {
            Value::Integer(number) => Ok(number),
            value => Err(self.unexpected(words, &value)),
        }
    }

    /// The error for a reply that `words` do not have.
    pub fn unexpected(&self, words: &[&str], value: &Value) -> ClientError {
        ClientError::Unexpected {
            address: self.address.clone(),
            command: words.iter().take(2).copied().collect::<Vec<_>>().join(" "),
            reply: format!("{value:?}").chars().take(120).collect(),
        }
    }

    /// Shows a password.
    pub fn login(&mut self, user: Option<&str>, password: &str) -> Result<(), ClientError> {
        let mut words = vec!["AUTH"];
        words.extend(user);
        words.push(password);
        self.ask(&words).map(|_| ())
    }

    /// One field of INFO.
    pub fn info(&mut self, section: &str, field: &str) -> Result<Option<String>, ClientError> {
        let text = self.text(&["INFO", section])?;
        Ok(text
            .lines()
            .find_map(|line| line.strip_prefix(field)?.strip_prefix(':'))
            .map(|value| value.trim().to_string()))
    }
}

fn name(words: &[&[u8]]) -> String {
    let shown = if words.first().is_some_and(|word| word.eq_ignore_ascii_case(b"AUTH")) { 1 } else { 2 };
    let words: Vec<_> = words.iter().take(shown).map(|word| String::from_utf8_lossy(word)).collect();
    words.join(" ").chars().take(80).collect()
}
