//! Rules about what the card's own processors and memories are for.

use super::edit::{Edit, Edited, by_choice};
use super::look::{Look, PathCall, Site, call, collect, does_the_same, known, proposed, signature};
use super::{AdviceRule, Level, Proposal, Proposed};
use crate::design::{Alternative, ComputeCost, Runs, Step};
use crate::estimate::Written;
use offpath_profile::{Endpoint, Engine, EngineWork};
use offpath_quantity::{Dimension, Quantity};
use offpath_route::{Path, Router, Verb, processor_of};
use std::collections::BTreeSet;
use toml_edit::{InlineTable, Item, TableLike, value};

/// Work that dedicated hardware of the card could do.
pub const USE_ACCELERATOR: AdviceRule = AdviceRule {
    name: "use-accelerator",
    looks_for: "computing that an accelerator of the card could do",
    source: "sun2023 §3.2, guideline 1",
    level: Level::Steps,
    propose: use_accelerator,
};

/// Requests of the host itself, for which no client waits.
pub const MOVE_BACKGROUND_WORK: AdviceRule = AdviceRule {
    name: "move-background-work",
    looks_for: "work that the host begins itself and that no client waits for",
    source: "sun2023 §3.2, guideline 2",
    level: Level::Steps,
    propose: move_background_work,
};

/// Requests that one processor or memory of a machine serves where another could serve a share.
pub const SHARD_ACROSS_ENDPOINTS: AdviceRule = AdviceRule {
    name: "shard-across-endpoints",
    looks_for: "requests that only one endpoint of a machine serves",
    source: "sun2023 §3.2, guideline 3; wei2023 §4.1",
    level: Level::Mix,
    propose: shard_across_endpoints,
};

/// A cache on the card in front of the host's memory.
pub const NO_NIC_SIDE_CACHE: AdviceRule = AdviceRule {
    name: "no-nic-side-cache",
    looks_for: "requests that pass the card's processor, which fetches from the host on a miss",
    source: "sun2023 §3.2, guideline 4",
    level: Level::Steps,
    propose: no_nic_side_cache,
};

fn use_accelerator(look: &Look<'_>) -> Proposed {
    let sites: Vec<Site<'_>> = look.mixed().into_iter().flat_map(|one| look.steps(one)).collect();
    let computing = sites.iter().filter(|site| matches!(site.step, Step::Compute { .. })).count();
    let steps = match computing {
        0 => {
            return Proposed::Silent(
                "the mix has no computing step that an accelerator could do".to_string(),
            );
        }
        1 => "the mix's computing step".to_string(),
        steps => format!("the mix's {steps} computing steps"),
    };
    // The machine that carries the card has no prefix.
    let own = look.router.system().machines.iter().filter(|machine| machine.prefix.is_empty());
    let engines: Vec<&Engine> = own
        .flat_map(|machine| &machine.engines)
        .filter(|engine| engine.work == EngineWork::Transform)
        .collect();
    if engines.is_empty() {
        return Proposed::Silent(format!("profiles describe no accelerator that could do {steps}"));
    }
    let (mut changes, mut why_not) = (Vec::new(), BTreeSet::new());
    for engine in &engines {
        match accelerated(look, engine) {
            Ok(own) => changes.extend(own),
            Err(why) => drop(why_not.insert(why)),
        }
    }
    if changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(why_not.into_iter().collect::<Vec<_>>().join("; "));
    }
    Proposed::Changes(changes)
}

/// Alternatives of the mix whose work an engine does instead, those first that compute it where the engine is; or why there are
/// none.
fn accelerated(look: &Look<'_>, engine: &Engine) -> Result<Vec<Proposal>, String> {
    let name = &engine.name;
    let Some((_, card)) = look.endpoint(&engine.endpoint) else {
        return Err(format!("`{name}` belongs to no endpoint that steps name"));
    };
    let path =
        Path { requester: card.name.clone(), responder: card.name.clone(), engine: Some(name.clone()) };
    if !look.router.verbs(&path).contains(&Verb::Transform) {
        return Err(format!("`{path}` transforms nothing"));
    }
    let uses = |one: &&Alternative| {
        look.calls(one)
            .iter()
            .any(|call| call.verb == Verb::Transform && call.path.engine.as_ref() == Some(name))
    };
    if let Some(known) = look.design.alternatives.iter().find(uses) {
        return Err(format!("`{}` lets `{name}` do it already, and the plan compares", known.name));
    }
    let is_done = |step: &Step| matches!(step, Step::Compute { cost: ComputeCost::Work { work, in_bytes: true, .. }, .. } if engine.does.contains(work));
    let (mut changes, mut refused) = (Vec::new(), BTreeSet::new());
    let mixed = look.mixed();
    let works_at = |one: &Alternative, at: &str| {
        look.steps(one)
            .iter()
            .any(|site| is_done(site.step) && matches!(site.step, Step::Compute { at: own, .. } if own == at))
    };
    let is_near = mixed.iter().any(|one| works_at(one, &card.name));
    for one in mixed {
        let done: BTreeSet<&String> = look
            .steps(one)
            .into_iter()
            .filter(|site| is_done(site.step))
            .filter_map(|site| match site.step {
                Step::Compute { at, .. } => Some(at),
                _ => None,
            })
            .collect();
        let Some(from) = done.first().copied() else { continue };
        let Some((_, own)) = look.endpoint(from) else { continue };
        // What is served elsewhere comes to the engine's processor with all that it does there.
        let is_moved = own.name != card.name;
        if done.len() > 1 || is_moved && is_near {
            continue;
        }
        if let Some(why) = is_moved.then(|| cannot(look, one, from, &card.name)).flatten() {
            refused.insert(format!("`{}` is not for `{}`: {why}", one.name, card.name));
            continue;
        }
        let others: Vec<Site<'_>> = look.steps(one).into_iter().filter(|site| !is_done(site.step)).collect();
        let slower = match if is_moved { carried_over(look, &others, own, card) } else { Ok(None) } {
            Ok(slower) => slower,
            Err(why) => {
                refused.insert(format!("`{}` is not for `{}`: {why}", one.name, card.name));
                continue;
            }
        };
        let change = |step: &mut dyn TableLike| -> Edited {
            let is_of_engine = step
                .get("work")
                .and_then(Item::as_str)
                .is_some_and(|work| engine.does.iter().any(|own| own == work))
                && step.contains_key("bytes");
            if is_of_engine {
                by_choice(step, &["compute", "work"])?;
                // The verb stands first, as steps are written.
                let all: Vec<(String, Item)> =
                    step.iter().map(|(key, item)| (key.to_string(), item.clone())).collect();
                all.iter().for_each(|(key, _)| drop(step.remove(key)));
                step.insert(Verb::Transform.name(), value(path.to_string()));
                let kept =
                    all.into_iter().filter(|(key, _)| !["compute", "work", "on"].contains(&key.as_str()));
                kept.for_each(|(key, item)| drop(step.insert(&key, item)));
                step.fmt();
                return Ok(());
            }
            if is_moved { rename(step, look.router, from, &card.name, slower.as_ref()) } else { Ok(()) }
        };
        let added = format!("{} on {name}", one.name);
        let ladder = match look.design.runs {
            // No addition changes what the system runs.
            Runs::Mix(_) | Runs::Alternative(_) => {
                look.held(format!("let `{name}` do the work of `{}`", one.name), |edit| {
                    edit.rewrite(&one.family, change)?;
                    slower.iter().for_each(|slower| slower.declare(edit));
                    Ok(())
                })
            }
            _ => look.mixed_again(format!("add `{added}`: a share of the requests by `{path}`"), |edit| {
                edit.add_like(
                    &one.family,
                    &added,
                    &format!("{}, the work done by {name}", one.name),
                    change,
                )?;
                slower.iter().for_each(|slower| slower.declare(edit));
                Ok(())
            }),
        };
        let why = format!("`{from}` computes in `{}` what the card's `{name}` does", one.name);
        changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
    }
    match (changes.is_empty(), refused.is_empty()) {
        (false, _) => Ok(changes),
        (true, false) => Err(refused.into_iter().collect::<Vec<_>>().join("; ")),
        (true, true) if engine.does.is_empty() => Err(format!(
            "`{name}` transforms, and its profile names no kind of work that it does (`does`): write an alternative with \
             `transform` for what it could do"
        )),
        (true, true) => Err(format!(
            "no computing step of the mix is of a kind of work that `{name}` does by bytes ({}): write an alternative with \
             `transform` for what else it could do",
            engine.does.join(", ")
        )),
    }
}

/// By how much longer a core of a card takes than a core of a host at equal clocks: the geometric mean of the 15
/// processor benchmarks of sun2023 Table 2 (S060 to S089) and the range that 13 of them lie in, which were
/// run at 2.75 and 2.3 GHz. No profile says more of cores than their clocks. It says nothing of processors of many small
/// threads, nor of two of a card.
const CARD_OVER_HOST: Span = Span { value: 2.55, low: 1.33, high: 4.47 };

/// What the design says of such a parameter.
const WHENCE: &str = "sun2023 Table 2 (S060 to S089) times the ratio of the clocks";

/// A number with the range that it is known within.
#[derive(Clone, Copy)]
struct Span {
    value: f64,
    low: f64,
    high: f64,
}

impl Span {
    fn times(self, by: f64) -> Span {
        Span { value: self.value * by, low: self.low * by, high: self.high * by }
    }

    fn inverse(self) -> Span {
        Span { value: 1.0 / self.value, low: 1.0 / self.high, high: 1.0 / self.low }
    }
}

/// By how much longer one processor takes for what another does, as a parameter of the design: its user may
/// know better, and the plan then rests on an estimate, as it should.
#[derive(Clone)]
struct Slower {
    /// The name of the parameter for times, as in `soc-over-host`, and of that for rates.
    names: [String; 2],
    times: Span,
}

impl Slower {
    /// Nothing where nothing compares the two.
    fn of(from: &Endpoint, to: &Endpoint) -> Option<Slower> {
        let has_cores = |one: &Endpoint| one.processor.threads_per_core.unwrap_or(1) == 1;
        if !(has_cores(from) && has_cores(to)) {
            return None;
        }
        let clocks = from.processor.frequency.hz() as f64 / to.processor.frequency.hz().max(1) as f64;
        let cores = match (from.processor.is_host, to.processor.is_host) {
            (true, false) => CARD_OVER_HOST,
            (false, true) => CARD_OVER_HOST.inverse(),
            _ => return None,
        };
        let over = |one: &Endpoint, other: &Endpoint| format!("{}-over-{}", one.name, other.name);
        Some(Slower { names: [over(to, from), over(from, to)], times: cores.times(clocks) })
    }

    /// States the parameter that `steps` name, where one does and the design has none of that name yet.
    fn declare(&self, edit: &mut Edit) {
        let text = edit.text();
        for (name, span) in self.names.iter().zip([self.times, self.times.inverse()]) {
            if text.contains(&format!("* {name}")) {
                edit.parameter(name, [span.value, span.low, span.high], WHENCE);
            }
        }
    }

    /// The text of a number that is `times` as long: a name or a number times the parameter. What was scaled the other way is
    /// the number that it was.
    fn scaled(&self, text: &str, which: usize) -> String {
        let mut factors: Vec<&str> = text.split('*').map(str::trim).collect();
        match factors
            .iter()
            .rposition(|factor| *factor == self.names[1 - which])
            .filter(|_| factors.len() > 1)
        {
            Some(inverse) => {
                factors.remove(inverse);
                factors.join(" * ")
            }
            None => format!("{text} * {}", self.names[which]),
        }
    }
}

fn move_background_work(look: &Look<'_>) -> Proposed {
    let Some(from) = look.router.system().host() else {
        return Proposed::Silent("the system has no host".to_string());
    };
    let host = from.name.as_str();
    let (mut changes, mut without_room) = (Vec::new(), BTreeSet::new());
    for alternative in look.mixed() {
        for (operation, _, steps) in &alternative.operations {
            let sites: Vec<Site<'_>> =
                look.steps(alternative).into_iter().filter(|site| site.at.operation == *operation).collect();
            // Steps that hold others, and messages, mean that somebody else takes part.
            let alone = sites.len() == steps.len()
                && !sites.is_empty()
                && sites.iter().all(|site| match site.step {
                    Step::Compute { at, .. } => at == host,
                    step => call(site.at.clone(), step, look.router).is_some_and(|call| {
                        matches!(call.verb, Verb::Read | Verb::Write)
                            && call.path.requester == host
                            && look.apart(host, &call.path.responder)
                    }),
                });
            if !alone {
                continue;
            }
            let mut ladder = Vec::new();
            // The other processor holds what one request moves until it is sent on.
            let calls = sites.iter().filter_map(|site| call(site.at.clone(), site.step, look.router));
            let held = calls.map(|call| call.bytes.get()).max().unwrap_or(0);
            for to in look.siblings(host) {
                if let Some(reason) = look.lacks_room(to, held, &BTreeSet::new()) {
                    without_room.insert(format!("`{operation}` of `{}`: {reason}", alternative.name));
                    continue;
                }
                let slower = match carried_over(look, &sites, from, to) {
                    Ok(slower) => slower,
                    Err(why) => {
                        without_room.insert(format!("`{operation}` of `{}`: {why}", alternative.name));
                        continue;
                    }
                };
                let plain = Path { requester: to.name.clone(), responder: host.to_string(), engine: None };
                for mover in look.engines(&plain).into_iter().chain([plain.clone()]) {
                    let remedy = format!("let `{}` do it, moving the bytes on `{mover}`", to.name);
                    ladder.extend(look.held(remedy, |edit| {
                        let lines = moved_lines(look, edit, &sites, (from, to), slower.as_ref(), &mover)?;
                        edit.replace_steps(&sites[0].at, &lines)?;
                        slower.iter().for_each(|slower| slower.declare(edit));
                        Ok(())
                    }));
                }
            }
            let why = format!(
                "`{operation}` of `{}` is the host's own work: no client waits for it",
                alternative.name
            );
            changes.push(Proposal { why, ladder });
        }
    }
    if !without_room.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(without_room.into_iter().collect::<Vec<_>>().join("; "));
    }
    proposed(changes, "the mix has no work that the host begins and ends by itself")
}

/// The steps of a list as another processor would do them, fetching first what it sends.
fn moved_lines(
    look: &Look<'_>,
    edit: &Edit,
    sites: &[Site<'_>],
    (from, to): (&Endpoint, &Endpoint),
    slower: Option<&Slower>,
    mover: &Path,
) -> Result<Vec<String>, String> {
    let mut lines = Vec::new();
    for site in sites {
        // The step as it is written: what else it says, an interval, a parameter, a batch, goes with it.
        let mut moved = edit.copy(&site.at)?;
        rename(&mut moved, look.router, &from.name, &to.name, slower)?;
        let moved = moved.to_string();
        let Some(call) = call(site.at.clone(), site.step, look.router) else {
            lines.push(moved);
            continue;
        };
        let bytes = edit.raw(&call.at, "bytes").ok_or_else(|| {
            format!(
                "the {} of `{}` says no size as one text, which a second verb could move too",
                call.verb, call.path
            )
        })?;
        lines.extend(match call.verb {
            Verb::Write => [format!("{{ read = \"{mover}\", bytes = \"{bytes}\" }}"), moved],
            _ => [moved, format!("{{ write = \"{mover}\", bytes = \"{bytes}\" }}")],
        });
    }
    Ok(lines)
}

/// How the computing steps of `from` go over to `to`: those that say a time by how much slower it is, none where none does,
/// and a kind of work that was measured of both as it is. Why they do not, where what they take there is not known.
fn carried_over(
    look: &Look<'_>,
    sites: &[Site<'_>],
    from: &Endpoint,
    to: &Endpoint,
) -> Result<Option<Slower>, String> {
    let (from_name, to_name) = (&from.name, &to.name);
    let by_own = "; write an alternative with what a step takes there";
    let mut slower = None;
    for site in sites {
        let Step::Compute { at, cost, .. } = site.step else { continue };
        match cost {
            _ if at != from_name => {}
            ComputeCost::Time(_) => {
                let found = Slower::of(from, to);
                let why =
                    || format!("nothing compares `{from_name}`, which computes, with `{to_name}`{by_own}");
                slower = Some(found.ok_or_else(why)?);
            }
            ComputeCost::On { processor, .. } if *processor == to.processor.name => {}
            ComputeCost::On { processor, .. } => {
                return Err(format!(
                    "what takes so long on `{processor}` was not measured of `{to_name}`{by_own}"
                ));
            }
            ComputeCost::Work { work, .. } => {
                let machine = look.router.system().endpoint(to_name).map(|(machine, _)| machine);
                let cost = machine.and_then(|machine| machine.work_cost(&to.processor.name, work));
                if cost.map_or(true, |cost| cost.measured_of.is_some()) {
                    return Err(format!("the work `{work}` was not measured of `{to_name}`{by_own}"));
                }
            }
        }
    }
    Ok(slower)
}

/// Lets a step's keys name another endpoint, whose computing takes as much longer as `slower` says; without it no step that
/// says a time of its own is given.
fn rename(
    step: &mut dyn TableLike,
    router: &Router,
    from: &str,
    to: &str,
    slower: Option<&Slower>,
) -> Edited {
    if let Some((verb, path)) = super::edit::path_of(step) {
        by_choice(step, &[verb])?;
        step.insert(verb, value(renamed(router, &path, from, to)));
    }
    by_choice(step, &["compute"])?;
    if step.get("compute").and_then(Item::as_str) != Some(from) {
        return Ok(());
    }
    step.insert("compute", value(to));
    // A time that says whose it is stays that one's.
    let Some(slower) = slower.filter(|_| !step.contains_key("on")) else { return Ok(()) };
    scale(step, "time", Dimension::Time, slower, 0);
    scale(step, "rate", Dimension::BitRate, slower, 1);
    Ok(())
}

/// Scales a number of a step by the parameter of `slower` for times or for rates: one number, or a product with
/// names of parameters. No parameter multiplies an interval, so that of one the ends are moved.
fn scale(step: &mut dyn TableLike, key: &str, dimension: Dimension, slower: &Slower, which: usize) {
    let Some(item) = step.get_mut(key) else { return };
    match item.as_str().filter(|text| !Written::is_interval(text)) {
        Some(text) => {
            let new = slower.scaled(text, which);
            step.insert(key, value(new));
        }
        None => {
            let span = if which == 0 { slower.times } else { slower.times.inverse() };
            if let Some(table) = scaled_interval(item, dimension, span) {
                step.insert(key, value(table));
            }
        }
    }
}

fn scaled_interval(item: &Item, dimension: Dimension, by: Span) -> Option<InlineTable> {
    let given: toml::Table = format!("number = {}", item.to_string().trim()).parse().ok()?;
    let written = Written::read(&given["number"], Some(dimension)).ok()?;
    let parts =
        [("value", written.value, by.value), ("low", written.low?, by.low), ("high", written.high?, by.high)];
    let mut table = InlineTable::new();
    for (name, number, by) in parts {
        table.insert(name, Quantity::from_base(number.base() * by, dimension)?.to_string().into());
    }
    table.insert("provenance", "assumed".into());
    Some(table)
}

/// A path whose processor `from` is `to` instead; the memories that it names stay.
fn renamed(router: &Router, path: &str, from: &str, to: &str) -> String {
    router.path(path).map_or_else(|_| path.to_string(), |path| other_end(&path, from, to).to_string())
}

fn other_end(path: &Path, from: &str, to: &str) -> Path {
    let end = |name: &str| match name.strip_prefix(processor_of(name)) {
        // A processor's own memory is not apart from it.
        Some(memory) if processor_of(name) == from && memory.strip_prefix(':') != Some(to) => {
            format!("{to}{memory}")
        }
        Some(_) if processor_of(name) == from => to.to_string(),
        _ => name.to_string(),
    };
    Path { requester: end(&path.requester), responder: end(&path.responder), engine: path.engine.clone() }
}

/// The first step of an alternative that `to` cannot do in the place of `from`.
fn cannot<'l>(look: &Look<'l>, one: &'l Alternative, from: &str, to: &str) -> Option<String> {
    let lacks = |call: &PathCall<'l>| {
        let path = other_end(&call.path, from, to);
        (!look.router.verbs(&path).contains(&call.verb)).then(|| format!("`{path}` has no `{}`", call.verb))
    };
    look.calls(one).iter().find_map(lacks)
}

/// The endpoints that an alternative touches, the one that begins its requests, and its objects.
fn touched<'l>(
    look: &Look<'l>,
    one: &'l Alternative,
) -> (BTreeSet<String>, Option<String>, BTreeSet<&'l str>) {
    let (mut endpoints, mut objects, mut first) = (BTreeSet::new(), BTreeSet::new(), None);
    for site in look.steps(one) {
        if let Step::Compute { at, .. } = site.step {
            first.get_or_insert(at.clone());
            endpoints.insert(at.clone());
        }
        if let Some(call) = call(site.at, site.step, look.router) {
            first.get_or_insert(call.path.requester.clone());
            endpoints.extend([call.path.requester, call.path.responder]);
            objects.extend(call.object);
        }
    }
    (endpoints, first, objects)
}

/// The endpoints that serve some alternative alone whose requests begin at `first`.
fn served_by(look: &Look<'_>, first: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for one in look.design.alternatives.iter().filter(|one| one.mixed) {
        let (endpoints, begins, _) = touched(look, one);
        let served: Vec<&String> = endpoints.iter().filter(|name| look.apart(name, first)).collect();
        if let ([only], Some(begins)) = (served.as_slice(), begins)
            && begins == first
        {
            all.insert((*only).clone());
        }
    }
    all
}

fn shard_across_endpoints(look: &Look<'_>) -> Proposed {
    if let Runs::Mix(_) | Runs::Alternative(_) = look.design.runs {
        return Proposed::Silent(format!(
            "the system runs `{}`, which no addition changes",
            look.design.runs.name()
        ));
    }
    if look.design.cache.is_some() {
        return Proposed::Silent("the design's cache already says which data the card has".to_string());
    }
    let known = known(look.design);
    let (mut changes, mut without_room, mut waiting) = (Vec::new(), BTreeSet::new(), BTreeSet::new());
    for one in look.design.alternatives.iter().filter(|one| one.mixed) {
        let (endpoints, Some(first), objects) = touched(look, one) else { continue };
        let served: Vec<&String> = endpoints.iter().filter(|name| look.apart(name, &first)).collect();
        // A device stands at one endpoint: another's processor does not bring it along.
        if look.steps(one).iter().any(|site| matches!(site.step, Step::Wait { .. })) {
            waiting.insert(format!(
                "`{}` waits for a device, and only its author knows whether another endpoint reaches it",
                one.name
            ));
            continue;
        }
        // One endpoint serves, and the requests come from outside its machine.
        let [from] = served.as_slice() else { continue };
        let Some((_, own)) = look.endpoint(from) else { continue };
        let size = objects.iter().map(|name| look.size_of(name)).fold(0, u64::saturating_add);
        for to in look.siblings(from) {
            // Who wrote an alternative that `to` serves alone knows better what its processor takes.
            if served_by(look, &first).contains(&to.name) {
                continue;
            }
            if known.contains(&signature(one, &|path| renamed(look.router, path, from, &to.name), false)) {
                continue;
            }
            if let Some(why) = cannot(look, one, from, &to.name) {
                without_room.insert(format!("`{}` is not for `{}`: {why}", one.name, to.name));
                continue;
            }
            let name = format!("{} on {}", one.name, to.name);
            if look.design.alternatives.iter().any(|other| other.name == name) {
                continue;
            }
            if let Some(reason) = look.lacks_room(to, size, &objects) {
                without_room.insert(format!("objects of `{}`: {reason}", one.name));
                continue;
            }
            let slower = match carried_over(look, &look.steps(one), own, to) {
                Ok(slower) => slower,
                Err(why) => {
                    without_room.insert(format!("`{}` is not for `{}`: {why}", one.name, to.name));
                    continue;
                }
            };
            let remedy = format!("add `{name}`: a share of the requests and their data at `{}`", to.name);
            let ladder = look.mixed_again(remedy, |edit| {
                edit.add_like(&one.family, &name, &format!("{}, served by {}", one.name, to.name), |step| {
                    rename(step, look.router, from, &to.name, slower.as_ref())
                })?;
                slower.iter().for_each(|slower| slower.declare(edit));
                Ok(())
            });
            let why = format!("`{from}` alone serves `{}`, and `{}` could serve a share", one.name, to.name);
            changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
        }
    }
    let refused: Vec<String> = without_room.into_iter().chain(waiting).collect();
    if !refused.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(refused.join("; "));
    }
    proposed(changes, "no alternative is served by one endpoint where another of its machine has room for it")
}

/// Whether a step is a READ of what `path` reads.
fn fetches(look: &Look<'_>, at: &Site<'_>, step: &Step, path: &Path) -> bool {
    call(at.at.clone(), step, look.router).is_some_and(|call| call.verb == Verb::Read && call.path == *path)
}

/// What a case does besides fetching.
fn besides(steps: &[Step], is_fetch: &dyn Fn(&Step) -> bool) -> Vec<Step> {
    let list = |steps: &[Step]| besides(steps, is_fetch);
    let kept = steps.iter().filter(|step| !is_fetch(step)).filter_map(|step| match step {
        Step::Repeat { times, steps, rests_on, span } => {
            Some(list(steps)).filter(|steps| !steps.is_empty()).map(|steps| Step::Repeat {
                times: *times,
                steps,
                rests_on: rests_on.clone(),
                span: span.clone(),
            })
        }
        Step::Parallel(lists) => {
            let lists: Vec<Vec<Step>> =
                lists.iter().map(|steps| list(steps)).filter(|steps| !steps.is_empty()).collect();
            (!lists.is_empty()).then_some(Step::Parallel(lists))
        }
        other => Some(other.clone()),
    });
    kept.collect()
}

/// What of `steps` another list does not do.
fn lacks(list: &[Step], mut steps: Vec<Step>) -> Vec<Step> {
    use std::slice::from_ref;
    for step in list {
        if let Some(same) = steps.iter().position(|other| does_the_same(from_ref(step), from_ref(other))) {
            steps.remove(same);
        }
    }
    steps
}

/// Steps in a few words.
fn in_words(steps: &[Step]) -> String {
    let mut words = Vec::new();
    for step in steps {
        collect(step, &mut |step| match step {
            Step::Verb { verb, path, bytes, .. } => words.push(format!("{verb} of {bytes} on `{path}`")),
            Step::Compute { at, cost, .. } => words.push(match cost {
                ComputeCost::Time(time) | ComputeCost::On { time, .. } => format!("{time} at `{at}`"),
                ComputeCost::Work { work, .. } => format!("`{work}` at `{at}`"),
            }),
            Step::Wait { time, .. } => words.push(format!("a wait of {time}")),
            Step::Background { .. } | Step::Repeat { .. } | Step::Parallel(_) | Step::Branch { .. } => {}
        });
    }
    words.join(", ")
}

fn no_nic_side_cache(look: &Look<'_>) -> Proposed {
    let (mut changes, mut refused) = (Vec::new(), BTreeSet::new());
    let edit = look.edit();
    for alternative in look.mixed() {
        let sites = look.steps(alternative);
        for site in &sites {
            let Step::Branch { then, otherwise, .. } = site.step else { continue };
            let is_cached = edit.as_ref().is_some_and(|edit| edit.raw(&site.at, "cached").is_some());
            for (case, other, kept, is_miss) in
                [(otherwise, then, ["hit", "then"], true), (then, otherwise, ["miss", "otherwise"], false)]
            {
                let mut fetched = None;
                for step in case {
                    collect(step, &mut |step| {
                        let inner = call(site.at.clone(), step, look.router);
                        let inner = inner.filter(|call| {
                            call.verb == Verb::Read && !look.apart(&call.path.requester, &call.path.responder)
                        });
                        fetched = fetched.take().or(inner.map(|call| call.path));
                    });
                }
                let Some(path) = fetched else { continue };
                // The request has to come to the fetching processor from another machine.
                let reached = sites
                    .iter()
                    .filter_map(|site| call(site.at.clone(), site.step, look.router))
                    .any(|call| {
                        call.verb.is_message()
                            && call.path.responder == path.requester
                            && look.apart(&call.path.requester, &call.path.responder)
                    });
                let ends = (look.endpoint(&path.requester), look.endpoint(&path.responder));
                let (true, (Some((_, card)), Some((_, host)))) = (reached, ends) else { continue };
                // Requests that ask for other work are no misses, and that work would be gone.
                let rest = besides(case, &|step| fetches(look, site, step, &path));
                let is_all = does_the_same(&rest, other);
                if !(is_all || is_cached && is_miss) {
                    refused.insert(format!(
                        "`{}` fetches from `{}` in one case of a branch, and the cases differ by more than that: other \
                         requests are no misses, and `cached` says which are",
                        alternative.name, host.name
                    ));
                    continue;
                }
                let slower = match carried_over(look, &sites, card, host) {
                    Ok(slower) => slower,
                    Err(why) => {
                        refused.insert(format!("`{}` is not for `{}`: {why}", alternative.name, host.name));
                        continue;
                    }
                };
                let mut remedy = format!("take `{}` out of the way: ask `{}` directly", card.name, host.name);
                if !is_all {
                    remedy += "; every request is served as a hit is";
                    let dropped = in_words(&lacks(other, rest));
                    if !dropped.is_empty() {
                        remedy +=
                            &format!(", which drops what a miss alone does besides fetching ({dropped})");
                    }
                }
                let ladder = look.held(remedy, |edit| {
                    edit.keep_case(&site.at, kept)?;
                    edit.rewrite(&alternative.family, |step| {
                        rename(step, look.router, &card.name, &host.name, slower.as_ref())
                    })?;
                    slower.iter().for_each(|slower| slower.declare(edit));
                    Ok(())
                });
                let why = format!(
                    "`{}` asks `{}`, which fetches from `{}` what it has not got",
                    alternative.name, card.name, host.name
                );
                changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
            }
        }
    }
    if !refused.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(refused.into_iter().collect::<Vec<_>>().join("; "));
    }
    proposed(changes, "no processor of the mix answers from a cache and fetches from its neighbour on a miss")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time that went to another processor and comes back is the time that its author wrote.
    #[test]
    fn what_was_scaled_there_and_back_is_what_it_was() {
        let times = Span { value: 2.0, low: 1.0, high: 4.0 };
        let there = Slower { names: ["host-over-soc".into(), "soc-over-host".into()], times };
        let back = Slower { names: ["soc-over-host".into(), "host-over-soc".into()], times: times.inverse() };
        for (written, scaled) in [
            ("5 us", ["5 us * host-over-soc", "5 us * soc-over-host"]),
            ("work * 2", ["work * 2 * host-over-soc", "work * 2 * soc-over-host"]),
        ] {
            for which in [0, 1] {
                assert_eq!(there.scaled(written, which), scaled[which]);
                assert_eq!(back.scaled(scaled[which], which), written);
            }
        }
        assert_eq!(back.scaled("5 us * host-over-soc * ratio", 0), "5 us * ratio");
        assert_eq!(
            back.scaled("host-over-soc", 0),
            "host-over-soc * soc-over-host",
            "a time of its own name"
        );
    }
}
