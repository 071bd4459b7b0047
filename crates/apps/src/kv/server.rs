//! The memory server: the host with the records, and its card.

use super::index::Index;
use super::layout::*;
use super::{Fetch, Home, KvError, SPARE_SLOTS, StoreBug, StoreConfig, value_of};
use crate::Stop;
use crate::bytes::hash;
use crate::outbox::{self, Outbox};
use crate::pool::{KeyLocks, Pool};
use offpath_fabric::{
    Access, Address, Fabric, Listener, MemoryAt, QueuePair, QueuePairOptions, Region, RemoteAddress,
    RemoteRegion, Status, Unsupported, Work, engines_there,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::rc::Rc;

/// The service that clients and the card connect to.
pub(super) const SERVICE: &str = "kv";
/// The service whose address takes gets.
pub(super) const GET_SERVICE: &str = "kv-get";
/// What a server says first: header, then its regions of index, records and cache.
pub(super) const HELLO_BYTES: u64 = HEADER_BYTES + 3 * RemoteRegion::BYTES as u64;
/// Operations that the card has in flight at the host's memory.
const FAR_SLOTS: u64 = 64;
/// Bytes that a card reads at once when it builds its index.
const SCAN_BYTES: u64 = 64 * 1024;
/// How often a server looks whether it is to stop.
const STOP_EVERY: Time = Time::from_ms(1);
/// A change whose memory is gone does not keep a server from stopping.
const CLOSE_WITHIN: Time = Time::from_ms(1000);
/// Answers of a changed record before a server tells the client to look itself.
const SERVER_ATTEMPTS: u32 = 16;

/// A region's name where a server has none.
fn nothing() -> RemoteRegion {
    RemoteRegion { endpoint: offpath_fabric::EndpointId(0), key: 0, base: 0, length: 0 }
}

/// The way from the card to the host's memory.
struct Far<F: Fabric> {
    fabric: F,
    queue_pair: F::QueuePair,
    engine: Option<String>,
    scratch: F::Region,
    slot_bytes: u64,
    pool: Pool,
    /// An injected bug: a slot is given back before its bytes have left.
    hasty: bool,
}

impl<F: Fabric> Far<F> {
    async fn read(&self, from: RemoteAddress, length: u64) -> Result<Vec<u8>, KvError> {
        let slot = self.pool.take(0).await;
        let at = slot * self.slot_bytes;
        let completion = match &self.engine {
            Some(engine) => {
                let to = MemoryAt::Local { region: self.scratch.clone(), offset: at };
                self.fabric.dma_copy(engine, MemoryAt::Remote(from), to, length)?
            }
            None => self.queue_pair.read(self.scratch.slice(at, length), from)?,
        };
        let status = completion.await.status;
        let mut bytes = vec![0; length as usize];
        self.scratch.read(at, &mut bytes)?;
        self.pool.give(slot);
        reached(status).map(|()| bytes)
    }

    async fn write(&self, to: RemoteAddress, bytes: &[u8]) -> Result<(), KvError> {
        let slot = self.pool.take(0).await;
        let (at, length) = (slot * self.slot_bytes, bytes.len() as u64);
        self.scratch.write(at, bytes)?;
        let completion = match &self.engine {
            Some(engine) => {
                let from = MemoryAt::Local { region: self.scratch.clone(), offset: at };
                self.fabric.dma_copy(engine, from, MemoryAt::Remote(to), length)?
            }
            None => self.queue_pair.write(self.scratch.slice(at, length), to)?,
        };
        if self.hasty {
            self.pool.give(slot);
            return reached(completion.await.status);
        }
        let status = completion.await.status;
        self.pool.give(slot);
        reached(status)
    }
}

fn reached(status: Status) -> Result<(), KvError> {
    if status == Status::Success { Ok(()) } else { Err(KvError::Disconnected { peer: "host", status }) }
}

/// The records, near or far.
enum Values<F: Fabric> {
    Near(F::Region),
    Far(Rc<Far<F>>, RemoteRegion),
}

impl<F: Fabric> Values<F> {
    async fn read(&self, offset: u64, length: u64) -> Result<Vec<u8>, KvError> {
        match self {
            Values::Near(region) => {
                let mut bytes = vec![0; length as usize];
                region.read(offset, &mut bytes)?;
                Ok(bytes)
            }
            Values::Far(far, region) => far.read(region.at(offset), length).await,
        }
    }

    async fn write(&self, offset: u64, bytes: &[u8]) -> Result<(), KvError> {
        match self {
            Values::Near(region) => Ok(region.write(offset, bytes)?),
            Values::Far(far, region) => far.write(region.at(offset), bytes).await,
        }
    }
}

/// Who wants into a set of the cache, and how well those inside do.
#[derive(Clone, Debug, Default)]
struct Contest {
    /// By slot: of the keys whose hash prefers it, the one that missed more than the others, and how often.
    candidates: [(u64, u32); CACHE_WAYS as usize],
    /// By slot, for as many slots as were ever taken.
    hits: Vec<u32>,
}

/// What one role of the memory server has.
struct Node<F: Fabric> {
    fabric: F,
    options: StoreConfig,
    memory: String,
    values: Values<F>,
    /// The index, where this role owns it.
    index: Option<RefCell<Index<F::Region>>>,
    /// The index, where the other role owns it.
    far_index: Option<(Rc<Far<F>>, RemoteRegion)>,
    cache: Option<F::Region>,
    contests: RefCell<BTreeMap<u64, Contest>>,
    locks: KeyLocks,
    /// The version that the next key begins with, so that a slot's next life differs from its last.
    first_version: Cell<u16>,
    groups: RefCell<Vec<u8>>,
    hello: [u8; HELLO_BYTES as usize],
    served: Cell<Served>,
    /// Changes that are in flight.
    changing: Cell<u32>,
    closing: Cell<bool>,
}

fn hello(
    layout: &Layout,
    index: RemoteRegion,
    values: RemoteRegion,
    cache: RemoteRegion,
) -> [u8; HELLO_BYTES as usize] {
    let mut bytes = [0; HELLO_BYTES as usize];
    bytes[..64].copy_from_slice(&layout.to_bytes());
    for (part, region) in [index, values, cache].into_iter().enumerate() {
        let at = 64 + part * RemoteRegion::BYTES;
        bytes[at..at + RemoteRegion::BYTES].copy_from_slice(&region.to_bytes());
    }
    bytes
}

fn memory<F: Fabric>(fabric: &F) -> String {
    fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default()
}

/// What a server did until it was stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Served {
    /// Connections that it accepted.
    pub connections: u64,
    /// Puts, deletes and calls for copies that it answered.
    pub changes: u64,
    /// Gets that it answered; one-sided ones it never sees.
    pub gets: u64,
}

/// One side of the memory server until somebody asks it to stop: changes that are in flight are answered,
/// others are not begun.
pub async fn serve<F: Fabric>(
    fabric: F,
    home: Home,
    options: StoreConfig,
    stop: &Stop,
) -> Result<Served, KvError> {
    match home {
        Home::Host => run_host(fabric, options, Some(stop)).await,
        Home::Soc => run_soc(fabric, options, Some(stop)).await,
    }
}

/// The role `host`: holds the records, and the index where the placement has it there. It runs until
/// its backend stops it or it fails; see [`serve`].
pub async fn host<F: Fabric>(fabric: F, options: StoreConfig) -> Result<(), KvError> {
    run_host(fabric, options, None).await.map(|_| ())
}

/// The role `soc`: the card's processor. Where the placement has the index there it builds it from the
/// host's records, as after a restart. It runs until its backend stops it or it fails; see [`serve`].
pub async fn soc<F: Fabric>(fabric: F, options: StoreConfig) -> Result<(), KvError> {
    run_soc(fabric, options, None).await.map(|_| ())
}

async fn run_host<F: Fabric>(
    fabric: F,
    options: StoreConfig,
    stop: Option<&Stop>,
) -> Result<Served, KvError> {
    options.check()?;
    let layout = options.layout;
    let memory = memory(&fabric);
    let records = fabric.register(&memory, layout.values_bytes(), Access::ALL)?;
    for key in 0..options.preload {
        let record = StoreRecord { key, version: 0, value: value_of(key, 0, layout.value_bytes) };
        records.write(layout.slot_offset(key), &record.to_bytes(&layout))?;
    }
    let owns = options.placement.index_home() == Home::Host;
    let index_region =
        if owns { Some(fabric.register(&memory, layout.index_bytes(), Access::ALL)?) } else { None };
    let index = match &index_region {
        Some(region) => Some(RefCell::new(Index::new(region.clone(), layout)?)),
        None => None,
    };
    let hello =
        hello(&layout, index_region.as_ref().map_or(nothing(), Region::remote), records.remote(), nothing());
    let node = Rc::new(Node {
        fabric,
        memory,
        values: Values::Near(records),
        index,
        far_index: None,
        cache: None,
        contests: RefCell::default(),
        locks: KeyLocks::default(),
        first_version: Cell::new(1),
        groups: RefCell::new((1..=HOT_GROUPS as u8).rev().collect()),
        hello,
        options,
        served: Cell::default(),
        changing: Cell::new(0),
        closing: Cell::new(false),
    });
    node.rebuild().await?;
    serve_connections(node, stop).await
}

async fn run_soc<F: Fabric>(fabric: F, options: StoreConfig, stop: Option<&Stop>) -> Result<Served, KvError> {
    options.check()?;
    let layout = options.layout;
    let memory = memory(&fabric);
    let engine = match &options.fetch {
        Fetch::Rdma => None,
        Fetch::Engine(name) => {
            let engines = fabric.dma_engines();
            if !engines.contains(name) {
                return Err(KvError::Unsupported(Unsupported {
                    backend: fabric.capabilities().backend,
                    feature: format!("a DMA engine `{name}` ({})", engines_there(&engines)),
                    next_step: "let the card fetch by RDMA".into(),
                }));
            }
            Some(name.clone())
        }
    };
    let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
    let slot_bytes = SCAN_BYTES.max(layout.record_bytes());
    let scratch = fabric.register(&memory, FAR_SLOTS * slot_bytes, Access::ALL)?;
    let greeting = queue_pair.receive(scratch.slice(0, HELLO_BYTES))?;
    fabric.connect(&queue_pair, Home::Host.role(), 0, SERVICE).await?;
    reached(greeting.await.status)?;
    let mut bytes = [0; HELLO_BYTES as usize];
    scratch.read(0, &mut bytes)?;
    let hosts = Greeting::from_bytes(&bytes)?;
    hosts.agrees(&options)?;
    let pool = Pool::new(FAR_SLOTS);
    let hasty = options.injects(StoreBug::HastySlots);
    let far = Rc::new(Far { fabric: fabric.clone(), queue_pair, engine, scratch, slot_bytes, pool, hasty });
    let owns = options.placement.index_home() == Home::Soc;
    let (mut index_region, mut cache) = (None, None);
    if owns {
        index_region = Some(fabric.register(&memory, layout.index_bytes(), Access::ALL)?);
        if layout.cache_slots > 0 {
            cache = Some(fabric.register(&memory, layout.cache_bytes(), Access::ALL)?);
        }
    }
    let index = match &index_region {
        Some(region) => Some(RefCell::new(Index::new(region.clone(), layout)?)),
        None => None,
    };
    let name = |region: &Option<F::Region>| region.as_ref().map_or(nothing(), Region::remote);
    let node = Rc::new(Node {
        fabric,
        memory,
        values: Values::Far(far.clone(), hosts.values),
        index,
        far_index: (!owns).then_some((far, hosts.index)),
        contests: RefCell::default(),
        locks: KeyLocks::default(),
        first_version: Cell::new(1),
        groups: RefCell::new((1..=HOT_GROUPS as u8).rev().collect()),
        hello: hello(&layout, name(&index_region), nothing(), name(&cache)),
        cache,
        options,
        served: Cell::default(),
        changing: Cell::new(0),
        closing: Cell::new(false),
    });
    node.rebuild().await?;
    serve_gets(&node)?;
    serve_connections(node, stop).await
}

/// What a server said first.
pub(super) struct Greeting {
    pub(super) layout: Layout,
    pub(super) index: RemoteRegion,
    pub(super) values: RemoteRegion,
    pub(super) cache: RemoteRegion,
}

impl Greeting {
    pub(super) fn from_bytes(bytes: &[u8; HELLO_BYTES as usize]) -> Result<Greeting, KvError> {
        let layout = Layout::from_bytes(bytes)?;
        let region = |part: usize| {
            // The three names lie within the fixed length.
            RemoteRegion::from_bytes(&bytes[64 + part * RemoteRegion::BYTES..]).unwrap_or(nothing())
        };
        Ok(Greeting { layout, index: region(0), values: region(1), cache: region(2) })
    }

    /// Refuses a store of another shape than `options`.
    pub(super) fn agrees(&self, options: &StoreConfig) -> Result<(), KvError> {
        let (server, client) = (&self.layout, &options.layout);
        let parts = [
            ("key size in bytes", u64::from(server.key_bytes), u64::from(client.key_bytes)),
            ("slot size in bytes", u64::from(server.value_bytes), u64::from(client.value_bytes)),
            ("number of buckets", server.root_buckets, client.root_buckets),
            ("number of chained buckets", server.overflow_buckets, client.overflow_buckets),
            ("number of slots", server.slots, client.slots),
            ("number of cache slots", server.cache_slots.into(), client.cache_slots.into()),
            ("number of copies", server.copies.into(), client.copies.into()),
        ];
        match parts.into_iter().find(|(_, server, client)| server != client) {
            Some((what, server, client)) => Err(KvError::Mismatch { what, server, client }),
            None => Ok(()),
        }
    }
}

/// Whether version `one` is later than `other`, wrapping.
fn is_later(one: u16, other: u16) -> bool {
    (one.wrapping_sub(other) as i16) > 0
}

impl<F: Fabric> Node<F> {
    fn layout(&self) -> &Layout {
        &self.options.layout
    }

    /// Builds the index, and a warm cache, from the records.
    async fn rebuild(&self) -> Result<(), KvError> {
        let Some(index) = &self.index else { return Ok(()) };
        let layout = *self.layout();
        let record_bytes = layout.record_bytes();
        let step = (SCAN_BYTES / record_bytes).max(1);
        let mut newest: BTreeMap<u64, (u32, u16)> = BTreeMap::new();
        let (mut free, mut losers) = (Vec::new(), Vec::new());
        let warm = self.warm_keys();
        let mut first = 0;
        let mut used_upto = 0;
        while first < layout.slots {
            let count = step.min(layout.slots - first);
            let bytes = self.values.read(layout.slot_offset(first), count * record_bytes).await?;
            for (number, bytes) in bytes.chunks_exact(record_bytes as usize).enumerate() {
                let slot = (first + number as u64) as u32;
                let Some(record) = StoreRecord::from_bytes(bytes) else {
                    free.push(slot);
                    continue;
                };
                used_upto = u64::from(slot) + 1;
                match newest.get(&record.key) {
                    Some((other, version)) if is_later(record.version, *version) => losers.push(*other),
                    Some(_) => {
                        losers.push(slot);
                        continue;
                    }
                    None => {}
                }
                newest.insert(record.key, (slot, record.version));
                if warm.contains(&record.key) {
                    self.warm(record.key, bytes)?;
                }
            }
            first += count;
        }
        {
            let mut index = index.borrow_mut();
            for (key, (slot, version)) in newest {
                self.first_version.set(self.first_version.get().max(version.wrapping_add(1)));
                index.insert(key, Pointer { slot, version, group: 0, cached: None })?;
            }
            self.find_cached(&index)?;
            free.retain(|slot| u64::from(*slot) < used_upto);
            free.extend(&losers);
            index.set_free(free, used_upto);
        }
        for slot in losers {
            self.wipe(slot).await?;
        }
        Ok(())
    }

    async fn wipe(&self, slot: u32) -> Result<(), KvError> {
        if self.options.injects(StoreBug::NoWipe) {
            return Ok(());
        }
        self.values.write(self.layout().slot_offset(slot.into()), &[0; RECORD_HEADER_BYTES as usize]).await
    }

    /// Those of the keys that are to be warm for which their sets have slots.
    fn warm_keys(&self) -> BTreeSet<u64> {
        let layout = self.layout();
        let mut taken: BTreeMap<u64, u32> = BTreeMap::new();
        let mut fits = |key: &u64| {
            let taken = taken.entry(layout.cache_set(*key)).or_default();
            *taken += 1;
            *taken <= layout.cache_ways()
        };
        let there = self.options.warm.iter().copied().filter(|key| *key < self.options.preload);
        there.filter(|key| self.cache.is_some() && fits(key)).collect()
    }

    /// Writes a record to the next slot of its set that was never taken, where one is left.
    fn warm(&self, key: u64, record: &[u8]) -> Result<(), KvError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let layout = self.layout();
        let set = layout.cache_set(key);
        let mut contests = self.contests.borrow_mut();
        let taken = &mut contests.entry(set).or_default().hits;
        if taken.len() < layout.cache_ways() as usize {
            cache.write(layout.cache_offset(set, taken.len() as u8), record)?;
            taken.push(0);
        }
        Ok(())
    }

    /// Tells the index which records the cache has.
    fn find_cached(&self, index: &Index<F::Region>) -> Result<(), KvError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let layout = self.layout();
        let mut bytes = vec![0; layout.record_bytes() as usize];
        for (&set, contest) in self.contests.borrow().iter() {
            for way in 0..contest.hits.len() as u8 {
                cache.read(layout.cache_offset(set, way), &mut bytes)?;
                if let Some(record) = StoreRecord::from_bytes(&bytes)
                    && let Some((at, pointer)) = index.find(record.key)?
                    && pointer.version == record.version
                {
                    index.set(at, Pointer { cached: Some(way), ..pointer })?;
                }
            }
        }
        Ok(())
    }

    /// The record in the cache that a pointer names, where it is still of this key and version.
    fn cached_record(&self, key: u64, pointer: Pointer) -> Result<Option<StoreRecord>, KvError> {
        let (Some(cache), Some(way)) = (&self.cache, pointer.cached) else { return Ok(None) };
        let layout = self.layout();
        let mut bytes = vec![0; layout.record_bytes() as usize];
        cache.read(layout.cache_offset(layout.cache_set(key), way), &mut bytes)?;
        let any = self.options.injects(StoreBug::StaleCache);
        Ok(StoreRecord::from_bytes(&bytes)
            .filter(|record| record.key == key && (any || record.version == pointer.version)))
    }

    /// Puts a record into a slot of its set of the cache, in place of what lies there.
    fn cache_record(&self, index: &Index<F::Region>, record: &StoreRecord, way: u8) -> Result<(), KvError> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let layout = self.layout();
        let offset = layout.cache_offset(layout.cache_set(record.key), way);
        let mut bytes = vec![0; layout.record_bytes() as usize];
        cache.read(offset, &mut bytes)?;
        if let Some(old) = StoreRecord::from_bytes(&bytes)
            && old.key != record.key
            && let Some((at, pointer)) = index.find(old.key)?
            && pointer.cached == Some(way)
        {
            index.set(at, Pointer { cached: None, ..pointer })?;
        }
        Ok(cache.write(offset, &record.to_bytes(layout))?)
    }

    fn find(&self, key: u64) -> Result<Option<Pointer>, KvError> {
        let Some(index) = &self.index else { return Ok(None) };
        Ok(index.borrow().find(key)?.map(|(_, pointer)| pointer))
    }

    /// Stores a value. The index's word changes when the record is whole, and the old record is wiped
    /// before the answer, so that no restart finds it again.
    async fn put(&self, key: u64, value: &[u8]) -> Result<ReplyStatus, KvError> {
        let Some(index) = &self.index else { return Ok(ReplyStatus::Failed) };
        let layout = *self.layout();
        if value.len() > layout.value_bytes as usize {
            return Ok(ReplyStatus::TooLarge);
        }
        let _guard = match self.options.injects(StoreBug::NoKeyLock) {
            true => None,
            false => Some(self.locks.lock(key).await),
        };
        let found = index.borrow().find(key)?;
        let version = match found {
            Some((_, old)) => old.version.wrapping_add(1),
            None => {
                let version = self.first_version.get();
                self.first_version.set(version.wrapping_add(1));
                version
            }
        };
        let spare = if found.is_some() { 0 } else { SPARE_SLOTS };
        let Some(slot) = index.borrow_mut().take_slot(spare) else { return Ok(ReplyStatus::Full) };
        let record = StoreRecord { key, version, value: value.to_vec() };
        let bytes = record.to_bytes(&layout);
        let wiped_early = self.options.injects(StoreBug::WipeBeforeWrite);
        if let (Some((_, old)), true) = (found, wiped_early) {
            self.wipe(old.slot).await?;
        }
        self.values.write(layout.slot_offset(slot.into()), &bytes).await?;
        let group = found.map_or(0, |(_, old)| old.group);
        if group > 0 {
            self.write_copies(group, &bytes).await?;
        }
        // The cached flag may have changed meanwhile, the slot and group cannot: the key is locked.
        let cached = index.borrow().find(key)?.and_then(|(_, old)| old.cached);
        let stale = self.options.injects(StoreBug::StaleCache);
        if let Some(way) = cached.filter(|_| !stale) {
            self.cache_record(&index.borrow(), &record, way)?;
        }
        let pointer = Pointer { slot, version, group, cached };
        match found {
            Some((at, old)) => {
                index.borrow().set(at, pointer)?;
                if !wiped_early {
                    self.wipe(old.slot).await?;
                }
                index.borrow_mut().free_slot(old.slot);
            }
            None => {
                let inserted = index.borrow_mut().insert(key, pointer);
                if let Err(error) = inserted {
                    self.wipe(slot).await?;
                    index.borrow_mut().free_slot(slot);
                    return match error {
                        KvError::Full { .. } => Ok(ReplyStatus::Full),
                        other => Err(other),
                    };
                }
            }
        }
        Ok(ReplyStatus::Done)
    }

    /// Removes a key. The record is wiped first: once a reader has missed the key, no restart may find
    /// it again.
    async fn delete(&self, key: u64) -> Result<ReplyStatus, KvError> {
        let Some(index) = &self.index else { return Ok(ReplyStatus::Failed) };
        let _guard = self.locks.lock(key).await;
        let Some((at, old)) = index.borrow().find(key)? else { return Ok(ReplyStatus::Absent) };
        self.wipe(old.slot).await?;
        // Who read the old word must not take the key's next record for the one it names.
        if !is_later(self.first_version.get(), old.version) {
            self.first_version.set(old.version.wrapping_add(1));
        }
        index.borrow().remove(at)?;
        index.borrow_mut().free_slot(old.slot);
        if old.group > 0 {
            self.groups.borrow_mut().push(old.group);
        }
        Ok(ReplyStatus::Done)
    }

    async fn write_copies(&self, group: u8, bytes: &[u8]) -> Result<(), KvError> {
        for copy in 0..self.layout().copies {
            let slot = self.layout().copy_slot(group, copy);
            self.values.write(self.layout().slot_offset(slot), bytes).await?;
        }
        Ok(())
    }

    /// Makes copies of a hot record, unless it has them.
    async fn replicate(&self, key: u64) -> Result<ReplyStatus, KvError> {
        let Some(index) = &self.index else { return Ok(ReplyStatus::Failed) };
        let _guard = self.locks.lock(key).await;
        let Some((at, old)) = index.borrow().find(key)? else { return Ok(ReplyStatus::Absent) };
        if old.group > 0 {
            return Ok(ReplyStatus::Done);
        }
        let group = if self.layout().copies == 0 { None } else { self.groups.borrow_mut().pop() };
        let Some(group) = group else { return Ok(ReplyStatus::Full) };
        let layout = self.layout();
        let bytes = self.values.read(layout.slot_offset(old.slot.into()), layout.record_bytes()).await?;
        self.write_copies(group, &bytes).await?;
        let cached = index.borrow().find(key)?.and_then(|(_, pointer)| pointer.cached);
        index.borrow().set(at, Pointer { group, cached, ..old })?;
        Ok(ReplyStatus::Done)
    }

    /// Where a record is, by an index that lies with the other role.
    async fn find_far(&self, key: u64) -> Result<Option<Pointer>, KvError> {
        let Some((far, region)) = &self.far_index else { return Ok(None) };
        let layout = self.layout();
        let mut number = layout.root(key);
        for _ in 0..=layout.overflow_buckets {
            let bytes = far.read(region.at(layout.bucket_offset(number)), BUCKET_BYTES).await?;
            self.fabric.compute(Work::Time(self.options.costs.card_search)).await;
            let bucket = bytes.first_chunk().map(Bucket::from_bytes);
            let Some(bucket) = bucket else { return Ok(None) };
            if let Some((_, pointer)) = bucket.find(key) {
                return Ok(Some(pointer));
            }
            if bucket.next == 0 {
                return Ok(None);
            }
            number = bucket.next;
        }
        Ok(None)
    }

    /// A record for a client, found by the card.
    async fn get_record(self: &Rc<Self>, key: u64) -> Result<Option<StoreRecord>, KvError> {
        let layout = *self.layout();
        let costs = self.options.costs;
        let near = self.index.is_some();
        self.fabric.compute(Work::Time(if near { costs.card_lookup } else { costs.card_hash })).await;
        for _ in 0..SERVER_ATTEMPTS {
            let pointer = if near { self.find(key)? } else { self.find_far(key).await? };
            let Some(pointer) = pointer else { return Ok(None) };
            let offset = layout.slot_offset(pointer.slot.into());
            let bytes = self.values.read(offset, layout.record_bytes()).await?;
            let record = StoreRecord::from_bytes(&bytes);
            if let Some(record) = record.filter(|r| r.key == key && r.version == pointer.version) {
                return Ok(Some(record));
            }
        }
        Err(KvError::Unanswered { key, attempts: SERVER_ATTEMPTS })
    }

    /// The answer to a get that looks into the cache.
    async fn get_cached(self: &Rc<Self>, key: u64) -> Result<Result<StoreRecord, Pointer>, ReplyStatus> {
        self.fabric.compute(Work::Time(self.options.costs.card_lookup)).await;
        let Ok(found) = self.find(key) else { return Err(ReplyStatus::Failed) };
        let Some(pointer) = found else { return Err(ReplyStatus::Absent) };
        if let Some(way) = pointer.cached
            && let Ok(Some(record)) = self.cached_record(key, pointer)
        {
            let mut contests = self.contests.borrow_mut();
            let contest = contests.entry(self.layout().cache_set(key)).or_default();
            if let Some(hits) = contest.hits.get_mut(usize::from(way)) {
                *hits = hits.saturating_add(1);
            }
            return Ok(Ok(record));
        }
        self.missed(key, pointer);
        Ok(Err(pointer))
    }

    /// Counts a miss; a key that misses often enough takes a slot of its set: one that was never taken, else that
    /// of the record which is hit least, where that is hit less.
    fn missed(self: &Rc<Self>, key: u64, pointer: Pointer) {
        if self.cache.is_none() {
            return;
        }
        let mut contests = self.contests.borrow_mut();
        let contest = contests.entry(self.layout().cache_set(key)).or_default();
        let taken = contest.hits.len();
        let (mut way, mut least) = (taken, 0);
        if taken >= self.layout().cache_ways() as usize
            && let Some((coldest, hits)) = contest.hits.iter_mut().enumerate().min_by_key(|(_, hits)| **hits)
        {
            *hits = hits.saturating_sub(1);
            (way, least) = (coldest, *hits);
        }
        // One candidate for the whole set would need more misses than all of its other keys together.
        let preferred = hash(key) % u64::from(self.layout().cache_ways());
        let (candidate, misses) = &mut contest.candidates[preferred as usize];
        if *candidate != key && *misses > 0 {
            *misses -= 1;
            return;
        }
        *candidate = key;
        *misses += 1;
        if *misses < self.options.admit_after.max(least) {
            return;
        }
        *misses = 0;
        match contest.hits.get_mut(way) {
            Some(hits) => *hits = 0,
            None => contest.hits.push(0),
        }
        let node = self.clone();
        self.fabric.spawn_task(Box::pin(async move {
            // A record that cannot be brought in now is brought in after its next misses.
            let _ = node.admit(key, pointer, way as u8).await;
        }));
    }

    async fn admit(&self, key: u64, pointer: Pointer, way: u8) -> Result<(), KvError> {
        let Some(index) = &self.index else { return Ok(()) };
        let layout = self.layout();
        let bytes = self.values.read(layout.slot_offset(pointer.slot.into()), layout.record_bytes()).await?;
        let Some(record) = StoreRecord::from_bytes(&bytes) else { return Ok(()) };
        let index = index.borrow();
        // The record may have changed while it was on its way.
        if let Some((at, current)) = index.find(key)?
            && (current.slot, current.version) == (pointer.slot, pointer.version)
            && (record.key, record.version) == (key, pointer.version)
        {
            let way = current.cached.unwrap_or(way);
            self.cache_record(&index, &record, way)?;
            index.set(at, Pointer { cached: Some(way), ..current })?;
        }
        Ok(())
    }

    fn count(&self, change: impl FnOnce(&mut Served)) {
        let mut served = self.served.get();
        change(&mut served);
        self.served.set(served);
    }

    /// Begins no more changes, and lets those in flight end and their answers leave.
    async fn close(&self) -> Served {
        self.closing.set(true);
        let limit = self.fabric.now() + CLOSE_WITHIN;
        while self.changing.get() > 0 && self.fabric.now() < limit {
            self.fabric.sleep(STOP_EVERY).await;
        }
        self.fabric.sleep(STOP_EVERY).await;
        self.served.get()
    }

    /// The whole answer to a request.
    async fn answer(self: &Rc<Self>, request: RequestHead, value: &[u8]) -> Vec<u8> {
        let head = |answer| answer_head(request.sequence, answer).to_vec();
        let with_record = |record: StoreRecord| {
            let mut bytes = head(ReplyStatus::Done);
            // The client knows its key, so the guard follows at once.
            bytes.extend_from_slice(&record.to_bytes(self.layout())[8..]);
            bytes
        };
        let changed = |result: Result<ReplyStatus, KvError>| head(result.unwrap_or(ReplyStatus::Failed));
        match request.opcode {
            RequestOpcode::GetRecord => match self.get_record(request.key).await {
                Ok(Some(record)) => with_record(record),
                Ok(None) => head(ReplyStatus::Absent),
                Err(_) => head(ReplyStatus::Failed),
            },
            RequestOpcode::GetCached => match self.get_cached(request.key).await {
                Ok(Ok(record)) => with_record(record),
                Ok(Err(pointer)) => {
                    let mut bytes = head(ReplyStatus::At);
                    bytes.extend_from_slice(&pointer.to_word().to_le_bytes());
                    bytes
                }
                Err(answer) => head(answer),
            },
            RequestOpcode::Put if self.options.injects(StoreBug::EarlyAcknowledgement) => {
                let (node, value) = (self.clone(), value.to_vec());
                self.fabric.spawn_task(Box::pin(async move {
                    let _ = node.put(request.key, &value).await;
                }));
                head(ReplyStatus::Done)
            }
            RequestOpcode::Put => changed(self.put(request.key, value).await),
            RequestOpcode::Delete => changed(self.delete(request.key).await),
            RequestOpcode::Replicate => changed(self.replicate(request.key).await),
        }
    }
}

/// Waits for a peer; false where the server is to stop instead.
async fn accept<F: Fabric>(
    fabric: &F,
    listener: &F::Listener,
    queue_pair: &F::QueuePair,
    stop: Option<&Stop>,
) -> Result<bool, KvError> {
    let mut accepted = pin!(listener.accept(queue_pair));
    let Some(stop) = stop else { return Ok(accepted.await.map(|_| true)?) };
    while !stop.is_asked() {
        if let Some(peer) = fabric.timeout(STOP_EVERY, accepted.as_mut()).await {
            return Ok(peer.map(|_| true)?);
        }
    }
    Ok(false)
}

/// Accepts connections, says hello, and runs the changes that they ask for.
async fn serve_connections<F: Fabric>(node: Rc<Node<F>>, stop: Option<&Stop>) -> Result<Served, KvError> {
    let listener = node.fabric.listen(SERVICE)?;
    let request_bytes = REQUEST_BYTES + u64::from(node.layout().value_bytes).next_multiple_of(8);
    loop {
        let queue_pair = node.fabric.create_queue_pair(QueuePairOptions::rc())?;
        // The hello and each answer have a place of their own: the peer may still read one of them.
        let region =
            node.fabric.register(&node.memory, request_bytes + HELLO_BYTES + 8, Access::LOCAL_WRITE)?;
        let first = queue_pair.receive(region.slice(0, request_bytes))?;
        if !accept(&node.fabric, &listener, &queue_pair, stop).await? {
            return Ok(node.close().await);
        }
        node.count(|served| served.connections += 1);
        region.write(request_bytes, &node.hello)?;
        drop(queue_pair.send(region.slice(request_bytes, HELLO_BYTES))?);
        let own = node.clone();
        node.fabric.spawn_task(Box::pin(async move {
            let mut received = first;
            loop {
                let message = received.await;
                if message.status != Status::Success {
                    return;
                }
                let mut bytes = vec![0; message.bytes as usize];
                if region.read(0, &mut bytes).is_err() {
                    return;
                }
                let Some(request) = RequestHead::from_bytes(&bytes) else { return };
                let value = bytes.get(16..16 + usize::from(request.length)).unwrap_or_default().to_vec();
                if own.closing.get() {
                    return;
                }
                own.changing.set(own.changing.get() + 1);
                let answer = own.answer(request, &value).await;
                own.changing.set(own.changing.get() - 1);
                own.count(|served| served.changes += 1);
                // The next request can only come after the answer, so its receive is in time.
                let next = queue_pair.receive(region.slice(0, request_bytes));
                let at = request_bytes + HELLO_BYTES;
                let sent =
                    region.write(at, &answer[..8]).is_ok() && queue_pair.send(region.slice(at, 8)).is_ok();
                let (Ok(next), true) = (next, sent) else { return };
                received = next;
            }
        }));
    }
}

/// Answers gets that come as datagrams.
fn serve_gets<F: Fabric>(node: &Rc<Node<F>>) -> Result<(), KvError> {
    let inbox = u64::from(node.options.inbox);
    let options = QueuePairOptions {
        send_depth: 4 * outbox::SLOTS as u32,
        receive_depth: node.options.inbox,
        ..QueuePairOptions::ud()
    };
    let queue_pair = node.fabric.create_queue_pair(options)?;
    let region = node.fabric.register(&node.memory, inbox * REQUEST_BYTES, Access::LOCAL_WRITE)?;
    let answers = Outbox::new(&node.fabric, &node.memory, queue_pair.clone(), node.layout().record_bytes())?;
    let answers = Rc::new(answers);
    node.fabric.publish(GET_SERVICE, &queue_pair)?;
    for number in 0..inbox {
        let (node, queue_pair, answers) = (node.clone(), queue_pair.clone(), answers.clone());
        let slot = region.slice(number * REQUEST_BYTES, REQUEST_BYTES);
        node.fabric.clone().spawn_task(Box::pin(async move {
            loop {
                let Ok(completion) = queue_pair.receive(slot.clone()) else { return };
                let message = completion.await;
                if message.status != Status::Success {
                    return;
                }
                let mut bytes = [0; REQUEST_BYTES as usize];
                if slot.region.read(slot.offset, &mut bytes).is_err() {
                    return;
                }
                let get = |request: &RequestHead| {
                    matches!(request.opcode, RequestOpcode::GetRecord | RequestOpcode::GetCached)
                };
                // Whatever is not a get came from no client of this store.
                let Some(request) = RequestHead::from_bytes(&bytes).filter(get) else { continue };
                let Some(source) = message.source else { continue };
                let answer = node.answer(request, &[]).await;
                node.count(|served| served.gets += 1);
                let to: Option<Address> = Some(source);
                if answers.send(&answer, to).await.is_err() {
                    return;
                }
            }
        }));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_fabric::local::{Local, LocalClock, LocalFabric};
    use offpath_fabric::{Backend, Role};

    const SLOTS: u64 = 32;

    /// A store of one cache slot for all keys, records without anything reserved, cold.
    fn options() -> StoreConfig {
        let mut options = StoreConfig::sized(16, 8).placed(crate::kv::Placement::SocCacheSend);
        (options.layout.cache_slots, options.layout.slots) = (1, SLOTS);
        options.admit_after = 3;
        options
    }

    fn record(key: u64, version: u16, value: u8) -> StoreRecord {
        StoreRecord { key, version, value: vec![value; 8] }
    }

    /// A server over these records, one a slot from slot 0 on.
    fn server(fabric: LocalFabric, options: StoreConfig, records: &[StoreRecord]) -> Rc<Node<LocalFabric>> {
        let layout = options.layout;
        let memory = memory(&fabric);
        let make = |bytes| fabric.register(&memory, bytes, Access::ALL).expect("there is room");
        let (values, index, cache) =
            (make(layout.values_bytes()), make(layout.index_bytes()), make(layout.cache_bytes()));
        for (slot, record) in records.iter().enumerate() {
            values.write(layout.slot_offset(slot as u64), &record.to_bytes(&layout)).expect("it fits");
        }
        let hello = hello(&layout, index.remote(), values.remote(), cache.remote());
        Rc::new(Node {
            memory,
            values: Values::Near(values),
            index: Some(RefCell::new(Index::new(index, layout).expect("it fits"))),
            far_index: None,
            cache: Some(cache),
            contests: RefCell::default(),
            locks: KeyLocks::default(),
            first_version: Cell::new(1),
            groups: RefCell::default(),
            hello,
            fabric,
            options,
            served: Cell::default(),
            changing: Cell::new(0),
            closing: Cell::new(false),
        })
    }

    fn run<Fut: Future<Output = ()> + 'static>(role: impl Fn(LocalFabric) -> Fut + 'static) {
        let run = Local::new(1).clock(LocalClock::Manual).run(vec![Role::new("soc", 0, role)]);
        let ended = run.expect("it runs").outcomes.remove(0).end.finished();
        assert_eq!(ended, Some(()), "the role ended");
    }

    #[test]
    fn later_is_told_across_the_wrap_and_never_of_equals() {
        for version in [0, 1, 0x7FFF, 0x8000, u16::MAX] {
            assert!(!is_later(version, version), "{version}");
            assert!(
                is_later(version.wrapping_add(1), version) && !is_later(version, version.wrapping_add(1))
            );
            assert!(is_later(version.wrapping_add(0x7FFF), version));
            assert!(!is_later(version.wrapping_sub(0x7FFF), version));
        }
    }

    #[test]
    fn a_restart_keeps_the_later_record_of_a_key_and_wipes_the_other() {
        run(|fabric| async move {
            let node = server(
                fabric,
                options(),
                &[
                    record(1, 4, 10),
                    record(2, u16::MAX, 20),
                    record(1, 5, 11),
                    // Later, for versions wrap.
                    record(2, 0, 21),
                    record(3, 9, 31),
                    record(3, 8, 30),
                ],
            );
            node.rebuild().await.expect("it is built");
            for (key, slot, version, value) in [(1, 2, 5, 11), (2, 3, 0, 21), (3, 4, 9, 31)] {
                let pointer = node.find(key).expect("it is read").expect("it is there");
                assert_eq!((pointer.slot, pointer.version), (slot, version), "key {key}");
                let found = node.get_record(key).await.expect("it is read").expect("it is there");
                assert_eq!(found.value, [value; 8], "key {key}");
            }
            let layout = *node.layout();
            for slot in 0..SLOTS {
                let bytes = node.values.read(layout.slot_offset(slot), layout.record_bytes()).await;
                let kept = StoreRecord::from_bytes(&bytes.expect("it is read")).is_some();
                assert_eq!(kept, [2, 3, 4].contains(&slot), "slot {slot}");
            }
            // All slots but those of the three records are free, each once.
            let mut index = node.index.as_ref().expect("it has one").borrow_mut();
            let mut free: Vec<u32> = std::iter::from_fn(|| index.take_slot(0)).collect();
            free.sort_unstable();
            assert_eq!(free, (0..SLOTS as u32).filter(|slot| ![2, 3, 4].contains(slot)).collect::<Vec<_>>());
            assert!(is_later(node.first_version.get(), 9), "a new key begins behind all that were");
        });
    }

    #[test]
    fn the_records_that_are_named_and_no_others_are_warm() {
        for (warm, preload, expected) in [
            (&[2, 0][..], 4, &[0, 2][..]),
            (&[3, 1, 0], 2, &[0, 1]),
            (&[], 4, &[]),
            (&[3, 2, 1, 0], 4, &[0, 1, 2, 3]),
        ] {
            run(move |fabric| async move {
                let mut options = StoreConfig { warm: warm.into(), preload, ..options() };
                // So many that no two of these keys meet.
                options.layout.cache_slots = 1000;
                let records: Vec<StoreRecord> = (0..4).map(|key| record(key, 0, key as u8)).collect();
                let node = server(fabric, options, &records);
                node.rebuild().await.expect("it is built");
                for key in 0..4 {
                    let pointer = node.find(key).expect("it is read").expect("it is there");
                    let is_warm = expected.contains(&key);
                    assert_eq!(pointer.cached.is_some(), is_warm, "key {key} of {warm:?} and {preload}");
                }
            });
        }
    }

    /// Where more are to be warm than a set has slots, it has those that come first, wherever they lie.
    #[test]
    fn the_first_that_are_named_are_warm_where_not_all_fit() {
        run(|fabric| async move {
            const RECORDS: u64 = 64;
            let mut options =
                StoreConfig { warm: (0..RECORDS).rev().collect(), preload: RECORDS, ..options() };
            // One set.
            options.layout = Layout { cache_slots: 16, ..StoreConfig::sized(RECORDS, 8).layout };
            let records: Vec<StoreRecord> = (0..RECORDS).map(|key| record(key, 0, key as u8)).collect();
            let node = server(fabric, options, &records);
            node.rebuild().await.expect("it is built");
            let cached =
                |key: &u64| node.find(*key).expect("it is read").expect("it is there").cached.is_some();
            assert_eq!((0..RECORDS).filter(cached).collect::<Vec<_>>(), (48..RECORDS).collect::<Vec<_>>());
        });
    }

    #[test]
    fn a_key_that_comes_back_has_a_version_that_it_never_had() {
        run(|fabric| async move {
            let node = server(fabric, options(), &[]);
            let mut versions = Vec::new();
            for round in 0..4 {
                for value in 0..=round {
                    assert_eq!(node.put(7, &[value; 8]).await.expect("it is put"), ReplyStatus::Done);
                    versions.push(node.find(7).expect("it is read").expect("it is there").version);
                }
                assert_eq!(node.delete(7).await.expect("it is removed"), ReplyStatus::Done);
            }
            // Who still holds an old word would take the next record for the one it names.
            assert!(versions.is_sorted_by(|before, after| is_later(*after, *before)), "{versions:?}");
        });
    }

    /// Gets `key` and gives whether the cache had it; what is to come into the cache does.
    async fn hits(node: &Rc<Node<LocalFabric>>, key: u64) -> bool {
        let answer = node.get_cached(key).await.unwrap_or_else(|answer| panic!("key {key}: {answer:?}"));
        node.fabric.sleep(Time::from_us(1)).await;
        match answer {
            Ok(record) => {
                assert_eq!(record, self::record(key, 1, key as u8));
                true
            }
            Err(pointer) => {
                assert_eq!(pointer.cached, None);
                false
            }
        }
    }

    async fn hits_of(node: &Rc<Node<LocalFabric>>, keys: &[u64]) -> Vec<bool> {
        let mut all = Vec::new();
        for &key in keys {
            all.push(hits(node, key).await);
        }
        all
    }

    #[test]
    fn a_key_is_cached_once_it_has_missed_often_enough() {
        run(|fabric| async move {
            let node = server(fabric, options(), &[record(1, 1, 1), record(2, 1, 2), record(3, 1, 3)]);
            node.rebuild().await.expect("it is built");
            // Three misses bring it in, not two.
            assert_eq!(hits_of(&node, &[1, 1, 1, 1]).await, [false, false, false, true]);
            assert_eq!(node.find(1).expect("it is read").expect("it is there").cached, Some(0));
            // It has been hit once; another key needs three misses, of which the first takes that hit.
            assert_eq!(hits_of(&node, &[2, 2, 2, 2, 1]).await, [false, false, false, true, false]);
            let displaced = node.find(1).expect("it is read").expect("it is there");
            assert_eq!(displaced.cached, None, "one slot, one record");
            // Key 1 missed once just now; a miss of key 3 makes up for it, so that key 3 begins anew.
            assert_eq!(hits_of(&node, &[3, 3, 3, 2]).await, [false, false, false, true]);
            assert_eq!(hits_of(&node, &[3, 3]).await, [false, true]);
        });
    }

    #[test]
    fn a_record_that_is_hit_often_stays_until_it_is_missed_as_often() {
        run(|fabric| async move {
            let node = server(fabric, options(), &[record(1, 1, 1), record(2, 1, 2)]);
            node.rebuild().await.expect("it is built");
            hits_of(&node, &[1, 1, 1]).await;
            assert_eq!(hits_of(&node, &[1; 10]).await, [true; 10]);
            // Each miss takes one of ten hits: five misses meet five that are left.
            assert_eq!(hits_of(&node, &[2; 6]).await, [false, false, false, false, false, true]);
        });
    }

    #[test]
    fn of_a_full_set_the_record_that_is_hit_least_makes_way() {
        run(|fabric| async move {
            let mut options = options();
            options.layout.cache_slots = 2;
            let node = server(fabric, options, &[record(1, 1, 1), record(2, 1, 2), record(3, 1, 3)]);
            node.rebuild().await.expect("it is built");
            assert_eq!(hits_of(&node, &[1, 1, 1, 2, 2, 2]).await, [false; 6]);
            assert_eq!(hits_of(&node, &[1, 1, 1, 1, 2]).await, [true; 5]);
            assert_eq!(hits_of(&node, &[3, 3, 3, 3]).await, [false, false, false, true]);
            let cached = |key| node.find(key).expect("it is read").expect("it is there").cached;
            assert_eq!([1, 2, 3].map(cached), [Some(0), None, Some(1)]);
        });
    }

    #[test]
    fn a_set_learns_several_keys_at_a_time() {
        run(|fabric| async move {
            let mut options = options();
            options.layout.cache_slots = 16;
            let records: Vec<StoreRecord> = (0..16).map(|key| record(key, 1, key as u8)).collect();
            let node = server(fabric, options, &records);
            node.rebuild().await.expect("it is built");
            let in_turn: Vec<u64> = (0..6).flat_map(|_| 0..16).collect();
            hits_of(&node, &in_turn).await;
            // Keys whose hashes prefer one slot hinder each other, and no others.
            let cached = (0..16)
                .filter(|key| node.find(*key).expect("it is read").expect("it is there").cached.is_some());
            assert!(cached.count() > 4);
        });
    }

    #[test]
    fn a_cache_as_large_as_the_store_has_nearly_every_record() {
        run(|fabric| async move {
            const RECORDS: u64 = 4000;
            let mut options = StoreConfig { warm: (0..RECORDS).collect(), preload: RECORDS, ..options() };
            options.layout = Layout { cache_slots: RECORDS as u32, ..StoreConfig::sized(RECORDS, 8).layout };
            let records: Vec<StoreRecord> = (0..RECORDS).map(|key| record(key, 0, key as u8)).collect();
            let node = server(fabric, options, &records);
            node.rebuild().await.expect("it is built");
            let cached =
                |key: &u64| node.find(*key).expect("it is read").expect("it is there").cached.is_some();
            // A set of 16 slots is wanted by 16 records on average: one in ten is left over (Poisson). With one
            // slot for each hash it would be more than one in three.
            let share = (0..RECORDS).filter(cached).count() as f64 / RECORDS as f64;
            assert!((0.88..0.92).contains(&share), "{share}");
        });
    }

    #[test]
    fn a_record_that_changed_on_its_way_into_the_cache_stays_out() {
        run(|fabric| async move {
            let node = server(fabric, options(), &[record(1, 1, 1)]);
            node.rebuild().await.expect("it is built");
            let old = node.find(1).expect("it is read").expect("it is there");
            node.put(1, &[9; 8]).await.expect("it is put");
            node.admit(1, old, 0).await.expect("it is looked at");
            let now = node.find(1).expect("it is read").expect("it is there");
            assert!(now.cached.is_none() && now.version != old.version);
            node.admit(1, now, 0).await.expect("it is brought in");
            let now = node.find(1).expect("it is read").expect("it is there");
            let cached = node.cached_record(1, now).expect("it is read").expect("it is there");
            assert_eq!(cached.value, [9; 8]);
        });
    }
}
