//! Registered memory: pages of this process that the device reads and writes at any time.
//!
//! Nothing here makes a reference to the bytes. Every access is by an atomic of one or eight bytes, so
//! that a race with the device is a mixture of words and never undefined.

use crate::bindings::ibv_mr;
use crate::device::{Device, access_flags};
use crate::{Core, VerbsFabric};
use offpath_fabric::runtime::{RegionLedger, Registration};
use offpath_fabric::{Access, EndpointId, Region, RegionError, RemoteRegion};
use std::cell::{Cell, RefCell};
use std::io;
use std::ptr::NonNull;
use std::rc::{Rc, Weak};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

const WORD: usize = 8;
/// The size of a huge page on the processors that cards have.
const HUGE: usize = 2 << 20;

/// Anonymous memory of whole pages, unmapped when dropped.
struct Mapping {
    start: NonNull<u8>,
    size: usize,
}

impl Mapping {
    fn new(length: usize, huge: bool) -> Result<Mapping, io::Error> {
        // An address is wanted for an empty region too.
        let size = length.max(1);
        if huge
            && size >= HUGE
            && let Some(size) = size.checked_next_multiple_of(HUGE)
            && let Ok(mapping) = Mapping::map(size, libc::MAP_HUGETLB)
        {
            return Ok(mapping);
        }
        let mapping = Mapping::map(size, 0)?;
        if huge {
            // SAFETY: advice on our own mapping; where it is refused the pages stay small.
            unsafe { libc::madvise(mapping.start.as_ptr().cast(), size, libc::MADV_HUGEPAGE) };
        }
        Ok(mapping)
    }

    fn map(size: usize, flags: i32) -> Result<Mapping, io::Error> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a fresh anonymous mapping touches nothing that exists.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), size, rights, flags, -1, 0) };
        match NonNull::new(start.cast::<u8>()) {
            Some(start) if start.as_ptr().cast::<libc::c_void>() != libc::MAP_FAILED => {
                Ok(Mapping { start, size })
            }
            _ => Err(io::Error::last_os_error()),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: our own mapping, and the region that it backed is deregistered.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

#[derive(Default)]
pub(crate) struct Regions {
    /// Bytes in use, by role and memory.
    used: RegionLedger<(usize, String)>,
    /// What is registered, by role, so that a role's end can reach it.
    live: Vec<(usize, Weak<Inner>)>,
}

impl Regions {
    /// Takes out the regions of a role, to be deregistered by the caller.
    pub fn take_of(&mut self, role: usize) -> Vec<Rc<Inner>> {
        let (own, others) = self.live.drain(..).partition::<Vec<_>, _>(|(owner, _)| *owner == role);
        self.live = others;
        own.into_iter().filter_map(|(_, region)| region.upgrade()).collect()
    }
}

pub(crate) struct Inner {
    core: Weak<Core>,
    device: Rc<Device>,
    place: (usize, String),
    registration: Registration,
    /// The device's own, until it is deregistered.
    handle: Cell<Option<NonNull<ibv_mr>>>,
    local_key: u32,
    /// `None` only where the device did not let go of it.
    mapping: RefCell<Option<Mapping>>,
    start: NonNull<u8>,
}

impl Inner {
    pub fn end(&self) {
        let Some(handle) = self.handle.take() else { return };
        self.registration.end();
        // SAFETY: registered by us and not deregistered before.
        let result = unsafe { (self.device.library().ibv_dereg_mr)(handle.as_ptr()) };
        if result != 0 {
            // The device may still write there, so the pages must never serve anything else.
            std::mem::forget(self.mapping.borrow_mut().take());
        }
        if let Some(core) = self.core.upgrade()
            && let Ok(mut regions) = core.regions.try_borrow_mut()
        {
            regions.used.give_back(&self.place, self.registration.length);
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.end();
    }
}

/// Registered memory of the verbs backend.
#[derive(Clone)]
pub struct VerbsRegion(Rc<Inner>);

impl std::fmt::Debug for VerbsRegion {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("VerbsRegion")
            .field("key", &self.0.registration.key)
            .field("length", &self.0.registration.length)
            .finish()
    }
}

/// How many more bytes this process may lock, as registering does.
fn lockable() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is ours to be written.
    let result = unsafe { libc::getrlimit(libc::RLIMIT_MEMLOCK, &mut limit) };
    if result == 0 { limit.rlim_cur } else { u64::MAX }
}

pub(crate) fn register(
    fabric: &VerbsFabric,
    memory: &str,
    length: u64,
    access: Access,
) -> Result<VerbsRegion, RegionError> {
    let (core, role) = (&fabric.core, fabric.role);
    let state = &core.roles[role];
    if access.includes(Access::ON_DEMAND) && !core.device.on_demand {
        return Err(fabric.unsupported("on-demand paging", "register without `ON_DEMAND`").into());
    }
    if state.ended.get() {
        return Err(fabric.unsupported("registering for a role that ended", "register before").into());
    }
    let mut regions = core.regions.borrow_mut();
    let place = (role, memory.to_string());
    let free = regions.used.left(&place, &state.name, &core.backend.memories, (memory, length))?;
    let full = |free| RegionError::OutOfMemory { memory: memory.into(), asked: length, free };
    let size = usize::try_from(length).map_err(|_| full(free))?;
    let mapping = Mapping::new(size, core.backend.huge_pages).map_err(|_| full(free))?;
    let start = mapping.start;
    // SAFETY: the mapping lives in the region, which deregisters before it goes.
    let made = unsafe { core.device.register(start.as_ptr(), size.max(1), access_flags(access)) };
    let handle = match made {
        Ok(handle) => handle,
        Err(error) if error.raw_os_error() == Some(libc::ENOMEM) => {
            return Err(full(free.min(lockable())));
        }
        Err(error) => {
            let feature = format!("registering {length} B with these rights ({error})");
            return Err(fabric.unsupported(&feature, "ask for less, or for fewer rights").into());
        }
    };
    regions.used.take(place.clone(), length);
    // SAFETY: the registration is alive.
    let (local_key, remote_key) = unsafe { ((*handle.as_ptr()).lkey, (*handle.as_ptr()).rkey) };
    let inner = Rc::new(Inner {
        core: Rc::downgrade(core),
        device: core.device.clone(),
        place,
        registration: Registration::new(role, remote_key, length, access),
        handle: Cell::new(Some(handle)),
        local_key,
        mapping: RefCell::new(Some(mapping)),
        start,
    });
    regions.live.retain(|(_, region)| region.strong_count() > 0);
    regions.live.push((role, Rc::downgrade(&inner)));
    Ok(VerbsRegion(inner))
}

impl VerbsRegion {
    #[inline(always)]
    pub(crate) fn local_key(&self) -> u32 {
        self.0.local_key
    }

    /// Where a range begins, for the device, which checks it.
    #[inline(always)]
    pub(crate) fn address(&self, offset: u64) -> u64 {
        (self.0.start.as_ptr() as u64).wrapping_add(offset)
    }

    /// Whether the range lies in the region and the region is registered.
    pub(crate) fn check(&self, offset: u64, length: u64) -> Result<(), RegionError> {
        self.0.registration.check(offset, length)
    }

    /// The first byte of a range that was checked.
    fn at(&self, offset: u64) -> *mut u8 {
        self.0.start.as_ptr().wrapping_add(offset as usize)
    }

    /// The aligned word at `offset`.
    fn word(&self, offset: u64) -> Result<&AtomicU64, RegionError> {
        self.0.registration.check_word(offset)?;
        // SAFETY: in range, aligned (mappings begin at a page), alive as long as this handle, and only
        // ever accessed by atomics and by the device.
        Ok(unsafe { AtomicU64::from_ptr(self.at(offset).cast()) })
    }
}

/// How many bytes lie before the first aligned word of `length` bytes at `start`.
fn before_words(start: *mut u8, length: usize) -> usize {
    start.align_offset(WORD).min(length)
}

impl Region for VerbsRegion {
    fn length(&self) -> u64 {
        self.0.registration.length
    }

    fn remote(&self) -> RemoteRegion {
        RemoteRegion { endpoint: EndpointId(0), base: self.address(0), ..self.0.registration.remote() }
    }

    fn read(&self, offset: u64, into: &mut [u8]) -> Result<(), RegionError> {
        self.check(offset, into.len() as u64)?;
        let start = self.at(offset);
        // SAFETY: in range and alive; one byte has no alignment.
        let byte = |index| unsafe { AtomicU8::from_ptr(start.wrapping_add(index)) }.load(Ordering::Relaxed);
        let head = before_words(start, into.len());
        let (first, rest) = into.split_at_mut(head);
        first.iter_mut().enumerate().for_each(|(index, to)| *to = byte(index));
        let mut words = rest.chunks_exact_mut(WORD);
        let mut done = head;
        for to in words.by_ref() {
            // SAFETY: in range, alive, and aligned since `head` bytes came before.
            let word = unsafe { AtomicU64::from_ptr(start.wrapping_add(done).cast()) };
            to.copy_from_slice(&word.load(Ordering::Relaxed).to_ne_bytes());
            done += WORD;
        }
        words.into_remainder().iter_mut().enumerate().for_each(|(index, to)| *to = byte(done + index));
        Ok(())
    }

    fn write(&self, offset: u64, from: &[u8]) -> Result<(), RegionError> {
        self.check(offset, from.len() as u64)?;
        let start = self.at(offset);
        let put = |index: usize, value: u8| {
            // SAFETY: in range and alive; one byte has no alignment.
            unsafe { AtomicU8::from_ptr(start.wrapping_add(index)) }.store(value, Ordering::Relaxed);
        };
        let head = before_words(start, from.len());
        let (first, rest) = from.split_at(head);
        first.iter().enumerate().for_each(|(index, value)| put(index, *value));
        let (words, last) = rest.as_chunks::<WORD>();
        let mut done = head;
        for value in words {
            // SAFETY: in range, alive, and aligned since `head` bytes came before.
            let word = unsafe { AtomicU64::from_ptr(start.wrapping_add(done).cast()) };
            word.store(u64::from_ne_bytes(*value), Ordering::Relaxed);
            done += WORD;
        }
        last.iter().enumerate().for_each(|(index, value)| put(done + index, *value));
        Ok(())
    }

    fn load(&self, offset: u64) -> Result<u64, RegionError> {
        Ok(u64::from_le(self.word(offset)?.load(Ordering::Acquire)))
    }

    fn store(&self, offset: u64, value: u64) -> Result<(), RegionError> {
        self.word(offset)?.store(value.to_le(), Ordering::Release);
        Ok(())
    }

    fn compare_and_swap(&self, offset: u64, compare: u64, swap: u64) -> Result<u64, RegionError> {
        let word = self.word(offset)?;
        let (compare, swap) = (compare.to_le(), swap.to_le());
        let old = word.compare_exchange(compare, swap, Ordering::AcqRel, Ordering::Acquire);
        Ok(u64::from_le(old.unwrap_or_else(|old| old)))
    }

    fn fetch_and_add(&self, offset: u64, add: u64) -> Result<u64, RegionError> {
        let word = self.word(offset)?;
        // Addition is of numbers, and the word is little-endian whatever the processor.
        let sum = |old: u64| Some(u64::from_le(old).wrapping_add(add).to_le());
        let old = word.fetch_update(Ordering::AcqRel, Ordering::Acquire, sum);
        Ok(u64::from_le(old.unwrap_or_else(|old| old)))
    }

    fn deregister(&self) -> Result<(), RegionError> {
        self.check(0, 0)?;
        self.0.end();
        Ok(())
    }
}

/// Memory for the headers that a device puts before UD messages: one place a receive slot.
pub(crate) struct Scratch {
    mapping: Mapping,
    registration: NonNull<ibv_mr>,
    device: Rc<Device>,
}

/// How many bytes a device puts before a UD message.
pub(crate) const HEADER: u32 = 40;
/// How far apart the places are.
const PLACE: usize = 64;

impl Scratch {
    pub fn new(device: &Rc<Device>, places: u32) -> Result<Scratch, io::Error> {
        let mapping = Mapping::new(PLACE * places.max(1) as usize, false)?;
        let flags = crate::bindings::IBV_ACCESS_LOCAL_WRITE;
        // SAFETY: the mapping is dropped after the registration.
        let registration = unsafe { device.register(mapping.start.as_ptr(), mapping.size, flags) }?;
        Ok(Scratch { mapping, registration, device: device.clone() })
    }

    pub fn address(&self, place: u32) -> u64 {
        self.mapping.start.as_ptr().wrapping_add(PLACE * place as usize) as u64
    }

    pub fn key(&self) -> u32 {
        // SAFETY: the registration is alive.
        unsafe { (*self.registration.as_ptr()).lkey }
    }

    /// The header that the device put into a place before it completed the receive.
    pub fn header(&self, place: u32) -> [u8; HEADER as usize] {
        let start = self.mapping.start.as_ptr().wrapping_add(PLACE * place as usize);
        std::array::from_fn(|index| {
            // SAFETY: within the place; one byte has no alignment.
            unsafe { AtomicU8::from_ptr(start.wrapping_add(index)) }.load(Ordering::Acquire)
        })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // SAFETY: the queue pair that wrote there is destroyed before.
        unsafe { (self.device.library().ibv_dereg_mr)(self.registration.as_ptr()) };
    }
}
