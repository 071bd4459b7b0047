//! Writing to the log for its users.

use super::shape::{self, Shape};
use super::{ABOUT, Driven, LogConfig, LogError, WriteLoad, answer, backup, card, drive};
use crate::system::{About, Answered, Gave, Given, Parts, Refusal, Roles, RunSetting, Said, SystemRun};
use offpath_fabric::{Fabric, Role, RoleName};
use offpath_quantity::Bytes;
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::path::Path;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Poll, Waker};

/// The primary of a log under a load, and the others where they run here.
#[derive(Clone, Debug)]
pub struct Writer {
    /// The log.
    pub shape: Shape,
    /// What is written.
    pub load: WriteLoad,
    /// Whether card and backups run here as well.
    pub serves: bool,
}

impl Parts for Writer {
    type Answer = Option<Driven>;
    type Error = LogError;

    fn about(&self) -> &'static About {
        &ABOUT
    }

    fn roles<F: Fabric>(&self, _count_events: Option<fn(&F) -> u64>) -> Roles<F, Writer> {
        let (options, load) = (self.shape.options.clone(), self.load);
        let lost: Rc<Lost> = Rc::default();
        let heard = lost.clone();
        let mut roles = vec![Role::new("host", 0, move |fabric: F| {
            let (options, heard) = (options.clone(), heard.clone());
            async move { heard.or(drive(&fabric, &options, &load)).await.transpose() }
        })];
        if self.serves {
            roles.extend(self.shape.followers().into_iter().map(|name| {
                let (options, lost) = (self.shape.options.clone(), lost.clone());
                let function = move |fabric: F| {
                    let (options, lost) = (options.clone(), lost.clone());
                    async move {
                        let ended = follow(fabric, options).await;
                        lost.tell();
                        ended.map(|()| None)
                    }
                };
                Role::new(&name.role, name.instance, function).in_background()
            }));
        }
        roles
    }

    fn directory(&self) -> Option<&Path> {
        self.shape.directory.as_deref()
    }
}

impl SystemRun for Writer {
    type Report = answer::Wrote;

    fn of(given: &Given, setting: &RunSetting<'_>) -> Result<Writer, Refusal> {
        let shape = Shape::of(given, setting)?;
        let bytes = given.of::<Bytes>("bytes").get();
        if bytes == 0 {
            return Err(Refusal::input(
                "a write of 0 B writes nothing",
                "give `--bytes` a size, as in `--bytes 8MiB`",
            ));
        }
        if let Some(directory) = &shape.directory {
            std::fs::create_dir_all(directory).map_err(|error| {
                Refusal::input(
                    format!("`{}` cannot hold the logs: {error}", directory.display()),
                    "name a directory that can be written with `--directory`",
                )
            })?;
        }
        let load = WriteLoad {
            sessions: given.whole("sessions"),
            writes: given.of("writes"),
            bytes,
            compressible_percent: given.whole("compressible"),
        };
        Ok(Writer { shape, load, serves: !setting.connects })
    }

    fn servers(&self) -> Vec<RoleName> {
        self.shape.followers()
    }

    fn said(&self, gave: Gave<Writer>, setting: &RunSetting<'_>) -> Result<Said<answer::Wrote>, Refusal> {
        // The primary that waits for a backup which failed tells less than the backup.
        let (primary, others): (Vec<_>, Vec<(RoleName, Answered<Writer>)>) =
            gave.answers.into_iter().partition(|(name, _)| name.role == "host");
        let mut driven = Driven::default();
        for (_, answer) in others.into_iter().chain(primary) {
            driven = answer.map_err(shape::failed)?.unwrap_or(driven);
        }
        let report = answer::Wrote::of(self, &driven, gave.elapsed, setting.seed);
        Ok(Said { page: report.page(), holds: true, report })
    }
}

/// What a role beside the primary does; it ends by an error alone.
pub(super) async fn follow<F: Fabric>(fabric: F, options: LogConfig) -> Result<(), LogError> {
    if fabric.role().role == "soc" { card(fabric, options).await } else { backup(fabric, options).await }
}

/// Whether one of the others of a log has ended, and who waits to hear of it.
#[derive(Default)]
struct Lost {
    is_lost: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl Lost {
    fn tell(&self) {
        self.is_lost.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }

    /// What `work` gives, or nothing where another ended before: a primary waits for a backup that is down, and one
    /// that ended in this very run does not come back.
    async fn or<T>(&self, work: impl Future<Output = T>) -> Option<T> {
        let mut work = pin!(work);
        poll_fn(|context| {
            if let Poll::Ready(answer) = work.as_mut().poll(context) {
                return Poll::Ready(Some(answer));
            }
            self.waker.replace(Some(context.waker().clone()));
            if self.is_lost.get() { Poll::Ready(None) } else { Poll::Pending }
        })
        .await
    }
}
