//! What would make a plan surer, in a sentence.

use offpath_plan::Influence;
use offpath_plan::study::Next;
use offpath_terminal::output::percent;

/// What to measure next.
pub(super) fn measurement(next: &Next) -> String {
    match next {
        Next::Narrow { number, weight } => {
            format!("measure what narrows your `{number}`, which decides {} of the mix", percent(*weight, 0))
        }
        Next::Undrawn { number, weight, is_set: true } => format!(
            "your `{number}` decides {} of the mix and was not drawn: `--set` takes one value, so try both \
             ends, or give it `low` and `high` in a copy of the profile",
            percent(*weight, 0)
        ),
        // Named, it stays the same number wherever it is meant.
        Next::Undrawn { number, weight, is_set: false } if number.starts_with("alternative.") => format!(
            "name your `{number}`, which decides {} of the mix, under `[parameters]`, with `low` and `high`, and use it \
             wherever the same is meant: without them it was drawn from two thirds of it to one and a half times it",
            percent(*weight, 0)
        ),
        Next::Undrawn { number, weight, is_set: false } => format!(
            "give your `{number}`, which decides {} of the mix, `low` and `high`: without them it was drawn from two thirds \
             of it to one and a half times it",
            percent(*weight, 0)
        ),
        Next::Number(Influence { number, low, high, note, .. }) => {
            let colon = if note.is_empty() { "" } else { ": " };
            format!("measure what narrows `{number}` (now {low} to {high}){colon}{note}")
        }
        Next::Errors => {
            "run the mix itself on the card: what past predictions were wrong by is most of its interval, \
                         and no number narrows it by a hundredth"
                .to_string()
        }
        Next::Bound(name) => format!("measure what {name} really carries: it binds the mix"),
        Next::Mix => "run the mix on the card at this load".to_string(),
    }
}
