//! What is odd about a machine: things that cost throughput or latency and that its owner may not know of.

use super::{CardLinkFacts, Description};
use offpath_logs::machine::{
    FactPlace, MachineFacts, PciAddress, PciErrors, PciFunction, PciLinkState, RdmaPortFacts, Stated,
};
use offpath_profile::DraftPart;
use offpath_quantity::{Bytes, Quantity};

/// What sort of oddity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OddityKind {
    /// A link runs slower or narrower than both its ends can.
    LinkBelowMaximum,
    /// A link runs as its slot allows, and the card could do more.
    SlotBelowCard,
    /// A port is down.
    PortDown,
    /// A port runs slower than a mode that it supports.
    PortBelowMaximum,
    /// The card or a bridge above it has noted errors on PCIe of which one was fatal.
    PcieFatalErrors,
    /// It has noted others.
    PcieErrors,
    /// Packets on the network are smaller than the port can.
    PathMtu,
    /// TLPs are smaller than everyone on the way can.
    MaxPayload,
    /// Read requests are smaller than PCIe has them.
    MaxReadRequest,
    /// The clock is governed to save power.
    Governor,
    /// Card and memory are on different nodes.
    MemoryNode,
    /// Requests may not be answered out of order.
    RelaxedOrdering,
    /// Addresses are translated.
    Iommu,
    /// Requests between neighbours go up to the root.
    AccessControl,
    /// It is a virtual machine.
    VirtualMachine,
    /// Two of its files contradict one another.
    Contradiction,
}

impl OddityKind {
    /// Its name in answers.
    pub fn name(self) -> &'static str {
        match self {
            OddityKind::LinkBelowMaximum => "link-below-maximum",
            OddityKind::SlotBelowCard => "slot-below-card",
            OddityKind::PortDown => "port-down",
            OddityKind::PortBelowMaximum => "port-below-maximum",
            OddityKind::PcieFatalErrors => "pcie-fatal-errors",
            OddityKind::PcieErrors => "pcie-errors",
            OddityKind::PathMtu => "path-mtu",
            OddityKind::MaxPayload => "max-payload",
            OddityKind::MaxReadRequest => "max-read-request",
            OddityKind::Governor => "governor",
            OddityKind::MemoryNode => "memory-node",
            OddityKind::RelaxedOrdering => "relaxed-ordering",
            OddityKind::Iommu => "iommu",
            OddityKind::AccessControl => "access-control",
            OddityKind::VirtualMachine => "virtual-machine",
            OddityKind::Contradiction => "contradiction",
        }
    }
}

/// A number as it would be without the oddity.
#[derive(Clone, Debug, PartialEq)]
pub struct Mend {
    /// What it belongs to.
    pub part: DraftPart,
    /// Its key.
    pub key: &'static str,
    /// Its value.
    pub value: Quantity,
}

/// Something odd.
#[derive(Clone, Debug, PartialEq)]
pub struct Oddity {
    /// Of which sort.
    pub kind: OddityKind,
    /// What is odd, in a sentence with its figures.
    pub what: String,
    /// What to do or to look at.
    pub next_step: String,
    /// Where it stands.
    pub at: FactPlace,
    /// Of a port that is down: its device, where no other port of that one is up.
    pub down_device: Option<String>,
    /// What the model takes otherwise without it; empty where the model has no number of it.
    pub mends: Vec<Mend>,
    /// Whether it is worth a word only where the model says that it costs something.
    pub only_if_costly: bool,
}

/// Adds everything odd to a description.
pub(super) fn find(
    facts: &MachineFacts,
    card: Option<PciAddress>,
    links: &[CardLinkFacts],
    description: &mut Description,
) {
    let mut found = Vec::new();
    of_links(links, &mut found);
    if let Some(address) = card {
        of_sizes(facts, address, &mut found);
        of_function(facts, address, &mut found);
    }
    of_ports(facts, card, &mut found);
    of_processor(facts, card, &mut found);
    found.sort_by_key(|oddity| oddity.kind);
    description.oddities = found;
}

fn odd(kind: OddityKind, what: String, next_step: impl Into<String>, at: &FactPlace) -> Oddity {
    Oddity {
        kind,
        what,
        next_step: next_step.into(),
        at: at.clone(),
        down_device: None,
        mends: Vec::new(),
        only_if_costly: false,
    }
}

/// The rate of the links of a sort where one of them were otherwise.
fn mended_rate(links: &[CardLinkFacts], index: usize, with: PciLinkState) -> Vec<Mend> {
    let part = if links[index].is_on_card { DraftPart::CardLink } else { DraftPart::HostLink };
    let others = links
        .iter()
        .enumerate()
        .filter(|(other, link)| *other != index && link.is_on_card == links[index].is_on_card);
    let all = others.filter_map(|(_, link)| link.now.as_ref()).map(|now| now.value).chain([with]);
    let Some(slowest) = all.min_by(|a, b| a.data_rate().total_cmp(&b.data_rate())) else { return Vec::new() };
    vec![
        Mend { part, key: "rate", value: Quantity::BitRate(slowest.rate()) },
        Mend { part, key: "encoding", value: Quantity::Ratio((slowest.encoding() * 1e6).round() / 1e6) },
    ]
}

/// What to do where files contradict one another.
const AGAIN: &str = "collect all files anew, at once: these are of two machines, or of two days";

fn of_links(links: &[CardLinkFacts], found: &mut Vec<Oddity>) {
    for (index, link) in links.iter().enumerate() {
        let (Some(now), Some(most)) = (&link.now, link.at_most) else { continue };
        let ends = match link.upper {
            Some(upper) => format!("the link of `{}` to `{upper}`", link.lower),
            None => format!("the link of `{}`", link.lower),
        };
        if let Some(above) = link.upper_now.as_ref().filter(|above| above.value != now.value) {
            let what = format!(
                "{ends} runs at {} as its lower end says, and at {} as its upper one does, which have to be the same",
                now.value, above.value
            );
            found.push(odd(OddityKind::Contradiction, what, AGAIN, &above.at));
            continue;
        }
        if now.value.data_rate() < most.data_rate() {
            let what = format!("{ends} runs at {}, and both ends can {most}", now.value);
            let next =
                "reseat the card, try another slot, and look at the slot's speed and bifurcation in the BIOS";
            let mut one = odd(OddityKind::LinkBelowMaximum, what, next, &now.at);
            one.mends = mended_rate(links, index, most);
            found.push(one);
            continue;
        }
        let Some(own) = &link.lower_at_most else { continue };
        let is_card = index == 0;
        if is_card && own.value.data_rate() > now.value.data_rate() {
            let what = format!(
                "{ends} runs at {}, as its slot does at most, and the card can {}",
                now.value, own.value
            );
            let next = "a slot with more lanes or a newer PCIe carries more, if the machine has one";
            let mut one = odd(OddityKind::SlotBelowCard, what, next, &own.at);
            one.mends = mended_rate(links, index, own.value);
            found.push(one);
        }
    }
}

/// Sizes of packets and of read requests on PCIe.
fn of_sizes(facts: &MachineFacts, card: PciAddress, found: &mut Vec<Oddity>) {
    let function = &facts.pci[&card];
    let bridges = facts.bridges_above(card);
    let chain: Vec<&PciFunction> =
        std::iter::once(function).chain(bridges.into_iter().map(|(_, own)| own)).collect();
    let known: Vec<Bytes> =
        chain.iter().filter_map(|own| own.max_payload_at_most.as_ref()).map(|own| own.value).collect();
    // Where one on the way does not say what it can, more may not be possible.
    let most = known.iter().min().copied().filter(|_| known.len() == chain.len() && chain.len() > 1);
    if let (Some(now), Some(most)) = (&function.max_payload, most)
        && now.value < most
    {
        let what = format!("MaxPayload is {}, and the card and every bridge above it can {most}", now.value);
        let next = "set MaxPayload in the BIOS, or start the kernel with `pci=pcie_bus_perf`";
        let mut one = odd(OddityKind::MaxPayload, what, next, &now.at);
        one.mends = vec![Mend { part: DraftPart::Host, key: "pcie_mtu", value: Quantity::Bytes(most) }];
        one.only_if_costly = true;
        found.push(one);
    }
    const MOST: Bytes = Bytes::new(4096);
    if let Some(now) = &function.max_read_request
        && now.value < MOST
    {
        let what = format!("MaxReadReq is {}, and PCIe has read requests of up to {MOST}", now.value);
        let next = format!(
            "try `setpci -s {card} CAP_EXP+8.w` with 5 in the highest digit's three bits, as the vendor's guide says"
        );
        let mut one = odd(OddityKind::MaxReadRequest, what, next, &now.at);
        let value = Quantity::Bytes(MOST);
        one.mends = [DraftPart::HostLink, DraftPart::CardLink]
            .map(|part| Mend { part, key: "read_request_limit", value })
            .to_vec();
        // 512 B is what most machines have; less is odd by itself.
        one.only_if_costly = now.value >= Bytes::new(512);
        found.push(one);
    }
}

fn of_function(facts: &MachineFacts, card: PciAddress, found: &mut Vec<Oddity>) {
    let function = &facts.pci[&card];
    if let Some(ordering) = function.relaxed_ordering.as_ref().filter(|own| !own.value) {
        let what = "the card may not mark requests as relaxed in order (`RlxdOrd-`)".to_string();
        let next = "allow it in the BIOS or by `setpci`, where the processor's vendor advises it; tools ask for it themselves";
        found.push(odd(OddityKind::RelaxedOrdering, what, next, &ordering.at));
    }
    let is_translating = |kind: &&Stated<String>| kind.value.starts_with("DMA");
    let by_options = facts.iommu_options.as_ref().filter(|options| {
        options
            .value
            .split(' ')
            .any(|word| word.ends_with("iommu=on") || word.ends_with("iommu=force_enable"))
            && !options.value.split(' ').any(|word| word == "iommu=pt")
    });
    let translating =
        function.iommu_type.as_ref().filter(is_translating).map(|own| (&own.at, own.value.clone()));
    // What the kernel says of the card itself goes before what it was started with.
    let by_options = by_options.filter(|_| function.iommu_type.is_none());
    if let Some((at, said)) = translating.or(by_options.map(|own| (&own.at, own.value.clone()))) {
        let what = format!("the IOMMU translates the card's addresses (`{said}`)");
        let next = "start the kernel with `iommu=pt` where nothing but trusted programs uses the card, and measure again";
        found.push(odd(OddityKind::Iommu, what, next, at));
    }
    let above = facts.bridges_above(card);
    for (address, own) in std::iter::once((card, function)).chain(above.iter().copied()) {
        found.extend(own.errors.as_ref().and_then(|errors| of_errors(address, errors)));
    }
    for (address, bridge) in above {
        if let Some(redirects) = bridge.redirects_requests.as_ref().filter(|own| own.value) {
            let what = format!(
                "access control of `{address}` sends requests between its neighbours up to the root (`ReqRedir+`)"
            );
            let next = "it costs nothing but between devices of one switch, such as a GPU and the card: switch ACS off there";
            found.push(odd(OddityKind::AccessControl, what, next, &redirects.at));
        }
    }
}

/// Errors that a function on the way has noted. Where it has noted a request that it does not know, a corrected one says nothing: PCIe
/// has those reported so, and a machine that looks for devices asks for what is not there.
fn of_errors(address: PciAddress, errors: &Stated<PciErrors>) -> Option<Oddity> {
    let PciErrors { corrected, non_fatal, fatal, unsupported_request } = errors.value;
    let names: Vec<&str> = [
        (corrected && !unsupported_request, "corrected (`CorrErr+`)"),
        (non_fatal, "non-fatal (`NonFatalErr+`)"),
        (fatal, "fatal (`FatalErr+`)"),
    ]
    .into_iter()
    .filter_map(|(is_noted, name)| is_noted.then_some(name))
    .collect();
    let kind = if fatal { OddityKind::PcieFatalErrors } else { OddityKind::PcieErrors };
    (!names.is_empty()).then(|| {
        let what = format!(
            "`{address}` has noted errors on PCIe since it was started or they were cleared: {}",
            names.join(", ")
        );
        let next = format!(
            "clear them by `setpci -s {address} CAP_EXP+a.w=000f`, measure, and look again: where they come back the slot, a riser or the \
             card is bad; `dmesg` has AER's lines"
        );
        odd(kind, what, next, &errors.at)
    })
}

fn of_ports(facts: &MachineFacts, card: Option<PciAddress>, found: &mut Vec<Oddity>) {
    let ports = match card {
        Some(card) => super::ports(facts, card),
        None => facts.rdma.iter().collect(),
    };
    for port in ports {
        let name = format!("port {} of `{}`", port.port, port.device);
        if let Some(up) = port.is_active.as_ref().filter(|own| !own.value) {
            let next = "look at the cable and the switch's port; a port that nobody uses may stay down";
            let mut one = odd(OddityKind::PortDown, format!("{name} is down"), next, &up.at);
            let is_up = |other: &RdmaPortFacts| {
                other.device == port.device && other.is_active.as_ref().is_some_and(|up| up.value)
            };
            one.down_device = (!facts.rdma.iter().any(is_up)).then(|| port.device.clone());
            found.push(one);
            continue;
        }
        if let (Some(now), Some(most)) = (&port.mtu, &port.mtu_at_most)
            && now.value < most.value
        {
            let what = format!("{name} sends packets of {}, and can {}", now.value, most.value);
            let is_ethernet = port.link_layer.as_ref().is_some_and(|layer| layer.value == "Ethernet");
            let next = match is_ethernet {
                true => "raise the MTU of the interface, and of every switch on the way, to 4200 or more",
                false => "raise the MTU of the subnet's partition",
            };
            let mut one = odd(OddityKind::PathMtu, what, next, &now.at);
            one.mends =
                vec![Mend { part: DraftPart::Network, key: "mtu", value: Quantity::Bytes(most.value) }];
            found.push(one);
        }
    }
    // By their addresses it is not always said which interface is which port's.
    let rates: Vec<_> = facts.interfaces.values().filter_map(|interface| interface.rate.as_ref()).collect();
    let active = |port: &&RdmaPortFacts| port.is_active.as_ref().is_none_or(|up| up.value);
    let ports: Vec<_> = facts.rdma.iter().filter(active).filter_map(|port| port.rate()).collect();
    if let ([port], [interface]) = (&ports[..], &rates[..])
        && port.value != interface.value
    {
        let what = format!(
            "the port carries {} by {}, and {} by its interface",
            port.value, port.at, interface.value
        );
        found.push(odd(OddityKind::Contradiction, what, AGAIN, &interface.at));
    }
    for (name, interface) in &facts.interfaces {
        if let (Some(now), Some(most)) = (&interface.rate, &interface.rate_at_most)
            && now.value < most.value
        {
            let what = format!("`{name}` runs at {}, and supports {}", now.value, most.value);
            let next = "look at the cable, the other end, and what both are set to (`ethtool`, `mlxlink`)";
            let mut one = odd(OddityKind::PortBelowMaximum, what, next, &now.at);
            // With several interfaces it is not said which share of the card's ports this is.
            if facts.interfaces.len() == 1 {
                one.mends = vec![Mend {
                    part: DraftPart::Nic,
                    key: "port_rate",
                    value: Quantity::BitRate(most.value),
                }];
            }
            found.push(one);
        }
    }
}

fn of_processor(facts: &MachineFacts, card: Option<PciAddress>, found: &mut Vec<Oddity>) {
    let processor = &facts.processor;
    if let Some(governor) = processor.governor.as_ref().filter(|own| own.value != "performance") {
        let what = format!("the clock is governed by `{}`", governor.value);
        let next = "`cpupower frequency-set -g performance` while measuring; under it latencies and posting times are steady";
        found.push(odd(OddityKind::Governor, what, next, &governor.at));
    }
    let node = card.and_then(|card| facts.pci[&card].numa_node.as_ref());
    if let (Some(node), Some(bound)) = (node, &facts.bound_nodes)
        && facts.nodes.len() > 1
        && !bound.value.contains(&node.value)
    {
        let all: Vec<String> = bound.value.iter().map(u64::to_string).collect();
        let what = format!(
            "the card is at memory node {}, and programs here are bound to {}",
            node.value,
            all.join(", ")
        );
        let next = format!("measure with `numactl --cpunodebind={0} --membind={0}`", node.value);
        found.push(odd(OddityKind::MemoryNode, what, next, &bound.at));
    }
    if let Some(node) = node
        && let Some(memory) = facts.nodes.get(&node.value).and_then(|own| own.memory_bytes.as_ref())
        && memory.value == 0
    {
        let what = format!("the card is at memory node {}, which has no memory", node.value);
        found.push(odd(OddityKind::MemoryNode, what, "put memory into that socket's channels", &memory.at));
    }
    if let Some(hypervisor) = &processor.hypervisor {
        let what =
            format!("it is a virtual machine of {}, whose links and nodes may be invented", hypervisor.value);
        found.push(odd(OddityKind::VirtualMachine, what, "describe the physical machine", &hypervisor.at));
    }
}
