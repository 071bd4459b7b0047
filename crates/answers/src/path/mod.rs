//! What `offpath path` answers: what one operation on a path costs, what binds it, with confidence intervals.

mod cost;
mod html;
mod text;

use crate::report::Page;
use crate::system::{SystemAnswer, TopologyAnswer};
use crate::{ByName, SCHEMA_VERSION};
use cost::rows_about;
use offpath_plan::check::{Saturated, SaturatedError, saturated};
use offpath_plan::known::known;
use offpath_plan::side_by_side::side_by_side;
use offpath_profile::System;
use offpath_quantity::Bytes;
use offpath_route::{AddressSpread, Carrier, Path, PathOperation, Posting, Router, VERBS, Verb};
use offpath_terminal::failure::{Failure, no_doorbell, unknown_path};
use offpath_terminal::options::{SystemOptions, doorbells, posting_name};
use offpath_twin::Seed;
use serde::Serialize;
use std::sync::Arc;

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
    /// The bytes of the responder's memory that addresses are spread over; all of it where absent.
    pub range: Option<Bytes>,
    /// Whether the range is what a NIC wrote there last, for a processor's own loads and stores.
    pub arrived: bool,
    /// Which system is meant.
    pub system: SystemOptions,
    /// Whether latency and capacity over payloads come with their intervals, as a page draws them.
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
            range: None,
            arrived: false,
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
    Every(Box<PathsAnswer>),
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
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::verbs())))]
    pub verb: String,
    /// Whether it is a message, whose latency is one way.
    pub message: bool,
    /// Payload; 8 for atomics.
    pub payload_bytes: u64,
    /// `single`, or `batch:N`.
    pub posting: String,
    /// How such an operation begins, in words.
    #[serde(skip)]
    pub posted: String,
    /// What the system is made of.
    pub topology: TopologyAnswer,
    /// One answer a path.
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
    /// Requester, responder and, where one moves the data, DMA engine.
    pub path: String,
    /// What the operation does.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::verbs())))]
    pub verb: String,
    /// Payload; 8 for atomics.
    pub payload_bytes: u64,
    /// `single`, or `batch:N`.
    pub posting: String,
    /// How it begins, in words.
    #[serde(skip)]
    pub posted: String,
    /// Bytes of the responder's memory that addresses are spread over.
    pub range_bytes: u64,
    /// Whether these are what a NIC wrote there last, of which caches hold less than of what a program reads again.
    pub range_arrived: bool,
    /// The published rows that measured this very operation, or a sweep that it is a place of; none where settings or
    /// overlays change the system.
    pub published: Vec<PublishedAnswer>,
    /// Where the latency ends; for messages it is one way.
    pub latency_ends: &'static str,
    /// Unloaded latency.
    pub latency_us: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub latency_low_80_us: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub latency_high_80_us: f64,
    /// How well it is known; docs/confidence.md says what each means.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::BASES)))]
    pub latency_basis: &'static str,
    /// The ranged number that moves the latency most; null where none does.
    pub latency_most_moved_by: Option<String>,
    /// Request and reply of the same payload; null for verbs without a message.
    pub echo_latency_us: Option<f64>,
    /// The parts of the latency, in order; their sum is the whole.
    pub terms: Vec<TermAnswer>,
    /// Operations that the stations carry if they do nothing else.
    pub capacity_mreq_per_s: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub capacity_low_80_mreq_per_s: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub capacity_high_80_mreq_per_s: f64,
    /// How well it is known; docs/confidence.md says what each means.
    #[cfg_attr(test, schemars(extend("enum" = crate::schemas::BASES)))]
    pub capacity_basis: &'static str,
    /// How many of 256 joint draws are a system that carries the operation: the intervals are of these alone.
    pub interval_draws: usize,
    /// The ranged number that moves the capacity most; null where none does.
    pub capacity_most_moved_by: Option<String>,
    /// The same as payload.
    pub capacity_gbit_per_s: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub capacity_low_80_gbit_per_s: f64,
    /// An end of the 80% interval, from one joint sample of every number that is known as a range, widened by what
    /// past predictions were wrong by.
    pub capacity_high_80_gbit_per_s: f64,
    /// Operations that pass on the twin when its stations are saturated: fewer than the capacity where slots are held for
    /// longer while requests wait for something else.
    pub twin_throughput_mreq_per_s: f64,
    /// An end of its 95% interval by batch means: of the simulation, not of the card.
    pub twin_throughput_ci95_low_mreq_per_s: f64,
    /// Its upper end.
    pub twin_throughput_ci95_high_mreq_per_s: f64,
    /// Operations in flight in that run.
    pub twin_in_flight: u32,
    /// Whether the twin carries less than the capacity by more than is let pass: 5% where slots bind, 2% elsewhere.
    pub twin_carries_less: bool,
    /// The station of one machine that was busy for the greatest share of that run; packet cores are left out.
    pub twin_fullest_station: Option<String>,
    /// How busy it was, 0 to 1.
    pub twin_fullest_utilization: Option<f64>,
    /// Whether it is one of in-flight slots, which are held for longer while requests wait for something else.
    #[serde(skip)]
    pub twin_fills_slots: bool,
    /// The station that limits the capacity.
    pub binding_station: String,
    /// What that station is.
    pub binding_station_meaning: &'static str,
    /// In-flight slots that the operation holds.
    pub slots_held: Vec<HeldAnswer>,
    /// What one operation asks of each station, the busiest first.
    pub demand: Vec<DemandAnswer>,
    /// Data packets by PCIe link, both directions; requests, work requests and completion entries are not counted.
    pub pcie_packets: ByName<u64>,
    /// Packets and bytes by direction.
    pub links: Vec<PacketsAnswer>,
    /// Numbers known as a range that move the answer.
    pub ranged_numbers: Vec<RangedAnswer>,
    /// The same over payloads: 0 B and the powers of two to 16 MiB; empty for atomics.
    pub curve: Vec<PointAnswer>,
    /// What a processor's own loads or stores cost over working sets; empty for what an engine or a NIC does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub ladder: Vec<RungAnswer>,
    /// The same with their 80% intervals; there where they were asked for, as a page does.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub over_payloads: Vec<BandAnswer>,
    /// What the system is made of; absent where every path is answered for, which has it once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub topology: Option<TopologyAnswer>,
}

/// A term of a latency.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TermAnswer {
    /// What takes the time.
    pub label: String,
    /// Where; null between stations.
    pub station: Option<String>,
    /// How long.
    pub time_ns: f64,
}

/// A published row that measured an operation.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PublishedAnswer {
    /// Its name.
    pub row: String,
    /// Where it stands.
    pub source: String,
    /// What was measured.
    pub states: String,
    /// What was published, with its unit.
    pub published: String,
}

/// A slot that is held.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct HeldAnswer {
    /// The pool of in-flight slots.
    pub station: String,
    /// How long the operation holds one.
    pub time_ns: f64,
}

/// What one operation asks of a station.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct DemandAnswer {
    /// The station.
    pub station: String,
    /// What it is.
    pub meaning: &'static str,
    /// Server time of one operation; null at a pool.
    pub time_ns: Option<f64>,
    /// Requests of one operation, at a pool; null elsewhere.
    pub requests: Option<u64>,
    /// Share of the station that is busy at the capacity, 0 to 1.
    pub utilization_at_capacity: f64,
}

/// Packets of one operation on a direction of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PacketsAnswer {
    /// One direction of a link.
    pub station: String,
    /// Packets that carry payload.
    pub data_packets: u64,
    /// Payload.
    pub payload_bytes: u64,
    /// Payload and headers.
    pub framed_bytes: u64,
}

/// What a number that is known as a range does.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RangedAnswer {
    /// The number, as `--set` names it.
    pub name: String,
    /// Its names on other machines that carry the same card: the number is one, and moved everywhere at once.
    pub same_number: Vec<String>,
    /// Least value.
    pub low: String,
    /// Greatest value.
    pub high: String,
    /// Latency with the least value.
    pub latency_at_low_us: f64,
    /// Latency with the greatest value.
    pub latency_at_high_us: f64,
    /// Capacity with the least value.
    pub capacity_at_low_mreq_per_s: f64,
    /// Capacity with the greatest value.
    pub capacity_at_high_mreq_per_s: f64,
}

/// Latency and capacity at a payload.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct PointAnswer {
    /// Payload.
    pub payload_bytes: u64,
    /// Unloaded latency.
    pub latency_us: f64,
    /// Capacity.
    pub capacity_mreq_per_s: f64,
    /// Capacity as payload.
    pub capacity_gbit_per_s: f64,
    /// What limits it.
    pub binding_station: String,
}

/// Latency and capacity at a payload with their 80% intervals; at 8 B for an atomic.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct BandAnswer {
    /// The payload.
    pub payload_bytes: u64,
    /// Latency on idle stations.
    pub latency_us: f64,
    /// Lower end of its interval.
    pub latency_low_80_us: f64,
    /// Upper end of it.
    pub latency_high_80_us: f64,
    /// Operations that the stations carry.
    pub capacity_mreq_per_s: f64,
    /// Lower end of its interval.
    pub capacity_low_80_mreq_per_s: f64,
    /// Upper end of it.
    pub capacity_high_80_mreq_per_s: f64,
    /// The same in payload bits.
    pub capacity_gbit_per_s: f64,
    /// Lower end of its interval.
    pub capacity_low_80_gbit_per_s: f64,
    /// Upper end of it.
    pub capacity_high_80_gbit_per_s: f64,
}

/// A processor's own loads or stores over a working set, with 80% intervals.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct RungAnswer {
    /// The working set: addresses are spread over so many bytes.
    pub range_bytes: u64,
    /// Time of one access of 8 B, which the next one waits for: a pointer chase.
    pub latency_ns: f64,
    /// Lower end of its interval.
    pub latency_low_80_ns: f64,
    /// Upper end of it.
    pub latency_high_80_ns: f64,
    /// Payload bits of one thread, an operation after the other.
    pub thread_gbit_per_s: f64,
    /// Lower end of its interval.
    pub thread_low_80_gbit_per_s: f64,
    /// Upper end of it.
    pub thread_high_80_gbit_per_s: f64,
    /// Payload bits of all threads together.
    pub capacity_gbit_per_s: f64,
    /// Lower end of its interval.
    pub capacity_low_80_gbit_per_s: f64,
    /// Upper end of it.
    pub capacity_high_80_gbit_per_s: f64,
    /// What limits them.
    pub binding_station: String,
}

/// A system that was loaded, and an operation whose cost is not known yet.
pub struct PathDraft<'a> {
    request: &'a PathRequest,
    router: Arc<Router>,
    payload: Bytes,
}

/// Whether a path starts or ends at the machine that carries the device; the others are of no
/// interest to who asks for the device.
pub(crate) fn touches_device(system: &System, path: &Path) -> bool {
    let own = |endpoint: &str| system.endpoint(endpoint).is_ok_and(|(machine, _)| machine.prefix.is_empty());
    own(&path.requester) || own(&path.responder)
}

/// What an operation costs, what binds it, with confidence intervals.
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
        let router = Arc::new(Router::new(&system)?);
        if let Some(given) = request.payload.filter(|given| *given != payload) {
            return Err(Failure::input(
                format!("`--size {given}`: a {} always moves {payload}", request.verb),
                "leave `--size` out",
            ));
        }
        if let Some(range) = request.range.filter(|_| request.arrived && !request.verb.row().is_touch()) {
            return Err(Failure::input(
                format!("`--arrived {range}`: a {} looks through no caches of a processor", request.verb),
                "use it with `--verb load` or `--verb store`, or `--range` for the addresses of other verbs",
            ));
        }
        Ok(PathDraft { router, payload, request })
    }

    fn operation(&self, path: Path) -> PathOperation {
        let operation = PathOperation::new(self.request.verb, path, self.payload);
        let PathRequest { range, arrived, .. } = *self.request;
        let access = AddressSpread { range, arrived, ..AddressSpread::UNIFORM };
        operation.posted(self.request.posting).accessing(access)
    }

    /// Refuses a range that the responder's memory does not have.
    fn check_range(&self, path: &Path) -> Result<(), Failure> {
        let (_, responder) = self.router.system().endpoint(&path.responder)?;
        let capacity = responder.memory.capacity;
        let option = if self.request.arrived { "arrived" } else { "range" };
        let Some(range) = self.request.range else { return Ok(()) };
        let least = self.payload.max(Bytes::new(1));
        if range > capacity || range < least {
            let reason = match range < least {
                true => format!("one {} is of {}", self.request.verb, self.payload),
                false => format!("the memory of `{}` has {capacity}", path.responder),
            };
            return Err(Failure::input(
                format!("`--{option} {range}`: {reason}"),
                format!("use {least} to {capacity}, or leave it out for all of it"),
            ));
        }
        Ok(())
    }

    /// What it costs.
    ///
    /// # Errors
    /// As [`path`].
    pub fn answer(&self) -> Result<PathAnswers, Failure> {
        let PathDraft { router, request, .. } = self;
        let (system, bands) = (router.system(), request.over_payloads);
        let rows = rows_about(system);
        if let Some(name) = &request.path {
            let path = router.path(name).map_err(|error| unknown_path(router, name, error))?;
            self.check_range(&path)?;
            let operation = self.operation(path);
            if request.posting != Posting::Single
                && router.carrier(request.verb, &operation.path)? != Carrier::Nic
            {
                let at = format!("on `{}`", operation.path);
                return Err(no_doorbell(request.posting, request.verb, &at));
            }
            let known = known(router, std::slice::from_ref(&operation), Seed::new(SEED))?.remove(0);
            let carried = carried(router, &operation)?;
            let mut answer = PathAnswer::of(router, &operation, (&known, &carried, &rows), bands)?;
            answer.topology = Some(TopologyAnswer::of(system));
            return Ok(PathAnswers::One(Box::new(answer)));
        }
        let of = |verb: Verb| -> Vec<Path> {
            router.paths_of(verb).into_iter().filter(|path| touches_device(system, path)).collect()
        };
        // An engine rings no doorbell: a list of requests has no line of its.
        let is_posted = |path: &Path| request.posting == Posting::Single || path.engine.is_none();
        let paths = of(request.verb).into_iter().filter(is_posted);
        let operations: Vec<PathOperation> = paths
            .map(|path| self.check_range(&path).map(|()| self.operation(path)))
            .collect::<Result<_, _>>()?;
        if request.posting != Posting::Single && !request.verb.row().carriers.contains(&Carrier::Nic) {
            return Err(no_doorbell(request.posting, request.verb, "is what no NIC does"));
        }
        if operations.is_empty() {
            let has: Vec<&str> =
                VERBS.iter().filter(|row| !of(row.verb).is_empty()).map(|row| row.name).collect();
            return Err(Failure::input(
                format!("`{}` has no path that carries `{}`", system.device, request.verb),
                format!("its paths carry {}", has.join(", ")),
            ));
        }
        let known = known(router, &operations, Seed::new(SEED))?;
        let carried = side_by_side(operations.len(), |index| carried(router, &operations[index]));
        let all = operations.iter().zip(&known).zip(carried);
        let paths = all.map(|((operation, known), carried)| -> Result<_, Failure> {
            Ok(PathAnswer::of(router, operation, (known, &carried?, &rows), bands)?)
        });
        Ok(PathAnswers::Every(Box::new(PathsAnswer {
            schema_version: SCHEMA_VERSION,
            system: SystemAnswer::of(system),
            verb: request.verb.to_string(),
            message: request.verb.is_message(),
            payload_bytes: self.payload.get(),
            posting: posting_name(request.posting),
            posted: match request.verb.row().carriers {
                [Carrier::Processor] => "by the processor itself".to_string(),
                [Carrier::Engine(_)] => "posted to an engine".to_string(),
                _ => doorbells(&posting_name(request.posting)),
            },
            topology: TopologyAnswer::of(system),
            paths: paths.collect::<Result<_, _>>()?,
        })))
    }
}

fn carried(router: &Arc<Router>, operation: &PathOperation) -> Result<Saturated, Failure> {
    saturated(router, operation, Seed::new(SEED)).map_err(|error| match error {
        SaturatedError::Route(error) => error.into(),
        SaturatedError::Load(error) => Failure::negative(
            format!("{} on {}: {error}", operation.verb, operation.path),
            "look at the limits of in-flight slots in the profile",
        ),
    })
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
