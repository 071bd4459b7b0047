//! One design on several devices: what each gives at its own best mix, and in which of the draws of the numbers that they
//! share each is the best. The same of one device as it is and with changes of it, each of which is an entrant too.
//!
//! Every entrant's figures are those of its own plan. A second joint sample, over the numbers of all at once, tells
//! them apart: a number that two of them have from one place is drawn once for both, and so is what the design says. What
//! an overlay makes a multiple of a number is drawn with that number.

use crate::check::{self, CheckedPlan, Chosen, Settled, plan_and_check};
use crate::choices::{self, Margin, Search, margins, search};
use crate::confidence::{Mechanism, Ranged, Rate};
use crate::design::{Changes, Design, Objective, set_number};
use crate::factor::{Base, Factor, factors_of};
use crate::planner::{PlanError, Ready, Setting, prepare_any, prepare_named};
use crate::residual::{FigureKind, Lesson, Reach, Widened};
use crate::rests::{Basis, MovedFigures, least_on};
use crate::sample::{DRAWS, Drawn, JointSample, MechanismSample, strata};
use crate::side_by_side::side_by_side;
use crate::solve::{self, Part, WORTH_BUILDING, evaluate, host_seconds, mean_of};
use crate::study::without_evidence;
use offpath_profile::{System, SystemRequest};
use offpath_quantity::Quantity;
use offpath_route::{Path, Router, Verb};
use offpath_twin::Seed;
use std::collections::{BTreeMap, BTreeSet};

/// What is compared.
#[derive(Clone, Copy)]
pub struct CompareAsk<'a> {
    /// The design, whatever was changed in it when it was read.
    pub design: &'a Design,
    /// What is changed in it, beside the device.
    pub changes: &'a Changes,
    /// What is changed in the systems.
    pub setting: &'a Setting,
    /// What is compared.
    pub entrants: &'a [Entrant],
    /// Whether the others are compared with the first of them, a device as it is beside changes of it. Of deployments that
    /// are as good to a hundredth they then take that of the first.
    pub beside_first: bool,
    /// The seed of every draw.
    pub seed: Seed,
}

/// One of what is compared: a device, with what is changed in it alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrant {
    /// What it is called.
    pub name: String,
    /// The device, by name or file.
    pub device: String,
    /// Overlays that it has beside those of all entrants.
    pub overlays: Vec<String>,
    /// Settings that it has beside those of all.
    pub settings: Vec<String>,
    /// By choice of the whole deployment, the value that is taken where no other is better by a hundredth; of the others the
    /// first listed is.
    pub prefers: BTreeMap<String, String>,
}

impl Entrant {
    /// A device as it is.
    pub fn device(device: &str) -> Entrant {
        Entrant {
            name: device.to_string(),
            device: device.to_string(),
            overlays: Vec::new(),
            settings: Vec::new(),
            prefers: BTreeMap::new(),
        }
    }
}

/// A design on several devices.
pub struct Comparison {
    /// The design as it was read.
    pub design: Design,
    /// The devices, in the order in which they were asked for.
    pub contenders: Vec<Contender>,
    /// Which of them the others are compared with: the best one without processors of its own; where there is none, or
    /// nothing else, the best of the others.
    pub reference: Option<usize>,
    /// The best one at the numbers as they are.
    pub best: Option<usize>,
    /// The best device that has processors of its own, at the numbers as they are; none where the devices are all of one
    /// sort.
    pub card: Option<usize>,
    /// What the draws that count say, widened by past errors.
    pub said: DrawsSay,
    /// What the same draws say without these.
    pub said_without_errors: DrawsSay,
    /// What those of them say without these that are of the base mechanism, and those of others; none where none is open.
    pub said_by_mechanism: Option<[DrawsSay; 2]>,
    /// The mechanisms that the evidence leaves open of any of the devices.
    pub open: Vec<String>,
    /// In which share of the draws one of the devices has a plan: which is the best is told of these alone.
    pub counted_in: f64,
    /// Requests per second at which the host's time is compared: the load that was asked for, else what each of them
    /// carries.
    pub host_load: f64,
    /// Numbers at an end of whose interval another device is the best.
    pub turns: Vec<Turn>,
    /// What the draws say with one number held at an end of its interval: of those that move the difference most.
    pub held: Vec<HeldAt>,
    /// Why the devices do not stand under like conditions, where they do not: then no answer is one about the devices.
    pub unlike: Option<String>,
    /// What is to be said of the comparison.
    pub notes: Vec<String>,
}

/// What some draws say of which device is the better one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawsSay {
    /// In which share of them the best card beats every plain NIC by a hundredth; none where the devices are of one sort.
    pub card_best_in: Option<f64>,
    /// In which share the device that is the best at the numbers as they are beats every other by a hundredth.
    pub best_in: f64,
    /// In which share none beats it by that.
    pub as_good_in: f64,
}

/// What the draws say with one number held at an end of its interval and all others drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct HeldAt {
    /// The number, as [`Turn`] has it.
    pub number: String,
    /// Its value there.
    pub at: Quantity,
    /// Its value as it is.
    pub value: Quantity,
    /// What the draws that count say there, widened by past errors.
    pub said: DrawsSay,
}

/// A device with its plan.
pub struct Contender {
    /// As it was asked for.
    pub name: String,
    /// Its system.
    pub system: System,
    /// The testbed that it stands in, where that is not the design's.
    pub other_testbed: bool,
    /// The design's alternatives that it cannot run, each with the reason.
    pub left_out: Vec<(String, String)>,
    /// Settings that speak of what it does not have.
    pub settings_left_out: Vec<String>,
    /// Its figures, or why there are none.
    pub outcome: Result<Contest, String>,
}

impl Contender {
    /// Whether it is a NIC without processors that requests can reach.
    pub fn is_plain(&self) -> bool {
        self.system.mode == "nic"
    }

    /// Its figures, of one of those that have a plan.
    fn planned(&self) -> &Contest {
        match &self.outcome {
            Ok(contest) => contest,
            Err(_) => unreachable!("those that are compared have a plan"),
        }
    }
}

/// The figures of a device.
pub struct Contest {
    /// The design as the device runs it.
    pub design: Design,
    /// Its plan.
    pub checked: CheckedPlan,
    /// Whether its system is another one than the rows about the design measured ([`Setting::is_other_system`]).
    pub is_other_system: bool,
    /// The steps that nothing published is about, each with its alternative.
    pub without_evidence: Vec<(String, Verb, Path)>,
    /// What was found of the choices that the design leaves open.
    pub search: Option<Search>,
    /// The choices of its requests, with what comes next.
    pub margins: Vec<Margin>,
    /// Mean unloaded latency of its best mix, in seconds.
    pub latency_s: Ranged,
    /// How well that is known.
    pub latency_basis: Basis,
    /// Cores of the host that are busy at the load that is compared, in the mix of [`Contest::sparing`]: at most
    /// those that requests may use.
    pub host_cores: Ranged,
    /// In which share of the draws it carries the load at which the host's time is compared.
    pub host_load_carried_in: f64,
    /// The mix that spares the host most at that load, with its shares: by another goal not the best one.
    pub sparing: Vec<(String, f64)>,
    /// How well that is known.
    pub host_basis: Basis,
    /// In which share of the draws it has a plan that carries the load that is asked for.
    pub carried_in: f64,
    /// In which share of the draws that count, widened by past errors, it beats every other by a hundredth.
    pub best_in: f64,
    /// In which share of them no other beats it by a hundredth.
    pub as_good_in: f64,
    /// The same of both without past errors.
    pub without_errors: (f64, f64),
    /// Its worth over that of the reference; none of the reference itself.
    pub over: Option<DeviceRatio>,
    /// For which cards the errors speak that its worth is widened by.
    pub(crate) lesson: Lesson,
    /// The same of the host's time.
    of_host: Lesson,
}

impl Contest {
    /// By which factor errors may move the rate of its best mix.
    fn reach(&self) -> Reach {
        let sure = &self.checked.plan.recommendation;
        Reach::of(sure.is_widened.then_some((sure.lesson, FigureKind::Throughput)))
    }
}

/// A device beside the reference.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DeviceRatio {
    /// Its worth by the design's goal over the reference's; none where the reference takes nothing of what the goal spares,
    /// so that no ratio says by how much.
    pub ratio: Option<Ranged>,
    /// In which share of the draws that count, widened by past errors, it is better by a hundredth.
    pub better_in: f64,
    /// The same without past errors.
    pub better_without_errors_in: f64,
    /// Cores of the host that it frees.
    pub freed_cores: Ranged,
    /// Both over the draws alone, without what past predictions of ratios were wrong by.
    pub drawn: DrawnRatio,
}

/// An entrant beside the reference in the draws alone: what both share cancels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrawnRatio {
    /// Its worth over the reference's, where both have one.
    pub worth: Option<Ranged>,
    /// Its mean unloaded latency over the reference's.
    pub latency: Option<Ranged>,
    /// In which share of the draws that count it is better by a hundredth.
    pub better_in: f64,
    /// In which share of them the reference is.
    pub worse_in: f64,
    /// Whether worth, latency and the host's time are the very same at the numbers as they are and in each draw.
    pub is_same: bool,
}

/// A number at an end of whose interval another device is the best.
#[derive(Clone, Debug, PartialEq)]
pub struct Turn {
    /// The number; with the device in front where not the first one has it.
    pub number: String,
    /// Its value there.
    pub at: Quantity,
    /// Its value as it is.
    pub value: Quantity,
    /// The device that is the best there; none where no device carries the load that is asked for.
    pub device: Option<usize>,
}

/// What one draw gives of one device. Where it does not carry the load that is asked for its worth is not a number, and the
/// host's time is that of what it carries, for as much of it as the load.
#[derive(Clone, Copy, Debug)]
struct Figures {
    worth: f64,
    /// Where throughput is sought, what ports and links alone would carry of the same mix.
    most: f64,
    latency_s: f64,
    host_cores: f64,
    /// Whether it carries the load at which the host's time is compared.
    carries_host_load: bool,
}

impl Figures {
    /// Its worth, where it has one.
    fn carried(&self) -> Option<f64> {
        self.worth.is_finite().then_some(self.worth)
    }
}

/// A device that is ready to be drawn.
struct Runner {
    /// Its place among the contenders.
    at: usize,
    search: Option<Search>,
    design: Design,
    ready: Vec<Ready>,
    settled: Settled,
    open: Vec<Mechanism>,
    is_other_system: bool,
}

/// The numbers of all entrants, and by which of them each one's own goes.
struct Shared<'a> {
    factors: Vec<Factor>,
    systems: Vec<&'a System>,
}

impl Shared<'_> {
    /// The factor of a device, by the number's first name there; an estimate of the design goes by its own name.
    fn of(&self, device: usize, own: &Factor) -> Option<&Factor> {
        let first = own.names(0).first();
        match first {
            None => self.factors.iter().find(|one| one.is_estimate() && one.id == own.id),
            Some(first) => self.factors.iter().find(|one| one.names(device).contains(first)),
        }
    }

    /// By which name a device's number is drawn: a multiple of a number by that one's, so that it is the multiple in every
    /// draw.
    fn drawn_as(&self, device: usize, own: &Factor) -> String {
        let shared = self.multiplied(device, own).or_else(|| self.of(device, own));
        shared.map_or_else(|| format!("{device}:{}", own.id), |shared| shared.id.clone())
    }

    /// The factor of the number that a number of an entrant is a multiple of: its own, or where it is the multiple that
    /// stands under that name, the one of the device as another entrant has it.
    fn multiplied(&self, entrant: usize, own: &Factor) -> Option<&Factor> {
        let number = |at: usize, name: &str| self.systems[at].numbers.get(name);
        let of = number(entrant, own.names(0).first()?)?.multiple_of.as_ref()?;
        let is_alike = |at: &usize| self.systems[*at].device == self.systems[entrant].device;
        let places = std::iter::once(entrant).chain((0..self.systems.len()).filter(is_alike));
        let mut plain = places.filter(|at| number(*at, of).is_some_and(|of| of.multiple_of.is_none()));
        let at = plain.next()?;
        self.factors.iter().find(|factor| factor.names(at).contains(of))
    }
}

impl Comparison {
    /// Plans a design on each device, and draws the numbers of all at once.
    ///
    /// # Errors
    /// Where the design or a profile is refused, where fewer than two devices are named or one is twice, and where no
    /// alternative runs on any of them.
    pub fn of(ask: &CompareAsk<'_>) -> Result<Comparison, miette::Report> {
        let mut contenders = Vec::new();
        let mut prepared = Vec::new();
        let mut prefers = BTreeMap::new();
        for entrant in ask.entrants {
            // A change that frees cores would else be told by a deployment with fewer of them.
            let mut entrant = entrant.clone();
            entrant.prefers.extend(prefers.clone());
            let (contender, own) = on_device(ask, &entrant)?;
            if let (true, Some(search)) = (ask.beside_first && contenders.is_empty(), deployed(&own)) {
                prefers = search;
            }
            contenders.push(contender);
            prepared.push(own);
        }
        refuse_unused_settings(ask, &contenders)?;
        let mut runners = run(ask, &mut contenders, &prepared)?;
        if runners.is_empty() {
            let said: Vec<String> = contenders
                .iter()
                .map(|one| format!("{}: {}", one.name, one.outcome.as_ref().err().map_or("", String::as_str)))
                .collect();
            return Err(miette::miette!(
                help = "ask for less where a load is not carried, and compare devices that run at least one of its alternatives",
                "`{}` has no plan on any of the devices: {}",
                ask.design.name,
                said.join("; ")
            ));
        }
        let checked = side_by_side(runners.len(), |index| {
            let Runner { design, ready, settled, open, .. } = &runners[index];
            plan_and_check(design, ready, settled.clone(), open, ask.seed)
        });
        let checked: Vec<CheckedPlan> = checked.into_iter().collect::<Result<_, _>>()?;
        let objective = runners[0].design.objective;
        let host_load = objective.load().unwrap_or_else(|| {
            checked.iter().map(|one| one.plan.optimal.rate.value).fold(f64::INFINITY, f64::min)
        });
        let joint = Joint::of(ask, &runners, host_load)?;
        for ((index, runner), checked) in runners.drain(..).enumerate().zip(checked) {
            let at = runner.at;
            contenders[at].outcome = Ok(joint.contest(index, runner, checked));
        }
        Ok(joint.compared(ask, contenders, host_load))
    }
}

/// Ends of intervals at which a number is held in all draws: those that move the difference most.
const MOST_HELD: usize = 6;
/// Cores of the host that nobody would see freed.
const SEEN_CORES: f64 = 0.005;

/// The values that an entrant takes of choices of the whole deployment.
fn deployed(own: &Option<OnDevice>) -> Option<BTreeMap<String, String>> {
    let taken = own.as_ref()?.search.as_ref()?.for_all.iter();
    Some(taken.filter_map(|one| Some((one.choice.clone(), one.taken.first()?.clone()))).collect())
}

/// What a device has that settings may speak of.
struct Has {
    components: BTreeSet<String>,
    is_plain: bool,
}

impl Has {
    /// Whether a setting speaks of it.
    fn is_of(&self, setting: &str) -> bool {
        let name = set_number(setting);
        let component = name.rsplit_once('.').map_or(name, |(component, _)| component);
        name.contains('*') || self.components.contains(component)
    }
}

/// The setting as one device takes it, and what the device has.
fn setting_of(
    ask: &CompareAsk<'_>,
    entrant: &Entrant,
    testbed: Option<&str>,
) -> Result<(Setting, Has), miette::Report> {
    let (library, device) = (&ask.setting.library, entrant.device.as_str());
    let bare = library.load(&SystemRequest { device, testbed, ..SystemRequest::default() })?;
    let components = bare.numbers.keys().filter_map(|name| Some(name.rsplit_once('.')?.0.to_string()));
    let is_plain = bare.mode == "nic" && bare.machine("server").is_ok_and(|server| server.absent.is_empty());
    let has = Has { components: components.collect(), is_plain };
    let mut setting = ask.setting.clone();
    setting.testbed = testbed.map(str::to_string);
    if is_plain {
        setting.mode = None;
    }
    setting.settings.retain(|set| has.is_of(set));
    let mut overlays = Vec::new();
    for overlay in setting.overlays {
        if library.concerns(&overlay, &ask.design.device, device)? {
            overlays.push(overlay);
        }
    }
    // What is changed in it alone is for it to refuse.
    setting.overlays = [overlays, entrant.overlays.clone()].concat();
    setting.settings.extend(entrant.settings.iter().cloned());
    Ok((setting, has))
}

/// A design as a device runs it: in its testbed, in a mode and with settings that it has.
fn as_run(mut design: Design, testbed: Option<&str>, has: &Has) -> Design {
    design.testbed = testbed.map(str::to_string);
    if has.is_plain {
        design.mode = None;
    }
    let kept = design.set.drain(..).zip(design.set_at.drain(..)).filter(|(set, _)| has.is_of(set));
    let (set, set_at) = kept.unzip();
    (design.set, design.set_at) = (set, set_at);
    let device = design.device.clone();
    design.alternatives.iter_mut().for_each(|one| one.comes_home(&device));
    design
}

/// A design that a device runs some alternatives of.
pub struct OnDevice {
    /// The design with these alternatives alone.
    pub design: Design,
    /// What was found of the choices that it leaves open.
    pub search: Option<Search>,
    /// The systems that it runs on.
    pub setting: Setting,
    /// Its alternatives, compiled.
    pub ready: Vec<Ready>,
}

/// What of a design a device runs: in the design's testbed, or in its own where the design names none or none of its
/// alternatives runs there.
///
/// # Errors
/// Where the design or a profile is refused.
pub fn on_device(
    ask: &CompareAsk<'_>,
    entrant: &Entrant,
) -> Result<(Contender, Option<OnDevice>), miette::Report> {
    let mut first = None;
    for (index, testbed) in testbeds(ask)?.iter().map(Option::as_deref).enumerate() {
        let tried = contender_in(ask, entrant, testbed);
        match tried {
            Ok((mut contender, own)) => {
                contender.other_testbed = index > 0;
                if own.is_some() {
                    return Ok((contender, own));
                }
                first.get_or_insert(Ok((contender, None)));
            }
            Err(error) => {
                first.get_or_insert(Err(error));
            }
        }
    }
    first.unwrap_or_else(|| unreachable!("one testbed was tried at least"))
}

/// The testbeds that an entrant may stand in, none for its own: where nothing is named all stand where the design's own
/// device does.
fn testbeds(ask: &CompareAsk<'_>) -> Result<Vec<Option<String>>, miette::Report> {
    if let Some(asked) = &ask.setting.testbed {
        return Ok(vec![Some(asked.clone())]);
    }
    let own = match (&ask.design.testbed, ask.setting.library.brings_testbed(&ask.design.device)?) {
        (Some(named), _) => named.clone(),
        (None, true) => ask.design.device.clone(),
        (None, false) => {
            let request = SystemRequest { device: &ask.design.device, ..SystemRequest::default() };
            ask.setting.library.load(&request)?.testbed
        }
    };
    Ok(vec![Some(own), None])
}

/// The system of an entrant, in the first testbed that it fits.
///
/// # Errors
/// Where the design or a profile is refused, and where what is changed in the entrant speaks of what it does not have.
pub(crate) fn system_of(ask: &CompareAsk<'_>, entrant: &Entrant) -> Result<System, miette::Report> {
    let in_testbed = |testbed: Option<&str>| {
        let changes = Changes { device: Some(entrant.device.clone()), ..ask.changes.clone() };
        let (setting, has) = setting_of(ask, entrant, testbed)?;
        setting.system(&as_run(ask.design.changed(&changes)?, testbed, &has), &entrant.device)
    };
    let mut tried = testbeds(ask)?.into_iter().map(|testbed| in_testbed(testbed.as_deref()));
    let first = tried.next().unwrap_or_else(|| unreachable!("one testbed was tried at least"));
    first.or_else(|error| tried.find_map(Result::ok).ok_or(error))
}

fn contender_in(
    ask: &CompareAsk<'_>,
    entrant: &Entrant,
    testbed: Option<&str>,
) -> Result<(Contender, Option<OnDevice>), miette::Report> {
    let device = entrant.device.as_str();
    let changes = Changes { device: Some(device.to_string()), ..ask.changes.clone() };
    let design = ask.design.changed(&changes)?;
    let (setting, has) = setting_of(ask, entrant, testbed)?;
    let settings_left_out =
        design.set.iter().chain(&ask.setting.settings).filter(|set| !has.is_of(set)).cloned().collect();
    let as_run = |design: Design| as_run(design, testbed, &has);
    let design = as_run(design);
    let deployed = |of| {
        let mut own = changes.clone();
        own.parameters.extend(of);
        Ok::<_, miette::Report>(as_run(ask.design.changed(&own)?))
    };
    // A value of a choice that makes no system is left out where another makes one.
    let system = setting.system(&design, device).or_else(|error| {
        let mut others = choices::systems(&design)?.into_iter();
        others.find_map(|of| setting.system(&deployed(of).ok()?, device).ok()).ok_or(error)
    })?;
    let mut left_out = design.impossible.clone();
    let mut kept = BTreeSet::new();
    for one in &design.alternatives {
        if let Some(own) = &one.device {
            let reason = format!("it runs on {own} alone");
            left_out.push((one.name.clone(), reason));
            continue;
        }
        // With one value of what its settings go by it may run where with another it does not.
        let mut why = None;
        for of in choices::systems(&design)? {
            let alone = deployed(of)?.with_only(&[one.name.clone()].into());
            match prepare_any(&alone, &setting) {
                Ok(_) => {
                    kept.insert(one.name.clone());
                    break;
                }
                Err(error) => drop(why.get_or_insert(error.to_string())),
            }
        }
        if let Some(why) = why.filter(|_| !kept.contains(&one.name)) {
            left_out.push((one.name.clone(), why));
        }
    }
    let mut contender = Contender {
        name: entrant.name.clone(),
        system,
        other_testbed: false,
        left_out,
        settings_left_out,
        outcome: Err(String::new()),
    };
    if !design.alternatives.iter().any(|one| kept.contains(&one.name) && one.mixable()) {
        let why = contender.left_out.iter().map(|(name, reason)| format!("`{name}`: {reason}"));
        let why = why.collect::<Vec<_>>().join("; ");
        contender.outcome = Err(format!("no alternative of the design runs on it: {why}"));
        return Ok((contender, None));
    }
    let mut design = design.with_only(&kept);
    for choice in design.choices.iter_mut().filter(|choice| choice.of.is_none()) {
        let preferred = entrant.prefers.get(&choice.name);
        // What is listed first is taken of what is as good.
        choice.values.sort_by_key(|value| Some(value) != preferred);
    }
    let search = match search(&design, &changes, &setting, &as_run) {
        Ok(search) => search,
        // A load that this device does not carry is an answer.
        Err(error) if error.is::<PlanError>() => {
            contender.outcome = Err(error.to_string());
            return Ok((contender, None));
        }
        Err(error) => return Err(error),
    };
    if let Some(search) = &search {
        design = as_run(ask.design.changed(&search.changes)?);
    }
    match prepare_named(&design, &setting) {
        Ok(ready) => Ok((contender, Some(OnDevice { design, setting, ready, search }))),
        Err(error) => {
            contender.outcome = Err(error.to_string());
            Ok((contender, None))
        }
    }
}

/// Refuses a setting that no device has the number of: it would pass for one that was met.
fn refuse_unused_settings(ask: &CompareAsk<'_>, contenders: &[Contender]) -> Result<(), miette::Report> {
    let unused = ask
        .setting
        .settings
        .iter()
        .find(|set| contenders.iter().all(|one| one.settings_left_out.contains(set)));
    match unused {
        None => Ok(()),
        Some(unused) => {
            let devices: Vec<&str> = ask.entrants.iter().map(|one| one.device.as_str()).collect();
            Err(miette::miette!(
                help = "name a number of one of them, as `offpath device show` lists them",
                "`--set {unused}` speaks of what none of {} has",
                devices.join(", ")
            ))
        }
    }
}

/// Settles each device's design on the base mechanism and on those that the evidence leaves open. A load that a device
/// does not carry is an answer.
fn run(
    ask: &CompareAsk<'_>,
    contenders: &mut [Contender],
    prepared: &[Option<OnDevice>],
) -> Result<Vec<Runner>, miette::Report> {
    let mut jobs: Vec<(usize, &Design, Vec<Ready>, Option<String>)> = Vec::new();
    let open = |at: usize, own: &OnDevice| {
        let variants = contenders[at].system.variants.iter();
        let open = variants.filter(|(name, _)| !own.setting.overlays.contains(name));
        open.map(|(name, _)| name.clone()).collect::<Vec<String>>()
    };
    for (at, own) in prepared.iter().enumerate().filter_map(|(at, own)| Some((at, own.as_ref()?))) {
        jobs.push((at, &own.design, own.ready.clone(), None));
        for name in open(at, own) {
            let setting = Setting { mechanism: Some(name.clone()), ..own.setting.clone() };
            // What is refused under a mechanism has no plan there, and no draws.
            if let Ok(ready) = prepare_named(&own.design, &setting) {
                jobs.push((at, &own.design, ready, Some(name)));
            }
        }
    }
    let settled = side_by_side(jobs.len(), |index| {
        let (_, design, ready, mechanism) = &jobs[index];
        let chosen = if mechanism.is_none() { Chosen::Best } else { Chosen::Added };
        let mut settled = check::settle(design, ready, chosen, ask.seed)?;
        check::settle_alone(design, ready, &mut settled, ask.seed)?;
        Ok::<_, miette::Report>(settled)
    });
    let mut runners: Vec<Runner> = Vec::new();
    for ((at, design, ready, mechanism), settled) in jobs.into_iter().zip(settled) {
        match (mechanism, settled) {
            (None, Ok(settled)) => {
                let design = design.clone();
                let search = prepared[at].as_ref().and_then(|own| own.search.clone());
                let own =
                    prepared[at].as_ref().map(|own| own.setting.is_other_system(&design)).transpose()?;
                let is_other_system = own.unwrap_or(true);
                runners.push(Runner {
                    at,
                    search,
                    design,
                    ready,
                    settled,
                    open: Vec::new(),
                    is_other_system,
                });
            }
            (None, Err(error)) if error.is::<PlanError>() => contenders[at].outcome = Err(error.to_string()),
            (None, Err(error)) => return Err(error),
            (Some(name), settled) => {
                let Some(own) = runners.iter_mut().find(|own| own.at == at) else { continue };
                // Where it does not carry the load, its draws say so too.
                let folds = match settled {
                    Ok(settled) => settled.folds,
                    Err(error) if !error.is::<PlanError>() => return Err(error),
                    Err(_) => ready.iter().map(|one| one.compiled.fold(&one.router)).collect(),
                };
                own.open.push(Mechanism { name, ready, folds });
            }
        }
    }
    Ok(runners)
}

/// All devices with one number at one value: their worths, where they carry the load that is asked for.
struct AtValue {
    number: String,
    value: Quantity,
    at: Quantity,
    worths: Vec<Option<f64>>,
}

/// The worths of all devices in one draw.
struct DrawnWorths {
    of_base: bool,
    drawn: Vec<Option<f64>>,
    /// As past errors may have them.
    widened: Vec<Option<f64>>,
}

/// The joint sample of all devices, and each at the ends of each number.
struct Joint {
    objective: Objective,
    /// By device, at the numbers as they are.
    point: Vec<Figures>,
    /// By device, the shares of the mix that spares the host most.
    sparing: Vec<Vec<(String, f64)>>,
    /// By draw and device; none where the numbers make no system.
    draws: Vec<Vec<Option<Figures>>>,
    /// Which draws are of the base mechanisms.
    of_base: Vec<bool>,
    /// The mechanisms that the evidence leaves open of any device.
    open: Vec<String>,
    /// By device, with each of its numbers moved.
    moved: Vec<MovedFigures<Figures>>,
    /// Each number that is drawn at either end.
    at_values: Vec<AtValue>,
    /// The draws with one number held at an end, with its place in `at_values`.
    held: Vec<(usize, Vec<Vec<Option<Figures>>>)>,
    front: Front,
    /// By device, the cores of the host that requests may use.
    usable: Vec<f64>,
}

/// Which device is compared with which, at the numbers as they are.
struct Front {
    /// Those without processors of their own, and the others.
    plain: Vec<usize>,
    cards: Vec<usize>,
    best: Option<usize>,
    reference: Option<usize>,
    card: Option<usize>,
}

impl Front {
    /// `beats` is by a hundredth, `better` by anything; `first` is that beside which the others are told, where one is.
    fn of(objective: Objective, point: &[Figures], is_plain: &[bool], first: Option<usize>) -> Front {
        let better_by = |own: usize, than: usize| better_by(objective, point[own].worth, point[than].worth);
        let best_of = |among: &mut dyn Iterator<Item = usize>| {
            among.reduce(|best, one| if better_by(one, best) > 1.0 { one } else { best })
        };
        let is_as_good = |one: usize, best: usize| !beats(objective, point[best].worth, point[one].worth);
        // Of cards that tie, the one that leaves most of the host free, in whatever order they were named.
        let sparing = |best: usize, among: &[usize]| {
            let tied = among.iter().copied().filter(|one| is_as_good(*one, best));
            let cores = |one: usize| {
                if point[one].host_cores.is_nan() { f64::INFINITY } else { point[one].host_cores }
            };
            std::iter::once(best)
                .chain(tied)
                .reduce(|least, one| if cores(one) < cores(least) - SEEN_CORES { one } else { least })
                .unwrap_or(best)
        };
        let (plain, cards): (Vec<usize>, Vec<usize>) = (0..point.len()).partition(|index| is_plain[*index]);
        let best_card = best_of(&mut cards.iter().copied()).map(|best| sparing(best, &cards));
        // The simpler of two that are as good is the better one.
        let best = best_of(&mut (0..point.len())).map(|best| {
            let simpler = plain.iter().copied().find(|one| is_as_good(*one, best));
            simpler.or(best_card).unwrap_or(best)
        });
        let reference = first.or_else(|| {
            best_of(&mut plain.iter().copied())
                .filter(|_| !cards.is_empty())
                .or_else(|| best_of(&mut (0..point.len()).filter(|one| Some(*one) != best)))
        });
        // The card that one would buy by the numbers as they are: the best of several in each draw would gain by every error.
        let card = best_card.filter(|_| !plain.is_empty());
        Front { plain, cards, best, reference, card }
    }

    /// The device that is told beside the reference.
    fn named(&self) -> Option<usize> {
        let best = self.best.filter(|best| Some(*best) != self.reference);
        let others = self.plain.iter().chain(&self.cards).copied();
        self.card.or(best).or_else(|| others.min().filter(|one| Some(*one) != self.reference))
    }
}

/// Which of several worths is the better one, and by which ratio.
fn better_by(objective: Objective, worth: f64, than: f64) -> f64 {
    1.0 + solve::better_by(objective, worth, than)
}

/// Whether one worth beats another by a hundredth.
fn beats(objective: Objective, worth: f64, other: f64) -> bool {
    better_by(objective, worth, other) > 1.0 / (1.0 - WORTH_BUILDING)
}

/// What one device gives with some numbers moved.
fn figures(
    base: &Base<'_>,
    moves: &[(&Factor, Quantity)],
    runner: &Runner,
    host_load: f64,
) -> Option<Figures> {
    let moved = base.at(moves);
    let parts = base.moved_parts(&moved);
    if parts.is_empty() {
        return None;
    }
    Some(figures_of(base, &parts, &moved.folds, &runner.settled.shares, host_load))
}

fn figures_of(
    base: &Base<'_>,
    parts: &[Part<'_>],
    folds: &[crate::Fold],
    held: &[(String, f64)],
    host_load: f64,
) -> Figures {
    let design = base.design;
    let runs = |name: &str| parts.iter().any(|one| one.alternative.name == name);
    let latency_s = match held.iter().all(|(name, _)| runs(name)) {
        true => mean_of(held, parts, |index| folds[index].latency),
        // A mix with an alternative that these numbers refuse.
        false => f64::NAN,
    };
    let host_cores = |most: f64| {
        let is_spared = (0..parts.len()).all(|index| host_seconds(&folds[index], parts[index].router) == 0.0);
        match is_spared {
            true => 0.0,
            false => sparing(design, parts, folds, most, host_load).map_or(f64::NAN, |(cores, _)| cores),
        }
    };
    let carries = |most: f64| most >= host_load * (1.0 - 2e-6);
    match evaluate(design, parts, folds, false) {
        Ok(seen) => Figures {
            worth: solve::worth(design, parts, folds, &seen.optimal),
            most: match design.objective {
                Objective::MostThroughput => Rate::of(&seen.optimal, base, parts, folds).most,
                _ => f64::INFINITY,
            },
            latency_s,
            host_cores: host_cores(seen.optimal.total),
            carries_host_load: carries(seen.optimal.total),
        },
        // A load that the stations do not carry with these numbers is an answer, as in a plan.
        Err(_) => {
            let carried = evaluate(&design.seeking(Objective::MostThroughput), parts, folds, false);
            let (host_cores, carries_host_load) = carried.map_or((f64::NAN, false), |seen| {
                (host_cores(seen.optimal.total), carries(seen.optimal.total))
            });
            Figures { worth: f64::NAN, most: f64::INFINITY, latency_s, host_cores, carries_host_load }
        }
    }
}

/// Cores of the host that are busy at a load, in the mix that spares it most, and the shares of that; of a device that
/// carries less than that, those of as much more of it.
fn sparing(
    design: &Design,
    parts: &[Part<'_>],
    folds: &[crate::Fold],
    most: f64,
    load: f64,
) -> Option<(f64, Vec<(String, f64)>)> {
    let of = |index: usize| host_seconds(&folds[index], parts[index].router);
    // A millionth below, so that rounding cannot make it infeasible.
    let carried = load.min(most * (1.0 - 1e-6));
    let sparing = design.seeking(Objective::LeastHostCpu { load: carried });
    let shares = solve::shares(&evaluate(&sparing, parts, folds, false).ok()?.optimal);
    Some((load * mean_of(&shares, parts, of), shares))
}

impl Joint {
    fn of(ask: &CompareAsk<'_>, runners: &[Runner], host_load: f64) -> Result<Joint, miette::Report> {
        let lean: Vec<Runner> = runners
            .iter()
            .map(|one| Runner {
                at: one.at,
                search: None,
                // Nobody asks what the design's own mixes carry in a draw.
                design: one.design.seeking(one.design.objective),
                ready: one.ready.clone(),
                settled: one.settled.clone(),
                open: Vec::new(),
                is_other_system: one.is_other_system,
            })
            .collect();
        let bases: Vec<Base<'_>> =
            lean.iter().map(|one| Base::new(&one.design, &one.ready, &one.settled.folds)).collect();
        let others: Vec<Vec<Base<'_>>> = lean
            .iter()
            .zip(runners)
            .map(|(lean, one)| {
                one.open.iter().map(|open| Base::new(&lean.design, &open.ready, &open.folds)).collect()
            })
            .collect();
        let routers: Vec<&Router> = lean.iter().map(|one| one.ready[0].router.as_ref()).collect();
        let mut factors = factors_of(&routers);
        for base in &bases {
            for own in base.factors().into_iter().filter(Factor::is_estimate) {
                if !factors.iter().any(|known| known.is_estimate() && known.id == own.id) {
                    factors.push(own);
                }
            }
        }
        let shared = Shared { factors, systems: routers.iter().map(|router| router.system()).collect() };
        let sampled = |index: usize, base: &Base<'_>| {
            JointSample::new(base.factors(), ask.seed, |factor| shared.drawn_as(index, factor))
        };
        let samples: Vec<Vec<JointSample>> = bases
            .iter()
            .zip(&others)
            .enumerate()
            .map(|(index, (base, others))| {
                std::iter::once(base).chain(others).map(|base| sampled(index, base)).collect()
            })
            .collect();
        // Devices that leave the same open have the same in each draw.
        let mechanisms = MechanismSample::new(ask.seed);
        let drawn = |held: Option<(&str, Quantity)>| {
            side_by_side(DRAWS, |draw| {
                let of = |index: usize| {
                    let which = mechanisms.at(draw, others[index].len()).map_or(0, |which| 1 + which);
                    let base = if which == 0 { &bases[index] } else { &others[index][which - 1] };
                    let mut moves = samples[index][which].at(draw);
                    if let Some((number, at)) = held {
                        let is_held =
                            |own: &Factor| shared.of(index, own).is_some_and(|one| one.id == number);
                        moves.iter_mut().filter(|(own, _)| is_held(own)).for_each(|(_, value)| *value = at);
                    }
                    figures(base, &moves, &lean[index], host_load)
                };
                (0..lean.len()).map(of).collect::<Vec<_>>()
            })
        };
        let draws = drawn(None);
        let as_it_is = bases.iter().zip(&lean).map(|(base, one)| {
            let (folds, parts) = (&one.settled.folds, base.parts());
            let seen = figures_of(base, &parts, folds, &one.settled.shares, host_load);
            let most = evaluate(&one.design, &parts, folds, false)?.optimal.total;
            // Where no mix takes any of it none spares it more.
            let takes_host =
                (0..parts.len()).any(|index| host_seconds(&folds[index], parts[index].router) > 0.0);
            let spared = sparing(&one.design, &parts, folds, most, host_load).filter(|_| takes_host);
            Ok((seen, spared.map_or_else(|| one.settled.shares.clone(), |(_, shares)| shares)))
        });
        let (point, sparing): (Vec<_>, Vec<_>) =
            as_it_is.collect::<Result<Vec<_>, PlanError>>()?.into_iter().unzip();
        let moved = bases.iter().zip(&lean).map(|(base, one)| {
            let is_set = |factor: &Factor| !one.design.sets(&factor.id);
            let look =
                |moves: &[(&Factor, Quantity)]| Ok::<_, miette::Report>(figures(base, moves, one, host_load));
            MovedFigures::look(base.factors(), is_set, |seen| !seen.latency_s.is_nan(), look)
        });
        let moved = moved.collect::<Result<Vec<_>, _>>()?;
        // Beside a known reference nobody asks which entrant is the best.
        let at_values = match ask.beside_first {
            true => Vec::new(),
            false => at_values(&shared, &moved, &point, &|index, factor, value| {
                figures(&bases[index], &[(factor, value)], &lean[index], host_load)
            }),
        };
        let objective = lean[0].design.objective;
        let is_plain: Vec<bool> = shared.systems.iter().map(|system| system.mode == "nic").collect();
        let first = ask.beside_first.then(|| lean.iter().position(|one| one.at == 0)).flatten();
        let front = Front::of(objective, &point, &is_plain, first);
        let held = moving(objective, &front, &point, &at_values).into_iter().map(|place| {
            let AtValue { number, at, .. } = &at_values[place];
            (place, drawn(Some((number, *at))))
        });
        let held = held.collect();
        let usable = shared.systems.iter().map(|system| {
            let open = system.open_host_threads().map(|(open, _)| open);
            let cores = open.or_else(|| Some(system.host()?.processor.threads()));
            cores.map_or(f64::INFINITY, |cores| cores as f64)
        });
        let usable = usable.collect();
        let of_base = (0..DRAWS).map(|draw| mechanisms.at(draw, 1).is_none()).collect();
        let open: BTreeSet<&String> =
            runners.iter().flat_map(|one| &one.open).map(|open| &open.name).collect();
        let open = open.into_iter().cloned().collect();
        Ok(Joint { objective, point, sparing, draws, of_base, open, moved, at_values, held, front, usable })
    }

    /// Whether a worth is the better one, and by which ratio.
    fn better_by(&self, worth: f64, than: f64) -> f64 {
        better_by(self.objective, worth, than)
    }

    /// Whether one beats another by a hundredth.
    fn beats(&self, worth: f64, other: f64) -> bool {
        beats(self.objective, worth, other)
    }

    fn kind(&self) -> FigureKind {
        match self.objective {
            Objective::LowestP99 { .. } => FigureKind::Latency,
            _ => FigureKind::ThroughputRatio,
        }
    }

    /// A figure of a device with its interval over the draws, widened by past errors of a kind.
    fn ranged(
        &self,
        index: usize,
        (lesson, kind): (Lesson, FigureKind),
        most: f64,
        figure: impl Fn(&Figures) -> f64,
    ) -> Ranged {
        let drawn = self.draws.iter().filter_map(|draw| draw[index].as_ref()).map(&figure);
        let drawn = drawn.filter(|value| value.is_finite());
        let sample = drawn.map(|value| (value.min(most), most)).collect();
        Ranged::of(figure(&self.point[index]), &Widened::new(sample, &lesson.sizes(kind)))
    }

    fn contest(&self, index: usize, runner: Runner, checked: CheckedPlan) -> Contest {
        let (moved, point) = (&self.moved[index], &self.point[index]);
        let taken = |one: &&Ready| {
            let shares = &checked.plan.optimal.shares;
            shares.iter().any(|(name, share)| *name == one.alternative.name && *share >= 0.05)
        };
        let is_unknown = runner.ready.iter().filter(taken).any(|one| !one.compiled.has_evidence());
        // What the twin does not confirm is no prediction.
        let is_doubted = checked.settled.gap.is_some() || !checked.settled.has_settled();
        let least = least_on(runner.ready[0].router.system()).max(match is_doubted {
            true => Basis::Weak,
            false => Basis::Fitted,
        });
        let known = |figure: &dyn Fn(&Figures) -> f64| {
            let rests_on = moved.rests(figure(point), figure, &[]);
            let basis = moved.basis(&rests_on, is_unknown, figure, &[]).max(least);
            (basis, Lesson::of(&rests_on, runner.ready.iter().map(|one| one.router.system())))
        };
        let latency = |seen: &Figures| seen.latency_s;
        let cores = |seen: &Figures| seen.host_cores;
        let ((latency_basis, of_latency), (host_basis, of_host)) = (known(&latency), known(&cores));
        Contest {
            latency_s: self.ranged(index, (of_latency, FigureKind::Latency), f64::INFINITY, latency),
            latency_basis,
            host_cores: self.ranged(index, (of_host, FigureKind::Throughput), self.usable[index], cores),
            host_load_carried_in: {
                let drawn = self.draws.iter().filter_map(|draw| draw[index].as_ref());
                drawn.filter(|seen| seen.carries_host_load).count() as f64 / self.draws.len().max(1) as f64
            },
            is_other_system: runner.is_other_system,
            host_basis,
            lesson: checked.plan.recommendation.lesson,
            of_host,
            sparing: self.sparing[index].clone(),
            carried_in: 0.0,
            best_in: 0.0,
            as_good_in: 0.0,
            without_errors: (0.0, 0.0),
            over: None,
            margins: margins(
                &runner.design,
                &runner.ready,
                &checked.settled.folds,
                &checked.plan.optimal.shares,
            ),
            without_evidence: without_evidence(&runner.ready),
            search: runner.search,
            design: runner.design,
            checked,
        }
    }

    /// What past predictions of ratios were wrong by, as a factor for each draw of a device. That beside which the others
    /// are told has none.
    fn errors(&self, lesson: Lesson, seed: Seed, name: &str) -> Vec<f64> {
        let error = Widened::new(vec![(1.0, f64::INFINITY)], &lesson.sizes(self.kind()));
        strata(seed, &format!("error of {name}")).into_iter().map(|at| error.quantile(at)).collect()
    }

    fn compared(self, ask: &CompareAsk<'_>, mut contenders: Vec<Contender>, host_load: f64) -> Comparison {
        let at: Vec<usize> = (0..contenders.len()).filter(|at| contenders[*at].outcome.is_ok()).collect();
        let Front { plain, best, reference, card, .. } = &self.front;
        let (best, reference, card) = (*best, *reference, *card);
        // A ratio is known no better than either side of it.
        let own = |index: usize| contenders[at[index]].planned().lesson;
        let lesson = |index: usize| match reference.map(own) {
            Some(Lesson::OfGuessedCards) => Lesson::OfGuessedCards,
            _ => own(index),
        };
        let errors: Vec<Vec<f64>> = (0..at.len())
            .map(|index| match Some(index) == reference {
                true => vec![1.0; DRAWS],
                false => self.errors(lesson(index), ask.seed, &contenders[at[index]].name),
            })
            .collect();
        // What two devices have exactly alike rests on the same numbers of the same station, so that an error of it is one.
        let same = |one: &Figures, other: &Figures| (one.worth / other.worth - 1.0).abs() < 1e-6;
        let first = |seen: &[Option<Figures>], index: usize| {
            let own = seen[index];
            let order = reference.into_iter().chain(0..seen.len());
            let alike = |other: &usize| own.zip(seen[*other]).is_some_and(|(own, other)| same(&own, &other));
            order.into_iter().find(alike).unwrap_or(index)
        };
        let reach: Vec<Reach> = at.iter().map(|at| contenders[*at].planned().reach()).collect();
        // Of each draw that counts, each device's worth as it is drawn, and as a past error may have it; nothing of one without
        // a plan there. Where nobody has one nobody is the better.
        let worths_of = |draws: &[Vec<Option<Figures>>]| -> Vec<DrawnWorths> {
            let of_draw = |(draw, seen): (usize, &Vec<Option<Figures>>)| {
                let widened = |index: usize| {
                    let worth = seen[index]?.carried()? * errors[first(seen, index)][draw];
                    let beside = reference.and_then(|other| Some((seen[other].as_ref()?, reach[other])));
                    Some(self.within(worth, (seen[index].as_ref()?, reach[index]), beside))
                };
                DrawnWorths {
                    of_base: self.of_base[draw],
                    drawn: seen.iter().map(|seen| seen.as_ref()?.carried()).collect(),
                    widened: (0..seen.len()).map(widened).collect(),
                }
            };
            let all = draws.iter().enumerate().map(of_draw);
            all.filter(|draw| draw.drawn.iter().any(Option::is_some)).collect()
        };
        let worths = worths_of(&self.draws);
        let beaten = |draw: &[Option<f64>], index: usize, by: usize| match (draw[index], draw[by]) {
            (Some(own), Some(other)) => self.beats(other, own),
            (None, other) => other.is_some(),
            (_, None) => false,
        };
        let all = |_: &DrawnWorths| true;
        let widened = |draw: &DrawnWorths| draw.widened.clone();
        let drawn = |draw: &DrawnWorths| draw.drawn.clone();
        let share_in = |worths: &[DrawnWorths],
                        of: &dyn Fn(&DrawnWorths) -> bool,
                        which: &dyn Fn(&DrawnWorths) -> Vec<Option<f64>>,
                        is: &dyn Fn(&[Option<f64>]) -> bool| {
            let own = || worths.iter().filter(|draw| of(draw));
            own().filter(|draw| is(&which(draw))).count() as f64 / own().count().max(1) as f64
        };
        let share = |which: &dyn Fn(&DrawnWorths) -> Vec<Option<f64>>,
                     is: &dyn Fn(&[Option<f64>]) -> bool| {
            share_in(&worths, &all, which, is)
        };
        for index in 0..at.len() {
            let others = || (0..at.len()).filter(move |other| *other != index);
            let is_best = |draw: &[Option<f64>]| others().all(|other| beaten(draw, other, index));
            let is_as_good = |draw: &[Option<f64>]| {
                draw[index].is_some() && !others().any(|other| beaten(draw, index, other))
            };
            let over = reference.filter(|one| *one != index).map(|other| {
                let ratio = |own: f64, other: f64| if own == other { 1.0 } else { own / other };
                let of_draw = |draw: &DrawnWorths| Some(ratio(draw.widened[index]?, draw.widened[other]?));
                let ratios = worths.iter().filter_map(of_draw);
                let ratios: Vec<(f64, f64)> = ratios.map(|ratio| (ratio, f64::INFINITY)).collect();
                let value = ratio(self.point[index].worth, self.point[other].worth);
                // Beside nothing there is no ratio, in the plan or in a draw.
                let is_told = value.is_finite() && ratios.iter().all(|(ratio, _)| ratio.is_finite());
                let is_better = |draw: &[Option<f64>]| beaten(draw, other, index);
                DeviceRatio {
                    ratio: is_told.then(|| Ranged::of(value, &Widened::new(ratios, &[]))),
                    better_in: share(&widened, &is_better),
                    better_without_errors_in: share(&drawn, &is_better),
                    freed_cores: self.freed(index, other, ask.seed, &contenders, &at),
                    drawn: self.drawn(index, other),
                }
            });
            let carried = worths.iter().filter(|draw| draw.drawn[index].is_some()).count();
            if let Ok(own) = &mut contenders[at[index]].outcome {
                own.over = over;
                own.best_in = share(&widened, &is_best);
                own.as_good_in = share(&widened, &is_as_good);
                own.without_errors = (share(&drawn, &is_best), share(&drawn, &is_as_good));
                own.carried_in = carried as f64 / self.draws.len().max(1) as f64;
            }
        }
        let said_in = |worths: &[DrawnWorths],
                       of: &dyn Fn(&DrawnWorths) -> bool,
                       which: &dyn Fn(&DrawnWorths) -> Vec<Option<f64>>| {
            let best = best.unwrap_or(0);
            let others = || (0..at.len()).filter(move |other| *other != best);
            DrawsSay {
                card_best_in: card.map(|card| {
                    share_in(worths, of, which, &|draw| plain.iter().all(|plain| beaten(draw, *plain, card)))
                }),
                best_in: share_in(worths, of, which, &|draw| others().all(|other| beaten(draw, other, best))),
                as_good_in: share_in(worths, of, which, &|draw| {
                    draw[best].is_some() && !others().any(|other| beaten(draw, best, other))
                }),
            }
        };
        let said = |of: &dyn Fn(&DrawnWorths) -> bool, which: &dyn Fn(&DrawnWorths) -> Vec<Option<f64>>| {
            said_in(&worths, of, which)
        };
        let held = self.held.iter().map(|(place, draws)| {
            let AtValue { number, at, value, .. } = &self.at_values[*place];
            let said = said_in(&worths_of(draws), &all, &widened);
            HeldAt { number: number.clone(), at: *at, value: *value, said }
        });
        let held = held.collect();
        let is_base = |draw: &DrawnWorths| draw.of_base;
        let is_other = |draw: &DrawnWorths| !draw.of_base;
        let turns = best.map_or_else(Vec::new, |best| self.turns(best, &at));
        let (unlike, notes) = (unlike(&contenders), notes(&contenders));
        Comparison {
            unlike,
            design: ask.design.clone(),
            reference: reference.map(|index| at[index]),
            best: best.map(|index| at[index]),
            card: card.map(|index| at[index]),
            said: said(&all, &widened),
            said_without_errors: said(&all, &drawn),
            said_by_mechanism: (!self.open.is_empty())
                .then(|| [said(&is_base, &drawn), said(&is_other, &drawn)]),
            open: self.open.clone(),
            counted_in: worths.len() as f64 / self.draws.len().max(1) as f64,
            host_load,
            turns,
            held,
            notes,
            contenders,
        }
    }

    /// A worth that a past error moved, within what both its own rate and that of the reference can be: what links carry, and of
    /// a rate that nothing widens what was drawn.
    fn within(&self, moved: f64, (own, reach): (&Figures, Reach), beside: Option<(&Figures, Reach)>) -> f64 {
        if !matches!(self.objective, Objective::MostThroughput) {
            return moved;
        }
        let ends = reach.ends(own.worth, own.most);
        let beside = beside.filter(|(other, _)| other.worth > 0.0);
        let (least, most) = match beside {
            Some((other, by)) => {
                let (least, most) = ends.over(by.ends(other.worth, other.most));
                (least * other.worth, most * other.worth)
            }
            None => (ends.least, ends.most),
        };
        moved.max(least).min(most)
    }

    /// An entrant beside another in the draws as they are.
    fn drawn(&self, index: usize, other: usize) -> DrawnRatio {
        let both: Vec<(Option<&Figures>, Option<&Figures>)> =
            self.draws.iter().map(|seen| (seen[index].as_ref(), seen[other].as_ref())).collect();
        let of = |figure: &dyn Fn(&Figures) -> f64| {
            let ratio = |own: &Figures, other: &Figures| {
                let (own, other) = (figure(own), figure(other));
                if own == other { 1.0 } else { own / other }
            };
            let ratios = both.iter().filter_map(|(own, other)| Some(ratio((*own)?, (*other)?)));
            let ratios = ratios.filter(|ratio| !ratio.is_nan()).map(|ratio| (ratio, f64::INFINITY)).collect();
            let value = ratio(&self.point[index], &self.point[other]);
            let sample = Widened::new(ratios, &[]);
            let is_told = value.is_finite() && !sample.is_empty() && sample.quantile(1.0).is_finite();
            is_told.then(|| Ranged::of(value, &sample))
        };
        let worth = |seen: Option<&Figures>| seen.and_then(Figures::carried);
        let carried = both.iter().map(|(own, other)| (worth(*own), worth(*other)));
        let carried: Vec<_> = carried.filter(|(own, other)| own.is_some() || other.is_some()).collect();
        let share = |is: &dyn Fn(Option<f64>, Option<f64>) -> bool| {
            let count = carried.iter().filter(|(own, other)| is(*own, *other)).count();
            count as f64 / carried.len().max(1) as f64
        };
        let ahead = |own: Option<f64>, than: Option<f64>| match (own, than) {
            (Some(own), Some(than)) => self.beats(own, than),
            (own, _) => own.is_some(),
        };
        // What is not carried is the same as what is not carried.
        let bits = |seen: &Figures| {
            [seen.worth, seen.latency_s, seen.host_cores].map(|one| (!one.is_nan()).then_some(one.to_bits()))
        };
        let is_same = |own: Option<&Figures>, other: Option<&Figures>| own.map(bits) == other.map(bits);
        DrawnRatio {
            worth: of(&|seen| seen.worth),
            latency: of(&|seen| seen.latency_s),
            better_in: share(&|own, other| ahead(own, other)),
            worse_in: share(&|own, other| ahead(other, own)),
            is_same: is_same(Some(&self.point[index]), Some(&self.point[other]))
                && both.iter().all(|(own, other)| is_same(*own, *other)),
        }
    }

    /// Cores of the host that a device frees beside another.
    fn freed(
        &self,
        index: usize,
        other: usize,
        seed: Seed,
        contenders: &[Contender],
        at: &[usize],
    ) -> Ranged {
        let both = || {
            self.draws.iter().enumerate().filter_map(|(draw, seen)| Some((draw, seen[index]?, seen[other]?)))
        };
        // Each has an error of its own.
        let errors = |index: usize| -> Vec<f64> {
            let sizes = contenders[at[index]].planned().of_host.sizes(FigureKind::Throughput);
            let error = Widened::new(vec![(1.0, f64::INFINITY)], &sizes);
            let places = strata(seed, &format!("error of the host's time on {}", contenders[at[index]].name));
            places.into_iter().map(|at| error.quantile(at)).collect()
        };
        let (of_own, of_other) = (errors(index), errors(other));
        let most = self.usable[other];
        let freed = both().map(|(draw, own, other)| {
            // What both take exactly alike they take for the same thing.
            if (own.host_cores - other.host_cores).abs() <= 1e-6 * other.host_cores {
                return 0.0;
            }
            // No more are busy than requests may use; of no plan it stays no number.
            (other.host_cores * of_other[draw]).clamp(0.0, most)
                - (own.host_cores * of_own[draw]).clamp(0.0, self.usable[index])
        });
        let freed = freed.filter(|cores| cores.is_finite()).map(|cores| (cores, most)).collect();
        let value = self.point[other].host_cores - self.point[index].host_cores;
        Ranged::of(value, &Widened::new(freed, &[]))
    }

    /// The numbers at an end of whose interval another device is the best or none carries the load, those of the first device
    /// first.
    fn turns(&self, best: usize, at: &[usize]) -> Vec<Turn> {
        let turn = |one: &AtValue| {
            let better = |own: usize, than: usize| match (one.worths[own], one.worths[than]) {
                (Some(own), Some(than)) => self.better_by(own, than),
                (own, _) => {
                    if own.is_some() {
                        f64::INFINITY
                    } else {
                        0.0
                    }
                }
            };
            let top = (0..at.len()).reduce(|top, one| if better(one, top) > 1.0 { one } else { top })?;
            let device = match (one.worths[top], one.worths[best]) {
                (None, _) => None,
                (Some(_), None) => Some(at[top]),
                (Some(own), Some(known)) if self.beats(own, known) => Some(at[top]),
                _ => return None,
            };
            Some(Turn { number: one.number.clone(), at: one.at, value: one.value, device })
        };
        self.at_values.iter().filter_map(turn).collect()
    }
}

/// The ends of numbers, by their places, that move what the first line tells by most, the most first.
fn moving(objective: Objective, front: &Front, point: &[Figures], at_values: &[AtValue]) -> Vec<usize> {
    let Some((own, than)) = front.named().zip(front.reference) else { return Vec::new() };
    let ratio = |own: Option<f64>, than: Option<f64>| Some(better_by(objective, own?, than?).ln());
    let as_it_is = ratio(point[own].carried(), point[than].carried());
    let moved = |one: &AtValue| match (ratio(one.worths[own], one.worths[than]), as_it_is) {
        (Some(there), Some(here)) if there == here => 0.0,
        (Some(there), Some(here)) => (there - here).abs(),
        (None, None) => 0.0,
        _ => f64::INFINITY,
    };
    let mut all: Vec<(usize, f64)> = at_values.iter().map(moved).enumerate().collect();
    // What moves it by less than what counts makes no other answer.
    all.retain(|(_, by)| *by > -(1.0 - WORTH_BUILDING).ln());
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    all.into_iter().take(MOST_HELD).map(|(place, _)| place).collect()
}

/// A device's own factor of a shared number, with its value and the figures at an end; nothing where it is no system there.
type OwnEnd<'e> = (&'e Factor, Option<&'e (Quantity, Figures)>);

/// Every device with one shared number at one value, at either end of each that is drawn: where one of them is none that
/// far, all are looked at where it is one.
fn at_values(
    shared: &Shared,
    moved: &[MovedFigures<Figures>],
    point: &[Figures],
    figures: &dyn Fn(usize, &Factor, Quantity) -> Option<Figures>,
) -> Vec<AtValue> {
    let mut found = Vec::new();
    for factor in shared.factors.iter().filter(|factor| Drawn::of(factor) != Drawn::Held) {
        for side in 0..2 {
            // Of each device that has the number, its own with what was seen there.
            let own: Vec<Option<OwnEnd<'_>>> = moved
                .iter()
                .enumerate()
                .map(|(index, one)| {
                    let is_it =
                        |own: &Factor| shared.of(index, own).is_some_and(|known| known.id == factor.id);
                    let (factor, ends) = one.each().find(|(own, _)| is_it(own))?;
                    Some((factor, ends.sides()[side]))
                })
                .collect();
            let seen: Vec<Quantity> =
                own.iter().flatten().filter_map(|(_, seen)| seen.map(|(value, _)| *value)).collect();
            // Where one of them is no system with any other value, none is compared there.
            if seen.is_empty() || own.iter().flatten().any(|(_, seen)| seen.is_none()) {
                continue;
            }
            let far = |value: &Quantity| (value.base() - factor.value.base()).abs();
            let nearest =
                seen.iter().copied().reduce(|near, one| if far(&one) < far(&near) { one } else { near });
            let at = nearest.expect("there is one");
            let worth = |(index, own): (usize, &Option<OwnEnd<'_>>)| match own {
                None => point[index].carried(),
                Some((_, Some((value, seen)))) if *value == at => seen.carried(),
                Some((factor, _)) => figures(index, factor, at)?.carried(),
            };
            let worths = own.iter().enumerate().map(worth).collect();
            found.push(AtValue { number: factor.id.clone(), value: factor.value, at, worths });
        }
    }
    found
}

/// The testbed and the host of each device that has a plan, with the devices.
fn places(contenders: &[Contender]) -> BTreeMap<(String, String), Vec<&str>> {
    let mut testbeds: BTreeMap<(String, String), Vec<&str>> = BTreeMap::new();
    for one in contenders.iter().filter(|one| one.outcome.is_ok()) {
        let host = one.system.machine("server").map(|server| server.host.clone()).unwrap_or_default();
        testbeds.entry((one.system.testbed.clone(), host)).or_default().push(&one.name);
    }
    testbeds
}

/// Why a difference between devices may be one of what stands around them.
fn unlike(contenders: &[Contender]) -> Option<String> {
    let places = places(contenders);
    if places.len() > 1 {
        let said = places.iter().map(|((testbed, host), devices)| {
            format!("{} in {testbed} (host {host})", devices.join(" and "))
        });
        return Some(format!(
            "the testbeds differ, {}; `--testbed` puts all into one",
            said.collect::<Vec<_>>().join(", ")
        ));
    }
    let cards: BTreeSet<String> = contenders
        .iter()
        .filter(|one| one.outcome.is_ok())
        .filter_map(|one| Some(one.system.machine("client").ok()?.device.clone()))
        .collect();
    let bound = contenders.iter().find_map(|one| {
        let bounds = &one.outcome.as_ref().ok()?.checked.plan.optimal.bounds;
        let clients = &one.system.machine("client").ok()?.prefix;
        Some((one, bounds.iter().find(|bound| bound.name.starts_with(clients.as_str()))?))
    });
    let (one, bound) = bound.filter(|_| cards.len() > 1)?;
    Some(format!(
        "the clients of {} carry the compared cards too, and {} of theirs binds {}; a testbed whose clients have one card \
         tells the servers apart",
        one.system.testbed, bound.name, one.name
    ))
}

/// What readers of a comparison may take for something else.
fn notes(contenders: &[Contender]) -> Vec<String> {
    let mut notes = Vec::new();
    for one in contenders.iter().filter(|one| !one.settings_left_out.is_empty()) {
        notes.push(format!("{} has nothing that `{}` sets", one.name, one.settings_left_out.join("`, `")));
    }
    for one in contenders {
        let Ok(own) = &one.outcome else { continue };
        let said = match &own.checked.settled.gap {
            Some(gap) if gap.blind.is_none() && !gap.is_unclear() => "TWIN AND PLAN DIFFER",
            Some(_) => "NOT CONFIRMED by the twin",
            None if !own.checked.settled.has_settled() => "NOT SETTLED",
            None => continue,
        };
        let carried = own.checked.settled.gap.as_ref().and_then(|gap| {
            let share = gap.carried_per_s.as_ref()?.mean / gap.planned_per_s;
            Some(format!(", which carries {:.1}% of what is planned", share * 100.0))
        });
        notes.push(format!(
            "{}: {said}{}; `offpath plan` with this device and `--testbed {}` says more",
            one.name,
            carried.unwrap_or_default(),
            one.system.testbed
        ));
    }
    notes
}
