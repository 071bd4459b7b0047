//! What `offpath sweep` answers: every combination of verb, path, payload and clients, run on the twin.

use crate::SCHEMA_VERSION;
use offpath_profile::{Library, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Carrier, PathOperation, Posting, Router, StationId, Verb};
use offpath_terminal::failure::{Failure, no_doorbell, unknown_path};
use offpath_terminal::options::{SystemOptions, posting_name};
use offpath_terminal::output::{Screen, TableCell, percent, place, round, short};
use offpath_twin::{Arrivals, Load, LoadError, Seed, run as run_load};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

/// Combinations to be run on the twin.
#[derive(Clone, Debug)]
pub struct SweepRequest {
    /// A device's name, or a .toml file that describes one.
    pub device: String,
    /// What the operations do.
    pub verbs: Vec<Verb>,
    /// Paths, as in `client-soc`.
    pub paths: Vec<String>,
    /// Payloads.
    pub payloads: Vec<Bytes>,
    /// Machines that send requests; for a path from the device itself there is one run instead.
    pub clients: Vec<u32>,
    /// Requests that each of them keeps in flight.
    pub in_flight: u32,
    /// How requests reach the NIC.
    pub posting: Posting,
    /// Operations that a run measures, fewer where payloads above 16 KiB make each of them longer.
    pub operations: u32,
    /// The seed of every draw.
    pub seed: u64,
    /// Threads; one for each core where absent. The rows are the same.
    pub threads: Option<u16>,
    /// Which system is meant.
    pub system: SystemOptions,
}

impl SweepRequest {
    /// Requests in flight at all machines together, each with its state on the twin.
    const MOST_IN_FLIGHT: u64 = 1 << 20;
}

impl Default for SweepRequest {
    fn default() -> SweepRequest {
        SweepRequest {
            device: String::new(),
            verbs: vec![Verb::Read],
            paths: Vec::new(),
            payloads: vec![Bytes::new(64)],
            clients: vec![1],
            in_flight: 32,
            posting: Posting::Single,
            operations: 20_000,
            seed: 1,
            threads: None,
            system: SystemOptions::default(),
        }
    }
}

/// One run. The CSV has these columns in this order; numbers are rounded to 6 decimals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SweepRow {
    /// What the operation does.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::verbs())))]
    pub verb: String,
    /// Requester, responder and, where one moves the data, DMA engine.
    pub path: String,
    /// Payload; 8 for atomics.
    pub payload_bytes: u64,
    /// Machines that send requests: the count of the requester's role.
    pub clients: u32,
    /// Requests always in flight, over all of them.
    pub in_flight: u32,
    /// The seed of every draw.
    pub seed: u64,
    /// Latency on idle stations; one way for messages.
    pub unloaded_latency_us: f64,
    /// Mean of the measured latencies.
    pub latency_us_mean: Option<f64>,
    /// Median.
    pub latency_us_p50: Option<f64>,
    /// 99th percentile; no evidence backs tails.
    pub latency_us_p99: Option<f64>,
    /// Operations that passed on the twin: the work of the station that is full first over what an operation asks of
    /// it. `null` where its interval is wider than it.
    pub throughput_mreq_per_s: Option<f64>,
    /// 95% interval by batch means: of the simulation, not of the card.
    pub throughput_ci95_low_mreq_per_s: Option<f64>,
    /// Its upper end.
    pub throughput_ci95_high_mreq_per_s: Option<f64>,
    /// The same as payload.
    pub throughput_gbit_per_s: Option<f64>,
    /// Why there is no throughput, and what to do.
    pub throughput_unknown_because: Option<String>,
    /// What the stations carry at most.
    pub capacity_mreq_per_s: f64,
    /// The station that limits the capacity.
    pub binding_station: String,
    /// How busy it was on its busiest machine, 0 to 1; held in-flight slots included.
    pub binding_station_utilization: f64,
    /// The station that was busiest on one machine; packet cores, which are counted in requests, are left out.
    pub fullest_station: Option<String>,
    /// The role of that machine.
    pub fullest_role: Option<String>,
    /// Which machine of its role, counted from 1.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub fullest_machine: Option<u32>,
    /// How many machines the role has.
    #[cfg_attr(test, schemars(range(min = 1)))]
    pub fullest_machines: Option<u32>,
    /// How busy it was there, 0 to 1.
    pub fullest_utilization: Option<f64>,
    /// `single`, or `batch:N`.
    pub posting: String,
    /// Operations that a run was asked to measure.
    pub operations: u32,
    /// The device that was asked for.
    pub device: String,
    /// The testbed that it stands in.
    pub testbed: String,
    /// The card's mode.
    pub mode: String,
    /// Overlays and settings in force, separated by spaces.
    pub overlays: String,
    /// CRC-32 of the names and values of the profile's numbers, in hexadecimal: rows of equal names may be of
    /// different cards.
    pub profile_crc32: String,
}

/// What makes a row the row that it is: two sweeps with equal keys give equal rows.
pub type RowKey = (String, String, u64, u32, u32, u64, String, u32, [String; 5]);

impl SweepRow {
    /// What makes it the row that it is.
    pub fn key(&self) -> RowKey {
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

impl SweepRow {
    /// The system that it is of, in words.
    pub fn system(&self) -> String {
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

/// What every combination gave.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SweepAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// One row a run, in the order verb, path, payload, clients.
    pub rows: Vec<SweepRow>,
}

/// A run to be done: everything that a row needs, checked.
struct Job {
    system: Arc<System>,
    operation: PathOperation,
    /// What is known before the run; the measured columns are empty.
    row: SweepRow,
}

/// A sweep whose device is loaded and whose combinations are not checked yet.
pub struct SweepDraft<'a> {
    request: &'a SweepRequest,
    library: Library,
    system: Arc<System>,
}

/// Runs that are checked and not run yet.
pub struct SweepRuns {
    jobs: Vec<Job>,
    threads: usize,
}

/// Runs every combination of verb, path, payload and clients on the twin.
///
/// # Errors
/// Where the device, a path or an operation is refused; and, with the exit code of a negative answer, where a run stalls.
pub fn sweep(request: &SweepRequest) -> Result<SweepAnswer, Failure> {
    let rows = SweepDraft::load(request)?.runs()?.run(BTreeMap::new(), || {}, |_| Ok(()))?;
    Ok(SweepAnswer::of(rows))
}

impl<'a> SweepDraft<'a> {
    /// Loads the device.
    ///
    /// # Errors
    /// Where a profile is refused.
    pub fn load(request: &'a SweepRequest) -> Result<SweepDraft<'a>, Failure> {
        let library = request.system.library()?;
        let system = request.system.load(&library, &request.device, &[])?;
        Ok(SweepDraft { request, library, system: Arc::new(system) })
    }

    /// What the card's mode means, where it is not the common one.
    pub fn mode_note(&self) -> Option<&'static str> {
        self.system.mode_note()
    }

    /// Checks every combination.
    ///
    /// # Errors
    /// Where a path or an operation is refused, or the testbed has not as many clients.
    pub fn runs(&self) -> Result<SweepRuns, Failure> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let threads = self.request.threads.map_or(cores, usize::from);
        Ok(SweepRuns { jobs: self.jobs(&self.others()?)?, threads })
    }
}

impl SweepRuns {
    /// The rows to come, in their order; the measured columns are empty.
    pub fn rows(&self) -> impl Iterator<Item = &SweepRow> {
        self.jobs.iter().map(|job| &job.row)
    }

    /// Runs one row again.
    ///
    /// # Errors
    /// As [`sweep`].
    pub fn again(&self, row: &SweepRow) -> Result<Option<SweepRow>, Failure> {
        self.jobs.iter().find(|job| job.row.key() == row.key()).map(observe).transpose()
    }

    /// Runs what `known` lacks on all threads: `ran` is told that a run has ended, and `done` sees each new row, in their
    /// order.
    ///
    /// # Errors
    /// As [`sweep`], and where `done` fails.
    pub fn run(
        &self,
        mut known: BTreeMap<RowKey, SweepRow>,
        mut ran: impl FnMut(),
        mut done: impl FnMut(&SweepRow) -> Result<(), Failure>,
    ) -> Result<Vec<SweepRow>, Failure> {
        let missing: Vec<&Job> = self.jobs.iter().filter(|job| !known.contains_key(&job.row.key())).collect();
        let threads = self.threads.min(missing.len());
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
                ran();
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
        Ok(self.jobs.iter().filter_map(|job| known.get(&job.row.key()).cloned()).collect())
    }
}

/// Systems with another number of requesting machines, by role and number.
type Others = BTreeMap<(String, u32), Arc<System>>;

impl SweepDraft<'_> {
    fn others(&self) -> Result<Others, Failure> {
        let SweepDraft { request, library, system: plain } = self;
        let router = Router::new(plain)?;
        let mut others = BTreeMap::new();
        for name in &request.paths {
            let path = router.path(name).map_err(|error| unknown_path(&router, name, error))?;
            let (machine, _) = plain.endpoint(&path.requester)?;
            if machine.prefix.is_empty() {
                continue;
            }
            for count in &request.clients {
                if u64::from(*count) > machine.available {
                    let (role, most) = (&machine.role, machine.available);
                    return Err(Failure::input(
                        format!("`--clients {count}`: the testbed has {most} machines `{role}`"),
                        format!("ask for {most} at most, or add `--set {role}.available={count}`"),
                    ));
                }
                let most = SweepRequest::MOST_IN_FLIGHT;
                if u64::from(*count) * u64::from(request.in_flight) > most {
                    return Err(Failure::input(
                        format!(
                            "{count} clients with {} requests each keep more than {most} in flight, which the twin holds in \
                             memory",
                            request.in_flight
                        ),
                        "ask for fewer `--clients`, or a smaller `--in-flight`: a station is full long before",
                    ));
                }
                let setting = format!("{}.count={count}", machine.role);
                let mut system = request.system.load(library, &request.device, &[setting])?;
                // The number of requesters has a column of its own.
                system.overlays = plain.overlays.clone();
                others.insert((machine.role.clone(), *count), Arc::new(system));
            }
        }
        if others.is_empty() && request.clients != SweepRequest::default().clients {
            let counts: Vec<String> = request.clients.iter().map(u32::to_string).collect();
            return Err(Failure::input(
                format!("`--clients {}`: no path begins at a client", counts.join(",")),
                "leave it out, or add a path from `client`; requests of a card's or host's own are set by `--in-flight`",
            ));
        }
        Ok(others)
    }

    /// Every run in the order of its row, each named once.
    fn jobs(&self, others: &Others) -> Result<Vec<Job>, Failure> {
        let SweepDraft { request, system: plain, .. } = self;
        let (mut jobs, mut named) = (Vec::new(), BTreeSet::new());
        let routers: BTreeMap<Option<(String, u32)>, Router> =
            std::iter::once(Ok((None, Router::new(plain)?)))
                .chain(others.iter().map(|(key, system)| Ok((Some(key.clone()), Router::new(system)?))))
                .collect::<Result<_, Failure>>()?;
        for verb in &request.verbs {
            for name in &request.paths {
                for payload in &request.payloads {
                    for clients in &request.clients {
                        let path = routers[&None].path(name)?;
                        let (machine, _) = plain.endpoint(&path.requester)?;
                        let key = (!machine.prefix.is_empty()).then(|| (machine.role.clone(), *clients));
                        let system = key.as_ref().map_or(plain, |key| &others[key]);
                        let router = &routers[&key];
                        if request.posting != Posting::Single && router.carrier(*verb, &path)? != Carrier::Nic
                        {
                            return Err(no_doorbell(request.posting, *verb, &format!("on `{path}`")));
                        }
                        let operation = PathOperation::new(*verb, path, *payload).posted(request.posting);
                        let route = router.route(&operation)?;
                        let Some((per_second, binding)) = route.demand(router).capacity(router) else {
                            continue;
                        };
                        let requesters = system.machine(&machine.role)?.count;
                        let clients = u32::try_from(requesters).unwrap_or(u32::MAX);
                        let row = SweepRow {
                            verb: verb.to_string(),
                            path: operation.path.to_string(),
                            payload_bytes: route.payload.get(),
                            clients,
                            in_flight: clients.saturating_mul(request.in_flight),
                            seed: request.seed,
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
                            posting: posting_name(request.posting),
                            operations: request.operations,
                            device: system.device.clone(),
                            testbed: system.testbed.clone(),
                            mode: system.mode.clone(),
                            overlays: system.overlays.join(" "),
                            profile_crc32: digest(system),
                        };
                        if named.insert(row.key()) {
                            jobs.push(Job { system: system.clone(), operation, row });
                        }
                    }
                }
            }
        }
        Ok(jobs)
    }
}

pub(crate) fn digest(system: &System) -> String {
    let numbers = system.numbers.iter().map(|(name, number)| format!("{name}={}\n", number.value));
    format!("{:08x}", crc32fast::hash(numbers.collect::<String>().as_bytes()))
}

/// One run on the twin.
fn observe(job: &Job) -> Result<SweepRow, Failure> {
    let router = Arc::new(Router::new(&job.system)?);
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
    let name = |station: StationId| router.stations()[station.index()].name.clone();
    let binding = observed.usage.iter().find(|usage| name(usage.station) == row.binding_station);
    row.binding_station_utilization = match binding {
        Some(usage) => round(usage.fullest().map_or(0.0, |(_, share)| share)),
        None => round(mreq_per_s / row.capacity_mreq_per_s),
    };
    let fullest = observed
        .usage
        .iter()
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
    "binds when idle",
    "busy",
    "fullest",
];

fn entries(row: &SweepRow) -> Vec<TableCell> {
    let number = |value: f64| TableCell::Number(short(value));
    let optional = |value: Option<f64>| TableCell::Number(value.map_or("-".to_string(), short));
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

impl SweepAnswer {
    /// The answer of rows that were run.
    pub fn of(rows: Vec<SweepRow>) -> SweepAnswer {
        SweepAnswer { schema_version: SCHEMA_VERSION, rows }
    }

    /// What is to be said of verbs that nothing published is about.
    fn unpublished(&self) -> String {
        let mut verbs: Vec<Verb> = self.rows.iter().filter_map(|row| row.verb.parse().ok()).collect();
        // Rows of a verb stand together.
        verbs.dedup();
        verbs.retain(|verb| !verb.is_published());
        let (atomics, others): (Vec<Verb>, Vec<Verb>) = verbs.into_iter().partition(|verb| verb.is_atomic());
        let mut said = String::new();
        if !atomics.is_empty() {
            said += "\nNothing is published of atomics, so they are priced as READs of 8 B, and several on one word are \
                     not held up by each other: order only.\n";
        }
        if !others.is_empty() {
            let named: Vec<String> = others.iter().map(|verb| format!("`{verb}`")).collect();
            said +=
                &format!("\nNothing is fitted to published rows about {}: order only.\n", named.join(", "));
        }
        said
    }

    /// The rows as a table.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = screen.table(&HEADER, self.rows.iter().map(entries).collect());
        let reasons: BTreeSet<&str> =
            self.rows.iter().filter_map(|row| row.throughput_unknown_because.as_deref()).collect();
        text.extend(reasons.iter().map(|reason| format!("\nNo throughput where {reason}.\n")));
        text + &self.unpublished()
    }
}
