//! The twin against the fabric's contract, and what only it promises: exact time, torn reads, faults.

use offpath_conformance::run_all;
use offpath_fabric::*;
use offpath_profile::{Library, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Operation as Routed, Posting, Router, Verb};
use offpath_twin::world::{Crash, Crashing, Observer, SlowStation};
use offpath_twin::{Crossing, Faults, Retransmission, Rule, TwinFabric, TwinWorld};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

type Outcome = Result<(), Box<dyn Error>>;

fn system() -> System {
    let request = offpath_profile::Request { device: "bluefield2", ..Default::default() };
    Library::builtin().load(&request).expect("a shipped profile loads")
}

fn world(seed: u64) -> TwinWorld {
    TwinWorld::new(&system(), seed).expect("a shipped profile has routes")
}

/// Runs roles that must all end well.
fn play(world: TwinWorld, roles: Vec<Role<TwinFabric, Outcome>>) -> Time {
    let run = world.run(roles).expect("the run ends");
    for outcome in run.outcomes {
        if let Some(Err(why)) = outcome.end.finished() {
            panic!("{}: {why}", outcome.name);
        }
    }
    run.elapsed
}

#[test]
fn conformance_over_the_network() {
    let make = |seed| world(seed).with_placement("client", "client").with_placement("server", "host");
    let report = run_all(&make);
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    // No copy engine reaches the client.
    assert_eq!(report.skipped(), ["dma_copies"], "{report}");
}

#[test]
fn conformance_within_the_card() {
    let make = |seed| world(seed).with_placement("client", "soc").with_placement("server", "host");
    let report = run_all(&make);
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    assert!(report.skipped().is_empty(), "{report}");
}

/// Connects a queue pair, telling the peer's region.
async fn join(
    fabric: &TwinFabric,
    peer: Option<&str>,
    options: QueuePairOptions,
) -> Result<<TwinFabric as Fabric>::QueuePair, Box<dyn Error>> {
    let queue_pair = fabric.create_queue_pair(options)?;
    match peer {
        Some(peer) => fabric.connect(&queue_pair, peer, 0, "test").await?,
        None => {
            fabric.listen("test")?.accept(&queue_pair).await?;
        }
    }
    Ok(queue_pair)
}

#[derive(Clone, Default)]
struct Shared(Rc<RefCell<Option<RemoteRegion>>>);

impl Shared {
    async fn get(&self, fabric: &TwinFabric) -> RemoteRegion {
        loop {
            if let Some(region) = *self.0.borrow() {
                return region;
            }
            fabric.sleep(Time::from_us(1)).await;
        }
    }
}

/// A client and a server that lends a region and lives on in the background.
fn lending<Fut: Future<Output = Outcome> + 'static>(
    length: u64,
    server: &'static str,
    client_role: &'static str,
    client: impl Fn(TwinFabric, <TwinFabric as Fabric>::QueuePair, RemoteRegion) -> Fut + Clone + 'static,
    options: QueuePairOptions,
) -> Vec<Role<TwinFabric, Outcome>> {
    let shared = Shared::default();
    let lent = shared.clone();
    let lender = Role::new(server, 0, move |f: TwinFabric| {
        let lent = lent.clone();
        async move {
            let region = f.register(server, length, Access::ALL)?;
            *lent.0.borrow_mut() = Some(region.remote());
            let _queue_pair = join(&f, None, QueuePairOptions::rc()).await?;
            std::future::pending::<()>().await;
            drop(region);
            Ok(())
        }
    });
    let client = Role::new(client_role, 0, move |f: TwinFabric| {
        let (shared, client) = (shared.clone(), client.clone());
        async move {
            let remote = shared.get(&f).await;
            let queue_pair = join(&f, Some(server), options).await?;
            client(f, queue_pair, remote).await
        }
    });
    vec![client, lender.in_background()]
}

fn unloaded(router: &Router, verb: Verb, path: &str, payload: u64, posting: Posting) -> Time {
    let path = router.path(path).expect("the path exists");
    let operation = Routed::new(verb, path, Bytes::new(payload)).posted(posting);
    router.route(&operation).expect("the route exists").unloaded(router).latency
}

#[test]
fn an_idle_one_sided_verb_takes_its_unloaded_latency() {
    for (client, server) in [("client", "host"), ("client", "soc"), ("soc", "host"), ("host", "soc")] {
        let world = world(1);
        let router = world.router().clone();
        let roles = lending(
            1 << 21,
            server,
            client,
            move |f, queue_pair, remote| {
                let router = router.clone();
                async move {
                    let region = f.register(client, 1 << 21, Access::ALL)?;
                    let path = format!("{client}-{server}");
                    for payload in [0u64, 8, 64, 512, 4096, 16384, 16385, 1 << 20] {
                        for verb in [Verb::Read, Verb::Write, Verb::FetchAndAdd, Verb::CompareAndSwap] {
                            let atomic = verb.is_atomic();
                            if atomic && payload != 8 {
                                continue;
                            }
                            f.sleep(Time::from_ms(1)).await;
                            let local = region.slice(0, payload);
                            let before = f.now();
                            let ticket = match verb {
                                Verb::Read => queue_pair.read(local, remote.at(0))?,
                                Verb::Write => queue_pair.write(local, remote.at(0))?,
                                Verb::FetchAndAdd => queue_pair.fetch_and_add(local, remote.at(0), 1)?,
                                _ => queue_pair.compare_and_swap(local, remote.at(0), 0, 1)?,
                            };
                            ticket.await.success()?;
                            let expected = unloaded(&router, verb, &path, payload, Posting::Single);
                            assert_eq!(f.now() - before, expected, "{verb} {payload} on {path}");
                        }
                    }
                    Ok(())
                }
            },
            QueuePairOptions::rc(),
        );
        play(world, roles);
    }
}

#[test]
fn an_idle_message_takes_its_unloaded_latency() {
    for (client, server) in [("client", "host"), ("client", "soc"), ("soc", "host")] {
        for (verb, options) in
            [(Verb::Send, QueuePairOptions::rc()), (Verb::SendDatagram, QueuePairOptions::ud())]
        {
            for payload in [0u64, 64, 1024] {
                let world = world(1);
                let router = world.router().clone();
                let times: Rc<RefCell<[Time; 2]>> = Rc::default();
                let (sent, received) = (times.clone(), times.clone());
                let sender = Role::new(client, 0, move |f: TwinFabric| {
                    let sent = sent.clone();
                    async move {
                        let region = f.register(client, 4096, Access::ALL)?;
                        let queue_pair = f.create_queue_pair(options)?;
                        let local = region.slice(0, payload);
                        if options.kind == Kind::Rc {
                            f.connect(&queue_pair, server, 0, "test").await?;
                            f.sleep(Time::from_ms(1)).await;
                            sent.borrow_mut()[0] = f.now();
                            queue_pair.send(local)?.await.success()?;
                        } else {
                            let to = f.resolve(server, 0, "test", Time::from_ms(10)).await?;
                            f.sleep(Time::from_ms(1)).await;
                            sent.borrow_mut()[0] = f.now();
                            queue_pair.send_to(local, to)?.await.success()?;
                        }
                        Ok(())
                    }
                });
                let receiver = Role::new(server, 0, move |f: TwinFabric| {
                    let received = received.clone();
                    async move {
                        let region = f.register(server, 4096, Access::ALL)?;
                        let queue_pair = f.create_queue_pair(options)?;
                        let ticket = queue_pair.receive(region.all())?;
                        if options.kind == Kind::Rc {
                            f.listen("test")?.accept(&queue_pair).await?;
                        } else {
                            f.publish("test", &queue_pair)?;
                        }
                        ticket.await.success()?;
                        received.borrow_mut()[1] = f.now();
                        Ok(())
                    }
                });
                println!("{verb} {payload} {client}-{server}");
                play(world, vec![sender, receiver]);
                let [from, to] = *times.borrow();
                let expected =
                    unloaded(&router, verb, &format!("{client}-{server}"), payload, Posting::Single);
                assert_eq!(to - from, expected, "{verb} {payload} {client}-{server}");
            }
        }
    }
}

#[test]
fn an_idle_batch_and_copy_take_their_unloaded_latency() {
    let world = world(1);
    let router = world.router().clone();
    let roles = lending(
        1 << 20,
        "host",
        "soc",
        move |f, queue_pair, remote| {
            let router = router.clone();
            async move {
                let region = f.register("soc", 1 << 20, Access::ALL)?;
                f.sleep(Time::from_ms(1)).await;
                let before = f.now();
                let read = || WorkRequest::read(region.slice(0, 64), remote.at(0));
                let first = queue_pair.batch(vec![read(), read()])?.remove(0);
                first.await.success()?;
                let expected = unloaded(&router, Verb::Read, "soc-host", 64, Posting::Batch(2));
                assert_eq!(f.now() - before, expected);
                for payload in [64u64, 65536] {
                    f.sleep(Time::from_ms(1)).await;
                    let before = f.now();
                    let local = MemoryAt::Local { region: region.clone(), offset: 0 };
                    let there = MemoryAt::Remote(remote.at(0));
                    f.dma_copy("dma", there, local, payload)?.await.success()?;
                    let expected = unloaded(&router, Verb::Read, "soc-host-dma", payload, Posting::Single);
                    assert_eq!(f.now() - before, expected);
                }
                Ok(())
            }
        },
        QueuePairOptions::rc(),
    );
    play(world, roles);
}
