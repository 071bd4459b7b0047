//! What a system declares of itself, as data: names, keys of a design, options of the command line.

use super::values::{GivenValue, OptionKind};
use offpath_quantity::Dimension;

/// What is said of a system, from which designs, the command line, help and completion follow.
#[derive(Clone, Copy, Debug)]
pub struct About {
    /// The name in designs and on the command line, as `kv`.
    pub name: &'static str,
    /// What it is called in sentences about its code, as `kv store`.
    pub title: &'static str,
    /// What it is, as `key-value store`.
    pub what: &'static str,
    /// The heading of its options, and in lower case what it is called for short, as `Store`.
    pub group: &'static str,
    /// Its alternatives.
    pub alternatives: &'static [DeclaredAlternative],
    /// Its keys in `[application]` of a design, in the order in which they are read.
    pub keys: &'static [Key],
    /// Its options on the command line, in the order in which help lists them.
    pub options: &'static [Choice],
    /// How help describes `offpath run`.
    pub run: CommandUsage,
    /// How help describes `offpath serve`.
    pub serve: CommandUsage,
    /// The processors on which the twin runs roles that are called otherwise.
    pub placed: &'static [(&'static str, &'static str)],
    /// What it promises under faults.
    pub promise: &'static str,
    /// The processors that its trials under faults run on.
    pub endpoints: &'static [&'static str],
    /// The kinds of machines that its trials name, and how many of each.
    pub machines: &'static [(&'static str, u64)],
    /// Mistakes that can be injected into it, to see that its checker finds them.
    pub bugs: &'static [&'static str],
    /// The design that `offpath new` begins with, where there is one.
    pub template: Option<Template>,
}

/// An alternative of a system.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredAlternative {
    /// The label in designs, on the command line and in answers, as the papers have it.
    pub label: &'static str,
    /// Whether a design may name it; others are mixes of those that it may.
    pub in_designs: bool,
    /// What it does with the card's cache.
    pub cache: DeclaredCacheUse,
}

/// What requests of an alternative do with a cache that the system keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeclaredCacheUse {
    /// They pass it by.
    Unused,
    /// They look into it, and what they miss stays out.
    Looked,
    /// They look into it, and bring in what they miss often.
    Filled,
}

/// How help describes a command on a system.
#[derive(Clone, Copy, Debug)]
pub struct CommandUsage {
    /// One line.
    pub documentation: &'static str,
    /// Examples and what else is to be known; empty where there are none.
    pub examples: &'static str,
}

/// A commented design to start from.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    /// What it is called behind `--kind`.
    pub kind: &'static str,
    /// What it is, in one line.
    pub documentation: &'static str,
    /// The text, with `@NAME@`, `@DEVICE@`, `@SOC@`, `@FILE@`, `@WORKLOAD@` and a line `@STEPS@`.
    pub text: &'static str,
    /// The shipped YCSB workload that is written beside it, and what that is.
    pub workload: Option<(&'static str, &'static str)>,
}

/// What a key of a design holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// A time of a processor, which steps may name.
    Time,
    /// A size.
    Bytes,
    /// A plain number.
    Ratio,
    /// What one core gets done, in bits a second.
    Rate,
    /// An object of the design.
    Object,
    /// The DMA engine that the card moves bytes by.
    Engine,
    /// Endpoints, in order.
    Endpoints,
}

impl KeyKind {
    /// What it measures, where it is a number.
    pub fn dimension(self) -> Option<Dimension> {
        match self {
            KeyKind::Time => Some(Dimension::Time),
            KeyKind::Bytes => Some(Dimension::Bytes),
            KeyKind::Ratio => Some(Dimension::Ratio),
            KeyKind::Rate => Some(Dimension::BitRate),
            KeyKind::Object | KeyKind::Engine | KeyKind::Endpoints => None,
        }
    }
}

/// A key of `[application]` in a design.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: KeyKind,
    /// An example, as the file writes it, where a design has to have it.
    pub needed: Option<&'static str>,
    /// What values it may have, where not all of its kind.
    pub bounds: Option<Bounds>,
    /// What it is.
    pub documentation: &'static str,
}

impl Key {
    /// A key that a design may leave out.
    pub const fn new(name: &'static str, kind: KeyKind, documentation: &'static str) -> Key {
        Key { name, kind, needed: None, bounds: None, documentation }
    }

    /// The same, needed; the example is written as in a file.
    pub const fn needed(self, example: &'static str) -> Key {
        Key { needed: Some(example), ..self }
    }

    /// The same, with bounds.
    pub const fn within(self, bounds: Bounds) -> Key {
        Key { bounds: Some(bounds), ..self }
    }
}

/// The least and the greatest value of a key.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// The least, in the base unit.
    pub least: f64,
    /// The greatest.
    pub most: f64,
    /// Why a value, as it is printed, is refused.
    pub refusal: fn(&str) -> String,
    /// The next step.
    pub help: &'static str,
}

/// Which commands take an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Of {
    /// `run` and `serve`: it says what the roles of a system agree on.
    Both,
    /// `run` alone.
    Run,
    /// `serve` alone.
    Serve,
}

/// An option of the command line.
#[derive(Clone, Copy, Debug)]
pub struct Choice {
    /// Its name, without the dashes.
    pub name: &'static str,
    /// What help calls its value; the name in capitals where it is empty.
    pub value: &'static str,
    /// What it reads.
    pub kind: OptionKind,
    /// Which commands take it.
    pub of: Of,
    /// The value where none is given.
    pub default: Option<&'static str>,
    /// Whether it has to be given.
    pub is_needed: bool,
    /// Whether it may be given several times.
    pub is_list: bool,
    /// The option that it cannot be given together with.
    pub against: Option<&'static str>,
    /// What it is, in one sentence without its full stop.
    pub documentation: &'static str,
}

impl Choice {
    /// An option that may be left out.
    pub const fn new(name: &'static str, of: Of, kind: OptionKind, documentation: &'static str) -> Choice {
        let (default, against) = (None, None);
        Choice {
            name,
            value: "",
            kind,
            of,
            default,
            is_needed: false,
            is_list: false,
            against,
            documentation,
        }
    }

    /// The same, its value called otherwise than the option.
    pub const fn called(self, value: &'static str) -> Choice {
        Choice { value, ..self }
    }

    /// The same with a default, as the command line writes it.
    pub const fn or(self, default: &'static str) -> Choice {
        Choice { default: Some(default), ..self }
    }

    /// The same, to be given.
    pub const fn needed(self) -> Choice {
        Choice { is_needed: true, ..self }
    }

    /// The same, several times.
    pub const fn list(self) -> Choice {
        Choice { is_list: true, ..self }
    }

    /// The same, refused beside another.
    pub const fn against(self, other: &'static str) -> Choice {
        Choice { against: Some(other), ..self }
    }
}

impl About {
    /// What it is called for short, as `store`.
    pub fn short(&self) -> String {
        self.group.to_lowercase()
    }

    /// The labels of its alternatives.
    pub fn labels(&self) -> impl Iterator<Item = &'static str> {
        self.alternatives.iter().map(|one| one.label)
    }

    /// The label of the alternative that a user names, whatever the case.
    pub fn alternative(&self, text: &str) -> Result<&'static str, String> {
        self.labels().find(|label| label.eq_ignore_ascii_case(text)).ok_or_else(|| {
            let known: Vec<&str> = self.labels().collect();
            format!("the {} has no placement `{text}`; it has {}", self.short(), known.join(", "))
        })
    }

    /// The options that a command takes.
    pub fn options_of(&self, of: Of) -> impl Iterator<Item = &'static Choice> {
        self.options.iter().filter(move |one| one.of == Of::Both || one.of == of)
    }

    /// Reads the value of an option.
    pub fn read(&self, option: &Choice, text: &str) -> Result<GivenValue, String> {
        match option.kind {
            OptionKind::Alternative => {
                self.alternative(text).map(|label| GivenValue::Text(label.to_string()))
            }
            kind => kind.read(text),
        }
    }
}
