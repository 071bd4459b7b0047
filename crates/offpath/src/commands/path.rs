//! `offpath path`: what one operation on a path costs, what binds it, with confidence intervals.

use super::{Context, answer};
use crate::failure::Failure;
use crate::options;
use crate::output::OutputFile;
use clap::Args;
use clap::builder::PossibleValuesParser;
use offpath::answers::path::{PathAnswers, PathDraft, PathRequest};
use offpath::answers::tool::{ToolAnswer, ToolRequest, tool, tool_programs};
use offpath::learn::{MOST_DEPTH, MOST_QUEUE_PAIRS};
use offpath::quantity::Bytes;
use offpath::route::{Posting, Verb};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath path bluefield2 --path client-soc --verb read --size 64B
  offpath path bluefield3 --path dpa-dpa:soc --verb load --range 8MiB  a processor's own loads, by working set
  offpath path bluefield2 --path soc-host --verb read --size 256KiB    names pcie1.down as binding
  offpath path bluefield2 --verb write --size 4KiB                     one line for each path
  offpath path bluefield2 --path soc-host --post batch:16 --set soc.pcie_mtu=512B --format json
  offpath path bluefield2 --path client-soc --html path.html           the same as a page with charts
  offpath path connectx7 --as ib_read_bw --qps 8 --report-gbits        what perftest would print, size by size
  offpath path bluefield2 --path client-soc --as ib_write_lat --size 64B";

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
    #[arg(long, default_value = "read", value_parser = options::verb(), conflicts_with = "tool")]
    verb: Verb,
    /// Payload, from 0B to 1GiB [default: 64B; an atomic has its own 8B]
    #[arg(long, value_parser = options::payload)]
    size: Option<Bytes>,
    /// How requests reach the NIC: `single`, or `batch:16` for 16 behind one doorbell
    #[arg(long, default_value = "single", value_parser = options::posting, conflicts_with = "tool")]
    post: Posting,
    /// Bytes of the responder's memory that addresses are spread over: the working set of a processor's own loads
    /// [default: all of that memory]
    #[arg(long, conflicts_with = "tool")]
    range: Option<Bytes>,
    /// Also write a page with charts to this file: latency and capacity against payload, the topology
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    html: Option<PathBuf>,
    #[command(flatten)]
    tool: ToolOptions,
}

/// The options of perftest that decide what it prints; left out, each is what the program does by itself.
#[derive(Args, Debug)]
#[command(next_help_heading = "As perftest prints it")]
struct ToolOptions {
    /// Print what this program would, on `client-host` where no path is named; without `--size` as `-a` does
    #[arg(long = "as", id = "tool", value_name = "PROGRAM", value_parser = PossibleValuesParser::new(tool_programs()))]
    program: Option<String>,
    /// Queue pairs, for all of which one thread posts (`-q`)
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, MOST_QUEUE_PAIRS))]
    qps: Option<u64>,
    /// Requests of each queue pair that are posted ahead (`-t`)
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, MOST_DEPTH))]
    tx_depth: Option<u64>,
    /// Requests of a queue pair behind one completion (`-Q`)
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, MOST_DEPTH))]
    cq_mod: Option<u64>,
    /// Requests behind one doorbell (`-l`)
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, MOST_DEPTH))]
    post_list: Option<u64>,
    /// The largest payload that goes inline (`-I`)
    #[arg(long, requires = "tool", value_parser = options::payload)]
    inline_size: Option<Bytes>,
    /// READs and atomics of each queue pair in flight (`-o`) [default: the device's own]
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, 1 << 16))]
    outs: Option<u64>,
    /// Payload of a packet (`-m`) [default: the testbed's own]
    #[arg(long, requires = "tool", value_parser = mtu)]
    mtu: Option<Bytes>,
    /// Iterations of each queue pair (`-n`)
    #[arg(long, requires = "tool", value_parser = options::whole::<u64>(1, 1 << 40))]
    iters: Option<u64>,
    /// Both sides send, and rates are the sum of both (`-b`)
    #[arg(long, requires = "tool")]
    bidirectional: bool,
    /// Bandwidth in 10^9 bits instead of 2^20 bytes
    #[arg(long, requires = "tool")]
    report_gbits: bool,
}

/// Reads a path MTU.
fn mtu(text: &str) -> Result<Bytes, String> {
    let size = options::payload(text)?;
    match size.get() {
        256 | 512 | 1024 | 2048 | 4096 => Ok(size),
        _ => Err("a path MTU is 256B, 512B, 1024B, 2048B or 4096B".to_string()),
    }
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    if let Some(program) = &options.tool.program {
        let own = &options.tool;
        let found = tool(&ToolRequest {
            device: options.device.clone(),
            path: options.path.clone().unwrap_or_else(|| "client-host".to_string()),
            program: program.clone(),
            sizes: options.size.into_iter().collect(),
            qps: own.qps,
            tx_depth: own.tx_depth,
            cq_moderation: own.cq_mod,
            post_list: own.post_list,
            inline: own.inline_size,
            outstanding_reads: own.outs,
            mtu: own.mtu,
            iterations: own.iters,
            is_bidirectional: own.bidirectional,
            in_gbits: own.report_gbits,
            system: context.system.clone(),
        })?;
        context.screen.emit(&answer(&found, context, ToolAnswer::text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let request = PathRequest {
        device: options.device.clone(),
        path: options.path.clone(),
        verb: options.verb,
        payload: options.size,
        posting: options.post,
        range: options.range,
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
