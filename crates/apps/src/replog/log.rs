//! The log in files: segments of checked frames, of which a crash may tear the last.

use super::{LogError, Options, Planted, SyncPolicy};
use crate::pool::KeyLocks;
use offpath_fabric::{Fabric, File, FileError, FileMode};
use std::cell::{Cell, RefCell};

/// The first bytes of every segment.
const MAGIC: u64 = u64::from_le_bytes(*b"offpthlg");
/// The format that this code reads and writes.
const FORMAT: u32 = 1;
const SEGMENT_HEADER: u64 = 24;
/// Length, checksum, sequence.
const FRAME_HEADER: u64 = 16;
const LOCK: &str = "lock";
const PREFIX: &str = "segment-";

/// Where an entry lies.
#[derive(Clone, Copy)]
struct Place {
    segment: usize,
    offset: u64,
    length: u32,
}

struct Segment<File> {
    name: String,
    file: std::rc::Rc<File>,
    length: u64,
}

/// An append-only log of one writer. Entries are numbered from 1.
pub struct Log<F: Fabric> {
    fabric: F,
    segment_bytes: u64,
    policy: SyncPolicy,
    planted: Option<Planted>,
    /// Holds the lock while the log is open.
    _lock: F::File,
    segments: RefCell<Vec<Segment<F::File>>>,
    places: RefCell<Vec<Place>>,
    unsynced: Cell<u32>,
    turn: KeyLocks,
}

fn half(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn word(bytes: &[u8], at: usize) -> u64 {
    u64::from(half(bytes, at)) | u64::from(half(bytes, at + 4)) << 32
}

fn sum(sequence: u64, payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&sequence.to_le_bytes());
    hasher.update(payload);
    hasher.finalize()
}

fn segment_header(first: u64) -> [u8; SEGMENT_HEADER as usize] {
    let mut bytes = [0; SEGMENT_HEADER as usize];
    bytes[..8].copy_from_slice(&MAGIC.to_le_bytes());
    bytes[8..12].copy_from_slice(&FORMAT.to_le_bytes());
    bytes[16..24].copy_from_slice(&first.to_le_bytes());
    let check = crc32fast::hash(&[&bytes[..12], &bytes[16..]].concat());
    bytes[12..16].copy_from_slice(&check.to_le_bytes());
    bytes
}

impl<F: Fabric> Log<F> {
    /// Opens the log of this role, or begins one. The end of the last segment that a crash tore is cut
    /// off; damage anywhere else is refused, and changes nothing. A second writer is refused.
    pub async fn open(fabric: &F, options: &Options) -> Result<Log<F>, LogError> {
        let lock = fabric.file(LOCK, FileMode::OpenOrCreate).await?;
        lock.lock().await.map_err(|error| match error {
            FileError::Locked { .. } => LogError::TwoWriters { role: fabric.role().to_string() },
            other => other.into(),
        })?;
        let log = Log {
            fabric: fabric.clone(),
            segment_bytes: options.segment_bytes,
            policy: options.sync,
            planted: options.planted,
            _lock: lock,
            segments: RefCell::default(),
            places: RefCell::default(),
            unsynced: Cell::new(0),
            turn: KeyLocks::default(),
        };
        let names = fabric.list(PREFIX).await?;
        let last = names.len().saturating_sub(1);
        for (index, name) in names.iter().enumerate() {
            log.recover(name, index == last).await?;
        }
        // What was recovered was perhaps never synced, and counts from here on.
        log.sync().await?;
        Ok(log)
    }

    fn plants(&self, bug: Planted) -> bool {
        self.planted == Some(bug)
    }

    async fn recover(&self, name: &str, is_last: bool) -> Result<(), LogError> {
        let file = self.fabric.file(name, FileMode::Open).await?;
        let length = file.length().await?;
        let mut bytes = vec![0; length as usize];
        let count = file.read_at(0, &mut bytes).await?;
        bytes.truncate(count);
        let next = self.last() + 1;
        let corrupt = |offset| LogError::Corrupt { file: name.to_string(), offset };
        let whole = bytes.len() >= SEGMENT_HEADER as usize && bytes[..24] == segment_header(next);
        if !whole {
            if bytes.len() >= 12 && word(&bytes, 0) == MAGIC && half(&bytes, 8) != FORMAT {
                return Err(LogError::Format {
                    file: name.to_string(),
                    found: half(&bytes, 8),
                    known: FORMAT,
                });
            }
            if !is_last {
                return Err(corrupt(0));
            }
            // The crash came between the creation of the segment and its first sync.
            drop(file);
            self.fabric.remove(name).await?;
            self.fabric.sync_directory().await?;
            return Ok(());
        }
        let segment = self.segments.borrow().len();
        let mut at = SEGMENT_HEADER as usize;
        let unchecked = self.plants(Planted::NoFrameChecksum);
        while let Some(head) = bytes.get(at..at + FRAME_HEADER as usize) {
            let (length, check, sequence) = (half(head, 0), half(head, 4), word(head, 8));
            let begin = at + FRAME_HEADER as usize;
            let Some(payload) = bytes.get(begin..begin + length as usize) else { break };
            if sequence != self.last() + 1 || (sum(sequence, payload) != check && !unchecked) {
                break;
            }
            self.places.borrow_mut().push(Place { segment, offset: at as u64, length });
            at = begin + length as usize;
        }
        if at < bytes.len() {
            if !is_last {
                return Err(corrupt(at as u64));
            }
            file.truncate(at as u64).await?;
            file.sync().await?;
        }
        if is_last && at == SEGMENT_HEADER as usize {
            // A replica that never began this segment has no file of it.
            drop(file);
            self.fabric.remove(name).await?;
            self.fabric.sync_directory().await?;
            return Ok(());
        }
        let segment = Segment { name: name.to_string(), file: file.into(), length: at as u64 };
        self.segments.borrow_mut().push(segment);
        Ok(())
    }

    /// The number of the last entry; 0 where there is none.
    pub fn last(&self) -> u64 {
        self.places.borrow().len() as u64
    }

    /// Appends `payload` and, as the policy says, makes it survive a crash. Gives its number.
    pub async fn append(&self, payload: &[u8]) -> Result<u64, LogError> {
        let _turn = self.turn.lock(0).await;
        let sequence = self.last() + 1;
        self.append_in_turn(sequence, payload).await?;
        Ok(sequence)
    }

    /// Appends entry `sequence` unless the log has it; refused where one before it is missing.
    pub async fn append_as(&self, sequence: u64, payload: &[u8]) -> Result<(), LogError> {
        let _turn = self.turn.lock(0).await;
        if sequence <= self.last() && !self.plants(Planted::NoDuplicateCheck) {
            return Ok(());
        }
        if sequence > self.last() + 1 {
            return Err(LogError::Gap { sequence, last: self.last() });
        }
        let sequence = self.last() + 1;
        self.append_in_turn(sequence, payload).await
    }

    async fn append_in_turn(&self, sequence: u64, payload: &[u8]) -> Result<(), LogError> {
        let full = self.segments.borrow().last().is_none_or(|segment| segment.length >= self.segment_bytes);
        if full {
            self.roll(sequence).await?;
        }
        let (file, offset, index) = {
            let segments = self.segments.borrow();
            let Some(segment) = segments.last() else { return Ok(()) };
            (segment.file.clone(), segment.length, segments.len() - 1)
        };
        let mut frame = Vec::with_capacity(FRAME_HEADER as usize + payload.len());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&sum(sequence, payload).to_le_bytes());
        frame.extend_from_slice(&sequence.to_le_bytes());
        frame.extend_from_slice(payload);
        // Written where the last whole frame ends: what a failed write left is overwritten.
        file.write_at(offset, &frame).await?;
        self.unsynced.set(self.unsynced.get() + 1);
        let due = match self.policy {
            SyncPolicy::Always => true,
            SyncPolicy::Every(count) => self.unsynced.get() >= count.max(1),
            SyncPolicy::Never => false,
        };
        if due && !self.plants(Planted::MissingSync) {
            file.sync().await?;
            self.unsynced.set(0);
        }
        if let Some(segment) = self.segments.borrow_mut().last_mut() {
            segment.length = offset + frame.len() as u64;
        }
        self.places.borrow_mut().push(Place { segment: index, offset, length: payload.len() as u32 });
        Ok(())
    }

    /// Begins a segment, so that entry `first` is its first. The one before is whole on the disk first,
    /// whatever the policy, so that only the last segment can be torn.
    async fn roll(&self, first: u64) -> Result<(), LogError> {
        let before = self.segments.borrow().last().map(|segment| segment.file.clone());
        if let Some(file) = before {
            file.sync().await?;
        }
        let name = format!("{PREFIX}{first:020}");
        let file = self.fabric.file(&name, FileMode::OpenOrCreate).await?;
        file.truncate(0).await?;
        file.write_at(0, &segment_header(first)).await?;
        file.sync().await?;
        self.fabric.sync_directory().await?;
        let segment = Segment { name, file: file.into(), length: SEGMENT_HEADER };
        self.segments.borrow_mut().push(segment);
        Ok(())
    }

    /// Entry `sequence`.
    pub async fn read(&self, sequence: u64) -> Result<Vec<u8>, LogError> {
        let place = self.places.borrow().get((sequence as usize).wrapping_sub(1)).copied();
        let Some(place) = place else { return Err(LogError::Gap { sequence, last: self.last() }) };
        let (file, name) = {
            let segments = self.segments.borrow();
            let segment = &segments[place.segment];
            (segment.file.clone(), segment.name.clone())
        };
        let mut frame = vec![0; FRAME_HEADER as usize + place.length as usize];
        let count = file.read_at(place.offset, &mut frame).await?;
        let payload = frame.split_off(FRAME_HEADER as usize);
        if count < FRAME_HEADER as usize + payload.len()
            || (sum(sequence, &payload) != half(&frame, 4) && !self.plants(Planted::NoFrameChecksum))
        {
            return Err(LogError::Corrupt { file: name, offset: place.offset });
        }
        Ok(payload)
    }

    /// Cuts off every entry after `last`.
    pub async fn truncate_after(&self, last: u64) -> Result<(), LogError> {
        let _turn = self.turn.lock(0).await;
        let cut = self.places.borrow().get(last as usize).copied();
        let Some(cut) = cut else { return Ok(()) };
        self.places.borrow_mut().truncate(last as usize);
        // From the end on, so that a crash in between leaves a log without a hole.
        loop {
            let gone = {
                let mut segments = self.segments.borrow_mut();
                if segments.len() <= cut.segment + 1 { None } else { segments.pop() }
            };
            let Some(gone) = gone else { break };
            self.fabric.remove(&gone.name).await?;
            self.fabric.sync_directory().await?;
        }
        let file = self.segments.borrow()[cut.segment].file.clone();
        file.truncate(cut.offset).await?;
        file.sync().await?;
        self.segments.borrow_mut()[cut.segment].length = cut.offset;
        if cut.offset == SEGMENT_HEADER {
            // A replica that never began this segment has no file of it.
            let gone = self.segments.borrow_mut().pop();
            if let Some(gone) = gone {
                self.fabric.remove(&gone.name).await?;
                self.fabric.sync_directory().await?;
            }
        }
        Ok(())
    }

    /// Makes every entry so far survive a crash, whatever the policy.
    pub async fn sync(&self) -> Result<(), LogError> {
        let file = self.segments.borrow().last().map(|segment| segment.file.clone());
        if let Some(file) = file {
            file.sync().await?;
        }
        self.unsynced.set(0);
        Ok(())
    }

    /// The names and bytes of all segments.
    pub async fn files(fabric: &F) -> Result<Vec<(String, Vec<u8>)>, LogError> {
        let mut all = Vec::new();
        for name in fabric.list(PREFIX).await? {
            let file = fabric.file(&name, FileMode::Open).await?;
            let mut bytes = vec![0; file.length().await? as usize];
            file.read_at(0, &mut bytes).await?;
            all.push((name, bytes));
        }
        Ok(all)
    }
}

/// The entries of segment files, in order, by their frames alone.
pub fn entries(files: &[(String, Vec<u8>)]) -> Vec<Vec<u8>> {
    let mut all = Vec::new();
    for (_, bytes) in files {
        let mut at = SEGMENT_HEADER as usize;
        while let Some(head) = bytes.get(at..at + FRAME_HEADER as usize) {
            let begin = at + FRAME_HEADER as usize;
            let Some(payload) = bytes.get(begin..begin + half(head, 0) as usize) else { break };
            all.push(payload.to_vec());
            at = begin + payload.len();
        }
    }
    all
}
