//! Numbers of a design: what its author writes for a time, a rate, a size or a plain number.
//!
//! Each is an estimate of its author: it has an identifier, which is where it stands in the file, and
//! where the author gives one an interval. A number is written as a text with its unit (`"80 ns"`), as a
//! plain number where it has none, as an interval (`"2 us to 4 us"`), or as
//! `{ value = "3 us", low = "2 us", high = "4 us" }`.

use offpath_quantity::{Dimension, ParseError, Quantity};
use std::ops::Range;
use std::sync::Arc;

/// A number that a design's author wrote.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Where it stands in the file: `parameters.chunk`, `alternative.A1.request.3.time`. Steps are
    /// counted from 1.
    pub id: Arc<str>,
    /// Its value; the middle of the interval where the file gives an interval alone.
    pub value: Quantity,
    /// The least that it may be, where its author says so.
    pub low: Option<Quantity>,
    /// The greatest.
    pub high: Option<Quantity>,
    /// Whether nobody who knows the system says it: `provenance = "assumed"`, as a remedy of `check` writes.
    pub is_assumed: bool,
    /// Whether it says how often something happens, which is 1 at most, or is a part of what does.
    pub is_share: bool,
    /// Whether it says how much of a kind of work a step does, or multiplies a time, a rate or the bytes that a step computes
    /// on: a guess, whole or not.
    pub is_work: bool,
    /// Whether it says how many of something there are, as times of a repeat: a whole one is its author's to say, whatever else
    /// it multiplies.
    pub is_count: bool,
    /// Where the file gives it.
    pub span: Range<usize>,
}

/// How much of a step's time an estimate is.
#[derive(Clone, Debug, PartialEq)]
pub struct Share {
    /// The estimate.
    pub id: Arc<str>,
    /// The share: 1 where the whole time is in proportion to it, -1 where in inverse proportion, as to a
    /// rate.
    pub share: f64,
}

/// A number as it is written, without a name for it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Written {
    pub value: Quantity,
    pub low: Option<Quantity>,
    pub high: Option<Quantity>,
    pub is_assumed: bool,
}

/// What a number measures, as messages call it.
pub(crate) fn noun(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Time => "a time",
        Dimension::Bytes => "a size",
        Dimension::BitRate => "a bit rate",
        Dimension::OpRate => "an operation rate",
        Dimension::Frequency => "a frequency",
        Dimension::Ratio => "a plain number",
        Dimension::Count => "a whole number",
    }
}

/// What a parameter may measure.
const ANY: [Dimension; 5] =
    [Dimension::Time, Dimension::Bytes, Dimension::BitRate, Dimension::OpRate, Dimension::Frequency];

const EXAMPLES: &str = "write one number with its unit as in `3 us`, an interval as in `2 us to 4 us`, \
                        or `{ value = \"3 us\", low = \"2 us\", high = \"4 us\" }`";

impl Written {
    fn exact(value: Quantity) -> Written {
        Written { value, low: None, high: None, is_assumed: false }
    }

    /// Whether a text is an interval.
    pub fn is_interval(text: &str) -> bool {
        text.contains(" to ")
    }

    /// Reads what a file gives, as `dimension` or, where there is none, as what its unit says. The error
    /// has a message and what to do.
    pub fn read(value: &toml::Value, dimension: Option<Dimension>) -> Result<Written, (String, String)> {
        match value {
            toml::Value::Integer(_) | toml::Value::Float(_) => Ok(Written::exact(one(value, dimension)?)),
            toml::Value::String(text) => Written::text(text, dimension),
            toml::Value::Table(table) => Written::table(table, dimension),
            other => Err((
                format!("what stands here, of type {}, is no number with a unit", other.type_str()),
                EXAMPLES.to_string(),
            )),
        }
    }

    /// The same from text, which may be an interval.
    pub fn text(text: &str, dimension: Option<Dimension>) -> Result<Written, (String, String)> {
        let Some((low, high)) = text.split_once(" to ") else {
            return Ok(Written::exact(parsed(text, dimension)?));
        };
        // A plain interval has to be text, so that here a number needs no unit.
        let end = |text: &str| match (text.trim().parse::<f64>(), dimension) {
            (Ok(number), None | Some(Dimension::Ratio)) => plain(number),
            _ => parsed(text, dimension),
        };
        let (low, high) = (end(low)?, end(high)?);
        if low.dimension() != high.dimension() {
            return Err((
                format!("`{text}` begins with {} and ends with {}", kind(low), kind(high)),
                "write both ends with a unit of one kind, as in `2 us to 4 us`".to_string(),
            ));
        }
        let value = Quantity::from_base((low.base() + high.base()) / 2.0, low.dimension())
            .ok_or_else(|| (format!("`{text}` is out of range"), EXAMPLES.to_string()))?;
        Written { value, low: Some(low), high: Some(high), is_assumed: false }.checked()
    }

    fn table(table: &toml::Table, dimension: Option<Dimension>) -> Result<Written, (String, String)> {
        if let Some(key) =
            table.keys().find(|key| !["value", "low", "high", "provenance"].contains(&key.as_str()))
        {
            return Err((format!("a number has no `{key}`"), EXAMPLES.to_string()));
        }
        let is_assumed = match table.get("provenance").map(|given| (given, given.as_str())) {
            None => false,
            Some((_, Some("assumed"))) => true,
            Some((given, _)) => {
                return Err((
                    format!("the provenance {given} is none of a design's numbers"),
                    "write `provenance = \"assumed\"` for a guess that is nobody's estimate, or leave it out"
                        .to_string(),
                ));
            }
        };
        let part = |key: &str| match table.get(key) {
            Some(given) => one(given, dimension),
            None => Err((format!("a number with an interval has no `{key}` here"), EXAMPLES.to_string())),
        };
        let (value, low, high) = (part("value")?, part("low")?, part("high")?);
        if let Some(other) = [low, high].into_iter().find(|end| end.dimension() != value.dimension()) {
            return Err((
                format!("the value is {}, and an end of its interval is {}", kind(value), kind(other)),
                "give value, low and high units of one kind".to_string(),
            ));
        }
        Written { value, low: Some(low), high: Some(high), is_assumed }.checked()
    }

    fn checked(self) -> Result<Written, (String, String)> {
        let (Some(low), Some(high)) = (self.low, self.high) else { return Ok(self) };
        if low.base() <= self.value.base() && self.value.base() <= high.base() {
            return Ok(self);
        }
        if low.base() > high.base() {
            return Err((
                format!("an interval from {low} to {high} ends below where it begins"),
                "write its lower end first".to_string(),
            ));
        }
        Err((
            format!("{} is not within {low} to {high}", self.value),
            "write low, value and high in rising order".to_string(),
        ))
    }
}

fn kind(quantity: Quantity) -> &'static str {
    noun(quantity.dimension())
}

fn plain(number: f64) -> Result<Quantity, (String, String)> {
    Quantity::from_base(number, Dimension::Ratio).ok_or_else(|| {
        (
            format!("{number} is outside of what a plain number may be: 0 to 9e18"),
            "give it a finite number that is not negative".to_string(),
        )
    })
}

/// One number without an interval.
fn one(value: &toml::Value, dimension: Option<Dimension>) -> Result<Quantity, (String, String)> {
    let number = match value {
        toml::Value::Integer(number) => *number as f64,
        toml::Value::Float(number) => *number,
        toml::Value::String(text) => return parsed(text, dimension),
        other => {
            return Err((
                format!("what stands here, of type {}, is no number", other.type_str()),
                EXAMPLES.to_string(),
            ));
        }
    };
    match dimension {
        None | Some(Dimension::Ratio) => plain(number),
        Some(_) => parsed(&number.to_string(), dimension),
    }
}

/// A text with a unit, of `dimension` or of whichever has that unit.
fn parsed(text: &str, dimension: Option<Dimension>) -> Result<Quantity, (String, String)> {
    let refused = |error: ParseError, dimension: Dimension| {
        (error.to_string(), format!("as in `{}`", dimension.example()))
    };
    if let Some(dimension) = dimension {
        return Quantity::parse(text, dimension).map_err(|error| refused(error, dimension));
    }
    let mut unknown = None;
    for dimension in ANY {
        match Quantity::parse(text, dimension) {
            Ok(read) => return Ok(read),
            Err(ParseError::UnknownUnit { unit, .. }) => unknown = Some(unit),
            // What has no unit, and what is not a number, is so in any.
            Err(ParseError::MissingUnit { .. }) => {
                return Err((
                    format!("`{text}` has no unit"),
                    "write one as in `3 us`, `64 B`, `10 Gbit/s` or `2 M/s`, or a plain number without quotes"
                        .to_string(),
                ));
            }
            Err(ParseError::NoNumber { .. }) => {
                return Err((
                    format!("`{text}` is not one number"),
                    format!("{EXAMPLES}; products of parameters stand where a number is used"),
                ));
            }
            // What is negative or out of range has the unit.
            Err(error) => return Err(refused(error, dimension)),
        }
    }
    let units: Vec<&str> = ANY.into_iter().flat_map(Dimension::units).map(|(unit, _)| *unit).collect();
    Err((
        format!("`{}` is not a unit", unknown.unwrap_or_default()),
        format!("use one of {}, or a plain number without quotes", units.join(", ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, dimension: Option<Dimension>) -> Result<(String, String, String), String> {
        let table: toml::Table = format!("x = {text}").parse().expect("TOML");
        let written = Written::read(&table["x"], dimension).map_err(|(message, _)| message)?;
        let end = |end: Option<Quantity>| end.map_or_else(|| "-".to_string(), |end| end.to_string());
        Ok((written.value.to_string(), end(written.low), end(written.high)))
    }

    fn all(value: &str, low: &str, high: &str) -> Result<(String, String, String), String> {
        Ok((value.to_string(), low.to_string(), high.to_string()))
    }

    #[test]
    fn numbers_are_read_in_each_form() {
        assert_eq!(read("\"80 ns\"", Some(Dimension::Time)), all("80 ns", "-", "-"));
        assert_eq!(read("\"2 us to 4 us\"", Some(Dimension::Time)), all("3 us", "2 us", "4 us"));
        assert_eq!(read("\"2 us to 4 us\"", None), all("3 us", "2 us", "4 us"));
        assert_eq!(read("0.5", None), all("0.5", "-", "-"));
        assert_eq!(read("\"0.25 to 0.75\"", None), all("0.5", "0.25", "0.75"));
        assert_eq!(
            read("{ value = \"1 Gbit/s\", low = \"0.5 Gbit/s\", high = \"4 Gbit/s\" }", None),
            all("1 Gbit/s", "500 Mbit/s", "4 Gbit/s")
        );
        assert_eq!(read("{ value = 1, low = 0.5, high = 2 }", None), all("1", "0.5", "2"));
    }

    /// A parameter may be of any unit, so that no remedy takes it for a size.
    #[test]
    fn the_remedy_of_a_parameter_is_of_any_unit() {
        for text in ["2", "chunk * 2", "NaN us"] {
            let (message, help) = Written::text(text, None).expect_err(text);
            assert!(!message.contains("bytes") && help.contains("`3 us`"), "{message}: {help}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_meant_are_refused() {
        for (text, dimension, words) in [
            ("80", Some(Dimension::Time), "`80` has no unit"),
            ("\"4 us to 2 us\"", None, "from 4 us to 2 us ends below where it begins"),
            ("\"4 us to 2 KiB\"", None, "begins with a time and ends with a size"),
            ("\"2 to 4 us\"", None, "begins with a plain number and ends with a time"),
            ("\"2 to 4 us\"", Some(Dimension::Time), "`2` has no unit"),
            ("\"3 furlongs\"", None, "`furlongs` is not a unit"),
            ("\"64\"", None, "`64` has no unit"),
            ("\"-2 us\"", None, "`-2 us` is negative"),
            ("\"NaN us\"", None, "`NaN us` is not one number"),
            ("\"chunk * 2\"", None, "`chunk * 2` is not one number"),
            ("-1", None, "-1 is outside"),
            ("nan", None, "NaN is outside"),
            ("{ value = \"1 us\", low = \"1 ns\" }", None, "no `high`"),
            (
                "{ value = \"1 us\", low = \"1 ns\", high = \"3 B\" }",
                None,
                "an end of its interval is a size",
            ),
            ("{ value = \"1 us\", most = \"1 ns\" }", None, "no `most`"),
            ("true", None, "of type boolean"),
            ("[1]", None, "of type array"),
        ] {
            let error = read(text, dimension).expect_err(text);
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
