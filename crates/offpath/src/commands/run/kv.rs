//! `offpath run kv`: YCSB against the implemented key-value store.

use super::{
    BackendOptions, BackendReport, Busy, On, busiest, ns, refused, run_failed, stations_page, unread, us,
};
use crate::commands::Context;
use crate::failure::{BAD_INPUT, Failure, NEGATIVE};
use crate::output::{Format, SCHEMA_VERSION, Screen, TableCell, percent, round, short, tell};
use clap::Args;
use offpath::apps::kv::{
    self, ClientLoad, ClientReport, DriveError, DriveState, Fetch, Home, KvError, Placement, Spread,
};
use offpath::fabric::RoleName;
use offpath::quantity::Time;
use offpath::run::{Busiest, Surroundings, YcsbRun, homes_of, play};
use offpath::workload::{ClientOperation, Workload};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath run kv --on twin:bluefield2 --workload workloads/workloadc --clients 11 --sessions 16
  offpath run kv --on twin:bluefield2 --workload workloads/workloadc --mix plan.json --warm 1000
  offpath run kv --on twin:bluefield2 --workload workloads/workloadb --mix controller:A5-send,A4
  offpath run kv --on twin:bluefield2 --workload workloads/workloada --set soc.pcie_mtu=512B
  offpath run kv --on local --workload workloads/workloadf --property operationcount=100000
  offpath run kv --on verbs:mlx5_0 --workload workloads/workloadd --connect 10.0.0.1:7000

The placement decides the transport of a get: A1, A4 and A5-read READ over RC, A2, A3 and A5-send ask the card
over UD. Puts are messages over RC. Server and client are given the same workload and shape; a client
refuses a server of another.";

/// YCSB against the key-value store, workloads A to D and F
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    #[command(flatten)]
    backend: BackendOptions,
    #[command(flatten)]
    store: StoreOptions,
    /// How gets are spread: a file that `offpath plan --format json` wrote, for the shares of its best
    /// mix, or `controller`, or `controller:FIRST,SECOND`
    #[arg(long, value_name = "PLAN|controller", conflicts_with = "placement")]
    mix: Option<String>,
    /// Clients; the twin spreads them over its client machines
    #[arg(long, default_value_t = 1, value_parser = crate::options::whole::<u32>(1, 4096))]
    clients: u32,
    /// Sessions of each client, each with one operation at a time [default: the workload's threadcount]
    #[arg(long, value_parser = crate::options::whole::<u32>(1, 65536))]
    sessions: Option<u32>,
    /// Time under load before anything is measured
    #[arg(long, value_name = "TIME", default_value = "0s")]
    warm_up: Time,
    /// Measure for this long, whatever the workload's operationcount
    #[arg(long, value_name = "TIME", value_parser = crate::options::some_time)]
    window: Option<Time>,
}

/// The shape of a store, which its servers and clients agree on.
#[derive(Args, Debug)]
#[command(next_help_heading = "Store")]
pub struct StoreOptions {
    /// A YCSB property file
    #[arg(long, value_name = "FILE")]
    workload: PathBuf,
    /// Properties that count more than the file's, as KEY=VALUE; may be given several times
    #[arg(long = "property", value_name = "PROPERTY")]
    properties: Vec<String>,
    /// Where the index lies, and how clients get: A1, A2, A3, A4, A5-read or A5-send [default: A4]
    #[arg(long, value_parser = placement_named)]
    placement: Option<Placement>,
    /// How the card reaches the host's memory: `rdma`, or the name of a DMA engine [default: as the plan of `--mix`
    /// has it on the twin, else rdma]
    #[arg(long, value_name = "WAY")]
    fetch: Option<String>,
    /// Records that the store has room for [default: the workload's and all its inserts]
    #[arg(long, value_parser = crate::options::whole::<u64>(1, u64::MAX))]
    records: Option<u64>,
    /// Bytes of a key
    #[arg(long, value_name = "BYTES", default_value_t = 8, value_parser = crate::options::whole::<u32>(0, 65536))]
    key_bytes: u32,
    /// Slots of the card's cache [default: a quarter of the records]
    #[arg(long, value_name = "SLOTS", value_parser = crate::options::whole::<u32>(0, u32::MAX.into()))]
    cache: Option<u32>,
    /// Records that the card has in its cache from the start
    #[arg(long, value_name = "RECORDS", default_value_t = 0, value_parser = crate::options::whole::<u64>(0, u64::MAX))]
    warm: u64,
}

/// A placement's name, as plans and designs write it.
pub fn name_of(placement: Placement) -> &'static str {
    match placement {
        Placement::HostOneSided => "A1",
        Placement::SocLookup => "A2",
        Placement::SocIndex => "A3",
        Placement::SplitOneSided => "A4",
        Placement::SocCacheRead => "A5-read",
        Placement::SocCacheSend => "A5-send",
    }
}

fn placement_named(name: &str) -> Result<Placement, String> {
    let found = Placement::ALL.into_iter().find(|placement| name_of(*placement).eq_ignore_ascii_case(name));
    found.ok_or_else(|| {
        format!("the store has no placement `{name}`; it has {}", Placement::ALL.map(name_of).join(", "))
    })
}

/// What a get travels by.
fn transport_of(placement: Placement) -> &'static str {
    if placement.asks_the_card() { "SEND over UD" } else { "READ over RC" }
}

impl StoreOptions {
    /// The workload.
    pub fn workload(&self) -> Result<Workload, Failure> {
        let mut overrides = BTreeMap::new();
        for property in &self.properties {
            let Some((key, value)) = property.split_once('=') else {
                let help = "write KEY=VALUE, as in `recordcount=100000`";
                return Err(Failure::input(format!("--property {property} has no value"), help));
            };
            overrides.insert(key.to_string(), value.to_string());
        }
        let workload = Workload::load(&self.workload).and_then(|file| file.with_overrides(overrides));
        let workload = workload.map_err(|error| Failure::new(BAD_INPUT, error))?;
        for warning in workload.warnings() {
            tell(&warning.to_string());
        }
        Ok(workload)
    }

    /// The store for a workload that `clients` clients run, by the placement that is named or `otherwise`.
    pub fn options(
        &self,
        workload: &Workload,
        clients: u32,
        otherwise: Placement,
        backend: &BackendOptions,
    ) -> Result<kv::StoreConfig, Failure> {
        let one = kv::StoreConfig::of_workload(workload).map_err(failed)?;
        let inserts = workload.operation_count as f64 * workload.mix.share(ClientOperation::Insert);
        // Every client inserts what the workload says, so a store for one is too small for several.
        let all = workload.record_count.saturating_add((inserts * f64::from(clients)).ceil() as u64);
        let records = self.records.unwrap_or(all);
        if records > 1 << 31 {
            let help = "choose at most 2147483648 records";
            return Err(Failure::input(format!("a store has no room for {records} records"), help));
        }
        let mut options = kv::StoreConfig {
            preload: one.preload,
            ..kv::StoreConfig::sized(records, one.layout.value_bytes)
        };
        options.placement = self.placement.unwrap_or(otherwise);
        // Whether placements of a mix go together is said where they are run.
        let placed = name_of(options.placement);
        if self.placement.is_some_and(|placement| placement.index_home() == Home::Host) {
            let no_cache = format!("is of the card's cache, and a store by {placed} has none");
            for (given, option) in [(self.cache.is_some(), "--cache"), (self.warm > 0, "--warm")] {
                if given {
                    return Err(unread(option, &no_cache));
                }
            }
        }
        if self.fetch.is_some() && !homes_of(options.placement).contains(&Home::Soc) {
            return Err(unread(
                "--fetch",
                &format!("is for the card, and a store by {placed} does not use it"),
            ));
        }
        options.layout.key_bytes = self.key_bytes;
        if let Some(slots) = self.cache {
            options.layout.cache_slots = slots;
        }
        if self.warm > records {
            return Err(Failure::input(
                format!("{} records cannot be warm: the store has room for {records}", self.warm),
                "choose a smaller `--warm`",
            ));
        }
        options.warm = self.warm;
        if let Some(patience) = backend.patience {
            options.answer_timeout = patience;
        }
        if (1..8).contains(&self.key_bytes) && records > 1 << (8 * self.key_bytes) {
            return Err(Failure::input(
                format!("{records} records have no keys of {} B", self.key_bytes),
                "choose `--key-bytes 8`, or fewer records",
            ));
        }
        if let Some(engine) = self.fetch.as_ref().filter(|fetch| *fetch != "rdma") {
            if matches!(backend.on, On::Verbs(_)) {
                return Err(Failure::input(
                    format!("verbs have no DMA engine `{engine}`"),
                    "take `--fetch rdma`, or run on the twin",
                ));
            }
            options.fetch = Fetch::Engine(engine.clone());
        }
        Ok(options)
    }
}

/// The DMA engine by which a store's card fetches.
pub fn engine_of(store: &kv::StoreConfig) -> Option<String> {
    match &store.fetch {
        Fetch::Engine(name) => Some(name.clone()),
        _ => None,
    }
}

/// How gets are spread, and the placement whose home the index has.
fn spread(mix: Option<&str>, workload: &Workload) -> Result<(Spread, Option<Placement>), Failure> {
    let Some(mix) = mix else { return Ok((Spread::One, None)) };
    let (first, second) = match mix.strip_prefix("controller") {
        None => {
            let shares = planned(Path::new(mix), workload)?;
            let first = shares.first().map(|(placement, _)| *placement);
            return Ok((Spread::Shares(shares), first));
        }
        Some("") => (Placement::SocCacheSend, Placement::SplitOneSided),
        Some(named) => {
            let pair = named.strip_prefix(':').and_then(|names| names.split_once(','));
            let (first, second) = pair.ok_or_else(|| {
                Failure::input(
                    format!("`--mix {mix}` names no two placements"),
                    "write `controller`, or `controller:A5-send,A4`",
                )
            })?;
            let of = |name| placement_named(name).map_err(|reason| Failure::input(reason, "correct `--mix`"));
            let pair = (of(first)?, of(second)?);
            if pair.0 == pair.1 {
                return Err(Failure::input(
                    format!("`--mix {mix}` names one placement twice, which leaves nothing to split"),
                    "name two, as in `controller:A5-send,A4`, or take `--placement`",
                ));
            }
            pair
        }
    };
    Ok((Spread::Split(first, second), Some(first)))
}

/// What to say where a plan's best mix need not be the best of this run: it was found for other requests.
/// The error is why the plan's workload cannot be read.
fn strange(plan: &Value, file: &Path, workload: &Workload) -> Result<Option<String>, String> {
    let Some(written) = plan["workload_properties"].as_object() else {
        return Err("it has no `workload_properties`: another version of offpath wrote it".into());
    };
    // A design of step lists alone has no workload, and its shares name placements of no store.
    if written.is_empty() {
        return Ok(None);
    }
    let properties = written.iter().map(|(key, value)| match value {
        Value::String(value) => Ok((key.as_str(), value.as_str())),
        other => Err(format!("`workload_properties.{key}` is {other}, and not a text")),
    });
    let properties = properties.collect::<Result<Vec<_>, _>>()?;
    let planned =
        Workload::of_properties(properties, "workload_properties").map_err(|error| error.to_string())?;
    let differences = planned.differences(workload);
    Ok((!differences.is_empty()).then(|| {
        format!(
            "warning: `{}` is for {}, and this run has {}: the shares need not be the best here. They differ in: \
             {}. Plan this workload, or give the run the plan's by `--property KEY=VALUE`",
            file.display(),
            planned.description(),
            workload.description(),
            differences.join("; ")
        )
    }))
}

fn read_plan(file: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(file).map_err(|error| format!("it cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
}

/// What to say where a plan is for another system than the run's, or counts on a cache that the run begins without.
fn other_system(plan: &Value, file: &str, backend: &BackendReport, warm: u64) -> Vec<String> {
    let own = [
        ("device", backend.device.as_deref()),
        ("testbed", backend.testbed.as_deref()),
        ("mode", backend.mode.as_deref()),
    ];
    let mut differ: Vec<String> = own
        .into_iter()
        .filter_map(|(key, own)| {
            let (own, planned) = (own?, plan[key].as_str()?);
            (own != planned).then(|| format!("{key} {planned}, other {own}"))
        })
        .collect();
    if backend.device.is_some()
        && plan["overlays"].is_array()
        && plan["overlays"] != serde_json::json!(backend.overlays)
    {
        let list = |all: &[Value]| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        let planned = plan["overlays"].as_array().map_or_else(String::new, |all| list(all));
        let shown = |list: String| if list.is_empty() { "none".to_string() } else { list };
        differ.push(format!("settings {}, other {}", shown(planned), shown(backend.overlays.join(", "))));
    }
    let mut warnings = Vec::new();
    if !differ.is_empty() {
        warnings.push(format!(
            "warning: `{file}` is for another system: {}: the shares need not be the best here. Plan this system, or give \
             the run the plan's by `--set`, `--overlay`, `--testbed` and `--mode`",
            differ.join("; ")
        ));
    }
    if let Some(hits) = plan["cache_hit_ratio"].as_f64().filter(|hits| *hits > 0.0 && warm == 0) {
        warnings.push(format!(
            "warning: `{file}` counts on {:.0}% of requests that hit the card's cache, and this run begins with an empty \
             one: `--cache SLOTS --warm RECORDS` fills it",
            hits * 100.0
        ));
    }
    warnings
}

/// The shares of the best mix that a plan's JSON names.
fn planned(file: &Path, workload: &Workload) -> Result<Vec<(Placement, f64)>, Failure> {
    const HELP: &str = "name a file that `offpath plan DESIGN --format json` wrote, or `controller`";
    let refuse = |reason: String| Failure::input(format!("the mix of `{}`: {reason}", file.display()), HELP);
    let plan = read_plan(file).map_err(refuse)?;
    if plan["schema_version"] != SCHEMA_VERSION {
        let found = &plan["schema_version"];
        return Err(refuse(format!("its schema_version is {found}, this program reads {SCHEMA_VERSION}")));
    }
    let Some(shares) = plan["optimal"]["shares"].as_object() else {
        return Err(refuse("it has no `optimal.shares`, so it is not a plan".to_string()));
    };
    let mut found = Vec::new();
    for (name, share) in shares {
        let Some(share) = share.as_f64().filter(|share| (0.0..=1.0).contains(share)) else {
            return Err(refuse(format!("the share of `{name}` is {share}, and a share lies from 0 to 1")));
        };
        if share > 0.0 {
            found.push((placement_named(name).map_err(refuse)?, share));
        }
    }
    if found.is_empty() {
        return Err(refuse("its best mix is empty".to_string()));
    }
    let all: f64 = found.iter().map(|(_, share)| share).sum();
    if (all - 1.0).abs() > 1e-3 {
        return Err(refuse(format!("its shares add up to {all}, and those of a mix to 1")));
    }
    if let Some(warning) = strange(&plan, file, workload).map_err(refuse)? {
        tell(&warning);
    }
    Ok(found)
}

/// A store's error, with the exit code that it leads to.
pub fn failed(error: KvError) -> Failure {
    let (is_input, help) = match &error {
        KvError::Mismatch { .. } => (
            true,
            "give both sides the same `--workload`, `--property`, `--records`, `--key-bytes` and `--cache`",
        ),
        KvError::NoStore { .. } | KvError::LayoutVersion { .. } => (true, "check `--connect`"),
        KvError::Shape { .. } => (true, "change `--property`, `--records`, `--key-bytes` or `--warm`"),
        KvError::WrongHome { .. } => {
            (true, "placements of one store have their index on one side: A1 and A2, or A3, A4 and A5")
        }
        KvError::Share { .. } | KvError::KeySize { .. } | KvError::ValueTooLarge { .. } => (true, ""),
        KvError::Unsupported(_) => (true, "choose another `--placement`, `--fetch` or backend"),
        KvError::Region(_) => (true, "make the store smaller: `--records`, `--property fieldlength=`"),
        KvError::Full { .. } => (false, "raise `--records` on both sides"),
        KvError::Connect(_) => (false, connection_help()),
        _ => (false, "where a device answers late, as an emulated one does, raise `--patience`"),
    };
    refused(&error, is_input, help)
}

/// What to do about a peer that is not there.
pub fn connection_help() -> &'static str {
    "start the other processes with `offpath serve`, and check `--connect` and `--listen`"
}

fn drive_failed(error: DriveError) -> Failure {
    match error {
        DriveError::Store(error) => failed(error),
        error @ DriveError::Cancelled(_) => refused(&error, false, "run it again"),
        error => refused(&error, true, "`workloads/` has YCSB A to D and F, which have no scans"),
    }
}

/// Runs the clients, and the servers where they are not elsewhere.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let workload = options.store.workload()?;
    let (spread, home) = spread(options.mix.as_deref(), &workload)?;
    let mut store = options.store.options(
        &workload,
        options.clients,
        home.unwrap_or(Placement::SplitOneSided),
        &options.backend,
    )?;
    let planned = options.mix.as_deref().filter(|mix| !mix.starts_with("controller"));
    let planned = planned.map(|file| read_plan(Path::new(file)).map(|plan| (file, plan)));
    let planned = planned.transpose().map_err(|reason| Failure::input(reason, ""))?;
    // What the shares are best for: the DMA engine is a part of it, and only the twin has one.
    let engine = planned.as_ref().and_then(|(_, plan)| plan["fetch_engine"].as_str());
    if let (None, true, Some(engine)) = (&options.store.fetch, options.backend.is_twin(), engine) {
        store.fetch = Fetch::Engine(engine.to_string());
    }
    let mut load = ClientLoad::of_workload(workload);
    load.spread = spread;
    load.warm_up = options.warm_up;
    if let Some(sessions) = options.sessions {
        load.sessions = sessions;
    }
    if options.window.is_some() {
        (load.operations, load.window) = (None, options.window);
    }
    load.check().map_err(drive_failed)?;
    let needed: Vec<_> =
        homes_of(store.placement).into_iter().map(|home| RoleName::new(home.role(), 0)).collect();
    let (place, backend) = options.backend.open(context, &needed, None)?;
    if let Some((file, plan)) = &planned {
        other_system(plan, file, &backend, options.store.warm).iter().for_each(|warning| tell(warning));
    }
    let shared = DriveState::new(options.clients);
    let parts = YcsbRun { options: store, load, shared, serves: !options.backend.connects() };
    let around =
        Surroundings { seed: options.backend.seed, directory: None, engine: engine_of(&parts.options) };
    let ended = play(place, &parts, &around).map_err(run_failed)?;
    let mut all = ClientReport::default();
    // A client that waits for a server which failed tells less than the server.
    let (clients, servers): (Vec<_>, Vec<_>) =
        ended.answers.into_iter().partition(|(name, _)| name.role == "client");
    for (_, answer) in servers.into_iter().chain(clients) {
        all.add(&answer.map_err(drive_failed)?);
    }
    if all.total() == 0 {
        let window = parts.load.window.unwrap_or(all.window);
        return Err(Failure::negative(
            format!("no operation ended within the {window} that were measured"),
            "an operation takes microseconds: make `--window` longer, or leave it out",
        ));
    }
    let longest = all.operations().filter_map(|(operation, _)| Some(all.latency(operation)?.max)).max();
    if let Some(longest) =
        longest.filter(|longest| longest.times(10) > all.window && options.window.is_none())
    {
        tell(&format!(
            "warning: an operation took {longest} of the {} that were measured, in which most sessions had ended: the \
             rate is less than the store carries. Give `--window 20ms`, or more operations by `--property operationcount=`",
            all.window
        ));
    }
    let answer = Answer::of(&parts, &backend, options.backend.seed, &all, ended.elapsed, &ended.busy);
    context.screen.emit(&match context.screen.format {
        Format::Json => context.screen.json(&answer)?,
        _ => answer.page(&backend, &context.screen),
    })?;
    Ok(if all.wrong > 0 { ExitCode::from(NEGATIVE) } else { ExitCode::SUCCESS })
}

#[derive(Serialize)]
struct Kind {
    operation: &'static str,
    operations: u64,
    throughput_ops_per_s: f64,
    latency_ns_mean: f64,
    latency_ns_p50: f64,
    latency_ns_p99: f64,
    latency_ns_p999: f64,
    latency_ns_max: f64,
}

#[derive(Serialize)]
struct Gets {
    placement: &'static str,
    transport: &'static str,
    gets: u64,
    share: f64,
    cache_hit_ratio: Option<f64>,
}

#[derive(Serialize)]
struct Answer {
    schema_version: u32,
    system: &'static str,
    #[serde(flatten)]
    backend: BackendReport,
    workload: String,
    placement: &'static str,
    fetch: String,
    records: u64,
    value_bytes: u32,
    clients: u32,
    sessions_per_client: u32,
    seed: u64,
    operations: u64,
    throughput_ops_per_s: f64,
    kinds: Vec<Kind>,
    gets: Vec<Gets>,
    retries: u64,
    failed: u64,
    absent: u64,
    wrong: u64,
    window_us: f64,
    elapsed_us: f64,
    events_per_operation: Option<f64>,
    binding_station: Option<String>,
    busiest_stations: Vec<Busy>,
}

impl Answer {
    fn of(
        parts: &YcsbRun,
        backend: &BackendReport,
        seed: u64,
        report: &ClientReport,
        elapsed: Time,
        busy: &[Busiest],
    ) -> Answer {
        let seconds = report.window.as_seconds();
        let kinds = report.operations().filter_map(|(operation, operations)| {
            let latency = report.latency(operation)?;
            Some(Kind {
                operation: operation.name(),
                operations,
                throughput_ops_per_s: if seconds > 0.0 { round(operations as f64 / seconds) } else { 0.0 },
                latency_ns_mean: ns(latency.mean),
                latency_ns_p50: ns(latency.p50),
                latency_ns_p99: ns(latency.p99),
                latency_ns_p999: ns(latency.p999),
                latency_ns_max: ns(latency.max),
            })
        });
        let gets = report.gets.iter().map(|(placement, gets)| Gets {
            placement: name_of(*placement),
            transport: transport_of(*placement),
            gets: *gets,
            share: round(report.share(*placement)),
            cache_hit_ratio: report.cache_hit_ratio(*placement).map(round),
        });
        let (busiest_stations, binding_station) = busiest(busy);
        Answer {
            schema_version: SCHEMA_VERSION,
            system: "kv",
            backend: backend.clone(),
            workload: parts.load.workload.file.clone(),
            placement: name_of(parts.options.placement),
            fetch: engine_of(&parts.options).unwrap_or_else(|| "rdma".into()),
            records: parts.load.workload.record_count,
            value_bytes: parts.options.layout.value_bytes,
            clients: parts.shared.clients,
            sessions_per_client: parts.load.sessions,
            seed,
            operations: report.total(),
            throughput_ops_per_s: round(report.per_second()),
            kinds: kinds.collect(),
            gets: gets.collect(),
            retries: report.retries,
            failed: report.failed,
            absent: report.absent,
            wrong: report.wrong,
            window_us: us(report.window),
            elapsed_us: us(elapsed),
            events_per_operation: report.events_per_operation().map(round),
            binding_station,
            busiest_stations,
        }
    }

    fn page(&self, backend: &BackendReport, screen: &Screen) -> String {
        let number = |value: f64| TableCell::Number(short(value));
        let plural = |count: u32, what: &str| format!("{count} {what}{}", if count == 1 { "" } else { "s" });
        let mut text = format!(
            "kv on {}: {}, {} records of {} B\n{}, {} each{}; seed {}\n",
            backend.line,
            self.workload,
            self.records,
            self.value_bytes,
            plural(self.clients, "client"),
            plural(self.sessions_per_client, "session"),
            if self.fetch == "rdma" {
                String::new()
            } else {
                format!("; the card fetches by {}", self.fetch)
            },
            self.seed
        );
        text += &screen.heading(&format!("{} operations/s", rate(self.throughput_ops_per_s)));
        let rows = self.kinds.iter().map(|kind| {
            vec![
                TableCell::Strong(kind.operation.to_string()),
                TableCell::Number(kind.operations.to_string()),
                TableCell::Number(rate(kind.throughput_ops_per_s)),
                number(kind.latency_ns_mean / 1e3),
                number(kind.latency_ns_p50 / 1e3),
                number(kind.latency_ns_p99 / 1e3),
                number(kind.latency_ns_p999 / 1e3),
                number(kind.latency_ns_max / 1e3),
            ]
        });
        let header = ["operation", "count", "per s", "mean us", "p50 us", "p99 us", "p99.9 us", "max us"];
        text += &screen.table(&header, rows.collect());
        if !self.gets.is_empty() {
            text += &screen.heading("Gets by placement");
            let is_cached = self.gets.iter().any(|gets| gets.cache_hit_ratio.is_some());
            let rows = self.gets.iter().map(|gets| {
                let mut row = vec![
                    TableCell::Strong(gets.placement.to_string()),
                    TableCell::Number(gets.gets.to_string()),
                    TableCell::Number(percent(gets.share, 1)),
                    TableCell::Name(gets.transport.to_string()),
                ];
                let hits = gets.cache_hit_ratio.map_or_else(String::new, |ratio| percent(ratio, 1));
                row.extend(is_cached.then_some(TableCell::Number(hits)));
                row
            });
            let header = ["placement", "gets", "share", "by", "cache hits"];
            text += &screen.table(&header[..if is_cached { 5 } else { 4 }], rows.collect());
        }
        text += &stations_page(&self.busiest_stations, self.binding_station.as_ref(), screen);
        text += &format!(
            "\n{} retries, {} failed, {} absent, {} wrong\n",
            self.retries, self.failed, self.absent, self.wrong
        );
        let window = short(self.window_us / 1e3);
        text += &match self.events_per_operation {
            Some(events) => format!(
                "measured {window} ms of {} ms simulated, {} events an operation\n",
                short(self.elapsed_us / 1e3),
                short(events)
            ),
            None => format!("measured {window} ms of {} ms\n", short(self.elapsed_us / 1e3)),
        };
        text
    }
}

/// A rate for people.
fn rate(per_second: f64) -> String {
    match per_second {
        rate if rate >= 1e6 => format!("{} M", short(rate / 1e6)),
        rate if rate >= 1e3 => format!("{} k", short(rate / 1e3)),
        rate => short(rate),
    }
}
