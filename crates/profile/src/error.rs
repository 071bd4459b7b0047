//! Why a profile is refused: what, where in which file, and what to do next.

use miette::{Diagnostic, LabeledSpan, NamedSource, SourceCode};
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A text that profiles are read from, with the name that messages give it.
#[derive(Debug, PartialEq)]
pub(crate) struct Source {
    pub name: String,
    pub text: String,
}

/// A place in a source.
pub(crate) type Place<'a> = (&'a Arc<Source>, Range<usize>);

/// What is wrong with a profile, a request or a setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Problem {
    /// A file or directory cannot be read.
    #[error("cannot read `{file}`: {reason}")]
    Unreadable {
        /// The path as it was given.
        file: String,
        /// What the operating system said.
        reason: String,
    },
    /// The file is not TOML.
    #[error("not valid TOML: {reason}")]
    Syntax {
        /// What the parser said.
        reason: String,
    },
    /// A name that nothing has: of a key, a table, a kind, a device, an endpoint, a number.
    #[error("there is no {what} `{name}` {place}")]
    Unknown {
        /// What was looked for.
        what: String,
        /// The name that was given.
        name: String,
        /// Where it was looked for.
        place: String,
    },
    /// A key, a table or a component that must be there is not.
    #[error("{place} lacks {what}")]
    Missing {
        /// What is missing.
        what: String,
        /// Where it belongs.
        place: String,
    },
    /// A value that cannot be read as what its key holds.
    #[error("`{name}`: {reason}")]
    Malformed {
        /// The key or number.
        name: String,
        /// What is wrong with the value.
        reason: String,
    },
    /// A value outside the range in which it makes sense.
    #[error("`{name}` is {value}, but must be {bound}")]
    OutOfRange {
        /// The key or number.
        name: String,
        /// Its value.
        value: String,
        /// What is accepted.
        bound: String,
    },
    /// Two things of one name.
    #[error("{what} `{name}` is there twice")]
    Duplicate {
        /// What is duplicated.
        what: String,
        /// The name.
        name: String,
    },
    /// Names that paths cannot be made of.
    #[error("`{name}` cannot name {what}")]
    BadName {
        /// What it would name.
        what: String,
        /// The name.
        name: String,
    },
    /// Components that do not fit together.
    #[error("{reason}")]
    Structure {
        /// What does not fit.
        reason: String,
    },
    /// Several mistakes of one file, which the report points at one by one.
    #[error("`{file}` has {count} mistakes; the first: {first}")]
    Several {
        /// The file.
        file: String,
        /// How many.
        count: usize,
        /// What the first says.
        first: String,
    },
    /// Something that the card's mode hides.
    #[error("{what} `{name}` does not exist in mode `{mode}`")]
    Mode {
        /// What was asked for.
        what: String,
        /// Its name.
        name: String,
        /// The mode in force.
        mode: String,
    },
}

/// The name of a text that is a setting of the command line and not a file.
pub(crate) const SETTING: &str = "set";

/// The name of a text that is the mode that was asked for.
pub(crate) const MODE: &str = "--mode";

/// A refusal: the problem, where it stands, and the next step.
///
/// It is a [`Diagnostic`], so miette prints it with the lines of the file around it.
#[derive(Clone)]
pub struct ProfileError(Box<Inner>);

#[derive(Clone)]
struct Inner {
    problem: Problem,
    help: String,
    place: Option<(Arc<Source>, Range<usize>, NamedSource<String>)>,
    /// The mistakes that it is made of, where there are several.
    parts: Vec<ProfileError>,
}

impl ProfileError {
    pub(crate) fn new(problem: Problem, help: impl Into<String>, place: Option<Place<'_>>) -> ProfileError {
        let place = place.map(|(source, span)| {
            // A parser may point behind the end, where there is nothing to show.
            let end = span.end.min(source.text.len());
            let span = span.start.min(end)..end;
            let named = NamedSource::new(source.name.clone(), source.text.clone());
            (source.clone(), span, named)
        });
        ProfileError(Box::new(Inner { problem, help: help.into(), place, parts: Vec::new() }))
    }

    /// One refusal for all mistakes of a file, in the order of their places; `None` without any.
    pub(crate) fn several(mistakes: Vec<ProfileError>) -> Option<ProfileError> {
        let flat = |one: ProfileError| if one.0.parts.is_empty() { vec![one] } else { one.0.parts };
        let mut parts: Vec<ProfileError> = mistakes.into_iter().flat_map(flat).collect();
        if parts.len() < 2 {
            return parts.pop();
        }
        parts.sort_by_key(|part| part.0.place.as_ref().map(|(_, span, _)| span.start));
        // What is to be done about several of them is said once.
        let mut helps: Vec<(&str, Vec<String>)> = Vec::new();
        for part in &parts {
            let line = part.place().map(|(_, line, _)| line.to_string());
            match helps.iter_mut().find(|(help, _)| *help == part.0.help) {
                Some((_, lines)) => lines.extend(line),
                None => helps.push((&part.0.help, line.into_iter().collect())),
            }
        }
        let help = |(help, lines): &(&str, Vec<String>)| match &lines[..] {
            [] => help.to_string(),
            [line] => format!("line {line}: {help}"),
            lines => format!("lines {}: {help}", lines.join(", ")),
        };
        let help: Vec<String> = helps.iter().map(help).collect();
        let place = parts[0].0.place.clone();
        let file = place.as_ref().map(|(source, ..)| source.name.clone()).unwrap_or_default();
        let problem = Problem::Several { file, count: parts.len(), first: parts[0].to_string() };
        Some(ProfileError(Box::new(Inner { problem, help: help.join("\n"), place, parts })))
    }

    /// The same refusal, where it is about `setting`: pointing to it at `at`, quotes included, in the file that holds it.
    pub fn standing_in(self, setting: &str, file: &str, text: &str, at: Range<usize>) -> ProfileError {
        let span = match &self.0.place {
            Some((source, span, _)) if source.name == SETTING && source.text == setting => span,
            _ => return self,
        };
        // A string with escapes is longer in the file than what it says.
        let at = if at.len() == setting.len() + 2 {
            at.start + 1 + span.start..at.start + 1 + span.end
        } else {
            at
        };
        let source = Arc::new(Source { name: file.into(), text: text.into() });
        ProfileError::new(self.0.problem, self.0.help, Some((&source, at)))
    }

    /// The same refusal, where it is that a device has not the mode that was asked for: pointing to it at `at` in the file that
    /// asks, with `help` in place of what a device's file may change.
    pub fn of_mode_in(self, file: &str, text: &str, at: Range<usize>, help: String) -> ProfileError {
        match (&self.0.place, &self.0.problem) {
            (Some((source, ..)), problem) if source.name == MODE => {
                let help = if matches!(problem, Problem::Structure { .. }) { help } else { self.0.help };
                let source = Arc::new(Source { name: file.into(), text: text.into() });
                ProfileError::new(self.0.problem, help, Some((&source, at)))
            }
            _ => self,
        }
    }

    /// Adds to the next step.
    pub(crate) fn explain(&mut self, more: &str) {
        self.0.help = format!("{}; {more}", self.0.help);
    }

    /// What is wrong.
    pub fn problem(&self) -> &Problem {
        &self.0.problem
    }

    /// The next step, as a sentence.
    pub fn next_step(&self) -> &str {
        &self.0.help
    }

    /// File, line and column of the place, the latter two from 1; absent where no text is to blame.
    pub fn place(&self) -> Option<(&str, usize, usize)> {
        let (source, span, _) = self.0.place.as_ref()?;
        let before = source.text.get(..span.start).unwrap_or(&source.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let column = before[line_start..].chars().count() + 1;
        Some((&source.name, before.matches('\n').count() + 1, column))
    }
}

impl fmt::Display for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.problem.fmt(f)
    }
}

impl fmt::Debug for ProfileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((file, line, column)) = self.place() {
            write!(f, "{file}:{line}:{column}: ")?;
        }
        write!(f, "{}; {}", self.0.problem, self.0.help)
    }
}

impl std::error::Error for ProfileError {}

impl Diagnostic for ProfileError {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.0.help))
    }
    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.0.place.as_ref().map(|(_, _, named)| named as &dyn SourceCode)
    }
    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        if !self.0.parts.is_empty() {
            let labels = self.0.parts.iter().filter_map(|part| {
                let (_, span, _) = part.0.place.as_ref()?;
                Some(LabeledSpan::new(Some(part.to_string()), span.start, span.len()))
            });
            return Some(Box::new(labels.collect::<Vec<_>>().into_iter()));
        }
        let (_, span, _) = self.0.place.as_ref()?;
        let label = match &self.0.problem {
            Problem::Syntax { .. } => "here",
            Problem::Unknown { .. } => "unknown",
            Problem::Missing { .. } => "incomplete",
            Problem::OutOfRange { .. } => "out of range",
            Problem::Duplicate { .. } => "second",
            Problem::BadName { .. } => "this name",
            _ => "this",
        };
        let span = LabeledSpan::new(Some(label.to_string()), span.start, span.len());
        Some(Box::new(std::iter::once(span)))
    }
}

/// A sentence that offers the nearest of `known` for `name`, and lists all of them.
pub(crate) fn suggestion<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    let known: Vec<&str> = known.into_iter().collect();
    if known.is_empty() {
        return "there is none to choose from".to_string();
    }
    format!("{}known: {}", did_you_mean(name, &known), list(known))
}

/// A question that offers the nearest of `known`, with a blank behind it; empty where none is near.
pub fn did_you_mean(name: &str, known: &[&str]) -> String {
    question(nearest(name, known))
}

/// The question that offers these names; empty without any.
pub(crate) fn question(near: Vec<&str>) -> String {
    match &near[..] {
        [] => String::new(),
        [one] => format!("did you mean `{one}`? "),
        several => format!("did you mean one of {}? ", list(several.iter().copied())),
    }
}

/// How many names are offered at most.
const OFFERED: usize = 5;

/// Those of `known` that `name` most likely meant, the likeliest first; none where none is near.
///
/// Slips of case and of single letters count, and so do names of which only a part was written.
pub(crate) fn nearest<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let lower = name.to_lowercase();
    if lower.is_empty() {
        return Vec::new();
    }
    let slips = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let distance = strsim::damerau_levenshtein(&lower, &candidate);
        (distance <= candidate.chars().count().max(lower.chars().count()).div_ceil(3)).then_some(distance)
    };
    let mut near: Vec<(usize, &str)> =
        known.iter().filter_map(|candidate| Some((slips(candidate)?, *candidate))).collect();
    near.sort_unstable();
    let best = near.first().map_or(0, |(distance, _)| *distance);
    // A whole word of a name is a better reason than a word of about as many letters.
    let parts = |candidate: &str| {
        let candidate = candidate.to_lowercase();
        let starts = |at: usize| at == 0 || !candidate.as_bytes()[at - 1].is_ascii_alphanumeric();
        lower.chars().count() >= 3 && candidate.match_indices(&lower).any(|(at, _)| starts(at))
    };
    let mut offered: Vec<&str> = Vec::new();
    if best > 1 || near.is_empty() {
        offered.extend(known.iter().filter(|candidate| parts(candidate)));
        if offered.iter().any(|candidate| candidate.to_lowercase().starts_with(&lower)) {
            offered.retain(|candidate| candidate.to_lowercase().starts_with(&lower));
        }
    }
    if offered.is_empty() {
        offered
            .extend(near.iter().filter(|(distance, _)| *distance == best).map(|(_, candidate)| *candidate));
    }
    offered.sort_by_key(|candidate| candidate.len());
    offered.dedup();
    offered.truncate(OFFERED);
    offered
}

/// The names in back quotes, with commas.
pub(crate) fn list<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}
