//! What `offpath plan` answers: the best combination of a design's alternatives, what binds it, with confidence intervals.

mod answer;
mod confidence;
mod html;
mod next;
mod tables;
mod text;
mod traffic;

pub use answer::*;
pub(crate) use answer::{list_fill_s, shares_text, without_evidence};
pub use traffic::{EndpointTrafficAnswer, LinkTrafficAnswer, TrafficAnswer};

use crate::report::Page;
use crate::{SCHEMA_VERSION, command, setting};
use offpath_capacity::CapacityError;
use offpath_plan::study::{Ask, Study};
use offpath_plan::{Changes, Design, PlanError, Setting};
use offpath_terminal::failure::{Failure, NEGATIVE};
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::Screen;
use offpath_twin::Seed;
use serde::Serialize;
use std::path::PathBuf;

/// A design to be planned.
#[derive(Clone, Debug, Default)]
pub struct PlanRequest {
    /// The design file.
    pub design: PathBuf,
    /// What is changed in it.
    pub changes: Changes,
    /// Which systems are meant.
    pub system: SystemOptions,
    /// The seed of every draw; the same seed gives the same answer.
    pub seed: u64,
    /// Whether latency over load is drawn, on the twin.
    pub curve: bool,
}

/// A design that is loaded and is not planned yet.
pub struct PlanDraft<'a> {
    request: &'a PlanRequest,
    setting: Setting,
    design: Design,
}

/// The plan of a design, or of each of its scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PlanAnswers {
    /// Of a design without scenarios, or of the scenario that was chosen.
    One(Box<PlanAnswer>),
    /// Of each scenario by itself, since alternatives of different scenarios promise different things.
    Scenarios(ScenariosAnswer),
}

/// The plans of a design's scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenariosAnswer {
    /// Version of this schema.
    pub schema_version: u32,
    /// A plan each, in the file's order.
    pub scenarios: Vec<ScenarioAnswer>,
}

/// The plan of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ScenarioAnswer {
    /// The scenario's name.
    pub scenario: String,
    /// Its plan.
    #[serde(flatten)]
    pub plan: PlanAnswer,
}

/// Plans a design.
///
/// ```
/// use offpath_answers::plan::{PlanAnswers, PlanRequest};
///
/// let design = concat!(env!("CARGO_MANIFEST_DIR"), "/../offpath/tests/data/store.toml");
/// let request = PlanRequest { design: design.into(), seed: 1, ..PlanRequest::default() };
/// if let PlanAnswers::One(plan) = offpath_answers::plan(&request)? {
///     for (alternative, share) in plan.optimal.shares.iter() {
///         println!("{:.1}% of the requests by {alternative}", share * 100.0);
///     }
///     assert!(plan.optimal.throughput.rate() > 0.0);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where the design or a profile is refused; and, with the exit code of a negative answer, where nothing may be mixed or
/// the stations do not carry the load that was asked for.
pub fn plan(request: &PlanRequest) -> Result<PlanAnswers, Failure> {
    PlanDraft::new(request, Design::load(&request.design, &request.changes)?)?.answer()
}

impl<'a> PlanDraft<'a> {
    /// The request's design, as it is loaded with the request's changes.
    ///
    /// # Errors
    /// Where the library of profiles is refused.
    pub fn new(request: &'a PlanRequest, design: Design) -> Result<PlanDraft<'a>, Failure> {
        Ok(PlanDraft { setting: setting(&request.system)?, design, request })
    }

    /// Plans it: a design without scenarios once, else each scenario by itself.
    ///
    /// # Errors
    /// As [`plan`].
    pub fn answer(&self) -> Result<PlanAnswers, Failure> {
        let changes = &self.request.changes;
        if self.design.scenarios.is_empty() {
            let plan = self.one(changes).map_err(unplanned)?;
            return Ok(PlanAnswers::One(Box::new(plan)));
        }
        let one = |name: &String| {
            let changes = Changes { scenario: Some(name.clone()), ..changes.clone() };
            let failed = |error: miette::Report| unplanned(error.wrap_err(format!("scenario `{name}`")));
            Ok(ScenarioAnswer { scenario: name.clone(), plan: self.one(&changes).map_err(failed)? })
        };
        let scenarios = self.design.scenarios.iter().map(one).collect::<Result<_, Failure>>()?;
        Ok(PlanAnswers::Scenarios(ScenariosAnswer { schema_version: SCHEMA_VERSION, scenarios }))
    }

    fn one(&self, changes: &Changes) -> Result<PlanAnswer, miette::Report> {
        let PlanRequest { system, seed, curve, .. } = self.request;
        let (options, not_of_the_file) =
            (command::options(changes, system, *seed), command::not_of_the_file(changes, system));
        let study = Study::of(&Ask {
            design: &self.design,
            changes,
            setting: &self.setting,
            seed: Seed::new(*seed),
            curve: *curve,
        })?;
        Ok(PlanAnswer { not_of_the_file, ..PlanAnswer::of(&study, options) })
    }
}

/// A load that nothing carries, and limits that leave nothing, are answers; everything else is wrong input.
pub(crate) fn unplanned(error: miette::Report) -> Failure {
    match error.downcast_ref::<PlanError>() {
        Some(PlanError::Capacity(CapacityError::LoadTooHigh { .. }) | PlanError::NothingAllowed { .. }) => {
            Failure::report_of(NEGATIVE, error)
        }
        _ => Failure::from(error),
    }
}

impl PlanAnswer {
    /// The plan as a page with charts.
    pub fn page(&self) -> Page {
        html::page(self)
    }
}

impl PlanAnswers {
    /// The plans.
    pub fn plans(&self) -> impl Iterator<Item = &PlanAnswer> {
        let (one, more) = match self {
            PlanAnswers::One(plan) => (Some(plan.as_ref()), &[][..]),
            PlanAnswers::Scenarios(all) => (None, &all.scenarios[..]),
        };
        one.into_iter().chain(more.iter().map(|one| &one.plan))
    }

    /// Every plan as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        match self {
            PlanAnswers::One(plan) => plan.text(screen),
            PlanAnswers::Scenarios(all) => {
                let text = |one: &ScenarioAnswer| {
                    screen.heading(&format!("Scenario: {}", one.scenario)) + &one.plan.text(screen)
                };
                all.scenarios.iter().map(text).collect::<Vec<String>>().join("\n")
            }
        }
    }
}
