//! How queue pairs are made, connected and kept.

use super::codes::{Parameters, not_ready_code, timeout_code};
use super::shared::VerbsSharedReceiveQueue;
use super::{
    At, Engine, Handle, Outstanding, PAIR_SLOTS_LAST, Pair, PairSlot, QUEUE_ENTRIES, Raw, RawShared, Terms,
    VerbsQueuePair,
};
use crate::VerbsFabric;
use crate::bindings::*;
use crate::device::{CompletionQueue, QUEUE_KEY, path};
use crate::direct::Link;
use crate::manager::{Agreed, Connection};
use crate::region::Scratch;
use offpath_fabric::runtime::check_options;
use offpath_fabric::*;
use std::cell::Cell;
use std::rc::Rc;

impl Engine {
    /// A completion queue with room for a queue pair.
    pub(super) fn queue_with_room(&mut self, entries: u32) -> Result<usize, String> {
        if let Some(queue) = self.queues.iter().position(|queue| queue.room >= entries) {
            return Ok(queue);
        }
        let most = u32::try_from(self.device.attributes.max_cqe).unwrap_or(u32::MAX);
        let size = QUEUE_ENTRIES.min(most).max(entries);
        self.queues.push(CompletionQueue::new(&self.device, size, self.channel.as_ref())?);
        Ok(self.queues.len() - 1)
    }

    pub(super) fn create(
        &mut self,
        role: usize,
        options: QueuePairOptions,
        shared: Option<Rc<RawShared>>,
        by_hand: bool,
    ) -> Result<(At, u32, Option<Rc<Link>>), String> {
        if self.free.is_empty() && self.pair_slots.len() > PAIR_SLOTS_LAST {
            return Err(format!("{} queue pairs are open", self.pair_slots.len()));
        }
        let entries = Pair::entries(&options);
        let link = if by_hand {
            // A device rounds depths up, and the queue holds what it then may report.
            let most = u32::try_from(self.device.attributes.max_cqe).unwrap_or(u32::MAX);
            let queue = CompletionQueue::new(&self.device, (2 * entries).min(most).max(entries), None)?;
            Some(Rc::new(Link { raw: Cell::new(None), queue }))
        } else {
            None
        };
        let queue = if by_hand { 0 } else { self.queue_with_room(entries)? };
        let ud = options.kind == QueuePairType::Ud;
        let capacity = ibv_qp_cap {
            // One more, for a marker.
            max_send_wr: options.send_depth + 1,
            max_recv_wr: if shared.is_some() { 0 } else { options.receive_depth.max(1) },
            max_send_sge: 1,
            max_recv_sge: if ud { 2 } else { 1 },
            max_inline_data: options.inline_max,
        };
        let kind = if ud { IBV_QPT_UD } else { IBV_QPT_RC };
        let on = shared.as_ref().map(|shared| shared.raw);
        let completions = link.as_ref().map_or_else(|| self.queues[queue].queue, |link| link.queue.queue);
        let raw = self.device.create_queue_pair(kind, completions, capacity, on)?;
        let raw = Raw { raw, device: self.device.clone() };
        // SAFETY: just made.
        let number = unsafe { (*raw.raw.as_ptr()).qp_num };
        self.initialise(&raw, ud)?;
        let headers = if ud {
            Some(Scratch::new(&self.device, options.receive_depth).map_err(|e| e.to_string())?)
        } else {
            None
        };
        let state = if ud { QueuePairState::Ready } else { QueuePairState::Initialised };
        let pair = Pair {
            raw: Some(raw),
            headers,
            shared,
            link: link.clone(),
            role,
            options,
            state,
            number,
            queue,
            sends: Outstanding::default(),
            receives: Outstanding::default(),
            flushed_at: None,
            connection: None,
            gone: false,
        };
        if let (Some(link), Some(raw)) = (&link, &pair.raw) {
            link.raw.set(Some(raw.raw));
        } else {
            self.queues[queue].room -= entries;
        }
        let pair_slot = self.free.pop().unwrap_or_else(|| {
            self.pair_slots.push(PairSlot::default());
            self.pair_slots.len() - 1
        });
        self.pair_slots[pair_slot].pair = Some(pair);
        Ok((At { pair_slot, generation: self.pair_slots[pair_slot].generation }, number, link))
    }

    /// Lets a fresh queue pair take receives; a UD one is then ready.
    pub(super) fn initialise(&self, raw: &Raw, ud: bool) -> Result<(), String> {
        let device = &self.device;
        let rights = IBV_ACCESS_LOCAL_WRITE
            | IBV_ACCESS_REMOTE_READ
            | IBV_ACCESS_REMOTE_WRITE
            | if device.attributes.atomic_cap > 0 { IBV_ACCESS_REMOTE_ATOMIC } else { 0 };
        let attributes = ibv_qp_attr {
            qp_state: IBV_QPS_INIT,
            port_num: device.port,
            qkey: QUEUE_KEY,
            qp_access_flags: rights as u32,
            ..zeroed()
        };
        let own = if ud { IBV_QP_QKEY } else { IBV_QP_ACCESS_FLAGS };
        // SAFETY: the queue pair is alive.
        let change = |attributes, mask| unsafe { device.modify(raw.raw, attributes, mask) };
        change(attributes, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | own)?;
        if ud {
            change(ibv_qp_attr { qp_state: IBV_QPS_RTR, ..zeroed() }, IBV_QP_STATE)?;
            let attributes = ibv_qp_attr { qp_state: IBV_QPS_RTS, ..zeroed() };
            change(attributes, IBV_QP_STATE | IBV_QP_SQ_PSN)?;
        }
        Ok(())
    }

    /// What a peer needs to know of a queue pair whose first packet will have this number.
    pub fn parameters(&mut self, at: At, first_packet: u32) -> Option<Parameters> {
        let device = self.device.clone();
        let pair = self.pair(at)?;
        Some(Parameters {
            queue_pair: pair.number,
            first_packet: first_packet & 0xff_ffff,
            path: path(device.gid, device.lid()),
            mtu: device.port_attributes.active_mtu as u8,
            reads: device.reads_answered(),
            receiver_not_ready: not_ready_code(pair.options.receiver_not_ready_delay),
        })
    }

    /// Connects a queue pair to a peer's, as both parameters say or, for what the connection
    /// manager agreed on, as that says.
    pub fn connect(
        &mut self,
        at: At,
        own: Parameters,
        peer: Parameters,
        managed: Option<&Agreed>,
    ) -> Result<(), String> {
        let device = self.device.clone();
        let floor = self.acknowledgement_floor;
        let pair = self.pair(at).ok_or("the queue pair was closed meanwhile")?;
        let raw = pair.raw.as_ref().ok_or("the queue pair was closed meanwhile")?;
        let (path, attributes_set) = managed.map(|agreed| agreed.receiving).unwrap_or_else(|| {
            let attributes = ibv_qp_attr {
                path_mtu: u32::from(own.mtu.min(peer.mtu).max(1)),
                dest_qp_num: peer.queue_pair,
                rq_psn: peer.first_packet,
                ah_attr: device.route(&peer.path),
                ..zeroed()
            };
            (attributes, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN)
        });
        let receiving = ibv_qp_attr {
            qp_state: IBV_QPS_RTR,
            max_dest_rd_atomic: own.reads,
            min_rnr_timer: peer.receiver_not_ready & 31,
            ..path
        };
        let mask = attributes_set | IBV_QP_STATE | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
        // SAFETY: the queue pair is alive.
        unsafe { device.modify(raw.raw, receiving, mask) }?;
        let exchanged = (ibv_qp_attr { sq_psn: own.first_packet, ..zeroed() }, IBV_QP_SQ_PSN);
        let (path, attributes_set) = managed.map_or(exchanged, |agreed| agreed.sending);
        let sending = ibv_qp_attr {
            qp_state: IBV_QPS_RTS,
            timeout: timeout_code(pair.options.acknowledgement_timeout.max(floor)),
            retry_cnt: pair.options.retries.min(device.retries_max()),
            rnr_retry: pair.options.receiver_not_ready_retries.min(7),
            max_rd_atomic: device.reads_started().min(peer.reads),
            ..path
        };
        let mask = attributes_set
            | IBV_QP_STATE
            | IBV_QP_TIMEOUT
            | IBV_QP_RETRY_CNT
            | IBV_QP_RNR_RETRY
            | IBV_QP_MAX_QP_RD_ATOMIC;
        // SAFETY: the queue pair is alive.
        unsafe { device.modify(raw.raw, sending, mask) }?;
        pair.state = QueuePairState::Ready;
        Ok(())
    }

    /// Keeps the connection of a queue pair that it connected, so that the peer is told when it goes.
    pub fn keep(&mut self, at: At, connection: Connection) {
        if let Some(pair) = self.pair(at) {
            connection.belongs_to(at);
            pair.connection = Some(connection);
        }
    }

    /// The connection manager said that the peer left. As in every backend, it is a request that learns it;
    /// those in flight end as the device says.
    pub fn peer_gone(&mut self, at: At) {
        if let Some(pair) = self.pair(at) {
            pair.gone = true;
        }
    }
}

pub(crate) fn create(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
    shared: Option<&VerbsSharedReceiveQueue>,
) -> Result<VerbsQueuePair, Unsupported> {
    Ok(make(fabric, options, shared, false)?.0)
}

/// A queue pair for requests by hand.
pub(crate) fn create_direct(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
) -> Result<(VerbsQueuePair, Rc<Link>), Unsupported> {
    let (pair, link) = make(fabric, options, None, true)?;
    let missing = || fabric.unsupported("requests by hand", "use `create_queue_pair`");
    Ok((pair, link.ok_or_else(missing)?))
}

fn make(
    fabric: &VerbsFabric,
    options: QueuePairOptions,
    shared: Option<&VerbsSharedReceiveQueue>,
    by_hand: bool,
) -> Result<(VerbsQueuePair, Option<Rc<Link>>), Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let can = core.backend.supports();
    let refuse = |feature: &str, next_step: &str| Err(fabric.unsupported(feature, next_step));
    if core.roles[role].ended.get() {
        return refuse("a queue pair for a role that ended", "make it before");
    }
    if options.kind == QueuePairType::Ud && !can.ud {
        return refuse("UD queue pairs", "use an RC queue pair, or another device");
    }
    if options.kind == QueuePairType::Ud && shared.is_some() {
        return refuse("UD queue pairs on a shared receive queue", "use an RC queue pair");
    }
    check_options(&options, &can)?;
    let shared = match shared {
        Some(shared) => Some(shared.raw().ok_or_else(|| {
            fabric.unsupported("a shared receive queue of a role that ended", "make another")
        })?),
        None => None,
    };
    let made = core.engine.borrow_mut().create(role, options, shared, by_hand);
    let (at, number, link) = made.map_err(|reason| {
        fabric.unsupported(
            &format!("a queue pair like this ({reason})"),
            "ask for less depth or inline payload",
        )
    })?;
    let message_max = match options.kind {
        QueuePairType::Rc => u64::from(core.device.port_attributes.max_msg_sz),
        QueuePairType::Ud => core.device.mtu(),
    };
    let QueuePairOptions { kind, inline_max, signal_all, .. } = options;
    let terms = Terms { kind, inline_max, signal_all, message_max };
    Ok((VerbsQueuePair(Rc::new(Handle { core: core.clone(), at, number, options, terms })), link))
}
