//! A log and what is read of it.

#![allow(dead_code, reason = "each test uses a part of it")]

use offpath_logs::{LineAccount, LogItem, LogMeasurement, LogReader, LogRemark, RemarkKind};

/// What a log holds.
pub struct Found {
    pub figures: Vec<LogMeasurement>,
    pub remarks: Vec<LogRemark>,
    pub account: LineAccount,
    pub open_tables: u64,
}

/// Reads a log, and holds that each of its lines is accounted for once.
pub fn read(log: &str) -> Found {
    read_bytes(log.as_bytes())
}

pub fn read_bytes(log: &[u8]) -> Found {
    let mut reader = LogReader::new(log);
    let (mut figures, mut remarks) = (Vec::new(), Vec::new());
    for item in reader.by_ref() {
        match item.expect("memory can be read") {
            LogItem::Measurement(figure) => figures.push(figure),
            LogItem::Remark(remark) => remarks.push(remark),
        }
    }
    let (account, open_tables) = (reader.account(), reader.open_tables());
    let lines = log.iter().filter(|byte| **byte == b'\n').count() as u64;
    let last = u64::from(!log.is_empty() && !log.ends_with(b"\n"));
    assert_eq!(account.lines(), lines + last, "{account:?}");
    let unknown: u64 =
        remarks.iter().filter(|remark| remark.kind == RemarkKind::Unknown).map(|remark| remark.lines).sum();
    assert!(unknown >= account.unknown, "{} of {} unknown lines are reported", unknown, account.unknown);
    for figure in &figures {
        assert!((1..=account.lines()).contains(&figure.line), "{figure:?}");
    }
    Found { figures, remarks, account, open_tables }
}

impl Found {
    /// The figures of a key, by line.
    pub fn of(&self, key: &str) -> Vec<(u64, f64)> {
        let own = self.figures.iter().filter(|figure| figure.key() == key);
        own.map(|figure| (figure.line, figure.figure.value())).collect()
    }

    /// The only figure of a key.
    pub fn only(&self, key: &str) -> &LogMeasurement {
        let all: Vec<&LogMeasurement> = self.figures.iter().filter(|figure| figure.key() == key).collect();
        assert_eq!(all.len(), 1, "`{key}`: {:?}", self.keys());
        all[0]
    }

    /// The value of the only figure of a key.
    pub fn value(&self, key: &str) -> f64 {
        self.only(key).figure.value()
    }

    /// The keys of all figures, in their order.
    pub fn keys(&self) -> Vec<String> {
        self.figures.iter().map(LogMeasurement::key).collect()
    }

    /// Lines that a remark of a kind is about.
    pub fn remarked(&self, kind: RemarkKind) -> Vec<u64> {
        self.remarks.iter().filter(|remark| remark.kind == kind).map(|remark| remark.line).collect()
    }

    /// Holds that every line was understood; that a table lacks its last line is no line's.
    pub fn whole(self) -> Found {
        let of_lines = |remark: &&LogRemark| remark.kind != RemarkKind::Unended;
        assert_eq!(self.remarks.iter().find(of_lines), None, "nothing is remarked");
        assert_eq!(self.account.unknown, 0);
        self
    }
}
