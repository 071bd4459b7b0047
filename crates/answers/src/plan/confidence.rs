//! What a plan rests on, in words.

use super::answer::{InfluenceAnswer, PlanAnswer, RecommendationAnswer, RestAnswer, SetAnswer};
use crate::figures::{Goal, rounded};
use offpath_plan::Basis;
use offpath_plan::factor::WAITS;
use offpath_terminal::output::{percent as share_text, short};

/// Twice the standard deviation of the difference of two shares of 128 draws each.
const BY_CHANCE: f64 = 0.125;

/// How well figures are known, the best first.
const BASES: [Basis; 5] =
    [Basis::Fitted, Basis::Predicted, Basis::Weak, Basis::YourEstimate, Basis::OrderOnly];

/// The heaviest of what a figure rests on; before them the facts that fix it, where little else moves it.
pub(super) fn rests_text(rests: &[RestAnswer]) -> String {
    let open = || rests.iter().filter(|rest| rest.weight > 0.0);
    let heavy: Vec<String> = open()
        .take(4)
        .filter(|rest| rest.weight >= 0.02)
        .map(|rest| format!("{} ({:.0}%, {})", rest.named(), rest.weight * 100.0, rest.provenance))
        .collect();
    let is_fixed = open().map(|rest| rest.elasticity).sum::<f64>() < 0.1;
    let facts: Vec<String> = rests
        .iter()
        .filter(|rest| is_fixed && rest.weight == 0.0 && rest.elasticity >= 0.1)
        .take(4)
        .map(|rest| format!("{} ({})", rest.number, rest.provenance))
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

impl RecommendationAnswer {
    /// What guesses decide of the mix; where they decide most of it and it still hardly moves, by how little.
    pub(super) fn guesses_text(&self) -> String {
        guesses_text(self.guessed_share, self.guesses_move_share, self.your_estimates_share)
    }
}

impl RecommendationAnswer {
    /// What moves the mix by most within what it is known by, and whose that is.
    fn moves_text(&self) -> String {
        let (Some(guesses), Some(yours)) = (self.guesses_part_of_moves, self.your_estimates_part_of_moves)
        else {
            return String::new();
        };
        let mut most: Vec<&RestAnswer> =
            self.rests_on.iter().filter(|rest| rest.moves_share >= 0.01).collect();
        most.sort_by(|a, b| b.moves_share.total_cmp(&a.moves_share));
        if most.is_empty() {
            return String::new();
        }
        let each = most.iter().take(3);
        let each = each.map(|one| {
            format!("{} (by {}, {})", one.named(), share_text(one.moves_share, 0), one.provenance)
        });
        let yours = match yours >= 0.005 {
            true => format!(", your estimates {}", share_text(yours, 0)),
            false => String::new(),
        };
        format!(
            "moved most by: {}; by squares guesses and open mechanisms are {} of what moves it{yours}\n",
            each.collect::<Vec<_>>().join(", "),
            share_text(guesses, 0)
        )
    }
}

fn guesses_text(share: f64, moved: f64, yours: f64) -> String {
    let share_of_guesses = share_text(share, 0);
    let decided = match yours >= 0.005 {
        true => format!("your estimates decide {}, guesses {share_of_guesses}", share_text(yours, 0)),
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

/// That a number is moved by itself where draws move it with others: a reader sees its ends in no draw.
fn by_itself(one: &InfluenceAnswer) -> String {
    let together = one.drawn_with_guesses_of.as_ref().map(|of| match of.as_str() {
        WAITS => "unnamed waits".to_string(),
        of => format!("unnamed numbers of {of}"),
    });
    together.map_or_else(String::new, |all| format!(" (moved by itself; draws move your {all} together)"))
}

impl PlanAnswer {
    /// What no mix may break, where the design says so.
    pub(super) fn in_bound(&self) -> String {
        let bound = self.latency_bound();
        bound.map_or_else(String::new, |bound| format!(" within the latency bound of {bound}"))
    }

    /// Which part of the mix rests on numbers of the user's whose interval is not the user's, in words; nothing where that is
    /// little.
    pub(super) fn undrawn(&self) -> String {
        let sure = &self.recommendation;
        let told = |share: f64, how: &str| match share >= 0.05 {
            true => format!(", {how} ({} of it)", share_text(share, 0)),
            false => String::new(),
        };
        told(
            sure.your_estimates_halved_share,
            "your estimates without an interval drawn from two thirds to one and a half times each",
        ) + &told(sure.your_estimates_held_share, "what you set held as it is")
    }

    /// The alternatives whose latency is known less well than the rate beside it.
    fn less_known_latencies(&self) -> String {
        let rank = |name: &str| BASES.iter().position(|basis| basis.name() == name);
        let of = |basis: &Basis| {
            let less = self.alternatives.iter().filter(|one| {
                one.unloaded_latency_basis == basis.name()
                    && rank(one.unloaded_latency_basis)
                        > one.basis.and_then(rank).max(rank(Basis::Predicted.name()))
            });
            let names: Vec<&str> = less.map(|one| one.name.as_str()).collect();
            (!names.is_empty()).then(|| format!("{} for {}", basis.name(), names.join(", ")))
        };
        let each: Vec<String> = BASES.iter().filter_map(of).collect();
        if each.is_empty() {
            return String::new();
        }
        format!("latencies are known less well than the rates: {}\n", each.join("; "))
    }

    /// How sure the plan is, line by line.
    pub(super) fn confidence(&self) -> String {
        let sure = &self.recommendation;
        let counted = BASES.iter().filter_map(|basis| {
            let count = self.alternatives.iter().filter(|one| one.basis == Some(basis.name())).count();
            (count > 0).then(|| format!("{count} {}", basis.name()))
        });
        let counted: Vec<String> = counted.collect();
        let numbers = &self.model_parameters;
        let yours = if numbers.set > 0 { format!(", {} set by you", numbers.set) } else { String::new() };
        let mut text = format!(
            "basis: {} of {} alternatives; model parameters: {} fitted, {} guessed (assumed or carried \
             over), {} from data sheets and measurements{yours}\n",
            counted.join(", "),
            self.alternatives.iter().filter(|one| one.basis.is_some()).count(),
            numbers.fitted,
            numbers.guessed,
            numbers.stated
        );
        text += &self.less_known_latencies();
        text += &format!(
            "optimal rests on: {}{}\n",
            rests_text(&sure.rests_on),
            match sure.rests_on.is_empty() {
                true => String::new(),
                false => format!("; {}", sure.guesses_text()),
            }
        );
        text += &sure.moves_text();
        if let Some(code) = &self.code {
            text += &format!(
                "code: demands observed from the implemented {}, whatever its step lists say; these {} {}% of \
                 a station's time ({} of {}) and {}% of latency ({})\n",
                code.application,
                if code.differs { "DIFFER from it by" } else { "agree with it within" },
                short(code.largest_busy_difference * 100.0),
                code.at_station,
                code.of_alternative,
                short(code.largest_latency_difference * 100.0),
                code.of_alternative_latency
            );
        }
        text += &self.recommended();
        let carried = sure.load_carried_in_share_of_draws;
        if carried < 1.0 && self.goal != Goal::MostThroughput {
            text += &format!(
                "load: carried{} in {:.0}% of the draws, which the best set is told of; intervals are of all\n",
                self.in_bound(),
                carried * 100.0
            );
        }
        if let Some(said) = self.system.widened_by_others() {
            text += &format!("intervals: {said}\n");
        }
        text.extend(self.system.latency_untold().map(|said| format!("latencies: {said}\n")));
        let planned = || self.influences.iter().filter(|one| one.planned_again);
        let is_scaled = planned().next().is_none();
        let at = |worth: Option<f64>| {
            let none = match self.goal {
                Goal::MostThroughput => format!("no mix{}", self.in_bound()),
                _ => format!("a load not carried{}", self.in_bound()),
            };
            worth.map_or_else(|| none, |worth| format!("about {}", self.worth_text(worth)))
        };
        let moves: Vec<String> = self
            .influences
            .iter()
            .filter(|one| one.planned_again || is_scaled)
            .map(|one| (one, at(one.optimal.at_low()), at(one.optimal.at_high())))
            // What is alike in print moves nothing that a reader could see.
            .filter(|(_, low, high)| low != high)
            .take(2)
            .map(|(one, low, high)| {
                let none = match (one.interval_stated, one.no_room) {
                    (true, _) => "",
                    (_, true) => " (your interval leaves no room, which counts as none)",
                    _ => " (you give no interval)",
                };
                let (from, to) = (rounded(&one.low), rounded(&one.high));
                format!("{} at {from} / {to}{none} gives {low} / {high}{}", one.number, by_itself(one))
            })
            .collect();
        text += &format!(
            "sensitivity: {}\n",
            match moves.is_empty() {
                true => "no number with an interval moves it by what is printed".to_string(),
                false => moves.join("; "),
            }
        );
        if is_scaled && !moves.is_empty() {
            text += "      what was observed is scaled there, and no mix chosen again: each run of what is rare or long in this \
                     one takes many times the usual requests\n";
        }
        for (one, change) in planned().filter_map(|one| Some((one, one.changes_recommendation.as_ref()?))) {
            text += &format!(
                "turning point: somewhere within its interval {} makes it {change}{}\n",
                one.number,
                by_itself(one)
            );
        }
        for variant in &self.variants {
            let gives = match (&variant.solved, &variant.refused) {
                (None, Some(refused)) => format!("no plan: {refused}"),
                (solved, refused) => self.solution(solved.as_ref(), refused.as_ref()).unwrap_or_default(),
            };
            text += &format!("variant {}: {} -> {gives}\n", variant.overlay, variant.description);
        }
        if !self.variants.is_empty() {
            text += self.without_tails();
        }
        text += &format!("not modelled: {}\n", self.not_modelled.join(", "));
        text += &format!("next: {}\n", self.next_measurement);
        text
    }

    /// In how many draws the recommended set is the best, and which others are.
    fn recommended(&self) -> String {
        let sure = &self.recommendation;
        let others: Vec<String> = sure
            .best_sets
            .iter()
            .filter(|one| one.alternatives != sure.set && one.share_of_draws >= 0.005)
            .take(2)
            .map(|one| format!("{} ({:.0}%)", one.alternatives.join(" + "), one.share_of_draws * 100.0))
            .collect();
        // A reader who takes the best set of most draws takes another one.
        let is_more = sure.best_sets.first().is_some_and(|one| one.alternatives != sure.set);
        let others = match (others.is_empty(), is_more) {
            (true, _) => String::new(),
            (_, true) => format!("; more often best is {}", others.join(", ")),
            (_, false) => format!("; otherwise most often {}", others.join(", ")),
        };
        // Another seed draws other numbers, and which of two sets comes first may be its doing alone.
        let next = sure.best_sets.iter().find(|one| one.alternatives != sure.set);
        let is_near = |one: &SetAnswer| {
            let (own, other) = (sure.best_in_share_of_draws, one.share_of_draws);
            (own - other).abs() < 2.0 * ((own + other) / sure.draws as f64).sqrt()
        };
        let others = match next.is_some_and(is_near) && !others.is_empty() {
            true => others + ", about as often",
            false => others,
        };
        let carrying = (sure.load_carried_in_share_of_draws * sure.draws as f64).round() as usize;
        let draws = match self.goal {
            _ if carrying == sure.draws => format!("{carrying} joint draws"),
            Goal::MostThroughput => {
                format!(
                    "the {carrying} of {} joint draws with a mix that runs{}",
                    sure.draws,
                    self.in_bound()
                )
            }
            _ => {
                format!("the {carrying} of {} joint draws that carry the load{}", sure.draws, self.in_bound())
            }
        };
        // How many draws each mechanism gets is a choice, so that a reader who leans to one sees what it says.
        let by_mechanism = match (sure.best_in_share_of_base_draws, sure.best_in_share_of_variant_draws) {
            // Draws that chance alone tells apart say nothing of the mechanisms.
            (Some(base), Some(open)) if (base - open).abs() >= BY_CHANCE => {
                let variants: Vec<&str> = self.variants.iter().map(|one| one.overlay.as_str()).collect();
                format!(
                    " ({:.0}% of those of the base, {:.0}% of those under {})",
                    base * 100.0,
                    open * 100.0,
                    variants.join(" and ")
                )
            }
            _ => String::new(),
        };
        format!(
            "recommendation: {} is the best set{}, none better by more than 1%, in {:.0}% of {draws} \
             without past errors{}{by_mechanism}{others}{}\n",
            sure.set.join(" + "),
            self.best_by(),
            sure.best_in_share_of_draws * 100.0,
            self.matched(),
            self.undrawn()
        )
    }

    /// In how many draws what is recommended is no better than something else.
    pub(super) fn matched(&self) -> String {
        let matched = self.recommendation.as_good_without_in_share_of_draws.filter(|share| *share >= 0.005);
        let which = if self.recommendation.set.len() > 1 { "a mix without one of it" } else { "another one" };
        matched.map_or_else(String::new, |share| {
            // Of the draws in which it is the best.
            let when = match share > self.recommendation.best_in_share_of_draws - 0.005 {
                true => "each time".to_string(),
                false => format!("in {:.0}%", share * 100.0),
            };
            format!(" ({when} {which} is as good)")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::Unit;
    use crate::plan::GapAnswer;
    use offpath_plan::check::Gap;
    use offpath_plan::factor::Origin;
    use offpath_plan::rests::{Rest, estimated, guessed, moved_by_guesses};
    use offpath_plan::sample::Drawn;
    use offpath_profile::Provenance;
    use offpath_twin::Interval;

    /// Of what is known by no more than its interval no mean is given, on screens or in JSON.
    #[test]
    fn what_scatters_by_more_than_itself_is_no_figure() {
        let gap = |half: f64| {
            let carried = Interval { mean: 1e6, low: 1e6 - half, high: 1e6 + half };
            let gap = Gap {
                planned_per_s: 2e6,
                carried_per_s: Some(carried),
                allowed: 0.02,
                fullest: None,
                blind: None,
                bunched: None,
            };
            GapAnswer::of(&gap, Unit { payload_bytes: None })
        };
        let (wide, narrow) = (gap(6e5), gap(1e4));
        assert_eq!((wide.rates.carried(), wide.share), (None, None));
        assert_eq!((wide.rates.carried_low_95(), wide.rates.carried_high_95()), (Some(0.4), Some(1.6)));
        assert!(
            !wide.unclear && wide.sentence("M req/s").contains("0.400 to 1.60 (95%) of the 2.00"),
            "{wide:?}"
        );
        assert_eq!((narrow.rates.carried(), narrow.share), (Some(1.0), Some(-0.5)));
    }

    #[test]
    fn guesses_that_decide_little_are_said_to() {
        let said = |elasticity: f64, origin: Origin| {
            let rests = [Rest {
                with: Vec::new(),
                number: "soc.lookup".into(),
                origin,
                elasticity,
                weight: 1.0,
                moves: 0.0,
                drawn: Drawn::Held,
                own_evidence: false,
            }];
            guesses_text(guessed(&rests), moved_by_guesses(&rests), estimated(&rests))
        };
        let guess = Origin::Profile(Provenance::Assumed);
        assert_eq!(said(0.9, guess), "guesses decide 100% of it");
        assert_eq!(
            said(0.02, guess),
            "guesses decide 100% of the little that moves it (a tenth more of every guess: 0.20%)"
        );
        assert_eq!(said(0.02, Origin::Profile(Provenance::Fitted)), "guesses decide 0% of it");
    }
}
