//! Design files: a system to plan, as its author writes it.
//!
//! The file is TOML. Every mistake is reported with the file, the place, what is accepted and what
//! to do next; nothing that matters has a default.

mod application;
mod choose;
mod file;
mod numbers;
mod objects;
mod resolve;
mod steps;

pub use choose::{OpenChoice, TakenChoice};

use crate::estimate::{Estimate, Share, noun};
use crate::implemented::{Application, Systems};
use file::{Parsed, RawFile};
use miette::{NamedSource, SourceSpan};
use offpath_profile::System;
use offpath_quantity::{Bytes, Dimension, Quantity, Time};
use offpath_workload::Popularity;
use resolve::{OBJECTIVES, RANKS};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use steps::notes;

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

/// How the two sides of a verb hear of it, beside what every verb does. Of step lists `unawaited` alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// 32 bits go with it: a WRITE hands the request to its responder, and a message may be empty.
    pub immediate: bool,
    /// The sender of a message polls for its completion; otherwise one poll in 64 frees all slots.
    pub polled: bool,
    /// The request goes on once its processor has posted it, and is over when this is too.
    pub unawaited: bool,
}

/// What computing costs a core.
#[derive(Clone, Debug, PartialEq)]
pub enum ComputeCost {
    /// So long.
    Time(Time),
    /// So long on a processor: on another of its machine as much as that is slower or faster.
    On {
        /// The processor.
        processor: String,
        /// How long on it.
        time: Time,
    },
    /// What a kind of work costs there.
    Work {
        /// The kind, as profiles call it.
        work: String,
        /// How much of it: bytes, or operations.
        amount: f64,
        /// Whether `amount` is bytes.
        in_bytes: bool,
    },
}

impl ComputeCost {
    /// The time that the design itself says, on whichever processor.
    pub(crate) fn said(&self) -> Option<Time> {
        match self {
            ComputeCost::Time(time) | ComputeCost::On { time, .. } => Some(*time),
            ComputeCost::Work { .. } => None,
        }
    }

    /// So many times as much.
    fn scaled(&self, factor: f64) -> ComputeCost {
        let mut scaled = self.clone();
        match &mut scaled {
            ComputeCost::Time(time) | ComputeCost::On { time, .. } => *time = time.scaled(factor),
            ComputeCost::Work { amount, .. } => *amount *= factor,
        }
        scaled
    }
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
        /// The bytes that a NIC wrote there last and among which it lies, where it says how many.
        arrived: Option<Bytes>,
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
        /// What it costs.
        cost: ComputeCost,
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
    /// Whether it would, were the device that it runs on the design's.
    mixable_there: bool,
    /// Evidence rows that its author says measured it, each with why it did not, where it did not.
    pub rows: Vec<(String, Option<&'static str>)>,
    /// The steps by operation of the workload, with the operation's share.
    pub operations: Vec<(String, f64, Vec<Step>)>,
    /// What it is called in the application, whose demands then take the place of the steps'.
    pub code: Option<Code>,
    /// Whether a step of it asks the design's cache.
    pub asks_cache: bool,
    /// What the file calls it; others have the same where it leaves choices open.
    pub family: String,
    /// The value that it takes of each choice that the file leaves open.
    pub choices: Vec<TakenChoice>,
    /// Where it stands in the file.
    pub span: Range<usize>,
}

impl Alternative {
    /// Makes it one of the design's own where the design is planned for the device that it runs on.
    pub(crate) fn comes_home(&mut self, device: &str) {
        if self.device.as_deref() == Some(device) {
            self.device = None;
            self.mixable = self.mixable_there;
            self.mixed = self.mixable_there;
        }
    }

    /// Whether mixes of its scenario may use it.
    pub(crate) fn mixable(&self) -> bool {
        self.mixable
    }

    /// The doorbell lists that its requests post into: how many each takes, and how many posts a request adds to it in the
    /// mean.
    pub fn lists(&self) -> Vec<(u32, f64)> {
        fn of(steps: &[Step], times: f64, lists: &mut Vec<(u32, f64)>) {
            for step in steps {
                match step {
                    Step::Verb { batch, .. } if *batch > 1 => lists.push((*batch, times)),
                    Step::Verb { .. } | Step::Compute { .. } | Step::Wait { .. } => {}
                    Step::Background { steps, .. } => of(steps, times, lists),
                    Step::Repeat { times: count, steps, .. } => of(steps, times * *count as f64, lists),
                    Step::Parallel(each) => each.iter().for_each(|steps| of(steps, times, lists)),
                    Step::Branch { probability, then, otherwise, .. } => {
                        of(then, times * probability, lists);
                        of(otherwise, times * (1.0 - probability), lists);
                    }
                }
            }
        }
        let mut lists = Vec::new();
        self.operations.iter().for_each(|(_, share, steps)| of(steps, *share, &mut lists));
        lists
    }

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
                    Step::Compute { cost, rests_on, .. } => {
                        *cost = cost.scaled(factor_of(rests_on, ratios));
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

/// An alternative of an application.
#[derive(Clone, Debug, PartialEq)]
pub struct Code {
    /// Its label there.
    pub alternative: &'static str,
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
/// What a field that is unknown was meant to be, by the parser's words, which quote it and then all that it expects.
fn meant(message: &str) -> String {
    let mut quoted = message.split('`').skip(1).step_by(2);
    match quoted.next().filter(|_| message.starts_with("unknown field")) {
        Some(unknown) => offpath_profile::did_you_mean(unknown, &quoted.collect::<Vec<_>>()),
        None => String::new(),
    }
}

/// The next step where a key or its form is wrong.
const MORE_HELP: &str = "see `offpath new` for a commented design with every key";
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
    /// Where it stands in the file.
    pub(crate) mode_at: Option<Range<usize>>,
    /// Numbers of the system that this design changes, as `--set` writes them: what of a machine its
    /// programs use.
    pub set: Vec<String>,
    /// The numbers of the system that a choice decides by a setting. They are exact: the plan asks what each value gives.
    pub chosen_sets: BTreeSet<String>,
    /// Where each of them stands in the file.
    pub(crate) set_at: Vec<Range<usize>>,
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
    /// The choices that the file leaves open: first those of the whole deployment, then those of each alternative, in its
    /// order.
    pub choices: Vec<OpenChoice>,
    /// What these make and nothing runs, each with the reason.
    pub impossible: Vec<(String, String)>,
    /// The alternatives.
    pub alternatives: Vec<Alternative>,
    /// The application that alternatives are observed from, where there is one.
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
    /// Where the file gives it.
    pub(crate) host_cpu_share_at: Option<Range<usize>>,
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
    /// Numbers of clients for the closed-loop table, each with one request in flight.
    pub clients: Vec<u32>,
    /// Published ratios over those numbers of clients.
    pub published: Vec<PublishedRatio>,
    /// The text and name of the file, for errors found later.
    pub source: (String, String),
    /// The numbers that the file gives, in its order.
    estimates: Vec<Estimate>,
    /// Those that the application is told.
    told: BTreeSet<Arc<str>>,
    /// The alternatives that it was narrowed to, where it was.
    pub(crate) only: Option<BTreeSet<String>>,
    /// The file as it was read, from which it is resolved again with other numbers.
    file: Arc<Parsed>,
}

/// A published ratio of throughputs over the client counts, to stand beside the twin's.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedRatio {
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

/// What a user changes in a design from the command line.
#[derive(Clone, Debug, Default)]
pub struct Changes {
    /// Parameters by name, their values as the file writes them: a plain number, or bytes with a
    /// unit where the parameter is a size.
    pub parameters: BTreeMap<String, String>,
    /// Another YCSB file. What it gives stands, and `[workload] set` gives the rest.
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
    /// Whether to plan from the step lists where the design names an application.
    pub steps: bool,
    /// The scenario to plan, where the design has several.
    pub scenario: Option<String>,
    /// The alternatives to plan, where not all are: those that a device can run, or that a search has found worth it.
    pub only: Option<BTreeSet<String>>,
    /// The systems whose code it may name.
    pub systems: Systems,
}

/// The number that a setting is of.
pub(crate) fn set_number(setting: &str) -> &str {
    setting.split_once('=').map_or(setting, |(number, _)| number).trim()
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

    /// Checks what only the design's own system can tell: that the host's share is a core of it at least, that the cache
    /// lies at one of its endpoints, and that the budget fits that endpoint's memory.
    pub fn check_against(&self, system: &System) -> Result<(), miette::Report> {
        let error = |message, help, at: &Range<usize>| {
            miette::Report::from(DesignError {
                message,
                help: Some(help),
                source_code: NamedSource::new(&self.source.0, self.source.1.clone()),
                at: Some(at.clone().into()),
            })
        };
        if let (Some(share), Some(at), Some((_, cores))) =
            (self.host_cpu_share, &self.host_cpu_share_at, system.open_host_threads())
            && share * (cores as f64) < 1.0 - System::WHOLE
        {
            return Err(error(
                format!("host_cpu_share is {share}, less than one of the host's {cores} cores"),
                format!(
                    "requests run on whole cores: write at least {:.4} for one of them, or 0 for none",
                    1.0 / cores as f64
                ),
                at,
            ));
        }
        let Some(cache) = &self.cache else { return Ok(()) };
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

    /// The base unit of a parameter; none for a plain number.
    pub fn parameter_unit(&self, name: &str) -> Option<&'static str> {
        Some(self.dimensions.get(name)?.units().first()?.0)
    }

    /// A parameter's value as [`Changes::parameters`] takes it, with its base unit.
    pub fn parameter_text(&self, name: &str, value: f64) -> String {
        match self.parameter_unit(name) {
            Some(unit) => format!("{value} {unit}"),
            None => value.to_string(),
        }
    }

    /// A parameter's value as a reader takes it, in the unit that suits it.
    pub fn parameter_label(&self, name: &str, value: f64) -> String {
        let quantity = self.dimensions.get(name).and_then(|dimension| Quantity::from_base(value, *dimension));
        quantity.map_or_else(|| value.to_string(), |quantity| quantity.to_string())
    }

    /// The numbers that the file gives, in its order. Each is an estimate of its author, whether it has
    /// an interval or not.
    pub fn estimates(&self) -> &[Estimate] {
        &self.estimates
    }

    /// The estimates that the application is told: where one of them moves, alternatives with code
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
        let design = Parsed::resolve(&self.file, moved, self.only.as_ref())?;
        let design = match &self.scenario {
            Some(scenario) => design.in_scenario(scenario)?,
            None => design,
        };
        Ok(design.narrowed(self.only.as_ref()))
    }

    /// A choice of the whole deployment that has more than one value left: its alternatives are not to be mixed.
    pub(crate) fn open_for_all(&self) -> Option<&OpenChoice> {
        self.choices.iter().find(|choice| choice.of.is_none() && choice.values.len() > 1)
    }

    /// The design with another goal, and without the mixes that it names.
    pub(crate) fn seeking(&self, objective: Objective) -> Design {
        let mut design = self.clone();
        design.objective = objective;
        design.mixes.clear();
        design
    }

    /// Whether the design itself sets a number: that belongs to its system.
    pub(crate) fn sets(&self, number: &str) -> bool {
        self.set.iter().any(|setting| set_number(setting) == number)
    }

    /// The design with these of its alternatives alone: what a device cannot run, or a search has passed over, is left out.
    pub(crate) fn with_only(&self, only: &BTreeSet<String>) -> Design {
        self.clone().narrowed(Some(only))
    }

    /// The design with some of its alternatives alone, and the mixes and published ratios that these make up. Where none
    /// of them asks the cache, it has none.
    fn narrowed(self, only: Option<&BTreeSet<String>>) -> Design {
        let Some(only) = only else { return self };
        let mut design = self;
        design.only = Some(only.clone());
        design.alternatives.retain(|one| only.contains(&one.name));
        design.keep_what_is_made_up();
        if !design.alternatives.iter().any(|one| one.asks_cache) {
            design.cache = None;
        }
        design
    }

    /// Drops mixes, published ratios and a mix that is run where an alternative of theirs is gone.
    fn keep_what_is_made_up(&mut self) {
        let kept: BTreeSet<&str> = self.alternatives.iter().map(|one| one.name.as_str()).collect();
        self.mixes.retain(|mix| mix.fill.iter().all(|one| kept.contains(one.as_str())));
        let mixes = self.mixes.iter().map(|mix| mix.name.as_str());
        let kept: BTreeSet<&str> = kept.into_iter().chain(mixes).collect();
        self.published.retain(|one| kept.contains(one.of.as_str()) && kept.contains(one.over.as_str()));
        // What another set of alternatives runs, this one does not.
        if !matches!(self.runs, Runs::Best | Runs::Greedy) && !kept.contains(self.runs.name()) {
            self.runs = Runs::Best;
        }
        self.notes = notes(&self.alternatives);
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
        design.keep_what_is_made_up();
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

    /// The same design with these changes and no others. The file is not read again: it may be a pipe, and what is
    /// told of one plan is of one text.
    pub fn changed(&self, changes: &Changes) -> Result<Design, miette::Report> {
        Design::parse(&self.source.1, &self.source.0, self.directory(), changes)
    }

    /// From where its workload files are found.
    pub fn directory(&self) -> &Path {
        &self.file.directory
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
            let values = [("rank_by", RANKS), ("objective", OBJECTIVES)];
            let missing = values.iter().find(|(key, _)| error.message() == format!("missing field `{key}`"));
            let help = match missing {
                Some((key, values)) => format!("{key}: {values}; {MORE_HELP}"),
                None => format!("{}{MORE_HELP}", meant(error.message())),
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
            workload_set: BTreeMap::new(),
            popularity: None,
            directory: directory.to_path_buf(),
            changes: changes.clone(),
        };
        parsed.read_workload(directory)?;
        // The popularity of millions of records takes longer than everything else here.
        if !parsed.raw.object.is_empty() || parsed.raw.cache.is_some() {
            parsed.popularity = parsed.workload.as_ref().map(Popularity::shared);
        }
        let design = Parsed::resolve(&Arc::new(parsed), &BTreeMap::new(), changes.only.as_ref())?;
        let design = match &changes.scenario {
            Some(scenario) => design.in_scenario(scenario)?,
            None => design,
        };
        Ok(design.narrowed(changes.only.as_ref()))
    }
}

/// Computing that takes longer is likely to be waiting for a device.
pub const LONG_COMPUTE: Time = Time::from_us(5);
/// Longer than any request, and short enough for any number of them to be simulated.
pub(crate) const LONGEST: Time = Time::from_ms(60_000);

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
            (r#"{ copy = "soc-dma", bytes = "1 B", batch = 2 }"#, "a `copy` step takes no `batch`"),
            (r#"{ load = "soc-soc", bytes = "1 B", to = 2 }"#, "a `load` step takes no `to`"),
            (r#"{ repeat = 3000000000, steps = [] }"#, "a repeat of 0 steps"),
            (
                r#"{ repeat = 0, steps = [ { wait = "1 us" } ] }"#,
                "`repeat` is 0; it has to be a whole number of 1 or more",
            ),
            (
                r#"{ probability = "0.2 to 1.4", then = [], otherwise = [] }"#,
                "a probability of 1.4, the high end of its interval, is outside 0 to 1",
            ),
            (
                r#"{ probability = "2 * likely", then = [], otherwise = [] }"#,
                "a probability of 1.2, the high end of its interval, is outside 0 to 1",
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
            ("", "record = \"5 B\"", "", "`record` is not a name for a parameter"),
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
            (
                "",
                "",
                "[[alternative]]\nname = \"b\"\nlike = \"a\"\nread = [{ read = \"client-mars\", bytes = \"1 B\" }]",
                "`b` is like `a` and has a `read` of its own",
            ),
            (
                "",
                "",
                "[[alternative]]\nname = \"b\"\nrequest = [{ read = \"client-host\", bytes = \"1 B\" }]\n\
                 scan = [{ read = \"client-host\", bytes = \"1 B\" }]",
                "nothing would carry out its `scan`",
            ),
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
        let silent = parse(&text("", "", WRITE, ""), &[]).expect("in order").warnings;
        assert!(silent.iter().all(|said| !said.contains("no effect")), "{silent:?}");
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
        assert_eq!(design.parameter_label("chunk", 65536.0), "64 KiB");
        assert_eq!(design.parameter_label("ratio", 0.5), "0.5");
    }
}
