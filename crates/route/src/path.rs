//! Names of paths and verbs, and why a route cannot be built.

use offpath_quantity::Bytes;
use std::fmt;
use std::str::FromStr;

/// A pair of endpoints and, where a copy engine moves the data, that engine.
///
/// Its name is `requester-responder` or `requester-responder-engine`, as in `client-soc` and
/// `soc-host-dma`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The endpoint whose processor issues the operation.
    pub requester: String,
    /// The endpoint whose memory or processor answers it.
    pub responder: String,
    /// The copy engine, where it is not the network adapter.
    pub engine: Option<String>,
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let engine = self.engine.as_ref().map(|e| format!("-{e}")).unwrap_or_default();
        f.pad(&format!("{}-{}{engine}", self.requester, self.responder))
    }
}

impl FromStr for Path {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<Path, RouteError> {
        let parts: Vec<&str> = text.split('-').collect();
        match parts.as_slice() {
            [requester, responder] if !requester.is_empty() && !responder.is_empty() => {
                Ok(Path { requester: requester.to_string(), responder: responder.to_string(), engine: None })
            }
            [requester, responder, engine]
                if ![requester, responder, engine].iter().any(|part| part.is_empty()) =>
            {
                Ok(Path {
                    requester: requester.to_string(),
                    responder: responder.to_string(),
                    engine: Some(engine.to_string()),
                })
            }
            _ => Err(RouteError::PathSyntax { text: text.to_string() }),
        }
    }
}

/// What an operation does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// RDMA READ of the responder's memory (reliable connection).
    Read,
    /// RDMA WRITE into the responder's memory (reliable connection).
    Write,
    /// A message to the responder's program over a reliable connection.
    Send,
    /// A message to the responder's program by unreliable datagram.
    SendDatagram,
    /// An 8-byte compare-and-swap on the responder's memory.
    CompareAndSwap,
    /// An 8-byte fetch-and-add on the responder's memory.
    FetchAndAdd,
}

impl Verb {
    /// Every verb with the name that files and the command line use.
    pub const NAMES: [(&'static str, Verb); 6] = [
        ("read", Verb::Read),
        ("write", Verb::Write),
        ("send", Verb::Send),
        ("send-ud", Verb::SendDatagram),
        ("compare-and-swap", Verb::CompareAndSwap),
        ("fetch-and-add", Verb::FetchAndAdd),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        Verb::NAMES.iter().find(|(_, verb)| *verb == self).expect("every verb has a name").0
    }

    /// Whether a published measurement of an off-path card speaks of it. Atomics are priced as READs of
    /// 8 B, and nothing that is published holds that to a card.
    pub fn is_published(self) -> bool {
        !matches!(self, Verb::CompareAndSwap | Verb::FetchAndAdd)
    }

    /// Whether the responder's program takes part.
    pub fn is_message(self) -> bool {
        matches!(self, Verb::Send | Verb::SendDatagram)
    }

    /// Whether it changes 8 bytes in place.
    pub fn is_atomic(self) -> bool {
        matches!(self, Verb::CompareAndSwap | Verb::FetchAndAdd)
    }

    /// The payload that it always has, whatever is asked for: 8 B for atomics.
    pub fn own_payload(self) -> Option<Bytes> {
        self.is_atomic().then_some(Bytes::new(8))
    }
}

impl FromStr for Verb {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<Verb, RouteError> {
        Verb::NAMES
            .iter()
            .find(|(name, _)| *name == text)
            .map(|(_, verb)| *verb)
            .ok_or_else(|| RouteError::UnknownVerb { name: text.to_string() })
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// Why an operation has no route.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RouteError {
    /// The name is not two or three words.
    #[error(
        "`{text}` is not a path: write `requester-responder` or `requester-responder-engine`, as in `client-soc` or `soc-host-dma`"
    )]
    PathSyntax {
        /// What was written.
        text: String,
    },
    /// There is no such endpoint.
    #[error(
        "path `{path}` names `{endpoint}`, which {device} in mode {mode} does not have; its endpoints are {known}"
    )]
    UnknownEndpoint {
        /// The path.
        path: String,
        /// The unknown name.
        endpoint: String,
        /// The device.
        device: String,
        /// The mode.
        mode: String,
        /// The endpoints that exist.
        known: String,
    },
    /// There is no such engine.
    #[error(
        "path `{path}` names the engine `{engine}`, which the machine of `{requester}` does not have; its engines are {known}"
    )]
    UnknownEngine {
        /// The path.
        path: String,
        /// The unknown name.
        engine: String,
        /// The requester.
        requester: String,
        /// The engines that exist.
        known: String,
    },
    /// Both ends are one endpoint, or the engine does not join them.
    #[error("path `{path}` {reason}")]
    NoWay {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The verb is none of those known.
    #[error("`{name}` is not a verb; use one of {}", Verb::NAMES.map(|(name, _)| format!("`{name}`")).join(", "))]
    UnknownVerb {
        /// What was written.
        name: String,
    },
    /// The engine cannot do that.
    #[error("a copy engine has no `{verb}`: path `{path}` takes read and write")]
    EngineVerb {
        /// The verb.
        verb: Verb,
        /// The path.
        path: String,
    },
    /// The payload is beyond what a message can hold.
    #[error("a payload of {payload} is above {bound}, the largest that {what} carries; split it")]
    PayloadTooLarge {
        /// The payload.
        payload: Bytes,
        /// The largest accepted.
        bound: Bytes,
        /// The carrier.
        what: &'static str,
    },
    /// More is reserved for an endpoint than it may hold.
    #[error(
        "`{nic}.reserved_contexts` keeps {reserved} contexts for each endpoint, and one of them may hold {contexts} \
         (`{nic}.contexts`); keep fewer, or raise `{nic}.contexts`"
    )]
    ReservedBeyondContexts {
        /// The NIC.
        nic: String,
        /// Contexts kept for each endpoint.
        reserved: u64,
        /// Contexts that an endpoint may hold.
        contexts: u64,
    },
    /// Contexts are reserved between more endpoints than groups of them are counted for.
    #[error(
        "`{nic}.reserved_contexts` keeps contexts for each of {endpoints} endpoints, and at most {most} are modelled; \
         set it to 0, which lets any of them hold all"
    )]
    TooManyEndpoints {
        /// The NIC.
        nic: String,
        /// Endpoints of its machine.
        endpoints: usize,
        /// The most that are modelled.
        most: usize,
    },
    /// A batch of no requests.
    #[error("a doorbell batch of 0 requests posts nothing; use 1 or more")]
    EmptyBatch,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever draws a verb draws from the names, so a verb without one would not be drawn.
    #[test]
    fn every_verb_is_named() {
        let next = |verb: Verb| match verb {
            Verb::Read => Some(Verb::Write),
            Verb::Write => Some(Verb::Send),
            Verb::Send => Some(Verb::SendDatagram),
            Verb::SendDatagram => Some(Verb::CompareAndSwap),
            Verb::CompareAndSwap => Some(Verb::FetchAndAdd),
            Verb::FetchAndAdd => None,
        };
        let all: Vec<Verb> = std::iter::successors(Some(Verb::Read), |verb| next(*verb)).collect();
        assert_eq!(all, Verb::NAMES.map(|(_, verb)| verb));
    }
}
