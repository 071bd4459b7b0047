//! `offpath sweep`: every combination of verb, path, payload and clients, run on the twin.

use super::Context;
use crate::failure::Failure;
use crate::output::{Format, OutputFile, tell, unwritable};
use crate::progress::Progress;
use crate::{options, output};
use clap::Args;
use offpath::answers::sweep::{RowKey, SweepAnswer, SweepDraft, SweepRequest, SweepRow, SweepRuns};
use offpath::quantity::Bytes;
use offpath::route::{Posting, Verb};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath sweep bluefield2 --path client-soc,client-host --clients 1,2,4,8
  offpath sweep bluefield2 --verb read,write --path client-soc --size 0B,64B,4KiB --out sweep.csv
  offpath sweep bluefield2 --path client-soc --clients 1,2,4,8,11 --out sweep.csv --resume

Each run is a closed loop: so many requests are always in flight at each requester. Latencies of
messages are one way. The same seed gives the same bytes, however many threads are used.";

/// Run every combination of verb, path, payload and clients on the twin
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A device's name, or a .toml file that describes one
    device: String,
    /// What the operations do
    #[arg(long, value_delimiter = ',', default_value = "read", value_parser = options::verb())]
    verb: Vec<Verb>,
    /// Paths, as in `client-soc,client-host`
    #[arg(long, value_delimiter = ',', required = true)]
    path: Vec<String>,
    /// Payloads, from 0B to 1GiB
    #[arg(long, value_delimiter = ',', default_value = "64B", value_parser = options::payload)]
    size: Vec<Bytes>,
    /// Machines that send requests; for a path from the device itself there is one run instead
    #[arg(long, value_delimiter = ',', default_value = "1", value_parser = crate::options::whole::<u32>(1, 1_000_000))]
    clients: Vec<u32>,
    /// Requests that each of them keeps in flight
    #[arg(long, default_value_t = 32, value_parser = crate::options::whole::<u32>(1, 65_536))]
    in_flight: u32,
    /// How requests reach the NIC: `single`, or `batch:16` for 16 behind one doorbell
    #[arg(long, default_value = "single", value_parser = options::posting)]
    post: Posting,
    /// Operations that a run measures, fewer where payloads above 16 KiB make each of them longer
    #[arg(long, default_value_t = 20_000, value_parser = crate::options::whole::<u32>(1_000, 1_000_000_000))]
    operations: u32,
    /// The seed of every draw
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
    /// Write the rows to this .csv or .json file, instead of printing them
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Keep the rows that the .csv file of `--out` has already, and run the others
    #[arg(long, requires = "out")]
    resume: bool,
    /// Threads [default: one for each core]
    #[arg(long, value_parser = crate::options::whole::<u16>(1, 65_535))]
    threads: Option<u16>,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let file =
        options.out.as_deref().map(|path| Ok::<_, Failure>((path, kind(path, options)?))).transpose()?;
    let request = SweepRequest {
        device: options.device.clone(),
        verbs: options.verb.clone(),
        paths: options.path.clone(),
        payloads: options.size.clone(),
        clients: options.clients.clone(),
        in_flight: options.in_flight,
        posting: options.post,
        operations: options.operations,
        seed: options.seed,
        threads: options.threads,
        system: context.system.clone(),
    };
    let draft = SweepDraft::load(&request)?;
    draft.mode_note().iter().for_each(|note| tell(&format!("note: {note}")));
    let runs = draft.runs()?;
    let (rows, kept) = match file {
        Some((path, Form::Csv)) => {
            // Another sweep that grows the file would lose what this one adds, or this one what it adds.
            let _held = if options.resume { hold(path)? } else { None };
            let known = if options.resume { read(path, &header(&runs))? } else { BTreeMap::new() };
            refuse_strangers(path, &known, &runs)?;
            refuse_stale(path, &known, &runs)?;
            if !options.resume {
                claim(path)?;
            }
            let kept = known.len();
            let grown = open(path, &known).and_then(|mut writer| {
                let rows = measure(&runs, known, |row| writer.append(row))?;
                Ok((writer, rows))
            });
            let (writer, rows) = grown.inspect_err(|_| remove_empty(path))?;
            // The file was written in the order in which it grew; now it gets the sweep's own.
            writer.replace(&rows)?;
            (rows.len(), kept)
        }
        Some((path, Form::Json)) => {
            let file = OutputFile::create(path)?;
            let answer = SweepAnswer::of(measure(&runs, BTreeMap::new(), |_| Ok(()))?);
            let text = context.screen.json(&answer)?;
            claim(path)?;
            file.write(text.as_bytes()).inspect_err(|_| remove_empty(path))?;
            (answer.rows.len(), 0)
        }
        None => {
            let answer = SweepAnswer::of(measure(&runs, BTreeMap::new(), |_| Ok(()))?);
            let screen = &context.screen;
            screen.emit(&match screen.format {
                Format::Json => screen.json(&answer)?,
                _ => answer.text(screen),
            })?;
            (answer.rows.len(), 0)
        }
    };
    if let Some(path) = &options.out {
        tell(&format!("{}: {rows} rows, {kept} of them kept from before", path.display()));
    }
    Ok(ExitCode::SUCCESS)
}

/// Runs what `known` lacks, and shows how far that is.
fn measure(
    runs: &SweepRuns,
    known: BTreeMap<RowKey, SweepRow>,
    done: impl FnMut(&SweepRow) -> Result<(), Failure>,
) -> Result<Vec<SweepRow>, Failure> {
    let missing = runs.rows().filter(|row| !known.contains_key(&row.key())).count();
    let progress = Progress::counted(missing as u64, "runs");
    runs.run(known, || progress.advance(), done)
}

/// What a file is written as.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Csv,
    Json,
}

fn kind(path: &FilePath, options: &Options) -> Result<Form, Failure> {
    let shown = path.display();
    let form = match path.extension().and_then(|end| end.to_str()) {
        Some("csv") => Form::Csv,
        Some("json") if options.resume => {
            return Err(Failure::input(
                format!("a sweep into `{shown}` cannot be resumed"),
                "write to a .csv file, which grows row by row",
            ));
        }
        Some("json") => Form::Json,
        _ => {
            return Err(Failure::input(
                format!("`{shown}` ends neither in .csv nor in .json"),
                "give the file one of these endings",
            ));
        }
    };
    if path.is_dir() {
        return Err(Failure::input(format!("`{shown}` is a directory"), "name a file in it"));
    }
    if path.exists() && !options.resume {
        return Err(taken(path));
    }
    Ok(form)
}

fn taken(path: &FilePath) -> Failure {
    let is_json = path.extension().is_some_and(|end| end == "json");
    Failure::input(
        format!("`{}` is there already", path.display()),
        match is_json {
            true => "remove it, or choose another name",
            false => {
                "add `--resume` to keep its rows and run the missing ones, remove it, or choose another name"
            }
        },
    )
}

/// Makes a file that was not there: of two sweeps that begin at one moment, one has it.
fn claim(path: &FilePath) -> Result<(), Failure> {
    match File::options().write(true).create_new(true).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(taken(path)),
        Err(error) => Err(unwritable(path, &error)),
    }
}

/// Removes a file into which nothing could be written: it would only be in the way of the next attempt.
fn remove_empty(path: &FilePath) {
    if std::fs::metadata(path).is_ok_and(|left| left.is_file() && left.len() == 0) {
        let _ = std::fs::remove_file(path);
    }
}

/// A file that is there, locked until it is dropped; refused where another sweep has it.
fn hold(path: &FilePath) -> Result<Option<File>, Failure> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(unwritable(path, &error)),
    };
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Err(Failure::input(
            format!("another sweep writes `{}`", path.display()),
            "wait until it has ended, then resume; or write to another file",
        )),
        // Where files have no locks, nothing is known of others.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Some(file)),
    }
}

/// The first line of a sweep's file.
fn header(runs: &SweepRuns) -> String {
    let mut text = csv::Writer::from_writer(Vec::new());
    runs.rows().take(1).for_each(|row| text.serialize(row).expect("memory takes a row"));
    let text = String::from_utf8(text.into_inner().expect("memory takes a row")).expect("rows are text");
    text.lines().next().unwrap_or_default().to_string()
}

/// The rows of a file that an earlier sweep left. A last line that was cut off is left out.
fn read(path: &FilePath, header: &str) -> Result<BTreeMap<RowKey, SweepRow>, Failure> {
    let refuse = |error: &dyn std::fmt::Display| {
        Failure::input(
            format!("cannot resume from `{}`: {error}", path.display()),
            "remove the file or choose another one",
        )
    };
    if !path.exists() {
        return Ok(BTreeMap::new());
    }
    let text = std::fs::read_to_string(path).map_err(|error| refuse(&error))?;
    // A file of something else would be written over.
    let begins = match text.split_once('\n') {
        Some((first, _)) => first.trim_end_matches('\r') == header,
        None => header.starts_with(&text),
    };
    if !begins {
        return Err(refuse(&"it does not begin with the names of a sweep's columns"));
    }
    let whole = text.rfind('\n').map_or("", |end| &text[..=end]);
    csv::Reader::from_reader(whole.as_bytes())
        .deserialize::<SweepRow>()
        .map(|row| row.map(|row| (row.key(), row)).map_err(|error| refuse(&error)))
        .collect()
}

/// Rows that the sweep does not have would be lost, so they are refused.
fn refuse_strangers(
    path: &FilePath,
    known: &BTreeMap<RowKey, SweepRow>,
    runs: &SweepRuns,
) -> Result<(), Failure> {
    let named: BTreeSet<RowKey> = runs.rows().map(SweepRow::key).collect();
    let Some((_, row)) = known.iter().find(|(key, _)| !named.contains(key)) else { return Ok(()) };
    let shown = path.display();
    if runs.rows().any(|own| is_other_profile(own, row)) {
        return Err(Failure::input(
            format!("the rows of `{shown}` were made from other numbers of `{}`", row.device),
            "the profile was changed since; write to another file, so that no two cards are in one",
        ));
    }
    if let Some(own) = runs.rows().find(|own| is_other_system(own, row)) {
        return Err(Failure::input(
            format!("the rows of `{shown}` are of {}, and this sweep is of {}", row.system(), own.system()),
            "write to another file, or repeat the settings of the sweep that wrote it",
        ));
    }
    let of_options = |own: &&SweepRow| {
        own.key()
            == SweepRow {
                operations: own.operations,
                posting: own.posting.clone(),
                seed: own.seed,
                ..row.clone()
            }
            .key()
    };
    if let Some(own) = runs.rows().find(of_options) {
        let option =
            |name: &str, was: String, is: String| (was != is).then(|| format!("{name} {was}, not {is}"));
        let differs = [
            option("--operations", row.operations.to_string(), own.operations.to_string()),
            option("--seed", row.seed.to_string(), own.seed.to_string()),
            option("posting", row.posting.clone(), own.posting.clone()),
        ];
        let differs: Vec<String> = differs.into_iter().flatten().collect();
        return Err(Failure::input(
            format!("the rows of `{shown}` were made with {}", differs.join(" and ")),
            "repeat the options of the sweep that wrote it, or choose another file",
        ));
    }
    Err(Failure::input(
        format!(
            "`{shown}` has a row that this sweep does not have: {} on {} of {}, {} clients, {} in flight, seed {}",
            row.verb,
            row.path,
            Bytes::new(row.payload_bytes),
            row.clients,
            row.in_flight,
            row.seed
        ),
        "repeat the options of the sweep that wrote it (you may add to its lists), or choose another file",
    ))
}

/// Figures of a row have six digits and more.
const ROUNDED: f64 = 1e-5;

/// Rows that this program would not write are refused: of all what is known before a run is compared, and the
/// first, the middle and the last that are kept run again. Seeds make that the same bytes, so another row is another
/// version's or an editor's.
fn refuse_stale(
    path: &FilePath,
    known: &BTreeMap<RowKey, SweepRow>,
    runs: &SweepRuns,
) -> Result<(), Failure> {
    let kept = || runs.rows().filter_map(|own| known.get(&own.key()).map(|row| (own, row)));
    let stale = |row: &SweepRow| {
        Failure::input(
            format!(
                "`{}` has a row that this offpath does not get: {} on {} of {}, {} clients",
                path.display(),
                row.verb,
                row.path,
                Bytes::new(row.payload_bytes),
                row.clients
            ),
            "another version of offpath wrote it, or it was changed since; write to another file",
        )
    };
    let before =
        |row: &SweepRow| (row.unloaded_latency_us, row.capacity_mreq_per_s, row.binding_station.clone());
    // No run shows more than what its stations carry.
    let is_above = |row: &SweepRow| {
        row.throughput_mreq_per_s.is_some_and(|rate| rate > row.capacity_mreq_per_s * (1.0 + ROUNDED))
    };
    if let Some((_, row)) = kept().find(|(own, row)| before(own) != before(row) || is_above(row)) {
        return Err(stale(row));
    }
    let kept: Vec<(&SweepRow, &SweepRow)> = kept().collect();
    let Some(last) = kept.len().checked_sub(1) else { return Ok(()) };
    for (own, row) in BTreeSet::from([0, last / 2, last]).into_iter().map(|index| kept[index]) {
        if runs.again(own)?.as_ref() != Some(row) {
            return Err(stale(row));
        }
    }
    Ok(())
}

/// Whether two rows would be one but for the numbers of their profile.
fn is_other_profile(one: &SweepRow, other: &SweepRow) -> bool {
    one.profile_crc32 != other.profile_crc32
        && one.key() == SweepRow { profile_crc32: one.profile_crc32.clone(), ..other.clone() }.key()
}

/// Whether two rows would be one but for the system that they are of.
fn is_other_system(one: &SweepRow, other: &SweepRow) -> bool {
    let own = one.clone();
    let (device, testbed, mode) = (own.device, own.testbed, own.mode);
    let (overlays, profile_crc32) = (own.overlays, own.profile_crc32);
    let moved = SweepRow { device, testbed, mode, overlays, profile_crc32, ..other.clone() };
    one.key() != other.key() && one.key() == moved.key()
}

/// A CSV file that grows row by row.
struct Writer<'a> {
    path: &'a FilePath,
    rows: csv::Writer<File>,
    /// The lock of the file, which is another one than before it was put in order.
    _held: Option<File>,
}

fn open<'a>(path: &'a FilePath, known: &BTreeMap<RowKey, SweepRow>) -> Result<Writer<'a>, Failure> {
    let known: Vec<SweepRow> = known.values().cloned().collect();
    replace(path, &known)?;
    let file = File::options().append(true).open(path).map_err(|error| unwritable(path, &error))?;
    let rows = csv::WriterBuilder::new().has_headers(known.is_empty()).from_writer(file);
    Ok(Writer { path, rows, _held: hold(path)? })
}

/// Puts a file with these rows in the place of an earlier one, at once, so that no row is ever lost.
fn replace(path: &FilePath, rows: &[SweepRow]) -> Result<(), Failure> {
    let mut text = csv::Writer::from_writer(Vec::new());
    for row in rows {
        text.serialize(row).map_err(|error| unwritable(path, &error.into()))?;
    }
    let text = text.into_inner().map_err(|error| unwritable(path, error.error()))?;
    output::replace(path, &text).map_err(|error| unwritable(path, &error))
}

impl Writer<'_> {
    fn append(&mut self, row: &SweepRow) -> Result<(), Failure> {
        self.rows.serialize(row).map_err(|error| unwritable(self.path, &error.into()))?;
        self.rows.flush().map_err(|error| unwritable(self.path, &error))
    }

    fn replace(self, rows: &[SweepRow]) -> Result<(), Failure> {
        replace(self.path, rows)
    }
}
