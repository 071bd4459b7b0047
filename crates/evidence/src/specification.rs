//! What the fit may move, and within what: the file `evidence/fit.toml`.

use offpath_quantity::{Dimension, Quantity};
use serde::Deserialize;
use std::collections::BTreeSet;

/// What the fit may move.
#[derive(Clone, Debug)]
pub struct Specification {
    /// Seed of the starts.
    pub seed: u64,
    /// How many starts.
    pub starts: usize,
    /// Residual of a parameter at the far end of its bounds.
    pub pull: f64,
    /// Rows that outweigh the others.
    pub weights: Vec<Weight>,
    /// Ends of rows that no parameter reaches.
    pub set_aside: Vec<SetAside>,
    /// The free parameters.
    pub parameters: Vec<Parameter>,
}

/// A row that outweighs the others.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Weight {
    /// The row.
    pub row: String,
    /// By how much.
    pub weight: f64,
    /// Why.
    pub reason: String,
}

/// An end of a row that no parameter reaches.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetAside {
    /// The row.
    pub row: String,
    /// Which end.
    pub end: End,
    /// Why it is out of reach.
    pub reason: String,
}

/// An end of a range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum End {
    /// The lower one.
    Low,
    /// The upper one.
    High,
}

/// A number of a profile file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NumberRef {
    /// The file, as in `profiles/devices/bluefield2.toml`.
    pub file: String,
    /// Its table and key, as in `nic.inflight_slots`.
    pub key: String,
}

impl NumberRef {
    /// The file's name without its ending, and the key.
    pub fn name(&self) -> String {
        let stem = self.file.rsplit('/').next().unwrap_or(&self.file).trim_end_matches(".toml");
        format!("{stem} {}", self.key)
    }
}

/// A number that the fit may move, in base units (ps, B, bit/s, 1/s).
#[derive(Clone, Debug, PartialEq)]
pub struct Parameter {
    /// The number; what it is called by.
    pub place: NumberRef,
    /// Numbers of other files that are the same one.
    pub also: Vec<NumberRef>,
    /// What it measures.
    pub dimension: Dimension,
    /// The least plausible value.
    pub low: f64,
    /// The greatest plausible value.
    pub high: f64,
    /// Where it is expected.
    pub prior: f64,
    /// What the result is rounded to.
    pub resolution: f64,
    /// The unit that it is written in; empty for a count.
    pub unit: String,
    /// Base units in one of that unit.
    scale: f64,
    /// Digits after the point that the resolution has.
    decimals: usize,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    seed: u64,
    starts: usize,
    pull: f64,
    #[serde(default)]
    weight: Vec<Weight>,
    #[serde(default)]
    set_aside: Vec<SetAside>,
    parameter: Vec<RawParameter>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawParameter {
    file: String,
    key: String,
    #[serde(default)]
    also: Vec<NumberRef>,
    low: Written,
    high: Written,
    prior: Written,
    resolution: Written,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Count(u64),
    Text(String),
}

/// Why the file of the free parameters is refused.
#[derive(Debug, thiserror::Error)]
#[error("{file}: {message}")]
pub struct SpecificationError {
    /// The file.
    pub file: String,
    /// What is wrong, with the parameter.
    pub message: String,
}

/// Reads the file of the free parameters.
///
/// # Errors
/// [`SpecificationError`] where it is not TOML, a unit is missing, a prior lies outside its bounds, or
/// a number stands twice.
pub fn parse(text: &str, file: &str) -> Result<Specification, SpecificationError> {
    let refuse = |message: String| SpecificationError { file: file.to_string(), message };
    let raw: RawFile = toml::from_str(text).map_err(|error| refuse(error.to_string()))?;
    if raw.starts == 0 || raw.pull.is_nan() || raw.pull <= 0.0 {
        return Err(refuse("`starts` and `pull` must be above 0".to_string()));
    }
    let mut seen = BTreeSet::new();
    let mut parameters = Vec::with_capacity(raw.parameter.len());
    for one in raw.parameter {
        let parameter = one.finish().map_err(refuse)?;
        for place in std::iter::once(&parameter.place).chain(&parameter.also) {
            if !seen.insert(place.clone()) {
                return Err(refuse(format!("{} stands twice; remove one", place.name())));
            }
        }
        parameters.push(parameter);
    }
    Ok(Specification {
        seed: raw.seed,
        starts: raw.starts,
        pull: raw.pull,
        weights: raw.weight,
        set_aside: raw.set_aside,
        parameters,
    })
}

impl RawParameter {
    fn finish(self) -> Result<Parameter, String> {
        let place = NumberRef { file: self.file, key: self.key };
        let name = place.name();
        let (decimals, unit) = match &self.resolution {
            Written::Count(_) => (0, String::new()),
            Written::Text(text) => {
                let (number, unit) = text
                    .split_once(' ')
                    .ok_or_else(|| format!("{name}: write `resolution` as in `0.1 ns`, not `{text}`"))?;
                (number.split_once('.').map_or(0, |(_, digits)| digits.len()), unit.to_string())
            }
        };
        let found = [Dimension::Time, Dimension::Bytes, Dimension::BitRate, Dimension::OpRate]
            .into_iter()
            .find_map(|of| of.units().iter().find(|(own, _)| *own == unit).map(|(_, scale)| (of, *scale)));
        let (dimension, scale) = match found {
            Some(found) => found,
            None if unit.is_empty() => (Dimension::Count, 1.0),
            None => return Err(format!("{name}: `{unit}` is not a unit of a time, bytes or a rate")),
        };
        let base = |key: &str, written: &Written| -> Result<f64, String> {
            let text = match written {
                Written::Count(count) => count.to_string(),
                Written::Text(text) => text.clone(),
            };
            Quantity::parse(&text, dimension)
                .map(Quantity::base)
                .map_err(|error| format!("{name}: `{key}`: {error}"))
        };
        let (low, high) = (base("low", &self.low)?, base("high", &self.high)?);
        let (prior, resolution) = (base("prior", &self.prior)?, base("resolution", &self.resolution)?);
        if !(low <= prior && prior <= high && low < high && resolution > 0.0) {
            return Err(format!("{name}: `prior` has to lie between `low` and `high`, `resolution` above 0"));
        }
        Ok(Parameter {
            place,
            also: self.also,
            dimension,
            low,
            high,
            prior,
            resolution,
            unit,
            scale,
            decimals,
        })
    }
}

impl Parameter {
    /// Its name with the file, as in `bluefield2 soc.read_latency`.
    pub fn name(&self) -> String {
        self.place.name()
    }

    /// Whether only whole numbers of the base unit make sense, and few lie between the bounds.
    pub fn is_whole(&self) -> bool {
        matches!(self.dimension, Dimension::Count | Dimension::Bytes)
    }

    /// The nearest multiple of the resolution within the bounds.
    pub fn rounded(&self, base: f64) -> f64 {
        ((base / self.resolution).round() * self.resolution).clamp(self.low, self.high)
    }

    /// The value as a profile writes it: `140`, `37.6 ns`.
    pub fn written(&self, base: f64) -> String {
        let number = format!("{:.*}", self.decimals, base / self.scale);
        let number = match number.contains('.') {
            true => number.trim_end_matches('0').trim_end_matches('.').to_string(),
            false => number,
        };
        if self.unit.is_empty() { number } else { format!("{number} {}", self.unit) }
    }

    /// The value as a quantity; whole numbers are rounded.
    pub(crate) fn quantity(&self, base: f64) -> Option<Quantity> {
        Quantity::from_base(base.round(), self.dimension)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str =
        "seed = 1\nstarts = 2\npull = 0.02\n[[parameter]]\nfile = \"profiles/a.toml\"\nkey = \"b.c\"\n";

    #[test]
    fn values_are_written_in_their_unit_without_needless_digits() {
        let text =
            format!("{HEAD}low = \"0 ns\"\nhigh = \"1 us\"\nprior = \"30 ns\"\nresolution = \"0.1 ns\"\n");
        let read = parse(&text, "f").expect("it is well formed");
        let one = &read.parameters[0];
        assert_eq!(one.name(), "a b.c");
        assert_eq!(one.written(37_600.0), "37.6 ns");
        assert_eq!(one.written(276_000.0), "276 ns");
        assert_eq!(one.rounded(37_649.0), 37_600.0);
        assert!(!one.is_whole());
    }

    #[test]
    fn what_cannot_be_meant_is_refused_with_the_parameter() {
        let cases = [
            ("low = 1\nhigh = 9\nprior = 10\nresolution = 1\n", "a b.c: `prior` has to lie"),
            ("low = \"1 ns\"\nhigh = \"2 B\"\nprior = \"1 ns\"\nresolution = \"1 ns\"\n", "a b.c: `high`"),
            (
                "low = \"1 ns\"\nhigh = \"2 ns\"\nprior = \"1 ns\"\nresolution = \"1ns\"\n",
                "a b.c: write `resolution`",
            ),
            ("low = 1\nhigh = 9\nprior = 2\nresolution = \"1 furlong\"\n", "`furlong` is not a unit"),
        ];
        for (rest, expected) in cases {
            let message = parse(&format!("{HEAD}{rest}"), "f").expect_err(rest).to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
