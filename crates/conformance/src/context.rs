//! Files, time, randomness, tasks, roles.

use crate::{Make, Verdict, holds, play, same, two};
use offpath_fabric::*;
use offpath_quantity::Time;
use rand_core::RngCore;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

async fn content<F: File>(file: &F) -> Result<Vec<u8>, FileError> {
    let mut bytes = vec![0; file.length().await? as usize + 1];
    let count = file.read_at(0, &mut bytes).await?;
    bytes.truncate(count);
    Ok(bytes)
}

pub fn files<W: Backend>(make: Make<'_, W>) -> Verdict {
    two(
        make,
        |f: W::Fabric| async move {
            let name = |name: &str| name.to_string();
            let missing = f.file("log", FileMode::Open).await.err();
            same("opening what is not there", missing, Some(FileError::NotFound { name: name("log") }))?;
            let log = f.file("log", FileMode::Create).await?;
            let taken = f.file("log", FileMode::Create).await.err();
            same("creating what is there", taken, Some(FileError::Exists { name: name("log") }))?;
            for bad in ["", ".", "..", "a/b", "/etc/passwd"] {
                let refused = f.file(bad, FileMode::OpenOrCreate).await.err();
                same("opening a bad name", refused, Some(FileError::BadName { name: name(bad) }))?;
            }
            same("where the first append begins", log.append(b"hello").await?, 0)?;
            same("where the second append begins", log.append(b" world").await?, 5)?;
            log.sync().await?;
            log.write_at(13, b"!").await?;
            same("a file with a gap", content(&log).await?, b"hello world\0\0!".to_vec())?;
            same("reading past the end", log.read_at(99, &mut [0; 4]).await?, 0)?;
            log.truncate(5).await?;
            log.truncate(6).await?;
            same("a file cut and grown", content(&log).await?, b"hello\0".to_vec())?;
            log.sync().await?;
            f.sync_directory().await?;
            drop(log);
            let log = f.file("log", FileMode::OpenOrCreate).await?;
            same("a file opened again", content(&log).await?, b"hello\0".to_vec())?;
            log.lock().await?;
            let other = f.file("log", FileMode::Open).await?;
            same("locking what is locked", other.lock().await, Err(FileError::Locked { name: name("log") }))?;
            drop(log);
            other.lock().await?;
            drop(other);
            f.file("lodge", FileMode::Create).await?.append(b"old").await?;
            f.file("x", FileMode::Create).await?;
            same("a list by prefix", f.list("lo").await?, vec![name("lodge"), name("log")])?;
            f.rename("log", "lodge").await?;
            let lodge = f.file("lodge", FileMode::Open).await?;
            same("a file renamed over another", content(&lodge).await?, b"hello\0".to_vec())?;
            f.remove("lodge").await?;
            same("what is left", f.list("").await?, vec![name("x")])?;
            let gone = f.remove("lodge").await;
            same("removing what is not there", gone, Err(FileError::NotFound { name: name("lodge") }))
        },
        |f: W::Fabric| async move {
            // Files of one role are not another's.
            f.sleep(Time::from_ms(1)).await;
            same("the other role's files", f.list("").await?, Vec::new())
        },
    )
}

pub fn timers_in_order<W: Backend>(make: Make<'_, W>) -> Verdict {
    let alone = |f: W::Fabric| async move {
        let fired = Rc::new(RefCell::new(Vec::new()));
        let base = f.now() + Time::from_ms(2);
        let mut handles = Vec::new();
        for (order, after) in [300u64, 100, 200, 100, 0, 300].into_iter().enumerate() {
            let (f, fired) = (f.clone(), fired.clone());
            handles.push(f.clone().spawn(async move {
                let at = base + Time::from_us(after);
                f.sleep_until(at).await;
                fired.borrow_mut().push((after, order));
                f.now() >= at
            }));
        }
        for handle in handles {
            holds(handle.await?, "a timer fired before its time")?;
        }
        let expected = vec![(0, 4), (100, 1), (100, 3), (200, 2), (300, 0), (300, 5)];
        same("the order in which timers fired", fired.take(), expected)?;
        let before = f.now();
        f.sleep_until(Time::ZERO).await;
        let late = f.timeout(Time::from_us(50), std::future::pending::<()>()).await;
        same("a future that takes too long", late, None)?;
        holds(f.now() >= before + Time::from_us(50), "a time limit ended early")?;
        same("a future in time", f.timeout(Time::from_ms(10_000), async { 3 }).await, Some(3))?;
        f.compute(Work::Time(Time::from_us(1))).await;
        f.compute(Work::Cycles(1000)).await;
        Ok(())
    };
    play(make(1), vec![Role::new("client", 0, alone)])
}

/// How many sleeps in a row may end at once before others must have run.
const DUE_SLEEPS: u32 = 100_000;

pub fn due_sleeps_let_others_run<W: Backend>(make: Make<'_, W>) -> Verdict {
    let alone = |f: W::Fabric| async move {
        // Some backends begin at zero, and what is due by a moment is due for a task that was just woken too.
        for past in [Time::ZERO, f.now()] {
            let ran = Rc::new(Cell::new(false));
            let other = ran.clone();
            drop(f.spawn(async move { other.set(true) }));
            let mut sleeps = 0;
            while !ran.get() && sleeps < DUE_SLEEPS {
                f.sleep_until(past).await;
                sleeps += 1;
            }
            holds(ran.get(), "a task that sleeps until what has passed kept a ready one from running")?;
            f.sleep(Time::from_us(1)).await;
        }
        Ok(())
    };
    play(make(1), vec![Role::new("client", 0, alone)])
}

pub fn randomness<W: Backend>(make: Make<'_, W>) -> Verdict {
    let draw = |seed: u64, disturbed: bool| -> Result<Vec<u64>, crate::Failure> {
        let drawn = Rc::new(RefCell::new(Vec::new()));
        let role = |name: &str, instance| {
            let drawn = drawn.clone();
            Role::new(name, instance, move |f: W::Fabric| {
                let drawn = drawn.clone();
                async move {
                    if disturbed {
                        f.rng("another").next_u64();
                        f.spawn({
                            let f = f.clone();
                            async move { f.rng("yet another").next_u64() }
                        });
                    }
                    let (mut a, mut again, mut b) = (f.rng("a"), f.rng("a"), f.rng("b"));
                    let first = a.next_u64();
                    same("the first number of one label", again.next_u64(), first)?;
                    // The order of roles is the backend's own; each value goes to its place.
                    let own = (f.role(), [first, a.next_u64(), b.next_u64(), f.random_u64(), f.random_u64()]);
                    drawn.borrow_mut().push(own);
                    Ok(())
                }
            })
        };
        play(make(seed), vec![role("client", 0), role("client", 1), role("server", 0)])?;
        let mut drawn = drawn.take();
        drawn.sort();
        Ok(drawn.into_iter().flat_map(|(_, numbers)| numbers).collect())
    };
    let first = draw(1, false)?;
    let mut distinct = first.clone();
    distinct.sort_unstable();
    distinct.dedup();
    same("distinct numbers of 3 roles", distinct.len(), 15)?;
    same("the numbers of the same seed", draw(1, false)?, first.clone())?;
    same("the numbers beside another consumer", draw(1, true)?, first.clone())?;
    holds(draw(2, false)?.iter().zip(&first).all(|(a, b)| a != b), "another seed gave the same numbers")
}

pub fn spawn_and_join<W: Backend>(make: Make<'_, W>) -> Verdict {
    struct Raise(Rc<Cell<u32>>);
    impl Drop for Raise {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }
    let (dropped, ran) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let (drops, runs) = (dropped.clone(), ran.clone());
    let client = move |f: W::Fabric| {
        let (drops, runs) = (drops.clone(), runs.clone());
        async move {
            let inner = f.clone();
            let handle = f.spawn(async move {
                inner.sleep(Time::from_us(10)).await;
                inner.spawn(async { 40 }).await.map(|value| value + 2)
            });
            same("a task's result", handle.await??, 42)?;
            let (later, raise) = (f.clone(), Raise(runs.clone()));
            drop(f.spawn(async move {
                later.sleep(Time::from_us(10)).await;
                drop(raise);
            }));
            f.sleep(Time::from_ms(1)).await;
            same("whether a task without a handle ran", runs.get(), 1)?;
            // This one never ends; it goes with its role.
            let raise = Raise(drops.clone());
            f.spawn(async move {
                std::future::pending::<()>().await;
                drop(raise);
            });
            Ok(())
        }
    };
    let server = move |f: W::Fabric| {
        let dropped = dropped.clone();
        async move {
            f.sleep(Time::from_ms(100)).await;
            same("tasks dropped with their role", dropped.get(), 1)
        }
    };
    two(make, client, server)
}

pub fn role_names<W: Backend>(make: Make<'_, W>) -> Verdict {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let role = |name: &str, instance| {
        let seen = seen.clone();
        Role::new(name, instance, move |f: W::Fabric| {
            let seen = seen.clone();
            async move {
                let role = f.role();
                let background = role.role == "server";
                seen.borrow_mut().push(role);
                let counts = [f.instances("client"), f.instances("server"), f.instances("nobody")];
                same("instances of client, server, nobody", counts, [2, 1, 0])?;
                holds(
                    !f.processor().is_empty() && !f.memories().is_empty(),
                    "a processor or memory has no name",
                )?;
                if background {
                    std::future::pending::<()>().await;
                }
                f.sleep(Time::from_us(10)).await;
                Ok(())
            }
        })
    };
    play(make(1), vec![role("client", 0), role("client", 1), role("server", 0).in_background()])?;
    let mut seen = seen.take();
    seen.sort();
    let expected = [("client", 0), ("client", 1), ("server", 0)];
    same("the roles that ran", seen, expected.map(|(name, instance)| RoleName::new(name, instance)).to_vec())
}

pub fn bad_roles<W: Backend>(make: Make<'_, W>) -> Verdict {
    let role = || Role::new("client", 0, |_: W::Fabric| async { 1 });
    let refused = |roles| matches!(make(1).run(roles), Err(RunError::BadRoles { .. }));
    holds(refused(vec![role(), role()]), "two roles of one name were not refused")?;
    holds(refused(vec![role().in_background()]), "a run that would not end was not refused")
}

pub fn deadlock_is_reported<W: Backend>(make: Make<'_, W>) -> Verdict {
    let waits = |f: W::Fabric| async move {
        if f.role().instance == 2 {
            return 0;
        }
        let socket = f.bind(1);
        let Ok(socket) = socket else { return 1 };
        let _ = socket.receive_from(&mut [0; 8]).await;
        2
    };
    let roles = (0..3).map(|instance| Role::new("client", instance, waits)).collect();
    match make(1).run(roles) {
        Err(RunError::Deadlock { waiting, .. }) => {
            let expected = vec![RoleName::new("client", 0), RoleName::new("client", 1)];
            same("the roles that wait", waiting, expected)
        }
        other => Err(format!("a deadlock ended with {other:?}").into()),
    }
}
