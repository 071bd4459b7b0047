//! `offpath path`: what one operation on a path costs, what binds it, with confidence intervals.

use super::{Context, answer};
use crate::failure::Failure;
use crate::options;
use crate::output::OutputFile;
use clap::Args;
use offpath::answers::path::{PathAnswers, PathDraft, PathRequest};
use offpath::quantity::Bytes;
use offpath::route::{Posting, Verb};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath path bluefield2 --path client-soc --verb read --size 64B
  offpath path bluefield2 --path soc-host --verb read --size 256KiB    names pcie1.down as binding
  offpath path bluefield2 --verb write --size 4KiB                     one line for each path
  offpath path bluefield2 --path soc-host --post batch:16 --set soc.pcie_mtu=512B --format json
  offpath path bluefield2 --path client-soc --html path.html           the same as a page with charts";

/// Show what an operation on a path costs, what binds it, with confidence intervals
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A device's name, or a .toml file that describes one
    device: String,
    /// Requester and responder, and a DMA engine where one moves the data, as in `client-soc` or
    /// `soc-host-dma` [default: every path from or to the device]
    #[arg(long)]
    path: Option<String>,
    /// What the operation does
    #[arg(long, default_value = "read", value_parser = options::verb())]
    verb: Verb,
    /// Payload, from 0B to 1GiB [default: 64B; an atomic has its own 8B]
    #[arg(long, value_parser = options::payload)]
    size: Option<Bytes>,
    /// How requests reach the NIC: `single`, or `batch:16` for 16 behind one doorbell
    #[arg(long, default_value = "single", value_parser = options::posting)]
    post: Posting,
    /// Also write a page with charts to this file: latency and capacity against payload, the topology
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = PathRequest {
        device: options.device.clone(),
        path: options.path.clone(),
        verb: options.verb,
        payload: options.size,
        posting: options.post,
        system: context.system.clone(),
        over_payloads: options.html.is_some(),
    };
    let draft = PathDraft::load(&request)?;
    let file = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let found = draft.answer()?;
    if let Some(file) = file {
        file.write(found.page().html().as_bytes())?;
    }
    context.screen.emit(&answer(&found, context, PathAnswers::text)?)?;
    Ok(ExitCode::SUCCESS)
}
