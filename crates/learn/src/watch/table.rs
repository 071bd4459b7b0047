//! Which counter speaks of what, and what it counts exactly: the one table of `watch`.

/// Where a counter is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CounterPlace {
    /// `/sys/class/infiniband/DEVICE/ports/PORT/counters`.
    PortCounters,
    /// `/sys/class/infiniband/DEVICE/ports/PORT/hw_counters`, and `rdma statistic`.
    HardwareCounters,
    /// `ethtool -S`.
    Ethtool,
    /// `/sys/class/net/DEVICE/statistics`.
    NetStatistics,
    /// `/sys/class/hwmon/hwmonN/pcieN` of a card's own processors.
    TlpCounters,
    /// Prometheus text.
    Prometheus,
}

impl CounterPlace {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            CounterPlace::PortCounters => "counters",
            CounterPlace::HardwareCounters => "hw_counters",
            CounterPlace::Ethtool => "ethtool",
            CounterPlace::NetStatistics => "net-statistics",
            CounterPlace::TlpCounters => "hwmon-pcie",
            CounterPlace::Prometheus => "prometheus",
        }
    }
}

/// Whose traffic a counter of a port counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterScope {
    /// One function of the card: what its own queue pairs send and receive, inside the card too.
    Function,
    /// The physical port: all functions of the card, and nothing that stays inside it.
    Port,
}

/// Transaction layer packets, seen from the processors that they go to or come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TlpKind {
    /// Writes into the processors' memory.
    InboundWrites,
    /// Requests to read it.
    InboundReads,
    /// What is read of it.
    OutboundCompletions,
}

/// Requests that queue pairs of a function serve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServedVerb {
    /// READ.
    Read,
    /// WRITE.
    Write,
    /// Compare-and-swap and fetch-and-add.
    Atomic,
}

/// What a healthy run has none of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterTrouble {
    /// Packets were lost, or overtook one another.
    Loss,
    /// A receiver was not ready.
    SlowReceiver,
    /// Senders were held back.
    Congestion,
    /// Packets were damaged.
    Broken,
}

impl CounterTrouble {
    /// What to look at next.
    pub fn next(self) -> &'static str {
        match self {
            CounterTrouble::Loss => {
                "packets are lost or overtake one another: pause frames or congestion marks on the switch's ports, cables, `ethtool -S`"
            }
            CounterTrouble::SlowReceiver => {
                "the receiver posts too few receives or is too slow: more of them, `--rx-depth` of a benchmark"
            }
            CounterTrouble::Congestion => {
                "the network holds senders back: congestion control, an oversubscribed switch, several senders at one port"
            }
            CounterTrouble::Broken => "a cable, a transceiver or a port: `mlxlink -d DEVICE`, `ethtool -m`",
        }
    }

    /// Whether something was lost or had to come again, so that no rate makes the run a good one. A port that is full holds
    /// senders back and loses nothing.
    pub fn loses(self) -> bool {
        self != CounterTrouble::Congestion
    }
}

/// What a counter speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpeaksOf {
    /// A direction of a port.
    Port {
        /// Whether towards the card.
        inbound: bool,
        /// Whether bytes are counted; else packets.
        bytes: bool,
        /// Of whom.
        scope: CounterScope,
    },
    /// TLPs between the NIC and the card's own processors.
    Tlps {
        /// Which.
        kind: TlpKind,
        /// Whether bytes are counted; else TLPs.
        bytes: bool,
    },
    /// Requests that reach the endpoint.
    Requests(ServedVerb),
    /// What a healthy run has none of.
    Trouble(CounterTrouble),
    /// Nothing of the plan, and why.
    Nothing(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterMeaning {
    /// Its name; `*` stands for one digit.
    pub name: &'static str,
    /// How node_exporter calls it in Prometheus text, between `node_infiniband_` and `_total`.
    pub exported: Option<&'static str>,
    /// Where a counter of that name means this.
    pub places: &'static [CounterPlace],
    /// What one count is worth, in bytes, packets or requests.
    pub worth: u64,
    /// What it speaks of.
    pub speaks_of: SpeaksOf,
    /// What it counts.
    pub counts: &'static str,
    /// How many bits it has, at whose greatest number it stops.
    pub bits: u32,
}

/// How node_exporter's counters of RDMA devices begin.
const EXPORTED: &str = "node_infiniband_";

/// A counter of a port has so many bits where no row says otherwise: those that may have more go on past them.
const PORT_COUNTER_BITS: u32 = 32;

/// Where counters of ports stop that have so many bits.
pub(super) const fn most_of(bits: u32) -> u64 {
    (1 << bits) - 1
}

impl CounterMeaning {
    /// The bits that a counter of a port has of which it stands at the greatest number, where it stops.
    pub(super) fn full_bits(place: CounterPlace, name: &str, value: u64) -> Option<u32> {
        let own = CounterMeaning::of(place, name);
        let is_port = match place {
            CounterPlace::Prometheus => {
                own.is_some_and(|row| row.places.contains(&CounterPlace::PortCounters))
            }
            _ => place == CounterPlace::PortCounters,
        };
        if !is_port {
            return None;
        }
        // What is exported in bytes was counted in words.
        let unit = own.map_or(1, |row| row.worth / row.worth_at(place));
        let bits = own.map(|row| row.bits);
        bits.into_iter()
            .chain([PORT_COUNTER_BITS])
            .find(|bits| most_of(*bits).checked_mul(unit) == Some(value))
    }

    /// The same row of a counter of so many bits.
    const fn of_bits(self, bits: u32) -> CounterMeaning {
        CounterMeaning { bits, ..self }
    }

    /// The same row of a counter that node_exporter has by this name.
    const fn exported(self, name: &'static str) -> CounterMeaning {
        CounterMeaning { exported: Some(name), ..self }
    }

    /// What one count is worth where it is read so: Prometheus text has bytes.
    pub fn worth_at(&self, place: CounterPlace) -> u64 {
        if place == CounterPlace::Prometheus { 1 } else { self.worth }
    }

    /// The row of a counter; none where no row has it.
    pub fn of(place: CounterPlace, name: &str) -> Option<&'static CounterMeaning> {
        if place == CounterPlace::Prometheus {
            let own = name.strip_prefix(EXPORTED)?.strip_suffix("_total")?;
            return COUNTERS.iter().find(|row| row.exported == Some(own));
        }
        COUNTERS.iter().find(|row| row.places.contains(&place) && row.is_called(name))
    }

    /// Whether what a counter of this name counts is the card's or its port's, so that errors by the name are no healthy
    /// run's. The kernel drops packets of its own for many reasons, in its own statistics and in rings that it reads.
    pub(super) fn is_of_card(place: CounterPlace, name: &str) -> bool {
        match place {
            CounterPlace::PortCounters | CounterPlace::HardwareCounters => true,
            CounterPlace::Ethtool => {
                name.ends_with("_phy") || name.contains("x_prio") || name.contains("pause_storm")
            }
            CounterPlace::Prometheus => name.starts_with(EXPORTED),
            CounterPlace::NetStatistics | CounterPlace::TlpCounters => false,
        }
    }

    /// Whether a counter that no row has counts errors by its name.
    pub fn is_ominous(name: &str) -> bool {
        const WORDS: &[&str] = &[
            "err",
            "drop",
            "discard",
            "timeout",
            "retr",
            "overrun",
            "uncorrect",
            "nak",
            "lost",
            "out_of_",
            "duplic",
            "oversize",
            "storm",
            "critical",
        ];
        let small = name.to_ascii_lowercase();
        WORDS.iter().any(|word| small.contains(word))
    }

    fn is_called(&self, name: &str) -> bool {
        match self.name.split_once('*') {
            None => self.name == name,
            Some((before, after)) => {
                let digit = name.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
                digit.is_some_and(|digit| digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit()))
            }
        }
    }

    /// The unit of its rate as the end of a key.
    pub fn unit(&self) -> &'static str {
        match self.speaks_of {
            SpeaksOf::Port { bytes: true, .. } | SpeaksOf::Tlps { bytes: true, .. } => "bytes_per_s",
            SpeaksOf::Port { .. } => "packets_per_s",
            SpeaksOf::Tlps { .. } => "tlps_per_s",
            SpeaksOf::Requests(_) => "requests_per_s",
            SpeaksOf::Trouble(_) | SpeaksOf::Nothing(_) => "counts_per_s",
        }
    }
}

const IN: bool = true;
const OUT: bool = false;

const fn port(inbound: bool, bytes: bool, scope: CounterScope) -> SpeaksOf {
    SpeaksOf::Port { inbound, bytes, scope }
}

const fn row(
    name: &'static str,
    places: &'static [CounterPlace],
    worth: u64,
    speaks_of: SpeaksOf,
    counts: &'static str,
) -> CounterMeaning {
    CounterMeaning { name, exported: None, places, worth, speaks_of, counts, bits: PORT_COUNTER_BITS }
}

const WORDS: &str = "RDMA of one function, payload and headers, in words of 4 B and in Prometheus text in bytes; of InfiniBand \
     from LRH to ICRC, of RoCE the Ethernet frame";
const FUNCTION_BYTES: &str = "RDMA of one function, payload and headers";
const FUNCTION_PACKETS: &str = "RDMA packets of one function, requests and acknowledgements among them";
const PORT_BYTES: &str = "frames of all functions and of the kernel, with Ethernet headers";
const PORT_PACKETS: &str = "frames of all functions and of the kernel";
const KERNEL: &str = "traffic of the kernel's own network stack: RDMA passes it by";
const OWN_ACCESSES: &str = "the processors' own accesses to devices, doorbells among them: the model has their time and not their TLPs";
const ENDED: &str = "what is dropped with a queue pair, as when a program ends";
const NOT_COUNTED: &str = "registers that the vendor's header calls unsupported";

use CounterPlace::{Ethtool, HardwareCounters, NetStatistics, PortCounters, TlpCounters};
use CounterScope::{Function, Port};

/// Every counter that `watch` knows.
pub const COUNTERS: &[CounterMeaning] = &[
    row("port_xmit_data", &[PortCounters], 4, port(OUT, true, Function), WORDS)
        .exported("port_data_transmitted_bytes"),
    row("port_rcv_data", &[PortCounters], 4, port(IN, true, Function), WORDS)
        .exported("port_data_received_bytes"),
    row("port_xmit_packets", &[PortCounters], 1, port(OUT, false, Function), FUNCTION_PACKETS)
        .exported("port_packets_transmitted"),
    row("port_rcv_packets", &[PortCounters], 1, port(IN, false, Function), FUNCTION_PACKETS)
        .exported("port_packets_received"),
    row("tx_vport_rdma_unicast_bytes", &[Ethtool], 1, port(OUT, true, Function), FUNCTION_BYTES),
    row("rx_vport_rdma_unicast_bytes", &[Ethtool], 1, port(IN, true, Function), FUNCTION_BYTES),
    row("tx_vport_rdma_unicast_packets", &[Ethtool], 1, port(OUT, false, Function), FUNCTION_PACKETS),
    row("rx_vport_rdma_unicast_packets", &[Ethtool], 1, port(IN, false, Function), FUNCTION_PACKETS),
    row("rdma_tx_bytes", &[HardwareCounters], 1, port(OUT, true, Function), FUNCTION_BYTES),
    row("rdma_rx_bytes", &[HardwareCounters], 1, port(IN, true, Function), FUNCTION_BYTES),
    row("rdma_tx_packets", &[HardwareCounters], 1, port(OUT, false, Function), FUNCTION_PACKETS),
    row("rdma_rx_packets", &[HardwareCounters], 1, port(IN, false, Function), FUNCTION_PACKETS),
    row("tx_bytes_phy", &[Ethtool], 1, port(OUT, true, Port), PORT_BYTES),
    row("rx_bytes_phy", &[Ethtool], 1, port(IN, true, Port), PORT_BYTES),
    row("tx_packets_phy", &[Ethtool], 1, port(OUT, false, Port), PORT_PACKETS),
    row("rx_packets_phy", &[Ethtool], 1, port(IN, false, Port), PORT_PACKETS),
    row(
        "rx_read_requests",
        &[HardwareCounters],
        1,
        SpeaksOf::Requests(ServedVerb::Read),
        "READs that reach queue pairs of the function",
    )
    .exported("rx_read_requests"),
    row(
        "rx_write_requests",
        &[HardwareCounters],
        1,
        SpeaksOf::Requests(ServedVerb::Write),
        "WRITEs that reach queue pairs of the function",
    )
    .exported("rx_write_requests"),
    row(
        "rx_atomic_requests",
        &[HardwareCounters],
        1,
        SpeaksOf::Requests(ServedVerb::Atomic),
        "atomics that reach queue pairs of the function",
    )
    .exported("rx_atomic_requests"),
    row(
        "IN_P_PKT_CNT",
        &[TlpCounters],
        1,
        SpeaksOf::Tlps { kind: TlpKind::InboundWrites, bytes: false },
        "posted TLPs towards the card's processors: payloads and completion entries; 56 bits wide",
    ),
    row(
        "IN_NP_PKT_CNT",
        &[TlpCounters],
        1,
        SpeaksOf::Tlps { kind: TlpKind::InboundReads, bytes: false },
        "non-posted TLPs towards them: read requests; 56 bits wide",
    ),
    row(
        "OUT_C_PKT_CNT",
        &[TlpCounters],
        1,
        SpeaksOf::Tlps { kind: TlpKind::OutboundCompletions, bytes: false },
        "completions from them, which a memory may cut smaller than the profile's TLPs; 56 bits wide",
    ),
    row(
        "IN_P_BYTE_CNT",
        &[TlpCounters],
        1,
        SpeaksOf::Tlps { kind: TlpKind::InboundWrites, bytes: true },
        "bytes of posted TLPs towards them; whether with headers is not said",
    ),
    row(
        "OUT_C_BYTE_CNT",
        &[TlpCounters],
        1,
        SpeaksOf::Tlps { kind: TlpKind::OutboundCompletions, bytes: true },
        "bytes of completions from them; whether with headers is not said",
    ),
    row("OUT_P_PKT_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(OWN_ACCESSES), "posted TLPs from them"),
    row("OUT_P_BYTE_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(OWN_ACCESSES), "bytes of those"),
    row("OUT_NP_PKT_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(OWN_ACCESSES), "non-posted TLPs from them"),
    row("IN_C_PKT_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(OWN_ACCESSES), "completions to them"),
    row("IN_C_BYTE_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(OWN_ACCESSES), "bytes of those"),
    row("IN_NP_BYTE_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(NOT_COUNTED), "nothing"),
    row("OUT_NP_BYTE_CNT", &[TlpCounters], 1, SpeaksOf::Nothing(NOT_COUNTED), "nothing"),
    row(
        "rx_bytes",
        &[Ethtool, NetStatistics],
        1,
        SpeaksOf::Nothing(KERNEL),
        "bytes that the kernel receives",
    ),
    row("tx_bytes", &[Ethtool, NetStatistics], 1, SpeaksOf::Nothing(KERNEL), "bytes that the kernel sends"),
    row(
        "rx_packets",
        &[Ethtool, NetStatistics],
        1,
        SpeaksOf::Nothing(KERNEL),
        "packets that the kernel receives",
    ),
    row(
        "tx_packets",
        &[Ethtool, NetStatistics],
        1,
        SpeaksOf::Nothing(KERNEL),
        "packets that the kernel sends",
    ),
    row(
        "out_of_sequence",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets out of sequence",
    )
    .exported("out_of_sequence_packets_received"),
    row(
        "packet_seq_err",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "NAKs for a sequence error",
    )
    .exported("packet_sequence_errors"),
    row(
        "local_ack_timeout_err",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "waits that ended by timeout",
    )
    .exported("local_ack_timeout_errors"),
    row(
        "roce_adp_retrans",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "adaptive retransmissions",
    )
    .exported("roce_adp_retransmits"),
    row(
        "duplicate_request",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "requests that came again",
    )
    .exported("duplicate_requests_packets"),
    row(
        "rnr_nak_retry_err",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::SlowReceiver),
        "receivers not ready",
    )
    .exported("rnr_nak_retry_packets_received"),
    row(
        "out_of_buffer",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::SlowReceiver),
        "drops without a receive posted",
    )
    .exported("out_of_buffer_drops"),
    row(
        "np_cnp_sent",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "congestion notifications sent",
    )
    .exported("np_cnp_packets_sent"),
    row(
        "rp_cnp_handled",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "congestion notifications obeyed",
    )
    .exported("rp_cnp_packets_handled"),
    row(
        "np_ecn_marked_roce_packets",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "packets that a switch marked",
    )
    .exported("np_ecn_marked_roce_packets_received"),
    row(
        "rx_prio*_pause",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "pause frames received",
    ),
    row("tx_prio*_pause", &[Ethtool], 1, SpeaksOf::Trouble(CounterTrouble::Congestion), "pause frames sent"),
    row(
        "port_xmit_wait",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "ticks in which packets waited to leave",
    )
    .exported("port_transmit_wait"),
    row(
        "port_xmit_discards",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets discarded before they left",
    )
    .of_bits(16)
    .exported("port_discards_transmitted"),
    row(
        "port_rcv_discards",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets discarded on arrival",
    )
    .exported("port_discards_received"),
    row(
        "port_rcv_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "packets with errors",
    )
    .of_bits(16)
    .exported("port_errors_received"),
    row(
        "rx_discards_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames for which the port had no buffer",
    ),
    row(
        "rx_prio*_discards",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames of a priority for which the port had no buffer",
    ),
    row(
        "rx_prio*_buf_discard",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames of a priority for which its own buffer had no room",
    ),
    row(
        "rx_prio*_cong_discard",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames of a priority dropped to signal congestion",
    ),
    row(
        "tx_pause_storm_warning_events",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Congestion),
        "times the port sent pause frames for long",
    ),
    row(
        "tx_pause_storm_error_events",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "times the port sent pause frames for so long that it stopped and drops instead",
    ),
    row(
        "rx_crc_errors_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "frames with a wrong check sequence",
    ),
    row(
        "link_downed",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "times the link went down",
    )
    .of_bits(8)
    .exported("link_downed"),
    row(
        "link_error_recovery",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "recoveries of the link",
    )
    .of_bits(8)
    .exported("link_error_recovery"),
    row("symbol_error", &[PortCounters], 1, SpeaksOf::Trouble(CounterTrouble::Broken), "symbols with errors")
        .of_bits(16)
        .exported("symbol_error"),
    row(
        "local_link_integrity_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "errors of the link above its threshold",
    )
    .of_bits(4)
    .exported("local_link_integrity_errors"),
    row(
        "port_rcv_remote_physical_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "packets that the other end marked as bad",
    )
    .of_bits(16)
    .exported("port_receive_remote_physical_errors"),
    row(
        "excessive_buffer_overrun_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "overruns of the port's buffers",
    )
    .of_bits(4)
    .exported("excessive_buffer_overrun_errors"),
    row(
        "port_xmit_constraint_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets that the port may not send",
    )
    .of_bits(8)
    .exported("port_constraint_errors_transmitted"),
    row(
        "port_rcv_constraint_errors",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets that the port may not receive",
    )
    .of_bits(8)
    .exported("port_constraint_errors_received"),
    row(
        "implied_nak_seq_err",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "READs and atomics whose answer came out of sequence",
    )
    .exported("implied_nak_seq_errors"),
    row(
        "roce_adp_retrans_to",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "timeouts of adaptive retransmission",
    )
    .exported("roce_adp_retransmits_timeout"),
    row(
        "req_transport_retries_exceeded",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "requests that were given up after retries",
    ),
    row(
        "resp_rnr_nak",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::SlowReceiver),
        "receivers not ready, as the responder said",
    ),
    row(
        "req_rnr_retries_exceeded",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::SlowReceiver),
        "requests that were given up since the receiver was not ready",
    ),
    row(
        "req_cqe_error",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "completions with an error at the requester",
    )
    .exported("req_cqes_errors"),
    row(
        "resp_cqe_error",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "completions with an error at the responder",
    )
    .exported("resp_cqes_errors"),
    row(
        "req_cqe_flush_error",
        &[HardwareCounters],
        1,
        SpeaksOf::Nothing(ENDED),
        "requests that were dropped with their queue pair",
    )
    .exported("req_cqes_flush_errors"),
    row(
        "resp_cqe_flush_error",
        &[HardwareCounters],
        1,
        SpeaksOf::Nothing(ENDED),
        "receives that were dropped with their queue pair",
    )
    .exported("resp_cqes_flush_errors"),
    row(
        "req_remote_access_errors",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "requests that the responder refused for want of rights",
    )
    .exported("req_remote_access_errors"),
    row(
        "req_remote_invalid_request",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "requests that the responder refused as none",
    )
    .exported("req_remote_invalid_request_errors"),
    row(
        "resp_remote_access_errors",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "requests that were refused for want of rights",
    )
    .exported("resp_remote_access_errors"),
    row(
        "resp_local_length_error",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "messages longer than their receive",
    )
    .exported("resp_local_length_errors"),
    row(
        "rx_icrc_encapsulated",
        &[HardwareCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "packets with a wrong invariant check sequence",
    )
    .exported("rx_icrc_encapsulated_errors"),
    row(
        "VL15_dropped",
        &[PortCounters],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "packets of the subnet's management that were dropped",
    )
    .of_bits(16)
    .exported("vl15_dropped"),
    row(
        "tx_discards_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames that the port discarded before they left",
    ),
    row(
        "tx_errors_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "frames that the port could not send",
    ),
    row("rx_symbol_err_phy", &[Ethtool], 1, SpeaksOf::Trouble(CounterTrouble::Broken), "symbols with errors"),
    row(
        "rx_pcs_symbol_err_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "symbols with errors behind the correction",
    ),
    row(
        "link_down_events_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "times the link went down",
    ),
    row(
        "rx_fec_uncorrectable_blocks_phy",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Broken),
        "blocks that could not be corrected",
    ),
    row(
        "tx_timeout",
        &[Ethtool],
        1,
        SpeaksOf::Trouble(CounterTrouble::Loss),
        "queues of the kernel that were stuck",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_name_means_one_thing_at_a_place() {
        let mut seen = BTreeSet::new();
        for row in COUNTERS {
            for place in row.places {
                assert!(seen.insert((*place, row.name)), "{} stands twice", row.name);
            }
            if let Some(exported) = row.exported {
                assert!(seen.insert((CounterPlace::Prometheus, exported)), "{exported} stands twice");
            }
            assert!(row.worth > 0 && !row.places.is_empty() && !row.counts.is_empty(), "{}", row.name);
        }
        let name = |place, name| CounterMeaning::of(place, name).map(|row| row.name);
        assert_eq!(name(Ethtool, "rx_prio3_pause"), Some("rx_prio*_pause"));
        assert_eq!(name(Ethtool, "rx_prio_pause"), None);
        assert_eq!(name(Ethtool, "rx_prio3_pause_duration"), None);
        assert_eq!(name(HardwareCounters, "rx_bytes"), None, "of another vendor it is something else");
    }
}
