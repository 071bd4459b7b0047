//! Tables of a plan: a varied parameter, few clients, latency over load.

use super::page::{Page, network_saved, shares_text};
use crate::chart::{BarScale, sparkline};
use crate::output::{Screen, TableCell, fixed, round, short};
use offpath::plan::study::Sweep;
use offpath::quantity::Time;
use serde::Serialize;

impl Page<'_> {
    pub(super) fn sweep_table(&self, sweep: &Sweep, screen: &Screen) -> String {
        let unit = self.unit();
        let solved = || sweep.rows.iter().filter_map(|(value, row)| Some((value, row.as_ref().ok()?)));
        let Some((_, first)) = solved().next() else { return String::new() };
        let mut header: Vec<&str> = vec![&sweep.parameter];
        header.extend(first.alternatives.iter().map(|(name, ..)| name.as_str()));
        header.extend(first.mixes.iter().map(|(name, _)| name.as_str()));
        header.extend(["greedy", "optimal", "mix"]);
        if self.study.design.network_baseline.is_some() {
            header.push("network saved");
        }
        let rate = |rate: f64| TableCell::Number(short(unit.of_rate(rate)));
        let rows = solved()
            .map(|(value, row)| {
                let mut cells =
                    vec![TableCell::Text(self.study.design.parameter_text(&sweep.parameter, *value))];
                cells.extend(row.alternatives.iter().map(|(_, alone, _)| rate(*alone)));
                cells.extend(row.mixes.iter().map(|(_, mix)| rate(*mix)));
                cells.extend([rate(row.greedy), rate(row.rate), TableCell::Text(shares_text(&row.shares))]);
                cells.extend(
                    network_saved(&self.study.design, row.network_bytes)
                        .map(|saved| TableCell::Number(format!("{}%", fixed(saved, 0)))),
                );
                cells
            })
            .collect();
        let mut text = screen.table(&header, rows) + self.without_tails();
        for (value, row) in &sweep.rows {
            if let Err(refused) = row {
                let value = self.study.design.parameter_text(&sweep.parameter, *value);
                text += &format!("{value}: no plan: {refused}\n");
            }
        }
        for (value, row) in solved() {
            if let Some(gap) = &row.gap {
                let value = self.study.design.parameter_text(&sweep.parameter, *value);
                text += &format!("optimal at {value}: {}\n", self.doubt_text(gap));
            }
        }
        let unsettled = solved().filter(|(_, row)| !row.settled);
        let unsettled: Vec<String> =
            unsettled.map(|(value, _)| self.study.design.parameter_text(&sweep.parameter, *value)).collect();
        if !unsettled.is_empty() {
            text += &format!("not settled: {}\n", unsettled.join(", "));
        }
        text
    }

    pub(super) fn clients_table(&self, screen: &Screen) -> String {
        let counts: Vec<String> = self
            .study
            .design
            .clients
            .iter()
            .map(|n| format!("{n} client{}", if *n == 1 { "" } else { "s" }))
            .collect();
        let mut header = vec![self.unit().name()];
        header.extend(counts.iter().map(String::as_str));
        let rows = self
            .study
            .clients
            .iter()
            .map(|(name, runs)| {
                let mut cells = vec![TableCell::Text(name.clone())];
                cells.extend(runs.iter().map(|carried| TableCell::Number(self.carried_text(*carried))));
                cells
            })
            .collect();
        let mut text = screen.table(&header, rows);
        for ratio in self.client_ratios() {
            text += &format!(
                "{} over {}: {:.2} to {:.2}; published {} to {} ({}); saturated {:.2}\n",
                ratio.of,
                ratio.over,
                ratio.low,
                ratio.high,
                ratio.published_low,
                ratio.published_high,
                ratio.source,
                ratio.saturated
            );
        }
        text
    }

    /// The twin's ratios over the numbers of clients beside the published ones, and the ratio that the
    /// plan gives where all stations that bind are full.
    pub(super) fn client_ratios(&self) -> Vec<Ratio> {
        // What is published speaks of the design and the system as they are shipped.
        if self.study.design.is_varied || self.study.is_other_system {
            return Vec::new();
        }
        let runs = |name: &str| self.study.clients.iter().find(|(n, _)| n == name).map(|(_, runs)| runs);
        let plan = self.plan();
        let full = |name: &str| {
            let alone = plan.alternatives.iter().find(|one| one.name == name).map(|one| one.rate.value);
            alone.or_else(|| plan.mixes.iter().find(|mix| mix.name == name).map(|mix| mix.rate.value))
        };
        self.study
            .design
            .published
            .iter()
            .filter_map(|one| {
                let ratios = runs(&one.of)?
                    .iter()
                    .zip(runs(&one.over)?)
                    .filter_map(|(a, b)| Some(a.result()? / b.result()?));
                Some(Ratio {
                    of: one.of.clone(),
                    over: one.over.clone(),
                    low: round(ratios.clone().fold(f64::INFINITY, f64::min)),
                    high: round(ratios.fold(f64::NEG_INFINITY, f64::max)),
                    published_low: one.low,
                    published_high: one.high,
                    source: one.source.clone(),
                    saturated: round(full(&one.of)? / full(&one.over)?),
                })
            })
            .collect()
    }

    pub(super) fn curve_table(&self, screen: &Screen) -> String {
        let unit = self.unit();
        let p99: Vec<f64> = self
            .study
            .curve
            .iter()
            .map(|p| p.loaded.latencies.quantile(0.99).map_or(0.0, Time::as_us))
            .collect();
        let rows = self
            .study
            .curve
            .iter()
            .map(|point| {
                let quantile = |share| short(point.loaded.latencies.quantile(share).map_or(0.0, Time::as_us));
                vec![
                    TableCell::Number(short(unit.of_rate(point.offered_per_s))),
                    TableCell::Number(self.carried_text(point.loaded.throughput)),
                    TableCell::Number(quantile(0.5)),
                    TableCell::Number(quantile(0.99)),
                ]
            })
            .collect();
        let mut text = screen.table(&["offered", unit.name(), "p50 us", "p99 us"], rows);
        text += &format!("p99 over load  {}\n", sparkline(&p99, BarScale::Linear, 3));
        text
    }
}

/// A ratio of throughputs over the numbers of clients.
#[derive(Serialize)]
pub(super) struct Ratio {
    pub(super) of: String,
    pub(super) over: String,
    pub(super) low: f64,
    pub(super) high: f64,
    pub(super) published_low: f64,
    pub(super) published_high: f64,
    pub(super) source: String,
    pub(super) saturated: f64,
}
