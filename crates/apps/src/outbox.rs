//! Buffers of messages that are sent without waiting for each.

use offpath_fabric::{Access, Address, Fabric, PostError, QueuePair, Region, RegionError, WorkRequest};
use offpath_quantity::Time;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

/// Every so many messages one asks for a completion, which frees the slots of all before it.
const SIGNALED_EVERY: u64 = 64;
/// Slots of an outbox: several completions' worth, so that a sender seldom waits.
pub(crate) const SLOTS: u64 = 256;

/// A ring of message buffers of one queue pair.
pub(crate) struct Outbox<F: Fabric> {
    fabric: F,
    queue_pair: F::QueuePair,
    region: F::Region,
    slot_bytes: u64,
    sent: Cell<u64>,
    /// Messages that are known to have left.
    left: Cell<u64>,
    signals: RefCell<VecDeque<(u64, F::CompletionFuture)>>,
}

impl<F: Fabric> Outbox<F> {
    /// An outbox of [`SLOTS`] messages of at most `slot_bytes`. The send queue must be deeper than
    /// that.
    pub(crate) fn new(
        fabric: &F,
        memory: &str,
        queue_pair: F::QueuePair,
        slot_bytes: u64,
    ) -> Result<Outbox<F>, RegionError> {
        let region = fabric.register(memory, SLOTS * slot_bytes, Access::LOCAL_WRITE)?;
        Ok(Outbox {
            fabric: fabric.clone(),
            queue_pair,
            region,
            slot_bytes,
            sent: Cell::new(0),
            left: Cell::new(0),
            signals: RefCell::default(),
        })
    }

    /// Sends `bytes`, to `to` where the queue pair is UD.
    pub(crate) async fn send(&self, bytes: &[u8], to: Option<Address>) -> Result<(), PostError> {
        let number = self.sent.get();
        self.sent.set(number + 1);
        while number >= self.left.get() + SLOTS {
            let next = self.signals.borrow_mut().pop_front();
            match next {
                Some((upto, completion)) => {
                    // A failed send has left too: its buffer is the application's again.
                    let _ = completion.await;
                    self.left.set(self.left.get().max(upto));
                }
                // Another task waits for the one signal there is.
                None => self.fabric.sleep(Time::from_us(1)).await,
            }
        }
        let at = number % SLOTS * self.slot_bytes;
        self.region.write(at, bytes)?;
        let local = self.region.slice(at, bytes.len() as u64);
        let request = match to {
            Some(to) => WorkRequest::send_to(local, to),
            None => WorkRequest::send(local),
        };
        if number % SIGNALED_EVERY == SIGNALED_EVERY - 1 {
            let completion = self.queue_pair.post(request)?;
            self.signals.borrow_mut().push_back((number + 1, completion));
        } else {
            // The slot is the fabric's until a later completion; nobody asks for its result.
            drop(self.queue_pair.post(request.unsignaled())?);
        }
        Ok(())
    }
}
