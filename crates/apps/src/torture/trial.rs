//! What one seed draws for a system.

use super::Schedule;
use offpath_fabric::{Fabric, Role};

/// What a trial that held did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// Operations of the users.
    pub operations: u64,
    /// Of those, how many ended in an error or were never acknowledged.
    pub unacknowledged: u64,
    /// The CRC-32 of what was seen: equal runs have equal ones.
    pub checksum: u32,
}

/// What one seed draws: what a system's users do, and what befalls them.
pub trait Trial: Clone {
    /// What is seen of a run.
    type Seen: Default;

    /// The trial of a seed, with the bug of this place in the system's list injected.
    fn draw(seed: u64, bug: Option<usize>) -> Self;

    /// The faults that the seed draws.
    fn schedule(&self) -> Schedule;

    /// The label of the alternative that the seed chose.
    fn alternative(&self) -> &'static str;

    /// The roles of a run, which note what they see.
    fn roles<F: Fabric>(&self, seen: &Self::Seen) -> Vec<Role<F, Result<(), String>>>;

    /// Checks what was seen against what the system promises.
    fn check(&self, seen: &Self::Seen) -> Result<Tally, String>;
}

/// The CRC-32 of some parts, one after the other.
pub fn checksum(parts: impl Iterator<Item = impl AsRef<[u8]>>) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    parts.for_each(|part| hasher.update(part.as_ref()));
    hasher.finalize()
}

/// A machine or role as menus name it.
pub fn machine(role: &str, instance: u32) -> (String, u32) {
    (role.to_string(), instance)
}

/// What a menu puts behind the role of a processor that may be slow.
pub const PROCESSOR: &str = ".cpu";

/// The processors of host and card, as menus name what may be slow.
pub fn processors() -> Vec<String> {
    ["soc", "host"].map(|role| format!("{role}{PROCESSOR}")).to_vec()
}
