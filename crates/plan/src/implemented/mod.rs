//! Applications as alternatives: what their requests do on the idle twin, as steps.
//!
//! A request of the application's own code is followed on the twin of the system that is planned for.
//! What it did, in order, is a step list like any other: it is compiled, folded and run by the same
//! interpreter. Bytes are the code's own, headers and acknowledgements included. Which systems there are, and
//! how each is followed, they say themselves ([`offpath_apps::system`]).

mod agreement;
mod follow;

pub(crate) use agreement::check_bytes;
pub use agreement::{Agreement, agreement};

use crate::design::{Alternative, ComputeCost, Design, Step};
use crate::estimate::Share;
use follow::Steps;
use offpath_apps::Shipped;
use offpath_apps::system::{About, AppSystem, Asked, Given, KeyKind, Registry, Visitor};
use offpath_quantity::Quantity;
use offpath_route::Router;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// Follows a request of a system.
type Following = fn(&Asked<'_>, &Arc<Router>, &Range<usize>) -> Result<Steps, String>;

/// A system whose code can be followed on the twin.
#[derive(Clone, Copy)]
pub struct Implementation {
    /// What it declares.
    pub about: &'static About,
    follow: Following,
}

impl PartialEq for Implementation {
    fn eq(&self, other: &Implementation) -> bool {
        self.about.name == other.about.name
    }
}

impl fmt::Debug for Implementation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.about.name)
    }
}

struct Find;

impl Visitor for Find {
    type Out = Implementation;
    fn visit<S: AppSystem>(self) -> Implementation {
        Implementation { about: S::ABOUT, follow: follow::follow::<S> }
    }
}

/// The systems that designs may name.
#[derive(Clone, Copy, Debug)]
pub struct Systems {
    /// What they declare.
    pub all: fn() -> Vec<&'static About>,
    /// One of them, by its name.
    pub find: fn(&str) -> Option<Implementation>,
}

impl Systems {
    /// Those of a registry.
    pub fn of<R: Registry>() -> Systems {
        Systems { all: R::all, find: |name| R::with(name, Find) }
    }
}

impl Default for Systems {
    /// Those that are shipped.
    fn default() -> Systems {
        Systems::of::<Shipped>()
    }
}

/// The application of a design.
#[derive(Clone, Debug, PartialEq)]
pub struct Application {
    /// Which system.
    pub system: Implementation,
    /// What the design tells it.
    pub given: Given,
}

impl Application {
    /// What it is called in sentences.
    pub fn title(&self) -> &'static str {
        self.system.about.title
    }

    /// The DMA engine that the card moves bytes by, where it is told one.
    pub fn engine(&self) -> Option<&str> {
        let key = self.system.about.keys.iter().find(|key| key.kind == KeyKind::Engine)?;
        self.given.text(key.name)
    }
}

/// What the code of an alternative was seen to do.
#[derive(Clone, Debug)]
pub struct Observation {
    /// The alternative, its steps those of the code.
    pub alternative: Alternative,
    /// The mean time that a request of the code took on the idle twin.
    pub latency_s: f64,
}

/// The same as [`observe`], with the design's estimates named at the steps that follow them.
///
/// The code is followed once more for each number that the application is told.
///
/// # Errors
/// Those of [`observe`].
pub fn observe_named(
    design: &Design,
    alternative: &Alternative,
    router: &Arc<Router>,
) -> Result<Option<Observation>, miette::Report> {
    let Some(mut observation) = observe(design, alternative, router)? else { return Ok(None) };
    // What the code's times are made of shows when one number of the design moves at a time.
    for one in design.estimates().iter().filter(|one| design.told().contains(&one.id)) {
        let Some(value) = Quantity::from_base(one.value.base() * MOVED, one.value.dimension()) else {
            continue;
        };
        // A value that the code refuses tells nothing, as one that changes what it does.
        let Ok(moved) = design.with_estimates(&BTreeMap::from([(one.id.to_string(), value)])) else {
            continue;
        };
        let factor = value.base() / one.value.base();
        if let Ok(Some(other)) = observe(&moved, alternative, router)
            && (factor - 1.0).abs() > f64::EPSILON
        {
            let both = observation.alternative.operations.iter_mut().zip(&other.alternative.operations);
            both.for_each(|((_, _, own), (_, _, other))| attribute(own, other, &one.id, factor));
        }
    }
    Ok(Some(observation))
}

/// How far a number is moved to see what follows it: less, since more may not fit the code.
const MOVED: f64 = 0.5;

/// Names the estimate `id` at the steps that follow it, `moved` being the same with it times `factor`.
fn attribute(steps: &mut [Step], moved: &[Step], id: &Arc<str>, factor: f64) {
    for (step, moved) in steps.iter_mut().zip(moved) {
        match (step, moved) {
            (
                Step::Compute { cost: ComputeCost::Time(time), rests_on, .. },
                Step::Compute { cost: ComputeCost::Time(other), .. },
            ) if time != other => {
                let ratio = other.ps() as f64 / time.ps() as f64;
                let linear = (ratio - 1.0) / (factor - 1.0);
                // What gets longer as a number falls follows its inverse.
                let share = if linear < 0.0 { ratio.ln() / factor.ln() } else { linear };
                rests_on.push(Share { id: id.clone(), share });
            }
            (Step::Verb { bytes, rests_on, .. }, Step::Verb { bytes: other, .. }) if bytes != other => {
                rests_on.push(id.clone());
            }
            (
                Step::Branch { then, otherwise, .. },
                Step::Branch { then: other_then, otherwise: other_otherwise, .. },
            ) => {
                attribute(then, other_then, id, factor);
                attribute(otherwise, other_otherwise, id, factor);
            }
            _ => {}
        }
    }
}

/// Follows the code of an alternative on the idle twin of `router`'s system; `None` where the design
/// or the alternative names no code.
///
/// # Errors
/// Where the application refuses, as without the engine or the endpoint that the alternative needs, in
/// its own words and pointing at the alternative's code in the design.
pub fn observe(
    design: &Design,
    alternative: &Alternative,
    router: &Arc<Router>,
) -> Result<Option<Observation>, miette::Report> {
    let (Some(application), Some(code)) = (&design.application, &alternative.code) else { return Ok(None) };
    let mut alternative = alternative.clone();
    let mut latency_s = 0.0;
    for (operation, share, steps) in &mut alternative.operations {
        let asked = Asked {
            alternative: code.alternative,
            operation,
            given: &application.given,
            hit_ratio: code.hit_ratio,
        };
        let seen = (application.system.follow)(&asked, router, &code.span).map_err(|reason| {
            design.refuse(
                format!(
                    "the implemented {} cannot be `{}` on {}: {reason}",
                    application.title(),
                    alternative.name,
                    router.system().device
                ),
                "choose another device or alternative, or plan from the step lists by `--steps`",
                &code.span,
            )
        })?;
        latency_s += *share * seen.latency_s;
        *steps = seen.steps;
    }
    Ok(Some(Observation { alternative, latency_s }))
}
