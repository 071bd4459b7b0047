//! What was measured, as a page of text.

use super::{
    MeasureAnswer, MeasureListAnswer, MeasureSuggestAnswer, MeasuredPointAnswer, SkippedPointAnswer,
};
use offpath_quantity::Bytes;
use offpath_terminal::output::{Screen, TableCell, short};
use std::collections::BTreeMap;

/// Skipped points by their reason.
fn reasons(skipped: &[SkippedPointAnswer]) -> String {
    let mut by_reason: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for one in skipped {
        by_reason.entry(&one.why).or_default().push(&one.skipped);
    }
    let line = |(why, points): (&str, Vec<&str>)| {
        let more = match points.len() {
            1 => String::new(),
            count => format!(" and {} more", count - 1),
        };
        format!("skipped: {}{more}: {why}\n", points[0])
    };
    by_reason.into_iter().map(line).collect()
}

/// What differs from a plain run, in words.
fn how(point: &MeasuredPointAnswer) -> String {
    let mut words = Vec::new();
    if point.post_list > 1 {
        words.push(format!("{} behind a doorbell", point.post_list));
    }
    if point.inline_bytes > 0 {
        words.push("inline".to_string());
    }
    if point.posting_threads > 1 {
        words.push(format!("{} threads", point.posting_threads));
    }
    if point.directions == "both" {
        words.push("both directions".to_string());
    }
    if let Some(beside) = &point.beside {
        words.push(format!("beside {beside} at {} M/s", shown(point.beside_operations_per_s_median, 1e6)));
    }
    words.join(", ")
}

/// A figure in so large a unit; a point has none of what its kind of run does not measure.
fn shown(figure: Option<f64>, unit: f64) -> String {
    figure.map_or_else(|| "-".to_string(), |figure| short(figure / unit))
}

fn spread(share: f64) -> String {
    format!("{:.1}%", 100.0 * share)
}

/// A duration as people say it.
fn duration(seconds: f64) -> String {
    match seconds {
        _ if seconds < 90.0 => format!("{} s", seconds.ceil()),
        _ => format!("{} min", (seconds / 60.0).ceil()),
    }
}

impl MeasureAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text = format!(
            "{} points on {}, {} windows each\n",
            self.points.len(),
            self.stamp.line(),
            self.stamp.windows
        );
        let of = |kind: &'static str| self.points.iter().filter(move |point| point.kind == kind);
        if of("latency").next().is_some() {
            text += &screen.heading("Latency");
            let rows = of("latency").map(|point| {
                let us = |ns: Option<f64>| TableCell::Number(shown(ns, 1e3));
                vec![
                    TableCell::Name(point.path.clone()),
                    TableCell::Name(point.verb.clone()),
                    TableCell::Number(Bytes::new(point.payload_bytes).to_string()),
                    us(point.latency_ns_min),
                    us(point.latency_ns_median),
                    us(point.latency_ns_p99),
                    TableCell::Number(spread(point.spread)),
                    TableCell::Text(how(point)),
                ]
            });
            let header = ["path", "verb", "payload", "least us", "median us", "p99 us", "spread", ""];
            text += &screen.table(&header, rows.collect());
        }
        if of("bandwidth").next().is_some() {
            text += &screen.heading("Throughput");
            let rows = of("bandwidth").map(|point| {
                vec![
                    TableCell::Name(point.path.clone()),
                    TableCell::Name(point.verb.clone()),
                    TableCell::Number(Bytes::new(point.payload_bytes).to_string()),
                    TableCell::Number(point.queue_pairs.to_string()),
                    TableCell::Number(point.tx_depth.to_string()),
                    TableCell::Number(shown(point.operations_per_s_median, 1e6)),
                    TableCell::Number(shown(point.bandwidth_gbit_per_s_median, 1.0)),
                    TableCell::Number(spread(point.spread)),
                    TableCell::Text(how(point)),
                ]
            });
            let header = ["path", "verb", "payload", "qps", "depth", "Mreq/s", "Gbit/s", "spread", ""];
            text += &screen.table(&header, rows.collect());
        }
        let measured_s: f64 = self.points.iter().map(|point| point.measured_ns as f64 / 1e9).sum();
        let took_s: f64 = self.points.iter().map(|point| point.took_ms / 1e3).sum();
        let clock = if self.stamp.backend == "twin" { " of virtual time" } else { "" };
        text += &format!(
            "\nmeasured {} s{clock}, for which the tool took {} s\n",
            short(measured_s),
            short(took_s)
        );
        text += &reasons(&self.skipped);
        for one in &self.failed {
            text += &format!("failed: {}: {}\n", one.failed, one.why);
        }
        text
    }
}

impl MeasureListAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let least = if self.backend == "verbs" { "at least" } else { "about" };
        let mut text = format!(
            "{} points on {}:{}, {least} {}\n\n",
            self.points.len(),
            self.backend,
            self.device,
            duration(self.seconds_about)
        );
        let rows = self.points.iter().map(|point| {
            vec![TableCell::Text(point.point.clone()), TableCell::Number(point.requests.to_string())]
        });
        text += &screen.table(&["point", "requests"], rows.collect());
        text + &reasons(&self.skipped)
    }
}

impl MeasureSuggestAnswer {
    /// The answer as a page of text.
    pub fn text(&self, screen: &Screen) -> String {
        let mut text =
            format!("{} on {}\nthe plan says: {}\n", self.design, self.system.line(), self.plan_next);
        if !self.runs.is_empty() {
            text += &screen.heading("Runs that would narrow it most");
            let rows = self.runs.iter().map(|run| {
                vec![
                    TableCell::Strong(run.number.clone()),
                    TableCell::Text(format!("{} to {}", run.low, run.high)),
                    TableCell::Number(spread(run.moves_plan)),
                    TableCell::Text(run.point.clone()),
                    TableCell::Number(spread(run.moves_run)),
                ]
            });
            let header = ["number", "known within", "moves the plan", "run", "moves the run"];
            text += &screen.table(&header, rows.collect());
            text += "\nEach with its neighbours:\n";
            // One command may run what several numbers are told by.
            let mut commands: Vec<&str> = Vec::new();
            for run in &self.runs {
                if !commands.contains(&run.options.as_str()) {
                    commands.push(&run.options);
                    text += &format!("  offpath measure BACKEND {}\n", run.options);
                }
            }
        }
        for one in &self.untold {
            text += &format!(
                "not told: {}, which moves the plan by {}: {}\n",
                one.number,
                spread(one.moves_plan),
                one.why
            );
        }
        if self.runs.is_empty() && self.untold.is_empty() {
            text += "No number of the profile that runs of queue pairs could tell moves it by a hundredth.\n";
        }
        text
    }
}
