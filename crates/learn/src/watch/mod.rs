//! Counters of a machine beside what a plan expects of them: rates by difference, never lifetimes.

mod readings;
mod table;

pub use readings::{Counted, CounterKey, CounterReadings, NoReading};
pub use table::{
    COUNTERS, CounterMeaning, CounterPlace, CounterScope, CounterTrouble, ServedVerb, SpeaksOf, TlpKind,
};

use offpath_route::WireWay;
use std::collections::{BTreeMap, BTreeSet};

/// The least that a packet has beside its payload where a counter counts headers: LRH, BTH and ICRC of InfiniBand.
pub const LEAST_PACKET_HEADER: f64 = 24.0;
/// The most: Ethernet with a VLAN, IPv6, UDP, BTH, RETH, ICRC and the frame's check sequence.
pub const MOST_PACKET_HEADER: f64 = 102.0;
/// The most that a TLP has beside its payload.
const MOST_TLP_HEADER: f64 = 24.0;
/// How many a counter of requests holds before it begins anew: the card's own are of 32 bits.
const HELD: u64 = 1 << 32;
/// Bytes of a completion entry.
const ENTRY: f64 = 64.0;
/// What is let pass where a plan gives no interval, of what a request moves: less than a tenth is nothing, as in
/// [`diagnose`](crate::diagnose).
pub const LET_PASS: f64 = 0.1;

/// What passes a direction of a port or link for an endpoint, a request of the plan in the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedLink {
    /// The station.
    pub station: String,
    /// Which direction of a port or link it is.
    pub way: WireWay,
    /// The endpoint that the bytes go to or come from.
    pub endpoint: String,
    /// The role of the machine.
    pub machine: String,
    /// What the station carries, in bytes per second, on one machine.
    pub capacity_bytes_per_s: f64,
    /// Packets that are always sent.
    pub packets: f64,
    /// Acknowledgements, which may be fewer.
    pub acknowledgements: f64,
    /// TLPs of read requests.
    pub read_requests: f64,
    /// Visits of work requests and completion entries.
    pub control: f64,
    /// Payload.
    pub payload_bytes: f64,
}

/// An endpoint, and the requests that reach it, a request of the plan in the mean.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedEndpoint {
    /// Its name.
    pub endpoint: String,
    /// The role of its machine.
    pub machine: String,
    /// How many machines of that role take part.
    pub machines: f64,
    /// Whether it is a processor of the card itself.
    pub of_card: bool,
    /// READs.
    pub reads: f64,
    /// WRITEs.
    pub writes: f64,
    /// Atomics.
    pub atomics: f64,
    /// Messages that cross the card and pass no port.
    pub inside: f64,
}

/// What a plan expects.
#[derive(Clone, Debug, PartialEq)]
pub struct PlannedTraffic {
    /// Requests per second of the best mix, or the load that was asked for.
    pub req_per_s: f64,
    /// Its 80% interval; a load has none.
    pub req_per_s_80: (f64, f64),
    /// By station and endpoint.
    pub links: Vec<PlannedLink>,
    /// By endpoint.
    pub endpoints: Vec<PlannedEndpoint>,
}

impl PlannedTraffic {
    /// The rates of requests that the plan lets pass: its interval, and of a load that was asked for, which has none, a tenth
    /// to either side.
    fn range(&self) -> (f64, f64) {
        let (low, high) = self.req_per_s_80;
        if low < high { (low, high) } else { passing(low, high) }
    }
}

/// At which rate of requests counters are expected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateBasis {
    /// The one that the user states.
    Given(f64),
    /// The one that counters of requests show.
    Observed(f64),
    /// The plan's own, since nothing else is known.
    Planned,
}

/// A counter in an interval: the sum of the chosen devices.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedCounter {
    /// Where it is read.
    pub place: CounterPlace,
    /// Its name.
    pub name: String,
    /// Its row of the table.
    pub meaning: &'static CounterMeaning,
    /// Bytes, packets, TLPs or requests per second.
    pub per_s: f64,
    /// The station that it speaks of; none where it speaks of none.
    pub station: Option<String>,
    /// Bytes as a share of what the station carries.
    pub utilization: Option<f64>,
    /// From how much to how much is expected; none where the plan says nothing of it, with the reason.
    pub expected: Result<(f64, f64), &'static str>,
}

impl WatchedCounter {
    /// What is counted over the nearest end of what is expected; 1 within, none where nothing is expected.
    pub fn share(&self) -> Option<f64> {
        let (low, high) = self.expected.ok()?;
        Some(share(self.per_s, low, high))
    }
}

fn share(value: f64, low: f64, high: f64) -> f64 {
    match () {
        () if value < low => value / low,
        () if value > high => value / high,
        () => 1.0,
    }
}

/// The rate of requests beside the plan's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WatchedRate {
    /// What counters of requests show; none where they are not there.
    pub observed_per_s: Option<f64>,
    /// From how much to how much it should be.
    pub expected_per_s: (f64, f64),
}

impl WatchedRate {
    /// As [`WatchedCounter::share`].
    pub fn share(&self) -> Option<f64> {
        let (low, high) = self.expected_per_s;
        self.observed_per_s.map(|rate| share(rate, low, high))
    }
}

/// A counter that gives no rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoRate {
    /// Which.
    pub key: CounterKey,
    /// What it did.
    pub counted: Counted,
}

impl NoRate {
    /// Whether it counts what is lost, of which then nobody knows.
    pub fn loses(&self) -> bool {
        if let Counted::Unknown { .. } = self.counted {
            return CounterMeaning::is_of_card(self.key.place, &self.key.name);
        }
        let meaning = CounterMeaning::of(self.key.place, &self.key.name);
        matches!(meaning.map(|meaning| meaning.speaks_of), Some(SpeaksOf::Trouble(trouble)) if trouble.loses())
    }
}

/// What counters say of the time between two readings.
#[derive(Clone, Debug, PartialEq)]
pub struct WatchedInterval {
    /// When the first reading was taken, in nanoseconds since 1970.
    pub from_ns: u64,
    /// When the second one was.
    pub to_ns: u64,
    /// At which rate of requests the others are expected.
    pub basis: RateBasis,
    /// That rate.
    pub rate: WatchedRate,
    /// Where the rate is observed and the plan sends requests elsewhere, too: how many READs, WRITEs and atomics of a request
    /// reach a machine of this endpoint by the plan. The rate takes that for granted.
    pub presumed_served: Option<f64>,
    /// Counters that speak of the plan or of trouble, in the order of the table.
    pub counters: Vec<WatchedCounter>,
    /// Counters without a rate.
    pub without_rate: Vec<NoRate>,
    /// RDMA devices whose counters moved and are added up.
    pub devices: BTreeSet<String>,
    /// Counters that no row of the table has.
    pub unknown: u64,
    /// Counters that no device is told of and that are left out, since devices are chosen.
    pub untold: u64,
}

/// Where a plan and a card differ.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// What differs: a counter, or the rate of requests.
    pub what: String,
    /// The station that it speaks of.
    pub station: Option<String>,
    /// What is there, over the nearest end of what is expected.
    pub share: f64,
    /// What to look at next.
    pub next: &'static str,
}

/// What is watched.
#[derive(Clone, Debug)]
pub struct Watch<'a> {
    /// What the plan expects.
    pub planned: &'a PlannedTraffic,
    /// The endpoint whose machine and function the counters are of.
    pub at: &'a PlannedEndpoint,
    /// The rate of requests that the user states, where one is stated.
    pub rate: Option<f64>,
    /// RDMA devices that count; all where it is empty.
    pub devices: &'a [String],
}

const BY_REQUESTS: &str = "the rate of requests is taken from it";
const INSIDE: &str = "the plan's requests cross the card between its own endpoints too, which this counts and the plan has no \
                      packets for";
const NOTHING: &str = "the plan's requests move nothing here";
const NOT_HERE: &str = "counts at the card's own processors: name one of them by `--at`";

impl Watch<'_> {
    /// What counters say of an interval.
    pub fn interval(
        &self,
        from_ns: u64,
        to_ns: u64,
        counted: &BTreeMap<&CounterKey, Counted>,
    ) -> WatchedInterval {
        let seconds = to_ns.saturating_sub(from_ns) as f64 / 1e9;
        let mut without_rate = Vec::new();
        let mut sums: BTreeMap<usize, BTreeMap<(CounterPlace, &str), Option<u64>>> = BTreeMap::new();
        let mut devices = BTreeSet::new();
        let (mut unknown, mut untold) = (0, 0);
        let most = self.most_requests(counted, seconds);
        for (key, counted) in counted {
            if !self.counts(key) {
                let is_untold = key.device.is_none() && CounterMeaning::of(key.place, &key.name).is_some();
                untold += u64::from(is_untold);
                continue;
            }
            let Some(meaning) = CounterMeaning::of(key.place, &key.name) else {
                unknown += 1;
                if let Counted::Grew { by: by @ 1.., .. } = *counted
                    && CounterMeaning::is_ominous(&key.name)
                {
                    without_rate.push(NoRate { key: (*key).clone(), counted: Counted::Unknown { by } });
                }
                continue;
            };
            let index = COUNTERS.iter().position(|row| row == meaning).expect("it is a row of the table");
            let sum = sums.entry(index).or_default().entry((key.place, &key.name)).or_insert(Some(0));
            match *counted {
                Counted::Grew { by, to }
                    if matches!(meaning.speaks_of, SpeaksOf::Requests(_))
                        && to < HELD
                        && most >= HELD as f64 / 2.0 =>
                {
                    *sum = None;
                    without_rate
                        .push(NoRate { key: (*key).clone(), counted: Counted::MayHaveWrapped { by } });
                }
                Counted::Grew { by, .. } => {
                    *sum = sum.and_then(|sum| sum.checked_add(by));
                    let is_rdma = !matches!(meaning.speaks_of, SpeaksOf::Nothing(_));
                    devices.extend(key.device.clone().filter(|_| by > 0 && is_rdma));
                }
                counted => {
                    *sum = None;
                    without_rate.push(NoRate { key: (*key).clone(), counted });
                }
            }
        }
        let rates: Vec<(CounterPlace, String, &'static CounterMeaning, f64)> = sums
            .iter()
            .flat_map(|(index, counters)| {
                counters.iter().map(move |(key, sum)| (&COUNTERS[*index], key, sum))
            })
            .filter_map(|(meaning, (place, name), sum)| {
                let per_s = (*sum)? as f64 * meaning.worth_at(*place) as f64 / seconds;
                per_s.is_finite().then(|| (*place, name.to_string(), meaning, per_s))
            })
            .collect();
        let observed_per_s = self.observed(&rates);
        let basis = match (self.rate, observed_per_s) {
            (Some(rate), _) => RateBasis::Given(rate),
            (None, Some(rate)) => RateBasis::Observed(rate),
            (None, None) => RateBasis::Planned,
        };
        let expected_per_s = match basis {
            RateBasis::Given(rate) => passing(rate, rate),
            _ => self.planned.range(),
        };
        let counters = rates.into_iter().map(|(place, name, meaning, per_s)| {
            let (station, utilization, moved) = self.moved(meaning, per_s);
            let expected = moved.and_then(|(low, high)| match basis {
                RateBasis::Planned => Ok((low * expected_per_s.0, high * expected_per_s.1)),
                RateBasis::Observed(_) if self.is_alone(meaning) => Err(BY_REQUESTS),
                RateBasis::Given(rate) | RateBasis::Observed(rate) => Ok(passing(low * rate, high * rate)),
            });
            WatchedCounter { place, name, meaning, per_s, station, utilization, expected }
        });
        WatchedInterval {
            from_ns,
            to_ns,
            basis,
            rate: WatchedRate { observed_per_s, expected_per_s },
            presumed_served: self.presumed_served().filter(|_| matches!(basis, RateBasis::Observed(_))),
            counters: counters.collect(),
            without_rate,
            devices,
            unknown,
            untold,
        }
    }

    fn counts(&self, key: &CounterKey) -> bool {
        let is_named = |device: &String| self.devices.iter().any(|own| own == device);
        !key.is_rdma() || self.devices.is_empty() || key.device.as_ref().is_some_and(is_named)
    }

    /// How many requests of a verb may have reached a device: as many as packets did where those are counted, or as the plan
    /// or the user has it.
    fn most_requests(&self, counted: &BTreeMap<&CounterKey, Counted>, seconds: f64) -> f64 {
        let packets = counted.iter().filter_map(|(key, counted)| {
            let meaning = CounterMeaning::of(key.place, &key.name)?;
            match (meaning.speaks_of, counted) {
                (SpeaksOf::Port { inbound: true, bytes: false, .. }, Counted::Grew { by, .. }) => {
                    Some(*by as f64)
                }
                _ => None,
            }
        });
        let rate = self.rate.unwrap_or(0.0).max(self.planned.range().1);
        let served = [ServedVerb::Read, ServedVerb::Write, ServedVerb::Atomic].map(|verb| self.served(verb));
        packets.fold(rate * served.into_iter().fold(0.0, f64::max) * seconds, f64::max)
    }

    fn served(&self, verb: ServedVerb) -> f64 {
        let served = match verb {
            ServedVerb::Read => self.at.reads,
            ServedVerb::Write => self.at.writes,
            ServedVerb::Atomic => self.at.atomics,
        };
        served / self.at.machines
    }

    /// Requests per second, by the counters of requests that reach the endpoint: of all verbs that the plan sends there.
    fn observed(&self, rates: &[(CounterPlace, String, &'static CounterMeaning, f64)]) -> Option<f64> {
        let (mut counted, mut planned) = (0.0, 0.0);
        for verb in [ServedVerb::Read, ServedVerb::Write, ServedVerb::Atomic] {
            if self.served(verb) > 0.0 {
                let found =
                    rates.iter().find(|(_, _, meaning, _)| meaning.speaks_of == SpeaksOf::Requests(verb));
                counted += found?.3;
                planned += self.served(verb);
            }
        }
        (planned > 0.0 && counted > 0.0).then(|| counted / planned)
    }

    /// What a request asks of a machine of this endpoint, where it asks something of other endpoints too.
    fn presumed_served(&self) -> Option<f64> {
        let asked = |one: &PlannedEndpoint| one.reads + one.writes + one.atomics > 0.0;
        let is_elsewhere =
            self.planned.endpoints.iter().any(|one| one.endpoint != self.at.endpoint && asked(one));
        let all = [ServedVerb::Read, ServedVerb::Write, ServedVerb::Atomic];
        is_elsewhere.then(|| all.into_iter().map(|verb| self.served(verb)).sum())
    }

    /// Whether the rate of requests is taken from this counter alone.
    fn is_alone(&self, meaning: &CounterMeaning) -> bool {
        let all = [ServedVerb::Read, ServedVerb::Write, ServedVerb::Atomic];
        let served = all.iter().filter(|verb| self.served(**verb) > 0.0).count();
        matches!(meaning.speaks_of, SpeaksOf::Requests(_)) && served == 1
    }

    /// The station that a counter speaks of, how busy it is by it, and from how much to how much a request moves.
    #[allow(clippy::type_complexity)]
    fn moved(
        &self,
        meaning: &CounterMeaning,
        per_s: f64,
    ) -> (Option<String>, Option<f64>, Result<(f64, f64), &'static str>) {
        let here = |way: WireWay| {
            let is_here = move |link: &&PlannedLink| link.way == way && link.machine == self.at.machine;
            self.planned.links.iter().filter(is_here)
        };
        match meaning.speaks_of {
            SpeaksOf::Port { inbound, bytes, scope } => {
                let way = if inbound { WireWay::Receive } else { WireWay::Transmit };
                let own =
                    |link: &&PlannedLink| scope == CounterScope::Port || link.endpoint == self.at.endpoint;
                let (mut low, mut high) = (0.0, 0.0);
                for link in here(way).filter(own) {
                    let most = link.packets + link.acknowledgements;
                    match bytes {
                        true => {
                            low += link.payload_bytes + LEAST_PACKET_HEADER * link.packets;
                            high += link.payload_bytes + MOST_PACKET_HEADER * most;
                        }
                        false => (low, high) = (low + link.packets, high + most),
                    }
                }
                let any = here(way).next();
                let station = any.map(|link| link.station.clone());
                let busy = any.filter(|_| bytes).map(|link| per_s / link.capacity_bytes_per_s);
                let moved = match scope {
                    CounterScope::Function if self.at.inside > 0.0 => Err(INSIDE),
                    _ => self.a_machine(low, high),
                };
                (station, busy, moved)
            }
            SpeaksOf::Tlps { .. } if !self.at.of_card => (None, None, Err(NOT_HERE)),
            SpeaksOf::Tlps { kind, bytes } => {
                let way = match kind {
                    TlpKind::OutboundCompletions => WireWay::TowardsNic,
                    _ => WireWay::AwayFromNic,
                };
                // The same TLPs pass each link on the way: the first one stands for all.
                let Some(link) = here(way).find(|link| link.endpoint == self.at.endpoint) else {
                    return (None, None, Err(NOTHING));
                };
                let few = if kind == TlpKind::InboundReads { link.read_requests } else { link.packets };
                let many = few + link.control;
                let (low, high) = match bytes {
                    true => (
                        link.payload_bytes,
                        link.payload_bytes + MOST_TLP_HEADER * many + ENTRY * link.control,
                    ),
                    false => (few, many),
                };
                let busy = bytes.then(|| per_s / link.capacity_bytes_per_s);
                (Some(link.station.clone()), busy, self.a_machine(low, high))
            }
            SpeaksOf::Requests(verb) => {
                let served = self.served(verb);
                (None, None, if served > 0.0 { Ok((served, served)) } else { Err(NOTHING) })
            }
            SpeaksOf::Trouble(_) => (None, None, Err("a healthy run has none")),
            SpeaksOf::Nothing(why) => (None, None, Err(why)),
        }
    }

    /// What one machine of the role sees of a request.
    fn a_machine(&self, low: f64, high: f64) -> Result<(f64, f64), &'static str> {
        let machines = self.at.machines;
        if high > 0.0 { Ok((low / machines, high / machines)) } else { Err(NOTHING) }
    }
}

fn passing(low: f64, high: f64) -> (f64, f64) {
    (low * (1.0 - LET_PASS), high * (1.0 + LET_PASS))
}

impl WatchedInterval {
    /// Whether anything was compared with the plan.
    pub fn is_compared(&self) -> bool {
        self.rate.observed_per_s.is_some() || self.counters.iter().any(|counter| counter.share().is_some())
    }

    /// Where plan and card differ, the largest difference first.
    pub fn differences(&self) -> Vec<Difference> {
        let mut found = Vec::new();
        if let Some(share) = self.rate.share().filter(|share| *share != 1.0) {
            let next = if share < 1.0 { RATE_LOW } else { RATE_HIGH };
            found.push(Difference { what: "requests".to_string(), station: None, share, next });
        }
        for counter in &self.counters {
            let Some(share) = counter.share().filter(|share| *share != 1.0) else { continue };
            let next = match (self.basis, share < 1.0) {
                (RateBasis::Planned, true) => RATE_LOW,
                (RateBasis::Planned, false) => RATE_HIGH,
                (_, is_low) => next_step(counter.meaning.speaks_of, is_low),
            };
            let (what, station) = (counter.name.clone(), counter.station.clone());
            found.push(Difference { what, station, share, next });
        }
        // A counter that stands still is the farthest.
        found.sort_by(|a, b| b.share.ln().abs().total_cmp(&a.share.ln().abs()));
        found
    }

    /// What a healthy run has none of and this one has.
    pub fn troubles(&self) -> impl Iterator<Item = (&WatchedCounter, CounterTrouble)> {
        self.counters.iter().filter_map(|counter| match counter.meaning.speaks_of {
            SpeaksOf::Trouble(trouble) if counter.per_s > 0.0 => Some((counter, trouble)),
            _ => None,
        })
    }
}

const RATE_LOW: &str = "ask first whether as much was asked for: `--rate` says how much. If it was, what no counter speaks of may \
                        be full, or the card carries less: `offpath diagnose` on a benchmark's log of the same path";
const RATE_HIGH: &str = "the card carries more than planned: `offpath calibrate` on its own logs, and plan on the profile that it writes";

fn next_step(speaks_of: SpeaksOf, is_low: bool) -> &'static str {
    match (speaks_of, is_low) {
        (SpeaksOf::Port { bytes: true, .. }, true) => {
            "requests carry less than the design says: its payloads, or another alternative is run than planned"
        }
        (SpeaksOf::Port { bytes: true, .. }, false) => {
            "more is moved than the design says: larger payloads, other traffic on the port, or retransmissions, which counters \
             of trouble show"
        }
        (SpeaksOf::Port { .. }, true) => {
            "fewer packets than the design says: payloads are smaller or batched, or another alternative is run than planned"
        }
        (SpeaksOf::Port { .. }, false) => {
            "more packets than the design says: a smaller path MTU (`ibv_devinfo -v`), other traffic, or retransmissions"
        }
        (SpeaksOf::Tlps { .. }, true) => {
            "fewer TLPs than the design says: another memory is reached than planned, or larger TLPs than the profile's"
        }
        (SpeaksOf::Tlps { .. }, false) => {
            "more TLPs than the design says: smaller ones (MaxPayload and read completions: `offpath collect`), or other users of \
             the card's memory"
        }
        (SpeaksOf::Requests(_), _) => {
            "verbs are mixed otherwise than planned: the shares of the alternatives that the program takes"
        }
        (SpeaksOf::Trouble(trouble), _) => trouble.next(),
        (SpeaksOf::Nothing(next), _) => next,
    }
}
