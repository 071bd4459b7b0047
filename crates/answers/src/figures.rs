//! Figures whose unit the design chooses: each has a key for every unit, and that of the chosen one has a value.

use offpath_plan::{Design, Objective};
use offpath_quantity::OpRate;
use offpath_terminal::output::short;
use serde::Serialize;

/// The unit of rates: requests, or bits of a request's payload.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Unit {
    /// Payload bytes of a request where rates are of bits.
    pub payload_bytes: Option<u64>,
}

impl Unit {
    pub(crate) fn of(design: &Design) -> Unit {
        Unit { payload_bytes: design.unit.map(|bytes| bytes.get()) }
    }

    pub(crate) fn figure_unit(self) -> FigureUnit {
        self.payload_bytes.map_or(FigureUnit::Mreq, |bytes| FigureUnit::Gbit(bytes as f64 * 8.0))
    }

    /// A rate in the unit.
    pub fn of_rate(self, per_second: f64) -> f64 {
        self.figure_unit().value(per_second)
    }

    /// A rate by itself, in the unit that suits its size.
    pub fn text(self, per_second: f64) -> String {
        match self.payload_bytes {
            Some(_) => format!("{} {}", short(self.of_rate(per_second)), self.name()),
            // Whole requests a second would round these away.
            None if per_second < 100.0 => format!("{} /s", short(per_second)),
            None => OpRate::per_second(per_second.round() as u64).to_string(),
        }
    }

    /// Its name on screens.
    pub fn name(self) -> &'static str {
        if self.payload_bytes.is_some() { "Gbit/s" } else { "M req/s" }
    }
}

/// The unit of a figure: of a rate or of a time.
#[derive(Clone, Copy)]
pub(crate) enum FigureUnit {
    /// Requests per second, in millions.
    Mreq,
    /// Requests per second of so many bits, in Gbit/s.
    Gbit(f64),
    /// Seconds of the host's processors a request, in microseconds.
    HostUs,
    /// Seconds of latency, in microseconds.
    LatencyUs,
}

impl FigureUnit {
    /// What a mix is worth by the objective.
    pub(crate) fn worth(objective: Objective, unit: Unit) -> FigureUnit {
        match objective {
            Objective::MostThroughput => unit.figure_unit(),
            Objective::LeastHostCpu { .. } => FigureUnit::HostUs,
            Objective::LowestP99 { .. } => FigureUnit::LatencyUs,
        }
    }

    pub(crate) fn value(self, base: f64) -> f64 {
        match self {
            FigureUnit::Mreq => base / 1e6,
            FigureUnit::Gbit(bits) => base * bits / 1e9,
            FigureUnit::HostUs | FigureUnit::LatencyUs => base * 1e6,
        }
    }
}

/// What an answer is sought for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Goal {
    /// The greatest throughput.
    MostThroughput,
    /// The least processor time of the host at a load.
    LeastHostCpu,
    /// The lowest 99th percentile of latency at a load.
    LowestP99,
}

impl Goal {
    pub(crate) fn of(objective: Objective) -> Goal {
        match objective {
            Objective::MostThroughput => Goal::MostThroughput,
            Objective::LeastHostCpu { .. } => Goal::LeastHostCpu,
            Objective::LowestP99 { .. } => Goal::LowestP99,
        }
    }
}

/// What a key's description says of its unit.
macro_rules! unit_text {
    (Mreq) => {
        " in 10^6 requests/s; there where the design has no `unit`."
    };
    (Gbit) => {
        " in Gbit/s of the design's `unit`; there where it has one."
    };
    (GoalMreq) => {
        " in 10^6 requests/s; there where throughput is the goal and the design has no `unit`."
    };
    (GoalGbit) => {
        " in Gbit/s of the design's `unit`; there where throughput is the goal and it has one."
    };
    (HostUs) => {
        " as host processor time a request in microseconds; there where the goal is the least of it."
    };
    (LatencyUs) => {
        " as mean unloaded latency in microseconds; there where the goal is the lowest p99, of which no interval is known."
    };
}

/// Whether a figure of the given unit has its value under a key of this one.
macro_rules! is_in {
    (GoalMreq, $given:expr) => {
        matches!($given, $crate::figures::FigureUnit::Mreq)
    };
    (GoalGbit, $given:expr) => {
        matches!($given, $crate::figures::FigureUnit::Gbit(_))
    };
    ($unit:ident, $given:expr) => {
        matches!($given, $crate::figures::FigureUnit::$unit { .. })
    };
}

/// A type of figures with a key for each unit: `figure "What it is" { Unit key "and what else is to be said", .. }`.
macro_rules! figures {
    ($(#[$meta:meta])* $name:ident {
        $($figure:ident $text:literal { $($unit:ident $key:ident $($more:literal)?),+ })+
    }) => {
        $(#[$meta])*
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema))]
        pub struct $name {
            $($(
                #[doc = concat!($text, $crate::figures::unit_text!($unit))]
                $(#[doc = $more])?
                #[serde(skip_serializing_if = "Option::is_none")]
                pub $key: Option<f64>,
            )+)+
        }

        impl $name {
            $(
                #[doc = concat!($text, " in its unit.")]
                pub fn $figure(&self) -> Option<f64> {
                    None$(.or(self.$key))+
                }
            )+

            pub(crate) fn of(given: $crate::figures::FigureUnit, $($figure: Option<f64>),+) -> $name {
                $name { $($(
                    $key: $figure
                        .filter(|_| $crate::figures::is_in!($unit, given))
                        .map(|base| given.value(base)),
                )+)+ }
            }
        }
    };
}

pub(crate) use {figures, is_in, unit_text};

figures! {
    /// A throughput with its intervals: the joint sample of every uncertain number, widened by past errors.
    Throughput {
        value "Throughput" { Mreq throughput_mreq_per_s, Gbit throughput_gbit_per_s }
        low_80 "Lower end of the 80% interval: the joint sample of every uncertain number, widened by past errors," {
            Mreq throughput_low_80_mreq_per_s, Gbit throughput_low_80_gbit_per_s
        }
        high_80 "Upper end of the 80% interval: the joint sample of every uncertain number, widened by past errors," {
            Mreq throughput_high_80_mreq_per_s, Gbit throughput_high_80_gbit_per_s
        }
        low_95 "Lower end of the 95% interval: the joint sample of every uncertain number, widened by past errors," {
            Mreq throughput_low_95_mreq_per_s, Gbit throughput_low_95_gbit_per_s
        }
        high_95 "Upper end of the 95% interval: the joint sample of every uncertain number, widened by past errors," {
            Mreq throughput_high_95_mreq_per_s, Gbit throughput_high_95_gbit_per_s
        }
    }
}

impl Throughput {
    pub(crate) fn ranged(unit: Unit, rate: &offpath_plan::Ranged) -> Throughput {
        let ((low_80, high_80), (low_95, high_95)) = (rate.range_80, rate.range_95);
        let ends = [low_80, high_80, low_95, high_95].map(Some);
        Throughput::of(unit.figure_unit(), Some(rate.value), ends[0], ends[1], ends[2], ends[3])
    }

    /// The throughput, which is always there.
    pub fn rate(&self) -> f64 {
        self.value().unwrap_or(f64::NAN)
    }

    /// The ends of its 80% interval.
    pub fn range_80(&self) -> (f64, f64) {
        (self.low_80().unwrap_or(f64::NAN), self.high_80().unwrap_or(f64::NAN))
    }
}

/// Throughputs by name, under the key of their unit.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Throughputs {
    /// By name, in 10^6 requests/s; there where the design has no `unit`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_mreq_per_s: Option<crate::ByName<f64>>,
    /// By name, in Gbit/s of the design's `unit`; there where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_gbit_per_s: Option<crate::ByName<f64>>,
}

impl Throughputs {
    pub(crate) fn of(unit: Unit, rates: impl Iterator<Item = (String, f64)>) -> Throughputs {
        let named = Some(rates.map(|(name, rate)| (name, unit.of_rate(rate))).collect());
        match unit.payload_bytes {
            None => Throughputs { throughput_mreq_per_s: named, throughput_gbit_per_s: None },
            Some(_) => Throughputs { throughput_mreq_per_s: None, throughput_gbit_per_s: named },
        }
    }

    /// The throughput of a name, in the chosen unit.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.iter().find(|(own, _)| *own == name).map(|(_, rate)| rate)
    }

    /// Names and throughputs, in the chosen unit.
    pub fn iter(&self) -> impl Iterator<Item = (&String, f64)> {
        let named = self.throughput_mreq_per_s.as_ref().or(self.throughput_gbit_per_s.as_ref());
        named.into_iter().flat_map(|named| named.iter().map(|(name, rate)| (name, *rate)))
    }
}

/// A number as it is shown: a share or a factor that was made of others has more digits than anybody reads.
pub(crate) fn rounded(value: &str) -> String {
    match value.parse() {
        Ok(number) if value.len() > 8 => short(number),
        _ => value.to_string(),
    }
}
