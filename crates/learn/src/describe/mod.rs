//! From what a machine says of itself to numbers of a profile, and to what is odd about the machine.

mod cost;
mod oddity;

pub use cost::{OddityCost, costs};
pub use oddity::{Mend, Oddity, OddityKind};

use crate::link_layer::PacketHeader;
use offpath_logs::machine::{
    FactPlace, MachineFacts, PciAddress, PciFunction, PciLinkState, PciPort, RdmaPortFacts, Stated,
};
use offpath_profile::{DraftNumber, DraftPart, Provenance};
use offpath_quantity::{BitRate, Bytes, Quantity};
use std::collections::BTreeSet;
use thiserror::Error;

/// Why a machine cannot be described.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DescribeError {
    /// Several cards, and none is named.
    #[error("the files list {} network cards: {}", .0.len(), .0.join(", "))]
    SeveralCards(Vec<String>),
    /// The card that is named is not there.
    #[error("the files list no network card at `{named}`; they list {}", list(.known))]
    NoSuchCard {
        /// What was asked for.
        named: String,
        /// What is there.
        known: Vec<String>,
    },
}

fn list(known: &[String]) -> String {
    if known.is_empty() { "none".to_string() } else { known.join(", ") }
}

/// The card of a machine.
#[derive(Clone, Debug, PartialEq)]
pub struct DescribedCard {
    /// Its first function.
    pub address: PciAddress,
    /// What it calls itself.
    pub name: String,
    /// Its functions.
    pub functions: Vec<PciAddress>,
    /// Version of its firmware.
    pub firmware: Option<String>,
    /// Whether the files are of the card's own processor: every bridge above it is of the card's vendor.
    pub is_own_processor: bool,
}

/// What a machine says of itself, as a profile needs it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// The card, where one is listed.
    pub card: Option<DescribedCard>,
    /// The mode that the card's firmware is set to.
    pub mode: Option<&'static str>,
    /// The links between the card and the root, the nearest first.
    pub links: Vec<CardLinkFacts>,
    /// Numbers of the profile.
    pub numbers: Vec<DraftNumber>,
    /// What is odd, the costliest kinds first.
    pub oddities: Vec<Oddity>,
    /// What the files do not say, each with the command that tells it.
    pub unsaid: Vec<String>,
}

/// A link above a card, as its two ends have it.
#[derive(Clone, Debug, PartialEq)]
pub struct CardLinkFacts {
    /// The function below.
    pub lower: PciAddress,
    /// The bridge above.
    pub upper: Option<PciAddress>,
    /// What it does now.
    pub now: Option<Stated<PciLinkState>>,
    /// How it runs as its upper end says.
    pub upper_now: Option<Stated<PciLinkState>>,
    /// The most of the lower end.
    pub lower_at_most: Option<Stated<PciLinkState>>,
    /// The most of both ends.
    pub at_most: Option<PciLinkState>,
    /// Whether both ends are the card's.
    pub is_on_card: bool,
}

/// Says what a machine is, as far as a profile and a reader of its measurements need it.
///
/// `card` names the card's address where the files list several.
///
/// # Errors
/// Where it is not clear which card is meant.
pub fn describe(facts: &MachineFacts, card: Option<&str>) -> Result<Description, DescribeError> {
    let mut description = Description { mode: mode(facts), ..Description::default() };
    let address = chosen(facts, card)?;
    let mut links = Vec::new();
    if let Some(address) = address {
        links = self::links(facts, address);
        let function = &facts.pci[&address];
        let ports = ports(facts, address);
        description.card = Some(DescribedCard {
            address,
            name: function.name.clone(),
            functions: facts.pci.keys().copied().filter(|own| own.slot() == address.slot()).collect(),
            firmware: ports.iter().find_map(|port| port.firmware.as_ref()).map(|own| own.value.clone()),
            is_own_processor: !links.is_empty() && links.iter().all(|link| link.is_on_card),
        });
        describe_card(&links, function, &mut description);
        describe_ports(facts, &ports, &mut description);
    } else {
        let all: Vec<&RdmaPortFacts> = facts.rdma.iter().collect();
        describe_ports(facts, &all, &mut description);
    }
    describe_processor(facts, &mut description);
    oddity::find(facts, address, &links, &mut description);
    unsaid(facts, address, &mut description);
    description.links = links;
    Ok(description)
}

/// The first function of the card that is meant.
fn chosen(facts: &MachineFacts, card: Option<&str>) -> Result<Option<PciAddress>, DescribeError> {
    let network: BTreeSet<PciAddress> =
        facts.pci.iter().filter(|(_, own)| own.is_network()).map(|(own, _)| *own).collect();
    let slots: BTreeSet<PciAddress> = network.iter().map(|own| own.slot()).collect();
    let first = |slot: &PciAddress| network.iter().find(|own| own.slot() == *slot).copied();
    let names = |slots: &BTreeSet<PciAddress>| -> Vec<String> {
        let named = slots.iter().filter_map(|slot| first(slot).map(|own| (own, &facts.pci[&own].name)));
        named.map(|(own, name)| format!("`{own}` ({name})")).collect()
    };
    if let Some(named) = card {
        let asked = PciAddress::read(named).or_else(|| PciAddress::read(&format!("{named}.0")));
        let found = asked.and_then(|asked| first(&asked.slot()));
        return match found {
            Some(found) => Ok(Some(found)),
            None => Err(DescribeError::NoSuchCard { named: named.to_string(), known: names(&slots) }),
        };
    }
    let slots = meant(facts, &network, slots);
    match slots.len() {
        0 => Ok(None),
        1 => Ok(slots.first().and_then(first)),
        _ => Err(DescribeError::SeveralCards(names(&slots))),
    }
}

/// Of a machine's network cards those that RDMA devices belong to, as far as that is said: others are for its own needs.
fn meant(
    facts: &MachineFacts,
    network: &BTreeSet<PciAddress>,
    slots: BTreeSet<PciAddress>,
) -> BTreeSet<PciAddress> {
    let known: BTreeSet<PciAddress> =
        facts.rdma.iter().filter_map(|port| port.address.as_ref()).map(|own| own.value.slot()).collect();
    let drivers: BTreeSet<&str> = facts
        .rdma
        .iter()
        .filter_map(|port| port.device.split('_').next())
        .filter(|name| name.len() > 2)
        .collect();
    let by_driver: BTreeSet<PciAddress> = network
        .iter()
        .filter(|own| {
            let driver = facts.pci[own].driver.as_ref().and_then(|driver| driver.value.split('_').next());
            driver.is_some_and(|driver| drivers.contains(driver))
        })
        .map(|own| own.slot())
        .collect();
    let of_known: BTreeSet<PciAddress> = slots.intersection(&known).copied().collect();
    [of_known, by_driver, slots].into_iter().find(|slots| !slots.is_empty()).unwrap_or_default()
}

/// The ports of a card: those that /sys places on it, or all where it places none and they can be of no other card.
fn ports(facts: &MachineFacts, card: PciAddress) -> Vec<&RdmaPortFacts> {
    let is_placed = |port: &&RdmaPortFacts| port.address.is_some();
    let is_on =
        |port: &&RdmaPortFacts| port.address.as_ref().is_some_and(|own| own.value.slot() == card.slot());
    match facts.rdma.iter().any(|port| is_placed(&port)) {
        true => facts.rdma.iter().filter(is_on).collect(),
        false if is_unplaced(facts) => Vec::new(),
        false => facts.rdma.iter().collect(),
    }
}

/// Whether several RDMA devices stand in several cards and nothing says which in which.
fn is_unplaced(facts: &MachineFacts) -> bool {
    let network: BTreeSet<PciAddress> =
        facts.pci.iter().filter(|(_, own)| own.is_network()).map(|(own, _)| *own).collect();
    let slots = network.iter().map(|own| own.slot()).collect();
    let devices: BTreeSet<&str> = facts.rdma.iter().map(|port| port.device.as_str()).collect();
    let is_placed = facts.rdma.iter().any(|port| port.address.is_some());
    !is_placed && devices.len() > 1 && meant(facts, &network, slots).len() > 1
}

/// The links between the card's function and the root, the nearest first.
fn links(facts: &MachineFacts, card: PciAddress) -> Vec<CardLinkFacts> {
    let vendor = facts.pci[&card].vendor();
    let mut lower = card;
    let mut found = Vec::new();
    let mut is_on_card = true;
    for (upper, bridge) in facts.bridges_above(card) {
        let below = &facts.pci[&lower];
        is_on_card &= bridge.vendor() == vendor;
        // Between the two sides of a switch lies a bus of its own and no link.
        if !(bridge.port == Some(PciPort::Upstream) || below.port == Some(PciPort::Downstream)) {
            found.push(link(lower, below, Some((upper, bridge)), is_on_card));
        }
        lower = upper;
    }
    // Without a bridge in the list the card's own end still says what the link does.
    if found.is_empty() && facts.pci[&card].link_now.is_some() {
        found.push(link(card, &facts.pci[&card], None, false));
    }
    found
}

fn link(
    lower: PciAddress,
    below: &PciFunction,
    upper: Option<(PciAddress, &PciFunction)>,
    is_on_card: bool,
) -> CardLinkFacts {
    let (upper, bridge) = upper.unzip();
    let above_now = bridge.and_then(|bridge| bridge.link_now.clone());
    let above_most = bridge.and_then(|bridge| bridge.link_at_most.as_ref()).map(|most| most.value);
    let lower_at_most = below.link_at_most.clone();
    let at_most = match (lower_at_most.as_ref().map(|most| most.value), above_most) {
        (Some(a), Some(b)) => Some(a.meet(b)),
        (a, b) => a.or(b),
    };
    CardLinkFacts {
        lower,
        upper,
        now: below.link_now.clone().or(above_now.clone()),
        upper_now: above_now,
        lower_at_most,
        at_most,
        is_on_card,
    }
}

/// The slowest of links as they are now.
fn slowest<'l>(links: impl Iterator<Item = &'l CardLinkFacts>) -> Option<&'l Stated<PciLinkState>> {
    links
        .filter_map(|link| link.now.as_ref())
        .min_by(|a, b| a.value.data_rate().total_cmp(&b.value.data_rate()))
}

fn known(
    part: DraftPart,
    key: &'static str,
    value: Quantity,
    provenance: Provenance,
    what: &str,
    at: &FactPlace,
) -> DraftNumber {
    DraftNumber { part, key, value, low: None, high: None, source: format!("{at}: {what}"), provenance }
}

fn describe_card(links: &[CardLinkFacts], function: &PciFunction, description: &mut Description) {
    let numbers = &mut description.numbers;
    let card = description.card.as_ref().expect("it was found");
    let of_link = |numbers: &mut Vec<DraftNumber>, part, link: &Stated<PciLinkState>| {
        let what = format!("link at {}", link.value);
        let rate = Quantity::BitRate(link.value.rate());
        numbers.push(known(part, "rate", rate, Provenance::Measured, &what, &link.at));
        let encoding = Quantity::Ratio((link.value.encoding() * 1e6).round() / 1e6);
        let line = format!("line encoding of {} GT/s", link.value.mega_transfers_per_s as f64 / 1000.0);
        numbers.push(known(part, "encoding", encoding, Provenance::Datasheet, &line, &link.at));
    };
    let (on_card, outside): (Vec<_>, Vec<_>) = links.iter().partition(|link| link.is_on_card);
    if !card.is_own_processor {
        if let Some(link) = slowest(on_card.into_iter()) {
            of_link(numbers, DraftPart::CardLink, link);
        }
        if let Some(link) = slowest(outside.into_iter()) {
            of_link(numbers, DraftPart::HostLink, link);
        }
    }
    let memory = if card.is_own_processor { DraftPart::CardProcessor } else { DraftPart::Host };
    if let Some(limit) = &function.max_payload {
        let size = Quantity::Bytes(limit.value);
        numbers.push(known(memory, "pcie_mtu", size, Provenance::Measured, "MaxPayload in force", &limit.at));
    }
    if let Some(limit) = &function.max_read_request {
        let size = Quantity::Bytes(limit.value);
        for part in [DraftPart::HostLink, DraftPart::CardLink] {
            let what = "MaxReadReq in force";
            numbers.push(known(part, "read_request_limit", size, Provenance::Measured, what, &limit.at));
        }
    }
}

fn describe_ports(facts: &MachineFacts, ports: &[&RdmaPortFacts], description: &mut Description) {
    let numbers = &mut description.numbers;
    let is_up = |port: &&&RdmaPortFacts| port.is_active.as_ref().is_none_or(|up| up.value);
    let rates: Vec<Stated<BitRate>> = ports.iter().filter(is_up).filter_map(|port| port.rate()).collect();
    let all = rates.iter().try_fold(0u64, |sum, rate| sum.checked_add(rate.value.bits_per_second()));
    match (all, rates.first()) {
        (Some(all), Some(first)) => {
            let rate = Quantity::BitRate(BitRate::from_bits_per_second(all));
            let what = match rates.len() {
                1 => "rate of the active port".to_string(),
                count => format!("rate of {count} active ports together"),
            };
            numbers.push(known(DraftPart::Nic, "port_rate", rate, Provenance::Measured, &what, &first.at));
        }
        _ => {
            let of_card = |address: PciAddress| {
                description.card.as_ref().is_none_or(|card| card.address.slot() == address.slot())
            };
            let interfaces = facts.interfaces.values();
            let placed = interfaces.filter(|one| one.address.as_ref().is_none_or(|own| of_card(own.value)));
            let rates: Vec<_> = placed.filter_map(|interface| interface.rate.as_ref()).collect();
            // Interfaces whose card is not said may be of another one.
            if let [rate] = rates[..] {
                let value = Quantity::BitRate(rate.value);
                let what = "speed of the interface";
                numbers.push(known(DraftPart::Nic, "port_rate", value, Provenance::Measured, what, &rate.at));
            }
        }
    }
    let in_flight = ports.iter().filter_map(|port| port.reads_in_flight());
    if let Some(reads) = in_flight.min_by_key(|reads| reads.value) {
        let count = Quantity::Count(reads.value);
        let what = "READs and atomics of a queue pair";
        numbers.push(known(
            DraftPart::Nic,
            "outstanding_reads",
            count,
            Provenance::Datasheet,
            what,
            &reads.at,
        ));
    }
    let mtu = ports.iter().filter(is_up).filter_map(|port| port.mtu.as_ref()).min_by_key(|mtu| mtu.value);
    if let Some(mtu) = mtu {
        let size = Quantity::Bytes(mtu.value);
        numbers.push(known(DraftPart::Network, "mtu", size, Provenance::Measured, "active_mtu", &mtu.at));
    }
    let layers = || ports.iter().filter(is_up).filter_map(|port| port.link_layer.as_ref());
    let header = PacketHeader::of_link_layers(layers().map(|layer| Some(layer.value.as_str())));
    if let Some((layer, header)) = layers().next().zip(header) {
        let size = Quantity::Bytes(header.size);
        let what = header.what;
        numbers.push(DraftNumber {
            low: Some(size),
            high: Some(Quantity::Bytes(header.at_most)),
            ..known(DraftPart::Network, "packet_header", size, Provenance::Datasheet, what, &layer.at)
        });
    }
}

fn describe_processor(facts: &MachineFacts, description: &mut Description) {
    let is_own = description.card.as_ref().is_some_and(|card| card.is_own_processor);
    let part = if is_own { DraftPart::CardProcessor } else { DraftPart::Host };
    let numbers = &mut description.numbers;
    let processor = &facts.processor;
    if let Some((cores, at)) = processor.cores() {
        let what = "cores of all sockets";
        numbers.push(known(part, "cores", Quantity::Count(cores), Provenance::Datasheet, what, at));
    }
    if let Some(threads) = &processor.threads_per_core {
        let what = "threads of a core";
        let count = Quantity::Count(threads.value);
        numbers.push(known(part, "threads_per_core", count, Provenance::Datasheet, what, &threads.at));
    }
    let of_name = processor.frequency_of_name();
    let clocks = [&processor.frequency_at_most, &of_name, &processor.frequency_now];
    if let Some(clock) = clocks.into_iter().flatten().next() {
        let is_most = processor.frequency_at_most.is_some();
        let what = if is_most { "greatest clock" } else { "clock" };
        let value = Quantity::Frequency(clock.value);
        // Under load on every core it runs between the clock of its name and the greatest one.
        let low = of_name.as_ref().filter(|base| base.value < clock.value).map(|base| base.value);
        numbers.push(DraftNumber {
            low: low.map(Quantity::Frequency),
            high: low.map(|_| value),
            ..known(part, "frequency", value, Provenance::Datasheet, what, &clock.at)
        });
    }
    let of_nodes: Vec<&Stated<u64>> =
        facts.nodes.values().filter_map(|node| node.memory_bytes.as_ref()).collect();
    let sum = of_nodes.iter().try_fold(0u64, |sum, node| sum.checked_add(node.value));
    let memory = match (&facts.memory_bytes, of_nodes.first(), sum) {
        (Some(own), _, _) => Some((own.value, &own.at, "memory of the kernel")),
        (None, Some(first), Some(sum)) => Some((sum, &first.at, "memory of all nodes")),
        _ => None,
    };
    if let Some((bytes, at, what)) = memory.filter(|(bytes, _, _)| *bytes > 0) {
        let size = Quantity::Bytes(Bytes::new(bytes));
        numbers.push(known(part, "capacity", size, Provenance::Measured, what, at));
    }
}

/// The mode that settings of the firmware give the card.
fn mode(facts: &MachineFacts) -> Option<&'static str> {
    let setting = |name: &str| facts.firmware_settings.get(name).map(|own| own.value.as_str());
    let model = setting("INTERNAL_CPU_MODEL")?;
    if setting("INTERNAL_CPU_OFFLOAD_ENGINE").is_some_and(|engine| engine.starts_with("DISABLED")) {
        return Some("nic");
    }
    match model.split('(').next()? {
        "SEPARATED_HOST" => Some("separated-host"),
        "EMBEDDED_CPU" => Some("embedded-cpu"),
        _ => None,
    }
}

fn unsaid(facts: &MachineFacts, card: Option<PciAddress>, description: &mut Description) {
    let mut say = |holds: bool, what: &str| {
        if holds {
            description.unsaid.push(what.to_string());
        }
    };
    let function = card.map(|card| &facts.pci[&card]);
    say(card.is_none(), "no network card is listed: `lspci -vvv` as superuser lists it with its link");
    let is_denied = function.is_some_and(|own| own.denied.is_some());
    say(is_denied, "the card's link and sizes were kept back: run `lspci -vvv` as superuser");
    let has_link = function.is_none_or(|own| own.link_now.is_some() || is_denied);
    say(!has_link, "the card's link is not said: `lspci -vvv` says it where `lspci` does not");
    let above = card.map(|card| facts.bridges_above(card)).unwrap_or_default();
    say(
        card.is_some() && above.is_empty(),
        "no bridge above the card is listed, whose link may be slower: `lspci -vvv` without `-s` lists all",
    );
    say(facts.rdma.is_empty(), "ports, MTU and READs in flight are not said: `ibv_devinfo -v`");
    say(
        is_unplaced(facts),
        "which RDMA devices are the card's is not said, so that ports, MTU and READs in flight are left out: \
         `ls -l /sys/class/infiniband`, as `offpath collect` has it",
    );
    say(facts.processor.cores().is_none(), "cores and clock are not said: `lscpu`");
    let has_memory =
        facts.memory_bytes.is_some() || facts.nodes.values().any(|node| node.memory_bytes.is_some());
    say(!has_memory, "the memory's size and nodes are not said: `numactl -H`");
}
