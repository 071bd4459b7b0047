//! Alternatives and their steps.

use super::choose::Expanded;
use super::file::{RawAlternative, RawStep, overrides_of};
use super::resolve::{Read, Resolver};
use super::{Alternative, BEST, ComputeCost, GREEDY, LONG_COMPUTE, ObjectAccess, Signals, Step};
use crate::implemented::Application;
use crate::published::{Given, is_shipped_workload};
use offpath_quantity::Time;
use offpath_route::{Carrier, Responder, VERBS, VerbRow};
use offpath_workload::Workload;
use std::collections::BTreeMap;
use std::ops::Range;
use toml::Spanned;

/// Machines that one message goes to; more are a network's business.
const MOST_MACHINES: u64 = 64;
/// A message carries its alternative as 8 bits, and nobody compares more.
const MOST_ALTERNATIVES: usize = 200;
/// Longest name of an alternative, which tables and the line of the answer hold.
const LONGEST_NAME: usize = 200;
/// What a queue pair has room for unless a program asks for more ([`offpath_fabric::QueuePairOptions`]).
const SEND_QUEUE: usize = 128;

/// What a verb's step may say beside its path.
fn keys_of(row: &VerbRow) -> &'static [&'static str] {
    match (row.carriers.contains(&Carrier::Nic), row.own_payload) {
        // A message takes the request along, and what a processor does itself it cannot leave to others.
        (true, _) if row.responder == Responder::Receives => &["bytes", "object", "batch", "to"],
        (true, None) => &["bytes", "object", "batch", "to", "awaited"],
        (true, Some(_)) => &["object", "batch", "to", "awaited"],
        (false, _) if row.is_touch() => &["bytes", "object", "arrived"],
        (false, _) if row.carriers == [Carrier::Processor] => &["bytes", "object"],
        (false, _) => &["bytes", "object", "awaited"],
    }
}

impl Resolver<'_> {
    /// The share of an alternative's requests that find what they read in the cache.
    pub(super) fn hits(&self, context: &Context<'_>) -> Read {
        self.asked_hits.set(true);
        context.hit_ratio.clone().or_else(|| self.hit_ratio.clone()).unwrap_or_default()
    }

    /// Refuses lists of steps that nothing would carry out.
    fn check_lists(&self, given: &RawAlternative) -> Result<(), miette::Report> {
        let name = given.name.get_ref();
        let mut lists = given.lists();
        let span = |list: &[Spanned<RawStep>]| list.first().map_or(given.name.span(), Spanned::span);
        let Some((first, steps)) = lists.next() else { return Ok(()) };
        if let Some(like) = &given.like {
            return Err(self.error(
                format!(
                    "`{name}` is like `{}` and has a `{first}` of its own, which nothing would carry out",
                    like.get_ref()
                ),
                format!("leave out `like`, or the steps below `{first}`"),
                span(steps),
            ));
        }
        match lists.next() {
            Some((second, steps)) if first == "request" => Err(self.error(
                format!("`{name}` has a `request`, so that nothing would carry out its `{second}`"),
                "keep `request` where all requests are alike, or a list for each operation of a [workload]",
                span(steps),
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn read_alternatives(
        &self,
        workload: Option<&Workload>,
        objects: &BTreeMap<String, ObjectAccess>,
        application: Option<&Application>,
    ) -> Result<Vec<Alternative>, miette::Report> {
        let all = &self.file.raw.alternative;
        if all.is_empty() {
            return Err(self.error(
                "the design has no alternatives",
                "describe at least one under [[alternative]]",
                0..0,
            ));
        }
        if let Some(one) = all.get(MOST_ALTERNATIVES) {
            return Err(self.error(
                format!("the design has {} alternatives, and a plan at most {MOST_ALTERNATIVES}", all.len()),
                "split it into several designs",
                one.get_ref().name.span(),
            ));
        }
        let mut read: Vec<Alternative> = Vec::new();
        for (index, raw) in all.iter().enumerate() {
            let given = raw.get_ref();
            let name = given.name.get_ref();
            if name.trim().is_empty() {
                return Err(self.error(
                    "an alternative has an empty name",
                    "name it, as in `name = \"A1\"`: answers call it so",
                    given.name.span(),
                ));
            }
            if name.len() > LONGEST_NAME || name.contains(['\n', '\r', '\t']) {
                return Err(self.error(
                    format!("the name of an alternative has {} B or breaks its line", name.len()),
                    format!(
                        "give it one of at most {LONGEST_NAME} B in one line, as tables show it; `description` holds more"
                    ),
                    given.name.span(),
                ));
            }
            if [BEST, GREEDY].contains(&name.as_str()) {
                return Err(self.error(
                    format!("an alternative is named `{name}`, as a mix is that every plan has"),
                    "give it another name",
                    given.name.span(),
                ));
            }
            if all[..index].iter().any(|one| one.get_ref().name.get_ref() == name)
                || read.iter().any(|one| one.name == *name)
            {
                return Err(self.error(
                    format!("two alternatives are named `{name}`"),
                    "give each a name of its own",
                    given.name.span(),
                ));
            }
            let base = match &given.like {
                None => given,
                Some(like) => all
                    .iter()
                    .map(Spanned::get_ref)
                    .find(|a| a.name.get_ref() == like.get_ref() && a.like.is_none())
                    .ok_or_else(|| {
                        self.error(
                            format!("`{}` is not an alternative with steps of its own", like.get_ref()),
                            "name one that is described in full",
                            like.span(),
                        )
                    })?,
            };
            self.check_lists(given)?;
            let (before, mut refused) = (read.len(), None);
            for expanded in self.expanded(given, base)? {
                if read.iter().any(|one| one.name == expanded.name) {
                    return Err(self.error(
                        format!("two alternatives are named `{}`", expanded.name),
                        "give each a name of its own",
                        given.name.span(),
                    ));
                }
                let (own_name, seen) = (expanded.name.clone(), self.impossible.borrow().len());
                match self.alternative(expanded, workload, objects, application) {
                    Ok(one) => read.push(one),
                    // What a choice makes impossible is left out where another value of it is not.
                    Err(error) if self.impossible.borrow().len() > seen => {
                        self.impossible.borrow_mut()[seen].0.clone_from(&own_name);
                        self.passed_over.borrow_mut().insert(own_name);
                        refused.get_or_insert(error);
                    }
                    Err(error) => return Err(error),
                }
            }
            if let Some(error) = refused.filter(|_| read.len() == before) {
                return Err(error);
            }
        }
        Ok(read)
    }

    /// An alternative with a value for each of its choices.
    fn alternative(
        &self,
        expanded: Expanded,
        workload: Option<&Workload>,
        objects: &BTreeMap<String, ObjectAccess>,
        application: Option<&Application>,
    ) -> Result<Alternative, miette::Report> {
        let Expanded { name, given, base, choices } = expanded;
        let (given, base) = (&given, &base);
        // Steps that another alternative lends are still where they were written.
        let from = format!("alternative.{}", base.name.get_ref());
        let hit_ratio = given
            .hit_ratio
            .as_ref()
            .map(|ratio| self.share("hit_ratio", &format!("alternative.{name}.hit_ratio"), ratio));
        let context = Context { objects, hit_ratio: hit_ratio.transpose()? };
        self.asked_hits.set(false);
        let mut operations = Vec::new();
        if let Some(steps) = &base.request {
            operations.push((
                "request".to_string(),
                1.0,
                self.waited_steps(steps, &context, &format!("{from}.request"), "`request`")?,
            ));
        } else if let Some(workload) = workload {
            for operation in offpath_workload::ClientOperation::ALL {
                let share = workload.mix.share(operation);
                if share <= 0.0 {
                    continue;
                }
                let Some((_, steps)) = base.lists().find(|(key, _)| *key == operation.name()) else {
                    return Err(self.error(
                        format!(
                            "the workload has {:.0}% `{}`, and alternative `{name}` has no steps for it",
                            share * 100.0,
                            operation.name()
                        ),
                        format!("add `{} = [ ... ]` to it, or choose a workload without", operation.name()),
                        given.name.span(),
                    ));
                };
                let id = format!("{from}.{}", operation.name());
                let read = self.waited_steps(steps, &context, &id, &format!("`{}`", operation.name()))?;
                operations.push((operation.name().to_string(), share, read));
            }
        } else {
            return Err(self.error(
                format!("alternative `{name}` has no steps"),
                "add `request = [ ... ]`, or a [workload] and steps for its operations",
                given.name.span(),
            ));
        }
        if let Some(steps) = given.background.as_ref().or(base.background.as_ref()) {
            let own = if given.background.is_some() { given.name.get_ref() } else { base.name.get_ref() };
            let id = format!("alternative.{own}.background");
            let read = self.waited_steps(steps, &context, &id, "`background`")?;
            let span = steps.first().map_or(given.name.span(), Spanned::span);
            for (_, _, list) in &mut operations {
                list.push(Step::Background { steps: read.clone(), span: span.clone() });
            }
        }
        if let Some(ratio) = given.hit_ratio.as_ref().filter(|_| !self.asked_hits.get()) {
            return Err(self.error(
                format!("no step of `{name}` asks the cache, so that its `hit_ratio` has no effect"),
                "write `{ cached = \"OBJECT\", hit = [ ... ], miss = [ ... ] }` where hits and misses part, or leave it out",
                ratio.span(),
            ));
        }
        // The code of an application takes the share of hits whatever it does with it.
        let asks_cache = self.asked_hits.get();
        let mixable_there = given.mixed.unwrap_or(given.like.is_none());
        let mixable = mixable_there && given.device.is_none();
        Ok(Alternative {
            name,
            description: given.description.clone(),
            device: given.device.as_ref().map(|name| self.file.device(name)).or_else(|| base.device.clone()),
            mixed: mixable,
            mixable,
            mixable_there,
            scenario: given.scenario.as_ref().map(|name| name.get_ref().clone()),
            rows: self.cited(&given.rows, given.name.get_ref()),
            code: self.code(given.code.as_ref().or(base.code.as_ref()), application, &context)?,
            operations,
            asks_cache,
            family: given.name.get_ref().clone(),
            choices,
            span: given.name.span(),
        })
    }

    /// The rows that an alternative cites, each with why it is not evidence of it, where it is none.
    pub(super) fn cited(&self, rows: &[String], alternative: &str) -> Vec<(String, Option<&'static str>)> {
        let raw = self.file.raw.workload.as_ref();
        let is_own_workload = raw.zip(self.file.workload.as_ref()).is_some_and(|(raw, workload)| {
            !is_shipped_workload(raw.ycsb.get_ref(), overrides_of(raw), workload)
        });
        let is_given = !self.is_changed && !is_own_workload;
        let text = is_given.then_some(self.file.text.as_str());
        let given = Given { design: &self.file.raw.design.name, text, alternative };
        rows.iter().map(|row| (row.clone(), given.objection(row))).collect()
    }

    /// The steps of a list whose end somebody waits for, or work in the background: `of` is what the list is.
    fn waited_steps(
        &self,
        steps: &[Spanned<RawStep>],
        context: &Context<'_>,
        id: &str,
        of: &str,
    ) -> Result<Vec<Step>, miette::Report> {
        let read = self.steps(steps, context, id)?;
        let own = read.iter().filter(|step| !matches!(step, Step::Background { .. }));
        if own.clone().next().is_some() && !own.clone().any(awaits) {
            return Err(self.error(
                format!("nobody waits for any step of {of}"),
                "leave `awaited = false` out of the last verb, or add a step that is waited for, as a `compute`",
                steps.first().map_or(0..0, Spanned::span),
            ));
        }
        Ok(read)
    }

    /// The steps of the list that stands at `id`.
    pub(super) fn steps(
        &self,
        steps: &[Spanned<RawStep>],
        context: &Context<'_>,
        id: &str,
    ) -> Result<Vec<Step>, miette::Report> {
        let numbered = steps.iter().enumerate();
        numbered.map(|(index, step)| self.step(step, context, &format!("{id}.{}", index + 1))).collect()
    }

    pub(super) fn step(
        &self,
        spanned: &Spanned<RawStep>,
        context: &Context<'_>,
        id: &str,
    ) -> Result<Step, miette::Report> {
        let step = spanned.get_ref();
        // A number that a choice decides is another one in each alternative that the choice makes.
        let own = step.chosen.as_ref().map(|chosen| format!("{id}{chosen}"));
        let id = own.as_deref().unwrap_or(id);
        let kinds = step.verbs.len()
            + usize::from(step.compute.is_some())
            + usize::from(step.wait.is_some())
            + usize::from(step.background.is_some())
            + usize::from(step.repeat.is_some())
            + usize::from(step.parallel.is_some())
            + usize::from(step.cached.is_some())
            + usize::from(step.probability.is_some());
        if kinds != 1 {
            return Err(self.error(
                format!("a step does one thing, and this one names {kinds}"),
                format!(
                    "use one of {}, compute, wait, repeat, parallel, cached, probability, background",
                    VERBS.map(|row| row.name).join(", ")
                ),
                spanned.span(),
            ));
        }
        self.foreign_keys(spanned)?;
        if let [(verb, path)] = &step.verbs[..] {
            let verb = *verb;
            let (bytes, mut read) = match (&step.bytes, verb.own_payload()) {
                (Some(bytes), _) => self.bytes(&format!("{id}.bytes"), bytes)?,
                (None, Some(own)) => (own, Read::default()),
                (None, None) => {
                    return Err(self.error(
                        format!("`{verb}` on `{}` does not say how many bytes", path.get_ref()),
                        "add `bytes = \"64 B\"`",
                        spanned.span(),
                    ));
                }
            };
            if let Some(object) = &step.object
                && !context.objects.contains_key(object.get_ref())
            {
                return Err(self.unknown_object(object));
            }
            let mut arrived = None;
            if let Some(given) = &step.arrived {
                if let Some(object) = &step.object {
                    return Err(self.error(
                        format!(
                            "`{verb}` on `{}` is of `{}` and of what arrived",
                            path.get_ref(),
                            object.get_ref()
                        ),
                        "keep `object` for what lies there, or `arrived` for what a NIC wrote there last",
                        given.span(),
                    ));
                }
                let (backlog, among) = self.bytes(&format!("{id}.arrived"), given)?;
                if backlog < bytes {
                    return Err(self.error(
                        format!("`{verb}` on `{}`: {bytes} among {backlog} that arrived", path.get_ref()),
                        "`arrived` counts all that the NIC wrote there since, its own bytes among them",
                        given.span(),
                    ));
                }
                read.rests_on.extend(among.rests_on);
                arrived = Some(backlog);
            }
            let mut batch = 1;
            if let Some(given) = &step.batch {
                batch = self.whole("batch", &format!("{id}.batch"), given, u32::MAX.into())?.0 as u32;
                if batch as usize > SEND_QUEUE {
                    let why = format!(
                        "a batch of {batch} on `{}`: the send queue of a connection holds {SEND_QUEUE}",
                        path.get_ref()
                    );
                    if step.chosen.is_some() {
                        self.impossible.borrow_mut().push((String::new(), why.clone()));
                    }
                    return Err(self.error(why, "post them in smaller batches", given.span()));
                }
            }
            let mut to = 1;
            if let Some(given) = &step.to {
                to = self.whole("to", &format!("{id}.to"), given, MOST_MACHINES)?.0 as u32;
            }
            let unawaited = step.awaited.as_ref().is_some_and(|awaited| !awaited.get_ref());
            return Ok(Step::Verb {
                verb,
                path: path.get_ref().clone(),
                bytes,
                object: step.object.as_ref().map(|object| object.get_ref().clone()),
                arrived,
                batch,
                to,
                signals: Signals { unawaited, ..Signals::default() },
                rests_on: read.rests_on,
                span: path.span(),
            });
        }
        if let Some(at) = &step.compute {
            let written = (&step.time, &step.bytes, &step.rate, &step.work, &step.operations);
            let (time, rests_on) = match written {
                (None, bytes, None, Some(work), operations) if step.on.is_none() => {
                    let (amount, in_bytes, read) = match (bytes, operations) {
                        (Some(bytes), None) => {
                            let (bytes, read) = self.computed_bytes(&format!("{id}.bytes"), bytes)?;
                            (bytes.get() as f64, true, read)
                        }
                        (None, Some(operations)) => {
                            let read = self.work(&format!("{id}.operations"), operations)?;
                            (read.base, false, read)
                        }
                        _ => {
                            return Err(self.error(
                                format!("the work `{}` does not say how much of it", work.get_ref()),
                                "add `bytes = \"4 KiB\"` where it is counted in bytes, else `operations = 3`; not both",
                                spanned.span(),
                            ));
                        }
                    };
                    let work = work.get_ref().clone();
                    let cost = ComputeCost::Work { work, amount, in_bytes };
                    let rests_on = read.shares(1.0);
                    return Ok(Step::Compute { at: at.get_ref().clone(), cost, rests_on, span: at.span() });
                }
                (Some(time), None, None, None, None) => {
                    let (time, read) = self.time(&format!("{id}.time"), time)?;
                    (time, read.shares(1.0))
                }
                (None, Some(bytes), Some(given), None, None) => {
                    let (rate, read) = self.rate(&format!("{id}.rate"), given)?;
                    let (bytes, size) = self.computed_bytes(&format!("{id}.bytes"), bytes)?;
                    let ps = bytes.get() as f64 * 8e12 / rate as f64;
                    let time = Time::from_ps(ps.ceil() as u64);
                    let rests_on = size.shares(1.0).into_iter().chain(read.shares(-1.0)).collect();
                    (self.within_reason(time, given.span())?, rests_on)
                }
                _ => {
                    return Err(self.error(
                        format!("compute at `{}` needs `time`, or `bytes` and `rate`, or `work` with `bytes` or `operations`", at.get_ref()),
                        "as in `time = \"80 ns\"`, `bytes = \"chunk\", rate = \"500 MB/s\"` of one core, or `work = \"md5\", bytes = \"chunk\"`; \
                         `on = \"host\"` beside a time or rate says which processor's it is",
                        spanned.span(),
                    ));
                }
            };
            let cost = match &step.on {
                None => ComputeCost::Time(time),
                Some(on) => ComputeCost::On { processor: on.get_ref().clone(), time },
            };
            return Ok(Step::Compute { at: at.get_ref().clone(), cost, rests_on, span: at.span() });
        }
        if let Some(wait) = &step.wait {
            let (time, read) = self.time(&format!("{id}.wait"), wait)?;
            return Ok(Step::Wait { time, rests_on: read.shares(1.0), span: wait.span() });
        }
        if let Some(steps) = &step.background {
            let steps = self.waited_steps(steps, context, &format!("{id}.background"), "`background`")?;
            return Ok(Step::Background { steps, span: spanned.span() });
        }
        if let Some(times) = &step.repeat {
            let steps = self.required(&step.steps, "steps", spanned)?;
            if steps.is_empty() {
                return Err(self.error(
                    "a repeat of 0 steps does nothing",
                    "write at least one step in `steps`",
                    times.span(),
                ));
            }
            let (count, read) = self.whole("repeat", &format!("{id}.repeat"), times, u64::MAX)?;
            return Ok(Step::Repeat {
                times: count,
                steps: self.steps(steps, context, &format!("{id}.steps"))?,
                rests_on: read.rests_on,
                span: times.span(),
            });
        }
        if let Some(branches) = &step.parallel {
            if branches.len() > SEND_QUEUE {
                return Err(self.error(
                    format!(
                        "{} branches begin at once, and the send queue of a connection holds {SEND_QUEUE}",
                        branches.len()
                    ),
                    "let several `parallel` steps follow each other, or let one step of more bytes stand for many alike",
                    spanned.span(),
                ));
            }
            let numbered = branches.iter().enumerate();
            let read: Result<Vec<_>, _> = numbered
                .map(|(index, steps)| {
                    let id = format!("{id}.parallel.{}", index + 1);
                    self.waited_steps(steps, context, &id, "a list of `parallel`")
                })
                .collect();
            return Ok(Step::Parallel(read?));
        }
        if let Some(object) = &step.cached {
            if self.cache_object.as_ref() != Some(object.get_ref()) {
                return Err(self.error(
                    format!("`{}` is not what the cache keeps", object.get_ref()),
                    "describe it under [cache] with `hottest`",
                    object.span(),
                ));
            }
            let list = |steps, key: &str| {
                self.steps(self.required(steps, key, spanned)?, context, &format!("{id}.{key}"))
            };
            let (then, otherwise) = (list(&step.hit, "hit")?, list(&step.miss, "miss")?);
            let Read { base: probability, rests_on } = self.hits(context);
            return Ok(Step::Branch { probability, then, otherwise, rests_on });
        }
        let probability = step.probability.as_ref().expect("the only kind left");
        let Read { base: probability, rests_on } =
            self.share("probability", &format!("{id}.probability"), probability)?;
        let list = |steps, key: &str| {
            self.steps(self.required(steps, key, spanned)?, context, &format!("{id}.{key}"))
        };
        let (then, otherwise) = (list(&step.then, "then")?, list(&step.otherwise, "otherwise")?);
        Ok(Step::Branch { probability, then, otherwise, rests_on })
    }

    /// Refuses keys that belong to another kind of step: they would be ignored.
    pub(super) fn foreign_keys(&self, spanned: &Spanned<RawStep>) -> Result<(), miette::Report> {
        let step = spanned.get_ref();
        let verbs = VERBS
            .iter()
            .map(|row| (row.name, step.verbs.iter().any(|(verb, _)| *verb == row.verb), keys_of(row)));
        let others: [(&str, bool, &[&str]); 7] = [
            ("compute", step.compute.is_some(), &["time", "bytes", "rate", "on", "work", "operations"]),
            ("wait", step.wait.is_some(), &[]),
            ("background", step.background.is_some(), &[]),
            ("repeat", step.repeat.is_some(), &["steps"]),
            ("parallel", step.parallel.is_some(), &[]),
            ("cached", step.cached.is_some(), &["hit", "miss"]),
            ("probability", step.probability.is_some(), &["then", "otherwise"]),
        ];
        let kinds: Vec<_> = verbs.chain(others).collect();
        fn span<T>(key: &Option<Spanned<T>>) -> Option<Range<usize>> {
            key.as_ref().map(Spanned::span)
        }
        // An empty list has no step to point at.
        let list = |steps: &Option<Vec<Spanned<RawStep>>>| {
            steps.as_ref().map(|steps| steps.first().map_or(spanned.span(), Spanned::span))
        };
        let given = [
            ("bytes", span(&step.bytes)),
            ("object", span(&step.object)),
            ("arrived", span(&step.arrived)),
            ("batch", span(&step.batch)),
            ("to", span(&step.to)),
            ("awaited", span(&step.awaited)),
            ("time", span(&step.time)),
            ("rate", span(&step.rate)),
            ("on", span(&step.on)),
            ("work", span(&step.work)),
            ("operations", span(&step.operations)),
            ("steps", list(&step.steps)),
            ("hit", list(&step.hit)),
            ("miss", list(&step.miss)),
            ("then", list(&step.then)),
            ("otherwise", list(&step.otherwise)),
        ];
        let Some((kind, _, own)) = kinds.iter().find(|(_, is, _)| *is) else { return Ok(()) };
        for (key, span) in given {
            let Some(span) = span.filter(|_| !own.contains(&key)) else { continue };
            let owners: Vec<&str> =
                kinds.iter().filter(|(_, _, keys)| keys.contains(&key)).map(|(name, ..)| *name).collect();
            let takes = if own.is_empty() { "no other key".to_string() } else { own.join(", ") };
            return Err(self.error(
                format!("a `{kind}` step takes no `{key}`"),
                format!("`{kind}` takes {takes}; `{key}` belongs to {}", owners.join(", ")),
                span,
            ));
        }
        Ok(())
    }

    pub(super) fn required<'s>(
        &self,
        steps: &'s Option<Vec<Spanned<RawStep>>>,
        key: &str,
        at: &Spanned<RawStep>,
    ) -> Result<&'s [Spanned<RawStep>], miette::Report> {
        steps.as_deref().ok_or_else(|| {
            self.error(format!("this step has no `{key}`"), format!("add `{key} = [ ... ]`"), at.span())
        })
    }
}

pub(super) struct Context<'o> {
    pub(super) objects: &'o BTreeMap<String, ObjectAccess>,
    pub(super) hit_ratio: Option<Read>,
}

/// Whether a request waits for anything of a step, in any of its cases.
fn awaits(step: &Step) -> bool {
    match step {
        Step::Verb { signals, .. } => !signals.unawaited,
        Step::Compute { .. } | Step::Wait { .. } => true,
        Step::Background { .. } => false,
        Step::Repeat { steps, .. } => steps.iter().any(awaits),
        Step::Parallel(lists) => lists.iter().flatten().any(awaits),
        Step::Branch { then, otherwise, .. } => then.iter().chain(otherwise).any(awaits),
    }
}

/// What a design says that its author may not have meant.
pub(super) fn notes(alternatives: &[Alternative]) -> Vec<String> {
    pub(super) fn longest<'s>(steps: &'s [Step], found: &mut BTreeMap<&'s str, Time>) {
        for step in steps {
            match step {
                Step::Compute { at, cost, .. } if cost.said().is_some_and(|time| time >= LONG_COMPUTE) => {
                    let most = found.entry(at.as_str()).or_default();
                    *most = (*most).max(cost.said().unwrap_or_default());
                }
                Step::Verb { .. } | Step::Compute { .. } | Step::Wait { .. } => {}
                Step::Repeat { steps, .. } | Step::Background { steps, .. } => longest(steps, found),
                Step::Parallel(lists) => lists.iter().for_each(|steps| longest(steps, found)),
                Step::Branch { then, otherwise, .. } => {
                    longest(then, found);
                    longest(otherwise, found);
                }
            }
        }
    }
    pub(super) fn waits(steps: &[Step]) -> bool {
        steps.iter().any(|step| match step {
            Step::Wait { .. } => true,
            Step::Verb { .. } | Step::Compute { .. } => false,
            Step::Repeat { steps, .. } | Step::Background { steps, .. } => waits(steps),
            Step::Parallel(lists) => lists.iter().any(|steps| waits(steps)),
            Step::Branch { then, otherwise, .. } => waits(then) || waits(otherwise),
        })
    }
    let waiting = alternatives.iter().filter(|one| one.operations.iter().any(|(_, _, steps)| waits(steps)));
    let waiting: Vec<String> = waiting.map(|one| format!("`{}`", one.name)).collect();
    let unlimited = (!waiting.is_empty()).then(|| {
        format!(
            "what {} {} for is taken to serve any number of requests at once: no rate here is bound by it",
            waiting.join(" and "),
            if waiting.len() == 1 { "waits" } else { "wait" }
        )
    });
    let mut found = BTreeMap::new();
    alternatives.iter().flat_map(|one| &one.operations).for_each(|(_, _, steps)| longest(steps, &mut found));
    let note = |(at, time): (&str, Time)| {
        format!(
            "a `compute` of {time} keeps a core of `{at}` busy all that time; time of a device is a `wait`"
        )
    };
    let cited = alternatives.iter().flat_map(|one| one.rows.iter().map(move |row| (one, row)));
    let strange = cited.filter_map(|(one, (row, objection))| {
        let why = (*objection)?;
        Some(format!("`rows` of `{}`: {row} {why}, so it is not evidence of this alternative", one.name))
    });
    strange.chain(unlimited).chain(found.into_iter().map(note)).collect()
}

pub(super) fn names(alternatives: &[Alternative]) -> String {
    alternatives.iter().map(|a| format!("`{}`", a.name)).collect::<Vec<_>>().join(", ")
}
