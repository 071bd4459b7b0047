//! A writer of the replicated log while things fail, and what the replicas kept.

use super::{
    DigestedStore, Digestion, FileRecord, Log, LogAlternative, LogBug, LogConfig, LogCosts, LogError,
    Primary, SyncPolicy, TAIL, backup, card, entries,
};
use crate::bytes::{hash, value_of};
use crate::torture::{Menu, Schedule, SystemFault, Tally, Trial, checksum, machine, processors};
use offpath_fabric::{Fabric, Rng, Role, RoleName};
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

/// What the writer of a run does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogScenario {
    /// The log.
    pub options: LogConfig,
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

/// Writes of a run.
const WRITES: u32 = 40;
/// A restart after the end of every run.
const FOR_GOOD: Time = Time::from_ms(10_000);

impl LogScenario {
    /// A log of small chunks and segments with `chain` behind it. The seed chooses the alternative, when
    /// entries are synced, and whether they are digested.
    pub fn of(seed: u64, chain: Vec<RoleName>) -> LogScenario {
        let mut random = Rng::new(seed, &["plan"]);
        let alternative = LogAlternative::ALL[(random.next_u64() % 4) as usize];
        let pause = Time::from_us([1, 10, 40][(random.next_u64() % 3) as usize]);
        let options = LogConfig {
            chunk_bytes: 700,
            segment_bytes: 6000,
            slots: 4,
            patience: Time::from_us(200),
            // Time for a crash to come between a write and its sync.
            costs: LogCosts {
                file_bytes_per_second: 2_000_000_000,
                sync: Time::from_us(4),
                ..LogCosts::default()
            },
            ..LogConfig::new(alternative, chain)
        };
        let loses_primary = random.next_u64().is_multiple_of(4);
        let syncs_always = loses_primary || !random.next_u64().is_multiple_of(4);
        let digestions = [Digestion::Off, Digestion::Keep, Digestion::Truncate];
        let options = LogConfig {
            sync: if syncs_always { SyncPolicy::Always } else { SyncPolicy::Every(3) },
            digestion: if syncs_always {
                digestions[(random.next_u64() % 3) as usize]
            } else {
                Digestion::Off
            },
            host_compresses: random.next_u64().is_multiple_of(2),
            card_share_percent: [None, Some(60)][(random.next_u64() % 2) as usize],
            ..options
        };
        LogScenario { options, writes: WRITES, tasks: 3, pause, loses_primary, seed }
    }

    /// The faults of the plan itself: the first backup crashes, perhaps for good, and a little later the
    /// primary does for good.
    pub fn loss(&self) -> Vec<SystemFault> {
        if !self.loses_primary {
            return Vec::new();
        }
        let mut random = Rng::new(self.seed, &["loss"]);
        let at = Time::from_us(60) + Time::from_ps(random.next_u64() % self.span().ps());
        let crash = |role: &RoleName, at, restart_after| {
            let RoleName { role, instance } = role.clone();
            SystemFault::Crash { role, instance, at, restart_after }
        };
        let gone = crash(&RoleName::new("host", 0), at + Time::from_us(5), FOR_GOOD);
        let back = if random.next_u64().is_multiple_of(2) { Time::from_us(300) } else { FOR_GOOD };
        let first = self.options.chain.first().map(|first| crash(first, at, back));
        first.into_iter().chain([gone]).collect()
    }

    /// About how long a run without faults takes, so that faults can be put into it.
    pub fn span(&self) -> Time {
        let each = Time::from_ps(self.pause.ps() / 2) + Time::from_us(20);
        each.times(u64::from(self.writes / self.tasks.max(1)))
    }

    /// When every write has ended, whatever a schedule within [`LogScenario::span`] did.
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
pub struct LogHistory {
    inner: Rc<Recorder>,
}

type Files = Vec<(String, Vec<u8>)>;

#[derive(Debug, Default)]
struct Recorder {
    writes: RefCell<Vec<Write>>,
    files: RefCell<BTreeMap<RoleName, Files>>,
    stores: RefCell<BTreeMap<RoleName, Files>>,
    errors: RefCell<Vec<String>>,
    finished: Cell<bool>,
}

/// A promise that was broken.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogViolation {
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
    /// The files of a replica's store differ from those of the primary's.
    #[error("{replica} digested other files than {primary}")]
    DigestedOtherwise {
        /// Which.
        replica: RoleName,
        /// Who digests for the primary.
        primary: RoleName,
    },
    /// An acknowledged write is not in its file, and no later one of the same place either.
    #[error("{replica} does not have write {id} in its file")]
    NotDigested {
        /// Who digests.
        replica: RoleName,
        /// Which write.
        id: u64,
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
    let length = if is_shared(id) { 64 } else { 8 + (hash(id) % 1800) as u32 };
    let mut bytes = value_of(id, 2, length);
    let half = bytes.len() / 2;
    bytes[half..].fill(id as u8);
    bytes
}

/// Whether a write goes where others go too: every other one, and the last all together, where the order
/// in which they are digested shows.
fn is_shared(id: u64) -> bool {
    id.is_multiple_of(2) || id > u64::from(WRITES) - 6
}

/// Where a write goes in a digested log.
fn place(id: u64) -> (String, u64) {
    if is_shared(id) { ("shared".into(), 100) } else { (format!("file {}", id % 3), id * 2000) }
}

fn written(store: &Files, id: u64) -> Option<&[u8]> {
    let (file, offset) = place(id);
    let (_, bytes) = store.iter().find(|(name, _)| *name == file)?;
    bytes.get(offset as usize..)?.get(..payload(id).len())
}

impl LogHistory {
    /// Writes, and how many of them were acknowledged.
    pub fn counts(&self) -> (usize, usize) {
        let writes = self.inner.writes.borrow();
        (writes.len(), writes.iter().filter(|write| write.acknowledged.is_some()).count())
    }

    /// The log files of every replica at the end.
    pub fn files(&self) -> BTreeMap<RoleName, Vec<(String, Vec<u8>)>> {
        self.inner.files.borrow().clone()
    }

    /// Checks the run.
    pub fn check(&self, plan: &LogScenario) -> Result<(), LogViolation> {
        if let Some(error) = self.inner.errors.borrow().first() {
            return Err(LogViolation::Failed(error.clone()));
        }
        let (files, stores) = (self.inner.files.borrow(), self.inner.stores.borrow());
        let primary = RoleName::new("host", 0);
        // Who has the primary's files.
        let by_card = plan.options.alternative.digests_on_card();
        let digester = if by_card { RoleName::new("soc", 0) } else { primary.clone() };
        let none = Vec::new();
        let first = plan.options.chain.first().unwrap_or(&primary);
        let is_there = |replica: &&RoleName| files.contains_key(*replica);
        if plan.loses_primary && !(is_there(&&primary) && is_there(&first)) {
            // The last of the chain is never lost, so that somebody is checked.
            let last = plan.options.chain.last().unwrap_or(&primary);
            let others = [&primary].into_iter().chain(&plan.options.chain);
            for replica in others.filter(|replica| *replica == last || is_there(replica)) {
                let by = if *replica == primary { &digester } else { replica };
                self.check_entries(replica, plan, files.get(replica).unwrap_or(&none), stores.get(by))?;
            }
            return Ok(());
        }
        if !self.inner.finished.get() {
            return Err(LogViolation::Stuck);
        }
        let own = files.get(&primary).unwrap_or(&none);
        for replica in &plan.options.chain {
            let theirs = files.get(replica).unwrap_or(&none);
            if theirs != own {
                let (has, primary) = (entries(theirs).len(), entries(own).len());
                return Err(LogViolation::Differs { replica: replica.clone(), has, primary });
            }
        }
        if plan.options.digestion == Digestion::Off {
            // With another policy a crash of the primary may take acknowledged entries, from all alike.
            let promised = plan.options.sync == SyncPolicy::Always;
            return if promised { self.check_entries(&primary, plan, own, None) } else { Ok(()) };
        }
        let digested = stores.get(&digester).unwrap_or(&none);
        for replica in &plan.options.chain {
            if stores.get(replica) != Some(digested) {
                return Err(LogViolation::DigestedOtherwise { replica: replica.clone(), primary: digester });
            }
        }
        self.check_files(&digester, digested)?;
        self.check_entries(&primary, plan, own, Some(digested))
    }

    /// Checks what one store has.
    fn check_files(&self, replica: &RoleName, store: &Files) -> Result<(), LogViolation> {
        let writes = self.inner.writes.borrow();
        let acknowledged = || writes.iter().filter_map(|write| Some((write.id, write.acknowledged?.1)));
        let lost = |id| Err(LogViolation::NotDigested { replica: replica.clone(), id });
        for (id, _) in acknowledged().filter(|(id, _)| !is_shared(*id)) {
            if written(store, id) != Some(&payload(id)) {
                return lost(id);
            }
        }
        // The last of the log stays; one without acknowledgement may be it.
        let last = acknowledged().filter(|(id, _)| is_shared(*id)).max_by_key(|(_, first)| *first);
        let Some((last, _)) = last else { return Ok(()) };
        let unknown = writes.iter().filter(|write| is_shared(write.id) && write.acknowledged.is_none());
        let fits = |id| written(store, id) == Some(&payload(id));
        if fits(last) || unknown.map(|write| write.id).any(fits) { Ok(()) } else { lost(last) }
    }

    /// Checks what one replica's log has, and its files where the log was truncated.
    fn check_entries(
        &self,
        replica: &RoleName,
        plan: &LogScenario,
        log: &Files,
        store: Option<&Files>,
    ) -> Result<(), LogViolation> {
        let all = entries(log);
        let begins = all.keys().next().copied().unwrap_or(1);
        let writes = self.inner.writes.borrow();
        for Write { id, acknowledged, .. } in writes.iter() {
            let Some((_, first, last)) = *acknowledged else { continue };
            let lost = Err(LogViolation::Lost { replica: replica.clone(), id: *id, first, last });
            if first < begins {
                if !is_shared(*id) && store.and_then(|store| written(store, *id)) != Some(&payload(*id)) {
                    return lost;
                }
                continue;
            }
            let bytes = |entry| match plan.options.digestion {
                Digestion::Off => Some(entry),
                _ => FileRecord::from_entry(entry).map(|record| record.bytes),
            };
            let kept: Option<Vec<&[u8]>> =
                (first..=last).map(|sequence| bytes(all.get(&sequence)?.as_slice())).collect();
            if kept.map(|kept| kept.concat()) != Some(payload(*id)) {
                return lost;
            }
        }
        for earlier in writes.iter() {
            let Some((returned, _, last)) = earlier.acknowledged else { continue };
            for later in writes.iter().filter(|later| later.called > returned) {
                if later.acknowledged.is_some_and(|(_, first, _)| first <= last) {
                    return Err(LogViolation::Reordered { earlier: earlier.id, later: later.id });
                }
            }
        }
        Ok(())
    }
}

impl Trial for LogScenario {
    type Seen = LogHistory;

    fn draw(seed: u64, bug: Option<usize>) -> LogScenario {
        // No path runs between two machines of one kind, so the second backup is on a client's.
        let mut plan = LogScenario::of(seed, vec![RoleName::new("backup", 0), RoleName::new(TAIL, 0)]);
        plan.options.injected_bug = bug.map(|index| LogBug::ALL[index]);
        plan
    }

    fn schedule(&self) -> Schedule {
        let backup = || machine("backup", 0);
        let menu = Menu {
            horizon: self.span(),
            partitions: vec![[backup(), machine("server", 0)], [backup(), machine("client", 0)]],
            crashes: ["host", "soc", "backup", TAIL].map(|role| machine(role, 0)).to_vec(),
            stations: processors(),
            most: 5,
        };
        let mut schedule = Schedule::draw(self.seed, &menu);
        schedule.faults.extend(self.loss());
        schedule
    }

    fn alternative(&self) -> &'static str {
        self.options.alternative.label()
    }

    /// The roles of a run: the writer, the card, and the backups.
    fn roles<F: Fabric>(&self, seen: &LogHistory) -> Vec<Role<F, Result<(), String>>> {
        let plan = Rc::new(self.clone());
        let mut roles = Vec::new();
        for name in &plan.options.chain {
            let (plan, seen) = (plan.clone(), seen.clone());
            let role = Role::new(&name.role, name.instance, move |fabric: F| {
                let (plan, seen) = (plan.clone(), seen.clone());
                async move {
                    keep_files(&fabric, &plan, &seen);
                    let ended = backup(fabric.clone(), plan.options.clone()).await;
                    seen.note(&fabric, ended);
                    Ok(())
                }
            });
            roles.push(role.in_background());
        }
        let (of_card, seen_by_card) = (plan.clone(), seen.clone());
        let card = Role::new("soc", 0, move |fabric: F| {
            let (plan, seen) = (of_card.clone(), seen_by_card.clone());
            async move {
                keep_files(&fabric, &plan, &seen);
                let ended = card(fabric.clone(), plan.options.clone()).await;
                seen.note(&fabric, ended);
                Ok(())
            }
        });
        roles.push(card.in_background());
        // The primary may be gone before the end.
        let of_witness = plan.clone();
        roles.push(Role::new("client", 0, move |fabric: F| {
            let plan = of_witness.clone();
            async move {
                fabric.sleep_until(plan.compared() + Time::from_us(20)).await;
                Ok(())
            }
        }));
        let seen = seen.clone();
        let host = Role::new("host", 0, move |fabric: F| {
            let (plan, seen) = (plan.clone(), seen.clone());
            async move {
                keep_files(&fabric, &plan, &seen);
                let ended = write(&fabric, &plan, &seen).await;
                seen.note(&fabric, ended);
                Ok(())
            }
        });
        roles.push(host.in_background());
        roles
    }

    fn check(&self, seen: &LogHistory) -> Result<Tally, String> {
        seen.check(self).map_err(|violation| violation.to_string())?;
        let (writes, acknowledged) = seen.counts();
        let files = seen.files();
        let named = files.iter().flat_map(|(role, files)| {
            files
                .iter()
                .flat_map(move |(name, bytes)| [format!("{role:?}{name}").into_bytes(), bytes.clone()])
        });
        Ok(Tally {
            operations: writes as u64,
            unacknowledged: (writes - acknowledged) as u64,
            checksum: checksum(named),
        })
    }
}

/// Copies this role's files when all is quiet.
fn keep_files<F: Fabric>(fabric: &F, plan: &LogScenario, seen: &LogHistory) {
    let (fabric, seen, at) = (fabric.clone(), seen.clone(), plan.compared());
    fabric.clone().spawn_task(Box::pin(async move {
        fabric.sleep_until(at).await;
        let kept =
            async { Ok::<_, LogError>((Log::files(&fabric).await?, DigestedStore::files(&fabric).await?)) };
        match kept.await {
            Ok((log, store)) => {
                seen.inner.files.borrow_mut().insert(fabric.role(), log);
                seen.inner.stores.borrow_mut().insert(fabric.role(), store);
            }
            Err(error) => seen.note(&fabric, Err(error)),
        }
    }));
}

impl LogHistory {
    fn note<F: Fabric>(&self, fabric: &F, ended: Result<(), LogError>) {
        if let Err(error) = ended {
            self.inner.errors.borrow_mut().push(format!("{}: {error}", fabric.role()));
        }
    }
}

async fn write<F: Fabric>(fabric: &F, plan: &Rc<LogScenario>, seen: &LogHistory) -> Result<(), LogError> {
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
                        let id = index as u64 + 1;
                        let (file, offset) = place(id);
                        let kept = match plan.options.digestion {
                            Digestion::Off => primary.write(&payload(id)).await?,
                            _ => primary.write_file(&file, offset, &payload(id)).await?,
                        };
                        let acknowledged = Some((own.now(), *kept.start(), *kept.end()));
                        seen.inner.writes.borrow_mut()[index].acknowledged = acknowledged;
                        if !is_shared(id) {
                            own.sleep(Time::from_ps(random.next_u64() % plan.pause.ps().max(1))).await;
                        }
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
