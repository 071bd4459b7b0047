//! SEND, receives, UD and datagrams.

use crate::link::{meet, region};
use crate::{Make, Verdict, a_while, holds, same, two};
use offpath_fabric::*;
use offpath_quantity::Time;

pub fn immediate_data<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            link.sync().await?;
            link.region.store(0, 11)?;
            link.data
                .post(WorkRequest::send(link.region.slice(0, 8)).immediate(0xabcd_ef01))?
                .await
                .success()?;
            link.data.write_with_immediate(link.region.slice(0, 8), link.peer.at(32), 2)?.await.success()?;
            link.data.send(link.region.slice(0, 8))?.await.success()?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            let mut receives = Vec::new();
            for slot in 0..3 {
                receives.push(link.data.receive(link.region.slice(8 * slot, 8))?);
            }
            link.sync().await?;
            let expected = [
                (Opcode::Receive, Some(0xabcd_ef01)),
                (Opcode::ReceiveWriteImmediate, Some(2)),
                (Opcode::Receive, None),
            ];
            for (receive, expected) in receives.into_iter().zip(expected) {
                let got = receive.await.success()?;
                same("a receive's opcode and word", (got.opcode, got.immediate), expected)?;
                same("its bytes", got.bytes, 8)?;
            }
            let words: Vec<_> = (0..5).map(|slot| link.region.load(8 * slot)).collect::<Result<_, _>>()?;
            // The WRITE goes to its address; the receive that it consumes stays untouched.
            same("what lies in the receives", words, vec![11, 0, 11, 0, 11])?;
            link.finish().await
        },
    )
}

pub fn send_longer_than_receive<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            link.sync().await?;
            // Soft-RoCE takes the short receive for a malformed one.
            let sent = link.data.send(link.region.slice(0, 16))?;
            link.ends_or(sent, Status::RemoteInvalidRequest, Status::RemoteOperation).await?;
            link.is_in_error().await?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 64).await?;
            let (short, behind) =
                (link.data.receive(link.region.slice(0, 8))?, link.data.receive(link.region.all())?);
            link.sync().await?;
            link.ends_or(short, Status::LocalLength, Status::LocalOperation).await?;
            link.ends(behind, Status::Flushed).await?;
            link.is_in_error().await?;
            link.finish().await
        },
    )
}

pub fn receiver_not_ready<W: Backend>(make: Make<'_, W>) -> Verdict {
    fn options(retries: u8) -> QueuePairOptions {
        QueuePairOptions { receiver_not_ready_retries: retries, ..QueuePairOptions::rc() }
    }
    // For ever: the SEND waits until a receive is there.
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, options(QueuePairOptions::FOR_EVER), 8).await?;
            link.sync().await?;
            link.data.send(link.region.all())?.await.success()?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, options(QueuePairOptions::FOR_EVER), 8).await?;
            link.sync().await?;
            a_while(&f).await;
            link.data.receive(link.region.all())?.await.success()?;
            link.finish().await
        },
    )?;
    // Twice: then it fails.
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, options(2), 8).await?;
            let (sent, behind) = (link.data.send(link.region.all())?, link.data.send(link.region.all())?);
            link.ends(sent, Status::ReceiverNotReady).await?;
            link.ends(behind, Status::Flushed).await?;
            link.is_in_error().await?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, options(2), 8).await?;
            link.finish().await
        },
    )
}

pub fn ud_drops_without_receive<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8).await?;
            let ud = f.create_queue_pair(QueuePairOptions::ud())?;
            let to = f.resolve("server", 0, "ud", Time::from_ms(10_000)).await?;
            same("the address after a way as bytes", Address::from_bytes(&to.to_bytes())?, to)?;
            let long = region(&f, ud.message_max() + 1)?;
            let refused = ud.send_to(long.all(), to).err();
            holds(
                matches!(refused, Some(PostError::MessageTooLong { .. })),
                "more than one MTU was not refused",
            )?;
            let read = ud.read(link.region.slice(0, 8), link.peer.at(0)).err();
            holds(matches!(read, Some(PostError::NotOnThisKind { .. })), "READ on UD was not refused")?;
            let lost = ud.send(link.region.slice(0, 8)).err();
            holds(
                matches!(lost, Some(PostError::NotOnThisKind { .. })),
                "UD without an address was not refused",
            )?;
            link.region.store(0, 1)?;
            ud.send_to(link.region.all(), to)?.await.success()?;
            // The server posts its receive only now: the first message must be gone.
            a_while(&f).await;
            link.sync().await?;
            link.sync().await?;
            let receive = ud.receive(link.region.slice(0, 8))?;
            link.region.store(0, 2)?;
            let request = WorkRequest::send_to(link.region.all(), to).immediate(5);
            ud.post(request.inline())?.await.success()?;
            let answer = receive.await.success()?;
            same("the answer's sender", answer.source, Some(to))?;
            same("the answer", link.region.load(0)?, 3)?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 4096).await?;
            let ud = f.create_queue_pair(QueuePairOptions::ud())?;
            f.publish("ud", &ud)?;
            link.sync().await?;
            let receive = ud.receive(link.region.all())?;
            link.sync().await?;
            let got = receive.await.success()?;
            same("the message that found a receive", link.region.load(0)?, 2)?;
            same("its length and word", (got.bytes, got.immediate), (8, Some(5)))?;
            let from = got.source.ok_or("a UD receive names no sender")?;
            link.region.store(0, 3)?;
            ud.send_to(link.region.slice(0, 8), from)?.await.success()?;
            link.finish().await
        },
    )
}

pub fn ud_loss<W: Backend>(make: Make<'_, W>) -> Verdict {
    const SENT: u64 = 12;
    const ROOM: u64 = 4;
    two(
        make,
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8 * SENT).await?;
            let ud = f.create_queue_pair(QueuePairOptions::ud())?;
            let to = f.resolve("server", 0, "ud", Time::from_ms(10_000)).await?;
            link.sync().await?;
            // More than there is room for: the sender learns nothing of it.
            for index in 0..SENT {
                link.region.store(8 * index, 100 + index)?;
                ud.send_to(link.region.slice(8 * index, 8), to)?.await.success()?;
            }
            a_while(&f).await;
            link.sync().await?;
            // Nobody has this number any more, or never had it.
            link.sync().await?;
            for to in [to, Address { queue_pair: 0x00ff_fff0, ..to }] {
                ud.send_to(link.region.slice(0, 8), to)?.await.success()?;
            }
            same("the sender's state", ud.state(), QueuePairState::Ready)?;
            link.finish().await
        },
        |f: W::Fabric| async move {
            let link = meet(&f, QueuePairOptions::rc(), 8 * SENT).await?;
            let ud = f.create_queue_pair(QueuePairOptions::ud())?;
            let mut receives = Vec::new();
            for slot in 0..ROOM {
                receives.push(ud.receive(link.region.slice(8 * slot, 8))?);
            }
            f.publish("ud", &ud)?;
            link.sync().await?;
            link.sync().await?;
            let mut last = 0;
            for (slot, receive) in receives.into_iter().enumerate() {
                same("bytes received", receive.await.success()?.bytes, 8)?;
                let word = link.region.load(8 * slot as u64)?;
                holds((100..100 + SENT).contains(&word), "a message was received that nobody sent")?;
                holds(word > last, "a message was received twice, or after a later one")?;
                last = word;
            }
            let late = ud.receive(link.region.slice(0, 8))?;
            let late = f.timeout(Time::from_ms(2), late).await;
            same("a message without a receive, received later", late.map(|late| late.status), None)?;
            ud.close();
            link.sync().await?;
            link.finish().await
        },
    )
}

pub fn datagrams<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let socket = f.bind(7)?;
            holds(
                matches!(f.bind(7), Err(DatagramError::PortTaken { port: 7, .. })),
                "a port was bound twice",
            )?;
            let server = PortAddress::new("server", 0, 9);
            let long = vec![0; socket.datagram_max() + 1];
            let refused = socket.send_to(&long, &server).await;
            holds(
                matches!(refused, Err(DatagramError::TooLong { .. })),
                "too long a datagram was not refused",
            )?;
            let refused = socket.send_to(b"", &PortAddress::new("nobody", 0, 9)).await;
            holds(
                matches!(refused, Err(DatagramError::NoSuchRole { .. })),
                "an unknown role was not refused",
            )?;
            let mut into = [0; 3];
            // Datagrams may be lost, so the question is asked until it is answered.
            let (length, from) = loop {
                socket.send_to(b"question", &server).await?;
                if let Some(answer) = f.timeout(Time::from_ms(2), socket.receive_from(&mut into)).await {
                    break answer?;
                }
            };
            same("an answer longer than its buffer", (length, &into), (3, b"ans"))?;
            same("its sender", from, server)
        },
        |f: W::Fabric| async move {
            let socket = f.bind(9)?;
            let mut into = [0; 64];
            let (length, from) = socket.receive_from(&mut into).await?;
            same("the question", &into[..length], b"question".as_slice())?;
            same("its sender", &from, &PortAddress::new("client", 0, 7))?;
            for _ in 0..100 {
                socket.send_to(b"answer", &from).await?;
                f.sleep(Time::from_us(100)).await;
            }
            Ok(())
        },
    )
}
