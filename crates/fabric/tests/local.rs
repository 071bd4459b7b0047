//! What is the local backend's own, beside the contract that the conformance suite checks.

use offpath_fabric::local::{Local, LocalClock, LocalFabric, LocalQueuePair, LocalRegion};
use offpath_fabric::*;
use offpath_quantity::{Bytes, Time};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

fn alone<T: 'static, A: Future<Output = T> + 'static>(
    backend: Local,
    client: impl Fn(LocalFabric) -> A + 'static,
) -> (T, Time) {
    let mut run = backend.run(vec![Role::new("client", 0, client)]).unwrap();
    (run.outcomes.remove(0).end.finished().unwrap(), run.elapsed)
}

#[test]
fn names_refuse_too_few_bytes() {
    let error = RemoteRegion::from_bytes(&[0; 23]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "23 B are too few for a remote region: 24 B are needed; check what the peer sent"
    );
    assert!(Address::from_bytes(&[0; 31]).is_err());
    for length in 0..24 {
        assert!(RemoteRegion::from_bytes(&vec![1; length]).is_err());
    }
}

#[test]
fn a_memory_gets_back_what_regions_leave() {
    let backend = Local::new(1).memory("client", "soc", Bytes::new(64));
    let (errors, _) = alone(backend, |f| async move {
        assert_eq!(f.memories(), [RoleMemory { name: "soc".into(), capacity: Bytes::new(64) }]);
        let first = f.register("soc", 40, Access::ALL).unwrap();
        let full = f.register("soc", 40, Access::ALL).unwrap_err();
        drop(first);
        let second = f.register("soc", 64, Access::ALL).unwrap();
        second.deregister().unwrap();
        f.register("soc", 64, Access::ALL).unwrap();
        [full, f.register("host", 1, Access::ALL).unwrap_err()]
    });
    assert_eq!(
        errors.map(|error| error.to_string()),
        [
            "memory `soc` has 24 B left, 40 B were asked for; deregister or ask for less",
            "client[0] has no memory `host`; it has `soc`",
        ]
    );
}

#[test]
fn a_named_directory_keeps_files_between_runs() {
    let directory = std::env::temp_dir().join(format!("offpath-fabric-test-{}", std::process::id()));
    let backend = || Local::new(1).directory(&directory);
    alone(backend(), |f| async move {
        f.file("log", FileMode::Create).await.unwrap().append(b"kept").await.unwrap();
    });
    let (length, _) =
        alone(
            backend(),
            |f| async move { f.file("log", FileMode::Open).await.unwrap().length().await.unwrap() },
        );
    std::fs::remove_dir_all(&directory).unwrap();
    assert_eq!(length, 4);
}

#[test]
fn a_run_by_the_manual_clock_is_the_same_every_time() {
    let run = || {
        alone(Local::new(3).clock(LocalClock::Manual), |f| async move {
            let mut seen = Vec::new();
            for _ in 0..20 {
                f.sleep(Time::from_ps(f.random_u64() % 1_000_000)).await;
                seen.push((f.now(), f.random_u64()));
            }
            seen
        })
    };
    assert_eq!(run(), run());
}

#[test]
fn a_polling_loop_does_not_stop_the_manual_clock() {
    let (now, _) = alone(Local::new(3).clock(LocalClock::Manual), |f| async move {
        while f.now() < Time::from_us(1) {
            f.compute(Work::Cycles(1)).await;
        }
        f.now()
    });
    assert_eq!(now, Time::from_us(1));
}

#[test]
fn a_missing_engine_is_refused_by_name() {
    let (error, _) = alone(Local::new(1), |f| async move {
        let region = f.register("host", 8, Access::ALL).unwrap();
        let at = || MemoryAt::Local { region: region.clone(), offset: 0 };
        f.dma_copy("soc-dma", at(), at(), 8).err().unwrap().to_string()
    });
    assert!(error.starts_with("the local backend does not support a DMA engine `soc-dma`"), "{error}");
}

#[test]
fn handles_that_outlive_their_role_are_refused_not_trusted() {
    let ((queue_pair, region, fabric), _) = alone(Local::new(1), |f| async move {
        let queue_pair = f.create_queue_pair(QueuePairOptions::ud()).unwrap();
        (queue_pair, f.register("host", 8, Access::ALL).unwrap(), f)
    });
    assert_eq!(queue_pair.state(), QueuePairState::Closed);
    assert!(queue_pair.receive(region.all()).is_err());
    assert!(region.load(0).is_err());
    drop(fabric.spawn(async {}));
}

#[test]
fn names_are_their_bytes_and_back() {
    let region = RemoteRegion {
        endpoint: EndpointId(0x0102_0304),
        key: 0x1112_1314,
        base: 0x2122_2324_2526_2728,
        length: 0x3132_3334_3536_3738,
    };
    let bytes = region.to_bytes();
    assert_eq!(bytes[..8], [4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11]);
    assert_eq!(bytes[8..16], [0x28, 0x27, 0x26, 0x25, 0x24, 0x23, 0x22, 0x21]);
    assert_eq!(bytes[16..], [0x38, 0x37, 0x36, 0x35, 0x34, 0x33, 0x32, 0x31]);
    assert_eq!(RemoteRegion::from_bytes(&bytes), Ok(region));
    let longer = [&bytes[..], &[9; 5]].concat();
    assert_eq!(RemoteRegion::from_bytes(&longer), Ok(region), "what follows is not looked at");
    assert_eq!(region.at(7), RemoteAddress { region, offset: 7 });

    let path: [u8; 20] = std::array::from_fn(|index| 100 + index as u8);
    let address =
        Address { endpoint: EndpointId(0x0102_0304), queue_pair: 0x1112_1314, queue_key: 0x2122_2324, path };
    let bytes = address.to_bytes();
    assert_eq!(bytes[..12], [4, 3, 2, 1, 0x14, 0x13, 0x12, 0x11, 0x24, 0x23, 0x22, 0x21]);
    assert_eq!(bytes[12..], path);
    assert_eq!(Address::from_bytes(&bytes), Ok(address));
    let error = Address::from_bytes(&bytes[..31]).unwrap_err();
    assert_eq!((error.what, error.length, error.needed), ("address", 31, 32));
}

#[test]
fn rights_are_joined_and_looked_for_together() {
    let both = Access::REMOTE_READ | Access::LOCAL_WRITE;
    assert!(both.includes(Access::REMOTE_READ) && both.includes(Access::LOCAL_WRITE) && both.includes(both));
    assert!(!both.includes(Access::REMOTE_WRITE) && !both.includes(Access::ALL));
    assert!(Access::ALL.includes(both | Access::REMOTE_ATOMIC) && !Access::ALL.includes(Access::ON_DEMAND));
    // Verbs want the local right for each of these.
    assert!(Access::REMOTE_WRITE.includes(Access::LOCAL_WRITE));
    assert!(Access::REMOTE_ATOMIC.includes(Access::LOCAL_WRITE));
    assert!(!Access::REMOTE_READ.includes(Access::LOCAL_WRITE));
    assert!(both.includes(Access::READ_ONLY));
}

#[test]
fn a_completion_future_waits_for_its_completion_and_for_ever_without_one() {
    let (ended, _) = alone(Local::new(1).clock(LocalClock::Manual), |f| async move {
        let (completer, given) = completion_future();
        let own = f.clone();
        f.spawn_task(Box::pin(async move {
            own.sleep(Time::from_us(3)).await;
            completer.complete(Completion::new(Opcode::Read, Status::Flushed, 5));
        }));
        let completion = given.await;
        assert!(f.now() >= Time::from_us(3));
        assert_eq!(completion.success(), Err(Status::Flushed));
        let good = Completion::new(Opcode::Read, Status::Success, 5);
        assert_eq!(good.success(), Ok(good));
        let (completer, never) = completion_future();
        drop(completer);
        f.timeout(Time::from_us(5), never).await.is_none()
    });
    assert!(ended, "nobody completed it");
}

#[test]
fn a_task_gives_its_value_and_one_that_is_gone_says_so() {
    let ((value, handle), _) = alone(Local::new(1).clock(LocalClock::Manual), |f| async move {
        let own = f.clone();
        let value = f.spawn(async move {
            own.sleep(Time::from_us(1)).await;
            7
        });
        let (handle, task) = JoinHandle::new(async { 8 });
        drop(task);
        (value.await, handle.await)
    });
    assert_eq!((value, handle), (Ok(7), Err(Cancelled)));
}

#[test]
fn tasks_end_with_their_role_and_no_other() {
    let beats = std::rc::Rc::new(std::cell::Cell::new([0u32; 2]));
    let role = |index: usize, sleeps: u64| {
        let beats = beats.clone();
        Role::new("client", index as u32, move |f: LocalFabric| {
            let beats = beats.clone();
            async move {
                let own = f.clone();
                f.spawn_task(Box::pin(async move {
                    loop {
                        own.sleep(Time::from_us(1)).await;
                        let mut all = beats.get();
                        all[index] += 1;
                        beats.set(all);
                    }
                }));
                f.sleep(Time::from_ns(sleeps * 1000 + 500)).await;
            }
        })
    };
    Local::new(1).clock(LocalClock::Manual).run(vec![role(0, 10), role(1, 20)]).unwrap();
    let [first, second] = beats.get();
    // Each beat takes a little more than its microsecond.
    assert!((9..=10).contains(&first) && (18..=20).contains(&second), "{first} and {second}");
}

#[test]
fn a_manual_clock_jumps_to_timers_exactly_and_forgets_those_that_were_dropped() {
    let (now, elapsed) = alone(Local::new(1).clock(LocalClock::Manual), |f| async move {
        f.sleep_until(Time::from_ms(5)).await;
        f.now()
    });
    assert_eq!((now, elapsed), (Time::from_ms(5), Time::from_ms(5)));
    // Whoever waits for nothing is told when that began, not when a dropped timer would have fired.
    let stuck = |name: &str| {
        Role::new(name, 0, |f: LocalFabric| async move {
            assert!(f.timeout(Time::from_us(1), f.sleep(Time::from_ms(1000))).await.is_none());
            std::future::pending::<()>().await
        })
    };
    let ends = Role::new("ends", 0, |_: LocalFabric| async {});
    let run = Local::new(1).clock(LocalClock::Manual).run(vec![stuck("stuck"), ends, stuck("too")]);
    let Err(RunError::Deadlock { at, waiting }) = run else { panic!("it ended") };
    assert!(at >= Time::from_us(1) && at < Time::from_us(2), "{at}");
    assert_eq!(waiting, [RoleName::new("stuck", 0), RoleName::new("too", 0)]);
}

#[test]
fn roles_that_cannot_run_are_refused_with_the_reason() {
    let role = |name: &str, instance| Role::new(name, instance, |_: LocalFabric| async {});
    let refused = |roles| match Local::new(1).run(roles) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("it ran"),
    };
    assert!(refused(vec![role("a", 0).in_background()]).contains("none of them is a main one"));
    assert!(refused(vec![role("a/b", 0)]).contains("`a/b` is not a name"));
    assert!(refused(vec![role("a", 0), role("b", 0), role("a", 0)]).contains("two of a[0]"));
    let run = Local::new(1).run(vec![role("a", 0), role("a", 1)]).expect("two instances of one role");
    assert!(run.outcomes.iter().all(|outcome| matches!(outcome.end, RoleEnd::Finished(()))));
}

#[test]
fn streams_of_random_numbers_depend_on_every_label_and_where_it_ends() {
    use rand_core::RngCore;
    let first = |seed, labels: &[&str]| Rng::new(seed, labels).next_u64();
    assert_eq!(first(1, &["a", "b"]), first(1, &["a", "b"]));
    let all = [
        first(1, &["a", "b"]),
        first(2, &["a", "b"]),
        first(1, &["ab"]),
        first(1, &["b", "a"]),
        first(1, &["a", "b", ""]),
        first(1, &[]),
    ];
    let different: std::collections::BTreeSet<u64> = all.into_iter().collect();
    assert_eq!(different.len(), all.len());
    // FNV-1a, SplitMix64 and xoshiro256++ worked out by hand: a seed that was written down stays good.
    assert_eq!(all[0], 0xea9d_0279_9a91_5f2d);
    let (mut words, mut bytes) = (Rng::new(3, &["x"]), Rng::new(3, &["x"]));
    let mut filled = [0; 16];
    bytes.fill_bytes(&mut filled);
    assert_eq!(filled[..8], words.next_u64().to_le_bytes());
    assert_ne!(words.next_u32(), words.next_u32());
}

#[test]
fn files_keep_what_was_written_where_it_was_written() {
    alone(Local::new(1), |f| async move {
        let file = f.file("one", FileMode::Create).await.unwrap();
        assert_eq!((file.append(b"hello").await, file.append(b" you").await), (Ok(0), Ok(5)));
        file.write_at(1, b"E").await.unwrap();
        let mut read = [0; 20];
        assert_eq!(file.read_at(0, &mut read).await, Ok(9));
        assert_eq!(&read[..9], b"hEllo you");
        assert_eq!(file.read_at(7, &mut read).await, Ok(2));
        assert_eq!(file.read_at(9, &mut read).await, Ok(0));
        file.truncate(3).await.unwrap();
        assert_eq!(file.length().await, Ok(3));
        file.write_at(5, b"x").await.unwrap();
        assert_eq!(file.length().await, Ok(6));
        // One that locks keeps every other handle out until it is gone.
        file.lock().await.unwrap();
        let other = f.file("one", FileMode::Open).await.unwrap();
        assert_eq!(other.lock().await, Err(FileError::Locked { name: "one".into() }));
        drop(file);
        other.lock().await.unwrap();
        assert!(f.file("one", FileMode::Create).await.is_err(), "it is there");
        assert!(f.file("two", FileMode::Open).await.is_err(), "it is not there");
        f.file("two", FileMode::OpenOrCreate).await.unwrap().append(b"2").await.unwrap();
        assert_eq!(f.file("two", FileMode::OpenOrCreate).await.unwrap().length().await, Ok(1));
        f.rename("two", "three").await.unwrap();
        assert_eq!(f.list("").await, Ok(vec!["one".to_string(), "three".to_string()]));
        assert_eq!(f.list("th").await, Ok(vec!["three".to_string()]));
        f.remove("three").await.unwrap();
        assert_eq!(f.list("th").await, Ok(Vec::new()));
        for name in ["", ".", "..", "a/b", "a\\b", "a\0b"] {
            let refused = f.file(name, FileMode::OpenOrCreate).await.err();
            assert_eq!(refused, Some(FileError::BadName { name: name.into() }));
        }
    });
}

#[test]
fn a_request_is_checked_before_it_is_posted() {
    type Asked = WorkRequest<()>;
    let local = |length| Slice { region: (), offset: 0, length };
    let region = RemoteRegion { endpoint: EndpointId(0), key: 1, base: 0, length: 64 };
    let to = Address { endpoint: EndpointId(0), queue_pair: 1, queue_key: 2, path: [0; 20] };
    let on = |kind, request: &Asked| request.check(kind, 100, 16);
    let refused = |kind, request: &Asked| match on(kind, request) {
        Err(PostError::NotOnThisKind { opcode, reason, .. }) => {
            assert_eq!(opcode, request.operation.opcode());
            reason
        }
        other => panic!("{other:?}"),
    };
    for length in [0, 100] {
        assert_eq!(on(QueuePairType::Rc, &Asked::send(local(length))), Ok(()));
        assert_eq!(on(QueuePairType::Rc, &Asked::read(local(length), region.at(0))), Ok(()));
        assert_eq!(on(QueuePairType::Rc, &Asked::write(local(length), region.at(0))), Ok(()));
        assert_eq!(on(QueuePairType::Ud, &Asked::send_to(local(length), to)), Ok(()));
    }
    for request in [Asked::send(local(101)), Asked::read(local(101), region.at(0))] {
        assert_eq!(
            on(QueuePairType::Rc, &request),
            Err(PostError::MessageTooLong { length: 101, bound: 100 })
        );
    }
    assert!(refused(QueuePairType::Rc, &Asked::send_to(local(1), to)).contains("leave `to` empty"));
    assert!(refused(QueuePairType::Ud, &Asked::send(local(1))).contains("give `to`"));
    assert!(refused(QueuePairType::Ud, &Asked::write(local(1), region.at(0))).contains("SEND only"));
    for request in [
        Asked::compare_and_swap(local(8), region.at(0), 1, 2),
        Asked::fetch_and_add(local(8), region.at(8), 1),
    ] {
        assert_eq!(on(QueuePairType::Rc, &request), Ok(()));
        assert!(refused(QueuePairType::Rc, &request.inline()).contains("WRITE and SEND"));
    }
    for length in [7, 9] {
        let request = Asked::fetch_and_add(local(length), region.at(0), 1);
        assert_eq!(on(QueuePairType::Rc, &request), Err(PostError::AtomicLength { length }));
        let request = Asked::compare_and_swap(local(length), region.at(0), 1, 2);
        assert_eq!(on(QueuePairType::Rc, &request), Err(PostError::AtomicLength { length }));
    }
    assert!(
        refused(QueuePairType::Rc, &Asked::read(local(1), region.at(0)).inline()).contains("WRITE and SEND")
    );
    assert_eq!(on(QueuePairType::Rc, &Asked::write(local(16), region.at(0)).inline()), Ok(()));
    let long = on(QueuePairType::Rc, &Asked::send(local(17)).inline());
    assert_eq!(long, Err(PostError::InlineTooLong { length: 17, bound: 16 }));
    let plain = Asked::send(local(1));
    assert!(plain.signaled && !plain.inline && !plain.fence);
    let turned = plain.unsignaled().fenced().immediate(7);
    assert!(!turned.signaled && turned.fence && !turned.inline);
    assert!(matches!(turned.operation, WorkKind::Send { immediate: Some(7), to: None, .. }));
    let written = Asked::write_with_immediate(local(1), region.at(3), 9);
    assert!(
        matches!(written.operation, WorkKind::Write { immediate: Some(9), remote, .. } if remote.offset == 3)
    );
}

/// Runs a client beside servers that nobody waits for, and gives what it found.
fn beside<T: 'static, A: Future<Output = T> + 'static, B: Future<Output = ()> + 'static>(
    servers: u32,
    server: impl Fn(LocalFabric) -> B + Clone + 'static,
    client: impl Fn(LocalFabric) -> A + 'static,
) -> T {
    let found = Rc::new(RefCell::new(None));
    let (client, to) = (Rc::new(client), found.clone());
    let mut roles = vec![Role::new("client", 0, move |f: LocalFabric| {
        let (client, to) = (client.clone(), to.clone());
        async move {
            let ended = client(f).await;
            *to.borrow_mut() = Some(ended);
        }
    })];
    for instance in 0..servers {
        let server = server.clone();
        roles.push(Role::new("server", instance, move |f: LocalFabric| server(f)).in_background());
    }
    Local::new(1).clock(LocalClock::Manual).run(roles).unwrap();
    found.take().expect("the client is a main role")
}

async fn connected(f: &LocalFabric, instance: u32, options: QueuePairOptions) -> LocalQueuePair {
    let pair = f.create_queue_pair(options).unwrap();
    f.connect(&pair, "server", instance, "work").await.unwrap();
    pair
}

async fn accepted(f: &LocalFabric) -> LocalQueuePair {
    let pair = f.create_queue_pair(QueuePairOptions::rc()).unwrap();
    f.listen("work").unwrap().accept(&pair).await.unwrap();
    pair
}

#[test]
fn a_region_is_reached_over_a_connection_to_its_owner_alone() {
    let names: Rc<RefCell<BTreeMap<u32, RemoteRegion>>> = Rc::default();
    let own = names.clone();
    let server = move |f: LocalFabric| {
        let own = own.clone();
        async move {
            let region = f.register("host", 16, Access::ALL).unwrap();
            region.store(8, 5 + u64::from(f.role().instance)).unwrap();
            own.borrow_mut().insert(f.role().instance, region.remote());
            let _pair = accepted(&f).await;
            std::future::pending().await
        }
    };
    let seen = beside(2, server, move |f| {
        let names = names.clone();
        async move {
            let pair = connected(&f, 0, QueuePairOptions::rc()).await;
            let other = connected(&f, 1, QueuePairOptions::rc()).await;
            let region = f.register("host", 8, Access::ALL).unwrap();
            let names = names.borrow().clone();
            // The last word of a region is a whole one.
            let mut seen = Vec::new();
            for (pair, owner) in [(&pair, 0), (&other, 1), (&pair, 1)] {
                let asked = pair.fetch_and_add(region.all(), names[&owner].at(8), 1).unwrap();
                seen.push((asked.await.status, region.load(0).unwrap()));
            }
            seen
        }
    });
    assert_eq!(seen, [(Status::Success, 5), (Status::Success, 6), (Status::RemoteAccess, 6)]);
}

#[test]
fn a_send_without_a_receive_is_tried_as_often_as_was_asked_whatever_is_posted_behind_it() {
    let server = |f: LocalFabric| async move {
        let _pair = accepted(&f).await;
        std::future::pending().await
    };
    let took = beside(1, server, |f| async move {
        let delay = Time::from_us(10);
        let options = QueuePairOptions {
            receiver_not_ready_retries: 2,
            receiver_not_ready_delay: delay,
            ..QueuePairOptions::rc()
        };
        let pair = connected(&f, 0, options).await;
        let region = f.register("host", 8, Access::ALL).unwrap();
        let began = f.now();
        let first = pair.send(region.all()).unwrap();
        for _ in 0..5 {
            f.sleep(Time::from_us(1)).await;
            drop(pair.send(region.all()).unwrap());
        }
        assert_eq!(first.await.status, Status::ReceiverNotReady);
        f.now().saturating_sub(began)
    });
    assert!(took >= Time::from_us(20) && took < Time::from_us(22), "{took}");
}

#[test]
fn a_queue_pair_of_the_defaults_holds_128_requests_and_gives_up_on_a_peer_after_7_retries() {
    let server = |f: LocalFabric| async move {
        let pair = accepted(&f).await;
        f.sleep(Time::from_us(10)).await;
        drop(pair);
        std::future::pending().await
    };
    let took = beside(1, server, |f| async move {
        let pair = connected(&f, 0, QueuePairOptions::rc()).await;
        let region = f.register("host", 8, Access::ALL).unwrap();
        let began = f.now();
        // Nobody receives: the first waits for it, until the other end is gone.
        let mut posted: Vec<_> = (0..128).map(|_| pair.send(region.all()).unwrap()).collect();
        assert_eq!(pair.send(region.all()).err(), Some(PostError::QueueFull { depth: 128 }));
        for _ in 0..128 {
            drop(pair.receive(region.all()).unwrap());
        }
        assert!(pair.receive(region.all()).is_err(), "128 receives");
        let rest = posted.split_off(1);
        assert_eq!(posted.remove(0).await.status, Status::RetryExceeded);
        for completion in rest {
            assert_eq!(completion.await.status, Status::Flushed);
        }
        f.now().saturating_sub(began)
    });
    // Once and seven times more, a millisecond each.
    assert!(took >= Time::from_ms(8) && took < Time::from_us(8_100), "{took}");
}

#[test]
fn who_waits_for_a_peer_learns_that_it_ended() {
    let server = |f: LocalFabric| async move { f.sleep(Time::from_ms(1)).await };
    let (connecting, resolving, took) = beside(1, server, |f| async move {
        let pair = f.create_queue_pair(QueuePairOptions::rc()).unwrap();
        let other = f.clone();
        let limit = Time::from_ms(10_000);
        let resolving = f.spawn(async move { other.resolve("server", 0, "ud", limit).await.map(|_| ()) });
        let connecting = f.connect(&pair, "server", 0, "work").await;
        (connecting, resolving.await.unwrap(), f.now())
    });
    let ended = |service: &str| {
        let (peer, reason) = (RoleName::new("server", 0), "it ended".to_string());
        Err(ConnectError::Failed { peer, service: service.into(), reason })
    };
    assert_eq!((connecting, resolving), (ended("work"), ended("ud")));
    assert!(took < Time::from_ms(2), "{took}");
}

#[test]
fn a_queue_pair_that_cannot_be_met_with_is_refused() {
    alone(Local::new(1).clock(LocalClock::Manual), |f| async move {
        let (rc, ud) = (QueuePairOptions::rc(), QueuePairOptions::ud());
        let [rc, ud] = [rc, ud].map(|options| f.create_queue_pair(options).unwrap());
        let listener = f.listen("work").unwrap();
        let wrong = |kind, state, next_step| Err(ConnectError::WrongQueuePair { kind, state, next_step });
        let for_rc =
            wrong(QueuePairType::Ud, QueuePairState::Ready, "make a new one with `QueuePairOptions::rc`");
        assert_eq!(
            f.timeout(Time::from_us(9), listener.accept(&ud)).await,
            Some(for_rc.clone().map(|()| f.role()))
        );
        assert_eq!(f.connect(&ud, "client", 0, "work").await, for_rc);
        let for_ud = wrong(
            QueuePairType::Rc,
            QueuePairState::Initialised,
            "make a new one with `QueuePairOptions::ud`",
        );
        assert_eq!(f.publish("ud", &rc), for_ud);
        f.publish("ud", &ud).unwrap();
    });
}

#[test]
fn ports_and_services_are_free_again_when_who_held_them_is_dropped() {
    alone(Local::new(1), |f| async move {
        let listener = f.listen("work").unwrap();
        let taken = ConnectError::ServiceTaken { role: f.role(), service: "work".into() };
        assert_eq!(f.listen("work").err(), Some(taken));
        drop(listener);
        f.listen("work").unwrap();
        let socket = f.bind(7).unwrap();
        let taken = DatagramError::PortTaken { role: f.role(), port: 7 };
        assert_eq!(f.bind(7).err(), Some(taken));
        drop(socket);
        f.bind(7).unwrap();
    });
}

#[test]
fn a_sleep_that_is_over_takes_a_round_and_no_wait() {
    let (took, _) = alone(Local::new(1).clock(LocalClock::Manual), |f| async move {
        f.sleep(Time::from_us(1)).await;
        let began = f.now();
        f.sleep(Time::ZERO).await;
        f.sleep_until(began).await;
        f.now().saturating_sub(began)
    });
    // A round takes a nanosecond by this clock.
    assert_eq!(took, Time::from_ns(2));
}

#[test]
fn a_dma_engine_copies_single_bytes() {
    alone(Local::new(1).dma_engine("engine"), |f| async move {
        let region = f.register("host", 3, Access::ALL).unwrap();
        region.write(0, &[1, 2, 3]).unwrap();
        let at = |offset| MemoryAt::Local { region: region.clone(), offset };
        f.dma_copy("engine", at(0), at(2), 1).unwrap().await.success().unwrap();
        f.dma_copy("engine", at(0), at(1), 0).unwrap().await.success().unwrap();
        let mut bytes = [0; 3];
        region.read(0, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 1]);
    });
}

#[test]
fn a_request_uses_memory_of_its_own_role_within_range_and_right() {
    let lent: Rc<RefCell<Option<LocalRegion>>> = Rc::default();
    let own = lent.clone();
    let server = move |f: LocalFabric| {
        let own = own.clone();
        async move {
            let region = f.register("host", 8, Access::ALL).unwrap();
            *own.borrow_mut() = Some(region.clone());
            // One connection for each request that fails.
            let listener = f.listen("work").unwrap();
            let mut pairs = Vec::new();
            loop {
                let pair = f.create_queue_pair(QueuePairOptions::rc()).unwrap();
                listener.accept(&pair).await.unwrap();
                pairs.push(pair);
            }
        }
    };
    let seen = beside(1, server, move |f| {
        let lent = lent.clone();
        async move {
            let region = f.register("host", 8, Access::ALL).unwrap();
            let read_only = f.register("host", 8, Access::READ_ONLY).unwrap();
            f.sleep(Time::from_us(1)).await;
            let foreign = lent.borrow().clone().unwrap();
            let remote = foreign.remote();
            let mut seen = Vec::new();
            for local in
                [region.all(), foreign.all(), read_only.all(), region.slice(4, 8), foreign.slice(0, 0)]
            {
                let pair = connected(&f, 0, QueuePairOptions::rc()).await;
                seen.push(pair.read(local, remote.at(0)).unwrap().await.status);
            }
            seen
        }
    });
    let (good, refused) = (Status::Success, Status::LocalProtection);
    assert_eq!(seen, [good, refused, refused, refused, good]);
}

#[test]
fn what_a_role_published_ends_with_it_and_no_other() {
    let server = |f: LocalFabric| async move {
        let pair = f.create_queue_pair(QueuePairOptions::ud()).unwrap();
        f.publish("ud", &pair).unwrap();
        if f.role().instance == 1 {
            std::future::pending::<()>().await;
        }
    };
    let seen = beside(2, server, |f| async move {
        f.sleep(Time::from_us(9)).await;
        let limit = Time::from_us(9);
        [f.resolve("server", 0, "ud", limit).await, f.resolve("server", 1, "ud", limit).await]
    });
    assert!(matches!(&seen[0], Err(ConnectError::Failed { reason, .. }) if reason == "it ended"), "{seen:?}");
    assert_eq!(seen[1].as_ref().unwrap().endpoint, EndpointId(2));
}

#[test]
fn messages_of_one_byte_and_of_none_arrive() {
    let server = |f: LocalFabric| async move {
        let region = f.register("host", 1, Access::ALL).unwrap();
        region.write(0, &[7]).unwrap();
        let pair = accepted(&f).await;
        let empty = f.register("host", 0, Access::READ_ONLY).unwrap();
        pair.receive(empty.all()).unwrap().await.success().unwrap();
        empty.deregister().unwrap();
        let ud = f.create_queue_pair(QueuePairOptions::ud()).unwrap();
        let to = f.resolve("client", 0, "ud", Time::from_us(9)).await.unwrap();
        ud.send_to(region.all(), to).unwrap().await.success().unwrap();
        std::future::pending().await
    };
    let seen = beside(1, server, |f| async move {
        let region = f.register("host", 1, Access::ALL).unwrap();
        let ud = f.create_queue_pair(QueuePairOptions::ud()).unwrap();
        f.publish("ud", &ud).unwrap();
        let heard = ud.receive(region.all()).unwrap();
        let pair = connected(&f, 0, QueuePairOptions::rc()).await;
        pair.send(region.slice(0, 0)).unwrap().await.success().unwrap();
        let length = heard.await.success().unwrap().bytes;
        let mut byte = [0];
        region.read(0, &mut byte).unwrap();
        (length, byte)
    });
    assert_eq!(seen, (1, [7]));
}
