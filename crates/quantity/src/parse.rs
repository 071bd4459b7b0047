//! Text to quantity. One table of units per dimension; what is not in it is refused with the table.

use crate::{BitRate, Bytes, Frequency, OpRate, Time};
use std::fmt;

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dimension {
    /// A span of time.
    Time,
    /// A number of bytes.
    Bytes,
    /// Bits per second.
    BitRate,
    /// Operations per second.
    OpRate,
    /// Cycles per second.
    Frequency,
    /// A number between things of one kind; it has no unit.
    Ratio,
    /// How many; it has no unit.
    Count,
}

impl Dimension {
    /// The units that text of this dimension may carry, each with its size in the base unit.
    pub fn units(self) -> &'static [(&'static str, f64)] {
        match self {
            Dimension::Time => &[("ps", 1.0), ("ns", 1e3), ("us", 1e6), ("ms", 1e9), ("s", 1e12)],
            Dimension::Bytes => &[
                ("B", 1.0),
                ("kB", 1e3),
                ("MB", 1e6),
                ("GB", 1e9),
                ("TB", 1e12),
                ("KiB", 1024.0),
                ("MiB", 1048576.0),
                ("GiB", 1073741824.0),
                ("TiB", 1099511627776.0),
            ],
            Dimension::BitRate => &[
                ("bit/s", 1.0),
                ("kbit/s", 1e3),
                ("Mbit/s", 1e6),
                ("Gbit/s", 1e9),
                ("Tbit/s", 1e12),
                ("MB/s", 8e6),
                ("GB/s", 8e9),
            ],
            Dimension::OpRate => &[("/s", 1.0), ("k/s", 1e3), ("M/s", 1e6), ("G/s", 1e9)],
            Dimension::Frequency => &[("Hz", 1.0), ("kHz", 1e3), ("MHz", 1e6), ("GHz", 1e9)],
            Dimension::Ratio | Dimension::Count => &[],
        }
    }

    /// A well-formed example, for messages.
    pub fn example(self) -> &'static str {
        match self {
            Dimension::Time => "300 ns",
            Dimension::Bytes => "512 B",
            Dimension::BitRate => "200 Gbit/s",
            Dimension::OpRate => "29 M/s",
            Dimension::Frequency => "2.75 GHz",
            Dimension::Ratio => "0.5",
            Dimension::Count => "8",
        }
    }
}

impl fmt::Display for Dimension {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Dimension::Time => "time",
            Dimension::Bytes => "bytes",
            Dimension::BitRate => "bit rate",
            Dimension::OpRate => "operation rate",
            Dimension::Frequency => "frequency",
            Dimension::Ratio => "ratio",
            Dimension::Count => "count",
        })
    }
}

/// A number with its dimension.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Quantity {
    /// A span of time.
    Time(Time),
    /// A number of bytes.
    Bytes(Bytes),
    /// Bits per second.
    BitRate(BitRate),
    /// Operations per second.
    OpRate(OpRate),
    /// Cycles per second.
    Frequency(Frequency),
    /// A plain ratio.
    Ratio(f64),
    /// How many.
    Count(u64),
}

/// Why text is not a quantity. Each message names the text and what would be accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// There is no number at the start.
    #[error("`{text}` does not start with a number; write {dimension} as in `{}`", dimension.example())]
    NoNumber {
        /// What was written.
        text: String,
        /// What was expected.
        dimension: Dimension,
    },
    /// There is a number and nothing else.
    #[error("`{text}` has no unit; write {dimension} as in `{}`", dimension.example())]
    MissingUnit {
        /// What was written.
        text: String,
        /// What was expected.
        dimension: Dimension,
    },
    /// The unit is not one of the dimension's.
    #[error("`{unit}` is not a unit of {dimension}; {}{}", meant(unit, *dimension), units(*dimension))]
    UnknownUnit {
        /// The unit that was written.
        unit: String,
        /// What was expected.
        dimension: Dimension,
    },
    /// There is no such part of the base unit.
    #[error("`{text}` is finer than {dimension} is counted, in whole {unit}")]
    TooFine {
        /// What was written.
        text: String,
        /// What was expected.
        dimension: Dimension,
        /// The unit that it is counted in.
        unit: &'static str,
    },
    /// A number of things that is none.
    #[error("`{text}` is not a whole number")]
    NotWhole {
        /// What was written.
        text: String,
    },
    /// The number is below 0.
    #[error("`{text}` is negative; write 0 or more")]
    Negative {
        /// What was written.
        text: String,
    },
    /// The number is not finite, or beyond what an integer of the base unit holds.
    #[error("`{text}` is outside the range of {dimension}: from 0 to {bound}")]
    OutOfRange {
        /// What was written.
        text: String,
        /// What was expected.
        dimension: Dimension,
        /// The largest accepted value, in words.
        bound: String,
    },
}

/// The unit that somebody meant who wrote one in other letters; `KB` is told apart from `KiB` by nobody but its author.
fn meant(unit: &str, dimension: Dimension) -> String {
    let plain = unit.replace(['\u{b5}', '\u{3bc}'], "u");
    let near = dimension.units().iter().find(|(name, _)| name.eq_ignore_ascii_case(&plain));
    near.map_or_else(String::new, |(name, _)| format!("did you mean `{name}`? "))
}

fn units(dimension: Dimension) -> String {
    let units: Vec<String> = dimension.units().iter().map(|(name, _)| format!("`{name}`")).collect();
    if units.is_empty() {
        "write one number without a unit".to_string()
    } else {
        format!("use one of {}", units.join(", "))
    }
}

/// Reads a whole number from `least` to `most`; the error says what would be one.
pub fn whole_within(text: &str, least: u64, most: u64) -> Result<u64, String> {
    let number = text.parse::<u64>().ok();
    // The greatest number that there is bounds nothing that anybody means, unless one is beyond it.
    let is_beyond = number.is_none() && !text.is_empty() && text.bytes().all(|one| one.is_ascii_digit());
    let within = match most == u64::MAX && !is_beyond {
        true => format!("{least} on"),
        false => format!("{least} to {most}"),
    };
    let number = number.filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| format!("it has to be a whole number from {within}"))
}

impl Quantity {
    /// Reads `text` as a quantity of `dimension`. White space around and between is ignored.
    pub fn parse(text: &str, dimension: Dimension) -> Result<Quantity, ParseError> {
        let trimmed = text.trim();
        // An exponent is part of the number only where digits follow it, so `1 EiB` is not a number.
        let end = number_end(trimmed);
        let (number, unit) = trimmed.split_at(end);
        let unit = unit.trim();
        let value: f64 = number
            .replace('_', "")
            .parse()
            .map_err(|_| ParseError::NoNumber { text: text.to_string(), dimension })?;
        let units = dimension.units();
        let scale = if units.is_empty() {
            if !unit.is_empty() {
                return Err(ParseError::UnknownUnit { unit: unit.to_string(), dimension });
            }
            1.0
        } else if unit.is_empty() {
            return Err(ParseError::MissingUnit { text: text.to_string(), dimension });
        } else {
            units
                .iter()
                .find(|(name, _)| *name == unit)
                .map(|(_, scale)| *scale)
                .ok_or_else(|| ParseError::UnknownUnit { unit: unit.to_string(), dimension })?
        };
        if value < 0.0 {
            return Err(ParseError::Negative { text: text.to_string() });
        }
        if dimension == Dimension::Count && value > 0.0 && value.fract() != 0.0 {
            return Err(ParseError::NotWhole { text: text.to_string() });
        }
        let read = Quantity::from_base(value * scale, dimension).ok_or_else(|| ParseError::OutOfRange {
            text: text.to_string(),
            dimension,
            // In the greatest unit that a size is printed in this would be thirteen digits.
            bound: match dimension {
                Dimension::Bytes => "9e18 B".to_string(),
                _ => Quantity::from_base(9e18, dimension).map_or_else(String::new, |q| q.to_string()),
            },
        })?;
        // `51.2 B` is rounded, and so is `4.7 GiB`; one and a half bytes would be a third more.
        let unit = units.first().map_or("ones", |(unit, _)| *unit);
        if (read.base() - value * scale).abs() > 0.1 * value * scale {
            return Err(ParseError::TooFine { text: text.to_string(), dimension, unit });
        }
        Ok(read)
    }

    /// A quantity from a number of base units (ps, B, bit/s, 1/s, Hz), rounded to the nearest
    /// integer except for ratios. `None` where it is negative, not finite or above 9e18.
    pub fn from_base(value: f64, dimension: Dimension) -> Option<Quantity> {
        if !value.is_finite() || !(0.0..=9e18).contains(&value) {
            return None;
        }
        let whole = value.round() as u64;
        Some(match dimension {
            Dimension::Time => Quantity::Time(Time::from_ps(whole)),
            Dimension::Bytes => Quantity::Bytes(Bytes::new(whole)),
            Dimension::BitRate => Quantity::BitRate(BitRate::from_bits_per_second(whole)),
            Dimension::OpRate => Quantity::OpRate(OpRate::per_second(whole)),
            Dimension::Frequency => Quantity::Frequency(Frequency::from_hz(whole)),
            Dimension::Ratio => Quantity::Ratio(value),
            Dimension::Count if value.fract() == 0.0 => Quantity::Count(whole),
            Dimension::Count => return None,
        })
    }

    /// What it measures.
    pub fn dimension(self) -> Dimension {
        match self {
            Quantity::Time(_) => Dimension::Time,
            Quantity::Bytes(_) => Dimension::Bytes,
            Quantity::BitRate(_) => Dimension::BitRate,
            Quantity::OpRate(_) => Dimension::OpRate,
            Quantity::Frequency(_) => Dimension::Frequency,
            Quantity::Ratio(_) => Dimension::Ratio,
            Quantity::Count(_) => Dimension::Count,
        }
    }

    /// The number of base units (ps, B, bit/s, 1/s, Hz).
    pub fn base(self) -> f64 {
        match self {
            Quantity::Time(v) => v.ps() as f64,
            Quantity::Bytes(v) => v.get() as f64,
            Quantity::BitRate(v) => v.bits_per_second() as f64,
            Quantity::OpRate(v) => v.get() as f64,
            Quantity::Frequency(v) => v.hz() as f64,
            Quantity::Ratio(v) => v,
            Quantity::Count(v) => v as f64,
        }
    }
}

fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let digits = |mut at: usize| {
        while bytes.get(at).is_some_and(|b| b.is_ascii_digit() || *b == b'.' || *b == b'_') {
            at += 1;
        }
        at
    };
    let sign = |at: usize| at + usize::from(bytes.get(at).is_some_and(|b| *b == b'-' || *b == b'+'));
    let mantissa = digits(sign(0));
    if bytes.get(mantissa).is_some_and(|b| *b == b'e' || *b == b'E') {
        let exponent = sign(mantissa + 1);
        if bytes.get(exponent).is_some_and(u8::is_ascii_digit) {
            return digits(exponent);
        }
    }
    mantissa
}

impl fmt::Display for Quantity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Quantity::Time(v) => v.fmt(f),
            Quantity::Bytes(v) => v.fmt(f),
            Quantity::BitRate(v) => v.fmt(f),
            Quantity::OpRate(v) => v.fmt(f),
            Quantity::Frequency(v) => v.fmt(f),
            Quantity::Ratio(v) => f.pad(&v.to_string()),
            Quantity::Count(v) => f.pad(&v.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A number that is too large is a whole one all the same, so that its bound is said.
    #[test]
    fn a_whole_number_says_its_bound() {
        let refused = |text: &str, least, most| whole_within(text, least, most).unwrap_err();
        assert_eq!(whole_within("18446744073709551615", 0, u64::MAX), Ok(u64::MAX));
        assert!(refused("18446744073709551616", 0, u64::MAX).ends_with("from 0 to 18446744073709551615"));
        assert!(refused("-1", 0, u64::MAX).ends_with("from 0 on"));
        assert!(refused("0", 1, u64::MAX).ends_with("from 1 on"));
        assert!(refused("9", 1, 8).ends_with("from 1 to 8"));
    }

    #[test]
    fn messages_name_the_value_and_the_next_step() {
        let error = |text: &str, dimension| Quantity::parse(text, dimension).unwrap_err().to_string();
        assert_eq!(error("128", Dimension::Bytes), "`128` has no unit; write bytes as in `512 B`");
        assert!(error("3 furlongs", Dimension::Time).contains("use one of `ps`, `ns`"));
        assert!(error("135 to 149", Dimension::Count).contains("write one number without a unit"));
        assert!(error("-3 ns", Dimension::Time).contains("`-3 ns` is negative; write 0 or more"));
        assert!(error("fast", Dimension::BitRate).contains("does not start with a number"));
        assert_eq!(error("2.5", Dimension::Count), "`2.5` is not a whole number");
        assert!(error("-1", Dimension::Count).contains("is negative"));
        assert!(error("1 KB", Dimension::Bytes).contains("did you mean `kB`? use one of"));
        assert!(error("1 \u{3bc}s", Dimension::Time).contains("did you mean `us`?"));
        for text in ["0.5 B", "1.5 B", "0.0015 kB"] {
            assert!(
                error(text, Dimension::Bytes).contains("finer than bytes is counted, in whole B"),
                "{text}"
            );
        }
        assert_eq!(Quantity::parse("51.2 B", Dimension::Bytes), Ok(Quantity::Bytes(Bytes::new(51))));
        assert!(error("0.4 ps", Dimension::Time).contains("in whole ps"));
        assert!(Quantity::parse("4.7 GiB", Dimension::Bytes).is_ok());
    }

    #[test]
    fn decimal_and_binary_units_differ() {
        assert_eq!("1 kB".parse::<Bytes>().unwrap().get(), 1_000);
        assert_eq!("1KiB".parse::<Bytes>().unwrap().get(), 1_024);
        assert_eq!("1.5 GB/s".parse::<BitRate>().unwrap().bits_per_second(), 12_000_000_000);
    }

    proptest! {
        #[test]
        fn parsing_never_panics(text in "\\PC{0,24}") {
            for dimension in [Dimension::Time, Dimension::Bytes, Dimension::BitRate, Dimension::OpRate,
                Dimension::Frequency, Dimension::Ratio, Dimension::Count] {
                let _ = Quantity::parse(&text, dimension);
            }
        }

        #[test]
        fn what_is_printed_is_read_back(ps in 0u64..1_000_000) {
            let time = Time::from_ps(ps);
            prop_assert_eq!(time.to_string().parse::<Time>().unwrap(), time);
        }

        #[test]
        fn bytes_are_printed_without_loss_below_a_mebibyte(count in 0u64..1_048_576) {
            let bytes = Bytes::new(count);
            prop_assert_eq!(bytes.to_string().parse::<Bytes>().unwrap(), bytes);
        }

        #[test]
        fn time_for_bytes_is_never_too_short(bytes in 0u64..1 << 40, rate in 1u64..1 << 42) {
            let time = BitRate::from_bits_per_second(rate).time_for(Bytes::new(bytes));
            prop_assert!(u128::from(time.ps()) * u128::from(rate) >= u128::from(bytes) * 8 * 1_000_000_000_000);
        }
    }
}
