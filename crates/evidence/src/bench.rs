//! The test bench: runs experiments on a system as the profiles describe it, or with some of its
//! numbers changed.

use crate::experiment::{Axis, Compare, Experiment, Flow, Keep, Measure, Plain, Sharing, Which};
use exmex::Express;
use offpath_capacity::Objective;
use offpath_plan::observe::{Arrivals as DesignArrivals, load};
use offpath_plan::planner::{Ready, activity, stations};
use offpath_plan::program::compile;
use offpath_plan::{Changes, Design, Fold};
use offpath_profile::{Library, Provenance, Request, System};
use offpath_quantity::{BitRate, Bytes, Quantity, Time};
use offpath_route::{Access, Demand, Operation, Posting, Route, Router, Verb, Visit};
use offpath_twin::{Arrivals, Load, Seed, run as run_load};
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path as FilePath;
use std::rc::Rc;

/// A number of a profile file with another value.
#[derive(Clone, Debug, PartialEq)]
pub struct Change {
    /// The file, as in `profiles/devices/bluefield2.toml`.
    pub file: String,
    /// Its table and key, as in `nic.contexts`.
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

fn refused(error: impl std::fmt::Display) -> ExperimentError {
    ExperimentError::Refused(error.to_string())
}

fn lacks(what: &str) -> ExperimentError {
    ExperimentError::Incomplete(format!("lacks `{what}`"))
}

/// One place of a sweep with what was measured there.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
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
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// The places that count, with the compared values.
    pub points: Vec<Point>,
    /// What the first experiment measured, before any comparison.
    pub own: Vec<Point>,
    /// What it was compared with, for each `against`.
    pub against: Vec<Vec<Point>>,
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

type SystemKey = (String, Option<String>, Vec<String>, Vec<(String, String)>);

/// A design's name and its parameters.
type DesignKey = (String, Vec<(String, String)>);

/// A design with its alternatives on their routers.
type Prepared = Rc<(Design, Vec<Ready>)>;

/// Systems, routers and designs, made once for one set of changed numbers.
pub struct Bench {
    library: Library,
    changes: Vec<Change>,
    /// Systems without the changes; shared by benches that differ in changes alone.
    base: Rc<RefCell<BTreeMap<SystemKey, System>>>,
    designs: Rc<RefCell<BTreeMap<DesignKey, Rc<Design>>>>,
    routers: RefCell<BTreeMap<SystemKey, Rc<Router>>>,
    prepared: RefCell<BTreeMap<(DesignKey, SystemKey), Prepared>>,
    /// Overlays that hold for every experiment: the rival that is looked at.
    overlays: Vec<String>,
    /// Whether links are all that counts: a null model.
    links_alone: bool,
}

const DESIGNS: [(&str, &str); 2] = [
    ("kv-ycsb-c", include_str!("../../../designs/kv-ycsb-c.toml")),
    ("replication", include_str!("../../../designs/replication.toml")),
];

const WORKLOADS: [(&str, &str); 1] =
    [("../workloads/workloadc", include_str!("../../../workloads/workloadc"))];

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
            overlays: self.overlays.clone(),
            links_alone: self.links_alone,
        }
    }

    /// A bench on which these overlays hold for every experiment.
    pub fn under(&self, overlays: Vec<String>) -> Bench {
        Bench { overlays, ..self.with(self.changes.clone()) }
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

    fn key(&self, plain: &Plain, device: &str, grid: &[(String, String)]) -> SystemKey {
        let mut set: BTreeMap<String, String> = plain.set.clone();
        set.extend(grid.iter().cloned());
        let overlays = self.overlays.iter().chain(&plain.overlays).cloned().collect();
        (device.to_string(), plain.testbed.clone(), overlays, set.into_iter().collect())
    }

    /// The routes of the system that a key names.
    fn router(&self, key: &SystemKey) -> Result<Rc<Router>, ExperimentError> {
        if let Some(router) = self.routers.borrow().get(key) {
            return Ok(router.clone());
        }
        let known = self.base.borrow().get(key).cloned();
        let mut system = match known {
            Some(system) => system,
            None => {
                let (device, testbed, overlays, set) = key;
                let request = Request {
                    device,
                    testbed: testbed.as_deref(),
                    mode: None,
                    overlays: overlays.iter().map(String::as_str).collect(),
                    settings: set.iter().map(|(name, value)| format!("{name}={value}")).collect(),
                };
                let system = self.library.load(&request).map_err(refused)?;
                self.base.borrow_mut().insert(key.clone(), system.clone());
                system
            }
        };
        for change in &self.changes {
            let suffix = format!(".{}", change.key);
            let names: Vec<String> = system
                .numbers
                .iter()
                // What an overlay or a setting holds stays: it is the experiment's own.
                .filter(|(_, number)| number.file == change.file && number.provenance != Provenance::Set)
                .filter(|(name, _)| **name == change.key || name.ends_with(&suffix))
                .map(|(name, _)| name.clone())
                .collect();
            for name in names {
                system = system.with(&name, change.value).map_err(refused)?;
            }
        }
        let router = Rc::new(Router::new(&system).map_err(refused)?);
        self.routers.borrow_mut().insert(key.clone(), router.clone());
        Ok(router)
    }

    /// The routes of the system that an experiment's first place runs on.
    pub fn router_of(&self, plain: &Plain) -> Result<Rc<Router>, ExperimentError> {
        let grid: Vec<(String, String)> = plain
            .vary
            .values()
            .flat_map(|axis| axis.set.iter().map(|name| (name.clone(), axis.values[0].clone())))
            .collect();
        self.router(&self.key(plain, &plain.device, &grid))
    }

    /// Runs an experiment with its comparison.
    ///
    /// # Errors
    /// [`ExperimentError`] where the experiment lacks a key, or where a profile, a route, a design
    /// or a load is refused.
    pub fn run(&self, experiment: &Experiment) -> Result<Outcome, ExperimentError> {
        let own = self.sweep(&experiment.plain)?;
        let against: Vec<Vec<Point>> =
            experiment.against.iter().map(|plain| self.sweep(plain)).collect::<Result<_, _>>()?;
        let mut points = own.clone();
        for (index, point) in points.iter_mut().enumerate() {
            let mut others = Vec::with_capacity(against.len());
            for other in &against {
                // A single place stands beside every place of the first.
                let other = match other.len() {
                    1 => &other[0],
                    len if len == own.len() => &other[index],
                    // One place for each of the grid, whose places lie side by side.
                    len if len == grid(&experiment.plain.vary).len() => &other[index * len / own.len()],
                    len => {
                        let sizes = format!("sweeps {} places, but `against` sweeps {len}", own.len());
                        return Err(ExperimentError::Incomplete(sizes));
                    }
                };
                others.push(other.value);
            }
            let mean = others.iter().sum::<f64>() / others.len().max(1) as f64;
            let second = match experiment.which {
                Which::Greatest => others.into_iter().fold(f64::NEG_INFINITY, f64::max),
                Which::Least => others.into_iter().fold(f64::INFINITY, f64::min),
                Which::Mean => mean,
            };
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
        let points = match experiment.compare {
            Compare::From(least) => {
                let start = points.iter().rposition(|point| point.value < least).map_or(0, |last| last + 1);
                vec![place_of(&points, start)]
            }
            Compare::Until(least) => {
                let end = points.iter().position(|point| point.value < least);
                vec![place_of(&points, end.unwrap_or(points.len()).saturating_sub(1))]
            }
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
        Ok(Outcome { points, own, against, expected })
    }

    /// Every place of an experiment's sweeps.
    pub fn sweep(&self, plain: &Plain) -> Result<Vec<Point>, ExperimentError> {
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
        grid: &[(String, &Axis, usize)],
        place: &Place,
    ) -> Result<Point, ExperimentError> {
        let settings: Vec<(String, String)> = grid
            .iter()
            .flat_map(|(_, axis, at)| axis.set.iter().map(|name| (name.clone(), axis.values[*at].clone())))
            .collect();
        let key = self.key(plain, &plain.device, &settings);
        let router = self.router(&key)?;
        let mut variables = BTreeMap::new();
        for (name, axis, at) in grid {
            variables.insert(name.clone(), value_of(&axis.values[*at])?);
        }
        if let Some(payload) = &place.payload {
            variables.insert("n".to_string(), payload.parse::<Bytes>().map_err(refused)?.get() as f64);
        }
        for (name, number) in [("range", &place.range)] {
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
        Ok(Point { place: words.join(", "), variables, value, binding })
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
        let key = self.key(plain, &plain.device, &[]);
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
        let (name, parameters) = key;
        let (_, text) = DESIGNS
            .iter()
            .find(|(own, _)| own == name)
            .ok_or_else(|| ExperimentError::Incomplete(format!("names `{name}`, which is no design here")))?;
        let changes = Changes {
            parameters: parameters.iter().cloned().collect(),
            files: WORKLOADS.iter().map(|(name, text)| (name.to_string(), text.to_string())).collect(),
            ..Changes::default()
        };
        let file = format!("designs/{name}.toml");
        let design = Rc::new(Design::parse(text, &file, FilePath::new("."), &changes).map_err(refused)?);
        self.designs.borrow_mut().insert(key.clone(), design.clone());
        Ok(design)
    }

    fn prepared(
        &self,
        plain: &Plain,
        parameters: Vec<(String, String)>,
        key: &SystemKey,
    ) -> Result<Prepared, ExperimentError> {
        let name = plain.design.clone().ok_or_else(|| lacks("design"))?;
        let own = ((name, parameters), key.clone());
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
                key.2.retain(|overlay| !self.overlays.contains(overlay));
            }
            let router = self.router(&key)?;
            let compiled = compile(&design, alternative, &router).map_err(refused)?;
            ready.push(Ready { alternative: alternative.clone(), compiled, router });
        }
        let prepared = Rc::new(((*design).clone(), ready));
        self.prepared.borrow_mut().insert(own, prepared.clone());
        Ok(prepared)
    }
}

/// The place as a point whose value is where it lies: the payload, range or batch that is swept.
fn place_of(points: &[Point], index: usize) -> Point {
    let Some(point) = points.get(index) else {
        let place = "nowhere in the sweep".to_string();
        return Point { place, variables: BTreeMap::new(), value: f64::MAX, binding: None };
    };
    let at = ["range", "batch", "n"].iter().find_map(|name| point.variables.get(*name));
    Point { value: at.copied().unwrap_or(0.0), ..point.clone() }
}

/// A formula's value with a point's variables.
fn evaluate(formula: &str, point: &Point) -> Result<f64, ExperimentError> {
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
fn grid(vary: &BTreeMap<String, Axis>) -> Vec<Vec<(String, &Axis, usize)>> {
    let mut all = vec![Vec::new()];
    for (name, axis) in vary {
        all = all
            .iter()
            .flat_map(|had: &Vec<(String, &Axis, usize)>| {
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

/// One combination of an experiment's lists.
#[derive(Clone, Debug, Default)]
struct Place {
    path: Option<String>,
    verb: Option<String>,
    payload: Option<String>,
    batch: Option<u32>,
    range: Option<String>,
    under_way: Option<u32>,
    number: Option<String>,
    alternative: Option<String>,
    clients: Option<u64>,
}

impl Place {
    fn words(&self) -> String {
        let mut words: Vec<String> = [&self.alternative, &self.path, &self.verb, &self.payload, &self.number]
            .into_iter()
            .flatten()
            .cloned()
            .collect();
        words.extend(self.batch.map(|batch| format!("batch of {batch}")));
        words.extend(self.range.as_ref().map(|range| format!("over {range}")));
        words.extend(self.under_way.map(|count| format!("{count} under way")));
        words.extend(self.clients.map(|count| format!("{count} clients")));
        words.join(" ")
    }
}

fn places(plain: &Plain) -> Vec<Place> {
    fn each<T: Clone>(places: Vec<Place>, values: &[T], set: fn(&mut Place, T)) -> Vec<Place> {
        if values.is_empty() {
            return places;
        }
        places
            .into_iter()
            .flat_map(|place| {
                values.iter().map(move |value| {
                    let mut more = place.clone();
                    set(&mut more, value.clone());
                    more
                })
            })
            .collect()
    }
    let places = vec![Place::default()];
    let places = each(places, &plain.alternative, |place, value| place.alternative = Some(value));
    let places = each(places, &plain.path, |place, value| place.path = Some(value));
    let places = each(places, &plain.verb, |place, value| place.verb = Some(value));
    let places = each(places, &plain.number, |place, value| place.number = Some(value));
    let places = each(places, &plain.payload, |place, value| place.payload = Some(value));
    let places = each(places, &plain.batch, |place, value| place.batch = Some(value));
    let places = each(places, &plain.range, |place, value| place.range = Some(value));
    let places = each(places, &plain.under_way, |place, value| place.under_way = Some(value));
    each(places, &plain.clients, |place, value| place.clients = Some(value))
}

/// One measurement.
struct One<'b> {
    bench: &'b Bench,
    plain: &'b Plain,
    router: Rc<Router>,
    place: &'b Place,
    grid: &'b [(String, &'b Axis, usize)],
    key: SystemKey,
}

type Measured = Result<(f64, Option<String>), ExperimentError>;

impl One<'_> {
    fn payload(&self) -> Result<Bytes, ExperimentError> {
        self.place.payload.as_deref().ok_or_else(|| lacks("payload"))?.parse().map_err(refused)
    }

    /// The routes of a flow: one, or two where a datagram is answered.
    fn routes(&self, path: &str, verb: &str) -> Result<Vec<Route>, ExperimentError> {
        let router = &self.router;
        let path = router.path(path).map_err(refused)?;
        let posting = match self.place.batch {
            None | Some(0) => Posting::Single,
            Some(count) => Posting::Batch(count),
        };
        let access = match &self.place.range {
            Some(range) => Access { range: Some(range.parse().map_err(refused)?), ..Access::UNIFORM },
            None => Access::UNIFORM,
        };
        let payload = self.payload()?;
        let route = |verb: Verb, path: offpath_route::Path| {
            let operation = Operation::new(verb, path, payload).posted(posting).accessing(access);
            router.route(&operation).map_err(refused)
        };
        if verb == "echo" {
            let back = offpath_route::Path {
                requester: path.responder.clone(),
                responder: path.requester.clone(),
                engine: None,
            };
            return Ok(vec![route(Verb::SendDatagram, path)?, route(Verb::SendDatagram, back)?]);
        }
        let verb = [
            Verb::Read,
            Verb::Write,
            Verb::Send,
            Verb::SendDatagram,
            Verb::CompareAndSwap,
            Verb::FetchAndAdd,
        ]
        .into_iter()
        .find(|own| own.name() == verb)
        .ok_or_else(|| ExperimentError::Incomplete(format!("names the verb `{verb}`, which there is not")))?;
        Ok(vec![route(verb, path)?])
    }

    fn own_routes(&self) -> Result<Vec<Route>, ExperimentError> {
        let path = self.place.path.as_deref().ok_or_else(|| lacks("path"))?;
        let verb = self.place.verb.as_deref().ok_or_else(|| lacks("verb"))?;
        self.routes(path, verb)
    }

    /// A route's demand, or its links' alone.
    fn fold(&self, route: &Route) -> Fold {
        let mut fold = Fold::of(route, &self.router);
        self.keep_links(&mut fold);
        fold
    }

    fn keep_links(&self, fold: &mut Fold) {
        if self.bench.links_alone {
            fold.requests.clear();
            let sides = [".up", ".down", ".transmit", ".receive"];
            fold.seconds.retain(|station, _| sides.iter().any(|side| station.ends_with(side)));
        }
    }

    fn latency(&self, router: &Router, routes: &[Route]) -> f64 {
        if self.bench.links_alone {
            let links = |route: &Route| -> f64 {
                let mut route = route.clone();
                route.visits.retain(|visit| matches!(visit, Visit::Delay { .. } | Visit::Train(_)));
                route.latency(router).as_us()
            };
            return routes.iter().map(links).sum();
        }
        match &self.plain.term {
            None => routes.iter().map(|route| route.latency(router).as_us()).sum(),
            Some(term) => routes
                .iter()
                .flat_map(|route| route.unloaded(router).terms)
                .filter(|one| one.label == *term)
                .map(|one| one.time.as_us())
                .sum(),
        }
    }

    fn measure(&self) -> Measured {
        match self.plain.measure {
            Measure::Latency => Ok((self.latency(&self.router, &self.own_routes()?), None)),
            Measure::Rate => self.rate(),
            Measure::Bandwidth => {
                let (rate, binding) = self.rate()?;
                Ok((rate * self.payload()?.get() as f64 * 8.0 / 1e3, binding))
            }
            Measure::Packets => {
                let counted = self.packets()?;
                let (rate, binding) = match &self.plain.at {
                    Some(at) => {
                        let rate: BitRate = at.parse().map_err(refused)?;
                        (rate.as_gbit_per_s() * 1e3 / (self.payload()?.get() as f64 * 8.0), None)
                    }
                    None => self.rate()?,
                };
                Ok((rate * counted, binding))
            }
            Measure::PacketCount => Ok((self.packets()?, None)),
            Measure::Crossings => {
                let routes = self.own_routes()?;
                let ledgers: Vec<_> = routes.iter().map(|route| route.ledger(&self.router)).collect();
                let payload: u64 = routes.iter().map(|route| route.payload.get()).sum();
                let carried: u64 = ledgers
                    .iter()
                    .flat_map(|ledger| &ledger.links)
                    .filter(|(station, _)| self.on_links(station))
                    .map(|(_, packets)| packets.payload.get())
                    .sum();
                Ok((carried as f64 / payload as f64, None))
            }
            Measure::RoundTrips => {
                let crossings = self
                    .own_routes()?
                    .iter()
                    .flat_map(|route| &route.visits)
                    .filter(|visit| matches!(visit, Visit::Cross { .. }))
                    .count();
                Ok((crossings as f64 / 2.0, None))
            }
            Measure::Holds => self.holds(),
            Measure::Number => {
                let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
                let value = self.number(name)?;
                Ok((value / self.plain.per.as_deref().map_or(Ok(1.0), |per| self.number(per))?, None))
            }
            Measure::Cycles => {
                let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
                let clock = self.plain.clock.as_deref().ok_or_else(|| lacks("clock"))?;
                Ok((self.number(name)? * self.number(clock)?, None))
            }
            Measure::Mmios => {
                let mmios = self
                    .own_routes()?
                    .iter()
                    .flat_map(|route| &route.visits)
                    .map(|visit| match visit {
                        Visit::Serve { label, .. } if *label == "post (MMIO)" => 1.0,
                        // One doorbell stands for the whole list.
                        Visit::Serve { label, .. } if *label == "post (doorbell batch)" => {
                            1.0 / f64::from(self.place.batch.unwrap_or(1).max(1))
                        }
                        _ => 0.0,
                    })
                    .sum::<f64>();
                Ok((mmios * f64::from(self.place.batch.unwrap_or(1).max(1)), None))
            }
            Measure::LinkUse => {
                let routes = self.own_routes()?;
                let payload: u64 = routes.iter().map(|route| route.payload.get()).sum();
                let framed: u64 = routes
                    .iter()
                    .flat_map(|route| route.ledger(&self.router).links)
                    .filter(|(station, _)| self.is_pcie(station))
                    .map(|(_, packets)| packets.framed.get())
                    .sum();
                Ok((payload as f64 / framed as f64, None))
            }
            Measure::Loop | Measure::LoopLatency => self.closed_loop(),
            Measure::LoopRate => self.loops(),
            Measure::DesignRate
            | Measure::DesignBandwidth
            | Measure::DesignLatency
            | Measure::DesignHostCpu
            | Measure::DesignNetworkBytes
            | Measure::DesignVerbs
            | Measure::DesignLinkBytes
            | Measure::DesignClients => self.design(),
        }
    }

    fn number(&self, name: &str) -> Result<f64, ExperimentError> {
        let system = self.router.system();
        let number = system.numbers.get(name).ok_or_else(|| {
            ExperimentError::Incomplete(format!("reads `{name}`, which {} does not have", system.device))
        })?;
        Ok(match number.value {
            Quantity::Time(time) => time.as_us(),
            Quantity::BitRate(rate) => rate.as_gbit_per_s(),
            Quantity::OpRate(rate) => rate.as_million_per_s(),
            Quantity::Frequency(frequency) => frequency.hz() as f64 / 1e6,
            other => other.base(),
        })
    }

    /// The links that count: those that are named, else all PCIe links of the server.
    fn on_links(&self, station: &str) -> bool {
        if self.plain.links.is_empty() {
            return self.is_pcie(station);
        }
        self.plain
            .links
            .iter()
            .any(|link| station == link || station.rsplit_once('.').is_some_and(|(of, _)| of == link))
    }

    fn is_pcie(&self, station: &str) -> bool {
        let Some((link, _)) = station.rsplit_once('.') else { return false };
        self.router
            .system()
            .machines
            .iter()
            .filter(|machine| machine.prefix.is_empty())
            .any(|machine| machine.links.iter().any(|own| own.name == link && own.pcie.is_some()))
    }

    fn packets(&self) -> Result<f64, ExperimentError> {
        let packets: u64 = self
            .own_routes()?
            .iter()
            .flat_map(|route| route.ledger(&self.router).links)
            .filter(|(station, _)| self.on_links(station))
            .map(|(_, packets)| packets.data)
            .sum();
        Ok(packets as f64)
    }

    /// How many times the latency holds a number: its growth over the number's.
    fn holds(&self) -> Measured {
        let name = self.place.number.as_deref().ok_or_else(|| lacks("number"))?;
        let step = Time::from_ns(100);
        let Some(Quantity::Time(base)) = self.router.system().numbers.get(name).map(|number| number.value)
        else {
            return Err(ExperimentError::Incomplete(format!(
                "counts `{name}`, which is no time of the profile"
            )));
        };
        let moved = Quantity::Time(base + step);
        let system = self.router.system().with(name, moved).map_err(refused)?;
        let other = Rc::new(Router::new(&system).map_err(refused)?);
        let moved = One {
            bench: self.bench,
            plain: self.plain,
            router: other.clone(),
            place: self.place,
            grid: self.grid,
            key: self.key.clone(),
        };
        let before = self.latency(&self.router, &self.own_routes()?);
        let after = moved.latency(&other, &moved.own_routes()?);
        Ok(((after - before) / step.as_us(), None))
    }

    /// The greatest rate in millions per second, and what binds.
    fn rate(&self) -> Measured {
        if self.plain.together.is_empty() && !self.bench.links_alone {
            let mut demand = Demand::default();
            for route in self.own_routes()? {
                demand.add(&route.demand(&self.router));
            }
            let (rate, station) =
                demand.capacity(&self.router).ok_or_else(|| refused("nothing bounds this operation"))?;
            return Ok((rate / 1e6, Some(self.router.stations()[station.index()].name.clone())));
        }
        let mut problem = stations(&self.router, None);
        let own = self.place.path.iter().map(|path| Flow { path: path.clone(), ..Flow::default() }).collect();
        let flows = if self.plain.together.is_empty() { own } else { self.plain.together.clone() };
        for (index, flow) in flows.iter().enumerate() {
            problem.activities.push(activity(&index.to_string(), &self.flow(flow)?));
        }
        let names: Vec<String> = (0..flows.len()).map(|index| index.to_string()).collect();
        let (objective, counted): (Objective, Option<&String>) = match self.plain.sharing {
            Sharing::Most => (Objective::Throughput, None),
            Sharing::Shares => {
                let shares = names
                    .iter()
                    .zip(&flows)
                    .map(|(name, flow)| (name.clone(), flow.share.unwrap_or(1.0 / names.len() as f64)));
                (Objective::Shares(shares.collect()), None)
            }
            Sharing::InOrder => (Objective::Greedy(names.clone()), None),
            Sharing::LastInOrder => (Objective::Greedy(names.clone()), names.last()),
        };
        let solution = problem.solve(&objective).map_err(refused)?;
        let binding = solution.binding.first().map(|binding| binding.constraint.to_string());
        let rate = match counted {
            None => solution.total,
            Some(name) => solution.rates.get(name).copied().unwrap_or(0.0),
        };
        Ok((rate / 1e6, binding))
    }

    fn flow(&self, flow: &Flow) -> Result<Fold, ExperimentError> {
        let verb = flow.verb.as_deref().or(self.place.verb.as_deref()).ok_or_else(|| lacks("verb"))?;
        let mut fold = Fold::default();
        for route in self.routes(&flow.path, verb)? {
            fold.add(&self.fold(&route), 1.0);
        }
        Ok(fold)
    }

    fn closed_loop(&self) -> Measured {
        let under_way = self.place.under_way.ok_or_else(|| lacks("under_way"))?;
        let verb = |flow: Option<&Flow>| -> Result<String, ExperimentError> {
            let own = flow.and_then(|flow| flow.verb.as_deref()).or(self.place.verb.as_deref());
            Ok(own.ok_or_else(|| lacks("verb"))?.to_string())
        };
        let mut mix = Vec::new();
        if self.plain.together.is_empty() {
            for route in self.own_routes()? {
                mix.push((Rc::new(route), 1.0));
            }
        }
        for flow in &self.plain.together {
            for route in self.routes(&flow.path, &verb(Some(flow))?)? {
                mix.push((Rc::new(route), flow.share.unwrap_or(1.0)));
            }
        }
        let router = &self.router;
        let latency_s = mix.iter().map(|(route, _)| route.latency(router).as_seconds()).fold(0.0, f64::max);
        let requesters = mix
            .iter()
            .filter_map(|(route, _)| router.machine_of(&route.path.requester))
            .map(|machine| router.system().machines[machine].count)
            .max()
            .unwrap_or(1);
        let in_flight = under_way * u32::try_from(requesters).unwrap_or(u32::MAX);
        let span = |times: f64| Time::from_ps((latency_s * times * 1e12) as u64);
        let seen = run_load(
            router,
            &Load {
                mix,
                arrivals: Arrivals::Closed { in_flight },
                warm_up: span(20.0),
                window: span(200.0),
                seed: Seed::new(1),
                faults: None,
            },
        )
        .map_err(refused)?;
        let value = match self.plain.measure {
            Measure::LoopLatency => seen
                .latencies
                .mean()
                .map(Time::as_us)
                .ok_or_else(|| refused("no request ended in the window"))?,
            _ => seen.throughput_per_s * self.payload()?.get() as f64 * 8.0 / 1e9,
        };
        Ok((value, None))
    }

    /// The first flow's rate where every flow keeps its own requests under way.
    fn loops(&self) -> Measured {
        let mut mix = Vec::new();
        for flow in &self.plain.together {
            let verb = flow.verb.as_deref().or(self.place.verb.as_deref()).ok_or_else(|| lacks("verb"))?;
            let under_way = flow.under_way.ok_or_else(|| lacks("under_way"))?;
            let mut routes = self.routes(&flow.path, verb)?;
            let (Some(route), true) = (routes.pop(), routes.is_empty()) else {
                return Err(ExperimentError::Incomplete(
                    "loops over `echo`, which is two operations".to_string(),
                ));
            };
            mix.push((Rc::new(route), f64::from(under_way)));
        }
        let total: f64 = mix.iter().map(|(_, count)| count).sum();
        let slowest = mix.iter().map(|(route, _)| {
            let capacity =
                route.demand(&self.router).capacity(&self.router).map_or(f64::INFINITY, |(rate, _)| rate);
            route.latency(&self.router).as_seconds().max(total / capacity)
        });
        let turn = slowest.fold(0.0, f64::max);
        let span = |times: f64| Time::from_ps((turn * times * 1e12) as u64);
        let load = Load {
            mix,
            arrivals: Arrivals::Loops,
            warm_up: span(4.0),
            window: span(12.0),
            seed: Seed::new(1),
            faults: None,
        };
        let seen = run_load(&self.router, &load).map_err(refused)?;
        let first = seen.completed_of.first().copied().unwrap_or(0);
        Ok((first as f64 / load.window.as_seconds() / 1e6, None))
    }

    fn design(&self) -> Measured {
        let mut parameters: BTreeMap<String, String> = self.plain.parameters.clone();
        for (_, axis, at) in self.grid {
            parameters.extend(axis.parameter.iter().map(|name| (name.clone(), axis.values[*at].clone())));
        }
        let prepared = self.bench.prepared(self.plain, parameters.into_iter().collect(), &self.key)?;
        let (design, ready) = &*prepared;
        let named = |name: &str| -> Result<&Ready, ExperimentError> {
            ready.iter().find(|one| one.alternative.name == name).ok_or_else(|| {
                ExperimentError::Incomplete(format!(
                    "names `{name}`, which is no alternative of {}",
                    design.name
                ))
            })
        };
        let alternative = self.place.alternative.as_deref();
        let fold = |name: &str| -> Result<Fold, ExperimentError> {
            let one = named(name)?;
            Ok(one.compiled.fold(&one.router))
        };
        let own = || alternative.ok_or_else(|| lacks("alternative")).and_then(fold);
        match self.plain.measure {
            Measure::DesignLatency => Ok((own()?.latency * 1e6, None)),
            Measure::DesignHostCpu => {
                Ok((own()?.seconds.get("host.cpu").copied().unwrap_or(0.0) * 1e6, None))
            }
            Measure::DesignNetworkBytes => {
                let shares = self.shares(design, ready)?.0;
                let mut bytes = 0.0;
                for (name, share) in &shares {
                    bytes += share * fold(name)?.network_bytes;
                }
                Ok((bytes, None))
            }
            Measure::DesignVerbs => {
                let one = named(alternative.ok_or_else(|| lacks("alternative"))?)?;
                Ok((one.compiled.payloads().count() as f64, None))
            }
            Measure::DesignLinkBytes => {
                let one = named(alternative.ok_or_else(|| lacks("alternative"))?)?;
                Ok((
                    one.compiled
                        .routes()
                        .map(|route| {
                            route
                                .ledger(&one.router)
                                .links
                                .iter()
                                .filter(|(station, _)| self.on_links(station))
                                .map(|(_, packets)| packets.payload.get() as f64)
                                .sum::<f64>()
                        })
                        .sum(),
                    None,
                ))
            }
            Measure::DesignClients => {
                let clients = self.place.clients.ok_or_else(|| lacks("clients"))?;
                let (shares, _, _) = self.shares(design, ready)?;
                let used: Vec<&Ready> = shares.keys().map(|name| named(name)).collect::<Result<_, _>>()?;
                let weights: Vec<f64> = shares.values().copied().collect();
                let slowest =
                    used.iter().map(|one| one.compiled.fold(&one.router).latency).fold(0.0, f64::max);
                let span = |times: f64| Time::from_ps((slowest * times * 1e12) as u64);
                let clients = DesignArrivals::Closed(u32::try_from(clients).unwrap_or(u32::MAX));
                let loaded =
                    load(&used, &weights, clients, span(20.0), span(100.0), Seed::new(1).child("clients"))
                        .map_err(refused)?;
                Ok((loaded.throughput.mean * bits(design)? / 1e9, None))
            }
            _ => {
                let (_, total, binding) = self.shares(design, ready)?;
                let value = match self.plain.measure {
                    Measure::DesignBandwidth => total * bits(design)? / 1e9,
                    _ => total / 1e6,
                };
                Ok((value, binding))
            }
        }
    }

    /// The shares of the alternative or mix that is asked for, its greatest rate, and what binds.
    #[allow(clippy::type_complexity)]
    fn shares(
        &self,
        design: &Design,
        ready: &[Ready],
    ) -> Result<(BTreeMap<String, f64>, f64, Option<String>), ExperimentError> {
        let main = ready
            .iter()
            .find(|one| match self.place.alternative.as_deref() {
                Some(name) => one.alternative.name == name,
                None => one.alternative.device.is_none(),
            })
            .ok_or_else(|| lacks("alternative"))?;
        let mut problem = stations(&main.router, design.host_cpu_share);
        let known: BTreeSet<&str> = ready.iter().map(|one| one.alternative.name.as_str()).collect();
        for one in ready.iter().filter(|one| Rc::ptr_eq(&one.router, &main.router)) {
            let mut fold = one.compiled.fold(&one.router);
            self.keep_links(&mut fold);
            problem.activities.push(activity(&one.alternative.name, &fold));
        }
        let objective = match (self.place.alternative.as_deref(), self.plain.mix.as_deref()) {
            (Some(name), None) => Objective::Shares(BTreeMap::from([(name.to_string(), 1.0)])),
            (None, Some("optimal")) => {
                problem.activities.retain(|activity| {
                    ready.iter().any(|one| one.alternative.name == activity.name && one.alternative.mixed)
                });
                Objective::Throughput
            }
            (None, Some(name)) => {
                let mix = design.mixes.iter().find(|mix| mix.name == name).ok_or_else(|| {
                    ExperimentError::Incomplete(format!("names `{name}`, which is no mix of {}", design.name))
                })?;
                Objective::Greedy(mix.fill.clone())
            }
            (None, None) if !self.plain.shares.is_empty() => {
                if let Some(stranger) = self.plain.shares.keys().find(|name| !known.contains(name.as_str())) {
                    return Err(ExperimentError::Incomplete(format!(
                        "shares `{stranger}`, which is no alternative"
                    )));
                }
                Objective::Shares(self.plain.shares.clone())
            }
            _ => {
                return Err(ExperimentError::Incomplete(
                    "needs one of `alternative`, `mix`, `shares`".to_string(),
                ));
            }
        };
        let solution = problem.solve(&objective).map_err(refused)?;
        let shares = solution.shares.into_iter().filter(|(_, share)| *share > 1e-9).collect();
        let binding = solution.binding.first().map(|binding| binding.constraint.to_string());
        Ok((shares, solution.total, binding))
    }
}

fn bits(design: &Design) -> Result<f64, ExperimentError> {
    let unit =
        design.unit.ok_or_else(|| refused(format!("design {} counts requests, not bytes", design.name)))?;
    Ok(unit.get() as f64 * 8.0)
}

impl Bench {
    /// What a profile holds where a row names a number of it, and whether it is what was published.
    pub fn configured(&self, number: &crate::row::ProfileValue) -> Result<(String, bool), ExperimentError> {
        let key: SystemKey = (number.device.clone(), None, self.overlays.clone(), Vec::new());
        let router = self.router(&key)?;
        let Some(held) = router.system().numbers.get(&number.name) else {
            return Err(ExperimentError::Incomplete(format!(
                "reads `{}`, which {} does not have",
                number.name, number.device
            )));
        };
        let published = Quantity::parse(&number.value, held.value.dimension()).map_err(refused)?;
        Ok((held.value.to_string(), held.value.base() == published.base()))
    }
}
