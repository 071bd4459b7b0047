//! Designs that nobody wrote, on profiles that nobody has seen: each is refused with a message, or it
//! plans, the idle twin sees what its steps add up to, and the loaded twin carries no more than its plan.
//!
//! `OFFPATH_DESIGNS=2000` draws so many, `OFFPATH_DESIGNS=2000@500` from the 500th on.

#[path = "../../twin/tests/generated/mod.rs"]
mod draws;

use self::draws::{Draw, HOST_WORK, WORKS, edited, system};
use crate::common::setting;
use offpath_capacity::Constraint;
use offpath_plan::check::{Chosen, Gap, settle_counting};
use offpath_plan::planner::make_ready;
use offpath_plan::program::Instruction;
use offpath_plan::solve::{activity, stations};
use offpath_plan::study::{Ask, Study};
use offpath_plan::{Basis, Changes, Design, Fold, Plan, Ranged, Ready, plan};
use offpath_profile::{Endpoint, Library, SystemRequest};
use offpath_route::{Carrier, Path, Router, StationKind, Verb};
use offpath_twin::{Interval, Seed};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Designs that are always drawn: in this one a message and what a READ brings reach a task together.
const TOLD: [u64; 1] = [222];

/// The first design and how many are drawn.
fn drawn() -> (u64, u64) {
    let Ok(text) = std::env::var("OFFPATH_DESIGNS") else { return (0, 10) };
    let (count, first) = text.split_once('@').unwrap_or((&text, "0"));
    let number =
        |text: &str| text.parse().unwrap_or_else(|_| panic!("OFFPATH_DESIGNS={text}: as in 2000@500"));
    (number(first), number(count))
}

/// Steps of one request, drawn on the paths of a system.
struct Writer<'d> {
    draw: &'d mut Draw,
    /// Draws of their own, so that the designs of a seed are the same but for it.
    working: Draw,
    unawaited: Draw,
    /// The processors that kinds of work were measured of.
    works_at: Vec<String>,
    paths: Vec<Path>,
    /// What a processor may do beside RDMA between own memories: engines, own loads and stores, memories apart.
    beside: Vec<(String, Path, Verb)>,
    machines: BTreeMap<String, usize>,
    mtu: u64,
}

impl Writer<'_> {
    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        all[self.draw.within(0, all.len() as u64 - 1) as usize].clone()
    }

    fn time(&mut self, most_ns: u64) -> String {
        let low = self.draw.within(10, most_ns);
        match self.draw.within(0, 3) {
            0 => format!("\"{low} ns to {} ns\"", low * 2),
            1 => format!("{{ value = \"{low} ns\", low = \"{} ns\", high = \"{} ns\" }}", low / 2, low * 3),
            2 => "\"service\"".to_string(),
            _ => format!("\"{low} ns\""),
        }
    }

    fn compute(&mut self, at: &str) -> String {
        let time = self.time(2000);
        if !self.works_at.iter().any(|one| one == at) || !self.working.chance(30) {
            return format!("{{ compute = \"{at}\", time = {time} }}");
        }
        let (work, counted) = match self.working.one_of(&WORKS) {
            _ if self.working.chance(30) => (HOST_WORK, "byte_rate"),
            drawn => drawn,
        };
        let much = match counted {
            "byte_rate" => format!("bytes = \"{} B\"", self.working.one_of(&[16, 64, 512, 2048])),
            _ => format!("operations = {}", self.working.one_of(&["0.5", "1", "3", "\"1 to 2\""])),
        };
        format!("{{ compute = \"{at}\", work = \"{work}\", {much} }}")
    }

    /// A one-sided verb at `at`, or for one in five one that nobody waits for, with what follows it meanwhile.
    fn one_sided(&mut self, at: &str, verb: Verb, step: String) -> String {
        if verb.row().carriers == [Carrier::Processor] || !self.unawaited.chance(20) {
            return step;
        }
        let posted = step.replace(" }", ", awaited = false }");
        format!("{posted}, {{ compute = \"{at}\", time = \"50 ns\" }}")
    }

    /// A step that leaves the request where it is.
    fn local(&mut self, at: &str, depth: u32) -> String {
        let from: Vec<Path> = self.paths.iter().filter(|path| path.requester == at).cloned().collect();
        let beside: Vec<(Path, Verb)> = self
            .beside
            .iter()
            .filter(|(processor, ..)| processor == at)
            .map(|(_, path, verb)| (path.clone(), *verb))
            .collect();
        if !beside.is_empty() && self.draw.chance(25) {
            let (path, verb) = self.pick(&beside);
            let bytes = self.pick(&[8u64, 64, 512, 4096]);
            let step = match verb.own_payload() {
                None => format!("{{ {verb} = \"{path}\", bytes = \"{bytes} B\" }}"),
                Some(_) => format!("{{ {verb} = \"{path}\" }}"),
            };
            return self.one_sided(at, verb, step);
        }
        match self.draw.within(0, if depth == 0 { 9 } else { 6 }) {
            0 | 1 => self.compute(at),
            2 => {
                let time = self.time(10_000);
                format!("{{ wait = {time} }}")
            }
            3..=6 if !from.is_empty() => {
                let path = self.pick(&from);
                let engine = path.engine.is_some();
                let apart = self.machines.get(&path.requester) != self.machines.get(&path.responder);
                let to = if apart && self.draw.chance(20) {
                    format!(", to = {}", self.draw.within(2, 4))
                } else {
                    String::new()
                };
                let bytes = self.pick(&[8u64, 64, 512, 4096, 16384]);
                let verbs = if engine { 1 } else { 3 };
                let (verb, bytes) = match self.draw.within(0, verbs) {
                    0 => (Verb::Read, format!(", bytes = \"{bytes} B\"")),
                    1 => (Verb::Write, format!(", bytes = \"{bytes} B\"")),
                    2 => (Verb::FetchAndAdd, String::new()),
                    _ => (Verb::CompareAndSwap, String::new()),
                };
                self.one_sided(at, verb, format!("{{ {verb} = \"{path}\"{bytes}{to} }}"))
            }
            7 => {
                let (mut one, other) = (self.locals(at, 1), self.locals(at, 1));
                if self.draw.chance(30) {
                    let more = self.locals(at, 1);
                    one = format!("{{ probability = 0.5, then = [{one}], otherwise = [{more}] }}");
                }
                format!("{{ parallel = [ [{one}], [{other}] ] }}")
            }
            8 => {
                let (one, other) = (self.locals(at, 1), self.locals(at, 1));
                let share = self.pick(&["0.1", "0.5", "\"0.2 to 0.4\"", "\"share\""]);
                format!("{{ probability = {share}, then = [{one}], otherwise = [{other}] }}")
            }
            9 => {
                let steps = self.locals(at, 1);
                let times = self.pick(&["2", "3", "\"times\""]);
                format!("{{ repeat = {times}, steps = [{steps}] }}")
            }
            _ => self.compute(at),
        }
    }

    fn locals(&mut self, at: &str, depth: u32) -> String {
        let count = self.draw.within(1, 2);
        (0..count).map(|_| self.local(at, depth)).collect::<Vec<_>>().join(", ")
    }

    fn message(&mut self, path: &Path, copies: bool) -> String {
        let is_datagram = self.draw.chance(50);
        let bytes = self.pick(&[8, 64, 256]).min(self.mtu);
        let apart = self.machines.get(&path.requester) != self.machines.get(&path.responder);
        let to = if apart && copies && self.draw.chance(15) {
            format!(", to = {}", self.draw.within(2, 4))
        } else {
            String::new()
        };
        let verb = if is_datagram { "send-ud" } else { "send" };
        format!("{{ {verb} = \"{path}\", bytes = \"{bytes} B\"{to} }}")
    }

    /// A request that begins and ends at `initiator`, passing on up to `hops` times in between, and what
    /// follows its answer.
    fn request(&mut self, initiator: &str) -> String {
        let mut at = initiator.to_string();
        let mut steps = vec![self.compute(initiator)];
        let mut answered_at = initiator.to_string();
        for _ in 0..self.draw.within(0, 4) {
            if self.draw.chance(60) {
                steps.push(self.local(&at, 0));
            }
            let next = self.hops(&at);
            if next.is_empty() {
                break;
            }
            let path = self.pick(&next);
            if self.draw.chance(15) && self.hops(&path.responder).iter().any(|back| back.responder == at) {
                // One case asks and comes back, the other does not.
                let there = self.message(&path, false);
                let work = self.local(&path.responder, 1);
                let back = Path { requester: path.responder.clone(), responder: at.clone(), engine: None };
                let back = self.message(&back, false);
                let otherwise = self.local(&at, 1);
                steps.push(format!(
                    "{{ probability = 0.5, then = [{there}, {work}, {back}], otherwise = [{otherwise}] }}"
                ));
                continue;
            }
            steps.push(self.message(&path, true));
            at = path.responder;
        }
        // Home by the shortest way.
        while at != initiator {
            steps.push(self.local(&at, 0));
            let Some(path) = self.route_of(&at, initiator) else { break };
            steps.push(self.message(&path, true));
            answered_at.clone_from(&at);
            at = path.responder;
        }
        let mut text = format!("request = [\n    {},\n]\n", steps.join(",\n    "));
        if self.draw.chance(30) {
            let mut steps = vec![self.local(&answered_at, 0)];
            let onward = self.hops(&answered_at);
            if self.draw.chance(40) && !onward.is_empty() {
                let path = self.pick(&onward);
                steps.push(self.message(&path, true));
                if path.responder != initiator {
                    steps.push(self.local(&path.responder, 0));
                }
            }
            text += &format!("background = [{}]\n", steps.join(", "));
        }
        text
    }

    fn hops(&self, at: &str) -> Vec<Path> {
        self.paths.iter().filter(|path| path.requester == at && path.engine.is_none()).cloned().collect()
    }

    /// The next path on the shortest way between two endpoints.
    fn route_of(&self, from: &str, to: &str) -> Option<Path> {
        let mut seen = BTreeSet::from([to.to_string()]);
        let mut ring = vec![to.to_string()];
        while !ring.is_empty() {
            let mut next = Vec::new();
            for end in &ring {
                for path in self.paths.iter().filter(|path| path.responder == *end && path.engine.is_none()) {
                    if path.requester == from {
                        return Some(path.clone());
                    }
                    if seen.insert(path.requester.clone()) {
                        next.push(path.requester.clone());
                    }
                }
            }
            ring = next;
        }
        None
    }
}

fn design(seed: u64, draw: &mut Draw, router: &Router) -> String {
    let machines = router.system().machines.iter().enumerate();
    let machines: BTreeMap<String, usize> =
        machines.flat_map(|(index, m)| m.endpoints.iter().map(move |e| (e.name.clone(), index))).collect();
    let initiator = if draw.chance(85) { "client" } else { "host" };
    let initiator = if machines.contains_key(initiator) { initiator } else { "host" };
    let mtu = router.system().network.mtu.get();
    let all = router.system().machines.iter().flat_map(|m| m.endpoints.iter().chain(&m.apart));
    let names: Vec<(&str, &str)> = all.map(|one| (one.name.as_str(), one.processor.name.as_str())).collect();
    let mut beside = Vec::new();
    for (requester, processor) in &names {
        let engines =
            router.paths().into_iter().filter(|path| path.engine.is_some() && path.requester == *requester);
        let plain = names.iter().map(|(responder, _)| Path {
            requester: requester.to_string(),
            responder: responder.to_string(),
            engine: None,
        });
        for path in plain.filter(|path| path.to_string().contains(':')).chain(engines) {
            let verbs = router.verbs(&path).into_iter().filter(|verb| !verb.is_message());
            beside.extend(verbs.map(|verb| (processor.to_string(), path.clone(), verb)));
        }
    }
    let paths = router.paths().into_iter().filter(|path| path.requester != path.responder).collect();
    let endpoints = router.system().machines.iter().flat_map(|machine| &machine.endpoints);
    let has_works = |one: &&Endpoint| one.processor.works.iter().any(|kind| kind.work == WORKS[0].0);
    let works_at = endpoints.filter(has_works);
    let works_at = works_at.map(|one| one.name.clone()).collect();
    let working = Draw::of(Seed::new(seed).child("work"));
    let unawaited = Draw::of(Seed::new(seed).child("unawaited"));
    let mut writer = Writer { draw, working, unawaited, works_at, paths, beside, machines, mtu };
    let request = writer.request(initiator);
    format!(
        "[design]\nname = \"generated\"\ndevice = \"generated\"\nobjective = \"most-throughput\"\n\
         rank_by = \"throughput\"\n[parameters]\nservice = \"300 ns to 900 ns\"\nshare = \"0.3 to 0.7\"\n\
         times = {{ value = 2, low = 1, high = 3 }}\n[[alternative]]\nname = \"a\"\n{request}"
    )
}

/// What became of one design.
enum Outcome {
    /// Why, in the words that its author reads.
    Refused(String),
    Planned(Planned),
    Wrong(String),
}

/// What the twin says of a plan.
struct Planned {
    has_settled: bool,
    /// Its requests per second.
    rate: f64,
    /// What was carried, as a share of the plan.
    of: f64,
    /// What is said of it where that is too little: what fills first.
    gap: Option<String>,
}

/// Requests in a loaded window: as many as a plan counts.
const COUNTED: f64 = 24_000.0;
/// A branch is seen to 1%.
const SAMPLED: f64 = 0.012;
/// Every so many messages on a queue pair one is asked for its completion.
const SIGNALED: f64 = 64.0;

/// The processor time that polls of completions take, by station, which steps do not say. A sample may
/// hold twice as many, as it is short for queue pairs that few of its requests use.
fn polls(ready: &Ready) -> BTreeMap<String, f64> {
    let mut polls = BTreeMap::new();
    let system = ready.router.system();
    let code = ready.compiled.programs.iter().flat_map(|(_, program)| program.code.iter());
    for instruction in code {
        let Instruction::Verb(call) = instruction else { continue };
        let requester = call.requester();
        let (_, endpoint) = system.endpoint(requester).expect("a path's endpoints exist");
        *polls.entry(format!("{requester}.cpu")).or_insert(0.0) +=
            f64::from(call.to) * endpoint.processor.verbs.poll_time.as_seconds() / SIGNALED;
    }
    polls
}

/// Where the idle twin saw something else than the steps add up to.
fn differs(ready: &Ready, seen: &Fold) -> Option<String> {
    let router = &ready.router;
    let polls = polls(ready);
    ready.compiled.fold(router).seconds.iter().find_map(|(station, added)| {
        let seen = seen.seconds.get(station).copied().unwrap_or(0.0);
        let kind = router.station(station).map(|id| router.kind(id));
        // Slots wait for what a request does at the same time, and are held again as under load.
        let is_held = matches!(kind, Some(StationKind::InflightSlots(_)));
        let more = seen - added - 2.0 * polls.get(station).copied().unwrap_or(0.0);
        let less = added - seen;
        (!is_held && less.max(more) > SAMPLED * added + 1e-15)
            .then(|| format!("{station}: {seen:.4e} s seen, {added:.4e} s added up"))
    })
}

/// What becomes of a design by itself, and of one in three at part of what it carries.
fn assess(text: &str, router: &Arc<Router>, seed: u64) -> Outcome {
    let alone = judge_goal(text, router, &Changes::default());
    let goal = ["least-host-cpu", "lowest-p99"][(seed / 3 % 2) as usize];
    match &alone {
        Outcome::Planned(Planned { rate, gap: None, .. }) if seed.is_multiple_of(3) => {
            let changes = Changes {
                objective: Some(goal.to_string()),
                offered_load: Some(format!("{:.0}/s", rate * LOADED)),
                ..Changes::default()
            };
            match judge_goal(text, router, &changes) {
                Outcome::Planned(_) => alone,
                Outcome::Refused(why) => Outcome::Wrong(format!("refused at {goal}: {why}")),
                Outcome::Wrong(why) => Outcome::Wrong(format!("{goal}: {why}")),
            }
        }
        _ => alone,
    }
}

/// Which part of what a design carries it is asked for where its goal names a load.
const LOADED: f64 = 0.7;

fn judge_goal(text: &str, router: &Arc<Router>, changes: &Changes) -> Outcome {
    let parsed = Design::parse(text, "design.toml", std::path::Path::new("."), changes);
    let (design, ready) = match parsed.and_then(|design| {
        let ready = make_ready(&design, &design.alternatives[0], router.clone())?;
        Ok((design, [ready]))
    }) {
        Ok(both) => both,
        Err(error) => return refused(&error),
    };
    let settled = match settle_counting(&design, &ready, Chosen::Best, COUNTED, Seed::new(1)) {
        Ok(settled) => settled,
        Err(error) => return Outcome::Wrong(format!("the twin: {error}")),
    };
    if let Some(what) = differs(&ready[0], &settled.folds[0]) {
        return Outcome::Wrong(what);
    }
    if settled.loaded.failed > 0 {
        return Outcome::Wrong(format!("{} requests failed", settled.loaded.failed));
    }
    let binding = binding(&ready[0], &settled.folds[0]);
    let slots =
        router.station(&binding).is_some_and(|id| matches!(router.kind(id), StationKind::InflightSlots(_)));
    let allowed = if slots { 0.05 } else { 0.02 };
    let Interval { mean, low, high, .. } = settled.loaded.throughput;
    // A goal at a load is held to that load.
    let rate = design.objective.load().unwrap_or(settled.rate);
    let of = mean / rate;
    let scatters = high >= rate && high - low < 0.2 * mean;
    if of > 1.0 + allowed {
        return Outcome::Wrong(format!("{of:.4} of the plan's {rate:.4e}/s, bound by {binding}"));
    }
    let gap = match &settled.gap {
        Some(Gap { fullest: Some(fullest), bunched, blind, .. }) => {
            // Closed loops that leave every station with room say what they wait for.
            let is_short = of < 1.0 - allowed && fullest.busy < 0.99 && settled.load.is_none();
            if is_short && blind.is_none() && bunched.is_none() {
                return Outcome::Wrong(format!(
                    "{of:.4} of the plan, no station is full, and no cause is given"
                ));
            }
            let behind = bunched.iter().flat_map(|one| &one.behind).map(|one| {
                let (station, meanwhile) = (&one.station.station, one.station.busy);
                format!(", {station} {meanwhile:.3} while it is idle and {:.3} in all", one.in_all)
            });
            let at_random = bunched.iter().map(|one| match one.at_random {
                Some(one) => format!(", {:.2} of it carried at random", one.load_per_s / rate),
                None => ", no half of it carried at random".to_string(),
            });
            Some(format!(
                "{of:.3} of {rate:.4e}/s by {binding}: {} is {:.3} full, {} in flight, {} rounds{}",
                fullest.station,
                fullest.busy,
                settled.loaded.in_flight,
                settled.rounds,
                behind.chain(at_random).collect::<String>()
            ))
        }
        Some(_) => return Outcome::Wrong(format!("{of:.4} of the plan, and no station is named")),
        None if of < 1.0 - allowed && !scatters => {
            return Outcome::Wrong(format!("{of:.4} of the plan's {rate:.4e}/s goes unsaid"));
        }
        None => None,
    };
    Outcome::Planned(Planned { has_settled: settled.has_settled(), rate, of, gap })
}

/// What binds the plan.
fn binding(ready: &Ready, fold: &Fold) -> String {
    let mut problem = stations(&ready.router, None);
    problem.activities.push(activity("a", fold, &ready.router));
    let alone = problem.alone("a").ok();
    let first = alone.and_then(|alone| alone.binding.first().map(|one| one.constraint.clone()));
    match first {
        Some(Constraint::Station(name)) => name,
        other => format!("{other:?}"),
    }
}

fn refused(error: &miette::Report) -> Outcome {
    match (error.labels().is_some(), error.help()) {
        (true, Some(_)) => Outcome::Refused(error.to_string()),
        _ => Outcome::Wrong(format!("refused without a place or a remedy: {error}")),
    }
}

/// The design of a seed with what became of it.
fn judged(seed: u64) -> (String, Outcome) {
    let (system, _) = system("designs", seed);
    let router = Arc::new(Router::new(&system).expect("a generated system has routes"));
    let mut draw = Draw::of(Seed::new(seed).child("design"));
    let text = design(seed, &mut draw, &router);
    let outcome = assess(&text, &router, seed);
    (text, outcome)
}

/// Two ways of serving that nobody wrote, on the shipped card, with all that `plan` says of a design.
fn studied(seed: u64, router: &Router) -> Result<(), String> {
    let route_of = |name: &str| design(seed, &mut Draw::of(Seed::new(seed).child(name)), router);
    let second = route_of("b");
    let (_, second) = second.split_once("name = \"a\"\n").expect("a design has an alternative");
    let text = format!("{}\n[[alternative]]\nname = \"b\"\n{second}", route_of("a"));
    let text = text.replace("device = \"generated\"", "device = \"bluefield2\"");
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("design.toml");
    std::fs::write(&file, &text).expect("written");
    let changes = Changes::default();
    let study = |design: Design| {
        Study::of(&Ask {
            design: &design,
            changes: &changes,
            setting: &setting(&[], &[]),
            seed: Seed::new(seed),
            curve: true,
        })
    };
    let study = match Design::load(&file, &changes).and_then(study) {
        Ok(study) => study,
        Err(error) if error.help().is_some() => return Ok(()),
        Err(error) => return Err(format!("refused without a remedy: {error}\n{text}")),
    };
    let plan = &study.checked.plan;
    let wrong = |what: String| Err(format!("{what}\n{text}"));
    let total: f64 = plan.optimal.shares.iter().map(|(_, share)| share).sum();
    if (total - 1.0).abs() > 1e-6 {
        return wrong(format!("the shares add up to {total}"));
    }
    let most = plan.alternatives.iter().map(|one| one.rate.value).fold(0.0, f64::max);
    if plan.optimal.rate.value < 0.985 * most {
        return wrong(format!("{} of the best mix, {most} of one alternative", plan.optimal.rate.value));
    }
    let rates = plan.alternatives.iter().map(|one| one.rate).chain([plan.optimal.rate, plan.greedy.rate]);
    for Ranged { value, median, range_80: (low, high), range_95: (least, greatest) } in rates {
        if !(least <= low && low <= value.min(median) && value.max(median) <= high && high <= greatest) {
            return wrong(format!("{least} {low} {value} {median} {high} {greatest}"));
        }
    }
    for over in &plan.recommendation.over {
        let taken = plan.optimal.shares.iter().find(|(name, _)| *name == over.name);
        let most = taken.map_or(f64::INFINITY, |(_, share)| 1.0 / share);
        if over.ratio.range_95.1 > most.max(over.ratio.value) * (1.0 + 1e-6) {
            return wrong(format!("{:?} over {}, at most {most} times it", over.ratio, over.name));
        }
    }
    let settled = &study.checked.settled;
    let carried = settled.loaded.throughput;
    let is_told = settled.gap.is_some() || (carried.mean / settled.rate - 1.0).abs() <= settled.allowed();
    if !is_told {
        return wrong(format!("the twin carries {carried:?} of {} without a word", settled.rate));
    }
    Ok(())
}

#[test]
fn generated_mixes_are_studied() {
    let (first, count) = drawn();
    let system = Library::builtin().load(&SystemRequest { device: "bluefield2", ..SystemRequest::default() });
    let router = Router::new(&system.expect("it is shipped")).expect("it has routes");
    for seed in first..first + count.div_ceil(10) {
        let studied = std::panic::catch_unwind(|| studied(seed, &router));
        let told = studied.unwrap_or_else(|_| Err("it panics".to_string()));
        assert_eq!(told, Ok(()), "design {seed}");
    }
}

/// What is refused, without the names and numbers of the case.
fn kind_of(refusal: &str) -> String {
    let quoted = refusal.split('`').enumerate();
    let words = quoted.map(|(index, part)| if index % 2 == 1 { "..." } else { part });
    words.collect::<String>().replace(|letter: char| letter.is_ascii_digit(), "#")
}

#[test]
fn generated_designs_are_refused_or_run_at_their_plan() {
    let (first, count) = drawn();
    let seeds: Vec<u64> = TOLD.into_iter().chain(first..first + count).collect();
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeMap::new());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let Some(&seed) = seeds.get(next.fetch_add(1, Ordering::Relaxed)) else { return };
                    let judged = std::panic::catch_unwind(|| judged(seed));
                    // A long run shows what it finds as it goes.
                    match &judged {
                        Ok((_, Outcome::Planned(Planned { gap: Some(gap), .. }))) => {
                            println!("gap of design {seed}: {gap}");
                        }
                        Ok((_, Outcome::Wrong(why))) => println!("design {seed} is wrong: {why}"),
                        _ if seed % 100 == 0 => println!("design {seed}"),
                        _ => {}
                    }
                    found.lock().expect("no holder panics").insert(seed, judged);
                }
            });
        }
    });
    let (mut planned, mut unsettled, mut gaps, mut wrong) = (0, 0, 0, Vec::new());
    let (mut work, mut unawaited) = (0, 0);
    let mut refusals = BTreeMap::<String, u32>::new();
    let mut least = f64::INFINITY;
    for (seed, judged) in found.into_inner().expect("no holder panics") {
        match judged {
            Err(_) => wrong.push(format!("design {seed} panics")),
            Ok((text, Outcome::Wrong(why))) => wrong.push(format!("design {seed}: {why}\n{text}")),
            Ok((_, Outcome::Refused(why))) => *refusals.entry(kind_of(&why)).or_default() += 1,
            Ok((text, Outcome::Planned(one))) => {
                planned += 1;
                work += u32::from(text.contains("work = "));
                unawaited += u32::from(text.contains("awaited = false"));
                unsettled += u32::from(!one.has_settled);
                match one.gap {
                    Some(_) => gaps += 1,
                    None => least = least.min(one.of),
                }
            }
        }
    }
    refusals.iter().for_each(|(why, times)| println!("refused {times} times: {why}"));
    let count = seeds.len();
    println!(
        "{count} designs: {planned} planned, {unsettled} of them not settled, {gaps} with a gap, {work} with kinds of work, \
         {unawaited} with verbs that nobody waits for; of the others the least carries {least:.3} of its plan"
    );
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(work > 0, "kinds of work are drawn");
    assert!(unawaited > 0, "verbs that nobody waits for are drawn");
    assert!(planned * 2 > count, "most are ordinary: {planned} of {count} are planned");
    assert!(
        gaps * 20 <= planned + 10,
        "a plan that the twin does not carry is the exception: {gaps} of {planned}"
    );
}

/// A profile's text, each number that `takes` picks by its table and key as a guess, or where `at` is given as a fact that
/// is so many times what it was.
fn known_otherwise(text: &str, takes: &dyn Fn(&str) -> bool, at: Option<f64>) -> String {
    let mut table = String::new();
    let lines = text.lines().map(|line| {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_end_matches(']').to_string();
        }
        let number =
            line.split_once(" = { value = ").and_then(|(key, rest)| Some((key, rest.split_once(',')?.0)));
        let Some((key, value)) = number.filter(|(key, _)| takes(&format!("{table}.{key}"))) else {
            return line.to_string();
        };
        // Flags and packets, which come in powers of two, have no interval here; nor has what there is one of.
        let is_fixed = [
            "pcie_mtu",
            "read_request_limit",
            "read_completion_boundary",
            "packet_payload",
            "mtu",
            "bank_stride",
            "banks",
            "available",
        ]
        .contains(&key);
        let (digits, unit) = value.trim_matches('"').split_once(' ').unwrap_or((value, ""));
        let Some(own) = digits.parse::<f64>().ok().filter(|_| !is_fixed) else {
            return line.to_string();
        };
        let scaled = |times: f64| {
            let moved = own * times;
            match unit {
                "" if ["encoding", "combined_share"].contains(&key) => moved.min(1.0).to_string(),
                "" => moved.round().max(own.min(1.0)).to_string(),
                unit => format!("\"{moved} {unit}\""),
            }
        };
        match at {
            Some(times) => line.replacen(value, &scaled(times), 1),
            None => {
                let ends = format!("low = {}, high = {}", scaled(LOW), scaled(HIGH));
                line.replace("provenance = \"datasheet\"", &format!("{ends}, provenance = \"assumed\""))
            }
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The ends of what a guess may be, as parts of its value.
const LOW: f64 = 0.5;
const HIGH: f64 = 2.0;

/// One READ or WRITE on each of two paths from a client, planned by adding up.
fn two_ways(system: &offpath_profile::System, draw: &mut Draw) -> Option<(String, Plan)> {
    let router = Arc::new(Router::new(system).ok()?);
    let own: Vec<Path> =
        router.paths().into_iter().filter(|path| path.requester.starts_with("client")).collect();
    let mut text = "[design]\nname = \"two\"\ndevice = \"generated\"\nobjective = \"most-throughput\"\n\
                    rank_by = \"throughput\"\n"
        .to_string();
    for name in ["a", "b"] {
        let path = &own[draw.within(0, own.len() as u64 - 1) as usize];
        let verb = draw.one_of(&["read", "write"]);
        let bytes = draw.one_of(&[8, 64, 512, 4096, 65536]);
        text += &format!(
            "[[alternative]]\nname = \"{name}\"\nrequest = [{{ {verb} = \"{path}\", bytes = \"{bytes} B\" }}]\n"
        );
    }
    let design = Design::parse(&text, "two.toml", std::path::Path::new("."), &Changes::default()).ok()?;
    let ready: Vec<Ready> = design
        .alternatives
        .iter()
        .map(|one| make_ready(&design, one, router.clone()).ok())
        .collect::<Option<_>>()?;
    let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
    let plan = plan(&design, &ready, &folds, &[], Seed::new(1)).expect("there is a mix");
    Some((text, plan))
}

/// On whatever card: what rests on guesses alone is good for an order, and one number that becomes a guess lowers what it
/// moves and nothing else. What moves is found with the number at either end.
#[test]
fn a_guess_lowers_what_it_moves_on_generated_profiles() {
    let (first, count) = drawn();
    let (mut lowered, mut untouched) = (0, 0);
    for seed in first..first + count.div_ceil(8).max(6) {
        let of = |takes: &dyn Fn(&str) -> bool, at: Option<f64>| {
            let (system, mut draw) = edited("guesses", seed, &|text| known_otherwise(text, takes, at));
            two_ways(&system, &mut draw)
        };
        let (text, guesses) = of(&|_| true, None).expect("it is in order");
        for one in &guesses.alternatives {
            assert_eq!(
                one.basis,
                Basis::OrderOnly,
                "profile {seed}, {}: {:?}\n{text}",
                one.name,
                one.rests_on
            );
        }
        let (_, known) = of(&|_| false, None).expect("it is in order");
        let mut draw = Draw::of(Seed::new(seed).child("guess"));
        let keys = [
            "nic.port_rate",
            "nic.shared_packet_rate",
            "nic.inflight_slots",
            "nic.pass_time",
            "slot.rate",
            "slot.delay",
            "host.read_latency",
            "host.bandwidth",
            "network.packet_header",
            "host_verbs.post_time",
        ];
        let key = draw.one_of(&keys);
        let takes = |name: &str| name == key;
        let (_, guessed) = of(&takes, None).expect("it is in order");
        // At an end that the system refuses, as fewer slots than are reserved, the planner looks nearer to the value.
        let ends: Vec<Plan> = [LOW, HIGH].iter().filter_map(|at| Some(of(&takes, Some(*at))?.1)).collect();
        for (index, (before, after)) in known.alternatives.iter().zip(&guessed.alternatives).enumerate() {
            let moved = |end: &Plan| (end.alternatives[index].rate.value / before.rate.value - 1.0).abs();
            let moves = ends.iter().map(moved).fold(0.0, f64::max);
            let told = format!(
                "profile {seed}: {key} moves {} by {moves:.4}: {:?}\n{text}",
                after.name, after.rests_on
            );
            if moves > 0.02 {
                lowered += 1;
                assert!(after.basis >= Basis::Weak, "{told}");
            } else if moves < 0.001 && ends.len() == 2 {
                untouched += 1;
                assert_eq!(after.basis, before.basis, "{told}");
            }
        }
    }
    println!("{lowered} lowered, {untouched} untouched");
    assert!(lowered >= 2 && untouched >= 4, "{lowered} lowered, {untouched} untouched");
}
