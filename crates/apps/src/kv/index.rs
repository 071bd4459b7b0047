//! The index in its owner's memory: cluster chaining, slots, overflow buckets.

use super::KvError;
use super::layout::{BUCKET_BYTES, BUCKET_KEYS, Bucket, Layout, Pointer};
use offpath_fabric::{Region, RegionError};
use std::collections::VecDeque;

/// The index and what its owner alone knows of it.
pub(super) struct Index<R> {
    region: R,
    layout: Layout,
    /// Overflow buckets that were never chained.
    next_overflow: u64,
    /// Slots that hold no record.
    free: VecDeque<u32>,
    never_used: u64,
}

/// Where the word of a key lies.
#[derive(Clone, Copy)]
pub(super) struct At(u64);

const NEXT: u64 = 48;

pub(super) fn bucket<R: Region>(region: &R, layout: &Layout, number: u64) -> Result<Bucket, RegionError> {
    let mut bytes = [0; BUCKET_BYTES as usize];
    region.read(layout.bucket_offset(number), &mut bytes)?;
    Ok(Bucket::from_bytes(&bytes))
}

impl<R: Region> Index<R> {
    /// An empty index in `region`, whose first line becomes the header.
    pub(super) fn new(region: R, layout: Layout) -> Result<Index<R>, RegionError> {
        region.write(0, &layout.to_bytes())?;
        Ok(Index { region, layout, next_overflow: 0, free: VecDeque::new(), never_used: 0 })
    }

    pub(super) fn find(&self, key: u64) -> Result<Option<(At, Pointer)>, RegionError> {
        let mut number = self.layout.root(key);
        // A chain is never longer than all overflow buckets, so damage cannot make it endless.
        for _ in 0..=self.layout.overflow_buckets {
            let bucket = bucket(&self.region, &self.layout, number)?;
            if let Some((entry, pointer)) = bucket.find(key) {
                return Ok(Some((At(self.pointer_offset(number, entry)), pointer)));
            }
            if bucket.next == 0 {
                return Ok(None);
            }
            number = bucket.next;
        }
        Ok(None)
    }

    fn pointer_offset(&self, number: u64, entry: usize) -> u64 {
        self.layout.bucket_offset(number) + entry as u64 * 16 + 8
    }

    /// Changes the word of a key that is there: one store, the moment of the change.
    pub(super) fn set(&self, at: At, pointer: Pointer) -> Result<(), RegionError> {
        self.region.store(at.0, pointer.to_word())
    }

    /// Takes a key out: one store.
    pub(super) fn remove(&self, at: At) -> Result<(), RegionError> {
        self.region.store(at.0, 0)
    }

    /// Adds a key that is not there. The pointer is stored last, so that a reader sees the entry whole
    /// or not at all.
    pub(super) fn insert(&mut self, key: u64, pointer: Pointer) -> Result<(), KvError> {
        let mut number = self.layout.root(key);
        loop {
            let bucket = bucket(&self.region, &self.layout, number)?;
            let free = (0..BUCKET_KEYS).find(|entry| bucket.entries[*entry].1 == 0);
            if let Some(entry) = free {
                let at = self.pointer_offset(number, entry);
                self.region.store(at - 8, key)?;
                self.region.store(at, pointer.to_word())?;
                return Ok(());
            }
            if bucket.next != 0 {
                number = bucket.next;
                continue;
            }
            if self.next_overflow == self.layout.overflow_buckets {
                return Err(KvError::Full { slots: self.layout.slots });
            }
            let chained = self.layout.root_buckets + self.next_overflow;
            self.next_overflow += 1;
            let at = self.pointer_offset(chained, 0);
            self.region.store(at - 8, key)?;
            self.region.store(at, pointer.to_word())?;
            // It is filled before it is reachable.
            self.region.store(self.layout.bucket_offset(number) + NEXT, chained)?;
            return Ok(());
        }
    }

    /// Takes a free slot, leaving `spare`; `None` where there is none.
    pub(super) fn take_slot(&mut self, spare: u64) -> Option<u32> {
        let left = self.free.len() as u64 + self.layout.slots - self.never_used;
        if left <= spare {
            return None;
        }
        // The slot freed first is used first, since readers may still look at the others.
        self.free.pop_front().or_else(|| {
            self.never_used += 1;
            Some((self.never_used - 1) as u32)
        })
    }

    pub(super) fn free_slot(&mut self, slot: u32) {
        self.free.push_back(slot);
    }

    /// Tells which slots are taken, after a rebuild.
    pub(super) fn set_free(&mut self, free: impl IntoIterator<Item = u32>, never_used: u64) {
        (self.free, self.never_used) = (free.into_iter().collect(), never_used);
    }
}
