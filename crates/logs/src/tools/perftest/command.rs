//! A command line of perftest that stands above its output.

use crate::decimal::Decimal;
use crate::measurement::LogFigure;
use crate::measurement::{LogConditions, LogOperation, LogSide, Scale, TrafficDirections};
use offpath_quantity::{Bytes, Time};
use std::sync::Arc;

/// What a command line says.
#[derive(Clone, Debug)]
pub(super) struct Command {
    pub(super) program: Arc<str>,
    pub(super) operation: Option<LogOperation>,
    pub(super) directions: Option<TrafficDirections>,
    pub(super) side: Option<LogSide>,
    pub(super) duration: Option<Time>,
    /// Whether times are printed in cycles.
    pub(super) cycles: bool,
    pub(super) conditions: LogConditions,
}

/// Programs, what they do, and whether they measure bandwidth.
const PROGRAMS: &[(&str, LogOperation, bool)] = &[
    ("ib_write_bw", LogOperation::Write, true),
    ("ib_read_bw", LogOperation::Read, true),
    ("ib_send_bw", LogOperation::Send, true),
    ("ib_atomic_bw", LogOperation::Atomic, true),
    ("ib_write_lat", LogOperation::Write, false),
    ("ib_read_lat", LogOperation::Read, false),
    ("ib_send_lat", LogOperation::Send, false),
    ("ib_atomic_lat", LogOperation::Atomic, false),
    ("raw_ethernet_bw", LogOperation::Send, true),
    ("raw_ethernet_lat", LogOperation::Send, false),
    ("raw_ethernet_burst_lat", LogOperation::Send, false),
];

/// Words that may stand before a program, and what follows them.
const BEFORE: &[&str] = &["sudo", "taskset", "numactl", "time", "timeout", "stdbuf", "env", "nohup", "exec"];

/// Short options that take a value.
const WITH_VALUE: &str = "AcdDfiIlLmMnopqQrsStTuwWxXyBEJjKk";

/// Long options that take a value, with the short one that says the same.
const LONG: &[(&str, char)] = &[
    ("duration", 'D'),
    ("qp", 'q'),
    ("tx-depth", 't'),
    ("rx-depth", 'r'),
    ("size", 's'),
    ("iters", 'n'),
    ("mtu", 'm'),
    ("connection", 'c'),
    ("ib-dev", 'd'),
    ("ib-port", 'i'),
    ("gid-index", 'x'),
    ("inline_size", 'I'),
    ("cq-mod", 'Q'),
    ("post_list", 'l'),
    ("port", 'p'),
    ("sl", 'S'),
    ("tos", 'T'),
    ("outs", 'o'),
    ("margin", 'f'),
    ("qp-timeout", 'u'),
    ("atomic_type", 'A'),
];

/// Long options without a value.
const SWITCHES: &[(&str, char)] = &[
    ("all", 'a'),
    ("bidirectional", 'b'),
    ("report-cycles", 'C'),
    ("CPU-freq", 'F'),
    ("rdma_cm", 'R'),
    ("comm_rdma_cm", 'z'),
    ("report_gbits", ' '),
    ("report_gbit", ' '),
    ("noPeak", 'N'),
    ("events", 'e'),
    ("run_infinitely", ' '),
    ("report-both", ' '),
    ("out_json", ' '),
    ("report-histogram", 'H'),
    ("report-unsorted", 'U'),
    ("dualport", 'O'),
    ("use_old_post_send", ' '),
    ("use-srq", ' '),
    ("perform_warm_up", ' '),
    ("disable_pcie_relaxed", ' '),
    ("cpu_util", ' '),
];

impl Command {
    /// Reads a command line behind a prompt or at the start of a line; nothing where it is none.
    pub(super) fn read(text: &str) -> Option<Command> {
        if !text.contains("ib_") && !text.contains("raw_ethernet_") || text.len() > 2_000 {
            return None;
        }
        let words: Vec<&str> = text.split_ascii_whitespace().collect();
        let name = |word: &str| {
            let name = word.rsplit('/').next().unwrap_or(word);
            PROGRAMS.iter().find(|(program, ..)| *program == name)
        };
        let (at, (program, operation, is_bandwidth)) =
            words.iter().enumerate().find_map(|(at, word)| Some((at, name(word)?)))?;
        // The last prompt, and behind it nothing but what starts a program.
        let prompt = words[..at].iter().rposition(|word| word.ends_with(['$', '#', '%', '>', '+']));
        let before = &words[prompt.map_or(0, |prompt| prompt + 1)..at];
        if before.first().is_some_and(|word| !BEFORE.contains(word) && !word.contains('=')) {
            return None;
        }
        let mut command = Command {
            program: (*program).into(),
            operation: Some(*operation),
            directions: is_bandwidth.then_some(TrafficDirections::One),
            side: None,
            duration: None,
            cycles: false,
            conditions: LogConditions::default(),
        };
        command.options(&words[at + 1..], prompt.is_some())?;
        Some(command)
    }

    /// Reads the options; nothing where they are prose.
    fn options(&mut self, words: &[&str], prompted: bool) -> Option<()> {
        let (mut hosts, mut options, mut is_sure) = (0, 0, true);
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if ["&", "|", ";", "&&", "||"].contains(&word) || word.contains('>') {
                break;
            }
            if let Some(long) = word.strip_prefix("--") {
                options += 1;
                let (name, value) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                if let Some((_, short)) = LONG.iter().find(|(own, _)| *own == name) {
                    let value = value.or_else(|| words.next())?;
                    self.option(*short, value);
                } else if let Some((_, short)) = SWITCHES.iter().find(|(own, _)| *own == name) {
                    self.switch(*short);
                } else if value.is_none() {
                    // An unknown option may have the next word as its value.
                    is_sure = false;
                }
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                options += 1;
                for (at, letter) in short.char_indices() {
                    if !letter.is_ascii_alphabetic() {
                        return None;
                    }
                    if WITH_VALUE.contains(letter) {
                        let rest = &short[at + 1..];
                        let value = if rest.is_empty() { words.next()? } else { rest };
                        self.option(letter, value);
                        break;
                    }
                    self.switch(letter);
                }
            } else {
                hosts += 1;
            }
        }
        let is_command = hosts <= 1 && (prompted || options > 0 || hosts == 0);
        if is_command && is_sure {
            self.side = Some(if hosts == 1 { LogSide::Requester } else { LogSide::Responder });
        }
        // Raw Ethernet names its side by an option.
        if self.program.starts_with("raw_") {
            self.side = None;
        }
        is_command.then_some(())
    }

    fn switch(&mut self, letter: char) {
        match letter {
            'b' => self.directions = self.directions.map(|_| TrafficDirections::Both),
            'C' => self.cycles = true,
            _ => {}
        }
    }

    fn option(&mut self, letter: char, value: &str) {
        let number = Decimal::read(value);
        let whole = number.and_then(Decimal::whole);
        let own = &mut self.conditions;
        match letter {
            'D' => {
                let seconds = number.and_then(|number| Scale::SECONDS.figure(number));
                self.duration = seconds.and_then(|(figure, _)| match figure {
                    LogFigure::Time(time) => Some(time),
                    _ => None,
                });
            }
            'q' => own.queue_pairs = whole,
            't' => own.tx_depth = whole,
            'r' => own.rx_depth = whole,
            'l' => own.post_list = whole,
            'Q' => own.cq_moderation = whole,
            'I' => own.inline = whole.map(Bytes::new),
            'm' => own.mtu = whole.map(Bytes::new),
            'x' => own.gid_index = whole,
            'c' => own.connection = Some(value.into()),
            'd' => own.device = Some(value.into()),
            'A' => {
                self.operation = match value {
                    "CMP_AND_SWAP" => Some(LogOperation::CompareAndSwap),
                    "FETCH_AND_ADD" => Some(LogOperation::FetchAndAdd),
                    _ => self.operation,
                }
            }
            _ => {}
        }
    }
}
