//! A connection on which chunks go out and acknowledgements come back, and how it is kept up.

use super::{LogError, Options, Planted};
use crate::alive::{outlive, probe};
use crate::pool::{KeyLocks, Pool, Promise};
use offpath_fabric::{
    Access, Endpoint, Fabric, QueuePair, QueuePairOptions, Region, RemoteRegion, RoleName, Status, Work,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The service of a backup, and of the card.
pub(super) const SERVICE: &str = "replog";
/// Bytes before a chunk in a slot: sequence, epoch, length, stored length, checksum.
pub(super) const CHUNK_HEADER: u64 = 32;
/// Bytes of the message that opens a connection.
pub(super) const OPEN_BYTES: u64 = 48;
/// Bytes of its answer: region, last entry, whether it can serve.
pub(super) const HELLO_BYTES: u64 = 40;
/// Bytes that name a staged chunk to the card.
pub(super) const NOTICE_BYTES: u64 = 24;
/// The pause before a connection is tried again.
const PAUSE: Time = Time::from_us(100);

/// Who opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Opener {
    /// The primary, or the backup before: its log decides where this one is cut.
    Before,
    /// The card, which has no log.
    Card,
    /// The primary at its card.
    Host,
}

/// What opens a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) opener: Opener,
    pub(super) last: u64,
    /// The incarnation of the primary.
    pub(super) epoch: u64,
    /// Where the card finds staged chunks.
    pub(super) staging: RemoteRegion,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

impl Open {
    pub(super) fn to_bytes(self) -> [u8; OPEN_BYTES as usize] {
        let mut bytes = [0; OPEN_BYTES as usize];
        bytes[..8].copy_from_slice(&self.last.to_le_bytes());
        bytes[8..16].copy_from_slice(&self.epoch.to_le_bytes());
        bytes[16..40].copy_from_slice(&self.staging.to_bytes());
        bytes[40] = self.opener as u8;
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Open> {
        let bytes = bytes.first_chunk::<{ OPEN_BYTES as usize }>()?;
        let opener = *[Opener::Before, Opener::Card, Opener::Host].get(usize::from(bytes[40]))?;
        let staging = RemoteRegion::from_bytes(&bytes[16..40]).ok()?;
        Some(Open { opener, last: word(bytes, 0), epoch: word(bytes, 8), staging })
    }
}

/// What answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) ring: RemoteRegion,
    /// The last entry that every log from here on has.
    pub(super) last: u64,
    /// Whether what is asked for exists.
    pub(super) serves: bool,
}

impl Hello {
    pub(super) fn to_bytes(self) -> [u8; HELLO_BYTES as usize] {
        let mut bytes = [0; HELLO_BYTES as usize];
        bytes[..24].copy_from_slice(&self.ring.to_bytes());
        bytes[24..32].copy_from_slice(&self.last.to_le_bytes());
        bytes[32] = u8::from(self.serves);
        bytes
    }

    fn from_bytes(bytes: &[u8]) -> Option<Hello> {
        let bytes = bytes.first_chunk::<{ HELLO_BYTES as usize }>()?;
        let ring = RemoteRegion::from_bytes(&bytes[..24]).ok()?;
        Some(Hello { ring, last: word(bytes, 24), serves: bytes[32] == 1 })
    }
}

pub(super) fn no_region() -> RemoteRegion {
    RemoteRegion { endpoint: Endpoint(0), key: 0, base: 0, length: 0 }
}

/// A chunk as it lies in a slot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Chunk {
    pub(super) sequence: u64,
    pub(super) epoch: u64,
    pub(super) payload: Vec<u8>,
}

impl Chunk {
    /// The chunk as bytes, compressed where that makes it shorter.
    pub(super) fn to_bytes(&self, compress: bool) -> Vec<u8> {
        let raw = self.payload.len() as u32;
        let packed = if compress { Some(lz4_flex::block::compress(&self.payload)) } else { None };
        let body = packed.filter(|packed| packed.len() < self.payload.len());
        let body = body.as_ref().unwrap_or(&self.payload);
        let mut bytes = Vec::with_capacity(CHUNK_HEADER as usize + body.len());
        bytes.extend_from_slice(&self.sequence.to_le_bytes());
        bytes.extend_from_slice(&self.epoch.to_le_bytes());
        bytes.extend_from_slice(&raw.to_le_bytes());
        bytes.extend_from_slice(&(body.len() as u32).to_le_bytes());
        bytes.extend_from_slice(&u64::from(crc32fast::hash(body)).to_le_bytes());
        bytes.extend_from_slice(body);
        bytes
    }

    /// Reads a chunk; `None` where the bytes are of none or of two.
    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Chunk> {
        let head = bytes.get(..CHUNK_HEADER as usize)?;
        let (lengths, check) = (word(head, 16), word(head, 24));
        let (raw, stored) = (lengths as u32 as usize, (lengths >> 32) as usize);
        let body = bytes.get(CHUNK_HEADER as usize..)?.get(..stored)?;
        if u64::from(crc32fast::hash(body)) != check {
            return None;
        }
        let payload = if stored < raw {
            lz4_flex::block::decompress(body, raw).ok().filter(|payload| payload.len() == raw)?
        } else {
            body.to_vec()
        };
        Some(Chunk { sequence: word(head, 0), epoch: word(head, 8), payload })
    }
}

/// What names a staged chunk to the card: sequence, epoch, slot and length.
pub(super) fn notice(sequence: u64, epoch: u64, slot: u32, length: u32) -> [u8; NOTICE_BYTES as usize] {
    let mut bytes = [0; NOTICE_BYTES as usize];
    bytes[..8].copy_from_slice(&sequence.to_le_bytes());
    bytes[8..16].copy_from_slice(&epoch.to_le_bytes());
    bytes[16..20].copy_from_slice(&slot.to_le_bytes());
    bytes[20..].copy_from_slice(&length.to_le_bytes());
    bytes
}

/// Reads a notice.
pub(super) fn read_notice(bytes: &[u8]) -> Option<(u64, u64, u32, u32)> {
    let bytes = bytes.first_chunk::<{ NOTICE_BYTES as usize }>()?;
    let rest = word(bytes, 16);
    Some((word(bytes, 0), word(bytes, 8), rest as u32, (rest >> 32) as u32))
}

/// Set in the word of an answer that gives a slot back without keeping its chunk for good.
pub(super) const LATER: u32 = 1 << 31;

type Waiting = BTreeMap<u32, Rc<Promise<Result<bool, Status>>>>;

/// One connection: slots of chunks, each free again when the peer acknowledges it.
pub(super) struct Feed<F: Fabric> {
    fabric: F,
    peer: RoleName,
    queue_pair: F::QueuePair,
    ring: RemoteRegion,
    /// Slots, then notices, then hello and open message.
    staging: F::Region,
    slot_bytes: u64,
    slots: u64,
    pool: Pool,
    waiting: RefCell<Waiting>,
    broken: Cell<Option<Status>>,
    to_card: bool,
    hasty: bool,
}

impl<F: Fabric> Feed<F> {
    /// Connects to `peer` and says `open`; gives the connection and the peer's answer.
    pub(super) async fn connect(
        fabric: &F,
        peer: &RoleName,
        open: Open,
        options: &Options,
    ) -> Result<(Rc<Feed<F>>, Hello), LogError> {
        let memory = fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default();
        let slot_bytes = CHUNK_HEADER + u64::from(options.chunk_bytes).next_multiple_of(8);
        let slots = u64::from(options.slots);
        let (notices, hello_at) = (slots * slot_bytes, slots * (slot_bytes + NOTICE_BYTES));
        let open_at = hello_at + HELLO_BYTES;
        let staging = fabric.register(&memory, open_at + OPEN_BYTES, Access::ALL)?;
        let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
        let mut hello = queue_pair.receive(staging.slice(hello_at, HELLO_BYTES))?;
        let mut acknowledgements = VecDeque::new();
        for _ in 0..slots {
            acknowledgements.push_back(queue_pair.receive(staging.slice(notices, 0))?);
        }
        let broke = |status| LogError::Disconnected { peer: peer.to_string(), status };
        fabric.connect(&queue_pair, &peer.role, peer.instance, SERVICE).await?;
        staging.write(open_at, &Open { staging: staging.remote(), ..open }.to_bytes())?;
        drop(queue_pair.send(staging.slice(open_at, OPEN_BYTES))?);
        let heard = outlive(fabric, &queue_pair, &staging, options.patience, &mut hello).await?;
        let mut bytes = vec![0; heard.map_err(broke)?.bytes as usize];
        staging.read(hello_at, &mut bytes)?;
        let hello = Hello::from_bytes(&bytes).ok_or(LogError::Protocol { peer: peer.to_string() })?;
        let feed = Rc::new(Feed {
            fabric: fabric.clone(),
            peer: peer.clone(),
            queue_pair,
            ring: hello.ring,
            staging,
            slot_bytes,
            slots,
            pool: Pool::new(slots),
            waiting: RefCell::default(),
            broken: Cell::new(None),
            to_card: open.opener == Opener::Host,
            hasty: options.plants(Planted::HastySlots),
        });
        fabric.spawn_task(Box::pin(feed.clone().listen(acknowledgements, options.patience)));
        Ok((feed, hello))
    }

    /// Takes acknowledgements until the connection breaks. It asks a silent peer whether it lives even
    /// where nothing is under way: a backup that restarted waits to be told where its log is cut.
    async fn listen(self: Rc<Self>, mut receives: VecDeque<F::Ticket>, patience: Time) {
        let status = loop {
            let Some(front) = receives.front_mut() else { break Status::Fatal };
            match self.fabric.timeout(patience, front).await {
                None => match probe::<F>(&self.queue_pair, &self.staging).await {
                    Ok(Status::Success) => {}
                    Ok(status) => break status,
                    Err(_) => break Status::Flushed,
                },
                Some(heard) if heard.status != Status::Success => break heard.status,
                Some(heard) => {
                    receives.pop_front();
                    match self.queue_pair.receive(self.staging.slice(0, 0)) {
                        Ok(ticket) => receives.push_back(ticket),
                        Err(_) => break Status::Flushed,
                    }
                    // The slot is told by the word that comes with the acknowledgement.
                    let slot = heard.immediate.unwrap_or(u32::MAX);
                    let promise = self.waiting.borrow_mut().remove(&(slot & !LATER));
                    if let Some(promise) = promise {
                        promise.give(Ok(slot & LATER == 0));
                    }
                }
            }
        };
        self.broken.set(Some(status));
        self.queue_pair.close();
        let all = self.waiting.take();
        all.into_values().for_each(|promise| promise.give(Err(status)));
    }

    pub(super) fn is_broken(&self) -> bool {
        self.broken.get().is_some()
    }

    /// Ends the connection; what waits on it fails.
    pub(super) fn close(&self) {
        self.queue_pair.close();
    }

    /// How many slots are taken.
    pub(super) fn under_way(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Brings a chunk to the peer and waits for its acknowledgement, again as long as the peer says that
    /// it comes too early: later chunks must not keep the slots that an earlier one needs.
    pub(super) async fn send(&self, chunk: &Chunk, compress: bool) -> Result<(), LogError> {
        while !self.offer(chunk, compress).await? {
            self.fabric.sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Brings a chunk to the peer once; whether it is kept, which an earlier one that is missing
    /// prevents.
    pub(super) async fn offer(&self, chunk: &Chunk, compress: bool) -> Result<bool, LogError> {
        self.bring(chunk, compress, &Cell::default()).await
    }

    /// Brings a chunk once, uncompressed; whether it is kept, and the processor time of posting.
    pub(super) async fn send_timed(&self, chunk: &Chunk) -> (Result<bool, LogError>, Time) {
        let posting = Cell::default();
        let sent = self.bring(chunk, false, &posting).await;
        (sent, posting.get())
    }

    async fn bring(&self, chunk: &Chunk, compress: bool, posting: &Cell<Time>) -> Result<bool, LogError> {
        // The earliest chunk first: the others wait for it at the peer.
        let slot = self.pool.take(chunk.sequence).await;
        let broke = |status| LogError::Disconnected { peer: self.peer.to_string(), status };
        let promise = Promise::new();
        if let Some(status) = self.broken.get() {
            // Who waits for a slot must learn it too.
            self.pool.give(slot);
            return Err(broke(status));
        }
        self.waiting.borrow_mut().insert(slot as u32, promise.clone());
        let began = self.fabric.now();
        let posted = self.post(slot, chunk, compress);
        // A world that charges for posting delays what comes next.
        self.fabric.compute(Work::Time(Time::ZERO)).await;
        posting.set(self.fabric.now() - began);
        if self.hasty {
            self.pool.give(slot);
        }
        let done = match posted {
            Ok(()) => promise.wait().await.map_err(broke),
            Err(error) => {
                self.waiting.borrow_mut().remove(&(slot as u32));
                Err(error)
            }
        };
        if !self.hasty {
            self.pool.give(slot);
        }
        done
    }

    fn post(&self, slot: u64, chunk: &Chunk, compress: bool) -> Result<(), LogError> {
        let at = slot * self.slot_bytes;
        if self.to_card {
            self.staging.write(at, &chunk.payload)?;
            let notices = self.slots * self.slot_bytes;
            let notice_at = notices + slot * NOTICE_BYTES;
            let bytes = notice(chunk.sequence, chunk.epoch, slot as u32, chunk.payload.len() as u32);
            self.staging.write(notice_at, &bytes)?;
            drop(self.queue_pair.send(self.staging.slice(notice_at, NOTICE_BYTES))?);
            return Ok(());
        }
        let bytes = chunk.to_bytes(compress);
        self.staging.write(at, &bytes)?;
        let local = self.staging.slice(at, bytes.len() as u64);
        drop(self.queue_pair.write_with_immediate(local, self.ring.at(at), slot as u32)?);
        Ok(())
    }
}

/// The way to the next log of the chain, connected again whenever it breaks.
pub(super) struct Downstream<F: Fabric> {
    pub(super) fabric: F,
    pub(super) options: Options,
    pub(super) peer: RoleName,
    pub(super) feed: RefCell<Option<Rc<Feed<F>>>>,
    pub(super) turn: KeyLocks,
}

impl<F: Fabric> Downstream<F> {
    pub(super) fn new(fabric: &F, options: &Options, peer: RoleName) -> Rc<Downstream<F>> {
        Rc::new(Downstream {
            fabric: fabric.clone(),
            options: options.clone(),
            peer,
            feed: RefCell::new(None),
            turn: KeyLocks::default(),
        })
    }

    /// The connection, made anew where it broke; `fresh` hears of the answer to a new one. Tries until
    /// it succeeds, except where the peer says that it never will.
    pub(super) async fn ensure(
        &self,
        open: impl Fn() -> Open,
        fresh: impl Fn(&Rc<Feed<F>>, Hello),
    ) -> Result<Rc<Feed<F>>, LogError> {
        let _turn = self.turn.lock(0).await;
        loop {
            let present = self.feed.borrow().clone();
            if let Some(feed) = present.filter(|feed| !feed.is_broken()) {
                return Ok(feed);
            }
            match Feed::connect(&self.fabric, &self.peer, open(), &self.options).await {
                Ok((_, hello)) if !hello.serves => {
                    return Err(LogError::NoEngine {
                        engine: self.options.engine.clone(),
                        alternative: self.options.alternative,
                    });
                }
                Ok((feed, hello)) => {
                    *self.feed.borrow_mut() = Some(feed.clone());
                    fresh(&feed, hello);
                    return Ok(feed);
                }
                // The peer is down, or was while it was asked.
                Err(LogError::Disconnected { .. } | LogError::Connect(_) | LogError::Post(_)) => {
                    self.fabric.sleep(PAUSE).await;
                }
                Err(other) => return Err(other),
            }
        }
    }

    /// Ends the connection, so that the next use opens another.
    pub(super) fn reset(&self) {
        if let Some(feed) = self.feed.borrow_mut().take() {
            feed.close();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chunks_are_read_back_and_damage_is_seen() {
        for payload in [vec![7; 1000], (0..=255).collect(), Vec::new()] {
            for compress in [false, true] {
                let chunk = Chunk { sequence: 3, epoch: 2, payload: payload.clone() };
                let bytes = chunk.to_bytes(compress);
                assert_eq!(Chunk::from_bytes(&bytes), Some(chunk));
                for at in CHUNK_HEADER as usize..bytes.len() {
                    let mut wrong = bytes.clone();
                    wrong[at] ^= 1;
                    assert_eq!(Chunk::from_bytes(&wrong), None);
                }
            }
        }
        assert!(Chunk { sequence: 1, epoch: 1, payload: vec![7; 1000] }.to_bytes(true).len() < 100);
    }

    #[test]
    fn messages_are_read_back() {
        let open = Open { opener: Opener::Card, last: 5, epoch: 6, staging: no_region() };
        assert_eq!(Open::from_bytes(&open.to_bytes()), Some(open));
        let hello = Hello { ring: no_region(), last: 9, serves: true };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Some(hello));
        assert_eq!(read_notice(&notice(1, 2, 3, 4)), Some((1, 2, 3, 4)));
    }
}
