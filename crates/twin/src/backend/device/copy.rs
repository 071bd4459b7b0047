//! Copies by engines of the card.

use super::super::memory::{self, TwinRegion};
use super::super::subject::{Subject, Tagged};
use super::super::{Core, Plan, TwinFabric};
use super::Device;
use super::begin::{READ_MARKS, observed_step};
use crate::engine::{Handle, Start};
use offpath_fabric::runtime::{ArenaSlot, KeptHandle};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::{Mark, Posting, Verb};

/// A copy by an engine of the card.
pub(super) struct Copy {
    role: usize,
    from: Option<(TwinRegion, u64)>,
    to: Option<(TwinRegion, u64)>,
    length: u64,
    reader: Option<u64>,
    start: Time,
    end: Time,
    status: Status,
    completer: Completer,
    handle: Option<Handle>,
}

impl Device {
    /// Ends the copies that roles began which are meant.
    pub(super) fn end_copies_of(&mut self, core: &Core, is_meant: impl Fn(usize) -> bool) {
        let copies: Vec<_> = self.copies.keys().collect();
        for key in copies {
            if self.copies.get(key).is_some_and(|copy| is_meant(copy.role))
                && let Some(copy) = self.copies.remove(key)
            {
                if let Some(handle) = copy.handle {
                    core.engine.borrow_mut().kill(handle);
                }
                if let (Some((from, _)), Some(reader)) = (&copy.from, copy.reader) {
                    from.end_reading(reader);
                }
            }
        }
    }

    pub(in crate::backend) fn copy_marked(&mut self, key: ArenaSlot, mark: Mark, at: Time) {
        let Some(copy) = self.copies.get_mut(key) else { return };
        match mark {
            Mark::SourceStart => {
                copy.start = at;
                copy.reader = copy.from.as_ref().map(|(region, _)| region.begin_reading());
            }
            Mark::SourceEnd => copy.end = at,
            _ => {}
        }
    }

    pub(in crate::backend) fn copy_done(&mut self, core: &Core, key: ArenaSlot) {
        let Some(copy) = self.copies.remove(key) else { return };
        let bytes = if copy.status == Status::Success { copy.length } else { 0 };
        if let (Some((from, offset)), Some((to, to_offset))) = (&copy.from, &copy.to) {
            let moved = from.take(*offset, copy.length, copy.start, copy.end);
            // A target that was deregistered meanwhile has nobody to look at it.
            let _ = to.put(*to_offset, &moved);
        }
        if let (Some((from, _)), Some(reader)) = (&copy.from, copy.reader) {
            from.end_reading(reader);
        }
        core.trace(copy.role, || format!("copied {bytes} B"));
        copy.completer.complete(Completion::new(Opcode::DmaCopy, copy.status, bytes));
    }
}

/// Has an engine of the card copy bytes between two roles of one machine.
pub(in crate::backend) fn copy(
    fabric: &TwinFabric,
    engine: &str,
    from: MemoryAt<TwinRegion>,
    to: MemoryAt<TwinRegion>,
    length: u64,
) -> Result<CompletionFuture, Unsupported> {
    let (core, role) = (&fabric.core, fabric.role);
    let (verb, remote) = match (&from, &to) {
        (MemoryAt::Remote(remote), MemoryAt::Local { .. }) => (Verb::Read, *remote),
        (MemoryAt::Local { .. }, MemoryAt::Remote(remote)) => (Verb::Write, *remote),
        _ => {
            let feature = "a copy whose ends are both local or both remote";
            return Err(TwinFabric::unsupported(feature, "name one local and one remote end"));
        }
    };
    let there = remote.region.endpoint.0 as usize;
    let mut status = Status::Success;
    let place = |at: &MemoryAt<TwinRegion>, local: Access, right: Access| match at {
        MemoryAt::Local { region, offset } => {
            let registration = region.registration();
            let good = registration.serves(registration.role, *offset, length, local);
            if good { Ok((region.clone(), *offset)) } else { Err(Status::LocalProtection) }
        }
        MemoryAt::Remote(at) => memory::resolve(core, there, at, length, right),
    };
    let (mut source, mut target) = (None, None);
    if length > 0 {
        match place(&from, Access::READ_ONLY, Access::REMOTE_READ) {
            Ok(found) => source = Some(found),
            Err(why) => status = why,
        }
        match place(&to, Access::LOCAL_WRITE, Access::REMOTE_WRITE) {
            Ok(found) => target = Some(found),
            Err(why) => status = why,
        }
    }
    let other = core.roles.get(there).filter(|other| other.machine == core.roles[role].machine);
    let Some(other) = other else {
        return Err(TwinFabric::unsupported("a copy between machines", "use READ or WRITE"));
    };
    let planned = core.plan(Plan {
        verb,
        from: core.roles[role].place,
        to: other.place,
        engine: Some(engine.to_string()),
        payload: if status == Status::Success { length } else { 0 },
        posting: Posting::Single,
        access: offpath_route::AddressSpread::UNIFORM,
        signaled: true,
    });
    let planned = planned.map_err(|why| {
        TwinFabric::unsupported(&format!("this copy by `{engine}` ({why})"), "use READ or WRITE")
    })?;
    if status != Status::Success {
        (source, target) = (None, None);
    }
    core.observer.add_route(fabric.label, &planned, core);
    let plain = (Posting::Single, offpath_route::AddressSpread::UNIFORM);
    core.observer.did(fabric.label, || observed_step(&planned, plain, true, false, Some(&remote)));
    let (completer, completion) = completion_future();
    let copy = Copy {
        role,
        from: source,
        to: target,
        length,
        reader: None,
        start: Time::ZERO,
        end: Time::ZERO,
        status,
        completer,
        handle: None,
    };
    let mut device = core.device.borrow_mut();
    let key = device.copies.insert(copy);
    let at = core.executor.charge(core.now(), planned.route.post_time());
    let start = Start { at, is_posted: false, marks: READ_MARKS, retransmission: None };
    let instances = core.instances(role, there);
    let tag = key.tag(Subject::Copy);
    let handle = core.engine.borrow_mut().start_as(tag, planned.route.clone(), instances, start);
    if let Some(copy) = device.copies.get_mut(key) {
        copy.handle = Some(handle);
    }
    Ok(completion)
}
