//! `offpath-relay` as its users see it, without a server.

#[path = "../../../crates/offpath/tests/common/mod.rs"]
mod common;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

fn offpath(arguments: &[&str]) -> (i32, String, String) {
    let common::Answer { code, stdout, stderr, .. } = common::offpath(arguments);
    (code, stdout, stderr)
}

#[test]
fn a_relays_configuration_is_checked_with_its_files() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("relay.toml");
    let password = folder.path().join("password");
    let text = format!(
        "[master]\naddress = 'h:1'\n[listen]\naddress = '127.0.0.1:2'\n[[user]]\nname = 'default'\npassword_file = '{}'\n",
        password.display()
    );
    fs::write(&file, &text).expect("the file is written");
    let check = |file: &std::path::Path| offpath(&["--check", "--config", &file.display().to_string()]);
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("password"), "{message}");
    fs::write(&password, "secret\n").expect("the file is written");
    assert_eq!(check(&file).0, 0);
    fs::write(&file, text.replace("[listen]", "[lissen]")).expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("lissen"), "{message}");
    let (code, _, message) = offpath(&["--check", "--master", "h:1", "--listen", "no-name.invalid:2"]);
    assert!(code == 2 && message.contains("cannot listen on no-name.invalid:2"), "{message}");
    // An address of nobody's (RFC 5737).
    let (code, _, message) = offpath(&["--check", "--master", "h:1", "--listen", "192.0.2.1:2"]);
    assert!(code == 2 && message.contains("cannot listen on 192.0.2.1:2"), "{message}");
    let (code, _, message) = offpath(&["--check", "--master", "h:1", "--listen", "h:2", "--backlog", "1B"]);
    assert!(code == 2 && message.contains("limits.backlog = 1B"), "{message}");
    for (given, missing) in [(&[][..], "--master"), (&["--master", "h:1"], "--listen")] {
        let (code, _, message) = offpath(given);
        assert!(code == 2 && message.contains(&format!("`{missing} ")), "{message}");
        assert!(message.contains("--config FILE"), "{message}");
    }
    // A file may leave out what the command line gives.
    fs::write(&file, "[limits]\ngather = '1ms'\n").expect("the file is written");
    let (code, _, message) = check(&file);
    assert!(code == 2 && message.contains("`master.address` is not set"), "{message}");
    let file = file.display().to_string();
    let given = ["--check", "--config", &file, "--master", "h:1", "--listen", "127.0.0.1:2"];
    assert_eq!(offpath(&given).0, 0);
}

/// A refusal points to it, and a program that was installed has no other file with every key.
#[test]
fn an_example_has_every_key() {
    let (code, example, _) = offpath(&["--example"]);
    assert_eq!((code, example.as_str()), (0, include_str!("../../../packaging/relay.toml")));
    let backlog = example.lines().find_map(|line| line.strip_prefix("backlog = ")).expect("it has the key");
    let (_, help, _) = offpath(&["--help"]);
    assert!(help.contains(&format!("[default: {}]", backlog.trim_matches('"'))), "{help}");
    let (code, _, message) = offpath(&["--check", "--master", "h:1", "--listen", "h:2", "--backlog", "1B"]);
    assert!(code == 2 && message.contains("--example"), "{message}");
}

/// The help says what was measured, and neither more nor what was measured before.
#[test]
fn the_help_has_the_measured_cost() {
    let page = include_str!("../../../docs/performance.md");
    let section = page.split("\n## Redis\n").nth(1).and_then(|rest| rest.split("\n## ").next()).unwrap();
    let rows: Vec<Vec<&str>> = section
        .lines()
        .map(|line| line.split('|').map(str::trim).collect::<Vec<_>>())
        .filter(|cells| cells.get(2) == Some(&"relayed"))
        .collect();
    assert_eq!(rows.len(), 3, "{rows:?}");
    let (_, help, _) = offpath(&["--help"]);
    let words: Vec<&str> = help.split_whitespace().map(|word| word.trim_end_matches([',', '.'])).collect();
    // With 8 clients, and with 50.
    for column in [4, 7] {
        let ratios = || rows.iter().map(|cells| cells[column]);
        let range = [ratios().min().unwrap(), "to", ratios().max().unwrap()];
        assert!(words.windows(3).any(|words| words == range), "{range:?}: {help}");
    }
}

/// A relay that runs until the test ends.
struct Running {
    relay: Child,
    address: String,
    /// What it has said; whoever drops it closes the pipe.
    said: Option<BufReader<ChildStderr>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Running {
        let mut relay = Command::new(env!("CARGO_BIN_EXE_offpath-relay"))
            .args(arguments)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the relay starts");
        let mut said = BufReader::new(relay.stderr.take().expect("it is piped"));
        let address = loop {
            let mut line = String::new();
            assert!(said.read_line(&mut line).expect("a line") > 0, "the relay ended at its start");
            if let Some((_, address)) = line.trim().split_once(" connect to ") {
                break address.to_string();
            }
        };
        Running { relay, address, said: Some(said) }
    }

    fn connect(&self) -> BufReader<TcpStream> {
        let stream = TcpStream::connect(&self.address).expect("the relay listens");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a connection");
        BufReader::new(stream)
    }

    fn signal(&self, signal: &str) {
        let pid = self.relay.id().to_string();
        assert!(Command::new("kill").args([signal, &pid]).status().expect("kill runs").success());
    }

    /// Ends it by SIGTERM, and gives the exit code.
    fn end(mut self) -> Option<i32> {
        self.signal("-TERM");
        let until = Instant::now() + Duration::from_secs(30);
        while Instant::now() < until {
            if let Some(status) = self.relay.try_wait().expect("it can be waited for") {
                return status.code();
            }
            thread::sleep(Duration::from_millis(20));
        }
        panic!("the relay does not end");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.relay.kill();
        let _ = self.relay.wait();
    }
}

fn ask(connection: &mut BufReader<TcpStream>, command: &str) -> String {
    connection.get_mut().write_all(format!("{command}\r\n").as_bytes()).expect("it is sent");
    let mut line = String::new();
    connection.read_line(&mut line).expect("an answer");
    line.trim().to_string()
}

/// A port that nobody listens at.
fn closed_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).expect("a port").port()
}

/// A pipe that nobody reads, and one whose reader has gone: the relay serves, follows and ends as ever.
#[test]
fn a_log_that_cannot_be_written_stops_nothing() {
    for is_closed in [false, true] {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let (state, spool) =
            (folder.path().join("state").display().to_string(), folder.path().display().to_string());
        let master = format!("127.0.0.1:{}", closed_port());
        let given =
            ["--master", &master, "--listen", "127.0.0.1:0", "--state-file", &state, "--spool", &spool];
        let mut running = Running::start(&given);
        if is_closed {
            running.said = None;
        }
        let mut connection = running.connect();
        // Two lines each, more than a pipe of 64 KiB takes.
        let (one, other) = (closed_port(), closed_port());
        for index in 0..700 {
            let port = if index % 2 == 0 { one } else { other };
            assert_eq!(ask(&mut connection, &format!("REPLICAOF 127.0.0.1 {port}")), "+OK", "{index}");
        }
        assert_eq!(ask(&mut connection, "PING"), "+PONG");
        // The link is one of those who have something to say.
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        assert_eq!(ask(&mut connection, &format!("REPLICAOF 127.0.0.1 {port}")), "+OK");
        listener.accept().expect("the relay comes");
        assert_eq!(ask(&mut connection, "PING"), "+PONG");
        assert_eq!(running.end(), Some(0), "closed: {is_closed}");
    }
}

/// One that waits is given everything when the master comes, so it has to go as one that follows does.
#[test]
fn the_replica_of_a_user_who_is_gone_does_not_wait_on() {
    let folder = tempfile::tempdir().expect("a temporary directory");
    let file = folder.path().join("relay.toml");
    let text = format!(
        "[master]\naddress = '127.0.0.1:{}'\n[listen]\naddress = '127.0.0.1:0'\n[[user]]\nname = 'stays'\npassword = 'a'\n",
        closed_port()
    );
    fs::write(&file, format!("{text}[[user]]\nname = 'gone'\npassword = 'b'\n")).expect("it is written");
    let running = Running::start(&["--config", &file.display().to_string()]);
    let waits = |user: &str, password: &str| {
        let mut connection = running.connect();
        assert_eq!(ask(&mut connection, &format!("AUTH {user} {password}")), "+OK");
        connection.get_mut().write_all(b"PSYNC ? -1\r\n").expect("it is sent");
        // Each second an empty line shows that it is waited for.
        let mut line = String::new();
        connection.read_line(&mut line).expect("a sign of life");
        assert_eq!(line.trim(), "");
        connection
    };
    let (mut stays, mut gone) = (waits("stays", "a"), waits("gone", "b"));
    fs::write(&file, &text).expect("it is written");
    running.signal("-HUP");
    let (told, mut rest) = (Instant::now(), String::new());
    gone.read_to_string(&mut rest).expect("the relay closes it");
    assert_eq!(rest.trim(), "");
    // Half of `limits.timeout`, for which whoever waits would have stayed.
    assert!(told.elapsed() < Duration::from_secs(30), "it waited for {:?}", told.elapsed());
    stays.read_line(&mut rest).expect("a sign of life");
    assert_eq!(running.end(), Some(0));
}
