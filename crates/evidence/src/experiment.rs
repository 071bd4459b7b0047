//! Experiments as data: what is measured, over which sweep, and what it is compared with.
//!
//! Every list in an experiment is a sweep, and the experiment is run at every combination.
//! `together` lists flows that run at the same time. `against` holds the keys that differ in the
//! experiment that the first is compared with; `also` those that differ in what is run besides, compared by itself.

use offpath_quantity::Bytes;
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;

/// What is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Measure {
    /// Unloaded latency of one operation in microseconds; of `echo`, there and back.
    Latency,
    /// Most operations per second, in millions.
    Rate,
    /// The same in Gbit/s of payload.
    Bandwidth,
    /// Gbit/s of payload of one processor that waits for each operation before the next.
    BlockingBandwidth,
    /// Time of one processor in microseconds until it goes on, where nobody waits for the operation: its posting.
    Posting,
    /// Gbit/s of payload of one processor that posts one operation after another and waits for none.
    PostingBandwidth,
    /// Threads of the responder's processor with which it is no longer what binds.
    Threads,
    /// Time of the responder's processor that an operation may take where all threads keep up with the slower direction of
    /// the port, in microseconds.
    Budget,
    /// Data packets per second on `links` at the greatest rate, or at the bandwidth `at`, in millions.
    Packets,
    /// Data packets of one operation on `links`.
    PacketCount,
    /// How often the payload passes `links`.
    Crossings,
    /// Network round trips of one operation.
    RoundTrips,
    /// By how much the latency grows when `number` does: how many of it the latency holds.
    Holds,
    /// A number of the profile in us, B, Gbit/s, M/s or MHz, `per` another one.
    Number,
    /// `number` as cycles of `clock`.
    Cycles,
    /// MMIOs of the processor for `batch` requests.
    Mmios,
    /// Payload bytes over framed bytes on all PCIe links.
    LinkUse,
    /// Rate of a closed loop on the twin with `in_flight` requests at each client, in Gbit/s.
    Loop,
    /// Rate of the first of the flows `together` on the twin, each a closed loop with its own
    /// `in_flight`, in M/s; alone where there is one flow.
    LoopRate,
    /// The same of all flows together.
    LoopTotal,
    /// Mean latency on the twin with one request in flight at each client, in microseconds.
    LoopLatency,
    /// Requests per second of a design's `alternative` or `mix`, in millions.
    DesignRate,
    /// The same in Gbit/s of the design's unit.
    DesignBandwidth,
    /// Unloaded latency of a design's `alternative` in microseconds.
    DesignLatency,
    /// Host processor time of a request in microseconds.
    DesignHostCpu,
    /// Payload bytes of a request over the network.
    DesignNetworkBytes,
    /// Verbs of a request of a design's `alternative`, on `path` where one is given.
    DesignVerbs,
    /// Payload bytes of a request that pass the station `links`.
    DesignLinkBytes,
    /// Gbit/s of the design on the twin with so many clients of one request each.
    DesignClients,
    /// The value of a parameter at which `alternative` is as fast as another one: `break_even`.
    DesignBreakEven,
}

impl Measure {
    /// Whether it reads a profile and runs nothing.
    pub fn is_number(self) -> bool {
        matches!(self, Measure::Number | Measure::Cycles)
    }
}

/// What is made of two measurements.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Compare {
    /// The first alone.
    #[default]
    Value,
    /// First over second.
    Ratio,
    /// First over second, as a change in percent.
    Change,
    /// First less second.
    Difference,
    /// First and second added.
    Sum,
    /// The least place in the sweep from which on the ratio is at least so much.
    From(f64),
    /// The last place in the sweep up to which the ratio is at least so much.
    Until(f64),
}

/// A flow that runs beside others.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flow {
    /// Its path.
    pub path: String,
    /// Its verb, where it is not the experiment's.
    pub verb: Option<String>,
    /// Its share of the operations, where the shares are fixed.
    pub share: Option<f64>,
    /// Its requests in flight, where each flow is a closed loop.
    pub in_flight: Option<u32>,
}

/// Between which values of a parameter two alternatives change places.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BreakEven {
    /// The design's parameter.
    pub parameter: String,
    /// The alternative that the first is compared with.
    pub with: String,
    /// Where the first is faster.
    pub from: f64,
    /// Where it is slower.
    pub to: f64,
}

/// Which rate of several flows counts, and how they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Sharing {
    /// The greatest sum.
    #[default]
    Most,
    /// In the flows' shares; the sum counts.
    Shares,
    /// Each in order as far as the earlier ones leave it; the sum counts.
    InOrder,
    /// Each in order; the last one's part counts.
    LastInOrder,
}

/// A setting that a formula's grid varies.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SweepAxis {
    /// The numbers that take the value, as `--set` names them.
    #[serde(default)]
    pub set: Vec<String>,
    /// The design's parameter that takes it.
    pub parameter: Option<String>,
    /// The values as written in a profile.
    pub values: Vec<String>,
}

/// An experiment, its sweeps spelled out.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plain {
    /// What is measured.
    pub measure: Measure,
    /// The device.
    #[serde(default = "crate::row::bluefield2")]
    pub device: String,
    /// The testbed, where it is not the device's own.
    pub testbed: Option<String>,
    /// Overlays by name.
    #[serde(default)]
    pub overlays: Vec<String>,
    /// Settings by the name that `--set` takes.
    #[serde(default)]
    pub set: BTreeMap<String, String>,
    /// Paths.
    #[serde(default, deserialize_with = "one_or_many")]
    pub path: Vec<String>,
    /// Verbs; `echo` is a datagram and its answer.
    #[serde(default, deserialize_with = "one_or_many")]
    pub verb: Vec<String>,
    /// Payloads.
    #[serde(default, deserialize_with = "one_or_many")]
    pub payload: Vec<String>,
    /// Requests behind one doorbell; 0 is one MMIO each.
    #[serde(default, deserialize_with = "one_or_many")]
    pub batch: Vec<u32>,
    /// Address ranges that requests are spread over.
    #[serde(default, deserialize_with = "one_or_many")]
    pub range: Vec<String>,
    /// Bytes that a NIC wrote last, among which a processor's own loads look.
    #[serde(default, deserialize_with = "one_or_many")]
    pub arrived: Vec<String>,
    /// Flows that run at the same time.
    #[serde(default)]
    pub together: Vec<Flow>,
    /// How they share.
    #[serde(default)]
    pub sharing: Sharing,
    /// Links, without their direction, or with it as in `pcie1.up`.
    #[serde(default, deserialize_with = "one_or_many")]
    pub links: Vec<String>,
    /// Whether read requests count as packets too, as they do for hardware counters.
    #[serde(default)]
    pub control: bool,
    /// The bandwidth at which packets are counted.
    pub at: Option<String>,
    /// Requests in flight at each client.
    #[serde(default, deserialize_with = "one_or_many")]
    pub in_flight: Vec<u32>,
    /// Numbers of the profile.
    #[serde(default, deserialize_with = "one_or_many")]
    pub number: Vec<String>,
    /// The number that it is divided by.
    pub per: Option<String>,
    /// The number that counts cycles.
    pub clock: Option<String>,
    /// A term of the latency, where only that one counts.
    pub term: Option<String>,
    /// A design of this repository.
    pub design: Option<String>,
    /// Whether its step lists are meant where it has code: they say what a formula counts, which
    /// leaves out headers and acknowledgements.
    #[serde(default)]
    pub steps: bool,
    /// Whether what it leaves to an engine goes by RDMA instead.
    #[serde(default)]
    pub without_engine: bool,
    /// Where two alternatives are looked for to be equal.
    pub break_even: Option<BreakEven>,
    /// Its parameters.
    #[serde(default)]
    pub parameters: BTreeMap<String, String>,
    /// Alternatives.
    #[serde(default, deserialize_with = "one_or_many")]
    pub alternative: Vec<String>,
    /// A named mix, `greedy` or `optimal`.
    pub mix: Option<String>,
    /// Clients of one request each.
    #[serde(default, deserialize_with = "one_or_many")]
    pub clients: Vec<u64>,
    /// Fixed shares of alternatives.
    #[serde(default, deserialize_with = "one_or_many")]
    pub shares: Vec<BTreeMap<String, f64>>,
    /// Axes of a formula's grid, by the variable that stands for each.
    #[serde(default)]
    pub vary: BTreeMap<String, SweepAxis>,
}

/// An experiment with what it is compared with.
#[derive(Clone, Debug, PartialEq)]
pub struct Experiment {
    /// The experiment.
    pub plain: Plain,
    /// What the first is compared with; the worst or best of several where more are given.
    pub against: Vec<Plain>,
    /// Which of several counts.
    pub which: Which,
    /// What is made of both.
    pub compare: Compare,
    /// Which place of the sweep counts.
    pub keep: Keep,
    /// The formula that holds at every place of the grid, for the experiment's variables and `n`,
    /// the payload in bytes.
    pub expect: Option<String>,
    /// The same with other keys, where a row speaks of what no list sweeps: two cards, or flows of several paths. Their
    /// places follow its own.
    pub also: Vec<Experiment>,
    /// As the evidence file writes it.
    written: String,
}

impl Experiment {
    /// Whether it measures a verb on a path of a device by itself, in its default testbed and one doorbell each: what it
    /// publishes is then held to that very operation, or to a sweep that it is a place of.
    pub fn is_of(&self, device: &str, path: &str, verb: &str, payload: Bytes) -> bool {
        let plain = &self.plain;
        let is_plain = plain.device == device
            && plain.testbed.is_none()
            && plain.overlays.is_empty()
            && plain.set.is_empty()
            && plain.batch.iter().all(|batch| *batch == 0)
            && plain.range.is_empty()
            && plain.arrived.is_empty()
            && plain.together.is_empty()
            && plain.in_flight.is_empty()
            && plain.at.is_none();
        let holds = |all: &[String], one: &str| all.iter().any(|own| own == one);
        is_plain
            && self.against.is_empty()
            && self.compare == Compare::Value
            && matches!(plain.measure, Measure::Latency | Measure::Rate | Measure::Bandwidth)
            && holds(&plain.path, path)
            && holds(&plain.verb, verb)
            && plain.payload.iter().any(|own| own.parse::<Bytes>().is_ok_and(|own| own == payload))
    }
}

/// Which of several experiments a comparison takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Which {
    /// The greatest at each place.
    #[default]
    Greatest,
    /// The least at each place.
    Least,
    /// Their mean at each place.
    Mean,
}

impl Which {
    /// The one of some values that counts; of none, the mean is 0 and the others are infinite.
    pub fn of(self, values: &[f64]) -> f64 {
        match self {
            Which::Greatest => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Which::Least => values.iter().copied().fold(f64::INFINITY, f64::min),
            Which::Mean => values.iter().sum::<f64>() / values.len().max(1) as f64,
        }
    }
}

/// Which place of the sweep counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Keep {
    /// All of them.
    #[default]
    All,
    /// The greatest.
    Greatest,
    /// The least.
    Least,
}

fn one_or_many<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum OneOrMany<T> {
        One(T),
        Many(Vec<T>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

impl Experiment {
    /// The experiment as the evidence file writes it, a key a line.
    pub fn words(&self) -> &str {
        self.written.trim_end()
    }

    /// It and what it runs besides.
    pub fn parts(&self) -> impl Iterator<Item = &Experiment> {
        std::iter::once(self).chain(&self.also)
    }

    /// All that it runs, and what that is compared with.
    pub fn plains_mut(&mut self) -> impl Iterator<Item = &mut Plain> {
        let own = std::iter::once(&mut self.plain).chain(&mut self.against);
        own.chain(
            self.also.iter_mut().flat_map(|one| std::iter::once(&mut one.plain).chain(&mut one.against)),
        )
    }

    /// Whether it runs at places of `other` alone, with the same measure and against the same.
    pub fn repeats(&self, other: &Experiment) -> bool {
        self.parts().all(|part| other.parts().any(|whole| part.is_part_of(whole)))
    }

    fn is_part_of(&self, other: &Experiment) -> bool {
        self.compare == other.compare
            && self.which == other.which
            && self.plain.is_part_of(&other.plain)
            && self.against.len() == other.against.len()
            && self.against.iter().zip(&other.against).all(|(own, theirs)| own.is_part_of(theirs))
    }

    /// Reads an experiment from its table.
    pub(crate) fn parse(mut table: toml::Table) -> Result<Experiment, String> {
        fn take<T: for<'de> Deserialize<'de>>(
            table: &mut toml::Table,
            key: &str,
        ) -> Result<Option<T>, String> {
            table.remove(key).map(|value| value.try_into().map_err(|e| format!("`{key}`: {e}"))).transpose()
        }
        /// What the second names replaces what the first has of the same sort.
        fn merged(first: &toml::Table, second: toml::Table) -> toml::Table {
            let mut whole = first.clone();
            for sort in [["path", "together", "together"], ["alternative", "mix", "shares"]] {
                if sort.iter().any(|key| second.contains_key(*key)) {
                    sort.iter().for_each(|key| drop(whole.remove(*key)));
                }
            }
            whole.extend(second);
            whole
        }
        let written = table.to_string();
        let also: Vec<toml::Table> = take(&mut table, "also")?.unwrap_or_default();
        let also = also.into_iter().map(|other| Experiment::parse(merged(&table, other)));
        let also = also.collect::<Result<Vec<_>, _>>().map_err(|error| format!("`also`: {error}"))?;
        let against: Option<toml::Value> = table.remove("against");
        let compare = take(&mut table, "as")?.unwrap_or_default();
        let which = take(&mut table, "which")?.unwrap_or_default();
        let keep = take(&mut table, "keep")?.unwrap_or_default();
        let expect = take(&mut table, "expect")?;
        let read = |table: toml::Table| -> Result<Plain, String> {
            let plain: Plain =
                toml::Value::Table(table).try_into().map_err(|e| format!("experiment: {e}"))?;
            plain.check()?;
            Ok(plain)
        };
        let others: Vec<toml::Table> = match against {
            None => Vec::new(),
            Some(toml::Value::Table(one)) => vec![one],
            Some(toml::Value::Array(many)) => many
                .into_iter()
                .map(|one| one.try_into().map_err(|e| format!("`against`: {e}")))
                .collect::<Result<_, _>>()?,
            Some(_) => {
                return Err("`against` is a table of the keys that differ, or a list of such".to_string());
            }
        };
        let against =
            others.into_iter().map(|other| read(merged(&table, other))).collect::<Result<Vec<_>, _>>()?;
        if against.is_empty() && !matches!(compare, Compare::Value) {
            return Err("compares, but lacks `against`".to_string());
        }
        if !against.is_empty() && matches!(compare, Compare::Value) {
            return Err("has `against`, but lacks `as`".to_string());
        }
        Ok(Experiment { plain: read(table)?, against, which, compare, keep, expect, also, written })
    }
}

impl Plain {
    /// Whether its lists are parts of those of `other`, and everything else is the same.
    fn is_part_of(&self, other: &Plain) -> bool {
        fn part<T: PartialEq>(own: &[T], other: &[T]) -> bool {
            own.is_empty() == other.is_empty() && own.iter().all(|one| other.contains(one))
        }
        let bytes =
            |list: &[String]| -> Vec<Option<Bytes>> { list.iter().map(|one| one.parse().ok()).collect() };
        let lists = part(&self.path, &other.path)
            && part(&self.verb, &other.verb)
            && part(&bytes(&self.payload), &bytes(&other.payload))
            && part(&self.batch, &other.batch)
            && part(&bytes(&self.range), &bytes(&other.range))
            && part(&bytes(&self.arrived), &bytes(&other.arrived))
            && part(&self.in_flight, &other.in_flight)
            && part(&self.number, &other.number)
            && part(&self.alternative, &other.alternative)
            && part(&self.clients, &other.clients)
            && part(&self.shares, &other.shares);
        let rest = |plain: &Plain| Plain {
            path: Vec::new(),
            verb: Vec::new(),
            payload: Vec::new(),
            batch: Vec::new(),
            range: Vec::new(),
            arrived: Vec::new(),
            in_flight: Vec::new(),
            number: Vec::new(),
            alternative: Vec::new(),
            clients: Vec::new(),
            shares: Vec::new(),
            ..plain.clone()
        };
        lists && rest(self) == rest(other)
    }

    fn check(&self) -> Result<(), String> {
        for payload in &self.payload {
            payload.parse::<Bytes>().map_err(|error| error.to_string())?;
        }
        if let ([range, ..], [arrived, ..]) = (&self.range[..], &self.arrived[..]) {
            return Err(format!(
                "both a range ({range}) and what arrived ({arrived}): one of them is looked at"
            ));
        }
        for range in self.range.iter().chain(&self.arrived) {
            range.parse::<Bytes>().map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}
