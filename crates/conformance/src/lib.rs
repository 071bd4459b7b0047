//! One body of tests that holds every backend to the fabric's contract.
//!
//! A backend's own test is two lines: run them all and look at the report. What a backend does not support
//! is *skipped and printed*; a skip never counts as a pass.
//!
//! ```
//! use offpath_conformance::run_all;
//! use offpath_fabric::local::{LocalClock, Local};
//! let report = run_all(&|seed| Local::new(seed).clock(LocalClock::Manual));
//! assert!(report.failed().is_empty(), "{report}");
//! ```
//!
//! | backend | supports | rejects |
//! |---|---|---|
//! | `local` | RC, UD, all verbs, global atomics, DMA where an engine is named, datagrams, files, deadlock reports | on-demand paging, faults |
//! | twin | RC, UD, all verbs, atomics as the profile says, its DMA engines, datagrams, files, faults, virtual time, deadlock reports | on-demand paging |
//! | verbs | RC, all verbs, datagrams, files; as the device has them: UD, atomics, on-demand paging | DMA engines, faults, virtual time, deadlock reports |
//!
//! The header of a [`ConformanceReport`] prints the same from the backend's own [`Capabilities`].

use offpath_fabric::{Backend, Capabilities, Fabric, Role, RoleEnd};
use offpath_quantity::Time;
use std::cell::RefCell;
use std::error::Error;
use std::fmt;
use std::rc::Rc;

mod context;
mod link;
mod one_sided;
mod refusals;
mod two_sided;

/// Makes a backend whose randomness follows from a seed.
pub type Make<'a, W> = &'a dyn Fn(u64) -> W;

pub(crate) type Failure = Box<dyn Error>;
pub(crate) type Verdict = Result<(), Failure>;

/// One property of the contract.
pub struct ContractCase<W> {
    /// What it is called in reports.
    pub name: &'static str,
    /// What must be supported: `None` where it is, else what is missing.
    missing: fn(&Capabilities) -> Option<&'static str>,
    run: fn(Make<'_, W>) -> Verdict,
}

/// How a case ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseResult {
    /// The property holds.
    Passed,
    /// The backend does not support what it needs.
    Skipped(&'static str),
    /// It does not hold, and why.
    Failed(String),
}

impl CaseResult {
    /// The line that a report prints for the case `name`.
    pub fn line(&self, name: &str) -> String {
        match self {
            CaseResult::Passed => format!("pass {name}"),
            CaseResult::Skipped(missing) => format!("SKIP {name}: the backend has no {missing}"),
            CaseResult::Failed(why) => format!("FAIL {name}: {why}"),
        }
    }
}

/// What came of every case on one backend.
#[derive(Clone, Debug)]
pub struct ConformanceReport {
    /// What the backend says of itself.
    pub capabilities: Capabilities,
    /// Every case in order.
    pub results: Vec<(&'static str, CaseResult)>,
}

impl ConformanceReport {
    /// The cases that failed.
    pub fn failed(&self) -> Vec<&'static str> {
        self.named(|result| matches!(result, CaseResult::Failed(_)))
    }

    /// The cases that were skipped.
    pub fn skipped(&self) -> Vec<&'static str> {
        self.named(|result| matches!(result, CaseResult::Skipped(_)))
    }

    fn named(&self, which: impl Fn(&CaseResult) -> bool) -> Vec<&'static str> {
        self.results.iter().filter(|(_, result)| which(result)).map(|(name, _)| *name).collect()
    }
}

impl fmt::Display for ConformanceReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let c = &self.capabilities;
        writeln!(f, "backend {}: atomics {:?}", c.backend, c.atomics)?;
        for (feature, there) in [
            ("UD queue pairs", c.ud),
            ("DMA engine", c.dma),
            ("on-demand paging", c.on_demand_paging),
            ("faults", c.faults),
            ("virtual time", c.virtual_time),
            ("deadlock reports", c.deadlock_detection),
        ] {
            writeln!(f, "  {} {feature}", if there { "supports" } else { "rejects " })?;
        }
        for (name, result) in &self.results {
            writeln!(f, "{}", result.line(name))?;
        }
        let (failed, skipped) = (self.failed().len(), self.skipped().len());
        let passed = self.results.len() - failed - skipped;
        write!(f, "{passed} passed, {skipped} skipped, {failed} failed")
    }
}

/// Every case, in the order in which they run.
pub fn all<W: Backend>() -> Vec<ContractCase<W>> {
    let always: fn(&Capabilities) -> Option<&'static str> = |_| None;
    let ud: fn(&Capabilities) -> Option<&'static str> = |c| (!c.ud).then_some("UD queue pairs");
    let dma: fn(&Capabilities) -> Option<&'static str> = |c| (!c.dma).then_some("DMA engine");
    let atomics: fn(&Capabilities) -> Option<&'static str> =
        |c| (c.atomics == offpath_fabric::Atomics::None).then_some("atomics");
    let deadlock: fn(&Capabilities) -> Option<&'static str> =
        |c| (!c.deadlock_detection).then_some("deadlock reports");
    macro_rules! cases {
        ($($module:ident::$name:ident needs $needs:ident,)*) => {
            vec![$(ContractCase { name: stringify!($name), missing: $needs, run: $module::$name::<W> },)*]
        };
    }
    cases![
        one_sided::ordering needs always,
        one_sided::one_sided_visibility needs always,
        one_sided::unsignaled_accounting needs always,
        one_sided::queue_overflow needs always,
        one_sided::batch_posting needs always,
        one_sided::inline_limit needs always,
        one_sided::zero_length needs always,
        one_sided::large_payload needs always,
        one_sided::future_dropped_in_mid_flight needs always,
        one_sided::fenced_after_read needs always,
        one_sided::atomic_results needs atomics,
        one_sided::atomics_under_concurrency needs atomics,
        one_sided::dma_copies needs dma,
        two_sided::immediate_data needs always,
        two_sided::send_longer_than_receive needs always,
        two_sided::receiver_not_ready needs always,
        two_sided::ud_drops_without_receive needs ud,
        two_sided::ud_loss needs ud,
        two_sided::datagrams needs always,
        refusals::wrong_key needs always,
        refusals::missing_right needs always,
        refusals::out_of_range needs always,
        refusals::unaligned_atomic needs atomics,
        refusals::deregistered_region needs always,
        refusals::peer_gone_mid_operation needs always,
        refusals::peer_gone_is_learnt_by_a_request needs always,
        refusals::connection_refusals needs always,
        refusals::region_refusals needs always,
        refusals::unsupported_is_refused needs always,
        context::files needs always,
        context::timers_in_order needs always,
        context::due_sleeps_let_others_run needs always,
        context::randomness needs always,
        context::spawn_and_join needs always,
        context::role_names needs always,
        context::bad_roles needs always,
        context::deadlock_is_reported needs deadlock,
    ]
}

/// Runs every case, each on backends of its own that `make` gives. Printing the report is the caller's.
pub fn run_all<W: Backend>(make: Make<'_, W>) -> ConformanceReport {
    run_each(make, |_, _| {})
}

/// The same, telling `progress` of every case as it ends: for backends on which a case may take long.
pub fn run_each<W: Backend>(
    make: Make<'_, W>,
    mut progress: impl FnMut(&str, &CaseResult),
) -> ConformanceReport {
    let capabilities = make(0).capabilities();
    let run = |case: ContractCase<W>| {
        let result = match (case.missing)(&capabilities) {
            Some(missing) => CaseResult::Skipped(missing),
            None => match (case.run)(make) {
                Ok(()) => CaseResult::Passed,
                Err(why) => CaseResult::Failed(why.to_string()),
            },
        };
        progress(case.name, &result);
        (case.name, result)
    };
    let results = all::<W>().into_iter().map(run).collect();
    ConformanceReport { capabilities, results }
}

/// How long a role may take where a deadlock would not be reported.
const PATIENCE: Time = Time::from_ms(30_000);

/// Runs roles whose verdicts must all be good.
pub(crate) fn play<W: Backend>(backend: W, roles: Vec<Role<W::Fabric, Verdict>>) -> Verdict {
    // A role that fails leaves its peer waiting; the first failure is the one to tell.
    let first: Rc<RefCell<Option<String>>> = Rc::default();
    let watched = !backend.capabilities().deadlock_detection;
    let guard = |role: Role<W::Fabric, Verdict>| {
        let function = role.function.clone();
        let (name, main) = (role.name, role.main);
        let first = first.clone();
        let guarded = Role::new(&name.role, name.instance, move |fabric: W::Fabric| {
            let (work, first) = (function(fabric.clone()), first.clone());
            async move {
                // A timer would hide a deadlock from a backend that reports it.
                let verdict = if watched {
                    let late = || Err(format!("still waiting after {PATIENCE}").into());
                    fabric.timeout(PATIENCE, work).await.unwrap_or_else(late)
                } else {
                    work.await
                };
                if let Err(why) = &verdict {
                    first.borrow_mut().get_or_insert_with(|| format!("{}: {why}", fabric.role()));
                }
                verdict
            }
        });
        if main { guarded } else { guarded.in_background() }
    };
    let run = backend.run(roles.into_iter().map(guard).collect());
    if let Some(why) = first.take() {
        return Err(why.into());
    }
    match run?.outcomes.into_iter().find(|outcome| matches!(outcome.end, RoleEnd::Crashed)) {
        Some(outcome) => Err(format!("{} crashed", outcome.name).into()),
        None => Ok(()),
    }
}

/// Runs a client and a server.
pub(crate) fn two<W: Backend, A, B>(
    make: Make<'_, W>,
    client: impl Fn(W::Fabric) -> A + 'static,
    server: impl Fn(W::Fabric) -> B + 'static,
) -> Verdict
where
    A: Future<Output = Verdict> + 'static,
    B: Future<Output = Verdict> + 'static,
{
    play(make(1), vec![Role::new("client", 0, client), Role::new("server", 0, server)])
}

/// A verdict of what should be equal.
pub(crate) fn same<T: PartialEq + fmt::Debug>(what: &str, is: T, expected: T) -> Verdict {
    if is == expected { Ok(()) } else { Err(format!("{what} is {is:?}, expected {expected:?}").into()) }
}

/// A verdict of what should hold.
pub(crate) fn holds(condition: bool, otherwise: &str) -> Verdict {
    if condition { Ok(()) } else { Err(otherwise.into()) }
}

/// A little time, for what is in flight to happen.
pub(crate) async fn a_while<F: Fabric>(fabric: &F) {
    fabric.sleep(Time::from_ms(5)).await;
}
