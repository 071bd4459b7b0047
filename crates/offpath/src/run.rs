//! The applications in every backend: which roles run where, and what a run gives.
//!
//! An [`OpenedBackend`] is a backend that is ready to run, and [`SystemRoles`] are the roles of a system that run in it: the
//! [`YcsbRun`] or the [`Logged`] log with everything or with what uses the others alone, and what serves them,
//! [`StoreServers`] and [`LogServers`].
//!
//! ```
//! use offpath::apps::kv;
//! use offpath::run::{OpenedBackend, YcsbRun, Surroundings, play};
//! use offpath::workload::Workload;
//!
//! let workload = Workload::parse("recordcount=100\noperationcount=50\n", "mine")?;
//! let options = kv::StoreConfig::of_workload(&workload)?;
//! let store = YcsbRun { options, load: kv::ClientLoad::of_workload(workload), shared: kv::DriveState::new(1), serves: true };
//! let ended = play(OpenedBackend::Local, &store, &Surroundings { seed: 7, directory: None, engine: None })?;
//! let (_, report) = &ended.answers[0];
//! assert_eq!(report.as_ref().map(kv::ClientReport::total), Ok(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use offpath_apps::{kv, replog};
use offpath_fabric::local::Local;
use offpath_fabric::{Backend, ConnectError, Fabric, Role, RoleName, Run, RunError};
use offpath_quantity::Time;
use offpath_route::{Router, StationKind};
use offpath_twin::backend::{Observer, Snapshot};
use offpath_twin::{TwinBackend, TwinFabric, Usage};
use offpath_verbs::Verbs;
use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::path::PathBuf;
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};

/// The role of a second backup on the twin: no path runs between two machines of one kind, so it is on a
/// client's.
pub const TAIL: &str = "tail";
/// The role that looks at the twin's stations when the measurement begins.
const WATCH: &str = "watch";
/// How often it looks whether that is so.
const LOOK_EVERY: Time = Time::from_us(5);
/// How often servers look whether they are to end.
const STOP_EVERY: Time = Time::from_ms(20);

/// A backend that is ready to run.
pub enum OpenedBackend {
    /// The idle twin of a system.
    Twin(Arc<Router>),
    /// This process, without a network.
    Local,
    /// Real queue pairs.
    Verbs(Box<Verbs>),
}

/// What a run is given beside its roles.
#[derive(Clone, Debug)]
pub struct Surroundings {
    /// What randomness follows from.
    pub seed: u64,
    /// Where files lie; `None` for a temporary directory. The twin's files are its own.
    pub directory: Option<PathBuf>,
    /// The DMA engine of the local backend.
    pub engine: Option<String>,
}

/// Tells whether the measurement has begun.
pub type Begun = Rc<dyn Fn() -> bool>;

/// Roles of a system.
pub trait SystemRoles {
    /// What a role gives.
    type Answer: Default + 'static;
    /// Why it gives none.
    type Error: 'static;

    /// The roles. `count_events` reads the backend's counter of events where it has one.
    fn roles<F: Fabric>(&self, count_events: Option<fn(&F) -> u64>) -> Roles<F, Self>;

    /// When the measurement begins, and how long after that it counts; `None` for the whole run.
    fn measured(&self) -> Option<(Begun, Time)> {
        None
    }
}

/// The roles of some parts, each of which gives an answer or an error.
pub type Roles<F, P> = Vec<Role<F, Result<<P as SystemRoles>::Answer, <P as SystemRoles>::Error>>>;

/// A run that ended.
#[derive(Debug)]
pub struct Ended<T> {
    /// What each role gave, in the order of the roles; those that were stopped at the end gave nothing.
    pub answers: Vec<(RoleName, T)>,
    /// How long the run took, by the backend's clock.
    pub elapsed: Time,
    /// How busy each station of the twin was while it was measured, the busiest first.
    pub busy: Vec<Busiest>,
}

/// The busiest machine of its role at a station: the mean over machines would hide a full one.
#[derive(Clone, Debug, PartialEq)]
pub struct Busiest {
    /// The station.
    pub station: String,
    /// The role whose machines have it.
    pub role: String,
    /// Which of those machines it is, from 1.
    pub machine: u32,
    /// How many there are.
    pub machines: u64,
    /// The share of its time that it was busy there.
    pub share: f64,
}

/// A run of some parts that ended.
pub type Played<P> = Ended<Result<<P as SystemRoles>::Answer, <P as SystemRoles>::Error>>;

/// Runs roles in a backend.
pub fn play<P: SystemRoles>(
    place: OpenedBackend,
    parts: &P,
    around: &Surroundings,
) -> Result<Played<P>, RunError> {
    match place {
        OpenedBackend::Twin(router) => on_twin(&router, parts, around),
        OpenedBackend::Local => {
            let mut backend = Local::new(around.seed);
            if let Some(directory) = &around.directory {
                backend = backend.directory(directory);
            }
            if let Some(engine) = &around.engine {
                backend = backend.dma_engine(engine);
            }
            Ok(ended(backend.run(parts.roles(None))?, Vec::new()))
        }
        OpenedBackend::Verbs(backend) => {
            let mut backend = backend.seed(around.seed);
            if let Some(directory) = &around.directory {
                backend = backend.directory(directory);
            }
            Ok(ended(backend.run(parts.roles(None))?, Vec::new()))
        }
    }
}

fn ended<T>(run: Run<T>, busy: Vec<Busiest>) -> Ended<T> {
    let answers = run.outcomes.into_iter().filter(|outcome| outcome.name.role != WATCH);
    let answers = answers.filter_map(|outcome| Some((outcome.name, outcome.end.finished()?))).collect();
    Ended { answers, elapsed: run.elapsed, busy }
}

fn on_twin<P: SystemRoles>(
    router: &Arc<Router>,
    parts: &P,
    around: &Surroundings,
) -> Result<Played<P>, RunError> {
    let observer = Observer::new();
    let mut roles =
        parts.roles(Some((|fabric: &TwinFabric| fabric.snapshot().events) as fn(&TwinFabric) -> u64));
    let before: Rc<RefCell<Snapshot>> = Rc::default();
    if let Some((begun, warm_up)) = parts.measured() {
        let seen = before.clone();
        let watch = Role::new(WATCH, 0, move |fabric: TwinFabric| {
            let (begun, seen) = (begun.clone(), seen.clone());
            async move {
                while !begun() {
                    fabric.sleep(LOOK_EVERY).await;
                }
                fabric.sleep(warm_up).await;
                seen.replace(fabric.snapshot());
                Ok(P::Answer::default())
            }
        });
        roles.push(watch.in_background());
    }
    let backend = TwinBackend::on(router.clone(), around.seed)
        .with_placement(WATCH, "host")
        .with_placement(TAIL, "client")
        .with_observer(&observer);
    let run = backend.run(roles)?;
    let of = |usage: Usage| {
        let station = &router.stations()[usage.station.index()];
        let (machine, share) = usage.fullest()?;
        // A pool counts requests, and one server's share of them says nothing here.
        (!matches!(station.kind, StationKind::Pool { .. })).then(|| Busiest {
            station: station.name.clone(),
            role: router.system().machines[station.machine].role.clone(),
            machine: machine + 1,
            machines: station.instances,
            share,
        })
    };
    let mut busy: Vec<_> =
        observer.last().usage(&before.borrow(), router).into_iter().filter_map(of).collect();
    busy.sort_by(|one, other| {
        other.share.total_cmp(&one.share).then_with(|| one.station.cmp(&other.station))
    });
    Ok(ended(run, busy))
}

/// YCSB against the key-value store.
pub struct YcsbRun {
    /// The store's shape.
    pub options: kv::StoreConfig,
    /// What each client does.
    pub load: kv::ClientLoad,
    /// What the clients share; it says how many there are.
    pub shared: Rc<kv::DriveState>,
    /// Whether host and card run here as well.
    pub serves: bool,
}

impl SystemRoles for YcsbRun {
    type Answer = kv::ClientReport;
    type Error = kv::DriveError;

    fn roles<F: Fabric>(&self, count_events: Option<fn(&F) -> u64>) -> Roles<F, YcsbRun> {
        let mut roles = kv::roles(&self.options, &self.load, &self.shared, count_events);
        let homes = homes_of(self.options.placement);
        roles.retain(|role| {
            let home = homes.iter().any(|home| home.role() == role.name.role);
            role.main || (self.serves && home)
        });
        roles
    }

    fn measured(&self) -> Option<(Begun, Time)> {
        let shared = self.shared.clone();
        let sessions = u64::from(shared.clients) * u64::from(self.load.sessions);
        Some((Rc::new(move || shared.ready.get() >= sessions || shared.stop.is_asked()), self.load.warm_up))
    }
}

/// The sides of the memory server that a placement uses: without a card where it needs none.
pub fn homes_of(placement: kv::Placement) -> Vec<kv::Home> {
    match placement {
        kv::Placement::HostOneSided => vec![kv::Home::Host],
        _ => vec![kv::Home::Host, kv::Home::Soc],
    }
}

/// Whether a peer may be there yet.
fn is_early(error: &ConnectError) -> bool {
    matches!(error, ConnectError::Timeout { .. })
}

/// Sides of the store's memory server, which run until they are asked to stop.
pub struct StoreServers {
    /// The store's shape.
    pub options: kv::StoreConfig,
    /// Which sides.
    pub homes: Vec<kv::Home>,
    /// Asks for the end.
    pub stop: kv::Stop,
}

impl SystemRoles for StoreServers {
    type Answer = kv::Served;
    type Error = kv::KvError;

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, StoreServers> {
        let of = |home: &kv::Home| {
            let (home, options, stop) = (*home, self.options.clone(), self.stop.clone());
            Role::new(home.role(), 0, move |fabric: F| {
                let (options, stop) = (options.clone(), stop.clone());
                async move {
                    let served = loop {
                        match kv::serve(fabric.clone(), home, options.clone(), &stop).await {
                            // The host may be started after its card.
                            Err(kv::KvError::Connect(error)) if is_early(&error) && !stop.is_asked() => {
                                fabric.sleep(STOP_EVERY).await;
                            }
                            served => break served,
                        }
                    };
                    // One side alone serves nobody.
                    stop.ask();
                    served
                }
            })
        };
        self.homes.iter().map(of).collect()
    }
}

/// Writes to the replicated log.
pub struct Logged {
    /// The log's shape.
    pub options: replog::LogConfig,
    /// What is written.
    pub load: replog::WriteLoad,
    /// Whether card and backups run here as well.
    pub serves: bool,
}

/// The roles beside the primary that a log uses.
pub fn followers_of(options: &replog::LogConfig) -> Vec<RoleName> {
    let needs_card = options.alternative != replog::LogAlternative::HostWrite && !options.chain.is_empty();
    needs_card.then(|| RoleName::new("soc", 0)).into_iter().chain(options.chain.iter().cloned()).collect()
}

/// What a role beside the primary does; it ends by an error alone.
async fn follow<F: Fabric>(fabric: F, options: replog::LogConfig) -> Result<(), replog::LogError> {
    if fabric.role().role == "soc" {
        replog::card(fabric, options).await
    } else {
        replog::backup(fabric, options).await
    }
}

/// Whether one of the others of a log has ended, and who waits to hear of it.
#[derive(Default)]
struct Lost {
    is_lost: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Lost {
    fn tell(&self) {
        self.is_lost.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// What `work` gives, or nothing where another ended before: a primary waits for a backup that is down, and one
    /// that ended in this very run does not come back.
    async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(answer) = work.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            self.waker.replace(Some(context.waker().clone()));
            if self.is_lost.get() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}

impl SystemRoles for Logged {
    type Answer = Option<replog::Driven>;
    type Error = replog::LogError;

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, Logged> {
        let (options, load) = (self.options.clone(), self.load);
        let lost: Rc<Lost> = Rc::default();
        let heard = lost.clone();
        let mut roles = vec![Role::new("host", 0, move |fabric: F| {
            let (options, heard) = (options.clone(), heard.clone());
            async move { heard.or(replog::drive(&fabric, &options, &load)).await.transpose() }
        })];
        if self.serves {
            roles.extend(followers_of(&self.options).into_iter().map(|name| {
                let (options, lost) = (self.options.clone(), lost.clone());
                let function = move |fabric: F| {
                    let (options, lost) = (options.clone(), lost.clone());
                    async move {
                        let ended = follow(fabric, options).await;
                        lost.tell();
                        ended.map(|()| None)
                    }
                };
                Role::new(&name.role, name.instance, function).in_background()
            }));
        }
        roles
    }
}

/// The card or backups of a log, which run until they are asked to stop.
pub struct LogServers {
    /// The log's shape.
    pub options: replog::LogConfig,
    /// Which roles.
    pub names: Vec<RoleName>,
    /// Asks for the end.
    pub stop: kv::Stop,
}

impl SystemRoles for LogServers {
    type Answer = ();
    type Error = replog::LogError;

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, LogServers> {
        let of = |name: &RoleName| {
            let (options, stop) = (self.options.clone(), self.stop.clone());
            let function = move |fabric: F| {
                let (options, stop) = (options.clone(), stop.clone());
                async move {
                    let ended = follow(fabric, options).await;
                    // What has failed is told, and not waited for.
                    stop.ask();
                    ended
                }
            };
            Role::new(&name.role, name.instance, function).in_background()
        };
        let stop = self.stop.clone();
        let until = Role::new("stop", 0, move |fabric: F| {
            let stop = stop.clone();
            async move {
                stop.wait(&fabric, STOP_EVERY).await;
                Ok(())
            }
        });
        self.names.iter().map(of).chain([until]).collect()
    }
}
