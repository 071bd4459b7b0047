//! What a device or a backend refuses, and what becomes of the queue pair.

use crate::link::{LinkEnd, bytes, meet, meet_client, memory, region};
use crate::{Make, Verdict, a_while, holds, same, two};
use offpath_fabric::*;
use offpath_quantity::Time;

/// A client whose one request must fail with `status`, and a server that looks on. The request behind it
/// and a receive posted before are flushed.
fn fails<W: Backend>(
    make: Make<'_, W>,
    status: Status,
    lent: Access,
    request: impl Fn(&LinkEnd<W::Fabric>) -> WorkRequest<<W::Fabric as Fabric>::Region> + Clone + 'static,
) -> Verdict {
    two(
        make,
        move |f: W::Fabric| {
            let request = request.clone();
            async move {
                let link = meet(&f, QueuePairOptions::rc(), 64).await?;
                let receive = link.data.receive(link.region.slice(0, 8))?;
                // A failure is reported without being signaled, after the good one before it.
                let good = WorkRequest::write(link.region.slice(0, 0), link.peer.at(0)).unsignaled();
                let behind = WorkRequest::write(link.region.slice(0, 8), link.peer.at(8));
                let completions = link.data.batch(vec![good, request(&link).unsignaled(), behind])?;
                for (completion, expected) in
                    completions.into_iter().zip([Status::Success, status, Status::Flushed])
                {
                    link.ends(completion, expected).await?;
                }
                link.ends(receive, Status::Flushed).await?;
                link.is_in_error().await?;
                link.finish().await
            }
        },
        move |f: W::Fabric| async move {
            let lent = f.register(&memory(&f)?, 64, lent)?;
            let link = meet_client(&f, 0, QueuePairOptions::rc(), lent).await?;
            link.finish().await?;
            holds(bytes(&link.region, 0, 64)? == vec![0; 64], "a refused request changed memory")
        },
    )
}

fn marked<F: Fabric>(link: &LinkEnd<F>) -> Slice<F::Region> {
    // What the peer must not see.
    if link.region.store(0, u64::MAX).is_err() {
        return link.region.slice(0, 0);
    }
    link.region.slice(0, 8)
}

pub fn wrong_key<W: Backend>(make: Make<'_, W>) -> Verdict {
    let wrong =
        |link: &LinkEnd<W::Fabric>| RemoteRegion { key: link.peer.key ^ 0x5a5a_5a5a, ..link.peer }.at(0);
    fails(make, Status::RemoteAccess, Access::ALL, move |link| {
        WorkRequest::write(marked(link), wrong(link))
    })?;
    fails(make, Status::RemoteAccess, Access::ALL, move |link| WorkRequest::read(marked(link), wrong(link)))
}

pub fn missing_right<W: Backend>(make: Make<'_, W>) -> Verdict {
    let at = |link: &LinkEnd<W::Fabric>| link.peer.at(0);
    fails(make, Status::RemoteAccess, Access::REMOTE_READ, move |link| {
        WorkRequest::write(marked(link), at(link))
    })?;
    fails(make, Status::RemoteAccess, Access::REMOTE_WRITE, move |link| {
        WorkRequest::read(marked(link), at(link))
    })
}

pub fn out_of_range<W: Backend>(make: Make<'_, W>) -> Verdict {
    for offset in [57, 64, 1 << 40, u64::MAX] {
        fails(make, Status::RemoteAccess, Access::ALL, move |link| {
            WorkRequest::write(marked(link), link.peer.at(offset))
        })?;
    }
    for offset in [57, 64, u64::MAX - 3] {
        fails(make, Status::LocalProtection, Access::ALL, move |link| {
            WorkRequest::write(link.region.slice(offset, 8), link.peer.at(0))
        })?;
    }
    Ok(())
}

pub fn unaligned_atomic<W: Backend>(make: Make<'_, W>) -> Verdict {
    fails(make, Status::RemoteInvalidRequest, Access::ALL, |link| {
        WorkRequest::fetch_and_add(link.region.slice(0, 8), link.peer.at(4), 1)
    })?;
    fails(make, Status::RemoteAccess, Access::REMOTE_WRITE, |link| {
        WorkRequest::compare_and_swap(link.region.slice(0, 8), link.peer.at(0), 0, 1)
    })
}

pub fn deregistered_region<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            link.data.read(link.region.all(), link.peer.at(0))?.await.success()?;
            link.sync().await?;
            link.sync().await?;
            link.ends(link.data.read(link.region.all(), link.peer.at(0))?, Status::RemoteAccess).await?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            link.sync().await?;
            link.region.deregister()?;
            link.sync().await?;
            let again = link.region.load(0);
            holds(matches!(again, Err(RegionError::Deregistered { .. })), "a deregistered region was read")?;
            let again = link.region.deregister();
            holds(matches!(again, Err(RegionError::Deregistered { .. })), "a region was deregistered twice")?;
            link.finish().await
        },
    )
}

pub fn peer_gone_mid_operation<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let options = QueuePairOptions { retries: 1, ..QueuePairOptions::rc() };
            let link = meet(&f, options, 1 << 20).await?;
            let receive = link.data.receive(link.region.slice(0, 8))?;
            // The peer leaves while WRITEs are in flight: some may succeed, then one fails, then all are
            // flushed, and none is left without an end.
            let write = || link.data.write(link.region.all(), link.peer.at(0));
            let mut statuses = Vec::new();
            while statuses.last().is_none_or(|status| *status == Status::Success) {
                let completions = [write()?, write()?, write()?];
                for completion in completions {
                    statuses.push(completion.await.status);
                }
                f.sleep(Time::from_us(100)).await;
            }
            let failed: Vec<_> = statuses.iter().filter(|status| **status != Status::Success).collect();
            holds(
                // Its memory may be gone a moment before its queue pair.
                matches!(failed[0], Status::RetryExceeded | Status::RemoteAccess),
                &format!("a WRITE to a peer that is gone ended with {:?}", failed[0]),
            )?;
            holds(
                failed[1..].iter().all(|s| **s == Status::Flushed),
                "work behind a failure was not flushed",
            )?;
            link.ends(receive, Status::Flushed).await?;
            link.is_in_error().await
        },
        |f: W::Fabric| async move {
            let _link = meet(&f, QueuePairOptions::rc(), 1 << 20).await?;
            a_while(&f).await;
            Ok(())
        },
    )
}

pub fn peer_gone_is_learnt_by_a_request<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let options = QueuePairOptions { retries: 1, ..QueuePairOptions::rc() };
            let link = meet(&f, options, 8).await?;
            let mut receive = link.data.receive(link.region.all())?;
            link.finish().await?;
            // Long enough for the server to linger and leave.
            f.sleep(Time::from_ms(60)).await;
            let early = f.timeout(Time::from_ms(1), &mut receive).await;
            same("a receive from a peer that is gone", early.map(|early| early.status), None)?;
            same("the queue pair's state", link.data.state(), QueuePairState::Ready)?;
            link.ends(link.data.read(link.region.all(), link.peer.at(0))?, Status::RetryExceeded).await?;
            link.ends(receive, Status::Flushed).await?;
            link.is_in_error().await
        },
        |f: W::Fabric| async move { meet(&f, QueuePairOptions::rc(), 8).await?.finish().await },
    )
}

pub fn connection_refusals<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let limit = Time::from_ms(100);
            let rc =
                f.create_queue_pair(QueuePairOptions { connect_timeout: limit, ..QueuePairOptions::rc() })?;
            let word = region(&f, 8)?;
            let error = rc.send(word.all()).err();
            same(
                "posting before connecting",
                error,
                Some(PostError::State { state: QueuePairState::Initialised }),
            )?;
            let error = f.connect(&rc, "nobody", 3, "data").await;
            let peer = RoleName::new("nobody", 3);
            same("connecting to an unknown role", error, Err(ConnectError::NoSuchRole { peer }))?;
            let error = f.connect(&rc, "server", 0, "silence").await;
            holds(
                matches!(error, Err(ConnectError::Timeout { .. })),
                "connecting to silence did not time out",
            )?;
            let _first = f.listen("twice")?;
            holds(
                matches!(f.listen("twice"), Err(ConnectError::ServiceTaken { .. })),
                "a service was taken twice",
            )?;
            // After a failed attempt the queue pair is still good.
            f.connect(&rc, "server", 0, "late").await?;
            let error = f.connect(&rc, "server", 0, "late").await;
            holds(
                matches!(error, Err(ConnectError::WrongQueuePair { .. })),
                "a queue pair was connected twice",
            )?;
            rc.close();
            let error = rc.send(word.all()).err();
            same("posting after closing", error, Some(PostError::State { state: QueuePairState::Closed }))
        },
        |f: W::Fabric| async move {
            let listener = f.listen("late")?;
            let rc = f.create_queue_pair(QueuePairOptions::rc())?;
            same("the accepted peer", listener.accept(&rc).await?, RoleName::new("client", 0))?;
            f.sleep(Time::from_ms(20)).await;
            Ok(())
        },
    )
}

pub fn region_refusals<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let place = memory(&f)?;
            let word = region(&f, 20)?;
            let range = |offset, length| RegionError::OutOfRange { offset, length, bound: 20 };
            same("reading past the end", word.read(16, &mut [0; 8]), Err(range(16, 8)))?;
            same("writing past the end", word.write(u64::MAX, &[1]), Err(range(u64::MAX, 1)))?;
            same("a word past the end", word.load(16), Err(range(16, 8)))?;
            same("a word that is not aligned", word.store(4, 1), Err(RegionError::Unaligned { offset: 4 }))?;
            word.write(8, &[1, 2])?;
            same("a little-endian word", word.load(8)?, 0x0201)?;
            same("compare-and-swap that differs", word.compare_and_swap(8, 1, 9)?, 0x0201)?;
            same("compare-and-swap that agrees", word.compare_and_swap(8, 0x0201, u64::MAX)?, 0x0201)?;
            same("fetch-and-add", word.fetch_and_add(8, 2)?, u64::MAX)?;
            same("a sum that wraps", word.load(8)?, 1)?;
            let name = word.remote();
            same("a region's name after a way as bytes", RemoteRegion::from_bytes(&name.to_bytes())?, name)?;
            let error = f.register("no such memory", 8, Access::ALL).err();
            holds(
                matches!(error, Some(RegionError::NoSuchMemory { .. })),
                "an unknown memory was not refused",
            )?;
            let error = f.register(&place, u64::MAX, Access::ALL).err();
            holds(
                matches!(error, Some(RegionError::OutOfMemory { .. })),
                "too large a region was not refused",
            )
        },
        |_| async { Ok(()) },
    )
}

pub fn unsupported_is_refused<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let (can, word) = (f.capabilities(), region(&f, 16)?);
            let at = |offset| MemoryAt::Local { region: word.clone(), offset };
            holds(
                f.dma_copy("no such engine", at(0), at(8), 8).is_err(),
                "an unknown DMA engine was not refused",
            )?;
            same("whether DMA engines are named", !f.dma_engines().is_empty(), can.dma)?;
            let paged = f.register(&memory(&f)?, 8, Access::ALL | Access::ON_DEMAND).is_ok();
            same("whether on-demand paging is granted", paged, can.on_demand_paging)?;
            let ud = f.create_queue_pair(QueuePairOptions::ud()).is_ok();
            same("whether UD is granted", ud, can.ud)?;
            if let Some(inline_max) = can.inline_max.checked_add(1) {
                let options = QueuePairOptions { inline_max, ..QueuePairOptions::rc() };
                holds(f.create_queue_pair(options).is_err(), "too long an inline payload was not refused")?;
            }
            if let Some(send_depth) = can.depth_max.checked_add(1) {
                let options = QueuePairOptions { send_depth, ..QueuePairOptions::rc() };
                holds(f.create_queue_pair(options).is_err(), "too deep a queue was not refused")?;
            }
            Ok(())
        },
        |_| async { Ok(()) },
    )
}
