//! Choices that a design leaves open, as answers say what was taken of them.

use offpath_plan::choices::{Margin, Search};
use offpath_terminal::output::signed;
use serde::Serialize;

/// Reasons for which something is left out that are told one by one.
const MOST_REASONS: usize = 8;

/// What was found of the choices that a design leaves open.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChoicesAnswer {
    /// The choices: those of the whole deployment first, then those of requests that the best mix takes.
    pub taken: Vec<ChoiceAnswer>,
    /// Alternatives that the choices make, and values of those in `set` that make no system.
    pub considered: usize,
    /// What of these the device cannot run: alternatives by their names, values that make no system as in `cores=0`.
    pub left_out: Vec<LeftOutAnswer>,
    /// How many of them make no system.
    #[serde(skip)]
    pub no_systems: usize,
    /// Systems that the values of those in `set` make.
    pub systems: usize,
    /// How many of these were looked at. Where there are more, those of the most cores or threads bound the others, since more of
    /// them carry no less.
    pub systems_looked_at: usize,
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
    /// The values of the best mix without these, of several without that one which is missed least; empty where it does without
    /// the alternative, null where there is no mix.
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
            left_out: LeftOutAnswer::all(&[&search.left_out[..], &search.no_systems].concat()),
            no_systems: search.no_systems.len(),
            systems: search.systems,
            systems_looked_at: search.looked_at,
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
        let alternatives = self.considered - self.no_systems;
        let not_run = self.left_out.len() - self.no_systems;
        let left_out = match not_run {
            0 => String::new(),
            count => format!(", {count} of which this device does not run"),
        };
        let mut said = Vec::new();
        match alternatives {
            0 => {}
            1 => said.push(format!("choices make 1 alternative{left_out}")),
            all => {
                said.push(format!("choices make {all} alternatives{left_out}"));
                said.push(match self.planned {
                    planned if planned == all => "all are planned".to_string(),
                    planned if planned + not_run == all => "all others are planned".to_string(),
                    planned => format!("{planned} of them are planned"),
                });
            }
        }
        if self.systems_looked_at < self.systems {
            said.push(format!(
                "{} of {} systems were looked at, since more cores or threads carry no less",
                self.systems_looked_at, self.systems
            ));
        }
        said.extend(gap);
        // Where nothing that runs leaves a choice open there is nothing to say of them.
        match (alternatives, said.is_empty()) {
            (_, true) => {}
            (0, false) => lines.push(format!("choices: {}", said.join("; "))),
            (_, false) => lines.push(said.join("; ")),
        }
        lines.extend(self.left_out_lines());
        lines
    }

    /// What is left out, a line for each reason.
    fn left_out_lines(&self) -> Vec<String> {
        let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
        for LeftOutAnswer { alternative, reason } in &self.left_out {
            match reasons.iter_mut().find(|(known, _)| known == reason) {
                Some((_, names)) => names.push(alternative),
                None => reasons.push((reason, vec![alternative])),
            }
        }
        let told = reasons.iter().take(MOST_REASONS);
        let mut lines: Vec<String> =
            told.map(|(reason, names)| format!("left out: {}: {reason}", names.join(", "))).collect();
        let more: usize = reasons.iter().skip(MOST_REASONS).map(|(_, names)| names.len()).sum();
        if more > 0 {
            lines.push(format!("left out: {more} more, which `--format json` lists with the reasons"));
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
        let left_out = vec![];
        ChoicesAnswer {
            taken: vec![taken],
            considered: 2,
            left_out,
            no_systems: 0,
            systems: 190,
            systems_looked_at: if alternative.is_none() { 10 } else { 190 },
            planned: 2,
            gap_share: gap,
        }
        .lines()
    }

    /// What is taken is never said to be the best where another is better, and no share is said of what takes nothing.
    #[test]
    fn a_choice_says_what_comes_next() {
        let one = lines(Some("a"), Some(&["host"]), Some(5.0), 0.0);
        assert_eq!(one[0], "choice: at of a: soc (+5.0% over the next best, host)");
        assert!(!one[1].contains("deployment") && !one[1].contains("systems"), "{one:?}");
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
        assert!(free[1].contains("; 10 of 190 systems were looked at, since more cores"), "{free:?}");
        let only = lines(Some("a"), None, None, 0.0);
        assert_eq!(only[0], "choice: at of a: soc, with no other to compare with");
    }

    /// What is left out is told with its reason, once for all that share it, and is no alternative where it is a system.
    #[test]
    fn what_is_left_out_is_told_with_its_reason() {
        let left_out = |alternative: &str, reason: &str| LeftOutAnswer {
            alternative: alternative.to_string(),
            reason: reason.to_string(),
        };
        let mut own = vec![left_out("a[at=x]", "no `x`"), left_out("a[at=y]", "no `y`")];
        own.extend([left_out("b[at=x]", "no `x`"), left_out("cores=0", "none has 0")]);
        let of = |left_out: Vec<LeftOutAnswer>| {
            let (taken, planned) = (vec![], 2);
            let (systems, systems_looked_at) = (2, 2);
            let (considered, no_systems, gap_share) = (6, 1, 0.0);
            ChoicesAnswer {
                taken,
                considered,
                left_out,
                no_systems,
                systems,
                systems_looked_at,
                planned,
                gap_share,
            }
            .lines()
        };
        assert_eq!(
            of(own),
            [
                "choices make 5 alternatives, 3 of which this device does not run; all others are planned",
                "left out: a[at=x], b[at=x]: no `x`",
                "left out: a[at=y]: no `y`",
                "left out: cores=0: none has 0",
            ]
        );
        let many = (0..10).map(|one| left_out(&format!("a[at={one}]"), &format!("no {one}")));
        let lines = of(many.collect());
        assert_eq!(
            lines.last().map(String::as_str),
            Some("left out: 2 more, which `--format json` lists with the reasons")
        );
    }
}
