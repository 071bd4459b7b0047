//! The numbers that a plan may rest on, and what a plan's demands are when some of them are moved.
//!
//! What a figure rests on is found by moving numbers and looking at the figure, never by their names: the
//! same way for a card that nobody has described yet.

use crate::design::{Alternative, Design};
use crate::estimate::Estimate;
use crate::planner::{Ready, make_ready};
use crate::program::{Fold, compile};
use crate::solve::{Part, payload_of};
use offpath_profile::{Number, Provenance};
use offpath_quantity::{Dimension, Quantity};
use offpath_route::Router;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a guess of waits is grouped under, which are no station's.
pub const WAITS: &str = "waits";

/// How a number came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// As its profile says.
    Profile(Provenance),
    /// The user gives it, in the design or by a setting.
    Yours,
    /// The design gives it, and says that nobody who knows the system did.
    Assumed,
    /// It is no number but how the card works, which the evidence leaves open.
    Mechanism,
}

impl Origin {
    /// Whether nothing was measured or described of this very device.
    pub fn is_guess(self) -> bool {
        match self {
            Origin::Profile(provenance) => provenance.is_guess(),
            Origin::Assumed | Origin::Mechanism => true,
            Origin::Yours => false,
        }
    }

    /// Whether it is said of the user's own system, whoever said it.
    pub fn is_of_user(self) -> bool {
        matches!(self, Origin::Yours | Origin::Assumed)
    }

    /// Its name on screens and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Profile(provenance) => provenance.name(),
            Origin::Yours => "your estimate",
            Origin::Assumed => Provenance::Assumed.name(),
            Origin::Mechanism => "open mechanism",
        }
    }
}

/// A number that a plan may rest on: one of a profile, wherever the systems of a plan have it, or an
/// estimate of the design.
///
/// Machines that carry the same card share its numbers, and so do the systems of two devices where their
/// clients are the same: such a number is one, and it is moved everywhere at once.
#[derive(Clone, Debug)]
pub struct Factor {
    /// Its dotted name, as in `soc.read_latency`; with the device in front where only another device than
    /// the design's has it, as in `connectx6:nic.inflight_slots`. An estimate has its place in the design file.
    pub id: String,
    /// The value that the plan uses.
    pub value: Quantity,
    /// The interval that it is known within, where one is stated.
    pub interval: Option<(Quantity, Quantity)>,
    /// The profile's value that it was set in place of.
    pub replaced: Option<Quantity>,
    /// How it is known.
    pub origin: Origin,
    /// The evidence rows that it follows from.
    pub rows: Vec<String>,
    /// What a reader should know about it.
    pub note: String,
    /// The names that it has in each system; none has an estimate of the design.
    names: Vec<Vec<String>>,
    /// The stations whose work it says, or that it is a wait, where the user writes it in a step and gives it neither a name nor
    /// an interval. Who guesses several such numbers is wrong about all of them alike.
    pub(crate) guessed_of: Option<String>,
    /// Whether it says how often something happens: what is drawn of it says the same of how often that does not happen.
    pub(crate) is_share: bool,
    /// Whether it says how much is done: 1 of it is an amount like any other, and no flag.
    pub(crate) is_work: bool,
}

impl Factor {
    /// Whether it is exact: a fact of a data sheet without an interval.
    pub fn is_fact(&self) -> bool {
        self.origin == Origin::Profile(Provenance::Datasheet) && !self.is_open()
    }

    /// Whether nobody measured it: a guess of a profile, or a number of the user's.
    pub fn is_doubted(&self) -> bool {
        self.origin.is_guess() || self.origin == Origin::Yours
    }

    /// Whether evidence fixes it.
    pub fn is_evidence(&self) -> bool {
        matches!(
            self.origin,
            Origin::Profile(Provenance::Fitted | Provenance::Measured | Provenance::MeasuredHere)
        )
    }

    /// Whether the design gives it.
    pub fn is_estimate(&self) -> bool {
        self.names.is_empty()
    }

    /// The names that it has in the system at a position.
    pub(crate) fn names(&self, system: usize) -> &[String] {
        self.names.get(system).map_or(&[], Vec::as_slice)
    }

    /// Whether an interval is stated that leaves room.
    pub fn is_open(&self) -> bool {
        self.interval.is_some_and(|(low, high)| low != high)
    }
}

/// A design's alternatives with the systems that they run on and the demands that were observed of them.
pub(crate) struct Base<'a> {
    pub design: &'a Design,
    systems: Vec<&'a Router>,
    /// The system of each alternative.
    of: Vec<usize>,
    alternatives: Vec<&'a Alternative>,
    observed: &'a [Fold],
    /// The demands added up with every number at its value.
    added: Vec<Fold>,
    /// Of each alternative, the seconds that its payload alone asks of each station; none where that is not known.
    payload: Vec<Option<BTreeMap<String, f64>>>,
}

/// The systems of a design with some numbers moved, and the demands of the alternatives that run there.
pub(crate) struct Moved {
    /// None where the numbers make no system.
    systems: Vec<Option<Router>>,
    /// The places of the alternatives that run, in the design's order.
    runs: Vec<usize>,
    /// What these demand, in the same order.
    pub folds: Vec<Fold>,
}

impl<'a> Base<'a> {
    pub fn new(design: &'a Design, ready: &'a [Ready], observed: &'a [Fold]) -> Base<'a> {
        let mut systems: Vec<&'a Arc<Router>> = Vec::new();
        let mut of = Vec::new();
        // The design's own device comes first, so that its names are the ones that are shown.
        let own = ready.iter().filter(|one| one.alternative.device.is_none());
        for one in own.chain(ready) {
            if !systems.iter().any(|known| Arc::ptr_eq(known, &one.router)) {
                systems.push(&one.router);
            }
        }
        for one in ready {
            of.extend(systems.iter().position(|known| Arc::ptr_eq(known, &one.router)));
        }
        let added: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let ideal: Vec<Option<Router>> =
            systems.iter().map(|router| Router::new(&router.system().without_headers()).ok()).collect();
        let payload = (0..ready.len()).map(|index| {
            let bare = ideal[of[index]]
                .as_ref()
                .and_then(|ideal| Some(compile(design, &ready[index].alternative, ideal).ok()?.fold(ideal)));
            bare.map(|bare| bare.seconds)
        });
        Base {
            design,
            payload: payload.collect(),
            of,
            systems: systems.into_iter().map(|router| &**router).collect(),
            alternatives: ready.iter().map(|one| &one.alternative).collect(),
            added,
            observed,
        }
    }

    /// The least that the payload of an alternative can ask of a wire of whose time all of it
    /// asks `drawn` seconds with some numbers moved. Smaller headers make no payload faster, so it never falls
    /// below what the payload asks with every number at its value, unless all of it does.
    pub fn payload_seconds(&self, alternative: &str, wire: &str, drawn: f64) -> f64 {
        let Some(alternative) = self.alternatives.iter().position(|one| one.name == alternative) else {
            return drawn;
        };
        let whole = self.observed[alternative].seconds.get(wire).copied().unwrap_or(0.0);
        match self.payload[alternative].as_ref().and_then(|seconds| seconds.get(wire)) {
            Some(bare) => payload_of(drawn, whole, *bare),
            None => drawn,
        }
    }

    /// The alternatives with the systems as they are.
    pub fn parts(&self) -> Vec<Part<'_>> {
        let parts = self.alternatives.iter().zip(&self.of);
        parts.map(|(alternative, system)| Part { alternative, router: self.systems[*system] }).collect()
    }

    /// The alternatives that run with the systems as `moved` has them.
    pub fn moved_parts<'m>(&'m self, moved: &'m Moved) -> Vec<Part<'m>> {
        let part = |index: &usize| {
            let router = moved.systems[self.of[*index]].as_ref()?;
            Some(Part { alternative: self.alternatives[*index], router })
        };
        moved.runs.iter().filter_map(part).collect()
    }

    /// Every number of the systems and every estimate of the design, in the order of names.
    pub fn factors(&self) -> Vec<Factor> {
        let mut factors = factors_of(&self.systems);
        factors.retain(|one| !one.names(0).iter().any(|name| self.design.chosen_sets.contains(name)));
        // What the user's design says of sizes and numbers is the question, and no guess, unless the user gives
        // an interval. What it says that work takes, how fast it goes or how often something happens is a guess of
        // the user's in any case, also where it is planned at other values besides.
        let guessed = |one: &Estimate| match one.value.dimension() {
            Dimension::Time | Dimension::BitRate | Dimension::OpRate | Dimension::Frequency => true,
            // What does nothing is no guess of how much is done.
            Dimension::Ratio => {
                one.is_work && !one.is_count && one.value.base() != 0.0 || one.value.base().fract() != 0.0
            }
            Dimension::Bytes | Dimension::Count => false,
        };
        let is_open = |one: &&Estimate| one.low.is_some() || guessed(one);
        let open = self.design.estimates().iter().filter(is_open);
        let station_of = |one: &Estimate| {
            let is_unnamed = one.id.starts_with("alternative.") && one.low == one.high;
            let works = self.added.iter().flat_map(|fold| &fold.estimated);
            let stations = works.filter(|(_, estimates)| estimates.contains_key(&one.id));
            let stations: BTreeSet<&str> = stations.map(|(station, _)| station.as_str()).collect();
            let stations: Vec<&str> = stations.into_iter().collect();
            // A wait is no station's, and who guesses several guesses them alike too.
            let is_time = one.value.dimension() == Dimension::Time;
            let whose =
                if stations.is_empty() && is_time { WAITS.to_string() } else { stations.join(" and ") };
            // How often something happens is not how long it takes, whoever guesses both.
            let is_work = one.value.dimension() != Dimension::Ratio;
            Some(whose).filter(|whose| is_unnamed && is_work && !whose.is_empty())
        };
        factors.extend(open.map(|one| Factor {
            guessed_of: station_of(one),
            is_share: one.is_share,
            is_work: one.is_work && !one.is_count,
            id: one.id.to_string(),
            value: one.value,
            interval: one.low.zip(one.high),
            replaced: None,
            origin: match one.is_assumed {
                true => Origin::Assumed,
                false => Origin::Yours,
            },
            rows: Vec::new(),
            note: String::new(),
            names: Vec::new(),
        }));
        factors.sort_by(|a, b| a.id.cmp(&b.id));
        factors
    }

    /// The design with some numbers moved. Demands that were observed are scaled by what the move does to
    /// the added-up ones, since a run for each draw would take minutes. Where an application's code was
    /// followed, an estimate moves the times of its steps, and not what else the code might do.
    ///
    /// What the numbers refuse of one alternative, as a message above a packet, is no reason for another not to run.
    pub fn at(&self, moves: &[(&Factor, Quantity)]) -> Moved {
        let systems: Vec<Option<Router>> =
            (0..self.systems.len()).map(|system| self.system_at(system, moves).ok()).collect();
        // What is refused of the design as a whole, as objects that outgrow its cache, is refused of each.
        let Ok(design) = self.design_at(moves) else {
            return Moved { systems, runs: Vec::new(), folds: Vec::new() };
        };
        let ratios: BTreeMap<&str, f64> = moves
            .iter()
            .filter(|(factor, _)| factor.is_estimate() && factor.value.base() > 0.0)
            .map(|(factor, value)| (factor.id.as_str(), value.base() / factor.value.base()))
            .collect();
        let fold = |index: usize| {
            let (alternative, router) = (self.alternatives[index], systems[self.of[index]].as_ref()?);
            let moved = design.as_ref().map(|design| {
                let own = design.alternatives.iter().find(|own| own.name == alternative.name);
                match own.filter(|_| alternative.code.is_none()) {
                    Some(own) => own.clone(),
                    None => alternative.with_times(&ratios),
                }
            });
            let design = design.as_ref().unwrap_or(self.design);
            let after = compile(design, moved.as_ref().unwrap_or(alternative), router).ok()?.fold(router);
            Some(rescaled(&self.observed[index], &self.added[index], &after))
        };
        let folds = (0..self.alternatives.len()).filter_map(|index| Some((index, fold(index)?)));
        let (runs, folds) = folds.unzip();
        Moved { systems, runs, folds }
    }

    /// The design with some numbers moved, of the alternatives that run there, ready to be planned as it is then: code is
    /// followed again.
    pub fn ready_at(&self, moves: &[(&Factor, Quantity)]) -> Result<(Design, Vec<Ready>), miette::Report> {
        let systems: Vec<Option<Arc<Router>>> =
            (0..self.systems.len()).map(|system| self.system_at(system, moves).ok().map(Arc::new)).collect();
        let design = self.design_at(moves)?.unwrap_or_else(|| self.design.clone());
        let ready = self.alternatives.iter().enumerate().filter_map(|(index, given)| {
            let own = design.alternatives.iter().find(|own| own.name == given.name);
            let own = own.expect("no number renames one");
            make_ready(&design, own, systems[self.of[index]].clone()?).ok()
        });
        let ready: Vec<Ready> = ready.collect();
        let runs = ready.iter().map(|one| one.alternative.name.clone());
        let design = match ready.len() == self.alternatives.len() {
            true => design,
            false => design.with_only(&runs.collect()),
        };
        Ok((design, ready))
    }

    fn system_at(&self, index: usize, moves: &[(&Factor, Quantity)]) -> Result<Router, miette::Report> {
        let named = moves
            .iter()
            .flat_map(|(factor, value)| factor.names(index).iter().map(move |name| (name.as_str(), *value)));
        let system = self.systems[index].system().with_all(named)?;
        Router::new(&system).map_err(|error| miette::miette!("{error}"))
    }

    /// The design with those that are estimates of it moved, where any is.
    fn design_at(&self, moves: &[(&Factor, Quantity)]) -> Result<Option<Design>, miette::Report> {
        let estimates: BTreeMap<String, Quantity> = moves
            .iter()
            .filter(|(factor, _)| factor.is_estimate())
            .map(|(factor, value)| (factor.id.clone(), *value))
            .collect();
        (!estimates.is_empty()).then(|| self.design.with_estimates(&estimates)).transpose()
    }
}

/// Every number of some systems, in the order of names.
pub(crate) fn factors_of(systems: &[&Router]) -> Vec<Factor> {
    let mut found: BTreeMap<(&str, &str), Factor> = BTreeMap::new();
    for (index, router) in systems.iter().enumerate() {
        // How many machines take part is part of the question, not of what is known.
        let roles = router.system().machines.iter();
        let setup: Vec<String> = roles
            .flat_map(|machine| ["count", "available"].map(|key| format!("{}.{key}", machine.role)))
            .collect();
        for (name, number) in &router.system().numbers {
            if setup.contains(name) {
                continue;
            }
            let Number { file, key, value, low, high, provenance, rows, note, replaced, .. } = &**number;
            let factor = found.entry((file, key)).or_insert_with(|| Factor {
                id: String::new(),
                value: *value,
                interval: (*low).zip(*high),
                replaced: *replaced,
                origin: match provenance {
                    Provenance::Set => Origin::Yours,
                    known => Origin::Profile(*known),
                },
                rows: rows.clone(),
                note: note.clone(),
                names: vec![Vec::new(); systems.len()],
                guessed_of: None,
                is_share: false,
                is_work: false,
            });
            factor.names[index].push(name.clone());
        }
    }
    let mut factors: Vec<Factor> = found.into_values().collect();
    for factor in &mut factors {
        // Of the machines that share a number, the server's names have no role in front.
        let first =
            factor.names.iter().position(|names| !names.is_empty()).expect("it was found in a system");
        let shortest = factor.names[first].iter().min_by_key(|name| (name.len(), name.as_str()));
        let shortest = shortest.expect("it has a name there");
        factor.id = match first {
            0 => shortest.clone(),
            _ => format!("{}:{shortest}", systems[first].system().device),
        };
    }
    factors.sort_by(|a, b| a.id.cmp(&b.id));
    factors
}

fn rescaled(observed: &Fold, before: &Fold, after: &Fold) -> Fold {
    let scale = |observed: f64, before: f64, after: f64| {
        if before > 0.0 { observed * after / before } else { observed + after }
    };
    fn all<K: Ord + Clone>(
        observed: &BTreeMap<K, f64>,
        before: &BTreeMap<K, f64>,
        after: &BTreeMap<K, f64>,
        scale: impl Fn(f64, f64, f64) -> f64,
    ) -> BTreeMap<K, f64> {
        let at = |map: &BTreeMap<K, f64>, key: &K| map.get(key).copied().unwrap_or(0.0);
        // What was observed and is not added up stays as it was observed; what is added up no more, as banks that a cache
        // stands before now, may be no station there.
        let is_gone = |key: &K| before.contains_key(key) && !after.contains_key(key);
        let keys: BTreeSet<&K> = observed.keys().chain(after.keys()).filter(|key| !is_gone(key)).collect();
        keys.into_iter()
            .map(|key| (key.clone(), scale(at(observed, key), at(before, key), at(after, key))))
            .collect()
    }
    let is_there = |name: &&String| after.seconds.contains_key(*name) || !before.seconds.contains_key(*name);
    let held = observed.slots_alone.iter().filter(|(name, _)| is_there(name)).map(|(name, seconds)| {
        let of = |fold: &Fold| fold.seconds.get(name).copied().unwrap_or(0.0);
        (name.clone(), scale(*seconds, of(before), of(after)))
    });
    Fold {
        slots_alone: held.collect(),
        seconds: all(&observed.seconds, &before.seconds, &after.seconds, scale),
        requests: all(&observed.requests, &before.requests, &after.requests, scale),
        latency: scale(observed.latency, before.latency, after.latency),
        network_bytes: after.network_bytes,
        estimated: after.estimated.clone(),
        background: scale(observed.background, before.background, after.background),
    }
}
