//! The queue of future events: the earliest first, ties in the order in which they were pushed.

use offpath_quantity::Time;
use std::collections::VecDeque;

/// Children of a node of the heap: four share two cache lines, and the heap is half as deep as
/// with two.
const ARITY: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry<E> {
    /// The moment above, the sequence number below: one comparison gives time and tie.
    key: u128,
    event: E,
}

/// Events in order of virtual time; events of one moment come in the order of their pushing.
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
    heap: Vec<Entry<E>>,
    /// Whether the root was popped and its place not filled yet. Most events schedule the next one
    /// at once, which then takes the place: one walk through the heap instead of two.
    vacant: bool,
    /// Events that were pushed in order of their moments, as time limits of one length are. Most of them
    /// are discarded unseen, so they stay out of the heap.
    late: VecDeque<Entry<E>>,
    /// The key of the first late event; above every key where there is none.
    first_late: u128,
    sequence: u64,
}

impl<E> Default for EventQueue<E> {
    fn default() -> EventQueue<E> {
        EventQueue {
            heap: Vec::new(),
            vacant: false,
            late: VecDeque::new(),
            first_late: u128::MAX,
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
    pub fn push(&mut self, at: Time, event: E) {
        let entry = self.entry(at, event);
        self.place(entry);
    }

    /// Adds an event as [`EventQueue::push`] does, one that [`EventQueue::discard_late`] may look at: it
    /// costs less where such events are pushed in order of their moments, and little where they are discarded.
    pub fn push_late(&mut self, at: Time, event: E) {
        let entry = self.entry(at, event);
        if self.late.back().is_none_or(|last| last.key < entry.key) {
            self.first_late = self.first_late.min(entry.key);
            self.late.push_back(entry);
        } else {
            self.place(entry);
        }
    }

    /// Drops the first of the late events as long as nobody is to see them.
    pub fn discard_late(&mut self, mut unseen: impl FnMut(&E) -> bool) {
        while self.late.front().is_some_and(|entry| unseen(&entry.event)) {
            self.take_late();
        }
    }

    fn take_late(&mut self) -> Option<Entry<E>> {
        let first = self.late.pop_front();
        self.first_late = self.late.front().map_or(u128::MAX, |next| next.key);
        first
    }

    fn entry(&mut self, at: Time, event: E) -> Entry<E> {
        let key = u128::from(at.ps()) << 64 | u128::from(self.sequence);
        self.sequence += 1;
        Entry { key, event }
    }

    fn place(&mut self, entry: Entry<E>) {
        if self.vacant {
            self.vacant = false;
            self.sink(entry);
        } else {
            self.heap.push(entry);
            self.rise(entry);
        }
    }

    /// Takes the earliest event with its moment.
    pub fn pop(&mut self) -> Option<(Time, E)> {
        self.settle();
        let first = self.heap.first();
        if self.first_late < first.map_or(u128::MAX, |first| first.key) {
            return self.take_late().map(|Entry { key, event }| (moment(key), event));
        }
        let Entry { key, event } = *first?;
        self.vacant = true;
        Some((moment(key), event))
    }

    /// The moment of the earliest event.
    pub fn next_at(&self) -> Option<Time> {
        let candidates =
            if self.vacant { 1..self.heap.len().min(ARITY + 1) } else { 0..self.heap.len().min(1) };
        self.heap[candidates].iter().chain(self.late.front()).map(|entry| entry.key).min().map(moment)
    }

    /// How many events are in it.
    pub fn len(&self) -> usize {
        self.heap.len() - usize::from(self.vacant) + self.late.len()
    }

    /// Whether it holds none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills the place of the popped root with the last event.
    fn settle(&mut self) {
        if self.vacant {
            self.vacant = false;
            if let Some(last) = self.heap.pop()
                && !self.heap.is_empty()
            {
                self.sink(last);
            }
        }
    }

    /// Puts `entry` at the root and moves it down to its place.
    fn sink(&mut self, entry: Entry<E>) {
        let heap = &mut self.heap[..];
        let mut hole = 0;
        loop {
            let first = hole * ARITY + 1;
            // Choosing without branches: which child is least is chance, and guesses cost more.
            let least = match heap.get(first..first + ARITY) {
                Some(full) => {
                    let left = usize::from(full[1].key < full[0].key);
                    let right = 2 + usize::from(full[3].key < full[2].key);
                    let less = full[right].key < full[left].key;
                    first + if less { right } else { left }
                }
                None if first < heap.len() => {
                    let of = |child: &usize| heap[*child].key;
                    (first..heap.len()).min_by_key(of).unwrap_or(first)
                }
                None => break,
            };
            if heap[least].key >= entry.key {
                break;
            }
            heap[hole] = heap[least];
            hole = least;
        }
        heap[hole] = entry;
    }

    /// Moves `entry`, which stands at the end, up to its place.
    fn rise(&mut self, entry: Entry<E>) {
        let heap = &mut self.heap[..];
        let mut hole = heap.len() - 1;
        while hole > 0 {
            let parent = (hole - 1) / ARITY;
            if heap[parent].key <= entry.key {
                break;
            }
            heap[hole] = heap[parent];
            hole = parent;
        }
        heap[hole] = entry;
    }
}

fn moment(key: u128) -> Time {
    Time::from_ps((key >> 64) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn it_orders_as_a_sorted_set_does(steps in proptest::collection::vec((0u8..5, 0u64..50), 1..400)) {
            let mut queue = EventQueue::new();
            let mut model = BTreeSet::new();
            for (number, (step, at)) in steps.into_iter().enumerate() {
                if step < 3 {
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
                    prop_assert_eq!(queue.pop(), model.pop_first().map(|(at, n)| (Time::from_ps(at), n)));
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
