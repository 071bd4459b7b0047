//! What the master has asked and not been answered.

use std::collections::VecDeque;

/// The offsets at which the master has asked for an acknowledgement and got none, the first one first. Those who wait there
/// wait for different writes, and each is answered as soon as it can be.
#[derive(Debug, Default)]
pub struct Questions(VecDeque<u64>);

impl Questions {
    /// So many questions are remembered; where there are more, the last stands for those between.
    const MOST: usize = 1_024;

    /// Takes a question at `offset`.
    pub fn ask(&mut self, offset: u64) {
        if self.0.len() == Questions::MOST {
            self.0.pop_back();
        }
        self.0.push_back(offset);
    }

    /// Whether what is known answers any.
    pub fn is_answered(&self, known: Option<u64>) -> bool {
        self.0.front().is_some_and(|first| known >= Some(*first))
    }

    /// Forgets those that what is known answers.
    pub fn answer(&mut self, known: Option<u64>) {
        while self.is_answered(known) {
            self.0.pop_front();
        }
    }

    /// Whether nothing is owed.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
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
            (asked.0.len(), asked.0.front(), asked.0.back()),
            (Questions::MOST, Some(&0), Some(&4_999))
        );
    }
}
