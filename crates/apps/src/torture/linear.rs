//! Linearizability of registers.
//!
//! The search is that of Wing and Gong ("Testing and Verifying Concurrent Objects", JPDC 1993) with
//! Lowe's memory of configurations already seen ("Testing for Linearizability", CCPE 2017). A history
//! is linearizable if and only if that of each key is (Herlihy and Wing 1990), so keys are judged
//! apart.

use offpath_quantity::Time;
use std::collections::{BTreeMap, BTreeSet};

/// What an operation did to a key, with what it returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// It saw this value, or none.
    Read(Option<u64>),
    /// It stored this value.
    Write(u64),
    /// It removed the key, and said whether it was there; `None` where it could not say.
    Remove(Option<bool>),
}

/// An operation of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operation {
    /// Who did it.
    pub client: u32,
    /// On which key.
    pub key: u64,
    /// When it began.
    pub called: Time,
    /// When it returned; `None` where it did not, and may or may not have happened.
    pub returned: Option<Time>,
    /// What it did.
    pub action: Action,
}

/// A key whose operations no order explains.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no order explains the {} operations of key {key}", operations.len())]
pub struct NotLinearizable {
    /// The key.
    pub key: u64,
    /// Its operations, by the time of their call.
    pub operations: Vec<Operation>,
}

/// Whether every key's operations can be put into an order in which each lies between its call and
/// its return. Keys start with `initial`.
pub fn check(history: &[Operation], initial: impl Fn(u64) -> Option<u64>) -> Result<(), NotLinearizable> {
    let mut keys: BTreeMap<u64, Vec<Operation>> = BTreeMap::new();
    for operation in history {
        // A read that never returned says nothing.
        if operation.returned.is_some() || !matches!(operation.action, Action::Read(_)) {
            keys.entry(operation.key).or_default().push(*operation);
        }
    }
    for (key, mut operations) in keys {
        operations.sort_by_key(|operation| operation.called);
        if !is_linearizable(&operations, initial(key)) {
            return Err(NotLinearizable { key, operations });
        }
    }
    Ok(())
}

fn step(state: Option<u64>, action: Action) -> Option<Option<u64>> {
    match action {
        Action::Read(seen) => (seen == state).then_some(state),
        Action::Write(value) => Some(Some(value)),
        Action::Remove(was) => was.is_none_or(|was| was == state.is_some()).then_some(None),
    }
}

/// The calls and returns in the order of time, as a list from which calls are lifted with their
/// returns.
struct Events {
    /// The operation and whether it is its return; entry 0 is the head.
    of: Vec<(usize, bool)>,
    next: Vec<usize>,
    before: Vec<usize>,
    /// The return entry of an operation, 0 where it has none.
    end: Vec<usize>,
}

impl Events {
    fn new(operations: &[Operation]) -> Events {
        let mut all: Vec<(Time, bool, usize)> = Vec::new();
        for (index, operation) in operations.iter().enumerate() {
            all.push((operation.called, false, index));
            all.extend(operation.returned.map(|at| (at, true, index)));
        }
        // At one moment calls come first: the operations may have overlapped.
        all.sort();
        let mut end = vec![0; operations.len()];
        let mut of = vec![(usize::MAX, false)];
        for (_, is_return, index) in all {
            if is_return {
                end[index] = of.len();
            }
            of.push((index, is_return));
        }
        let count = of.len();
        let next = (1..=count).map(|at| if at == count { 0 } else { at }).collect();
        let before = (0..count).map(|at| if at == 0 { count - 1 } else { at - 1 }).collect();
        Events { of, next, before, end }
    }

    fn unlink(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        (self.next[before], self.before[next]) = (next, before);
    }

    fn link(&mut self, at: usize) {
        let (before, next) = (self.before[at], self.next[at]);
        (self.next[before], self.before[next]) = (at, at);
    }

    fn lift(&mut self, call: usize) {
        self.unlink(call);
        let end = self.end[self.of[call].0];
        if end != 0 {
            self.unlink(end);
        }
    }

    fn unlift(&mut self, call: usize) {
        let end = self.end[self.of[call].0];
        if end != 0 {
            self.link(end);
        }
        self.link(call);
    }
}

fn is_linearizable(operations: &[Operation], initial: Option<u64>) -> bool {
    let mut events = Events::new(operations);
    let mut state = initial;
    let mut done = vec![0u64; operations.len().div_ceil(64)];
    let mut seen: BTreeSet<(Vec<u64>, Option<u64>)> = BTreeSet::new();
    let mut taken: Vec<(usize, Option<u64>)> = Vec::new();
    // Operations that returned must all be placed; the others may be left out.
    let mut left = operations.iter().filter(|operation| operation.returned.is_some()).count();
    let mut at = events.next[0];
    while left > 0 {
        let (operation, is_return) = events.of[at];
        if !is_return {
            let bit = 1u64 << (operation % 64);
            if let Some(after) = step(state, operations[operation].action) {
                done[operation / 64] |= bit;
                if seen.insert((done.clone(), after)) {
                    taken.push((at, state));
                    state = after;
                    left -= usize::from(operations[operation].returned.is_some());
                    events.lift(at);
                    at = events.next[0];
                    continue;
                }
                done[operation / 64] &= !bit;
            }
            at = events.next[at];
            continue;
        }
        // An operation returned and was not placed: undo the latest choice.
        let Some((call, before)) = taken.pop() else { return false };
        let (operation, _) = events.of[call];
        state = before;
        done[operation / 64] &= !(1u64 << (operation % 64));
        left += usize::from(operations[operation].returned.is_some());
        events.unlift(call);
        at = events.next[call];
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn operation(called: u64, returned: Option<u64>, action: Action) -> Operation {
        let returned = returned.map(Time::from_ns);
        Operation { client: 0, key: 1, called: Time::from_ns(called), returned, action }
    }

    #[test]
    fn known_histories() {
        use Action::*;
        let accepts = |all: &[Operation]| check(all, |_| None).is_ok();
        let write = operation(0, Some(10), Write(1));
        assert!(accepts(&[write, operation(11, Some(12), Read(Some(1)))]));
        assert!(!accepts(&[write, operation(11, Some(12), Read(None))]), "a stale read");
        assert!(accepts(&[write, operation(5, Some(12), Read(None))]), "an overlapping read");
        let (new, old) = (operation(2, Some(3), Read(Some(1))), operation(4, Some(5), Read(None)));
        assert!(!accepts(&[write, new, old]), "a value that was there is gone again");
        let maybe = operation(0, None, Write(1));
        assert!(accepts(&[maybe, operation(9, Some(10), Read(None))]), "it may not have happened");
        assert!(accepts(&[maybe, operation(9, Some(10), Read(Some(1)))]), "it may have");
        assert!(!accepts(&[maybe, new, old]), "it cannot be undone");
        assert!(!accepts(&[write, operation(11, Some(12), Remove(Some(false)))]), "a lost write");
        let removed = operation(11, Some(12), Remove(Some(true)));
        assert!(accepts(&[write, removed, operation(13, Some(14), Read(None))]));
    }

    /// Whether an operation in `order` says what it has to behind those that stand before it. It looks
    /// for the latest change itself, so that it shares nothing with what it is to check.
    fn explained(order: &[Operation], initial: Option<u64>) -> bool {
        (0..order.len()).all(|at| {
            let change = order[..at].iter().rev().find(|before| !matches!(before.action, Action::Read(_)));
            let there = match change {
                None => initial,
                Some(Operation { action: Action::Write(value), .. }) => Some(*value),
                Some(_) => None,
            };
            match order[at].action {
                Action::Write(_) | Action::Remove(None) => true,
                Action::Remove(Some(false)) => there.is_none(),
                Action::Remove(Some(true)) => there.is_some(),
                Action::Read(None) => there.is_none(),
                Action::Read(Some(value)) => there.is_some_and(|there| there == value),
            }
        })
    }

    /// Tries every order of every subset that has all that returned.
    fn brute(order: &mut Vec<Operation>, left: &[Operation], initial: Option<u64>) -> bool {
        if left.iter().all(|operation| operation.returned.is_none()) {
            // Whoever returned before another was called stands before it.
            let backwards = |late: usize, early: usize| {
                order[late].returned.is_some_and(|returned| returned < order[early].called)
            };
            let in_time = (0..order.len()).all(|late| (0..late).all(|early| !backwards(late, early)));
            if in_time && explained(order, initial) {
                return true;
            }
        }
        (0..left.len()).any(|index| {
            let mut others = left.to_vec();
            order.push(others.remove(index));
            let found = brute(order, &others, initial);
            order.pop();
            found
        })
    }

    #[test]
    fn the_reference_decides_by_what_it_says() {
        use Action::*;
        let accepts = |all: &[Operation], initial| brute(&mut Vec::new(), all, initial);
        let at = |moment: u64, action| operation(moment, Some(moment + 1), action);
        for (all, initial, right) in [
            (vec![at(0, Read(Some(1)))], Some(1), true),
            (vec![at(0, Read(Some(2)))], Some(1), false),
            (vec![at(0, Read(None))], Some(1), false),
            (vec![at(0, Remove(Some(true)))], None, false),
            (vec![at(0, Remove(Some(false)))], None, true),
            (vec![at(0, Write(1)), at(5, Write(2)), at(10, Read(Some(1)))], None, false),
            (vec![at(0, Write(1)), at(5, Remove(None)), at(10, Read(None))], None, true),
            // The end of one and the begin of the other at one moment are an overlap.
            (vec![at(0, Write(1)), at(1, Read(None))], None, true),
            (vec![at(0, Write(1)), at(2, Read(None))], None, false),
            (vec![operation(0, None, Write(1)), at(9, Read(Some(1))), at(20, Read(None))], None, false),
        ] {
            assert_eq!(accepts(&all, initial), right, "{all:?}");
            assert_eq!(check(&all, |_| initial).is_ok(), right, "{all:?}");
        }
    }

    fn action() -> impl Strategy<Value = Action> {
        prop_oneof![
            proptest::option::of(0u64..3).prop_map(Action::Read),
            (0u64..3).prop_map(Action::Write),
            proptest::option::of(any::<bool>()).prop_map(Action::Remove),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]
        #[test]
        fn it_decides_as_brute_force_does(
            drawn in proptest::collection::vec((0u64..20, proptest::option::weighted(0.8, 0u64..10), action()), 1..7),
            initial in proptest::option::of(0u64..3),
        ) {
            let mut all: Vec<Operation> = drawn
                .into_iter()
                .map(|(called, took, action)| operation(called, took.map(|took| called + took), action))
                .filter(|operation| {
                    operation.returned.is_some() || !matches!(operation.action, Action::Read(_))
                })
                .collect();
            all.sort_by_key(|operation| operation.called);
            prop_assert_eq!(is_linearizable(&all, initial), brute(&mut Vec::new(), &all, initial));
        }
    }
}
