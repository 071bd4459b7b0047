//! The JSON of `offpath plan`; docs/schemas/plan.json says what each key means.

use super::super::check::{AdviceReport, FullestReport};
use super::confidence::NOT_MODELLED;
use super::page::{Page, Unit, network_saved, shares_text};
use super::tables::Ratio;
use crate::output::{SCHEMA_VERSION, round};
use offpath::plan::check::Gap;
use offpath::plan::confidence::guessed;
use offpath::plan::published::missed_of;
use offpath::plan::study::{Changed, Solved};
use offpath::plan::{Mix, Objective, Ranged, Rest};
use offpath::quantity::Time;
use serde::Serialize;
use std::collections::BTreeMap;

/// Figures by keys that end in their unit.
type Keyed = BTreeMap<String, f64>;

impl Unit {
    /// The end of a key that holds a throughput.
    fn key(self) -> &'static str {
        if self.bits.is_some() { "gbit_per_s" } else { "mreq_per_s" }
    }

    fn one(self, name: &str, per_second: f64) -> Keyed {
        BTreeMap::from([(format!("{name}_{}", self.key()), round(self.of_rate(per_second)))])
    }

    fn ranged(self, rate: &Ranged) -> Keyed {
        let mut keyed = self.one("throughput", rate.value);
        let ends = [("80", rate.range_80), ("95", rate.range_95)];
        for (share, (low, high)) in ends {
            keyed.extend(self.one(&format!("throughput_low_{share}"), low));
            keyed.extend(self.one(&format!("throughput_high_{share}"), high));
        }
        keyed
    }
}

impl Page<'_> {
    /// A mix's worth by the design's goal.
    fn worth_key(&self, name: &str, worth: f64) -> (String, f64) {
        match self.study.design.objective {
            Objective::MostThroughput => {
                (format!("{name}_{}", self.unit().key()), round(self.unit().of_rate(worth)))
            }
            Objective::LeastHostCpu { .. } => (format!("{name}_host_cpu_us_per_request"), round(worth * 1e6)),
            Objective::LowestP99 { .. } => (format!("{name}_unloaded_latency_us"), round(worth * 1e6)),
        }
    }

    /// What the page says, as data; latency over load only where it was asked for.
    pub(super) fn report(&self, curve: bool) -> Report<'_> {
        let (study, plan, unit) = (self.study, self.plan(), self.unit());
        let settled = &study.checked.settled;
        let loaded = &settled.loaded;
        let sure = &plan.recommendation;
        let mix = |mix: &Mix| MixReport {
            name: mix.name.clone(),
            throughput: unit.ranged(&mix.rate),
            unloaded_latency_us: round(mix.latency_s * 1e6),
            shares: mix.shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
            binding: mix
                .bounds
                .iter()
                .map(|bound| BindingReport {
                    station: bound.name.clone(),
                    meaning: bound.meaning.clone(),
                    gain_percent_for_10_percent_more: bound.gain_percent.map(round),
                })
                .collect(),
            host_cpu_us_per_request: round(mix.host_cpu_s * 1e6),
            network_saved_percent: network_saved(&study.design, mix.network_bytes),
            unique: mix.unique,
        };
        let micros = |time: Option<Time>| time.map(|time| round(time.as_us()));
        Report {
            schema_version: SCHEMA_VERSION,
            design: &study.design.name,
            device: &study.system.device,
            testbed: &study.system.testbed,
            mode: &study.system.mode,
            overlays: &study.system.overlays,
            workload: &study.design.workload,
            workload_properties: &study.design.workload_properties,
            objective: self.goal(),
            notes: self.notes(),
            unit: unit.name(),
            fetch_engine: self
                .study
                .design
                .application
                .as_ref()
                .and_then(|one| one.engine())
                .map(str::to_string),
            cache_hit_ratio: plan.cache.as_ref().map(|cache| round(cache.hit_ratio)),
            alternatives: plan
                .alternatives
                .iter()
                .map(|one| AlternativeReport {
                    name: &one.name,
                    device: one.device.as_deref().unwrap_or(&study.system.device),
                    mixed: one.mixed,
                    throughput: unit.ranged(&one.rate),
                    unloaded_latency_us: round(one.latency_s.value * 1e6),
                    unloaded_latency_us_low_80: round(one.latency_s.range_80.0 * 1e6),
                    unloaded_latency_us_high_80: round(one.latency_s.range_80.1 * 1e6),
                    binding_station: &one.binding,
                    binding_meaning: &one.meaning,
                    unloaded_latency_basis: one.latency_basis.name(),
                    reason: &one.reason,
                    basis: one.basis.name(),
                    guessed_share: round(guessed(&one.rests_on)),
                    rests_on: rests(&one.rests_on),
                    host_cpu_us_per_request: round(one.host_cpu_s * 1e6),
                    network_bytes_per_request: round(one.network_bytes),
                })
                .collect(),
            mixes: plan.mixes.iter().map(mix).collect(),
            greedy: mix(&plan.greedy),
            greedy_order: &plan.greedy_order,
            optimal: mix(&plan.optimal),
            recommendation: RecommendationReport {
                basis: sure.basis.name(),
                worth: {
                    let (low_80, high_80) = plan.worth.range_80;
                    let (low_95, high_95) = plan.worth.range_95;
                    let ends = [
                        ("optimal", plan.worth.value),
                        ("optimal_low_80", low_80),
                        ("optimal_high_80", high_80),
                        ("optimal_low_95", low_95),
                        ("optimal_high_95", high_95),
                    ];
                    ends.into_iter().map(|(name, worth)| self.worth_key(name, worth)).collect()
                },
                guessed_share: round(guessed(&sure.rests_on)),
                rests_on: rests(&sure.rests_on),
                draws: sure.draws,
                best_in_share_of_draws: round(sure.best_in),
                best_in_share_of_base_draws: sure.best_in_by_mechanism.map(|(base, _)| round(base)),
                best_in_share_of_variant_draws: sure.best_in_by_mechanism.map(|(_, open)| round(open)),
                load_carried_in_share_of_draws: round(sure.carried_in),
                load_carried_by_shares_in_share_of_draws: round(sure.shares_carry_in),
                best_sets: sure
                    .best_sets
                    .iter()
                    .map(|(set, share)| SetReport { alternatives: set, share_of_draws: round(*share) })
                    .collect(),
                share_low_80: sure.shares.iter().map(|(n, r)| (n.as_str(), round(r.range_80.0))).collect(),
                share_high_80: sure.shares.iter().map(|(n, r)| (n.as_str(), round(r.range_80.1))).collect(),
                over_other_devices: sure
                    .over
                    .iter()
                    .map(|over| OverReport {
                        alternative: &over.name,
                        device: &over.device,
                        ratio: round(over.ratio.value),
                        ratio_low_80: round(over.ratio.range_80.0),
                        ratio_high_80: round(over.ratio.range_80.1),
                        faster_in_share_of_draws: round(over.faster_in),
                    })
                    .collect(),
            },
            twin: TwinReport {
                throughput: match loaded.throughput.result() {
                    Some(mean) => unit.one("throughput", mean),
                    None => Keyed::new(),
                },
                interval: {
                    let mut ends = unit.one("throughput_low_95", loaded.throughput.low);
                    ends.extend(unit.one("throughput_high_95", loaded.throughput.high));
                    ends.extend(unit.one("first_solution", settled.first_rate));
                    ends
                },
                latency_us_p50: micros(loaded.latencies.quantile(0.5)),
                latency_us_p99: micros(loaded.latencies.quantile(0.99)),
                requests_in_flight: loaded.in_flight,
                requests_completed: loaded.latencies.count(),
                window_us: round(loaded.window.as_seconds() * 1e6),
                failed_requests: loaded.failed,
                rounds: settled.rounds,
                settled: settled.has_settled(),
                holds_moved_share: round(settled.moved),
                difference: settled.gap.as_ref().map(|gap| gap_report(gap, unit)),
                sampled_requests: settled.sampled,
                widest_demand_interval: round(settled.widest),
                utilization: loaded
                    .fullest
                    .iter()
                    .filter(|(_, (_, share))| *share > 0.0)
                    .map(|(name, (_, share))| (name.clone(), round(*share)))
                    .collect(),
                validates: "the queueing model only; hardware accuracy rests on the evidence",
            },
            lowest_p99: self.lowest_p99().map(|_| TailReport {
                shares: settled.shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
                latency_us_p99: micros(loaded.latencies.quantile(0.99)),
            }),
            influences: plan
                .influences
                .iter()
                .map(|i| InfluenceReport {
                    number: &i.number,
                    low: i.low.to_string(),
                    high: i.high.to_string(),
                    optimal: {
                        let ends = [("optimal_at_low", i.at_low), ("optimal_at_high", i.at_high)];
                        ends.into_iter().filter_map(|(name, at)| Some(self.worth_key(name, at?))).collect()
                    },
                    changes_recommendation: i.changes.as_deref(),
                    planned_again: i.planned,
                })
                .collect(),
            variants: study
                .variants
                .iter()
                .map(|one| VariantReport {
                    overlay: &one.overlay,
                    description: &one.description,
                    solved: one.solved.as_ref().ok().map(|one| solved(one, unit)),
                    refused: one.solved.as_ref().err().cloned(),
                })
                .collect(),
            code: study.code.as_ref().map(|code| CodeReport {
                application: code.application,
                largest_busy_difference: round(code.busy.0),
                at_station: &code.busy.1,
                of_alternative: &code.busy.2,
                largest_latency_difference: round(code.latency.0),
                of_alternative_latency: &code.latency.1,
            }),
            changed: study.changed.as_ref().map(|changed| self.changed_report(changed)),
            sweep: study.sweep.as_ref().map(|sweep| SweepReport {
                parameter: &sweep.parameter,
                rows: sweep
                    .rows
                    .iter()
                    .map(|(value, row)| SweepRow {
                        value: *value,
                        network_saved_percent: row
                            .as_ref()
                            .ok()
                            .and_then(|row| network_saved(&study.design, row.network_bytes)),
                        solved: row.as_ref().ok().map(|row| solved(row, unit)),
                        refused: row.as_ref().err().cloned(),
                    })
                    .collect(),
            }),
            clients: study
                .clients
                .iter()
                .map(|(name, runs)| ClientsReport {
                    name,
                    throughput: BTreeMap::from([(
                        format!("throughput_{}", unit.key()),
                        study
                            .design
                            .clients
                            .iter()
                            .zip(runs)
                            .filter_map(|(count, carried)| Some((count.to_string(), carried.result()?)))
                            .map(|(count, carried)| (count, round(unit.of_rate(carried))))
                            .collect(),
                    )]),
                })
                .collect(),
            client_ratios: self.client_ratios(),
            curve: study
                .curve
                .iter()
                .filter(|_| curve)
                .map(|point| CurveReport {
                    rates: {
                        let mut rates = unit.one("offered", point.offered_per_s);
                        let carried = point.loaded.throughput.result();
                        rates.extend(carried.map(|mean| unit.one("throughput", mean)).unwrap_or_default());
                        rates
                    },
                    latency_us_p50: micros(point.loaded.latencies.quantile(0.5)),
                    latency_us_p99: micros(point.loaded.latencies.quantile(0.99)),
                })
                .collect(),
            missed_rows: missed_of(&study.design),
            not_modelled: NOT_MODELLED,
            next_measurement: self.next_measurement(),
            advice: study
                .advised
                .advice
                .iter()
                .map(|one| AdviceReport::of(one, study.advised.objective))
                .collect(),
            advice_measured: study.advised.unconfirmed.is_none(),
        }
    }

    fn changed_report(&self, changed: &Changed) -> ChangedReport {
        let line = |(name, before, after): (String, String, String)| ChangeReport { name, before, after };
        let before = changed.before.as_ref();
        let mut rates =
            before.map_or_else(|_| Keyed::new(), |one| self.unit().one("optimal_before", one.rate));
        rates.extend(self.unit().one("optimal_after", self.plan().optimal.rate.value));
        ChangedReport {
            numbers: changed
                .numbers
                .iter()
                .map(|(name, before, after)| line((name.clone(), before.to_string(), after.to_string())))
                .collect(),
            rates,
            mix_before: before.map_or_else(Clone::clone, |one| shares_text(&one.shares)),
            moved: self.moved(changed).into_iter().map(line).collect(),
        }
    }
}

fn rests(all: &[Rest]) -> Vec<RestReport<'_>> {
    all.iter()
        .filter(|rest| rest.weight >= 1e-3 || rest.elasticity >= 1e-3)
        .map(|rest| RestReport {
            number: &rest.number,
            provenance: rest.origin.name(),
            elasticity: round(rest.elasticity),
            weight: round(rest.weight),
            moves_share: round(rest.moves),
            own_evidence: rest.own_evidence,
        })
        .collect()
}

fn gap_report(gap: &Gap, unit: Unit) -> GapReport {
    let mut rates = unit.one("planned", gap.planned_per_s);
    rates.extend(unit.one("carried", gap.carried_per_s));
    GapReport {
        rates,
        share: round(gap.carried_per_s / gap.planned_per_s - 1.0),
        allowed_share: gap.allowed,
        fullest: gap.fullest.clone().map(FullestReport::of),
        blind_because: gap.blind.clone(),
    }
}

fn solved(one: &Solved, unit: Unit) -> SolvedReport {
    let named = |all: &mut dyn Iterator<Item = (&String, f64)>| -> BTreeMap<String, BTreeMap<String, f64>> {
        let rates = all.map(|(name, rate)| (name.clone(), round(unit.of_rate(rate)))).collect();
        BTreeMap::from([(format!("throughput_{}", unit.key()), rates)])
    };
    let mut rates = unit.one("optimal", one.rate);
    rates.extend(unit.one("greedy", one.greedy));
    SolvedReport {
        rates,
        shares: one.shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
        alternatives: named(&mut one.alternatives.iter().map(|(name, rate, _)| (name, *rate))),
        mixes: named(&mut one.mixes.iter().map(|(name, rate)| (name, *rate))),
        settled: one.settled,
        difference: one.gap.as_ref().map(|gap| gap_report(gap, unit)),
    }
}

/// The plans of a design's scenarios.
#[derive(Serialize)]
pub(super) struct Scenarios<'p> {
    schema_version: u32,
    scenarios: Vec<Scenario<'p>>,
}

impl<'p> Scenarios<'p> {
    pub(super) fn of(scenarios: Vec<Scenario<'p>>) -> Scenarios<'p> {
        Scenarios { schema_version: SCHEMA_VERSION, scenarios }
    }
}

/// The plan of one scenario.
#[derive(Serialize)]
pub(super) struct Scenario<'p> {
    pub scenario: &'p str,
    #[serde(flatten)]
    pub plan: Report<'p>,
}

#[derive(Serialize)]
pub(super) struct Report<'p> {
    schema_version: u32,
    design: &'p str,
    device: &'p str,
    testbed: &'p str,
    mode: &'p str,
    overlays: &'p [String],
    workload: &'p str,
    workload_properties: &'p BTreeMap<String, String>,
    objective: String,
    notes: Vec<String>,
    unit: &'static str,
    fetch_engine: Option<String>,
    cache_hit_ratio: Option<f64>,
    alternatives: Vec<AlternativeReport<'p>>,
    mixes: Vec<MixReport>,
    greedy: MixReport,
    greedy_order: &'p [String],
    optimal: MixReport,
    recommendation: RecommendationReport<'p>,
    twin: TwinReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    lowest_p99: Option<TailReport>,
    influences: Vec<InfluenceReport<'p>>,
    variants: Vec<VariantReport<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<CodeReport<'p>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<ChangedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sweep: Option<SweepReport<'p>>,
    clients: Vec<ClientsReport<'p>>,
    client_ratios: Vec<Ratio>,
    curve: Vec<CurveReport>,
    missed_rows: Vec<&'static str>,
    not_modelled: [&'static str; 5],
    next_measurement: String,
    advice: Vec<AdviceReport>,
    advice_measured: bool,
}

#[derive(Serialize)]
struct AlternativeReport<'p> {
    name: &'p str,
    device: &'p str,
    mixed: bool,
    #[serde(flatten)]
    throughput: Keyed,
    unloaded_latency_us: f64,
    unloaded_latency_us_low_80: f64,
    unloaded_latency_us_high_80: f64,
    binding_station: &'p str,
    binding_meaning: &'p str,
    unloaded_latency_basis: &'static str,
    reason: &'p str,
    basis: &'static str,
    guessed_share: f64,
    rests_on: Vec<RestReport<'p>>,
    host_cpu_us_per_request: f64,
    network_bytes_per_request: f64,
}

#[derive(Serialize)]
struct RestReport<'p> {
    number: &'p str,
    provenance: &'static str,
    elasticity: f64,
    weight: f64,
    moves_share: f64,
    own_evidence: bool,
}

#[derive(Serialize)]
struct MixReport {
    name: String,
    #[serde(flatten)]
    throughput: Keyed,
    unloaded_latency_us: f64,
    shares: BTreeMap<String, f64>,
    binding: Vec<BindingReport>,
    host_cpu_us_per_request: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_saved_percent: Option<f64>,
    unique: bool,
}

#[derive(Serialize)]
struct BindingReport {
    station: String,
    meaning: String,
    gain_percent_for_10_percent_more: Option<f64>,
}

#[derive(Serialize)]
struct RecommendationReport<'p> {
    basis: &'static str,
    #[serde(flatten)]
    worth: Keyed,
    guessed_share: f64,
    rests_on: Vec<RestReport<'p>>,
    draws: usize,
    best_in_share_of_draws: f64,
    /// The same of the draws with the base mechanism; none where no other is open.
    best_in_share_of_base_draws: Option<f64>,
    /// And of those with the open ones.
    best_in_share_of_variant_draws: Option<f64>,
    load_carried_in_share_of_draws: f64,
    load_carried_by_shares_in_share_of_draws: f64,
    best_sets: Vec<SetReport<'p>>,
    share_low_80: BTreeMap<&'p str, f64>,
    share_high_80: BTreeMap<&'p str, f64>,
    over_other_devices: Vec<OverReport<'p>>,
}

#[derive(Serialize)]
struct SetReport<'p> {
    alternatives: &'p [String],
    share_of_draws: f64,
}

#[derive(Serialize)]
struct OverReport<'p> {
    alternative: &'p str,
    device: &'p str,
    ratio: f64,
    ratio_low_80: f64,
    ratio_high_80: f64,
    faster_in_share_of_draws: f64,
}

#[derive(Serialize)]
struct TwinReport {
    #[serde(flatten)]
    throughput: Keyed,
    #[serde(flatten)]
    interval: Keyed,
    latency_us_p50: Option<f64>,
    latency_us_p99: Option<f64>,
    requests_in_flight: u32,
    requests_completed: u64,
    window_us: f64,
    failed_requests: u64,
    rounds: u32,
    settled: bool,
    holds_moved_share: f64,
    difference: Option<GapReport>,
    sampled_requests: u64,
    widest_demand_interval: f64,
    utilization: BTreeMap<String, f64>,
    validates: &'static str,
}

#[derive(Serialize)]
struct GapReport {
    #[serde(flatten)]
    rates: Keyed,
    share: f64,
    allowed_share: f64,
    fullest: Option<FullestReport>,
    blind_because: Option<String>,
}

#[derive(Serialize)]
struct CodeReport<'p> {
    application: &'static str,
    largest_busy_difference: f64,
    at_station: &'p str,
    of_alternative: &'p str,
    largest_latency_difference: f64,
    of_alternative_latency: &'p str,
}

#[derive(Serialize)]
struct TailReport {
    shares: BTreeMap<String, f64>,
    latency_us_p99: Option<f64>,
}

#[derive(Serialize)]
struct InfluenceReport<'p> {
    number: &'p str,
    low: String,
    high: String,
    #[serde(flatten)]
    optimal: Keyed,
    changes_recommendation: Option<&'p str>,
    /// Whether the design was planned again at the ends; else what was observed at the value is scaled.
    planned_again: bool,
}

#[derive(Serialize)]
struct SolvedReport {
    #[serde(flatten)]
    rates: Keyed,
    shares: BTreeMap<String, f64>,
    alternatives: BTreeMap<String, BTreeMap<String, f64>>,
    mixes: BTreeMap<String, BTreeMap<String, f64>>,
    settled: bool,
    difference: Option<GapReport>,
}

#[derive(Serialize)]
struct VariantReport<'p> {
    overlay: &'p str,
    description: &'p str,
    #[serde(flatten)]
    solved: Option<SolvedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
}

#[derive(Serialize)]
struct ChangeReport {
    name: String,
    before: String,
    after: String,
}

#[derive(Serialize)]
struct ChangedReport {
    numbers: Vec<ChangeReport>,
    #[serde(flatten)]
    rates: Keyed,
    mix_before: String,
    moved: Vec<ChangeReport>,
}

#[derive(Serialize)]
struct SweepReport<'p> {
    parameter: &'p str,
    rows: Vec<SweepRow>,
}

#[derive(Serialize)]
struct SweepRow {
    value: f64,
    #[serde(flatten)]
    solved: Option<SolvedReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    network_saved_percent: Option<f64>,
}

#[derive(Serialize)]
struct ClientsReport<'p> {
    name: &'p str,
    #[serde(flatten)]
    throughput: BTreeMap<String, BTreeMap<String, f64>>,
}

#[derive(Serialize)]
struct CurveReport {
    #[serde(flatten)]
    rates: Keyed,
    latency_us_p50: Option<f64>,
    latency_us_p99: Option<f64>,
}
