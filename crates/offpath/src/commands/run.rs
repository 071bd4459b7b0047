//! `offpath run`: a system on a backend of the user's choice.

use super::Context;
use super::backend::{BackendOptions, run_failed};
use super::systems::{self, Named, refused};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Format, SCHEMA_VERSION, Screen, TableCell, place, round, short};
use crate::progress::Progress;
use clap::{ArgMatches, Args, FromArgMatches};
use offpath::apps::Shipped;
use offpath::apps::system::{
    AppSystem, BackendReport, Block, Cell, Of, Registry, RunPage, SystemRun, Visitor,
};
use offpath::run::{Busiest, play};
use serde::Serialize;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  What does the store reach on the card, by which placement, and what binds it?
    offpath run kv --on twin:bluefield2 --workload workloads/workloadc --clients 11 --sessions 16
  The same with the shares of the best mix of a plan:
    offpath plan designs/kv-ycsb-c.toml --format json > plan.json
    offpath run kv --on twin:bluefield2 --workload workloads/workloadc --mix plan.json
  The same code in one process without a network, and on real queue pairs:
    offpath run kv --on local --workload workloads/workloada
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada
  On two machines, the server's at 10.0.0.1:
    offpath serve kv --on verbs:mlx5_0 --workload workloads/workloada --listen 10.0.0.1:7000
    offpath run kv --on verbs:mlx5_0 --workload workloads/workloada --connect 10.0.0.1:7000
  Where does the host's time go when the card replicates its log?
    offpath run replog --on twin:bluefield2 --placement A2

docs/command-line.md says what the answers mean; docs/kv.md and lab/run how it runs without hardware.";

/// Run an application: on the twin, in one process, or on real queue pairs
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
#[command(subcommand_value_name = "SYSTEM", subcommand_help_heading = "Systems")]
pub struct Options {
    #[command(subcommand)]
    system: Named<false>,
}

/// Runs the system and prints what its users saw.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    of::<Shipped>(&options.system, context)
}

/// Runs a system of a registry.
pub fn of<R: Registry>(named: &Named<false>, context: &Context) -> Result<ExitCode, Failure> {
    let running = Running { arguments: &named.arguments, context };
    R::with(&named.name, running).unwrap_or_else(|| Err(systems::unknown::<R>(&named.name)))
}

/// A run that the command line asks for.
struct Running<'a> {
    arguments: &'a ArgMatches,
    context: &'a Context,
}

impl Visitor for Running<'_> {
    type Out = Result<ExitCode, Failure>;

    fn visit<S: AppSystem>(self) -> Result<ExitCode, Failure> {
        let Running { arguments, context } = self;
        let options = BackendOptions::from_arg_matches(arguments).map_err(systems::unparsed)?;
        let setting = options.setting();
        let run = S::Run::of(&systems::given(S::ABOUT, Of::Run, arguments), &setting).map_err(refused)?;
        let (opened, backend) = options.open(context, &run.servers(), S::ABOUT.placed, None)?;
        run.opened(&backend, &setting);
        let progress = Progress::endless("running the system");
        let played = play(opened, &run, setting.seed);
        drop(progress);
        let (gave, busy) = played.map_err(run_failed)?;
        let said = run.said(gave, &setting).map_err(refused)?;
        let (busiest_stations, binding_station) = busiest(&busy);
        let answer = Answer {
            schema_version: SCHEMA_VERSION,
            system: S::ABOUT.name,
            backend,
            report: said.report,
            binding_station,
            busiest_stations,
        };
        context.screen.emit(&match context.screen.format {
            Format::Json => context.screen.json(&answer)?,
            _ => drawn(&said.page, &answer, &context.screen),
        })?;
        Ok(if said.holds { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
    }
}

/// What a run answers.
#[derive(Serialize)]
struct Answer<R> {
    schema_version: u32,
    system: &'static str,
    #[serde(flatten)]
    backend: BackendReport,
    #[serde(flatten)]
    report: R,
    binding_station: Option<String>,
    busiest_stations: Vec<Busy>,
}

/// A system's page, with the stations of the twin where it wants them.
fn drawn<R>(page: &RunPage, answer: &Answer<R>, screen: &Screen) -> String {
    let entry = |cell: &Cell| match cell.clone() {
        Cell::Name(text) => TableCell::Name(text),
        Cell::Strong(text) => TableCell::Strong(text),
        Cell::Number(text) => TableCell::Number(text),
    };
    let block = |block: &Block| match block {
        Block::Text(text) => text.clone(),
        Block::Heading(text) => screen.heading(text),
        Block::Table(table) => {
            let rows = table.rows.iter().map(|row| row.iter().map(entry).collect()).collect();
            screen.table(&table.header, rows)
        }
        Block::Stations => stations_page(&answer.busiest_stations, answer.binding_station.as_ref(), screen),
    };
    let title = format!("{} on {}: {}\n", answer.system, answer.backend.line, page.title);
    std::iter::once(title).chain(page.blocks.iter().map(block)).collect()
}

/// From which share of its time on a station binds: beyond it a queue grows faster than it empties.
const BINDS_FROM: f64 = 0.95;
/// How many stations are shown.
const STATIONS: usize = 5;

/// A station of the twin on the machine where it was busiest.
#[derive(Debug, Serialize)]
struct Busy {
    station: String,
    role: String,
    machine: u32,
    machines: u64,
    utilization: f64,
}

impl Busy {
    /// The station and its machine, in words.
    fn place(&self) -> String {
        place(&self.station, &self.role, self.machine, self.machines)
    }
}

/// The busiest stations, and which of them binds.
fn busiest(busy: &[Busiest]) -> (Vec<Busy>, Option<String>) {
    let binding = busy.first().filter(|one| one.share >= BINDS_FROM).map(|one| one.station.clone());
    let of = |one: &Busiest| Busy {
        station: one.station.clone(),
        role: one.role.clone(),
        machine: one.machine,
        machines: one.machines,
        utilization: round(one.share),
    };
    (busy.iter().filter(|one| one.share > 0.0).take(STATIONS).map(of).collect(), binding)
}

/// What binds in a line, and the busiest stations below it.
fn stations_page(busy: &[Busy], binding: Option<&String>, screen: &Screen) -> String {
    let Some(first) = busy.first() else { return String::new() };
    let percent = |share: f64| format!("{}%", short(share * 100.0));
    let mut text = screen.heading(&match binding {
        Some(_) => format!("{} binds", first.place()),
        None => format!("Nothing binds; the busiest is {}, at {}", first.place(), percent(first.utilization)),
    });
    let rows = busy
        .iter()
        .map(|busy| vec![TableCell::Name(busy.place()), TableCell::Number(percent(busy.utilization))])
        .collect();
    text += &screen.table(&["station", "busy"], rows);
    text
}
