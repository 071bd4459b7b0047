//! A folder is enough: a system that is in no list of the program is planned, run, served and put under faults.

#[path = "echo/mod.rs"]
mod echo;

use echo::{Answerers, Asker, Echo, Ours};
use offpath::apps::Stop;
use offpath::apps::system::{
    AppSystem, BackendKind, Given, Of, Parts, Registry, RunSetting, Serve, SystemRun, Visitor, role_text,
};
use offpath::apps::torture::{SystemFault, Tally};
use offpath::fabric::local::{Local, LocalFabric};
use offpath::fabric::{Backend, Role};
use offpath::plan::implemented::{Systems, agreement};
use offpath::plan::{Changes, Design, Setting as PlanSetting, plan, prepare};
use offpath::profile::{Library, SystemRequest};
use offpath::route::Router;
use offpath::run::{OpenedBackend, play};
use offpath::torture::{Case, check_system};
use offpath::twin::Seed;
use std::path::Path;
use std::sync::Arc;

const DESIGN: &str = r#"
[design]
name = "echo"
description = "questions that come back"
device = "bluefield2"
objective = "most-throughput"
rank_by = "unloaded-latency"

[application]
name = "echo"
question = "64 B"
think = "2 us"

[[alternative]]
name = "host"
code = "on-host"
request = [
    { send = "client-host", bytes = "64 B" },
    { compute = "host", time = "think" },
    { send = "host-client", bytes = "64 B" },
]

[[alternative]]
name = "card"
code = "on-card"
request = [
    { send = "client-soc", bytes = "64 B" },
    { compute = "soc", time = "think" },
    { send = "soc-client", bytes = "64 B" },
]
"#;

fn router() -> Arc<Router> {
    let request = SystemRequest { device: "bluefield2", ..SystemRequest::default() };
    let system = Library::builtin().load(&request).expect("a shipped profile loads");
    Arc::new(Router::new(&system).expect("a shipped profile has routes"))
}

fn design(text: &str) -> Result<Design, miette::Report> {
    let changes = Changes { systems: Systems::of::<Ours>(), ..Changes::default() };
    Design::parse(text, "echo.toml", Path::new("."), &changes)
}

#[test]
fn it_is_planned_by_its_code() {
    let design = design(DESIGN).expect("the design is in order");
    let setting = PlanSetting::plain(Library::builtin());
    let ready = prepare(&design, &setting).expect("its code can be followed");
    let folds: Vec<_> = ready.iter().map(|one| one.compiled.fold(&one.router)).collect();
    for (one, fold) in ready.iter().zip(&folds) {
        let cpu = if one.alternative.name == "host" { "host.cpu" } else { "soc.cpu" };
        // It thinks for 2 us; posting, taking and polling come on top.
        assert!((2e-6..4e-6).contains(&fold.seconds[cpu]), "{cpu}: {}", fold.seconds[cpu]);
        assert!(fold.latency > 2e-6, "{}", fold.latency);
    }
    let plan = plan(&design, &ready, &folds, &[], Seed::new(1)).expect("there is a plan");
    assert_eq!(plan.alternatives.len(), 2);
    assert!(plan.alternatives.iter().all(|alone| alone.rate.value > 1e5));
    let agreed = agreement(&design, &ready, &plan).expect("it compiles").expect("there is code");
    assert_eq!(agreed.application, "echo");
    assert!(agreed.latency.0 < 0.3, "{agreed:?}");
}

#[test]
fn a_design_is_held_to_what_it_declares() {
    for (right, wrong, words) in [
        ("think = \"2 us\"\n", "", ["does not say `think`, which `echo` needs", "add `think = \"1 us\"`"]),
        (
            "think = \"2 us\"\n",
            "think = \"2 us\"\nchunk = \"1 B\"\n",
            ["nothing that `echo`", "leave it out"],
        ),
        ("code = \"on-card\"", "code = \"A1\"", ["echo has no alternative `A1`", "on-host, on-card"]),
        ("name = \"echo\"\nq", "name = \"eco\"\nq", ["is not an application", "`kv` or `replog` or `echo`"]),
        ("think = \"2 us\"\n", "thinks = \"2 us\"\n", ["unknown field `thinks`", "offpath new"]),
        ("think = \"2 us\"\n", "think = \"2 us\"\nname = 2\n", ["duplicate key", ""]),
        ("\"echo\"\nquestion", "2\nquestion", ["invalid type: integer `2`, expected a string", ""]),
    ] {
        assert!(DESIGN.contains(right), "{right}");
        let error = design(&DESIGN.replace(right, wrong)).expect_err(words[0]);
        let help = error.help().map(|help| help.to_string()).unwrap_or_default();
        assert!(error.to_string().contains(words[0]) && help.contains(words[1]), "{error}; {help}");
        assert!(error.labels().is_some_and(|mut all| all.next().is_some()), "it points nowhere: {error}");
    }
    let shipped = Design::parse(DESIGN, "echo.toml", Path::new("."), &Changes::default());
    let error = shipped.expect_err("it is not shipped").to_string();
    assert!(error.contains("unknown field `question`"), "{error}");
}

fn setting(backend: BackendKind) -> RunSetting<'static> {
    RunSetting { backend, connects: false, patience: None, seed: 3, plan_version: 2, tell: &|_| {} }
}

fn given<S: AppSystem>(of: Of, placement: &str) -> Given {
    let mut given = Given::defaults(S::ABOUT, of);
    let option = S::ABOUT.options_of(of).find(|one| one.name == "placement").expect("it has one");
    given.set("placement", vec![S::ABOUT.read(option, placement).expect("it has this alternative")]);
    given
}

/// Runs a system by an alternative and gives its report as JSON.
struct Running(OpenedBackend, &'static str);

impl Visitor for Running {
    type Out = (serde_json::Value, bool, usize);

    fn visit<S: AppSystem>(self) -> (serde_json::Value, bool, usize) {
        let Running(place, placement) = self;
        let setting = setting(if matches!(place, OpenedBackend::Local) {
            BackendKind::Local
        } else {
            BackendKind::Twin
        });
        let run = S::Run::of(&given::<S>(Of::Run, placement), &setting).expect("it is in order");
        let (gave, busy) = play(place, &run, setting.seed).expect("it runs");
        let said = run.said(gave, &setting).expect("it has something to say");
        (serde_json::to_value(&said.report).expect("a report is data"), said.holds, busy.len())
    }
}

#[test]
fn it_runs_on_the_local_backend_and_on_the_twin() {
    for placement in ["on-host", "on-card"] {
        for place in [OpenedBackend::Local, OpenedBackend::Twin(router())] {
            let is_twin = matches!(place, OpenedBackend::Twin(_));
            let ran = Ours::with("echo", Running(place, placement)).expect("it is in the registry");
            let (report, holds, stations) = ran;
            assert!(holds && report["answers"] == 50 && report["placement"] == placement, "{report}");
            assert_eq!(stations > 0, is_twin);
        }
    }
    assert!(Ours::with("eco", Running(OpenedBackend::Local, "on-host")).is_none());
}

#[test]
fn it_is_served_until_it_is_told_to_stop() {
    let stop = Stop::default();
    let served =
        Answerers::of(&given::<Echo>(Of::Serve, "on-host"), &setting(BackendKind::Local), stop.clone());
    let served = served.expect("it is in order");
    assert_eq!(served.names().iter().map(role_text).collect::<Vec<_>>(), ["host"]);
    let mut apart = setting(BackendKind::Local);
    apart.connects = true;
    let asker = Asker::of(&given::<Echo>(Of::Run, "on-host"), &apart).expect("it is in order");
    let mut roles: Vec<Role<LocalFabric, Result<u64, String>>> = Vec::new();
    for role in served.roles::<LocalFabric>(None) {
        let own = Role::new(&role.name.role, 0, move |fabric| {
            let running = (role.function)(fabric);
            async move { running.await.map(|()| 0) }
        });
        roles.push(if role.main { own } else { own.in_background() });
    }
    for role in asker.roles::<LocalFabric>(None) {
        assert_eq!(role.name.role, "client", "who connects does not serve");
        let stop = stop.clone();
        roles.push(Role::new("client", 0, move |fabric| {
            let (running, stop) = ((role.function)(fabric), stop.clone());
            async move {
                let counted = running.await;
                stop.ask();
                counted.map(|(right, _)| right)
            }
        }));
    }
    let run = Local::new(1).run(roles).expect("it runs");
    let ends: Vec<_> = run.outcomes.into_iter().filter_map(|outcome| outcome.end.finished()).collect();
    assert!(ends.contains(&Ok(50)) && ends.iter().all(Result::is_ok), "{ends:?}");
    let gave = play(OpenedBackend::Local, &served, 1).expect("it was told to stop").0;
    let said: Vec<_> = served.said(gave).into_iter().map(|line| line.expect("nothing failed")).collect();
    assert_eq!(said, ["50 answers"]);
}

#[test]
fn its_checker_holds_it_to_its_promise_under_faults() {
    let router = router();
    check_system(Echo::ABOUT, &router).expect("the shipped system has what it needs");
    let mut all = Tally::default();
    let mut crashes = 0;
    for seed in 0..60 {
        let case = Case::<Echo>::of(seed, None).expect("nothing is injected");
        let play = || case.play(&router, &case.schedule).unwrap_or_else(|broken| panic!("{seed}: {broken}"));
        let tally = play();
        assert_eq!(tally, play(), "seed {seed} again");
        all.operations += tally.operations;
        all.unacknowledged += tally.unacknowledged;
        crashes += case.schedule.faults.iter().filter(|one| matches!(one, SystemFault::Crash { .. })).count();
    }
    assert!(crashes > 0 && all.unacknowledged > 0, "faults that nobody notices would show nothing");
    assert!(all.operations > 2 * all.unacknowledged, "{all:?}");
    let case = Case::<Echo>::of(0, Some("answer-of-zeros")).expect("it is known");
    let broken = case.play(&router, &case.schedule).expect_err("it is found").to_string();
    assert!(broken.contains("was answered by"), "{broken}");
    assert!(case.shrink(&router).faults.is_empty(), "it needs no fault");
    let error = Case::<Echo>::of(0, Some("no-checksum")).expect_err("it is another's").to_string();
    assert!(error.contains("answer-of-zeros"), "{error}");
}
