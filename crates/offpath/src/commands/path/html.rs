//! The page of `offpath path --html`.

use super::{Options, Report, SEED, gbit_per_s, interval, sizes};
use crate::output::{short, system_line};
use offpath::plan::Ranged;
use offpath::plan::known::{Known, known};
use offpath::profile::System;
use offpath::quantity::Bytes;
use offpath::report::{
    Axis, Chart, Fact, Page, PageBlock, Section, Series, Span, Spans, StationLoad, Table, Ticks, Topology,
};
use offpath::route::{PathOperation, RouteError, Router};
use offpath::twin::Seed;

/// Latency and throughput of an operation over payloads, each with its 80% interval.
struct Curves {
    latency: Series,
    rate: Series,
    bandwidth: Series,
}

/// Every payload's cost and how well it is known.
fn curves(router: &Router, operation: &PathOperation) -> Result<Curves, RouteError> {
    let mut operations = Vec::new();
    for payload in sizes() {
        // An atomic always moves 8 bytes, so it has no curve.
        if operation.verb.is_atomic() && payload.get() != 8 {
            continue;
        }
        let sized = PathOperation { payload, ..operation.clone() };
        match router.route(&sized) {
            Ok(_) => operations.push(sized),
            // A datagram ends at the network's MTU.
            Err(RouteError::PayloadTooLarge { .. }) => break,
            Err(error) => return Err(error),
        }
    }
    let known = known(router, &operations, Seed::new(SEED))?;
    let name = operation.path.to_string();
    let series = |figure: &dyn Fn(&Known) -> &Ranged, shown: &dyn Fn(f64, Bytes) -> f64| {
        let each = || operations.iter().map(|one| one.payload).zip(&known);
        let points = each().map(|(p, known)| (p.get() as f64, shown(figure(known).value, p))).collect();
        let band = each().map(|(p, known)| {
            let (low, high) = figure(known).range_80;
            (p.get() as f64, shown(low, p), shown(high, p))
        });
        Series::line(name.clone(), points).with_band(band.collect())
    };
    Ok(Curves {
        latency: series(&|known| &known.latency_s, &|seconds, _| seconds * 1e6),
        rate: series(&|known| &known.rate, &|per_second, _| per_second / 1e6),
        bandwidth: series(&|known| &known.rate, &|per_second, p| gbit_per_s(per_second / 1e6, p)),
    })
}

/// The three charts over payloads.
fn charts(verb: &str, all: Vec<Curves>) -> Vec<PageBlock> {
    let (mut latency, mut rate, mut bandwidth) = (Vec::new(), Vec::new(), Vec::new());
    for curves in all {
        latency.push(curves.latency);
        rate.push(curves.rate);
        bandwidth.push(curves.bandwidth);
    }
    let chart = |title: String, caption: &str, y: Axis, series: Vec<Series>| {
        let x = Axis::log2("payload", Ticks::Bytes);
        PageBlock::Chart(Chart { title, caption: caption.to_string(), x, y, series, marks: Vec::new() })
    };
    vec![
        chart(
            format!("Unloaded latency of a {verb} against payload"),
            "One operation at a time, with its 80% interval.",
            Axis::log10("latency (us)"),
            latency,
        ),
        chart(
            format!("Capacity for a {verb} against payload, in requests"),
            "As many operations at a time as the stations carry, with the 80% interval.",
            Axis::linear("throughput (Mreq/s)"),
            rate,
        ),
        chart(
            format!("Capacity for a {verb} against payload, in payload bits"),
            "The same in bits, with the 80% interval.",
            Axis::linear("throughput (Gbit/s)"),
            bandwidth,
        ),
    ]
}

fn title(options: &Options, path: &str) -> String {
    format!("{} of {} on {path}", options.verb.name().to_uppercase(), options.payload())
}

fn subtitle(posted: &str, system: &System) -> String {
    format!("{posted}; {}", system_line(system))
}

/// One path: latency term by term, curves, what binds, packets.
pub fn one(
    report: &Report,
    options: &Options,
    router: &Router,
    operation: &PathOperation,
) -> Result<Page, RouteError> {
    let system = router.system();
    let known = |basis: &str, low: f64, high: f64| format!("{basis}; 80% interval: {}", interval(low, high));
    let mut facts = vec![
        Fact::new(
            "unloaded latency",
            format!("{} us", short(report.latency_us)),
            known(report.latency_basis, report.latency_low_80_us, report.latency_high_80_us),
        ),
        Fact::new(
            "capacity",
            format!("{} Mreq/s", short(report.capacity_mreq_per_s)),
            known(
                report.capacity_basis,
                report.capacity_low_80_mreq_per_s,
                report.capacity_high_80_mreq_per_s,
            ),
        ),
        Fact::new(
            "of payload",
            format!("{} Gbit/s", short(report.capacity_gbit_per_s)),
            known(
                report.capacity_basis,
                report.capacity_low_80_gbit_per_s,
                report.capacity_high_80_gbit_per_s,
            ),
        ),
        Fact::new("binds", &*report.binding_station, report.binding_station_meaning),
    ];
    if let Some(echo) = report.echo_latency_us {
        facts.insert(1, Fact::new("echo, request and reply", format!("{} us", short(echo)), ""));
    }
    let answer = Section::new("answer", "The answer")
        .saying(format!("The latency ends where {}.", report.latency_ends.trim_start_matches("one way: ")))
        .with(PageBlock::Facts(facts));

    let terms = report.terms.iter().map(|term| (term.label.clone(), term.time_ns));
    let mut spans = Spans::sum(
        format!("{} us, each term where the one before it ends", short(report.latency_us)),
        "time (ns)",
        terms,
        |value| format!("{value:.1} ns"),
    );
    spans.text = "time".to_string();
    let held = report.slots_held.iter();
    let held =
        held.map(|held| format!("{} is held for {:.1} ns of it.", held.station, held.time_ns)).collect();
    let terms = Section::new("terms", "Latency, term by term")
        .with(PageBlock::Spans(spans))
        .with(PageBlock::Notes(held));

    let mut over = Section::new("payloads", "Over payloads");
    for chart in charts(&operation.verb.name().to_uppercase(), vec![curves(router, operation)?]) {
        over = over.with(chart);
    }

    let load = load(report);
    let mut demand = Table::of(&["station", "#demand of one operation", "#busy at capacity", "what it is"]);
    for one in &report.demand {
        if one.station == report.binding_station {
            demand.marked.insert(demand.rows.len());
        }
        demand.row(vec![
            one.station.clone(),
            one.demand_text(),
            format!("{:.1}%", one.utilization_at_capacity * 100.0),
            one.meaning.to_string(),
        ]);
    }
    let stations = Section::new("stations", "Stations at capacity")
        .saying(format!(
            "At {} Mreq/s {} is full: {}.",
            short(report.capacity_mreq_per_s),
            report.binding_station,
            report.binding_station_meaning
        ))
        .with(PageBlock::Topology(Topology::new(system, Some(&load))))
        .with(PageBlock::Table(demand));

    let mut packets = Table::of(&["link", "#data packets", "#payload (B)", "#with headers (B)"]);
    for link in &report.links {
        packets.row(vec![
            link.station.clone(),
            link.data_packets.to_string(),
            link.payload_bytes.to_string(),
            link.framed_bytes.to_string(),
        ]);
    }
    let packets = Section::new("packets", "Data packets of one operation").with(PageBlock::Table(packets));

    let mut sections = vec![answer, terms, over, stations, packets];
    sections.extend(uncertain(report));
    let (title, subtitle) = (title(options, &report.path), subtitle(&report.posted, system));
    Ok(Page { title, subtitle, sections })
}

fn load(report: &Report) -> StationLoad {
    StationLoad {
        shares: report.demand.iter().map(|one| (one.station.clone(), one.utilization_at_capacity)).collect(),
        binding: vec![report.binding_station.clone()],
    }
}

/// What the numbers that are only known as a range do to the capacity and the latency.
fn uncertain(report: &Report) -> Option<Section> {
    if report.ranged_numbers.is_empty() {
        return None;
    }
    let spans = |title: &str, axis: &str, value: f64, range: &dyn Fn(&super::RangedReport) -> (f64, f64)| {
        let rows = report
            .ranged_numbers
            .iter()
            .filter(|number| range(number).0 != range(number).1)
            .map(|number| {
                let (from, to) = range(number);
                let text = format!("{} to {}", number.low, number.high);
                Span { name: number.name.clone(), from, to, point: Some(value), text, strong: false }
            })
            .collect();
        Spans {
            title: title.to_string(),
            caption: "One number at a time, at either end of its range; the stroke is the value.".to_string(),
            axis: axis.to_string(),
            text: "range of the number".to_string(),
            rows,
        }
    };
    let all = [
        spans("What the latency rests on", "latency (us)", report.latency_us, &|number| {
            (number.latency_at_low_us, number.latency_at_high_us)
        }),
        spans("What the capacity rests on", "capacity (Mreq/s)", report.capacity_mreq_per_s, &|number| {
            (number.capacity_at_low_mreq_per_s, number.capacity_at_high_mreq_per_s)
        }),
    ];
    let section = Section::new("ranges", "Numbers known as a range");
    Some(
        all.into_iter()
            .filter(|spans| !spans.rows.is_empty())
            .fold(section, |section, spans| section.with(PageBlock::Spans(spans))),
    )
}

/// Every path: their curves side by side.
pub fn all(
    reports: &[Report],
    options: &Options,
    router: &Router,
    operations: &[PathOperation],
) -> Result<Page, RouteError> {
    let system = router.system();
    let mut table = Table::of(&[
        "path",
        "#latency (us)",
        "#80% interval",
        "#capacity (Mreq/s)",
        "#80% interval",
        "basis",
        "#capacity (Gbit/s)",
        "binds",
        "what it is",
    ]);
    for report in reports {
        table.row(vec![
            report.path.clone(),
            short(report.latency_us),
            interval(report.latency_low_80_us, report.latency_high_80_us),
            short(report.capacity_mreq_per_s),
            interval(report.capacity_low_80_mreq_per_s, report.capacity_high_80_mreq_per_s),
            report.capacity_basis.to_string(),
            short(report.capacity_gbit_per_s),
            report.binding_station.clone(),
            report.binding_station_meaning.to_string(),
        ]);
    }
    let answer =
        Section::new("answer", format!("{} on every path", options.payload())).with(PageBlock::Table(table));
    let mut sections = vec![answer];
    // One chart for all paths would be a tangle: those of a requester stand side by side.
    let mut requesters: Vec<&str> = Vec::new();
    for operation in operations {
        if !requesters.contains(&operation.path.requester.as_str()) {
            requesters.push(&operation.path.requester);
        }
    }
    for requester in requesters {
        let own = operations.iter().filter(|operation| operation.path.requester == requester);
        let all = own.map(|operation| curves(router, operation)).collect::<Result<Vec<_>, _>>()?;
        let section = Section::new(format!("from-{requester}"), format!("Over payloads, from {requester}"));
        let charts = charts(&options.verb.name().to_uppercase(), all);
        sections.push(charts.into_iter().fold(section, Section::with));
    }
    sections
        .push(Section::new("system", "The system").with(PageBlock::Topology(Topology::new(system, None))));
    Ok(Page {
        title: title(options, "every path"),
        subtitle: subtitle(&super::all_posted(options), system),
        sections,
    })
}
