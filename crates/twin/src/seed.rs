//! A tree of seeded generators: one consumer's draws never move another's.

use rand_core::{RngCore, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// The generator that every consumer draws from.
pub type Generator = Xoshiro256PlusPlus;

/// A place in the tree of generators, made from a seed and the labels on the way to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seed(u64);

impl Seed {
    /// The root of a run.
    pub fn new(seed: u64) -> Seed {
        Seed(seed)
    }

    /// The place below this one that `label` names. Equal labels give equal places.
    pub fn child(self, label: &str) -> Seed {
        // FNV-1a over the label, then splitmix64 so that near labels lie far apart.
        let mut hash = 0xcbf2_9ce4_8422_2325 ^ self.0;
        for byte in label.bytes() {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
        Seed(mix(hash ^ self.0.rotate_left(32)))
    }

    /// The `index`th place below this one.
    pub fn index(self, index: u64) -> Seed {
        Seed(mix(self.0 ^ mix(index.wrapping_add(1))))
    }

    /// The generator at this place.
    pub fn generator(self) -> Generator {
        Generator::seed_from_u64(self.0)
    }

    /// The seed itself, to print and to replay.
    pub fn value(self) -> u64 {
        self.0
    }
}

/// A number from 0 up to, and without, 1.
pub fn unit(generator: &mut Generator) -> f64 {
    unit_of(generator.next_u64())
}

/// The number from 0 up to, and without, 1 that 64 random bits stand for.
pub fn unit_of(bits: u64) -> f64 {
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

fn mix(mut x: u64) -> u64 {
    x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}
