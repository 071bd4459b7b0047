//! What a user gives a system, by the names that it declares.

use super::declare::{About, Of};
use offpath_fabric::RoleName;
use offpath_quantity::{BitRate, Bytes, Time, whole_within};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

/// What an option reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionKind {
    /// Any text.
    Text,
    /// The path of a file or folder.
    Path,
    /// A whole number from the first to the second.
    Whole(u64, u64),
    /// A time.
    Time,
    /// A time longer than none.
    SomeTime,
    /// A size.
    Bytes,
    /// A rate in bits a second, or 0 for what costs nothing.
    Rate,
    /// One of some names, each with what it stands for.
    OneOf(&'static [(&'static str, &'static str)]),
    /// An alternative of the system.
    Alternative,
    /// A role, as `backup` or `backup:1`.
    Role,
}

/// A value that a user gave.
#[derive(Clone, Debug, PartialEq)]
pub enum GivenValue {
    /// A text, or a name.
    Text(String),
    /// A path.
    Path(PathBuf),
    /// A whole number.
    Whole(u64),
    /// A plain number.
    Ratio(f64),
    /// A time.
    Time(Time),
    /// A size.
    Bytes(Bytes),
    /// A rate.
    Rate(BitRate),
    /// A role.
    Role(RoleName),
}

/// A quantity with its unit.
fn quantity<T: FromStr>(text: &str) -> Result<T, String>
where
    T::Err: ToString,
{
    text.parse().map_err(|error: T::Err| error.to_string())
}

impl OptionKind {
    /// Reads a value; the error says what would be one. A name of an alternative is read by
    /// [`About::read`], which knows them.
    pub fn read(self, text: &str) -> Result<GivenValue, String> {
        match self {
            OptionKind::Text | OptionKind::Alternative => Ok(GivenValue::Text(text.to_string())),
            OptionKind::Path => Ok(GivenValue::Path(text.into())),
            OptionKind::Whole(least, most) => whole_within(text, least, most).map(GivenValue::Whole),
            OptionKind::Time => quantity(text).map(GivenValue::Time),
            OptionKind::SomeTime => match quantity(text)? {
                Time::ZERO => Err("it has to be longer than 0, as in `1 ms`".to_string()),
                time => Ok(GivenValue::Time(time)),
            },
            OptionKind::Bytes => quantity(text).map(GivenValue::Bytes),
            OptionKind::Rate if text == "0" => Ok(GivenValue::Rate(BitRate::from_bits_per_second(0))),
            OptionKind::Rate => quantity(text).map(GivenValue::Rate),
            OptionKind::OneOf(names) => {
                let known = names.iter().find(|(name, _)| *name == text);
                known.map(|(name, _)| GivenValue::Text((*name).to_string())).ok_or_else(|| {
                    let names: Vec<&str> = names.iter().map(|(name, _)| *name).collect();
                    format!("use one of {}", names.join(", "))
                })
            }
            OptionKind::Role => role_name(text).map(GivenValue::Role),
        }
    }
}

/// Reads `ROLE` or `ROLE:INSTANCE`.
pub fn role_name(text: &str) -> Result<RoleName, String> {
    let (role, instance) = text.split_once(':').unwrap_or((text, "0"));
    let instance =
        instance.parse().map_err(|_| format!("`{text}` is not a role; write `backup` or `backup:1`"))?;
    Ok(RoleName::new(role, instance))
}

/// A role as [`role_name`] reads it.
pub fn role_text(name: &RoleName) -> String {
    if name.instance == 0 { name.role.clone() } else { format!("{}:{}", name.role, name.instance) }
}

/// What a kind of value is kept as.
pub trait Kept: Sized {
    /// The value, where it is of this kind.
    fn of(value: &GivenValue) -> Option<Self>;
}

macro_rules! kept {
    ($($kind:ident $type:ty,)+) => {
        $(impl Kept for $type {
            fn of(value: &GivenValue) -> Option<$type> {
                match value {
                    GivenValue::$kind(own) => Some(own.clone()),
                    _ => None,
                }
            }
        })+
    };
}
kept! { Text String, Path PathBuf, Whole u64, Ratio f64, Time Time, Bytes Bytes, Rate BitRate, Role RoleName, }

/// Values by name, as a system declares them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Given(BTreeMap<&'static str, Vec<GivenValue>>);

impl Given {
    /// The defaults of a command's options.
    pub fn defaults(about: &About, of: Of) -> Given {
        let mut given = Given::default();
        for option in about.options_of(of) {
            if let Some(text) = option.default {
                let value = about.read(option, text).expect("a declared default is read");
                given.set(option.name, vec![value]);
            }
        }
        given
    }

    /// Keeps what is given for a name; nothing for an empty list.
    pub fn set(&mut self, name: &'static str, values: Vec<GivenValue>) {
        if !values.is_empty() {
            self.0.insert(name, values);
        }
    }

    /// All that is given for a name.
    ///
    /// # Panics
    /// Where a system reads another kind of value than it declares.
    pub fn all<T: Kept>(&self, name: &str) -> Vec<T> {
        let kept = |value| T::of(value).unwrap_or_else(|| panic!("`{name}` is declared as another kind"));
        self.0.get(name).into_iter().flatten().map(kept).collect()
    }

    /// The last that is given for a name.
    ///
    /// # Panics
    /// As [`Given::all`].
    pub fn get<T: Kept>(&self, name: &str) -> Option<T> {
        self.all(name).pop()
    }

    /// The last text that is given for a name.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name)?.last()? {
            GivenValue::Text(text) => Some(text),
            _ => None,
        }
    }

    /// What is given for a name that is needed or has a default.
    ///
    /// # Panics
    /// As [`Given::all`], and where nothing is given.
    pub fn of<T: Kept>(&self, name: &str) -> T {
        self.get(name).unwrap_or_else(|| panic!("`{name}` is declared without a default"))
    }

    /// A whole number that is needed or has a default, within its declared bounds.
    ///
    /// # Panics
    /// As [`Given::of`], and where the declared bounds are wider than the type.
    pub fn whole<T: TryFrom<u64>>(&self, name: &str) -> T {
        let number = self.of::<u64>(name);
        T::try_from(number).unwrap_or_else(|_| panic!("`{name}` is declared with wider bounds"))
    }
}
