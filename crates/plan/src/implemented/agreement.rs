//! How far step lists are from the code beside them.

use crate::design::{Alternative, Design};
use crate::planner::{Plan, Ready};
use crate::program::{Fold, compile};
use offpath_quantity::figures::round;

/// How far step lists are from the code beside them.
#[derive(Clone, Debug, PartialEq)]
pub struct Agreement {
    /// The application.
    pub application: &'static str,
    /// The largest difference in the time that a station is busy, each alternative at the greatest
    /// rate that its code reaches: as a share of the station's time, with station and alternative.
    pub busy: (f64, String, String),
    /// The largest difference in unloaded latency, as a share of the code's, with the alternative.
    pub latency: (f64, String),
}

impl Agreement {
    /// From which difference on step lists are said to differ from the code beside them.
    const DIFFER: f64 = 0.1;

    /// From which difference on bytes over the network are other ones: short lists leave out the headers of records.
    const BYTES: f64 = 0.25;

    /// Whether a rate or a latency of the step lists is another one than the code's.
    pub fn differs(&self) -> bool {
        self.busy.0.max(self.latency.0) > Agreement::DIFFER
    }

    /// What the author of step lists has to know whose rates are other ones than the code's.
    pub(crate) fn warning(&self) -> Option<String> {
        let (share, station, alternative) = &self.busy;
        (*share > Agreement::DIFFER).then(|| {
            format!(
                "what is planned is the code of {}, and not the step lists: those of `{alternative}` differ from it by \
                 {:.0}% of the time of {station}; `--steps` plans the step lists",
                self.application,
                share * 100.0
            )
        })
    }
}

/// Refuses step lists that move other bytes over the network than the code beside them: what is planned is the code, in which
/// such a size is fixed, and a parameter of the lists would change nothing but what else it stands in, as in a cache.
pub(crate) fn check_bytes(design: &Design, listed: &Alternative, one: &Ready) -> Result<(), miette::Report> {
    let name = &listed.name;
    let (Some(application), Some(code)) = (&design.application, &listed.code) else { return Ok(()) };
    let by_steps = compile(design, listed, &one.router)?.fold(&one.router);
    let by_code = one.compiled.fold(&one.router);
    let (listed, planned) = (by_steps.network_bytes, by_code.network_bytes);
    // Of next to nothing any header is a quarter, and takes no station's time.
    let most = |seconds: &dyn Fn(&str) -> f64| {
        let stations = one.router.stations().iter();
        stations.map(|station| seconds(&station.name) / station.servers().max(1) as f64).fold(0.0, f64::max)
    };
    let of = |fold: &Fold, station: &str| fold.seconds.get(station).copied().unwrap_or(0.0);
    let apart = most(&|station| (of(&by_code, station) - of(&by_steps, station)).abs());
    let is_felt = apart > Agreement::DIFFER * most(&|station| of(&by_code, station));
    if !is_felt || (listed - planned).abs() <= Agreement::BYTES * planned.min(listed) {
        return Ok(());
    }
    let title = application.title();
    Err(design.refuse(
        format!(
            "the steps of `{name}` move {} B a request over the network, and the {title} whose code is planned moves {} B",
            round(listed),
            round(planned)
        ),
        "plan the step lists by `--steps`, leave out `code`, or set the sizes back: the code has its own",
        &code.span,
    ))
}

/// Holds the step lists of a design to the code that was planned; `None` where no code was.
pub fn agreement(design: &Design, ready: &[Ready], plan: &Plan) -> Result<Option<Agreement>, miette::Report> {
    let Some(application) = &design.application else { return Ok(None) };
    let mut busy = (0.0, String::new(), String::new());
    let mut latency = (0.0, String::new());
    for (one, alone) in ready.iter().zip(&plan.alternatives).filter(|(one, _)| one.alternative.code.is_some())
    {
        let name = &one.alternative.name;
        let Some(listed) = design.alternatives.iter().find(|listed| listed.name == *name) else { continue };
        let listed = compile(design, listed, &one.router)?.fold(&one.router);
        let implemented = one.compiled.fold(&one.router);
        for station in one.router.stations() {
            let of = |fold: &Fold| fold.seconds.get(&station.name).copied().unwrap_or(0.0);
            let difference = (of(&implemented) - of(&listed)).abs() * alone.rate.value;
            let share = difference / station.servers().max(1) as f64;
            if share > busy.0 || busy.1.is_empty() {
                busy = (share, station.name.clone(), name.clone());
            }
        }
        let share = (listed.latency / implemented.latency - 1.0).abs();
        if share > latency.0 || latency.1.is_empty() {
            latency = (share, name.clone());
        }
    }
    let found = !busy.1.is_empty();
    Ok(found.then(|| Agreement { application: application.title(), busy, latency }))
}
