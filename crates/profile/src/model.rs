//! What a loaded profile holds: plain quantities, ready for the cost functions.
//!
//! Where each number comes from is kept beside it in [`System::numbers`], under the same dotted
//! name that `--set` takes (`soc.pcie_mtu`, `client.nic.pass_time`).

use crate::schema::declared;
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
    /// Measured on this very card, or fitted to what was.
    MeasuredHere,
    /// Chosen so that the named evidence rows come out.
    Fitted,
    /// Neither described nor measured; a stated judgement.
    Assumed,
    /// A guess that this card's own measurements hold to what they show: they fit as well with another number in its place, so that
    /// nothing says what it is beyond them.
    HeldHere,
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
    /// The dotted name of the number that an overlay makes it a multiple of: what is not known of that one is not known of
    /// it.
    pub multiple_of: Option<String>,
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
    /// Overlays that each hold a variant of an open mechanism, with their descriptions: where the evidence leaves
    /// the mechanism open, a plan says what each would give.
    pub variants: Vec<(String, String)>,
    /// The overlays and settings in force, in order, as the user wrote them.
    pub overlays: Vec<String>,
    /// What the mechanisms in force multiply. The numbers stay those of the profiles, with their intervals and
    /// origins; what the model computes with are the products.
    pub scales: Vec<ScaledNumber>,
    /// What predictions for the device in this testbed were wrong by where it was measured, a kind of figure each; none where
    /// the testbed is another one than that of the device's file.
    pub learnt_errors: Vec<LearntErrors>,
    /// Whether numbers of the device were learnt from its own logs, and none of these told what predictions of latencies are wrong by: its
    /// delays are then those of another card, moved by what fits bandwidths.
    pub is_latency_untold: bool,
    /// The share of the host's threads that requests may use, where a design leaves them some: they run on as many whole ones.
    pub host_share: Option<f64>,
}

impl System {
    /// What predictions of figures of a kind were wrong by on this very system, of such traffic on a path, where what binds is this.
    pub fn learnt_errors(
        &self,
        figure: &str,
        (traffic, path): (&str, &str),
        bound_by: &str,
    ) -> Option<&LearntErrors> {
        let mut own =
            self.learnt_errors.iter().filter(|one| one.figure == figure && one.is_of(traffic, path));
        own.find(|one| one.bound_by.is_empty() || one.bound_by.iter().any(|one| one == bound_by))
    }

    /// Whether predictions for the device were held to its own logs, and none of these was of such figures of such traffic on a path:
    /// nothing says what predictions of it are wrong by.
    pub fn is_untold(&self, figure: &str, traffic: &str, path: &str) -> bool {
        let [_, latency] = LEARNT_FIGURES;
        if figure == latency && self.is_latency_untold {
            return true;
        }
        let mut own = self.learnt_errors.iter().filter(|one| one.figure == figure).peekable();
        own.peek().is_some() && own.all(|one| !one.is_of(traffic, path))
    }

    /// What a number may be at most: its upper end where it is a guess, and else its value.
    pub fn at_most(&self, name: &str) -> Option<Quantity> {
        let number = self.numbers.get(name)?;
        Some(number.high.filter(|_| number.provenance.is_guess()).unwrap_or(number.value))
    }

    /// The rate of the slowest port of a role's machines or of all, at most: a log above a port that is a guess tells that the guess
    /// is too low.
    pub fn port_at_most(&self, role: Option<&str>) -> Option<BitRate> {
        let machines = self.machines.iter().filter(|machine| role.is_none_or(|role| machine.role == *role));
        let at_most = |machine: &Machine| {
            let name = format!("{}.port_rate", machine.nic.name);
            match self.at_most(&name) {
                Some(Quantity::BitRate(rate)) => rate.max(machine.nic.port_rate),
                _ => machine.nic.port_rate,
            }
        };
        machines.map(at_most).min()
    }
}

declared! {
    /// What a calibration's predictions were wrong by, of points that the numbers behind them were not fitted to: logarithms of predicted over measured, without their signs.
    pub struct LearntErrors {
        /// What was predicted: one of [`LEARNT_FIGURES`].
        figure: String,
        /// What the requests of these points did: a verb, and `both ways` behind it where both sides send, as in `read` and
        /// `write both ways`; `dma` of a device's own.
        traffic: Vec<String>,
        /// Between which endpoints, as in `client-host`; empty where the file does not say.
        path: String,
        /// What bound them, by the card that was learnt: `posting thread`, `queue pairs`, a station's name. Empty of all.
        bound_by: Vec<String>,
    }
    numbers {
        /// How many points were predicted.
        points: u64 [MANY],
        /// What the error of one point more is at most with a chance of one in two.
        half_within: f64 [ERROR],
        /// The same with a chance of eight in ten.
        eight_of_ten_within: f64 [ERROR],
        /// The same with a chance of nine in ten.
        nine_of_ten_within: f64 [ERROR],
        /// What no error is taken to exceed: the greatest of these points, more where they stand in few logs.
        all_within: f64 [ERROR],
    }
}

impl LearntErrors {
    /// Whether they are of such traffic on a path.
    pub fn is_of(&self, traffic: &str, path: &str) -> bool {
        self.traffic.iter().any(|one| one == traffic) && (self.path.is_empty() || self.path == path)
    }

    /// Whether both speak of the same runs.
    pub(crate) fn is_beside(&self, other: &LearntErrors) -> bool {
        let has_one = |own: &[String], others: &[String]| own.iter().any(|one| others.contains(one));
        let is_any =
            |one: &[String], other: &[String]| one.is_empty() || other.is_empty() || has_one(one, other);
        let is_one_path = self.path == other.path || self.path.is_empty() || other.path.is_empty();
        self.figure == other.figure
            && is_one_path
            && (self.traffic == other.traffic || has_one(&self.traffic, &other.traffic))
            && is_any(&self.bound_by, &other.bound_by)
    }
}

/// The kinds of figures that a file may hold learnt errors of.
pub const LEARNT_FIGURES: [&str; 2] = ["throughput", "latency"];

/// A number that the model takes so many times another, as an overlay says.
#[derive(Clone, Debug, PartialEq)]
pub struct ScaledNumber {
    /// The dotted name of what is computed with.
    pub name: String,
    /// How many times.
    pub times: f64,
    /// The least and the most times, where they are stated.
    pub ends: Option<(f64, f64)>,
    /// The number that is multiplied; often the same.
    pub of: String,
    /// The overlay that says so.
    pub overlay: String,
    /// The product.
    pub value: Quantity,
}

declared! {
    /// One kind of machine in the testbed and how many of it take part.
    pub struct Machine {
        /// `server`, `client`, `backup`, or another role that a testbed names.
        role: String,
        /// Put before the names of its components: empty for the server, else `role.`.
        prefix: String,
        /// The device in it.
        device: String,
        /// The host profile it is built from.
        host: String,
        /// The NIC.
        nic: Nic,
        /// Each processor with its own memory: the host, the card's SoCs and other processors.
        endpoints: Vec<Endpoint>,
        /// Memories at nodes of their own, beside those of the endpoints.
        memories: Vec<Memory>,
        /// Each processor with each memory of the machine that is not its own.
        apart: Vec<Endpoint>,
        /// Caches that processors look through.
        caches: Vec<Cache>,
        /// How processors reach memories.
        reaches: Vec<Reach>,
        /// Switches inside the machine.
        switches: Vec<Switch>,
        /// Links between the NIC, the switches and the endpoints.
        links: Vec<Link>,
        /// DMA engines beside the NIC.
        engines: Vec<Engine>,
        /// Limits of large transfers.
        large_transfer_limits: Vec<LargeTransferLimit>,
        /// How work that was measured of one processor may lie on another.
        other_work: Vec<OtherWork>,
        /// Endpoints that the card has but its mode hides; empty except in `nic` mode.
        absent: Vec<String>,
        /// Engines that the testbed has of another device than this machine's: their names, and that device.
        engines_elsewhere: Vec<(String, String)>,
    }
    numbers {
        /// How many take part; each has stations of its own.
        count: u64 [MANY],
        /// How many exist in the cluster, which bounds how many can take part.
        available: u64 [MANY],
    }
}

/// Endpoints of a machine between which in-flight slots may be reserved.
pub const MOST_ENDPOINTS: usize = 4;

declared! {
    /// The RDMA NIC of a machine. It is a node of the topology named `nic`.
    pub struct Nic {
        /// The dotted name, as in `nic` or `client.nic`.
        name: String,
        /// Whether it carries verbs; one that does not is a port that hands packets to processors, and has a `port_rate` alone.
        carries_verbs: bool,
    }
    numbers {
        /// Network bandwidth in each direction, of all ports together.
        port_rate: BitRate [RATE],
        /// Time that one pass through the NIC's pipeline adds to a message when nothing else is in flight.
        pass_time: Time [DELAY],
        /// Requests per second that the packet cores shared by all endpoints process, whatever their size,
        /// beside the reserved ones.
        shared_packet_rate: OpRate [OPERATIONS],
        /// Requests per second that the packet cores reserved for each endpoint process; 0 where none.
        reserved_packet_rate: OpRate [OPERATIONS_OR_NONE],
        /// How many in-flight slots the requests of one endpoint may hold at once while they wait for PCIe.
        inflight_slots: u64 [MANY],
        /// How many of one endpoint's slots no other endpoint takes, so that several endpoints together have `inflight_slots` and this much
        /// more for each after the first, in a machine of at most four endpoints; 0 where all share one pool.
        reserved_inflight_slots: u64 [MANY_OR_NONE],
        /// The greatest payload that is posted inside the work request; a longer one of WRITE or SEND is fetched.
        inline_limit: Bytes [HEADER],
        /// Bytes of a work request.
        work_request_bytes: Bytes [HEADER],
        /// Bytes of a completion entry.
        completion_bytes: Bytes [HEADER],
        /// READs and atomics that one queue pair may have in flight at once; further ones wait in the NIC.
        outstanding_reads: u64 [MANY],
        /// Time that one request keeps its queue pair in the NIC beside its bytes, so that no queue pair carries more requests.
        queue_pair_request_time: Time [DELAY],
        /// Bandwidth of one queue pair, whatever the others do.
        queue_pair_rate: BitRate [RATE],
    }
}

/// Where an operation begins or ends: the processor that issues or answers it, and the memory that its payload lies in.
///
/// A processor with its own memory goes by the processor's name, as in `host` and `soc`; with another memory of its
/// machine by both, as in `host:gpu`. Requests and completions of either lie in the processor's own memory.
#[derive(Clone, Debug, PartialEq)]
pub struct Endpoint {
    /// The name that paths use: `host`, `soc`, `client`, `backup`, `backup.soc`, `host:gpu`.
    pub name: String,
    /// The processor.
    pub processor: Processor,
    /// The memory.
    pub memory: Memory,
}

declared! {
    /// A processor that has no memory of its own beside it, as cores in the NIC.
    pub struct Processor {
        /// Its name, which is also that of its own memory's endpoint.
        name: String,
        /// Whether it is the machine's host, and not a processor of the card.
        is_host: bool,
        /// What verbs cost it on the NIC of its machine.
        verbs: VerbCosts,
        /// What it costs to forward packets, where that is known.
        packets: Option<PacketCosts>,
        /// The kinds of work that were measured of it.
        works: Vec<WorkSpeed>,
    }
    numbers {
        /// Processor cores that may issue, handle and compute.
        cores: u64 [MANY],
        /// Hardware threads of each core, which wait for memory side by side; absent where a core has one.
        threads_per_core: Option<u64> [MANY],
        /// Clock of a core.
        frequency: Frequency [CLOCK],
    }
}

impl Processor {
    /// Threads that run at once.
    pub fn threads(&self) -> u64 {
        self.cores * self.threads_per_core.unwrap_or(1)
    }
}

declared! {
    /// A cache that processors look through on their way to memories.
    pub struct Cache {
        /// Its name.
        name: String,
    }
    numbers {
        /// Bytes that it holds.
        capacity: Bytes [SIZE],
        /// The newest bytes of a NIC's writes that lie in it, at most `capacity`; absent where the NIC writes past it.
        arrivals: Option<Bytes> [SIZE],
        /// Time of a load that it answers.
        latency: Time [DELAY],
        /// Bandwidth of one thread whose loads it answers, where it is the nearest; absent where nothing is known to bind.
        thread_bandwidth: Option<BitRate> [RATE],
        /// Bandwidth of all that it answers at once; absent where nothing is known to bind.
        bandwidth: Option<BitRate> [RATE],
    }
}

declared! {
    /// How a processor's own loads and stores reach a memory.
    pub struct Reach {
        /// Its name.
        name: String,
        /// The processor.
        processor: String,
        /// The memory.
        memory: String,
        /// The caches that it looks through, the nearest first.
        through: Vec<String>,
        /// The processor whose last-level cache stands before the memory, where one does.
        last_level_of: Option<String>,
    }
    numbers {
        /// Time of a load that no cache answers: at least that of each cache on the way, and of the same to `last_level_of` itself.
        latency: Time [DELAY],
        /// Bytes that one miss brings.
        line: Bytes [LINE],
        /// Lines in sequence that a thread waits for side by side.
        outstanding: u64 [MANY],
        /// Bandwidth of the loads of all threads together; absent where only the memory's own is known to bind.
        load_bandwidth: Option<BitRate> [RATE],
        /// Bandwidth of the stores of all threads together; absent where only the memory's own is known to bind.
        store_bandwidth: Option<BitRate> [RATE],
    }
}

declared! {
    /// Memory as the NIC and engines see it.
    pub struct Memory {
        /// Its name: that of the endpoint, or of its own table.
        name: String,
    }
    numbers {
        /// Size of the memory.
        capacity: Bytes [SIZE],
        /// Largest TLP payload to and from this memory.
        pcie_mtu: Bytes [PCIE_SIZE],
        /// Whether the NIC's accesses are served by the last-level cache.
        ddio: bool [EITHER],
        /// Requests per second that the way from the NIC into this memory answers for reads,
        /// whatever card is plugged in; absent where nothing is known to bind.
        inbound_read_rate: Option<OpRate> [OPERATIONS],
        /// Bandwidth of what the NIC reads out of this memory; absent where nothing on the way from the NIC but links and the
        /// memory itself is known to bind.
        inbound_read_bandwidth: Option<BitRate> [RATE],
        /// Bandwidth of what the NIC writes into this memory, wherever it comes to lie; absent as that of reads.
        inbound_write_bandwidth: Option<BitRate> [RATE],
        /// Time from a read arriving at an idle memory until its first bytes leave.
        read_latency: Time [DELAY],
        /// Time from a write arriving at an idle memory until it is visible.
        write_latency: Time [DELAY],
        /// Time that an access takes longer where the last-level cache does not serve it; absent where both latencies are
        /// those of the memory itself.
        miss_latency: Option<Time> [DELAY],
        /// Bytes at which its answers to reads may be cut into completions, PCI Express's read completion boundary; absent
        /// where they are never cut below `pcie_mtu`.
        read_completion_boundary: Option<Bytes> [COMPLETION],
        /// Longest read that is answered in completions of one boundary each; absent with `read_completion_boundary`.
        cut_up_to: Option<Bytes> [SIZE],
        /// Of longer reads, the share of cuts that the host makes good by sending completions of up to `pcie_mtu` instead;
        /// absent with `read_completion_boundary`.
        combined_share: Option<f64> [SHARE],
        /// Bandwidth of reads and writes together.
        bandwidth: BitRate [RATE],
        /// Banks that serve accesses side by side; they are visited only where `ddio` is false.
        banks: u64 [MANY],
        /// Bytes after which addresses reach the next bank.
        bank_stride: Bytes [SIZE],
        /// Time that one read keeps a bank.
        bank_read_time: Time [DELAY],
        /// Time that one write keeps a bank.
        bank_write_time: Time [DELAY],
    }
}

impl Memory {
    /// What an access takes longer because the last-level cache does not serve it.
    fn missing(&self) -> Time {
        self.miss_latency.filter(|_| !self.ddio).unwrap_or_default()
    }

    /// Time from a read arriving at the idle memory until its first bytes leave, from wherever it is served.
    pub fn read_time(&self) -> Time {
        self.read_latency + self.missing()
    }

    /// Time from a write arriving at the idle memory until it is visible, wherever it ends.
    pub fn write_time(&self) -> Time {
        self.write_latency + self.missing()
    }
}

declared! {
    /// What posting, polling and receiving cost an endpoint, and how long its requests keep an in-flight slot.
    pub struct VerbCosts {
        /// The dotted name of the table, as in `host_verbs` or `client.host_verbs`.
        name: String,
    }
    numbers {
        /// Latency of posting one request by MMIO.
        post_latency: Time [DELAY],
        /// Processor time of posting one request by MMIO, one after another.
        post_time: Time [DELAY],
        /// Processor time of a doorbell-batched list, whatever its length.
        batch_fixed_time: Time [DELAY],
        /// Processor time of each request in a doorbell-batched list, beside `batch_fixed_time`.
        batch_per_wqe_time: Time [DELAY],
        /// Latency from the completion's arrival until the program sees it.
        poll_latency: Time [DELAY],
        /// Processor time of handling one completion.
        poll_time: Time [DELAY],
        /// Latency from a message's arrival until its handler runs on an idle core.
        receive_latency: Time [DELAY],
        /// Processor time of receiving one message.
        receive_time: Time [DELAY],
        /// How long a WRITE into this endpoint's memory keeps an in-flight slot of the NIC.
        write_slot_time: Time [DELAY],
        /// How long a message into this endpoint keeps an in-flight slot of the NIC.
        receive_slot_time: Time [DELAY],
    }
}

declared! {
    /// What it costs a processor to take a packet from the port and send it out again.
    pub struct PacketCosts {
        /// The dotted name of the table, as in `soc_packets`.
        name: String,
    }
    numbers {
        /// Processor time of a packet, whatever its size.
        packet_time: Time [DELAY],
        /// Rate at which a thread moves the bytes of packets beside that; absent where size is not known to matter.
        byte_rate: Option<BitRate> [RATE],
        /// Packets that the NIC hands to all threads of the processor together; absent where nothing is known to bind.
        packet_rate: Option<OpRate> [OPERATIONS],
    }
}

declared! {
    /// What one thread of a processor gets done of one kind of work while the others run, by the one of its numbers that is written.
    pub struct WorkSpeed {
        /// The dotted name of the table, as in `soc_md5`.
        name: String,
        /// The kind of work, as designs call it.
        work: String,
    }
    numbers {
        /// Operations of it that a thread does in a second.
        operations_per_s: Option<f64> [OPERATIONS_PER_SECOND],
        /// Time that a thread takes for one operation of it.
        operation_time: Option<Time> [LONG],
        /// Bytes that a thread does it to.
        byte_rate: Option<BitRate> [RATE],
    }
}

declared! {
    /// How work that was measured of one processor may lie on another, beside the kinds that were measured of both.
    pub struct OtherWork {
        /// The dotted name, as in `soc_beside_host`.
        name: String,
        /// The processor that does it.
        processor: String,
        /// The processor that it was measured of.
        beside: String,
    }
    numbers {
        /// How many times as fast it runs as by the geometric mean of the kinds of work that were measured of both.
        other_work: f64 [TIMES],
    }
}

impl VerbCosts {
    /// Processor time of posting `count` requests in one doorbell batch.
    pub fn list(&self, count: u32) -> Time {
        self.batch_fixed_time + self.batch_per_wqe_time.times(u64::from(count))
    }
}

declared! {
    /// A switch inside a machine.
    pub struct Switch {
        /// Its name.
        name: String,
    }
    numbers {
        /// Delay of a pass when idle, the link to the NIC included.
        pass_time: Time [DELAY],
    }
}

declared! {
    /// A link between two nodes of a machine.
    pub struct Link with pcie {
        /// Its name.
        name: String,
        /// The node nearer to the NIC.
        from: String,
        /// The node farther from it.
        to: String,
        /// Bandwidth and framing; absent for a wire that is known to bind nothing.
        pcie: Option<Pcie>,
    }
    numbers {
        /// Delay of a pass when idle.
        delay: Time [DELAY],
    }
}

declared! {
    /// Bandwidth and framing of a PCIe link, the same in each direction.
    pub struct Pcie {}
    numbers {
        /// Bandwidth in each direction, encoding included.
        rate: BitRate [RATE],
        /// Share of the bandwidth that the line encoding leaves.
        encoding: f64 [SHARE] of_standard,
        /// Bytes beside the payload in a memory-write TLP.
        write_header: Bytes [HEADER] of_standard,
        /// Bytes of a memory-read TLP, which carries no payload.
        read_request: Bytes [HEADER] of_standard,
        /// Bytes beside the payload in a completion TLP.
        completion_header: Bytes [HEADER] of_standard,
        /// Most bytes that one memory-read TLP asks for.
        read_request_limit: Bytes [PCIE_SIZE],
        /// Read requests that may be in flight over it at once, which with `read_request_limit` bounds what is read through
        /// it; absent where nothing is known to bind.
        read_requests: Option<u64> [MANY],
    }
}

declared! {
    /// An engine beside the NIC that moves bytes: between memories (DMA), through a function (an accelerator), or between
    /// a memory and what it stores (an SSD).
    pub struct Engine {
        /// Its name, the last word of a path's name.
        name: String,
        /// The endpoint that it belongs to: its processor posts, its memory is near.
        endpoint: String,
        /// What it does with the bytes.
        work: EngineWork,
        /// The memories that it reaches; all of the machine where none is named.
        reaches: Vec<String>,
        /// The kinds of work that it does where it transforms, as processors' kinds are called.
        does: Vec<String>,
    }
    numbers {
        /// Latency of posting and of the engine's own pipeline when idle.
        start_latency: Time [DELAY],
        /// Time that one request keeps the engine, whatever its size.
        request_time: Time [DELAY],
        /// Bandwidth towards the engine's endpoint while nothing goes the other way.
        read_rate: BitRate [RATE],
        /// Bandwidth away from it while nothing goes the other way.
        write_rate: BitRate [RATE],
        /// Bandwidth of both directions together.
        total_rate: BitRate [RATE],
        /// Processor time of posting one request.
        post_time: Time [DELAY],
        /// Latency of seeing the completion.
        poll_latency: Time [DELAY],
        /// Payload above which the engine slows down; absent where it does not.
        slow_above: Option<Bytes> [SIZE],
        /// Bandwidth of payloads above it; absent where it does not slow down.
        slow_rate: Option<BitRate> [RATE],
        /// Latency beside `start_latency` of a request that stores bytes, a WRITE; a READ takes `start_latency` alone.
        store_latency: Option<Time> [DELAY],
        /// Requests that it works on at once; absent where nothing is known to bind.
        queue_depth: Option<u64> [MANY],
        /// Largest payload of a TLP that it writes, where that is less than the memory's `pcie_mtu`; absent where it is not.
        packet_payload: Option<Bytes> [PCIE_SIZE],
        /// Time that each TLP which it writes keeps it. One that states it starts READs and WRITEs apart, so that
        /// `request_time` keeps the direction of a request alone; absent where neither is known.
        packet_time: Option<Time> [DELAY],
        /// Bandwidth at which the bytes of one request pass its own buffers beside those of others, on top of their way over
        /// PCIe: it counts in the latency alone; absent where it is part of `start_latency`.
        buffer_rate: Option<BitRate> [RATE],
        /// Bytes that a transformation gives for each byte it takes; absent where it gives none.
        output_share: Option<f64> [OUTPUT],
    }
}

/// What an engine does with the bytes of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EngineWork {
    /// It carries them from one memory to another, or within one.
    Copy,
    /// It takes them from a memory and puts what it makes of them into that memory.
    Transform,
    /// It keeps them: a READ brings stored bytes into a memory, a WRITE stores those of a memory.
    Store,
}

impl EngineWork {
    /// Each with the word that files use.
    pub const NAMES: [(&'static str, EngineWork); 3] =
        [("copy", EngineWork::Copy), ("transform", EngineWork::Transform), ("store", EngineWork::Store)];
}

declared! {
    /// A large-transfer limit: transfers above a payload between two endpoints run at a lower rate.
    ///
    /// The mechanism is not known (head-of-line blocking is the papers' hypothesis), so the limit is
    /// a named parameter and not a consequence.
    pub struct LargeTransferLimit {
        /// Its name.
        name: String,
        /// The requester, or `*` for one on another machine.
        requester: String,
        /// The responder.
        responder: String,
        /// `read`, `write`, or both.
        verbs: Vec<String>,
    }
    numbers {
        /// Payload above which it holds.
        above: Bytes [SIZE],
        /// Bandwidth of payloads above it.
        rate: BitRate [RATE],
    }
}

declared! {
    /// The network between machines.
    pub struct Network {}
    numbers {
        /// One-way delay between two ports when idle.
        delay: Time [DELAY],
        /// Largest payload of a network packet.
        mtu: Bytes [PATH_MTU],
        /// Bytes beside the payload in each packet.
        packet_header: Bytes [HEADER],
    }
}
