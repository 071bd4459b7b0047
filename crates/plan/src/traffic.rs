//! What a request moves: packets and bytes on each direction of ports and PCIe links, by the endpoint that they go to or come
//! from, and how many READs, WRITEs and atomics reach an endpoint. Counters of a machine count just these.

use crate::planner::Ready;
use crate::program::{Call, Compiled, Instruction, Program};
use offpath_route::{Moves, Responder, Route, Router, Station, Verb, Visit, Wire, WireWay, processor_of};
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

/// What passes a direction of a port or link for an endpoint, a request in the mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkTraffic {
    /// Which direction, and what it carries on one machine.
    pub wire: Wire,
    /// The machine, by position in the system.
    pub machine: usize,
    /// Packets that are always sent: those with payload and, on a port, requests without any.
    pub packets: f64,
    /// Packets that a NIC may send fewer of, since it may join them: acknowledgements, on a port.
    pub acknowledgements: f64,
    /// TLPs that no payload is in: read requests for payloads, on a PCIe link.
    pub read_requests: f64,
    /// Visits of work requests and completion entries, on a PCIe link, each of one TLP or more.
    pub control: f64,
    /// Payload.
    pub payload_bytes: f64,
    /// Payload with the headers that the profile counts.
    pub framed_bytes: f64,
}

/// Requests of NICs that reach an endpoint from another machine or across its card, a request in the mean.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RequestTraffic {
    /// READs.
    pub reads: f64,
    /// WRITEs.
    pub writes: f64,
    /// Atomics.
    pub atomics: f64,
    /// Messages of these and SENDs that cross the card from one of its endpoints to another and pass no port, whichever
    /// of both ends this is.
    pub inside: f64,
}

/// What a request of a mix moves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Traffic {
    /// By the station's name and the endpoint that the bytes go to or come from.
    pub links: BTreeMap<(String, String), LinkTraffic>,
    /// By endpoint.
    pub requests: BTreeMap<String, RequestTraffic>,
}

impl Traffic {
    /// What a request moves of a mix: shares by the names of alternatives. Alternatives on a device beside the design's are
    /// left out, since no mix takes them.
    pub fn of(ready: &[Ready], shares: &[(String, f64)]) -> Traffic {
        let mut traffic = Traffic::default();
        for one in ready.iter().filter(|one| one.alternative.device.is_none()) {
            let share = shares.iter().find(|(name, _)| *name == one.alternative.name);
            if let Some((_, share)) = share.filter(|(_, share)| *share > 0.0) {
                traffic.add(&one.compiled, *share, &one.router);
            }
        }
        traffic
    }

    fn add(&mut self, compiled: &Compiled, share: f64, router: &Router) {
        for (of_programs, program) in &compiled.programs {
            program
                .weighed_calls(&mut |weight, call| self.add_call(call, share * of_programs * weight, router));
        }
    }

    fn add_call(&mut self, call: &Call, weight: f64, router: &Router) {
        let route = &call.route;
        let path = &route.path;
        let (requester, responder) = (processor_of(&path.requester), processor_of(&path.responder));
        let machines = [requester, responder].map(|endpoint| router.machine_of(endpoint));
        let by_nic = path.engine.is_none() && requester != responder;
        if by_nic {
            let own = self.requests.entry(responder.to_string()).or_default();
            let verb = route.verb;
            match verb {
                Verb::Read => own.reads += weight,
                Verb::Write => own.writes += weight,
                _ if verb.row().responder == Responder::Changes => own.atomics += weight,
                _ => {}
            }
            if machines[0] == machines[1] {
                for end in [requester, responder] {
                    self.requests.entry(end.to_string()).or_default().inside += weight;
                }
            }
        }
        let ends = Ends { requester, responder, machines };
        for visit in &route.visits {
            self.add_visit(visit, route, &ends, weight, router);
        }
    }

    fn add_visit(&mut self, visit: &Visit, route: &Route, ends: &Ends<'_>, weight: f64, router: &Router) {
        let stations = router.stations();
        match visit {
            Visit::Train(train) => {
                for hop in &train.hops {
                    let station = &stations[hop.station.index()];
                    let Some(wire) = station.wire else { continue };
                    let own = self.at(station, wire, ends.of_train(station.machine, wire.way, route));
                    let packets = hop.packets(train.bytes) as f64;
                    own.packets += weight * packets;
                    own.payload_bytes += weight * train.bytes.get() as f64;
                    own.framed_bytes +=
                        weight * (train.bytes.get() as f64 + packets * hop.header.get() as f64);
                }
                for requests in &train.requests {
                    let station = &stations[requests.station.index()];
                    let Some(wire) = station.wire else { continue };
                    // They ask the source for what it sends, and pass its links the other way.
                    let own = self.at(station, wire, ends.source(route));
                    let count = train.bytes.packets(requests.limit) as f64;
                    own.read_requests += weight * count;
                    own.framed_bytes += weight * count * requests.size.get() as f64;
                }
            }
            Visit::Serve { station, occupancy, .. } => {
                let station = &stations[station.index()];
                let Some(wire) = station.wire else { return };
                let at_requester = ends.machines[0] == Some(station.machine);
                let endpoint = if at_requester { ends.requester } else { ends.responder };
                let is_out = wire.way == WireWay::Transmit;
                let own = self.at(station, wire, endpoint);
                own.framed_bytes += weight * wire.bytes_per_s * occupancy.as_seconds();
                match wire.way.is_of_port() {
                    // A packet passes whole.
                    true if route.verb == Verb::Forward => {
                        own.packets += weight;
                        own.payload_bytes += weight * route.payload.get() as f64;
                    }
                    // A request leaves its requester; what comes back without payload answers it.
                    true if is_out == at_requester => own.packets += weight,
                    // A READ of nothing is answered by a response.
                    true if route.verb.row().moves == Moves::ToRequester => own.packets += weight,
                    true => own.acknowledgements += weight,
                    false => own.control += weight,
                }
            }
            _ => {}
        }
    }

    fn at(&mut self, station: &Station, wire: Wire, endpoint: &str) -> &mut LinkTraffic {
        let nothing = LinkTraffic {
            wire,
            machine: station.machine,
            packets: 0.0,
            acknowledgements: 0.0,
            read_requests: 0.0,
            control: 0.0,
            payload_bytes: 0.0,
            framed_bytes: 0.0,
        };
        self.links.entry((station.name.clone(), endpoint.to_string())).or_insert(nothing)
    }
}

/// The two ends of an operation.
struct Ends<'a> {
    requester: &'a str,
    responder: &'a str,
    machines: [Option<usize>; 2],
}

impl<'a> Ends<'a> {
    fn source(&self, route: &Route) -> &'a str {
        match route.verb.row().moves {
            Moves::ToRequester => self.responder,
            Moves::ToResponder => self.requester,
        }
    }

    /// The endpoint that a payload goes to or comes from, at a station of a machine. Within one machine it goes towards the
    /// NIC from where it lies, and away from the NIC to where it goes.
    fn of_train(&self, machine: usize, way: WireWay, route: &Route) -> &'a str {
        match self.machines {
            [from, to] if from != to => match from == Some(machine) {
                true => self.requester,
                false => self.responder,
            },
            _ => {
                let source = self.source(route);
                let target = if source == self.requester { self.responder } else { self.requester };
                if way == WireWay::TowardsNic { source } else { target }
            }
        }
    }
}

impl Program {
    /// Each of its calls with how many times a request makes it, in the mean.
    fn weighed_calls(&self, each: &mut dyn FnMut(f64, &Arc<Call>)) {
        weighed(self, 0..u16::MAX, 1.0, each);
        if let Some(start) = self.background {
            weighed(self, start..u16::MAX, 1.0, each);
        }
    }
}

fn weighed(program: &Program, range: Range<u16>, weight: f64, each: &mut dyn FnMut(f64, &Arc<Call>)) {
    let (mut at, stop) = (range.start, range.end);
    while at < stop {
        match &program.code[usize::from(at)] {
            Instruction::End => return,
            Instruction::Jump(to) => {
                at = *to;
                continue;
            }
            Instruction::Verb(call) => each(weight * f64::from(call.to), call),
            Instruction::Branch { probability, otherwise } => {
                let Instruction::Jump(join) = program.code[usize::from(*otherwise) - 1] else {
                    unreachable!("a branch is compiled with its jump")
                };
                weighed(program, at + 1..*otherwise - 1, weight * probability, each);
                weighed(program, *otherwise..join, weight * (1.0 - probability), each);
                at = join;
                continue;
            }
            Instruction::Parallel { starts, next } => {
                starts.iter().for_each(|start| weighed(program, *start..*next, weight, each));
                at = *next;
                continue;
            }
            Instruction::Compute { .. } | Instruction::Wait(_) => {}
        }
        at += 1;
    }
}
