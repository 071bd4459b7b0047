//! Which values are taken of the choices that a design leaves open.
//!
//! Choices of single requests are alternatives of one linear program, whose best mix is the best over all of them. A choice
//! of the whole deployment excludes mixes of its values: the program over all of them bounds what any one carries, and
//! branches on what such a mix would share out, until no branch may be better than the best deployment found. Demands are
//! added up, since a run for each would take minutes; what is planned after is observed on the twin as ever.
//!
//! A number of the system makes a system of each value, and each is compiled where they are few. Beyond that a range of cores
//! or threads is searched by halves: more of them enlarge what stations carry and move no demand, so that the system of the most
//! bounds all others and is one of them.

use crate::design::{Alternative, Changes, Design, OpenChoice, Runs, set_number};
use crate::planner::{PlanError, Ready, Setting, make_ready};
use crate::program::Fold;
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, WORTH_BUILDING, activity, composition, evaluate, goodness, stations};
use offpath_capacity::{MixProblem, Solution};
use offpath_route::Router;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Systems that settings with choices in them may make, each of which is compiled for; with more of them those of the most cores
/// stand for the others.
const MOST_SYSTEMS: usize = 64;
/// Linear programs that one question of the search may take before it is answered with the gap that is proved by then.
const MOST_SOLVED: usize = 256;
/// Alternatives of choices that are planned on: more would take the twin minutes.
const MOST_KEPT: usize = 12;
/// What is taken of an alternative by more than rounding.
const SHARE: f64 = 1e-6;
/// By how much the solver's rounding may make one deployment better than itself.
const ROUNDING: f64 = 1e-6;

/// What a search found.
#[derive(Clone, Debug)]
pub struct Search {
    /// What is changed in the design so that what was found is planned.
    pub changes: Changes,
    /// Alternatives that the choices make, over all systems, and values of those in `set` that make no system.
    pub considered: usize,
    /// The alternatives that the system cannot run, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// The values that make no system, as in `cores=0`, each with the reason.
    pub no_systems: Vec<(String, String)>,
    /// Systems that the choices in `set` make.
    pub systems: usize,
    /// How many of these were looked at; of the others those bound what they carry.
    pub looked_at: usize,
    /// How many of the alternatives of choices are planned on.
    pub kept: usize,
    /// By how much another deployment may be better than what is taken, as a share: up to a hundredth where the first listed of
    /// those that are as good is taken, more where the search ended before every other was ruled out.
    pub gap: f64,
    /// The choices of the whole deployment, by added-up demands.
    pub for_all: Vec<Margin>,
}

/// A choice with the values that are taken and what comes next.
#[derive(Clone, Debug, PartialEq)]
pub struct Margin {
    /// Its name.
    pub choice: String,
    /// The alternative that it is of; none of the whole deployment.
    pub of: Option<String>,
    /// The values that the best mix takes; of the whole deployment one.
    pub taken: Vec<String>,
    /// The values of the best mix that does without one of these; none where there is no such mix.
    pub next: Option<RunnerUp>,
}

/// What comes next to the values that are taken of a choice.
#[derive(Clone, Debug, PartialEq)]
pub struct RunnerUp {
    /// Its values; empty where the mix does without the alternative.
    pub values: Vec<String>,
    /// By how much what is taken is better by the design's goal, as a share of the next.
    pub better_by: f64,
}

/// Values that are open of each choice of the whole deployment.
type Domains = BTreeMap<String, Vec<String>>;
/// One value of each.
type Deployment = BTreeMap<String, String>;

/// The alternatives of a design on one of its systems.
struct Candidates {
    /// The values of the choices that its settings go by.
    of: Deployment,
    design: Design,
    ready: Vec<Ready>,
    folds: Vec<Fold>,
}

impl Candidates {
    fn parts(&self) -> Vec<Part<'_>> {
        Part::all(&self.ready)
    }

    /// The program over the alternatives that a mix may take and `is` picks.
    fn problem(&self, is: impl Fn(&Alternative) -> bool) -> MixProblem {
        let parts = self.parts();
        let router: &Router = &self.ready[0].router;
        let mut problem = stations(router, self.design.host_cpu_share);
        for index in solve::allowed(&self.design, &parts, &self.folds) {
            let one = parts[index].alternative;
            if is(one) {
                problem.activities.push(activity(&one.name, &self.folds[index], router));
            }
        }
        problem
    }

    fn solved(&self, is: impl Fn(&Alternative) -> bool) -> Option<(f64, Solution)> {
        let problem = self.problem(is);
        if problem.activities.is_empty() { None } else { goodness(&self.design, &problem) }
    }

    fn alternative(&self, name: &str) -> Option<&Alternative> {
        self.design.alternatives.iter().find(|one| one.name == name)
    }
}

/// Whether an alternative belongs to some deployment of these values.
fn fits(one: &Alternative, open: &Domains) -> bool {
    let mut own = one.choices.iter().filter(|choice| choice.is_for_all);
    own.all(|choice| open.get(&choice.name).is_none_or(|values| values.contains(&choice.value)))
}

/// The best deployment among some, and what no other of them is better than.
#[derive(Clone, Debug)]
struct Found {
    best: Option<(f64, Deployment)>,
    bound: f64,
}

struct Searcher<'d> {
    /// The choices of the whole deployment, in the file's order.
    choices: Vec<&'d OpenChoice>,
    looking: Looking<'d>,
    /// Linear programs that one question may take.
    most: usize,
}

impl Searcher<'_> {
    fn open(&self) -> Domains {
        self.choices.iter().map(|choice| (choice.name.clone(), choice.values.clone())).collect()
    }

    /// The best deployment of `open`, on whichever system.
    fn best(&mut self, open: &Domains) -> Result<Found, miette::Report> {
        let mut found = Found { best: None, bound: 0.0 };
        // A choice without a value makes no deployment.
        if open.values().any(Vec::is_empty) {
            return Ok(found);
        }
        for of in self.looking.that_bound(&self.choices, open) {
            let Some(one) = self.looking.see(&of)? else { continue };
            let mut own = open.clone();
            own.extend(of.into_iter().map(|(name, value)| (name, vec![value])));
            let of_one = self.best_on(&self.looking.all[one], own);
            found.bound = found.bound.max(of_one.bound);
            let is_better =
                |(good, _): &(f64, Deployment)| found.best.as_ref().is_none_or(|(best, _)| good > best);
            if of_one.best.as_ref().is_some_and(is_better) {
                found.best = of_one.best;
            }
        }
        Ok(found)
    }

    /// By branch and bound: a mix of several values of a choice is no deployment, and none of these values is better.
    fn best_on(&self, one: &Candidates, open: Domains) -> Found {
        let mut best: Option<(f64, Deployment)> = None;
        let mut nodes = vec![(f64::INFINITY, open)];
        for _ in 0..self.most {
            // Of equal bounds the first that was met, so that the order of the file decides.
            let Some(next) =
                (0..nodes.len()).reduce(|top, at| if nodes[at].0 > nodes[top].0 { at } else { top })
            else {
                break;
            };
            if best.as_ref().is_some_and(|(good, _)| nodes[next].0 <= good * (1.0 + 1e-9)) {
                nodes.clear();
                break;
            }
            let (_, open) = nodes.remove(next);
            let Some((good, solution)) = one.solved(|alternative| fits(alternative, &open)) else { continue };
            let shared = self.shared(one, &open, &solution);
            let deployment: Deployment =
                shared.iter().map(|(name, values)| (name.clone(), values[0].0.clone())).collect();
            match shared.iter().max_by_key(|(_, values)| values.len()).filter(|(_, values)| values.len() > 1)
            {
                None => {
                    if best.as_ref().is_none_or(|(known, _)| good > *known) {
                        best = Some((good, deployment));
                    }
                }
                Some((name, values)) => {
                    let fixed: Domains =
                        deployment.iter().map(|(name, value)| (name.clone(), vec![value.clone()])).collect();
                    let rounded = one.solved(|alternative| fits(alternative, &fixed));
                    if let Some((own, _)) =
                        rounded.filter(|(own, _)| best.as_ref().is_none_or(|(known, _)| own > known))
                    {
                        best = Some((own, deployment.clone()));
                    }
                    let most = &values[0].0;
                    let with = |values: Vec<String>| {
                        let mut open = open.clone();
                        open.insert(name.clone(), values);
                        (good, open)
                    };
                    nodes.push(with(vec![most.clone()]));
                    nodes.push(with(open[name].iter().filter(|value| *value != most).cloned().collect()));
                }
            }
        }
        let left = nodes.iter().map(|(bound, _)| *bound).fold(0.0, f64::max);
        let bound = best.as_ref().map_or(left, |(good, _)| good.max(left));
        Found { best, bound }
    }

    /// Of each choice the values that a mix takes, that of the greatest share first; the first open one where it takes none.
    fn shared(
        &self,
        one: &Candidates,
        open: &Domains,
        mix: &Solution,
    ) -> BTreeMap<String, Vec<(String, f64)>> {
        let mut shared = BTreeMap::new();
        for (name, values) in open {
            let mut taken: Vec<(String, f64)> = values
                .iter()
                .map(|value| {
                    let of = |(alternative, share): (&String, &f64)| {
                        let choices = &one.alternative(alternative)?.choices;
                        let is = choices
                            .iter()
                            .any(|own| own.is_for_all && own.name == *name && own.value == *value);
                        is.then_some(*share)
                    };
                    (value.clone(), mix.shares.iter().filter_map(of).sum())
                })
                .collect();
            taken.sort_by(|a, b| b.1.total_cmp(&a.1));
            let used = taken.iter().filter(|(_, share)| *share > SHARE).count();
            taken.truncate(used.max(1));
            if used == 0 {
                taken[0].0.clone_from(&values[0]);
            }
            shared.insert(name.clone(), taken);
        }
        shared
    }

    /// The deployment to take: of those that are as good as the best to a hundredth, the one whose values are listed first.
    fn first_of_the_best(&mut self, best: f64) -> Result<Domains, miette::Report> {
        let mut open = self.open();
        for choice in self.choices.clone() {
            let with = |value: &String| {
                let mut with = open.clone();
                with.insert(choice.name.clone(), vec![value.clone()]);
                with
            };
            let is_bounded = self.looking.bounded.contains(&choice.name);
            let mut is_enough = |value: &String| -> Result<bool, miette::Report> {
                let found = self.best(&with(value))?.best;
                Ok(found.is_some_and(|(good, _)| good >= best * (1.0 - WORTH_BUILDING)))
            };
            let mut first = None;
            if is_bounded {
                // With the most of it the best was found, and what is enough of it stays so with more.
                let mut counts: Vec<&String> = choice.values.iter().collect();
                counts.sort_by_key(|value| count(value));
                let (mut low, mut high) = (0, counts.len() - 1);
                while low < high {
                    let middle = low.midpoint(high);
                    match is_enough(counts[middle])? {
                        true => high = middle,
                        false => low = middle + 1,
                    }
                }
                first = choice.values.iter().find(|value| count(value) >= count(counts[low]));
            } else {
                for value in &choice.values {
                    if is_enough(value)? {
                        first = Some(value);
                        break;
                    }
                }
            }
            if let Some(value) = first {
                open = with(value);
            }
        }
        Ok(open)
    }
}

/// How many cores or threads a value of such a choice says.
fn count(value: &str) -> u64 {
    value.parse().expect("it was read as a count where the design was")
}

/// The choices that settings go by.
fn of_settings(design: &Design) -> impl Iterator<Item = &OpenChoice> {
    design.choices.iter().filter(|choice| choice.in_set)
}

/// The choices of so many cores or threads of which the system of the most bounds the others, since there are too many to look at
/// each.
fn bounded(design: &Design) -> BTreeSet<String> {
    let all = of_settings(design).fold(1usize, |all, choice| all.saturating_mul(choice.values.len()));
    let counts = of_settings(design).filter(|choice| all > MOST_SYSTEMS && choice.counts_threads);
    counts.map(|choice| choice.name.clone()).collect()
}

/// The greatest of such values.
fn greatest(values: &[String]) -> Vec<String> {
    values.iter().max_by_key(|value| count(value)).cloned().into_iter().collect()
}

/// Each of some values combined with each of the others.
fn combined<'c>(all: impl Iterator<Item = (&'c String, Vec<String>)>) -> Vec<Deployment> {
    all.fold(vec![Deployment::new()], |all, (name, values)| {
        let with = |of: &Deployment, value: &String| {
            let mut with = of.clone();
            with.insert(name.clone(), value.clone());
            with
        };
        all.iter().flat_map(|of| values.iter().map(move |value| with(of, value))).collect()
    })
}

/// Every value of the choices that settings go by, combined; of counts of which there are too many to look at each, the
/// greatest.
pub(crate) fn systems(design: &Design) -> Result<Vec<Deployment>, miette::Report> {
    let bounded = bounded(design);
    let mut made = 1usize;
    for choice in of_settings(design).filter(|choice| !bounded.contains(&choice.name)) {
        made = made.saturating_mul(choice.values.len());
        if made > MOST_SYSTEMS {
            return Err(miette::miette!(
                help = format!(
                    "give `{}` fewer values, a range a step as in \"1..190 by 4\", or fix it by `--parameter {}={}`; only where a \
                     choice says nothing but how many cores or threads processors have are more searched",
                    choice.name, choice.name, choice.values[0]
                ),
                "the choices in `set` make {made} systems or more, and {MOST_SYSTEMS} at most are looked at one by one"
            ));
        }
    }
    Ok(combined(of_settings(design).map(|choice| match bounded.contains(&choice.name) {
        true => (&choice.name, greatest(&choice.values)),
        false => (&choice.name, choice.values.clone()),
    })))
}

/// What is seen of a design on its systems.
struct Looking<'d> {
    design: &'d Design,
    changes: &'d Changes,
    setting: &'d Setting,
    as_run: &'d dyn Fn(Design) -> Design,
    /// The choices of which the greatest count bounds the others.
    bounded: BTreeSet<String>,
    /// Choices by which no setting of these systems goes: the device has nothing that theirs speak of.
    not_set: BTreeSet<String>,
    all: Vec<Candidates>,
    /// What was looked at, with its settings and the candidates that it has, where any runs.
    seen: Vec<(Deployment, Vec<String>, Option<usize>)>,
    /// The alternatives that choices make.
    considered: BTreeSet<String>,
    /// Alternatives and families that run on some system.
    runs: BTreeSet<String>,
    /// Why alternatives with choices of their own do not run on some system.
    refused: BTreeMap<String, (Alternative, String)>,
    /// The same of those without: what a setting goes by may make another system on which they do.
    not_run: BTreeMap<String, miette::Report>,
    /// What choices make impossible, each with the reason.
    impossible: BTreeMap<String, String>,
    /// The values that make no system, each with the reason, and the first such refusal.
    no_systems: Vec<(String, String)>,
    no_system: Option<miette::Report>,
}

/// The choices that settings go by, of which every value makes the same settings.
fn not_set(design: &Design, sets: &[(Deployment, Vec<String>)]) -> BTreeSet<String> {
    let without = |of: &Deployment, name: &str| {
        of.iter().filter(|(own, _)| *own != name).map(|(_, value)| value.clone()).collect::<Vec<String>>()
    };
    let is_idle = |name: &str| {
        sets.iter().all(|(of, set)| {
            sets.iter().all(|(other, same)| without(of, name) != without(other, name) || set == same)
        })
    };
    let of_sets = design.choices.iter().filter(|choice| choice.in_set && choice.values.len() > 1);
    of_sets.map(|choice| choice.name.clone()).filter(|name| is_idle(name)).collect()
}

impl<'d> Looking<'d> {
    /// Looks at a design on each of the systems that its settings make, or on those that bound the others.
    fn new(
        design: &'d Design,
        changes: &'d Changes,
        setting: &'d Setting,
        as_run: &'d dyn Fn(Design) -> Design,
    ) -> Result<Looking<'d>, miette::Report> {
        let systems = systems(design)?;
        let mut looking = Looking {
            design,
            changes,
            setting,
            as_run,
            bounded: bounded(design),
            not_set: BTreeSet::new(),
            all: Vec::new(),
            seen: Vec::new(),
            considered: BTreeSet::new(),
            runs: BTreeSet::new(),
            refused: BTreeMap::new(),
            not_run: BTreeMap::new(),
            impossible: BTreeMap::new(),
            no_systems: Vec::new(),
            no_system: None,
        };
        // Two values of a count tell whether a setting goes by it.
        let ends = of_settings(design).map(|choice| {
            match (looking.bounded.contains(&choice.name), &choice.values[..]) {
                (true, [first, .., last]) => (&choice.name, vec![first.clone(), last.clone()]),
                (_, values) => (&choice.name, values.to_vec()),
            }
        });
        let mut sets = Vec::new();
        for of in combined(ends) {
            let set = looking.changed(&of)?.set;
            sets.push((of, set));
        }
        looking.not_set = not_set(design, &sets);
        looking.bounded.retain(|name| !looking.not_set.contains(name));
        for of in systems {
            looking.see(&of)?;
        }
        looking.refuse()?;
        Ok(looking)
    }

    /// The design on the system of some values.
    fn changed(&self, of: &Deployment) -> Result<Design, miette::Report> {
        let mut own = self.changes.clone();
        own.parameters.extend(of.clone());
        own.only.clone_from(&self.design.only);
        Ok((self.as_run)(self.design.changed(&own)?))
    }

    /// The systems of `open` that no other of `open` carries more than: of a count the greatest, of what else settings go by each.
    fn that_bound(&self, choices: &[&OpenChoice], open: &Domains) -> Vec<Deployment> {
        let settled = choices.iter().filter(|choice| choice.in_set && !self.not_set.contains(&choice.name));
        combined(settled.map(|choice| match self.bounded.contains(&choice.name) {
            true => (&choice.name, greatest(&open[&choice.name])),
            false => (&choice.name, open[&choice.name].clone()),
        }))
    }

    /// Compiles the design for a system, once; where nothing runs there are no candidates.
    fn see(&mut self, of: &Deployment) -> Result<Option<usize>, miette::Report> {
        let mut of = of.clone();
        // A step may go by what no setting does.
        of.retain(|name, _| !self.not_set.contains(name));
        if let Some((_, _, found)) = self.seen.iter().find(|(known, _, _)| *known == of) {
            return Ok(*found);
        }
        let design = self.changed(&of)?;
        // What makes the same settings is the same system.
        let is_known = self.seen.iter().any(|(_, set, _)| *set == design.set);
        let found = if is_known { None } else { self.compiled(&of, &design) };
        self.seen.push((of, design.set, found));
        Ok(found)
    }

    fn compiled(&mut self, of: &Deployment, design: &Design) -> Option<usize> {
        self.impossible.extend(design.impossible.iter().cloned());
        let router = || -> Result<Arc<Router>, miette::Report> {
            let system = self
                .setting
                .system(design, &design.device)
                .map_err(|error| design.about_device(&design.device, error))?;
            design.check_against(&system)?;
            Ok(Arc::new(Router::new(&system).map_err(|error| miette::miette!("{error}"))?))
        };
        let router = match router() {
            Ok(router) => router,
            Err(error) => {
                let said: Vec<String> = of.iter().map(|(name, value)| format!("{name}={value}")).collect();
                self.no_systems.push((said.join(", "), error.to_string()));
                self.no_system.get_or_insert(error);
                return None;
            }
        };
        let own: Vec<&Alternative> = design.alternatives.iter().filter(|one| one.device.is_none()).collect();
        let tried = side_by_side(own.len(), |index| make_ready(design, own[index], router.clone()));
        let mut ready = Vec::new();
        for (one, tried) in own.into_iter().zip(tried) {
            if !one.choices.is_empty() {
                self.considered.insert(one.name.clone());
            }
            match tried {
                Ok(tried) => {
                    self.runs.extend([one.family.clone(), one.name.clone()]);
                    ready.push(tried);
                }
                Err(error) if one.choices.is_empty() => {
                    self.not_run.entry(one.name.clone()).or_insert(error);
                }
                Err(error) => {
                    self.refused.entry(one.name.clone()).or_insert_with(|| (one.clone(), error.to_string()));
                }
            }
        }
        if ready.is_empty() {
            return None;
        }
        let folds = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
        let names = ready.iter().map(|one| one.alternative.name.clone()).collect();
        let design = design.with_only(&names);
        self.all.push(Candidates { of: of.clone(), design, ready, folds });
        Some(self.all.len() - 1)
    }

    /// Refuses what runs on none of the systems and has no other way, and values of which none makes a system.
    fn refuse(&mut self) -> Result<(), miette::Report> {
        let runs = &self.runs;
        self.not_run.retain(|name, _| !runs.contains(name));
        if let Some((_, error)) = self.not_run.pop_first() {
            return Err(error);
        }
        if let Some(error) = self.no_system.take().filter(|_| self.all.is_empty()) {
            return Err(error);
        }
        if let Some((one, reason)) = self.refused.values().find(|(one, _)| !runs.contains(&one.family)) {
            return Err(self.design.about_alternative(
                one,
                format!(
                    "`{}` runs on {} with no value of its choices: `{}`: {reason}",
                    one.family, self.design.device, one.name
                ),
                "add a value that this device has, or plan for another device",
            ));
        }
        Ok(())
    }

    /// The alternatives that run on none of the systems, each with the reason.
    fn left_out(&self) -> Vec<(String, String)> {
        let refused = self.refused.iter().filter(|(name, _)| !self.runs.contains(*name));
        refused
            .map(|(name, (_, reason))| (name.clone(), reason.clone()))
            .chain(self.impossible.clone())
            .collect()
    }
}

/// Searches the choices that a design leaves open; nothing where it leaves none.
///
/// `as_run` is what is done to the design before it runs on its system, as leaving settings out that it does not have.
///
/// # Errors
/// Where an alternative without choices is refused, where one with choices is with every value, and where no deployment
/// carries anything.
pub fn search(
    design: &Design,
    changes: &Changes,
    setting: &Setting,
    as_run: &dyn Fn(Design) -> Design,
) -> Result<Option<Search>, miette::Report> {
    if design.choices.is_empty() {
        return Ok(None);
    }
    let mut set = setting.settings.iter().map(|setting| set_number(setting));
    if let Some(name) = set.find(|name| design.chosen_sets.contains(*name)) {
        return Err(miette::miette!(
            help = "fix the choice by `--parameter NAME=VALUE`",
            "`--set {name}` would hide what the design's `set` gives by a choice"
        ));
    }
    let looking = Looking::new(design, changes, setting, as_run)?;
    let choices: Vec<&OpenChoice> = design.choices.iter().filter(|choice| choice.of.is_none()).collect();
    let mut searcher = Searcher { choices, looking, most: MOST_SOLVED };
    let found = searcher.best(&searcher.open())?;
    let Some((best, _)) = found.best else {
        // What the plan of all says of why nothing is carried is said better there.
        let Some(first) = searcher.looking.all.first() else {
            return Err(PlanError::NothingAllowed { reason: "no alternative runs".to_string() }.into());
        };
        evaluate(&first.design, &first.parts(), &first.folds, false)?;
        return Err(PlanError::NothingAllowed { reason: "no deployment carries anything".to_string() }.into());
    };
    let taken = searcher.first_of_the_best(best)?;
    let own = searcher.best(&taken)?.best.map_or(best, |(good, _)| good);
    let is_used = |choice: &&&OpenChoice| {
        let alternatives = searcher.looking.all.iter().flat_map(|one| &one.ready).map(|one| &one.alternative);
        choice.in_set && !searcher.looking.not_set.contains(&choice.name)
            || alternatives.flat_map(|one| &one.choices).any(|own| own.is_for_all && own.name == choice.name)
    };
    let used: Vec<&OpenChoice> = searcher.choices.iter().filter(is_used).copied().collect();
    let mut for_all = Vec::new();
    // What nothing that runs goes by was not chosen.
    for choice in used {
        let mut other = searcher.open();
        let value = taken[&choice.name][0].clone();
        other.insert(
            choice.name.clone(),
            choice.values.iter().filter(|one| **one != value).cloned().collect(),
        );
        let next = searcher.best(&other)?.best.map(|(good, deployment)| RunnerUp {
            values: deployment.get(&choice.name).cloned().into_iter().collect(),
            better_by: by_goodness(design, own, good),
        });
        for_all.push(Margin { choice: choice.name.clone(), of: None, taken: vec![value], next });
    }
    let gap = (found.bound / own - 1.0).max(0.0);
    let gap = if gap < ROUNDING { 0.0 } else { gap };
    let looking = searcher.looking;
    let on = looking.all.iter().find(|one| {
        one.of.iter().all(|(name, value)| taken.get(name).is_none_or(|values| values.contains(value)))
    });
    let on = on.unwrap_or_else(|| unreachable!("a deployment was found on one of them"));
    let kept = kept(on, &taken, design)?;
    let mut changes = changes.clone();
    let deployed = taken.into_iter().filter_map(|(name, values)| Some((name, values.into_iter().next()?)));
    changes.parameters.extend(deployed);
    let with_choices =
        kept.iter().filter(|name| on.alternative(name).is_some_and(|one| !one.choices.is_empty()));
    let count = with_choices.count();
    // What runs on another device takes part in no mix, and is shown beside it.
    let beside = design.alternatives.iter().filter(|one| one.device.is_some()).map(|one| one.name.clone());
    changes.only = Some(kept.into_iter().chain(beside).collect());
    let settled = of_settings(design).filter(|choice| !looking.not_set.contains(&choice.name));
    Ok(Some(Search {
        changes,
        considered: looking.considered.len() + looking.impossible.len() + looking.no_systems.len(),
        left_out: looking.left_out(),
        systems: settled.fold(1, |all, choice| all.saturating_mul(choice.values.len())),
        looked_at: looking.seen.len(),
        no_systems: looking.no_systems,
        kept: count,
        gap,
        for_all,
    }))
}

/// By how much what is as good as `own` is better than what is as good as `other`; infinite where it costs nothing.
fn by_goodness(design: &Design, own: f64, other: f64) -> f64 {
    let is_free = |good: f64| design.objective.load().is_some() && good * solve::LEAST_COST > 0.999;
    match (is_free(own), is_free(other)) {
        (true, true) => 0.0,
        (true, false) => f64::INFINITY,
        _ => own / other - 1.0,
    }
}

/// The alternatives of a deployment that are planned on: all where they are few; else those of the best mix, of the best
/// mixes without each of its choices, of the design's own mixes, and then those that carry most by themselves.
fn kept(on: &Candidates, taken: &Domains, design: &Design) -> Result<BTreeSet<String>, miette::Report> {
    let fitting: Vec<usize> =
        (0..on.ready.len()).filter(|at| fits(&on.ready[*at].alternative, taken)).collect();
    let name = |at: usize| on.ready[at].alternative.name.clone();
    let (with, without): (Vec<usize>, Vec<usize>) =
        fitting.iter().partition(|at| !on.ready[**at].alternative.choices.is_empty());
    let mut kept: BTreeSet<String> = without.iter().map(|at| name(*at)).collect();
    if with.len() <= MOST_KEPT {
        kept.extend(with.into_iter().map(name));
        return Ok(kept);
    }
    let runs = match &design.runs {
        Runs::Alternative(name) => Some(name),
        _ => None,
    };
    let named = design.mixes.iter().flat_map(|mix| &mix.fill).chain(runs);
    let own: BTreeSet<String> = fitting.iter().map(|at| name(*at)).collect();
    kept.extend(named.filter(|name| own.contains(*name)).cloned());
    let narrowed = on.design.with_only(&own);
    let ready: Vec<Ready> = fitting.iter().map(|at| on.ready[*at].clone()).collect();
    let folds: Vec<Fold> = fitting.iter().map(|at| on.folds[*at].clone()).collect();
    let seen = evaluate(&narrowed, &Part::all(&ready), &folds, false)?;
    let best = composition(&seen.optimal);
    kept.extend(best.iter().cloned());
    for margin in margins_of(&narrowed, &ready, &best) {
        for value in &margin.taken {
            let is_other = |one: &Alternative| fits(one, taken) && !takes(one, &margin, value);
            kept.extend(on.solved(is_other).into_iter().flat_map(|(_, next)| composition(&next)));
        }
    }
    let mut by_rate: Vec<usize> = (0..ready.len()).collect();
    by_rate.sort_by(|a, b| seen.alone[*b].total.total_cmp(&seen.alone[*a].total));
    for at in by_rate {
        if kept.len() >= MOST_KEPT + without.len() {
            break;
        }
        kept.insert(ready[at].alternative.name.clone());
    }
    Ok(kept)
}

/// Whether an alternative has a value of a choice.
fn takes(one: &Alternative, margin: &Margin, value: &String) -> bool {
    Some(&one.family) == margin.of.as_ref()
        && one.choices.iter().any(|own| own.name == margin.choice && own.value == *value)
}

/// The choices of the alternatives that a mix takes, with the values that it takes.
fn margins_of(design: &Design, ready: &[Ready], mix: &[String]) -> Vec<Margin> {
    let of_requests = design.choices.iter().filter_map(|choice| Some((choice, choice.of.as_ref()?)));
    let margin = |(choice, of): (&OpenChoice, &String)| {
        let taken: Vec<&Alternative> = ready
            .iter()
            .map(|one| &one.alternative)
            .filter(|one| one.family == *of && mix.contains(&one.name))
            .collect();
        let is_taken = |value: &&String| {
            taken
                .iter()
                .any(|one| one.choices.iter().any(|own| own.name == choice.name && own.value == **value))
        };
        let taken: Vec<String> = choice.values.iter().filter(is_taken).cloned().collect();
        let (choice, of) = (choice.name.clone(), Some(of.clone()));
        (!taken.is_empty()).then_some(Margin { choice, of, taken, next: None })
    };
    of_requests.filter_map(margin).collect()
}

/// By how much the values that a mix takes of each choice of its requests are better than the best mix without one of them,
/// by the demands of a plan.
pub(crate) fn margins(
    design: &Design,
    ready: &[Ready],
    folds: &[Fold],
    shares: &[(String, f64)],
) -> Vec<Margin> {
    let mix = solve::made_of(shares.iter().map(|(name, share)| (name, share)));
    let worth = |names: &BTreeSet<String>| -> Option<(f64, Vec<String>)> {
        let at: Vec<usize> =
            (0..ready.len()).filter(|at| names.contains(&ready[*at].alternative.name)).collect();
        let own = design.with_only(names);
        let ready: Vec<Ready> = at.iter().map(|at| ready[*at].clone()).collect();
        let folds: Vec<Fold> = at.iter().map(|at| folds[*at].clone()).collect();
        let parts = Part::all(&ready);
        let seen = evaluate(&own, &parts, &folds, false).ok()?;
        Some((solve::worth(design, &parts, &folds, &seen.optimal), composition(&seen.optimal)))
    };
    let all: BTreeSet<String> = ready
        .iter()
        .filter(|one| one.alternative.device.is_none())
        .map(|one| one.alternative.name.clone())
        .collect();
    let Some((own, _)) = worth(&all) else { return Vec::new() };
    let mut margins = margins_of(design, ready, &mix);
    for margin in &mut margins {
        // Of several values the next best keeps all but the one that is missed least: without them all a mix is far from it.
        let without = |value: &String| {
            let others = ready.iter().map(|one| &one.alternative);
            let others: BTreeSet<String> = others
                .filter(|one| one.device.is_none() && !takes(one, margin, value))
                .map(|one| one.name.clone())
                .collect();
            let (next, mix) = worth(&others)?;
            let values: BTreeSet<String> = ready
                .iter()
                .map(|one| &one.alternative)
                .filter(|one| Some(&one.family) == margin.of.as_ref() && mix.contains(&one.name))
                .flat_map(|one| &one.choices)
                .filter(|choice| choice.name == margin.choice)
                .map(|choice| choice.value.clone())
                .collect();
            let better_by = solve::better_by(design.objective, own, next);
            Some(RunnerUp { values: values.into_iter().collect(), better_by })
        };
        let next = margin.taken.iter().filter_map(without);
        margin.next = next.reduce(|near, one| if one.better_by < near.better_by { one } else { near });
    }
    margins
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two ways of serving that bind different stations, with three choices that both go by: mixes of several values carry
    /// more than any one.
    fn drawn(goal: &str, draw: &mut dyn FnMut(u64) -> u64) -> Design {
        let sizes: Vec<String> = (0..3).map(|_| format!("\"{} B\"", 64 + draw(1 << 15))).collect();
        let (one, other) = (200 + draw(3000), 200 + draw(3000));
        let text = format!(
            "[design]\nname = \"drawn\"\ndevice = \"bluefield2\"\ntestbed = \"rack\"\nmode = \"separated-host\"\n{goal}\n\
             [choose]\nat = [\"host\", \"soc\"]\nto = [\"soc\", \"host\"]\nsize = [{}]\n\
             [[alternative]]\nname = \"a\"\nrequest = [ {{ send = \"client-{{at}}\", bytes = \"64 B\" }},\n\
             {{ compute = \"{{at}}\", time = \"{one} ns\" }}, {{ send = \"{{at}}-client\", bytes = \"{{size}}\" }} ]\n\
             [[alternative]]\nname = \"b\"\nrequest = [ {{ write = \"client-{{to}}\", bytes = \"{{size}}\" }}, \
             {{ send = \"client-{{at}}\", bytes = \"64 B\" }}, {{ compute = \"{{at}}\", time = \"{other} ns\" }},\n\
             {{ send = \"{{at}}-client\", bytes = \"64 B\" }} ]\n",
            sizes.join(", ")
        );
        Design::parse(&text, "drawn.toml", std::path::Path::new("."), &Changes::default()).expect("in order")
    }

    fn searcher<'d>(
        design: &'d Design,
        changes: &'d Changes,
        setting: &'d Setting,
        most: usize,
    ) -> Searcher<'d> {
        let looking = Looking::new(design, changes, setting, &|design| design).expect("it compiles");
        let choices = design.choices.iter().filter(|choice| choice.of.is_none()).collect();
        Searcher { choices, looking, most }
    }

    /// Whatever is not looked at is bounded, and with enough programs the best deployment is found, for every goal.
    #[test]
    fn a_search_that_ends_early_bounds_what_it_did_not_look_at() {
        let mut state = 11u64;
        let mut draw = |most: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % most
        };
        let goals = [
            "objective = \"most-throughput\"\nrank_by = \"throughput\"",
            "objective = \"least-host-cpu\"\noffered_load = \"1 M/s\"\nrank_by = \"host-cpu\"",
            "objective = \"lowest-p99\"\noffered_load = \"1 M/s\"\nrank_by = \"unloaded-latency\"",
        ];
        let (changes, setting) = (Changes::default(), Setting::plain(offpath_profile::Library::builtin()));
        let (mut branched, mut cut) = (0, 0);
        for round in 0..48 {
            let design = drawn(goals[round % goals.len()], &mut draw);
            let mut full = searcher(&design, &changes, &setting, MOST_SOLVED);
            let open = full.open();
            // Every deployment by itself.
            let mut deployments = vec![Domains::new()];
            for (name, values) in &open {
                let with = |of: &Domains, value: &String| {
                    let mut with = of.clone();
                    with.insert(name.clone(), vec![value.clone()]);
                    with
                };
                deployments =
                    deployments.iter().flat_map(|of| values.iter().map(|value| with(of, value))).collect();
            }
            let own = deployments
                .iter()
                .filter_map(|one| Some(full.looking.all[0].solved(|alternative| fits(alternative, one))?.0));
            let best = own.fold(0.0, f64::max);
            if best == 0.0 {
                continue;
            }
            let found = full.best(&open).expect("it is in order");
            let (good, _) = found.best.expect("there is one");
            assert!((good / best - 1.0).abs() < 1e-6, "{good} of {best}: {}", design.source.1);
            assert!((found.bound / best - 1.0).abs() < 1e-6, "{} of {best}", found.bound);
            let relaxed =
                full.looking.all[0].solved(|alternative| fits(alternative, &open)).expect("it is solved").0;
            branched += usize::from(relaxed > best * (1.0 + 1e-3));
            let early = searcher(&design, &changes, &setting, 1).best(&open).expect("it is in order");
            let least = early.best.map_or(0.0, |(good, _)| good);
            assert!(
                least <= best * (1.0 + 1e-6) && early.bound >= best * (1.0 - 1e-6),
                "{least} {}",
                early.bound
            );
            cut += usize::from(early.bound > least * (1.0 + 1e-3));
        }
        assert!(branched >= 5 && cut >= 5, "{branched} had to branch, {cut} were left open");
    }
}
