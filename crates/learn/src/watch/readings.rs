//! Readings of counters by their times, and what was counted between two of them.

use super::table::{CounterMeaning, CounterPlace};
use offpath_logs::{
    LogCaution, LogConditions, LogDetail, LogFigure, LogMeasurement, LogRemark, LogTool, MetricSubject,
    sysfs_counter,
};
use std::collections::{BTreeMap, BTreeSet};

/// Which counter of which device.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CounterKey {
    /// Where it is read.
    pub place: CounterPlace,
    /// The device, where that is told.
    pub device: Option<String>,
    /// Its port or block, where that is told.
    pub part: Option<String>,
    /// Its name.
    pub name: String,
}

impl CounterKey {
    /// Whether it is of an RDMA device, and not of the kernel's network stack or of a card's blocks.
    pub(super) fn is_rdma(&self) -> bool {
        !matches!(self.place, CounterPlace::TlpCounters | CounterPlace::NetStatistics)
    }
}

/// What a counter did between two readings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counted {
    /// It grew, or stayed.
    Grew {
        /// By so much.
        by: u64,
        /// To.
        to: u64,
    },
    /// It fell: it wrapped around, was cleared, or its driver was loaded anew. How much was counted is not known.
    Fell {
        /// From.
        from: u64,
        /// To.
        to: u64,
    },
    /// It is in the first reading and not in the second, which has others of its place: the second was cut off, or lost it.
    Vanished {
        /// Where it stood.
        from: u64,
    },
    /// It is in the second reading and not in the first, which has others of its place.
    Appeared {
        /// Where it stands.
        to: u64,
    },
    /// It stands at the greatest number of its bits, where such counters stop: how much was counted is not known.
    Stuck {
        /// How many bits.
        bits: u32,
    },
    /// It grew by so much while others of its device fell, and none of them shows by where it stood before that they were not
    /// all cleared at once: what was counted before that is not known.
    Doubted {
        /// By so much.
        by: u64,
    },
    /// A file of it holds no number, as `N/A (no PMA)`, and no two readings have one: what was counted is not known.
    Unread,
    /// It grew by so much, and no row of the table has it: by its name it counts errors, of what is not known.
    Unknown {
        /// By so much.
        by: u64,
    },
    /// It grew by so much, within 32 bits, in a time in which as many as they hold may have been counted.
    MayHaveWrapped {
        /// By so much.
        by: u64,
    },
}

/// Why a figure is no reading that counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NoReading {
    /// It is no counter, or one whose place is not known.
    NoCounter,
    /// Nothing says when it was read.
    Untimed,
    /// The file ends within its line, so that its number may lack digits.
    Unended,
}

/// Readings, in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct CounterReadings {
    by_time: BTreeMap<u64, BTreeMap<CounterKey, u64>>,
    /// Counters that stand twice in one reading, with other values.
    ambiguous: BTreeSet<CounterKey>,
    /// Counters whose file held no number in a reading.
    unread: BTreeSet<CounterKey>,
}

impl CounterReadings {
    /// Takes a figure of a log; why not, where it is no reading.
    pub fn add(&mut self, figure: &LogMeasurement) -> Option<NoReading> {
        let Some((key, value)) = counter(figure) else { return Some(NoReading::NoCounter) };
        let Some(LogDetail::Number(time)) = figure.conditions.more.get("read_at_ns") else {
            return Some(NoReading::Untimed);
        };
        if figure.cautions.has(LogCaution::UnendedLine) {
            return Some(NoReading::Unended);
        }
        let reading = self.by_time.entry(*time).or_default();
        match reading.get(&key) {
            Some(other) if *other != value => {
                self.ambiguous.insert(key);
            }
            _ => {
                reading.insert(key, value);
            }
        }
        None
    }

    /// Takes what a log says of a line that gives no figure: a counter's file without a number is a counter that is there.
    pub fn add_remark(&mut self, remark: &LogRemark) {
        self.unread.extend(sysfs_counter(&remark.text).as_ref().and_then(key));
    }

    /// Devices that readings name.
    pub fn devices(&self) -> BTreeSet<&str> {
        let keys = self.by_time.values().flat_map(BTreeMap::keys);
        keys.filter(|key| key.is_rdma()).filter_map(|key| key.device.as_deref()).collect()
    }

    /// How many readings there are.
    pub fn len(&self) -> usize {
        self.by_time.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.by_time.is_empty()
    }

    /// Forgets all readings but the last one.
    pub fn keep_last(&mut self) {
        while self.by_time.len() > 1 {
            self.by_time.pop_first();
        }
    }

    /// Counters that stand twice in one reading, with other values: of several devices that are not told apart.
    pub fn ambiguous(&self) -> impl Iterator<Item = &CounterKey> {
        self.ambiguous.iter()
    }

    /// What was counted between readings: when the first was taken and the second, in nanoseconds since 1970, and what each
    /// counter did that both have, or the first where the second has others of its place, or whose file has no number.
    ///
    /// Counters of one device and place are compared with the last reading that has some of them: files of several tools have
    /// their readings between those of others. Where no two readings have anything in common, neighbours stand for that.
    pub fn intervals(&self) -> Vec<(u64, u64, BTreeMap<&CounterKey, Counted>)> {
        let mut last: BTreeMap<CounterGroup, u64> = BTreeMap::new();
        let mut all = Vec::new();
        for (to, after) in &self.by_time {
            let groups: BTreeSet<CounterGroup> = after.keys().map(group).collect();
            let mut by_from: BTreeMap<u64, BTreeSet<CounterGroup>> = BTreeMap::new();
            for group in &groups {
                if let Some(from) = last.get(group) {
                    by_from.entry(*from).or_default().insert(group.clone());
                }
            }
            // What is gone is missed in the reading that was the last to have what is still there.
            let newest = by_from.keys().next_back().copied();
            for (from, groups) in by_from {
                let is_newest = newest == Some(from);
                all.push((
                    from,
                    *to,
                    self.between(from, *to, &|key| groups.contains(&group(key)), is_newest),
                ));
            }
            last.extend(groups.into_iter().map(|group| (group, *to)));
        }
        if all.is_empty() {
            let times: Vec<u64> = self.by_time.keys().copied().collect();
            all.extend(
                times.windows(2).map(|two| (two[0], two[1], self.between(two[0], two[1], &|_| true, true))),
            );
        }
        all
    }

    /// What counters did between two readings, of those that `is_meant` has; with `with_lost` also what the second has no more of
    /// all that the first has.
    fn between(
        &self,
        from: u64,
        to: u64,
        is_meant: &dyn Fn(&CounterKey) -> bool,
        with_lost: bool,
    ) -> BTreeMap<&CounterKey, Counted> {
        let (before, after) = (&self.by_time[&from], &self.by_time[&to]);
        let is_meant = |key: &CounterKey| is_meant(key) && !self.ambiguous.contains(key);
        let both = after.iter().filter(|(key, _)| is_meant(key));
        let counted = both.filter_map(|(key, now)| Some((key, counted(key, *before.get(key)?, *now))));
        let mut counted: BTreeMap<&CounterKey, Counted> = counted.collect();
        doubt(&mut counted);
        let places: BTreeSet<CounterGroup> = counted.keys().map(|key| group(key)).collect();
        // A reading that goes on and has an RDMA device no more has lost it, and is no other tool's.
        let devices: BTreeSet<&String> = after.keys().filter_map(|key| key.device.as_ref()).collect();
        // Nor is one that has some of a device's counters, as before, another tool's.
        let read: BTreeSet<&String> = counted.keys().filter_map(|key| key.device.as_ref()).collect();
        let is_lost = |key: &CounterKey| {
            let is_own = with_lost && key.is_rdma() && !counted.is_empty() && !self.ambiguous.contains(key);
            let device = key.device.as_ref().filter(|_| is_own);
            device.is_some_and(|device| !devices.contains(device) || read.contains(device))
        };
        let gone: Vec<(&CounterKey, &u64)> = before
            .iter()
            .filter(|(key, _)| {
                !after.contains_key(*key) && (is_meant(key) && places.contains(&group(key)) || is_lost(key))
            })
            .collect();
        let come = after.iter().filter(|(key, to)| {
            !before.contains_key(*key) && **to > 0 && is_meant(key) && places.contains(&group(key))
        });
        let come: Vec<(&CounterKey, &u64)> = come.collect();
        counted.extend(gone.into_iter().map(|(key, from)| (key, Counted::Vanished { from: *from })));
        counted.extend(come.into_iter().map(|(key, to)| (key, Counted::Appeared { to: *to })));
        for key in self.unread.iter().filter(|_| with_lost) {
            counted.entry(key).or_insert(Counted::Unread);
        }
        counted
    }
}

/// Counters that are read together: those of one device at one place.
type CounterGroup = (Option<String>, CounterPlace);

fn group(key: &CounterKey) -> CounterGroup {
    (key.device.clone(), key.place)
}

/// A counter that stood at so many times what it grew by was not cleared meanwhile: it would have had to count all of that
/// again, and stop just above it.
const STOOD: u64 = 8;

/// Doubts what grew on a device whose counters may all have been cleared, as by a driver that was loaded anew: one of them
/// fell, and none of its place went on from where it stood.
fn doubt(all: &mut BTreeMap<&CounterKey, Counted>) {
    let mut went_on: BTreeSet<CounterGroup> = BTreeSet::new();
    for (key, counted) in all.iter() {
        if let Counted::Grew { by: by @ 1.., to } = counted
            && (to - by) / STOOD >= *by
        {
            went_on.insert(group(key));
        }
    }
    let cleared: BTreeSet<Option<String>> = all
        .iter()
        .filter(|(_, counted)| matches!(counted, Counted::Fell { .. }))
        .filter(|(key, _)| !went_on.contains(&group(key)))
        .map(|(key, _)| key.device.clone())
        .collect();
    for (key, counted) in all.iter_mut() {
        if let Counted::Grew { by, .. } = *counted
            && cleared.contains(&key.device)
            && !went_on.contains(&group(key))
        {
            *counted = Counted::Doubted { by };
        }
    }
}

fn counted(key: &CounterKey, before: u64, now: u64) -> Counted {
    match (now.checked_sub(before), CounterMeaning::full_bits(key.place, &key.name, now)) {
        (Some(_), Some(bits)) => Counted::Stuck { bits },
        (Some(by), None) => Counted::Grew { by, to: now },
        (None, _) => Counted::Fell { from: before, to: now },
    }
}

/// The counter that a figure is a reading of.
fn counter(figure: &LogMeasurement) -> Option<(CounterKey, u64)> {
    if figure.tool != LogTool::Counters || figure.metric.subject != MetricSubject::Counter {
        return None;
    }
    let LogFigure::Count(value) = figure.figure else { return None };
    Some((key(&figure.conditions)?, value))
}

/// The counter that conditions are of.
fn key(conditions: &LogConditions) -> Option<CounterKey> {
    let text = |key: &str| match conditions.more.get(key) {
        Some(LogDetail::Text(text)) => Some(text.to_string()),
        _ => None,
    };
    let folder = text("folder");
    let (place, part) = match conditions.program.as_deref()? {
        "ethtool" => (CounterPlace::Ethtool, None),
        "rdma statistic" => (CounterPlace::HardwareCounters, text("port")),
        "prometheus" => (CounterPlace::Prometheus, text("labels")),
        "sysfs" => {
            let folder = folder?;
            let parts: Vec<&str> = folder.split('/').collect();
            match parts[..] {
                ["ports", port, "counters"] => (CounterPlace::PortCounters, Some(port.to_string())),
                ["ports", port, "hw_counters"] => (CounterPlace::HardwareCounters, Some(port.to_string())),
                ["statistics"] => (CounterPlace::NetStatistics, None),
                [block] if block.starts_with("pcie") => (CounterPlace::TlpCounters, Some(block.to_string())),
                _ => return None,
            }
        }
        _ => return None,
    };
    let device = conditions.device.as_deref().map(str::to_string);
    Some(CounterKey { place, device, part, name: text("counter")? })
}
