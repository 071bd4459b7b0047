//! YCSB against the store: what a client role does, and what it reports.

use super::client::{StoreClient, StoreKey};
use super::server::{host, soc};
use super::{Home, KvError, Placement, Splitter, StoreConfig};
use crate::Stop;
use crate::bytes::{REVISIONS, is_value_of, value_of};
use crate::system::Act;
use hdrhistogram::Histogram;
use offpath_fabric::{Cancelled, Fabric, Role};
use offpath_quantity::Time;
use offpath_workload::{ClientOperation, KeyChooser, OperationChooser, Workload};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::fmt;
use std::rc::Rc;

/// A session gives up after so many failures on end: its server is gone for good.
const FAILURES_MAX: u32 = 16;
/// How often a waiting client looks whether the others are there, and a session whether its turn has come.
const LOOK_EVERY: Time = Time::from_us(5);

/// A fabric's generator with the trait that workloads draw by.
struct Draws(offpath_fabric::Rng);

impl rand::TryRng for Draws {
    type Error = Infallible;
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        Ok(rand_core::RngCore::next_u32(&mut self.0))
    }
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        Ok(rand_core::RngCore::next_u64(&mut self.0))
    }
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        rand_core::RngCore::fill_bytes(&mut self.0, bytes);
        Ok(())
    }
}

/// How a client spreads its gets.
#[derive(Clone, Debug, PartialEq)]
pub enum Spread {
    /// All by the placement of [`StoreConfig::placement`].
    One,
    /// By shares that stay, as a plan gives them; they need not add up to one.
    Shares(Vec<(Placement, f64)>),
    /// As a [`Splitter`] of each client finds, between one that is better while it keeps up, and another.
    Split(Placement, Placement),
}

impl Spread {
    fn splitter(&self) -> Result<Option<Splitter>, KvError> {
        match self {
            Spread::One => Ok(None),
            Spread::Shares(shares) => Splitter::fixed(shares).map(Some),
            Spread::Split(first, second) => Ok(Some(Splitter::new(*first, *second))),
        }
    }
}

/// Most sessions of one client.
pub(super) const SESSIONS_MAX: u32 = 65_536;

/// What each client does.
#[derive(Clone, Debug)]
pub struct ClientLoad {
    /// Its operations. Record n has key n. The whole value is written and read, whatever the workload
    /// says of single fields, and is as long as the store's longest.
    pub workload: Workload,
    /// Sessions of one client, each with one operation at a time.
    pub sessions: u32,
    /// Measured operations of one client, all sessions together; `None` for no limit.
    pub operations: Option<u64>,
    /// Whether the clients put the workload's records first. Otherwise the store has them: see
    /// [`StoreConfig::preload`].
    pub put_records: bool,
    /// Time under load before anything is measured.
    pub warm_up: Time,
    /// How long is measured; `None` until the operations are done.
    pub window: Option<Time>,
    /// By which placements.
    pub spread: Spread,
}

impl ClientLoad {
    /// `operationcount` operations of `workload` in `threadcount` sessions, on a store that has the
    /// records; where the count is 0, for one second.
    pub fn of_workload(workload: Workload) -> ClientLoad {
        let operations = (workload.operation_count > 0).then_some(workload.operation_count);
        ClientLoad {
            sessions: workload.thread_count.clamp(1, u32::MAX.into()) as u32,
            operations,
            put_records: false,
            warm_up: Time::ZERO,
            window: operations.is_none().then(|| Time::from_ms(1000)),
            spread: Spread::One,
            workload,
        }
    }

    /// Refuses what the store cannot run.
    pub fn check(&self) -> Result<(), DriveError> {
        let file = &self.workload.file;
        if self.workload.mix.share(ClientOperation::Scan) > 0.0 {
            return Err(DriveError::Scan { file: file.clone() });
        }
        if self.sessions == 0 {
            return Err(DriveError::NoSessions);
        }
        if self.sessions > SESSIONS_MAX {
            return Err(DriveError::ManySessions { sessions: self.sessions });
        }
        if self.operations.is_none() && self.window.is_none() {
            return Err(DriveError::Endless);
        }
        Ok(())
    }
}

/// What the clients of one process share while they run, and what a caller reads and sets meanwhile.
#[derive(Debug)]
pub struct DriveState {
    /// Clients of this process: none measures before the sessions of all are connected.
    pub clients: u32,
    /// Operations that ended, measured or not.
    pub ended: Cell<u64>,
    /// Sessions that are connected and have put their records.
    pub ready: Cell<u64>,
    /// Sessions of a client whose number is not below it wait, so that a load can be raised and lowered.
    pub active: Cell<u32>,
    /// Ends the run early: sessions stop after their operation.
    pub stop: Stop,
    /// When the sessions of all clients were ready.
    began: Cell<Option<Time>>,
    /// What is done once the measured window ends.
    pub(super) at_end: Hook,
}

/// Something that is done once, at a moment that another part of the program sees.
#[derive(Default)]
pub(super) struct Hook(Cell<Option<Act>>);

impl Hook {
    pub(super) fn set(&self, act: Act) {
        self.0.set(Some(act));
    }

    fn act(&self) {
        if let Some(act) = self.0.take() {
            act();
        }
    }
}

impl fmt::Debug for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hook")
    }
}

impl DriveState {
    /// For `clients` clients in this process.
    pub fn new(clients: u32) -> Rc<DriveState> {
        Rc::new(DriveState {
            clients,
            ended: Cell::new(0),
            ready: Cell::new(0),
            active: Cell::new(u32::MAX),
            stop: Stop::default(),
            began: Cell::new(None),
            at_end: Hook::default(),
        })
    }
}

/// Why a workload was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The store hashes its keys.
    #[error(
        "{file} has scans, and a hashed store has no order to scan in; set scanproportion=0, or take a \
             workload without scans"
    )]
    Scan {
        /// The workload.
        file: String,
    },
    /// Nobody would do anything.
    #[error("a client of 0 sessions does nothing; give it at least 1")]
    NoSessions,
    /// Each needs buffers and queue pairs of its own.
    #[error(
        "a client of {sessions} sessions (a workload's `threadcount`) is more than the {SESSIONS_MAX} that one may have; \
         give it fewer, or take more clients"
    )]
    ManySessions {
        /// How many were asked for.
        sessions: u32,
    },
    /// The run would have no end.
    #[error("neither a number of operations nor a window is given; set one of the two")]
    Endless,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
    /// The role ended first.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

/// Latencies of one kind of operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Latency {
    /// The mean.
    pub mean: Time,
    /// The median.
    pub p50: Time,
    /// 99% took no longer.
    pub p99: Time,
    /// 99.9% took no longer.
    pub p999: Time,
    /// The longest.
    pub max: Time,
}

/// What a client saw in its window. Reports of several clients are [added up](ClientReport::add).
#[derive(Clone, Debug, Default)]
pub struct ClientReport {
    /// How long was measured: the given window, or less where the operations were done before.
    pub window: Time,
    /// Latencies by kind, kept to 3 significant digits in picoseconds up to 100 s.
    latencies: BTreeMap<ClientOperation, Histogram<u64>>,
    /// Gets of records that are not there.
    pub absent: u64,
    /// Gets whose value no revision of the record has. Any is a fault of the store.
    pub wrong: u64,
    /// Gets that read again, since what they read had changed or did not come.
    pub retries: u64,
    /// Operations by kind that ended in an error, which a later one got over.
    failures: BTreeMap<ClientOperation, u64>,
    /// Gets by the placement that they took.
    pub gets: BTreeMap<Placement, u64>,
    /// Of those, how many the card's cache served.
    pub cache_hits: BTreeMap<Placement, u64>,
    /// Events that the backend needed for the operations of all clients; `None` where it counts none.
    pub events: Option<u64>,
    /// How long the measured operations took together, in picoseconds.
    took_ps: u128,
    /// How long those and the ones below had been in flight when the window began.
    before_ps: u128,
    /// How long each operation that had no answer when the window ended had been in flight.
    in_flight: Vec<Time>,
}

/// Operations that had no answer when the window ended, and by far more time than others need.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unanswered {
    /// How many sessions waited for one.
    pub sessions: u64,
    /// How long the oldest had been in flight.
    pub oldest: Time,
    /// The mean latency by Little's law, where the latencies of the operations that ended lie so far below it that they
    /// are a lower bound.
    pub mean: Option<Time>,
}

/// By which share of the mean latency that Little's law gives the measured one may lie below it.
const HIDDEN_MAX: f64 = 0.02;

impl ClientReport {
    fn record(&mut self, operation: ClientOperation, took: Time, before: Time) {
        self.took_ps += u128::from(took.ps());
        self.before_ps += u128::from(before.ps());
        let latencies = self.latencies.entry(operation).or_insert_with(|| {
            Histogram::new_with_bounds(1, 100_000_000_000_000, 3).expect("bounds within a u64")
        });
        latencies.saturating_record(took.ps().max(1));
    }

    /// Kinds of operation that were measured, and how many of each.
    pub fn operations(&self) -> impl Iterator<Item = (ClientOperation, u64)> {
        self.latencies.iter().map(|(operation, latencies)| (*operation, latencies.len()))
    }

    /// How many operations were measured.
    pub fn total(&self) -> u64 {
        self.operations().map(|(_, count)| count).sum()
    }

    /// Operations by kind that ended in an error, which a later one got over.
    pub fn failures(&self) -> impl Iterator<Item = (ClientOperation, u64)> {
        self.failures.iter().map(|(operation, failed)| (*operation, *failed))
    }

    /// How many operations ended in an error.
    pub fn failed(&self) -> u64 {
        self.failures.values().sum()
    }

    /// The kinds of which more ended in an error than were carried out, with how many were, whatever the others did.
    pub fn mostly_failed(&self) -> Vec<(ClientOperation, u64)> {
        let served = |operation: &ClientOperation| self.latencies.get(operation).map_or(0, Histogram::len);
        let each = self.failures().map(|(operation, failed)| (operation, served(&operation), failed));
        each.filter(|(_, served, failed)| failed > served)
            .map(|(operation, served, _)| (operation, served))
            .collect()
    }

    /// Operations per second over the window; 0 for an empty one.
    pub fn per_second(&self) -> f64 {
        if self.window == Time::ZERO { 0.0 } else { self.total() as f64 / self.window.as_seconds() }
    }

    /// The latency that a share (0 to 1) of an operation's stay within; `None` where there was none.
    pub fn quantile(&self, operation: ClientOperation, share: f64) -> Option<Time> {
        self.latencies.get(&operation).map(|all| Time::from_ps(all.value_at_quantile(share)))
    }

    /// Latencies of an operation; `None` where there was none.
    pub fn latency(&self, operation: ClientOperation) -> Option<Latency> {
        let all = self.latencies.get(&operation)?;
        let at = |share| Time::from_ps(all.value_at_quantile(share));
        Some(Latency {
            mean: Time::from_ps(all.mean().round() as u64),
            p50: at(0.5),
            p99: at(0.99),
            p999: at(0.999),
            max: Time::from_ps(all.max()),
        })
    }

    /// Operations that had no answer when the window ended, where they took much longer than those that ended. Every
    /// busy session has one in flight then, which says nothing.
    pub fn unanswered(&self) -> Option<Unanswered> {
        let longest = self.latencies.values().map(Histogram::max).max().map(Time::from_ps)?;
        let in_flight: u128 = self.in_flight.iter().map(|age| u128::from(age.ps())).sum();
        // What the sessions spent on operations within the window, over the operations that ended in it.
        let spent = (self.took_ps + in_flight).saturating_sub(self.before_ps);
        let is_hidden = spent.saturating_sub(self.took_ps) as f64 > HIDDEN_MAX * spent as f64;
        let mean = Time::from_ps((spent / u128::from(self.total())) as u64);
        let above = |limit: Time| self.in_flight.iter().copied().filter(move |age| *age > limit);
        let limit = if is_hidden { mean } else { longest.times(2) };
        let oldest = above(limit).max()?;
        Some(Unanswered { sessions: above(limit).count() as u64, oldest, mean: is_hidden.then_some(mean) })
    }

    /// The share of the gets that took `placement`, from 0 to 1.
    pub fn share(&self, placement: Placement) -> f64 {
        let all: u64 = self.gets.values().sum();
        self.gets.get(&placement).map_or(0.0, |gets| *gets as f64 / all as f64)
    }

    /// The share of the gets by `placement` that the card's cache served, from 0 to 1; `None` for a placement that
    /// looks into no cache, or that no get took.
    pub fn cache_hit_ratio(&self, placement: Placement) -> Option<f64> {
        let gets = *self.gets.get(&placement).filter(|gets| **gets > 0)?;
        let hits = *self.cache_hits.get(&placement)?;
        placement.looks_into_the_cache().then(|| hits as f64 / gets as f64)
    }

    /// Events for each operation; `None` where the backend counts none.
    pub fn events_per_operation(&self) -> Option<f64> {
        let total = self.total();
        self.events.filter(|_| total > 0).map(|events| events as f64 / total as f64)
    }

    /// Adds what another client of the same run saw. Windows of one run begin together, so the longest
    /// is the run's.
    pub fn add(&mut self, other: &ClientReport) {
        self.window = self.window.max(other.window);
        for (operation, latencies) in &other.latencies {
            match self.latencies.get_mut(operation) {
                Some(own) => own.add(latencies).expect("all histograms have the same bounds"),
                None => drop(self.latencies.insert(*operation, latencies.clone())),
            }
        }
        self.absent += other.absent;
        self.wrong += other.wrong;
        self.retries += other.retries;
        for (operation, failed) in &other.failures {
            *self.failures.entry(*operation).or_default() += failed;
        }
        for (placement, gets) in &other.gets {
            *self.gets.entry(*placement).or_default() += gets;
        }
        for (placement, hits) in &other.cache_hits {
            *self.cache_hits.entry(*placement).or_default() += hits;
        }
        self.events = self.events.max(other.events);
        self.took_ps += other.took_ps;
        self.before_ps += other.before_ps;
        self.in_flight.extend(&other.in_flight);
    }
}

/// The records of one client: which are asked for, and which come next.
struct Records {
    chooser: KeyChooser,
    loaded: u64,
    next: u64,
    /// From here on nothing is asked for.
    known: u64,
    acknowledged: BTreeSet<u64>,
    clients: u64,
    client: u64,
}

impl Records {
    /// The key of a record. Clients insert side by side, so each has keys of its own.
    fn key(&self, record: u64) -> u64 {
        match record.checked_sub(self.loaded) {
            None => record,
            Some(inserted) => self.loaded + inserted * self.clients + self.client,
        }
    }

    /// The number of the next record.
    fn insert(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    /// A record is asked for once it and all before it are there, as in YCSB.
    fn acknowledge(&mut self, record: u64) {
        self.acknowledged.insert(record);
        while self.acknowledged.remove(&self.known) {
            self.chooser.insert();
            self.known += 1;
        }
    }
}

/// What the sessions of one client share.
struct Own<F: Fabric> {
    fabric: F,
    options: StoreConfig,
    load: ClientLoad,
    shared: Rc<DriveState>,
    count_events: Option<fn(&F) -> u64>,
    splitter: Option<Rc<Splitter>>,
    operations: OperationChooser,
    records: RefCell<Records>,
    left: Cell<u64>,
    report: RefCell<ClientReport>,
    last_end: Cell<Time>,
    events_before: Cell<Option<u64>>,
    events_after: Cell<Option<u64>>,
}

/// The role of a client: connects, puts the records where it should, waits for the other clients of its
/// process, runs its load and reports. `count_events` reads the backend's counter of events where it has
/// one.
///
/// A session whose operation failed with an unknown outcome goes on, up to 16 failures on end; any other
/// error ends the run.
pub async fn client<F: Fabric>(
    fabric: F,
    options: StoreConfig,
    load: ClientLoad,
    shared: Rc<DriveState>,
    count_events: Option<fn(&F) -> u64>,
) -> Result<ClientReport, DriveError> {
    load.check()?;
    let role = fabric.role();
    let loaded = load.workload.record_count;
    let records = Records {
        chooser: KeyChooser::new(&load.workload),
        loaded,
        next: loaded,
        known: loaded,
        acknowledged: BTreeSet::new(),
        clients: fabric.instances(&role.role).max(1).into(),
        client: role.instance.into(),
    };
    let own = Rc::new(Own {
        splitter: load.spread.splitter()?.map(Rc::new),
        operations: OperationChooser::new(&load.workload),
        records: RefCell::new(records),
        left: Cell::new(load.operations.unwrap_or(u64::MAX)),
        report: RefCell::default(),
        last_end: Cell::new(Time::ZERO),
        events_before: Cell::new(None),
        events_after: Cell::new(None),
        fabric,
        options,
        load,
        shared,
        count_events,
    });
    let sessions: Vec<_> = (0..own.load.sessions)
        .map(|number| {
            let own = own.clone();
            own.fabric.clone().spawn(async move {
                let ended = own.session(number).await;
                if ended.is_err() {
                    // The others would wait for it, or show another load than was asked for.
                    own.shared.stop.ask();
                }
                ended
            })
        })
        .collect();
    for session in sessions {
        session.await??;
    }
    let mut report = own.report.take();
    let from = own.shared.began.get().map(|began| began + own.load.warm_up);
    report.window = match (own.load.window, from) {
        (Some(window), _) if own.events_after.get().is_some() => window,
        (_, Some(from)) => own.last_end.get().saturating_sub(from),
        (_, None) => Time::ZERO,
    };
    if own.count_events.is_some() {
        let after = own.events_after.get().or_else(|| own.events());
        report.events = after.zip(own.events_before.get()).map(|(after, before)| after - before);
    }
    Ok(report)
}

/// Host, card and `clients` clients of a run in one process: the servers in the background, the clients'
/// reports as results.
pub fn roles<F: Fabric>(
    options: &StoreConfig,
    load: &ClientLoad,
    shared: &Rc<DriveState>,
    count_events: Option<fn(&F) -> u64>,
) -> Vec<Role<F, Result<ClientReport, DriveError>>> {
    let (of_host, of_soc) = (options.clone(), options.clone());
    let run_host = move |fabric: F| {
        let options = of_host.clone();
        async move { host(fabric, options).await.map(|()| ClientReport::default()).map_err(DriveError::from) }
    };
    let run_soc = move |fabric: F| {
        let options = of_soc.clone();
        async move { soc(fabric, options).await.map(|()| ClientReport::default()).map_err(DriveError::from) }
    };
    let mut roles = vec![
        Role::new(Home::Host.role(), 0, run_host).in_background(),
        Role::new(Home::Soc.role(), 0, run_soc).in_background(),
    ];
    for instance in 0..shared.clients {
        let (options, load, shared) = (options.clone(), load.clone(), shared.clone());
        roles.push(Role::new("client", instance, move |fabric: F| {
            client(fabric, options.clone(), load.clone(), shared.clone(), count_events)
        }));
    }
    roles
}

impl<F: Fabric> Own<F> {
    fn events(&self) -> Option<u64> {
        self.count_events.map_or(Some(0), |count| Some(count(&self.fabric)))
    }

    /// Puts every record that is this session's part, in its first revision.
    async fn put_records(&self, client: &mut StoreClient<F>, number: u32) -> Result<(), KvError> {
        let (clients, of) = {
            let records = self.records.borrow();
            (records.clients, records.client)
        };
        let sessions = u64::from(self.load.sessions);
        let mut record = of * sessions + u64::from(number);
        while record < self.load.workload.record_count && !self.shared.stop.is_asked() {
            let value = value_of(record, 0, self.options.layout.value_bytes);
            client.put(StoreKey::from_number(record), &value).await?;
            record += clients * sessions;
        }
        Ok(())
    }

    /// Waits until the sessions of all clients are ready; gives when that was, or `None` where the run
    /// was stopped before.
    async fn ready(&self) -> Option<Time> {
        let shared = &self.shared;
        shared.ready.set(shared.ready.get() + 1);
        if shared.ready.get() == u64::from(shared.clients) * u64::from(self.load.sessions) {
            shared.began.set(Some(self.fabric.now()));
        }
        loop {
            if shared.began.get().is_some() || shared.stop.is_asked() {
                return shared.began.get();
            }
            self.fabric.sleep(LOOK_EVERY).await;
        }
    }

    async fn session(&self, number: u32) -> Result<(), DriveError> {
        let (fabric, shared) = (&self.fabric, &self.shared);
        let mut client = StoreClient::open(fabric, &self.options, self.splitter.clone()).await?;
        if self.load.put_records {
            self.put_records(&mut client, number).await?;
        }
        let Some(began) = self.ready().await else { return Ok(()) };
        let from = began + self.load.warm_up;
        let until = self.load.window.map_or(Time::MAX, |window| from + window);
        let mut draws = Draws(fabric.rng(&format!("session {number}")));
        let part = u64::from(fabric.role().instance) * u64::from(self.load.sessions) + u64::from(number);
        let mut revision = (part + 1) << 32;
        let mut failures = 0;
        let mut now = fabric.now();
        while !shared.stop.is_asked() && self.left.get() > 0 {
            if now >= from && self.events_before.get().is_none() {
                self.events_before.set(self.events());
            }
            if number >= shared.active.get() {
                fabric.sleep(LOOK_EVERY).await;
                now = fabric.now();
            } else {
                let began = now;
                let retries = client.retries();
                if began >= from {
                    self.left.set(self.left.get() - 1);
                }
                let operation = self.operations.next(&mut draws);
                let record = match operation {
                    ClientOperation::Insert => self.records.borrow_mut().insert(),
                    _ => self.records.borrow_mut().chooser.next(&mut draws),
                };
                revision += 1;
                let done = self.operate(&mut client, operation, record, revision % REVISIONS).await;
                now = fabric.now();
                shared.ended.set(shared.ended.get() + 1);
                failures = if done.is_ok() { 0 } else { failures + 1 };
                let done = match done {
                    Err(error) if failures >= FAILURES_MAX || !error.is_outcome_unknown() => {
                        return Err(error.into());
                    }
                    other => other.ok(),
                };
                if client.retries() > retries {
                    let within = |at: &&Time| (from..until).contains(*at);
                    self.report.borrow_mut().retries +=
                        client.retried_at().iter().filter(within).count() as u64;
                }
                let before = from.saturating_sub(began);
                if began < until && until <= now {
                    let mut report = self.report.borrow_mut();
                    report.in_flight.push(until - began);
                    report.before_ps += u128::from(before.ps());
                } else if now >= from && now < until {
                    self.count(operation, now - began, before, done);
                }
            }
            if now >= until {
                if self.events_after.get().is_none() {
                    shared.at_end.act();
                    self.events_after.set(self.events());
                }
                break;
            }
        }
        Ok(())
    }

    /// Carries out one operation; gives what its get saw.
    async fn operate(
        &self,
        client: &mut StoreClient<F>,
        operation: ClientOperation,
        record: u64,
        revision: u64,
    ) -> Result<Option<ObservedGet>, KvError> {
        let number = self.records.borrow().key(record);
        let key = StoreKey::from_number(number);
        let mut seen = None;
        if matches!(operation, ClientOperation::Read | ClientOperation::ReadModifyWrite) {
            let placement = client.choose();
            let hits = client.cache_hits();
            let value = client.get_by(placement, key).await?;
            let absent = value.is_none();
            let length = self.options.layout.value_bytes as usize;
            let wrong = value.is_some_and(|value| value.len() != length || !is_value_of(number, &value));
            let cache_hits = client.cache_hits() - hits;
            seen = Some(ObservedGet { placement, absent, wrong, cache_hits });
        }
        if operation != ClientOperation::Read {
            client.put(key, &value_of(number, revision, self.options.layout.value_bytes)).await?;
        }
        if operation == ClientOperation::Insert {
            self.records.borrow_mut().acknowledge(record);
        }
        Ok(seen)
    }

    fn count(&self, operation: ClientOperation, took: Time, before: Time, done: Option<Option<ObservedGet>>) {
        let mut report = self.report.borrow_mut();
        self.last_end.set(self.fabric.now());
        let Some(seen) = done else {
            *report.failures.entry(operation).or_default() += 1;
            return;
        };
        report.record(operation, took, before);
        if let Some(seen) = seen {
            report.absent += u64::from(seen.absent);
            report.wrong += u64::from(seen.wrong);
            *report.gets.entry(seen.placement).or_default() += 1;
            *report.cache_hits.entry(seen.placement).or_default() += seen.cache_hits;
        }
    }
}

/// What a get saw.
struct ObservedGet {
    placement: Placement,
    absent: bool,
    wrong: bool,
    /// 1 where the card's cache served it.
    cache_hits: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn inserts_are_asked_for_once_all_before_them_are_there() {
        let text = "recordcount=10\nrequestdistribution=latest\n";
        let workload = Workload::parse(text, "mine").expect("it is a workload");
        let mut records = Records {
            chooser: KeyChooser::new(&workload),
            loaded: 10,
            next: 10,
            known: 10,
            acknowledged: BTreeSet::new(),
            clients: 3,
            client: 2,
        };
        assert_eq!([records.insert(), records.insert(), records.insert()], [10, 11, 12]);
        records.acknowledge(11);
        assert_eq!(records.known, 10);
        records.acknowledge(10);
        assert_eq!(records.known, 12);
        assert_eq!([records.key(9), records.key(10), records.key(11)], [9, 12, 15]);
    }
}
