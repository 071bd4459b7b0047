//! What `offpath compare` answers: one design on several devices, which is the best, in how many draws, and what decides.

mod html;
mod text;

pub(crate) use text::interval;

use crate::choices::{ChoicesAnswer, LeftOutAnswer};
use crate::command;
use crate::figures::{Goal, Throughput, Unit};
use crate::measured::{Beside, MeasuredOtherwise};
use crate::plan::{list_fill_s, unplanned, without_evidence};
use crate::report::Page;
use crate::system::SystemAnswer;
use crate::{ByName, SCHEMA_VERSION, setting};
use offpath_plan::comparison::{CompareAsk, Comparison, Contender, Contest, DeviceRatio, DrawsSay, Entrant};
use offpath_plan::{Basis, Changes, Design, Ranged, Setting};
use offpath_profile::{Link, Machine};
use offpath_quantity::BitRate;
use offpath_terminal::failure::Failure;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{Screen, short};
use offpath_twin::Seed;
use serde::Serialize;
use std::path::PathBuf;

/// From which share of the draws on something is told to be so, and up to which part of the rest not to be: intervals are of
/// 80% too.
const TOLD: f64 = 0.8;

/// A design to be compared on several devices.
#[derive(Clone, Debug, Default)]
pub struct CompareRequest {
    /// The design file.
    pub design: PathBuf,
    /// The devices, by name or file.
    pub devices: Vec<String>,
    /// What is changed in the design.
    pub changes: Changes,
    /// What is changed in the systems.
    pub system: SystemOptions,
    /// The seed of every draw; the same seed gives the same answer.
    pub seed: u64,
}

/// A design that is loaded and is not compared yet.
pub struct CompareDraft<'a> {
    request: &'a CompareRequest,
    setting: Setting,
    design: Design,
}

/// The comparison of a design, or of each of its scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CompareAnswers {
    /// Of a design without scenarios, or of the scenario that was chosen.
    One(Box<CompareAnswer>),
    /// Of each scenario by itself, since alternatives of different scenarios promise different things.
    Scenarios(ComparedScenarios),
}

/// The comparisons of a design's scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedScenarios {
    /// Version of this schema.
    pub schema_version: u32,
    /// A comparison each, in the file's order.
    pub scenarios: Vec<ComparedScenario>,
}

/// The comparison of one scenario.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedScenario {
    /// The scenario's name.
    pub scenario: String,
    /// Its comparison.
    #[serde(flatten)]
    pub comparison: CompareAnswer,
}

/// What a comparison says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum CompareVerdict {
    /// A device with processors of its own is better than every plain NIC.
    Card,
    /// No such device is better than a plain NIC.
    PlainNic,
    /// Of devices of one sort, one is the best.
    Device,
    /// Of devices of one sort, none is better than the others.
    Tie,
    /// The draws do not tell.
    CannotTell,
    /// One device alone runs the design.
    OnlyOne,
}

/// Everything that a comparison says.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CompareAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design's name.
    pub design: String,
    /// Its file, as it was named.
    pub design_file: String,
    /// What was asked for beside the file and the devices, as options of a command line.
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
    /// What the draws, widened by past errors, say: `card` where the best device with processors of its own beats every plain
    /// NIC by a hundredth in 80% of them or more, `plain-nic` where that is so in 20% or less; where all are of one sort,
    /// `device` where one beats all others in 80%, `tie` where in 80% none beats it; `cannot-tell` otherwise, `only-one` where
    /// one alone has a plan.
    pub verdict: CompareVerdict,
    /// Why the devices do not stand under like conditions, where they do not: then the verdict is `cannot-tell`, whatever the
    /// draws say.
    pub unlike_because: Option<String>,
    /// Whether guesses decide the best device's rate or that of the reference: then only their order may be read.
    pub order_only: bool,
    /// The device that is the best at the numbers as they are.
    pub best: String,
    /// The device that the others are compared with: the best plain NIC, or the best of the others; null where one alone has
    /// a plan.
    pub reference: Option<String>,
    /// The best device with processors of its own, at the numbers as they are; null where all devices are of one sort.
    pub card: Option<String>,
    /// In which share of the draws that count, widened by past errors, it beats every plain NIC by a hundredth.
    pub card_best_in_share_of_draws: Option<f64>,
    /// The same without past errors.
    pub card_best_in_share_of_draws_without_past_errors: Option<f64>,
    /// What the verdict would be without past errors; `unlike_because` is not looked at.
    pub verdict_without_past_errors: CompareVerdict,
    /// What it would be by the draws of some mechanisms alone; null where the evidence leaves none open beside the base.
    pub by_mechanism: Option<MechanismVerdicts>,
    /// Draws of the joint sample: a number that devices have from one place is drawn once for all of them.
    pub draws: usize,
    /// In which share of them one of the devices has a plan that carries what is asked for: these count, since in the others
    /// none is the better.
    pub counted_share_of_draws: f64,
    /// Requests per second at which the host's time is compared: the load that is asked for, else what each of them carries.
    pub host_load_req_per_s: f64,
    /// The devices, in the order in which they were asked for.
    pub devices: Vec<ComparedDevice>,
    /// Numbers at an end of whose interval another device is the best, one number at a time.
    pub turning_points: Vec<TurnAnswer>,
    /// Numbers that make another verdict where all draws have them at an end of their interval, of those looked at.
    pub verdict_turning_points: Vec<VerdictTurn>,
    /// How many ends of intervals were looked at so: those that move what the verdict is of by most, and by a hundredth.
    pub ends_held: usize,
    /// Slots of hosts that bind best mixes and are slower than a link of a card itself.
    pub slower_slots: Vec<SlowerSlot>,
    /// Why energy is not compared.
    pub energy_not_compared_because: &'static str,
    /// What is to be said of the comparison.
    pub notes: Vec<String>,
}

/// A host's slot that binds, beside a faster link of a card: in a host of that card's generation they compare otherwise.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SlowerSlot {
    /// The slot's link, as settings name it.
    pub link: String,
    /// The host that has it.
    pub host: String,
    /// Its rate in each direction, before framing.
    pub rate_gbit_per_s: f64,
    /// The devices whose best mix it binds.
    pub binds: Vec<String>,
    /// The device whose own link is the fastest.
    pub card: String,
    /// That link.
    pub card_link: String,
    /// Its rate in each direction, before framing.
    pub card_rate_gbit_per_s: f64,
}

impl SlowerSlot {
    /// Every such slot of a comparison.
    fn all(comparison: &Comparison) -> Vec<SlowerSlot> {
        fn server(one: &Contender) -> &Machine {
            one.system.machine("server").expect("what is compared is the server's card")
        }
        // A device's links end at nodes of its own, the host's slot at the host.
        let links = |one: &'_ Contender, of_host: bool| -> Vec<(String, BitRate)> {
            let host = one.system.host().map(|host| host.name.as_str());
            let ends_there =
                |link: &Link| [&link.from, &link.to].map(|end| Some(end.as_str())).contains(&host);
            let own = server(one).links.iter().filter(|link| ends_there(link) == of_host);
            own.filter_map(|link| Some((link.name.clone(), link.pcie.as_ref()?.rate))).collect()
        };
        let own = comparison
            .contenders
            .iter()
            .flat_map(|one| links(one, false).into_iter().map(|(link, rate)| (one.name.clone(), link, rate)));
        // Of equal ones the first.
        let fastest = own.reduce(|best, one| if one.2 > best.2 { one } else { best });
        let Some((card, card_link, card_rate)) = fastest else { return Vec::new() };
        let mut all: Vec<SlowerSlot> = Vec::new();
        for one in &comparison.contenders {
            let Ok(own) = &one.outcome else { continue };
            let bounds = &own.checked.plan.optimal.bounds;
            for (link, rate) in links(one, true) {
                let is_of_link =
                    |name: &str| name.strip_prefix(&link).is_some_and(|rest| rest.starts_with('.'));
                if rate >= card_rate || !bounds.iter().any(|bound| is_of_link(&bound.name)) {
                    continue;
                }
                let host = server(one).host.clone();
                let rate_gbit_per_s = rate.as_gbit_per_s();
                let is_same = |known: &&mut SlowerSlot| {
                    (&known.link, &known.host, known.rate_gbit_per_s) == (&link, &host, rate_gbit_per_s)
                };
                match all.iter_mut().find(is_same) {
                    Some(known) => known.binds.push(one.name.clone()),
                    None => all.push(SlowerSlot {
                        link,
                        host,
                        rate_gbit_per_s,
                        binds: vec![one.name.clone()],
                        card: card.clone(),
                        card_link: card_link.clone(),
                        card_rate_gbit_per_s: card_rate.as_gbit_per_s(),
                    }),
                }
            }
        }
        all
    }

    /// It in a sentence.
    fn said(&self) -> String {
        let SlowerSlot { link, host, rate_gbit_per_s, binds, card, card_link, card_rate_gbit_per_s } = self;
        let (slot, own) = (short(*rate_gbit_per_s), short(*card_rate_gbit_per_s));
        format!(
            "the slot of the host {host} (`{link}`) carries {slot} Gbit/s and binds {}, where {card}'s own `{card_link}` carries {own} \
             Gbit/s: in a host whose slot does too they compare otherwise (`--set {link}.rate={own}Gbit/s`)",
            binds.join(" and ")
        )
    }
}

/// What a comparison would say by the draws of some mechanisms alone, without past errors.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MechanismVerdicts {
    /// The mechanisms that the evidence leaves open of any of the devices.
    pub open: Vec<String>,
    /// What the verdict would be by the draws of the base mechanisms.
    pub verdict_of_base_draws: CompareVerdict,
    /// The same by the draws of those that are open.
    pub verdict_of_variant_draws: CompareVerdict,
    /// In which share of the draws of the base mechanisms `card` beats every plain NIC by a hundredth.
    pub card_best_in_share_of_base_draws: Option<f64>,
    /// The same of the draws of those that are open.
    pub card_best_in_share_of_variant_draws: Option<f64>,
}

/// Why no energy stands beside the other figures.
const NO_ENERGY: &str = "no profile holds a published figure of a device's power";

/// A device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct ComparedDevice {
    /// As it was asked for.
    pub name: String,
    /// Its system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The host of its server.
    pub host: String,
    /// Whether it stands in another testbed than the design's, which it does not fit.
    pub other_testbed: bool,
    /// Whether it is a NIC without processors of its own that requests can reach.
    pub plain_nic: bool,
    /// Its figures; null where it has no plan.
    pub plan: Option<DeviceFigures>,
    /// Why it has no plan; null where it has one.
    pub refused: Option<String>,
    /// What was measured of its steps and is planned otherwise.
    #[serde(flatten)]
    pub measured_otherwise: MeasuredOtherwise,
    /// Alternatives of the design that it does not run.
    pub left_out: Vec<LeftOutAnswer>,
    /// Settings that speak of what it does not have.
    pub settings_left_out: Vec<String>,
}

/// The best mix of a device or a card.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BestMix {
    /// Its throughput, as a plan of it has it.
    #[serde(flatten)]
    pub throughput: Throughput,
    /// How well it is known: fitted, predicted, weak, your estimate, or order only.
    pub basis: &'static str,
    /// Share of the requests by alternative.
    pub shares: ByName<f64>,
    /// What was found of the choices that the design leaves open; not there where it leaves none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choices: Option<ChoicesAnswer>,
    /// What binds the mix.
    pub binds: Vec<String>,
    /// Mean latency of a request of it on idle stations.
    pub unloaded_latency_us: f64,
    /// Lower end of the latency's 80% interval.
    pub unloaded_latency_us_low_80: f64,
    /// Upper end of it.
    pub unloaded_latency_us_high_80: f64,
    /// How well the latency is known, by the same words.
    pub unloaded_latency_basis: &'static str,
}

/// The figures of a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DeviceFigures {
    /// Its best mix, as its own plan has it.
    #[serde(flatten)]
    pub mix: BestMix,
    /// Cores of the host that are busy at the load that is compared, in the mix that spares it most.
    pub host_cores: f64,
    /// Share of the requests by alternative in that mix, which is another than the best one where the goal is another.
    pub host_sparing_shares: ByName<f64>,
    /// Lower end of their 80% interval.
    pub host_cores_low_80: f64,
    /// Upper end of it: at most those that requests may use.
    pub host_cores_high_80: f64,
    /// In which share of the draws it carries the load at which the host's time is compared.
    pub host_load_carried_in_share_of_draws: f64,
    /// How well they are known, by the same words.
    pub host_cores_basis: &'static str,
    /// In which share of the draws it has a plan that carries what is asked for.
    pub carried_in_share_of_draws: f64,
    /// In which share of the draws that count, widened by past errors, it beats every other device by a hundredth.
    pub best_in_share_of_draws: f64,
    /// The same without past errors.
    pub best_in_share_of_draws_without_past_errors: f64,
    /// In which share of the draws that count, widened by past errors, no other device beats it by a hundredth.
    pub as_good_in_share_of_draws: f64,
    /// The same without past errors.
    pub as_good_in_share_of_draws_without_past_errors: f64,
    /// Whether the twin carries what is planned.
    pub confirmed: bool,
    /// Whether in-flight slots are held as long as was solved for; with other draws of the twin the rate is another one where
    /// they are not.
    pub settled: bool,
    /// It beside the reference; null of the reference itself.
    pub over_reference: Option<OverReference>,
}

/// A device beside the reference.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct OverReference {
    /// Its worth by the goal over the reference's: more is better of throughput, less of time. Null where the reference takes
    /// nothing of what the goal spares, so that no ratio says by how much.
    pub ratio: Option<f64>,
    /// Lower end of the ratio's 80% interval.
    pub ratio_low_80: Option<f64>,
    /// Upper end of it.
    pub ratio_high_80: Option<f64>,
    /// In which share of the draws that count, widened by past errors, it is better by a hundredth.
    pub better_in_share_of_draws: f64,
    /// The same without past errors.
    pub better_in_share_of_draws_without_past_errors: f64,
    /// Cores of the host that it frees at the load that is compared.
    pub freed_host_cores: f64,
    /// Lower end of their 80% interval.
    pub freed_host_cores_low_80: f64,
    /// Upper end of it.
    pub freed_host_cores_high_80: f64,
}

/// A number at an end of whose interval another device is the best.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TurnAnswer {
    /// The number; with its device in front where the first device does not have it.
    pub number: String,
    /// Its value as it is.
    pub value: String,
    /// Its value at the end.
    pub at: String,
    /// The device that is the best there; null where none carries what is asked for.
    pub best: Option<String>,
}

/// A number that makes another verdict where all draws have it at an end of its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct VerdictTurn {
    /// The number; with its device in front where the first device does not have it.
    pub number: String,
    /// Its value as it is.
    pub value: String,
    /// Its value at the end.
    pub at: String,
    /// The verdict there.
    pub verdict: CompareVerdict,
    /// In which share of the draws that count there, widened by past errors, `card` beats every plain NIC by a hundredth; null
    /// where all devices are of one sort.
    pub card_best_in_share_of_draws: Option<f64>,
}

/// Compares a design on several devices.
///
/// # Errors
/// Where the design or a profile is refused, and where no alternative runs on any of the devices.
pub fn compare(request: &CompareRequest) -> Result<CompareAnswers, Failure> {
    CompareDraft::new(request, Design::load(&request.design, &request.changes)?)?.answer()
}

impl<'a> CompareDraft<'a> {
    /// The request's design, as it is loaded with the request's changes.
    ///
    /// # Errors
    /// Where the library of profiles is refused, where fewer than two devices are named, and where one is named twice.
    pub fn new(request: &'a CompareRequest, design: Design) -> Result<CompareDraft<'a>, Failure> {
        if request.devices.len() < 2 {
            return Err(Failure::input(
                format!("{} is compared with nothing", request.devices.concat()),
                "name two devices or more, as in `--device card-a,card-b`; `offpath device list` lists them",
            ));
        }
        let twice = request.devices.iter().enumerate().find(|(at, one)| request.devices[..*at].contains(one));
        if let Some((_, twice)) = twice {
            return Err(Failure::input(format!("`{twice}` is named twice"), "name each device once"));
        }
        Ok(CompareDraft { setting: setting(&request.system)?, design, request })
    }

    /// Compares it: a design without scenarios once, else each scenario by itself.
    ///
    /// # Errors
    /// As [`compare`].
    pub fn answer(&self) -> Result<CompareAnswers, Failure> {
        let changes = &self.request.changes;
        if self.design.scenarios.is_empty() {
            return Ok(CompareAnswers::One(Box::new(self.one(changes).map_err(unplanned)?)));
        }
        let one = |name: &String| {
            let changes = Changes { scenario: Some(name.clone()), ..changes.clone() };
            let failed = |error: miette::Report| unplanned(error.wrap_err(format!("scenario `{name}`")));
            Ok(ComparedScenario { scenario: name.clone(), comparison: self.one(&changes).map_err(failed)? })
        };
        let scenarios = self.design.scenarios.iter().map(one).collect::<Result<_, Failure>>()?;
        Ok(CompareAnswers::Scenarios(ComparedScenarios { schema_version: SCHEMA_VERSION, scenarios }))
    }

    fn one(&self, changes: &Changes) -> Result<CompareAnswer, miette::Report> {
        let CompareRequest { devices, system, seed, .. } = self.request;
        let design = self.design.changed(changes)?;
        let (setting, seed) = (&self.setting, Seed::new(*seed));
        let entrants: Vec<Entrant> = devices.iter().map(|device| Entrant::device(device)).collect();
        let ask =
            CompareAsk { design: &design, changes, setting, entrants: &entrants, beside_first: false, seed };
        let comparison = Comparison::of(&ask)?;
        let options = command::options(&self.request.changes, system, self.request.seed);
        Ok(CompareAnswer::of(&comparison, options))
    }
}

impl CompareAnswers {
    /// The comparisons.
    pub fn all(&self) -> impl Iterator<Item = &CompareAnswer> {
        let (one, more) = match self {
            CompareAnswers::One(one) => (Some(one.as_ref()), &[][..]),
            CompareAnswers::Scenarios(all) => (None, &all.scenarios[..]),
        };
        one.into_iter().chain(more.iter().map(|one| &one.comparison))
    }

    /// Every comparison as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        match self {
            CompareAnswers::One(one) => one.text(screen),
            CompareAnswers::Scenarios(all) => {
                let text = |one: &ComparedScenario| {
                    screen.heading(&format!("Scenario: {}", one.scenario)) + &one.comparison.text(screen)
                };
                all.scenarios.iter().map(text).collect::<Vec<String>>().join("\n")
            }
        }
    }
}

impl CompareAnswer {
    /// The comparison as a page with charts.
    pub fn page(&self) -> Page {
        html::page(self)
    }

    /// The device of a name, with its figures.
    fn figures(&self, name: &str) -> Option<&DeviceFigures> {
        self.devices.iter().find(|one| one.name == name)?.plan.as_ref()
    }

    fn of(comparison: &Comparison, options: Vec<String>) -> CompareAnswer {
        let design = &comparison.design;
        let unit = Unit::of(design);
        let name = |at: usize| comparison.contenders[at].name.clone();
        let planned = |at: usize| comparison.contenders[at].outcome.as_ref().ok();
        let best =
            comparison.best.unwrap_or_else(|| unreachable!("what has no plan on any device is refused"));
        let is_order = |at: usize| {
            planned(at).is_some_and(|own| own.checked.plan.recommendation.basis == Basis::OrderOnly)
        };
        let runs = comparison.contenders.iter().filter(|one| one.outcome.is_ok()).count();
        let verdict = |said: &DrawsSay| match said.card_best_in {
            _ if runs < 2 => CompareVerdict::OnlyOne,
            Some(card) if card >= TOLD => CompareVerdict::Card,
            Some(card) if card <= 1.0 - TOLD => CompareVerdict::PlainNic,
            None if said.best_in >= TOLD => CompareVerdict::Device,
            None if said.as_good_in >= TOLD => CompareVerdict::Tie,
            _ => CompareVerdict::CannotTell,
        };
        let told = verdict(&comparison.said);
        let verdict_turns = comparison.held.iter().filter(|one| {
            // Under unlike conditions no number makes an answer.
            comparison.unlike.is_none() && verdict(&one.said) != told
        });
        let verdict_turns = verdict_turns.map(|one| VerdictTurn {
            number: one.number.clone(),
            value: one.value.to_string(),
            at: one.at.to_string(),
            verdict: verdict(&one.said),
            card_best_in_share_of_draws: one.said.card_best_in,
        });
        let slower_slots = SlowerSlot::all(comparison);
        CompareAnswer {
            schema_version: SCHEMA_VERSION,
            design: design.name.clone(),
            design_file: design.source.0.clone(),
            options,
            workload: design.workload.clone(),
            goal: Goal::of(design.objective),
            load_req_per_s: design.objective.load(),
            unit: unit.name(),
            unit_payload_bytes: unit.payload_bytes,
            verdict_turning_points: verdict_turns.collect(),
            ends_held: comparison.held.len(),
            verdict: match (told, &comparison.unlike) {
                (told, Some(_)) if told != CompareVerdict::OnlyOne => CompareVerdict::CannotTell,
                (told, _) => told,
            },
            verdict_without_past_errors: verdict(&comparison.said_without_errors),
            by_mechanism: comparison.said_by_mechanism.as_ref().map(|[base, variant]| MechanismVerdicts {
                open: comparison.open.clone(),
                verdict_of_base_draws: verdict(base),
                verdict_of_variant_draws: verdict(variant),
                card_best_in_share_of_base_draws: base.card_best_in,
                card_best_in_share_of_variant_draws: variant.card_best_in,
            }),
            unlike_because: comparison.unlike.clone(),
            order_only: is_order(best) || comparison.reference.is_some_and(is_order),
            best: name(best),
            reference: comparison.reference.map(name),
            card: comparison.card.map(name),
            card_best_in_share_of_draws: comparison.said.card_best_in,
            card_best_in_share_of_draws_without_past_errors: comparison.said_without_errors.card_best_in,
            draws: offpath_plan::sample::DRAWS,
            counted_share_of_draws: comparison.counted_in,
            host_load_req_per_s: comparison.host_load,
            devices: comparison.contenders.iter().map(|one| ComparedDevice::of(one, unit)).collect(),
            turning_points: comparison
                .turns
                .iter()
                .map(|turn| TurnAnswer {
                    number: turn.number.clone(),
                    value: turn.value.to_string(),
                    at: turn.at.to_string(),
                    best: turn.device.map(name),
                })
                .collect(),
            energy_not_compared_because: NO_ENERGY,
            notes: design
                .warnings
                .iter()
                .cloned()
                .chain(comparison.contenders.iter().flat_map(cautions))
                .chain(comparison.notes.iter().cloned())
                .chain(slower_slots.iter().map(SlowerSlot::said))
                .collect(),
            slower_slots,
        }
    }
}

/// What a device's own plan warns of.
pub(crate) fn cautions(one: &Contender) -> Vec<String> {
    let Ok(own) = &one.outcome else { return Vec::new() };
    let plan = &own.checked.plan;
    // As `plan` says it: where it is a tenth of the latency or more.
    let lists =
        list_fill_s(&own.design, plan).filter(|fill| *fill >= own.latency_s.value / 10.0).map(|fill| {
            format!(
                "LATENCIES LACK {} us OR MORE, which a list takes to fill at this load",
                short(fill * 1e6)
            )
        });
    let all = without_evidence(&own.without_evidence, plan).into_iter().chain(lists);
    all.map(|said| format!("{}: {said}", one.name)).collect()
}

impl ComparedDevice {
    fn of(one: &Contender, unit: Unit) -> ComparedDevice {
        ComparedDevice {
            name: one.name.clone(),
            system: SystemAnswer::of(&one.system),
            host: one.system.machine("server").map(|server| server.host.clone()).unwrap_or_default(),
            other_testbed: one.other_testbed,
            plain_nic: one.is_plain(),
            plan: one.outcome.as_ref().ok().map(|own| DeviceFigures::of(own, unit)),
            refused: one.outcome.as_ref().err().cloned(),
            measured_otherwise: one.outcome.as_ref().map_or_else(
                |_| MeasuredOtherwise::default(),
                |own| {
                    MeasuredOtherwise::of(&Beside {
                        design: &own.design,
                        system: &one.system,
                        is_other_system: own.is_other_system,
                        plan: &own.checked.plan,
                        clients: &[],
                        unit,
                    })
                },
            ),
            left_out: LeftOutAnswer::all(&one.left_out),
            settings_left_out: one.settings_left_out.clone(),
        }
    }
}

impl BestMix {
    pub(crate) fn of(own: &Contest, unit: Unit) -> BestMix {
        let plan = &own.checked.plan;
        let us = |seconds: f64| seconds * 1e6;
        let bounds = plan.optimal.bounds.iter().filter(|bound| !bound.is_load);
        BestMix {
            throughput: Throughput::ranged(unit, &plan.optimal.rate),
            basis: plan.recommendation.basis.name(),
            shares: plan.optimal.shares.iter().cloned().collect(),
            choices: own.search.as_ref().map(|search| ChoicesAnswer::of(search, &own.margins)),
            binds: bounds.map(|bound| bound.name.clone()).collect(),
            unloaded_latency_us: us(own.latency_s.value),
            unloaded_latency_us_low_80: us(own.latency_s.range_80.0),
            unloaded_latency_us_high_80: us(own.latency_s.range_80.1),
            unloaded_latency_basis: own.latency_basis.name(),
        }
    }
}

impl DeviceFigures {
    fn of(own: &Contest, unit: Unit) -> DeviceFigures {
        DeviceFigures {
            mix: BestMix::of(own, unit),
            host_cores: own.host_cores.value,
            host_sparing_shares: own.sparing.iter().cloned().collect(),
            host_cores_low_80: own.host_cores.range_80.0,
            host_cores_high_80: own.host_cores.range_80.1,
            host_load_carried_in_share_of_draws: own.host_load_carried_in,
            host_cores_basis: own.host_basis.name(),
            carried_in_share_of_draws: own.carried_in,
            best_in_share_of_draws: own.best_in,
            best_in_share_of_draws_without_past_errors: own.without_errors.0,
            as_good_in_share_of_draws: own.as_good_in,
            as_good_in_share_of_draws_without_past_errors: own.without_errors.1,
            confirmed: own.checked.settled.gap.is_none() && own.checked.settled.has_settled(),
            settled: own.checked.settled.has_settled(),
            over_reference: own.over.as_ref().map(OverReference::of),
        }
    }
}

impl OverReference {
    fn of(over: &DeviceRatio) -> OverReference {
        let DeviceRatio { ratio, better_in, better_without_errors_in, freed_cores, .. } = over;
        let Ranged { value, range_80: (low, high), .. } = freed_cores;
        OverReference {
            ratio: ratio.map(|ratio| ratio.value),
            ratio_low_80: ratio.map(|ratio| ratio.range_80.0),
            ratio_high_80: ratio.map(|ratio| ratio.range_80.1),
            better_in_share_of_draws: *better_in,
            better_in_share_of_draws_without_past_errors: *better_without_errors_in,
            freed_host_cores: *value,
            freed_host_cores_low_80: *low,
            freed_host_cores_high_80: *high,
        }
    }
}
