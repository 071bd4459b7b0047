//! The event engine: operations on their way through the stations, in virtual time.
//!
//! It knows routes, not applications: whoever starts an operation gives it a tag and is told, in
//! order of time, of the marks that it asked for and of the end. Ties are broken by the order in
//! which events were scheduled, so a run is a function of its seed.

use crate::fault::{Crossing, Fault, Faults};
use crate::queue::EventQueue;
use crate::seed::{Generator, Seed};
use crate::window::Snapshot;
use offpath_fabric::runtime::{Arena, ArenaSlot};
use offpath_quantity::Time;
use offpath_route::{
    Advance, Cursor, Mark, Marked, Route, Router, SlotCalendars, StationId, Stations, Visit,
};
use rand_core::RngCore;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// An operation or timer in the engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tag(pub u64);

/// What the engine tells whoever drives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occurrence {
    /// The moment of a mark is known. It is told as soon as it is, which may be before it comes.
    Marked {
        /// The operation.
        tag: Tag,
        /// The mark.
        mark: Mark,
        /// When it comes, or came.
        at: Time,
    },
    /// A fault made a second copy of a datagram.
    Duplicated {
        /// The operation.
        tag: Tag,
        /// When the copy arrives.
        at: Time,
    },
    /// An operation is over.
    Done {
        /// The operation.
        tag: Tag,
    },
    /// An operation will never be over by itself.
    Failed {
        /// The operation.
        tag: Tag,
        /// Why.
        why: OperationFailure,
    },
    /// A timer has come.
    Timer {
        /// The timer.
        tag: Tag,
    },
}

/// Why an operation ended without success.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OperationFailure {
    /// A reliable connection retransmitted it as often as it may, and no answer came.
    RetryExceeded,
    /// A datagram was lost; nobody is told in reality.
    Lost,
    /// A datagram arrived with a wrong check sum and was dropped by the receiver.
    Corrupted,
}

/// How a reliable connection answers a loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retransmission {
    /// Time without an answer after which a request is retransmitted.
    pub timeout: Time,
    /// How often it is retransmitted before the connection fails.
    pub retries: u32,
}

impl Default for Retransmission {
    /// 67 us (a local acknowledgement timeout of 14 is 67 ms; drivers on a rack use far less) and
    /// 7 retries, the most that a queue pair takes.
    fn default() -> Retransmission {
        Retransmission { timeout: Time::from_us(67), retries: 7 }
    }
}

/// The marks that a driver wants to be told of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u8);

impl Marks {
    /// None.
    pub const NONE: Marks = Marks(0);
    /// All.
    pub const ALL: Marks = Marks(u8::MAX);

    /// Those named.
    pub const fn of(marks: &[Mark]) -> Marks {
        let (mut bits, mut index) = (0, 0);
        while index < marks.len() {
            bits |= 1 << marks[index] as u8;
            index += 1;
        }
        Marks(bits)
    }

    fn includes(self, mark: Mark) -> bool {
        self.0 & 1 << mark as u8 != 0
    }
}

/// How an operation is started.
#[derive(Clone, Copy, Debug)]
pub struct Start {
    /// When; not before now.
    pub at: Time,
    /// Whether it lies posted at the NIC, which retransmits it or held it back: nobody posts it again.
    pub is_posted: bool,
    /// What the driver is told of.
    pub marks: Marks,
    /// How a loss is answered; the engine's own way where it is `None`.
    pub retransmission: Option<Retransmission>,
}

/// Names an operation of the engine, to end it early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Handle(ArenaSlot);

#[derive(Clone, Copy, Debug)]
enum Event {
    Step(ArenaSlot),
    Wake(u32),
    Expire(ArenaSlot),
    Timer(u64),
}

struct Operation {
    tag: Tag,
    route: Arc<Route>,
    instances: Arc<[u32]>,
    cursor: Cursor,
    marks: Marks,
    retransmission: Retransmission,
    retries: u32,
    /// When its request last left the requester's NIC, from where the timeout counts.
    departed: Time,
    /// Marks of effects that happened, so that a repeated request does not repeat them.
    applied: bool,
}

/// An operation that waits for an in-flight slot, and its number in the order of asking.
struct Asked {
    number: u64,
    operation: ArenaSlot,
}

/// Those who wait for an in-flight slot of one pool: a queue for each set of limits within the pool, in the order in
/// which they asked.
#[derive(Default)]
struct Waiting {
    queues: Vec<(SlotCalendars, VecDeque<Asked>)>,
    asked: u64,
    /// When they are woken: at the first release that is known, if any is.
    wake_at: Option<Time>,
}

/// Operations, stations and the queue of events.
pub struct EventEngine {
    router: Arc<Router>,
    stations: Stations,
    queue: EventQueue<Event>,
    operations: Arena<Operation>,
    /// By the pool's calendar, as far as somebody waited for one yet.
    waiting: Vec<Waiting>,
    /// Factors on processor time, by calendar.
    slowed: BTreeMap<usize, f64>,
    draws: Generator,
    faults: Option<Faults>,
    retransmission: Retransmission,
    down: BTreeMap<(usize, u32), ()>,
    events: u64,
    pending: VecDeque<Occurrence>,
}

impl EventEngine {
    /// An engine over the idle stations of `router`'s system.
    pub fn new(router: Arc<Router>, seed: Seed) -> EventEngine {
        let stations = Stations::new(router.stations(), true);
        EventEngine {
            stations,
            queue: EventQueue::new(),
            operations: Arena::default(),
            waiting: Vec::new(),
            slowed: BTreeMap::new(),
            draws: seed.child("stations").generator(),
            faults: None,
            retransmission: Retransmission::default(),
            down: BTreeMap::new(),
            events: 0,
            pending: VecDeque::new(),
            router,
        }
    }

    /// Lets `faults` decide about every crossing between machines.
    pub fn inject(&mut self, faults: Faults) {
        self.faults = Some(faults);
    }

    /// Sets how reliable connections answer a loss.
    pub fn set_retransmission(&mut self, retransmission: Retransmission) {
        self.retransmission = retransmission;
    }

    /// The present moment of virtual time.
    pub fn now(&self) -> Time {
        self.stations.now()
    }

    /// The system's routes.
    pub fn router(&self) -> &Arc<Router> {
        &self.router
    }

    /// Events processed so far.
    pub fn events(&self) -> u64 {
        self.events
    }

    /// Operations that are in flight.
    pub fn in_flight(&self) -> usize {
        self.operations.len()
    }

    /// The stations now.
    pub fn snapshot(&self) -> Snapshot {
        let stations = || (0..self.router.stations().len()).map(|index| StationId(index as u16));
        Snapshot {
            at: self.now(),
            served: stations().map(|station| self.stations.served(station).collect()).collect(),
            parts: stations().map(|station| self.stations.parts_served(station).collect()).collect(),
            served_hot: stations().map(|station| self.stations.served_hot(station)).collect(),
            held: stations().map(|station| self.stations.busy(station)).collect(),
            passed: stations().map(|station| self.stations.passed(station)).collect(),
            granted: stations().map(|station| self.stations.granted(station)).collect(),
            events: self.events,
            in_flight: self.in_flight(),
        }
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.queue.push(at, event);
    }

    /// Starts an operation now. `instances` names the machine instance by machine. With `marks`
    /// the driver is told of its marks, else of its end alone.
    pub fn start(&mut self, tag: Tag, route: Arc<Route>, instances: Arc<[u32]>, marks: bool) -> Handle {
        let marks = if marks { Marks::ALL } else { Marks::NONE };
        let start = Start { at: self.now(), is_posted: false, marks, retransmission: None };
        self.start_as(tag, route, instances, start)
    }

    /// Starts an operation as `start` says.
    pub fn start_as(&mut self, tag: Tag, route: Arc<Route>, instances: Arc<[u32]>, start: Start) -> Handle {
        let departed = start.at.max(self.now());
        let mut cursor = Cursor::new(departed);
        if start.is_posted {
            cursor.resume(departure(&route), departed);
        }
        let retransmission = start.retransmission.unwrap_or(self.retransmission);
        let marks = start.marks;
        let operation = Operation {
            tag,
            route,
            instances,
            cursor,
            marks,
            retransmission,
            retries: 0,
            departed,
            applied: false,
        };
        let key = self.operations.insert(operation);
        self.step(key);
        Handle(key)
    }

    /// Keeps a server of a processor for `time` from now on; the timer `tag` comes when it is over.
    pub fn compute(&mut self, tag: Tag, cpu: StationId, instances: &[u32], time: Time) {
        self.compute_at(tag, cpu, instances, self.now(), time, time);
    }

    /// Keeps a server of a processor for `time` from `at` on, or from when one is free; the timer
    /// `tag` comes `latency` after that.
    pub fn compute_at(
        &mut self,
        tag: Tag,
        cpu: StationId,
        instances: &[u32],
        at: Time,
        time: Time,
        latency: Time,
    ) {
        let slot = self.stations.slot(cpu, instances);
        let draws = &mut self.draws;
        let pick = offpath_route::Pick::Any;
        let at = at.max(self.stations.now());
        let start = self.stations.serve(slot, at, time, pick, &mut || draws.next_u64());
        let latency = self.slowed.get(&slot).map_or(latency, |factor| latency.scaled(*factor));
        self.timer(tag, start + latency);
    }

    /// Asks for the occurrence of the timer `tag` at `at`, or now if that is past.
    pub fn timer(&mut self, tag: Tag, at: Time) {
        let at = at.max(self.now());
        self.schedule(at, Event::Timer(tag.0));
    }

    /// Asks for the same occurrence as [`EventEngine::timer`], for a time limit that is seldom reached.
    /// The next of the earlier limits are dropped as long as `nobody` waits for them.
    pub fn limit(&mut self, tag: Tag, at: Time, nobody: impl Fn(Tag) -> bool) {
        self.queue.discard_late(|event| matches!(event, Event::Timer(tag) if nobody(Tag(*tag))));
        let at = at.max(self.now());
        self.queue.push_late(at, Event::Timer(tag.0));
    }

    /// Takes a machine down or up again: what reaches it meanwhile is lost.
    pub fn set_down(&mut self, machine: usize, instance: u32, down: bool) {
        if down {
            self.down.insert((machine, instance), ());
        } else {
            self.down.remove(&(machine, instance));
        }
    }

    /// Makes a station `factor` times as slow; 1 ends it.
    pub fn slow_down(&mut self, station: StationId, instances: &[u32], factor: f64) {
        let slot = self.stations.slot(station, instances);
        self.stations.slow_down(slot, factor);
        self.slowed.insert(slot, factor);
    }

    /// The moment of the next event, where there is one.
    pub fn next_at(&self) -> Option<Time> {
        if !self.pending.is_empty() {
            return Some(self.now());
        }
        self.queue.next_at()
    }

    fn step(&mut self, key: ArenaSlot) {
        loop {
            let EventEngine { operations, stations, draws, pending, .. } = self;
            let Some(operation) = operations.get_mut(key) else { return };
            let Operation { tag, route, instances, cursor, marks, departed, applied, retries, .. } =
                operation;
            let advance = cursor.advance(
                route,
                stations,
                instances,
                &mut || draws.next_u64(),
                &mut |Marked { mark, at }| {
                    if mark == Mark::Departs {
                        *departed = at;
                    }
                    if !marks.includes(mark) {
                        return;
                    }
                    let effect = matches!(mark, Mark::TargetStart | Mark::TargetEnd | Mark::Delivered);
                    if effect && *applied && *retries > 0 {
                        return;
                    }
                    *applied |= matches!(mark, Mark::TargetEnd | Mark::Delivered);
                    pending.push_back(Occurrence::Marked { tag: *tag, mark, at });
                },
            );
            let tag = *tag;
            self.announce();
            match advance {
                Advance::At(at) => return self.schedule(at, Event::Step(key)),
                Advance::Wait(slots) => return self.queue_at(slots, key),
                Advance::Cross { from, to, at } => {
                    if !self.cross(key, from, to, at) {
                        return;
                    }
                }
                Advance::Done(at) if at > self.now() => return self.schedule(at, Event::Step(key)),
                Advance::Done(_) => {
                    self.operations.discard(key);
                    return self.pending.push_back(Occurrence::Done { tag });
                }
            }
        }
    }

    fn queue_at(&mut self, slots: SlotCalendars, operation: ArenaSlot) {
        let waiting = self.waiting_at(slots.pool());
        waiting.asked += 1;
        let asked = Asked { number: waiting.asked, operation };
        match waiting.queues.iter_mut().find(|(known, _)| *known == slots) {
            Some((_, queue)) => queue.push_back(asked),
            None => waiting.queues.push((slots, VecDeque::from([asked]))),
        }
        self.schedule_wake(slots.pool());
    }

    fn waiting_at(&mut self, pool: usize) -> &mut Waiting {
        if self.waiting.len() <= pool {
            self.waiting.resize_with(pool + 1, Waiting::default);
        }
        &mut self.waiting[pool]
    }

    /// Wakes those who wait at the next release. Where none is known, whoever holds is still moving, and
    /// [`EventEngine::announce`] comes back to it.
    fn schedule_wake(&mut self, pool: usize) {
        let Some(at) = self.stations.next_release(pool) else { return };
        let at = at.max(self.now());
        let waiting = self.waiting_at(pool);
        if waiting.wake_at.is_none_or(|known| at < known) {
            waiting.wake_at = Some(at);
            self.schedule(at, Event::Wake(pool as u32));
        }
    }

    /// Looks again at pools where a release became known: it may come before those that were.
    fn announce(&mut self) {
        while let Some(pool) = self.stations.next_released() {
            self.schedule_wake(pool);
        }
    }

    /// Serves those who wait at a pool of in-flight slots, in order, as long as one of them may have one.
    fn wake(&mut self, pool: usize) {
        let now = self.now();
        let waiting = &mut self.waiting[pool];
        if waiting.wake_at != Some(now) {
            // An earlier release became known meanwhile, and they were woken then.
            return;
        }
        waiting.wake_at = None;
        while let Some(Asked { operation, .. }) = self.next_in_turn(pool) {
            self.step(operation);
        }
        if self.waiting[pool].queues.iter().any(|(_, queue)| !queue.is_empty()) {
            self.schedule_wake(pool);
        }
    }

    /// Of those who wait at `pool` and may have an in-flight slot now, the one that asked first.
    fn next_in_turn(&mut self, pool: usize) -> Option<Asked> {
        let (waiting, stations) = (&mut self.waiting[pool], &mut self.stations);
        let heads = waiting.queues.iter_mut().filter_map(|(slots, queue)| {
            let asked = queue.front()?;
            stations.is_free(*slots).then_some((asked.number, queue))
        });
        heads.min_by_key(|(number, _)| *number)?.1.pop_front()
    }

    /// Decides about a crossing; false where the operation does not go on now.
    fn cross(&mut self, key: ArenaSlot, from: usize, to: usize, at: Time) -> bool {
        if self.faults.is_none() && self.down.is_empty() {
            return true;
        }
        let Some(operation) = self.operations.get_mut(key) else { return false };
        let (source, target) = (operation.instances[from], operation.instances[to]);
        let unreachable = self.down.contains_key(&(to, target)) || self.down.contains_key(&(from, source));
        let fault = match &mut self.faults {
            _ if unreachable => Fault::Drop,
            Some(faults) => faults.decide(Crossing { from: (from, source), to: (to, target), at }),
            None => Fault::Deliver,
        };
        let reliable = operation.route.is_reliable();
        match fault {
            Fault::Deliver => true,
            Fault::Delay(by) => {
                operation.cursor.delay(by);
                true
            }
            // A reliable receiver discards the copy; of a datagram the backend is told twice.
            Fault::Duplicate if reliable => true,
            Fault::Duplicate => {
                if operation.marks != Marks::NONE {
                    let at = at + operation.route.latency(&self.router);
                    self.pending.push_back(Occurrence::Duplicated { tag: operation.tag, at });
                }
                true
            }
            Fault::Drop | Fault::Corrupt if reliable => {
                self.retransmit(key, at);
                false
            }
            Fault::Drop => self.fail(key, OperationFailure::Lost),
            Fault::Corrupt => self.fail(key, OperationFailure::Corrupted),
        }
    }

    /// Ends an operation that is still there; false, since it does not go on.
    fn fail(&mut self, key: ArenaSlot, why: OperationFailure) -> bool {
        if let Some(operation) = self.operations.remove(key) {
            self.pending.push_back(Occurrence::Failed { tag: operation.tag, why });
        }
        false
    }

    fn retransmit(&mut self, key: ArenaSlot, lost_at: Time) {
        let Some(operation) = self.operations.get_mut(key) else { return };
        let Retransmission { timeout, retries } = operation.retransmission;
        // A large message may be lost only after the timeout has passed; it is not retransmitted before.
        let at = lost_at.max(operation.departed + timeout);
        if operation.retries == retries {
            return self.schedule(at, Event::Expire(key));
        }
        operation.retries += 1;
        // The NIC still has the request: it is retransmitted, not posted again.
        let departs = departure(&operation.route);
        operation.cursor.resume(departs, at);
        self.schedule(at, Event::Step(key));
    }

    /// Ends an operation whose requester is gone, wherever it is; it never occurs again.
    pub fn kill(&mut self, handle: Handle) {
        if let Some(operation) = self.operations.remove(handle.0) {
            operation.cursor.abandon(&mut self.stations);
            self.announce();
        }
    }
}

/// The visit at which a request leaves its NIC.
fn departure(route: &Route) -> usize {
    route.visits.iter().position(|visit| matches!(visit, Visit::Mark(Mark::Departs, _))).unwrap_or(0)
}

/// The occurrences in order of virtual time. The end is not final: what is started after it goes on.
impl Iterator for EventEngine {
    type Item = Occurrence;

    /// Goes on to the next occurrence; `None` where nothing is left to happen.
    fn next(&mut self) -> Option<Occurrence> {
        loop {
            if let Some(occurrence) = self.pending.pop_front() {
                return Some(occurrence);
            }
            let (at, event) = self.queue.pop()?;
            self.events += 1;
            self.stations.set_now(at);
            match event {
                Event::Step(key) => self.step(key),
                Event::Expire(key) => {
                    self.fail(key, OperationFailure::RetryExceeded);
                }
                Event::Wake(slot) => self.wake(slot as usize),
                Event::Timer(tag) => return Some(Occurrence::Timer { tag: Tag(tag) }),
            }
        }
    }
}
