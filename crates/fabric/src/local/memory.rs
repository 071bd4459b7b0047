//! Regions: bytes in a cell, found by key.

use super::{Core, LocalFabric};
use crate::region::{Access, RemoteAddress};
use crate::runtime::{KeptHandle, KeptRegion, RegionOwner, RegionTable, Registration};
use crate::{RegionError, Status};
use std::cell::RefCell;
use std::rc::Rc;

/// A role's memory by its name.
type Place = (usize, String);
type Bytes = RefCell<Vec<u8>>;
pub(super) type Regions = RegionTable<Place, Bytes>;

/// Registered memory of the local backend.
#[derive(Clone, Debug)]
pub struct LocalRegion(Rc<KeptRegion<Place, Bytes>>);

pub(super) fn register(
    core: &Core,
    role: usize,
    memory: &str,
    length: u64,
    access: Access,
) -> Result<LocalRegion, RegionError> {
    if access.includes(Access::ON_DEMAND) {
        return Err(LocalFabric::unsupported("on-demand paging", "register without `ON_DEMAND`").into());
    }
    let place = (role, memory.to_string());
    let owner = RegionOwner { role, name: &core.roles[role].name, memories: &core.memories[role], place };
    let bytes = |free| {
        let full = |_| RegionError::OutOfMemory { memory: memory.into(), asked: length, free };
        Ok(RefCell::new(vec![0; usize::try_from(length).map_err(full)?]))
    };
    core.regions.register(owner, (memory, length), access, bytes).map(LocalRegion)
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
    core.regions.resolve(role, at, length, right).map(|(region, offset)| (LocalRegion(region), offset))
}

impl LocalRegion {
    /// Copies between regions, which may be one; both ranges have been checked.
    pub(super) fn copy(from: &LocalRegion, from_offset: u64, to: &LocalRegion, to_offset: u64, length: u64) {
        let (from_start, to_start, length) = (from_offset as usize, to_offset as usize, length as usize);
        if Rc::ptr_eq(&from.0, &to.0) {
            to.0.content.borrow_mut().copy_within(from_start..from_start + length, to_start);
        } else {
            let source = from.0.content.borrow();
            to.0.content.borrow_mut()[to_start..to_start + length]
                .copy_from_slice(&source[from_start..from_start + length]);
        }
    }
}

impl KeptHandle for LocalRegion {
    fn registration(&self) -> &Registration {
        &self.0
    }

    fn end(&self) -> Result<(), RegionError> {
        self.0.deregister()
    }

    fn copy_out(&self, offset: u64, into: &mut [u8]) {
        let start = offset as usize;
        into.copy_from_slice(&self.0.content.borrow()[start..start + into.len()]);
    }

    fn copy_in(&self, offset: u64, from: &[u8]) {
        let start = offset as usize;
        self.0.content.borrow_mut()[start..start + from.len()].copy_from_slice(from);
    }
}
