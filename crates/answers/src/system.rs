//! The system that an answer is about: what it is called, and what its machines are made of.

use offpath_plan::residual::Lesson;
use offpath_profile::{Link, Machine, System};
use offpath_quantity::{BitRate, Bytes, Time};
use offpath_terminal::failure::Failure;
use serde::{Deserialize, Serialize};

/// The system that an answer is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SystemAnswer {
    /// The device that was asked for.
    pub device: String,
    /// The testbed that it stands in.
    pub testbed: String,
    /// The card's mode.
    pub mode: String,
    /// Overlays and settings in force, in order, as they were written.
    pub overlays: Vec<String>,
    /// Whether the card was learnt from its own logs, and none of these told what predictions of latencies are wrong by.
    #[serde(default)]
    pub untold_latency: bool,
    /// Whether published rows are fitted to the card.
    #[serde(skip)]
    pub(crate) is_fitted: bool,
}

impl SystemAnswer {
    /// How a system is called.
    pub fn of(system: &System) -> SystemAnswer {
        SystemAnswer {
            device: system.device.clone(),
            testbed: system.testbed.clone(),
            mode: system.mode.clone(),
            overlays: system.overlays.clone(),
            untold_latency: system.is_latency_untold,
            is_fitted: Lesson::of(&[], [system]) == Lesson::OfFittedCards,
        }
    }

    /// The system without what was changed in it.
    pub fn heading(&self) -> String {
        format!("{} in testbed {}, mode {}", self.device, self.testbed, self.mode)
    }

    /// By the errors of which other cards intervals are widened, where no published row is fitted to this one.
    pub(crate) fn widened_by_others(&self) -> Option<String> {
        let [fitted, guessed] =
            [Lesson::OfFittedCards, Lesson::OfGuessedCards].map(|lesson| lesson.cards().join(", "));
        (!self.is_fitted).then(|| {
            format!(
                "nothing is fitted to published rows about {}: what rests more on guesses than on what was measured is widened by \
                 what predictions for other such cards ({guessed}) were wrong by, all else by those for {fitted}",
                self.device
            )
        })
    }

    /// That no log tells the latencies of this card, where none does.
    pub(crate) fn latency_untold(&self) -> Option<String> {
        self.untold_latency.then(|| {
            format!(
                "no log of latencies is behind {}, or too few to say what predictions of them are wrong by: take no latency from it, and no \
                 rate of few requests in flight; `offpath calibrate` with logs of `ib_read_lat`, `ib_write_lat` and `ib_send_lat` tells",
                self.device
            )
        })
    }

    /// The system in one line, with what was changed in it.
    pub fn line(&self) -> String {
        match self.overlays.as_slice() {
            [] => self.heading(),
            changes => format!("{}, with {}", self.heading(), changes.join(", ")),
        }
    }
}

/// The machines of a system and the network between them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TopologyAnswer {
    /// From port to port over the network.
    pub network_delay_ns: f64,
    /// The largest packet that it carries.
    pub network_mtu_bytes: u64,
    /// Machines by role.
    pub machines: Vec<MachineAnswer>,
}

impl TopologyAnswer {
    /// What a system is made of.
    pub fn of(system: &System) -> TopologyAnswer {
        TopologyAnswer {
            network_delay_ns: system.network.delay.as_ns(),
            network_mtu_bytes: system.network.mtu.get(),
            machines: system.machines.iter().map(MachineAnswer::of).collect(),
        }
    }

    /// The network in a line.
    pub fn network(&self) -> String {
        let (delay, mtu) = (time(self.network_delay_ns), Bytes::new(self.network_mtu_bytes));
        format!("network: {delay} between two ports, packets of up to {mtu}")
    }
}

/// A machine of a role.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct MachineAnswer {
    /// `server`, `client`, or another role of the testbed.
    pub role: String,
    /// What names of its numbers, links and nodes begin with; empty for the machine that carries the device asked for.
    pub prefix: String,
    /// Its device.
    pub device: String,
    /// Its host profile.
    pub host: String,
    /// How many take part.
    pub count: u64,
    /// How many exist.
    pub available: u64,
    /// The NIC's name.
    pub nic: String,
    /// Its port's rate in each direction.
    pub nic_port_rate_gbit_per_s: f64,
    /// Switches.
    pub switches: Vec<String>,
    /// Endpoints that paths can name.
    pub endpoints: Vec<String>,
    /// DMA engines.
    pub engines: Vec<EngineAnswer>,
    /// Links.
    pub links: Vec<LinkAnswer>,
    /// Names of stations that limit large transfers.
    pub large_transfer_limits: Vec<String>,
    /// Endpoints that the mode hides.
    pub absent_endpoints: Vec<String>,
    /// Its nodes, the NIC first, with what a reader wants to know about each.
    pub nodes: Vec<NodeAnswer>,
}

/// A node of a machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct NodeAnswer {
    /// Its name.
    pub name: String,
    /// A few words about it, a line each.
    pub about: Vec<String>,
}

/// An engine that copies data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct EngineAnswer {
    /// DMA engine.
    pub name: String,
    /// The endpoint that it belongs to.
    pub endpoint: String,
}

/// A link between two nodes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LinkAnswer {
    /// Link.
    pub name: String,
    /// The node nearer to the NIC.
    pub from: String,
    /// The farther node.
    pub to: String,
    /// Delay of a pass.
    pub delay_ns: f64,
    /// Bandwidth in each direction; null for a wire that binds nothing.
    pub rate_gbit_per_s: Option<f64>,
}

/// A time of so many nanoseconds.
fn time(ns: f64) -> Time {
    Time::from_ps((ns * 1e3).round() as u64)
}

/// A rate of so many Gbit/s.
pub(crate) fn bit_rate(gbit_per_s: f64) -> BitRate {
    BitRate::from_bits_per_second((gbit_per_s * 1e9).round() as u64)
}

impl LinkAnswer {
    fn of(link: &Link) -> LinkAnswer {
        LinkAnswer {
            name: link.name.clone(),
            from: link.from.clone(),
            to: link.to.clone(),
            delay_ns: link.delay.as_ns(),
            rate_gbit_per_s: link.pcie.as_ref().map(|pcie| pcie.rate.as_gbit_per_s()),
        }
    }

    /// What stands at it in a picture: its name, its bandwidth and its delay.
    pub fn label(&self) -> Vec<String> {
        let mut lines = vec![self.name.clone()];
        match self.rate_gbit_per_s.map(bit_rate) {
            Some(rate) => lines.extend([format!("→ {rate}"), format!("← {rate}")]),
            None => lines.push("not a limit".to_string()),
        }
        if self.delay_ns > 0.0 {
            lines.push(format!("pass {}", time(self.delay_ns)));
        }
        lines
    }
}

impl MachineAnswer {
    /// What a machine is made of.
    pub fn of(machine: &Machine) -> MachineAnswer {
        let engine = |engine: &offpath_profile::Engine| EngineAnswer {
            name: engine.name.clone(),
            endpoint: engine.endpoint.clone(),
        };
        let node = |name: &str| NodeAnswer { name: name.to_string(), about: about(machine, name) };
        MachineAnswer {
            role: machine.role.clone(),
            prefix: machine.prefix.clone(),
            device: machine.device.clone(),
            host: machine.host.clone(),
            count: machine.count,
            available: machine.available,
            nic: machine.nic.name.clone(),
            nic_port_rate_gbit_per_s: machine.nic.port_rate.as_gbit_per_s(),
            switches: machine.switches.iter().map(|switch| switch.name.clone()).collect(),
            endpoints: machine.endpoints.iter().map(|endpoint| endpoint.name.clone()).collect(),
            engines: machine.engines.iter().map(engine).collect(),
            links: machine.links.iter().map(LinkAnswer::of).collect(),
            large_transfer_limits: machine
                .large_transfer_limits
                .iter()
                .map(|limit| limit.name.clone())
                .collect(),
            absent_endpoints: machine.absent.clone(),
            nodes: machine.nodes().map(node).collect(),
        }
    }

    /// Its title: role, device and host, and how many there are.
    pub fn title(&self) -> String {
        let MachineAnswer { role, device, host, count, available, .. } = self;
        format!("{role}: {device} in host {host}, {count} of {available} take part")
    }
}

/// What a reader wants to know about a node first.
fn about(machine: &Machine, name: &str) -> Vec<String> {
    let mut lines = Vec::new();
    if name == machine.nic.name {
        lines.push(format!("port {}", machine.nic.port_rate));
        // A port has no slots, and the profile no number of them.
        if machine.nic.carries_verbs {
            lines.push(format!("{} in-flight slots", machine.nic.inflight_slots));
            if machine.nic.reserved_inflight_slots > 0 {
                lines.push(format!("{} reserved", machine.nic.reserved_inflight_slots));
            }
        }
    }
    if let Some(switch) = machine.switches.iter().find(|switch| switch.name == name) {
        lines.push(format!("pass {}", switch.pass_time));
    }
    if let Some(endpoint) = machine.endpoints.iter().find(|endpoint| endpoint.name == name) {
        lines.push(format!("{} x {}", endpoint.processor.cores, endpoint.processor.frequency));
        lines.push(format!("memory {}", endpoint.memory.capacity));
        if endpoint.memory.ddio {
            lines.push("DDIO".to_string());
        }
        lines.push(format!("PCIe MTU {}", endpoint.memory.pcie_mtu));
        for engine in machine.engines.iter().filter(|engine| engine.endpoint == name) {
            lines.push(format!("engine {}", engine.name));
        }
    }
    lines
}

/// Refuses a card whose NIC is a port, where verbs are meant.
pub(crate) fn check_verbs(system: &System) -> Result<(), Failure> {
    match system.machines.iter().find(|machine| machine.prefix.is_empty()) {
        Some(server) if !server.nic.carries_verbs => Err(Failure::input(
            format!(
                "{0} has no verbs: its `{1}` is a port that hands packets to processors",
                system.device, server.nic.name
            ),
            format!(
                "`forward` is what its processors do with packets: `offpath path {}` lists the paths",
                system.device
            ),
        )),
        _ => Ok(()),
    }
}

/// That the ends of a path have ports of different rates, which the slower one of both bounds: a benchmark mostly runs between
/// two machines with the same card.
pub(crate) fn unlike_ends(system: &System, path: &str) -> Option<String> {
    let path: offpath_route::Path = path.parse().ok()?;
    let [from, to] = [&path.requester, &path.responder]
        .map(|name| system.endpoint(name).ok().map(|(machine, _)| (name, machine.nic.port_rate)));
    let ((from, sends), (to, receives)) = (from?, to?);
    (sends != receives).then(|| {
        format!(
            "taken to run from `{from}`, whose port carries {sends}, to `{to}`, whose port carries {receives}, as in the \
             testbed `{}`: where both ends have the same card, name one of two such machines by `--testbed`, as `rack-pair`",
            system.testbed
        )
    })
}
