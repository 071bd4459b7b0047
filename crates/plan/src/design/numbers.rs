//! Numbers of a design: plain ones, quantities with an interval, products of parameters.

use super::LONGEST;
use super::resolve::{Read, Resolver};
use crate::estimate::{Estimate, Written, noun};
use offpath_quantity::figures::round;
use offpath_quantity::{Bytes, Dimension, Quantity, Time};
use std::ops::Range;
use std::sync::Arc;
use toml::Spanned;

impl Resolver<'_> {
    /// A number that the file gives at `id`, as an estimate.
    pub(super) fn estimated(&self, id: &str, written: Written, span: Range<usize>) -> Read {
        let id: Arc<str> = id.into();
        let value = self.moved.get(&*id).copied().unwrap_or(written.value);
        let Written { low, high, is_assumed, .. } = written;
        let (is_share, is_work, is_count) = (false, false, false);
        let estimate =
            Estimate { id: id.clone(), value, low, high, is_assumed, is_share, is_work, is_count, span };
        self.estimates.borrow_mut().insert(id.clone(), estimate);
        Read { base: value.base(), rests_on: vec![id] }
    }

    /// A number of `dimension` that stands at `id`: one with its unit, an interval, a name, or a product
    /// of a name or number with plain numbers.
    pub(super) fn number(
        &self,
        id: &str,
        given: &Spanned<toml::Value>,
        dimension: Dimension,
    ) -> Result<Read, miette::Report> {
        match given.get_ref() {
            toml::Value::String(text) if !Written::is_interval(text) => {
                self.product(Some(id), text, dimension, given.span())
            }
            value => {
                let written = Written::read(value, Some(dimension))
                    .map_err(|(message, help)| self.error(message, help, given.span()))?;
                Ok(self.estimated(id, written, given.span()))
            }
        }
    }

    /// A product of names and numbers; what it gives itself is an estimate where it has an `id`.
    pub(super) fn product(
        &self,
        id: Option<&str>,
        text: &str,
        dimension: Dimension,
        span: Range<usize>,
    ) -> Result<Read, miette::Report> {
        let mut product = Read { base: 1.0, rests_on: Vec::new() };
        let mut with_unit = 0;
        let own = |value: Quantity| match id {
            Some(id) => {
                self.estimated(id, Written { value, low: None, high: None, is_assumed: false }, span.clone())
            }
            None => Read { base: value.base(), rests_on: Vec::new() },
        };
        for factor in text.split('*').map(str::trim) {
            let time = self.times.get(factor).filter(|_| dimension == Dimension::Time);
            let read = match time.or_else(|| self.names.get(factor)) {
                Some(named) if named.dimension == dimension || named.dimension == Dimension::Ratio => {
                    self.used.borrow_mut().insert(factor.to_string());
                    with_unit += usize::from(named.dimension == dimension);
                    named.read.clone()
                }
                Some(named) => {
                    return Err(self.error(
                        format!(
                            "`{factor}` is {}, and here is {} wanted",
                            noun(named.dimension),
                            noun(dimension)
                        ),
                        format!("use a parameter like `\"{}\"`, or write the number", dimension.example()),
                        span,
                    ));
                }
                None => match (factor.parse::<f64>(), Quantity::parse(factor, dimension)) {
                    (_, Ok(quantity)) => {
                        with_unit += 1;
                        own(quantity)
                    }
                    (Ok(number), _) => Read { base: number, rests_on: Vec::new() },
                    (_, Err(error)) => {
                        let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
                        let near = offpath_profile::did_you_mean(factor, &known);
                        let known = match known.is_empty() {
                            true => ", of which there are none".to_string(),
                            false => format!(" ({})", known.join(", ")),
                        };
                        // What begins as a name is meant as one.
                        let message = match factor.starts_with(|first: char| first.is_alphabetic()) {
                            true => format!("`{factor}` is no parameter of this design, and no number"),
                            false => error.to_string(),
                        };
                        return Err(self.error(
                            message,
                            format!(
                                "{near}write {dimension} as in `{}`, a name from [parameters]{known}, or a product of them",
                                dimension.example(),
                            ),
                            span,
                        ));
                    }
                },
            };
            product.base *= read.base;
            product.rests_on.extend(read.rests_on);
        }
        if with_unit != 1 && dimension != Dimension::Ratio {
            // A number alone is not a product: what it lacks is its unit.
            if let (true, Err(error)) = (text.trim().parse::<f64>().is_ok(), Quantity::parse(text, dimension))
            {
                let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
                let help = match known.is_empty() {
                    true => "give it a unit".to_string(),
                    false => format!("give it a unit, or name a parameter ({})", known.join(", ")),
                };
                return Err(self.error(error.to_string(), help, span));
            }
            let what = match dimension {
                Dimension::Bytes => "sizes; a number of bytes".to_string(),
                other => format!("numbers that are {}; {}", noun(other), noun(other)),
            };
            return Err(self.error(
                format!("`{text}` multiplies {with_unit} {what} has exactly one"),
                format!(
                    "write one like `{}` and any plain numbers, as in `chunk * ratio`",
                    dimension.example()
                ),
                span,
            ));
        }
        Ok(product)
    }

    pub(super) fn quantity(
        &self,
        read: &Read,
        dimension: Dimension,
        at: Range<usize>,
    ) -> Result<Quantity, miette::Report> {
        Quantity::from_base(read.base, dimension).ok_or_else(|| {
            let unit = dimension.units().first().map_or("", |(unit, _)| *unit);
            self.error(
                format!("{} {unit} is out of the range of {dimension}", read.base),
                match dimension {
                    Dimension::Bytes => {
                        "use a size from 0 B to 9e18 B; what one verb may move, its path says"
                    }
                    _ => "use a number that is not negative, and at most 9e18 in its smallest unit",
                },
                at,
            )
        })
    }

    pub(super) fn time(
        &self,
        id: &str,
        given: &Spanned<toml::Value>,
    ) -> Result<(Time, Read), miette::Report> {
        let read = self.number(id, given, Dimension::Time)?;
        self.mark_factors(&read);
        match self.quantity(&read, Dimension::Time, given.span())? {
            Quantity::Time(time) => Ok((self.within_reason(time, given.span())?, read)),
            other => unreachable!("{other} is read as a time"),
        }
    }

    /// Refuses a time that no request takes, and that no simulation could add up.
    pub(super) fn within_reason(&self, time: Time, at: Range<usize>) -> Result<Time, miette::Report> {
        if time <= LONGEST {
            return Ok(time);
        }
        Err(self.error(
            format!("{time} is longer than {LONGEST}, the most that a step may take"),
            "write what one request waits for; work of minutes is not part of a request",
            at,
        ))
    }

    pub(super) fn rate(&self, id: &str, given: &Spanned<toml::Value>) -> Result<(u64, Read), miette::Report> {
        let read = self.number(id, given, Dimension::BitRate)?;
        self.mark_factors(&read);
        match self.quantity(&read, Dimension::BitRate, given.span())? {
            Quantity::BitRate(rate) if rate.bits_per_second() > 0 => Ok((rate.bits_per_second(), read)),
            Quantity::BitRate(_) => {
                Err(self.error("the rate is 0", "write what one core gets done", given.span()))
            }
            other => unreachable!("{other} is read as a bit rate"),
        }
    }

    /// A size: bytes with a unit, a parameter, or a product of such.
    pub(super) fn bytes(
        &self,
        id: &str,
        given: &Spanned<toml::Value>,
    ) -> Result<(Bytes, Read), miette::Report> {
        let read = self.number(id, given, Dimension::Bytes)?;
        match self.quantity(&read, Dimension::Bytes, given.span())? {
            Quantity::Bytes(bytes) => Ok((bytes, read)),
            other => unreachable!("{other} is read as a size"),
        }
    }

    /// Bytes that a step computes on.
    pub(super) fn computed_bytes(
        &self,
        id: &str,
        given: &Spanned<toml::Value>,
    ) -> Result<(Bytes, Read), miette::Report> {
        let (bytes, read) = self.bytes(id, given)?;
        self.mark_factors(&read);
        Ok((bytes, read))
    }

    /// A size that says what is counted, and is nobody's estimate.
    pub(super) fn plain_bytes(&self, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
        let read = self.product(None, text.get_ref(), Dimension::Bytes, text.span())?;
        match self.quantity(&read, Dimension::Bytes, text.span())? {
            Quantity::Bytes(bytes) => Ok(bytes),
            other => unreachable!("{other} is read as a size"),
        }
    }

    /// A share from 0 to 1.
    pub(super) fn share(
        &self,
        key: &str,
        id: &str,
        given: &Spanned<toml::Value>,
    ) -> Result<Read, miette::Report> {
        let read = self.number(id, given, Dimension::Ratio)?;
        self.mark(&read, |one| one.is_share = one.value.dimension() == Dimension::Ratio);
        // It may be a multiple of a number that has an interval.
        let estimates = self.estimates.borrow();
        let known = read.rests_on.iter().filter_map(|id| estimates.get(id));
        let ends = known.filter(|one| self.moved.is_empty() && one.value.base() > 0.0).flat_map(|one| {
            let end = |end: Quantity| read.base * (end.base() / one.value.base());
            let low = one.low.map(end).map(|low| (low, ", the low end of its interval,"));
            low.into_iter().chain(one.high.map(end).map(|high| (high, ", the high end of its interval,")))
        });
        let value = std::iter::once((read.base, ""));
        let Some((outside, end)) = value.chain(ends).find(|(one, _)| !(0.0..=1.0).contains(one)) else {
            drop(estimates);
            return Ok(read);
        };
        Err(self.error(
            format!("a {key} of {}{end} is outside 0 to 1", round(outside)),
            "write a share from 0 to 1",
            given.span(),
        ))
    }

    /// How much of a kind of work that is counted in operations.
    pub(super) fn work(&self, id: &str, given: &Spanned<toml::Value>) -> Result<Read, miette::Report> {
        let read = self.number(id, given, Dimension::Ratio)?;
        self.mark(&read, |one| one.is_work = true);
        Ok(read)
    }

    /// Says of the plain numbers that how long something takes is made of that they are guesses of it. A factor of 1 says that
    /// nothing is multiplied.
    fn mark_factors(&self, read: &Read) {
        self.mark(read, |one| {
            one.is_work |= one.value.dimension() == Dimension::Ratio && one.value.base() != 1.0;
        });
    }

    /// Says what the estimates are of that a number is made of.
    fn mark(&self, read: &Read, with: impl Fn(&mut Estimate)) {
        for one in &read.rests_on {
            self.estimates.borrow_mut().get_mut(one).into_iter().for_each(&with);
        }
    }

    /// How many: a whole number of 1 or more, or a parameter that is one. Only what has an interval is an
    /// estimate: the shape of a request is its author's to say.
    pub(super) fn whole(
        &self,
        key: &str,
        id: &str,
        given: &Spanned<toml::Value>,
        most: u64,
    ) -> Result<(u64, Read), miette::Report> {
        let read = match given.get_ref() {
            toml::Value::Integer(number) => Read { base: *number as f64, rests_on: Vec::new() },
            _ => self.number(id, given, Dimension::Ratio)?,
        };
        self.mark(&read, |one| one.is_count = true);
        let base = if self.moved.is_empty() { read.base } else { read.base.round().max(1.0) };
        if base.fract() != 0.0 || base < 1.0 || base > most as f64 {
            // Without a bound of its own the length of the whole request is what bounds it.
            let range =
                if most == u64::MAX { "of 1 or more".to_string() } else { format!("from 1 to {most}") };
            return Err(self.error(
                format!("`{key}` is {base}; it has to be a whole number {range}"),
                format!("as in `{key} = 3`, or name a parameter that is such a number"),
                given.span(),
            ));
        }
        Ok((base as u64, read))
    }

    /// Bytes that something is divided by.
    pub(super) fn some_bytes(&self, key: &str, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
        let bytes = self.plain_bytes(text)?;
        if bytes == Bytes::ZERO {
            return Err(self.error(
                format!("`{key}` is 0 B; it has to be 1 B or more"),
                "name the payload of one request, or leave the key out",
                text.span(),
            ));
        }
        Ok(bytes)
    }
}
