//! Design files: a system to plan, as its author writes it.
//!
//! The file is TOML. Every mistake is reported with the file, the place, what is accepted and what
//! to do next; nothing that matters has a default.

use crate::coded::{Application, Coded, Log, PLACEMENTS, Store, WAYS};
use crate::interpret::MOST_TASKS;
use miette::{NamedSource, SourceSpan};
use offpath_apps::kv::Costs;
use offpath_apps::replog::Costs as LogCosts;
use offpath_profile::System;
use offpath_quantity::{Bytes, Dimension, OpRate, Quantity, Time};
use offpath_workload::{Popularity, Workload};
use serde::Deserialize;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// Why a design cannot be planned, pointing into the file.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{message}")]
pub struct DesignError {
    /// What is wrong.
    pub message: String,
    /// What to do about it.
    #[help]
    pub help: Option<String>,
    /// The file.
    #[source_code]
    pub source_code: NamedSource<String>,
    /// Where in the file.
    #[label("here")]
    pub at: Option<SourceSpan>,
}

/// What the mix is chosen for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Objective {
    /// The greatest throughput.
    MostThroughput,
    /// The least processor time of the host at a load.
    LeastHostCpu {
        /// Requests per second.
        load: f64,
    },
    /// The lowest 99th percentile of latency at a load.
    LowestP99 {
        /// Requests per second.
        load: f64,
    },
}

/// By what greedy ranks the alternatives (wei2023 §4.2 leaves that to the system).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rank {
    /// The lowest unloaded latency first.
    UnloadedLatency,
    /// The fewest network bytes first.
    NetworkSaved,
    /// The greatest throughput alone first.
    Throughput,
    /// The least host processor time first.
    HostCpu,
}

/// A data structure that steps access.
#[derive(Clone, Debug, PartialEq)]
pub struct Object {
    /// Its name.
    pub name: String,
    /// Bytes of one entry.
    pub entry: Bytes,
    /// Records that share one entry.
    pub records_per_entry: u64,
    /// Copies of its hottest entries; 1 where there are none.
    pub copies: u64,
    /// How many of the hottest entries have copies.
    pub copied: u64,
}

/// What a SoC's memory budget keeps near the adapter.
#[derive(Clone, Debug, PartialEq)]
pub struct Cache {
    /// The endpoint whose memory it is.
    pub at: String,
    /// Its size.
    pub budget: Bytes,
    /// Objects that must fit whole.
    pub whole: Vec<String>,
    /// The object whose hottest entries fill the rest.
    pub hottest: String,
}

/// How the two sides of a verb hear of it, beside what every verb does. Step lists have neither.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// 32 bits go with it: a WRITE hands the request to its responder, and a message may be empty.
    pub immediate: bool,
    /// The sender of a message polls for its completion; otherwise one poll in 64 frees all slots.
    pub polled: bool,
}

/// One step of a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// A verb on a path.
    Verb {
        /// The verb's name.
        verb: offpath_route::Verb,
        /// The path's name.
        path: String,
        /// The payload.
        bytes: Bytes,
        /// The object that it accesses, where it names one.
        object: Option<String>,
        /// Requests in a doorbell batch; 1 for single posting.
        batch: u32,
        /// How its two sides hear of it.
        signals: Signals,
        /// Where it stands in the file.
        span: Range<usize>,
    },
    /// Processor time.
    Compute {
        /// The endpoint whose processor it is.
        at: String,
        /// How long.
        time: Time,
        /// Where it stands in the file.
        span: Range<usize>,
    },
    /// Steps that run one after another, several times.
    Repeat {
        /// How often.
        times: u64,
        /// The steps.
        steps: Vec<Step>,
        /// Where the number stands in the file.
        span: Range<usize>,
    },
    /// Lists of steps that run side by side.
    Parallel(Vec<Vec<Step>>),
    /// One of two lists of steps by chance.
    Branch {
        /// The probability of the first.
        probability: f64,
        /// The first.
        then: Vec<Step>,
        /// The second.
        otherwise: Vec<Step>,
    },
}

/// One way to serve a request.
#[derive(Clone, Debug, PartialEq)]
pub struct Alternative {
    /// Its name.
    pub name: String,
    /// What it does, in a few words.
    pub description: String,
    /// Another device than the design's, where it runs on one; it then takes no part in mixes.
    pub device: Option<String>,
    /// Whether mixes may use it.
    pub mixed: bool,
    /// Evidence rows that measured this very alternative.
    pub rows: Vec<String>,
    /// The steps by operation of the workload, with the operation's share.
    pub operations: Vec<(String, f64, Vec<Step>)>,
    /// What it is called in the coded application, whose demands then take the place of the steps'.
    pub code: Option<Code>,
    /// Where it stands in the file.
    pub span: Range<usize>,
}

/// An alternative of a coded application.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// Which one.
    pub kind: Coded,
    /// Share of the requests that find what they read in the cache.
    pub hit_ratio: f64,
    /// Where the file names it.
    pub span: Range<usize>,
}

/// A named mix: alternatives filled in order, each to the limit that the earlier ones leave.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedMix {
    /// Its name.
    pub name: String,
    /// The alternatives in order.
    pub fill: Vec<String>,
}

/// The mix that a system runs, which advice looks at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Runs {
    /// The best one for the objective.
    Best,
    /// The greedy combination.
    Greedy,
    /// One of the design's own.
    Mix(String),
    /// One alternative for every request.
    Alternative(String),
}

impl Runs {
    /// Its name, as the file writes it.
    pub fn name(&self) -> &str {
        match self {
            Runs::Best => BEST,
            Runs::Greedy => GREEDY,
            Runs::Mix(name) | Runs::Alternative(name) => name,
        }
    }
}

/// The name of the best mix.
pub(crate) const BEST: &str = "optimal";
/// The name of the greedy combination.
const GREEDY: &str = "greedy";

/// A design, resolved: sizes are bytes, shares are numbers.
#[derive(Clone, Debug)]
pub struct Design {
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// The device to plan for.
    pub device: String,
    /// The testbed.
    pub testbed: Option<String>,
    /// The card's mode.
    pub mode: Option<String>,
    /// Numbers of the system that this design changes, as `--set` writes them: what of a machine its
    /// programs use.
    pub set: Vec<String>,
    /// What the mix is chosen for.
    pub objective: Objective,
    /// By what greedy ranks.
    pub rank: Rank,
    /// Payload of a request where throughput is in Gbit/s; requests are counted where absent.
    pub unit: Option<Bytes>,
    /// Payload that a request would send over the network by itself, for bytes saved.
    pub network_baseline: Option<Bytes>,
    /// The workload in a line.
    pub workload: String,
    /// Warnings about the workload file.
    pub warnings: Vec<String>,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
    /// The coded application that alternatives are observed from, where there is one.
    pub application: Option<Application>,
    /// The named mixes.
    pub mixes: Vec<NamedMix>,
    /// The mix that the system runs.
    pub runs: Runs,
    /// The objects.
    pub objects: BTreeMap<String, ObjectAccess>,
    /// What the cache holds, where there is one.
    pub cache: Option<CacheUse>,
    /// The most host cores that requests may keep busy, as a share of all; `None` for all.
    pub host_cpu_share: Option<f64>,
    /// The greatest unloaded latency that an alternative may have in a mix.
    pub latency_bound: Option<Time>,
    /// Parameters with their values, sizes in bytes.
    pub parameters: BTreeMap<String, f64>,
    /// The parameters that are sizes.
    pub sizes: BTreeSet<String>,
    /// A parameter to vary, with its values.
    pub sweep: Option<(String, Vec<f64>)>,
    /// Numbers of clients for the closed-loop table, each with one request under way.
    pub clients: Vec<u32>,
    /// Published ratios over those numbers of clients.
    pub published: Vec<Published>,
    /// The text and name of the file, for errors found later.
    pub source: (String, String),
}

/// A published ratio of throughputs over the client counts, to stand beside the twin's.
#[derive(Clone, Debug, PartialEq)]
pub struct Published {
    /// The alternative or mix above the line.
    pub of: String,
    /// The one below it.
    pub over: String,
    /// The least ratio that was measured.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// Where it stands.
    pub source: String,
}

/// How the workload's requests are spread over an object.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectAccess {
    /// Bytes of the whole object, the room between its entries included.
    pub size: Bytes,
    /// Bytes of one entry.
    pub entry: Bytes,
    /// How many entries it has.
    pub entries: u64,
    /// Bytes from the start of one entry to that of the next.
    pub spacing: Bytes,
    /// Copies of its hottest entries; 1 where there are none.
    pub copies: u64,
    /// How many of the hottest entries have copies.
    pub copied: u64,
    /// Share of the requests to its hottest entry, after copies.
    pub hottest: f64,
}

/// What a memory budget keeps, and what that brings.
#[derive(Clone, Debug, PartialEq)]
pub struct CacheUse {
    /// Where.
    pub at: String,
    /// The budget.
    pub budget: Bytes,
    /// Bytes of the objects that are kept whole.
    pub whole: Bytes,
    /// The object whose hottest entries are kept.
    pub object: String,
    /// Entries of it that fit.
    pub entries: u64,
    /// Entries of it that exist.
    pub of: u64,
    /// Share of the requests that find theirs.
    pub hit_ratio: f64,
    /// Where the file names the endpoint.
    pub at_span: Range<usize>,
    /// Where the file gives the budget.
    pub budget_span: Range<usize>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    design: RawDesign,
    workload: Option<RawWorkload>,
    application: Option<Spanned<RawApplication>>,
    #[serde(default)]
    parameters: BTreeMap<String, Spanned<toml::Value>>,
    #[serde(default)]
    object: BTreeMap<String, Spanned<RawObject>>,
    cache: Option<Spanned<RawCache>>,
    #[serde(default)]
    constraints: RawConstraints,
    #[serde(default)]
    alternative: Vec<Spanned<RawAlternative>>,
    #[serde(default)]
    mix: Vec<RawMix>,
    sweep: Option<RawSweep>,
    clients: Option<RawClients>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDesign {
    name: String,
    #[serde(default)]
    description: String,
    device: String,
    testbed: Option<String>,
    mode: Option<String>,
    #[serde(default)]
    set: Vec<String>,
    objective: Spanned<String>,
    offered_load: Option<Spanned<String>>,
    rank_by: Spanned<String>,
    unit: Option<Spanned<String>>,
    network_baseline: Option<Spanned<String>>,
    mix: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    ycsb: Spanned<String>,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApplication {
    name: Spanned<String>,
    engine: Option<Spanned<String>>,
    value: Option<Spanned<String>>,
    index: Option<Spanned<String>>,
    values: Option<Spanned<String>>,
    build: Option<Spanned<String>>,
    search: Option<Spanned<String>>,
    check: Option<Spanned<String>>,
    card_hash: Option<Spanned<String>>,
    card_search: Option<Spanned<String>>,
    card_lookup: Option<Spanned<String>>,
    chunk: Option<Spanned<String>>,
    ratio: Option<Spanned<String>>,
    chain: Option<Vec<Spanned<String>>>,
    compress: Option<Spanned<String>>,
    append: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawObject {
    entry: Spanned<String>,
    records_per_entry: Option<u64>,
    copies: Option<u64>,
    copied: Option<u64>,
    spacing: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    at: Spanned<String>,
    budget: Spanned<String>,
    #[serde(default)]
    whole: Vec<Spanned<String>>,
    hottest: Spanned<String>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConstraints {
    host_cpu_share: Option<Spanned<f64>>,
    latency_bound: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMix {
    name: String,
    fill: Vec<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSweep {
    parameter: Spanned<String>,
    values: Vec<Spanned<toml::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    of: Spanned<String>,
    over: Spanned<String>,
    low: f64,
    high: f64,
    source: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClients {
    counts: Vec<Spanned<u32>>,
    #[serde(default)]
    published: Vec<RawPublished>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAlternative {
    name: Spanned<String>,
    #[serde(default)]
    description: String,
    like: Option<Spanned<String>>,
    device: Option<String>,
    hit_ratio: Option<Spanned<f64>>,
    mixed: Option<bool>,
    #[serde(default)]
    rows: Vec<String>,
    /// What the coded application calls it.
    code: Option<Spanned<String>>,
    /// Steps where requests are all alike.
    request: Option<Vec<Spanned<RawStep>>>,
    read: Option<Vec<Spanned<RawStep>>>,
    update: Option<Vec<Spanned<RawStep>>>,
    insert: Option<Vec<Spanned<RawStep>>>,
    scan: Option<Vec<Spanned<RawStep>>>,
    readmodifywrite: Option<Vec<Spanned<RawStep>>>,
}

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawStep {
    read: Option<Spanned<String>>,
    write: Option<Spanned<String>>,
    send: Option<Spanned<String>>,
    send_ud: Option<Spanned<String>>,
    compare_and_swap: Option<Spanned<String>>,
    fetch_and_add: Option<Spanned<String>>,
    bytes: Option<Spanned<String>>,
    object: Option<Spanned<String>>,
    batch: Option<Spanned<u32>>,
    compute: Option<Spanned<String>>,
    time: Option<Spanned<String>>,
    rate: Option<Spanned<String>>,
    repeat: Option<Spanned<u64>>,
    steps: Option<Vec<Spanned<RawStep>>>,
    parallel: Option<Vec<Vec<Spanned<RawStep>>>>,
    cached: Option<Spanned<String>>,
    hit: Option<Vec<Spanned<RawStep>>>,
    miss: Option<Vec<Spanned<RawStep>>>,
    probability: Option<Spanned<f64>>,
    then: Option<Vec<Spanned<RawStep>>>,
    otherwise: Option<Vec<Spanned<RawStep>>>,
}

/// What a user changes in a design from the command line.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Parameters by name, their values as the file writes them: a plain number, or bytes with a
    /// unit where the parameter is a size.
    pub parameters: BTreeMap<String, String>,
    /// Another YCSB file.
    pub workload: Option<PathBuf>,
    /// Another device.
    pub device: Option<String>,
    /// Another objective, as the file writes it.
    pub objective: Option<String>,
    /// Another load, as the file writes it.
    pub offered_load: Option<String>,
    /// Workload files held in memory, by the name that the design gives them.
    pub files: BTreeMap<String, String>,
    /// The mix that the system runs, as the file writes it.
    pub mix: Option<String>,
    /// Whether to plan from the step lists where the design names a coded application.
    pub steps: bool,
}

/// Popularities by workload, for designs that are read many times with small changes.
#[derive(Debug, Default)]
pub struct Popularities(RefCell<BTreeMap<String, Popularity>>);

impl Popularities {
    fn of(&self, workload: &Workload) -> Popularity {
        let mut known = self.0.borrow_mut();
        // The text of a workload is all that it is made of.
        known.entry(format!("{workload:?}")).or_insert_with(|| Popularity::new(workload)).clone()
    }
}

impl Design {
    /// A refusal that points into the file.
    pub(crate) fn refuse(&self, message: String, help: &str, at: &Range<usize>) -> miette::Report {
        let (name, text) = &self.source;
        DesignError {
            message,
            help: Some(help.to_string()),
            source_code: NamedSource::new(name, text.clone()),
            at: Some(at.clone().into()),
        }
        .into()
    }

    /// A refusal of the library, pointing at the device in the design where it points nowhere yet.
    pub(crate) fn about_device(&self, device: &str, error: miette::Report) -> miette::Report {
        let (name, text) = &self.source;
        let at = text.find(&format!("\"{device}\""));
        match at {
            Some(at) if error.labels().is_none() => DesignError {
                message: error.to_string(),
                help: error.help().map(|help| help.to_string()),
                source_code: NamedSource::new(name, text.clone()),
                at: Some((at..at + device.len() + 2).into()),
            }
            .into(),
            _ => error,
        }
    }

    /// Checks what only the design's own system can tell: that the cache lies at one of its
    /// endpoints, and that the budget fits that endpoint's memory.
    pub fn check_against(&self, system: &System) -> Result<(), miette::Report> {
        let Some(cache) = &self.cache else { return Ok(()) };
        let error = |message, help, at: &Range<usize>| {
            miette::Report::from(DesignError {
                message,
                help: Some(help),
                source_code: NamedSource::new(&self.source.0, self.source.1.clone()),
                at: Some(at.clone().into()),
            })
        };
        let Some((_, endpoint)) = system.endpoints().find(|(_, endpoint)| endpoint.name == cache.at) else {
            let known: Vec<&str> = system.endpoints().map(|(_, endpoint)| endpoint.name.as_str()).collect();
            return Err(error(
                format!("the cache is at `{}`, which {} does not have", cache.at, system.device),
                format!("its endpoints are {}", known.join(", ")),
                &cache.at_span,
            ));
        };
        let capacity = endpoint.memory.capacity;
        if cache.budget > capacity {
            return Err(error(
                format!(
                    "the cache's budget of {} is more than the {capacity} of memory at `{}`",
                    cache.budget, cache.at
                ),
                format!("use at most {capacity}, less what the endpoint needs for itself"),
                &cache.budget_span,
            ));
        }
        Ok(())
    }

    /// A parameter's value as [`Changes::parameters`] takes it: bytes with their unit.
    pub fn parameter_text(&self, name: &str, value: f64) -> String {
        if self.sizes.contains(name) { format!("{value} B") } else { value.to_string() }
    }

    /// Reads and resolves the design in a file.
    pub fn load(path: &Path, changes: &Changes) -> Result<Design, miette::Report> {
        let text = std::fs::read_to_string(path).map_err(|error| {
            miette::miette!(
                help = "write one with `offpath new`, or name one of the files in `designs/`",
                "the design `{}` cannot be read: {error}",
                path.display()
            )
        })?;
        let directory = path.parent().unwrap_or(Path::new("."));
        Design::parse(&text, &path.display().to_string(), directory, changes)
    }

    /// Resolves the design in `text`, called `name` in messages; workload files are found from
    /// `directory`.
    pub fn parse(
        text: &str,
        name: &str,
        directory: &Path,
        changes: &Changes,
    ) -> Result<Design, miette::Report> {
        Design::parse_knowing(text, name, directory, changes, &Popularities::default())
    }

    /// The same for one of many texts: popularities that an earlier one needed are not found again.
    pub fn parse_knowing(
        text: &str,
        name: &str,
        directory: &Path,
        changes: &Changes,
        popularities: &Popularities,
    ) -> Result<Design, miette::Report> {
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let help = "see `offpath new` for a commented design with every key".to_string();
            DesignError {
                message: error.message().to_string(),
                help: Some(help),
                source_code: NamedSource::new(name, text.to_string()),
                at: error.span().map(Into::into),
            }
        })?;
        Resolver {
            text,
            name,
            raw,
            parameters: BTreeMap::new(),
            times: BTreeMap::new(),
            popularities,
            hit_ratio: None,
            cache_object: None,
        }
        .resolve(directory, changes)
    }
}

struct Resolver<'t> {
    text: &'t str,
    name: &'t str,
    raw: RawFile,
    parameters: BTreeMap<String, Value>,
    /// Processor times of the coded application, which steps may name.
    times: BTreeMap<&'static str, Time>,
    popularities: &'t Popularities,
    hit_ratio: Option<f64>,
    cache_object: Option<String>,
}

/// What a parameter or size name stands for.
#[derive(Clone, Copy, Debug)]
enum Value {
    Bytes(f64),
    Number(f64),
}

impl Value {
    /// Says what is wrong with it as a parameter's value.
    fn check(self, name: &str) -> Result<(), String> {
        let (Value::Bytes(number) | Value::Number(number)) = self;
        if number.is_finite() && number >= 0.0 {
            return Ok(());
        }
        Err(format!("parameter `{name}` is {number}; it has to be 0 or more"))
    }
}

/// The name that stands for the workload's mean record.
const RECORD: &str = "record";
const NOT_NEGATIVE: &str = "give it a finite number that is not negative";
/// A message carries its alternative as 8 bits, and nobody compares more.
const MOST_ALTERNATIVES: usize = 200;

/// What a verb's step may say beside its path.
const VERB_KEYS: [&str; 3] = ["bytes", "object", "batch"];

const VERBS: [offpath_route::Verb; 6] = [
    offpath_route::Verb::Read,
    offpath_route::Verb::Write,
    offpath_route::Verb::Send,
    offpath_route::Verb::SendDatagram,
    offpath_route::Verb::CompareAndSwap,
    offpath_route::Verb::FetchAndAdd,
];

impl Resolver<'_> {
    fn error(&self, message: impl Into<String>, help: impl Into<String>, at: Range<usize>) -> miette::Report {
        DesignError {
            message: message.into(),
            help: Some(help.into()),
            source_code: NamedSource::new(self.name, self.text.to_string()),
            at: Some(at.into()),
        }
        .into()
    }

    fn quantity(&self, text: &Spanned<String>, dimension: Dimension) -> Result<Quantity, miette::Report> {
        Quantity::parse(text.get_ref(), dimension).map_err(|error| {
            self.error(error.to_string(), format!("as in `{}`", dimension.example()), text.span())
        })
    }

    fn time(&self, text: &Spanned<String>) -> Result<Time, miette::Report> {
        if let Some(time) = self.times.get(text.get_ref().as_str()) {
            return Ok(*time);
        }
        let Quantity::Time(time) = self.quantity(text, Dimension::Time)? else { unreachable!("a time") };
        Ok(time)
    }

    /// A size: bytes with a unit, a parameter, or a product of such.
    fn bytes(&self, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
        let mut product = 1.0;
        let mut sizes = 0;
        for factor in text.get_ref().split('*').map(str::trim) {
            match self.parameters.get(factor) {
                Some(Value::Bytes(bytes)) => {
                    product *= bytes;
                    sizes += 1;
                }
                Some(Value::Number(number)) => product *= number,
                None => match (factor.parse::<f64>(), Quantity::parse(factor, Dimension::Bytes)) {
                    (Ok(number), _) => product *= number,
                    (_, Ok(quantity)) => {
                        product *= quantity.base();
                        sizes += 1;
                    }
                    (_, Err(error)) => {
                        let known: Vec<&str> = self.parameters.keys().map(String::as_str).collect();
                        return Err(self.error(
                            error.to_string(),
                            format!(
                                "write bytes with a unit, a name from [parameters] ({}), or a product of them",
                                known.join(", ")
                            ),
                            text.span(),
                        ));
                    }
                },
            }
        }
        if sizes != 1 {
            return Err(self.error(
                format!("`{}` multiplies {sizes} sizes; a number of bytes has exactly one", text.get_ref()),
                "write one size and any plain numbers, as in `chunk * ratio`",
                text.span(),
            ));
        }
        match Quantity::from_base(product, Dimension::Bytes) {
            Some(Quantity::Bytes(bytes)) => Ok(bytes),
            _ => Err(self.error(
                format!("`{}` is {product} bytes, which is out of range", text.get_ref()),
                "use a size from 0 B to 9e18 B; what one verb may move, its path says",
                text.span(),
            )),
        }
    }

    fn resolve(mut self, directory: &Path, changes: &Changes) -> Result<Design, miette::Report> {
        self.read_parameters(changes)?;
        let workload = self.read_workload(directory, changes)?;
        if let Some(workload) = &workload {
            self.parameters.insert(RECORD.into(), Value::Bytes(workload.mean_record_bytes()));
        }
        let (objects, cache) = self.read_objects(workload.as_ref())?;
        self.hit_ratio = cache.as_ref().map(|cache| cache.hit_ratio);
        self.cache_object = cache.as_ref().map(|cache| cache.object.clone());
        let application = self.application(&objects)?;
        if let Some(Application::Store(store)) = &application {
            self.times = store.times().into();
        }
        let alternatives = self.read_alternatives(workload.as_ref(), &objects, application.as_ref())?;
        for mix in &self.raw.mix {
            for name in &mix.fill {
                if !alternatives.iter().any(|a| a.name == *name.get_ref()) {
                    return Err(self.error(
                        format!("mix `{}` names `{}`, which is no alternative", mix.name, name.get_ref()),
                        format!("use one of {}", names(&alternatives)),
                        name.span(),
                    ));
                }
            }
        }
        let alternatives_and_mixes: Vec<String> = alternatives
            .iter()
            .map(|one| one.name.clone())
            .chain(self.raw.mix.iter().map(|mix| mix.name.clone()))
            .collect();
        let raw = &self.raw.design;
        let objective = self.objective(changes)?;
        let rank = match raw.rank_by.get_ref().as_str() {
            "unloaded-latency" => Rank::UnloadedLatency,
            "network-saved" => Rank::NetworkSaved,
            "throughput" => Rank::Throughput,
            "host-cpu" => Rank::HostCpu,
            other => {
                return Err(self.error(
                    format!("`{other}` is nothing that greedy ranks by"),
                    "use `unloaded-latency`, `network-saved`, `throughput` or `host-cpu`",
                    raw.rank_by.span(),
                ));
            }
        };
        let constraints = &self.raw.constraints;
        if let Some(share) = &constraints.host_cpu_share
            && !(0.0..=1.0).contains(share.get_ref())
        {
            return Err(self.error(
                format!("host_cpu_share is {}; a share lies from 0 to 1", share.get_ref()),
                "write 0 where requests may not use the host's processor, 1 where they may use all of it",
                share.span(),
            ));
        }
        let sweep = self.sweep()?;
        let description = |workload: &Workload| {
            let mix = &workload.mix;
            let shares: Vec<String> = offpath_workload::Operation::ALL
                .into_iter()
                .filter(|operation| mix.share(*operation) > 0.0)
                .map(|operation| format!("{:.0}% {}", mix.share(operation) * 100.0, operation.name()))
                .collect();
            format!(
                "YCSB {}: {}, {} over {} records of {} B",
                Path::new(self.raw.workload.as_ref().map_or("", |w| w.ycsb.get_ref()))
                    .file_name()
                    .map(|name| name.to_string_lossy().into_owned())
                    .unwrap_or_default(),
                shares.join(", "),
                workload
                    .properties()
                    .find(|(key, _)| *key == "requestdistribution")
                    .map_or("uniform", |(_, value)| value),
                workload.record_count,
                workload.mean_record_bytes(),
            )
        };
        Ok(Design {
            name: raw.name.clone(),
            description: raw.description.clone(),
            device: changes.device.clone().unwrap_or_else(|| raw.device.clone()),
            testbed: raw.testbed.clone(),
            mode: raw.mode.clone(),
            set: raw.set.clone(),
            objective,
            rank,
            unit: raw.unit.as_ref().map(|unit| self.some_bytes("unit", unit)).transpose()?,
            network_baseline: raw
                .network_baseline
                .as_ref()
                .map(|bytes| self.some_bytes("network_baseline", bytes))
                .transpose()?,
            workload: workload.as_ref().map_or_else(|| raw.description.clone(), description),
            warnings: workload
                .as_ref()
                .map(|w| w.warnings().iter().map(ToString::to_string).collect())
                .unwrap_or_default(),
            mixes: self
                .raw
                .mix
                .iter()
                .map(|mix| NamedMix {
                    name: mix.name.clone(),
                    fill: mix.fill.iter().map(|name| name.get_ref().clone()).collect(),
                })
                .collect(),
            runs: self.runs(&alternatives, changes)?,
            application: application.filter(|_| !changes.steps),
            alternatives,
            objects,
            cache,
            host_cpu_share: constraints.host_cpu_share.as_ref().map(|share| *share.get_ref()),
            latency_bound: constraints.latency_bound.as_ref().map(|bound| self.time(bound)).transpose()?,
            parameters: self
                .parameters
                .iter()
                .filter(|(name, _)| self.raw.parameters.contains_key(*name))
                .map(|(name, value)| {
                    (
                        name.clone(),
                        match value {
                            Value::Bytes(v) | Value::Number(v) => *v,
                        },
                    )
                })
                .collect(),
            sizes: self
                .raw
                .parameters
                .keys()
                .filter(|name| matches!(self.parameters.get(*name), Some(Value::Bytes(_))))
                .cloned()
                .collect(),
            sweep,
            clients: self.clients()?,
            published: self.published(&alternatives_and_mixes)?,
            source: (self.name.to_string(), self.text.to_string()),
        })
    }

    fn objective(&self, changes: &Changes) -> Result<Objective, miette::Report> {
        let raw = &self.raw.design;
        let word = changes.objective.as_deref().unwrap_or(raw.objective.get_ref());
        let load = || -> Result<f64, miette::Report> {
            let given = match (&changes.offered_load, &raw.offered_load) {
                (Some(text), _) => Spanned::new(raw.objective.span(), text.clone()),
                (None, Some(load)) => load.clone(),
                (None, None) => {
                    return Err(self.error(
                        format!("objective `{word}` needs the load at which it is sought"),
                        "add `offered_load = \"40 M/s\"` to [design], or `--load 40M/s`",
                        raw.objective.span(),
                    ));
                }
            };
            let rate: OpRate = given.get_ref().parse().map_err(|error: offpath_quantity::ParseError| {
                self.error(error.to_string(), "as in `40 M/s`", given.span())
            })?;
            if rate.get() == 0 {
                return Err(self.error("the offered load is 0", "as in `40 M/s`", given.span()));
            }
            Ok(rate.get() as f64)
        };
        match word {
            "most-throughput" => Ok(Objective::MostThroughput),
            "least-host-cpu" => Ok(Objective::LeastHostCpu { load: load()? }),
            "lowest-p99" => Ok(Objective::LowestP99 { load: load()? }),
            other => Err(self.error(
                format!("`{other}` is no objective"),
                "use `most-throughput`, `least-host-cpu` or `lowest-p99`",
                raw.objective.span(),
            )),
        }
    }

    /// The mix that the system runs; the best one where nothing is said.
    fn runs(&self, alternatives: &[Alternative], changes: &Changes) -> Result<Runs, miette::Report> {
        let given = &self.raw.design.mix;
        let Some(name) = changes.mix.as_deref().or(given.as_ref().map(|name| name.get_ref().as_str())) else {
            return Ok(Runs::Best);
        };
        if self.raw.mix.iter().any(|mix| mix.name == name) {
            return Ok(Runs::Mix(name.to_string()));
        }
        let alternative = alternatives.iter().find(|one| one.name == name);
        match (name, alternative) {
            (BEST, _) => return Ok(Runs::Best),
            (GREEDY, _) => return Ok(Runs::Greedy),
            (_, Some(one)) if one.device.is_none() => return Ok(Runs::Alternative(name.to_string())),
            _ => {}
        }
        let mixes: String = self.raw.mix.iter().map(|mix| format!("`{}`, ", mix.name)).collect();
        let own: Vec<Alternative> = alternatives.iter().filter(|one| one.device.is_none()).cloned().collect();
        let message = match alternative {
            Some(_) => {
                format!("`{name}` runs on another device, and the system's mix is of the design's own")
            }
            None => format!("`{name}` is no mix and no alternative of this design"),
        };
        let help = format!("use `{BEST}`, `{GREEDY}`, {mixes}or one of {}", names(&own));
        Err(match given.as_ref().filter(|_| changes.mix.is_none()) {
            Some(given) => self.error(message, help, given.span()),
            None => miette::miette!(help = help, "{message}"),
        })
    }

    fn read_parameters(&mut self, changes: &Changes) -> Result<(), miette::Report> {
        for (name, value) in &self.raw.parameters {
            if name == RECORD {
                return Err(self.error(
                    format!("`{RECORD}` is no name for a parameter: it stands for the workload's record"),
                    "call the parameter something else; `bytes = \"record\"` needs no parameter",
                    value.span(),
                ));
            }
            let read = self.parameter(name, value)?;
            self.parameters.insert(name.clone(), read);
        }
        for (name, text) in &changes.parameters {
            let refused = |message: String, help: String| miette::miette!(help = help, "{message}");
            let value = match self.parameters.get(name) {
                Some(Value::Number(_)) => match text.trim().parse::<f64>() {
                    Ok(number) => Value::Number(number),
                    Err(_) => {
                        return Err(refused(
                            format!("parameter `{name}` is a plain number, and `{text}` is none"),
                            format!("as in `{name}=0.5`"),
                        ));
                    }
                },
                Some(Value::Bytes(_)) => match Quantity::parse(text, Dimension::Bytes) {
                    Ok(size) => Value::Bytes(size.base()),
                    Err(error) => {
                        return Err(refused(
                            format!("parameter `{name}` is a size: {error}"),
                            format!("as in `{name}=64KiB`"),
                        ));
                    }
                },
                None => {
                    let known: Vec<&str> = self.raw.parameters.keys().map(String::as_str).collect();
                    return Err(refused(
                        format!("the design `{}` has no parameter `{name}`", self.raw.design.name),
                        format!("its parameters are: {}", known.join(", ")),
                    ));
                }
            };
            value.check(name).map_err(|message| refused(message, NOT_NEGATIVE.to_string()))?;
            self.parameters.insert(name.clone(), value);
        }
        Ok(())
    }

    /// A parameter's value as the file gives it: a number, or a text of bytes with a unit.
    fn parameter(&self, name: &str, value: &Spanned<toml::Value>) -> Result<Value, miette::Report> {
        let read = match value.get_ref() {
            toml::Value::Float(number) => Value::Number(*number),
            toml::Value::Integer(number) => Value::Number(*number as f64),
            toml::Value::String(text) => {
                let spanned = Spanned::new(value.span(), text.clone());
                Value::Bytes(self.quantity(&spanned, Dimension::Bytes)?.base())
            }
            other => {
                return Err(self.error(
                    format!("parameter `{name}` is a {}", other.type_str()),
                    "a parameter is a number, or bytes with a unit as in \"256 KiB\"",
                    value.span(),
                ));
            }
        };
        read.check(name).map_err(|message| self.error(message, NOT_NEGATIVE, value.span()))?;
        Ok(read)
    }

    /// The parameter to vary; its values are of the parameter's own kind.
    fn sweep(&self) -> Result<Option<(String, Vec<f64>)>, miette::Report> {
        let Some(sweep) = &self.raw.sweep else { return Ok(None) };
        let name = sweep.parameter.get_ref();
        let Some(kind) = self.parameters.get(name).filter(|_| self.raw.parameters.contains_key(name)) else {
            let known: Vec<&str> = self.raw.parameters.keys().map(String::as_str).collect();
            return Err(self.error(
                format!("`{name}` is no parameter of this design"),
                format!("name one from [parameters]: {}", known.join(", ")),
                sweep.parameter.span(),
            ));
        };
        let mut values = Vec::new();
        for value in &sweep.values {
            values.push(match (kind, self.parameter(name, value)?) {
                (Value::Number(_), Value::Number(v)) | (Value::Bytes(_), Value::Bytes(v)) => v,
                (Value::Number(_), _) => {
                    return Err(self.error(
                        format!("parameter `{name}` is a plain number, and this is a size"),
                        "write its values without a unit, as in `values = [0.5, 1.0]`",
                        value.span(),
                    ));
                }
                (Value::Bytes(_), _) => {
                    return Err(self.error(
                        format!("parameter `{name}` is a size, and this has no unit"),
                        "write its values with a unit, as in `values = [\"4 KiB\", \"64 KiB\"]`",
                        value.span(),
                    ));
                }
            });
        }
        Ok(Some((name.clone(), values)))
    }

    /// Bytes that something is divided by.
    fn some_bytes(&self, key: &str, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
        let bytes = self.bytes(text)?;
        if bytes == Bytes::ZERO {
            return Err(self.error(
                format!("`{key}` is 0 B; it has to be 1 B or more"),
                "name the payload of one request, or leave the key out",
                text.span(),
            ));
        }
        Ok(bytes)
    }

    fn published(&self, known: &[String]) -> Result<Vec<Published>, miette::Report> {
        let given = self.raw.clients.as_ref().map(|clients| clients.published.as_slice()).unwrap_or_default();
        for name in given.iter().flat_map(|one| [&one.of, &one.over]) {
            if !known.contains(name.get_ref()) {
                return Err(self.error(
                    format!("`{}` is no alternative and no mix of this design", name.get_ref()),
                    format!("use one of {}", known.join(", ")),
                    name.span(),
                ));
            }
        }
        Ok(given
            .iter()
            .map(|one| Published {
                of: one.of.get_ref().clone(),
                over: one.over.get_ref().clone(),
                low: one.low,
                high: one.high,
                source: one.source.clone(),
            })
            .collect())
    }

    fn clients(&self) -> Result<Vec<u32>, miette::Report> {
        let counts = self.raw.clients.as_ref().map(|clients| clients.counts.as_slice()).unwrap_or_default();
        if let Some(count) = counts.iter().find(|count| !(1..=MOST_TASKS).contains(count.get_ref())) {
            return Err(self.error(
                format!("{} clients; a run has 1 to {MOST_TASKS}", count.get_ref()),
                "as in `counts = [1, 2, 4, 8]`",
                count.span(),
            ));
        }
        Ok(counts.iter().map(|count| *count.get_ref()).collect())
    }

    fn read_workload(&self, directory: &Path, changes: &Changes) -> Result<Option<Workload>, miette::Report> {
        let Some(raw) = &self.raw.workload else { return Ok(None) };
        let path = changes.workload.clone().unwrap_or_else(|| directory.join(raw.ycsb.get_ref()));
        let held = if changes.workload.is_none() { changes.files.get(raw.ycsb.get_ref()) } else { None };
        let workload = match held {
            Some(text) => Workload::parse(text, raw.ycsb.get_ref())?,
            None if !path.is_file() => {
                return Err(self.error(
                    format!("the workload file `{}` does not exist", path.display()),
                    "give the path of a YCSB property file, from the design's own folder",
                    raw.ycsb.span(),
                ));
            }
            None => Workload::load(&path)?,
        };
        let overrides = raw
            .set
            .iter()
            .map(|(key, value)| {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                (key.clone(), text)
            })
            .collect();
        Ok(Some(workload.with_overrides(overrides)?))
    }

    #[allow(clippy::type_complexity)]
    fn read_objects(
        &self,
        workload: Option<&Workload>,
    ) -> Result<(BTreeMap<String, ObjectAccess>, Option<CacheUse>), miette::Report> {
        let mut accesses = BTreeMap::new();
        // Drawing the popularity of millions of records takes longer than everything else here.
        let wanted = workload.filter(|_| !self.raw.object.is_empty() || self.raw.cache.is_some());
        let popularity = wanted.map(|workload| self.popularities.of(workload));
        let mut entries = BTreeMap::new();
        for (name, raw) in &self.raw.object {
            let Some(popularity) = &popularity else {
                return Err(self.error(
                    format!("object `{name}` needs a workload to be accessed by"),
                    "add [workload] with a YCSB property file",
                    raw.span(),
                ));
            };
            let object = raw.get_ref();
            let entry = self.bytes(&object.entry)?;
            let per_entry = object.records_per_entry.unwrap_or(1).max(1);
            let count = popularity.record_count().div_ceil(per_entry);
            let (copies, copied) = (object.copies.unwrap_or(1).max(1), object.copied.unwrap_or(0));
            // An entry of several records is at least as hot as its hottest one.
            let hottest = if copied == 0 {
                popularity.share_of_rank(0)
            } else {
                (popularity.share_of_rank(0) / copies as f64).max(popularity.share_of_rank(copied))
            };
            let spacing = match &object.spacing {
                None => entry,
                Some(given) => {
                    let spacing = self.bytes(given)?;
                    if spacing < entry {
                        return Err(self.error(
                            format!("entries of {entry} in `{name}` overlap when they start every {spacing}"),
                            format!("use {entry} or more, or leave `spacing` out"),
                            given.span(),
                        ));
                    }
                    spacing
                }
            };
            let Some(size) = spacing.get().checked_mul(count) else {
                return Err(self.error(
                    format!("{count} entries of {spacing} are more bytes than 64 bits count"),
                    "use a smaller entry or fewer records",
                    object.entry.span(),
                ));
            };
            let size = Bytes::new(size);
            entries.insert(name.clone(), (spacing, count));
            accesses.insert(
                name.clone(),
                ObjectAccess { size, entry, entries: count, spacing, copies, copied, hottest },
            );
        }
        let Some(raw) = &self.raw.cache else { return Ok((accesses, None)) };
        let cache = raw.get_ref();
        let budget = self.bytes(&cache.budget)?;
        let mut whole = 0u64;
        for name in &cache.whole {
            let Some(access) = accesses.get(name.get_ref()) else {
                return Err(self.unknown_object(name));
            };
            let Some(sum) = whole.checked_add(access.size.get()) else {
                return Err(self.error(
                    "the objects that the cache keeps whole are more bytes than 64 bits count",
                    "use smaller entries or fewer records, or take an object out of `whole`",
                    name.span(),
                ));
            };
            whole = sum;
        }
        let Some(&(entry, of)) = entries.get(cache.hottest.get_ref()) else {
            return Err(self.unknown_object(&cache.hottest));
        };
        if whole > budget.get() {
            return Err(self.error(
                format!(
                    "the objects {} need {}, and the budget at `{}` is {budget}",
                    cache
                        .whole
                        .iter()
                        .map(|name| format!("`{}`", name.get_ref()))
                        .collect::<Vec<_>>()
                        .join(", "),
                    Bytes::new(whole),
                    cache.at.get_ref()
                ),
                "raise the budget, use fewer records, or take an object out of `whole`",
                cache.budget.span(),
            ));
        }
        let fit = ((budget.get() - whole) / entry.get().max(1)).min(of);
        let hit_ratio = popularity.as_ref().map_or(0.0, |popularity| popularity.share_of_top(fit));
        let cache_use = CacheUse {
            at: cache.at.get_ref().clone(),
            budget,
            whole: Bytes::new(whole),
            object: cache.hottest.get_ref().clone(),
            entries: fit,
            of,
            hit_ratio,
            at_span: cache.at.span(),
            budget_span: cache.budget.span(),
        };
        Ok((accesses, Some(cache_use)))
    }

    /// The coded application, with everything that it has to be told.
    fn application(
        &self,
        objects: &BTreeMap<String, ObjectAccess>,
    ) -> Result<Option<Application>, miette::Report> {
        let Some(spanned) = &self.raw.application else { return Ok(None) };
        let raw = spanned.get_ref();
        let is_store = match raw.name.get_ref().as_str() {
            "kv" => true,
            "replog" => false,
            other => {
                return Err(self.error(
                    format!("`{other}` is no coded application"),
                    "use `kv` or `replog`, or leave [application] out and describe steps",
                    raw.name.span(),
                ));
            }
        };
        let store: [(&str, &Option<Spanned<String>>); 9] = [
            ("value", &raw.value),
            ("index", &raw.index),
            ("values", &raw.values),
            ("build", &raw.build),
            ("search", &raw.search),
            ("check", &raw.check),
            ("card_hash", &raw.card_hash),
            ("card_search", &raw.card_search),
            ("card_lookup", &raw.card_lookup),
        ];
        let log: [(&str, &Option<Spanned<String>>); 4] = [
            ("chunk", &raw.chunk),
            ("ratio", &raw.ratio),
            ("compress", &raw.compress),
            ("append", &raw.append),
        ];
        let foreign = if is_store { &log[..] } else { &store[..] };
        let chain = raw.chain.as_ref().and_then(|chain| chain.first()).filter(|_| is_store);
        let foreign = foreign.iter().filter_map(|(key, given)| Some((*key, given.as_ref()?)));
        if let Some((key, given)) = foreign.chain(chain.map(|given| ("chain", given))).next() {
            return Err(self.error(
                format!("`{key}` is nothing that `{}` is told", raw.name.get_ref()),
                "leave it out",
                given.span(),
            ));
        }
        let needed = |key: &str, given: &Option<Spanned<String>>, example: &str| {
            given.clone().ok_or_else(|| {
                self.error(
                    format!("[application] does not say `{key}`, which `{}` needs", raw.name.get_ref()),
                    format!("add `{key} = \"{example}\"`"),
                    raw.name.span(),
                )
            })
        };
        let time = |key: &str, given: &Option<Spanned<String>>| self.time(&needed(key, given, "80 ns")?);
        let object = |given: &Option<Spanned<String>>| match given {
            Some(name) if !objects.contains_key(name.get_ref()) => Err(self.unknown_object(name)),
            given => Ok(given.as_ref().map(|name| name.get_ref().clone())),
        };
        let rate = |given: &Option<Spanned<String>>| -> Result<u64, miette::Report> {
            let Some(given) = given else { return Ok(0) };
            let Quantity::BitRate(rate) = self.quantity(given, Dimension::BitRate)? else {
                unreachable!("a bit rate")
            };
            match rate.bits_per_second() / 8 {
                0 => Err(self.error(
                    "the rate is 0",
                    "write what one core does, or leave it out",
                    given.span(),
                )),
                bytes => Ok(bytes),
            }
        };
        let engine = raw.engine.as_ref().map(|engine| engine.get_ref().clone());
        if is_store {
            return Ok(Some(Application::Store(Store {
                value: self.bytes(&needed("value", &raw.value, "record")?)?,
                costs: Costs {
                    build: time("build", &raw.build)?,
                    search: time("search", &raw.search)?,
                    check: time("check", &raw.check)?,
                    card_hash: time("card_hash", &raw.card_hash)?,
                    card_search: time("card_search", &raw.card_search)?,
                    card_lookup: time("card_lookup", &raw.card_lookup)?,
                },
                engine,
                index: object(&raw.index)?,
                values: object(&raw.values)?,
            })));
        }
        let given = needed("ratio", &raw.ratio, "ratio")?;
        let ratio = match (self.parameters.get(given.get_ref()), given.get_ref().parse::<f64>()) {
            (Some(Value::Number(ratio)), _) => *ratio,
            (None, Ok(ratio)) => ratio,
            _ => {
                return Err(self.error(
                    format!("`{}` is no number and no parameter that is one", given.get_ref()),
                    "name a parameter like `ratio = 1.0` of [parameters], or write the number",
                    given.span(),
                ));
            }
        };
        if !(0.0..=1.0).contains(&ratio) {
            return Err(self.error(
                format!("the coded log is asked for a compression ratio of {ratio}"),
                "use 0 to 1: what compression would make longer is sent as it is",
                given.span(),
            ));
        }
        let chain = raw.chain.iter().flatten().map(|name| name.get_ref().clone()).collect::<Vec<_>>();
        if chain.is_empty() {
            return Err(self.error(
                "[application] does not say `chain`, which `replog` needs",
                "add `chain = [\"backup\"]`: the endpoints of the backups, in order",
                raw.name.span(),
            ));
        }
        Ok(Some(Application::Log(Log {
            chunk: self.some_bytes("chunk", &needed("chunk", &raw.chunk, "chunk")?)?,
            ratio,
            chain,
            engine,
            costs: LogCosts {
                compress_bytes_per_second: rate(&raw.compress)?,
                file_bytes_per_second: rate(&raw.append)?,
                // Waiting for a disk takes no station's time, and plans assume memory that survives.
                sync: Time::ZERO,
            },
        })))
    }

    /// What the coded application calls an alternative.
    fn code(
        &self,
        given: Option<&Spanned<String>>,
        application: Option<&Application>,
        context: &Context<'_>,
    ) -> Result<Option<Code>, miette::Report> {
        let Some(given) = given else { return Ok(None) };
        let Some(application) = application else {
            return Err(self.error(
                "`code` names an alternative of a coded application, and the design names none",
                "add [application] with `name = \"kv\"` or `name = \"replog\"`",
                given.span(),
            ));
        };
        let all: Vec<(&str, Coded)> = match application {
            Application::Store(_) => {
                PLACEMENTS.iter().map(|(name, one)| (*name, Coded::Store(*one))).collect()
            }
            Application::Log(_) => WAYS.iter().map(|(name, one)| (*name, Coded::Log(*one))).collect(),
        };
        let Some((_, kind)) = all.iter().find(|(name, _)| name == given.get_ref()) else {
            let known: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
            return Err(self.error(
                format!("the coded {} has no alternative `{}`", application.title(), given.get_ref()),
                format!("use one of {}", known.join(", ")),
                given.span(),
            ));
        };
        let hit_ratio = context.hit_ratio.or(self.hit_ratio).unwrap_or(0.0);
        Ok(Some(Code { kind: *kind, hit_ratio, span: given.span() }))
    }

    fn unknown_object(&self, name: &Spanned<String>) -> miette::Report {
        let known: Vec<&str> = self.raw.object.keys().map(String::as_str).collect();
        self.error(
            format!("`{}` is no object of this design", name.get_ref()),
            format!("describe it under [object.{}], or use one of: {}", name.get_ref(), known.join(", ")),
            name.span(),
        )
    }

    fn read_alternatives(
        &self,
        workload: Option<&Workload>,
        objects: &BTreeMap<String, ObjectAccess>,
        application: Option<&Application>,
    ) -> Result<Vec<Alternative>, miette::Report> {
        let all = &self.raw.alternative;
        if all.is_empty() {
            return Err(self.error(
                "the design has no alternatives",
                "describe at least one under [[alternative]]",
                0..0,
            ));
        }
        if let Some(one) = all.get(MOST_ALTERNATIVES) {
            return Err(self.error(
                format!("the design has {} alternatives, and a plan at most {MOST_ALTERNATIVES}", all.len()),
                "split it into several designs",
                one.get_ref().name.span(),
            ));
        }
        let mut read: Vec<Alternative> = Vec::new();
        for raw in all {
            let given = raw.get_ref();
            let name = given.name.get_ref().clone();
            if read.iter().any(|a| a.name == name) {
                return Err(self.error(
                    format!("two alternatives are named `{name}`"),
                    "give each a name of its own",
                    given.name.span(),
                ));
            }
            let base = match &given.like {
                None => given,
                Some(like) => all
                    .iter()
                    .map(Spanned::get_ref)
                    .find(|a| a.name.get_ref() == like.get_ref() && a.like.is_none())
                    .ok_or_else(|| {
                        self.error(
                            format!("`{}` is no alternative with steps of its own", like.get_ref()),
                            "name one that is described in full",
                            like.span(),
                        )
                    })?,
            };
            if let Some(ratio) = &given.hit_ratio
                && !(0.0..=1.0).contains(ratio.get_ref())
            {
                return Err(self.error(
                    format!("hit_ratio is {}; a share lies from 0 to 1", ratio.get_ref()),
                    "write 1 for requests that always find their entry",
                    ratio.span(),
                ));
            }
            let context = Context { objects, hit_ratio: given.hit_ratio.as_ref().map(|r| *r.get_ref()) };
            let mut operations = Vec::new();
            if let Some(steps) = &base.request {
                operations.push(("request".to_string(), 1.0, self.steps(steps, &context)?));
            } else if let Some(workload) = workload {
                for operation in offpath_workload::Operation::ALL {
                    let share = workload.mix.share(operation);
                    if share <= 0.0 {
                        continue;
                    }
                    let steps = match operation.name() {
                        "read" => &base.read,
                        "update" => &base.update,
                        "insert" => &base.insert,
                        "scan" => &base.scan,
                        _ => &base.readmodifywrite,
                    };
                    let Some(steps) = steps else {
                        return Err(self.error(
                            format!(
                                "the workload has {:.0}% `{}`, and alternative `{name}` has no steps for it",
                                share * 100.0,
                                operation.name()
                            ),
                            format!(
                                "add `{} = [ ... ]` to it, or choose a workload without",
                                operation.name()
                            ),
                            given.name.span(),
                        ));
                    };
                    operations.push((operation.name().to_string(), share, self.steps(steps, &context)?));
                }
            } else {
                return Err(self.error(
                    format!("alternative `{name}` has no steps"),
                    "add `request = [ ... ]`, or a [workload] and steps for its operations",
                    given.name.span(),
                ));
            }
            read.push(Alternative {
                name,
                description: given.description.clone(),
                device: given.device.clone().or_else(|| base.device.clone()),
                mixed: given.mixed.unwrap_or(given.like.is_none()) && given.device.is_none(),
                rows: given.rows.clone(),
                code: self.code(given.code.as_ref().or(base.code.as_ref()), application, &context)?,
                operations,
                span: given.name.span(),
            });
        }
        Ok(read)
    }

    fn steps(&self, steps: &[Spanned<RawStep>], context: &Context<'_>) -> Result<Vec<Step>, miette::Report> {
        if steps.is_empty() {
            return Ok(Vec::new());
        }
        steps.iter().map(|step| self.step(step, context)).collect()
    }

    fn step(&self, spanned: &Spanned<RawStep>, context: &Context<'_>) -> Result<Step, miette::Report> {
        let step = spanned.get_ref();
        let verbs =
            [&step.read, &step.write, &step.send, &step.send_ud, &step.compare_and_swap, &step.fetch_and_add];
        let kinds = verbs.iter().filter(|path| path.is_some()).count()
            + usize::from(step.compute.is_some())
            + usize::from(step.repeat.is_some())
            + usize::from(step.parallel.is_some())
            + usize::from(step.cached.is_some())
            + usize::from(step.probability.is_some());
        if kinds != 1 {
            return Err(self.error(
                format!("a step does one thing, and this one names {kinds}"),
                "use one of read, write, send, send-ud, compare-and-swap, fetch-and-add, compute, repeat, parallel, cached, probability",
                spanned.span(),
            ));
        }
        self.foreign_keys(spanned)?;
        for (verb, path) in VERBS.into_iter().zip(verbs) {
            let Some(path) = path else { continue };
            let bytes = match &step.bytes {
                Some(bytes) => self.bytes(bytes)?,
                None if verb.is_atomic() => Bytes::new(8),
                None => {
                    return Err(self.error(
                        format!("`{verb}` on `{}` does not say how many bytes", path.get_ref()),
                        "add `bytes = \"64 B\"`",
                        spanned.span(),
                    ));
                }
            };
            if let Some(object) = &step.object
                && !context.objects.contains_key(object.get_ref())
            {
                return Err(self.unknown_object(object));
            }
            let batch = step.batch.as_ref().map_or(1, |batch| *batch.get_ref());
            if let Some(given) = &step.batch {
                if batch == 0 {
                    return Err(self.error(
                        "a doorbell batch of 0 posts nothing",
                        "write 1 or more",
                        given.span(),
                    ));
                }
                // A path of three words ends with the engine's name.
                if path.get_ref().split('-').count() > 2 {
                    return Err(self.error(
                        format!("`batch` on `{}`: a copy engine has no doorbell batches", path.get_ref()),
                        "leave `batch` out, or use a path without an engine",
                        given.span(),
                    ));
                }
            }
            return Ok(Step::Verb {
                verb,
                path: path.get_ref().clone(),
                bytes,
                object: step.object.as_ref().map(|object| object.get_ref().clone()),
                batch,
                signals: Signals::default(),
                span: path.span(),
            });
        }
        if let Some(at) = &step.compute {
            let time = match (&step.time, &step.bytes, &step.rate) {
                (Some(time), None, None) => self.time(time)?,
                (None, Some(bytes), Some(rate)) => {
                    let Quantity::BitRate(rate) = self.quantity(rate, Dimension::BitRate)? else {
                        unreachable!("a bit rate")
                    };
                    if rate.bits_per_second() == 0 {
                        return Err(self.error("the rate is 0", "write what one core does", spanned.span()));
                    }
                    rate.time_for(self.bytes(bytes)?)
                }
                _ => {
                    return Err(self.error(
                        format!("compute at `{}` needs `time`, or `bytes` and `rate`", at.get_ref()),
                        "as in `time = \"80 ns\"`, or `bytes = \"chunk\", rate = \"500 MB/s\"` of one core",
                        spanned.span(),
                    ));
                }
            };
            return Ok(Step::Compute { at: at.get_ref().clone(), time, span: at.span() });
        }
        if let Some(times) = &step.repeat {
            let steps = self.required(&step.steps, "steps", spanned)?;
            if *times.get_ref() == 0 || steps.is_empty() {
                return Err(self.error(
                    format!("a repeat of {} steps {} times does nothing", steps.len(), times.get_ref()),
                    "write `repeat = 1` or more, and at least one step in `steps`",
                    times.span(),
                ));
            }
            return Ok(Step::Repeat {
                times: *times.get_ref(),
                steps: self.steps(steps, context)?,
                span: times.span(),
            });
        }
        if let Some(branches) = &step.parallel {
            let read: Result<Vec<_>, _> = branches.iter().map(|steps| self.steps(steps, context)).collect();
            return Ok(Step::Parallel(read?));
        }
        if let Some(object) = &step.cached {
            if self.cache_object.as_ref() != Some(object.get_ref()) {
                return Err(self.error(
                    format!("`{}` is not what the cache keeps", object.get_ref()),
                    "describe it under [cache] with `hottest`",
                    object.span(),
                ));
            }
            let hit = self.steps(self.required(&step.hit, "hit", spanned)?, context)?;
            let miss = self.steps(self.required(&step.miss, "miss", spanned)?, context)?;
            let probability = context.hit_ratio.or(self.hit_ratio).unwrap_or(0.0);
            return Ok(Step::Branch { probability, then: hit, otherwise: miss });
        }
        let probability = step.probability.as_ref().expect("the only kind left");
        if !(0.0..=1.0).contains(probability.get_ref()) {
            return Err(self.error(
                format!("a probability of {} is outside 0 to 1", probability.get_ref()),
                "write a share from 0 to 1",
                probability.span(),
            ));
        }
        let then = self.steps(self.required(&step.then, "then", spanned)?, context)?;
        let otherwise = self.steps(self.required(&step.otherwise, "otherwise", spanned)?, context)?;
        Ok(Step::Branch { probability: *probability.get_ref(), then, otherwise })
    }

    /// Refuses keys that belong to another kind of step: they would be ignored.
    fn foreign_keys(&self, spanned: &Spanned<RawStep>) -> Result<(), miette::Report> {
        let step = spanned.get_ref();
        let kinds: [(&str, bool, &[&str]); 11] = [
            ("read", step.read.is_some(), &VERB_KEYS),
            ("write", step.write.is_some(), &VERB_KEYS),
            ("send", step.send.is_some(), &VERB_KEYS),
            ("send-ud", step.send_ud.is_some(), &VERB_KEYS),
            ("compare-and-swap", step.compare_and_swap.is_some(), &VERB_KEYS),
            ("fetch-and-add", step.fetch_and_add.is_some(), &VERB_KEYS),
            ("compute", step.compute.is_some(), &["time", "bytes", "rate"]),
            ("repeat", step.repeat.is_some(), &["steps"]),
            ("parallel", step.parallel.is_some(), &[]),
            ("cached", step.cached.is_some(), &["hit", "miss"]),
            ("probability", step.probability.is_some(), &["then", "otherwise"]),
        ];
        fn span<T>(key: &Option<Spanned<T>>) -> Option<Range<usize>> {
            key.as_ref().map(Spanned::span)
        }
        // An empty list has no step to point at.
        let list = |steps: &Option<Vec<Spanned<RawStep>>>| {
            steps.as_ref().map(|steps| steps.first().map_or(spanned.span(), Spanned::span))
        };
        let given = [
            ("bytes", span(&step.bytes)),
            ("object", span(&step.object)),
            ("batch", span(&step.batch)),
            ("time", span(&step.time)),
            ("rate", span(&step.rate)),
            ("steps", list(&step.steps)),
            ("hit", list(&step.hit)),
            ("miss", list(&step.miss)),
            ("then", list(&step.then)),
            ("otherwise", list(&step.otherwise)),
        ];
        let Some((kind, _, own)) = kinds.iter().find(|(_, is, _)| *is) else { return Ok(()) };
        for (key, span) in given {
            let Some(span) = span.filter(|_| !own.contains(&key)) else { continue };
            let owners: Vec<&str> =
                kinds.iter().filter(|(_, _, keys)| keys.contains(&key)).map(|(name, ..)| *name).collect();
            let takes = if own.is_empty() { "no other key".to_string() } else { own.join(", ") };
            return Err(self.error(
                format!("a `{kind}` step has no `{key}`"),
                format!("`{kind}` takes {takes}; `{key}` belongs to {}", owners.join(", ")),
                span,
            ));
        }
        Ok(())
    }

    fn required<'s>(
        &self,
        steps: &'s Option<Vec<Spanned<RawStep>>>,
        key: &str,
        at: &Spanned<RawStep>,
    ) -> Result<&'s [Spanned<RawStep>], miette::Report> {
        steps.as_deref().ok_or_else(|| {
            self.error(format!("this step has no `{key}`"), format!("add `{key} = [ ... ]`"), at.span())
        })
    }
}

struct Context<'o> {
    objects: &'o BTreeMap<String, ObjectAccess>,
    hit_ratio: Option<f64>,
}

fn names(alternatives: &[Alternative]) -> String {
    alternatives.iter().map(|a| format!("`{}`", a.name)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITE: &str = r#"{ write = "host-backup", bytes = "chunk" }"#;

    fn text(design: &str, parameters: &str, steps: &str, more: &str) -> String {
        format!(
            "[design]\nname = \"t\"\ndevice = \"any\"\nobjective = \"most-throughput\"\nrank_by = \"throughput\"\n\
             {design}\n[parameters]\nchunk = \"4 KiB\"\nratio = 0.5\n{parameters}\n\
             [[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n{more}"
        )
    }

    fn parse(text: &str, changes: &[(&str, &str)]) -> Result<Design, miette::Report> {
        let parameters = changes.iter().map(|(name, value)| (name.to_string(), value.to_string())).collect();
        Design::parse(text, "t.toml", Path::new("."), &Changes { parameters, ..Changes::default() })
    }

    #[test]
    fn what_no_step_uses_is_refused_by_name() {
        for (steps, words) in [
            (r#"{ write = "host-backup", bytes = "1 B", time = "5 ns" }"#, "a `write` step has no `time`"),
            (r#"{ read = "host-backup", bytes = "1 B", hit = [] }"#, "a `read` step has no `hit`"),
            (r#"{ compute = "host", time = "5 ns", batch = 2 }"#, "a `compute` step has no `batch`"),
            (r#"{ parallel = [], steps = [] }"#, "a `parallel` step has no `steps`"),
            (r#"{ read = "soc-host-dma", bytes = "1 B", batch = 2 }"#, "a copy engine has no doorbell"),
            (r#"{ repeat = 3000000000, steps = [] }"#, "a repeat of 0 steps"),
        ] {
            let error = parse(&text("", "", steps, ""), &[]).expect_err(steps).to_string();
            assert!(error.contains(words), "{steps}: {error}");
        }
    }

    #[test]
    fn numbers_that_cannot_be_meant_are_refused() {
        let many: String =
            (0..200).map(|i| format!("[[alternative]]\nname = \"{i}\"\nlike = \"a\"\n")).collect();
        for (design, parameters, more, words) in [
            ("unit = \"0 B\"", "", "", "`unit` is 0 B"),
            ("network_baseline = \"chunk * 0\"", "", "", "`network_baseline` is 0 B"),
            ("", "record = \"5 B\"", "", "`record` is no name for a parameter"),
            ("", "", "[clients]\ncounts = [1, 0]", "0 clients"),
            ("", "", "[clients]\ncounts = [70000]", "70000 clients"),
            ("", "", "[sweep]\nparameter = \"chunk\"\nvalues = [4]", "is a size, and this has no unit"),
            ("", "", many.as_str(), "201 alternatives"),
        ] {
            let error = parse(&text(design, parameters, WRITE, more), &[]).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn changed_parameters_are_checked_as_the_files_are() {
        let file = text("", "", WRITE, "");
        for (name, value) in
            [("ratio", "-1"), ("ratio", "nan"), ("ratio", "4 KiB"), ("chunk", "64"), ("x", "1")]
        {
            parse(&file, &[(name, value)]).expect_err(value);
        }
        let design = parse(&file, &[("chunk", "64KiB"), ("ratio", "0.25")]).expect("both are of their kind");
        assert_eq!((design.parameters["chunk"], design.parameters["ratio"]), (65536.0, 0.25));
        assert_eq!(design.parameter_text("chunk", 65536.0), "65536 B");
        assert_eq!(design.parameter_text("ratio", 0.5), "0.5");
    }
}
