//! What a workload draws: operations, keys, scan lengths and field lengths.
//!
//! Each chooser takes the caller's generator and draws 64-bit words from it alone, so the same seed
//! gives the same draws on every machine and with every release of the generator crates.

use rand::Rng;

use crate::workload::{
    ClientOperation, FieldLengthDistribution, RequestDistribution, ScanLengthDistribution, Workload,
};

/// The Zipfian exponent YCSB uses everywhere (`ZipfianGenerator.ZIPFIAN_CONSTANT`).
pub const ZIPFIAN_THETA: f64 = 0.99;

/// The ranks that YCSB's scrambled Zipfian draws from before hashing (`ITEM_COUNT`).
///
/// The generator is built over ranks 0 to this number inclusive, one more than its zeta counts.
pub const SCRAMBLED_ITEM_COUNT: u64 = 10_000_000_000;

/// `zeta(SCRAMBLED_ITEM_COUNT, ZIPFIAN_THETA)`, as YCSB states it (`ZETAN`).
pub const SCRAMBLED_ZETA: f64 = 26.46902820178302;

/// Redraws before a hashed key that no record has yet is replaced by a uniformly drawn one.
const MOST_REDRAWS: u32 = 4096;

/// A uniform number in [0, 1) of 53 bits.
fn unit(random: &mut impl Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1u64 << 53) as f64
}

/// A uniform integer in [0, `bound`), by the high half of a product: the bias is below `bound` / 2^64.
fn below(bound: u64, random: &mut impl Rng) -> u64 {
    ((u128::from(random.next_u64()) * u128::from(bound)) >> 64) as u64
}

/// The 64-bit Fowler-Noll-Vo hash of a number's eight bytes as YCSB's `Utils.fnvhash64` computes it,
/// sign dropped.
///
/// ```
/// assert_eq!(offpath_workload::fnv_hash_64(0), 6_284_781_860_667_377_211);
/// ```
pub fn fnv_hash_64(number: u64) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325_u64;
    for byte in number.to_le_bytes() {
        hash = (hash ^ u64::from(byte)).wrapping_mul(1_099_511_628_211);
    }
    hash.cast_signed().unsigned_abs()
}

/// The generalised harmonic number: the sum of `i^-theta` for `i` from 1 to `count`.
///
/// The first terms are added one by one and the rest by the Euler-Maclaurin formula, so the cost
/// does not grow with `count` and the relative error stays below 1e-12.
///
/// ```
/// use offpath_workload::{SCRAMBLED_ITEM_COUNT, SCRAMBLED_ZETA, zeta};
/// assert_eq!(zeta(2, 1.0), 1.5);
/// assert!((zeta(SCRAMBLED_ITEM_COUNT, 0.99) - SCRAMBLED_ZETA).abs() < 1e-6);
/// ```
pub fn zeta(count: u64, theta: f64) -> f64 {
    const EXACT_TERMS: u64 = 1024;
    // Small terms first: they would be lost in a large sum.
    let head: f64 = (1..=count.min(EXACT_TERMS)).rev().map(|item| (item as f64).powf(-theta)).sum();
    if count <= EXACT_TERMS {
        return head;
    }
    let (first, last) = (EXACT_TERMS as f64, count as f64);
    let span = (last / first).ln();
    let rise = 1.0 - theta;
    let integral = first.powf(rise) * if rise.abs() < 1e-12 { span } else { (rise * span).exp_m1() / rise };
    let value = |x: f64| x.powf(-theta);
    let slope = |x: f64| -theta * x.powf(-theta - 1.0);
    let third = |x: f64| -theta * (theta + 1.0) * (theta + 2.0) * x.powf(-theta - 3.0);
    head + integral + (value(last) - value(first)) / 2.0 + (slope(last) - slope(first)) / 12.0
        - (third(last) - third(first)) / 720.0
}

/// Ranks from 0, the most popular, drawn as YCSB's `ZipfianGenerator` draws them (Gray et al.,
/// "Quickly Generating Billion-Record Synthetic Databases", SIGMOD 1994), with
/// theta = [`ZIPFIAN_THETA`].
///
/// Ranks 0 and 1 have their exact Zipfian shares; the others come from a continuous approximation,
/// which gives rank 2 about a fifth more than `3^-theta` would. [`Zipfian::share_of_rank`] states what
/// is drawn.
///
/// ```
/// use offpath_workload::Zipfian;
/// let zipfian = Zipfian::new(1000);
/// assert!((zipfian.share_of_top(1000) - 1.0).abs() < 1e-12);
/// assert!(zipfian.share_of_rank(0) > 0.12);
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Zipfian {
    item_count: u64,
    first_item_count: u64,
    zeta_of_items: f64,
    eta: f64,
}

impl Zipfian {
    /// A distribution over `item_count` ranks; 0 is taken as 1.
    pub fn new(item_count: u64) -> Zipfian {
        let item_count = item_count.max(1);
        Zipfian::with_zeta(item_count, zeta(item_count, ZIPFIAN_THETA))
    }

    /// The ranks that YCSB's scrambled Zipfian hashes onto the records.
    pub fn scrambled_ranks() -> Zipfian {
        Zipfian::with_zeta(SCRAMBLED_ITEM_COUNT + 1, SCRAMBLED_ZETA)
    }

    fn with_zeta(item_count: u64, zeta_of_items: f64) -> Zipfian {
        let mut zipfian = Zipfian { item_count, first_item_count: item_count, zeta_of_items, eta: 0.0 };
        zipfian.set_eta();
        zipfian
    }

    fn set_eta(&mut self) {
        // With two items or fewer, ranks 0 and 1 cover all draws.
        if self.item_count > 2 {
            let first = self.first_item_count as f64;
            self.eta = (1.0 - (2.0 / first).powf(1.0 - ZIPFIAN_THETA)) / (1.0 - self.share_of_first_two());
        }
    }

    fn share_of_first_two(&self) -> f64 {
        (1.0 + 0.5f64.powf(ZIPFIAN_THETA)) / self.zeta_of_items
    }

    /// Adds one item, at constant cost.
    fn grow(&mut self) {
        self.item_count += 1;
        // YCSB keeps the first item count in eta, which has no meaning where that is below three.
        if self.first_item_count < 3 {
            self.first_item_count = self.item_count;
        }
        self.zeta_of_items += (self.item_count as f64).powf(-ZIPFIAN_THETA);
        self.set_eta();
    }

    /// Draws one rank, from 0.
    pub fn next(&self, random: &mut impl Rng) -> u64 {
        let drawn = unit(random);
        let scaled = drawn * self.zeta_of_items;
        if scaled < 1.0 || self.item_count == 1 {
            return 0;
        }
        if scaled < 1.0 + 0.5f64.powf(ZIPFIAN_THETA) || self.item_count == 2 {
            return 1;
        }
        let position = (self.eta * drawn - self.eta + 1.0).powf(1.0 / (1.0 - ZIPFIAN_THETA));
        ((self.item_count as f64 * position) as u64).min(self.item_count - 1)
    }

    /// The share of draws that are among the `count` most popular ranks, from 0 to 1.
    pub fn share_of_top(&self, count: u64) -> f64 {
        match count {
            0 => 0.0,
            _ if count >= self.item_count => 1.0,
            1 => 1.0 / self.zeta_of_items,
            2 => self.share_of_first_two(),
            _ => {
                let below_all = (count as f64 / self.item_count as f64).ln() * (1.0 - ZIPFIAN_THETA);
                1.0 + below_all.exp_m1() / self.eta
            }
        }
    }

    /// The share of draws that are the rank `rank`, from 0; nothing beyond the last.
    pub fn share_of_rank(&self, rank: u64) -> f64 {
        if rank < 2 || rank >= self.item_count || self.item_count <= 3 {
            return self.share_of_top(rank.saturating_add(1)) - self.share_of_top(rank);
        }
        // The difference of two shares near 1 would lose its digits.
        let rise = 1.0 - ZIPFIAN_THETA;
        let rank = rank as f64;
        (rank / self.item_count as f64).powf(rise) * (rise * (1.0 / rank).ln_1p()).exp_m1() / self.eta
    }

    /// The mean rank drawn.
    fn mean_rank(&self) -> f64 {
        let items = self.item_count as f64;
        let rise = 1.0 - ZIPFIAN_THETA;
        let mut mean = (1.0 - self.share_of_top(1)) + (1.0 - self.share_of_top(2));
        if self.item_count > 3 {
            let powers = zeta(self.item_count - 1, -rise) - zeta(2, -rise);
            mean += (items - 3.0 - powers * items.powf(-rise)) / self.eta;
        }
        mean
    }
}

/// Draws operations in the proportions of a workload, as YCSB's `DiscreteGenerator` does.
#[derive(Clone, Debug)]
pub struct OperationChooser {
    /// Each operation that occurs, with the share of all operations up to and including it.
    up_to: Vec<(ClientOperation, f64)>,
}

impl OperationChooser {
    /// A chooser for the mix of `workload`.
    pub fn new(workload: &Workload) -> OperationChooser {
        let mut sum = 0.0;
        let drawn = ClientOperation::ALL.into_iter().filter(|&operation| workload.mix.share(operation) > 0.0);
        let up_to = drawn.map(|operation| {
            sum += workload.mix.share(operation);
            (operation, sum)
        });
        OperationChooser { up_to: up_to.collect() }
    }

    /// Draws one operation.
    pub fn next(&self, random: &mut impl Rng) -> ClientOperation {
        let drawn = unit(random);
        let found = self.up_to.iter().find(|&&(_, up_to)| drawn < up_to).or(self.up_to.last());
        found.map_or(ClientOperation::Read, |&(operation, _)| operation)
    }
}

#[derive(Clone, Debug)]
enum Keys {
    Uniform,
    Scrambled { ranks: Zipfian, key_space: u64 },
    Latest { ages: Zipfian },
    Hotspot { hot_records: u64, operation_fraction: f64 },
    Sequential { next: u64 },
    Exponential { rate_per_record: f64 },
}

/// Draws the record numbers that operations other than inserts work on, as YCSB does.
///
/// Record numbers start at 0; [`Workload::key_name`] gives the key a store sees. Which records each
/// distribution can draw:
///
/// - `uniform`, `hotspot`, `sequential`: `insertstart` and the `insertcount` records from there.
///   In `hotspot` the first `insertcount * hotspotdatafraction` of them are the hot ones.
/// - `zipfian`: a rank of [`Zipfian::scrambled_ranks`] is hashed onto a key space that starts at
///   `insertstart` and holds the `insertcount` records, one more, and twice the expected inserts
///   (`operationcount * insertproportion`): YCSB leaves room for records still to come, and counts one
///   too many. A key that no record has yet is drawn again. Should that fail 4096 times, a record is
///   drawn uniformly, where YCSB would go on.
/// - `latest`: the newest record less a Zipfian age. The oldest record is never drawn, since YCSB
///   builds the ages over one item fewer than there are records.
/// - `exponential`: the newest record less an exponential age, drawn again where no record is that old.
///
/// YCSB narrows record numbers to 32 bits; this chooser does not.
///
/// ```
/// use offpath_workload::{KeyChooser, Workload};
/// use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
/// let workload = Workload::parse("recordcount=3\nrequestdistribution=sequential", "mine").unwrap();
/// let (mut keys, mut random) = (KeyChooser::new(&workload), ChaCha8Rng::seed_from_u64(1));
/// let drawn: Vec<u64> = (0..4).map(|_| keys.next(&mut random)).collect();
/// assert_eq!(drawn, [0, 1, 2, 0]);
/// assert_eq!(keys.insert(), 3);
/// ```
#[derive(Clone, Debug)]
pub struct KeyChooser {
    keys: Keys,
    first: u64,
    count: u64,
    newest: u64,
}

impl KeyChooser {
    /// A chooser for the request distribution of `workload`, all `recordcount` records being loaded.
    pub fn new(workload: &Workload) -> KeyChooser {
        let record_count = workload.record_count.max(1);
        let count = workload.insert_count.clamp(1, record_count);
        let keys = match workload.request_distribution {
            RequestDistribution::Uniform => Keys::Uniform,
            RequestDistribution::Zipfian => {
                Keys::Scrambled { ranks: Zipfian::scrambled_ranks(), key_space: workload.key_space() }
            }
            RequestDistribution::Latest => Keys::Latest { ages: Zipfian::new(record_count - 1) },
            RequestDistribution::Hotspot { operation_fraction, .. } => {
                Keys::Hotspot { hot_records: workload.hot_records().min(count), operation_fraction }
            }
            RequestDistribution::Sequential => Keys::Sequential { next: 0 },
            RequestDistribution::Exponential { .. } => {
                Keys::Exponential { rate_per_record: workload.exponential_rate_per_record() }
            }
        };
        KeyChooser {
            keys,
            first: workload.insert_start.min(record_count - 1),
            count,
            newest: record_count - 1,
        }
    }

    /// Draws the record number of one request.
    pub fn next(&mut self, random: &mut impl Rng) -> u64 {
        match &mut self.keys {
            Keys::Uniform => self.first + below(self.count, random),
            Keys::Scrambled { ranks, key_space } => {
                for _ in 0..MOST_REDRAWS {
                    let key = self.first + fnv_hash_64(ranks.next(random)) % *key_space;
                    if key <= self.newest {
                        return key;
                    }
                }
                self.first + below(self.newest - self.first + 1, random)
            }
            Keys::Latest { ages } => self.newest - ages.next(random).min(self.newest),
            Keys::Hotspot { hot_records, operation_fraction } => {
                let hot = unit(random) < *operation_fraction;
                let cold_records = self.count - *hot_records;
                if hot && *hot_records > 0 || cold_records == 0 {
                    self.first + below((*hot_records).max(1), random)
                } else {
                    self.first + *hot_records + below(cold_records, random)
                }
            }
            Keys::Sequential { next } => {
                let key = self.first + *next;
                *next = (*next + 1) % self.count;
                key
            }
            Keys::Exponential { rate_per_record } => {
                // Drawing only among ages that exist gives the same law as drawing again.
                let oldest = -(-*rate_per_record * (self.newest as f64 + 1.0)).exp_m1();
                let age = -(-unit(random) * oldest).ln_1p() / *rate_per_record;
                self.newest - (age as u64).min(self.newest)
            }
        }
    }

    /// Inserts one record: returns its number, which can be drawn from now on.
    pub fn insert(&mut self) -> u64 {
        self.newest += 1;
        if let Keys::Latest { ages } = &mut self.keys
            && self.newest > 1
        {
            ages.grow();
        }
        self.newest
    }
}

/// Draws how many records a scan reads, from `minscanlength` to `maxscanlength` inclusive.
#[derive(Clone, Debug)]
pub struct ScanLengthChooser {
    lengths: Lengths,
}

impl ScanLengthChooser {
    /// A chooser for the scan lengths of `workload`.
    pub fn new(workload: &Workload) -> ScanLengthChooser {
        let (low, high) = (workload.min_scan_length, workload.max_scan_length);
        let lengths = match workload.scan_length_distribution {
            ScanLengthDistribution::Uniform => Lengths::uniform(low, high),
            ScanLengthDistribution::Zipfian => Lengths::zipfian(low, high),
        };
        ScanLengthChooser { lengths }
    }

    /// Draws the number of records of one scan.
    pub fn next(&self, random: &mut impl Rng) -> u64 {
        self.lengths.next(random)
    }

    /// The mean number of records of a scan.
    pub fn mean(&self) -> f64 {
        self.lengths.mean()
    }
}

/// Draws the length of one field in bytes.
#[derive(Clone, Debug)]
pub struct FieldLengthChooser {
    lengths: Lengths,
}

impl FieldLengthChooser {
    /// A chooser for the field lengths of `workload`.
    pub fn new(workload: &Workload) -> FieldLengthChooser {
        let (low, high) = (workload.min_field_length_bytes, workload.field_length_bytes);
        let lengths = match workload.field_length_distribution {
            FieldLengthDistribution::Constant => Lengths::uniform(high, high),
            FieldLengthDistribution::Uniform => Lengths::uniform(low, high),
            FieldLengthDistribution::Zipfian => Lengths::zipfian(low, high),
        };
        FieldLengthChooser { lengths }
    }

    /// Draws the length of one field, in bytes.
    pub fn next(&self, random: &mut impl Rng) -> u64 {
        self.lengths.next(random)
    }

    /// The mean length of a field, in bytes.
    pub fn mean_bytes(&self) -> f64 {
        self.lengths.mean()
    }
}

#[derive(Clone, Debug)]
enum Lengths {
    Uniform { low: u64, count: u64 },
    Zipfian { low: u64, above: Zipfian },
}

impl Lengths {
    fn uniform(low: u64, high: u64) -> Lengths {
        Lengths::Uniform { low, count: high.saturating_sub(low) + 1 }
    }

    fn zipfian(low: u64, high: u64) -> Lengths {
        Lengths::Zipfian { low, above: Zipfian::new(high.saturating_sub(low) + 1) }
    }

    fn next(&self, random: &mut impl Rng) -> u64 {
        match self {
            Lengths::Uniform { low, count } => low + below(*count, random),
            Lengths::Zipfian { low, above } => low + above.next(random),
        }
    }

    fn mean(&self) -> f64 {
        match self {
            Lengths::Uniform { low, count } => *low as f64 + (*count - 1) as f64 / 2.0,
            Lengths::Zipfian { low, above } => *low as f64 + above.mean_rank(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zeta_agrees_with_direct_summation() {
        for theta in [0.99, 0.5, 1.0, 1.3, -0.01] {
            let direct: f64 = (1..=1_000_000u64).rev().map(|item| (item as f64).powf(-theta)).sum();
            let relative = (zeta(1_000_000, theta) - direct).abs() / direct;
            assert!(relative < 1e-12, "theta {theta}: {relative:e}");
        }
    }

    #[test]
    fn zipfian_shares_add_up_and_fall() {
        for items in [1, 2, 3, 4, 5, 100, 10_000] {
            let zipfian = Zipfian::new(items);
            let shares: Vec<f64> = (0..items).map(|rank| zipfian.share_of_rank(rank)).collect();
            assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{items}");
            assert!(shares.is_sorted_by(|left, right| left >= right), "{items}");
            let mean: f64 = shares.iter().enumerate().map(|(rank, share)| rank as f64 * share).sum();
            assert!((zipfian.mean_rank() - mean).abs() <= 1e-9 * (1.0 + mean), "{items}");
        }
    }
}
