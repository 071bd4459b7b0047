//! What an oddity costs, by the model: a few operations with and without it.

use super::Oddity;
use offpath_profile::{Draft, Library, ProfileError, SystemRequest};
use offpath_quantity::Bytes;
use offpath_route::{Path, PathOperation, RouteError, Router, Verb};

/// A figure of an operation, as the machine is and without the oddity.
#[derive(Clone, Debug, PartialEq)]
pub struct OddityCost {
    /// What the operation does.
    pub verb: Verb,
    /// The path, from the other machine into the host's memory.
    pub path: String,
    /// Bytes of the operation.
    pub payload: Bytes,
    /// Operations per second as the machine is.
    pub now_per_s: f64,
    /// Operations per second without the oddity.
    pub mended_per_s: f64,
}

impl OddityCost {
    /// The share of the mended rate that is lost.
    pub fn lost_share(&self) -> f64 {
        1.0 - self.now_per_s / self.mended_per_s
    }
}

/// Below this share a loss is not told: the model's own steps are as large.
const LEAST: f64 = 0.01;

/// What is asked of each machine: small and large transfers of both directions.
const OPERATIONS: [(Verb, u64); 4] =
    [(Verb::Read, 64), (Verb::Read, 64 << 10), (Verb::Write, 64), (Verb::Write, 64 << 10)];

/// Operations per second of each, where the system carries it.
fn rates(router: &Router) -> Result<Vec<(Verb, Path, Bytes, f64)>, RouteError> {
    let host = router.system().machines.iter().find(|machine| machine.prefix.is_empty()).and_then(|server| {
        server
            .endpoints
            .iter()
            .find(|endpoint| endpoint.processor.is_host)
            .map(|endpoint| endpoint.name.clone())
    });
    let mut found = Vec::new();
    for (verb, size) in OPERATIONS {
        let from_client = |path: &Path| {
            path.requester == "client" && Some(&path.responder) == host.as_ref() && path.engine.is_none()
        };
        let Some(path) = router.paths_of(verb).into_iter().find(from_client) else { continue };
        let payload = Bytes::new(size);
        let route = router.route(&PathOperation::new(verb, path.clone(), payload))?;
        if let Some((per_second, _)) = route.demand(router).capacity(router) {
            found.push((verb, path, payload, per_second));
        }
    }
    Ok(found)
}

/// What an oddity of a drafted system costs, by the model; nothing where no operation loses at least 1%.
///
/// Both machines of the pair are as they are described, and both are mended. `device` is how the library finds the draft.
///
/// # Errors
/// Where the draft does not load.
pub fn costs(
    library: &Library,
    device: &str,
    draft: &Draft,
    oddity: &Oddity,
) -> Result<Vec<OddityCost>, ProfileError> {
    let named = |mend: &super::Mend| {
        draft.named.get(&(mend.part, mend.key)).map(|name| (name, mend.value.to_string()))
    };
    let settings: Vec<(&String, String)> = oddity.mends.iter().filter_map(named).collect();
    if settings.is_empty() {
        return Ok(Vec::new());
    }
    let as_it_is = library.load(&SystemRequest { device, ..SystemRequest::default() })?;
    let is_known = |name: &String| as_it_is.numbers.contains_key(name);
    let both = settings.iter().flat_map(|(name, value)| {
        // The host's own tables are called by the role alone on other machines.
        let client = match name.split_once('.') {
            Some((table, key)) if is_host(&as_it_is, table) => format!("client.{key}"),
            _ => format!("client.{name}"),
        };
        [name.to_string(), client].into_iter().filter(is_known).map(move |name| format!("{name}={value}"))
    });
    let request = SystemRequest { device, settings: both.collect(), ..SystemRequest::default() };
    let mended = library.load(&request)?;
    let of = |system| Router::new(system).ok().and_then(|router| rates(&router).ok()).unwrap_or_default();
    let (now, then) = (of(&as_it_is), of(&mended));
    let all = now.into_iter().zip(then).map(|((verb, path, payload, now_per_s), (_, _, _, mended_per_s))| {
        OddityCost { verb, path: path.to_string(), payload, now_per_s, mended_per_s }
    });
    Ok(all.filter(|cost| cost.lost_share() >= LEAST).collect())
}

fn is_host(system: &offpath_profile::System, table: &str) -> bool {
    let server = system.machines.iter().find(|machine| machine.prefix.is_empty());
    server.is_some_and(|server| {
        server.endpoints.iter().any(|endpoint| endpoint.processor.is_host && endpoint.name == table)
    })
}
