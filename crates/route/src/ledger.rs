//! The readings of a route that need no clock of their own: its latency when nothing else runs,
//! its demand at each station, and its packets on each link.

use crate::build::Router;
use crate::calendar::Stations;
use crate::cursor::{Advance, Cursor};
use crate::station::{StationId, StationKind};
use crate::visit::{Hop, Pick, Route, Train, Visit};
use offpath_quantity::{Bytes, Time};
use std::collections::BTreeMap;

/// One part of a latency.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Term {
    /// What takes the time.
    pub label: String,
    /// The station, where it is at one.
    pub station: Option<StationId>,
    /// How long.
    pub time: Time,
}

/// The latency of an operation on idle stations, term by term.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unloaded {
    /// The whole.
    pub latency: Time,
    /// Its parts in order; their sum is the whole.
    pub terms: Vec<Term>,
    /// How long the operation keeps in-flight slots, by station.
    pub held: Vec<(StationId, Time)>,
}

/// What an operation asks of the stations.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Demand {
    /// Server time by station.
    pub time: BTreeMap<StationId, Time>,
    /// Requests by pool and class.
    pub requests: BTreeMap<(StationId, u8), u64>,
    /// The largest share of a station's server time that one bank must give, beyond its fair part.
    pub banks: BTreeMap<StationId, f64>,
}

/// Packets and bytes on one direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkPackets {
    /// Packets that carry payload.
    pub data: u64,
    /// Payload bytes.
    pub payload: Bytes,
    /// Payload and headers.
    pub framed: Bytes,
}

/// Packets by link direction. Requests, work requests and completion entries are control packets
/// and not counted, as in published tables of data packets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// By station name, as in `pcie1.up`.
    pub links: BTreeMap<String, LinkPackets>,
}

impl Ledger {
    /// Data packets of a link in both directions.
    pub fn link(&self, name: &str) -> u64 {
        ["up", "down"]
            .iter()
            .filter_map(|side| self.links.get(&format!("{name}.{side}")))
            .map(|p| p.data)
            .sum()
    }
}

/// The latency and the demand of a route, from one run.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    /// The unloaded latency.
    pub latency: Time,
    /// What it asks of the stations.
    pub demand: Demand,
}

/// Idle stations to read routes on, kept from one reading to the next because making them costs
/// more than a reading does.
///
/// It serves searches over many routes of one router; [`Route::latency`] and [`Route::demand`]
/// give the same numbers one at a time.
#[derive(Clone, Debug)]
pub struct Reader {
    stations: Stations,
}

impl Reader {
    /// A reader of the routes of `router`.
    pub fn new(router: &Router) -> Reader {
        Reader { stations: Stations::new(router.stations(), false) }
    }

    /// The unloaded latency and the demand of `route`, which has to come from the same router.
    pub fn read(&mut self, route: &Route) -> Reading {
        let cursor = self.run(route);
        Reading { latency: cursor.clock(), demand: route.folded(cursor.held_time()) }
    }

    fn run(&mut self, route: &Route) -> Cursor {
        self.stations.reset();
        let mut cursor = Cursor::new(Time::ZERO);
        loop {
            match cursor.advance(route, &mut self.stations, &[], &mut || 0, &mut |_| {}) {
                Advance::At(at) => self.stations.set_now(at),
                Advance::Cross { .. } => {}
                Advance::Wait(_) => unreachable!("an operation alone finds a free in-flight slot"),
                Advance::Done(_) => return cursor,
            }
        }
    }
}

impl Route {
    /// The unloaded latency: the route executed on idle stations.
    ///
    /// It ends where the requester's program sees the completion or, for a message, where the
    /// responder's program starts to handle it.
    pub fn unloaded(&self, router: &Router) -> Unloaded {
        let mut stations = Stations::new(router.stations(), false);
        let mut cursor = Cursor::new(Time::ZERO);
        let mut terms: Vec<Term> = Vec::new();
        let mut held = Vec::new();
        let mut position = 0;
        let mut clock = Time::ZERO;
        // Stopping at each visit splits the clock into terms without a second cost function.
        let mut single = Route { visits: Vec::with_capacity(1), ..self.clone() };
        for visit in &self.visits {
            single.visits.clear();
            single.visits.push(visit.clone());
            cursor.restart();
            loop {
                match cursor.advance(&single, &mut stations, &[], &mut || 0, &mut |_| {}) {
                    Advance::At(at) => stations.set_now(at),
                    Advance::Cross { .. } => {}
                    Advance::Wait(_) => unreachable!("an operation alone finds a free in-flight slot"),
                    Advance::Done(_) => break,
                }
            }
            match visit {
                Visit::Acquire { inflight_slots, time: None } => {
                    held.extend(inflight_slots.stations().map(|station| (station, Time::ZERO)));
                }
                Visit::Train(Train { release: Some(_), .. }) => {
                    held.iter_mut().for_each(|(_, time)| *time = cursor.held_time());
                }
                _ => {}
            }
            push_terms(visit, cursor.clock() - clock, router, &mut terms);
            clock = cursor.clock();
            position += 1;
        }
        assert_eq!(position, self.visits.len());
        Unloaded { latency: clock, terms, held }
    }

    /// The latency alone, without its terms.
    pub fn latency(&self, router: &Router) -> Time {
        Reader::new(router).run(self).clock()
    }

    /// The demand: server time by station, requests by pool. In-flight slots count the time that they are
    /// held on idle stations; under load they are held longer, which the twin observes.
    pub fn demand(&self, router: &Router) -> Demand {
        let holds = self.visits.iter().any(|visit| matches!(visit, Visit::Acquire { time: None, .. }));
        self.folded(if holds { Reader::new(router).run(self).held_time() } else { Time::ZERO })
    }

    fn folded(&self, held: Time) -> Demand {
        let mut demand = Demand::default();
        let mut add = |station: StationId, time: Time| {
            if time > Time::ZERO {
                *demand.time.entry(station).or_default() += time;
            }
        };
        for visit in &self.visits {
            match visit {
                Visit::Serve { station, pick: Pick::Class(class), .. } => {
                    *demand.requests.entry((*station, *class)).or_default() += 1;
                }
                Visit::Serve { station, pick, occupancy, .. } => {
                    add(*station, *occupancy);
                    if let Pick::Bank { hottest, .. } = pick {
                        let worst = demand.banks.entry(*station).or_default();
                        *worst = worst.max(*hottest);
                    }
                }
                Visit::Acquire { inflight_slots, time } => {
                    inflight_slots.stations().for_each(|station| add(station, time.unwrap_or(held)));
                }
                Visit::Train(train) => {
                    for hop in &train.hops {
                        add(hop.station, hop.whole);
                    }
                    for requests in &train.requests {
                        add(requests.station, requests.whole);
                    }
                }
                Visit::Delay { .. } | Visit::Mark(..) | Visit::Cross { .. } => {}
            }
        }
        demand
    }

    /// The data packets on every link that the payload passes.
    pub fn ledger(&self, router: &Router) -> Ledger {
        let mut ledger = Ledger::default();
        for visit in &self.visits {
            let Visit::Train(train) = visit else { continue };
            for hop in train.hops.iter().filter(|hop| is_link(hop, router)) {
                let entry =
                    ledger.links.entry(router.stations()[hop.station.index()].name.clone()).or_default();
                let packets = hop.packets(train.bytes);
                entry.data += packets;
                entry.payload += train.bytes;
                entry.framed += train.bytes + Bytes::new(packets * hop.header.get());
            }
        }
        ledger
    }
}

fn is_link(hop: &Hop, router: &Router) -> bool {
    router.stations()[hop.station.index()].wire.is_some()
}

fn push_terms(visit: &Visit, time: Time, router: &Router, terms: &mut Vec<Term>) {
    if time == Time::ZERO {
        return;
    }
    let name = |station: &StationId| router.stations()[station.index()].name.clone();
    match visit {
        Visit::Delay { label, .. } => {
            terms.push(Term { label: label.to_string(), station: None, time });
        }
        Visit::Serve { label, station, .. } => {
            terms.push(Term { label: format!("{label}, {}", name(station)), station: Some(*station), time });
        }
        Visit::Train(train) => {
            let serial = train.hops.iter().filter(|hop| !hop.detached);
            let passes: Time = serial.clone().map(|hop| hop.delay).sum();
            let slowest = serial.max_by_key(|hop| hop.time(train.bytes));
            if passes > Time::ZERO {
                let label = "passes of the data".to_string();
                terms.push(Term { label, station: None, time: passes });
            }
            if let Some(hop) = slowest
                && time > passes
            {
                let label = format!("bytes of the data, slowest at {}", name(&hop.station));
                terms.push(Term { label, station: Some(hop.station), time: time - passes });
            }
        }
        Visit::Acquire { .. } | Visit::Mark(..) | Visit::Cross { .. } => {}
    }
}

impl Demand {
    /// Adds another operation's demand.
    pub fn add(&mut self, other: &Demand) {
        for (station, time) in &other.time {
            *self.time.entry(*station).or_default() += *time;
        }
        for (pool, count) in &other.requests {
            *self.requests.entry(*pool).or_default() += *count;
        }
        for (station, hottest) in &other.banks {
            let worst = self.banks.entry(*station).or_default();
            *worst = worst.max(*hottest);
        }
    }

    /// Operations per second that the stations carry if they do nothing else, and the station that
    /// binds. `None` where nothing is visited.
    pub fn capacity(&self, router: &Router) -> Option<(f64, StationId)> {
        let mut best: Option<(f64, StationId)> = None;
        let mut consider = |rate: f64, station: StationId| {
            if best.is_none_or(|(least, _)| rate < least) {
                best = Some((rate, station));
            }
        };
        for (station, time) in &self.time {
            let seconds = time.as_seconds();
            let servers = match router.kind(*station) {
                // The hottest bank binds before the banks together do.
                StationKind::Banks(_) => {
                    let instances = router.stations()[station.index()].instances as f64;
                    instances / self.banks.get(station).copied().unwrap_or(1.0)
                }
                _ => router.stations()[station.index()].servers() as f64,
            };
            consider(servers / seconds, *station);
        }
        for station in
            self.requests.keys().map(|(station, _)| *station).collect::<std::collections::BTreeSet<_>>()
        {
            if let StationKind::Pool { shared, reserved } = router.kind(station) {
                let rate = pool_rate(shared, reserved, |class| {
                    self.requests.get(&(station, class)).copied().unwrap_or(0) as f64
                });
                consider(rate * router.stations()[station.index()].instances as f64, station);
            }
        }
        best
    }
}

/// Operations per second of a pool that each ask `load(class)` requests of it.
fn pool_rate(shared: &Option<Time>, reserved: &[Option<Time>], load: impl Fn(u8) -> f64) -> f64 {
    let rate = |time: &Option<Time>| time.map_or(0.0, |t| 1.0 / t.as_seconds());
    let loads: Vec<f64> = (0..reserved.len()).map(|class| load(class as u8)).collect();
    // Classes that their own part alone would hold up longest need the shared part; adding them in
    // that order, the least of all the bounds is the rate.
    let mut order: Vec<usize> = (0..loads.len()).filter(|&c| loads[c] > 0.0).collect();
    order.sort_by(|&a, &b| (rate(&reserved[a]) / loads[a]).total_cmp(&(rate(&reserved[b]) / loads[b])));
    let (mut own, mut asked, mut best) = (rate(shared), 0.0, f64::INFINITY);
    for class in order {
        own += rate(&reserved[class]);
        asked += loads[class];
        best = best.min(own / asked);
    }
    best
}
