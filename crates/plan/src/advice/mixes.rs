//! Rules that change the mix: what it leaves to the inner links, and which alternatives it combines.

use super::look::{Look, PathCall, known, proposed, signature};
use super::{AdviceRule, Level, Proposal, Proposed, Rung};
use crate::design::{BEST, Runs};
use offpath_route::{Path, Verb};

/// Transfers inside the machine take from requests over the network what a link has to spare.
pub const SPARE_INNER_LINK: AdviceRule = AdviceRule {
    name: "spare-inner-link",
    looks_for: "transfers that pass an inner link twice beside requests over the network",
    source: "wei2023 §4.1, the P - N rule",
    level: Level::Steps,
    propose: spare_inner_link,
};

/// An alternative that the paths allow and that the design does not list.
pub const ADD_ALTERNATIVE: AdviceRule = AdviceRule {
    name: "add-alternative",
    looks_for: "alternatives that the card's paths allow and the design lacks",
    source: "wei2023 §4.2, step 1",
    level: Level::Mix,
    propose: add_alternative,
};

/// A combination that is filled in an order which wastes what binds.
pub const RANK_ALTERNATIVES: AdviceRule = AdviceRule {
    name: "rank-alternatives",
    looks_for: "mixes whose order of filling, or a dominated alternative, wastes what binds",
    source: "wei2023 §4.2, step 2",
    level: Level::Mix,
    propose: rank_alternatives,
};

/// One alternative, or a fixed combination, where the best mix carries more.
pub const MIX_ALTERNATIVES: AdviceRule = AdviceRule {
    name: "mix-alternatives",
    looks_for: "systems that run something else than the best mix of their alternatives",
    source: "wei2023 §4.2, step 3",
    level: Level::Mix,
    propose: mix_alternatives,
};

fn spare_inner_link(look: &Look<'_>) -> Proposed {
    let calls = look.calls_of_mix();
    let network = calls.iter().any(|call| look.apart(&call.path.requester, &call.path.responder));
    let twice = |call: &&PathCall<'_>| !look.passed_twice(&call.path).is_empty();
    let Some(first) = calls.iter().find(twice).filter(|_| network) else {
        return Proposed::Silent(
            "the mix has no transfer that passes a link twice beside network requests".into(),
        );
    };
    let links = look.passed_twice(&first.path).join(" and ");
    let mut changes = Vec::new();
    for alternative in look.mixed() {
        let own: Vec<&PathCall<'_>> =
            calls.iter().filter(twice).filter(|call| call.at.alternative == alternative.name).collect();
        let movable = |call: &&&PathCall<'_>| matches!(call.verb, Verb::Read | Verb::Write);
        let mut ladder: Vec<Rung> = Vec::new();
        for engine in own.iter().filter(movable).flat_map(|call| look.engines(&call.path)) {
            let name = engine.engine.clone().unwrap_or_default();
            let remedy =
                format!("let `{name}` move what `{}` transfers inside the machine", alternative.name);
            ladder.extend(look.held(remedy, |edit| {
                own.iter().filter(movable).try_for_each(|call| {
                    let path = Path { engine: engine.engine.clone(), ..call.path.clone() };
                    edit.path(&call.at, &path)
                })
            }));
        }
        ladder.dedup_by(|a, b| a.changed == b.changed);
        let why = format!("`{}` passes {links} twice, beside requests over the network", alternative.name);
        changes.push(Proposal { why, ladder });
    }
    // What is filled first takes all it can; what passes a link twice may have what is left.
    if let Runs::Mix(name) = &look.design.runs
        && let Some(mix) = look.design.mixes.iter().find(|mix| mix.name == *name)
    {
        let crosses = |one: &String| {
            let steps = look.design.alternatives.iter().find(|other| other.name == *one);
            steps.is_some_and(|one| look.calls(one).iter().any(|call| twice(&call)))
        };
        let mut order = mix.fill.clone();
        order.sort_by_key(crosses);
        let remedy = format!("fill `{name}` in the order {}", order.join(", "));
        let ladder = look.mixed_again(remedy, |edit| edit.fill(name, &order)).into_iter().collect();
        let why =
            format!("`{name}` gives {links} to transfers that pass it twice, before the network's requests");
        changes.push(Proposal { why, ladder });
    }
    proposed(changes, format!("{links} is passed twice, and no engine does without"))
}

fn add_alternative(look: &Look<'_>) -> Proposed {
    if let Runs::Mix(_) | Runs::Alternative(_) = look.design.runs {
        return Proposed::Silent(format!(
            "the system runs `{}`, which no addition changes",
            look.design.runs.name()
        ));
    }
    let known = known(look.design);
    let mut changes = Vec::new();
    for one in look.design.alternatives.iter().filter(|one| one.mixed) {
        // Every way of moving bytes inside the machine that differs from the alternative's own.
        let mut movers: Vec<Option<String>> = Vec::new();
        for call in look.calls(one).iter().filter(|call| matches!(call.verb, Verb::Read | Verb::Write)) {
            if look.apart(&call.path.requester, &call.path.responder) {
                continue;
            }
            let others = look.engines(&call.path).into_iter().map(|path| path.engine).chain([None]);
            movers.extend(others.filter(|engine| *engine != call.path.engine));
        }
        movers.sort();
        movers.dedup();
        for mover in movers {
            let router = look.router;
            let change = |name: &str| -> String {
                let Ok(path) = router.path(name) else { return name.to_string() };
                let inner = router.machine_of(&path.requester) == router.machine_of(&path.responder);
                let other = Path { engine: mover.clone(), ..path };
                // What an engine keeps, or makes, no other mover reaches.
                let takes = router.verbs(&other);
                let is_there = takes.contains(&Verb::Read) && takes.contains(&Verb::Write);
                if inner && is_there { other.to_string() } else { name.to_string() }
            };
            if known.contains(&signature(one, &change, false)) {
                continue;
            }
            let by = mover.clone().unwrap_or_else(|| "RDMA".to_string());
            let name = format!("{}-{}", one.name, by.to_lowercase());
            if look.design.alternatives.iter().any(|other| other.name == name) {
                continue;
            }
            let remedy = format!("add `{name}`: `{}` with its inner transfers by {by}", one.name);
            let ladder = look.mixed_again(remedy, |edit| {
                edit.add_like(&one.family, &name, &format!("{}, by {by}", one.name), |step| {
                    for verb in ["read", "write"] {
                        let new = step.get(verb).and_then(toml_edit::Item::as_str).map(&change);
                        if let Some(new) = new {
                            if router.path(&new).is_ok_and(|path| path.engine.is_some()) {
                                step.remove("batch");
                            }
                            step.insert(verb, toml_edit::value(new));
                        }
                    }
                    Ok(())
                })
            });
            let why = format!("the paths allow `{}` by {by}, and the design lacks it", one.name);
            changes.push(Proposal { why, ladder: ladder.into_iter().collect() });
        }
    }
    proposed(changes, "the design has every alternative that another mover of its inner transfers would make")
}

fn rank_alternatives(look: &Look<'_>) -> Proposed {
    let why = |name: &str| format!("`{name}` is filled in an order that may waste what binds");
    match &look.design.runs {
        Runs::Greedy => {
            let ladder = ["unloaded-latency", "network-saved", "throughput", "host-cpu"]
                .into_iter()
                .filter_map(|criterion| {
                    look.mixed_again(format!("rank by {criterion}"), |edit| edit.design("rank_by", criterion))
                });
            proposed(vec![Proposal { why: why("greedy"), ladder: ladder.collect() }], "nothing to rank")
        }
        Runs::Mix(name) => {
            let Some(mix) = look.design.mixes.iter().find(|mix| mix.name == *name) else {
                return Proposed::Silent("the mix is not in the design".to_string());
            };
            // Seconds or bytes of which less is better, throughput with its sign turned.
            let criteria: Vec<(String, [f64; 4])> =
                mix.fill.iter().filter_map(|one| Some((one.clone(), look.criteria(one)?))).collect();
            let worse = |a: &[f64; 4], b: &[f64; 4]| {
                a.iter().zip(b).all(|(a, b)| a >= b) && a.iter().zip(b).any(|(a, b)| a > b)
            };
            let kept: Vec<&(String, [f64; 4])> =
                criteria.iter().filter(|(_, a)| !criteria.iter().any(|(_, b)| worse(a, b))).collect();
            let mut orders: Vec<Vec<String>> = Vec::new();
            for list in [criteria.iter().collect::<Vec<_>>(), kept] {
                for by in 0..4 {
                    let mut order = list.clone();
                    order.sort_by(|a, b| a.1[by].total_cmp(&b.1[by]));
                    let names: Vec<String> = order.into_iter().map(|(name, _)| name.clone()).collect();
                    if names != mix.fill && !orders.contains(&names) {
                        orders.push(names);
                    }
                }
            }
            let ladder = orders.into_iter().filter_map(|order| {
                let remedy = format!("fill `{name}` in the order {}", order.join(", "));
                look.mixed_again(remedy, |edit| edit.fill(name, &order))
            });
            let change = Proposal { why: why(name), ladder: ladder.collect() };
            proposed(vec![change], format!("no criterion orders `{name}` in another way"))
        }
        runs => Proposed::Silent(format!("`{}` is not filled in an order", runs.name())),
    }
}

fn mix_alternatives(look: &Look<'_>) -> Proposed {
    if look.design.runs == Runs::Best {
        return Proposed::Silent("the system runs the best mix of its alternatives".to_string());
    }
    let name = look.design.runs.name();
    let ladder = look.mixed_again("run the best mix of the design's alternatives".to_string(), |edit| {
        edit.design("mix", BEST)
    });
    let why = format!("the system runs `{name}`");
    proposed(vec![Proposal { why, ladder: ladder.into_iter().collect() }], "the best mix is what it runs")
}
