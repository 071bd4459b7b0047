//! The primary: the one writer of the log.

use super::digest::{Confirmed, DigestedStore, FileRecord, digest_log, keep_numbers, kept_numbers};
use super::feed::{Chunk, Downstream, Feed, Hello, Lineage, Open, Opener, Progress, Taken, no_region};
use super::log::Log;
use super::{Digestion, LogAlternative, LogBug, LogConfig, LogError, at_rate};
use crate::pool::{Change, Turn};
use offpath_fabric::{Fabric, RoleName, Work};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::ops::RangeInclusive;
use std::rc::Rc;

/// The file of the primary's incarnations.
pub(super) const LINEAGE: &str = "incarnations";
/// The pause before a chunk that came too early is brought again.
const PAUSE: Time = Time::from_us(20);

/// Where the host's time of a primary's writes went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HostTimeParts {
    /// Staging chunks and posting them.
    pub post: Time,
    /// From the end of a write's last append to its last acknowledgement. Who polls for it keeps a core.
    pub wait: Time,
    /// Appending to the own log and, where the host digests, applying entries to files.
    pub file_system: Time,
    /// Compressing, where the host does.
    pub compression: Time,
}

/// The primary of a log, at the role that runs on the host.
pub struct Primary<F: Fabric> {
    inner: Rc<Inner<F>>,
}

struct Inner<F: Fabric> {
    fabric: F,
    options: LogConfig,
    log: Log<F>,
    epoch: u64,
    lineage: Lineage,
    first: Option<Rc<Downstream<F>>>,
    card: Option<Rc<Downstream<F>>>,
    /// Where the host digests.
    store: Option<DigestedStore<F>>,
    acknowledged: RefCell<Confirmed>,
    /// Told of acknowledged entries, and of digested ones where the host digests.
    change: Change,
    /// What makes further writes pointless.
    failed: RefCell<Option<LogError>>,
    /// Keeps the entries of one write together.
    turn: Turn,
    parts: Cell<HostTimeParts>,
    by_card: Cell<u64>,
    by_host: Cell<u64>,
}

impl<F: Fabric> Primary<F> {
    /// Opens the log, recovers it, and brings the chain to the same state. Waits until the first backup
    /// is there, and the card where the alternative needs it. Refused where the log is damaged, has a
    /// writer, or where the card lacks the engine that the alternative needs.
    pub async fn open(fabric: &F, options: &LogConfig) -> Result<Primary<F>, LogError> {
        options.check()?;
        let log = Log::open(fabric, options).await?;
        let mut lineage = Lineage::from_numbers(&kept_numbers(fabric, LINEAGE).await?);
        lineage.begin(log.last());
        keep_numbers(fabric, LINEAGE, &lineage.to_numbers(), &options.costs).await?;
        let first = options.chain.first().map(|peer| Downstream::new(fabric, options, peer.clone()));
        let needs_card = first.is_some() && options.alternative != LogAlternative::HostWrites;
        let card = needs_card.then(|| Downstream::new(fabric, options, RoleName::new("soc", 0)));
        let by_host =
            options.digestion != Digestion::Off && !(needs_card && options.alternative.digests_on_card());
        let store = if by_host { Some(DigestedStore::open(fabric, options).await?) } else { None };
        let digested = store.as_ref().map_or(0, DigestedStore::digested);
        // Alone, the log has nobody to wait for.
        let acknowledged = Confirmed::upto(if first.is_some() { digested } else { log.last() });
        let inner = Rc::new(Inner {
            fabric: fabric.clone(),
            options: options.clone(),
            log,
            epoch: lineage.epoch(),
            lineage,
            first,
            card,
            store,
            acknowledged: RefCell::new(acknowledged),
            change: Change::default(),
            failed: RefCell::default(),
            turn: Turn::default(),
            parts: Cell::default(),
            by_card: Cell::default(),
            by_host: Cell::default(),
        });
        if inner.first.is_some() {
            inner.chain().await?;
            if inner.card.is_some() {
                inner.card_feed().await?;
            }
            for card in [false, true] {
                let own = inner.clone();
                fabric.spawn_task(Box::pin(async move {
                    loop {
                        own.fabric.sleep(own.options.patience).await;
                        // A backup that restarted waits to be told where it is cut, and a card what to
                        // digest.
                        let kept = if card && own.card.is_some() {
                            own.card_feed().await
                        } else {
                            own.chain().await
                        };
                        if let Err(error) = kept {
                            *own.failed.borrow_mut() = Some(error);
                            own.change.tell();
                            return;
                        }
                    }
                }));
            }
        }
        if options.digestion != Digestion::Off {
            let own = inner.clone();
            fabric.spawn_task(Box::pin(async move {
                if let Err(error) = own.digest().await {
                    *own.failed.borrow_mut() = Some(error);
                    own.change.tell();
                    own.progress().change.tell();
                }
            }));
        }
        Ok(Primary { inner })
    }

    /// Writes `bytes` as entries of at most a chunk each, whose numbers it gives, one after the other.
    /// When it returns, every log of the chain has them. A write of nothing is one empty entry. Refused
    /// where the log is digested: see [`Primary::write_file`].
    pub async fn write(&self, bytes: &[u8]) -> Result<RangeInclusive<u64>, LogError> {
        if self.inner.options.digestion != Digestion::Off {
            return Err(LogError::NoRecord { sequence: 0 });
        }
        let chunk_bytes = self.inner.options.chunk_bytes as usize;
        let mut entries: Vec<Vec<u8>> = bytes.chunks(chunk_bytes).map(<[u8]>::to_vec).collect();
        if entries.is_empty() {
            entries.push(Vec::new());
        }
        self.write_entries(entries).await
    }

    /// Writes `bytes` at `offset` of `file`, as [`Primary::write`] does. Where the log is digested the
    /// file has them later, see [`Primary::until_digested`].
    pub async fn write_file(
        &self,
        file: &str,
        offset: u64,
        bytes: &[u8],
    ) -> Result<RangeInclusive<u64>, LogError> {
        let options = &self.inner.options;
        if options.digestion == Digestion::Off {
            return Err(LogError::NotDigested);
        }
        FileRecord { file, offset, bytes }.check()?;
        let chunk_bytes = options.chunk_bytes as usize;
        let begins = (0..bytes.len().max(1)).step_by(chunk_bytes);
        let record = |begin: usize| {
            let bytes = &bytes[begin..bytes.len().min(begin + chunk_bytes)];
            FileRecord { file, offset: offset + begin as u64, bytes }.to_entry()
        };
        self.write_entries(begins.map(record).collect()).await
    }

    async fn write_entries(&self, entries: Vec<Vec<u8>>) -> Result<RangeInclusive<u64>, LogError> {
        let inner = &self.inner;
        let mut in_flight = Vec::new();
        let (mut first, mut last) = (0, 0);
        {
            let _turn = inner.turn.take().await;
            for payload in entries {
                inner.failure()?;
                let began = inner.fabric.now();
                let cost = at_rate(payload.len() as u64, inner.options.costs.file_bytes_per_second);
                if cost > Time::ZERO {
                    inner.fabric.compute(Work::Time(cost)).await;
                }
                let sequence = inner.log.append(&payload).await?;
                inner.spend(|parts| parts.file_system += inner.fabric.now() - began);
                first = if first == 0 { sequence } else { first };
                last = sequence;
                if inner.first.is_some() {
                    let own = inner.clone();
                    in_flight.push(inner.fabric.spawn(async move { own.replicate(sequence, payload).await }));
                } else {
                    inner.acknowledge(sequence);
                }
            }
        }
        if inner.options.injects(LogBug::LocalAcknowledgement) {
            return Ok(first..=last);
        }
        let began = inner.fabric.now();
        for one in in_flight {
            // It is cancelled only with the role itself.
            one.await.unwrap_or(Ok(()))?;
        }
        inner.spend(|parts| parts.wait += inner.fabric.now() - began);
        Ok(first..=last)
    }

    /// Entry `sequence`.
    pub async fn read(&self, sequence: u64) -> Result<Vec<u8>, LogError> {
        self.inner.log.read(sequence).await
    }

    /// The number of the first entry that was not removed.
    pub fn first(&self) -> u64 {
        self.inner.log.first()
    }

    /// The number of the last entry.
    pub fn last(&self) -> u64 {
        self.inner.log.last()
    }

    /// The last entry that is in its file for good, at the card or here; 0 for none.
    pub fn digested(&self) -> u64 {
        self.inner.digested()
    }

    /// Waits until entry `sequence` is in its file for good.
    pub async fn until_digested(&self, sequence: u64) -> Result<(), LogError> {
        let inner = &self.inner;
        if inner.options.digestion == Digestion::Off {
            return Err(LogError::NotDigested);
        }
        let there = || match inner.failure() {
            _ if inner.digested() >= sequence => Some(Ok(())),
            Ok(()) => None,
            Err(error) => Some(Err(error)),
        };
        match &inner.store {
            Some(_) => inner.change.until(there).await,
            None => inner.progress().change.until(there).await,
        }
    }

    /// Where the host's time of all writes so far went. Posting, compression and digestion overlap with
    /// waiting where several chunks are in flight.
    pub fn parts(&self) -> HostTimeParts {
        self.inner.parts.get()
    }

    /// Chunks that went by the card, and by the host.
    pub fn carried(&self) -> (u64, u64) {
        (self.inner.by_card.get(), self.inner.by_host.get())
    }
}

impl<F: Fabric> Inner<F> {
    fn spend(&self, add: impl FnOnce(&mut HostTimeParts)) {
        let mut parts = self.parts.get();
        add(&mut parts);
        self.parts.set(parts);
    }

    fn failure(&self) -> Result<(), LogError> {
        self.failed.borrow().clone().map_or(Ok(()), Err)
    }

    fn acknowledge(&self, sequence: u64) {
        self.acknowledged.borrow_mut().add(sequence);
        self.change.tell();
    }

    /// How far the card has digested.
    fn progress(&self) -> Rc<Progress> {
        self.card.as_ref().map(|card| card.progress.clone()).unwrap_or_default()
    }

    fn digested(&self) -> u64 {
        self.store.as_ref().map_or_else(|| self.progress().digested(), DigestedStore::digested)
    }

    /// Digests, or lets the log follow the card's digestion.
    async fn digest(&self) -> Result<(), LogError> {
        if let Some(store) = &self.store {
            let upto = || self.acknowledged.borrow().last();
            let spent = |time| self.spend(|parts| parts.file_system += time);
            return digest_log(&self.log, store, &self.options, &self.change, upto, spent).await;
        }
        let progress = self.progress();
        let mut known = 0;
        loop {
            known = progress
                .change
                .until(|| Some(progress.digested()).filter(|digested| *digested > known))
                .await;
            if self.options.digestion == Digestion::Truncate {
                self.log.truncate_before(known).await?;
            }
        }
    }

    fn opens(&self, opener: Opener) -> Open {
        Open { opener, staging: no_region(), lineage: self.lineage.clone() }
    }

    /// Whether a peer that has entries up to `last` can be brought up to date.
    fn bridges(&self, peer: &RoleName, last: u64) -> Result<(), LogError> {
        let (first, own) = (self.log.first(), self.log.last());
        if last > own {
            return Err(LogError::Ahead { peer: peer.to_string(), has: last, last: own });
        }
        if last + 1 < first { Err(LogError::Truncated { sequence: last + 1, first }) } else { Ok(()) }
    }

    /// The connection to the first backup.
    async fn chain(self: &Rc<Self>) -> Result<Rc<Feed<F>>, LogError> {
        let Some(first) = &self.first else { return Err(LogError::Protocol { peer: "nobody".into() }) };
        let open = || self.opens(Opener::Before);
        let fresh = |feed: &Rc<Feed<F>>, hello: Hello| {
            self.bridges(&first.peer, hello.last)?;
            if self.options.injects(LogBug::NoResend) {
                return Ok(());
            }
            // What is not known to be acknowledged is asked for again where it has to be known.
            let sure = self.store.as_ref().map_or(u64::MAX, |_| self.acknowledged.borrow().last());
            let missing = hello.last.min(sure) + 1..=self.log.last();
            self.bring_again(feed, missing);
            Ok(())
        };
        first.ensure(open, fresh).await
    }

    async fn card_feed(self: &Rc<Self>) -> Result<Rc<Feed<F>>, LogError> {
        let Some(card) = &self.card else { return Err(LogError::Protocol { peer: "nobody".into() }) };
        let open = || self.opens(Opener::Host);
        let fresh = |feed: &Rc<Feed<F>>, hello: Hello| {
            if self.options.digestion != Digestion::Off && self.store.is_none() {
                self.bridges(&card.peer, hello.last)?;
                // What the card had not digested it forgot.
                self.bring_again(feed, hello.last + 1..=self.log.last());
            }
            Ok(())
        };
        card.ensure(open, fresh).await
    }

    /// Sends entries once more, in a task of its own.
    fn bring_again(self: &Rc<Self>, feed: &Rc<Feed<F>>, missing: RangeInclusive<u64>) {
        let (own, feed) = (self.clone(), feed.clone());
        self.fabric.spawn_task(Box::pin(async move {
            for sequence in missing {
                let payload = match own.log.read(sequence).await {
                    Ok(payload) => payload,
                    // It was digested meanwhile.
                    Err(LogError::Truncated { .. }) => continue,
                    Err(error) => {
                        *own.failed.borrow_mut() = Some(error);
                        return;
                    }
                };
                if feed.send(&Chunk { sequence, epoch: own.epoch, payload }, false).await.is_err() {
                    return;
                }
                own.acknowledge(sequence);
            }
        }));
    }

    /// The card's connection where a chunk of A2 and A3 together goes by the card. A card that is away is
    /// not waited for: the host can do without.
    fn card_of_mix(&self, sequence: u64) -> Option<Rc<Feed<F>>> {
        let feed = self.card.as_ref().and_then(|card| card.present())?;
        let by_card = match self.options.card_share_percent {
            Some(percent) => {
                let upto = |sequence| sequence * u64::from(percent) / 100;
                upto(sequence) > upto(sequence - 1)
            }
            None => feed.in_flight() < self.options.slots as usize,
        };
        by_card.then_some(feed)
    }

    /// Has the chain keep an entry, however often connections break meanwhile.
    async fn replicate(self: Rc<Self>, sequence: u64, payload: Vec<u8>) -> Result<(), LogError> {
        let chunk = Chunk { sequence, epoch: self.epoch, payload };
        loop {
            let by_card = match self.options.alternative {
                LogAlternative::HostWrites => None,
                LogAlternative::CardPullsByRead | LogAlternative::CardPullsByEngine => {
                    Some(self.card_feed().await?)
                }
                LogAlternative::EngineAndHost => self.card_of_mix(sequence),
            };
            let count = if by_card.is_some() { &self.by_card } else { &self.by_host };
            let compress = self.options.host_compresses && by_card.is_none();
            let feed = match by_card {
                Some(feed) => feed,
                None => self.chain().await?,
            };
            let (sent, spent) = feed.offer_timed(&chunk, compress).await;
            self.spend(|parts| {
                parts.post += spent.post;
                parts.compression += spent.compression;
            });
            match sent {
                Ok(Taken::Kept) => {
                    count.set(count.get() + 1);
                    self.acknowledge(sequence);
                    return Ok(());
                }
                // An earlier one has to come first.
                Ok(Taken::Later) => self.fabric.sleep(PAUSE).await,
                Ok(Taken::Over) => return Err(feed.superseded(&chunk)),
                Err(_) => self.failure()?,
            }
        }
    }
}
