//! Quantities with units: time in picoseconds, bytes, bit rates, operation rates, frequencies.
//!
//! Everything is an integer, so sums are exact and independent of their order. A quantity is
//! always written with its unit (`"128 B"`, `"256 Gbit/s"`, `"300 ns"`, `"29 M/s"`); text without
//! a unit is refused. `kB`, `MB` and `GB` are powers of ten, `KiB`, `MiB` and `GiB` powers of two.
//!
//! ```
//! use offpath_quantity::{BitRate, Bytes, Time};
//! let link: BitRate = "256 Gbit/s".parse().unwrap();
//! let payload: Bytes = "4 KiB".parse().unwrap();
//! assert_eq!(link.time_for(payload), Time::from_ps(128_000));
//! assert!("128".parse::<Bytes>().unwrap_err().to_string().contains("unit"));
//! ```

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

pub mod figures;
mod parse;
pub use parse::{Dimension, ParseError, Quantity, whole_within};

/// Picoseconds in one second.
pub const PS_PER_SECOND: u64 = 1_000_000_000_000;

/// A span of time, or an instant of virtual time since its start, in picoseconds.
///
/// The range is 213 days; arithmetic that would leave it panics, since no caller can mean it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// No time at all.
    pub const ZERO: Time = Time(0);
    /// The latest instant that can be written.
    pub const MAX: Time = Time(u64::MAX);

    /// A time of `ps` picoseconds.
    pub const fn from_ps(ps: u64) -> Time {
        Time(ps)
    }
    /// A time of `ns` nanoseconds.
    pub const fn from_ns(ns: u64) -> Time {
        Time(ns * 1_000)
    }
    /// A time of `us` microseconds.
    pub const fn from_us(us: u64) -> Time {
        Time(us * 1_000_000)
    }
    /// A time of `ms` milliseconds.
    pub const fn from_ms(ms: u64) -> Time {
        Time(ms * 1_000_000_000)
    }
    /// The picoseconds.
    pub const fn ps(self) -> u64 {
        self.0
    }
    /// The time in nanoseconds, for printing and statistics.
    pub fn as_ns(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// The time in microseconds, for printing and statistics.
    pub fn as_us(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The time in seconds, for printing and statistics.
    pub fn as_seconds(self) -> f64 {
        self.0 as f64 / 1e12
    }
    /// A time that was computed in seconds, to the nearest picosecond; none where it is below 0 or no number, and the
    /// greatest where it is out of range.
    ///
    /// ```
    /// # use offpath_quantity::Time;
    /// // In binary twice 73 ns is a little less than 146 ns.
    /// assert_eq!(Time::from_seconds(2.0 * 73e-9).to_string(), "146 ns");
    /// ```
    pub fn from_seconds(seconds: f64) -> Time {
        Time((seconds * 1e12).round() as u64)
    }
    /// The sum, or `None` where it leaves the range.
    pub fn checked_add(self, other: Time) -> Option<Time> {
        self.0.checked_add(other.0).map(Time)
    }
    /// The difference, or zero where `other` is later.
    pub fn saturating_sub(self, other: Time) -> Time {
        Time(self.0.saturating_sub(other.0))
    }
    /// The time `count` times over; panics where it leaves the range.
    pub fn times(self, count: u64) -> Time {
        Time(self.0.checked_mul(count).expect("time within 213 days"))
    }
    /// A share of the time, rounded to the nearest picosecond.
    pub fn scaled(self, factor: f64) -> Time {
        Time((self.0 as f64 * factor).round() as u64)
    }
}

impl Add for Time {
    type Output = Time;
    #[inline]
    fn add(self, other: Time) -> Time {
        self.checked_add(other).expect("time within 213 days")
    }
}
impl AddAssign for Time {
    #[inline]
    fn add_assign(&mut self, other: Time) {
        *self = *self + other;
    }
}
impl Sub for Time {
    type Output = Time;
    #[inline]
    fn sub(self, other: Time) -> Time {
        Time(self.0.checked_sub(other.0).expect("the earlier time is subtracted"))
    }
}
impl SubAssign for Time {
    #[inline]
    fn sub_assign(&mut self, other: Time) {
        *self = *self - other;
    }
}
impl std::iter::Sum for Time {
    #[inline]
    fn sum<I: Iterator<Item = Time>>(times: I) -> Time {
        times.fold(Time::ZERO, Add::add)
    }
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(u64);

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);
    /// A count of bytes.
    pub const fn new(count: u64) -> Bytes {
        Bytes(count)
    }
    /// The count.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// How many packets of at most `mtu` bytes carry this: `ceil(self / mtu)`. Panics when `mtu` is 0.
    pub fn packets(self, mtu: Bytes) -> u64 {
        self.0.div_ceil(mtu.0)
    }
}
impl Add for Bytes {
    type Output = Bytes;
    #[inline]
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.checked_add(other.0).expect("bytes within 16 EiB"))
    }
}
impl AddAssign for Bytes {
    #[inline]
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

/// Bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(u64);

impl BitRate {
    /// A rate in bits per second.
    pub const fn from_bits_per_second(rate: u64) -> BitRate {
        BitRate(rate)
    }
    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        self.0
    }
    /// The rate in Gbit/s, for printing and statistics.
    pub fn as_gbit_per_s(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// The time that `bytes` take at this rate, rounded up to a picosecond. Panics at a rate of 0,
    /// which no loaded profile holds.
    pub fn time_for(self, bytes: Bytes) -> Time {
        let bits = u128::from(bytes.0) * 8 * u128::from(PS_PER_SECOND);
        Time(u64::try_from(bits.div_ceil(u128::from(self.0))).expect("time within 213 days"))
    }
}

/// Operations, packets or requests per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OpRate(u64);

impl OpRate {
    /// A rate per second.
    pub const fn per_second(rate: u64) -> OpRate {
        OpRate(rate)
    }
    /// The rate per second.
    pub const fn get(self) -> u64 {
        self.0
    }
    /// The rate in millions per second, for printing and statistics.
    pub fn as_million_per_s(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// The time between two operations, rounded to the nearest picosecond. Panics at a rate of 0.
    pub fn interval(self) -> Time {
        Time((PS_PER_SECOND + self.0 / 2) / self.0)
    }
}

/// Cycles per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Frequency(u64);

impl Frequency {
    /// A frequency in Hz.
    pub const fn from_hz(hz: u64) -> Frequency {
        Frequency(hz)
    }
    /// Hz.
    pub const fn hz(self) -> u64 {
        self.0
    }
    /// The time that `cycles` take, rounded to the nearest picosecond. Panics at a frequency of 0.
    pub fn time_for_cycles(self, cycles: u64) -> Time {
        let ps = u128::from(cycles) * u128::from(PS_PER_SECOND) + u128::from(self.0 / 2);
        Time(u64::try_from(ps / u128::from(self.0)).expect("time within 213 days"))
    }
}

/// Prints `value` in the largest of `units` that leaves at least 1, with up to 3 decimals.
fn scaled(f: &mut fmt::Formatter<'_>, value: f64, units: &[(f64, &str)]) -> fmt::Result {
    let (scale, unit) =
        units.iter().find(|(scale, _)| value >= *scale).or(units.last()).expect("a unit to print in");
    let text = format!("{:.3}", value / scale);
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    f.pad(&format!("{text} {unit}"))
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0 as f64, &[(1e12, "s"), (1e9, "ms"), (1e6, "us"), (1e3, "ns"), (1.0, "ps")])
    }
}
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (scale, unit) = [(1u64 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")]
            .into_iter()
            .find(|(scale, _)| self.0 >= *scale && self.0.is_multiple_of(*scale / 4))
            .unwrap_or((1, "B"));
        scaled(f, self.0 as f64, &[(scale as f64, unit)])
    }
}
impl fmt::Display for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(
            f,
            self.0 as f64,
            &[(1e12, "Tbit/s"), (1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")],
        )
    }
}
impl fmt::Display for OpRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0 as f64, &[(1e9, "G/s"), (1e6, "M/s"), (1e3, "k/s"), (1.0, "/s")])
    }
}
impl fmt::Display for Frequency {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        scaled(f, self.0 as f64, &[(1e9, "GHz"), (1e6, "MHz"), (1e3, "kHz"), (1.0, "Hz")])
    }
}

macro_rules! from_str {
    ($type:ident, $dimension:ident) => {
        impl FromStr for $type {
            type Err = ParseError;
            fn from_str(text: &str) -> Result<$type, ParseError> {
                match Quantity::parse(text, Dimension::$dimension)? {
                    Quantity::$dimension(value) => Ok(value),
                    other => unreachable!("{other} parsed as another dimension"),
                }
            }
        }
    };
}
from_str!(Time, Time);
from_str!(Bytes, Bytes);
from_str!(BitRate, BitRate);
from_str!(OpRate, OpRate);
from_str!(Frequency, Frequency);
