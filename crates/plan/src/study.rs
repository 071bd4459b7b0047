//! Everything that a plan says of a design, computed in one place: the checked plan, what a change brought,
//! the open mechanisms, the values of a varied parameter, few clients, latency over load, advice.
//!
//! Every solution that it prints takes the same path: observed on the idle twin, solved, run under load and solved
//! again. So a mechanism that is printed at a rate has that rate when it is planned by itself, and a change
//! that changes nothing changes no digit. The ends of sensitivities are told by shorter windows, which tell to a percent,
//! and take that path only where they would name another set.

use crate::advice::{self, Advised, Depth, TrialBench};
use crate::check::{
    self, CheckedPlan, Chosen, Gap, LoadPoint, Settled, demands, plan_and_check, settle, settle_alone,
    settle_counting,
};
use crate::choices::{Margin, Search, margins, search};
use crate::confidence::{Influence, Mechanism};
use crate::design::{Changes, Design, Objective};
use crate::factor::{Base, Factor, Origin};
use crate::implemented::{self, Agreement};
use crate::planner::{AS_SHIPPED, Plan, PlanError, Ready, Setting, prepare, prepare_named};
use crate::program::Fold;
use crate::sample::Drawn;
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, evaluate, mean_of};
use crate::traffic::Traffic;
use offpath_apps::system::DeclaredCacheUse;
use offpath_profile::{EngineWork, Provenance, ScaledNumber, System};
use offpath_quantity::Quantity;
use offpath_route::{Path as RoutePath, Responder, Transport, Verb, Visit};
use offpath_twin::{Interval, Seed};
use std::collections::{BTreeMap, BTreeSet};

/// What a study is asked to look at.
#[derive(Clone, Copy)]
pub struct Ask<'a> {
    /// The design, whatever was changed in it when it was read.
    pub design: &'a Design,
    /// What is changed in it.
    pub changes: &'a Changes,
    /// The systems that it runs on.
    pub setting: &'a Setting,
    /// The seed of every draw.
    pub seed: Seed,
    /// Whether latency over load is drawn.
    pub curve: bool,
}

/// A settled solution of a design on one system, without intervals.
#[derive(Clone, Debug, PartialEq)]
pub struct Solved {
    /// The best mix's requests per second.
    pub rate: f64,
    /// Its shares, the largest first.
    pub shares: Vec<(String, f64)>,
    /// Payload bytes over the network a request of it.
    pub network_bytes: f64,
    /// Requests per second of the greedy mix.
    pub greedy: f64,
    /// Of each alternative alone: its name, requests per second and what binds.
    pub alternatives: Vec<(String, f64, String)>,
    /// Requests per second of each named mix.
    pub mixes: Vec<(String, f64)>,
    /// Whether it settled.
    pub settled: bool,
    /// Where the twin carries something else, or confirms nothing.
    pub gap: Option<Gap>,
}

/// What overlays and settings changed.
#[derive(Clone, Debug, PartialEq)]
pub struct Changed {
    /// The numbers that differ: name, before, after.
    pub numbers: Vec<(String, Quantity, Quantity)>,
    /// The plan without the changes, or why there is none.
    pub before: Result<Solved, String>,
}

/// The plan under a mechanism that the evidence leaves open.
#[derive(Clone, Debug, PartialEq)]
pub struct Variant {
    /// The overlay that holds it.
    pub overlay: String,
    /// What it says.
    pub description: String,
    /// The plan under it, or why there is none.
    pub solved: Result<Solved, String>,
}

/// The plan at each value of the parameter that the design varies.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The parameter.
    pub parameter: String,
    /// Its values with the plans, or why there is none.
    pub rows: Vec<(f64, Result<Solved, String>)>,
}

/// What to measure next: what narrows the plan most.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// An estimate of the design, by its place there, which decides so much of the mix by its interval.
    Narrow {
        /// Its name.
        number: String,
        /// Its part of what the mix rests on, from 0 to 1.
        weight: f64,
    },
    /// A number of the user's that no draw moved, since it has no interval.
    Undrawn {
        /// Its name.
        number: String,
        /// How many others are one guess with it.
        with: usize,
        /// Their part of what the mix rests on, from 0 to 1.
        weight: f64,
        /// Whether it is a number of a profile that was set, which takes an interval in a profile alone.
        is_set: bool,
    },
    /// A number with an interval that somebody stated: of several the one that moves the mix most first.
    Numbers(Vec<Influence>),
    /// Numbers move the mix, but what past predictions were wrong by is so much of its interval that none narrows it.
    Errors,
    /// Nothing uncertain moves the mix: what binds it.
    Bound(String),
    /// Nor does anything bind it.
    Mix,
}

impl Next {
    /// Whoever narrows what moves a figure by less learns nothing by it.
    const TELLS: f64 = 0.01;
    /// The part of a mix from which on a number of the user's comes before all others.
    const DECIDES: f64 = 0.1;

    fn of(plan: &Plan, system: &System) -> Next {
        let yours = plan.recommendation.rests_on.iter().filter(|rest| rest.origin == Origin::Yours);
        let tells = yours.filter(|rest| {
            rest.drawn != Drawn::Interval || rest.moves >= Next::TELLS && narrows(plan, rest.moves.ln_1p())
        });
        let heaviest = tells.max_by(|a, b| a.weight.total_cmp(&b.weight));
        if let Some(rest) = heaviest.filter(|rest| rest.weight >= Next::DECIDES) {
            let (number, weight) = (rest.number.clone(), rest.weight);
            let is_set = system.numbers.contains_key(&number);
            return match rest.drawn == Drawn::Interval {
                true => Next::Narrow { number, weight },
                false => Next::Undrawn { number, with: rest.with.len(), weight, is_set },
            };
        }
        let worth = |at: Option<f64>| at.unwrap_or(f64::INFINITY);
        let moved = |one: &Influence| (worth(one.at_low) / worth(one.at_high)).ln().abs();
        let tells = |one: &&Influence| {
            let narrows = moved(one) >= Next::TELLS && narrows(plan, moved(one) / 2.0);
            one.is_stated && (one.changes.is_some() || narrows)
        };
        let numbers: Vec<Influence> = plan.influences.iter().filter(tells).cloned().collect();
        match numbers.is_empty() {
            false => Next::Numbers(numbers),
            true if plan.influences.iter().any(|one| moved(one) >= Next::TELLS) => Next::Errors,
            true => match plan.optimal.bounds.iter().find(|bound| !bound.is_load) {
                Some(bound) => Next::Bound(bound.name.clone()),
                None => Next::Mix,
            },
        }
    }
}

/// Whether the interval of a plan's worth is narrower, by as much as tells, once it is known what moves it to either side
/// by this logarithm: what past predictions were wrong by stays, and independent parts add up by their squares.
fn narrows(plan: &Plan, moved: f64) -> bool {
    let (low, high) = plan.worth.range_80;
    let half = (high / low).ln() / 2.0;
    // Of a number that is drawn evenly between its ends 80% reach as far as this.
    let own = 0.8 * moved;
    !half.is_finite() || own >= half || 1.0 - (1.0 - (own / half).powi(2)).sqrt() >= Next::TELLS
}

/// Everything that a plan says of a design.
pub struct Study {
    /// The design.
    pub design: Design,
    /// The system of its own device.
    pub system: System,
    /// How every number of the systems that it runs on is known, by file and key.
    pub known: BTreeMap<(String, String), Provenance>,
    /// The plan, cross-checked.
    pub checked: CheckedPlan,
    /// Whether the system is another one than the published rows about the design measured
    /// ([`Setting::is_other_system`]).
    pub is_other_system: bool,
    /// What overlays and settings changed, where there are any.
    pub changed: Option<Changed>,
    /// The plan under each open mechanism.
    pub variants: Vec<Variant>,
    /// The plan at each value of a varied parameter, where the design varies one.
    pub sweep: Option<Sweep>,
    /// Throughput with few clients, by alternative and named mix.
    pub clients: Vec<(String, Vec<Interval>)>,
    /// Latency over load, where it was asked for.
    pub curve: Vec<LoadPoint>,
    /// How far step lists are from the code that was planned, where code was.
    pub code: Option<Agreement>,
    /// What was found of the choices that the design leaves open; none where it leaves none.
    pub search: Option<Search>,
    /// The choices of its requests that the best mix takes, with what comes next by the plan's own demands.
    pub margins: Vec<Margin>,
    /// Changes of the design that gain.
    pub advised: Advised,
    /// The steps that nothing published is about, each with its alternative.
    pub without_evidence: Vec<(String, Verb, RoutePath)>,
    /// Whether some alternative has messages, which wait in a receive queue of so many places.
    pub has_messages: bool,
    /// Whether messages go over RC between machines, whose acknowledgements no model has on the ports.
    pub has_reliable_messages: bool,
    /// Whether a processor posts to an engine that is not beside it, which costs it what it costs the engine's own.
    pub posts_to_others_engines: bool,
    /// What a request of the best mix moves.
    pub traffic: Traffic,
    /// What to measure next.
    pub next: Next,
    /// What the design asks of its system that its author may not have meant.
    pub notes: Vec<String>,
}

/// One solution to be made: a design on the systems of a setting.
struct Job<'a> {
    design: &'a Design,
    setting: Setting,
    chosen: Chosen<'a>,
}

impl Study {
    /// Studies a design with what is changed in it.
    ///
    /// # Errors
    /// Where the design or a profile is refused, where nothing may be mixed, and where the stations do not
    /// carry the load that was asked for ([`PlanError::Capacity`]).
    pub fn of(ask: &Ask<'_>) -> Result<Study, miette::Report> {
        let design = ask.design.changed(ask.changes)?;
        let search = search(&design, ask.changes, ask.setting, &|design| design)?;
        // At another value of a parameter another deployment may be the best.
        let varied = varied(&design, ask, search.as_ref())?;
        let searched = search.as_ref().map(|search| Ask { changes: &search.changes, ..*ask });
        let ask = searched.as_ref().unwrap_or(ask);
        let design = if search.is_some() { ask.design.changed(ask.changes)? } else { design };
        let by_code = Changes { steps: false, ..ask.changes.clone() };
        if ask.changes.steps && ask.design.changed(&by_code)?.application.is_none() {
            return Err(miette::miette!(
                help = "leave `--steps` out",
                "`--steps` has no effect: the design names no application, so its step lists are what is planned"
            ));
        }
        let ready = prepare_named(&design, ask.setting)?;
        let system = system_of(&ready);
        let plain = Setting { overlays: vec![], settings: vec![], ..ask.setting.clone() };
        let changes = !ask.setting.overlays.is_empty() || !ask.setting.settings.is_empty();
        let variants: Vec<&(String, String)> =
            system.variants.iter().filter(|(name, _)| !ask.setting.overlays.contains(name)).collect();

        // The design as it is, then without the changes, then on each open mechanism, then at each other value.
        // The lowest tail takes a search: variants and other values are told by their least mean latency.
        let added = Chosen::Added;
        let mut jobs = vec![Job { design: &design, setting: ask.setting.clone(), chosen: Chosen::Best }];
        if changes {
            jobs.push(Job { design: &design, setting: plain.clone(), chosen: Chosen::Best });
        }
        for (name, _) in &variants {
            let mechanism = Some(name.clone());
            let setting = Setting { mechanism, ..ask.setting.clone() };
            jobs.push(Job { design: &design, setting, chosen: added });
        }
        let is_searched = matches!(design.objective, Objective::LowestP99 { .. });
        let own_value = design.sweep.as_ref().and_then(|(parameter, _)| design.parameters.get(parameter));
        let is_own = |value: &f64| !is_searched && own_value == Some(value);
        jobs.extend(varied.iter().filter(|(value, _)| !is_own(value)).map(|(_, design)| Job {
            design,
            setting: ask.setting.clone(),
            chosen: added,
        }));
        let settled = side_by_side(jobs.len(), |index| settled(&jobs[index], ask.seed));
        let mut settled = settled.into_iter();
        let mut next = || settled.next().expect("every job has an answer");

        let (own, as_it_is) = next()?;
        let before = changes.then(|| next().map(|(_, solved)| solved).map_err(words));
        let (mut mechanisms, mut open) = (Vec::new(), Vec::new());
        for (index, (overlay, description)) in variants.into_iter().enumerate() {
            let answer = next();
            let job = &jobs[1 + usize::from(changes) + index];
            // What is refused under a mechanism has no plan there, and no draws.
            let Ok(ready) = prepare_named(&design, &job.setting) else {
                let solved = answer.map(|(_, solved)| solved).map_err(words);
                open.push(Variant { overlay: overlay.clone(), description: description.clone(), solved });
                continue;
            };
            // Where it does not carry the load, its draws say so too.
            let added = || ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
            let (folds, solved) = match answer {
                Ok((settled, solved)) => (settled.folds, Ok(solved)),
                Err(error) if !error.is::<PlanError>() => return Err(error),
                Err(error) => (added(), Err(words(error))),
            };
            mechanisms.push(Mechanism { name: overlay.clone(), ready, folds });
            open.push(Variant { overlay: overlay.clone(), description: description.clone(), solved });
        }
        let mut rows = Vec::new();
        for (value, _) in &varied {
            let solved = match is_own(value) {
                true => Ok(as_it_is.clone()),
                false => next().map(|(_, solved)| solved).map_err(words),
            };
            rows.push((*value, solved));
        }
        let sweep = design.sweep.as_ref().map(|(parameter, _)| Sweep { parameter: parameter.clone(), rows });

        let directory = design.directory();
        let advise = |settled: &Settled| {
            let bench = TrialBench::new(&design.source.0, directory, ask.changes, ask.setting, ask.seed);
            advice::advise_on(&bench, &design.source.1, Depth::Promising, Some(settled))
        };
        // Advice asks for the settled mix alone, and where one of the two has a single run left, the other has more.
        let settled = own.clone();
        let (checked, advised) = std::thread::scope(|scope| {
            let advised = scope.spawn(|| advise(&settled));
            let planned = || {
                let mut checked = plan_and_check(&design, &ready, own, &mechanisms, ask.seed)?;
                plan_ends(&design, &ready, &mut checked, ask.seed)?;
                Ok::<_, miette::Report>(checked)
            };
            (planned(), advised.join())
        });
        let checked = checked?;
        let changed = match before {
            Some(before) => Some(Changed { numbers: differences(&design, &plain, &system)?, before }),
            None => None,
        };
        let clients = match design.clients.is_empty() {
            true => Vec::new(),
            false => check::few_clients(&design, &ready, &checked.plan, ask.seed)?,
        };
        let curve = match ask.curve {
            true => check::curve(&design, &ready, &checked.plan, ask.seed)?,
            false => Vec::new(),
        };
        let code = implemented::agreement(&design, &ready, &checked.plan)?;
        let advised = advised.unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        let mut notes = short_of_machines(&ready);
        notes.extend(unmeasured(&ready));
        notes.extend(system.mode_note().map(str::to_string));
        notes.extend(open_mechanisms(&design, ask, &system));
        notes.extend(own_machines(&design, ask)?);
        notes.extend(code.as_ref().and_then(Agreement::warning));
        notes.extend(unfilled(&design, &checked.plan.optimal.composition()));
        let margins = margins(&design, &ready, &checked.settled.folds, &checked.plan.optimal.shares);
        let numbers = ready.iter().flat_map(|one| one.router.system().numbers.values());
        let known = numbers.map(|one| ((one.file.clone(), one.key.clone()), one.provenance)).collect();
        Ok(Study {
            traffic: Traffic::of(&ready, &checked.plan.optimal.shares),
            next: Next::of(&checked.plan, &system),
            without_evidence: without_evidence(&ready),
            has_messages: has_message(&ready, |_, _| true),
            has_reliable_messages: has_message(&ready, |transport, crosses| {
                transport == Transport::Reliable && crosses
            }),
            posts_to_others_engines: posts_to_others_engines(&ready),
            is_other_system: ask.setting.is_other_system(&design)?,
            notes,
            margins,
            system,
            known,
            checked,
            changed,
            variants: open,
            sweep,
            clients,
            curve,
            code,
            advised,
            design,
            search: search.clone(),
        })
    }
}

/// The steps that nothing published is about, each with its alternative.
pub(crate) fn without_evidence(ready: &[Ready]) -> Vec<(String, Verb, RoutePath)> {
    let of = |one: &Ready| {
        let unknown = one.compiled.routes().filter(|route| !route.is_published);
        unknown
            .map(|route| (one.alternative.name.clone(), route.verb, route.path.clone()))
            .collect::<Vec<_>>()
    };
    ready.iter().flat_map(of).collect()
}

/// Whether some alternative has such a message, by its transport and whether it leaves its machine.
fn has_message(ready: &[Ready], is_such: impl Fn(Transport, bool) -> bool) -> bool {
    ready.iter().flat_map(|one| one.compiled.routes()).any(|route| {
        let row = route.verb.row();
        let crosses = route.visits.iter().any(|visit| matches!(visit, Visit::Cross { .. }));
        row.responder == Responder::Receives && is_such(row.transport, crosses)
    })
}

/// Whether some alternative asks an engine that stores from another processor than the engine's own: others are posted to by that.
fn posts_to_others_engines(ready: &[Ready]) -> bool {
    ready.iter().any(|one| {
        let system = one.router.system();
        one.compiled.routes().any(|route| {
            let asks = route.path.engine.as_ref().zip(system.endpoint(&route.path.requester).ok());
            asks.is_some_and(|(engine, (machine, requester))| {
                let engine = machine.engine(engine);
                engine.is_ok_and(|engine| {
                    engine.work == EngineWork::Store && engine.endpoint != requester.processor.name
                })
            })
        })
    })
}

/// Steps that reach more machines than the system has: several copies go to one.
fn short_of_machines(ready: &[Ready]) -> Vec<String> {
    let mut found = BTreeSet::new();
    for one in ready {
        let system = one.router.system();
        for call in one.compiled.programs.iter().flat_map(|(_, program)| program.calls()) {
            let Ok((machine, _)) = system.endpoint(&call.operation.path.responder) else { continue };
            if u64::from(call.to) > machine.count {
                let (role, count, to) = (&machine.role, machine.count, call.to);
                let more = match machine.available >= u64::from(to) {
                    true => format!("`--set {role}.count={to}` makes them as many"),
                    false => format!("the testbed has {} at most", machine.available),
                };
                found.insert(format!(
                    "`to = {to}` on `{}`: {count} `{role}` {} part, so some get several; {more}",
                    call.operation.path,
                    if count == 1 { "takes" } else { "take" },
                ));
            }
        }
    }
    found.into_iter().collect()
}

/// That a mix counts on a cache into which none of its parts brings a record, by what the application declares.
fn unfilled(design: &Design, mix: &[String]) -> Option<String> {
    let declared = design.application.as_ref()?.system.about.alternatives;
    let of_mix = design.alternatives.iter().filter(|one| mix.contains(&one.name));
    let parts = of_mix.map(|one| {
        let code = one.code.as_ref()?;
        let own = declared.iter().find(|own| own.label == code.alternative)?;
        Some((one.name.as_str(), code.hit_ratio, own.cache))
    });
    // What no code is known of may fill it.
    let parts: Vec<(&str, f64, DeclaredCacheUse)> = parts.collect::<Option<_>>()?;
    if parts.iter().any(|(.., cache)| *cache == DeclaredCacheUse::Filled) {
        return None;
    }
    let looks = parts.iter().filter(|(_, hits, cache)| *cache == DeclaredCacheUse::Looked && *hits > 0.0);
    let looks: Vec<String> =
        looks.map(|(name, hits, _)| format!("`{name}` on {:.1}% of hits", hits * 100.0)).collect();
    let fills = declared.iter().filter(|one| one.cache == DeclaredCacheUse::Filled);
    let fills: Vec<&str> = fills.map(|one| one.label).collect();
    (!looks.is_empty()).then(|| {
        format!(
            "the mix counts on a cache that no part of it fills, {}: {}; else have it hold the hottest from the start, as `--warm` \
             of `offpath run` does",
            looks.join(" and "),
            match fills.is_empty() {
                true => "no alternative of the application brings records in".to_string(),
                false => format!("{} brings records in where it takes some of the requests", fills.join(" or ")),
            }
        )
    })
}

/// Rows that fix an alternative of the system as it is shipped, and say nothing of a system that settings changed.
fn unmeasured(ready: &[Ready]) -> Option<String> {
    let lost = |one: &Ready| {
        let rows = one.alternative.rows.iter().filter(|(_, objection)| *objection == Some(AS_SHIPPED));
        let rows: Vec<&str> = rows.map(|(row, _)| row.as_str()).collect();
        (!rows.is_empty()).then(|| format!("{} of `{}`", rows.join(", "), one.alternative.name))
    };
    let lost: Vec<String> = ready.iter().filter_map(lost).collect();
    (!lost.is_empty()).then(|| {
        format!("{} {AS_SHIPPED}: on the system as it is set here they fix no rate", lost.join(" and "))
    })
}

/// Machines that a card was learnt in and that the design does not run on, since it names others.
fn own_machines(design: &Design, ask: &Ask<'_>) -> Result<Option<String>, miette::Report> {
    let device = &design.device;
    let testbed = ask.setting.testbed.as_ref().or(design.testbed.as_ref());
    let Some(testbed) = testbed.filter(|testbed| *testbed != device) else { return Ok(None) };
    Ok(ask.setting.library.brings_testbed(device)?.then(|| {
        format!(
            "{device} describes hosts and a network of its own, of which nothing counts in testbed `{testbed}`; `--testbed \
             {device}` plans on these"
        )
    }))
}

/// What becomes of mechanisms that the evidence leaves open where the user chose one, or set what another takes: a claim
/// is no evidence, so that setting a number ends no draw, and an overlay that does is said to.
fn open_mechanisms(design: &Design, ask: &Ask<'_>, system: &System) -> Vec<String> {
    let told = |(name, _): &(String, String)| {
        if ask.setting.overlays.contains(name) {
            return Some(format!(
                "overlay `{name}` is one of the mechanisms that the evidence leaves open: every draw holds it, and how \
                 often the recommendation is the best leaves the base mechanism out; plan without it to draw both"
            ));
        }
        let taken = taken_by(design, ask, system, name);
        (!taken.is_empty()).then(|| {
            format!(
                "variant `{name}` takes {} otherwise than you set {}: its draws hold what the variant says, since a \
                 setting is no evidence of the mechanism",
                taken.iter().map(|number| format!("`{number}`")).collect::<Vec<_>>().join(", "),
                if taken.len() == 1 { "it" } else { "them" },
            )
        })
    };
    system.variants.iter().filter_map(told).collect()
}

/// The numbers that the user set and a variant takes otherwise.
fn taken_by(design: &Design, ask: &Ask<'_>, system: &System, variant: &str) -> Vec<String> {
    let setting = Setting { mechanism: Some(variant.to_string()), ..ask.setting.clone() };
    let Ok(other) = setting.system(design, &design.device) else { return Vec::new() };
    // A setting to the value that is there is none.
    let set = system.numbers.iter().filter(|(_, number)| number.provenance == Provenance::Set);
    let value = |of: &System, name: &str| of.numbers.get(name).map(|number| number.value);
    // What is multiplied by 0 keeps nothing of what was set.
    let takes = |scale: &ScaledNumber| scale.of != scale.name || scale.times == 0.0;
    let taken = |name: &str| other.scales.iter().any(|scale| scale.name == name && takes(scale));
    set.filter(|(name, number)| value(&other, name) != Some(number.value) || taken(name))
        .map(|(name, _)| name.clone())
        .collect()
}

/// What an error says, in one line.
fn words(error: miette::Report) -> String {
    error.to_string()
}

fn system_of(ready: &[Ready]) -> System {
    let main = ready.iter().find(|one| one.alternative.device.is_none());
    main.unwrap_or(&ready[0]).router.system().clone()
}

/// The design at each value of the parameter that it varies, with the deployment that is the best there.
fn varied(
    design: &Design,
    ask: &Ask<'_>,
    searched: Option<&Search>,
) -> Result<Vec<(f64, Design)>, miette::Report> {
    let Some((parameter, values)) = &design.sweep else { return Ok(Vec::new()) };
    let one = |value: &f64| {
        let mut changes = ask.changes.clone();
        changes.parameters.insert(parameter.clone(), design.parameter_text(parameter, *value));
        let open = ask.design.changed(&changes)?;
        let found = match search(&open, &changes, ask.setting, &|design| design) {
            Err(error) if !error.is::<PlanError>() => return Err(error),
            found => found.ok().flatten(),
        };
        // Where no deployment carries anything, the one that is planned says why.
        let narrowed = found.map(|found| found.changes).or_else(|| {
            let mut changes = searched?.changes.clone();
            changes.parameters.insert(parameter.clone(), design.parameter_text(parameter, *value));
            Some(changes)
        });
        match narrowed {
            Some(changes) => Ok((*value, ask.design.changed(&changes)?)),
            None => Ok((*value, open)),
        }
    };
    values.iter().map(one).collect()
}

fn settled(job: &Job<'_>, seed: Seed) -> Result<(Settled, Solved), miette::Report> {
    let ready = prepare(job.design, &job.setting)?;
    let mut settled = settle(job.design, &ready, job.chosen, seed)?;
    settle_alone(job.design, &ready, &mut settled, seed)?;
    let solved = solved(job.design, &ready, &settled)?;
    Ok((settled, solved))
}

fn solved(design: &Design, ready: &[Ready], settled: &Settled) -> Result<Solved, PlanError> {
    let folds = &settled.folds;
    let parts = Part::all(ready);
    let seen = evaluate(design, &parts, folds, false)?;
    let shares = match design.objective {
        Objective::LowestP99 { .. } => settled.shares.clone(),
        _ => solve::shares(&seen.optimal),
    };
    let name = |index: usize| ready[index].alternative.name.clone();
    let binds = |solution: &offpath_capacity::Solution| {
        solution.binding.first().map_or_else(|| "nothing".to_string(), |one| one.constraint.to_string())
    };
    Ok(Solved {
        rate: seen.optimal.total,
        network_bytes: mean_of(&shares, &parts, |index| folds[index].network_bytes),
        shares,
        greedy: seen.greedy.total,
        alternatives: seen
            .alone
            .iter()
            .enumerate()
            .map(|(index, alone)| (name(index), alone.total, binds(alone)))
            .collect(),
        mixes: design
            .mixes
            .iter()
            .map(|mix| mix.name.clone())
            .zip(seen.mixes.iter().map(|mix| mix.total))
            .collect(),
        settled: settled.has_settled(),
        gap: settled.gap.clone(),
    })
}

/// Of the numbers that move the mix most, those whose ends are looked into however little that is.
const PLANNED_AGAIN: usize = 2;

/// By how much one of the others has to move the mix to be looked into, where it seems to make no other set the best.
const MOVES: f64 = 0.02;
/// How many of the others are looked into; first those that seem to make another set the best.
const LOOKED_INTO: usize = 6;

/// Requests that are counted there: it is asked which mix is best, and its rate to a percent.
const COUNTED_AT_ENDS: f64 = 4_000.0;

/// Plans the design again at the ends of the numbers that move its mix most, unless its runs are long. Each by itself scales
/// what was observed, which is enough to find them, and not to name the mix that somebody who planned with such a value would
/// get.
fn plan_ends(
    design: &Design,
    ready: &[Ready],
    checked: &mut CheckedPlan,
    seed: Seed,
) -> Result<(), miette::Report> {
    let base = Base::new(design, ready, &checked.settled.folds);
    let factors = base.factors();
    let usual = checked.plan.optimal.composition();
    let worth_as_it_is = checked.plan.worth.value;
    let influences = &checked.plan.influences;
    let by = |end: Option<f64>| end.map_or(f64::INFINITY, |worth| (worth / worth_as_it_is).ln().abs());
    let moves = |one: &Influence| by(one.at_low).max(by(one.at_high)) >= MOVES;
    let turns = |at: &usize| influences[*at].changes.is_some();
    let mut looked_into: Vec<usize> =
        (0..influences.len()).filter(|at| turns(at) || moves(&influences[*at])).collect();
    // Where another alternative takes over, the best mix carries much the same.
    looked_into.sort_by_key(|at| !turns(at));
    looked_into.truncate(LOOKED_INTO);
    // Each end takes a run of its own, as long as what is rare or long in the mix asks for.
    let is_long = check::stretched(design, &checked.settled).is_some();
    let told: BTreeSet<usize> = match is_long {
        true => BTreeSet::new(),
        false => (0..PLANNED_AGAIN.min(influences.len())).chain(looked_into).collect(),
    };
    let ends: Vec<(usize, &Factor, Quantity)> = told
        .iter()
        .flat_map(|&at| {
            let one = &influences[at];
            let factor = factors.iter().find(|factor| factor.id == one.number).expect("it is one of them");
            [(at, factor, one.low), (at, factor, one.high)]
        })
        .collect();
    let planned = side_by_side(ends.len(), |index| {
        let (_, factor, value) = ends[index];
        if value == factor.value {
            return Ok(Some((worth_as_it_is, None)));
        }
        // With a value that the design or its system refuses there is no plan.
        let Ok((design, ready)) = base.ready_at(&[(factor, value)]) else { return Ok(None) };
        if ready.iter().all(|one| one.alternative.device.is_some()) {
            return Ok(None);
        }
        let folds = match demands(&design, &ready, COUNTED_AT_ENDS, seed) {
            Ok(folds) => folds,
            Err(error) if error.is::<PlanError>() => return Ok(None),
            Err(error) => return Err(error),
        };
        let parts = Part::all(&ready);
        let told = |folds: &[Fold]| {
            let seen = evaluate(&design, &parts, folds, false)?;
            let worth = solve::worth(&design, &parts, folds, &seen.optimal);
            let set = solve::best_set(&design, &parts, folds, &seen, &usual);
            Ok::<_, miette::Report>((worth, (set != usual).then_some(set)))
        };
        let seen = told(&folds)?;
        if seen.1.is_none() {
            return Ok(Some(seen));
        }
        // What the set does not take was not run at this end, and is thought to hold its slots as on an idle twin. So
        // another set is named only once each alternative has settled by itself, as in a plan with this value.
        let mut settled = settle_counting(&design, &ready, Chosen::Added, COUNTED_AT_ENDS, seed)?;
        settle_alone(&design, &ready, &mut settled, seed)?;
        Ok(Some(told(&settled.folds)?))
    });
    let mut planned = planned.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter();
    let mut next = || planned.next().expect("every end has an answer");
    let again: Vec<(usize, Influence)> = ends
        .chunks(2)
        .map(|both| {
            let ((at, factor, low), high) = (both[0], both[1].2);
            (at, Influence::of(factor, [(low, next()), (high, next())], &design.objective, true))
        })
        .collect();
    for (at, one) in again {
        checked.plan.influences[at] = one;
    }
    // What only scales what was observed does not tell which alternatives are the best.
    for one in checked.plan.influences.iter_mut().filter(|one| !one.planned) {
        one.changes = None;
    }
    Ok(())
}

/// The numbers of a system that overlays and settings changed.
fn differences(
    design: &Design,
    plain: &Setting,
    system: &System,
) -> Result<Vec<(String, Quantity, Quantity)>, miette::Report> {
    let old = plain.system(design, &design.device)?;
    let changed = system.numbers.iter().filter_map(|(name, number)| {
        let was = old.numbers.get(name)?;
        (was.value != number.value).then(|| (name.clone(), was.value, number.value))
    });
    // What an overlay multiplies is another value than the profile's.
    let scaled = system.scales.iter().filter_map(|scale| {
        let was = old.numbers.get(&scale.name)?.value;
        (was != scale.value).then(|| (scale.name.clone(), was, scale.value))
    });
    Ok(changed.chain(scaled).collect())
}
