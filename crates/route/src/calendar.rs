//! What keeps the stations' time: when each server is free, and for whom.

use crate::station::{Station, StationId, StationKind};
use crate::visit::{InflightSlots, MOST_LIMITS, Pick};
use offpath_quantity::Time;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

/// One server that serves in order of arrival and never idles while there is work.
///
/// An operation books its visit ahead of time, as soon as it knows when it arrives. The idle gaps
/// before bookings are kept, and one that arrives earlier but books later is served in them, piece
/// by piece where one gap is too short, as packets of several messages share a link. Without the
/// pieces a station would waste every gap that is shorter than a visit, up to half of its time.
#[derive(Clone, Debug, Default)]
struct Line {
    end: u64,
    /// Idle time before `end`, in order; the first of them may be over.
    gaps: Vec<(u64, u64)>,
    /// How many there were when those that were over were last dropped.
    left: usize,
    busy: u64,
}

/// So many gaps may be over, or as many as are not, so that those behind them are seldom moved.
const KEPT: usize = 64;

impl Line {
    /// Whether no gap is left for a visit that arrives `at`.
    #[inline]
    fn is_full_from(&self, at: u64) -> bool {
        self.gaps.last().is_none_or(|&(_, to)| to <= at)
    }

    /// When a visit that arrives `at` would be over, less its occupancy, without booking it.
    #[inline]
    fn earliest(&self, at: u64, occupancy: u64) -> u64 {
        if at >= self.end || self.is_full_from(at) {
            return at.max(self.end);
        }
        let mut left = occupancy;
        let first = self.first_gap(at);
        for &(from, to) in &self.gaps[first..] {
            let start = from.max(at);
            if to - start >= left {
                return start + left - occupancy;
            }
            left -= to - start;
        }
        self.end + left - occupancy
    }

    /// The first gap that is not over at `at`.
    fn first_gap(&self, at: u64) -> usize {
        // Visits are booked nearly in the order of their arrival, so it is almost always near the end.
        const NEAR: usize = 8;
        let (gaps, near) = self.gaps.split_at(self.gaps.len().saturating_sub(NEAR));
        match near.iter().rposition(|&(_, to)| to <= at) {
            Some(last) => gaps.len() + last + 1,
            None => gaps.partition_point(|&(_, to)| to <= at),
        }
    }

    /// How long it has served up to `now`: what is booked, less what of it lies ahead.
    fn served(&self, now: u64) -> u64 {
        let idle: u64 = self.gaps[self.first_gap(now)..].iter().map(|&(from, to)| to - from.max(now)).sum();
        self.busy - (self.end.saturating_sub(now) - idle)
    }

    fn reset(&mut self) {
        (self.end, self.left, self.busy) = (0, 0, 0);
        self.gaps.clear();
    }

    /// Drops the gaps that nobody can use any more.
    #[cold]
    fn forget(&mut self, now: u64) {
        self.gaps.drain(..self.first_gap(now));
        self.left = self.gaps.len();
    }

    /// Books a visit that arrives `at`, now or later, and returns when it is over, less its occupancy.
    #[inline(always)]
    fn reserve(&mut self, now: u64, at: u64, occupancy: u64) -> u64 {
        assert!(at >= now, "a visit that arrived {} ps ago is booked now", now - at);
        self.busy += occupancy;
        if at >= self.end {
            // Time before now can serve nobody any more, so no gap begins there.
            let from = self.end.max(now);
            if at > from {
                if self.gaps.len() > KEPT + 2 * self.left {
                    self.forget(now);
                }
                self.gaps.push((from, at));
            }
            self.end = at + occupancy;
            return at;
        }
        if self.is_full_from(at) {
            let start = self.end;
            self.end += occupancy;
            return start;
        }
        self.fill(at, occupancy)
    }

    /// Books a visit that arrives before a gap is over.
    #[inline(never)]
    fn fill(&mut self, at: u64, occupancy: u64) -> u64 {
        let mut left = occupancy;
        let first = self.first_gap(at);
        let mut index = first;
        // Gaps that are filled whole, from the first on or from the one behind it.
        let mut filled = first;
        let over = loop {
            let Some(&(from, to)) = self.gaps.get(index) else {
                self.end += left;
                break self.end;
            };
            let start = from.max(at);
            if to - start > left {
                self.gaps[index].0 = start + left;
                if start > from {
                    self.gaps.insert(index, (from, start));
                }
                break start + left;
            }
            left -= to - start;
            if start > from {
                // Only the first can begin before the visit arrives.
                self.gaps[index].1 = start;
                filled = index + 1;
            }
            index += 1;
            if left == 0 {
                break to;
            }
        };
        if index == self.gaps.len() {
            self.gaps.truncate(filled);
        } else if index > filled {
            self.gaps.copy_within(index.., filled);
            self.gaps.truncate(self.gaps.len() - (index - filled));
        }
        over - occupancy
    }
}

/// The time-keeping of one instance of a station.
#[derive(Clone, Debug)]
pub struct Calendar(State);

#[derive(Clone, Debug)]
enum State {
    Line(Line),
    /// Of each core the moment from which it is free, and since when it is kept without a pause.
    Cores {
        servers: usize,
        free: BinaryHeap<Reverse<(u64, u64)>>,
        busy: u64,
    },
    /// `since` is the sum of the moments at which the open ones were taken.
    InflightSlots {
        capacity: usize,
        open: usize,
        /// Of a pool, where those who wait would take one, and how many wait to take it there.
        waiting: Vec<(SlotCalendars, usize)>,
        since: u128,
        releases: BinaryHeap<Reverse<u64>>,
        busy: u64,
        granted: u64,
    },
    Pool {
        shared: Option<(u64, Line)>,
        reserved: Vec<Option<(u64, Line)>>,
    },
    Banks {
        count: usize,
        lines: Vec<Line>,
    },
}

impl Calendar {
    fn new(kind: &StationKind) -> Calendar {
        Calendar(match kind {
            StationKind::Line => State::Line(Line::default()),
            StationKind::Cores(n) => State::Cores { servers: *n as usize, free: BinaryHeap::new(), busy: 0 },
            StationKind::InflightSlots(n) => State::InflightSlots {
                capacity: *n as usize,
                open: 0,
                waiting: Vec::new(),
                since: 0,
                releases: BinaryHeap::new(),
                busy: 0,
                granted: 0,
            },
            StationKind::Pool { shared, reserved } => {
                let part = |time: &Option<Time>| time.map(|t| (t.ps(), Line::default()));
                State::Pool { shared: part(shared), reserved: reserved.iter().map(part).collect() }
            }
            // Lines are made up to the one that is visited: most readings of a route visit no bank, or the first.
            StationKind::Banks(n) => State::Banks { count: *n as usize, lines: Vec::new() },
        })
    }

    /// Books a visit and returns its start, or for one in pieces, when it would have had to start in
    /// one piece. `draw` is asked only where chance picks the server.
    #[inline]
    fn serve(
        &mut self,
        now: u64,
        at: u64,
        occupancy: u64,
        pick: Pick,
        draw: &mut impl FnMut() -> u64,
    ) -> u64 {
        match (&mut self.0, pick) {
            (State::Line(line), _) => line.reserve(now, at, occupancy),
            (State::Cores { servers, free, busy }, _) => {
                *busy += occupancy;
                if free.len() < *servers {
                    free.push(Reverse((at + occupancy, at)));
                    return at;
                }
                let mut first = free.peek_mut().expect("a processor has cores");
                let Reverse((earliest, since)) = *first;
                let (start, since) = if earliest < at { (at, at) } else { (earliest, since) };
                *first = Reverse((start + occupancy, since));
                start
            }
            (State::Pool { shared, reserved }, Pick::Class(class)) => {
                let own = reserved.get_mut(usize::from(class)).and_then(Option::as_mut);
                let start = |part: &(u64, Line)| part.1.earliest(at, part.0);
                let (interval, line) = match (own, shared) {
                    // The reserved part first, where it is as good: it serves nobody else.
                    (Some(own), Some(shared)) => {
                        let own_start = start(own);
                        if own_start == at || own_start <= start(shared) { own } else { shared }
                    }
                    (Some(only), None) | (None, Some(only)) => only,
                    (None, None) => unreachable!("profile loading refuses a NIC without packet cores"),
                };
                line.reserve(now, at, *interval)
            }
            (State::Banks { count, lines }, Pick::Bank { reach, hottest }) => {
                let reach = u64::from(reach).clamp(1, *count as u64);
                let rest = (1.0 - hottest).max(0.0);
                let bank = if reach == 1 {
                    0
                } else {
                    // 53 bits of a draw as a number in [0, 1): below `hottest` it is the hottest bank.
                    let unit = (draw() >> 11) as f64 / (1u64 << 53) as f64;
                    if unit < hottest {
                        0
                    } else {
                        1 + ((((unit - hottest) / rest) * (reach - 1) as f64) as u64).min(reach - 2)
                    }
                };
                // An idle reading of a route finds the first bank, however many there are.
                let bank = bank as usize;
                if lines.len() <= bank {
                    lines.resize(bank + 1, Line::default());
                }
                lines[bank].reserve(now, at, occupancy)
            }
            (state, pick) => unreachable!("a route visits {state:?} by {pick:?}"),
        }
    }

    fn busy(&self) -> u64 {
        match &self.0 {
            State::Line(line) => line.busy,
            State::Cores { busy, .. } | State::InflightSlots { busy, .. } => *busy,
            State::Pool { shared, reserved } => {
                shared.iter().chain(reserved.iter().flatten()).map(|(_, line)| line.busy).sum()
            }
            State::Banks { lines, .. } => lines.iter().map(|line| line.busy).sum(),
        }
    }

    /// Server time that passed up to `now`: what is booked for later, or kept still, is not counted.
    fn served(&self, now: u64) -> u64 {
        match &self.0 {
            State::Line(line) => line.served(now),
            State::Cores { free, busy, .. } => {
                let ahead =
                    |&Reverse((until, since)): &Reverse<(u64, u64)>| until.saturating_sub(since.max(now));
                busy - free.iter().map(ahead).sum::<u64>()
            }
            State::InflightSlots { open, since, releases, busy, .. } => {
                let ahead = |Reverse(at): &Reverse<u64>| at.saturating_sub(now);
                let held = *open as u128 * u128::from(now) - since;
                busy + held as u64 - releases.iter().map(ahead).sum::<u64>()
            }
            State::Pool { shared, reserved } => {
                shared.iter().chain(reserved.iter().flatten()).map(|(_, line)| line.served(now)).sum()
            }
            State::Banks { lines, .. } => lines.iter().map(|line| line.served(now)).sum(),
        }
    }

    /// What each part of a pool served up to `now`: the shared one, and that of each endpoint; none of other stations.
    fn parts_served(&self, now: u64) -> Vec<u64> {
        let State::Pool { shared, reserved } = &self.0 else { return Vec::new() };
        let served = |part: &Option<(u64, Line)>| part.as_ref().map_or(0, |(_, line)| line.served(now));
        std::iter::once(shared).chain(reserved).map(served).collect()
    }

    /// What the bank served up to `now` that hot lines are in; 0 for other stations.
    fn served_hot(&self, now: u64) -> u64 {
        match &self.0 {
            State::Banks { lines, .. } => lines.first().map_or(0, |line| line.served(now)),
            _ => 0,
        }
    }

    /// Requests that packet cores passed up to `now`, one in service as the part that is done.
    fn passed(&self, now: u64) -> f64 {
        let State::Pool { shared, reserved } = &self.0 else { return 0.0 };
        let parts = shared.iter().chain(reserved.iter().flatten());
        parts.map(|(interval, line)| line.served(now) as f64 / *interval as f64).sum()
    }

    fn reset(&mut self) {
        match &mut self.0 {
            State::Line(line) => line.reset(),
            State::Cores { free, busy, .. } => {
                free.clear();
                *busy = 0;
            }
            State::InflightSlots { open, waiting, since, releases, busy, granted, .. } => {
                releases.clear();
                waiting.clear();
                (*open, *since, *busy, *granted) = (0, 0, 0, 0);
            }
            State::Pool { shared, reserved } => {
                shared.iter_mut().chain(reserved.iter_mut().flatten()).for_each(|(_, line)| line.reset());
            }
            State::Banks { lines, .. } => lines.iter_mut().for_each(Line::reset),
        }
    }
}

/// The calendars where an operation takes its in-flight slot: of [`InflightSlots`] on one machine. Every operation in flight
/// carries one, so it is small.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SlotCalendars {
    /// The pool's, then those of the limits.
    all: [u32; 1 + MOST_LIMITS],
    count: u8,
}

impl SlotCalendars {
    fn new(pool: usize, limits: impl IntoIterator<Item = usize>) -> SlotCalendars {
        let mut slots = SlotCalendars { all: [0; 1 + MOST_LIMITS], count: 0 };
        for slot in [pool].into_iter().chain(limits) {
            slots.all[usize::from(slots.count)] = slot as u32;
            slots.count += 1;
        }
        slots
    }

    /// Of the pool.
    pub fn pool(&self) -> usize {
        self.all[0] as usize
    }

    fn each(&self) -> impl Iterator<Item = usize> {
        self.all[..usize::from(self.count)].iter().map(|slot| *slot as usize)
    }

    fn limits(&self) -> impl Iterator<Item = usize> {
        self.each().skip(1)
    }
}

/// The calendars of every station of a system, with the present moment.
#[derive(Clone, Debug)]
pub struct Stations {
    now: u64,
    /// Of each station its first calendar and its machine.
    places: Vec<(u32, u32)>,
    calendars: Vec<Calendar>,
    /// Factors on the time at slowed stations, which faults set; empty in almost every run.
    slowed: BTreeMap<usize, f64>,
    /// Calendars where somebody waits for an in-flight slot and a release became known.
    released: Vec<usize>,
}

impl Stations {
    /// Idle stations. With `instances` every machine of a role has its own, else they share one,
    /// which is enough for a single operation.
    pub fn new(table: &[Station], instances: bool) -> Stations {
        let mut places = Vec::with_capacity(table.len());
        let mut calendars = Vec::with_capacity(table.len());
        for station in table {
            places.push((calendars.len() as u32, station.machine as u32));
            let count = if instances { station.instances } else { 1 };
            calendars.extend((0..count).map(|_| Calendar::new(&station.kind)));
        }
        Stations { now: 0, places, calendars, slowed: BTreeMap::new(), released: Vec::new() }
    }

    /// Makes every station idle again, at time 0.
    pub fn reset(&mut self) {
        self.now = 0;
        self.calendars.iter_mut().for_each(Calendar::reset);
        self.slowed.clear();
        self.released.clear();
    }

    /// The present moment.
    #[inline]
    pub fn now(&self) -> Time {
        Time::from_ps(self.now)
    }

    /// Moves the present moment on; it never moves back.
    #[inline]
    pub fn set_now(&mut self, now: Time) {
        assert!(now.ps() >= self.now, "time moves on");
        self.now = now.ps();
    }

    /// The calendar of `station` on the machine instance that `instances` gives by machine.
    #[inline]
    pub fn slot(&self, station: StationId, instances: &[u32]) -> usize {
        let (first, machine) = self.places[station.index()];
        (first + instances.get(machine as usize).copied().unwrap_or(0)) as usize
    }

    /// The calendars of `station`, one machine after the other.
    fn of(&self, station: StationId) -> &[Calendar] {
        let first = |index: usize| self.places.get(index).map(|(first, _)| *first as usize);
        let index = station.index();
        &self.calendars[self.places[index].0 as usize..first(index + 1).unwrap_or(self.calendars.len())]
    }

    /// Books a visit at the calendar `slot` and returns its start, which is its end less its occupancy.
    ///
    /// Nearly all visits are to lines, and a get of the store makes dozens, so those are booked without a call.
    #[inline(always)]
    pub fn serve(
        &mut self,
        slot: usize,
        at: Time,
        occupancy: Time,
        pick: Pick,
        draw: &mut impl FnMut() -> u64,
    ) -> Time {
        match &mut self.calendars[slot].0 {
            State::Line(line) if self.slowed.is_empty() => {
                Time::from_ps(line.reserve(self.now, at.ps(), occupancy.ps()))
            }
            _ => self.serve_elsewhere(slot, at, occupancy, pick, draw),
        }
    }

    #[inline(never)]
    fn serve_elsewhere(
        &mut self,
        slot: usize,
        at: Time,
        occupancy: Time,
        pick: Pick,
        draw: &mut impl FnMut() -> u64,
    ) -> Time {
        let occupancy = self.slowed.get(&slot).map_or(occupancy, |factor| occupancy.scaled(*factor));
        Time::from_ps(self.calendars[slot].serve(self.now, at.ps(), occupancy.ps(), pick, draw))
    }

    /// Makes visits to `slot` keep its servers `factor` times as long; 1 ends it.
    pub fn slow_down(&mut self, slot: usize, factor: f64) {
        if factor == 1.0 {
            self.slowed.remove(&slot);
        } else {
            self.slowed.insert(slot, factor);
        }
    }

    /// The calendars of `inflight_slots` on the machine instances that `instances` gives by machine.
    pub fn slot_calendars(&self, inflight_slots: &InflightSlots, instances: &[u32]) -> SlotCalendars {
        let slot = |station| self.slot(station, instances);
        let limits = inflight_slots.limits.into_iter().flatten();
        SlotCalendars::new(slot(inflight_slots.pool), limits.map(slot))
    }

    /// Takes an in-flight slot now; false where all that the caller may have are held, or one that could have it
    /// waits already, and the caller waits behind. Whoever waits asks again by [`Stations::take_turn`], in
    /// the order in which it began to wait among those that may have one, or says by [`Stations::leave`]
    /// that it never will.
    pub fn acquire(&mut self, slots: SlotCalendars) -> bool {
        if self.is_free(slots) && !self.waits_for_turn(slots) {
            self.grant(slots);
            return true;
        }
        let waiting = self.waiting(slots.pool());
        match waiting.iter_mut().find(|(known, _)| *known == slots) {
            Some((_, count)) => *count += 1,
            None => waiting.push((slots, 1)),
        }
        false
    }

    /// Takes an in-flight slot for the one that has waited longest of those that may have one; false where none may.
    #[inline]
    pub fn take_turn(&mut self, slots: SlotCalendars) -> bool {
        let free = self.is_free(slots);
        if free {
            self.leave(slots);
            self.grant(slots);
        }
        free
    }

    /// Says that one of those who wait for an in-flight slot of `slots` waits no more.
    pub fn leave(&mut self, slots: SlotCalendars) {
        let count = self.waiting(slots.pool()).iter_mut().find(|(known, _)| *known == slots);
        let count = count.and_then(|(_, count)| count.checked_sub(1).map(|fewer| *count = fewer));
        count.expect("only who waits takes its turn or leaves");
    }

    fn waiting(&mut self, pool: usize) -> &mut Vec<(SlotCalendars, usize)> {
        match &mut self.calendars[pool].0 {
            State::InflightSlots { waiting, .. } => waiting,
            other => unreachable!("only in-flight slots are waited for, not {other:?}"),
        }
    }

    /// Whether somebody waits who could have the in-flight slot that is free: whoever asks now comes after.
    fn waits_for_turn(&mut self, slots: SlotCalendars) -> bool {
        let mut from = 0;
        while let Some(waits) = self.waited(slots.pool(), &mut from) {
            if waits.limits().all(|slot| self.has_room(slot)) {
                return true;
            }
        }
        false
    }

    /// The next, from the place `from` on, where those who wait at `pool` would take one.
    fn waited(&self, pool: usize, from: &mut usize) -> Option<SlotCalendars> {
        let State::InflightSlots { waiting, .. } = &self.calendars[pool].0 else { return None };
        let rest = waiting.get(*from..)?;
        let at = rest.iter().position(|(_, count)| *count > 0)?;
        *from += at + 1;
        Some(rest[at].0)
    }

    fn grant(&mut self, slots: SlotCalendars) {
        let now = self.now;
        for slot in slots.each() {
            if let State::InflightSlots { open, since, granted, .. } = &mut self.calendars[slot].0 {
                *open += 1;
                *since += u128::from(now);
                *granted += 1;
            }
        }
    }

    /// Whether an in-flight slot of `slots` is free now.
    #[inline]
    pub fn is_free(&mut self, slots: SlotCalendars) -> bool {
        slots.each().all(|slot| self.has_room(slot))
    }

    #[inline]
    fn has_room(&mut self, slot: usize) -> bool {
        let now = self.now;
        match &mut self.calendars[slot].0 {
            State::InflightSlots { capacity, open, releases, .. } => {
                while releases.peek().is_some_and(|Reverse(at)| *at <= now) {
                    releases.pop();
                }
                *open + releases.len() < *capacity
            }
            _ => true,
        }
    }

    /// Says when an in-flight slot taken at `taken` is given back.
    pub fn release(&mut self, slots: SlotCalendars, taken: Time, at: Time) {
        for slot in slots.each() {
            match &mut self.calendars[slot].0 {
                State::InflightSlots { open, since, releases, busy, .. } => {
                    *open -= 1;
                    *since -= u128::from(taken.ps());
                    *busy += (at.saturating_sub(taken)).ps();
                    releases.push(Reverse(at.ps()));
                }
                other => unreachable!("only in-flight slots are held, not {other:?}"),
            }
        }
        if self.waiting(slots.pool()).iter().any(|(_, count)| *count > 0) {
            self.released.push(slots.pool());
        }
    }

    /// How often an in-flight slot of `station` was taken so far, at every instance; 0 for other stations.
    pub fn granted(&self, station: StationId) -> u64 {
        let granted = |calendar: &Calendar| match &calendar.0 {
            State::InflightSlots { granted, .. } => *granted,
            _ => 0,
        };
        self.of(station).iter().map(granted).sum()
    }

    /// Whether servers of `slot` are claimed on arrival instead of booked ahead.
    #[inline]
    pub(crate) fn is_claimed(&self, slot: usize) -> bool {
        matches!(self.calendars[slot].0, State::Cores { .. })
    }

    /// The next moment at which somebody who waits at `pool` may have an in-flight slot, where one is known: the
    /// first release of the pool, or where that has room, of a limit that somebody waits for.
    pub fn next_release(&mut self, pool: usize) -> Option<Time> {
        let first = |slot: usize, stations: &Stations| match &stations.calendars[slot].0 {
            State::InflightSlots { releases, .. } => releases.peek().map(|Reverse(at)| Time::from_ps(*at)),
            _ => None,
        };
        let mut from = 0;
        let mut next = self.waited(pool, &mut from);
        if next.is_none() || !self.has_room(pool) {
            return first(pool, self);
        }
        let mut earliest: Option<Time> = None;
        while let Some(slots) = next {
            let mut is_free = true;
            for slot in slots.limits() {
                if !self.has_room(slot) {
                    is_free = false;
                    earliest = first(slot, self).into_iter().chain(earliest).min();
                }
            }
            if is_free {
                // Room that is made at this moment, as by an operation that is ended, is no release to come.
                return Some(self.now());
            }
            next = self.waited(pool, &mut from);
        }
        earliest
    }

    /// A calendar where somebody waits and a release became known since this was asked last: it may come
    /// before all that were known.
    #[inline]
    pub fn next_released(&mut self) -> Option<usize> {
        self.released.pop()
    }

    /// Server time that passed so far at `station`, on one machine after the other: of visits that are
    /// booked ahead, what lies ahead is not in it, so in no span does a server serve longer than that.
    pub fn served(&self, station: StationId) -> impl Iterator<Item = Time> {
        self.of(station).iter().map(|calendar| Time::from_ps(calendar.served(self.now)))
    }

    /// The same of each part of a pool: the shared one, and that of each endpoint; none for other stations.
    pub fn parts_served(&self, station: StationId) -> impl Iterator<Item = Vec<Time>> {
        let parts = |calendar: &Calendar| calendar.parts_served(self.now).into_iter().map(Time::from_ps);
        self.of(station).iter().map(move |calendar| parts(calendar).collect())
    }

    /// What the banks served so far that hot lines are in, at every instance of `station`; none for
    /// other stations.
    pub fn served_hot(&self, station: StationId) -> Time {
        Time::from_ps(self.of(station).iter().map(|calendar| calendar.served_hot(self.now)).sum())
    }

    /// Requests that the packet cores of `station` passed so far, at every instance; 0 for other stations.
    pub fn passed(&self, station: StationId) -> f64 {
        self.of(station).iter().map(|calendar| calendar.passed(self.now)).sum()
    }

    /// Server time booked so far at every instance of `station`, also for later; in-flight slots are booked
    /// when it is known how long they are held.
    pub fn busy(&self, station: StationId) -> Time {
        Time::from_ps(self.of(station).iter().map(Calendar::busy).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_later_booking_uses_an_earlier_gap() {
        let mut line = Line::default();
        assert_eq!(line.reserve(0, 100, 10), 100);
        assert_eq!(line.reserve(0, 50, 10), 50);
        // 95 to 100 and 110 to 115: over at 115.
        assert_eq!(line.reserve(0, 95, 10), 105);
        assert_eq!(line.reserve(0, 45, 5), 45);
        // 60 to 95 and 115 to 121.
        assert_eq!(line.reserve(0, 45, 41), 80);
        assert_eq!((line.busy, line.end), (76, 121));
    }

    fn served(stations: &mut Stations, kind: &str, at: u64) -> u64 {
        stations.set_now(Time::from_ps(at));
        let index = usize::from(kind == "inflight_slots");
        stations.served(StationId(index as u16)).map(Time::ps).sum()
    }

    /// Of what is booked ahead, or held still, only what passed is served.
    #[test]
    fn time_is_served_when_it_passes() {
        let station =
            |kind| Station { name: String::new(), machine: 0, instances: 1, kind, wire: None, meaning: "" };
        let table = [station(StationKind::Cores(2)), station(StationKind::InflightSlots(2))];
        let mut stations = Stations::new(&table, true);
        let any = |stations: &mut Stations, at, time| {
            let (at, time) = (Time::from_ps(at), Time::from_ps(time));
            stations.serve(0, at, time, Pick::Any, &mut || 0).ps()
        };
        // One core from 0 to 100 and on to 150, the other from 20 to 30.
        assert_eq!(any(&mut stations, 0, 100), 0);
        assert_eq!(any(&mut stations, 20, 10), 20);
        assert_eq!(served(&mut stations, "cores", 10), 10);
        assert_eq!(served(&mut stations, "cores", 25), 30);
        assert_eq!(any(&mut stations, 90, 5), 90, "the second core");
        assert_eq!(any(&mut stations, 91, 50), 95, "the second again");
        assert_eq!(served(&mut stations, "cores", 92), 92 + 10 + 2);
        assert_eq!(served(&mut stations, "cores", 200), 165);
        let slots = SlotCalendars::new(1, []);
        assert!(stations.acquire(slots) && stations.acquire(slots) && !stations.acquire(slots));
        assert_eq!(served(&mut stations, "inflight_slots", 210), 20, "two are held");
        stations.release(slots, Time::from_ps(200), Time::from_ps(230));
        assert_eq!(served(&mut stations, "inflight_slots", 220), 40, "one of them is given back later");
        assert_eq!(served(&mut stations, "inflight_slots", 250), 30 + 50);
        stations.release(slots, Time::from_ps(200), Time::from_ps(250));
        assert_eq!(served(&mut stations, "inflight_slots", 300), 80);
        assert_eq!(stations.busy(StationId(1)).ps(), 80);
    }

    proptest! {
        /// The line against one that keeps every picosecond: no piece is lost or served twice.
        #[test]
        fn it_serves_in_the_first_free_picoseconds(
            // Many jobs with pauses leave more gaps than are kept once they are over.
            jobs in proptest::collection::vec((0u64..400, 0u64..150, 1u64..30), 1..300),
        ) {
            let mut line = Line::default();
            let mut taken = vec![false; 24_000];
            let mut now = 0;
            for (step, lead, occupancy) in jobs {
                now += step / 10;
                let at = now + lead;
                let free: Vec<usize> =
                    (at as usize..).filter(|&ps| !taken[ps]).take(occupancy as usize).collect();
                free.iter().for_each(|&ps| taken[ps] = true);
                let over = free[free.len() - 1] as u64 + 1;
                prop_assert_eq!(line.earliest(at, occupancy), over - occupancy);
                prop_assert_eq!(line.reserve(now, at, occupancy), over - occupancy);
                let passed = taken[..now as usize].iter().filter(|&&ps| ps).count();
                prop_assert_eq!(line.served(now), passed as u64);
            }
        }
    }
}
