//! What only the verbs backend has.

use crate::device::PATIENT;
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{DirectCompletion, Verbs, VerbsDirect, VerbsFabric};
use std::error::Error;
use std::net::SocketAddr;
use std::process::{Child, Command};

pub type Verdict = Result<(), Box<dyn Error>>;

/// Prints how a case ended; says whether well.
pub fn tell(name: &str, verdict: &Verdict) -> bool {
    match verdict {
        Ok(()) => println!("pass {name}"),
        Err(why) => println!("FAIL {name}: {why}"),
    }
    verdict.is_ok()
}

pub fn same<T: PartialEq + std::fmt::Debug>(what: &str, is: T, expected: T) -> Verdict {
    if is == expected { Ok(()) } else { Err(format!("{what} is {is:?}, expected {expected:?}").into()) }
}

/// Runs roles of which none may take for ever.
pub fn play(backend: Verbs, roles: Vec<Role<VerbsFabric, Verdict>>) -> Verdict {
    let guard = |role: Role<VerbsFabric, Verdict>| {
        let function = role.function.clone();
        Role::new(&role.name.role, role.name.instance, move |f: VerbsFabric| {
            let work = function(f.clone());
            async move {
                let late = || Err("still waiting after 30 s".into());
                f.timeout(Time::from_ms(30_000), work).await.unwrap_or_else(late)
            }
        })
    };
    for outcome in backend.run(roles.into_iter().map(guard).collect())?.outcomes {
        let name = outcome.name.to_string();
        outcome.end.finished().unwrap_or(Ok(())).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// Two connections take their receives from one queue; each message says which connection it came on.
pub fn shared_receive_queue(backend: &Verbs) -> Verdict {
    const EACH: u64 = 8;
    let client = |f: VerbsFabric| async move {
        let own = f.role().instance;
        let qp = f.create_queue_pair(QueuePairOptions::rc())?;
        f.connect(&qp, "server", 0, &format!("data-{own}")).await?;
        let word = f.register("host", 8, Access::ALL)?;
        for index in 0..EACH {
            word.store(0, 100 * u64::from(own) + index)?;
            qp.send(word.all())?.await.success()?;
        }
        // The server has taken all of them when it lets go of the connection.
        f.sleep(Time::from_ms(50)).await;
        Ok(())
    };
    let server = |f: VerbsFabric| async move {
        let shared = f.create_shared_receive_queue(2 * EACH as u32)?;
        let region = f.register("host", 8 * 2 * EACH, Access::ALL)?;
        let mut receives = Vec::new();
        for slot in 0..2 * EACH {
            receives.push(shared.receive(region.slice(8 * slot, 8))?);
        }
        let full = shared.receive(region.slice(0, 8)).err();
        same("one receive too many", full, Some(PostError::ReceiveQueueFull { depth: 2 * EACH as u32 }))?;
        let mut pairs = Vec::new();
        for client in 0..2 {
            let qp = f.create_queue_pair_on(QueuePairOptions::rc(), &shared)?;
            let own = qp.receive(region.slice(0, 8)).err();
            if !matches!(own, Some(PostError::NotOnThisKind { .. })) {
                return Err("a receive of its own was posted to a queue pair that shares".into());
            }
            let listener = f.listen(&format!("data-{client}"))?;
            listener.accept(&qp).await?;
            pairs.push(qp);
        }
        let mut next = [0; 2];
        for (slot, receive) in receives.into_iter().enumerate() {
            let got = receive.await.success()?;
            let word = region.load(8 * slot as u64)?;
            let (client, index) = (word / 100, word % 100);
            let from = got.source.ok_or("a shared receive names no queue pair")?;
            same("the queue pair that took it", from, pairs[client as usize].address())?;
            same("the order on one connection", index, next[client as usize])?;
            next[client as usize] += 1;
        }
        same("messages of each connection", next, [EACH; 2])
    };
    play(
        backend.clone(),
        vec![Role::new("client", 0, client), Role::new("client", 1, client), Role::new("server", 0, server)],
    )
}

/// Takes `count` completions of a queue pair that is polled by hand.
async fn take(
    f: &VerbsFabric,
    queue_pair: &mut VerbsDirect,
    count: usize,
) -> Result<Vec<DirectCompletion>, Box<dyn Error>> {
    let mut taken = Vec::new();
    while taken.len() < count {
        if queue_pair.poll(|completion| taken.push(completion)) == 0 {
            f.sleep(Time::from_us(100)).await;
        }
    }
    Ok(taken)
}

/// Requests by hand arrive, and end in order with their numbers, also after a failure and after closing.
pub fn requests_by_hand(backend: &Verbs) -> Verdict {
    let server = |f: VerbsFabric| async move {
        let region = f.register("host", 64, Access::ALL)?;
        let mut qp = f.create_direct(QueuePairOptions::rc())?;
        let whole = Slice { region: &region, offset: 8, length: 56 };
        qp.receive(5, &whole)?;
        f.listen("data")?.accept(qp.queue_pair()).await?;
        let got = take(&f, &mut qp, 1).await?;
        let name = DirectCompletion { number: 5, status: Status::Success, bytes: 8, immediate: Some(77) };
        same("the receive", got, vec![name])?;
        same("the word that arrived", region.load(8)?, 4321)?;
        region.store(0, 1234)?;
        // The client reads here, and needs the region's name.
        region.write(16, &region.remote().to_bytes())?;
        let name = Slice { region: &region, offset: 16, length: RemoteRegion::BYTES as u64 };
        qp.add(6, &WorkRequest::send(name))?;
        qp.ring().map_err(|(error, _)| error)?;
        same("the answer", take(&f, &mut qp, 1).await?[0].status, Status::Success)?;
        // The region goes with this role.
        f.sleep(Time::from_ms(500)).await;
        Ok(())
    };
    let client = |f: VerbsFabric| async move {
        let region = f.register("host", 256, Access::ALL)?;
        let slice = |offset, length| Slice { region: &region, offset, length };
        let mut qp = f.create_direct(QueuePairOptions { send_depth: 4, ..QueuePairOptions::rc() })?;
        qp.receive(1, &slice(64, RemoteRegion::BYTES as u64))?;
        f.connect(qp.queue_pair(), "server", 0, "data").await?;
        let completion = qp.queue_pair().post(WorkRequest::send(region.slice(0, 8))).err();
        if !matches!(completion, Some(PostError::Unsupported(_))) {
            return Err("a completion was given for a queue pair that is polled by hand".into());
        }
        region.store(0, 4321)?;
        qp.add(2, &WorkRequest::send(slice(0, 8)).immediate(77))?;
        qp.ring().map_err(|(error, _)| error)?;
        let mut numbers: Vec<_> = take(&f, &mut qp, 2).await?.iter().map(|end| end.number).collect();
        numbers.sort();
        same("the numbers of a SEND and its answer", numbers, vec![1, 2])?;
        let mut name = [0; RemoteRegion::BYTES];
        region.read(64, &mut name)?;
        let there = RemoteRegion::from_bytes(&name)?;
        for number in 10..14 {
            let mut read = WorkRequest::read(slice(8 * (number - 10), 8), there.at(0));
            read.signaled = number == 13;
            qp.add(number, &read)?;
        }
        let full = qp.add(14, &WorkRequest::read(slice(0, 8), there.at(0))).err();
        same("one request too many", full, Some(PostError::QueueFull { depth: 4 }))?;
        qp.ring().map_err(|(error, _)| error)?;
        same("the number of the last of four", take(&f, &mut qp, 1).await?[0].number, 13)?;
        for place in 0..4 {
            same("the word that was read", region.load(8 * place)?, 1234)?;
        }
        let wrong = RemoteRegion { key: !there.key, ..there };
        for (number, at) in [(20, wrong), (21, there)] {
            qp.add(number, &WorkRequest::read(slice(0, 8), at.at(0)))?;
        }
        qp.ring().map_err(|(error, _)| error)?;
        let ends = take(&f, &mut qp, 2).await?;
        let ends: Vec<_> = ends.iter().map(|end| (end.number, end.status)).collect();
        same("the ends of a failure", ends, vec![(20, Status::RemoteAccess), (21, Status::Flushed)])?;
        same("the state after it", qp.queue_pair().state(), QueuePairState::Error)?;
        qp.queue_pair().close();
        qp.add(30, &WorkRequest::read(slice(0, 8), there.at(0)))?;
        let closed = qp.ring().err();
        same("posting after closing", closed, Some((PostError::State { state: QueuePairState::Closed }, 0)))
    };
    play(backend.clone(), vec![Role::new("client", 0, client), Role::new("server", 0, server)])
}

async fn serve(f: VerbsFabric) -> Verdict {
    let region = f.register("host", 4096, Access::ALL)?;
    let (qp, ud) =
        (f.create_queue_pair(QueuePairOptions::rc())?, f.create_queue_pair(QueuePairOptions::ud())?);
    let question = ud.receive(region.slice(1024, 64))?;
    f.publish("ud", &ud)?;
    let end = qp.receive(region.slice(2048, 8))?;
    let listener = f.listen("data")?;
    same("the accepted peer", listener.accept(&qp).await?, RoleName::new("client", 0))?;
    region.write(3072, &region.remote().to_bytes())?;
    qp.send(region.slice(3072, RemoteRegion::BYTES as u64))?.await.success()?;
    let question = question.await.success()?;
    region.store(1200, region.load(1024)? + 1)?;
    ud.send_to(region.slice(1200, 8), question.source.ok_or("no sender")?)?.await.success()?;
    let socket = f.bind(9)?;
    let echo = f.spawn({
        async move {
            let mut bytes = [0; 64];
            while let Ok((length, from)) = socket.receive_from(&mut bytes).await {
                let _ = socket.send_to(&bytes[..length], &from).await;
            }
        }
    });
    end.await.success()?;
    drop(echo);
    same("the word that WRITE and fetch-and-add left", region.load(0)?, 42)?;
    // The client's last acknowledgement must not be lost.
    f.sleep(Time::from_ms(100)).await;
    Ok(())
}

async fn meet(
    f: &VerbsFabric,
    options: QueuePairOptions,
) -> Result<(<VerbsFabric as Fabric>::QueuePair, <VerbsFabric as Fabric>::Region, RemoteRegion), Box<dyn Error>>
{
    let region = f.register("host", 4096, Access::ALL)?;
    let qp = f.create_queue_pair(options)?;
    let name = qp.receive(region.slice(0, RemoteRegion::BYTES as u64))?;
    f.connect(&qp, "server", 0, "data").await?;
    name.await.success()?;
    let mut bytes = [0; RemoteRegion::BYTES];
    region.read(0, &mut bytes)?;
    Ok((qp, region, RemoteRegion::from_bytes(&bytes)?))
}

async fn drive(f: VerbsFabric) -> Verdict {
    let (qp, region, there) = meet(&f, QueuePairOptions::rc()).await?;
    region.store(64, 40)?;
    qp.write(region.slice(64, 8), there.at(0))?.await.success()?;
    qp.fetch_and_add(region.slice(72, 8), there.at(0), 2)?.await.success()?;
    same("what a fetch-and-add brings", region.load(72)?, 40)?;
    qp.read(region.slice(80, 8), there.at(0))?.await.success()?;
    same("what a READ brings", region.load(80)?, 42)?;
    let ud = f.create_queue_pair(QueuePairOptions::ud())?;
    let to = f.resolve("server", 0, "ud", Time::from_ms(10_000)).await?;
    let answer = ud.receive(region.slice(128, 64))?;
    region.store(96, 7)?;
    ud.send_to(region.slice(96, 8), to)?.await.success()?;
    same("who answers on UD", answer.await.success()?.source, Some(to))?;
    same("the answer on UD", region.load(128)?, 8)?;
    let socket = f.bind(7)?;
    let mut bytes = [0; 8];
    let (length, from) = loop {
        socket.send_to(b"echo", &PortAddress::new("server", 0, 9)).await?;
        if let Some(answer) = f.timeout(Time::from_ms(20), socket.receive_from(&mut bytes)).await {
            break answer?;
        }
    };
    same("the datagram's echo", (&bytes[..length], from), (&b"echo"[..], PortAddress::new("server", 0, 9)))?;
    qp.send(region.slice(0, 8))?.await.success()?;
    Ok(())
}

/// One process of two: the one role, the other by its address.
pub fn one_process(backend: &Verbs, role: &str, own: SocketAddr, peer: SocketAddr) -> Verdict {
    let backend = backend.clone().listen_at(own);
    if role == "server" {
        play(backend.peer("client", 0, peer), vec![Role::new("server", 0, serve)])
    } else {
        play(backend.peer("server", 0, peer), vec![Role::new("client", 0, drive)])
    }
}

/// A server in a process of its own, ended with the test.
pub struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine that is free.
pub fn free() -> std::io::Result<SocketAddr> {
    std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// Two addresses that are free, and a server process at the second.
pub fn server(managed: bool) -> Result<(SocketAddr, SocketAddr, Server), Box<dyn Error>> {
    let (own, peer) = (free()?, free()?);
    let mut command = Command::new(std::env::current_exe()?);
    command.args(managed.then_some("managed"));
    command.args(["server", &peer.to_string(), &own.to_string()]);
    Ok((own, peer, Server(command.spawn()?)))
}

/// A client here and a server in another process, over RC, UD and datagrams.
pub fn two_processes(backend: &Verbs, managed: bool) -> Verdict {
    let (own, peer, mut server) = server(managed)?;
    one_process(backend, "client", own, peer)?;
    same("whether the server ended well", server.0.wait()?.success(), true)
}

/// The server's process is killed while its client writes: the client learns it from its next request,
/// and everything behind is flushed, however often the request may be retransmitted.
pub fn a_killed_process(backend: &Verbs, managed: bool) -> Verdict {
    let retries = [1, QueuePairOptions::rc().retries];
    retries.into_iter().try_for_each(|retries| a_process_killed(backend, managed, retries))
}

fn a_process_killed(backend: &Verbs, managed: bool, retries: u8) -> Verdict {
    let (own, peer, server) = server(managed)?;
    let server = std::rc::Rc::new(std::cell::RefCell::new(server));
    let client = move |f: VerbsFabric| {
        let server = server.clone();
        async move {
            let options = QueuePairOptions { retries, ..QueuePairOptions::rc() };
            let (qp, region, there) = meet(&f, options).await?;
            let write = || qp.write(region.slice(64, 8), there.at(8));
            write()?.await.success()?;
            server.borrow_mut().0.kill()?;
            server.borrow_mut().0.wait()?;
            if managed {
                // The connection manager tells that the peer left, which no request has to find out.
                f.sleep(Time::from_ms(2000)).await;
            }
            let from = f.now();
            let (failed, behind) = (write()?, write()?);
            same("a WRITE to a process that was killed", failed.await.status, Status::RetryExceeded)?;
            let took = f.now() - from;
            println!("  {} us until the WRITE failed", took.ps() / Time::from_us(1).ps());
            // The device takes as long as all its retries.
            if managed && took >= Time::from_ps(PATIENT.ps() * (u64::from(retries) + 1)) {
                return Err(
                    "the WRITE waited for an acknowledgement of a peer that is known to be gone".into()
                );
            }
            same("the WRITE behind it", behind.await.status, Status::Flushed)?;
            same("the queue pair's state", qp.state(), QueuePairState::Error)?;
            same("a request posted afterwards", write()?.await.status, Status::Flushed)
        }
    };
    play(backend.clone().listen_at(own).peer("server", 0, peer), vec![Role::new("client", 0, client)])
}
