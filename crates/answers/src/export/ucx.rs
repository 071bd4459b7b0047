//! What a profile determines of UCX's configuration, as lines of a `ucx.conf`.

use crate::SCHEMA_VERSION;
use crate::diagnose::usual_path;
use crate::system::SystemAnswer;
use offpath_learn::{MOST_DEPTH, ToolBench, ToolProgram};
use offpath_profile::System;
use offpath_quantity::Bytes;
use offpath_route::Router;
use offpath_terminal::failure::{Failure, unknown_path};
use offpath_terminal::options::SystemOptions;
use serde::Serialize;

/// Whose configuration is asked for.
#[derive(Clone, Debug, Default)]
pub struct UcxRequest {
    /// The device, by name or from a file.
    pub device: String,
    /// From whom to whom programs communicate; from the client to the host where absent.
    pub path: Option<String>,
    /// Which system is meant.
    pub system: SystemOptions,
}

/// Keys of UCX that a profile determines.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UcxAnswer {
    /// Version of this schema; it grows when a key changes its meaning or goes away. New keys may come without that.
    #[cfg_attr(test, schemars(extend("const" = SCHEMA_VERSION)))]
    pub schema_version: u32,
    /// The system.
    #[serde(flatten)]
    pub system: SystemAnswer,
    /// From whom to whom.
    pub path: String,
    /// The keys.
    pub keys: Vec<UcxKeyAnswer>,
    /// Keys that are often set and that the profile does not determine.
    pub left_out: Vec<UcxLeftOutAnswer>,
}

/// A key with its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UcxKeyAnswer {
    /// Its name.
    pub key: &'static str,
    /// Its value, in `unit`.
    pub value: u64,
    /// `bytes`, or `requests` of a queue pair.
    #[cfg_attr(test, schemars(extend("enum" = ["bytes", "requests"])))]
    pub unit: &'static str,
    /// What it does.
    pub meaning: &'static str,
    /// Where the value comes from.
    pub from: String,
}

/// A key that is not written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct UcxLeftOutAnswer {
    /// Its name.
    pub key: &'static str,
    /// Why.
    pub why: String,
}

/// Payloads at which a depth has to be enough.
const PAYLOADS: [u64; 4] = [64, 1024, 4096, 65536];

/// Requests that UCX posts ahead where nobody says so.
const OWN_TX_QUEUE_LEN: u64 = 256;

/// What a depth may leave of the rate that the deepest queue reaches.
const ENOUGH: f64 = 0.99;

/// Which keys of UCX a profile determines.
///
/// # Errors
/// Where the device or the path is refused.
pub fn ucx(request: &UcxRequest) -> Result<UcxAnswer, Failure> {
    let system = request.system.load(&request.system.library()?, &request.device, &[])?;
    let router = Router::new(&system)?;
    let path = match &request.path {
        Some(path) => router.path(path).map_err(|error| unknown_path(&router, path, error))?.to_string(),
        None => usual_path(&system, &router)?,
    };
    let bench = ToolBench::new(&system, &path).map_err(|error| {
        Failure::input(error.to_string(), format!("`offpath path {}` lists paths", request.device))
    })?;
    let requester = &bench.path().requester;
    let prefix =
        system.endpoint(requester).map_or_else(|_| String::new(), |(machine, _)| machine.prefix.clone());
    let (mut keys, mut left_out) = (Vec::new(), Vec::new());
    // A profile's packets are one of the path MTUs that InfiniBand knows.
    match number(&system, "network.mtu") {
        Ok(from) => keys.push(UcxKeyAnswer {
            key: "UCX_RC_PATH_MTU",
            value: system.network.mtu.get(),
            unit: "bytes",
            meaning: "payload of a packet",
            from,
        }),
        Err(why) => left_out.push(UcxLeftOutAnswer { key: "UCX_RC_PATH_MTU", why }),
    }
    let reads = number(&system, &format!("{prefix}nic.outstanding_reads"));
    match reads.and_then(|from| Ok((from, system.endpoint(requester).map_err(|error| error.to_string())?))) {
        Ok((from, (machine, _))) => keys.push(UcxKeyAnswer {
            key: "UCX_RC_MAX_RD_ATOMIC",
            value: machine.nic.outstanding_reads,
            unit: "requests",
            meaning: "READs and atomics of a queue pair in flight",
            from,
        }),
        Err(why) => left_out.push(UcxLeftOutAnswer { key: "UCX_RC_MAX_RD_ATOMIC", why }),
    }
    match depth(&bench) {
        Ok(depth) => {
            let from = format!(
                "the model: {depth} is the least power of two at which one queue pair's READs and WRITEs of 64 B to 64 KiB on \
                 {path}, each with a completion, reach {}% of what deeper queues do",
                ENOUGH * 100.0
            );
            let (key, meaning) = ("UCX_RC_TX_QUEUE_LEN", "requests of a queue pair posted ahead");
            match depth > OWN_TX_QUEUE_LEN {
                true => keys.push(UcxKeyAnswer { key, value: depth, unit: "requests", meaning, from }),
                false => left_out.push(UcxLeftOutAnswer {
                    key,
                    why: format!("UCX's own {OWN_TX_QUEUE_LEN} are enough by {from}"),
                }),
            }
        }
        Err(why) => left_out.push(UcxLeftOutAnswer { key: "UCX_RC_TX_QUEUE_LEN", why }),
    }
    let not = |key: &'static str, why: &str| UcxLeftOutAnswer { key, why: why.to_string() };
    left_out.extend([
        not(
            "UCX_ZCOPY_THRESH",
            "it weighs a copy between buffers against a registration, and no profile has the time of either",
        ),
        not(
            "UCX_RNDV_THRESH",
            "it weighs a copy out of the receiver's buffers against a round trip, and no profile has the time of that copy",
        ),
        not("UCX_NET_DEVICES", "what your machine calls the device: `ucx_info -d`"),
    ]);
    Ok(UcxAnswer { schema_version: SCHEMA_VERSION, system: SystemAnswer::of(&system), path, keys, left_out })
}

/// A number of the system with where it is from; why it determines nothing, where it is a guess.
fn number(system: &System, name: &str) -> Result<String, String> {
    let number = system.numbers.get(name).ok_or_else(|| format!("the profile has no `{name}`"))?;
    let (value, provenance) = (&number.value, number.provenance);
    match provenance.is_guess() {
        true => Err(format!("{name} = {value} is {}, which determines nothing", provenance.name())),
        false => Ok(format!("{name} = {value}, {}: {}", provenance.name(), number.source)),
    }
}

/// The depth from which on deeper queues bring next to nothing.
fn depth(bench: &ToolBench) -> Result<u64, String> {
    let rate = |program: &str, payload: u64, depth: u64| -> Result<f64, String> {
        let program = ToolProgram::named(program).expect("it is one of perftest's");
        let mut run = program.run(Bytes::new(payload));
        (run.tx_depth, run.length) = (depth, None);
        // Completions of fewer than are posted ahead have to come before more can be.
        run.cq_moderation = 1;
        bench.expect(&run).map(|expected| expected.gbit_per_s()).map_err(|error| error.to_string())
    };
    let mut enough = 1;
    for program in ["ib_read_bw", "ib_write_bw"] {
        for payload in PAYLOADS {
            let most = rate(program, payload, MOST_DEPTH)?;
            while enough < MOST_DEPTH && rate(program, payload, enough)? < ENOUGH * most {
                enough *= 2;
            }
        }
    }
    Ok(enough.min(MOST_DEPTH))
}

impl UcxAnswer {
    /// Lines of a `ucx.conf`.
    pub fn text(&self) -> String {
        let mut text = format!(
            "# What offpath's profile determines of UCX: {}, {}. `ucx_info -cf` describes every key.\n",
            self.system.line(),
            self.path
        );
        for key in &self.keys {
            text +=
                &format!("# {} ({}), from {}\n{}={}\n", key.meaning, key.unit, key.from, key.key, key.value);
        }
        for one in &self.left_out {
            text += &format!("# not written: {}: {}\n", one.key, one.why);
        }
        text
    }
}
