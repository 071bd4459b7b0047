//! YCSB property files on a sharded collection.
//!
//! Values tell what they are: 16 hexadecimal digits of a version, then letters that follow from the
//! key, the field and the version. So every read is checked, whether `dataintegrity` is set or not,
//! and an update never writes what is there. Fields shorter than 16 bytes are not checked.
//!
//! One seeded generator draws for all threads, so the operations of a run do not depend on how many
//! there are, but for records that are just being inserted: a draw that meets one is made again.

use crate::MongoError;
use crate::key::ShardKey;
use crate::map::parts;
use crate::router::DocumentRouter;
use bson::{Bson, Document, doc};
use hdrhistogram::Histogram;
use offpath_workload::{
    ClientOperation, FieldLengthChooser, KeyChooser, OperationChooser, ScanLengthChooser, Workload,
};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};
use xxhash_rust::xxh64::xxh64;

/// Documents that are inserted at once while loading.
const BATCH: u64 = 500;
/// Records that split points are taken from, at most.
const SAMPLE: u64 = 1_000_000;
/// Hexadecimal digits of a value's version.
const VERSION: usize = 16;

/// How often one kind of operation was done, and how long it took in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Timing {
    /// Which operation.
    pub operation: ClientOperation,
    /// How often.
    pub count: u64,
    /// The mean time.
    pub mean_us: f64,
    /// Half were faster.
    pub p50_us: u64,
    /// 99 of 100 were faster.
    pub p99_us: u64,
    /// The slowest.
    pub most_us: u64,
}

/// What a run did.
#[derive(Clone, Debug, PartialEq)]
pub struct YcsbReport {
    /// Operations that were done.
    pub operations: u64,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// By operation, those that occurred.
    pub timing: Vec<Timing>,
    /// Requests that each endpoint was sent.
    pub requests: Vec<u64>,
    /// Documents that scans gave.
    pub scanned: u64,
    /// Reads and updates that found no document. Every record that is drawn was inserted, so each of
    /// them is a lost document.
    pub missing: u64,
    /// Values that are not what was written.
    pub wrong: u64,
}

/// A value of `length` bytes.
fn value(key: &str, field: u64, version: u64, length: u64) -> String {
    let mut text = format!("{version:016x}");
    let mut state = ChaCha8Rng::seed_from_u64(xxh64(key.as_bytes(), field) ^ version);
    while (text.len() as u64) < length {
        let mut word = state.next_u64();
        for _ in 0..13 {
            text.push(char::from(b'a' + (word % 26) as u8));
            word /= 26;
        }
    }
    text.truncate(length as usize);
    text
}

/// Values of a document that are not what was written.
fn wrong_values(document: &Document) -> u64 {
    let Ok(key) = document.get_str("_id") else { return 1 };
    let wrong = |(name, found): (&String, &Bson)| {
        let Some(field) = name.strip_prefix("field").and_then(|field| field.parse().ok()) else {
            return false;
        };
        let Bson::String(found) = found else { return true };
        let Some(version) = found.get(..VERSION) else { return false };
        u64::from_str_radix(version, 16)
            .map_or(true, |version| *found != value(key, field, version, found.len() as u64))
    };
    document.iter().filter(|pair| wrong(*pair)).count() as u64
}

fn fields(workload: &Workload, key: &str, version: u64, random: &mut impl Rng) -> Document {
    let lengths = FieldLengthChooser::new(workload);
    (0..workload.field_count)
        .map(|field| (format!("field{field}"), value(key, field, version, lengths.next(random)).into()))
        .collect()
}

fn record(workload: &Workload, number: u64, random: &mut impl Rng) -> Document {
    let key = workload.key_name(number);
    let mut document = doc! { "_id": key.as_str() };
    document.extend(fields(workload, &key, 0, random));
    document
}

/// Split points that give endpoints their shares of the records of `workload`.
pub fn splits(workload: &Workload, weights: &[f64]) -> Result<Vec<ShardKey>, MongoError> {
    let step = workload.record_count.div_ceil(SAMPLE);
    let mut names: Vec<String> =
        (0..workload.record_count).step_by(step as usize).map(|number| workload.key_name(number)).collect();
    names.sort_unstable();
    let mut rank = 0;
    let parts = parts(weights, names.len() as u64)?;
    let last = parts.len().saturating_sub(1);
    // Behind the last record: the endpoints from there on have no weight.
    let split = parts[..last].iter().map_while(|part| {
        rank += part;
        names.get(rank as usize).map(|name| ShardKey::Text(name.clone()))
    });
    Ok(split.collect())
}

/// Inserts the records of `workload`; how many, and in how many seconds.
pub fn load(
    router: &DocumentRouter,
    workload: &Workload,
    threads: usize,
    seed: u64,
    report: &(dyn Fn(u64) + Sync),
) -> Result<(u64, f64), MongoError> {
    let began = Instant::now();
    let next = Mutex::new(workload.insert_start);
    let end = workload.insert_start + workload.insert_count;
    in_threads(threads, |_| {
        loop {
            let from = {
                let mut next = next.lock().unwrap_or_else(PoisonError::into_inner);
                let from = *next;
                *next = end.min(from + BATCH);
                from
            };
            if from >= end {
                return Ok(());
            }
            // Each batch has a generator of its own, so that threads do not change what is loaded.
            let mut random = ChaCha8Rng::seed_from_u64(seed ^ from);
            let to = end.min(from + BATCH);
            router.insert_many((from..to).map(|number| record(workload, number, &mut random)).collect())?;
            report(to);
        }
    })?;
    Ok((workload.insert_count, began.elapsed().as_secs_f64()))
}

fn in_threads<T: Send>(
    threads: usize,
    work: impl Fn(usize) -> Result<T, MongoError> + Sync,
) -> Result<Vec<T>, MongoError> {
    thread::scope(|scope| {
        let work = &work;
        let workers: Vec<_> = (0..threads.max(1)).map(|index| scope.spawn(move || work(index))).collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    })
}

struct Draws {
    random: ChaCha8Rng,
    operations: OperationChooser,
    keys: KeyChooser,
    scans: ScanLengthChooser,
    inserting: BTreeSet<u64>,
    drawn: u64,
}

struct Task {
    index: u64,
    operation: ClientOperation,
    record: u64,
    scan_length: u64,
    seed: u64,
}

impl Draws {
    fn next(&mut self) -> Task {
        let operation = self.operations.next(&mut self.random);
        let record = if operation == ClientOperation::Insert {
            let record = self.keys.insert();
            self.inserting.insert(record);
            record
        } else {
            loop {
                let record = self.keys.next(&mut self.random);
                if !self.inserting.contains(&record) {
                    break record;
                }
            }
        };
        let scan_length =
            if operation == ClientOperation::Scan { self.scans.next(&mut self.random) } else { 0 };
        self.drawn += 1;
        Task { index: self.drawn - 1, operation, record, scan_length, seed: self.random.next_u64() }
    }
}

#[derive(Default)]
struct Tally {
    timing: BTreeMap<ClientOperation, Histogram<u64>>,
    scanned: u64,
    missing: u64,
    wrong: u64,
}

impl Tally {
    fn read(&mut self, found: Option<Document>) {
        match found {
            Some(document) => self.wrong += wrong_values(&document),
            None => self.missing += 1,
        }
    }
}

/// Runs `operations` operations of `workload` on `threads` threads; the records have been loaded.
pub fn run(
    router: &DocumentRouter,
    workload: &Workload,
    operations: u64,
    threads: usize,
    seed: u64,
) -> Result<YcsbReport, MongoError> {
    let draws = Mutex::new(Draws {
        random: ChaCha8Rng::seed_from_u64(seed),
        operations: OperationChooser::new(workload),
        keys: KeyChooser::new(workload),
        scans: ScanLengthChooser::new(workload),
        inserting: BTreeSet::new(),
        drawn: 0,
    });
    let draws = || draws.lock().unwrap_or_else(PoisonError::into_inner);
    let before = router.requests();
    let began = Instant::now();
    let tallies = in_threads(threads, |_| {
        let mut tally = Tally::default();
        loop {
            let task = {
                let mut draws = draws();
                if draws.drawn >= operations {
                    return Ok(tally);
                }
                draws.next()
            };
            if workload.target_operations_per_second > 0 {
                let due = task.index as f64 / workload.target_operations_per_second as f64;
                thread::sleep(
                    (began + Duration::from_secs_f64(due)).saturating_duration_since(Instant::now()),
                );
            }
            let from = Instant::now();
            let done = carry_out(router, workload, &task, &mut tally);
            let took = from.elapsed().as_micros() as u64;
            if task.operation == ClientOperation::Insert {
                draws().inserting.remove(&task.record);
            }
            done?;
            let histogram = tally.timing.entry(task.operation).or_insert_with(histogram);
            histogram.saturating_record(took.max(1));
        }
    })?;
    let seconds = began.elapsed().as_secs_f64();
    let mut all = Tally::default();
    for tally in tallies {
        for (operation, part) in tally.timing {
            let whole = all.timing.entry(operation).or_insert_with(histogram);
            whole.add(&part).expect("histograms of the same bounds");
        }
        all.scanned += tally.scanned;
        all.missing += tally.missing;
        all.wrong += tally.wrong;
    }
    let timing = all.timing.iter().map(|(operation, histogram)| Timing {
        operation: *operation,
        count: histogram.len(),
        mean_us: histogram.mean(),
        p50_us: histogram.value_at_quantile(0.5),
        p99_us: histogram.value_at_quantile(0.99),
        most_us: histogram.max(),
    });
    Ok(YcsbReport {
        operations,
        seconds,
        timing: timing.collect(),
        requests: router.requests().iter().zip(before).map(|(now, before)| now - before).collect(),
        scanned: all.scanned,
        missing: all.missing,
        wrong: all.wrong,
    })
}

/// Microseconds up to ten minutes, to three digits.
fn histogram() -> Histogram<u64> {
    Histogram::new_with_bounds(1, 600_000_000, 3).expect("bounds that a histogram can have")
}

fn carry_out(
    router: &DocumentRouter,
    workload: &Workload,
    task: &Task,
    tally: &mut Tally,
) -> Result<(), MongoError> {
    let mut random = ChaCha8Rng::seed_from_u64(task.seed);
    let name = workload.key_name(task.record);
    let key = ShardKey::Text(name.clone());
    let one = format!("field{}", random.next_u64() % workload.field_count.max(1));
    let wanted: Vec<&str> = if workload.read_all_fields { Vec::new() } else { vec![&one] };
    let update = |tally: &mut Tally, random: &mut ChaCha8Rng| {
        // Version 0 is what was loaded, and an update changes it.
        let mut written = fields(workload, &name, random.next_u64() | 1, random);
        if !workload.write_all_fields {
            let value = written.remove(&one).unwrap_or(Bson::Null);
            written = doc! { one.as_str(): value };
        }
        if !router.update(&key, doc! { "$set": written })? {
            tally.missing += 1;
        }
        Ok(())
    };
    match task.operation {
        ClientOperation::Read => {
            let found = router.find(&key, &wanted)?;
            tally.read(found);
            Ok(())
        }
        ClientOperation::Update => update(tally, &mut random),
        ClientOperation::Insert => router.insert(record(workload, task.record, &mut random)),
        ClientOperation::Scan => {
            let found = router.scan(&key, task.scan_length as usize, &wanted)?;
            // The record that a scan begins at is there, so it gives at least that.
            let first = found.first().and_then(|first| first.get_str("_id").ok());
            if task.scan_length > 0 && first != Some(&name) {
                tally.missing += 1;
            }
            tally.scanned += found.len() as u64;
            tally.wrong += found.iter().map(wrong_values).sum::<u64>();
            Ok(())
        }
        ClientOperation::ReadModifyWrite => {
            let found = router.find(&key, &wanted)?;
            tally.read(found);
            update(tally, &mut random)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(more: &str) -> Workload {
        let text = format!("recordcount=1000\noperationcount=100\nreadproportion=1\n{more}");
        Workload::parse(&text, "mine").expect("a workload")
    }

    #[test]
    fn values_tell_what_they_are() {
        let workload = workload("");
        let mut random = ChaCha8Rng::seed_from_u64(1);
        let mut document = record(&workload, 7, &mut random);
        assert_eq!(document.len(), 11);
        assert_eq!(document.get_str("field9").unwrap().len(), 100);
        assert_eq!(wrong_values(&document), 0);
        let other = value(&workload.key_name(7), 3, 9, 100);
        document.insert("field3", other.as_str());
        assert_eq!(wrong_values(&document), 0, "another version is a value too");
        document.insert("field4", other);
        document.insert("field5", "0".repeat(100));
        document.insert("field6", 1);
        assert_eq!(wrong_values(&document), 3);
        document.insert("_id", workload.key_name(8));
        assert_eq!(wrong_values(&document), 10);
    }

    #[test]
    fn splits_give_shares_of_the_records() {
        for order in ["hashed", "ordered"] {
            let workload = workload(&format!("insertorder={order}\nzeropadding=19"));
            let splits = splits(&workload, &[3.0, 0.0, 1.0]).unwrap();
            assert_eq!(splits[0], splits[1], "no weight, no keys");
            let below =
                (0..1000).filter(|number| ShardKey::Text(workload.key_name(*number)) < splits[0]).count();
            assert_eq!(below, 750, "{order}");
        }
        assert!(splits(&workload(""), &[1.0, 0.0]).unwrap().is_empty());
    }

    #[test]
    fn draws_depend_on_the_seed_alone() {
        let workload = workload("insertproportion=1\nscanproportion=1\nrequestdistribution=latest");
        let draws = || Draws {
            random: ChaCha8Rng::seed_from_u64(5),
            operations: OperationChooser::new(&workload),
            keys: KeyChooser::new(&workload),
            scans: ScanLengthChooser::new(&workload),
            inserting: BTreeSet::new(),
            drawn: 0,
        };
        let (mut one, mut two) = (draws(), draws());
        let mut inserted = BTreeSet::new();
        for _ in 0..500 {
            let (a, b) = (one.next(), two.next());
            assert_eq!(
                (a.operation, a.record, a.scan_length, a.seed),
                (b.operation, b.record, b.scan_length, b.seed)
            );
            match a.operation {
                ClientOperation::Insert => assert!(inserted.insert(a.record)),
                _ => assert!(!inserted.contains(&a.record), "it is still being inserted"),
            }
        }
    }
}
