//! Rules that change how steps are done: where their bytes lie, how many they move at once, and how
//! they are posted.

use super::look::{Look, PathCall, proposed};
use super::{AdviceRule, Level, Proposal, Proposed, Rung};
use offpath_quantity::Bytes;
use offpath_route::{Carrier, Moves, Verb};
use std::collections::{BTreeMap, BTreeSet};

/// Few banks serve a small or hot range where no cache answers.
pub const SPREAD_HOT_RANGE: AdviceRule = AdviceRule {
    name: "spread-hot-range",
    looks_for: "accesses to few banks of a memory that no cache serves",
    source: "wei2023 §3.2, advice 1",
    level: Level::Steps,
    propose: spread_hot_range,
};

/// Large requests from another machine fall into a large-transfer limit.
pub const SEGMENT_LARGE_READS: AdviceRule = AdviceRule {
    name: "segment-large-reads",
    looks_for: "requests over the network above the payload from which a path is slower",
    source: "wei2023 §3.2, advice 2",
    level: Level::Steps,
    propose: |look| segment(look, true),
};

/// Large transfers inside a machine fall into a large-transfer limit.
pub const SEGMENT_TRANSFERS: AdviceRule = AdviceRule {
    name: "segment-transfers",
    looks_for: "transfers inside a machine above the payload from which a path or engine is slower",
    source: "wei2023 §3.3, advice 3",
    level: Level::Steps,
    propose: |look| segment(look, false),
};

/// Requests posted one by one where a list costs less.
pub const BATCH_DOORBELLS: AdviceRule = AdviceRule {
    name: "batch-doorbells",
    looks_for: "requests that a processor posts one by one and could post as a list for less",
    source: "wei2023 §3.3, advice 4",
    level: Level::Steps,
    propose: batch_doorbells,
};

/// Lists that cost more than posting one by one.
pub const UNBATCH_DOORBELLS: AdviceRule = AdviceRule {
    name: "unbatch-doorbells",
    looks_for: "doorbell batches that cost a processor more than posting one by one",
    source: "wei2023 §3.3, advice 4",
    level: Level::Steps,
    propose: unbatch_doorbells,
};

fn spread_hot_range(look: &Look<'_>) -> Proposed {
    let all: Vec<PathCall<'_>> = look.design.alternatives.iter().flat_map(|one| look.calls(one)).collect();
    let mut reached: BTreeSet<(&str, String)> = BTreeSet::new();
    for call in look.calls_of_mix() {
        // A processor's own loads and stores visit no banks.
        let is_own = call.verb.row().carriers == [Carrier::Processor];
        if let Some(object) = call.object.filter(|_| !is_own) {
            reached.insert((object, call.path.responder.clone()));
        }
    }
    let (mut changes, mut without_room) = (Vec::new(), BTreeSet::new());
    for (name, at) in reached {
        let (Some((_, endpoint)), Some(object)) = (look.endpoint(&at), look.design.objects.get(name)) else {
            continue;
        };
        let memory = &endpoint.memory;
        if endpoint.memory.ddio || memory.banks < 2 {
            continue;
        }
        let reach = object.size.get().div_ceil(memory.bank_stride.get().max(1)).clamp(1, memory.banks);
        if reach < memory.banks && object.spacing < memory.bank_stride {
            let mut ladder = Vec::new();
            let mut spacing = Bytes::new(object.entry.get().next_power_of_two().max(1));
            while spacing < memory.bank_stride {
                spacing = Bytes::new((spacing.get() * 2).min(memory.bank_stride.get()));
                if spacing > object.spacing {
                    let more = object.with_copies(spacing, object.copies, object.copied);
                    if let Some(reason) = look.lacks_room(endpoint, more, &BTreeSet::from([name])) {
                        without_room.insert(format!("entries of `{name}` every {spacing}: {reason}"));
                        break;
                    }
                    let remedy = format!("start an entry of `{name}` every {spacing}");
                    ladder
                        .extend(look.held(remedy, |edit| edit.object(name, "spacing", spacing.to_string())));
                }
            }
            let why = format!(
                "`{name}` spans {}, which reaches {reach} of {} banks at `{at}`, and no cache answers there",
                object.size, memory.banks
            );
            changes.push(Proposal { why, ladder });
        }
        // Copies are for reading: a write would have to reach them all.
        let writes = |verb: Verb| verb.row().moves == Moves::ToResponder || verb.is_atomic();
        let written = all.iter().any(|call| call.object == Some(name) && writes(call.verb));
        if object.hottest > 1.0 / reach as f64 && !written {
            let copied = object.copied.max(16).min(object.entries) as i64;
            let ladder = [2, 4, 8, 16].into_iter().filter_map(|factor| {
                let copies = object.copies.saturating_mul(factor) as i64;
                let more = object.with_copies(object.spacing, copies.unsigned_abs(), copied.unsigned_abs());
                if let Some(reason) = look.lacks_room(endpoint, more, &BTreeSet::from([name])) {
                    without_room.insert(format!("{copies} copies in `{name}`: {reason}"));
                    return None;
                }
                look.held(
                    format!("keep {copies} copies of the {copied} hottest entries of `{name}`"),
                    |edit| {
                        edit.object(name, "copies", copies)?;
                        edit.object(name, "copied", copied)
                    },
                )
            });
            let why = format!(
                "the hottest entry of `{name}` takes {:.1}% of its accesses, and {} banks at `{at}` serve them",
                object.hottest * 100.0,
                memory.banks
            );
            changes.push(Proposal { why, ladder: ladder.collect() });
        }
    }
    if !without_room.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(without_room.into_iter().collect::<Vec<_>>().join("; "));
    }
    proposed(changes, "every object of the mix reaches all banks evenly, or is served by a cache")
}

fn segment(look: &Look<'_>, network: bool) -> Proposed {
    let mut changes = Vec::new();
    for call in look.calls_of_mix() {
        if look.apart(&call.path.requester, &call.path.responder) != network {
            continue;
        }
        let Some((above, limit)) = look.slow_above(&call).filter(|(above, _)| call.bytes > *above) else {
            continue;
        };
        let fewest = call.bytes.get().div_ceil(above.get().max(1)).next_power_of_two();
        let ladder = [1, 2, 4, 8, 16].into_iter().filter_map(|factor| {
            let pieces = fewest.checked_mul(factor)?;
            if !call.bytes.get().is_multiple_of(pieces) {
                return None;
            }
            let piece = Bytes::new(call.bytes.get() / pieces);
            let remedy = format!("split the {} of {} into {pieces} of {piece}", call.verb, call.bytes);
            look.held(remedy, |edit| edit.segment(&call.at, pieces, &piece.to_string()))
        });
        let why = format!(
            "`{}` of `{}`: a {} of {} on `{}` is above {above}, where {limit}",
            call.at.operation, call.at.alternative, call.verb, call.bytes, call.path
        );
        changes.push(Proposal { why, ladder: ladder.collect() });
    }
    let what = if network { "request over the network" } else { "transfer inside a machine" };
    proposed(changes, format!("no {what} of the mix is above a payload from which its path is slower"))
}

/// The calls of each alternative, operation and requester that `kept` lets through.
fn by_requester<'l>(
    look: &Look<'l>,
    kept: impl Fn(&PathCall<'l>) -> bool,
) -> BTreeMap<(String, String, String), Vec<PathCall<'l>>> {
    let mut groups: BTreeMap<(String, String, String), Vec<PathCall<'l>>> = BTreeMap::new();
    let is_posted =
        |call: &PathCall<'_>| call.path.engine.is_none() && call.verb.row().carriers.contains(&Carrier::Nic);
    for call in look.calls_of_mix().into_iter().filter(|call| is_posted(call) && kept(call)) {
        let key = (call.at.alternative.clone(), call.at.operation.clone(), call.path.requester.clone());
        groups.entry(key).or_default().push(call);
    }
    groups
}

fn batch_all(look: &Look<'_>, calls: &[PathCall<'_>], batch: u32, remedy: String) -> Option<Rung> {
    look.held(remedy, |edit| calls.iter().try_for_each(|call| edit.batch(&call.at, batch)))
}

fn batch_doorbells(look: &Look<'_>) -> Proposed {
    let mut changes = Vec::new();
    for ((alternative, operation, requester), calls) in by_requester(look, |call| call.batch == 1) {
        let Some((_, endpoint)) = look.endpoint(&requester) else { continue };
        let verbs = &endpoint.processor.verbs;
        let ladder: Vec<Rung> = [8u32, 16, 32, 64]
            .into_iter()
            .filter(|batch| verbs.list(*batch) < verbs.post_time.times(u64::from(*batch)))
            .filter_map(|batch| {
                let remedy = format!("post lists of {batch} from `{requester}`; the wait until {batch} have come is in no figure");
                batch_all(look, &calls, batch, remedy)
            })
            .collect();
        let why = format!(
            "`{operation}` of `{alternative}`: `{requester}` posts {} one by one, for {} each",
            count(calls.len(), "request"),
            verbs.post_time
        );
        changes.push(Proposal { why, ladder });
    }
    proposed(changes, "no processor of the mix posts one by one what a list would cost it less")
}

fn unbatch_doorbells(look: &Look<'_>) -> Proposed {
    let mut changes = Vec::new();
    for ((alternative, operation, requester), calls) in by_requester(look, |call| call.batch > 1) {
        let why = format!(
            "`{operation}` of `{alternative}`: `{requester}` posts {} in doorbell batches",
            count(calls.len(), "request")
        );
        let ladder = batch_all(look, &calls, 1, format!("post one by one from `{requester}`"));
        changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
    }
    proposed(changes, "nothing of the mix is posted in batches")
}

fn count(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
