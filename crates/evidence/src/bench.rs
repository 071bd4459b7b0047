//! The test bench: runs experiments on a system as the profiles describe it, or with some of its
//! numbers changed.

use crate::experiment::{Compare, Experiment, Keep, Measure, Plain, SweepAxis};
use crate::measure::{One, Place, along, places};
use crate::reproduce::MEASURED;
use exmex::Express;
use offpath_plan::planner::{Ready, make_ready};
use offpath_plan::shipped::{design as shipped, workload_files};
use offpath_plan::{Changes, Design};
use offpath_profile::{Library, Provenance, System, SystemRequest};
use offpath_quantity::{BitRate, Bytes, Quantity, Time};
use offpath_route::{Demand, Router};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

/// A number of a profile file with another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The file, as in `profiles/devices/bluefield2.toml`.
    pub file: String,
    /// Its table and key, as in `nic.inflight_slots`.
    pub key: String,
    /// The value.
    pub value: Quantity,
}

/// Why an experiment has no outcome.
#[derive(Debug, thiserror::Error)]
pub enum ExperimentError {
    /// The experiment lacks a key, or has one too many.
    #[error("the experiment {0}")]
    Incomplete(String),
    /// A profile, route, design or load is refused.
    #[error("{0}")]
    Refused(String),
}

pub(crate) fn refused(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Refused(error.to_string())
}

pub(crate) fn lacks(what: &str) -> ExperimentError {
    ExperimentError::Incomplete(format!("lacks `{what}`"))
}

/// One place of a sweep with what was measured there.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepPoint {
    /// The place in words, as in `client-soc read 64 B`.
    pub place: String,
    /// The variables of the place: `n` is the payload in bytes, the others are a grid's.
    pub variables: BTreeMap<String, f64>,
    /// What was measured.
    pub value: f64,
    /// The station that binds, where something binds.
    pub binding: Option<String>,
}

/// What an experiment gives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Measurement {
    /// The places that count, with the compared values.
    pub points: Vec<SweepPoint>,
    /// What the first experiment measured, before any comparison.
    pub own: Vec<SweepPoint>,
    /// What it was compared with, for each `against`.
    pub against: Vec<Vec<SweepPoint>>,
    /// The values that each place of `own` is compared with, one for each `against` of its block.
    pub compared: Vec<Vec<f64>>,
    /// What the formula expects, place by place, where there is one.
    pub expected: Vec<f64>,
}

/// What a prediction is made of.
#[derive(Clone, Debug, PartialEq)]
pub enum Inside {
    /// A latency's terms in nanoseconds.
    Terms(Vec<(String, f64)>),
    /// The stations with the share of their time that they are busy.
    Stations(Vec<(String, f64)>),
    /// The experiment is not a single operation.
    Nothing,
}

pub(crate) type SystemKey = (String, Option<String>, Vec<String>, Vec<(String, String)>);

/// A design's name, its parameters, whether its step lists are meant where it has code, and whether it
/// does without its engine.
type DesignKey = (String, Vec<(String, String)>, bool, bool);

/// A design with its alternatives on their routers.
pub(crate) type Prepared = Rc<(Design, Vec<Ready>)>;

/// Which loops were run: on which system with which numbers changed, of which flows, and with what in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct LoopKey {
    changes: Vec<(String, String, u64)>,
    system: SystemKey,
    flows: Vec<(String, String, u32)>,
    payload: String,
    range: Option<String>,
    arrived: Option<String>,
    batch: Option<u32>,
}

/// What closed loops carried on the twin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Carried {
    /// The turns of all flows in the window.
    pub(crate) turns: u64,
    /// Those of the first flow.
    pub(crate) turns_of_first: u64,
    /// The window in seconds.
    pub(crate) window_s: f64,
}

/// What a loop carried, once it has run. Who asks while it runs waits.
type Loop = Arc<Mutex<Option<Carried>>>;

/// What loops carried that were run already. Several rows look at the same loops, and each takes as long as hundreds of
/// solved rows, so that the threads of one call share what they ran.
#[derive(Clone, Default)]
pub(crate) struct LoopMemory(Arc<Mutex<BTreeMap<LoopKey, Loop>>>);

impl LoopMemory {
    /// What those loops carried, by `run` where nobody ran them.
    fn carried(
        &self,
        key: LoopKey,
        run: impl FnOnce() -> Result<Carried, ExperimentError>,
    ) -> Result<Carried, ExperimentError> {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default().clone();
        let mut known = own.lock().unwrap_or_else(PoisonError::into_inner);
        match *known {
            Some(carried) => Ok(carried),
            None => Ok(*known.insert(run()?)),
        }
    }
}

/// Systems, routers and designs, made once for one set of changed numbers.
pub struct Bench {
    library: Library,
    changes: Vec<Change>,
    /// Systems without the changes; shared by benches that differ in changes alone.
    base: Rc<RefCell<BTreeMap<SystemKey, System>>>,
    designs: Rc<RefCell<BTreeMap<DesignKey, Rc<Design>>>>,
    routers: RefCell<BTreeMap<SystemKey, Arc<Router>>>,
    prepared: RefCell<BTreeMap<(DesignKey, SystemKey), Prepared>>,
    loops: LoopMemory,
    /// Overlays that hold for every experiment: the variant that is looked at.
    overlays: Vec<String>,
    /// Whether links are all that counts: a null model.
    pub(crate) links_alone: bool,
}

impl Bench {
    /// A bench on the profiles of `library`.
    pub fn new(library: Library) -> Bench {
        Bench {
            library,
            changes: Vec::new(),
            base: Rc::default(),
            designs: Rc::default(),
            routers: RefCell::default(),
            prepared: RefCell::default(),
            loops: LoopMemory::default(),
            overlays: Vec::new(),
            links_alone: false,
        }
    }

    /// The same bench with these numbers changed, instead of those that were changed before.
    pub fn with(&self, changes: Vec<Change>) -> Bench {
        Bench {
            library: self.library.clone(),
            changes,
            base: self.base.clone(),
            designs: self.designs.clone(),
            routers: RefCell::default(),
            prepared: RefCell::default(),
            loops: self.loops.clone(),
            overlays: self.overlays.clone(),
            links_alone: self.links_alone,
        }
    }

    /// The same bench, which remembers loops where others that have the same library do.
    pub(crate) fn remembering(self, loops: &LoopMemory) -> Bench {
        Bench { loops: loops.clone(), ..self }
    }

    /// What these loops carried.
    pub(crate) fn carried(
        &self,
        system: &SystemKey,
        flows: Vec<(String, String, u32)>,
        place: &Place,
        run: impl FnOnce() -> Result<Carried, ExperimentError>,
    ) -> Result<Carried, ExperimentError> {
        let changes = self.changes.iter();
        let key = LoopKey {
            changes: changes
                .map(|one| (one.file.clone(), one.key.clone(), one.value.base().to_bits()))
                .collect(),
            system: system.clone(),
            flows,
            payload: place.payload.clone().ok_or_else(|| lacks("payload"))?,
            range: place.range.clone(),
            arrived: place.arrived.clone(),
            batch: place.batch,
        };
        self.loops.carried(key, run)
    }

    /// A bench on which these overlays hold for every experiment.
    pub fn under(&self, overlays: Vec<String>) -> Bench {
        Bench { overlays, ..self.with(self.changes.clone()) }
    }

    /// The overlays that hold for every experiment.
    pub(crate) fn overlays(&self) -> &[String] {
        &self.overlays
    }

    /// A bench for the simplest model that has the topology: links without headers bound every rate,
    /// and a latency is their delays and the bytes at the slowest of them.
    pub fn links_alone(&self) -> Bench {
        Bench { links_alone: true, ..self.under(vec!["ideal-links".to_string()]) }
    }

    /// The library that it takes profiles from.
    pub fn library(&self) -> &Library {
        &self.library
    }

    /// The system of an experiment: what its design says, then what it says itself.
    fn key(
        &self,
        plain: &Plain,
        device: &str,
        grid: &[(String, String)],
    ) -> Result<SystemKey, ExperimentError> {
        let mut set: BTreeMap<String, String> = BTreeMap::new();
        let mut testbed = plain.testbed.clone();
        if let Some(name) = &plain.design {
            let design = self.design(&(name.clone(), Vec::new(), plain.steps, false))?;
            let halves = design.set.iter().filter_map(|setting| setting.split_once('='));
            set.extend(halves.map(|(name, value)| (name.trim().to_string(), value.trim().to_string())));
            testbed = testbed.or_else(|| design.testbed.clone());
        }
        set.extend(plain.set.clone());
        set.extend(grid.iter().cloned());
        let overlays = self.overlays.iter().chain(&plain.overlays).cloned().collect();
        Ok((device.to_string(), testbed, overlays, set.into_iter().collect()))
    }

    /// The routes of the system that a key names.
    fn router(&self, key: &SystemKey) -> Result<Arc<Router>, ExperimentError> {
        if let Some(router) = self.routers.borrow().get(key) {
            return Ok(router.clone());
        }
        let known = self.base.borrow().get(key).cloned();
        let mut system = match known {
            Some(system) => system,
            None => {
                let (device, testbed, overlays, set) = key;
                // A mechanism is that of the first measured card, and none of one that does not name it.
                let mut concerning = Vec::with_capacity(overlays.len());
                for overlay in overlays {
                    if self.library.concerns(overlay, MEASURED[0].0, device).map_err(refused)? {
                        concerning.push(overlay.as_str());
                    }
                }
                let request = SystemRequest {
                    device,
                    testbed: testbed.as_deref(),
                    mode: None,
                    overlays: concerning,
                    settings: set.iter().map(|(name, value)| format!("{name}={value}")).collect(),
                    ..SystemRequest::default()
                };
                let system = self.library.load(&request).map_err(refused)?;
                self.base.borrow_mut().insert(key.clone(), system.clone());
                system
            }
        };
        for change in &self.changes {
            let names: Vec<String> = system
                .numbers
                .iter()
                // What an overlay or a setting holds stays: it is the experiment's own.
                .filter(|(_, number)| number.file == change.file && number.provenance != Provenance::Set)
                .filter(|(_, number)| number.key == change.key)
                .map(|(name, _)| name.clone())
                .collect();
            for name in names {
                system = system.with(&name, change.value).map_err(refused)?;
            }
        }
        let router = Arc::new(Router::new(&system).map_err(refused)?);
        self.routers.borrow_mut().insert(key.clone(), router.clone());
        Ok(router)
    }

    /// The routes of the system that an experiment's first place runs on.
    pub fn router_of(&self, plain: &Plain) -> Result<Arc<Router>, ExperimentError> {
        let grid: Vec<(String, String)> = plain
            .vary
            .values()
            .flat_map(|axis| axis.set.iter().map(|name| (name.clone(), axis.values[0].clone())))
            .collect();
        self.router(&self.key(plain, &plain.device, &grid)?)
    }

    /// Runs an experiment with its comparison.
    ///
    /// # Errors
    /// [`ExperimentError`] where the experiment lacks a key, or where a profile, a route, a design
    /// or a load is refused.
    pub fn run(&self, experiment: &Experiment) -> Result<Measurement, ExperimentError> {
        let mut whole = self.run_alone(experiment)?;
        for also in &experiment.also {
            let more = self.run(also)?;
            whole.points.extend(more.points);
            whole.own.extend(more.own);
            whole.against.extend(more.against);
            whole.compared.extend(more.compared);
            whole.expected.extend(more.expected);
        }
        Ok(whole)
    }

    /// The same without what it runs besides.
    fn run_alone(&self, experiment: &Experiment) -> Result<Measurement, ExperimentError> {
        let own = self.sweep(&experiment.plain)?;
        let against: Vec<Vec<SweepPoint>> =
            experiment.against.iter().map(|plain| self.sweep(plain)).collect::<Result<_, _>>()?;
        let mut points = own.clone();
        // Operations lie side by side, each with its places of the sweep.
        let each = along(&experiment.plain);
        let operations = own.len() / each;
        let mut compared = Vec::with_capacity(own.len());
        for (index, point) in points.iter_mut().enumerate() {
            let mut others = Vec::with_capacity(against.len());
            for (other, plain) in against.iter().zip(&experiment.against) {
                // A single place stands beside every place of the first.
                let other = match other.len() {
                    1 => &other[0],
                    len if len == own.len() => &other[index],
                    // One operation with as many places stands beside each, place by place.
                    len if len == each && along(plain) == each => &other[index % each],
                    // One place for each of the grid, or for each operation, whose places lie side by side.
                    len if len == grid(&experiment.plain.vary).len() || len == operations => {
                        &other[index * len / own.len()]
                    }
                    len => {
                        let sizes = format!("sweeps {} places, but `against` sweeps {len}", own.len());
                        return Err(ExperimentError::Incomplete(sizes));
                    }
                };
                others.push(other.value);
            }
            let second = experiment.which.of(&others);
            compared.push(others);
            point.value = match experiment.compare {
                Compare::Value => point.value,
                Compare::Ratio | Compare::From(_) | Compare::Until(_) => point.value / second,
                Compare::Change => (point.value / second - 1.0) * 100.0,
                Compare::Difference => point.value - second,
                Compare::Sum => point.value + second,
            };
        }
        let expected = match &experiment.expect {
            Some(formula) => points.iter().map(|point| evaluate(formula, point)).collect::<Result<_, _>>()?,
            None => Vec::new(),
        };
        let each = points.chunks(along(&experiment.plain).max(1));
        let points = match experiment.compare {
            Compare::From(least) => each
                .map(|points| {
                    let last = points.iter().rposition(|point| point.value < least);
                    place_of(points, last.map_or(0, |last| last + 1))
                })
                .collect(),
            Compare::Until(least) => each
                .map(|points| {
                    let end = points.iter().position(|point| point.value < least);
                    place_of(points, end.unwrap_or(points.len()).saturating_sub(1))
                })
                .collect(),
            _ => match experiment.keep {
                Keep::All => points,
                Keep::Greatest => {
                    points.into_iter().max_by(|a, b| a.value.total_cmp(&b.value)).into_iter().collect()
                }
                Keep::Least => {
                    points.into_iter().min_by(|a, b| a.value.total_cmp(&b.value)).into_iter().collect()
                }
            },
        };
        Ok(Measurement { points, own, against, compared, expected })
    }

    /// Every place of an experiment's sweeps.
    pub fn sweep(&self, plain: &Plain) -> Result<Vec<SweepPoint>, ExperimentError> {
        let mut points = Vec::new();
        for grid in grid(&plain.vary) {
            for place in places(plain) {
                points.push(self.measure(plain, &grid, &place)?);
            }
        }
        Ok(points)
    }

    fn measure(
        &self,
        plain: &Plain,
        grid: &[(String, &SweepAxis, usize)],
        place: &Place,
    ) -> Result<SweepPoint, ExperimentError> {
        let settings: Vec<(String, String)> = grid
            .iter()
            .flat_map(|(_, axis, at)| axis.set.iter().map(|name| (name.clone(), axis.values[*at].clone())))
            .collect();
        let key = self.key(plain, &plain.device, &settings)?;
        let router = self.router(&key)?;
        let mut variables = BTreeMap::new();
        for (name, axis, at) in grid {
            variables.insert(name.clone(), value_of(&axis.values[*at])?);
        }
        if let Some(payload) = &place.payload {
            variables.insert("n".to_string(), payload.parse::<Bytes>().map_err(refused)?.get() as f64);
        }
        for (name, number) in [("range", &place.range), ("arrived", &place.arrived)] {
            if let Some(text) = number {
                variables.insert(name.to_string(), text.parse::<Bytes>().map_err(refused)?.get() as f64);
            }
        }
        if let Some(batch) = place.batch {
            variables.insert("batch".to_string(), f64::from(batch));
        }
        if let Some(clients) = place.clients {
            variables.insert("clients".to_string(), clients as f64);
        }
        let one = One { bench: self, plain, router, place, grid, key };
        let (value, binding) = one.measure()?;
        if !value.is_finite() {
            return Err(refused(format!("at {}: the measured value is {value}", place.words())));
        }
        let mut words: Vec<String> =
            grid.iter().map(|(name, axis, at)| format!("{name} {}", axis.values[*at])).collect();
        words.push(place.words());
        words.retain(|word| !word.is_empty());
        Ok(SweepPoint { place: words.join(", "), variables, value, binding })
    }

    /// What the first place of an experiment is made of: a latency's terms in nanoseconds, else the
    /// share of its time that each station is busy at the greatest rate, the busiest first.
    ///
    /// # Errors
    /// As [`Bench::run`]; experiments without a single operation give an empty list.
    pub fn inside(&self, plain: &Plain) -> Result<Inside, ExperimentError> {
        let (Some(place), Some(grid)) =
            (places(plain).into_iter().next(), grid(&plain.vary).into_iter().next())
        else {
            return Ok(Inside::Nothing);
        };
        if plain.path.is_empty() || plain.verb.is_empty() || plain.payload.is_empty() {
            return Ok(Inside::Nothing);
        }
        let router = self.router_of(plain)?;
        let key = self.key(plain, &plain.device, &[])?;
        let one = One { bench: self, plain, router: router.clone(), place: &place, grid: &grid, key };
        let routes = one.own_routes()?;
        if matches!(plain.measure, Measure::Latency | Measure::Holds) {
            let terms = routes.iter().flat_map(|route| route.unloaded(&router).terms);
            return Ok(Inside::Terms(terms.map(|term| (term.label, term.time.as_ns())).collect()));
        }
        let mut demand = Demand::default();
        for route in &routes {
            demand.add(&route.demand(&router));
        }
        let Some((rate, _)) = demand.capacity(&router) else { return Ok(Inside::Nothing) };
        let mut busy: Vec<(String, f64)> = demand
            .time
            .keys()
            .chain(demand.requests.keys().map(|(station, _)| station))
            .collect::<BTreeSet<_>>()
            .into_iter()
            .filter_map(|station| {
                let mut alone = Demand::default();
                alone.time.extend(demand.time.get_key_value(station));
                alone.banks.extend(demand.banks.get_key_value(station));
                alone.requests.extend(demand.requests.iter().filter(|((of, _), _)| of == station));
                let (most, _) = alone.capacity(&router)?;
                Some((router.stations()[station.index()].name.clone(), rate / most))
            })
            .collect();
        busy.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(Inside::Stations(busy))
    }

    fn design(&self, key: &DesignKey) -> Result<Rc<Design>, ExperimentError> {
        if let Some(design) = self.designs.borrow().get(key) {
            return Ok(design.clone());
        }
        let (name, parameters, steps, without_engine) = key;
        let text = shipped(name).ok_or_else(|| {
            ExperimentError::Incomplete(format!("names `{name}`, which is not a design here"))
        })?;
        let changes = Changes {
            parameters: parameters.iter().cloned().collect(),
            steps: *steps,
            files: workload_files(),
            ..Changes::default()
        };
        let file = format!("designs/{name}.toml");
        let text = if *without_engine { without_its_engine(text) } else { text.to_string() };
        let design = Rc::new(Design::parse(&text, &file, FilePath::new("."), &changes).map_err(refused)?);
        self.designs.borrow_mut().insert(key.clone(), design.clone());
        Ok(design)
    }

    pub(crate) fn prepared(
        &self,
        plain: &Plain,
        parameters: Vec<(String, String)>,
        key: &SystemKey,
    ) -> Result<Prepared, ExperimentError> {
        let name = plain.design.clone().ok_or_else(|| lacks("design"))?;
        let own = ((name, parameters, plain.steps, plain.without_engine), key.clone());
        if let Some(prepared) = self.prepared.borrow().get(&own) {
            return Ok(prepared.clone());
        }
        let design = self.design(&own.0)?;
        let mut ready = Vec::new();
        for alternative in &design.alternatives {
            let device = alternative.device.as_deref().unwrap_or(&design.device);
            let mut key = key.clone();
            key.0 = device.to_string();
            if device != design.device {
                // Another device need not have the numbers that are set.
                key.3.clear();
            }
            let router = self.router(&key)?;
            ready.push(make_ready(&design, alternative, router).map_err(refused)?);
        }
        let prepared = Rc::new(((*design).clone(), ready));
        self.prepared.borrow_mut().insert(own, prepared.clone());
        Ok(prepared)
    }

    /// What a profile holds where a row names a number of it, and whether it is what was published.
    pub fn configured(&self, number: &crate::row::ProfileValue) -> Result<(String, bool), ExperimentError> {
        let key: SystemKey = (number.device.clone(), None, self.overlays.clone(), Vec::new());
        let router = self.router(&key)?;
        let held = |name: &str| -> Result<Quantity, ExperimentError> {
            let lacking = || format!("reads `{name}`, which {} does not have", number.device);
            let found = router.system().numbers.get(name);
            found.map(|found| found.value).ok_or_else(|| ExperimentError::Incomplete(lacking()))
        };
        let mut value = held(&number.name)?;
        if let Some(times) = &number.times {
            let product = value.base() * held(times)?.base();
            value = Quantity::from_base(product, value.dimension()).ok_or_else(|| {
                refused(format!("`{}` times `{times}` is no number of the profile's kind", number.name))
            })?;
        }
        let published = Quantity::parse(&number.value, value.dimension()).map_err(refused)?;
        Ok((value.to_string(), value.base() == published.base()))
    }
}

/// A design whose paths by its application's engine go by RDMA instead.
fn without_its_engine(text: &str) -> String {
    let engine = text.lines().find_map(|line| line.strip_prefix("engine = \"")?.split('"').next());
    let Some(engine) = engine else { return text.to_string() };
    text.lines()
        .filter(|line| !line.starts_with("engine = "))
        .map(|line| line.replace(&format!("-{engine}\""), "\"") + "\n")
        .collect()
}

/// The place as a point whose value is where it lies: the payload, range or batch that is swept.
fn place_of(points: &[SweepPoint], index: usize) -> SweepPoint {
    let Some(point) = points.get(index) else {
        let place = "nowhere in the sweep".to_string();
        return SweepPoint { place, variables: BTreeMap::new(), value: f64::MAX, binding: None };
    };
    let at = ["range", "arrived", "batch", "n"].iter().find_map(|name| point.variables.get(*name));
    SweepPoint { value: at.copied().unwrap_or(0.0), ..point.clone() }
}

/// A formula's value with a point's variables.
fn evaluate(formula: &str, point: &SweepPoint) -> Result<f64, ExperimentError> {
    let parsed = exmex::parse::<f64>(formula)
        .map_err(|error| ExperimentError::Incomplete(format!("expects `{formula}`: {error}")))?;
    let values: Vec<f64> = parsed
        .var_names()
        .iter()
        .map(|name| {
            point.variables.get(name.as_str()).copied().ok_or_else(|| {
                ExperimentError::Incomplete(format!("expects `{formula}`, but varies no `{name}`"))
            })
        })
        .collect::<Result<_, _>>()?;
    parsed.eval(&values).map_err(|error| ExperimentError::Incomplete(format!("expects `{formula}`: {error}")))
}

/// A grid value as a number: bandwidths in Gbit/s, rates in M/s, times in us, bytes and plain numbers as they are.
fn value_of(text: &str) -> Result<f64, ExperimentError> {
    if let Ok(number) = text.parse::<f64>() {
        return Ok(number);
    }
    if let Ok(rate) = text.parse::<BitRate>() {
        return Ok(rate.as_gbit_per_s());
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return Ok(bytes.get() as f64);
    }
    if let Ok(rate) = text.parse::<offpath_quantity::OpRate>() {
        return Ok(rate.as_million_per_s());
    }
    text.parse::<Time>().map(Time::as_us).map_err(refused)
}

/// Every combination of a grid's values; one empty combination where there is no grid.
fn grid(vary: &BTreeMap<String, SweepAxis>) -> Vec<Vec<(String, &SweepAxis, usize)>> {
    let mut all = vec![Vec::new()];
    for (name, axis) in vary {
        all = all
            .iter()
            .flat_map(|had: &Vec<(String, &SweepAxis, usize)>| {
                (0..axis.values.len()).map(move |at| {
                    let mut more = had.clone();
                    more.push((name.clone(), axis, at));
                    more
                })
            })
            .collect();
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machines name a host's numbers after their role: in a file `host.read_latency` is the clients' as well.
    #[test]
    fn a_number_of_a_file_moves_wherever_a_system_has_it() {
        let text = "measure = \"latency\"\npath = \"client-host\"\nverb = \"read\"\npayload = \"64 B\"";
        let plain = Experiment::parse(text.parse().expect("it is TOML")).expect("it is an experiment").plain;
        let bench = Bench::new(Library::builtin());
        let system = bench.router_of(&plain).expect("it has routes").system().clone();
        let mut named: BTreeMap<(&str, &str), Vec<&String>> = BTreeMap::new();
        for (name, number) in &system.numbers {
            if let Quantity::Time(_) = number.value {
                named.entry((&number.file, &number.key)).or_default().push(name);
            }
        }
        assert!(named.values().any(|names| names.len() > 1), "machines share files");
        for ((file, key), names) in named {
            let value = Quantity::Time(Time::from_ns(1234));
            let moved = bench.with(vec![Change { file: file.to_string(), key: key.to_string(), value }]);
            let router = moved.router_of(&plain).expect("it has routes");
            for (name, number) in &router.system().numbers {
                assert_eq!(number.value == value, names.contains(&name), "{file} {key}: {name}");
            }
        }
    }

    /// Loops that differ in anything that they depend on are run apart, whoever shares what was run.
    #[test]
    fn loops_are_remembered_as_what_they_are() {
        let base = "measure = \"loop-rate\"\nverb = \"read\"\npayload = \"64 B\"\n";
        let few = "together = [{ path = \"client-host\", in_flight = 2 }]\n";
        let texts = [
            format!("{base}{few}"),
            format!("{base}together = [{{ path = \"client-host\", in_flight = 3 }}]\n"),
            format!("{base}{few}batch = 4\n"),
            format!("{base}{few}range = \"64 KiB\"\n"),
            format!("{base}{few}arrived = \"64 KiB\"\n"),
            format!("{base}{few}set = {{ \"soc.pcie_mtu\" = \"256 B\" }}\n"),
            format!("{}{few}", base.replace("64 B", "4 KiB")),
            format!("{}{few}", base.replace("read", "write")),
            format!("{base}{}", few.replace("client-host", "client-soc")),
        ];
        let loops = LoopMemory::default();
        let slower = Change {
            file: "profiles/devices/bluefield2.toml".to_string(),
            key: "nic.pass_time".to_string(),
            value: Quantity::Time(Time::from_ns(400)),
        };
        for _ in 0..2 {
            for changes in [Vec::new(), vec![slower.clone()]] {
                let alone = || Bench::new(Library::builtin()).with(changes.clone());
                for text in &texts {
                    let experiment =
                        Experiment::parse(text.parse().expect("it is TOML")).expect("it is an experiment");
                    let own = alone().run(&experiment).expect("it runs");
                    let shared = alone().remembering(&loops).run(&experiment).expect("it runs");
                    assert_eq!(own.points, shared.points, "{text}");
                }
            }
        }
        let known = loops.0.lock().expect("nobody panicked");
        assert_eq!(known.len(), 2 * texts.len(), "one run for each");
    }
}
