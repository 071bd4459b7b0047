//! Things with names that are never reused, so that a late timer finds nothing instead of another's.

use crate::engine::Tag;

/// What an occurrence of the engine is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Subject {
    /// A sleeping or computing task.
    Sleep,
    /// An operation of a queue pair, in the engine.
    Operation,
    /// The moment at which an operation's effect is due.
    Effect,
    /// The requester's adapter learns of a message's success.
    Acknowledged,
    /// The requester's program sees the completion of a message.
    Polled,
    /// The requester learns of a failure.
    Refused,
    /// A message's handler runs, later than its route says.
    Received,
    /// A WRITE with immediate is there and its receive is to be handled.
    Announced,
    /// A datagram, in the engine.
    Datagram,
    /// A datagram's copy, or one that takes no route.
    DatagramArrived,
    /// A copy by an engine of the card.
    Copy,
    /// A fault of the schedule begins or ends.
    Scheduled,
}

const SUBJECTS: [Subject; 12] = [
    Subject::Sleep,
    Subject::Operation,
    Subject::Effect,
    Subject::Acknowledged,
    Subject::Polled,
    Subject::Refused,
    Subject::Received,
    Subject::Announced,
    Subject::Datagram,
    Subject::DatagramArrived,
    Subject::Copy,
    Subject::Scheduled,
];

/// The name of a thing in an arena.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key {
    index: u32,
    generation: u32,
}

impl Key {
    /// A name for what lives in no arena.
    pub(super) fn plain(index: usize) -> Key {
        Key { index: index as u32, generation: 0 }
    }

    pub(super) fn index(self) -> usize {
        self.index as usize
    }

    /// The tag by which the engine returns it.
    pub(super) fn tag(self, subject: Subject) -> Tag {
        Tag((subject as u64) << 60 | u64::from(self.generation & 0x0fff_ffff) << 32 | u64::from(self.index))
    }

    /// What a tag stands for.
    pub(super) fn of(tag: Tag) -> (Subject, Key) {
        let generation = (tag.0 >> 32) as u32 & 0x0fff_ffff;
        (SUBJECTS[(tag.0 >> 60) as usize % SUBJECTS.len()], Key { index: tag.0 as u32, generation })
    }
}

struct Place<T> {
    generation: u32,
    value: Option<T>,
}

/// Things by key.
pub(super) struct Arena<T> {
    places: Vec<Place<T>>,
    free: Vec<u32>,
}

impl<T> Default for Arena<T> {
    fn default() -> Arena<T> {
        Arena { places: Vec::new(), free: Vec::new() }
    }
}

impl<T> Arena<T> {
    pub(super) fn insert(&mut self, value: T) -> Key {
        match self.free.pop() {
            Some(index) => {
                let place = &mut self.places[index as usize];
                place.value = Some(value);
                Key { index, generation: place.generation }
            }
            None => {
                self.places.push(Place { generation: 0, value: Some(value) });
                Key { index: self.places.len() as u32 - 1, generation: 0 }
            }
        }
    }

    pub(super) fn get(&self, key: Key) -> Option<&T> {
        self.places.get(key.index()).filter(|place| place.generation == key.generation)?.value.as_ref()
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?.value.as_mut()
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let place = self.places.get_mut(key.index()).filter(|place| place.generation == key.generation)?;
        let value = place.value.take()?;
        place.generation = (place.generation + 1) & 0x0fff_ffff;
        self.free.push(key.index);
        Some(value)
    }

    /// Removes a thing without moving it out, which for large ones is a copy less.
    pub(super) fn discard(&mut self, key: Key) {
        let place = self.places.get_mut(key.index()).filter(|place| place.generation == key.generation);
        let Some(place) = place.filter(|place| place.value.is_some()) else { return };
        place.value = None;
        place.generation = (place.generation + 1) & 0x0fff_ffff;
        self.free.push(key.index);
    }

    /// The keys of all that are there, in the order of their places.
    pub(super) fn keys(&self) -> impl Iterator<Item = Key> + '_ {
        self.places
            .iter()
            .enumerate()
            .filter(|(_, place)| place.value.is_some())
            .map(|(index, place)| Key { index: index as u32, generation: place.generation })
    }
}
