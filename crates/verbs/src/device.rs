//! An opened device: its limits, its address, and the objects that live on it.

use crate::VerbsError;
use crate::bindings::*;
use offpath_fabric::{Access, Address, EndpointId};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::CStr;
use std::io;
use std::ptr::NonNull;
use std::rc::Rc;

/// The longest inline payload that is looked for.
const INLINE_SOUGHT: u32 = 4096;
/// The deepest queue that is offered, whatever the device could hold.
const DEPTH_OFFERED: u32 = 32_768;
/// How many READs and atomics of one queue pair may be in flight, if the devices can.
const READS_IN_FLIGHT: u8 = 16;
/// Every UD queue pair has this queue key: peers learn it with the address.
pub(crate) const QUEUE_KEY: u32 = 0x0ff_0a7b;

/// What there is to know of an RDMA device without a queue pair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceDescription {
    /// Its name, as `mlx5_0` or `rxe0`.
    pub name: String,
    /// The firmware's version, as the device says it.
    pub firmware: String,
    /// How many ports it has.
    pub ports: u8,
    /// Whether port 1 is active.
    pub active: bool,
    /// The MTU of port 1, in bytes.
    pub mtu: u64,
    /// The longest RC message, in bytes.
    pub message_max: u64,
    /// The deepest queue.
    pub depth_max: u32,
}

/// The devices of this machine, in the library's order. Refused where the library cannot be loaded;
/// empty where there is no device.
pub fn devices() -> Result<Vec<DeviceDescription>, VerbsError> {
    let library = Rc::new(Library::load()?);
    let mut found = Vec::new();
    for name in names(&library)? {
        let opened = Opened::new(&library, &name)?;
        let attributes = opened.attributes()?;
        let port = opened.port(1)?;
        // SAFETY: the array is zeroed before the call and the library ends the text.
        let firmware = unsafe { CStr::from_ptr(attributes.fw_ver.as_ptr()) }.to_string_lossy().into_owned();
        found.push(DeviceDescription {
            name,
            firmware,
            ports: attributes.phys_port_cnt,
            active: port.state == IBV_PORT_ACTIVE,
            mtu: mtu_bytes(port.active_mtu),
            message_max: u64::from(port.max_msg_sz),
            depth_max: depth_max(&attributes),
        });
    }
    Ok(found)
}

/// What Soft-RoCE gives as the number of its vendor.
const SOFT_ROCE_VENDOR: u32 = 0xff_ffff;

/// How often a device of this vendor can be asked to retransmit before it gives up.
fn retries_max(vendor: u32) -> u8 {
    // Verbs mean seven by 7, which Soft-RoCE takes for ever: no request to a peer that is gone would end.
    if vendor == SOFT_ROCE_VENDOR { 6 } else { 7 }
}

fn depth_max(attributes: &ibv_device_attr) -> u32 {
    // One completion queue takes the completions of both of a queue pair's queues; one request more is
    // for the queue pair's own use.
    let deepest = attributes.max_qp_wr.min(attributes.max_cqe / 2) - 1;
    u32::try_from(deepest).unwrap_or(0).min(DEPTH_OFFERED)
}

fn mtu_bytes(mtu: u32) -> u64 {
    128 << mtu.clamp(1, 5)
}

/// What the system said last.
pub(crate) fn last_error() -> String {
    io::Error::last_os_error().to_string()
}

/// The list of devices, given back when dropped.
struct List<'a> {
    library: &'a Library,
    first: *mut *mut ibv_device,
    count: usize,
}

impl List<'_> {
    fn get(library: &Library) -> Result<List<'_>, VerbsError> {
        let mut count = 0;
        // SAFETY: the only argument is written with the length of the list.
        let first = unsafe { (library.ibv_get_device_list)(&mut count) };
        if first.is_null() {
            // Without the kernel's modules the call fails with "function not implemented".
            return Err(VerbsError::NoDevice);
        }
        Ok(List { library, first, count: usize::try_from(count).unwrap_or(0) })
    }

    fn each(&self) -> impl Iterator<Item = (String, *mut ibv_device)> {
        (0..self.count).map(|index| {
            // SAFETY: the list has `count` entries, each a device with a name.
            unsafe {
                let device = *self.first.add(index);
                let name = CStr::from_ptr((self.library.ibv_get_device_name)(device));
                (name.to_string_lossy().into_owned(), device)
            }
        })
    }
}

impl Drop for List<'_> {
    fn drop(&mut self) {
        // SAFETY: the list came from the library and is not used afterwards.
        unsafe { (self.library.ibv_free_device_list)(self.first) }
    }
}

fn names(library: &Library) -> Result<Vec<String>, VerbsError> {
    match List::get(library) {
        Ok(list) => Ok(list.each().map(|(name, _)| name).collect()),
        Err(VerbsError::NoDevice) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// A context, closed when dropped.
struct Opened {
    library: Rc<Library>,
    name: String,
    context: NonNull<ibv_context>,
}

impl Opened {
    fn new(library: &Rc<Library>, name: &str) -> Result<Opened, VerbsError> {
        let list = List::get(library)?;
        let found = list.each().find(|(other, _)| other == name);
        let Some((_, device)) = found else {
            let known: Vec<_> = list.each().map(|(name, _)| format!("`{name}`")).collect();
            return Err(VerbsError::NoSuchDevice { name: name.into(), known: known.join(", ") });
        };
        // SAFETY: the device is of the list, which is still alive.
        let context = unsafe { (library.ibv_open_device)(device) };
        let context = NonNull::new(context).ok_or_else(|| VerbsError::Call {
            call: "ibv_open_device",
            device: name.into(),
            reason: last_error(),
        })?;
        Ok(Opened { library: library.clone(), name: name.into(), context })
    }

    fn checked(&self, call: &'static str, result: i32) -> Result<(), VerbsError> {
        if result == 0 {
            return Ok(());
        }
        // Some of these calls give the error, others -1 and leave it behind.
        let reason = if result > 0 { io::Error::from_raw_os_error(result).to_string() } else { last_error() };
        Err(VerbsError::Call { call, device: self.name.clone(), reason })
    }

    fn attributes(&self) -> Result<ibv_device_attr, VerbsError> {
        let mut attributes = zeroed();
        // SAFETY: the context is open and the structure is the library's.
        let result = unsafe { (self.library.ibv_query_device)(self.context.as_ptr(), &mut attributes) };
        self.checked("ibv_query_device", result)?;
        Ok(attributes)
    }

    fn port(&self, port: u8) -> Result<ibv_port_attr, VerbsError> {
        let mut attributes = zeroed();
        // SAFETY: as above; the symbol fills all but the last fields, which stay zero.
        let result = unsafe { (self.library.ibv_query_port)(self.context.as_ptr(), port, &mut attributes) };
        self.checked("ibv_query_port", result)?;
        Ok(attributes)
    }

    fn gid(&self, port: u8, index: i32) -> Option<[u8; 16]> {
        let mut gid: ibv_gid = zeroed();
        // SAFETY: as above.
        let result = unsafe { (self.library.ibv_query_gid)(self.context.as_ptr(), port, index, &mut gid) };
        (result == 0 && gid.raw != [0; 16]).then_some(gid.raw)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: whatever lives on the context holds the device, so nothing does any more.
        unsafe { (self.library.ibv_close_device)(self.context.as_ptr()) };
    }
}

/// A device with a protection domain, an address, and known limits.
pub(crate) struct Device {
    /// Address handles by path, made once and kept. They go before the domain does.
    handles: RefCell<BTreeMap<[u8; 20], NonNull<ibv_ah>>>,
    domain: NonNull<ibv_pd>,
    opened: Opened,
    pub port: u8,
    pub port_attributes: ibv_port_attr,
    pub attributes: ibv_device_attr,
    pub gid: [u8; 16],
    pub gid_index: u8,
    pub inline_max: u32,
    pub depth_max: u32,
    pub on_demand: bool,
    pub ud: bool,
}

impl Drop for Device {
    fn drop(&mut self) {
        for handle in self.handles.borrow().values() {
            // SAFETY: made by this device, and no queue pair that could use it is left.
            unsafe { (self.library().ibv_destroy_ah)(handle.as_ptr()) };
        }
        // SAFETY: regions and queue pairs hold the device, so the domain is empty.
        unsafe { (self.library().ibv_dealloc_pd)(self.domain.as_ptr()) };
    }
}

/// An address's way through the network: its GID and its LID.
pub(crate) fn path(gid: [u8; 16], lid: u16) -> [u8; 20] {
    let mut path = [0; 20];
    path[..16].copy_from_slice(&gid);
    path[16..18].copy_from_slice(&lid.to_le_bytes());
    path
}

impl Device {
    /// Opens `name`, or the first device with an active port.
    pub fn open(name: Option<&str>, port: u8, gid_index: Option<u8>) -> Result<Device, VerbsError> {
        let library = Rc::new(Library::load()?);
        let known = names(&library)?;
        let opened = match name {
            Some(name) if !known.is_empty() => Opened::new(&library, name)?,
            _ => {
                let mut best = None;
                for name in &known {
                    let opened = Opened::new(&library, name)?;
                    let active = opened.port(port).is_ok_and(|port| port.state == IBV_PORT_ACTIVE);
                    if active || best.is_none() {
                        best = Some(opened);
                    }
                    if active {
                        break;
                    }
                }
                best.ok_or(VerbsError::NoDevice)?
            }
        };
        let attributes = opened.attributes()?;
        let port_attributes = opened.port(port)?;
        if port_attributes.state != IBV_PORT_ACTIVE {
            let state = port_attributes.state;
            return Err(VerbsError::PortDown { device: opened.name.clone(), port, state });
        }
        let (gid_index, gid) = find_gid(&opened, port, &port_attributes, gid_index)?;
        // SAFETY: the context is open.
        let domain = unsafe { (library.ibv_alloc_pd)(opened.context.as_ptr()) };
        let domain = NonNull::new(domain).ok_or_else(|| VerbsError::Call {
            call: "ibv_alloc_pd",
            device: opened.name.clone(),
            reason: last_error(),
        })?;
        // The executor looks for asynchronous events between other work, so reading must not wait.
        // SAFETY: the descriptor belongs to the open context.
        unsafe {
            let descriptor = (*opened.context.as_ptr()).async_fd;
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        let mut device = Device {
            handles: RefCell::default(),
            domain,
            opened,
            port,
            port_attributes,
            attributes,
            gid,
            gid_index,
            inline_max: 0,
            depth_max: depth_max(&attributes),
            on_demand: false,
            ud: false,
        };
        device.probe()?;
        Ok(device)
    }

    /// Finds by trying what no query tells: the longest inline payload, UD, on-demand paging.
    fn probe(&mut self) -> Result<(), VerbsError> {
        let queue = CompletionQueue::raw(self, 2, std::ptr::null_mut())
            .map_err(|reason| self.call_error("ibv_create_cq", reason))?;
        let tries = |kind, inline| {
            let capacity = ibv_qp_cap {
                max_send_wr: 1,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: inline,
            };
            let made = self.create_queue_pair(kind, queue, capacity, None);
            // SAFETY: just made and never used.
            made.map(|made| unsafe { (self.library().ibv_destroy_qp)(made.as_ptr()) })
        };
        let first = tries(IBV_QPT_RC, 0);
        let (mut good, mut bad) = (0, INLINE_SOUGHT + 1);
        while first.is_ok() && bad - good > 1 {
            let middle = good.midpoint(bad);
            if tries(IBV_QPT_RC, middle).is_ok() { good = middle } else { bad = middle }
        }
        let ud = tries(IBV_QPT_UD, 0).is_ok();
        // SAFETY: its queue pairs are destroyed.
        unsafe { (self.library().ibv_destroy_cq)(queue.as_ptr()) };
        first.map_err(|reason| self.call_error("ibv_create_qp", reason))?;
        (self.inline_max, self.ud) = (good, ud);
        let mut word = Box::new([0u64; 512]);
        let flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_ON_DEMAND;
        // SAFETY: the memory is ours and outlives the registration.
        if let Ok(registered) = unsafe { self.register(word.as_mut_ptr().cast(), 4096, flags) } {
            // SAFETY: just registered, used by nobody.
            unsafe { (self.library().ibv_dereg_mr)(registered.as_ptr()) };
            self.on_demand = true;
        }
        Ok(())
    }

    fn call_error(&self, call: &'static str, reason: String) -> VerbsError {
        VerbsError::Call { call, device: self.name().into(), reason }
    }

    pub fn name(&self) -> &str {
        &self.opened.name
    }

    pub fn library(&self) -> &Library {
        &self.opened.library
    }

    pub fn context(&self) -> NonNull<ibv_context> {
        self.opened.context
    }

    /// The descriptor that has asynchronous events to read.
    pub fn event_descriptor(&self) -> i32 {
        // SAFETY: the context is open.
        unsafe { (*self.opened.context.as_ptr()).async_fd }
    }

    /// The next asynchronous event: its type and what it is about.
    pub fn next_event(&self) -> Option<(u32, usize)> {
        let mut event = zeroed();
        // SAFETY: the context is open; reading does not wait; what was got is given back at once, so that
        // destroying its object never waits for it.
        unsafe {
            if (self.library().ibv_get_async_event)(self.opened.context.as_ptr(), &mut event) != 0 {
                return None;
            }
            (self.library().ibv_ack_async_event)(&mut event);
        }
        Some((event.event_type, event.element as usize))
    }

    /// How many bytes one packet carries.
    pub fn mtu(&self) -> u64 {
        mtu_bytes(self.port_attributes.active_mtu)
    }

    /// How often it can be asked to retransmit before it gives up.
    pub fn retries_max(&self) -> u8 {
        retries_max(self.attributes.vendor_id)
    }

    /// How many READs and atomics of one queue pair may be in flight.
    pub fn reads_started(&self) -> u8 {
        self.attributes.max_qp_init_rd_atom.clamp(0, i32::from(READS_IN_FLIGHT)) as u8
    }

    /// How many of a peer's one queue pair answers at once.
    pub fn reads_answered(&self) -> u8 {
        self.attributes.max_qp_rd_atom.clamp(0, i32::from(READS_IN_FLIGHT)) as u8
    }

    pub fn address(&self, queue_pair: u32) -> Address {
        Address {
            endpoint: EndpointId(0),
            queue_pair,
            queue_key: QUEUE_KEY,
            path: path(self.gid, self.lid()),
        }
    }

    /// The LID, where it is what reaches the port.
    pub fn lid(&self) -> u16 {
        if self.port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET { 0 } else { self.port_attributes.lid }
    }

    /// The way to `path`, for a connection or an address handle.
    pub fn route(&self, path: &[u8; 20]) -> ibv_ah_attr {
        let mut route: ibv_ah_attr = zeroed();
        route.grh.dgid.raw.copy_from_slice(&path[..16]);
        route.grh.sgid_index = self.gid_index;
        route.grh.hop_limit = 64;
        route.is_global = u8::from(self.port_attributes.link_layer == IBV_LINK_LAYER_ETHERNET);
        route.dlid = u16::from_le_bytes([path[16], path[17]]);
        route.port_num = self.port;
        route
    }

    /// The address handle of a path.
    pub fn handle(&self, path: &[u8; 20]) -> Result<NonNull<ibv_ah>, String> {
        if let Some(handle) = self.handles.borrow().get(path) {
            return Ok(*handle);
        }
        let mut route = self.route(path);
        // SAFETY: the domain is alive and the structure complete.
        let handle = unsafe { (self.library().ibv_create_ah)(self.domain.as_ptr(), &mut route) };
        let handle = NonNull::new(handle).ok_or_else(last_error)?;
        self.handles.borrow_mut().insert(*path, handle);
        Ok(handle)
    }

    /// Registers memory.
    ///
    /// # Safety
    ///
    /// The memory must stay mapped until it is deregistered.
    pub unsafe fn register(
        &self,
        start: *mut u8,
        length: usize,
        flags: i32,
    ) -> Result<NonNull<ibv_mr>, io::Error> {
        // SAFETY: the domain is alive; the caller keeps the memory.
        let region =
            unsafe { (self.library().ibv_reg_mr)(self.domain.as_ptr(), start.cast(), length, flags) };
        NonNull::new(region).ok_or_else(io::Error::last_os_error)
    }

    /// Makes a queue pair whose both queues complete to `queue`.
    pub fn create_queue_pair(
        &self,
        kind: u32,
        queue: NonNull<ibv_cq>,
        capacity: ibv_qp_cap,
        shared: Option<NonNull<ibv_srq>>,
    ) -> Result<NonNull<ibv_qp>, String> {
        let mut attributes = ibv_qp_init_attr {
            qp_context: std::ptr::null_mut(),
            send_cq: queue.as_ptr(),
            recv_cq: queue.as_ptr(),
            srq: shared.map_or(std::ptr::null_mut(), NonNull::as_ptr),
            cap: capacity,
            qp_type: kind,
            sq_sig_all: 0,
        };
        // SAFETY: all objects named are alive and of this device.
        let made = unsafe { (self.library().ibv_create_qp)(self.domain.as_ptr(), &mut attributes) };
        NonNull::new(made).ok_or_else(last_error)
    }

    /// Makes a shared receive queue.
    pub fn create_shared(&self, depth: u32) -> Result<NonNull<ibv_srq>, String> {
        let attr = ibv_srq_attr { max_wr: depth, max_sge: 1, srq_limit: 0 };
        let mut attributes = ibv_srq_init_attr { srq_context: std::ptr::null_mut(), attr };
        // SAFETY: the domain is alive and the structure complete.
        let made = unsafe { (self.library().ibv_create_srq)(self.domain.as_ptr(), &mut attributes) };
        NonNull::new(made).ok_or_else(last_error)
    }

    /// Changes a queue pair by those fields of `attributes` that `mask` names.
    ///
    /// # Safety
    ///
    /// The queue pair must be alive and of this device.
    pub unsafe fn modify(
        &self,
        queue_pair: NonNull<ibv_qp>,
        mut attributes: ibv_qp_attr,
        mask: i32,
    ) -> Result<(), String> {
        // SAFETY: the caller's.
        let result = unsafe { (self.library().ibv_modify_qp)(queue_pair.as_ptr(), &mut attributes, mask) };
        if result == 0 { Ok(()) } else { Err(io::Error::from_raw_os_error(result.abs()).to_string()) }
    }
}

/// The rights of a region as verbs number them.
pub(crate) fn access_flags(access: Access) -> i32 {
    [
        (Access::LOCAL_WRITE, IBV_ACCESS_LOCAL_WRITE),
        (Access::REMOTE_READ, IBV_ACCESS_REMOTE_READ),
        (Access::REMOTE_WRITE, IBV_ACCESS_REMOTE_WRITE),
        (Access::REMOTE_ATOMIC, IBV_ACCESS_REMOTE_ATOMIC),
        (Access::ON_DEMAND, IBV_ACCESS_ON_DEMAND),
    ]
    .into_iter()
    .filter(|(right, _)| access.includes(*right))
    .fold(0, |flags, (_, flag)| flags | flag)
}

/// Chooses the GID: the one asked for; else on Ethernet an IPv4 one of RoCE v2, which routers carry, else
/// any of RoCE v2; else the first.
fn find_gid(
    opened: &Opened,
    port: u8,
    attributes: &ibv_port_attr,
    asked: Option<u8>,
) -> Result<(u8, [u8; 16]), VerbsError> {
    let missing = |asked: String| VerbsError::NoGid { device: opened.name.clone(), port, asked };
    if let Some(index) = asked {
        let gid = opened.gid(port, i32::from(index)).ok_or_else(|| missing(format!("at index {index}")))?;
        return Ok((index, gid));
    }
    let rank = |index: u8, gid: &[u8; 16]| {
        let file = format!("/sys/class/infiniband/{}/ports/{port}/gid_attrs/types/{index}", opened.name);
        let second = std::fs::read_to_string(file).is_ok_and(|kind| kind.trim() == "RoCE v2");
        let ipv4 = gid[..12] == [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        (second && ipv4, second)
    };
    let last = attributes.gid_tbl_len.clamp(0, 255) as u8;
    let gids = (0..last).filter_map(|index| Some((index, opened.gid(port, i32::from(index))?)));
    // Of equals the first is wanted, and `max_by_key` gives the last.
    gids.rev().max_by_key(|(index, gid)| rank(*index, gid)).ok_or_else(|| missing("at all".into()))
}

/// A completion queue that several queue pairs share, up to its room.
pub(crate) struct CompletionQueue {
    pub queue: NonNull<ibv_cq>,
    device: Rc<Device>,
    pub room: u32,
}

impl CompletionQueue {
    fn raw(device: &Device, entries: u32, channel: *mut ibv_comp_channel) -> Result<NonNull<ibv_cq>, String> {
        let entries = i32::try_from(entries).unwrap_or(i32::MAX);
        // SAFETY: the context is open, the channel null or of this device.
        let queue = unsafe {
            (device.library().ibv_create_cq)(
                device.context().as_ptr(),
                entries,
                std::ptr::null_mut(),
                channel,
                0,
            )
        };
        NonNull::new(queue).ok_or_else(last_error)
    }

    /// A queue of `entries`, which tells `channel` when it is armed.
    pub fn new(
        device: &Rc<Device>,
        entries: u32,
        channel: Option<&EventChannel>,
    ) -> Result<CompletionQueue, String> {
        let channel = channel.map_or(std::ptr::null_mut(), |channel| channel.channel.as_ptr());
        let queue = CompletionQueue::raw(device, entries, channel)?;
        Ok(CompletionQueue { queue, device: device.clone(), room: entries })
    }

    /// Takes completions out; gives how many were written to `into`.
    #[inline(always)]
    pub fn poll(&self, into: &mut [ibv_wc]) -> usize {
        // SAFETY: the queue is alive; the provider writes at most as many as there is room for.
        let count = unsafe {
            let poll = (*(*self.queue.as_ptr()).context).ops.poll_cq;
            poll.map_or(0, |poll| poll(self.queue.as_ptr(), into.len() as i32, into.as_mut_ptr()))
        };
        usize::try_from(count).unwrap_or(0)
    }

    /// Has the next completion tell the channel.
    pub fn arm(&self) {
        // SAFETY: the queue is alive.
        unsafe {
            if let Some(arm) = (*(*self.queue.as_ptr()).context).ops.req_notify_cq {
                arm(self.queue.as_ptr(), 0);
            }
        }
    }
}

impl Drop for CompletionQueue {
    fn drop(&mut self) {
        // SAFETY: its queue pairs are destroyed before; one that could not be keeps it busy and alive.
        unsafe { (self.device.library().ibv_destroy_cq)(self.queue.as_ptr()) };
    }
}

/// Where completion queues tell that something came.
pub(crate) struct EventChannel {
    channel: NonNull<ibv_comp_channel>,
    device: Rc<Device>,
}

impl EventChannel {
    pub fn new(device: &Rc<Device>) -> Result<EventChannel, String> {
        // SAFETY: the context is open.
        let channel = unsafe { (device.library().ibv_create_comp_channel)(device.context().as_ptr()) };
        let channel = NonNull::new(channel).ok_or_else(last_error)?;
        // SAFETY: the descriptor is the channel's own.
        unsafe {
            let descriptor = (*channel.as_ptr()).fd;
            let flags = libc::fcntl(descriptor, libc::F_GETFL);
            libc::fcntl(descriptor, libc::F_SETFL, flags | libc::O_NONBLOCK);
        }
        Ok(EventChannel { channel, device: device.clone() })
    }

    pub fn descriptor(&self) -> i32 {
        // SAFETY: the channel is alive.
        unsafe { (*self.channel.as_ptr()).fd }
    }

    /// Takes the events that there are; they only said that polling is worth while.
    pub fn drain(&self) {
        let (mut queue, mut context) = (std::ptr::null_mut(), std::ptr::null_mut());
        // SAFETY: reading does not wait; each event is acknowledged at once, since destroying its queue
        // waits for that.
        unsafe {
            while (self.device.library().ibv_get_cq_event)(self.channel.as_ptr(), &mut queue, &mut context)
                == 0
            {
                (self.device.library().ibv_ack_cq_events)(queue, 1);
            }
        }
    }
}

impl Drop for EventChannel {
    fn drop(&mut self) {
        // SAFETY: its completion queues are destroyed before.
        unsafe { (self.device.library().ibv_destroy_comp_channel)(self.channel.as_ptr()) };
    }
}
