//! The routes of a run, each built once.

use super::{Core, observe};
use offpath_quantity::Bytes;
use offpath_route::{Mark, Path, PathOperation as Routed, Posting, Route, RouteError, Verb, Visit};
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// What decides about a route.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Plan {
    pub(super) verb: Verb,
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) engine: Option<String>,
    pub(super) payload: u64,
    pub(super) posting: Posting,
    pub(super) access: offpath_route::AddressSpread,
    pub(super) signaled: bool,
}

/// A route with its demand, once somebody asks for it.
pub(crate) struct Planned {
    pub(super) route: Arc<Route>,
    pub(super) asks: OnceCell<observe::Asks>,
}

type PlanKey = (Verb, usize, usize, Option<String>, u64, Posting, Option<u64>, u64, bool);

#[derive(Default)]
pub(super) struct Plans {
    all: BTreeMap<PlanKey, Rc<Planned>>,
    /// Most requests are like the one before.
    last: Option<(Plan, Rc<Planned>)>,
}

impl Core {
    /// The route of a request, looked up or built.
    pub(super) fn plan(&self, plan: Plan) -> Result<Rc<Planned>, RouteError> {
        let plans = &mut *self.plans.borrow_mut();
        if let Some((last, planned)) = &plans.last
            && *last == plan
        {
            return Ok(planned.clone());
        }
        let key = (
            plan.verb,
            plan.from,
            plan.to,
            plan.engine.clone(),
            plan.payload,
            plan.posting,
            plan.access.range.map(Bytes::get),
            plan.access.hottest.to_bits(),
            plan.signaled,
        );
        let planned = match plans.all.get(&key) {
            Some(planned) => planned.clone(),
            None => {
                let planned = Rc::new(self.build(&plan)?);
                plans.all.insert(key, planned.clone());
                planned
            }
        };
        plans.last = Some((plan, planned.clone()));
        Ok(planned)
    }

    pub(super) fn build(&self, plan: &Plan) -> Result<Planned, RouteError> {
        let (from, to) = (&self.places[plan.from], &self.places[plan.to]);
        let path =
            Path { requester: from.name.clone(), responder: to.name.clone(), engine: plan.engine.clone() };
        let operation = Routed {
            verb: plan.verb,
            path,
            payload: Bytes::new(plan.payload),
            posting: plan.posting,
            access: plan.access,
        };
        let mut route = self.router.route(&operation)?;
        if !plan.signaled && !plan.verb.is_message() {
            leave_out_completion(&mut route);
        }
        Ok(Planned { route: Arc::new(route), asks: OnceCell::new() })
    }
}

/// An unsignaled request writes no completion entry and nobody polls for it.
fn leave_out_completion(route: &mut Route) {
    let last = |visit: &Visit| matches!(visit, Visit::Mark(Mark::Acknowledged, _));
    let Some(end) = route.visits.iter().rposition(last) else { return };
    let detached = |visit: &Visit| matches!(visit, Visit::Serve { detached: true, .. });
    let entries = route.visits[..end].iter().rev().take_while(|visit| detached(visit)).count();
    route.visits.truncate(end - entries);
}
