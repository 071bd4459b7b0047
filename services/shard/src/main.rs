//! The program `offpath-shard`, which `offpath shard` starts: a Redis Cluster's slots or a MongoDB collection over the
//! processors of host and card.

mod mongo;
mod redis;

use clap::Parser;
use offpath_terminal::Context;
use offpath_terminal::options::SystemOptions;
use offpath_terminal::output::{OutputOptions, Screen};
use std::process::ExitCode;

/// Distribute a Redis Cluster's hash slots, or a MongoDB collection, across host and DPU
#[derive(Parser, Debug)]
#[command(name = "offpath-shard", version, after_help = redis::EXAMPLES, max_term_width = 100)]
struct Cli {
    #[command(flatten)]
    system: SystemOptions,
    #[command(flatten)]
    output: OutputOptions,
    #[command(flatten)]
    shard: redis::Options,
}

fn main() -> ExitCode {
    offpath_terminal::program(
        "offpath-shard",
        |cli: &Cli| cli.output.color,
        |cli| {
            cli.output.refuse_csv()?;
            let context = Context { system: cli.system, screen: Screen::new(cli.output) };
            redis::run(&cli.shard, &context)
        },
    )
}
