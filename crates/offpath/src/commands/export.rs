//! `offpath export`: answers and logs as a table for data frames, and what a profile determines of UCX's configuration.

use super::{Context, answer};
use crate::failure::Failure;
use crate::output::{OutputFile, emit, tell};
use clap::{Args, Subcommand};
use offpath::answers::export::{AnswerTable, TableForm, UcxRequest, ucx};
use std::path::PathBuf;
use std::process::ExitCode;

/// Write answers and logs as a table for data frames, or what a profile determines of UCX's configuration
#[derive(Args, Debug)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

const TABLE_EXAMPLES: &str = "\
Examples:
  offpath plan designs/kv-ycsb-c.toml --format json > plan.json && offpath export table plan.json -o plan.csv
  offpath export table ib_write_bw.log mycard.jsonl -o measured.csv
  offpath export table sweep.json -o sweep.parquet     of a build with `--features parquet`";

const UCX_EXAMPLES: &str = "\
Examples:
  offpath export ucx bluefield2 >> ucx.conf
  offpath export ucx mycard.toml --path client-soc --format json";

#[derive(Subcommand, Debug)]
enum Command {
    /// Rows of saved answers and of logs in one file: CSV, JSON or Parquet by its ending
    #[command(after_help = TABLE_EXAMPLES)]
    Table(TableOptions),
    /// Lines of a ucx.conf that the profile determines, each with where it comes from
    #[command(after_help = UCX_EXAMPLES)]
    Ucx(UcxOptions),
}

#[derive(Args, Debug)]
struct TableOptions {
    /// Answers that were saved with `--format json`, and logs that `offpath import` reads; `-` is a log on standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The file that is written, ending in .csv, .json or .parquet
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Args, Debug)]
struct UcxOptions {
    /// The device, by name or from a .toml file
    device: String,
    /// From whom to whom programs communicate [default: from the client to the host]
    #[arg(long)]
    path: Option<String>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    match &options.command {
        Command::Table(options) => {
            context.system.refuse("export table", false)?;
            let form = TableForm::of(&options.output)?;
            let output = OutputFile::create_new(&options.output)?;
            let table = AnswerTable::of(&options.files)?;
            output.write_by(|out| table.write(form, out))?;
            let (rows, columns) = (table.rows(), table.columns());
            tell(&format!("{}: {rows} rows of {columns} columns", options.output.display()));
        }
        Command::Ucx(options) => {
            let found = ucx(&UcxRequest {
                device: options.device.clone(),
                path: options.path.clone(),
                system: context.system.clone(),
            })?;
            // Lines of a configuration are not wrapped.
            emit(&answer(&found, context, |found, _| found.text())?)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}
