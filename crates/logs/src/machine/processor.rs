//! The processor and its memory, as `lscpu`, `numactl` and /sys describe them.

use super::{FactPlace, Stated, state};
use offpath_quantity::Frequency;

/// A processor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessorFacts {
    /// Its instruction set, as in `x86_64` and `aarch64`.
    pub architecture: Option<Stated<String>>,
    /// What it calls itself.
    pub model: Option<Stated<String>>,
    /// Hardware threads that are on.
    pub threads: Option<Stated<u64>>,
    /// Hardware threads of a core.
    pub threads_per_core: Option<Stated<u64>>,
    /// Cores of a socket, or of a cluster.
    pub cores_per_socket: Option<Stated<u64>>,
    /// Sockets, or clusters.
    pub sockets: Option<Stated<u64>>,
    /// The greatest clock.
    pub frequency_at_most: Option<Stated<Frequency>>,
    /// The clock when it was asked.
    pub frequency_now: Option<Stated<Frequency>>,
    /// Share of the greatest clock that cores run at, in percent.
    pub scaling_percent: Option<Stated<u64>>,
    /// Last-level cache, in the words of the tool.
    pub last_level_cache: Option<Stated<String>>,
    /// Who runs it, where it is a virtual machine.
    pub hypervisor: Option<Stated<String>>,
    /// What decides the clock, as in `performance` and `powersave`.
    pub governor: Option<Stated<String>>,
}

/// A node of memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NumaNodeFacts {
    /// Hardware threads of the node.
    pub threads: Option<Stated<u64>>,
    /// Bytes of its memory.
    pub memory_bytes: Option<Stated<u64>>,
}

impl ProcessorFacts {
    /// Cores of all sockets.
    pub fn cores(&self) -> Option<(u64, &FactPlace)> {
        let product = match (&self.cores_per_socket, &self.sockets) {
            (Some(cores), Some(sockets)) => {
                cores.value.checked_mul(sockets.value).map(|all| (all, &cores.at))
            }
            _ => None,
        };
        let by_threads = || {
            let (threads, of_core) = (self.threads.as_ref()?, self.threads_per_core.as_ref()?);
            Some((threads.value.checked_div(of_core.value)?, &threads.at))
        };
        product.or_else(by_threads).filter(|(cores, _)| *cores > 0)
    }

    /// The clock that its name states, as in `@ 2.30GHz`.
    pub fn frequency_of_name(&self) -> Option<Stated<Frequency>> {
        let model = self.model.as_ref()?;
        let (_, clock) = model.value.rsplit_once('@')?;
        let giga: f64 = clock.trim().strip_suffix("GHz")?.trim().parse().ok()?;
        Some(Stated { value: clock_of(giga * 1000.0)?, at: model.at.clone() })
    }

    /// Takes a line of `lscpu`.
    pub(super) fn take(&mut self, key: &str, value: &str, at: &FactPlace) -> bool {
        let count = || value.parse().ok().filter(|count| *count > 0);
        let words = || (!value.is_empty() && value != "-").then(|| value.to_string());
        let megahertz = || clock_of(value.parse().ok()?);
        match key {
            "Architecture" => state(&mut self.architecture, words(), at),
            "Model name" => state(&mut self.model, words(), at),
            "CPU(s)" => state(&mut self.threads, count(), at),
            "Thread(s) per core" => state(&mut self.threads_per_core, count(), at),
            "Core(s) per socket" | "Core(s) per cluster" => state(&mut self.cores_per_socket, count(), at),
            "Socket(s)" | "Cluster(s)" => state(&mut self.sockets, count(), at),
            "CPU max MHz" => state(&mut self.frequency_at_most, megahertz(), at),
            "CPU MHz" => state(&mut self.frequency_now, megahertz(), at),
            "CPU(s) scaling MHz" => {
                let percent = value.trim_end_matches('%').parse().ok();
                state(&mut self.scaling_percent, percent, at)
            }
            "L3 cache" | "L3" => state(&mut self.last_level_cache, words(), at),
            "Hypervisor vendor" => state(&mut self.hypervisor, words(), at),
            _ => false,
        }
    }
}

/// A clock of so many MHz, within what cores run at.
pub(super) fn clock_of(megahertz: f64) -> Option<Frequency> {
    (1.0..=20_000.0).contains(&megahertz).then(|| Frequency::from_hz((megahertz * 1e6).round() as u64))
}

/// How many numbers a list such as `0-15,32-47` or `0 1 2` names.
pub(super) fn listed(text: &str) -> Option<Vec<u64>> {
    /// More is no list of a machine.
    const MOST: usize = 65_536;
    let mut all = Vec::new();
    for part in text.split([',', ' ']).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u64, u64) = (first.parse().ok()?, last.parse().ok()?);
        if last < first || last - first >= MOST as u64 || all.len() > MOST {
            return None;
        }
        all.extend(first..=last);
    }
    Some(all)
}
