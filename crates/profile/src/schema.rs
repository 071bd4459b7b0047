//! The schema: which tables a profile has, which keys each holds, in which dimension and range,
//! and the field of the model that each key fills.

use crate::{Endpoint, Engine, Link, Machine, Network, Nic, Pcie, Stall, Switch, VerbCosts};
use crate::{Memory, Provenance};
use offpath_quantity::{BitRate, Bytes, Dimension, Frequency, OpRate, Quantity, Time};

/// What a component table describes: the value of its key `kind`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    Nic,
    Switch,
    Link,
    Wire,
    Endpoint,
    Verbs,
    Engine,
    Stall,
    Machine,
    Network,
}

/// The values between which a number makes sense, in base units.
///
/// The upper ends keep integer time in range for every payload that the model accepts.
pub(crate) struct Range {
    pub least: f64,
    pub most: f64,
    /// Whether the standard behind the number knows powers of two alone.
    pub power_of_two: bool,
    pub words: &'static str,
}

impl Range {
    /// The value that a probe between two ends of an interval stands for: itself, or the nearest power of
    /// two where there are no others.
    pub(crate) fn nearest(&self, value: f64) -> f64 {
        if self.power_of_two && value > 0.0 { value.log2().round().exp2() } else { value }
    }

    /// Whether a value in base units makes sense.
    pub(crate) fn holds(&self, value: f64) -> bool {
        let in_range = (self.least..=self.most).contains(&value);
        in_range && (!self.power_of_two || (value.fract() == 0.0 && (value as u64).is_power_of_two()))
    }
}

const fn range(least: f64, most: f64, words: &'static str) -> Range {
    Range { least, most, power_of_two: false, words }
}

/// One number of a table.
pub(crate) struct Key {
    pub name: &'static str,
    pub dimension: Dimension,
    /// Written as `true` or `false`; kept as a ratio of 1 or 0.
    pub flag: bool,
    pub required: bool,
    pub range: &'static Range,
}

const DELAY: Range = range(0.0, 1e12, "from 0 ns to 1 s");
const RATE: Range = range(1e6, 1e15, "from 1 Mbit/s to 1000 Tbit/s");
const OPERATIONS: Range = range(1.0, 1e12, "from 1 /s to 1000 G/s");
const OPERATIONS_OR_NONE: Range = range(0.0, 1e12, "from 0 /s to 1000 G/s");
const CLOCK: Range = range(1e6, 1e12, "from 1 MHz to 1000 GHz");
/// What InfiniBand and RoCE know as path MTU.
const PATH_MTU: Range =
    Range { least: 256.0, most: 4096.0, power_of_two: true, words: "a power of two from 256 B to 4096 B" };
/// What PCI Express can encode as largest payload of a packet, and as largest read request.
const PCIE_SIZE: Range =
    Range { least: 128.0, most: 4096.0, power_of_two: true, words: "a power of two from 128 B to 4096 B" };
const HEADER: Range = range(0.0, 1048576.0, "from 0 B to 1 MiB");
const SIZE: Range = range(1.0, 1125899906842624.0, "from 1 B to 1024 TiB");
const MANY: Range = range(1.0, 1e6, "from 1 to 1000000");
const MANY_OR_NONE: Range = range(0.0, 1e6, "from 0 to 1000000");
const SHARE: Range = range(0.01, 1.0, "from 0.01 to 1");
const EITHER: Range = range(0.0, 1.0, "`true` or `false`");

const fn key(name: &'static str, dimension: Dimension, range: &'static Range) -> Key {
    Key { name, dimension, flag: false, required: true, range }
}
const fn time(name: &'static str) -> Key {
    key(name, Dimension::Time, &DELAY)
}
const fn bytes(name: &'static str, range: &'static Range) -> Key {
    key(name, Dimension::Bytes, range)
}
const fn rate(name: &'static str) -> Key {
    key(name, Dimension::BitRate, &RATE)
}
const fn operations(name: &'static str, range: &'static Range) -> Key {
    key(name, Dimension::OpRate, range)
}
const fn count(name: &'static str) -> Key {
    key(name, Dimension::Count, &MANY)
}

const NIC: &[Key] = &[
    rate("port_rate"),
    time("pass_time"),
    operations("shared_packet_rate", &OPERATIONS),
    operations("reserved_packet_rate", &OPERATIONS_OR_NONE),
    count("contexts"),
    key("reserved_contexts", Dimension::Count, &MANY_OR_NONE),
    bytes("inline_limit", &HEADER),
    bytes("work_request_bytes", &HEADER),
    bytes("completion_bytes", &HEADER),
];
const SWITCH: &[Key] = &[time("pass_time")];
const LINK: &[Key] = &[
    time("delay"),
    rate("rate"),
    key("encoding", Dimension::Ratio, &SHARE),
    bytes("write_header", &HEADER),
    bytes("read_request", &HEADER),
    bytes("completion_header", &HEADER),
    bytes("read_request_limit", &PCIE_SIZE),
];
const WIRE: &[Key] = &[time("delay")];
const ENDPOINT: &[Key] = &[
    count("cores"),
    key("frequency", Dimension::Frequency, &CLOCK),
    bytes("pcie_mtu", &PCIE_SIZE),
    Key { name: "ddio", dimension: Dimension::Ratio, flag: true, required: true, range: &EITHER },
    bytes("memory", &SIZE),
    time("read_latency"),
    time("write_latency"),
    rate("bandwidth"),
    count("banks"),
    bytes("bank_stride", &SIZE),
    time("bank_read_time"),
    time("bank_write_time"),
    Key {
        name: "read_path_rate",
        dimension: Dimension::OpRate,
        flag: false,
        required: false,
        range: &OPERATIONS,
    },
];
const VERBS: &[Key] = &[
    time("post_latency"),
    time("post_time"),
    time("list_time"),
    time("listed_time"),
    time("poll_latency"),
    time("poll_time"),
    time("receive_latency"),
    time("receive_time"),
    time("write_context_time"),
    time("receive_context_time"),
];
const ENGINE: &[Key] = &[
    time("start_latency"),
    time("request_time"),
    rate("read_rate"),
    rate("write_rate"),
    rate("total_rate"),
    time("post_time"),
    time("poll_latency"),
    bytes("slow_above", &SIZE),
    rate("slow_rate"),
];
const STALL: &[Key] = &[bytes("above", &SIZE), rate("rate")];
const MACHINE: &[Key] = &[count("count"), count("available")];
const NETWORK: &[Key] = &[time("delay"), bytes("mtu", &PATH_MTU), bytes("packet_header", &HEADER)];

impl Kind {
    pub(crate) const ALL: &[Kind] = &[
        Kind::Nic,
        Kind::Switch,
        Kind::Link,
        Kind::Wire,
        Kind::Endpoint,
        Kind::Verbs,
        Kind::Engine,
        Kind::Stall,
        Kind::Machine,
        Kind::Network,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Kind::Nic => "nic",
            Kind::Switch => "switch",
            Kind::Link => "link",
            Kind::Wire => "wire",
            Kind::Endpoint => "endpoint",
            Kind::Verbs => "verbs",
            Kind::Engine => "engine",
            Kind::Stall => "stall",
            Kind::Machine => "machine",
            Kind::Network => "network",
        }
    }

    /// The numbers of a table of this kind.
    pub(crate) fn keys(self) -> &'static [Key] {
        match self {
            Kind::Nic => NIC,
            Kind::Switch => SWITCH,
            Kind::Link => LINK,
            Kind::Wire => WIRE,
            Kind::Endpoint => ENDPOINT,
            Kind::Verbs => VERBS,
            Kind::Engine => ENGINE,
            Kind::Stall => STALL,
            Kind::Machine => MACHINE,
            Kind::Network => NETWORK,
        }
    }

    /// The keys that hold names, each with an example.
    pub(crate) fn words(self) -> &'static [Word] {
        match self {
            Kind::Link | Kind::Wire => &[Word { name: "between", example: "[\"nic\", \"soc\"]", list: true }],
            Kind::Verbs | Kind::Engine => &[Word { name: "endpoint", example: "\"soc\"", list: false }],
            Kind::Stall => &[
                Word { name: "requester", example: "\"*\"", list: false },
                Word { name: "responder", example: "\"soc\"", list: false },
                Word { name: "verbs", example: "[\"read\", \"write\"]", list: true },
            ],
            Kind::Machine => &[
                Word { name: "device", example: "\"card\"", list: false },
                Word { name: "host", example: "\"NAME\"", list: false },
            ],
            Kind::Nic | Kind::Switch | Kind::Endpoint | Kind::Network => &[],
        }
    }
}

/// A key that holds a name or a list of names.
pub(crate) struct Word {
    pub name: &'static str,
    pub example: &'static str,
    pub list: bool,
}

/// A field of the model that a quantity can fill.
trait Field {
    /// Stores the quantity; `false` where it is of another dimension.
    fn put(&mut self, value: Quantity) -> bool;
}

macro_rules! fields {
    ($($type:ty, $dimension:ident);* $(;)?) => {$(
        impl Field for $type {
            fn put(&mut self, value: Quantity) -> bool {
                let Quantity::$dimension(value) = value else { return false };
                *self = value;
                true
            }
        }
    )*};
}
fields! { Time, Time; Bytes, Bytes; BitRate, BitRate; OpRate, OpRate; Frequency, Frequency; u64, Count; f64, Ratio }

impl Field for Option<OpRate> {
    fn put(&mut self, value: Quantity) -> bool {
        let Quantity::OpRate(value) = value else { return false };
        *self = Some(value);
        true
    }
}
impl Field for bool {
    fn put(&mut self, value: Quantity) -> bool {
        let Quantity::Ratio(value) = value else { return false };
        *self = value != 0.0;
        true
    }
}

/// A component of the model whose fields are filled by key.
pub(crate) trait Component {
    /// Fills the field of `key`; `false` where there is none of that name and dimension.
    fn put(&mut self, key: &str, value: Quantity) -> bool;
}

macro_rules! component {
    ($type:ty: $($key:literal => $($field:ident).+),* $(,)?) => {
        impl Component for $type {
            fn put(&mut self, key: &str, value: Quantity) -> bool {
                match key {
                    $($key => self.$($field).+.put(value),)*
                    _ => false,
                }
            }
        }
    };
}

component! { Nic:
    "port_rate" => port_rate, "pass_time" => pass_time, "shared_packet_rate" => shared_packet_rate,
    "reserved_packet_rate" => reserved_packet_rate, "contexts" => contexts, "reserved_contexts" => reserved_contexts,
    "inline_limit" => inline_limit, "work_request_bytes" => work_request_bytes,
    "completion_bytes" => completion_bytes,
}
component! { Switch: "pass_time" => pass_time }
component! { Pcie:
    "rate" => rate, "encoding" => encoding, "write_header" => write_header,
    "read_request" => read_request, "completion_header" => completion_header,
    "read_request_limit" => read_request_limit,
}
component! { Endpoint:
    "cores" => cores, "frequency" => frequency, "pcie_mtu" => pcie_mtu, "ddio" => ddio,
    "memory" => memory.capacity, "read_latency" => memory.read_latency,
    "write_latency" => memory.write_latency, "bandwidth" => memory.bandwidth,
    "banks" => memory.banks, "bank_stride" => memory.bank_stride,
    "bank_read_time" => memory.bank_read_time, "bank_write_time" => memory.bank_write_time,
    "read_path_rate" => read_path_rate,
}
component! { VerbCosts:
    "post_latency" => post_latency, "post_time" => post_time, "list_time" => list_time,
    "listed_time" => listed_time, "poll_latency" => poll_latency, "poll_time" => poll_time,
    "receive_latency" => receive_latency, "receive_time" => receive_time,
    "write_context_time" => write_context_time, "receive_context_time" => receive_context_time,
}
component! { Engine:
    "start_latency" => start_latency, "request_time" => request_time, "read_rate" => read_rate,
    "write_rate" => write_rate, "total_rate" => total_rate, "post_time" => post_time,
    "poll_latency" => poll_latency, "slow_above" => slow_above, "slow_rate" => slow_rate,
}
component! { Stall: "above" => above, "rate" => rate }
component! { Machine: "count" => count, "available" => available }
component! { Network: "delay" => delay, "mtu" => mtu, "packet_header" => packet_header }

impl Component for Link {
    fn put(&mut self, key: &str, value: Quantity) -> bool {
        match (key, &mut self.pcie) {
            ("delay", _) => self.delay.put(value),
            (_, Some(pcie)) => pcie.put(key, value),
            (_, None) => false,
        }
    }
}

// The blanks below are filled key by key; a file that leaves a required key out is refused before.
const ANY_RATE: BitRate = BitRate::from_bits_per_second(1);
const ANY_OPERATIONS: OpRate = OpRate::per_second(1);

pub(crate) fn blank_nic(name: String) -> Nic {
    Nic {
        name,
        port_rate: ANY_RATE,
        pass_time: Time::ZERO,
        shared_packet_rate: ANY_OPERATIONS,
        reserved_packet_rate: ANY_OPERATIONS,
        contexts: 1,
        reserved_contexts: 0,
        inline_limit: Bytes::ZERO,
        work_request_bytes: Bytes::ZERO,
        completion_bytes: Bytes::ZERO,
    }
}
pub(crate) fn blank_link(name: String, from: String, to: String, kind: Kind) -> Link {
    let pcie = Pcie {
        rate: ANY_RATE,
        encoding: 1.0,
        write_header: Bytes::ZERO,
        read_request: Bytes::ZERO,
        completion_header: Bytes::ZERO,
        read_request_limit: Bytes::new(1),
    };
    Link { name, from, to, delay: Time::ZERO, pcie: (kind == Kind::Link).then_some(pcie) }
}
pub(crate) fn blank_endpoint(name: String, is_host: bool, verbs: VerbCosts) -> Endpoint {
    Endpoint {
        name,
        is_host,
        cores: 1,
        frequency: Frequency::from_hz(1),
        pcie_mtu: Bytes::new(1),
        ddio: false,
        memory: Memory {
            capacity: Bytes::ZERO,
            read_latency: Time::ZERO,
            write_latency: Time::ZERO,
            bandwidth: ANY_RATE,
            banks: 1,
            bank_stride: Bytes::new(1),
            bank_read_time: Time::ZERO,
            bank_write_time: Time::ZERO,
        },
        read_path_rate: None,
        verbs,
    }
}
pub(crate) fn blank_verbs(name: String) -> VerbCosts {
    VerbCosts {
        name,
        post_latency: Time::ZERO,
        post_time: Time::ZERO,
        list_time: Time::ZERO,
        listed_time: Time::ZERO,
        poll_latency: Time::ZERO,
        poll_time: Time::ZERO,
        receive_latency: Time::ZERO,
        receive_time: Time::ZERO,
        write_context_time: Time::ZERO,
        receive_context_time: Time::ZERO,
    }
}
pub(crate) fn blank_engine(name: String, endpoint: String) -> Engine {
    Engine {
        name,
        endpoint,
        start_latency: Time::ZERO,
        request_time: Time::ZERO,
        read_rate: ANY_RATE,
        write_rate: ANY_RATE,
        total_rate: ANY_RATE,
        post_time: Time::ZERO,
        poll_latency: Time::ZERO,
        slow_above: Bytes::ZERO,
        slow_rate: ANY_RATE,
    }
}
pub(crate) fn blank_stall(name: String, requester: String, responder: String, verbs: Vec<String>) -> Stall {
    Stall { name, requester, responder, verbs, above: Bytes::ZERO, rate: ANY_RATE }
}
pub(crate) fn blank_network() -> Network {
    Network { delay: Time::ZERO, mtu: Bytes::new(1), packet_header: Bytes::ZERO }
}

impl Provenance {
    /// Every provenance, the best known first.
    pub const ALL: [Provenance; 6] = [
        Provenance::Datasheet,
        Provenance::Measured,
        Provenance::Fitted,
        Provenance::Assumed,
        Provenance::CarriedOver,
        Provenance::Set,
    ];

    /// Whether a number so known is a guess: nothing was measured or described of this very device.
    pub fn is_guess(self) -> bool {
        matches!(self, Provenance::Assumed | Provenance::CarriedOver)
    }

    /// The word that files use.
    pub fn name(self) -> &'static str {
        match self {
            Provenance::Datasheet => "datasheet",
            Provenance::Measured => "measured",
            Provenance::Fitted => "fitted",
            Provenance::Assumed => "assumed",
            Provenance::CarriedOver => "carried-over",
            Provenance::Set => "set",
        }
    }
}

impl std::fmt::Display for Provenance {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.name())
    }
}

/// A word that is no provenance.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a provenance; use one of `datasheet`, `measured`, `fitted`, `assumed`, `carried-over`, `set`"
)]
pub struct UnknownProvenance(pub String);

impl std::str::FromStr for Provenance {
    type Err = UnknownProvenance;
    fn from_str(text: &str) -> Result<Provenance, UnknownProvenance> {
        Provenance::ALL
            .into_iter()
            .find(|provenance| provenance.name() == text)
            .ok_or_else(|| UnknownProvenance(text.to_string()))
    }
}
