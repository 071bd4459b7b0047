//! YCSB against the store.

use super::client::{Client, Key};
use super::layout::hash;
use super::{KvError, Options, Splitter};
use offpath_fabric::Fabric;
use offpath_quantity::Time;
use offpath_workload::{KeyChooser, Operation, OperationChooser, Workload};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;

/// The value that revision `revision` of a record has: its bytes follow from both, so that a wrong or
/// mixed value shows.
pub fn value_of(record: u64, revision: u64, length: u32) -> Vec<u8> {
    let mut word = hash(record ^ hash(revision));
    let mut value = Vec::with_capacity(length as usize);
    while value.len() < length as usize {
        value.extend_from_slice(&word.to_le_bytes());
        word = hash(word);
    }
    value.truncate(length as usize);
    value
}

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

/// What sessions of one client share while they are driven, and what a caller reads meanwhile.
#[derive(Default)]
pub struct Shared {
    /// Operations that ended.
    pub ended: Cell<u64>,
    /// Sessions that are connected.
    pub connected: Cell<u32>,
    /// Set to end the run: sessions stop after their operation.
    pub stop: Cell<bool>,
    /// Sessions whose number is not below it wait, so that a load can be raised and lowered.
    pub active: Cell<u32>,
    /// Called at each end with the time that the operation took.
    pub watch: RefCell<Option<Box<Watch>>>,
}

/// What hears of an operation's end: when, and how long it took.
pub type Watch = dyn Fn(Time, Time);

/// What a session did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Driven {
    /// Gets.
    pub reads: u64,
    /// Puts, by update or insert.
    pub writes: u64,
    /// Gets of records that are not there.
    pub absent: u64,
    /// Gets whose value no revision of the record has.
    pub wrong: u64,
    /// Gets that read again.
    pub retries: u64,
    /// All operations' time, which over their number is the mean latency.
    pub time: Time,
}

/// Why a workload was not run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriveError {
    /// The store hashes its keys.
    #[error("the workload has scans, and a hashed store has no order to scan in; set `scanproportion=0`")]
    Scan,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] KvError),
}

/// Runs up to `operations` operations of `workload` in one session. Records are numbered from 0 and record
/// n has key n. Values are [`value_of`] a revision, and are checked where the workload only reads.
pub async fn drive<F: Fabric>(
    fabric: &F,
    options: &Options,
    workload: &Workload,
    session: u32,
    operations: u64,
    splitter: Option<Rc<Splitter>>,
    shared: &Shared,
) -> Result<Driven, DriveError> {
    if workload.mix.share(Operation::Scan) > 0.0 {
        return Err(DriveError::Scan);
    }
    let mut client = Client::connect(fabric, options).await?;
    if let Some(splitter) = splitter {
        client = client.split_by(splitter);
        client.reconnect().await?;
    }
    shared.connected.set(shared.connected.get() + 1);
    let mut draws = Draws(fabric.rng(&format!("session {session}")));
    let chooser = OperationChooser::new(workload);
    let mut keys = KeyChooser::new(workload);
    let reads_only = workload.mix.share(Operation::Read) == 1.0;
    let length = options.layout.value_bytes;
    let mut driven = Driven::default();
    let mut revision = u64::from(session) << 40;
    while driven.reads + driven.writes < operations && !shared.stop.get() {
        if session >= shared.active.get() {
            fabric.sleep(Time::from_us(20)).await;
            continue;
        }
        let operation = chooser.next(&mut draws);
        let began = fabric.now();
        let record = if operation == Operation::Insert { keys.insert() } else { keys.next(&mut draws) };
        let key = Key::from_number(record);
        if matches!(operation, Operation::Read | Operation::ReadModifyWrite) {
            driven.reads += 1;
            match client.get(key).await? {
                None => driven.absent += 1,
                Some(value) if reads_only && value != value_of(record, 0, length) => driven.wrong += 1,
                Some(_) => {}
            }
        }
        if operation != Operation::Read {
            driven.writes += 1;
            revision += 1;
            client.put(key, &value_of(record, revision, length)).await?;
        }
        let took = fabric.now() - began;
        driven.time += took;
        shared.ended.set(shared.ended.get() + 1);
        if let Some(watch) = &*shared.watch.borrow() {
            watch(fabric.now(), took);
        }
    }
    driven.retries = client.retries();
    Ok(driven)
}
