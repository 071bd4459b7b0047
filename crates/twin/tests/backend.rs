//! The twin against the fabric's contract, and what only it promises: exact time, torn reads, faults.

use offpath_conformance::run_all;
use offpath_fabric::*;
use offpath_profile::{Library, System};
use offpath_quantity::{Bytes, Time};
use offpath_route::{PathOperation as Routed, Posting, Router, Verb};
use offpath_twin::backend::{Crash, Crashing, Observer, SlowStation};
use offpath_twin::{Fault, FaultRule, Faults, Retransmission, TwinBackend, TwinFabric};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;

type Outcome = Result<(), Box<dyn Error>>;

fn system() -> System {
    let request = offpath_profile::SystemRequest { device: "bluefield2", ..Default::default() };
    Library::builtin().load(&request).expect("a shipped profile loads")
}

fn backend(seed: u64) -> TwinBackend {
    TwinBackend::new(&system(), seed).expect("a shipped profile has routes")
}

/// Runs roles that must all end well.
fn play(backend: TwinBackend, roles: Vec<Role<TwinFabric, Outcome>>) -> Time {
    let run = backend.run(roles).expect("the run ends");
    for outcome in run.outcomes {
        if let Some(Err(why)) = outcome.end.finished() {
            panic!("{}: {why}", outcome.name);
        }
    }
    run.elapsed
}

#[test]
fn conformance_over_the_network() {
    let make = |seed| backend(seed).with_placement("client", "client").with_placement("server", "host");
    let report = run_all(&make);
    println!("{report}");
    assert!(report.failed().is_empty(), "{report}");
    // No DMA engine reaches the client.
    assert_eq!(report.skipped(), ["dma_copies"], "{report}");
}

#[test]
fn conformance_within_the_card() {
    let make = |seed| backend(seed).with_placement("client", "soc").with_placement("server", "host");
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
        let backend = backend(1);
        let router = backend.router().clone();
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
                            let completion = match verb {
                                Verb::Read => queue_pair.read(local, remote.at(0))?,
                                Verb::Write => queue_pair.write(local, remote.at(0))?,
                                Verb::FetchAndAdd => queue_pair.fetch_and_add(local, remote.at(0), 1)?,
                                _ => queue_pair.compare_and_swap(local, remote.at(0), 0, 1)?,
                            };
                            completion.await.success()?;
                            let expected = unloaded(&router, verb, &path, payload, Posting::Single);
                            assert_eq!(f.now() - before, expected, "{verb} {payload} on {path}");
                        }
                    }
                    Ok(())
                }
            },
            QueuePairOptions::rc(),
        );
        play(backend, roles);
    }
}

#[test]
fn an_idle_message_takes_its_unloaded_latency() {
    for (client, server) in [("client", "host"), ("client", "soc"), ("soc", "host")] {
        for (verb, options) in
            [(Verb::Send, QueuePairOptions::rc()), (Verb::SendDatagram, QueuePairOptions::ud())]
        {
            for payload in [0u64, 64, 1024] {
                let backend = backend(1);
                let router = backend.router().clone();
                let times: Rc<RefCell<[Time; 2]>> = Rc::default();
                let (sent, received) = (times.clone(), times.clone());
                let sender = Role::new(client, 0, move |f: TwinFabric| {
                    let sent = sent.clone();
                    async move {
                        let region = f.register(client, 4096, Access::ALL)?;
                        let queue_pair = f.create_queue_pair(options)?;
                        let local = region.slice(0, payload);
                        if options.kind == QueuePairType::Rc {
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
                        let completion = queue_pair.receive(region.all())?;
                        if options.kind == QueuePairType::Rc {
                            f.listen("test")?.accept(&queue_pair).await?;
                        } else {
                            f.publish("test", &queue_pair)?;
                        }
                        completion.await.success()?;
                        received.borrow_mut()[1] = f.now();
                        Ok(())
                    }
                });
                println!("{verb} {payload} {client}-{server}");
                play(backend, vec![sender, receiver]);
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
    let backend = backend(1);
    let router = backend.router().clone();
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
    play(backend, roles);
}

/// A client that reads a versioned record which a server's WRITEs and stores change: the version stands
/// at both ends, so that a reader sees whether it read a whole one.
#[test]
fn a_torn_read_happens_and_versions_detect_it() {
    const LENGTH: u64 = 4096;
    let torn = Rc::new(RefCell::new((0, 0)));
    let shared = Shared::default();
    let (lent, counts) = (shared.clone(), torn.clone());
    let server = Role::new("soc", 0, move |f: TwinFabric| {
        let lent = lent.clone();
        async move {
            let region = f.register("soc", LENGTH, Access::ALL)?;
            *lent.0.borrow_mut() = Some(region.remote());
            let _queue_pair = join(&f, None, QueuePairOptions::rc()).await?;
            for version in 1u64.. {
                region.write(0, &version.to_le_bytes().repeat(LENGTH as usize / 8))?;
                f.sleep(Time::from_ns(700)).await;
            }
            Ok(())
        }
    });
    let client = Role::new("client", 0, move |f: TwinFabric| {
        let (shared, counts) = (shared.clone(), counts.clone());
        async move {
            let remote = shared.get(&f).await;
            let queue_pair = join(&f, Some("soc"), QueuePairOptions::rc()).await?;
            let region = f.register("client", LENGTH, Access::ALL)?;
            for _ in 0..500 {
                queue_pair.read(region.all(), remote.at(0))?.await.success()?;
                let words: Vec<_> = (0..LENGTH / 8).map(|i| region.load(8 * i)).collect::<Result<_, _>>()?;
                let whole = words.iter().all(|word| *word == words[0]);
                let same_ends = words.first() == words.last();
                // Within a line nothing is torn, and a later line is never older.
                assert!(words.chunks(8).all(|line| line.iter().all(|word| *word == line[0])));
                assert!(words.is_sorted());
                assert_eq!(whole, same_ends, "the version at both ends detects a torn record");
                let mut counts = counts.borrow_mut();
                if whole { counts.0 += 1 } else { counts.1 += 1 }
            }
            Ok(())
        }
    });
    play(backend(1), vec![client, server.in_background()]);
    let (whole, torn) = *torn.borrow();
    assert!(whole > 50 && torn > 5, "{whole} whole, {torn} torn");
}

/// A READ takes its bytes while it passes over them: what the owner stores meanwhile is in its end, and not in what it
/// had passed.
#[test]
fn a_read_sees_its_last_bytes_as_they_are_when_it_comes_to_them() {
    const LENGTH: u64 = 1 << 20;
    let shared = Shared::default();
    let lent = shared.clone();
    let server = Role::new("soc", 0, move |f: TwinFabric| {
        let lent = lent.clone();
        async move {
            let region = f.register("soc", LENGTH, Access::ALL)?;
            *lent.0.borrow_mut() = Some(region.remote());
            let _queue_pair = join(&f, None, QueuePairOptions::rc()).await?;
            // A MiB takes 42 us over the network.
            f.sleep_until(Time::from_us(10_020)).await;
            for at in [0, LENGTH - 8] {
                region.write(at, &7u64.to_le_bytes())?;
            }
            std::future::pending::<()>().await;
            Ok(())
        }
    });
    let client = Role::new("client", 0, move |f: TwinFabric| {
        let shared = shared.clone();
        async move {
            let remote = shared.get(&f).await;
            let queue_pair = join(&f, Some("soc"), QueuePairOptions::rc()).await?;
            let region = f.register("client", LENGTH, Access::ALL)?;
            f.sleep_until(Time::from_us(10_000)).await;
            queue_pair.read(region.all(), remote.at(0))?.await.success()?;
            assert!(f.now() > Time::from_us(10_040), "it ended at {}", f.now());
            assert_eq!((region.load(0)?, region.load(LENGTH - 8)?), (0, 7));
            Ok(())
        }
    });
    play(backend(1), vec![client, server.in_background()]);
}

/// A card whose SoC is hidden has nobody who runs its engines.
#[test]
fn a_card_in_nic_mode_offers_no_engine() {
    let engines = |mode: &'static str| -> Vec<String> {
        let request =
            offpath_profile::SystemRequest { device: "bluefield2", mode: Some(mode), ..Default::default() };
        let system = Library::builtin().load(&request).expect("a shipped profile loads");
        let found = Rc::new(RefCell::new(Vec::new()));
        let seen = found.clone();
        let host = Role::new("host", 0, move |f: TwinFabric| {
            let seen = seen.clone();
            async move {
                *seen.borrow_mut() = f.dma_engines();
                Ok(())
            }
        });
        play(TwinBackend::new(&system, 1).expect("it has routes"), vec![host]);
        found.take()
    };
    assert_eq!(engines("separated-host"), ["dma"]);
    assert!(engines("nic").is_empty());
}

fn dropping(probability: f64, from: Time, until: Time) -> Vec<FaultRule> {
    vec![FaultRule { from, until, between: None, probability, fault: Fault::Drop }]
}

const EVER: Time = Time::MAX;

#[test]
fn a_connection_answers_loss_by_sending_again() {
    let options = QueuePairOptions { acknowledgement_timeout: Time::from_us(50), ..QueuePairOptions::rc() };
    let roles = lending(
        64,
        "host",
        "client",
        |f, queue_pair, remote| async move {
            let region = f.register("client", 64, Access::ALL)?;
            let began = f.now();
            for count in 0..500 {
                let completion = queue_pair.fetch_and_add(region.slice(0, 8), remote.at(0), 1)?;
                queue_pair.write(region.slice(0, 8), remote.at(8))?.await.success()?;
                completion.await.success()?;
                // An answer that is lost must not make the addition happen twice.
                assert_eq!(region.load(0)?, count);
                queue_pair.read(region.slice(16, 8), remote.at(8))?.await.success()?;
                // The WRITE took its payload when it was posted, before the addition returned.
                assert_eq!(region.load(16)?, u64::saturating_sub(count, 1));
            }
            assert!(f.now() - began > Time::from_us(50 * 100), "nothing was lost");
            Ok(())
        },
        options,
    );
    play(backend(3).with_faults(dropping(0.1, Time::ZERO, EVER)), roles);
}

#[test]
fn spent_retries_fail_the_connection() {
    let roles = lending(
        64,
        "host",
        "client",
        |f, queue_pair, remote| async move {
            let region = f.register("client", 64, Access::ALL)?;
            queue_pair.read(region.slice(0, 8), remote.at(0))?.await.success()?;
            f.sleep_until(Time::from_ms(1)).await;
            let before = f.now();
            let (first, second) =
                (queue_pair.write(region.all(), remote.at(0))?, queue_pair.read(region.all(), remote.at(0))?);
            assert_eq!(first.await.status, Status::RetryExceeded);
            assert_eq!(second.await.status, Status::Flushed);
            assert_eq!(queue_pair.state(), QueuePairState::Error);
            let waited = f.now() - before;
            assert!(waited >= Time::from_us(40) && waited < Time::from_us(60), "{waited}");
            Ok(())
        },
        QueuePairOptions::rc(),
    );
    let retransmission = Retransmission { timeout: Time::from_us(10), retries: 4 };
    let partition = Faults::partition(Time::from_ms(1), EVER, [(0, 0), (1, 0)]);
    play(backend(1).with_retransmission(retransmission).with_faults(vec![partition]), roles);
}

#[test]
fn a_partition_that_heals_only_delays() {
    let options = QueuePairOptions { acknowledgement_timeout: Time::from_us(100), ..QueuePairOptions::rc() };
    let roles = lending(
        64,
        "host",
        "client",
        |f, queue_pair, remote| async move {
            let region = f.register("client", 64, Access::ALL)?;
            f.sleep_until(Time::from_ms(1)).await;
            queue_pair.read(region.slice(0, 8), remote.at(0))?.await.success()?;
            let now = f.now();
            assert!(now > Time::from_us(1300) && now < Time::from_us(1500), "{now}");
            Ok(())
        },
        options,
    );
    let partition = Faults::partition(Time::from_ms(1), Time::from_us(1300), [(0, 0), (1, 0)]);
    play(backend(1).with_faults(vec![partition]), roles);
}

#[test]
fn datagrams_are_lost_and_duplicated_in_silence() {
    let count = |rules: Vec<FaultRule>| {
        let received = Rc::new(RefCell::new(0));
        let counted = received.clone();
        let client = Role::new("client", 0, |f: TwinFabric| async move {
            let socket = f.bind(1)?;
            for _ in 0..200 {
                socket.send_to(b"tick", &PortAddress::new("soc", 0, 2)).await?;
                f.sleep(Time::from_us(10)).await;
            }
            Ok(())
        });
        let server = Role::new("soc", 0, move |f: TwinFabric| {
            let counted = counted.clone();
            async move {
                let socket = f.bind(2)?;
                loop {
                    socket.receive_from(&mut [0; 8]).await?;
                    *counted.borrow_mut() += 1;
                }
            }
        });
        play(backend(1).with_faults(rules), vec![client, server.in_background()]);
        *received.borrow()
    };
    assert_eq!(count(Vec::new()), 200);
    let lost = count(dropping(0.5, Time::ZERO, EVER));
    assert!((60..140).contains(&lost), "{lost}");
    let mut rules = dropping(1.0, Time::ZERO, EVER);
    rules[0].fault = Fault::Duplicate;
    assert_eq!(count(rules), 400);
}

#[test]
fn files_that_are_full_keep_what_they_have() {
    let host = Role::new("host", 0, |f: TwinFabric| async move {
        let (one, other) = (f.file("one", FileMode::Create).await?, f.file("other", FileMode::Create).await?);
        one.append(&[1; 600]).await?;
        let full = FileError::Full { name: "other".into() };
        assert_eq!(other.write_at(100, &[2; 400]).await, Err(full.clone()));
        assert_eq!(other.length().await?, 400);
        assert_eq!(other.truncate(401).await, Err(full.clone()));
        assert_eq!(other.append(&[3]).await, Err(full));
        // What is there can be written again, and room that is given back is used.
        one.write_at(0, &[4; 600]).await?;
        f.remove("one").await?;
        other.write_at(400, &[5; 600]).await?;
        let mut bytes = [0; 1000];
        assert_eq!(other.read_at(0, &mut bytes).await?, 1000);
        assert_eq!((bytes[99], bytes[100], bytes[399], bytes[999]), (0, 2, 2, 5));
        Ok(())
    });
    play(backend(1).with_file_capacity("host", Bytes::new(1000)), vec![host]);
}

/// A message that finds no receive is retransmitted as often as its sender allows, each time after the delay.
#[test]
fn a_message_is_retransmitted_as_often_as_is_allowed() {
    let failed_after = |retries: u8| {
        let delay = Time::from_us(50);
        let options = QueuePairOptions {
            receiver_not_ready_retries: retries,
            receiver_not_ready_delay: delay,
            ..QueuePairOptions::rc()
        };
        let client = Role::new("client", 0, move |f: TwinFabric| async move {
            let queue_pair = join(&f, Some("host"), options).await?;
            let region = f.register("client", 8, Access::ALL)?;
            let began = f.now();
            let ended = queue_pair.send(region.all())?.await;
            assert_eq!(ended.status, Status::ReceiverNotReady);
            let delays = (f.now() - began).ps() as f64 / delay.ps() as f64;
            let retries = f64::from(retries);
            assert!(delays >= retries && delays < retries + 0.5, "{delays} delays for {retries}");
            Ok(())
        });
        let server = Role::new("host", 0, move |f: TwinFabric| async move {
            let _queue_pair = join(&f, None, options).await?;
            f.sleep(Time::from_ms(2)).await;
            Ok(())
        });
        play(backend(1), vec![client, server]);
    };
    for retries in [1, 2, 4, 6] {
        failed_after(retries);
    }
}

/// An address belongs to one region: a key with another one's address reaches nothing.
#[test]
fn regions_have_addresses_of_their_own() {
    let host = Role::new("host", 0, |f: TwinFabric| async move {
        let (one, other) =
            (f.register("host", 64, Access::ALL)?.remote(), f.register("host", 64, Access::ALL)?.remote());
        assert!(one.base != 0 && other.base != 0, "a forgotten base passes for none");
        let apart = one.base.abs_diff(other.base);
        assert!(apart >= 64, "they lie {apart} B apart");
        Ok(())
    });
    play(backend(1), vec![host]);
}

/// A file that was lent to another role is of no use once the role that opened it is gone: nothing of it may be read
/// or changed behind the back of what it left.
#[test]
fn a_file_is_refused_once_its_role_ended() {
    let lent: Rc<RefCell<Option<offpath_twin::backend::TwinFile>>> = Rc::default();
    let (lends, uses) = (lent.clone(), lent.clone());
    let owner = Role::new("host", 0, move |f: TwinFabric| {
        let lends = lends.clone();
        async move {
            let file = f.file("log", FileMode::Create).await?;
            file.append(&[1; 10]).await?;
            *lends.borrow_mut() = Some(file);
            Ok(())
        }
    });
    let user = Role::new("client", 0, move |f: TwinFabric| {
        let uses = uses.clone();
        async move {
            f.sleep(Time::from_ms(1)).await;
            let file = uses.borrow_mut().take().expect("it was lent");
            let ended = |result: Result<(), FileError>| {
                assert!(
                    matches!(&result, Err(FileError::System { name, .. }) if name == "log"),
                    "{result:?}"
                );
            };
            ended(file.write_at(0, &[2]).await);
            ended(file.read_at(0, &mut [0]).await.map(drop));
            ended(file.append(&[2]).await.map(drop));
            ended(file.sync().await);
            ended(file.truncate(0).await);
            ended(file.length().await.map(drop));
            ended(file.lock().await);
            Ok(())
        }
    });
    play(backend(1), vec![owner, user]);
}

#[test]
fn a_crash_loses_memory_and_unsynced_files_and_keeps_synced_ones() {
    let survived = |seed: u64| {
        let lives = Rc::new(RefCell::new(Vec::new()));
        let shared = Shared::default();
        let (lived, lent) = (lives.clone(), shared.clone());
        let server = Role::new("host", 0, move |f: TwinFabric| {
            let (lived, lent) = (lived.clone(), lent.clone());
            async move {
                let region = f.register("host", 64, Access::ALL)?;
                let log = f.file("log", FileMode::OpenOrCreate).await?;
                let mut bytes = vec![0; 10_000];
                let count = log.read_at(0, &mut bytes).await?;
                lived.borrow_mut().push((region.load(0)?, bytes[..count].to_vec()));
                region.store(0, 7)?;
                if count == 0 {
                    log.append(&[1; 1000]).await?;
                    log.sync().await?;
                    f.sync_directory().await?;
                    log.append(&[2; 4000]).await?;
                    f.file("forgotten", FileMode::Create).await?;
                }
                *lent.0.borrow_mut() = Some(region.remote());
                loop {
                    let _queue_pair = join(&f, None, QueuePairOptions::rc()).await?;
                    f.sleep(Time::from_ms(3)).await;
                }
            }
        });
        let client = Role::new("client", 0, move |f: TwinFabric| {
            let shared = shared.clone();
            async move {
                let remote = shared.get(&f).await;
                let options =
                    QueuePairOptions { acknowledgement_timeout: Time::from_us(10), ..QueuePairOptions::rc() };
                let queue_pair = join(&f, Some("host"), options).await?;
                let region = f.register("client", 8, Access::ALL)?;
                queue_pair.read(region.all(), remote.at(0))?.await.success()?;
                assert_eq!(region.load(0)?, 7);
                f.sleep_until(Time::from_ms(2)).await;
                // The server crashed at 1 ms and is back at 1.5 ms, but this connection is not.
                let gone = queue_pair.read(region.all(), remote.at(0))?.await;
                assert_eq!(gone.status, Status::RetryExceeded);
                let queue_pair = join(&f, Some("host"), options).await?;
                let stale = queue_pair.read(region.all(), remote.at(0))?.await;
                assert_eq!(stale.status, Status::RemoteAccess);
                Ok(())
            }
        });
        let crash = Crash {
            what: Crashing::Role(RoleName::new("host", 0)),
            at: Time::from_ms(1),
            restart_after: Some(Time::from_us(500)),
        };
        play(backend(seed).with_crash(crash), vec![client, server.in_background()]);
        let lives = lives.take();
        assert_eq!(lives.len(), 2);
        assert_eq!(lives[0], (0, Vec::new()));
        let (word, log) = lives[1].clone();
        assert_eq!(word, 0, "memory survived a crash");
        assert_eq!(&log[..1000], &[1; 1000], "synced bytes were lost");
        // What is left of unsynced bytes is cut at sectors.
        let rest: Vec<_> = log[1024.min(log.len())..].chunks(512).collect();
        assert!(rest.iter().all(|sector| sector.iter().all(|byte| *byte == sector[0])));
        log[1000..].to_vec()
    };
    let kept: Vec<_> = (0..8).map(survived).collect();
    assert!(kept.iter().any(|log| log != &kept[0]), "chance never decides");
    assert!(kept.iter().any(|log| log != &[2; 4000]), "every unsynced byte survived");
    assert_eq!(kept[3], survived(3), "the same seed keeps other bytes");
}

#[test]
fn a_crash_without_restart_is_an_outcome() {
    let sleeper = Role::new("client", 0, |f: TwinFabric| async move {
        f.sleep(Time::from_ms(10)).await;
        Ok(())
    });
    let other: Role<TwinFabric, Outcome> = Role::new("soc", 0, |f: TwinFabric| async move {
        f.sleep(Time::from_ms(1)).await;
        Ok(())
    });
    let crash =
        Crash { what: Crashing::Machine("client".into(), 0), at: Time::from_us(500), restart_after: None };
    let run = backend(1).with_crash(crash).run(vec![sleeper, other]).expect("the run ends");
    assert!(matches!(run.outcomes[0].end, RoleEnd::Crashed));
    assert_eq!(run.elapsed, Time::from_ms(1));
}

/// The log of a lively run: losses, a crash, messages, drawn numbers.
fn log_of(seed: u64) -> String {
    let observer = Observer::new().traced();
    let options = QueuePairOptions { acknowledgement_timeout: Time::from_us(20), ..QueuePairOptions::rc() };
    let client = |instance| {
        Role::new("client", instance, move |f: TwinFabric| async move {
            let region = f.register("client", 1 << 14, Access::ALL)?;
            let queue_pair = f.create_queue_pair(options)?;
            f.connect(&queue_pair, "soc", 0, &format!("{instance}")).await?;
            for _ in 0..100 {
                f.sleep(Time::from_ps(f.random_u64() % 5_000_000)).await;
                f.compute(Work::Cycles(f.random_u64() % 5000)).await;
                let length = f.random_u64() % (1 << 14);
                if queue_pair.send(region.slice(0, length))?.await.status != Status::Success {
                    return Ok(());
                }
            }
            Ok(())
        })
    };
    let server = Role::new("soc", 0, move |f: TwinFabric| async move {
        let mut tasks = Vec::new();
        for instance in 0..2 {
            let region = f.register("soc", 1 << 14, Access::ALL)?;
            let queue_pair = f.create_queue_pair(options)?;
            let mut message = queue_pair.receive(region.all())?;
            f.listen(&format!("{instance}"))?.accept(&queue_pair).await?;
            tasks.push(f.spawn(async move {
                while message.await.status == Status::Success {
                    match queue_pair.receive(region.all()) {
                        Ok(next) => message = next,
                        Err(_) => return,
                    }
                }
            }));
        }
        std::future::pending().await
    });
    let crash = Crash {
        what: Crashing::Role(RoleName::new("client", 1)),
        at: Time::from_us(200),
        restart_after: None,
    };
    let slow = SlowStation {
        station: "nic.receive".into(),
        instance: 0,
        factor: 3.0,
        from: Time::from_us(100),
        until: Time::from_us(300),
    };
    let backend = backend(seed)
        .with_observer(&observer)
        .with_faults(dropping(0.05, Time::ZERO, EVER))
        .with_slow_station(slow)
        .with_crash(crash);
    play(backend, vec![client(0), client(1), server.in_background()]);
    observer.trace()
}

#[test]
fn the_same_seed_gives_the_same_bytes_on_any_thread() {
    let first = log_of(5);
    assert!(first.lines().count() > 100, "{first}");
    assert!(first.contains("client[1] crashes"));
    assert_eq!(first, log_of(5));
    let threads: Vec<_> = (0..2).map(|_| std::thread::spawn(|| log_of(5))).collect();
    for thread in threads {
        assert_eq!(first, thread.join().expect("the run ends"));
    }
    assert_ne!(first, log_of(6));
}

#[test]
fn a_deadlock_names_who_waits_for_what() {
    let observer = Observer::new();
    let roles = lending(
        64,
        "host",
        "client",
        |f, queue_pair, _| async move {
            let region = f.register("client", 64, Access::ALL)?;
            // The time limit ends long before; its abandoned timers must not stamp the deadlock.
            f.timeout(Time::from_ms(1), async {
                f.timeout(Time::from_ms(500), std::future::pending::<()>()).await
            })
            .await;
            queue_pair.send(region.all())?.await.success()?;
            Ok(())
        },
        QueuePairOptions::rc(),
    );
    let end = backend(1).with_observer(&observer).run(roles);
    let Err(RunError::Deadlock { at, waiting }) = end else { panic!("{:?}", end.map(|_| ())) };
    assert_eq!(waiting, [RoleName::new("client", 0), RoleName::new("host", 0)]);
    assert!(at < Time::from_ms(2), "{at}");
    assert_eq!(observer.deadlock(), ["client[0]: Send on queue pair 2 waits for a receive of its peer"]);
}

#[test]
fn unknown_roles_are_refused_with_the_known_ones() {
    let end = backend(1).run(vec![Role::new("server", 0, |_: TwinFabric| async { Outcome::Ok(()) })]);
    let Err(RunError::BadRoles { reason }) = end else { panic!("it ran") };
    assert!(
        reason.contains("`server`") && reason.contains("`client`, ") && reason.contains("`soc`"),
        "{reason}"
    );
}

#[test]
fn recorded_demand_is_the_routes_demand_and_computing() {
    let observer = Observer::new();
    let backend = backend(1).with_observer(&observer);
    let router = backend.router().clone();
    let seen = observer.clone();
    let roles = lending(
        1 << 20,
        "soc",
        "client",
        move |f, queue_pair, remote| {
            let observer = seen.clone();
            async move {
                let region = f.register("client", 64, Access::ALL)?;
                for round in 0..10u64 {
                    let label = observer.begin(4);
                    let f = f.labelled(label);
                    let labelled = queue_pair.labelled(label);
                    labelled.read(region.all(), remote.at(0))?.await.success()?;
                    f.compute(Work::Time(Time::from_ns(100 + round))).await;
                    observer.end(label);
                    queue_pair.read(region.all(), remote.at(0))?.await.success()?;
                }
                Ok(())
            }
        },
        QueuePairOptions::rc(),
    );
    play(backend, roles);
    let recorded = &observer.recorded()[&4];
    assert_eq!((recorded.requests, recorded.operations), (10, 10));
    let path = router.path("client-soc").expect("the path exists");
    let route = router.route(&Routed::new(Verb::Read, path, Bytes::new(64))).expect("the route exists");
    let demand = route.demand(&router);
    let cpu = router.station("client.cpu").expect("clients have processors");
    for (station, time) in &demand.time {
        let moments = recorded.time[station];
        let computed = if *station == cpu { 104_500.0 } else { 0.0 };
        assert_eq!(moments.mean(10), time.ps() as f64 + computed, "{station:?}");
        assert_eq!(moments.half_width(10) > 0.0, *station == cpu);
    }
    assert_eq!(recorded.demand().requests, demand.requests);
    assert!(recorded.relative_half_width() < 0.05);
    let last = observer.last();
    assert_eq!(last.at, last.at.max(Time::from_us(20)));
    let inflight_slots = router.station("nic.inflight_slots").expect("the NIC has in-flight slots");
    let hold = last.mean_hold(&Default::default(), inflight_slots).expect("READs hold in-flight slots");
    assert_eq!(hold, demand.time[&inflight_slots]);
}

#[test]
fn one_task_posts_one_after_the_other() {
    let backend = backend(1);
    let post = backend.router().system().machines.iter().flat_map(|m| &m.endpoints);
    let post =
        post.clone().find(|e| e.name == "client").expect("there are clients").processor.verbs.post_time;
    let roles = lending(
        64,
        "host",
        "client",
        move |f, queue_pair, remote| async move {
            let region = f.register("client", 64, Access::ALL)?;
            let began = f.now();
            for _ in 0..10 {
                drop(queue_pair.post(WorkRequest::read(region.all(), remote.at(0)).unsignaled())?);
            }
            f.compute(Work::Time(Time::ZERO)).await;
            assert_eq!(f.now() - began, post.times(10));
            Ok(())
        },
        QueuePairOptions::rc(),
    );
    play(backend, roles);
}

#[test]
fn a_full_socket_drops_what_comes_later() {
    const WAITING: u32 = 1024;
    let client = Role::new("client", 0, |f: TwinFabric| async move {
        let socket = f.bind(1)?;
        for number in 0..WAITING + 10 {
            socket.send_to(&number.to_le_bytes(), &PortAddress::new("server", 0, 2)).await?;
            f.sleep(Time::from_us(1)).await;
        }
        Ok(())
    });
    let server = Role::new("server", 0, |f: TwinFabric| async move {
        let socket = f.bind(2)?;
        f.sleep(Time::from_ms(5)).await;
        let mut got = Vec::new();
        let mut bytes = [0; 4];
        while f.timeout(Time::from_us(1), socket.receive_from(&mut bytes)).await.is_some() {
            got.push(u32::from_le_bytes(bytes));
        }
        assert_eq!(got, (0..WAITING).collect::<Vec<_>>(), "the first stay, in order");
        Ok(())
    });
    play(
        backend(1).with_placement("client", "client").with_placement("server", "host"),
        vec![client, server],
    );
}
