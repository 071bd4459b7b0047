//! The log in files: segments of checked frames, of which a crash may tear the last.

use super::{Digestion, LogBug, LogConfig, LogError, SyncPolicy};
use crate::pool::Turn;
use offpath_fabric::{Fabric, File, FileError, FileMode};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::ops::RangeFrom;
use std::rc::Rc;

/// The first bytes of every segment.
const MAGIC: u64 = u64::from_le_bytes(*b"offpthlg");
/// The format that this code reads and writes.
const FORMAT: u32 = 1;
const SEGMENT_HEADER: u64 = 24;
/// Length, checksum, sequence.
const FRAME_HEADER: u64 = 16;
const LOCK: &str = "lock";
const PREFIX: &str = "segment-";

struct SegmentFile<File> {
    name: String,
    file: File,
}

/// Where an entry lies.
struct Place<File> {
    segment: Rc<SegmentFile<File>>,
    offset: u64,
    length: u32,
}

struct Segment<File> {
    /// Its first entry.
    first: u64,
    file: Rc<SegmentFile<File>>,
    length: u64,
}

/// An append-only log of one writer. Entries are numbered from 1.
pub struct Log<F: Fabric> {
    fabric: F,
    segment_bytes: u64,
    policy: SyncPolicy,
    sync_time: Time,
    injected_bug: Option<LogBug>,
    /// Holds the lock while the log is open.
    _lock: F::File,
    segments: RefCell<VecDeque<Segment<F::File>>>,
    places: RefCell<VecDeque<Place<F::File>>>,
    /// Entries that were removed from the front.
    removed: Cell<u64>,
    unsynced: Cell<u32>,
    turn: Turn,
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
    pub async fn open(fabric: &F, options: &LogConfig) -> Result<Log<F>, LogError> {
        let lock = fabric.file(LOCK, FileMode::OpenOrCreate).await?;
        lock.lock().await.map_err(|error| match error {
            FileError::Locked { .. } => LogError::TwoWriters { role: fabric.role().to_string() },
            other => other.into(),
        })?;
        let log = Log {
            fabric: fabric.clone(),
            segment_bytes: options.segment_bytes,
            policy: options.sync,
            sync_time: options.costs.sync,
            injected_bug: options.injected_bug,
            _lock: lock,
            segments: RefCell::default(),
            places: RefCell::default(),
            removed: Cell::new(0),
            unsynced: Cell::new(0),
            turn: Turn::default(),
        };
        let names = fabric.list(PREFIX).await?;
        let last = names.len().saturating_sub(1);
        for (index, name) in names.iter().enumerate() {
            log.recover(name, index == last).await?;
        }
        if log.first() > 1 && options.digestion == Digestion::Off {
            return Err(LogError::Truncated { sequence: 1, first: log.first() });
        }
        // What was recovered was perhaps never synced, and counts from here on.
        log.sync().await?;
        Ok(log)
    }

    fn injects(&self, bug: LogBug) -> bool {
        self.injected_bug == Some(bug)
    }

    /// Makes a file survive a crash, which can come before it has.
    async fn sync_file(&self, file: &F::File) -> Result<(), FileError> {
        if self.sync_time > Time::ZERO {
            self.fabric.sleep(self.sync_time).await;
        }
        file.sync().await
    }

    async fn recover(&self, name: &str, is_last: bool) -> Result<(), LogError> {
        let file = self.fabric.file(name, FileMode::Open).await?;
        let length = file.length().await?;
        let mut bytes = vec![0; length as usize];
        let count = file.read_at(0, &mut bytes).await?;
        bytes.truncate(count);
        // What lies before the first segment was digested and removed.
        let is_first = self.segments.borrow().is_empty();
        let named = name.strip_prefix(PREFIX).and_then(|number| number.parse().ok());
        let next = if is_first { named.unwrap_or(1) } else { self.last() + 1 };
        let corrupt = |offset| LogError::Corrupt { file: name.to_string(), offset };
        if named != Some(next) {
            return Err(corrupt(0));
        }
        let whole = bytes.len() >= SEGMENT_HEADER as usize && bytes[..24] == segment_header(next);
        if !whole {
            if bytes.len() >= 12 && word(&bytes, 0) == MAGIC && half(&bytes, 8) != FORMAT {
                return Err(LogError::Format {
                    file: name.to_string(),
                    found: half(&bytes, 8),
                    known: FORMAT,
                });
            }
            // A segment holds frames only after its header was synced.
            if !is_last || is_first && next > 1 || has_frame(&bytes, next..) {
                return Err(corrupt(0));
            }
            // The crash came between the creation of the segment and its first sync.
            drop(file);
            return self.remove(name).await;
        }
        if is_first {
            self.removed.set(next - 1);
        }
        let segment = Rc::new(SegmentFile { name: name.to_string(), file });
        let mut at = SEGMENT_HEADER as usize;
        let unchecked = self.injects(LogBug::NoFrameChecksum);
        while let Some(head) = bytes.get(at..at + FRAME_HEADER as usize) {
            let (length, check, sequence) = (half(head, 0), half(head, 4), word(head, 8));
            let begin = at + FRAME_HEADER as usize;
            let Some(payload) = bytes.get(begin..begin + length as usize) else { break };
            if sequence != self.last() + 1 || (sum(sequence, payload) != check && !unchecked) {
                break;
            }
            let place = Place { segment: segment.clone(), offset: at as u64, length };
            self.places.borrow_mut().push_back(place);
            at = begin + length as usize;
        }
        if at < bytes.len() {
            // Where every frame is synced before the next, a crash tears the last frame and no other.
            let torn_alone = self.policy == SyncPolicy::Always;
            if !is_last || torn_alone && has_frame(&bytes[at..], self.last() + 2..) {
                return Err(corrupt(at as u64));
            }
            segment.file.truncate(at as u64).await?;
            self.sync_file(&segment.file).await?;
        }
        if is_last && at == SEGMENT_HEADER as usize && !is_first {
            // A replica that never began this segment has no file of it.
            return self.remove(name).await;
        }
        self.segments.borrow_mut().push_back(Segment { first: next, file: segment, length: at as u64 });
        Ok(())
    }

    async fn remove(&self, name: &str) -> Result<(), LogError> {
        self.fabric.remove(name).await?;
        self.fabric.sync_directory().await?;
        Ok(())
    }

    pub(super) fn fabric(&self) -> &F {
        &self.fabric
    }

    /// The number of the first entry that is still there.
    pub fn first(&self) -> u64 {
        self.removed.get() + 1
    }

    /// The number of the last entry; 0 where there never was one.
    pub fn last(&self) -> u64 {
        self.removed.get() + self.places.borrow().len() as u64
    }

    /// Appends `payload` and, as the policy says, makes it survive a crash. Gives its number.
    pub async fn append(&self, payload: &[u8]) -> Result<u64, LogError> {
        let _turn = self.turn.take().await;
        let sequence = self.last() + 1;
        self.append_in_turn(sequence, payload).await?;
        Ok(sequence)
    }

    /// Appends entry `sequence` unless the log has it; refused where one before it is missing.
    pub async fn append_as(&self, sequence: u64, payload: &[u8]) -> Result<(), LogError> {
        let _turn = self.turn.take().await;
        if sequence <= self.last() && !self.injects(LogBug::NoDuplicateCheck) {
            return Ok(());
        }
        if sequence > self.last() + 1 {
            return Err(LogError::Gap { sequence, last: self.last() });
        }
        let sequence = self.last() + 1;
        self.append_in_turn(sequence, payload).await
    }

    async fn append_in_turn(&self, sequence: u64, payload: &[u8]) -> Result<(), LogError> {
        let full = self.segments.borrow().back().is_none_or(|segment| segment.length >= self.segment_bytes);
        if full {
            self.roll(sequence).await?;
        }
        let (segment, offset) = {
            let segments = self.segments.borrow();
            let Some(segment) = segments.back() else { return Ok(()) };
            (segment.file.clone(), segment.length)
        };
        let mut frame = Vec::with_capacity(FRAME_HEADER as usize + payload.len());
        frame.extend_from_slice(&(payload.len() as u32).to_le_bytes());
        frame.extend_from_slice(&sum(sequence, payload).to_le_bytes());
        frame.extend_from_slice(&sequence.to_le_bytes());
        frame.extend_from_slice(payload);
        // Written where the last whole frame ends: what a failed write left is overwritten.
        segment.file.write_at(offset, &frame).await?;
        self.unsynced.set(self.unsynced.get() + 1);
        let due = match self.policy {
            SyncPolicy::Always => true,
            SyncPolicy::Every(count) => self.unsynced.get() >= count.max(1),
            SyncPolicy::Never => false,
        };
        if due && !self.injects(LogBug::MissingSync) {
            self.sync_file(&segment.file).await?;
            self.unsynced.set(0);
        }
        if let Some(segment) = self.segments.borrow_mut().back_mut() {
            segment.length = offset + frame.len() as u64;
        }
        self.places.borrow_mut().push_back(Place { segment, offset, length: payload.len() as u32 });
        Ok(())
    }

    /// Begins a segment, so that entry `first` is its first. The one before is whole on the disk first,
    /// whatever the policy, so that only the last segment can be torn.
    async fn roll(&self, first: u64) -> Result<(), LogError> {
        self.sync().await?;
        let name = format!("{PREFIX}{first:020}");
        let file = self.fabric.file(&name, FileMode::OpenOrCreate).await?;
        file.truncate(0).await?;
        file.write_at(0, &segment_header(first)).await?;
        self.sync_file(&file).await?;
        self.fabric.sync_directory().await?;
        let file = Rc::new(SegmentFile { name, file });
        self.segments.borrow_mut().push_back(Segment { first, file, length: SEGMENT_HEADER });
        Ok(())
    }

    /// Entry `sequence`.
    pub async fn read(&self, sequence: u64) -> Result<Vec<u8>, LogError> {
        if (1..self.first()).contains(&sequence) {
            return Err(LogError::Truncated { sequence, first: self.first() });
        }
        let place = {
            let places = self.places.borrow();
            let index = sequence.wrapping_sub(self.first()) as usize;
            places.get(index).map(|place| (place.segment.clone(), place.offset, place.length))
        };
        let Some((segment, offset, length)) = place else {
            return Err(LogError::Gap { sequence, last: self.last() });
        };
        let mut frame = vec![0; FRAME_HEADER as usize + length as usize];
        let count = segment.file.read_at(offset, &mut frame).await?;
        let payload = frame.split_off(FRAME_HEADER as usize);
        if count < FRAME_HEADER as usize + payload.len()
            || (sum(sequence, &payload) != half(&frame, 4) && !self.injects(LogBug::NoFrameChecksum))
        {
            return Err(LogError::Corrupt { file: segment.name.clone(), offset });
        }
        Ok(payload)
    }

    /// Cuts off every entry after `last`. Refused where entry `last` itself was removed.
    pub async fn truncate_after(&self, last: u64) -> Result<(), LogError> {
        let _turn = self.turn.take().await;
        if last + 1 < self.first() {
            return Err(LogError::Truncated { sequence: last + 1, first: self.first() });
        }
        let kept = (last + 1 - self.first()) as usize;
        let cut = self.places.borrow().get(kept).map(|cut| (cut.segment.clone(), cut.offset));
        let Some((segment, offset)) = cut else { return Ok(()) };
        self.places.borrow_mut().truncate(kept);
        // From the end on, so that a crash in between leaves a log without a hole. A replica that never
        // began a segment has no file of it.
        loop {
            let gone = {
                let mut segments = self.segments.borrow_mut();
                let only = segments.len() == 1 && self.removed.get() > 0;
                if only || segments.back().is_none_or(|segment| segment.first <= last) {
                    break;
                }
                segments.pop_back()
            };
            if let Some(gone) = gone {
                self.remove(&gone.file.name).await?;
            }
        }
        let remains = self.segments.borrow().back().is_some_and(|back| Rc::ptr_eq(&back.file, &segment));
        if remains {
            segment.file.truncate(offset).await?;
            self.sync_file(&segment.file).await?;
            if let Some(segment) = self.segments.borrow_mut().back_mut() {
                segment.length = offset;
            }
        }
        Ok(())
    }

    /// Removes the segments whose entries are all up to `digested`, but never the one of the last entry.
    pub async fn truncate_before(&self, digested: u64) -> Result<(), LogError> {
        let _turn = self.turn.take().await;
        loop {
            let gone = {
                let segments = self.segments.borrow();
                let next = segments.get(1).map_or(u64::MAX, |next| next.first);
                if next > digested.saturating_add(1) || next > self.last() {
                    return Ok(());
                }
                segments[0].file.name.clone()
            };
            // From the front on, each for good before the next, so that no crash leaves a hole.
            self.remove(&gone).await?;
            let mut segments = self.segments.borrow_mut();
            segments.pop_front();
            let first = segments[0].first;
            self.places.borrow_mut().drain(..(first - self.first()) as usize);
            self.removed.set(first - 1);
        }
    }

    /// Makes every entry so far survive a crash, whatever the policy.
    pub async fn sync(&self) -> Result<(), LogError> {
        let segment = self.segments.borrow().back().map(|segment| segment.file.clone());
        if let Some(segment) = segment {
            self.sync_file(&segment.file).await?;
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

/// Whether a whole frame of an entry within `sequences` lies anywhere in `bytes`.
fn has_frame(bytes: &[u8], sequences: RangeFrom<u64>) -> bool {
    let most = sequences.start + bytes.len() as u64 / FRAME_HEADER;
    (0..bytes.len().saturating_sub(FRAME_HEADER as usize)).any(|at| {
        let begin = at + FRAME_HEADER as usize;
        let (head, sequence) = (&bytes[at..begin], word(bytes, at + 8));
        (sequences.start..=most).contains(&sequence)
            && bytes
                .get(begin..begin + half(head, 0) as usize)
                .is_some_and(|payload| sum(sequence, payload) == half(head, 4))
    })
}

/// The entries of segment files by their numbers, by their frames alone.
pub fn entries(files: &[(String, Vec<u8>)]) -> BTreeMap<u64, Vec<u8>> {
    let mut all = BTreeMap::new();
    for (_, bytes) in files {
        let mut at = SEGMENT_HEADER as usize;
        while let Some(head) = bytes.get(at..at + FRAME_HEADER as usize) {
            let begin = at + FRAME_HEADER as usize;
            let Some(payload) = bytes.get(begin..begin + half(head, 0) as usize) else { break };
            all.insert(word(head, 8), payload.to_vec());
            at = begin + payload.len();
        }
    }
    all
}
