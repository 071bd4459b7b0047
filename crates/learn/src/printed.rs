//! Rows of logs as they are printed, and which of them say again what another one says: a copy, or what the other side of the run prints.
//! A run that was repeated says something new, whatever single figures it has in common with the one before.

use crate::points::LeftAside;
use offpath_logs::{
    LogConditions, LogFigure, LogMeasurement, LogMetric, LogSide, MetricStatistic, MetricSubject,
    QueuePairNames,
};
use offpath_quantity::Bytes;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// How many conditions are looked at for a row's: as many as a sweep has payloads.
const RECENT: usize = 32;

/// A row of a log.
#[derive(Clone, Debug)]
pub(crate) struct PrintedRow {
    /// The log.
    pub file: Arc<str>,
    /// Its first line.
    pub line: u64,
    /// Without what the ends call the queue pairs: these are no conditions of a run.
    pub conditions: Arc<LogConditions>,
    /// Its number in the log.
    number: u64,
    /// The place of the first row of its table: rows on lines that follow each other, each of which was measured by itself.
    table: usize,
    names: Option<QueuePairNames>,
    figures: Vec<(LogMetric, LogFigure)>,
}

/// A figure as what can be sorted: bits of its value, and its unit.
type FigureKey = (LogMetric, u64, &'static str);

impl PrintedRow {
    /// Where it stands: its file and first line.
    pub fn at(&self) -> (&str, u64) {
        (&self.file, self.line)
    }

    fn is_of_responder(&self) -> bool {
        self.conditions.side == Some(LogSide::Responder)
    }

    /// The figures of which `wanted` is so.
    fn key(&self, wanted: impl Fn(&LogMetric) -> bool) -> Vec<FigureKey> {
        let own = self.figures.iter().filter(|(metric, _)| wanted(metric));
        own.map(|(metric, figure)| (*metric, figure.value().to_bits(), figure.unit())).collect()
    }

    /// What both sides of a run print alike: the rate, whose unit no option changes, and else all.
    fn key_of_both_sides(&self) -> (Option<Bytes>, Vec<FigureKey>) {
        let of_rate = self.key(|metric| {
            (metric.subject, metric.statistic) == (MetricSubject::OperationRate, MetricStatistic::Mean)
        });
        let figures = if of_rate.is_empty() { self.key(|_| true) } else { of_rate };
        (self.conditions.payload, figures)
    }

    /// Whether all that both print is the same.
    fn is_copy_of(&self, other: &PrintedRow) -> bool {
        self.table != other.table
            && self.names == other.names
            && self.is_of_responder() == other.is_of_responder()
            && (Arc::ptr_eq(&self.conditions, &other.conditions) || {
                let as_read = |own: &PrintedRow| LogConditions {
                    program: None,
                    side: None,
                    ..(*own.conditions).clone()
                };
                as_read(self) == as_read(other)
            })
    }

    /// Whether it may be what the other side prints of the run of `other`: whatever both state of the run is the same, and they call
    /// their queue pairs as the other side does.
    fn is_other_side_of(&self, other: &PrintedRow) -> bool {
        fn agree<T: PartialEq>(one: &Option<T>, other: &Option<T>) -> bool {
            one.as_ref().zip(other.as_ref()).is_none_or(|(one, other)| one == other)
        }
        let (one, two) = (&self.conditions, &other.conditions);
        self.file != other.file
            && agree(&self.names.map(QueuePairNames::crosswise), &other.names)
            && agree(&one.operation, &two.operation)
            && agree(&one.queue_pairs, &two.queue_pairs)
            && agree(&one.tx_depth, &two.tx_depth)
            && agree(&one.post_list, &two.post_list)
            && agree(&one.cq_moderation, &two.cq_moderation)
            && agree(&one.inline, &two.inline)
            && agree(&one.mtu, &two.mtu)
            && agree(&one.directions, &two.directions)
            && agree(&one.connection, &two.connection)
            && agree(&one.iterations, &two.iterations)
    }
}

/// Rows of logs, in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct PrintedRows {
    rows: Vec<PrintedRow>,
    /// The line of the last figure.
    last_line: u64,
    /// Conditions of the last rows, which repeated sweeps share.
    recent: VecDeque<Arc<LogConditions>>,
}

impl PrintedRows {
    /// Takes a figure; the place of its row.
    pub fn add(&mut self, file: &str, figure: &LogMeasurement) -> usize {
        // Of a log that is read twice a row has each figure once more.
        let is_of = |row: &&mut PrintedRow| {
            row.number == figure.row
                && *row.file == *file
                && row.figures.iter().all(|(metric, _)| *metric != figure.metric)
        };
        if let Some(row) = self.rows.last_mut().filter(is_of) {
            row.figures.push((figure.metric, figure.figure));
            self.last_line = figure.line;
            return self.rows.len() - 1;
        }
        let mut conditions = figure.conditions.clone();
        let names = conditions.queue_pair_names;
        if names.is_some() {
            Arc::make_mut(&mut conditions).queue_pair_names = None;
        }
        let known = self.rows.last().filter(|row| *row.file == *file);
        let goes_on = known.filter(|_| figure.line == self.last_line + 1);
        let table = goes_on.map_or(self.rows.len(), |row| row.table);
        let file = known.map_or_else(|| file.into(), |row| row.file.clone());
        let conditions = self.shared(conditions);
        self.rows.push(PrintedRow {
            file,
            line: figure.line,
            conditions,
            number: figure.row,
            table,
            names,
            figures: vec![(figure.metric, figure.figure)],
        });
        self.last_line = figure.line;
        self.rows.len() - 1
    }

    /// The same conditions, as those of a row before where it had them.
    fn shared(&mut self, own: Arc<LogConditions>) -> Arc<LogConditions> {
        if let Some(known) = self.recent.iter().find(|known| **known == own) {
            return known.clone();
        }
        if self.recent.len() >= RECENT {
            self.recent.pop_front();
        }
        self.recent.push_back(own.clone());
        own
    }

    /// The row at a place.
    pub fn row(&self, place: usize) -> &PrintedRow {
        &self.rows[place]
    }

    /// Adds a row to those that are alike, where none of its table is there.
    fn note(&self, place: usize, alike: &mut Vec<usize>) {
        let is_known = alike.last().is_some_and(|last| self.row(*last).table == self.row(place).table);
        if !is_known {
            alike.push(place);
        }
    }

    /// Which of the rows at some places say again what another of them says, and why each counts no more.
    pub fn repeated(&self, places: BTreeSet<usize>) -> BTreeMap<usize, String> {
        let mut known: BTreeMap<(Option<QueuePairNames>, Vec<FigureKey>), Vec<usize>> = BTreeMap::new();
        // Each copy with what it is one of.
        let mut copies: BTreeMap<usize, usize> = BTreeMap::new();
        for place in places.iter().copied() {
            let row = self.row(place);
            let alike = known.entry((row.names, row.key(|_| true))).or_default();
            match alike.iter().find(|earlier| row.is_copy_of(self.row(**earlier))) {
                Some(earlier) => _ = copies.insert(place, *earlier),
                None => self.note(place, alike),
            }
        }
        let rest = || places.iter().copied().filter(|place| !copies.contains_key(place));
        let mut of_requesters: BTreeMap<(Option<Bytes>, Vec<FigureKey>), Vec<usize>> = BTreeMap::new();
        for place in rest().filter(|place| !self.row(*place).is_of_responder()) {
            self.note(place, of_requesters.entry(self.row(place).key_of_both_sides()).or_default());
        }
        let is_other_side = |place: &usize| {
            let row = self.row(*place);
            let alike = || of_requesters.get(&row.key_of_both_sides()).into_iter().flatten();
            row.is_of_responder() && alike().any(|other| row.is_other_side_of(self.row(*other)))
        };
        let of_other_side = rest().filter(is_other_side).map(|place| {
            (place, "the other side of the run prints the same figures, which count once".to_string())
        });
        let mut said: BTreeMap<usize, String> = of_other_side.collect();
        // Files of which a row is no copy, or copies are of several other files.
        let mut sources: BTreeMap<&str, BTreeSet<Option<&str>>> = BTreeMap::new();
        for place in places.iter().copied() {
            let file = &*self.row(place).file;
            let source = copies.get(&place).map(|earlier| &*self.row(*earlier).file);
            sources.entry(file).or_default().insert(source.filter(|source| *source != file));
        }
        for (place, earlier) in &copies {
            let (file, earlier) = (&*self.row(*place).file, &*self.row(*earlier).file);
            let why = match sources[file].len() {
                1 if file != earlier => format!("all its rows stand in {earlier}, too, and count once"),
                _ if file != earlier => {
                    format!("the same row of the same run stands in {earlier}, and counts once")
                }
                _ => "the same row of the same run stands before, and counts once".to_string(),
            };
            said.insert(*place, why);
        }
        said
    }
}

/// Rows that are left aside, by file and reason, in the order of these.
#[derive(Clone, Debug, Default)]
pub(crate) struct Aside {
    found: BTreeMap<(String, String), (LeftAside, usize)>,
}

impl Aside {
    /// A row, by its place, which counts once for a reason.
    pub fn add(&mut self, place: usize, (file, line): (&str, u64), why: &str) {
        let file = file.to_string();
        let entry = self.found.entry((file.clone(), why.to_string()));
        let new = || (LeftAside { file, line, rows: 0, why: why.to_string() }, usize::MAX);
        let (known, last) = entry.or_insert_with(new);
        known.rows += u64::from(*last != place);
        *last = place;
    }

    /// All of them.
    pub fn into_rows(self) -> Vec<LeftAside> {
        self.found.into_values().map(|(found, _)| found).collect()
    }
}
