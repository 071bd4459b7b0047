//! Regions: bytes in a cell, found by key.

use super::{Core, LocalFabric};
use crate::region::{Access, Region, RemoteAddress, RemoteRegion};
use crate::runtime::{RegionLedger, Registration};
use crate::{RegionError, Status};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::{Rc, Weak};

#[derive(Default)]
pub(super) struct Regions {
    by_key: BTreeMap<u32, Weak<Inner>>,
    last_key: u32,
    /// Bytes in use, by role and memory.
    used: RegionLedger<(usize, String)>,
}

impl Regions {
    fn end(&mut self, inner: &Inner) {
        if inner.registration.end() {
            self.by_key.remove(&inner.registration.key);
            self.used.give_back(&inner.place, inner.registration.length);
        }
    }

    pub(super) fn deregister_all_of(&mut self, role: usize) {
        let regions: Vec<_> =
            self.by_key.values().filter_map(Weak::upgrade).filter(|r| r.registration.role == role).collect();
        for region in &regions {
            self.end(region);
        }
    }
}

struct Inner {
    core: Weak<Core>,
    place: (usize, String),
    registration: Registration,
    bytes: RefCell<Vec<u8>>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(core) = self.core.upgrade()
            && let Ok(mut regions) = core.regions.try_borrow_mut()
        {
            regions.end(self);
        }
    }
}

/// Registered memory of the local backend.
#[derive(Clone)]
pub struct LocalRegion(Rc<Inner>);

impl std::fmt::Debug for LocalRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalRegion")
            .field("key", &self.0.registration.key)
            .field("length", &self.0.registration.length)
            .finish()
    }
}

pub(super) fn register(
    core: &Rc<Core>,
    role: usize,
    memory: &str,
    length: u64,
    access: Access,
) -> Result<LocalRegion, RegionError> {
    if access.includes(Access::ON_DEMAND) {
        return Err(LocalFabric::unsupported("on-demand paging", "register without `ON_DEMAND`").into());
    }
    let state = &core.roles[role];
    let mut regions = core.regions.borrow_mut();
    let place = (role, memory.to_string());
    let free = regions.used.left(&place, &state.name, &state.memories, (memory, length))?;
    let full = |_| RegionError::OutOfMemory { memory: memory.into(), asked: length, free };
    let size = usize::try_from(length).map_err(full)?;
    regions.used.take(place.clone(), length);
    regions.last_key += 1;
    let key = regions.last_key;
    let registration = Registration::new(role, key, length, access);
    let bytes = RefCell::new(vec![0; size]);
    let inner = Rc::new(Inner { core: Rc::downgrade(core), place, registration, bytes });
    regions.by_key.insert(key, Rc::downgrade(&inner));
    Ok(LocalRegion(inner))
}

/// The region that a peer's request names, where its key, range and right are good at `role`; `None`
/// for `role` is a DMA engine, which reaches every role.
pub(super) fn resolve(
    core: &Core,
    role: Option<usize>,
    at: &RemoteAddress,
    length: u64,
    right: Access,
) -> Result<(LocalRegion, u64), Status> {
    let inner = core
        .regions
        .borrow()
        .by_key
        .get(&at.region.key)
        .and_then(Weak::upgrade)
        .ok_or(Status::RemoteAccess)?;
    let offset = inner.registration.resolve(role, at, length, right)?;
    Ok((LocalRegion(inner), offset))
}

impl LocalRegion {
    /// Whether the range is within the region and the region still registered.
    pub(super) fn check(&self, offset: u64, length: u64) -> Result<(), RegionError> {
        self.0.registration.check(offset, length)
    }

    /// Whether the region grants `right`.
    pub(super) fn grants(&self, right: Access) -> bool {
        self.0.registration.access.includes(right)
    }

    /// Whether `role` registered it.
    pub(super) fn belongs_to(&self, role: usize) -> bool {
        self.0.registration.role == role
    }

    /// Changes a word, giving what it was.
    pub(super) fn update(&self, offset: u64, change: impl FnOnce(u64) -> u64) -> Result<u64, RegionError> {
        self.0.registration.check_word(offset)?;
        let mut bytes = self.0.bytes.borrow_mut();
        let word = bytes[offset as usize..].first_chunk_mut::<8>().expect("the range was checked");
        let old = u64::from_le_bytes(*word);
        *word = change(old).to_le_bytes();
        Ok(old)
    }

    /// Copies between regions, which may be one; both ranges have been checked.
    pub(super) fn copy(from: &LocalRegion, from_offset: u64, to: &LocalRegion, to_offset: u64, length: u64) {
        let (from_start, to_start, length) = (from_offset as usize, to_offset as usize, length as usize);
        if Rc::ptr_eq(&from.0, &to.0) {
            to.0.bytes.borrow_mut().copy_within(from_start..from_start + length, to_start);
        } else {
            let source = from.0.bytes.borrow();
            to.0.bytes.borrow_mut()[to_start..to_start + length]
                .copy_from_slice(&source[from_start..from_start + length]);
        }
    }
}

impl Region for LocalRegion {
    fn length(&self) -> u64 {
        self.0.registration.length
    }

    fn remote(&self) -> RemoteRegion {
        self.0.registration.remote()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), RegionError> {
        self.check(offset, into.len() as u64)?;
        let start = offset as usize;
        into.copy_from_slice(&self.0.bytes.borrow()[start..start + into.len()]);
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), RegionError> {
        self.check(offset, from.len() as u64)?;
        let start = offset as usize;
        self.0.bytes.borrow_mut()[start..start + from.len()].copy_from_slice(from);
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u64, RegionError> {
        self.update(offset, |word| word)
    }

    fn store(&self, offset: u64, value: u64) -> Result<(), RegionError> {
        self.update(offset, |_| value).map(|_| ())
    }

    fn compare_and_swap(&self, offset: u64, compare: u64, swap: u64) -> Result<u64, RegionError> {
        self.update(offset, |word| if word == compare { swap } else { word })
    }

    fn fetch_and_add(&self, offset: u64, add: u64) -> Result<u64, RegionError> {
        self.update(offset, |word| word.wrapping_add(add))
    }

    fn deregister(&self) -> Result<(), RegionError> {
        self.check(0, 0)?;
        if let Some(core) = self.0.core.upgrade() {
            core.regions.borrow_mut().end(&self.0);
        }
        Ok(())
    }
}
