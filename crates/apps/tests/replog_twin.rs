//! The log on the twin: what its chunks demand and reach, beside the step lists of its design, and where
//! the host's time goes.

mod common;

use offpath_apps::replog::{self, Alternative, Costs, Driven, Load, LogError, Options, drive};
use offpath_fabric::{Fabric, Role, RoleEnd, RoleName, Work, World};
use offpath_quantity::{Bytes, Time};
use offpath_route::{Demand, Operation as Routed, Router, Verb};
use offpath_twin::world::{Observer, Recorded};
use offpath_twin::{TwinFabric, TwinWorld};
use std::collections::BTreeMap;
use std::rc::Rc;

/// The chunk of the design.
const CHUNK: u64 = 256 * 1024;

fn options(alternative: Alternative) -> Options {
    Options { compress: false, ..Options::new(alternative, vec![RoleName::new("backup", 0)]) }
}

/// The backup and the card, labelled where demands are recorded.
fn others(
    options: &Options,
    label: impl Fn(TwinFabric) -> TwinFabric + Clone + 'static,
) -> Vec<Role<TwinFabric, Option<Driven>>> {
    let (of_backup, of_card, other) = (options.clone(), options.clone(), label.clone());
    let backup = Role::new("backup", 0, move |fabric| {
        let fabric = label(fabric);
        let options = of_backup.clone();
        async move {
            replog::backup(fabric, options).await.expect("the backup serves");
            None
        }
    });
    let card = Role::new("soc", 0, move |fabric| {
        let fabric = other(fabric);
        let options = of_card.clone();
        async move {
            replog::card(fabric, options).await.expect("the card serves");
            None
        }
    });
    vec![backup.in_background(), card.in_background()]
}

/// What `chunks` chunks demand in all, set-up included.
fn recorded(router: &Rc<Router>, options: &Options, chunks: u64) -> Recorded {
    let observer = Observer::new();
    let label = observer.begin(0);
    let mut roles = others(options, move |fabric| fabric.labelled(label));
    let of_host = options.clone();
    roles.push(Role::new("host", 0, move |fabric: TwinFabric| {
        let options = of_host.clone();
        async move {
            let load = Load { sessions: 1, writes: chunks, bytes: CHUNK, compressible_percent: 0 };
            let driven = drive(&fabric.labelled(label), &options, &load).await.expect("it writes");
            // The same end for every number of chunks, so that keeping connections up costs the same.
            fabric.sleep_until(Time::from_ms(20)).await;
            Some(driven)
        }
    }));
    TwinWorld::on(router.clone(), 1).with_observer(&observer).run(roles).expect("the run ends");
    observer.end(label);
    observer.recorded().remove(&0).expect("it ended")
}

/// The demand of the design's step lists: the verbs that carry the chunk.
fn listed(router: &Router, alternative: Alternative) -> BTreeMap<String, f64> {
    let steps: &[(Verb, &str)] = match alternative {
        Alternative::A1 => &[(Verb::Read, "soc-host"), (Verb::Write, "soc-backup")],
        Alternative::A2 => &[(Verb::Read, "soc-host-dma"), (Verb::Write, "soc-backup")],
        _ => &[(Verb::Write, "host-backup")],
    };
    let mut demand = Demand::default();
    for (verb, path) in steps {
        let path = router.path(path).expect("a path of the design");
        let route = router.route(&Routed::new(*verb, path, Bytes::new(CHUNK))).expect("it has a route");
        demand.add(&route.demand(router));
    }
    let named = |station: &offpath_route::StationId| router.stations()[station.index()].name.clone();
    demand.time.iter().map(|(station, time)| (named(station), time.ps() as f64)).collect()
}

#[test]
fn the_coded_log_demands_what_its_step_lists_say() {
    let router = common::router();
    for alternative in [Alternative::A1, Alternative::A2, Alternative::A3] {
        let options = options(alternative);
        let (few, many) = (recorded(&router, &options, 4), recorded(&router, &options, 4 + 64));
        let mut coded: BTreeMap<String, f64> = BTreeMap::new();
        for (station, moments) in &many.time {
            let before = few.time.get(station).map_or(0.0, |moments| moments.sum);
            coded.insert(router.stations()[station.index()].name.clone(), (moments.sum - before) / 64.0);
        }
        let listed = listed(&router, alternative);
        for (name, time) in &coded {
            let step = listed.get(name).copied().unwrap_or(0.0);
            println!("{alternative:?} {name}: {time:.0} ps coded, {step:.0} ps listed");
        }
    }
}
