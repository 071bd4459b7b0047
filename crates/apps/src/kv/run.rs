//! Running YCSB against the store.

use super::{
    ABOUT, ClientLoad, ClientReport, DriveError, DriveState, Fetch, Placement, StoreConfig, answer, mix,
    roles, shape,
};
use crate::system::{
    About, Answered, BackendKind, BackendReport, Gave, Given, MeasuredSpan, Parts, Refusal, Roles,
    RunSetting, Said, SystemRun,
};
use offpath_fabric::{Fabric, RoleName};
use offpath_quantity::Time;
use offpath_workload::Workload;
use serde_json::Value;
use std::path::Path;
use std::rc::Rc;

/// YCSB clients of a store, and its servers where they run here.
#[derive(Clone, Debug)]
pub struct Clients {
    /// The store's shape.
    pub options: StoreConfig,
    /// What each client does.
    pub load: ClientLoad,
    /// What the clients share; it says how many there are.
    pub shared: Rc<DriveState>,
    /// Whether host and card run here as well.
    pub serves: bool,
    /// The file whose best mix spreads the gets, and what it holds.
    plan: Option<(String, Value)>,
    /// How long was asked to be measured.
    window: Option<Time>,
}

impl Clients {
    /// Clients with their servers in one run.
    pub fn new(options: StoreConfig, load: ClientLoad, clients: u32) -> Clients {
        let window = load.window;
        Clients { options, load, shared: DriveState::new(clients), serves: true, plan: None, window }
    }
}

impl Parts for Clients {
    type Answer = ClientReport;
    type Error = DriveError;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, count_events: Option<fn(&F) -> u64>) -> Roles<F, Clients> {
        let mut roles = roles(&self.options, &self.load, &self.shared, count_events);
        let homes = self.options.placement.homes();
        roles.retain(|role| {
            let home = homes.iter().any(|home| home.role() == role.name.role);
            role.main || (self.serves && home)
        });
        roles
    }

    fn measured(&self) -> Option<MeasuredSpan> {
        let (shared, ends) = (self.shared.clone(), self.shared.clone());
        let sessions = u64::from(shared.clients) * u64::from(self.load.sessions);
        Some(MeasuredSpan {
            begun: Rc::new(move || shared.ready.get() >= sessions || shared.stop.is_asked()),
            warm_up: self.load.warm_up,
            at_end: Rc::new(move |act| ends.at_end.set(act)),
        })
    }
}

impl SystemRun for Clients {
    type Report = answer::Ran;

    fn of(given: &Given, setting: &RunSetting<'_>) -> Result<Clients, Refusal> {
        let workload = shape::workload(given, setting)?;
        tell_unread(&workload, setting);
        let given_mix = given.get::<String>("mix");
        let (spread, home) = mix::spread(given_mix.as_deref(), &workload, setting)?;
        let home = home.unwrap_or(Placement::SplitOneSided);
        let mut options = shape::options(given, &workload, home, setting)?;
        // A client of somebody else's server names that server's cache, whether its own gets look into it or not.
        let reads_cache = given_mix.is_some() || options.placement.looks_into_the_cache();
        if !setting.connects && !reads_cache {
            let given =
                [("--cache", given.get::<u64>("cache").is_some()), ("--warm", !options.warm.is_empty())];
            for (option, _) in given.into_iter().filter(|(_, given)| *given) {
                (setting.tell)(&format!(
                    "warning: `{option}` changes nothing: a get by {} never looks into the card's cache, as one by \
                     A5-read or A5-send does",
                    options.placement
                ));
            }
        }
        let file = given_mix.filter(|mix| !mix.starts_with("controller"));
        let plan = file.map(|file| mix::read_plan(Path::new(&file)).map(|plan| (file, plan)));
        let plan = plan.transpose().map_err(|reason| Refusal::input(reason, ""))?;
        // What the shares are best for: the DMA engine is a part of it, and only the twin has one.
        let engine = plan.as_ref().and_then(|(_, plan)| plan["fetch_engine"].as_str());
        let is_open = given.get::<String>("fetch").is_none() && setting.backend == BackendKind::Twin;
        if let Some(engine) = engine.filter(|_| is_open) {
            options.fetch = Fetch::Engine(engine.to_string());
        }
        let mut load = ClientLoad::of_workload(workload);
        load.spread = spread;
        load.warm_up = given.of("warm-up");
        if let Some(sessions) = given.get::<u64>("sessions") {
            load.sessions = u32::try_from(sessions).expect("the option is bounded");
        }
        let window = given.get("window");
        if window.is_some() {
            (load.operations, load.window) = (None, window);
        }
        load.check().map_err(failed)?;
        let shared = DriveState::new(given.whole("clients"));
        Ok(Clients { options, load, shared, serves: !setting.connects, plan, window })
    }

    fn servers(&self) -> Vec<RoleName> {
        self.options.placement.homes().into_iter().map(|home| RoleName::new(home.role(), 0)).collect()
    }

    fn opened(&self, backend: &BackendReport, setting: &RunSetting<'_>) {
        if let Some((file, plan)) = &self.plan {
            let warnings = mix::other_system(plan, file, backend, &self.options);
            warnings.iter().for_each(|warning| (setting.tell)(warning));
        }
    }

    fn said(&self, gave: Gave<Clients>, setting: &RunSetting<'_>) -> Result<Said<answer::Ran>, Refusal> {
        let mut all = ClientReport::default();
        // A client that waits for a server which failed tells less than the server.
        let (clients, servers): (Vec<_>, Vec<(RoleName, Answered<Clients>)>) =
            gave.answers.into_iter().partition(|(name, _)| name.role == "client");
        for (_, answer) in servers.into_iter().chain(clients) {
            all.add(&answer.map_err(failed)?);
        }
        let failures = failed_kinds(&all);
        if all.total() == 0 && !failures.is_empty() {
            return Err(Refusal::new(
                false,
                format!("no operation was carried out: {failures} ended in an error"),
                patience_help(&self.options),
            ));
        }
        if all.total() == 0 {
            let window = self.load.window.unwrap_or(all.window);
            return Err(Refusal::new(
                false,
                format!("no operation ended within the {window} that were measured"),
                "an operation takes microseconds: make `--window` longer, or leave it out",
            ));
        }
        let longest = all.operations().filter_map(|(operation, _)| Some(all.latency(operation)?.max)).max();
        let is_short = |longest: &Time| longest.times(10) > all.window && self.window.is_none();
        if let Some(longest) = longest.filter(is_short) {
            (setting.tell)(&format!(
                "warning: an operation took {longest} of the {} that were measured, in which most sessions had ended: the \
                 rate is less than the store carries. Give `--window 20ms`, or more operations by `--property \
                 operationcount=`",
                all.window
            ));
        }
        if !failures.is_empty() {
            (setting.tell)(&format!(
                "warning: {failures} ended in an error and count in no rate and no latency; {}",
                patience_help(&self.options)
            ));
        }
        let mostly_failed = all.mostly_failed();
        for (operation, served) in &mostly_failed {
            let name = operation.name();
            (setting.tell)(&match served {
                0 => format!("warning: not one {name} was carried out"),
                _ => format!(
                    "warning: more of {name} failed than were carried out, which the rates are of: {served}"
                ),
            });
        }
        if let Some((file, plan)) = &self.plan
            && let Some(warning) = mix::other_hits(plan, file, &all, &self.options)
        {
            (setting.tell)(&warning);
        }
        let report = answer::Ran::of(self, &all, gave.elapsed, setting.seed);
        Ok(Said { page: report.page(), holds: all.wrong == 0 && mostly_failed.is_empty(), report })
    }
}

/// How many operations of each kind ended in an error, in words; nothing where none did.
fn failed_kinds(report: &ClientReport) -> String {
    let kinds: Vec<String> =
        report.failures().map(|(operation, failed)| format!("{failed} {}", operation.name())).collect();
    kinds.join(" and ")
}

/// What to look at where operations fail.
fn patience_help(options: &StoreConfig) -> String {
    format!(
        "a get gives up after {} without an answer: give a longer `--patience`, or look whether the servers run",
        options.answer_timeout
    )
}

/// Says which loads of a workload file are not offered.
fn tell_unread(workload: &Workload, setting: &RunSetting<'_>) {
    let instead = [
        ("target", "`--clients` and `--sessions` set the load"),
        ("maxexecutiontime", "`--window` says how long is measured"),
    ];
    for (key, instead) in instead {
        let is_limit = |(name, value): &(&str, &str)| *name == key && value.trim() != "0";
        if let Some((_, value)) = workload.properties().find(is_limit) {
            (setting.tell)(&format!(
                "warning: `{key}={value}` of the workload has no effect: the run is a closed loop, in which a session \
                 begins its next operation as soon as the last one ends; {instead}"
            ));
        }
    }
}

/// What a client's error leads to.
fn failed(error: DriveError) -> Refusal {
    match error {
        DriveError::Store(error) => shape::failed(error),
        error @ DriveError::Cancelled(_) => Refusal::new(false, error, "run it again"),
        error @ DriveError::Scan { .. } => {
            Refusal::input(error, "`workloads/` has YCSB A to D and F, which have no scans")
        }
        error => Refusal::input(error, "`--sessions` counts more than the workload's `threadcount`"),
    }
}
