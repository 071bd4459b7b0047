//! Regions whose content lies in this process: found by key, counted where they lie.

use super::{RegionLedger, Registration};
use crate::{Access, Region, RegionError, RemoteAddress, RemoteRegion, RoleMemory, RoleName, Status};
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

    /// Ends every region of the roles that are meant.
    pub fn end_all_of(&self, is_meant: impl Fn(usize) -> bool) {
        let all: Vec<_> = self.0.borrow().by_key.iter().filter_map(Weak::upgrade).collect();
        all.iter().filter(|region| is_meant(region.registration.role)).for_each(|region| region.end());
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

/// A handle to a region of a [`RegionTable`]: how its bytes are reached. The rest of a [`Region`] follows.
pub trait KeptHandle: Clone + 'static {
    /// The region's registration.
    fn registration(&self) -> &Registration;

    /// Ends the registration.
    fn end(&self) -> Result<(), RegionError>;

    /// Copies from a range that was checked.
    fn copy_out(&self, offset: u64, into: &mut [u8]);

    /// Copies into a range that was checked.
    fn copy_in(&self, offset: u64, from: &[u8]);

    /// Changes a word; gives what it was.
    fn update(&self, offset: u64, change: impl FnOnce(u64) -> u64) -> Result<u64, RegionError> {
        self.registration().check_word(offset)?;
        let mut word = [0; 8];
        self.copy_out(offset, &mut word);
        let old = u64::from_le_bytes(word);
        self.copy_in(offset, &change(old).to_le_bytes());
        Ok(old)
    }
}

impl<R: KeptHandle> Region for R {
    fn length(&self) -> u64 {
        self.registration().length
    }

    fn remote(&self) -> RemoteRegion {
        self.registration().remote()
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), RegionError> {
        self.registration().check(offset, into.len() as u64)?;
        self.copy_out(offset, into);
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), RegionError> {
        self.registration().check(offset, from.len() as u64)?;
        self.copy_in(offset, from);
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u64, RegionError> {
        self.registration().check_word(offset)?;
        let mut word = [0; 8];
        self.copy_out(offset, &mut word);
        Ok(u64::from_le_bytes(word))
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
        self.end()
    }
}
