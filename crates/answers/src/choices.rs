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
    /// By how much another deployment may be better than the one that is taken, by added-up demands, as a share of it: up to 0.01
    /// where the first listed of those that are as good is taken, 0 where it is the best.
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
    /// By how much what is taken is better than that by the goal, in percent; of the whole deployment by added-up demands. Null
    /// where there is none to compare with, and where what is taken costs nothing of what the goal spares and that does.
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
            better_than_next_percent: margin
                .next
                .as_ref()
                .map(|next| next.better_by * 100.0)
                .filter(|by| by.is_finite()),
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
            let of = match &one.alternative {
                None => "the whole deployment".to_string(),
                Some(name) => name.clone(),
            };
            let how = if one.alternative.is_none() { ", by added-up demands" } else { "" };
            let values = one.values.join(" and ");
            let Some(next) = &one.next_values else {
                return format!("choice: {} of {of}: {values}, with no other to compare with", one.choice);
            };
            let next = if next.is_empty() { format!("doing without {of}") } else { next.join(" and ") };
            match one.better_than_next_percent {
                Some(by) if by.abs() < 0.05 => {
                    format!("choice: {} of {of}: {values} (as good as {next}{how})", one.choice)
                }
                Some(by) if by < 0.0 => format!(
                    "choice: {} of {of}: {values}, the first listed of those that are as good to a hundredth ({} against \
                     {next}{how})",
                    one.choice,
                    signed(by, 1)
                ),
                Some(by) => format!(
                    "choice: {} of {of}: {values} ({} over the next best, {next}{how})",
                    one.choice,
                    signed(by, 1)
                ),
                None => format!(
                    "choice: {} of {of}: {values} (costs nothing of what the goal spares; the next best, {next}, does{how})",
                    one.choice
                ),
            }
        };
        let mut lines: Vec<String> = self.taken.iter().map(said).collect();
        let is_of_all = self.taken.iter().any(|one| one.alternative.is_none());
        let gap = is_of_all.then(|| match self.gap_share > 0.0 {
            true => format!(
                "no other deployment is better by more than {}, by added-up demands",
                signed(self.gap_share * 100.0, 1)
            ),
            false => "no other deployment is better, by added-up demands".to_string(),
        });
        let left_out = match self.left_out.len() {
            0 => String::new(),
            count => format!(", {count} of which this device does not run"),
        };
        let mut said = Vec::new();
        match self.considered {
            0 => {}
            1 => said.push(format!("choices make 1 alternative{left_out}")),
            all => {
                said.push(format!("choices make {all} alternatives{left_out}"));
                said.push(match self.planned {
                    planned if planned == all => "all are planned".to_string(),
                    planned if planned + self.left_out.len() == all => "all others are planned".to_string(),
                    planned => format!("{planned} of them are planned"),
                });
            }
        }
        said.extend(gap);
        // Where nothing that runs leaves a choice open there is nothing to say of them.
        match (self.considered, said.is_empty()) {
            (_, true) => {}
            (0, false) => lines.push(format!("choices: {}", said.join("; "))),
            (_, false) => lines.push(said.join("; ")),
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(alternative: Option<&str>, next: Option<&[&str]>, by: Option<f64>, gap: f64) -> Vec<String> {
        let names = |all: &[&str]| all.iter().map(ToString::to_string).collect::<Vec<String>>();
        let taken = ChoiceAnswer {
            choice: "at".to_string(),
            alternative: alternative.map(str::to_string),
            values: names(&["soc"]),
            next_values: next.map(names),
            better_than_next_percent: by,
        };
        ChoicesAnswer { taken: vec![taken], considered: 2, left_out: vec![], planned: 2, gap_share: gap }
            .lines()
    }

    /// What is taken is never said to be the best where another is better, and no share is said of what takes nothing.
    #[test]
    fn a_choice_says_what_comes_next() {
        let one = lines(Some("a"), Some(&["host"]), Some(5.0), 0.0);
        assert_eq!(one[0], "choice: at of a: soc (+5.0% over the next best, host)");
        assert!(!one[1].contains("deployment"), "{one:?}");
        let without = lines(Some("a"), Some(&[]), Some(5.0), 0.0);
        assert_eq!(without[0], "choice: at of a: soc (+5.0% over the next best, doing without a)");
        let first = lines(None, Some(&["host"]), Some(-0.5), 0.005);
        assert!(
            first[0]
                .contains("the first listed of those that are as good to a hundredth (-0.5% against host"),
            "{first:?}"
        );
        assert!(
            first[1].ends_with("no other deployment is better by more than +0.5%, by added-up demands"),
            "{first:?}"
        );
        let free = lines(None, Some(&["host"]), None, 0.0);
        assert!(
            free[0].contains("costs nothing of what the goal spares") && !free[0].contains('%'),
            "{free:?}"
        );
        assert!(free[1].ends_with("no other deployment is better, by added-up demands"), "{free:?}");
        let only = lines(Some("a"), None, None, 0.0);
        assert_eq!(only[0], "choice: at of a: soc, with no other to compare with");
    }
}
