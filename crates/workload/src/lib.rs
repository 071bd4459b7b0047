//! YCSB workloads: the property files, what they draw, and how popular each record is.
//!
//! A [`Workload`] is read from a YCSB core workload file, as Java `Properties` reads it and with
//! YCSB's own defaults ([`KEYS`] lists every key and its default). An [`OperationChooser`], a
//! [`KeyChooser`] and a [`ScanLengthChooser`] draw from it in constant time with the caller's own
//! seeded generator. A [`Popularity`] gives without sampling what a cache needs to know: the share
//! of requests that the most popular records receive.
//!
//! The reference is YCSB's `CoreWorkload` and its generators (package `site.ycsb`); where the drawn
//! distribution differs from the textbook one, this crate follows what YCSB draws and says so.
//!
//! ```
//! use offpath_workload::{KeyChooser, ClientOperation, OperationChooser, Popularity, Workload};
//! use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
//!
//! let text = "recordcount=100000\nreadproportion=0.5\nupdateproportion=0.5\nrequestdistribution=zipfian\n";
//! let workload = Workload::parse(text, "mine").unwrap();
//! assert_eq!(workload.mix.share(ClientOperation::Update), 0.5);
//!
//! let mut random = ChaCha8Rng::seed_from_u64(7);
//! let operation = OperationChooser::new(&workload).next(&mut random);
//! let key = KeyChooser::new(&workload).next(&mut random);
//! assert!(matches!(operation, ClientOperation::Read | ClientOperation::Update));
//! assert!(key < 100_000);
//!
//! // A cache of one tenth of the records serves 45% of the requests: less than a plain Zipfian over
//! // 100,000 records would promise, because YCSB's tail is 10^10 ranks long.
//! let hit_ratio = Popularity::new(&workload).share_of_top(10_000);
//! assert!((hit_ratio - 0.449).abs() < 0.001);
//! ```

mod generator;
mod popularity;
pub mod properties;
mod workload;

pub use generator::{
    FieldLengthChooser, KeyChooser, OperationChooser, SCRAMBLED_ITEM_COUNT, SCRAMBLED_ZETA,
    ScanLengthChooser, ZIPFIAN_THETA, Zipfian, fnv_hash_64, zeta,
};
pub use popularity::Popularity;
pub use workload::{
    ClientOperation, FieldLengthDistribution, InsertOrder, KEYS, OperationMix, PropertyKey,
    RequestDistribution, ScanLengthDistribution, Warning, WarningKind, Workload, WorkloadError,
};
