//! The shape of a log that a user asks for, and what its errors lead to.

use super::{LogAlternative, LogConfig, LogCosts, LogError, TAIL};
use crate::system::{BackendKind, CONNECTION_HELP, Given, LOCAL_ENGINE, Refusal, RunSetting};
use offpath_fabric::RoleName;
use offpath_quantity::{BitRate, Bytes, Time};
use std::path::PathBuf;

/// A log, and where it lies.
#[derive(Clone, Debug)]
pub struct Shape {
    /// What its roles agree on.
    pub options: LogConfig,
    /// Where the files of each role lie.
    pub directory: Option<PathBuf>,
    /// What a core of the twin is charged.
    pub charged: Option<Charged>,
}

/// Rates that are assumed where nothing is measured.
#[derive(Clone, Copy, Debug)]
pub struct Charged {
    /// Appended to files.
    pub file: BitRate,
    /// Compressed.
    pub compress: BitRate,
}

impl Shape {
    /// Names every role beside the primary.
    pub fn followers(&self) -> Vec<RoleName> {
        let LogConfig { alternative, chain, .. } = &self.options;
        let needs_card = *alternative != LogAlternative::HostWrites && !chain.is_empty();
        needs_card.then(|| RoleName::new("soc", 0)).into_iter().chain(chain.iter().cloned()).collect()
    }

    /// The log that is asked for, on a backend that can have it.
    pub(super) fn of(given: &Given, setting: &RunSetting<'_>) -> Result<Shape, Refusal> {
        let label = given.of::<String>("placement");
        let alternative = LogAlternative::labelled(&label).expect("the option reads declared labels alone");
        let backups: u32 = given.whole("backups");
        let is_twin = setting.backend == BackendKind::Twin;
        if is_twin && backups > 2 {
            return Err(Refusal::input(
                format!("the twin has no paths for a chain of {backups} backups"),
                "choose `--backups 2` or fewer, or another backend",
            ));
        }
        check(given, alternative, is_twin)?;
        let engine = given.get("engine").unwrap_or_else(|| "dma".to_string());
        if setting.backend == BackendKind::Local && engine != LOCAL_ENGINE {
            return Err(Refusal::input(
                format!("the local backend has no DMA engine `{engine}`, only `{LOCAL_ENGINE}`"),
                "leave `--engine` out",
            ));
        }
        if needs_engine(alternative) && backups > 0 && setting.backend == BackendKind::Verbs {
            return Err(Refusal::input(
                format!("verbs have no DMA engine `{engine}`, which {alternative} needs"),
                "choose `--placement A1` or `A3`, or run on the twin",
            ));
        }
        let chain = (0..backups).map(|number| match number {
            1 if is_twin => RoleName::new(TAIL, 0),
            number => RoleName::new("backup", number),
        });
        let compress = given.of::<String>("compress");
        let mut options = LogConfig {
            engine,
            chunk_bytes: u32::try_from(given.of::<Bytes>("chunk").get()).unwrap_or(u32::MAX),
            slots: given.whole("slots"),
            compress: compress != "off",
            host_compresses: compress == "all",
            card_share_percent: given.get::<u64>("card-share").map(|share| share as u32),
            ..LogConfig::new(alternative, chain.collect())
        };
        let rate = |option, default| {
            let default = BitRate::from_bits_per_second(default);
            given.get::<BitRate>(option).unwrap_or(default)
        };
        let charged = is_twin.then(|| Charged {
            file: rate("file-rate", 32_000_000_000),
            compress: rate("compress-rate", 8_000_000_000),
        });
        if let Some(Charged { file, compress }) = charged {
            options.costs = LogCosts {
                file_bytes_per_second: file.bits_per_second() / 8,
                compress_bytes_per_second: compress.bits_per_second() / 8,
                sync: Time::ZERO,
            };
        }
        if let Some(patience) = setting.patience {
            options.patience = patience;
        }
        Ok(Shape { options, directory: given.get("directory"), charged })
    }
}

fn needs_engine(alternative: LogAlternative) -> bool {
    matches!(alternative, LogAlternative::CardPullsByEngine | LogAlternative::EngineAndHost)
}

/// Refuses what this log or its backend does not read.
fn check(given: &Given, alternative: LogAlternative, is_twin: bool) -> Result<(), Refusal> {
    if given.get::<String>("engine").is_some() && !needs_engine(alternative) {
        let why = format!("names the DMA engine of A2, and {alternative} uses none");
        return Err(Refusal::unread("--engine", &why));
    }
    if given.get::<u64>("card-share").is_some() && alternative != LogAlternative::EngineAndHost {
        let why = format!("divides chunks between A2 and A3, and this is {alternative}");
        return Err(Refusal::unread("--card-share", &why));
    }
    if given.of::<String>("compress") == "card" && alternative == LogAlternative::HostWrites {
        return Err(Refusal::input(
            "`--compress card` compresses what the card carries, and by A3 it carries nothing",
            "choose `--compress all`, or another `--placement`",
        ));
    }
    let is_charged = |option: &&str| given.get::<BitRate>(option).is_some() && !is_twin;
    if let Some(option) = ["file-rate", "compress-rate"].iter().find(|option| is_charged(option)) {
        let why = "is what the twin charges, and this backend measures";
        return Err(Refusal::unread(&format!("--{option}"), why));
    }
    if given.get::<PathBuf>("directory").is_some() && is_twin {
        let why = "is where files lie, and the twin keeps them in memory";
        return Err(Refusal::unread("--directory", why));
    }
    Ok(())
}

/// What a log's error leads to.
pub(super) fn failed(error: LogError) -> Refusal {
    let (is_input, help) = match &error {
        LogError::Shape { .. } => {
            (true, "change `--chunk`, `--slots`, `--bytes`, `--writes` or `--card-share`")
        }
        LogError::NoEngine { .. } | LogError::Unsupported(_) => {
            (true, "choose another `--placement` or backend")
        }
        LogError::Connect(_) => (false, CONNECTION_HELP),
        LogError::Region(_) => (true, "choose a smaller `--chunk`, or fewer `--slots`"),
        LogError::TwoWriters { .. } => (false, "or choose another `--directory`"),
        _ => (false, ""),
    };
    Refusal::new(is_input, error, help)
}
