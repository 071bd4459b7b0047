//! `offpath shard`: a Redis or Valkey cluster over endpoints of unlike strength.

use clap::{Args, Subcommand};
use indicatif::ProgressBar;
use offpath_quantity::Time;
use offpath_redis::shard::apply::{Done, apply_through_stalls};
use offpath_redis::shard::bitmap::Bitmap;
use offpath_redis::shard::client::RedisAccess;
use offpath_redis::shard::plan::SlotPlan;
use offpath_redis::shard::slots::slot;
use offpath_redis::shard::{ShardError, measure, topology};
use offpath_terminal::Context;
use offpath_terminal::failure::Failure;
use offpath_terminal::output::{Format, OutputFile, SCHEMA_VERSION, TableCell, short, tell};
use serde::Serialize;
use std::io::{IsTerminal, stderr};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

pub const EXAMPLES: &str = "\
Examples:
  offpath shard plan host=10.0.0.1:7000 card=10.0.0.2:7000 --measure 2s --out shards.toml
  offpath shard plan host=10.0.0.1:7000=250000 card=10.0.0.2:7000=90000 --out shards.toml
  offpath shard plan host=10.0.0.1:7000=250000 soc=10.0.0.2:7000 --device bluefield2
  offpath shard apply shards.toml
  offpath shard status 10.0.0.1:7000
  offpath shard rebalance shards.toml --observe 5s
  offpath shard route user:17 user:18 --at 10.0.0.1:7000 --host 10.0.0.1:7000";

/// Distribute a Redis Cluster's hash slots across host and DPU
#[derive(Args, Debug)]
pub struct Options {
    /// The ACL user
    #[arg(long, global = true, requires = "password_file")]
    user: Option<String>,
    /// A file with the password of every server
    #[arg(long, global = true, value_name = "FILE")]
    password_file: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Give each endpoint its share of the 16384 slots
    Plan(PlanOptions),
    /// Make a cluster of a plan, or change one, while clients work
    Apply(ApplyOptions),
    /// Print the shares of a cluster and whether slots are on their way
    Status(StatusOptions),
    /// Measure capacities again, and move the fewest slots that follow from them
    Rebalance(RebalanceOptions),
    /// Print where keys are
    Route(RouteOptions),
    Mongo(crate::mongo::Options),
}

#[derive(Args, Debug)]
struct PlanOptions {
    /// NAME=HOST:PORT, or NAME=HOST:PORT=REQUESTS_PER_SECOND
    #[arg(required = true, value_name = "ENDPOINT")]
    endpoints: Vec<String>,
    /// Load each endpoint that has no rate for this long, one after another
    #[arg(long, value_name = "TIME", conflicts_with = "device")]
    measure: Option<String>,
    /// Work out the rates of endpoints that have none from the first one that has, by the clocks of
    /// the endpoints of these names on this device. A rough guide, where nothing can be measured yet
    #[arg(long, value_name = "DEVICE")]
    device: Option<String>,
    /// Write the plan to this file
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct ApplyOptions {
    /// A file that `offpath shard plan --out` wrote
    plan: PathBuf,
    /// Wait for endpoints that do not answer, until nothing has moved for this long
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: String,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
struct StatusOptions {
    /// HOST:PORT of any server of the cluster
    server: String,
}

#[derive(Args, Debug)]
struct RebalanceOptions {
    /// The plan; it is written again with the rates and shares that were found
    plan: PathBuf,
    /// Observe the load that the servers have for this long
    #[arg(long, value_name = "TIME", default_value = "5s", conflicts_with = "measure")]
    observe: String,
    /// Load each endpoint for this long instead
    #[arg(long, value_name = "TIME")]
    measure: Option<String>,
    /// Wait for endpoints that do not answer, until nothing has moved for this long
    #[arg(long, value_name = "TIME", default_value = "60s")]
    timeout: String,
    /// Say what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
}

#[derive(Args, Debug)]
struct RouteOptions {
    /// The keys
    #[arg(required_unless_present = "bitmap")]
    keys: Vec<String>,
    /// HOST:PORT of any server of the cluster
    #[arg(long, value_name = "SERVER")]
    at: String,
    /// The endpoint that is the host, for the bitmap of two endpoints
    #[arg(long, value_name = "SERVER")]
    host: Option<String>,
    /// Write the 2048 bytes of the bitmap to this file: a set bit is a slot of the host
    #[arg(long, value_name = "FILE", requires = "host")]
    bitmap: Option<PathBuf>,
}

/// What an error leads to.
fn refused(error: ShardError) -> Failure {
    Failure::input(error.to_string(), "`offpath shard --help` shows the order of the steps")
}

pub(super) fn time(option: &str, text: &str) -> Result<Duration, Failure> {
    let time: Time = text.parse()?;
    if !(Time::from_ms(100)..=Time::from_ms(600_000)).contains(&time) {
        return Err(Failure::input(format!("{option} {text} is out of range"), "choose 100ms to 600s"));
    }
    Ok(Duration::from_nanos(time.ps() / 1_000))
}

/// Refuses what is not a HOST:PORT, before anything is looked up.
fn server(option: &str, text: &str) -> Result<(), Failure> {
    let port = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.is_empty())
        .and_then(|(_, port)| port.parse::<u16>().ok());
    match port {
        Some(port) if port > 0 => Ok(()),
        _ => Err(Failure::input(
            format!("{option} `{text}` is not the address of a server"),
            "write HOST:PORT, as in `10.0.0.1:7000`",
        )),
    }
}

fn read(path: &PathBuf) -> Result<SlotPlan, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::input(
            format!("{}: {error}", path.display()),
            "`offpath shard plan ... --out FILE` writes a plan",
        )
    })?;
    SlotPlan::parse(&text).map_err(|error| {
        Failure::input(
            format!("`{}` is not a plan of shares: {error}", path.display()),
            "`offpath shard plan ... --out FILE` writes a plan",
        )
    })
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    // A device's numbers are a guide to a plan alone.
    let command = match &options.command {
        Command::Plan(plan) if plan.device.is_some() => None,
        Command::Plan(_) => Some("shard plan` without `--device"),
        Command::Apply(_) => Some("shard apply"),
        Command::Status(_) => Some("shard status"),
        Command::Rebalance(_) => Some("shard rebalance"),
        Command::Route(_) => Some("shard route"),
        Command::Mongo(_) => Some("shard mongo"),
    };
    command.map_or(Ok(()), |command| context.system.refuse(command, false))?;
    let password = match &options.password_file {
        None => None,
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(|error| {
                Failure::input(format!("{}: {error}", path.display()), "name a file with the password")
            })?;
            Some(text.lines().next().unwrap_or_default().to_string())
        }
    };
    let access = RedisAccess { user: options.user.clone(), password };
    let text = match &options.command {
        Command::Plan(plan) => self::plan(plan, &access, context)?,
        Command::Apply(apply) => {
            let plan = read(&apply.plan)?;
            let done = carry_out(&plan, &access, apply.dry_run, &apply.timeout)?;
            shown(&done, apply.dry_run, context)?
        }
        Command::Status(status) => {
            server("SERVER", &status.server)?;
            self::status(&status.server, &access, context)?
        }
        Command::Rebalance(rebalance) => self::rebalance(rebalance, &access, context)?,
        Command::Route(route) => self::route(route, &access, context)?,
        Command::Mongo(mongo) => {
            let (text, code) = crate::mongo::run(mongo, access.user, access.password, context)?;
            context.screen.emit(&text)?;
            return Ok(code);
        }
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

/// More requests a second than any server answers.
const MOST_REQUESTS: f64 = 1e12;

/// Reads NAME=HOST:PORT, or NAME=HOST:PORT=NUMBER with the endpoint's `number`; gives what is wrong.
pub fn endpoint_of<'a>(text: &'a str, number: &str) -> Result<(&'a str, &'a str, Option<f64>), String> {
    match text.split('=').collect::<Vec<_>>()[..] {
        [name, address] => Ok((name, address, None)),
        [name, address, value] => match value.parse() {
            Ok(value) => Ok((name, address, Some(value))),
            Err(_) => Err(format!("the {number} is not a number")),
        },
        _ => Err("it has no name and address".to_string()),
    }
}

fn plan(options: &PlanOptions, access: &RedisAccess, context: &Context) -> Result<String, Failure> {
    let system = match &options.device {
        Some(device) => Some(context.system.load(&context.system.library()?, device, &[])?),
        None => None,
    };
    let clock = |name: &str| -> Result<f64, Failure> {
        let Some(system) = &system else { return Ok(1.0) };
        let (_, endpoint) = system.endpoint(name)?;
        Ok(endpoint.processor.frequency.hz() as f64)
    };
    let out = options.out.as_deref().map(OutputFile::create).transpose()?;
    let mut known: Option<(&str, f64)> = None;
    let mut endpoints = Vec::new();
    for text in &options.endpoints {
        let wrong = |reason: &str| {
            Failure::input(
                format!("endpoint `{text}`: {reason}"),
                "write NAME=HOST:PORT, as in `card=10.0.0.2:7000`",
            )
        };
        let (name, address, rate) = endpoint_of(text, "rate").map_err(|why| wrong(&why))?;
        let rate = match (rate, &options.measure) {
            (Some(rate), _) => rate,
            (None, None) if system.is_some() => {
                let (known, rate) =
                    known.ok_or_else(|| wrong("no endpoint before it has a rate to scale"))?;
                // A server of one thread uses one core, and clocks are what profiles know of cores.
                rate * clock(name)? / clock(known)?
            }
            (None, Some(text)) => {
                let measured = measure::load(address, access, time("--measure", text)?).map_err(refused)?;
                tell(&format!("{name}: {:.0} requests/s ({})", measured.requests_per_second, measured.load));
                measured.requests_per_second
            }
            (None, None) => {
                return Err(wrong(
                    "its rate is unknown; add `=REQUESTS_PER_SECOND`, `--measure 2s` or `--device NAME`",
                ));
            }
        };
        if endpoints.iter().any(|(own, _, _): &(String, String, f64)| own == name) {
            return Err(wrong(&format!("`{name}` is the name of another endpoint already")));
        }
        if !(0.0..=MOST_REQUESTS).contains(&rate) {
            return Err(wrong(&format!("a rate is from 0 to {MOST_REQUESTS:e} requests/s")));
        }
        known = known.or(Some((name, rate)));
        endpoints.push((name.to_string(), address.to_string(), rate));
    }
    let plan = SlotPlan::new(&endpoints).map_err(refused)?;
    if let Some(file) = out {
        file.write(plan.text().as_bytes())?;
    }
    plan_table(&plan, context)
}

#[derive(Serialize)]
struct PlanAnswer<'a> {
    schema_version: u32,
    endpoint: &'a [offpath_redis::shard::plan::RedisEndpoint],
}

fn plan_table(plan: &SlotPlan, context: &Context) -> Result<String, Failure> {
    if context.screen.format == Format::Json {
        return context.screen.json(&PlanAnswer { schema_version: SCHEMA_VERSION, endpoint: &plan.endpoint });
    }
    let rows = plan
        .endpoint
        .iter()
        .map(|endpoint| {
            vec![
                TableCell::Name(endpoint.name.clone()),
                TableCell::Name(endpoint.address.clone()),
                TableCell::Number(short(endpoint.requests_per_second)),
                TableCell::Number(endpoint.slots.to_string()),
                TableCell::Number(format!("{:.1}%", f64::from(endpoint.slots) / 163.84)),
            ]
        })
        .collect();
    Ok(context.screen.table(&["endpoint", "address", "requests/s", "slots", "share"], rows))
}

fn carry_out(plan: &SlotPlan, access: &RedisAccess, dry_run: bool, timeout: &str) -> Result<Done, Failure> {
    let longest = time("--timeout", timeout)?;
    let bar = if stderr().is_terminal() { ProgressBar::new(0) } else { ProgressBar::hidden() };
    let mut report = |at, all| {
        bar.set_length(all as u64);
        bar.set_position(at as u64);
    };
    let mut waiting = |error: &ShardError| bar.suspend(|| tell(&format!("waits up to {timeout}: {error}")));
    let done = apply_through_stalls(plan, access, dry_run, longest, &mut report, &mut waiting);
    bar.finish_and_clear();
    done.map_err(refused)
}

#[derive(Serialize)]
struct ApplyAnswer<'a> {
    schema_version: u32,
    dry_run: bool,
    created: bool,
    joined: &'a [String],
    moved_slots: usize,
    moved_keys: u64,
    finished_moves: usize,
}

fn shown(done: &Done, dry_run: bool, context: &Context) -> Result<String, Failure> {
    if context.screen.format == Format::Json {
        return context.screen.json(&ApplyAnswer {
            schema_version: SCHEMA_VERSION,
            dry_run,
            created: done.created,
            joined: &done.joined,
            moved_slots: done.moved_slots,
            moved_keys: done.moved_keys,
            finished_moves: done.finished,
        });
    }
    let would = if dry_run { "would be " } else { "" };
    let mut text = String::new();
    if done.created {
        text.push_str(&format!("a cluster {would}created\n"));
    }
    for address in &done.joined {
        text.push_str(&format!("{address} {would}joined\n"));
    }
    if done.finished > 0 {
        text.push_str(&format!("{} interrupted moves finished\n", done.finished));
    }
    if !done.created {
        text.push_str(&format!("{} slots {would}moved", done.moved_slots));
        let keys = if dry_run { "\n".to_string() } else { format!(" with {} keys\n", done.moved_keys) };
        text.push_str(&keys);
    }
    Ok(text)
}

#[derive(Serialize)]
struct NodeRow {
    address: String,
    role: &'static str,
    slots: u16,
    ranges: String,
    moving_slots: usize,
    failed: bool,
}

#[derive(Serialize)]
struct StatusAnswer {
    schema_version: u32,
    state: String,
    node: Vec<NodeRow>,
}

fn status(server: &str, access: &RedisAccess, context: &Context) -> Result<String, Failure> {
    let mut client = access.connect(server).map_err(ShardError::from).map_err(refused)?;
    let info = client.text(&["CLUSTER", "INFO"]).map_err(ShardError::from).map_err(refused)?;
    let state = info
        .lines()
        .find_map(|line| line.strip_prefix("cluster_state:"))
        .unwrap_or("unknown")
        .trim()
        .to_string();
    let mut rows = Vec::new();
    for node in topology::nodes(&mut client).map_err(refused)? {
        // Only a node itself tells which of its slots are on their way.
        let moving = match access
            .connect(&node.address)
            .map_err(ShardError::from)
            .and_then(|mut own| topology::nodes(&mut own))
        {
            Ok(nodes) => nodes.iter().filter(|node| node.myself).map(|node| node.open.len()).sum(),
            Err(_) => 0,
        };
        rows.push(NodeRow {
            address: node.address,
            role: if node.master { "master" } else { "replica" },
            slots: node.slots.len(),
            ranges: node.slots.to_string(),
            moving_slots: moving,
            failed: node.failed,
        });
    }
    rows.sort_by(|a, b| a.address.cmp(&b.address));
    if context.screen.format == Format::Json {
        return context.screen.json(&StatusAnswer { schema_version: SCHEMA_VERSION, state, node: rows });
    }
    let table = rows
        .into_iter()
        .map(|row| {
            vec![
                TableCell::Name(row.address),
                TableCell::Name(if row.failed { format!("{}, failed", row.role) } else { row.role.into() }),
                TableCell::Number(row.slots.to_string()),
                TableCell::Number(format!("{:.1}%", f64::from(row.slots) / 163.84)),
                TableCell::Number(row.moving_slots.to_string()),
                TableCell::Text(row.ranges),
            ]
        })
        .collect();
    let header = ["address", "role", "slots", "share", "moving", "ranges"];
    Ok(format!("cluster state: {state}\n{}", context.screen.table(&header, table)))
}

fn rebalance(options: &RebalanceOptions, access: &RedisAccess, context: &Context) -> Result<String, Failure> {
    let old = read(&options.plan)?;
    // Slots that moved and are not written down would be lost to the next rebalance.
    let out = (!options.dry_run).then(|| OutputFile::create(&options.plan)).transpose()?;
    let mut endpoints = Vec::new();
    for endpoint in &old.endpoint {
        let measured = match &options.measure {
            Some(text) => {
                measure::load(&endpoint.address, access, time("--measure", text)?).map_err(refused)?
            }
            None => measure::observe(&endpoint.address, access, time("--observe", &options.observe)?)
                .map_err(refused)?,
        };
        tell(&format!(
            "{}: {:.0} requests/s ({})",
            endpoint.name, measured.requests_per_second, measured.load
        ));
        endpoints.push((endpoint.name.clone(), endpoint.address.clone(), measured.requests_per_second));
    }
    let plan = SlotPlan::new(&endpoints).map_err(refused)?;
    let done = carry_out(&plan, access, options.dry_run, &options.timeout)?;
    if let Some(file) = out {
        file.write(plan.text().as_bytes())?;
    }
    if context.screen.format == Format::Json {
        return shown(&done, options.dry_run, context);
    }
    Ok(plan_table(&plan, context)? + &shown(&done, options.dry_run, context)?)
}

#[derive(Serialize)]
struct KeyRow {
    key: String,
    slot: u16,
    address: String,
}

#[derive(Serialize)]
struct RouteAnswer {
    schema_version: u32,
    key: Vec<KeyRow>,
}

fn route(options: &RouteOptions, access: &RedisAccess, context: &Context) -> Result<String, Failure> {
    server("--at", &options.at)?;
    let mut client = access.connect(&options.at).map_err(ShardError::from).map_err(refused)?;
    let bitmap = match &options.host {
        Some(host) => Some(Bitmap::read(&mut client, host).map_err(refused)?),
        None => None,
    };
    if let (Some(path), Some(bitmap)) = (&options.bitmap, &bitmap) {
        OutputFile::create(path)?.write(bitmap.bytes())?;
    }
    let nodes = topology::nodes(&mut client).map_err(refused)?;
    let rows: Vec<KeyRow> = options
        .keys
        .iter()
        .map(|key| {
            let slot = slot(key.as_bytes());
            let address = match &bitmap {
                Some(bitmap) => bitmap.address(key.as_bytes()).to_string(),
                None => nodes
                    .iter()
                    .find(|node| node.slots.contains(slot))
                    .map_or_else(|| "nobody".to_string(), |node| node.address.clone()),
            };
            KeyRow { key: key.clone(), slot, address }
        })
        .collect();
    if context.screen.format == Format::Json {
        return context.screen.json(&RouteAnswer { schema_version: SCHEMA_VERSION, key: rows });
    }
    if rows.is_empty() {
        return Ok(String::new());
    }
    let table = rows
        .into_iter()
        .map(|row| {
            vec![
                TableCell::Name(row.key),
                TableCell::Number(row.slot.to_string()),
                TableCell::Name(row.address),
            ]
        })
        .collect();
    Ok(context.screen.table(&["key", "slot", "server"], table))
}
