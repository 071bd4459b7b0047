//! The replicated log, by every alternative that needs no DMA engine.

use crate::roles::{self, Address, Process, System, Temporary, Verdict, at_last, end, same, until_told};
use offpath_apps::replog::{self, Log, LogAlternative, LogConfig, LogError, Primary};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsFabric};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

/// Those that a backend without DMA engines serves.
pub const ALTERNATIVES: [LogAlternative; 2] = [LogAlternative::CardPullsByRead, LogAlternative::HostWrites];

/// Small segments and chunks, so that a short run has many of each.
fn options(alternative: LogAlternative, chain: &[&str]) -> LogConfig {
    let mut options = LogConfig::new(alternative, chain.iter().map(|name| RoleName::new(name, 0)).collect());
    options.chunk_bytes = 16 * 1024;
    options.segment_bytes = 64 * 1024;
    // An emulated machine answers late.
    options.patience = Time::from_ms(100);
    options
}

/// What a role of the log does; `host` writes, compares and ends the others.
pub async fn role(f: VerbsFabric, alternative: LogAlternative, others: &[RoleName]) -> Verdict {
    let options = options(alternative, &["backup", "tail"]);
    match &*f.role().role {
        "host" => {
            let primary = open(&f, &options).await?;
            let mut entries = Entries::new(&f);
            entries.write(&primary, 40).await?;
            let by = if alternative == LogAlternative::HostWrites { (0, 1) } else { (1, 0) };
            let (card, host) = primary.carried();
            same(
                "whether chunks went by the card, and by the host",
                (card > 0, host > 0),
                (by.0 > 0, by.1 > 0),
            )?;
            entries.check(&f, &primary).await?;
            let count = primary.last();
            drop(primary);
            compare_and_end(&f, &options, others).await?;
            println!("  {alternative:?} on {}: {count} entries, alike in every log", f.processor());
            Ok(())
        }
        "soc" => until_told(&f, replog::card(f.clone(), options), async || Ok(0)).await,
        _ => until_told(&f, replog::backup(f.clone(), options), async || digest(&f).await).await,
    }
}

async fn open(f: &VerbsFabric, options: &LogConfig) -> Result<Primary<VerbsFabric>, Box<dyn Error>> {
    let early = |error: &LogError| matches!(error, LogError::Connect(_));
    at_last(f, async || Primary::open(f, options).await, early).await
}

/// A number that says what this role's files hold.
async fn digest(f: &VerbsFabric) -> Result<u64, LogError> {
    let mut sum = 0xcbf2_9ce4_8422_2325u64;
    for (name, bytes) in Log::files(f).await? {
        for byte in name.bytes().chain(bytes) {
            sum = (sum ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
    Ok(sum)
}

async fn compare_and_end(f: &VerbsFabric, options: &LogConfig, others: &[RoleName]) -> Verdict {
    let own = digest(f).await?;
    for other in others {
        let last_word = end(f, other).await?;
        if options.chain.contains(other) {
            same(&format!("what the files of {other} hold"), last_word, own)?;
        }
    }
    Ok(())
}

/// What was written, in order.
struct Entries {
    random: ChaCha8Rng,
    written: Vec<Vec<u8>>,
}

impl Entries {
    fn new(f: &VerbsFabric) -> Entries {
        Entries { random: ChaCha8Rng::seed_from_u64(f.random_u64()), written: Vec::new() }
    }

    /// An entry of at most a chunk, of which a card can press half together.
    fn next(&mut self) -> Vec<u8> {
        let mut entry = vec![7; self.random.next_u64() as usize % (16 * 1024)];
        let half = entry.len() / 2;
        self.random.fill_bytes(&mut entry[..half]);
        entry
    }

    async fn write(&mut self, primary: &Primary<VerbsFabric>, count: u32) -> Verdict {
        for _ in 0..count {
            let entry = self.next();
            let expected = self.written.len() as u64 + 1;
            same("the number of an entry", primary.write(&entry).await?, expected..=expected)?;
            self.written.push(entry);
        }
        Ok(())
    }

    /// Reads all through the log and from the files themselves.
    async fn check(&self, f: &VerbsFabric, primary: &Primary<VerbsFabric>) -> Verdict {
        for (entry, sequence) in self.written.iter().zip(1..) {
            if primary.read(sequence).await? != *entry {
                return Err(format!("entry {sequence} is not what was written").into());
            }
        }
        let files = Log::files(f).await?;
        same(
            "whether the files hold what was written",
            replog::entries(&files).into_values().eq(self.written.iter().cloned()),
            true,
        )?;
        same("whether there are several segments", files.len() > 1, true)
    }
}

/// A primary whose card lacks the engine is refused.
pub fn engine_is_refused(backend: &Verbs) -> Verdict {
    let options = options(LogAlternative::CardPullsByEngine, &["backup"]);
    let (of_card, of_backup) = (options.clone(), options.clone());
    let server = |role: &str, function: RoleFunction<VerbsFabric, Verdict>| Role {
        name: RoleName::new(role, 0),
        main: false,
        function,
    };
    let card: RoleFunction<VerbsFabric, Verdict> = Rc::new(move |f| {
        let options = of_card.clone();
        Box::pin(async move { Ok(replog::card(f, options).await?) })
    });
    let backup: RoleFunction<VerbsFabric, Verdict> = Rc::new(move |f| {
        let options = of_backup.clone();
        Box::pin(async move { Ok(replog::backup(f, options).await?) })
    });
    let host = move |f: VerbsFabric| {
        let options = options.clone();
        async move {
            match Primary::open(&f, &options).await {
                Err(LogError::NoEngine { engine, .. }) => same("the engine that is missing", &*engine, "dma"),
                Err(other) => Err(format!("expected a refusal, got {other}").into()),
                Ok(_) => Err("A2 was served without a DMA engine".into()),
            }
        }
    };
    roles::play(
        backend.clone(),
        vec![Role::new("host", 0, host), server("soc", card), server("backup", backup)],
    )
}

/// The last backup's process is killed while entries are on their way, and started again: it recovers its
/// files, gets what it missed, and in the end every log holds the same bytes.
pub fn killed_backup(backend: &Verbs, alternative: LogAlternative) -> Verdict {
    let system = System::Log(alternative);
    let names = system.roles();
    let files = Rc::new(Temporary::new(&format!("killed-{system}"))?);
    let all = roles::addresses(&names)?;
    let start = move |at, all: &[Address], files: &Temporary| Process::start(&system, at, all, &files.0);
    // Kept in the order of the names after the first, which runs here.
    let others = (1..names.len()).map(|at| start(at, &all, &files)).collect::<Result<Vec<_>, _>>()?;
    let others = Rc::new(RefCell::new(others));
    let (again, everyone, directory) = (others.clone(), all.clone(), files.clone());
    let host = move |f: VerbsFabric| {
        let (others, all, files) = (again.clone(), everyone.clone(), directory.clone());
        async move {
            let options = options(alternative, &["backup", "tail"]);
            let primary = Rc::new(open(&f, &options).await?);
            let mut entries = Entries::new(&f);
            for round in 0..4 {
                entries.write(&primary, 4).await?;
                // Both backups in turn: the one that passes on, and the last.
                let victim = all.len() - 1 - round % 2;
                let (entry, writer) = (entries.next(), primary.clone());
                let written = entry.clone();
                let in_flight = f.spawn(async move { writer.write(&entry).await });
                f.sleep(Time::from_us(entries.random.next_u64() % 3000)).await;
                others.borrow_mut()[victim - 1].kill()?;
                f.sleep(Time::from_ms(50)).await;
                others.borrow_mut()[victim - 1] = start(victim, &all, &files)?;
                in_flight.await??;
                entries.written.push(written);
            }
            entries.write(&primary, 4).await?;
            entries.check(&f, &primary).await?;
            drop(primary);
            compare_and_end(&f, &options, &system.roles()[1..]).await
        }
    };
    let backend = roles::reachable(backend, all[0].address, &all[1..]).directory(&files.0);
    roles::play(
        backend,
        vec![Role::new("host", 0, move |f: VerbsFabric| roles::in_time(f.clone(), host(f)))],
    )?;
    let others = Rc::into_inner(others).map(RefCell::into_inner).unwrap_or_default();
    others.into_iter().try_for_each(Process::ended)
}
