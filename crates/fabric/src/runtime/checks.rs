//! What every backend refuses before it does anything: roles, options, memory, ranges.

use crate::*;
use std::cell::Cell;
use std::collections::BTreeMap;

/// Refuses roles of which none is a main one, or of which two, `others` of other processes among them, bear
/// one name.
pub fn check_roles<'a, F, T>(
    roles: &'a [Role<F, T>],
    others: impl Iterator<Item = &'a RoleName>,
) -> Result<(), RunError> {
    let refuse = |reason: String| Err(RunError::BadRoles { reason });
    if !roles.iter().any(|role| role.main) {
        return refuse("none of them is a main one, so the run would not end; give one that ends".into());
    }
    let mut names = std::collections::BTreeSet::new();
    for name in roles.iter().map(|role| &role.name).chain(others) {
        if !names.insert(name) {
            return refuse(format!("there are two of {name}; number the instances from 0"));
        }
    }
    Ok(())
}

/// Refuses options of a queue pair beyond what the backend can do.
pub fn check_options(options: &QueuePairOptions, can: &Capabilities) -> Result<(), Unsupported> {
    let deepest = options.send_depth.max(options.receive_depth);
    for (what, asked, bound) in
        [("an inline payload", options.inline_max, can.inline_max), ("a queue depth", deepest, can.depth_max)]
    {
        if asked > bound {
            let feature = format!("{what} of {asked} (at most {bound})");
            return Err(Unsupported {
                backend: can.backend.clone(),
                feature,
                next_step: "ask for less".into(),
            });
        }
    }
    Ok(())
}

/// Where regions lie, and how many bytes of each such place `P` they use.
#[derive(Debug)]
pub struct RegionLedger<P>(BTreeMap<P, u64>);

impl<P> Default for RegionLedger<P> {
    fn default() -> RegionLedger<P> {
        RegionLedger(BTreeMap::new())
    }
}

impl<P: Ord> RegionLedger<P> {
    /// How many bytes are left at `place`, which `role` knows as `name` among its `memories`. Refused where it
    /// has no such memory, or less than `length` is left.
    pub fn left(
        &self,
        place: &P,
        role: &RoleName,
        memories: &[RoleMemory],
        (name, length): (&str, u64),
    ) -> Result<u64, RegionError> {
        let Some(memory) = memories.iter().find(|memory| memory.name == name) else {
            let known: Vec<_> = memories.iter().map(|memory| format!("`{}`", memory.name)).collect();
            let known = known.join(", ");
            return Err(RegionError::NoSuchMemory { role: role.clone(), memory: name.into(), known });
        };
        let free = memory.capacity.get().saturating_sub(self.0.get(place).copied().unwrap_or(0));
        if length > free {
            return Err(RegionError::OutOfMemory { memory: name.into(), asked: length, free });
        }
        Ok(free)
    }

    /// Takes bytes that are left.
    pub fn take(&mut self, place: P, length: u64) {
        *self.0.entry(place).or_default() += length;
    }

    /// Gives bytes back that were taken.
    pub fn give_back(&mut self, place: &P, length: u64) {
        if let Some(used) = self.0.get_mut(place) {
            *used = used.saturating_sub(length);
        }
    }
}

/// A region's registration: whose it is, and what may be done with it.
#[derive(Debug)]
pub struct Registration {
    /// The role that registered it.
    pub role: usize,
    /// Its remote key.
    pub key: u32,
    /// How many bytes it has.
    pub length: u64,
    /// What may be done with it.
    pub access: Access,
    registered: Cell<bool>,
}

impl Registration {
    /// One that is registered.
    pub fn new(role: usize, key: u32, length: u64, access: Access) -> Registration {
        Registration { role, key, length, access, registered: Cell::new(true) }
    }

    /// Ends it; says whether it was registered.
    pub fn end(&self) -> bool {
        self.registered.replace(false)
    }

    /// Whether a device may use a range of it for `role` as `right` says.
    pub fn serves(&self, role: usize, offset: u64, length: u64, right: Access) -> bool {
        self.role == role && self.access.includes(right) && self.check(offset, length).is_ok()
    }

    /// Refuses a range that is not within the region, or any where that is no longer registered.
    #[inline]
    pub fn check(&self, offset: u64, length: u64) -> Result<(), RegionError> {
        let bound = self.length;
        if !self.registered.get() {
            return Err(RegionError::Deregistered { key: self.key });
        }
        match offset.checked_add(length) {
            Some(end) if end <= bound => Ok(()),
            _ => Err(RegionError::OutOfRange { offset, length, bound }),
        }
    }

    /// Refuses an offset where no aligned 8-byte word of the region lies.
    #[inline]
    pub fn check_word(&self, offset: u64) -> Result<(), RegionError> {
        self.check(offset, 8)?;
        if offset.is_multiple_of(8) { Ok(()) } else { Err(RegionError::Unaligned { offset }) }
    }

    /// Its name for peers, where roles stand for endpoints and keys for addresses.
    pub fn remote(&self) -> RemoteRegion {
        let Registration { role, key, length, .. } = *self;
        RemoteRegion { endpoint: EndpointId(role as u32), key, base: base(key), length }
    }

    /// The offset of a place that a peer names by [`Registration::remote`], where its range and right are good
    /// at `role`; `None` for `role` is a DMA engine, which reaches every role.
    #[inline]
    pub fn resolve(
        &self,
        role: Option<usize>,
        at: &RemoteAddress,
        length: u64,
        right: Access,
    ) -> Result<u64, Status> {
        let own = at.region.endpoint.0 as usize == self.role && role.is_none_or(|role| role == self.role);
        let address = at.region.base.checked_add(at.offset);
        match address.and_then(|address| address.checked_sub(base(self.key))) {
            Some(offset) if own && self.access.includes(right) && self.check(offset, length).is_ok() => {
                Ok(offset)
            }
            _ => Err(Status::RemoteAccess),
        }
    }
}

/// The address of a region's first byte. It is not 0, so that a forgotten base does not pass for one.
#[inline]
fn base(key: u32) -> u64 {
    u64::from(key) << 32
}
