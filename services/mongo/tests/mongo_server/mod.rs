//! A MongoDB-compatible server for tests, on a free loopback port, ended by its process id.

#![allow(dead_code, reason = "each test uses a part of it")]

use offpath_mongo::client::{MongoAccess, MongoClient};
use std::io::Write;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Says past the capture of output that a test is skipped; where all of them have to run, it fails.
pub fn skip(why: &str) {
    assert!(std::env::var_os("OFFPATH_SERVERS_REQUIRED").is_none(), "{why}");
    let _ = writeln!(std::io::stderr(), "skipped: {why}");
}

/// A server's program, or a visible word that the test is skipped.
pub fn program() -> Option<PathBuf> {
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        let folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let files =
            ["mongod", "secantusd-py"].map(|name| folders.iter().map(move |folder| folder.join(name)));
        files.into_iter().flatten().find(|file| file.is_file())
    };
    let found = std::env::var_os("OFFPATH_MONGO_SERVER").map(PathBuf::from).or_else(on_path);
    if found.is_none() {
        skip(
            "no MongoDB-compatible server is installed (pip install SecantusDB==0.7.0b3, and set \
             OFFPATH_MONGO_SERVER to its secantusd-py where that is in no PATH)",
        );
    }
    found
}

/// A server that this process started.
pub struct Server {
    program: PathBuf,
    child: Child,
    port: u16,
    folder: TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.kill();
    }
}

impl Server {
    /// Starts `program` and waits until it answers.
    pub fn start(program: &PathBuf) -> Server {
        // A process that another test starts meanwhile has the listener too until its program runs: the server
        // ends where its port is held, and one at another port does not.
        for _ in 0..5 {
            let folder = tempfile::tempdir().expect("a temporary directory");
            let port =
                TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a port").port();
            let child = Server::spawn(program, port, &folder, &[]);
            let mut server = Server { program: program.clone(), child, port, folder };
            if server.is_up() {
                return server;
            }
        }
        panic!("{} ends whenever it is started", program.display())
    }

    fn spawn(program: &PathBuf, port: u16, folder: &TempDir, more: &[&str]) -> Child {
        let mut command = Command::new(program);
        command.args(["--port", &port.to_string()]);
        if program.file_name().is_some_and(|name| name == "mongod") {
            command.args(["--bind_ip", "127.0.0.1", "--dbpath"]).arg(folder.path());
        } else {
            command.args(["--host", "127.0.0.1", "--log-level", "ERROR", "--standalone", "--storage-path"]);
            command.arg(folder.path());
        }
        let log = std::fs::File::create(folder.path().with_extension("log")).expect("a log");
        command.args(more).stdout(Stdio::null()).stderr(log).spawn().expect("the server starts")
    }

    /// Waits until it answers; false where it ended.
    fn is_up(&mut self) -> bool {
        let began = Instant::now();
        while let Err(error) = MongoClient::connect(&self.address(), &MongoAccess::default()) {
            if self.child.try_wait().expect("a child of ours").is_some() {
                return false;
            }
            assert!(began.elapsed() < Duration::from_secs(60), "the server does not start: {error}");
            thread::sleep(Duration::from_millis(50));
        }
        true
    }

    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_file(self.folder.path().with_extension("log"));
    }

    /// Ends it as its operator would, so that it writes what it knows: not every server has all on
    /// disk when it is killed.
    pub fn stop(&mut self) {
        if self.child.try_wait().expect("a child of ours").is_none() {
            let pid = self.child.id().to_string();
            assert!(Command::new("kill").args(["-TERM", &pid]).status().expect("kill runs").success());
            self.child.wait().expect("the server ends");
        }
    }

    pub fn restart(&mut self, more: &[&str]) {
        self.stop();
        self.child = Server::spawn(&self.program, self.port, &self.folder, more);
        assert!(self.is_up(), "the server does not start again");
    }

    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    pub fn client(&self) -> MongoClient {
        MongoClient::connect(&self.address(), &MongoAccess::default()).expect("the server answers")
    }
}

/// Two servers.
pub fn two(program: &PathBuf) -> [Server; 2] {
    thread::scope(|scope| {
        let other = scope.spawn(|| Server::start(program));
        let one = Server::start(program);
        [one, other.join().expect("the other server")]
    })
}
