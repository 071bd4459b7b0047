//! Following the code of a system on the idle twin.

use crate::design::{Signals, Step};
use offpath_apps::system::{Asked, Code, Course, Follow, System};
use offpath_fabric::{Role, World};
use offpath_quantity::Time;
use offpath_route::{Posting, Router};
use offpath_twin::world::{Deed, Label, Observer};
use offpath_twin::{Seed, TwinFabric, TwinWorld};
use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

/// The steps of one kind of request.
pub(super) struct Steps {
    pub(super) steps: Vec<Step>,
    pub(super) latency_s: f64,
}

/// What one request did and how long it took.
#[derive(Clone, Debug, PartialEq)]
struct Seen {
    deeds: Vec<Deed>,
    latency: Time,
}

/// What a run tells.
#[derive(Default)]
struct Told {
    began: Cell<Time>,
    seen: RefCell<Vec<Seen>>,
    refused: RefCell<Option<String>>,
}

/// The steps of a request of a system, all that stand at `span` of the design.
pub(super) fn follow<S: System>(
    asked: &Asked<'_>,
    router: &Arc<Router>,
    span: &Range<usize>,
) -> Result<Steps, String> {
    along(&S::Code::courses(asked)?, router, span)
}

fn along<C: Code>(course: &Course<C>, router: &Arc<Router>, span: &Range<usize>) -> Result<Steps, String> {
    match course {
        Course::Straight(code) => {
            let seen = run(router, code)?;
            let steps = steps(&seen.deeds, &code.objects(), span)?;
            Ok(Steps { steps, latency_s: seen.latency.as_seconds() })
        }
        Course::Branch { probability, then, otherwise } => {
            let (then, otherwise) = (along(then, router, span)?, along(otherwise, router, span)?);
            Ok(Steps {
                steps: vec![Step::Branch {
                    probability: *probability,
                    then: then.steps,
                    otherwise: otherwise.steps,
                    rests_on: Vec::new(),
                }],
                latency_s: probability * then.latency_s + (1.0 - probability) * otherwise.latency_s,
            })
        }
    }
}

/// The same role, labelled, its refusal told.
fn told_by(
    role: Role<TwinFabric, Result<(), String>>,
    label: Label,
    told: &Rc<Told>,
) -> Role<TwinFabric, ()> {
    let (told, function) = (told.clone(), role.function);
    let labelled = Role::new(&role.name.role, role.name.instance, move |fabric: TwinFabric| {
        let (told, running) = (told.clone(), function(fabric.labelled(label)));
        async move {
            if let Err(reason) = running.await {
                told.refused.borrow_mut().get_or_insert(reason);
            }
        }
    });
    if role.main { labelled } else { labelled.in_background() }
}

/// Runs the roles of some code on the idle twin; gives what each followed request did, which has to be the same.
fn run<C: Code>(router: &Arc<Router>, code: &C) -> Result<Seen, String> {
    let observer = Observer::new();
    let label = observer.begin(0);
    let told: Rc<Told> = Rc::default();
    let (of_begin, of_end) = (told.clone(), told.clone());
    let (begins, ends) = (observer.clone(), observer.clone());
    let follow = Follow::new(
        move |now| {
            of_begin.began.set(now);
            begins.follow(label);
        },
        move |now| {
            let seen = Seen { deeds: ends.deeds(), latency: now - of_end.began.get() };
            of_end.seen.borrow_mut().push(seen);
        },
    );
    let roles = code.roles(&follow).into_iter().map(|role| told_by(role, label, &told)).collect();
    let world = TwinWorld::on(router.clone(), Seed::new(1).child("coded").value());
    let ran = world.with_observer(&observer).run(roles);
    if let Some(reason) = told.refused.take() {
        return Err(reason);
    }
    ran.map_err(|error| error.to_string())?;
    // The first looks up what later ones know.
    let mut all: Vec<Seen> = told.seen.take().into_iter().skip(1).collect();
    let last = all.pop().ok_or("no request ended")?;
    match all.iter().all(|one| *one == last) {
        true => Ok(last),
        false => Err("requests that are alike do different things on an idle twin".to_string()),
    }
}

/// What a request did as a step list; `objects` by the length of the region that stands for them.
fn steps(deeds: &[Deed], objects: &BTreeMap<u64, String>, span: &Range<usize>) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for deed in deeds {
        match deed {
            Deed::Compute { time, .. } if *time == Time::ZERO => {}
            Deed::Compute { endpoint, time } => {
                steps.push(Step::Compute {
                    at: endpoint.clone(),
                    time: *time,
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
            Deed::Operation { operation, signaled, immediate, region } => {
                let is_message = operation.verb.is_message();
                if !signaled && !is_message {
                    let path = &operation.path;
                    return Err(format!("it does not wait for a {} on {path}", operation.verb));
                }
                let object = region.and_then(|length| objects.get(&length.get()).cloned());
                steps.push(Step::Verb {
                    verb: operation.verb,
                    path: operation.path.to_string(),
                    bytes: operation.payload,
                    object,
                    batch: match operation.posting {
                        Posting::Single => 1,
                        Posting::Batch(count) => count,
                    },
                    to: 1,
                    signals: Signals { immediate: *immediate, polled: *signaled && is_message },
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
        }
    }
    Ok(steps)
}
