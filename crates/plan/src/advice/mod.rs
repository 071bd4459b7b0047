//! Advice: rules that find a change of a design which the twin shows to gain.
//!
//! Before anything is measured the mix is settled as a plan is. Where the twin does not confirm it, a gain
//! over it would be one over a number that nothing stands behind, so none is measured.
//!
//! A rule looks at the design and the mix that it runs, and proposes changes of the file. Both the
//! file as given and as changed run on the twin with the same seeds. A rule is reported only where
//! the lower end of its gain's 95% interval is above [`LEAST_GAIN`]; what a paper recommends is the
//! reason to look, never the reason to report.
//!
//! A rule that changes steps keeps the mix's shares, so that its gain is that of the change and not
//! of another mix. Where a workload has several operations, each is measured by itself. Remedies are
//! found in turn: the one that gains most is taken, and the others are measured on top of it.

mod card;
mod edit;
mod look;
mod mixes;
mod numbers;
mod standing;
mod steps;
mod trial;

pub use edit::{ChangedText, Edit, Edited, StepOrigins, StepRef};
pub use look::{Look, Site};
pub use standing::GainStanding;
pub use trial::{Added, AdviceCase, Gain, SEEDS, TrialBench};

use crate::check::{self, Gap, Settled, settle};
use crate::design::{Changes, Design, Objective, Runs};
use crate::planner::{PlanError, Ready, Setting, prepare, shares_run};
use crate::program::Fold;
use numbers::SameNumbers;
use offpath_twin::Interval;
use similar::TextDiff;
use std::collections::{BTreeMap, BTreeSet};

/// The least gain that is worth a change, as a share.
pub const LEAST_GAIN: f64 = 0.01;

/// Which requests a gain is about.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All of them, in the workload's proportions.
    All,
    /// Those of one operation, which then have the machines for themselves.
    Operation(String),
}

/// What a rule changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Steps of requests: the mix's shares are kept.
    Steps,
    /// The mix, or the alternatives to mix.
    Mix,
}

/// A rule of advice.
#[derive(Clone, Copy)]
pub struct AdviceRule {
    /// Its stable name, which is also that of its page.
    pub name: &'static str,
    /// What it looks for, in a few words.
    pub looks_for: &'static str,
    /// Who recommends it.
    pub source: &'static str,
    /// What it changes.
    pub level: Level,
    /// Finds what it would change.
    pub propose: fn(&Look<'_>) -> Proposed,
}

/// What a rule has to say before anything is measured.
pub enum Proposed {
    /// Nothing, and why.
    Silent(String),
    /// Changes to be measured.
    Changes(Vec<Proposal>),
}

/// One thing that a rule would change, in one of several ways.
pub struct Proposal {
    /// What is wrong where.
    pub why: String,
    /// Ways to change it, the smallest change first.
    pub ladder: Vec<Rung>,
}

/// One way to change it.
pub struct Rung {
    /// The change in a line.
    pub remedy: String,
    /// The changed file, or why it cannot be written so.
    pub changed: Result<ChangedText, String>,
    /// Whether the mix's shares are kept; else the changed design chooses its mix again.
    pub held: bool,
}

/// Every rule, in the order of their sources.
pub const RULES: [AdviceRule; 13] = [
    steps::SPREAD_HOT_RANGE,
    steps::SEGMENT_LARGE_READS,
    steps::SEGMENT_TRANSFERS,
    steps::BATCH_DOORBELLS,
    steps::UNBATCH_DOORBELLS,
    mixes::SPARE_INNER_LINK,
    mixes::ADD_ALTERNATIVE,
    mixes::RANK_ALTERNATIVES,
    mixes::MIX_ALTERNATIVES,
    card::USE_ACCELERATOR,
    card::MOVE_BACKGROUND_WORK,
    card::SHARD_ACROSS_ENDPOINTS,
    card::NO_NIC_SIDE_CACHE,
];

/// A remedy that gains.
#[derive(Clone, Debug)]
pub struct Advice {
    /// The rule.
    pub rule: &'static str,
    /// What is wrong where.
    pub why: String,
    /// The change in a line.
    pub remedy: String,
    /// The change of the file, as a unified diff without its file names.
    pub diff: String,
    /// Which requests the gain is about.
    pub scope: Scope,
    /// What it gains, with the remedies before it in force.
    pub gain: Gain,
    /// How well that is known of the card; none of a tail, of which added-up demands tell nothing, and where nothing is left of
    /// what is spared.
    pub standing: Option<GainStanding>,
    /// What that rests on besides, where the remedy itself states numbers that nobody measured of this system.
    pub brings: Option<Brings>,
    /// Under each mechanism that the evidence leaves open, by its overlay, what added-up demands let expect of it as a
    /// share, where that is another gain than the base mechanism's; none where the design has no plan under it. Of a tail,
    /// of which they tell nothing, only those under which there is none.
    pub with_variants: Vec<(String, Option<f64>)>,
}

/// Numbers that a remedy states with an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Brings {
    /// Their places in the changed design, as in `parameters.soc-over-host`.
    pub numbers: Vec<String>,
    /// The gain at the worse and at the better end of one of their intervals, as a share, at the shares that are advised
    /// and by demands that are added up; none of a tail, of which these tell nothing.
    pub ends: Option<(f64, f64)>,
}

impl Brings {
    /// Whether the change may lose by what it assumes, by as much as a change has to gain: also where nothing tells that
    /// it does not.
    pub fn may_lose(&self) -> bool {
        self.ends.is_none_or(|(least, _)| least < -LEAST_GAIN)
    }

    /// Why it may, in words.
    fn loss(&self) -> String {
        let numbers = self.numbers.join(" and ");
        match self.ends {
            Some((least, _)) => {
                format!("it loses {:.0}% at one end of {numbers}, which nobody measured", -least * 100.0)
            }
            None => {
                format!("nothing tells what a tail gains at the ends of {numbers}, which nobody measured")
            }
        }
    }
}

impl Advice {
    /// Whether it may lose by what it assumes ([`Brings::may_lose`]): then it is told, and no tool should carry it out
    /// before somebody has measured that.
    pub fn may_lose(&self) -> bool {
        self.brings.as_ref().is_some_and(Brings::may_lose)
    }
}

/// A rule that says nothing, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Silence {
    /// The rule.
    pub rule: &'static str,
    /// Its reasons, one for each thing that it looked at.
    pub reasons: Vec<String>,
}

/// What all rules say of a design.
#[derive(Clone, Debug)]
pub struct Advised {
    /// The objective that gains are about.
    pub objective: Objective,
    /// The mix that was looked at.
    pub runs: String,
    /// Its shares by alternative.
    pub shares: Vec<(String, f64)>,
    /// Remedies that gain, in the order in which they were found.
    pub advice: Vec<Advice>,
    /// The rules that say nothing.
    pub silent: Vec<Silence>,
    /// Of [`Depth::Sure`], the remedies that gain and are left out, and why.
    pub left_out: Vec<String>,
    /// What all remedies gain together, over all requests, where that was run.
    pub together: Option<Gain>,
    /// The file with every remedy in force.
    pub text: String,
    /// How far the twin is from what is planned of the mix, where that is too far to measure a gain on.
    pub unconfirmed: Option<Gap>,
    /// By which share slots were still held longer or shorter than was solved for, where the solution has not settled: a gain
    /// over what moves on by itself tells nothing.
    pub unsettled: Option<f64>,
    /// Why nothing was measured at this depth, where each run would take too long for a first look.
    pub postponed: Option<String>,
}

/// How much is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Depth {
    /// Every remedy is measured, also where the stations' capacity lets expect nothing.
    Every,
    /// The same without those that may lose by what they assume ([`Brings::may_lose`]): what may be written into a
    /// design without its author's deciding it.
    Sure,
    /// Only those that the added-up demands let expect something of and that gain in a first pair of runs, and not all of
    /// them together: quick, for a first look.
    Promising,
}

/// Remedies that one design takes at most.
const MOST_REMEDIES: usize = 12;
/// Ways of one change that are run before one is chosen.
const MOST_RUNGS: usize = 3;

/// A way of a change that could be taken.
struct Tried {
    remedy: String,
    case: AdviceCase,
    origins: StepOrigins,
}

/// A change with the way that was chosen.
struct Chosen {
    rule: usize,
    why: String,
    tried: Tried,
}

/// Finds the changes of a design that gain.
pub fn advise(bench: &TrialBench<'_>, text: &str, depth: Depth) -> Result<Advised, miette::Report> {
    advise_on(bench, text, depth, None)
}

/// [`advise`] of a mix that is asked for, whatever the text says that the system runs.
///
/// It is put into the text, so that a remedy may choose another, and changes are told of the text as it stands without it.
pub fn advise_mix(
    bench: &TrialBench<'_>,
    text: &str,
    mix: &str,
    depth: Depth,
) -> Result<Advised, miette::Report> {
    let mut edit = Edit::new(text);
    let mixed = edit.as_mut().is_some_and(|edit| edit.design("mix", mix).is_ok());
    let mixed = edit.filter(|_| mixed).map_or_else(|| text.to_string(), |edit| edit.text());
    advise_from(bench, (text, &mixed), depth, None)
}

/// [`advise`] where the design's best mix has been settled already.
pub(crate) fn advise_on(
    bench: &TrialBench<'_>,
    text: &str,
    depth: Depth,
    planned: Option<&Settled>,
) -> Result<Advised, miette::Report> {
    advise_from(bench, (text, text), depth, planned)
}

/// [`advise_on`] of a text, where another one stands in the file.
fn advise_from(
    bench: &TrialBench<'_>,
    (stands, text): (&str, &str),
    depth: Depth,
    planned: Option<&Settled>,
) -> Result<Advised, miette::Report> {
    let (mut first, ready) = bench.case(text, None)?;
    let is_best = first.design.runs == Runs::Best;
    let own;
    let settled = match planned.filter(|_| is_best) {
        Some(settled) => settled,
        None => {
            let chosen = if is_best { check::Chosen::Best } else { check::Chosen::Held(&first.shares) };
            own = settle(&first.design, &ready, chosen, bench.seed)?;
            &own
        }
    };
    // The best mix is that of the settled plan, as `plan` prints it.
    if is_best {
        first.shares.clone_from(&settled.shares);
    }
    let unmeasured = |gap: Option<Gap>, postponed: Option<String>| Advised {
        objective: first.design.objective,
        runs: first.design.runs.name().to_string(),
        shares: first.shares.clone(),
        advice: Vec::new(),
        silent: Vec::new(),
        left_out: Vec::new(),
        together: None,
        text: first.text.clone(),
        unconfirmed: gap,
        unsettled: None,
        postponed,
    };
    let refused = |gap: Gap| unmeasured(Some(gap), None);
    if let Some(gap) = &settled.gap {
        return Ok(refused(gap.clone()));
    }
    if !settled.has_settled() {
        return Ok(Advised { unsettled: Some(settled.moved), ..unmeasured(None, None) });
    }
    if depth == Depth::Promising
        && let Some(counted) = check::stretched(&first.design, settled)
    {
        let why = format!(
            "a run has to count {counted:.0} requests for what few of them do: `offpath check` measures it"
        );
        return Ok(unmeasured(None, Some(why)));
    }
    let scopes = scopes(&first, &ready);
    let mut current = first.clone();
    let mut stands = stands.to_string();
    let mut advice: Vec<Advice> = Vec::new();
    let mut reasons: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    let mut left_out = Vec::new();
    for (scope, levels) in &scopes {
        while advice.len() < MOST_REMEDIES {
            let (_, ready) = bench.case(&current.text, Some(&current.shares))?;
            let given = trial::added(&current, &ready, scope)?;
            let look = Look::new(&current, &ready, scope);
            let mut chosen = Vec::new();
            for (index, rule) in RULES.iter().enumerate().filter(|(_, rule)| levels.contains(&rule.level)) {
                let note = reasons.entry(index).or_default();
                match (rule.propose)(&look) {
                    Proposed::Silent(reason) => keep(note, reason),
                    Proposed::Changes(changes) => {
                        for change in changes {
                            let why = change.why.clone();
                            match choose(bench, &current, &given, change, scope, depth)? {
                                Ok(tried) => chosen.push(Chosen { rule: index, why, tried }),
                                Err(reason) => keep(note, format!("{why}: {reason}")),
                            }
                        }
                    }
                }
            }
            let at = (&current, stands.as_str());
            match best(bench, at, chosen, (scope, depth), &mut reasons, &mut left_out)? {
                Some((found, case)) => {
                    advice.push(found);
                    stands.clone_from(&case.text);
                    current = case;
                }
                None => break,
            }
        }
    }
    // Gains were measured on runs of their own, which have to carry what the plan was confirmed by.
    let counted = settled.loaded.window.as_seconds() * settled.rate;
    let arrived = trial::REQUESTS.min(counted) * SEEDS as f64;
    if let Some(carried) = bench.carried(&first)
        && let Some(gap) = check::differs(&first.design, &ready, settled, (carried, arrived))
    {
        return Ok(refused(gap));
    }
    let together = match advice.as_slice() {
        [] => None,
        [one] if one.scope == Scope::All => Some(one.gain),
        _ if depth == Depth::Promising => None,
        _ => bench.gain(&first, &current, &Scope::All)?,
    };
    Ok(Advised {
        objective: first.design.objective,
        runs: first.design.runs.name().to_string(),
        shares: first.shares,
        silent: RULES
            .iter()
            .enumerate()
            .filter(|(_, rule)| !advice.iter().any(|one| one.rule == rule.name))
            .map(|(index, rule)| Silence {
                rule: rule.name,
                reasons: reasons.remove(&index).unwrap_or_default(),
            })
            .collect(),
        left_out,
        together,
        text: current.text,
        advice,
        unconfirmed: None,
        unsettled: None,
        postponed: None,
    })
}

fn keep(reasons: &mut Vec<String>, reason: String) {
    if !reasons.contains(&reason) {
        reasons.push(reason);
    }
}

/// Which requests are looked at, and for which changes. Operations are told apart where throughput is
/// sought: the one that binds would hide what the others lose.
fn scopes(case: &AdviceCase, ready: &[Ready]) -> Vec<(Scope, Vec<Level>)> {
    let operations: Vec<&String> = ready
        .first()
        .map(|one| one.alternative.operations.iter().map(|(name, ..)| name).collect())
        .unwrap_or_default();
    if operations.len() < 2 || case.design.objective != Objective::MostThroughput {
        return vec![(Scope::All, vec![Level::Steps, Level::Mix])];
    }
    let each = operations.into_iter().map(|name| (Scope::Operation(name.clone()), vec![Level::Steps]));
    each.chain([(Scope::All, vec![Level::Mix])]).collect()
}

/// The gain that added-up demands let expect, as a share; none of a tail, which is queueing.
fn expected(objective: Objective, given: &Added, changed: &Added) -> Option<f64> {
    match objective {
        Objective::MostThroughput => Some(changed.capacity / given.capacity - 1.0),
        Objective::LeastHostCpu { .. } if given.host_cpu_s > 0.0 => {
            Some(1.0 - changed.host_cpu_s / given.host_cpu_s)
        }
        Objective::LeastHostCpu { .. } => Some(0.0),
        Objective::LowestP99 { .. } => None,
    }
}

/// By what the ways of a change are ranked before any runs: the gain to be expected, and of a tail, which less latency or
/// more room may shorten, how much of any of the two there is. That is no gain of a tail.
fn rank(objective: Objective, given: &Added, changed: &Added) -> f64 {
    expected(objective, given, changed).unwrap_or_else(|| {
        (1.0 - changed.latency_s / given.latency_s).max(changed.capacity / given.capacity - 1.0)
    })
}

/// Chooses among the ways of a change: by added-up demands, then by one run of each that is left.
/// The smaller change is taken where a larger one brings less than half a percent more.
fn choose(
    bench: &TrialBench<'_>,
    given: &AdviceCase,
    base: &Added,
    change: Proposal,
    scope: &Scope,
    depth: Depth,
) -> Result<Result<Tried, String>, miette::Report> {
    let objective = given.design.objective;
    let mut refused = "the change is not possible here".to_string();
    let mut open: Vec<(f64, Tried)> = Vec::new();
    for rung in change.ladder {
        let held = rung.held.then_some(given.shares.as_slice());
        let ChangedText { text, origins } = match rung.changed {
            Ok(changed) => changed,
            Err(why) => {
                refused = format!("{} cannot be written into the file: {why}", rung.remedy);
                continue;
            }
        };
        let built = bench.case(&text, held).and_then(|(case, ready)| {
            let added = trial::added(&case, &ready, scope)?;
            Ok((case, added))
        });
        match built {
            Err(error) => refused = format!("{} is refused: {error}", rung.remedy),
            Ok((case, _)) if unchanged(given, &case) => {
                refused = format!("{} leaves the mix as it is", rung.remedy);
            }
            Ok((case, added)) => match broken(&case, base, &added) {
                Some(reason) => refused = format!("{} {reason}", rung.remedy),
                None => {
                    let rank = rank(objective, base, &added);
                    open.push((rank, Tried { remedy: rung.remedy, case, origins }));
                }
            },
        }
    }
    let Some(most) = open.iter().map(|(rank, _)| *rank).max_by(f64::total_cmp) else {
        return Ok(Err(refused));
    };
    if depth == Depth::Promising && most < LEAST_GAIN {
        return Ok(Err(match objective {
            Objective::LowestP99 { .. } => {
                "neither less latency nor more room lets expect a shorter tail".into()
            }
            _ => format!("the stations' capacity lets expect {:+.1}%", most * 100.0),
        }));
    }
    // No run beats what the stations carry, so nothing can be gained where they carry clearly less.
    if objective == Objective::MostThroughput && most < -0.05 {
        return Ok(Err(format!("the stations would carry {:.1}% less", most * -100.0)));
    }
    open.retain(|(rank, _)| *rank >= most - 0.03);
    open.truncate(MOST_RUNGS);
    if depth == Depth::Promising {
        // Added-up demands choose among the ways; the first of those that are as good is the smallest.
        let best = open.iter().position(|(rank, _)| *rank >= most - 0.005).unwrap_or(0);
        return Ok(Ok(open.swap_remove(best).1));
    }
    if open.len() == 1 || most < LEAST_GAIN {
        return Ok(Ok(open.swap_remove(0).1));
    }
    let jobs: Vec<(&AdviceCase, &Scope)> = open.iter().map(|(_, tried)| (&tried.case, scope)).collect();
    let samples = bench.run(&jobs, 1)?;
    let score = |index: usize| {
        let value = samples[index][0].value(objective);
        if objective == Objective::MostThroughput { value } else { -value }
    };
    let mut best = 0;
    for index in 1..open.len() {
        if score(index) > score(best) + 0.005 * score(best).abs() {
            best = index;
        }
    }
    Ok(Ok(open.swap_remove(best).1))
}

/// Whether a change leaves every request as it was: nothing that it adds is taken. What has been settled is the best
/// mix already, and by added-up demands another one of the same alternatives may only seem better.
fn unchanged(given: &AdviceCase, changed: &AdviceCase) -> bool {
    let steps = |case: &AdviceCase| -> Vec<(f64, String)> {
        let find = |name: &str| case.design.alternatives.iter().find(|one| one.name == name);
        case.shares.iter().filter_map(|(name, share)| Some((*share, look::identity(find(name)?)))).collect()
    };
    let is_best = given.design.runs == Runs::Best && changed.design.runs == Runs::Best;
    let known: Vec<String> =
        given.design.alternatives.iter().filter(|one| one.mixed).map(look::identity).collect();
    let (before, after) = (steps(given), steps(changed));
    let same = before.len() == after.len()
        && before.iter().zip(&after).all(|(a, b)| (a.0 - b.0).abs() < 1e-6 && a.1 == b.1);
    let adds_nothing = is_best && after.iter().all(|(_, identity)| known.contains(identity));
    (same || adds_nothing) && given.design.objects == changed.design.objects
}

/// Which constraint of the design a change breaks.
fn broken(case: &AdviceCase, base: &Added, changed: &Added) -> Option<String> {
    let design = &case.design;
    if let Some(bound) = design.latency_bound
        && changed.longest_s > bound.as_seconds()
        && changed.longest_s > base.longest_s
    {
        return Some(format!("takes longer than the latency bound of {bound}"));
    }
    if design.host_cpu_share.is_some() && changed.host_cpu_s > base.host_cpu_s * (1.0 + 1e-9) {
        return Some("takes more of the host's processor, which the design limits".to_string());
    }
    if changed.capacity.is_nan() || changed.capacity < 1.0 {
        return Some("leaves nothing within the design's constraints".to_string());
    }
    // What the twin cannot hold it would show to carry less than it does.
    let (needed, most) = (design.objective == Objective::MostThroughput)
        .then(|| check::crowded((changed.capacity, changed.latency_s), changed.most_in_flight))
        .flatten()?;
    Some(format!("takes about {needed:.0} requests in flight, and the twin runs {most}"))
}

/// The change that gains most, measured, with the changed design; it is told of the text that stands in the file.
fn best(
    bench: &TrialBench<'_>,
    (current, stands): (&AdviceCase, &str),
    chosen: Vec<Chosen>,
    (scope, depth): (&Scope, Depth),
    reasons: &mut BTreeMap<usize, Vec<String>>,
    left_out: &mut Vec<String>,
) -> Result<Option<(Advice, AdviceCase)>, miette::Report> {
    let of = |chosen: &[Chosen], pairs: u64| -> Result<(), miette::Report> {
        // All runs are asked for at once, so that every core has work.
        let jobs: Vec<(&AdviceCase, &Scope)> =
            chosen.iter().flat_map(|one| [(current, scope), (&one.tried.case, scope)]).collect();
        bench.run(&jobs, pairs)?;
        Ok(())
    };
    let mut chosen = chosen;
    if depth == Depth::Promising {
        // A first look gives no figures of what gains nothing, and one pair that does not gain says that all do not.
        of(&chosen, 1)?;
        let mut open = Vec::new();
        for one in chosen {
            let why = match bench.first_gain(current, &one.tried.case, scope)? {
                Some(share) if share > LEAST_GAIN => {
                    open.push(one);
                    continue;
                }
                Some(_) => "gains nothing in a first pair of runs",
                None => "does not carry the load in a first pair of runs",
            };
            keep(reasons.entry(one.rule).or_default(), format!("{}: {} {why}", one.why, one.tried.remedy));
        }
        chosen = open;
    }
    of(&chosen, SEEDS)?;
    let mut gains: Vec<(Gain, Chosen)> = Vec::new();
    for one in chosen {
        let note = reasons.entry(one.rule).or_default();
        match bench.gain(current, &one.tried.case, scope)? {
            Some(gain) if gain.share.low > LEAST_GAIN => gains.push((gain, one)),
            Some(gain) => keep(
                note,
                format!("{}: {} gains nothing ({})", one.why, one.tried.remedy, interval(&gain.share)),
            ),
            None => keep(note, format!("{}: {} does not carry the load", one.why, one.tried.remedy)),
        }
    }
    gains.sort_by(|a, b| b.0.share.low.total_cmp(&a.0.share.low));
    // Gains as good as the best are taken in the order of the rules: between them the draws decide.
    let most = gains.first().map_or(0.0, |(gain, _)| gain.share.low);
    let as_good = gains.iter().take_while(|(gain, _)| gain.share.low >= most - 0.005).count();
    gains[..as_good].sort_by_key(|(_, one)| one.rule);
    for (gain, one) in gains {
        if *scope != Scope::All {
            let whole = |case: &AdviceCase| -> Result<Added, miette::Report> {
                let (_, ready) = bench.case(&case.text, Some(&case.shares))?;
                trial::added(case, &ready, &Scope::All)
            };
            let expected = expected(current.design.objective, &whole(current)?, &whole(&one.tried.case)?);
            if let Some(expected) = expected.filter(|expected| *expected < -0.001) {
                let reason = format!(
                    "{}: {} gains alone and would cost all requests together {:.1}%",
                    one.why,
                    one.tried.remedy,
                    expected * -100.0
                );
                keep(reasons.entry(one.rule).or_default(), reason);
                continue;
            }
        }
        let same = SameNumbers::of(&current.design, &one.tried.case.design, &one.tried.origins);
        let brings = match brings(bench, current, &one.tried.case, (scope, &same)) {
            Ok(brings) => brings,
            // What a remedy states may be more, at one end, than a design may hold: then it is none.
            Err(error) => {
                let reason = format!("{} is refused at one end of what it states: {error}", one.tried.remedy);
                keep(reasons.entry(one.rule).or_default(), reason);
                continue;
            }
        };
        if let Some(brings) = brings.as_ref().filter(|brings| depth == Depth::Sure && brings.may_lose()) {
            let reason = format!("{}: {}", one.tried.remedy, brings.loss());
            keep(left_out, format!("{}: {reason}", RULES[one.rule].name));
            keep(reasons.entry(one.rule).or_default(), reason);
            continue;
        }
        let said = format!("{} {}", one.why, one.tried.remedy);
        let also = match also_changed(bench, current, &one.tried.case, &said) {
            Ok(also) => also,
            // The search of choices leaves out what the file says of others, and a file that is refused as a whole is no remedy.
            Err(error) => {
                let reason = format!("{} leaves a file that is refused: {error}", one.tried.remedy);
                keep(reasons.entry(one.rule).or_default(), reason);
                continue;
            }
        };
        let mut remedy = one.tried.remedy;
        if !also.names.is_empty() {
            remedy += &format!("; it changes {} too", also.names.join(" and "));
        }
        if also.is_of_others && depth == Depth::Sure {
            let reason = format!("{remedy}, and this scenario says nothing of others");
            keep(left_out, format!("{}: {reason}", RULES[one.rule].name));
            keep(reasons.entry(one.rule).or_default(), reason);
            continue;
        }
        let with_variants = with_variants(bench, current, &one.tried.case, (scope, RULES[one.rule].level))?;
        let standing = standing::standing(bench, current, &one.tried.case, (scope, &same))?;
        let found = Advice {
            rule: RULES[one.rule].name,
            why: one.why,
            remedy,
            diff: diff(stands, &one.tried.case.text),
            scope: scope.clone(),
            gain,
            standing,
            brings,
            with_variants,
        };
        return Ok(Some((found, one.tried.case)));
    }
    Ok(None)
}

/// What a remedy changes besides what it says.
struct AlsoChanged {
    /// Alternatives, each with whose it is where that is another scenario.
    names: Vec<String>,
    /// Whether another scenario has one of them.
    is_of_others: bool,
}

/// The alternatives of the file that do other steps as changed, or whose objects lie otherwise, and that `said` does not name. An
/// alternative that lends its steps changes with those that it lends them to, whatever their scenario.
fn also_changed(
    bench: &TrialBench<'_>,
    given: &AdviceCase,
    changed: &AdviceCase,
    said: &str,
) -> Result<AlsoChanged, miette::Report> {
    let changes = Changes { steps: true, scenario: None, only: None, ..bench.changes.clone() };
    let whole = |case: &AdviceCase| Design::parse(&case.text, bench.name, bench.directory, &changes);
    let (before, after) = (whole(given)?, whole(changed)?);
    let is_moved = |object: &&String| before.objects.get(*object) != after.objects.get(*object);
    let moved: BTreeSet<&String> = before.objects.keys().filter(is_moved).collect();
    let mut also = AlsoChanged { names: Vec::new(), is_of_others: false };
    for one in &before.alternatives {
        let Some(now) = after.alternatives.iter().find(|now| now.name == one.name) else { continue };
        let is_mixed = given.shares.iter().any(|(name, share)| *name == one.name && *share > 0.0);
        let reaches =
            || look::objects(one).iter().any(|object| moved.iter().any(|moved| moved.as_str() == *object));
        let is_other = look::identity(one) != look::identity(now);
        if !is_other && !reaches() {
            continue;
        }
        let is_of_others = given.design.scenario.is_some() && one.scenario != given.design.scenario;
        let is_said = said.contains(&format!("`{}`", one.name)) || (!is_other && is_mixed);
        also.is_of_others |= is_of_others;
        if is_of_others || !is_said {
            also.names.push(match one.scenario.as_ref().filter(|_| is_of_others) {
                Some(scenario) => format!("`{}` of scenario `{scenario}`", one.name),
                None if is_of_others => format!("`{}` of every scenario", one.name),
                None => format!("`{}`", one.name),
            });
        }
    }
    Ok(also)
}

/// What a remedy is worth at the ends of the numbers that it states itself.
fn brings(
    bench: &TrialBench<'_>,
    given: &AdviceCase,
    changed: &AdviceCase,
    (scope, same): (&Scope, &SameNumbers),
) -> Result<Option<Brings>, miette::Report> {
    let added = |case: &AdviceCase| trial::added(case, &prepare(&case.design, bench.setting)?, scope);
    let before = added(given)?;
    let mut found = Brings { numbers: Vec::new(), ends: None };
    for one in changed.design.estimates().iter().filter(|one| one.low != one.high && same.is_new(&one.id)) {
        for end in [one.low, one.high].into_iter().flatten() {
            let moved = [(one.id.to_string(), end)].into();
            let case = AdviceCase { design: changed.design.with_estimates(&moved)?, ..changed.clone() };
            if let Some(gain) = expected(given.design.objective, &before, &added(&case)?) {
                let (least, most) = found.ends.unwrap_or((gain, gain));
                found.ends = Some((least.min(gain), most.max(gain)));
            }
        }
        found.numbers.push(one.id.to_string());
    }
    Ok((!found.numbers.is_empty()).then_some(found))
}

/// From which difference on a gain under another mechanism is another gain.
const ANOTHER: f64 = 0.01;

/// What a change gains under each mechanism that the evidence leaves open, where that is told and another gain than the base
/// mechanism's, and none where the design or its change has no plan. Who may choose the mix chooses it again there.
fn with_variants(
    bench: &TrialBench<'_>,
    given: &AdviceCase,
    changed: &AdviceCase,
    (scope, level): (&Scope, Level),
) -> Result<Vec<(String, Option<f64>)>, miette::Report> {
    let gain = |setting: &Setting| -> Result<Option<f64>, miette::Report> {
        let added = |case: &AdviceCase| -> Result<Added, miette::Report> {
            let ready = prepare(&case.design, setting)?;
            let folds: Vec<Fold> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
            let shares = match level {
                Level::Mix if case.design.runs == Runs::Best => shares_run(&case.design, &ready, &folds)?,
                _ => case.shares.clone(),
            };
            trial::added(&AdviceCase { shares, ..case.clone() }, &ready, scope)
        };
        Ok(expected(given.design.objective, &added(given)?, &added(changed)?))
    };
    let base = gain(bench.setting)?;
    let mut found = Vec::new();
    let system = bench.setting.system(&given.design, &given.design.device)?;
    for (variant, _) in
        system.variants.iter().filter(|(variant, _)| !bench.setting.overlays.contains(variant))
    {
        let setting = Setting { mechanism: Some(variant.clone()), ..bench.setting.clone() };
        match gain(&setting) {
            Ok(there) => found.extend(
                there
                    .filter(|there| base.is_none_or(|base| (there - base).abs() > ANOTHER))
                    .map(|there| (variant.clone(), Some(there))),
            ),
            Err(error) if error.is::<PlanError>() => found.push((variant.clone(), None)),
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// A gain's interval in words.
pub fn interval(gain: &Interval) -> String {
    let percent = |share: f64| share * 100.0;
    // Rounding must not print a negative zero.
    let shown = |share: f64| if percent(share).abs() < 0.05 { 0.0 } else { percent(share) };
    format!(
        "{:+.1}% on the twin (95% of its runs {:+.1} to {:+.1}%)",
        shown(gain.mean),
        shown(gain.low),
        shown(gain.high)
    )
}

/// The lines that differ, with one line around them.
fn diff(before: &str, after: &str) -> String {
    TextDiff::from_lines(before, after).unified_diff().context_radius(1).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath_profile::Library;
    use offpath_twin::Seed;
    use std::path::Path;

    const TEXT: &str = "[design]\nname = \"t\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                        mix = \"host\"\nrank_by = \"throughput\"\n[[alternative]]\nname = \"host\"\n\
                        request = [{ read = \"client-host\", bytes = \"64 B\" }]\n";

    /// What changes no request of a mix that the design names is not measured, and what changes one is.
    #[test]
    fn a_change_of_what_no_request_does_is_none() {
        let setting = Setting::plain(Library::builtin());
        let changes = Changes::default();
        let bench = TrialBench::new("design.toml", Path::new("."), &changes, &setting, Seed::new(1));
        let case = |text: &str| bench.case(text, None).expect("it is carried").0;
        let own = case(TEXT);
        assert!(unchanged(&own, &case(&TEXT.replace("name = \"t\"", "name = \"u\""))));
        assert!(!unchanged(&own, &case(&TEXT.replace("64 B", "128 B"))));
    }

    /// Windows of few requests scatter by more than what settles, and of some seed the last round still moved: a gain over that
    /// tells nothing, where the twin carries what was planned too.
    #[test]
    fn nothing_is_measured_on_a_mix_that_has_not_settled() {
        let text = "[design]\nname = \"w\"\ndevice = \"bluefield2\"\nobjective = \"most-throughput\"\n\
                    rank_by = \"throughput\"\n[[alternative]]\nname = \"a\"\nrequest = [\
                    { write = \"client-host\", bytes = \"64 B\" }, { read = \"client-soc\", bytes = \"64 B\" }]\n";
        let setting = Setting::plain(Library::builtin());
        let changes = Changes::default();
        let bench = TrialBench::new("design.toml", Path::new("."), &changes, &setting, Seed::new(1));
        let (case, ready) = bench.case(text, None).expect("it is carried");
        let settled = |seed: u64| {
            check::settle_counting(&case.design, &ready, check::Chosen::Best, 500.0, Seed::new(seed))
                .expect("the twin runs it")
        };
        let moving = (1..=40).map(settled).find(|one| !one.has_settled() && one.gap.is_none());
        let moving = moving.expect("of forty seeds one has not settled");
        let advised = advise_on(&bench, text, Depth::Every, Some(&moving)).expect("it is looked at");
        assert_eq!(advised.unsettled, Some(moving.moved));
        assert!(advised.advice.is_empty() && advised.silent.is_empty() && advised.unconfirmed.is_none());
        assert_eq!((advised.shares, advised.text.as_str()), (moving.shares, text));
    }

    /// A load that one mechanism carries and the other does not: a gain there is none, and that is told.
    #[test]
    fn a_variant_under_which_there_is_no_plan_is_told() {
        let text = "[design]\nname = \"t\"\ndevice = \"bluefield2\"\nobjective = \"least-host-cpu\"\n\
                    offered_load = \"155 M/s\"\nrank_by = \"throughput\"\n\
                    [[alternative]]\nname = \"host\"\nrequest = [{ read = \"client-host\", bytes = \"64 B\" }]\n\
                    [[alternative]]\nname = \"soc\"\nrequest = [{ read = \"client-soc\", bytes = \"64 B\" }]\n";
        let (overlays, settings) = (vec![], vec![]);
        let library = Library::builtin();
        let setting = Setting { overlays, settings, ..Setting::plain(library) };
        let changes = Changes::default();
        let bench = TrialBench::new("design.toml", Path::new("."), &changes, &setting, Seed::new(1));
        for goal in ["least-host-cpu", "lowest-p99"] {
            let (case, _) = bench.case(&text.replace("least-host-cpu", goal), None).expect("it is carried");
            let told =
                with_variants(&bench, &case, &case, (&Scope::All, Level::Mix)).expect("there is a base");
            assert_eq!(told, [("one-pool".to_string(), None)], "{goal}");
        }
    }
}
