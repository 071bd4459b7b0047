//! Receives that several queue pairs share.

use super::post::{receive_slice, refused};
use super::{Place, Queue, RawShared, Shared, Slot, identifier};
use crate::bindings::*;
use crate::completion::VerbsCompletion;
use crate::region::VerbsRegion;
use crate::{Core, VerbsFabric};
use offpath_fabric::*;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Receives that several connections share: whichever a message comes on takes the next. It lasts until
/// its role ends.
#[derive(Clone)]
pub struct VerbsSharedReceiveQueue {
    core: Rc<Core>,
    place: usize,
    role: usize,
}

pub(crate) fn create_shared(
    fabric: &VerbsFabric,
    depth: u32,
) -> Result<VerbsSharedReceiveQueue, Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let refuse =
        |feature: String| fabric.unsupported(&feature, "ask for less, or use each queue pair's own receives");
    let bound = u32::try_from(core.device.attributes.max_srq_wr).unwrap_or(0).min(core.device.depth_max);
    if depth > bound {
        return Err(refuse(format!("a shared receive queue of {depth} (at most {bound})")));
    }
    let raw = core.device.create_shared(depth.max(1));
    let raw = raw.map_err(|reason| refuse(format!("a shared receive queue of {depth} ({reason})")))?;
    let raw = Rc::new(RawShared { raw, device: core.device.clone() });
    let mut engine = core.engine.borrow_mut();
    engine.shared.push(Some(Shared { raw, role, depth, slots: BTreeMap::new(), next: 0 }));
    Ok(VerbsSharedReceiveQueue { core: core.clone(), place: engine.shared.len() - 1, role })
}

impl VerbsSharedReceiveQueue {
    pub(super) fn raw(&self) -> Option<Rc<RawShared>> {
        let engine = self.core.engine.borrow();
        let shared = engine.shared.get(self.place)?.as_ref()?;
        (shared.role == self.role).then(|| shared.raw.clone())
    }

    /// Posts a receive for one message of any of the connections. Its completion names in `source` the
    /// queue pair of this end that took it.
    pub fn receive(&self, into: Slice<VerbsRegion>) -> Result<VerbsCompletion, PostError> {
        let mut engine = self.core.engine.borrow_mut();
        let Some(shared) = engine.shared.get_mut(self.place).and_then(Option::as_mut) else {
            return Err(PostError::State { state: QueuePairState::Closed });
        };
        if shared.slots.len() >= shared.depth as usize {
            return Err(PostError::ReceiveQueueFull { depth: shared.depth });
        }
        let mut slice = receive_slice(&into);
        let number = shared.next;
        let mut work = ibv_recv_wr {
            wr_id: identifier(Queue::Shared, 0, self.place, number),
            next: std::ptr::null_mut(),
            sg_list: &mut slice,
            num_sge: i32::from(into.length > 0),
        };
        // SAFETY: the queue is alive, the request lives until the call returns, and the region is kept in
        // the slot made below.
        unsafe {
            let mut bad = std::ptr::null_mut();
            let raw = shared.raw.raw;
            let post = (*(*raw.as_ptr()).context).ops.post_srq_recv;
            let result = post.map_or(libc::ENOSYS, |post| post(raw.as_ptr(), &mut work, &mut bad));
            if result != 0 {
                let reason = std::io::Error::from_raw_os_error(result.abs()).to_string();
                return Err(refused("posting a shared receive", &reason));
            }
        }
        shared.next = shared.next.wrapping_add(1);
        let (completer, completion) = self.core.completions.make(&self.core);
        let (opcode, bytes) = (Opcode::Receive, into.length);
        shared.slots.insert(
            number,
            Slot {
                waiting: Some((completer, into.region)),
                opcode,
                bytes,
                signaled: true,
                place: Place::Posted,
            },
        );
        Ok(completion)
    }

    /// How many receives it holds.
    pub fn depth(&self) -> u32 {
        let engine = self.core.engine.borrow();
        engine.shared.get(self.place).and_then(Option::as_ref).map_or(0, |shared| shared.depth)
    }
}
