//! The primary: the one writer of the log.

use super::feed::{Chunk, Downstream, Feed, Open, Opener, no_region};
use super::log::Log;
use super::{Alternative, LogError, Options, Planted, at_rate};
use offpath_fabric::{Fabric, File, FileMode, RoleName, Work};
use offpath_quantity::Time;
use std::cell::Cell;
use std::ops::RangeInclusive;
use std::rc::Rc;

/// The file that counts the primary's incarnations.
const EPOCH: &str = "epoch";
const EPOCH_NEXT: &str = "epoch-next";
/// The pause before a chunk that came too early is brought again.
const PAUSE: Time = Time::from_us(20);

/// Where the time of a primary's writes went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Staging chunks and posting them.
    pub post: Time,
    /// Waiting for the chain.
    pub wait: Time,
    /// Appending to the own log.
    pub file_system: Time,
}

/// The primary of a log, at the role that runs on the host.
pub struct Primary<F: Fabric> {
    inner: Rc<Inner<F>>,
}

struct Inner<F: Fabric> {
    fabric: F,
    options: Options,
    log: Log<F>,
    epoch: u64,
    first: Option<Rc<Downstream<F>>>,
    card: Option<Rc<Downstream<F>>>,
    post: Cell<Time>,
    file_system: Cell<Time>,
    wait: Cell<Time>,
    by_card: Cell<u64>,
    by_host: Cell<u64>,
}

impl<F: Fabric> Primary<F> {
    /// Opens the log, recovers it, and brings the chain to the same state. Waits until the first backup
    /// is there. Refused where the log is damaged, has a writer, or where the card lacks the engine
    /// that the alternative needs.
    pub async fn open(fabric: &F, options: &Options) -> Result<Primary<F>, LogError> {
        options.check()?;
        let log = Log::open(fabric, options).await?;
        let epoch = next_epoch(fabric).await?;
        let first = options.chain.first().map(|peer| Downstream::new(fabric, options, peer.clone()));
        let needs_card = first.is_some() && options.alternative != Alternative::A3;
        let card = needs_card.then(|| Downstream::new(fabric, options, RoleName::new("soc", 0)));
        let inner = Rc::new(Inner {
            fabric: fabric.clone(),
            options: options.clone(),
            log,
            epoch,
            first,
            card,
            post: Cell::default(),
            file_system: Cell::default(),
            wait: Cell::default(),
            by_card: Cell::default(),
            by_host: Cell::default(),
        });
        if inner.first.is_some() {
            inner.chain().await?;
            let own = inner.clone();
            fabric.spawn_task(Box::pin(async move {
                loop {
                    own.fabric.sleep(own.options.patience).await;
                    // A backup that restarted waits to be told where it is cut.
                    let _ = own.chain().await;
                }
            }));
        }
        if inner.card.is_some() {
            inner.card_feed().await?;
        }
        Ok(Primary { inner })
    }

    /// Writes `bytes` as entries of at most a chunk each. When it returns, every log of the chain has
    /// them; gives their numbers. A write of nothing is one empty entry.
    pub async fn write(&self, bytes: &[u8]) -> Result<RangeInclusive<u64>, LogError> {
        let inner = &self.inner;
        let chunk_bytes = inner.options.chunk_bytes as usize;
        let mut chunks: Vec<&[u8]> = bytes.chunks(chunk_bytes).collect();
        if chunks.is_empty() {
            chunks.push(&[]);
        }
        let mut under_way = Vec::new();
        let (mut first, mut last) = (0, 0);
        for payload in chunks {
            let began = inner.fabric.now();
            let cost = at_rate(payload.len() as u64, inner.options.costs.file_bytes_per_second);
            if cost > Time::ZERO {
                inner.fabric.compute(Work::Time(cost)).await;
            }
            let sequence = inner.log.append(payload).await?;
            inner.file_system.set(inner.file_system.get() + (inner.fabric.now() - began));
            first = if first == 0 { sequence } else { first };
            last = sequence;
            if inner.first.is_some() {
                let (own, payload) = (inner.clone(), payload.to_vec());
                under_way.push(inner.fabric.spawn(async move { own.replicate(sequence, payload).await }));
            }
        }
        if inner.options.plants(Planted::LocalAcknowledgement) {
            return Ok(first..=last);
        }
        let began = inner.fabric.now();
        for one in under_way {
            // It is cancelled only with the role itself.
            one.await.unwrap_or(Ok(()))?;
        }
        inner.wait.set(inner.wait.get() + (inner.fabric.now() - began));
        Ok(first..=last)
    }

    /// Entry `sequence`.
    pub async fn read(&self, sequence: u64) -> Result<Vec<u8>, LogError> {
        self.inner.log.read(sequence).await
    }

    /// The number of the last entry.
    pub fn last(&self) -> u64 {
        self.inner.log.last()
    }

    /// Where the time of all writes so far went. Posting overlaps with waiting where several chunks
    /// are under way.
    pub fn parts(&self) -> Parts {
        let inner = &self.inner;
        Parts { post: inner.post.get(), wait: inner.wait.get(), file_system: inner.file_system.get() }
    }

    /// Chunks that went by the card, and by the host.
    pub fn carried(&self) -> (u64, u64) {
        (self.inner.by_card.get(), self.inner.by_host.get())
    }
}

/// Counts this incarnation: a file replaced in one step, so that a crash leaves the old count or the
/// new one.
async fn next_epoch<F: Fabric>(fabric: &F) -> Result<u64, LogError> {
    let file = fabric.file(EPOCH, FileMode::OpenOrCreate).await?;
    let mut bytes = [0; 8];
    let count = file.read_at(0, &mut bytes).await?;
    let epoch = if count == 8 { u64::from_le_bytes(bytes) } else { 0 } + 1;
    let next = fabric.file(EPOCH_NEXT, FileMode::OpenOrCreate).await?;
    next.truncate(0).await?;
    next.write_at(0, &epoch.to_le_bytes()).await?;
    next.sync().await?;
    fabric.rename(EPOCH_NEXT, EPOCH).await?;
    fabric.sync_directory().await?;
    Ok(epoch)
}

impl<F: Fabric> Inner<F> {
    /// The connection to the first backup.
    async fn chain(self: &Rc<Self>) -> Result<Rc<Feed<F>>, LogError> {
        let Some(first) = &self.first else { return Err(LogError::Protocol { peer: "nobody".into() }) };
        let open = || Open {
            opener: Opener::Before,
            last: self.log.last(),
            epoch: self.epoch,
            staging: no_region(),
        };
        first
            .ensure(open, |feed, hello| {
                if self.options.plants(Planted::NoResend) {
                    return;
                }
                let (own, feed, upto) = (self.clone(), feed.clone(), self.log.last());
                self.fabric.spawn_task(Box::pin(async move {
                    for sequence in hello.last + 1..=upto {
                        let Ok(payload) = own.log.read(sequence).await else { return };
                        if feed.send(&Chunk { sequence, epoch: own.epoch, payload }, false).await.is_err() {
                            return;
                        }
                    }
                }));
            })
            .await
    }

    async fn card_feed(self: &Rc<Self>) -> Result<Rc<Feed<F>>, LogError> {
        let Some(card) = &self.card else { return Err(LogError::Protocol { peer: "nobody".into() }) };
        let open = || Open { opener: Opener::Host, last: 0, epoch: self.epoch, staging: no_region() };
        card.ensure(open, |_, _| ()).await
    }

    /// Has the chain keep an entry, however often connections break meanwhile.
    async fn replicate(self: Rc<Self>, sequence: u64, payload: Vec<u8>) -> Result<(), LogError> {
        let chunk = Chunk { sequence, epoch: self.epoch, payload };
        loop {
            let by_card = match self.options.alternative {
                Alternative::A3 => false,
                Alternative::A1 | Alternative::A2 => true,
                // The card first: what it has no slot for goes by the host.
                Alternative::A2AndA3 => self.card_feed().await?.under_way() < self.options.slots as usize,
            };
            let feed = if by_card { self.card_feed().await? } else { self.chain().await? };
            let (sent, posting) = feed.send_timed(&chunk).await;
            self.post.set(self.post.get() + posting);
            match sent {
                Ok(true) => {
                    let count = if by_card { &self.by_card } else { &self.by_host };
                    count.set(count.get() + 1);
                    return Ok(());
                }
                // An earlier one has to come first.
                Ok(false) => self.fabric.sleep(PAUSE).await,
                Err(_) => {}
            }
        }
    }
}
