//! How popular each record is, from the distribution itself.

use crate::generator::{Zipfian, fnv_hash_64};
use crate::workload::{RequestDistribution, Workload};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, OnceLock};

/// The Zipfian ranks, the hottest first, whose records are found by hashing each.
const FEWEST_HASHED_RANKS: u64 = 1 << 20;
const MOST_HASHED_RANKS: u64 = 1 << 24;
/// The same where records are too many for a table.
const MOST_LISTED_RANKS: u64 = 1 << 22;
/// Records up to which their masses stand in a table (128 MiB at most); beyond, in a sorted list.
const LARGEST_TABLE: u64 = 1 << 24;
/// Ranks whose shares are taken from one straight line, from this rank on.
const RANK_RUN: u64 = 64;
const LINE_FROM_RANK: u64 = 1 << 16;
/// Steps of the grid on which the mass of the other ranks is spread; a power of two.
const GRID: usize = 1 << 18;
/// Groups of like ranks into which the others are cut.
const RANK_GROUPS: u32 = 1 << 14;
/// Records whose shares differ by less than this factor are counted as one class.
const CLASS_WIDTH: f64 = 1.0001;

/// The share of requests that the most popular records receive, computed without sampling.
///
/// It speaks of the requests that choose a record (all but inserts; for a scan, its first record)
/// as they are when the run starts, with `recordcount` records loaded. Shares are from 0 to 1 and
/// add up to 1 over all records; ranks count records from the most popular, 0.
///
/// What each distribution gives:
///
/// - `uniform`, `sequential`: all drawn records alike, exactly.
/// - `hotspot`: two levels, exactly.
/// - `exponential`: a geometric series in the age, cut at the oldest record, exactly.
/// - `latest`: the shares of [`Zipfian`] as Gray's method draws them, exactly; the oldest record has
///   none.
/// - `zipfian`: YCSB hashes 10^10 Zipfian ranks onto the key space, so a record's share is the sum of
///   the ranks that hash onto it, out of what falls on records that exist. The hottest ranks (sixteen for
///   each key, at least 2^20, at most 2^24, or 2^22 beyond 2^24 records) are hashed one by one, so that
///   their records, and ranks that meet on one record, are exact. The others are taken to fall on the
///   records by chance: how many records get how much is the compound Poisson law of those ranks, found
///   with a Fourier transform, added to what the hot ranks gave. Where there are few records that is
///   a uniform addition; where there are many, it is what tells lukewarm records from cold ones.
///   Records whose shares are within 0.01% of each other are counted as alike.
///
///   What this ignores: FNV spreads neighbouring ranks a little more evenly than chance. Against
///   enumeration of 10^9 ranks, `share_of_top` is right within 0.001 up to 10^7 records
///   and within 0.005 at 10^8.
///
/// ```
/// use offpath_workload::{Popularity, Workload};
/// let text = "recordcount=1000\nrequestdistribution=hotspot\n";
/// let popularity = Popularity::new(&Workload::parse(text, "mine").unwrap());
/// assert!((popularity.share_of_top(200) - 0.8).abs() < 1e-12);
/// assert_eq!(popularity.records_for_share(0.4), 100);
/// ```
#[derive(Clone, Debug)]
pub struct Popularity {
    record_count: u64,
    shape: Shape,
}

#[derive(Clone, Debug)]
enum Shape {
    /// Classes of records alike, the most popular first.
    Classes(Vec<Class>),
    Zipfian(Zipfian),
    Geometric {
        rate_per_record: f64,
    },
}

/// Records of one share, with what is more popular.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// Records up to and including this class. A number expected, so not always whole.
    records_up_to: f64,
    /// Share of requests up to and including this class.
    share_up_to: f64,
}

/// What [`Popularity::shared`] keeps: at most so many, since a sweep of `recordcount` asks for each once.
const MOST_KEPT: usize = 16;
type Kept = BTreeMap<String, Arc<OnceLock<Arc<Popularity>>>>;
static KEPT: Mutex<Kept> = Mutex::new(BTreeMap::new());

impl Popularity {
    /// The popularity of the records of `workload`, found once in a process for workloads that read alike.
    ///
    /// ```
    /// use offpath_workload::{Popularity, Workload};
    /// let workload = Workload::parse("recordcount=1000\nrequestdistribution=zipfian\n", "mine").unwrap();
    /// assert!(std::sync::Arc::ptr_eq(&Popularity::shared(&workload), &Popularity::shared(&workload)));
    /// ```
    pub fn shared(workload: &Workload) -> Arc<Popularity> {
        let slot = {
            let mut kept = KEPT.lock().expect("nobody panics with the lock held");
            // The text of a workload is all that it is made of.
            let key = format!("{workload:?}");
            if kept.len() >= MOST_KEPT && !kept.contains_key(&key) {
                kept.clear();
            }
            kept.entry(key).or_default().clone()
        };
        // Whoever asks second waits for the first, and others do not.
        slot.get_or_init(|| Arc::new(Popularity::new(workload))).clone()
    }

    /// The popularity of the records of `workload`.
    ///
    /// A zipfian workload costs from 0.1 s to about 2 s, and up to 300 MiB while it is computed.
    pub fn new(workload: &Workload) -> Popularity {
        let drawn = workload.insert_count;
        let shape = match workload.request_distribution {
            RequestDistribution::Uniform | RequestDistribution::Sequential => {
                Shape::Classes(classes(vec![(1.0, drawn as f64)]))
            }
            RequestDistribution::Hotspot { operation_fraction, .. } => {
                let hot = workload.hot_records() as f64;
                let cold = drawn as f64 - hot;
                Shape::Classes(classes(vec![
                    (operation_fraction / hot.max(1.0), hot),
                    ((1.0 - operation_fraction) / cold.max(1.0), cold),
                ]))
            }
            RequestDistribution::Latest => Shape::Zipfian(Zipfian::new(workload.record_count - 1)),
            RequestDistribution::Exponential { .. } => {
                Shape::Geometric { rate_per_record: workload.exponential_rate_per_record() }
            }
            RequestDistribution::Zipfian => {
                let key_space = workload.key_space();
                let existing = key_space.min(workload.record_count - workload.insert_start);
                Shape::Classes(classes(scrambled(key_space, existing)))
            }
        };
        Popularity { record_count: workload.record_count, shape }
    }

    /// The records that shares are counted over: `recordcount`.
    pub fn record_count(&self) -> u64 {
        self.record_count
    }

    /// The fraction of requests that go to the `count` most popular records.
    pub fn share_of_top(&self, count: u64) -> f64 {
        if count == 0 {
            return 0.0;
        }
        if count >= self.record_count {
            return 1.0;
        }
        match &self.shape {
            Shape::Classes(classes) => {
                let count = count as f64;
                let at = classes.partition_point(|class| class.records_up_to < count);
                let Some(class) = classes.get(at) else { return 1.0 };
                let (records, share) = if at == 0 {
                    (0.0, 0.0)
                } else {
                    (classes[at - 1].records_up_to, classes[at - 1].share_up_to)
                };
                let part = (count - records) / (class.records_up_to - records);
                (share + (class.share_up_to - share) * part).min(1.0)
            }
            Shape::Zipfian(zipfian) => zipfian.share_of_top(count),
            Shape::Geometric { rate_per_record } => {
                (-rate_per_record * count as f64).exp_m1()
                    / (-rate_per_record * self.record_count as f64).exp_m1()
            }
        }
    }

    /// The fraction of requests that go to the record of popularity rank `rank`, from 0; 0 where there
    /// are not so many records.
    pub fn share_of_rank(&self, rank: u64) -> f64 {
        if rank >= self.record_count {
            return 0.0;
        }
        match &self.shape {
            Shape::Zipfian(zipfian) => zipfian.share_of_rank(rank),
            Shape::Geometric { rate_per_record } => {
                (-rate_per_record * rank as f64).exp() * (-rate_per_record).exp_m1()
                    / (-rate_per_record * self.record_count as f64).exp_m1()
            }
            Shape::Classes(_) => (self.share_of_top(rank + 1) - self.share_of_top(rank)).max(0.0),
        }
    }

    /// The fewest records that together receive at least the fraction `share` of requests; all
    /// records where `share` is above 1.
    pub fn records_for_share(&self, share: f64) -> u64 {
        // What rounding leaves below one must not cost all the cold records.
        let wanted = share - 1e-12;
        let (mut low, mut high) = (0, self.record_count);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.share_of_top(middle) >= wanted {
                high = middle;
            } else {
                low = middle + 1;
            }
        }
        low
    }
}

impl Workload {
    /// The numbers of the `count` most popular records, the most popular first, as they are when the run starts; of those
    /// that are alike the first. They get [`Popularity::share_of_top`] of the requests.
    ///
    /// ```
    /// use offpath_workload::Workload;
    /// let workload = Workload::parse("recordcount=9\nrequestdistribution=latest\n", "mine").unwrap();
    /// assert_eq!(workload.hottest_records(3), [8, 7, 6]);
    /// ```
    pub fn hottest_records(&self, count: u64) -> Vec<u64> {
        let all = self.record_count;
        let first = self.insert_start;
        if count == 0 {
            return Vec::new();
        }
        let mut hottest = match self.request_distribution {
            RequestDistribution::Latest | RequestDistribution::Exponential { .. } => {
                return (0..all).rev().take(count as usize).collect();
            }
            RequestDistribution::Zipfian => {
                let key_space = self.key_space();
                let existing = key_space.min(all - first);
                let hashed = hashed_ranks(key_space, existing);
                let hot = hot_masses(&Zipfian::scrambled_ranks(), hashed, key_space, existing);
                let mut hot: Vec<(u64, f64)> = hot.collect();
                hot.sort_unstable_by(|left, right| right.1.total_cmp(&left.1).then(left.0.cmp(&right.0)));
                hot.truncate(count as usize);
                hot.into_iter().map(|(key, _)| first + key).collect()
            }
            // The hot ones of a hotspot are the first of those that are drawn.
            RequestDistribution::Hotspot { .. }
            | RequestDistribution::Uniform
            | RequestDistribution::Sequential => {
                (first..first + self.insert_count).take(count as usize).collect::<Vec<u64>>()
            }
        };
        let missing = (count.min(all) as usize).saturating_sub(hottest.len());
        if missing > 0 {
            let taken: BTreeSet<u64> = hottest.iter().copied().collect();
            hottest.extend((0..all).filter(|key| !taken.contains(key)).take(missing));
        }
        hottest
    }
}

/// Sorts (mass of a record, number of such records) and accumulates; the masses become shares.
fn classes(mut masses: Vec<(f64, f64)>) -> Vec<Class> {
    masses.retain(|&(_, records)| records > 0.0);
    masses.sort_unstable_by(|left, right| right.0.total_cmp(&left.0));
    let total: f64 = masses.iter().map(|&(mass, records)| mass * records).sum();
    let (mut records_up_to, mut mass_up_to) = (0.0, 0.0);
    let mut classes: Vec<Class> = Vec::new();
    let mut first_of_class = f64::INFINITY;
    for (mass, records) in masses {
        records_up_to += records;
        mass_up_to += mass * records;
        let class = Class { records_up_to, share_up_to: mass_up_to / total };
        match classes.last_mut() {
            Some(last) if mass * CLASS_WIDTH >= first_of_class => *last = class,
            _ => {
                classes.push(class);
                first_of_class = mass;
            }
        }
    }
    classes
}

/// The masses of records under the scrambled Zipfian: (mass, number of records), unsorted, for the
/// `existing` first keys of a key space of `key_space`. A mass of 1 is the mean over the key space.
fn scrambled(key_space: u64, existing: u64) -> Vec<(f64, f64)> {
    let ranks = Zipfian::scrambled_ranks();
    let keys = key_space as f64;
    let hashed = hashed_ranks(key_space, existing);
    let hot: Vec<f64> = hot_masses(&ranks, hashed, key_space, existing).map(|(_, mass)| mass).collect();

    // The jumps that the other ranks make, as (mass, expected number of them on one key).
    let jumps = other_ranks(&ranks, hashed, keys);
    let mean: f64 = jumps.iter().map(|&(mass, rate)| mass * rate).sum();
    let deviation = jumps.iter().map(|&(mass, rate)| mass * mass * rate).sum::<f64>().sqrt();
    let largest_jump = jumps.first().map_or(0.0, |&(mass, _)| mass);
    // Half of the grid holds what the hot ranks gave, the other half what the others add, so that
    // their sum does not run over the end.
    let half = mean + 10.0 * deviation + 4.0 * largest_jump;
    let step = 2.0 * half / GRID as f64;
    let place = |grid: &mut [f64], mass: f64, weight: f64| {
        let cell = mass / step;
        let part = cell.fract();
        grid[cell as usize] += weight * (1.0 - part);
        grid[cell as usize + 1] += weight * part;
    };

    let mut law = vec![0.0; GRID];
    let mut drift = 0.0;
    let mut jumps_per_key = 0.0;
    for (mass, rate) in jumps {
        // Jumps finer than the grid are as good as a steady addition.
        if mass < step {
            drift += mass * rate;
        } else {
            place(&mut law, mass, rate);
            jumps_per_key += rate;
        }
    }

    let mut masses = Vec::new();
    let mut given = vec![0.0; GRID];
    given[0] = existing as f64 - hot.len() as f64;
    for mass in hot {
        if mass < half {
            place(&mut given, mass, 1.0);
        } else {
            // So much above the rest, the spread of what is added does not change the order.
            masses.push((mass + mean, 1.0));
        }
    }

    let law = transform(law.into_iter().map(|value| (value, 0.0)).collect());
    let given = transform(given.into_iter().map(|value| (value, 0.0)).collect());
    let sum = law.into_iter().zip(given).map(|((law_real, law_imaginary), (real, imaginary))| {
        let scale = (law_real - jumps_per_key).exp();
        let (sine, cosine) = law_imaginary.sin_cos();
        // The conjugate, so that a second forward transform inverts the first.
        (scale * (real * cosine - imaginary * sine), -scale * (real * sine + imaginary * cosine))
    });
    let records = transform(sum.collect());
    let counted = records
        .into_iter()
        .enumerate()
        .map(|(cell, (real, _))| (cell as f64 * step + drift, (real / GRID as f64).max(0.0)));
    masses.extend(counted);
    masses
}

/// The ranks that are hashed one by one: more for more records, as far as time and memory allow.
fn hashed_ranks(key_space: u64, existing: u64) -> u64 {
    let most = if existing <= LARGEST_TABLE { MOST_HASHED_RANKS } else { MOST_LISTED_RANKS };
    key_space.saturating_mul(16).clamp(FEWEST_HASHED_RANKS, most).next_multiple_of(RANK_RUN)
}

/// The keys below `existing` that the `hashed` hottest ranks hash onto, in their order, each with its mass.
fn hot_masses(
    ranks: &Zipfian,
    hashed: u64,
    key_space: u64,
    existing: u64,
) -> Box<dyn Iterator<Item = (u64, f64)>> {
    let keys = key_space as f64;
    let mut table = if existing <= LARGEST_TABLE { vec![0.0; existing as usize] } else { Vec::new() };
    let mut list: Vec<(u64, f64)> = Vec::new();
    for start in (0..hashed).step_by(RANK_RUN as usize) {
        let share = ranks.share_of_rank(start);
        let slope = (ranks.share_of_rank(start + RANK_RUN) - share) / RANK_RUN as f64;
        for rank in start..start + RANK_RUN {
            let key = fnv_hash_64(rank) % key_space;
            if key >= existing {
                continue;
            }
            // Far from the head a share falls so slowly that a straight line is exact to 1e-7.
            let share = match start {
                0..LINE_FROM_RANK => ranks.share_of_rank(rank),
                _ => share + slope * (rank - start) as f64,
            };
            match table.get_mut(key as usize) {
                Some(mass) => *mass += share * keys,
                None => list.push((key, share * keys)),
            }
        }
    }
    if list.is_empty() {
        return Box::new((0..).zip(table).filter(|(_, mass)| *mass > 0.0));
    }
    list.sort_unstable_by(|left, right| left.0.cmp(&right.0).then(right.1.total_cmp(&left.1)));
    let same_key = list.chunk_by(|left, right| left.0 == right.0);
    let masses = same_key.map(|hits| (hits[0].0, hits.iter().map(|&(_, mass)| mass).sum()));
    Box::new(masses.collect::<Vec<(u64, f64)>>().into_iter())
}

/// The ranks beyond the hottest in groups: (mass of one rank, number of them for each key).
fn other_ranks(ranks: &Zipfian, hashed: u64, keys: f64) -> Vec<(f64, f64)> {
    let last = crate::generator::SCRAMBLED_ITEM_COUNT + 1;
    let ratio = (last as f64 / hashed as f64).ln() / f64::from(RANK_GROUPS);
    let edge = |group: u32| match group {
        RANK_GROUPS => last,
        group => (hashed as f64 * (ratio * f64::from(group)).exp()) as u64,
    };
    let groups = (0..RANK_GROUPS).map(|group| {
        let (start, end) = (edge(group), edge(group + 1));
        let share = ranks.share_of_top(end) - ranks.share_of_top(start);
        let count = (end - start) as f64;
        (share / count * keys, count / keys)
    });
    groups.collect()
}

/// The discrete Fourier transform of a power of two of complex numbers, in place by halves.
fn transform(mut values: Vec<(f64, f64)>) -> Vec<(f64, f64)> {
    let length = values.len();
    let bits = length.trailing_zeros();
    for index in 0..length {
        let mirrored = index.reverse_bits() >> (usize::BITS - bits);
        if index < mirrored {
            values.swap(index, mirrored);
        }
    }
    let turn = -std::f64::consts::TAU / length as f64;
    let roots: Vec<(f64, f64)> = (0..length / 2)
        .map(|index| {
            let (sine, cosine) = (turn * index as f64).sin_cos();
            (cosine, sine)
        })
        .collect();
    let mut half = 1;
    while half < length {
        let stride = length / (2 * half);
        for block in values.chunks_exact_mut(2 * half) {
            let (low, high) = block.split_at_mut(half);
            for ((low, high), &(cosine, sine)) in low.iter_mut().zip(high).zip(roots.iter().step_by(stride)) {
                let turned = (high.0 * cosine - high.1 * sine, high.0 * sine + high.1 * cosine);
                *high = (low.0 - turned.0, low.1 - turned.1);
                *low = (low.0 + turned.0, low.1 + turned.1);
            }
        }
        half *= 2;
    }
    values
}
