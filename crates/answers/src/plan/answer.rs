//! What a plan says, as data.

use super::TrafficAnswer;
use crate::advice::{AdviceAnswer, BunchedAnswer, FullestAnswer};
use crate::choices::ChoicesAnswer;
use crate::figures::{FigureUnit, Goal, Throughput, Throughputs, Unit, figures};
use crate::measured::{Beside, MeasuredOtherwise};
use crate::system::{SystemAnswer, TopologyAnswer};
use crate::{ByName, SCHEMA_VERSION};
use offpath_plan::advice::RULES;
use offpath_plan::check::{Gap, Settled};
use offpath_plan::factor::Origin;
use offpath_plan::observe::Loaded;
use offpath_plan::planner::{Bound, Over, Plan, Recommendation};
use offpath_plan::rests::{estimate, estimated, estimated_as, guessed, moved_by_guesses, parts_of_moves};
use offpath_plan::sample::Drawn;
use offpath_plan::study::{Changed, Solved, Study, Sweep};
use offpath_plan::{Alone, Basis, Design, Estimate, Influence, Mix, Objective, Rest};
use offpath_profile::Provenance;
use offpath_quantity::{OpRate, Time};
use offpath_route::{Path, Verb};
use offpath_terminal::output::short;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is said of a mix that takes atomics.
const ATOMICS: &str = "atomics: no published row is about one, and how those that meet on one word wait for each \
                           other is not modelled: read rates and intervals as upper bounds";

/// What no model speaks of, whatever the design.
const NOT_MODELLED: [&str; 5] = [
    "very many connections",
    "pause frames",
    "atomics that meet on one word",
    "the time that a list takes to fill",
    "tails without evidence",
];

/// What it does not of designs with messages over RC, whose acknowledgements take of a port what those of WRITEs do.
const ACKNOWLEDGEMENTS: &str = "acknowledgements of SENDs over RC, a header each on both ports";

/// What it does not of designs with messages, which a full receive queue drops or has wait.
const RECEIVE_QUEUES: &str = "receive queues that run full";

/// What it does not of an application whose code was followed one request at a time, and that keeps queues of its own.
const OWN_QUEUES: &str = "queues of the application itself, on which tails under load depend";

/// What it does not of designs in which a processor posts to a drive that is not beside it.
const POSTING: &str = "what posting to an engine costs a processor other than its own";

/// Everything that a plan says of a design.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PlanAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design's name.
    pub design: String,
    /// Its file, as it was named.
    pub design_file: String,
    /// What was asked for beside the file, as options of a command line.
    pub options: Vec<String>,
    /// Those of them with which it is not the design of the file on its own system.
    #[serde(skip)]
    pub not_of_the_file: Vec<String>,
    /// The system of the design's own device.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The workload in a line.
    pub workload: String,
    /// Properties of the workload as the file and the design write them, by key; empty where the design has none.
    pub workload_properties: BTreeMap<String, String>,
    /// What is sought, with its load.
    pub objective: String,
    /// What is sought, in a word.
    pub goal: Goal,
    /// The load at which it is sought; null where the load is what is sought.
    pub load_req_per_s: Option<f64>,
    /// How long the slowest doorbell list of the best mix takes to fill at that load, at least: where one core posts all. No
    /// latency here has that time in it. Null without a load, and where no list is posted.
    pub list_fill_us_at_least: Option<f64>,
    /// The most of the host's cores that requests may keep busy, as a share of all; null without such a limit.
    pub host_cpu_limit_share: Option<f64>,
    /// On how many of the host's cores requests run with that limit, hardware threads where a core has several: whole ones,
    /// rounded down; null without such a limit, and where it leaves none or all.
    pub host_cpu_limit_cores: Option<u64>,
    /// How many it has; null where that is.
    pub host_cores: Option<u64>,
    /// The greatest unloaded latency that an alternative may have in a mix; null without such a limit.
    pub latency_limit_us: Option<f64>,
    /// What the design's author may not have meant, and what no figure says by itself, as that rates of atomics are upper
    /// bounds.
    pub notes: Vec<String>,
    /// What is to be said of the steps of the best mix that no published row is about, in sentences; empty where there are
    /// none.
    pub without_evidence: Vec<String>,
    /// The unit of every throughput whose key does not name one.
    #[cfg_attr(test, schemars(extend("enum" = ["M req/s", "Gbit/s"])))]
    pub unit: &'static str,
    /// The payload of a request whose bits throughputs count; null where they count requests.
    pub unit_payload_bytes: Option<u64>,
    /// The DMA engine by which the card fetches in the application; null where there is none.
    pub fetch_engine: Option<String>,
    /// Share of requests that find theirs in the cache; null without one.
    pub cache_hit_ratio: Option<f64>,
    /// What the cache holds; null without one.
    pub cache: Option<CacheAnswer>,
    /// What was found of the choices that the design leaves open; not there where it leaves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<ChoicesAnswer>,
    /// The alternatives, each alone, as the design lists them.
    pub alternatives: Vec<AlternativeAnswer>,
    /// The design's own mixes.
    pub mixes: Vec<MixAnswer>,
    /// The combination that fills one alternative after the other.
    pub greedy: MixAnswer,
    /// The order in which it fills.
    pub greedy_order: Vec<String>,
    /// The best mix for the objective.
    pub optimal: MixAnswer,
    /// How sure the best mix is.
    pub recommendation: RecommendationAnswer,
    /// What a request of it moves, as counters count it.
    pub traffic: TrafficAnswer,
    /// The best mix on the loaded twin.
    pub twin: TwinAnswer,
    /// The mix of `optimal`, with the lowest p99 of those tried; there where that is the objective and the twin tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lowest_p99: Option<TailAnswer>,
    /// What uncertain numbers do to the best mix, the strongest first.
    pub influences: Vec<InfluenceAnswer>,
    /// Mechanisms that the evidence leaves open, and what each gives; solved as the plan is.
    pub variants: Vec<VariantAnswer>,
    /// How far the step lists are from the application that the demands were observed from; present where the
    /// design names one and `--steps` is not given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeAnswer>,
    /// What overlays and settings changed; there where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed: Option<ChangedAnswer>,
    /// The plan at each value of the parameter that the design varies; there where it does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sweep: Option<ParameterAnswer>,
    /// The numbers of clients that `clients` is about.
    pub client_counts: Vec<u32>,
    /// Throughput with few clients, one request each; empty where the design asks for none.
    pub clients: Vec<ClientsAnswer>,
    /// Ratios of the few clients' throughputs beside published ones; empty where the design names none.
    pub client_ratios: Vec<RatioAnswer>,
    /// Latency over load, with `--curve`; empty without.
    pub curve: Vec<CurveAnswer>,
    /// How the numbers of the systems that it runs on are known.
    pub model_parameters: ParametersAnswer,
    /// The cards by whose errors of predictions any of its intervals was widened.
    pub errors_learnt_on: Vec<&'static str>,
    /// What of the clients binds the best mix: the server may carry more than they ask of it. Empty where nothing of theirs does.
    pub clients_bind: Vec<String>,
    /// What was measured of the design's steps and is planned otherwise.
    #[serde(flatten)]
    pub measured_otherwise: MeasuredOtherwise,
    /// What the plan says nothing about.
    pub not_modelled: Vec<&'static str>,
    /// The measurement that would narrow the answer most.
    pub next_measurement: String,
    /// Changes of the design that gain on the twin, of those that added-up demands let expect something of, as `offpath
    /// check` reports them.
    pub advice: Vec<AdviceAnswer>,
    /// Whether advice was looked for: it is not where twin and plan differ.
    pub advice_measured: bool,
    /// Why no advice was measured; null where it was.
    pub advice_not_measured_because: Option<String>,
    /// The mix that advice is about.
    pub advice_mix: String,
    /// The rules that were tried for advice.
    pub advice_rules: usize,
    /// What the system is made of.
    pub topology: TopologyAnswer,
    /// Those of the notes that are about the systems, and not about the design as it is written.
    #[serde(skip)]
    pub system_notes: Vec<String>,
}

/// What the cache of a design holds.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CacheAnswer {
    /// The endpoint in whose memory it lies.
    pub endpoint: String,
    /// Its size.
    pub budget_bytes: u64,
    /// Bytes of the objects that are kept whole.
    pub whole_objects_bytes: u64,
    /// The object whose hottest entries are kept.
    pub object: String,
    /// Entries of it that fit.
    pub entries: u64,
    /// Entries of it that exist.
    pub entries_of_object: u64,
}

/// An alternative alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AlternativeAnswer {
    /// Its name.
    pub name: String,
    /// What it does, as the design describes it; may be empty.
    pub description: String,
    /// The device that it runs on.
    pub device: String,
    /// Whether that is a device beside the design's own.
    pub beside: bool,
    /// Whether mixes may use it.
    pub mixed: bool,
    /// Its throughput.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Latency on idle stations.
    pub unloaded_latency_us: f64,
    /// Lower end of the latency's 80% interval.
    pub unloaded_latency_us_low_80: f64,
    /// Upper end of it.
    pub unloaded_latency_us_high_80: f64,
    /// What binds it alone.
    pub binding_station: String,
    /// What the station stands for.
    pub binding_meaning: String,
    /// How well the latency is known, by the same words.
    pub unloaded_latency_basis: &'static str,
    /// Why, in a few words.
    pub reason: String,
    /// How well the rate is known: fitted, predicted, weak, your estimate, or order only; null where the design's limits leave
    /// nothing of it, whatever the numbers are.
    pub basis: Option<&'static str>,
    /// In which share of the draws it runs; in the others the design refuses it with what its numbers may be. Its intervals
    /// are of these.
    pub runs_in_share_of_draws: f64,
    /// The share of the rate that assumed and carried-over numbers decide.
    pub guessed_share: f64,
    /// What its rate rests on, the heaviest first, found by moving one number at a time, and at last the open mechanisms;
    /// what is below a thousandth by all measures is left out.
    pub rests_on: Vec<RestAnswer>,
    /// Host processor time a request.
    pub host_cpu_us_per_request: f64,
    /// Payload bytes over the network a request.
    pub network_bytes_per_request: f64,
    /// Whether its requests leave work behind that goes on after they are answered.
    pub leaves_work_behind: bool,
}

/// A number.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RestAnswer {
    /// Its dotted name; `DEVICE:name` where only another device has it; its place in the design file where the design
    /// gives it; the overlay's name of an open mechanism.
    pub number: String,
    /// Others that are one guess with it, which draws move together: all else here is of all of them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub with: Vec<String>,
    /// How it is known: datasheet, measured, fitted, assumed, carried-over, your estimate, or open mechanism.
    pub provenance: &'static str,
    /// By how many percent one percent of it moves the rate, without its sign.
    pub elasticity: f64,
    /// Its elasticity over the sum of those of all numbers but facts of a data sheet, which have none.
    pub weight: f64,
    /// By which share of the rate the worse end of its interval moves it, a guess or a number of the user's without one by a
    /// factor of 1.5, and one that is set at the value that it replaces; 0 of a fact without one.
    pub moves_share: f64,
    /// Whether it follows from evidence about this very alternative.
    pub own_evidence: bool,
}

impl RestAnswer {
    /// What it is called, with how many are one guess with it.
    pub(super) fn named(&self) -> String {
        match self.with.len() {
            0 => self.number.clone(),
            others => format!("{} with {others} more", self.number),
        }
    }

    /// Whether nobody says that it is so: a number of the design that is marked as assumed, or of the profile.
    pub(super) fn is_assumed(&self) -> bool {
        self.provenance == Origin::Assumed.name()
    }
}

/// A mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MixAnswer {
    /// `greedy`, `optimal`, or the name of the design's own mix.
    pub name: String,
    /// Its throughput.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// Mean latency of a request on idle stations.
    pub unloaded_latency_us: f64,
    /// Share of the requests, from 0 to 1, by alternative.
    pub shares: ByName<f64>,
    /// What binds the mix.
    pub binding: Vec<BindingAnswer>,
    /// Whether in-flight slots are among it. What 10% more of anything brings is told with slots held for as long as in this
    /// mix.
    pub slots_bind: bool,
    /// Host processor time a request.
    pub host_cpu_us_per_request: f64,
    /// Payload bytes that the mix does not send; there where the design has a `network_baseline`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_saved_percent: Option<f64>,
    /// The alternatives of it that the latency bound forbids, which one of the design's own mixes may hold; not there
    /// where it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub beyond_latency_bound: Vec<String>,
    /// Whether no other mix is as good.
    pub unique: bool,
    /// The shares that each alternative has in mixes that carry as much to a thousandth, by the plan alone; not there
    /// where this mix is the only one, or where something else than throughput is sought.
    #[serde(skip_serializing_if = "ByName::is_empty")]
    pub shares_as_good: ByName<SharesAnswer>,
}

/// From which to which share of the requests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SharesAnswer {
    /// The least, from 0 to 1.
    pub low: f64,
    /// The greatest.
    pub high: f64,
}

/// What binds a mix.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BindingAnswer {
    /// The station or limit that is full.
    pub station: String,
    /// What it stands for.
    pub meaning: String,
    /// What 10% more of it would bring; null where that is not known.
    pub gain_percent_for_10_percent_more: Option<f64>,
    /// Whether it is the load that was asked for, and no station.
    pub is_load: bool,
}

figures! {
    /// What the best mix is worth by the goal, with its intervals.
    Worth {
        value "The best mix's worth by the goal, its value," {
            GoalMreq optimal_mreq_per_s, GoalGbit optimal_gbit_per_s, HostUs optimal_host_cpu_us_per_request,
            LatencyUs optimal_unloaded_latency_us
        }
        low_80 "The best mix's worth by the goal, the lower end of its 80% interval," {
            GoalMreq optimal_low_80_mreq_per_s, GoalGbit optimal_low_80_gbit_per_s,
            HostUs optimal_low_80_host_cpu_us_per_request, LatencyUs optimal_low_80_unloaded_latency_us
        }
        high_80 "The best mix's worth by the goal, the upper end of its 80% interval," {
            GoalMreq optimal_high_80_mreq_per_s, GoalGbit optimal_high_80_gbit_per_s,
            HostUs optimal_high_80_host_cpu_us_per_request, LatencyUs optimal_high_80_unloaded_latency_us
        }
        low_95 "The best mix's worth by the goal, the lower end of its 95% interval," {
            GoalMreq optimal_low_95_mreq_per_s, GoalGbit optimal_low_95_gbit_per_s,
            HostUs optimal_low_95_host_cpu_us_per_request, LatencyUs optimal_low_95_unloaded_latency_us
        }
        high_95 "The best mix's worth by the goal, the upper end of its 95% interval," {
            GoalMreq optimal_high_95_mreq_per_s, GoalGbit optimal_high_95_gbit_per_s,
            HostUs optimal_high_95_host_cpu_us_per_request, LatencyUs optimal_high_95_unloaded_latency_us
        }
    }
}

/// How sure the best mix is.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RecommendationAnswer {
    /// How well the rate is known: fitted, predicted, weak, your estimate, or order only.
    pub basis: &'static str,
    /// Which number of the design makes it an estimate, and through which alternative where the mix itself hardly rests
    /// on it; null where it is none.
    pub estimate_by: Option<String>,
    /// What the mix is worth by the goal.
    #[serde(flatten)]
    pub worth: Worth,
    /// The share of the rate that assumed and carried-over numbers decide.
    pub guessed_share: f64,
    /// By which share a tenth more of every guess at once moves the rate, at most.
    pub guesses_move_share: f64,
    /// The share of the rate that numbers of the design and settings decide.
    pub your_estimates_share: f64,
    /// The part of that which draws moved from two thirds to one and a half times the value, since the design gives those
    /// numbers no interval.
    pub your_estimates_halved_share: f64,
    /// The part of that which no draw moved, since those numbers were set without an interval.
    pub your_estimates_held_share: f64,
    /// Which part guesses and open mechanisms are of what moves the rate, by the squares of `moves_share`; null where nothing
    /// moves it.
    pub guesses_part_of_moves: Option<f64>,
    /// Which part the numbers of the design and settings are.
    pub your_estimates_part_of_moves: Option<f64>,
    /// What its rate rests on, the heaviest first, found by moving one number at a time, and at last the open mechanisms;
    /// what is below a thousandth by all measures is left out.
    pub rests_on: Vec<RestAnswer>,
    /// Draws of the joint sample.
    pub draws: usize,
    /// In which share of the draws the recommended set of alternatives is the best: no mix beats one of it by more than a
    /// hundredth, and none of fewer alternatives is as good.
    pub best_in_share_of_draws: f64,
    /// In which share of the draws it is, and a mix without one of the set is as good and no slower by a twentieth; null where
    /// that is not so with the numbers as they are.
    pub as_good_without_in_share_of_draws: Option<f64>,
    /// In which share the set is the best of the draws with the base mechanism; null where the evidence leaves no other open.
    pub best_in_share_of_base_draws: Option<f64>,
    /// The same of the draws with the mechanisms that it leaves open.
    pub best_in_share_of_variant_draws: Option<f64>,
    /// In which share of the draws some mix of what runs there and keeps the latency bound carries the load that was asked
    /// for. The best sets and the shares that are chosen again are told of these; intervals of rates, host time and latency
    /// are of all in which what they are of runs.
    pub load_carried_in_share_of_draws: f64,
    /// In which share of the draws each alternative of the best mix runs.
    pub runs_in_share_of_draws: f64,
    /// In which share of the draws each also keeps the design's latency bound; null where it has none.
    pub keeps_latency_bound_in_share_of_draws: Option<f64>,
    /// Whether past errors widen the draws in which the very shares that are recommended are looked at: not where one
    /// alternative is all of the mix and is fitted.
    pub shares_draws_widened_by_past_errors: bool,
    /// In which share of those draws the very shares that are recommended carry the load, with nothing chosen anew; where no
    /// load was asked for, the rate that is printed.
    pub load_carried_by_shares_in_share_of_draws: f64,
    /// What these very shares carry in the middle one of those draws, over the rate that is printed.
    pub median_of_draws_share: f64,
    /// The recommended set of alternatives: those that the best mix takes more than half a percent of.
    pub set: Vec<String>,
    /// The sets of alternatives that were the best mix's, the most frequent first.
    pub best_sets: Vec<SetAnswer>,
    /// Lower end of the 80% interval of each alternative's share of the best mix, in the draws that carry the load.
    pub share_low_80: BTreeMap<String, f64>,
    /// Upper end of it.
    pub share_high_80: BTreeMap<String, f64>,
    /// The best mix over each alternative on another device, such as a plain NIC; empty where a load was asked for.
    pub over_other_devices: Vec<OverAnswer>,
    /// The same over each alternative of the card alone, but the one that is all of the mix.
    pub over_alternatives: Vec<OverAnswer>,
}

/// A set.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SetAnswer {
    /// Its alternatives.
    pub alternatives: Vec<String>,
    /// Its share of the draws.
    pub share_of_draws: f64,
}

/// The best mix beside an alternative alone.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverAnswer {
    /// The alternative.
    pub alternative: String,
    /// The device that it runs on.
    pub device: String,
    /// Whether that is a NIC without processors of its own.
    pub plain_nic: bool,
    /// The mix's rate over its rate.
    pub ratio: f64,
    /// Lower end of the ratio's 80% interval.
    pub ratio_low_80: f64,
    /// Upper end.
    pub ratio_high_80: f64,
    /// In which share of the draws, widened as the ratio's interval is, the mix is the faster.
    pub faster_in_share_of_draws: f64,
}

figures! {
    /// Throughputs of the loaded twin.
    TwinRates {
        throughput "Throughput" {
            Mreq throughput_mreq_per_s "Left out where its interval is wider than itself, or the twin confirms nothing.",
            Gbit throughput_gbit_per_s "Left out where its interval is wider than itself, or the twin confirms nothing."
        }
        low_95 "Lower end of the simulation's own 95% interval, by batch means," {
            Mreq throughput_low_95_mreq_per_s, Gbit throughput_low_95_gbit_per_s
        }
        high_95 "Upper end of it" { Mreq throughput_high_95_mreq_per_s, Gbit throughput_high_95_gbit_per_s }
        first_solution "The first solution's throughput" {
            Mreq first_solution_mreq_per_s, Gbit first_solution_gbit_per_s
        }
    }
}

/// The best mix on the loaded twin.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TwinAnswer {
    /// What it carried.
    #[serde(flatten)]
    pub rates: TwinRates,
    /// Median latency under load; null where the throughput is left out, as are the percentile and the stations.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile; no evidence backs tails.
    pub latency_us_p99: Option<f64>,
    /// Whether requests came at random, at the load; else as many as can be were in flight.
    pub poisson_arrivals: bool,
    /// Requests always in flight, or tasks that serve arrivals.
    pub requests_in_flight: u32,
    /// Requests that ended within the window that was counted. The throughput is the work that the fullest station did
    /// there, over what a request asks of it; this count over the window is the other way to it, and scatters by the
    /// requests that stand at the window's ends.
    pub requests_completed: u64,
    /// The virtual time that was counted.
    #[cfg_attr(test, schemars(range(min = 0)))]
    pub window_us: f64,
    /// Requests that failed.
    pub failed_requests: u64,
    /// Times that the mix was solved, as holds grew under load.
    pub rounds: u32,
    /// Whether slots are held as long as was solved for, to within 1%.
    pub settled: bool,
    /// By how much the holds of the last round still differed.
    pub holds_moved_share: f64,
    /// Where the twin carries something else than the plan by more than is let pass, or scatters too far to tell; null
    /// where it confirms the plan, and where noise_share is given.
    pub difference: Option<GapAnswer>,
    /// Half of the 95% interval of what the twin carried, as a share of the plan, where whether they differ by more than is let
    /// pass lies within it: then another seed may say otherwise, and no difference is told. Null elsewhere.
    pub noise_share: Option<f64>,
    /// Requests that the idle twin ran to observe demands.
    pub sampled_requests: u64,
    /// The widest 95% interval of an observed demand, as a share of it.
    pub widest_demand_interval: f64,
    /// Share of its server time that each station was busy, on the busiest machine of its role; empty where the throughput
    /// is left out.
    pub utilization: BTreeMap<String, f64>,
    /// What the cross-check validates.
    pub validates: &'static str,
}

figures! {
    /// What is planned and what the twin carried.
    GapRates {
        planned "What the plan says," { Mreq planned_mreq_per_s, Gbit planned_gbit_per_s }
        carried "What the twin carried," { Mreq carried_mreq_per_s, Gbit carried_gbit_per_s }
        carried_low_95 "Lower end of its 95% interval," {
            Mreq carried_low_95_mreq_per_s, Gbit carried_low_95_gbit_per_s
        }
        carried_high_95 "Upper end of it," { Mreq carried_high_95_mreq_per_s, Gbit carried_high_95_gbit_per_s }
    }
}

/// Where the twin carries something else than was planned.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GapAnswer {
    /// The rates.
    #[serde(flatten)]
    pub rates: GapRates,
    /// The difference as a share of the plan; null where what the twin carried is left out, for its interval is wider than
    /// itself or it says nothing of the plan.
    pub share: Option<f64>,
    /// What is let pass: 0.02, and 0.05 where slots bind.
    pub allowed_share: f64,
    /// Whether the mean lies as near as is let pass, and scatters too far to tell.
    pub unclear: bool,
    /// The station that was the busiest, on one machine.
    pub fullest: Option<FullestAnswer>,
    /// Why a window as long as can be run does not tell, where it does not: then what the twin carried says nothing of the
    /// plan, and is left out with its interval and the fullest station. Null where it tells.
    pub blind_because: Option<String>,
    /// Why closed loops carry less than planned though they fill no station; null where a station is full, or where
    /// requests come at random.
    pub bunched: Option<BunchedAnswer>,
}

/// The lowest tail that was found.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TailAnswer {
    /// Share of the requests by alternative.
    pub shares: ByName<f64>,
    /// Its 99th percentile on the twin.
    pub latency_us_p99: Option<f64>,
}

figures! {
    /// The best mix's worth at the ends of a number's range. Left out where there is no answer there.
    InfluenceEnds {
        at_low "The best mix's worth at the lower end" {
            GoalMreq optimal_at_low_mreq_per_s, GoalGbit optimal_at_low_gbit_per_s,
            HostUs optimal_at_low_host_cpu_us_per_request "Left out where the load is not carried there.",
            LatencyUs optimal_at_low_unloaded_latency_us "Left out where the load is not carried there."
        }
        at_high "The best mix's worth at the upper end" {
            GoalMreq optimal_at_high_mreq_per_s, GoalGbit optimal_at_high_gbit_per_s,
            HostUs optimal_at_high_host_cpu_us_per_request "Left out where the load is not carried there.",
            LatencyUs optimal_at_high_unloaded_latency_us "Left out where the load is not carried there."
        }
    }
}

/// What an uncertain number does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct InfluenceAnswer {
    /// The number.
    pub number: String,
    /// The lower end of its range.
    pub low: String,
    /// The upper end.
    pub high: String,
    /// What the mix is worth there.
    #[serde(flatten)]
    pub optimal: InfluenceEnds,
    /// The alternatives that it would mix instead; null where they stay.
    pub changes_recommendation: Option<String>,
    /// Whether the design was planned again at both ends, as it is of none where what is rare or long in its mix makes each
    /// run long; else what was observed at the value is scaled, which is enough to rank numbers and not to name a mix: then
    /// changes_recommendation is null, and was not looked into.
    pub planned_again: bool,
    /// Whether the profile or the design states the range; else, as where what the design states leaves no room, it reaches
    /// from two thirds of the design's number to one and a half times it.
    pub interval_stated: bool,
    /// Whether the design states an interval that leaves no room.
    #[serde(skip)]
    pub no_room: bool,
    /// The processor whose other guesses draws move it with, being one without a name and an interval; null for others. The
    /// ends of the range are of it alone.
    pub drawn_with_guesses_of: Option<String>,
}

figures! {
    /// Throughputs of a solution beside the plan.
    SolvedRates {
        optimal "The best mix's throughput" { Mreq optimal_mreq_per_s, Gbit optimal_gbit_per_s }
        greedy "Greedy's throughput" { Mreq greedy_mreq_per_s, Gbit greedy_gbit_per_s }
    }
}

/// A solution beside the plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SolvedAnswer {
    /// Throughputs.
    #[serde(flatten)]
    pub rates: SolvedRates,
    /// Shares of the best mix.
    pub shares: ByName<f64>,
    /// Throughput by alternative, under the key of its unit.
    pub alternatives: Throughputs,
    /// Throughput by mix, under the key of its unit.
    pub mixes: Throughputs,
    /// Whether the solution settled.
    pub settled: bool,
    /// Where the twin carries something else than the plan by more than is let pass, or scatters too far to tell; null
    /// where it confirms the plan.
    #[cfg_attr(test, schemars(extend("null-too" = true)))]
    pub difference: Option<GapAnswer>,
}

/// A mechanism that the evidence leaves open.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VariantAnswer {
    /// The overlay that holds it.
    pub overlay: String,
    /// The mechanism.
    pub description: String,
    /// The plan under it.
    #[serde(flatten)]
    pub solved: Option<SolvedAnswer>,
    /// Why there is no plan; there where there is none, and the plan's keys are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
}

/// How far step lists are from the code.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CodeAnswer {
    /// The application.
    pub application: &'static str,
    /// The largest difference in the time that a station is busy, each alternative at its greatest rate, as a share of the
    /// station's time.
    pub largest_busy_difference: f64,
    /// The station where it is.
    pub at_station: String,
    /// The alternative that has it.
    pub of_alternative: String,
    /// The largest difference in unloaded latency, as a share of the code's.
    pub largest_latency_difference: f64,
    /// The alternative that has it.
    pub of_alternative_latency: String,
    /// Whether a rate or a latency of the step lists is another one than the code's.
    pub differs: bool,
}

figures! {
    /// The best mix's throughput without the change and with it.
    ChangedRates {
        before "The best mix's throughput without the change" {
            Mreq optimal_before_mreq_per_s, Gbit optimal_before_gbit_per_s
        }
        after "And with it" { Mreq optimal_after_mreq_per_s, Gbit optimal_after_gbit_per_s }
    }
}

/// What overlays and settings changed.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangedAnswer {
    /// Numbers of the system that changed.
    pub numbers: Vec<ChangeAnswer>,
    /// The throughputs.
    #[serde(flatten)]
    pub rates: ChangedRates,
    /// The best mix without the change.
    pub mix_before: String,
    /// Where the twin carries something else than that; null where it confirms it, or where there is none.
    pub difference_before: Option<GapAnswer>,
    /// Alternatives whose throughput or binding station moved.
    pub moved: Vec<ChangeAnswer>,
}

/// Something that changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ChangeAnswer {
    /// What changed.
    pub name: String,
    /// Before.
    pub before: String,
    /// After.
    pub after: String,
}

/// The plan at each value of a parameter.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParameterAnswer {
    /// The parameter.
    pub parameter: String,
    /// One row a value.
    pub rows: Vec<ParameterRow>,
}

/// One value.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParameterRow {
    /// The parameter's value, in `value_unit`.
    pub value: f64,
    /// That unit; null for a plain number.
    pub value_unit: Option<&'static str>,
    /// The value in the unit that suits it.
    pub text: String,
    /// The plan at it.
    #[serde(flatten)]
    pub solved: Option<SolvedAnswer>,
    /// Why there is no plan; there where there is none, and the plan's keys are not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Payload bytes that the best mix does not send; there with a baseline.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_saved_percent: Option<f64>,
}

/// Throughput with few clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ClientsAnswer {
    /// The alternative or mix.
    pub name: String,
    /// By the number of clients; left out where its interval is wider than itself.
    #[serde(flatten)]
    pub throughput: Throughputs,
}

/// A ratio of throughputs over the numbers of clients.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RatioAnswer {
    /// The alternative or mix above the line.
    pub of: String,
    /// The one below it.
    pub over: String,
    /// The least ratio over the numbers of clients.
    pub low: f64,
    /// The greatest.
    pub high: f64,
    /// The least that was published.
    pub published_low: f64,
    /// The greatest.
    pub published_high: f64,
    /// Where it stands.
    pub source: String,
    /// The ratio where everything that binds is full.
    pub saturated: f64,
}

figures! {
    /// What is offered and what is carried.
    CurveRates {
        offered "Offered load" { Mreq offered_mreq_per_s, Gbit offered_gbit_per_s }
        throughput "What the twin carries," {
            Mreq throughput_mreq_per_s, Gbit throughput_gbit_per_s
        }
    }
}

/// A point of latency over load.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CurveAnswer {
    /// The load.
    #[serde(flatten)]
    pub rates: CurveRates,
    /// Median latency.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile; no evidence backs tails.
    pub latency_us_p99: Option<f64>,
}

/// How many numbers are known in which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ParametersAnswer {
    /// Fitted to published rows.
    pub fitted: usize,
    /// Assumed or carried over from another card.
    pub guessed: usize,
    /// From data sheets and measurements.
    pub stated: usize,
    /// Set by the user.
    pub set: usize,
}

fn us(seconds: f64) -> f64 {
    seconds * 1e6
}

fn micros(time: Option<Time>) -> Option<f64> {
    time.map(Time::as_us)
}

fn quantile(loaded: Option<&Loaded>, of: f64) -> Option<Time> {
    loaded?.latencies.quantile(of)
}

fn shares(all: &[(String, f64)]) -> ByName<f64> {
    all.iter().cloned().collect()
}

/// Shares in a line.
pub(crate) fn shares_text(shares: &ByName<f64>) -> String {
    let parts: Vec<String> =
        shares.iter().filter(|(_, s)| **s > 0.0005).map(|(n, s)| format!("{:.1}% {n}", s * 100.0)).collect();
    if parts.len() == 1 { format!("{} alone", shares.0[0].0) } else { parts.join(" + ") }
}

fn network_saved(design: &Design, bytes_per_request: f64) -> Option<f64> {
    design.network_baseline.map(|bytes| (1.0 - bytes_per_request / bytes.get() as f64) * 100.0)
}

fn objective_text(objective: Objective) -> String {
    let rate = |load: f64| OpRate::per_second(load as u64).to_string();
    match objective {
        Objective::MostThroughput => "most throughput".to_string(),
        Objective::LeastHostCpu { load } => format!("least host processor time at {}", rate(load)),
        Objective::LowestP99 { load } => format!("lowest p99 at {}", rate(load)),
    }
}

impl PlanAnswer {
    /// What a study says; `options` are those with which another command is asked about the same.
    pub(super) fn of(study: &Study, options: Vec<String>) -> PlanAnswer {
        let (design, plan, unit) = (&study.design, &study.checked.plan, Unit::of(&study.design));
        let worth = FigureUnit::worth(design.objective, unit);
        let mix = |mix: &Mix| MixAnswer::of(mix, design, unit);
        let without_evidence = without_evidence(&study.without_evidence, &study.checked.plan);
        let said = design.warnings.iter().chain(&design.notes).chain(&study.notes).cloned();
        let advised = &study.advised;
        PlanAnswer {
            schema_version: SCHEMA_VERSION,
            design: design.name.clone(),
            design_file: design.source.0.clone(),
            options,
            not_of_the_file: Vec::new(),
            system: SystemAnswer::of(&study.system),
            workload: design.workload.clone(),
            workload_properties: design.workload_properties.clone(),
            objective: objective_text(design.objective),
            goal: Goal::of(design.objective),
            load_req_per_s: design.objective.load(),
            list_fill_us_at_least: list_fill_s(&study.design, &study.checked.plan).map(us),
            host_cpu_limit_share: design.host_cpu_share,
            host_cpu_limit_cores: study.system.open_host_threads().map(|(open, _)| open),
            host_cores: study.system.open_host_threads().map(|(_, all)| all),
            latency_limit_us: design.latency_bound.map(Time::as_us),
            notes: without_evidence.iter().cloned().chain(said).collect(),
            without_evidence,
            unit: unit.name(),
            unit_payload_bytes: unit.payload_bytes,
            fetch_engine: design.application.as_ref().and_then(|one| one.engine()).map(str::to_string),
            cache_hit_ratio: plan.cache.as_ref().map(|cache| cache.hit_ratio),
            cache: plan.cache.as_ref().map(|cache| CacheAnswer {
                endpoint: cache.at.clone(),
                budget_bytes: cache.budget.get(),
                whole_objects_bytes: cache.whole.get(),
                object: cache.object.clone(),
                entries: cache.entries,
                entries_of_object: cache.of,
            }),
            choices: study.search.as_ref().map(|search| ChoicesAnswer::of(search, &study.margins)),
            alternatives: plan
                .alternatives
                .iter()
                .map(|one| AlternativeAnswer::of(one, &study.system.device, unit))
                .collect(),
            mixes: plan.mixes.iter().map(mix).collect(),
            greedy: mix(&plan.greedy),
            greedy_order: plan.greedy_order.clone(),
            optimal: mix(&plan.optimal),
            recommendation: RecommendationAnswer::of(study, worth),
            traffic: TrafficAnswer::of(study),
            twin: TwinAnswer::of(&study.checked.settled, unit),
            lowest_p99: lowest_p99(study),
            influences: plan.influences.iter().map(|one| InfluenceAnswer::of(one, design, worth)).collect(),
            variants: study
                .variants
                .iter()
                .map(|one| VariantAnswer {
                    overlay: one.overlay.clone(),
                    description: one.description.clone(),
                    solved: one.solved.as_ref().ok().map(|one| SolvedAnswer::of(one, unit)),
                    refused: one.solved.as_ref().err().cloned(),
                })
                .collect(),
            code: study.code.as_ref().map(|code| CodeAnswer {
                application: code.application,
                largest_busy_difference: code.busy.0,
                at_station: code.busy.1.clone(),
                of_alternative: code.busy.2.clone(),
                largest_latency_difference: code.latency.0,
                of_alternative_latency: code.latency.1.clone(),
                differs: code.differs(),
            }),
            changed: study.changed.as_ref().map(|changed| ChangedAnswer::of(changed, study, unit)),
            sweep: study.sweep.as_ref().map(|sweep| ParameterAnswer::of(sweep, design, unit)),
            client_counts: design.clients.clone(),
            clients: study
                .clients
                .iter()
                .map(|(name, runs)| {
                    let carried = design.clients.iter().zip(runs);
                    let carried = carried.filter_map(|(count, run)| Some((count.to_string(), run.result()?)));
                    ClientsAnswer { name: name.clone(), throughput: Throughputs::of(unit, carried) }
                })
                .collect(),
            client_ratios: client_ratios(study),
            curve: study
                .curve
                .iter()
                .map(|point| CurveAnswer {
                    rates: CurveRates::of(
                        unit.figure_unit(),
                        Some(point.offered_per_s),
                        point.loaded.throughput.result(),
                    ),
                    latency_us_p50: micros(quantile(point.loaded.told(), 0.5)),
                    latency_us_p99: micros(quantile(point.loaded.told(), 0.99)),
                })
                .collect(),
            model_parameters: ParametersAnswer::of(study),
            errors_learnt_on: plan.recommendation.lessons.iter().flat_map(|lesson| lesson.cards()).collect(),
            clients_bind: study.system.machine("client").map_or_else(
                |_| Vec::new(),
                |client| {
                    let bounds = plan.optimal.bounds.iter().filter(|bound| !bound.is_load);
                    let own = bounds.filter(|bound| bound.name.starts_with(client.prefix.as_str()));
                    own.map(|bound| bound.name.clone()).collect()
                },
            ),
            measured_otherwise: MeasuredOtherwise::of(&Beside {
                design,
                system: &study.system,
                is_other_system: study.is_other_system,
                plan,
                clients: &study.clients,
                unit,
            }),
            not_modelled: NOT_MODELLED
                .into_iter()
                .chain(study.has_reliable_messages.then_some(ACKNOWLEDGEMENTS))
                .chain(study.has_messages.then_some(RECEIVE_QUEUES))
                .chain(study.code.is_some().then_some(OWN_QUEUES))
                .chain(study.posts_to_others_engines.then_some(POSTING))
                .collect(),
            next_measurement: super::next::measurement(study),
            advice: advised.advice.iter().map(|one| AdviceAnswer::of(one, advised.objective)).collect(),
            advice_measured: advised.unconfirmed.is_none()
                && advised.unsettled.is_none()
                && advised.postponed.is_none(),
            advice_not_measured_because: advised.postponed.clone().or_else(|| {
                if advised.unsettled.is_some() {
                    return Some("the solution has not settled".to_string());
                }
                let gap = advised.unconfirmed.as_ref()?;
                let why = match (gap.blind.is_some(), gap.is_unclear()) {
                    (true, _) => "the twin confirms nothing",
                    (_, true) => "the twin does not tell",
                    _ => "twin and plan differ",
                };
                Some(why.to_string())
            }),
            advice_mix: advised.runs.clone(),
            advice_rules: RULES.len(),
            topology: TopologyAnswer::of(&study.system),
            system_notes: study.notes.clone(),
        }
    }

    /// The unit of its rates.
    pub fn rate_unit(&self) -> Unit {
        Unit { payload_bytes: self.unit_payload_bytes }
    }
}

/// What is said of the steps of the best mix that nothing published is about.
pub(crate) fn without_evidence(steps: &[(String, Verb, Path)], plan: &Plan) -> Vec<String> {
    let shares = &plan.optimal.shares;
    let taken = |name: &str| shares.iter().any(|(own, share)| own == name && *share > 0.0);
    let steps = steps.iter().filter(|(name, ..)| taken(name));
    let (atomics, others): (Vec<_>, Vec<_>) = steps.partition(|(_, verb, _)| verb.is_atomic());
    // A verb that is published has a place that is not: an engine's own, or a memory apart.
    let named = others.iter().map(|(_, verb, path)| match verb.is_published() {
        true => format!("`{verb}` on `{path}`"),
        false => format!("`{verb}`"),
    });
    let named: BTreeSet<String> = named.collect();
    let named = Vec::from_iter(named).join(", ");
    let others =
        (!named.is_empty()).then(|| format!("nothing is fitted to published rows about {named}: order only"));
    (!atomics.is_empty()).then(|| ATOMICS.to_string()).into_iter().chain(others).collect()
}

/// Seconds that the slowest list of the best mix takes to fill at the load that is asked for, at least.
pub(crate) fn list_fill_s(design: &Design, plan: &Plan) -> Option<f64> {
    let load = design.objective.load()?;
    let taken = |name: &str| plan.optimal.shares.iter().find(|(own, _)| own == name);
    let lists = design.alternatives.iter().filter_map(|one| Some((one.lists(), taken(&one.name)?.1)));
    let fills = lists.flat_map(|(lists, share)| {
        lists.into_iter().map(move |(batch, posts)| f64::from(batch - 1) / (load * share * posts))
    });
    fills.filter(|seconds| seconds.is_finite()).max_by(f64::total_cmp)
}

/// The mix with the lowest tail, where the lowest was sought and the twin tells.
fn lowest_p99(study: &Study) -> Option<TailAnswer> {
    let settled = &study.checked.settled;
    let is_sought = matches!(study.design.objective, Objective::LowestP99 { .. });
    let found = settled.told()?.latencies.quantile(0.99).filter(|_| is_sought)?;
    Some(TailAnswer { shares: shares(&settled.shares), latency_us_p99: Some(found.as_us()) })
}

/// The twin's ratios over the numbers of clients beside the published ones, and the ratio that the plan gives where all
/// stations that bind are full.
fn client_ratios(study: &Study) -> Vec<RatioAnswer> {
    // What is published speaks of the design and the system as they are shipped.
    if study.design.is_varied || study.is_other_system {
        return Vec::new();
    }
    let runs = |name: &str| study.clients.iter().find(|(n, _)| n == name).map(|(_, runs)| runs);
    let plan = &study.checked.plan;
    let full = |name: &str| {
        let alone = plan.alternatives.iter().find(|one| one.name == name).map(|one| one.rate.value);
        alone.or_else(|| plan.mixes.iter().find(|mix| mix.name == name).map(|mix| mix.rate.value))
    };
    let published = study.design.published.iter().filter_map(|one| {
        let pairs = runs(&one.of)?.iter().zip(runs(&one.over)?);
        let ratios = pairs.filter_map(|(a, b)| Some(a.result()? / b.result()?));
        Some(RatioAnswer {
            of: one.of.clone(),
            over: one.over.clone(),
            low: ratios.clone().fold(f64::INFINITY, f64::min),
            high: ratios.fold(f64::NEG_INFINITY, f64::max),
            published_low: one.low,
            published_high: one.high,
            source: one.source.clone(),
            saturated: full(&one.of)? / full(&one.over)?,
        })
    });
    published.collect()
}

/// Which number of the design makes the answer an estimate, and through which alternative where the mix itself hardly
/// rests on it.
fn whose(study: &Study) -> Option<String> {
    let plan = &study.checked.plan;
    let yours = |rests: &[Rest]| estimate(rests).map(|rest| rest.number.clone());
    let through = |(name, share): &(String, f64)| {
        let one = plan.alternatives.iter().find(|one| one.name == *name)?;
        let is_decided = *share >= 0.05 && one.basis == Basis::YourEstimate;
        is_decided.then(|| yours(&one.rests_on)).flatten().map(|number| format!("{number}, through {name}"))
    };
    let is_yours = plan.recommendation.basis == Basis::YourEstimate;
    let of_mix = || yours(&plan.recommendation.rests_on);
    is_yours.then(|| of_mix().or_else(|| plan.optimal.shares.iter().find_map(through))).flatten()
}

impl AlternativeAnswer {
    fn of(one: &Alone, device: &str, unit: Unit) -> AlternativeAnswer {
        AlternativeAnswer {
            name: one.name.clone(),
            description: one.description.clone(),
            device: one.device.as_deref().unwrap_or(device).to_string(),
            beside: one.device.is_some(),
            mixed: one.mixed,
            throughput: Throughput::ranged(unit, &one.rate),
            unloaded_latency_us: us(one.latency_s.value),
            unloaded_latency_us_low_80: us(one.latency_s.range_80.0),
            unloaded_latency_us_high_80: us(one.latency_s.range_80.1),
            binding_station: one.binding.clone(),
            binding_meaning: one.meaning.clone(),
            unloaded_latency_basis: one.latency_basis.name(),
            reason: one.reason.clone(),
            basis: (one.rate.value > 0.0).then(|| one.basis.name()),
            runs_in_share_of_draws: one.runs_in,
            guessed_share: guessed(&one.rests_on),
            rests_on: rests(&one.rests_on),
            host_cpu_us_per_request: us(one.host_cpu_s),
            network_bytes_per_request: one.network_bytes,
            leaves_work_behind: one.demand.background > 0.0,
        }
    }
}

fn rests(all: &[Rest]) -> Vec<RestAnswer> {
    let heavy = all.iter().filter(|rest| rest.weight.max(rest.elasticity).max(rest.moves) >= 1e-3);
    let answer = |rest: &Rest| RestAnswer {
        number: rest.number.clone(),
        with: rest.with.clone(),
        provenance: rest.origin.name(),
        elasticity: rest.elasticity,
        weight: rest.weight,
        moves_share: rest.moves,
        own_evidence: rest.own_evidence,
    };
    heavy.map(answer).collect()
}

impl MixAnswer {
    fn of(mix: &Mix, design: &Design, unit: Unit) -> MixAnswer {
        let binding = |bound: &Bound| BindingAnswer {
            station: bound.name.clone(),
            meaning: bound.meaning.clone(),
            gain_percent_for_10_percent_more: bound.gain_percent,
            is_load: bound.is_load,
        };
        MixAnswer {
            name: mix.name.clone(),
            throughput: Throughput::ranged(unit, &mix.rate),
            unloaded_latency_us: us(mix.latency_s),
            shares: shares(&mix.shares),
            binding: mix.bounds.iter().map(binding).collect(),
            slots_bind: mix.slots_bind,
            host_cpu_us_per_request: us(mix.host_cpu_s),
            network_saved_percent: network_saved(design, mix.network_bytes),
            beyond_latency_bound: mix.beyond_bound.clone(),
            unique: mix.unique,
            shares_as_good: mix
                .as_good
                .iter()
                .map(|(name, (low, high))| (name.clone(), SharesAnswer { low: *low, high: *high }))
                .collect(),
        }
    }
}

impl RecommendationAnswer {
    fn of(study: &Study, worth: FigureUnit) -> RecommendationAnswer {
        let plan = &study.checked.plan;
        let sure: &Recommendation = &plan.recommendation;
        let ((low_80, high_80), (low_95, high_95)) = (plan.worth.range_80, plan.worth.range_95);
        let answer = |over: &Over| OverAnswer {
            alternative: over.name.clone(),
            device: over.device.as_ref().unwrap_or(&study.design.device).clone(),
            plain_nic: over.is_plain,
            ratio: over.ratio.value,
            ratio_low_80: over.ratio.range_80.0,
            ratio_high_80: over.ratio.range_80.1,
            faster_in_share_of_draws: over.faster_in,
        };
        // At a load that is asked for, what something carries at most is nothing to compare it with.
        let is_compared = matches!(study.design.objective, Objective::MostThroughput);
        let compared = || sure.over.iter().filter(|one| is_compared && one.ratio.value.is_finite());
        let over = |is_meant: &dyn Fn(&Over) -> bool| -> Vec<OverAnswer> {
            compared().filter(|one| is_meant(one)).map(answer).collect()
        };
        RecommendationAnswer {
            basis: sure.basis.name(),
            estimate_by: whose(study),
            worth: Worth::of(
                worth,
                Some(plan.worth.value),
                Some(low_80),
                Some(high_80),
                Some(low_95),
                Some(high_95),
            ),
            guessed_share: guessed(&sure.rests_on),
            guesses_move_share: moved_by_guesses(&sure.rests_on),
            your_estimates_share: estimated(&sure.rests_on),
            your_estimates_halved_share: estimated_as(&sure.rests_on, Drawn::Half),
            your_estimates_held_share: estimated_as(&sure.rests_on, Drawn::Held),
            guesses_part_of_moves: parts_of_moves(&sure.rests_on).map(|(guesses, _)| guesses),
            your_estimates_part_of_moves: parts_of_moves(&sure.rests_on).map(|(_, yours)| yours),
            rests_on: rests(&sure.rests_on),
            draws: sure.draws,
            best_in_share_of_draws: sure.best_in,
            as_good_without_in_share_of_draws: sure.matched_in,
            best_in_share_of_base_draws: sure.best_in_by_mechanism.map(|(base, _)| base),
            best_in_share_of_variant_draws: sure.best_in_by_mechanism.map(|(_, open)| open),
            load_carried_in_share_of_draws: sure.carried_in,
            runs_in_share_of_draws: sure.runs_in,
            keeps_latency_bound_in_share_of_draws: sure.keeps_bound_in,
            shares_draws_widened_by_past_errors: sure.is_widened,
            load_carried_by_shares_in_share_of_draws: sure.shares_carry_in,
            median_of_draws_share: plan.optimal.rate.median / plan.optimal.rate.value,
            set: plan.optimal.composition(),
            best_sets: sure
                .best_sets
                .iter()
                .map(|(set, share)| SetAnswer { alternatives: set.clone(), share_of_draws: *share })
                .collect(),
            share_low_80: sure.shares.iter().map(|(name, share)| (name.clone(), share.range_80.0)).collect(),
            share_high_80: sure.shares.iter().map(|(name, share)| (name.clone(), share.range_80.1)).collect(),
            over_other_devices: over(&|one| one.device.is_some()),
            over_alternatives: over(&|one| {
                one.device.is_none() && !matches!(&plan.optimal.shares[..], [(only, _)] if *only == one.name)
            }),
        }
    }
}

impl TwinAnswer {
    fn of(settled: &Settled, unit: Unit) -> TwinAnswer {
        let (loaded, told, carried) = (&settled.loaded, settled.told(), settled.carried());
        let fullest = told.into_iter().flat_map(|told| &told.fullest);
        let busy = fullest.filter(|(_, (_, share))| *share > 0.0);
        TwinAnswer {
            rates: TwinRates::of(
                unit.figure_unit(),
                carried.and_then(|carried| carried.result()),
                carried.map(|carried| carried.low),
                carried.map(|carried| carried.high),
                Some(settled.first_rate),
            ),
            latency_us_p50: micros(quantile(told, 0.5)),
            latency_us_p99: micros(quantile(told, 0.99)),
            poisson_arrivals: settled.load.is_some(),
            requests_in_flight: loaded.in_flight,
            requests_completed: loaded.latencies.count(),
            window_us: us(loaded.window.as_seconds()),
            failed_requests: loaded.failed,
            rounds: settled.rounds,
            settled: settled.has_settled(),
            holds_moved_share: settled.moved,
            difference: settled.gap.as_ref().map(|gap| GapAnswer::of(gap, unit)),
            noise_share: settled.noise,
            sampled_requests: settled.sampled,
            widest_demand_interval: settled.widest,
            utilization: busy.map(|(name, (_, share))| (name.clone(), *share)).collect(),
            validates: "the queueing model only; hardware accuracy rests on the evidence",
        }
    }
}

impl GapAnswer {
    pub(super) fn of(gap: &Gap, unit: Unit) -> GapAnswer {
        let carried = gap.carried_per_s;
        GapAnswer {
            rates: GapRates::of(
                unit.figure_unit(),
                Some(gap.planned_per_s),
                carried.and_then(|carried| carried.result()),
                carried.map(|carried| carried.low),
                carried.map(|carried| carried.high),
            ),
            share: gap.share(),
            allowed_share: gap.allowed,
            unclear: gap.is_unclear(),
            fullest: gap.fullest.as_ref().map(FullestAnswer::of),
            blind_because: gap.blind.clone(),
            bunched: BunchedAnswer::of(gap),
        }
    }
}

impl InfluenceAnswer {
    fn of(one: &Influence, design: &Design, worth: FigureUnit) -> InfluenceAnswer {
        let no_room = |own: &&Estimate| *own.id == *one.number && own.low.is_some() && own.low == own.high;
        InfluenceAnswer {
            no_room: design.estimates().iter().any(|own| no_room(&own)),
            number: one.number.clone(),
            low: one.low.to_string(),
            high: one.high.to_string(),
            optimal: InfluenceEnds::of(worth, one.at_low, one.at_high),
            changes_recommendation: one.changes.clone(),
            planned_again: one.planned,
            interval_stated: one.is_stated,
            drawn_with_guesses_of: one.drawn_with.clone(),
        }
    }
}

impl SolvedAnswer {
    fn of(one: &Solved, unit: Unit) -> SolvedAnswer {
        let alone = one.alternatives.iter().map(|(name, rate, _)| (name.clone(), *rate));
        SolvedAnswer {
            rates: SolvedRates::of(unit.figure_unit(), Some(one.rate), Some(one.greedy)),
            shares: shares(&one.shares),
            alternatives: Throughputs::of(unit, alone),
            mixes: Throughputs::of(unit, one.mixes.iter().cloned()),
            settled: one.settled,
            difference: one.gap.as_ref().map(|gap| GapAnswer::of(gap, unit)),
        }
    }
}

impl ChangedAnswer {
    fn of(changed: &Changed, study: &Study, unit: Unit) -> ChangedAnswer {
        let before = changed.before.as_ref();
        let now = &study.checked.plan;
        // The alternatives that a change moves by more than half a percent or that another station binds.
        let shown = |rate: f64, binds: &str| format!("{} ({binds})", short(unit.of_rate(rate)));
        let were = before.map_or(&[][..], |one| &one.alternatives);
        let moved = now.alternatives.iter().zip(were).filter(|(now, (_, was, binding))| {
            (now.rate.value / was - 1.0).abs() > 5e-3 || now.binding != *binding
        });
        ChangedAnswer {
            numbers: changed
                .numbers
                .iter()
                .map(|(name, before, after)| ChangeAnswer {
                    name: name.clone(),
                    before: before.to_string(),
                    after: after.to_string(),
                })
                .collect(),
            rates: ChangedRates::of(
                unit.figure_unit(),
                before.ok().map(|one| one.rate),
                Some(now.optimal.rate.value),
            ),
            mix_before: before.map_or_else(Clone::clone, |one| shares_text(&shares(&one.shares))),
            difference_before: before
                .ok()
                .and_then(|one| one.gap.as_ref())
                .map(|gap| GapAnswer::of(gap, unit)),
            moved: moved
                .map(|(now, (_, was, binding))| ChangeAnswer {
                    name: now.name.clone(),
                    before: shown(*was, binding),
                    after: shown(now.rate.value, &now.binding),
                })
                .collect(),
        }
    }
}

impl ParameterAnswer {
    fn of(sweep: &Sweep, design: &Design, unit: Unit) -> ParameterAnswer {
        let row = |(value, row): &(f64, Result<Solved, String>)| ParameterRow {
            value: *value,
            value_unit: design.parameter_unit(&sweep.parameter),
            text: design.parameter_label(&sweep.parameter, *value),
            solved: row.as_ref().ok().map(|row| SolvedAnswer::of(row, unit)),
            refused: row.as_ref().err().cloned(),
            network_saved_percent: row.as_ref().ok().and_then(|row| network_saved(design, row.network_bytes)),
        };
        ParameterAnswer { parameter: sweep.parameter.clone(), rows: sweep.rows.iter().map(row).collect() }
    }
}

impl ParametersAnswer {
    fn of(study: &Study) -> ParametersAnswer {
        let numbers = study.known.values();
        let of = |provenance: Provenance| numbers.clone().filter(|known| **known == provenance).count();
        let guessed = numbers.clone().filter(|known| known.is_guess()).count();
        let (fitted, set) = (of(Provenance::Fitted), of(Provenance::Set));
        ParametersAnswer { fitted, guessed, stated: numbers.len() - fitted - guessed - set, set }
    }
}
