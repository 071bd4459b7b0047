//! Roles of a system: where each runs is the caller's choice, what it does is the same everywhere.

use crate::{log, store};
use offpath_apps::kv::Placement;
use offpath_apps::replog::LogAlternative;
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_verbs::{Verbs, VerbsFabric, Waiting};
use std::error::Error;
use std::fmt::{Debug, Display, Formatter};
use std::future::poll_fn;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::process::{Child, Command};
use std::str::FromStr;
use std::task::Poll;

pub type Verdict = Result<(), Box<dyn Error>>;

/// How long a process waits for another to be there: a machine of another architecture boots for long.
const RENDEZVOUS: Time = Time::from_ms(180_000);
/// How long a role may take.
const LIMIT: Time = Time::from_ms(240_000);
/// The port that a service hears of its end at.
const END_PORT: u16 = 99;
const ASKING_PORT: u16 = 98;

/// What runs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum System {
    Store(Placement),
    Log(LogAlternative),
}

impl System {
    /// All its roles; the first is the one that uses the others and ends them.
    pub fn roles(&self) -> Vec<RoleName> {
        let names: &[&str] = match self {
            System::Store(Placement::HostOneSided) => &["client", "host"],
            System::Store(_) => &["client", "host", "soc"],
            System::Log(LogAlternative::HostWrites) => &["host", "backup", "tail"],
            System::Log(_) => &["host", "soc", "backup", "tail"],
        };
        names.iter().map(|name| RoleName::new(name, 0)).collect()
    }

    /// What a role does.
    fn function(&self, name: &RoleName) -> Result<Role<VerbsFabric, Verdict>, Box<dyn Error>> {
        let (system, others) = (*self, self.roles().split_off(1));
        if !self.roles().contains(name) {
            return Err(format!("{self} has no role {name}").into());
        }
        Ok(Role::new(&name.role, name.instance, move |f: VerbsFabric| {
            let others = others.clone();
            in_time(f.clone(), async move {
                match system {
                    System::Store(placement) => store::role(f, placement, &others).await,
                    System::Log(alternative) => log::role(f, alternative, &others).await,
                }
            })
        }))
    }
}

impl Display for System {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        match self {
            System::Store(placement) => write!(f, "store-{placement}"),
            System::Log(alternative) => write!(f, "log-{alternative}"),
        }
    }
}

impl FromStr for System {
    type Err = String;
    fn from_str(text: &str) -> Result<System, String> {
        let stores = store::PLACEMENTS.map(System::Store);
        let logs = log::ALTERNATIVES.map(System::Log);
        let all: Vec<System> = stores.into_iter().chain(logs).collect();
        let names: Vec<String> = all.iter().map(System::to_string).collect();
        let found = names.iter().position(|name| name == text);
        found.map(|at| all[at]).ok_or_else(|| format!("`{text}` is not a system; choose one of {names:?}"))
    }
}

/// A role and where its process listens.
#[derive(Clone)]
pub struct Address {
    pub name: RoleName,
    pub address: SocketAddr,
}

/// The name of a role from `ROLE:INSTANCE`.
pub fn name(text: &str) -> Result<RoleName, String> {
    let parts = text.split_once(':').and_then(|(role, number)| Some((role, number.parse().ok()?)));
    let (role, instance) = parts.ok_or_else(|| format!("`{text}` is not ROLE:INSTANCE"))?;
    Ok(RoleName::new(role, instance))
}

impl FromStr for Address {
    type Err = String;
    fn from_str(text: &str) -> Result<Address, String> {
        let wrong = || format!("`{text}` is not ROLE:INSTANCE=IP:PORT");
        let (role, address) = text.split_once('=').ok_or_else(wrong)?;
        Ok(Address { name: name(role)?, address: address.parse().map_err(|_| wrong())? })
    }
}

/// Refuses what is not as expected.
pub fn same<T: PartialEq + Debug>(what: &str, is: T, expected: T) -> Verdict {
    if is == expected { Ok(()) } else { Err(format!("{what} is {is:?}, expected {expected:?}").into()) }
}

/// Tries until it works, as long as the other process may still be starting.
pub async fn at_last<T, E: Error + 'static>(
    f: &VerbsFabric,
    mut attempt: impl AsyncFnMut() -> Result<T, E>,
    is_early: impl Fn(&E) -> bool,
) -> Result<T, Box<dyn Error>> {
    let began = f.now();
    loop {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(error) if is_early(&error) && f.now() < began + RENDEZVOUS => {
                f.sleep(Time::from_ms(50)).await
            }
            Err(error) => return Err(error.into()),
        }
    }
}

/// A role's work, which no role that is well takes longer for.
pub async fn in_time(f: VerbsFabric, work: impl Future<Output = Verdict>) -> Verdict {
    let late = || Err(format!("still not done after {} s", LIMIT.ps() / 1_000_000_000_000).into());
    f.timeout(LIMIT, work).await.unwrap_or_else(late)
}

/// Serves until it is told to end, then answers with what `last_word` gives. A service that ends before is a
/// failure.
pub async fn until_told<E: Error + 'static>(
    f: &VerbsFabric,
    service: impl Future<Output = Result<(), E>>,
    last_word: impl AsyncFn() -> Result<u64, E>,
) -> Verdict {
    let socket = f.bind(END_PORT)?;
    let mut service = pin!(service);
    let from = {
        let mut bytes = [0; 8];
        let mut told = pin!(socket.receive_from(&mut bytes));
        poll_fn(|context| {
            if let Poll::Ready(told) = told.as_mut().poll(context) {
                return Poll::Ready(told.map_err(Into::into));
            }
            let ended = service.as_mut().poll(context).map(|ended| ended.map_err(Box::from));
            ended.map(|ended: Verdict| {
                Err(ended.err().unwrap_or_else(|| "the service ended by itself".into()))
            })
        })
        .await
        .map(|(_, from)| from)
    };
    let from = from.map_err(|error: Box<dyn Error>| error)?;
    let word = last_word().await?.to_le_bytes();
    // The answer may be lost, and is given again to who asks again.
    let again = async {
        socket.send_to(&word, &from).await?;
        let mut bytes = [0; 8];
        while let Ok((_, from)) = socket.receive_from(&mut bytes).await {
            socket.send_to(&word, &from).await?;
        }
        Ok::<(), DatagramError>(())
    };
    f.timeout(Time::from_ms(500), again).await.unwrap_or(Ok(()))?;
    Ok(())
}

/// Tells a service to end; gives its last word.
pub async fn end(f: &VerbsFabric, name: &RoleName) -> Result<u64, Box<dyn Error>> {
    let socket = f.bind(ASKING_PORT)?;
    for _ in 0..50 {
        socket.send_to(b"end", &PortAddress::new(&name.role, name.instance, END_PORT)).await?;
        let mut bytes = [0; 8];
        if let Some(answer) = f.timeout(Time::from_ms(100), socket.receive_from(&mut bytes)).await {
            answer?;
            return Ok(u64::from_le_bytes(bytes));
        }
    }
    Err(format!("{name} did not answer when told to end").into())
}

/// Runs roles; gives the first failure.
pub fn play(backend: Verbs, roles: Vec<Role<VerbsFabric, Verdict>>) -> Verdict {
    for outcome in backend.run(roles)?.outcomes {
        let name = outcome.name.to_string();
        outcome.end.finished().unwrap_or(Ok(())).map_err(|why| format!("{name}: {why}"))?;
    }
    Ok(())
}

/// A directory that goes with the test.
pub struct Temporary(pub PathBuf);

impl Temporary {
    pub fn new(name: &str) -> std::io::Result<Temporary> {
        let path = std::env::temp_dir().join(format!("offpath-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Temporary(path))
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // What cannot be removed harms no other test.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// All roles of a system in this process.
pub fn one_process(backend: &Verbs, system: &System) -> Verdict {
    let files = Temporary::new(&system.to_string())?;
    let roles = system.roles().iter().map(|name| system.function(name)).collect::<Result<_, _>>()?;
    play(backend.clone().directory(&files.0), roles)
}

/// One role of a system, the others by their addresses.
pub fn process(
    backend: &Verbs,
    system: &System,
    own: &Address,
    directory: &Path,
    peers: &[Address],
) -> Verdict {
    play(reachable(backend, own.address, peers).directory(directory), vec![system.function(&own.name)?])
}

/// The backend where this process listens at `own`, and others at theirs. It sleeps when it has nothing to do,
/// since several processes share few processors.
pub fn reachable(backend: &Verbs, own: SocketAddr, peers: &[Address]) -> Verbs {
    let backend = backend.clone().listen_at(own).waiting(Waiting::Events);
    peers
        .iter()
        .fold(backend, |backend, peer| backend.peer(&peer.name.role, peer.name.instance, peer.address))
}

/// A free address for each of some roles.
pub fn addresses(names: &[RoleName]) -> std::io::Result<Vec<Address>> {
    // All are held until all are found, so that none is given twice.
    let held: Vec<_> = names.iter().map(|_| TcpListener::bind("127.0.0.1:0")).collect::<Result<_, _>>()?;
    let named = names.iter().zip(&held);
    named.map(|(name, held)| Ok(Address { name: name.clone(), address: held.local_addr()? })).collect()
}

/// A role in a process of its own, killed where it has not ended when this is dropped.
pub struct Process(Child);

impl Process {
    pub fn start(system: &System, own: usize, all: &[Address], directory: &Path) -> std::io::Result<Process> {
        let mut command = Command::new(std::env::current_exe()?);
        let Address { name, address } = &all[own];
        let name = format!("{}:{}", name.role, name.instance);
        command.args(["role", &system.to_string(), &name, &address.to_string()]).arg(directory);
        for (_, peer) in all.iter().enumerate().filter(|(at, _)| *at != own) {
            command.arg(format!("{}:{}={}", peer.name.role, peer.name.instance, peer.address));
        }
        Ok(Process(command.spawn()?))
    }

    /// Kills it at once, as `kill -9` does.
    pub fn kill(&mut self) -> std::io::Result<()> {
        self.0.kill()?;
        self.0.wait().map(drop)
    }

    /// Waits for its end, which must be a good one.
    pub fn ended(mut self) -> Verdict {
        let status = self.0.wait()?;
        if status.success() { Ok(()) } else { Err(format!("a process ended with {status}").into()) }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // It may have ended before.
        let _ = self.kill();
    }
}

/// The using role here, each other one in a process of its own.
pub fn processes(backend: &Verbs, system: &System) -> Verdict {
    let files = Temporary::new(&system.to_string())?;
    let all = addresses(&system.roles())?;
    let started = (1..all.len()).map(|at| Process::start(system, at, &all, &files.0));
    let started = started.collect::<Result<Vec<_>, _>>()?;
    process(backend, system, &all[0], &files.0, &all[1..])?;
    started.into_iter().try_for_each(Process::ended)
}
