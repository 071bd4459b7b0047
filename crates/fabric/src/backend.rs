//! Backends, and the roles that they run.

use crate::error::RunError;
use crate::{Fabric, LocalBoxFuture};
use offpath_quantity::Time;
use std::fmt;
use std::future::Future;
use std::rc::Rc;

/// A role and which instance of it; prints as `client[0]`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoleName {
    /// The role.
    pub role: String,
    /// The instance, from 0.
    pub instance: u32,
}

impl RoleName {
    /// Instance `instance` of `role`.
    pub fn new(role: &str, instance: u32) -> RoleName {
        RoleName { role: role.to_string(), instance }
    }
}

impl fmt::Display for RoleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{}]", self.role, self.instance)
    }
}

/// What a role does: it may be started again after a crash, so it is callable more than once.
pub type RoleFunction<F, T> = Rc<dyn Fn(F) -> LocalBoxFuture<T>>;

/// A role to run.
pub struct Role<F, T> {
    /// Its name and instance.
    pub name: RoleName,
    /// Whether the run lasts until it ends; others are stopped when the last main role ends.
    pub main: bool,
    /// What it does.
    pub function: RoleFunction<F, T>,
}

impl<F, T> Role<F, T> {
    /// A main role: instance `instance` of `role`, running `function`.
    pub fn new<Fut>(role: &str, instance: u32, function: impl Fn(F) -> Fut + 'static) -> Role<F, T>
    where
        Fut: Future<Output = T> + 'static,
    {
        let function: RoleFunction<F, T> = Rc::new(move |fabric| Box::pin(function(fabric)));
        Role { name: RoleName::new(role, instance), main: true, function }
    }

    /// The same role, stopped when the last main one ends: a server that never returns.
    pub fn in_background(self) -> Role<F, T> {
        Role { main: false, ..self }
    }
}

/// How a role ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RoleEnd<T> {
    /// Its function returned.
    Finished(T),
    /// It ran in the background and the run ended.
    Stopped,
    /// A fault crashed it and it was not restarted.
    Crashed,
}

impl<T> RoleEnd<T> {
    /// What the function returned, where it did.
    pub fn finished(self) -> Option<T> {
        match self {
            RoleEnd::Finished(value) => Some(value),
            RoleEnd::Stopped | RoleEnd::Crashed => None,
        }
    }
}

/// A role and how it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome<T> {
    /// The role.
    pub name: RoleName,
    /// How it ended.
    pub end: RoleEnd<T>,
}

/// A run that ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run<T> {
    /// The roles, in the order in which they were given.
    pub outcomes: Vec<Outcome<T>>,
    /// How long it took, by the backend's own clock.
    pub elapsed: Time,
}

/// How far atomics are atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Atomics {
    /// There are none.
    None,
    /// To other atomics through the same device.
    Device,
    /// To the processors' atomics as well.
    Global,
}

/// What a backend supports. What it does not is refused with [`crate::Unsupported`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    /// The backend's name, as `local`.
    pub backend: String,
    /// Remote atomics.
    pub atomics: Atomics,
    /// UD queue pairs.
    pub ud: bool,
    /// A DMA engine.
    pub dma: bool,
    /// [`crate::Access::ON_DEMAND`].
    pub on_demand_paging: bool,
    /// Injected faults.
    pub faults: bool,
    /// Time is virtual: the same seed gives the same run, to the picosecond.
    pub virtual_time: bool,
    /// A deadlock is reported as [`RunError::Deadlock`].
    pub deadlock_detection: bool,
    /// The longest inline payload that a queue pair may ask for, in bytes.
    pub inline_max: u32,
    /// The deepest queue that a queue pair may ask for.
    pub depth_max: u32,
}

/// Something that runs roles.
pub trait Backend {
    /// The context that it gives to them.
    type Fabric: Fabric;

    /// What it supports.
    fn capabilities(&self) -> Capabilities;

    /// Starts every role and returns when the main ones ended. A panic of a role passes through.
    fn run<T: 'static>(self, roles: Vec<Role<Self::Fabric, T>>) -> Result<Run<T>, RunError>;
}
