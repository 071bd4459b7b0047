//! A client's session with the store.

use super::layout::*;
use super::server::{GET_SERVICE, Greeting, HELLO_BYTES, SERVICE};
use super::{Home, KvError, Placement, Splitter, StoreBug, StoreConfig};
use crate::alive::outlive;
use crate::outbox::{self, Outbox};
use offpath_fabric::{
    Access, Address, Fabric, QueuePair, QueuePairOptions, Region, RemoteAddress, Slice, Status, Work,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// A key of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StoreKey(u64);

impl StoreKey {
    /// The key whose bytes are the low ones of `number`, little-endian.
    pub fn from_number(number: u64) -> StoreKey {
        StoreKey(number)
    }

    /// A key from its bytes; refused where they are not as many as the store's keys have.
    pub fn new(bytes: &[u8], layout: &Layout) -> Result<StoreKey, KvError> {
        if bytes.len() != layout.key_bytes as usize || bytes.len() > 8 {
            return Err(KvError::KeySize { length: bytes.len(), expected: layout.key_bytes });
        }
        let mut word = [0; 8];
        word[..bytes.len()].copy_from_slice(bytes);
        Ok(StoreKey(u64::from_le_bytes(word)))
    }

    /// Its bytes as a number.
    pub fn number(self) -> u64 {
        self.0
    }
}

/// Receives that wait for answers to gets: more than one, so that a late answer does not take the
/// place of the one that is waited for.
const RECEIVES: u64 = 4;

/// A connection to one side of the server.
struct Side<F: Fabric> {
    name: &'static str,
    queue_pair: F::QueuePair,
    greeting: Greeting,
}

/// What a connected session has.
struct Connected<F: Fabric> {
    host: Option<Side<F>>,
    soc: Option<Side<F>>,
    /// Gets by message: the way out, the address, the queue pair, and the posted receives.
    messages: Option<Messages<F>>,
}

struct Messages<F: Fabric> {
    outbox: Outbox<F>,
    to: Address,
    queue_pair: F::QueuePair,
    receives: VecDeque<(F::CompletionFuture, Slice<F::Region>)>,
}

/// A client's session: one operation at a time, with connections of its own, so that sessions never
/// wait for each other.
///
/// After an error that broke a connection the next operation connects again.
pub struct StoreClient<F: Fabric> {
    fabric: F,
    options: StoreConfig,
    region: F::Region,
    splitter: Option<Rc<Splitter>>,
    connected: Option<Connected<F>>,
    sequence: u32,
    hot: Frequent,
    retries: u64,
    /// When the last get read again.
    retried_at: Vec<Time>,
    /// Gets that the card's cache served, to its clients' READ or by its own answer.
    cache_hits: Cell<u64>,
    /// What was read last, kept so that a get takes no memory for it.
    scratch: RefCell<Vec<u8>>,
}

/// The keys that make up most of a stream (Misra and Gries 1982): any key with more than a 16th of the
/// counted requests is among the counters.
#[derive(Default)]
struct Frequent {
    counters: Vec<(u64, u32)>,
    counted: u32,
}

impl Frequent {
    /// Counts a key; gives one whose share was above `share`/1024 when a window ended.
    fn count(&mut self, key: u64, share: u32) -> Option<u64> {
        const COUNTERS: usize = 15;
        const WINDOW: u32 = 1024;
        match self.counters.iter().position(|(counted, _)| *counted == key) {
            Some(index) => self.counters[index].1 += 1,
            None if self.counters.len() < COUNTERS => self.counters.push((key, 1)),
            None => {
                self.counters.iter_mut().for_each(|(_, count)| *count -= 1);
                self.counters.retain(|(_, count)| *count > 0);
            }
        }
        self.counted += 1;
        if self.counted < WINDOW {
            return None;
        }
        self.counted = 0;
        let hottest = self.counters.drain(..).max_by_key(|(key, count)| (*count, *key));
        hottest.filter(|(_, count)| *count > share).map(|(key, _)| key)
    }
}

/// What a look at the index and a record gave.
enum Look {
    Found(Vec<u8>),
    Absent,
    /// What was read does not belong together: it changed meanwhile.
    Changed,
}

/// The answer to a get.
enum Answered {
    /// With the record, where it is whole.
    Record(Option<StoreRecord>),
    At(Option<Pointer>),
    Absent,
    Other,
}

impl Answered {
    fn of(answer: ReplyStatus, key: u64, body: &[u8], loosely: bool) -> Answered {
        match answer {
            ReplyStatus::Done if body.len() >= 8 => Answered::Record(match loosely {
                true => StoreRecord::unchecked(&[&key.to_le_bytes(), body].concat()),
                false => StoreRecord::from_parts(key, word_at(body, 0), &body[8..]),
            }),
            ReplyStatus::At if body.len() >= 8 => Answered::At(Pointer::from_word(word_at(body, 0))),
            ReplyStatus::Absent => Answered::Absent,
            _ => Answered::Other,
        }
    }
}

impl<F: Fabric> StoreClient<F> {
    /// Connects to the store. Refused where its shape is not that of `options`, and where the
    /// placement needs what the platform lacks.
    pub async fn connect(fabric: &F, options: &StoreConfig) -> Result<StoreClient<F>, KvError> {
        StoreClient::open(fabric, options, None).await
    }

    /// The same, for gets that are split between placements as `splitter` says. Refused too where the
    /// store has the index elsewhere than one of them needs.
    pub async fn open(
        fabric: &F,
        options: &StoreConfig,
        splitter: Option<Rc<Splitter>>,
    ) -> Result<StoreClient<F>, KvError> {
        options.check()?;
        let home = options.placement.index_home();
        let strange = splitter.iter().flat_map(|all| all.placements()).find(|one| one.index_home() != home);
        if let Some(asked) = strange {
            return Err(KvError::WrongHome { asked, needed: asked.index_home() });
        }
        let memory = fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default();
        let record = options.layout.record_bytes();
        // Bucket, record, request, its answer, hellos, answers to gets.
        let length = 64 + record + REQUEST_BYTES + record + 8 + 2 * HELLO_BYTES + RECEIVES * record;
        let region = fabric.register(&memory, length, Access::LOCAL_WRITE)?;
        let mut client = StoreClient {
            fabric: fabric.clone(),
            options: options.clone(),
            region,
            splitter,
            connected: None,
            // Sessions that follow each other on one queue pair number must not share answers.
            sequence: fabric.random_u64() as u32,
            hot: Frequent::default(),
            retries: 0,
            retried_at: Vec::new(),
            cache_hits: Cell::new(0),
            scratch: RefCell::default(),
        };
        client.ensure().await?;
        Ok(client)
    }

    /// The store's shape.
    pub fn layout(&self) -> &Layout {
        &self.options.layout
    }

    /// Gets that read again, since what they read had changed or did not come.
    pub fn retries(&self) -> u64 {
        self.retries
    }

    /// When the last get read again.
    pub fn retried_at(&self) -> &[Time] {
        &self.retried_at
    }

    /// Gets that the card's cache served, since the client was made: by A5-read a READ of it, by A5-send the card's
    /// answer out of it.
    pub fn cache_hits(&self) -> u64 {
        self.cache_hits.get()
    }

    /// Connects anew, as after an error.
    pub async fn reconnect(&mut self) -> Result<(), KvError> {
        self.connected = None;
        self.ensure().await
    }

    fn record_at(&self) -> u64 {
        64
    }

    fn request_at(&self) -> u64 {
        64 + self.options.layout.record_bytes()
    }

    fn answer_at(&self) -> u64 {
        self.request_at() + REQUEST_BYTES + self.options.layout.record_bytes()
    }

    fn hello_at(&self) -> u64 {
        self.answer_at() + 8
    }

    fn gets_at(&self) -> u64 {
        self.hello_at() + 2 * HELLO_BYTES
    }

    fn bytes(&self, offset: u64, length: u64) -> Result<Vec<u8>, KvError> {
        let mut bytes = vec![0; length as usize];
        self.region.read(offset, &mut bytes)?;
        Ok(bytes)
    }

    /// What `look` finds in bytes of the session's region.
    fn with_read<T>(&self, offset: u64, length: u64, look: impl FnOnce(&[u8]) -> T) -> Result<T, KvError> {
        let mut scratch = self.scratch.borrow_mut();
        scratch.resize(length as usize, 0);
        self.region.read(offset, &mut scratch)?;
        Ok(look(&scratch))
    }

    async fn side(&self, home: Home) -> Result<Side<F>, KvError> {
        let name = home.role();
        let at = self.hello_at() + if home == Home::Host { 0 } else { HELLO_BYTES };
        let queue_pair = self.fabric.create_queue_pair(QueuePairOptions::rc())?;
        let mut hello = queue_pair.receive(self.region.slice(at, HELLO_BYTES))?;
        self.fabric.connect(&queue_pair, name, 0, SERVICE).await?;
        let heard = self.patiently(&queue_pair, name, &mut hello).await?;
        let bytes = self.bytes(at, heard)?;
        let Some(bytes) = bytes.first_chunk() else { return Err(KvError::NoStore { found: 0 }) };
        let greeting = Greeting::from_bytes(bytes)?;
        greeting.agrees(&self.options)?;
        Ok(Side { name, queue_pair, greeting })
    }

    async fn patiently(
        &self,
        queue_pair: &F::QueuePair,
        peer: &'static str,
        receive: &mut F::CompletionFuture,
    ) -> Result<u64, KvError> {
        let span = self.options.answer_timeout;
        let heard = outlive(&self.fabric, queue_pair, &self.region, span, receive).await?;
        Ok(heard.map_err(|status| KvError::Disconnected { peer, status })?.bytes)
    }

    async fn ensure(&mut self) -> Result<(), KvError> {
        if self.connected.is_some() {
            return Ok(());
        }
        let home = self.options.placement.index_home();
        let soc = if home == Home::Soc { Some(self.side(Home::Soc).await?) } else { None };
        let host = Some(self.side(Home::Host).await?);
        let asks = match &self.splitter {
            Some(splitter) => splitter.placements().any(Placement::asks_the_card),
            None => self.options.placement.asks_the_card(),
        };
        let messages = if asks { Some(self.open_messages().await?) } else { None };
        self.connected = Some(Connected { host, soc, messages });
        Ok(())
    }

    async fn open_messages(&self) -> Result<Messages<F>, KvError> {
        let record = self.options.layout.record_bytes();
        let options = QueuePairOptions { send_depth: 2 * outbox::SLOTS as u32, ..QueuePairOptions::ud() };
        let queue_pair = self.fabric.create_queue_pair(options)?;
        if record > queue_pair.message_max() {
            let length = self.options.layout.value_bytes as usize;
            let bound = (queue_pair.message_max() - RECORD_HEADER_BYTES) as u32;
            return Err(KvError::ValueTooLarge { length, bound });
        }
        let memory = self.fabric.memories().into_iter().next().map(|m| m.name).unwrap_or_default();
        let outbox = Outbox::new(&self.fabric, &memory, queue_pair.clone(), REQUEST_BYTES)?;
        let limit = queue_pair.options().connect_timeout;
        let to = self.fabric.resolve(Home::Soc.role(), 0, GET_SERVICE, limit).await?;
        let mut receives = VecDeque::new();
        for number in 0..RECEIVES {
            let slice = self.region.slice(self.gets_at() + number * record, record);
            receives.push_back((queue_pair.receive(slice.clone())?, slice));
        }
        Ok(Messages { outbox, to, queue_pair, receives })
    }

    /// The value of `key`, or `None` where there is none.
    pub async fn get(&mut self, key: StoreKey) -> Result<Option<Vec<u8>>, KvError> {
        let placement = self.choose();
        self.get_by(placement, key).await
    }

    /// The placement that the next get takes: the options', or one that the splitter draws.
    pub fn choose(&self) -> Placement {
        match &self.splitter {
            Some(splitter) => splitter.choose(self.fabric.random_u64()),
            None => self.options.placement,
        }
    }

    /// The value of `key` by a placement that the store's home of the index serves.
    pub async fn get_by(&mut self, placement: Placement, key: StoreKey) -> Result<Option<Vec<u8>>, KvError> {
        let home = self.options.placement.index_home();
        if placement.index_home() != home {
            return Err(KvError::WrongHome { asked: placement, needed: placement.index_home() });
        }
        let began = self.fabric.now();
        let got = self.attempt(placement, key).await;
        if let Some(splitter) = &self.splitter {
            splitter.observe(placement, self.fabric.now() - began);
        }
        got
    }

    async fn attempt(&mut self, placement: Placement, key: StoreKey) -> Result<Option<Vec<u8>>, KvError> {
        self.retried_at.clear();
        self.fabric.compute(Work::Time(self.options.costs.build)).await;
        for attempt in 0..self.options.attempts {
            if self.connected.is_none() {
                self.ensure().await?;
            }
            let look = match placement {
                Placement::HostOneSided | Placement::SplitOneSided => self.look(key.0, false).await,
                Placement::SocCacheRead => self.look(key.0, true).await,
                Placement::SocLookup | Placement::SocIndex => self.ask(RequestOpcode::GetRecord, key.0).await,
                Placement::SocCacheSend => self.ask(RequestOpcode::GetCached, key.0).await,
            };
            match look {
                Ok(Look::Found(value)) => {
                    if !placement.asks_the_card() && self.options.hot_share > 0 {
                        self.count_hot(key).await;
                    }
                    return Ok(Some(value));
                }
                Ok(Look::Absent) => return Ok(None),
                Ok(Look::Changed) => self.count_retry(),
                Err(KvError::Disconnected { .. }) if attempt + 1 < self.options.attempts => {
                    self.count_retry();
                    self.connected = None;
                }
                Err(error) => {
                    self.connected = None;
                    return Err(error);
                }
            }
        }
        Err(KvError::Unanswered { key: key.0, attempts: self.options.attempts })
    }

    fn count_retry(&mut self) {
        self.retries += 1;
        self.retried_at.push(self.fabric.now());
    }

    /// Asks for copies of a key that many of this client's one-sided gets went to.
    async fn count_hot(&mut self, key: StoreKey) {
        if let Some(hot) = self.hot.count(key.0, self.options.hot_share) {
            // Copies are a help and no promise: where none can be made, gets go on as before.
            let _ = self.change(RequestOpcode::Replicate, hot, &[]).await;
        }
    }

    async fn read(&self, side: &Side<F>, at: u64, length: u64, from: RemoteAddress) -> Result<(), KvError> {
        let done = side.queue_pair.read(self.region.slice(at, length), from)?.await;
        done.success().map_err(|status| KvError::Disconnected { peer: side.name, status })?;
        Ok(())
    }

    /// Looks by one-sided READs.
    async fn look(&mut self, key: u64, in_cache: bool) -> Result<Look, KvError> {
        let Some(connected) = &self.connected else { return Ok(Look::Changed) };
        let Some(index) = connected.soc.as_ref().or(connected.host.as_ref()) else {
            return Ok(Look::Changed);
        };
        let layout = self.options.layout;
        let mut number = layout.root(key);
        for _ in 0..=layout.overflow_buckets {
            let from = index.greeting.index.at(layout.bucket_offset(number));
            self.read(index, 0, BUCKET_BYTES, from).await?;
            let mut bytes = [0; BUCKET_BYTES as usize];
            self.region.read(0, &mut bytes)?;
            let bucket = Bucket::from_bytes(&bytes);
            self.fabric.compute(Work::Time(self.options.costs.search)).await;
            if let Some((_, pointer)) = bucket.find(key) {
                return self.fetch(key, pointer, in_cache).await;
            }
            if bucket.next == 0 {
                return Ok(Look::Absent);
            }
            number = bucket.next;
        }
        Ok(Look::Changed)
    }

    /// Reads the record that a pointer names, from one of its places.
    async fn fetch(&self, key: u64, pointer: Pointer, in_cache: bool) -> Result<Look, KvError> {
        let Some(connected) = &self.connected else { return Ok(Look::Changed) };
        let Some(host) = &connected.host else { return Ok(Look::Changed) };
        let layout = self.options.layout;
        let length = layout.record_bytes();
        if let (true, Some(way), Some(soc)) = (in_cache, pointer.cached, &connected.soc) {
            let from = soc.greeting.cache.at(layout.cache_offset(layout.cache_set(key), way));
            self.read(soc, self.record_at(), length, from).await?;
            if let Look::Found(value) = self.check(key, pointer).await? {
                self.cache_hits.set(self.cache_hits.get() + 1);
                return Ok(Look::Found(value));
            }
        }
        let spread =
            if pointer.group == 0 { 0 } else { self.fabric.random_u64() % (1 + u64::from(layout.copies)) };
        if spread > 0 {
            let slot = layout.copy_slot(pointer.group, spread as u32 - 1);
            let from = host.greeting.values.at(layout.slot_offset(slot));
            self.read(host, self.record_at(), length, from).await?;
            if let Look::Found(value) = self.check(key, pointer).await? {
                return Ok(Look::Found(value));
            }
        }
        let from = host.greeting.values.at(layout.slot_offset(pointer.slot.into()));
        self.read(host, self.record_at(), length, from).await?;
        self.check(key, pointer).await
    }

    /// Whether the record that was read is the one that a pointer names.
    async fn check(&self, key: u64, pointer: Pointer) -> Result<Look, KvError> {
        let look = self.with_read(self.record_at(), self.options.layout.record_bytes(), |bytes| {
            let found = if self.options.injects(StoreBug::NoChecksum) {
                StoreRecord::unchecked(bytes)
            } else {
                StoreRecord::from_bytes(bytes).filter(|record| record.key == key)
            };
            let any =
                self.options.injects(StoreBug::NoVersionCheck) || self.options.injects(StoreBug::NoChecksum);
            match found {
                Some(record) if any || record.version == pointer.version => Look::Found(record.value),
                _ => Look::Changed,
            }
        })?;
        self.fabric.compute(Work::Time(self.options.costs.check)).await;
        Ok(look)
    }

    /// Asks the card, once; no answer in time is [`Look::Changed`].
    async fn ask(&mut self, opcode: RequestOpcode, key: u64) -> Result<Look, KvError> {
        self.sequence = self.sequence.wrapping_add(1);
        let request = RequestHead { key, opcode, length: 0, sequence: self.sequence };
        let began = self.fabric.now();
        let loosely = self.options.injects(StoreBug::NoSequenceCheck);
        if matches!(self.connected, Some(Connected { messages: None, .. })) {
            let opened = self.open_messages().await?;
            if let Some(connected) = &mut self.connected {
                connected.messages = Some(opened);
            }
        }
        let Some(Connected { messages: Some(messages), .. }) = &mut self.connected else {
            return Ok(Look::Changed);
        };
        messages.outbox.send(&request.to_bytes(), Some(messages.to)).await?;
        let answered = loop {
            let waited = self.fabric.now() - began;
            let left = self.options.answer_timeout.saturating_sub(waited);
            let Some((completion, _)) = messages.receives.front_mut() else { return Ok(Look::Changed) };
            let heard = match self.fabric.timeout(left, completion).await {
                Some(heard) => heard,
                None => {
                    // The card may have restarted under another address.
                    let name = Home::Soc.role();
                    if let Ok(to) =
                        self.fabric.resolve(name, 0, GET_SERVICE, self.options.answer_timeout).await
                    {
                        messages.to = to;
                    }
                    return Ok(Look::Changed);
                }
            };
            let Some((_, slice)) = messages.receives.pop_front() else { return Ok(Look::Changed) };
            let mut body = self.scratch.borrow_mut();
            body.resize(heard.bytes as usize, 0);
            slice.region.read(slice.offset, &mut body)?;
            let again = messages.queue_pair.receive(slice.clone())?;
            messages.receives.push_back((again, slice));
            heard.success().map_err(|status| KvError::Disconnected { peer: Home::Soc.role(), status })?;
            // An answer to an earlier request, late or twice, is passed over.
            if let Some((sequence, answer)) = read_answer_head(&body)
                && (loosely || sequence == self.sequence)
            {
                break Answered::of(answer, key, &body[ANSWER_BYTES as usize..], loosely);
            }
        };
        match answered {
            Answered::Record(record) => {
                self.fabric.compute(Work::Time(self.options.costs.check)).await;
                let is_hit = matches!(opcode, RequestOpcode::GetCached) && record.is_some();
                self.cache_hits.set(self.cache_hits.get() + u64::from(is_hit));
                Ok(record.map_or(Look::Changed, |record| Look::Found(record.value)))
            }
            Answered::At(Some(pointer)) => self.fetch(key, pointer, false).await,
            Answered::Absent => Ok(Look::Absent),
            Answered::At(None) | Answered::Other => Ok(Look::Changed),
        }
    }

    /// Stores `value` under `key`. When it returns, every later get sees it or what came after.
    pub async fn put(&mut self, key: StoreKey, value: &[u8]) -> Result<(), KvError> {
        let bound = self.options.layout.value_bytes;
        if value.len() > bound as usize {
            return Err(KvError::ValueTooLarge { length: value.len(), bound });
        }
        let mut done = self.change(RequestOpcode::Put, key.0, value).await;
        if matches!(done, Err(KvError::Disconnected { .. })) && self.options.injects(StoreBug::BlindRetry) {
            done = self.change(RequestOpcode::Put, key.0, value).await;
        }
        done.map(|_| ())
    }

    /// Removes `key`; says whether it was there.
    pub async fn delete(&mut self, key: StoreKey) -> Result<bool, KvError> {
        self.change(RequestOpcode::Delete, key.0, &[]).await
    }

    /// Has the owner make copies of a hot record; says whether the record was there.
    pub async fn replicate(&mut self, key: StoreKey) -> Result<bool, KvError> {
        self.change(RequestOpcode::Replicate, key.0, &[]).await
    }

    async fn change(&mut self, opcode: RequestOpcode, key: u64, value: &[u8]) -> Result<bool, KvError> {
        self.ensure().await?;
        let changed = self.try_change(opcode, key, value).await;
        if matches!(changed, Err(KvError::Disconnected { .. } | KvError::Post(_))) {
            self.connected = None;
        }
        changed
    }

    async fn try_change(&mut self, opcode: RequestOpcode, key: u64, value: &[u8]) -> Result<bool, KvError> {
        self.fabric.compute(Work::Time(self.options.costs.build)).await;
        self.sequence = self.sequence.wrapping_add(1);
        let request = RequestHead { key, opcode, length: value.len() as u16, sequence: self.sequence };
        let slots = self.options.layout.slots;
        let (at, answer_at) = (self.request_at(), self.answer_at());
        let Some(connected) = &self.connected else { return Ok(false) };
        let Some(owner) = connected.soc.as_ref().or(connected.host.as_ref()) else { return Ok(false) };
        self.region.write(at, &request.to_bytes())?;
        self.region.write(at + REQUEST_BYTES, value)?;
        let mut receive = owner.queue_pair.receive(self.region.slice(answer_at, 8))?;
        // The answer says more than the completion, and a failure shows at the probe.
        drop(owner.queue_pair.send(self.region.slice(at, REQUEST_BYTES + value.len() as u64))?);
        let heard = self.patiently(&owner.queue_pair, owner.name, &mut receive).await?;
        let bytes = self.bytes(answer_at, heard)?;
        match read_answer_head(&bytes) {
            Some((sequence, answer)) if sequence == self.sequence => match answer {
                ReplyStatus::Done => Ok(true),
                ReplyStatus::Absent => Ok(false),
                ReplyStatus::Full => Err(KvError::Full { slots }),
                ReplyStatus::TooLarge => {
                    let bound = self.options.layout.value_bytes;
                    Err(KvError::ValueTooLarge { length: value.len(), bound })
                }
                ReplyStatus::At | ReplyStatus::Failed => Err(KvError::ServerFailed),
            },
            // A connection carries one request at a time, so another's answer means it is out of step.
            _ => Err(KvError::Disconnected { peer: owner.name, status: Status::BadResponse }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_above_its_share_is_found() {
        let mut frequent = Frequent::default();
        let found: Vec<u64> =
            (0..4096u64).filter_map(|n| frequent.count(if n % 4 == 0 { 7 } else { n + 100 }, 32)).collect();
        assert_eq!(found, [7, 7, 7, 7]);
        let mut even = Frequent::default();
        assert_eq!((0..4096u64).find_map(|n| even.count(n % 1000, 32)), None);
    }

    #[test]
    fn keys_have_the_stores_length() {
        let layout = StoreConfig::sized(10, 8).layout;
        assert_eq!(StoreKey::new(&[1, 0, 0, 0, 0, 0, 0, 0], &layout), Ok(StoreKey::from_number(1)));
        assert_eq!(StoreKey::new(&[1; 7], &layout), Err(KvError::KeySize { length: 7, expected: 8 }));
    }
}
