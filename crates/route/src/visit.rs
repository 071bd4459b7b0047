//! What a route is made of.

use crate::path::{Path, Verb};
use crate::station::StationId;
use offpath_profile::MOST_ENDPOINTS;
use offpath_quantity::{BitRate, Bytes, Time};

/// How the addresses of an operation are spread over a memory.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AddressSpread {
    /// The range that the addresses come from; `None` for the whole memory.
    pub range: Option<Bytes>,
    /// Whether the range is what a NIC wrote there last, of which a cache holds its `arrivals` and no more.
    pub arrived: bool,
    /// The share of accesses that reach the single hottest line, its copies counted apart.
    pub hottest: f64,
}

impl AddressSpread {
    /// Random addresses over the whole memory.
    pub const UNIFORM: AddressSpread = AddressSpread { range: None, arrived: false, hottest: 0.0 };
}

/// Which server of a station an operation takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pick {
    /// Whichever is free first.
    Any,
    /// The shared part of a pool, or the part reserved for this class.
    Class(u8),
    /// One of `reach` banks: the hottest with at least the share `hottest`, else any of them.
    Bank {
        /// Banks that the range reaches.
        reach: u32,
        /// Share of the accesses that go to the hottest bank.
        hottest: f64,
    },
}

/// A moment of an operation that a backend acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    /// The request leaves the requester's machine.
    Departs,
    /// The request reaches the responder's NIC.
    Arrives,
    /// The first bytes are read from the source memory.
    SourceStart,
    /// The last bytes are read from the source memory.
    SourceEnd,
    /// The first bytes become visible in the target memory.
    TargetStart,
    /// The last bytes become visible in the target memory.
    TargetEnd,
    /// The requester's NIC knows that the operation succeeded.
    Acknowledged,
    /// The responder's program may see the message.
    Delivered,
}

/// Packets that are cut shorter than the largest payload allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketCut {
    /// The payload that they are cut to.
    pub payload: Bytes,
    /// How many of a million cuts are made.
    pub per_million: u32,
}

impl PacketCut {
    /// A million cuts.
    pub const ALL: u32 = 1_000_000;

    /// Packets more than the largest payload alone would make, in millionths.
    fn further(self, bytes: Bytes, packets: u64) -> u128 {
        let cut = bytes.packets(self.payload).saturating_sub(packets);
        u128::from(cut) * u128::from(self.per_million)
    }
}

/// One hop of a train: a station that the bytes of a message pass in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Hop {
    /// The station.
    pub station: StationId,
    /// Fixed delay between the hop before and this one.
    pub delay: Time,
    /// Bandwidth here.
    pub rate: BitRate,
    /// Largest payload of a packet here.
    pub mtu: Bytes,
    /// Bytes beside the payload in each packet here.
    pub header: Bytes,
    /// Whether a message without payload is still a packet here.
    pub empty_packet: bool,
    /// Whether the operation is over before the bytes pass here (posted writes).
    pub detached: bool,
    /// Where a share of the packets is cut shorter than the largest.
    pub cut: Option<PacketCut>,
    /// Time that the whole message keeps this hop, and its first segment: kept because almost every
    /// message moves whole, and the divisions would be most of its cost.
    pub(crate) whole: Time,
    pub(crate) first: Time,
}

impl Hop {
    /// Packets that carry the first `bytes` of a message.
    pub fn packets(&self, bytes: Bytes) -> u64 {
        let packets = self.uncut(bytes);
        let further = self.cut.map_or(0, |cut| cut.further(bytes, packets));
        packets + u64::try_from(further.div_ceil(u128::from(PacketCut::ALL))).unwrap_or(u64::MAX - packets)
    }

    fn uncut(&self, bytes: Bytes) -> u64 {
        bytes.packets(self.mtu).max(u64::from(self.empty_packet))
    }

    /// Time that the first `bytes` of a message keep this hop.
    pub fn time(&self, bytes: Bytes) -> Time {
        let packets = self.uncut(bytes);
        let framed = bytes.get() + packets * self.header.get();
        let time = self.rate.time_for(Bytes::new(framed));
        // A share of a header is no whole number of bytes.
        let further = self.cut.map_or(0, |cut| cut.further(bytes, packets));
        if further == 0 {
            return time;
        }
        let header = u128::from(self.rate.time_for(self.header).ps());
        let more = (header * further).div_ceil(u128::from(PacketCut::ALL));
        time + Time::from_ps(u64::try_from(more).unwrap_or(u64::MAX))
    }
}

/// Read requests that fetch a train's bytes: they load the opposite direction of its links.
#[derive(Clone, Debug, PartialEq)]
pub struct Requests {
    /// The station that they load.
    pub station: StationId,
    /// Bandwidth there.
    pub rate: BitRate,
    /// Most bytes that one request asks for.
    pub limit: Bytes,
    /// Bytes of a request.
    pub size: Bytes,
    /// Time for the whole message.
    pub(crate) whole: Time,
}

impl Requests {
    /// Time that the requests for the first `bytes` keep the station.
    pub fn time(&self, bytes: Bytes) -> Time {
        self.rate.time_for(Bytes::new(bytes.packets(self.limit) * self.size.get()))
    }
}

/// The payload of one message over consecutive hops, which overlap segment by segment.
///
/// It costs its fixed delays, one segment at each hop, and all bytes at its slowest hop. It moves
/// in bursts, so that a large payload costs a bounded number of steps.
#[derive(Clone, Debug, PartialEq)]
pub struct Train {
    /// The payload.
    pub bytes: Bytes,
    /// The hops in order; serial ones first.
    pub hops: Vec<Hop>,
    /// Read requests beside it.
    pub requests: Vec<Requests>,
    /// The hop after which the in-flight slot is released, and the delay until then.
    pub release: Option<(usize, Time)>,
    /// The unit in which hops overlap: the largest packet of any hop.
    pub segment: Bytes,
    /// Whether the bytes leave the source memory at the first hop.
    pub marks_source: bool,
    /// Delay from the last serial hop until the bytes are visible, where that is not serial.
    pub settle: Time,
    /// Whether the bytes become visible at the end of the last hop.
    pub marks_target: bool,
    /// Bytes of one burst.
    pub(crate) burst: Bytes,
}

/// Most bursts of one train.
pub const MOST_BURSTS: u32 = 1024;
/// Least payload of a burst, where a train has more than one.
pub const LEAST_BURST: Bytes = Bytes::new(16 << 10);

impl Train {
    /// Bytes of one burst: at least 16 KiB, whole segments, at most 1024 bursts a message.
    pub fn burst(&self) -> Bytes {
        self.burst
    }

    /// The same with the times and the burst that follow from its bytes and hops.
    pub(crate) fn costed(mut self) -> Train {
        let least = self.bytes.get().div_ceil(u64::from(MOST_BURSTS)).max(LEAST_BURST.get());
        let segment = self.segment.get().max(1);
        self.burst = Bytes::new(least.div_ceil(segment) * segment);
        let first = self.segment.min(self.bytes);
        for hop in &mut self.hops {
            hop.whole = hop.time(self.bytes);
            hop.first = hop.time(first).min(hop.whole);
        }
        for requests in &mut self.requests {
            requests.whole = requests.time(self.bytes);
        }
        self
    }
}

/// Where an operation takes its in-flight slot: of the NIC's pool, and where a part of the pool is reserved
/// for other endpoints, within the limit of its own. It takes both at one moment, so that nobody holds
/// a place of the one while it waits for the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InflightSlots {
    /// All in-flight slots of the NIC.
    pub pool: StationId,
    /// Those that the endpoints between which the request runs may have at once, and the groups of endpoints that one
    /// of them belongs to; the first that are there, and none where nothing is reserved.
    pub limits: [Option<StationId>; MOST_LIMITS],
}

/// Endpoints and groups of them that one of two of [`MOST_ENDPOINTS`] belongs to: neither none, nor all, nor only others.
pub const MOST_LIMITS: usize = (1 << MOST_ENDPOINTS) - 1 - (1 << (MOST_ENDPOINTS - 2));

impl InflightSlots {
    /// The pool, then the limits.
    pub fn stations(self) -> impl Iterator<Item = StationId> {
        [Some(self.pool)].into_iter().chain(self.limits).flatten()
    }
}

/// One visit of a route.
#[derive(Clone, Debug, PartialEq)]
pub enum Visit {
    /// Time that passes without a queue.
    Delay {
        /// What takes it.
        label: &'static str,
        /// How long.
        time: Time,
    },
    /// A visit to a station: the server is kept for `occupancy`, the operation goes on after
    /// `latency` (a pipelined station is free again before the visit is over, or later).
    Serve {
        /// What happens there.
        label: &'static str,
        /// The station.
        station: StationId,
        /// Which of its servers.
        pick: Pick,
        /// Time that a server is kept.
        occupancy: Time,
        /// Time that the operation waits, beside queueing.
        latency: Time,
        /// Whether the operation goes on without waiting: demand and queue only.
        detached: bool,
    },
    /// Takes an in-flight slot, at one moment of the pool and of every limit, and keeps it for `time`, or where that
    /// follows from later visits, until the train's release.
    Acquire {
        /// Where it is taken.
        inflight_slots: InflightSlots,
        /// How long it is kept, where that is known.
        time: Option<Time>,
    },
    /// The payload moves.
    Train(Train),
    /// A moment that a backend acts on, `after` the operation's own clock.
    Mark(Mark, Time),
    /// The operation leaves a machine: what follows happens elsewhere, at its own time.
    Cross {
        /// The machine that it leaves, by position in the system.
        from: usize,
        /// The machine that it reaches.
        to: usize,
    },
}

/// The visits of one operation, in order.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The path it runs on.
    pub path: Path,
    /// The verb.
    pub verb: Verb,
    /// The payload.
    pub payload: Bytes,
    /// The visits.
    pub visits: Vec<Visit>,
    /// Whether the visits end at the responder's program (messages) or at the requester's.
    pub ends_at_responder: bool,
    /// Whether a published measurement of an off-path card speaks of such an operation.
    pub is_published: bool,
}
