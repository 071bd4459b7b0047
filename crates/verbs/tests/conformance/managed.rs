//! Connections by the connection manager that come to nothing.

use crate::own::{Verdict, free, play, same, server};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{ConnectBy, Verbs, VerbsFabric};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Tags of the exchange over TCP.
const CONNECT: u8 = 1;
const ANSWER: u8 = 2;
/// How many bytes an end says of its queue pair, and of these the place of the GID.
const PARAMETERS: usize = 31;
const GID: usize = 8;
/// How long an acceptor waits for the word of whom it accepted.
const HEARD: Time = Time::from_ms(400);

fn receive(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut frame = vec![0; usize::from(u16::from_le_bytes(length))];
    stream.read_exact(&mut frame)?;
    let tag = frame.remove(0);
    Ok((tag, frame))
}

fn send(stream: &mut TcpStream, tag: u8, body: &[u8]) -> std::io::Result<()> {
    let mut frame = (body.len() as u16 + 1).to_le_bytes().to_vec();
    frame.push(tag);
    frame.extend_from_slice(body);
    stream.write_all(&frame)
}

/// What a dialler learns from an acceptor that makes an answer of the dialler's own parameters.
fn refused_by(
    backend: &Verbs,
    expected: &'static str,
    answer: impl FnOnce(&[u8]) -> std::io::Result<Vec<u8>> + Send + 'static,
) -> Verdict {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    let acceptor = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let (_, asked) = receive(&mut stream)?;
        let parameters = &asked[asked.len() - PARAMETERS - 1..asked.len() - 1];
        send(&mut stream, ANSWER, &answer(parameters)?)?;
        // Until the dialler gives up.
        let _ = stream.read(&mut [0]);
        Ok(())
    });
    let dialler = move |f: VerbsFabric| async move {
        let options = QueuePairOptions { connect_timeout: Time::from_ms(20_000), ..QueuePairOptions::rc() };
        let qp = f.create_queue_pair(options)?;
        let mut ticks = 0;
        let ticking = async {
            loop {
                f.sleep(Time::from_ms(10)).await;
                ticks += 1;
            }
        };
        let from = f.now();
        let ended = race(f.connect(&qp, "server", 0, "data"), ticking).await;
        let waited = (f.now() - from).ps() / Time::from_ms(10).ps();
        match ended {
            Err(ConnectError::Failed { reason, .. }) if reason.contains(expected) => {}
            other => return Err(format!("connecting ended with {other:?}, expected {expected}").into()),
        }
        println!("  {} ms, {ticks} rounds of another task meanwhile", waited * 10);
        // A call that waited would let that task run once before and once after; a busy machine, less often
        // than every 10 ms.
        if waited >= 100 && ticks < 5 {
            return Err("the backend stood still while it connected".into());
        }
        same("the queue pair's state", qp.state(), QueuePairState::Initialised)
    };
    play(backend.clone().peer("server", 0, peer), vec![Role::new("client", 0, dialler)])?;
    acceptor.join().map_err(|_| "the acceptor panicked")??;
    Ok(())
}

/// What `first` gives, while `other`, which never ends, runs beside it.
async fn race<T>(first: impl Future<Output = T>, other: impl Future<Output = ()>) -> T {
    let (mut first, mut other) = (std::pin::pin!(first), std::pin::pin!(other));
    std::future::poll_fn(|context| {
        let _ = other.as_mut().poll(context);
        first.as_mut().poll(context)
    })
    .await
}

/// The peer's machine is there, but nobody listens at the port of the connection manager.
pub fn nobody_listens(backend: &Verbs) -> Verdict {
    // Both ends are on this machine's device, so the dialler's parameters name where it is.
    refused_by(backend, "rejected the connection with reason 8 (nobody listens there)", |parameters| {
        Ok([parameters, &1u16.to_le_bytes(), &[7; 16]].concat())
    })
}

/// The peer's address is one of the network that no machine has.
pub fn no_such_address(backend: &Verbs) -> Verdict {
    refused_by(backend, "was not resolved", |parameters| {
        let mut answer = [parameters, &4000u16.to_le_bytes(), &[7; 16]].concat();
        answer[GID + 15] = 77;
        Ok(answer)
    })
}

/// The acceptor no longer waits for the rendezvous whose token it gave.
pub fn nobody_waits(backend: &Verbs) -> Verdict {
    let own = free()?;
    let done = Arc::new(AtomicBool::new(false));
    // Its first dialler leaves, so that its answer's token is forgotten while it waits for the next.
    std::thread::scope(|scope| {
        let host = scope.spawn({
            let done = done.clone();
            move || -> Result<(), String> {
                let backend = Verbs::open(None, 3).map_err(|error| error.to_string())?;
                let backend = backend.connect_by(ConnectBy::ConnectionManager).map_err(|e| e.to_string())?;
                let server = |f: VerbsFabric| async move {
                    let qp = f.create_queue_pair(QueuePairOptions::rc())?;
                    same("who was accepted", f.listen("data")?.accept(&qp).await?.instance, 0)
                };
                let keeper = move |f: VerbsFabric| {
                    let done = done.clone();
                    async move {
                        while !done.load(Ordering::Acquire) {
                            f.sleep(Time::from_ms(1)).await;
                        }
                        // The server ends when it accepted somebody.
                        let qp = f.create_queue_pair(QueuePairOptions::rc())?;
                        Ok(f.connect(&qp, "server", 0, "data").await?)
                    }
                };
                let roles = vec![Role::new("server", 0, server), Role::new("client", 0, keeper)];
                play(backend.listen_at(own), roles).map_err(|error| error.to_string())
            }
        });
        let refused = refused_by(
            backend,
            "rejected the connection with reason 28 (nobody there waits for this connection)",
            move |parameters| {
                let answer = answer_of(own, "data")?;
                std::thread::sleep(std::time::Duration::from_millis(200));
                Ok([parameters, &answer[PARAMETERS..]].concat())
            },
        );
        done.store(true, Ordering::Release);
        let hosted = host.join().unwrap_or_else(|_| Err("the acceptor's backend panicked".into()));
        refused.and_then(|()| Ok(hosted?))
    })
}

/// A dialler leaves after it got its answer, before it asks the connection manager: it is passed over.
pub fn a_dialler_that_leaves(backend: &Verbs) -> Verdict {
    let own = free()?;
    let left = Arc::new(AtomicBool::new(false));
    let leaver = std::thread::spawn({
        let left = left.clone();
        move || -> std::io::Result<usize> {
            let answer = answer_of(own, "data");
            left.store(true, Ordering::Release);
            Ok(answer?.len())
        }
    });
    let acceptor = |f: VerbsFabric| async move {
        let qp = f.create_queue_pair(QueuePairOptions::rc())?;
        let region = f.register("host", 8, Access::ALL)?;
        let word = qp.receive(region.all())?;
        same("who was accepted", f.listen("data")?.accept(&qp).await?, RoleName::new("client", 0))?;
        word.await.success()?;
        same("the word", region.load(0)?, 11)
    };
    let dialler = move |f: VerbsFabric| {
        let left = left.clone();
        async move {
            while !left.load(Ordering::Acquire) {
                f.sleep(Time::from_ms(1)).await;
            }
            send_word(&f, 11).await
        }
    };
    let roles = vec![Role::new("server", 0, acceptor), Role::new("client", 0, dialler)];
    play(backend.clone().listen_at(own), roles)?;
    let answer = leaver.join().map_err(|_| "the leaver panicked")??;
    same("the length of the answer", answer, PARAMETERS + 2 + 16)
}

/// What a backend answers a dialler, who then leaves.
fn answer_of(address: SocketAddr, service: &str) -> std::io::Result<Vec<u8>> {
    let mut stream = dial(address)?;
    let mut body = Vec::new();
    for (name, instance) in [("server", Some(0u32)), (service, None), ("client", Some(9))] {
        body.push(name.len() as u8);
        body.extend_from_slice(name.as_bytes());
        body.extend(instance.into_iter().flat_map(u32::to_le_bytes));
    }
    body.extend_from_slice(&[0; PARAMETERS]);
    body.push(1);
    send(&mut stream, CONNECT, &body)?;
    match receive(&mut stream)? {
        (ANSWER, answer) => Ok(answer),
        (tag, _) => Err(std::io::Error::other(format!("tag {tag}"))),
    }
}

/// The stream to a backend that is about to listen.
fn dial(address: SocketAddr) -> std::io::Result<TcpStream> {
    let mut tries = 0;
    loop {
        match TcpStream::connect(address) {
            Err(_) if tries < 1000 => std::thread::sleep(std::time::Duration::from_millis(5)),
            dialled => return dialled,
        }
        tries += 1;
    }
}

async fn send_word(f: &VerbsFabric, word: u64) -> Verdict {
    let options = QueuePairOptions { connect_timeout: Time::from_ms(20_000), ..QueuePairOptions::rc() };
    let qp = f.create_queue_pair(options)?;
    let region = f.register("host", 8, Access::ALL)?;
    region.store(0, word)?;
    f.connect(&qp, "server", 0, "data").await?;
    qp.send(region.all())?.await.success()?;
    // The acknowledgement must not be the last that the server sees of it.
    f.sleep(Time::from_ms(50)).await;
    Ok(())
}

/// Diallers give up at every stage of a connection: whoever comes after them is accepted.
pub fn diallers_that_give_up(backend: &Verbs) -> Verdict {
    let acceptor = |f: VerbsFabric| async move {
        let listener = f.listen("data")?;
        let region = f.register("host", 8, Access::ALL)?;
        let mut accepted = 0;
        loop {
            let qp = f.create_queue_pair(QueuePairOptions::rc())?;
            let word = qp.receive(region.all())?;
            listener.accept(&qp).await?;
            accepted += 1;
            let said = f.timeout(HEARD, word).await;
            if said.is_some_and(|word| word.status == Status::Success) {
                println!("  {accepted} accepted");
                return same("the word", region.load(0)?, 12);
            }
        }
    };
    let dialler = |f: VerbsFabric| async move {
        // Longer each time, until it is enough for a connection: so every stage is left once.
        let mut connect_timeout = Time::from_us(500);
        let mut gave_up = 0;
        loop {
            let qp = f.create_queue_pair(QueuePairOptions { connect_timeout, ..QueuePairOptions::rc() })?;
            match f.connect(&qp, "server", 0, "data").await {
                Ok(()) => break,
                Err(ConnectError::Timeout { .. }) => gave_up += 1,
                Err(other) => return Err(format!("after {connect_timeout}: {other}").into()),
            }
            drop(qp);
            // The server may have accepted it and wait for its word.
            f.sleep(HEARD + Time::from_ms(50)).await;
            connect_timeout = connect_timeout + Time::from_ps(connect_timeout.ps() / 3);
        }
        println!("  {gave_up} gave up, the last before {connect_timeout}");
        same("whether one gave up", gave_up > 0, true)?;
        send_word(&f, 12).await
    };
    play(backend.clone(), vec![Role::new("server", 0, acceptor), Role::new("client", 0, dialler)])
}

/// A process that exchanges its connections over TCP and one that makes them by the connection manager.
pub fn unequal_ways(backend: &Verbs) -> Verdict {
    let (own, peer, _server) = server(false)?;
    let dialler = |f: VerbsFabric| async move {
        let qp = f.create_queue_pair(QueuePairOptions::rc())?;
        match f.connect(&qp, "server", 0, "data").await {
            Err(ConnectError::Failed { reason, .. }) if reason.contains("another way") => Ok(()),
            other => Err(format!("connecting ended with {other:?}").into()),
        }
    };
    play(backend.clone().listen_at(own).peer("server", 0, peer), vec![Role::new("client", 0, dialler)])
}
