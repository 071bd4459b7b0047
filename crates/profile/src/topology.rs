//! Looking things up in a system, and finding the hops between two nodes of a machine.

use crate::error::suggestion;
use crate::{
    Cache, Endpoint, Engine, LargeTransferLimit, Link, Machine, Memory, Problem, ProfileError, Reach, Switch,
    System,
};
use offpath_quantity::Time;
use std::collections::{BTreeMap, VecDeque};

/// Which way a link is passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From the node nearer to the NIC to the farther one.
    Forward,
    /// Towards the NIC.
    Backward,
}

/// One link between two nodes, and the switch that is passed behind it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LinkHop<'a> {
    /// The link.
    pub link: &'a Link,
    /// Which way it is passed.
    pub direction: Direction,
    /// The switch that is passed after the link; absent at the NIC and at the last link.
    pub switch: Option<&'a Switch>,
}

impl Machine {
    /// Every node of the machine by its dotted name: the NIC, the switches, the processors and memories.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self.nic.name.as_str())
            .chain(self.switches.iter().map(|switch| switch.name.as_str()))
            .chain(self.ends())
    }

    /// The nodes that forward nothing: processors, and memories at nodes of their own.
    pub fn ends(&self) -> impl Iterator<Item = &str> {
        let processors = self.endpoints.iter().map(|endpoint| endpoint.processor.name.as_str());
        processors.chain(self.memories.iter().map(|memory| memory.name.as_str()))
    }

    /// Every memory: those beside their processor, in the order of the endpoints, then the others.
    pub fn all_memories(&self) -> impl Iterator<Item = &Memory> {
        let beside = self.endpoints.iter().filter(|one| one.processor.name == one.memory.name);
        beside.map(|endpoint| &endpoint.memory).chain(&self.memories)
    }

    /// Whether a memory is a host's own.
    pub fn is_of_host(&self, memory: &str) -> bool {
        self.endpoints.iter().any(|one| one.processor.is_host && one.memory.name == memory)
    }

    /// How a processor reaches a memory by its own loads and stores, where the profile says it.
    pub fn reach(&self, processor: &str, memory: &str) -> Option<&Reach> {
        self.reaches.iter().find(|reach| reach.processor == processor && reach.memory == memory)
    }

    /// The cache of a name that a reach of this machine names; another name is the caller's mistake.
    pub fn cache(&self, name: &str) -> &Cache {
        self.caches.iter().find(|cache| cache.name == name).expect("a reach names caches of its machine")
    }

    /// The cache before a memory, at the far end of a processor's way to it, and what a load saves that it answers: what one
    /// of the cache's own processor saves on its own way to its own memory, which is the first of the three. None where the
    /// profile does not say how that processor reaches its own memory.
    pub fn last_level(&self, reach: &Reach) -> Option<(&Reach, &Cache, Time)> {
        let processor = reach.last_level_of.as_ref()?;
        let own = self.endpoints.iter().find(|one| one.processor.name == *processor)?;
        let own = self.reach(processor, &own.memory.name)?;
        let cache = self.cache(own.through.last()?);
        Some((own, cache, own.latency.saturating_sub(cache.latency)))
    }

    /// The large-transfer limits that a verb on a memory of this machine falls into when its payload is long enough, each
    /// with its position. `requester` is the processor that asks, where that is one of this machine. A limit names the
    /// responder's processor and means the memory that is this processor's own.
    pub fn large_transfer_limits_of<'m>(
        &'m self,
        requester: Option<&'m str>,
        memory: &'m str,
        verb: &'m str,
    ) -> impl Iterator<Item = (usize, &'m LargeTransferLimit)> {
        self.large_transfer_limits.iter().enumerate().filter(move |(_, limit)| {
            let asks = match limit.requester.as_str() {
                "*" => requester.is_none(),
                named => requester == Some(named),
            };
            let own = self.endpoints.iter().find(|one| one.processor.name == limit.responder);
            asks && own.is_some_and(|own| own.memory.name == memory)
                && limit.verbs.iter().any(|one| one == verb)
        })
    }

    /// The DMA engine of a name, which may be written with or without the machine's prefix.
    pub fn engine(&self, name: &str) -> Result<&Engine, ProfileError> {
        let full = format!("{}{name}", self.prefix);
        self.engines.iter().find(|engine| engine.name == name || engine.name == full).ok_or_else(|| {
            unknown(
                "engine",
                name,
                format!("in machine `{}`", self.role),
                self.engines.iter().map(|e| e.name.as_str()),
            )
        })
    }

    /// The fewest hops between two nodes, found breadth first in the order of the links.
    ///
    /// Hops pass switches and the NIC, never another endpoint, since processors forward
    /// nothing. From a node to itself it is empty.
    pub fn hops(&self, from: &str, to: &str) -> Result<Vec<LinkHop<'_>>, ProfileError> {
        for node in [from, to] {
            if !self.nodes().any(|name| name == node) {
                return Err(unknown("node", node, format!("in machine `{}`", self.role), self.nodes()));
            }
        }
        let mut reached: BTreeMap<&str, LinkHop<'_>> = BTreeMap::new();
        let mut waiting = VecDeque::from([from]);
        while let Some(node) = waiting.pop_front() {
            if node == to {
                break;
            }
            if node != from && self.ends().any(|end| end == node) {
                continue;
            }
            for link in &self.links {
                let (next, direction) = match node {
                    _ if link.from == node => (link.to.as_str(), Direction::Forward),
                    _ if link.to == node => (link.from.as_str(), Direction::Backward),
                    _ => continue,
                };
                if next != from && !reached.contains_key(next) {
                    let switch = self.switches.iter().find(|switch| switch.name == next && next != to);
                    reached.insert(next, LinkHop { link, direction, switch });
                    waiting.push_back(next);
                }
            }
        }
        let (mut hops, mut node) = (Vec::new(), to);
        while node != from {
            let Some(hop) = reached.get(node) else {
                return Err(ProfileError::new(
                    Problem::Structure { reason: format!("no links lead from `{from}` to `{to}`") },
                    "add a link or wire whose `between` joins them or a switch between them",
                    None,
                ));
            };
            hops.push(*hop);
            node = match hop.direction {
                Direction::Forward => &hop.link.from,
                Direction::Backward => &hop.link.to,
            };
        }
        hops.reverse();
        Ok(hops)
    }
}

impl System {
    /// The machine of a role.
    pub fn machine(&self, role: &str) -> Result<&Machine, ProfileError> {
        self.machines.iter().find(|machine| machine.role == role).ok_or_else(|| {
            let known = self.machines.iter().map(|machine| machine.role.as_str());
            unknown("machine", role, format!("in testbed `{}`", self.testbed), known)
        })
    }

    /// The endpoint of a name that paths use, with its machine.
    ///
    /// An endpoint that the card's mode hides is refused with the mode's name.
    pub fn endpoint(&self, name: &str) -> Result<(&Machine, &Endpoint), ProfileError> {
        let mut all = self.machines.iter().flat_map(|machine| {
            machine.endpoints.iter().chain(&machine.apart).map(move |endpoint| (machine, endpoint))
        });
        if let Some(found) = all.find(|(_, endpoint)| endpoint.name == name) {
            return Ok(found);
        }
        let known = self.endpoints().map(|(_, endpoint)| endpoint.name.as_str());
        if self.machines.iter().any(|machine| machine.absent.iter().any(|absent| absent == name)) {
            return Err(ProfileError::new(
                Problem::Mode { what: "endpoint".into(), name: name.into(), mode: self.mode.clone() },
                format!(
                    "choose another mode of the card, or an endpoint that it has; {}",
                    suggestion(name, known)
                ),
                None,
            ));
        }
        Err(unknown("endpoint", name, format!("in testbed `{}` with `{}`", self.testbed, self.device), known))
    }

    /// The endpoint that a role of an application runs at: the one of its name; where there is none, `host` and
    /// `soc` are the host and the only other processor of the machine that carries the device, and `client` is the
    /// host of the machines `client` (and so for every other role of a machine), whatever the profile calls them.
    ///
    /// An application is written for one of each. Of several processors on a card the profile says which is meant
    /// by calling it `soc`.
    ///
    /// # Errors
    /// Where no endpoint is meant, or more than one may be.
    pub fn role_endpoint(&self, role: &str) -> Result<(&Machine, &Endpoint), ProfileError> {
        let named = self.endpoint(role);
        let is_hidden =
            self.machines.iter().any(|machine| machine.absent.iter().any(|absent| absent == role));
        if named.is_ok() || is_hidden {
            return named;
        }
        let machine = match role {
            "host" | "soc" => self.machines.iter().find(|machine| machine.prefix.is_empty()),
            other => self.machines.iter().find(|machine| machine.role == other && !machine.prefix.is_empty()),
        };
        let meant = machine.iter().flat_map(|machine| {
            machine.endpoints.iter().filter(|endpoint| endpoint.processor.is_host == (role != "soc"))
        });
        match (machine, &meant.collect::<Vec<_>>()[..]) {
            (Some(machine), [only]) => Ok((machine, only)),
            (Some(_), several @ [_, _, ..]) => {
                let known: Vec<String> = several.iter().map(|one| format!("`{}`", one.name)).collect();
                let (last, first) = known.split_last().expect("they are several");
                Err(ProfileError::new(
                    Problem::Structure {
                        reason: format!(
                            "`{}` does not say which of {} and {last} runs what an application gives to `{role}`",
                            self.device,
                            first.join(", ")
                        ),
                    },
                    format!("call the one that is meant `{role}` in its profile"),
                    None,
                ))
            }
            _ => named,
        }
    }

    /// The host of the machine that carries the device asked for; absent where the device has none.
    pub fn host(&self) -> Option<&Endpoint> {
        let server = self.machines.iter().find(|machine| machine.prefix.is_empty())?;
        server.endpoints.iter().find(|endpoint| endpoint.processor.is_host)
    }

    /// By how much of a thread a share may fall short of whole ones: it is written with few digits.
    pub const WHOLE: f64 = 1e-3;

    /// How many threads of the host requests may use, where they may not use all, and how many it has.
    pub fn open_host_threads(&self) -> Option<(u64, u64)> {
        let all = self.host()?.processor.threads();
        let share = self.host_share.filter(|share| *share < 1.0)?;
        let whole = (share * all as f64 + System::WHOLE).floor() as u64;
        Some((whole.max(1), all))
    }

    /// Every processor with its own memory, and its machine, machine by machine.
    pub fn endpoints(&self) -> impl Iterator<Item = (&Machine, &Endpoint)> {
        self.machines
            .iter()
            .flat_map(|machine| machine.endpoints.iter().map(move |endpoint| (machine, endpoint)))
    }

    /// Whether the profile has all that the card's mode costs.
    pub fn is_mode_modelled(&self) -> bool {
        self.mode != "embedded-cpu"
    }

    /// What the card's mode means for routes and placements, where it is not the common one.
    pub fn mode_note(&self) -> Option<&'static str> {
        match self.mode.as_str() {
            "embedded-cpu" => Some(
                "in mode `embedded-cpu` the card's processor owns the NIC: packets of the host pass a switch that \
                 this processor configures, and the cost of that is not part of the profile",
            ),
            "nic" => Some("in mode `nic` the card's processors and their engines cannot be reached"),
            _ => None,
        }
    }
}

fn unknown<'a>(
    what: &str,
    name: &str,
    place: String,
    known: impl IntoIterator<Item = &'a str>,
) -> ProfileError {
    ProfileError::new(
        Problem::Unknown { what: what.into(), name: name.into(), place },
        suggestion(name, known),
        None,
    )
}
