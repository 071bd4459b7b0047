//! The relay between real servers. A server that is not installed makes its test say `skipped`.

mod servers;

use offpath_redis::client::RedisClient;
use offpath_redis::resp::Value;
use servers::{
    Draws, Proxy, Relay, SILENCE, Server, all_servers, assert_same, contents, digest, free_port, peak_memory,
    probe, redis, relay_program, settle, tool, valkey, wait_for, write,
};
use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

fn load(server: &Server, seed: u64, count: u32) {
    let mut client = server.client();
    let mut draws = Draws(seed);
    for _ in 0..count {
        write(&mut client, &mut draws).expect("the write is taken");
    }
}

/// Waits until so many replicas follow the stream, which their first acknowledgement shows: that may
/// come a second after a replica has everything.
fn wait_until_online(relay: &Relay, count: usize) {
    wait_for("the replicas' first acknowledgements", SILENCE, || {
        let text = relay.client().text(&["INFO", "replication"]).expect("INFO is answered");
        text.matches("state=online").count() == count
    });
}

#[test]
fn replicas_join_before_during_and_after() {
    let Some(program) = redis() else { return };
    for diskless in ["yes", "no"] {
        let master = Server::start(&program, &["--repl-diskless-sync", diskless]);
        load(&master, 1, 500);
        let relay = Relay::start(&master.address(), "");
        let early = Server::start(&program, &[]);
        early.follow(&relay.address());
        load(&master, 2, 500);
        assert_same(&master, &[&early]);
        let late = Server::start(&program, &["--repl-diskless-load", "swapdb"]);
        late.follow(&relay.address());
        load(&master, 3, 500);
        assert_same(&master, &[&early, &late]);
        assert_eq!(master.number("stats", "sync_full"), 1, "one file serves both: {}", relay.log());
        assert_eq!(relay.number("replication", "connected_slaves"), 2);
        assert_eq!(master.number("replication", "connected_slaves"), 1);
    }
}

/// The seconds of the minute of a line in a server's log.
fn seconds(line: &str) -> f64 {
    let time = line.split_ascii_whitespace().find(|word| word.matches(':').count() == 2).expect("a time");
    time.rsplit(':').next().and_then(|seconds| seconds.parse().ok()).expect("seconds")
}

/// Each file that there is no room for the master has written for nothing.
#[test]
fn a_spool_without_room_is_said_and_tried_less_and_less() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--rdbcompression", "no"]);
    load(&master, 1, 2_000);
    let relay = Relay::with_little_room(&master.address(), 16);
    let before = master.number("stats", "sync_full");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    thread::sleep(Duration::from_secs(8));
    // After 0, 0.5, 1.5, 3.5 and 7.5 seconds, and not twice a second.
    let tried = master.number("stats", "sync_full") - before;
    assert!((2..=6).contains(&tried), "{tried} files in 8 s: {}", relay.log());
    wait_for("five files", SILENCE, || master.number("stats", "sync_full") - before >= 5);
    let times: Vec<f64> =
        master.log().lines().filter(|line| line.contains("Full resync")).map(seconds).collect();
    let pauses: Vec<f64> = times.windows(2).rev().map(|two| (two[1] - two[0]).rem_euclid(60.0)).collect();
    assert!(pauses[0] > 1.5 * pauses[1] && pauses[1] > 1.5 * pauses[2], "{pauses:?}");
    let log = relay.log();
    assert!(log.contains("the relay cannot keep the master's file in"), "{log}");
    assert!(log.contains("set `spool.directory`"), "{log}");
}

/// What broke off may be whole the next time, and who waits for it gets nothing meanwhile.
#[test]
fn a_file_that_breaks_off_is_asked_for_again_within_seconds() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    // A file, and more of the stream than the window keeps; then files that break off.
    let command = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$1000\r\n{}\r\n", "v".repeat(1_000));
    let first = [PLAYED, "REDIS0011", &command.repeat(300)].concat().into_bytes();
    let broken =
        "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 300000\r\n$900\r\nREDIS0011".as_bytes();
    let files = Arc::new(Mutex::new(0));
    let counted = files.clone();
    thread::spawn(move || {
        let mut kept = None;
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let (mut seen, mut piece) = (String::new(), [0; 4096]);
            while let Ok(count @ 1..) = connection.read(&mut piece) {
                seen += &String::from_utf8_lossy(&piece[..count]);
                if seen.contains("PSYNC") {
                    break;
                }
                let _ = connection.write_all(b"+PONG\r\n");
            }
            if !seen.contains("PSYNC") {
                continue;
            }
            if kept.is_none() {
                connection.write_all(&first).unwrap();
                kept = Some(connection);
            } else {
                let _ = connection.write_all(broken);
                *counted.lock().unwrap() += 1;
            }
        }
    });
    let relay = Relay::start_alone(&address, "[limits]\nbacklog = '64KiB'\n");
    wait_for("the stream", SILENCE, || relay.number("replication", "master_repl_offset") >= 300_000);
    let at = relay.address();
    thread::spawn(move || {
        while let Ok(mut replica) = TcpStream::connect(&at) {
            let _ = replica.write_all(b"REPLCONF listening-port 7001\r\nPSYNC ? -1\r\n");
            let _ = replica.read_to_end(&mut Vec::new());
            thread::sleep(Duration::from_millis(20));
        }
    });
    // At 0, 0.5 and 1.5 s and each second from there on; doubled pauses would come to the seventh after half a minute.
    wait_for("a seventh file", Duration::from_secs(20), || *files.lock().unwrap() >= 7);
    assert!(relay.log().contains("the master closed within its file"), "{}", relay.log());
}

/// Who ends the relay waits for the disk as long as for replicas, and no longer.
#[test]
fn a_disk_that_does_not_answer_keeps_no_relay_from_its_end() {
    let master = play_master([PLAYED, "REDIS0011*1\r\n$4\r\nPING\r\n"].concat().into_bytes());
    let mut relay = Relay::start(&master, "[limits]\ndrain = '1 s'\n");
    let beside = relay.state_file().with_file_name(format!(".state.{}.new", relay.pid()));
    // Who opens a pipe to write waits for a reader, as for a disk that hangs.
    let hangs = std::process::Command::new("mkfifo").arg(&beside).status().unwrap();
    assert!(hangs.success());
    // With it the relay follows, and has a position to keep.
    let (_replica, answer) = play_replica(&relay, None);
    assert!(answer.starts_with("+FULLRESYNC"), "{answer}");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(relay.client().text(&["PING"]).unwrap(), "PONG", "others are served");
    let began = Instant::now();
    assert_eq!(relay.terminate(), Some(0), "{}", relay.log());
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(relay.log().contains("the disk has not answered in time"), "{}", relay.log());
}

#[test]
fn two_relays_do_not_keep_their_positions_in_one_file() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let mut relay = Relay::start(&master.address(), "");
    let second = relay.run_beside();
    assert_eq!(second.status.code(), Some(2));
    let said = String::from_utf8_lossy(&second.stderr).to_string();
    assert!(said.contains("another relay runs that keeps its position in"), "{said}");
    // It is free again once the other has ended, however it ended.
    relay.restart();
    assert_eq!(relay.terminate(), Some(0));
    assert!(relay.log().contains("no replica followed it"), "{}", relay.log());
}

#[test]
fn a_new_file_is_fetched_where_the_old_one_is_out_of_reach() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 100);
    let relay = Relay::start(&master.address(), "[limits]\nbacklog = '256KiB'\n");
    let first = Server::start(&program, &[]);
    first.follow(&relay.address());
    settle(&master, &[&first]);
    for seed in 0..8 {
        load(&master, 10 + seed, 500);
        settle(&master, &[&first]);
    }
    let second = Server::start(&program, &[]);
    second.follow(&relay.address());
    load(&master, 3, 500);
    assert_same(&master, &[&first, &second]);
    assert_eq!(master.number("stats", "sync_full"), 2, "{}", relay.log());
    assert_eq!(relay.number("stats", "master_sync_full"), 1, "the stream went on: {}", relay.log());
}

#[test]
fn what_was_cut_resumes_partially() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 300);
    let upper = Proxy::to(&master.address());
    let mut relay = Relay::start(&upper.address(), "");
    let lower = Proxy::to(&relay.address());
    let replica = Server::start(&program, &[]);
    replica.follow(&lower.address());
    settle(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_full"), 1);

    lower.cut();
    load(&master, 2, 300);
    assert_same(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_partial_ok"), 1, "{}", relay.log());

    upper.cut();
    load(&master, 3, 300);
    assert_same(&master, &[&replica]);
    assert_eq!(relay.number("stats", "master_sync_partial"), 1, "{}", relay.log());
    assert_eq!(relay.number("stats", "sync_full"), 1, "{}", relay.log());

    // A relay that was killed knows from its file where every replica can go on.
    thread::sleep(Duration::from_millis(1_200));
    relay.kill();
    load(&master, 4, 300);
    relay.restart();
    load(&master, 5, 300);
    assert_same(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_full"), 0, "{}", relay.log());
    assert_eq!(relay.number("stats", "master_sync_partial"), 1, "{}", relay.log());

    // SIGTERM lets replicas take what is left.
    load(&master, 6, 300);
    assert_eq!(relay.terminate(), Some(0));
    assert!(relay.log().contains("the replica that followed has it"), "{}", relay.log());
    relay.restart();
    assert_same(&master, &[&replica]);
    assert_eq!(master.number("stats", "sync_full"), 1, "one file in all: {}", relay.log());
}

#[test]
fn without_its_file_a_killed_relay_goes_on_from_where_its_replicas_are() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 300);
    let mut relay = Relay::start(&master.address(), "");
    let replicas = [Server::start(&program, &[]), Server::start(&program, &[])];
    for replica in &replicas {
        replica.follow(&relay.address());
    }
    settle(&master, &[&replicas[0], &replicas[1]]);
    relay.kill();
    fs::remove_file(relay.folder.path().join("state")).expect("the file exists");
    load(&master, 2, 300);
    relay.restart();
    assert_same(&master, &[&replicas[0], &replicas[1]]);
    assert_eq!(master.number("stats", "sync_full"), 1, "{}", relay.log());
    assert_eq!(relay.number("stats", "sync_full"), 0, "{}", relay.log());
}

/// A place that a replica names may be the middle of a command.
#[test]
fn a_place_that_is_none_misleads_the_relay_once() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let first = Server::start(&program, &[]);
    first.follow(&master.address());
    settle(&master, &[&first]);
    first.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    load(&master, 1, 300);
    let relay = Relay::start(&master.address(), "");
    let (id, middle) = (
        master.info("replication", "master_replid"),
        master.number("replication", "repl_backlog_first_byte_offset") + 1,
    );
    let mut liar = TcpStream::connect(relay.address()).unwrap();
    liar.write_all(format!("PSYNC {id} {middle}\r\n").as_bytes()).unwrap();
    wait_for("its end", SILENCE, || relay.log().contains("the stream has"));
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    load(&master, 2, 300);
    assert_same(&master, &[&replica]);
}

#[test]
fn wait_counts_the_relay_once_its_quorum_has_the_write() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let relay = Relay::start(&master.address(), "[acknowledge]\nreplicas = 2\n");
    let replicas = [Server::start(&program, &[]), Server::start(&program, &[])];
    for replica in &replicas {
        replica.follow(&relay.address());
    }
    load(&master, 1, 50);
    settle(&master, &[&replicas[0], &replicas[1]]);
    let mut client = master.client();
    client.ask(&["SET", "a", "1"]).unwrap();
    let began = Instant::now();
    assert_eq!(client.number(&["WAIT", "1", "5000"]).unwrap(), 1, "{}", relay.log());
    assert!(began.elapsed() < Duration::from_millis(900), "it is answered at once: {:?}", began.elapsed());

    // A replica that does not execute anything acknowledges nothing.
    replicas[1].signal("-STOP");
    client.ask(&["SET", "a", "2"]).unwrap();
    assert_eq!(client.number(&["WAIT", "1", "700"]).unwrap(), 0, "{}", relay.log());
    replicas[1].signal("-CONT");
    assert_eq!(client.number(&["WAIT", "1", "5000"]).unwrap(), 1, "{}", relay.log());

    // Asked itself, the relay counts its replicas.
    assert_eq!(relay.client().number(&["WAIT", "2", "5000"]).unwrap(), 2);
}

/// Keeps writing until the master's answer is as wanted for a whole second.
fn wait_until_writes_are(taken: bool, master: &Server, relay: &Relay) {
    let mut client = master.client();
    let mut since = Instant::now();
    wait_for(&format!("writes taken: {taken}, {}", relay.log()), Duration::from_secs(60), || {
        let answer = client.ask(&["SET", "probe", "1"]);
        if let Err(error) = &answer {
            assert!(error.to_string().contains("NOREPLICAS"), "{error}");
        }
        if answer.is_ok() != taken {
            since = Instant::now();
        }
        since.elapsed() > Duration::from_secs(1)
    });
}

const CAREFUL: [&str; 6] =
    ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "2", "--shutdown-timeout", "60"];

#[test]
fn a_master_that_wants_replicas_refuses_writes_while_none_lives_behind_the_relay() {
    let Some(program) = redis() else { return };
    // It drops replicas that it does not hear, and a relay that came back would count for alive each time.
    let master = Server::start(&program, &[&CAREFUL[..], &["--repl-timeout", "4"]].concat());
    let relay = Relay::start(&master.address(), "[limits]\ntimeout = '30s'\n");
    let refuses_for = |time: Duration| {
        let (mut client, began) = (master.client(), Instant::now());
        while began.elapsed() < time {
            let answer = client.ask(&["SET", "probe", "1"]);
            assert!(answer.is_err_and(|error| error.to_string().contains("NOREPLICAS")), "{}", relay.log());
            thread::sleep(Duration::from_millis(50));
        }
    };
    wait_for("the link", SILENCE, || relay.info("replication", "relay_link") == "held");
    refuses_for(Duration::from_secs(3));
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    wait_until_writes_are(true, &master, &relay);
    // One that is stopped keeps its connection and says nothing.
    replica.signal("-STOP");
    wait_until_writes_are(false, &master, &relay);
    refuses_for(Duration::from_secs(8));
    replica.signal("-CONT");
    wait_until_writes_are(true, &master, &relay);
    assert_same(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_full"), 1, "{}", relay.log());
    // Where it was chosen, the relay stands for itself.
    drop(replica);
    wait_until_writes_are(false, &master, &relay);
    let alone = Relay::start_alone(&master.address(), "");
    wait_until_writes_are(true, &master, &alone);
}

/// A replica that ends is gone for its master at once, whatever lag it allows, and so it is behind a relay.
#[test]
fn a_master_that_wants_replicas_is_left_with_the_last_of_them() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3600"];
    let master = Server::start(&program, &strict);
    let relay = Relay::start(&master.address(), "[limits]\nlinger = '3600s'\n");
    let mut replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    wait_until_writes_are(true, &master, &relay);
    replica.kill();
    // Long before the master takes the relay for gone by its silence, which is after 10 s here.
    let refuses = || master.client().ask(&["SET", "probe", "2"]).is_err();
    wait_for("the refusal", Duration::from_secs(5), refuses);
    // And it comes back with the next one.
    replica.restart();
    replica.follow(&relay.address());
    wait_until_writes_are(true, &master, &relay);
    assert_same(&master, &[&replica]);
}

/// The master of a chain is known to the last of its relays for what it is.
#[test]
fn a_master_that_wants_replicas_is_left_by_a_chain_with_the_last_of_them() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3600"];
    let master = Server::start(&program, &strict);
    let first = Relay::start(&master.address(), "[limits]\nlinger = '3600s'\n");
    let second = Relay::start(&first.address(), "[limits]\nlinger = '3600s'\n");
    let mut replica = Server::start(&program, &[]);
    replica.follow(&second.address());
    wait_until_writes_are(true, &master, &first);
    replica.kill();
    let refuses = || master.client().ask(&["SET", "probe", "2"]).is_err();
    wait_for("the refusal", Duration::from_secs(5), refuses);
}

/// What CONFIG SET has the master promise from now on holds for a relay that follows it already, too.
#[test]
fn a_master_that_wants_replicas_by_now_is_left_with_the_last_of_them() {
    let Some(program) = redis() else { return };
    for (quorum, beginning) in [(1, true), (1, false), (2, false)] {
        let master = Server::start(&program, &["--min-replicas-max-lag", "3600"]);
        let more = format!("[limits]\nlinger = '3600s'\n[acknowledge]\nreplicas = {quorum}\n");
        let relay = Relay::start(&master.address(), &more);
        let mut replicas: Vec<_> = (0..quorum).map(|_| Server::start(&program, &[])).collect();
        replicas.iter().for_each(|replica| replica.follow(&relay.address()));
        wait_until_online(&relay, quorum);
        if !beginning {
            load(&master, 1, 100);
            assert_same(&master, &replicas.iter().collect::<Vec<_>>());
        }
        let mut client = master.client();
        client.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
        // A master that has sent its file just now may not have noted yet that it is loaded.
        wait_for("a write while the quorum lives", SILENCE, || client.ask(&["SET", "probe", "1"]).is_ok());
        // The others of a quorum stay, which is not enough.
        replicas[0].kill();
        let killed = Instant::now();
        while client.ask(&["SET", "probe", "2"]).is_ok() {
            assert!(killed.elapsed() < Duration::from_secs(5), "writes are taken: {}", relay.log());
        }
        println!("quorum {quorum}: refused {:?} after the end of a replica", killed.elapsed());
        // It also may come once the replica is gone.
        client.ask(&["CONFIG", "SET", "min-replicas-to-write", "0"]).unwrap();
        replicas[0].restart();
        replicas[0].follow(&relay.address());
        wait_until_online(&relay, quorum);
        assert_same(&master, &replicas.iter().collect::<Vec<_>>());
        replicas[0].kill();
        wait_for("its leave", SILENCE, || {
            relay.number("replication", "connected_slaves") == quorum as u64 - 1
        });
        client.ask(&["CONFIG", "SET", "min-replicas-to-write", "1"]).unwrap();
        wait_for("the refusal", Duration::from_secs(5), || client.ask(&["SET", "probe", "3"]).is_err());
    }
}

/// What the relay says so that the stream behind a file begins is no sign of life.
#[test]
fn a_stopped_replica_does_not_live_by_the_beginning_of_the_stream() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-ping-replica-period", "3600"]);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    wait_until_online(&relay, 1);
    let mut client = master.client();
    for (key, value) in [("min-replicas-max-lag", "2"), ("min-replicas-to-write", "1")] {
        client.ask(&["CONFIG", "SET", key, value]).unwrap();
    }
    replica.signal("-STOP");
    // Directly it counts for 2 s more, and the master looks once a second.
    thread::sleep(Duration::from_secs(5));
    assert!(client.ask(&["SET", "probe", "1"]).is_err(), "{}", relay.log());
    replica.signal("-CONT");
    wait_until_writes_are(true, &master, &relay);
}

#[test]
fn a_quorum_of_two_is_not_one() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &CAREFUL);
    let relay = Relay::start(&master.address(), "[acknowledge]\nreplicas = 2\n");
    let replicas = [Server::start(&program, &[]), Server::start(&program, &[])];
    replicas[0].follow(&relay.address());
    wait_for("its arrival", SILENCE, || relay.number("replication", "connected_slaves") == 1);
    wait_until_writes_are(false, &master, &relay);
    replicas[1].follow(&relay.address());
    wait_until_writes_are(true, &master, &relay);
    for replica in &replicas {
        replica.signal("-STOP");
        wait_until_writes_are(false, &master, &relay);
        replica.signal("-CONT");
        wait_until_writes_are(true, &master, &relay);
    }
    assert_same(&master, &[&replicas[0], &replicas[1]]);
}

/// Where a master needs two replicas of its own, the end of one of them shows at once, and so it does for one that needs a
/// relay of two; also where its user may not see whether it does.
#[test]
fn a_quorum_of_two_ends_with_the_first_of_them() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3600"];
    for login in ["", "user = 'blind'\npassword = 'secret'\n"] {
        let master = Server::start(&program, &strict);
        let blind = ["ACL", "SETUSER", "blind", "on", ">secret", "+psync", "+replconf", "+ping"];
        master.client().ask(&blind).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let port = free_port();
        let text = format!(
            "[master]\naddress = '{}'\n{login}[listen]\naddress = '127.0.0.1:{port}'\n[spool]\ndirectory = '{}'\n\
             [limits]\nlinger = '3600s'\n[acknowledge]\nreplicas = 2\n",
            master.address(),
            folder.path().display()
        );
        let relay = Relay::of(folder, port, &text);
        let mut replicas = [Server::start(&program, &[]), Server::start(&program, &[])];
        for replica in &replicas {
            replica.follow(&relay.address());
        }
        wait_until_writes_are(true, &master, &relay);
        replicas[0].kill();
        let began = Instant::now();
        let refuses = || master.client().ask(&["SET", "probe", "2"]).is_err();
        wait_for("the refusal", Duration::from_secs(5), refuses);
        assert!(began.elapsed() < Duration::from_secs(1), "{:?}: {}", began.elapsed(), relay.log());
        replicas[0].restart();
        replicas[0].follow(&relay.address());
        wait_until_writes_are(true, &master, &relay);
        assert_same(&master, &[&replicas[0], &replicas[1]]);
        assert_eq!(relay.number("stats", "master_sync_full"), 1, "{}", relay.log());
    }
}

#[test]
fn a_chain_of_relays_lives_as_its_last_replica_does() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &CAREFUL);
    let first = Relay::start(&master.address(), "");
    let second = Relay::start(&first.address(), "");
    wait_for("the second link", SILENCE, || second.info("replication", "relay_link") == "held");
    wait_until_writes_are(false, &master, &first);
    let replica = Server::start(&program, &[]);
    replica.follow(&second.address());
    wait_until_writes_are(true, &master, &first);
    assert_same(&master, &[&replica]);
    assert_eq!(master.client().number(&["WAIT", "1", "20000"]).unwrap(), 1);
    replica.signal("-STOP");
    wait_until_writes_are(false, &master, &first);
    replica.signal("-CONT");
    wait_until_writes_are(true, &master, &first);
}

#[test]
fn a_master_that_shuts_down_waits_for_no_relay_without_replicas() {
    let Some(program) = redis() else { return };
    for had_one in [false, true] {
        let mut master = Server::start(&program, &["--shutdown-timeout", "60"]);
        let relay = Relay::start(&master.address(), "");
        if had_one {
            let replica = Server::start(&program, &[]);
            replica.follow(&relay.address());
            settle(&master, &[&replica]);
        }
        wait_for("the link", SILENCE, || relay.info("replication", "relay_link") == "held");
        load(&master, 1, 100);
        let began = Instant::now();
        master.terminate();
        assert!(began.elapsed() < Duration::from_secs(20), "{:?}: {}", began.elapsed(), relay.log());
    }
}

#[test]
fn a_master_that_shuts_down_waits_for_the_replicas_of_a_relay() {
    let Some(program) = redis() else { return };
    let mut master = Server::start(&program, &["--shutdown-timeout", "60"]);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&master, &[&replica]);
    wait_until_online(&relay, 1);
    replica.signal("-STOP");
    master.client().ask(&["SET", "last", "1"]).unwrap();
    let waker = thread::spawn(move || {
        thread::sleep(Duration::from_secs(2));
        replica.signal("-CONT");
        replica
    });
    let began = Instant::now();
    master.terminate();
    assert!(began.elapsed() > Duration::from_secs(1), "it waits for who has not got it: {}", master.log());
    assert!(began.elapsed() < Duration::from_secs(30), "and no longer: {}", master.log());
    let replica = waker.join().unwrap();
    assert_eq!(replica.client().text(&["GET", "last"]).unwrap(), "1");
}

#[test]
fn nothing_is_acknowledged_that_no_replica_has() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let mut writer = master.client();
    let mut relay = Relay::start(&master.address(), "[limits]\nlinger = '3600s'\n");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    writer.ask(&["SET", "before", "1"]).unwrap();
    assert_eq!(writer.number(&["WAIT", "1", "20000"]).unwrap(), 1, "{}", relay.log());
    // With a long `linger` it stays, and has nobody behind it.
    replica.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    wait_for("its leave", SILENCE, || relay.number("replication", "connected_slaves") == 0);
    writer.ask(&["SET", "meanwhile", "1"]).unwrap();
    assert_eq!(writer.number(&["WAIT", "1", "1500"]).unwrap(), 0, "{}", relay.log());
    assert_eq!(relay.info("replication", "relay_link"), "up");
    // Nor has a relay that was started again, whatever its file of the position says.
    thread::sleep(Duration::from_millis(1_200));
    relay.restart();
    assert_eq!(writer.number(&["WAIT", "1", "1500"]).unwrap(), 0, "{}", relay.log());
    replica.follow(&relay.address());
    assert_eq!(writer.number(&["WAIT", "1", "20000"]).unwrap(), 1, "{}", relay.log());
    assert_same(&master, &[&replica]);
}

/// A relay that its master never lets wait says what its replicas have all the same, or the master would take none for alive.
#[test]
fn a_relay_that_is_never_without_work_still_says_what_its_replicas_have() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let relay = Relay::start_alone(&listener.local_addr().unwrap().to_string(), "");
    let (mut link, _) = listener.accept().unwrap();
    let ends = Instant::now() + Duration::from_secs(6);
    let mut link_in = link.try_clone().unwrap();
    let (mut seen, mut piece) = (Vec::new(), [0; 4096]);
    let mut replicas = Vec::new();
    // The relay follows for its replicas, so these come first.
    for _ in 0..12 {
        let at = relay.address();
        replicas.push(thread::spawn(move || {
            let mut replica = TcpStream::connect(at).unwrap();
            replica
                .write_all(b"REPLCONF listening-port 7001 capa eof capa psync2\r\nPSYNC ? -1\r\n")
                .unwrap();
            let (mut piece, mut head, mut taken) = (vec![0; 1 << 20], Vec::new(), None);
            let mut said = Instant::now();
            while let Ok(count @ 1..) = replica.read(&mut piece) {
                taken = match taken {
                    None => {
                        head.extend_from_slice(&piece[..count]);
                        let file = b"REDIS0011";
                        let begins = head.windows(file.len()).position(|window| window == file);
                        begins.map(|at| head.len() - at - file.len())
                    }
                    Some(taken) => Some(taken + count),
                };
                if let Some(taken) = taken.filter(|_| said.elapsed() >= Duration::from_millis(200)) {
                    said = Instant::now();
                    let _ = replica.write_all(format!("REPLCONF ACK {taken}\r\n").as_bytes());
                }
            }
        }));
    }
    while let Ok(count @ 1..) = link.read(&mut piece) {
        seen.extend_from_slice(&piece[..count]);
        if String::from_utf8_lossy(&seen).contains("PSYNC") {
            break;
        }
        let _ = link.write_all(b"+PONG\r\n");
    }
    link.write_all([PLAYED, "REDIS0011"].concat().as_bytes()).unwrap();
    let command = format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$100000\r\n{}\r\n", "v".repeat(100_000));
    let flood = thread::spawn(move || {
        let mut sent = 0;
        while Instant::now() < ends && link.write_all(command.as_bytes()).is_ok() {
            sent += command.len();
        }
        sent
    });
    let (mut words, mut last, mut longest) = (0, Instant::now(), Duration::ZERO);
    link_in.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    while Instant::now() < ends {
        let count = link_in.read(&mut piece).unwrap();
        assert!(count > 0, "{}", relay.log());
        if String::from_utf8_lossy(&piece[..count]).contains("ACK") {
            (words, longest, last) = (words + 1, longest.max(last.elapsed()), Instant::now());
        }
    }
    // As much as its replicas say five times a second; a master with `min-replicas-max-lag 2` is content with less.
    assert!(longest < Duration::from_secs(2), "{longest:?} without one of {words} words");
    drop(relay);
    assert!(flood.join().unwrap() > 100 << 20);
    for replica in replicas {
        replica.join().unwrap();
    }
}

/// Who is away while the relay is replaced resumes as at the master itself.
#[test]
fn a_replica_that_was_away_at_a_restart_of_the_relay_resumes() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-backlog-size", "64mb"]);
    let mut relay = Relay::start(&master.address(), "");
    let replicas = [0, 1].map(|_| Server::start(&program, &[]));
    replicas.iter().for_each(|replica| replica.follow(&relay.address()));
    settle(&master, &replicas.each_ref());
    let files = master.number("stats", "sync_full");
    for ends_well in [true, false] {
        replicas[1].follow("127.0.0.1:1");
        load(&master, if ends_well { 2 } else { 3 }, 3_000);
        // The state is kept once a second.
        thread::sleep(Duration::from_millis(2_500));
        match ends_well {
            true => assert_eq!(relay.terminate(), Some(0)),
            false => relay.kill(),
        }
        relay.restart();
        replicas[1].follow(&relay.address());
        assert_same(&master, &replicas.each_ref());
        assert_eq!(master.number("stats", "sync_full"), files, "{}", relay.log());
    }
}

/// What the master does not write in the format that every replica loads is said with the remedy, and the remedy is one.
#[test]
fn fields_that_expire_are_why_a_valkey_master_ends_its_file() {
    let Some(program) = valkey() else { return };
    let master = Server::start(&program, &[]);
    let mut client = master.client();
    client.ask(&["HSET", "hash", "field", "value"]).unwrap();
    if client.ask(&["HPEXPIRE", "hash", "600000", "FIELDS", "1", "field"]).is_err() {
        let _ = writeln!(std::io::stderr(), "skipped: {} has no fields that expire", program.display());
        return;
    }
    let replica = Server::start(&program, &[]);
    let relay = Relay::start(&master.address(), "");
    replica.follow(&relay.address());
    wait_for("a file that is none", SILENCE, || {
        relay.info("replication", "relay_file_error").contains("HEXPIRE")
    });
    assert!(relay.log().contains("set `master.announce_version` to its own version"), "{}", relay.log());
    let version = master.info("server", "valkey_version");
    let (folder, port) = (tempfile::tempdir().unwrap(), free_port());
    let text = format!(
        "[master]\naddress = '{}'\nannounce_version = '{version}'\n[listen]\naddress = '127.0.0.1:{port}'\n",
        master.address()
    );
    let announces = Relay::of(folder, port, &text);
    replica.follow(&announces.address());
    assert_same(&master, &[&replica]);
}

/// A master takes no acknowledgement back, so what one that is gone had is not what another has.
#[test]
fn what_a_replica_had_that_is_gone_confirms_nothing() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let relay = Relay::start(&master.address(), "[limits]\nlinger = '3600s'\n");
    let mut replicas = [0, 1].map(|_| Server::start(&program, &[]));
    replicas.iter().for_each(|replica| replica.follow(&relay.address()));
    settle(&master, &replicas.each_ref());
    let mut writer = master.client();
    let wait = |writer: &mut RedisClient, most: &str| writer.number(&["WAIT", "1", most]).unwrap();
    assert_eq!(wait(&mut writer, "20000"), 1);
    replicas[1].signal("-STOP");
    writer.ask(&["SET", "one", "has it"]).unwrap();
    assert_eq!(wait(&mut writer, "20000"), 1, "{}", relay.log());
    // Long enough for the other to have spoken if it could.
    thread::sleep(Duration::from_millis(1_500));
    replicas[0].kill();
    wait_for("its leave", SILENCE, || relay.number("replication", "connected_slaves") == 1);
    wait_for("the stream", SILENCE, || relay.info("replication", "relay_link") == "up");
    assert_eq!(wait(&mut writer, "500"), 0, "{}", relay.log());
    replicas[1].signal("-CONT");
    assert_eq!(wait(&mut writer, "20000"), 1, "{}", relay.log());
    // With the last one goes all of it, however long the relay stays.
    replicas[1].kill();
    wait_for("its leave", SILENCE, || relay.number("replication", "connected_slaves") == 0);
    wait_for("the stream", SILENCE, || relay.info("replication", "relay_link") == "up");
    assert_eq!(wait(&mut writer, "500"), 0, "{}", relay.log());
    assert_eq!(master.number("stats", "sync_full"), 1, "it goes on from where it was");
}

/// What has come from the master is read before a link begins anew: its backlog may have it no more, and then those that are
/// left would need a file.
#[test]
fn a_link_that_begins_anew_loses_nothing_that_has_come() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-backlog-size", "16kb"]);
    let relay = Relay::start(&master.address(), "");
    let mut near = Server::start(&program, &[]);
    near.follow(&relay.address());
    settle(&master, &[&near]);
    // One that lives, and has no more than its file.
    let (far, answer) = play_replica(&relay, None);
    let offset = answer.split_whitespace().nth(2).expect("an offset").to_string();
    let (mut from, mut to) = (far.get_ref().try_clone().unwrap(), far.into_inner());
    let stop = Arc::new(AtomicBool::new(false));
    let (reads, speaks) = (stop.clone(), stop.clone());
    let reading = thread::spawn(move || {
        let mut piece = vec![0; 1 << 16];
        while !reads.load(Ordering::SeqCst) && from.read(&mut piece).is_ok_and(|count| count > 0) {}
    });
    let speaking = thread::spawn(move || {
        let word = format!("REPLCONF ACK {offset}\r\n");
        while !speaks.load(Ordering::SeqCst) && to.write_all(word.as_bytes()).is_ok() {
            thread::sleep(Duration::from_millis(50));
        }
    });
    let mut client = master.client();
    client.ask(&["SET", "key", "value"]).unwrap();
    assert_eq!(client.number(&["WAIT", "1", "5000"]).unwrap(), 1);
    thread::sleep(Duration::from_millis(500));
    relay.signal("-STOP");
    let value = "v".repeat(64 << 10);
    for _ in 0..20 {
        client.ask(&["SET", "large", &value]).unwrap();
    }
    near.kill();
    thread::sleep(Duration::from_millis(200));
    relay.signal("-CONT");
    wait_for("the new link", SILENCE, || {
        relay.log().contains("the link begins anew") && relay.info("replication", "relay_link") == "up"
    });
    assert_eq!(
        (master.number("stats", "sync_full"), master.number("stats", "sync_partial_ok")),
        (1, 1),
        "{}",
        relay.log()
    );
    assert_eq!(client.number(&["WAIT", "1", "100"]).unwrap(), 0);
    stop.store(true, Ordering::SeqCst);
    drop(relay);
    reading.join().unwrap();
    speaking.join().unwrap();
}

#[test]
fn a_master_that_wants_replicas_is_left_where_the_last_one_hangs() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--min-replicas-to-write", "1"]);
    let relay = Relay::start(&master.address(), "");
    let mut replicas = [0, 1].map(|_| Server::start(&program, &[]));
    replicas.iter().for_each(|replica| replica.follow(&relay.address()));
    wait_until_writes_are(true, &master, &relay);
    replicas[1].signal("-STOP");
    thread::sleep(Duration::from_secs(3));
    wait_until_writes_are(true, &master, &relay);
    replicas[0].kill();
    let began = Instant::now();
    wait_until_writes_are(false, &master, &relay);
    // The default of `min-replicas-max-lag` is 10 s.
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}: {}", began.elapsed(), relay.log());
    replicas[1].signal("-CONT");
    wait_until_writes_are(true, &master, &relay);
}

/// Where the master cannot write its file nobody can come to live, and it counts nobody for the tries.
#[test]
fn a_master_that_wants_replicas_takes_no_writes_for_a_file_that_it_cannot_write() {
    let Some(program) = redis() else { return };
    let folder = tempfile::tempdir().unwrap();
    let gone = folder.path().join("gone");
    fs::create_dir(&gone).unwrap();
    let master = Server::start(&program, &["--repl-diskless-sync", "no", "--dir", gone.to_str().unwrap()]);
    load(&master, 1, 300);
    for (name, value) in [("min-replicas-to-write", "1"), ("stop-writes-on-bgsave-error", "no")] {
        master.client().ask(&["CONFIG", "SET", name, value]).unwrap();
    }
    // It has nowhere to write a file from here on.
    fs::remove_dir_all(&gone).unwrap();
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    let (began, mut taken, mut writer) = (Instant::now(), Vec::new(), master.client());
    while began.elapsed() < Duration::from_secs(15) {
        if writer.ask(&["SET", "k", "v"]).is_ok() {
            taken.push(began.elapsed());
        }
        thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(relay.number("replication", "connected_slaves"), 1, "{}", relay.log());
    let why = relay.info("replication", "relay_file_error");
    assert!(why.contains("its log has the reason"), "{why}");
    // Each of three tries may be one in which the master takes the relay for a replica; from there on nobody is.
    assert!(taken.last().is_none_or(|last| last.as_secs() < 8), "{taken:?}: {}", relay.log());
}

/// Who is made to wait for the whole file, since it takes none of unknown length, is not taken for gone meanwhile.
#[test]
fn a_replica_that_waits_for_a_whole_file_is_not_silent() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-diskless-sync", "yes", "--repl-diskless-sync-delay", "0"]);
    // The file takes 20 ms for each key, and is sent as it is written: keys that come one by one are no silence.
    let value = "v".repeat(40_000);
    for key in 0..200 {
        master.client().ask(&["SET", &key.to_string(), &value]).unwrap();
    }
    for (name, value) in [("rdbcompression", "no"), ("rdb-key-save-delay", "20000")] {
        master.client().ask(&["CONFIG", "SET", name, value]).unwrap();
    }
    let relay = Relay::start(&master.address(), "[limits]\ntimeout = '2s'\n");
    let (mut replica, answer) = play_replica(&relay, None);
    assert!(answer.starts_with("+FULLRESYNC"), "{answer}");
    let (began, mut line) = (Instant::now(), String::new());
    while line.trim().is_empty() {
        line.clear();
        assert!(replica.read_line(&mut line).unwrap() > 0, "after {:?}: {}", began.elapsed(), relay.log());
    }
    assert!(began.elapsed() > Duration::from_secs(3), "it waited for longer than the timeout");
    assert!(line.strip_prefix('$').is_some_and(|length| length.trim().parse::<u64>().is_ok()), "{line}");
}

#[test]
fn what_was_asked_before_wait_is_answered_before_it_ends() {
    let relay = Relay::start_alone(&play_master(PLAYED.into()), "");
    let mut client = TcpStream::connect(relay.address()).unwrap();
    client.set_read_timeout(Some(SILENCE)).unwrap();
    let began = Instant::now();
    client.write_all(b"PING\r\nWAIT 1 3000\r\n").unwrap();
    let mut client = BufReader::new(client);
    let mut line = String::new();
    client.read_line(&mut line).unwrap();
    assert!(line == "+PONG\r\n" && began.elapsed() < Duration::from_secs(2), "{line} {:?}", began.elapsed());
    line.clear();
    client.read_line(&mut line).unwrap();
    assert_eq!(line, ":0\r\n");
}

/// Of servers that are older than 7.2 and have no WAITAOF, the relay passes on nothing of it.
#[test]
fn waitaof_is_answered_for_replicas_that_have_it_on_disk() {
    let Some(program) = valkey() else { return };
    let master = Server::start(&program, &["--appendonly", "yes"]);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    load(&master, 1, 50);
    settle(&master, &[&replica]);
    let mut client = master.client();
    let on_disk = |client: &mut RedisClient, most: &str| {
        client.ask(&["SET", "a", "1"]).unwrap();
        let told = client.ask(&["WAITAOF", "0", "1", most]).unwrap();
        told.elements().unwrap()[1].clone()
    };
    assert_eq!(client.number(&["WAIT", "1", "20000"]).unwrap(), 1, "{}", relay.log());
    assert_eq!(on_disk(&mut client, "1500"), Value::Integer(0), "it keeps no file: {}", relay.log());
    replica.client().ask(&["CONFIG", "SET", "appendonly", "yes"]).unwrap();
    assert_eq!(on_disk(&mut client, "20000"), Value::Integer(1), "{}", relay.log());
    replica.signal("-STOP");
    assert_eq!(on_disk(&mut client, "1500"), Value::Integer(0), "{}", relay.log());
    replica.signal("-CONT");
    assert_eq!(on_disk(&mut client, "20000"), Value::Integer(1), "{}", relay.log());
}

/// A replica that keeps a file is gone, and one that keeps none goes on while the master is written to all the time.
#[test]
fn waitaof_counts_no_disk_that_is_gone_while_others_go_on() {
    let Some(program) = valkey() else { return };
    let master = Server::start(&program, &["--appendonly", "yes"]);
    let relay = Relay::start(&master.address(), "");
    let mut kept = Server::start(&program, &["--appendonly", "yes"]);
    let other = Server::start(&program, &[]);
    for replica in [&kept, &other] {
        replica.follow(&relay.address());
    }
    settle(&master, &[&kept, &other]);
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, address) = (stop.clone(), master.address());
    let writing = thread::spawn(move || {
        let mut client = RedisClient::connect(&address, SILENCE).unwrap();
        while !stopped.load(Ordering::SeqCst) {
            client.ask(&["SET", "b", "1"]).unwrap();
            thread::sleep(Duration::from_millis(5));
        }
    });
    let mut client = master.client();
    client.ask(&["SET", "a", "1"]).unwrap();
    let mut on_disk = |most: &str| {
        let told = client.ask(&["WAITAOF", "0", "1", most]).unwrap();
        told.elements().unwrap()[1].clone()
    };
    assert_eq!(on_disk("20000"), Value::Integer(1), "{}", relay.log());
    thread::sleep(Duration::from_millis(1_500));
    kept.kill();
    // One that has not spoken since the master was told has a second and its lateness to do so.
    wait_for("what was on its disk to be taken back", Duration::from_secs(5), || {
        on_disk("50") == Value::Integer(0)
    });
    stop.store(true, Ordering::SeqCst);
    writing.join().unwrap();
}

#[test]
fn a_replica_that_loads_while_the_relay_is_killed_resumes() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-backlog-size", "64mb"]);
    master.client().ask(&["DEBUG", "POPULATE", "3000", "key", "64"]).unwrap();
    let mut relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &["--key-load-delay", "1000", "--repl-timeout", "60"]);
    replica.follow(&relay.address());
    wait_for("the load", SILENCE, || replica.log().contains("Loading DB in memory"));
    // By the time the position is written, the stream is further than the replica's socket holds.
    let value = "v".repeat(64 << 10);
    let mut client = master.client();
    for index in 0..320 {
        client.ask(&["SET", &format!("during{}", index % 8), &value]).unwrap();
    }
    thread::sleep(Duration::from_millis(1_200));
    relay.kill();
    assert!(!replica.log().contains("Done loading"), "the load outlasts the relay: {}", replica.log());
    load(&master, 2, 300);
    relay.restart();
    assert_same(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_full"), 0, "{}", relay.log());
    assert_eq!(master.number("stats", "sync_full"), 1, "{}", relay.log());
}

#[test]
fn relays_can_be_chained() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 300);
    let first = Relay::start(&master.address(), "");
    let mut second = Relay::start(&first.address(), "");
    let near = Server::start(&program, &[]);
    let far = Server::start(&program, &[]);
    near.follow(&first.address());
    far.follow(&second.address());
    load(&master, 2, 300);
    assert_same(&master, &[&near, &far]);
    let mut client = master.client();
    client.ask(&["SET", "a", "1"]).unwrap();
    assert_eq!(client.number(&["WAIT", "1", "5000"]).unwrap(), 1);
    thread::sleep(Duration::from_millis(1_200));
    second.restart();
    load(&master, 3, 300);
    assert_same(&master, &[&near, &far]);
    assert_eq!(first.number("stats", "sync_full"), 2, "{}", first.log());
}

#[test]
fn a_promoted_replica_is_followed() {
    let Some(program) = redis() else { return };
    let mut old = Server::start(&program, &[]);
    load(&old, 1, 300);
    let new = Server::start(&program, &[]);
    new.follow(&old.address());
    let link = Proxy::to(&old.address());
    let relay = Relay::start(&link.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&old, &[&new, &replica]);
    load(&old, 2, 300);
    settle(&old, &[&new, &replica]);

    new.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    link.lead_to(&new.address());
    old.kill();
    link.cut();
    load(&new, 3, 300);
    assert_same(&new, &[&replica]);
    assert_eq!(relay.number("stats", "master_sync_full"), 1, "{}", relay.log());
    assert_eq!(relay.number("stats", "sync_full"), 1, "{}", relay.log());
    let second = relay.info("replication", "master_replid2");
    assert_eq!(second, new.info("replication", "master_replid2"), "{}", relay.log());
    // A second full synchronisation comes from the new master.
    let fresh = Server::start(&program, &[]);
    fresh.follow(&relay.address());
    load(&new, 4, 300);
    assert_same(&new, &[&replica, &fresh]);
}

#[test]
fn a_master_that_was_left_does_not_get_the_replicas_back() {
    let Some(program) = redis() else { return };
    let old = Server::start(&program, &[]);
    load(&old, 1, 300);
    let new = Server::start(&program, &[]);
    new.follow(&old.address());
    let link = Proxy::to(&old.address());
    // REPLICAOF means the master that it leads to, and none of those that the same name leads to later.
    let mut relay = Relay::start("127.0.0.1:1", "");
    let lead = |relay: &Relay| {
        relay.client().ask(&["REPLICAOF", "127.0.0.1", &link.port.to_string()]).unwrap();
    };
    lead(&relay);
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&old, &[&new, &replica]);
    lead(&relay);
    new.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    link.lead_to(&new.address());
    link.cut();
    load(&new, 2, 300);
    assert_same(&new, &[&replica]);
    // A name that leads back, as after a restart of what it was moved by; the old master knows nothing of its end.
    load(&old, 3, 300);
    link.lead_to(&old.address());
    link.cut();
    let refused = || relay.log().matches("is one that this relay has left").count();
    wait_for("the refusal", SILENCE, || refused() == 1);
    let held = contents(&replica);
    relay.restart();
    let refused = || relay.log().matches("is one that this relay has left").count();
    wait_for("the refusal after a restart", SILENCE, || refused() == 2);
    assert_eq!(contents(&replica), held, "{}", relay.log());
    assert_eq!(
        old.number("stats", "sync_full"),
        2,
        "the old master writes no file for nothing: {}",
        old.log()
    );
    link.lead_to(&new.address());
    link.cut();
    load(&new, 4, 300);
    assert_same(&new, &[&replica]);
    // Who means it says so, and it is remembered before the answer.
    link.lead_to(&old.address());
    link.refuse(true);
    link.cut();
    wait_for("the end of the link", SILENCE, || relay.info("replication", "relay_link") == "down");
    lead(&relay);
    relay.restart();
    link.refuse(false);
    assert_same(&old, &[&replica]);
    // That was meant once.
    let state = relay.folder.path().join("state");
    wait_for("the state", SILENCE, || !fs::read_to_string(&state).unwrap().contains("meant"));
}

/// A master that was set up anew after a fail-over, as from a backup, does not say whose history it goes on from.
#[test]
fn a_master_that_was_left_for_an_unrelated_one_does_not_get_the_replicas_back() {
    let Some(program) = redis() else { return };
    let (old, new) = (Server::start(&program, &[]), Server::start(&program, &[]));
    load(&old, 1, 300);
    load(&new, 2, 300);
    let link = Proxy::to(&old.address());
    let mut relay = Relay::start(&link.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    assert_same(&old, &[&replica]);
    link.lead_to(&new.address());
    link.cut();
    assert_same(&new, &[&replica]);
    for restarted in [false, true] {
        if restarted {
            relay.restart();
            // A connection that is only being made is not among those that are cut.
            wait_for("the link", SILENCE, || relay.info("replication", "relay_link") == "up");
        }
        link.lead_to(&old.address());
        link.cut();
        let refused = || relay.log().matches("is one that this relay has left").count();
        wait_for("the refusal", SILENCE, || refused() == 1 + usize::from(restarted));
        link.lead_to(&new.address());
        link.cut();
        load(&new, 3, 100);
        assert_same(&new, &[&replica]);
    }
}

#[test]
fn a_relay_does_not_follow_itself() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 100);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    assert_same(&master, &[&replica]);
    let mut client = relay.client();
    let port = relay.port.to_string();
    for host in ["127.0.0.1", "localhost", "0.0.0.0", "::ffff:127.0.0.1"] {
        let error = client.ask(&["REPLICAOF", host, &port]).unwrap_err().to_string();
        assert!(error.contains("is this relay itself"), "{host}: {error}");
    }
    load(&master, 2, 100);
    assert_same(&master, &[&replica]);
    assert_eq!(relay.info("replication", "relay_link"), "up");
    // By a way that no address shows.
    let around = Proxy::to(&relay.address());
    client.ask(&["REPLICAOF", "127.0.0.1", &around.port.to_string()]).unwrap();
    wait_for("the word on it", SILENCE, || relay.log().contains("it is this relay itself; name the server"));
    client.ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]).unwrap();
    load(&master, 3, 100);
    assert_same(&master, &[&replica]);
    assert_eq!(master.number("stats", "sync_full"), 1, "{}", relay.log());
}

/// A ring has no master, and each relay of it would wait for the others without a word.
#[test]
fn relays_do_not_follow_each_other_in_a_ring() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 100);
    let error = |relay: &Relay| relay.info("replication", "relay_link_error");
    for length in [2, 3] {
        let mut relays = vec![Relay::start(&master.address(), "")];
        for _ in 1..length {
            relays.push(Relay::start(&relays[relays.len() - 1].address(), ""));
        }
        let (first, last) = (&relays[0], &relays[length - 1]);
        let replica = Server::start(&program, &[]);
        replica.follow(&last.address());
        assert_same(&master, &[&replica]);
        let offset = replica.info("replication", "slave_repl_offset");
        first.client().ask(&["REPLICAOF", "127.0.0.1", &last.port.to_string()]).unwrap();
        let ring = format!("it follows this relay: the {length} relays of a ring have no master");
        let said = || relays.iter().filter(|relay| error(relay).contains(&ring)).count();
        wait_for("the word on the ring", SILENCE, || said() > 0);
        assert!(relays.iter().any(|relay| relay.log().contains(&ring)));
        thread::sleep(Duration::from_secs(3));
        assert!(said() > 0, "it is said for as long as it is so");
        assert_eq!(
            replica.info("replication", "slave_repl_offset"),
            offset,
            "nothing came, and nothing is lost"
        );
        // Any of them may be led out of it.
        let out = &relays[length / 2];
        out.client().ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]).unwrap();
        load(&master, 2, 100);
        assert_same(&master, &[&replica]);
        assert_eq!(error(last), "");
        let files = replica.log().matches("Full resync from master").count();
        assert_eq!(files, 1, "{}", replica.log());
        // The other way round is no ring: who was the last is the first, and is not refused for what was so before.
        last.client().ask(&["REPLICAOF", "127.0.0.1", &master.port.to_string()]).unwrap();
        first.client().ask(&["REPLICAOF", "127.0.0.1", &last.port.to_string()]).unwrap();
        let other = Server::start(&program, &[]);
        other.follow(&first.address());
        load(&master, 3, 100);
        assert_same(&master, &[&replica, &other]);
    }
}

/// Relays that were configured as a ring say so without a replica, too.
#[test]
fn a_ring_of_relays_is_said_at_its_start() {
    let ports = [free_port(), free_port(), free_port()];
    let relays: Vec<Relay> = (0..3)
        .map(|at| {
            let folder = tempfile::tempdir().unwrap();
            let (own, above) = (ports[at], ports[(at + 1) % 3]);
            let text = format!(
                "master = {{ address = '127.0.0.1:{above}' }}\nlisten = {{ address = '127.0.0.1:{own}' }}\n\
                 spool = {{ directory = '{}' }}\n",
                folder.path().display()
            );
            Relay::of(folder, own, &text)
        })
        .collect();
    let said = |relay: &Relay| relay.info("replication", "relay_link_error");
    wait_for("the word on the ring", SILENCE, || {
        relays.iter().any(|relay| said(relay).contains("the 3 relays of a ring have no master"))
    });
}

#[test]
fn the_first_of_three_masters_does_not_get_the_replicas_back() {
    let Some(program) = redis() else { return };
    let masters = [(); 3].map(|()| Server::start(&program, &[]));
    load(&masters[0], 1, 300);
    masters[1].follow(&masters[0].address());
    masters[2].follow(&masters[1].address());
    let link = Proxy::to(&masters[0].address());
    let mut relay = Relay::start(&link.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&masters[0], &[&masters[1], &masters[2], &replica]);
    for next in 1..3 {
        masters[next].client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
        link.lead_to(&masters[next].address());
        link.cut();
        load(&masters[next], 2, 100);
        settle(
            &masters[next],
            &[&masters[next..][usize::from(next == 1)], &replica][usize::from(next == 2)..],
        );
    }
    relay.restart();
    settle(&masters[2], &[&replica]);
    let held = contents(&replica);
    for left in [0, 1] {
        link.lead_to(&masters[left].address());
        link.cut();
        let id = masters[left].info("replication", "master_replid");
        let refused = format!("its history {id} is one that this relay has left");
        wait_for("the refusal", SILENCE, || relay.log().contains(&refused));
    }
    assert_eq!(contents(&replica), held, "{}", relay.log());
}

#[test]
fn replicas_of_the_old_history_resume_at_a_relay_of_the_promoted_master() {
    let Some(program) = redis() else { return };
    let mut old = Server::start(&program, &[]);
    load(&old, 1, 300);
    let [new, early, late] = [1, 2, 3].map(|_| Server::start(&program, &[]));
    let link = Proxy::to(&old.address());
    early.follow(&link.address());
    for replica in [&new, &late] {
        replica.follow(&old.address());
    }
    settle(&old, &[&new, &early, &late]);
    // One is further behind than the other.
    link.refuse(true);
    link.cut();
    load(&old, 2, 100);
    settle(&old, &[&new, &late]);
    old.kill();
    new.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
    load(&new, 3, 300);
    let relay = Relay::start(&new.address(), "");
    early.follow(&relay.address());
    wait_for("the first", SILENCE, || relay.number("stats", "sync_partial_ok") > 0);
    late.follow(&relay.address());
    assert_same(&new, &[&early, &late]);
    let files = [relay.number("stats", "sync_full"), new.number("stats", "sync_full")];
    assert_eq!((files, relay.number("stats", "sync_partial_ok")), ([0, 0], 2), "{}", relay.log());
}

#[test]
fn replicaof_points_the_relay_elsewhere_where_it_may() {
    let Some(program) = redis() else { return };
    let one = Server::start(&program, &[]);
    let two = Server::start(&program, &[]);
    load(&one, 1, 100);
    load(&two, 2, 100);
    let relay = Relay::start(&one.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    assert_same(&one, &[&replica]);
    relay.client().ask(&["REPLICAOF", "127.0.0.1", &two.port.to_string()]).unwrap();
    assert_same(&two, &[&replica]);
    assert!(!relay.log().contains("no link to the master"), "{}", relay.log());
    let refused = relay.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap_err().to_string();
    assert!(refused.contains("cannot be a master"), "{refused}");
    let again = relay.client().text(&["REPLICAOF", "127.0.0.1", &two.port.to_string()]).unwrap();
    assert_eq!(again, "OK Already connected to specified master");
    assert_eq!(relay.log().matches("the master is ").count(), 1, "{}", relay.log());
    let folder = tempfile::tempdir().unwrap();
    let lead = |text: &str| {
        let port = free_port();
        let listen =
            format!("[master]\naddress = '{}'\n[listen]\naddress = '127.0.0.1:{port}'\n", one.address());
        let relay = Relay::of(tempfile::tempdir().unwrap(), port, &(listen + text));
        relay.client().ask(&["REPLICAOF", "127.0.0.1", "1"]).unwrap_err().to_string()
    };
    let state = folder.path().join("never-written");
    let refused = lead(&format!("follow_replicaof = false\n[spool]\nstate_file = '{}'\n", state.display()));
    assert!(refused.contains("follow_replicaof"), "{refused}");
    let refused = lead("");
    assert!(refused.contains("could not remember it; set `spool.state_file`"), "{refused}");
}

#[test]
fn a_master_that_replicaof_named_is_remembered_before_the_answer() {
    let Some(program) = redis() else { return };
    let one = Server::start(&program, &[]);
    let two = Server::start(&program, &[]);
    load(&one, 1, 100);
    load(&two, 2, 100);
    let mut relay = Relay::start(&one.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    assert_same(&one, &[&replica]);
    let lead = |relay: &Relay, server: &Server| {
        relay.client().ask(&["REPLICAOF", "127.0.0.1", &server.port.to_string()]).map(|_| ())
    };
    lead(&relay, &two).unwrap();
    // Killed with the answer.
    relay.kill();
    load(&one, 3, 100);
    relay.restart();
    assert_eq!(relay.info("replication", "master_port"), two.port.to_string());
    assert!(relay.log().contains("REPLICAOF has pointed this relay at"), "{}", relay.log());
    assert_same(&two, &[&replica]);
    // What cannot be remembered is not done.
    let state = relay.folder.path().join("state");
    fs::remove_file(&state).unwrap();
    fs::create_dir(&state).unwrap();
    let refused = lead(&relay, &one).unwrap_err().to_string();
    assert!(refused.contains("cannot remember it and goes on as before"), "{refused}");
    assert_eq!(relay.info("replication", "master_port"), two.port.to_string());
    load(&two, 4, 100);
    assert_same(&two, &[&replica]);
    fs::remove_dir(&state).unwrap();
    // Back at the master of its configuration, there is nothing to remember.
    lead(&relay, &one).unwrap();
    relay.restart();
    assert_eq!(relay.log().matches("REPLICAOF has pointed this relay at").count(), 1, "{}", relay.log());
    assert_same(&one, &[&replica]);
}

#[test]
fn what_the_relay_does_not_do_is_an_error() {
    let relay = Relay::start(&play_master(Vec::new()), "");
    let mut client = relay.client();
    for command in [
        "CONFIG REWRITE",
        "CONFIG SET maxmemory 1",
        "CONFIG GET save",
        "CONFIG RESETSTAT",
        "COMMAND",
        "COMMAND DOCS",
        "CLIENT SETINFO lib-name x",
        "CLIENT LIST",
        "CLIENT KILL TYPE normal",
        "CLIENT NO-EVICT on",
        "ACL LIST",
        "MULTI",
        "EXEC",
        "SELECT 1",
        "WAITAOF 0 1 10",
        "SAVE",
        "FAILOVER",
        "SHUTDOWN",
        "CLUSTER INFO",
        "SET a 1",
        "DBSIZE",
        "PSUBSCRIBE *",
        "REPLCONF no-such-option 1",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        assert!(client.ask(&words).is_err(), "{command}");
    }
    assert_eq!(client.text(&["PING"]).unwrap(), "PONG", "it goes on");
}

/// The hook that Sentinel calls where it does not know the relay.
#[test]
fn the_packaged_hook_of_sentinel_leads_the_relay() {
    let (Some(program), Some(cli)) = (redis(), tool("redis-cli", "redis-tools")) else { return };
    let one = Server::start(&program, &[]);
    let two = Server::start(&program, &[]);
    load(&one, 1, 100);
    load(&two, 2, 100);
    let relay = Relay::start(&one.address(), "[[user]]\nname = 'sentinel'\npassword = 'secret'\n");
    let hook = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/offpath-relay-sentinel");
    let call = |password: &str| {
        let mut path = vec![cli.parent().unwrap().to_path_buf()];
        path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap()));
        let output = Command::new(&hook)
            .env("PATH", std::env::join_paths(path).unwrap())
            .env("RELAY", relay.address())
            .env("REDISCLI_AUTH", password)
            .env("RELAY_USER", "sentinel")
            .args(["main", "leader", "start", "127.0.0.1", &one.port.to_string()])
            .args(["127.0.0.1", &two.port.to_string()])
            .output()
            .unwrap();
        output.status.code()
    };
    assert_eq!(call("wrong"), Some(1), "Sentinel calls it again");
    assert_eq!(relay_master(&relay), one.port.to_string());
    assert_eq!(call("secret"), Some(0));
    assert_eq!(relay_master(&relay), two.port.to_string());
    let replica = Server::start(&program, &["--masteruser", "sentinel", "--masterauth", "secret"]);
    replica.follow(&relay.address());
    assert_same(&two, &[&replica]);
    assert_eq!(call("secret"), Some(0), "it follows that one already");
}

/// The port of the master that a relay with the user `sentinel` follows.
fn relay_master(relay: &Relay) -> String {
    let mut client = relay.client();
    client.login(Some("sentinel"), "secret").unwrap();
    client.info("replication", "master_port").unwrap().unwrap_or_default()
}

/// A Sentinel that is ended with the test.
struct Sentinel(Child);

impl Drop for Sentinel {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn sentinel_promotes_another_replica_and_the_relay_follows_it() {
    let Some(program) = redis() else { return };
    let mut master = Server::start(&program, &[]);
    load(&master, 1, 300);
    // Sentinel sees the replicas of the master alone, and promotes no relay.
    let candidate = Server::start(&program, &[]);
    candidate.follow(&master.address());
    let relay = Relay::start(&master.address(), "");
    let replicas = [Server::start(&program, &[]), Server::start(&program, &[])];
    for replica in &replicas {
        replica.follow(&relay.address());
    }
    settle(&master, &[&candidate, &replicas[0], &replicas[1]]);
    load(&master, 2, 300);
    settle(&master, &[&candidate, &replicas[0], &replicas[1]]);

    let folder = tempfile::tempdir().unwrap();
    let (file, sentinel_port) = (folder.path().join("sentinel.conf"), free_port());
    let text = format!(
        "port {sentinel_port}\nbind 127.0.0.1\ndir {}\nsentinel monitor main 127.0.0.1 {} 1\n\
         sentinel down-after-milliseconds main 1500\nsentinel failover-timeout main 20000\n",
        folder.path().display(),
        master.port
    );
    fs::write(&file, text).unwrap();
    let log = fs::File::create(folder.path().join("log")).unwrap();
    let child = Command::new(&program).arg(&file).arg("--sentinel").stdout(log).spawn().unwrap();
    let _sentinel = Sentinel(child);
    let said = || fs::read_to_string(folder.path().join("log")).unwrap_or_default();
    wait_for("the sight of both replicas", SILENCE, || said().matches("+slave slave").count() == 2);

    master.kill();
    let promoted = candidate.port.to_string();
    let began = Instant::now();
    wait_for("the fail-over", Duration::from_secs(60), || {
        relay.info("replication", "master_port") == promoted
            && relay.info("replication", "master_link_status") == "up"
    });
    println!("the relay followed {:?} after the crash", began.elapsed());
    assert_eq!(candidate.info("replication", "role"), "master", "{}", said());
    load(&candidate, 3, 300);
    assert_same(&candidate, &[&replicas[0], &replicas[1]]);
    // One file when it began: the second name of the history carried everybody over.
    assert_eq!(relay.number("stats", "master_sync_full"), 1, "{}", relay.log());
    assert_eq!(relay.number("stats", "sync_full"), 2, "{}", relay.log());
    wait_for("the end of the fail-over", Duration::from_secs(60), || said().contains("+failover-end "));
    assert!(said().contains(&format!("+slave-reconf-done slave {}", relay.address())), "{}", said());
}

#[test]
fn sixteen_replicas_follow_one_stream() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 300);
    let relay = Relay::start(&master.address(), "[limits]\nbacklog = '8MiB'\n");
    let replicas: Vec<Server> = (0..16).map(|_| Server::start(&program, &[])).collect();
    for replica in &replicas {
        replica.follow(&relay.address());
    }
    load(&master, 2, 1_000);
    assert_same(&master, &replicas.iter().collect::<Vec<_>>());
    assert_eq!(relay.number("replication", "connected_slaves"), 16);
    assert_eq!(master.number("replication", "connected_slaves"), 1);
    assert_eq!(master.number("stats", "sync_full"), 1, "{}", relay.log());
    assert!(peak_memory(relay.pid()) < (8 << 20) + (64 << 20));
}

#[test]
fn a_stalled_replica_delays_no_other_and_is_dropped() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 50);
    let relay = Relay::start(&master.address(), "[limits]\nbacklog = '4MiB'\ntimeout = '30s'\n");
    let link = Proxy::to(&relay.address());
    let stalled = Server::start(&program, &[]);
    let good = Server::start(&program, &[]);
    stalled.follow(&link.address());
    good.follow(&relay.address());
    settle(&master, &[&stalled, &good]);
    // One that loads gets what it misses from disk; one that follows and stalls is dropped.
    wait_until_online(&relay, 2);
    link.stall(true);
    let mut client = master.client();
    let value = "v".repeat(256 << 10);
    // More than the relay's window and all socket buffers between.
    for index in 0..160 {
        client.ask(&["SET", &format!("big{}", index % 8), &value]).unwrap();
        if index % 4 == 3 {
            let began = Instant::now();
            assert_eq!(client.number(&["WAIT", "1", "5000"]).unwrap(), 1);
            assert!(began.elapsed() < Duration::from_secs(2), "the good one follows: {:?}", began.elapsed());
        }
    }
    let began = Instant::now();
    settle(&master, &[&good]);
    assert!(began.elapsed() < Duration::from_secs(5), "the good one is up to date: {:?}", began.elapsed());
    wait_for("the drop of the stalled replica", SILENCE, || {
        relay.number("stats", "client_output_buffer_limit_disconnections") == 1
    });
    link.stall(false);
    assert_same(&master, &[&stalled, &good]);
    let limit = (4 << 20) + (64 << 20);
    assert!(peak_memory(relay.pid()) < limit, "{} B of memory", peak_memory(relay.pid()));
}

/// A replica whose file of so many keys rests in a stalled link while the master wrote 16 MiB to `written`
/// keys, which wait on the relay's disk.
struct Resting {
    master: Server,
    relay: Relay,
    link: Proxy,
    replica: Server,
}

impl Resting {
    fn start(program: &Path, keys: u32, written: u32) -> Resting {
        let master = Server::start(program, &["--rdbcompression", "no"]);
        master.client().ask(&["DEBUG", "POPULATE", &keys.to_string(), "key", "4096"]).unwrap();
        let relay = Relay::start(&master.address(), "[limits]\nbacklog = '1MiB'\n");
        let link = Proxy::to(&relay.address());
        link.slow(4 << 10);
        let replica = Server::start(program, &[]);
        replica.follow(&link.address());
        wait_for("the start of the file", SILENCE, || relay.number("stats", "sync_full") == 1);
        // The relay counts what it is about to send; the replica has to know of it before the link stalls.
        wait_for("the file's first bytes", SILENCE, || {
            replica.info("replication", "master_sync_in_progress") == "1"
        });
        // The file rests however long the machine takes.
        link.stall(true);
        let mut client = master.client();
        let value = "v".repeat(16 << 10);
        for index in 0..1_000 {
            client.ask(&["SET", &format!("during{}", index % written), &value]).unwrap();
        }
        Resting { master, relay, link, replica }
    }

    /// Waits until the replica has everything, by the one file that it began with.
    fn assert_caught_up(&self) {
        settle(&self.master, &[&self.replica]);
        assert_eq!(digest(&self.master), digest(&self.replica));
        assert_eq!(self.relay.number("stats", "sync_full"), 1, "{}", self.relay.log());
    }
}

#[test]
fn memory_is_flat_while_a_replica_loads_under_load() {
    let Some(program) = redis() else { return };
    let resting = Resting::start(&program, 20_000, 1_000);
    let Resting { relay, link, replica, .. } = &resting;
    assert_eq!(replica.info("replication", "master_sync_in_progress"), "1", "{}", replica.log());
    link.slow(0);
    link.stall(false);
    resting.assert_caught_up();
    let most = (1 << 20) + (64 << 20);
    assert!(peak_memory(relay.pid()) < most, "{} B of memory", peak_memory(relay.pid()));
}

#[test]
fn a_replica_that_has_loaded_is_handed_over_while_the_master_writes() {
    let Some(program) = redis() else { return };
    let resting = Resting::start(&program, 4_000, 100);
    let (relay, link) = (&resting.relay, &resting.link);
    let mut client = resting.master.client();
    // It takes up what waits on disk faster than the master writes, but never all at once.
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = stop.clone();
    let writer = thread::spawn(move || {
        let value = "w".repeat(16 << 10);
        for index in 0.. {
            if stopped.load(Ordering::SeqCst) {
                return;
            }
            client.ask(&["SET", &format!("after{}", index % 100), &value]).unwrap();
            thread::sleep(Duration::from_millis(2));
        }
    });
    link.slow(64 << 10);
    link.stall(false);
    wait_until_online(relay, 1);
    thread::sleep(Duration::from_millis(300));
    stop.store(true, Ordering::SeqCst);
    writer.join().unwrap();
    resting.assert_caught_up();
    assert_eq!(relay.number("stats", "client_output_buffer_limit_disconnections"), 0, "{}", relay.log());
}

#[test]
fn a_replica_may_load_for_longer_than_the_timeout() {
    let Some(program) = redis() else { return };
    let whole = ["--rdbcompression", "no", "--repl-diskless-sync", "no"];
    let master = Server::start(&program, &[&whole[..], &["--repl-ping-replica-period", "1"]].concat());
    master.client().ask(&["DEBUG", "POPULATE", "7000", "key", "4096"]).unwrap();
    let relay = Relay::start(&master.address(), "[limits]\nbacklog = '1MiB'\ntimeout = '3s'\n");
    // A millisecond for each key; meanwhile it reads nothing of the stream and sends empty lines.
    let replica = Server::start(&program, &["--key-load-delay", "1000", "--repl-timeout", "60"]);
    replica.follow(&relay.address());
    wait_for("the start of the file", SILENCE, || relay.number("stats", "sync_full") == 1);
    let mut client = master.client();
    let value = "v".repeat(64 << 10);
    for index in 0..600 {
        client.ask(&["SET", &format!("during{index}"), &value]).unwrap();
    }
    settle(&master, &[&replica]);
    assert_eq!(digest(&master), digest(&replica));
    assert_eq!(relay.number("stats", "sync_full"), 1, "{}", relay.log());
}

/// Makes an authority and a certificate for 127.0.0.1 that it signed.
fn certificates(openssl: &Path, folder: &Path) {
    let run = |arguments: &[&str]| {
        let output =
            Command::new(openssl).args(arguments).current_dir(folder).output().expect("openssl runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    fs::write(folder.join("name"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    let key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"];
    let authority =
        ["req", "-x509", "-subj", "/CN=authority", "-days", "2", "-keyout", "ca.key", "-out", "ca.pem"];
    run(&[&authority[..], &key[..]].concat());
    run(&[&["req", "-subj", "/CN=server", "-keyout", "server.key", "-out", "server.csr"][..], &key[..]]
        .concat());
    run(&[
        "x509",
        "-req",
        "-in",
        "server.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "2",
        "-extfile",
        "name",
        "-out",
        "server.pem",
    ]);
}

#[test]
fn both_sides_can_have_tls_and_passwords() {
    let (Some(program), Some(openssl), Some(cli)) =
        (redis(), tool("openssl", "openssl"), tool("redis-cli", "redis-tools"))
    else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    certificates(&openssl, folder.path());
    let file = |name: &str| folder.path().join(name).display().to_string();
    let (authority, certificate, key) = (file("ca.pem"), file("server.pem"), file("server.key"));
    let tls_port = free_port();
    let port_text = tls_port.to_string();
    let tls = [
        "--tls-port",
        &port_text,
        "--tls-cert-file",
        &certificate,
        "--tls-key-file",
        &key,
        "--tls-ca-cert-file",
        &authority,
        "--tls-auth-clients",
        "no",
    ];
    let users = ["--user", "relay", "on", ">secret1", "+psync", "+replconf", "+ping"];
    let master = Server::start(&program, &[&tls[..], &users[..]].concat());
    load(&master, 1, 300);

    let port = free_port();
    fs::write(folder.path().join("password"), "secret2\n").unwrap();
    let text = format!(
        "[master]\naddress = '127.0.0.1:{tls_port}'\nuser = 'relay'\npassword = 'secret1'\n\
         [master.tls]\nauthorities = '{authority}'\n\
         [listen]\naddress = '127.0.0.1:{port}'\n\
         [listen.tls]\ncertificate = '{certificate}'\nkey = '{key}'\n\
         [[user]]\nname = 'default'\npassword_file = '{}'\n\
         [[user]]\nname = 'watch'\npassword = 'secret3'\nmay = 'observe'\n",
        file("password")
    );
    let relay = Relay::of(tempfile::tempdir().unwrap(), port, &text);
    let replica_tls = [
        &["--tls-replication", "yes", "--masterauth", "secret2"][..],
        &["--tls-ca-cert-file", &authority, "--tls-cert-file", &certificate, "--tls-key-file", &key][..],
    ]
    .concat();
    let replica = Server::start(&program, &replica_tls);
    replica.follow(&relay.address());
    load(&master, 2, 300);
    assert_same(&master, &[&replica]);

    let ask = |arguments: &[&str]| {
        let output = Command::new(&cli)
            .args(["-p", &port.to_string(), "--tls", "--cacert", &authority, "--no-auth-warning"])
            .args(arguments)
            .output()
            .expect("redis-cli runs");
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
    };
    assert!(ask(&["INFO", "replication"]).contains("NOAUTH"));
    assert!(ask(&["--user", "watch", "--pass", "wrong", "PING"]).contains("WRONGPASS"));
    assert!(
        ask(&["--user", "watch", "--pass", "secret3", "INFO", "replication"]).contains("connected_slaves:1")
    );
    assert!(ask(&["--user", "watch", "--pass", "secret3", "PSYNC", "?", "-1"]).contains("NOPERM"));
    assert!(ask(&["-3", "--user", "watch", "--pass", "secret3", "ACL", "WHOAMI"]).contains("watch"));

    // A plain connection to the port of TLS gets no answer but an end.
    let mut plain = TcpStream::connect(relay.address()).unwrap();
    plain.set_read_timeout(Some(SILENCE)).unwrap();
    plain.write_all(b"PING\r\n").unwrap();
    let mut answer = Vec::new();
    let _ = plain.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"+PONG"));
    // A wrong password on the side of the master is said.
    let text = text.replace("secret1", "wrong").replace(&port.to_string(), &free_port().to_string());
    let other =
        text.lines().find_map(|line| line.strip_prefix("address = '127.0.0.1:")).map(|_| text.clone());
    let port = text
        .lines()
        .filter_map(|line| line.strip_prefix("address = '127.0.0.1:")?.strip_suffix('\''))
        .nth(1)
        .and_then(|port| port.parse().ok())
        .expect("a port");
    let wrong = Relay::of(tempfile::tempdir().unwrap(), port, &other.expect("a configuration"));
    wait_for("a word about the password", SILENCE, || wrong.log().contains("AUTH was refused: WRONGPASS"));
}

#[test]
fn a_valkey_master_serves_who_can_load_its_file() {
    let (Some(redis), Some(valkey)) = (redis(), valkey()) else { return };
    let master = Server::start(&valkey, &[]);
    load(&master, 1, 300);
    let relay = Relay::start(&master.address(), "[limits]\ntimeout = '10s'\n");
    let same = Server::start(&valkey, &[]);
    same.follow(&relay.address());
    load(&master, 2, 300);
    assert_same(&master, &[&same]);
    wait_for("the file's name", SILENCE, || relay.log().contains("received the file REDIS"));

    // A Redis that cannot load the file tries again and again, which the relay says.
    let other = Server::start(&redis, &[]);
    other.follow(&relay.address());
    wait_for("the service or the word on it", Duration::from_secs(40), || {
        other.info("replication", "master_link_status") == "up"
            || relay.log().contains("times without loading the file REDIS")
    });
    if other.info("replication", "master_link_status") == "up" {
        assert_same(&master, &[&other]);
    } else {
        assert!(other.log().contains("Can't handle RDB format version"), "{}", other.log());
    }
    load(&master, 3, 100);
    assert_same(&master, &[&same]);

    // Valkey's own format is for Valkey alone, and the relay says so at once.
    let folder = tempfile::tempdir().unwrap();
    let port = free_port();
    let text = format!(
        "[master]\naddress = '{}'\nannounce_version = '9.1.2'\n[listen]\naddress = '127.0.0.1:{port}'\n",
        master.address()
    );
    let own = Relay::of(folder, port, &text);
    let third = Server::start(&valkey, &[]);
    third.follow(&own.address());
    load(&master, 4, 100);
    assert_same(&master, &[&third]);
    assert!(own.log().contains("received the file VALKEY"), "{}", own.log());
    // One that needs a file: whoever has loaded the other one resumes.
    let new = Server::start(&redis, &[]);
    new.follow(&own.address());
    wait_for("the refusal", SILENCE, || new.log().contains("which only Valkey 9 and later load"));
}

#[test]
fn a_redis_master_serves_valkey_replicas() {
    let (Some(redis), Some(valkey)) = (redis(), valkey()) else { return };
    let master = Server::start(&redis, &[]);
    load(&master, 1, 300);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&valkey, &[]);
    replica.follow(&relay.address());
    load(&master, 2, 300);
    settle(&master, &[&replica]);
    assert_eq!(contents(&master), contents(&replica));
}

/// Whether a replica follows what it was pointed at, or says that it cannot load the file.
fn follows(replica: &Server) -> bool {
    let is_up = || replica.info("replication", "master_link_status") == "up";
    wait_for("the replica's link or its word on the file", SILENCE, || {
        is_up() || replica.log().contains("Can't handle RDB format version")
    });
    is_up()
}

/// A relay passes a file on as it is, so who can follow a server can follow its relay, and nobody else.
#[test]
fn who_can_follow_a_server_can_follow_its_relay() {
    let all = all_servers();
    if all.len() < 2 {
        let _ = writeln!(
            std::io::stderr(),
            "skipped: one server alone is here, and the table is of two at least"
        );
        return;
    }
    let mut table = BTreeMap::new();
    for (name, program) in &all {
        let master = Server::start(program, &[]);
        load(&master, 1, 300);
        let relay = Relay::start(&master.address(), "");
        let ways = [master.address(), relay.address()];
        let start = |program: &Path, from: &String| {
            let replica = Server::start(program, &[]);
            replica.follow(from);
            replica
        };
        let replicas: Vec<_> = all
            .iter()
            .map(|(other, program)| (other, ways.each_ref().map(|from| start(program, from))))
            .collect();
        load(&master, 2, 300);
        for (other, [direct, relayed]) in &replicas {
            let can = follows(direct);
            assert_eq!(follows(relayed), can, "{other} behind a relay of {name}: {}", relayed.log());
            if can {
                settle(&master, &[relayed]);
                assert_eq!(contents(relayed), contents(&master), "{other} behind a relay of {name}");
            }
            table.insert((name, *other), can);
        }
    }
    for name in all.keys() {
        assert!(table[&(name, name)], "{name} follows itself");
    }
    for ((master, replica), can) in table {
        println!("{master} | {replica} | {}", if can { "yes" } else { "no" });
    }
}

/// Valkey 8 and Redis 8 have a second connection for the file, which a replica offers and a relay does not take up. So they
/// have at the master too, which the relay asks for one of its own beside the stream.
#[test]
fn who_has_a_second_channel_for_files_does_without() {
    for (program, option) in [(valkey(), "dual-channel-replication-enabled"), (redis(), "repl-rdb-channel")] {
        let Some(program) = program else { continue };
        let plain = Server::start(&program, &[]);
        let known = plain.client().ask(&["CONFIG", "GET", option]).unwrap();
        if known.elements().is_some_and(<[Value]>::is_empty) {
            // Before version 8 there is none.
            continue;
        }
        let option = format!("--{option}");
        let master = Server::start(&program, &[&option, "yes"]);
        load(&master, 1, 300);
        let relay = Relay::start(&master.address(), "");
        let replicas = [Server::start(&program, &[&option, "yes"]), Server::start(&program, &[])];
        for replica in &replicas {
            replica.follow(&relay.address());
        }
        load(&master, 2, 300);
        assert_same(&master, &replicas.iter().collect::<Vec<_>>());
        assert_eq!(relay.number("stats", "sync_full"), 2, "{}", relay.log());
        assert_eq!(master.number("stats", "sync_full"), 1);
    }
}

#[test]
fn hostile_peers_are_cut_off() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 50);
    let text =
        "[limits]\nconnections = 8\nhandshake = '1s'\n[[user]]\nname = 'default'\npassword = 'secret'\n";
    let relay = Relay::start(&master.address(), text);
    let mut answers = Vec::new();
    for noise in [
        b"*1\r\n$536870912\r\n".to_vec(),
        b"*2147483647\r\n".to_vec(),
        vec![b'x'; 100_000],
        b"PSYNC ? -1\r\n".to_vec(),
        b"*3\r\n$4\r\nAUTH\r\n$1\r\na\r\n$1\r\nb\r\n".repeat(5),
        vec![0, 255, 10, 13, 10],
        b"*1\r\n".to_vec(),
    ] {
        let mut stream = TcpStream::connect(relay.address()).unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        let _ = stream.write_all(&noise);
        let mut answer = Vec::new();
        let began = Instant::now();
        let _ = stream.read_to_end(&mut answer);
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "{:?} was not cut off",
            &noise[..noise.len().min(20)]
        );
        answers.push(String::from_utf8_lossy(&answer).into_owned());
    }
    assert!(answers[0].contains("above the limit"), "{answers:?}");
    assert!(answers[3].contains("NOAUTH"), "{answers:?}");
    assert_eq!(answers[4].matches("WRONGPASS").count(), 3, "{answers:?}");

    // Half-open connections keep nobody out: the one that was silent for longest has to leave.
    let half_open: Vec<TcpStream> = (0..8).map(|_| TcpStream::connect(relay.address()).unwrap()).collect();
    let mut client = relay.client();
    client.login(None, "secret").unwrap();
    assert!(client.text(&["INFO", "clients"]).unwrap().contains("maxclients:8"));
    drop(half_open);
    assert!(peak_memory(relay.pid()) < 64 << 20);
}

/// Plays a master for one connection: answers the handshake, then sends `bytes`.
fn play_master(bytes: Vec<u8>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let bytes = bytes.clone();
            thread::spawn(move || {
                let mut seen = Vec::new();
                let mut piece = [0; 4096];
                while let Ok(count) = stream.read(&mut piece) {
                    seen.extend_from_slice(&piece[..count]);
                    if count == 0 {
                        return;
                    }
                    if String::from_utf8_lossy(&seen).contains("PSYNC") {
                        break;
                    }
                    let _ = stream.write_all(b"+PONG\r\n");
                }
                let _ = stream.write_all(&bytes);
                let _ = stream.read_to_end(&mut Vec::new());
            });
        }
    });
    address
}

#[test]
fn hostile_masters_are_cut_off() {
    let id = "0123456789abcdef0123456789abcdef01234567";
    let full = format!("+FULLRESYNC {id} 0\r\n").into_bytes();
    let file = [full.as_slice(), b"$9\r\nREDIS0011"].concat();
    for (bytes, reason) in [
        (vec![b'x'; 1 << 20], "above the limit"),
        (b"$99999999999\r\n".to_vec(), "above the limit"),
        (b"+FULLRESYNC here 0\r\n".to_vec(), "replication id"),
        (b"+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 -5\r\n".to_vec(), "PSYNC was answered"),
        ([full.as_slice(), &[b'$'; 4096]].concat(), "announcement"),
        ([full.as_slice(), b"$5\r\nHELLO"].concat(), "expected `REDIS`"),
        ([full.as_slice(), b"-ERR no memory\r\n"].concat(), "no memory"),
        ([file.as_slice(), b"*1\r\n$99999999999999999999\r\n"].concat(), "header"),
        ([file.as_slice(), &[b'a'; 100_000]].concat(), "line above the limit"),
        ([file.as_slice(), b"\x00\x01"].concat(), "where a command has to stand"),
    ] {
        let relay = Relay::start_alone(&play_master(bytes), "");
        wait_for(&format!("the end of the link for `{reason}`"), SILENCE, || relay.log().contains(reason));
        assert_eq!(relay.client().text(&["PING"]).unwrap(), "PONG", "it still answers");
        assert!(peak_memory(relay.pid()) < 64 << 20);
    }
}

#[test]
fn a_port_that_was_looked_at_is_free_to_its_user() {
    let port = free_port();
    let _kept_by_a_child = probe(port).unwrap();
    let listener = std::net::TcpListener::bind(("127.0.0.1", port)).unwrap();
    assert!(probe(port).is_err(), "somebody listens at {}", listener.local_addr().unwrap());
}

/// A replica that listens on port 7001, as far as it says, and asks for everything; with the answer to that.
fn play_replica(relay: &Relay, version: Option<&str>) -> (BufReader<TcpStream>, String) {
    let mut stream = BufReader::new(TcpStream::connect(relay.address()).unwrap());
    stream.get_ref().set_read_timeout(Some(SILENCE)).unwrap();
    let mut say = |words: &str| {
        stream.get_mut().write_all(format!("{words}\r\n").as_bytes()).unwrap();
        // Empty lines are signs of life.
        let mut answer = String::new();
        while answer.trim().is_empty() {
            answer.clear();
            assert!(stream.read_line(&mut answer).unwrap() > 0, "an answer to `{words}`");
        }
        answer
    };
    assert_eq!(say("REPLCONF listening-port 7001"), "+OK\r\n");
    if let Some(version) = version {
        assert_eq!(say(&format!("REPLCONF version {version}")), "+OK\r\n");
    }
    let answer = say("PSYNC ? -1");
    (stream, answer)
}

const PLAYED: &str = "+FULLRESYNC 0123456789abcdef0123456789abcdef01234567 0\r\n$9\r\n";

#[test]
fn a_file_that_only_valkey_loads_is_refused_to_all_others() {
    let relay = Relay::start(&play_master([PLAYED, "VALKEY080"].concat().into_bytes()), "");
    for version in [None, Some("8.1.0")] {
        let (_, answer) = play_replica(&relay, version);
        assert!(answer.starts_with("-NOMASTERLINK the master's file is VALKEY"), "{answer}");
    }
    assert_eq!(
        relay.log().matches("7001 was refused: the master's file is VALKEY").count(),
        2,
        "{}",
        relay.log()
    );
    let (_, answer) = play_replica(&relay, Some("9.0.0"));
    assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
}

/// Anybody may announce an address and a port, so nobody pays for what another did under them.
#[test]
fn files_that_were_not_loaded_are_said_and_lock_nobody_out() {
    let relay = Relay::start(&play_master([PLAYED, "REDIS0011"].concat().into_bytes()), "");
    let left = || relay.log().matches("127.0.0.1:7001 left at offset").count();
    let get_file = |loads: bool| {
        let before = left();
        let (mut stream, answer) = play_replica(&relay, None);
        assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
        let mut file = [0; 13];
        stream.read_exact(&mut file).unwrap();
        assert_eq!(&file, b"$9\r\nREDIS0011");
        if loads {
            stream.get_mut().write_all(b"REPLCONF ACK 0\r\n").unwrap();
            wait_until_online(&relay, 1);
        }
        drop(stream);
        wait_for("the replica's leave", SILENCE, || left() > before);
    };
    // One that loads may come and go, and clears what went wrong before.
    for loads in [false, false, true, true, true, true, false, false] {
        get_file(loads);
    }
    assert!(!relay.log().contains("without loading"), "{}", relay.log());
    let fail = || {
        let (stream, answer) = play_replica(&relay, None);
        assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
        drop(stream);
        wait_for("the replica's leave", SILENCE, || relay.number("replication", "connected_slaves") == 0);
    };
    fail();
    let said = "127.0.0.1:7001 left 3 times without loading the file REDIS";
    wait_for("the word on it", SILENCE, || relay.log().contains(said));
    // A replica that tries again at once, a hundred times a second, does not fill the log.
    let lines = || relay.log().lines().count();
    let before = lines();
    for _ in 0..5 {
        fail();
    }
    assert_eq!(lines(), before, "{}", relay.log());
    assert_eq!(relay.number("stats", "sync_full"), 14);
    // Once it has loaded one, it is heard of again.
    get_file(true);
    get_file(false);
    assert_eq!(relay.log().matches("without loading").count(), 1, "{}", relay.log());
}

/// A master takes whoever has just come to follow it for alive, so it would take writes that nobody has.
#[test]
fn a_replica_that_loads_no_file_lets_no_strict_master_write() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3600"];
    let master = Server::start(&program, &[&strict[..], &["--repl-diskless-sync-delay", "0"]].concat());
    let relay = Relay::start(&master.address(), "");
    let mut client = master.client();
    let mut fail_for = |time: Duration| {
        let (began, mut taken, mut failed) = (Instant::now(), 0, 0);
        while began.elapsed() < time {
            let (replica, answer) = play_replica(&relay, None);
            assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
            taken += u32::from(client.ask(&["SET", "probe", "1"]).is_ok());
            drop(replica);
            taken += u32::from(client.ask(&["SET", "probe", "1"]).is_ok());
            failed += 1;
        }
        (taken, failed)
    };
    while !relay.log().contains("7001 left 3 times without loading the file") {
        fail_for(Duration::from_millis(1));
    }
    wait_for("the relay's leave", SILENCE, || relay.info("replication", "relay_link") == "held");
    let times = || master.number("stats", "sync_full") + master.number("stats", "sync_partial_ok");
    let before = times();
    assert!(before <= 4, "followed {before} times: {}", relay.log());
    let (taken, failed) = fail_for(Duration::from_secs(3));
    assert!(failed > 10, "{failed}");
    assert_eq!((taken, times()), (0, before), "{failed} times: {}", relay.log());
    // The same one is as good as any other once it has loaded.
    let (mut replica, _) = play_replica(&relay, None);
    replica.get_mut().write_all(b"REPLCONF ACK 0\r\n").unwrap();
    wait_until_writes_are(true, &master, &relay);
}

/// A relay that has the stream resumes at once, and would count for alive each time that it tried to get a file.
#[test]
fn a_spool_without_room_lets_no_strict_master_write() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--min-replicas-max-lag", "3600"];
    let master = Server::start(&program, &[&strict[..], &["--rdbcompression", "no"]].concat());
    let mut relay = Relay::start(&master.address(), "");
    let mut replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    wait_until_writes_are(true, &master, &relay);
    load(&master, 1, 2_000);
    assert_same(&master, &[&replica]);
    replica.kill();
    relay.restart_with_little_room(16);
    replica.restart();
    replica.follow(&relay.address());
    wait_for("the full disk", SILENCE, || relay.log().contains("the relay cannot keep the master's file in"));
    wait_for("the relay's leave", SILENCE, || relay.info("replication", "relay_link") == "held");
    let times = || master.number("stats", "sync_full") + master.number("stats", "sync_partial_ok");
    let before = times();
    let refuses = || {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(4) {
            let answer = master.client().ask(&["SET", "probe", "1"]);
            assert!(answer.is_err_and(|error| error.to_string().contains("NOREPLICAS")), "{}", relay.log());
            thread::sleep(Duration::from_millis(10));
        }
    };
    refuses();
    assert_eq!(times(), before, "{}", relay.log());
    // A small file that one client asks for says nothing of whether the replica's has room.
    let files = || relay.log().matches("received the file").count();
    let before = files();
    let mut functions = TcpStream::connect(relay.address()).unwrap();
    functions.set_read_timeout(Some(SILENCE)).unwrap();
    functions.write_all(b"REPLCONF rdb-only 1\r\nREPLCONF rdb-filter-only functions\r\nSYNC\r\n").unwrap();
    let mut sent = Vec::new();
    while !sent.windows(9).any(|window| window.starts_with(b"REDIS00")) {
        let mut piece = [0; 512];
        let count = functions.read(&mut piece).unwrap();
        assert!(count > 0, "{}", relay.log());
        sent.extend_from_slice(&piece[..count]);
    }
    refuses();
    assert_eq!(files(), before, "its own file is none of the relay's: {}", relay.log());
    // With room it goes on.
    relay.restart();
    wait_until_writes_are(true, &master, &relay);
    assert_same(&master, &[&replica]);
}

/// Who comes and goes has the master followed once a second at most.
#[test]
fn a_relay_that_was_left_alone_does_not_come_back_at_once() {
    let Some(program) = redis() else { return };
    let strict = ["--min-replicas-to-write", "1", "--repl-diskless-sync-delay", "0"];
    let master = Server::start(&program, &strict);
    let relay = Relay::start(&master.address(), "");
    let times = || master.number("stats", "sync_full") + master.number("stats", "sync_partial_ok");
    let (began, mut came) = (Instant::now(), 0);
    while began.elapsed() < Duration::from_secs(4) {
        let (mut replica, answer) = play_replica(&relay, None);
        assert!(answer.starts_with("+FULLRESYNC "), "{answer}");
        replica.get_mut().write_all(b"REPLCONF ACK 0\r\n").unwrap();
        wait_until_online(&relay, 1);
        drop(replica);
        wait_for("the replica's leave", SILENCE, || relay.number("replication", "connected_slaves") == 0);
        came += 1;
    }
    assert!(came > 10 && (1..=6).contains(&times()), "{came} came, followed {} times", times());
}

#[test]
fn idle_connections_keep_out_no_replica_and_no_user() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 50);
    // Who is kept out here stays so.
    let text = "[limits]\nconnections = 16\nhandshake = '3600s'\n[[user]]\nname = 'replicas'\npassword = 'secret'\n\
                [[user]]\nname = 'watch'\npassword = 'seen'\nmay = 'observe'\n";
    let relay = Relay::start(&master.address(), text);
    // So many connections stay open, and no more than the system lets this process have.
    let most =
        std::env::var("OFFPATH_FLOOD").map_or(300, |text| text.parse().expect("a number of connections"));
    // Users fill their places, and strangers come while others do.
    let users: Vec<RedisClient> = (0..16)
        .map(|_| {
            let mut client = relay.client();
            client.login(Some("watch"), "seen").unwrap();
            client
        })
        .collect();
    let refused = relay.client().login(Some("watch"), "seen").unwrap_err().to_string();
    assert!(refused.contains("max number of clients"), "{refused}");
    let stop = Arc::new(AtomicBool::new(false));
    const FLOODS: usize = 4;
    let came = Arc::new(AtomicUsize::new(0));
    let floods = [(); FLOODS].map(|()| {
        let (stopped, address, counted) = (stop.clone(), relay.address(), came.clone());
        thread::spawn(move || {
            let mut open = std::collections::VecDeque::new();
            while !stopped.load(Ordering::SeqCst) {
                if let Ok(mut stream) = TcpStream::connect(&address) {
                    // Every other one says something that is no command of anybody's.
                    if counted.fetch_add(1, Ordering::SeqCst) % 2 == 1 {
                        let _ = stream.write_all(b"*1\r\n$4\r\nPING\r\n*3\r\n$");
                    }
                    open.push_back(stream);
                }
                if open.len() > most / FLOODS {
                    open.pop_front();
                    thread::sleep(Duration::from_millis(1));
                }
            }
        })
    });
    wait_for("as many connections as stay open", Duration::from_secs(60), || {
        came.load(Ordering::SeqCst) > most
    });
    let mut joins = Vec::new();
    for round in 0..3 {
        let replica = Server::start(&program, &["--masteruser", "replicas", "--masterauth", "secret"]);
        let before = came.load(Ordering::SeqCst);
        let began = Instant::now();
        replica.follow(&relay.address());
        wait_for("the link", SILENCE, || replica.info("replication", "master_link_status") == "up");
        let others = came.load(Ordering::SeqCst) - before;
        joins.push(began.elapsed());
        println!("{round}: {most} connections, {others} more meanwhile: linked after {:?}", joins[round]);
        settle(&master, &[&replica]);
    }
    joins.sort();
    assert!(joins[1] < Duration::from_secs(1), "{joins:?}");
    stop.store(true, Ordering::SeqCst);
    for flood in floods {
        flood.join().unwrap();
    }
    // Who has shown a password was not closed for strangers.
    for mut client in users {
        assert_eq!(client.text(&["PING"]).unwrap(), "PONG");
    }
}

/// A page in a browser of the relay's machine may be made to send this, and what stands in it is not carried out.
#[test]
fn who_speaks_http_is_cut_off_before_its_body() {
    let relay = Relay::start(&play_master(Vec::new()), "");
    let master = || {
        let client = &mut relay.client();
        let role = client.ask(&["INFO", "replication"]).unwrap();
        let text = role.text().unwrap().to_string();
        text.lines().filter(|line| line.starts_with("master_")).take(2).map(String::from).collect::<Vec<_>>()
    };
    let before = master();
    for head in ["POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n"] {
        let mut page = TcpStream::connect(relay.address()).unwrap();
        page.set_read_timeout(Some(SILENCE)).unwrap();
        page.write_all(format!("{head}\r\nREPLICAOF 127.0.0.1 40202\r\n").as_bytes()).unwrap();
        let mut answer = Vec::new();
        // The end may come as a reset, since not all was read.
        let _ = page.read_to_end(&mut answer);
        assert!(!String::from_utf8_lossy(&answer).contains("OK"), "{answer:?}");
    }
    assert!(before.len() == 2 && master() == before, "{before:?}: {}", relay.log());
    assert!(relay.log().contains("speaks HTTP"), "{}", relay.log());
}

/// What is announced stands in a line of INFO whose fields commas part, and a user that nobody has is refused.
#[test]
fn what_is_announced_forges_no_field_and_what_is_shown_is_checked() {
    let relay = Relay::start(&play_master(Vec::new()), "");
    let mut client = relay.client();
    let forged = client.ask(&["REPLCONF", "ip-address", "10.0.0.1,port=1,state=online"]).unwrap_err();
    assert!(forged.to_string().contains("ip-address"), "{forged}");
    let wrong = client.ask(&["HELLO", "3", "AUTH", "nobody", "wrong"]).unwrap_err().to_string();
    assert!(wrong.contains("WRONGPASS"), "{wrong}");
    client.ask(&["HELLO", "2", "AUTH", "default", "any"]).unwrap();
}

/// The master writes one file for all who asked before it began.
#[test]
fn backups_that_are_asked_for_at_once_share_a_file() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-diskless-sync-delay", "1"]);
    load(&master, 1, 300);
    let relay = Relay::start(&master.address(), "");
    let before = master.number("stats", "sync_full");
    let asking: Vec<_> = (0..8)
        .map(|_| {
            let mut client = TcpStream::connect(relay.address()).unwrap();
            client.set_read_timeout(Some(SILENCE)).unwrap();
            client.write_all(b"REPLCONF rdb-only 1\r\nSYNC\r\n").unwrap();
            thread::spawn(move || {
                let mut file = Vec::new();
                client.read_to_end(&mut file).unwrap();
                file.len()
            })
        })
        .collect();
    let sizes: Vec<usize> = asking.into_iter().map(|one| one.join().unwrap()).collect();
    assert!(sizes.iter().all(|size| *size > 1_000), "{sizes:?}: {}", relay.log());
    // One for the first, and one for all who came while the master was asked.
    let forks = master.number("stats", "sync_full") - before;
    assert!((1..=2).contains(&forks), "{forks} files for {}: {}", sizes.len(), relay.log());
}

/// A system may give a process fewer descriptors than it is configured for.
#[test]
fn where_descriptors_run_out_strangers_make_room() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 100);
    let mut relay = Relay::start(&master.address(), "[limits]\nhandshake = '60s'\n");
    for (prepare, is_short) in [("ulimit -S -n 64", false), ("ulimit -n 64", true)] {
        relay.restart_in_shell(prepare);
        let said = "this process may have 64 files and connections open, and the configuration allows 1584";
        assert_eq!(relay.log().contains(said), is_short, "{prepare}: {}", relay.log());
        let mut first = relay.client();
        let strangers: Vec<TcpStream> =
            (0..200).map(|_| TcpStream::connect(relay.address()).unwrap()).collect();
        let began = Instant::now();
        assert_eq!(relay.client().text(&["PING"]).unwrap(), "PONG");
        assert!(began.elapsed() < Duration::from_secs(1), "{prepare}: {:?}", began.elapsed());
        // What the master's file needs is kept for it.
        let replica = Server::start(&program, &[]);
        replica.follow(&relay.address());
        assert_same(&master, &[&replica]);
        assert!(began.elapsed() < Duration::from_secs(5), "{prepare}: {:?}", began.elapsed());
        assert_eq!(first.text(&["PING"]).is_ok(), !is_short, "{prepare}: the oldest makes room");
        let refusals = relay.log().matches("a connection was not accepted").count();
        assert_eq!(refusals, usize::from(is_short), "{}", relay.log());
        drop(strangers);
    }
}

#[test]
fn a_connection_that_only_is_there_is_closed_with_users_or_without() {
    for users in ["", "[[user]]\nname = 'default'\npassword = 'secret'\n"] {
        let relay = Relay::start(&play_master(Vec::new()), &format!("[limits]\nhandshake = '1s'\n{users}"));
        // Empty lines and bytes that are no command yet are no word from anybody.
        for dripped in ["", "\r\n", "P"] {
            let mut stream = TcpStream::connect(relay.address()).unwrap();
            stream.set_read_timeout(Some(SILENCE)).unwrap();
            let mut drip = stream.try_clone().unwrap();
            let dripping = thread::spawn(move || {
                while !dripped.is_empty() && drip.write_all(dripped.as_bytes()).is_ok() {
                    thread::sleep(Duration::from_millis(100));
                }
            });
            // Closed with what it had not read, the connection is reset.
            let read = stream.read(&mut [0; 8]);
            let closed = match &read {
                Ok(count) => *count == 0,
                Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
            };
            assert!(closed, "{users}{dripped:?}: {read:?}");
            let _ = stream.shutdown(std::net::Shutdown::Both);
            dripping.join().unwrap();
        }
    }
}

/// What is asked and not read would be kept for each, and made up while everybody else waits.
#[test]
fn who_asks_and_does_not_read_takes_neither_memory_nor_time() {
    const OTHERS: usize = 48;
    let watch = "[[user]]\nname = 'watch'\npassword = 'secret'\nmay = 'observe'\n";
    let relay = Relay::start(&play_master(Vec::new()), watch);
    let before = peak_memory(relay.pid());
    let questions = b"INFO\r\n".repeat(20_000);
    let mut others: Vec<TcpStream> = (0..OTHERS)
        .map(|_| {
            let mut stream = TcpStream::connect(relay.address()).unwrap();
            stream.write_all(b"AUTH watch secret\r\n").unwrap();
            stream.set_nonblocking(true).unwrap();
            stream
        })
        .collect();
    let mut client = relay.client();
    client.login(Some("watch"), "secret").unwrap();
    let (mut waits, began) = (Vec::new(), Instant::now());
    let mut asked = [0; OTHERS];
    while began.elapsed() < Duration::from_secs(3) {
        for (stream, asked) in others.iter_mut().zip(&mut asked) {
            *asked += stream.write(&questions[*asked % 6..]).unwrap_or(0);
        }
        let ask = Instant::now();
        assert_eq!(client.text(&["PING"]).unwrap(), "PONG");
        waits.push(ask.elapsed());
    }
    // A busy machine lets a process wait for once; what the others ask for would come before every one of these.
    waits.sort();
    let (usual, slow) = (waits[waits.len() / 2], waits[waits.len() * 99 / 100]);
    let each = (peak_memory(relay.pid()) - before) / OTHERS as u64;
    assert!(asked.iter().all(|asked| *asked > 100_000), "{asked:?}");
    println!(
        "{each} B each, and of {} answers to another half within {usual:?}, 99% within {slow:?}",
        waits.len()
    );
    assert!(each < 256 << 10, "{each} B each");
    assert!(usual < Duration::from_millis(100), "another usually waited for {usual:?}");
    assert!(slow < Duration::from_secs(1), "another waited for {slow:?} once in a hundred times");
    // Whoever reads after all is answered everything.
    let stream = others.pop().unwrap();
    stream.set_nonblocking(false).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    let last = asked[OTHERS - 1];
    let (mut asking, rest) = (stream.try_clone().unwrap(), questions[last % 6..6].to_vec());
    let asking = thread::spawn(move || asking.write_all(&[&rest[..], b"ECHO the-end\r\n"].concat()));
    let mut found = 0;
    let mut lines = BufReader::new(stream).lines();
    for line in &mut lines {
        match line.unwrap().as_str() {
            "the-end" => break,
            line => found += usize::from(line == "# Server"),
        }
    }
    asking.join().unwrap().unwrap();
    assert_eq!(found, last / 6 + 1);
}

/// An address of this machine that is not its loopback.
fn own_address() -> Option<String> {
    // Nothing is sent: the system only says which address it would use.
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    socket.connect("192.0.2.1:9").ok()?;
    Some(socket.local_addr().ok()?.ip().to_string()).filter(|address| address != "127.0.0.1")
}

#[test]
fn without_a_password_other_machines_are_refused() {
    let Some(own) = own_address() else { return };
    for (more, open) in [
        ("", false),
        ("protected_mode = false\n", true),
        ("[[user]]\nname = 'default'\npassword = 'secret'\n", true),
    ] {
        let port = free_port();
        let text = format!(
            "[master]\naddress = '{}'\n[listen]\naddress = '0.0.0.0:{port}'\n{more}",
            play_master(Vec::new())
        );
        let _relay = Relay::of(tempfile::tempdir().unwrap(), port, &text);
        let ask = |host: &str| {
            let mut stream = TcpStream::connect((host, port)).unwrap();
            stream.set_read_timeout(Some(SILENCE)).unwrap();
            let _ = stream.write_all(b"PING\r\n");
            let mut answer = String::new();
            let _ = BufReader::new(stream).read_line(&mut answer);
            answer
        };
        let answer = ask(&own);
        assert_eq!(answer.starts_with("-DENIED"), !open, "{more}: {answer}");
        assert!(open || answer.contains("listen.protected_mode"), "{answer}");
        assert!(!ask("127.0.0.1").starts_with("-DENIED"), "{more}");
    }
}

/// Loads a file of redis-cli in a server of its own.
fn serve_file(program: &Path, folder: &Path, name: &str) -> Server {
    Server::start(program, &["--dir", folder.to_str().unwrap(), "--dbfilename", name])
}

#[test]
fn backups_are_of_now_and_hold_what_was_asked_for() {
    let (Some(program), Some(cli)) = (redis(), tool("redis-cli", "redis-tools")) else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 300);
    let function = "#!lua name=here\nredis.register_function('one', function() return 1 end)";
    master.client().ask(&["FUNCTION", "LOAD", function]).unwrap();
    let relay = Relay::start(&master.address(), "");
    let folder = tempfile::tempdir().unwrap();
    let back_up = |option: &str, name: &str| {
        let file = folder.path().join(name);
        let output =
            Command::new(&cli).args(["-p", &relay.port.to_string(), option]).arg(&file).output().unwrap();
        assert!(output.status.success(), "{option}: {output:?}");
        serve_file(&program, folder.path(), name)
    };
    // Nobody is followed for it.
    assert_eq!(digest(&back_up("--rdb", "first")), digest(&master));
    assert_eq!(master.number("replication", "connected_slaves"), 0);
    // The file that replicas start from is older than what the master has by then.
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&master, &[&replica]);
    load(&master, 2, 300);
    assert_eq!(digest(&back_up("--rdb", "second")), digest(&master));
    let functions = back_up("--functions-rdb", "functions");
    assert_eq!(functions.client().number(&["DBSIZE"]).unwrap(), 0);
    let listed = functions.client().ask(&["FUNCTION", "LIST"]).unwrap();
    assert_eq!(listed.elements().map(<[Value]>::len), Some(1), "{listed:?}");
    let refused = relay.client().ask(&["REPLCONF", "rdb-filter-only", "keys"]).unwrap_err().to_string();
    assert!(refused.contains("not `keys`"), "{refused}");
    // The replica has noticed nothing.
    settle(&master, &[&replica]);
    assert_eq!(relay.number("stats", "sync_full"), 1);
}

/// It may wait for minutes and say nothing, as strangers do that make room for others.
#[test]
fn a_backup_keeps_its_place_among_strangers_that_come_and_go() {
    let (Some(program), Some(cli)) = (redis(), tool("redis-cli", "redis-tools")) else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 600);
    let before = digest(&master);
    // The file takes 10 ms for each key.
    master.client().ask(&["CONFIG", "SET", "rdb-key-save-delay", "10000"]).unwrap();
    let relay = Relay::start(&master.address(), "[limits]\nconnections = 1\nreplicas = 1\n");
    let replica = Server::start(&program, &[]);
    let folder = tempfile::tempdir().unwrap();
    let mut backup = Command::new(cli)
        .args(["-p", &relay.port.to_string(), "--rdb"])
        .arg(folder.path().join("file"))
        .spawn()
        .unwrap();
    wait_for("the master's file", SILENCE, || master.info("persistence", "rdb_bgsave_in_progress") == "1");
    let strangers: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(relay.address()).unwrap()).collect();
    let ask = |text: &[u8]| {
        let mut other = TcpStream::connect(relay.address()).unwrap();
        other.write_all(text).unwrap();
        let (mut answer, mut other) = (String::new(), BufReader::new(other));
        while !answer.contains("allows") {
            assert!(other.read_line(&mut answer).unwrap() > 0, "{answer}");
        }
        (answer, other)
    };
    // Its place is one of those that are not replicas.
    let (answer, _) = ask(b"REPLCONF rdb-only 1\r\nPSYNC ? -1\r\n");
    assert!(
        answer.contains("1 that are not replicas, as many as the relay's `limits.connections` allows"),
        "{answer}"
    );
    replica.follow(&relay.address());
    wait_for("a replica", SILENCE, || relay.number("replication", "connected_slaves") == 1);
    let (answer, _) = ask(b"PSYNC ? -1\r\n");
    assert!(answer.contains("1 replicas, as many as its `limits.replicas` allows"), "{answer}");
    assert!(backup.try_wait().unwrap().is_none(), "it is being served");
    assert!(backup.wait().unwrap().success(), "{}", relay.log());
    assert_eq!(digest(&serve_file(&program, folder.path(), "file")), before);
    drop(strangers);
    master.client().ask(&["CONFIG", "SET", "rdb-key-save-delay", "0"]).unwrap();
    assert_same(&master, &[&replica]);
}

#[test]
fn who_asks_by_sync_gets_the_stream_and_stands_for_nobody() {
    let (Some(program), Some(cli)) = (redis(), tool("redis-cli", "redis-tools")) else { return };
    let master = Server::start(&program, &["--repl-ping-replica-period", "1"]);
    load(&master, 1, 100);
    let relay = Relay::start(&master.address(), "[limits]\ntimeout = '2s'\n");
    let folder = tempfile::tempdir().unwrap();
    let said = folder.path().join("said");
    let file = fs::File::create(&said).unwrap();
    let mut child = Command::new(cli)
        .args(["-p", &relay.port.to_string(), "--replica"])
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .spawn()
        .unwrap();
    let said = || fs::read_to_string(&said).unwrap();
    wait_for("the file", SILENCE, || said().contains("Logging commands from"));
    // It is there for longer than one may be silent who says how far it is.
    thread::sleep(Duration::from_secs(4));
    let mut client = master.client();
    client.ask(&["SET", "by-sync", "1"]).unwrap();
    wait_for("the stream", SILENCE, || said().contains("by-sync"));
    assert_eq!(client.number(&["WAIT", "1", "300"]).unwrap(), 0, "it says nothing of what it has");
    assert!(relay.client().text(&["INFO", "replication"]).unwrap().contains("state=online"));
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(!relay.log().contains("it was silent"), "{}", relay.log());
}

/// A master that sends a file without a length waits for a word before the stream, and nobody here says one.
#[test]
fn who_says_nothing_is_not_left_waiting_for_the_stream() {
    let Some(program) = redis() else { return };
    let diskless = ["--repl-diskless-sync", "yes", "--repl-timeout", "60"];
    let master = Server::start(&program, &diskless);
    load(&master, 1, 100);
    let first = Relay::start(&master.address(), "");
    let second = Relay::start(&first.address(), "");
    let mut silent = TcpStream::connect(second.address()).unwrap();
    silent.write_all(b"SYNC\r\n").unwrap();
    wait_for("the file", SILENCE, || second.log().contains("received the file"));
    master.client().ask(&["SET", "by-sync", "1"]).unwrap();
    let began = Instant::now();
    silent.set_read_timeout(Some(SILENCE)).unwrap();
    let mut found = Vec::new();
    while !found.windows(7).any(|window| window == b"by-sync") {
        let mut piece = [0; 4096];
        let count = silent.read(&mut piece).unwrap_or_else(|error| panic!("{error}: {}", first.log()));
        assert!(count > 0, "{}", second.log());
        found.extend_from_slice(&piece[..count]);
    }
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}: {}", began.elapsed(), first.log());
}

/// As a client does that captures changes: the file and the stream, and never a word.
#[test]
fn who_never_acknowledges_is_served_again_and_again() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 100);
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    settle(&master, &[&replica]);
    for round in 0..6 {
        let (mut stream, answer) = play_replica(&relay, None);
        assert!(answer.starts_with("+FULLRESYNC "), "{round}: {answer}");
        let mut line = String::new();
        while line.trim().is_empty() {
            line.clear();
            stream.read_line(&mut line).unwrap();
        }
        let length: u64 = line.trim().strip_prefix('$').unwrap().parse().unwrap();
        std::io::copy(&mut (&mut stream).take(length), &mut std::io::sink()).unwrap();
        master.client().ask(&["SET", "round", &format!("number-{round}")]).unwrap();
        let mut found = String::new();
        while !found.contains(&format!("number-{round}")) {
            let mut line = Vec::new();
            assert!(stream.read_until(b'\n', &mut line).unwrap() > 0, "the stream of round {round}: {found}");
            found += &String::from_utf8_lossy(&line);
        }
    }
}

#[test]
fn a_master_and_its_relay_say_who_the_other_is() {
    let Some(program) = redis() else { return };
    let valkey = valkey();
    for program in [Some(program), valkey].into_iter().flatten() {
        let master = Server::start(&program, &[]);
        let relay = Relay::start(&master.address(), "");
        let replica = Server::start(&program, &[]);
        replica.follow(&relay.address());
        settle(&master, &[&replica]);
        let clients = master.client().text(&["CLIENT", "LIST", "TYPE", "replica"]).unwrap();
        assert!(clients.contains(&format!("name=offpath-relay:{} ", relay.port)), "{clients}");
        for field in ["redis_version", "valkey_version"] {
            assert_eq!(relay.info("server", field), master.info("server", field), "{field}");
        }
        assert_eq!(relay.info("server", "relay_version"), env!("CARGO_PKG_VERSION"));
    }
}

/// Sends SIGHUP, and waits until the relay has said what came of it.
fn hang_up(relay: &Relay, said: &str) {
    let before = relay.log().matches(said).count();
    assert!(Command::new("kill").args(["-HUP", &relay.pid().to_string()]).status().unwrap().success());
    wait_for(said, SILENCE, || relay.log().matches(said).count() > before);
}

#[test]
fn passwords_and_limits_are_read_again_at_sighup() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    load(&master, 1, 50);
    let users = |users: &str| format!("[limits]\nconnections = 7\n{users}");
    let user = |name: &str, password: &str| format!("[[user]]\nname = '{name}'\npassword = '{password}'\n");
    let relay = Relay::start(&master.address(), &users(&user("default", "one")));
    let file = relay.folder.path().join("relay.toml");
    let head = fs::read_to_string(&file).unwrap().split("[limits]").next().unwrap().to_string();
    let change = |text: &str| fs::write(&file, format!("{head}{text}")).unwrap();
    let old = Server::start(&program, &["--masterauth", "one"]);
    old.follow(&relay.address());
    settle(&master, &[&old]);

    // Both passwords hold while replicas are given the new one.
    change(&users(&(user("default", "one") + &user("default", "two"))).replace('7', "9"));
    hang_up(&relay, "the configuration is what was read just now");
    let new = Server::start(&program, &["--masterauth", "two"]);
    new.follow(&relay.address());
    settle(&master, &[&old, &new]);
    change(&users(&user("default", "two")));
    hang_up(&relay, "the configuration is what was read just now");
    assert!(relay.client().login(None, "one").unwrap_err().to_string().contains("WRONGPASS"));
    let said = "127.0.0.1 has shown a wrong password for the user `default`";
    assert!(relay.log().contains(said), "{}", relay.log());
    let mut client = relay.client();
    client.login(None, "two").unwrap();
    assert_eq!(client.info("clients", "maxclients").unwrap().unwrap(), "7");
    // Who has shown the old one stays, as in Redis.
    load(&master, 2, 50);
    settle(&master, &[&old, &new]);
    assert!(!relay.log().contains(" left at offset"), "{}", relay.log());

    change("[limits]\nconnections = 'many'\n");
    hang_up(&relay, "the configuration is refused, and the one of before holds");
    client = relay.client();
    client.login(None, "two").unwrap();
    let moved = head.replace(&relay.address(), "127.0.0.1:1") + &users(&user("default", "two"));
    fs::write(&file, moved).unwrap();
    hang_up(&relay, "but for what takes a restart: listen.address");

    // A user that is gone takes its connections along.
    change(&users(&user("other", "two")));
    hang_up(&relay, "the configuration is what was read just now");
    assert!(client.text(&["PING"]).unwrap_err().to_string().contains("NOAUTH"));
    wait_for("the end of its replicas", SILENCE, || {
        relay.log().matches("its user is no longer in the configuration").count() == 2
    });
}

/// Whose user is gone gets no more, in the middle of a file too.
#[test]
fn a_backup_of_a_user_that_is_gone_gets_no_more_of_its_file() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--rdbcompression", "no"]);
    master.client().ask(&["DEBUG", "POPULATE", "20000", "key", "4000"]).unwrap();
    let user = |name: &str| format!("[[user]]\nname = '{name}'\npassword = 'one'\n");
    let relay = Relay::start(&master.address(), &(user("default") + &user("backup")));
    let mut stream = TcpStream::connect(relay.address()).unwrap();
    stream.set_read_timeout(Some(SILENCE)).unwrap();
    stream.write_all(b"AUTH backup one\r\nREPLCONF rdb-only 1\r\nPSYNC ? -1\r\n").unwrap();
    wait_for("its file", SILENCE, || relay.log().contains("gets a file of its own"));
    let file = relay.folder.path().join("relay.toml");
    let whole = fs::read_to_string(&file).unwrap();
    fs::write(&file, whole.replace(&user("backup"), "")).unwrap();
    hang_up(&relay, "the configuration is what was read just now");
    let mut found = Vec::new();
    // Its end may be a reset.
    let _ = stream.read_to_end(&mut found);
    assert!(found.len() < 80_000_000, "{} B of a file of 80 MB and more", found.len());
    wait_for("the reason", SILENCE, || {
        relay.log().contains("is not sent on: its user is no longer in the configuration")
    });
}

/// What was asked before its user was removed, and waits for earlier answers to be read, is not carried out.
#[test]
fn who_asks_to_follow_and_reads_once_its_user_is_gone_gets_nothing() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let user = |name: &str| format!("[[user]]\nname = '{name}'\npassword = 'one'\n");
    let relay = Relay::start(&master.address(), &(user("default") + &user("other")));
    let file = relay.folder.path().join("relay.toml");
    let whole = fs::read_to_string(&file).unwrap();
    let long = "x".repeat(16 << 10);
    let echo = format!("*2\r\n$4\r\nECHO\r\n${}\r\n{long}\r\n", long.len());
    let mut watching = relay.client();
    watching.login(None, "one").unwrap();
    let mut replicas = || watching.info("replication", "connected_slaves").unwrap().unwrap();
    // Asks for so many answers and reads none, and to follow.
    let mut ask = |count: usize| {
        wait_for("the end of the last", SILENCE, || replicas() == "0");
        let mut stream = TcpStream::connect(relay.address()).unwrap();
        stream.set_read_timeout(Some(SILENCE)).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(2))).unwrap();
        stream.write_all(b"AUTH other one\r\n").unwrap();
        let asked = stream.write_all(echo.repeat(count).as_bytes()).and_then(|()| {
            thread::sleep(Duration::from_millis(100));
            stream.write_all(format!("{echo}PSYNC ? -1\r\n").as_bytes())
        });
        thread::sleep(Duration::from_millis(200));
        // Where buffers are small the relay takes no more of it.
        (stream, asked.is_ok() && replicas() != "0")
    };
    // What socket buffers hold is looked for: behind as many answers the request is read, and waits for the last to leave.
    let (mut served, mut waits) = (0, 1_024);
    while served + 1 < waits {
        let middle = (served + waits) / 2;
        match ask(middle).1 {
            true => served = middle,
            false => waits = middle,
        }
    }
    assert!(waits < 1_024, "socket buffers hold more than is asked for");
    for count in waits..waits + 3 {
        let (mut stream, is_served) = ask(count);
        fs::write(&file, whole.replace(&user("other"), "")).unwrap();
        hang_up(&relay, "the configuration is what was read just now");
        let mut piece = vec![0; 1 << 20];
        while !is_served
            && let Ok(bytes) = stream.read(&mut piece)
            && bytes > 0
        {
            let text = String::from_utf8_lossy(&piece[..bytes]);
            assert!(!text.contains("FULLRESYNC"), "behind {count} answers");
        }
        drop(stream);
        fs::write(&file, &whole).unwrap();
        hang_up(&relay, "the configuration is what was read just now");
    }
}

/// For one that has just left the relay stays with its master, and has it write no file for nobody.
#[test]
fn a_master_with_another_history_writes_no_file_for_who_has_left() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let relay = Relay::start(&master.address(), "[limits]\nlinger = '30s'\n");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    load(&master, 1, 50);
    settle(&master, &[&replica]);
    let leave = |same: bool| {
        replica.client().ask(&["REPLICAOF", "NO", "ONE"]).unwrap();
        wait_for("its leave", SILENCE, || relay.info("replication", "connected_slaves") == "0");
        if !same {
            master.client().ask(&["DEBUG", "CHANGE-REPL-ID"]).unwrap();
        }
        master.client().ask(&["CLIENT", "KILL", "TYPE", "replica"]).unwrap();
    };
    leave(true);
    wait_for("the stream", SILENCE, || {
        master.number("stats", "sync_partial_ok") == 1 && relay.info("replication", "relay_link") == "up"
    });
    replica.follow(&relay.address());
    settle(&master, &[&replica]);
    leave(false);
    wait_for("the master to be left", SILENCE, || relay.info("replication", "relay_link") == "held");
    thread::sleep(Duration::from_secs(2));
    assert_eq!(master.number("stats", "sync_full"), 1, "{}", relay.log());
    replica.follow(&relay.address());
    assert_same(&master, &[&replica]);
    assert_eq!(master.number("stats", "sync_full"), 2, "{}", relay.log());
}

/// What an editor or a full disk leaves of a file is no configuration, however little it asks for.
#[test]
fn a_file_that_was_cut_or_emptied_takes_no_guard_away_at_sighup() {
    let relay = Relay::start_as(
        &play_master(Vec::new()),
        "acknowledge = { replicas = 2 }\n",
        "[limits]\nconnections = 7\n[[user]]\nname = 'default'\npassword = 'one'\n",
    );
    let file = relay.folder.path().join("relay.toml");
    let whole = fs::read_to_string(&file).unwrap();
    let refused = "the configuration is refused, and the one of before holds";
    let before = |part: &str| whole.split(part).next().unwrap().to_string();
    for (cut, key) in [
        (String::new(), "`master.address` is not set"),
        (before("[listen]"), "`listen.address` is not set"),
        (before("[[user]]"), "`[[user]]` is gone, and the running relay would have no user"),
        (
            whole.replace(&relay.folder.path().display().to_string(), "/nowhere"),
            "cannot write beside /nowhere/state",
        ),
    ] {
        fs::write(&file, &cut).unwrap();
        hang_up(&relay, &format!("{refused}: {key}"));
        let mut client = relay.client();
        assert!(client.text(&["PING"]).unwrap_err().to_string().contains("NOAUTH"), "{cut}");
        client.login(None, "one").unwrap();
        assert_eq!(client.info("clients", "maxclients").unwrap().unwrap(), "7", "{cut}");
    }
    fs::write(&file, whole.replace("connections = 7", "connections = 8")).unwrap();
    hang_up(&relay, "the configuration is what was read just now");
}

/// Whoever starts a relay may tell it to read its configuration again before it has read it once.
#[test]
fn a_sighup_at_the_start_ends_no_relay() {
    let folder = tempfile::tempdir().unwrap();
    let (config, log) = (folder.path().join("relay.toml"), folder.path().join("log"));
    assert!(Command::new("mkfifo").arg(&config).status().unwrap().success());
    let ready = std::os::unix::net::UnixDatagram::bind(folder.path().join("ready")).unwrap();
    ready.set_read_timeout(Some(SILENCE)).unwrap();
    let text = format!(
        "[master]\naddress = '127.0.0.1:1'\n[listen]\naddress = '127.0.0.1:0'\n[spool]\ndirectory = '{}'\n",
        folder.path().display()
    );
    let mut relay = Command::new(relay_program())
        .arg("--config")
        .arg(&config)
        .env("NOTIFY_SOCKET", folder.path().join("ready"))
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    // Once this is open, the relay waits for the first byte of its configuration.
    let mut first = fs::OpenOptions::new().write(true).open(&config).unwrap();
    let signal = |name: &str| {
        assert!(Command::new("kill").args([name, &relay.id().to_string()]).status().unwrap().success());
    };
    signal("-HUP");
    thread::sleep(Duration::from_millis(100));
    first.write_all(text.as_bytes()).unwrap();
    drop(first);
    let mut said = [0; 64];
    let count = ready.recv(&mut said).expect("systemd is told that it listens");
    assert_eq!(&said[..count], b"READY=1");
    // What was asked for at the start is done then.
    fs::write(&config, &text).unwrap();
    wait_for("the second reading", SILENCE, || {
        fs::read_to_string(&log).unwrap().contains("SIGHUP: the conf")
    });
    signal("-TERM");
    assert!(relay.wait().unwrap().success());
}

#[test]
fn certificates_are_read_again_at_sighup() {
    let Some(openssl) = tool("openssl", "openssl") else { return };
    let folder = tempfile::tempdir().unwrap();
    let fingerprint = |certificate: &[u8]| {
        let mut child = Command::new(&openssl)
            .args(["x509", "-noout", "-fingerprint", "-sha256"])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(certificate).unwrap();
        String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap()
    };
    let renew = || {
        certificates(&openssl, folder.path());
        fingerprint(&fs::read(folder.path().join("server.pem")).unwrap())
    };
    let first = renew();
    let port = free_port();
    let at = folder.path().display();
    let text = format!(
        "[master]\naddress = '{}'\n[listen]\naddress = '127.0.0.1:{port}'\n[listen.tls]\ncertificate = '{at}/server.pem'\n\
         key = '{at}/server.key'\n",
        play_master(Vec::new())
    );
    let relay = Relay::of(tempfile::tempdir().unwrap(), port, &text);
    let shown = || {
        let address = relay.address();
        let output = Command::new(&openssl)
            .args(["s_client", "-connect", &address])
            .stdin(std::process::Stdio::null())
            .output()
            .unwrap();
        fingerprint(&output.stdout)
    };
    assert_eq!(shown(), first);
    let second = renew();
    assert_ne!(first, second);
    hang_up(&relay, "the configuration is what was read just now");
    assert_eq!(shown(), second);
    let file = relay.folder.path().join("relay.toml");
    fs::write(&file, text.split("[listen.tls]").next().unwrap()).unwrap();
    hang_up(
        &relay,
        "`[listen.tls]` is gone, and the running relay would have no TLS towards replicas any more",
    );
    assert_eq!(shown(), second);
}

/// The first bytes of a master's file may come long after it has begun, and a replica knows of it by then, as directly.
#[test]
fn a_file_is_announced_before_its_first_byte() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-diskless-sync", "yes"]);
    for index in 0..40 {
        master.client().ask(&["SET", &format!("k{index}"), "v"]).unwrap();
    }
    // A quarter of a second for each key, and what is written before is buffered.
    master.client().ask(&["CONFIG", "SET", "rdb-key-save-delay", "250000"]).unwrap();
    let relay = Relay::start(&master.address(), "");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    let state = || {
        let role = replica.client().ask(&["ROLE"]).unwrap();
        role.elements().and_then(|role| role.get(3)?.text()).unwrap_or_default()
    };
    wait_for("the announcement", Duration::from_secs(5), || state() == "sync");
    assert_eq!(replica.client().number(&["DBSIZE"]).unwrap(), 0);
    settle(&master, &[&replica]);
}

/// A replica that waits has nothing to say, so one that hangs would keep its relay at a master for ever.
#[test]
fn a_replica_that_hangs_while_it_waits_is_dropped_and_one_that_lives_comes_back() {
    let Some(program) = redis() else { return };
    let port = free_port();
    let relay = Relay::start(&format!("127.0.0.1:{port}"), "[limits]\ntimeout = '2s'\n");
    let waiting = || relay.log().matches("it waited for longer than `limits.timeout`").count();
    let here = || relay.number("replication", "connected_slaves");
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    wait_for("the replica", SILENCE, || here() == 1);
    wait_for("its drop", SILENCE, || waiting() > 0);
    wait_for("its return", SILENCE, || here() == 1);
    replica.signal("-STOP");
    wait_for("its end", SILENCE, || here() == 0);
    let ends = waiting();
    thread::sleep(Duration::from_secs(3));
    assert_eq!((here(), waiting()), (0, ends), "{}", relay.log());
    replica.signal("-CONT");
    wait_for("its return", SILENCE, || here() == 1);
    let master = Server::start_on(&program, port, &[]);
    load(&master, 1, 50);
    assert_same(&master, &[&replica]);
}

/// A file that nobody waits for any more costs the master a child and its memory.
#[test]
fn a_file_for_nobody_is_given_up() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &["--repl-diskless-sync", "no"]);
    load(&master, 1, 300);
    // So that the file takes a minute.
    master.client().ask(&["CONFIG", "SET", "rdb-key-save-delay", "500000"]).unwrap();
    let relay = Relay::start(&master.address(), "");
    let mut replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    let is_writing = || master.info("persistence", "rdb_bgsave_in_progress") == "1";
    wait_for("the file", SILENCE, is_writing);
    replica.kill();
    wait_for("the end of the file", Duration::from_secs(10), || !is_writing());
    // Whoever comes next is served.
    master.client().ask(&["CONFIG", "SET", "rdb-key-save-delay", "0"]).unwrap();
    let next = Server::start(&program, &[]);
    next.follow(&relay.address());
    assert_same(&master, &[&next]);
}

/// Plays a master that sends a file and `stream`, then ends the connection; with what it was asked for.
fn play_ending_master(stream: &'static [u8]) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let asks = asked.clone();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let mut connection = connection.unwrap();
            let (mut seen, mut piece) = (String::new(), [0; 4096]);
            while !seen.contains("PSYNC") {
                let Ok(count @ 1..) = connection.read(&mut piece) else { break };
                seen += &String::from_utf8_lossy(&piece[..count]);
                if !seen.contains("PSYNC") {
                    let _ = connection.write_all(b"+PONG\r\n");
                }
            }
            let words = seen.split("PSYNC").nth(1).unwrap_or_default().to_string();
            let _ = connection.write_all(&[PLAYED.as_bytes(), b"REDIS0011", stream].concat());
            asks.lock().unwrap().push(words);
        }
    });
    (address, asked)
}

#[test]
fn a_stream_that_was_none_is_not_gone_on_from() {
    for (stream, next) in [
        (&b"*1\r\n$4\r\nPING\r\n"[..], "$40\r\n0123456789abcdef0123456789abcdef01234567\r\n$2\r\n15"),
        (b"*1\r\n$4\r\nPING\r\n\x00\x01", "$1\r\n?\r\n$2\r\n-1"),
    ] {
        let (master, asked) = play_ending_master(stream);
        let relay = Relay::start_alone(&master, "");
        wait_for("a second link", SILENCE, || asked.lock().unwrap().len() > 1);
        let asked = asked.lock().unwrap().clone();
        assert!(asked[0].contains("$1\r\n?\r\n$2\r\n-1"), "{asked:?}");
        assert!(asked[1].contains(next), "{asked:?}: {}", relay.log());
    }
}

#[test]
fn what_came_from_the_master_is_counted() {
    let relay =
        Relay::start_alone(&play_master([PLAYED, "REDIS0011*1\r\n$4\r\nPING\r\n"].concat().into_bytes()), "");
    wait_for("the stream", SILENCE, || relay.number("replication", "master_repl_offset") == 14);
    assert_eq!(relay.number("stats", "total_net_repl_input_bytes"), 9 + 14, "the file and the stream");
    let (mut stream, _) = play_replica(&relay, None);
    stream.read_exact(&mut [0; 4 + 9]).unwrap();
    stream.get_mut().write_all(b"REPLCONF ACK 0\r\n").unwrap();
    stream.read_exact(&mut [0; 14]).unwrap();
    drop(stream);
    wait_for("the replica's leave", SILENCE, || relay.log().contains("7001 left at offset 14:"));
}

#[test]
fn whoever_finds_no_room_is_told_and_counted() {
    let text = "[limits]\nconnections = 1\n[[user]]\nname = 'watch'\npassword = 'seen'\nmay = 'observe'\n";
    let relay = Relay::start(&play_master(Vec::new()), text);
    let mut only = relay.client();
    only.login(Some("watch"), "seen").unwrap();
    let rejected = |client: &mut RedisClient| -> u64 {
        client.info("stats", "rejected_connections").unwrap().unwrap().parse().unwrap()
    };
    let before = rejected(&mut only);
    for _ in 0..5 {
        let refused = relay.client().login(Some("watch"), "seen").unwrap_err().to_string();
        assert!(refused.contains("max number of clients"), "{refused}");
    }
    wait_for("the count", SILENCE, || rejected(&mut only) >= before + 5);
}

#[test]
fn operators_are_answered() {
    let Some(program) = redis() else { return };
    let master = Server::start(&program, &[]);
    let metrics = free_port();
    let relay = Relay::start(&master.address(), &format!("[metrics]\naddress = '127.0.0.1:{metrics}'\n"));
    let replica = Server::start(&program, &[]);
    replica.follow(&relay.address());
    load(&master, 1, 100);
    settle(&master, &[&replica]);
    wait_until_online(&relay, 1);
    let mut client = relay.client();
    assert_eq!(client.text(&["PING"]).unwrap(), "PONG");
    let role = client.ask(&["ROLE"]).unwrap();
    let role: Vec<String> = role.elements().unwrap().iter().filter_map(Value::text).collect();
    let offset = master.info("replication", "master_repl_offset");
    assert_eq!(role, ["slave", "127.0.0.1", &master.port.to_string(), "connected", &offset]);
    let hello = client.ask(&["HELLO", "3"]).unwrap();
    assert!(matches!(hello, Value::Map(entries) if entries.len() == 7));
    let info = client.text(&["INFO", "replication"]).unwrap();
    for line in [
        "role:slave".to_string(),
        "master_link_status:up".into(),
        format!("slave0:ip=127.0.0.1,port={},state=online,offset=", replica.port),
        format!("master_replid:{}", master.info("replication", "master_replid")),
        format!("master_repl_offset:{offset}"),
    ] {
        assert!(info.contains(&line), "{line} is missing: {info}");
    }
    // Sentinels find each other by a channel of every replica.
    let mut other = relay.client();
    let subscribed = other.ask(&["SUBSCRIBE", "__sentinel__:hello"]).unwrap();
    assert_eq!(subscribed.elements().map(<[Value]>::len), Some(3));
    assert_eq!(client.number(&["PUBLISH", "__sentinel__:hello", "here"]).unwrap(), 1);
    let told = other.receive().unwrap();
    let told: Vec<String> = told.elements().unwrap().iter().filter_map(Value::text).collect();
    assert_eq!(told, ["message", "__sentinel__:hello", "here"]);
    let refused = client.ask(&["GET", "a"]).unwrap_err().to_string();
    assert!(refused.contains("keeps no data"), "{refused}");
    // The master sees one replica, under the relay's port, online from its first acknowledgement on.
    let shown = format!("port={},state=online", relay.port);
    wait_for("the relay at the master", SILENCE, || master.info("replication", "slave0").contains(&shown));

    let mut stream = TcpStream::connect(("127.0.0.1", metrics)).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: relay\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    assert!(page.starts_with("HTTP/1.1 200 OK"), "{page}");
    for line in ["offpath_relay_up 1", "offpath_relay_replicas_online 1"] {
        assert!(page.lines().any(|found| found == line), "{line} is missing: {page}");
    }
    assert!(page.contains(&format!("offpath_relay_master_offset {offset}\n")), "{page}");
    let line = page.lines().find(|line| line.starts_with("offpath_relay_replica_phase")).unwrap_or_default();
    let replica = format!("{{replica=\"127.0.0.1:{}\",connection=\"", replica.port);
    assert!(
        line.contains(&replica) && line.ends_with(",phase=\"online\",acknowledges=\"true\"} 1"),
        "{page}"
    );
}
