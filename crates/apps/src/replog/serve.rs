//! Serving the card or backups of a log to a primary in another process.

use super::run::follow;
use super::shape::{self, Shape};
use super::{ABOUT, LogError};
use crate::Stop;
use crate::system::{About, Gave, Given, Parts, Refusal, Roles, RunSetting, Serve, role_text};
use offpath_fabric::{Fabric, Role, RoleName};
use offpath_quantity::Time;
use std::path::Path;

/// How often it is looked whether they are to end.
const LOOK_EVERY: Time = Time::from_ms(20);

/// The card or backups of a log, which run until they are asked to stop.
#[derive(Clone, Debug)]
pub struct LogServers {
    /// The log.
    pub shape: Shape,
    /// Which roles.
    pub names: Vec<RoleName>,
    /// Asks for the end.
    pub stop: Stop,
}

impl Parts for LogServers {
    type Answer = ();
    type Error = LogError;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, LogServers> {
        let of = |name: &RoleName| {
            let (options, stop) = (self.shape.options.clone(), self.stop.clone());
            let function = move |fabric: F| {
                let (options, stop) = (options.clone(), stop.clone());
                async move {
                    let ended = follow(fabric, options).await;
                    // What has failed is told, and not waited for.
                    stop.ask();
                    ended
                }
            };
            Role::new(&name.role, name.instance, function).in_background()
        };
        let stop = self.stop.clone();
        let until = Role::new("stop", 0, move |fabric: F| {
            let stop = stop.clone();
            async move {
                stop.wait(&fabric, LOOK_EVERY).await;
                Ok(())
            }
        });
        self.names.iter().map(of).chain([until]).collect()
    }

    fn directory(&self) -> Option<&Path> {
        self.shape.directory.as_deref()
    }
}

impl Serve for LogServers {
    fn of(given: &Given, setting: &RunSetting<'_>, stop: Stop) -> Result<LogServers, Refusal> {
        let shape = Shape::of(given, setting)?;
        let names = given.all::<RoleName>("role");
        let followers = shape.followers();
        if let Some(strange) = names.iter().find(|role| !followers.contains(role)) {
            let known: Vec<String> = followers.iter().map(role_text).collect();
            return Err(Refusal::input(
                format!("this log has no role `{}`", role_text(strange)),
                format!("it has {}; `--backups` and `--placement` say so", known.join(", ")),
            ));
        }
        let servers = LogServers { shape, names, stop };
        if let (Some(missing), false) = (servers.needs().first(), setting.connects) {
            let name = role_text(missing);
            let help = format!("add `--connect {name}=IP:PORT`");
            return Err(Refusal::input(
                format!("nothing says where `{name}` is, to pass entries on to"),
                help,
            ));
        }
        Ok(servers)
    }

    fn names(&self) -> Vec<RoleName> {
        self.names.clone()
    }

    /// Each passes on to the next in the chain, and the card to the first.
    fn needs(&self) -> Vec<RoleName> {
        let chain = &self.shape.options.chain;
        let next = |role: &RoleName| match chain.iter().position(|name| name == role) {
            Some(position) => chain.get(position + 1).cloned(),
            None => chain.first().cloned(),
        };
        let elsewhere = |role: &RoleName| !self.names.contains(role);
        self.names.iter().filter_map(next).filter(elsewhere).collect()
    }

    fn said(&self, gave: Gave<LogServers>) -> Vec<Result<String, Refusal>> {
        let failed = gave.answers.into_iter().filter_map(|(_, answer)| answer.err());
        failed.map(|error| Err(shape::failed(error))).collect()
    }
}
