//! Design files: a system to plan, as its author writes it.
//!
//! The file is TOML. Every mistake is reported with the file, the place, what is accepted and what
//! to do next; nothing that matters has a default.

use crate::coded::{Application, Coded, Log, PLACEMENTS, Store, WAYS};
use crate::estimate::{Estimate, Share, Written, noun};
use crate::interpret::MOST_TASKS;
use crate::published::{Given, is_shipped_workload};
use miette::{NamedSource, SourceSpan};
use offpath_apps::kv::Costs;
use offpath_apps::replog::Costs as LogCosts;
use offpath_profile::System;
use offpath_quantity::{Bytes, Dimension, OpRate, Quantity, Time};
use offpath_workload::{Popularity, Workload};
use serde::Deserialize;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
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

impl Objective {
    /// The load that it is sought at, in requests per second; none where the load is what is sought.
    pub fn load(self) -> Option<f64> {
        match self {
            Objective::MostThroughput => None,
            Objective::LeastHostCpu { load } | Objective::LowestP99 { load } => Some(load),
        }
    }
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
        /// How many machines it goes to at once.
        to: u32,
        /// How its two sides hear of it.
        signals: Signals,
        /// The estimates that its payload is made of.
        rests_on: Vec<Arc<str>>,
        /// Where it stands in the file.
        span: Range<usize>,
    },
    /// Processor time.
    Compute {
        /// The endpoint whose processor it is.
        at: String,
        /// How long.
        time: Time,
        /// The estimates that the time is made of.
        rests_on: Vec<Share>,
        /// Where it stands in the file.
        span: Range<usize>,
    },
    /// Time that passes without a core, as a device's.
    Wait {
        /// How long.
        time: Time,
        /// The estimates that the time is made of.
        rests_on: Vec<Share>,
        /// Where it stands in the file.
        span: Range<usize>,
    },
    /// Steps that follow the answer, at the end of an operation's list.
    Background {
        /// The steps.
        steps: Vec<Step>,
        /// Where they stand in the file.
        span: Range<usize>,
    },
    /// Steps that run one after another, several times.
    Repeat {
        /// How often.
        times: u64,
        /// The steps.
        steps: Vec<Step>,
        /// The estimates that the number is made of.
        rests_on: Vec<Arc<str>>,
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
        /// The estimates that the probability is made of.
        rests_on: Vec<Arc<str>>,
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
    /// Whether mixes may use it. Of several scenarios only the first has mixes until one is chosen by
    /// [`Design::in_scenario`].
    pub mixed: bool,
    /// The scenario that it belongs to, where it belongs to one.
    pub scenario: Option<String>,
    /// Whether the file lets mixes of its scenario use it.
    mixable: bool,
    /// Evidence rows that its author says measured it, each with why it did not, where it did not.
    pub rows: Vec<(String, Option<&'static str>)>,
    /// The steps by operation of the workload, with the operation's share.
    pub operations: Vec<(String, f64, Vec<Step>)>,
    /// What it is called in the coded application, whose demands then take the place of the steps'.
    pub code: Option<Code>,
    /// Where it stands in the file.
    pub span: Range<usize>,
}

impl Alternative {
    /// The same with the times of its steps that are made of estimates moved: each by the ratio of an
    /// estimate's new value to its old.
    pub(crate) fn with_times(&self, ratios: &BTreeMap<&str, f64>) -> Alternative {
        fn factor_of(rests_on: &[Share], ratios: &BTreeMap<&str, f64>) -> f64 {
            let factors = rests_on.iter().map(|one| {
                let ratio = ratios.get(&*one.id).copied().unwrap_or(1.0);
                if one.share < 0.0 { ratio.powf(one.share) } else { 1.0 + one.share * (ratio - 1.0) }
            });
            factors.product::<f64>().max(0.0)
        }
        fn moved(steps: &mut [Step], ratios: &BTreeMap<&str, f64>) {
            for step in steps {
                match step {
                    Step::Compute { time, rests_on, .. } => {
                        *time = time.scaled(factor_of(rests_on, ratios));
                    }
                    Step::Wait { time, rests_on, .. } => *time = time.scaled(factor_of(rests_on, ratios)),
                    Step::Repeat { steps, .. } | Step::Background { steps, .. } => moved(steps, ratios),
                    Step::Parallel(lists) => lists.iter_mut().for_each(|steps| moved(steps, ratios)),
                    Step::Branch { then, otherwise, .. } => {
                        moved(then, ratios);
                        moved(otherwise, ratios);
                    }
                    Step::Verb { .. } => {}
                }
            }
        }
        let mut changed = self.clone();
        changed.operations.iter_mut().for_each(|(_, _, steps)| moved(steps, ratios));
        changed
    }
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
    /// The properties of its file and of the design, by key.
    pub workload_properties: BTreeMap<String, String>,
    /// Warnings about the workload file.
    pub warnings: Vec<String>,
    /// What its author may not have meant.
    pub notes: Vec<String>,
    /// Names of the scenarios, in the file's order; empty where the design has none. Alternatives of different
    /// scenarios promise different things, so each scenario is planned by itself.
    pub scenarios: Vec<String>,
    /// The scenario that this design was restricted to.
    pub scenario: Option<String>,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
    /// The coded application that alternatives are observed from, where there is one.
    pub application: Option<Application>,
    /// Whether its parameters or its workload are others than the file's.
    pub is_varied: bool,
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
    /// Parameters with their values in base units: bytes, picoseconds, bits or operations per second,
    /// hertz; plain numbers as they are.
    pub parameters: BTreeMap<String, f64>,
    /// What each parameter measures; a plain number is a ratio.
    pub dimensions: BTreeMap<String, Dimension>,
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
    /// The numbers that the file gives, in its order.
    estimates: Vec<Estimate>,
    /// Those that the coded application is told.
    told: BTreeSet<Arc<str>>,
    /// The file as it was read, from which it is resolved again with other numbers.
    file: Arc<Parsed>,
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

impl ObjectAccess {
    /// Bytes of the whole object where its entries start every `spacing` and so many of the hottest have so
    /// many copies.
    pub(crate) fn with_copies(&self, spacing: Bytes, copies: u64, copied: u64) -> u64 {
        let more = copies.saturating_sub(1).saturating_mul(copied.min(self.entries));
        self.entries.saturating_add(more).saturating_mul(spacing.get())
    }
}

/// The objects of a design by name, and what a cache keeps of them.
type Objects = (BTreeMap<String, ObjectAccess>, Option<CacheUse>);

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

#[derive(Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
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

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawWorkload {
    ycsb: Spanned<String>,
    #[serde(default)]
    set: BTreeMap<String, toml::Value>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawApplication {
    name: Spanned<String>,
    engine: Option<Spanned<String>>,
    value: Option<Spanned<toml::Value>>,
    index: Option<Spanned<String>>,
    values: Option<Spanned<String>>,
    build: Option<Spanned<toml::Value>>,
    search: Option<Spanned<toml::Value>>,
    check: Option<Spanned<toml::Value>>,
    card_hash: Option<Spanned<toml::Value>>,
    card_search: Option<Spanned<toml::Value>>,
    card_lookup: Option<Spanned<toml::Value>>,
    chunk: Option<Spanned<toml::Value>>,
    ratio: Option<Spanned<toml::Value>>,
    chain: Option<Vec<Spanned<String>>>,
    compress: Option<Spanned<toml::Value>>,
    append: Option<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawObject {
    entry: Spanned<toml::Value>,
    records_per_entry: Option<u64>,
    copies: Option<u64>,
    copied: Option<u64>,
    spacing: Option<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCache {
    at: Spanned<String>,
    budget: Spanned<toml::Value>,
    #[serde(default)]
    whole: Vec<Spanned<String>>,
    hottest: Spanned<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawConstraints {
    host_cpu_share: Option<Spanned<f64>>,
    latency_bound: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMix {
    name: String,
    fill: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSweep {
    parameter: Spanned<String>,
    values: Vec<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    of: Spanned<String>,
    over: Spanned<String>,
    low: f64,
    high: f64,
    source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClients {
    counts: Vec<Spanned<u32>>,
    #[serde(default)]
    published: Vec<RawPublished>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawAlternative {
    name: Spanned<String>,
    #[serde(default)]
    description: String,
    like: Option<Spanned<String>>,
    device: Option<String>,
    scenario: Option<Spanned<String>>,
    hit_ratio: Option<Spanned<toml::Value>>,
    mixed: Option<bool>,
    #[serde(default)]
    rows: Vec<String>,
    /// What the coded application calls it.
    code: Option<Spanned<String>>,
    /// Steps that follow the answer of every operation.
    background: Option<Vec<Spanned<RawStep>>>,
    /// Steps where requests are all alike.
    request: Option<Vec<Spanned<RawStep>>>,
    read: Option<Vec<Spanned<RawStep>>>,
    update: Option<Vec<Spanned<RawStep>>>,
    insert: Option<Vec<Spanned<RawStep>>>,
    scan: Option<Vec<Spanned<RawStep>>>,
    readmodifywrite: Option<Vec<Spanned<RawStep>>>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RawStep {
    read: Option<Spanned<String>>,
    write: Option<Spanned<String>>,
    send: Option<Spanned<String>>,
    send_ud: Option<Spanned<String>>,
    compare_and_swap: Option<Spanned<String>>,
    fetch_and_add: Option<Spanned<String>>,
    bytes: Option<Spanned<toml::Value>>,
    object: Option<Spanned<String>>,
    batch: Option<Spanned<toml::Value>>,
    to: Option<Spanned<toml::Value>>,
    wait: Option<Spanned<toml::Value>>,
    background: Option<Vec<Spanned<RawStep>>>,
    compute: Option<Spanned<String>>,
    time: Option<Spanned<toml::Value>>,
    rate: Option<Spanned<toml::Value>>,
    repeat: Option<Spanned<toml::Value>>,
    steps: Option<Vec<Spanned<RawStep>>>,
    parallel: Option<Vec<Vec<Spanned<RawStep>>>>,
    cached: Option<Spanned<String>>,
    hit: Option<Vec<Spanned<RawStep>>>,
    miss: Option<Vec<Spanned<RawStep>>>,
    probability: Option<Spanned<toml::Value>>,
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
    /// The scenario to plan, where the design has several.
    pub scenario: Option<String>,
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

    /// An error that points at an alternative.
    pub(crate) fn about_alternative(
        &self,
        alternative: &Alternative,
        message: String,
        help: &str,
    ) -> miette::Report {
        let (name, text) = &self.source;
        DesignError {
            message,
            help: Some(help.to_string()),
            source_code: NamedSource::new(name, text.clone()),
            at: Some(alternative.span.clone().into()),
        }
        .into()
    }

    /// A refusal of the library, pointing at the device in the design where it points nowhere yet.
    pub(crate) fn about_device(&self, device: &str, error: miette::Report) -> miette::Report {
        let (name, text) = &self.source;
        // A file is named from the design's folder there.
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        let device = Path::new(device).strip_prefix(folder).ok().and_then(Path::to_str).unwrap_or(device);
        let message = error.to_string();
        // What is given beside the file, as an overlay, has no place in it; a testbed may have one.
        let named = message.split('`').skip(1).step_by(2).chain(message.contains(device).then_some(device));
        let at = named.filter(|name| !name.is_empty()).find_map(|name| {
            let quoted = format!("\"{name}\"");
            text.find(&quoted).map(|at| at..at + quoted.len())
        });
        match at {
            Some(at) if error.labels().is_none() => DesignError {
                help: error.help().map(|help| help.to_string()),
                source_code: NamedSource::new(name, text.clone()),
                at: Some(at.into()),
                message,
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

    /// A parameter's value as [`Changes::parameters`] takes it, with its base unit.
    pub fn parameter_text(&self, name: &str, value: f64) -> String {
        let units = self.dimensions.get(name).map_or(&[][..], |dimension| dimension.units());
        match units.first() {
            Some((unit, _)) => format!("{value} {unit}"),
            None => value.to_string(),
        }
    }

    /// The numbers that the file gives, in its order. Each is an estimate of its author, whether it has
    /// an interval or not.
    pub fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    /// The estimates that the coded application is told: where one of them moves, alternatives with code
    /// have to be observed again.
    pub fn told(&self) -> &BTreeSet<Arc<str>> {
        &self.told
    }

    /// The same design with some estimates at other values. Whole numbers are rounded, and at least 1.
    ///
    /// # Errors
    /// Where there is no such estimate, where a value is of another kind than its estimate, and where the
    /// file would be refused with the values, as when they make a cache's objects exceed its budget.
    pub fn with_estimates(&self, moved: &BTreeMap<String, Quantity>) -> Result<Design, miette::Report> {
        for (id, value) in moved {
            let Some(known) = self.estimates.iter().find(|one| *one.id == **id) else {
                let all: Vec<&str> = self.estimates.iter().map(|one| &*one.id).collect();
                return Err(miette::miette!(
                    help = format!("its numbers are: {}", all.join(", ")),
                    "the design `{}` has no number `{id}`",
                    self.name
                ));
            };
            let (given, wanted) = (value.dimension(), known.value.dimension());
            if given != wanted {
                return Err(self.refuse(
                    format!("`{id}` is {}, and {value} is {}", noun(wanted), noun(given)),
                    "give it a value with a unit of its own kind",
                    &known.span,
                ));
            }
        }
        let design = Parsed::resolve(&self.file, moved)?;
        match &self.scenario {
            Some(scenario) => design.in_scenario(scenario),
            None => Ok(design),
        }
    }

    /// The design with the alternatives of one scenario and those that belong to none, which belong to each;
    /// with the mixes and published ratios that these make up, and without other scenarios.
    ///
    /// # Errors
    /// Where the design has no such scenario.
    pub fn in_scenario(&self, name: &str) -> Result<Design, miette::Report> {
        if !self.scenarios.iter().any(|scenario| scenario == name) {
            let known: Vec<String> = self.scenarios.iter().map(|one| format!("`{one}`")).collect();
            let help = match known.as_slice() {
                [] => "give alternatives one with `scenario = \"...\"`".to_string(),
                known => format!("use {}", known.join(" or ")),
            };
            return Err(miette::miette!(help = help, "the design `{}` has no scenario `{name}`", self.name));
        }
        let mut design = self.clone();
        design.alternatives.retain(|one| one.scenario.as_deref().is_none_or(|own| own == name));
        for one in &mut design.alternatives {
            one.mixed = one.mixable;
        }
        let kept: BTreeSet<&str> = design.alternatives.iter().map(|one| one.name.as_str()).collect();
        design.mixes.retain(|mix| mix.fill.iter().all(|one| kept.contains(one.as_str())));
        let mixes = design.mixes.iter().map(|mix| mix.name.as_str());
        let kept: BTreeSet<&str> = kept.into_iter().chain(mixes).collect();
        design.published.retain(|one| kept.contains(one.of.as_str()) && kept.contains(one.over.as_str()));
        // What another scenario runs, this one does not.
        if !matches!(design.runs, Runs::Best | Runs::Greedy) && !kept.contains(design.runs.name()) {
            design.runs = Runs::Best;
        }
        design.notes = notes(&design.alternatives);
        design.scenarios = Vec::new();
        design.scenario = Some(name.to_string());
        Ok(design)
    }

    /// Reads and resolves the design in a file.
    pub fn load(path: &Path, changes: &Changes) -> Result<Design, miette::Report> {
        let text = offpath_profile::read_text(path).map_err(|error| {
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
        let raw: RawFile = toml::from_str(text).map_err(|error| {
            let help = "see `offpath new` for a commented design with every key";
            let values = [("rank_by", RANKS), ("objective", OBJECTIVES)];
            let missing = values.iter().find(|(key, _)| error.message() == format!("missing field `{key}`"));
            let help = match missing {
                Some((key, values)) => format!("{key}: {values}; {help}"),
                None => help.to_string(),
            };
            DesignError {
                message: error.message().to_string(),
                help: Some(help),
                source_code: NamedSource::new(name, text.to_string()),
                at: error.span().map(Into::into),
            }
        })?;
        let root = toml::de::DeTable::parse(text).expect("it was read already");
        if let Some((character, at)) = offpath_profile::control_character(root.get_ref()) {
            return Err(DesignError {
                message: offpath_profile::control_character_reason(character),
                help: Some(offpath_profile::CONTROL_CHARACTER_HELP.to_string()),
                source_code: NamedSource::new(name, text.to_string()),
                at: Some(at.into()),
            }
            .into());
        }
        let mut parsed = Parsed {
            text: text.to_string(),
            name: name.to_string(),
            raw,
            workload: None,
            popularity: None,
            directory: directory.to_path_buf(),
            changes: changes.clone(),
        };
        parsed.workload = parsed.read_workload(directory)?;
        // The popularity of millions of records takes longer than everything else here.
        if !parsed.raw.object.is_empty() || parsed.raw.cache.is_some() {
            parsed.popularity = parsed.workload.as_ref().map(Popularity::shared);
        }
        let design = Parsed::resolve(&Arc::new(parsed), &BTreeMap::new())?;
        match &changes.scenario {
            Some(scenario) => design.in_scenario(scenario),
            None => Ok(design),
        }
    }
}

/// A design's file with what it names, before its numbers are resolved.
#[derive(Debug)]
struct Parsed {
    text: String,
    name: String,
    raw: RawFile,
    workload: Option<Workload>,
    /// How popular the workload's records are, where an object or a cache needs it.
    popularity: Option<Arc<Popularity>>,
    directory: PathBuf,
    changes: Changes,
}

impl Parsed {
    /// A device as a library finds it: files are named from the design's own folder.
    fn device(&self, name: &str) -> String {
        match name.ends_with(".toml") {
            true => self.directory.join(name).display().to_string(),
            false => name.to_string(),
        }
    }

    fn resolve(file: &Arc<Parsed>, moved: &BTreeMap<String, Quantity>) -> Result<Design, miette::Report> {
        Resolver {
            file,
            moved,
            names: BTreeMap::new(),
            times: BTreeMap::new(),
            estimates: RefCell::default(),
            told: RefCell::default(),
            is_changed: false,
            used: RefCell::default(),
            asked_hits: Cell::default(),
            hit_ratio: None,
            cache_object: None,
        }
        .resolve()
    }

    fn read_workload(&self, directory: &Path) -> Result<Option<Workload>, miette::Report> {
        let changes = &self.changes;
        let Some(raw) = &self.raw.workload else {
            return match &changes.workload {
                None => Ok(None),
                Some(file) => Err(miette::miette!(
                    help = "leave `--workload` out, or add [workload] with `ycsb = \"...\"` to the design",
                    "`--workload {}` has no effect: the design has no workload",
                    file.display()
                )),
            };
        };
        let path = changes.workload.clone().unwrap_or_else(|| directory.join(raw.ycsb.get_ref()));
        let held = if changes.workload.is_none() { changes.files.get(raw.ycsb.get_ref()) } else { None };
        let workload = match held {
            Some(text) => Workload::parse(text, raw.ycsb.get_ref())?,
            None if !path.is_file() => {
                let what = if path.exists() { "is not a file" } else { "does not exist" };
                return Err(self.error(
                    format!("the workload file `{}` {what}", path.display()),
                    "give the path of a YCSB property file, from the design's own folder",
                    raw.ycsb.span(),
                ));
            }
            None => Workload::load(&path)?,
        };
        Ok(Some(workload.with_overrides(overrides_of(raw))?))
    }

    fn error(&self, message: impl Into<String>, help: impl Into<String>, at: Range<usize>) -> miette::Report {
        DesignError {
            message: message.into(),
            help: Some(help.into()),
            source_code: NamedSource::new(&self.name, self.text.clone()),
            at: Some(at.into()),
        }
        .into()
    }
}

/// What a design changes in its workload file.
fn overrides_of(raw: &RawWorkload) -> BTreeMap<String, String> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    raw.set.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}

struct Resolver<'t> {
    file: &'t Arc<Parsed>,
    /// Estimates that have another value than the file gives.
    moved: &'t BTreeMap<String, Quantity>,
    /// What parameters, and the workload's record, stand for.
    names: BTreeMap<String, Named>,
    /// Processor times of the coded application, which steps may name.
    times: BTreeMap<&'static str, Named>,
    estimates: RefCell<BTreeMap<Arc<str>, Estimate>>,
    /// Those that the coded application is told.
    told: RefCell<BTreeSet<Arc<str>>>,
    /// Whether a parameter has another value than the file's.
    is_changed: bool,
    /// The parameters that something is said by.
    used: RefCell<BTreeSet<String>>,
    /// Whether anything asked which share of requests the cache answers.
    asked_hits: Cell<bool>,
    /// Share of the requests that find what they read in the cache.
    hit_ratio: Option<Read>,
    cache_object: Option<String>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
struct Named {
    dimension: Dimension,
    read: Read,
}

/// A number in its base unit, and the estimates that it is made of.
#[derive(Clone, Debug, Default)]
struct Read {
    base: f64,
    rests_on: Vec<Arc<str>>,
}

impl Read {
    /// The estimates of a time that is in proportion to each, or in inverse proportion.
    fn shares(&self, share: f64) -> Vec<Share> {
        self.rests_on.iter().map(|id| Share { id: id.clone(), share }).collect()
    }

    fn and(mut self, other: &Read) -> Read {
        self.rests_on.extend(other.rests_on.iter().cloned());
        self
    }
}

/// The name that stands for the workload's mean record.
const RECORD: &str = "record";
/// Machines that one message goes to; more are a network's business.
const MOST_MACHINES: u64 = 64;
/// Computing that takes longer is likely to be waiting for a device.
pub const LONG_COMPUTE: Time = Time::from_us(5);
/// Longer than any request, and short enough for any number of them to be simulated.
pub(crate) const LONGEST: Time = Time::from_ms(60_000);
/// A message carries its alternative as 8 bits, and nobody compares more.
const MOST_ALTERNATIVES: usize = 200;
/// What a queue pair has room for unless a program asks for more ([`offpath_fabric::QueuePairOptions`]).
const SEND_QUEUE: usize = 128;

/// What a verb's step may say beside its path.
/// The longest value that the coded store keeps.
const LONGEST_VALUE: Bytes = Bytes::new(65_535);

const VERB_KEYS: [&str; 4] = ["bytes", "object", "batch", "to"];
/// An atomic is of 8 B.
const ATOMIC_KEYS: [&str; 3] = ["object", "batch", "to"];
/// What a design may seek, and what a greedy mix is filled by, as messages list them.
const OBJECTIVES: &str = "use `most-throughput`, `least-host-cpu` or `lowest-p99`";
const RANKS: &str = "use `unloaded-latency`, `network-saved`, `throughput` or `host-cpu`";

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
        self.file.error(message, help, at)
    }

    /// A number that the file gives at `id`, as an estimate.
    fn estimated(&self, id: &str, written: Written, span: Range<usize>) -> Read {
        let id: Arc<str> = id.into();
        let value = self.moved.get(&*id).copied().unwrap_or(written.value);
        let Written { low, high, is_assumed, .. } = written;
        let estimate = Estimate { id: id.clone(), value, low, high, is_assumed, span };
        self.estimates.borrow_mut().insert(id.clone(), estimate);
        Read { base: value.base(), rests_on: vec![id] }
    }

    /// A number of `dimension` that stands at `id`: one with its unit, an interval, a name, or a product
    /// of a name or number with plain numbers.
    fn number(
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
    fn product(
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
                        let known = match known.is_empty() {
                            true => ", of which there are none".to_string(),
                            false => format!(" ({})", known.join(", ")),
                        };
                        return Err(self.error(
                            error.to_string(),
                            format!(
                                "write {dimension} as in `{}`, a name from [parameters]{known}, or a product of them",
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
            // A number alone is no product: what it lacks is its unit.
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

    fn quantity(
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

    fn time(&self, id: &str, given: &Spanned<toml::Value>) -> Result<(Time, Read), miette::Report> {
        let read = self.number(id, given, Dimension::Time)?;
        match self.quantity(&read, Dimension::Time, given.span())? {
            Quantity::Time(time) => Ok((self.within_reason(time, given.span())?, read)),
            other => unreachable!("{other} is read as a time"),
        }
    }

    /// Refuses a time that no request takes, and that no simulation could add up.
    fn within_reason(&self, time: Time, at: Range<usize>) -> Result<Time, miette::Report> {
        if time <= LONGEST {
            return Ok(time);
        }
        Err(self.error(
            format!("{time} is longer than {LONGEST}, the most that a step may take"),
            "write what one request waits for; work of minutes is not part of a request",
            at,
        ))
    }

    fn rate(&self, id: &str, given: &Spanned<toml::Value>) -> Result<(u64, Read), miette::Report> {
        let read = self.number(id, given, Dimension::BitRate)?;
        match self.quantity(&read, Dimension::BitRate, given.span())? {
            Quantity::BitRate(rate) if rate.bits_per_second() > 0 => Ok((rate.bits_per_second(), read)),
            Quantity::BitRate(_) => {
                Err(self.error("the rate is 0", "write what one core gets done", given.span()))
            }
            other => unreachable!("{other} is read as a bit rate"),
        }
    }

    /// A size: bytes with a unit, a parameter, or a product of such.
    fn bytes(&self, id: &str, given: &Spanned<toml::Value>) -> Result<(Bytes, Read), miette::Report> {
        let read = self.number(id, given, Dimension::Bytes)?;
        match self.quantity(&read, Dimension::Bytes, given.span())? {
            Quantity::Bytes(bytes) => Ok((bytes, read)),
            other => unreachable!("{other} is read as a size"),
        }
    }

    /// A size that says what is counted, and is nobody's estimate.
    fn plain_bytes(&self, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
        let read = self.product(None, text.get_ref(), Dimension::Bytes, text.span())?;
        match self.quantity(&read, Dimension::Bytes, text.span())? {
            Quantity::Bytes(bytes) => Ok(bytes),
            other => unreachable!("{other} is read as a size"),
        }
    }

    /// A share from 0 to 1.
    fn share(&self, key: &str, id: &str, given: &Spanned<toml::Value>) -> Result<Read, miette::Report> {
        let read = self.number(id, given, Dimension::Ratio)?;
        // It may be a multiple of a number that has an interval.
        let estimates = self.estimates.borrow();
        let known = read.rests_on.iter().filter_map(|id| estimates.get(id));
        let ends = known.filter(|one| self.moved.is_empty() && one.value.base() > 0.0).flat_map(|one| {
            let end = |end: Quantity| read.base * (end.base() / one.value.base());
            one.low.map(end).into_iter().chain(one.high.map(end))
        });
        let Some(outside) = std::iter::once(read.base).chain(ends).find(|one| !(0.0..=1.0).contains(one))
        else {
            drop(estimates);
            return Ok(read);
        };
        Err(self.error(
            format!("a {key} of {outside} is outside 0 to 1"),
            "write a share from 0 to 1",
            given.span(),
        ))
    }

    /// How many: a whole number of 1 or more, or a parameter that is one. Only what has an interval is an
    /// estimate: the shape of a request is its author's to say.
    fn whole(
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
        let base = if self.moved.is_empty() { read.base } else { read.base.round().max(1.0) };
        if base.fract() != 0.0 || base < 1.0 || base > most as f64 {
            return Err(self.error(
                format!("`{key}` is {base}; it has to be a whole number from 1 to {most}"),
                format!("as in `{key} = 3`, or name a parameter that is such a number"),
                given.span(),
            ));
        }
        Ok((base as u64, read))
    }

    fn resolve(mut self) -> Result<Design, miette::Report> {
        let file = self.file.clone();
        let (workload, changes) = (&file.workload, &file.changes);
        self.read_parameters(changes)?;
        if let Some(workload) = workload {
            let read = Read { base: workload.mean_record_bytes(), rests_on: Vec::new() };
            self.names.insert(RECORD.into(), Named { dimension: Dimension::Bytes, read });
        }
        let (objects, cache) = self.read_objects()?;
        let (application, times) = self.application(&objects)?;
        self.times = times;
        let mut alternatives = self.read_alternatives(workload.as_ref(), &objects, application.as_ref())?;
        let scenarios = self.scenarios(&mut alternatives)?;
        for mix in &self.file.raw.mix {
            if mix.fill.is_empty() {
                return Err(self.error(
                    format!("mix `{}` fills nothing", mix.name),
                    format!("name the alternatives that it fills in order, of {}", names(&alternatives)),
                    0..0,
                ));
            }
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
            .chain(self.file.raw.mix.iter().map(|mix| mix.name.clone()))
            .collect();
        let raw = &self.file.raw.design;
        let objective = self.objective(changes)?;
        let rank = match raw.rank_by.get_ref().as_str() {
            "unloaded-latency" => Rank::UnloadedLatency,
            "network-saved" => Rank::NetworkSaved,
            "throughput" => Rank::Throughput,
            "host-cpu" => Rank::HostCpu,
            other => {
                return Err(self.error(
                    format!("`{other}` is nothing that greedy ranks by"),
                    RANKS,
                    raw.rank_by.span(),
                ));
            }
        };
        let constraints = &self.file.raw.constraints;
        if let Some(share) = &constraints.host_cpu_share
            && !(0.0..=1.0).contains(share.get_ref())
        {
            return Err(self.error(
                format!("host_cpu_share is {}; a share lies from 0 to 1", share.get_ref()),
                "write 0 where requests may not use the host's processor, 1 where they may use all of it",
                share.span(),
            ));
        }
        fn of<T>(names: &BTreeMap<String, Named>, what: &dyn Fn(&Named) -> Option<T>) -> BTreeMap<String, T> {
            let own = names.iter().filter(|(name, _)| *name != RECORD);
            own.filter_map(|(name, named)| Some((name.clone(), what(named)?))).collect()
        }
        let latency_bound = constraints.latency_bound.as_ref().map(|bound| {
            let read = self.product(None, bound.get_ref(), Dimension::Time, bound.span())?;
            match self.quantity(&read, Dimension::Time, bound.span())? {
                Quantity::Time(time) => Ok::<_, miette::Report>(time),
                other => unreachable!("{other} is read as a time"),
            }
        });
        let latency_bound = latency_bound.transpose()?;
        let clients = self.clients()?;
        let published = self.published(&alternatives_and_mixes)?;
        let sweep = self.sweep()?;
        let mut warnings: Vec<String> = workload
            .as_ref()
            .map(|w| w.warnings().iter().map(ToString::to_string).collect())
            .unwrap_or_default();
        if let (Some(load), Objective::MostThroughput) = (&raw.offered_load, objective) {
            warnings.push(format!(
                "`offered_load = \"{}\"` has no effect on the goal `most-throughput`, which is sought at no load",
                load.get_ref()
            ));
        }
        let mut estimates: Vec<Estimate> = self.estimates.take().into_values().collect();
        estimates.sort_by_key(|one| one.span.start);
        let description = |workload: &Workload| {
            let file = Path::new(self.file.raw.workload.as_ref().map_or("", |w| w.ycsb.get_ref()));
            let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
            format!("YCSB {}: {}", name.unwrap_or_default(), workload.description())
        };
        Ok(Design {
            scenarios,
            scenario: None,
            name: raw.name.clone(),
            description: raw.description.clone(),
            device: changes.device.clone().unwrap_or_else(|| self.file.device(&raw.device)),
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
            workload_properties: workload
                .iter()
                .flat_map(|workload| workload.properties())
                .map(|(key, value)| (key.to_string(), value.to_string()))
                .collect(),
            notes: notes(&alternatives),
            warnings,
            mixes: self
                .file
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
            is_varied: self.is_changed || changes.workload.is_some(),
            alternatives,
            objects,
            cache,
            host_cpu_share: constraints.host_cpu_share.as_ref().map(|share| *share.get_ref()),
            latency_bound,
            parameters: of(&self.names, &|named| Some(named.read.base)),
            dimensions: of(&self.names, &|named| Some(named.dimension)),
            sizes: of(&self.names, &|named| (named.dimension == Dimension::Bytes).then_some(()))
                .into_keys()
                .collect(),
            sweep,
            clients,
            published,
            source: (file.name.clone(), file.text.clone()),
            estimates,
            told: self.told.take(),
            file: file.clone(),
        })
    }

    /// The names of the scenarios. Only the first is mixed until one is chosen; a mix or a published ratio
    /// that takes alternatives of two is refused.
    fn scenarios(&self, alternatives: &mut [Alternative]) -> Result<Vec<String>, miette::Report> {
        let mut scenarios: Vec<String> = Vec::new();
        for raw in &self.file.raw.alternative {
            let Some(scenario) = &raw.get_ref().scenario else { continue };
            if scenario.get_ref().trim().is_empty() {
                return Err(self.error(
                    "a scenario has no name",
                    "say what its alternatives have in common, as in `scenario = \"3 replicas\"`",
                    scenario.span(),
                ));
            }
            if !scenarios.contains(scenario.get_ref()) {
                scenarios.push(scenario.get_ref().clone());
            }
        }
        let of: BTreeMap<&str, &str> = alternatives
            .iter()
            .filter_map(|one| Some((one.name.as_str(), one.scenario.as_deref()?)))
            .collect();
        let two = |names: &mut dyn Iterator<Item = &Spanned<String>>, what: &str| {
            let mut first: Option<&str> = None;
            for name in names {
                let Some(own) = of.get(name.get_ref().as_str()) else { continue };
                if *first.get_or_insert(own) != *own {
                    return Err(self.error(
                        format!(
                            "{what} takes `{}` of scenario `{own}` together with another of scenario `{}`",
                            name.get_ref(),
                            first.unwrap_or_default()
                        ),
                        "alternatives of different scenarios promise different things; write one for each",
                        name.span(),
                    ));
                }
            }
            Ok(())
        };
        for mix in &self.file.raw.mix {
            two(&mut mix.fill.iter(), &format!("mix `{}`", mix.name))?;
        }
        for one in self.file.raw.clients.iter().flat_map(|clients| &clients.published) {
            two(&mut [&one.of, &one.over].into_iter(), "the published ratio")?;
        }
        let first = scenarios.first().cloned();
        for one in alternatives.iter_mut().filter(|one| one.scenario.is_some()) {
            one.mixed &= one.scenario == first;
        }
        Ok(scenarios)
    }

    fn objective(&self, changes: &Changes) -> Result<Objective, miette::Report> {
        let raw = &self.file.raw.design;
        let word = changes.objective.as_deref().unwrap_or(raw.objective.get_ref());
        // What the command line gives stands on no line of the file.
        let refuse = |flag: Option<String>, message: String, help: &str, at: Range<usize>| match flag {
            Some(flag) => miette::miette!(help = help.to_string(), "`{flag}`: {message}"),
            None => self.error(message, help, at),
        };
        let goal_given = || changes.objective.as_ref().map(|word| format!("--goal {word}"));
        let load_given = || changes.offered_load.as_ref().map(|load| format!("--load {load}"));
        let load = || -> Result<f64, miette::Report> {
            let given = match (&changes.offered_load, &raw.offered_load) {
                (Some(text), _) => Spanned::new(raw.objective.span(), text.clone()),
                (None, Some(load)) => load.clone(),
                (None, None) => {
                    return Err(refuse(
                        goal_given(),
                        format!("objective `{word}` needs the load at which it is sought"),
                        "add `offered_load = \"40 M/s\"` to [design], or `--load 40M/s`",
                        raw.objective.span(),
                    ));
                }
            };
            let rate: OpRate = given.get_ref().parse().map_err(|error: offpath_quantity::ParseError| {
                refuse(load_given(), error.to_string(), "as in `40 M/s`", given.span())
            })?;
            if rate.get() == 0 {
                let message = "the offered load is 0".to_string();
                return Err(refuse(load_given(), message, "as in `40 M/s`", given.span()));
            }
            Ok(rate.get() as f64)
        };
        match word {
            "most-throughput" => match &changes.offered_load {
                // A load that changes nothing would pass for one that was met.
                Some(load) => Err(miette::miette!(
                    help = "add `--goal lowest-p99` or `--goal least-host-cpu`, or leave `--load` out",
                    "`--load {load}` has no effect on the goal `most-throughput`, which is sought at no load"
                )),
                None => Ok(Objective::MostThroughput),
            },
            "least-host-cpu" => Ok(Objective::LeastHostCpu { load: load()? }),
            "lowest-p99" => Ok(Objective::LowestP99 { load: load()? }),
            other => Err(refuse(
                goal_given(),
                format!("`{other}` is no objective"),
                OBJECTIVES,
                raw.objective.span(),
            )),
        }
    }

    /// The mix that the system runs; the best one where nothing is said.
    fn runs(&self, alternatives: &[Alternative], changes: &Changes) -> Result<Runs, miette::Report> {
        let given = &self.file.raw.design.mix;
        let Some(name) = changes.mix.as_deref().or(given.as_ref().map(|name| name.get_ref().as_str())) else {
            return Ok(Runs::Best);
        };
        if self.file.raw.mix.iter().any(|mix| mix.name == name) {
            return Ok(Runs::Mix(name.to_string()));
        }
        let alternative = alternatives.iter().find(|one| one.name == name);
        match (name, alternative) {
            (BEST, _) => return Ok(Runs::Best),
            (GREEDY, _) => return Ok(Runs::Greedy),
            (_, Some(one)) if one.device.is_none() => return Ok(Runs::Alternative(name.to_string())),
            _ => {}
        }
        let mixes: String = self.file.raw.mix.iter().map(|mix| format!("`{}`, ", mix.name)).collect();
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
        for (name, value) in &self.file.raw.parameters {
            if name == RECORD {
                return Err(self.error(
                    format!("`{RECORD}` is no name for a parameter: it stands for the workload's record"),
                    "call the parameter something else; `bytes = \"record\"` needs no parameter",
                    value.span(),
                ));
            }
            let refused = |(message, help): (String, String)| {
                self.error(format!("parameter `{name}`: {message}"), help, value.span())
            };
            let mut written = Written::read(value.get_ref(), None).map_err(refused)?;
            let dimension = written.value.dimension();
            if let Some(text) = changes.parameters.get(name) {
                let wanted = noun(dimension);
                let example = dimension.example();
                let given = Written::text(text, Some(dimension)).map_err(|(message, _)| {
                    miette::miette!(
                        help = format!(
                            "as in `{name}={example}`, or an interval as in `{name}={example} to {example}`"
                        ),
                        "parameter `{name}` is {wanted}: {message}"
                    )
                })?;
                // What the file says already is no change.
                self.is_changed |= given != written;
                written = given;
            }
            let read = self.estimated(&format!("parameters.{name}"), written, value.span());
            self.names.insert(name.clone(), Named { dimension, read });
        }
        if let Some(name) = changes.parameters.keys().find(|name| !self.names.contains_key(*name)) {
            let known: Vec<&str> = self.names.keys().map(String::as_str).collect();
            return Err(miette::miette!(
                help = match known.is_empty() {
                    true => "its file has no `[parameters]`; name one there and use it in a step".to_string(),
                    false => format!("its parameters are: {}", known.join(", ")),
                },
                "the design `{}` has no parameter `{name}`",
                self.file.raw.design.name
            ));
        }
        Ok(())
    }

    /// The parameter to vary; its values are of the parameter's own kind.
    fn sweep(&self) -> Result<Option<(String, Vec<f64>)>, miette::Report> {
        let Some(sweep) = &self.file.raw.sweep else { return Ok(None) };
        let name = sweep.parameter.get_ref();
        let Some(named) = self.names.get(name).filter(|_| name != RECORD) else {
            let known: Vec<&str> = self.file.raw.parameters.keys().map(String::as_str).collect();
            return Err(self.error(
                format!("`{name}` is no parameter of this design"),
                format!("name one from [parameters]: {}", known.join(", ")),
                sweep.parameter.span(),
            ));
        };
        if !self.used.borrow().contains(name) {
            return Err(self.error(
                format!("nothing of this design is said by `{name}`: every value of it would plan the same"),
                "write it where a step, an object or the application gives a number, or sweep another",
                sweep.parameter.span(),
            ));
        }
        if sweep.values.is_empty() {
            return Err(self.error(
                format!("the sweep of `{name}` has no values"),
                "give it one or more in the parameter's unit, or remove [sweep]",
                sweep.parameter.span(),
            ));
        }
        let mut values = Vec::new();
        for value in &sweep.values {
            let refused = |(message, help): (String, String)| self.error(message, help, value.span());
            let written = Written::read(value.get_ref(), None).map_err(refused)?;
            let (given, wanted) = (written.value.dimension(), named.dimension);
            if given != wanted {
                let given = if given == Dimension::Ratio { "has no unit" } else { noun(given) };
                let is = if given == "has no unit" { "" } else { "is " };
                let example = match wanted {
                    Dimension::Ratio => "without a unit, as in `values = [0.5, 1.0]`".to_string(),
                    other => format!("with a unit, as in `values = [\"{}\"]`", other.example()),
                };
                return Err(self.error(
                    format!("parameter `{name}` is {}, and this {is}{given}", noun(wanted)),
                    format!("write its values {example}"),
                    value.span(),
                ));
            }
            if written.low.is_some() {
                return Err(self.error(
                    "a value of a sweep has no interval",
                    "write one number; the interval belongs to the parameter",
                    value.span(),
                ));
            }
            values.push(written.value.base());
        }
        Ok(Some((name.clone(), values)))
    }

    /// Bytes that something is divided by.
    fn some_bytes(&self, key: &str, text: &Spanned<String>) -> Result<Bytes, miette::Report> {
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

    fn published(&self, known: &[String]) -> Result<Vec<Published>, miette::Report> {
        let given =
            self.file.raw.clients.as_ref().map(|clients| clients.published.as_slice()).unwrap_or_default();
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
        let counts =
            self.file.raw.clients.as_ref().map(|clients| clients.counts.as_slice()).unwrap_or_default();
        if let Some(count) = counts.iter().find(|count| !(1..=MOST_TASKS).contains(count.get_ref())) {
            return Err(self.error(
                format!("{} clients; a run has 1 to {MOST_TASKS}", count.get_ref()),
                "as in `counts = [1, 2, 4, 8]`",
                count.span(),
            ));
        }
        Ok(counts.iter().map(|count| *count.get_ref()).collect())
    }

    /// The objects, and what the cache keeps of them.
    fn read_objects(&mut self) -> Result<Objects, miette::Report> {
        let mut accesses = BTreeMap::new();
        let popularity = &self.file.popularity;
        let mut entries = BTreeMap::new();
        for (name, raw) in &self.file.raw.object {
            let Some(popularity) = popularity else {
                return Err(self.error(
                    format!("object `{name}` needs a workload to be accessed by"),
                    "add [workload] with a YCSB property file",
                    raw.span(),
                ));
            };
            let object = raw.get_ref();
            let (entry, mut sized) = self.bytes(&format!("object.{name}.entry"), &object.entry)?;
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
                    let (spacing, read) = self.bytes(&format!("object.{name}.spacing"), given)?;
                    sized = sized.and(&read);
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
            entries.insert(name.clone(), (spacing, count, sized));
            accesses.insert(
                name.clone(),
                ObjectAccess { size, entry, entries: count, spacing, copies, copied, hottest },
            );
        }
        let Some(raw) = &self.file.raw.cache else { return Ok((accesses, None)) };
        let cache = raw.get_ref();
        let (budget, mut rests) = self.bytes("cache.budget", &cache.budget)?;
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
            rests = rests.and(&entries[name.get_ref()].2);
        }
        let Some((entry, of, sized)) = entries.get(cache.hottest.get_ref()) else {
            return Err(self.unknown_object(&cache.hottest));
        };
        let (entry, of) = (*entry, *of);
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
        self.hit_ratio = Some(Read { base: hit_ratio, ..rests.and(sized) });
        self.cache_object = Some(cache_use.object.clone());
        Ok((accesses, Some(cache_use)))
    }

    /// The coded application, with everything that it has to be told.
    fn application(
        &self,
        objects: &BTreeMap<String, ObjectAccess>,
    ) -> Result<(Option<Application>, BTreeMap<&'static str, Named>), miette::Report> {
        let Some(spanned) = &self.file.raw.application else { return Ok((None, BTreeMap::new())) };
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
        fn span<T>(given: &Option<Spanned<T>>) -> Option<Range<usize>> {
            given.as_ref().map(Spanned::span)
        }
        let store = [
            ("value", span(&raw.value)),
            ("index", span(&raw.index)),
            ("values", span(&raw.values)),
            ("build", span(&raw.build)),
            ("search", span(&raw.search)),
            ("check", span(&raw.check)),
            ("card_hash", span(&raw.card_hash)),
            ("card_search", span(&raw.card_search)),
            ("card_lookup", span(&raw.card_lookup)),
        ];
        let log = [
            ("chunk", span(&raw.chunk)),
            ("ratio", span(&raw.ratio)),
            ("compress", span(&raw.compress)),
            ("append", span(&raw.append)),
            ("chain", raw.chain.as_ref().and_then(|chain| chain.first()).map(Spanned::span)),
        ];
        let foreign = if is_store { &log[..] } else { &store[..] };
        if let Some((key, at)) = foreign.iter().find_map(|(key, at)| Some((*key, at.clone()?))) {
            return Err(self.error(
                format!("`{key}` is nothing that `{}` is told", raw.name.get_ref()),
                "leave it out",
                at,
            ));
        }
        let needed = |key: &str, given: &Option<Spanned<toml::Value>>, example: &str| {
            given.clone().ok_or_else(|| {
                self.error(
                    format!("[application] does not say `{key}`, which `{}` needs", raw.name.get_ref()),
                    format!("add `{key} = \"{example}\"`"),
                    raw.name.span(),
                )
            })
        };
        let tell = |read: &Read| self.told.borrow_mut().extend(read.rests_on.iter().cloned());
        let times: RefCell<BTreeMap<&'static str, Named>> = RefCell::default();
        let time = |key: &'static str, given: &Option<Spanned<toml::Value>>| {
            let (time, read) = self.time(&format!("application.{key}"), &needed(key, given, "80 ns")?)?;
            tell(&read);
            times.borrow_mut().insert(key, Named { dimension: Dimension::Time, read });
            Ok::<_, miette::Report>(time)
        };
        let object = |given: &Option<Spanned<String>>| match given {
            Some(name) if !objects.contains_key(name.get_ref()) => Err(self.unknown_object(name)),
            given => Ok(given.as_ref().map(|name| name.get_ref().clone())),
        };
        let rate = |key: &str, given: &Option<Spanned<toml::Value>>| -> Result<u64, miette::Report> {
            let Some(given) = given else { return Ok(0) };
            let (rate, read) = self.rate(&format!("application.{key}"), given)?;
            tell(&read);
            match rate / 8 {
                0 => Err(self.error(
                    "the rate is less than a byte a second",
                    "write what one core does, or leave it out",
                    given.span(),
                )),
                bytes => Ok(bytes),
            }
        };
        let engine = raw.engine.as_ref().map(|engine| engine.get_ref().clone());
        if is_store {
            let given = needed("value", &raw.value, "record")?;
            let (value, read) = self.bytes("application.value", &given)?;
            tell(&read);
            if value > LONGEST_VALUE {
                return Err(self.error(
                    format!("`value` is {value}; the store keeps values of up to {LONGEST_VALUE}"),
                    "lower `fieldlength` or `fieldcount` of the workload, or name the bytes of a value",
                    given.span(),
                ));
            }
            let store = Application::Store(Store {
                value,
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
            });
            return Ok((Some(store), times.into_inner()));
        }
        let given = needed("ratio", &raw.ratio, "ratio")?;
        let read = self.number("application.ratio", &given, Dimension::Ratio)?;
        tell(&read);
        let ratio = read.base;
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
        let given = needed("chunk", &raw.chunk, "chunk")?;
        let (chunk, read) = self.bytes("application.chunk", &given)?;
        tell(&read);
        // The log names the length of a chunk in 29 bits, and following its code needs one in memory.
        if !(Bytes::new(1)..=Bytes::new(1 << 29)).contains(&chunk) {
            return Err(self.error(
                format!("`chunk` is {chunk}; it has to be from 1 B to {}", Bytes::new(1 << 29)),
                "name the bytes of the log that go at once",
                given.span(),
            ));
        }
        let log = Application::Log(Log {
            chunk,
            ratio,
            chain,
            engine,
            costs: LogCosts {
                compress_bytes_per_second: rate("compress", &raw.compress)?,
                file_bytes_per_second: rate("append", &raw.append)?,
                // Waiting for a disk takes no station's time, and plans assume memory that survives.
                sync: Time::ZERO,
            },
        });
        Ok((Some(log), BTreeMap::new()))
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
        let hit_ratio = self.hits(context).base;
        Ok(Some(Code { kind: *kind, hit_ratio, span: given.span() }))
    }

    /// The share of an alternative's requests that find what they read in the cache.
    fn hits(&self, context: &Context<'_>) -> Read {
        self.asked_hits.set(true);
        context.hit_ratio.clone().or_else(|| self.hit_ratio.clone()).unwrap_or_default()
    }

    fn unknown_object(&self, name: &Spanned<String>) -> miette::Report {
        let known: Vec<&str> = self.file.raw.object.keys().map(String::as_str).collect();
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
        let all = &self.file.raw.alternative;
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
            if name.trim().is_empty() {
                return Err(self.error(
                    "an alternative has an empty name",
                    "name it, as in `name = \"A1\"`: answers call it so",
                    given.name.span(),
                ));
            }
            if [BEST, GREEDY].contains(&name.as_str()) {
                return Err(self.error(
                    format!("an alternative is named `{name}`, as a mix is that every plan has"),
                    "give it another name",
                    given.name.span(),
                ));
            }
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
            // Steps that another alternative lends are still where they were written.
            let from = format!("alternative.{}", base.name.get_ref());
            let hit_ratio = given
                .hit_ratio
                .as_ref()
                .map(|ratio| self.share("hit_ratio", &format!("alternative.{name}.hit_ratio"), ratio));
            let context = Context { objects, hit_ratio: hit_ratio.transpose()? };
            self.asked_hits.set(false);
            let mut operations = Vec::new();
            if let Some(steps) = &base.request {
                operations.push((
                    "request".to_string(),
                    1.0,
                    self.steps(steps, &context, &format!("{from}.request"))?,
                ));
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
                    let id = format!("{from}.{}", operation.name());
                    operations.push((operation.name().to_string(), share, self.steps(steps, &context, &id)?));
                }
            } else {
                return Err(self.error(
                    format!("alternative `{name}` has no steps"),
                    "add `request = [ ... ]`, or a [workload] and steps for its operations",
                    given.name.span(),
                ));
            }
            if let Some(steps) = given.background.as_ref().or(base.background.as_ref()) {
                let own = if given.background.is_some() { &name } else { base.name.get_ref() };
                let read = self.steps(steps, &context, &format!("alternative.{own}.background"))?;
                let span = steps.first().map_or(given.name.span(), Spanned::span);
                for (_, _, list) in &mut operations {
                    list.push(Step::Background { steps: read.clone(), span: span.clone() });
                }
            }
            if let Some(ratio) = given.hit_ratio.as_ref().filter(|_| !self.asked_hits.get()) {
                return Err(self.error(
                    format!("no step of `{name}` asks the cache, so that its `hit_ratio` has no effect"),
                    "write `{ cached = \"OBJECT\", hit = [ ... ], miss = [ ... ] }` where hits and misses part, or leave it out",
                    ratio.span(),
                ));
            }
            let mixable = given.mixed.unwrap_or(given.like.is_none()) && given.device.is_none();
            read.push(Alternative {
                name,
                description: given.description.clone(),
                device: given
                    .device
                    .as_ref()
                    .map(|name| self.file.device(name))
                    .or_else(|| base.device.clone()),
                mixed: mixable,
                mixable,
                scenario: given.scenario.as_ref().map(|name| name.get_ref().clone()),
                rows: self.cited(&given.rows, given.name.get_ref()),
                code: self.code(given.code.as_ref().or(base.code.as_ref()), application, &context)?,
                operations,
                span: given.name.span(),
            });
        }
        Ok(read)
    }

    /// The rows that an alternative cites, each with why it is no evidence of it, where it is none.
    fn cited(&self, rows: &[String], alternative: &str) -> Vec<(String, Option<&'static str>)> {
        let raw = self.file.raw.workload.as_ref();
        let is_own_workload = raw.zip(self.file.workload.as_ref()).is_some_and(|(raw, workload)| {
            !is_shipped_workload(raw.ycsb.get_ref(), overrides_of(raw), workload)
        });
        let is_given = !self.is_changed && !is_own_workload;
        let text = is_given.then_some(self.file.text.as_str());
        let given = Given { design: &self.file.raw.design.name, text, alternative };
        rows.iter().map(|row| (row.clone(), given.objection(row))).collect()
    }

    /// The steps of the list that stands at `id`.
    fn steps(
        &self,
        steps: &[Spanned<RawStep>],
        context: &Context<'_>,
        id: &str,
    ) -> Result<Vec<Step>, miette::Report> {
        let numbered = steps.iter().enumerate();
        numbered.map(|(index, step)| self.step(step, context, &format!("{id}.{}", index + 1))).collect()
    }

    fn step(
        &self,
        spanned: &Spanned<RawStep>,
        context: &Context<'_>,
        id: &str,
    ) -> Result<Step, miette::Report> {
        let step = spanned.get_ref();
        let verbs =
            [&step.read, &step.write, &step.send, &step.send_ud, &step.compare_and_swap, &step.fetch_and_add];
        let kinds = verbs.iter().filter(|path| path.is_some()).count()
            + usize::from(step.compute.is_some())
            + usize::from(step.wait.is_some())
            + usize::from(step.background.is_some())
            + usize::from(step.repeat.is_some())
            + usize::from(step.parallel.is_some())
            + usize::from(step.cached.is_some())
            + usize::from(step.probability.is_some());
        if kinds != 1 {
            return Err(self.error(
                format!("a step does one thing, and this one names {kinds}"),
                "use one of read, write, send, send-ud, compare-and-swap, fetch-and-add, compute, wait, repeat, parallel, cached, probability, background",
                spanned.span(),
            ));
        }
        self.foreign_keys(spanned)?;
        for (verb, path) in VERBS.into_iter().zip(verbs) {
            let Some(path) = path else { continue };
            let (bytes, read) = match &step.bytes {
                Some(bytes) => self.bytes(&format!("{id}.bytes"), bytes)?,
                None if verb.is_atomic() => (Bytes::new(8), Read::default()),
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
            let mut batch = 1;
            if let Some(given) = &step.batch {
                batch = self.whole("batch", &format!("{id}.batch"), given, u32::MAX.into())?.0 as u32;
                if batch as usize > SEND_QUEUE {
                    return Err(self.error(
                        format!(
                            "a batch of {batch} on `{}`: the send queue of a connection holds {SEND_QUEUE}",
                            path.get_ref()
                        ),
                        "post them in smaller batches",
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
            let mut to = 1;
            if let Some(given) = &step.to {
                to = self.whole("to", &format!("{id}.to"), given, MOST_MACHINES)?.0 as u32;
                if to > 1 && path.get_ref().split('-').count() > 2 {
                    return Err(self.error(
                        format!("`to` on `{}`: a copy engine moves bytes within one machine", path.get_ref()),
                        "leave `to` out, or use a path to another machine",
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
                to,
                signals: Signals::default(),
                rests_on: read.rests_on,
                span: path.span(),
            });
        }
        if let Some(at) = &step.compute {
            let (time, rests_on) = match (&step.time, &step.bytes, &step.rate) {
                (Some(time), None, None) => {
                    let (time, read) = self.time(&format!("{id}.time"), time)?;
                    (time, read.shares(1.0))
                }
                (None, Some(bytes), Some(given)) => {
                    let (rate, read) = self.rate(&format!("{id}.rate"), given)?;
                    let (bytes, size) = self.bytes(&format!("{id}.bytes"), bytes)?;
                    let ps = bytes.get() as f64 * 8e12 / rate as f64;
                    let time = Time::from_ps(ps.ceil() as u64);
                    let rests_on = size.shares(1.0).into_iter().chain(read.shares(-1.0)).collect();
                    (self.within_reason(time, given.span())?, rests_on)
                }
                _ => {
                    return Err(self.error(
                        format!("compute at `{}` needs `time`, or `bytes` and `rate`", at.get_ref()),
                        "as in `time = \"80 ns\"`, or `bytes = \"chunk\", rate = \"500 MB/s\"` of one core",
                        spanned.span(),
                    ));
                }
            };
            return Ok(Step::Compute { at: at.get_ref().clone(), time, rests_on, span: at.span() });
        }
        if let Some(wait) = &step.wait {
            let (time, read) = self.time(&format!("{id}.wait"), wait)?;
            return Ok(Step::Wait { time, rests_on: read.shares(1.0), span: wait.span() });
        }
        if let Some(steps) = &step.background {
            let steps = self.steps(steps, context, &format!("{id}.background"))?;
            return Ok(Step::Background { steps, span: spanned.span() });
        }
        if let Some(times) = &step.repeat {
            let steps = self.required(&step.steps, "steps", spanned)?;
            if steps.is_empty() {
                return Err(self.error(
                    "a repeat of 0 steps does nothing",
                    "write at least one step in `steps`",
                    times.span(),
                ));
            }
            let (count, read) = self.whole("repeat", &format!("{id}.repeat"), times, u64::MAX)?;
            return Ok(Step::Repeat {
                times: count,
                steps: self.steps(steps, context, &format!("{id}.steps"))?,
                rests_on: read.rests_on,
                span: times.span(),
            });
        }
        if let Some(branches) = &step.parallel {
            if branches.len() > SEND_QUEUE {
                return Err(self.error(
                    format!(
                        "{} branches begin at once, and the send queue of a connection holds {SEND_QUEUE}",
                        branches.len()
                    ),
                    "let several `parallel` steps follow each other, or let one step of more bytes stand for many alike",
                    spanned.span(),
                ));
            }
            let numbered = branches.iter().enumerate();
            let read: Result<Vec<_>, _> = numbered
                .map(|(index, steps)| self.steps(steps, context, &format!("{id}.parallel.{}", index + 1)))
                .collect();
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
            let list = |steps, key: &str| {
                self.steps(self.required(steps, key, spanned)?, context, &format!("{id}.{key}"))
            };
            let (then, otherwise) = (list(&step.hit, "hit")?, list(&step.miss, "miss")?);
            let Read { base: probability, rests_on } = self.hits(context);
            return Ok(Step::Branch { probability, then, otherwise, rests_on });
        }
        let probability = step.probability.as_ref().expect("the only kind left");
        let Read { base: probability, rests_on } =
            self.share("probability", &format!("{id}.probability"), probability)?;
        let list = |steps, key: &str| {
            self.steps(self.required(steps, key, spanned)?, context, &format!("{id}.{key}"))
        };
        let (then, otherwise) = (list(&step.then, "then")?, list(&step.otherwise, "otherwise")?);
        Ok(Step::Branch { probability, then, otherwise, rests_on })
    }

    /// Refuses keys that belong to another kind of step: they would be ignored.
    fn foreign_keys(&self, spanned: &Spanned<RawStep>) -> Result<(), miette::Report> {
        let step = spanned.get_ref();
        let kinds: [(&str, bool, &[&str]); 13] = [
            ("read", step.read.is_some(), &VERB_KEYS),
            ("write", step.write.is_some(), &VERB_KEYS),
            ("send", step.send.is_some(), &VERB_KEYS),
            ("send-ud", step.send_ud.is_some(), &VERB_KEYS),
            ("compare-and-swap", step.compare_and_swap.is_some(), &ATOMIC_KEYS),
            ("fetch-and-add", step.fetch_and_add.is_some(), &ATOMIC_KEYS),
            ("compute", step.compute.is_some(), &["time", "bytes", "rate"]),
            ("wait", step.wait.is_some(), &[]),
            ("background", step.background.is_some(), &[]),
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
            ("to", span(&step.to)),
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
                format!("a `{kind}` step takes no `{key}`"),
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
    hit_ratio: Option<Read>,
}

/// What a design says that its author may not have meant.
fn notes(alternatives: &[Alternative]) -> Vec<String> {
    fn longest<'s>(steps: &'s [Step], found: &mut BTreeMap<&'s str, Time>) {
        for step in steps {
            match step {
                Step::Compute { at, time, .. } if *time >= LONG_COMPUTE => {
                    let most = found.entry(at.as_str()).or_default();
                    *most = (*most).max(*time);
                }
                Step::Verb { .. } | Step::Compute { .. } | Step::Wait { .. } => {}
                Step::Repeat { steps, .. } | Step::Background { steps, .. } => longest(steps, found),
                Step::Parallel(lists) => lists.iter().for_each(|steps| longest(steps, found)),
                Step::Branch { then, otherwise, .. } => {
                    longest(then, found);
                    longest(otherwise, found);
                }
            }
        }
    }
    fn waits(steps: &[Step]) -> bool {
        steps.iter().any(|step| match step {
            Step::Wait { .. } => true,
            Step::Verb { .. } | Step::Compute { .. } => false,
            Step::Repeat { steps, .. } | Step::Background { steps, .. } => waits(steps),
            Step::Parallel(lists) => lists.iter().any(|steps| waits(steps)),
            Step::Branch { then, otherwise, .. } => waits(then) || waits(otherwise),
        })
    }
    let waiting = alternatives.iter().filter(|one| one.operations.iter().any(|(_, _, steps)| waits(steps)));
    let waiting: Vec<String> = waiting.map(|one| format!("`{}`", one.name)).collect();
    let unlimited = (!waiting.is_empty()).then(|| {
        format!(
            "what {} {} for is taken to serve any number of requests at once: no rate here is bound by it",
            waiting.join(" and "),
            if waiting.len() == 1 { "waits" } else { "wait" }
        )
    });
    let mut found = BTreeMap::new();
    alternatives.iter().flat_map(|one| &one.operations).for_each(|(_, _, steps)| longest(steps, &mut found));
    let note = |(at, time): (&str, Time)| {
        format!(
            "a `compute` of {time} keeps a core of `{at}` busy all that time; time of a device is a `wait`"
        )
    };
    let cited = alternatives.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
    let strange = cited.filter_map(|(one, (row, objection))| {
        let why = (*objection)?;
        Some(format!("`rows` of `{}`: {row} {why}, so it is no evidence of this alternative", one.name))
    });
    strange.chain(unlimited).chain(found.into_iter().map(note)).collect()
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
        let many = |branches| format!("{{ parallel = [{}] }}", format!("[{WRITE}],").repeat(branches));
        parse(&text("", "", &many(128), ""), &[]).expect("a send queue holds as many");
        let many = many(129);
        for (steps, words) in [
            (r#"{ write = "host-backup", bytes = "1 B", time = "5 ns" }"#, "a `write` step takes no `time`"),
            (r#"{ read = "host-backup", bytes = "1 B", hit = [] }"#, "a `read` step takes no `hit`"),
            (r#"{ compute = "host", time = "5 ns", batch = 2 }"#, "a `compute` step takes no `batch`"),
            (many.as_str(), "129 branches begin at once"),
            (r#"{ parallel = [], steps = [] }"#, "a `parallel` step takes no `steps`"),
            (
                r#"{ fetch-and-add = "host-backup", bytes = "1 B" }"#,
                "a `fetch-and-add` step takes no `bytes`",
            ),
            (r#"{ read = "soc-host-dma", bytes = "1 B", batch = 2 }"#, "a copy engine has no doorbell"),
            (r#"{ repeat = 3000000000, steps = [] }"#, "a repeat of 0 steps"),
            (
                r#"{ probability = "0.2 to 1.4", then = [], otherwise = [] }"#,
                "a probability of 1.4 is outside 0 to 1",
            ),
            (
                r#"{ probability = "2 * likely", then = [], otherwise = [] }"#,
                "a probability of 1.2 is outside 0 to 1",
            ),
        ] {
            let likely = "likely = \"0.2 to 0.6\"";
            let error = parse(&text("", likely, steps, ""), &[]).expect_err(steps).to_string();
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
            ("", "", "[sweep]\nparameter = \"chunk\"\nvalues = []", "the sweep of `chunk` has no values"),
            (
                "",
                "",
                "[sweep]\nparameter = \"ratio\"\nvalues = [1]",
                "nothing of this design is said by `ratio`",
            ),
            (
                "",
                "",
                "[[alternative]]\nname = \"b\"\nlike = \"a\"\nhit_ratio = 0.5",
                "no step of `b` asks the cache",
            ),
            ("", "", "[[alternative]]\nname = \" \"\nlike = \"a\"", "an alternative has an empty name"),
            ("", "", "[[alternative]]\nname = \"greedy\"\nlike = \"a\"", "named `greedy`, as a mix is"),
            ("", "", many.as_str(), "201 alternatives"),
            ("", "", "[[mix]]\nname = \"none\"\nfill = []", "mix `none` fills nothing"),
        ] {
            let error = parse(&text(design, parameters, WRITE, more), &[]).expect_err(words).to_string();
            assert!(error.contains(words), "{words}: {error}");
        }
    }

    #[test]
    fn a_load_that_changes_nothing_is_told() {
        let design =
            parse(&text("offered_load = \"1 M/s\"", "", WRITE, ""), &[]).expect("it may be for `--goal`");
        assert!(
            design.warnings[0].contains("has no effect on the goal `most-throughput`"),
            "{:?}",
            design.warnings
        );
        assert!(parse(&text("", "", WRITE, ""), &[]).expect("in order").warnings.is_empty());
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
