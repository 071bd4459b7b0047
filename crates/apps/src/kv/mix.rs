//! How the gets of a run are spread: by one placement, by a plan's best mix, or by a controller.

use super::{ABOUT, ClientReport, Placement, Spread, StoreConfig};
use crate::system::{BackendReport, Refusal, RunSetting};
use offpath_workload::Workload;
use serde_json::Value;
use std::io::Read;
use std::path::Path;

/// Hits more or less, of all gets that look into the cache: so few shift a rate by less than windows do.
const HITS_TOLERANCE: f64 = 0.02;

/// The longest plan that is read.
const PLAN_BYTES_MAX: u64 = 16 << 20;

/// The placement that a user names.
fn placement(name: &str) -> Result<Placement, String> {
    let label = ABOUT.alternative(name)?;
    Ok(Placement::labelled(label).expect("every declared label is a placement's"))
}

/// How gets are spread, and the placement whose home the index has.
pub(super) fn spread(
    mix: Option<&str>,
    workload: &Workload,
    setting: &RunSetting<'_>,
) -> Result<(Spread, Option<Placement>), Refusal> {
    let Some(mix) = mix else { return Ok((Spread::One, None)) };
    let (first, second) = match mix.strip_prefix("controller") {
        None => {
            let shares = planned(Path::new(mix), workload, setting)?;
            let first = shares.first().map(|(placement, _)| *placement);
            return Ok((Spread::Shares(shares), first));
        }
        Some("") => (Placement::SocCacheSend, Placement::SplitOneSided),
        Some(named) => {
            let pair = named.strip_prefix(':').and_then(|names| names.split_once(','));
            let (first, second) = pair.ok_or_else(|| {
                Refusal::input(
                    format!("`--mix {mix}` names no two placements"),
                    "write `controller`, or `controller:A5-send,A4`",
                )
            })?;
            let of = |name| placement(name).map_err(|reason| Refusal::input(reason, "correct `--mix`"));
            let pair = (of(first)?, of(second)?);
            if pair.0 == pair.1 {
                return Err(Refusal::input(
                    format!("`--mix {mix}` names one placement twice, which leaves nothing to split"),
                    "name two, as in `controller:A5-send,A4`, or take `--placement`",
                ));
            }
            pair
        }
    };
    Ok((Spread::Split(first, second), Some(first)))
}

/// The shares of the best mix that a plan's JSON names.
fn planned(
    file: &Path,
    workload: &Workload,
    setting: &RunSetting<'_>,
) -> Result<Vec<(Placement, f64)>, Refusal> {
    const HELP: &str = "name a file that `offpath plan DESIGN --format json` wrote, or `controller`";
    let refuse = |reason: String| Refusal::input(format!("the mix of `{}`: {reason}", file.display()), HELP);
    let plan = read_plan(file).map_err(refuse)?;
    if plan["schema_version"] != setting.plan_version {
        let found = &plan["schema_version"];
        return Err(refuse(format!(
            "its schema_version is {found}, this program reads {}",
            setting.plan_version
        )));
    }
    let Some(shares) = plan["optimal"]["shares"].as_object() else {
        return Err(refuse("it has no `optimal.shares`, so it is not a plan".to_string()));
    };
    let mut found = Vec::new();
    for (name, share) in shares {
        let Some(share) = share.as_f64().filter(|share| (0.0..=1.0).contains(share)) else {
            return Err(refuse(format!("the share of `{name}` is {share}, and a share lies from 0 to 1")));
        };
        if share > 0.0 {
            found.push((placement(name).map_err(refuse)?, share));
        }
    }
    if found.is_empty() {
        return Err(refuse("its best mix is empty".to_string()));
    }
    let all: f64 = found.iter().map(|(_, share)| share).sum();
    if (all - 1.0).abs() > 1e-3 {
        return Err(refuse(format!("its shares add up to {all}, and those of a mix to 1")));
    }
    if let Some(warning) = strange(&plan, file, workload).map_err(refuse)? {
        (setting.tell)(&warning);
    }
    Ok(found)
}

/// What to say where a plan's best mix need not be the best of this run: it was found for other requests.
/// The error is why the plan's workload cannot be read.
fn strange(plan: &Value, file: &Path, workload: &Workload) -> Result<Option<String>, String> {
    let Some(written) = plan["workload_properties"].as_object() else {
        return Err("it has no `workload_properties`: another version of offpath wrote it".into());
    };
    // A design of step lists alone has no workload, and its shares name placements of no store.
    if written.is_empty() {
        return Ok(None);
    }
    let properties = written.iter().map(|(key, value)| match value {
        Value::String(value) => Ok((key.as_str(), value.as_str())),
        other => Err(format!("`workload_properties.{key}` is {other}, and not a text")),
    });
    let properties = properties.collect::<Result<Vec<_>, _>>()?;
    let planned =
        Workload::of_properties(properties, "workload_properties").map_err(|error| error.to_string())?;
    let differences = planned.differences(workload);
    Ok((!differences.is_empty()).then(|| {
        format!(
            "warning: `{}` is for {}, and this run has {}: the shares need not be the best here. They differ in: \
             {}. Plan this workload, or give the run the plan's by `--property KEY=VALUE`",
            file.display(),
            planned.description(),
            workload.description(),
            differences.join("; ")
        )
    }))
}

/// A plan that a file holds.
pub(super) fn read_plan(file: &Path) -> Result<Value, String> {
    let mut text = String::new();
    // A device file or a named pipe need not end; what is cut off is no JSON.
    let read = std::fs::File::open(file).and_then(|file| file.take(PLAN_BYTES_MAX).read_to_string(&mut text));
    read.map_err(|error| format!("it cannot be read: {error}"))?;
    serde_json::from_str(&text).map_err(|error| format!("it is not JSON: {error}"))
}

/// What to say where a plan is for another system than the run's, or counts on a cache that the run begins without.
pub(super) fn other_system(
    plan: &Value,
    file: &str,
    backend: &BackendReport,
    options: &StoreConfig,
) -> Vec<String> {
    let own = [
        ("device", backend.device.as_deref()),
        ("testbed", backend.testbed.as_deref()),
        ("mode", backend.mode.as_deref()),
    ];
    let mut differ: Vec<String> = own
        .into_iter()
        .filter_map(|(key, own)| {
            let (own, planned) = (own?, plan[key].as_str()?);
            (own != planned).then(|| format!("{key} {planned}, other {own}"))
        })
        .collect();
    if backend.device.is_some()
        && plan["overlays"].is_array()
        && plan["overlays"] != serde_json::json!(backend.overlays)
    {
        let list = |all: &[Value]| all.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ");
        let planned = plan["overlays"].as_array().map_or_else(String::new, |all| list(all));
        let shown = |list: String| if list.is_empty() { "none".to_string() } else { list };
        differ.push(format!("settings {}, other {}", shown(planned), shown(backend.overlays.join(", "))));
    }
    let mut warnings = Vec::new();
    // A plan follows a request at a time, and puts what it takes into queues of stations.
    if backend.testbed.is_some() && !plan["twin"]["latency_us_p99"].is_null() {
        warnings.push(format!(
            "warning: latencies here are of the store's own queues on the twin, its receive queues among them; those of \
             `{file}` are of queues at stations alone, and neither speaks for the other"
        ));
    }
    if !differ.is_empty() {
        warnings.push(format!(
            "warning: `{file}` is for another system: {}: the shares need not be the best here. Plan this system, or give \
             the run the plan's by `--set`, `--overlay`, `--testbed` and `--mode`",
            differ.join("; ")
        ));
    }
    if let Some(hits) = plan["cache_hit_ratio"].as_f64().filter(|hits| *hits > 0.0 && options.warm.is_empty())
    {
        let (slots, records) = match planned_slots(plan) {
            Some(slots) => (slots.to_string(), slots.to_string()),
            None => ("SLOTS".to_string(), "RECORDS".to_string()),
        };
        warnings.push(format!(
            "warning: `{file}` counts on {:.0}% of requests that hit the card's cache, and this run begins with an empty \
             one: `--cache {slots} --warm {records}` fills it",
            hits * 100.0
        ));
    }
    warnings
}

/// How many records the cache of a plan holds.
fn planned_slots(plan: &Value) -> Option<u64> {
    plan["cache"]["entries"].as_u64()
}

/// What to say where the card's cache answered another share of the gets than the plan counts on, and what makes it the plan's.
pub(super) fn other_hits(
    plan: &Value,
    file: &str,
    ran: &ClientReport,
    options: &StoreConfig,
) -> Option<String> {
    let planned = plan["cache_hit_ratio"].as_f64()?;
    let looked = ran.gets.iter().filter(|(placement, _)| placement.looks_into_the_cache());
    let gets: u64 = looked.map(|(_, gets)| gets).sum();
    let hits: u64 = ran.cache_hits.values().sum();
    let seen = hits as f64 / gets as f64;
    // Where no get looked, nothing differs.
    if gets == 0 || (planned - seen).abs() <= HITS_TOLERANCE {
        return None;
    }
    let (slots, warm) = (u64::from(options.layout.cache_slots), options.warm.len() as u64);
    let entries = planned_slots(plan);
    let fills = ran.gets.keys().any(|placement| placement.fills_the_cache());
    let mut remedies = Vec::new();
    if let Some(entries) = entries.filter(|entries| *entries != slots) {
        remedies.push(format!("give the cache the {entries} slots of the plan by `--cache {entries}`"));
    }
    if seen < planned {
        if warm < entries.unwrap_or(slots).min(options.preload) {
            remedies.push(format!("fill it by `--warm {}`", entries.unwrap_or(slots).min(options.preload)));
        }
        remedies.extend(match (fills, entries, remedies.is_empty()) {
            (true, ..) => Some("give it time to fill by a longer `--warm-up`".to_string()),
            (false, None, _) => Some("give it more slots by `--cache SLOTS`".to_string()),
            (false, Some(_), true) => Some(
                "a set of its slots leaves out what does not fit there: `--warm` more records, or `--cache` more slots"
                    .to_string(),
            ),
            (false, Some(_), false) => None,
        });
        if !fills {
            remedies.push(
                "no get of this mix brings a record into it, so that `--warm-up` fills nothing".to_string(),
            );
        }
    } else if remedies.is_empty() {
        remedies.push("`--warm` fewer records, or `--cache` fewer slots".to_string());
    }
    Some(format!(
        "warning: the card's cache answered {:.1}% of the gets that looked into it, and `{file}` counts on {:.1}%: rate and \
         latencies are those of this cache, and not the plan's. For the plan's: {}",
        seen * 100.0,
        planned * 100.0,
        remedies.join("; ")
    ))
}
