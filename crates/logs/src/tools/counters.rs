//! Readings of counters: `ethtool -S`, `rdma statistic`, files of sysfs with their names, and Prometheus. A line
//! `time SECONDS` says when those that follow it were read.

use crate::decimal::{Decimal, Printed};
use crate::measurement::{
    LogCautions, LogConditions, LogMetric, LogTool, MetricStatistic, MetricSubject, Scale,
};
use crate::reader::{LogLine, Sink, Taken};
use crate::tools::{LineTool, Row};
use std::sync::Arc;

/// Folders of sysfs that hold counters of devices.
const FOLDERS: &[&str] = &["/sys/class/infiniband/", "/sys/class/net/", "/sys/class/hwmon/"];

/// Reads counters.
#[derive(Default)]
pub(crate) struct Counters {
    is_ethtool: bool,
    /// The family of Prometheus that is described last, and whether it counts.
    family: Option<(String, bool)>,
    /// When the counters that follow were read, in nanoseconds since 1970.
    read_at_ns: Option<u64>,
}

impl LineTool for Counters {
    fn take(&mut self, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
        let text = line.text;
        if text == "NIC statistics:" {
            self.is_ethtool = true;
            return Taken::Known;
        }
        if let Some(time) = text.strip_prefix("time ").and_then(Decimal::read) {
            self.read_at_ns = time.times(1_000_000_000);
            self.is_ethtool = false;
            return match self.read_at_ns {
                Some(_) => Taken::Known,
                None => Taken::Unknown("a time is seconds since 1970, as `date '+time %s.%N'` prints".into()),
            };
        }
        if let Some(described) = text.strip_prefix("# HELP ").or(text.strip_prefix("# TYPE ")) {
            let mut words = described.split(' ');
            let name = words.next().unwrap_or_default();
            if text.starts_with("# TYPE ") {
                let counts = matches!(words.next(), Some("counter" | "histogram" | "summary"));
                self.family = Some((name.to_string(), counts));
            }
            return Taken::Known;
        }
        if let Some(rest) = text.strip_prefix("link ") {
            return take_links(rest, self.read_at_ns, line, sink);
        }
        if FOLDERS.iter().any(|folder| text.starts_with(folder)) {
            return take_file(self.read_at_ns, line, sink);
        }
        if let Some((family, counts)) = &self.family
            && text.starts_with(family.as_str())
        {
            return take_sample(family, *counts, self.read_at_ns, line, sink);
        }
        if self.is_ethtool {
            let pair = text.rsplit_once(':').map(|(name, value)| (name.trim(), value.trim()));
            let number = |value: &str| Decimal::read(value).filter(|number| number.whole().is_some());
            // Drivers of several queues put the queue before the name.
            let is_name = |name: &str| {
                let own = name
                    .strip_prefix('[')
                    .and_then(|rest| rest.split_once("]: "))
                    .map_or(name, |(_, own)| own);
                !own.starts_with('#') && !own.is_empty() && !own.contains(char::is_whitespace)
            };
            if let Some((name, number)) = pair.and_then(|(name, value)| Some((name, number(value)?)))
                && is_name(name)
            {
                let mut conditions = LogConditions { program: Some("ethtool".into()), ..Default::default() };
                conditions.set_text("counter", name);
                put(conditions, self.read_at_ns, number, line, sink);
                return Taken::Measured;
            }
            // The sign of a comment or a quotation is taken off for a second look.
            self.is_ethtool = text.starts_with(['#', '>']);
        }
        Taken::No
    }
}

/// The key of the time at which a counter was read.
const READ_AT: &str = "read_at_ns";

fn put(
    mut conditions: LogConditions,
    read_at_ns: Option<u64>,
    number: Decimal,
    line: &LogLine<'_>,
    sink: &mut Sink,
) {
    if let Some(time) = read_at_ns {
        conditions.set_number(READ_AT, time);
    }
    let row = Row {
        tool: LogTool::Counters,
        conditions: Arc::new(conditions),
        line: line.number,
        number: sink.begin_row(),
        text: line.text,
    };
    let scale = if number.whole().is_some() { Scale::Count } else { Scale::Number };
    let metric = LogMetric::new(MetricSubject::Counter, MetricStatistic::Only);
    row.put(metric, Printed::Number(number), scale, LogCautions::default(), sink);
}

/// `DEVICE/PORT NAME NUMBER NAME NUMBER ...`
fn take_links(rest: &str, read_at_ns: Option<u64>, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let Some((link, pairs)) = words.split_first() else { return Taken::No };
    let Some((device, port)) = link.split_once('/') else { return Taken::No };
    let pairs: Option<Vec<(&str, Decimal)>> = pairs
        .chunks(2)
        .map(|pair| match pair {
            [name, number] => Some((*name, Decimal::read(number).filter(|number| number.whole().is_some())?)),
            _ => None,
        })
        .collect();
    let Some(pairs) = pairs.filter(|pairs| !pairs.is_empty()) else { return Taken::No };
    for (name, number) in pairs {
        let mut conditions = LogConditions {
            program: Some("rdma statistic".into()),
            device: Some(device.into()),
            ..LogConditions::default()
        };
        conditions.set_text("port", port);
        conditions.set_text("counter", name);
        put(conditions, read_at_ns, number, line, sink);
    }
    Taken::Measured
}

/// `FILE:NUMBER`, as `grep . FILES` prints it.
fn take_file(read_at_ns: Option<u64>, line: &LogLine<'_>, sink: &mut Sink) -> Taken {
    let Some((conditions, file, value)) = counter_file(line.text) else { return Taken::No };
    // Counters of a card's own blocks are printed in hexadecimal digits.
    let number = match value.strip_prefix("0x") {
        Some(digits) if !digits.starts_with('+') => u64::from_str_radix(digits, 16).ok().map(Decimal::from),
        _ => Decimal::read(value),
    };
    let Some(number) = number.filter(|number| number.whole().is_some()) else {
        // What a counter is set to count, and names of sensors, are words.
        let name = file.rsplit('/').next().unwrap_or(file);
        let is_word = name.starts_with("event") || name == "name" || name.ends_with("_label");
        return if is_word && file.starts_with("/sys/class/hwmon/") {
            Taken::Known
        } else {
            Taken::Unknown("a file of counters that holds no whole number".into())
        };
    };
    put(conditions, read_at_ns, number, line, sink);
    Taken::Measured
}

/// Whose counter a line `FILE:VALUE` is about, as `grep . FILES` prints it of sysfs; what of a file holds no number, as the
/// kernel says `N/A (no PMA)` of a port's counters that it cannot ask for, is a remark, whose text this tells.
pub fn sysfs_counter(text: &str) -> Option<LogConditions> {
    let is_there = FOLDERS.iter().any(|folder| text.starts_with(folder));
    is_there.then(|| counter_file(text)).flatten().map(|(conditions, ..)| conditions)
}

/// The conditions, the file and the value of `FILE:VALUE`.
fn counter_file(text: &str) -> Option<(LogConditions, &str, &str)> {
    let (file, value) = text.split_once(':')?;
    let parts: Vec<&str> = file.split('/').skip(3).collect();
    let [_, device, ref folder @ .., name] = parts[..] else { return None };
    let mut conditions =
        LogConditions { program: Some("sysfs".into()), device: Some(device.into()), ..Default::default() };
    conditions.set_text("counter", name);
    if !folder.is_empty() {
        conditions.set_text("folder", &folder.join("/"));
    }
    Some((conditions, file, value.trim()))
}

/// `NAME{LABELS} NUMBER [MILLISECONDS]` of a family.
fn take_sample(
    family: &str,
    counts: bool,
    read_at_ns: Option<u64>,
    line: &LogLine<'_>,
    sink: &mut Sink,
) -> Taken {
    let text = line.text;
    let end = text.find(|c: char| c == '{' || c.is_whitespace()).unwrap_or(text.len());
    let name = &text[..end];
    if name != family
        && !["_total", "_sum", "_count", "_bucket"].iter().any(|end| name == format!("{family}{end}"))
    {
        return Taken::No;
    }
    let (labels, rest) = match text[end..].strip_prefix('{') {
        // A label's text may hold a bracket: the last one closes.
        Some(inside) => match inside.rsplit_once('}') {
            Some((labels, rest)) => (labels, rest),
            None => return Taken::Unknown("the labels do not end".into()),
        },
        None => ("", &text[end..]),
    };
    let words: Vec<&str> = rest.split_ascii_whitespace().collect();
    let (value, own) = match words[..] {
        [value] => (value, None),
        [value, milliseconds] => (value, Decimal::read(milliseconds).and_then(|time| time.times(1_000_000))),
        _ => return Taken::Unknown("a sample has a number, and at most a time behind it".into()),
    };
    let Some(printed) = Printed::read(value) else {
        return Taken::Unknown("a sample of Prometheus that is no number".into());
    };
    let mut conditions = LogConditions { program: Some("prometheus".into()), ..LogConditions::default() };
    conditions.set_text("counter", name);
    if !labels.is_empty() {
        conditions.set_text("labels", labels);
    }
    let device =
        labels.split(',').find_map(|label| label.trim().strip_prefix("device=\"")?.strip_suffix('"'));
    conditions.device = device.map(Arc::from);
    if let Some(time) = own.or(read_at_ns) {
        conditions.set_number(READ_AT, time);
    }
    let subject = if counts { MetricSubject::Counter } else { MetricSubject::Reading };
    let scale = match printed.number() {
        Some(number) if number.whole().is_some() => Scale::Count,
        _ => Scale::Number,
    };
    let row = Row {
        tool: LogTool::Counters,
        conditions: Arc::new(conditions),
        line: line.number,
        number: sink.begin_row(),
        text,
    };
    let metric = LogMetric::new(subject, MetricStatistic::Only);
    row.put(metric, printed, scale, LogCautions::default(), sink);
    Taken::Measured
}
