//! Numbers as a log prints them, exact: their digits and how many of them are decimals.

/// Digits that are kept; a number with more is no figure of a tool.
const DIGITS: usize = 24;

/// A number that is not below 0, as it is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    digits: u128,
    decimals: u32,
}

/// Text that is a number to its tool: one that is counted with, or none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Printed {
    Number(Decimal),
    /// `nan`, `inf` and their kind, and what is below 0.
    NoFigure,
}

impl Printed {
    pub(crate) fn read(text: &str) -> Option<Printed> {
        if let Some(number) = Decimal::read(text) {
            return Some(Printed::Number(number));
        }
        let bare = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_none = ["nan", "inf", "infinity"].iter().any(|none| bare.eq_ignore_ascii_case(none));
        (is_none || bare != text && Decimal::read(bare).is_some()).then_some(Printed::NoFigure)
    }

    pub(crate) fn number(self) -> Option<Decimal> {
        match self {
            Printed::Number(number) => Some(number),
            Printed::NoFigure => None,
        }
    }
}

impl From<u64> for Decimal {
    fn from(whole: u64) -> Decimal {
        Decimal { digits: whole.into(), decimals: 0 }
    }
}

impl Decimal {
    /// Reads `12`, `12.50`, `.5` and `1.25e-03`.
    pub(crate) fn read(text: &str) -> Option<Decimal> {
        let (text, power) = match text.split_once(['e', 'E']) {
            Some((mantissa, power)) if power.len() <= 4 => (mantissa, power.parse::<i32>().ok()?),
            Some(_) => return None,
            None => (text, 0),
        };
        let (whole, part) = text.split_once('.').unwrap_or((text, ""));
        if whole.len() + part.len() == 0 || whole.len() + part.len() > DIGITS {
            return None;
        }
        let mut digits = 0u128;
        for digit in whole.bytes().chain(part.bytes()) {
            if !digit.is_ascii_digit() {
                return None;
            }
            digits = digits * 10 + u128::from(digit - b'0');
        }
        let decimals = part.len() as i32 - power;
        match u32::try_from(decimals) {
            Ok(decimals) if decimals <= 60 => Some(Decimal { digits, decimals }),
            Ok(_) => None,
            Err(_) => {
                let digits = digits.checked_mul(10u128.checked_pow(decimals.unsigned_abs())?)?;
                Some(Decimal { digits, decimals: 0 })
            }
        }
    }

    /// A whole number, where it is one without a decimal point.
    pub(crate) fn whole(self) -> Option<u64> {
        (self.decimals == 0).then(|| u64::try_from(self.digits).ok()).flatten()
    }

    pub(crate) fn is_zero(self) -> bool {
        self.digits == 0
    }

    pub(crate) fn decimals(self) -> u32 {
        self.decimals
    }

    /// So many times `unit`, to the nearest whole.
    pub(crate) fn times(self, unit: u128) -> Option<u64> {
        let product = self.digits.checked_mul(unit)?;
        let Some(scale) = 10u128.checked_pow(self.decimals) else { return Some(0) };
        let (whole, rest) = (product / scale, product % scale);
        u64::try_from(whole + u128::from(rest >= scale - rest)).ok()
    }

    /// What one unit of the last printed digit is worth, at least 1.
    pub(crate) fn step(self, unit: u128) -> Option<u64> {
        Some(Decimal { digits: 1, decimals: self.decimals }.times(unit)?.max(1))
    }

    pub(crate) fn approximate(self) -> f64 {
        self.digits as f64 / 10f64.powi(self.decimals as i32)
    }

    /// Half of what the last printed digit is worth: what was rounded away at most.
    pub(crate) fn rounding(self) -> f64 {
        0.5 / 10f64.powi(self.decimals as i32)
    }

    /// Whether it is a multiple of a half, printed with two decimals or more.
    pub(crate) fn is_halves(self) -> bool {
        let Some(scale) = 10u128.checked_pow(self.decimals) else { return false };
        self.decimals >= 2 && (self.digits * 2).is_multiple_of(scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Decimal {
        Decimal::read(text).unwrap_or_else(|| panic!("`{text}` is a number"))
    }

    #[test]
    fn digits_are_kept() {
        assert_eq!(read("0.057507").times(1_000_000_000), Some(57_507_000));
        assert_eq!(read("1.005").times(100), Some(101), "half goes up, as no binary fraction would");
        assert_eq!(read("1.25e-03").times(1_000_000), Some(1_250));
        assert_eq!(read("2e3").times(1), Some(2_000));
        assert_eq!(read("12").whole(), Some(12));
        assert_eq!(read("12.0").whole(), None);
        assert_eq!(read("0.11").step(1_000_000_000), Some(10_000_000));
        assert_eq!(read("7").step(1), Some(1));
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", ".", "-1", "1,000", "0x10", "1e", "1e99999", "1.2.3", "12us", "1e-70"] {
            assert_eq!(Decimal::read(text), None, "{text}");
        }
        assert_eq!(Decimal::read(&"9".repeat(40)), None);
        assert_eq!(read("9e36").times(u128::MAX), None);
        for text in ["nan", "-nan", "inf", "-1.5"] {
            assert_eq!(Printed::read(text), Some(Printed::NoFigure), "{text}");
        }
        assert_eq!(Printed::read("north"), None);
    }

    #[test]
    fn whole_and_half_cycles_are_told_from_microseconds() {
        assert!(read("4321.00").is_halves() && read("2160.50").is_halves());
        assert!(!read("1.23").is_halves() && !read("4321").is_halves());
    }
}
