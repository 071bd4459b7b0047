//! The key-value store, by every placement that needs no DMA engine.

use crate::roles::{self, Address, Process, System, Temporary, Verdict, at_last, end, same, until_told};
use offpath_apps::kv::{self, Fetch, KvError, Placement, StoreClient, StoreConfig, StoreKey};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsFabric};
use offpath_workload::{ClientOperation, KeyChooser, OperationChooser, Workload};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::error::Error;
use std::rc::Rc;

/// Those that a backend without DMA engines serves.
pub const PLACEMENTS: [Placement; 4] =
    [Placement::HostOneSided, Placement::SplitOneSided, Placement::SocCacheRead, Placement::SocCacheSend];

/// YCSB's workloads without scans, which a hashed store has no order for.
const WORKLOADS: [(&str, &str); 5] = [
    ("A", include_str!("../../../../workloads/workloada")),
    ("B", include_str!("../../../../workloads/workloadb")),
    ("C", include_str!("../../../../workloads/workloadc")),
    ("D", include_str!("../../../../workloads/workloadd")),
    ("F", include_str!("../../../../workloads/workloadf")),
];
const RECORDS: u64 = 128;
/// Operations of each workload, unless the environment says how many in `OFFPATH_OPERATIONS`.
const OPERATIONS: u64 = 256;
/// An answer of a record fits one UD message of any path MTU of 512 B or more.
const VALUE_BYTES: u32 = 200;
/// Records that the host has before anyone connects.
const PRELOADED: u64 = 64;

fn operations() -> u64 {
    let asked = std::env::var("OFFPATH_OPERATIONS").ok();
    asked.and_then(|text| text.parse().ok()).unwrap_or(OPERATIONS)
}

fn options(placement: Placement) -> StoreConfig {
    let mut options = StoreConfig::sized(2 * RECORDS, VALUE_BYTES).placed(placement);
    options.preload = PRELOADED;
    options.warm = (0..PRELOADED / 2).collect();
    options.admit_after = 1;
    // An emulated machine answers late, and a role that waits its turn later.
    options.answer_timeout = Time::from_ms(200);
    options
}

/// What a role of the store does; `client` uses and ends the others.
pub async fn role(f: VerbsFabric, placement: Placement, others: &[RoleName]) -> Verdict {
    let options = options(placement);
    let early = |error: &KvError| matches!(error, KvError::Connect(_));
    let silent = async || Ok(0);
    match &*f.role().role {
        "host" => until_told(&f, kv::host(f.clone(), options), silent).await,
        "soc" => {
            let service = async {
                let attempt = async || kv::soc(f.clone(), options.clone()).await;
                at_last(&f, attempt, early).await.map_err(|error| std::io::Error::other(error.to_string()))
            };
            until_told(&f, service, async || Ok(0)).await
        }
        _ => {
            use_store(&f, &options).await?;
            for other in others {
                end(&f, other).await?;
            }
            Ok(())
        }
    }
}

async fn connected(
    f: &VerbsFabric,
    options: &StoreConfig,
) -> Result<StoreClient<VerbsFabric>, Box<dyn Error>> {
    let early = |error: &KvError| matches!(error, KvError::Connect(_));
    at_last(f, async || StoreClient::connect(f, options).await, early).await
}

/// A client, and a map that says what the store has to give.
struct Compared {
    client: StoreClient<VerbsFabric>,
    model: BTreeMap<u64, Vec<u8>>,
    random: ChaCha8Rng,
}

impl Compared {
    fn value(&mut self) -> Vec<u8> {
        let mut value = vec![0; VALUE_BYTES as usize];
        self.random.fill_bytes(&mut value);
        value
    }

    async fn get(&mut self, key: u64) -> Verdict {
        let got = self.client.get(StoreKey::from_number(key)).await?;
        if got.as_ref() != self.model.get(&key) {
            return Err(format!("a get of key {key} gave another value than was put").into());
        }
        Ok(())
    }

    async fn put(&mut self, key: u64, value: Vec<u8>) -> Verdict {
        self.client.put(StoreKey::from_number(key), &value).await?;
        self.model.insert(key, value);
        Ok(())
    }

    async fn delete(&mut self, key: u64) -> Verdict {
        let was = self.client.delete(StoreKey::from_number(key)).await?;
        same("whether a deleted key was there", was, self.model.remove(&key).is_some())
    }

    async fn all(&mut self, keys: u64) -> Verdict {
        for key in 0..keys {
            self.get(key).await?;
        }
        Ok(())
    }

    async fn workload(&mut self, name: &str, text: &str) -> Result<u64, Box<dyn Error>> {
        let counts = [("recordcount", RECORDS.to_string()), ("operationcount", operations().to_string())];
        let counts = counts.into_iter().map(|(key, value)| (key.to_string(), value)).collect();
        let workload = Workload::parse(text, name)?.with_overrides(counts)?;
        let (chooser, mut keys) = (OperationChooser::new(&workload), KeyChooser::new(&workload));
        let mut writes = 0;
        for _ in 0..operations() {
            let operation = chooser.next(&mut self.random);
            let key = if operation == ClientOperation::Insert {
                keys.insert()
            } else {
                keys.next(&mut self.random)
            };
            if matches!(operation, ClientOperation::Read | ClientOperation::ReadModifyWrite) {
                self.get(key).await?;
            }
            if operation != ClientOperation::Read {
                let value = self.value();
                self.put(key, value).await?;
                writes += 1;
            }
        }
        Ok(writes)
    }
}

/// Random operations and then YCSB, each answer compared with a map. A read-modify-write counts as a write.
async fn use_store(f: &VerbsFabric, options: &StoreConfig) -> Verdict {
    let client = connected(f, options).await?;
    let model = (0..PRELOADED).map(|key| (key, kv::value_of(key, 0, VALUE_BYTES))).collect();
    let random = ChaCha8Rng::seed_from_u64(f.random_u64());
    let mut store = Compared { client, model, random };
    let began = f.now();
    store.all(PRELOADED + 8).await?;
    for _ in 0..operations() {
        let draw = store.random.next_u64();
        let key = (draw >> 8) % (PRELOADED + 8);
        match draw % 8 {
            0..4 => store.get(key).await?,
            4..7 => {
                let value = store.value();
                store.put(key, value[..(draw >> 32) as usize % value.len()].to_vec()).await?;
            }
            _ => store.delete(key).await?,
        }
    }
    store.all(PRELOADED + 8).await?;
    for key in 0..RECORDS {
        let value = store.value();
        store.put(key, value).await?;
    }
    let mut said = Vec::new();
    for (name, text) in WORKLOADS {
        let writes = store.workload(name, text).await?;
        said.push(format!("{name} {} reads {writes} writes", operations() - writes));
    }
    let keys = store.model.len() as u64;
    store.all(keys).await?;
    let took = (f.now() - began).ps() / 1_000_000_000;
    println!("  {:?} on {}: YCSB {}; {took} ms in all", options.placement, f.processor(), said.join(", "));
    Ok(())
}

/// A card that must fetch by a DMA engine says that this backend has none.
pub fn engine_is_refused(backend: &Verbs) -> Verdict {
    let card = |f: VerbsFabric| async move {
        let options = StoreConfig { fetch: Fetch::Engine("dma".into()), ..options(Placement::SocLookup) };
        match kv::soc(f, options).await {
            Err(KvError::Unsupported(Unsupported { backend, .. })) => same("who refuses", &*backend, "verbs"),
            other => Err(format!("expected a refusal, got {other:?}").into()),
        }
    };
    roles::play(backend.clone(), vec![Role::new("soc", 0, card)])
}

/// The card's process is killed and started again while a client works: it builds its index from the host's
/// records, and no value is lost.
pub fn killed_card(backend: &Verbs) -> Verdict {
    let system = System::Store(Placement::SplitOneSided);
    let files = Temporary::new("killed-card")?;
    let all = roles::addresses(&system.roles())?;
    let start = move |at, all: &[Address], files: &Temporary| Process::start(&system, at, all, &files.0);
    let host = start(1, &all, &files)?;
    let card = Rc::new(RefCell::new(start(2, &all, &files)?));
    let (again, everyone, files) = (card.clone(), all.clone(), Rc::new(files));
    let client = move |f: VerbsFabric| {
        let (card, all, files) = (again.clone(), everyone.clone(), files.clone());
        async move {
            let options = options(Placement::SplitOneSided);
            let model = (0..PRELOADED).map(|key| (key, kv::value_of(key, 0, VALUE_BYTES))).collect();
            let client = connected(&f, &options).await?;
            let random = ChaCha8Rng::seed_from_u64(f.random_u64());
            let mut store = Compared { client, model, random };
            for round in 0..3 {
                for key in 0..16 {
                    let value = store.value();
                    store.put(key, value).await?;
                }
                store.delete(round).await?;
                card.borrow_mut().kill()?;
                *card.borrow_mut() = start(2, &all, &files)?;
                // Gets find the new process themselves, and with it what the old one acknowledged.
                store.all(PRELOADED).await?;
            }
            for other in &system.roles()[1..] {
                end(&f, other).await?;
            }
            Ok(())
        }
    };
    let backend = roles::reachable(backend, all[0].address, &all[1..]);
    roles::play(
        backend,
        vec![Role::new("client", 0, move |f: VerbsFabric| roles::in_time(f.clone(), client(f)))],
    )?;
    host.ended()?;
    Rc::into_inner(card).map_or(Ok(()), |card| card.into_inner().ended())
}
