//! What `offpath watch` answers: counters of a machine beside what a plan expects of them.

mod text;

use crate::SCHEMA_VERSION;
use crate::import::{ImportRequest, import_each};
use crate::plan::{EndpointTrafficAnswer, TrafficAnswer};
use crate::system::SystemAnswer;
use offpath_learn::watch::{
    Counted, CounterKey, CounterReadings, NoReading, PlannedEndpoint, PlannedLink, PlannedTraffic, RateBasis,
    Watch, WatchedInterval,
};
use offpath_logs::{LogDetail, LogItem, LogReader};
use offpath_plan::{Changes, Design};
use offpath_profile::{Category, Library, SystemRequest, read_text};
use offpath_terminal::failure::{Failure, nearest};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A plan, and whose counters are held to it.
#[derive(Clone, Debug, Default)]
pub struct WatchRequest {
    /// What `offpath plan DESIGN --format json` printed.
    pub expect: PathBuf,
    /// The endpoint whose machine and function the counters are of; where absent, the host of the card.
    pub at: Option<String>,
    /// The rate of requests that is asked for, where it is known.
    pub rate_per_s: Option<f64>,
    /// RDMA devices that count; all where it is empty.
    pub devices: Vec<String>,
}

/// Counters beside a plan.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The design that was planned.
    pub design: String,
    /// The system that it was planned on.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// The endpoint whose machine and function the counters are of.
    pub at: String,
    /// The role of its machine.
    pub machine: String,
    /// Requests per second of the plan, or the load that was asked for.
    pub planned_req_per_s: f64,
    /// Lower end of its 80% interval; the load itself where one was asked for.
    pub planned_req_per_s_low_80: f64,
    /// Upper end of it.
    pub planned_req_per_s_high_80: f64,
    /// The time between each two readings.
    pub intervals: Vec<WatchIntervalAnswer>,
    /// Stations of the plan that are a tenth or more busy there and that no counter of these readings speaks of, the busiest
    /// first.
    pub not_spoken_of: Vec<UnspokenAnswer>,
    /// Figures that are no readings of counters.
    pub skipped: Vec<SkippedReadingAnswer>,
    /// Counters that stand twice in one reading with other values, and are left out.
    pub ambiguous: Vec<String>,
}

/// The time between two readings.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchIntervalAnswer {
    /// When the first reading was taken, since 1970.
    pub from_ns: u64,
    /// How long after it the second one was.
    pub length_s: f64,
    /// Which rate of requests the counters are expected at: `given` by the user, `observed` by counters of requests, or the
    /// `planned` one where nothing else is known.
    #[cfg_attr(test, schemars(extend("enum" = ["given", "observed", "planned"])))]
    pub rate_basis: &'static str,
    /// What counters of requests show; null where the readings have none of those that the plan sends.
    pub observed_req_per_s: Option<f64>,
    /// Where the rate is observed and the plan sends requests to other endpoints too: how many READs, WRITEs and atomics of a
    /// request reach a machine of this endpoint by the plan, which the rate takes for granted; null elsewhere.
    pub presumed_served_per_request: Option<f64>,
    /// The least that it should be: of the plan's interval, or a tenth below what is given.
    pub expected_req_per_s_low: f64,
    /// The most that it should be.
    pub expected_req_per_s_high: f64,
    /// Whether anything was compared with the plan.
    pub compared: bool,
    /// Counters that are known, in the order of docs/watch.md.
    pub counters: Vec<WatchedCounterAnswer>,
    /// Where plan and card differ, the largest difference first.
    pub differences: Vec<DifferenceAnswer>,
    /// What a healthy run has none of and this one has.
    pub troubles: Vec<TroubleAnswer>,
    /// Counters that give no rate.
    pub without_rate: Vec<NoRateAnswer>,
    /// RDMA devices whose counters moved; those of one name are added up.
    pub devices: Vec<String>,
    /// Counters that are not known.
    pub unknown_counters: u64,
    /// Counters whose device no reading tells, as those of ethtool, and that are left out since devices are chosen.
    pub counters_without_device: u64,
}

/// A counter in an interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WatchedCounterAnswer {
    /// Its name.
    pub counter: String,
    /// Where it is read: `counters`, `hw_counters`, `ethtool`, `net-statistics`, `hwmon-pcie` or `prometheus`.
    pub place: &'static str,
    /// What it counts.
    pub counts: &'static str,
    /// The station that it speaks of; null where it speaks of none.
    pub station: Option<String>,
    /// The unit of `value`, `expected_low` and `expected_high`.
    #[cfg_attr(
        test,
        schemars(extend("enum" = ["bytes_per_s", "packets_per_s", "tlps_per_s", "requests_per_s", "counts_per_s"]))
    )]
    pub unit: &'static str,
    /// Its rate, by the difference of the two readings.
    pub value: f64,
    /// Bytes as a share of what the station carries; null for what counts no bytes.
    pub utilization_share: Option<f64>,
    /// The least that the plan expects; null where it says nothing of it.
    pub expected_low: Option<f64>,
    /// The most that it expects.
    pub expected_high: Option<f64>,
    /// What is counted over the nearest end of what is expected: 1 within; null where nothing is expected.
    pub share: Option<f64>,
    /// Why nothing is expected; null where something is.
    pub not_compared_because: Option<&'static str>,
}

/// Where plan and card differ.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DifferenceAnswer {
    /// The counter, or `requests` for their rate.
    pub what: String,
    /// The station that it speaks of; null where it speaks of none.
    pub station: Option<String>,
    /// What is there over the nearest end of what is expected.
    pub share: f64,
    /// What to look at next.
    pub next: &'static str,
}

/// What a healthy run has none of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TroubleAnswer {
    /// The counter.
    pub counter: String,
    /// What it counts.
    pub counts: &'static str,
    /// How many per second.
    pub counts_per_s: f64,
    /// Whether something was lost or had to come again, which no rate makes good; congestion alone is not.
    pub loses: bool,
    /// What to look at next.
    pub next: &'static str,
}

/// A counter that gives no rate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NoRateAnswer {
    /// The counter.
    pub counter: String,
    /// Its device; null where that is not told.
    pub device: Option<String>,
    /// Whether it counts what is lost or comes again, so that nobody knows whether anything was.
    pub loses: bool,
    /// Why.
    pub why: String,
}

/// A station that no counter speaks of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UnspokenAnswer {
    /// The station.
    pub station: String,
    /// How busy the plan's loaded twin has it.
    pub planned_utilization_share: f64,
}

/// Figures that are no readings of counters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SkippedReadingAnswer {
    /// How many.
    pub count: u64,
    /// Why.
    pub why: &'static str,
}

/// What is read of a saved plan.
#[derive(Clone, Debug, Deserialize)]
struct SavedPlan {
    schema_version: u32,
    design: String,
    design_file: String,
    options: Vec<String>,
    #[serde(flatten)]
    system: SystemAnswer,
    traffic: TrafficAnswer,
    twin: SavedTwin,
}

#[derive(Clone, Debug, Deserialize)]
struct SavedTwin {
    utilization: BTreeMap<String, f64>,
}

/// How to save a plan.
const SAVE: &str = "save one by `offpath plan DESIGN --format json > plan.json`";

/// From which utilization on a station is named that no counter speaks of.
const BUSY: f64 = 0.1;

impl SavedPlan {
    fn read(file: &Path) -> Result<SavedPlan, Failure> {
        let name = file.display();
        let text = read_text(file)
            .map_err(|error| Failure::input(format!("the plan `{name}` cannot be read: {error}"), SAVE))?;
        let refused = |what: String| Failure::input(format!("`{name}` is no saved plan: {what}"), SAVE);
        let value: serde_json::Value =
            serde_json::from_str(&text).map_err(|error| refused(format!("it is not JSON: {error}")))?;
        if value.get("scenarios").is_some() {
            return Err(Failure::input(
                format!("`{name}` has the plans of several scenarios, and a machine runs one"),
                "save one by `offpath plan DESIGN --scenario NAME --format json > plan.json`",
            ));
        }
        if let Some(version) =
            value.get("schema_version").filter(|version| version.as_u64() != Some(SCHEMA_VERSION.into()))
        {
            return Err(refused(format!(
                "its `schema_version` is {version}, and this offpath reads {SCHEMA_VERSION}"
            )));
        }
        let plan: SavedPlan = serde_json::from_value(value).map_err(|error| refused(error.to_string()))?;
        assert_eq!(plan.schema_version, SCHEMA_VERSION);
        let plan = plan.checked().map_err(refused)?;
        plan.check_device(file)?;
        Ok(plan)
    }

    /// Refuses a plan of a device that is not there: of such a card nobody has planned anything. A file of the user's may lie on
    /// another machine than the one that is watched, and is held to the plan where it is here.
    fn check_device(&self, file: &Path) -> Result<(), Failure> {
        let option = |name: &str| {
            let place = self.options.iter().position(|option| option == name)?;
            self.options.get(place + 1)
        };
        let library = match option("--profiles") {
            None => Library::builtin(),
            Some(folder) if Path::new(folder).is_dir() => Library::with_directory(Path::new(folder))?,
            Some(_) => return Ok(()),
        };
        let device = &self.system.device;
        let Err(unknown) = library.source(Category::Device, device) else { return Ok(()) };
        let own = match option("--device") {
            Some(named) => named.clone(),
            // The design's own device may be a file beside it.
            None => match Design::load(Path::new(&self.design_file), &Changes::default()) {
                Ok(design) => design.device,
                Err(_) => return Err(unknown.into()),
            },
        };
        if !own.ends_with(".toml") {
            return Err(unknown.into());
        }
        if !Path::new(&own).exists() {
            return Ok(());
        }
        let described = library.load(&SystemRequest { device: &own, ..SystemRequest::default() })?.device;
        match described == *device {
            true => Ok(()),
            false => Err(Failure::input(
                format!(
                    "`{}` is a plan of `{device}`, and its file `{own}` describes `{described}`",
                    file.display()
                ),
                SAVE,
            )),
        }
    }

    /// The plan, whose figures are what figures of a plan can be.
    fn checked(self) -> Result<SavedPlan, String> {
        let traffic = &self.traffic;
        let mut figures = vec![
            ("req_per_s", traffic.req_per_s),
            ("req_per_s_low_80", traffic.req_per_s_low_80),
            ("req_per_s_high_80", traffic.req_per_s_high_80),
        ];
        for link in &traffic.links {
            if link.capacity_gbit_per_s <= 0.0 {
                return Err(format!("`{}` carries {} Gbit/s", link.station, link.capacity_gbit_per_s));
            }
            figures.extend([
                ("capacity_gbit_per_s", link.capacity_gbit_per_s),
                ("packets_per_request", link.packets_per_request),
                ("acknowledgements_per_request", link.acknowledgements_per_request),
                ("read_request_tlps_per_request", link.read_request_tlps_per_request),
                ("control_per_request", link.control_per_request),
                ("payload_bytes_per_request", link.payload_bytes_per_request),
            ]);
        }
        for endpoint in &traffic.endpoints {
            if endpoint.machines == 0 {
                return Err(format!("no machine has the endpoint `{}`", endpoint.endpoint));
            }
            figures.extend([
                ("reads_per_request", endpoint.reads_per_request),
                ("writes_per_request", endpoint.writes_per_request),
                ("atomics_per_request", endpoint.atomics_per_request),
                ("inside_per_request", endpoint.inside_per_request),
            ]);
        }
        if let Some((key, figure)) = figures.iter().find(|(_, figure)| !figure.is_finite() || *figure < 0.0) {
            return Err(format!("`{key}` is {figure}, and is 0 or more"));
        }
        if traffic.endpoints.is_empty() {
            return Err("it names no endpoint".to_string());
        }
        // What reaches an endpoint passes a link, at least of PCIe.
        let asked = |one: &EndpointTrafficAnswer| {
            one.reads_per_request + one.writes_per_request + one.atomics_per_request > 0.0
        };
        if let Some(one) = traffic.endpoints.iter().find(|one| asked(one))
            && traffic.links.is_empty()
        {
            return Err(format!(
                "its requests reach `{}`, and it names no link that they pass",
                one.endpoint
            ));
        }
        Ok(self)
    }
}

fn planned(traffic: &TrafficAnswer) -> PlannedTraffic {
    PlannedTraffic {
        req_per_s: traffic.req_per_s,
        req_per_s_80: (traffic.req_per_s_low_80, traffic.req_per_s_high_80),
        links: traffic
            .links
            .iter()
            .map(|link| PlannedLink {
                station: link.station.clone(),
                way: link.way.into(),
                endpoint: link.endpoint.clone(),
                machine: link.machine.clone(),
                capacity_bytes_per_s: link.capacity_gbit_per_s * 1e9 / 8.0,
                packets: link.packets_per_request,
                acknowledgements: link.acknowledgements_per_request,
                read_requests: link.read_request_tlps_per_request,
                control: link.control_per_request,
                payload_bytes: link.payload_bytes_per_request,
            })
            .collect(),
        endpoints: traffic
            .endpoints
            .iter()
            .map(|endpoint| PlannedEndpoint {
                endpoint: endpoint.endpoint.clone(),
                machine: endpoint.machine.clone(),
                machines: endpoint.machines as f64,
                of_card: endpoint.of_card,
                reads: endpoint.reads_per_request,
                writes: endpoint.writes_per_request,
                atomics: endpoint.atomics_per_request,
                inside: endpoint.inside_per_request,
            })
            .collect(),
    }
}

/// Holds readings of counters to a plan, as they come.
#[derive(Clone, Debug)]
pub struct Watcher {
    plan: SavedPlan,
    planned: PlannedTraffic,
    at: usize,
    rate: Option<f64>,
    devices: Vec<String>,
    readings: CounterReadings,
    skipped: BTreeMap<NoReading, u64>,
    spoken_of: BTreeSet<String>,
}

impl Watcher {
    /// A watcher without readings.
    ///
    /// # Errors
    /// Where the plan cannot be read or is none, or the endpoint is not the plan's.
    pub fn new(request: &WatchRequest) -> Result<Watcher, Failure> {
        let plan = SavedPlan::read(&request.expect)?;
        let planned = planned(&plan.traffic);
        let names: Vec<String> = planned.endpoints.iter().map(|one| one.endpoint.clone()).collect();
        let at = match &request.at {
            Some(name) => names.iter().position(|own| own == name).ok_or_else(|| {
                let near =
                    nearest(name, &names).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
                Failure::input(
                    format!("the plan of `{}` has no endpoint `{name}`", plan.design),
                    format!("{near}it has {}", names.join(", ")),
                )
            })?,
            None => {
                let host = plan.traffic.endpoints.iter().position(|endpoint| endpoint.host_of_card);
                host.or(planned.endpoints.iter().position(|one| one.of_card)).unwrap_or(0)
            }
        };
        Ok(Watcher {
            plan,
            planned,
            at,
            rate: request.rate_per_s,
            devices: request.devices.clone(),
            readings: CounterReadings::default(),
            skipped: BTreeMap::new(),
            spoken_of: BTreeSet::new(),
        })
    }

    /// Takes saved readings.
    ///
    /// # Errors
    /// Where a file cannot be read, or its times go back.
    pub fn read_files(&mut self, files: &[PathBuf]) -> Result<(), Failure> {
        let mut last: Option<(String, u64)> = None;
        import_each(&ImportRequest { logs: files.to_vec() }, |file, item| {
            if let LogItem::Measurement(figure) = &item
                && let Some(LogDetail::Number(time)) = figure.conditions.more.get("read_at_ns")
                // Prometheus' samples have times of their own.
                && figure.conditions.program.as_deref() != Some("prometheus")
            {
                if let Some((of, before)) = &last
                    && of == file
                    && time < before
                {
                    let seconds = |ns: u64| ns as f64 / 1e9;
                    return Err(Failure::input(
                        format!(
                            "`{file}`:{}: read at {} s, {} s before the reading above it: the clock was set back, or readings \
                             were joined out of their order, and no difference of two can be trusted",
                            figure.line,
                            seconds(*time),
                            seconds(before - time)
                        ),
                        "name readings of before and after as files of their own, and hold each to the plan by itself; files may \
                         be named in any order",
                    ));
                }
                last = Some((file.to_string(), *time));
            }
            self.take(item);
            Ok(())
        })?;
        self.check_devices()
    }

    /// Refuses a device that no reading has.
    ///
    /// # Errors
    /// Where one that was chosen is not there.
    pub fn check_devices(&self) -> Result<(), Failure> {
        let there: Vec<String> = self.readings.devices().into_iter().map(str::to_string).collect();
        let Some(missing) = self.devices.iter().find(|name| !there.contains(name)) else { return Ok(()) };
        let near =
            nearest(missing, &there).map_or_else(String::new, |near| format!("did you mean `{near}`? "));
        let list = if there.is_empty() { "no RDMA device".to_string() } else { there.join(", ") };
        Err(Failure::input(
            format!("no reading has a device `{missing}`"),
            format!("{near}the readings name {list}"),
        ))
    }

    /// Takes a reading as text, such as one of this machine.
    pub fn read_text(&mut self, text: &str) {
        for item in LogReader::new(text.as_bytes()) {
            self.take(item.expect("reading from memory does not fail"));
        }
    }

    fn take(&mut self, item: LogItem) {
        match item {
            LogItem::Measurement(figure) => {
                if let Some(why) = self.readings.add(&figure) {
                    *self.skipped.entry(why).or_default() += 1;
                }
            }
            // What is no line of counters is counted with what is no counter.
            LogItem::Remark(remark) => {
                *self.skipped.entry(NoReading::NoCounter).or_default() += remark.lines;
                self.readings.add_remark(&remark);
            }
        }
    }

    /// The intervals that readings have given since it was asked last. They are not kept here: watching may have no end.
    pub fn next_intervals(&mut self) -> Vec<WatchIntervalAnswer> {
        let at = &self.planned.endpoints[self.at];
        let watch = Watch { planned: &self.planned, at, rate: self.rate, devices: &self.devices };
        let mut intervals = Vec::new();
        for (from, to, counted) in self.readings.intervals() {
            let found = watch.interval(from, to, &counted);
            let compared = found.counters.iter().filter(|counter| counter.expected.is_ok());
            self.spoken_of.extend(compared.filter_map(|counter| counter.station.clone()));
            intervals.push(WatchIntervalAnswer::of(&found));
        }
        self.readings.keep_last();
        intervals
    }

    /// What was found in these intervals and those that it has not been asked for yet.
    pub fn answer(mut self, mut intervals: Vec<WatchIntervalAnswer>) -> WatchAnswer {
        intervals.extend(self.next_intervals());
        let at = &self.planned.endpoints[self.at];
        let mut unspoken: Vec<UnspokenAnswer> = self
            .plan
            .twin
            .utilization
            .iter()
            .filter(|(station, busy)| **busy >= BUSY && !self.spoken_of.contains(*station))
            .map(|(station, busy)| UnspokenAnswer {
                station: station.clone(),
                planned_utilization_share: *busy,
            })
            .collect();
        unspoken.sort_by(|a, b| b.planned_utilization_share.total_cmp(&a.planned_utilization_share));
        let skipped = self
            .skipped
            .iter()
            .map(|(why, count)| SkippedReadingAnswer { count: *count, why: why_not(*why) });
        WatchAnswer {
            schema_version: SCHEMA_VERSION,
            design: self.plan.design.clone(),
            system: self.plan.system.clone(),
            at: at.endpoint.clone(),
            machine: at.machine.clone(),
            planned_req_per_s: self.planned.req_per_s,
            planned_req_per_s_low_80: self.planned.req_per_s_80.0,
            planned_req_per_s_high_80: self.planned.req_per_s_80.1,
            not_spoken_of: unspoken,
            skipped: skipped.collect(),
            ambiguous: self.readings.ambiguous().map(called).collect(),
            intervals,
        }
    }
}

fn why_not(why: NoReading) -> &'static str {
    match why {
        NoReading::NoCounter => "no counters, or lines that are none",
        NoReading::Untimed => {
            "counters without a time: put a line before each reading, as `date '+time %s.%N'` prints it"
        }
        NoReading::Unended => "counters on a last line that does not end, whose number may lack digits",
    }
}

fn called(key: &CounterKey) -> String {
    let device = key.device.iter().chain(&key.part).map(|part| format!(" of {part}"));
    format!("{} ({}{})", key.name, key.place.name(), device.collect::<String>())
}

/// Holds saved readings of counters to a plan.
///
/// # Errors
/// Where the plan or a file cannot be read, or the endpoint is not the plan's; and, with the exit code of a negative answer,
/// where there are no two readings.
pub fn watch(request: &WatchRequest, readings: &[PathBuf]) -> Result<WatchAnswer, Failure> {
    let mut watcher = Watcher::new(request)?;
    watcher.read_files(readings)?;
    let count = watcher.readings.len();
    if count < 2 {
        let untimed = watcher.skipped.get(&NoReading::Untimed).copied().unwrap_or(0);
        let more = if untimed > 0 { format!(", and {untimed} counters say no time") } else { String::new() };
        return Err(Failure::negative(
            format!("{count} reading with counters and a time{more}: a rate is the difference of two"),
            "put a line before each reading, as `date '+time %s.%N'` prints it; docs/watch.md has commands that save them",
        ));
    }
    Ok(watcher.answer(Vec::new()))
}

impl WatchAnswer {
    /// Whether every interval was compared, differs nowhere and lost nothing.
    pub fn is_met(&self) -> bool {
        !self.intervals.is_empty() && self.intervals.iter().all(WatchIntervalAnswer::is_met)
    }
}

impl WatchIntervalAnswer {
    /// Whether it was compared, differs nowhere and is known to have lost nothing.
    pub fn is_met(&self) -> bool {
        self.compared && self.differences.is_empty() && !self.has_lost() && !self.may_have_lost()
    }

    /// Whether a counter of loss moved.
    pub(super) fn has_lost(&self) -> bool {
        self.troubles.iter().any(|one| one.loses)
    }

    /// Whether a counter of loss has no rate.
    pub(super) fn may_have_lost(&self) -> bool {
        self.without_rate.iter().any(|one| one.loses)
    }

    fn of(found: &WatchedInterval) -> WatchIntervalAnswer {
        let counters = found.counters.iter().map(|counter| WatchedCounterAnswer {
            counter: counter.name.clone(),
            place: counter.place.name(),
            counts: counter.meaning.counts,
            station: counter.station.clone(),
            unit: counter.meaning.unit(),
            value: counter.per_s,
            utilization_share: counter.utilization,
            expected_low: counter.expected.ok().map(|(low, _)| low),
            expected_high: counter.expected.ok().map(|(_, high)| high),
            share: counter.share(),
            not_compared_because: counter.expected.err(),
        });
        let differences = found.differences().into_iter().map(|one| DifferenceAnswer {
            what: one.what,
            station: one.station,
            share: one.share,
            next: one.next,
        });
        let troubles = found.troubles().map(|(counter, trouble)| TroubleAnswer {
            counter: counter.name.clone(),
            counts: counter.meaning.counts,
            counts_per_s: counter.per_s,
            loses: trouble.loses(),
            next: trouble.next(),
        });
        let without_rate = found.without_rate.iter().map(|one| NoRateAnswer {
            counter: one.key.name.clone(),
            device: one.key.device.clone(),
            loses: one.loses(),
            why: match one.counted {
                Counted::Fell { from, to } => {
                    format!("fell from {from} to {to}: it wrapped around, was cleared or its driver was loaded anew")
                }
                Counted::Doubted { by } => {
                    format!("grew by {by}, and others of its device fell: it may have been cleared with them, and counted more")
                }
                Counted::Unknown { by } => {
                    format!("grew by {by}: it is not known here, and by its name it counts errors")
                }
                Counted::MayHaveWrapped { by } => format!(
                    "grew by {by}, or by that and 4294967296: it has 32 bits, and so many may have come in this time; read it more often"
                ),
                Counted::Vanished { from } => {
                    format!("stood at {from}, and the next reading lacks it: that was cut off, or lost it")
                }
                Counted::Appeared { to } => {
                    format!("stands at {to}, and the reading before lacks it: how much of that came meanwhile is not known")
                }
                Counted::Stuck { bits } => format!(
                    "stands at {}, the most that its {bits} bits hold, where it stops: clear it by `perfquery -R`",
                    (1u64 << bits) - 1
                ),
                Counted::Unread => {
                    "its file holds no number, as where the kernel prints `N/A (no PMA)`: read it by `perfquery`, or on the machine \
                     that has the port"
                        .to_string()
                }
                Counted::Grew { .. } => unreachable!("what grew has a rate"),
            },
        });
        WatchIntervalAnswer {
            from_ns: found.from_ns,
            length_s: found.to_ns.saturating_sub(found.from_ns) as f64 / 1e9,
            rate_basis: match found.basis {
                RateBasis::Given(_) => "given",
                RateBasis::Observed(_) => "observed",
                RateBasis::Planned => "planned",
            },
            observed_req_per_s: found.rate.observed_per_s,
            presumed_served_per_request: found.presumed_served,
            expected_req_per_s_low: found.rate.expected_per_s.0,
            expected_req_per_s_high: found.rate.expected_per_s.1,
            compared: found.is_compared(),
            counters: counters.collect(),
            differences: differences.collect(),
            troubles: troubles.collect(),
            without_rate: without_rate.collect(),
            devices: found.devices.iter().cloned().collect(),
            unknown_counters: found.unknown,
            counters_without_device: found.untold,
        }
    }
}
