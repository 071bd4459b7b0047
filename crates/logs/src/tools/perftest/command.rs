//! A command line of perftest that stands above its output.

use super::head::Field;
use crate::decimal::Decimal;
use crate::measurement::LogFigure;
use crate::measurement::{LogConditions, LogDetail, LogOperation, LogSide, Scale, TrafficDirections};
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
    /// Conditions whose value cannot be read.
    pub(super) unread: Vec<Field>,
    /// Which payloads it asks for.
    pub(super) sizes: Option<Sizes>,
    /// Whether the server that it names is the machine that it runs on.
    pub(super) is_to_itself: bool,
    rate_limit: Option<Arc<str>>,
    rate_units: Option<Arc<str>>,
}

/// Payloads that a command asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sizes {
    /// Every power of two from 2 B to [`LARGEST`].
    All,
    /// So many bytes.
    One(u64),
}

/// The payload that a run of all sizes begins with, and the one that it ends with.
pub(super) const SMALLEST: u64 = 2;
pub(super) const LARGEST: u64 = 1 << 23;

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

/// Short options without a value.
const WITHOUT_VALUE: &str = "aFegzRvhbNVCHUOZPG";

/// Long options that take a value, of all versions, with the short one that says the same.
const LONG: &[(&str, char)] = &[
    ("aes_block_size", ' '),
    ("atomic_type", 'A'),
    ("bind_source_ip", ' '),
    ("burst_size", ' '),
    ("client_ip", ' '),
    ("client_port", ' '),
    ("congest_type", ' '),
    ("connection", 'c'),
    ("cpu_id", ' '),
    ("cq-mod", 'Q'),
    ("cqe_poll", ' '),
    ("credentials_path", ' '),
    ("cuda_mem_type", ' '),
    ("data_enc_key_app_path", ' '),
    ("data_enc_keys_number", ' '),
    ("dest_ip", 'J'),
    ("dest_mac", 'E'),
    ("dest_port", 'K'),
    ("dlid", ' '),
    ("duration", 'D'),
    ("ethertype", 'Y'),
    ("flow_label", ' '),
    ("flows", ' '),
    ("flows_burst", ' '),
    ("force-link", ' '),
    ("gid-index", 'x'),
    ("gpu_touch", ' '),
    ("hop_limit", 'L'),
    ("ib-dev", 'd'),
    ("ib-port", 'i'),
    ("inline_recv", ' '),
    ("inline_size", 'I'),
    ("iters", 'n'),
    ("kek_path", ' '),
    ("latency_gap", ' '),
    ("limit_bw", 'w'),
    ("limit_msgrate", 'y'),
    ("local_ip", ' '),
    ("local_mac", ' '),
    ("local_port", ' '),
    ("log_active_dci_streams", ' '),
    ("log_dci_streams", ' '),
    ("margin", 'f'),
    ("MGID", 'M'),
    ("mmap", ' '),
    ("mmap-offset", ' '),
    ("mtu", 'm'),
    ("numa_node", ' '),
    ("opencl_platform_id", ' '),
    ("out_json_file", ' '),
    ("output", ' '),
    ("outs", 'o'),
    ("payload_file_path", ' '),
    ("ph", ' '),
    ("pin_cores", ' '),
    ("pkey_index", ' '),
    ("port", 'p'),
    ("post_list", 'l'),
    ("qp", 'q'),
    ("qp-timeout", 'u'),
    ("rate_limit", ' '),
    ("rate_limit_type", ' '),
    ("rate_units", ' '),
    ("recv_post_list", ' '),
    ("remote_ip", ' '),
    ("remote_mac", ' '),
    ("remote_port", ' '),
    ("reply_every", ' '),
    ("report-counters", 'W'),
    ("retry_count", ' '),
    ("rx-depth", 'r'),
    ("server_ip", ' '),
    ("server_port", ' '),
    ("size", 's'),
    ("sl", 'S'),
    ("source_ip", 'j'),
    ("source_mac", 'B'),
    ("source_port", 'k'),
    ("tclass", ' '),
    ("tos", 'T'),
    ("tph_mem", ' '),
    ("tx-depth", 't'),
    ("typical_pkt_size", ' '),
    ("use_cuda", ' '),
    ("use_cuda_bus_id", ' '),
    ("use_hl", ' '),
    ("use_ib_dm_dmabuf", ' '),
    ("use_mlu", ' '),
    ("use_musa", ' '),
    ("use_musa_bus_id", ' '),
    ("use_neuron", ' '),
    ("use_opencl", ' '),
    ("use_rocm", ' '),
    ("vector", 'X'),
    ("verb_type", ' '),
    ("vlan_pcp", ' '),
    ("wait_destroy", ' '),
];

/// Long options without a value, of all versions.
const SWITCHES: &[(&str, char)] = &[
    ("aes_xts", ' '),
    ("all", 'a'),
    ("bidirectional", 'b'),
    ("client", 'P'),
    ("comm_rdma_cm", 'z'),
    ("connectionless", ' '),
    ("CPU-freq", 'F'),
    ("cpu_util", ' '),
    ("data_validation", ' '),
    ("data_validation_debug", ' '),
    ("disable_dynamic_polling", ' '),
    ("disable_fcs", ' '),
    ("disable_numa", ' '),
    ("disable_pcie_relaxed", ' '),
    ("dont_xchg_versions", ' '),
    ("dualport", 'O'),
    ("encrypt_on_tx", ' '),
    ("events", 'e'),
    ("help", 'h'),
    ("ipv6", ' '),
    ("ipv6-addr", ' '),
    ("mac_fwd", 'v'),
    ("mcg", 'g'),
    ("mr_per_qp", ' '),
    ("no_ddp", ' '),
    ("no_enhanced_reorder", ' '),
    ("no_lock", ' '),
    ("noPeak", 'N'),
    ("odp", ' '),
    ("out_json", ' '),
    ("perform_warm_up", ' '),
    ("promiscuous", ' '),
    ("raw_ipv6", ' '),
    ("raw_mcast", ' '),
    ("rdma_cm", 'R'),
    ("report-both", ' '),
    ("report-cycles", 'C'),
    ("report-histogram", 'H'),
    ("report-histogrm", 'H'),
    ("report-per-port", ' '),
    ("report-unsorted", 'U'),
    ("report_gbits", ' '),
    ("reversed", ' '),
    ("run_infinitely", ' '),
    ("send_with_imm", ' '),
    ("server", 'Z'),
    ("sig_before", ' '),
    ("sig_offload", ' '),
    ("sniffer", ' '),
    ("tcp", ' '),
    ("unsolicited_write", ' '),
    ("use-null-mr", ' '),
    ("use-srq", ' '),
    ("use_cuda_dmabuf", ' '),
    ("use_cuda_pcie_mapping", ' '),
    ("use_data_direct", ' '),
    ("use_exp", ' '),
    ("use_hugepages", ' '),
    ("use_mlu_dmabuf", ' '),
    ("use_musa_dmabuf", ' '),
    ("use_musa_pcie_mapping", ' '),
    ("use_neuron_dmabuf", ' '),
    ("use_null_mr", ' '),
    ("use_old_post_send", ' '),
    ("use_ooo", ' '),
    ("use_res_domain", ' '),
    ("use_rocm_dmabuf", ' '),
    ("use_rss", 'G'),
    ("version", 'V'),
    ("vlan_en", ' '),
    ("write_with_imm", ' '),
];

/// Where a payload may lie, as options `use_...` name it.
const MEMORIES: &[&str] = &["cuda", "musa", "rocm", "neuron", "hl", "mlu", "opencl", "ib_dm"];

/// A long option, the short one that says the same, and whether it takes a value, by its name or the start of it; nothing
/// where none begins so, or several that differ.
fn long_option(start: &str) -> Option<(&'static str, char, bool)> {
    let all = || {
        let with_value = LONG.iter().map(|(name, short)| (*name, *short, true));
        with_value.chain(SWITCHES.iter().map(|(name, short)| (*name, *short, false)))
    };
    let mut begun = all().filter(|(name, ..)| name.starts_with(start));
    all().find(|(name, ..)| *name == start).or_else(|| {
        let first = begun.next()?;
        let is_same = |other: (&str, char, bool)| first.1 != ' ' && (first.1, first.2) == (other.1, other.2);
        begun.all(is_same).then_some(first)
    })
}

/// The bytes of a size, which may be in units of 2^10 or 2^20.
fn size(value: &str) -> Option<u64> {
    let (digits, unit) = match value.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1 << 10),
        None => value.strip_suffix(['m', 'M']).map_or((value, 1), |digits| (digits, 1 << 20)),
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

/// The host that a prompt names, as in `root@node1:~$` and `[root@node1`.
fn host_of_prompt(word: &str) -> Option<&str> {
    let (_, behind) = word.split_once('@')?;
    let end =
        behind.find(|c: char| !c.is_ascii_alphanumeric() && c != '-' && c != '.').unwrap_or(behind.len());
    Some(&behind[..end]).filter(|host| !host.is_empty())
}

/// Whether a host is the one of the prompt, or whoever asks.
fn is_own_host(host: &str, own: Option<&str>) -> bool {
    let is_number = |host: &str| host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let short = |host: &str| -> String {
        let name = if is_number(host) { host } else { host.split('.').next().unwrap_or(host) };
        name.to_ascii_lowercase()
    };
    short(host) == "localhost"
        || host.starts_with("127.") && is_number(host)
        || host == "::1"
        || own.is_some_and(|own| short(own) == short(host))
}

/// Whether a command ends before a word.
fn is_end(word: &str) -> bool {
    // A host that stands for one, as in `<server>`, is no redirection.
    let redirected = word.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
    ["&", "|", ";", "&&", "||"].contains(&word) || redirected.starts_with('>') || word.starts_with('#')
}

impl Command {
    /// Whether a text has the name of a program as a word.
    pub(super) fn names_program(text: &str) -> bool {
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut words = text.split(|c| !is_letter(c));
        words.any(|word| PROGRAMS.iter().any(|(program, ..)| *program == word))
    }

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
            unread: Vec::new(),
            sizes: None,
            is_to_itself: false,
            rate_limit: None,
            rate_units: None,
        };
        // Quoted text has signs of its own, which are prompts as well.
        let is_shell = prompt.is_some_and(|at| {
            words[at].ends_with('$') || words[at].ends_with(['#', '%']) && words[at].len() > 1
        });
        let host = command.options(&words[at + 1..], (prompt.is_some(), is_shell))?;
        let own = prompt.and_then(|prompt| words[..=prompt].iter().find_map(|word| host_of_prompt(word)));
        command.is_to_itself = host.is_some_and(|host| is_own_host(host, own));
        Some(command)
    }

    /// Reads the options, and the server that they name; nothing where they are prose. What cannot be read is left out.
    fn options<'w>(
        &mut self,
        words: &[&'w str],
        (is_prompted, is_shell): (bool, bool),
    ) -> Option<Option<&'w str>> {
        let mut host = None;
        let (mut hosts, mut options, mut is_sure) = (0, 0, true);
        let mut words = words.iter().copied().peekable();
        while let Some(word) = words.next() {
            if is_end(word) {
                break;
            }
            let mut is_unknown = false;
            if let Some(long) = word.strip_prefix("--") {
                options += 1;
                let (name, given) =
                    long.split_once('=').map_or((long, None), |(name, value)| (name, Some(value)));
                match long_option(name) {
                    // Some versions give it no number, so that a host may follow it.
                    Some((name @ "use_cuda", ..)) => {
                        if given.is_none() {
                            words.next_if(|word| word.bytes().all(|byte| byte.is_ascii_digit()));
                        }
                        self.long(name, "");
                    }
                    Some((name, short, true)) => match given.or_else(|| words.next()) {
                        Some(value) => {
                            self.option(short, value);
                            self.long(name, value);
                        }
                        None => is_sure = false,
                    },
                    Some((name, short, false)) => {
                        self.switch(short);
                        self.long(name, "");
                    }
                    None if given.is_some() => {}
                    // Dashes alone name no option that could have a value.
                    None if !name.starts_with(|c: char| c.is_ascii_alphabetic()) => is_sure = false,
                    None => is_unknown = true,
                }
            } else if let Some(short) = word.strip_prefix('-').filter(|short| !short.is_empty()) {
                options += 1;
                for (at, letter) in short.char_indices() {
                    if !letter.is_ascii_alphabetic() {
                        is_sure = false;
                        break;
                    }
                    let rest = &short[at + 1..];
                    if WITH_VALUE.contains(letter) {
                        match Some(rest).filter(|rest| !rest.is_empty()).or_else(|| words.next()) {
                            Some(value) => self.option(letter, value),
                            None => is_sure = false,
                        }
                        break;
                    }
                    if !WITHOUT_VALUE.contains(letter) {
                        (is_sure, is_unknown) = (false, rest.is_empty());
                        break;
                    }
                    self.switch(letter);
                }
            } else {
                hosts += 1;
                host = Some(word);
            }
            // What follows an option that nobody knows may be its value.
            if is_unknown {
                is_sure = false;
                words.next_if(|word| !word.starts_with('-') && !is_end(word));
            }
        }
        if let Some(rate) = &self.rate_limit {
            let text = self.rate_units.as_ref().map_or(rate.to_string(), |units| format!("{rate} {units}"));
            self.conditions.set_text("rate_limit", &text);
        }
        // What a shell was told is a command, also where not all of it is understood: what follows is none of the one before.
        let is_command = is_shell || hosts <= 1 && (is_prompted || options > 0 || hosts == 0);
        if is_command && is_sure && hosts <= 1 {
            self.side = Some(if hosts == 1 { LogSide::Requester } else { LogSide::Responder });
        }
        // Raw Ethernet names its side by an option.
        if self.program.starts_with("raw_") {
            self.side = None;
        }
        is_command.then_some(host.filter(|_| hosts == 1))
    }

    fn switch(&mut self, letter: char) {
        match letter {
            'a' => self.sizes = Some(Sizes::All),
            'b' => self.directions = self.directions.map(|_| TrafficDirections::Both),
            'C' => self.cycles = true,
            'e' => self.conditions.set("completion_events", LogDetail::Switch(true)),
            'O' => self.conditions.set("dual_port", LogDetail::Switch(true)),
            _ => {}
        }
    }

    /// Takes what no short option says.
    fn long(&mut self, name: &str, value: &str) {
        let of_memory = |memory: &&&str| {
            let kind = name.strip_prefix("use_").and_then(|own| own.strip_prefix(**memory));
            kind.is_some_and(|kind| kind.is_empty() || kind.starts_with('_'))
        };
        let memory = match name {
            "odp" => {
                self.conditions.set("on_demand_paging", LogDetail::Switch(true));
                None
            }
            "rate_limit" => {
                self.rate_limit = Some(value.into());
                None
            }
            "rate_units" => {
                self.rate_units = Some(value.into());
                None
            }
            "mmap" => Some("mmap"),
            "use-null-mr" | "use_null_mr" => Some("null_mr"),
            _ => MEMORIES.iter().find(of_memory).copied(),
        };
        if let Some(memory) = memory {
            self.conditions.set_text("payload_memory", memory);
        }
    }

    fn option(&mut self, letter: char, value: &str) {
        let number = Decimal::read(value);
        let whole = number.and_then(Decimal::whole);
        let own = &mut self.conditions;
        let field = match letter {
            'q' => Some(Field::QueuePairs),
            't' => Some(Field::TxDepth),
            'r' => Some(Field::RxDepth),
            'l' => Some(Field::PostList),
            'Q' => Some(Field::CqModeration),
            'o' => Some(Field::OutstandingReads),
            'I' => Some(Field::Inline),
            'm' => Some(Field::Mtu),
            _ => None,
        };
        self.unread.extend(field.filter(|_| whole.is_none()));
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
            'o' => own.outstanding_reads = whole,
            'I' => own.inline = whole.map(Bytes::new),
            'm' => own.mtu = whole.map(Bytes::new),
            // A run of all sizes goes before one of them.
            's' if self.sizes != Some(Sizes::All) => self.sizes = size(value).map(Sizes::One),
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
