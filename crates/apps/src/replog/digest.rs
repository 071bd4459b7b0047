//! The files that the log's entries belong to, and how far they have been applied.

use super::log::Log;
use super::{Digestion, LogBug, LogConfig, LogCosts, LogError, at_rate};
use crate::pool::Change;
use offpath_fabric::{Fabric, File, FileError, FileMode, Work};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Before the name of every file of the store, so that none meets a file of the log.
const PREFIX: &str = "file-";
/// The file that holds the last entry that was digested.
const POSITION: &str = "digested";
/// Entries that are applied before their files are synced.
pub(super) const BATCH: usize = 16;
/// The longest name of a file, in bytes.
pub const NAME_BYTES: usize = 54;
/// What a record adds to its bytes at most: offset, length of the name, name.
pub(super) const RECORD_BYTES: u64 = 10 + NAME_BYTES as u64;
/// The longest file, 1 TiB: what comes after it is a mistake that would stop digestion for good.
const FILE_BYTES: u64 = 1 << 40;

/// Bytes of a file at a place: what an entry of a digested log is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileRecord<'a> {
    /// The file.
    pub file: &'a str,
    /// Where its bytes begin.
    pub offset: u64,
    /// The bytes.
    pub bytes: &'a [u8],
}

impl<'a> FileRecord<'a> {
    pub(super) fn check(&self) -> Result<(), LogError> {
        let FileRecord { file, offset, bytes } = self;
        if file.is_empty() || file.len() > NAME_BYTES || file.contains(['/', '\\', '\0']) {
            return Err(LogError::FileName { name: (*file).to_string() });
        }
        let end = offset.saturating_add(bytes.len() as u64);
        if end > FILE_BYTES {
            return Err(LogError::Shape { what: "file's last byte", value: end, bound: "1 TiB at most" });
        }
        Ok(())
    }

    pub(super) fn to_entry(self) -> Vec<u8> {
        let mut entry = Vec::with_capacity(RECORD_BYTES as usize + self.bytes.len());
        entry.extend_from_slice(&self.offset.to_le_bytes());
        entry.extend_from_slice(&(self.file.len() as u16).to_le_bytes());
        entry.extend_from_slice(self.file.as_bytes());
        entry.extend_from_slice(self.bytes);
        entry
    }

    /// The record that an entry is; `None` where it is none.
    pub fn from_entry(entry: &'a [u8]) -> Option<FileRecord<'a>> {
        let (offset, rest) = entry.split_first_chunk::<8>()?;
        let (length, rest) = rest.split_first_chunk::<2>()?;
        let (name, bytes) = rest.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
        let record =
            FileRecord { file: std::str::from_utf8(name).ok()?, offset: u64::from_le_bytes(*offset), bytes };
        record.check().ok().map(|()| record)
    }
}

/// Replaces file `name` by numbers in one step, so that a crash leaves the old ones or the new ones.
pub(super) async fn keep_numbers<F: Fabric>(
    fabric: &F,
    name: &str,
    numbers: &[u64],
    costs: &LogCosts,
) -> Result<(), LogError> {
    let next = format!("{name}-next");
    let file = fabric.file(&next, FileMode::OpenOrCreate).await?;
    file.truncate(0).await?;
    let mut bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    bytes.extend_from_slice(&crc32fast::hash(&bytes).to_le_bytes());
    file.write_at(0, &bytes).await?;
    pause::<F>(fabric, costs.sync).await;
    file.sync().await?;
    fabric.rename(&next, name).await?;
    fabric.sync_directory().await?;
    Ok(())
}

/// The numbers in file `name`, none where there is no such file yet.
pub(super) async fn kept_numbers<F: Fabric>(fabric: &F, name: &str) -> Result<Vec<u64>, LogError> {
    let file = match fabric.file(name, FileMode::Open).await {
        Err(FileError::NotFound { .. }) => return Ok(Vec::new()),
        file => file?,
    };
    let mut bytes = vec![0; file.length().await? as usize];
    let count = file.read_at(0, &mut bytes).await?;
    let whole = bytes[..count].split_last_chunk::<4>();
    match whole {
        Some((numbers, check))
            if numbers.len() % 8 == 0 && crc32fast::hash(numbers).to_le_bytes() == *check =>
        {
            let number = |bytes: &[u8]| bytes.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte));
            Ok(numbers.chunks(8).map(number).collect())
        }
        _ => Err(LogError::Corrupt { file: name.to_string(), offset: 0 }),
    }
}

async fn pause<F: Fabric>(fabric: &F, span: Time) {
    if span > Time::ZERO {
        fabric.sleep(span).await;
    }
}

/// The files of a digested log at one role.
///
/// Entries are applied in order, each to the place that it names, and the position is kept after the
/// files are synced. Where a crash comes in between, the entries behind the kept position are applied
/// again, which changes nothing.
pub struct DigestedStore<F: Fabric> {
    fabric: F,
    costs: LogCosts,
    injected_bug: Option<LogBug>,
    digested: Cell<u64>,
    /// Whether files were created that the directory may forget.
    created: Cell<bool>,
    open: RefCell<BTreeMap<String, Rc<F::File>>>,
}

impl<F: Fabric> DigestedStore<F> {
    /// Opens the store of this role, or begins one.
    pub async fn open(fabric: &F, options: &LogConfig) -> Result<DigestedStore<F>, LogError> {
        Ok(DigestedStore {
            digested: Cell::new(kept_numbers(fabric, POSITION).await?.first().copied().unwrap_or(0)),
            fabric: fabric.clone(),
            costs: options.costs,
            injected_bug: options.injected_bug,
            created: Cell::new(false),
            open: RefCell::default(),
        })
    }

    /// The last entry that its files have for good; 0 for none.
    pub fn digested(&self) -> u64 {
        self.digested.get()
    }

    /// Applies the entries that follow [`DigestedStore::digested`]. Where it fails, the position stays, and the
    /// same entries may be applied again.
    pub(super) async fn digest(&self, entries: &[Vec<u8>]) -> Result<(), LogError> {
        let upto = self.digested() + entries.len() as u64;
        let early = self.injected_bug == Some(LogBug::DigestedBeforeSync);
        if early {
            keep_numbers(&self.fabric, POSITION, &[upto], &self.costs).await?;
        }
        let mut order: Vec<(u64, &Vec<u8>)> = (self.digested() + 1..).zip(entries).collect();
        if self.injected_bug == Some(LogBug::DigestedOutOfOrder) {
            order.reverse();
        }
        let mut touched = BTreeSet::new();
        for (sequence, entry) in order {
            let Some(record) = FileRecord::from_entry(entry) else {
                return Err(LogError::NoRecord { sequence });
            };
            let cost = at_rate(record.bytes.len() as u64, self.costs.file_bytes_per_second);
            if cost > Time::ZERO {
                self.fabric.compute(Work::Time(cost)).await;
            }
            let known = self.open.borrow().get(record.file).cloned();
            let file = match known {
                Some(file) => file,
                None => {
                    let name = format!("{PREFIX}{}", record.file);
                    let file = Rc::new(self.fabric.file(&name, FileMode::OpenOrCreate).await?);
                    self.created.set(true);
                    self.open.borrow_mut().insert(record.file.to_string(), file.clone());
                    file
                }
            };
            file.write_at(record.offset, record.bytes).await?;
            touched.insert(record.file.to_string());
        }
        for name in touched {
            let file = self.open.borrow().get(&name).cloned();
            if let Some(file) = file {
                pause::<F>(&self.fabric, self.costs.sync).await;
                file.sync().await?;
            }
        }
        if self.created.get() {
            self.fabric.sync_directory().await?;
            self.created.set(false);
        }
        // A store of very many files keeps no more of them open than a process may.
        if self.open.borrow().len() > OPEN_FILES {
            self.open.borrow_mut().clear();
        }
        if !early {
            keep_numbers(&self.fabric, POSITION, &[upto], &self.costs).await?;
        }
        self.digested.set(upto);
        Ok(())
    }

    /// Up to `length` bytes of `file` from `offset`, as far as they were digested; fewer at its end.
    pub async fn read(fabric: &F, file: &str, offset: u64, length: usize) -> Result<Vec<u8>, LogError> {
        let file = fabric.file(&format!("{PREFIX}{file}"), FileMode::Open).await?;
        let mut bytes = vec![0; length];
        let count = file.read_at(offset, &mut bytes).await?;
        bytes.truncate(count);
        Ok(bytes)
    }

    /// The names and bytes of all files.
    pub async fn files(fabric: &F) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let mut all = Vec::new();
        for name in fabric.list(PREFIX).await? {
            let file = fabric.file(&name, FileMode::Open).await?;
            let mut bytes = vec![0; file.length().await? as usize];
            file.read_at(0, &mut bytes).await?;
            all.push((name[PREFIX.len()..].to_string(), bytes));
        }
        Ok(all)
    }
}

/// Files that a store keeps open.
const OPEN_FILES: usize = 128;

/// Which entries are acknowledged: all up to some, and single ones behind.
#[derive(Debug, Default)]
pub(super) struct Confirmed {
    upto: u64,
    behind: BTreeSet<u64>,
}

/// Single entries that are remembered. One that is forgotten is asked for again.
const REMEMBERED: usize = 1024;

impl Confirmed {
    pub(super) fn upto(upto: u64) -> Confirmed {
        Confirmed { upto, behind: BTreeSet::new() }
    }

    pub(super) fn add(&mut self, sequence: u64) {
        if sequence > self.upto {
            self.behind.insert(sequence);
        }
        while self.behind.remove(&(self.upto + 1)) {
            self.upto += 1;
        }
        if self.behind.len() > REMEMBERED {
            self.behind.pop_first();
        }
    }

    pub(super) fn has(&self, sequence: u64) -> bool {
        sequence <= self.upto || self.behind.contains(&sequence)
    }

    /// The last entry up to which none is missing.
    pub(super) fn last(&self) -> u64 {
        self.upto
    }
}

/// Digests the entries of `log` up to `upto` whenever `change` tells of more, and removes what the log
/// need not keep. `spent` hears of the time that it took. Ends where a file fails.
pub(super) async fn digest_log<F: Fabric>(
    log: &Log<F>,
    store: &DigestedStore<F>,
    options: &LogConfig,
    change: &Change,
    upto: impl Fn() -> u64,
    spent: impl Fn(Time),
) -> Result<(), LogError> {
    let truncates = options.digestion == Digestion::Truncate;
    loop {
        change.until(|| (upto() > store.digested()).then_some(())).await;
        let began = log.fabric().now();
        let mut entries = Vec::new();
        for sequence in store.digested() + 1..=upto().min(store.digested() + BATCH as u64) {
            entries.push(log.read(sequence).await?);
        }
        if truncates && options.injects(LogBug::TruncatedBeforeDigested) {
            log.truncate_before(upto()).await?;
        }
        store.digest(&entries).await?;
        if truncates {
            log.truncate_before(store.digested()).await?;
        }
        spent(log.fabric().now() - began);
        change.tell();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_read_back_and_nonsense_is_none() {
        let record = FileRecord { file: "a.txt", offset: 77, bytes: &[1, 2, 3] };
        let entry = record.to_entry();
        assert_eq!(FileRecord::from_entry(&entry), Some(record));
        assert_eq!(FileRecord::from_entry(&entry[..12]), None);
        assert_eq!(FileRecord::from_entry(&[0; 10]), None);
        let name = "n".repeat(NAME_BYTES);
        let longest = FileRecord { file: &name, offset: 0, bytes: &[] };
        assert_eq!(longest.to_entry().len() as u64, RECORD_BYTES);
        for file in ["", "a/b", &"n".repeat(NAME_BYTES + 1)] {
            assert!(matches!(
                FileRecord { file, offset: 0, bytes: &[] }.check(),
                Err(LogError::FileName { .. })
            ));
        }
        let far = FileRecord { file: "a", offset: u64::MAX, bytes: &[1] };
        assert!(matches!(far.check(), Err(LogError::Shape { .. })));
    }
}
