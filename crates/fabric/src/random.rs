//! Seeded randomness: one generator per consumer.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A generator (xoshiro256++, Blackman and Vigna 2021) whose stream depends on a seed and a label.
#[derive(Clone, Debug)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// The generator for `labels` under `seed`. Different labels give independent streams, and no two
    /// lists of labels are confused.
    pub fn new(seed: u64, labels: &[&str]) -> Rng {
        // FNV-1a mixes the labels; the SplitMix64 expansion inside `seed_from_u64` spreads the result.
        let mut hash = 0xcbf2_9ce4_8422_2325u64;
        let mut mix = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        seed.to_le_bytes().into_iter().for_each(&mut mix);
        for label in labels {
            // 0xff is in no UTF-8 text, so it ends a label without doubt.
            label.bytes().chain([0xff]).for_each(&mut mix);
        }
        Rng(Xoshiro256PlusPlus::seed_from_u64(hash))
    }
}

impl RngCore for Rng {
    fn next_u32(&mut self) -> u32 {
        self.0.next_u32()
    }
    fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }
    fn fill_bytes(&mut self, bytes: &mut [u8]) {
        self.0.fill_bytes(bytes);
    }
}
