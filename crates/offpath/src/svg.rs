//! The topology as an SVG picture in one file: no scripts, no outside fonts, dark where the viewer
//! is dark.

use crate::topology::{Picture, label, picture, title};
use offpath::profile::System;
use std::fmt::Write;

/// Width of a letter of the 13 px monospaced font, as viewers draw it.
const LETTER: f64 = 7.9;
const LINE: f64 = 18.0;
const MARGIN: f64 = 24.0;
/// Length of a link's label beside the bar's ends.
const BAR_ENDS: f64 = 30.0;

/// Colours have enough contrast in both schemes (WCAG AA), and no meaning of their own.
const STYLE: &str = "\
text{font-family:ui-monospace,monospace;font-size:13px;fill:#1b1f24}\
.title{font-size:14px;font-weight:bold}.name{font-weight:bold}.small{fill:#4b535d}\
.page{fill:#ffffff}.box{fill:#f3f5f7;stroke:#4b535d;stroke-width:1.5}\
.bar{stroke:#4b535d;stroke-width:1.5;fill:none}.tip{fill:#4b535d}\
@media (prefers-color-scheme:dark){text{fill:#e8ebee}.small{fill:#b3bbc4}.page{fill:#14181c}\
.box{fill:#20262c;stroke:#b3bbc4}.bar{stroke:#b3bbc4}.tip{fill:#b3bbc4}}";

/// Where a box stands.
#[derive(Clone, Copy)]
struct Frame {
    x: f64,
    y: f64,
    width: f64,
    height: f64,
}

/// Writes every machine of the system, one below the other, joined to the network on the left.
pub fn write(system: &System) -> String {
    let pictures: Vec<Picture<'_>> = system.machines.iter().map(picture).collect();
    let ports: Vec<String> =
        system.machines.iter().map(|machine| machine.nic.port_rate.to_string()).collect();
    let port_gap = ports.iter().map(|port| text_width(port, 2)).fold(0.0, f64::max) + BAR_ENDS;
    let network_x = MARGIN + 10.0;
    let mut body = String::new();
    let mut top = MARGIN + 4.0 * LINE;
    let mut right: f64 = 0.0;
    let mut network = (f64::INFINITY, 0.0_f64);
    for ((machine, picture), port) in system.machines.iter().zip(&pictures).zip(&ports) {
        text(&mut body, network_x + port_gap, top, "title", &title(machine));
        let frames = frames(picture, network_x + port_gap, top + LINE);
        let nic = frames[0];
        bars(
            &mut body,
            (network_x, nic.x, nic.y + 1.5 * LINE),
            None,
            &["network".into(), format!("→ {port}"), format!("← {port}")],
        );
        network = (network.0.min(nic.y), network.1.max(nic.y + nic.height));
        for edge in &picture.edges {
            let (from, to) = (frames[edge.from], frames[edge.to]);
            if edge.drawn {
                let y = to.y + 1.5 * LINE;
                let right = from.x + from.width;
                let branch = picture.branch(edge).map(|branch| {
                    ((right - 20.0 - 20.0 * branch as f64).max(from.x + 10.0), from.y + from.height)
                });
                bars(&mut body, (right, to.x, y), branch, &label(edge.link));
            } else {
                extra(&mut body, from, to, &label(edge.link));
            }
        }
        for (node, frame) in picture.nodes.iter().zip(&frames) {
            let Frame { x, y, width, height } = *frame;
            let _ = writeln!(
                body,
                r#"<rect class="box" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="5"/>"#
            );
            for (line, words) in node.lines.iter().enumerate() {
                let class = if line == 0 { "name" } else { "small" };
                text(&mut body, x + 10.0, y + (line as f64 + 1.0) * LINE + 2.0, class, words);
            }
            right = right.max(x + width);
        }
        right = right.max(network_x + port_gap + text_width(&title(machine), 1));
        top = frames.iter().map(|frame| frame.y + frame.height).fold(top, f64::max) + 3.0 * LINE;
    }
    let heading = format!("{} in testbed {}, mode {}", system.device, system.testbed, system.mode);
    let wire = format!(
        "network: {} between two ports, packets of up to {}",
        system.network.delay, system.network.mtu
    );
    right = right.max(MARGIN + text_width(&heading, 1)).max(MARGIN + text_width(&wire, 0));
    let (width, height) = (right + MARGIN, top - 2.0 * LINE + MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" role=\"img\" aria-labelledby=\"title\">\n\
         <title id=\"title\">Topology of {}</title>\n<style>{STYLE}</style>\n\
         <rect class=\"page\" width=\"100%\" height=\"100%\"/>\n",
        escape(&heading)
    );
    text(&mut out, MARGIN, MARGIN + LINE, "title", &heading);
    text(&mut out, MARGIN, MARGIN + 2.0 * LINE, "small", &wire);
    let _ = writeln!(
        out,
        r#"<path class="bar" stroke-width="3" d="M{network_x:.1} {:.1}V{:.1}"/>"#,
        network.0, network.1
    );
    out + &body + "</svg>\n"
}

fn text_width(words: &str, more: usize) -> f64 {
    (words.chars().count() + more) as f64 * LETTER
}

/// A frame for each node of a picture whose top left corner is at (`x`, `y`).
fn frames(picture: &Picture<'_>, x: f64, y: f64) -> Vec<Frame> {
    let columns = picture.nodes.iter().map(|node| node.column).max().unwrap_or(0) + 1;
    let most = |found: &mut dyn Iterator<Item = f64>| found.fold(0.0, f64::max);
    let boxes: Vec<f64> = (0..columns)
        .map(|column| {
            let own = picture.nodes.iter().filter(|node| node.column == column);
            most(&mut own.flat_map(|node| &node.lines).map(|line| text_width(line, 0))) + 22.0
        })
        .collect();
    let gaps: Vec<f64> = (0..columns)
        .map(|column| {
            let own =
                picture.edges.iter().filter(|edge| edge.drawn && picture.nodes[edge.from].column == column);
            most(&mut own.flat_map(|edge| label(edge.link)).map(|line| text_width(&line, 0))) + BAR_ENDS
        })
        .collect();
    let lines = picture.nodes.iter().map(|node| node.lines.len()).max().unwrap_or(1).max(4);
    let row_height = (lines as f64 + 2.0) * LINE;
    picture
        .nodes
        .iter()
        .map(|node| Frame {
            x: x + (0..node.column).map(|before| boxes[before] + gaps[before]).sum::<f64>(),
            y: y + node.row as f64 * row_height,
            width: boxes[node.column],
            height: (node.lines.len() as f64 + 0.7) * LINE,
        })
        .collect()
}

/// Two bars, one for each direction, with the link's name above and the rest of its label below.
/// `branch` is the point at a box's bottom where they start, if not at its side.
fn bars(out: &mut String, (from, to, y): (f64, f64, f64), branch: Option<(f64, f64)>, label: &[String]) {
    let (over, under, near) = (y - 4.0, y + 4.0, to - 6.0);
    let (lines, start_tip) = match branch {
        None => (
            format!("M{from:.1} {over:.1}H{near:.1}M{:.1} {under:.1}H{to:.1}", from + 6.0),
            format!("M{from:.1} {under:.1}l8 -4v8z"),
        ),
        Some((x, bottom)) => (
            format!(
                "M{:.1} {bottom:.1}V{over:.1}H{near:.1}M{:.1} {:.1}V{under:.1}H{to:.1}",
                x + 4.0,
                x - 4.0,
                bottom + 6.0
            ),
            format!("M{:.1} {bottom:.1}l-4 8h8z", x - 4.0),
        ),
    };
    let _ = writeln!(out, r#"<path class="bar" d="{lines}"/>"#);
    let _ = writeln!(out, r#"<path class="tip" d="M{to:.1} {over:.1}l-8 -4v8z{start_tip}"/>"#);
    let x = from + BAR_ENDS / 2.0 + 2.0;
    for (line, words) in label.iter().enumerate() {
        let at = if line == 0 { y - 11.0 } else { y + 4.0 + line as f64 * LINE };
        text(out, x, at, if line == 0 { "name" } else { "small" }, words);
    }
}

/// A link between two nodes that have their places already: straight down within a column, else a
/// curve below both.
fn extra(out: &mut String, from: Frame, to: Frame, label: &[String]) {
    if from.x == to.x {
        let (upper, lower) = if from.y < to.y { (from, to) } else { (to, from) };
        let (x, top) = (from.x + 20.0, upper.y + upper.height);
        let _ = writeln!(out, r#"<path class="bar" d="M{x:.1} {top:.1}V{:.1}"/>"#, lower.y);
        for (line, words) in label.iter().enumerate() {
            let class = if line == 0 { "name" } else { "small" };
            let y = (top + lower.y) / 2.0 + (line as f64 - 1.0) * LINE;
            // The left side is free: the links of the boxes themselves leave to the right.
            text(out, x - 8.0 - text_width(words, 0), y, class, words);
        }
        return;
    }
    let (x1, y1) = (from.x + from.width / 2.0, from.y + from.height);
    let (x2, y2) = (to.x + to.width / 2.0, to.y + to.height);
    let low = y1.max(y2) + 1.5 * LINE;
    let _ = writeln!(
        out,
        r#"<path class="bar" d="M{x1:.1} {y1:.1}C{x1:.1} {low:.1} {x2:.1} {low:.1} {x2:.1} {y2:.1}"/>"#
    );
    let words = label.join(" ");
    text(out, (x1 + x2) / 2.0 - text_width(&words, 0) / 2.0, low + 2.0, "small", &words);
}

fn text(out: &mut String, x: f64, y: f64, class: &str, words: &str) {
    let _ = writeln!(out, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{}</text>"#, escape(words));
}

fn escape(words: &str) -> String {
    words.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
