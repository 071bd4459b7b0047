//! Clients that use the key-value store while things fail, and what they saw.

use super::{
    KvError, Placement, SPARE_SLOTS, StoreBug, StoreClient, StoreConfig, StoreKey, host, soc, value_of,
};
use crate::torture::linear::{self, Action, NotLinearizable, Operation};
use crate::torture::{Menu, Schedule, Tally, Trial, checksum, machine, processors};
use offpath_fabric::{Fabric, Rng, Role};
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// What the clients of a run do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreScenario {
    /// The store.
    pub options: StoreConfig,
    /// Client instances.
    pub clients: u32,
    /// Operations of each client.
    pub operations: u32,
    /// Keys that they share.
    pub keys: u64,
    /// The longest pause between a client's operations.
    pub pause: Time,
    /// The run's seed.
    pub seed: u64,
}

impl StoreScenario {
    /// A small store under a dense load: few keys and slots, so that what can meet does. The seed
    /// chooses the placement, the keys and the pauses. Values span several cache lines, and are too long
    /// to lie within a work request.
    pub fn of(seed: u64) -> StoreScenario {
        let mut random = Rng::new(seed, &["plan"]);
        let placement = Placement::ALL[(random.next_u64() % 6) as usize];
        let keys = 2 + random.next_u64() % 5;
        let pause = Time::from_ns([100, 2_000, 20_000][(random.next_u64() % 3) as usize]);
        let mut options = StoreConfig::sized(keys, 1000).placed(placement);
        options.layout.root_buckets = 1;
        options.layout.cache_slots = 3;
        options.layout.copies = 3;
        options.layout.slots = keys + SPARE_SLOTS;
        options.preload = keys / 2;
        options.warm = (0..2).collect();
        options.inbox = 16;
        options.admit_after = 1;
        options.answer_timeout = Time::from_us(200);
        options.hot_share = 0;
        StoreScenario { options, clients: 5, operations: 40, keys, pause, seed }
    }
}

impl StoreScenario {
    /// When all faults of a schedule that begins within [`StoreScenario::span`] are over.
    fn quiet(&self) -> Time {
        self.span().times(2) + Time::from_ms(4)
    }

    /// About how long a run without faults takes, so that faults can be put into it.
    pub fn span(&self) -> Time {
        (Time::from_ps(self.pause.ps() / 2) + Time::from_us(10)).times(u64::from(self.operations))
    }
}

/// What was seen of a run.
#[derive(Clone, Debug, Default)]
pub struct StoreHistory {
    inner: Rc<Recorder>,
}

#[derive(Debug, Default)]
struct Recorder {
    history: RefCell<Vec<Operation>>,
    next_value: Cell<u64>,
    mixed: RefCell<Vec<String>>,
    unreadable: RefCell<Vec<u64>>,
    failed: Cell<u64>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StoreViolation {
    /// A get returned what nobody stored.
    #[error("{0}")]
    Mixed(String),
    /// A key cannot be read although nothing fails any more.
    #[error("key {0} cannot be read after all faults are over")]
    Unreadable(u64),
    /// No order explains what was seen.
    #[error(transparent)]
    NotLinearizable(#[from] NotLinearizable),
}

/// Values that were there from the start are numbered from here.
const PRELOADED: u64 = 1 << 40;

fn bytes_of(id: u64, length: u32) -> Vec<u8> {
    if id >= PRELOADED {
        return value_of(id - PRELOADED, 0, length);
    }
    let mut value = value_of(id, 1, length);
    value[..8].copy_from_slice(&id.to_le_bytes());
    value
}

impl StoreHistory {
    /// Operations of the run.
    pub fn history(&self) -> Vec<Operation> {
        self.inner.history.borrow().clone()
    }

    /// Operations that ended in an error.
    pub fn failed(&self) -> u64 {
        self.inner.failed.get()
    }

    /// Checks the run.
    pub fn check(&self, plan: &StoreScenario) -> Result<(), StoreViolation> {
        if let Some(mixed) = self.inner.mixed.borrow().first() {
            return Err(StoreViolation::Mixed(mixed.clone()));
        }
        if let Some(key) = self.inner.unreadable.borrow().first() {
            return Err(StoreViolation::Unreadable(*key));
        }
        let initial = |key: u64| (key < plan.options.preload).then_some(PRELOADED + key);
        Ok(linear::check(&self.inner.history.borrow(), initial)?)
    }

    fn begin(&self, operation: Operation) -> usize {
        let mut history = self.inner.history.borrow_mut();
        history.push(operation);
        history.len() - 1
    }

    /// Which value the bytes are.
    fn identify(&self, key: u64, bytes: &[u8], length: u32) -> u64 {
        let id = match bytes.first_chunk::<8>() {
            _ if bytes == bytes_of(PRELOADED + key, length) => PRELOADED + key,
            Some(first) => u64::from_le_bytes(*first),
            None => 0,
        };
        if id == 0 || (id < PRELOADED && id > self.inner.next_value.get()) || bytes != bytes_of(id, length) {
            let start = &bytes[..bytes.len().min(24)];
            self.inner.mixed.borrow_mut().push(format!(
                "a get of key {key} returned {} B that nobody stored, beginning {start:02x?}",
                bytes.len()
            ));
        }
        id
    }
}

impl Trial for StoreScenario {
    type Seen = StoreHistory;

    fn draw(seed: u64, bug: Option<usize>) -> StoreScenario {
        let mut plan = StoreScenario::of(seed);
        plan.options.injected_bug = bug.map(|index| StoreBug::ALL[index]);
        plan
    }

    fn schedule(&self) -> Schedule {
        let menu = Menu {
            horizon: self.span(),
            partitions: [1, 2].map(|client| [machine("client", client), machine("server", 0)]).to_vec(),
            // A host that crashes loses its memory, which the store does not promise to survive.
            crashes: vec![machine("soc", 0), machine("client", 0), machine("client", 3)],
            stations: processors(),
            most: 5,
        };
        Schedule::draw(self.seed, &menu)
    }

    fn alternative(&self) -> &'static str {
        self.options.placement.label()
    }

    /// The roles of a run: the memory server, its card, and the clients.
    fn roles<F: Fabric>(&self, seen: &StoreHistory) -> Vec<Role<F, Result<(), String>>> {
        let (of_host, of_soc) = (self.options.clone(), self.options.clone());
        let run_host = move |fabric: F| {
            let options = of_host.clone();
            async move { host(fabric, options).await.map_err(|error| error.to_string()) }
        };
        let run_soc = move |fabric: F| {
            let options = of_soc.clone();
            async move { soc(fabric, options).await.map_err(|error| error.to_string()) }
        };
        let mut roles = vec![
            Role::new("host", 0, run_host).in_background(),
            Role::new("soc", 0, run_soc).in_background(),
        ];
        for instance in 0..self.clients {
            let (plan, seen) = (self.clone(), seen.clone());
            roles.push(Role::new("client", instance, move |fabric: F| {
                let (plan, seen) = (plan.clone(), seen.clone());
                async move { client(fabric, plan, seen).await.map_err(|error| error.to_string()) }
            }));
        }
        roles
    }

    fn check(&self, seen: &StoreHistory) -> Result<Tally, String> {
        seen.check(self).map_err(|violation| violation.to_string())?;
        let history = seen.history();
        Ok(Tally {
            operations: history.len() as u64,
            unacknowledged: seen.failed(),
            checksum: checksum(history.iter().map(|operation| format!("{operation:?}"))),
        })
    }
}

async fn client<F: Fabric>(fabric: F, plan: StoreScenario, seen: StoreHistory) -> Result<(), KvError> {
    let number = fabric.role().instance;
    let length = plan.options.layout.value_bytes;
    let mut random = fabric.rng("operations");
    let mut client = loop {
        match StoreClient::connect(&fabric, &plan.options).await {
            Ok(client) => break client,
            // The server may be down at the moment, and is up again once nothing fails any more.
            Err(KvError::Disconnected { .. } | KvError::Connect(_)) if fabric.now() < plan.quiet() => {
                fabric.sleep(Time::from_us(100)).await;
            }
            Err(other) => return Err(other),
        }
    };
    for _ in 0..plan.operations {
        let key = random.next_u64() % plan.keys;
        let kind = random.next_u64() % 20;
        fabric.sleep(Time::from_ps(random.next_u64() % plan.pause.ps().max(1))).await;
        let called = fabric.now();
        let begin = |action| seen.begin(Operation { client: number, key, called, returned: None, action });
        let name = StoreKey::from_number(key);
        let (index, done) = match kind {
            0..10 => {
                let index = begin(Action::Read(None));
                let got = client.get(name).await;
                (index, got.map(|value| Action::Read(value.map(|bytes| seen.identify(key, &bytes, length)))))
            }
            10..17 => {
                let id = seen.inner.next_value.get() + 1;
                seen.inner.next_value.set(id);
                let index = begin(Action::Write(id));
                (index, client.put(name, &bytes_of(id, length)).await.map(|()| Action::Write(id)))
            }
            17..19 => {
                let index = begin(Action::Remove(None));
                (index, client.delete(name).await.map(|was| Action::Remove(Some(was))))
            }
            _ => {
                // Copies change nothing that can be seen.
                let _ = client.replicate(name).await;
                continue;
            }
        };
        let returned = fabric.now();
        let mut history = seen.inner.history.borrow_mut();
        match done {
            Ok(action) => {
                history[index].action = action;
                history[index].returned = Some(returned);
            }
            Err(error) => {
                seen.inner.failed.set(seen.inner.failed.get() + 1);
                if !error.is_outcome_unknown() {
                    // It did not happen: as if it had read nothing.
                    history[index].action = Action::Read(None);
                }
            }
        }
    }
    audit(&fabric, &mut client, &plan, &seen).await;
    Ok(())
}

/// Reads every key once nothing fails any more: what cannot be read now is lost.
async fn audit<F: Fabric>(
    fabric: &F,
    client: &mut StoreClient<F>,
    plan: &StoreScenario,
    seen: &StoreHistory,
) {
    fabric.sleep_until(plan.quiet()).await;
    for key in 0..plan.keys {
        let mut left = 4;
        loop {
            let called = fabric.now();
            match client.get(StoreKey::from_number(key)).await {
                Ok(value) => {
                    let id = value.map(|bytes| seen.identify(key, &bytes, plan.options.layout.value_bytes));
                    let action = Action::Read(id);
                    let client = fabric.role().instance;
                    seen.begin(Operation { client, key, called, returned: Some(fabric.now()), action });
                    break;
                }
                // A connection that a fault broke is noticed now.
                Err(_) if left > 0 => left -= 1,
                Err(_) => {
                    seen.inner.unreadable.borrow_mut().push(key);
                    break;
                }
            }
        }
    }
}
