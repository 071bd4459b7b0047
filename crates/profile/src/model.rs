//! What a loaded profile holds: plain quantities, ready for the cost functions.
//!
//! Where each number comes from is kept beside it in [`System::numbers`], under the same dotted
//! name that `--set` takes (`soc.pcie_mtu`, `client.nic.pass_time`).

use offpath_quantity::{BitRate, Bytes, Frequency, OpRate, Quantity, Time};
use std::collections::BTreeMap;
use std::sync::Arc;

/// How a number came to be known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Provenance {
    /// A vendor's or paper's description of the hardware.
    Datasheet,
    /// Measured and published.
    Measured,
    /// Chosen so that the named evidence rows come out.
    Fitted,
    /// Neither described nor measured; a stated judgement.
    Assumed,
    /// Known of another device or host and taken to hold for this one: a guess, as `Assumed` is.
    CarriedOver,
    /// Set by the user on the command line or in an overlay.
    Set,
}

/// One number of a profile with its origin.
#[derive(Clone, Debug, PartialEq)]
pub struct Number {
    /// The value that is used.
    pub value: Quantity,
    /// The least value that the evidence leaves, where it leaves a range.
    pub low: Option<Quantity>,
    /// The greatest value that the evidence leaves.
    pub high: Option<Quantity>,
    /// The value that a profile gives it, where an overlay or a setting put another in its place.
    pub replaced: Option<Quantity>,
    /// Where it stands, as in `data sheet, table 2`.
    pub source: String,
    /// How it is known.
    pub provenance: Provenance,
    /// The evidence rows that a fitted number follows from.
    pub rows: Vec<String>,
    /// What a reader should know about it; empty where nothing.
    pub note: String,
    /// The file that it was read from, or `--set`.
    pub file: String,
    /// Its name within that file, as in `nic.pass_time`. Numbers of one file and name are one number,
    /// whichever machines of a system have it.
    pub key: String,
}

/// Everything that a route can visit: machines and the network between them.
#[derive(Clone, Debug, PartialEq)]
pub struct System {
    /// The device that was asked for; the server machine carries it.
    pub device: String,
    /// The testbed's name.
    pub testbed: String,
    /// The card's mode, as in `separated-host`.
    pub mode: String,
    /// The machines by role; the server's components have no prefix, the others `role.`.
    pub machines: Vec<Machine>,
    /// What joins the machines' ports.
    pub network: Network,
    /// Every number by its dotted name; shared, so that varying one number copies no texts.
    pub numbers: BTreeMap<String, Arc<Number>>,
    /// Overlays that hold a rival mechanism each, with their descriptions: where the evidence leaves
    /// the mechanism open, a plan says what each would give.
    pub rivals: Vec<(String, String)>,
    /// The overlays and settings in force, in order, as the user wrote them.
    pub overlays: Vec<String>,
    /// What the mechanisms in force multiply. The numbers stay those of the profiles, with their intervals and
    /// origins; what the model computes with are the products.
    pub scales: Vec<Scale>,
}

/// A number that the model takes so many times another, as an overlay says.
#[derive(Clone, Debug, PartialEq)]
pub struct Scale {
    /// The dotted name of what is computed with.
    pub name: String,
    /// How many times.
    pub times: f64,
    /// The number that is multiplied; often the same.
    pub of: String,
    /// The overlay that says so.
    pub overlay: String,
    /// The product.
    pub value: Quantity,
}

/// One kind of machine in the testbed and how many of it take part.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// `server`, `client`, `backup`, or another role that a testbed names.
    pub role: String,
    /// Put before the names of its components: empty for the server, else `role.`.
    pub prefix: String,
    /// The device in it.
    pub device: String,
    /// The host profile it is built from.
    pub host: String,
    /// How many take part; each has stations of its own.
    pub count: u64,
    /// How many exist in the cluster.
    pub available: u64,
    /// The network adapter.
    pub nic: Nic,
    /// Processor and memory domains: the host and the card's SoCs.
    pub endpoints: Vec<Endpoint>,
    /// Switches inside the machine.
    pub switches: Vec<Switch>,
    /// Links between the adapter, the switches and the endpoints.
    pub links: Vec<Link>,
    /// Copy engines beside the adapter.
    pub engines: Vec<Engine>,
    /// Slower regimes of large transfers.
    pub stalls: Vec<Stall>,
    /// Endpoints that the card has but its mode hides; empty except in `nic` mode.
    pub absent: Vec<String>,
}

/// The RDMA network adapter of a machine. It is a node of the topology named `nic`.
#[derive(Clone, Debug, PartialEq)]
pub struct Nic {
    /// The dotted name, as in `nic` or `client.nic`.
    pub name: String,
    /// Network bandwidth in each direction.
    pub port_rate: BitRate,
    /// Time that one pass through the adapter's pipeline adds to a message.
    pub pass_time: Time,
    /// Requests per second that the packet cores shared by all endpoints process.
    pub shared_packet_rate: OpRate,
    /// Requests per second that the packet cores reserved for each endpoint process; 0 where none.
    pub reserved_packet_rate: OpRate,
    /// How many requests to one endpoint may wait for PCIe at once.
    pub contexts: u64,
    /// How many of them no other endpoint takes, so that several endpoints together have `contexts` and this much
    /// more for each after the first; 0 where all share one pool.
    pub reserved_contexts: u64,
    /// The greatest payload that is posted inside the work request.
    pub inline_limit: Bytes,
    /// Bytes of a work request.
    pub work_request_bytes: Bytes,
    /// Bytes of a completion entry.
    pub completion_bytes: Bytes,
}

/// A processor with its memory: the host, or a SoC of the card.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The name that paths use: `host`, `soc`, `client`, `backup`, `backup.soc`.
    pub name: String,
    /// Whether it is the machine's host, and not a processor of the card.
    pub is_host: bool,
    /// Processor cores.
    pub cores: u64,
    /// Clock of a core.
    pub frequency: Frequency,
    /// Largest TLP payload to and from this endpoint.
    pub pcie_mtu: Bytes,
    /// Whether the adapter's accesses are served by the last-level cache.
    pub ddio: bool,
    /// Its memory.
    pub memory: Memory,
    /// Requests per second that the way from the adapter into this memory answers for reads,
    /// whatever card is plugged in; absent where nothing is known to bind.
    pub read_path_rate: Option<OpRate>,
    /// What verbs cost this endpoint's processor on the adapter of its machine.
    pub verbs: VerbCosts,
}

/// Memory as the adapter sees it.
#[derive(Clone, Debug, PartialEq)]
pub struct Memory {
    /// Size.
    pub capacity: Bytes,
    /// Time from a read arriving until its first bytes leave.
    pub read_latency: Time,
    /// Time from a write arriving until it is visible.
    pub write_latency: Time,
    /// Bandwidth of reads and writes together.
    pub bandwidth: BitRate,
    /// Banks that serve accesses side by side.
    pub banks: u64,
    /// Bytes after which addresses reach the next bank.
    pub bank_stride: Bytes,
    /// Time that one read keeps a bank.
    pub bank_read_time: Time,
    /// Time that one write keeps a bank.
    pub bank_write_time: Time,
}

/// What posting, polling and receiving cost an endpoint, and how long its requests keep a context.
#[derive(Clone, Debug, PartialEq)]
pub struct VerbCosts {
    /// The dotted name of the table, as in `host_verbs` or `client.host_verbs`.
    pub name: String,
    /// Latency of posting one request by MMIO.
    pub post_latency: Time,
    /// Processor time of posting one request by MMIO.
    pub post_time: Time,
    /// Processor time of a doorbell-batched list, whatever its length.
    pub list_time: Time,
    /// Processor time of each request in a doorbell-batched list.
    pub listed_time: Time,
    /// Latency from the completion's arrival until the program sees it.
    pub poll_latency: Time,
    /// Processor time of handling one completion.
    pub poll_time: Time,
    /// Latency from a message's arrival until its handler runs.
    pub receive_latency: Time,
    /// Processor time of receiving one message.
    pub receive_time: Time,
    /// How long a WRITE into this endpoint's memory keeps a context of the adapter.
    pub write_context_time: Time,
    /// How long a message into this endpoint keeps a context of the adapter.
    pub receive_context_time: Time,
}

impl VerbCosts {
    /// Processor time of posting `count` requests in one doorbell batch.
    pub fn list(&self, count: u32) -> Time {
        self.list_time + self.listed_time.times(u64::from(count))
    }
}

/// A switch inside a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Switch {
    /// Its name.
    pub name: String,
    /// Delay of a pass, the link to the adapter included.
    pub pass_time: Time,
}

/// A link between two nodes of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// Its name.
    pub name: String,
    /// The node nearer to the adapter.
    pub from: String,
    /// The node farther from it.
    pub to: String,
    /// Delay of a pass.
    pub delay: Time,
    /// Bandwidth and framing; absent for a wire that is known to bind nothing.
    pub pcie: Option<Pcie>,
}

/// Bandwidth and framing of a PCIe link, the same in each direction.
#[derive(Clone, Debug, PartialEq)]
pub struct Pcie {
    /// Bandwidth in each direction, encoding included.
    pub rate: BitRate,
    /// Share of the bandwidth that the line encoding leaves.
    pub encoding: f64,
    /// Bytes beside the payload in a memory-write TLP.
    pub write_header: Bytes,
    /// Bytes of a memory-read TLP, which carries no payload.
    pub read_request: Bytes,
    /// Bytes beside the payload in a completion TLP.
    pub completion_header: Bytes,
    /// Most bytes that one memory-read TLP asks for.
    pub read_request_limit: Bytes,
}

/// A copy engine of the card between two endpoints of its machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Engine {
    /// Its name, the last word of a path's name.
    pub name: String,
    /// The endpoint that it belongs to: its processor posts, its memory is near.
    pub endpoint: String,
    /// Latency of posting and of the engine's own pipeline.
    pub start_latency: Time,
    /// Time that one request keeps the engine, whatever its size.
    pub request_time: Time,
    /// Bandwidth towards the engine's endpoint.
    pub read_rate: BitRate,
    /// Bandwidth away from it.
    pub write_rate: BitRate,
    /// Bandwidth of both together.
    pub total_rate: BitRate,
    /// Processor time of posting one request.
    pub post_time: Time,
    /// Latency of seeing the completion.
    pub poll_latency: Time,
    /// Payload above which the engine slows down.
    pub slow_above: Bytes,
    /// Bandwidth of payloads above it.
    pub slow_rate: BitRate,
}

/// A slower regime: transfers above a payload between two endpoints run at a lower rate.
///
/// The mechanism is not known (head-of-line blocking is the papers' hypothesis), so the regime is
/// a named parameter and not a consequence.
#[derive(Clone, Debug, PartialEq)]
pub struct Stall {
    /// Its name.
    pub name: String,
    /// The requester, or `*` for one on another machine.
    pub requester: String,
    /// The responder.
    pub responder: String,
    /// `read`, `write`, or both.
    pub verbs: Vec<String>,
    /// Payload above which it holds.
    pub above: Bytes,
    /// The rate then.
    pub rate: BitRate,
}

/// The network between machines.
#[derive(Clone, Debug, PartialEq)]
pub struct Network {
    /// One-way delay between two ports.
    pub delay: Time,
    /// Largest payload of a network packet.
    pub mtu: Bytes,
    /// Bytes beside the payload in each packet.
    pub packet_header: Bytes,
}
