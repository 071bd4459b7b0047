//! Connections by the connection manager that come to nothing.

use crate::own::{Verdict, free, play, same, server};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsFabric};
use std::error::Error;
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

/// What a dialler learns from an acceptor whose answer leads nowhere, after `change` of its parameters.
fn refused_by(world: &Verbs, expected: &'static str, change: fn(&mut [u8])) -> Verdict {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let peer = listener.local_addr()?;
    // An acceptor on this machine's own device, so its answer is the dialler's with another port.
    let acceptor = std::thread::spawn(move || -> std::io::Result<()> {
        let (mut stream, _) = listener.accept()?;
        let (_, asked) = receive(&mut stream)?;
        let mut body = asked[asked.len() - PARAMETERS - 1..asked.len() - 1].to_vec();
        change(&mut body);
        body.extend_from_slice(&1u16.to_le_bytes());
        body.extend_from_slice(&[7; 16]);
        send(&mut stream, ANSWER, &body)?;
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
        if waited >= 10 && ticks < waited / 10 {
            return Err("the world stood still while it connected".into());
        }
        same("the queue pair's state", qp.state(), QueuePairState::Initialised)
    };
    play(world.clone().peer("server", 0, peer), vec![Role::new("client", 0, dialler)])?;
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
pub fn nobody_listens(world: &Verbs) -> Verdict {
    refused_by(world, "rejected the connection with reason 8 (nobody listens there)", |_| {})
}

/// The peer's address is one of the network that no machine has.
pub fn no_such_address(world: &Verbs) -> Verdict {
    refused_by(world, "was not resolved", |parameters| parameters[GID + 15] = 77)
}

/// A dialler leaves after it got its answer, before it asks the connection manager: it is passed over.
pub fn a_dialler_that_leaves(world: &Verbs) -> Verdict {
    let own = free()?;
    let left = Arc::new(AtomicBool::new(false));
    let leaver = std::thread::spawn({
        let left = left.clone();
        move || -> Result<usize, Box<dyn Error + Send + Sync>> {
            let mut stream = dial(own)?;
            let mut body = Vec::new();
            for (name, instance) in [("server", Some(0u32)), ("data", None), ("client", Some(9))] {
                body.push(name.len() as u8);
                body.extend_from_slice(name.as_bytes());
                body.extend(instance.into_iter().flat_map(u32::to_le_bytes));
            }
            body.extend_from_slice(&[0; PARAMETERS]);
            body.push(1);
            send(&mut stream, CONNECT, &body)?;
            let (tag, answer) = receive(&mut stream)?;
            left.store(true, Ordering::Release);
            if tag == ANSWER { Ok(answer.len()) } else { Err(format!("tag {tag}").into()) }
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
    play(world.clone().listen_at(own), roles)?;
    let answer = leaver.join().map_err(|_| "the leaver panicked")?.map_err(|error| error.to_string())?;
    same("the length of the answer", answer, PARAMETERS + 2 + 16)
}

/// The stream to a world that is about to listen.
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
pub fn diallers_that_give_up(world: &Verbs) -> Verdict {
    let acceptor = |f: VerbsFabric| async move {
        let listener = f.listen("data")?;
        let region = f.register("host", 8, Access::ALL)?;
        let mut accepted = 0;
        loop {
            let qp = f.create_queue_pair(QueuePairOptions::rc())?;
            let word = qp.receive(region.all())?;
            listener.accept(&qp).await?;
            accepted += 1;
            let said = f.timeout(Time::from_ms(300), word).await;
            if said.is_some_and(|word| word.status == Status::Success) {
                println!("  {accepted} accepted");
                return same("the word", region.load(0)?, 12);
            }
        }
    };
    let dialler = |f: VerbsFabric| async move {
        let mut gave_up = 0;
        for patience in 1..24 {
            let connect_timeout = Time::from_ms(patience);
            let qp = f.create_queue_pair(QueuePairOptions { connect_timeout, ..QueuePairOptions::rc() })?;
            match f.connect(&qp, "server", 0, "data").await {
                Ok(()) => {}
                Err(ConnectError::Timeout { .. }) => gave_up += 1,
                Err(other) => return Err(format!("after {patience} ms: {other}").into()),
            }
        }
        println!("  {gave_up} of 23 gave up");
        same("whether one gave up", gave_up > 0, true)?;
        send_word(&f, 12).await
    };
    play(world.clone(), vec![Role::new("server", 0, acceptor), Role::new("client", 0, dialler)])
}

/// A process that exchanges its connections over TCP and one that makes them by the connection manager.
pub fn unequal_ways(world: &Verbs) -> Verdict {
    let (own, peer, _server) = server(false)?;
    let dialler = |f: VerbsFabric| async move {
        let qp = f.create_queue_pair(QueuePairOptions::rc())?;
        match f.connect(&qp, "server", 0, "data").await {
            Err(ConnectError::Failed { reason, .. }) if reason.contains("another way") => Ok(()),
            other => Err(format!("connecting ended with {other:?}").into()),
        }
    };
    play(world.clone().listen_at(own).peer("server", 0, peer), vec![Role::new("client", 0, dialler)])
}
