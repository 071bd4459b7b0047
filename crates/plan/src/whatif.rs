//! What a card would give a design if something of it were otherwise: each overlay and setting is an entrant of a
//! [`Comparison`] beside the card as it is, so that draws of what both share cancel.

use crate::comparison::{CompareAsk, Comparison, Contest, DeviceRatio, Entrant, system_of};
use crate::design::{Changes, Design};
use crate::planner::{Alone, Setting};
use crate::program::Fold;
use offpath_profile::{Problem, ProfileError, System};
use offpath_quantity::Quantity;
use offpath_twin::Seed;

/// What is tried.
#[derive(Clone, Copy)]
pub struct ChangeAsk<'a> {
    /// The design, whatever was changed in it when it was read.
    pub design: &'a Design,
    /// What is changed in it, its device among that.
    pub changes: &'a Changes,
    /// The systems that it runs on, with nothing of what is tried.
    pub setting: &'a Setting,
    /// Overlays to try beside those that the library has as suggestions, by name or file.
    pub overlays: &'a [String],
    /// Settings to try, each by itself.
    pub settings: &'a [String],
    /// The seed of every draw.
    pub seed: Seed,
}

/// A card as it is, and with each of several changes.
pub struct ChangeStudy {
    /// The card as it is first, then what could be tried, in order.
    pub comparison: Comparison,
    /// Every change: the suggestions in the order of their names, then what was asked for.
    pub tried: Vec<TriedChange>,
}

/// A change of a card.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedChange {
    /// The overlay's name, or the setting.
    pub name: String,
    /// What it changes and takes to be so; empty of a setting.
    pub description: String,
    /// Who suggests it to makers of cards; none of what the user asks for.
    pub suggested_by: Option<String>,
    /// The numbers that it changes.
    pub numbers: Vec<TriedNumber>,
    /// What came of it.
    pub outcome: TriedOutcome,
}

/// A number that a change gives another value or interval.
#[derive(Clone, Debug, PartialEq)]
pub struct TriedNumber {
    /// Its dotted name.
    pub name: String,
    /// Its value as it is; none where the card has none of it.
    pub now: Option<Quantity>,
    /// Its value with the change.
    pub then: Quantity,
    /// The interval that it is known within then, where one is stated.
    pub interval: Option<(Quantity, Quantity)>,
}

/// What came of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TriedOutcome {
    /// The card, in this mode, does not have what it changes: why.
    NotApplicable(String),
    /// The card has it already: no number is another.
    AlreadySo,
    /// It is the contender at this place.
    Entrant(usize),
}

impl ChangeStudy {
    /// Plans a design on its card as it is and with each change, and draws the numbers of all at once.
    ///
    /// # Errors
    /// Where the design, a profile, or an overlay or setting that was asked for is refused, and where nothing of it runs.
    pub fn of(ask: &ChangeAsk<'_>) -> Result<ChangeStudy, miette::Report> {
        let design = ask.design.changed(ask.changes)?;
        let mut entrants = vec![Entrant::device(&design.device)];
        let compared = CompareAsk {
            design: &design,
            changes: ask.changes,
            setting: ask.setting,
            entrants: &[],
            beside_first: true,
            seed: ask.seed,
        };
        let plain = system_of(&compared, &entrants[0])?;
        let mut tried = Vec::new();
        for change in all(ask)? {
            let entrant = Entrant {
                name: change.tried.name.clone(),
                overlays: change.overlay.into_iter().collect(),
                settings: change.setting.into_iter().collect(),
                ..Entrant::device(&design.device)
            };
            let system = match system_of(&compared, &entrant) {
                Ok(system) => system,
                Err(error) => match lacks(&error, &plain).filter(|_| !change.is_asked) {
                    Some(why) => {
                        tried.push(TriedChange { outcome: TriedOutcome::NotApplicable(why), ..change.tried });
                        continue;
                    }
                    None => return Err(error),
                },
            };
            let numbers = numbers(&plain, &system);
            let outcome = match numbers.is_empty() {
                true => TriedOutcome::AlreadySo,
                false => {
                    entrants.push(entrant);
                    TriedOutcome::Entrant(entrants.len() - 1)
                }
            };
            tried.push(TriedChange { numbers, outcome, ..change.tried });
        }
        let comparison = Comparison::of(&CompareAsk { entrants: &entrants, ..compared })?;
        Ok(ChangeStudy { comparison, tried })
    }

    /// The card's figures as it is, or why it has no plan.
    pub fn now(&self) -> Result<&Contest, &str> {
        self.comparison.contenders[0].outcome.as_ref().map_err(String::as_str)
    }

    /// The figures with a change, or why it has no plan; none where it could not be tried.
    pub fn then(&self, tried: &TriedChange) -> Option<Result<&Contest, &str>> {
        match tried.outcome {
            TriedOutcome::Entrant(at) => {
                Some(self.comparison.contenders[at].outcome.as_ref().map_err(String::as_str))
            }
            _ => None,
        }
    }

    /// Whether nothing that the design uses is otherwise: neither the mix, in any draw, nor what any alternative demands.
    pub fn is_unused(now: &Contest, then: &Contest) -> bool {
        let is_same = |over: &DeviceRatio| over.drawn.is_same;
        let of = |one: &Contest| -> Vec<(String, u64, Fold)> {
            let demand = |one: &Alone| (one.name.clone(), one.rate.value.to_bits(), one.demand.clone());
            one.checked.plan.alternatives.iter().map(demand).collect()
        };
        then.over.as_ref().is_some_and(is_same) && of(now) == of(then)
    }
}

/// A change, as it is asked for.
struct Asked {
    tried: TriedChange,
    overlay: Option<String>,
    setting: Option<String>,
    is_asked: bool,
}

/// Every change: what the library has as suggestions, then what is asked for and is none of them.
fn all(ask: &ChangeAsk<'_>) -> Result<Vec<Asked>, miette::Report> {
    let library = &ask.setting.library;
    let tried = |name: String, description: String, suggested_by: Option<String>| TriedChange {
        name,
        description,
        suggested_by,
        numbers: Vec::new(),
        outcome: TriedOutcome::AlreadySo,
    };
    let mut all = Vec::new();
    for head in library.suggestions()? {
        all.push(Asked {
            overlay: Some(head.name.clone()),
            setting: None,
            // Who names one wants to know why it does not apply.
            is_asked: ask.overlays.contains(&head.name),
            tried: tried(head.name, head.description, head.suggested_by),
        });
    }
    for (at, overlay) in ask.overlays.iter().enumerate() {
        let known = all.iter().any(|one: &Asked| one.overlay.as_ref() == Some(overlay));
        if known && !ask.overlays[..at].contains(overlay) {
            continue;
        }
        let head = library.overlay(overlay)?;
        // A file may call itself as another does.
        let is_taken = all.iter().any(|one| one.tried.name == head.name);
        let name = if is_taken { overlay.clone() } else { head.name };
        refuse_twice(&all, &name)?;
        all.push(Asked {
            tried: tried(name, head.description, head.suggested_by),
            overlay: Some(overlay.clone()),
            setting: None,
            is_asked: true,
        });
    }
    for setting in ask.settings {
        refuse_twice(&all, setting)?;
        all.push(Asked {
            tried: tried(setting.clone(), String::new(), None),
            overlay: None,
            setting: Some(setting.clone()),
            is_asked: true,
        });
    }
    Ok(all)
}

fn refuse_twice(all: &[Asked], name: &str) -> Result<(), miette::Report> {
    match all.iter().any(|one| one.tried.name == name) {
        true => Err(miette::miette!(help = "name each once", "`{name}` is to be tried twice")),
        false => Ok(()),
    }
}

/// What a card lacks of what a change speaks of; nothing where it is refused for something else.
fn lacks(error: &miette::Report, plain: &System) -> Option<String> {
    let System { device, mode, .. } = plain;
    match error.downcast_ref::<ProfileError>()?.problem() {
        Problem::Unknown { what, name, .. } if what == "number" => {
            Some(format!("{device} has no number `{name}` in mode {mode}"))
        }
        Problem::Unknown { what, name, .. } if what == "number that matches" => {
            Some(format!("{device} has no number that matches `{name}` in mode {mode}"))
        }
        Problem::Mode { name, mode, .. } => Some(format!("mode {mode} hides `{name}`")),
        _ => None,
    }
}

/// The numbers whose value or interval differs.
fn numbers(plain: &System, changed: &System) -> Vec<TriedNumber> {
    let mut found = Vec::new();
    for (name, then) in &changed.numbers {
        let now = plain.numbers.get(name);
        let is_same =
            now.is_some_and(|now| (now.value, now.low, now.high) == (then.value, then.low, then.high));
        if !is_same {
            let (now, interval) = (now.map(|now| now.value), then.low.zip(then.high));
            found.push(TriedNumber { name: name.clone(), now, then: then.value, interval });
        }
    }
    // What a mechanism multiplies keeps its number.
    for scale in changed.scales.iter().filter(|scale| !plain.scales.contains(scale)) {
        let now = plain.numbers.get(&scale.name).map(|now| now.value);
        found.push(TriedNumber { name: scale.name.clone(), now, then: scale.value, interval: None });
    }
    found
}
