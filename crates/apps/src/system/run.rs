//! Running a system for its users, and serving its roles to runs in other processes.

use super::declare::About;
use super::page::RunPage;
use super::values::Given;
use crate::Stop;
use miette::{MietteDiagnostic, Report};
use offpath_fabric::{Fabric, Role, RoleName};
use offpath_quantity::Time;
use serde::Serialize;
use std::fmt;
use std::path::Path;
use std::rc::Rc;

/// Why nothing was run, or what a run ended in.
#[derive(Debug)]
pub struct Refusal {
    /// Whether the input is wrong, and not the run.
    pub is_input: bool,
    /// The message and the next step.
    pub report: Report,
}

impl Refusal {
    /// Wrong input where `is_input`, else a run that failed; an empty `help` is none.
    pub fn new(is_input: bool, message: impl fmt::Display, help: impl Into<String>) -> Refusal {
        let (message, help) = (MietteDiagnostic::new(message.to_string()), help.into());
        let diagnostic = if help.is_empty() { message } else { message.with_help(help) };
        Refusal { is_input, report: diagnostic.into() }
    }

    /// Wrong input.
    pub fn input(message: impl fmt::Display, help: impl Into<String>) -> Refusal {
        Refusal::new(true, message, help)
    }

    /// An option that nothing reads: who gives it expects that it does something.
    pub fn unread(option: &str, why: &str) -> Refusal {
        Refusal::input(format!("`{option}` {why}"), format!("leave `{option}` out, or change what it is for"))
    }
}

/// The kinds of backends that a system is run in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BackendKind {
    /// One process without a network.
    Local,
    /// The twin of a card.
    Twin,
    /// Real queue pairs.
    Verbs,
}

/// What surrounds a run, before anything is opened.
#[derive(Clone, Copy)]
pub struct RunSetting<'a> {
    /// The kind of backend.
    pub backend: BackendKind,
    /// Whether other processes have other roles.
    pub connects: bool,
    /// How long a silent peer is waited for, where it is said.
    pub patience: Option<Time>,
    /// What is drawn.
    pub seed: u64,
    /// The version of the answers that `offpath plan` writes.
    pub plan_version: u32,
    /// Says a warning.
    pub tell: &'a dyn Fn(&str),
}

/// The only DMA engine of the local backend, where a system is run there; it has the name of the shipped cards'.
pub const LOCAL_ENGINE: &str = "dma";

/// A backend as an answer names it.
#[derive(Clone, Debug, Default, Serialize)]
pub struct BackendReport {
    /// The backend that it ran in.
    pub backend: &'static str,
    /// The twin's device, or the RDMA device; null without one.
    pub device: Option<String>,
    /// The twin's testbed; null elsewhere.
    pub testbed: Option<String>,
    /// The card's mode on the twin; null elsewhere.
    pub mode: Option<String>,
    /// Overlays and settings of the twin, in the order in which they were applied.
    pub overlays: Vec<String>,
    /// All of that in words.
    #[serde(skip)]
    pub line: String,
}

/// What is done once, at a moment of a run.
pub type Act = Box<dyn FnOnce()>;

/// Which part of a run is measured.
#[derive(Clone)]
pub struct MeasuredSpan {
    /// Whether all that is measured is at work.
    pub begun: Rc<dyn Fn() -> bool>,
    /// How long it works before it counts.
    pub warm_up: Time,
    /// Takes what is to be done when the measured window ends. It is not done where the run ends first.
    pub at_end: Rc<dyn Fn(Act)>,
}

/// The roles of some parts, each of which gives an answer or an error.
pub type Roles<F, P> = Vec<Role<F, Answered<P>>>;

/// What a role of some parts gives.
pub type Answered<P> = Result<<P as Parts>::Answer, <P as Parts>::Error>;

/// Roles of a system that run in one process.
pub trait Parts {
    /// What a role gives.
    type Answer: Default + 'static;
    /// Why it gives none.
    type Error: 'static;

    /// The system.
    fn about(&self) -> &'static About;

    /// The roles. `count_events` reads the backend's counter of events where it has one.
    fn roles<F: Fabric>(&self, count_events: Option<fn(&F) -> u64>) -> Roles<F, Self>;

    /// Which part of the run is measured; `None` for the whole run.
    fn measured(&self) -> Option<MeasuredSpan> {
        None
    }

    /// Where files lie; `None` for a temporary directory. The twin's files are its own.
    fn directory(&self) -> Option<&Path> {
        None
    }
}

/// What the roles of a run gave.
pub struct Gave<P: Parts + ?Sized> {
    /// In the order of the roles; those that were stopped at the end gave nothing.
    pub answers: Vec<(RoleName, Answered<P>)>,
    /// How long the run took, by the backend's clock.
    pub elapsed: Time,
}

/// What a run says.
pub struct Said<R> {
    /// As data.
    pub report: R,
    /// For people.
    pub page: RunPage,
    /// Whether the system did what it promises.
    pub holds: bool,
}

/// A run of a system for its users.
pub trait SystemRun: Parts + Sized {
    /// What it says, as data with units in its names.
    type Report: Serialize;

    /// The run that a user asks for.
    fn of(given: &Given, setting: &RunSetting<'_>) -> Result<Self, Refusal>;

    /// The roles that its users look for, which may be in other processes.
    fn servers(&self) -> Vec<RoleName>;

    /// Says what a user should know of this run on a backend.
    fn opened(&self, _backend: &BackendReport, _setting: &RunSetting<'_>) {}

    /// What the run says once it ended.
    fn said(&self, gave: Gave<Self>, setting: &RunSetting<'_>) -> Result<Said<Self::Report>, Refusal>;
}

/// Roles of a system that are served until they are asked to stop.
pub trait Serve: Parts + Sized {
    /// The roles that a user asks for; they end once `stop` is asked.
    fn of(given: &Given, setting: &RunSetting<'_>, stop: Stop) -> Result<Self, Refusal>;

    /// Their names.
    fn names(&self) -> Vec<RoleName>;

    /// The roles in other processes that they look for.
    fn needs(&self) -> Vec<RoleName>;

    /// What they did, a line each, or why one failed.
    fn said(&self, gave: Gave<Self>) -> Vec<Result<String, Refusal>>;
}

/// What to do about a peer that is not there.
pub const CONNECTION_HELP: &str =
    "start the other processes with `offpath serve`, and check `--connect` and `--listen`";
