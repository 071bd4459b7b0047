//! What `offpath whatif` answers: what a card would give a design if something of it were otherwise.

mod text;

use crate::choices::LeftOutAnswer;
use crate::command;
use crate::compare::{BestMix, cautions};
use crate::figures::{Goal, Unit};
use crate::plan::unplanned;
use crate::system::SystemAnswer;
use crate::{SCHEMA_VERSION, setting};
use offpath_plan::comparison::{Contest, DeviceRatio};
use offpath_plan::whatif::{ChangeAsk, ChangeStudy, TriedChange, TriedOutcome};
use offpath_plan::{Changes, Design, Ranged, Setting};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::Screen;
use offpath_twin::Seed;
use serde::Serialize;
use std::path::PathBuf;

/// From which share of the draws on something is told to be so, as intervals are of 80% too.
const TOLD: f64 = 0.8;

/// A change of an alternative's figures below which it is not listed, as a share.
const LISTED: f64 = 0.005;

/// A design whose card is to be tried with changes.
#[derive(Clone, Debug, Default)]
pub struct WhatIfRequest {
    /// The design file.
    pub design: PathBuf,
    /// What is changed in the design, its device among that.
    pub changes: Changes,
    /// The system; each of its overlays and settings is tried by itself.
    pub system: SystemOptions,
    /// The seed of every draw; the same seed gives the same answer.
    pub seed: u64,
}

/// A design that is loaded and whose card is not tried yet.
pub struct WhatIfDraft<'a> {
    request: &'a WhatIfRequest,
    setting: Setting,
    design: Design,
}

/// The answer of a design, or of each of its scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum WhatIfAnswers {
    /// Of a design without scenarios, or of the scenario that was chosen.
    One(Box<WhatIfAnswer>),
    /// Of each scenario by itself, since alternatives of different scenarios promise different things.
    Scenarios(TriedScenarios),
}

/// The answers of a design's scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedScenarios {
    /// Version of this schema.
    pub schema_version: u32,
    /// An answer each, in the file's order.
    pub scenarios: Vec<TriedScenario>,
}

/// The answer of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TriedScenario {
    /// The scenario's name.
    pub scenario: String,
    /// Its answer.
    #[serde(flatten)]
    pub tried: WhatIfAnswer,
}

/// What a change does to the design's best mix.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TriedEffect {
    /// The card does not have what it changes.
    NotApplicable,
    /// The card has it already.
    AlreadySo,
    /// It changes numbers, and nothing that the design uses.
    NotUsed,
    /// The best mix is better by a hundredth in 80% of the draws or more.
    Gains,
    /// It is worse by a hundredth in 80% of them or more.
    Loses,
    /// In 80% of them or more it is neither.
    NoDifference,
    /// The draws do not tell.
    CannotTell,
    /// There is no plan with it.
    NoPlan,
    /// There is one with it, and none without.
    FirstPlan,
}

/// Everything that is said of a card with changes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WhatIfAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design's name.
    pub design: String,
    /// Its file, as it was named.
    pub design_file: String,
    /// What was asked for beside the file, as options of a command line.
    pub options: Vec<String>,
    /// The workload in a line.
    pub workload: String,
    /// What is sought, in a word.
    pub goal: Goal,
    /// The load at which it is sought; null where the load is what is sought.
    pub load_req_per_s: Option<f64>,
    /// The unit of every throughput whose key does not name one.
    #[cfg_attr(test, schemars(extend("enum" = ["M req/s", "Gbit/s"])))]
    pub unit: &'static str,
    /// The payload of a request whose bits throughputs count; null where they count requests.
    pub unit_payload_bytes: Option<u64>,
    /// The system, as it is.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The best mix of the card as it is; null where it has no plan.
    pub now: Option<TriedFigures>,
    /// Why it has none; null where it has one.
    pub refused: Option<String>,
    /// Draws of the joint sample: a number that the card has with and without a change is drawn once for both.
    pub draws: usize,
    /// The changes: what others suggest to makers of cards in the order of their names, then what was asked for.
    pub changes: Vec<TriedAnswer>,
    /// Alternatives of the design that the card does not run.
    pub left_out: Vec<LeftOutAnswer>,
    /// What is to be said of the design and its plans.
    pub notes: Vec<String>,
}

/// A change of the card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedAnswer {
    /// The overlay's name, or the setting.
    pub name: String,
    /// What it changes and takes to be so; null of a setting.
    pub description: Option<String>,
    /// Who suggests it to makers of cards; null of what the user asks for.
    pub suggested_by: Option<String>,
    /// The numbers that it changes.
    pub numbers: Vec<TriedNumberAnswer>,
    /// What it does to the best mix.
    pub effect: TriedEffect,
    /// Why it is not applicable or has no plan; null where it is and has one.
    pub because: Option<String>,
    /// The best mix with it; null where it was not planned.
    pub then: Option<TriedFigures>,
    /// That beside the best mix of the card as it is; null where one of them has no plan.
    pub over_now: Option<OverNow>,
    /// Alternatives by themselves of which it moves rate or latency by half a percent or more.
    pub alternatives: Vec<AlternativeChange>,
}

/// A number that a change gives another value or interval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedNumberAnswer {
    /// Its dotted name.
    pub number: String,
    /// Its value as it is, with its unit; null where the card has none of it.
    pub now: Option<String>,
    /// Its value with the change.
    pub then: String,
    /// Lower end of the interval that it is known within then; null where none is stated.
    pub then_low: Option<String>,
    /// Upper end of it.
    pub then_high: Option<String>,
}

/// The figures of a best mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TriedFigures {
    /// The mix, as a plan of it has it.
    #[serde(flatten)]
    pub mix: BestMix,
    /// Host processor time of a request of it in microseconds.
    pub host_cpu_us: f64,
    /// Whether the twin carries what is planned.
    pub confirmed: bool,
}

/// A best mix with a change beside that without. Intervals are over the same draws for both, so that what both share
/// cancels.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverNow {
    /// By how many percent it is better by the goal: more throughput, or less of the host's time or of latency. Null where
    /// the goal spares something of which nothing is taken as it is.
    pub gain_percent: Option<f64>,
    /// Lower end of the gain's 80% interval.
    pub gain_percent_low_80: Option<f64>,
    /// Upper end of it.
    pub gain_percent_high_80: Option<f64>,
    /// Lower end of the same, moved also by what past predictions of ratios of different paths were wrong by.
    pub gain_with_past_errors_percent_low_80: Option<f64>,
    /// Upper end of that.
    pub gain_with_past_errors_percent_high_80: Option<f64>,
    /// In which share of the draws it is better by a hundredth.
    pub better_in_share_of_draws: f64,
    /// In which share of them it is worse by a hundredth.
    pub worse_in_share_of_draws: f64,
    /// By how many percent the mean unloaded latency is longer.
    pub unloaded_latency_change_percent: Option<f64>,
    /// Lower end of that change's 80% interval.
    pub unloaded_latency_change_percent_low_80: Option<f64>,
    /// Upper end of it.
    pub unloaded_latency_change_percent_high_80: Option<f64>,
}

/// An alternative by itself, with a change and without.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlternativeChange {
    /// Its name.
    pub alternative: String,
    /// By how many percent it carries more.
    pub rate_change_percent: f64,
    /// By how many percent its unloaded latency is longer.
    pub unloaded_latency_change_percent: f64,
}

/// Tries changes of a design's card.
///
/// # Errors
/// Where the design, a profile, or an overlay or setting that is asked for is refused, and where nothing of it runs.
pub fn whatif(request: &WhatIfRequest) -> Result<WhatIfAnswers, Failure> {
    WhatIfDraft::new(request, Design::load(&request.design, &request.changes)?)?.answer()
}

impl<'a> WhatIfDraft<'a> {
    /// The request's design, as it is loaded with the request's changes.
    ///
    /// # Errors
    /// Where the library of profiles is refused.
    pub fn new(request: &'a WhatIfRequest, design: Design) -> Result<WhatIfDraft<'a>, Failure> {
        let plain = Setting { overlays: Vec::new(), settings: Vec::new(), ..setting(&request.system)? };
        Ok(WhatIfDraft { setting: plain, design, request })
    }

    /// Tries them: on a design without scenarios once, else on each scenario by itself.
    ///
    /// # Errors
    /// As [`whatif`].
    pub fn answer(&self) -> Result<WhatIfAnswers, Failure> {
        let changes = &self.request.changes;
        if self.design.scenarios.is_empty() {
            return Ok(WhatIfAnswers::One(Box::new(self.one(changes).map_err(unplanned)?)));
        }
        let one = |name: &String| {
            let changes = Changes { scenario: Some(name.clone()), ..changes.clone() };
            let failed = |error: miette::Report| unplanned(error.wrap_err(format!("scenario `{name}`")));
            Ok(TriedScenario { scenario: name.clone(), tried: self.one(&changes).map_err(failed)? })
        };
        let scenarios = self.design.scenarios.iter().map(one).collect::<Result<_, Failure>>()?;
        Ok(WhatIfAnswers::Scenarios(TriedScenarios { schema_version: SCHEMA_VERSION, scenarios }))
    }

    fn one(&self, changes: &Changes) -> Result<WhatIfAnswer, miette::Report> {
        let WhatIfRequest { system, seed, .. } = self.request;
        let study = ChangeStudy::of(&ChangeAsk {
            design: &self.design,
            changes,
            setting: &self.setting,
            overlays: &system.overlay,
            settings: &system.set,
            seed: Seed::new(*seed),
        })?;
        let options = command::options(&self.request.changes, system, self.request.seed);
        Ok(WhatIfAnswer::of(&study, options))
    }
}

impl WhatIfAnswers {
    /// The answers.
    pub fn all(&self) -> impl Iterator<Item = &WhatIfAnswer> {
        let (one, more) = match self {
            WhatIfAnswers::One(one) => (Some(one.as_ref()), &[][..]),
            WhatIfAnswers::Scenarios(all) => (None, &all.scenarios[..]),
        };
        one.into_iter().chain(more.iter().map(|one| &one.tried))
    }

    /// Every answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        match self {
            WhatIfAnswers::One(one) => one.text(screen),
            WhatIfAnswers::Scenarios(all) => {
                let text = |one: &TriedScenario| {
                    screen.heading(&format!("Scenario: {}", one.scenario)) + &one.tried.text(screen)
                };
                all.scenarios.iter().map(text).collect::<Vec<String>>().join("\n")
            }
        }
    }
}

impl WhatIfAnswer {
    fn of(study: &ChangeStudy, options: Vec<String>) -> WhatIfAnswer {
        let comparison = &study.comparison;
        let (design, card) = (&comparison.design, &comparison.contenders[0]);
        let unit = Unit::of(design);
        let goal = Goal::of(design.objective);
        WhatIfAnswer {
            schema_version: SCHEMA_VERSION,
            design: design.name.clone(),
            design_file: design.source.0.clone(),
            options,
            workload: design.workload.clone(),
            goal,
            load_req_per_s: design.objective.load(),
            unit: unit.name(),
            unit_payload_bytes: unit.payload_bytes,
            system: SystemAnswer::of(&card.system),
            now: study.now().ok().map(|own| TriedFigures::of(own, unit)),
            refused: study.now().err().map(str::to_string),
            draws: offpath_plan::sample::DRAWS,
            changes: study.tried.iter().map(|one| TriedAnswer::of(study, one, unit, goal)).collect(),
            left_out: LeftOutAnswer::all(&card.left_out),
            notes: design
                .warnings
                .iter()
                .cloned()
                .chain(card.system.mode_note().map(str::to_string))
                .chain(cautions(card))
                .chain(comparison.notes.iter().cloned())
                .collect(),
        }
    }
}

impl TriedAnswer {
    fn of(study: &ChangeStudy, tried: &TriedChange, unit: Unit, goal: Goal) -> TriedAnswer {
        let (now, then) = (study.now().ok(), study.then(tried));
        let contest = then.and_then(Result::ok);
        let over = contest.and_then(|then| then.over.as_ref());
        let (effect, because) = match (&tried.outcome, then) {
            (TriedOutcome::NotApplicable(why), _) => (TriedEffect::NotApplicable, Some(why.clone())),
            (_, None) => (TriedEffect::AlreadySo, None),
            (_, Some(Err(why))) => (TriedEffect::NoPlan, Some(why.to_string())),
            (_, Some(Ok(then))) => (TriedEffect::of(now, then), None),
        };
        let numbers = tried.numbers.iter().map(|one| TriedNumberAnswer {
            number: one.name.clone(),
            now: one.now.map(|now| now.to_string()),
            then: one.then.to_string(),
            then_low: one.interval.map(|(low, _)| low.to_string()),
            then_high: one.interval.map(|(_, high)| high.to_string()),
        });
        TriedAnswer {
            name: tried.name.clone(),
            description: Some(tried.description.clone()).filter(|said| !said.is_empty()),
            suggested_by: tried.suggested_by.clone(),
            numbers: numbers.collect(),
            effect,
            because,
            then: contest.map(|own| TriedFigures::of(own, unit)),
            over_now: over.map(|over| OverNow::of(over, goal)),
            alternatives: now.zip(contest).map_or_else(Vec::new, |(now, then)| changed(now, then)),
        }
    }
}

/// The alternatives by themselves that are otherwise.
fn changed(now: &Contest, then: &Contest) -> Vec<AlternativeChange> {
    let before = &now.checked.plan.alternatives;
    let of = |then: &offpath_plan::Alone| {
        let now = before.iter().find(|now| now.name == then.name)?;
        let percent = |then: f64, now: f64| if then == now { 0.0 } else { (then / now - 1.0) * 100.0 };
        let (rate, latency) =
            (percent(then.rate.value, now.rate.value), percent(then.latency_s.value, now.latency_s.value));
        let is_told = |change: f64| change.is_finite() && change.abs() >= LISTED * 100.0;
        (is_told(rate) || is_told(latency)).then(|| AlternativeChange {
            alternative: then.name.clone(),
            rate_change_percent: rate,
            unloaded_latency_change_percent: latency,
        })
    };
    then.checked.plan.alternatives.iter().filter_map(of).collect()
}

impl TriedEffect {
    fn of(now: Option<&Contest>, then: &Contest) -> TriedEffect {
        let (Some(now), Some(over)) = (now, &then.over) else { return TriedEffect::FirstPlan };
        let (better, worse) = (over.drawn.better_in, over.drawn.worse_in);
        match () {
            () if ChangeStudy::is_unused(now, then) => TriedEffect::NotUsed,
            () if better >= TOLD => TriedEffect::Gains,
            () if worse >= TOLD => TriedEffect::Loses,
            () if better + worse <= 1.0 - TOLD => TriedEffect::NoDifference,
            () => TriedEffect::CannotTell,
        }
    }
}

impl TriedFigures {
    fn of(own: &Contest, unit: Unit) -> TriedFigures {
        TriedFigures {
            mix: BestMix::of(own, unit),
            host_cpu_us: own.checked.plan.optimal.host_cpu_s * 1e6,
            confirmed: own.checked.settled.gap.is_none() && own.checked.settled.has_settled(),
        }
    }
}

impl OverNow {
    fn of(over: &DeviceRatio, goal: Goal) -> OverNow {
        let percent = |ratio: f64| (ratio - 1.0) * 100.0;
        // Less of a cost is a gain, and its interval's ends change places.
        let gain = |ranged: Option<Ranged>| match (ranged, goal) {
            (None, _) => (None, None, None),
            (Some(Ranged { value, range_80: (low, high), .. }), Goal::MostThroughput) => {
                (Some(percent(value)), Some(percent(low)), Some(percent(high)))
            }
            (Some(Ranged { value, range_80: (low, high), .. }), _) => {
                let less = |ratio: f64| Some(0.0 - percent(ratio));
                (less(value), less(high), less(low))
            }
        };
        let (gain_percent, low, high) = gain(over.drawn.worth);
        let (_, low_errors, high_errors) = gain(over.ratio);
        let latency = over.drawn.latency;
        OverNow {
            gain_percent,
            gain_percent_low_80: low,
            gain_percent_high_80: high,
            gain_with_past_errors_percent_low_80: low_errors,
            gain_with_past_errors_percent_high_80: high_errors,
            better_in_share_of_draws: over.drawn.better_in,
            worse_in_share_of_draws: over.drawn.worse_in,
            unloaded_latency_change_percent: latency.map(|ranged| percent(ranged.value)),
            unloaded_latency_change_percent_low_80: latency.map(|ranged| percent(ranged.range_80.0)),
            unloaded_latency_change_percent_high_80: latency.map(|ranged| percent(ranged.range_80.1)),
        }
    }
}
