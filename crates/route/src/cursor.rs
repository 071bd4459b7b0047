//! The execution of a route: the one place where visits become time.

use crate::calendar::{SlotCalendars, Stations};
use crate::visit::{Mark, Pick, Route, Train, Visit};
use offpath_quantity::{Bytes, Time};

/// How far posted traffic may run behind the operation that posted it.
///
/// A detached visit does not delay its operation until its station is this far behind; from then
/// on flow control does, as link credits do in hardware, so no queue grows without bound.
pub const POSTED_CREDIT: Time = Time::from_us(2);

/// Most bursts of one train between its first hop and its last serial hop.
const BURST_WINDOW: usize = 16;

/// What an operation needs next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advance {
    /// Nothing before this moment.
    At(Time),
    /// It stands at the border between two machines, at the given moment.
    Cross {
        /// The machine that it leaves.
        from: usize,
        /// The machine that it reaches.
        to: usize,
        /// When.
        at: Time,
    },
    /// An in-flight slot: the caller queues it there, and goes on with it when its turn comes and one is free.
    Wait(SlotCalendars),
    /// It is over at the given moment.
    Done(Time),
}

/// A mark with its moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Marked {
    /// What happens.
    pub mark: Mark,
    /// When.
    pub at: Time,
}

/// How far an operation has come on its route.
#[derive(Clone, Debug)]
pub struct Cursor {
    next: usize,
    clock: Time,
    held: Option<(SlotCalendars, Time)>,
    train: Option<Box<Moving>>,
    /// Whether the visit at `next` has had its turn at the border already.
    crossed: bool,
    held_time: Time,
    /// Where it waits for an in-flight slot.
    waits: Option<SlotCalendars>,
}

/// A train between its bursts.
#[derive(Clone, Debug)]
struct Moving {
    sent: Bytes,
    head: Time,
    tails: [Time; BURST_WINDOW],
    burst: usize,
}

impl Cursor {
    /// An operation that starts at `now`.
    pub fn new(now: Time) -> Cursor {
        Cursor {
            next: 0,
            clock: now,
            held: None,
            train: None,
            crossed: false,
            held_time: Time::ZERO,
            waits: None,
        }
    }

    /// Goes on at the visit `position` at the time `at`, as a request does that is retransmitted.
    pub fn resume(&mut self, position: usize, at: Time) {
        *self = Cursor { next: position, held_time: self.held_time, ..Cursor::new(at) };
    }

    /// Gives back what the operation holds, and its place among those who wait, as a requester does that is gone.
    pub fn abandon(self, stations: &mut Stations) {
        if let Some((slots, since)) = self.held {
            stations.release(slots, since, stations.now().max(since));
        }
        if let Some(slots) = self.waits {
            stations.leave(slots);
        }
    }

    /// Starts over on another route, with the clock and what is held as they are.
    pub(crate) fn restart(&mut self) {
        self.next = 0;
    }

    /// The operation's own clock: when what it did so far is over.
    pub fn clock(&self) -> Time {
        self.clock
    }

    /// The position of the next visit.
    pub fn position(&self) -> usize {
        self.next
    }

    /// How long it kept in-flight slots so far.
    pub fn held_time(&self) -> Time {
        self.held_time
    }

    /// Delays the operation, as a fault does.
    pub fn delay(&mut self, by: Time) {
        self.clock += by;
    }

    /// Carries the operation on until it needs time to pass, an in-flight slot, or nothing more.
    ///
    /// `instances` names the machine instance by machine; `draw` gives random bits, asked only
    /// where chance picks a bank; `marked` is told each mark with its moment, which may lie ahead.
    pub fn advance(
        &mut self,
        route: &Route,
        stations: &mut Stations,
        instances: &[u32],
        draw: &mut impl FnMut() -> u64,
        marked: &mut impl FnMut(Marked),
    ) -> Advance {
        while let Some(visit) = route.visits.get(self.next) {
            match visit {
                Visit::Delay { time, .. } => self.clock += *time,
                Visit::Mark(mark, after) => marked(Marked { mark: *mark, at: self.clock + *after }),
                Visit::Cross { from, to } => {
                    if !self.crossed {
                        self.crossed = true;
                        return Advance::Cross { from: *from, to: *to, at: self.clock };
                    }
                    if self.clock > stations.now() {
                        return Advance::At(self.clock);
                    }
                    self.crossed = false;
                }
                Visit::Serve { station, pick, occupancy, latency, detached, .. } => {
                    let slot = stations.slot(*station, instances);
                    // Lines and packet cores are booked ahead; processors' cores go to whoever comes
                    // first, so an operation claims one only once its time has come.
                    if stations.is_claimed(slot) && self.clock > stations.now() {
                        return Advance::At(self.clock);
                    }
                    let start = stations.serve(slot, self.clock, *occupancy, *pick, draw);
                    self.clock = if *detached {
                        self.clock.max(start.saturating_sub(POSTED_CREDIT))
                    } else {
                        start + *latency
                    };
                }
                Visit::Acquire { inflight_slots, time } => {
                    if self.clock > stations.now() {
                        return Advance::At(self.clock);
                    }
                    let slots =
                        self.waits.unwrap_or_else(|| stations.slot_calendars(inflight_slots, instances));
                    if !self.take_slot(slots, stations) {
                        return Advance::Wait(slots);
                    }
                    self.clock = self.clock.max(stations.now());
                    match time {
                        Some(time) => stations.release(slots, self.clock, self.clock + *time),
                        None => self.held = Some((slots, self.clock)),
                    }
                }
                Visit::Train(train) => {
                    if let Some(next) = self.burst(train, stations, instances, draw, marked) {
                        return Advance::At(next);
                    }
                }
            }
            self.next += 1;
        }
        Advance::Done(self.clock)
    }

    /// Takes an in-flight slot, in turn where it waited for it.
    fn take_slot(&mut self, slots: SlotCalendars, stations: &mut Stations) -> bool {
        let taken = match self.waits {
            Some(_) => stations.take_turn(slots),
            None => stations.acquire(slots),
        };
        self.waits = (!taken).then_some(slots);
        taken
    }

    /// Moves one burst; returns when the next may start, or `None` after the last.
    fn burst(
        &mut self,
        train: &Train,
        stations: &mut Stations,
        instances: &[u32],
        draw: &mut impl FnMut() -> u64,
        marked: &mut impl FnMut(Marked),
    ) -> Option<Time> {
        let (sent, mut head, mut previous) = match &self.train {
            Some(moving) => (moving.sent, moving.head, Some(moving.tails[moving.burst % BURST_WINDOW])),
            None => (Bytes::ZERO, self.clock, None),
        };
        head = head.max(previous.take().unwrap_or(Time::ZERO));
        let burst = train.burst();
        let upto = Bytes::new(train.bytes.get().min(sent.get() + burst.get()));
        let last = upto == train.bytes;
        let whole = last && sent == Bytes::ZERO;
        let segment = Bytes::new(train.segment.get().min(upto.get() - sent.get()));
        let mut arrival = head;
        let mut tail = head;
        let mut serial_tail = head;
        let mut next_head = head;
        for (index, hop) in train.hops.iter().enumerate() {
            let (cost, one_segment) = if whole {
                (hop.whole, hop.first)
            } else {
                let before = if sent == Bytes::ZERO { Time::ZERO } else { hop.time(sent) };
                let cost = hop.time(upto) - before;
                (cost, hop.time(segment).min(cost))
            };
            arrival += hop.delay;
            let slot = stations.slot(hop.station, instances);
            let start = if cost == Time::ZERO {
                arrival
            } else {
                stations.serve(slot, arrival, cost, Pick::Any, draw)
            };
            let end = (start + cost).max(tail + hop.delay + one_segment);
            if index == 0 {
                next_head = start + cost;
                if train.marks_source {
                    if sent == Bytes::ZERO {
                        marked(Marked { mark: Mark::SourceStart, at: start });
                    }
                    if last {
                        marked(Marked { mark: Mark::SourceEnd, at: end });
                    }
                }
            }
            if hop.detached {
                serial_tail = serial_tail.max(start.saturating_sub(POSTED_CREDIT));
            } else {
                serial_tail = end;
            }
            if let Some((at, extra)) = train.release
                && at == index
                && last
                && let Some((slots, since)) = self.held.take()
            {
                self.held_time += end + extra - since;
                stations.release(slots, since, end + extra);
            }
            if index + 1 == train.hops.len() && train.marks_target {
                if sent == Bytes::ZERO {
                    marked(Marked { mark: Mark::TargetStart, at: start + one_segment + train.settle });
                }
                if last {
                    marked(Marked { mark: Mark::TargetEnd, at: end + train.settle });
                }
            }
            arrival = start + one_segment;
            tail = end;
        }
        for requests in &train.requests {
            let cost = if whole { requests.whole } else { requests.time(upto) - requests.time(sent) };
            if cost > Time::ZERO {
                let slot = stations.slot(requests.station, instances);
                let start = stations.serve(slot, head, cost, Pick::Any, draw);
                serial_tail = serial_tail.max(start.saturating_sub(POSTED_CREDIT));
            }
        }
        if last {
            self.train = None;
            self.clock = serial_tail;
            return None;
        }
        let moving = self.train.get_or_insert_with(|| {
            Box::new(Moving { sent, head, tails: [Time::ZERO; BURST_WINDOW], burst: 0 })
        });
        moving.tails[moving.burst % BURST_WINDOW] = serial_tail;
        moving.burst += 1;
        moving.sent = upto;
        moving.head = next_head;
        let window = moving.tails[moving.burst % BURST_WINDOW];
        Some(next_head.max(window))
    }
}

impl Route {
    /// How long after its posting begins a request is ready to leave its machine, on idle stations; nothing of a route that has no
    /// request of its own.
    pub fn departs_after(&self) -> Time {
        let is_departure = |visit: &&Visit| matches!(visit, Visit::Mark(Mark::Departs, _));
        let before = self.visits.iter().take_while(|visit| !is_departure(visit));
        let of = |visit: &Visit| match visit {
            Visit::Delay { time, .. } => *time,
            Visit::Serve { latency, detached: false, .. } => *latency,
            _ => Time::ZERO,
        };
        before.map(of).sum()
    }

    /// How long posting keeps the processor that issues it; nothing of what a processor does itself.
    pub fn post_time(&self) -> Time {
        match self.visits.first() {
            Some(Visit::Serve { occupancy, .. }) => *occupancy,
            _ => Time::ZERO,
        }
    }

    /// Whether a reliable connection carries it, which answers a loss by retransmitting.
    pub fn is_reliable(&self) -> bool {
        self.verb.row().transport == crate::Transport::Reliable
    }
}
