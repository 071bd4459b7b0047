//! The bytes of the store: header, buckets, records, messages. Little-endian throughout.

use super::KvError;
use crate::bytes::hash;

/// The first bytes of every store.
pub const MAGIC: u64 = u64::from_le_bytes(*b"offpthkv");
/// The layout that this code reads and writes.
pub const LAYOUT_VERSION: u32 = 2;
/// A bucket of the index, the size of a cache line.
pub const BUCKET_BYTES: u64 = 64;
/// Keys of a bucket.
pub const BUCKET_KEYS: usize = 3;
/// Most slots of one set of the cache: a pointer tells them apart by 4 bits. With 16 the hottest records that fit
/// are nearly all there, where one slot for each hash would leave out those that meet a hotter one.
pub const CACHE_WAYS: u32 = 16;
/// The header of a store, the first line of its index region.
pub const HEADER_BYTES: u64 = 64;
/// What stands before a record's value.
pub const RECORD_HEADER_BYTES: u64 = 16;
/// The longest value that a record's length field can tell.
pub const VALUE_BYTES_MAX: u32 = u16::MAX as u32;

/// The shape of a store. Server and client must agree on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// Which layout the bytes follow.
    pub version: u32,
    /// Bytes of a key, 1 to 8.
    pub key_bytes: u32,
    /// Bytes of the longest value.
    pub value_bytes: u32,
    /// Buckets that keys hash to.
    pub root_buckets: u64,
    /// Buckets that are chained to full ones.
    pub overflow_buckets: u64,
    /// Slots of records.
    pub slots: u64,
    /// Slots of the cache; 0 for none.
    pub cache_slots: u32,
    /// Copies of each hot record beside the first; 0 for none.
    pub copies: u32,
}

/// Groups of copies that the index can name.
pub const HOT_GROUPS: u64 = 255;

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

impl Layout {
    /// The header as bytes.
    pub fn to_bytes(self) -> [u8; HEADER_BYTES as usize] {
        let mut bytes = [0; HEADER_BYTES as usize];
        bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.version.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.key_bytes.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.value_bytes.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.cache_slots.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.root_buckets.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.overflow_buckets.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.slots.to_le_bytes());
        bytes[48..52].copy_from_slice(&self.copies.to_le_bytes());
        let sum = crc32fast::hash(&bytes[..60]);
        bytes[60..].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    /// Reads a header; refused where it is none, is damaged, or follows another layout.
    pub fn from_bytes(bytes: &[u8]) -> Result<Layout, KvError> {
        let Some(bytes) = bytes.first_chunk::<{ HEADER_BYTES as usize }>() else {
            return Err(KvError::NoStore { found: 0 });
        };
        if word(bytes, 0) != MAGIC {
            return Err(KvError::NoStore { found: word(bytes, 0) });
        }
        // The version comes first: another layout may keep its sum elsewhere.
        let version = half(bytes, 8);
        if version != LAYOUT_VERSION {
            return Err(KvError::LayoutVersion { server: version, client: LAYOUT_VERSION });
        }
        if crc32fast::hash(&bytes[..60]) != half(bytes, 60) {
            return Err(KvError::DamagedHeader);
        }
        Ok(Layout {
            version,
            key_bytes: half(bytes, 12),
            value_bytes: half(bytes, 16),
            cache_slots: half(bytes, 20),
            root_buckets: word(bytes, 24),
            overflow_buckets: word(bytes, 32),
            slots: word(bytes, 40),
            copies: half(bytes, 48),
        })
    }

    /// Bytes of a record with its header, a multiple of 8.
    pub fn record_bytes(&self) -> u64 {
        RECORD_HEADER_BYTES + u64::from(self.value_bytes).next_multiple_of(8)
    }

    /// Bytes of the index region.
    pub fn index_bytes(&self) -> u64 {
        HEADER_BYTES + (self.root_buckets + self.overflow_buckets) * BUCKET_BYTES
    }

    /// Bytes of the region of values, copies of hot records at its end.
    pub fn values_bytes(&self) -> u64 {
        (self.slots + HOT_GROUPS * u64::from(self.copies)) * self.record_bytes()
    }

    /// Bytes of the cache.
    pub fn cache_bytes(&self) -> u64 {
        u64::from(self.cache_slots) * self.record_bytes()
    }

    /// The root bucket of a key.
    pub fn root(&self, key: u64) -> u64 {
        below(hash(key), self.root_buckets)
    }

    /// Where bucket `number` begins in the index region.
    pub fn bucket_offset(&self, number: u64) -> u64 {
        HEADER_BYTES + number * BUCKET_BYTES
    }

    /// Where slot `slot` begins in the region of values.
    pub fn slot_offset(&self, slot: u64) -> u64 {
        slot * self.record_bytes()
    }

    /// The slot of copy `copy` of hot group `group`, from 1.
    pub fn copy_slot(&self, group: u8, copy: u32) -> u64 {
        self.slots + u64::from(group - 1) * u64::from(self.copies) + u64::from(copy)
    }

    /// The cache slots of one set; those that no whole set is left for stay empty.
    pub fn cache_ways(&self) -> u32 {
        self.cache_slots.min(CACHE_WAYS)
    }

    /// The sets of the cache; 0 without one.
    pub fn cache_sets(&self) -> u64 {
        u64::from(self.cache_slots.checked_div(self.cache_ways()).unwrap_or(0))
    }

    /// The set whose slots a key may have.
    pub fn cache_set(&self, key: u64) -> u64 {
        // Other bits than the bucket's, so that neighbours in a bucket do not meet in the cache.
        below(hash(key).rotate_left(32), self.cache_sets())
    }

    /// Where slot `way` of set `set` begins in the cache.
    pub fn cache_offset(&self, set: u64, way: u8) -> u64 {
        (set * u64::from(self.cache_ways()) + u64::from(way)) * self.record_bytes()
    }
}

fn below(hash: u64, bound: u64) -> u64 {
    ((u128::from(hash) * u128::from(bound)) >> 64) as u64
}

/// What the index says of a key, in one word, so that it changes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer {
    /// The slot of the record.
    pub slot: u32,
    /// The version that the record must have.
    pub version: u16,
    /// The group of its copies; 0 for none.
    pub group: u8,
    /// The slot of its set of the cache that has it too.
    pub cached: Option<u8>,
}

const USED: u64 = 1 << 56;
const CACHED: u64 = 1 << 57;
const WAY: u32 = 58;

impl Pointer {
    /// The word; never 0, which stands for no entry.
    pub fn to_word(self) -> u64 {
        let cached = self.cached.map_or(0, |way| CACHED | u64::from(way) << WAY);
        let flags = USED | cached;
        u64::from(self.slot) | u64::from(self.version) << 32 | u64::from(self.group) << 48 | flags
    }

    /// Reads a word; `None` for no entry.
    pub fn from_word(word: u64) -> Option<Pointer> {
        (word & USED != 0).then_some(Pointer {
            slot: word as u32,
            version: (word >> 32) as u16,
            group: (word >> 48) as u8,
            cached: (word & CACHED != 0).then_some((word >> WAY) as u8 % CACHE_WAYS as u8),
        })
    }
}

/// A bucket as it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    /// The key and pointer words of its entries.
    pub entries: [(u64, u64); BUCKET_KEYS],
    /// The number of the bucket chained to it; 0 for none, since a root is never chained.
    pub next: u64,
}

impl Bucket {
    /// Reads the bytes of a bucket.
    pub fn from_bytes(bytes: &[u8; BUCKET_BYTES as usize]) -> Bucket {
        let entry = |index: usize| (word(bytes, index * 16), word(bytes, index * 16 + 8));
        Bucket { entries: [entry(0), entry(1), entry(2)], next: word(bytes, 48) }
    }

    /// The entry of `key`: which one, and what it says.
    pub fn find(&self, key: u64) -> Option<(usize, Pointer)> {
        self.entries.iter().enumerate().find_map(|(index, &(found, pointer))| {
            Pointer::from_word(pointer).filter(|_| found == key).map(|pointer| (index, pointer))
        })
    }
}

/// A record as it was read whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreRecord {
    /// Its key.
    pub key: u64,
    /// Its version.
    pub version: u16,
    /// Its value.
    pub value: Vec<u8>,
}

fn sum(key: u64, version: u16, value: &[u8]) -> u32 {
    let mut head = [0; 12];
    head[..8].copy_from_slice(&key.to_le_bytes());
    head[8..10].copy_from_slice(&version.to_le_bytes());
    head[10..].copy_from_slice(&(value.len() as u16).to_le_bytes());
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&head);
    hasher.update(value);
    hasher.finalize()
}

/// The word that guards a record: checksum of key, version, length and value; version; length.
pub fn guard(key: u64, version: u16, value: &[u8]) -> u64 {
    u64::from(sum(key, version, value)) | u64::from(version) << 32 | (value.len() as u64) << 48
}

impl StoreRecord {
    /// The record as bytes of the layout's length.
    pub fn to_bytes(&self, layout: &Layout) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(layout.record_bytes() as usize);
        bytes.extend_from_slice(&self.key.to_le_bytes());
        bytes.extend_from_slice(&guard(self.key, self.version, &self.value).to_le_bytes());
        bytes.extend_from_slice(&self.value);
        bytes.resize(layout.record_bytes() as usize, 0);
        bytes
    }

    /// Reads a record; `None` where the slot is free or the bytes are of two writes.
    pub fn from_bytes(bytes: &[u8]) -> Option<StoreRecord> {
        let key = word(bytes.get(..RECORD_HEADER_BYTES as usize)?, 0);
        StoreRecord::from_parts(key, word(bytes, 8), &bytes[RECORD_HEADER_BYTES as usize..])
    }

    /// Reads a record whose key is known; `None` where guard and value do not belong together.
    pub fn from_parts(key: u64, guard: u64, rest: &[u8]) -> Option<StoreRecord> {
        let (version, length) = ((guard >> 32) as u16, (guard >> 48) as usize);
        let value = rest.get(..length)?;
        (sum(key, version, value) == guard as u32).then(|| StoreRecord {
            key,
            version,
            value: value.to_vec(),
        })
    }

    /// The same without looking at guard and version: what a reader without them would return.
    pub(crate) fn unchecked(bytes: &[u8]) -> Option<StoreRecord> {
        let meta = word(bytes.get(..RECORD_HEADER_BYTES as usize)?, 8);
        let rest = &bytes[RECORD_HEADER_BYTES as usize..];
        let value = rest[..((meta >> 48) as usize).min(rest.len())].to_vec();
        Some(StoreRecord { key: word(bytes, 0), version: (meta >> 32) as u16, value })
    }
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestOpcode {
    /// Look the record up and return it.
    GetRecord,
    /// Return the record from the cache, or its address.
    GetCached,
    /// Store a value.
    Put,
    /// Remove a key.
    Delete,
    /// Make copies of a hot record.
    Replicate,
}

/// Bytes of a request without its value.
pub const REQUEST_BYTES: u64 = 16;
/// Bytes before the body of an answer.
pub const ANSWER_BYTES: u64 = 8;

/// The head of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestHead {
    /// Its key.
    pub key: u64,
    /// What is asked for.
    pub opcode: RequestOpcode,
    /// Bytes of the value that follows.
    pub length: u16,
    /// What the answer must repeat.
    pub sequence: u32,
}

impl RequestHead {
    /// The head as bytes.
    pub fn to_bytes(self) -> [u8; REQUEST_BYTES as usize] {
        let mut bytes = [0; REQUEST_BYTES as usize];
        bytes[..8].copy_from_slice(&self.key.to_le_bytes());
        bytes[8] = self.opcode as u8;
        bytes[10..12].copy_from_slice(&self.length.to_le_bytes());
        bytes[12..].copy_from_slice(&self.sequence.to_le_bytes());
        bytes
    }

    /// Reads a head; `None` for what no client sends.
    pub fn from_bytes(bytes: &[u8]) -> Option<RequestHead> {
        let bytes = bytes.first_chunk::<{ REQUEST_BYTES as usize }>()?;
        let all = [
            RequestOpcode::GetRecord,
            RequestOpcode::GetCached,
            RequestOpcode::Put,
            RequestOpcode::Delete,
            RequestOpcode::Replicate,
        ];
        Some(RequestHead {
            key: word(bytes, 0),
            opcode: *all.get(usize::from(bytes[8]))?,
            length: u16::from_le_bytes([bytes[10], bytes[11]]),
            sequence: half(bytes, 12),
        })
    }
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReplyStatus {
    /// As asked; a record may follow.
    Done,
    /// The record is elsewhere: its pointer follows.
    At,
    /// There is no such key.
    Absent,
    /// No slot or bucket is left.
    Full,
    /// The value does not fit a slot.
    TooLarge,
    /// The server could not reach its own memory.
    Failed,
}

/// The head of an answer.
pub fn answer_head(sequence: u32, answer: ReplyStatus) -> [u8; ANSWER_BYTES as usize] {
    let mut bytes = [0; ANSWER_BYTES as usize];
    bytes[..4].copy_from_slice(&sequence.to_le_bytes());
    bytes[4] = answer as u8;
    bytes
}

/// Reads the head of an answer; `None` for what no server sends.
pub fn read_answer_head(bytes: &[u8]) -> Option<(u32, ReplyStatus)> {
    let all = [
        ReplyStatus::Done,
        ReplyStatus::At,
        ReplyStatus::Absent,
        ReplyStatus::Full,
        ReplyStatus::TooLarge,
        ReplyStatus::Failed,
    ];
    Some((half(bytes.get(..8)?, 0), *all.get(usize::from(bytes[4]))?))
}

/// The word at `at`.
pub(crate) fn word_at(bytes: &[u8], at: usize) -> u64 {
    word(bytes, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn layout() -> Layout {
        Layout {
            version: LAYOUT_VERSION,
            key_bytes: 8,
            value_bytes: 64,
            root_buckets: 10,
            overflow_buckets: 3,
            slots: 20,
            cache_slots: 4,
            copies: 2,
        }
    }

    #[test]
    fn a_header_is_read_back_and_a_wrong_one_refused() {
        let bytes = layout().to_bytes();
        assert_eq!(Layout::from_bytes(&bytes), Ok(layout()));
        for at in 0..bytes.len() {
            let mut wrong = bytes;
            wrong[at] ^= 1;
            assert!(Layout::from_bytes(&wrong).is_err(), "byte {at}");
        }
        let other = Layout { version: LAYOUT_VERSION + 1, ..layout() }.to_bytes();
        assert_eq!(
            Layout::from_bytes(&other),
            Err(KvError::LayoutVersion { server: LAYOUT_VERSION + 1, client: LAYOUT_VERSION })
        );
    }

    #[test]
    fn a_record_mixed_from_two_is_refused() {
        let one = StoreRecord { key: 7, version: 1, value: vec![1; 64] }.to_bytes(&layout());
        let two = StoreRecord { key: 7, version: 2, value: vec![2; 64] }.to_bytes(&layout());
        assert_eq!(one.len(), 80);
        for cut in 1..one.len() {
            let mixed: Vec<u8> = one[..cut].iter().chain(&two[cut..]).copied().collect();
            let read = StoreRecord::from_bytes(&mixed);
            assert!(mixed == one || mixed == two || read.is_none(), "cut at {cut}: {read:?}");
        }
        assert_eq!(StoreRecord::from_bytes(&[0; 80]), None);
    }

    #[test]
    fn pointers_and_requests_are_read_back() {
        for cached in [None, Some(0), Some(CACHE_WAYS as u8 - 1)] {
            let pointer = Pointer { slot: u32::MAX, version: 0xabcd, group: 255, cached };
            assert_eq!(Pointer::from_word(pointer.to_word()), Some(pointer));
        }
        assert_eq!(Pointer::from_word(0), None);
        let request = RequestHead { key: 3, opcode: RequestOpcode::Delete, length: 5, sequence: 9 };
        assert_eq!(RequestHead::from_bytes(&request.to_bytes()), Some(request));
        assert_eq!(RequestHead::from_bytes(&[255; 16]), None);
        assert_eq!(read_answer_head(&answer_head(4, ReplyStatus::Full)), Some((4, ReplyStatus::Full)));
    }
}
