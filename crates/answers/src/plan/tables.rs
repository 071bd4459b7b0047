//! Tables of a plan: a varied parameter, few clients, latency over load.

use super::answer::{ParameterAnswer, ParameterRow, PlanAnswer, SolvedAnswer, shares_text};
use super::text::shown;
use crate::sparkline::{BarScale, sparkline};
use offpath_terminal::output::{Screen, TableCell, fixed};

impl PlanAnswer {
    pub(super) fn sweep_table(&self, sweep: &ParameterAnswer, screen: &Screen) -> String {
        let solved = || sweep.rows.iter().filter_map(|row| Some((row, row.solved.as_ref()?)));
        let Some((_, first)) = solved().next() else { return String::new() };
        let mut header: Vec<&str> = vec![&sweep.parameter];
        header.extend(first.alternatives.iter().chain(first.mixes.iter()).map(|(name, _)| name.as_str()));
        header.extend(["greedy", "optimal", "mix"]);
        if sweep.rows.iter().any(|row| row.network_saved_percent.is_some()) {
            header.push("network saved");
        }
        let cells = |(row, one): (&ParameterRow, &SolvedAnswer)| {
            let mut cells = vec![TableCell::Text(row.text.clone())];
            let rates = one.alternatives.iter().chain(one.mixes.iter()).map(|(_, rate)| Some(rate));
            let rates = rates.chain([one.rates.greedy(), one.rates.optimal()]);
            cells.extend(rates.map(|rate| TableCell::Number(shown(rate))));
            cells.push(TableCell::Text(shares_text(&one.shares)));
            cells.extend(
                row.network_saved_percent.map(|saved| TableCell::Number(format!("{}%", fixed(saved, 0)))),
            );
            cells
        };
        let mut text = screen.table(&header, solved().map(cells).collect()) + self.without_tails();
        for row in &sweep.rows {
            if let Some(refused) = &row.refused {
                text += &format!("{}: no plan: {refused}\n", row.text);
            }
        }
        for (row, one) in solved() {
            if let Some(gap) = &one.difference {
                text += &format!("optimal at {}: {}\n", row.text, self.doubt_text(gap));
            }
        }
        let unsettled: Vec<&str> =
            solved().filter(|(_, one)| !one.settled).map(|(row, _)| row.text.as_str()).collect();
        if !unsettled.is_empty() {
            text += &format!("not settled: {}\n", unsettled.join(", "));
        }
        text
    }

    pub(super) fn clients_table(&self, screen: &Screen) -> String {
        let count = |n: &u32| format!("{n} client{}", if *n == 1 { "" } else { "s" });
        let counts: Vec<String> = self.client_counts.iter().map(count).collect();
        let mut header = vec![self.unit];
        header.extend(counts.iter().map(String::as_str));
        let rows = self.clients.iter().map(|one| {
            let carried = |count: &u32| one.throughput.get(&count.to_string());
            let mut cells = vec![TableCell::Text(one.name.clone())];
            cells.extend(self.client_counts.iter().map(|count| TableCell::Number(shown(carried(count)))));
            cells
        });
        let mut text = screen.table(&header, rows.collect());
        for ratio in &self.client_ratios {
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

    pub(super) fn curve_table(&self, screen: &Screen) -> String {
        let p99: Vec<f64> = self.curve.iter().map(|point| point.latency_us_p99.unwrap_or(0.0)).collect();
        let rows = self.curve.iter().map(|point| {
            vec![
                TableCell::Number(shown(point.rates.offered())),
                TableCell::Number(shown(point.rates.throughput())),
                TableCell::Number(shown(point.latency_us_p50)),
                TableCell::Number(shown(point.latency_us_p99)),
            ]
        });
        let mut text = screen.table(&["offered", self.unit, "p50 us", "p99 us"], rows.collect());
        text += &format!("p99 over load  {}\n", sparkline(&p99, BarScale::Linear, 3));
        text
    }
}
