//! What a design file holds, before its numbers are resolved.

use super::resolve::Resolver;
use super::{Changes, Design, DesignError};
use miette::NamedSource;
use offpath_quantity::Quantity;
use offpath_route::{VERBS, Verb};
use offpath_workload::{Popularity, Workload};
use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use toml::Spanned;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawFile {
    pub(super) design: RawDesign,
    pub(super) workload: Option<RawWorkload>,
    pub(super) application: Option<Spanned<RawApplication>>,
    #[serde(default)]
    pub(super) parameters: BTreeMap<String, Spanned<toml::Value>>,
    /// Choices that the whole deployment has one value of.
    #[serde(default)]
    pub(super) choose: BTreeMap<String, Spanned<RawChoice>>,
    #[serde(default)]
    pub(super) object: BTreeMap<String, Spanned<RawObject>>,
    pub(super) cache: Option<Spanned<RawCache>>,
    #[serde(default)]
    pub(super) constraints: RawConstraints,
    #[serde(default)]
    pub(super) alternative: Vec<Spanned<RawAlternative>>,
    #[serde(default)]
    pub(super) mix: Vec<RawMix>,
    pub(super) sweep: Option<RawSweep>,
    pub(super) clients: Option<RawClients>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawDesign {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) device: String,
    pub(super) testbed: Option<String>,
    pub(super) mode: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) set: Vec<Spanned<String>>,
    pub(super) objective: Spanned<String>,
    pub(super) offered_load: Option<Spanned<String>>,
    pub(super) rank_by: Spanned<String>,
    pub(super) unit: Option<Spanned<String>>,
    pub(super) network_baseline: Option<Spanned<String>>,
    pub(super) mix: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawWorkload {
    pub(super) ycsb: Spanned<String>,
    #[serde(default)]
    pub(super) set: BTreeMap<String, toml::Value>,
}

/// The values of a choice that is left open.
#[derive(Clone, Debug)]
pub(super) enum RawChoice {
    /// Each by itself.
    Listed(Vec<Spanned<toml::Value>>),
    /// As in `1..190`, which is read where a refusal can name the choice.
    Range(String),
}

impl<'de> Deserialize<'de> for RawChoice {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawChoice, D::Error> {
        struct ChoiceVisitor;
        impl<'de> Visitor<'de> for ChoiceVisitor {
            type Value = RawChoice;

            fn expecting(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
                to.write_str(
                    "a list of values, as in `[1, 16]`, or a range of whole numbers, as in `\"1..190\"`",
                )
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RawChoice, E> {
                Ok(RawChoice::Range(text.to_string()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<RawChoice, A::Error> {
                let mut values = Vec::new();
                while let Some(value) = all.next_element()? {
                    values.push(value);
                }
                Ok(RawChoice::Listed(values))
            }
        }
        deserializer.deserialize_any(ChoiceVisitor)
    }
}

/// Keys that the application declares, which is known once its name is.
pub(super) type RawApplication = BTreeMap<Spanned<String>, Spanned<toml::Value>>;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawObject {
    pub(super) entry: Spanned<toml::Value>,
    pub(super) records_per_entry: Option<u64>,
    pub(super) copies: Option<u64>,
    pub(super) copied: Option<u64>,
    pub(super) spacing: Option<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawCache {
    pub(super) at: Spanned<String>,
    pub(super) budget: Spanned<toml::Value>,
    #[serde(default)]
    pub(super) whole: Vec<Spanned<String>>,
    pub(super) hottest: Spanned<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawConstraints {
    pub(super) host_cpu_share: Option<Spanned<f64>>,
    pub(super) latency_bound: Option<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMix {
    pub(super) name: Spanned<String>,
    pub(super) fill: Vec<Spanned<String>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSweep {
    pub(super) parameter: Spanned<String>,
    pub(super) values: Vec<Spanned<toml::Value>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawPublished {
    pub(super) of: Spanned<String>,
    pub(super) over: Spanned<String>,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) source: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawClients {
    pub(super) counts: Vec<Spanned<u32>>,
    #[serde(default)]
    pub(super) published: Vec<RawPublished>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawAlternative {
    pub(super) name: Spanned<String>,
    #[serde(default)]
    pub(super) description: String,
    pub(super) like: Option<Spanned<String>>,
    /// Choices that each request may take otherwise.
    #[serde(default)]
    pub(super) choose: BTreeMap<String, Spanned<RawChoice>>,
    pub(super) device: Option<String>,
    pub(super) scenario: Option<Spanned<String>>,
    pub(super) hit_ratio: Option<Spanned<toml::Value>>,
    pub(super) mixed: Option<bool>,
    #[serde(default)]
    pub(super) rows: Vec<String>,
    /// What the application calls it.
    pub(super) code: Option<Spanned<String>>,
    /// Steps that follow the answer of every operation.
    pub(super) background: Option<Vec<Spanned<RawStep>>>,
    /// Steps where requests are all alike.
    pub(super) request: Option<Vec<Spanned<RawStep>>>,
    pub(super) read: Option<Vec<Spanned<RawStep>>>,
    pub(super) update: Option<Vec<Spanned<RawStep>>>,
    pub(super) insert: Option<Vec<Spanned<RawStep>>>,
    pub(super) scan: Option<Vec<Spanned<RawStep>>>,
    pub(super) readmodifywrite: Option<Vec<Spanned<RawStep>>>,
}

impl RawAlternative {
    /// The lists of steps that it gives, `request` first, by their keys.
    pub(super) fn lists(&self) -> impl Iterator<Item = (&'static str, &[Spanned<RawStep>])> {
        let all = [
            ("request", &self.request),
            ("read", &self.read),
            ("update", &self.update),
            ("insert", &self.insert),
            ("scan", &self.scan),
            ("readmodifywrite", &self.readmodifywrite),
        ];
        all.into_iter().filter_map(|(key, list)| Some((key, list.as_deref()?)))
    }
}

/// Declares a step: the verbs of the table, each with its path, and the keys beside them.
macro_rules! step {
    ($($key:ident: $type:ty,)+) => {
        #[derive(Clone, Debug, Default)]
        pub(super) struct RawStep {
            pub(super) verbs: Vec<(Verb, Spanned<String>)>,
            /// The values of the choices that a number of it goes by.
            pub(super) chosen: Option<String>,
            $(pub(super) $key: Option<$type>,)+
        }

        /// Every key of a step.
        static STEP_KEYS: LazyLock<Vec<&'static str>> =
            LazyLock::new(|| VERBS.iter().map(|row| row.name).chain([$(stringify!($key)),+]).collect());

        impl<'de> Visitor<'de> for StepVisitor {
            type Value = RawStep;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a step, as in `{ read = \"client-host\", bytes = \"64 B\" }`")
            }
            fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<RawStep, M::Error> {
                let mut step = RawStep::default();
                while let Some(StepKey(key)) = map.next_key()? {
                    match key {
                        $(stringify!($key) => step.$key = Some(map.next_value()?),)+
                        verb => {
                            let verb = verb.parse().expect("what is no other key is a verb of the table");
                            step.verbs.push((verb, map.next_value()?));
                        }
                    }
                }
                Ok(step)
            }
        }
    };
}
step! {
    bytes: Spanned<toml::Value>,
    object: Spanned<String>,
    arrived: Spanned<toml::Value>,
    batch: Spanned<toml::Value>,
    to: Spanned<toml::Value>,
    awaited: Spanned<bool>,
    wait: Spanned<toml::Value>,
    background: Vec<Spanned<RawStep>>,
    compute: Spanned<String>,
    time: Spanned<toml::Value>,
    rate: Spanned<toml::Value>,
    on: Spanned<String>,
    work: Spanned<String>,
    operations: Spanned<toml::Value>,
    repeat: Spanned<toml::Value>,
    steps: Vec<Spanned<RawStep>>,
    parallel: Vec<Vec<Spanned<RawStep>>>,
    cached: Spanned<String>,
    hit: Vec<Spanned<RawStep>>,
    miss: Vec<Spanned<RawStep>>,
    probability: Spanned<toml::Value>,
    then: Vec<Spanned<RawStep>>,
    otherwise: Vec<Spanned<RawStep>>,
}

struct StepVisitor;

impl<'de> Deserialize<'de> for RawStep {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<RawStep, D::Error> {
        deserializer.deserialize_map(StepVisitor)
    }
}

/// A key of a step; refused while it is read, so that the refusal points at it.
struct StepKey(&'static str);

impl<'de> Deserialize<'de> for StepKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<StepKey, D::Error> {
        let text = String::deserialize(deserializer)?;
        let known = STEP_KEYS.iter().copied().find(|known| *known == text);
        known.map(StepKey).ok_or_else(|| serde::de::Error::unknown_field(&text, &STEP_KEYS))
    }
}

/// A design's file with what it names, before its numbers are resolved.
#[derive(Debug)]
pub(super) struct Parsed {
    pub(super) text: String,
    pub(super) name: String,
    pub(super) raw: RawFile,
    pub(super) workload: Option<Workload>,
    /// What `[workload] set` gives of it.
    pub(super) workload_set: BTreeMap<String, String>,
    /// How popular the workload's records are, where an object or a cache needs it.
    pub(super) popularity: Option<Arc<Popularity>>,
    pub(super) directory: PathBuf,
    pub(super) changes: Changes,
}

impl Parsed {
    /// A device as a library finds it: files are named from the design's own folder.
    pub(super) fn device(&self, name: &str) -> String {
        match name.ends_with(".toml") {
            true => self.directory.join(name).display().to_string(),
            false => name.to_string(),
        }
    }

    pub(super) fn resolve(
        file: &Arc<Parsed>,
        moved: &BTreeMap<String, Quantity>,
        only: Option<&BTreeSet<String>>,
    ) -> Result<Design, miette::Report> {
        Resolver {
            file,
            moved,
            only,
            passed_over: RefCell::default(),
            impossible: RefCell::default(),
            mentioned: RefCell::default(),
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

    pub(super) fn read_workload(&mut self, directory: &Path) -> Result<(), miette::Report> {
        let changes = &self.changes;
        let Some(raw) = &self.raw.workload else {
            return match &changes.workload {
                None => Ok(()),
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
        let mut set = overrides_of(raw);
        if changes.workload.is_some() {
            // Whoever names another file asks about what it says.
            set.retain(|key, _| workload.properties().all(|(stated, _)| stated != key));
        }
        self.workload = Some(workload.with_overrides(set.clone())?);
        self.workload_set = set;
        Ok(())
    }

    pub(super) fn error(
        &self,
        message: impl Into<String>,
        help: impl Into<String>,
        at: Range<usize>,
    ) -> miette::Report {
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
pub(super) fn overrides_of(raw: &RawWorkload) -> BTreeMap<String, String> {
    let text = |value: &toml::Value| match value {
        toml::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    raw.set.iter().map(|(key, value)| (key.clone(), text(value))).collect()
}
