//! `offpath device`: which profiles there are, and what one of them says.

use super::Context;
use crate::failure::{Failure, nearest};
use crate::output::{Format, OutputFile, SCHEMA_VERSION, TableCell, emit, system_line};
use crate::topology;
use clap::{Args, Subcommand};
use offpath::profile::{Category, Listed, Machine, Number, Provenance, System};
use offpath::quantity::{Dimension, Quantity};
use offpath::report::Topology;
use serde::Serialize;
use std::path::PathBuf;
use std::process::ExitCode;

/// List the profiles, or show one device with the source of every number
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

const LIST_EXAMPLES: &str = "\
Examples:
  offpath device list
  offpath device list --profiles my-profiles --format json";

const SHOW_EXAMPLES: &str = "\
Examples:
  offpath device show bluefield2
  offpath device show bluefield2 --svg bluefield2.svg
  offpath device show bluefield2 --set soc.pcie_mtu=512B --format json
  offpath device show my-card.toml";

const SOURCE_EXAMPLES: &str = "\
Examples:
  offpath device source bluefield2 > my-card.toml
  offpath device show my-card.toml
  offpath path my-card.toml --path client-soc";

#[derive(Subcommand, Debug)]
enum Command {
    /// List devices, hosts, testbeds and overlays
    #[command(after_help = LIST_EXAMPLES)]
    List,
    /// Draw a device in its testbed and print every number with its source
    #[command(after_help = SHOW_EXAMPLES)]
    Show(Show),
    /// Print a profile's file, to start one of your own from
    #[command(after_help = SOURCE_EXAMPLES)]
    Source(Source),
}

#[derive(Args, Debug)]
struct Source {
    /// The name of a device, host, testbed or overlay
    name: String,
}

#[derive(Args, Debug)]
struct Show {
    /// A device's name, or a .toml file that describes one
    device: String,
    /// Also write the topology to this file, as an SVG picture
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let text = match &options.command {
        Command::List => {
            context.system.refuse("device list", true)?;
            list(context)?
        }
        Command::Source(source) => {
            context.system.refuse("device source", true)?;
            // The file as it stands: a copy has to be the profile itself, whatever the form of answers.
            emit(&file(&source.name, context)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Show(show) => {
            let library = context.system.library()?;
            let system = context.system.load(&library, &show.device, &[])?;
            if let Some(file) = &show.svg {
                OutputFile::create_page(file)?.write(Topology::file(&system).as_bytes())?;
            }
            match context.screen.format {
                Format::Json => context.screen.json(&report(&system))?,
                _ => shown(&system, context),
            }
        }
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// The text of the profile of a name, whatever it describes.
fn file(name: &str, context: &Context) -> Result<String, Failure> {
    let library = context.system.library()?;
    let found = Category::ALL.into_iter().find_map(|category| library.source(category, name).ok());
    found.map(str::to_string).ok_or_else(|| {
        let names = Category::ALL.into_iter().flat_map(|category| library.names(category));
        let names: Vec<String> = names.map(|listed| listed.name).collect();
        let near = nearest(name, &names).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        Failure::input(
            format!("there is no profile `{name}`"),
            format!("{near}known: {}; `offpath device list` says what they are", names.join(", ")),
        )
    })
}

#[derive(Serialize)]
struct ListReport {
    schema_version: u32,
    devices: Vec<ListedReport>,
    hosts: Vec<ListedReport>,
    testbeds: Vec<ListedReport>,
    overlays: Vec<ListedReport>,
}

#[derive(Serialize)]
struct ListedReport {
    name: String,
    description: String,
    file: String,
}

fn list(context: &Context) -> Result<String, Failure> {
    let library = context.system.library()?;
    let screen = &context.screen;
    if screen.format == Format::Json {
        let names = |category| {
            let report =
                |Listed { name, description, file }: Listed| ListedReport { name, description, file };
            library.names(category).into_iter().map(report).collect()
        };
        return screen.json(&ListReport {
            schema_version: SCHEMA_VERSION,
            devices: names(Category::Device),
            hosts: names(Category::Host),
            testbeds: names(Category::Testbed),
            overlays: names(Category::Overlay),
        });
    }
    let mut text = String::new();
    for category in Category::ALL {
        text += &screen.heading(category.directory());
        let rows = library
            .names(category)
            .into_iter()
            .map(|listed| vec![TableCell::Strong(listed.name), TableCell::Text(listed.description)])
            .collect();
        text += &screen.table(&["name", "description"], rows);
    }
    Ok(text.trim_start_matches('\n').to_string())
}

#[derive(Serialize)]
struct ShowReport {
    schema_version: u32,
    device: String,
    testbed: String,
    mode: String,
    mode_note: Option<&'static str>,
    overlays: Vec<String>,
    multiplied: Vec<MultipliedReport>,
    machines: Vec<MachineReport>,
    numbers: Vec<NumberReport>,
}

/// What the model takes so many times another number, by an overlay.
#[derive(Serialize)]
struct MultipliedReport {
    name: String,
    times: f64,
    of: String,
    text: String,
    overlay: String,
}

#[derive(Serialize)]
struct MachineReport {
    role: String,
    device: String,
    host: String,
    count: u64,
    available: u64,
    nic: String,
    switches: Vec<String>,
    endpoints: Vec<String>,
    engines: Vec<EngineReport>,
    links: Vec<LinkReport>,
    absent_endpoints: Vec<String>,
}

#[derive(Serialize)]
struct EngineReport {
    name: String,
    endpoint: String,
}

#[derive(Serialize)]
struct LinkReport {
    name: String,
    from: String,
    to: String,
    delay_ns: f64,
    /// In each direction; absent for a wire that binds nothing.
    rate_gbit_per_s: Option<f64>,
}

#[derive(Serialize)]
struct NumberReport {
    name: String,
    component: String,
    value: f64,
    low: Option<f64>,
    high: Option<f64>,
    unit: &'static str,
    text: String,
    provenance: &'static str,
    source: String,
    rows: Vec<String>,
    note: String,
    file: String,
}

fn report(system: &System) -> ShowReport {
    ShowReport {
        schema_version: SCHEMA_VERSION,
        device: system.device.clone(),
        testbed: system.testbed.clone(),
        mode: system.mode.clone(),
        mode_note: system.mode_note(),
        overlays: system.overlays.clone(),
        multiplied: system
            .scales
            .iter()
            .map(|scale| MultipliedReport {
                name: scale.name.clone(),
                times: scale.times,
                of: scale.of.clone(),
                text: scale.value.to_string(),
                overlay: scale.overlay.clone(),
            })
            .collect(),
        machines: system.machines.iter().map(machine).collect(),
        numbers: system
            .numbers
            .iter()
            .map(|(name, number)| NumberReport {
                name: name.clone(),
                component: component(name).to_string(),
                value: number.value.base(),
                low: number.low.map(Quantity::base),
                high: number.high.map(Quantity::base),
                unit: base_unit(number.value.dimension()),
                text: number.value.to_string(),
                provenance: provenance(number.provenance),
                source: number.source.clone(),
                rows: number.rows.clone(),
                note: number.note.clone(),
                file: number.file.clone(),
            })
            .collect(),
    }
}

fn machine(machine: &Machine) -> MachineReport {
    MachineReport {
        role: machine.role.clone(),
        device: machine.device.clone(),
        host: machine.host.clone(),
        count: machine.count,
        available: machine.available,
        nic: machine.nic.name.clone(),
        switches: machine.switches.iter().map(|switch| switch.name.clone()).collect(),
        endpoints: machine.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect(),
        engines: machine
            .engines
            .iter()
            .map(|engine| EngineReport { name: engine.name.clone(), endpoint: engine.endpoint.clone() })
            .collect(),
        links: machine
            .links
            .iter()
            .map(|link| LinkReport {
                name: link.name.clone(),
                from: link.from.clone(),
                to: link.to.clone(),
                delay_ns: link.delay.as_ns(),
                rate_gbit_per_s: link.pcie.as_ref().map(|pcie| pcie.rate.as_gbit_per_s()),
            })
            .collect(),
        absent_endpoints: machine.absent.clone(),
    }
}

/// The part of a dotted name before its key.
fn component(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(component, _)| component)
}

/// The unit of the numbers in JSON: integers of it are exact.
fn base_unit(dimension: Dimension) -> &'static str {
    match dimension {
        Dimension::Time => "ps",
        Dimension::Bytes => "B",
        Dimension::BitRate => "bit/s",
        Dimension::OpRate => "1/s",
        Dimension::Frequency => "Hz",
        Dimension::Ratio => "ratio",
        Dimension::Count => "count",
    }
}

fn provenance(provenance: Provenance) -> &'static str {
    match provenance {
        Provenance::Datasheet => "datasheet",
        Provenance::Measured => "measured",
        Provenance::Fitted => "fitted",
        Provenance::Assumed => "assumed",
        Provenance::CarriedOver => "carried-over",
        Provenance::Set => "set",
    }
}

fn shown(system: &System, context: &Context) -> String {
    let screen = &context.screen;
    let mut text = format!("{}\n", system_line(system));
    if let Some(note) = system.mode_note() {
        text += &format!("Note: {note}.\n");
    }
    for scale in &system.scales {
        let (name, times, of, value) = (&scale.name, scale.times, &scale.of, scale.value);
        text +=
            &format!("Overlay {}: the model takes {value} for {name}, {times} times {of}.\n", scale.overlay);
    }
    text += &screen.heading("Topology");
    let drawings: Vec<String> = system.machines.iter().map(topology::draw).collect();
    let network = format!(
        "network: {} between two ports, packets of up to {}",
        system.network.delay, system.network.mtu
    );
    text += &screen.verbatim(&format!("{}\n{network}", drawings.join("\n")));
    // The device's own components come first, in the order of names within each.
    let own =
        |name: &str| system.machines.iter().all(|m| m.prefix.is_empty() || !name.starts_with(&m.prefix));
    let mut components: Vec<&str> = system.numbers.keys().map(|name| component(name)).collect();
    // Names sort `backup.soc.ddio` between two numbers of `backup` itself.
    components.sort_unstable();
    components.dedup();
    components.sort_by_key(|component| !own(&format!("{component}.")));
    for component in components {
        text += &screen.heading(component);
        let numbers = system.numbers.iter().filter(|(name, _)| self::component(name) == component);
        let rows = numbers.map(|(name, number)| row(name, number)).collect();
        text += &screen.table(&["number", "value", "interval", "provenance", "source", "rows", "note"], rows);
    }
    text
}

fn row(name: &str, number: &Number) -> Vec<TableCell> {
    let end = |end: Option<Quantity>| end.unwrap_or(number.value);
    let interval = match (number.low, number.high) {
        (None, None) => "-".to_string(),
        (low, high) => format!("{} to {}", end(low), end(high)),
    };
    let or_dash = |text: String| if text.is_empty() { "-".to_string() } else { text };
    vec![
        TableCell::Strong(name.to_string()),
        TableCell::Number(number.value.to_string()),
        TableCell::Text(interval),
        TableCell::Text(provenance(number.provenance).to_string()),
        TableCell::Text(number.source.clone()),
        TableCell::Text(or_dash(number.rows.join(" "))),
        TableCell::Text(or_dash(number.note.clone())),
    ]
}
