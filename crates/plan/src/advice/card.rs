//! Rules about what the card's own processors and memories are for.

use super::look::{Look, Site, call, collect, known, proposed, signature};
use super::{Level, Proposal, Proposed, Rule};
use crate::design::{Alternative, Runs, Step};
use offpath_profile::Endpoint;
use offpath_quantity::{BitRate, Time};
use offpath_route::{Path, Verb};
use std::collections::BTreeSet;
use toml_edit::{Item, TableLike, value};

/// Work that dedicated hardware of the card could do.
pub const USE_ACCELERATOR: Rule = Rule {
    name: "use-accelerator",
    looks_for: "computing that an accelerator of the card could do",
    source: "sun2023 §3.2, guideline 1",
    level: Level::Steps,
    propose: use_accelerator,
};

/// Requests of the host itself, for which no client waits.
pub const MOVE_BACKGROUND_WORK: Rule = Rule {
    name: "move-background-work",
    looks_for: "work that the host begins itself and that no client waits for",
    source: "sun2023 §3.2, guideline 2",
    level: Level::Steps,
    propose: move_background_work,
};

/// Requests that one processor or memory of a machine serves where another could serve a share.
pub const SHARD_ACROSS_ENDPOINTS: Rule = Rule {
    name: "shard-across-endpoints",
    looks_for: "requests that only one endpoint of a machine serves",
    source: "sun2023 §3.2, guideline 3; wei2023 §4.1",
    level: Level::Mix,
    propose: shard_across_endpoints,
};

/// A cache on the card in front of the host's memory.
pub const NO_NIC_SIDE_CACHE: Rule = Rule {
    name: "no-nic-side-cache",
    looks_for: "requests that pass the card's processor, which fetches from the host on a miss",
    source: "sun2023 §3.2, guideline 4",
    level: Level::Steps,
    propose: no_nic_side_cache,
};

fn use_accelerator(look: &Look<'_>) -> Proposed {
    let sites = look.mixed().into_iter().flat_map(|one| look.steps(one));
    let computing = sites.filter(|site| matches!(site.step, Step::Compute { .. })).count();
    Proposed::Silent(format!(
        "the mix has {computing} computing steps, and profiles describe no accelerator that could do them"
    ))
}

/// How much longer a processor takes for what another does: the ratio of their clocks, which is all
/// that profiles say of cores.
fn slower(from: &Endpoint, to: &Endpoint) -> f64 {
    from.frequency.hz() as f64 / to.frequency.hz().max(1) as f64
}

fn move_background_work(look: &Look<'_>) -> Proposed {
    let Some(from) = look.router.system().host() else {
        return Proposed::Silent("the system has no host".to_string());
    };
    let host = from.name.as_str();
    let (mut changes, mut without_room) = (Vec::new(), BTreeSet::new());
    for alternative in look.mixed() {
        for (operation, _, steps) in &alternative.operations {
            let sites: Vec<Site<'_>> =
                look.steps(alternative).into_iter().filter(|site| site.at.operation == *operation).collect();
            // Steps that hold others, and messages, mean that somebody else takes part.
            let alone = sites.len() == steps.len()
                && !sites.is_empty()
                && sites.iter().all(|site| match site.step {
                    Step::Compute { at, .. } => at == host,
                    step => call(site.at.clone(), step, look.router).is_some_and(|call| {
                        matches!(call.verb, Verb::Read | Verb::Write)
                            && call.path.requester == host
                            && look.apart(host, &call.path.responder)
                    }),
                });
            if !alone {
                continue;
            }
            let mut ladder = Vec::new();
            // The other processor holds what one request moves until it is sent on.
            let calls = sites.iter().filter_map(|site| call(site.at.clone(), site.step, look.router));
            let held = calls.map(|call| call.bytes.get()).max().unwrap_or(0);
            for to in look.siblings(host) {
                if let Some(reason) = look.lacks_room(to, held, &BTreeSet::new()) {
                    without_room.insert(format!("`{operation}` of `{}`: {reason}", alternative.name));
                    continue;
                }
                let plain = Path { requester: to.name.clone(), responder: host.to_string(), engine: None };
                for mover in look.engines(&plain).into_iter().chain([plain.clone()]) {
                    let Some(lines) = moved_lines(look, &sites, to, slower(from, to), &mover) else {
                        continue;
                    };
                    let remedy = format!("let `{}` do it, moving the bytes on `{mover}`", to.name);
                    ladder.extend(look.held(remedy, |edit| edit.replace_steps(&sites[0].at, &lines)));
                }
            }
            let why = format!(
                "`{operation}` of `{}` is the host's own work: no client waits for it",
                alternative.name
            );
            changes.push(Proposal { why, ladder });
        }
    }
    if !without_room.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(without_room.into_iter().collect::<Vec<_>>().join("; "));
    }
    proposed(changes, "the mix has no work that the host begins and ends by itself")
}

/// The steps of a list as another processor would do them, fetching first what it sends.
fn moved_lines(
    look: &Look<'_>,
    sites: &[Site<'_>],
    to: &Endpoint,
    factor: f64,
    mover: &Path,
) -> Option<Vec<String>> {
    let edit = look.edit()?;
    let mut lines = Vec::new();
    for site in sites {
        if let Step::Compute { time, .. } = site.step {
            lines.push(format!("{{ compute = \"{}\", time = \"{}\" }}", to.name, time.scaled(factor)));
            continue;
        }
        let call = call(site.at.clone(), site.step, look.router)?;
        let bytes = edit.raw(&call.at, "bytes")?;
        let out = Path { requester: to.name.clone(), ..call.path };
        let (inner, outer) = match call.verb {
            Verb::Write => (format!("{{ read = \"{mover}\", bytes = \"{bytes}\" }}"), "write"),
            _ => (format!("{{ write = \"{mover}\", bytes = \"{bytes}\" }}"), "read"),
        };
        let outer = format!("{{ {outer} = \"{out}\", bytes = \"{bytes}\" }}");
        lines.extend(if call.verb == Verb::Write { [inner, outer] } else { [outer, inner] });
    }
    Some(lines)
}

/// Lets a step's keys name another endpoint, its computing taking `factor` times as long.
fn rename(step: &mut dyn TableLike, from: &str, to: &str, factor: f64) {
    if let Some((verb, path)) = super::edit::path_of(step) {
        step.insert(verb, value(renamed(&path, from, to)));
    }
    if step.get("compute").and_then(Item::as_str) != Some(from) {
        return;
    }
    step.insert("compute", value(to));
    let time = |text: &str| Some(text.parse::<Time>().ok()?.scaled(factor).to_string());
    let rate = |text: &str| {
        let rate = text.parse::<BitRate>().ok()?.bits_per_second() as f64 / factor;
        Some(format!("{:.3} Mbit/s", rate / 1e6))
    };
    scale(step, "time", factor, &time);
    scale(step, "rate", 1.0 / factor, &rate);
}

/// Scales a number of a step however it is written: as one, as an interval, as a table of both, or by names of
/// parameters, which others may use as well. `scaled` gives the text of one number, where it is one.
fn scale(step: &mut dyn TableLike, key: &str, factor: f64, scaled: &dyn Fn(&str) -> Option<String>) {
    let Some(item) = step.get_mut(key) else { return };
    if let Some(table) = item.as_table_like_mut() {
        for part in ["value", "low", "high"] {
            scale(table, part, factor, scaled);
        }
    } else if let Some(text) = item.as_str() {
        let ends = text.split_once(" to ").map(|(low, high)| (scaled(low), scaled(high)));
        let new = match ends {
            Some((Some(low), Some(high))) => format!("{low} to {high}"),
            _ => scaled(text).unwrap_or_else(|| format!("{text} * {factor:.4}")),
        };
        step.insert(key, value(new));
    }
}

fn renamed(path: &str, from: &str, to: &str) -> String {
    path.split('-').map(|part| if part == from { to } else { part }).collect::<Vec<_>>().join("-")
}

/// The endpoints that an alternative touches, the one that begins its requests, and its objects.
fn touched<'l>(
    look: &Look<'l>,
    one: &'l Alternative,
) -> (BTreeSet<String>, Option<String>, BTreeSet<&'l str>) {
    let (mut endpoints, mut objects, mut first) = (BTreeSet::new(), BTreeSet::new(), None);
    for site in look.steps(one) {
        if let Step::Compute { at, .. } = site.step {
            first.get_or_insert(at.clone());
            endpoints.insert(at.clone());
        }
        if let Some(call) = call(site.at, site.step, look.router) {
            first.get_or_insert(call.path.requester.clone());
            endpoints.extend([call.path.requester, call.path.responder]);
            objects.extend(call.object);
        }
    }
    (endpoints, first, objects)
}

/// The endpoints that serve some alternative alone whose requests begin at `first`.
fn served_by(look: &Look<'_>, first: &str) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for one in look.design.alternatives.iter().filter(|one| one.mixed) {
        let (endpoints, begins, _) = touched(look, one);
        let served: Vec<&String> = endpoints.iter().filter(|name| look.apart(name, first)).collect();
        if let ([only], Some(begins)) = (served.as_slice(), begins)
            && begins == first
        {
            all.insert((*only).clone());
        }
    }
    all
}

fn shard_across_endpoints(look: &Look<'_>) -> Proposed {
    if let Runs::Mix(_) | Runs::Alternative(_) = look.design.runs {
        return Proposed::Silent(format!(
            "the system runs `{}`, which no addition changes",
            look.design.runs.name()
        ));
    }
    if look.design.cache.is_some() {
        return Proposed::Silent("the design's cache already says which data the card has".to_string());
    }
    let known = known(look.design);
    let (mut changes, mut without_room) = (Vec::new(), BTreeSet::new());
    for one in look.design.alternatives.iter().filter(|one| one.mixed) {
        let (endpoints, Some(first), objects) = touched(look, one) else { continue };
        let served: Vec<&String> = endpoints.iter().filter(|name| look.apart(name, &first)).collect();
        // One endpoint serves, and the requests come from outside its machine.
        let [from] = served.as_slice() else { continue };
        let Some((_, own)) = look.endpoint(from) else { continue };
        let size = objects.iter().map(|name| look.size_of(name)).fold(0, u64::saturating_add);
        for to in look.siblings(from) {
            // Who wrote an alternative that `to` serves alone knows better what its processor takes.
            if served_by(look, &first).contains(&to.name) {
                continue;
            }
            if known.contains(&signature(one, &|path| renamed(path, from, &to.name), false)) {
                continue;
            }
            let name = format!("{} on {}", one.name, to.name);
            if look.design.alternatives.iter().any(|other| other.name == name) {
                continue;
            }
            if let Some(reason) = look.lacks_room(to, size, &objects) {
                without_room.insert(format!("objects of `{}`: {reason}", one.name));
                continue;
            }
            let remedy = format!("add `{name}`: a share of the requests and their data at `{}`", to.name);
            let ladder = look.mixed_again(remedy, |edit| {
                edit.add_like(&one.name, &name, &format!("{}, served by {}", one.name, to.name), |step| {
                    rename(step, from, &to.name, slower(own, to));
                })
            });
            let why = format!("`{from}` alone serves `{}`, and `{}` could serve a share", one.name, to.name);
            changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
        }
    }
    if !without_room.is_empty() && changes.iter().all(|change| change.ladder.is_empty()) {
        return Proposed::Silent(without_room.into_iter().collect::<Vec<_>>().join("; "));
    }
    proposed(changes, "no alternative is served by one endpoint where another of its machine has room for it")
}

fn no_nic_side_cache(look: &Look<'_>) -> Proposed {
    let mut changes = Vec::new();
    for alternative in look.mixed() {
        let sites = look.steps(alternative);
        for site in &sites {
            let Step::Branch { then, otherwise, .. } = site.step else { continue };
            for (case, kept) in [(otherwise, ["hit", "then"]), (then, ["miss", "otherwise"])] {
                let mut fetched = None;
                for step in case {
                    collect(step, &mut |step| {
                        let inner = call(site.at.clone(), step, look.router);
                        let inner = inner.filter(|call| {
                            call.verb == Verb::Read && !look.apart(&call.path.requester, &call.path.responder)
                        });
                        fetched = fetched.take().or(inner.map(|call| call.path));
                    });
                }
                let Some(path) = fetched else { continue };
                // The request has to come to the fetching processor from another machine.
                let reached = sites
                    .iter()
                    .filter_map(|site| call(site.at.clone(), site.step, look.router))
                    .any(|call| {
                        call.verb.is_message()
                            && call.path.responder == path.requester
                            && look.apart(&call.path.requester, &call.path.responder)
                    });
                let ends = (look.endpoint(&path.requester), look.endpoint(&path.responder));
                let (true, (Some((_, card)), Some((_, host)))) = (reached, ends) else { continue };
                let remedy = format!("take `{}` out of the way: ask `{}` directly", card.name, host.name);
                let ladder = look.held(remedy, |edit| {
                    if edit.keep_case(&site.at, kept[0]).is_none() {
                        edit.keep_case(&site.at, kept[1])?;
                    }
                    edit.rewrite(&alternative.name, |step| {
                        rename(step, &card.name, &host.name, slower(card, host));
                    })
                });
                let why = format!(
                    "`{}` asks `{}`, which fetches from `{}` what it has not got",
                    alternative.name, card.name, host.name
                );
                changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
            }
        }
    }
    proposed(changes, "no processor of the mix answers from a cache and fetches from its neighbour on a miss")
}
