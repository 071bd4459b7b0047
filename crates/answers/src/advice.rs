//! Remedies with what each gains on the twin, as `plan` and `check` list them.

use crate::ByName;
use crate::figures::Unit;
use offpath_plan::Objective;
use offpath_plan::advice::{Advice, Gain, GainStanding, RULES, Scope, interval};
use offpath_plan::check::{Bunched, Fullest, Gap};
use offpath_quantity::Time;
use offpath_terminal::output::{short, signed};
use offpath_twin::Interval;
use serde::Serialize;

/// What a remedy gains on the twin.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GainAnswer {
    /// The mean over the pairs of runs: how much more throughput, or how much less latency or processor time.
    pub gain_percent: f64,
    /// The lower end of its 95% interval over the pairs.
    pub gain_ci95_low_percent: f64,
    /// The upper end.
    pub gain_ci95_high_percent: f64,
    /// Requests per second as given; only where throughput is sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_before_req_per_s: Option<f64>,
    /// Requests per second as changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_after_req_per_s: Option<f64>,
    /// The 99th percentile of latency as given; only where it is sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_before_us_p99: Option<f64>,
    /// Lower end of its 95% interval over the runs that gains are measured on, which are others than the plan's one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_before_us_p99_ci95_low: Option<f64>,
    /// Upper end of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_before_us_p99_ci95_high: Option<f64>,
    /// The 99th percentile of latency as changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub latency_after_us_p99: Option<f64>,
    /// Host processor time a request as given; only where it is sought.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_cpu_before_us_per_request: Option<f64>,
    /// Host processor time a request as changed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub host_cpu_after_us_per_request: Option<f64>,
}

impl GainAnswer {
    pub(crate) fn of(gain: &Gain, objective: Objective) -> GainAnswer {
        let throughput = |value: f64| matches!(objective, Objective::MostThroughput).then_some(value);
        let p99 = |value: f64| matches!(objective, Objective::LowestP99 { .. }).then_some(value * 1e6);
        let host = |value: f64| matches!(objective, Objective::LeastHostCpu { .. }).then_some(value * 1e6);
        GainAnswer {
            gain_percent: gain.share.mean * 100.0,
            gain_ci95_low_percent: gain.share.low * 100.0,
            gain_ci95_high_percent: gain.share.high * 100.0,
            throughput_before_req_per_s: throughput(gain.before),
            throughput_after_req_per_s: throughput(gain.after),
            latency_before_us_p99: p99(gain.before),
            latency_before_us_p99_ci95_low: p99(gain.before_95.0),
            latency_before_us_p99_ci95_high: p99(gain.before_95.1),
            latency_after_us_p99: p99(gain.after),
            host_cpu_before_us_per_request: host(gain.before),
            host_cpu_after_us_per_request: host(gain.after),
        }
    }

    /// The gain with what it is of.
    pub fn text(&self, unit: Unit) -> String {
        let rate = |per_s: f64| unit.text(per_s);
        let time = |us: f64| Time::from_seconds(us / 1e6).to_string();
        let all: [(_, _, _, &dyn Fn(f64) -> String); 3] = [
            ("throughput", self.throughput_before_req_per_s, self.throughput_after_req_per_s, &rate),
            ("less p99", self.latency_before_us_p99, self.latency_after_us_p99, &time),
            (
                "less host processor time",
                self.host_cpu_before_us_per_request,
                self.host_cpu_after_us_per_request,
                &time,
            ),
        ];
        // The plan's p99 is of one run, and these are of others.
        let runs = (self.latency_before_us_p99_ci95_low).zip(self.latency_before_us_p99_ci95_high);
        let runs = runs.map(|(low, high)| {
            format!(", 95% {} to {} in runs other than the plan's,", time(low.max(0.0)), time(high))
        });
        let runs = runs.unwrap_or_default();
        let ends = all.into_iter().find_map(|(what, before, after, shown)| {
            Some(format!(" {what} ({}{runs} to {})", shown(before?), shown(after?)))
        });
        let (mean, low, high) = (self.gain_percent, self.gain_ci95_low_percent, self.gain_ci95_high_percent);
        let share = Interval { mean: mean / 100.0, low: low / 100.0, high: high / 100.0 };
        interval(&share) + &ends.unwrap_or_default()
    }
}

/// A change of the design that gains.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AdviceAnswer {
    /// The rule's stable name.
    pub rule: &'static str,
    /// Who recommends it.
    pub source: &'static str,
    /// What is wrong where.
    pub why: String,
    /// The change in a line.
    pub remedy: String,
    /// The change of the file as a unified diff, on top of the remedies before it.
    pub diff: String,
    /// The operation that the gain is about, as if it had the machines for itself; null for all requests.
    pub operation: Option<String>,
    /// What it gains on the twin, with the remedies before it in force.
    pub gain: GainAnswer,
    /// How well the gain is known of the card; absent where added-up demands do not tell, as of a tail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_the_card: Option<StandingAnswer>,
    /// Numbers that the remedy itself states with an interval, and the gain at its ends by added-up demands, where these
    /// tell; absent where it states none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub brings: Option<BringsAnswer>,
    /// What added-up demands let expect of the remedy under each mechanism that the evidence leaves open, by its overlay,
    /// where that is another gain than the base's; null where the design has no plan under it. They tell nothing of a tail.
    pub gain_percent_by_overlay: ByName<Option<f64>>,
    /// The page that says more.
    pub page: String,
}

/// How well a gain is known of the card: both sides added up in the same joint draws of all numbers that are known as
/// intervals, widened by what past predictions of ratios were wrong by.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct StandingAnswer {
    /// The gain that added-up demands let expect with every number at its value.
    pub gain_percent: f64,
    /// Half of the draws lie below.
    pub gain_percent_median: f64,
    /// The lower end of the 80% interval.
    pub gain_percent_low_80: f64,
    /// The upper end.
    pub gain_percent_high_80: f64,
    /// The lower end of the 95% interval.
    pub gain_percent_low_95: f64,
    /// The upper end.
    pub gain_percent_high_95: f64,
    /// In which share of the widened draws it gains 1% or more.
    pub gains_share_of_draws: f64,
    /// How well it is known.
    pub basis: &'static str,
    /// What it rests on, the heaviest first, each with its share of all that is not exact.
    pub rests_on: ByName<f64>,
}

impl StandingAnswer {
    fn of(standing: &GainStanding) -> StandingAnswer {
        let GainStanding { share, gains_in, basis, rests } = standing;
        StandingAnswer {
            gain_percent: share.value * 100.0,
            gain_percent_median: share.median * 100.0,
            gain_percent_low_80: share.range_80.0 * 100.0,
            gain_percent_high_80: share.range_80.1 * 100.0,
            gain_percent_low_95: share.range_95.0 * 100.0,
            gain_percent_high_95: share.range_95.1 * 100.0,
            gains_share_of_draws: *gains_in,
            basis: basis.name(),
            rests_on: rests.iter().map(|rest| (rest.number.clone(), rest.weight)).collect(),
        }
    }

    /// In a few words.
    fn text(&self) -> String {
        let percent = |value: f64| signed(value, 1);
        format!(
            "on the card {} to {} (80% interval), 1% or more in {:.0}% of draws widened by past errors; basis: {}",
            percent(self.gain_percent_low_80),
            percent(self.gain_percent_high_80),
            self.gains_share_of_draws * 100.0,
            self.basis
        )
    }
}

/// Numbers that a remedy states itself, and the gain at the ends of their intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BringsAnswer {
    /// Their places in the changed design.
    pub numbers: Vec<String>,
    /// The gain at the worse end of one of their intervals, at the shares that are advised: the mix is not chosen again for what
    /// nobody knows when it is deployed. Absent of a tail, of which added-up demands tell nothing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_percent_least: Option<f64>,
    /// The gain at the better end, at the same shares.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gain_percent_most: Option<f64>,
    /// Whether it loses 1% or more at an end, or nothing tells that it does not; then `check --fix` leaves the remedy out.
    pub may_lose: bool,
}

impl AdviceAnswer {
    pub(crate) fn of(one: &Advice, objective: Objective) -> AdviceAnswer {
        let rule = RULES.iter().find(|rule| rule.name == one.rule);
        AdviceAnswer {
            rule: one.rule,
            source: rule.map_or("", |rule| rule.source),
            why: one.why.clone(),
            remedy: one.remedy.clone(),
            diff: one.diff.clone(),
            operation: match &one.scope {
                Scope::Operation(name) => Some(name.clone()),
                Scope::All => None,
            },
            gain: GainAnswer::of(&one.gain, objective),
            on_the_card: one.standing.as_ref().map(StandingAnswer::of),
            brings: one.brings.as_ref().map(|brings| BringsAnswer {
                numbers: brings.numbers.clone(),
                gain_percent_least: brings.ends.map(|(least, _)| least * 100.0),
                gain_percent_most: brings.ends.map(|(_, most)| most * 100.0),
                may_lose: brings.may_lose(),
            }),
            gain_percent_by_overlay: one
                .with_variants
                .iter()
                .map(|(variant, gain)| (variant.clone(), gain.map(|gain| gain * 100.0)))
                .collect(),
            page: format!("docs/advice/{}.md", one.rule),
        }
    }

    /// Whether it may lose by what it assumes.
    pub fn may_lose(&self) -> bool {
        self.brings.as_ref().is_some_and(|brings| brings.may_lose)
    }

    /// What it gains, for which requests.
    pub fn headline(&self, unit: Unit) -> String {
        let mut gain = self.gain.text(unit);
        if let Some(standing) = &self.on_the_card {
            gain += &format!("; {}", standing.text());
        }
        if let Some(brings) = &self.brings {
            let (numbers, are) =
                (brings.numbers.join(" and "), if brings.numbers.len() > 1 { "are" } else { "is" });
            gain += &format!("; it adds {numbers}, which {are} assumed");
            gain += &match (brings.gain_percent_least, brings.gain_percent_most) {
                (Some(least), Some(most)) => match (signed(least, 1), signed(most, 1)) {
                    (least, most) if least == most => " and moves this by nothing".to_string(),
                    (least, most) => {
                        format!(": {least} to {most} by added-up demands over its interval, at these shares")
                    }
                },
                _ => ": nothing tells what a tail gains over its interval".to_string(),
            };
        }
        for (variant, there) in self.gain_percent_by_overlay.iter() {
            let there = there.map_or_else(
                || "no plan".to_string(),
                |there| format!("{} by added-up demands", signed(there, 1)),
            );
            gain += &format!("; {there} under {variant}, which the evidence leaves open");
        }
        match &self.operation {
            Some(name) => format!("`{name}` alone {gain}"),
            None => gain,
        }
    }
}

/// A station on one machine of its role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct FullestAnswer {
    /// The station.
    pub station: String,
    /// What it stands for.
    pub meaning: String,
    /// Which machine of its role, from 0.
    pub machine: u32,
    /// How many there are.
    pub machines: u64,
    /// Its share of busy time.
    pub utilization: f64,
}

impl FullestAnswer {
    pub(crate) fn of(full: &Fullest) -> FullestAnswer {
        let Fullest { station, meaning, machine, machines, busy } = full.clone();
        FullestAnswer { station, meaning, machine, machines, utilization: busy }
    }

    /// Its name with what it stands for, and on which machine it is where there are several.
    fn name(&self) -> String {
        let which = match self.machines {
            0 | 1 => String::new(),
            machines => format!(" of machine {} of {machines}", self.machine + 1),
        };
        format!("{} ({}){which}", self.station, self.meaning)
    }
}

/// Why closed loops carry less than planned though they fill no station, as more runs of the mix showed it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BunchedAnswer {
    /// The station that is busy while the fullest one is idle, with its share of busy time then. Null where none is for most
    /// of that time, and longer than in all.
    pub behind: Option<FullestAnswer>,
    /// Its share of busy time in all.
    pub behind_utilization_in_all: Option<f64>,
    /// The largest load that was tried with requests at random of which all that comes is carried, as a share of the plan:
    /// what is let pass below it, and 0.9 to 0.5. Null where none is.
    pub carried_at_random_share: Option<f64>,
    /// Requests in flight at that load, in the mean.
    pub mean_in_flight_at_random: Option<f64>,
}

impl BunchedAnswer {
    pub(crate) fn of(gap: &Gap) -> Option<BunchedAnswer> {
        let Bunched { behind, at_random } = gap.bunched.as_ref()?;
        Some(BunchedAnswer {
            behind: behind.as_ref().map(|one| FullestAnswer::of(&one.station)),
            behind_utilization_in_all: behind.as_ref().map(|one| one.in_all),
            carried_at_random_share: at_random.map(|one| one.load_per_s / gap.planned_per_s),
            mean_in_flight_at_random: at_random.map(|one| one.mean_in_flight),
        })
    }

    /// What was seen, in a sentence that goes on from what the fullest station is.
    fn text(&self, (planned, carried): (f64, f64), unit: &str) -> String {
        let behind = match (&self.behind, self.behind_utilization_in_all) {
            (Some(one), Some(in_all)) => format!(
                "while it is idle {} is busy {:.0}% of the time, and {:.0}% in all: requests in flight stay bunched and fill \
                 one station after the other",
                one.name(),
                one.utilization * 100.0,
                in_all * 100.0
            ),
            _ => "while it is idle no other station is busy for most of the time".to_string(),
        };
        let at_random = match (self.carried_at_random_share, self.mean_in_flight_at_random) {
            (Some(share), Some(in_flight)) => {
                let load = planned * share;
                // What carries no more than the closed loops do is no remedy.
                let remedy = if load > carried { ": have clients pace their requests" } else { "" };
                format!(
                    "where they come at random {} {unit} are carried, {in_flight:.0} in flight in the mean{remedy}",
                    short(load)
                )
            }
            _ => "where they come at random not half of the plan is carried".to_string(),
        };
        format!("; {behind}; {at_random}")
    }
}

/// Where the twin carries something else than was planned, for a sentence.
pub(crate) struct Doubt<'a> {
    pub blind_because: Option<&'a str>,
    pub unclear: bool,
    /// What is planned, in the unit of the sentence, and what is carried, where that is a figure, with its share of
    /// difference in percent.
    pub planned: f64,
    pub carried: Option<(f64, f64)>,
    /// The ends of the 95% interval of what is carried, where that says anything of the plan.
    pub carried_95: Option<(f64, f64)>,
    pub allowed_percent: f64,
    pub fullest: Option<&'a FullestAnswer>,
    pub bunched: Option<&'a BunchedAnswer>,
}

impl Doubt<'_> {
    /// Where the twin carries something else than the plan says, in a sentence.
    pub(crate) fn sentence(&self, unit: &str) -> String {
        let Some((low, high)) = self.carried_95 else {
            let why = self.blind_because.expect("what has no figure says why");
            return format!("THE TWIN CONFIRMS NOTHING: {why}; the plan rests on adding up its steps alone");
        };
        let ends = || format!("{} to {}", short(low.max(0.0)), short(high));
        if self.unclear {
            return format!(
                "THE TWIN DOES NOT TELL: it carries {} {unit} (95%) where {} are planned; rare or long requests \
                 scatter it further than its longest window settles",
                ends(),
                short(self.planned)
            );
        }
        let filled = self.fullest.map_or_else(String::new, |full| {
            format!("; {} is the fullest, busy {:.0}% of its time", full.name(), full.utilization * 100.0)
        });
        let most = self.carried.map_or(high, |(carried, _)| carried);
        let bunched = self.bunched.map_or_else(String::new, |one| one.text((self.planned, most), unit));
        let (carried, by) = match self.carried {
            Some((carried, percent)) => (short(carried), format!("{}, ", signed(percent, 1))),
            None => (format!("{} (95%)", ends()), String::new()),
        };
        format!(
            "TWIN AND PLAN DIFFER: the twin carries {carried} of the {} {unit} planned ({by}{:.0}% is let \
             pass){filled}{bunched}; the smaller figure is the safer one",
            short(self.planned),
            self.allowed_percent
        )
    }
}
