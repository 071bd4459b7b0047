//! What stations show between two moments: how busy each machine's were, and what passed.

use crate::backend::{Moments, Recorded};
use crate::statistics::{Interval, batch_means};
use offpath_quantity::Time;
use offpath_route::{Demand, Router, StationId, StationKind};
use std::collections::{BTreeMap, BTreeSet};

/// Batches of a window for the interval of its rate.
pub const BATCHES: u32 = 20;

/// The moments between the batches of a window, its beginning and its end among them.
pub fn edges(from: Time, window: Time) -> impl Iterator<Item = Time> {
    let of = move |index| u128::from(window.ps()) * u128::from(index) / u128::from(BATCHES);
    (0..=BATCHES).map(move |index| from + Time::from_ps(of(index) as u64))
}

/// The stations at one moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Snapshot {
    /// When.
    pub at: Time,
    /// Server time that passed so far, by station and machine.
    pub served: Vec<Vec<Time>>,
    /// The same of each part of a pool, the shared one first; none of other stations.
    pub parts: Vec<Vec<Vec<Time>>>,
    /// What of it the banks served that hot lines are in, by station; none for other stations.
    pub served_hot: Vec<Time>,
    /// How long in-flight slots were held so far, by station; booked time for stations that are not held.
    pub held: Vec<Time>,
    /// Requests that packet cores passed so far, by station; 0 for other stations.
    pub passed: Vec<f64>,
    /// In-flight slots taken so far by station; 0 for stations that are not held.
    pub granted: Vec<u64>,
    /// Events processed so far.
    pub events: u64,
    /// Operations in flight.
    pub in_flight: usize,
}

impl Snapshot {
    /// How busy each station was since `earlier`, machine by machine.
    pub fn usage(&self, earlier: &Snapshot, router: &Router) -> Vec<Usage> {
        let span = self.at.saturating_sub(earlier.at);
        let of = |(index, served): (usize, &Vec<Time>)| {
            let station = StationId(index as u16);
            if let StationKind::Pool { shared, reserved } = router.kind(station) {
                let before = earlier.parts.get(index).map_or(&[][..], Vec::as_slice);
                return Usage::of_pool(station, (*shared, reserved), before, &self.parts[index], span);
            }
            let before = earlier.served.get(index).map_or(&[][..], Vec::as_slice);
            Usage::of(router, station, before, served, span)
        };
        self.served.iter().enumerate().map(of).collect()
    }

    /// The share of its server time that each station was busy since `earlier`, as the mean over its
    /// machines, which hides a full one: [`Snapshot::usage`] tells them apart.
    pub fn utilization(&self, earlier: &Snapshot, router: &Router) -> Vec<(StationId, f64)> {
        self.usage(earlier, router).iter().map(|usage| (usage.station, usage.mean())).collect()
    }

    /// The mean time that an in-flight slot of `station` was held since `earlier`; `None` where none was taken.
    pub fn mean_hold(&self, earlier: &Snapshot, station: StationId) -> Option<Time> {
        let index = station.index();
        let before = |all: &[u64]| all.get(index).copied().unwrap_or(0);
        let count = before(&self.granted) - before(&earlier.granted);
        let held = self.held.get(index)?.saturating_sub(earlier.held.get(index).copied().unwrap_or_default());
        (count > 0).then(|| Time::from_ps(held.ps() / count))
    }
}

/// How busy a station was in a span of time, on each machine of its role.
#[derive(Clone, Debug, PartialEq)]
pub struct Usage {
    /// The station.
    pub station: StationId,
    /// The share of its server time that passed serving, from 0 to 1, by machine; of a pool what passed over what may pass of
    /// the endpoint that has the least left: nobody else uses the part that is reserved for one.
    pub machines: Vec<f64>,
}

impl Usage {
    /// What server time `before` and `after` a span of time say; machines that `before` lacks had served
    /// nothing.
    pub(crate) fn of(
        router: &Router,
        station: StationId,
        before: &[Time],
        after: &[Time],
        span: Time,
    ) -> Usage {
        let info = &router.stations()[station.index()];
        let servers = info.servers() as f64 / info.instances.max(1) as f64;
        let share = |(machine, after): (usize, &Time)| {
            let served = after.saturating_sub(before.get(machine).copied().unwrap_or_default());
            let offered = span.as_seconds() * servers;
            if offered > 0.0 { served.as_seconds() / offered } else { 0.0 }
        };
        Usage { station, machines: after.iter().enumerate().map(share).collect() }
    }

    /// The same of a pool, by what each of its parts served.
    fn of_pool(
        station: StationId,
        (shared, reserved): (Option<Time>, &[Option<Time>]),
        before: &[Vec<Time>],
        after: &[Vec<Time>],
        span: Time,
    ) -> Usage {
        let rate = |interval: Option<Time>| interval.map_or(0.0, |interval| 1.0 / interval.as_seconds());
        let share = |(machine, after): (usize, &Vec<Time>)| {
            let before = before.get(machine).map_or(&[][..], Vec::as_slice);
            let passed = |part: usize, interval: Option<Time>| {
                let served = after[part].saturating_sub(before.get(part).copied().unwrap_or_default());
                served.as_seconds() * rate(interval)
            };
            let common = passed(0, shared);
            let of_endpoint = |(index, own): (usize, &Option<Time>)| {
                let (passed, room) = (passed(index + 1, *own), rate(shared) + rate(*own));
                // Who sends nothing has all of its own left.
                if own.is_some() && passed == 0.0 {
                    0.0
                } else {
                    (common + passed) / (room * span.as_seconds())
                }
            };
            let busiest = reserved.iter().enumerate().map(of_endpoint).fold(0.0, f64::max);
            // Of a pool of which nothing is reserved.
            let alone = if shared.is_some() && reserved.iter().all(Option::is_none) {
                common / (rate(shared) * span.as_seconds())
            } else {
                0.0
            };
            if span > Time::ZERO { busiest.max(alone) } else { 0.0 }
        };
        Usage { station, machines: after.iter().enumerate().map(share).collect() }
    }

    /// The mean over the machines, which hides a full one among idle ones.
    pub fn mean(&self) -> f64 {
        self.machines.iter().sum::<f64>() / self.machines.len().max(1) as f64
    }

    /// The busiest machine, counted from 0 and the first of equals, and its share; `None` where no
    /// machine has the station.
    pub fn fullest(&self) -> Option<(u32, f64)> {
        let all = self.machines.iter().enumerate().map(|(machine, share)| (machine as u32, *share));
        all.reduce(|fullest, one| if one.1 > fullest.1 { one } else { fullest })
    }
}

/// By how many times half its 95% interval a mean may be off before it is no longer scatter.
const SCATTER: f64 = 1.5;

/// What a request demands in the mean.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MeanDemand {
    /// Server time in picoseconds, by station.
    time: BTreeMap<StationId, f64>,
    /// Requests to packet cores, by pool and class.
    requests: BTreeMap<(StationId, u8), f64>,
    /// The part of it that goes to the bank of the hot line, where it is known.
    hot: BTreeMap<StationId, f64>,
    /// The largest share of a station's server time that one bank must give.
    banks: BTreeMap<StationId, f64>,
    /// By how much more or less was seen than is taken for the long run, in picoseconds or requests by station.
    off: BTreeMap<StationId, f64>,
}

/// The station that a mean request fills first.
struct Filled {
    station: StationId,
    /// Server time in picoseconds, or requests, that a request asks it for.
    asked: f64,
    /// By which share of that the requests of the window asked for more or less.
    off: f64,
}

impl MeanDemand {
    /// Adds `count` requests of one kind, of so many in all.
    pub fn add(&mut self, demand: &Demand, share: f64) {
        for (station, time) in &demand.time {
            *self.time.entry(*station).or_default() += time.ps() as f64 * share;
        }
        for (pool, count) in &demand.requests {
            *self.requests.entry(*pool).or_default() += *count as f64 * share;
        }
        for (station, hottest) in &demand.banks {
            let time = demand.time.get(station).map_or(0.0, |time| time.ps() as f64);
            *self.hot.entry(*station).or_default() += time * hottest * share;
        }
        self.skew(&demand.banks);
    }

    /// Of banks that are reached unevenly what the bank of the hot line is asked for: while requests
    /// gather before it the others serve more than they will once they have.
    fn hottest(&self, router: &Router, station: StationId) -> Option<f64> {
        let StationKind::Banks(banks) = router.kind(station) else { return None };
        let hot = *self.hot.get(&station)?;
        let even = self.time.get(&station)? / *banks as f64;
        (hot > even * (1.0 + 1e-9)).then_some(hot)
    }

    /// Adds a kind of request, `share` of all, that its steps expect to ask for `expected` and of which `seen`
    /// were run.
    ///
    /// Where a station is full it serves what it can, whichever cases the requests of a window happened to
    /// take, so what a request asks for in the long run is what tells how many pass: the expected mean
    /// wherever the seen one is less, or no further from it than it scatters, and the seen one elsewhere. What ends
    /// in a window asked for less where long requests outlast it, and no station passes more for that. By how much the
    /// seen one differs widens the interval of [`throughput`]. How long in-flight slots are held, and which banks are
    /// reached, is seen alone.
    pub fn add_seen(&mut self, share: f64, expected: &MeanDemand, seen: Option<&Recorded>, router: &Router) {
        let none = Recorded::default();
        let seen = seen.unwrap_or(&none);
        // What is taken, and by how much more was seen.
        let mean = |expected: f64, moments: Option<&Moments>| {
            let moments = moments.copied().unwrap_or_default();
            let mean = moments.mean(seen.requests);
            let is_scatter = mean <= expected + SCATTER * moments.half_width(seen.requests);
            if seen.requests == 0 || is_scatter { (expected, mean - expected) } else { (mean, 0.0) }
        };
        let stations: BTreeSet<StationId> = expected.time.keys().chain(seen.time.keys()).copied().collect();
        for station in stations {
            let expected = expected.time.get(&station).copied().unwrap_or(0.0);
            let moments = seen.time.get(&station);
            let (asked, off) = match (router.kind(station), moments) {
                (StationKind::InflightSlots(_) | StationKind::Banks(_), Some(moments)) => {
                    (moments.mean(seen.requests), 0.0)
                }
                _ => mean(expected, moments),
            };
            *self.time.entry(station).or_default() += share * asked;
            *self.off.entry(station).or_default() += share * off;
        }
        let pools: BTreeSet<(StationId, u8)> =
            expected.requests.keys().chain(seen.pool.keys()).copied().collect();
        for pool in pools {
            let expected = expected.requests.get(&pool).copied().unwrap_or(0.0);
            let (asked, off) = mean(expected, seen.pool.get(&pool));
            *self.requests.entry(pool).or_default() += share * asked;
            *self.off.entry(pool.0).or_default() += share * off;
        }
        self.skew(&seen.banks);
    }

    /// What requests ask for by their steps: server time in seconds by station, and requests by pool and
    /// class.
    pub fn of_steps(
        seconds: impl IntoIterator<Item = (StationId, f64)>,
        requests: impl IntoIterator<Item = ((StationId, u8), f64)>,
    ) -> MeanDemand {
        MeanDemand {
            time: seconds.into_iter().map(|(station, seconds)| (station, seconds * 1e12)).collect(),
            requests: requests.into_iter().collect(),
            ..MeanDemand::default()
        }
    }

    fn skew(&mut self, banks: &BTreeMap<StationId, f64>) {
        for (station, hottest) in banks {
            let worst = self.banks.entry(*station).or_default();
            *worst = worst.max(*hottest);
        }
    }

    /// The station that is full first.
    fn fullest(&self, router: &Router) -> Option<Filled> {
        let of_time = self.time.iter().map(|(station, time)| {
            let servers = router.stations()[station.index()].servers() as f64;
            let skew = match router.kind(*station) {
                StationKind::Banks(banks) => {
                    self.banks.get(station).map_or(1.0, |hottest| hottest * *banks as f64)
                }
                _ => 1.0,
            };
            (*station, *time, time * skew / servers)
        });
        let mut pools: BTreeMap<StationId, (f64, f64)> = BTreeMap::new();
        for ((station, class), count) in &self.requests {
            let StationKind::Pool { shared, reserved } = router.kind(*station) else { continue };
            let rate = |part: Option<Time>| part.map_or(0.0, |interval| 1.0 / interval.ps() as f64);
            let pool = pools.entry(*station).or_insert((0.0, rate(*shared)));
            pool.0 += count;
            pool.1 += rate(reserved.get(usize::from(*class)).copied().flatten());
        }
        let of_pools = pools.into_iter().map(|(station, (count, rate))| {
            let instances = router.stations()[station.index()].instances as f64;
            (station, count, count / rate / instances)
        });
        let all = of_time.chain(of_pools).filter(|(_, asked, _)| *asked > 0.0);
        all.reduce(|most, one| if one.2 > most.2 { one } else { most }).map(|(station, asked, _)| {
            let off = self.off.get(&station).copied().unwrap_or(0.0);
            Filled { station, asked, off: (off / asked).abs() }
        })
    }
}

/// The requests that passed per second between the `edges` of a window's batches, with the interval of
/// that rate.
///
/// It is what the station that is full first served in the window, over what a request asks of it; the interval
/// reaches as much further as the requests of the window asked for more or less than they do in the long run. The
/// number of those that `ended` in each batch tells the same only of long windows: many that are in
/// flight together may end together, and a window that holds their ends holds little of their work, so
/// that it would show more than a link carries. Where in-flight slots are full first, how long they are held
/// depends on the load, so the ends are counted, and are no more than the shortest holds allow.
pub fn throughput(
    router: &Router,
    edges: &[Snapshot],
    ended: &[u64],
    demand: &MeanDemand,
) -> Option<Interval> {
    let (first, last) = (edges.first()?, edges.last()?);
    let per_second =
        |passed: f64, from: &Snapshot, to: &Snapshot| passed / to.at.saturating_sub(from.at).as_seconds();
    let of = |passed: &dyn Fn(usize, &Snapshot, &Snapshot) -> f64, total: f64, off: f64| {
        let batches = edges.windows(2).enumerate();
        let rates =
            batches.map(|(index, pair)| per_second(passed(index, &pair[0], &pair[1]), &pair[0], &pair[1]));
        let interval = batch_means(&rates.collect::<Vec<f64>>())?;
        // Batches differ by a picosecond in length, so the mean of their rates is not quite the whole.
        let mean = per_second(total, first, last);
        let half = (interval.high - interval.low) / 2.0 + mean * off;
        Some(Interval { mean, low: mean - half, high: mean + half })
    };
    let fullest = demand.fullest(router).map(|filled| (filled.station.index(), filled.asked, filled.off));
    let served = |snapshot: &Snapshot, index: usize| {
        snapshot.served[index].iter().map(|time| time.ps() as f64).sum::<f64>()
    };
    match fullest {
        Some((index, asked, off))
            if !matches!(router.stations()[index].kind, StationKind::InflightSlots(_)) =>
        {
            let hottest = demand.hottest(router, StationId(index as u16));
            let hot = |snapshot: &Snapshot| snapshot.served_hot[index].ps() as f64;
            let is_pool = matches!(router.stations()[index].kind, StationKind::Pool { .. });
            let passed = |from: &Snapshot, to: &Snapshot| match hottest {
                Some(asked) => (hot(to) - hot(from)) / asked,
                None if is_pool => (to.passed[index] - from.passed[index]) / asked,
                None => (served(to, index) - served(from, index)) / asked,
            };
            of(&|_, from, to| passed(from, to), passed(first, last), off)
        }
        held => {
            let most = held.map_or(f64::INFINITY, |(index, asked, _)| {
                (served(last, index) - served(first, index)) / asked
            });
            let total = ended.iter().sum::<u64>() as f64;
            let share = if total > most { most / total } else { 1.0 };
            of(&|batch, _, _| ended.get(batch).map_or(0.0, |ended| *ended as f64 * share), total * share, 0.0)
        }
    }
}
