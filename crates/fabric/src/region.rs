//! Registered memory, and its names here and at a peer.

use crate::error::{DecodeError, RegionError};
use std::ops::BitOr;

/// Which machine endpoint of a run a region or queue pair lives at. Only backends give it meaning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct EndpointId(pub u32);

/// What may be done to a region; rights combine with `|`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Access(u8);

impl Access {
    /// Local reading only: a source of SEND and WRITE.
    pub const READ_ONLY: Access = Access(0);
    /// The device may write it for this role: receives, results of READ and atomics. Implied by the
    /// two rights of remote writing, as verbs demand.
    pub const LOCAL_WRITE: Access = Access(1);
    /// Peers may READ it.
    pub const REMOTE_READ: Access = Access(2);
    /// Peers may WRITE it.
    pub const REMOTE_WRITE: Access = Access(4 | 1);
    /// Peers may run atomics on it.
    pub const REMOTE_ATOMIC: Access = Access(8 | 1);
    /// Everything above.
    pub const ALL: Access = Access(15);
    /// Pages are brought in as they are used; see [`crate::Capabilities::on_demand_paging`].
    pub const ON_DEMAND: Access = Access(16);

    /// Whether every right of `other` is here.
    pub const fn includes(self, other: Access) -> bool {
        self.0 & other.0 == other.0
    }
}

impl BitOr for Access {
    type Output = Access;
    fn bitor(self, other: Access) -> Access {
        Access(self.0 | other.0)
    }
}

/// A handle to registered memory of this role. Clones name the same region; it is deregistered by
/// [`Region::deregister`], or when the last handle and the last request that uses it are gone.
pub trait Region: Clone + 'static {
    /// How many bytes it has.
    fn length(&self) -> u64;

    /// What a peer needs to reach it.
    fn remote(&self) -> RemoteRegion;

    /// Copies from the region at `offset` into `into`. Remote writes may race with it.
    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), RegionError>;

    /// Copies `from` into the region at `offset`. Remote reads may race with it.
    fn write(&self, offset: u64, from: &[u8]) -> Result<(), RegionError>;

    /// The aligned 8-byte word at `offset`, with acquire ordering.
    fn load(&self, offset: u64) -> Result<u64, RegionError>;

    /// Sets the aligned 8-byte word at `offset`, with release ordering.
    fn store(&self, offset: u64, value: u64) -> Result<(), RegionError>;

    /// Sets the word at `offset` to `swap` where it is `compare`; gives what it was.
    fn compare_and_swap(&self, offset: u64, compare: u64, swap: u64) -> Result<u64, RegionError>;

    /// Adds `add`, wrapping, to the word at `offset`; gives what it was.
    fn fetch_and_add(&self, offset: u64, add: u64) -> Result<u64, RegionError>;

    /// Ends the registration. Peers get [`crate::Status::RemoteAccess`] from then on, and local use is
    /// an error.
    fn deregister(&self) -> Result<(), RegionError>;

    /// `length` bytes from `offset`, to name in a request. The range is checked when it is used.
    fn slice(&self, offset: u64, length: u64) -> Slice<Self> {
        Slice { region: self.clone(), offset, length }
    }

    /// The whole region, to name in a request.
    fn all(&self) -> Slice<Self> {
        self.slice(0, self.length())
    }
}

/// A range of a local region.
#[derive(Clone, Debug)]
pub struct Slice<R> {
    /// The region.
    pub region: R,
    /// Bytes from its start.
    pub offset: u64,
    /// How many bytes.
    pub length: u64,
}

/// What a peer needs to reach a region: it can be sent in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteRegion {
    /// Where the region lives.
    pub endpoint: EndpointId,
    /// Its remote key.
    pub key: u32,
    /// The address of its first byte at that endpoint.
    pub base: u64,
    /// How many bytes it has.
    pub length: u64,
}

impl RemoteRegion {
    /// The length of [`RemoteRegion::to_bytes`].
    pub const BYTES: usize = 24;

    /// The name as bytes: endpoint, key, base, length, little-endian.
    pub fn to_bytes(self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        bytes[..4].copy_from_slice(&self.endpoint.0.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.base.to_le_bytes());
        bytes[16..].copy_from_slice(&self.length.to_le_bytes());
        bytes
    }

    /// Reads what [`RemoteRegion::to_bytes`] wrote from the start of `bytes`; refused where they are
    /// too few.
    pub fn from_bytes(bytes: &[u8]) -> Result<RemoteRegion, DecodeError> {
        let too_short = DecodeError { what: "remote region", length: bytes.len(), needed: Self::BYTES };
        let [a, b, c, d, e, f, g, h, rest @ ..] = bytes else { return Err(too_short) };
        let (Some(base), Some(length)) =
            (rest.first_chunk::<8>(), rest.get(8..).and_then(|r| r.first_chunk::<8>()))
        else {
            return Err(too_short);
        };
        Ok(RemoteRegion {
            endpoint: EndpointId(u32::from_le_bytes([*a, *b, *c, *d])),
            key: u32::from_le_bytes([*e, *f, *g, *h]),
            base: u64::from_le_bytes(*base),
            length: u64::from_le_bytes(*length),
        })
    }

    /// The place `offset` bytes from the start, to name in a request. The responder checks the range.
    pub fn at(self, offset: u64) -> RemoteAddress {
        RemoteAddress { region: self, offset }
    }
}

/// A place in a peer's region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RemoteAddress {
    /// The region.
    pub region: RemoteRegion,
    /// Bytes from its start.
    pub offset: u64,
}

/// A place that a DMA engine reads or writes.
#[derive(Clone, Debug)]
pub enum MemoryAt<R> {
    /// In a region of this role.
    Local {
        /// The region.
        region: R,
        /// Bytes from its start.
        offset: u64,
    },
    /// In a region of another role on the same card, by its key.
    Remote(RemoteAddress),
}
