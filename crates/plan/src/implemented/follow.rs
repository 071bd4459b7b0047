//! Following the code of a system on the idle twin.

use crate::design::{ComputeCost, Signals, Step};
use offpath_apps::system::{AppSystem, Asked, Course, Follow, FollowedCode};
use offpath_fabric::{Backend, Role};
use offpath_quantity::Time;
use offpath_route::{Posting, Router};
use offpath_twin::backend::{Label, ObservedStep, Observer};
use offpath_twin::{Seed, TwinBackend, TwinFabric};
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
struct ObservedRequest {
    observed_steps: Vec<ObservedStep>,
    latency: Time,
}

/// What a run tells.
#[derive(Default)]
struct RunLog {
    began: Cell<Time>,
    seen: RefCell<Vec<ObservedRequest>>,
    refused: RefCell<Option<String>>,
}

/// The steps of a request of a system, all that stand at `span` of the design.
pub(super) fn follow<S: AppSystem>(
    asked: &Asked<'_>,
    router: &Arc<Router>,
    span: &Range<usize>,
) -> Result<Steps, String> {
    along(&S::Code::courses(asked)?, router, span)
}

fn along<C: FollowedCode>(
    course: &Course<C>,
    router: &Arc<Router>,
    span: &Range<usize>,
) -> Result<Steps, String> {
    match course {
        Course::Straight(code) => {
            let seen = run(router, code)?;
            let steps = steps(&seen.observed_steps, &code.objects(), span)?;
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
    run_log: &Rc<RunLog>,
) -> Role<TwinFabric, ()> {
    let (run_log, function) = (run_log.clone(), role.function);
    let labelled = Role::new(&role.name.role, role.name.instance, move |fabric: TwinFabric| {
        let (run_log, running) = (run_log.clone(), function(fabric.labelled(label)));
        async move {
            if let Err(reason) = running.await {
                run_log.refused.borrow_mut().get_or_insert(reason);
            }
        }
    });
    if role.main { labelled } else { labelled.in_background() }
}

/// Runs the roles of some code on the idle twin; gives what each followed request did, which has to be the same.
fn run<C: FollowedCode>(router: &Arc<Router>, code: &C) -> Result<ObservedRequest, String> {
    let observer = Observer::new();
    let label = observer.begin(0);
    let run_log: Rc<RunLog> = Rc::default();
    let (of_begin, of_end) = (run_log.clone(), run_log.clone());
    let (begins, ends) = (observer.clone(), observer.clone());
    let follow = Follow::new(
        move |now| {
            of_begin.began.set(now);
            begins.follow(label);
        },
        move |now| {
            let seen =
                ObservedRequest { observed_steps: ends.observed_steps(), latency: now - of_end.began.get() };
            of_end.seen.borrow_mut().push(seen);
        },
    );
    let roles = code.roles(&follow).into_iter().map(|role| told_by(role, label, &run_log)).collect();
    let backend = TwinBackend::on(router.clone(), Seed::new(1).child("coded").value());
    let ran = backend.with_observer(&observer).run(roles);
    if let Some(reason) = run_log.refused.take() {
        return Err(reason);
    }
    ran.map_err(|error| error.to_string())?;
    // The first looks up what later ones know.
    let mut all: Vec<ObservedRequest> = run_log.seen.take().into_iter().skip(1).collect();
    let last = all.pop().ok_or("no request ended")?;
    match all.iter().all(|one| *one == last) {
        true => Ok(last),
        false => Err("requests that are alike do different things on an idle twin".to_string()),
    }
}

/// What a request did as a step list; `objects` by the length of the region that stands for them.
fn steps(
    observed_steps: &[ObservedStep],
    objects: &BTreeMap<u64, String>,
    span: &Range<usize>,
) -> Result<Vec<Step>, String> {
    let mut steps = Vec::new();
    for observed_step in observed_steps {
        match observed_step {
            ObservedStep::Compute { time, .. } if *time == Time::ZERO => {}
            ObservedStep::Compute { endpoint, time } => {
                steps.push(Step::Compute {
                    at: endpoint.clone(),
                    cost: ComputeCost::Time(*time),
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
            ObservedStep::Operation { operation, signaled, immediate, region } => {
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
                    arrived: None,
                    batch: match operation.posting {
                        Posting::Single => 1,
                        Posting::Batch(count) => count,
                    },
                    to: 1,
                    signals: Signals {
                        immediate: *immediate,
                        polled: *signaled && is_message,
                        unawaited: false,
                    },
                    rests_on: Vec::new(),
                    span: span.clone(),
                });
            }
        }
    }
    Ok(steps)
}
