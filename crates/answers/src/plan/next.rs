//! What would make a plan surer, in a sentence.

use crate::measure::{plain_points, runs_that_tell, suite_paths};
use offpath_measure::SuiteChoice;
use offpath_plan::Influence;
use offpath_plan::study::{Next, Study};
use offpath_profile::System;
use offpath_route::Router;
use offpath_terminal::output::percent;

/// Numbers that runs are looked for, and that are named where none tells them.
const MOST: usize = 5;

/// What to measure next.
pub(super) fn measurement(study: &Study) -> String {
    match &study.next {
        Next::Narrow { number, weight } => {
            format!("measure what narrows your `{number}`, which decides {} of the mix", percent(*weight, 0))
        }
        Next::Undrawn { number, weight, is_set: true, .. } => format!(
            "your `{number}` decides {} of the mix and was not drawn: `--set` takes one value, so try both \
             ends, or give it `low` and `high` in a copy of the profile",
            percent(*weight, 0)
        ),
        // Named, it stays the same number wherever it is meant.
        Next::Undrawn { number, with: 0, weight, is_set: false } if number.starts_with("alternative.") => {
            format!(
                "name your `{number}`, which decides {} of the mix, under `[parameters]`, with `low` and `high`, and use it \
             wherever the same is meant: without them it was drawn from two thirds of it to one and a half times it",
                percent(*weight, 0)
            )
        }
        Next::Undrawn { number, with: others @ 1.., weight, is_set: false } => format!(
            "name your `{number}` and the {others} more that draws move with it, which decide {} of the mix together, under \
             `[parameters]`, with `low` and `high`: without them they were drawn from two thirds of them to one and a half \
             times them",
            percent(*weight, 0)
        ),
        Next::Undrawn { number, weight, is_set: false, .. } => format!(
            "give your `{number}`, which decides {} of the mix, `low` and `high`: without them it was drawn from two thirds \
             of it to one and a half times it",
            percent(*weight, 0)
        ),
        Next::Numbers(numbers) => narrowing(numbers, &study.system),
        Next::Errors => {
            "run the mix itself on the card: what past predictions were wrong by is most of its interval, \
                         and no number narrows it by a hundredth"
                .to_string()
        }
        Next::Bound(name) => format!("measure what {name} really carries: it binds the mix"),
        Next::Mix => "run the mix on the card at this load".to_string(),
    }
}

/// The first number that a run of queue pairs tells, as `measure --suggest` finds it, or that no run could: one of the design.
fn narrowing(numbers: &[Influence], system: &System) -> String {
    let points = Router::new(system).map(|router| {
        let paths = suite_paths(&router, system);
        plain_points(&paths, &SuiteChoice::default())
    });
    let points = points.unwrap_or_default();
    let is_told = |one: &&Influence| {
        let at = |end| system.with(&one.number, end);
        match (system.numbers.contains_key(&one.number), at(one.low), at(one.high)) {
            (true, Ok(low), Ok(high)) => runs_that_tell(&points, &low, &high).next().is_some(),
            (is_of_card, ..) => !is_of_card,
        }
    };
    let numbers = &numbers[..numbers.len().min(MOST)];
    let place = numbers.iter().position(|one| is_told(&one));
    let untold: Vec<String> =
        numbers[..place.unwrap_or(numbers.len())].iter().map(|one| format!("`{}`", one.number)).collect();
    let untold = untold.join(", ");
    let Some(Influence { number, low, high, note, .. }) = place.map(|place| &numbers[place]) else {
        return format!(
            "run the mix itself on the card, posted by more than one thread: no run of one posting thread tells what moves it most \
             ({untold})"
        );
    };
    let colon = if note.is_empty() { "" } else { ": " };
    let more = match untold.is_empty() {
        true => String::new(),
        false => format!("; no run of one posting thread tells {untold}, which may move the plan more"),
    };
    format!("measure what narrows `{number}` (now {low} to {high}){colon}{note}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_profile::{Library, SystemRequest};
    use offpath_quantity::{Quantity, Time};

    /// What no run tells is not asked for as long as some run tells another number; and a number of the design is its author's
    /// to measure.
    #[test]
    fn what_is_to_be_measured_is_what_a_run_tells() {
        let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
        let system = Library::builtin().load(&request).expect("it ships");
        let number = |name: &str, low_ns: u64, high_ns: u64| Influence {
            number: name.to_string(),
            note: String::new(),
            low: Quantity::Time(Time::from_ns(low_ns)),
            high: Quantity::Time(Time::from_ns(high_ns)),
            at_low: None,
            at_high: None,
            changes: None,
            planned: true,
            is_stated: true,
            drawn_with: None,
        };
        let slots = number("host_verbs.receive_slot_time", 933, 2100);
        let switch = number("switch.pass_time", 275, 325);
        let told = "measure what narrows `switch.pass_time` (now 275 ns to 325 ns)";
        assert_eq!(narrowing(&[switch.clone(), slots.clone()], &system), told);
        let second = narrowing(&[slots.clone(), switch], &system);
        assert!(
            second.starts_with(told) && second.contains("tells `host_verbs.receive_slot_time`"),
            "{second}"
        );
        let none = narrowing(std::slice::from_ref(&slots), &system);
        assert!(
            none.starts_with("run the mix itself") && none.contains("`host_verbs.receive_slot_time`"),
            "{none}"
        );
        let own = narrowing(&[slots, number("parameters.service", 100, 200)], &system);
        assert!(own.starts_with("measure what narrows `parameters.service`"), "{own}");
    }
}
