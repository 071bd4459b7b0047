//! Applications as alternatives: what their requests do on the idle twin, as steps.
//!
//! A request of the application's own code is followed on the twin of the system that is planned for.
//! What it did, in order, is a step list like any other: it is compiled, folded and run by the same
//! interpreter. Bytes are the code's own, headers and acknowledgements included. A store of a few
//! records stands for the design's: its keys share no bucket, so that no chain is followed, and the
//! design's objects say how the accesses of all records are spread.

use crate::design::{Alternative, Code, Design, Signals, Step};
use crate::estimate::Share;
use crate::planner::{Plan, Ready};
use crate::program::{Fold, compile};
use offpath_apps::kv::{self, Placement, StoreClient, StoreKey};
use offpath_apps::replog::{self, Primary};
use offpath_fabric::{Backend, Fabric, Role, RoleName};
use offpath_quantity::{Bytes, Quantity, Time};
use offpath_route::{Posting, Router};
use offpath_twin::backend::{Label, ObservedStep, Observer};
use offpath_twin::{Seed, TwinBackend, TwinFabric};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The application of a design.
#[derive(Clone, Debug, PartialEq)]
pub enum Application {
    /// The key-value store.
    Store(StoreSettings),
    /// The replicated log.
    Log(LogSettings),
}

impl Application {
    /// What it is called in sentences.
    pub fn title(&self) -> &'static str {
        match self {
            Application::Store(_) => "kv store",
            Application::Log(_) => "replicated log",
        }
    }

    /// The DMA engine that the card moves bytes by, where it is told one.
    pub fn engine(&self) -> Option<&str> {
        let engine = match self {
            Application::Store(store) => &store.engine,
            Application::Log(log) => &log.engine,
        };
        engine.as_deref()
    }
}

/// What the implemented store is told by a design.
#[derive(Clone, Debug, PartialEq)]
pub struct StoreSettings {
    /// Bytes of a value.
    pub value: Bytes,
    /// Processor times.
    pub costs: kv::StoreCosts,
    /// The DMA engine by which the card fetches; READ and WRITE where there is none.
    pub engine: Option<String>,
    /// The object that stands for the index.
    pub index: Option<String>,
    /// The object that stands for the records.
    pub values: Option<String>,
}

/// What the implemented log is told by a design.
#[derive(Clone, Debug, PartialEq)]
pub struct LogSettings {
    /// Bytes of a chunk.
    pub chunk: Bytes,
    /// Compressed size over size of what is written; 1 is not compressible.
    pub ratio: f64,
    /// The endpoints of the backups.
    pub chain: Vec<String>,
    /// The DMA engine by which the card pulls.
    pub engine: Option<String>,
    /// Processor work.
    pub costs: replog::LogCosts,
}

/// An alternative of an application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Implementation {
    /// A placement of the store.
    Store(Placement),
    /// How chunks of the log travel.
    Log(replog::LogAlternative),
}

/// The placements of the store by name.
pub(crate) const PLACEMENTS: [(&str, Placement); 6] = [
    ("A1", Placement::HostOneSided),
    ("A2", Placement::SocLookup),
    ("A3", Placement::SocIndex),
    ("A4", Placement::SplitOneSided),
    ("A5-read", Placement::SocCacheRead),
    ("A5-send", Placement::SocCacheSend),
];
/// The alternatives of the log by name.
pub(crate) const LOG_ALTERNATIVES: [(&str, replog::LogAlternative); 3] = [
    ("A1", replog::LogAlternative::CardRead),
    ("A2", replog::LogAlternative::CardEngine),
    ("A3", replog::LogAlternative::HostWrite),
];

/// What the code of an alternative was seen to do.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The alternative, its steps those of the code.
    pub alternative: Alternative,
    /// The mean time that a request of the code took on the idle twin.
    pub latency_s: f64,
}

/// The same as [`observe`], with the design's estimates named at the steps that follow them.
///
/// The code is followed once more for each number that the application is told.
///
/// # Errors
/// Those of [`observe`].
pub fn observe_named(
    design: &Design,
    alternative: &Alternative,
    router: &Arc<Router>,
) -> Result<Option<Observation>, miette::Report> {
    let Some(mut observation) = observe(design, alternative, router)? else { return Ok(None) };
    // What the code's times are made of shows when one number of the design moves at a time.
    for one in design.estimates().iter().filter(|one| design.told().contains(&one.id)) {
        let Some(value) = Quantity::from_base(one.value.base() * MOVED, one.value.dimension()) else {
            continue;
        };
        // A value that the code refuses tells nothing, as one that changes what it does.
        let Ok(moved) = design.with_estimates(&BTreeMap::from([(one.id.to_string(), value)])) else {
            continue;
        };
        let factor = value.base() / one.value.base();
        if let Ok(Some(other)) = observe(&moved, alternative, router)
            && (factor - 1.0).abs() > f64::EPSILON
        {
            let both = observation.alternative.operations.iter_mut().zip(&other.alternative.operations);
            both.for_each(|((_, _, own), (_, _, other))| attribute(own, other, &one.id, factor));
        }
    }
    Ok(Some(observation))
}

/// How far a number is moved to see what follows it: less, since more may not fit the code.
const MOVED: f64 = 0.5;

/// Names the estimate `id` at the steps that follow it, `moved` being the same with it times `factor`.
fn attribute(steps: &mut [Step], moved: &[Step], id: &Arc<str>, factor: f64) {
    for (step, moved) in steps.iter_mut().zip(moved) {
        match (step, moved) {
            (Step::Compute { time, rests_on, .. }, Step::Compute { time: other, .. }) if time != other => {
                let ratio = other.ps() as f64 / time.ps() as f64;
                let linear = (ratio - 1.0) / (factor - 1.0);
                // What gets longer as a number falls follows its inverse.
                let share = if linear < 0.0 { ratio.ln() / factor.ln() } else { linear };
                rests_on.push(Share { id: id.clone(), share });
            }
            (Step::Verb { bytes, rests_on, .. }, Step::Verb { bytes: other, .. }) if bytes != other => {
                rests_on.push(id.clone());
            }
            (
                Step::Branch { then, otherwise, .. },
                Step::Branch { then: other_then, otherwise: other_otherwise, .. },
            ) => {
                attribute(then, other_then, id, factor);
                attribute(otherwise, other_otherwise, id, factor);
            }
            _ => {}
        }
    }
}

/// Follows the code of an alternative on the idle twin of `router`'s system; `None` where the design
/// or the alternative names no code.
///
/// # Errors
/// Where the application refuses, as without the engine or the endpoint that the alternative needs, in
/// its own words and pointing at the alternative's code in the design.
pub fn observe(
    design: &Design,
    alternative: &Alternative,
    router: &Arc<Router>,
) -> Result<Option<Observation>, miette::Report> {
    let (Some(application), Some(code)) = (&design.application, &alternative.code) else { return Ok(None) };
    let mut alternative = alternative.clone();
    let mut latency_s = 0.0;
    for (operation, share, steps) in &mut alternative.operations {
        let seen = match (application, code.kind) {
            (Application::Store(store), Implementation::Store(placement)) => {
                of_store(store, placement, code, operation, router)
            }
            (Application::Log(log), Implementation::Log(alternative)) => {
                of_log(log, alternative, code, router)
            }
            _ => Err("it is of another application".to_string()),
        };
        let seen = seen.map_err(|reason| {
            design.refuse(
                format!(
                    "the implemented {} cannot be `{}` on {}: {reason}",
                    application.title(),
                    alternative.name,
                    router.system().device
                ),
                "choose another device or alternative, or plan from the step lists by `--steps`",
                &code.span,
            )
        })?;
        latency_s += *share * seen.latency_s;
        *steps = seen.steps;
    }
    Ok(Some(Observation { alternative, latency_s }))
}

/// The steps of one kind of request.
struct Steps {
    steps: Vec<Step>,
    latency_s: f64,
}

/// What one request did and how long it took.
#[derive(Clone, Debug, PartialEq)]
struct ObservedRequest {
    observed_steps: Vec<ObservedStep>,
    latency: Time,
}

/// What a run tells.
#[derive(Default)]
struct RunLog {
    seen: RefCell<Vec<ObservedRequest>>,
    refused: RefCell<Option<String>>,
}

/// Requests that are followed, after a first one that looks up what later ones know.
const FOLLOWED: u64 = 2;
/// Longer than any request: a twin that is idle answers, and asking again would be counted.
const PATIENCE: Time = Time::from_ms(60_000);

/// A role whose refusal is told.
fn role<T>(
    name: &str,
    label: Label,
    run_log: &Rc<RunLog>,
    run: impl Fn(TwinFabric) -> T + 'static,
) -> Role<TwinFabric, ()>
where
    T: Future<Output = Result<(), String>> + 'static,
{
    let run_log = run_log.clone();
    Role::new(name, 0, move |fabric: TwinFabric| {
        let (run_log, running) = (run_log.clone(), run(fabric.labelled(label)));
        async move {
            if let Err(reason) = running.await {
                run_log.refused.borrow_mut().get_or_insert(reason);
            }
        }
    })
}

/// Runs roles on the idle twin; gives what each followed request did, which has to be the same.
fn run(
    router: &Arc<Router>,
    roles: impl FnOnce(&Observer, Label, &Rc<RunLog>) -> Vec<Role<TwinFabric, ()>>,
) -> Result<ObservedRequest, String> {
    let observer = Observer::new();
    let label = observer.begin(0);
    let run_log: Rc<RunLog> = Rc::default();
    let roles = roles(&observer, label, &run_log);
    let backend = TwinBackend::on(router.clone(), Seed::new(1).child("coded").value());
    let ran = backend.with_observer(&observer).run(roles);
    if let Some(reason) = run_log.refused.take() {
        return Err(reason);
    }
    ran.map_err(|error| error.to_string())?;
    let mut all = run_log.seen.take();
    let last = all.pop().ok_or("no request ended")?;
    match all.iter().all(|one| *one == last) {
        true => Ok(last),
        false => Err("requests that are alike do different things on an idle twin".to_string()),
    }
}

fn words(error: impl std::fmt::Display) -> String {
    error.to_string()
}

fn of_store(
    store: &StoreSettings,
    placement: Placement,
    code: &Code,
    operation: &str,
    router: &Arc<Router>,
) -> Result<Steps, String> {
    let value_bytes = u32::try_from(store.value.get()).expect("a design's values are bounded");
    let keys = FOLLOWED + 1;
    let mut options = kv::StoreConfig::sized(keys, value_bytes).placed(placement);
    options.layout.root_buckets = 1 << 12;
    options.layout.cache_slots = 1 << 12;
    options.preload = keys;
    options.hot_share = 0;
    options.costs = store.costs;
    options.answer_timeout = PATIENCE;
    options.attempts = 1;
    options.admit_after = u32::MAX;
    if let Some(engine) = &store.engine {
        options.fetch = kv::Fetch::Engine(engine.clone());
    }
    // A region is known by its length.
    let layout = options.layout;
    let objects = BTreeMap::from([
        (layout.index_bytes(), store.index.clone()),
        (layout.values_bytes(), store.values.clone()),
        (layout.cache_bytes(), store.values.clone()),
    ]);
    let run = |is_cached: bool| {
        let options = kv::StoreConfig { warm: if is_cached { keys } else { 0 }, ..options.clone() };
        let seen = store_run(router, &options, operation)?;
        Ok(Steps {
            steps: steps(&seen.observed_steps, &objects, &code.span)?,
            latency_s: seen.latency.as_seconds(),
        })
    };
    let has_cache = matches!(placement, Placement::SocCacheRead | Placement::SocCacheSend);
    let hit_ratio = if has_cache { code.hit_ratio } else { 0.0 };
    if hit_ratio == 0.0 || hit_ratio == 1.0 {
        return run(hit_ratio == 1.0);
    }
    let (hit, miss) = (run(true)?, run(false)?);
    Ok(Steps {
        steps: vec![Step::Branch {
            probability: hit_ratio,
            then: hit.steps,
            otherwise: miss.steps,
            rests_on: Vec::new(),
        }],
        latency_s: hit_ratio * hit.latency_s + (1.0 - hit_ratio) * miss.latency_s,
    })
}

fn store_run(
    router: &Arc<Router>,
    options: &kv::StoreConfig,
    operation: &str,
) -> Result<ObservedRequest, String> {
    if !matches!(operation, "request" | "read" | "update" | "insert" | "readmodifywrite") {
        return Err(format!("it has no `{operation}`"));
    }
    run(router, |observer, label, run_log| {
        let of_host = options.clone();
        let host = role("host", label, run_log, move |fabric| {
            let options = of_host.clone();
            async move { kv::host(fabric, options).await.map_err(words) }
        });
        let (observer, of_client, operation) = (observer.clone(), options.clone(), operation.to_string());
        let sink = run_log.clone();
        let client = role("client", label, run_log, move |fabric| {
            let (observer, options, operation) = (observer.clone(), of_client.clone(), operation.clone());
            let sink = sink.clone();
            async move {
                let mut client = StoreClient::connect(&fabric, &options).await.map_err(words)?;
                let value = vec![7; options.layout.value_bytes as usize];
                for number in 0..=FOLLOWED {
                    let held = StoreKey::from_number(number);
                    let began = fabric.now();
                    observer.follow(label);
                    match operation.as_str() {
                        "update" => client.put(held, &value).await.map_err(words)?,
                        "insert" => {
                            let fresh = StoreKey::from_number(options.preload + number);
                            client.put(fresh, &value).await.map_err(words)?;
                        }
                        other => {
                            let got = client.get(held).await.map_err(words)?;
                            got.ok_or("a record that it holds was not found")?;
                            if other == "readmodifywrite" {
                                client.put(held, &value).await.map_err(words)?;
                            }
                        }
                    }
                    let seen = ObservedRequest {
                        observed_steps: observer.observed_steps(),
                        latency: fabric.now() - began,
                    };
                    if number > 0 {
                        sink.seen.borrow_mut().push(seen);
                    }
                }
                Ok(())
            }
        });
        let mut roles = vec![host.in_background(), client];
        if options.placement != Placement::HostOneSided {
            let of_soc = options.clone();
            let soc = role("soc", label, run_log, move |fabric| {
                let options = of_soc.clone();
                async move { kv::soc(fabric, options).await.map_err(words) }
            });
            roles.push(soc.in_background());
        }
        roles
    })
}

/// A chunk that LZ4 makes `ratio` times as long: random bytes, then zeros. Of random bytes it notes
/// every 255th by one more, of zeros it keeps one in 255.
fn chunk(length: u64, ratio: f64) -> Vec<u8> {
    let noise = length as f64 * (ratio - 1.0 / 255.0);
    let noise = if ratio >= 1.0 { length } else { (noise.max(0.0) as u64).min(length) };
    let seed = Seed::new(1).child("chunk");
    let mut bytes: Vec<u8> =
        (0..noise.div_ceil(8)).flat_map(|word| seed.index(word).value().to_le_bytes()).collect();
    bytes.truncate(noise as usize);
    bytes.resize(length as usize, 0);
    bytes
}

fn of_log(
    log: &LogSettings,
    alternative: replog::LogAlternative,
    code: &Code,
    router: &Arc<Router>,
) -> Result<Steps, String> {
    let chain: Vec<RoleName> = log.chain.iter().map(|name| RoleName::new(name, 0)).collect();
    let mut options = replog::LogConfig::new(alternative, chain);
    options.chunk_bytes = u32::try_from(log.chunk.get()).expect("a design's chunks are bounded");
    options.segment_bytes = u64::MAX / 2;
    options.slots = 1;
    options.costs = log.costs;
    options.patience = PATIENCE;
    options.engine = log.engine.clone().unwrap_or_default();
    let bytes = Rc::new(chunk(log.chunk.get(), log.ratio));
    let seen = run(router, |observer, label, run_log| {
        let (of_host, observer, sink) = (options.clone(), observer.clone(), run_log.clone());
        let mut roles = vec![role("host", label, run_log, move |fabric| {
            let (options, observer, sink) = (of_host.clone(), observer.clone(), sink.clone());
            let bytes = bytes.clone();
            async move {
                let primary = Primary::open(&fabric, &options).await.map_err(words)?;
                for number in 0..=FOLLOWED {
                    let began = fabric.now();
                    observer.follow(label);
                    primary.write(&bytes).await.map_err(words)?;
                    let seen = ObservedRequest {
                        observed_steps: observer.observed_steps(),
                        latency: fabric.now() - began,
                    };
                    if number > 0 {
                        sink.seen.borrow_mut().push(seen);
                    }
                    // What the NICs still do for a request is over before the next.
                    fabric.sleep(Time::from_ms(1)).await;
                }
                Ok(())
            }
        })];
        for backup in &log.chain {
            let options = options.clone();
            let serve = move |fabric| {
                let options = options.clone();
                async move { replog::backup(fabric, options).await.map_err(words) }
            };
            roles.push(role(backup, label, run_log, serve).in_background());
        }
        if alternative != replog::LogAlternative::HostWrite {
            let options = options.clone();
            let serve = move |fabric| {
                let options = options.clone();
                async move { replog::card(fabric, options).await.map_err(words) }
            };
            roles.push(role("soc", label, run_log, serve).in_background());
        }
        roles
    })?;
    let steps = steps(&seen.observed_steps, &BTreeMap::new(), &code.span)?;
    Ok(Steps { steps, latency_s: seen.latency.as_seconds() })
}

/// What a request did as a step list; `objects` by the length of the region that stands for them.
fn steps(
    observed_steps: &[ObservedStep],
    objects: &BTreeMap<u64, Option<String>>,
    span: &Range<usize>,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for observed_step in observed_steps {
        match observed_step {
            ObservedStep::Compute { time, .. } if *time == Time::ZERO => {}
            ObservedStep::Compute { endpoint, time } => {
                steps.push(Step::Compute {
                    at: endpoint.clone(),
                    time: *time,
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
            ObservedStep::Operation { operation, signaled, immediate, region } => {
                let is_message = operation.verb.is_message();
                if !signaled && !is_message {
                    let path = &operation.path;
                    return Err(format!("it does not wait for a {} on {path}", operation.verb));
                }
                let object = region.and_then(|length| objects.get(&length.get()).cloned().flatten());
                steps.push(Step::Verb {
                    verb: operation.verb,
                    path: operation.path.to_string(),
                    bytes: operation.payload,
                    object,
                    batch: match operation.posting {
                        Posting::Single => 1,
                        Posting::Batch(count) => count,
                    },
                    to: 1,
                    signals: Signals { immediate: *immediate, polled: *signaled && is_message },
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
        }
    }
    Ok(steps)
}

/// How far step lists are from the code beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The application.
    pub application: &'static str,
    /// The largest difference in the time that a station is busy, each alternative at the greatest
    /// rate that its code reaches: as a share of the station's time, with station and alternative.
    pub busy: (f64, String, String),
    /// The largest difference in unloaded latency, as a share of the code's, with the alternative.
    pub latency: (f64, String),
}

impl Agreement {
    /// From which difference on step lists are said to differ from the code beside them.
    const DIFFER: f64 = 0.1;

    /// Whether a rate or a latency of the step lists is another one than the code's.
    pub fn differs(&self) -> bool {
        self.busy.0.max(self.latency.0) > Agreement::DIFFER
    }

    /// What the author of step lists has to know whose rates are other ones than the code's.
    pub(crate) fn warning(&self) -> Option<String> {
        let (share, station, alternative) = &self.busy;
        (*share > Agreement::DIFFER).then(|| {
            format!(
                "what is planned is the code of {}, and not the step lists: those of `{alternative}` differ from it by \
                 {:.0}% of the time of {station}; `--steps` plans the step lists",
                self.application,
                share * 100.0
            )
        })
    }
}

/// Holds the step lists of a design to the code that was planned; `None` where no code was.
pub fn agreement(design: &Design, ready: &[Ready], plan: &Plan) -> Result<Option<Agreement>, miette::Report> {
    let Some(application) = &design.application else { return Ok(None) };
    let mut busy = (0.0, String::new(), String::new());
    let mut latency = (0.0, String::new());
    for (one, alone) in ready.iter().zip(&plan.alternatives).filter(|(one, _)| one.alternative.code.is_some())
    {
        let name = &one.alternative.name;
        let Some(listed) = design.alternatives.iter().find(|listed| listed.name == *name) else { continue };
        let listed = compile(design, listed, &one.router)?.fold(&one.router);
        let implemented = one.compiled.fold(&one.router);
        for station in one.router.stations() {
            let of = |fold: &Fold| fold.seconds.get(&station.name).copied().unwrap_or(0.0);
            let difference = (of(&implemented) - of(&listed)).abs() * alone.rate.value;
            let share = difference / station.servers().max(1) as f64;
            if share > busy.0 || busy.1.is_empty() {
                busy = (share, station.name.clone(), name.clone());
            }
        }
        let share = (listed.latency / implemented.latency - 1.0).abs();
        if share > latency.0 || latency.1.is_empty() {
            latency = (share, name.clone());
        }
    }
    let found = !busy.1.is_empty();
    Ok(found.then(|| Agreement { application: application.title(), busy, latency }))
}
