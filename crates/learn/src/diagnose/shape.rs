//! What rows look like by themselves, whatever a model expects of them, and what the model has no number for.

use super::points::{LatencyTail, Point, PrintedUnit, Series, performance};
use super::rows::Row;
use super::{Cause, Diagnosis, DiagnosisVerdict, GAP};
use crate::describe::{Description, OddityKind};
use crate::run::RunKind;
use offpath_logs::{LogOperation, TrafficDirections};
use offpath_profile::System;
use std::sync::Arc;

/// A shape of the rows of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct RowShape {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The lines that it reaches over.
    pub lines: (u64, u64),
    /// Its name: `constant-operations`, `constant-packets`, `cliff`, `step`, `above-line-rate`, `uneven`, `burst`,
    /// `tail`, `timer-wait`, `exactly-half`.
    pub name: &'static str,
    /// What it is and what it says, in a sentence.
    pub what: String,
}

impl RowShape {
    /// Whether they have lines in common.
    pub(super) fn touches(&self, other: &RowShape) -> bool {
        self.file == other.file && self.lines.0 <= other.lines.1 && other.lines.0 <= self.lines.1
    }
}

/// Something that rows like these may come from, and that the model has no number for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// What it is, as a question.
    pub what: String,
    /// What answers it.
    pub command: String,
}

/// A payload and what goes per second, of a row of a bandwidth test.
struct Rate {
    line: u64,
    bytes: f64,
    per_s: f64,
    peak: Option<f64>,
    iterations: Option<u64>,
}

fn rates(series: &Series) -> Vec<Rate> {
    let rate = |point: &Point| {
        let bytes = point.conditions.payload?.get() as f64;
        let iterations = point.conditions.iterations;
        Some(Rate { line: point.line, bytes, per_s: series.rate_per_s(point)?, peak: point.peak, iterations })
    };
    series.points.iter().filter_map(rate).collect()
}

/// Relative scatter around the mean.
fn scatter(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let square =
        values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>() / values.len().max(1) as f64;
    square.sqrt()
}

/// The longest run of rows whose values scatter by at most 4%.
fn constant(values: &[f64]) -> Option<(usize, usize)> {
    const MOST_SCATTER: f64 = 0.04;
    let mut best: Option<(usize, usize)> = None;
    for first in 0..values.len() {
        let longest = best.map_or(0, |(from, to)| to - from);
        // What begins here is no longer even where it goes on to the end.
        if best.is_some() && values.len() - 1 - first <= longest {
            break;
        }
        // Sums of what is counted from the first value on, so that each row is looked at once.
        let (mut last, mut sum, mut square) = (first, 0.0, 0.0);
        for (place, value) in values.iter().enumerate().skip(first + 1) {
            let off = value / values[first] - 1.0;
            (sum, square) = (sum + off, square + off * off);
            let count = (place - first + 1) as f64;
            let mean = sum / count;
            let variance = (square / count - mean * mean).max(0.0);
            if variance.sqrt() >= MOST_SCATTER * (1.0 + mean) {
                break;
            }
            last = place;
        }
        if best.is_none() || last - first > longest {
            best = Some((first, last));
        }
    }
    best.filter(|(first, last)| last - first >= 3)
}

/// The shapes of every series.
pub(super) fn shapes(all: &[Series], system: &System) -> Vec<RowShape> {
    let mut found = Vec::new();
    let port = system.port_at_most(None).map_or(0, |rate| rate.bits_per_second());
    for series in all {
        let mut add = |name: &'static str, lines: (u64, u64), what: String| {
            found.push(RowShape { file: series.file.clone(), lines, name, what });
        };
        if series.kind == RunKind::Latency {
            let carried = series.points.iter().filter_map(|point| {
                let seconds = 1.0 / performance(point.measured);
                Some((point.line, point.conditions.payload?.get() as f64, seconds))
            });
            let bits = |one: &(u64, f64, f64)| one.1 * 8.0 / one.2;
            let most = carried.max_by(|one, other| bits(one).total_cmp(&bits(other)));
            // A message is there when its last byte is.
            if let Some(one) = most.filter(|one| bits(one) > port as f64 * MOST_OF_PORT) {
                let what = format!(
                    "{} B in {:.2} us are {:.1} Gbit/s, more than the {:.0} that the ports carry: the unit or the clock is another than \
                     stated, or both ends are on one machine",
                    one.1,
                    one.2 * 1e6,
                    bits(&one) / 1e9,
                    port as f64 / 1e9
                );
                add("above-line-rate", (one.0, one.0), what);
            }
            let latency: Vec<(u64, f64)> =
                series.points.iter().map(|point| (point.line, 1.0 / performance(point.measured))).collect();
            for pair in latency.windows(2) {
                let ratio = pair[1].1 / pair[0].1;
                if ratio > 3.0 {
                    let what = format!(
                        "the latency grows {ratio:.1} times from one row to the next: from there on something else happens to each operation"
                    );
                    add("step", (pair[0].0, pair[1].0), what);
                }
            }
            let is_timer =
                |(_, tail): &(u64, LatencyTail)| tail.longest.is_some_and(|longest| longest >= TIMER.start);
            let tails: Vec<(u64, LatencyTail)> = series
                .points
                .iter()
                .filter_map(|point| point.tail.map(|tail| (point.line, tail)))
                .filter(|one| one.1.times > OVER_MEDIAN || is_timer(one))
                .collect();
            if let Some((line, LatencyTail { times, is_bound, longest })) =
                tails.iter().max_by(|one, other| one.1.times.total_cmp(&other.1.times)).copied()
            {
                let name = if tails.iter().any(is_timer) { TIMER_WAIT } else { TAIL };
                let longest =
                    longest.map(|longest| format!(", and the longest took {:.3} ms", longest * 1e3));
                let what = format!(
                    "in {} some operations waited for something, of which a median, and with it the verdict, says nothing: in line {line} the \
                     mean is {}{times:.2} times the median{}",
                    in_rows(tails.len()),
                    if is_bound { "at least " } else { "" },
                    longest.unwrap_or_default()
                );
                add(name, (tails[0].0, tails[tails.len() - 1].0), what);
            }
            continue;
        }
        let rates = rates(series);
        over_line_rate(series, &rates, port, system, &mut add);
        if rates.len() < 2 {
            continue;
        }
        let per_s: Vec<f64> = rates.iter().map(|rate| rate.per_s).collect();
        let (least, most) = rates.iter().fold((f64::INFINITY, 0.0f64), |(least, most), rate| {
            (least.min(rate.bytes), most.max(rate.bytes))
        });
        let is_wide = |least: f64, most: f64| most >= 8.0 * least;
        let even = is_wide(least, most).then(|| constant(&per_s)).flatten();
        if let Some((first, last)) = even {
            let (from, to) = (&rates[first], &rates[last]);
            if is_wide(from.bytes, to.bytes) {
                let mean = per_s[first..=last].iter().sum::<f64>() / (last - first + 1) as f64;
                let mut what = format!(
                    "{:.3} M operations per second from {} to {} B, whatever the size: each operation takes {:.0} ns of something",
                    mean / 1e6,
                    from.bytes,
                    to.bytes,
                    1e9 / mean
                );
                if let Some(count) = from.iterations
                    && TIMER.contains(&(count as f64 / mean))
                {
                    what += &format!(
                        ", or each run of {count} waits once for {:.0} ms: a run of other iterations tells",
                        count as f64 / mean * 1e3
                    );
                }
                add("constant-operations", (from.line, to.line), what);
            }
        }
        let mtu = series.conditions.mtu.unwrap_or(system.network.mtu).get() as f64;
        let several: Vec<&Rate> = rates.iter().filter(|rate| rate.bytes >= mtu).collect();
        let packets: Vec<f64> = several.iter().map(|rate| rate.per_s * (rate.bytes / mtu).ceil()).collect();
        let best = rates.iter().map(|rate| rate.per_s * rate.bytes * 8.0).fold(0.0, f64::max);
        if packets.len() >= 4 && scatter(&packets) < 0.04 && best < 0.8 * port as f64 {
            let mean = packets.iter().sum::<f64>() / packets.len() as f64;
            let what = format!(
                "{:.2} M packets of {mtu} B per second at every size from {} B on, and {:.1} of {:.0} Gbit/s: bytes or packets are \
                 held at a rate",
                mean / 1e6,
                several[0].bytes,
                best / 1e9,
                port as f64 / 1e9
            );
            add("constant-packets", (several[0].line, several[several.len() - 1].line), what);
        }
        let bandwidth = |rate: &Rate| rate.per_s * rate.bytes;
        for (place, pair) in rates.windows(2).enumerate() {
            let falls = |rate: &Rate| bandwidth(rate) < 0.7 * bandwidth(&pair[0]);
            if pair[1].bytes > pair[0].bytes && falls(&pair[1]) {
                let is_alone = rates.get(place + 2).is_some_and(|next| !falls(next));
                let where_to = if is_alone { "at this size alone" } else { "from there on" };
                let what = format!(
                    "bandwidth falls to {:.0}% from {} to {} B: something does not fit {where_to}",
                    bandwidth(&pair[1]) / bandwidth(&pair[0]) * 100.0,
                    pair[0].bytes,
                    pair[1].bytes
                );
                add("cliff", (pair[0].line, pair[1].line), what);
            }
        }
        let uneven = rates.iter().filter(|rate| rate.peak.is_some_and(|peak| peak > 1.5)).collect::<Vec<_>>();
        if uneven.len() * 3 >= rates.len() {
            let (first, last) = (uneven[0].line, uneven[uneven.len() - 1].line);
            let what = "the best of a run is half as high again as its mean: it stops and goes".to_string();
            add("uneven", (first, last), what);
        }
    }
    found
}

/// The shape of a run that stalled for a part of its time.
pub(super) const BURST: &str = "burst";

/// The shape of latencies of which a few are much longer than the others.
const TAIL: &str = "tail";
/// The same where one of them took as long as a timer of the transport, which no interrupt does.
const TIMER_WAIT: &str = "timer-wait";
/// A healthy run's mean lies within a tenth of its median.
pub(super) const OVER_MEDIAN: f64 = 1.5;

fn in_rows(count: usize) -> String {
    if count == 1 { "1 row".to_string() } else { format!("{count} rows") }
}

/// Rows of a series whose best stretch is over twice their mean: what bounds the run let go in between.
pub(super) fn bursts(kept: &[(&Row, f64, f64)]) -> Vec<RowShape> {
    const OVER: f64 = 2.0;
    let mut found: Vec<RowShape> = Vec::new();
    let burst = |(row, _, gap): &(&Row, f64, f64)| {
        let times = row.point.peak.filter(|times| *times > OVER)?;
        let mean = row.point.mean_of_windows.unwrap_or(1.0);
        Some((row.series.place(), row.point.line, times, times * mean / gap.exp()))
    };
    let all: Vec<_> = kept.iter().filter_map(burst).collect();
    for series in all.chunk_by(|one, other| one.0 == other.0) {
        let Some((place, line, times, share)) =
            series.iter().max_by(|one, other| one.2.total_cmp(&other.2)).cloned()
        else {
            continue;
        };
        let rows = in_rows(series.len());
        found.push(RowShape {
            file: place.0,
            lines: (series[0].1, series[series.len() - 1].1),
            name: BURST,
            what: format!(
                "in {rows} the best stretch is over twice the mean, in line {line} {times:.1} times, at {:.0}% of what is expected: \
                 the run stalled for a part of its time, and nothing that holds it back all the time explains that part",
                share * 100.0
            ),
        });
    }
    found
}

/// What a burst says for a cause that comes and goes.
pub(super) fn spoken_for(cause: Cause, diagnosis: &Diagnosis) -> Option<String> {
    let shape = diagnosis.shapes.iter().find(|shape| shape.name == BURST)?;
    let what = match cause {
        Cause::PortRate => "pause frames",
        Cause::PcieLatency => "memory of another node and a link that sleeps",
        Cause::ProcessorClock => "a frequency that changes and power saving",
        _ => return None,
    };
    let (first, last) = shape.lines;
    Some(format!("{}:{first}-{last}: the run stalled for a part of its time, as {what} have it", shape.file))
}

/// What stalls a run for a part of its time, or some of its operations, asked where that was.
pub(super) fn stalled(diagnosis: &Diagnosis) -> Vec<Question> {
    let of = |name: &str| diagnosis.shapes.iter().find(|shape| shape.name == name);
    let waited = of(TIMER_WAIT).or(of(TAIL)).map(|shape| Question {
        what: format!(
            "what did some operations wait for ({}:{}-{})? A receiver that is not ready (up to 655 ms a refusal), a packet that was lost \
             and retransmitted, a core that slept or had other work",
            shape.file, shape.lines.0, shape.lines.1
        ),
        command: "hw_counters `rnr_nak_retry_err`, `out_of_sequence` and `local_ack_timeout_err`, twice: the difference; the same run \
                  with `-U` for each sample, pinned by `taskset`"
            .to_string(),
    });
    let burst = of(BURST).map(|shape| Question {
        what: format!(
            "what stalled the run for a part of its time ({}:{}-{})? Pause frames, a core or memory of another node, a frequency that \
             changes, power saving of processor or link",
            shape.file, shape.lines.0, shape.lines.1
        ),
        command: "`ethtool -S DEV` twice: the difference of `rx_prio*_pause`; the same run by `numactl` on the card's node, with \
                  `cpupower frequency-set -g performance` and `cpupower idle-set -D 0`"
            .to_string(),
    });
    waited.into_iter().chain(burst).collect()
}

/// Figures scatter by so much around what a port carries.
const MOST_OF_PORT: f64 = 1.02;

/// The row of a series that is the most above what the ports carry, by its payload or else with the headers of its packets.
fn over_line_rate(
    series: &Series,
    rates: &[Rate],
    port: u64,
    system: &System,
    add: &mut impl FnMut(&'static str, (u64, u64), String),
) {
    let both = series.conditions.directions == Some(TrafficDirections::Both);
    let room = port as f64 * if both { 2.0 } else { 1.0 };
    let stated = series.conditions.mtu.map(|mtu| mtu.get() as f64);
    let mtu = stated.unwrap_or(system.network.mtu.get() as f64);
    let bits = |rate: &Rate| rate.per_s * rate.bytes * 8.0;
    // Each packet has its headers beside what it carries, of which no more is known than the profile says.
    let on_wire = |rate: &Rate| {
        let packets = (rate.bytes / mtu).ceil().max(1.0);
        rate.per_s * (rate.bytes + packets * system.network.packet_header.get() as f64) * 8.0
    };
    let most = |of: &dyn Fn(&Rate) -> f64| rates.iter().max_by(|one, other| of(one).total_cmp(&of(other)));
    if let Some(rate) = most(&bits).filter(|rate| bits(rate) > room * MOST_OF_PORT) {
        let what = format!(
            "{:.1} Gbit/s is more than the {:.0} that the ports carry: the unit or the directions are others than stated, or both \
             ends are on one machine",
            bits(rate) / 1e9,
            room / 1e9
        );
        add("above-line-rate", (rate.line, rate.line), what);
        return;
    }
    if let Some(rate) = most(&on_wire).filter(|rate| on_wire(rate) > room / GAP) {
        let (packets, wrong) = match stated.filter(|mtu| *mtu < rate.bytes) {
            Some(mtu) => {
                (format!("in packets of {mtu} B, as the log states,"), "the MTU is another than stated")
            }
            None => {
                let packets = format!("in {:.1} M messages per second of {} B", rate.per_s / 1e6, rate.bytes);
                (packets, "no port sends so many packets")
            }
        };
        let what = format!(
            "{:.1} Gbit/s {packets} are {:.1} with their headers, more than the {:.0} that the ports carry: {wrong}",
            bits(rate) / 1e9,
            on_wire(rate) / 1e9,
            room / 1e9
        );
        add("above-line-rate", (rate.line, rate.line), what);
    }
}

/// Rows of which each took longer than expected by a time that a timer of the transport may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stalls {
    rows: usize,
    /// The least and the longest of these times, in seconds.
    span: (f64, f64),
}

/// Timers of the transport: a receiver that is not ready is asked again after up to 655 ms, and what is lost is retransmitted
/// after 67 ms with perftest's own setting, times a few.
const TIMER: std::ops::Range<f64> = 0.04..0.66;
/// A run that takes so many times what is expected mostly waited.
const MOSTLY_WAITED: f64 = 5.0;

impl Stalls {
    /// By how long each run took and is expected to take, in seconds; nothing where no row is such.
    pub(super) fn of(runs: impl Iterator<Item = (f64, f64)>) -> Option<Stalls> {
        let longer = runs.filter(|(took, expected)| *took > MOSTLY_WAITED * expected);
        let own: Vec<f64> =
            longer.map(|(took, expected)| took - expected).filter(|time| TIMER.contains(time)).collect();
        let span = own
            .iter()
            .fold((f64::INFINITY, 0.0f64), |(least, most), time| (least.min(*time), most.max(*time)));
        (!own.is_empty()).then_some(Stalls { rows: own.len(), span })
    }

    /// What it is, in a clause.
    fn clause(&self) -> String {
        let Stalls { rows, span: (least, most) } = self;
        let [least, most] = [least, most].map(|time| format!("{:.0}", time * 1e3));
        let times = if least == most { least } else { format!("{least} to {most}") };
        let runs = if *rows == 1 { "1 run".to_string() } else { format!("each of {rows} runs") };
        format!("{runs} took {times} ms longer than expected")
    }
}

/// What is asked of operations and runs that waited for something, whatever the verdict is.
pub(super) fn waits(all: &[Series], diagnosis: &Diagnosis, stalls: Option<Stalls>) -> Vec<Question> {
    let timer = stalls.into_iter().flat_map(|stalls| {
        let waited = format!(": {}, as one wait for a timer would", stalls.clause());
        let receiver = has_send(all).then(|| receiver(&waited));
        receiver.into_iter().chain([lost(&waited)])
    });
    timer.chain(stalled(diagnosis)).collect()
}

fn has_send(all: &[Series]) -> bool {
    all.iter().any(|series| {
        matches!(series.conditions.operation, Some(LogOperation::Send | LogOperation::SendImmediate) | None)
    })
}

fn receiver(waited: &str) -> Question {
    Question {
        what: format!(
            "is a receiver not ready{waited}? Each refusal waits for a timer of up to 655 ms, whatever size and iterations"
        ),
        command:
            "hw_counters `rnr_nak_retry_err` and `out_of_buffer`, twice: the difference; `--rx-depth 512`"
                .into(),
    }
}

fn lost(waited: &str) -> Question {
    Question {
        what: format!("are packets lost and retransmitted{waited}?"),
        command: "hw_counters `packet_seq_err`, `out_of_sequence` and `local_ack_timeout_err`, twice: the difference".into(),
    }
}

/// What rows like these may come from beside the causes that were ranked.
pub(super) fn questions(
    all: &[Series],
    diagnosis: &Diagnosis,
    system: &System,
    machine: Option<&Description>,
    stalls: Option<Stalls>,
) -> Vec<Question> {
    let mut found: Vec<Question> = Vec::new();
    let has_shape = |name: &str| diagnosis.shapes.iter().any(|shape| shape.name == name);
    let each = |series: &Series| -> Vec<(f64, f64)> {
        match series.kind {
            RunKind::Bandwidth => rates(series).iter().map(|rate| (1.0 / rate.per_s, rate.bytes)).collect(),
            RunKind::Latency => {
                let bytes = |point: &Point| point.conditions.payload.map_or(0.0, |size| size.get() as f64);
                series.points.iter().map(|point| (1.0 / point.performance(), bytes(point))).collect()
            }
        }
    };
    let slowest = all
        .iter()
        .flat_map(each)
        .fold(0.0f64, |most, (each, bytes)| if bytes <= 65536.0 { most.max(each) } else { most });
    let explained = diagnosis
        .explained_together
        .or(diagnosis.groups.first().map(|group| group.explained_share))
        .unwrap_or(0.0);
    let waited = stalls.map(|stalls| format!(": {}, as one wait for a timer would", stalls.clause()));
    let waited = waited.unwrap_or_default();
    if has_send(all) && (slowest > 1e-3 || stalls.is_some()) {
        found.push(receiver(&waited));
    }
    if slowest > 1e-4 || stalls.is_some() || has_shape("uneven") || has_shape(BURST) || has_shape("cliff") {
        found.push(lost(&waited));
    }
    found.extend(stalled(diagnosis));
    let mut ask = |what: &str, command: &str| {
        found.push(Question { what: what.to_string(), command: command.to_string() });
    };
    let is_unit_right =
        |series: &Series| series.kind == RunKind::Bandwidth && series.unit == PrintedUnit::Right;
    if explained < 0.8 && diagnosis.verdict == DiagnosisVerdict::High && all.iter().any(is_unit_right) {
        ask(
            "is the clock wrong that the tool times with? Bandwidth and message rate agree, so the unit of neither is wrong; \
             perftest takes both from the processor's cycles, by the frequency that it was told",
            "the same run by `time`; `lscpu` for `constant_tsc`; perftest's `Conflicting CPU frequency values`, and its `-F`",
        );
    }
    if explained < 0.8 && diagnosis.median_share > 1.0 / GAP {
        ask(
            &format!(
                "is it another card than `{}`, or another host? The rows are faster than this profile has any of its parts",
                system.device
            ),
            "`lspci` and `ibv_devinfo` for the card, `offpath device list` for the profiles; `offpath calibrate` with the nearest as its \
             `--base` learns yours",
        );
        if all.iter().any(|series| series.kind == RunKind::Bandwidth) {
            ask(
                "are both directions summed, or several processes? A log without its head does not say so",
                "the command that ran: `-b` and `-q`; `ethtool -S` of each port twice: the bytes each way",
            );
        }
    }
    if explained < 0.8 && diagnosis.verdict == DiagnosisVerdict::Low {
        ask(
            "do pause frames or congestion marks hold the sender back?",
            "`ethtool -S DEV` twice: the difference of `rx_prio*_pause` and `tx_prio*_pause`; hw_counters `np_cnp_sent`",
        );
        ask(
            "is relaxed ordering off on a processor that needs it?",
            "`lspci -vvv`: RlxdOrd in DevCtl; the head's `PCIe relax order`; the same run without `--disable_pcie_relaxed`",
        );
        ask(
            "is a large buffer registered in small pages, so that the NIC looks translations up?",
            "the same run with `--use_hugepages`, and with a small buffer",
        );
        let is_virtual = system.mode == "embedded-cpu";
        if is_virtual {
            ask(
                "does the card's virtual switch carry the packets in software?",
                "on the card: `ovs-appctl dpctl/dump-flows type=offloaded`; `ovs-vsctl get Open_vSwitch . other_config:hw-offload`",
            );
        }
    }
    if all.iter().any(|series| series.conditions.queue_pairs.is_some_and(|pairs| pairs >= 256)) {
        ask(
            "does the state of all queue pairs fit into the NIC's cache?",
            "the same run with 16, 64, 256 and 1024 queue pairs: the rate falls where they no longer fit",
        );
    }
    let of_model = |kind: &OddityKind| {
        matches!(kind, OddityKind::RelaxedOrdering | OddityKind::Governor | OddityKind::VirtualMachine)
    };
    for oddity in machine.into_iter().flat_map(|machine| &machine.oddities).filter(|one| of_model(&one.kind))
    {
        ask(&format!("{} ({}): does that matter here?", oddity.what, oddity.at), &oddity.next_step);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What it finds with sums is what looking at each stretch by itself finds, and rows in thousands take no longer than once each.
    #[test]
    fn an_even_stretch_is_the_longest_one() {
        let spread = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            let square = values.iter().map(|value| (value / mean - 1.0).powi(2)).sum::<f64>();
            (square / values.len() as f64).sqrt()
        };
        let plain = |values: &[f64]| {
            let mut best: Option<(usize, usize)> = None;
            for first in 0..values.len() {
                let mut last = first;
                while last + 1 < values.len() && spread(&values[first..=last + 1]) < 0.04 {
                    last += 1;
                }
                if best.is_none_or(|(from, to)| last - first > to - from) {
                    best = Some((first, last));
                }
            }
            best.filter(|(first, last)| last - first >= 3)
        };
        let mut state = 1u64;
        let mut draw = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f64 / (1u64 << 31) as f64
        };
        for count in 0..200 {
            let values: Vec<f64> = (0..count % 30)
                .map(|_| 3.6e6 * (1.0 + 0.12 * draw()) * (1.0 + (draw() * 1.2).floor()))
                .collect();
            assert_eq!(constant(&values), plain(&values), "{values:?}");
        }
        assert_eq!(constant(&vec![3.6e6; 100_000]), Some((0, 99_999)));
    }
}
