//! What a plan rests on, and what would make it surer, in words.

use super::page::Page;
use crate::output::{percent as share_text, short};
use offpath::plan::confidence::{Origin, guessed, moved_by_guesses};
use offpath::plan::implemented::Agreement;
use offpath::plan::published::missed_of;
use offpath::plan::residual::CARDS;
use offpath::plan::study::Next;
use offpath::plan::{Basis, Influence, Objective, Rest};
use offpath::profile::Provenance;
use offpath::quantity::Bytes;
use std::collections::{BTreeMap, BTreeSet};

/// Twice the standard deviation of the difference of two shares of 128 draws each.
pub(super) const BY_CHANCE: f64 = 0.125;

/// What no model speaks of, whatever the design.
pub(super) const NOT_MODELLED: [&str; 5] = [
    "very many connections",
    "pause frames",
    "atomics that meet on one word",
    "the time that a list takes to fill",
    "tails without evidence",
];

/// The heaviest of what a figure rests on; before them the facts that fix it, where little else moves it.
pub(super) fn rests_text(rests: &[Rest]) -> String {
    let open = || rests.iter().filter(|rest| rest.weight > 0.0);
    let heavy: Vec<String> = open()
        .take(4)
        .filter(|rest| rest.weight >= 0.02)
        .map(|rest| format!("{} ({:.0}%, {})", rest.number, rest.weight * 100.0, rest.origin.name()))
        .collect();
    let is_fixed = open().map(|rest| rest.elasticity).sum::<f64>() < 0.1;
    let facts: Vec<String> = rests
        .iter()
        .filter(|rest| is_fixed && rest.weight == 0.0 && rest.elasticity >= 0.1)
        .take(4)
        .map(|rest| format!("{} ({})", rest.number, rest.origin.name()))
        .collect();
    match (facts.is_empty(), heavy.is_empty()) {
        (true, true) => "no number that moves it".to_string(),
        (true, false) => heavy.join(", "),
        (false, true) => facts.join(", "),
        (false, false) => {
            format!("{}; of the little that is uncertain: {}", facts.join(", "), heavy.join(", "))
        }
    }
}

/// What is said of a mix that takes atomics.
const ATOMICS: &str = "atomics: no published row is about one, and how those that meet on one word wait for each other \
                       is not modelled: read rates and intervals as upper bounds";

/// What guesses decide of a figure; where they decide most of it and it still hardly moves, by how little.
pub(super) fn guesses_text(rests: &[Rest]) -> String {
    let (share, moved) = (guessed(rests), moved_by_guesses(rests));
    let yours: f64 = rests.iter().filter(|rest| rest.origin == Origin::Yours).map(|rest| rest.weight).sum();
    let share_of_guesses = share_text(share, 0);
    let decided = match yours >= 0.005 {
        true => format!(
            "your estimates decide {}, guesses of the profile {share_of_guesses}",
            share_text(yours, 0)
        ),
        false => format!("guesses decide {share_of_guesses}"),
    };
    if share >= 0.5 && moved < 0.01 {
        return format!(
            "{decided} of the little that moves it (a tenth more of every guess: {})",
            share_text(moved, 2)
        );
    }
    format!("{decided} of it")
}

impl Page<'_> {
    /// What is said of the steps of the best mix that nothing published is about.
    pub(super) fn unpublished(&self) -> Vec<String> {
        let taken =
            |name: &str| self.plan().optimal.shares.iter().any(|(own, share)| own == name && *share > 0.0);
        let steps = self.study.without_evidence.iter().filter(|(name, ..)| taken(name));
        let (atomics, others): (Vec<_>, Vec<_>) = steps.partition(|(_, verb, _)| verb.is_atomic());
        // A verb that is published has a place that is not: an engine's own, or a memory apart.
        let named = others.iter().map(|(_, verb, path)| match verb.is_published() {
            true => format!("`{verb}` on `{path}`"),
            false => format!("`{verb}`"),
        });
        let named: BTreeSet<String> = named.collect();
        let named = Vec::from_iter(named).join(", ");
        let others = (!named.is_empty()).then(|| format!("no published row is about {named}: order only"));
        (!atomics.is_empty()).then(|| ATOMICS.to_string()).into_iter().chain(others).collect()
    }

    /// Which part of the mix rests on the user's estimates that no draw moves, in words; nothing where that is little.
    pub(super) fn undrawn(&self) -> String {
        let yours = |rest: &&Rest| rest.origin == Origin::Yours && !rest.is_drawn;
        let held: f64 =
            self.plan().recommendation.rests_on.iter().filter(yours).map(|rest| rest.weight).sum();
        match held >= 0.05 {
            true => format!(
                ", your estimates without an interval held as they are ({} of it)",
                share_text(held, 0)
            ),
            false => String::new(),
        }
    }

    /// Why no advice was measured, where none was.
    pub(super) fn unmeasured(&self) -> Option<&str> {
        if let Some(why) = &self.study.advised.postponed {
            return Some(why);
        }
        let gap = self.study.advised.unconfirmed.as_ref()?;
        Some(match (gap.blind.is_some(), gap.is_unclear()) {
            (true, _) => "the twin confirms nothing",
            (_, true) => "the twin does not tell",
            _ => "twin and plan differ",
        })
    }

    /// The alternatives whose latency is known less well than the rate beside it.
    pub(super) fn less_known_latencies(&self) -> String {
        let mut by: BTreeMap<Basis, Vec<&str>> = BTreeMap::new();
        for one in &self.plan().alternatives {
            if one.latency_basis > one.basis.max(Basis::Predicted) {
                by.entry(one.latency_basis).or_default().push(&one.name);
            }
        }
        let each: Vec<String> = by
            .into_iter()
            .map(|(basis, names)| format!("{} for {}", basis.name(), names.join(", ")))
            .collect();
        if each.is_empty() {
            return String::new();
        }
        format!("latencies are known less well than the rates: {}\n", each.join("; "))
    }

    pub(super) fn confidence(&self) -> String {
        let plan = self.plan();
        let sure = &plan.recommendation;
        let count = |basis: Basis| plan.alternatives.iter().filter(|one| one.basis == basis).count();
        let counted = [Basis::Fitted, Basis::Predicted, Basis::Weak, Basis::YourEstimate, Basis::OrderOnly]
            .map(|basis| (count(basis), basis.name()));
        let counted: Vec<String> = counted
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, name)| format!("{count} {name}"))
            .collect();
        let numbers = self.study.known.values();
        let guesses = numbers.clone().filter(|known| known.is_guess()).count();
        let of = |provenance: Provenance| numbers.clone().filter(|known| **known == provenance).count();
        let (fitted, set) = (of(Provenance::Fitted), of(Provenance::Set));
        let yours = if set > 0 { format!(", {set} set by you") } else { String::new() };
        let mut text = format!(
            "basis: {} of {} alternatives; model parameters: {fitted} fitted, {guesses} guessed (assumed or carried \
             over), {} from data sheets and measurements{yours}\n",
            counted.join(", "),
            plan.alternatives.len(),
            numbers.len() - fitted - guesses - set
        );
        text += &self.less_known_latencies();
        text += &format!(
            "optimal rests on: {}{}\n",
            rests_text(&sure.rests_on),
            match sure.rests_on.is_empty() {
                true => String::new(),
                false => format!("; {}", guesses_text(&sure.rests_on)),
            }
        );
        if let Some(code) = &self.study.code {
            let Agreement { application, busy, latency } = code;
            text += &format!(
                "code: demands observed from the implemented {application}, whatever its step lists say; these {} {}% of \
                 a station's time ({} of {}) and {}% of latency ({})\n",
                if code.differs() { "DIFFER from it by" } else { "agree with it within" },
                short(busy.0 * 100.0),
                busy.1,
                busy.2,
                short(latency.0 * 100.0),
                latency.1
            );
        }
        let others: Vec<String> = sure
            .best_sets
            .iter()
            .filter(|(set, share)| *set != plan.optimal.composition() && *share >= 0.005)
            .take(2)
            .map(|(set, share)| format!("{} ({:.0}%)", set.join(" + "), share * 100.0))
            .collect();
        let others = if others.is_empty() {
            String::new()
        } else {
            // A reader who takes the best set of most draws takes another one.
            let is_more = sure.best_sets.first().is_some_and(|(own, _)| *own != plan.optimal.composition());
            format!(
                "; {} {}",
                if is_more { "more often best is" } else { "otherwise most often" },
                others.join(", ")
            )
        };
        let held = self.undrawn();
        let set = plan.optimal.composition();
        let told = (sure.carried_in * sure.draws as f64).round() as usize;
        let draws = match self.study.design.objective {
            _ if told == sure.draws => format!("{told} joint draws"),
            Objective::MostThroughput => {
                format!("the {told} of {} joint draws that the design can run with", sure.draws)
            }
            _ => format!("the {told} of {} joint draws that carry the load", sure.draws),
        };
        // How many draws each mechanism gets is a choice, so that a reader who leans to one sees what it says.
        let by_mechanism = sure.best_in_by_mechanism.map_or_else(String::new, |(base, open)| {
            let variants: Vec<&str> = self.study.variants.iter().map(|one| one.overlay.as_str()).collect();
            // Draws that chance alone tells apart say nothing of the mechanisms.
            if (base - open).abs() < BY_CHANCE {
                return String::new();
            }
            format!(
                " ({:.0}% of those of the base, {:.0}% of those under {})",
                base * 100.0,
                open * 100.0,
                variants.join(" and ")
            )
        });
        text += &format!(
            "recommendation: {} is the best set{}, none better by more than 0.1%, in {:.0}% of {draws}{by_mechanism}{others}{held}\n",
            set.join(" + "),
            self.best_by(),
            sure.best_in * 100.0,
        );
        if sure.carried_in < 1.0 && self.study.design.objective != Objective::MostThroughput {
            text += &format!(
                "load: carried in {:.0}% of the draws, and intervals are of these\n",
                sure.carried_in * 100.0
            );
        }
        let card = &self.study.system.device;
        if !CARDS.contains(&card.as_str()) {
            text += &format!(
                "intervals: widened by what predictions for {} were wrong by; no published row is about {card}\n",
                CARDS.join(" and ")
            );
        }
        let planned = plan.influences.iter().filter(|i| i.planned);
        let moves: Vec<String> = planned
            .clone()
            .take(2)
            .map(|i| {
                let at = |worth: Option<f64>| {
                    let none = match self.study.design.objective {
                        Objective::MostThroughput => "no answer",
                        _ => "a load not carried",
                    };
                    worth
                        .map_or_else(|| none.to_string(), |worth| format!("about {}", self.worth_text(worth)))
                };
                format!("{} at {} / {} gives {} / {}", i.number, i.low, i.high, at(i.at_low), at(i.at_high))
            })
            .collect();
        text += &format!(
            "sensitivity: {}\n",
            if moves.is_empty() {
                "no number with an interval moves it".to_string()
            } else {
                moves.join("; ")
            }
        );
        for (i, change) in planned.clone().filter_map(|i| i.changes.as_ref().map(|c| (i, c))) {
            text += &format!("turning point: somewhere within its interval {} makes it {change}\n", i.number);
        }
        for variant in &self.study.variants {
            let gives = match &variant.solved {
                Ok(one) => self.solved_text(one),
                Err(refused) => format!("no plan: {refused}"),
            };
            text += &format!("variant {}: {} -> {gives}\n", variant.overlay, variant.description);
        }
        if !self.study.variants.is_empty() {
            text += self.without_tails();
        }
        let missed = missed_of(&self.study.design);
        if let Some(first) = missed.first() {
            text += &format!(
                "misses: {}, published about this design as it is shipped; `offpath explain {first}` says by how much\n",
                missed.join(", ")
            );
        }
        text += &format!("not modelled: {}\n", NOT_MODELLED.join(", "));
        text += &format!("next: {}\n", self.next_measurement());
        text
    }

    pub(super) fn next_measurement(&self) -> String {
        match &self.study.next {
            Next::Narrow { number, weight } => {
                format!(
                    "measure what narrows your `{number}`, which decides {} of the mix",
                    share_text(*weight, 0)
                )
            }
            Next::Undrawn { number, weight, is_set: true } => format!(
                "your `{number}` decides {} of the mix and was not drawn: `--set` takes one value, so try both \
                 ends, or give it `low` and `high` in a copy of the profile",
                share_text(*weight, 0)
            ),
            Next::Undrawn { number, weight, is_set: false } => format!(
                "give your `{number}`, which decides {} of the mix, `low` and `high`: it was not drawn",
                share_text(*weight, 0)
            ),
            Next::Number(Influence { number, low, high, note, .. }) => {
                let colon = if note.is_empty() { "" } else { ": " };
                format!("measure what narrows `{number}` (now {low} to {high}){colon}{note}")
            }
            Next::Errors => "run the mix itself on the card: what past predictions were wrong by is most of its interval, \
                             and no number narrows it by a hundredth"
                .to_string(),
            Next::Bound(name) => format!("measure what {name} really carries: it binds the mix"),
            Next::Mix => "run the mix on the card at this load".to_string(),
        }
    }
}

pub(super) fn gb(bytes: Bytes) -> String {
    format!("{} GB", short(bytes.get() as f64 / 1e9))
}

#[cfg(test)]
mod tests {
    use super::*;
    use offpath::profile::Provenance;

    #[test]
    fn guesses_that_decide_little_are_said_to() {
        let rest = |elasticity: f64, origin: Origin| Rest {
            number: "soc.lookup".into(),
            origin,
            elasticity,
            weight: 1.0,
            moves: 0.0,
            is_drawn: false,
            own_evidence: false,
        };
        let guess = Origin::Profile(Provenance::Assumed);
        assert_eq!(guesses_text(&[rest(0.9, guess)]), "guesses decide 100% of it");
        assert_eq!(
            guesses_text(&[rest(0.02, guess)]),
            "guesses decide 100% of the little that moves it (a tenth more of every guess: 0.20%)"
        );
        assert_eq!(
            guesses_text(&[rest(0.02, Origin::Profile(Provenance::Fitted))]),
            "guesses decide 0% of it"
        );
    }
}
