//! The log in one process on real files, and on the twin where its disks are small: what survives a
//! restart, and what is refused with nothing changed.

mod common;

use offpath_apps::replog::{
    self, DigestedStore, Digestion, Log, LogAlternative, LogConfig, LogError, Primary, SyncPolicy, WriteLoad,
    drive, entries,
};
use offpath_fabric::local::{Local, LocalClock, LocalFabric};
use offpath_fabric::{Backend, Fabric, File, FileError, FileMode, Role, RoleName};
use offpath_quantity::{Bytes, Time};
use offpath_twin::TwinFabric;
use std::path::Path;

fn alone() -> LogConfig {
    LogConfig {
        chunk_bytes: 100,
        segment_bytes: 1000,
        ..LogConfig::new(LogAlternative::HostWrites, Vec::new())
    }
}

/// Runs one role on the files below `directory`.
fn on_files<T: 'static, Fut: Future<Output = T> + 'static>(
    directory: &Path,
    role: impl Fn(LocalFabric) -> Fut + 'static,
) -> T {
    let backend = Local::new(1).clock(LocalClock::Manual).directory(directory);
    let run = backend.run(vec![Role::new("host", 0, role)]).expect("the run ends");
    let ended = run.outcomes.into_iter().next().and_then(|outcome| outcome.end.finished());
    ended.expect("the role ended")
}

fn bytes_of(write: u8) -> Vec<u8> {
    vec![write; 50 + usize::from(write) * 7]
}

/// A log of 30 writes of up to 260 B.
fn filled(directory: &Path) {
    on_files(directory, |fabric| async move {
        let primary = Primary::open(&fabric, &alone()).await.expect("it opens");
        for write in 0..30 {
            primary.write(&bytes_of(write)).await.expect("it writes");
        }
    });
}

fn segments(directory: &Path) -> Vec<std::path::PathBuf> {
    let all = std::fs::read_dir(directory.join("host-0")).expect("a directory");
    let mut all: Vec<_> = all.map(|entry| entry.expect("an entry").path()).collect();
    all.retain(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("segment-")));
    all.sort();
    all
}

fn opened(directory: &Path) -> Result<u64, LogError> {
    on_files(directory, |fabric| async move { Ok(Primary::open(&fabric, &alone()).await?.last()) })
}

#[test]
fn what_was_written_is_read_after_a_restart() {
    let directory = tempfile::tempdir().expect("a directory");
    filled(directory.path());
    assert!(segments(directory.path()).len() > 3);
    on_files(directory.path(), |fabric| async move {
        let primary = Primary::open(&fabric, &alone()).await.expect("it opens");
        let mut all = Vec::new();
        for sequence in 1..=primary.last() {
            all.extend(primary.read(sequence).await.expect("it is there"));
        }
        assert_eq!(all, (0..30).flat_map(bytes_of).collect::<Vec<u8>>());
        let beyond = primary.last() + 1;
        assert_eq!(primary.read(beyond).await, Err(LogError::Gap { sequence: beyond, last: beyond - 1 }));
    });
}

#[test]
fn a_torn_end_is_cut_off_and_the_log_goes_on() {
    let directory = tempfile::tempdir().expect("a directory");
    filled(directory.path());
    let last = opened(directory.path()).expect("it opens");
    let segment = segments(directory.path()).pop().expect("a segment");
    let bytes = std::fs::read(&segment).expect("it is read");
    std::fs::write(&segment, &bytes[..bytes.len() - 1]).expect("it is written");
    assert_eq!(opened(directory.path()), Ok(last - 1));
    on_files(directory.path(), move |fabric| async move {
        let primary = Primary::open(&fabric, &alone()).await.expect("it opens");
        assert_eq!(primary.write(&[9; 10]).await, Ok(last..=last));
        assert_eq!(primary.read(last).await, Ok(vec![9; 10]));
    });
}

#[test]
fn damage_that_no_crash_makes_is_refused_and_nothing_changes() {
    let directory = tempfile::tempdir().expect("a directory");
    filled(directory.path());
    let all = segments(directory.path());
    // In the first segment, its header, and before the end of the last one.
    for (segment, offset, at) in [(0, 60, 24), (1, 3, 0), (all.len() - 1, 50, 24)] {
        let whole = std::fs::read(&all[segment]).expect("it is read");
        let mut bytes = whole.clone();
        bytes[offset] ^= 1;
        std::fs::write(&all[segment], &bytes).expect("it is written");
        let file = all[segment].file_name().expect("a name").to_string_lossy().into_owned();
        assert_eq!(
            opened(directory.path()),
            Err(LogError::Corrupt { file, offset: at }),
            "segment {segment}"
        );
        assert_eq!(std::fs::read(&all[segment]).expect("it is read"), bytes);
        std::fs::write(&all[segment], &whole).expect("it is written");
    }
    assert!(opened(directory.path()).is_ok());
    // A segment that is missing, and one of another format.
    let whole = std::fs::read(&all[1]).expect("it is read");
    std::fs::remove_file(&all[1]).expect("it is removed");
    assert!(matches!(opened(directory.path()), Err(LogError::Corrupt { offset: 0, .. })));
    let mut bytes = whole;
    bytes[8] = 9;
    std::fs::write(&all[1], &bytes).expect("it is written");
    assert!(matches!(opened(directory.path()), Err(LogError::Format { found: 9, known: 1, .. })));
}

#[test]
fn a_second_writer_is_refused() {
    let directory = tempfile::tempdir().expect("a directory");
    on_files(directory.path(), |fabric| async move {
        let first = Primary::open(&fabric, &alone()).await.expect("it opens");
        let second = Primary::open(&fabric, &alone()).await.map(|_| ());
        assert_eq!(second, Err(LogError::TwoWriters { role: "host[0]".into() }));
        first.write(&[1]).await.expect("the first goes on");
        drop(first);
        Log::open(&fabric, &alone()).await.map(|_| ()).expect("it is free again");
    });
}

#[test]
fn options_that_cannot_be_are_refused() {
    let refusal = |options: LogConfig| {
        let directory = tempfile::tempdir().expect("a directory");
        on_files(directory.path(), move |fabric| {
            let options = options.clone();
            async move { Primary::open(&fabric, &options).await.map(|_| ()).expect_err("it is refused") }
        })
    };
    for options in [
        LogConfig { chunk_bytes: 0, ..alone() },
        LogConfig { slots: 65, ..alone() },
        LogConfig { card_share_percent: Some(101), ..alone() },
    ] {
        assert!(matches!(refusal(options), LogError::Shape { .. }));
    }
    let lossy = LogConfig { digestion: Digestion::Keep, sync: SyncPolicy::Every(2), ..alone() };
    assert_eq!(refusal(lossy), LogError::DigestionNeedsSync);
}

#[test]
fn digestion_goes_on_after_a_restart_and_the_log_is_truncated_behind_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = || LogConfig { digestion: Digestion::Truncate, ..alone() };
    for round in 0..3u64 {
        on_files(directory.path(), move |fabric| async move {
            let primary = Primary::open(&fabric, &options()).await.expect("it opens");
            assert_eq!(primary.write(&[1]).await, Err(LogError::NoRecord { sequence: 0 }));
            assert_eq!(
                primary.write_file("a/b", 0, &[1]).await,
                Err(LogError::FileName { name: "a/b".into() })
            );
            for write in 0..20u64 {
                let bytes = vec![(round * 20 + write) as u8; 250];
                primary.write_file("one", (round * 20 + write) * 250, &bytes).await.expect("it writes");
                primary.write_file("two", 0, &bytes).await.expect("it writes");
            }
            if round < 2 {
                // Without waiting: what is not digested is so in the next round.
                return;
            }
            primary.until_digested(primary.last()).await.expect("it is digested");
            assert_eq!((primary.digested(), primary.last()), (360, 360));
            assert!(primary.first() > 300, "{}", primary.first());
            assert_eq!(
                primary.read(1).await,
                Err(LogError::Truncated { sequence: 1, first: primary.first() })
            );
            let one: Vec<u8> = (0..60).flat_map(|write| vec![write as u8; 250]).collect();
            assert_eq!(DigestedStore::read(&fabric, "one", 0, 20_000).await, Ok(one));
            assert_eq!(DigestedStore::read(&fabric, "two", 0, 20_000).await, Ok(vec![59; 250]));
        });
    }
    // Whoever does not digest would miss what was removed.
    assert!(matches!(opened(directory.path()), Err(LogError::Truncated { sequence: 1, .. })));
}

/// A process may have about a thousand files open, and a store may have any number.
#[test]
#[cfg(target_os = "linux")]
fn a_store_of_many_files_keeps_few_of_them_open() {
    let directory = tempfile::tempdir().expect("a directory");
    let below = directory.path().to_path_buf();
    let options = || LogConfig { digestion: Digestion::Truncate, ..alone() };
    let open = on_files(directory.path(), move |fabric| {
        let below = below.clone();
        async move {
            let primary = Primary::open(&fabric, &options()).await.expect("it opens");
            let mut most = 0;
            for write in 0..400 {
                primary.write_file(&format!("f{write}"), 0, &[1]).await.expect("it writes");
                if write % 16 == 15 {
                    primary.until_digested(primary.last()).await.expect("it is digested");
                    let all = std::fs::read_dir("/proc/self/fd").expect("a directory");
                    let names = all.filter_map(|one| std::fs::read_link(one.ok()?.path()).ok());
                    let own = names.filter(|name| {
                        let is_of_store =
                            |name: &std::ffi::OsStr| name.to_string_lossy().starts_with("file-");
                        name.starts_with(&below) && name.file_name().is_some_and(is_of_store)
                    });
                    most = own.count().max(most);
                }
            }
            most
        }
    });
    assert!((16..=160).contains(&open), "{open} files are open");
}

/// Whoever digests as fast as there is something sleeps in between, and no next write has to come for it to wake.
#[test]
fn an_idle_digester_hears_of_the_next_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogConfig { digestion: Digestion::Keep, ..alone() };
    on_files(directory.path(), move |fabric| {
        let options = options.clone();
        async move {
            let primary = Primary::open(&fabric, &options).await.expect("it opens");
            for write in 0..3u8 {
                primary.write_file("one", 0, &[write; 50]).await.expect("it writes");
                let there = primary.until_digested(primary.last());
                let ended = fabric.timeout(Time::from_ms(1000), there).await;
                assert_eq!(ended, Some(Ok(())), "write {write}");
            }
        }
    });
}

#[test]
fn a_load_on_real_files_ends_and_every_replica_has_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = LogConfig {
        chunk_bytes: 4096,
        segment_bytes: 1 << 16,
        digestion: Digestion::Keep,
        ..LogConfig::new(
            LogAlternative::CardPullsByEngine,
            vec![RoleName::new("backup", 0), RoleName::new("backup", 1)],
        )
    };
    let load = WriteLoad { sessions: 4, writes: 4, bytes: 20_000, compressible_percent: 50 };
    let [of_first, of_second, of_card] = [options.clone(), options.clone(), options.clone()];
    let below = directory.path().to_path_buf();
    let host = Role::new("host", 0, move |fabric: LocalFabric| {
        let (options, below) = (options.clone(), below.clone());
        async move {
            let driven = drive(&fabric, &options, &load).await?;
            // Backups digest on their own, as fast as their disks sync.
            let position = 80u64.to_le_bytes();
            let is_done = |backup: &str| {
                let kept = std::fs::read(below.join(backup).join("digested"));
                kept.is_ok_and(|kept| kept.starts_with(&position))
            };
            for _ in 0..3000 {
                if is_done("backup-0") && is_done("backup-1") {
                    break;
                }
                fabric.sleep(Time::from_ms(10)).await;
            }
            Ok::<_, LogError>(Some(driven))
        }
    });
    let none = |ended: Result<(), LogError>| ended.map(|()| None);
    let backup = move |options: LogConfig| {
        move |fabric| {
            let options = options.clone();
            async move { none(replog::backup(fabric, options).await) }
        }
    };
    let roles = vec![
        host,
        Role::new("backup", 0, backup(of_first)).in_background(),
        Role::new("backup", 1, backup(of_second)).in_background(),
        Role::new("soc", 0, move |fabric| {
            let options = of_card.clone();
            async move { none(replog::card(fabric, options).await) }
        })
        .in_background(),
    ];
    let run = Local::new(1).dma_engine("dma").directory(directory.path()).run(roles).expect("the run ends");
    let driven =
        run.outcomes[0].end.clone().finished().expect("it ended").expect("it writes").expect("a result");
    assert_eq!((driven.writes, driven.bytes, driven.by_host), (16, 320_000, 0));
    assert!(driven.by_card >= 80 && driven.bits_per_second > 0.0 && driven.elapsed > Time::ZERO);
    let read =
        |path: &Path| std::fs::read(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    for session in 0..4 {
        let name = format!("file-session-{session}");
        let own = read(&directory.path().join("soc-0").join(&name));
        assert_eq!(own.len(), 80_000);
        // Half of each page is as random as asked for, so that compression finds that half and no more.
        for page in own.chunks(20_000).flat_map(|write| write.chunks(4096)) {
            let (filled, zero) = page.split_at(page.len() / 2);
            assert!(zero.iter().all(|byte| *byte == 0));
            assert!(filled.iter().filter(|byte| **byte == 0).count() < filled.len() / 20);
        }
        for backup in ["backup-0", "backup-1"] {
            assert!(read(&directory.path().join(backup).join(&name)) == own, "{backup} {name}");
        }
    }
    for segment in segments(directory.path()) {
        let name = segment.file_name().expect("a name");
        for backup in ["backup-0", "backup-1"] {
            assert!(read(&directory.path().join(backup).join(name)) == read(&segment), "{backup} {name:?}");
        }
    }
}

/// A copy of every file of a role, as an operator makes it.
fn copy_role(directory: &Path, from: &str, to: &str) {
    std::fs::create_dir_all(directory.join(to)).expect("a directory");
    for entry in std::fs::read_dir(directory.join(from)).expect("a directory") {
        let entry = entry.expect("an entry");
        std::fs::copy(entry.path(), directory.join(to).join(entry.file_name())).expect("it is copied");
    }
}

#[test]
fn a_primary_without_its_files_is_refused_and_goes_on_with_those_of_a_backup() {
    let directory = tempfile::tempdir().expect("a directory");
    let options = || LogConfig {
        chunk_bytes: 100,
        segment_bytes: 1000,
        ..LogConfig::new(LogAlternative::HostWrites, vec![RoleName::new("backup", 0)])
    };
    let written = |writes: u8| {
        let host = Role::new("host", 0, move |fabric: LocalFabric| async move {
            let primary = Primary::open(&fabric, &options()).await?;
            for write in 0..writes {
                primary.write(&[write; 60]).await?;
            }
            Ok(primary.last())
        });
        let backup = Role::new("backup", 0, move |fabric: LocalFabric| async move {
            replog::backup(fabric, options()).await.map(|()| 0)
        });
        let backend = Local::new(1).directory(directory.path());
        let run = backend.run(vec![host, backup.in_background()]).expect("the run ends");
        run.outcomes[0].end.clone().finished().expect("the primary ended")
    };
    let lose = || std::fs::remove_dir_all(directory.path().join("host-0")).expect("it is removed");
    let peer = || "backup[0]".to_string();
    assert_eq!(written(20), Ok(20));
    lose();
    assert_eq!(written(5), Err(LogError::Ahead { peer: peer(), has: 20, last: 0 }));
    lose();
    copy_role(directory.path(), "backup-0", "host-0");
    assert_eq!(written(5), Ok(25));
    lose();
    assert_eq!(written(5), Err(LogError::Superseded { peer: peer(), incarnation: 1 }));
    lose();
    copy_role(directory.path(), "backup-0", "host-0");
    assert_eq!(written(5), Ok(30));
}

#[test]
fn a_full_disk_of_the_primary_is_named_and_costs_nothing_acknowledged() {
    let options = alone();
    let host = Role::new("host", 0, move |fabric: TwinFabric| {
        let options = options.clone();
        async move {
            let primary = Primary::open(&fabric, &options).await.expect("it opens");
            let mut acknowledged = Vec::new();
            let refused = loop {
                match primary.write(&[acknowledged.len() as u8; 90]).await {
                    Ok(_) => acknowledged.push(vec![acknowledged.len() as u8; 90]),
                    Err(error) => break error,
                }
            };
            assert!(matches!(refused, LogError::File(FileError::Full { .. })), "{refused}");
            assert!(acknowledged.len() > 30);
            // The same answer again, and the log is whole for who opens it next.
            assert_eq!(primary.write(&[0; 90]).await, Err(refused));
            drop(primary);
            fabric.sleep(Time::from_ms(5)).await;
            let log = Log::open(&fabric, &options).await.expect("it opens");
            assert_eq!(log.last(), acknowledged.len() as u64);
            let kept: Vec<Vec<u8>> =
                entries(&Log::files(&fabric).await.expect("it has files")).into_values().collect();
            assert_eq!(kept, acknowledged);
        }
    });
    let backend =
        offpath_twin::TwinBackend::on(common::router(), 1).with_file_capacity("host", Bytes::new(4321));
    backend.run(vec![host]).expect("the run ends");
}

#[test]
fn a_backup_with_a_full_disk_ends_with_its_error_and_goes_on_once_there_is_room() {
    let options = LogConfig {
        chunk_bytes: 100,
        segment_bytes: 1000,
        ..LogConfig::new(LogAlternative::HostWrites, vec![RoleName::new("backup", 0)])
    };
    let of_backup = options.clone();
    let backup = Role::new("backup", 0, move |fabric: TwinFabric| {
        let options = of_backup.clone();
        async move {
            let ballast = fabric.file("ballast", FileMode::Create).await.expect("it is made");
            ballast.write_at(0, &[0; 2000]).await.expect("it has room");
            let ended = replog::backup(fabric.clone(), options.clone()).await;
            assert!(matches!(ended, Err(LogError::File(FileError::Full { .. }))), "{ended:?}");
            fabric.sleep(Time::from_ms(2)).await;
            fabric.remove("ballast").await.expect("it is there");
            replog::backup(fabric, options).await
        }
    });
    let host = Role::new("host", 0, move |fabric: TwinFabric| {
        let options = options.clone();
        async move {
            let primary = Primary::open(&fabric, &options).await?;
            for write in 0..40 {
                primary.write(&[write; 60]).await?;
            }
            assert_eq!(primary.last(), 40);
            assert!(fabric.now() > Time::from_ms(2), "the disk was never full");
            Ok(())
        }
    });
    let backend =
        offpath_twin::TwinBackend::on(common::router(), 1).with_file_capacity("backup", Bytes::new(4000));
    let run = backend.run(vec![host, backup.in_background()]).expect("the run ends");
    assert_eq!(run.outcomes[0].end.clone().finished(), Some(Ok(())));
}

#[test]
fn a_backup_that_lost_its_files_gets_the_log_from_the_one_before_it_without_a_write() {
    let directory = tempfile::tempdir().expect("a directory");
    let chain = || vec![RoleName::new("backup", 0), RoleName::new("backup", 1)];
    let options = move || LogConfig {
        chunk_bytes: 100,
        segment_bytes: 1000,
        ..LogConfig::new(LogAlternative::HostWrites, chain())
    };
    let write = |writes: u8| {
        let host = Role::new("host", 0, move |fabric: LocalFabric| async move {
            let primary = Primary::open(&fabric, &options()).await?;
            for write in 0..writes {
                primary.write(&[write; 60]).await?;
            }
            // The first backup looks after the second one on its own.
            fabric.sleep(options().patience.times(20)).await;
            Ok::<_, LogError>(primary.last())
        });
        let backup = |index| {
            let role = Role::new("backup", index, move |fabric: LocalFabric| async move {
                replog::backup(fabric, options()).await.map(|()| 0)
            });
            role.in_background()
        };
        let backend = Local::new(1).clock(LocalClock::Manual).directory(directory.path());
        let run = backend.run(vec![host, backup(0), backup(1)]).expect("the run ends");
        run.outcomes[0].end.clone().finished().expect("the primary ended")
    };
    let log_of = |index: u32| {
        let role = Role::new("backup", index, move |fabric: LocalFabric| async move {
            entries(&Log::files(&fabric).await.expect("it has files"))
        });
        let backend = Local::new(1).clock(LocalClock::Manual).directory(directory.path());
        let run = backend.run(vec![role]).expect("the run ends");
        run.outcomes.into_iter().next().and_then(|outcome| outcome.end.finished()).expect("it ended")
    };
    // Each learns of the first incarnation before there is an entry, too.
    assert_eq!(write(0), Ok(0));
    for backup in ["backup-0", "backup-1"] {
        assert!(directory.path().join(backup).join("incarnations").is_file(), "{backup}");
    }
    assert_eq!(write(20), Ok(20));
    assert_eq!(log_of(1).len(), 20);
    std::fs::remove_dir_all(directory.path().join("backup-1")).expect("it is removed");
    assert_eq!(write(0), Ok(20));
    assert_eq!(log_of(1).len(), 20);
    assert_eq!(log_of(1), log_of(0));
}
