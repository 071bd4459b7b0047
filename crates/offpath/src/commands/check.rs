//! `offpath check`: what a design could do better, each remedy measured on the twin.

use super::Context;
use super::plan::{Unit, WhatIf, opened, unplanned};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{
    Format, SCHEMA_VERSION, Screen, replace, round, short, signed, system_line, tell_mode, unwritable,
};
use crate::progress::Progress;
use clap::Args;
use offpath::plan::advice::{self, Advice, Advised, Depth, Edit, Gain, RULES, SEEDS, Scope, TrialBench};
use offpath::plan::check::{Fullest, Gap};
use offpath::plan::{Changes, Design, Objective};
use offpath::quantity::Time;
use offpath::twin::Seed;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath check designs/three-mistakes.toml             what gains, and how much
  offpath check designs/three-mistakes.toml --fix       and write it to the file
  offpath check designs/kv-ycsb-c.toml --verbose        why each rule stays silent
  offpath check designs/kv-ycsb-c.toml --mix A1         as if every request took one alternative
  offpath check designs/three-mistakes.toml --format json";

/// Look for changes of a design that gain, each measured on the twin
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// The design file; `offpath new` writes one
    design: PathBuf,
    #[command(flatten)]
    what_if: WhatIf,
    /// Write the changes to the file; its comments stay
    #[arg(long)]
    fix: bool,
    /// Look at this mix or alternative, and not at what the design runs; `optimal` and `greedy` too
    #[arg(long, value_name = "NAME")]
    mix: Option<String>,
    /// Say why each rule stays silent
    #[arg(long)]
    verbose: bool,
    /// The seed of every draw; the same seed gives the same bytes
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

/// Checks, prints, and writes the changes where that is asked for.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let otherwise = [options.what_if.arguments(), context.system.arguments()].concat();
    if options.fix && !otherwise.is_empty() {
        return Err(Failure::input(
            format!(
                "`--fix` writes what gains for the design of the file on its own system, and not with {}",
                otherwise.join(" ")
            ),
            "leave `--fix` out, or write the change into the file first",
        ));
    }
    let changes = options.what_if.changes();
    let given = Changes { mix: options.mix.clone(), ..changes.clone() };
    let (design, setting) = opened(&options.design, &given, context)?;
    // A mix from the command line is put into the text, so that a remedy may choose another.
    let mut text = design.source.1.clone();
    if let Some(mix) = &options.mix
        && let Some(mut edit) = Edit::new(&text)
        && edit.design("mix", mix).is_some()
    {
        text = edit.text();
    }
    let directory = options.design.parent().unwrap_or(Path::new("."));
    let bench = TrialBench::new(&design.source.0, directory, &changes, &setting, Seed::new(options.seed));
    let progress = Progress::endless("measuring on the twin what each rule would change");
    let depth = if options.fix { Depth::Sure } else { Depth::Every };
    let advised = advice::advise(&bench, &text, depth).map_err(unplanned)?;
    drop(progress);
    let system = setting.system(&design, &design.device)?;
    tell_mode(&system);
    let fixed = options.fix && !advised.advice.is_empty();
    if fixed {
        write(&options.design, &design.source.1, &advised.text)?;
    }
    let text = match context.screen.format {
        Format::Json => context.screen.json(&Report::of(&design, &system.device, &advised, fixed))?,
        Format::Table | Format::Markdown => {
            let head = format!("{} on {}\n", design.name, system_line(&system));
            head + &page(&design, &advised, &context.screen, options, fixed)
        }
    };
    context.screen.emit(&text)?;
    Ok(if advised.unconfirmed.is_some() { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

/// Writes the changed design where nobody wrote another one meanwhile, its lines ending as they did.
fn write(file: &Path, given: &str, changed: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::input(
            format!("`{}` cannot be written: {error}", file.display()),
            "check that the file and its folder may be written, or leave `--fix` out and change it by hand",
        )
    };
    if std::fs::read_to_string(file).map_err(failed)? != given {
        return Err(Failure::input(
            format!("`{}` was changed while it was checked, and is left as it is", file.display()),
            "run it again on the file as it is now",
        ));
    }
    let changed = match given.contains("\r\n") {
        true => changed.replace("\r\n", "\n").replace('\n', "\r\n"),
        false => changed.to_string(),
    };
    // What a link names is replaced, not the link.
    let target = file.canonicalize().map_err(failed)?;
    replace(&target, changed.as_bytes()).map_err(|error| unwritable(file, &error))
}

fn page(design: &Design, advised: &Advised, screen: &Screen, options: &Options, fixed: bool) -> String {
    let unit = Unit::of(design);
    let shown = options.design.display();
    let shares: Vec<String> = advised
        .shares
        .iter()
        .filter(|(_, share)| *share > 0.0005)
        .map(|(name, share)| format!("{:.1}% {name}", share * 100.0))
        .collect();
    let mut mix = format!("mix `{}`: {}", advised.runs, shares.join(" + "));
    if let Some(application) = &design.application {
        mix += &format!(
            "\nchecked by its step lists, which remedies change; `offpath plan` follows the code of {}, and `--steps` \
             shows there what is checked here",
            application.title()
        );
    }
    if let Some(gap) = &advised.unconfirmed {
        return format!(
            "{mix}\n{}\nnothing is measured: a gain over a mix that the twin does not confirm tells nothing\n\
             next: offpath plan {shown} says what the mix rests on; `--mix NAME` checks another\n",
            gap_text(gap, &|rate| short(unit.of_rate(rate)), unit.name())
        );
    }
    let mut text = format!(
        "{mix}; gains are the twin's, over {SEEDS} pairs of runs with the same seeds: their intervals are of these runs, \
         not of the card, of which `offpath plan` says how well it is known\n"
    );
    for (number, one) in advised.advice.iter().enumerate() {
        text += &screen.heading(&format!(
            "{}. {}: {}",
            number + 1,
            one.rule,
            headline(one, advised.objective, unit)
        ));
        text += &format!("{}\n", one.why);
        text += &format!("remedy: {}\n", one.remedy);
        text += &screen.verbatim(&one.diff);
        if one.may_lose() {
            text +=
                "`--fix` leaves this out, since it may lose: measure what it assumes, or write it by hand\n";
        }
        text += &format!("docs/advice/{}.md says more\n", one.rule);
    }
    text.push('\n');
    for one in &advised.left_out {
        text += &format!("left out: {one}\n");
    }
    let sure = advised.advice.iter().filter(|one| !one.may_lose()).count();
    let silent = advised.silent.len();
    if advised.advice.is_empty() {
        text += &match advised.left_out.is_empty() {
            true => format!("nothing to gain: {} rules tried\n", RULES.len()),
            false => format!("nothing was written to {shown}; without `--fix` the changes are shown\n"),
        };
    } else {
        if let Some(together) = advised.together.filter(|_| advised.advice.len() > 1) {
            text += &format!(
                "all together, over all requests: {}\n",
                measured(&together, advised.objective, unit)
            );
        }
        text += &match (fixed, advised.advice.len()) {
            (true, 1) => format!("wrote 1 change to {shown}\nnext: offpath plan {shown}\n"),
            (true, many) => format!("wrote {many} changes to {shown}\nnext: offpath plan {shown}\n"),
            // What is found without those that may lose may be more, since each is measured on top of the others.
            (false, all) => match sure {
                0 => String::new(),
                _ if sure == all => {
                    let changes = if all == 1 { "the change" } else { "the changes" };
                    format!("next: offpath check {shown} --fix writes {changes}\n")
                }
                _ => format!("next: offpath check {shown} --fix writes those that do not lose\n"),
            },
        };
        text += &format!("{silent} of {} rules stay silent\n", RULES.len());
    }
    if options.verbose {
        text += &screen.heading("Silent");
        for one in &advised.silent {
            for reason in &one.reasons {
                text += &format!("{}: {reason}\n", one.rule);
            }
        }
    }
    text
}

/// Where the twin carries something else than the plan says, in a sentence.
pub fn gap_text(gap: &Gap, rate: &dyn Fn(f64) -> String, unit: &str) -> String {
    if let Some(why) = &gap.blind {
        return format!("THE TWIN CONFIRMS NOTHING: {why}; the plan rests on adding up its steps alone");
    }
    if gap.is_unclear() {
        let (low, high) = gap.carried_95_per_s;
        return format!(
            "THE TWIN DOES NOT TELL: it carries {} to {} {unit} (95%) where {} are planned; rare or long requests \
             scatter it further than its longest window settles",
            rate(low.max(0.0)),
            rate(high),
            rate(gap.planned_per_s)
        );
    }
    let off = (gap.carried_per_s / gap.planned_per_s - 1.0) * 100.0;
    let filled = gap.fullest.as_ref().map_or_else(String::new, |full| {
        let which = match full.machines {
            0 | 1 => String::new(),
            machines => format!(" of machine {} of {machines}", full.machine + 1),
        };
        format!(
            "; {} ({}){which} is the fullest, busy {:.0}% of its time",
            full.station,
            full.meaning,
            full.busy * 100.0
        )
    });
    format!(
        "TWIN AND PLAN DIFFER: the twin carries {} of the {} {unit} planned ({}, {:.0}% is let pass){filled}; \
         the smaller figure is the safer one",
        rate(gap.carried_per_s),
        rate(gap.planned_per_s),
        signed(off, 1),
        gap.allowed * 100.0
    )
}

/// What a remedy gains, for which requests.
pub(super) fn headline(one: &Advice, objective: Objective, unit: Unit) -> String {
    let mut gain = measured(&one.gain, objective, unit);
    if let Some(brings) = &one.brings {
        let (least, most) = (signed(brings.least * 100.0, 1), signed(brings.most * 100.0, 1));
        let (numbers, are) =
            (brings.numbers.join(" and "), if brings.numbers.len() > 1 { "are" } else { "is" });
        gain += &match least == most {
            true => format!("; it adds {numbers}, which {are} assumed and moves this by nothing"),
            false => format!(
                "; it adds {numbers}, which {are} assumed: {least} to {most} by added-up demands over its interval"
            ),
        };
    }
    for (variant, there) in &one.with_variants {
        let there = there.map_or_else(
            || "no plan".to_string(),
            |there| format!("{} by added-up demands", signed(there * 100.0, 1)),
        );
        gain += &format!("; {there} under {variant}, which the evidence leaves open");
    }
    match &one.scope {
        Scope::Operation(name) => format!("`{name}` alone {gain}"),
        Scope::All => gain,
    }
}

/// A gain with what it is of.
fn measured(gain: &Gain, objective: Objective, unit: Unit) -> String {
    let of = |value: f64| match objective {
        Objective::MostThroughput => unit.text(value),
        _ => Time::from_seconds(value).to_string(),
    };
    let what = match objective {
        Objective::MostThroughput => "throughput",
        Objective::LowestP99 { .. } => "less p99",
        Objective::LeastHostCpu { .. } => "less host processor time",
    };
    format!("{} {what} ({} to {})", advice::interval(gain), of(gain.before), of(gain.after))
}

/// A gain in JSON.
#[derive(Serialize)]
pub struct GainReport {
    gain_percent: f64,
    gain_ci95_low_percent: f64,
    gain_ci95_high_percent: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_before_req_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    throughput_after_req_per_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_before_us_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latency_after_us_p99: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_cpu_before_us_per_request: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    host_cpu_after_us_per_request: Option<f64>,
}

impl GainReport {
    fn of(gain: &Gain, objective: Objective) -> GainReport {
        let throughput = |value: f64| matches!(objective, Objective::MostThroughput).then(|| round(value));
        let p99 = |value: f64| matches!(objective, Objective::LowestP99 { .. }).then(|| round(value * 1e6));
        let host =
            |value: f64| matches!(objective, Objective::LeastHostCpu { .. }).then(|| round(value * 1e6));
        GainReport {
            gain_percent: round(gain.share.mean * 100.0),
            gain_ci95_low_percent: round(gain.share.low * 100.0),
            gain_ci95_high_percent: round(gain.share.high * 100.0),
            throughput_before_req_per_s: throughput(gain.before),
            throughput_after_req_per_s: throughput(gain.after),
            latency_before_us_p99: p99(gain.before),
            latency_after_us_p99: p99(gain.after),
            host_cpu_before_us_per_request: host(gain.before),
            host_cpu_after_us_per_request: host(gain.after),
        }
    }
}

/// A remedy in JSON.
#[derive(Serialize)]
pub struct AdviceReport {
    rule: &'static str,
    source: &'static str,
    why: String,
    remedy: String,
    diff: String,
    operation: Option<String>,
    gain: GainReport,
    #[serde(skip_serializing_if = "Option::is_none")]
    brings: Option<BringsReport>,
    gain_percent_by_overlay: BTreeMap<String, Option<f64>>,
    page: String,
}

/// Numbers that a remedy states itself, and the gain at the ends of their intervals.
#[derive(Serialize)]
struct BringsReport {
    numbers: Vec<String>,
    gain_percent_least: f64,
    gain_percent_most: f64,
    /// Whether `--fix` leaves the remedy out for it.
    may_lose: bool,
}

impl AdviceReport {
    /// What the answer says of a remedy.
    pub fn of(one: &Advice, objective: Objective) -> AdviceReport {
        let rule = RULES.iter().find(|rule| rule.name == one.rule);
        AdviceReport {
            rule: one.rule,
            source: rule.map_or("", |rule| rule.source),
            why: one.why.clone(),
            remedy: one.remedy.clone(),
            diff: one.diff.clone(),
            operation: match &one.scope {
                Scope::Operation(name) => Some(name.clone()),
                Scope::All => None,
            },
            gain: GainReport::of(&one.gain, objective),
            brings: one.brings.as_ref().map(|brings| BringsReport {
                numbers: brings.numbers.clone(),
                gain_percent_least: round(brings.least * 100.0),
                gain_percent_most: round(brings.most * 100.0),
                may_lose: brings.may_lose(),
            }),
            gain_percent_by_overlay: one
                .with_variants
                .iter()
                .map(|(variant, gain)| (variant.clone(), gain.map(|gain| round(gain * 100.0))))
                .collect(),
            page: format!("docs/advice/{}.md", one.rule),
        }
    }
}

#[derive(Serialize)]
struct SilenceReport {
    rule: &'static str,
    reasons: Vec<String>,
}

#[derive(Serialize)]
struct Report {
    schema_version: u32,
    design: String,
    device: String,
    mix: String,
    shares: BTreeMap<String, f64>,
    seeds: u64,
    least_gain_percent: f64,
    advice: Vec<AdviceReport>,
    together: Option<GainReport>,
    silent: Vec<SilenceReport>,
    left_out: Vec<String>,
    fixed: bool,
    unconfirmed: Option<UnconfirmedReport>,
}

/// What differs, where nothing was measured.
#[derive(Serialize)]
struct UnconfirmedReport {
    planned_req_per_s: f64,
    carried_req_per_s: f64,
    difference_percent: f64,
    allowed_percent: f64,
    fullest: Option<FullestReport>,
    blind_because: Option<String>,
}

impl UnconfirmedReport {
    fn of(gap: &Gap) -> UnconfirmedReport {
        UnconfirmedReport {
            planned_req_per_s: round(gap.planned_per_s),
            carried_req_per_s: round(gap.carried_per_s),
            difference_percent: round((gap.carried_per_s / gap.planned_per_s - 1.0) * 100.0),
            allowed_percent: round(gap.allowed * 100.0),
            fullest: gap.fullest.clone().map(FullestReport::of),
            blind_because: gap.blind.clone(),
        }
    }
}

/// The fullest station in JSON.
#[derive(Serialize)]
pub struct FullestReport {
    station: String,
    meaning: String,
    machine: u32,
    machines: u64,
    utilization: f64,
}

impl FullestReport {
    /// What the answer says of it.
    pub fn of(full: Fullest) -> FullestReport {
        let Fullest { station, meaning, machine, machines, busy } = full;
        FullestReport { station, meaning, machine, machines, utilization: round(busy) }
    }
}

impl Report {
    fn of(design: &Design, device: &str, advised: &Advised, fixed: bool) -> Report {
        Report {
            schema_version: SCHEMA_VERSION,
            design: design.name.clone(),
            device: device.to_string(),
            mix: advised.runs.clone(),
            shares: advised.shares.iter().map(|(name, share)| (name.clone(), round(*share))).collect(),
            seeds: SEEDS,
            least_gain_percent: advice::LEAST_GAIN * 100.0,
            advice: advised.advice.iter().map(|one| AdviceReport::of(one, advised.objective)).collect(),
            together: advised.together.as_ref().map(|gain| GainReport::of(gain, advised.objective)),
            left_out: advised.left_out.clone(),
            silent: advised
                .silent
                .iter()
                .map(|one| SilenceReport { rule: one.rule, reasons: one.reasons.clone() })
                .collect(),
            fixed,
            unconfirmed: advised.unconfirmed.as_ref().map(UnconfirmedReport::of),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::write;
    use std::fs;

    /// An editor that saved while the twin ran has the last word, and lines end as they did.
    #[test]
    fn a_file_is_written_as_it_was_found_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("design.toml");
        fs::write(&file, "a = 1\r\nb = 2\r\n").expect("it can be written");
        write(&file, "a = 1\r\nb = 2\r\n", "a = 1\nb = 3\n").unwrap_or_else(|_| panic!("nobody changed it"));
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "a = 1\r\nb = 3\r\n");
        assert!(write(&file, "a = 1\r\nb = 2\r\n", "a = 1\nb = 4\n").is_err(), "it was changed");
        assert_eq!(fs::read_to_string(&file).expect("it is there"), "a = 1\r\nb = 3\r\n");
    }
}
