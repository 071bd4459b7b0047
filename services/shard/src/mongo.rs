//! `offpath shard mongo`: a collection over MongoDB-compatible servers of unlike strength.

use crate::redis::{endpoint_of, time};
use clap::{Args, Subcommand, ValueEnum};
use indicatif::ProgressBar;
use offpath_mongo::MongoError;
use offpath_mongo::client::MongoAccess;
use offpath_mongo::key::ShardKey;
use offpath_mongo::map::{Map, Method, MongoEndpoint, shares};
use offpath_mongo::measure::reads_per_second;
use offpath_mongo::router::DocumentRouter;
use offpath_mongo::ycsb;
use offpath_terminal::Context;
use offpath_terminal::failure::Failure;
use offpath_terminal::output::{Format, OutputFile, SCHEMA_VERSION, TableCell, short, tell};
use offpath_workload::{ClientOperation, Workload};
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath shard mongo plan host=10.0.0.1:27017=3 card=10.0.0.2:27017=1 --collection ycsb.usertable --out map.toml
  offpath shard mongo plan host=10.0.0.1:27017 card=10.0.0.2:27017 --collection ycsb.usertable --measure 5s
  offpath shard mongo plan host=10.0.0.1:27017=3 card=10.0.0.2:27017=1 --collection ycsb.usertable \\
    --method range --workload workloads/workloade --out map.toml
  offpath shard mongo ycsb map.toml workloads/workloada --load --threads 8 --property recordcount=100000
  offpath shard mongo status map.toml
  offpath shard mongo rebalance map.toml host=2 card=1
  offpath shard mongo route map.toml user17 user18";

/// Distribute a MongoDB collection across host and DPU
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Give each endpoint its share of the keys of a collection that is still empty
    Plan(PlanOptions),
    /// Run a YCSB property file on the endpoints
    Ycsb(YcsbOptions),
    /// Count what each endpoint holds; this reads every key
    Status(MapOptions),
    /// Move documents until shares are those of other weights; nobody else may use the map meanwhile
    Rebalance(RebalanceOptions),
    /// Print where keys are
    Route(RouteOptions),
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Spread {
    /// By a hash of the key
    Hashed,
    /// By the order of keys
    Range,
}

#[derive(Args, Debug)]
struct PlanOptions {
    /// NAME=HOST:PORT, or NAME=HOST:PORT=WEIGHT
    #[arg(required = true, value_name = "ENDPOINT")]
    endpoints: Vec<String>,
    /// DATABASE.COLLECTION
    #[arg(long, value_name = "NAME")]
    collection: String,
    /// How keys are spread
    #[arg(long, value_enum, default_value = "hashed")]
    method: Spread,
    /// The first key of the next endpoint's range, for each endpoint but the first
    #[arg(long = "split", value_name = "KEY", conflicts_with = "workload")]
    splits: Vec<String>,
    /// Take the ranges from the keys of this YCSB property file
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Properties that count more than the file's, as KEY=VALUE
    #[arg(long = "property", value_name = "PROPERTY", requires = "workload")]
    properties: Vec<String>,
    /// Load each endpoint that has no weight for this long with point reads, one after another
    #[arg(long, value_name = "TIME")]
    measure: Option<String>,
    /// Write the map to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct YcsbOptions {
    /// A file that `offpath shard mongo plan --out` wrote
    map: PathBuf,
    /// A YCSB property file
    workload: PathBuf,
    /// Insert the records first
    #[arg(long)]
    load: bool,
    /// Threads; the file's `threadcount` unless given
    #[arg(long, value_name = "COUNT")]
    threads: Option<usize>,
    /// Properties that count more than the file's, as KEY=VALUE
    #[arg(long = "property", value_name = "PROPERTY")]
    properties: Vec<String>,
    /// What is drawn; the same seed draws the same
    #[arg(long, default_value_t = 1, value_parser = offpath_terminal::options::whole::<u64>(0, u64::MAX))]
    seed: u64,
}

#[derive(Args, Debug)]
struct MapOptions {
    /// A file that `offpath shard mongo plan --out` wrote
    map: PathBuf,
}

#[derive(Args, Debug)]
struct RebalanceOptions {
    /// A file that `offpath shard mongo plan --out` wrote; it is written again
    map: PathBuf,
    /// NAME=WEIGHT; endpoints that are not named keep theirs
    #[arg(required = true, value_name = "WEIGHT")]
    weights: Vec<String>,
}

#[derive(Args, Debug)]
struct RouteOptions {
    /// A file that `offpath shard mongo plan --out` wrote
    map: PathBuf,
    /// The keys, as strings
    #[arg(required = true)]
    keys: Vec<String>,
}

/// What an error leads to.
fn refused(error: MongoError) -> Failure {
    Failure::input(error.to_string(), "`offpath shard mongo --help` shows the order of the steps")
}

/// Runs the command with the user and password of `offpath shard`.
pub fn run(
    options: &Options,
    user: Option<String>,
    password: Option<String>,
    context: &Context,
) -> Result<(String, ExitCode), Failure> {
    let access = MongoAccess { user, password, ..MongoAccess::default() };
    let text = match &options.command {
        Command::Plan(options) => plan(options, &access, context)?,
        Command::Ycsb(options) => return run_ycsb(options, access, context),
        Command::Status(options) => status(options, access, context)?,
        Command::Rebalance(options) => rebalance(options, access, context)?,
        Command::Route(options) => route(options, context)?,
    };
    Ok((text, ExitCode::SUCCESS))
}

fn workload(path: &PathBuf, properties: &[String]) -> Result<Workload, Failure> {
    let refuse = |error| Failure::new(offpath_terminal::failure::BAD_INPUT, error);
    let mut overrides = BTreeMap::new();
    for property in properties {
        let Some((key, value)) = property.split_once('=') else {
            let help = "write KEY=VALUE, as in `recordcount=100000`";
            return Err(Failure::input(format!("--property {property} has no value"), help));
        };
        overrides.insert(key.to_string(), value.to_string());
    }
    let workload = Workload::load(path).and_then(|file| file.with_overrides(overrides)).map_err(refuse)?;
    for warning in workload.warnings() {
        tell(&format!("warning: {warning}"));
    }
    Ok(workload)
}

fn plan(options: &PlanOptions, access: &MongoAccess, context: &Context) -> Result<String, Failure> {
    // Measuring takes its time, so a file that cannot be written is refused before it.
    options.out.as_deref().map(OutputFile::create).transpose()?;
    let mut endpoints = Vec::new();
    for text in &options.endpoints {
        let wrong = |reason: &str| {
            Failure::input(
                format!("endpoint `{text}`: {reason}"),
                "write NAME=HOST:PORT=WEIGHT, as in `card=10.0.0.2:27017=1`",
            )
        };
        let (name, address, weight) = endpoint_of(text, "weight").map_err(|why| wrong(&why))?;
        let weight = match (weight, &options.measure) {
            (Some(weight), _) => weight,
            (None, Some(text)) => {
                let database = options.collection.split('.').next().unwrap_or_default();
                let rate =
                    reads_per_second(address, access, database, time("--measure", text)?).map_err(refused)?;
                tell(&format!("{name}: {rate:.0} reads/s (single documents of 1 kB)"));
                rate
            }
            (None, None) => return Err(wrong("its weight is unknown; add `=WEIGHT` or `--measure 5s`")),
        };
        endpoints.push(MongoEndpoint { name: name.to_string(), address: address.to_string(), weight });
    }
    let map = match options.method {
        Spread::Hashed if options.splits.is_empty() && options.workload.is_none() => {
            Map::hashed(&options.collection, endpoints).map_err(refused)?
        }
        Spread::Hashed => {
            let help = "add `--method range`, or leave out --split and --workload";
            return Err(Failure::input("hashed keys have no split points", help));
        }
        Spread::Range => {
            let splits: Vec<ShardKey> = match &options.workload {
                Some(file) => {
                    let weights: Vec<f64> = endpoints.iter().map(|endpoint| endpoint.weight).collect();
                    ycsb::splits(&workload(file, &options.properties)?, &weights).map_err(refused)?
                }
                None => options.splits.iter().map(|key| ShardKey::from(key.as_str())).collect(),
            };
            Map::ranges(&options.collection, endpoints, &splits).map_err(refused)?
        }
    };
    if let Some(path) = &options.out {
        map.save(path).map_err(refused)?;
    }
    shown(&map, None, context)
}

#[derive(Serialize)]
struct EndpointRow {
    name: String,
    address: String,
    weight: f64,
    share: f64,
    slots: Option<u16>,
    documents: Option<u64>,
    stray_documents: Option<u64>,
}

#[derive(Serialize)]
struct MapAnswer {
    schema_version: u32,
    collection: String,
    method: Method,
    endpoint: Vec<EndpointRow>,
    chunks: usize,
    moved: Option<MovedAnswer>,
}

impl MapAnswer {
    fn of(map: &Map, endpoint: Vec<EndpointRow>, moved: Option<MovedAnswer>) -> MapAnswer {
        MapAnswer {
            schema_version: SCHEMA_VERSION,
            collection: map.collection.clone(),
            method: map.method,
            endpoint,
            chunks: map.chunk.len(),
            moved,
        }
    }
}

#[derive(Serialize)]
struct MovedAnswer {
    documents: u64,
    copied_again: u64,
    stray_documents: u64,
    writers_paused_ms: f64,
}

fn rows(map: &Map, router: Option<&DocumentRouter>) -> Result<Vec<EndpointRow>, Failure> {
    let weights: Vec<f64> = map.endpoint.iter().map(|endpoint| endpoint.weight).collect();
    let (shares, slots) = (shares(&weights).map_err(refused)?, map.slots());
    let held = router.map(DocumentRouter::held).transpose().map_err(refused)?;
    let row = |(index, endpoint): (usize, &MongoEndpoint)| EndpointRow {
        name: endpoint.name.clone(),
        address: endpoint.address.clone(),
        weight: endpoint.weight,
        share: shares[index],
        slots: (map.method == Method::Hashed).then(|| slots[index]),
        documents: held.as_ref().map(|held| held[index].documents),
        stray_documents: held.as_ref().map(|held| held[index].strays),
    };
    Ok(map.endpoint.iter().enumerate().map(row).collect())
}

/// The endpoints of a map, with what they hold where a router can count it.
fn shown(map: &Map, router: Option<&DocumentRouter>, context: &Context) -> Result<String, Failure> {
    let rows = rows(map, router)?;
    if context.screen.format == Format::Json {
        return context.screen.json(&MapAnswer::of(map, rows, None));
    }
    Ok(format!(
        "{} is {}, in {} chunks\n{}",
        map.collection,
        map.method,
        map.chunk.len(),
        table(rows, context)
    ))
}

fn table(rows: Vec<EndpointRow>, context: &Context) -> String {
    let counted = rows.iter().all(|row| row.documents.is_some());
    let hashed = rows.iter().all(|row| row.slots.is_some());
    let mut header = vec!["endpoint", "address", "weight", "share"];
    if hashed {
        header.push("slots");
    }
    if counted {
        header.extend(["documents", "strays"]);
    }
    let number = |count: u64| TableCell::Number(count.to_string());
    let cells = |row: EndpointRow| {
        let mut cells = vec![
            TableCell::Name(row.name),
            TableCell::Name(row.address),
            TableCell::Number(short(row.weight)),
            TableCell::Number(format!("{:.1}%", 100.0 * row.share)),
        ];
        cells.extend(row.slots.map(|slots| number(slots.into())));
        cells.extend(row.documents.map(number));
        cells.extend(row.stray_documents.map(number));
        cells
    };
    context.screen.table(&header, rows.into_iter().map(cells).collect())
}

fn status(options: &MapOptions, access: MongoAccess, context: &Context) -> Result<String, Failure> {
    let router = DocumentRouter::open(&options.map, access).map_err(refused)?;
    shown(&router.map(), Some(&router), context)
}

fn spinner() -> ProgressBar {
    if stderr().is_terminal() { ProgressBar::new_spinner() } else { ProgressBar::hidden() }
}

fn rebalance(options: &RebalanceOptions, access: MongoAccess, context: &Context) -> Result<String, Failure> {
    let router = DocumentRouter::open(&options.map, access).map_err(refused)?;
    let map = router.map();
    let mut weights: Vec<f64> = map.endpoint.iter().map(|endpoint| endpoint.weight).collect();
    for text in &options.weights {
        let help = "write NAME=WEIGHT with a name of the map, as in `card=2`";
        let wrong = |reason: &str| Failure::input(format!("weight `{text}`: {reason}"), help);
        let (name, weight) = text.split_once('=').ok_or_else(|| wrong("it has no name"))?;
        let index = map.endpoint.iter().position(|endpoint| endpoint.name == name);
        let index = index.ok_or_else(|| wrong("no endpoint has that name"))?;
        weights[index] = weight.parse().map_err(|_| wrong("it is not a number"))?;
    }
    let bar = spinner();
    let moved = router.rebalance(&weights, &mut |documents| {
        bar.set_message(format!("{documents} documents copied"));
        bar.tick();
    });
    bar.finish_and_clear();
    let moved = moved.map_err(refused)?;
    let map = router.map();
    let rows = rows(&map, Some(&router))?;
    let pause = moved.pause.as_secs_f64() * 1e3;
    if context.screen.format == Format::Json {
        let moved = MovedAnswer {
            documents: moved.documents,
            copied_again: moved.again,
            stray_documents: moved.strays,
            writers_paused_ms: pause,
        };
        return context.screen.json(&MapAnswer::of(&map, rows, Some(moved)));
    }
    let mut text = table(rows, context);
    text.push_str(&format!("{} documents moved\n", moved.documents));
    if moved.strays > 0 {
        text.push_str(&format!("{} documents deleted that an interrupted move had left\n", moved.strays));
    }
    Ok(text)
}

#[derive(Serialize)]
struct KeyRow {
    key: String,
    slot: Option<u16>,
    endpoint: String,
    address: String,
}

#[derive(Serialize)]
struct RouteAnswer {
    schema_version: u32,
    key: Vec<KeyRow>,
}

fn route(options: &RouteOptions, context: &Context) -> Result<String, Failure> {
    let map = Map::load(&options.map).map_err(refused)?;
    let row = |text: &String| {
        let key = ShardKey::from(text.as_str());
        let endpoint = &map.endpoint[map.owner(&key)];
        KeyRow {
            key: text.clone(),
            slot: (map.method == Method::Hashed).then(|| key.slot()),
            endpoint: endpoint.name.clone(),
            address: endpoint.address.clone(),
        }
    };
    let rows: Vec<KeyRow> = options.keys.iter().map(row).collect();
    if context.screen.format == Format::Json {
        return context.screen.json(&RouteAnswer { schema_version: SCHEMA_VERSION, key: rows });
    }
    let cells = |row: KeyRow| {
        let slot = row.slot.map_or_else(|| "-".to_string(), |slot| slot.to_string());
        vec![
            TableCell::Name(row.key),
            TableCell::Number(slot),
            TableCell::Name(row.endpoint),
            TableCell::Name(row.address),
        ]
    };
    Ok(context.screen.table(&["key", "slot", "endpoint", "address"], rows.into_iter().map(cells).collect()))
}

#[derive(Serialize)]
struct OperationRow {
    operation: &'static str,
    operations: u64,
    latency_us_mean: f64,
    latency_us_p50: u64,
    latency_us_p99: u64,
    latency_us_max: u64,
}

#[derive(Serialize)]
struct RequestRow {
    endpoint: String,
    requests: u64,
}

#[derive(Serialize)]
struct YcsbAnswer {
    schema_version: u32,
    workload: String,
    method: Method,
    threads: usize,
    seed: u64,
    loaded_records: Option<u64>,
    load_seconds: Option<f64>,
    operations: u64,
    run_seconds: f64,
    throughput_ops_per_s: f64,
    scanned_documents: u64,
    missing_documents: u64,
    wrong_values: u64,
    operation: Vec<OperationRow>,
    endpoint: Vec<RequestRow>,
}

fn name(operation: ClientOperation) -> &'static str {
    match operation {
        ClientOperation::Read => "read",
        ClientOperation::Update => "update",
        ClientOperation::Insert => "insert",
        ClientOperation::Scan => "scan",
        ClientOperation::ReadModifyWrite => "read-modify-write",
    }
}

fn run_ycsb(
    options: &YcsbOptions,
    access: MongoAccess,
    context: &Context,
) -> Result<(String, ExitCode), Failure> {
    let workload = workload(&options.workload, &options.properties)?;
    let threads = options.threads.unwrap_or(workload.thread_count as usize);
    if !(1..=1_000).contains(&threads) {
        return Err(Failure::input(format!("{threads} threads"), "choose 1 to 1000 with --threads"));
    }
    if workload.operation_count == 0 {
        let help = "add `--property operationcount=10000`";
        return Err(Failure::input("operationcount = 0 would run for ever", help));
    }
    let router = DocumentRouter::open(&options.map, access).map_err(refused)?;
    let bar = spinner();
    let loaded = options
        .load
        .then(|| {
            ycsb::load(&router, &workload, threads, options.seed, &|records| {
                bar.set_message(format!("{records} records loaded"));
                bar.tick();
            })
        })
        .transpose()
        .map_err(refused)?;
    bar.finish_and_clear();
    let report =
        ycsb::run(&router, &workload, workload.operation_count, threads, options.seed).map_err(refused)?;
    let map = router.map();
    let lost = report.missing + report.wrong;
    let code =
        if lost == 0 { ExitCode::SUCCESS } else { ExitCode::from(offpath_terminal::failure::NEGATIVE) };
    let rate = report.operations as f64 / report.seconds;
    let rows: Vec<OperationRow> = report
        .timing
        .iter()
        .map(|timing| OperationRow {
            operation: name(timing.operation),
            operations: timing.count,
            latency_us_mean: timing.mean_us,
            latency_us_p50: timing.p50_us,
            latency_us_p99: timing.p99_us,
            latency_us_max: timing.most_us,
        })
        .collect();
    let requests = map.endpoint.iter().zip(&report.requests);
    let requests: Vec<RequestRow> = requests
        .map(|(endpoint, requests)| RequestRow { endpoint: endpoint.name.clone(), requests: *requests })
        .collect();
    if context.screen.format == Format::Json {
        let answer = YcsbAnswer {
            schema_version: SCHEMA_VERSION,
            workload: workload.file.clone(),
            method: map.method,
            threads,
            seed: options.seed,
            loaded_records: loaded.map(|(records, _)| records),
            load_seconds: loaded.map(|(_, seconds)| seconds),
            operations: report.operations,
            run_seconds: report.seconds,
            throughput_ops_per_s: rate,
            scanned_documents: report.scanned,
            missing_documents: report.missing,
            wrong_values: report.wrong,
            operation: rows,
            endpoint: requests,
        };
        return Ok((context.screen.json(&answer)?, code));
    }
    let mut text = String::new();
    if let Some((records, seconds)) = loaded {
        text.push_str(&format!("{records} records loaded in {seconds:.1} s\n"));
    }
    text.push_str(&format!(
        "{} operations in {:.1} s on {threads} threads: {} operations/s\n",
        report.operations,
        report.seconds,
        short(rate)
    ));
    if report.scanned > 0 {
        text.push_str(&format!("{} documents scanned\n", report.scanned));
    }
    if lost > 0 {
        text.push_str(&format!("{} documents missing, {} values wrong\n", report.missing, report.wrong));
    }
    let cells = |row: OperationRow| {
        let mut cells =
            vec![TableCell::Name(row.operation.to_string()), TableCell::Number(row.operations.to_string())];
        cells.push(TableCell::Number(format!("{:.0}", row.latency_us_mean)));
        let times = [row.latency_us_p50, row.latency_us_p99, row.latency_us_max];
        cells.extend(times.map(|time| TableCell::Number(time.to_string())));
        cells
    };
    let header = ["operation", "count", "mean us", "p50 us", "p99 us", "max us"];
    text.push_str(&context.screen.table(&header, rows.into_iter().map(cells).collect()));
    text.push('\n');
    let cells =
        |row: RequestRow| vec![TableCell::Name(row.endpoint), TableCell::Number(row.requests.to_string())];
    text.push_str(
        &context.screen.table(&["endpoint", "requests"], requests.into_iter().map(cells).collect()),
    );
    Ok((text, code))
}
