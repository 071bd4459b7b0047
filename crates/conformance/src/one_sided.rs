//! READ, WRITE, atomics and DMA: order, visibility, slots.

use crate::link::{bytes, meet, meet_client, memory, region};
use crate::{Failure, Make, Verdict, a_while, holds, play, same, two};
use offpath_fabric::*;
use std::cell::RefCell;
use std::rc::Rc;

fn shallow(send_depth: u32) -> QueuePairOptions {
    QueuePairOptions { send_depth, ..QueuePairOptions::rc() }
}

/// A server that lends its region and checks nothing.
async fn lend<F: Fabric>(fabric: F, length: u64) -> Verdict {
    meet(&fabric, QueuePairOptions::rc(), length).await?.finish().await
}

pub fn ordering<W: Backend>(make: Make<'_, W>) -> Verdict {
    const COUNT: u64 = 64;
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8 * (COUNT + 1)).await?;
            link.sync().await?;
            let ended = Rc::new(RefCell::new(Vec::new()));
            let mut handles = Vec::new();
            for index in 0..COUNT {
                // Every WRITE goes to one word, so that only the last one's value may remain.
                link.region.store(8 * index, index + 1)?;
                let completion = link.data.write(link.region.slice(8 * index, 8), link.peer.at(0))?;
                let ended = ended.clone();
                handles.push(f.spawn(async move {
                    let completion = completion.await;
                    ended.borrow_mut().push(index);
                    completion.status
                }));
            }
            let back = link.data.read(link.region.slice(8 * COUNT, 8), link.peer.at(0))?;
            let sent = link.data.send(link.region.slice(0, 0))?;
            for handle in handles {
                same("a WRITE's status", handle.await?, Status::Success)?;
            }
            back.await.success()?;
            sent.await.success()?;
            same("the order of completions", ended.take(), (0..COUNT).collect())?;
            same("what a READ after the WRITEs brings", link.region.load(8 * COUNT)?, COUNT)?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8 * (COUNT + 1)).await?;
            let receive = link.data.receive(link.region.slice(0, 0))?;
            link.sync().await?;
            receive.await.success()?;
            same("the word when the SEND behind the WRITEs is received", link.region.load(0)?, COUNT)?;
            link.finish().await
        },
    )
}

pub fn one_sided_visibility<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 16).await?;
            link.region.store(0, 41)?;
            link.data.write(link.region.slice(0, 8), link.peer.at(8))?.await.success()?;
            // The peer answers by a store of its own, which nothing announces.
            while link.region.load(0)? != 42 {
                let read = link.data.read(link.region.slice(0, 8), link.peer.at(0))?.await.success()?;
                same("the opcode", read.opcode, Opcode::Read)?;
                same("the bytes read", read.bytes, 8)?;
            }
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 16).await?;
            while link.region.load(8)? != 41 {
                f.sleep(offpath_quantity::Time::from_us(1)).await;
            }
            link.region.store(0, 42)?;
            link.finish().await
        },
    )
}

pub fn unsignaled_accounting<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, shallow(8), 8).await?;
            let write = || WorkRequest::write(link.region.slice(0, 8), link.peer.at(0));
            for _ in 0..3 {
                let mut completions = Vec::new();
                for _ in 0..7 {
                    completions.push(link.data.post(write().unsignaled())?);
                }
                a_while(&f).await;
                same(
                    "slots taken by unsignaled requests that were executed",
                    link.data.send_slots_taken(),
                    7,
                )?;
                link.data.post(write())?.await.success()?;
                same("slots taken after a signaled completion", link.data.send_slots_taken(), 0)?;
                for completion in completions {
                    completion.await.success()?;
                }
            }
            link.finish().await?;
            link.data.close();
            same("a closed queue pair", link.data.state(), QueuePairState::Closed)
        },
        |f: W::Fabric| lend(f, 8),
    )
}

pub fn queue_overflow<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let options = QueuePairOptions { receive_depth: 2, ..shallow(4) };
            let link = meet(&f, options, 8).await?;
            let (depth, receive_depth) = (link.data.options().send_depth, link.data.options().receive_depth);
            let write = || WorkRequest::write(link.region.slice(0, 8), link.peer.at(0));
            for _ in 0..depth {
                drop(link.data.post(write().unsignaled())?);
            }
            a_while(&f).await;
            let error = link.data.post(write()).err();
            same("posting to a full send queue", error, Some(PostError::QueueFull { depth }))?;
            for _ in 0..receive_depth {
                drop(link.data.receive(link.region.slice(0, 8))?);
            }
            let error = link.data.receive(link.region.slice(0, 8)).err();
            same(
                "posting to a full receive queue",
                error,
                Some(PostError::ReceiveQueueFull { depth: receive_depth }),
            )?;
            link.finish().await
        },
        |f: W::Fabric| lend(f, 8),
    )
}

pub fn batch_posting<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, shallow(16), 8 * 16).await?;
            let request = |index: u64| {
                WorkRequest::write(link.region.slice(8 * index, 8), link.peer.at(8 * index)).unsignaled()
            };
            let depth = link.data.options().send_depth;
            let too_many = (0..=u64::from(depth)).map(|_| request(0)).collect();
            let error = link.data.batch(too_many).err();
            same("posting a batch longer than the queue", error, Some(PostError::QueueFull { depth }))?;
            same("slots taken by a refused batch", link.data.send_slots_taken(), 0)?;
            for index in 0..16 {
                link.region.store(8 * index, 100 + index)?;
            }
            let mut requests: Vec<_> = (0..16).map(request).collect();
            requests[15].signaled = true;
            let mut completions = link.data.batch(requests)?;
            same("completions of a batch", completions.len(), 16)?;
            for completion in completions.drain(..).rev() {
                completion.await.success()?;
            }
            same("completions of an empty batch", link.data.batch(Vec::new())?.len(), 0)?;
            link.sync().await?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8 * 16).await?;
            link.sync().await?;
            for index in 0..16 {
                same("a word of a batch", link.region.load(8 * index)?, 100 + index)?;
            }
            link.finish().await
        },
    )
}

pub fn inline_limit<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let inline_max = f.capabilities().inline_max.min(64);
            let link = meet(&f, QueuePairOptions { inline_max, ..QueuePairOptions::rc() }, 4096).await?;
            let bound = link.data.options().inline_max;
            let length = u64::from(bound) + 1;
            let long = WorkRequest::write(link.region.slice(0, length), link.peer.at(0)).inline();
            let error = link.data.post(long).err();
            same("posting too much inline", error, Some(PostError::InlineTooLong { length, bound }))?;
            let read = WorkRequest::read(link.region.slice(0, 1), link.peer.at(0)).inline();
            let error = link.data.post(read).err();
            holds(matches!(error, Some(PostError::NotOnThisKind { .. })), "an inline READ was not refused")?;
            link.region.store(0, 1)?;
            let completion =
                link.data.post(WorkRequest::write(link.region.slice(0, 8), link.peer.at(0)).inline())?;
            // The payload was copied at posting, so the buffer is free already.
            link.region.store(0, 2)?;
            completion.await.success()?;
            link.data.read(link.region.slice(8, 8), link.peer.at(0))?.await.success()?;
            same("what an inline WRITE wrote", link.region.load(8)?, 1)?;
            link.finish().await
        },
        |f: W::Fabric| lend(f, 4096),
    )
}

pub fn zero_length<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            link.sync().await?;
            let nothing = || link.region.slice(0, 0);
            let at = link.peer.at(0);
            for completion in
                [link.data.write(nothing(), at)?, link.data.read(nothing(), at)?, link.data.send(nothing())?]
            {
                same("bytes moved", completion.await.success()?.bytes, 0)?;
            }
            let completion = link.data.post(WorkRequest::write(nothing(), at).inline())?;
            completion.await.success()?;
            link.data.write_with_immediate(nothing(), at, 9)?.await.success()?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            let receives =
                [link.data.receive(link.region.slice(0, 0))?, link.data.receive(link.region.slice(0, 0))?];
            link.sync().await?;
            for receive in receives {
                same("bytes received", receive.await.success()?.bytes, 0)?;
            }
            same("the region", link.region.load(0)?, 0)?;
            link.finish().await
        },
    )
}

pub fn large_payload<W: Backend>(make: Make<'_, W>) -> Verdict {
    const LENGTH: u64 = 16 << 20;
    fn pattern(salt: u64, length: u64) -> Vec<u8> {
        (0..length).map(|index| ((index + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8).collect()
    }
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), LENGTH).await?;
            let length = LENGTH.min(link.data.message_max());
            let all = || link.region.slice(0, length);
            link.sync().await?;
            link.region.write(0, &pattern(1, length))?;
            let sent = link.data.send(all())?.await.success()?;
            same("bytes sent", sent.bytes, length)?;
            link.sync().await?;
            link.region.write(0, &pattern(2, length))?;
            link.data.write(all(), link.peer.at(0))?.await.success()?;
            link.region.write(0, &vec![0; length as usize])?;
            link.data.read(all(), link.peer.at(0))?.await.success()?;
            holds(
                bytes(&link.region, 0, length)? == pattern(2, length),
                &format!("{length} B written and read back differ"),
            )?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), LENGTH).await?;
            let length = LENGTH.min(link.data.message_max());
            let receive = link.data.receive(link.region.all())?;
            link.sync().await?;
            same("bytes received", receive.await.success()?.bytes, length)?;
            holds(
                bytes(&link.region, 0, length)? == pattern(1, length),
                &format!("{length} B sent arrived different"),
            )?;
            link.sync().await?;
            link.finish().await
        },
    )
}

pub fn future_dropped_in_mid_flight<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            link.sync().await?;
            // The region's only handle and the completion go at once; the operation keeps both alive.
            let source = region(&f, 8)?;
            source.store(0, 7)?;
            let completion = link.data.write(source.slice(0, 8), link.peer.at(0))?;
            drop(source);
            drop(completion);
            // Polled once, then dropped by its time limit.
            let completion = link.data.read(link.region.slice(0, 8), link.peer.at(8))?;
            let _ = f.timeout(offpath_quantity::Time::ZERO, completion).await;
            drop(link.data.post(WorkRequest::write(link.region.slice(8, 8), link.peer.at(16)).unsignaled())?);
            link.data.send(link.region.slice(0, 0))?.await.success()?;
            same("slots taken after all", link.data.send_slots_taken(), 0)?;
            same("what the abandoned READ brought", link.region.load(0)?, 5)?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            link.region.store(8, 5)?;
            link.region.store(16, 5)?;
            // A receive whose completion is dropped still takes its message.
            let abandoned = link.data.receive(link.region.slice(0, 0))?;
            drop(abandoned);
            link.sync().await?;
            link.finish().await?;
            same("what the abandoned WRITE wrote", link.region.load(0)?, 7)?;
            same("what the abandoned unsignaled WRITE wrote", link.region.load(16)?, 0)
        },
    )
}

pub fn fenced_after_read<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            link.sync().await?;
            let read = WorkRequest::read(link.region.slice(0, 8), link.peer.at(0)).unsignaled();
            let completions =
                link.data.batch(vec![read, WorkRequest::send(link.region.slice(0, 8)).fenced()])?;
            for completion in completions {
                completion.await.success()?;
            }
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 16).await?;
            link.region.store(0, 77)?;
            let receive = link.data.receive(link.region.slice(8, 8))?;
            link.sync().await?;
            receive.await.success()?;
            same("a fenced SEND of what a READ brought", link.region.load(8)?, 77)?;
            link.finish().await
        },
    )
}

pub fn atomic_results<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 16).await?;
            let word = || link.region.slice(8, 8);
            let swap = |compare, swap| link.data.compare_and_swap(word(), link.peer.at(0), compare, swap);
            let add = |add| link.data.fetch_and_add(word(), link.peer.at(0), add);
            let brought = || link.region.load(8);
            let ended = swap(0, 5)?.await.success()?;
            same("the opcode and bytes", (ended.opcode, ended.bytes), (Opcode::CompareAndSwap, 8))?;
            same("a compare-and-swap that agrees", brought()?, 0)?;
            swap(4, 9)?.await.success()?;
            same("a compare-and-swap that differs", brought()?, 5)?;
            let ended = add(3)?.await.success()?;
            same("the opcode and bytes", (ended.opcode, ended.bytes), (Opcode::FetchAndAdd, 8))?;
            same("a fetch-and-add", brought()?, 5)?;
            add(u64::MAX - 7)?.await.success()?;
            same("a fetch-and-add that wraps to nothing", brought()?, 8)?;
            add(0x0102_0304_0506_0708)?.await.success()?;
            same("the word that wrapped", brought()?, 0)?;
            let read = link.data.read(link.region.slice(0, 8), link.peer.at(0))?;
            read.await.success()?;
            same("what atomics left, as a READ brings it", link.region.load(0)?, 0x0102_0304_0506_0708)?;
            let short = link.data.fetch_and_add(link.region.slice(8, 4), link.peer.at(0), 1).err();
            same("a result of 4 B", short, Some(PostError::AtomicLength { length: 4 }))?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 16).await?;
            link.finish().await?;
            same("what atomics left", bytes(&link.region, 0, 8)?, vec![8, 7, 6, 5, 4, 3, 2, 1])
        },
    )
}

pub fn atomics_under_concurrency<W: Backend>(make: Make<'_, W>) -> Verdict {
    const CLIENTS: u32 = 4;
    const EACH: u64 = 25;
    const TOTAL: u64 = CLIENTS as u64 * EACH;
    /// Words of the server: a counter, a lock, what it guards, and a mark for each value of the counter.
    const MARKS: u64 = 24;
    async fn client<F: Fabric>(f: F) -> Verdict {
        let own = f.role().instance;
        let link = meet_client(&f, own, QueuePairOptions::rc(), region(&f, 8)?).await?;
        let (qp, word) = (&link.data, || link.region.slice(0, 8));
        for _ in 0..EACH {
            qp.fetch_and_add(word(), link.peer.at(0), 1)?.await.success()?;
            let old = link.region.load(0)?;
            holds(old < TOTAL, "fetch-and-add returned more than was ever added")?;
            qp.fetch_and_add(word(), link.peer.at(MARKS + 8 * old), 1)?.await.success()?;
            loop {
                qp.compare_and_swap(word(), link.peer.at(8), 0, 1)?.await.success()?;
                if link.region.load(0)? == 0 {
                    break;
                }
                f.sleep(offpath_quantity::Time::from_us(1 + f.random_u64() % 10)).await;
            }
            // Under the lock a READ and a WRITE make an increment that nobody interrupts.
            qp.read(word(), link.peer.at(16))?.await.success()?;
            link.region.fetch_and_add(0, 1)?;
            qp.write(word(), link.peer.at(16))?.await.success()?;
            qp.compare_and_swap(word(), link.peer.at(8), 1, 0)?.await.success()?;
            same("the lock when it is released", link.region.load(0)?, 1)?;
        }
        link.finish().await
    }
    async fn server<F: Fabric>(f: F) -> Verdict {
        let shared = region(&f, MARKS + 8 * TOTAL)?;
        let mut handles = Vec::new();
        for number in 0..CLIENTS {
            let (f, shared) = (f.clone(), shared.clone());
            handles.push(f.clone().spawn(async move {
                let link = meet_client(&f, number, QueuePairOptions::rc(), shared).await?;
                link.finish().await?;
                Ok::<_, Failure>(())
            }));
        }
        for handle in handles {
            handle.await??;
        }
        same("the counter", shared.load(0)?, TOTAL)?;
        same("the lock", shared.load(8)?, 0)?;
        same("what the lock guards", shared.load(16)?, TOTAL)?;
        for mark in 0..TOTAL {
            same("times that a value of the counter was returned", shared.load(MARKS + 8 * mark)?, 1)?;
        }
        Ok(())
    }
    let mut roles: Vec<_> =
        (0..CLIENTS).map(|number| Role::new("client", number, client::<W::Fabric>)).collect();
    roles.push(Role::new("server", 0, server::<W::Fabric>));
    play(make(1), roles)
}

pub fn dma_copies<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            let engine = f.dma_engines().into_iter().next().ok_or("no DMA engine is named")?;
            link.region.store(0, 3)?;
            let local = |offset| MemoryAt::Local { region: link.region.clone(), offset };
            let remote = |offset| MemoryAt::Remote(link.peer.at(offset));
            f.dma_copy(&engine, local(0), remote(8), 8)?.await.success()?;
            let back = f.dma_copy(&engine, remote(8), local(16), 8)?.await.success()?;
            same("the opcode", back.opcode, Opcode::DmaCopy)?;
            same("the word that went there and back", link.region.load(16)?, 3)?;
            link.ends(f.dma_copy(&engine, remote(60), local(0), 8)?, Status::RemoteAccess).await?;
            link.ends(f.dma_copy(&engine, remote(0), local(60), 8)?, Status::LocalProtection).await?;
            let read_only = f.register(&memory(&f)?, 8, Access::READ_ONLY)?;
            let to = MemoryAt::Local { region: read_only, offset: 0 };
            link.ends(f.dma_copy(&engine, remote(0), to, 8)?, Status::LocalProtection).await?;
            link.finish().await
        },
        |f: W::Fabric| lend(f, 64),
    )
}
