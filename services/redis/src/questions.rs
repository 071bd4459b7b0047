//! What the master has asked and not been answered.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// The offsets at which the master has asked for an acknowledgement and got none, the first one first. Those who wait there
/// wait for different writes, and each is answered as soon as it can be.
#[derive(Debug, Default)]
pub struct Questions {
    open: VecDeque<u64>,
    last: Option<Instant>,
}

impl Questions {
    /// So many questions are remembered; where there are more, the last stands for those between.
    const MOST: usize = 1_024;

    /// Takes a question at `offset`.
    pub fn ask(&mut self, offset: u64) {
        if self.open.len() == Questions::MOST {
            self.open.pop_back();
        }
        self.open.push_back(offset);
        self.last = Some(Instant::now());
    }

    /// Whether what is known answers any.
    pub fn is_answered(&self, known: Option<u64>) -> bool {
        self.open.front().is_some_and(|first| known >= Some(*first))
    }

    /// Forgets those that what is known answers.
    pub fn answer(&mut self, known: Option<u64>) {
        while self.is_answered(known) {
            self.open.pop_front();
        }
    }

    /// Whether it has asked within the last `time`, answered or not.
    pub fn came_within(&self, time: Duration) -> bool {
        self.last.is_some_and(|last| last.elapsed() <= time)
    }

    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.open.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_last_stands_for_those_between() {
        let mut asked = Questions::default();
        (0..5_000).for_each(|at| asked.ask(at));
        assert_eq!(
            (asked.open.len(), asked.open.front(), asked.open.back()),
            (Questions::MOST, Some(&0), Some(&4_999))
        );
    }
}
