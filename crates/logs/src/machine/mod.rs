//! What a machine says of itself: its processor, memories, PCIe tree and network ports, as `lspci`, `ibv_devinfo`, `lscpu`,
//! `numactl`, `ethtool`, `mlxconfig` and /sys have it. Each fact keeps its file and line.
//!
//! ```
//! use offpath_logs::machine::MachineFacts;
//! let text = "3b:00.0 Infiniband controller: Vendor Device\n\t\tLnkSta:\tSpeed 8GT/s, Width x16\n";
//! let mut facts = MachineFacts::default();
//! assert_eq!(facts.read("lspci.txt", text), 2);
//! let function = facts.pci.values().next().unwrap();
//! let now = function.link_now.as_ref().unwrap();
//! assert_eq!((now.value.mega_transfers_per_s, now.value.lanes, now.at.line), (8_000, 16, 2));
//! ```

mod interface;
mod mask;
mod pci;
mod processor;
mod reader;

pub use interface::{InterfaceFacts, RdmaPortFacts};
pub use mask::Mask;
pub use pci::{PciAddress, PciErrors, PciFunction, PciLinkState, PciPort};
pub use processor::{NumaNodeFacts, ProcessorFacts};

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

/// Where a fact stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FactPlace {
    /// The file, as it was named.
    pub file: Arc<str>,
    /// The line, from 1.
    pub line: u64,
}

impl fmt::Display for FactPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A fact and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stated<T> {
    /// What is said.
    pub value: T,
    /// Where.
    pub at: FactPlace,
}

/// Everything that files of one machine say of it; what none says is absent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MachineFacts {
    /// The processor.
    pub processor: ProcessorFacts,
    /// Nodes of its memory, by number.
    pub nodes: BTreeMap<u64, NumaNodeFacts>,
    /// Nodes that programs of the shell are bound to, as `numactl --show` says it.
    pub bound_nodes: Option<Stated<Vec<u64>>>,
    /// Bytes of memory, as the kernel counts them.
    pub memory_bytes: Option<Stated<u64>>,
    /// PCIe functions by their address.
    pub pci: BTreeMap<PciAddress, PciFunction>,
    /// Ports of RDMA devices, in the order of the files.
    pub rdma: Vec<RdmaPortFacts>,
    /// Network interfaces by name.
    pub interfaces: BTreeMap<String, InterfaceFacts>,
    /// Settings in the card's firmware, as `mlxconfig` names them.
    pub firmware_settings: BTreeMap<String, Stated<String>>,
    /// What the kernel was started with that concerns the IOMMU.
    pub iommu_options: Option<Stated<String>>,
}

impl MachineFacts {
    /// Reads a file of one tool or of several; how many of its lines say something that is kept. A later line of the same
    /// fact replaces an earlier one.
    pub fn read(&mut self, file: &str, text: &str) -> u64 {
        reader::read(self, file, text)
    }

    /// What these facts and others say otherwise of what a machine has one of and never changes while it runs, with both places:
    /// files of which this is so are of two machines, or were taken before and after a change.
    pub fn otherwise(&self, other: &MachineFacts) -> Option<String> {
        fn differ<T: PartialEq + fmt::Display>(
            what: &str,
            one: Option<&Stated<T>>,
            other: Option<&Stated<T>>,
        ) -> Option<String> {
            let (one, other) = one.zip(other).filter(|(one, other)| one.value != other.value)?;
            Some(format!("{what} is `{}` by {}, and `{}` by {}", one.value, one.at, other.value, other.at))
        }
        let (own, its) = (&self.processor, &other.processor);
        let of_processor = differ("the processor", own.model.as_ref(), its.model.as_ref())
            .or_else(|| differ("the number of threads", own.threads.as_ref(), its.threads.as_ref()));
        let mut functions = self.pci.iter().filter_map(|(address, function)| {
            let other = other.pci.get(address)?;
            // Numbers in brackets and a revision stand there where `lspci` was asked for them.
            let words = |name: &str| -> Vec<String> {
                let plain = name.split("(rev").next().unwrap_or_default();
                plain.split_whitespace().filter(|word| !word.starts_with('[')).map(str::to_string).collect()
            };
            let (one, its) = (words(&function.name), words(&other.name));
            (one != its && !one.is_empty() && !its.is_empty()).then(|| {
                format!("the function {address} is `{}`, and `{}` in another file", function.name, other.name)
            })
        });
        let mut ports = self.rdma.iter().flat_map(|port| {
            let same = other.rdma.iter().filter(|its| (&its.device, its.port) == (&port.device, port.port));
            same.filter_map(|its| {
                let what = format!("the firmware of {}", port.device);
                differ(&what, port.firmware.as_ref(), its.firmware.as_ref())
            })
        });
        of_processor.or_else(|| functions.next()).or_else(|| ports.next())
    }

    /// The bridges above a function, the nearest first.
    pub fn bridges_above(&self, address: PciAddress) -> Vec<(PciAddress, &PciFunction)> {
        let mut found: Vec<(PciAddress, &PciFunction)> = Vec::new();
        let mut below = address;
        // A tree has no loop; files may say what they will.
        while let Some((above, bridge)) = self.pci.iter().find(|(own, function)| {
            own.domain == below.domain
                && **own != below
                && function.secondary_bus.as_ref().is_some_and(|bus| bus.value == below.bus)
        }) {
            if found.iter().any(|(own, _)| own == above) {
                break;
            }
            found.push((*above, bridge));
            below = *above;
        }
        found
    }
}

/// Puts a fact in its place.
fn state<T>(to: &mut Option<Stated<T>>, value: Option<T>, at: &FactPlace) -> bool {
    let is_read = value.is_some();
    if let Some(value) = value {
        *to = Some(Stated { value, at: at.clone() });
    }
    is_read
}
