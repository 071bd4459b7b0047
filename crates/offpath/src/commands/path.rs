//! `offpath path`: what one operation on a path costs, what binds it, with confidence intervals.

use super::perftest::OtherToolOptions;
use super::{Context, answer};
use crate::failure::Failure;
use crate::options;
use crate::output::OutputFile;
use clap::Args;
use clap::builder::PossibleValuesParser;
use offpath::answers::path::{PathAnswers, PathDraft, PathRequest};
use offpath::answers::tool::{ToolAnswer, ToolRequest, tool, tool_programs};
use offpath::learn::{MOST_DEPTH, MOST_QUEUE_PAIRS};
use offpath::quantity::{Bytes, Time};
use offpath::route::{LONGEST_MESSAGE, Posting, Verb};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath path bluefield2 --path client-soc --verb read --size 64B
  offpath path bluefield3 --path dpa-dpa:soc --verb load --range 8MiB  a processor's own loads, by working set
  offpath path bluefield3 --path dpa-dpa --verb load --arrived 512KiB  packets that came in, by how many wait
  offpath path bluefield2 --path soc-host --verb read --size 256KiB    names pcie1.down as binding
  offpath path bluefield2 --verb write --size 4KiB                     one line for each path
  offpath path bluefield2 --path soc-host --post batch:16 --set soc.pcie_mtu=512B --format json
  offpath path bluefield2 --path client-soc --html path.html           the same as a page with charts
  offpath path connectx7 --as ib_read_bw -q 8 --report_gbits           what perftest would print, size by size
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
    #[arg(short = 's', long, value_parser = ToolSize::read)]
    size: Option<ToolSize>,
    /// How requests reach the NIC: `single`, or `batch:16` for 16 behind one doorbell
    #[arg(long, default_value = "single", value_parser = options::posting, conflicts_with = "tool")]
    post: Posting,
    /// Bytes of the responder's memory that addresses are spread over: the working set of a processor's own loads
    /// [default: all of that memory]
    #[arg(long, conflicts_with = "tool")]
    range: Option<Bytes>,
    /// Bytes that a NIC wrote there last, among which a processor's own loads look: a backlog of packets
    #[arg(long, value_name = "SIZE", conflicts_with_all = ["tool", "range"])]
    arrived: Option<Bytes>,
    /// Also write a page with charts to this file: latency and capacity against payload, the topology
    #[arg(long, value_name = "FILE", conflicts_with = "tool")]
    html: Option<PathBuf>,
    #[command(flatten)]
    tool: ToolOptions,
}

/// What perftest itself takes: its `MAX_TX`, `MAX_CQ_MOD`, `MAX_INLINE`, `MIN_ITER` and `MAX_ITER`.
const TOOL_MOST_DEPTH: u64 = 15_000;
const TOOL_MOST_MODERATION: u64 = 1024;
const TOOL_MOST_INLINE: Bytes = Bytes::new(1024);
const TOOL_ITERATIONS: (u64, u64) = (5, 1 << 32);

/// The options of perftest that decide what it prints, also by its own letters and names; left out, each is what the program
/// does by itself.
#[derive(Args, Debug)]
#[command(next_help_heading = "As perftest prints it")]
struct ToolOptions {
    /// Print what this program would, on `client-host` where no path is named; without `--size` as `-a` does
    #[arg(long = "as", id = "tool", value_name = "PROGRAM", value_parser = PossibleValuesParser::new(tool_programs()))]
    program: Option<String>,
    /// Queue pairs, for all of which one thread posts
    #[arg(short = 'q', long, alias = "qp", requires = "tool", value_parser = options::whole::<u64>(1, MOST_QUEUE_PAIRS))]
    qps: Option<u64>,
    /// Requests of each queue pair that are posted ahead
    #[arg(short = 't', long, requires = "tool", value_parser = options::whole::<u64>(1, TOOL_MOST_DEPTH))]
    tx_depth: Option<u64>,
    /// Requests of a queue pair behind one completion
    #[arg(short = 'Q', long, requires = "tool", value_parser = options::whole::<u64>(1, TOOL_MOST_MODERATION))]
    cq_mod: Option<u64>,
    /// Requests behind one doorbell
    #[arg(short = 'l', long, alias = "post_list", requires = "tool", value_parser = options::whole::<u64>(1, MOST_DEPTH))]
    post_list: Option<u64>,
    /// The largest payload that goes inline
    #[arg(short = 'I', long, alias = "inline_size", requires = "tool", value_parser = inline)]
    inline_size: Option<Bytes>,
    /// READs and atomics of each queue pair in flight [default: the device's own]
    #[arg(short = 'o', long, requires = "tool", value_parser = options::whole::<u64>(1, 1 << 16))]
    outs: Option<u64>,
    /// Payload of a packet [default: the testbed's own]
    #[arg(short = 'm', long, requires = "tool", value_parser = mtu)]
    mtu: Option<Bytes>,
    /// Iterations of each queue pair
    #[arg(short = 'n', long, requires = "tool", value_parser = options::whole::<u64>(TOOL_ITERATIONS.0, TOOL_ITERATIONS.1))]
    iters: Option<u64>,
    /// Seconds that it runs, in place of iterations
    #[arg(short = 'D', long, requires = "tool", conflicts_with = "iters", value_parser = options::whole::<u64>(1, 86_400))]
    duration: Option<u64>,
    /// Both sides send, and rates are the sum of both
    #[arg(short = 'b', long, requires = "tool")]
    bidirectional: bool,
    /// Every size from 2 B to 8 MiB, as without `--size`
    #[arg(short = 'a', long, requires = "tool", conflicts_with = "size")]
    all: bool,
    /// Bandwidth in 10^9 bits instead of 2^20 bytes
    #[arg(long, alias = "report_gbits", requires = "tool")]
    report_gbits: bool,
    #[command(flatten)]
    others: OtherToolOptions,
}

/// A size that may stand without a unit, as perftest has them: bytes, where the option is the tool's.
#[derive(Clone, Copy, Debug)]
enum ToolSize {
    WithUnit(Bytes),
    Bare(Bytes),
}

impl ToolSize {
    fn read(text: &str) -> Result<ToolSize, String> {
        match text.parse::<u64>() {
            // Its bounds are those of any payload.
            Ok(bytes) => options::payload(&format!("{bytes}B")).map(ToolSize::Bare),
            Err(_) => options::payload(text).map(ToolSize::WithUnit),
        }
    }

    fn bytes(self) -> Bytes {
        match self {
            ToolSize::WithUnit(size) | ToolSize::Bare(size) => size,
        }
    }

    /// The size of what is no run of perftest, which has a unit.
    fn with_unit(self) -> Result<Bytes, Failure> {
        match self {
            ToolSize::WithUnit(size) => Ok(size),
            ToolSize::Bare(size) => Err(Failure::input(
                format!("`--size {}` has no unit", size.get()),
                format!(
                    "write it as in `512 B`, here `{}B`; with `--as` a number alone is bytes, as in perftest",
                    size.get()
                ),
            )),
        }
    }
}

/// Reads the largest payload that goes inline.
fn inline(text: &str) -> Result<Bytes, String> {
    let size = ToolSize::read(text)?.bytes();
    match size <= TOOL_MOST_INLINE {
        true => Ok(size),
        false => Err(format!("perftest takes 0 B to {TOOL_MOST_INLINE}")),
    }
}

/// Reads a path MTU.
fn mtu(text: &str) -> Result<Bytes, String> {
    let size = ToolSize::read(text)?.bytes();
    match size.get() {
        256 | 512 | 1024 | 2048 | 4096 => Ok(size),
        _ => Err("a path MTU is 256B, 512B, 1024B, 2048B or 4096B".to_string()),
    }
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    if let Some(program) = &options.tool.program {
        let own = &options.tool;
        own.others.check(program)?;
        if options.size.is_some_and(|size| size.bytes() == Bytes::ZERO) {
            return Err(Failure::input(
                format!(
                    "`--size 0` of `{program}`: perftest takes 1 B to 2 GiB less 1 B, of which up to {LONGEST_MESSAGE} is predicted"
                ),
                "name a size, as in `--size 64B`, or leave it out for every size from 2 B to 8 MiB",
            ));
        }
        let found = tool(&ToolRequest {
            device: options.device.clone(),
            path: options.path.clone().unwrap_or_else(|| "client-host".to_string()),
            program: program.clone(),
            sizes: options.size.map(ToolSize::bytes).into_iter().collect(),
            qps: own.qps,
            tx_depth: own.tx_depth,
            cq_moderation: own.cq_mod,
            post_list: own.post_list,
            inline: own.inline_size,
            outstanding_reads: own.outs,
            mtu: own.mtu,
            iterations: own.iters,
            duration: own.duration.map(|seconds| Time::from_seconds(seconds as f64)),
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
        payload: options.size.map(ToolSize::with_unit).transpose()?,
        posting: options.post,
        range: options.arrived.or(options.range),
        arrived: options.arrived.is_some(),
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
