//! Counters beside a plan, as a page of text.

use super::{DifferenceAnswer, WatchAnswer, WatchIntervalAnswer, WatchedCounterAnswer};
use offpath_terminal::output::{Screen, TableCell, short};

/// A figure of a counter with its unit, as people say it.
fn shown(value: f64, unit: &str) -> String {
    match unit {
        "bytes_per_s" => format!("{} Gbit/s", short(value * 8.0 / 1e9)),
        "counts_per_s" => format!("{}/s", short(value)),
        _ => format!("{} M/s", short(value / 1e6)),
    }
}

fn range(low: f64, high: f64, unit: &str) -> String {
    match unit {
        "bytes_per_s" => format!("{} to {} Gbit/s", short(low * 8.0 / 1e9), short(high * 8.0 / 1e9)),
        _ => format!("{} to {} M/s", short(low / 1e6), short(high / 1e6)),
    }
}

fn percent(share: f64) -> String {
    format!("{}%", short(share * 100.0))
}

impl WatchedCounterAnswer {
    fn row(&self) -> Vec<TableCell> {
        let expected = match (self.expected_low, self.expected_high) {
            (Some(low), Some(high)) => range(low, high, self.unit),
            _ => "-".to_string(),
        };
        let or_none = |share: Option<f64>| TableCell::Number(share.map_or_else(|| "-".to_string(), percent));
        vec![
            TableCell::Name(self.counter.clone()),
            TableCell::Name(self.station.clone().unwrap_or_else(|| "-".to_string())),
            TableCell::Number(shown(self.value, self.unit)),
            or_none(self.utilization_share),
            TableCell::Number(expected),
            or_none(self.share),
        ]
    }
}

impl DifferenceAnswer {
    fn line(&self) -> String {
        let at = self.station.as_ref().map_or_else(String::new, |station| format!(" at {station}"));
        let side = if self.share < 1.0 { "least" } else { "most" };
        format!(
            "{}{at}: {} of the {side} that is expected\n  {}\n",
            self.what,
            percent(self.share),
            self.next
        )
    }
}

impl WatchIntervalAnswer {
    /// One interval; `begun_ns` is when the first one began.
    pub fn text(&self, begun_ns: u64, screen: &Screen) -> String {
        let from = self.from_ns.saturating_sub(begun_ns) as f64 / 1e9;
        let mut text = screen.heading(&format!("{} s to {} s", short(from), short(from + self.length_s)));
        let (low, high) = (self.expected_req_per_s_low / 1e6, self.expected_req_per_s_high / 1e6);
        let should = match low == high {
            true => format!("{} M req/s", short(low)),
            false => format!("{} to {} M req/s", short(low), short(high)),
        };
        let observed = self.observed_req_per_s.map(|rate| short(rate / 1e6));
        text += &match (self.rate_basis, observed) {
            ("given", Some(observed)) => format!(
                "{observed} M req/s by counters of requests, of {should} as given: counters are expected at what is given\n"
            ),
            ("given", None) => {
                format!("counters are expected at {should} as given, since none counts requests\n")
            }
            (_, Some(observed)) => format!(
                "{observed} M req/s by counters of requests, of {should} planned: counters are expected at what is observed\n"
            ),
            _ => format!("counters are expected at the planned {should}, since none counts requests\n"),
        };
        if let Some(served) = self.presumed_served_per_request {
            text += &format!(
                "taken from the plan: that a request asks {} READs, WRITEs or atomics of this endpoint, and others of other \
                 endpoints. Another mix at another rate looks the same here; `--rate` with what the program counts tells\n",
                short(served)
            );
        }
        let (told, silent): (Vec<_>, Vec<_>) = self
            .counters
            .iter()
            .filter(|counter| counter.unit != "counts_per_s")
            .partition(|counter| counter.share.is_some() || counter.utilization_share.is_some());
        if !told.is_empty() {
            let header = ["counter", "station", "counted", "of the station", "expected", "of expected"];
            text += &screen.table(&header, told.iter().map(|counter| counter.row()).collect());
        }
        for counter in told.iter().chain(&silent).filter(|counter| counter.share.is_none()) {
            let why = counter.not_compared_because.unwrap_or_default();
            text += &format!(
                "{}, {}: not compared: {why}\n",
                counter.counter,
                shown(counter.value, counter.unit)
            );
        }
        for one in &self.without_rate {
            let of = one.device.as_ref().map_or_else(String::new, |device| format!(" of {device}"));
            text += &format!("{}{of}: no rate: {}\n", one.counter, one.why);
        }
        match (self.compared, self.differences.is_empty()) {
            (false, _) => text += "Nothing could be compared with the plan.\n",
            (true, true) => {
                let but = match (self.has_lost(), self.may_have_lost()) {
                    (true, _) => " in what they move, and packets were lost or came again",
                    (false, true) => " in what they move; whether packets were lost is not known",
                    (false, false) => "",
                };
                text += &format!("Plan and card agree{but}.\n");
            }
            (true, false) => {
                text += "Plan and card differ:\n";
                text += &self.differences.iter().map(DifferenceAnswer::line).collect::<String>();
            }
        }
        for one in &self.troubles {
            let rate = shown(one.counts_per_s, "counts_per_s");
            text += &format!(
                "{}: {rate} {}, which a healthy run has none of\n  {}\n",
                one.counter, one.counts, one.next
            );
        }
        if self.counters_without_device > 0 {
            text += &format!(
                "{} counters whose device no reading tells, as those of ethtool, are left out, since `--nic` chooses devices\n",
                self.counters_without_device
            );
        }
        if self.devices.len() > 1 {
            text += &format!("counters of {} are added up; `--nic` chooses\n", self.devices.join(" and "));
        }
        text
    }
}

impl WatchAnswer {
    /// What the plan says, before the first interval.
    pub fn head(&self, screen: &Screen) -> String {
        let (low, high) = (self.planned_req_per_s_low_80 / 1e6, self.planned_req_per_s_high_80 / 1e6);
        let interval = match low == high {
            true => "the load that was asked for".to_string(),
            false => format!("80% between {} and {}", short(low), short(high)),
        };
        let heading = format!("{} on {}, counters of `{}`", self.design, self.system.line(), self.at);
        let text = screen.heading(&heading);
        let planned = short(self.planned_req_per_s / 1e6);
        text.trim_start_matches('\n').to_string() + &format!("planned: {planned} M req/s, {interval}\n")
    }

    /// What is said once, behind the last interval.
    pub fn tail(&self, screen: &Screen) -> String {
        let mut text = String::new();
        if !self.not_spoken_of.is_empty() {
            text += &screen.heading("What no counter here speaks of");
            let named = |one: &super::UnspokenAnswer| {
                format!("{} ({} busy)", one.station, percent(one.planned_utilization_share))
            };
            let all: Vec<String> = self.not_spoken_of.iter().map(named).collect();
            text += &format!("{}, on the twin at the plan's load\n", all.join(", "));
        }
        for one in &self.ambiguous {
            text += &format!("{one} stands twice in one reading with other values, and is left out\n");
        }
        for one in &self.skipped {
            text += &format!("not read: {}: {}\n", one.count, one.why);
        }
        text
    }

    /// The whole page.
    pub fn text(&self, screen: &Screen) -> String {
        let begun = self.intervals.first().map_or(0, |one| one.from_ns);
        let intervals: String = self.intervals.iter().map(|one| one.text(begun, screen)).collect();
        self.head(screen) + &intervals + &self.tail(screen)
    }
}
