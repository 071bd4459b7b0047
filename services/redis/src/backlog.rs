//! The latest bytes of the replication stream, kept once and sent to every replica from the same place.
//!
//! Offsets are the master's: the first byte behind a file with offset 100 is byte 101. Bytes become
//! visible to replicas when they are published, which is when a command has ended.

use std::collections::VecDeque;
use std::io::IoSlice;

/// A piece of the stream in consecutive memory.
#[derive(Debug)]
pub struct StreamBlock {
    /// The offset of its first byte.
    pub start: u64,
    /// Its bytes, up to the capacity it was made with.
    pub data: Vec<u8>,
}

impl StreamBlock {
    /// The offset behind its last byte.
    pub fn end(&self) -> u64 {
        self.start + self.data.len() as u64
    }
}

/// A window on the stream that moves forward.
#[derive(Debug)]
pub struct Backlog {
    blocks: VecDeque<StreamBlock>,
    /// Memory of blocks that have left, to be used again.
    spare: Vec<Vec<u8>>,
    start: u64,
    end: u64,
    published: u64,
    capacity: u64,
    block: usize,
}

impl Backlog {
    /// An empty window before byte `next` that keeps `capacity` bytes.
    pub fn new(next: u64, capacity: u64) -> Backlog {
        let block = (capacity / 4).clamp(4 << 10, 128 << 10) as usize;
        let (blocks, spare) = (VecDeque::new(), Vec::new());
        Backlog { blocks, spare, start: next, end: next, published: next, capacity, block }
    }

    /// The offset of the oldest byte that is kept.
    pub fn start(&self) -> u64 {
        self.start
    }

    /// The offset behind the last byte that was received.
    pub fn end(&self) -> u64 {
        self.end
    }

    /// The offset behind the last byte that replicas may have.
    pub fn published(&self) -> u64 {
        self.published
    }

    /// Bytes that are kept at most, but for one block.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Forgets everything; the next byte is `next`.
    pub fn reset(&mut self, next: u64) {
        while let Some(block) = self.blocks.pop_front() {
            self.recycle(block.data);
        }
        (self.start, self.end, self.published) = (next, next, next);
    }

    fn recycle(&mut self, mut data: Vec<u8>) {
        if self.spare.len() < 2 {
            data.clear();
            self.spare.push(data);
        }
    }

    /// The block that the next bytes go into, with room for at least one. Whatever is appended to it
    /// within its capacity is told to [`Backlog::received`].
    pub fn room(&mut self) -> &mut Vec<u8> {
        let full = self.blocks.back().is_none_or(|block| block.data.len() >= self.block);
        if full {
            let data = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(self.block));
            self.blocks.push_back(StreamBlock { start: self.end, data });
        }
        &mut self.blocks.back_mut().expect("a block was pushed").data
    }

    /// The room that is left in the block of [`Backlog::room`].
    pub fn room_left(&self) -> usize {
        match self.blocks.back() {
            Some(block) if block.data.len() < self.block => self.block - block.data.len(),
            _ => self.block,
        }
    }

    /// Takes over what was appended to the last block, and gives its bytes.
    pub fn received(&mut self) -> &[u8] {
        let Some(block) = self.blocks.back() else { return &[] };
        let from = (self.end - block.start) as usize;
        self.end = block.end();
        &block.data[from..]
    }

    /// Makes everything before `to` visible.
    pub fn publish(&mut self, to: u64) {
        self.published = to.clamp(self.published, self.end);
    }

    /// Cuts off what lies behind `to`, which is a command that its sender never finished.
    pub fn truncate(&mut self, to: u64) {
        let to = to.max(self.start);
        while let Some(block) = self.blocks.back_mut() {
            if block.end() <= to {
                break;
            }
            let keep = to.saturating_sub(block.start) as usize;
            block.data.truncate(keep);
            if keep > 0 {
                break;
            }
            self.blocks.pop_back();
        }
        self.end = self.end.min(to);
        self.published = self.published.min(to);
    }

    /// The oldest block, where the window is larger than its capacity without it.
    pub fn evict(&mut self) -> Option<StreamBlock> {
        let first = self.blocks.front()?;
        if self.end - first.end() < self.capacity || self.published < first.end() {
            return None;
        }
        let block = self.blocks.pop_front()?;
        self.start = block.end();
        Some(block)
    }

    /// Takes the memory of a block that nobody needs.
    pub fn reuse(&mut self, block: StreamBlock) {
        self.recycle(block.data);
    }

    /// The published bytes from `from` on, as slices for one write of 256 KiB at most.
    pub fn slices(&self, from: u64) -> Vec<IoSlice<'_>> {
        const MOST: usize = 256 << 10;
        let mut found = Vec::with_capacity(2);
        if from < self.start || from >= self.published {
            return found;
        }
        let index = self.blocks.partition_point(|block| block.end() <= from);
        let (mut at, mut left) = (from, MOST);
        for block in self.blocks.range(index..) {
            let until = block.end().min(self.published);
            if at >= until || left == 0 {
                break;
            }
            let (low, high) = ((at - block.start) as usize, (until - block.start) as usize);
            let high = high.min(low + left);
            found.push(IoSlice::new(&block.data[low..high]));
            left -= high - low;
            at = block.start + high as u64;
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn push(backlog: &mut Backlog, mut bytes: &[u8]) {
        while !bytes.is_empty() {
            let taken = backlog.room_left().min(bytes.len());
            backlog.room().extend_from_slice(&bytes[..taken]);
            assert_eq!(backlog.received(), &bytes[..taken]);
            bytes = &bytes[taken..];
        }
    }

    fn read(backlog: &Backlog, mut from: u64) -> Vec<u8> {
        let mut out = Vec::new();
        while from < backlog.published() {
            let before = out.len();
            for slice in backlog.slices(from) {
                out.extend_from_slice(&slice);
            }
            from += (out.len() - before) as u64;
        }
        out
    }

    #[test]
    fn what_is_not_published_is_not_given() {
        let mut backlog = Backlog::new(101, 1 << 20);
        push(&mut backlog, b"abcdef");
        assert!(backlog.slices(101).is_empty());
        backlog.publish(104);
        assert_eq!(read(&backlog, 102), b"bc");
        assert!(backlog.slices(100).is_empty());
        backlog.truncate(104);
        assert_eq!((backlog.end(), backlog.published()), (104, 104));
        push(&mut backlog, b"DEF");
        backlog.publish(107);
        assert_eq!(read(&backlog, 101), b"abcDEF");
    }

    proptest! {
        #[test]
        fn the_window_is_the_end_of_the_stream(
            pieces in prop::collection::vec((1usize..9_000, any::<bool>()), 1..60),
            capacity in 16_384u64..65_536,
        ) {
            let mut backlog = Backlog::new(1, capacity);
            let mut all: Vec<u8> = Vec::new();
            for (length, cut) in pieces {
                let bytes: Vec<u8> = (0..length).map(|index| (all.len() + index) as u8).collect();
                push(&mut backlog, &bytes);
                if cut {
                    backlog.truncate(backlog.published());
                    prop_assert_eq!(backlog.end(), 1 + all.len() as u64);
                } else {
                    all.extend(&bytes);
                    backlog.publish(backlog.end());
                }
                while let Some(block) = backlog.evict() {
                    backlog.reuse(block);
                }
                prop_assert_eq!(backlog.published(), 1 + all.len() as u64);
                let kept = backlog.end() - backlog.start();
                prop_assert!(kept >= capacity.min(all.len() as u64));
                prop_assert!(kept <= capacity + (128 << 10));
                prop_assert_eq!(read(&backlog, backlog.start()), &all[(backlog.start() - 1) as usize..]);
            }
        }
    }
}
