//! From a system and an operation to a route.

use crate::path::{Path, RouteError, Verb};
use crate::station::{Kind, Station, StationId, groups, stations};
use crate::visit::{
    Access, Contexts, Hop, MOST_ENDPOINTS, MOST_GROUPS, Mark, Pick, Requests, Route, Train, Visit,
};
use offpath_profile::{Direction, Endpoint, Engine, Machine, Pcie, System};
use offpath_quantity::{BitRate, Bytes, Time};
use std::collections::BTreeMap;

/// How requests reach the adapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Posting {
    /// One MMIO a request.
    Single,
    /// One doorbell for a list of so many requests, which the adapter fetches itself.
    Batch(u32),
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq)]
pub struct Operation {
    /// The verb.
    pub verb: Verb,
    /// Between which endpoints.
    pub path: Path,
    /// The payload.
    pub payload: Bytes,
    /// How it is posted.
    pub posting: Posting,
    /// How its addresses are spread over the responder's memory.
    pub access: Access,
}

impl Operation {
    /// An operation posted alone at random addresses.
    pub fn new(verb: Verb, path: Path, payload: Bytes) -> Operation {
        Operation { verb, path, payload, posting: Posting::Single, access: Access::UNIFORM }
    }

    /// The same with another way of posting.
    pub fn posted(self, posting: Posting) -> Operation {
        Operation { posting, ..self }
    }

    /// The same with addresses spread otherwise.
    pub fn accessing(self, access: Access) -> Operation {
        Operation { access, ..self }
    }
}

/// The longest message of a reliable connection: the 1 GiB that common adapters report, half of what
/// InfiniBand allows.
pub const LONGEST_MESSAGE: Bytes = Bytes::new(1 << 30);
/// What a write-combining store buffer sends in one TLP.
const WRITE_COMBINING: Bytes = Bytes::new(64);
/// A hop that does not cut its bytes into packets.
const NO_PACKETS: Bytes = Bytes::new(1 << 40);

/// Room for the visits of one route, so that building one seldom grows its list.
const MOST_VISITS: usize = 24;

/// One direction of a link on a way through a machine.
#[derive(Clone, Debug)]
struct Leg {
    /// Delay since the leg before: its link and the switches between.
    delay: Time,
    station: StationId,
    pcie: Pcie,
}

/// The way between two nodes of a machine.
#[derive(Clone, Debug, Default)]
struct Way {
    legs: Vec<Leg>,
    /// Delay after the last leg.
    tail: Time,
    /// Legs before the last switch, and the delay up to and through it.
    accepted: (usize, Time),
}

impl Way {
    /// Delay of a pass without bytes.
    fn delay(&self) -> Time {
        self.legs.iter().map(|leg| leg.delay).sum::<Time>() + self.tail
    }
}

/// The stations of one endpoint.
#[derive(Clone, Copy, Debug)]
struct EndpointStations {
    cpu: StationId,
    memory: StationId,
    banks: Option<StationId>,
    read_path: Option<StationId>,
    /// The contexts open to it, where some are reserved for others.
    contexts: Option<StationId>,
    /// Those open to the groups that it belongs to.
    groups: [Option<StationId>; MOST_GROUPS],
}

/// The stations and ways of one machine, found once: a design asks for thousands of routes.
#[derive(Clone, Debug)]
struct MachineStations {
    cores: StationId,
    contexts: StationId,
    transmit: StationId,
    receive: StationId,
    endpoints: Vec<EndpointStations>,
    /// Of each engine: the start of a request, bytes towards its endpoint, away from it, all bytes.
    engines: Vec<[StationId; 4]>,
    stalls: Vec<StationId>,
    /// From each node to each: the endpoints in order, then the adapter.
    ways: Vec<Vec<Way>>,
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
    class: u8,
    at: &'r Machine,
    endpoint: &'r Endpoint,
    stations: &'r MachineStations,
}

impl<'r> Place<'r> {
    fn own(&self) -> EndpointStations {
        self.stations.endpoints[usize::from(self.class)]
    }

    /// From the adapter of its machine to it.
    fn down(&self) -> &'r Way {
        &self.stations.ways[self.at.endpoints.len()][usize::from(self.class)]
    }

    /// From it to the adapter of its machine.
    fn up(&self) -> &'r Way {
        &self.stations.ways[usize::from(self.class)][self.at.endpoints.len()]
    }

    /// From it to another endpoint of its machine.
    fn way_to(&self, other: Place<'r>) -> &'r Way {
        &self.stations.ways[usize::from(self.class)][usize::from(other.class)]
    }
}

impl Router {
    /// Looks up the stations and ways of `system`.
    pub fn new(system: &System) -> Result<Router, RouteError> {
        for machine in &system.machines {
            let nic = &machine.nic;
            if nic.reserved_contexts > nic.contexts {
                return Err(RouteError::ReservedBeyondContexts {
                    nic: nic.name.clone(),
                    reserved: nic.reserved_contexts,
                    contexts: nic.contexts,
                });
            }
            if nic.reserved_contexts > 0 && machine.endpoints.len() > MOST_ENDPOINTS {
                return Err(RouteError::TooManyEndpoints {
                    nic: nic.name.clone(),
                    endpoints: machine.endpoints.len(),
                    most: MOST_ENDPOINTS,
                });
            }
        }
        let stations = stations(system);
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
        let host = self.system.host()?;
        let (machine, at) = self.system.machines.iter().enumerate().find_map(|(machine, m)| {
            Some((machine, m.endpoints.iter().position(|endpoint| endpoint.name == host.name)?))
        })?;
        Some(self.machines[machine].endpoints[at].cpu)
    }

    /// How a station serves.
    pub fn kind(&self, station: StationId) -> &Kind {
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
        self.system.machines.iter().position(|m| m.endpoints.iter().any(|e| e.name == endpoint))
    }

    /// Reads a path's name and checks that its endpoints and engine exist and are joined.
    pub fn path(&self, name: &str) -> Result<Path, RouteError> {
        let path: Path = name.parse()?;
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
            for (to, responder) in names.iter().filter(|(_, responder)| responder != requester) {
                let path =
                    Path { requester: requester.to_string(), responder: responder.to_string(), engine: None };
                paths.push(path.clone());
                if from == to {
                    for engine in &self.system.machines[*from].engines {
                        let with = Path { engine: Some(short(engine).to_string()), ..path.clone() };
                        if self.engine(&with, short(engine)).is_ok() {
                            paths.push(with);
                        }
                    }
                }
            }
        }
        paths
    }

    fn place(&self, path: &Path, name: &str) -> Result<Place<'_>, RouteError> {
        for (machine, at) in self.system.machines.iter().enumerate() {
            if let Some(class) = at.endpoints.iter().position(|e| e.name == name) {
                let (endpoint, stations) = (&at.endpoints[class], &self.machines[machine]);
                return Ok(Place { machine, class: class as u8, at, endpoint, stations });
            }
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

    fn places(&self, path: &Path) -> Result<(Place<'_>, Place<'_>), RouteError> {
        let (from, to) = (self.place(path, &path.requester)?, self.place(path, &path.responder)?);
        if path.requester == path.responder {
            let reason = "joins an endpoint with itself; name two different ones".to_string();
            return Err(RouteError::NoWay { path: path.to_string(), reason });
        }
        Ok((from, to))
    }

    /// The engine of that name, and its position in its machine.
    fn engine(&self, path: &Path, name: &str) -> Result<(usize, &Engine), RouteError> {
        let (from, to) = self.places(path)?;
        let mut engines = from.at.engines.iter().enumerate();
        let (index, engine) = engines.find(|(_, e)| short(e) == name || e.name == name).ok_or_else(|| {
            let known: Vec<&str> = from.at.engines.iter().map(short).collect();
            RouteError::UnknownEngine {
                path: path.to_string(),
                engine: name.to_string(),
                requester: path.requester.clone(),
                known: if known.is_empty() { "none".to_string() } else { known.join(", ") },
            }
        })?;
        if from.machine != to.machine {
            return Err(RouteError::NoWay {
                path: path.to_string(),
                reason: format!(
                    "leaves the machine: `{}` is on another than `{}`, and `{name}` copies within one",
                    path.responder, path.requester
                ),
            });
        }
        if engine.endpoint != path.requester && engine.endpoint != path.responder {
            return Err(RouteError::NoWay {
                path: path.to_string(),
                reason: format!(
                    "does not touch `{}`, and `{name}` copies between it and other endpoints of its machine only",
                    engine.endpoint
                ),
            });
        }
        Ok((index, engine))
    }

    /// The route of one operation.
    ///
    /// It holds for a single operation in steady state: connection set-up, cache misses of the
    /// adapter's own tables with very many connections, and pause frames are not in it.
    pub fn route(&self, operation: &Operation) -> Result<Route, RouteError> {
        let Operation { verb, path, payload, posting, access } = operation;
        let (from, to) = self.places(path)?;
        if *posting == Posting::Batch(0) {
            return Err(RouteError::EmptyBatch);
        }
        let bound = if *verb == Verb::SendDatagram { self.system.network.mtu } else { LONGEST_MESSAGE };
        if *payload > bound {
            let what = if *verb == Verb::SendDatagram { "a datagram" } else { "a message" };
            return Err(RouteError::PayloadTooLarge { payload: *payload, bound, what });
        }
        let payload = verb.own_payload().unwrap_or(*payload);
        let mut build = Build {
            router: self,
            from,
            to,
            verb: *verb,
            payload,
            access: *access,
            visits: Vec::with_capacity(MOST_VISITS),
        };
        match &path.engine {
            Some(name) => {
                let (index, engine) = self.engine(path, name)?;
                if !matches!(verb, Verb::Read | Verb::Write) {
                    return Err(RouteError::EngineVerb { verb: *verb, path: path.to_string() });
                }
                build.copy(index, engine);
            }
            None => match verb {
                Verb::Read | Verb::CompareAndSwap | Verb::FetchAndAdd => build.read(*posting),
                Verb::Write => build.write(*posting),
                Verb::Send | Verb::SendDatagram => build.send(*posting),
            },
        }
        Ok(Route {
            path: path.clone(),
            verb: *verb,
            payload,
            visits: build.visits,
            ends_at_responder: verb.is_message(),
        })
    }
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
    let nodes: Vec<&str> = machine.endpoints.iter().map(|e| e.name.as_str()).chain([nic.as_str()]).collect();
    let mut ways = Vec::with_capacity(nodes.len());
    for from in &nodes {
        let row: Result<Vec<Way>, RouteError> = nodes
            .iter()
            .map(|to| if from == to { Ok(Way::default()) } else { way(machine, from, to, by_name) })
            .collect();
        ways.push(row?);
    }
    let is_reserved = machine.nic.reserved_contexts > 0 && machine.endpoints.len() > 1;
    let groups_of = |own: usize| {
        let mut found = [None; MOST_GROUPS];
        // There are as many as two to the power of the endpoints.
        let all = if is_reserved { groups(machine.endpoints.len()) } else { Vec::new() };
        let all = all.into_iter().filter(|group| group.contains(&own));
        for (place, group) in found.iter_mut().zip(all) {
            let names: Vec<&str> =
                group.iter().map(|index| machine.endpoints[*index].name.as_str()).collect();
            *place = Some(named(nic, &format!("contexts-of-{}", names.join("-and-"))));
        }
        found
    };
    let endpoints = machine.endpoints.iter().enumerate().map(|(index, e)| EndpointStations {
        groups: groups_of(index),
        cpu: named(&e.name, "cpu"),
        memory: named(&e.name, "memory"),
        banks: (!e.ddio).then(|| named(&e.name, "banks")),
        contexts: is_reserved.then(|| named(nic, &format!("contexts-of-{}", e.name))),
        read_path: e.read_path_rate.map(|_| named(&e.name, "read-path")),
    });
    Ok(MachineStations {
        cores: named(nic, "cores"),
        contexts: named(nic, "contexts"),
        transmit: named(nic, "transmit"),
        receive: named(nic, "receive"),
        endpoints: endpoints.collect(),
        engines: machine
            .engines
            .iter()
            .map(|e| ["requests", "read", "write", "total"].map(|part| named(&e.name, part)))
            .collect(),
        stalls: machine.stalls.iter().map(|stall| by_name[&stall.name]).collect(),
        ways,
    })
}

fn way(
    machine: &Machine,
    from: &str,
    to: &str,
    by_name: &BTreeMap<String, StationId>,
) -> Result<Way, RouteError> {
    let hops = machine
        .way(from, to)
        .map_err(|error| RouteError::NoWay { path: format!("{from}-{to}"), reason: error.to_string() })?;
    let mut way = Way::default();
    let mut delay = Time::ZERO;
    let mut total = Time::ZERO;
    for hop in hops {
        // A link is declared from the node nearer to the adapter.
        let outward = hop.direction == Direction::Forward;
        if let Some(pcie) = &hop.link.pcie {
            let side = if outward { "down" } else { "up" };
            let station = by_name[&format!("{}.{side}", hop.link.name)];
            way.legs.push(Leg { delay, station, pcie: pcie.clone() });
            delay = Time::ZERO;
        }
        delay += hop.link.delay;
        total += hop.link.delay;
        if let Some(switch) = hop.switch {
            delay += switch.pass_time;
            total += switch.pass_time;
            way.accepted = (way.legs.len(), total);
        }
    }
    way.tail = delay;
    Ok(way)
}

struct Build<'r> {
    router: &'r Router,
    from: Place<'r>,
    to: Place<'r>,
    verb: Verb,
    payload: Bytes,
    access: Access,
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

    /// The requester's processor posts, and the request reaches its adapter.
    fn post(&mut self, posting: Posting, inline: Bytes) {
        let costs = &self.from.endpoint.verbs;
        let (up, down) = (self.from.up(), self.from.down());
        let request = self.from.at.nic.work_request_bytes + inline;
        let cpu = self.from.own().cpu;
        match posting {
            Posting::Single => {
                self.serve("post (MMIO)", cpu, Pick::Any, costs.post_time, costs.post_latency);
                for leg in &up.legs {
                    let packets = request.packets(WRITE_COMBINING);
                    let framed = Bytes::new(request.get() + packets * leg.pcie.write_header.get());
                    let time = link_rate(&leg.pcie).time_for(framed);
                    self.serve("work request over PCIe", leg.station, Pick::Any, time, time);
                }
                self.delay("doorbell to the NIC", up.delay());
            }
            Posting::Batch(count) => {
                let list = costs.list(count);
                let each = Time::from_ps(list.ps() / u64::from(count));
                self.serve("post (doorbell batch)", cpu, Pick::Any, each, list);
                self.delay("doorbell to the NIC", up.delay());
                let fetch = down.delay() + self.from.endpoint.memory.read_latency + up.delay();
                self.delay("NIC fetches the requests", fetch);
                for leg in &down.legs {
                    let time = link_rate(&leg.pcie).time_for(leg.pcie.read_request);
                    self.detached("request fetch", leg.station, Pick::Any, time);
                }
                for leg in &up.legs {
                    let packets = request.packets(self.from.endpoint.pcie_mtu);
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
            pick: Pick::Class(place.class),
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

    /// The request travels to the responder's adapter, as a packet of its own or, where `ahead` of
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
        let Some(station) = place.own().banks else { return };
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
            station: place.own().memory,
            delay,
            rate: place.endpoint.memory.bandwidth,
            mtu: NO_PACKETS,
            header: Bytes::ZERO,
            empty_packet: false,
            detached,
            whole: Time::ZERO,
            first: Time::ZERO,
        }
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
            whole: Time::ZERO,
            first: Time::ZERO,
        }
    }

    /// Hops that carry data out of an endpoint's memory as completions, and the delay after them.
    fn fetch_hops(&self, place: Place<'r>, way: &Way, hops: &mut Vec<Hop>) -> Time {
        for leg in &way.legs {
            hops.push(pcie_hop(leg, leg.pcie.completion_header, place.endpoint.pcie_mtu, Time::ZERO, false));
        }
        way.tail
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
            whole: Time::ZERO,
            first: Time::ZERO,
        };
        hops.push(port(from.stations.transmit, from.at.nic.port_rate, delay));
        hops.push(port(to.stations.receive, to.at.nic.port_rate, network.delay));
    }

    /// The regime of large transfers that this operation falls into, as a hop.
    fn stall_hop(&self, hops: &mut Vec<Hop>) {
        let of = |place: Place<'r>| place.at.stalls.iter().zip(&place.stations.stalls);
        for (stall, station) in of(self.from).chain(of(self.to)) {
            let requester = if stall.requester == "*" {
                self.remote()
            } else {
                stall.requester == self.from.endpoint.name
            };
            if requester
                && stall.responder == self.to.endpoint.name
                && stall.verbs.iter().any(|verb| verb == self.verb.name())
                && self.payload > stall.above
            {
                hops.push(self.line_hop(*station, Time::ZERO, stall.rate));
                return;
            }
        }
    }

    fn requests(&self, way: &Way) -> Vec<Requests> {
        way.legs
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
        let segment = hops.iter().map(|hop| hop.mtu).filter(|mtu| *mtu < NO_PACKETS).max();
        let train = Train {
            bytes: self.payload,
            hops,
            requests,
            release,
            segment: segment.unwrap_or(Bytes::new(4096)),
            marks_source: true,
            settle,
            marks_target: true,
            burst: Bytes::ZERO,
        };
        self.visits.push(Visit::Train(train.costed()));
    }

    /// The adapter writes a completion entry into the place's memory.
    fn completion_entry(&mut self, place: Place<'r>) {
        let entry = place.at.nic.completion_bytes;
        if entry == Bytes::ZERO {
            return;
        }
        for leg in &place.down().legs {
            let time = link_rate(&leg.pcie).time_for(entry + leg.pcie.write_header);
            self.detached("completion entry", leg.station, Pick::Any, time);
        }
    }

    /// The completion reaches the requester's memory and program.
    fn complete(&mut self) {
        self.completion_entry(self.from);
        let costs = &self.from.endpoint.verbs;
        self.mark(Mark::Acknowledged);
        self.serve("poll", self.from.own().cpu, Pick::Any, costs.poll_time, costs.poll_latency);
    }

    /// A packet without payload travels back to the requester.
    fn answer(&mut self) {
        let (from, to) = (self.from, self.to);
        if self.remote() {
            self.header(to, from);
            self.visits.push(Visit::Cross { from: to.machine, to: from.machine });
            self.delay("NIC pass", from.at.nic.pass_time);
        }
        self.delay("completion to the requester", from.down().delay());
    }

    fn read(&mut self, posting: Posting) {
        self.post(posting, Bytes::ZERO);
        self.travel(false);
        let (from, to) = (self.from, self.to);
        if self.payload == Bytes::ZERO {
            // The adapter answers without touching PCIe: no context, no memory.
            self.pass(to);
            self.delay("NIC pass", to.at.nic.pass_time);
            self.answer();
            return self.complete();
        }
        self.acquire(None);
        self.pass(to);
        self.delay("request to memory", to.down().delay());
        if let (Some(rate), Some(station)) = (to.endpoint.read_path_rate, to.own().read_path) {
            self.serve("host-side read path", station, Pick::Any, rate.interval(), Time::ZERO);
        }
        self.bank(to, false);
        if self.verb.is_atomic() {
            self.bank(to, true);
        }
        self.delay("memory read", to.endpoint.memory.read_latency);
        let mut hops = vec![self.memory_hop(to, Time::ZERO, false)];
        let tail = self.fetch_hops(to, to.up(), &mut hops);
        self.stall_hop(&mut hops);
        let pass = to.at.nic.pass_time;
        let release = Some((hops.len() - 1, tail + pass));
        let mut delay = tail + pass;
        if self.remote() {
            self.port_hops(to, from, delay, &mut hops);
            delay = from.at.nic.pass_time;
        }
        let tail = deliver_hops(from, from.down(), delay, usize::MAX, &mut hops);
        hops.push(self.memory_hop(from, tail, false));
        self.train(hops, self.requests(to.down()), release, Time::ZERO);
        if self.remote() {
            self.visits.push(Visit::Cross { from: to.machine, to: from.machine });
        }
        self.complete();
    }

    /// The payload's way from the requester's memory to the responder's adapter.
    fn outbound(&mut self, inline: bool) -> (Vec<Hop>, Vec<Requests>) {
        let (from, to) = (self.from, self.to);
        let mut hops = Vec::new();
        let mut requests = Vec::new();
        if !inline {
            hops.push(self.memory_hop(from, Time::ZERO, false));
            self.fetch_hops(from, from.up(), &mut hops);
            requests = self.requests(from.down());
        }
        // A message without payload is the packet that went ahead.
        if self.remote() && self.payload > Bytes::ZERO {
            self.port_hops(from, to, Time::ZERO, &mut hops);
        }
        // The request that went ahead of the data has paid the delays up to the responder's adapter.
        for hop in &mut hops {
            hop.delay = Time::ZERO;
        }
        self.stall_hop(&mut hops);
        (hops, requests)
    }

    /// Posts a request that carries a payload; true where the payload is inside it.
    fn post_payload(&mut self, posting: Posting) -> bool {
        let inline = self.payload <= self.from.at.nic.inline_limit;
        self.post(posting, if inline { self.payload } else { Bytes::ZERO });
        if !inline {
            let fetch =
                self.from.down().delay() + self.from.endpoint.memory.read_latency + self.from.up().delay();
            self.delay("NIC fetches the payload", fetch);
        }
        inline
    }

    /// Takes a context of the responder's adapter, for `time` or until the train releases it.
    fn acquire(&mut self, time: Option<Time>) {
        if time != Some(Time::ZERO) {
            let own = self.to.own();
            let contexts =
                Contexts { pool: self.to.stations.contexts, own: own.contexts, groups: own.groups };
            self.visits.push(Visit::Acquire { contexts, time });
        }
    }

    fn write(&mut self, posting: Posting) {
        let inline = self.post_payload(posting);
        self.travel(true);
        let to = self.to;
        if self.payload > Bytes::ZERO {
            self.acquire(Some(to.endpoint.verbs.write_context_time));
        }
        self.pass(to);
        if self.payload > Bytes::ZERO {
            self.bank(to, true);
            let down = to.down();
            let (mut hops, requests) = self.outbound(inline);
            let tail = deliver_hops(to, down, Time::ZERO, down.accepted.0, &mut hops);
            hops.push(self.memory_hop(to, tail, true));
            self.train(hops, requests, None, to.endpoint.memory.write_latency);
            // A posted write is acknowledged once the last switch has taken it.
            self.delay("write accepted by the switch", down.accepted.1);
        }
        self.delay("NIC pass", to.at.nic.pass_time);
        self.answer();
        self.complete();
    }

    fn send(&mut self, posting: Posting) {
        let inline = self.post_payload(posting);
        if self.verb == Verb::SendDatagram {
            self.visits.push(Visit::Mark(Mark::Acknowledged, self.from.at.nic.pass_time));
        }
        self.travel(true);
        let to = self.to;
        self.acquire(Some(to.endpoint.verbs.receive_context_time));
        self.pass(to);
        self.bank(to, true);
        let down = to.down();
        let (mut hops, requests) = self.outbound(inline);
        let tail = deliver_hops(to, down, Time::ZERO, usize::MAX, &mut hops);
        hops.push(self.memory_hop(to, tail, false));
        self.train(hops, requests, None, Time::ZERO);
        if self.verb == Verb::Send {
            let network = if self.remote() { self.router.system.network.delay } else { Time::ZERO };
            let after = network + self.from.at.nic.pass_time + self.from.down().delay();
            self.visits.push(Visit::Mark(Mark::Acknowledged, after));
        }
        self.completion_entry(to);
        self.mark(Mark::Delivered);
        let costs = &to.endpoint.verbs;
        self.serve("receive", to.own().cpu, Pick::Any, costs.receive_time, costs.receive_latency);
    }

    /// A copy engine moves the payload; the adapter takes no part.
    fn copy(&mut self, index: usize, engine: &Engine) {
        let (from, to) = (self.from, self.to);
        let own = if engine.endpoint == from.endpoint.name { from } else { to };
        let far = if engine.endpoint == from.endpoint.name { to } else { from };
        let cpu = own.own().cpu;
        self.serve("post to the engine", cpu, Pick::Any, engine.post_time, engine.post_time);
        self.mark(Mark::Departs);
        self.mark(Mark::Arrives);
        self.delay("engine start", engine.start_latency);
        let [requests, read, write, total] = from.stations.engines[index];
        self.serve("engine request", requests, Pick::Any, engine.request_time, Time::ZERO);
        if self.payload > Bytes::ZERO {
            let away = own.way_to(far);
            let towards = far.way_to(own);
            // A read brings the responder's bytes to the requester; seen from the engine it may go
            // either way, and only what comes from the far memory has to be asked for.
            let inbound = (self.verb == Verb::Read) == (own.endpoint.name == from.endpoint.name);
            let slow = self.payload > engine.slow_above;
            let (rate, part) = if inbound { (engine.read_rate, read) } else { (engine.write_rate, write) };
            let rate = if slow { engine.slow_rate.min(rate) } else { rate };
            let mut hops = Vec::new();
            let (source, target) = if inbound { (far, own) } else { (own, far) };
            if inbound {
                self.delay("request to memory", away.delay());
            }
            self.bank(source, false);
            self.delay("memory read", source.endpoint.memory.read_latency);
            hops.push(self.memory_hop(source, Time::ZERO, false));
            let mut requests = Vec::new();
            let mut tail = Time::ZERO;
            if inbound {
                tail = self.fetch_hops(far, towards, &mut hops);
                requests = self.requests(away);
            }
            hops.push(self.line_hop(part, tail, rate));
            hops.push(self.line_hop(total, Time::ZERO, engine.total_rate));
            tail = Time::ZERO;
            if !inbound {
                tail = deliver_hops(far, away, Time::ZERO, usize::MAX, &mut hops);
            }
            hops.push(self.memory_hop(target, tail, false));
            self.bank(target, true);
            self.train(hops, requests, None, Time::ZERO);
        }
        self.mark(Mark::Acknowledged);
        self.delay("poll the engine", engine.poll_latency);
    }
}

/// Hops that carry data to an endpoint's memory as posted writes, detached from the leg
/// `detached_from` on; returns the delay after them. `delay` is what lies before the first.
fn deliver_hops(place: Place<'_>, way: &Way, delay: Time, detached_from: usize, hops: &mut Vec<Hop>) -> Time {
    let mut before = delay;
    for (index, leg) in way.legs.iter().enumerate() {
        let detached = index >= detached_from;
        let mut hop = pcie_hop(leg, leg.pcie.write_header, place.endpoint.pcie_mtu, before, detached);
        if detached_from != usize::MAX && !detached {
            // The delay up to the last switch stands in the route as a visit of its own.
            hop.delay = before;
        }
        hops.push(hop);
        before = Time::ZERO;
    }
    before + way.tail
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
        whole: Time::ZERO,
        first: Time::ZERO,
    }
}

/// What the line encoding leaves of a link's bandwidth.
fn link_rate(pcie: &Pcie) -> BitRate {
    BitRate::from_bits_per_second((pcie.rate.bits_per_second() as f64 * pcie.encoding).round() as u64)
}
