//! What the device reports: completions, failures, and how long a failed queue pair may take.

use super::codes::{sender, status};
use super::{At, Engine, FLUSH_PATIENCE, Pair, PairSlot, Shared, Slot, TAKEN};
use crate::bindings::*;
use crate::device::{CompletionQueue, Device, EventChannel, path};
use crate::region::HEADER;
use offpath_fabric::runtime::{Clock, WallClock};
use offpath_fabric::*;
use offpath_quantity::Time;

impl Engine {
    /// Takes completions, and gives up on devices that do not flush. Says whether there was anything.
    #[inline]
    pub fn turn(&mut self, clock: &WallClock) -> bool {
        let mut any = false;
        for queue in 0..self.queues.len() {
            loop {
                let count = self.queues[queue].poll(&mut self.taken[..]);
                any |= count > 0;
                for index in 0..count {
                    let ibv_wc { wr_id: identifier, status: code, .. } = self.taken[index];
                    if code != IBV_WC_SUCCESS || identifier >> 62 != 0 || !self.sent(identifier) {
                        let work = self.taken[index];
                        self.complete(&work, clock);
                    }
                }
                if count < TAKEN {
                    break;
                }
            }
        }
        if !self.failing.is_empty() {
            any |= self.give_up(clock.now());
        }
        any
    }

    /// Destroys the failed queue pairs that the device does not flush; says whether there was one.
    pub(super) fn give_up(&mut self, now: Time) -> bool {
        let mut any = false;
        self.failing = std::mem::take(&mut self.failing)
            .into_iter()
            .filter(|pair_slot| {
                let Some(pair) = self.pair_slots[*pair_slot].pair.as_mut() else { return false };
                if !pair.is_settled() && pair.flushed_at.is_some_and(|at| now > at + FLUSH_PATIENCE) {
                    pair.destroy(&self.completions);
                    any = true;
                }
                !pair.is_settled()
            })
            .collect();
        any
    }

    /// Ends a request that succeeded, where nothing needs a second look; says whether it did.
    #[inline]
    pub(super) fn sent(&mut self, identifier: u64) -> bool {
        let at = At::of(identifier);
        let Some(pair_slot) =
            self.pair_slots.get_mut(at.pair_slot).filter(|pair_slot| pair_slot.generation == at.generation)
        else {
            return false;
        };
        let Some(pair) = pair_slot.pair.as_mut().filter(|pair| pair.state == QueuePairState::Ready) else {
            return false;
        };
        let queue = &mut pair.sends;
        let Some(before) = queue.before(identifier as u32) else { return false };
        // What is held back has its turn only once all that the device has is done.
        if queue.slots.get(before + 1).is_some_and(Slot::is_held) {
            return false;
        }
        for _ in 0..=before {
            // Requests end in order, so one that reports covers the silent ones before it.
            if let Some(slot) = queue.pop() {
                slot.end(&self.completions, Status::Success);
            }
        }
        true
    }

    /// When the next failed queue pair is given up on.
    pub fn deadline(&self) -> Option<Time> {
        let pairs = self.failing.iter().filter_map(|pair_slot| self.pair_slots[*pair_slot].pair.as_ref());
        pairs.filter_map(|pair| pair.flushed_at).map(|at| at + FLUSH_PATIENCE + Time::from_us(1)).min()
    }

    /// Arms the completion queues where completions are waited for by events; says whether so.
    pub fn arm(&self) -> bool {
        if self.channel.is_some() {
            self.queues.iter().for_each(CompletionQueue::arm);
        }
        self.channel.is_some()
    }

    /// What has something to read when the device has something to say.
    pub fn descriptors(&self) -> Vec<i32> {
        let channel = self.channel.iter().map(EventChannel::descriptor);
        channel.chain([self.device.event_descriptor()]).collect()
    }

    /// Reads what the descriptors have.
    pub fn take_events(&mut self, clock: &WallClock) {
        if let Some(channel) = &self.channel {
            channel.drain();
        }
        while let Some((kind, element)) = self.device.next_event() {
            let about = |pair: &Pair| match kind {
                IBV_EVENT_QP_FATAL | IBV_EVENT_QP_REQ_ERR | IBV_EVENT_QP_ACCESS_ERR => {
                    pair.raw.as_ref().is_some_and(|raw| raw.raw.as_ptr() as usize == element)
                }
                IBV_EVENT_DEVICE_FATAL => true,
                _ => false,
            };
            let pair_slots = self.pair_slots.iter().enumerate();
            let hit: Vec<_> =
                pair_slots.filter(|(_, s)| s.pair.as_ref().is_some_and(about)).map(|(at, _)| at).collect();
            hit.into_iter().for_each(|pair_slot| self.fail(pair_slot, clock.now()));
        }
    }

    pub(super) fn complete(&mut self, work: &ibv_wc, clock: &WallClock) {
        let (number, at) = (work.wr_id as u32, At::of(work.wr_id));
        let status = status(work.status);
        if work.wr_id >> 62 == 2 {
            return self.complete_shared(work, number, at.pair_slot, status, clock);
        }
        let (device, completions) = (self.device.clone(), self.completions.clone());
        // What is left of a queue pair that is gone was ended when it went.
        let Some(pair) = self.pair(at) else { return };
        let send = work.wr_id >> 62 == 0;
        let queue = if send { &mut pair.sends } else { &mut pair.receives };
        let Some(before) = queue.before(number) else { return };
        for _ in 0..before {
            if let Some(slot) = queue.pop() {
                slot.end(&completions, Status::Success);
            }
        }
        let Some(slot) = queue.pop() else { return };
        if send || status != Status::Success {
            slot.end(&completions, status);
        } else {
            let header =
                pair.headers.as_ref().map(|headers| headers.header(number % pair.options.receive_depth));
            slot.end_as(&completions, received(&device, work, header));
        }
        let held = pair.sends.slots.front().is_some_and(Slot::is_held);
        if pair.state == QueuePairState::Error {
            pair.flushed_at = Some(clock.now());
            pair.settle(&completions);
        } else if status != Status::Success || held {
            self.fail(at.pair_slot, clock.now());
        }
    }

    pub(super) fn complete_shared(
        &mut self,
        work: &ibv_wc,
        number: u32,
        place: usize,
        status: Status,
        clock: &WallClock,
    ) {
        let slot = self.shared.get_mut(place).and_then(Option::as_mut).and_then(|s| s.slots.remove(&number));
        let Some(slot) = slot else { return };
        if status == Status::Success {
            let source = Some(self.device.address(work.qp_num));
            slot.end_as(&self.completions, Completion { source, ..received(&self.device, work, None) });
            return;
        }
        slot.end(&self.completions, status);
        let hit =
            |pair_slot: &PairSlot| pair_slot.pair.as_ref().is_some_and(|pair| pair.number == work.qp_num);
        if let Some(pair_slot) = self.pair_slots.iter().position(hit) {
            self.fail(pair_slot, clock.now());
        }
    }

    /// Puts a queue pair into the error state, here and on the device.
    pub(super) fn fail(&mut self, pair_slot: usize, now: Time) {
        let Some(pair) = self.pair_slots[pair_slot].pair.as_mut() else { return };
        if pair.state == QueuePairState::Error {
            return;
        }
        pair.state = QueuePairState::Error;
        pair.flushed_at = Some(now);
        if let Some(raw) = &pair.raw {
            let attributes = ibv_qp_attr { qp_state: IBV_QPS_ERR, ..zeroed() };
            // SAFETY: the queue pair is alive. Where the device refuses, it is destroyed when it does not
            // flush in time.
            let _ = unsafe { self.device.modify(raw.raw, attributes, IBV_QP_STATE) };
        }
        pair.settle(&self.completions);
        if !pair.is_settled() {
            self.failing.push(pair_slot);
        }
    }

    /// Closes a queue pair.
    pub(super) fn close(&mut self, at: At, clock: &WallClock) {
        if self.pair(at).is_none() {
            return;
        }
        // What has been done is told before the rest is flushed.
        self.turn(clock);
        let pair_slot = &mut self.pair_slots[at.pair_slot];
        pair_slot.generation = pair_slot.generation.wrapping_add(1) & 0x3fff;
        if let Some(mut pair) = pair_slot.pair.take() {
            pair.destroy(&self.completions);
            if pair.link.is_none() {
                self.queues[pair.queue].room += Pair::entries(&pair.options);
            }
            self.free.push(at.pair_slot);
        }
    }

    pub fn close_all_of(&mut self, role: usize, clock: &WallClock) {
        let pair_slots = self.pair_slots.iter().enumerate();
        let own: Vec<_> = pair_slots
            .filter(|(_, s)| s.pair.as_ref().is_some_and(|pair| pair.role == role))
            .map(|(pair_slot, s)| At { pair_slot, generation: s.generation })
            .collect();
        own.into_iter().for_each(|at| self.close(at, clock));
        for place in &mut self.shared {
            if place.as_ref().is_some_and(|shared| shared.role == role)
                && let Some(Shared { raw, slots, .. }) = place.take()
            {
                // Its queue pairs are gone, so this was the last that kept it.
                drop(raw);
                slots.into_values().for_each(|slot| slot.end(&self.completions, Status::Flushed));
            }
        }
    }
}

/// The completion of a receive that a message filled.
fn received(device: &Device, work: &ibv_wc, header: Option<[u8; HEADER as usize]>) -> Completion {
    let opcode = match work.opcode {
        IBV_WC_RECV_RDMA_WITH_IMM => Opcode::ReceiveWriteImmediate,
        _ => Opcode::Receive,
    };
    let before = if header.is_some() { u64::from(HEADER) } else { 0 };
    let bytes = u64::from(work.byte_len).saturating_sub(before);
    let immediate = (work.wc_flags & IBV_WC_WITH_IMM != 0).then(|| u32::from_be(work.imm_data));
    let source = header.map(|header| {
        let gid = if work.wc_flags & IBV_WC_GRH != 0 { sender(&header) } else { [0; 16] };
        let lid = if device.lid() == 0 { 0 } else { work.slid };
        Address { path: path(gid, lid), ..device.address(work.src_qp) }
    });
    Completion { immediate, source, ..Completion::new(opcode, Status::Success, bytes) }
}
