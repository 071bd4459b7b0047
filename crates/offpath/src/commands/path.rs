//! `offpath path`: what one operation on a path costs, what binds it, with confidence intervals.

mod html;

use super::Context;
use crate::chart::{BarScale, axis, sparkline};
use crate::failure::{Failure, no_doorbell, unknown_path};
use crate::options;
use crate::output::{
    Format, OutputFile, SCHEMA_VERSION, Screen, TableCell, percent, round, short, system_line,
};
use clap::Args;
use offpath::plan::known::{Known, MovedBy, known};
use offpath::profile::System;
use offpath::quantity::{Bytes, Time};
use offpath::route::{
    Carrier, Demand, Path, PathOperation, Posting, RouteError, Router, StationId, VERBS, Verb,
};
use offpath::twin::Seed;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::ExitCode;

const EXAMPLES: &str = "\
Examples:
  offpath path bluefield2 --path client-soc --verb read --size 64B
  offpath path bluefield2 --path soc-host --verb read --size 256KiB    names pcie1.down as binding
  offpath path bluefield2 --verb write --size 4KiB                     one line for each path
  offpath path bluefield2 --path soc-host --post batch:16 --set soc.pcie_mtu=512B --format json
  offpath path bluefield2 --path client-soc --html path.html           the same as a page with charts";

/// Show what an operation on a path costs, what binds it, with confidence intervals
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Options {
    /// A device's name, or a .toml file that describes one
    device: String,
    /// Requester and responder, and a DMA engine where one moves the data, as in `client-soc` or
    /// `soc-host-dma` [default: every path from or to the device]
    #[arg(long)]
    path: Option<String>,
    /// What the operation does
    #[arg(long, default_value = "read", value_parser = options::verb())]
    verb: Verb,
    /// Payload, from 0B to 1GiB [default: 64B; an atomic has its own 8B]
    #[arg(long, value_parser = options::payload)]
    size: Option<Bytes>,
    /// How requests reach the NIC: `single`, or `batch:16` for 16 behind one doorbell
    #[arg(long, default_value = "single", value_parser = options::posting)]
    post: Posting,
    /// Also write a page with charts to this file: latency and capacity against payload, the topology
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

impl Options {
    fn payload(&self) -> Bytes {
        self.verb.own_payload().or(self.size).unwrap_or(Bytes::new(64))
    }
}

/// One path's answer; the JSON has these keys in this order.
#[derive(Serialize)]
struct Report {
    schema_version: u32,
    device: String,
    testbed: String,
    mode: String,
    overlays: Vec<String>,
    path: String,
    verb: String,
    payload_bytes: u64,
    posting: String,
    /// The same in words.
    #[serde(skip)]
    posted: String,
    latency_ends: &'static str,
    latency_us: f64,
    latency_low_80_us: f64,
    latency_high_80_us: f64,
    latency_basis: &'static str,
    latency_most_moved_by: Option<String>,
    echo_latency_us: Option<f64>,
    terms: Vec<TermReport>,
    capacity_mreq_per_s: f64,
    capacity_low_80_mreq_per_s: f64,
    capacity_high_80_mreq_per_s: f64,
    capacity_basis: &'static str,
    capacity_most_moved_by: Option<String>,
    capacity_gbit_per_s: f64,
    capacity_low_80_gbit_per_s: f64,
    capacity_high_80_gbit_per_s: f64,
    binding_station: String,
    binding_station_meaning: &'static str,
    slots_held: Vec<HeldReport>,
    demand: Vec<DemandReport>,
    pcie_packets: BTreeMap<String, u64>,
    links: Vec<LinkReport>,
    ranged_numbers: Vec<RangedReport>,
    curve: Vec<PointReport>,
}

#[derive(Serialize)]
struct TermReport {
    label: String,
    station: Option<String>,
    time_ns: f64,
}

#[derive(Serialize)]
struct HeldReport {
    station: String,
    time_ns: f64,
}

#[derive(Serialize)]
struct DemandReport {
    station: String,
    meaning: &'static str,
    /// Server time of one operation; absent at a pool, which counts requests.
    time_ns: Option<f64>,
    requests: Option<u64>,
    utilization_at_capacity: f64,
}

impl DemandReport {
    fn demand_text(&self) -> String {
        match (self.time_ns, self.requests) {
            (Some(time), _) => format!("{time:.1} ns"),
            (None, Some(1)) => "1 request".to_string(),
            (None, requests) => format!("{} requests", requests.unwrap_or(0)),
        }
    }
}

#[derive(Serialize)]
struct LinkReport {
    station: String,
    data_packets: u64,
    payload_bytes: u64,
    framed_bytes: u64,
}

#[derive(Serialize)]
struct RangedReport {
    name: String,
    /// Its names on other machines with the same card.
    same_number: Vec<String>,
    low: String,
    high: String,
    latency_at_low_us: f64,
    latency_at_high_us: f64,
    capacity_at_low_mreq_per_s: f64,
    capacity_at_high_mreq_per_s: f64,
}

#[derive(Serialize)]
struct PointReport {
    payload_bytes: u64,
    latency_us: f64,
    capacity_mreq_per_s: f64,
    capacity_gbit_per_s: f64,
    binding_station: String,
}

#[derive(Serialize)]
struct Reports {
    schema_version: u32,
    device: String,
    testbed: String,
    mode: String,
    overlays: Vec<String>,
    paths: Vec<Report>,
}

/// What decides the draws behind intervals.
const SEED: u64 = 1;

/// Latency and capacity of an operation.
struct Cost {
    latency_us: f64,
    per_second: f64,
    binding: StationId,
}

fn cost(router: &Router, operation: &PathOperation) -> Result<Cost, RouteError> {
    let route = router.route(operation)?;
    let (per_second, binding) = capacity(&route.demand(router), router);
    Ok(Cost { latency_us: route.latency(router).as_us(), per_second, binding })
}

fn capacity(demand: &Demand, router: &Router) -> (f64, StationId) {
    demand.capacity(router).expect("a route asks its requester's processor")
}

/// Whether a path starts or ends at the machine that carries the device; the others are of no
/// interest to who asks for the device.
fn touches_device(system: &System, path: &Path) -> bool {
    let own = |endpoint: &str| system.endpoint(endpoint).is_ok_and(|(machine, _)| machine.prefix.is_empty());
    own(&path.requester) || own(&path.responder)
}

fn gbit_per_s(mreq_per_s: f64, payload: Bytes) -> f64 {
    round(mreq_per_s * payload.get() as f64 * 8.0 / 1e3)
}

/// How an operation begins, in words.
fn posted(router: &Router, operation: &PathOperation) -> Result<String, RouteError> {
    Ok(match router.carrier(operation.verb, &operation.path)? {
        Carrier::Nic => options::doorbells(&options::posting_name(operation.posting)),
        Carrier::Engine(_) => "posted to the engine".to_string(),
        Carrier::Processor => "by the processor itself".to_string(),
    })
}

/// The same of a verb on every path that carries it.
fn all_posted(options: &Options) -> String {
    match options.verb.row().carriers {
        [Carrier::Processor] => "by the processor itself".to_string(),
        [Carrier::Engine(_)] => "posted to an engine".to_string(),
        _ => options::doorbells(&options::posting_name(options.post)),
    }
}

/// Runs the command.
pub fn run(options: &Options, context: &Context) -> Result<ExitCode, Failure> {
    let library = context.system.library()?;
    let system = context.system.load(&library, &options.device, &[])?;
    let router = Router::new(&system)?;
    let size = options.payload();
    if let Some(given) = options.size.filter(|given| *given != size) {
        return Err(Failure::input(
            format!("`--size {given}`: a {} always moves {size}", options.verb),
            "leave `--size` out",
        ));
    }
    let operation = |path: Path| PathOperation::new(options.verb, path, size).posted(options.post);
    let screen = &context.screen;
    let mut html = options.html.as_deref().map(OutputFile::create_page).transpose()?;
    let text = match &options.path {
        Some(name) => {
            let path = router.path(name).map_err(|error| unknown_path(&router, name, error))?;
            let operation = operation(path);
            if options.post != Posting::Single
                && router.carrier(options.verb, &operation.path)? != Carrier::Nic
            {
                return Err(no_doorbell(options.post, options.verb, &format!("on `{}`", operation.path)));
            }
            let known = known(&router, std::slice::from_ref(&operation), Seed::new(SEED))?.remove(0);
            let report = report(&router, &operation, &known)?;
            if let Some(file) = html.take() {
                file.write(html::one(&report, options, &router, &operation)?.html().as_bytes())?;
            }
            match screen.format {
                Format::Json => screen.json(&report)?,
                _ => one(&report, &system, screen),
            }
        }
        None => {
            let of = |verb: Verb| {
                router
                    .paths_of(verb)
                    .into_iter()
                    .filter(|path| touches_device(&system, path))
                    .collect::<Vec<_>>()
            };
            // An engine rings no doorbell: a list of requests has no line of its.
            let is_posted = |path: &Path| options.post == Posting::Single || path.engine.is_none();
            let operations: Vec<PathOperation> =
                of(options.verb).into_iter().filter(is_posted).map(operation).collect();
            if options.post != Posting::Single && !options.verb.row().carriers.contains(&Carrier::Nic) {
                return Err(no_doorbell(options.post, options.verb, "is what no NIC does"));
            }
            if operations.is_empty() {
                let has: Vec<&str> =
                    VERBS.iter().filter(|row| !of(row.verb).is_empty()).map(|row| row.name).collect();
                return Err(Failure::input(
                    format!("`{}` has no path that carries `{}`", system.device, options.verb),
                    format!("its paths carry {}", has.join(", ")),
                ));
            }
            let known = known(&router, &operations, Seed::new(SEED))?;
            let reports = operations.iter().zip(&known);
            let reports: Vec<Report> = reports
                .map(|(operation, known)| report(&router, operation, known))
                .collect::<Result<_, _>>()?;
            if let Some(file) = html.take() {
                file.write(html::all(&reports, options, &router, &operations)?.html().as_bytes())?;
            }
            match screen.format {
                Format::Json => screen.json(&Reports {
                    schema_version: SCHEMA_VERSION,
                    device: system.device.clone(),
                    testbed: system.testbed.clone(),
                    mode: system.mode.clone(),
                    overlays: system.overlays.clone(),
                    paths: reports,
                })?,
                _ => all(&reports, options, &system, screen),
            }
        }
    };
    context.screen.emit(&text)?;
    Ok(ExitCode::SUCCESS)
}

fn report(router: &Router, operation: &PathOperation, known: &Known) -> Result<Report, RouteError> {
    let system = router.system();
    let route = router.route(operation)?;
    let unloaded = route.unloaded(router);
    let demand = route.demand(router);
    let (per_second, binding) = capacity(&demand, router);
    let name = |station: StationId| router.stations()[station.index()].name.clone();
    let latency_us = unloaded.latency.as_us();
    let capacity_mreq_per_s = round(per_second / 1e6);
    let echo_latency_us = if operation.verb.is_message() {
        let Path { requester, responder, engine } = operation.path.clone();
        let reply = Path { requester: responder, responder: requester, engine };
        let back = router.route(&PathOperation { path: reply, ..operation.clone() })?.latency(router);
        Some((unloaded.latency + back).as_us())
    } else {
        None
    };
    let ranged_numbers: Vec<RangedReport> = known.moved_by.iter().map(ranged).collect();
    let ends_us = [known.latency_s.range_80.0, known.latency_s.range_80.1].map(|end| round(end * 1e6));
    let ends_mreq_per_s = [known.rate.range_80.0, known.rate.range_80.1].map(|end| round(end / 1e6));
    let most = |span: fn(&RangedReport) -> f64| {
        let moved = ranged_numbers.iter().filter(|number| span(number) > 0.0);
        moved.max_by(|a, b| span(a).total_cmp(&span(b))).map(|number| number.name.clone())
    };
    let ledger = route.ledger(router);
    let payload = route.payload;
    Ok(Report {
        schema_version: SCHEMA_VERSION,
        device: system.device.clone(),
        testbed: system.testbed.clone(),
        mode: system.mode.clone(),
        overlays: system.overlays.clone(),
        path: operation.path.to_string(),
        verb: operation.verb.to_string(),
        payload_bytes: payload.get(),
        posting: options::posting_name(operation.posting),
        latency_ends: match router.carrier(operation.verb, &operation.path)? {
            Carrier::Nic if route.ends_at_responder => {
                "one way: the responder's program starts to handle the message"
            }
            Carrier::Nic => "the requester's program sees the completion",
            Carrier::Engine(_) => "the engine's program sees that the engine is done",
            Carrier::Processor => "the requester's processor has moved the bytes",
        },
        posted: posted(router, operation)?,
        latency_us,
        latency_low_80_us: ends_us[0],
        latency_high_80_us: ends_us[1],
        latency_basis: known.latency_basis.name(),
        latency_most_moved_by: most(|r| (r.latency_at_high_us - r.latency_at_low_us).abs()),
        echo_latency_us,
        terms: unloaded
            .terms
            .iter()
            .map(|term| TermReport {
                label: term.label.clone(),
                station: term.station.map(name),
                time_ns: term.time.as_ns(),
            })
            .collect(),
        capacity_mreq_per_s,
        capacity_low_80_mreq_per_s: ends_mreq_per_s[0],
        capacity_high_80_mreq_per_s: ends_mreq_per_s[1],
        capacity_basis: known.rate_basis.name(),
        capacity_most_moved_by: most(|r| {
            (r.capacity_at_high_mreq_per_s - r.capacity_at_low_mreq_per_s).abs()
        }),
        capacity_gbit_per_s: gbit_per_s(capacity_mreq_per_s, payload),
        capacity_low_80_gbit_per_s: gbit_per_s(ends_mreq_per_s[0], payload),
        capacity_high_80_gbit_per_s: gbit_per_s(ends_mreq_per_s[1], payload),
        binding_station: name(binding),
        binding_station_meaning: router.stations()[binding.index()].meaning,
        slots_held: unloaded
            .held
            .iter()
            .map(|(station, time)| HeldReport { station: name(*station), time_ns: time.as_ns() })
            .collect(),
        demand: demands(&demand, per_second, router),
        pcie_packets: system
            .machines
            .iter()
            .flat_map(|machine| machine.links.iter().map(move |link| (machine, link)))
            .filter(|(_, link)| link.pcie.is_some())
            .map(|(machine, link)| (machine, link, ledger.link(&link.name)))
            // The card's own links are always there, other machines' where the path passes them.
            .filter(|(machine, _, packets)| machine.prefix.is_empty() || *packets > 0)
            .map(|(_, link, packets)| (link.name.clone(), packets))
            .collect(),
        links: ledger
            .links
            .iter()
            .map(|(station, packets)| LinkReport {
                station: station.clone(),
                data_packets: packets.data,
                payload_bytes: packets.payload.get(),
                framed_bytes: packets.framed.get(),
            })
            .collect(),
        ranged_numbers,
        curve: curve(router, operation)?,
    })
}

/// The demand by station, the one that binds first.
fn demands(demand: &Demand, per_second: f64, router: &Router) -> Vec<DemandReport> {
    let mut stations: Vec<StationId> = demand.time.keys().copied().collect();
    stations.extend(demand.requests.keys().map(|(station, _)| *station));
    stations.sort_unstable();
    stations.dedup();
    let mut all: Vec<DemandReport> = stations
        .into_iter()
        .map(|station| {
            // What this station alone would carry says how busy it is at the capacity of all.
            let mut alone = Demand::default();
            alone.time.extend(demand.time.get_key_value(&station));
            alone.banks.extend(demand.banks.get_key_value(&station));
            alone.requests.extend(demand.requests.iter().filter(|((of, _), _)| *of == station));
            let requests: u64 = alone.requests.values().sum();
            let at = &router.stations()[station.index()];
            DemandReport {
                station: at.name.clone(),
                meaning: at.meaning,
                time_ns: demand.time.get(&station).map(|time| time.as_ns()),
                requests: (requests > 0).then_some(requests),
                utilization_at_capacity: round(per_second / capacity(&alone, router).0),
            }
        })
        .collect();
    all.sort_by(|a, b| b.utilization_at_capacity.total_cmp(&a.utilization_at_capacity));
    all
}

/// What a number that is only known as a range does to the answer.
fn ranged(number: &MovedBy) -> RangedReport {
    let [latency_at_low_us, latency_at_high_us] =
        number.latency_s.map(|seconds| Time::from_seconds(seconds).as_us());
    let [low, high] = number.rate.map(|per_second| round(per_second / 1e6));
    RangedReport {
        name: number.names[0].clone(),
        same_number: number.names[1..].to_vec(),
        low: number.low.to_string(),
        high: number.high.to_string(),
        latency_at_low_us,
        latency_at_high_us,
        capacity_at_low_mreq_per_s: low,
        capacity_at_high_mreq_per_s: high,
    }
}

/// The sizes of the curve: 0 B and the powers of two up to 16 MiB.
fn sizes() -> impl Iterator<Item = Bytes> {
    std::iter::once(Bytes::ZERO).chain((0..=24).map(|power| Bytes::new(1 << power)))
}

fn curve(router: &Router, operation: &PathOperation) -> Result<Vec<PointReport>, RouteError> {
    let mut points = Vec::new();
    // An atomic always moves 8 bytes, so it has no curve.
    for payload in sizes().take_while(|_| !operation.verb.is_atomic()) {
        let cost = match cost(router, &PathOperation { payload, ..operation.clone() }) {
            Ok(cost) => cost,
            // A datagram ends at the network's MTU.
            Err(RouteError::PayloadTooLarge { .. }) => break,
            Err(error) => return Err(error),
        };
        let capacity_mreq_per_s = round(cost.per_second / 1e6);
        points.push(PointReport {
            payload_bytes: payload.get(),
            latency_us: cost.latency_us,
            capacity_mreq_per_s,
            capacity_gbit_per_s: gbit_per_s(capacity_mreq_per_s, payload),
            binding_station: router.stations()[cost.binding.index()].name.clone(),
        });
    }
    Ok(points)
}

fn interval(low: f64, high: f64) -> String {
    format!("{} to {}", short(low), short(high))
}

fn one(report: &Report, system: &System, screen: &Screen) -> String {
    let mut text = format!(
        "{} of {} on {}, {}: {}\n",
        report.verb.to_uppercase(),
        Bytes::new(report.payload_bytes),
        report.path,
        report.posted,
        system_line(system),
    );
    if let Some(note) = system.mode_note() {
        text += &format!("Note: {note}.\n");
    }
    let moved_by = |name: &Option<String>| name.clone().unwrap_or_else(|| "-".to_string());
    let mut summary = vec![vec![
        TableCell::Strong("unloaded latency".into()),
        TableCell::Number(format!("{} us", short(report.latency_us))),
        TableCell::Text(interval(report.latency_low_80_us, report.latency_high_80_us)),
        TableCell::Text(report.latency_basis.into()),
        TableCell::Text(moved_by(&report.latency_most_moved_by)),
    ]];
    if let Some(echo) = report.echo_latency_us {
        summary.push(vec![
            TableCell::Text("echo, request and reply".into()),
            TableCell::Number(format!("{} us", short(echo))),
            TableCell::Text("-".into()),
            TableCell::Text("-".into()),
            TableCell::Text("-".into()),
        ]);
    }
    summary.push(vec![
        TableCell::Strong("capacity".into()),
        TableCell::Number(format!("{} Mreq/s", short(report.capacity_mreq_per_s))),
        TableCell::Text(interval(report.capacity_low_80_mreq_per_s, report.capacity_high_80_mreq_per_s)),
        TableCell::Text(report.capacity_basis.into()),
        TableCell::Text(moved_by(&report.capacity_most_moved_by)),
    ]);
    summary.push(vec![
        TableCell::Text("".into()),
        TableCell::Number(format!("{} Gbit/s", short(report.capacity_gbit_per_s))),
        TableCell::Text(interval(report.capacity_low_80_gbit_per_s, report.capacity_high_80_gbit_per_s)),
        TableCell::Text("".into()),
        TableCell::Text("".into()),
    ]);
    text += "\n";
    text += &screen.table(&["", "value", "80% interval", "basis", "most moved by"], summary);
    text += &format!(
        "\nBinds: {} ({}). The latency ends where {}.\n",
        report.binding_station,
        report.binding_station_meaning,
        report.latency_ends.trim_start_matches("one way: "),
    );

    text += &screen.heading("Latency, term by term");
    let mut terms: Vec<Vec<TableCell>> = report
        .terms
        .iter()
        .map(|term| {
            vec![TableCell::Text(term.label.clone()), TableCell::Number(format!("{:.1}", term.time_ns))]
        })
        .collect();
    terms.push(vec![
        TableCell::Strong("sum".into()),
        TableCell::Number(format!("{:.1}", report.latency_us * 1e3)),
    ]);
    text += &screen.table(&["term", "ns"], terms);
    for held in &report.slots_held {
        text += &format!("{} is held for {:.1} ns of it.\n", held.station, held.time_ns);
    }

    text += &screen.heading("Demand of one operation, by station");
    let rows = report.demand.iter().map(|demand| {
        let binds = demand.station == report.binding_station;
        let mark = if binds { " (binds)" } else { "" };
        let label = format!("{}{mark}", demand.station);
        vec![
            if binds { TableCell::Strong(label) } else { TableCell::Text(label) },
            TableCell::Number(demand.demand_text()),
            TableCell::Number(percent(demand.utilization_at_capacity, 1)),
            TableCell::Text(demand.meaning.to_string()),
        ]
    });
    text += &screen.table(&["station", "demand", "busy at capacity", "what it is"], rows.collect());

    text += &screen.heading("Data packets of one operation");
    let totals: Vec<String> =
        report.pcie_packets.iter().rev().map(|(link, packets)| format!("{link} {packets}")).collect();
    text += &format!("PCIe, both directions: {}.\n\n", totals.join(", "));
    let rows = report.links.iter().map(|link| {
        vec![
            TableCell::Text(link.station.clone()),
            TableCell::Number(link.data_packets.to_string()),
            TableCell::Number(link.payload_bytes.to_string()),
            TableCell::Number(link.framed_bytes.to_string()),
        ]
    });
    text += &screen.table(&["link", "packets", "payload B", "with headers B"], rows.collect());

    if !report.curve.is_empty() {
        text += &screen.heading("Over payloads");
        text += &screen.verbatim(&curves(&report.curve));
    }
    if !report.ranged_numbers.is_empty() {
        text += &screen.heading("Numbers known as a range, one at a time");
        let rows = report.ranged_numbers.iter().map(|number| {
            vec![
                TableCell::Text(number.name.clone()),
                TableCell::Text(format!("{} to {}", number.low, number.high)),
                TableCell::Text(format!(
                    "{} to {}",
                    short(number.latency_at_low_us),
                    short(number.latency_at_high_us)
                )),
                TableCell::Text(format!(
                    "{} to {}",
                    short(number.capacity_at_low_mreq_per_s),
                    short(number.capacity_at_high_mreq_per_s)
                )),
            ]
        });
        text += &screen.table(&["number", "range", "latency us", "capacity Mreq/s"], rows.collect());
    }
    text
}

/// The two sparklines with their ranges and one axis.
fn curves(points: &[PointReport]) -> String {
    const WIDTH: usize = 2;
    let rates: Vec<f64> = points.iter().map(|point| point.capacity_gbit_per_s).collect();
    let latencies: Vec<f64> = points.iter().map(|point| point.latency_us).collect();
    let ends = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(0.0, f64::max);
        (short(low), short(high))
    };
    let ((rate_low, rate_high), (low, high)) = (ends(&rates), ends(&latencies));
    let labels: Vec<(usize, String)> = points
        .iter()
        .enumerate()
        .filter(|(index, point)| {
            *index == 0 || *index + 1 == points.len() || [64, 4096, 262_144].contains(&point.payload_bytes)
        })
        .map(|(index, point)| (index, Bytes::new(point.payload_bytes).to_string()))
        .collect();
    let labels: Vec<(usize, &str)> = labels.iter().map(|(index, label)| (*index, label.as_str())).collect();
    format!(
        "capacity  {}  {rate_low} to {rate_high} Gbit/s\n\
         latency   {}  {low} to {high} us, log scale\n\
         payload   {}\n",
        sparkline(&rates, BarScale::Linear, WIDTH),
        sparkline(&latencies, BarScale::Logarithmic, WIDTH),
        axis(&labels, WIDTH),
    )
}

fn all(reports: &[Report], options: &Options, system: &System, screen: &Screen) -> String {
    let mut text = format!(
        "{} of {}, {}, on every path: {}\n\n",
        options.verb.name().to_uppercase(),
        options.payload(),
        all_posted(options),
        system_line(system),
    );
    let message = options.verb.is_message();
    let mut header = vec!["path", if message { "one way us" } else { "latency us" }];
    if message {
        header.push("echo us");
    }
    header.extend(["capacity Mreq/s", "80% interval", "basis", "Gbit/s", "binds"]);
    let own_machines = system.machines.iter().filter(|machine| machine.prefix.is_empty());
    let own_links = own_machines.flat_map(|machine| &machine.links).filter(|link| link.pcie.is_some());
    let own_links: Vec<&str> = own_links.map(|link| link.name.as_str()).collect();
    let titles: Vec<String> = own_links.iter().map(|link| format!("{link} packets")).collect();
    header.extend(titles.iter().map(String::as_str));
    let rows = reports.iter().map(|report| {
        let mut row =
            vec![TableCell::Strong(report.path.clone()), TableCell::Number(short(report.latency_us))];
        if let Some(echo) = report.echo_latency_us {
            row.push(TableCell::Number(short(echo)));
        }
        row.extend([
            TableCell::Number(short(report.capacity_mreq_per_s)),
            TableCell::Name(interval(report.capacity_low_80_mreq_per_s, report.capacity_high_80_mreq_per_s)),
            TableCell::Text(report.capacity_basis.into()),
            TableCell::Number(short(report.capacity_gbit_per_s)),
            TableCell::Name(report.binding_station.clone()),
        ]);
        let packets = |link: &&str| report.pcie_packets.get(*link).copied().unwrap_or(0);
        row.extend(own_links.iter().map(|link| TableCell::Number(packets(link).to_string())));
        row
    });
    text += &screen.table(&header, rows.collect());
    let bound: BTreeMap<&str, &str> = reports
        .iter()
        .map(|report| (report.binding_station.as_str(), report.binding_station_meaning))
        .collect();
    let bound: Vec<String> = bound.iter().map(|(station, meaning)| format!("{station}: {meaning}")).collect();
    text += &format!("\n{}\n", bound.join("\n"));
    text
}
