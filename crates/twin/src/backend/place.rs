//! Where roles run: endpoints, with what the backend needs of them.

use super::{TwinBackend, TwinFabric, bad_roles};
use offpath_fabric::runtime::{RunRole, check_roles};
use offpath_fabric::{Role, RunError};
use offpath_profile::{EngineWork, VerbCosts};
use offpath_quantity::{Bytes, Frequency};
use offpath_route::{Router, StationId};
use std::cell::Cell;
use std::ops::Deref;
use std::sync::Arc;

/// An endpoint, with what the backend needs of it.
pub(crate) struct Place {
    pub(super) name: String,
    pub(super) machine: usize,
    pub(super) cpu: StationId,
    pub(super) frequency: Frequency,
    pub(super) capacity: Bytes,
    pub(super) inline_limit: Bytes,
    pub(super) verbs: VerbCosts,
    /// The engines that copy between this place and others of its machine.
    pub(super) copying: Vec<String>,
}

pub(super) fn places(router: &Router) -> Vec<Place> {
    let machines = router.system().machines.iter().enumerate();
    let of = |(machine, at): (usize, &offpath_profile::Machine)| {
        let place = |endpoint: &offpath_profile::Endpoint| Place {
            name: endpoint.name.clone(),
            machine,
            cpu: router.processor(&endpoint.name).expect("an endpoint of the system has a processor"),
            frequency: endpoint.processor.frequency,
            capacity: endpoint.memory.capacity,
            inline_limit: at.nic.inline_limit,
            verbs: endpoint.processor.verbs.clone(),
            copying: at
                .engines
                .iter()
                .filter(|engine| engine.work == EngineWork::Copy && at.endpoints.len() > 1)
                .map(|engine| engine.name.rsplit('.').next().unwrap_or(&engine.name).to_string())
                .collect(),
        };
        [at.endpoints.iter().map(place).collect::<Vec<_>>(), at.apart.iter().map(place).collect()]
    };
    let (own, apart): (Vec<_>, Vec<_>) = machines.map(of).map(|[own, apart]| (own, apart)).unzip();
    own.into_iter().chain(apart).flatten().collect()
}

/// A role of the run, as the backend sees it.
pub(crate) struct RoleState {
    run: RunRole,
    pub(super) crashed: Cell<bool>,
    /// Whether it will start anew.
    pub(super) restarts: Cell<bool>,
    pub(super) place: usize,
    pub(super) machine: usize,
    pub(super) instance: u32,
    /// The machine instance of its own machine, by machine.
    pub(super) instances: Arc<[u32]>,
    /// What its files may have together.
    pub(super) file_capacity: Option<Bytes>,
}

impl Deref for RoleState {
    type Target = RunRole;

    fn deref(&self) -> &RunRole {
        &self.run
    }
}

impl TwinBackend {
    /// Where a role runs: where it was placed, else where the system has what its name stands for.
    pub(super) fn endpoint_of(&self, role: &str) -> Result<&str, String> {
        let meant = self.placements.get(role).map_or(role, String::as_str);
        let found = self.router.system().role_endpoint(meant);
        found.map(|(_, endpoint)| endpoint.name.as_str()).map_err(|error| error.to_string())
    }

    /// The roles with their endpoints, or what is wrong with them.
    pub(super) fn place_roles<T>(
        &self,
        roles: &[Role<TwinFabric, T>],
        places: &[Place],
    ) -> Result<Vec<RoleState>, RunError> {
        check_roles(roles, std::iter::empty())?;
        let machines = &self.router.system().machines;
        let mut states = Vec::with_capacity(roles.len());
        for role in roles {
            let name = &role.name;
            let endpoint = self.endpoint_of(&name.role).map_err(|reason| {
                let known: Vec<_> = places.iter().map(|place| format!("`{}`", place.name)).collect();
                bad_roles(format!(
                    "{name} has nowhere to run: {reason}; the endpoints are {}",
                    known.join(", ")
                ))
            })?;
            let place = places.iter().position(|place| place.name == endpoint);
            let place = place.expect("every endpoint is a place");
            let machine = places[place].machine;
            let instance = (u64::from(name.instance) % machines[machine].count.max(1)) as u32;
            let mut instances = vec![0; machines.len()];
            instances[machine] = instance;
            states.push(RoleState {
                run: RunRole::new(role, self.seed),
                crashed: Cell::new(false),
                restarts: Cell::new(false),
                place,
                machine,
                instance,
                instances: instances.into(),
                file_capacity: self.file_capacities.get(&name.role).copied(),
            });
        }
        Ok(states)
    }
}
