//! Posts and polls requests of 64 B through the verbs backend, for counting instructions:
//! `instructions MODE CASE COUNT`, `awaited` or `polled`, with the cases of `lab/mock/loop.c`.
//! `lab/run instructions` compares the two.

use offpath_fabric::*;
use offpath_verbs::{Verbs, VerbsDirect, VerbsFabric, VerbsQueuePair, VerbsRegion};
use std::error::Error;

const LENGTH: u64 = 64;
const BATCH: usize = 16;
const DEPTH: u32 = 64;

const OPTIONS: fn() -> QueuePairOptions =
    || QueuePairOptions { send_depth: DEPTH, receive_depth: DEPTH, inline_max: 0, ..QueuePairOptions::rc() };

struct Ends {
    client: VerbsQueuePair,
    server: VerbsQueuePair,
    local: VerbsRegion,
    remote: RemoteAddress,
}

async fn meet(
    fabric: &VerbsFabric,
    client: &VerbsQueuePair,
    server: &VerbsQueuePair,
) -> Result<Ends, Box<dyn Error>> {
    let local = fabric.register("host", 2 * LENGTH, Access::ALL)?;
    let remote = local.remote().at(LENGTH);
    let listener = fabric.listen("loop")?;
    let accepted = fabric.spawn({
        let server = server.clone();
        async move { listener.accept(&server).await }
    });
    fabric.connect(client, "loop", 0, "loop").await?;
    accepted.await??;
    Ok(Ends { client: client.clone(), server: server.clone(), local, remote })
}

/// Takes `count` completions, which must be successes; the last one's number.
#[inline(always)]
fn take(queue_pair: &mut VerbsDirect, count: usize) -> Result<u64, &'static str> {
    let (mut left, mut last, mut good) = (count, 0, true);
    while left > 0 {
        left -= queue_pair.poll(|completion| {
            last = completion.number;
            good &= completion.status == Status::Success;
        });
    }
    if good { Ok(last) } else { Err("a request failed") }
}

#[inline(always)]
fn same(number: u64, wanted: u64) -> Result<(), &'static str> {
    if number == wanted { Ok(()) } else { Err("another request completed") }
}

fn poll(
    ends: &Ends,
    client: &mut VerbsDirect,
    server: &mut VerbsDirect,
    case: &str,
    count: u64,
) -> Result<(), Box<dyn Error>> {
    let region = &ends.local;
    let own = Slice { region, offset: 0, length: LENGTH };
    let other = Slice { region, offset: LENGTH, length: LENGTH };
    match case {
        "read" => {
            for number in 0..count {
                client.add(number, &WorkRequest::read(own.clone(), ends.remote))?;
                client.ring().map_err(|(error, _)| error)?;
                same(take(client, 1)?, number)?;
            }
        }
        "send" => {
            for number in 0..count {
                server.receive(number, &other)?;
                client.add(number, &WorkRequest::send(own.clone()))?;
                client.ring().map_err(|(error, _)| error)?;
                same(take(client, 1)?, number)?;
                same(take(server, 1)?, number)?;
            }
        }
        _ => {
            for first in (0..count).step_by(BATCH) {
                let last = first + BATCH as u64 - 1;
                for number in first..=last {
                    let mut request = WorkRequest::read(own.clone(), ends.remote);
                    request.signaled = case == "batch" || number == last;
                    client.add(number, &request)?;
                }
                client.ring().map_err(|(error, _)| error)?;
                same(take(client, if case == "batch" { BATCH } else { 1 })?, last)?;
            }
        }
    }
    Ok(())
}

async fn polling(fabric: &VerbsFabric, case: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let (mut client, mut server) = (fabric.create_direct(OPTIONS())?, fabric.create_direct(OPTIONS())?);
    let ends = meet(fabric, client.queue_pair(), server.queue_pair()).await?;
    poll(&ends, &mut client, &mut server, case, count)
}

async fn awaited(fabric: &VerbsFabric, case: &str, count: u64) -> Result<(), Box<dyn Error>> {
    let (client, server) = (fabric.create_queue_pair(OPTIONS())?, fabric.create_queue_pair(OPTIONS())?);
    let ends = meet(fabric, &client, &server).await?;
    let read = || WorkRequest::read(ends.local.slice(0, LENGTH), ends.remote);
    match case {
        "read" => {
            for _ in 0..count {
                ends.client.post(read())?.await.success()?;
            }
        }
        "send" => {
            for _ in 0..count {
                let received = ends.server.receive(ends.local.slice(LENGTH, LENGTH))?;
                ends.client.post(WorkRequest::send(ends.local.slice(0, LENGTH)))?.await.success()?;
                received.await.success()?;
            }
        }
        _ => {
            for _ in 0..count / BATCH as u64 {
                let mut requests = vec![read(); BATCH];
                if case == "quiet" {
                    requests[..BATCH - 1].iter_mut().for_each(|request| request.signaled = false);
                }
                for completion in ends.client.batch(requests)? {
                    completion.await.success()?;
                }
            }
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [mode, case, count] = &arguments[..] else {
        return Err("instructions wants a mode, a case and a count".into());
    };
    if !["read", "send", "batch", "quiet"].contains(&case.as_str()) {
        return Err(format!("there is no case `{case}`; there is read, send, batch and quiet").into());
    }
    let polled = match mode.as_str() {
        "polled" => true,
        "awaited" => false,
        _ => return Err(format!("there is no mode `{mode}`; there are polled and awaited").into()),
    };
    let (case, count) = (case.clone(), count.parse()?);
    let role = Role::new("loop", 0, move |fabric: VerbsFabric| {
        let case = case.clone();
        async move {
            let done = if polled {
                polling(&fabric, &case, count).await
            } else {
                awaited(&fabric, &case, count).await
            };
            done.map_err(|error| error.to_string())
        }
    });
    for outcome in Verbs::open(None, 7)?.run(vec![role])?.outcomes {
        match outcome.end {
            RoleEnd::Finished(result) => result?,
            _ => return Err("the role did not end".into()),
        }
    }
    Ok(())
}
