//! What an operation costs, as a page of text.

use super::{DemandAnswer, PathAnswer, PathAnswers, PathsAnswer, PointAnswer, PublishedAnswer};
use crate::sparkline::{BarScale, axis, sparkline};
use offpath_plan::sample::DRAWS;
use offpath_quantity::Bytes;
use offpath_terminal::output::{Screen, TableCell, percent, short};
use std::collections::BTreeMap;

impl DemandAnswer {
    pub(super) fn text(&self) -> String {
        match (self.time_ns, self.requests) {
            (Some(time), _) => format!("{time:.1} ns"),
            (None, Some(1)) => "1 request".to_string(),
            (None, requests) => format!("{} requests", requests.unwrap_or(0)),
        }
    }
}

impl PathAnswers {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        match self {
            PathAnswers::One(answer) => one(answer, screen),
            PathAnswers::Every(answer) => all(answer, screen),
        }
    }
}

impl PathAnswer {
    /// What the twin carries, where that is less than the capacity.
    pub(super) fn carries_less(&self) -> Option<String> {
        self.twin_carries_less.then(|| {
            let fullest = self.twin_fullest_station.as_deref().unwrap_or("no station");
            let busy = percent(self.twin_fullest_utilization.unwrap_or(0.0), 0);
            let why = match self.twin_fills_slots {
                true => format!(
                    "the capacity is that of idle stations, and slots ({fullest}, {busy} taken) are held for longer while \
                     requests wait; a plan solves with what the twin shows"
                ),
                false => format!("no station fills ({fullest} is busy for {busy} of the time)"),
            };
            format!(
                "UNDER LOAD {} Mreq/s ON THE TWIN (95% {}, {} in flight): {why}",
                short(self.twin_throughput_mreq_per_s),
                interval(self.twin_throughput_ci95_low_mreq_per_s, self.twin_throughput_ci95_high_mreq_per_s),
                self.twin_in_flight,
            )
        })
    }

    /// Where the latency ends, within a sentence.
    pub(super) fn ends(&self) -> &str {
        self.latency_ends.trim_start_matches("one way: ")
    }
}

impl PathsAnswer {
    /// What the twin carries of each path of which that is less than its capacity.
    pub(super) fn carry_less(&self) -> impl Iterator<Item = String> {
        self.paths.iter().filter_map(|report| Some(format!("{}: {}.", report.path, report.carries_less()?)))
    }
}

pub(super) fn interval(low: f64, high: f64) -> String {
    format!("{} to {}", short(low), short(high))
}

fn one(report: &PathAnswer, screen: &Screen) -> String {
    let mut text = format!(
        "{} of {} on {}, {}: {}\n",
        report.verb.to_uppercase(),
        Bytes::new(report.payload_bytes),
        report.path,
        report.posted,
        report.system.line(),
    );
    if let Some(note) = report.mode_note {
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
    if let Some(said) = report.system.widened_by_others() {
        text += &format!("Intervals: {said}.\n");
    }
    text.extend(report.system.latency_untold().map(|said| format!("Latencies: {said}.\n")));
    if report.interval_draws < DRAWS {
        text += &format!(
            "Intervals: of the {} of {DRAWS} joint draws that are a system which carries this operation.\n",
            report.interval_draws,
        );
    }
    for one in &report.published {
        let PublishedAnswer { row, source, states, published } = one;
        text += &format!("Published: {published} ({row}, {source}: {states}).\n");
    }
    if let Some(said) = report.carries_less() {
        text += &format!("{said}.\n");
    }
    text += &format!(
        "\nBinds: {} ({}). The latency ends where {}.\n",
        report.binding_station,
        report.binding_station_meaning,
        report.ends(),
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
            TableCell::Number(demand.text()),
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
    if !report.ladder.is_empty() {
        let (heading, axis, spread) = match report.range_arrived {
            true => ("Over what arrived", "newest", "Of what the NIC wrote last, any of it."),
            false => ("Over working sets", "working set", "Addresses are spread evenly over each."),
        };
        text += &screen.heading(heading);
        text += &format!(
            "{spread} The wait is that of 8 B which the next access needs ({}); bandwidths are \
             of {} at a time ({}). 80% intervals beside them.\n",
            report.latency_basis,
            Bytes::new(report.payload_bytes),
            report.capacity_basis,
        );
        let rows = report.ladder.iter().map(|rung| {
            let here = rung.range_bytes == report.range_bytes;
            let range = Bytes::new(rung.range_bytes).to_string();
            vec![
                if here { TableCell::Strong(range) } else { TableCell::Text(range) },
                TableCell::Number(short(rung.latency_ns)),
                TableCell::Text(interval(rung.latency_low_80_ns, rung.latency_high_80_ns)),
                TableCell::Number(short(rung.thread_gbit_per_s)),
                TableCell::Text(interval(rung.thread_low_80_gbit_per_s, rung.thread_high_80_gbit_per_s)),
                TableCell::Number(short(rung.capacity_gbit_per_s)),
                TableCell::Text(interval(rung.capacity_low_80_gbit_per_s, rung.capacity_high_80_gbit_per_s)),
                TableCell::Text(rung.binding_station.clone()),
            ]
        });
        let header = [axis, "wait ns", "80%", "a thread Gbit/s", "80%", "all threads Gbit/s", "80%", "binds"];
        text += &screen.table(&header, rows.collect());
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
fn curves(points: &[PointAnswer]) -> String {
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

fn all(answer: &PathsAnswer, screen: &Screen) -> String {
    let mut text = format!(
        "{} of {}, {}, on every path: {}\n\n",
        answer.verb.to_uppercase(),
        Bytes::new(answer.payload_bytes),
        answer.posted,
        answer.system.line(),
    );
    let message = answer.message;
    let mut header = vec!["path", if message { "one way us" } else { "latency us" }];
    if message {
        header.push("echo us");
    }
    header.extend(["capacity Mreq/s", "80% interval", "basis", "Gbit/s", "binds"]);
    let own_machines = answer.topology.machines.iter().filter(|machine| machine.prefix.is_empty());
    let own_links =
        own_machines.flat_map(|machine| &machine.links).filter(|link| link.rate_gbit_per_s.is_some());
    let own_links: Vec<&str> = own_links.map(|link| link.name.as_str()).collect();
    let titles: Vec<String> = own_links.iter().map(|link| format!("{link} packets")).collect();
    header.extend(titles.iter().map(String::as_str));
    let rows = answer.paths.iter().map(|report| {
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
        let packets = |link: &&str| report.pcie_packets.get(link).copied().unwrap_or(0);
        row.extend(own_links.iter().map(|link| TableCell::Number(packets(link).to_string())));
        row
    });
    text += &screen.table(&header, rows.collect());
    let bound: BTreeMap<&str, &str> = answer
        .paths
        .iter()
        .map(|report| (report.binding_station.as_str(), report.binding_station_meaning))
        .collect();
    let bound: Vec<String> = bound.iter().map(|(station, meaning)| format!("{station}: {meaning}")).collect();
    text += &format!("\n{}\n", bound.join("\n"));
    if let Some(said) = answer.system.widened_by_others() {
        text += &format!("Intervals: {said}.\n");
    }
    text.extend(answer.system.latency_untold().map(|said| format!("Latencies: {said}.\n")));
    answer.carry_less().for_each(|said| text += &format!("{said}\n"));
    text
}
