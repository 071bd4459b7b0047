//! Serving sides of the memory server to clients in other processes.

use super::{ABOUT, Home, KvError, Placement, Served, StoreConfig, serve, shape};
use crate::Stop;
use crate::system::{About, Gave, Given, Parts, Refusal, Roles, RunSetting, Serve, role_text};
use offpath_fabric::{ConnectError, Fabric, Role, RoleName};
use offpath_quantity::Time;

/// How often a card looks whether its host is there.
const LOOK_EVERY: Time = Time::from_ms(20);

/// Sides of the store's memory server, which run until they are asked to stop.
#[derive(Clone, Debug)]
pub struct StoreServers {
    /// The store's shape.
    pub options: StoreConfig,
    /// Which sides.
    pub homes: Vec<Home>,
    /// Asks for the end.
    pub stop: Stop,
}

impl Parts for StoreServers {
    type Answer = Served;
    type Error = KvError;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, StoreServers> {
        let of = |home: &Home| {
            let (home, options, stop) = (*home, self.options.clone(), self.stop.clone());
            Role::new(home.role(), 0, move |fabric: F| {
                let (options, stop) = (options.clone(), stop.clone());
                async move {
                    let served = loop {
                        match serve(fabric.clone(), home, options.clone(), &stop).await {
                            // The host may be started after its card.
                            Err(KvError::Connect(ConnectError::Timeout { .. })) if !stop.is_asked() => {
                                fabric.sleep(LOOK_EVERY).await;
                            }
                            served => break served,
                        }
                    };
                    // One side alone serves nobody.
                    stop.ask();
                    served
                }
            })
        };
        self.homes.iter().map(of).collect()
    }
}

impl Serve for StoreServers {
    fn of(given: &Given, setting: &RunSetting<'_>, stop: Stop) -> Result<StoreServers, Refusal> {
        let workload = shape::workload(given, setting)?;
        let options = shape::options(given, &workload, Placement::SplitOneSided, setting)?;
        let homes = match given.get::<String>("home") {
            Some(home) if home == Home::Host.role() => vec![Home::Host],
            Some(_) => vec![Home::Soc],
            None => options.placement.homes(),
        };
        let servers = StoreServers { options, homes, stop };
        if !servers.needs().is_empty() && !setting.connects {
            let help = "add `--connect host=IP:PORT`";
            return Err(Refusal::input("the card's side is served without its host", help));
        }
        Ok(servers)
    }

    fn names(&self) -> Vec<RoleName> {
        self.homes.iter().map(|home| RoleName::new(home.role(), 0)).collect()
    }

    /// The card connects to the host; the host to nobody.
    fn needs(&self) -> Vec<RoleName> {
        if self.homes == [Home::Soc] { vec![RoleName::new(Home::Host.role(), 0)] } else { Vec::new() }
    }

    fn said(&self, gave: Gave<StoreServers>) -> Vec<Result<String, Refusal>> {
        let line = |(name, answer): (RoleName, Result<Served, KvError>)| {
            let Served { connections, gets, changes } = answer.map_err(shape::failed)?;
            let name = role_text(&name);
            Ok(format!("{name}: {connections} connections, {gets} gets, {changes} changes"))
        };
        gave.answers.into_iter().map(line).collect()
    }
}
