//! What the engine's occurrences are about, and how that and a key make a tag.

use crate::engine::Tag;
use offpath_fabric::runtime::ArenaSlot;

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
    /// The requester's NIC learns of a message's success.
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

/// The tag by which the engine returns a key.
pub(super) trait Tagged {
    fn tag(self, subject: Subject) -> Tag;
    /// What a tag stands for.
    fn of(tag: Tag) -> (Subject, ArenaSlot);
}

impl Tagged for ArenaSlot {
    fn tag(self, subject: Subject) -> Tag {
        Tag((subject as u64) << 60 | self.to_bits())
    }

    fn of(tag: Tag) -> (Subject, ArenaSlot) {
        (SUBJECTS[(tag.0 >> 60) as usize % SUBJECTS.len()], ArenaSlot::of_bits(tag.0))
    }
}
