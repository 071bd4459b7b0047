//! The commands, each in a module of its own: add one by a variant of [`Command`] and an arm of [`run`].

pub mod backend;
pub mod calibrate;
pub mod check;
pub mod collect;
pub mod compare;
pub mod completions;
pub mod device;
pub mod diagnose;
pub mod explain;
pub mod export;
pub mod fit;
pub mod import;
pub mod measure;
pub mod new;
pub mod path;
mod perftest;
pub mod plan;
pub mod reproduce;
pub mod run;
pub mod serve;
pub mod service;
pub mod sweep;
pub mod systems;
pub mod torture;
pub mod watch;
pub mod whatif;

use crate::failure::Failure;
use crate::options::SystemOptions;
use crate::output::{Format, OutputOptions, Screen, rounded_json};
use crate::progress::Progress;
use clap::{Parser, Subcommand};
use offpath::learn::PhaseProgress;
pub use offpath_terminal::Context;
use serde::Serialize;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  Start a design of your own, and plan it:
    offpath new store && offpath plan store.toml
  Is a card worth it for a design?
    offpath compare designs/kv-ycsb-c.toml --device bluefield2,connectx6
  What would a design gain if the card were otherwise, as papers suggest to its makers?
    offpath whatif designs/replication.toml
  What does a 64 B READ of the card's SoC memory cost, and what binds it?
    offpath path bluefield2 --path client-soc --verb read --size 64B
  What if the SoC took larger TLPs?
    offpath path bluefield2 --path soc-host --size 256KiB --set soc.pcie_mtu=512B
  Where does each number come from?
    offpath device show bluefield2
  Load every path from 1 to 8 clients on the twin:
    offpath sweep bluefield2 --path client-soc,client-host --clients 1,2,4,8 --out sweep.csv
  How far are the predictions from what was published?
    offpath reproduce
  What would narrow a plan most, and what does a card do?
    offpath measure twin:bluefield2 --suggest designs/kv-ycsb-c.toml
    offpath measure verbs:mlx5_0 --connect host=10.0.0.1:7000 -o mycard.jsonl
  What do my own measurements say?
    offpath import ib_write_bw.log
  Are my own measurements what they should be?
    offpath diagnose ib_read_bw.log --device connectx6
  What is my machine, and is anything odd about it?
    offpath collect
  Learn a card from them, and plan with it:
    offpath calibrate *.log --base bluefield3 -o mycard.toml
    offpath plan designs/kv-ycsb-c.toml --device mycard.toml
  Does a running system do what was planned?
    offpath watch --expect plan.json

Exit codes:
  0   the answer is printed
  1   the tool ran, and the answer is negative: infeasible, stalled, not met
  2   the input is wrong: an unknown name, a missing unit, a file that is refused
  70  a bug of offpath itself
  74  the answer cannot be written, as on a full disk";

/// Size and plan SmartNIC offloads
///
/// offpath knows what each path of an off-path SmartNIC costs, what binds it, with confidence intervals,
/// and finds the mix of offload alternatives that carries the most.
#[derive(Parser, Debug)]
#[command(name = "offpath", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    pub system: SystemOptions,
    #[command(flatten)]
    pub output: OutputOptions,
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub enum Command {
    New(new::Options),
    Plan(plan::Options),
    Check(check::Options),
    Compare(compare::Options),
    #[command(name = "whatif")]
    WhatIf(whatif::Options),
    Path(path::Options),
    Device(device::Options),
    Sweep(sweep::Options),
    Reproduce(reproduce::Options),
    Explain(explain::Options),
    Fit(fit::Options),
    Measure(measure::Options),
    Import(import::Options),
    Collect(collect::Options),
    Diagnose(diagnose::Options),
    Calibrate(calibrate::Options),
    Watch(watch::Options),
    Export(export::Options),
    /// Replicate a Redis or Valkey master, which serves one copy, to many replicas (a program of its own)
    #[command(disable_help_flag = true)]
    Relay(service::Options),
    /// Distribute a Redis Cluster's hash slots, or a MongoDB collection, across host and DPU
    #[command(disable_help_flag = true)]
    Shard(service::Options),
    Run(run::Options),
    Serve(serve::Options),
    Torture(torture::Options),
    Completions(completions::Options),
}

/// An answer in the form that was asked for, to be printed.
fn answer<A: Serialize>(
    answer: &A,
    context: &Context,
    text: impl Fn(&A, &Screen) -> String,
) -> Result<String, Failure> {
    match context.screen.format {
        Format::Json => rounded_json(answer),
        Format::Table | Format::Markdown | Format::Csv => Ok(text(answer, &context.screen)),
    }
}

/// Runs the command; the exit code is that of its answer.
pub fn run(cli: Cli) -> Result<ExitCode, Failure> {
    if !matches!(cli.command, Command::Import(_)) {
        cli.output.refuse_csv()?;
    }
    let context = Context { system: cli.system, screen: Screen::new(cli.output) };
    let system = &context.system;
    match &cli.command {
        Command::Fit(_) => system.refuse("fit", true)?,
        Command::Serve(_) => system.refuse("serve", true)?,
        Command::Completions(_) => system.refuse("completions", false)?,
        Command::Import(_) => system.refuse("import", false)?,
        Command::Collect(_) => system.refuse("collect", false)?,
        Command::Watch(_) => system.refuse("watch", false)?,
        _ => {}
    }
    match cli.command {
        Command::New(options) => new::run(&options, &context),
        Command::Plan(options) => plan::run(&options, &context),
        Command::Check(options) => check::run(&options, &context),
        Command::Compare(options) => compare::run(&options, &context),
        Command::WhatIf(options) => whatif::run(&options, &context),
        Command::Path(options) => path::run(&options, &context),
        Command::Device(options) => device::run(&options, &context),
        Command::Sweep(options) => sweep::run(&options, &context),
        Command::Reproduce(options) => reproduce::run(&options, &context),
        Command::Explain(options) => explain::run(&options, &context),
        Command::Fit(options) => fit::run(&options, &context),
        Command::Measure(options) => measure::run(&options, &context),
        Command::Import(options) => import::run(&options, &context),
        Command::Collect(options) => collect::run(&options, &context),
        Command::Diagnose(options) => diagnose::run(&options, &context),
        Command::Calibrate(options) => calibrate::run(&options, &context),
        Command::Watch(options) => watch::run(&options, &context),
        Command::Export(options) => export::run(&options, &context),
        Command::Relay(_) => service::run("relay"),
        Command::Shard(_) => service::run("shard"),
        Command::Run(options) => run::run(&options, &context),
        Command::Serve(options) => serve::run(&options, &context),
        Command::Torture(options) => torture::run(&options, &context),
        Command::Completions(options) => completions::run(&options),
    }
}

/// Phases of what takes minutes, as its user sees them.
#[derive(Debug)]
struct Shown(Progress);

impl PhaseProgress for Shown {
    fn phase(&self, what: &str, steps: u64) {
        self.0.phase(what, steps);
    }

    fn step(&self) {
        self.0.advance();
    }
}
