//! A small blocking connection to one server.

use crate::MongoError;
use crate::scram::Exchange;
use crate::wire::{self, WireError};
use bson::{Binary, Bson, Document, doc, spec::BinarySubtype};
use ring::rand::{SecureRandom, SystemRandom};
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

/// How to reach and enter every server.
#[derive(Clone, Debug)]
pub struct MongoAccess {
    /// The user, with a password.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// The database that knows the user.
    pub source: String,
    /// Every wait for a server ends after this time.
    pub silence: Duration,
}

impl Default for MongoAccess {
    fn default() -> MongoAccess {
        MongoAccess {
            user: None,
            password: None,
            source: "admin".to_string(),
            silence: Duration::from_secs(30),
        }
    }
}

/// A connection to one server.
#[derive(Debug)]
pub struct MongoClient {
    address: String,
    stream: TcpStream,
    requests: i32,
    /// The commands whose answers are still to come, in order.
    open: std::collections::VecDeque<(i32, String)>,
}

/// Wire version of MongoDB 3.6, the first with OP_MSG.
const OLDEST: i32 = 6;

impl MongoClient {
    /// Connects to `address`, `HOST:PORT`, greets the server and shows the password.
    pub fn connect(address: &str, access: &MongoAccess) -> Result<MongoClient, MongoError> {
        let io = |cause| MongoError::Io { address: address.to_string(), cause };
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for socket in address.to_socket_addrs().map_err(io)? {
            match TcpStream::connect_timeout(&socket, access.silence) {
                Ok(stream) => {
                    stream.set_nodelay(true).map_err(io)?;
                    stream.set_read_timeout(Some(access.silence)).map_err(io)?;
                    stream.set_write_timeout(Some(access.silence)).map_err(io)?;
                    let mut client = MongoClient {
                        address: address.to_string(),
                        stream,
                        requests: 0,
                        open: Default::default(),
                    };
                    client.greet()?;
                    if let Some(password) = &access.password {
                        client.log_in(
                            access.user.as_deref().unwrap_or_default(),
                            password,
                            &access.source,
                        )?;
                    }
                    return Ok(client);
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

    fn greet(&mut self) -> Result<(), MongoError> {
        let hello = self.ask("admin", doc! { "hello": 1 })?;
        let version = integer(hello.get("maxWireVersion")).unwrap_or(0);
        if version < OLDEST.into() {
            let reason =
                format!("it speaks wire version {version}; {OLDEST} (MongoDB 3.6) or later is needed");
            return Err(self.unexpected(reason));
        }
        if !hello.get_bool("isWritablePrimary").unwrap_or(false) {
            let reason = match hello.get_str("primary") {
                Ok(primary) => format!("it is not a primary; name {primary} instead"),
                Err(_) => "it takes no writes; name the primary".to_string(),
            };
            return Err(self.unexpected(reason));
        }
        Ok(())
    }

    fn log_in(&mut self, user: &str, password: &str, source: &str) -> Result<(), MongoError> {
        let mut random = [0; 18];
        SystemRandom::new()
            .fill(&mut random)
            .map_err(|_| self.unexpected("the system gives no random numbers".to_string()))?;
        let nonce: String = random.iter().map(|byte| format!("{byte:02x}")).collect();
        let mut exchange =
            Exchange::new(user, password, &nonce).map_err(|error| self.unexpected(error.to_string()))?;
        let payload =
            |text: String| Bson::Binary(Binary { subtype: BinarySubtype::Generic, bytes: text.into_bytes() });
        let first = self.ask(
            source,
            doc! { "saslStart": 1, "mechanism": "SCRAM-SHA-256", "payload": payload(exchange.first()),
            "options": { "skipEmptyExchange": true } },
        )?;
        let text = |client: &MongoClient, answer: &Document| match answer.get_binary_generic("payload") {
            Ok(bytes) => Ok(String::from_utf8_lossy(bytes).into_owned()),
            Err(_) => Err(client.unexpected("its answer to the password has no payload".to_string())),
        };
        let id = first.get("conversationId").cloned().unwrap_or(Bson::Int32(1));
        let mut message = text(self, &first)?;
        message = exchange.last(&message).map_err(|error| self.unexpected(error.to_string()))?;
        let mut answer = self.ask(
            source,
            doc! { "saslContinue": 1, "conversationId": id.clone(), "payload": payload(message) },
        )?;
        message = text(self, &answer)?;
        exchange.check(&message).map_err(|error| self.unexpected(error.to_string()))?;
        // A server that does not skip the empty exchange wants one empty message more.
        if !answer.get_bool("done").unwrap_or(false) {
            answer = self.ask(
                source,
                doc! { "saslContinue": 1, "conversationId": id, "payload": payload(String::new()) },
            )?;
        }
        if answer.get_bool("done").unwrap_or(false) {
            Ok(())
        } else {
            Err(self.unexpected("it does not end the exchange about the password".to_string()))
        }
    }

    /// Sends a command without waiting for its answer.
    pub fn send(&mut self, database: &str, mut command: Document) -> Result<(), MongoError> {
        let name = command.keys().next().cloned().unwrap_or_default();
        command.insert("$db", database);
        self.requests = self.requests.wrapping_add(1);
        let message = wire::encode(self.requests, &command).map_err(|cause| self.wire(cause))?;
        self.stream
            .write_all(&message)
            .map_err(|cause| MongoError::Io { address: self.address.clone(), cause })?;
        self.open.push_back((self.requests, name));
        Ok(())
    }

    /// The answer to the oldest command that has none; refusals are errors, of single writes too.
    pub fn receive(&mut self) -> Result<Document, MongoError> {
        let io = |cause| MongoError::Io { address: self.address.clone(), cause };
        let mut message = vec![0; 4];
        self.stream.read_exact(&mut message).map_err(io)?;
        let length = wire::length(&message).map_err(|cause| self.wire(cause))?.unwrap_or_default();
        // What is announced is only kept once it has come.
        let taken = (&self.stream).take(length as u64 - 4).read_to_end(&mut message).map_err(io)?;
        if taken != length - 4 {
            return Err(io(io::ErrorKind::UnexpectedEof.into()));
        }
        let (answers, document) = wire::decode(&message).map_err(|cause| self.wire(cause))?;
        let Some((request, command)) = self.open.pop_front() else {
            return Err(self.unexpected("it answers what was not asked".to_string()));
        };
        if answers != request {
            return Err(self.unexpected(format!("it answers request {answers}; {command} was {request}")));
        }
        let refusal = if integer(document.get("ok")) != Some(1) {
            Some(&document)
        } else {
            let first = document.get_array("writeErrors").ok().and_then(|errors| errors.first());
            first.and_then(Bson::as_document).or(document.get_document("writeConcernError").ok())
        };
        match refusal {
            None => Ok(document),
            Some(refusal) => Err(MongoError::Refused {
                address: self.address.clone(),
                command,
                code: integer(refusal.get("code")).and_then(|code| code.try_into().ok()).unwrap_or(0),
                reply: refusal.get_str("errmsg").unwrap_or("no reason given").chars().take(200).collect(),
            }),
        }
    }

    /// Sends a command and gives its answer.
    pub fn ask(&mut self, database: &str, command: Document) -> Result<Document, MongoError> {
        self.send(database, command)?;
        self.receive()
    }

    /// Whether nothing is in flight, so that another may use the connection.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty()
    }

    /// Goes through all documents that the command `find` gives, a batch at a time.
    pub fn each_batch<E: From<MongoError>>(
        &mut self,
        database: &str,
        find: Document,
        mut take: impl FnMut(Vec<Document>) -> Result<(), E>,
    ) -> Result<(), E> {
        let collection = find.get_str("find").unwrap_or_default().to_string();
        let mut answer = self.ask(database, find)?;
        loop {
            let (id, batch) =
                batch(answer).ok_or_else(|| self.unexpected("no cursor in an answer".into()))?;
            if !batch.is_empty() {
                take(batch)?;
            }
            if id == 0 {
                return Ok(());
            }
            answer = self.ask(database, doc! { "getMore": id, "collection": collection.as_str() })?;
        }
    }

    fn wire(&self, cause: WireError) -> MongoError {
        MongoError::Wire { address: self.address.clone(), cause }
    }

    fn unexpected(&self, reason: String) -> MongoError {
        MongoError::Unexpected { address: self.address.clone(), reason }
    }
}

/// The cursor's number, 0 at its end, and the documents of an answer to `find` or `getMore`.
pub fn batch(mut answer: Document) -> Option<(i64, Vec<Document>)> {
    let Some(Bson::Document(mut cursor)) = answer.remove("cursor") else { return None };
    let id = integer(cursor.get("id"))?;
    let Some(Bson::Array(batch)) = cursor.remove("firstBatch").or_else(|| cursor.remove("nextBatch")) else {
        return None;
    };
    let documents = batch.into_iter().map(|value| match value {
        Bson::Document(document) => Some(document),
        _ => None,
    });
    Some((id, documents.collect::<Option<Vec<Document>>>()?))
}

/// A whole number, whatever type the server has given it.
pub fn integer(value: Option<&Bson>) -> Option<i64> {
    match value? {
        Bson::Int32(number) => Some((*number).into()),
        Bson::Int64(number) => Some(*number),
        Bson::Double(number) if number.fract() == 0.0 && number.abs() <= 9e15 => Some(*number as i64),
        Bson::Boolean(true) => Some(1),
        _ => None,
    }
}
