//! What an endpoint carries: by a short load of its own.

use crate::MongoError;
use crate::client::{MongoAccess, MongoClient};
use bson::doc;
use std::thread;
use std::time::{Duration, Instant};

/// Connections of the load.
const CONNECTIONS: usize = 4;
/// Documents that are read.
const DOCUMENTS: i32 = 100;

/// Reads single documents of 1 kB from `collection` of `database`, which is made for it and dropped
/// again, for `time` over 4 connections. The answer is in reads per second.
pub fn reads_per_second(
    address: &str,
    access: &MongoAccess,
    database: &str,
    time: Duration,
) -> Result<f64, MongoError> {
    let collection = "offpath_measure";
    let mut client = MongoClient::connect(address, access)?;
    client.ask(database, doc! { "drop": collection }).or_else(|error| match error {
        // It was not there.
        MongoError::Refused { .. } => Ok(doc! {}),
        other => Err(other),
    })?;
    let value = "v".repeat(1_000);
    let documents: Vec<_> = (0..DOCUMENTS).map(|id| doc! { "_id": id, "field0": value.as_str() }).collect();
    client.ask(database, doc! { "insert": collection, "documents": documents })?;
    let began = Instant::now();
    let counts: Vec<Result<u64, MongoError>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..CONNECTIONS)
            .map(|worker| {
                scope.spawn(move || {
                    let mut client = MongoClient::connect(address, access)?;
                    let mut count = 0;
                    while began.elapsed() < time {
                        let id = (worker as i32 * 31 + count as i32) % DOCUMENTS;
                        let find = doc! { "find": collection, "filter": { "_id": id }, "limit": 1,
                        "singleBatch": true };
                        client.ask(database, find)?;
                        count += 1;
                    }
                    Ok(count)
                })
            })
            .collect();
        workers.into_iter().map(|worker| worker.join().expect("a worker does not panic")).collect()
    });
    let elapsed = began.elapsed().as_secs_f64();
    let mut total = 0;
    for count in counts {
        total += count?;
    }
    client.ask(database, doc! { "drop": collection })?;
    Ok(total as f64 / elapsed)
}
