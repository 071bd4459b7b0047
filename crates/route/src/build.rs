//! From a system and an operation to a route.

use crate::path::{
    Carrier, Moves, Path, Responder, RouteError, SlotHold, Transport, VERBS, Verb, VerbRow, processor_of,
};
use crate::station::{ENGINE_PARTS, Station, StationId, StationKind, inbound_reads, slot_limits, stations};
use crate::visit::{
    AddressSpread, Hop, InflightSlots, MOST_LIMITS, Mark, PacketCut, Pick, Requests, Route, Train, Visit,
};
use offpath_profile::{
    Cache, Direction, Endpoint, Engine, EngineWork, MOST_ENDPOINTS, Machine, Memory, PacketCosts, Pcie,
    Reach, System,
};
use offpath_quantity::{BitRate, Bytes, Time};
use std::collections::BTreeMap;

/// How requests reach the NIC.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Posting {
    /// One MMIO a request.
    Single,
    /// One doorbell for a list of so many requests, which the NIC fetches itself.
    Batch(u32),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct PathOperation {
    /// The verb.
    pub verb: Verb,
    /// Between which endpoints.
    pub path: Path,
    /// The payload.
    pub payload: Bytes,
    /// How it is posted.
    pub posting: Posting,
    /// How its addresses are spread over the responder's memory.
    pub access: AddressSpread,
}

impl PathOperation {
    /// An operation posted alone at random addresses.
    pub fn new(verb: Verb, path: Path, payload: Bytes) -> PathOperation {
        PathOperation { verb, path, payload, posting: Posting::Single, access: AddressSpread::UNIFORM }
    }

    /// The same with another way of posting.
    pub fn posted(self, posting: Posting) -> PathOperation {
        PathOperation { posting, ..self }
    }

    /// The same with addresses spread otherwise.
    pub fn accessing(self, access: AddressSpread) -> PathOperation {
        PathOperation { access, ..self }
    }
}

/// The longest message of a reliable connection: the 1 GiB that common NICs report, half of what
/// InfiniBand allows.
pub const LONGEST_MESSAGE: Bytes = Bytes::new(1 << 30);
/// The longest packet that a processor forwards: a jumbo frame of common switches.
const LONGEST_PACKET: Bytes = Bytes::new(9216);
/// What a write-combining store buffer sends in one TLP.
const WRITE_COMBINING: Bytes = Bytes::new(64);
/// A hop that does not cut its bytes into packets.
const NO_PACKETS: Bytes = Bytes::new(1 << 40);

/// Room for the visits of one route, so that building one seldom grows its list.
const MOST_VISITS: usize = 24;

/// One direction of a link among the hops through a machine.
#[derive(Clone, Debug)]
struct Leg {
    /// Delay since the leg before: its link and the switches between.
    delay: Time,
    station: StationId,
    /// Where read requests in flight are bounded.
    reads: Option<StationId>,
    pcie: Pcie,
}

/// The hops between two nodes of a machine.
#[derive(Clone, Debug, Default)]
struct HopList {
    legs: Vec<Leg>,
    /// Delay after the last leg.
    tail: Time,
    /// Legs before the last switch, and the delay up to and through it.
    accepted: (usize, Time),
}

impl HopList {
    /// Delay of a pass without bytes.
    fn delay(&self) -> Time {
        self.legs.iter().map(|leg| leg.delay).sum::<Time>() + self.tail
    }
}

/// The stations of one processor.
#[derive(Clone, Copy, Debug)]
struct ProcessorStations {
    cpu: StationId,
    /// Where the packets bind that the NIC hands to all of its threads.
    packets: Option<StationId>,
}

/// The stations of one memory.
#[derive(Clone, Copy, Debug)]
struct MemoryStations {
    memory: StationId,
    banks: Option<StationId>,
    inbound_reads: Option<StationId>,
    /// Where bytes bind that the NIC reads out of it, and that it writes into it, with the rate of each.
    read_by_nic: Option<(StationId, BitRate)>,
    written_by_nic: Option<(StationId, BitRate)>,
}

/// The stations of one engine.
#[derive(Clone, Copy, Debug)]
struct EngineStations {
    /// The start of a request.
    requests: StationId,
    /// Bytes towards its endpoint.
    read: StationId,
    /// Bytes away from it.
    write: StationId,
    /// All bytes.
    total: StationId,
    /// Requests that it works on at once.
    slots: Option<StationId>,
}

/// An endpoint by positions within its machine.
#[derive(Clone, Copy, Debug)]
struct At {
    /// The processor: the class of its requests at the NIC.
    class: u8,
    /// The memory that the payload lies in.
    memory: u16,
    /// The processor's own memory, with its requests and completions.
    own: u16,
}

/// The stations and hops of one machine, found once: a design asks for thousands of routes.
#[derive(Clone, Debug)]
struct MachineStations {
    cores: StationId,
    inflight_slots: StationId,
    /// The endpoints that have a limit of in-flight slots in common, one or several, and where it is counted.
    slot_limits: Vec<(Vec<usize>, StationId)>,
    transmit: StationId,
    receive: StationId,
    processors: Vec<ProcessorStations>,
    memories: Vec<MemoryStations>,
    engines: Vec<EngineStations>,
    /// Of each cache, where its bandwidth binds.
    caches: Vec<Option<StationId>>,
    /// Of each way of a processor to a memory, where the bandwidth of its loads binds, and that of its stores.
    reaches: Vec<[Option<StationId>; 2]>,
    large_transfer_limits: Vec<StationId>,
    /// Where each end of a list of hops is in `hop_lists`: the processors in order, the memories in order, the NIC.
    nodes: Vec<usize>,
    /// From each node to each.
    hop_lists: Vec<Vec<HopList>>,
}

impl MachineStations {
    fn node(&self, end: End) -> usize {
        match end {
            End::Processor(class) => self.nodes[usize::from(class)],
            End::Memory(memory) => self.nodes[self.processors.len() + usize::from(memory)],
            End::Nic => self.nodes[self.nodes.len() - 1],
        }
    }

    fn hop_list(&self, from: End, to: End) -> &HopList {
        &self.hop_lists[self.node(from)][self.node(to)]
    }
}

/// Where hops within a machine begin or end.
#[derive(Clone, Copy, Debug)]
enum End {
    Processor(u8),
    Memory(u16),
    Nic,
}

/// Everything that routes need from a system, looked up once.
#[derive(Clone, Debug)]
pub struct Router {
    system: System,
    stations: Vec<Station>,
    by_name: BTreeMap<String, StationId>,
    machines: Vec<MachineStations>,
}

/// An endpoint with where it is.
#[derive(Clone, Copy)]
struct Place<'r> {
    machine: usize,
    indexes: At,
    at: &'r Machine,
    endpoint: &'r Endpoint,
    stations: &'r MachineStations,
}

impl<'r> Place<'r> {
    fn processor(&self) -> ProcessorStations {
        self.stations.processors[usize::from(self.indexes.class)]
    }

    fn memory(&self) -> MemoryStations {
        self.stations.memories[usize::from(self.indexes.memory)]
    }

    /// The processor's own memory, with its requests and completions.
    fn own_memory(&self) -> &'r Memory {
        &self.at.endpoints[usize::from(self.indexes.class)].memory
    }

    /// From the NIC of its machine to the payload's memory.
    fn down(&self) -> &'r HopList {
        self.stations.hop_list(End::Nic, End::Memory(self.indexes.memory))
    }

    /// From the payload's memory to the NIC of its machine.
    fn up(&self) -> &'r HopList {
        self.stations.hop_list(End::Memory(self.indexes.memory), End::Nic)
    }

    /// From the NIC to the processor's requests and completions.
    fn own_down(&self) -> &'r HopList {
        self.stations.hop_list(End::Nic, End::Memory(self.indexes.own))
    }

    /// From the processor's requests to the NIC.
    fn own_up(&self) -> &'r HopList {
        self.stations.hop_list(End::Memory(self.indexes.own), End::Nic)
    }

    /// From the processor to the NIC, as doorbells go.
    fn doorbell(&self) -> &'r HopList {
        self.stations.hop_list(End::Processor(self.indexes.class), End::Nic)
    }
}

impl Router {
    /// Looks up the stations and hops of `system`.
    pub fn new(system: &System) -> Result<Router, RouteError> {
        let at_most = |what, count: usize, most: usize| match count > most {
            true => Err(RouteError::TooMany { what, count, most }),
            false => Ok(()),
        };
        for machine in &system.machines {
            // Positions within a machine are of these widths in `At` and `Pick::Class`.
            at_most("processors of one machine", machine.endpoints.len(), 1 << u8::BITS)?;
            at_most("memories of one machine", machine.all_memories().count(), 1 << u16::BITS)?;
            let nic = &machine.nic;
            if nic.reserved_inflight_slots > nic.inflight_slots {
                return Err(RouteError::ReservedBeyondSlots {
                    nic: nic.name.clone(),
                    reserved: nic.reserved_inflight_slots,
                    inflight_slots: nic.inflight_slots,
                });
            }
            if nic.reserved_inflight_slots > 0 && machine.endpoints.len() > MOST_ENDPOINTS {
                return Err(RouteError::TooManyEndpoints {
                    nic: nic.name.clone(),
                    endpoints: machine.endpoints.len(),
                    most: MOST_ENDPOINTS,
                });
            }
        }
        let stations = stations(system);
        at_most("stations", stations.len(), 1 << u16::BITS)?;
        let by_name: BTreeMap<String, StationId> =
            stations.iter().enumerate().map(|(i, s)| (s.name.clone(), StationId(i as u16))).collect();
        let machines = system.machines.iter().map(|machine| machine_stations(machine, &by_name));
        let machines = machines.collect::<Result<_, _>>()?;
        Ok(Router { system: system.clone(), stations, by_name, machines })
    }

    /// The system that it was made from.
    pub fn system(&self) -> &System {
        &self.system
    }

    /// Every station, in the order of their identifiers.
    pub fn stations(&self) -> &[Station] {
        &self.stations
    }

    /// The station of that name.
    pub fn station(&self, name: &str) -> Option<StationId> {
        self.by_name.get(name).copied()
    }

    /// The processor of the host whose time an offload is to spare.
    pub fn host_processor(&self) -> Option<StationId> {
        self.processor(&self.system.host()?.name)
    }

    /// The processor of an endpoint; `None` where no machine has one of that name.
    pub fn processor(&self, endpoint: &str) -> Option<StationId> {
        self.system.machines.iter().zip(&self.machines).find_map(|(machine, stations)| {
            let mut all = machine.endpoints.iter().chain(&machine.apart);
            let meant = &all.find(|one| one.name == endpoint)?.processor.name;
            let at = machine.endpoints.iter().position(|one| one.processor.name == *meant)?;
            Some(stations.processors[at].cpu)
        })
    }

    /// How a station serves.
    pub fn kind(&self, station: StationId) -> &StationKind {
        &self.stations[station.index()].kind
    }

    /// The endpoint that a class of a pool stands for.
    pub fn class_name(&self, pool: StationId, class: u8) -> &str {
        &self.system.machines[self.stations[pool.index()].machine].endpoints[usize::from(class)].name
    }

    /// The class of a pool's requests that serve an endpoint; `None` where its machine lacks it.
    pub fn class_of(&self, pool: StationId, endpoint: &str) -> Option<u8> {
        let endpoints = &self.system.machines[self.stations[pool.index()].machine].endpoints;
        endpoints.iter().position(|one| one.name == endpoint).map(|class| class as u8)
    }

    /// The position of the machine that an endpoint belongs to.
    pub fn machine_of(&self, endpoint: &str) -> Option<usize> {
        let mut machines = self.system.machines.iter();
        machines.position(|m| m.endpoints.iter().chain(&m.apart).any(|e| e.name == endpoint))
    }

    /// Reads a path's name and checks that its endpoints and engine exist and are joined.
    pub fn path(&self, name: &str) -> Result<Path, RouteError> {
        let mut path: Path = name.parse()?;
        // `host-ssd`: the second word is an engine of the requester's machine.
        if let (None, Ok(from)) = (&path.engine, self.place(&path, &path.requester))
            && from.at.engines.iter().any(|engine| short(engine) == path.responder)
        {
            path.engine = Some(std::mem::replace(&mut path.responder, path.requester.clone()));
        }
        self.places(&path)?;
        if let Some(engine) = &path.engine {
            self.engine(&path, engine)?;
        }
        Ok(path)
    }

    /// Every path that exists, in the order of the profile.
    pub fn paths(&self) -> Vec<Path> {
        let names: Vec<(usize, &str)> = self
            .system
            .machines
            .iter()
            .enumerate()
            .flat_map(|(i, m)| m.endpoints.iter().map(move |e| (i, e.name.as_str())))
            .collect();
        let mut paths = Vec::new();
        for (from, requester) in &names {
            for (to, responder) in &names {
                let path =
                    Path { requester: requester.to_string(), responder: responder.to_string(), engine: None };
                if requester != responder {
                    paths.push(path.clone());
                }
                if from == to {
                    for engine in &self.system.machines[*from].engines {
                        let with = Path { engine: Some(short(engine).to_string()), ..path.clone() };
                        // Of one endpoint with itself an engine is listed where that is what it is for, whoever asks.
                        let is_usual = requester != responder || engine.work != EngineWork::Copy;
                        if is_usual && self.engine(&with, short(engine)).is_ok() {
                            paths.push(with);
                        }
                    }
                }
            }
        }
        paths
    }

    /// The paths that carry a verb, in the order of the profile. Of what no NIC carries these are all that there are;
    /// of the others those of [`Router::paths`].
    pub fn paths_of(&self, verb: Verb) -> Vec<Path> {
        let mut paths = self.paths();
        if !verb.row().carriers.contains(&Carrier::Nic) {
            paths.clear();
            for machine in &self.system.machines {
                let mut engines: Vec<Option<String>> =
                    machine.engines.iter().map(|engine| Some(short(engine).to_string())).collect();
                engines.insert(0, None);
                // To an engine a memory beside its processor is the same from whichever processor it is named.
                let is_own = |endpoint: &Endpoint| {
                    machine.endpoints.iter().any(|one| one.memory.name == endpoint.memory.name)
                };
                let is_processors = verb.row().carriers == [Carrier::Processor];
                let further = |to: bool| {
                    let apart = machine.apart.iter();
                    apart.filter(move |end| if is_processors { to } else { !is_own(end) })
                };
                for requester in machine.endpoints.iter().chain(further(false)) {
                    for responder in machine.endpoints.iter().chain(further(true)) {
                        let (requester, responder) = (requester.name.clone(), responder.name.clone());
                        paths.extend(engines.iter().map(|engine| Path {
                            requester: requester.clone(),
                            responder: responder.clone(),
                            engine: engine.clone(),
                        }));
                    }
                }
            }
        }
        paths.retain(|path| self.carrier(verb, path).is_ok());
        paths
    }

    fn place(&self, path: &Path, name: &str) -> Result<Place<'_>, RouteError> {
        for (machine, at) in self.system.machines.iter().enumerate() {
            if let Some(endpoint) = at.endpoints.iter().chain(&at.apart).find(|one| one.name == name) {
                let stations = &self.machines[machine];
                let memory = |memory: &Memory| {
                    let position = at.all_memories().position(|one| one.name == memory.name);
                    position.expect("it is the machine's") as u16
                };
                let class = at.endpoints.iter().position(|one| one.processor.name == endpoint.processor.name);
                let class = class.expect("every processor is an endpoint with its own memory");
                let own = memory(&at.endpoints[class].memory);
                let indexes = At { class: class as u8, memory: memory(&endpoint.memory), own };
                return Ok(Place { machine, indexes, at, endpoint, stations });
            }
        }
        // A memory at a node of its own, which no processor is named with.
        let mut apart: Vec<&Endpoint> =
            self.system.machines.iter().flat_map(|machine| &machine.apart).collect();
        apart.sort_by_key(|one| !one.processor.is_host);
        let is_meant = |one: &&Endpoint| {
            one.memory.name == name
                || one.name.strip_prefix(processor_of(&one.name)) == Some(&format!(":{name}"))
        };
        if let Some(meant) = apart.into_iter().find(is_meant) {
            let with = |end: &String| if end == name { meant.name.clone() } else { end.clone() };
            let (requester, responder) = (with(&path.requester), with(&path.responder));
            let meant = Path { requester, responder, engine: path.engine.clone() };
            return Err(RouteError::NoHops {
                path: path.to_string(),
                reason: format!(
                    "names the memory `{name}` without a processor: write it with one, as in `{meant}`"
                ),
            });
        }
        if let Some(refused) = self.engine_elsewhere(path, name) {
            return Err(refused);
        }
        let known: Vec<&str> =
            self.system.machines.iter().flat_map(|m| m.endpoints.iter().map(|e| e.name.as_str())).collect();
        Err(RouteError::UnknownEndpoint {
            path: path.to_string(),
            endpoint: name.to_string(),
            device: self.system.device.clone(),
            mode: self.system.mode.clone(),
            known: known.join(", "),
        })
    }

    /// That an engine is part of another device in this testbed, where it is.
    fn engine_elsewhere(&self, path: &Path, name: &str) -> Option<RouteError> {
        let mut machines = self.system.machines.iter();
        let (machine, device) = machines.find_map(|machine| {
            let found = machine.engines_elsewhere.iter().find(|(engine, _)| engine == name)?;
            Some((machine, &found.1))
        })?;
        let reason = format!(
            "names the engine `{name}`, which in the testbed `{}` is part of `{device}`: where `{}` has such an engine, its own file \
             has to describe it",
            self.system.testbed, machine.device
        );
        Some(RouteError::NoHops { path: path.to_string(), reason })
    }

    fn places(&self, path: &Path) -> Result<(Place<'_>, Place<'_>), RouteError> {
        Ok((self.place(path, &path.requester)?, self.place(path, &path.responder)?))
    }

    /// The engine of that name, and its position in its machine.
    fn engine(&self, path: &Path, name: &str) -> Result<(usize, &Engine), RouteError> {
        let (from, to) = self.places(path)?;
        let mut engines = from.at.engines.iter().enumerate();
        let (index, engine) = engines.find(|(_, e)| short(e) == name || e.name == name).ok_or_else(|| {
            let known: Vec<&str> = from.at.engines.iter().map(short).collect();
            self.engine_elsewhere(path, name).unwrap_or_else(|| RouteError::UnknownEngine {
                path: path.to_string(),
                engine: name.to_string(),
                requester: path.requester.clone(),
                known: if known.is_empty() { "none".to_string() } else { known.join(", ") },
            })
        })?;
        let works = match engine.work {
            EngineWork::Copy => "copies",
            EngineWork::Transform => "transforms",
            EngineWork::Store => "stores",
        };
        if from.machine != to.machine {
            return Err(RouteError::NoHops {
                path: path.to_string(),
                reason: format!(
                    "leaves the machine: `{}` is on another than `{}`, and `{name}` {works} within one",
                    path.responder, path.requester
                ),
            });
        }
        let no_hops = |reason: String| RouteError::NoHops { path: path.to_string(), reason };
        if engine.work == EngineWork::Store && path.requester != path.responder {
            return Err(no_hops(format!(
                "has two ends, and `{name}` keeps bytes itself: name the one memory, as in `{}-{name}`",
                path.requester
            )));
        }
        let processors = [from, to].map(|place| place.endpoint.processor.name.as_str());
        if engine.work != EngineWork::Store && !processors.contains(&engine.endpoint.as_str()) {
            let with = match (&engine.work, &engine.reaches[..]) {
                (EngineWork::Transform, [only]) => {
                    format!("bytes of `{only}` alone, for `{}`", engine.endpoint)
                }
                (EngineWork::Transform, _) => format!("for `{}` alone", engine.endpoint),
                (_, []) => format!("between `{}` and other endpoints of its machine only", engine.endpoint),
                (_, reaches) => {
                    format!("for `{}` alone, between the memories {}", engine.endpoint, reaches.join(", "))
                }
            };
            return Err(no_hops(format!(
                "does not touch `{}`, and `{name}` {works} {with}",
                engine.endpoint
            )));
        }
        let reached = |place: Place<'_>| {
            engine.reaches.is_empty() || engine.reaches.contains(&place.endpoint.memory.name)
        };
        if let Some(place) = [from, to].into_iter().find(|place| !reached(*place)) {
            return Err(no_hops(format!(
                "names the memory `{}`, and `{name}` reaches {}",
                place.endpoint.memory.name,
                engine.reaches.join(", ")
            )));
        }
        Ok((index, engine))
    }

    /// The verbs that a path takes, in the order of the table; none where the path does not exist.
    pub fn verbs(&self, path: &Path) -> Vec<Verb> {
        VERBS.iter().map(|row| row.verb).filter(|verb| self.carrier(*verb, path).is_ok()).collect()
    }

    /// What would carry the operation out, where it can.
    ///
    /// # Errors
    ///
    /// Where the path does not exist, or carries no such verb.
    pub fn carrier(&self, verb: Verb, path: &Path) -> Result<Carrier, RouteError> {
        let (from, to) = self.places(path)?;
        let one_processor = path.engine.is_none()
            && from.machine == to.machine
            && from.endpoint.processor.name == to.endpoint.processor.name;
        let carrier = match &path.engine {
            Some(name) => Carrier::Engine(self.engine(path, name)?.1.work),
            None if one_processor && verb.row().carriers.contains(&Carrier::Processor) => Carrier::Processor,
            None => Carrier::Nic,
        };
        let no_hops =
            |reason: &str| RouteError::NoHops { path: path.to_string(), reason: reason.to_string() };
        if path.requester == path.responder && carrier == Carrier::Nic {
            return Err(no_hops("joins an endpoint with itself; name two different ones"));
        }
        if one_processor && carrier == Carrier::Nic {
            return Err(no_hops(
                "joins a processor with itself; name two different ones, or `load` or `store`",
            ));
        }
        match (carrier, verb) {
            (Carrier::Processor, Verb::Forward) => drop(packet_costs(&from, &to, path)?),
            (Carrier::Processor, _) => drop(reach(&from, &to, path)?),
            (Carrier::Nic, _) => carries_verbs(&from, path).and_then(|()| carries_verbs(&to, path))?,
            (Carrier::Engine(_), _) => {}
        }
        if verb.row().carriers.contains(&carrier) {
            return Ok(carrier);
        }
        if verb.row().carriers.contains(&Carrier::Processor) {
            return Err(no_hops(&format!(
                "leaves the processor `{0}`, and `{verb}` is what it does itself: name it twice, as in `{0}-{0}:MEMORY`",
                from.endpoint.processor.name
            )));
        }
        let takes: Vec<&str> =
            VERBS.iter().filter(|row| row.carriers.contains(&carrier)).map(|row| row.name).collect();
        let carrier = match carrier {
            Carrier::Nic => "the NIC",
            Carrier::Engine(EngineWork::Copy) => "a DMA engine",
            Carrier::Engine(EngineWork::Transform) => "an engine that transforms",
            Carrier::Engine(EngineWork::Store) => "an engine that stores",
            Carrier::Processor => "a processor",
        };
        let takes = match takes.split_last() {
            Some((last, first)) if !first.is_empty() => format!("{} and {last}", first.join(", ")),
            _ => takes.concat(),
        };
        Err(RouteError::NoSuchVerb { verb, path: path.to_string(), carrier, takes })
    }

    /// The route of one operation.
    ///
    /// It holds for a single operation in steady state: connection set-up, cache misses of the
    /// NIC's own tables with very many connections, and pause frames are not in it.
    pub fn route(&self, operation: &PathOperation) -> Result<Route, RouteError> {
        let PathOperation { verb, path, payload, posting, access } = operation;
        let (from, to) = self.places(path)?;
        if *posting == Posting::Batch(0) {
            return Err(RouteError::EmptyBatch);
        }
        let carrier = self.carrier(*verb, path)?;
        let (bound, what) = match verb.row().transport {
            _ if *verb == Verb::Forward => (LONGEST_PACKET, "a packet"),
            Transport::Datagram => (self.system.network.mtu, "a datagram"),
            Transport::Reliable => (LONGEST_MESSAGE, "a message"),
        };
        if *payload > bound {
            return Err(RouteError::PayloadTooLarge { payload: *payload, bound, what });
        }
        // What was published of engines is of copies, by whatever verb, and always between two processors' own memories.
        let is_beside = |place: Place<'_>| place.endpoint.processor.name == place.endpoint.memory.name;
        let is_published_place = is_beside(from)
            && is_beside(to)
            && match carrier {
                Carrier::Engine(work) => work == EngineWork::Copy && path.requester != path.responder,
                Carrier::Nic => true,
                Carrier::Processor => false,
            };
        let payload = verb.own_payload().unwrap_or(*payload);
        let mut build = Build {
            router: self,
            from,
            to,
            row: verb.row(),
            payload,
            access: *access,
            visits: Vec::with_capacity(MOST_VISITS),
        };
        match (carrier, verb.row().moves, &path.engine) {
            (Carrier::Nic, Moves::ToRequester, _) => build.fetch(*posting),
            (Carrier::Nic, Moves::ToResponder, _) => build.deliver(*posting),
            (Carrier::Processor, ..) if *verb == Verb::Forward => build.forward(path)?,
            (Carrier::Processor, ..) => build.touch(path)?,
            (Carrier::Engine(_), _, name) => {
                let name = name.as_ref().expect("an engine carries what names it");
                let (index, engine) = self.engine(path, name)?;
                build.engine(index, engine);
            }
        }
        Ok(Route {
            path: path.clone(),
            verb: *verb,
            payload,
            visits: build.visits,
            ends_at_responder: verb.is_message(),
            is_published: verb.is_published() && is_published_place,
        })
    }
}

/// How the requester's processor reaches the responder's memory by itself.
fn reach<'r>(from: &Place<'r>, to: &Place<'_>, path: &Path) -> Result<&'r Reach, RouteError> {
    let (processor, memory) = (&from.endpoint.processor.name, &to.endpoint.memory.name);
    from.at.reach(processor, memory).ok_or_else(|| RouteError::NoHops {
        path: path.to_string(),
        reason: format!(
            "needs to know how `{processor}` reaches the memory `{memory}`: add a table of kind `reach` with `processor = \"{processor}\"` and `memory = \"{memory}\"` to the profile"
        ),
    })
}

/// What a packet costs the requester's processor that forwards it.
fn packet_costs<'r>(from: &Place<'r>, to: &Place<'_>, path: &Path) -> Result<&'r PacketCosts, RouteError> {
    let processor = &from.endpoint.processor;
    let no_hops = |reason: String| RouteError::NoHops { path: path.to_string(), reason };
    if from.endpoint.name != processor.name || to.endpoint.name != processor.name {
        return Err(no_hops(format!(
            "names another memory than that of `{0}`, in which packets lie: write `{0}-{0}`",
            processor.name
        )));
    }
    processor.packets.as_ref().ok_or_else(|| {
        no_hops(format!(
            "needs to know what a packet costs `{0}`: add a table of kind `packets` with `processor = \"{0}\"` to the profile",
            processor.name
        ))
    })
}

/// Refuses what a machine's NIC would have to carry and does not.
fn carries_verbs(place: &Place<'_>, path: &Path) -> Result<(), RouteError> {
    let nic = &place.at.nic;
    if nic.carries_verbs {
        return Ok(());
    }
    Err(RouteError::NoHops {
        path: path.to_string(),
        reason: format!(
            "needs verbs, and `{}` of `{}` is a port that hands packets to processors: `forward` is what it has, or describe a \
             NIC with `kind = \"nic\"`",
            nic.name, place.at.device
        ),
    })
}

/// Refuses what the NIC wrote last where it writes into caches, and the profile says of none of them how much.
fn check_arrivals(
    from: &Place<'_>,
    memory: &Memory,
    reach: &Reach,
    last_level: Option<&Cache>,
) -> Result<(), RouteError> {
    let mut caches = reach.through.iter().map(|name| from.at.cache(name)).chain(last_level);
    if !memory.ddio || caches.clone().any(|cache| cache.arrivals.is_some()) {
        return Ok(());
    }
    let memory = memory.name.clone();
    Err(match caches.next_back() {
        Some(cache) => RouteError::NoArrivals { memory, cache: cache.name.clone() },
        None => RouteError::NoCaches { memory, reach: reach.name.clone() },
    })
}

/// An engine's name as paths write it: without its machine's prefix.
fn short(engine: &Engine) -> &str {
    engine.name.rsplit('.').next().unwrap_or(&engine.name)
}

fn machine_stations(
    machine: &Machine,
    by_name: &BTreeMap<String, StationId>,
) -> Result<MachineStations, RouteError> {
    let named = |of: &str, part: &str| by_name[&format!("{of}.{part}")];
    let nic = &machine.nic.name;
    let processors = machine.endpoints.iter().map(|e| e.processor.name.as_str());
    let memories = machine.all_memories().map(|memory| memory.name.as_str());
    let ends: Vec<&str> = processors.chain(memories).chain([nic.as_str()]).collect();
    let mut names: Vec<&str> = Vec::new();
    ends.iter().for_each(|end| names.extend((!names.contains(end)).then_some(*end)));
    let nodes = ends.iter().map(|end| names.iter().position(|name| name == end).expect("it is named"));
    let nodes = nodes.collect();
    let mut hop_lists = Vec::with_capacity(names.len());
    for from in &names {
        let row: Result<Vec<HopList>, RouteError> = names
            .iter()
            .map(|to| if from == to { Ok(HopList::default()) } else { hop_list(machine, from, to, by_name) })
            .collect();
        hop_lists.push(row?);
    }
    let processors = machine.endpoints.iter().map(|e| {
        let costs = e.processor.packets.as_ref().filter(|costs| costs.packet_rate.is_some());
        ProcessorStations {
            cpu: named(&e.name, "cpu"),
            packets: costs.map(|costs| named(&costs.name, "packets")),
        }
    });
    let memories = machine.all_memories().map(|memory| MemoryStations {
        memory: named(&memory.name, "memory"),
        banks: (!memory.ddio).then(|| named(&memory.name, "banks")),
        inbound_reads: memory.inbound_read_rate.map(|_| named(&memory.name, "inbound_reads")),
        read_by_nic: memory.inbound_read_bandwidth.map(|rate| (named(&memory.name, "read_bytes"), rate)),
        written_by_nic: memory
            .inbound_write_bandwidth
            .map(|rate| (named(&memory.name, "written_bytes"), rate)),
    });
    Ok(MachineStations {
        cores: named(nic, "cores"),
        inflight_slots: named(nic, "inflight_slots"),
        slot_limits: slot_limits(machine).into_iter().map(|(of, name)| (of, by_name[&name])).collect(),
        transmit: named(nic, "transmit"),
        receive: named(nic, "receive"),
        processors: processors.collect(),
        memories: memories.collect(),
        engines: machine
            .engines
            .iter()
            .map(|e| {
                let [requests, read, write, total] = ENGINE_PARTS.map(|part| named(&e.name, part));
                let slots = e.queue_depth.map(|_| named(&e.name, "slots"));
                EngineStations { requests, read, write, total, slots }
            })
            .collect(),
        caches: machine.caches.iter().map(|one| one.bandwidth.map(|_| named(&one.name, "bytes"))).collect(),
        reaches: machine
            .reaches
            .iter()
            .map(|one| {
                let parts = [(one.load_bandwidth, "loads"), (one.store_bandwidth, "stores")];
                parts.map(|(rate, part)| rate.map(|_| named(&one.name, part)))
            })
            .collect(),
        large_transfer_limits: machine
            .large_transfer_limits
            .iter()
            .map(|limit| by_name[&limit.name])
            .collect(),
        nodes,
        hop_lists,
    })
}

fn hop_list(
    machine: &Machine,
    from: &str,
    to: &str,
    by_name: &BTreeMap<String, StationId>,
) -> Result<HopList, RouteError> {
    let hops = machine
        .hops(from, to)
        .map_err(|error| RouteError::NoHops { path: format!("{from}-{to}"), reason: error.to_string() })?;
    let mut hop_list = HopList::default();
    let mut delay = Time::ZERO;
    let mut total = Time::ZERO;
    for hop in hops {
        // A link is declared from the node nearer to the NIC.
        let outward = hop.direction == Direction::Forward;
        if let Some(pcie) = &hop.link.pcie {
            let side = if outward { "down" } else { "up" };
            let station = by_name[&format!("{}.{side}", hop.link.name)];
            let reads = pcie.read_requests.map(|_| by_name[&format!("{}.reads", hop.link.name)]);
            hop_list.legs.push(Leg { delay, station, reads, pcie: pcie.clone() });
            delay = Time::ZERO;
        }
        delay += hop.link.delay;
        total += hop.link.delay;
        if let Some(switch) = hop.switch {
            delay += switch.pass_time;
            total += switch.pass_time;
            hop_list.accepted = (hop_list.legs.len(), total);
        }
    }
    hop_list.tail = delay;
    Ok(hop_list)
}

struct Build<'r> {
    router: &'r Router,
    from: Place<'r>,
    to: Place<'r>,
    row: &'static VerbRow,
    payload: Bytes,
    access: AddressSpread,
    visits: Vec<Visit>,
}

impl<'r> Build<'r> {
    fn remote(&self) -> bool {
        self.from.machine != self.to.machine
    }

    fn delay(&mut self, label: &'static str, time: Time) {
        if time > Time::ZERO {
            self.visits.push(Visit::Delay { label, time });
        }
    }

    fn mark(&mut self, mark: Mark) {
        self.visits.push(Visit::Mark(mark, Time::ZERO));
    }

    fn serve(&mut self, label: &'static str, station: StationId, pick: Pick, occupancy: Time, latency: Time) {
        // What keeps nothing busy waits for nobody.
        if occupancy == Time::ZERO {
            self.delay(label, latency);
        } else {
            self.visits.push(Visit::Serve { label, station, pick, occupancy, latency, detached: false });
        }
    }

    fn detached(&mut self, label: &'static str, station: StationId, pick: Pick, occupancy: Time) {
        if occupancy > Time::ZERO {
            let latency = Time::ZERO;
            self.visits.push(Visit::Serve { label, station, pick, occupancy, latency, detached: true });
        }
    }

    /// The requester's processor posts, and the request reaches its NIC.
    fn post(&mut self, posting: Posting, inline: Bytes) {
        let costs = &self.from.endpoint.processor.verbs;
        let doorbell = self.from.doorbell();
        let request = self.from.at.nic.work_request_bytes + inline;
        let cpu = self.from.processor().cpu;
        match posting {
            Posting::Single => {
                self.serve("post (MMIO)", cpu, Pick::Any, costs.post_time, costs.post_latency);
                for leg in &doorbell.legs {
                    let packets = request.packets(WRITE_COMBINING);
                    let framed = Bytes::new(request.get() + packets * leg.pcie.write_header.get());
                    let time = link_rate(&leg.pcie).time_for(framed);
                    self.serve("work request over PCIe", leg.station, Pick::Any, time, time);
                }
                self.delay("doorbell to the NIC", doorbell.delay());
            }
            Posting::Batch(count) => {
                let (up, down, memory) = (self.from.own_up(), self.from.own_down(), self.from.own_memory());
                let list = costs.list(count);
                let each = Time::from_ps(list.ps() / u64::from(count));
                self.serve("post (doorbell batch)", cpu, Pick::Any, each, list);
                self.delay("doorbell to the NIC", doorbell.delay());
                let fetch = down.delay() + memory.read_time() + up.delay();
                self.delay("NIC fetches the requests", fetch);
                for leg in &down.legs {
                    let time = link_rate(&leg.pcie).time_for(leg.pcie.read_request);
                    self.detached("request fetch", leg.station, Pick::Any, time);
                }
                for leg in &up.legs {
                    let packets = request.packets(memory.pcie_mtu);
                    let framed = Bytes::new(request.get() + packets * leg.pcie.completion_header.get());
                    self.detached(
                        "request fetch",
                        leg.station,
                        Pick::Any,
                        link_rate(&leg.pcie).time_for(framed),
                    );
                }
            }
        }
    }

    fn pass(&mut self, place: Place<'r>) {
        let station = place.stations.cores;
        // The pool's own intervals are the occupancy; the pass is what the operation waits.
        self.visits.push(Visit::Serve {
            label: "NIC pass",
            station,
            pick: Pick::Class(place.indexes.class),
            occupancy: Time::ZERO,
            latency: place.at.nic.pass_time,
            detached: false,
        });
    }

    /// A packet without payload over the network, from `from` to `to`.
    fn header(&mut self, from: Place<'r>, to: Place<'r>) {
        let network = &self.router.system.network;
        let transmit = from.stations.transmit;
        let receive = to.stations.receive;
        let out = from.at.nic.port_rate.time_for(network.packet_header);
        let into = to.at.nic.port_rate.time_for(network.packet_header);
        self.serve("packet header", transmit, Pick::Any, out, out);
        self.delay("network", network.delay);
        self.serve("packet header", receive, Pick::Any, into, into);
    }

    /// The request travels to the responder's NIC, as a packet of its own or, where `ahead` of
    /// its payload, within the payload's first packet.
    fn travel(&mut self, ahead: bool) {
        if self.remote() {
            self.pass(self.from);
            self.mark(Mark::Departs);
            if ahead && self.payload > Bytes::ZERO {
                self.delay("network", self.router.system.network.delay);
            } else {
                self.header(self.from, self.to);
            }
            self.visits.push(Visit::Cross { from: self.from.machine, to: self.to.machine });
        } else {
            self.mark(Mark::Departs);
        }
        self.mark(Mark::Arrives);
    }

    fn bank(&mut self, place: Place<'r>, write: bool) {
        let memory = &place.endpoint.memory;
        // With DDIO the last-level cache answers, whose banks nothing published ever saturated.
        let Some(station) = place.memory().banks else { return };
        let range = self.access.range.unwrap_or(memory.capacity);
        let reach = range.get().div_ceil(memory.bank_stride.get()).clamp(1, memory.banks);
        let time = if write { memory.bank_write_time } else { memory.bank_read_time };
        let even = 1.0 / reach as f64;
        // The hottest line's bank also takes its even share of the rest.
        let hottest = if self.access.hottest > even {
            self.access.hottest + (1.0 - self.access.hottest) * even
        } else {
            even
        };
        let pick = Pick::Bank { reach: reach as u32, hottest };
        if write {
            self.detached("memory banks", station, pick, time);
        } else {
            self.serve("memory banks", station, pick, time, Time::ZERO);
        }
    }

    fn memory_hop(&self, place: Place<'r>, delay: Time, detached: bool) -> Hop {
        Hop {
            station: place.memory().memory,
            delay,
            rate: place.endpoint.memory.bandwidth,
            mtu: NO_PACKETS,
            header: Bytes::ZERO,
            empty_packet: false,
            detached,
            cut: None,
            whole: Time::ZERO,
            first: Time::ZERO,
        }
    }

    /// The way from the NIC to what it reads out of a memory.
    fn read_by_nic_hop(&self, place: Place<'r>) -> Option<Hop> {
        let (station, rate) = place.memory().read_by_nic?;
        Some(self.line_hop(station, Time::ZERO, rate))
    }

    /// The way from the NIC to where it writes, and the memory itself; `delay` is what lies before both.
    fn written_by_nic_hops(&self, place: Place<'r>, delay: Time, detached: bool, hops: &mut Vec<Hop>) {
        let mut before = delay;
        if let Some((station, rate)) = place.memory().written_by_nic {
            hops.push(Hop { detached, ..self.line_hop(station, std::mem::take(&mut before), rate) });
        }
        hops.push(self.memory_hop(place, before, detached));
    }

    fn line_hop(&self, station: StationId, delay: Time, rate: BitRate) -> Hop {
        Hop {
            station,
            delay,
            rate,
            mtu: NO_PACKETS,
            header: Bytes::ZERO,
            empty_packet: false,
            detached: false,
            cut: None,
            whole: Time::ZERO,
            first: Time::ZERO,
        }
    }

    /// So many read requests share a round trip, whatever each asks for up to the limit.
    fn reads_hop(&self, station: StationId, limit: Bytes, round_trip: Time, requests: u64) -> Hop {
        // Requests are counted and not bytes, so nearly all of a packet is its header.
        const REQUEST: Bytes = Bytes::new(1 << 26);
        let each = round_trip.as_seconds().max(1e-12) / requests.max(1) as f64;
        let rate = BitRate::from_bits_per_second((REQUEST.get() as f64 * 8.0 / each).round() as u64);
        Hop { mtu: limit, header: REQUEST, ..self.line_hop(station, Time::ZERO, rate) }
    }

    /// Hops that carry data out of an endpoint's memory as completions, and the delay after them.
    fn fetch_hops(&self, place: Place<'r>, bytes: Bytes, hop_list: &HopList, hops: &mut Vec<Hop>) -> Time {
        let (mtu, cut) = completions(&place.endpoint.memory, bytes);
        for leg in &hop_list.legs {
            let hop = pcie_hop(leg, leg.pcie.completion_header, mtu, Time::ZERO, false);
            hops.push(Hop { cut, ..hop });
            if let (Some(station), Some(requests)) = (leg.reads, leg.pcie.read_requests) {
                let round_trip = hop_list.delay() + place.endpoint.memory.read_time() + hop_list.delay();
                hops.push(self.reads_hop(station, leg.pcie.read_request_limit, round_trip, requests));
            }
        }
        hop_list.tail
    }

    /// The two ports, for data from `from` to `to`; `delay` is what lies before the first.
    fn port_hops(&self, from: Place<'r>, to: Place<'r>, delay: Time, hops: &mut Vec<Hop>) {
        let network = &self.router.system.network;
        let port = |station: StationId, rate: BitRate, delay: Time| Hop {
            station,
            delay,
            rate,
            mtu: network.mtu,
            header: network.packet_header,
            empty_packet: true,
            detached: false,
            cut: None,
            whole: Time::ZERO,
            first: Time::ZERO,
        };
        hops.push(port(from.stations.transmit, from.at.nic.port_rate, delay));
        hops.push(port(to.stations.receive, to.at.nic.port_rate, network.delay));
    }

    /// The large-transfer limit that this operation falls into, as a hop.
    fn large_transfer_hop(&self, hops: &mut Vec<Hop>) {
        let to = self.to;
        let requester = (!self.remote()).then_some(self.from.endpoint.processor.name.as_str());
        let mut limits = to.at.large_transfer_limits_of(requester, &to.endpoint.memory.name, self.row.name);
        if let Some((index, limit)) = limits.find(|(_, limit)| self.payload > limit.above) {
            hops.push(self.line_hop(to.stations.large_transfer_limits[index], Time::ZERO, limit.rate));
        }
    }

    fn requests(&self, hop_list: &HopList) -> Vec<Requests> {
        hop_list
            .legs
            .iter()
            .filter(|leg| leg.pcie.read_request > Bytes::ZERO)
            .map(|leg| Requests {
                station: leg.station,
                rate: link_rate(&leg.pcie),
                limit: leg.pcie.read_request_limit,
                size: leg.pcie.read_request,
                whole: Time::ZERO,
            })
            .collect()
    }

    fn train(
        &mut self,
        hops: Vec<Hop>,
        requests: Vec<Requests>,
        release: Option<(usize, Time)>,
        settle: Time,
    ) {
        let train = self.train_of(self.payload, hops, requests, release, settle);
        self.visits.push(Visit::Train(train.costed()));
    }

    fn train_of(
        &self,
        bytes: Bytes,
        hops: Vec<Hop>,
        requests: Vec<Requests>,
        release: Option<(usize, Time)>,
        settle: Time,
    ) -> Train {
        let cuts = hops.iter().filter(|hop| hop.mtu < NO_PACKETS && hop.header < hop.mtu);
        // Where no hop cuts packets, bytes leave a hop in such pieces as a link to the memory would carry, so that those which stay
        // near are no later than those that pass a link on top.
        let whole = || self.from.endpoint.memory.pcie_mtu.min(self.to.endpoint.memory.pcie_mtu);
        let segment = cuts.map(|hop| hop.mtu).max().unwrap_or_else(whole);
        Train {
            bytes,
            hops,
            requests,
            release,
            segment,
            marks_source: true,
            settle,
            marks_target: true,
            burst: Bytes::ZERO,
        }
    }

    /// The NIC writes a completion entry into the place's memory.
    fn completion_entry(&mut self, place: Place<'r>) {
        let entry = place.at.nic.completion_bytes;
        if entry == Bytes::ZERO {
            return;
        }
        for leg in &place.own_down().legs {
            let time = link_rate(&leg.pcie).time_for(entry + leg.pcie.write_header);
            self.detached("completion entry", leg.station, Pick::Any, time);
        }
    }

    /// The completion reaches the requester's memory and program.
    fn complete(&mut self) {
        self.completion_entry(self.from);
        let costs = &self.from.endpoint.processor.verbs;
        self.mark(Mark::Acknowledged);
        self.serve("poll", self.from.processor().cpu, Pick::Any, costs.poll_time, costs.poll_latency);
    }

    /// A packet without payload travels back to the requester.
    fn answer(&mut self) {
        let (from, to) = (self.from, self.to);
        if self.remote() {
            self.header(to, from);
            self.visits.push(Visit::Cross { from: to.machine, to: from.machine });
            self.delay("NIC pass", from.at.nic.pass_time);
        }
        self.delay("completion to the requester", from.own_down().delay());
    }

    /// The payload comes from the responder's memory.
    fn fetch(&mut self, posting: Posting) {
        self.post(posting, Bytes::ZERO);
        self.travel(false);
        let (from, to) = (self.from, self.to);
        if self.payload == Bytes::ZERO {
            // The NIC answers without touching PCIe: no in-flight slot, no memory.
            self.pass(to);
            self.delay("NIC pass", to.at.nic.pass_time);
            self.answer();
            return self.complete();
        }
        assert_eq!(self.row.held, SlotHold::UntilRead, "what is fetched is held until it has left");
        self.acquire(None);
        self.pass(to);
        self.delay("request to memory", to.down().delay());
        if let (Some(rate), Some(station)) = (to.endpoint.memory.inbound_read_rate, to.memory().inbound_reads)
        {
            let label = inbound_reads(to.at.is_of_host(&to.endpoint.memory.name));
            self.serve(label, station, Pick::Any, rate.interval(), Time::ZERO);
        }
        self.bank(to, false);
        if self.row.responder == Responder::Changes {
            self.bank(to, true);
        }
        self.delay("memory read", to.endpoint.memory.read_time());
        let mut hops = vec![self.memory_hop(to, Time::ZERO, false)];
        hops.extend(self.read_by_nic_hop(to));
        let tail = self.fetch_hops(to, self.payload, to.up(), &mut hops);
        self.large_transfer_hop(&mut hops);
        let pass = to.at.nic.pass_time;
        let release = Some((hops.len() - 1, tail + pass));
        let mut delay = tail + pass;
        if self.remote() {
            self.port_hops(to, from, delay, &mut hops);
            delay = from.at.nic.pass_time;
        }
        let tail = deliver_hops(from, from.down(), delay, usize::MAX, &mut hops);
        self.written_by_nic_hops(from, tail, false, &mut hops);
        self.train(hops, self.requests(to.down()), release, Time::ZERO);
        if self.remote() {
            self.visits.push(Visit::Cross { from: to.machine, to: from.machine });
        }
        self.complete();
    }

    /// The payload's hops from the requester's memory to the responder's NIC.
    fn outbound(&mut self, inline: bool) -> (Vec<Hop>, Vec<Requests>) {
        let (from, to) = (self.from, self.to);
        let mut hops = Vec::new();
        let mut requests = Vec::new();
        if !inline {
            hops.push(self.memory_hop(from, Time::ZERO, false));
            hops.extend(self.read_by_nic_hop(from));
            self.fetch_hops(from, self.payload, from.up(), &mut hops);
            requests = self.requests(from.down());
        }
        // A message without payload is the packet that went ahead.
        if self.remote() && self.payload > Bytes::ZERO {
            self.port_hops(from, to, Time::ZERO, &mut hops);
        }
        // The request that went ahead of the data has paid the delays up to the responder's NIC.
        for hop in &mut hops {
            hop.delay = Time::ZERO;
        }
        self.large_transfer_hop(&mut hops);
        (hops, requests)
    }

    /// Posts a request that carries a payload; true where the payload is inside it.
    fn post_payload(&mut self, posting: Posting) -> bool {
        let inline = self.payload <= self.from.at.nic.inline_limit;
        self.post(posting, if inline { self.payload } else { Bytes::ZERO });
        if !inline {
            let fetch =
                self.from.down().delay() + self.from.endpoint.memory.read_time() + self.from.up().delay();
            self.delay("NIC fetches the payload", fetch);
        }
        inline
    }

    /// Takes an in-flight slot of the responder's NIC, for `time` or until the train releases it.
    ///
    /// Within a machine that NIC is the requester's too, and the slot is one of both endpoints.
    fn acquire(&mut self, time: Option<Time>) {
        if time == Some(Time::ZERO) {
            return;
        }
        let stations = self.to.stations;
        let ends = [(!self.remote()).then_some(self.from.indexes.class), Some(self.to.indexes.class)];
        let is_one = |endpoint: &usize| ends.iter().flatten().any(|end| usize::from(*end) == *endpoint);
        let held = stations.slot_limits.iter().filter(|(endpoints, _)| endpoints.iter().any(is_one));
        let mut limits = [None; MOST_LIMITS];
        for (place, (_, station)) in limits.iter_mut().zip(held) {
            *place = Some(*station);
        }
        let inflight_slots = InflightSlots { pool: stations.inflight_slots, limits };
        self.visits.push(Visit::Acquire { inflight_slots, time });
    }

    /// The payload goes to the responder: into its memory, or to its program.
    fn deliver(&mut self, posting: Posting) {
        let inline = self.post_payload(posting);
        let is_received = self.row.responder == Responder::Receives;
        if self.row.transport == Transport::Datagram {
            self.visits.push(Visit::Mark(Mark::Acknowledged, self.from.at.nic.pass_time));
        }
        self.travel(true);
        let to = self.to;
        let costs = &to.endpoint.processor.verbs;
        match self.row.held {
            SlotHold::WhileWritten if self.payload > Bytes::ZERO => self.acquire(Some(costs.write_slot_time)),
            SlotHold::WhileReceived => self.acquire(Some(costs.receive_slot_time)),
            SlotHold::WhileWritten | SlotHold::UntilRead | SlotHold::Nothing => {}
        }
        self.pass(to);
        if self.payload > Bytes::ZERO || is_received {
            self.bank(to, true);
            let down = to.down();
            let (mut hops, requests) = self.outbound(inline);
            // A write is over once the last switch has taken it; a message once all of it is in memory.
            let (attached, settle) = match is_received {
                true => (usize::MAX, Time::ZERO),
                false => (down.accepted.0, to.endpoint.memory.write_time()),
            };
            let tail = deliver_hops(to, down, Time::ZERO, attached, &mut hops);
            self.written_by_nic_hops(to, tail, !is_received, &mut hops);
            self.train(hops, requests, None, settle);
            if !is_received {
                self.delay("write accepted by the switch", down.accepted.1);
            }
        }
        if !is_received {
            self.delay("NIC pass", to.at.nic.pass_time);
            self.answer();
            return self.complete();
        }
        if self.row.transport == Transport::Reliable {
            let network = if self.remote() { self.router.system.network.delay } else { Time::ZERO };
            let after = network + self.from.at.nic.pass_time + self.from.own_down().delay();
            self.visits.push(Visit::Mark(Mark::Acknowledged, after));
        }
        self.completion_entry(to);
        self.mark(Mark::Delivered);
        self.serve("receive", to.processor().cpu, Pick::Any, costs.receive_time, costs.receive_latency);
    }

    /// The requester's processor moves the payload by its own loads or stores, which keep one of its threads.
    ///
    /// Times and bytes are those expected of addresses spread evenly over the access's range, of which each cache on the
    /// way holds the first that fits it: of what a NIC wrote last, the newest that it takes of such writes.
    fn touch(&mut self, path: &Path) -> Result<(), RouteError> {
        let (from, memory) = (self.from, &self.to.endpoint.memory);
        let reach = reach(&from, &self.to, path)?;
        self.mark(Mark::Departs);
        self.mark(Mark::Arrives);
        let range = self.access.range.unwrap_or(memory.capacity).get().max(1) as f64;
        let lines = self.payload.get().div_ceil(reach.line.get());
        let line_bytes = (lines * reach.line.get()) as f64;
        let last_level = from.at.last_level(reach).map(|(_, cache, saved)| (cache, saved));
        if self.access.arrived {
            check_arrivals(&from, memory, reach, last_level.map(|(cache, _)| cache))?;
        }
        let (mut answered, mut waited) = (0.0, 0.0);
        // What lies further away comes no sooner, also where latencies are drawn each from its own interval.
        let mut slowest = Time::ZERO;
        let mut detached = Vec::new();
        // The share of addresses that a cache answers, and nearer ones do not, for `latency` each.
        let mut look = |cache: &Cache, latency: Time, bytes: f64| {
            slowest = slowest.max(latency);
            let held = match self.access.arrived {
                true => cache.arrivals.filter(|_| memory.ddio).unwrap_or(Bytes::ZERO),
                false => cache.capacity,
            };
            let share = ((held.get() as f64 / range).min(1.0) - answered).max(0.0);
            answered += share;
            waited += share * slowest.ps() as f64;
            let index = from.at.caches.iter().position(|one| one.name == cache.name);
            let station = from.stations.caches[index.expect("it is one of its machine")];
            let rate = cache.bandwidth.zip(station).filter(|_| share > 0.0);
            detached.extend(rate.map(|(rate, station)| ("cache", station, rate, bytes * share)));
            answered
        };
        let mut nearer = 0.0;
        let mut nearest = None;
        for name in &reach.through {
            let cache = from.at.cache(name);
            // The nearest gives the thread its bytes, those behind it give whole lines.
            let bytes = if nearest.is_none() { self.payload.get() as f64 } else { line_bytes };
            nearest.get_or_insert(cache);
            nearer = look(cache, cache.latency, bytes);
        }
        let mut held = nearer;
        if let Some((cache, saved)) = last_level {
            // No farther processor is nearer to a cache than its own.
            held = look(cache, reach.latency.saturating_sub(saved).max(cache.latency), line_bytes);
        }
        waited += (1.0 - held) * reach.latency.max(slowest).ps() as f64;
        let index = from.at.reaches.iter().position(|one| one.name == reach.name);
        let stations = from.stations.reaches[index.expect("it is one of its machine")];
        let way = match self.row.moves {
            Moves::ToRequester => (reach.load_bandwidth.zip(stations[0]), line_bytes),
            // A store sends what it writes.
            Moves::ToResponder => (reach.store_bandwidth.zip(stations[1]), self.payload.get() as f64),
        };
        detached.extend(way.0.map(|(rate, station)| ("reach", station, rate, way.1 * (1.0 - nearer))));
        detached.push(("memory", self.to.memory().memory, memory.bandwidth, way.1 * (1.0 - held)));
        let hit = nearest.map_or(0.0, |cache| cache.latency.ps() as f64);
        let bytes = nearest.and_then(|cache| cache.thread_bandwidth).map(|rate| rate.time_for(self.payload));
        let bytes = bytes.map_or(0.0, |time| (time.ps() as f64 - hit).max(0.0));
        let further = lines.saturating_sub(1) as f64 * (waited - hit).max(0.0) / reach.outstanding as f64;
        let time = Time::from_ps((waited + further + bytes).round() as u64);
        let cpu = from.processor().cpu;
        self.serve(self.row.name, cpu, Pick::Any, time, time);
        for (label, station, rate, bytes) in detached {
            self.detached(label, station, Pick::Any, rate.time_for(Bytes::new(bytes.round() as u64)));
        }
        self.mark(Mark::Acknowledged);
        Ok(())
    }

    /// A packet comes in by the port, a thread of the processor handles it, and it goes out by the port.
    fn forward(&mut self, path: &Path) -> Result<(), RouteError> {
        let from = self.from;
        let costs = packet_costs(&from, &self.to, path)?;
        let (nic, memory, stations) = (&from.at.nic, &from.endpoint.memory, from.processor());
        let wire = nic.port_rate.time_for(self.payload);
        self.mark(Mark::Departs);
        self.serve("receive", from.stations.receive, Pick::Any, wire, wire);
        for (hops, is_in) in [(from.down(), true), (from.up(), false)] {
            if nic.carries_verbs {
                self.pass(from);
            }
            for leg in &hops.legs {
                let headers = leg.pcie.write_header.get() * self.payload.packets(memory.pcie_mtu);
                let framed = Bytes::new(self.payload.get() + headers);
                self.detached("packet", leg.station, Pick::Any, link_rate(&leg.pcie).time_for(framed));
            }
            let own = self.from.memory();
            let inbound = if is_in { own.written_by_nic } else { own.read_by_nic };
            for (station, rate) in inbound.into_iter().chain([(own.memory, memory.bandwidth)]) {
                self.detached("memory", station, Pick::Any, rate.time_for(self.payload));
            }
            self.delay("between port and processor", hops.delay());
            if is_in {
                if let (Some(rate), Some(station)) = (costs.packet_rate, stations.packets) {
                    self.serve("packet handed over", station, Pick::Any, rate.interval(), Time::ZERO);
                }
                let bytes = costs.byte_rate.map_or(Time::ZERO, |rate| rate.time_for(self.payload));
                let time = costs.packet_time + bytes;
                self.serve(self.row.name, stations.cpu, Pick::Any, time, time);
            }
        }
        self.serve("transmit", from.stations.transmit, Pick::Any, wire, wire);
        self.mark(Mark::Arrives);
        self.mark(Mark::Acknowledged);
        Ok(())
    }

    /// An engine moves the payload; the NIC takes no part.
    fn engine(&mut self, index: usize, engine: &'r Engine) {
        let (from, to) = (self.from, self.to);
        let own = if engine.endpoint == from.endpoint.processor.name { from } else { to };
        // What stores bytes is posted to by whoever asks for them.
        let cpu = if engine.work == EngineWork::Store { from.processor().cpu } else { own.processor().cpu };
        self.serve("post to the engine", cpu, Pick::Any, engine.post_time, engine.post_time);
        self.mark(Mark::Departs);
        self.mark(Mark::Arrives);
        let stations = from.stations.engines[index];
        if let Some(pool) = stations.slots {
            let slots = InflightSlots { pool, limits: [None; MOST_LIMITS] };
            let time = (self.payload == Bytes::ZERO).then_some(engine.request_time);
            self.visits.push(Visit::Acquire { inflight_slots: slots, time });
        }
        self.delay("engine start", engine.start_latency);
        let is_read = self.row.moves == Moves::ToRequester;
        if let (false, EngineWork::Store, Some(latency)) = (is_read, engine.work, engine.store_latency) {
            self.delay("engine stores", latency);
        }
        // One that sends its TLPs one by one starts what it reads and what it writes apart, with their bytes.
        if engine.packet_time.is_none() || self.payload == Bytes::ZERO {
            self.serve("engine request", stations.requests, Pick::Any, engine.request_time, Time::ZERO);
        }
        if let Some(rate) = engine.buffer_rate {
            self.delay("engine buffers", rate.time_for(self.payload));
        }
        if self.payload > Bytes::ZERO {
            let node = from.at.endpoints.iter().position(|one| one.processor.name == engine.endpoint);
            let node = End::Processor(node.expect("an engine belongs to a processor of its machine") as u8);
            let slow = self.payload > engine.slow_above.unwrap_or(self.payload);
            let at_most =
                |rate: BitRate| engine.slow_rate.filter(|_| slow).map_or(rate, |slow| slow.min(rate));
            let read = (stations.read, at_most(engine.read_rate));
            let write = (stations.write, at_most(engine.write_rate));
            let total = (stations.total, engine.total_rate);
            let one = Carried {
                node,
                source: None,
                target: None,
                engine,
                bytes: self.payload,
                is_first: true,
                is_last: true,
            };
            match engine.work {
                EngineWork::Copy => {
                    let (source, target) = if is_read { (to, from) } else { (from, to) };
                    // What lies at the engine's own node it neither asks for nor sends away; within it, it does both.
                    let is_away = |place: Place<'r>| {
                        let stations = place.stations;
                        stations.node(node) != stations.node(End::Memory(place.indexes.memory))
                    };
                    let is_inner = !is_away(source) && !is_away(target);
                    let reads = (is_away(source) || is_inner).then_some(read);
                    let writes = (is_away(target) || is_inner).then_some(write);
                    // What moves both ways takes of the bandwidth of both directions together twice.
                    let both = reads.is_some() && writes.is_some();
                    let total = (
                        total.0,
                        if both {
                            BitRate::from_bits_per_second(total.1.bits_per_second() / 2)
                        } else {
                            total.1
                        },
                    );
                    let lines: Vec<_> = [reads, writes].into_iter().flatten().collect();
                    let copied = Carried { source: Some(source), target: Some(target), ..one };
                    self.carry(copied, &lines, total, stations.slots);
                }
                EngineWork::Store if is_read => {
                    self.carry(Carried { target: Some(from), ..one }, &[read], total, stations.slots);
                }
                EngineWork::Store => {
                    self.carry(Carried { source: Some(from), ..one }, &[write], total, stations.slots);
                }
                EngineWork::Transform => {
                    let output = self.payload.get() as f64 * engine.output_share.unwrap_or(0.0);
                    let bytes = Bytes::new(output.round() as u64);
                    let is_last = bytes == Bytes::ZERO;
                    let slots = stations.slots.filter(|_| is_last);
                    self.carry(Carried { source: Some(from), is_last, ..one }, &[read], total, slots);
                    if !is_last {
                        let output = Carried { target: Some(to), bytes, is_first: false, ..one };
                        self.carry(output, &[write], total, stations.slots);
                    }
                }
            }
        }
        self.mark(Mark::Acknowledged);
        self.delay("poll the engine", engine.poll_latency);
    }

    /// Bytes move through the lines of an engine, of one direction or both and of both together: from a memory or from what
    /// it keeps, to a memory or to what it keeps.
    fn carry(
        &mut self,
        carried: Carried<'r>,
        lines: &[(StationId, BitRate)],
        total: (StationId, BitRate),
        slots: Option<StationId>,
    ) {
        let Carried { node, source, target, engine, bytes, is_first, is_last } = carried;
        let (mut hops, mut requests, mut tail) = (Vec::new(), Vec::new(), Time::ZERO);
        // Where the bytes go, and in which TLPs.
        let written = target.map(|target| {
            let mtu = target.endpoint.memory.pcie_mtu;
            let packet = engine.packet_payload.map_or(mtu, |packet| packet.min(mtu));
            (target, target.stations.hop_list(node, End::Memory(target.indexes.memory)), packet)
        });
        // What moves both ways is started by its WRITE, which has the TLPs.
        if let (Some(time), Some((line, _))) = (engine.packet_time, lines.last()) {
            // A memory at the engine's own node gets no TLPs.
            let packets = match &written {
                Some((_, hop_list, packet)) if !hop_list.legs.is_empty() => bytes.packets(*packet),
                _ => 0,
            };
            let request = if is_first { engine.request_time } else { Time::ZERO };
            self.serve("engine request", *line, Pick::Any, request + time.times(packets), Time::ZERO);
        }
        if let Some(source) = source {
            let memory = End::Memory(source.indexes.memory);
            let ask = source.stations.hop_list(node, memory);
            self.delay("request to memory", ask.delay());
            self.bank(source, false);
            self.delay("memory read", source.endpoint.memory.read_time());
            hops.push(self.memory_hop(source, Time::ZERO, false));
            tail = self.fetch_hops(source, bytes, source.stations.hop_list(memory, node), &mut hops);
            requests = self.requests(ask);
        }
        for (station, rate) in lines.iter().chain([&total]) {
            hops.push(self.line_hop(*station, std::mem::take(&mut tail), *rate));
        }
        let release = slots.map(|_| (hops.len() - 1, Time::ZERO));
        if let Some((target, hop_list, packet)) = written {
            let tail = written_hops(packet, hop_list, Time::ZERO, usize::MAX, &mut hops);
            hops.push(self.memory_hop(target, tail, false));
            self.bank(target, true);
        }
        let train = self.train_of(bytes, hops, requests, release, Time::ZERO);
        let train = Train { marks_source: is_first, marks_target: is_last, ..train };
        self.visits.push(Visit::Train(train.costed()));
    }
}

/// Bytes that an engine moves in one go.
#[derive(Clone, Copy)]
struct Carried<'r> {
    /// Where the engine is.
    node: End,
    /// The memory that they come from; absent for what the engine keeps or has made.
    source: Option<Place<'r>>,
    /// The memory that they go to; absent for what the engine keeps or works on.
    target: Option<Place<'r>>,
    engine: &'r Engine,
    bytes: Bytes,
    /// Whether the operation's bytes leave their source with them, and reach their target.
    is_first: bool,
    is_last: bool,
}

/// Hops that carry data to an endpoint's memory as posted writes, detached from the leg
/// `detached_from` on; returns the delay after them. `delay` is what lies before the first.
fn deliver_hops(
    place: Place<'_>,
    hop_list: &HopList,
    delay: Time,
    detached_from: usize,
    hops: &mut Vec<Hop>,
) -> Time {
    let mtu = place.endpoint.memory.pcie_mtu;
    written_hops(mtu, hop_list, delay, detached_from, hops)
}

/// The same in TLPs of at most `mtu`.
fn written_hops(
    mtu: Bytes,
    hop_list: &HopList,
    delay: Time,
    detached_from: usize,
    hops: &mut Vec<Hop>,
) -> Time {
    let mut before = delay;
    for (index, leg) in hop_list.legs.iter().enumerate() {
        let detached = index >= detached_from;
        let mut hop = pcie_hop(leg, leg.pcie.write_header, mtu, before, detached);
        if detached_from != usize::MAX && !detached {
            // The delay up to the last switch stands in the route as a visit of its own.
            hop.delay = before;
        }
        hops.push(hop);
        before = Time::ZERO;
    }
    before + hop_list.tail
}

/// The largest completion in which a memory answers a read of so many bytes, and how many are shorter.
fn completions(memory: &Memory, bytes: Bytes) -> (Bytes, Option<PacketCut>) {
    let Memory { pcie_mtu, read_completion_boundary, cut_up_to, combined_share, .. } = memory;
    let (Some(boundary), Some(cut_up_to), Some(share)) =
        (*read_completion_boundary, *cut_up_to, *combined_share)
    else {
        return (*pcie_mtu, None);
    };
    if bytes <= cut_up_to {
        return (boundary, None);
    }
    let per_million = ((1.0 - share).clamp(0.0, 1.0) * f64::from(PacketCut::ALL)).round() as u32;
    (*pcie_mtu, (per_million > 0).then_some(PacketCut { payload: boundary, per_million }))
}

fn pcie_hop(leg: &Leg, header: Bytes, mtu: Bytes, before: Time, detached: bool) -> Hop {
    Hop {
        station: leg.station,
        delay: leg.delay + before,
        rate: link_rate(&leg.pcie),
        mtu,
        header,
        empty_packet: false,
        detached,
        cut: None,
        whole: Time::ZERO,
        first: Time::ZERO,
    }
}

/// What the line encoding leaves of a link's bandwidth.
fn link_rate(pcie: &Pcie) -> BitRate {
    BitRate::from_bits_per_second((pcie.rate.bits_per_second() as f64 * pcie.encoding).round() as u64)
}
