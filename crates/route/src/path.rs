//! Names of paths and verbs, and why a route cannot be built.

use offpath_profile::EngineWork;
use offpath_quantity::Bytes;
use std::fmt;
use std::str::FromStr;

/// A pair of endpoints and, where another engine than the NIC carries operations out, that engine.
///
/// Its name is `requester-responder` or `requester-responder-engine`, as in `client-soc` and
/// `soc-host-dma`; `endpoint-engine` where both ends are one, as in `host-ssd`. An endpoint is a processor with its own
/// memory, or `processor:memory`, as in `client-host:gpu`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path {
    /// The endpoint whose processor issues the operation.
    pub requester: String,
    /// The endpoint whose memory or processor answers it.
    pub responder: String,
    /// The engine, where it is not the NIC.
    pub engine: Option<String>,
}

/// The processor of an endpoint's name: of `host:gpu` it is `host`, whose own memory's endpoint is called so too.
pub fn processor_of(endpoint: &str) -> &str {
    endpoint.split_once(':').map_or(endpoint, |(processor, _)| processor)
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Path { requester, responder, engine } = self;
        f.pad(&match engine {
            None => format!("{requester}-{responder}"),
            Some(engine) if requester == responder => format!("{requester}-{engine}"),
            Some(engine) => format!("{requester}-{responder}-{engine}"),
        })
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

/// What an operation does: a row of the [table of verbs](VERBS).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Verb {
    /// RDMA READ.
    Read,
    /// RDMA WRITE.
    Write,
    /// A message over a reliable connection.
    Send,
    /// A message by unreliable datagram.
    SendDatagram,
    /// An 8-byte compare-and-swap.
    CompareAndSwap,
    /// An 8-byte fetch-and-add.
    FetchAndAdd,
    /// A copy by an engine.
    Copy,
    /// A function of bytes that an engine computes.
    Transform,
    /// A processor's own loads.
    Load,
    /// A processor's own stores.
    Store,
    /// A packet from the port to the port through a processor.
    Forward,
}

/// What carries an operation out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// The NIC of the requester, and that of the responder.
    Nic,
    /// An engine of the requester's machine that does this work.
    Engine(EngineWork),
    /// The requester's processor itself.
    Processor,
}

/// Which way the payload moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moves {
    /// From the responder's memory to the requester's.
    ToRequester,
    /// From the requester's memory to the responder's.
    ToResponder,
}

/// What a request through the NIC holds of the responder's NIC meanwhile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SlotHold {
    /// Nothing: no NIC takes part.
    Nothing,
    /// A slot until the payload has left the responder.
    UntilRead,
    /// A slot for the responder's `write_slot_time`, where there is a payload.
    WhileWritten,
    /// A slot for the responder's `receive_slot_time`.
    WhileReceived,
}

/// What the responder does, and so where the operation ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Responder {
    /// Nothing; the operation ends with the requester's completion.
    Nothing,
    /// Its memory changes in place and answers what it held; the operation ends with the requester's completion.
    Changes,
    /// Its processor receives the message, and there the operation ends.
    Receives,
}

/// Whether loss is repaired, and what bounds a payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// Acknowledged and retransmitted; a message of at most [`LONGEST_MESSAGE`](crate::LONGEST_MESSAGE).
    Reliable,
    /// Neither; a datagram of at most the network's MTU.
    Datagram,
}

/// A row of the table of verbs: everything that names, routes, designs, help and generated tests need to know of one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct VerbRow {
    /// The verb.
    pub verb: Verb,
    /// The name that files and the command line use.
    pub name: &'static str,
    /// What it does, for help.
    pub documentation: &'static str,
    /// What may carry it out.
    pub carriers: &'static [Carrier],
    /// Which way its payload moves.
    pub moves: Moves,
    /// What it holds of the responder's NIC.
    pub held: SlotHold,
    /// What the responder does.
    pub responder: Responder,
    /// Whether loss is repaired.
    pub transport: Transport,
    /// The payload that it always has, whatever is asked for.
    pub own_payload: Option<Bytes>,
    /// Whether numbers price it that were fitted to published measurements. None do atomics, which are priced as READs of 8 B,
    /// nor what a processor does itself or an engine other than by copying.
    pub is_published: bool,
}

const NIC: Carrier = Carrier::Nic;
const COPIES: Carrier = Carrier::Engine(EngineWork::Copy);
const STORES: Carrier = Carrier::Engine(EngineWork::Store);
const READ: VerbRow = VerbRow {
    verb: Verb::Read,
    name: "read",
    documentation: "the responder's memory to the requester's; of an engine that stores, what it keeps to a memory",
    carriers: &[NIC, COPIES, STORES],
    moves: Moves::ToRequester,
    held: SlotHold::UntilRead,
    responder: Responder::Nothing,
    transport: Transport::Reliable,
    own_payload: None,
    is_published: true,
};
const WRITE: VerbRow = VerbRow {
    verb: Verb::Write,
    name: "write",
    documentation: "the requester's memory to the responder's; of an engine that stores, a memory to what it keeps",
    moves: Moves::ToResponder,
    held: SlotHold::WhileWritten,
    ..READ
};
const SEND: VerbRow = VerbRow {
    verb: Verb::Send,
    name: "send",
    documentation: "a message to the responder's program over a reliable connection",
    carriers: &[NIC],
    held: SlotHold::WhileReceived,
    responder: Responder::Receives,
    ..WRITE
};
const ATOMIC: VerbRow = VerbRow {
    carriers: &[NIC],
    responder: Responder::Changes,
    own_payload: Some(Bytes::new(8)),
    is_published: false,
    ..READ
};
const COPY: VerbRow = VerbRow {
    verb: Verb::Copy,
    name: "copy",
    documentation: "the requester's memory to the responder's by an engine, also within one memory",
    carriers: &[COPIES],
    held: SlotHold::Nothing,
    ..WRITE
};
const LOAD: VerbRow = VerbRow {
    verb: Verb::Load,
    name: "load",
    documentation: "the responder's memory to the requester's processor, by its own loads",
    carriers: &[Carrier::Processor],
    held: SlotHold::Nothing,
    is_published: false,
    ..READ
};

/// The table of verbs, in the order of [`Verb`].
///
/// ```
/// use offpath_route::{Moves, VERBS, Verb};
/// assert_eq!(VERBS[Verb::Write as usize].moves, Moves::ToResponder);
/// ```
pub const VERBS: [VerbRow; 11] = [
    READ,
    WRITE,
    SEND,
    VerbRow {
        verb: Verb::SendDatagram,
        name: "send-ud",
        documentation: "a message to the responder's program by unreliable datagram",
        transport: Transport::Datagram,
        ..SEND
    },
    VerbRow {
        verb: Verb::CompareAndSwap,
        name: "compare-and-swap",
        documentation: "8 bytes of the responder's memory, replaced where they are as expected",
        ..ATOMIC
    },
    VerbRow {
        verb: Verb::FetchAndAdd,
        name: "fetch-and-add",
        documentation: "8 bytes of the responder's memory, added to",
        ..ATOMIC
    },
    COPY,
    VerbRow {
        verb: Verb::Transform,
        name: "transform",
        documentation: "a function of the requester's bytes that an engine computes into the responder's memory",
        carriers: &[Carrier::Engine(EngineWork::Transform)],
        is_published: false,
        ..COPY
    },
    LOAD,
    VerbRow {
        verb: Verb::Store,
        name: "store",
        documentation: "the requester's processor to the responder's memory, by its own stores",
        moves: Moves::ToResponder,
        ..LOAD
    },
    VerbRow {
        verb: Verb::Forward,
        name: "forward",
        documentation: "a packet from the network port through the processor and out again",
        ..LOAD
    },
];

impl VerbRow {
    /// Whether a processor's own loads or stores move the bytes, so that caches on their way answer.
    pub fn is_touch(&self) -> bool {
        self.carriers == [Carrier::Processor] && self.verb != Verb::Forward
    }
}

impl Verb {
    /// Its row of the table.
    pub fn row(self) -> &'static VerbRow {
        &VERBS[self as usize]
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Whether numbers price it that were fitted to published measurements.
    pub fn is_published(self) -> bool {
        self.row().is_published
    }

    /// Whether the responder's program takes part.
    pub fn is_message(self) -> bool {
        self.row().responder == Responder::Receives
    }

    /// Whether it changes 8 bytes in place.
    pub fn is_atomic(self) -> bool {
        self.row().responder == Responder::Changes
    }

    /// The payload that it always has, whatever is asked for: 8 B for atomics.
    pub fn own_payload(self) -> Option<Bytes> {
        self.row().own_payload
    }
}

impl FromStr for Verb {
    type Err = RouteError;
    fn from_str(text: &str) -> Result<Verb, RouteError> {
        let row = VERBS.iter().find(|row| row.name == text);
        row.map(|row| row.verb).ok_or_else(|| RouteError::UnknownVerb { name: text.to_string() })
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
    NoHops {
        /// The path.
        path: String,
        /// Why.
        reason: String,
    },
    /// The verb is none of those known.
    #[error("`{name}` is not a verb; use one of {}", VERBS.map(|row| format!("`{}`", row.name)).join(", "))]
    UnknownVerb {
        /// What was written.
        name: String,
    },
    /// What would carry the operation out does not do that.
    #[error("{carrier} has no `{verb}`: path `{path}` takes {takes}")]
    NoSuchVerb {
        /// The verb.
        verb: Verb,
        /// The path.
        path: String,
        /// What carries operations of the path.
        carrier: &'static str,
        /// The verbs that it has.
        takes: String,
    },
    /// The NIC writes into the caches of a memory, and nothing says how much of it lies there.
    #[error(
        "the NIC writes into the caches before `{memory}`, and the profile does not say how many of the newest bytes lie in \
         one: give `{cache}.arrivals`"
    )]
    NoArrivals {
        /// The memory.
        memory: String,
        /// The last of the caches on the way.
        cache: String,
    },
    /// The NIC writes into the caches of a memory, and none is described.
    #[error(
        "the NIC writes into the caches before `{memory}`, and `{reach}` looks through none: describe one, with `arrivals`"
    )]
    NoCaches {
        /// The memory.
        memory: String,
        /// The way to it.
        reach: String,
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
        "`{nic}.reserved_inflight_slots` keeps {reserved} in-flight slots for each endpoint, and one of them may hold {inflight_slots} \
         (`{nic}.inflight_slots`); keep fewer, or raise `{nic}.inflight_slots`"
    )]
    ReservedBeyondSlots {
        /// The NIC.
        nic: String,
        /// In-flight slots kept for each endpoint.
        reserved: u64,
        /// In-flight slots that an endpoint may hold.
        inflight_slots: u64,
    },
    /// In-flight slots are reserved between more endpoints than groups of them are counted for.
    #[error(
        "`{nic}.reserved_inflight_slots` keeps in-flight slots for each of {endpoints} endpoints, and at most {most} are modelled; \
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
    /// More of something than routes can tell apart.
    #[error(
        "a system has {count} {what}, and at most {most} can be told apart; leave out what no request uses"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// How many there are.
        count: usize,
        /// How many there may be.
        most: usize,
    },
    /// A batch of no requests.
    #[error("a doorbell batch of 0 requests posts nothing; use 1 or more")]
    EmptyBatch,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A verb finds its row by its position.
    #[test]
    fn every_verb_has_its_row() {
        for (at, row) in VERBS.iter().enumerate() {
            assert_eq!(row.verb as usize, at, "{}", row.name);
            assert_eq!(row.name.parse(), Ok(row.verb));
            assert!(!row.carriers.is_empty() && row.documentation.len() > 10);
            let is_of_nics = row.carriers.contains(&Carrier::Nic);
            assert_eq!(is_of_nics, row.held != SlotHold::Nothing, "{} holds a slot of a NIC", row.name);
        }
    }
}
