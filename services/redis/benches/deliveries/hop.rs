//! A second hop that only reads and writes: what any relay between a master and its replicas costs at least.
//!
//! It is a process of its own. At first each replica has a connection to the master, over which it synchronises. Once nothing
//! moves, the hop keeps the first of them and gives what comes over it to all replicas: the master has one replica, and each
//! write of its is one read and a write for each replica, without a look at the bytes.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write, stdin};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The option by which the bench starts itself as a hop.
pub const OPTION: &str = "--hop";

/// How long nothing moves before replicas share a connection.
const STILL: Duration = Duration::from_millis(100);

/// A hop that this process started.
pub struct Hop {
    child: Child,
    pub port: u16,
}

impl Drop for Hop {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Hop {
    /// Starts one for so many replicas; one that polls never sleeps.
    pub fn start(master: &str, replicas: usize, polls: bool) -> Hop {
        let program = std::env::current_exe().expect("the bench has a path");
        let mut child = Command::new(program)
            .args([OPTION, master, &replicas.to_string(), &polls.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the bench starts itself");
        let mut line = String::new();
        let out = child.stdout.as_mut().expect("it is piped");
        BufReader::new(out).read_line(&mut line).expect("the hop says its port");
        Hop { child, port: line.trim().parse().expect("a port") }
    }

    /// Lets all replicas share the first one's connection from here on; they have synchronised, and nothing is written.
    pub fn join(&mut self) {
        self.child.stdin.take().expect("it is piped").write_all(b"join\n").expect("the hop reads");
        thread::sleep(5 * STILL);
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }
}

/// Passes on what there is; whether it was anything.
fn pass(from: &mut TcpStream, to: &mut TcpStream, piece: &mut [u8]) -> bool {
    match from.read(piece) {
        Ok(0) => panic!("a connection ended"),
        Ok(count) => {
            to.write_all(&piece[..count]).expect("it is taken");
            true
        }
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => false,
        Err(error) => panic!("{error}"),
    }
}

/// Is the hop: `MASTER REPLICAS POLLS`.
pub fn run(words: &[String]) {
    let [master, replicas, polls] = words else { panic!("{OPTION} MASTER REPLICAS POLLS") };
    let replicas: usize = replicas.parse().expect("a number of replicas");
    let polls: bool = polls.parse().expect("true or false");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    println!("{}", listener.local_addr().expect("an address").port());
    let joined = thread::spawn(|| stdin().read_line(&mut String::new()).expect("a word"));
    let mut pairs = Vec::new();
    listener.set_nonblocking(true).expect("a listener");
    let mut piece = vec![0; 128 << 10];
    let mut moved = Instant::now();
    while pairs.len() < replicas || !joined.is_finished() || moved.elapsed() < STILL {
        if let Ok((near, _)) = listener.accept() {
            let far = TcpStream::connect(master).expect("the master answers");
            for end in [&near, &far] {
                end.set_nonblocking(false).expect("a connection");
                end.set_nodelay(true).expect("a connection");
                end.set_read_timeout(Some(Duration::from_millis(1))).expect("a connection");
            }
            pairs.push((near, far));
        }
        for (near, far) in &mut pairs {
            if pass(near, far, &mut piece) | pass(far, near, &mut piece) {
                moved = Instant::now();
            }
        }
    }
    let (mut near, mut far): (Vec<TcpStream>, Vec<TcpStream>) = pairs.into_iter().unzip();
    far.truncate(1);
    let mut master = far.remove(0);
    for end in near.iter().chain([&master]) {
        end.set_read_timeout(None).expect("a connection");
    }
    for (index, near) in near.iter().enumerate() {
        let mut near = near.try_clone().expect("a descriptor");
        let mut master = master.try_clone().expect("a descriptor");
        thread::spawn(move || {
            let mut piece = [0; 4 << 10];
            while let Ok(count) = near.read(&mut piece)
                && count > 0
            {
                // One replica speaks for all: to the master there is one.
                if index == 0 && master.write_all(&piece[..count]).is_err() {
                    return;
                }
            }
        });
    }
    master.set_nonblocking(polls).expect("a connection");
    loop {
        match master.read(&mut piece) {
            Ok(0) => return,
            Ok(count) => {
                for near in &mut near {
                    near.write_all(&piece[..count]).expect("it is taken");
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::hint::spin_loop(),
            Err(_) => return,
        }
    }
}
