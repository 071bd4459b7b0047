//! The topology of a system as an SVG picture, plain or with how busy each station is.

use super::page::Table;
use super::places::{Edge, Picture, picture};
use super::{escape, style};
use crate::system::{MachineAnswer, SystemAnswer, TopologyAnswer, bit_rate};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

/// Width of a letter of the 13 px monospaced font, as viewers draw it.
const LETTER: f64 = 7.9;
const LINE: f64 = 18.0;
const MARGIN: f64 = 24.0;
/// Length of a link's label beside the bar's ends.
const BAR_ENDS: f64 = 30.0;
/// A share below which a station does next to nothing, and a picture says so.
const NOTHING: f64 = 0.005;
/// Width of a bar that fills with a station's share.
const GAUGE: f64 = 56.0;

/// How busy the stations of a system are.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StationLoad {
    /// Share of its time that each station is busy, from 0 to 1, by the station's name.
    pub shares: BTreeMap<String, f64>,
    /// What binds: names of stations, each possibly followed by a remark in brackets.
    pub binding: Vec<String>,
}

impl StationLoad {
    /// Whether a station binds.
    pub fn binds(&self, station: &str) -> bool {
        let named = |name: &String| name.split(" (").next() == Some(station);
        self.binding.iter().any(named)
    }

    fn flow(&self, station: &str) -> Flow {
        let share = self.shares.get(station).copied().filter(|share| share.is_finite());
        Flow { share: Some(share.unwrap_or(0.0).clamp(0.0, 1.0)), binds: self.binds(station) }
    }

    /// The stations that are busy at all, or bind.
    fn busy(&self) -> impl Iterator<Item = (&str, Flow)> {
        let names: BTreeSet<&str> = self
            .shares
            .keys()
            .map(String::as_str)
            .chain(self.binding.iter().filter_map(|name| name.split(" (").next()))
            .collect();
        names
            .into_iter()
            .map(|name| (name, self.flow(name)))
            .filter(|(_, flow)| flow.binds || flow.share.is_some_and(|share| share >= NOTHING))
    }
}

/// A topology on a page.
#[derive(Clone, Debug, PartialEq)]
pub struct Topology {
    /// What it shows.
    pub title: String,
    /// What a reader has to know beside it.
    pub caption: String,
    /// The drawing.
    pub svg: String,
    /// The numbers in it.
    pub table: Option<Table>,
}

impl Topology {
    /// A system, with a load where there is one. Machines that take no part in the load are left out.
    pub fn new(system: &SystemAnswer, topology: &TopologyAnswer, load: Option<&StationLoad>) -> Topology {
        let heading = system.heading();
        let caption = match load {
            None => String::new(),
            Some(_) => "The share of its time that each station is busy. A link is the wider the busier it is: \
                        dotted where it carries next to nothing, dashed below half, solid from half on. What binds has \
                        a thick outline and says so."
                .to_string(),
        };
        let table = load.map(|load| {
            let mut table = Table::of(&["station", "#busy", "binds"]);
            let mut stations: Vec<(&str, Flow)> = load.busy().collect();
            stations.sort_by(|a, b| b.1.share.unwrap_or(0.0).total_cmp(&a.1.share.unwrap_or(0.0)));
            for (name, flow) in stations {
                if flow.binds {
                    table.marked.insert(table.rows.len());
                }
                let binds = if flow.binds { "binds" } else { "" };
                table.row(vec![name.to_string(), flow.percent(), binds.to_string()]);
            }
            table
        });
        Topology {
            title: format!("Topology of {heading}"),
            caption,
            svg: draw(system, topology, load, ""),
            table,
        }
    }

    /// A system as an SVG file of its own: no scripts, no outside fonts, dark where the viewer is dark.
    pub fn file(system: &SystemAnswer, topology: &TopologyAnswer) -> String {
        draw(system, topology, None, &format!("<style>{}</style>\n", style::topology()))
    }
}

/// How busy a direction of a link, or a station, is.
#[derive(Clone, Copy)]
struct Flow {
    /// Absent in a picture without a load.
    share: Option<f64>,
    binds: bool,
}

impl Flow {
    const NONE: Flow = Flow { share: None, binds: false };

    fn width(self) -> f64 {
        self.share.map_or(1.5, |share| 1.5 + 4.5 * share)
    }

    /// Half the breadth of an arrow's tip.
    fn tip(self) -> f64 {
        (self.width() / 2.0 + 2.5).max(4.0)
    }

    fn percent(self) -> String {
        format!("{:.0}%", self.share.unwrap_or(0.0) * 100.0)
    }

    /// What is written after a rate.
    fn words(self) -> String {
        match self {
            Flow { share: None, .. } => String::new(),
            Flow { binds: true, .. } => format!(" {} binds", self.percent()),
            Flow { .. } => format!(" {}", self.percent()),
        }
    }

    fn line(self, out: &mut String, path: &str) {
        let dash = match self.share {
            Some(share) if share < NOTHING => " stroke-dasharray=\"1 5\"",
            Some(share) if share < 0.5 => " stroke-dasharray=\"7 4\"",
            _ => "",
        };
        let width = self.width();
        if self.binds {
            let _ = writeln!(out, r#"<path class="case" stroke-width="{:.1}" d="{path}"/>"#, width + 7.0);
            let _ = writeln!(out, r#"<path class="core" stroke-width="{:.1}" d="{path}"/>"#, width + 3.0);
        }
        let own = if self.share.is_some() {
            format!(r#" style="stroke-width:{width:.1}px""#)
        } else {
            String::new()
        };
        let _ = writeln!(out, r#"<path class="bar"{own}{dash} d="{path}"/>"#);
    }
}

/// Where a box stands.
#[derive(Clone, Copy)]
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// A station in a box.
struct Row {
    name: String,
    flow: Flow,
}

/// A label's lines, each with whether it stands out.
type Words = Vec<(String, bool)>;

/// A link's directions: as drawn from left to right, and back.
fn flows(picture: &Picture<'_>, edge: &Edge<'_>, load: Option<&StationLoad>) -> (Flow, Flow) {
    let Some(load) = load.filter(|_| edge.link.rate_gbit_per_s.is_some()) else {
        return (Flow::NONE, Flow::NONE);
    };
    let (down, up) =
        (load.flow(&format!("{}.down", edge.link.name)), load.flow(&format!("{}.up", edge.link.name)));
    // `down` leads away from the NIC, the way a link is declared.
    if picture.nodes[edge.from].lines[0] == edge.link.from { (down, up) } else { (up, down) }
}

/// A link's label with its flows.
fn words(edge: &Edge<'_>, (right, left): (Flow, Flow)) -> Words {
    let mut lines: Words = edge.link.label().into_iter().map(|line| (line, false)).collect();
    lines[0].1 = true;
    for (line, strong) in lines.iter_mut().skip(1) {
        for (arrow, flow) in [("→", right), ("←", left)] {
            if line.starts_with(arrow) {
                line.push_str(&flow.words());
                *strong = flow.binds;
            }
        }
    }
    lines
}

/// The stations of a load that stand in a node's box.
fn rows(machine: &MachineAnswer, node: &str, load: Option<&StationLoad>) -> Vec<Row> {
    let Some(load) = load else { return Vec::new() };
    let engines = machine.engines.iter().filter(|engine| engine.endpoint == node);
    let owners: Vec<(&str, String)> = std::iter::once((node, String::new()))
        .chain(engines.map(|engine| (engine.name.as_str(), format!("{} ", engine.name))))
        .collect();
    load.busy()
        .filter_map(|(station, flow)| {
            let (owner, part) = station.rsplit_once('.')?;
            let (_, shown) = owners.iter().find(|(name, _)| *name == owner)?;
            let port = node == machine.nic && ["transmit", "receive"].contains(&part);
            (!port).then(|| Row { name: format!("{shown}{part}"), flow })
        })
        .collect()
}

/// Whether a load reaches a machine.
fn takes_part(machine: &MachineAnswer, load: &StationLoad) -> bool {
    let owners = || {
        let nodes = machine.nodes.iter().map(|node| node.name.as_str());
        let links = machine.links.iter().map(|link| link.name.as_str());
        let engines = machine.engines.iter().map(|engine| engine.name.as_str());
        nodes.chain(links).chain(engines)
    };
    load.busy().any(|(station, _)| {
        station.rsplit_once('.').is_some_and(|(owner, _)| owners().any(|own| own == owner))
    })
}

/// Busy stations that stand in no box and at no link, such as a large-transfer limit.
fn elsewhere(topology: &TopologyAnswer, load: &StationLoad) -> Vec<String> {
    let large_transfer_limits: BTreeSet<&String> =
        topology.machines.iter().flat_map(|machine| &machine.large_transfer_limits).collect();
    load.busy()
        .filter(|(station, _)| large_transfer_limits.contains(&station.to_string()))
        .map(|(station, flow)| format!("large-transfer limit {station}:{}", flow.words()))
        .collect()
}

/// Draws every machine of the system, one below the other, joined to the network on the left.
fn draw(system: &SystemAnswer, topology: &TopologyAnswer, load: Option<&StationLoad>, style: &str) -> String {
    let machines: Vec<&MachineAnswer> = topology
        .machines
        .iter()
        .filter(|machine| load.is_none_or(|load| takes_part(machine, load)))
        .collect();
    let pictures: Vec<Picture<'_>> = machines.iter().map(|machine| picture(machine)).collect();
    let ports: Vec<[Flow; 2]> = machines
        .iter()
        .map(|machine| {
            ["receive", "transmit"]
                .map(|side| load.map_or(Flow::NONE, |load| load.flow(&format!("{}.{side}", machine.nic))))
        })
        .collect();
    let port_words: Vec<Words> = machines
        .iter()
        .zip(&ports)
        .map(|(machine, [into, out])| {
            let rate = bit_rate(machine.nic_port_rate_gbit_per_s);
            vec![
                ("network".to_string(), true),
                (format!("→ {rate}{}", into.words()), into.binds),
                (format!("← {rate}{}", out.words()), out.binds),
            ]
        })
        .collect();
    let widest = |lines: &Words| lines.iter().map(|(line, _)| text_width(line, 0)).fold(0.0, f64::max);
    let port_gap = port_words.iter().map(widest).fold(0.0, f64::max) + BAR_ENDS;
    let network_x = MARGIN + 10.0;
    let mut body = String::new();
    // On a page the heading stands above the picture.
    let headed = !style.is_empty();
    let head = if headed { LINE } else { 0.0 };
    let mut top = MARGIN + 3.0 * LINE + head;
    let mut right: f64 = 0.0;
    let mut network = (f64::INFINITY, 0.0_f64);
    for (((machine, picture), flows_of_port), port) in
        machines.iter().zip(&pictures).zip(&ports).zip(&port_words)
    {
        let stations: Vec<Vec<Row>> =
            picture.nodes.iter().map(|node| rows(machine, &node.lines[0], load)).collect();
        text(&mut body, network_x + port_gap, top, "title", &machine.title());
        let labels: Vec<Words> =
            picture.edges.iter().map(|edge| words(edge, flows(picture, edge, load))).collect();
        let frames = frames(picture, &stations, &labels, network_x + port_gap, top + LINE);
        let nic = frames[0];
        bars(
            &mut body,
            (network_x, nic.x, nic.y + 1.5 * LINE),
            None,
            (flows_of_port[0], flows_of_port[1]),
            port,
        );
        network = (network.0.min(nic.y), network.1.max(nic.y + nic.height));
        for (edge, label) in picture.edges.iter().zip(&labels) {
            let (from, to) = (frames[edge.from], frames[edge.to]);
            let flows = flows(picture, edge, load);
            if edge.drawn {
                let y = to.y + 1.5 * LINE;
                let right = from.x + from.width;
                let branch = picture.branch(edge).map(|branch| {
                    ((right - 20.0 - 20.0 * branch as f64).max(from.x + 10.0), from.y + from.height)
                });
                bars(&mut body, (right, to.x, y), branch, flows, label);
            } else {
                extra(&mut body, from, to, flows, label);
            }
        }
        for ((node, frame), stations) in picture.nodes.iter().zip(&frames).zip(&stations) {
            boxed(&mut body, &node.lines, *frame, stations);
            right = right.max(frame.x + frame.width);
        }
        right = right.max(network_x + port_gap + text_width(&machine.title(), 1));
        let below = picture.edges.iter().any(|edge| !edge.drawn && frames[edge.from].x != frames[edge.to].x);
        let below = if below { 2.5 * LINE } else { 0.0 };
        top = frames.iter().map(|frame| frame.y + frame.height).fold(top, f64::max) + 3.0 * LINE + below;
    }
    let heading = system.heading();
    let elsewhere = load.into_iter().flat_map(|load| elsewhere(topology, load));
    let remarks: Vec<String> = std::iter::once(topology.network()).chain(elsewhere).collect();
    right = remarks.iter().map(|words| MARGIN + text_width(words, 0)).fold(right, f64::max);
    right = right.max(MARGIN + text_width(&heading, 1));
    for remark in remarks.iter().skip(1) {
        text(&mut body, MARGIN, top - LINE, "name", remark);
        top += LINE;
    }
    let (width, height) = (right + MARGIN, top - 2.0 * LINE + MARGIN);
    let words = load.map_or_else(String::new, |load| {
        let busy: Vec<String> = load.busy().map(|(name, flow)| format!("{name}{}", flow.words())).collect();
        format!("<desc>{}</desc>\n", escape(&busy.join("; ")))
    });
    let name = escape(&format!("Topology of {heading}"));
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"topology\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-label=\"{name}\">\n\
         <title>{name}</title>\n{words}{style}\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
    );
    if headed {
        text(&mut out, MARGIN, MARGIN + LINE, "title", &heading);
    }
    text(&mut out, MARGIN, MARGIN + LINE + head, "small", &remarks[0]);
    if !machines.is_empty() {
        let _ = writeln!(
            out,
            r#"<path class="bar" style="stroke-width:3px" d="M{network_x:.1} {:.1}V{:.1}"/>"#,
            network.0, network.1
        );
    }
    out + &body + "</svg>\n"
}

fn text_width(words: &str, more: usize) -> f64 {
    (words.chars().count() + more) as f64 * LETTER
}

/// Widths of a box's columns of stations: names, shares with a bar, and the word for what binds.
fn station_columns(stations: &[Row]) -> (f64, f64) {
    let names = stations.iter().map(|row| text_width(&row.name, 0)).fold(0.0, f64::max);
    let binds = stations.iter().any(|row| row.flow.binds);
    (names, names + 5.0 * LETTER + 8.0 + GAUGE + if binds { 6.5 * LETTER } else { 0.0 })
}

fn boxed(out: &mut String, lines: &[String], Frame { x, y, width, height }: Frame, stations: &[Row]) {
    let binds = stations.iter().any(|row| row.flow.binds);
    let _ = writeln!(
        out,
        r#"<g{}><rect class="box" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="5"/></g>"#,
        if binds { " class=\"binding\"" } else { "" }
    );
    let mut at = y + 2.0;
    for (line, words) in lines.iter().enumerate() {
        at += LINE;
        text(out, x + 10.0, at, if line == 0 { "name" } else { "small" }, words);
    }
    let (names, _) = station_columns(stations);
    for row in stations {
        at += LINE;
        let (class, group) = if row.flow.binds { ("name", "<g class=\"binding\">") } else { ("", "<g>") };
        let percent = row.flow.percent();
        let gauge = x + 10.0 + names + 5.0 * LETTER + 8.0;
        let _ = writeln!(out, "{group}");
        text(out, x + 10.0, at, class, &row.name);
        text(out, gauge - 8.0 - text_width(&percent, 0), at, class, &percent);
        let _ = writeln!(
            out,
            r#"<rect class="gauge" x="{gauge:.1}" y="{:.1}" width="{GAUGE:.1}" height="10"/>"#,
            at - 9.5
        );
        let _ = writeln!(
            out,
            r#"<rect class="filled" x="{gauge:.1}" y="{:.1}" width="{:.1}" height="10"/>"#,
            at - 9.5,
            GAUGE * row.flow.share.unwrap_or(0.0)
        );
        if row.flow.binds {
            text(out, gauge + GAUGE + 8.0, at, class, "binds");
        }
        out.push_str("</g>\n");
    }
}

/// A frame for each node of a picture whose top left corner is at (`x`, `y`).
fn frames(picture: &Picture<'_>, stations: &[Vec<Row>], labels: &[Words], x: f64, y: f64) -> Vec<Frame> {
    let columns = picture.nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let most = |found: &mut dyn Iterator<Item = f64>| found.fold(0.0, f64::max);
    let boxes: Vec<f64> = (0..columns)
        .map(|column| {
            let own = || picture.nodes.iter().zip(stations).filter(move |(node, _)| node.column == column);
            let lines = most(&mut own().flat_map(|(node, _)| &node.lines).map(|line| text_width(line, 0)));
            let gauges = most(
                &mut own().filter(|(_, rows)| !rows.is_empty()).map(|(_, rows)| station_columns(rows).1),
            );
            lines.max(gauges) + 22.0
        })
        .collect();
    let gaps: Vec<f64> = (0..columns)
        .map(|column| {
            let own = picture
                .edges
                .iter()
                .zip(labels)
                .filter(|(edge, _)| edge.drawn && picture.nodes[edge.from].column == column);
            most(&mut own.flat_map(|(_, label)| label).map(|(line, _)| text_width(line, 0))) + BAR_ENDS
        })
        .collect();
    let heights: Vec<usize> =
        picture.nodes.iter().zip(stations).map(|(node, rows)| node.lines.len() + rows.len()).collect();
    // A row is as high as its highest box, and as the label of a link needs.
    let row_height = |row: usize| {
        let own = picture.nodes.iter().zip(&heights).filter(|(node, _)| node.row == row);
        (own.map(|(_, lines)| *lines).max().unwrap_or(1).max(4) as f64 + 2.0) * LINE
    };
    picture
        .nodes
        .iter()
        .zip(&heights)
        .map(|(node, lines)| Frame {
            x: x + (0..node.column).map(|before| boxes[before] + gaps[before]).sum::<f64>(),
            y: y + (0..node.row).map(row_height).sum::<f64>(),
            width: boxes[node.column],
            height: (*lines as f64 + 0.7) * LINE,
        })
        .collect()
}

/// Two bars, one for each direction, with the link's name above and the rest of its label below.
/// `branch` is the point at a box's bottom where they start, if not at its side.
fn bars(
    out: &mut String,
    (from, to, y): (f64, f64, f64),
    branch: Option<(f64, f64)>,
    (right, left): (Flow, Flow),
    label: &Words,
) {
    let apart = if right.share.is_some() { 7.0 } else { 4.0 };
    let (over, under) = (y - apart, y + apart);
    let (head, tail) = (right.tip(), left.tip());
    let near = to - 2.0 * head + 2.0;
    match branch {
        None => {
            right.line(out, &format!("M{from:.1} {over:.1}H{near:.1}"));
            left.line(out, &format!("M{:.1} {under:.1}H{to:.1}", from + 2.0 * tail - 2.0));
            let _ = writeln!(
                out,
                r#"<path class="tip" d="M{from:.1} {under:.1}l{:.1} -{tail:.1}v{:.1}z"/>"#,
                2.0 * tail,
                2.0 * tail
            );
        }
        Some((x, bottom)) => {
            right.line(out, &format!("M{:.1} {bottom:.1}V{over:.1}H{near:.1}", x + apart));
            left.line(out, &format!("M{:.1} {:.1}V{under:.1}H{to:.1}", x - apart, bottom + 2.0 * tail - 2.0));
            let _ = writeln!(
                out,
                r#"<path class="tip" d="M{:.1} {bottom:.1}l-{tail:.1} {:.1}h{:.1}z"/>"#,
                x - apart,
                2.0 * tail,
                2.0 * tail
            );
        }
    }
    let _ = writeln!(
        out,
        r#"<path class="tip" d="M{to:.1} {over:.1}l-{:.1} -{head:.1}v{:.1}z"/>"#,
        2.0 * head,
        2.0 * head
    );
    let x = from + BAR_ENDS / 2.0 + 2.0;
    for (line, (words, strong)) in label.iter().enumerate() {
        let at =
            if line == 0 { over - if apart > 4.0 { 11.0 } else { 7.0 } } else { under + line as f64 * LINE };
        text(out, x, at, if *strong { "name" } else { "small" }, words);
    }
}

/// A link between two nodes that have their places already: straight down within a column, else a
/// curve below both.
fn extra(out: &mut String, from: Frame, to: Frame, (right, left): (Flow, Flow), label: &Words) {
    let busier = if left.share.unwrap_or(0.0) > right.share.unwrap_or(0.0) { left } else { right };
    let busier = Flow { binds: right.binds || left.binds, ..busier };
    if from.x == to.x {
        let (upper, lower) = if from.y < to.y { (from, to) } else { (to, from) };
        let (x, top) = (from.x + 20.0, upper.y + upper.height);
        busier.line(out, &format!("M{x:.1} {top:.1}V{:.1}", lower.y));
        for (line, (words, strong)) in label.iter().enumerate() {
            let class = if *strong { "name" } else { "small" };
            let y = (top + lower.y) / 2.0 + (line as f64 - 1.0) * LINE;
            // The left side is free: the links of the boxes themselves leave to the right.
            text(out, x - 8.0 - text_width(words, 0), y, class, words);
        }
        return;
    }
    let (x1, y1) = (from.x + from.width / 2.0, from.y + from.height);
    let (x2, y2) = (to.x + to.width / 2.0, to.y + to.height);
    let low = y1.max(y2) + 1.5 * LINE;
    busier.line(out, &format!("M{x1:.1} {y1:.1}C{x1:.1} {low:.1} {x2:.1} {low:.1} {x2:.1} {y2:.1}"));
    let words: Vec<&str> = label.iter().map(|(line, _)| line.as_str()).collect();
    let words = words.join(" ");
    text(out, (x1 + x2) / 2.0 - text_width(&words, 0) / 2.0, low + 4.0, "small", &words);
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = writeln!(out, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escape(words));
}
