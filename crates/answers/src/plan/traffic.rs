//! What a request of the best mix moves, as counters of machines count it.

use offpath_plan::study::Study;
use offpath_route::WireWay;
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
    /// Which direction of a port or link it is.
    pub way: LinkWay,
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

/// A direction of a port or of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum LinkWay {
    /// Out of a port.
    PortTransmit,
    /// Into a port.
    PortReceive,
    /// On a PCIe link, to the side on which the NIC is.
    PcieTowardsNic,
    /// On a PCIe link, from that side.
    PcieAwayFromNic,
}

impl From<WireWay> for LinkWay {
    fn from(way: WireWay) -> LinkWay {
        match way {
            WireWay::Transmit => LinkWay::PortTransmit,
            WireWay::Receive => LinkWay::PortReceive,
            WireWay::TowardsNic => LinkWay::PcieTowardsNic,
            WireWay::AwayFromNic => LinkWay::PcieAwayFromNic,
        }
    }
}

impl From<LinkWay> for WireWay {
    fn from(way: LinkWay) -> WireWay {
        match way {
            LinkWay::PortTransmit => WireWay::Transmit,
            LinkWay::PortReceive => WireWay::Receive,
            LinkWay::PcieTowardsNic => WireWay::TowardsNic,
            LinkWay::PcieAwayFromNic => WireWay::AwayFromNic,
        }
    }
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
        for (place, machine) in system.machines.iter().enumerate() {
            let own = study.traffic.links.iter().filter(|(_, link)| link.machine == place);
            links.extend(own.map(|((station, endpoint), link)| LinkTrafficAnswer {
                station: station.clone(),
                way: link.wire.way.into(),
                endpoint: endpoint.clone(),
                machine: machine.role.clone(),
                capacity_gbit_per_s: link.wire.bytes_per_s * 8.0 / 1e9,
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
