//! The queue of future events: the earliest first, ties in the order in which they were pushed.

use offpath_quantity::Time;
use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, VecDeque};

/// Buckets of the wheel, a power of two: it reaches 4.2 us ahead, further than one visit takes.
const BUCKETS: u64 = 1024;
/// A bucket is 2^12 ps wide, so that a loaded system has a few events in each.
const WIDTH_BITS: u32 = 12;
/// Most places by which an event is moved to keep the present bucket in order.
const NEAR: usize = 32;
/// So many events are found faster in a heap than in the wheel.
const FEW: usize = 16;
/// The end of a list of nodes.
const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// The moment above, the sequence number below: one comparison gives time and tie.
    key: u128,
    event: E,
}

impl<E> PartialEq for Entry<E> {
    fn eq(&self, other: &Entry<E>) -> bool {
        self.key == other.key
    }
}

impl<E> Eq for Entry<E> {}

impl<E> PartialOrd for Entry<E> {
    fn partial_cmp(&self, other: &Entry<E>) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<E> Ord for Entry<E> {
    fn cmp(&self, other: &Entry<E>) -> Ordering {
        self.key.cmp(&other.key)
    }
}

/// Events in order of virtual time; events of one moment come in the order of their pushing.
///
/// Near events lie in a wheel of buckets, where pushing and popping cost the same however many there
/// are; far ones in a heap.
///
/// The engine runs on it, and so can any other simulation:
///
/// ```
/// use offpath_quantity::Time;
/// use offpath_twin::EventQueue;
/// let mut queue = EventQueue::new();
/// queue.push(Time::from_ns(20), "later");
/// queue.push(Time::from_ns(10), "first");
/// queue.push(Time::from_ns(10), "second");
/// assert_eq!(queue.pop(), Some((Time::from_ns(10), "first")));
/// assert_eq!(queue.pop(), Some((Time::from_ns(10), "second")));
/// assert_eq!(queue.next_at(), Some(Time::from_ns(20)));
/// ```
#[derive(Clone, Debug)]
pub struct EventQueue<E> {
    /// The number of the present bucket; earlier ones are over.
    bucket: u64,
    /// Events up to the end of the present bucket, the earliest at the end.
    present: Vec<Entry<E>>,
    wheel: Wheel<E>,
    /// Events beyond the wheel, those for which the present bucket is too crowded, and a few alone.
    far: BinaryHeap<Reverse<Entry<E>>>,
    /// Events that were pushed in order of their moments, as time limits of one length are. Most of them
    /// are discarded unseen, so they stay out of the rest.
    late: VecDeque<Entry<E>>,
    /// The key of the first of `far` and `late`.
    elsewhere: u128,
    sequence: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue {
            bucket: 0,
            present: Vec::new(),
            wheel: Wheel {
                heads: Box::new([NONE; BUCKETS as usize]),
                occupied: [0; BUCKETS as usize / 64],
                nodes: Vec::new(),
                free: NONE,
                events: 0,
            },
            far: BinaryHeap::new(),
            late: VecDeque::new(),
            elsewhere: u128::MAX,
            sequence: 0,
        }
    }
}

impl<E: Copy> EventQueue<E> {
    /// A queue without events.
    pub fn new() -> EventQueue<E> {
        EventQueue::default()
    }

    /// Adds an event at `at`, behind all others of that moment.
    #[inline]
    pub fn push(&mut self, at: Time, event: E) {
        let entry = self.entry(at, event);
        self.place(entry);
    }

    /// Adds an event as [`EventQueue::push`] does, one that [`EventQueue::discard_late`] may look at: it
    /// costs less where such events are pushed in order of their moments, and little where they are discarded.
    pub fn push_late(&mut self, at: Time, event: E) {
        let entry = self.entry(at, event);
        if self.late.back().is_none_or(|last| last.key < entry.key) {
            self.elsewhere = self.elsewhere.min(entry.key);
            self.late.push_back(entry);
        } else {
            self.place(entry);
        }
    }

    /// Drops the first of the late events as long as nobody is to see them.
    pub fn discard_late(&mut self, mut unseen: impl FnMut(&E) -> bool) {
        while self.late.front().is_some_and(|entry| unseen(&entry.event)) {
            self.late.pop_front();
        }
        self.look_elsewhere();
    }

    #[inline]
    fn entry(&mut self, at: Time, event: E) -> Entry<E> {
        let key = u128::from(at.ps()) << 64 | u128::from(self.sequence);
        self.sequence += 1;
        Entry { key, event }
    }

    #[inline]
    fn place(&mut self, entry: Entry<E>) {
        let bucket = bucket_of(entry.key);
        let few = self.wheel.events == 0 && self.present.is_empty() && self.far.len() < FEW;
        match bucket.checked_sub(self.bucket) {
            _ if few => self.put_far(entry),
            Some(ahead @ 1..) if ahead < BUCKETS => self.wheel.add(bucket, entry),
            Some(1..) => self.put_far(entry),
            _ => {
                let soonest = self.present.iter().rev().take(NEAR + 1);
                match soonest.take_while(|other| other.key < entry.key).count() {
                    earlier @ ..=NEAR => self.present.insert(self.present.len() - earlier, entry),
                    _ => self.put_far(entry),
                }
            }
        }
    }

    fn put_far(&mut self, entry: Entry<E>) {
        self.elsewhere = self.elsewhere.min(entry.key);
        self.far.push(Reverse(entry));
    }

    fn look_elsewhere(&mut self) {
        let far = self.far.peek().map_or(u128::MAX, |Reverse(entry)| entry.key);
        self.elsewhere = self.late.front().map_or(far, |entry| far.min(entry.key));
    }

    /// Takes the earliest event with its moment.
    #[inline]
    pub fn pop(&mut self) -> Option<(Time, E)> {
        if self.present.is_empty()
            && let Some(next) = self.wheel.next_after(self.bucket)
            && next <= bucket_of(self.elsewhere)
        {
            self.turn_to(next);
        }
        match self.present.pop_if(|first| first.key < self.elsewhere) {
            Some(Entry { key, event }) => Some((moment(key), event)),
            None => self.pop_elsewhere(),
        }
    }

    /// The same where it is not in the present bucket.
    fn pop_elsewhere(&mut self) -> Option<(Time, E)> {
        let is_late = self.late.front().is_some_and(|entry| entry.key == self.elsewhere);
        let first = if is_late { self.late.pop_front() } else { self.far.pop().map(|Reverse(entry)| entry) };
        let Entry { key, event } = first?;
        self.look_elsewhere();
        let bucket = bucket_of(key);
        if bucket > self.bucket {
            self.turn_to(bucket);
        }
        Some((moment(key), event))
    }

    /// Makes `bucket` the present one, before which the wheel is empty.
    fn turn_to(&mut self, bucket: u64) {
        self.bucket = bucket;
        if self.wheel.events > 0 {
            self.wheel.take(bucket, &mut self.present);
        }
    }

    /// The moment of the earliest event.
    pub fn next_at(&self) -> Option<Time> {
        let next = if self.present.is_empty() { self.wheel.next_after(self.bucket) } else { None };
        let in_wheel = next.and_then(|bucket| self.wheel.list(bucket).map(|entry| entry.key).min());
        let first = self.present.last().into_iter().chain(self.late.front());
        let far = self.far.peek().map(|Reverse(entry)| entry);
        first.chain(far).map(|entry| entry.key).chain(in_wheel).min().map(moment)
    }

    /// How many events are in it.
    pub fn len(&self) -> usize {
        self.present.len() + self.wheel.events + self.far.len() + self.late.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// The events of the next buckets, each a list in no order.
#[derive(Clone, Debug)]
struct Wheel<E> {
    /// The first node of each bucket's list, by its number modulo [`BUCKETS`].
    heads: Box<[u32; BUCKETS as usize]>,
    /// A bit for each list that is not empty.
    occupied: [u64; BUCKETS as usize / 64],
    nodes: Vec<Node<E>>,
    /// The first node that is in no bucket's list.
    free: u32,
    events: usize,
}

#[derive(Clone, Copy, Debug)]
struct Node<E> {
    entry: Entry<E>,
    next: u32,
}

impl<E: Copy> Wheel<E> {
    fn add(&mut self, bucket: u64, entry: Entry<E>) {
        let slot = (bucket % BUCKETS) as usize;
        let node = Node { entry, next: self.heads[slot] };
        self.heads[slot] = if self.free == NONE {
            self.nodes.push(node);
            self.nodes.len() as u32 - 1
        } else {
            let index = self.free;
            self.free = std::mem::replace(&mut self.nodes[index as usize], node).next;
            index
        };
        self.occupied[slot / 64] |= 1 << (slot % 64);
        self.events += 1;
    }

    /// The first bucket after `bucket` that has events.
    fn next_after(&self, bucket: u64) -> Option<u64> {
        if self.events == 0 {
            return None;
        }
        let from = (bucket + 1) % BUCKETS;
        let mut index = from / 64;
        let mut word = self.occupied[index as usize] & u64::MAX << (from % 64);
        // There is one, in the first word's upper part, in another word, or in the first one's lower part.
        while word == 0 {
            index = (index + 1) % (BUCKETS / 64);
            word = self.occupied[index as usize];
        }
        let slot = index * 64 + u64::from(word.trailing_zeros());
        Some(bucket + 1 + (slot + BUCKETS - from) % BUCKETS)
    }

    fn list(&self, bucket: u64) -> impl Iterator<Item = &Entry<E>> {
        let mut at = self.heads[(bucket % BUCKETS) as usize];
        std::iter::from_fn(move || {
            let node = self.nodes.get(at as usize)?;
            at = node.next;
            Some(&node.entry)
        })
    }

    /// Moves the events of a bucket into `present`, in order.
    fn take(&mut self, bucket: u64, present: &mut Vec<Entry<E>>) {
        let slot = (bucket % BUCKETS) as usize;
        let mut at = std::mem::replace(&mut self.heads[slot], NONE);
        if at == NONE {
            return;
        }
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        while at != NONE {
            let node = &mut self.nodes[at as usize];
            present.push(node.entry);
            let next = std::mem::replace(&mut node.next, self.free);
            self.free = at;
            at = next;
            self.events -= 1;
        }
        if present.len() > 1 {
            present.sort_unstable_by_key(|entry| Reverse(entry.key));
        }
    }
}

fn moment(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

fn bucket_of(key: u128) -> u64 {
    (key >> 64) as u64 >> WIDTH_BITS
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    /// Within a bucket, among a few, near the wheel's end, and far beyond it.
    fn distance() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..50, 0u64..20_000, 4_000_000u64..5_000_000, 0u64..50_000_000]
    }

    proptest! {
        #[test]
        fn it_orders_as_a_sorted_set_does(steps in proptest::collection::vec((0u8..5, distance()), 1..400)) {
            let mut queue = EventQueue::new();
            let mut model = BTreeSet::new();
            let mut now = 0;
            for (number, (step, at)) in steps.into_iter().enumerate() {
                if step < 3 {
                    // Every other push is some way ahead of the last pop, as a simulation's are.
                    let at = if number % 2 == 0 { at } else { now + at };
                    match step {
                        0 => queue.push_late(Time::from_ps(at), number),
                        _ => queue.push(Time::from_ps(at), number),
                    }
                    model.insert((at, number));
                } else if step == 3 {
                    queue.discard_late(|number| {
                        let odd = number % 2 == 1;
                        model.retain(|(_, other)| !(odd && other == number));
                        odd
                    });
                } else {
                    let popped = queue.pop();
                    now = popped.map_or(now, |(at, _)| at.ps());
                    prop_assert_eq!(popped, model.pop_first().map(|(at, n)| (Time::from_ps(at), n)));
                }
                prop_assert_eq!(queue.len(), model.len());
                prop_assert_eq!(queue.next_at(), model.first().map(|(at, _)| Time::from_ps(*at)));
            }
            while let Some((at, number)) = queue.pop() {
                prop_assert_eq!(model.pop_first(), Some((at.ps(), number)));
            }
            prop_assert!(model.is_empty() && queue.is_empty());
        }
    }
}
