//! How far an operation has come, with the ways that it may go on.

use super::super::Core;
use super::Op;
use crate::engine::Handle;
use offpath_quantity::Time;

/// What the engine has to do for an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carriage {
    /// Nothing yet.
    Waits,
    /// It carries it.
    Carried(Handle),
    /// Nothing more.
    Over,
}

/// How far an operation has come for the programs at its two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Nothing is known of its effect.
    Posted,
    /// The moments of its effect are known.
    Known,
    /// It waits until the peer posts a receive, since this moment.
    Parked(Time),
    /// Its effect stands, in the order of the queue pair.
    Applied,
    /// The completion of a message is on its way to the sender.
    Polled,
    /// The requester has, or may have, its completion.
    Finished,
}

impl Stage {
    /// Whether an operation may go on to `next` from here. A datagram's sender learns nothing of its effect, and
    /// what fails is finished wherever it is.
    fn leads_to(self, next: Stage, is_datagram: bool) -> bool {
        match (self, next) {
            (Stage::Finished, Stage::Finished) => true,
            (Stage::Finished, _) => false,
            (_, Stage::Finished) => true,
            (Stage::Posted | Stage::Parked(_), Stage::Known) => true,
            (Stage::Known, Stage::Parked(_) | Stage::Applied) => true,
            // A message that found no receive is retransmitted.
            (Stage::Known | Stage::Parked(_), Stage::Posted) => true,
            (Stage::Applied, Stage::Polled) => true,
            (Stage::Posted | Stage::Known, Stage::Polled) => is_datagram,
            _ => false,
        }
    }
}

impl Op {
    pub(super) fn go_on_to(&mut self, next: Stage) {
        let is_right = self.stage.leads_to(next, self.is_datagram());
        assert!(is_right, "an operation goes from {:?} to {next:?}", self.stage);
        self.stage = next;
    }

    /// The engine carries it from now on.
    pub(super) fn carried(&mut self, handle: Handle) {
        assert!(!matches!(self.carriage, Carriage::Carried(_)), "nothing is carried twice");
        self.carriage = Carriage::Carried(handle);
    }

    /// Takes it from the engine, wherever it is.
    pub(super) fn take_off(&mut self, core: &Core) {
        if let Carriage::Carried(handle) = std::mem::replace(&mut self.carriage, Carriage::Over) {
            core.engine.borrow_mut().kill(handle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An effect is had once, and who has a completion has no other one.
    #[test]
    fn an_operation_goes_on_and_not_back() {
        let parked = Stage::Parked(Time::ZERO);
        let all = [Stage::Posted, Stage::Known, parked, Stage::Applied, Stage::Polled, Stage::Finished];
        let leads = |from: Stage, is_datagram| all.map(|next| u8::from(from.leads_to(next, is_datagram)));
        assert_eq!(
            all.map(|from| leads(from, false)),
            [
                [0, 1, 0, 0, 0, 1],
                [1, 0, 1, 1, 0, 1],
                [1, 1, 0, 0, 0, 1],
                [0, 0, 0, 0, 1, 1],
                [0, 0, 0, 0, 0, 1],
                [0, 0, 0, 0, 0, 1],
            ]
        );
        assert_eq!(leads(Stage::Posted, true), [0, 1, 0, 0, 1, 1], "its sender learns nothing of its effect");
    }
}
