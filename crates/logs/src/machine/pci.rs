//! PCIe functions, as `lspci -vv` and /sys describe them.

use super::{FactPlace, Stated, state};
use offpath_quantity::{BitRate, Bytes};
use std::fmt;

/// The address of a PCIe function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PciAddress {
    /// The domain; 0 where a listing leaves it out.
    pub domain: u32,
    /// The bus.
    pub bus: u8,
    /// The device on the bus.
    pub device: u8,
    /// The function of the device.
    pub function: u8,
}

impl PciAddress {
    /// Reads `3b:00.0` and `0000:3b:00.0`.
    pub fn read(text: &str) -> Option<PciAddress> {
        let hex = |text: &str, digits: std::ops::RangeInclusive<usize>| {
            let fits = digits.contains(&text.len()) && text.bytes().all(|one| one.is_ascii_hexdigit());
            fits.then(|| u32::from_str_radix(text, 16).ok()).flatten()
        };
        let (rest, function) = text.rsplit_once('.')?;
        let (rest, device) = rest.rsplit_once(':')?;
        let (domain, bus) = rest.rsplit_once(':').unwrap_or(("0", rest));
        Some(PciAddress {
            domain: hex(domain, 1..=8)?,
            bus: hex(bus, 2..=2)? as u8,
            device: hex(device, 2..=2).filter(|device| *device < 32)? as u8,
            function: hex(function, 1..=1).filter(|function| *function < 8)? as u8,
        })
    }

    /// The address without its function: the functions of one card share it.
    pub fn slot(self) -> PciAddress {
        PciAddress { function: 0, ..self }
    }
}

impl fmt::Display for PciAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04x}:{:02x}:{:02x}.{:x}", self.domain, self.bus, self.device, self.function)
    }
}

/// Speed and width of a PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PciLinkState {
    /// Millions of transfers per second of a lane.
    pub mega_transfers_per_s: u64,
    /// Lanes.
    pub lanes: u64,
}

impl PciLinkState {
    /// Bits per second in each direction, encoding included.
    pub fn rate(self) -> BitRate {
        BitRate::from_bits_per_second(self.mega_transfers_per_s * 1_000_000 * self.lanes)
    }

    /// The share that the line encoding leaves: 8b/10b to 5 GT/s, 128b/130b to 32 GT/s, flits of 242 in 256 B above.
    pub fn encoding(self) -> f64 {
        match self.mega_transfers_per_s {
            0..=5_000 => 0.8,
            5_001..=32_000 => 128.0 / 130.0,
            _ => 242.0 / 256.0,
        }
    }

    /// The lower of two, in speed and in width.
    pub fn meet(self, other: PciLinkState) -> PciLinkState {
        PciLinkState {
            mega_transfers_per_s: self.mega_transfers_per_s.min(other.mega_transfers_per_s),
            lanes: self.lanes.min(other.lanes),
        }
    }

    /// Payload bits per second before headers, by which links are compared.
    pub fn data_rate(self) -> f64 {
        self.rate().bits_per_second() as f64 * self.encoding()
    }
}

impl fmt::Display for PciLinkState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} GT/s x{}", self.mega_transfers_per_s as f64 / 1000.0, self.lanes)
    }
}

/// Where a PCIe function stands in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PciPort {
    /// At its root.
    Root,
    /// The side of a switch that is nearer to the root.
    Upstream,
    /// A side of a switch that is farther from it.
    Downstream,
    /// At an end.
    Endpoint,
}

/// Errors that a PCIe function has noted since its machine was started or somebody cleared them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PciErrors {
    /// Of a kind that the link or the function mended.
    pub corrected: bool,
    /// Of a kind that lost a transaction.
    pub non_fatal: bool,
    /// Of a kind after which nothing on the link is to be trusted.
    pub fatal: bool,
    /// A request that it does not know was among what it noted, as where a machine looks for devices.
    pub unsupported_request: bool,
}

/// A PCIe function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PciFunction {
    /// What it is, as in `Ethernet controller`.
    pub class: String,
    /// Vendor and device, as the list has them.
    pub name: String,
    /// The bus below it, of a bridge.
    pub secondary_bus: Option<Stated<u8>>,
    /// Where it stands in the tree, where its capabilities say it.
    pub port: Option<PciPort>,
    /// Most that its link does.
    pub link_at_most: Option<Stated<PciLinkState>>,
    /// What its link does now.
    pub link_now: Option<Stated<PciLinkState>>,
    /// Largest TLP payload that it knows.
    pub max_payload_at_most: Option<Stated<Bytes>>,
    /// Largest TLP payload that is set.
    pub max_payload: Option<Stated<Bytes>>,
    /// Largest read request that is set.
    pub max_read_request: Option<Stated<Bytes>>,
    /// Whether it may set the bit for relaxed ordering.
    pub relaxed_ordering: Option<Stated<bool>>,
    /// Errors that it noted.
    pub errors: Option<Stated<PciErrors>>,
    /// Whether access control sends requests between its neighbours up to the root.
    pub redirects_requests: Option<Stated<bool>>,
    /// The node of memory that it is nearest to.
    pub numa_node: Option<Stated<u64>>,
    /// How the IOMMU treats it, as in `DMA` and `identity`.
    pub iommu_type: Option<Stated<String>>,
    /// The driver that has it.
    pub driver: Option<Stated<String>>,
    /// The line that says that its capabilities may be read by the superuser alone.
    pub denied: Option<FactPlace>,
}

impl PciFunction {
    /// Whether it is a network card's.
    pub fn is_network(&self) -> bool {
        let class = self.class.to_ascii_lowercase();
        ["ethernet controller", "infiniband controller", "network controller"]
            .iter()
            .any(|known| class.starts_with(known))
    }

    /// The first word of its vendor.
    pub fn vendor(&self) -> &str {
        self.name.split_whitespace().next().unwrap_or_default()
    }

    /// Takes a line of `lspci -vv` below the one that names the function.
    pub(super) fn take(&mut self, line: &str, at: &FactPlace) -> bool {
        let line = line.trim();
        let (head, rest) = line.split_once(':').map_or(("", line), |(head, rest)| (head.trim(), rest.trim()));
        match head {
            "Bus" => {
                let bus = field(rest, "secondary=").and_then(|text| u8::from_str_radix(text, 16).ok());
                return state(&mut self.secondary_bus, bus, at);
            }
            "DevCap" => return state(&mut self.max_payload_at_most, bytes(rest, "MaxPayload "), at),
            "LnkCap" => return state(&mut self.link_at_most, link(rest), at),
            "LnkSta" => return state(&mut self.link_now, link(rest), at),
            "DevSta" => return state(&mut self.errors, errors(rest), at),
            "ACSCtl" => return state(&mut self.redirects_requests, flag(rest, "ReqRedir"), at),
            "NUMA node" => return state(&mut self.numa_node, rest.parse().ok(), at),
            "Kernel driver in use" => return state(&mut self.driver, Some(rest.to_string()), at),
            "Capabilities" => {
                if rest.starts_with("<access denied>") {
                    self.denied = Some(at.clone());
                    return true;
                }
                const KINDS: &[(&str, PciPort)] = &[
                    ("Root Port", PciPort::Root),
                    ("Upstream Port", PciPort::Upstream),
                    ("Downstream Port", PciPort::Downstream),
                    ("Endpoint", PciPort::Endpoint),
                ];
                let mut kinds =
                    KINDS.iter().filter(|(name, _)| rest.contains("Express") && rest.contains(name));
                let kind = kinds.next().map(|(_, kind)| *kind);
                self.port = kind.or(self.port);
                return kind.is_some();
            }
            _ => {}
        }
        // The lines of DevCtl; it is one in some versions and three in others.
        let ordering = state(&mut self.relaxed_ordering, flag(line, "RlxdOrd"), at);
        if line.contains("MaxReadReq ") {
            state(&mut self.max_payload, bytes(line, "MaxPayload "), at);
            return state(&mut self.max_read_request, bytes(line, "MaxReadReq "), at) | ordering;
        }
        ordering
    }

    /// Takes a file of /sys.
    pub(super) fn take_sys(&mut self, name: &str, value: &str, at: &FactPlace) -> bool {
        let lanes = || value.parse().ok().filter(|lanes| (1..=32).contains(lanes));
        match name {
            "current_link_speed" => part(&mut self.link_now, speed(value), None, at),
            "max_link_speed" => part(&mut self.link_at_most, speed(value), None, at),
            "current_link_width" => part(&mut self.link_now, None, lanes(), at),
            "max_link_width" => part(&mut self.link_at_most, None, lanes(), at),
            // -1 says that the kernel knows none.
            "numa_node" => state(&mut self.numa_node, value.parse().ok(), at),
            "iommu_group/type" => state(&mut self.iommu_type, Some(value.to_string()), at),
            _ => false,
        }
    }

    /// Forgets what is half said: speed without width says nothing of a link.
    pub(super) fn complete(&mut self) {
        for link in [&mut self.link_now, &mut self.link_at_most] {
            let is_whole =
                |link: &Stated<PciLinkState>| link.value.lanes > 0 && link.value.mega_transfers_per_s > 0;
            if !link.as_ref().is_some_and(is_whole) {
                *link = None;
            }
        }
    }
}

/// Puts speed or width in, which stand in files of their own; what a list said as a whole stays.
fn part(
    to: &mut Option<Stated<PciLinkState>>,
    speed: Option<u64>,
    lanes: Option<u64>,
    at: &FactPlace,
) -> bool {
    if speed.is_none() && lanes.is_none() {
        return false;
    }
    let nothing = PciLinkState { mega_transfers_per_s: 0, lanes: 0 };
    let link = to.get_or_insert_with(|| Stated { value: nothing, at: at.clone() });
    let link = &mut link.value;
    let is_new = |old: u64| old == 0;
    if let Some(speed) = speed.filter(|_| is_new(link.mega_transfers_per_s)) {
        link.mega_transfers_per_s = speed;
    }
    if let Some(lanes) = lanes.filter(|_| is_new(link.lanes)) {
        link.lanes = lanes;
    }
    true
}

/// The word after a label, up to a comma or blank.
fn field<'t>(text: &'t str, label: &str) -> Option<&'t str> {
    let (_, rest) = text.split_once(label)?;
    rest.split([',', ' ', '\t']).next()
}

fn bytes(text: &str, label: &str) -> Option<Bytes> {
    let count: u64 = field(text, label)?.parse().ok()?;
    (count.is_power_of_two() && (128..=4096).contains(&count)).then(|| Bytes::new(count))
}

fn flag(text: &str, label: &str) -> Option<bool> {
    let (_, rest) = text.split_once(label)?;
    match rest.bytes().next()? {
        b'+' => Some(true),
        b'-' => Some(false),
        _ => None,
    }
}

/// The errors of a line of DevSta; older versions call some otherwise.
fn errors(text: &str) -> Option<PciErrors> {
    Some(PciErrors {
        corrected: flag(text, "CorrErr")?,
        non_fatal: flag(text, "NonFatalErr").or(flag(text, "UncorrErr"))?,
        fatal: text.split_ascii_whitespace().any(|word| word == "FatalErr+"),
        unsupported_request: flag(text, "UnsupReq").or(flag(text, "UnsuppReq"))?,
    })
}

fn link(text: &str) -> Option<PciLinkState> {
    let lanes = field(text, "Width x")?.parse().ok().filter(|lanes| (1..=32).contains(lanes))?;
    Some(PciLinkState { mega_transfers_per_s: speed(field(text, "Speed ")?)?, lanes })
}

/// Millions of transfers per second of `16GT/s` and `16.0 GT/s PCIe`; the speeds that PCIe has.
fn speed(text: &str) -> Option<u64> {
    let number = text.split("GT/s").next()?.trim();
    let known = [("2.5", 2_500), ("5", 5_000), ("8", 8_000), ("16", 16_000), ("32", 32_000), ("64", 64_000)];
    let number = number.strip_suffix(".0").unwrap_or(number);
    known.iter().find(|(name, _)| *name == number).filter(|_| text.contains("GT/s")).map(|(_, speed)| *speed)
}
