//! Why a command ends without its answer, how that is shown, and the exit code that follows.

use crate::options::posting_name;
use crate::output::{COLUMNS, Color, allows_color, columns, tell};
use miette::{Diagnostic, GraphicalReportHandler, GraphicalTheme};
use offpath_profile::{Problem, ProfileError};
use offpath_quantity::ParseError;
use offpath_route::{Posting, RouteError, Router, Verb};
use std::fmt;
use std::io::{IsTerminal, stderr};
use std::process::ExitCode;

/// The tool ran, but the answer is negative: infeasible, unstable, not met.
pub const NEGATIVE: u8 = 1;
/// The input is wrong; clap uses the same code.
pub const BAD_INPUT: u8 = 2;
/// The tool itself is wrong (EX_SOFTWARE of sysexits).
pub const INTERNAL: u8 = 70;
/// The answer is there and cannot be written, as on a full disk (EX_IOERR of sysexits).
pub const UNWRITABLE: u8 = 74;

/// An error with the exit code that it leads to.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    report: Box<dyn Diagnostic + Send + Sync>,
}

impl Failure {
    /// Wrong input that has no place in a file.
    pub fn input(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(BAD_INPUT, Plain { message: message.into(), help: help.into() })
    }

    /// A question that was understood and has no good answer.
    pub fn negative(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(NEGATIVE, Plain { message: message.into(), help: help.into() })
    }

    /// An answer that nobody receives.
    pub fn unwritten(message: impl Into<String>, help: impl Into<String>) -> Failure {
        Failure::new(UNWRITABLE, Plain { message: message.into(), help: help.into() })
    }

    /// Any diagnostic with its exit code.
    pub fn new(code: u8, report: impl Diagnostic + Send + Sync + 'static) -> Failure {
        Failure { code, report: Box::new(report) }
    }

    /// A report of the planner with the exit code that it leads to.
    pub fn report_of(code: u8, report: miette::Report) -> Failure {
        Failure { code, report: report.into() }
    }

    /// Shows it on stderr: drawn on a terminal, plain elsewhere.
    pub fn report(&self, color: Color) -> ExitCode {
        let terminal = stderr().is_terminal();
        let theme = match (terminal, allows_color(color, terminal)) {
            (_, true) => GraphicalTheme::unicode(),
            (true, false) => GraphicalTheme::unicode_nocolor(),
            (false, false) => GraphicalTheme::none(),
        };
        // Wrapped lines break names that a reader wants to search for, so only a terminal wraps.
        let handler = GraphicalReportHandler::new_themed(theme).with_links(false).with_wrap_lines(terminal);
        let handler = handler.with_width(columns(&stderr()).unwrap_or(COLUMNS));
        let mut text = String::new();
        if let Some(plain) = self.beyond_drawing() {
            text = plain;
        } else if handler.render_report(&mut text, self.report.as_ref()).is_err() {
            text = self.report.to_string();
        }
        tell(text.trim_end());
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.report.fmt(f)
    }
}

impl std::error::Error for Failure {}

/// Columns of a line that is drawn: what points beyond is told in words, since nobody sees an arrow there.
const DRAWN: usize = 2_000;

/// Places that are drawn; more are listed.
const PLACES_DRAWN: usize = 3;

impl Failure {
    /// The message, its places and the next step in words, where a place is too far right to be drawn, or places are so
    /// many that a drawing would be most of the file.
    fn beyond_drawing(&self) -> Option<String> {
        let (source, labels) = (self.report.source_code()?, self.report.labels()?);
        let labels: Vec<miette::LabeledSpan> = labels.collect();
        let is_long = |line: &[u8]| line.len() > DRAWN;
        // A drawing has the lines before and after the place as well.
        let drawn = |label: &miette::LabeledSpan| source.read_span(label.inner(), 1, 1).ok();
        let is_far = |label: &miette::LabeledSpan| {
            drawn(label).is_some_and(|drawn| drawn.data().split(|byte| *byte == b'\n').any(is_long))
        };
        if labels.len() <= PLACES_DRAWN && !labels.iter().any(is_far) {
            return None;
        }
        let said = self.report.to_string();
        let place = |label: &miette::LabeledSpan| {
            let at = source.read_span(label.inner(), 0, 0).ok()?;
            let name = at.name().map_or_else(String::new, |name| format!("{name}:"));
            // What is told at one place alone is the message itself.
            let words = label.label().filter(|words| *words != "here" && !said.contains(words));
            let words = words.map_or_else(String::new, |words| format!(": {words}"));
            Some(format!("\n  at {name}{}:{}{words}", at.line() + 1, at.column() + 1))
        };
        let places: String = labels.iter().filter_map(place).collect();
        let help = self.report.help().map_or_else(String::new, |help| format!("\n  help: {help}"));
        Some(format!("  x {said}{places}{help}"))
    }
}

/// A message and the next step.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
struct Plain {
    message: String,
    help: String,
}

impl Diagnostic for Plain {
    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        (!self.help.is_empty()).then(|| Box::new(&self.help) as Box<dyn fmt::Display>)
    }
}

impl From<ProfileError> for Failure {
    fn from(error: ProfileError) -> Failure {
        Failure::new(BAD_INPUT, error)
    }
}

impl From<miette::Report> for Failure {
    fn from(report: miette::Report) -> Failure {
        Failure::report_of(BAD_INPUT, report)
    }
}

impl From<ParseError> for Failure {
    fn from(error: ParseError) -> Failure {
        Failure::input(error.to_string(), "write the number with its unit, as in `64B` or `4KiB`")
    }
}

impl From<RouteError> for Failure {
    fn from(error: RouteError) -> Failure {
        let help = match error {
            RouteError::NoSuchVerb { .. } => "choose another `--verb`, or another path",
            RouteError::PayloadTooLarge { .. } => "choose a smaller `--size`",
            RouteError::ReservedBeyondSlots { .. }
            | RouteError::TooManyEndpoints { .. }
            | RouteError::TooMany { .. } => "",
            _ => "`offpath path DEVICE --verb VERB` lists the paths of a device that carry a verb",
        };
        Failure::input(error.to_string(), help)
    }
}

/// A doorbell batch of what rings no doorbell.
pub fn no_doorbell(posting: Posting, verb: Verb, place: &str) -> Failure {
    let post = posting_name(posting);
    Failure::input(
        format!("`--post {post}`: `{verb}` {place} rings no doorbell of a NIC, so there is none to share"),
        "leave `--post` out",
    )
}

/// A refused path, with the nearest of those that exist.
pub fn unknown_path(router: &Router, name: &str, error: RouteError) -> Failure {
    // An endpoint that the card's mode hides has a better explanation than that it is unknown.
    for endpoint in name.split('-').take(2) {
        if let Err(hidden) = router.system().endpoint(endpoint)
            && matches!(hidden.problem(), Problem::Mode { .. })
        {
            return hidden.into();
        }
    }
    let paths: Vec<String> = router.paths().iter().map(ToString::to_string).collect();
    let near = nearest(name, &paths).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
    Failure::input(
        error.to_string(),
        format!("{near}`offpath path {}` lists the paths", router.system().device),
    )
}

/// The one of `known` that `name` most likely meant, where any is near.
pub fn nearest<'a>(name: &str, known: &'a [String]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= candidate.len().max(name.len()).div_ceil(3))
        .min()
        .map(|(_, candidate)| candidate.as_str())
}
