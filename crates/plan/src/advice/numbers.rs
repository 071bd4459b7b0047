//! Which number of a given design a number of a changed one is: what a remedy moves, copies or leaves as it is stays its
//! author's number, wherever it stands now.

use super::edit::StepOrigins;
use crate::design::Design;
use crate::estimate::Estimate;
use std::collections::BTreeMap;

/// The estimates of a changed design by their places.
pub(super) struct SameNumbers(BTreeMap<String, Named>);

struct Named {
    name: String,
    is_new: bool,
}

/// A place without the value of a choice that the number goes by, and that value.
fn without_choice(place: &str) -> (String, Option<&str>) {
    let (mut rest, mut short, mut choice) = (place, String::new(), None);
    while let Some((before, (inner, after))) =
        rest.split_once('[').and_then(|(before, more)| Some((before, more.split_once(']')?)))
    {
        short += before;
        (rest, choice) = (after, Some(inner));
    }
    (short + rest, choice)
}

impl SameNumbers {
    pub fn of(given: &Design, changed: &Design, origins: &StepOrigins) -> SameNumbers {
        let known: BTreeMap<(String, Option<&str>), &Estimate> =
            given.estimates().iter().map(|one| (without_choice(&one.id), one)).collect();
        let origins: BTreeMap<String, &Option<String>> =
            origins.iter().map(|(place, origin)| (without_choice(place).0, origin)).collect();
        let named = |one: &Estimate| {
            let (place, choice) = without_choice(&one.id);
            let before =
                match place.rsplit_once('.').and_then(|(step, key)| Some((origins.get(step)?, key))) {
                    None => Some(place.clone()),
                    Some((origin, key)) => Option::as_ref(origin)
                        .map(|step: &String| format!("{}.{key}", without_choice(step).0)),
                };
            // What was written anew says something else of the same step.
            let is_same = |known: &&&Estimate| {
                (known.value, known.low, known.high, known.is_assumed)
                    == (one.value, one.low, one.high, one.is_assumed)
            };
            let same = before.and_then(|place| known.get(&(place, choice))).filter(is_same);
            let is_taken = || given.estimates().iter().any(|known| known.id == one.id);
            let name = match same {
                Some(same) => same.id.to_string(),
                None if is_taken() => format!("{} of the changed design", one.id),
                None => one.id.to_string(),
            };
            (one.id.to_string(), Named { name, is_new: same.is_none() })
        };
        SameNumbers(changed.estimates().iter().map(named).collect())
    }

    /// What the given design calls a number of the changed one, and another name than all of its own for a new one. What is no
    /// estimate is called as it is.
    pub fn name<'n>(&'n self, place: &'n str) -> &'n str {
        self.0.get(place).map_or(place, |named| &named.name)
    }

    /// Whether the given design has no such number.
    pub fn is_new(&self, place: &str) -> bool {
        self.0.get(place).is_some_and(|named| named.is_new)
    }
}
