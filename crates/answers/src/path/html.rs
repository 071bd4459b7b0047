//! What an operation costs, as a page with charts.

use super::text::interval;
use super::{BandAnswer, PathAnswer, PathsAnswer, RangedAnswer, RungAnswer};
use crate::report::{
    Axis, Chart, Fact, Page, PageBlock, Section, Series, Span, Spans, StationLoad, Table, Ticks, Topology,
};
use crate::system::SystemAnswer;
use offpath_quantity::Bytes;
use offpath_terminal::output::short;

/// A line over payloads, with its 80% interval.
fn line(answer: &PathAnswer, value: fn(&BandAnswer) -> f64, ends: fn(&BandAnswer) -> (f64, f64)) -> Series {
    let at = |band: &BandAnswer| band.payload_bytes as f64;
    let all = || answer.over_payloads.iter();
    let line = Series::line(answer.path.clone(), all().map(|band| (at(band), value(band))).collect());
    line.with_band(all().map(|band| (at(band), ends(band).0, ends(band).1)).collect())
}

/// The three charts over payloads.
fn charts(verb: &str, all: &[&PathAnswer]) -> Vec<PageBlock> {
    let lines = |value: fn(&BandAnswer) -> f64, ends: fn(&BandAnswer) -> (f64, f64)| {
        all.iter().map(|one| line(one, value, ends)).collect::<Vec<Series>>()
    };
    let latency = lines(|at| at.latency_us, |at| (at.latency_low_80_us, at.latency_high_80_us));
    let rate = lines(
        |at| at.capacity_mreq_per_s,
        |at| (at.capacity_low_80_mreq_per_s, at.capacity_high_80_mreq_per_s),
    );
    let bandwidth = lines(
        |at| at.capacity_gbit_per_s,
        |at| (at.capacity_low_80_gbit_per_s, at.capacity_high_80_gbit_per_s),
    );
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

fn title(verb: &str, payload_bytes: u64, path: &str) -> String {
    format!("{} of {} on {path}", verb.to_uppercase(), Bytes::new(payload_bytes))
}

fn subtitle(posted: &str, system: &SystemAnswer) -> String {
    format!("{posted}; {}", system.line())
}

/// One path: latency term by term, curves, what binds, packets.
pub(super) fn one(report: &PathAnswer) -> Page {
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
    let said = report
        .carries_less()
        .into_iter()
        .chain(report.system.latency_untold().map(|said| format!("Latencies: {said}")));
    let less: String = said.map(|said| format!(" {said}.")).collect();
    let answer = Section::new("answer", "The answer")
        .saying(format!("The latency ends where {}.{less}", report.ends()))
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
    for chart in charts(&report.verb.to_uppercase(), &[report]) {
        over = over.with(chart);
    }

    let load = load(report);
    let topology = report.topology.as_ref();
    let topology = topology.map(|topology| Topology::new(&report.system, topology, Some(&load)));
    let mut demand = Table::of(&["station", "#demand of one operation", "#busy at capacity", "what it is"]);
    for one in &report.demand {
        if one.station == report.binding_station {
            demand.marked.insert(demand.rows.len());
        }
        demand.row(vec![
            one.station.clone(),
            one.text(),
            format!("{:.1}%", one.utilization_at_capacity * 100.0),
            one.meaning.to_string(),
        ]);
    }
    let stations = Section::new("stations", "Stations at capacity").saying(format!(
        "At {} Mreq/s {} is full: {}.",
        short(report.capacity_mreq_per_s),
        report.binding_station,
        report.binding_station_meaning
    ));
    let stations = topology.map(PageBlock::Topology).into_iter().fold(stations, Section::with);
    let stations = stations.with(PageBlock::Table(demand));

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
    if !report.ladder.is_empty() {
        sections.insert(3, ladder(report));
    }
    sections.extend(uncertain(report));
    Page {
        title: title(&report.verb, report.payload_bytes, &report.path),
        subtitle: subtitle(&report.posted, &report.system),
        sections,
    }
}

/// A processor's own loads or stores over working sets.
fn ladder(report: &PathAnswer) -> Section {
    let chart = |title: &str, y: Axis, value: &dyn Fn(&RungAnswer) -> [f64; 3]| {
        let at = |rung: &RungAnswer| rung.range_bytes as f64;
        let all = || report.ladder.iter();
        let line = Series::line(report.path.clone(), all().map(|rung| (at(rung), value(rung)[0])).collect());
        let bands = all().map(|rung| (at(rung), value(rung)[1], value(rung)[2])).collect();
        PageBlock::Chart(Chart {
            title: title.to_string(),
            caption: "Addresses are spread evenly over the working set, with the 80% interval.".to_string(),
            x: Axis::log2("working set", Ticks::Bytes),
            y,
            series: vec![line.with_band(bands)],
            marks: Vec::new(),
        })
    };
    Section::new("ladder", "Over working sets")
        .with(chart("Wait for 8 B that the next access needs", Axis::log10("wait (ns)"), &|rung| {
            [rung.latency_ns, rung.latency_low_80_ns, rung.latency_high_80_ns]
        }))
        .with(chart("Bandwidth of one thread", Axis::log10("bandwidth (Gbit/s)"), &|rung| {
            [rung.thread_gbit_per_s, rung.thread_low_80_gbit_per_s, rung.thread_high_80_gbit_per_s]
        }))
        .with(chart("Bandwidth of all threads", Axis::log10("bandwidth (Gbit/s)"), &|rung| {
            [rung.capacity_gbit_per_s, rung.capacity_low_80_gbit_per_s, rung.capacity_high_80_gbit_per_s]
        }))
}

fn load(report: &PathAnswer) -> StationLoad {
    StationLoad {
        shares: report.demand.iter().map(|one| (one.station.clone(), one.utilization_at_capacity)).collect(),
        binding: vec![report.binding_station.clone()],
    }
}

/// What the numbers that are only known as a range do to the capacity and the latency.
fn uncertain(report: &PathAnswer) -> Option<Section> {
    if report.ranged_numbers.is_empty() {
        return None;
    }
    let spans = |title: &str, axis: &str, value: f64, range: &dyn Fn(&RangedAnswer) -> (f64, f64)| {
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
pub(super) fn all(answer: &PathsAnswer) -> Page {
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
    for report in &answer.paths {
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
    let heading = format!("{} on every path", Bytes::new(answer.payload_bytes));
    let answered = Section::new("answer", heading).with(PageBlock::Table(table));
    let mut sections = vec![answered.with(PageBlock::Notes(answer.carry_less().collect()))];
    // One chart for all paths would be a tangle: those of a requester stand side by side.
    let mut requesters: Vec<(&str, Vec<&PathAnswer>)> = Vec::new();
    for one in &answer.paths {
        let requester = one.path.split('-').next().unwrap_or_default();
        match requesters.iter_mut().find(|(name, _)| *name == requester) {
            Some((_, own)) => own.push(one),
            None => requesters.push((requester, vec![one])),
        }
    }
    for (name, own) in requesters {
        let section = Section::new(format!("from-{name}"), format!("Over payloads, from {name}"));
        let charts = charts(&answer.verb.to_uppercase(), &own);
        sections.push(charts.into_iter().fold(section, Section::with));
    }
    let topology = Topology::new(&answer.system, &answer.topology, None);
    sections.push(Section::new("system", "The system").with(PageBlock::Topology(topology)));
    Page {
        title: title(&answer.verb, answer.payload_bytes, "every path"),
        subtitle: subtitle(&answer.posted, &answer.system),
        sections,
    }
}
