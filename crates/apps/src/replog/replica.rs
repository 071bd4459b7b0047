//! Who keeps or carries the log for the primary: backups and the card.

use super::feed::{
    CHUNK_HEADER, Chunk, Downstream, HELLO_BYTES, Hello, LATER, NOTICE_BYTES, OPEN_BYTES, Open, Opener,
    SERVICE, no_region, read_notice,
};
use super::log::Log;
use super::{Alternative, LogError, Options, Planted, at_rate};
use crate::pool::{Change, KeyLocks};
use offpath_fabric::{
    Access, Fabric, Listener, MemoryAt, QueuePair, QueuePairOptions, Region, Status, Work, WorkRequest,
};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// How many confirmed entries are remembered; one that comes again later is forwarded again, and known
/// there.
const REMEMBERED: usize = 1024;
/// The pause before something that failed is tried again.
const PAUSE: Time = Time::from_us(100);

fn memory<F: Fabric>(fabric: &F) -> String {
    fabric.memories().into_iter().next().map(|memory| memory.name).unwrap_or_default()
}

/// What became of a chunk.
enum Taken {
    /// This log and the rest of the chain have it, or nobody waits for it any more.
    Kept,
    /// One before it is missing.
    Later,
    /// The primary has yet to tell its incarnation.
    Unknown,
}

/// A backup.
struct Replica<F: Fabric> {
    fabric: F,
    options: Options,
    log: Log<F>,
    /// The primary's incarnation; 0 until it tells.
    epoch: Cell<u64>,
    arrived: RefCell<BTreeMap<u64, Vec<u8>>>,
    change: Change,
    turn: KeyLocks,
    /// Entries that are on their way to the next backup.
    forwarding: RefCell<BTreeSet<u64>>,
    /// Entries that the rest of the chain has, the latest of them.
    confirmed: RefCell<BTreeSet<u64>>,
    next: Option<Rc<Downstream<F>>>,
}

/// A backup of the chain: keeps the log in its files and passes it on. It runs until it is stopped or
/// fails. Refused where its log is damaged or has another writer.
pub async fn backup<F: Fabric>(fabric: F, options: Options) -> Result<(), LogError> {
    options.check()?;
    let own = fabric.role();
    let position = options.chain.iter().position(|name| *name == own);
    let after = position.and_then(|position| options.chain.get(position + 1)).cloned();
    let log = Log::open(&fabric, &options).await?;
    let replica = Rc::new(Replica {
        log,
        epoch: Cell::new(0),
        arrived: RefCell::default(),
        change: Change::default(),
        turn: KeyLocks::default(),
        forwarding: RefCell::default(),
        confirmed: RefCell::default(),
        next: after.map(|peer| Downstream::new(&fabric, &options, peer)),
        fabric: fabric.clone(),
        options,
    });
    if replica.next.is_some() {
        let own = replica.clone();
        fabric.spawn_task(Box::pin(async move {
            loop {
                // The next backup may have restarted, and waits to be told where it is cut.
                if own.epoch.get() > 0 {
                    let _ = own.next_feed().await;
                }
                own.fabric.sleep(own.options.patience).await;
            }
        }));
    }
    let listener = fabric.listen(SERVICE)?;
    let slots = u64::from(replica.options.slots);
    let slot_bytes = CHUNK_HEADER + u64::from(replica.options.chunk_bytes).next_multiple_of(8);
    loop {
        let queue_pair = fabric.create_queue_pair(QueuePairOptions::rc())?;
        let length = slots * slot_bytes + OPEN_BYTES + HELLO_BYTES;
        let region = fabric.register(&memory(&fabric), length, Access::ALL)?;
        let opening = queue_pair.receive(region.slice(slots * slot_bytes, OPEN_BYTES))?;
        let mut receives = VecDeque::new();
        for _ in 0..slots {
            receives.push_back(queue_pair.receive(region.slice(0, 0))?);
        }
        listener.accept(&queue_pair).await?;
        let own = replica.clone();
        fabric.spawn_task(Box::pin(async move {
            // A connection that breaks ends here; its peer opens another.
            let _ = own.serve(queue_pair, region, opening, receives, slot_bytes).await;
        }));
    }
}

impl<F: Fabric> Replica<F> {
    async fn serve(
        self: Rc<Self>,
        queue_pair: F::QueuePair,
        region: F::Region,
        opening: F::Ticket,
        mut receives: VecDeque<F::Ticket>,
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
        if open.opener == Opener::Before && !self.follow(open).await? {
            queue_pair.close();
            return Ok(());
        }
        let hello = Hello { ring: region.remote(), last: self.log.last(), serves: true };
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
                // The sender owns the slot until it is acknowledged, so this is no chunk of this log.
                queue_pair.close();
                return Ok(());
            };
            let (own, queue_pair, region) = (self.clone(), queue_pair.clone(), region.clone());
            self.fabric.spawn_task(Box::pin(async move {
                let early = own.options.plants(Planted::EarlyAcknowledgement);
                let acknowledge = |word| {
                    let request = WorkRequest::send(region.slice(0, 0)).immediate(word);
                    // Where the connection broke, the sender brings the chunk again.
                    let _ = queue_pair.post(request);
                };
                if early {
                    acknowledge(slot);
                }
                match own.take(chunk).await {
                    Ok(Taken::Kept | Taken::Later) if early => {}
                    Ok(Taken::Kept) => acknowledge(slot),
                    Ok(Taken::Later) => acknowledge(slot | LATER),
                    Ok(Taken::Unknown) | Err(_) => queue_pair.close(),
                }
            }));
        }
        Ok(())
    }

    /// Follows the log of who comes before: an incarnation that is new here cuts what only this log
    /// has. False for one that is over.
    async fn follow(&self, open: Open) -> Result<bool, LogError> {
        let _turn = self.turn.lock(0).await;
        if open.epoch < self.epoch.get() {
            return Ok(false);
        }
        if open.epoch > self.epoch.get() {
            self.arrived.borrow_mut().clear();
            self.forwarding.borrow_mut().clear();
            self.confirmed.borrow_mut().clear();
            if !self.options.plants(Planted::NoCut) {
                self.log.truncate_after(open.last).await?;
            }
            self.epoch.set(open.epoch);
            self.change.tell();
            if let Some(next) = &self.next {
                // It must hear of the incarnation before anything of it.
                next.reset();
            }
        }
        Ok(true)
    }

    /// Keeps a chunk and passes it on.
    async fn take(self: &Rc<Self>, chunk: Chunk) -> Result<Taken, LogError> {
        let (epoch, sequence) = (chunk.epoch, chunk.sequence);
        let is_over = || self.epoch.get() > epoch;
        if is_over() {
            return Ok(Taken::Kept);
        }
        if epoch > self.epoch.get() {
            return Ok(Taken::Unknown);
        }
        let repeated = sequence <= self.log.last();
        if !repeated || self.options.plants(Planted::NoDuplicateCheck) {
            self.arrived.borrow_mut().insert(sequence, chunk.payload.clone());
        }
        self.append_arrived(epoch).await?;
        if repeated {
            self.forward(&chunk);
        }
        let kept = || match &self.next {
            Some(_) if self.options.plants(Planted::AcknowledgedBeforeForwarded) => {
                self.log.last() >= sequence
            }
            Some(_) => self.confirmed.borrow().contains(&sequence),
            None => self.log.last() >= sequence,
        };
        let there = self.change.until(|| (is_over() || kept()).then_some(()));
        // A chunk that waits for an earlier one must not keep the slot that this one needs.
        let there = self.fabric.timeout(self.options.patience, there).await;
        Ok(if there.is_some() { Taken::Kept } else { Taken::Later })
    }

    /// Passes an entry on in a task of its own, whoever still waits for it: what is appended here must
    /// reach the rest of the chain.
    fn forward(self: &Rc<Self>, chunk: &Chunk) {
        let (sequence, epoch) = (chunk.sequence, chunk.epoch);
        if self.next.is_none()
            || self.confirmed.borrow().contains(&sequence)
            || !self.forwarding.borrow_mut().insert(sequence)
        {
            return;
        }
        let (own, chunk) = (self.clone(), chunk.clone());
        self.fabric.spawn_task(Box::pin(async move {
            while own.epoch.get() == epoch {
                let Ok(feed) = own.next_feed().await else { return };
                // It may have been cut while the connection was made.
                if own.epoch.get() == epoch && feed.send(&chunk, false).await.is_ok() {
                    break;
                }
            }
            if own.epoch.get() == epoch {
                own.forwarding.borrow_mut().remove(&sequence);
                let mut confirmed = own.confirmed.borrow_mut();
                confirmed.insert(sequence);
                if confirmed.len() > REMEMBERED {
                    confirmed.pop_first();
                }
                drop(confirmed);
                own.change.tell();
            }
        }));
    }

    /// Appends what is next, in order.
    async fn append_arrived(self: &Rc<Self>, epoch: u64) -> Result<(), LogError> {
        let _turn = self.turn.lock(0).await;
        let anyhow = self.options.plants(Planted::NoOrder) || self.options.plants(Planted::NoDuplicateCheck);
        while self.epoch.get() == epoch {
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

    async fn next_feed(self: &Rc<Self>) -> Result<Rc<super::feed::Feed<F>>, LogError> {
        let Some(next) = &self.next else {
            return Err(LogError::Protocol { peer: self.fabric.role().to_string() });
        };
        let open = || Open {
            opener: Opener::Before,
            last: self.log.last(),
            epoch: self.epoch.get(),
            staging: no_region(),
        };
        next.ensure(open, |feed, hello| {
            let (own, feed, epoch) = (self.clone(), feed.clone(), self.epoch.get());
            if own.options.plants(Planted::NoResend) {
                return;
            }
            // Whatever it lost, or never had, comes from this log.
            let upto = own.log.last();
            self.fabric.spawn_task(Box::pin(async move {
                for sequence in hello.last + 1..=upto {
                    let Ok(payload) = own.log.read(sequence).await else { return };
                    if own.epoch.get() != epoch {
                        return;
                    }
                    if feed.send(&Chunk { sequence, epoch, payload }, false).await.is_err() {
                        return;
                    }
                }
            }));
        })
        .await
    }
}

/// The card: pulls chunks from the host, compresses them and brings them to the first backup. It runs
/// until it is stopped or fails. Where the alternative needs a copy engine that the card does not
/// have, the primary is refused.
pub async fn card<F: Fabric>(fabric: F, options: Options) -> Result<(), LogError> {
    options.check()?;
    let by_engine = matches!(options.alternative, Alternative::A2 | Alternative::A2AndA3);
    let serves = !by_engine || fabric.dma_engines().contains(&options.engine);
    let Some(first) = options.chain.first().cloned() else {
        return Err(LogError::Shape { what: "number of backups", value: 0, bound: "at least 1" });
    };
    let next = Downstream::new(&fabric, &options, first);
    let listener = fabric.listen(SERVICE)?;
    let slots = u64::from(options.slots);
    let slot_bytes = CHUNK_HEADER + u64::from(options.chunk_bytes).next_multiple_of(8);
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
        let host = Host {
            fabric: fabric.clone(),
            options: options.clone(),
            queue_pair,
            region,
            engine: by_engine.then(|| options.engine.clone()),
            next: next.clone(),
            alive: Cell::new(true),
            slot_bytes,
        };
        fabric.spawn_task(Box::pin(async move {
            let host = Rc::new(host);
            let _ = host.serve(opening, receives, open_at, serves).await;
            host.alive.set(false);
            host.queue_pair.close();
        }));
    }
}

/// The card's connection to the host.
struct Host<F: Fabric> {
    fabric: F,
    options: Options,
    queue_pair: F::QueuePair,
    region: F::Region,
    engine: Option<String>,
    next: Rc<Downstream<F>>,
    alive: Cell<bool>,
    slot_bytes: u64,
}

type Notices<F> = VecDeque<(<F as Fabric>::Ticket, offpath_fabric::Slice<<F as Fabric>::Region>)>;

impl<F: Fabric> Host<F> {
    async fn serve(
        self: &Rc<Self>,
        opening: F::Ticket,
        mut receives: Notices<F>,
        open_at: u64,
        serves: bool,
    ) -> Result<(), LogError> {
        if opening.await.status != Status::Success {
            return Ok(());
        }
        let mut bytes = [0; OPEN_BYTES as usize];
        self.region.read(open_at, &mut bytes)?;
        let Some(open) = Open::from_bytes(&bytes) else { return Ok(()) };
        let hello = Hello { ring: no_region(), last: 0, serves };
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
            if u64::from(slot) >= u64::from(self.options.slots) || length > self.options.chunk_bytes {
                return Ok(());
            }
            let own = self.clone();
            self.fabric.spawn_task(Box::pin(async move {
                if own.carry(open, sequence, epoch, slot, length).await.is_err() {
                    own.queue_pair.close();
                }
            }));
        }
        Ok(())
    }

    /// Pulls a chunk, brings it to the chain and tells the host.
    async fn carry(
        &self,
        open: Open,
        sequence: u64,
        epoch: u64,
        slot: u32,
        length: u32,
    ) -> Result<(), LogError> {
        let at = u64::from(slot) * self.slot_bytes;
        let length = u64::from(length);
        let from = open.staging.at(at);
        let ticket = match &self.engine {
            Some(engine) => {
                let to = MemoryAt::Local { region: self.region.clone(), offset: at };
                self.fabric.dma_copy(engine, MemoryAt::Remote(from), to, length)?
            }
            None => self.queue_pair.read(self.region.slice(at, length), from)?,
        };
        let status = ticket.await.status;
        if status != Status::Success {
            return Err(LogError::Disconnected { peer: "host".into(), status });
        }
        let mut payload = vec![0; length as usize];
        self.region.read(at, &mut payload)?;
        if self.options.compress {
            let cost = at_rate(length, self.options.costs.compress_bytes_per_second);
            if cost > Time::ZERO {
                self.fabric.compute(Work::Time(cost)).await;
            }
        }
        let chunk = Chunk { sequence, epoch, payload };
        let open = || Open { opener: Opener::Card, last: 0, epoch: 0, staging: no_region() };
        while self.alive.get() {
            let feed = self.next.ensure(open, |_, _| ()).await?;
            match feed.offer(&chunk, self.options.compress).await {
                Ok(kept) => {
                    // Where an earlier chunk is missing the slot goes back, since that one may need it.
                    let word = if kept { slot } else { slot | LATER };
                    let request = WorkRequest::send(self.region.slice(0, 0)).immediate(word);
                    drop(self.queue_pair.post(request)?);
                    return Ok(());
                }
                Err(_) => self.fabric.sleep(PAUSE).await,
            }
        }
        Ok(())
    }
}
