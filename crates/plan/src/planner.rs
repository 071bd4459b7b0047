//! The plan: what each alternative reaches alone, the greedy and the best mix, what binds them,
//! and the confidence of that.

use crate::confidence::{self, Doubt, Influence, Mechanism, Ranged};
use crate::design::{Alternative, CacheUse, Design, Objective, Runs};
use crate::implemented;
use crate::program::{Compiled, Fold, compile};
use crate::residual::Lesson;
use crate::rests::{Basis, Rest};
use crate::solve::{self, Part, evaluate, host_seconds, main_router};
use crate::{published, shipped};
use offpath_capacity::{Binding, CapacityError, Constraint, Solution};
use offpath_profile::{Library, System, SystemRequest};
use offpath_quantity::{Quantity, Time};
use offpath_route::{Router, StationKind};
use offpath_twin::Seed;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// One alternative by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// Its name.
    pub name: String,
    /// What it does.
    pub description: String,
    /// The device that it runs on, where it is not the design's.
    pub device: Option<String>,
    /// Whether mixes may use it.
    pub mixed: bool,
    /// Requests per second.
    pub rate: Ranged,
    /// Unloaded latency in seconds.
    pub latency_s: Ranged,
    /// The station or limit that binds.
    pub binding: String,
    /// What it stands for.
    pub meaning: String,
    /// Why, in a few words.
    pub reason: String,
    /// How well its rate is known.
    pub basis: Basis,
    /// How well its latency is known.
    pub latency_basis: Basis,
    /// In which share of the draws it runs: of these its intervals are.
    pub runs_in: f64,
    /// What its rate rests on, the heaviest first.
    pub rests_on: Vec<Rest>,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
    /// Payload bytes over the network a request.
    pub network_bytes: f64,
    /// What a request asks of the stations.
    pub demand: Fold,
}

/// A constraint that binds a mix, with what more of it would bring.
#[derive(Clone, Debug, PartialEq)]
pub struct Bound {
    /// What binds.
    pub name: String,
    /// What it stands for.
    pub meaning: String,
    /// Gain in percent from 10% more of it.
    pub gain_percent: Option<f64>,
    /// Whether it is the load that was asked for, and no resource.
    pub is_load: bool,
}

/// A mix of alternatives.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Its name: `greedy`, `optimal`, or the design's.
    pub name: String,
    /// Requests per second.
    pub rate: Ranged,
    /// Shares by alternative, the largest first.
    pub shares: Vec<(String, f64)>,
    /// What binds it.
    pub bounds: Vec<Bound>,
    /// Whether in-flight slots are among what binds it. They are held for as long as was seen at this mix, and for longer
    /// or less where there is more of something.
    pub slots_bind: bool,
    /// Mean unloaded latency in seconds.
    pub latency_s: f64,
    /// Host processor seconds a request.
    pub host_cpu_s: f64,
    /// Payload bytes over the network a request.
    pub network_bytes: f64,
    /// Whether no other mix is as good. Where others are, the one with the least mean latency is taken.
    pub unique: bool,
    /// The least and the greatest share of each alternative in mixes that carry as much to a thousandth, as the plan
    /// solves it; empty where this mix is the only one, or where something else than throughput is sought.
    pub as_good: BTreeMap<String, (f64, f64)>,
    /// The alternatives of it that the design's latency bound forbids: one of the design's own mixes may have such.
    pub beyond_bound: Vec<String>,
}

impl Mix {
    /// The alternatives that it takes more than half a percent of, by name.
    pub fn composition(&self) -> Vec<String> {
        solve::made_of(self.shares.iter().map(|(name, share)| (name, share)))
    }
}

/// How sure the best mix is.
#[derive(Clone, Debug, PartialEq)]
pub struct Recommendation {
    /// How well its rate is known.
    pub basis: Basis,
    /// What its rate rests on, the heaviest first.
    pub rests_on: Vec<Rest>,
    /// Draws of the joint sample.
    pub draws: usize,
    /// In which share of the draws the recommended set is the best: no mix beats one of it by more than a hundredth,
    /// and none of fewer alternatives carries as much to a hundredth and is as quick to a twentieth.
    pub best_in: f64,
    /// In which share of the draws it is, and a mix without one of it is as good and as quick to a twentieth: which of them is
    /// named decides nothing there. None where that is not so with the numbers as they are.
    pub matched_in: Option<f64>,
    /// The same of the draws with the base mechanism, and of those with the others that the evidence leaves open;
    /// none where there are none. How many draws each gets is a choice, and no evidence.
    pub best_in_by_mechanism: Option<(f64, f64)>,
    /// The sets of alternatives that were the best mix's, with their shares of the draws: the recommended one wherever
    /// none beats it by more than a hundredth.
    pub best_sets: Vec<(Vec<String>, f64)>,
    /// Of each share of the best mix, in the order of the alternatives, its intervals.
    pub shares: Vec<(String, Ranged)>,
    /// The best mix over each alternative alone, on the card or on another device such as a plain NIC.
    pub over: Vec<Over>,
    /// In which share of the draws the stations carry the load that was asked for.
    pub carried_in: f64,
    /// In which share of the draws each alternative of the best mix runs: of these the intervals of its shares are.
    pub runs_in: f64,
    /// In which share of the draws each also keeps the latency bound; none where the design has none.
    pub keeps_bound_in: Option<f64>,
    /// In which share of the draws, widened as the rate's interval is, the very shares that are recommended carry the load
    /// that was asked for, or where none was, the rate that is printed.
    pub shares_carry_in: f64,
    /// Whether past errors are in that: not where one fitted alternative is the whole mix.
    pub is_widened: bool,
    /// For which cards the errors speak by which the best mix's worth is widened.
    pub lesson: Lesson,
    /// For which cards those speak by which any figure of the plan is.
    pub lessons: BTreeSet<Lesson>,
}

/// The best mix beside an alternative alone.
#[derive(Clone, Debug, PartialEq)]
pub struct Over {
    /// The alternative.
    pub name: String,
    /// The device that it runs on, where that is another than the design's.
    pub device: Option<String>,
    /// Whether that is a NIC without processors of its own.
    pub is_plain: bool,
    /// The mix's rate over the alternative's.
    pub ratio: Ranged,
    /// In which share of the draws, widened as the ratio's interval is, the mix is the faster.
    pub faster_in: f64,
}

/// A plan without the twin's cross-check.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The alternatives, as the design lists them.
    pub alternatives: Vec<Alone>,
    /// The design's named mixes.
    pub mixes: Vec<Mix>,
    /// The greedy combination.
    pub greedy: Mix,
    /// The order in which greedy filled.
    pub greedy_order: Vec<String>,
    /// The best mix for the objective.
    pub optimal: Mix,
    /// Its worth by the design's goal: requests per second, seconds of the host's processors a request, or
    /// seconds of mean unloaded latency.
    pub worth: Ranged,
    /// How sure that mix is.
    pub recommendation: Recommendation,
    /// What uncertain numbers do, the strongest first.
    pub influences: Vec<Influence>,
    /// What the cache holds.
    pub cache: Option<CacheUse>,
    /// Servers of each station over all its instances.
    pub servers: BTreeMap<String, f64>,
}

/// Why a row is not evidence of a system that something was changed of.
pub(crate) const AS_SHIPPED: &str = "measured the system as it is shipped";

/// Why there is no plan.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PlanError {
    /// No alternative may take part.
    #[error("no alternative may be used: {reason}")]
    #[diagnostic(help("relax the constraint, or describe an alternative that keeps it"))]
    NothingAllowed {
        /// Why.
        reason: String,
    },
    /// The stations cannot carry it.
    #[error(transparent)]
    #[diagnostic(help("{}", remedy(.0)))]
    Capacity(#[from] CapacityError),
}

fn remedy(error: &CapacityError) -> &'static str {
    match error {
        CapacityError::LoadTooHigh { .. } => "leave `--goal` and `--load` out to see what can be carried",
        CapacityError::Duplicate { .. } => "name each once",
        _ => "every alternative needs a step that takes time at a station",
    }
}

/// The systems that a design's alternatives run on.
#[derive(Clone, Debug)]
pub struct Setting {
    /// The library that devices are taken from.
    pub library: Library,
    /// Overlays by name.
    pub overlays: Vec<String>,
    /// Settings as the user wrote them.
    pub settings: Vec<String>,
    /// The overlay of a mechanism that the evidence leaves open. It is applied after the settings, so that
    /// none of these makes half of it another mechanism.
    pub mechanism: Option<String>,
    /// Another testbed than the design's.
    pub testbed: Option<String>,
    /// Another mode than the design's.
    pub mode: Option<String>,
}

impl Setting {
    /// Systems as a design names them, with nothing changed.
    pub fn plain(library: Library) -> Setting {
        Setting {
            library,
            overlays: Vec::new(),
            settings: Vec::new(),
            mechanism: None,
            testbed: None,
            mode: None,
        }
    }

    /// Loads `device` for a design. Of overlays and settings, another device takes what speaks of numbers that both
    /// have: a testbed's or a client's. Its own numbers of the same name are others. A mechanism of the design's card
    /// is none of another that does not name it.
    pub fn system(&self, design: &Design, device: &str) -> Result<System, miette::Report> {
        let own = device == design.device;
        let concerns = |overlay: &str| self.library.concerns(overlay, &design.device, device);
        let mut overlays = Vec::new();
        for overlay in &self.overlays {
            if concerns(overlay)? {
                overlays.push(overlay.as_str());
            }
        }
        let last = match self.mechanism.as_deref() {
            Some(mechanism) if concerns(mechanism)? => Some(mechanism),
            _ => None,
        };
        let loaded = self.library.load(&SystemRequest {
            device,
            testbed: self.testbed.as_deref().or(design.testbed.as_deref()),
            mode: if own { self.mode.as_deref().or(design.mode.as_deref()) } else { None },
            overlays,
            settings: design.set.iter().chain(&self.settings).cloned().collect(),
            last,
            beside: (!own).then_some(design.device.as_str()),
        });
        let (name, text) = &design.source;
        let places = design.set.iter().zip(&design.set_at);
        let system = loaded.map_err(|error| {
            let error =
                places.fold(error, |error, (setting, at)| error.standing_in(setting, name, text, at.clone()));
            match design.mode_at.clone().filter(|_| self.mode.is_none()) {
                Some(at) => error.of_mode_in(
                    name,
                    text,
                    at,
                    format!(
                        "`offpath compare {name} --device {device}` plans what of it this device runs; or name a device that has \
                         the mode"
                    ),
                ),
                None => error,
            }
        })?;
        Ok(System { host_share: design.host_cpu_share.filter(|share| *share > 0.0), ..system })
    }
}

impl Setting {
    /// Whether the system is another one than the published rows about a design measured: than a shipped design's, on
    /// the profiles as they are shipped; of a design of one's own, than without what is asked for beside it.
    ///
    /// # Errors
    /// Where a profile is refused.
    pub fn is_other_system(&self, design: &Design) -> Result<bool, miette::Report> {
        let is_asked = !self.overlays.is_empty()
            || !self.settings.is_empty()
            || self.testbed.is_some()
            || self.mode.is_some();
        let plain = |library: &Library| Setting {
            mechanism: self.mechanism.clone(),
            ..Setting::plain(library.clone())
        };
        let measured = match shipped::design(&design.name) {
            None if !is_asked => return Ok(false),
            None => plain(&self.library).system(design, &design.device)?,
            Some(text) => {
                let Some(measured) = published::on_its_system(design, text) else { return Ok(true) };
                let is_same = (&measured.device, &measured.testbed, &measured.mode, &measured.set)
                    == (&design.device, &design.testbed, &design.mode, &design.set);
                if is_same && !is_asked && self.library.is_builtin() {
                    return Ok(false);
                }
                plain(&Library::builtin()).system(&measured, &measured.device)?
            }
        };
        let own = self.system(design, &design.device)?;
        // A file that has the shipped numbers under the shipped name is the shipped card.
        if own.device != measured.device {
            return Ok(true);
        }
        let values = |system: &System| -> Vec<(String, Quantity)> {
            system.numbers.iter().map(|(name, number)| (name.clone(), number.value)).collect()
        };
        let is_same = values(&own) == values(&measured) && own.scales == measured.scales;
        Ok(own.mode != measured.mode || !is_same)
    }
}

/// An alternative ready to be run.
#[derive(Clone, Debug)]
pub struct Ready {
    /// The alternative.
    pub alternative: Alternative,
    /// Its programs.
    pub compiled: Compiled,
    /// The routes of its system.
    pub router: Arc<Router>,
}

/// Compiles every alternative of a design on its system.
pub fn prepare(design: &Design, setting: &Setting) -> Result<Vec<Ready>, miette::Report> {
    prepare_by(design, setting, &implemented::observe)
}

/// The same, and finds out which estimates of the design the times of an application's code are made of:
/// the code is followed once more for each.
pub fn prepare_named(design: &Design, setting: &Setting) -> Result<Vec<Ready>, miette::Report> {
    prepare_by(design, setting, &implemented::observe_named)
}

/// The same of a design whose choices of the whole deployment may still be open: it says what compiles, and no mix of it is
/// one.
pub(crate) fn prepare_any(design: &Design, setting: &Setting) -> Result<Vec<Ready>, miette::Report> {
    compiled_by(design, setting, &implemented::observe)
}

type Follow<'f> = &'f dyn Fn(
    &Design,
    &Alternative,
    &Arc<Router>,
) -> Result<Option<implemented::Observation>, miette::Report>;

fn prepare_by(design: &Design, setting: &Setting, follow: Follow<'_>) -> Result<Vec<Ready>, miette::Report> {
    if let Some(choice) = design.open_for_all() {
        return Err(miette::miette!(
            help = format!(
                "`offpath plan` searches it; `--parameter {}={}` fixes it",
                choice.name, choice.values[0]
            ),
            "the choice `{}` of the whole deployment is open, and a mix of its values is no deployment",
            choice.name
        ));
    }
    compiled_by(design, setting, follow)
}

fn compiled_by(design: &Design, setting: &Setting, follow: Follow<'_>) -> Result<Vec<Ready>, miette::Report> {
    let mut routers: BTreeMap<String, Arc<Router>> = BTreeMap::new();
    let mut ready = Vec::new();
    for alternative in &design.alternatives {
        let device = alternative.device.clone().unwrap_or_else(|| design.device.clone());
        let router = match routers.get(&device) {
            Some(router) => router.clone(),
            None => {
                let system =
                    setting.system(design, &device).map_err(|error| design.about_device(&device, error))?;
                if device == design.device {
                    design.check_against(&system)?;
                }
                let router = Arc::new(Router::new(&system).map_err(|error| miette::miette!("{error}"))?);
                routers.insert(device, router.clone());
                router
            }
        };
        let observed = follow(design, alternative, &router)?;
        let one = ready_as(design, alternative, observed, router)?;
        implemented::check_bytes(design, alternative, &one)?;
        ready.push(one);
    }
    if setting.is_other_system(design)? {
        let rows = ready.iter_mut().flat_map(|one| &mut one.alternative.rows);
        rows.for_each(|(_, objection)| *objection = objection.or(Some(AS_SHIPPED)));
    }
    Ok(ready)
}

/// Compiles one alternative for a system: what its code is seen to do there where it has code, else
/// its step lists. Unlike [`prepare`] it does not find out which estimates the code's times are made of.
pub fn make_ready(
    design: &Design,
    alternative: &Alternative,
    router: Arc<Router>,
) -> Result<Ready, miette::Report> {
    let observed = implemented::observe(design, alternative, &router)?;
    ready_as(design, alternative, observed, router)
}

fn ready_as(
    design: &Design,
    alternative: &Alternative,
    observed: Option<implemented::Observation>,
    router: Arc<Router>,
) -> Result<Ready, miette::Report> {
    let alternative = observed.map_or_else(|| alternative.clone(), |observed| observed.alternative);
    let compiled = compile(design, &alternative, &router)?;
    let fold = compiled.fold(&router);
    if !fold.seconds.values().chain(fold.requests.values()).any(|asked| *asked > 0.0) {
        return Err(design.about_alternative(
            &alternative,
            format!(
                "`{}` keeps nothing busy, so that nothing bounds how many of it there are",
                alternative.name
            ),
            "give it a step that takes a processor's time or moves bytes",
        ));
    }
    Ok(Ready { alternative, compiled, router })
}

/// The mix that the design's system runs, by demands that are added up: shares by alternative, the
/// largest first.
pub fn shares_run(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
) -> Result<Vec<(String, f64)>, miette::Report> {
    if let Runs::Alternative(name) = &design.runs {
        return Ok(vec![(name.clone(), 1.0)]);
    }
    let seen = evaluate(design, &Part::all(ready), folds, false)?;
    let solution = match &design.runs {
        Runs::Best | Runs::Alternative(_) => Some(seen.optimal),
        Runs::Greedy => Some(seen.greedy),
        Runs::Mix(name) => {
            let index = design.mixes.iter().position(|mix| mix.name == *name);
            index.and_then(|index| seen.mixes.into_iter().nth(index))
        }
    };
    let solution =
        solution.ok_or_else(|| miette::miette!("the mix `{}` is not in the design", design.runs.name()))?;
    Ok(solve::shares(&solution))
}

/// Requests per second that the stations carry at fixed shares; 0 where a limit leaves nothing.
pub fn capacity_at(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    shares: &[(String, f64)],
) -> Result<f64, miette::Report> {
    Ok(solve::at_fixed(design, &Part::all(ready), folds, shares)?.total)
}

/// Plans a design whose alternatives demand `folds`, observed or added up.
///
/// The intervals are those of one joint sample that `seed` decides, over every number that is known as an
/// interval and over the mechanisms in `open` beside that of `ready`, widened by what past predictions of
/// the kind were wrong by ([`crate::residual`]).
pub fn plan(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    open: &[Mechanism],
    seed: Seed,
) -> Result<Plan, miette::Report> {
    plan_doubted(design, ready, folds, None, open, None, seed)
}

/// [`plan`] of a mix of which the twin carried something else.
pub(crate) fn plan_doubted(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    shares: Option<&[(String, f64)]>,
    open: &[Mechanism],
    doubt: Option<&Doubt<'_>>,
    seed: Seed,
) -> Result<Plan, miette::Report> {
    let parts = Part::all(ready);
    let main = main_router(&parts)?;
    let mut seen = evaluate(design, &parts, folds, true)?;
    // Which mix has the lowest tail the twin has found; adding up tells the least mean latency alone.
    if let (Objective::LowestP99 { load }, Some(shares)) = (design.objective, shares)
        && solve::shares(&seen.optimal) != shares
    {
        seen.optimal = solve::at_load(solve::at_fixed(design, &parts, folds, shares)?, load);
    }
    let sure = confidence::confidence(design, ready, folds, &seen, open, doubt, seed)?;
    let alternatives = ready
        .iter()
        .enumerate()
        .zip(sure.rests)
        .map(|((index, one), rests_on)| {
            let binding = seen.alone[index].binding.first().map(|b| b.constraint.clone());
            Alone {
                name: one.alternative.name.clone(),
                description: one.alternative.description.clone(),
                device: one.alternative.device.clone(),
                mixed: one.alternative.mixed,
                rate: sure.alone[index],
                latency_s: sure.latency[index],
                binding: binding.as_ref().map_or_else(|| "nothing".to_string(), ToString::to_string),
                meaning: binding.as_ref().map_or_else(String::new, |c| meaning(c, &one.router)),
                reason: binding.map_or_else(String::new, |c| reason(&c, &one.router, &folds[index].alone())),
                basis: sure.basis[index],
                latency_basis: sure.latency_basis[index],
                runs_in: sure.runs[index],
                rests_on,
                host_cpu_s: host_seconds(&folds[index], &one.router),
                network_bytes: folds[index].network_bytes,
                demand: folds[index].clone(),
            }
        })
        .collect();
    let mix = |name: &str, solution: &Solution, rate: Ranged| {
        let beyond_bound = solve::beyond_bound(design, &parts, folds, &solve::shares(solution));
        Mix { beyond_bound, ..mix(name, solution, rate, &parts, folds, main) }
    };
    Ok(Plan {
        mixes: design
            .mixes
            .iter()
            .zip(&seen.mixes)
            .zip(&sure.mixes)
            .map(|((named, solution), rate)| mix(&named.name, solution, *rate))
            .collect(),
        greedy: mix("greedy", &seen.greedy, sure.greedy),
        greedy_order: seen.order.clone(),
        optimal: Mix { as_good: seen.as_good.clone(), ..mix("optimal", &seen.optimal, sure.optimal) },
        worth: sure.worth,
        recommendation: Recommendation {
            basis: sure.mix_basis,
            rests_on: sure.mix_rests,
            draws: crate::sample::DRAWS,
            best_in: sure.recommended_best,
            matched_in: sure.matched,
            best_in_by_mechanism: sure.best_by_mechanism,
            best_sets: sure.best_sets,
            shares: ready.iter().map(|one| one.alternative.name.clone()).zip(sure.shares).collect(),
            over: ready
                .iter()
                .zip(&sure.over)
                .map(|(one, (ratio, faster_in))| {
                    let (name, device) = (one.alternative.name.clone(), one.alternative.device.clone());
                    let is_plain = one.router.system().mode == "nic";
                    Over { name, device, is_plain, ratio: *ratio, faster_in: *faster_in }
                })
                .collect(),
            carried_in: sure.carried,
            runs_in: sure.mix_runs,
            keeps_bound_in: sure.mix_keeps_bound,
            shares_carry_in: sure.shares_carry,
            is_widened: sure.is_widened,
            lesson: sure.lesson,
            lessons: sure.lessons,
        },
        alternatives,
        influences: sure.influences,
        cache: design.cache.clone(),
        servers: main
            .stations()
            .iter()
            .map(|s| (s.name.clone(), s.servers() as f64))
            .filter(|(_, n)| *n > 0.0)
            .collect(),
    })
}

fn mix(
    name: &str,
    solution: &Solution,
    rate: Ranged,
    parts: &[Part<'_>],
    folds: &[Fold],
    router: &Router,
) -> Mix {
    let shares = solve::shares(solution);
    let mean = |value: &dyn Fn(usize) -> f64| solve::mean_of(&shares, parts, value);
    let bound = |binding: &Binding| Bound {
        name: binding.constraint.to_string(),
        meaning: meaning(&binding.constraint, router),
        gain_percent: binding.gain_percent_for_10_percent_more,
        is_load: binding.constraint == Constraint::Load,
    };
    let mut bounds: Vec<Bound> = solution.binding.iter().map(bound).collect();
    // A mix without prices has them by name.
    let gain = |bound: &Bound| bound.gain_percent.unwrap_or(f64::NEG_INFINITY);
    bounds.sort_by(|a, b| gain(b).total_cmp(&gain(a)));
    Mix {
        name: name.to_string(),
        rate,
        bounds,
        slots_bind: solve::slots_bind(router, solution),
        latency_s: mean(&|index| folds[index].latency),
        host_cpu_s: mean(&|index| host_seconds(&folds[index], parts[index].router)),
        network_bytes: mean(&|index| folds[index].network_bytes),
        unique: solution.unique,
        as_good: BTreeMap::new(),
        beyond_bound: Vec::new(),
        shares,
    }
}

fn meaning(constraint: &Constraint, router: &Router) -> String {
    let station = match constraint {
        Constraint::Station(name) | Constraint::PoolShared(name) => Some(name),
        Constraint::PoolReserved { pool, .. } => Some(pool),
        _ => None,
    };
    station
        .and_then(|name| router.station(name))
        .map_or_else(|| constraint.to_string(), |id| router.stations()[id.index()].meaning.to_string())
}

/// Why a constraint binds, in a few words.
fn reason(constraint: &Constraint, router: &Router, fold: &Fold) -> String {
    match constraint {
        Constraint::Station(name) => {
            let Some(id) = router.station(name) else { return name.clone() };
            let station = &router.stations()[id.index()];
            let time = Time::from_seconds(fold.seconds.get(name).copied().unwrap_or(0.0));
            match station.kind {
                StationKind::Line => format!("{time} a request"),
                _ => format!("{time} a request, {} at once", station.servers()),
            }
        }
        Constraint::PoolShared(pool) | Constraint::PoolReserved { pool, .. } => {
            let asked: f64 = fold.requests.iter().filter(|((name, _), _)| name == pool).map(|(_, n)| n).sum();
            format!("{asked:.1} packets a request")
        }
        other => other.to_string(),
    }
}

/// A design of one alternative `a` with these steps, for tests.
#[cfg(test)]
pub(crate) fn of_steps(steps: &str) -> Result<(Design, Vec<Ready>), miette::Report> {
    let text = format!(
        "[design]\nname = \"t\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
         rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [ {steps} ]\n"
    );
    let design = Design::parse(&text, "t.toml", std::path::Path::new("."), &Default::default())?;
    let ready = prepare(&design, &Setting::plain(Library::builtin()))?;
    Ok((design, ready))
}
