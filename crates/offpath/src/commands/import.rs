//! `offpath import`: what logs of other tools say, as figures with their meaning.

use super::{Context, answer};
use crate::failure::{Failure, NEGATIVE};
use crate::output::{Format, emit_json, tell};
use clap::Args;
use offpath::answers::import::{
    FigureRows, ImportRemarkAnswer, ImportRequest, ImportStream, ImportTables, RankAnswer, import_each, rank,
};
use offpath::logs::LogItem;
use std::io::{BufWriter, ErrorKind, Write, stdout};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath import ib_write_bw.log                      figures with their conditions, lines that give none
  offpath import client.log server.log --format json  the same as data, described by docs/schemas/import.json
  ssh server ib_read_lat -a host | offpath import - --format csv > rows.csv
                                                      a row for each figure, in memory that does not grow
  offpath import mycard.yaml platforms_summary --rank mycard.yaml
                                                      where a machine stands among others, by rates of stress-ng

Exit code 1 says that no line has a figure.";

/// Read the figures of logs that benchmarks and counters wrote, each with its meaning, conditions and line
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// Files of perftest, pcie-bench, stress-ng, fio and others, told by what they say; `-` is standard input
    #[arg(required = true, value_name = "LOG")]
    logs: Vec<PathBuf>,
    /// Where this machine stands among those of the logs, by rates of stress-ng: a platform of a summary, or a file
    #[arg(long, value_name = "MACHINE")]
    rank: Option<String>,
}

/// Reads the logs and prints what they say.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let request = ImportRequest { logs: options.logs.clone() };
    if let Some(machine) = &options.rank {
        if context.screen.format == Format::Csv {
            return Err(Failure::input(
                "`--rank` prints no CSV",
                "save it by `--format json`, and write its rows by `offpath export table`",
            ));
        }
        let found = rank(&request, machine)?;
        context.screen.emit(&answer(&found, context, RankAnswer::text)?)?;
        return Ok(ExitCode::SUCCESS);
    }
    let has_figures = match context.screen.format {
        Format::Csv => rows(&request)?,
        Format::Json => {
            let found = ImportStream::new(&request);
            let emitted = emit_json(&found);
            // A log that cannot be read is why the answer ends.
            let has_figures = found.has_figures()?;
            emitted?;
            has_figures
        }
        Format::Table | Format::Markdown => {
            let mut tables = ImportTables::default();
            let files = import_each(&request, |file, item| {
                tables.take(file, item);
                Ok(())
            })?;
            let (text, has_figures) = tables.text(&files, &context.screen);
            context.screen.emit(&text)?;
            has_figures
        }
    };
    Ok(if has_figures { ExitCode::SUCCESS } else { ExitCode::from(NEGATIVE) })
}

/// Writes a row for each figure as it is read, and tells the rest; whether there is one.
fn rows(request: &ImportRequest) -> Result<bool, Failure> {
    let mut out = Rows { out: BufWriter::with_capacity(1 << 16, stdout().lock()), is_read: true };
    out.write(&FigureRows::header())?;
    let mut rows: Option<(String, FigureRows)> = None;
    let mut has_figures = false;
    let read = import_each(request, |file, item| {
        match item {
            LogItem::Measurement(figure) => {
                has_figures = true;
                let own = match &mut rows {
                    Some((name, rows)) if name == file => rows,
                    other => &mut other.insert((file.to_string(), FigureRows::new(file))).1,
                };
                out.write(own.row(&figure))?;
            }
            LogItem::Remark(remark) => tell(&ImportRemarkAnswer::of(file, remark).sentence()),
        }
        match out.is_read {
            true => Ok(()),
            // Nobody reads on, so that neither does this; the log may have no end.
            false => Err(Failure::input("the rows are not written on", "")),
        }
    });
    if out.is_read {
        read?;
        let flushed = out.out.flush();
        out.seen(flushed)?;
    }
    Ok(has_figures)
}

/// Rows on standard output.
struct Rows<W: Write> {
    out: W,
    /// Whether anybody still reads them.
    is_read: bool,
}

impl<W: Write> Rows<W> {
    fn write(&mut self, row: &str) -> Result<(), Failure> {
        let written = self.out.write_all(row.as_bytes());
        self.seen(written)
    }

    /// A reader that closes its end early, as `head` does, is not an error.
    fn seen(&mut self, written: std::io::Result<()>) -> Result<(), Failure> {
        match written {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_read = false;
                Ok(())
            }
            Err(error) => Err(Failure::unwritten(
                format!("cannot write the answer: {error}"),
                "check where the output goes",
            )),
            Ok(()) => Ok(()),
        }
    }
}
