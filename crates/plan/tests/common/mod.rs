//! Shipped designs, planned by adding up their step lists.
#![allow(dead_code, reason = "each test uses a part")]

use offpath_plan::planner::{Alone, Mix};
use offpath_plan::solve::{Evaluation, solved};
use offpath_plan::study::{Ask, Study};
use offpath_plan::{Changes, Design, Fold, Plan, Ready, Setting, plan, prepare};
use offpath_profile::Library;
use offpath_twin::Seed;
use std::path::{Path, PathBuf};

pub fn designs() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../designs")
}

pub fn text(name: &str) -> String {
    std::fs::read_to_string(designs().join(name)).expect("the design is shipped")
}

pub fn parse(text: &str, changes: &Changes) -> Design {
    Design::parse(text, "design.toml", &designs(), changes).expect("the design is in order")
}

pub fn with_ratio(ratio: f64) -> Changes {
    Changes { parameters: [("ratio".to_string(), ratio.to_string())].into(), ..Changes::default() }
}

/// A hundredth of the store: drawing its popularity takes no time, and every route stays as it is.
pub fn small(name: &str) -> String {
    let text = text(name);
    assert!(text.contains("recordcount = 100_000_000") && text.contains("budget = \"4 GiB\""));
    text.replace("recordcount = 100_000_000", "recordcount = 1_000_000")
        .replace("budget = \"4 GiB\"", "budget = \"43 MB\"")
}

pub fn setting(overlays: &[&str], settings: &[&str]) -> Setting {
    let own = |list: &[&str]| list.iter().map(ToString::to_string).collect();
    Setting { overlays: own(overlays), settings: own(settings), ..Setting::plain(Library::builtin()) }
}

pub fn folds(ready: &[Ready]) -> Vec<Fold> {
    ready.iter().map(|one| one.compiled.fold(&one.router)).collect()
}

/// What is said of a design, without latency over load.
pub fn study_of(design: &Design, changes: &Changes, setting: &Setting) -> Result<Study, miette::Report> {
    Study::of(&Ask { design, changes, setting, seed: Seed::new(1), curve: false })
}

/// The plan by added-up demands, or why there is none.
pub fn try_plan(design: &Design, setting: &Setting) -> Result<Plan, miette::Report> {
    let ready = prepare(design, setting)?;
    plan(design, &ready, &folds(&ready), &[], Seed::new(1))
}

pub fn planned(design: &Design, overlays: &[&str], settings: &[&str]) -> Plan {
    try_plan(design, &setting(overlays, settings)).expect("the design has a plan")
}

/// The rates by added-up demands, or why there are none, without intervals.
pub fn try_solved(design: &Design, setting: &Setting) -> Result<Evaluation, miette::Report> {
    let ready = prepare(design, setting)?;
    Ok(solved(design, &ready, &folds(&ready))?)
}

/// Requests per second of an alternative alone.
pub fn rate_alone(design: &Design, overlays: &[&str], settings: &[&str], name: &str) -> f64 {
    let index = design.alternatives.iter().position(|one| one.name == name).expect("it is an alternative");
    try_solved(design, &setting(overlays, settings)).expect("the design has a plan").alone[index].total
}

pub fn alone<'p>(plan: &'p Plan, name: &str) -> &'p Alone {
    plan.alternatives.iter().find(|one| one.name == name).unwrap_or_else(|| panic!("{name} is planned"))
}

pub fn mix<'p>(plan: &'p Plan, name: &str) -> &'p Mix {
    plan.mixes.iter().find(|mix| mix.name == name).unwrap_or_else(|| panic!("{name} is planned"))
}

/// Holds `value` to a share of `expected`.
pub fn near(what: &str, value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{what}: {value}, expected {expected} within {share}");
}
