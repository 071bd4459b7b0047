//! What `offpath check` answers: what a design could do better, each remedy measured on the twin.

use crate::advice::{AdviceAnswer, BunchedAnswer, Doubt, FullestAnswer, GainAnswer};
use crate::figures::Unit;
use crate::plan::unplanned;
use crate::system::SystemAnswer;
use crate::{ByName, SCHEMA_VERSION, command, setting};
use offpath_plan::advice::{Advised, Depth, LEAST_GAIN, RULES, SEEDS, TrialBench, advise, advise_mix};
use offpath_plan::check::Gap;
use offpath_plan::choices::search;
use offpath_plan::{Changes, Design, Setting};
use offpath_terminal::failure::Failure;
use offpath_terminal::options::{SystemOptions, as_shell_words};
use offpath_terminal::output::Screen;
use offpath_twin::Seed;
use serde::Serialize;
use std::path::PathBuf;

/// A design to be checked.
#[derive(Clone, Debug, Default)]
pub struct CheckRequest {
    /// The design file.
    pub design: PathBuf,
    /// What is changed in it. A mix there is the mix or alternative to look at, and not what the design runs.
    pub changes: Changes,
    /// Which systems are meant.
    pub system: SystemOptions,
    /// The seed of every draw; the same seed gives the same answer.
    pub seed: u64,
    /// Whether remedies that may lose by what they assume are left out, as when the changes are to be written.
    pub sure: bool,
}

/// A design that is loaded and is not checked yet.
pub struct CheckDraft<'a> {
    request: &'a CheckRequest,
    setting: Setting,
    design: Design,
}

/// What a design could do better.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct CheckAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design's name.
    pub design: String,
    /// Its file, as it was named.
    pub design_file: String,
    /// The scenario that was looked at; null where the design has none.
    pub scenario: Option<String>,
    /// What was asked for beside the file, as options of a command line.
    pub options: Vec<String>,
    /// The system of the design's own device.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The mix that was looked at.
    pub mix: String,
    /// Its shares by alternative.
    pub shares: ByName<f64>,
    /// The application beside the step lists that were checked; null where there is none.
    pub application: Option<String>,
    /// The payload of a request whose bits throughputs on screens count; null where they count requests.
    pub unit_payload_bytes: Option<u64>,
    /// Pairs of runs that a gain rests on.
    pub seeds: u64,
    /// A remedy is reported where the lower end of its interval is above this.
    pub least_gain_percent: f64,
    /// Rules that were tried.
    pub rules: usize,
    /// Remedies that gain, in the order in which they were found.
    pub advice: Vec<AdviceAnswer>,
    /// What all remedies gain together, over all requests; null without any.
    pub together: Option<GainAnswer>,
    /// The rules that say nothing.
    pub silent: Vec<SilenceAnswer>,
    /// With `--fix`, remedies that gain and may lose by what they assume, which are not written, and why.
    pub left_out: Vec<String>,
    /// Whether the file was changed.
    pub fixed: bool,
    /// What differs, where nothing was measured since the twin carries something else than was planned of the mix;
    /// null where it confirms the mix. With it the exit code is 1.
    pub unconfirmed: Option<UnconfirmedAnswer>,
    /// By which percentage in-flight slots were still held longer or shorter than was solved for, where nothing was measured
    /// since the solution has not settled; null where it has. With it the exit code is 1.
    pub unsettled_holds_moved_percent: Option<f64>,
    /// The options with which it is not the design of the file on its own system, so that `--fix` is refused.
    #[serde(skip)]
    pub not_of_the_file: Vec<String>,
    /// The options as `plan` takes them: it looks at no other mix than what it finds.
    #[serde(skip)]
    pub plan_options: Vec<String>,
    /// The design's file as it was read.
    #[serde(skip)]
    pub text_before: String,
    /// The file with every change in force.
    #[serde(skip)]
    pub text_after: String,
    /// What the card's mode means, where it is not the common one.
    #[serde(skip)]
    pub mode_note: Option<&'static str>,
}

/// What a design could do better, or each of its scenarios.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum CheckAnswers {
    /// Of a design without scenarios, or of the scenario that was chosen.
    One(Box<CheckAnswer>),
    /// Of each scenario by itself. What one gains says nothing of another.
    Scenarios(CheckedScenariosAnswer),
}

/// What a design's scenarios could do better.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CheckedScenariosAnswer {
    /// Version of this schema.
    pub schema_version: u32,
    /// An answer each, in the file's order. Where changes are to be written, each is of the file with those of the scenarios
    /// before it.
    pub scenarios: Vec<CheckAnswer>,
}

/// A rule that says nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SilenceAnswer {
    /// The rule's name.
    pub rule: &'static str,
    /// One for each thing that it looked at.
    pub reasons: Vec<String>,
}

/// What differs, where nothing was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnconfirmedAnswer {
    /// Requests per second that were planned.
    pub planned_req_per_s: f64,
    /// Requests per second that the twin carries; null where its interval is wider than itself, or the twin confirms nothing.
    pub carried_req_per_s: Option<f64>,
    /// Lower end of its 95% interval; null where the twin confirms nothing.
    pub carried_low_95_req_per_s: Option<f64>,
    /// Upper end of it.
    pub carried_high_95_req_per_s: Option<f64>,
    /// How much more or less than planned that is; null where what is carried is.
    pub difference_percent: Option<f64>,
    /// The greatest difference that is let pass.
    pub allowed_percent: f64,
    /// Whether the mean lies as near as is let pass, and scatters too far to tell.
    pub unclear: bool,
    /// The station that was busiest, on the machine where it was; null where the twin confirms nothing.
    pub fullest: Option<FullestAnswer>,
    /// Why a window as long as can be run does not tell, where it does not: then what the twin carried says nothing
    /// of the plan. Null where it tells.
    pub blind_because: Option<String>,
    /// Why closed loops carry less than planned though they fill no station; null where a station is full, or where
    /// requests come at random.
    pub bunched: Option<BunchedAnswer>,
}

/// Looks for changes of a design that gain, each measured on the twin.
///
/// # Errors
/// As [`plan`](crate::plan::plan).
pub fn check(request: &CheckRequest) -> Result<CheckAnswers, Failure> {
    CheckDraft::new(request, Design::load(&request.design, &request.changes)?)?.answer()
}

impl<'a> CheckDraft<'a> {
    /// The request's design, as it is loaded with the request's changes.
    ///
    /// # Errors
    /// Where the library of profiles is refused.
    pub fn new(request: &'a CheckRequest, design: Design) -> Result<CheckDraft<'a>, Failure> {
        Ok(CheckDraft { setting: setting(&request.system)?, design, request })
    }

    /// Checks it: a design without scenarios once, else each scenario by itself, or each that has the mix that is asked for.
    ///
    /// # Errors
    /// As [`check`].
    pub fn answer(&self) -> Result<CheckAnswers, Failure> {
        let CheckRequest { changes, sure, .. } = self.request;
        let text = &self.design.source.1;
        if self.design.scenarios.is_empty() {
            return Ok(CheckAnswers::One(Box::new(self.one(changes, text).map_err(unplanned)?)));
        }
        let asked = changes.mix.as_deref();
        let has_it = |name: &&String| -> Result<bool, Failure> {
            let own = self.design.in_scenario(name)?;
            let named =
                own.alternatives.iter().map(|one| &one.name).chain(own.mixes.iter().map(|one| &one.name));
            Ok(asked.is_none_or(|asked| { named }.any(|name| name == asked)))
        };
        let mut names = Vec::new();
        for name in &self.design.scenarios {
            if has_it(&name)? {
                names.push(name);
            }
        }
        // A mix that every plan has is every scenario's, and one that none has is refused there.
        if names.is_empty() {
            names.extend(&self.design.scenarios);
        }
        let (mut text, mut scenarios) = (text.clone(), Vec::new());
        for name in names {
            let changes = Changes { scenario: Some(name.clone()), ..changes.clone() };
            let failed = |error: miette::Report| unplanned(error.wrap_err(format!("scenario `{name}`")));
            let answer = self.one(&changes, &text).map_err(failed)?;
            if *sure {
                text.clone_from(&answer.text_after);
            }
            scenarios.push(answer);
        }
        Ok(CheckAnswers::Scenarios(CheckedScenariosAnswer { schema_version: SCHEMA_VERSION, scenarios }))
    }

    /// Checks a text of the design with some changes.
    fn one(&self, given: &Changes, before: &str) -> Result<CheckAnswer, miette::Report> {
        let CheckRequest { design: file, system: asked, seed, sure, .. } = self.request;
        let (name, directory) = (&self.design.source.0, self.design.directory());
        let design = &Design::parse(before, name, directory, given)?;
        let changes = Changes { mix: None, ..given.clone() };
        let plan_options = command::options(&changes, asked, *seed);
        let found = search(design, &changes, &self.setting, &|design| design)?;
        let changes = found.map_or(changes, |found| found.changes);
        let bench = TrialBench::new(name, directory, &changes, &self.setting, Seed::new(*seed));
        let depth = if *sure { Depth::Sure } else { Depth::Every };
        let advised = match &given.mix {
            Some(mix) => advise_mix(&bench, before, mix, depth)?,
            None => advise(&bench, before, depth)?,
        };
        let system = self.setting.system(design, &design.device)?;
        let Advised {
            objective,
            runs,
            shares,
            advice,
            silent,
            left_out,
            together,
            text,
            unconfirmed,
            unsettled,
            ..
        } = advised;
        Ok(CheckAnswer {
            schema_version: SCHEMA_VERSION,
            design: design.name.clone(),
            design_file: file.display().to_string(),
            scenario: given.scenario.clone(),
            options: command::options(given, asked, *seed),
            not_of_the_file: command::not_of_the_file(given, asked),
            plan_options,
            system: SystemAnswer::of(&system),
            mix: runs,
            shares: shares.into_iter().collect(),
            application: design.application.as_ref().map(|one| one.title().to_string()),
            unit_payload_bytes: Unit::of(design).payload_bytes,
            seeds: SEEDS,
            least_gain_percent: LEAST_GAIN * 100.0,
            rules: RULES.len(),
            advice: advice.iter().map(|one| AdviceAnswer::of(one, objective)).collect(),
            together: together.as_ref().map(|gain| GainAnswer::of(gain, objective)),
            silent: silent
                .into_iter()
                .map(|one| SilenceAnswer { rule: one.rule, reasons: one.reasons })
                .collect(),
            left_out,
            fixed: false,
            unconfirmed: unconfirmed.as_ref().map(UnconfirmedAnswer::of),
            unsettled_holds_moved_percent: unsettled.map(|moved| moved * 100.0),
            text_after: match advice.is_empty() {
                true => before.to_string(),
                false => text,
            },
            text_before: before.to_string(),
            mode_note: system.mode_note(),
        })
    }
}

impl UnconfirmedAnswer {
    fn of(gap: &Gap) -> UnconfirmedAnswer {
        UnconfirmedAnswer {
            planned_req_per_s: gap.planned_per_s,
            carried_req_per_s: gap.carried_per_s.and_then(|carried| carried.result()),
            carried_low_95_req_per_s: gap.carried_per_s.map(|carried| carried.low),
            carried_high_95_req_per_s: gap.carried_per_s.map(|carried| carried.high),
            difference_percent: gap.share().map(|share| share * 100.0),
            allowed_percent: gap.allowed * 100.0,
            unclear: gap.is_unclear(),
            fullest: gap.fullest.as_ref().map(FullestAnswer::of),
            blind_because: gap.blind.clone(),
            bunched: BunchedAnswer::of(gap),
        }
    }

    fn sentence(&self, unit: Unit) -> String {
        let rate = |per_s: Option<f64>| per_s.map(|per_s| unit.of_rate(per_s));
        let doubt = Doubt {
            blind_because: self.blind_because.as_deref(),
            unclear: self.unclear,
            planned: unit.of_rate(self.planned_req_per_s),
            carried: rate(self.carried_req_per_s).zip(self.difference_percent),
            carried_95: rate(self.carried_low_95_req_per_s).zip(rate(self.carried_high_95_req_per_s)),
            allowed_percent: self.allowed_percent,
            fullest: self.fullest.as_ref(),
            bunched: self.bunched.as_ref(),
        };
        doubt.sentence(unit.name())
    }
}

impl CheckAnswers {
    /// The answers.
    pub fn all(&self) -> &[CheckAnswer] {
        match self {
            CheckAnswers::One(one) => std::slice::from_ref(one),
            CheckAnswers::Scenarios(all) => &all.scenarios,
        }
    }

    /// The answers, to be told what became of them.
    pub fn all_mut(&mut self) -> &mut [CheckAnswer] {
        match self {
            CheckAnswers::One(one) => std::slice::from_mut(one),
            CheckAnswers::Scenarios(all) => &mut all.scenarios,
        }
    }

    /// Every answer as a page of text; `verbose` says why each rule stays silent.
    pub fn text(&self, screen: &Screen, verbose: bool) -> String {
        let pages = self.all().iter().map(|one| {
            let heading = one.scenario.as_ref().map(|name| screen.heading(&format!("Scenario: {name}")));
            heading.unwrap_or_default() + &one.text(screen, verbose)
        });
        pages.collect::<Vec<String>>().join("\n")
    }
}

impl CheckAnswer {
    /// Whether no gain was measured, since the twin does not confirm the mix or the solution has not settled.
    pub fn measures_nothing(&self) -> bool {
        self.unconfirmed.is_some() || self.unsettled_holds_moved_percent.is_some()
    }

    /// The answer as a page of text; `verbose` says why each rule stays silent.
    pub fn text(&self, screen: &Screen, verbose: bool) -> String {
        let unit = Unit { payload_bytes: self.unit_payload_bytes };
        let plan = command::spelled("plan", &self.design_file, &self.plan_options);
        let shares = self.shares.iter().filter(|(_, share)| **share > 0.0005);
        let shares: Vec<String> =
            shares.map(|(name, share)| format!("{:.1}% {name}", share * 100.0)).collect();
        let mut text =
            format!("{} on {}\nmix `{}`: {}", self.design, self.system.line(), self.mix, shares.join(" + "));
        if let Some(application) = &self.application {
            text += &format!(
                "\nchecked by its step lists, which remedies change; `offpath plan` follows the code of {application}, and \
                 `--steps` shows there what is checked here"
            );
        }
        if let Some(gap) = &self.unconfirmed {
            return format!(
                "{text}\n{}\nnothing is measured: a gain over a mix that the twin does not confirm tells nothing\n\
                 next: {plan} says what the mix rests on; `--mix NAME` checks another\n",
                gap.sentence(unit)
            );
        }
        if let Some(moved) = self.unsettled_holds_moved_percent {
            return format!(
                "{text}\nNOT SETTLED: slots are still held {moved:.1}% longer or shorter than was solved for\n\
                 nothing is measured: a gain over a mix whose rate moves on by itself tells nothing\n\
                 next: {plan} says what the mix rests on; `--mix NAME` checks another\n"
            );
        }
        text += &format!(
            "; gains are the twin's, over {} pairs of runs with the same seeds: the intervals of its runs are not of the \
             card, of which each gain says how well it is known\n",
            self.seeds
        );
        for (number, one) in self.advice.iter().enumerate() {
            text += &screen.heading(&format!("{}. {}: {}", number + 1, one.rule, one.headline(unit)));
            text += &format!("{}\nremedy: {}\n", one.why, one.remedy);
            text += &screen.verbatim(&one.diff);
            if one.may_lose() {
                text += "`--fix` leaves this out, since it may lose: measure what it assumes, or write it by hand\n";
            }
            text += &format!("{} says more\n", one.page);
        }
        text.push('\n');
        for one in &self.left_out {
            text += &format!("left out: {one}\n");
        }
        text += &self.outcome(unit);
        if verbose {
            text += &screen.heading("Silent");
            for one in &self.silent {
                for reason in &one.reasons {
                    text += &format!("{}: {reason}\n", one.rule);
                }
            }
        }
        text
    }

    /// What all changes come to, and what to do next.
    fn outcome(&self, unit: Unit) -> String {
        let file = &self.design_file;
        if self.advice.is_empty() {
            return match self.left_out.is_empty() {
                true => format!("nothing to gain: {} rules tried\n", self.rules),
                false => format!("nothing was written to {file}; without `--fix` the changes are shown\n"),
            };
        }
        let together = self.together.as_ref().filter(|_| self.advice.len() > 1);
        let together = together.map(|gain| format!("all together, over all requests: {}\n", gain.text(unit)));
        let sure = self.advice.iter().filter(|one| !one.may_lose()).count();
        let plan = command::spelled("plan", file, &self.plan_options);
        let fix = format!("{} --fix", command::spelled("check", file, &self.options));
        let next = match (self.fixed, self.advice.len()) {
            (true, 1) => format!("wrote 1 change to {file}\nnext: {plan}\n"),
            (true, many) => format!("wrote {many} changes to {file}\nnext: {plan}\n"),
            (false, _) if !self.not_of_the_file.is_empty() => format!(
                "with{} this is not the file's own design on its own system, so that `--fix` is refused: write that into the \
                 file first, or the changes by hand\n",
                as_shell_words(&self.not_of_the_file)
            ),
            // What is found without those that may lose may be more, since each is measured on top of the others.
            (false, all) => match sure {
                0 => String::new(),
                _ if sure == all => {
                    let changes = if all == 1 { "the change" } else { "the changes" };
                    format!("next: {fix} writes {changes}\n")
                }
                _ => format!("next: {fix} writes those that do not lose\n"),
            },
        };
        let silent = format!("{} of {} rules stay silent\n", self.silent.len(), self.rules);
        together.unwrap_or_default() + &next + &silent
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// What has not settled says so, in place of gains.
    #[test]
    fn nothing_is_measured_on_what_has_not_settled() {
        let design = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../designs/echo-headroom.toml");
        let request = CheckRequest { design, seed: 1, ..CheckRequest::default() };
        let answers = check(&request).expect("it is checked");
        let mut answer = answers.all()[0].clone();
        assert!(!answer.measures_nothing(), "{:?}", answer.unconfirmed);
        answer.unsettled_holds_moved_percent = Some(2.34);
        let text = answer.text(&Screen::new(offpath_terminal::output::OutputOptions::default()), false);
        assert!(answer.measures_nothing());
        assert!(text.contains("NOT SETTLED: slots are still held 2.3% longer or shorter"), "{text}");
        assert!(text.contains("nothing is measured") && !text.contains("rules tried"), "{text}");
    }
}
