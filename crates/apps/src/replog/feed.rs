//! A connection on which chunks go out and acknowledgements come back, and how it is kept up.

use super::{LogBug, LogConfig, LogCosts, LogError, at_rate};
use crate::alive::{outlive, probe};
use crate::pool::{Change, Pool, Promise, Turn};
use offpath_fabric::{
    Access, EndpointId, Fabric, QueuePair, QueuePairOptions, Region, RemoteRegion, RoleName, Status, Work,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The service of a backup, and of the card.
pub(super) const SERVICE: &str = "replog";
/// Bytes before a chunk in a slot: sequence, epoch, length, stored length, checksum.
pub(super) const CHUNK_HEADER: u64 = 32;
/// Incarnations of the primary that are told apart.
const INCARNATIONS: usize = 32;
/// Bytes of the message that opens a connection.
pub(super) const OPEN_BYTES: u64 = 48 + 16 * INCARNATIONS as u64;
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

/// Where the primary's log ended when each of its incarnations began.
///
/// A log that was last with incarnation `e` may have entries that the primary lost since: all behind the
/// smallest end of the incarnations after `e`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Lineage(Vec<(u64, u64)>);

impl Lineage {
    /// The latest incarnation; 0 for none.
    pub(super) fn epoch(&self) -> u64 {
        self.0.last().map_or(0, |(epoch, _)| *epoch)
    }

    /// Adds an incarnation that begins with a log up to `end`.
    pub(super) fn begin(&mut self, end: u64) {
        let epoch = self.epoch() + 1;
        // An earlier one with a later end cuts nothing that this one does not.
        self.0.retain(|(_, other)| *other < end);
        self.0.push((epoch, end));
        if self.0.len() > INCARNATIONS {
            // Who missed that many is cut where the first of them would have.
            self.0[1].1 = self.0[0].1;
            self.0.remove(0);
        }
    }

    /// The last entry that a log may keep which was last with incarnation `epoch`.
    pub(super) fn keeps(&self, epoch: u64) -> u64 {
        self.0.iter().filter(|(other, _)| *other > epoch).map(|(_, end)| *end).min().unwrap_or(u64::MAX)
    }

    pub(super) fn to_numbers(&self) -> Vec<u64> {
        self.0.iter().flat_map(|(epoch, end)| [*epoch, *end]).collect()
    }

    pub(super) fn from_numbers(numbers: &[u64]) -> Lineage {
        Lineage(numbers.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect())
    }
}

/// What opens a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Open {
    pub(super) opener: Opener,
    /// Where the card finds staged chunks.
    pub(super) staging: RemoteRegion,
    /// Of the primary; empty where the card opens, which follows nobody.
    pub(super) lineage: Lineage,
}

fn word(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

impl Open {
    pub(super) fn to_bytes(&self) -> [u8; OPEN_BYTES as usize] {
        let mut bytes = [0; OPEN_BYTES as usize];
        bytes[0] = self.lineage.0.len() as u8;
        bytes[8] = self.opener as u8;
        bytes[16..40].copy_from_slice(&self.staging.to_bytes());
        for (slot, number) in bytes[48..].chunks_mut(8).zip(self.lineage.to_numbers()) {
            slot.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<Open> {
        let bytes = bytes.first_chunk::<{ OPEN_BYTES as usize }>()?;
        let opener = *[Opener::Before, Opener::Card, Opener::Host].get(usize::from(bytes[8]))?;
        let staging = RemoteRegion::from_bytes(&bytes[16..40]).ok()?;
        let numbers: Vec<u64> = (48..OPEN_BYTES as usize).step_by(8).map(|at| word(bytes, at)).collect();
        let incarnations = usize::from(bytes[0]);
        let lineage = Lineage::from_numbers(numbers.get(..2 * incarnations)?);
        Some(Open { opener, staging, lineage })
    }
}

/// What answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) ring: RemoteRegion,
    /// The last entry of the peer's log, or the last that the card has digested.
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
    RemoteRegion { endpoint: EndpointId(0), key: 0, base: 0, length: 0 }
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
const LATER: u32 = 1 << 31;
/// Set in a word that tells how far the card has digested, by the position's last 30 bits.
pub(super) const DIGESTED: u32 = 1 << 30;

/// What became of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// The peer's log and the rest of the chain have it.
    Kept,
    /// One before it is missing.
    Later,
    /// The primary's incarnation that it is of is over, so that nobody may count on it.
    Over,
}

impl Taken {
    /// The word that answers for a slot.
    pub(super) fn word(self, slot: u32) -> u32 {
        match self {
            Taken::Kept => slot,
            Taken::Later => slot | LATER,
            Taken::Over => slot | LATER | DIGESTED,
        }
    }

    /// The slot that a word answers for, and how; nothing where it tells of digestion.
    fn heard(word: u32) -> Option<(u32, Taken)> {
        let taken = match word & (LATER | DIGESTED) {
            DIGESTED => return None,
            LATER => Taken::Later,
            0 => Taken::Kept,
            _ => Taken::Over,
        };
        Some((word & !(LATER | DIGESTED), taken))
    }
}

/// Receives beyond those of the slots, for such words.
const SPARE_RECEIVES: u64 = 4;

/// How far a peer has digested.
#[derive(Default)]
pub(super) struct Progress {
    digested: Cell<u64>,
    pub(super) change: Change,
}

impl Progress {
    pub(super) fn digested(&self) -> u64 {
        self.digested.get()
    }

    fn reached(&self, position: u64) {
        self.digested.set(self.digested.get().max(position));
        self.change.tell();
    }

    /// Takes the last 30 bits of a position that never goes back.
    fn heard(&self, word: u32) {
        let span = u64::from(DIGESTED);
        let (known, low) = (self.digested.get(), u64::from(word) % span);
        let near = known / span * span + low;
        self.reached(if near < known { near + span } else { near });
    }
}

/// Where the time of bringing a chunk went.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    pub(super) compression: Time,
    pub(super) post: Time,
}

type Waiting = BTreeMap<u32, Rc<Promise<Result<Taken, Status>>>>;

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
    costs: LogCosts,
    progress: Rc<Progress>,
    hasty: bool,
}

impl<F: Fabric> Feed<F> {
    /// Connects to `peer` and says `open`; gives the connection and the peer's answer.
    pub(super) async fn connect(
        fabric: &F,
        peer: &RoleName,
        open: Open,
        options: &LogConfig,
        progress: &Rc<Progress>,
    ) -> Result<(Rc<Feed<F>>, Hello), LogError> {
        let memory = fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default();
        let slot_bytes = options.slot_bytes();
        let slots = u64::from(options.slots);
        let (notices, hello_at) = (slots * slot_bytes, slots * (slot_bytes + NOTICE_BYTES));
        let open_at = hello_at + HELLO_BYTES;
        let staging = fabric.register(&memory, open_at + OPEN_BYTES, Access::ALL)?;
        let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
        let mut hello = queue_pair.receive(staging.slice(hello_at, HELLO_BYTES))?;
        let mut acknowledgements = VecDeque::new();
        for _ in 0..slots + SPARE_RECEIVES {
            acknowledgements.push_back(queue_pair.receive(staging.slice(notices, 0))?);
        }
        let broke = |status| LogError::Disconnected { peer: peer.to_string(), status };
        fabric.connect(&queue_pair, &peer.role, peer.instance, SERVICE).await?;
        staging.write(open_at, &Open { staging: staging.remote(), ..open.clone() }.to_bytes())?;
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
            costs: options.costs,
            progress: progress.clone(),
            hasty: options.injects(LogBug::HastySlots),
        });
        fabric.spawn_task(Box::pin(feed.clone().listen(acknowledgements, options.patience)));
        Ok((feed, hello))
    }

    /// Takes acknowledgements until the connection breaks. It asks a silent peer whether it lives even
    /// where nothing is in flight: a backup that restarted waits to be told where its log is cut.
    async fn listen(self: Rc<Self>, mut receives: VecDeque<F::CompletionFuture>, patience: Time) {
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
                        Ok(completion) => receives.push_back(completion),
                        Err(_) => break Status::Flushed,
                    }
                    // The slot is told by the word that comes with the acknowledgement.
                    let word = heard.immediate.unwrap_or(u32::MAX);
                    let Some((slot, taken)) = Taken::heard(word) else {
                        self.progress.heard(word);
                        continue;
                    };
                    let promise = self.waiting.borrow_mut().remove(&slot);
                    if let Some(promise) = promise {
                        promise.give(Ok(taken));
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
    pub(super) fn in_flight(&self) -> usize {
        self.waiting.borrow().len()
    }

    /// Brings a chunk to the peer and waits for its acknowledgement, again as long as the peer says that
    /// it comes too early: later chunks must not keep the slots that an earlier one needs.
    pub(super) async fn send(&self, chunk: &Chunk, compress: bool) -> Result<(), LogError> {
        loop {
            match self.offer(chunk, compress).await? {
                Taken::Kept => return Ok(()),
                Taken::Later => self.fabric.sleep(PAUSE).await,
                Taken::Over => return Err(self.superseded(chunk)),
            }
        }
    }

    /// Why a chunk is not taken although the peer lives.
    pub(super) fn superseded(&self, chunk: &Chunk) -> LogError {
        LogError::Superseded { peer: self.peer.to_string(), incarnation: chunk.epoch }
    }

    /// Brings a chunk to the peer once; what became of it.
    pub(super) async fn offer(&self, chunk: &Chunk, compress: bool) -> Result<Taken, LogError> {
        self.offer_timed(chunk, compress).await.0
    }

    /// Brings a chunk once; what became of it, and where this role's time went.
    pub(super) async fn offer_timed(
        &self,
        chunk: &Chunk,
        compress: bool,
    ) -> (Result<Taken, LogError>, Spent) {
        let mut spent = Spent::default();
        let mut bytes = Vec::new();
        if !self.to_card {
            let began = self.fabric.now();
            let cost = at_rate(chunk.payload.len() as u64, self.costs.compress_bytes_per_second);
            if compress && cost > Time::ZERO {
                self.fabric.compute(Work::Time(cost)).await;
            }
            bytes = chunk.to_bytes(compress);
            if compress {
                spent.compression = self.fabric.now() - began;
            }
        }
        // The earliest chunk first: the others wait for it at the peer.
        let slot = self.pool.take(chunk.sequence).await;
        let broke = |status| LogError::Disconnected { peer: self.peer.to_string(), status };
        let promise = Promise::new();
        if let Some(status) = self.broken.get() {
            // Who waits for a slot must learn it too.
            self.pool.give(slot);
            return (Err(broke(status)), spent);
        }
        self.waiting.borrow_mut().insert(slot as u32, promise.clone());
        let began = self.fabric.now();
        let posted = self.post(slot, chunk, &bytes);
        drop(bytes);
        // A backend that charges for posting delays what comes next.
        self.fabric.compute(Work::Time(Time::ZERO)).await;
        spent.post = self.fabric.now() - began;
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
        (done, spent)
    }

    fn post(&self, slot: u64, chunk: &Chunk, bytes: &[u8]) -> Result<(), LogError> {
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
        self.staging.write(at, bytes)?;
        let local = self.staging.slice(at, bytes.len() as u64);
        drop(self.queue_pair.write_with_immediate(local, self.ring.at(at), slot as u32)?);
        Ok(())
    }
}

/// The way to the next log of the chain, connected again whenever it breaks.
pub(super) struct Downstream<F: Fabric> {
    pub(super) fabric: F,
    pub(super) options: LogConfig,
    pub(super) peer: RoleName,
    pub(super) feed: RefCell<Option<Rc<Feed<F>>>>,
    pub(super) turn: Turn,
    pub(super) progress: Rc<Progress>,
}

impl<F: Fabric> Downstream<F> {
    pub(super) fn new(fabric: &F, options: &LogConfig, peer: RoleName) -> Rc<Downstream<F>> {
        Rc::new(Downstream {
            fabric: fabric.clone(),
            options: options.clone(),
            peer,
            feed: RefCell::new(None),
            turn: Turn::default(),
            progress: Rc::default(),
        })
    }

    /// The connection, where there is one.
    pub(super) fn present(&self) -> Option<Rc<Feed<F>>> {
        self.feed.borrow().clone().filter(|feed| !feed.is_broken())
    }

    /// The connection, made anew where it broke; `fresh` hears of the answer to a new one and may refuse
    /// it. Tries until it succeeds, except where one of the two says that it never will.
    pub(super) async fn ensure(
        &self,
        open: impl Fn() -> Open,
        fresh: impl Fn(&Rc<Feed<F>>, Hello) -> Result<(), LogError>,
    ) -> Result<Rc<Feed<F>>, LogError> {
        let _turn = self.turn.take().await;
        loop {
            if let Some(feed) = self.present() {
                return Ok(feed);
            }
            let (options, progress, open) = (&self.options, &self.progress, open());
            match Feed::connect(&self.fabric, &self.peer, open.clone(), options, progress).await {
                Ok((feed, hello)) if !hello.serves => {
                    feed.close();
                    let (peer, incarnation) = (self.peer.to_string(), open.lineage.epoch());
                    return Err(match open.opener {
                        Opener::Before => LogError::Superseded { peer, incarnation },
                        Opener::Card | Opener::Host => LogError::NoEngine {
                            engine: self.options.engine.clone(),
                            alternative: self.options.alternative,
                        },
                    });
                }
                Ok((feed, hello)) => {
                    if let Err(error) = fresh(&feed, hello) {
                        feed.close();
                        return Err(error);
                    }
                    *self.feed.borrow_mut() = Some(feed.clone());
                    self.progress.reached(hello.last);
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
    fn a_word_tells_a_slot_and_what_became_of_its_chunk_or_a_position() {
        for slot in [0, 1, DIGESTED - 1] {
            for taken in [Taken::Kept, Taken::Later, Taken::Over] {
                assert_eq!(Taken::heard(taken.word(slot)), Some((slot, taken)));
            }
            assert_eq!(Taken::heard(slot | DIGESTED), None);
        }
    }

    #[test]
    fn a_position_is_known_by_its_last_bits() {
        let progress = Progress::default();
        let span = u64::from(DIGESTED);
        for position in [0, 5, span - 1, span, span + 7, 3 * span - 2, 3 * span + 1] {
            progress.reached(position.saturating_sub(span / 2));
            progress.heard((position % span) as u32 | DIGESTED);
            assert_eq!(progress.digested(), position);
        }
    }

    #[test]
    fn who_missed_incarnations_keeps_what_none_of_them_lost() {
        let mut lineage = Lineage::default();
        let ends = [0, 10, 7, 12, 12, 15];
        ends.iter().for_each(|end| lineage.begin(*end));
        assert_eq!(lineage.epoch(), 6);
        for (epoch, _) in ends.iter().enumerate() {
            assert_eq!(lineage.keeps(epoch as u64), *ends[epoch..].iter().min().expect("there are some"));
        }
        assert_eq!(lineage.keeps(6), u64::MAX);
        assert_eq!(Lineage::from_numbers(&lineage.to_numbers()), lineage);
        (20..80).for_each(|end| lineage.begin(end));
        assert_eq!((lineage.keeps(0), lineage.keeps(6), lineage.keeps(65)), (0, 0, 79));
    }

    #[test]
    fn messages_are_read_back() {
        let mut lineage = Lineage::default();
        for end in 0..100 {
            let open = Open { opener: Opener::Card, staging: no_region(), lineage: lineage.clone() };
            assert_eq!(Open::from_bytes(&open.to_bytes()), Some(open));
            lineage.begin(end);
        }
        let hello = Hello { ring: no_region(), last: 9, serves: true };
        assert_eq!(Hello::from_bytes(&hello.to_bytes()), Some(hello));
        assert_eq!(read_notice(&notice(1, 2, 3, 4)), Some((1, 2, 3, 4)));
    }
}
