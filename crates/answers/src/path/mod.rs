//! What `offpath path` answers: what one operation on a path costs, what binds it, and how sure that is.

mod cost;
mod html;
mod text;

use crate::report::Page;
use crate::system::{SystemAnswer, TopologyAnswer};
use crate::{Named, SCHEMA_VERSION};
use offpath_plan::known::known;
use offpath_profile::System;
use offpath_quantity::Bytes;
use offpath_route::{Operation, Path, Posting, RouteError, Router, Verb};
use offpath_terminal::failure::{Failure, unknown_path};
use offpath_terminal::options::{SystemOptions, posting_name};
use offpath_twin::Seed;
use serde::Serialize;

/// What decides the draws behind intervals.
const SEED: u64 = 1;

/// An operation, on one path or on every path of a device.
#[derive(Clone, Debug)]
pub struct PathRequest {
    /// A device's name, or a .toml file that describes one.
    pub device: String,
    /// Requester and responder, and an engine where one moves the data; every path from or to the device where absent.
    pub path: Option<String>,
    /// What the operation does.
    pub verb: Verb,
    /// Payload; 64 B, or what an atomic has of its own, where absent.
    pub payload: Option<Bytes>,
    /// How requests reach the NIC.
    pub posting: Posting,
    /// Which system is meant.
    pub system: SystemOptions,
    /// Whether latency and capacity are told over payloads with what uncertain numbers leave, as a page draws them.
    pub over_payloads: bool,
}

impl Default for PathRequest {
    fn default() -> PathRequest {
        PathRequest {
            device: String::new(),
            path: None,
            verb: Verb::Read,
            payload: None,
            posting: Posting::Single,
            system: SystemOptions::default(),
            over_payloads: false,
        }
    }
}

/// What an operation costs on one path, or on every path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum PathAnswers {
    /// On the path that was named.
    One(Box<PathAnswer>),
    /// On every path from or to the device.
    Every(PathsAnswer),
}

/// What an operation costs on every path from or to a device.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathsAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// What the operation does.
    pub verb: String,
    /// Whether it is a message, whose latency is one way.
    pub message: bool,
    /// Payload of the operation.
    pub payload_bytes: u64,
    /// How requests reach the NIC: `single`, or `batch:N` for N behind one doorbell.
    pub posting: String,
    /// What the system is made of.
    pub topology: TopologyAnswer,
    /// An answer each.
    #[cfg_attr(test, schemars(extend("items" = { "$ref": "path.json" })))]
    pub paths: Vec<PathAnswer>,
}

/// What an operation costs on a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PathAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// What the mode means where it is not the common one; null where it is.
    pub mode_note: Option<&'static str>,
    /// Requester and responder, and the engine that moves the data where it is not the NIC.
    pub path: String,
    /// What the operation does.
    pub verb: String,
    /// Payload of the operation.
    pub payload_bytes: u64,
    /// How requests reach the NIC: `single`, or `batch:N` for N behind one doorbell.
    pub posting: String,
    /// Where the latency ends.
    pub latency_ends: &'static str,
    /// Latency on idle stations.
    pub latency_us: f64,
    /// Lower end of its 80% interval.
    pub latency_low_80_us: f64,
    /// Upper end of it.
    pub latency_high_80_us: f64,
    /// How well it is known: fitted, predicted, weak, your estimate, or order only.
    pub latency_basis: &'static str,
    /// The number known as a range that moves it most; null where none does.
    pub latency_most_moved_by: Option<String>,
    /// Request and reply together, where the operation is a message; null elsewhere.
    pub echo_latency_us: Option<f64>,
    /// The latency, term by term; the sum is the latency exactly.
    pub terms: Vec<TermAnswer>,
    /// Operations that the stations carry.
    pub capacity_mreq_per_s: f64,
    /// Lower end of its 80% interval.
    pub capacity_low_80_mreq_per_s: f64,
    /// Upper end of it.
    pub capacity_high_80_mreq_per_s: f64,
    /// How well it is known, by the same words.
    pub capacity_basis: &'static str,
    /// The number known as a range that moves it most; null where none does.
    pub capacity_most_moved_by: Option<String>,
    /// The capacity in payload bits.
    pub capacity_gbit_per_s: f64,
    /// Lower end of its 80% interval.
    pub capacity_low_80_gbit_per_s: f64,
    /// Upper end of it.
    pub capacity_high_80_gbit_per_s: f64,
    /// The station that is full first.
    pub binding_station: String,
    /// What it stands for.
    pub binding_station_meaning: &'static str,
    /// Slots that the operation holds, and for how long.
    pub contexts_held: Vec<HeldAnswer>,
    /// What one operation asks of each station, the one that binds first.
    pub demand: Vec<DemandAnswer>,
    /// PCIe data packets of one operation by link, both directions.
    pub pcie_packets: Named<u64>,
    /// Data packets of one operation by direction of a link.
    pub links: Vec<PacketsAnswer>,
    /// What each number that is known as a range does, one at a time; those that do nothing are left out.
    pub ranged_numbers: Vec<RangedAnswer>,
    /// Latency and capacity over payloads; empty for an atomic.
    pub curve: Vec<PointAnswer>,
    /// The same with what uncertain numbers leave; there where it was asked for, as a page does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_payloads: Vec<BandAnswer>,
    /// What the system is made of; absent where every path is told, which tells it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyAnswer>,
}

/// A term of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TermAnswer {
    /// What takes the time.
    pub label: String,
    /// The station where; null where there is none.
    pub station: Option<String>,
    /// The time.
    pub time_ns: f64,
}

/// A slot that is held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldAnswer {
    /// The station.
    pub station: String,
    /// For how long.
    pub time_ns: f64,
}

/// What one operation asks of a station.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DemandAnswer {
    /// The station.
    pub station: String,
    /// What it stands for.
    pub meaning: &'static str,
    /// Server time of one operation; null at a pool, which counts requests.
    pub time_ns: Option<f64>,
    /// Requests of one operation at a pool; null elsewhere.
    pub requests: Option<u64>,
    /// Share of its time that it is busy at the capacity of all.
    pub utilization_at_capacity: f64,
}

/// Packets of one operation on a direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PacketsAnswer {
    /// The direction's station.
    pub station: String,
    /// Data packets.
    pub data_packets: u64,
    /// Payload in them.
    pub payload_bytes: u64,
    /// Payload with headers.
    pub framed_bytes: u64,
}

/// What a number that is known as a range does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RangedAnswer {
    /// The number.
    pub name: String,
    /// The lower end of its range.
    pub low: String,
    /// The upper end.
    pub high: String,
    /// The latency at the lower end.
    pub latency_at_low_us: f64,
    /// The latency at the upper end.
    pub latency_at_high_us: f64,
    /// The capacity at the lower end.
    pub capacity_at_low_mreq_per_s: f64,
    /// The capacity at the upper end.
    pub capacity_at_high_mreq_per_s: f64,
}

/// Latency and capacity at a payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointAnswer {
    /// The payload.
    pub payload_bytes: u64,
    /// Latency on idle stations.
    pub latency_us: f64,
    /// Operations that the stations carry.
    pub capacity_mreq_per_s: f64,
    /// The same in payload bits.
    pub capacity_gbit_per_s: f64,
    /// The station that is full first.
    pub binding_station: String,
}

/// The same with the ends that uncertain numbers leave, one at a time at either end of its range.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BandAnswer {
    /// The values.
    #[serde(flatten)]
    pub point: PointAnswer,
    /// The least latency.
    pub latency_low_us: f64,
    /// The greatest.
    pub latency_high_us: f64,
    /// The least capacity.
    pub capacity_low_mreq_per_s: f64,
    /// The greatest.
    pub capacity_high_mreq_per_s: f64,
    /// The least in payload bits.
    pub capacity_low_gbit_per_s: f64,
    /// The greatest.
    pub capacity_high_gbit_per_s: f64,
}

/// A system that was loaded, and an operation whose cost is not known yet.
pub struct PathDraft<'a> {
    request: &'a PathRequest,
    router: Router,
    payload: Bytes,
}

/// Whether a path starts or ends at the machine that carries the device; the others are of no
/// interest to who asks for the device.
fn touches_device(system: &System, path: &Path) -> bool {
    let own = |endpoint: &str| system.endpoint(endpoint).is_ok_and(|(machine, _)| machine.prefix.is_empty());
    own(&path.requester) || own(&path.responder)
}

/// What an operation costs, what binds it, and how sure that is.
///
/// ```
/// use offpath_answers::path::{PathAnswers, PathRequest};
///
/// let request = PathRequest {
///     device: "bluefield2".into(),
///     path: Some("client-soc".into()),
///     ..PathRequest::default()
/// };
/// if let PathAnswers::One(answer) = offpath_answers::path(&request)? {
///     println!("{:.1} M/s, bound by {}", answer.capacity_mreq_per_s, answer.binding_station);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Where the device, the path or the operation is refused.
pub fn path(request: &PathRequest) -> Result<PathAnswers, Failure> {
    PathDraft::load(request)?.answer()
}

impl<'a> PathDraft<'a> {
    /// Loads the system, which costs nothing beside the answer.
    ///
    /// # Errors
    /// Where the device or its payload is refused.
    pub fn load(request: &'a PathRequest) -> Result<PathDraft<'a>, Failure> {
        let system = request.system.load(&request.system.library()?, &request.device, &[])?;
        let payload = request.verb.own_payload().or(request.payload).unwrap_or(Bytes::new(64));
        let router = Router::new(&system)?;
        if let Some(given) = request.payload.filter(|given| *given != payload) {
            return Err(Failure::input(
                format!("`--size {given}`: a {} always moves {payload}", request.verb),
                "leave `--size` out",
            ));
        }
        Ok(PathDraft { router, payload, request })
    }

    fn operation(&self, path: Path) -> Operation {
        Operation::new(self.request.verb, path, self.payload).posted(self.request.posting)
    }

    /// What it costs.
    ///
    /// # Errors
    /// As [`path`].
    pub fn answer(&self) -> Result<PathAnswers, Failure> {
        let PathDraft { router, request, .. } = self;
        let (system, bands) = (router.system(), request.over_payloads);
        if let Some(name) = &request.path {
            let path = router.path(name).map_err(|error| unknown_path(router, name, error))?;
            let operation = self.operation(path);
            let known = known(router, std::slice::from_ref(&operation), Seed::new(SEED))?.remove(0);
            let mut answer = PathAnswer::of(router, &operation, &known, bands)?;
            answer.topology = Some(TopologyAnswer::of(system));
            return Ok(PathAnswers::One(Box::new(answer)));
        }
        let mut operations = Vec::new();
        for path in router.paths().into_iter().filter(|path| touches_device(system, path)) {
            let operation = self.operation(path);
            match router.route(&operation) {
                Ok(_) => operations.push(operation),
                // An engine has few verbs; its line is left out for others.
                Err(RouteError::NoSuchVerb { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let known = known(router, &operations, Seed::new(SEED))?;
        let all = operations.iter().zip(&known);
        let paths = all.map(|(operation, known)| PathAnswer::of(router, operation, known, bands));
        Ok(PathAnswers::Every(PathsAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            verb: request.verb.to_string(),
            message: request.verb.is_message(),
            payload_bytes: self.payload.get(),
            posting: posting_name(request.posting),
            topology: TopologyAnswer::of(system),
            paths: paths.collect::<Result<_, _>>()?,
        }))
    }
}

impl PathAnswers {
    /// The answer as a page with charts.
    pub fn page(&self) -> Page {
        match self {
            PathAnswers::One(answer) => html::one(answer),
            PathAnswers::Every(answer) => html::all(answer),
        }
    }
}
