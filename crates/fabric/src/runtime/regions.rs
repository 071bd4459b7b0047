//! Regions whose content lies in this process: found by key, counted where they lie.

use super::{RegionLedger, Registration};
use crate::{Access, RegionError, RemoteAddress, RoleMemory, RoleName, Status};
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::{Rc, Weak};

struct Kept<P: Ord, C> {
    /// By key, from 1 on.
    by_key: Vec<Weak<KeptRegion<P, C>>>,
    /// Bytes in use, by place.
    used: RegionLedger<P>,
}

/// The regions of a run, each with its content `C` at a place `P`.
pub struct RegionTable<P: Ord, C>(Rc<RefCell<Kept<P, C>>>);

impl<P: Ord, C> Default for RegionTable<P, C> {
    fn default() -> RegionTable<P, C> {
        RegionTable(Rc::new(RefCell::new(Kept { by_key: Vec::new(), used: RegionLedger::default() })))
    }
}

/// Whose memory a region is to lie in.
pub struct RegionOwner<'a, P> {
    /// The number of the role.
    pub role: usize,
    /// Its name.
    pub name: &'a RoleName,
    /// Its memories.
    pub memories: &'a [RoleMemory],
    /// Where the bytes of the memory are counted.
    pub place: P,
}

impl<P: Ord + Clone, C> RegionTable<P, C> {
    /// Registers `length` bytes of the owner's memory `memory`, with the content that `content` makes of what is
    /// still free there.
    pub fn register(
        &self,
        owner: RegionOwner<'_, P>,
        (memory, length): (&str, u64),
        access: Access,
        content: impl FnOnce(u64) -> Result<C, RegionError>,
    ) -> Result<Rc<KeptRegion<P, C>>, RegionError> {
        let RegionOwner { role, name, memories, place } = owner;
        let kept = &mut *self.0.borrow_mut();
        let content = content(kept.used.left(&place, name, memories, (memory, length))?)?;
        kept.used.take(place.clone(), length);
        let key = kept.by_key.len() as u32 + 1;
        let registration = Registration::new(role, key, length, access);
        let region = KeptRegion { table: Rc::downgrade(&self.0), place, registration, content };
        let region = Rc::new(region);
        kept.by_key.push(Rc::downgrade(&region));
        Ok(region)
    }

    /// The region that a peer's request names, where its key, range and right are good at `role`; `None` for `role`
    /// is a DMA engine, which reaches every role.
    pub fn resolve(
        &self,
        role: Option<usize>,
        at: &RemoteAddress,
        length: u64,
        right: Access,
    ) -> Result<(Rc<KeptRegion<P, C>>, u64), Status> {
        let index = (at.region.key as usize).wrapping_sub(1);
        let region = self.0.borrow().by_key.get(index).and_then(Weak::upgrade).ok_or(Status::RemoteAccess)?;
        let offset = region.registration.resolve(role, at, length, right)?;
        Ok((region, offset))
    }

    /// Ends every region of a role.
    pub fn end_all_of(&self, role: usize) {
        let all: Vec<_> = self.0.borrow().by_key.iter().filter_map(Weak::upgrade).collect();
        all.iter().filter(|region| region.registration.role == role).for_each(|region| region.end());
    }
}

/// A region of a [`RegionTable`]; it ends when it is dropped.
pub struct KeptRegion<P: Ord, C> {
    table: Weak<RefCell<Kept<P, C>>>,
    place: P,
    registration: Registration,
    /// Its bytes.
    pub content: C,
}

impl<P: Ord, C> KeptRegion<P, C> {
    /// Ends its registration, which is refused where it ended before.
    pub fn deregister(&self) -> Result<(), RegionError> {
        self.check(0, 0)?;
        self.end();
        Ok(())
    }

    fn end(&self) {
        if self.registration.end()
            && let Some(kept) = self.table.upgrade()
        {
            kept.borrow_mut().used.give_back(&self.place, self.registration.length);
        }
    }
}

impl<P: Ord, C> Deref for KeptRegion<P, C> {
    type Target = Registration;

    fn deref(&self) -> &Registration {
        &self.registration
    }
}

impl<P: Ord, C> Drop for KeptRegion<P, C> {
    fn drop(&mut self) {
        self.end();
    }
}

impl<P: Ord, C> std::fmt::Debug for KeptRegion<P, C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KeptRegion").field("key", &self.key).field("length", &self.length).finish()
    }
}
