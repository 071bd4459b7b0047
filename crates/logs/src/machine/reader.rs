//! Files, line by line: which tool's list goes on is told from the line that begins it.

use super::pci::{PciAddress, PciFunction};
use super::processor::{clock_of, listed};
use super::{FactPlace, MachineFacts, RdmaPortFacts, state};

/// Characters of a line that are looked at: more is no line of these tools.
const LONGEST: usize = 1 << 16;

/// The list that goes on.
#[derive(Clone, Debug, PartialEq)]
enum Section {
    None,
    Pci(PciAddress),
    /// The device's name, and the place of its port in the list.
    Rdma(String, usize),
    Processor,
    Nodes,
    Interface(String),
    /// The modes of an interface, which go on over lines without a key.
    Modes(String),
    /// Settings of a card's firmware, and which column holds what is in force.
    Settings(usize),
}

pub(super) fn read(facts: &mut MachineFacts, file: &str, text: &str) -> u64 {
    let file = file.into();
    let mut section = Section::None;
    let mut taken = 0;
    for (index, line) in text.lines().enumerate() {
        let at = FactPlace { file: std::sync::Arc::clone(&file), line: index as u64 + 1 };
        if line.len() <= LONGEST && take(facts, &mut section, line, &at) {
            taken += 1;
        }
    }
    facts.pci.values_mut().for_each(PciFunction::complete);
    facts.rdma.retain(|port| port.port > 0 || port.address.is_some());
    taken
}

/// Looks at a line; whether something of it is kept.
fn take(facts: &mut MachineFacts, section: &mut Section, line: &str, at: &FactPlace) -> bool {
    if line.trim().is_empty() {
        return false;
    }
    if let Some(begun) = head(facts, line) {
        *section = begun;
        return true;
    }
    if line.starts_with("/sys/") || line.starts_with("/proc/") {
        return take_sys(facts, line, at);
    }
    let (key, value) =
        line.split_once(':').map_or((line.trim(), ""), |(key, value)| (key.trim(), value.trim()));
    // `lscpu` and `numactl` mark no begin that all versions have.
    if let Some(taken) = anywhere(facts, key, value, at) {
        if matches!(key, "Architecture" | "CPU op-mode(s)") {
            *section = Section::Processor;
        }
        return taken;
    }
    match section {
        Section::Pci(address) => facts.pci.entry(*address).or_default().take(line, at),
        Section::Rdma(device, index) => {
            if key == "port" {
                let port = value.parse().unwrap_or(0);
                let last = facts.rdma.get(*index).cloned().unwrap_or_default();
                // The first port fills the entry of the device; others have one of their own.
                if last.port == 0 {
                    facts.rdma[*index].port = port;
                } else {
                    let (firmware, address) = (last.firmware, last.address);
                    let (outstanding_reads, outstanding_reads_answered) =
                        (last.outstanding_reads, last.outstanding_reads_answered);
                    facts.rdma.push(RdmaPortFacts {
                        device: device.clone(),
                        port,
                        firmware,
                        address,
                        outstanding_reads,
                        outstanding_reads_answered,
                        ..RdmaPortFacts::default()
                    });
                    *index = facts.rdma.len() - 1;
                }
                return port > 0;
            }
            facts.rdma[*index].take(key, value, at)
        }
        Section::Processor => facts.processor.take(key, value, at),
        Section::Nodes => take_node(facts, key, value, at),
        Section::Interface(name) => {
            if key == "Supported link modes" {
                let name = name.clone();
                *section = Section::Modes(name.clone());
                return take_modes(facts, &name, value, at);
            }
            facts.interfaces.entry(name.clone()).or_default().take(key, value, at)
        }
        Section::Modes(name) => {
            let name = name.clone();
            if !line.contains(':') {
                return take_modes(facts, &name, line, at);
            }
            *section = Section::Interface(name.clone());
            facts.interfaces.entry(name).or_default().take(key, value, at)
        }
        Section::Settings(column) => {
            // A star marks what the next start changes.
            let mut words = line.split_whitespace().filter(|word| *word != "*");
            let name = words.next().unwrap_or_default();
            let is_name = name.len() > 3
                && name.bytes().all(|one| one.is_ascii_uppercase() || one.is_ascii_digit() || one == b'_');
            let value = words.nth(*column);
            match value.filter(|_| is_name) {
                Some(value) => {
                    let stated = super::Stated { value: value.to_string(), at: at.clone() };
                    facts.firmware_settings.insert(name.to_string(), stated);
                    true
                }
                None if line.contains("Current") && line.contains("Default") => {
                    *column = 1;
                    false
                }
                None => false,
            }
        }
        Section::None => false,
    }
}

/// A line that begins a list.
fn head(facts: &mut MachineFacts, line: &str) -> Option<Section> {
    let is_indented = line.starts_with([' ', '\t']);
    let first = line.split_whitespace().next()?;
    if !is_indented && let Some(address) = PciAddress::read(first) {
        let (class, name) = line[first.len()..].split_once(": ")?;
        // `-nn` adds numbers to the class: `Ethernet controller [0200]`.
        let class = class.split(" [").next().unwrap_or_default().trim();
        let function = facts.pci.entry(address).or_default();
        (function.class, function.name) = (class.to_string(), name.trim().to_string());
        return Some(Section::Pci(address));
    }
    if let Some(device) = line.trim_start().strip_prefix("hca_id:") {
        let device = device.trim().to_string();
        let known = facts.rdma.iter().find(|port| port.device == device && port.port == 0);
        let address = known.and_then(|port| port.address.clone());
        facts.rdma.retain(|port| port.device != device);
        facts.rdma.push(RdmaPortFacts { device: device.clone(), address, ..RdmaPortFacts::default() });
        return Some(Section::Rdma(device, facts.rdma.len() - 1));
    }
    for start in ["Settings for ", "Pause parameters for ", "Driver information for "] {
        if let Some(name) = line.strip_prefix(start) {
            return Some(Section::Interface(name.trim().trim_end_matches(':').to_string()));
        }
    }
    if line.starts_with("available:") && line.contains("node") {
        return Some(Section::Nodes);
    }
    if first == "Configurations:" {
        let in_force = if line.contains("Current") { 1 } else { 0 };
        return Some(Section::Settings(in_force));
    }
    None
}

/// Lines that say by themselves what they are about.
fn anywhere(facts: &mut MachineFacts, key: &str, value: &str, at: &FactPlace) -> Option<bool> {
    let nodes = |value: &str| listed(value).filter(|nodes| !nodes.is_empty());
    match key {
        "Architecture"
        | "Thread(s) per core"
        | "Core(s) per socket"
        | "Socket(s)"
        | "Model name"
        | "CPU max MHz"
        | "CPU MHz"
        | "CPU(s) scaling MHz"
        | "Core(s) per cluster"
        | "Cluster(s)"
        | "Hypervisor vendor"
        | "L3 cache"
        | "CPU(s)" => Some(facts.processor.take(key, value, at)),
        "membind" => Some(state(&mut facts.bound_nodes, nodes(value), at)),
        "MemTotal" => {
            let kib = value.strip_suffix("kB").and_then(|kib| kib.trim().parse::<u64>().ok());
            Some(state(&mut facts.memory_bytes, kib.and_then(|kib| kib.checked_mul(1024)), at))
        }
        _ if key.starts_with("NUMA node") && key.ends_with("CPU(s)") => {
            let number = key.strip_prefix("NUMA node")?.strip_suffix("CPU(s)")?.trim().parse().ok()?;
            let threads = listed(value).map(|all| all.len() as u64);
            Some(state(&mut facts.nodes.entry(number).or_default().threads, threads, at))
        }
        _ => None,
    }
}

/// A line of `numactl -H`.
fn take_node(facts: &mut MachineFacts, key: &str, value: &str, at: &FactPlace) -> bool {
    let mut words = key.split_whitespace();
    let (Some("node"), Some(number), Some(what)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let Ok(number) = number.parse::<u64>() else { return false };
    let node = facts.nodes.entry(number).or_default();
    match what {
        "cpus" => state(&mut node.threads, listed(value).map(|all| all.len() as u64), at),
        "size" => {
            let mib = value.strip_suffix("MB").and_then(|mib| mib.trim().parse::<u64>().ok());
            state(&mut node.memory_bytes, mib.and_then(|mib| mib.checked_mul(1 << 20)), at)
        }
        _ => false,
    }
}

fn take_modes(facts: &mut MachineFacts, name: &str, modes: &str, at: &FactPlace) -> bool {
    let interface = facts.interfaces.entry(name.to_string()).or_default();
    modes.split_whitespace().fold(false, |taken, mode| interface.take_mode(mode, at) | taken)
}

/// A file of /sys or /proc with what stands in it: `PATH:VALUE`, as `grep -r . PATH` prints it.
fn take_sys(facts: &mut MachineFacts, line: &str, at: &FactPlace) -> bool {
    let within = |prefix: &str, names: &[&'static str]| -> Option<(String, &'static str, String)> {
        let rest = line.strip_prefix(prefix)?;
        names.iter().find_map(|name| {
            let (owner, value) = rest.split_once(&format!("/{name}:"))?;
            (!owner.contains('/')).then(|| (owner.to_string(), *name, value.trim().to_string()))
        })
    };
    const PCI: &[&str] = &[
        "current_link_speed",
        "max_link_speed",
        "current_link_width",
        "max_link_width",
        "numa_node",
        "iommu_group/type",
    ];
    if let Some((owner, name, value)) = within("/sys/bus/pci/devices/", PCI) {
        let Some(address) = PciAddress::read(&owner) else { return false };
        return facts.pci.entry(address).or_default().take_sys(name, &value, at);
    }
    if let Some((device, _, value)) = within("/sys/class/infiniband/", &["device"]) {
        let Some(address) = PciAddress::read(value.rsplit('/').next().unwrap_or_default()) else {
            return false;
        };
        let stated = super::Stated { value: address, at: at.clone() };
        let mut known = false;
        for port in facts.rdma.iter_mut().filter(|port| port.device == device) {
            port.address = Some(stated.clone());
            known = true;
        }
        if !known {
            facts.rdma.push(RdmaPortFacts { device, address: Some(stated), ..RdmaPortFacts::default() });
        }
        return true;
    }
    if let Some((interface, name, value)) = within("/sys/class/net/", &["mtu", "device"]) {
        let interface = facts.interfaces.entry(interface).or_default();
        return match name {
            "mtu" => state(&mut interface.mtu_bytes, value.parse().ok(), at),
            _ => state(
                &mut interface.address,
                PciAddress::read(value.rsplit('/').next().unwrap_or_default()),
                at,
            ),
        };
    }
    if let Some((_, name, value)) =
        within("/sys/devices/system/cpu/", &["cpufreq/scaling_governor", "cpufreq/cpuinfo_max_freq"])
    {
        return match name {
            "cpufreq/scaling_governor" => state(&mut facts.processor.governor, Some(value), at),
            _ => {
                let clock = value.parse::<f64>().ok().and_then(|kilohertz| clock_of(kilohertz / 1000.0));
                state(&mut facts.processor.frequency_at_most, clock, at)
            }
        };
    }
    if let Some(options) = line.strip_prefix("/proc/cmdline:") {
        let of_iommu = options.split_whitespace().filter(|word| word.contains("iommu"));
        let of_iommu: Vec<&str> = of_iommu.collect();
        return state(&mut facts.iommu_options, Some(of_iommu.join(" ")), at);
    }
    false
}
