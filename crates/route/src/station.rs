//! Stations: the resources of a system that operations queue at.

use offpath_profile::{EngineWork, Machine, System};
use offpath_quantity::Time;

/// The position of a station in [`crate::Router::stations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StationId(pub u16);

impl StationId {
    /// The position as an index.
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

/// How a station serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StationKind {
    /// One server: a direction of a link, a DMA engine, an inbound-read limit.
    Line,
    /// Cores of a processor.
    Cores(u64),
    /// In-flight slots that an operation keeps while later visits go on.
    InflightSlots(u64),
    /// Packet cores: a part that serves every endpoint and a part reserved for each.
    Pool {
        /// Time between two requests of the shared part; `None` where there is no such part.
        shared: Option<Time>,
        /// Time between two requests of each endpoint's own part, by class.
        reserved: Vec<Option<Time>>,
    },
    /// Memory banks, reached by address.
    Banks(u64),
}

/// One direction of a port or of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireWay {
    /// Out of a port.
    Transmit,
    /// Into a port.
    Receive,
    /// On a link, to the side on which the NIC is.
    TowardsNic,
    /// On a link, from that side.
    AwayFromNic,
}

impl WireWay {
    /// Whether it is one of a port.
    pub fn is_of_port(self) -> bool {
        matches!(self, WireWay::Transmit | WireWay::Receive)
    }
}

/// A direction of a port or link, which nothing crosses faster than its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Wire {
    /// Which direction.
    pub way: WireWay,
    /// Bytes per second with all headers that the profile counts, of one machine.
    pub bytes_per_s: f64,
}

/// A resource with servers and a queue.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Its name, as in `pcie1.up` (towards the NIC) or `client.cpu`.
    pub name: String,
    /// The machine that it belongs to, by position in the system.
    pub machine: usize,
    /// How many machines of that role have one.
    pub instances: u64,
    /// How it serves.
    pub kind: StationKind,
    /// What it is of a port or link, if of any.
    pub wire: Option<Wire>,
    /// What it stands for, in a few words.
    pub meaning: &'static str,
}

impl Station {
    /// Servers over all instances: station-seconds that it offers per second.
    ///
    /// A pool is counted in requests per second by class instead and offers none here.
    pub fn servers(&self) -> u64 {
        match self.kind {
            StationKind::Line => self.instances,
            StationKind::Cores(n) | StationKind::InflightSlots(n) | StationKind::Banks(n) => {
                n * self.instances
            }
            StationKind::Pool { .. } => 0,
        }
    }
}

fn interval(rate: offpath_quantity::OpRate) -> Option<Time> {
    (rate.get() > 0).then(|| rate.interval())
}

/// Each endpoint of a machine, and each group of them that is not all, by position: those that may have no slot which is
/// reserved for the rest. With the name of the station that counts theirs; none where nothing is reserved.
pub(crate) fn slot_limits(machine: &Machine) -> Vec<(Vec<usize>, String)> {
    // There are as many as two to the power of the endpoints.
    let endpoints = if machine.nic.reserved_inflight_slots > 0 { machine.endpoints.len() } else { 0 };
    let members = |set: u32| (0..endpoints).filter(move |index| set >> index & 1 == 1).collect::<Vec<_>>();
    let mut sets: Vec<Vec<usize>> = (1..(1u32 << endpoints) - 1).map(members).collect();
    sets.sort_by_key(|set| set.len() > 1);
    let name =
        |set: &[usize]| set.iter().map(|index| machine.endpoints[*index].name.as_str()).collect::<Vec<_>>();
    let station =
        |set: &[usize]| format!("{}.inflight_slots-of-{}", machine.nic.name, name(set).join("-and-"));
    sets.into_iter().map(|set| (set.clone(), station(&set))).collect()
}

/// What an engine serves with: the start of a request, bytes of each direction, and all bytes.
pub(crate) const ENGINE_PARTS: [&str; 4] = ["requests", "read", "write", "total"];

fn meanings(work: EngineWork) -> [&'static str; 4] {
    match work {
        EngineWork::Copy => [
            "DMA engine, start of a request",
            "DMA engine, towards its endpoint",
            "DMA engine, away from its endpoint",
            "DMA engine, bytes of both directions",
        ],
        EngineWork::Transform => [
            "accelerator, start of a request",
            "accelerator, bytes it takes",
            "accelerator, bytes it gives",
            "accelerator, bytes of both directions",
        ],
        EngineWork::Store => [
            "storage, start of a request",
            "storage, bytes it gives",
            "storage, bytes it takes",
            "storage, bytes of both directions",
        ],
    }
}

/// What the limit of a memory's inbound reads is called.
pub(crate) fn inbound_reads(is_of_host: bool) -> &'static str {
    if is_of_host { "host inbound-read limit" } else { "inbound-read limit" }
}

/// Every station of a system, machine by machine, in the order of the profile.
pub(crate) fn stations(system: &System) -> Vec<Station> {
    let mut all = Vec::new();
    let open = system.host().zip(system.open_host_threads());
    for (machine, m) in system.machines.iter().enumerate() {
        let station = |name: String, kind: StationKind, meaning: &'static str| Station {
            name,
            machine,
            instances: m.count,
            kind,
            wire: None,
            meaning,
        };
        let wire = |name, way, bytes_per_s, meaning| Station {
            wire: Some(Wire { way, bytes_per_s }),
            ..station(name, StationKind::Line, meaning)
        };
        let mut add = |one: Station| all.push(one);
        let shared = interval(m.nic.shared_packet_rate);
        let reserved = m.endpoints.iter().map(|_| interval(m.nic.reserved_packet_rate)).collect();
        add(station(
            format!("{}.cores", m.nic.name),
            StationKind::Pool { shared, reserved },
            "NIC packet cores",
        ));
        // Beyond what one endpoint may hold stands what is reserved for the others.
        let others = m.nic.reserved_inflight_slots * (m.endpoints.len() as u64 - 1);
        add(station(
            format!("{}.inflight_slots", m.nic.name),
            StationKind::InflightSlots(m.nic.inflight_slots + others),
            "in-flight slots held during PCIe",
        ));
        // What is reserved for the rest no group of them has: an idle endpoint lends nothing.
        for (group, name) in slot_limits(m) {
            let more = m.nic.reserved_inflight_slots * (group.len() as u64 - 1);
            let meaning = match group.len() {
                1 => "in-flight slots open to an endpoint",
                _ => "in-flight slots open to a group of endpoints",
            };
            add(station(name, StationKind::InflightSlots(m.nic.inflight_slots + more), meaning));
        }
        let port_rate = m.nic.port_rate.bits_per_second() as f64 / 8.0;
        let transmit = format!("{}.transmit", m.nic.name);
        add(wire(transmit, WireWay::Transmit, port_rate, "network port, outbound"));
        add(wire(format!("{}.receive", m.nic.name), WireWay::Receive, port_rate, "network port, inbound"));
        for link in &m.links {
            let Some(pcie) = &link.pcie else { continue };
            let rate = pcie.rate.bits_per_second() as f64 * pcie.encoding / 8.0;
            let (up, down) = (format!("{}.up", link.name), format!("{}.down", link.name));
            add(wire(up, WireWay::TowardsNic, rate, "PCIe link, towards the NIC"));
            add(wire(down, WireWay::AwayFromNic, rate, "PCIe link, away from the NIC"));
            if pcie.read_requests.is_some() {
                let meaning = "read requests in flight on a PCIe link";
                add(station(format!("{}.reads", link.name), StationKind::Line, meaning));
            }
        }
        let beside = m.endpoints.iter().map(|e| {
            let is_beside = e.processor.name == e.memory.name;
            (Some(&e.processor), is_beside.then_some(&e.memory))
        });
        for (processor, memory) in beside.chain(m.memories.iter().map(|memory| (None, Some(memory)))) {
            if let Some(processor) = processor {
                let (threads, meaning) = match open {
                    Some((host, (open, _)))
                        if m.prefix.is_empty() && host.processor.name == processor.name =>
                    {
                        (open, "processor cores that requests may use")
                    }
                    _ => (processor.threads(), "processor cores"),
                };
                add(station(format!("{}.cpu", processor.name), StationKind::Cores(threads), meaning));
            }
            if let Some(costs) = processor.and_then(|processor| processor.packets.as_ref())
                && costs.packet_rate.is_some()
            {
                add(station(
                    format!("{}.packets", costs.name),
                    StationKind::Line,
                    "packets handed to a processor",
                ));
            }
            let Some(memory) = memory else { continue };
            add(station(format!("{}.memory", memory.name), StationKind::Line, "memory bandwidth"));
            if !memory.ddio {
                add(station(
                    format!("{}.banks", memory.name),
                    StationKind::Banks(memory.banks),
                    "memory banks",
                ));
            }
            if memory.inbound_read_rate.is_some() {
                add(station(
                    format!("{}.inbound_reads", memory.name),
                    StationKind::Line,
                    inbound_reads(m.is_of_host(&memory.name)),
                ));
            }
            for (part, rate, meaning) in [
                ("read_bytes", memory.inbound_read_bandwidth, "bytes that the NIC reads out of a memory"),
                ("written_bytes", memory.inbound_write_bandwidth, "bytes that the NIC writes into a memory"),
            ] {
                if rate.is_some() {
                    add(station(format!("{}.{part}", memory.name), StationKind::Line, meaning));
                }
            }
        }
        for engine in &m.engines {
            for (part, meaning) in ENGINE_PARTS.into_iter().zip(meanings(engine.work)) {
                add(station(format!("{}.{part}", engine.name), StationKind::Line, meaning));
            }
            if let Some(depth) = engine.queue_depth {
                let slots = StationKind::InflightSlots(depth);
                add(station(format!("{}.slots", engine.name), slots, "requests that an engine works on"));
            }
        }
        for cache in m.caches.iter().filter(|cache| cache.bandwidth.is_some()) {
            add(station(format!("{}.bytes", cache.name), StationKind::Line, "cache bandwidth"));
        }
        for reach in &m.reaches {
            for (part, rate, meaning) in [
                ("loads", reach.load_bandwidth, "a processor's loads from a memory"),
                ("stores", reach.store_bandwidth, "a processor's stores to a memory"),
            ] {
                if rate.is_some() {
                    add(station(format!("{}.{part}", reach.name), StationKind::Line, meaning));
                }
            }
        }
        for limit in &m.large_transfer_limits {
            add(station(limit.name.clone(), StationKind::Line, "large-transfer limit"));
        }
    }
    all
}
