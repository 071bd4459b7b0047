//! Systems in every backend: which roles run where, and what a run gives.
//!
//! An [`OpenedBackend`] is a backend that is ready to run, and [`Parts`] are the roles of a system that run in it.
//!
//! ```
//! use offpath::apps::kv;
//! use offpath::run::{OpenedBackend, play};
//! use offpath::workload::Workload;
//!
//! let workload = Workload::parse("recordcount=100\noperationcount=50\n", "mine")?;
//! let options = kv::StoreConfig::of_workload(&workload)?;
//! let clients = kv::Clients::new(options, kv::ClientLoad::of_workload(workload), 1);
//! let (gave, _) = play(OpenedBackend::Local, &clients, 7)?;
//! let (_, report) = &gave.answers[0];
//! assert_eq!(report.as_ref().map(kv::ClientReport::total), Ok(50));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use offpath_answers::run::BusyAnswer;
pub use offpath_answers::run::RunAnswer;
use offpath_apps::system::{
    Answered, AppSystem, BackendReport, Gave, LOCAL_ENGINE, MeasuredSpan, Parts, Refusal, RunSetting,
    SystemRun,
};
use offpath_fabric::local::Local;
use offpath_fabric::{Backend, Fabric, Role, Run, RunError};
use offpath_quantity::Time;
use offpath_route::{Router, StationKind};
use offpath_twin::backend::{Observer, Snapshot};
use offpath_twin::{TwinBackend, TwinFabric, Usage};
use offpath_verbs::Verbs;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

/// The role that looks at the twin's stations when the measurement begins and ends.
const WATCH: &str = "watch";
/// How often it looks whether that is so.
const LOOK_EVERY: Time = Time::from_us(5);

/// A backend that is ready to run.
pub enum OpenedBackend {
    /// The idle twin of a system.
    Twin(Arc<Router>),
    /// This process, without a network.
    Local,
    /// Real queue pairs.
    Verbs(Box<Verbs>),
}

/// Runs a system for its users on a backend, as `offpath run` does: what they saw, and how busy the stations of the twin were.
///
/// # Errors
/// Where the run stops, and where the system says that it failed.
pub fn run<S: AppSystem>(
    place: OpenedBackend,
    backend: BackendReport,
    parts: &S::Run,
    setting: &RunSetting<'_>,
) -> Result<RunAnswer<<S::Run as SystemRun>::Report>, Stopped> {
    let (gave, busy) = play(place, parts, setting.seed).map_err(Stopped::Run)?;
    let said = parts.said(gave, setting).map_err(Stopped::Refused)?;
    Ok(RunAnswer::of(S::ABOUT.name, backend, said, busy))
}

/// Why a run has no answer.
#[derive(Debug)]
pub enum Stopped {
    /// The backend stopped it.
    Run(RunError),
    /// The system says that it failed.
    Refused(Refusal),
}

/// Runs roles on a backend, randomness following from `seed`: what they gave, and how busy each station of the twin was
/// while it was measured, the busiest first.
pub fn play<P: Parts>(
    place: OpenedBackend,
    parts: &P,
    seed: u64,
) -> Result<(Gave<P>, Vec<BusyAnswer>), RunError> {
    match place {
        OpenedBackend::Twin(router) => on_twin(&router, parts, seed),
        OpenedBackend::Local => {
            let mut backend = Local::new(seed).dma_engine(LOCAL_ENGINE);
            if let Some(directory) = parts.directory() {
                backend = backend.directory(directory);
            }
            Ok((gave(backend.run(parts.roles(None))?), Vec::new()))
        }
        OpenedBackend::Verbs(backend) => {
            let mut backend = backend.seed(seed);
            if let Some(directory) = parts.directory() {
                backend = backend.directory(directory);
            }
            Ok((gave(backend.run(parts.roles(None))?), Vec::new()))
        }
    }
}

fn gave<P: Parts>(run: Run<Answered<P>>) -> Gave<P> {
    let answers = run.outcomes.into_iter().filter(|outcome| outcome.name.role != WATCH);
    let answers = answers.filter_map(|outcome| Some((outcome.name, outcome.end.finished()?))).collect();
    Gave { answers, elapsed: run.elapsed }
}

fn on_twin<P: Parts>(
    router: &Arc<Router>,
    parts: &P,
    seed: u64,
) -> Result<(Gave<P>, Vec<BusyAnswer>), RunError> {
    let observer = Observer::new();
    let mut roles =
        parts.roles(Some((|fabric: &TwinFabric| fabric.snapshot().events) as fn(&TwinFabric) -> u64));
    let before: Rc<RefCell<Snapshot>> = Rc::default();
    let after: Rc<RefCell<Option<Snapshot>>> = Rc::default();
    let measured = parts.measured();
    if let Some(measured) = &measured {
        let (measured, seen, ended) = (measured.clone(), before.clone(), after.clone());
        let watch = Role::new(WATCH, 0, move |fabric: TwinFabric| {
            let (MeasuredSpan { begun, warm_up, at_end }, seen) = (measured.clone(), seen.clone());
            let ended = ended.clone();
            async move {
                while !begun() {
                    fabric.sleep(LOOK_EVERY).await;
                }
                fabric.sleep(warm_up).await;
                seen.replace(fabric.snapshot());
                // A timer of its own would be an event that the operations did not need.
                at_end(Box::new(move || drop(ended.replace(Some(fabric.snapshot())))));
                Ok(P::Answer::default())
            }
        });
        roles.push(watch.in_background());
    }
    let backend =
        TwinBackend::on(router.clone(), seed).with_placement(WATCH, "host").with_observer(&observer);
    let placed = parts.about().placed.iter();
    let backend = placed.fold(backend, |backend, (role, at)| backend.with_placement(role, at));
    let run = backend.run(roles);
    if let Some(measured) = measured {
        // What was not done holds a fabric.
        (measured.at_end)(Box::new(|| ()));
    }
    let run = run?;
    let of = |usage: Usage| {
        let station = &router.stations()[usage.station.index()];
        let (machine, share) = usage.fullest()?;
        // A pool counts requests, and one server's share of them says nothing here.
        (!matches!(station.kind, StationKind::Pool { .. })).then(|| BusyAnswer {
            station: station.name.clone(),
            role: router.system().machines[station.machine].role.clone(),
            machine: machine + 1,
            machines: station.instances,
            utilization: share,
        })
    };
    // After the window the last operations end, outside of what was measured.
    let last = after.take().unwrap_or_else(|| observer.last());
    let mut busy: Vec<_> = last.usage(&before.borrow(), router).into_iter().filter_map(of).collect();
    busy.sort_by(|one, other| {
        other.utilization.total_cmp(&one.utilization).then_with(|| one.station.cmp(&other.station))
    });
    Ok((gave(run), busy))
}
