//! `offpath device`: which profiles there are, and what one of them says.

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::{Format, OutputFile, emit};
use clap::{Args, Subcommand};
use offpath::answers::device::{self, ListAnswer, list};
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
            answer(&list(&context.system)?, context, ListAnswer::text)?
        }
        Command::Source(source) => {
            context.system.refuse("device source", true)?;
            // The file as it stands: a copy has to be the profile itself, whatever the form of answers.
            emit(&device::source(&context.system, &source.name)?)?;
            return Ok(ExitCode::SUCCESS);
        }
        Command::Show(show) => {
            let shown = device::device(&context.system, &show.device)?;
            if let Some(file) = &show.svg {
                OutputFile::create_page(file)?.write(shown.svg().as_bytes())?;
            }
            match context.screen.format {
                // Whole numbers of base units are exact, and what a user sets stays what it is.
                Format::Json => context.screen.json(&shown)?,
                _ => shown.text(&context.screen),
            }
        }
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}
