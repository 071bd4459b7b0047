//! Choices that a design leaves open, as answers say what was taken of them.

use offpath_plan::choices::{Margin, Search};
use offpath_terminal::output::signed;
use serde::Serialize;

/// What was found of the choices that a design leaves open.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChoicesAnswer {
    /// The choices: those of the whole deployment first, then those of requests that the best mix takes.
    pub taken: Vec<ChoiceAnswer>,
    /// Alternatives that the choices make.
    pub considered: usize,
    /// Those that the device cannot run.
    pub left_out: Vec<LeftOutAnswer>,
    /// How many of the others are planned: all where they are few, else those that are the best by added-up demands.
    pub planned: usize,
    /// By how much a deployment that was not looked at may be better than the best that was found, as a share of it; 0 where
    /// the search has ruled out every one.
    pub gap_share: f64,
}

/// A choice.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChoiceAnswer {
    /// Its name.
    pub choice: String,
    /// The alternative whose requests may differ in it; null where the whole deployment has one value.
    pub alternative: Option<String>,
    /// The values that the best mix takes.
    pub values: Vec<String>,
    /// The values of the best mix without these; empty where it does without the alternative, null where there is no mix.
    pub next_values: Option<Vec<String>>,
    /// By how much what is taken is better than that by the goal, in percent; of the whole deployment by added-up demands.
    pub better_than_next_percent: Option<f64>,
}

/// An alternative that a device does not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LeftOutAnswer {
    /// Its name.
    pub alternative: String,
    /// Why.
    pub reason: String,
}

impl LeftOutAnswer {
    /// Alternatives with why each is left out.
    pub(crate) fn all(of: &[(String, String)]) -> Vec<LeftOutAnswer> {
        let one = |(alternative, reason): &(String, String)| LeftOutAnswer {
            alternative: alternative.clone(),
            reason: reason.clone(),
        };
        of.iter().map(one).collect()
    }
}

impl ChoicesAnswer {
    pub(crate) fn of(search: &Search, margins: &[Margin]) -> ChoicesAnswer {
        let choice = |margin: &Margin| ChoiceAnswer {
            choice: margin.choice.clone(),
            alternative: margin.of.clone(),
            values: margin.taken.clone(),
            next_values: margin.next.as_ref().map(|next| next.values.clone()),
            better_than_next_percent: margin.next.as_ref().map(|next| next.better_by * 100.0),
        };
        ChoicesAnswer {
            taken: search.for_all.iter().chain(margins).map(choice).collect(),
            considered: search.considered,
            left_out: LeftOutAnswer::all(&search.left_out),
            planned: search.kept,
            gap_share: search.gap,
        }
    }

    /// Which values are taken and by how much each is better than what comes next, then what was looked at, a line each.
    pub(crate) fn lines(&self) -> Vec<String> {
        let said = |one: &ChoiceAnswer| {
            let of = one.alternative.as_ref().map_or("for all".to_string(), |name| format!("of {name}"));
            let next = match (&one.next_values, one.better_than_next_percent) {
                (Some(next), Some(by)) => {
                    let next = if next.is_empty() { "doing without".to_string() } else { next.join(" and ") };
                    let how = if one.alternative.is_none() { ", by added-up demands" } else { "" };
                    format!(" ({} over {next}, the next{how})", signed(by, 1))
                }
                _ => " (nothing else runs)".to_string(),
            };
            format!("choice: {} {of}: {}{next}", one.choice, one.values.join(" and "))
        };
        let mut lines: Vec<String> = self.taken.iter().map(said).collect();
        let is_of_all = self.taken.iter().any(|one| one.alternative.is_none());
        let gap = match self.gap_share > 0.0 {
            _ if !is_of_all => String::new(),
            true => format!(
                "; the search proves that no deployment is better by more than {}",
                signed(self.gap_share * 100.0, 1)
            ),
            false => "; no other deployment is better by added-up demands".to_string(),
        };
        let left_out = match self.left_out.len() {
            0 => String::new(),
            count => format!(", {count} of which this device does not run"),
        };
        lines.push(format!(
            "choices make {} alternatives{left_out}; {} are planned{gap}",
            self.considered, self.planned
        ));
        lines
    }
}
