//! From a file to a design: parameters, what is sought, what is published beside it.

use super::file::Parsed;
use super::steps::{names, notes};
use super::{Alternative, BEST, Changes, Design, GREEDY, NamedMix, Objective, PublishedRatio, Rank, Runs};
use crate::estimate::{Estimate, Share, Written, noun};
use crate::interpret::MOST_TASKS;
use offpath_quantity::{Dimension, OpRate, Quantity};
use offpath_workload::Workload;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use toml::Spanned;

/// Values of a sweep: each is a plan of its own, which takes a tenth of a second or more.
const MOST_SWEPT: usize = 256;

pub(super) struct Resolver<'t> {
    pub(super) file: &'t Arc<Parsed>,
    /// Estimates that have another value than the file gives.
    pub(super) moved: &'t BTreeMap<String, Quantity>,
    /// The alternatives that are wanted of those that choices make, where not all are.
    pub(super) only: Option<&'t BTreeSet<String>>,
    /// Those that choices would make, and that are not wanted.
    pub(super) passed_over: RefCell<BTreeSet<String>>,
    /// What choices make and nothing runs, each with the reason.
    pub(super) impossible: RefCell<Vec<(String, String)>>,
    /// The choices that some step mentions.
    pub(super) mentioned: RefCell<BTreeSet<String>>,
    /// What parameters, and the workload's record, stand for.
    pub(super) names: BTreeMap<String, Named>,
    /// Processor times of the application, which steps may name.
    pub(super) times: BTreeMap<&'static str, Named>,
    pub(super) estimates: RefCell<BTreeMap<Arc<str>, Estimate>>,
    /// Those that the application is told.
    pub(super) told: RefCell<BTreeSet<Arc<str>>>,
    /// Whether a parameter has another value than the file's.
    pub(super) is_changed: bool,
    /// The parameters that something is said by.
    pub(super) used: RefCell<BTreeSet<String>>,
    /// Whether anything asked which share of requests the cache answers.
    pub(super) asked_hits: Cell<bool>,
    /// Share of the requests that find what they read in the cache.
    pub(super) hit_ratio: Option<Read>,
    pub(super) cache_object: Option<String>,
}

/// What a name stands for.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) dimension: Dimension,
    pub(super) read: Read,
}

/// A number in its base unit, and the estimates that it is made of.
#[derive(Clone, Debug, Default)]
pub(super) struct Read {
    pub(super) base: f64,
    pub(super) rests_on: Vec<Arc<str>>,
}

impl Read {
    /// The estimates of a time that is in proportion to each, or in inverse proportion.
    pub(super) fn shares(&self, share: f64) -> Vec<Share> {
        self.rests_on.iter().map(|id| Share { id: id.clone(), share }).collect()
    }

    pub(super) fn and(mut self, other: &Read) -> Read {
        self.rests_on.extend(other.rests_on.iter().cloned());
        self
    }
}

/// The name that stands for the workload's mean record.
pub(super) const RECORD: &str = "record";
/// What a design may seek, and what a greedy mix is filled by, as messages list them.
pub(super) const OBJECTIVES: &str = "use `most-throughput`, `least-host-cpu` or `lowest-p99`";
pub(super) const RANKS: &str = "use `unloaded-latency`, `network-saved`, `throughput` or `host-cpu`";

impl Resolver<'_> {
    pub(super) fn error(
        &self,
        message: impl Into<String>,
        help: impl Into<String>,
        at: Range<usize>,
    ) -> miette::Report {
        self.file.error(message, help, at)
    }

    pub(super) fn resolve(mut self) -> Result<Design, miette::Report> {
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
        let (set, choices) = self.settings_and_choices()?;
        let passed_over = self.passed_over.take();
        for mix in &self.file.raw.mix {
            let name = mix.name.get_ref();
            if [BEST, GREEDY].contains(&name.as_str()) {
                return Err(self.error(
                    format!("a mix is named `{name}`, as one is that every plan has"),
                    "give it another name",
                    mix.name.span(),
                ));
            }
            if mix.fill.is_empty() {
                return Err(self.error(
                    format!("mix `{name}` fills nothing"),
                    format!("name the alternatives that it fills in order, of {}", names(&alternatives)),
                    mix.name.span(),
                ));
            }
            for (index, name) in mix.fill.iter().enumerate() {
                if mix.fill[..index].iter().any(|before| before.get_ref() == name.get_ref()) {
                    return Err(self.error(
                        format!("mix `{}` fills `{}` twice", mix.name.get_ref(), name.get_ref()),
                        "name each alternative once, in the order in which they are filled",
                        name.span(),
                    ));
                }
                let is_known = alternatives.iter().any(|a| a.name == *name.get_ref());
                if !is_known && !passed_over.contains(name.get_ref()) {
                    return Err(self.error(
                        format!(
                            "mix `{}` names `{}`, which is not an alternative",
                            mix.name.get_ref(),
                            name.get_ref()
                        ),
                        format!("use one of {}", names(&alternatives)),
                        name.span(),
                    ));
                }
            }
        }
        let alternatives_and_mixes: Vec<String> = alternatives
            .iter()
            .map(|one| one.name.clone())
            .chain(self.file.raw.mix.iter().map(|mix| mix.name.get_ref().clone()))
            .chain(passed_over.iter().cloned())
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
                    format!("`{other}` is not among what greedy ranks by"),
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
        let sweep = self.sweep(changes.only.is_none())?;
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
        let kept: Vec<String> = self.file.workload_set.keys().map(|key| format!("`{key}`")).collect();
        if let Some(file) = changes.workload.as_ref().filter(|_| !kept.is_empty()) {
            let (file, kept) = (file.display(), kept.join(", "));
            warnings
                .push(format!("`{file}` does not say {kept}, so that `[workload] set` of the design does"));
        }
        let unused = self.file.raw.parameters.keys().filter(|name| !self.used.borrow().contains(*name));
        warnings.extend(unused.map(|name| {
            format!("parameter `{name}` is written nowhere, so that no value of it changes the plan")
        }));
        let mut estimates: Vec<Estimate> = self.estimates.take().into_values().collect();
        estimates.sort_by_key(|one| one.span.start);
        let description = |workload: &Workload| {
            let own = Path::new(self.file.raw.workload.as_ref().map_or("", |w| w.ycsb.get_ref()));
            let name = changes
                .workload
                .as_deref()
                .unwrap_or(own)
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
            format!("YCSB {}: {}", name.unwrap_or_default(), workload.description())
        };
        let mut design = Design {
            scenarios,
            scenario: None,
            name: raw.name.clone(),
            description: raw.description.clone(),
            device: changes.device.clone().unwrap_or_else(|| self.file.device(&raw.device)),
            testbed: raw.testbed.clone(),
            mode: raw.mode.as_ref().map(|mode| mode.get_ref().clone()),
            mode_at: raw.mode.as_ref().map(Spanned::span),
            set,
            chosen_sets: self.chosen_sets(),
            choices,
            set_at: raw.set.iter().map(Spanned::span).collect(),
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
                    name: mix.name.get_ref().clone(),
                    fill: mix.fill.iter().map(|name| name.get_ref().clone()).collect(),
                })
                .collect(),
            runs: self.runs(&alternatives, changes, &passed_over)?,
            application: application.filter(|_| !changes.steps),
            is_varied: self.is_changed || changes.workload.is_some(),
            alternatives,
            objects,
            cache,
            host_cpu_share: constraints.host_cpu_share.as_ref().map(|share| *share.get_ref()),
            host_cpu_share_at: constraints.host_cpu_share.as_ref().map(Spanned::span),
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
            only: None,
            impossible: self.impossible.take(),
            file: file.clone(),
        };
        if !passed_over.is_empty() {
            design.keep_what_is_made_up();
        }
        Ok(design)
    }

    /// The names of the scenarios. Only the first is mixed until one is chosen; a mix or a published ratio
    /// that takes alternatives of two is refused.
    pub(super) fn scenarios(&self, alternatives: &mut [Alternative]) -> Result<Vec<String>, miette::Report> {
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
            two(&mut mix.fill.iter(), &format!("mix `{}`", mix.name.get_ref()))?;
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

    pub(super) fn objective(&self, changes: &Changes) -> Result<Objective, miette::Report> {
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
                format!("`{other}` is not an objective"),
                OBJECTIVES,
                raw.objective.span(),
            )),
        }
    }

    /// The mix that the system runs; the best one where nothing is said.
    pub(super) fn runs(
        &self,
        alternatives: &[Alternative],
        changes: &Changes,
        passed_over: &BTreeSet<String>,
    ) -> Result<Runs, miette::Report> {
        let given = &self.file.raw.design.mix;
        let Some(name) = changes.mix.as_deref().or(given.as_ref().map(|name| name.get_ref().as_str())) else {
            return Ok(Runs::Best);
        };
        if self.file.raw.mix.iter().any(|mix| mix.name.get_ref() == name) {
            return Ok(Runs::Mix(name.to_string()));
        }
        let alternative = alternatives.iter().find(|one| one.name == name);
        match (name, alternative) {
            (BEST, _) => return Ok(Runs::Best),
            (GREEDY, _) => return Ok(Runs::Greedy),
            (_, Some(one)) if one.device.is_none() => return Ok(Runs::Alternative(name.to_string())),
            _ if passed_over.contains(name) => return Ok(Runs::Best),
            _ => {}
        }
        let mixes: String =
            self.file.raw.mix.iter().map(|mix| format!("`{}`, ", mix.name.get_ref())).collect();
        let own: Vec<Alternative> = alternatives.iter().filter(|one| one.device.is_none()).cloned().collect();
        let message = match alternative {
            Some(_) => {
                format!("`{name}` runs on another device, and the system's mix is of the design's own")
            }
            None => format!("`{name}` is neither a mix nor an alternative of this design"),
        };
        let help = format!("use `{BEST}`, `{GREEDY}`, {mixes}or one of {}", names(&own));
        Err(match given.as_ref().filter(|_| changes.mix.is_none()) {
            Some(given) => self.error(message, help, given.span()),
            None => miette::miette!(help = help, "{message}"),
        })
    }

    pub(super) fn read_parameters(&mut self, changes: &Changes) -> Result<(), miette::Report> {
        for (name, value) in &self.file.raw.parameters {
            if name == RECORD {
                return Err(self.error(
                    format!("`{RECORD}` is not a name for a parameter: it stands for the workload's record"),
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
                let twice = Quantity::parse(example, dimension).ok();
                let twice = twice.and_then(|one| Quantity::from_base(2.0 * one.base(), dimension));
                let twice = twice.map_or_else(|| example.to_string(), |twice| twice.to_string());
                let given = Written::text(text, Some(dimension)).map_err(|(message, _)| {
                    miette::miette!(
                        help = format!(
                            "as in `{name}={example}`, or an interval as in `{name}={example} to {twice}`"
                        ),
                        "parameter `{name}` is {wanted}: {message}"
                    )
                })?;
                // What the file says already is not a change.
                self.is_changed |= given != written;
                written = given;
            }
            let read = self.estimated(&format!("parameters.{name}"), written, value.span());
            self.names.insert(name.clone(), Named { dimension, read });
        }
        let is_known = |name: &str| self.names.contains_key(name) || self.is_choice(name);
        if let Some(name) = changes.parameters.keys().find(|name| !is_known(name)) {
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

    /// The parameter to vary; its values are of the parameter's own kind. It says something of a design that is whole.
    pub(super) fn sweep(&self, is_whole: bool) -> Result<Option<(String, Vec<f64>)>, miette::Report> {
        let Some(sweep) = &self.file.raw.sweep else { return Ok(None) };
        let name = sweep.parameter.get_ref();
        let Some(named) = self.names.get(name).filter(|_| name != RECORD) else {
            let known: Vec<&str> = self.file.raw.parameters.keys().map(String::as_str).collect();
            return Err(self.error(
                format!("`{name}` is not a parameter of this design"),
                match known.is_empty() {
                    true => {
                        "the design has no `[parameters]`; name one there and use it in a step".to_string()
                    }
                    false => format!("name one from [parameters]: {}", known.join(", ")),
                },
                sweep.parameter.span(),
            ));
        };
        // What a search left out may be what it says something of.
        if is_whole && !self.used.borrow().contains(name) {
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
        if sweep.values.len() > MOST_SWEPT {
            return Err(self.error(
                format!(
                    "the sweep of `{name}` has {} values, and {MOST_SWEPT} at most are planned",
                    sweep.values.len()
                ),
                "each value is a plan of its own: give fewer here, and others in a second run",
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

    pub(super) fn published(&self, known: &[String]) -> Result<Vec<PublishedRatio>, miette::Report> {
        let given =
            self.file.raw.clients.as_ref().map(|clients| clients.published.as_slice()).unwrap_or_default();
        for name in given.iter().flat_map(|one| [&one.of, &one.over]) {
            if !known.contains(name.get_ref()) {
                return Err(self.error(
                    format!("`{}` is neither an alternative nor a mix of this design", name.get_ref()),
                    format!("use one of {}", known.join(", ")),
                    name.span(),
                ));
            }
        }
        Ok(given
            .iter()
            .map(|one| PublishedRatio {
                of: one.of.get_ref().clone(),
                over: one.over.get_ref().clone(),
                low: one.low,
                high: one.high,
                source: one.source.clone(),
            })
            .collect())
    }

    pub(super) fn clients(&self) -> Result<Vec<u32>, miette::Report> {
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
}
