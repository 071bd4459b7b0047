//! Who keeps or carries the log for the primary: backups and the card.

use super::digest::{BATCH, Confirmed, DigestedStore, digest_log, keep_numbers, kept_numbers};
use super::feed::{
    Chunk, DIGESTED, Downstream, Feed, HELLO_BYTES, Hello, Lineage, NOTICE_BYTES, OPEN_BYTES, Open, Opener,
    SERVICE, Taken, no_region, read_notice,
};
use super::log::Log;
use super::primary::LINEAGE;
use super::{Digestion, LogAlternative, LogBug, LogConfig, LogError, at_rate};
use crate::pool::{Change, Together, Turn};
use offpath_fabric::{
    Access, Fabric, Listener, LocalBoxFuture, MemoryAt, QueuePair, QueuePairOptions, Region, RemoteRegion,
    Status, Work, WorkRequest,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::{Rc, Weak};

/// Entries by which the card may be ahead of its files before it slows the host down.
const AHEAD: u64 = 4 * BATCH as u64;
/// The pause before something that failed is tried again.
const PAUSE: Time = Time::from_us(100);

fn memory<F: Fabric>(fabric: &F) -> String {
    fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default()
}

/// A backup.
struct Replica<F: Fabric> {
    fabric: F,
    options: LogConfig,
    log: Log<F>,
    /// The primary's incarnations that this log follows; none until it tells of one.
    lineage: RefCell<Lineage>,
    arrived: RefCell<BTreeMap<u64, Vec<u8>>>,
    change: Change,
    turn: Turn,
    /// Entries that are on their way to the next backup.
    forwarding: RefCell<BTreeSet<u64>>,
    /// Entries that the rest of the chain has.
    confirmed: RefCell<Confirmed>,
    next: Option<Rc<Downstream<F>>>,
    store: Option<DigestedStore<F>>,
    /// What this backup cannot go on with.
    failed: RefCell<Option<LogError>>,
    tasks: Together,
}

/// A backup of the chain: keeps the log in its files and passes it on. It runs until it is stopped or
/// a file fails. Refused where its log is damaged or has another writer.
pub async fn backup<F: Fabric>(fabric: F, options: LogConfig) -> Result<(), LogError> {
    options.check()?;
    let own = fabric.role();
    let position = options.chain.iter().position(|name| *name == own);
    let after = position.and_then(|position| options.chain.get(position + 1)).cloned();
    let log = Log::open(&fabric, &options).await?;
    let digests = options.digestion != Digestion::Off;
    let store = if digests { Some(DigestedStore::open(&fabric, &options).await?) } else { None };
    let replica = Rc::new(Replica {
        log,
        lineage: RefCell::new(Lineage::from_numbers(&kept_numbers(&fabric, LINEAGE).await?)),
        arrived: RefCell::default(),
        change: Change::default(),
        turn: Turn::default(),
        forwarding: RefCell::default(),
        confirmed: RefCell::new(Confirmed::upto(store.as_ref().map_or(0, DigestedStore::digested))),
        store,
        failed: RefCell::default(),
        tasks: Together::default(),
        next: after.map(|peer| Downstream::new(&fabric, &options, peer)),
        fabric: fabric.clone(),
        options,
    });
    if replica.next.is_some() {
        let own = replica.clone();
        replica.spawn(async move {
            loop {
                // The next backup may have restarted, and waits to be told where it is cut.
                if own.epoch() > 0
                    && let Err(error) = own.next_feed().await
                {
                    return own.note(Err(error));
                }
                own.fabric.sleep(own.options.patience).await;
            }
        });
    }
    if replica.store.is_some() {
        let own = replica.clone();
        replica.spawn(async move {
            let Some(store) = &own.store else { return };
            let upto = || if own.next.is_some() { own.confirmed.borrow().last() } else { own.log.last() };
            let ended = digest_log(&own.log, store, &own.options, &own.change, upto, |_| ()).await;
            own.note(ended);
        });
    }
    let own = replica.clone();
    replica.spawn(async move {
        let ended = own.accept().await;
        own.note(ended);
    });
    let failed = replica.change.until(|| replica.failed.borrow().clone()).await;
    // Nothing of it may keep the log from whoever opens it next.
    replica.tasks.end();
    Err(failed)
}

/// Whether an error is of the connection alone, which the peer makes anew.
fn passes(error: &LogError) -> bool {
    !matches!(error, LogError::File(_) | LogError::Corrupt { .. } | LogError::Truncated { .. })
}

impl<F: Fabric> Replica<F> {
    /// Starts a task that ends with this backup.
    fn spawn(self: &Rc<Self>, task: impl Future<Output = ()> + 'static) {
        let own = self.clone();
        self.fabric.spawn_task(Box::pin(async move { own.tasks.run(task).await }));
    }

    fn note(&self, ended: Result<(), LogError>) {
        if let Err(error) = ended {
            *self.failed.borrow_mut() = Some(error);
            self.change.tell();
        }
    }

    async fn accept(self: &Rc<Self>) -> Result<(), LogError> {
        let fabric = &self.fabric;
        let listener = fabric.listen(SERVICE)?;
        let slots = u64::from(self.options.slots);
        let slot_bytes = self.options.slot_bytes();
        loop {
            let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
            let length = slots * slot_bytes + OPEN_BYTES + HELLO_BYTES;
            let region = fabric.register(&memory(fabric), length, Access::ALL)?;
            let opening = queue_pair.receive(region.slice(slots * slot_bytes, OPEN_BYTES))?;
            let mut receives = VecDeque::new();
            for _ in 0..slots {
                receives.push_back(queue_pair.receive(region.slice(0, 0))?);
            }
            listener.accept(&queue_pair).await?;
            let own = self.clone();
            self.spawn(async move {
                // A connection that breaks ends here; its peer opens another.
                match own.clone().serve(queue_pair, region, opening, receives, slot_bytes).await {
                    Err(error) if !passes(&error) => own.note(Err(error)),
                    _ => {}
                }
            });
        }
    }
}

impl<F: Fabric> Replica<F> {
    async fn serve(
        self: Rc<Self>,
        queue_pair: F::QueuePair,
        region: F::Region,
        opening: F::CompletionFuture,
        mut receives: VecDeque<F::CompletionFuture>,
        slot_bytes: u64,
    ) -> Result<(), LogError> {
        let slots = u64::from(self.options.slots);
        let (open_at, hello_at) = (slots * slot_bytes, slots * slot_bytes + OPEN_BYTES);
        if opening.await.status != Status::Success {
            return Ok(());
        }
        let mut bytes = [0; OPEN_BYTES as usize];
        region.read(open_at, &mut bytes)?;
        let Some(open) = Open::from_bytes(&bytes) else {
            queue_pair.close();
            return Ok(());
        };
        // Who is behind the incarnation that this log follows learns it from the answer.
        let serves = open.opener != Opener::Before || self.follow(open).await?;
        let hello = Hello { ring: region.remote(), last: self.log.last(), serves };
        region.write(hello_at, &hello.to_bytes())?;
        drop(queue_pair.send(region.slice(hello_at, HELLO_BYTES))?);
        while let Some(receive) = receives.pop_front() {
            let heard = receive.await;
            if heard.status != Status::Success {
                return Ok(());
            }
            receives.push_back(queue_pair.receive(region.slice(0, 0))?);
            let slot = heard.immediate.unwrap_or(0);
            let mut bytes = vec![0; (heard.bytes).min(slot_bytes) as usize];
            if u64::from(slot) < slots {
                region.read(u64::from(slot) * slot_bytes, &mut bytes)?;
            }
            let Some(chunk) = Chunk::from_bytes(&bytes) else {
                // The sender owns the slot until it is acknowledged, so this is not a chunk of this log.
                queue_pair.close();
                return Ok(());
            };
            let (own, queue_pair, region) = (self.clone(), queue_pair.clone(), region.clone());
            self.spawn(async move {
                let early = own.options.injects(LogBug::EarlyAcknowledgement);
                let acknowledge = |word| {
                    let request = WorkRequest::send(region.slice(0, 0)).immediate(word);
                    // Where the connection broke, the sender brings the chunk again.
                    let _ = queue_pair.post(request);
                };
                if early {
                    acknowledge(slot);
                }
                match own.take(chunk).await {
                    Ok(Some(_)) if early => {}
                    Ok(Some(taken)) => acknowledge(taken.word(slot)),
                    Ok(None) => queue_pair.close(),
                    Err(error) => {
                        queue_pair.close();
                        if !passes(&error) {
                            own.note(Err(error));
                        }
                    }
                }
            });
        }
        Ok(())
    }

    /// The incarnation that this log follows; 0 for none.
    fn epoch(&self) -> u64 {
        self.lineage.borrow().epoch()
    }

    /// Follows the log of who comes before: incarnations that are new here cut what the primary lost.
    /// False for one that is over.
    async fn follow(&self, open: Open) -> Result<bool, LogError> {
        let _turn = self.turn.take().await;
        let (known, told) = (self.epoch(), open.lineage.epoch());
        if told <= known {
            return Ok(told == known);
        }
        if !self.options.injects(LogBug::NoCut) {
            self.log.truncate_after(open.lineage.keeps(known).min(self.log.last())).await?;
        }
        // Kept after the cut, so that a crash in between has it cut again; and kept at all, so that a
        // restart does not cut what came since.
        keep_numbers(&self.fabric, LINEAGE, &open.lineage.to_numbers(), &self.options.costs).await?;
        *self.lineage.borrow_mut() = open.lineage;
        // At once with the incarnation: what came or was confirmed during the cut is still of the last one.
        self.arrived.borrow_mut().clear();
        self.forwarding.borrow_mut().clear();
        let digested = self.store.as_ref().map_or(0, DigestedStore::digested);
        *self.confirmed.borrow_mut() = Confirmed::upto(digested);
        self.change.tell();
        if let Some(next) = &self.next {
            // It must hear of the incarnation before anything of it.
            next.reset();
        }
        Ok(true)
    }

    /// Keeps a chunk and passes it on; nothing where the primary has yet to tell its incarnation.
    async fn take(self: &Rc<Self>, chunk: Chunk) -> Result<Option<Taken>, LogError> {
        let (epoch, sequence) = (chunk.epoch, chunk.sequence);
        let over = || (self.epoch() > epoch).then_some(Taken::Over);
        if epoch > self.epoch() {
            return Ok(None);
        }
        if let Some(over) = over() {
            return Ok(Some(over));
        }
        let repeated = sequence <= self.log.last();
        if !repeated || self.options.injects(LogBug::NoDuplicateCheck) {
            self.arrived.borrow_mut().insert(sequence, chunk.payload.clone());
        }
        self.append_arrived(epoch).await?;
        if repeated {
            self.forward(&chunk);
        }
        let kept = || match &self.next {
            Some(_) if self.options.injects(LogBug::AcknowledgedBeforeForwarded) => {
                self.log.last() >= sequence
            }
            Some(_) => self.confirmed.borrow().has(sequence),
            None => self.log.last() >= sequence,
        };
        let there = self.change.until(|| over().or_else(|| kept().then_some(Taken::Kept)));
        // A chunk that waits for an earlier one must not keep the slot that this one needs.
        let there = self.fabric.timeout(self.options.patience, there).await;
        Ok(Some(there.unwrap_or(Taken::Later)))
    }

    /// Passes an entry on in a task of its own, whoever still waits for it: what is appended here must
    /// reach the rest of the chain.
    fn forward(self: &Rc<Self>, chunk: &Chunk) {
        let (sequence, epoch) = (chunk.sequence, chunk.epoch);
        if self.next.is_none()
            || self.confirmed.borrow().has(sequence)
            || !self.forwarding.borrow_mut().insert(sequence)
        {
            return;
        }
        let (own, chunk) = (self.clone(), chunk.clone());
        self.spawn(async move {
            while own.epoch() == epoch {
                let Ok(feed) = own.next_feed().await else { return };
                // It may have been cut while the connection was made.
                if own.epoch() == epoch && feed.send(&chunk, false).await.is_ok() {
                    break;
                }
            }
            if own.epoch() == epoch {
                own.forwarding.borrow_mut().remove(&sequence);
                own.confirm(sequence);
            }
        });
    }

    fn confirm(&self, sequence: u64) {
        self.confirmed.borrow_mut().add(sequence);
        self.change.tell();
    }

    /// Appends what is next, in order.
    async fn append_arrived(self: &Rc<Self>, epoch: u64) -> Result<(), LogError> {
        let _turn = self.turn.take().await;
        let anyhow = self.options.injects(LogBug::NoOrder) || self.options.injects(LogBug::NoDuplicateCheck);
        while self.epoch() == epoch {
            let next = self.log.last() + 1;
            let first = self.arrived.borrow().keys().next().copied();
            let at = if anyhow { first.unwrap_or(next) } else { next };
            let payload = self.arrived.borrow_mut().remove(&at);
            let Some(payload) = payload else { break };
            let cost = at_rate(payload.len() as u64, self.options.costs.file_bytes_per_second);
            if cost > Time::ZERO {
                self.fabric.compute(Work::Time(cost)).await;
            }
            let sequence = if anyhow { next } else { at };
            self.log.append_as(sequence, &payload).await?;
            self.forward(&Chunk { sequence, epoch, payload });
            self.change.tell();
        }
        // What came twice is of no use any more.
        let last = self.log.last();
        self.arrived.borrow_mut().retain(|sequence, _| *sequence > last);
        Ok(())
    }

    async fn next_feed(self: &Rc<Self>) -> Result<Rc<Feed<F>>, LogError> {
        let Some(next) = &self.next else {
            return Err(LogError::Protocol { peer: self.fabric.role().to_string() });
        };
        let open =
            || Open { opener: Opener::Before, staging: no_region(), lineage: self.lineage.borrow().clone() };
        let fresh = |feed: &Rc<Feed<F>>, hello: Hello| {
            let first = self.log.first();
            if hello.last + 1 < first {
                return Err(LogError::Truncated { sequence: hello.last + 1, first });
            }
            if self.options.injects(LogBug::NoResend) {
                return Ok(());
            }
            // Whatever it lost, or never had, comes from this log; and what has to be known to be there
            // is asked for again.
            let sure = self.store.as_ref().map_or(u64::MAX, |_| self.confirmed.borrow().last());
            let missing = hello.last.min(sure) + 1..=self.log.last();
            let (own, feed, epoch) = (self.clone(), feed.clone(), self.epoch());
            self.spawn(async move {
                for sequence in missing {
                    let payload = match own.log.read(sequence).await {
                        Ok(payload) => payload,
                        // It was digested meanwhile.
                        Err(LogError::Truncated { .. }) => continue,
                        Err(_) => return,
                    };
                    if own.epoch() != epoch {
                        return;
                    }
                    if feed.send(&Chunk { sequence, epoch, payload }, false).await.is_err() {
                        return;
                    }
                    if own.epoch() == epoch {
                        own.confirm(sequence);
                    }
                }
            });
            Ok(())
        };
        next.ensure(open, fresh).await
    }
}

/// The card: pulls chunks from the host, compresses them, brings them to the first backup, and digests
/// them where it is to. It runs until it is stopped or a file fails. Where the alternative needs a DMA engine that the card does not
/// have, the primary is refused.
pub async fn card<F: Fabric>(fabric: F, options: LogConfig) -> Result<(), LogError> {
    options.check()?;
    let by_engine =
        matches!(options.alternative, LogAlternative::CardPullsByEngine | LogAlternative::EngineAndHost);
    let serves = Rc::new(Cell::new(!by_engine || fabric.dma_engines().contains(&options.engine)));
    let Some(first) = options.chain.first().cloned() else {
        return Err(LogError::Shape { what: "number of backups", value: 0, bound: "at least 1" });
    };
    let next = Downstream::new(&fabric, &options, first);
    let digests = options.digestion != Digestion::Off && options.alternative.digests_on_card();
    let digester = match digests {
        true => Some(Rc::new(Digester {
            store: DigestedStore::open(&fabric, &options).await?,
            arrived: RefCell::default(),
            change: Change::default(),
            host: RefCell::new(Weak::new()),
        })),
        false => None,
    };
    let accepting = accept_hosts(fabric.clone(), options.clone(), serves, next, digester.clone());
    let Some(digester) = digester else { return accepting.await };
    let failed = Rc::new(RefCell::new(None));
    for task in [Box::pin(accepting) as LocalBoxFuture<_>, Box::pin(digester.clone().digest())] {
        let (failed, digester) = (failed.clone(), digester.clone());
        fabric.spawn_task(Box::pin(async move {
            let ended: Result<(), LogError> = task.await;
            *failed.borrow_mut() = Some(ended);
            digester.change.tell();
        }));
    }
    digester.change.until(|| failed.borrow_mut().take()).await
}

async fn accept_hosts<F: Fabric>(
    fabric: F,
    options: LogConfig,
    serves: Rc<Cell<bool>>,
    next: Rc<Downstream<F>>,
    digester: Option<Rc<Digester<F>>>,
) -> Result<(), LogError> {
    let by_engine =
        matches!(options.alternative, LogAlternative::CardPullsByEngine | LogAlternative::EngineAndHost);
    let listener = fabric.listen(SERVICE)?;
    let slots = u64::from(options.slots);
    let slot_bytes = options.slot_bytes();
    loop {
        let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
        let notices_at = slots * slot_bytes;
        let open_at = notices_at + slots * NOTICE_BYTES;
        let region = fabric.register(&memory(&fabric), open_at + OPEN_BYTES + HELLO_BYTES, Access::ALL)?;
        let opening = queue_pair.receive(region.slice(open_at, OPEN_BYTES))?;
        let mut receives = VecDeque::new();
        for slot in 0..slots {
            let slice = region.slice(notices_at + slot * NOTICE_BYTES, NOTICE_BYTES);
            receives.push_back((queue_pair.receive(slice.clone())?, slice));
        }
        listener.accept(&queue_pair).await?;
        let host = Rc::new(Host {
            fabric: fabric.clone(),
            options: options.clone(),
            queue_pair,
            region,
            engine: by_engine.then(|| options.engine.clone()),
            next: next.clone(),
            digester: digester.clone(),
            alive: Cell::new(true),
            slot_bytes,
        });
        let serves = serves.clone();
        fabric.spawn_task(Box::pin(async move {
            let _ = host.serve(opening, receives, open_at, &serves).await;
            host.alive.set(false);
            host.queue_pair.close();
        }));
    }
}

/// The card's connection to the host.
struct Host<F: Fabric> {
    fabric: F,
    options: LogConfig,
    queue_pair: F::QueuePair,
    region: F::Region,
    engine: Option<String>,
    next: Rc<Downstream<F>>,
    digester: Option<Rc<Digester<F>>>,
    alive: Cell<bool>,
    slot_bytes: u64,
}

type Notices<F> = VecDeque<(<F as Fabric>::CompletionFuture, offpath_fabric::Slice<<F as Fabric>::Region>)>;

impl<F: Fabric> Host<F> {
    async fn serve(
        self: &Rc<Self>,
        opening: F::CompletionFuture,
        mut receives: Notices<F>,
        open_at: u64,
        serves: &Rc<Cell<bool>>,
    ) -> Result<(), LogError> {
        if opening.await.status != Status::Success {
            return Ok(());
        }
        let mut bytes = [0; OPEN_BYTES as usize];
        self.region.read(open_at, &mut bytes)?;
        let Some(Open { staging, .. }) = Open::from_bytes(&bytes) else { return Ok(()) };
        let last = self.digester.as_ref().map_or(0, |digester| {
            *digester.host.borrow_mut() = Rc::downgrade(self);
            digester.store.digested()
        });
        let hello = Hello { ring: no_region(), last, serves: serves.get() };
        let hello_at = open_at + OPEN_BYTES;
        self.region.write(hello_at, &hello.to_bytes())?;
        drop(self.queue_pair.send(self.region.slice(hello_at, HELLO_BYTES))?);
        while let Some((receive, slice)) = receives.pop_front() {
            if receive.await.status != Status::Success {
                return Ok(());
            }
            let mut bytes = [0; NOTICE_BYTES as usize];
            self.region.read(slice.offset, &mut bytes)?;
            receives.push_back((self.queue_pair.receive(slice.clone())?, slice));
            let Some((sequence, epoch, slot, length)) = read_notice(&bytes) else { return Ok(()) };
            if u64::from(slot) >= u64::from(self.options.slots)
                || u64::from(length) > self.options.entry_bytes()
            {
                return Ok(());
            }
            let (own, serves) = (self.clone(), serves.clone());
            self.fabric.spawn_task(Box::pin(async move {
                if let Err(error) = own.carry(staging, sequence, epoch, slot, length).await {
                    // What the backend refuses now it refuses ever: the host is told so when it connects again.
                    serves.set(serves.get() && !matches!(error, LogError::Unsupported(_)));
                    own.queue_pair.close();
                }
            }));
        }
        Ok(())
    }

    /// Pulls a chunk, brings it to the chain and tells the host.
    async fn carry(
        &self,
        staging: RemoteRegion,
        sequence: u64,
        epoch: u64,
        slot: u32,
        length: u32,
    ) -> Result<(), LogError> {
        let at = u64::from(slot) * self.slot_bytes;
        let length = u64::from(length);
        let from = staging.at(at);
        let completion = match &self.engine {
            Some(engine) => {
                let to = MemoryAt::Local { region: self.region.clone(), offset: at };
                self.fabric.dma_copy(engine, MemoryAt::Remote(from), to, length)?
            }
            None => self.queue_pair.read(self.region.slice(at, length), from)?,
        };
        let status = completion.await.status;
        if status != Status::Success {
            return Err(LogError::Disconnected { peer: "host".into(), status });
        }
        let mut payload = vec![0; length as usize];
        self.region.read(at, &mut payload)?;
        let chunk = Chunk { sequence, epoch, payload };
        let open = || Open { opener: Opener::Card, staging: no_region(), lineage: Lineage::default() };
        while self.alive.get() {
            let feed = self.next.ensure(open, |_, _| Ok(())).await?;
            match feed.offer(&chunk, self.options.compress).await {
                Ok(taken) => {
                    if taken == Taken::Kept
                        && let Some(digester) = &self.digester
                    {
                        digester.add(&self.fabric, chunk, self.options.patience).await;
                    }
                    // Where an earlier chunk is missing the slot goes back, since that one may need it.
                    return self.tell(taken.word(slot));
                }
                Err(_) => self.fabric.sleep(PAUSE).await,
            }
        }
        Ok(())
    }

    fn tell(&self, word: u32) -> Result<(), LogError> {
        let request = WorkRequest::send(self.region.slice(0, 0)).immediate(word);
        drop(self.queue_pair.post(request)?);
        Ok(())
    }
}

/// Applies what the card carried to files.
struct Digester<F: Fabric> {
    store: DigestedStore<F>,
    /// Entries that the chain has and the files do not.
    arrived: RefCell<BTreeMap<u64, Vec<u8>>>,
    change: Change,
    /// The latest connection to the host.
    host: RefCell<Weak<Host<F>>>,
}

impl<F: Fabric> Digester<F> {
    /// Takes an entry that the chain has. Where the files are behind it waits a little, so that the host
    /// slows down.
    async fn add(&self, fabric: &F, chunk: Chunk, patience: Time) {
        let sequence = chunk.sequence;
        if sequence <= self.store.digested() {
            return;
        }
        self.arrived.borrow_mut().insert(sequence, chunk.payload);
        self.change.tell();
        let near = || (sequence <= self.store.digested() + AHEAD).then_some(());
        // Not for ever: an earlier entry may need the slot that this one keeps.
        fabric.timeout(patience, self.change.until(near)).await;
    }

    async fn digest(self: Rc<Self>) -> Result<(), LogError> {
        loop {
            let next = self.store.digested() + 1;
            let batch = self.change.until(|| {
                let arrived = self.arrived.borrow();
                let follow = arrived.range(next..).zip(next..).take_while(|((have, _), want)| *have == want);
                let batch: Vec<Vec<u8>> = follow.take(BATCH).map(|((_, entry), _)| entry.clone()).collect();
                (!batch.is_empty()).then_some(batch)
            });
            self.store.digest(&batch.await).await?;
            let digested = self.store.digested();
            self.arrived.borrow_mut().retain(|sequence, _| *sequence > digested);
            self.change.tell();
            let host = self.host.borrow().upgrade();
            if let Some(host) = host {
                // Where the connection broke, the next one tells.
                let _ = host.tell((digested % u64::from(DIGESTED)) as u32 | DIGESTED);
            }
        }
    }
}
