//! What an endpoint carries: by a short load of its own, or by the load that it already has.

use crate::client::RedisClient;
use crate::resp::Value;
use crate::shard::ShardError;
use crate::shard::client::RedisAccess;
use crate::shard::slots::slot;
use crate::shard::topology;
use std::thread;
use std::time::{Duration, Instant};

/// Connections of a short load. A single-threaded server is busy with that many.
const CONNECTIONS: usize = 4;
/// Requests that each keeps in flight.
const PIPELINE: usize = 16;
/// Bytes of a value.
const VALUE: [u8; 64] = [b'v'; 64];

/// A measured rate and how it was found.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Requests per second.
    pub requests_per_second: f64,
    /// What was sent.
    pub load: &'static str,
}

/// Loads the server at `address` for `time` with SETs of 64 B from 4 connections with 16 requests
/// in flight each, on keys that are deleted again; with ECHO of 64 B where it owns no slot to write to.
pub fn load(address: &str, access: &RedisAccess, time: Duration) -> Result<Measured, ShardError> {
    let mut client = access.connect(address)?;
    let key = writable_key(&mut client)?;
    let began = Instant::now();
    let counts: Vec<Result<u64, ShardError>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|worker| {
                let key = key.as_ref().map(|tag| format!("{{{tag}}}:offpath:{worker}"));
                scope.spawn(move || work(address, access, key, began, time))
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let elapsed = began.elapsed().as_secs_f64();
    let mut total = 0;
    for count in counts {
        total += count?;
    }
    if let Some(tag) = &key {
        for worker in 0..CONNECTIONS {
            client.ask(&["DEL", &format!("{{{tag}}}:offpath:{worker}")])?;
        }
    }
    let load = if key.is_some() { "SET of 64 B" } else { "ECHO of 64 B, as it owns no slots" };
    Ok(Measured { requests_per_second: total as f64 / elapsed, load })
}

fn work(
    address: &str,
    access: &RedisAccess,
    key: Option<String>,
    began: Instant,
    time: Duration,
) -> Result<u64, ShardError> {
    let mut client = access.connect(address)?;
    let request: Vec<&[u8]> = match &key {
        Some(key) => vec![b"SET", key.as_bytes(), &VALUE],
        None => vec![b"ECHO", &VALUE],
    };
    let requests = vec![request; PIPELINE];
    let mut count = 0;
    while began.elapsed() < time {
        client.send(&requests)?;
        for _ in 0..PIPELINE {
            if let Value::Error(reply) = client.receive()? {
                return Err(ShardError::Refused {
                    address: address.to_string(),
                    reason: format!(
                        "the measuring load was refused: {reply}; measure when no slots are moving"
                    ),
                });
            }
        }
        count += PIPELINE as u64;
    }
    Ok(count)
}

/// A hash tag whose keys the server itself holds, where there is one.
fn writable_key(client: &mut RedisClient) -> Result<Option<String>, ShardError> {
    if client.info("cluster", "cluster_enabled")?.as_deref() != Some("1") {
        return Ok(Some("measured".to_string()));
    }
    let nodes = topology::nodes(client)?;
    let Some(me) = nodes.into_iter().find(|node| node.myself && node.master) else { return Ok(None) };
    if me.slots.is_empty() {
        return Ok(None);
    }
    Ok((0u32..1 << 20).map(|number| number.to_string()).find(|tag| me.slots.contains(slot(tag.as_bytes()))))
}

/// What a server carries by the work it does anyway: commands per second of its processor time over
/// `time`. Commands run on one thread, so a second of that thread is what there is.
pub fn observe(address: &str, access: &RedisAccess, time: Duration) -> Result<Measured, ShardError> {
    let mut client = access.connect(address)?;
    let mut look = || -> Result<(f64, f64), ShardError> {
        let number = |text: Option<String>| text.and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        let commands = number(client.info("stats", "total_commands_processed")?);
        let mut seconds = 0.0;
        for field in ["used_cpu_user_main_thread", "used_cpu_sys_main_thread"] {
            seconds += number(client.info("cpu", field)?);
        }
        Ok((commands, seconds))
    };
    let before = look()?;
    thread::sleep(time);
    let after = look()?;
    let (commands, seconds) = (after.0 - before.0, after.1 - before.1);
    if commands < 1_000.0 || seconds < 0.01 {
        return Err(ShardError::Refused {
            address: address.to_string(),
            reason: format!(
                "{commands:.0} commands and {seconds:.3} s of processor time are too few to tell its capacity; \
                 1000 commands and 0.01 s are needed, so observe under load or give the capacity"
            ),
        });
    }
    Ok(Measured { requests_per_second: commands / seconds, load: "the load it had" })
}
