//! `offpath sweep`: every combination of verb, path, payload and clients, run on the twin.

use super::Context;
use crate::failure::{Failure, no_doorbell, unknown_path};
use crate::output::{
    Format, OutputFile, SCHEMA_VERSION, TableCell, percent, place, round, tell, tell_mode, unwritable,
};
use crate::progress::Progress;
use crate::{options, output};
use clap::Args;
use offpath::profile::System;
use offpath::quantity::{Bytes, Time};
use offpath::route::{Carrier, PathOperation, Posting, Router, StationId, StationKind, Verb};
use offpath::twin::{Arrivals, Load, LoadError, Seed, run as run_load};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, TryLockError};
use std::path::{Path as FilePath, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

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

/// One run. The CSV has these columns in this order; numbers are rounded to 6 decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Row {
    verb: String,
    path: String,
    payload_bytes: u64,
    clients: u32,
    in_flight: u32,
    seed: u64,
    unloaded_latency_us: f64,
    latency_us_mean: Option<f64>,
    latency_us_p50: Option<f64>,
    latency_us_p99: Option<f64>,
    throughput_mreq_per_s: Option<f64>,
    throughput_ci95_low_mreq_per_s: Option<f64>,
    throughput_ci95_high_mreq_per_s: Option<f64>,
    throughput_gbit_per_s: Option<f64>,
    throughput_unknown_because: Option<String>,
    capacity_mreq_per_s: f64,
    binding_station: String,
    binding_station_utilization: f64,
    fullest_station: Option<String>,
    fullest_role: Option<String>,
    fullest_machine: Option<u32>,
    fullest_machines: Option<u32>,
    fullest_utilization: Option<f64>,
    posting: String,
    operations: u32,
    device: String,
    testbed: String,
    mode: String,
    overlays: String,
    /// Of the names and values of the profile's numbers, which a device's name alone does not tell.
    profile_crc32: String,
}

/// What makes a row the row that it is: two sweeps with equal keys give equal rows.
type Key = (String, String, u64, u32, u32, u64, String, u32, [String; 5]);

impl Row {
    fn key(&self) -> Key {
        let profile = &self.profile_crc32;
        let system = [&self.device, &self.testbed, &self.mode, &self.overlays, profile].map(String::clone);
        let posting = self.posting.clone();
        let (clients, in_flight) = (self.clients, self.in_flight);
        let names = (self.verb.clone(), self.path.clone());
        (
            names.0,
            names.1,
            self.payload_bytes,
            clients,
            in_flight,
            self.seed,
            posting,
            self.operations,
            system,
        )
    }
}

impl Row {
    /// The system that it is of, in words.
    fn system(&self) -> String {
        let changed = match self.overlays.as_str() {
            "" => "as its profile has it".to_string(),
            overlays => format!("with {overlays}"),
        };
        format!("{} in {}, {}, {changed}", self.device, self.testbed, self.mode)
    }

    /// The busiest station and its machine, in words: the mean over machines would hide a full one.
    fn fullest(&self) -> Option<String> {
        let station = self.fullest_station.as_deref()?;
        let share = format!("{:.0}%", self.fullest_utilization? * 100.0);
        let (role, machine, machines) =
            (self.fullest_role.as_deref()?, self.fullest_machine?, self.fullest_machines?);
        Some(format!("{} {share}", place(station, role, machine, u64::from(machines))))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    schema_version: u32,
    rows: &'a [Row],
}

/// A run to be done: everything that a row needs, checked.
struct Job<'a> {
    system: &'a System,
    operation: PathOperation,
    /// What is known before the run; the measured columns are empty.
    row: Row,
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let file =
        options.out.as_deref().map(|path| Ok::<_, Failure>((path, kind(path, options)?))).transpose()?;
    let systems = systems(options, context)?;
    let jobs = jobs(options, &systems)?;
    let (rows, kept) = match file {
        Some((path, Form::Csv)) => {
            // Another sweep that grows the file would lose what this one adds, or this one what it adds.
            let _held = if options.resume { hold(path)? } else { None };
            let known = if options.resume { read(path, &header(&jobs))? } else { BTreeMap::new() };
            refuse_strangers(path, &known, &jobs)?;
            refuse_stale(path, &known, &jobs)?;
            if !options.resume {
                claim(path)?;
            }
            let mut writer = open(path, &known)?;
            let kept = known.len();
            let rows = measure(options, &jobs, known, |row| writer.append(row))?;
            // The file was written in the order in which it grew; now it gets the sweep's own.
            writer.replace(&rows)?;
            (rows, kept)
        }
        Some((path, Form::Json)) => {
            let file = OutputFile::create(path)?;
            let rows = measure(options, &jobs, BTreeMap::new(), |_| Ok(()))?;
            let text = context.screen.json(&Report { schema_version: SCHEMA_VERSION, rows: &rows })?;
            claim(path)?;
            file.write(text.as_bytes())?;
            (rows, 0)
        }
        None => {
            let rows = measure(options, &jobs, BTreeMap::new(), |_| Ok(()))?;
            let screen = &context.screen;
            screen.emit(&match screen.format {
                Format::Json => screen.json(&Report { schema_version: SCHEMA_VERSION, rows: &rows })?,
                _ => {
                    let table = screen.table(&HEADER, rows.iter().map(entries).collect());
                    let reasons: BTreeSet<&str> =
                        rows.iter().filter_map(|row| row.throughput_unknown_because.as_deref()).collect();
                    let reasons = reasons.iter().map(|reason| format!("\nNo throughput where {reason}.\n"));
                    let told = reasons.fold(table, |table, reason| table + &reason);
                    told + &unpublished(&options.verb)
                }
            })?;
            (rows, 0)
        }
    };
    if let Some(path) = &options.out {
        tell(&format!("{}: {} rows, {} of them kept from before", path.display(), rows.len(), kept));
    }
    Ok(ExitCode::SUCCESS)
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
    Failure::input(
        format!("`{}` is there already", path.display()),
        "add `--resume` to keep its rows and run the missing ones, remove it, or choose another name",
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

/// The device's system, and those with another number of requesting machines, by role and number.
type Systems = (System, BTreeMap<(String, u32), System>);

fn systems(options: &Options, context: &Context) -> Result<Systems, Failure> {
    let library = context.system.library()?;
    let plain = context.system.load(&library, &options.device, &[])?;
    tell_mode(&plain);
    let router = Router::new(&plain)?;
    let mut others = BTreeMap::new();
    for name in &options.path {
        let path = router.path(name).map_err(|error| unknown_path(&router, name, error))?;
        let (machine, _) = plain.endpoint(&path.requester)?;
        if machine.prefix.is_empty() {
            continue;
        }
        for count in &options.clients {
            if u64::from(*count) > machine.available {
                let (role, most) = (&machine.role, machine.available);
                return Err(Failure::input(
                    format!("`--clients {count}`: the testbed has {most} machines `{role}`"),
                    format!("ask for {most} at most, or add `--set {role}.available={count}`"),
                ));
            }
            let setting = format!("{}.count={count}", machine.role);
            let mut system = context.system.load(&library, &options.device, &[setting])?;
            // The number of requesters has a column of its own.
            system.overlays = plain.overlays.clone();
            others.insert((machine.role.clone(), *count), system);
        }
    }
    Ok((plain, others))
}

/// Every run in the order of its row, each named once.
fn jobs<'a>(options: &Options, (plain, others): &'a Systems) -> Result<Vec<Job<'a>>, Failure> {
    let (mut jobs, mut named) = (Vec::new(), BTreeSet::new());
    let routers: BTreeMap<Option<(String, u32)>, Router> = std::iter::once(Ok((None, Router::new(plain)?)))
        .chain(others.iter().map(|(key, system)| Ok((Some(key.clone()), Router::new(system)?))))
        .collect::<Result<_, Failure>>()?;
    for verb in &options.verb {
        for name in &options.path {
            for payload in &options.size {
                for clients in &options.clients {
                    let path = routers[&None].path(name)?;
                    let (machine, _) = plain.endpoint(&path.requester)?;
                    let key = (!machine.prefix.is_empty()).then(|| (machine.role.clone(), *clients));
                    let system = key.as_ref().map_or(plain, |key| &others[key]);
                    let router = &routers[&key];
                    if options.post != Posting::Single && router.carrier(*verb, &path)? != Carrier::Nic {
                        return Err(no_doorbell(options.post, *verb, &format!("on `{path}`")));
                    }
                    let operation = PathOperation::new(*verb, path, *payload).posted(options.post);
                    let route = router.route(&operation)?;
                    let Some((per_second, binding)) = route.demand(router).capacity(router) else { continue };
                    let requesters = system.machine(&machine.role)?.count;
                    let clients = u32::try_from(requesters).unwrap_or(u32::MAX);
                    let row = Row {
                        verb: verb.to_string(),
                        path: operation.path.to_string(),
                        payload_bytes: route.payload.get(),
                        clients,
                        in_flight: clients.saturating_mul(options.in_flight),
                        seed: options.seed,
                        unloaded_latency_us: route.latency(router).as_us(),
                        latency_us_mean: None,
                        latency_us_p50: None,
                        latency_us_p99: None,
                        throughput_mreq_per_s: None,
                        throughput_ci95_low_mreq_per_s: None,
                        throughput_ci95_high_mreq_per_s: None,
                        throughput_gbit_per_s: None,
                        throughput_unknown_because: None,
                        capacity_mreq_per_s: round(per_second / 1e6),
                        binding_station: router.stations()[binding.index()].name.clone(),
                        binding_station_utilization: 0.0,
                        fullest_station: None,
                        fullest_role: None,
                        fullest_machine: None,
                        fullest_machines: None,
                        fullest_utilization: None,
                        posting: options::posting_name(options.post),
                        operations: options.operations,
                        device: system.device.clone(),
                        testbed: system.testbed.clone(),
                        mode: system.mode.clone(),
                        overlays: system.overlays.join(" "),
                        profile_crc32: digest(system),
                    };
                    if named.insert(row.key()) {
                        jobs.push(Job { system, operation, row });
                    }
                }
            }
        }
    }
    Ok(jobs)
}

fn digest(system: &System) -> String {
    let numbers = system.numbers.iter().map(|(name, number)| format!("{name}={}\n", number.value));
    format!("{:08x}", crc32fast::hash(numbers.collect::<String>().as_bytes()))
}

/// Runs the jobs that `known` lacks on all threads; `done` sees each new row, in the jobs' order.
fn measure(
    options: &Options,
    jobs: &[Job<'_>],
    mut known: BTreeMap<Key, Row>,
    mut done: impl FnMut(&Row) -> Result<(), Failure>,
) -> Result<Vec<Row>, Failure> {
    let missing: Vec<&Job<'_>> = jobs.iter().filter(|job| !known.contains_key(&job.row.key())).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let threads = options.threads.map_or(cores, usize::from).min(missing.len());
    let progress = Progress::counted(missing.len() as u64, "runs");
    let next = AtomicUsize::new(0);
    let (sender, receiver) = mpsc::channel();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            let sender = sender.clone();
            let (next, missing) = (&next, &missing);
            scope.spawn(move || {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(job) = missing.get(index) else { break };
                    // The receiver is gone where another run failed: nothing is left to do.
                    if sender.send((index, observe(job))).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        // Rows come in any order and are handed on in that of the jobs.
        let (mut early, mut turn) = (BTreeMap::new(), 0);
        for (index, row) in receiver {
            progress.advance();
            early.insert(index, row);
            while let Some(row) = early.remove(&turn) {
                let row = row?;
                done(&row)?;
                known.insert(row.key(), row);
                turn += 1;
            }
        }
        Ok::<(), Failure>(())
    })?;
    drop(progress);
    Ok(jobs.iter().filter_map(|job| known.get(&job.row.key()).cloned()).collect())
}

/// One run on the twin.
fn observe(job: &Job<'_>) -> Result<Row, Failure> {
    let router = Arc::new(Router::new(job.system)?);
    let route = Arc::new(router.route(&job.operation)?);
    let mut row = job.row.clone();
    let latency_s = route.latency(&router).as_seconds();
    let expected_per_s = (row.capacity_mreq_per_s * 1e6).min(f64::from(row.in_flight) / latency_s);
    // A burst of a large payload costs as many events as a small operation.
    let bursts = route.payload.get().div_ceil(16 << 10).max(1);
    let counted = (u64::from(row.operations) / bursts).max(400) as f64;
    let filled_s = 2.0 * f64::from(row.in_flight) / expected_per_s;
    let warm_up_s = filled_s.max(4.0 * latency_s).max(0.2 * counted / expected_per_s);
    let time = |seconds: f64| Time::from_ps((seconds * 1e12).ceil() as u64);
    let load = Load {
        mix: vec![(route.clone(), 1.0)],
        arrivals: Arrivals::Closed { in_flight: row.in_flight },
        warm_up: time(warm_up_s),
        window: time(counted / expected_per_s),
        // A row's draws depend on the row alone, so a sweep can grow without changing it.
        seed: Seed::new(row.seed)
            .child(&row.verb)
            .child(&row.path)
            .index(row.payload_bytes)
            .index(u64::from(row.in_flight)),
        faults: None,
    };
    let observed = run_load(&router, &load).map_err(|error| match error {
        LoadError::Stalled { .. } => Failure::negative(
            format!("{} on {} with {} in flight: {error}", row.verb, row.path, row.in_flight),
            "lower `--in-flight`",
        ),
        other => Failure::input(other.to_string(), "change `--in-flight` or `--size`"),
    })?;
    let us = |time: Option<Time>| time.map(|time| round(time.as_us()));
    let mreq_per_s = observed.throughput_per_s / 1e6;
    row.latency_us_mean = us(observed.latencies.mean());
    row.latency_us_p50 = us(observed.latencies.quantile(0.5));
    row.latency_us_p99 = us(observed.latencies.quantile(0.99));
    row.throughput_ci95_low_mreq_per_s = Some(round(observed.interval.low / 1e6));
    row.throughput_ci95_high_mreq_per_s = Some(round(observed.interval.high / 1e6));
    match observed.interval.result() {
        Some(_) => {
            row.throughput_mreq_per_s = Some(round(mreq_per_s));
            row.throughput_gbit_per_s = Some(round(mreq_per_s * route.payload.get() as f64 * 8.0 / 1e3));
        }
        None => row.throughput_unknown_because = Some(TOO_WIDE.to_string()),
    }
    // A pool counts requests, not server time.
    let is_pool = |station| matches!(router.kind(station), StationKind::Pool { .. });
    let name = |station: StationId| router.stations()[station.index()].name.clone();
    let binding = observed.usage.iter().find(|usage| name(usage.station) == row.binding_station);
    row.binding_station_utilization = match binding.filter(|usage| !is_pool(usage.station)) {
        Some(usage) => round(usage.fullest().map_or(0.0, |(_, share)| share)),
        None => round(mreq_per_s / row.capacity_mreq_per_s),
    };
    let fullest = observed
        .usage
        .iter()
        .filter(|usage| !is_pool(usage.station))
        .filter_map(|usage| usage.fullest().map(|(machine, share)| (usage.station, machine, share)))
        .reduce(|fullest, one| if one.2 > fullest.2 { one } else { fullest });
    if let Some((station, machine, share)) = fullest.filter(|(_, _, share)| *share > 0.0) {
        row.fullest_station = Some(name(station));
        row.fullest_role = Some(job.system.machines[router.stations()[station.index()].machine].role.clone());
        row.fullest_machine = Some(machine + 1);
        row.fullest_machines = u32::try_from(router.stations()[station.index()].instances).ok();
        row.fullest_utilization = Some(round(share));
    }
    Ok(row)
}

/// What a sweep of verbs that nothing published is about has to say of itself.
fn unpublished(verbs: &[Verb]) -> String {
    let unknown = verbs.iter().filter(|verb| !verb.is_published());
    let (atomics, others): (Vec<&Verb>, Vec<&Verb>) = unknown.partition(|verb| verb.is_atomic());
    let mut said = String::new();
    if !atomics.is_empty() {
        said += "\nNothing is published of atomics, so they are priced as READs of 8 B, and several on one word are not \
                 held up by each other: order only.\n";
    }
    if !others.is_empty() {
        let named: Vec<String> = others.iter().map(|verb| format!("`{verb}`")).collect();
        said += &format!("\nNo published row is about {}: order only.\n", named.join(", "));
    }
    said
}

/// Why a row has no throughput.
const TOO_WIDE: &str =
    "its 95% interval is wider than its mean: raise --operations for a longer window, or lower --in-flight";

const HEADER: [&str; 13] = [
    "verb",
    "path",
    "payload",
    "clients",
    "unloaded us",
    "p50 us",
    "p99 us",
    "Mreq/s",
    "Gbit/s",
    "capacity Mreq/s",
    "binds",
    "busy",
    "fullest",
];

fn entries(row: &Row) -> Vec<TableCell> {
    let number = |value: f64| TableCell::Number(crate::output::short(value));
    let optional =
        |value: Option<f64>| TableCell::Number(value.map_or("-".to_string(), crate::output::short));
    vec![
        TableCell::Name(row.verb.clone()),
        TableCell::Strong(row.path.clone()),
        TableCell::Number(Bytes::new(row.payload_bytes).to_string()),
        TableCell::Number(row.clients.to_string()),
        number(row.unloaded_latency_us),
        optional(row.latency_us_p50),
        optional(row.latency_us_p99),
        optional(row.throughput_mreq_per_s),
        optional(row.throughput_gbit_per_s),
        number(row.capacity_mreq_per_s),
        TableCell::Name(row.binding_station.clone()),
        TableCell::Number(percent(row.binding_station_utilization, 0)),
        TableCell::Name(row.fullest().unwrap_or_else(|| "-".to_string())),
    ]
}

/// The first line of a sweep's file.
fn header(jobs: &[Job<'_>]) -> String {
    let mut text = csv::Writer::from_writer(Vec::new());
    jobs.iter().take(1).for_each(|job| text.serialize(&job.row).expect("memory takes a row"));
    let text = String::from_utf8(text.into_inner().expect("memory takes a row")).expect("rows are text");
    text.lines().next().unwrap_or_default().to_string()
}

/// The rows of a file that an earlier sweep left. A last line that was cut off is left out.
fn read(path: &FilePath, header: &str) -> Result<BTreeMap<Key, Row>, Failure> {
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
        .deserialize::<Row>()
        .map(|row| row.map(|row| (row.key(), row)).map_err(|error| refuse(&error)))
        .collect()
}

/// Rows that the sweep does not have would be lost, so they are refused.
fn refuse_strangers(path: &FilePath, known: &BTreeMap<Key, Row>, jobs: &[Job<'_>]) -> Result<(), Failure> {
    let named: BTreeSet<Key> = jobs.iter().map(|job| job.row.key()).collect();
    let Some((_, row)) = known.iter().find(|(key, _)| !named.contains(key)) else { return Ok(()) };
    let shown = path.display();
    if jobs.iter().any(|job| is_other_profile(&job.row, row)) {
        return Err(Failure::input(
            format!("the rows of `{shown}` were made from other numbers of `{}`", row.device),
            "the profile was changed since; write to another file, so that no two cards are in one",
        ));
    }
    if let Some(own) = jobs.iter().map(|job| &job.row).find(|own| is_other_system(own, row)) {
        return Err(Failure::input(
            format!("the rows of `{shown}` are of {}, and this sweep is of {}", row.system(), own.system()),
            "write to another file, or repeat the settings of the sweep that wrote it",
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

/// Rows that this program would not write are refused: of all what is known before a run is compared, and the
/// first that is kept runs again. Seeds make that the same bytes, so another row is another version's or an
/// editor's.
fn refuse_stale(path: &FilePath, known: &BTreeMap<Key, Row>, jobs: &[Job<'_>]) -> Result<(), Failure> {
    let kept = || jobs.iter().filter_map(|job| known.get(&job.row.key()).map(|row| (job, row)));
    let stale = |row: &Row| {
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
    let before = |row: &Row| (row.unloaded_latency_us, row.capacity_mreq_per_s, row.binding_station.clone());
    if let Some((_, row)) = kept().find(|(job, row)| before(&job.row) != before(row)) {
        return Err(stale(row));
    }
    match kept().next() {
        Some((job, row)) if observe(job)? != *row => Err(stale(row)),
        _ => Ok(()),
    }
}

/// Whether two rows would be one but for the numbers of their profile.
fn is_other_profile(one: &Row, other: &Row) -> bool {
    one.profile_crc32 != other.profile_crc32
        && one.key() == Row { profile_crc32: one.profile_crc32.clone(), ..other.clone() }.key()
}

/// Whether two rows would be one but for the system that they are of.
fn is_other_system(one: &Row, other: &Row) -> bool {
    let own = one.clone();
    let (device, testbed, mode) = (own.device, own.testbed, own.mode);
    let (overlays, profile_crc32) = (own.overlays, own.profile_crc32);
    let moved = Row { device, testbed, mode, overlays, profile_crc32, ..other.clone() };
    one.key() != other.key() && one.key() == moved.key()
}

/// A CSV file that grows row by row.
struct Writer<'a> {
    path: &'a FilePath,
    rows: csv::Writer<File>,
    /// The lock of the file, which is another one than before it was put in order.
    _held: Option<File>,
}

fn open<'a>(path: &'a FilePath, known: &BTreeMap<Key, Row>) -> Result<Writer<'a>, Failure> {
    let known: Vec<Row> = known.values().cloned().collect();
    replace(path, &known)?;
    let file = File::options().append(true).open(path).map_err(|error| unwritable(path, &error))?;
    let rows = csv::WriterBuilder::new().has_headers(known.is_empty()).from_writer(file);
    Ok(Writer { path, rows, _held: hold(path)? })
}

/// Puts a file with these rows in the place of an earlier one, at once, so that no row is ever lost.
fn replace(path: &FilePath, rows: &[Row]) -> Result<(), Failure> {
    let mut text = csv::Writer::from_writer(Vec::new());
    for row in rows {
        text.serialize(row).map_err(|error| unwritable(path, &error.into()))?;
    }
    let text = text.into_inner().map_err(|error| unwritable(path, error.error()))?;
    output::replace(path, &text).map_err(|error| unwritable(path, &error))
}

impl Writer<'_> {
    fn append(&mut self, row: &Row) -> Result<(), Failure> {
        self.rows.serialize(row).map_err(|error| unwritable(self.path, &error.into()))?;
        self.rows.flush().map_err(|error| unwritable(self.path, &error))
    }

    fn replace(self, rows: &[Row]) -> Result<(), Failure> {
        replace(self.path, rows)
    }
}
