//! A load on the log.

use super::{Digestion, HostTimeParts, LogConfig, LogError, Primary};
use offpath_fabric::Fabric;
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::RefCell;
use std::rc::Rc;

/// Writes to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WriteLoad {
    /// Sessions, each with one write in flight.
    pub sessions: u32,
    /// Writes of each session.
    pub writes: u64,
    /// Bytes of a write.
    pub bytes: u64,
    /// How many of 100 bytes can be compressed away; the others are random.
    pub compressible_percent: u32,
}

/// What a load did.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Driven {
    /// Writes, each acknowledged.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
    /// From the first write to the last acknowledgement.
    pub elapsed: Time,
    /// Bits a second over the middle half of the writes, without the ramps at both ends.
    pub bits_per_second: f64,
    /// The mean time of a write.
    pub mean_latency: Time,
    /// The time that half of the writes took at most.
    pub median_latency: Time,
    /// The time that 99 of 100 writes took at most.
    pub p99_latency: Time,
    /// The longest time of a write.
    pub worst_latency: Time,
    /// Where the host's time went, over all writes.
    pub parts: HostTimeParts,
    /// Chunks that went by the card, entries brought again included.
    pub by_card: u64,
    /// Chunks that went by the host.
    pub by_host: u64,
    /// How long after the last acknowledgement the last entry was in its file; zero without digestion.
    pub digestion_lag: Time,
}

/// Opens the primary of this role and has it write. Where the log is digested each session writes a file
/// of its own, from its beginning on, and the run ends when the files have all.
pub async fn drive<F: Fabric>(fabric: &F, options: &LogConfig, load: &WriteLoad) -> Result<Driven, LogError> {
    let wrong = |what, value, bound| Err(LogError::Shape { what, value, bound });
    if load.sessions == 0 || load.writes == 0 {
        return wrong("load without", 0, "a session and a write at least");
    }
    if load.bytes > 1 << 32 {
        return wrong("write of bytes", load.bytes, "4 GiB at most");
    }
    if load.compressible_percent > 100 {
        return wrong("compressible share in percent", load.compressible_percent.into(), "0 to 100");
    }
    let primary = Rc::new(Primary::open(fabric, options).await?);
    let payload: Rc<Vec<u8>> = Rc::new(payload(fabric, load));
    let ends: Rc<RefCell<Vec<(Time, Time)>>> = Rc::default();
    let (before, carried, began) = (primary.parts(), primary.carried(), fabric.now());
    let digests = options.digestion != Digestion::Off;
    let sessions: Vec<_> = (0..load.sessions)
        .map(|session| {
            let (own, primary, payload) = (fabric.clone(), primary.clone(), payload.clone());
            let (ends, load) = (ends.clone(), *load);
            fabric.spawn(async move {
                for write in 0..load.writes {
                    let called = own.now();
                    if digests {
                        primary
                            .write_file(&format!("session-{session}"), write * load.bytes, &payload)
                            .await?;
                    } else {
                        primary.write(&payload).await?;
                    }
                    ends.borrow_mut().push((own.now(), own.now() - called));
                }
                Ok::<(), LogError>(())
            })
        })
        .collect();
    for session in sessions {
        session.await.unwrap_or(Ok(()))?;
    }
    let ended = fabric.now();
    if digests {
        primary.until_digested(primary.last()).await?;
    }
    let mut ends = ends.take();
    ends.sort();
    let writes = ends.len() as u64;
    let (from, until) = (ends.len() / 4, ends.len() - 1 - ends.len() / 4);
    let span = (ends[until].0 - ends[from].0).as_seconds();
    let middle = (until - from) as f64 * load.bytes as f64 * 8.0;
    let all = writes as f64 * load.bytes as f64 * 8.0 / (ended - began).as_seconds();
    let (after, now_carried) = (primary.parts(), primary.carried());
    let mut times: Vec<Time> = ends.iter().map(|(_, took)| *took).collect();
    times.sort();
    let sum: u64 = times.iter().map(|took| took.ps()).sum();
    // The nearest rank: a value that a write had.
    let rank = |percent: usize| times[(times.len() * percent).div_ceil(100).max(1) - 1];
    Ok(Driven {
        writes,
        bytes: writes * load.bytes,
        elapsed: ended - began,
        bits_per_second: if span > 0.0 { middle / span } else { all },
        mean_latency: Time::from_ps(sum / writes.max(1)),
        median_latency: rank(50),
        p99_latency: rank(99),
        worst_latency: rank(100),
        parts: HostTimeParts {
            post: after.post - before.post,
            wait: after.wait - before.wait,
            file_system: after.file_system - before.file_system,
            compression: after.compression - before.compression,
        },
        by_card: now_carried.0 - carried.0,
        by_host: now_carried.1 - carried.1,
        digestion_lag: fabric.now() - ended,
    })
}

/// Random bytes, with zeroes after them in each 4 KiB as far as they are to be compressible.
fn payload<F: Fabric>(fabric: &F, load: &WriteLoad) -> Vec<u8> {
    let mut bytes = vec![0; load.bytes as usize];
    let mut random = fabric.rng("payload");
    for page in bytes.chunks_mut(4096) {
        let filled = page.len() * (100 - load.compressible_percent as usize) / 100;
        random.fill_bytes(&mut page[..filled]);
    }
    bytes
}
