//! What a rule sees: the steps of the mix, and what the system's topology says of their paths.

use super::edit::{Edit, Edited, StepRef};
use super::trial::AdviceCase;
use super::{Proposed, Rung, Scope};
use crate::design::{Alternative, Design, Step};
use crate::planner::{Ready, capacity_at};
use crate::program::Fold;
use crate::solve::host_seconds;
use offpath_profile::{Endpoint, Machine};
use offpath_quantity::Bytes;
use offpath_route::{Path, Router, Verb, processor_of};
use std::collections::BTreeSet;

/// A design with the mix and the requests that are looked at.
pub struct Look<'l> {
    /// The design.
    pub design: &'l Design,
    /// The mix: shares by alternative.
    pub shares: &'l [(String, f64)],
    /// The routes of its system.
    pub router: &'l Router,
    ready: &'l [Ready],
    text: &'l str,
    scope: &'l Scope,
}

/// A step with where it stands.
#[derive(Clone, Debug)]
pub struct Site<'l> {
    /// Where the file has it.
    pub at: StepRef,
    /// The step.
    pub step: &'l Step,
}

/// A verb on a path.
#[derive(Clone, Debug)]
pub struct PathCall<'l> {
    /// Where the file has it.
    pub at: StepRef,
    /// The verb.
    pub verb: Verb,
    /// The path.
    pub path: Path,
    /// The payload.
    pub bytes: Bytes,
    /// The object that it accesses.
    pub object: Option<&'l str>,
    /// Requests in a doorbell batch.
    pub batch: u32,
}

/// Alternatives that take less of a mix are not looked at: nothing in them can gain.
const LEAST_SHARE: f64 = 1e-3;

impl<'l> Look<'l> {
    /// A look at a case, `ready` being its compiled alternatives.
    pub fn new(case: &'l AdviceCase, ready: &'l [Ready], scope: &'l Scope) -> Look<'l> {
        let own = ready.iter().find(|one| one.alternative.device.is_none()).unwrap_or(&ready[0]);
        Look {
            design: &case.design,
            shares: &case.shares,
            router: &own.router,
            ready,
            text: &case.text,
            scope,
        }
    }

    /// The alternatives that the mix takes, the largest share first.
    pub fn mixed(&self) -> Vec<&'l Alternative> {
        let taken = self.shares.iter().filter(|(_, share)| *share >= LEAST_SHARE);
        taken.filter_map(|(name, _)| self.design.alternatives.iter().find(|one| one.name == *name)).collect()
    }

    /// The steps of an alternative for the requests that are looked at, depth first.
    pub fn steps(&self, alternative: &'l Alternative) -> Vec<Site<'l>> {
        let mut sites = Vec::new();
        for (operation, _, steps) in &alternative.operations {
            if matches!(self.scope, Scope::Operation(name) if name != operation) {
                continue;
            }
            let start = sites.len();
            for step in steps {
                collect(step, &mut |step| {
                    let index = sites.len() - start;
                    let at = StepRef {
                        alternative: alternative.name.clone(),
                        family: alternative.family.clone(),
                        operation: operation.clone(),
                        index,
                    };
                    sites.push(Site { at, step });
                });
            }
        }
        sites
    }

    /// The verbs of an alternative.
    pub fn calls(&self, alternative: &'l Alternative) -> Vec<PathCall<'l>> {
        let sites = self.steps(alternative).into_iter();
        sites.filter_map(|site| call(site.at, site.step, self.router)).collect()
    }

    /// The verbs of every alternative of the mix.
    pub fn calls_of_mix(&self) -> Vec<PathCall<'l>> {
        self.mixed().into_iter().flat_map(|one| self.calls(one)).collect()
    }

    /// The endpoint of a name, with its machine.
    pub fn endpoint(&self, name: &str) -> Option<(&'l Machine, &'l Endpoint)> {
        let router: &'l Router = self.router;
        router.system().endpoint(name).ok()
    }

    /// Whether two endpoints stand in different machines.
    pub fn apart(&self, one: &str, other: &str) -> bool {
        self.router.machine_of(one) != self.router.machine_of(other)
    }

    /// The other endpoints of an endpoint's machine.
    pub fn siblings(&self, name: &str) -> Vec<&'l Endpoint> {
        self.endpoint(name).map_or_else(Vec::new, |(machine, _)| {
            machine.endpoints.iter().filter(|other| other.name != name).collect()
        })
    }

    /// Why `more` bytes do not fit into an endpoint's memory beside what the design keeps there; `None` where
    /// they do. An object in `moved` is what the bytes are for, and is not counted beside them.
    pub fn lacks_room(&self, at: &Endpoint, more: u64, moved: &BTreeSet<&str>) -> Option<String> {
        let capacity = at.memory.capacity.get();
        let kept: BTreeSet<&str> = self
            .design
            .alternatives
            .iter()
            .flat_map(|one| self.calls(one))
            .filter(|call| call.path.responder == at.name)
            .filter_map(|call| call.object)
            .filter(|name| !moved.contains(name))
            .collect();
        let objects: u64 = kept.iter().map(|name| self.size_of(name)).fold(0, u64::saturating_add);
        let cache = self.design.cache.as_ref().filter(|cache| cache.at == at.name);
        let taken = objects.saturating_add(cache.map_or(0, |cache| cache.budget.get()));
        let free = capacity.saturating_sub(taken);
        (more > free).then(|| {
            format!(
                "{} do not fit at `{}`: of its {} the design's other objects and cache leave {}",
                Bytes::new(more),
                at.name,
                at.memory.capacity,
                Bytes::new(free)
            )
        })
    }

    /// Bytes of an object with the copies of its hottest entries; 0 for one that the design has not.
    pub fn size_of(&self, object: &str) -> u64 {
        self.design.objects.get(object).map_or(0, |one| one.with_copies(one.spacing, one.copies, one.copied))
    }

    /// The links that a path between two endpoints of one machine passes twice, once into the NIC
    /// and once out of it; none where an engine copies.
    pub fn passed_twice(&self, path: &Path) -> Vec<&'l str> {
        let Some((machine, _)) = self.endpoint(&path.requester) else { return Vec::new() };
        if path.engine.is_some() || self.apart(&path.requester, &path.responder) {
            return Vec::new();
        }
        let nic = &machine.nic.name;
        let (Ok(into), Ok(out)) = (machine.hops(&path.requester, nic), machine.hops(nic, &path.responder))
        else {
            return Vec::new();
        };
        let into: BTreeSet<&str> = into.iter().map(|hop| hop.link.name.as_str()).collect();
        let links = out.iter().filter(|hop| hop.link.pcie.is_some()).map(|hop| hop.link.name.as_str());
        links.filter(|link| into.contains(link)).collect()
    }

    /// The paths with an engine that copies between the same endpoints.
    pub fn engines(&self, path: &Path) -> Vec<Path> {
        let all = self.router.paths().into_iter();
        all.filter(|other| {
            self.router.verbs(other).contains(&Verb::Copy)
                && (&other.requester, &other.responder) == (&path.requester, &path.responder)
        })
        .collect()
    }

    /// The payload above which a call is slower, with what begins there.
    pub fn slow_above(&self, call: &PathCall<'_>) -> Option<(Bytes, String)> {
        let apart = self.apart(&call.path.requester, &call.path.responder);
        let (machine, to) = self.endpoint(&call.path.responder)?;
        if let Some(name) = &call.path.engine {
            let engine = machine.engine(name).ok()?;
            return engine
                .slow_above
                .map(|above| (above, format!("the engine `{}` slows down", engine.name)));
        }
        let requester = (!apart).then_some(processor_of(&call.path.requester));
        let mut limits = machine.large_transfer_limits_of(requester, &to.memory.name, call.verb.name());
        let (_, limit) = limits.next()?;
        Some((limit.above, format!("the large-transfer limit `{}` begins", limit.name)))
    }

    /// What an alternative alone is ranked by, less being better: unloaded latency, network bytes,
    /// throughput with its sign turned, host processor time.
    pub fn criteria(&self, name: &str) -> Option<[f64; 4]> {
        let folds: Vec<Fold> = self.ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let index = self.ready.iter().position(|one| one.alternative.name == name)?;
        let alone = capacity_at(self.design, self.ready, &folds, &[(name.to_string(), 1.0)]).ok()?;
        let fold = &folds[index];
        let host = host_seconds(fold, &self.ready[index].router);
        Some([fold.latency, fold.network_bytes, -alone, host])
    }

    /// The file, to be changed.
    pub fn edit(&self) -> Option<Edit> {
        Edit::new(self.text)
    }

    /// A way of a change that keeps the mix's shares; none where it leaves the file as it is.
    pub fn held(&self, remedy: String, change: impl FnOnce(&mut Edit) -> Edited) -> Option<Rung> {
        self.rung(remedy, true, change)
    }

    /// A way of a change after which the design chooses its mix again.
    pub fn mixed_again(&self, remedy: String, change: impl FnOnce(&mut Edit) -> Edited) -> Option<Rung> {
        self.rung(remedy, false, change)
    }

    fn rung(&self, remedy: String, held: bool, change: impl FnOnce(&mut Edit) -> Edited) -> Option<Rung> {
        let mut edit = self.edit()?;
        let changed = change(&mut edit).map(|()| edit.changed());
        let is_same = changed.as_ref().is_ok_and(|changed| changed.text == self.text);
        (!is_same).then_some(Rung { remedy, changed, held })
    }
}

/// The call that a step is, where it is one.
pub fn call<'l>(at: StepRef, step: &'l Step, router: &Router) -> Option<PathCall<'l>> {
    let Step::Verb { verb, path, bytes, object, batch, .. } = step else { return None };
    let path = router.path(path).ok()?;
    Some(PathCall { at, verb: *verb, path, bytes: *bytes, object: object.as_deref(), batch: *batch })
}

/// The objects that an alternative accesses.
pub fn objects(alternative: &Alternative) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    for step in alternative.operations.iter().flat_map(|(_, _, steps)| steps) {
        collect(step, &mut |step| {
            if let Step::Verb { object: Some(object), .. } = step {
                found.insert(object.as_str());
            }
        });
    }
    found
}

/// Visits a step and what it holds, in the order of [`StepRef::index`].
pub fn collect<'l>(step: &'l Step, visit: &mut dyn FnMut(&'l Step)) {
    visit(step);
    let lists: Vec<&'l Vec<Step>> = match step {
        Step::Verb { .. } | Step::Compute { .. } | Step::Wait { .. } => Vec::new(),
        Step::Repeat { steps, .. } | Step::Background { steps, .. } => vec![steps],
        Step::Parallel(lists) => lists.iter().collect(),
        Step::Branch { then, otherwise, .. } => vec![then, otherwise],
    };
    lists.into_iter().flatten().for_each(|step| collect(step, visit));
}

/// Changes to measure, or why there are none.
pub fn proposed(changes: Vec<super::Proposal>, otherwise: impl Into<String>) -> Proposed {
    let changes: Vec<_> = changes.into_iter().filter(|change| !change.ladder.is_empty()).collect();
    if changes.is_empty() { Proposed::Silent(otherwise.into()) } else { Proposed::Changes(changes) }
}

/// What an alternative does, with every path changed by `path`; equal texts do the same. How requests
/// are posted is left out unless `posting`: it is no other alternative.
pub fn signature(alternative: &Alternative, path: &dyn Fn(&str) -> String, posting: bool) -> String {
    let each = alternative
        .operations
        .iter()
        .map(|(name, _, steps)| format!("{name}:{}", steps_signature(steps, path, posting)));
    each.collect()
}

fn steps_signature(steps: &[Step], path: &dyn Fn(&str) -> String, posting: bool) -> String {
    let list = |steps: &[Step]| steps_signature(steps, path, posting);
    let each = steps.iter().map(|step| match step {
        Step::Verb { verb, path: name, bytes, object, arrived, batch, to, signals, .. } => {
            let batch = if posting { *batch } else { 1 };
            let wait = if signals.unawaited { " unawaited" } else { "" };
            format!("{verb} {} {bytes} {object:?} {arrived:?} {batch} {to}{wait};", path(name))
        }
        Step::Wait { time, .. } => format!("wait {time};"),
        Step::Background { steps, .. } => format!("then[{}]", list(steps)),
        Step::Compute { at, cost, .. } => format!("{at} {cost:?};"),
        Step::Repeat { times, steps, .. } => format!("{times}[{}]", list(steps)),
        Step::Parallel(lists) => lists.iter().map(|steps| format!("({})", list(steps))).collect(),
        Step::Branch { probability, then, otherwise, .. } => {
            format!("{probability}?[{}][{}]", list(then), list(otherwise))
        }
    });
    each.collect()
}

/// Whether two lists of steps do the same, in full.
pub fn does_the_same(one: &[Step], other: &[Step]) -> bool {
    let of = |steps: &[Step]| steps_signature(steps, &|path| path.to_string(), true);
    of(one) == of(other)
}

/// The signatures of a design's alternatives, however they post.
pub fn known(design: &Design) -> Vec<String> {
    design.alternatives.iter().map(|one| signature(one, &|path| path.to_string(), false)).collect()
}

/// What an alternative does in full; equal texts do the same.
pub fn identity(alternative: &Alternative) -> String {
    signature(alternative, &|path| path.to_string(), true)
}
