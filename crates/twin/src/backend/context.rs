//! What a role on the twin holds: its context.

use super::Core;
use super::place::RoleState;
use super::plans::Plan;
use super::{Label, Observer, Snapshot, TwinFiles, TwinQueuePair, TwinRegion};
use super::{device, executor, memory};
use offpath_fabric::runtime::{self, Host, MeetsInProcess, Owner, RunRole};
use offpath_fabric::*;
use offpath_quantity::Time;
use offpath_route::{Path, PathOperation as Routed, RouteError, Router};
use std::rc::Rc;
use std::sync::Arc;

/// The context of a role on the twin.
#[derive(Clone)]
pub struct TwinFabric {
    pub(crate) core: Rc<Core>,
    pub(crate) role: usize,
    pub(crate) label: Option<Label>,
}

impl TwinFabric {
    /// A handle to the same context: what computes, copies, or sends through it, and through queue pairs
    /// and sockets that it makes, is counted under `label`.
    pub fn labelled(&self, label: Label) -> TwinFabric {
        TwinFabric { label: Some(label), ..self.clone() }
    }

    /// What an operation takes within this role's machine: a processor's own loads and stores, and the work of engines.
    /// Bytes that anybody could look at are not moved.
    ///
    /// # Errors
    ///
    /// Where the operation has no route, or its ends are on another machine.
    pub fn perform(&self, operation: &Routed) -> Result<impl Future<Output = ()> + 'static, Unsupported> {
        let refused = |why: String, next_step: &str| {
            TwinFabric::unsupported(&format!("this `{}` ({why})", operation.verb), next_step)
        };
        let unroutable = |why: RouteError| refused(why.to_string(), "change its path or its verb");
        let places = &self.core.places;
        let own = self.state().machine;
        let place = |name: &str| places.iter().position(|place| place.name == name && place.machine == own);
        let Path { requester, responder, engine } = &operation.path;
        let Some((from, to)) = place(requester).zip(place(responder)) else {
            self.router().route(operation).map_err(unroutable)?;
            let why = format!("`{}` leaves the machine of `{}`", operation.path, self.endpoint());
            return Err(refused(why, "name a path within this role's machine"));
        };
        let plan = Plan {
            verb: operation.verb,
            from,
            to,
            engine: engine.clone(),
            payload: operation.payload.get(),
            posting: operation.posting,
            access: operation.access,
            signaled: true,
        };
        let planned = self.core.plan(plan).map_err(unroutable)?;
        Ok(executor::Sleep::perform(self.core.clone(), self.role, planned, self.label))
    }

    /// Who looks at this run.
    pub fn observer(&self) -> Observer {
        self.core.observer.clone()
    }

    /// The stations now.
    pub fn snapshot(&self) -> Snapshot {
        self.core.snapshot()
    }

    /// The endpoint that this role runs at.
    pub fn endpoint(&self) -> &str {
        &self.core.places[self.state().place].name
    }

    /// The system's routes and stations.
    pub fn router(&self) -> &Arc<Router> {
        &self.core.router
    }

    fn state(&self) -> &RoleState {
        &self.core.roles[self.role]
    }

    pub(super) fn unsupported(feature: &str, next_step: &str) -> Unsupported {
        Unsupported { backend: "twin".into(), feature: feature.into(), next_step: next_step.into() }
    }
}

impl runtime::BackendContext for TwinFabric {
    type QueuePair = TwinQueuePair;
    type Meets = MeetsInProcess;
    type Files = TwinFiles;

    fn run_role(&self) -> &RunRole {
        self.state()
    }

    fn run_task(&self, task: LocalBoxFuture<()>) {
        self.core.tasks().spawn(Owner::Role(self.role), task);
    }

    fn processor(&self) -> String {
        format!("{}.cpu", self.endpoint())
    }

    fn capabilities(&self) -> Capabilities {
        self.core.capabilities[self.role].clone()
    }

    fn now(&self) -> Time {
        self.core.now()
    }

    fn sleep_until(&self, instant: Time) -> impl Future<Output = ()> + 'static {
        executor::Sleep::until(self.core.clone(), instant)
    }

    fn compute(&self, work: Work) -> impl Future<Output = ()> + 'static {
        executor::Sleep::compute(self.core.clone(), self.role, work, self.label)
    }

    fn memories(&self) -> Vec<RoleMemory> {
        let place = &self.core.places[self.state().place];
        vec![RoleMemory { name: place.name.clone(), capacity: place.capacity }]
    }

    fn register(&self, memory: &str, length: u64, access: Access) -> Result<TwinRegion, RegionError> {
        memory::register(&self.core, self.role, memory, length, access)
    }

    fn create_queue_pair(&self, options: QueuePairOptions) -> Result<TwinQueuePair, Unsupported> {
        device::create(self, options)
    }

    fn dma_engines(&self) -> Vec<String> {
        self.core.places[self.state().place].copying.clone()
    }

    fn dma_copy(
        &self,
        engine: &str,
        from: MemoryAt<TwinRegion>,
        to: MemoryAt<TwinRegion>,
        length: u64,
    ) -> Result<CompletionFuture, Unsupported> {
        let known = runtime::BackendContext::dma_engines(self);
        if !known.iter().any(|name| name == engine) {
            let feature =
                format!("a DMA engine `{engine}` at `{}` ({})", self.endpoint(), engines_there(&known));
            return Err(TwinFabric::unsupported(&feature, "use READ or WRITE"));
        }
        device::copy(self, engine, from, to, length)
    }

    fn files(&self) -> TwinFiles {
        TwinFiles(self.clone())
    }
}
