//! A writer of the replicated log while things fail, and what the replicas kept.

use super::Fault;
use crate::kv::{hash, value_of};
use crate::replog::{self, Alternative, Log, LogError, Options, Primary, entries};
use offpath_fabric::{Fabric, Rng, Role, RoleName};
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the writer of a run does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The log.
    pub options: Options,
    /// Writes, by all tasks together.
    pub writes: u32,
    /// Tasks that write side by side.
    pub tasks: u32,
    /// The longest pause between a task's writes.
    pub pause: Time,
    /// Whether the primary is gone for good at some time, which only its backups outlast.
    pub loses_primary: bool,
    /// The run's seed.
    pub seed: u64,
}

impl Plan {
    /// A log of small chunks and segments with `chain` behind it. The seed chooses the alternative.
    pub fn of(seed: u64, chain: Vec<RoleName>) -> Plan {
        let mut random = Rng::new(seed, &["plan"]);
        let all = [Alternative::A1, Alternative::A2, Alternative::A3, Alternative::A2AndA3];
        let alternative = all[(random.next_u64() % 4) as usize];
        let pause = Time::from_us([1, 10, 40][(random.next_u64() % 3) as usize]);
        let options = Options {
            chunk_bytes: 700,
            segment_bytes: 6000,
            slots: 4,
            patience: Time::from_us(200),
            ..Options::new(alternative, chain)
        };
        let loses_primary = random.next_u64() % 4 == 0;
        Plan { options, writes: 40, tasks: 3, pause, loses_primary, seed }
    }

    /// The faults of the plan itself: the first backup crashes, and a little later the primary does for
    /// good.
    pub fn loss(&self) -> Vec<Fault> {
        if !self.loses_primary {
            return Vec::new();
        }
        let mut random = Rng::new(self.seed, &["loss"]);
        let at = Time::from_us(60) + Time::from_ps(random.next_u64() % self.span().ps());
        let crash = |role: &RoleName, at, restart_after| {
            let RoleName { role, instance } = role.clone();
            Fault::Crash { role, instance, at, restart_after }
        };
        let gone = crash(&RoleName::new("host", 0), at + Time::from_us(5), Time::from_ms(10_000));
        let first = self.options.chain.first().map(|first| crash(first, at, Time::from_us(300)));
        first.into_iter().chain([gone]).collect()
    }

    /// About how long a run without faults takes, so that faults can be put into it.
    pub fn span(&self) -> Time {
        let each = Time::from_ps(self.pause.ps() / 2) + Time::from_us(20);
        each.times(u64::from(self.writes / self.tasks.max(1)))
    }

    /// When every write has ended, whatever a schedule within [`Plan::span`] did.
    fn quiet(&self) -> Time {
        self.span().times(2) + Time::from_ms(12)
    }

    /// When the replicas' files are compared.
    fn compared(&self) -> Time {
        self.quiet() + Time::from_ms(4)
    }
}

#[derive(Clone, Debug)]
struct Write {
    id: u64,
    called: Time,
    /// When it was acknowledged, as which entries.
    acknowledged: Option<(Time, u64, u64)>,
}

/// What was seen of a run.
#[derive(Clone, Debug, Default)]
pub struct Seen {
    inner: Rc<Recorder>,
}

type Files = Vec<(String, Vec<u8>)>;

#[derive(Debug, Default)]
struct Recorder {
    writes: RefCell<Vec<Write>>,
    files: RefCell<BTreeMap<RoleName, Files>>,
    errors: RefCell<Vec<String>>,
    finished: Cell<bool>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// A role failed.
    #[error("{0}")]
    Failed(String),
    /// Writes did not end although nothing fails any more.
    #[error("writes still wait after all faults are over")]
    Stuck,
    /// A replica's files differ from the primary's.
    #[error("{replica} has {has} entries and other bytes than the primary, which has {primary} entries")]
    Differs {
        /// Which.
        replica: RoleName,
        /// Its entries.
        has: usize,
        /// The primary's.
        primary: usize,
    },
    /// An acknowledged write is not where it was acknowledged.
    #[error("{replica} does not have write {id}, which was acknowledged as entries {first} to {last}")]
    Lost {
        /// Who lost it.
        replica: RoleName,
        /// Which write.
        id: u64,
        /// Its first entry.
        first: u64,
        /// Its last.
        last: u64,
    },
    /// A write that began after another was acknowledged comes before it.
    #[error("write {later} began after write {earlier} was acknowledged, and stands before it")]
    Reordered {
        /// The write that was acknowledged.
        earlier: u64,
        /// The other.
        later: u64,
    },
}

fn payload(id: u64) -> Vec<u8> {
    // Up to three chunks; half of each can be compressed.
    let length = 8 + (hash(id) % 1800) as u32;
    let mut bytes = value_of(id, 2, length);
    let half = bytes.len() / 2;
    bytes[half..].fill(id as u8);
    bytes
}

impl Seen {
    /// Writes, and how many of them were acknowledged.
    pub fn counts(&self) -> (usize, usize) {
        let writes = self.inner.writes.borrow();
        (writes.len(), writes.iter().filter(|write| write.acknowledged.is_some()).count())
    }

    /// The files of every replica at the end.
    pub fn files(&self) -> BTreeMap<RoleName, Vec<(String, Vec<u8>)>> {
        self.inner.files.borrow().clone()
    }

    /// Judges the run.
    pub fn judge(&self, plan: &Plan) -> Result<(), Violation> {
        if let Some(error) = self.inner.errors.borrow().first() {
            return Err(Violation::Failed(error.clone()));
        }
        let files = self.inner.files.borrow();
        let primary = RoleName::new("host", 0);
        let none = Vec::new();
        if plan.loses_primary && !files.contains_key(&primary) {
            for replica in &plan.options.chain {
                self.judge_entries(replica, &entries(files.get(replica).unwrap_or(&none)))?;
            }
            return Ok(());
        }
        if !self.inner.finished.get() {
            return Err(Violation::Stuck);
        }
        let own = files.get(&primary).unwrap_or(&none);
        let all = entries(own);
        for replica in &plan.options.chain {
            let theirs = files.get(replica).unwrap_or(&none);
            if theirs != own {
                let (has, primary) = (entries(theirs).len(), all.len());
                return Err(Violation::Differs { replica: replica.clone(), has, primary });
            }
        }
        self.judge_entries(&primary, &all)
    }

    /// Judges what one replica has.
    fn judge_entries(&self, replica: &RoleName, all: &[Vec<u8>]) -> Result<(), Violation> {
        let writes = self.inner.writes.borrow();
        for Write { id, acknowledged, .. } in writes.iter() {
            let Some((_, first, last)) = *acknowledged else { continue };
            let kept = all.get(first as usize - 1..last as usize).map(<[Vec<u8>]>::concat);
            if kept.as_deref() != Some(&payload(*id)[..]) {
                return Err(Violation::Lost { replica: replica.clone(), id: *id, first, last });
            }
        }
        for earlier in writes.iter() {
            let Some((returned, _, last)) = earlier.acknowledged else { continue };
            for later in writes.iter().filter(|later| later.called > returned) {
                if later.acknowledged.is_some_and(|(_, first, _)| first <= last) {
                    return Err(Violation::Reordered { earlier: earlier.id, later: later.id });
                }
            }
        }
        Ok(())
    }
}

/// The roles of a run: the writer, the card, and the backups.
pub fn roles<F: Fabric>(plan: &Plan, seen: &Seen) -> Vec<Role<F, ()>> {
    let plan = Rc::new(plan.clone());
    let mut roles = Vec::new();
    for name in &plan.options.chain {
        let (plan, seen) = (plan.clone(), seen.clone());
        let role = Role::new(&name.role, name.instance, move |fabric: F| {
            let (plan, seen) = (plan.clone(), seen.clone());
            async move {
                keep_files(&fabric, &plan, &seen);
                let ended = replog::backup(fabric.clone(), plan.options.clone()).await;
                seen.note(&fabric, ended);
            }
        });
        roles.push(role.in_background());
    }
    let (of_card, seen_by_card) = (plan.clone(), seen.clone());
    let card = Role::new("soc", 0, move |fabric: F| {
        let (plan, seen) = (of_card.clone(), seen_by_card.clone());
        async move {
            let ended = replog::card(fabric.clone(), plan.options.clone()).await;
            seen.note(&fabric, ended);
        }
    });
    roles.push(card.in_background());
    // The primary may be gone before the end.
    let of_witness = plan.clone();
    roles.push(Role::new("client", 0, move |fabric: F| {
        let plan = of_witness.clone();
        async move { fabric.sleep_until(plan.compared() + Time::from_us(20)).await }
    }));
    let seen = seen.clone();
    let host = Role::new("host", 0, move |fabric: F| {
        let (plan, seen) = (plan.clone(), seen.clone());
        async move {
            keep_files(&fabric, &plan, &seen);
            let ended = write(&fabric, &plan, &seen).await;
            seen.note(&fabric, ended);
        }
    });
    roles.push(host.in_background());
    roles
}

/// Copies this role's files when all is quiet.
fn keep_files<F: Fabric>(fabric: &F, plan: &Plan, seen: &Seen) {
    let (fabric, seen, at) = (fabric.clone(), seen.clone(), plan.compared());
    fabric.clone().spawn_task(Box::pin(async move {
        fabric.sleep_until(at).await;
        match Log::files(&fabric).await {
            Ok(files) => drop(seen.inner.files.borrow_mut().insert(fabric.role(), files)),
            Err(error) => seen.note(&fabric, Err(error)),
        }
    }));
}

impl Seen {
    fn note<F: Fabric>(&self, fabric: &F, ended: Result<(), LogError>) {
        if let Err(error) = ended {
            self.inner.errors.borrow_mut().push(format!("{}: {error}", fabric.role()));
        }
    }
}

async fn write<F: Fabric>(fabric: &F, plan: &Rc<Plan>, seen: &Seen) -> Result<(), LogError> {
    let quiet = plan.quiet();
    let left = Time::from_ps(quiet.ps().saturating_sub(fabric.now().ps()));
    let all = async {
        let primary = Rc::new(Primary::open(fabric, &plan.options).await?);
        let tasks: Vec<_> = (0..plan.tasks)
            .map(|task| {
                let (own, plan, seen, primary) =
                    (fabric.clone(), plan.clone(), seen.clone(), primary.clone());
                fabric.spawn(async move {
                    let mut random = own.rng(&format!("task {task}"));
                    while seen.inner.writes.borrow().len() < plan.writes as usize {
                        let index = {
                            let mut writes = seen.inner.writes.borrow_mut();
                            let id = writes.len() as u64 + 1;
                            writes.push(Write { id, called: own.now(), acknowledged: None });
                            writes.len() - 1
                        };
                        let kept = primary.write(&payload(index as u64 + 1)).await?;
                        let acknowledged = Some((own.now(), *kept.start(), *kept.end()));
                        seen.inner.writes.borrow_mut()[index].acknowledged = acknowledged;
                        own.sleep(Time::from_ps(random.next_u64() % plan.pause.ps().max(1))).await;
                    }
                    Ok::<(), LogError>(())
                })
            })
            .collect();
        for task in tasks {
            task.await.unwrap_or(Ok(()))?;
        }
        Ok::<_, LogError>(primary)
    };
    let ended = fabric.timeout(left, all).await;
    // The primary stays, so that backups that are behind still hear of what they miss.
    let _primary = match ended {
        Some(ended) => {
            seen.inner.finished.set(true);
            Some(ended?)
        }
        None => {
            seen.inner.finished.set(false);
            None
        }
    };
    fabric.sleep_until(plan.compared() + Time::from_us(10)).await;
    Ok(())
}
