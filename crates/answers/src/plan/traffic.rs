//! What a request of the best mix moves, as counters of machines count it.

use offpath_plan::study::Study;
use offpath_plan::traffic::rate_bytes_per_s;
use serde::{Deserialize, Serialize};

/// What a request of the best mix moves; `offpath watch` holds counters to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TrafficAnswer {
    /// Requests per second of the best mix, or the load that was asked for.
    pub req_per_s: f64,
    /// Lower end of its 80% interval; the load itself where one was asked for.
    pub req_per_s_low_80: f64,
    /// Upper end of it.
    pub req_per_s_high_80: f64,
    /// Directions of ports and PCIe links that it passes, each with the endpoint that the bytes go to or come from.
    pub links: Vec<LinkTrafficAnswer>,
    /// Endpoints, with what reaches them.
    pub endpoints: Vec<EndpointTrafficAnswer>,
}

/// What passes a direction of a port or link for an endpoint; figures are those of a request in the mean, over all machines of
/// the role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkTrafficAnswer {
    /// The station, as `nic.receive` or `pcie1.up`.
    pub station: String,
    /// The endpoint that the bytes go to or come from.
    pub endpoint: String,
    /// The role of the machine.
    pub machine: String,
    /// What the station carries on one machine.
    pub capacity_gbit_per_s: f64,
    /// Packets that are always sent: those with payload, and requests without on a port.
    pub packets_per_request: f64,
    /// Acknowledgements, on a port; NICs may send fewer.
    pub acknowledgements_per_request: f64,
    /// TLPs of read requests, on a PCIe link.
    pub read_request_tlps_per_request: f64,
    /// Work requests and completion entries, on a PCIe link.
    pub control_per_request: f64,
    /// Payload.
    pub payload_bytes_per_request: f64,
    /// Payload with the headers that the profile counts.
    pub framed_bytes_per_request: f64,
}

/// What reaches an endpoint; figures are those of a request in the mean, over all machines of the role.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EndpointTrafficAnswer {
    /// Its name.
    pub endpoint: String,
    /// The role of its machine.
    pub machine: String,
    /// How many machines of that role take part.
    pub machines: u64,
    /// Whether it is a processor of the card that the design runs on.
    pub of_card: bool,
    /// Whether it is the host that this card is in.
    pub host_of_card: bool,
    /// READs that its memory serves.
    pub reads_per_request: f64,
    /// WRITEs that it takes.
    pub writes_per_request: f64,
    /// Atomics on its memory.
    pub atomics_per_request: f64,
    /// Messages of queue pairs that cross the card from one of its endpoints to another and pass no port, whichever of both
    /// ends this is.
    pub inside_per_request: f64,
}

impl TrafficAnswer {
    pub(super) fn of(study: &Study) -> TrafficAnswer {
        let rate = &study.checked.plan.optimal.rate;
        let load = study.design.objective.load();
        let (low, high) = load.map_or(rate.range_80, |load| (load, load));
        let system = &study.system;
        let mut links = Vec::new();
        for machine in &system.machines {
            let nodes = machine.links.iter().map(|link| &link.name).chain([&machine.nic.name]);
            let nodes: Vec<&String> = nodes.collect();
            let is_own = |station: &str| {
                let node = station.rsplit_once('.').map(|(node, _)| node);
                node.is_some_and(|node| nodes.iter().any(|own| *own == node))
            };
            let own = study.traffic.links.iter().filter(|((station, _), _)| is_own(station));
            links.extend(own.map(|((station, endpoint), link)| LinkTrafficAnswer {
                station: station.clone(),
                endpoint: endpoint.clone(),
                machine: machine.role.clone(),
                capacity_gbit_per_s: rate_bytes_per_s(system, station) * 8.0 / 1e9,
                packets_per_request: link.packets,
                acknowledgements_per_request: link.acknowledgements,
                read_request_tlps_per_request: link.read_requests,
                control_per_request: link.control,
                payload_bytes_per_request: link.payload_bytes,
                framed_bytes_per_request: link.framed_bytes,
            }));
        }
        let endpoints = system.machines.iter().flat_map(|machine| {
            machine.endpoints.iter().map(|endpoint| {
                let processor = &endpoint.processor;
                let reached = study.traffic.requests.get(&processor.name).copied().unwrap_or_default();
                EndpointTrafficAnswer {
                    endpoint: processor.name.clone(),
                    machine: machine.role.clone(),
                    machines: machine.count,
                    of_card: machine.prefix.is_empty() && !processor.is_host,
                    host_of_card: machine.prefix.is_empty() && processor.is_host,
                    reads_per_request: reached.reads,
                    writes_per_request: reached.writes,
                    atomics_per_request: reached.atomics,
                    inside_per_request: reached.inside,
                }
            })
        });
        TrafficAnswer {
            req_per_s: load.unwrap_or(rate.value),
            req_per_s_low_80: low,
            req_per_s_high_80: high,
            links,
            endpoints: endpoints.collect(),
        }
    }
}
